"""A look at the rows of a table for groups and time order that a call has not spoken of.

Rows held out at random say too little of the error where rows come in groups or in time: each has
its like among the rows that are fitted. `warn_of_dependent_rows` warns where that seems to be so.
It looks at the residual of y, which a quadratic function of the columns, and waves of the seasons
of dates, leave, and asks two questions.

Do rows of one level of a column go together? They do where the residual of y is alike in rows of a
level, and not in rows of the next level, as for numbers of persons; of an effect of the column that
is smooth, next levels are alike as well.

Do rows that follow one another go together? They do where the residual of y is alike from one row
to the next, beyond a slow drift, and where the columns tell which rows are near in the order: the
nearest row by the columns is near in the order, too. So it is not enough that the table is sorted
by y. A table that is sorted by a column of fractions, such as a grid, is left alone.

Measured on 71 public tables that say nothing of groups or time and on 33 that do, in the order of
their authors. Something matters, below, where LightGBM has 1.2 times the loss with whole blocks of
rows, groups or levels held out instead of rows at random. `docs/groups.md` has the outcome.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from .._base.copies import copies_of
from .._base.deadline import time_left
from .._base.random import evenly
from .._base.threads import single_threaded_blas
from .._base.warnings import GroupedRowsWarning, warn
from ..columns.clocks import DATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .task import Task

# Fewer rows say too little; of more than MOST_ROWS, as many are looked at, in runs of RUN that
# follow one another; of more than MOST_COLUMNS columns and outputs so many, evenly spaced.
FEWEST_ROWS, MOST_ROWS, RUN, MOST_COLUMNS, MOST_OUTPUTS = 50, 10_000, 500, 200, 10
# The correlation of the residual of y from row to row: .33 and more in 30 of the 38 tables in which
# blocks or groups matter; at most .25 where they do not, but in one table of 132 rows and in tables
# sorted by y.
FOLLOWS = 0.3
# Its number of standard errors, and that of the difference between levels: by chance, 4 come in
# less than one of a hundred tables of 200 columns.
ERRORS = 4.0
# The share of rows whose nearest row, by the columns, is within a tenth of all rows in the order:
# .19 by chance, .17 to .27 in tables sorted by a number or a count, .40 and more in all but one of
# those with such a correlation in which order matters. QUERIES rows are asked.
NEAR_IN_ORDER, WITHIN, QUERIES = 0.33, 0.1, 500
# Rows are sorted by y where it rises, or falls, in this share of the steps; of labels where there
# are fewer changes than the share CHANGES of those in random order.
RISING, CHANGES = 0.95, 0.05
# Squared differences of the residual of y within a level, as a share of those between next levels:
# at most .61 in 23 of 25 tables in which levels matter, .82 or more where they do not, among those
# with a difference of 4 errors.
WITHIN_LEVEL = 2 / 3
# Squared differences between next levels, as a share of those between any rows. Less is a curve: a
# sine of a rounded column, that the quadratic function leaves, looks grouped without this.
NEXT_LEVEL = 0.6
# A column with levels has at least FEWEST_LEVELS, of at most MOST_IN_LEVEL rows in the mean: levels
# of more rows (the most that were seen to matter: 23) are categories, which new rows will have as
# well. A level of more than the share LARGE of the rows, such as 0, is left out: without this,
# counts and pixels look grouped. What remains must be the share MANY of all rows.
FEWEST_LEVELS, MOST_IN_LEVEL, LARGE, MANY = 20, 25, 0.05, 0.3
# Waves of the drift over the rows, and the ridge penalty, as a share of the number of rows.
WAVES, RIDGE = 5, 0.01
# Of dates, the lengths of seasons in days, and the number of waves of each: what y owes to them is
# in the columns, and no sign of an order.
SEASONS = ((365.2425, 3), (7.0, 3), (1.0, 2))
# Below this share of the squares of y the residual is what the penalty has shrunk.
NOTHING_LEFT = 0.01


class Dependence(NamedTuple):
    """What goes together: rows that follow one another, or those of a level of a column.

    column : the column of the levels; None: rows that follow one another
    levels : the number of levels
    rows : the mean number of rows of a level
    is_measured : whether the column holds measured numbers: they are no names of groups
    """

    column: int | None
    levels: int = 0
    rows: float = 0.0
    is_measured: bool = False


def warn_of_dependent_rows(task: Task) -> None:
    """Warn where rows look grouped or in time order, if they are dense and in memory, and there is
    time to look."""
    rows = task.raw
    if not rows.in_memory or rows.is_sparse or rows.n_rows < FEWEST_ROWS or time_left() == 0:
        return
    index = evenly_spaced_runs(rows.n_rows)
    table = None if task.encoder is None else task.encoder.table
    X = np.array(rows.array(index), np.float64)
    dates: Sequence[int] = ()
    is_category = np.zeros(X.shape[1], bool)
    if table is not None:
        is_category = np.array([levels is not None for levels in table.levels])
        X[:, is_category] = np.floor(X[:, is_category])  # as `target_encode` has them
        dates = [j for j, clock in table.clocks.items() if clock.kind == DATES]
    y = np.vstack(task.targets)[:, index]
    copies = copies_of(X, y.T, is_category)
    if copies is not None:  # which are held out together anyway
        first = np.sort(np.unique(copies, return_index=True)[1])
        X, y = X[first], y[:, first]
    y = y[evenly(len(y), MOST_OUTPUTS)]
    with single_threaded_blas():
        seen = detect_dependence(X, y, task.loss.is_classifier, dates)
    if seen is not None:
        warn(_message(seen, table), GroupedRowsWarning)


def _message(seen, table):
    """Return the sentence of a warning."""
    ends = (
        "; or say that they do not go together by "
        "warnings.simplefilter('ignore', sparserf.GroupedRowsWarning)"
    )
    if seen.column is None:
        return (
            "rows look ordered, in time or in groups: y is alike in rows that follow one another, "
            "beyond what X says, so that rows held out at random tell too little of the error on "
            "new ones: give groups=, or validation=TimeSeriesSplit(5) of scikit-learn" + ends
        )
    names = None if table is None else table.names
    name = repr(seen.column if names is None else names[seen.column])
    cells = f"X[:, {name}]" if names is None else f"X[{name}]"
    if seen.is_measured:
        return (
            f"rows of one value of the measured column {name} ({seen.levels} values of "
            f"{seen.rows:.3g} rows in the mean) are alike in y, and not those of the next value, "
            "so that rows held out at random tell too little of the error on other values: such "
            "rows may share what no column tells, a day, a place, a device: give that as groups=, "
            "or validation=" + ends
        )
    return (
        f"rows look grouped by column {name} ({seen.levels} levels of {seen.rows:.3g} rows in the "
        "mean): y is alike within a level, and not in the next, so that rows held out at random "
        f"tell too little of the error on other levels: give groups={cells}, or validation=" + ends
    )


def evenly_spaced_runs(n: int) -> np.ndarray:
    """Return the indices of the rows to look at, ascending: all, or runs, evenly spaced."""
    if n <= MOST_ROWS:
        return np.arange(n)
    starts = np.linspace(0, n - RUN, MOST_ROWS // RUN).astype(np.intp)
    return (starts[:, None] + np.arange(RUN)).ravel()


def detect_dependence(
    X: np.ndarray, y: np.ndarray, has_labels: bool = False, dates: Sequence[int] = ()
) -> Dependence | None:
    """Return by what rows depend on one another, or None.

    X : the rows, with NaN for missing cells, and the numbers of levels for categories
    y : the targets, (n_targets, n_rows); for labels one for each class
    dates : the columns of dates
    """
    there = np.flatnonzero(~np.isnan(X).all(axis=0))
    some = np.union1d(there[evenly(len(there), MOST_COLUMNS)], np.intersect1d(dates, there))
    columns = [Column.of_cells(X[:, j], int(j), j in dates) for j in some.astype(np.intp)]
    columns = [column for column in columns if len(column.counts) > 1]
    if not columns:
        return None
    ranks = np.stack([column.ranks() for column in columns], axis=1)
    if len(dates):
        ranks = np.hstack([ranks, seasons(X[:, list(dates)])])
    y = np.stack([y_k if has_labels else Column.of_cells(y_k).ranks() for y_k in y], axis=1)
    y = y - y.mean(axis=0)

    # Copies of a row say nothing, but that it weighs more.
    factors = np.random.default_rng(0).random(ranks.shape[1] + y.shape[1])
    _, first = np.unique(np.hstack([ranks, y]) @ factors, return_index=True)
    if len(first) < max(FEWEST_ROWS, len(y) / 2):
        return None
    if len(first) < len(y):
        first = np.sort(first)
        ranks, y = ranks[first], y[first]
        columns = [column.of_rows(first) for column in columns]

    residual = ridge_residual(y, ranks)
    ratios = [column.within_level_ratio(residual) for column in columns]
    alike = [k for k, ratio in enumerate(ratios) if ratio <= WITHIN_LEVEL]
    if alike:  # a column that may name groups comes first
        column = columns[min(alike, key=lambda k: (columns[k].is_measured, ratios[k]))]
        n_levels = len(column.counts)
        return Dependence(column.number, n_levels, len(residual) / n_levels, column.is_measured)
    if any(column.is_grid for column in columns):
        return None
    return Dependence(None) if is_autocorrelated(residual, y, ranks, has_labels) else None


@dataclass(frozen=True, eq=False)
class Column:
    """A column, by the places of its cells among their sorted values.

    place, counts : the place of each cell, and the number of cells at each place
    number : the index of the column in X
    is_measured : whether it has fractions, as numbers of groups have not
    is_grid : whether it has fractions that never fall, or never rise, from row to row
    """

    place: np.ndarray
    counts: np.ndarray
    number: int = 0
    is_measured: bool = False
    is_grid: bool = False

    @classmethod
    def of_cells(cls, cells: np.ndarray, number: int = 0, is_date: bool = False) -> Self:
        """Return the column of these numbers; those missing are at the median."""
        missing = np.isnan(cells)
        there = cells[~missing]
        is_measured = not is_date and bool((there != np.rint(there)).any())
        cells = np.where(missing, np.median(there), cells)
        place = np.searchsorted(np.unique(cells), cells)  # faster than an inverse
        counts = np.bincount(place)
        return cls(place, counts, number, is_measured, is_measured and rising(place) == 1)

    def of_rows(self, index: np.ndarray) -> Self:
        """Return the column of some of its rows."""
        place = self.place[index]
        counts = np.bincount(place, minlength=len(self.counts))
        is_there = counts > 0
        return replace(self, place=(np.cumsum(is_there) - 1)[place], counts=counts[is_there])

    def ranks(self) -> np.ndarray:
        """Return the ranks of the cells, the mean of those that are equal, in robust units: of mean
        0 and deviation 1."""
        ranks = (np.cumsum(self.counts) - (self.counts - 1) / 2)[self.place]
        return (ranks - ranks.mean()) / (ranks.std() or 1.0)

    def within_level_ratio(self, residual: np.ndarray) -> float:
        """Return the mean squared difference of the residual of y in rows of a level, over that in
        rows of next levels; infinity where that says nothing."""
        n, counts = len(residual), self.counts
        if not (FEWEST_LEVELS <= len(counts) < n <= MOST_IN_LEVEL * len(counts)):
            return np.inf
        order = np.random.default_rng(0).permutation(n)  # rows may be sorted by y
        order = order[np.argsort(self.place[order], kind="stable")]
        residual, level = residual[order], self.place[order]
        is_small = counts <= LARGE * n
        start, after = np.cumsum(counts) - counts, np.minimum(level + 1, len(counts) - 1)
        next_row = start[after] + (np.arange(n) - start[level]) % counts[after]
        alike = is_small[level]
        within = np.flatnonzero((level[1:] == level[:-1]) & alike[1:])
        between = (counts[level] > 1) & (level < after) & alike & is_small[after]
        if min(len(within), np.count_nonzero(between)) < MANY * n:
            return np.inf
        own = ((residual[within + 1] - residual[within]) ** 2).sum(axis=1)
        other = ((residual - residual[next_row]) ** 2).sum(axis=1)[between]
        gap = other.mean() - own.mean()
        error = np.sqrt(own.var() / len(own) + other.var() / len(other))
        is_curve = other.mean() < NEXT_LEVEL * 2 * (residual**2).sum(axis=1).mean()
        return np.inf if is_curve or gap <= ERRORS * error else own.mean() / other.mean()


def seasons(days: np.ndarray) -> np.ndarray:
    """Return waves of these columns of days, by the year, the week and the day; 0 where missing."""
    turns = np.hstack([days * (k / length) for length, most in SEASONS for k in range(1, most + 1)])
    angles = 2 * np.pi * (turns % 1)
    return np.nan_to_num(np.hstack([np.cos(angles), np.sin(angles)])) * np.sqrt(2)


def rising(values: np.ndarray) -> float:
    """Return the share of the steps from row to row in which values do not fall, or do not rise,
    whichever is more."""
    steps = np.diff(values)
    return max(float(np.mean(steps >= 0)), float(np.mean(steps <= 0)))


def ridge_residual(y: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Return what ridge regression on ranks, their squares and a slow drift over the rows leaves of
    y."""
    time = (np.arange(len(y)) + 0.5) / len(y)
    drift = np.sqrt(2) * np.cos(np.pi * np.arange(1, WAVES + 1) * time[:, None])
    Z = np.hstack([ranks, ranks**2, drift])
    Z -= Z.mean(axis=0)
    gram = Z.T @ Z
    gram[np.diag_indices_from(gram)] += RIDGE * len(y)
    return y - Z @ np.linalg.solve(gram, Z.T @ y)


def is_autocorrelated(
    residual: np.ndarray, y: np.ndarray, ranks: np.ndarray, has_labels: bool
) -> bool:
    """Return whether the residuals of rows that follow one another are alike.

    residual : of y
    """
    n, total = len(residual), (residual**2).sum()
    if total < NOTHING_LEFT * (y**2).sum() or is_sorted(y, has_labels):
        return False
    correlation = (residual[1:] * residual[:-1]).sum() / total
    if correlation < max(FOLLOWS, ERRORS / np.sqrt(n)):
        return False
    asked = evenly(n, QUERIES)
    distance = (ranks**2).sum(axis=1) - 2 * ranks[asked] @ ranks.T
    distance[np.arange(len(asked)), asked] = np.inf
    is_near = np.abs(distance.argmin(axis=1) - asked) <= WITHIN * n
    return bool(is_near.mean() >= NEAR_IN_ORDER)


def is_sorted(y: np.ndarray, has_labels: bool) -> bool:
    """Return whether rows are in the order of y, or labels in a few runs."""
    if not has_labels:
        return any(rising(y_k) >= RISING for y_k in y.T)
    label = y.argmax(axis=1) if y.shape[1] > 1 else y[:, 0]
    _, label, counts = np.unique(label, return_inverse=True, return_counts=True)
    by_chance = 1 - ((counts / len(label)) ** 2).sum()
    return bool(np.mean(label[1:] != label[:-1]) < CHANGES * by_chance)
