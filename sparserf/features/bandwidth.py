"""How wide a kernel should be, read off the data: distances between rows, on a sample of them."""

import numpy as np

from .._checks import check_scale, is_sparse

SAMPLE = 2000
NEIGHBOURS = 50


def check_gamma(gamma):
    """None, "knn", or a positive float."""
    if gamma is None or (isinstance(gamma, str) and gamma == "knn"):
        return gamma
    if isinstance(gamma, str):
        raise ValueError(f"gamma must be None, 'knn' or a positive number, got {gamma!r}")
    return check_scale("gamma", gamma)


def resolve_gamma(X, rule, metric, rng):
    """The inverse width that a rule reads off X: 1 / (2 scale^2), or 1 / scale for the metric "cityblock"."""
    scale = float(np.clip(distance_scale(X, rule, metric, rng), 1e-150, 1e150))
    return 1.0 / scale if metric == "cityblock" else 0.5 / scale**2


def distance_scale(X, rule, metric, rng):
    """Median distance between rows (rule None), or mean distance to the 50th nearest neighbour (rule "knn").

    Distances between rows that are equal do not count. 1.0 where no two rows differ.
    """
    sample = np.sort(rng.choice(X.shape[0], min(SAMPLE, X.shape[0]), replace=False))
    rows = X[sample]
    # Scaled to the largest entry, so that no square overflows.
    largest = float(np.abs(rows.data if is_sparse(rows) else rows).max(initial=0.0))
    if largest == 0:
        return 1.0
    rows = rows.astype(np.float64)
    if is_sparse(rows):
        rows.data /= largest  # scipy would multiply by 1 / largest, which may be infinite
    else:
        rows = rows / largest
    with np.errstate(over="ignore"):
        distance = np.minimum(distances(rows, rows, metric) * largest, 1e300)
    if rule == "knn":
        neighbour = min(NEIGHBOURS, len(sample) - 1)
        each = np.partition(distance, neighbour, axis=1)[:, neighbour]  # the 0th is the row itself
    else:
        each = distance[np.triu_indices(len(sample), 1)]
    each = each[each > 0]
    if not len(each):
        return 1.0
    return float(each.mean() if rule == "knn" else np.median(each))


def distances(rows, others, metric):
    """Distances of rows to others, "euclidean" or "cityblock": float64; both dense, or both CSR of float64."""
    if not is_sparse(rows):
        from scipy.spatial.distance import cdist

        return cdist(rows, others, metric)
    if metric == "euclidean":
        total = _squares(rows)[:, None] + _squares(others)
        gap = total - 2 * (rows @ others.T).toarray()
        return np.sqrt(np.where(gap > 1e-14 * total, gap, 0.0))  # equal rows differ by rounding
    distance = np.empty((rows.shape[0], others.shape[0]))
    for i in range(rows.shape[0]):
        distance[i] = _cityblock(others, rows[[i]].toarray().ravel())
    return distance


def _squares(rows):
    return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()


def _cityblock(rows, a):
    """L1 distances of a to the rows of a CSR matrix: |a - b| = |a| + |b| - 2 min(|a|, |b|) where the signs agree."""
    size = np.abs(rows.data)
    shared = np.where(rows.data * a[rows.indices] > 0, np.minimum(size, np.abs(a[rows.indices])), 0.0)
    total = np.concatenate([[0.0], np.cumsum(size - 2 * shared)])
    gap = np.abs(a).sum() + np.diff(total[rows.indptr])
    return np.where(gap > 4e-16 * (np.abs(total[-1]) + size.sum()), gap, 0.0)
