"""Branch and bound: the largest value of a sum of terms over a box, in an interval.

Many boxes are looked at together. On each, a linear function lies above the sum (`relaxations.py`),
and has its largest value at a corner; there the sum is evaluated, and the largest such value is the
`best` so far. Parts of a box where the linear function is below it are cut off; coordinates in
which the derivative has one sign are set to an end. What is left is halved across the coordinate to
which most of the gap is due, or between levels of a category that differ most. The boxes of the
largest bounds come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._base.deadline import time_left

if TYPE_CHECKING:
    from ..features import Relaxation
    from .relaxations import TermSum
    from .space import Geometry, Space

# About the number of pairs of a box and a neuron that are looked at together.
AT_ONCE = 300_000
# The fewest and the most boxes that are looked at together.
FEWEST = 8
MOST = 2_048
# The number of boxes that are kept at most; a search that has more ends.
MOST_KEPT = 2**20
# The starts of the local search.
STARTS = 256
# The steps of the local search.
STEPS = 60
# The number of its best points for which all levels of categories are tried.
TRIED = 8
# The share of the box that its first step goes.
FIRST_STEP = 0.25
# A coordinate is not halved where its interval is this share of the numbers at its ends.
SMALLEST = 1e-13
# Derivatives that may be infinite count as this number.
FAR = 1e200


class Maximum(NamedTuple):
    """What a search found: the largest value is at most `upper`.

    n_boxes : the number of boxes that were bounded
    is_open : whether boxes are left, in which the value may be larger than the best by more than
        the tolerance
    """

    upper: float
    n_boxes: int
    is_open: bool


class Bounded(NamedTuple):
    """Boxes (low, high), (n, n_axes), with an upper bound of the sum on each, and the shares of
    each coordinate in its gap."""

    low: np.ndarray
    high: np.ndarray
    upper: np.ndarray
    blame: np.ndarray

    def take(self, places: np.ndarray) -> Bounded:
        return Bounded(*(array[places] for array in self))

    def join(self, other: Bounded) -> Bounded:
        return Bounded(*map(np.concatenate, zip(self, other, strict=True)))


class Search:
    """A search for the largest value of a sum of terms over a box of a space."""

    best: float
    z: np.ndarray
    n_boxes: int

    def __init__(self, total: TermSum, space: Space):
        self._total, self._space = total, space
        self._number = ~space.is_table
        self._membership = space.membership
        self.best, self.z, self.n_boxes = -np.inf, space.low, 0
        # The boxes that are left, and the largest bound of those that need no more halving.
        self._boxes: Bounded | None = None
        self._fathomed = -np.inf

    def values(self, Z: np.ndarray) -> np.ndarray:
        """Return the sum at points of the box."""
        return self._total.values(self._space.inputs(Z))

    def climb(self) -> None:
        """Keep the best point that gradient steps reach from random points, and other levels of
        categories."""
        space, width = self._space, self._space.high - self._space.low
        Z = space.random(np.random.default_rng(0), min(STARTS, 8 * size_of_batch(self._total)))
        f, step = self.values(Z), np.full(len(Z), FIRST_STEP)
        for k in range(STEPS):
            slope = self._gradients(Z) * width
            largest = np.abs(slope).max(axis=1, initial=0.0)[:, None]
            way = np.divide(slope, largest, out=np.zeros_like(slope), where=largest > 0)
            moved = np.clip(Z + way * width * step[:, None], space.low, space.high)
            moved = np.where(self._number, moved, Z)
            after = self.values(moved)
            is_better = after > f
            Z, f = np.where(is_better[:, None], moved, Z), np.where(is_better, after, f)
            step = np.where(is_better, np.minimum(1.6 * step, 1.0), 0.4 * step)
            if k % 20 == 10 and space.tables:
                Z, f = self._try_levels(Z, f)
            if time_left() == 0:
                break
        self._keep(Z, f)

    def _try_levels(self, Z, f):
        """Set each category in the best points to the level of the largest value."""
        Z, f = Z.copy(), f.copy()
        for i in np.argsort(-f)[:TRIED].tolist():
            for a, table in self._space.tables.items():
                if len(table) > 1:
                    tried = np.repeat(Z[i : i + 1], len(table), axis=0)
                    tried[:, a] = np.arange(len(table))
                    values = self.values(tried)
                    Z[i], f[i] = tried[values.argmax()], values.max()
        return Z, f

    def _gradients(self, Z):
        """Return the derivatives of the sum by z at points; those of categories are 0."""
        shape = self._space.geometry(Z, Z)
        by_input = self._total.gradients(self._space.inputs(Z)) * (shape.flat + shape.steep) / 2
        return self._by_axis(by_input) * self._number

    def _keep(self, Z, f):
        """Remember the best point."""
        if len(f) and f.max() > self.best:
            self.best, self.z = float(f.max()), Z[f.argmax()].copy()

    def _by_axis(self, values):
        """Add up values of the inputs, (n, n_inputs), by coordinate."""
        return values @ self._membership

    def maximize(self, tol: float) -> Maximum:
        """Bound the largest value until it is within tol of the best, or the time is over; a later
        call goes on."""
        space, total = self._space, self._total
        size = size_of_batch(total)
        fathomed, boxes = self._fathomed, self._boxes
        boxes = (
            self._bound(space.low[None].copy(), space.high[None].copy()) if boxes is None else boxes
        )
        while True:
            is_open = boxes.upper > self.best + tol
            if not is_open.all():
                fathomed = max(fathomed, boxes.upper[~is_open].max())
                boxes = boxes.take(is_open)
            if not len(boxes.upper) or time_left() == 0 or len(boxes.upper) > MOST_KEPT:
                break
            if len(boxes.upper) <= size:
                place = np.argsort(-boxes.upper, kind="stable")
            else:
                place = np.argpartition(-boxes.upper, size)
            first, boxes = boxes.take(place[:size]), boxes.take(place[size:])
            can_halve = first.blame.max(axis=1) >= 0
            if not can_halve.all():
                ends = first.take(~can_halve)  # which are smaller than when they were bounded
                fathomed = max(fathomed, self._bound(ends.low, ends.high, ends.upper).upper.max())
                first = first.take(can_halve)
            if len(first.upper):
                halves = space.halve(first.low, first.high, first.blame.argmax(axis=1))
                boxes = boxes.join(self._bound(*halves, np.tile(first.upper, 2)))
        self._fathomed, self._boxes = fathomed, boxes
        upper = max(fathomed, boxes.upper.max(initial=-np.inf), self.best)
        return Maximum(upper, self.n_boxes, len(boxes.upper) > 0)

    def _bound(self, low, high, before=np.inf):
        """Bound the sum on boxes, make them smaller where that loses nothing, and evaluate it at
        corners.

        before : the bounds of the boxes that they are parts of
        """
        space, self.n_boxes = self._space, self.n_boxes + len(low)
        shape = space.geometry(low, high)
        relaxed = self._total.relax(shape.mid, shape.rad)
        tilt = self._by_axis(relaxed.slope * shape.chord)
        spread = np.where(self._number[space.axis], shape.spread, space.rounding)
        loose = spread * np.abs(relaxed.slope)
        upper = relaxed.top + (np.abs(tilt) * self._number).sum(axis=1) + loose.sum(axis=1)
        corner = np.where(tilt >= 0, high, low)
        gains = {
            a: self._gains(a, relaxed.slope, shape.mid, low[:, a], high[:, a]) for a in space.tables
        }
        for a, gain in gains.items():
            upper += gain.max(axis=1)
            corner[:, a] = gain.argmax(axis=1)
        upper += 2 * self._total.rounding
        upper[np.isnan(upper)] = np.inf  # where f overflows
        highest = np.argsort(-upper, kind="stable")[: max(FEWEST, len(upper) // 8)]
        corner = corner[highest]
        self._keep(corner, self.values(corner))
        low, high = self._cut(low, high, upper, tilt)
        upper = np.minimum(upper, before)
        low, high = self._fix(low, high, relaxed, shape)
        blame = self._by_axis(relaxed.blame + loose)
        for a, gain in gains.items():
            # A line may touch in the middle what it is above, and levels are at the ends.
            least = np.where(gain > -np.inf, gain, np.inf).min(axis=1)
            blame[:, a] += gain.max(axis=1) - least
        width = high - low
        blame[width <= SMALLEST * np.maximum(np.abs(low), np.abs(high))] = -1.0
        return Bounded(low, high, upper, blame)

    def _gains(self, a, slope, mid, low, high):
        """Return what each level of a category adds to the linear functions, (n, n_levels); -inf
        for those not in the boxes."""
        table, inputs = self._space.tables[a], np.flatnonzero(self._space.axis == a)
        gain = slope[:, inputs] @ table.T - (slope[:, inputs] * mid[:, inputs]).sum(axis=1)[:, None]
        level = np.arange(len(table))
        return np.where((level >= low[:, None]) & (level <= high[:, None]), gain, -np.inf)

    def _cut(self, low, high, upper, tilt):
        """Cut off the parts of boxes where the linear function is at most the best value."""
        slack = np.maximum(upper - self.best, 0)[:, None] * (1 + 1e-9) + self._total.rounding
        is_cut = self._number & (np.abs(tilt) * 2 > slack)
        share = np.where(is_cut, slack / np.maximum(2 * np.abs(tilt), 1e-300), 1.0)
        width = (high - low) * share
        low_left = np.where((tilt > 0) & (share < 1), high - width, low)
        return low_left, np.where((tilt < 0) & (share < 1), low + width, high)

    def _fix(self, low, high, relaxed, shape):
        """Set coordinates in which the sum rises, or falls, on the whole box to its upper, or
        lower, end."""
        least, most = derivatives(self._total, relaxed, shape, self._membership)
        rises = (least >= 0) & self._number
        falls = (most <= 0) & self._number & ~rises
        return np.where(rises, high, low), np.where(falls, low, high)


def size_of_batch(total: TermSum) -> int:
    """Return how many boxes to look at together."""
    return int(np.clip(AT_ONCE // total.work, FEWEST, MOST))


def derivatives(
    total: TermSum, relaxed: Relaxation, shape: Geometry, membership: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds of the derivatives of a sum by the coordinates on boxes, (n, n_axes); infinite
    ones are a large number.

    membership : (n_inputs, n_axes), 1 where an input is made of a coordinate and 0 elsewhere
    """
    least = np.clip(relaxed.low - total.slope_rounding, -FAR, FAR)
    most = np.clip(relaxed.high + total.slope_rounding, -FAR, FAR)
    products = [one * two for one in (least, most) for two in (shape.flat, shape.steep)]
    return np.minimum.reduce(products) @ membership, np.maximum.reduce(products) @ membership
