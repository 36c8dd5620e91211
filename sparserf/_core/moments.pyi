"""The inputs of features, and what second moments need beside BLAS. See moments.pyx."""

import numpy as np

KINDS: tuple[str, ...]
TURNS: tuple[float, ...]

class Views:
    def __init__(
        self,
        column: np.ndarray,
        kind: np.ndarray,
        first_knot: np.ndarray,
        level: np.ndarray,
        arithmetic: np.ndarray,
        knots: np.ndarray,
    ) -> None: ...  # fmt: skip
    def show(self, X: np.ndarray, out: np.ndarray) -> None: ...

def enveloped(X: np.ndarray, gamma: float, order: int, out: np.ndarray) -> None: ...
def by_sign(U: np.ndarray, v: np.ndarray, size: float, out: np.ndarray) -> tuple[int, int]: ...
def entry_extremes(
    data: np.ndarray, indices: np.ndarray, out: np.ndarray, count: np.ndarray
) -> None: ...
def second_moments(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, v: np.ndarray, out: np.ndarray
) -> None: ...
