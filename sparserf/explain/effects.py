"""A model as a sum of functions of one and of two inputs, as `plot.effects` draws it.

If every term is linear or depends on at most two inputs, the model is such a sum, and its functions
are those of the functional analysis of variance over a grid, each point of which weighs as many
rows as are near it. For any other model they are its additive approximation (`additive.py`). A
*part* is the tuple of the inputs of one function: (j,) is drawn as a curve or as bars of levels,
and (j, k) as a surface.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..expansion.terms import column_levels
from ..rows.few_values import FewValues
from .additive import approximate, frequent_levels, r_squared
from .evaluate import SeenTerms, column_of, decision_values, side_by_side

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .._base.types import DenseOrCSR
    from ..expansion import Expansion
    from .importances import Importances

    Part = tuple[int, ...]

# The largest number that can be drawn without overflow.
LARGEST = 1e100
# The number of levels of a category that are shown, the most frequent ones.
MOST_SHOWN = 12
# Rows count as near a point up to this share of an axis from it, the less the farther they are.
NEAR = 0.15


@dataclass(frozen=True, eq=False)
class Bar:
    """One bar of a category: a level, all levels that have no bar, unknown levels, or missing
    cells.

    label : the level; for bars of other kinds, what they are
    points : the indices in the grid of the points that the bar stands for
    """

    label: str
    points: np.ndarray


@dataclass(frozen=True, eq=False)
class Effects:
    """The functions of one and two inputs of a model, on grids and in rows.

    values : {part: its values}; of one input on its grid, of two on the points `shown` of both
        grids
    grids : {input: its points}; of numbers these are in ascending order, and NaN last if cells are
        missing in the rows; of a category the codes of all levels, -1 for unknown levels, and NaN
        if cells are missing
    shares : {input: the share of the rows at each point}, where rows between two points belong to
        both
    shown : {input: the indices of the points that surfaces have}: of the numbers, or of the most
        frequent levels, the largest effect first or in their own order
    levels : the levels of each column that is a category
    rows : the rows, as numbers
    at_rows : {part: its values in the rows}
    f : the decision values of the model in the rows
    is_exact : whether the parts add up to f
    """

    values: dict[Part, np.ndarray]
    grids: dict[int, np.ndarray]
    shares: dict[int, np.ndarray]
    shown: dict[int, np.ndarray]
    levels: Sequence[Sequence[Any] | None]
    rows: DenseOrCSR
    at_rows: dict[Part, np.ndarray]
    f: np.ndarray
    is_exact: bool

    @classmethod
    def from_model(
        cls,
        model: Expansion,
        X: DenseOrCSR,
        importance: np.ndarray,
        n_points: int,
        n_pairs: int,
        ordered: Collection[int] = (),
    ) -> Self:
        """Compute the parts of a model of one output, in rows of numbers X.

        importance : the importance of each column, by which an approximation chooses the columns
            that have functions
        ordered : the categories whose levels stay in their order
        """
        levels, seen = column_levels(model), SeenTerms(model)
        is_exact = all(term.is_linear or len(term.columns) <= 2 for term in seen.terms)
        grids = {j: grid_of(column_of(X, j), n_points, levels[j]) for j in seen.columns.tolist()}
        shares = {
            j: shares_of(column_of(X, j), grid, levels[j] is not None) for j, grid in grids.items()
        }
        f = decision_values(model, X)[0]
        if not is_exact:
            additive = approximate(model, X, f, importance, n_pairs)
            values = {
                part: additive.at(part, grid_points(grids, part))
                for part in additive.values
                if len(part) == 1
            }
            at_rows, pairs = additive.at_rows, additive.pairs
        else:
            values, at_rows = exact_parts(model, X, grids, shares)
            pairs = [part for part in values if len(part) == 2]
        shown = {}
        for j, grid in grids.items():
            if levels[j] is None:
                shown[j] = np.flatnonzero(~np.isnan(grid))
                continue
            codes = frequent_levels(column_of(X, j), levels[j], MOST_SHOWN).astype(np.intp)
            if j not in ordered and (j,) in values:
                codes = codes[np.argsort(-values[(j,)][codes], kind="stable")]
            shown[j] = codes
        for part in pairs:
            one, two = (shown[j] for j in part)
            if not is_exact:
                at = grid_points({j: grids[j][shown[j]] for j in part}, part)
                values[part] = additive.at(part, at).reshape(len(one), len(two))
            else:
                values[part] = values[part][np.ix_(one, two)]
        return cls(values, grids, shares, shown, levels, X, at_rows, f, is_exact)

    def choose(self, importances: Importances, n_parts: int, least: float) -> list[Part]:
        """Choose at most n_parts parts to show, the ones of the largest shares, at least `least`,
        or one; curves come first.

        The share of a curve is the importance of its input. The share of a surface is half of its
        mean size, which it adds to the Shapley values of both its inputs, but no more than the
        share of either input: it is chosen after them.
        """
        total = importances.value.sum() or 1.0
        rank = {
            (j,): float(importances.share[j])
            for j in importances.order.tolist()
            if (j,) in self.values
        }
        for pair in (part for part in self.values if len(part) == 2):
            size = np.abs(self.at_rows[pair] - self.at_rows[pair].mean()).mean()
            rank[pair] = min(size / 2 / total, *(importances.share[j] for j in pair))
        best = sorted(rank, key=lambda part: -rank[part])[:n_parts]
        return sorted([part for part in best if rank[part] >= least] or best[:1], key=len)

    def r2(self, parts: Sequence[Part]) -> float:
        """Return the share of the variance of f that some parts together account for."""
        return r_squared([self.at_rows[part] - self.at_rows[part].mean() for part in parts], self.f)

    def curve_of(self, other: Effects, j: int) -> np.ndarray:
        """Return the function of input j of another model, computed in the same rows, on the grid
        of this one."""
        values, levels, others = other.values.get((j,)), self.levels[j], other.levels[j]
        if (levels is None) != (others is None):
            raise ValueError(
                f"models must have the columns of model, got one to which column {j} is of another "
                "kind"
            )
        if values is None:  # the other model does not see it
            return np.zeros(len(self.grids[j]))
        if levels is None:
            return values
        place = {level: k for k, level in enumerate(others)}
        known = [place.get(level, len(others)) for level in levels]
        return values[[*known, *range(len(others), len(values))]]

    def bars(self, j: int) -> list[Bar]:
        """Return the bars of a category: the levels that are shown, then other levels, unknown ones
        and missing cells.

        There is a bar for unknown levels and for missing cells if the rows have any.
        """
        levels, share, last = self.levels[j], self.shares[j], len(self.shares[j]) - 1
        bars = [
            Bar(str(levels[k]) if k < len(levels) else "unknown", np.array([k]))
            for k in self.shown[j].tolist()
        ]
        others = np.setdiff1d(np.arange(len(levels)), self.shown[j])
        if len(others):
            bars.append(Bar(f"{len(others)} other{'s' * (len(others) > 1)}", others))
        if len(levels) and share[len(levels)] > 0:
            bars.append(Bar("unknown", np.array([len(levels)])))
        return bars + [Bar("missing", np.array([last]))] * (last > len(levels))

    def at_bars(self, j: int, bars: Sequence[Bar], curve: np.ndarray) -> np.ndarray:
        """Return the height of each bar: the mean of a function of input j over the points of the
        bar, weighted by rows."""
        share = self.shares[j]
        weights = [share[bar.points] if share[bar.points].any() else None for bar in bars]
        pairs = zip(bars, weights, strict=True)
        return np.array([np.average(curve[bar.points], weights=weight) for bar, weight in pairs])

    def density(self, part: Part) -> np.ndarray:
        """Return how many rows are near each point of a part, as a multiple of what is there if
        rows are spread evenly.

        The points are those `shown` of one or both inputs.
        """
        near = [self._nearness(j) for j in part]
        return near[0].mean(axis=1) if len(part) == 1 else near[0] @ near[1].T / self.rows.shape[0]

    def _nearness(self, j):
        """Return how near rows are to the points shown of an input, (n_points, n_rows), of mean 1
        if they are spread evenly."""
        x, at = column_of(self.rows, j).astype(np.float64), self.grids[j][self.shown[j]][:, None]
        if self.levels[j] is not None:
            return (x == at) * float(len(at))
        length = NEAR * np.ptp(at)
        if length == 0:
            return np.ones((len(at), len(x)))
        there = (x >= at.min()) & (x <= at.max())
        distance = np.abs(np.where(there, x, 0.0) - at) / length
        near = np.where(there, np.maximum(0.0, 1 - distance), 0.0)
        # what lies outside the axis
        beyond = np.maximum(0.0, 1 - np.minimum(at - at.min(), at.max() - at) / length)
        return near / (NEAR * (1 - beyond**2 / 2))


def exact_parts(
    model: Expansion, X: DenseOrCSR, grids: dict[int, np.ndarray], shares: dict[int, np.ndarray]
) -> tuple[dict[Part, np.ndarray], dict[Part, np.ndarray]]:
    """Return {part: its values on its grid} and {part: its values in the rows of X} of a model all
    of whose terms are linear or of at most two inputs.

    The means of surfaces along either side are moved into the functions of one input; in the rows
    they are interpolated.

    shares : {input: the weights of its points in these means}
    """
    sums, at_rows = _sums_of_terms(model, X, grids)
    parts, levels = {(j,): np.zeros(len(grid)) for j, grid in grids.items()}, column_levels(model)
    rows = {part: np.zeros(X.shape[0]) for part in parts}
    for part, values in sums.items():
        if len(part) == 1:
            parts[part] += values
            rows[part] += at_rows[part]
            continue
        curves = values @ shares[part[1]], shares[part[0]] @ values
        parts[part] = values - curves[0][:, None] - curves[1] + shares[part[0]] @ curves[0]
        rows[part] = at_rows[part]
        for j, curve in zip(part, curves, strict=True):
            parts[(j,)] += curve
            place = place_of(column_of(X, j), grids[j], levels[j] is not None)
            between = np.interp(place, np.arange(len(curve)), curve)
            rows[(j,)], rows[part] = rows[(j,)] + between, rows[part] - between
    for j in grids:
        parts[(j,)] -= shares[j] @ parts[(j,)]
    return parts, rows


def _sums_of_terms(model, X, grids):
    """Return {part: the sum of its terms on its grid}, and the same in the rows of X; a linear term
    counts in the parts of all its inputs, with the summand of each."""
    seen, coef = SeenTerms(model), np.ravel(model.coef)
    points, U = seen.encode(side_by_side(grids, model.n_features_in)), seen.encode(X)
    linear, on_grid, in_rows = np.zeros((1, points.shape[1])), {}, {}
    for term in seen.terms:
        c = coef[term.position]
        if term.is_linear:
            linear[:, term.encodings] += c * term.gain * term.weights
            continue
        part = tuple(term.columns.tolist())
        own = [each[: len(grids[j])] for j, each in zip(part, term.parts(points), strict=True)]
        known = own[0] if len(part) == 1 else term.combine.outer(*own)
        on_grid[part] = on_grid.get(part, 0.0) + c * term.at(known)
        known = term.combine.reduce(term.parts(U), axis=0)
        in_rows[part] = in_rows.get(part, 0.0) + c * term.at(known)
    if linear.any():
        of_points, of_rows = seen.by_column(linear, points)[0], seen.by_column(linear, U)[0]
        for k, j in enumerate(seen.columns.tolist()):
            on_grid[(j,)] = on_grid.get((j,), 0.0) + of_points[k, : len(grids[j])]
            in_rows[(j,)] = in_rows.get((j,), 0.0) + of_rows[k]
    return on_grid, in_rows


def grid_points(grids: dict[int, np.ndarray], part: Part) -> np.ndarray:
    """Return all points of the grid of a part, (n, 1 or 2), in the order in which its values are
    raveled."""
    axes = np.meshgrid(*(grids[j] for j in part), indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1)


def grid_of(values: np.ndarray, n_points: int, levels: Sequence[Any] | None = None) -> np.ndarray:
    """Return the grid of a column, as `Effects` has it; that of numbers has n_points from the 1st
    to the 99th percentile, or the values there where these are few, all of them if one is left."""
    if len(values) == 0:
        raise ValueError("X must have at least one row, got none")
    is_missing = np.isnan(values)
    if levels is not None:
        return np.concatenate([np.arange(len(levels)), [-1.0], [np.nan] * int(is_missing.any())])
    there = values[~is_missing] if not is_missing.all() else np.zeros(1)
    low, high = np.percentile(there.astype(np.float64), [1, 99])
    grid = np.linspace(low, high, n_points)
    most = min(n_points, max(2, len(there) // 2))
    few = FewValues.of_rows(there[:, None]).by_column(np.ones(1, bool), most).get(0, grid[:1])
    inside = few[(few >= low) & (few <= high)]
    if len(few) > 1:
        grid = inside if len(inside) > 1 else few
    if not np.abs(grid).max() < LARGEST:
        raise ValueError(
            f"X must be below {LARGEST:g} to be drawn, got a column that is not: scale it"
        )
    return np.append(grid, [np.nan] * int(is_missing.any()))


def place_of(x: np.ndarray, grid: np.ndarray, is_category: bool) -> np.ndarray:
    """Return where values lie in a grid, as an index; numbers between two points have a fraction,
    and those beyond an end."""
    last = len(grid) - 1
    if is_category:
        return np.where(np.isnan(x), last, np.where(x < 0, np.flatnonzero(grid == -1.0)[0], x))
    numbers = grid[~np.isnan(grid)]
    # in units near 1: between two of the smallest numbers a slope would overflow
    unit = -np.frexp(np.abs(numbers).max())[1]
    cells = np.ldexp(np.nan_to_num(x).astype(np.float64), unit)
    between = np.interp(cells, np.ldexp(numbers, unit), np.arange(len(numbers)))
    return np.where(np.isnan(x), last, between if np.ptp(numbers) > 0 else 0.0)


def shares_of(x: np.ndarray, grid: np.ndarray, is_category: bool) -> np.ndarray:
    """Return the share of the rows at each point of a grid; a row between two points is divided
    between them."""
    place = place_of(x, grid, is_category)
    low = place.astype(np.intp)
    part, n = place - low, len(grid)
    after = np.minimum(low + 1, n - 1)
    return (np.bincount(low, 1 - part, n) + np.bincount(after, part, n)) / len(x)
