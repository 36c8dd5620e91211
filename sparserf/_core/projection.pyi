"""Random projections without a matrix product. See projection.pyx."""

import numpy as np

from .rows import RowSlice

def sparse_sign(
    X: np.ndarray, columns: np.ndarray, signs: np.ndarray, scale: float, out: np.ndarray
) -> None: ...
def sparse_sign_csr(
    X: RowSlice, columns: np.ndarray, signs: np.ndarray, scale: float, out: np.ndarray
) -> None: ...
def hadamard(rows: np.ndarray) -> None: ...
