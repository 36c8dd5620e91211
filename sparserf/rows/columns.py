"""What columns look like: sums over the rows themselves, of one block and of all."""

import numpy as np

from .._checks import is_sparse
from .._threads import single_threaded_blas

# Rows that are copied at a time.
SOME = 4096


def extremes(block):
    """(the least, the largest) of each column: float64 (2, n_columns)."""
    both = block.X.min(axis=0), block.X.max(axis=0)
    return np.stack([(x.toarray() if is_sparse(x) else np.asarray(x)).astype(np.float64).ravel() for x in both])


def wider(one, other):
    """`extremes` of two blocks."""
    return np.stack([np.minimum(one[0], other[0]), np.maximum(one[1], other[1])])


def deviations(rows, weight, largest):
    """The standard deviation of each column, of entries up to `largest` in size; 0 where rounding is all that varies."""
    unit = np.where(largest > 0, largest, 1.0)  # no sum or square overflows
    if rows.is_sparse:
        first, second = rows.sum(lambda block, weight: _sparse_moments(block.X, weight, unit), weight) / rows.n_rows
        variance = second - first**2
    else:
        mean = rows.sum(lambda block, weight: _sum(block.X, weight, unit, lambda x: x), weight) / rows.n_rows
        total = rows.sum(lambda block, weight: _sum(block.X, weight, unit, lambda x: (x - mean) ** 2), weight)
        variance = total / rows.n_rows
    return np.where(variance > 1e-14, np.sqrt(np.maximum(variance, 0)), 0.0) * unit


def _sparse_moments(X, weight, unit):
    """The sums of X / unit and of its squares."""
    data, weight = X.data / unit[X.indices], np.repeat(weight, np.diff(X.indptr))
    return np.stack([np.bincount(X.indices, weight * power, X.shape[1]) for power in (data, data * data)])


def _sum(X, weight, unit, of):
    """The sum of of(X / unit) over the rows, some at a time."""
    total = np.zeros(X.shape[1])
    for some in _parts(X):
        total += (weight[some, None] * of(X[some] / unit)).sum(axis=0)
    return total


def weighted_sum(block, weight):
    """weight' X; infinite or NaN where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"), single_threaded_blas():
        return sum(weight[some] @ block.X[some].astype(np.float64) for some in _parts(block.X))


def largest_square_distance(X, center):
    """Of the rows to a point."""
    return max(_square_distances(X[some], center).max() for some in _parts(X))


def _square_distances(rows, center):
    with np.errstate(over="ignore", invalid="ignore"):
        rows = rows.astype(np.float64)
        if not is_sparse(rows):
            return ((rows - center) ** 2).sum(axis=1)
        norms = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        return np.maximum(norms - 2 * (rows @ center) + center @ center, 0.0)


def _parts(X):
    return [slice(start, start + SOME) for start in range(0, X.shape[0], SOME)]
