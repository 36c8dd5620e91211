"""Centres and units of columns that neither a few wild cells nor rows of weight zero move; and some rows, taken by weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .._base.types import DenseOrCSR
    from ..rows import Rows

# Rows, and numbers in them, that columns are read off, where there are more.
MOST_ROWS, MOST_NUMBERS = 2**14, 2**20
# For its unit a number counts as no farther from the median than so many times the median distance to it of those that differ
# from it. Of a normal distribution that is 6.7 standard deviations.
FAR = 10.0
# Share of the rows, and how many, whose numbers may be drawn in: where they are farther than that, too.
WILD, FEWEST_WILD = 1e-3, 1.5
# Farther than this, in units of the median distance, nothing is: its square may overflow, it and its multiples do not.
FARTHEST = 1e280
# A column is constant whose deviation is less than this many times the rounding of its numbers.
ROUNDINGS = 16.0


def sample_of(rows: Rows, weight: np.ndarray, rng: np.random.Generator) -> tuple[DenseOrCSR, np.ndarray]:
    """(some rows, their weights): all, or as many as columns are read off."""
    n = min(MOST_ROWS, max(2, MOST_NUMBERS // rows.n_features_in))
    if rows.n_rows <= n:
        return rows.array(), weight
    index, weight = some_rows(weight, n, rng)
    return rows.array(index), weight.astype(np.float64)


def some_rows(weight: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(the indices of at most n rows, how much each counts): all rows, or as many draws, as likely as their weights."""
    n = min(n, len(weight))
    if n == len(weight) or are_equal(weight):
        sample = np.sort(rng.choice(len(weight), n, replace=False))
        return sample, weight[sample]
    return np.unique(rng.choice(len(weight), n, p=weight / weight.sum()), return_counts=True)


def are_equal(weight: np.ndarray) -> bool:
    return weight.min() == weight.max()


def robust(X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(center, unit, reach, half range) of each column of an ndarray, as a `ColumnStage` has them: (4, n_columns).

    NaN is not there.
    """
    answers = np.zeros((4, X.shape[1]))
    size = max(1, 2**17 // max(1, len(X)))
    for start in range(0, X.shape[1], size):
        some = slice(start, start + size)
        answers[:, some] = _robust(X[:, some], weight)
    for j in np.flatnonzero(np.isnan(answers[0])):
        there = ~np.isnan(X[:, j])
        answers[:, j] = _robust(X[there, j : j + 1], weight[there])[:, 0] if there.any() else 0.0
    return answers


@np.errstate(invalid="ignore")  # NaN in a column is NaN in what is said of it
def _robust(X, weight):
    rounding = ROUNDINGS * np.finfo(X.dtype).eps
    X = np.array(X, np.float64, order="C")  # sums in another order have other bits
    down = np.where(np.frexp(np.abs(X).max(axis=0))[1] > 1000, 2.0**-30, 1.0)  # no difference overflows
    X *= down
    median = weighted_quantile(X, weight, 0.5)
    X -= median
    distance = np.abs(X)
    near = weighted_quantile(distance, weight, 0.5, first=(distance == 0).sum(axis=0))
    varies = near > 0
    unit = np.where(varies, near, 1.0)
    end = np.maximum(FAR * near, weighted_quantile(distance, weight, 1 - max(WILD, FEWEST_WILD / len(X))))
    with np.errstate(over="ignore"):
        end = np.minimum(end / unit, FARTHEST)
        X /= unit
    share, less = weight / weight.sum(), np.clip(X, -FAR, FAR)
    mean = share @ less
    deviation = np.sqrt(share @ (less - mean) ** 2)
    varies &= deviation > rounding * (np.abs(median) / unit + FAR)
    inside = np.clip(X, -end, end)
    per_deviation = np.divide(1.0, deviation, out=np.zeros_like(mean), where=varies)
    half_range = (inside.max(axis=0) - inside.min(axis=0)) / 2 * per_deviation
    center, unit = (median + near * mean) / down, near * deviation / down * varies
    return np.stack([center, unit, (end + np.abs(mean)) * per_deviation, half_range])


def weighted_quantile(X: np.ndarray, weight: np.ndarray, share: float, first: int | np.ndarray = 0) -> np.ndarray:
    """Of each column the least entry that this share of the weight lies at or below, without the `first` least entries."""
    if are_equal(weight):
        place = first + np.ceil((len(X) - first) * share * (1 - 1e-12)).astype(np.intp) - 1
        return np.take_along_axis(np.sort(X, axis=0), np.broadcast_to(np.maximum(place, 0), X.shape[1:])[None], axis=0)[0]
    order = np.argsort(X, axis=0, kind="stable")
    total = np.where(np.arange(len(X))[:, None] < first, 0.0, weight[order]).cumsum(axis=0)
    place = (total < total[-1] * share * (1 - 1e-12)).sum(axis=0)[None]
    return np.take_along_axis(X, np.take_along_axis(order, place, axis=0), axis=0)[0]
