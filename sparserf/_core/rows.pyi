"""A slice of the rows, dense or CSR, as the kernels read it. See rows.pyx."""

import numpy as np

LEVELS: tuple[str, ...]
LEVEL: int

class RowSlice:
    def __init__(
        self,
        X: np.ndarray,
        indices: np.ndarray | None = None,
        indptr: np.ndarray | None = None,
        level: int = -1,
    ) -> None: ...
    def correlate(self, v: np.ndarray, out: np.ndarray, squared: bool = False) -> None: ...
    def apply(self, p: np.ndarray, f: np.ndarray) -> None: ...
    def normal(self, p: np.ndarray, h: np.ndarray, f: np.ndarray, out: np.ndarray) -> None: ...
