"""The least and the largest value of a model over a box, each in an interval that is proved to hold
it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.checks import check_real
from .._base.deadline import check_time_limit, limits_time, share_of_time
from .._base.screen import folded, short_name
from .._base.threads import single_threaded_blas
from ..expansion.box import Box, read_box
from ..expansion.outputs import function_names, of_output
from ..expansion.terms import columns_of_encodings, encoder_of, terms_of
from ..explain.evaluate import decision_values
from .relaxations import TermSum
from .search import Search
from .space import Space

if TYPE_CHECKING:
    from ..expansion import Expansion
    from ..expansion.box import BoxLike
    from ..features import Term

# The most cells that are printed of a point.
MOST_SHOWN = 8
# The number of points around the best one that are tried: at a step f has two values.
NEARBY = 64
# The shares of the box that these points are away.
NEARBY_SHARES = (1e-12, 1e-10, 1e-8, 1e-6)


class Interval(NamedTuple):
    """Two numbers between which a third one lies."""

    lower: float
    upper: float

    def __str__(self) -> str:
        return f"[{self.lower:.6g}, {self.upper:.6g}]"


@dataclass(frozen=True, eq=False)
class Bounds:
    """The least and the largest value of f over a box. Made by `SparseModel.bounds`; prints as
    text.

    Attributes
    ----------
    least, largest : Interval
        (lower, upper), between which the least, or the largest, value of f over the box is proved
        to lie.
    at_least, at_largest : dict
        Rows of the box at which f is nearly so: f at `at_least` is `least.upper`, f at `at_largest`
        is `largest.lower`, but for rounding. {name of a column: cell}, as the columns of the
        training frame; {index: cell} where there are no names.
    converged : bool
        Whether both intervals are as narrow as was asked for.
    n_boxes : int
        The number of boxes that were bounded.
    name : str
        The name of the output, as in formulas.
    """

    least: Interval
    largest: Interval
    at_least: dict[str | int, Any]
    at_largest: dict[str | int, Any]
    converged: bool
    n_boxes: int
    name: str = "f"

    def __str__(self) -> str:
        end = "" if self.converged else "; the tolerance was not reached"
        lines = [
            f"bounds of {self.name} over the box, proved{end}",
            f"  least in   {self.least}",
            f"  largest in {self.largest}",
            f"  near the least:   {describe_row(self.at_least)}",
            f"  near the largest: {describe_row(self.at_largest)}",
            f"  {self.n_boxes:,} boxes",
        ]
        return folded("\n".join(lines), 4)

    __repr__ = __str__


def describe_row(row: dict[str | int, Any]) -> str:
    """Return a row as text, at most some of its cells."""
    named = ((f"x{key}" if isinstance(key, int) else short_name(key), row[key]) for key in row)
    cells = [
        f"{name} = {cell:.4g}" if isinstance(cell, float) else f"{name} = {short_name(cell)}"
        for name, cell in named
    ]
    return ", ".join(cells[:MOST_SHOWN]) + (", ..." if len(cells) > MOST_SHOWN else "")


class PartialSum:
    """The terms of a model that depend on some columns alone, as a sum to be bounded, and its
    negative.

    terms : pairs (term, coefficient)
    space : the coordinates of these columns
    total, negative : the sum of the terms, without the intercept, and its negative
    """

    terms: list[tuple[Term, float]]
    space: Space
    total: TermSum
    negative: TermSum

    def __init__(
        self, model: Expansion, box: Box, terms: list[tuple[Term, float]], rising: int | None = None
    ):
        """Take the terms; rising : a column of numbers whose coordinate must rise with the
        numbers."""
        seen = np.unique(np.concatenate([term.encodings for term, _ in terms]))
        self.terms, self.space = terms, Space(model, box, seen, rising)
        place, largest = self.space.place, self.space.largest
        self.total = TermSum([(t, coef, place[t.encodings]) for t, coef in terms], largest)
        self.space.order_levels(lambda Z: self.total.values(self.space.inputs(Z)))
        self.negative = TermSum([(t, -coef, place[t.encodings]) for t, coef in terms], largest)

    def least_at(self, U: np.ndarray) -> np.ndarray:
        """Return lower bounds of the sum at points, also where the sign of a step is in doubt."""
        return -self._above(self.negative, U)

    def largest_at(self, U: np.ndarray) -> np.ndarray:
        """Return upper bounds of the sum at points."""
        return self._above(self.total, U)

    def _above(self, total, U):
        """Return upper bounds of a sum at points, for all that rounding may make of them."""
        around = np.broadcast_to(self.space.rounding, U.shape)
        relaxed = total.relax(U, around)
        return relaxed.top + (np.abs(relaxed.slope) * around).sum(axis=1) + 2 * total.rounding


def separable_parts(
    model: Expansion, box: Box, rising: int | None = None
) -> tuple[list[PartialSum], float]:
    """Split the terms into sums that have no column in common; return (the sums, the constant of
    f).

    Bounds of the sums add up. A linear term is a sum of terms of one encoding each.

    rising : a column of numbers whose coordinate must rise with the numbers
    """
    # the encoder is made once: there may be a part for each of thousands of columns
    model = replace(model, features=model.features.encoded(encoder_of(model.features)))
    column, single, constant = columns_of_encodings(model.features), [], float(model.intercept)
    for term in terms_of(model.features):
        coef = float(model.coef[term.position])
        if term.is_linear:
            single += [(summand, coef) for summand in term.summands(column)]
            constant += coef * term.gain * term.offset
        elif not len(term.columns):
            one = model.features.take([term.position])
            feature = replace(model, coef=np.array([coef]), intercept=0.0, features=one)
            constant += float(decision_values(feature, np.zeros((1, model.n_features_in)))[0, 0])
        elif coef != 0 and term.gain != 0:
            single.append((term, coef))
    group = {}  # {column: the columns that it is with}
    for term, _ in single:
        together = {j for k in term.columns.tolist() for j in group.get(k, {k})}
        group |= dict.fromkeys(together, together)
    by_group: dict[int, list] = {}
    for term, coef in single:
        by_group.setdefault(min(group[int(term.columns[0])]), []).append((term, coef))
    return [PartialSum(model, box, terms, rising) for terms in by_group.values()], constant


def bounds(
    model: Expansion, box: BoxLike | None, tol: float, time_limit: float | None, output: object
) -> Bounds:
    """Bound a model over a box: see `SparseModel.bounds`."""
    tol, deadline = check_real("tol", tol, 0), check_time_limit(time_limit)
    one = of_output(model, output, every_term=True)
    name = function_names(model)[0] if output is None else f"f of {output!r}"
    box = read_box(model, box)
    with single_threaded_blas(), limits_time(deadline):
        parts, constant = separable_parts(one, box)
        searches = [
            (Search(part.total, part.space), Search(part.negative, part.space)) for part in parts
        ]
        every = [search for pair in searches for search in pair]
        for k, search in enumerate(every):
            with limits_time(share_of_time(deadline, 0.3 / (len(every) - k))):
                search.climb()
        ranges = np.array([top.best + bottom.best for top, bottom in searches])
        # The parts of the smallest range first: their searches are short, and leave time; those
        # that end at their share go on.
        smallest, found = np.argsort(ranges, kind="stable").tolist(), {}
        order = [(k, side) for k in smallest for side in (0, 1)]
        for last in (False, True):
            left = [job for job in order if not last or found[job].is_open]
            for n, (k, side) in enumerate(left):
                with limits_time(share_of_time(deadline, 1 / (len(left) - n))):
                    found[k, side] = searches[k][side].maximize(tol * max(ranges[k], 0.0))
        upper = np.array([[found[k, side].upper for k in range(len(parts))] for side in (0, 1)])
        n_boxes = sum(each.n_boxes for each in found.values())
        ends = [_evaluate(parts, [pair[side] for pair in searches], side) for side in (0, 1)]
    slop = 1e-15 * (abs(constant) + np.abs(upper).sum()) * (len(parts) + 2)
    largest = Interval(constant + ends[0][0] - slop, constant + upper[0].sum() + slop)
    least = Interval(constant - upper[1].sum() - slop, constant + ends[1][0] + slop)
    width = largest.upper - least.lower
    if not np.isfinite([*least, *largest]).all():
        raise ValueError("box must be such that f does not overflow, got one on which it may")
    rounding = 4 * slop + 8 * sum(part.total.rounding for part in parts)
    largest, least = _limited(largest, one), _limited(least, one)
    converged = (
        max(largest.upper - largest.lower, least.upper - least.lower) <= 2 * tol * width + rounding
    )
    points = [_row(one, box, parts, end[1]) for end in ends]
    return Bounds(least, largest, points[1], points[0], bool(converged), n_boxes, name)


def _evaluate(parts, searches, side):
    """Return (a bound of the sum at the best points that counts all rounding, these points): side 0
    from below, 1 from above.

    Where a best point lies on a step, a point nearby may be better: the step has its other value
    there.
    """
    total, points = 0.0, []
    for part, search in zip(parts, searches, strict=True):
        space, rng = part.space, np.random.default_rng(0)
        width = np.where(space.is_table, 0.0, space.high - space.low)
        shares = NEARBY_SHARES if part.total.has_steps else ()
        near = [
            search.z + share * width * rng.uniform(-1, 1, (NEARBY, len(width))) for share in shares
        ]
        Z = np.clip(np.concatenate([search.z[None], *near]), space.low, space.high)
        U = space.inputs(Z)
        f = part.least_at(U) if side == 0 else -part.largest_at(U)
        total += float(f.max()) * (1 if side == 0 else -1)
        points.append(Z[f.argmax()])
    return total, points


def _row(model, box, parts, points):
    """Return a row as a user writes it, from the point of each part."""
    if not parts:
        space = Space(model, box, np.zeros(0, np.intp))
        return space.cells(space.row(np.zeros(0)))
    row = parts[0].space.row(points[0])
    for part, z in zip(parts[1:], points[1:], strict=True):
        row[part.space.columns] = part.space.row(z)[part.space.columns]
    return parts[0].space.cells(row)


def _limited(interval, model):
    """Return an interval of values of f with the limits of the model."""
    return Interval(*(float(np.clip(end, *model.limits)) for end in interval))
