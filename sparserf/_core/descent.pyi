"""Soft-thresholding coordinate descent on a quadratic with an l1 penalty. See descent.pyx."""

import numpy as np

def largest_violation(
    w: np.ndarray, v: np.ndarray, alpha: float, nonnegative: np.ndarray | None = None
) -> float: ...
def as_bytes(nonnegative: np.ndarray | None, n: int) -> np.ndarray | None: ...
def descend(
    H: np.ndarray, w: np.ndarray, v: np.ndarray, alpha: float, n_epochs: int, tol: float = 0.0,
    nonnegative: np.ndarray | None = None, level: int = -1,
) -> float: ...  # fmt: skip
