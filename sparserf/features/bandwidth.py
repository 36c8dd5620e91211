"""Bandwidths of kernels, and factors that scale inputs to equal units, computed from the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from .._base.checks import check_scale, is_sparse
from .._base.deadline import fewer_in_time
from .._base.random import is_uniform, sample_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import DenseOrCSR
    from ..rows import Rows

# What users give as gamma: a number, or the rule by which it is computed from the rows.
Gamma: TypeAlias = float | Literal["knn"] | None

# The distances between at most SAMPLE rows are computed; under a `time_limit` between fewer, but at
# least FEWEST.
SAMPLE, FEWEST = 2000, 200
# About the seconds that the distances between SAMPLE rows take, and how often a call computes them.
SECONDS, SETS_OF_DISTANCES = 0.1, 6
# The neighbour whose distance is the bandwidth by the rule "knn" of Shahrampour & Tarokh (2018).
NEIGHBOURS = 50
# A column whose standard deviation is smaller than this counts as constant: weights of features are
# the inverse of it.
SMALLEST = {"float32": 1e-35, "float64": 1e-290}


def check_gamma(gamma: Any) -> Gamma:
    """Check `gamma` and return it: None, "knn", or a positive float."""
    if gamma is None or (isinstance(gamma, str) and gamma == "knn"):
        return gamma
    if isinstance(gamma, str):
        raise ValueError(f"gamma must be None, 'knn' or a positive number, got {gamma!r}")
    return check_scale("gamma", gamma)


def resolve_gamma(
    rows: Rows,
    rule: Literal["knn"] | None,
    metric: str,
    rng: np.random.Generator,
    weight: np.ndarray | None = None,
) -> float:
    """Return the inverse width of a kernel by a rule: 1 / (2 scale^2), or 1 / scale for the metric
    "cityblock".

    Here scale is the `distance_scale` of the rows by that rule.

    weight : the weight of each row; None: all rows count alike.
    """
    weight = np.ones(rows.n_rows) if weight is None else weight
    scale = float(np.clip(distance_scale(rows.array, weight, rule, metric, rng), 1e-150, 1e150))
    return 1.0 / scale if metric == "cityblock" else 0.5 / scale**2


def distance_scale(
    take: Callable[[np.ndarray], DenseOrCSR],
    weight: np.ndarray,
    rule: Literal["knn"] | None,
    metric: str,
    rng: np.random.Generator,
) -> float:
    """Return the median distance between rows (rule None), or the mean distance to the 50th nearest
    neighbour (rule "knn").

    A row of twice the weight counts as two. Distances between equal rows do not count. The scale is
    1.0 where no two differ.

    take : function take(index) that returns some rows, an ndarray or CSR matrix.
    weight : the weight of each row.
    """
    n = fewer_in_time(SAMPLE, FEWEST, SECONDS * SETS_OF_DISTANCES, power=2)
    sample, weight = sample_rows(weight, n, rng)
    rows = take(sample)
    # Scaled to the largest entry, so that no square overflows.
    largest = float(np.abs(rows.data if is_sparse(rows) else rows).max(initial=0.0))
    if largest == 0:
        return 1.0
    rows = rows.astype(np.float64)
    if is_sparse(rows):
        rows.data /= largest  # scipy would multiply by 1 / largest, which may be infinite
    else:
        rows = rows / largest
    distance = np.minimum(_distances(rows, metric) * largest, 1e300)
    if not distance.any():
        return 1.0
    return _mean_to_neighbour(distance, weight) if rule == "knn" else _median(distance, weight)


def _median(distance, weight):
    """Return the median distance between two rows that differ, where each pair counts by the
    product of its weights."""
    pair = np.triu_indices(len(weight), 1)
    each = distance[pair]
    if is_uniform(weight):
        return float(np.median(each[each > 0]))
    often = (weight[pair[0]] * weight[pair[1]])[each > 0]
    each = each[each > 0]
    order = np.argsort(each)
    total = np.cumsum(often[order])
    # Where half of the weight, up to rounding, ends between two distances, the median is their
    # mean.
    middle = np.searchsorted(total, total[-1] / 2 * np.array([1 - 1e-12, 1 + 1e-12]))
    return float(each[order[middle]].mean())


def _mean_to_neighbour(distance, weight):
    """Return the mean, over the rows, of the distance within which there are NEIGHBOURS other rows,
    counted by their weights.

    Rows for which that distance is 0 do not count.
    """
    if is_uniform(weight):
        neighbour = min(NEIGHBOURS, len(weight) - 1)
        each = np.partition(distance, neighbour, axis=1)[:, neighbour]  # the 0th is the row itself
    else:
        order = np.argsort(distance, axis=1)
        nearer = np.cumsum(weight[order], axis=1)
        neighbour = np.minimum((nearer <= NEIGHBOURS * weight.mean()).sum(axis=1), len(weight) - 1)
        each = distance[np.arange(len(weight)), order[np.arange(len(weight)), neighbour]]
    return float(np.average(each[each > 0], weights=weight[each > 0])) if each.any() else 1.0


def _distances(rows, metric):
    """Return the distances between rows, dense or CSR, of float64, "euclidean" or "cityblock"."""
    if not is_sparse(rows):
        from scipy.spatial.distance import cdist

        return cdist(rows, rows, metric)
    if metric == "euclidean":
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        total = squares[:, None] + squares
        gap = total - 2 * (rows @ rows.T).toarray()
        return np.sqrt(np.where(gap > 1e-14 * total, gap, 0.0))  # equal rows differ by rounding
    each = (rows[[i]].toarray().ravel() for i in range(rows.shape[0]))
    return np.array([_cityblock(rows, row) for row in each])


def _cityblock(rows, a):
    """Return the l1 distances of a to the rows b of a CSR matrix: |a - b| = |a| + |b| - 2 min(|a|,
    |b|) where signs agree."""
    size = np.abs(rows.data)
    shared = np.where(
        rows.data * a[rows.indices] > 0, np.minimum(size, np.abs(a[rows.indices])), 0.0
    )
    total = np.concatenate([[0.0], np.cumsum(size - 2 * shared)])
    gap = np.abs(a).sum() + np.diff(total[rows.indptr])
    return np.where(gap > 4e-16 * (np.abs(total[-1]) + size.sum()), gap, 0.0)
