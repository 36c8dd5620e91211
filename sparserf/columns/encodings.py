"""Which views of its columns a table gets, and their centres and units, as a sample of its rows tells."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from .._core.moments import KINDS
from .robust import robust, sample_of
from .stage import CLIP, ColumnStage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..rows import Rows
    from .table import Table

# A category has a view of each level that at least this share of the rows has, of so many at most; where that is not all of
# them, one of the target's mean of its level (`levels.py`).
LEAST_SHARE, MOST_LEVELS = 0.01, 24
# Knots of a view of ranks: quantiles at the middles of so many equal shares, and at a thousandth from the ends.
N_SHARES = 64
SHARES = np.concatenate([[1e-3], (np.arange(N_SHARES) + 0.5) / N_SHARES, [1 - 1e-3]])
# Columns of which there are several views, at most; and distinct numbers below which they are the same but for units.
MOST_CURVED, FEWEST_DISTINCT = 200, 3
NUMBER, CLIPPED, LEVEL, MISSING, PRESENT = range(len(KINDS))


def stage_of(
    rows: Rows, weight: np.ndarray, rng: np.random.Generator, *, table: Table | None = None,
    means: Mapping[int, tuple[np.ndarray, np.ndarray]] | None = None, is_scaled: bool = True, is_curved: bool = False,
) -> tuple[ColumnStage, Sequence[np.ndarray]]:  # fmt: skip
    """(the `ColumnStage` of dense rows of positive weights, curves), as they tell, or a sample of them.

    means : {column: (knots, scores)} of categories of many levels
    is_scaled : whether views are in robust units, or as they are
    is_curved : whether there are views of numbers clipped, and in ranks, too
    curves : lists of views that belong together, of each column: as it is; and clipped, and in ranks, where there are such
    """
    X, of_sample = sample_of(rows, weight, rng)
    plain = _plain(X, of_sample, table, means or {})
    curved = _curved(X, plain) if is_curved and is_scaled else []
    whole = [*plain, *((j, CLIPPED, 0, None) for j in curved), *((j, NUMBER, 0, _ranks(X[:, j], of_sample)) for j in curved)]
    bare = _bare(whole, X.shape[1], table)
    units = _units(bare, X, of_sample, rows, weight)
    return _with(bare, units) if is_scaled else _raw(bare, units), _curves(plain, curved)


def stage_of_counts(
    rows: Rows, weight: np.ndarray, rng: np.random.Generator
) -> tuple[ColumnStage | None, Sequence[np.ndarray]]:
    """(None, no curves) of CSR rows whose entries are all alike; else (the stage, curves) of a view as they are, in which
    entries are clipped at some three times the median entry of the column, and in which those of columns with zeros are one."""
    X, _ = sample_of(rows, weight, rng)
    there = X.data != 0
    size, column = np.abs(X.data[there].astype(np.float64)), X.indices[there]
    if not there.any() or X.data[there].min() == X.data[there].max():
        return None, ()
    d, counts = rows.n_features_in, np.bincount(column, minlength=rows.n_features_in)
    lacking = np.flatnonzero(counts < X.shape[0]).tolist()  # of the others all entries would be one, a constant
    seen = [(j, kind, 0, None) for kind in (NUMBER, CLIPPED) for j in range(d)] + [(j, PRESENT, 0, None) for j in lacking]
    unit = np.concatenate([np.ones(d), lower_medians(size, column, d), np.ones(len(lacking))])
    curves = [curve for curve in np.split(np.arange(len(seen)), [d, 2 * d]) if len(curve)]
    return replace(_bare(seen, d, None), unit=unit, may_miss=False), curves


def lower_medians(values: np.ndarray, column: np.ndarray, n_columns: int) -> np.ndarray:
    """Of the values in each column the lower median; 1 where there are none."""
    order, count = np.lexsort((values, column)), np.bincount(column, minlength=n_columns)
    middle = np.cumsum(count) - count + np.maximum(count - 1, 0) // 2
    median = np.ones(n_columns)
    median[count > 0] = values[order][middle[count > 0]]
    return median


def _plain(X, weight, table, means):
    """(column, kind, level, knots) of the views of each column as it is, and of where it is missing."""
    levels = [None] * X.shape[1] if table is None else table.levels
    numbers = [(j, NUMBER, 0, means.get(j)) for j in range(X.shape[1]) if levels[j] is None or j in means]
    categories = [j for j, of_column in enumerate(levels) if of_column]
    frequent = [(j, LEVEL, k, None) for j in categories for k in frequent_levels(X[:, j], weight)]
    missing = [(j, MISSING, 0, None) for j in np.flatnonzero(np.isnan(X).any(axis=0)).tolist()]
    return sorted(numbers + frequent + missing, key=lambda view: view[:3])


def frequent_levels(codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The levels that get a view of their own: of two, one of them."""
    there = ~np.isnan(codes)
    share = np.bincount(np.floor(codes[there]).astype(np.intp), weight[there]) / weight.sum()
    frequent = np.sort(np.argsort(-share, kind="stable")[:MOST_LEVELS])
    frequent = frequent[share[frequent] >= LEAST_SHARE]
    return frequent[1:] if there.all() and len(frequent) == 2 == len(share) else frequent


def _curved(X, plain):
    """The columns of which views differ by more than units."""
    numbers = [j for j, kind, _, knots in plain if kind == NUMBER and knots is None]
    if len(numbers) > MOST_CURVED:
        return []
    return [j for j in numbers if len(np.unique(X[~np.isnan(X[:, j]), j])) >= FEWEST_DISTINCT]


def _ranks(x, weight):
    """(knots, scores): quantiles of a column by weight, and where a normal distribution has them; of equal ones the mean."""
    there = ~np.isnan(x)
    order = np.argsort(x[there], kind="stable")
    total = weight[there][order].cumsum()
    place = np.minimum(np.searchsorted(total, total[-1] * SHARES * (1 - 1e-12)), len(order) - 1)
    knots, same = np.unique(x[there][order][place].astype(np.float64), return_inverse=True)
    return knots, np.bincount(same, normal_scores()) / np.bincount(same)


@cache
def normal_scores() -> np.ndarray:
    """Where a normal distribution has the quantiles of these shares."""
    from statistics import NormalDist  # slow to import

    return np.array([NormalDist().inv_cdf(share) for share in SHARES])


def _bare(views, n_columns, table):
    """The stage of these views, without units."""
    column, kind, level = (np.array([view[i] for view in views], dtype) for i, dtype in enumerate((int, int, float)))
    knots = [view[3] or (np.zeros(0), np.zeros(0)) for view in views]
    first = np.cumsum([0, *(len(of_view) for of_view, _ in knots)])
    knots = [np.concatenate([np.zeros(0), *(pair[i] for pair in knots)]) for i in range(2)]
    zero, one = np.zeros((2, len(views))), np.ones((2, len(views)))
    infinite = np.full(len(views), np.inf)
    return ColumnStage(n_columns, column, kind, level, zero[0], one[0], infinite, one[1], zero[1], first, *knots, table)


def _units(bare, X, of_sample, rows, weight):
    """(center, unit, reach, half range) of each view."""
    kind = np.where(bare.kind == CLIPPED, NUMBER, bare.kind)
    seen = replace(bare, kind=kind).show(X)
    seen[np.isnan(X[:, bare.column]) & (kind == NUMBER)] = np.nan
    units = robust(seen, of_sample)
    rare = (units[1] == 0) & (kind == NUMBER) & (np.diff(bare.first_knot) == 0)
    if rare.any() and len(X) < rows.n_rows:
        _add_rare(units, rare, *(of_columns[bare.column] for of_columns in rows.spreads(weight)))
    return units


def _add_rare(units, rare, deviation, half_range):
    """Columns of which a sample knows one number only: around that, in units of their deviation over all rows."""
    some = np.flatnonzero(rare & (deviation > 0))
    in_units = half_range[some] / deviation[some]
    units[1:, some] = deviation[some], 2 * in_units, in_units


def _with(bare, units):
    """The stage in units; of a clipped view the range is clipped, too."""
    center, unit, reach, half_range = units
    clipped = np.where(bare.kind == CLIPPED, half_range / np.hypot(1, half_range / CLIP), half_range)
    return replace(bare, center=center, unit=unit, reach=reach, half_range=clipped)


def _raw(bare, units):
    """The stage of columns as they are; in the place of a missing number is the centre of its column."""
    return replace(bare, fill=np.where(bare.kind == NUMBER, units[0], 0.0))


def _curves(plain, curved):
    """Of each curve its view of each plain one: as it is; and clipped, and in ranks, which come after all plain ones."""
    as_they_are = np.arange(len(plain))
    if not curved:
        return [as_they_are]
    column = np.array([j for j, *_ in plain])
    is_number = np.array([kind == NUMBER and knots is None for _, kind, _, knots in plain]) & np.isin(column, curved)
    place = len(plain) + np.searchsorted(curved, column)
    return [as_they_are, *(np.where(is_number, place + k * len(curved), as_they_are) for k in range(2))]
