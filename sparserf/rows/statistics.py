"""What the columns of a block look like: extremes and sums over the rows themselves."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import is_sparse
from .._base.threads import single_threaded_blas
from .products import slices

if TYPE_CHECKING:
    from .._base.types import DenseOrCSR

# Rows that are copied at a time.
SOME = 4096


def extremes(X: DenseOrCSR) -> np.ndarray:
    """(the least, the largest) of each column: float64 (2, n_columns)."""
    if is_sparse(X):
        return np.stack([x.toarray().astype(np.float64).ravel() for x in (X.min(axis=0), X.max(axis=0))])
    parts = (X[some] for some in slices(X.shape[0], SOME))
    return reduce(wider, (np.stack([x.min(axis=0), x.max(axis=0)]).astype(np.float64) for x in parts))


def wider(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """`extremes` of two blocks."""
    return np.stack([np.minimum(one[0], other[0]), np.maximum(one[1], other[1])])


def moments(X: DenseOrCSR, weight: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """The sums of weight x / unit, and of the squares: (2, n_columns). Of CSR rows."""
    data, weight = X.data / unit[X.indices], np.repeat(weight, np.diff(X.indptr))
    return np.stack([np.bincount(X.indices, weight * power, X.shape[1]) for power in (data, data * data)])


def scaled_sum(X: DenseOrCSR, weight: np.ndarray, unit: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
    """The sum of weight x / unit; or, around a mean of that, of the squares. Of dense rows."""
    total = np.zeros(X.shape[1])
    for some in slices(X.shape[0], SOME):
        x = X[some] / unit
        total += (weight[some, None] * (x if mean is None else (x - mean) ** 2)).sum(axis=0)
    return total


def weighted_sum(X: DenseOrCSR, weight: np.ndarray) -> np.ndarray:
    """weight' X; infinite or NaN where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"), single_threaded_blas():
        return sum(weight[some] @ X[some].astype(np.float64) for some in slices(X.shape[0], SOME))


def largest_square_distance(X: DenseOrCSR, center: np.ndarray) -> float:
    """Of the rows to a point."""
    return max(_square_distances(X[some], center).max() for some in slices(X.shape[0], SOME))


def _square_distances(rows, center):
    with np.errstate(over="ignore", invalid="ignore"):
        rows = rows.astype(np.float64)
        if not is_sparse(rows):
            return ((rows - center) ** 2).sum(axis=1)
        norms = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        return np.maximum(norms - 2 * (rows @ center) + center @ center, 0.0)
