"""Trees of boxes that grow along a gradient. See trees.pyx."""

from typing import Any

import numpy as np

class Tree:
    def __init__(
        self,
        how: Any,
        boxes: np.ndarray,
        seed: int,
        columns: np.ndarray,
        n_bins: np.ndarray,
        limits: Any = None,
        level: int = -1,
    ) -> None: ...
    def asks(self) -> np.ndarray: ...
    def answer(self, sums: np.ndarray, counts: np.ndarray, units: np.ndarray) -> None: ...
    def splits(self) -> np.ndarray: ...
    def grow(self, bins: np.ndarray, steps: np.ndarray, units: np.ndarray) -> None: ...

def sums_in_nodes(
    splits: np.ndarray,
    first: np.ndarray,
    bins: np.ndarray,
    v: np.ndarray,
    sums: np.ndarray,
    start: int,
    stop: int,
) -> None: ...
