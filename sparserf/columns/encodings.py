"""The choice of encodings for the columns of a training table, with their centres and units.

It is made from a sample of the rows, and gives a `ColumnEncoder`: robust centres and units
(`robust_units`), ranks, the frequent levels of categories, and for categories of many levels the
mean of the target (`target_encode`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from .._base.deadline import fewer_in_time
from .._base.random import is_uniform, sample_rows
from .._base.splits import stratified_folds
from .clocks import DATES, DURATIONS
from .encoder import BEYOND_NUMBERS, LARGEST_NUMBER, ColumnEncoder
from .kinds import DAY, KINDS, LEVEL, MISSING, NUMBER, WEEK, YEAR, Encoding
from .table import UNKNOWN, label

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from .._base.types import DenseOrCSR
    from .constraints import Constraints
    from .table import Table

# The most rows, and the most numbers, in the sample from which encodings are chosen.
MOST_ROWS, MOST_NUMBERS = 2**14, 2**20
# The knots of a rank encoding are the quantiles at these shares of the weight: the middles of 64
# equal parts, and 0.001 from either end.
SHARES = np.concatenate([[1e-3], (np.arange(64) + 0.5) / 64, [1 - 1e-3]])
# Of an encoder with more numbers than this none are also encoded by their ranks.
MOST_RANKED = 200
# The number of folds of the training rows in which categories are encoded by the target.
N_FOLDS = 5


class NumericRows(Protocol):
    """The rows from which `fit_encoder` chooses encodings: their shape, samples, and spreads."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        ...

    @property
    def n_features_in(self) -> int:
        """The number of columns."""
        ...

    def array(self, index: np.ndarray | None = None) -> DenseOrCSR:
        """Return the rows of an index, or all rows, as an ndarray or CSR."""
        ...

    def spreads(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (the weighted standard deviation, half the range) of each column over all rows."""
        ...


def fit_encoder(
    rows: NumericRows,
    weight: np.ndarray,
    rng: np.random.Generator,
    *,
    table: Table | None = None,
    means: Mapping[int, tuple[np.ndarray, np.ndarray]] | None = None,
    is_scaled: bool = True,
    constraints: Constraints | None = None,
) -> ColumnEncoder:
    """Choose the encodings of dense rows, with centres and units, from all rows or a sample.

    Parameters
    ----------
    weight : ndarray of shape (n_rows,), positive
    table : Table or None
        The levels of categories. None: all columns are numbers.
    means : {column: (knots, scores)} or None
        The encodings of categories of many levels, by `target_encode`.
    is_scaled : bool
        Whether encodings are in robust units, or in the units of the columns.
    constraints : Constraints or None
        What the model may be in the columns. A category in which it must rise or fall is a number,
        and a number in which it must be convex or concave has no reach.
    """
    X, sample_weight = _sample(rows, weight, rng)
    means = {
        **(means or {}),
        **({} if constraints is None else _ordered_levels(X, sample_weight, table, constraints)),
    }
    plain = _plain_encodings(
        X, sample_weight, table, means, () if constraints is None else constraints.orders
    )
    is_straight = np.zeros(X.shape[1], bool) if constraints is None else constraints.curvature != 0

    unscaled = ColumnEncoder.from_encodings(plain, X.shape[1], table)
    center, unit, reach, half_range = _units(unscaled, X, sample_weight, rows, weight)
    is_time = np.isin(unscaled.column, [] if table is None else list(table.clocks)) & (
        unscaled.kind == NUMBER
    )
    if is_scaled:
        reach = np.where(is_straight[unscaled.column], np.inf, reach)
        units = {"center": center, "unit": unit, "reach": reach, "half_range": half_range}
        return _with_missing_levels(replace(unscaled, **units), X)
    # A missing number is encoded as the centre of its column. Days are counted from their centre,
    # not from 1970.
    fill = np.where((unscaled.kind == NUMBER) & ~is_time, center, 0.0)
    in_own_units = replace(unscaled, fill=fill, center=np.where(is_time, center, 0.0))
    return _with_missing_levels(in_own_units, X)


def fit_rank_encoder(
    rows: NumericRows,
    weight: np.ndarray,
    rng: np.random.Generator,
    plain: ColumnEncoder,
    constraints: Constraints | None = None,
) -> tuple[ColumnEncoder, np.ndarray]:
    """Encode the numbers of dense rows by their ranks; return (the encoder of the ranks, the place
    in `plain` of the number that each ranks).

    Columns in which the model must be convex or concave are not ranked, nor those of fewer than 3
    different numbers, whose ranks would be the numbers in other units. If more than MOST_RANKED
    columns remain, none is.

    Arguments as in `fit_encoder`, whose result is `plain`.
    """
    X, sample_weight = _sample(rows, weight, rng)
    is_number = (plain.kind == NUMBER) & (np.diff(plain.first_knot) == 0)
    if constraints is not None:
        is_number &= constraints.curvature[plain.column] == 0
    numbers = np.flatnonzero(is_number)
    if len(numbers) > MOST_RANKED:
        numbers = numbers[:0]
    columns = (X[:, j] for j in plain.column[numbers])
    is_varied = [len(np.unique(x[~np.isnan(x)])) >= 3 for x in columns]
    numbers = numbers[np.array(is_varied, bool)]
    ranks = [
        Encoding(j, NUMBER, 0, _ranks(X[:, j], sample_weight))
        for j in plain.column[numbers].tolist()
    ]
    unscaled = ColumnEncoder.from_encodings(ranks, X.shape[1], plain.table)
    center, unit, reach, half_range = _units(unscaled, X, sample_weight, rows, weight)
    return (
        replace(unscaled, center=center, unit=unit, reach=reach, half_range=half_range),
        numbers,
    )


def fit_interval_encoder(
    rows: NumericRows,
    weight: np.ndarray,
    rng: np.random.Generator,
    *,
    table: Table | None = None,
    constraints: Constraints | None = None,
) -> ColumnEncoder:
    """Encode the columns of dense rows for features that ask in which interval a column lies.

    Numbers are encoded as they are. The levels of a category are numbered by how frequent they are,
    the most frequent first, or in their order where the model must rise or fall in the category; a
    new level counts as the most frequent, or as the median of the order. A column with missing
    cells has two encodings, in which these cells lie below and above all numbers, so that an
    interval can have them on either side or leave them out. In cosines of angles they lie below. In
    a column without missing cells, one in a new row counts as a new level, or as the median.

    Arguments as in `fit_encoder`.
    """
    X, sample_weight = _sample(rows, weight, rng)
    knots = {} if constraints is None else _ordered_levels(X, sample_weight, table, constraints)
    encodings, medians = [], weighted_quantile(X, sample_weight, 0.5).tolist()
    has_missing = np.isnan(X).any(axis=0).tolist()
    for j in range(X.shape[1]):
        levels = None if table is None else table.levels[j]
        if not has_missing[j] and levels is None and (table is None or j not in table.clocks):
            encodings.append(Encoding(j, NUMBER, fill=medians[j]))
            continue
        there = ~np.isnan(X[:, j])
        if levels is not None and j not in knots:
            codes = X[there, j].astype(np.intp)
            share = np.bincount(codes[codes >= 0], sample_weight[there][codes >= 0], len(levels))
            rank = np.argsort(np.argsort(-share, kind="stable")).astype(np.float64)
            knots[j] = np.append(UNKNOWN, np.arange(len(levels))), np.append(0.0, rank)
        if not there.all() and np.abs(X[there, j]).max(initial=0.0) >= LARGEST_NUMBER:
            where = label(None if table is None else table.names, j)
            raise ValueError(
                f"X must have numbers below {LARGEST_NUMBER:g} in size in {where}, which has "
                f"missing cells, got {X[there, j][np.abs(X[there, j]).argmax()]:g}"
            )
        below = 0.0 if there.all() else -BEYOND_NUMBERS
        if there.all():
            middle = medians[j]
            if j in knots:
                _, (middle, *_) = knots[j]
            encodings.append(Encoding(j, NUMBER, 0, knots.get(j), fill=float(middle)))
        else:
            fills = -BEYOND_NUMBERS, BEYOND_NUMBERS
            encodings += [Encoding(j, NUMBER, 0, knots.get(j), fill=fill) for fill in fills]
        if table is not None and j in table.clocks:
            encodings += _angles(j, X[:, j], sample_weight, table.clocks[j], below)
    encoder = ColumnEncoder.from_encodings(encodings, X.shape[1], table)
    return replace(encoder, fill=np.array([each.fill for each in encodings]))


def _sample(rows, weight, rng):
    """Return (rows, their weights): all rows, or a sample if there are too many."""
    n = min(MOST_ROWS, max(2, MOST_NUMBERS // rows.n_features_in))
    seconds_per_number = 5e-7  # about what choosing encodings takes
    n = fewer_in_time(n, 500, seconds_per_number * n * rows.n_features_in)
    if rows.n_rows <= n:
        return rows.array(), weight
    index, weight = sample_rows(weight, n, rng)
    return rows.array(index), weight.astype(np.float64)


def _ordered_levels(X, weight, table, constraints):
    """Return the encodings {column: (knots, scores)} of ordered categories by their order.

    A level that no training row has gets the median.
    """
    encodings = {}
    for j in constraints.orders:
        ranks = constraints.ranks(j, table.levels[j])
        there = ~np.isnan(X[:, j])
        of_rows = ranks[X[there, j].astype(np.intp)]
        median = weighted_quantile(of_rows[:, None], weight[there], 0.5)[0] if len(of_rows) else 0.0
        encodings[j] = np.append(UNKNOWN, np.arange(len(ranks))), np.append(median, ranks)
    return encodings


def _plain_encodings(X, weight, table, means, ordered):
    """Return the encodings of each column in turn.

    A column has its number or target mean, its frequent levels, and whether the cell is missing. A
    category in `ordered` has only the place in the order of its levels. A time also has the cosines
    and sines of its angles. A new level counts as the most frequent level, but beside a target mean
    as none.
    """
    encodings, has_missing = [], np.isnan(X).any(axis=0).tolist()
    for j in range(X.shape[1]):
        levels = None if table is None else table.levels[j]
        if levels is None or j in means:
            encodings.append(Encoding(j, NUMBER, 0, means.get(j)))
        if levels and j not in ordered:
            frequent, mode = frequent_levels(X[:, j], weight)
            if not len(frequent) and mode >= 0 and j not in means:  # no column is left out
                frequent = [mode]
            encodings += [
                Encoding(j, LEVEL, k, None if j in means else ([UNKNOWN], [float(k == mode)]))
                for k in frequent
            ]
        if table is not None and j in table.clocks:
            encodings += _angles(j, X[:, j], weight, table.clocks[j])
        if has_missing[j]:
            encodings.append(Encoding(j, MISSING))
    return encodings


def _with_missing_levels(encoder, X):
    """Return the encoder in which a missing cell of a category counts as a new level, or, where
    training rows miss some, as none of its levels."""
    levels = np.flatnonzero((encoder.kind == LEVEL) & (np.diff(encoder.first_knot) > 0))
    new, fill = encoder.scores[encoder.first_knot[levels]], encoder.fill.copy()
    raw = np.where(np.isnan(X).any(axis=0)[encoder.column[levels]], 0.0, new)
    unit = encoder.unit[levels]
    fill[levels] = np.divide(
        raw - encoder.center[levels], unit, out=np.zeros(len(levels)), where=unit > 0
    )
    return replace(encoder, fill=fill)


def frequent_levels(codes: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, int]:
    """Return (the levels that get an indicator, the most frequent level).

    At most 24 levels do, each of which at least 1 % of the rows have. Of two levels without missing
    cells one does. A category with further levels is encoded by the mean of the target as well
    (`target_encode`).
    """
    there = ~np.isnan(codes)
    share = np.bincount(np.floor(codes[there]).astype(np.intp), weight[there]) / weight.sum()
    if not len(share):
        return np.zeros(0, np.intp), -1
    order = np.argsort(-share, kind="stable")
    frequent = np.sort(order[:24])
    frequent = frequent[share[frequent] >= 0.01]
    is_enough = there.all() and len(frequent) == 2 == len(share)
    return frequent[1:] if is_enough else frequent, int(order[0])


def _angles(j, x, weight, clock, fill=0.0):
    """Return the cosine and the sine of each angle of a column j of times: the angles in the
    periods that the column covers and varies in.

    A column covers a period if it has as many days from the first to the last as the period, or two
    for the time of day: within a part of a period, the angle says no more than the number. Times of
    day need cover no period, since the end of a day is near its start. Only whole days count in a
    week and a year: Mondays at different hours do not vary in the week.

    fill : the encoding of missing cells
    """
    least_spread = 1e-3  # 1 less the length of the mean of the unit vectors at the angles
    there = ~np.isnan(x)
    x, weight = x[there], weight[there]
    if clock.kind == DURATIONS or not len(x):
        return []
    encodings, n_days = [], np.floor(x.max()) - np.floor(x.min()) + 1
    for kind in (YEAR, WEEK, DAY) if clock.kind == DATES else (DAY,):
        turn = KINDS[kind].turn
        period = 2 * np.pi / turn
        phase = turn * (x if kind == DAY else np.floor(x))
        spread = 1 - abs(weight @ np.exp(1j * phase)) / weight.sum()
        if spread >= least_spread and (clock.kind != DATES or n_days >= max(2, np.floor(period))):
            encodings += [Encoding(j, kind, part * period / 4, fill=fill) for part in (0, 1)]
    return encodings


def _ranks(x, weight):
    """Return the weighted quantiles of a column and their normal scores, as (knots, scores).

    Equal quantiles become one knot with the mean of their scores.
    """
    there = ~np.isnan(x)
    order = np.argsort(x[there], kind="stable")
    total = weight[there][order].cumsum()
    place = np.minimum(np.searchsorted(total, total[-1] * SHARES * (1 - 1e-12)), len(order) - 1)
    knots, same = np.unique(x[there][order][place].astype(np.float64), return_inverse=True)
    return knots, np.bincount(same, normal_scores()) / np.bincount(same)


@cache
def normal_scores() -> np.ndarray:
    """Return the quantiles of the standard normal distribution at SHARES."""
    from statistics import NormalDist  # slow to import

    return np.array([NormalDist().inv_cdf(share) for share in SHARES])


def _units(unscaled, X, sample_weight, rows, weight):
    """Return (center, unit, reach, half range) of each encoding of an encoder without units.

    The cosine and the sine of an angle have the unit that they have where all angles are equally
    frequent, so that they stay on a circle.
    """
    kind, encoded = unscaled.kind, unscaled.transform(X)
    encoded[np.isnan(X[:, unscaled.column]) & (kind == NUMBER)] = np.nan
    units = robust_units(encoded, sample_weight)
    rare = (units[1] == 0) & (kind == NUMBER) & (np.diff(unscaled.first_knot) == 0)
    if rare.any() and len(X) < rows.n_rows:
        # Columns that are constant in the sample are centred at that constant, in units of their
        # deviation over all rows.
        deviation, half_range = (of_columns[unscaled.column] for of_columns in rows.spreads(weight))
        varies = np.flatnonzero(rare & (deviation > 0))
        in_units = half_range[varies] / deviation[varies]
        units[1:, varies] = deviation[varies], 2 * in_units, in_units
    units[:, unscaled.turn > 0] = np.array([0.0, 0.5**0.5, np.inf, 2.0**0.5])[:, None]
    return units


def robust_units(X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return (center, unit, reach, half range) of each column, as for a `ColumnEncoder`.

    A few outliers hardly change them; NaN, and rows of weight zero, do not. Time O(n_rows log
    n_rows) a column.
    """
    answers = np.zeros((4, X.shape[1]))
    size = max(1, 2**17 // max(1, len(X)))
    for start in range(0, X.shape[1], size):
        columns = slice(start, start + size)
        answers[:, columns] = _robust_units(X[:, columns], weight)
    for j in np.flatnonzero(np.isnan(answers[0])):
        there = ~np.isnan(X[:, j])
        answers[:, j] = (
            _robust_units(X[there, j : j + 1], weight[there])[:, 0] if there.any() else 0.0
        )
    return answers


@np.errstate(invalid="ignore")  # a column with NaN has NaN in its results
def _robust_units(X, weight):
    """Return the `robust_units` of a few columns at once, and NaN for a column with NaN."""
    # For the unit, numbers are clipped at this many median distances from the median, where
    # distances of 0 are left out: 6.7 standard deviations of a normal distribution.
    far = 10.0
    # The share of the rows that may lie beyond the reach of an encoding, and at least 1.5 rows.
    wild, fewest_wild = 1e-3, 1.5
    # The reach is at most this many median distances: the square of a larger number may overflow.
    farthest = 1e280
    # A column whose standard deviation is less than some roundings of its numbers is constant.
    rounding = 16.0 * np.finfo(X.dtype).eps
    X = np.array(X, np.float64, order="C")  # sums in another order have other bits
    # no difference overflows
    down = np.where(np.frexp(np.abs(X).max(axis=0))[1] > 1000, 2.0**-30, 1.0)
    X *= down
    median = weighted_quantile(X, weight, 0.5)
    X -= median
    distance = np.abs(X)
    near = weighted_quantile(distance, weight, 0.5, first=(distance == 0).sum(axis=0))
    varies = near > 0
    unit = np.where(varies, near, 1.0)
    reached = weighted_quantile(distance, weight, 1 - max(wild, fewest_wild / len(X)))
    end = np.maximum(far * near, reached)
    with np.errstate(over="ignore"):
        end = np.minimum(end / unit, farthest)
        X /= unit
    share, less = weight / weight.sum(), np.clip(X, -far, far)
    mean = share @ less
    deviation = np.sqrt(share @ (less - mean) ** 2)
    varies &= deviation > rounding * (np.abs(median) / unit + far)
    inside = np.clip(X, -end, end)
    per_deviation = np.divide(1.0, deviation, out=np.zeros_like(mean), where=varies)
    half_range = (inside.max(axis=0) - inside.min(axis=0)) / 2 * per_deviation
    center, unit = (median + near * mean) / down, near * deviation / down * varies
    return np.stack([center, unit, (end + np.abs(mean)) * per_deviation, half_range])


def weighted_quantile(
    X: np.ndarray, weight: np.ndarray, share: float, first: int | np.ndarray = 0
) -> np.ndarray:
    """Return the least entry of each column with this share of the weight at or below it.

    first : how many of the least entries of each column are left out
    """
    if is_uniform(weight):
        place = first + np.ceil((len(X) - first) * share * (1 - 1e-12)).astype(np.intp) - 1
        place = np.broadcast_to(np.maximum(place, 0), X.shape[1:])[None]
        return np.take_along_axis(np.sort(X, axis=0), place, axis=0)[0]
    order = np.argsort(X, axis=0, kind="stable")
    total = np.where(np.arange(len(X))[:, None] < first, 0.0, weight[order]).cumsum(axis=0)
    place = (total < total[-1] * share * (1 - 1e-12)).sum(axis=0)[None]
    return np.take_along_axis(X, np.take_along_axis(order, place, axis=0), axis=0)[0]


def target_encode(
    X: np.ndarray,
    table: Table,
    targets: Sequence[np.ndarray],
    weight: np.ndarray,
    rng: np.random.Generator,
    groups: np.ndarray | None = None,
    ordered: Collection[int] = (),
) -> tuple[np.ndarray, dict[int, tuple[np.ndarray, np.ndarray]]]:
    """Encode categories of many levels by the mean of the target in each level.

    Return (X, {column: (knots, scores)}).

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        The rows as numbers: level k of a category is k.
    targets : list of ndarray of shape (n_rows,) or (n_outputs, n_rows)
        The targets. Means are taken of the target that varies most.
    groups : ndarray of shape (n_rows,) or None
        The number of the group of each row, or of its copies. Rows of a group are in one fold.
    ordered : collection of int
        Categories that are encoded by the order of their levels, and not here.

    Notes
    -----
    At prediction level k is encoded by the mean over all training rows of that level. So that its
    own target does not leak into it, a training row is encoded by the mean over the rows of its
    level in the other folds. The returned X has that mean as a number between two levels, k + 1/4 +
    t / 4 in place of k: t is the position of the mean between the least (0) and the largest (1) of
    all these means.
    """
    y = max(np.vstack(targets), key=np.var)
    means = {}
    for j, levels in enumerate(table.levels):
        if not levels or j in ordered:
            continue
        frequent, _ = frequent_levels(X[:, j], weight)
        if len(frequent) < len(levels) - 1:
            X = X if means else X.astype(np.float64)
            X[:, j], means[j] = _target_encode_column(X[:, j], len(levels), y, weight, rng, groups)
    return X, means


def _target_encode_column(codes, n_levels, y, weight, rng, groups):
    """Return (codes of the training rows, (knots, scores)) of a column, as `target_encode` does."""
    there = np.flatnonzero(~np.isnan(codes))
    level, y, weight = codes[there].astype(np.intp), y[there], weight[there]
    fold = _draw_folds(there, rng, groups)
    unit = np.abs(y).max(initial=0.0) or 1.0  # no square over- or underflows
    sums = [
        np.bincount(fold * n_levels + level, part, N_FOLDS * n_levels).reshape(N_FOLDS, -1)
        for part in (weight, weight * (y / unit))
    ]
    count, total = (of_folds.sum(axis=0) for of_folds in sums)
    prior = _prior(count, total, weight, y / unit, level)
    of_all = _shrunken_means(count, total, *prior)
    of_others = _shrunken_means(count - sums[0], total - sums[1], *prior)
    mean = of_others[fold, level]
    low, high = mean.min(initial=prior[0]), mean.max(initial=prior[0])
    # The means are equal, as where each level has one row, about which other rows say nothing.
    if high - low <= 1e-12:
        low = high = prior[0]
        mean, of_all = np.full(len(mean), prior[0]), np.full(n_levels, prior[0])
    encoded = codes.copy()
    encoded[there] = level + 0.25 + (mean - low) / ((high - low) or 1.0) / 4
    knots = (np.arange(n_levels)[:, None] + [0, 0.25, 0.5]).ravel()
    scores = np.stack([of_all, np.full(n_levels, low), np.full(n_levels, high)], axis=1).ravel()
    return encoded, (np.append(-1.0, knots), unit * np.append(prior[0], scores))


def _draw_folds(rows, rng, groups):
    """Draw the fold of each row, one of at most N_FOLDS; groups stay whole."""
    if groups is None or not len(rows):
        return rng.permutation(len(rows)) % N_FOLDS
    groups = groups[rows]
    n_folds = min(N_FOLDS, len(np.unique(groups)))
    return stratified_folds(np.zeros(len(rows), np.intp), n_folds, rng, groups)


def _prior(count, total, weight, y, level):
    """Return (the mean over all rows, the number of rows as which it enters the mean of a level).

    The number is the variance within levels divided by that between them, clipped to [1, 1000].
    """
    whole = max(count.sum(), 1e-300)
    mean = total.sum() / whole
    means = total / np.maximum(count, 1e-300)
    within = weight @ (y - means[level]) ** 2 / whole
    between = count @ (means - mean) ** 2 / whole - within * len(count) / whole
    return mean, float(np.clip(within / max(between, 1e-3 * within, 1e-300), 1.0, 1e3))


def _shrunken_means(count, total, mean, n_more):
    """Return the means of the levels as if each had n_more further rows, of the mean of all
    rows."""
    return (total + n_more * mean) / (count + n_more)
