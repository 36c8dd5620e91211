"""Whether a model is monotone in a column over a box: proved, refuted by two rows, or open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from .._base.deadline import check_time_limit, limits_time, now, share_of_time, time_left
from .._base.screen import folded
from .._base.threads import single_threaded_blas
from ..columns.places import find_column
from ..expansion.box import read_box
from ..expansion.outputs import of_output
from ..expansion.terms import column_levels, column_names
from ..explain.evaluate import decision_values
from .bounds import PartialSum, describe_row, separable_parts
from .search import MOST_KEPT, SMALLEST, derivatives, size_of_batch
from .steps import falls_at_steps

if TYPE_CHECKING:
    from ..expansion import Expansion
    from ..expansion.box import BoxLike

# The number of lines of the box along which f is looked at for a fall.
LINES = 512
# The number of points on each line.
POINTS = 33
# The pairs of points that are looked at exactly, those that fall most.
MOST_PAIRS = 8


class Pair(NamedTuple):
    """Two rows that differ in one column, and the values of f there.

    low, high : dict
        The rows with the lower and the higher number, {name of a column, or index: cell}.
    f_low, f_high : float
    """

    low: dict[str | int, Any]
    high: dict[str | int, Any]
    f_low: float
    f_high: float


@dataclass(frozen=True, eq=False)
class Monotonicity:
    """Whether f is monotone in a column. Made by `SparseModel.is_monotone`; true where that is
    proved; prints as text.

    Attributes
    ----------
    status : {"proved", "refuted", "open"}
        "proved" : f rises (sign 1) or falls (sign -1) with the column, or stays as it is,
        everywhere in the box. "refuted" : it does not, as `pairs` shows. "open" : neither was shown
        within the time.
    column : str
        The name of the column.
    sign : 1, -1 or None
        The sign that was asked for or, where that was None, the one that was proved or may be; None
        where there is none.
    pairs : tuple of Pair
        Two rows between which f moves against the sign; where no sign was asked for, one where f
        falls and one where it rises.
    open_share : float
        The share of the box on which nothing is proved, in the coordinates of the proof (of
        numbers, the encodings); along a column that takes few values, the share of the steps from
        one to the next.
    n_boxes : int
        The number of boxes that were looked at.
    """

    status: Literal["proved", "refuted", "open"]
    column: str
    sign: int | None
    pairs: tuple[Pair, ...] = ()
    open_share: float = 0.0
    n_boxes: int = 0

    def __bool__(self) -> bool:
        return self.status == "proved"

    def __str__(self) -> str:
        word = {1: "rises", -1: "falls", None: "is monotone"}[self.sign]
        if self.status == "open":
            return (
                f"open whether f {word} with {self.column}: nothing is proved on "
                f"{100 * self.open_share:.3g} % of the box"
            )
        that = "that " if self.status == "refuted" else ""
        lines = [f"{self.status}: {that}f {word} with {self.column} over the box"]
        for pair in self.pairs:
            lines += [
                f"  f = {f:.6g} at {describe_row(row)}"
                for f, row in ((pair.f_low, pair.low), (pair.f_high, pair.high))
            ]
        return folded("\n".join(lines), 4)

    __repr__ = __str__


def is_monotone(
    model: Expansion,
    column: str | int,
    box: BoxLike | None,
    sign: int | None,
    time_limit: float | None,
    output: object,
) -> Monotonicity:
    """Tell whether a model is monotone in a column: see `SparseModel.is_monotone`."""
    j = find_column("column", column, column_names(model), model.n_features_in)
    name, deadline = str(column_names(model)[j]), check_time_limit(time_limit)
    if isinstance(sign, bool) or sign not in (None, 1, -1):
        raise ValueError(f"sign must be 1, -1 or None, got {sign!r}")
    if column_levels(model)[j] is not None:
        raise ValueError(f"column must be a column of numbers, got {name!r}, which is a category")
    one, box = of_output(model, output, every_term=True), read_box(model, box)
    with single_threaded_blas(), limits_time(deadline):
        part = next(
            (part for part in separable_parts(one, box, j)[0] if j in part.space.columns), None
        )
        a = None if part is None else _axis_of(part.space, j, j in box.levels)
        if a is None or len(part.space.along(a, 2)) < 2:
            return Monotonicity("proved", name, 1 if sign is None else sign)
        pairs = {s: _find_pair(one, part, a, s) for s in ((1, -1) if sign is None else (sign,))}
        against = [pair for pair in pairs.values() if pair is not None]
        if len(against) == len(pairs):
            return Monotonicity("refuted", name, sign, tuple(against))
        prove = _prove_along_values if j in box.levels else _prove
        tried = next(s for s, pair in pairs.items() if pair is None)
        found = prove(one, box, part, a, tried, name, pairs.get(-tried))
        # f does not rise: it may fall
        if sign is None and found.status == "refuted" and found.sign is not None:
            return prove(one, box, part, a, -tried, name, found.pairs[0])
        return found


def _axis_of(space, j, is_table):
    """Return the coordinate along which the numbers of a column move; None where they do not."""
    axes = [a for a, k in enumerate(space.columns) if k == j and space.is_table[a] == is_table]
    return axes[0] if axes else None


def _rises_by_signs(part, a, sign):
    """Return whether every term times the sign rises with coordinate a of a part, by its weights
    alone."""
    space, inputs = part.space, np.flatnonzero(part.space.axis == a)
    shape = space.geometry(space.low[None], space.high[None])
    total = part.total if sign > 0 else part.negative
    return bool((shape.flat[0, inputs] >= 0).all()) and total.rises(inputs)


def _prove_along_values(model, box, part, a, sign, name, other):
    """Prove that f times the sign rises from each value of a column that takes few to the next:
    arguments as in `_prove`."""
    j, values = part.space.columns[a], box.levels[part.space.columns[a]]
    ends = np.nanmin(values), np.nanmax(values)
    is_here, rest = np.arange(len(box.low)) == j, {k: v for k, v in box.levels.items() if k != j}
    low, high = np.where(is_here, ends[0], box.low), np.where(is_here, ends[1], box.high)
    between = PartialSum(model, replace(box, low=low, high=high, levels=rest), part.terms, j)
    along = _axis_of(between.space, j, False)
    if along is None or _rises_by_signs(between, along, sign):
        return Monotonicity("proved", name, sign, n_boxes=1)
    n_steps, n_open, n_boxes = len(values) - 1 - int(np.isnan(values).any()), 0, 0
    for k, (step, space, search) in enumerate(falls_at_steps(model, box, part.terms, j, sign)):
        with limits_time(share_of_time(now() + time_left(), 1 / (n_steps - k))):
            found = search.maximize(0.0)
        n_boxes, n_open = n_boxes + found.n_boxes, n_open + (found.upper > 0)
        rows = np.repeat(space.row(search.z)[None], 2, axis=0)
        rows[:, j] = step
        pair = _fall(model, part, rows[None], sign) if search.best > 0 else None
        if pair is not None:
            return _refuted(name, sign, pair, other, n_boxes)
    if n_open:
        return Monotonicity("open", name, sign, open_share=n_open / n_steps, n_boxes=n_boxes)
    return Monotonicity("proved", name, sign, n_boxes=n_boxes)


def _refuted(name, sign, pair, other, n_boxes):
    """Return that f times the sign falls between a pair; other : as in `_prove`."""
    pairs, sign = ((pair,), sign) if other is None else ((pair, other), None)
    return Monotonicity("refuted", name, sign, pairs, n_boxes=n_boxes)


def _prove(model, box, part, a, sign, name, other):
    """Prove that f times the sign rises with coordinate a of a part, on parts of the box where that
    can be told.

    other : a pair between which f moves with the sign, where that was not asked for: f falling
        somewhere then refutes all
    """
    total, space = part.total if sign > 0 else part.negative, part.space
    low, high, n_boxes = space.low[None].copy(), space.high[None].copy(), 1
    inputs = np.flatnonzero(space.axis == a)
    if _rises_by_signs(part, a, sign):
        return Monotonicity("proved", name, sign, n_boxes=n_boxes)
    influence = total.coupling(inputs) + 1e-300
    size = size_of_batch(total)
    whole, stuck = space.high - space.low + space.is_table, 0.0
    least = np.full(1, -np.inf)
    while len(low) and time_left() > 0 and len(low) < MOST_KEPT:
        place = np.argsort(least, kind="stable")
        first, rest = place[:size], place[size:]
        first_low, first_high = low[first], high[first]
        shape = space.geometry(first_low, first_high)
        relaxed = total.relax(shape.mid, shape.rad)
        at_least = derivatives(total, relaxed, shape, space.membership)[0][:, a]
        n_boxes += len(first)
        is_open = ~(at_least >= 0)  # also where a derivative overflows
        worst = np.argsort(at_least, kind="stable")[:MOST_PAIRS]
        ends = [first_low[worst] + (first_high[worst] - first_low[worst]) / 2 for _ in range(2)]
        for Z, end in zip(ends, (first_low, first_high), strict=True):
            Z[:, space.is_table] = first_low[worst][:, space.is_table]
            Z[:, a] = end[worst, a]
        pair = _fall(model, part, _rows(space, *ends), sign)
        if pair is not None:
            return _refuted(name, sign, pair, other, n_boxes)
        blame = (shape.rad * influence) @ space.membership
        width = first_high - first_low
        blame[width <= SMALLEST * np.maximum(np.abs(first_low), np.abs(first_high))] = -1.0
        can_halve = blame.max(axis=1) >= 0
        is_stuck = is_open & ~can_halve
        stuck += _volume(first_low[is_stuck], first_high[is_stuck], space, whole)
        is_open &= can_halve
        halves = space.halve(first_low[is_open], first_high[is_open], blame[is_open].argmax(axis=1))
        low, high = np.concatenate([low[rest], halves[0]]), np.concatenate([high[rest], halves[1]])
        least = np.concatenate([least[rest], np.tile(at_least[is_open], 2)])
    share = stuck + _volume(low, high, space, whole)
    if len(low) or stuck:
        return Monotonicity("open", name, sign, open_share=min(share, 1.0), n_boxes=n_boxes)
    return Monotonicity("proved", name, sign, n_boxes=n_boxes)


def _volume(low, high, space, whole):
    """Return the share of the box that some boxes are."""
    parts = np.divide(high - low + space.is_table, whole, out=np.ones_like(low), where=whole > 0)
    return float(parts.prod(axis=1).sum())


def _find_pair(model, part, a, sign):
    """Return a pair of rows between which f times the sign falls as coordinate a rises, or None:
    along lines of the box."""
    space, total = part.space, part.total
    n, along = min(LINES, 4 * size_of_batch(total)), space.along(a, POINTS)
    Z = np.repeat(space.random(np.random.default_rng(0), n)[:, None], len(along), axis=1)
    Z[:, :, a] = along
    f = sign * total.values(space.inputs(Z.reshape(n * len(along), -1))).reshape(n, len(along))
    before = np.maximum.accumulate(f, axis=1)
    worst = np.argsort((f - before).min(axis=1), kind="stable")[:MOST_PAIRS]
    last = (f - before)[worst].argmin(axis=1)
    first = np.array([f[i, : k + 1].argmax() for i, k in zip(worst, last, strict=True)])
    return _fall(model, part, _rows(space, Z[worst, first], Z[worst, last]), sign)


def _rows(space, low, high):
    """Yield the two rows of each pair of points."""
    for one, two in zip(low, high, strict=True):
        yield np.stack([space.row(one), space.row(two)])


def _fall(model, part, pairs, sign):
    """Return the first pair of rows between which f times the sign falls, for all that rounding may
    do, or None."""
    for rows in pairs:
        U = part.space.inputs_of_rows(rows)
        least, largest = part.least_at(U), part.largest_at(U)
        if not (least[0] > largest[1] if sign > 0 else least[1] > largest[0]):
            continue
        f = np.clip(decision_values(model, rows)[0], *model.limits)
        if sign * f[0] > sign * f[1]:
            return Pair(*(part.space.cells(row) for row in rows), *map(float, f))
    return None
