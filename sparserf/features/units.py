"""Units in which inputs are measured: the spread of each column."""

import numpy as np

from .._checks import is_sparse

# A column of smaller numbers is constant: weights are their inverse.
SMALLEST = {"float32": 1e-35, "float64": 1e-290}


def spreads(X, weight):
    """(standard deviation, half the range) of each column, of rows of positive weights of mean 1."""
    low, high = _extremes(X)
    return _deviations(X, weight, np.maximum(-low, high)), high / 2 - low / 2


def inverse_deviations(X, weight):
    """1 / the standard deviation of each column, 0 of a constant one. Of CSR rows in proportion to its fourth root.

    Which lies between the counts of words as they are and all words alike: a rare one tells more, but in fewer rows.
    """
    deviation = spreads(X, weight)[0]
    varies = deviation > SMALLEST[X.dtype.name]
    largest = deviation.max(initial=0.0, where=varies) or 1.0
    unit = np.where(varies, deviation, largest)
    if is_sparse(X):
        unit = largest**0.75 * unit**0.25  # no entry is large in its unit
    return np.where(varies, 1 / unit, 0.0)


def _extremes(X):
    """(the least, the largest) of each column."""
    both = X.min(axis=0), X.max(axis=0)
    return np.stack([(x.toarray() if is_sparse(x) else np.asarray(x)).astype(np.float64).ravel() for x in both])


def _deviations(X, weight, largest):
    """The standard deviation of each column, of entries up to `largest` in size; 0 where rounding is all that varies."""
    unit = np.where(largest > 0, largest, 1.0)  # no sum or square overflows
    if is_sparse(X):
        data, weight = X.data / unit[X.indices], np.repeat(weight, np.diff(X.indptr))
        first, second = (np.bincount(X.indices, weight * power, X.shape[1]) / X.shape[0] for power in (data, data * data))
        variance = second - first**2
    else:
        mean = _mean(X, weight, unit, lambda rows: rows)
        variance = _mean(X, weight, unit, lambda rows: (rows - mean) ** 2)
    return np.where(variance > 1e-14, np.sqrt(np.maximum(variance, 0)), 0.0) * unit


def _mean(X, weight, unit, of):
    """The mean of of(X / unit) over the rows, some at a time."""
    total = np.zeros(X.shape[1])
    for rows in (slice(start, start + 4096) for start in range(0, X.shape[0], 4096)):
        total += (weight[rows, None] * of(X[rows] / unit)).sum(axis=0)
    return total / X.shape[0]
