"""Units in which inputs are measured: the spread of each column."""

import numpy as np

from .._checks import is_sparse

# A column of smaller numbers is constant: weights are their inverse.
SMALLEST = {"float32": 1e-35, "float64": 1e-290}


def spreads(X):
    """(standard deviation, half the range) of each column."""
    low, high = _extremes(X)
    return _deviations(X, np.maximum(-low, high)), high / 2 - low / 2


def inverse_deviations(X):
    """1 / the standard deviation of each column, 0 of a constant one. Of CSR rows in proportion to its fourth root.

    Which lies between the counts of words as they are and all words alike: a rare one tells more, but in fewer rows.
    """
    deviation = spreads(X)[0]
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


def _deviations(X, largest):
    """The standard deviation of each column, of entries up to `largest` in size; 0 where rounding is all that varies."""
    unit = np.where(largest > 0, largest, 1.0)  # no square overflows
    if is_sparse(X):
        data = X.data / unit[X.indices]
        first, second = (np.bincount(X.indices, power, X.shape[1]) / X.shape[0] for power in (data, data * data))
        variance = second - first**2
    else:
        variance = np.zeros(X.shape[1])
        mean = X.mean(axis=0, dtype=np.float64)
        for start in range(0, X.shape[0], 4096):
            variance += (((X[start : start + 4096] - mean) / unit) ** 2).sum(axis=0)
        variance /= X.shape[0]
    return np.where(variance > 1e-14, np.sqrt(np.maximum(variance, 0)), 0.0) * unit
