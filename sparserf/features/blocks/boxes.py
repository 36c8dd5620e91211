"""Boxes: a number where each of some inputs lies in an interval, and 0 elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import mul
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..._base.expressions import encoding, number, parameter, reduce_inputs, seen, sign
from ..._base.npz import require
from ..._core.boxes import NumberBoxes, apply, correlate, spread
from ...columns.clocks import arcs, moment_in
from ...columns.encoder import BEYOND_NUMBERS
from ...columns.table import UNKNOWN
from .base import FeatureBlock
from .bounds import Group, Relaxation
from .constrained import may_meet
from .derivatives import Derivatives
from .terms import Term

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._base.expressions import Expression
    from ..._base.types import Array
    from ...columns.constraints import InputConstraints
    from ...columns.encoder import ColumnEncoder
    from .base import Evaluator, Put
    from .derivatives import RowEncodings
    from .pieces import Pieces
    from .stored import StoredBlock
    from .terms import GroupEntry, Names

# Files hold no infinite numbers: these stand for the ends of intervals that have none.
LARGEST = float(np.finfo(np.float64).max)
# The most levels of a category that are listed.
MOST_LEVELS = 8
# The number of rows whose bits are made at a time: the bits of some hundred boxes then stay in the
# second-level cache.
ROWS = 2**13


@dataclass(frozen=True, eq=False)
class BoxBlock(FeatureBlock):
    """phi_j(x) = scale height_j where low_jl < x[inputs_jl] <= high_jl for all l, 0 elsewhere.

    low, high : (n_features, order)
        Infinite where an interval has no end; an input of which both are is none of the feature's.
    height : (n_features,)
    nonnegative : whether coefficients must be at least 0
    """

    scale: float
    inputs: np.ndarray
    low: np.ndarray
    high: np.ndarray
    height: np.ndarray
    nonnegative: bool = False

    activation = "box"
    names: ClassVar[tuple[str, ...]] = (activation,)
    by_input: ClassVar[tuple[str, ...]] = ("low", "high")
    stored: ClassVar[tuple[str, ...]] = ("inputs", "low", "high", "height")
    is_bounded = True
    is_flat_beyond = True

    @property
    def is_used(self) -> np.ndarray:
        return (self.low > -np.inf) | (self.high < np.inf)

    # ---------------------------------------------------------------- values

    @property
    def heights(self) -> np.ndarray:
        return self.scale * self.height

    def largest_value(self) -> np.ndarray:
        return np.abs(self.heights)

    @cached_property
    def used_inputs(self) -> tuple[np.ndarray, np.ndarray | None]:
        used, position = np.unique(self.inputs, return_inverse=True)
        return used, position.reshape(self.inputs.shape).astype(np.int32)

    def packed(self, dtype: np.dtype, n_inputs: int, among_used: bool = False) -> BoxPanels:
        if among_used not in self._panels:
            block = replace(self, inputs=self.used_inputs[1]) if among_used else self
            self._panels[among_used] = BoxPanels(block)
        return self._panels[among_used]

    @cached_property
    def _panels(self):
        """The panels that have been made: of all inputs, and of the `used_inputs`."""
        return {}

    def rows_for_panels(self, X: np.ndarray) -> np.ndarray:
        return X

    def evaluator(self, xp: Any, put: Put, dtype: np.dtype, widen: Evaluator) -> Evaluator:
        low, high, height = put(self.low), put(self.high), put(self.heights)
        inputs = [put(column.astype(np.int64)) for column in self.inputs.T]

        def values(X):
            inside = True
            for k, column in enumerate(inputs):
                x = xp.take(X, column, axis=1)
                inside = inside & (x > low[:, k][None, :]) & (x <= high[:, k][None, :])
            return xp.astype(inside, X.dtype) * height

        return values

    # ---------------------------------------------------------------- in models

    def term(self, k: int, position: int, column: np.ndarray) -> BoxTerm:
        used = self.is_used[k]
        encodings, place = np.unique(self.inputs[k, used], return_inverse=True)
        low, high = np.full(len(encodings), -np.inf), np.full(len(encodings), np.inf)
        np.maximum.at(low, place, self.low[k, used])
        np.minimum.at(high, place, self.high[k, used])
        own = np.ones(len(encodings)), low, high
        gain = float(self.scale * self.height[k])
        return BoxTerm.of_columns(column, position, gain, encodings, *own)

    def derivatives(self, *about: Any) -> BoxDerivatives:
        return BoxDerivatives(self, *about)

    @property
    def expression(self) -> Expression:
        u = seen(self.inputs)
        is_above = _is_above(u, parameter("low", self.low))
        inside = is_above * _is_at_most(u, parameter("high", self.high))
        return parameter("height", self.height) * reduce_inputs("multiply", inside)

    def effects(self, deviation: np.ndarray) -> np.ndarray:
        return np.where(self.is_used, 1.0, 0.0)

    def with_inputs(self, stays: np.ndarray, mean: np.ndarray) -> Self:
        low, high = np.where(stays, self.low, -np.inf), np.where(stays, self.high, np.inf)
        return replace(self, low=low, high=high)

    @property
    def thresholds(self) -> tuple[np.ndarray, np.ndarray]:
        ends = np.stack([self.low, self.high])
        is_end = np.isfinite(ends)
        return np.broadcast_to(self.inputs, ends.shape)[is_end], ends[is_end]

    def with_thresholds(self, numbers: np.ndarray) -> Self:
        ends = np.stack([self.low, self.high])
        ends[np.isfinite(ends)] = numbers
        return replace(self, low=ends[0], high=ends[1])

    def flattened(self, ends: np.ndarray, fill: np.ndarray) -> tuple[Self, np.ndarray]:
        """Move thresholds beyond an end to where no number is, but before missing cells."""
        first, last = np.moveaxis(ends[self.inputs], -1, 0)
        fill = fill[self.inputs]
        least = np.where(fill == -BEYOND_NUMBERS, -BEYOND_NUMBERS / 2, -np.inf)
        most = np.where(fill == BEYOND_NUMBERS, BEYOND_NUMBERS / 2, np.inf)

        def moved(threshold):
            new = np.where(threshold < first, least, np.where(threshold >= last, most, threshold))
            return np.where(np.isfinite(threshold), new, threshold)

        block = replace(self, low=moved(self.low), high=moved(self.high))
        never = (block.low == np.inf) | (block.high == -np.inf)
        return block, never.any(axis=1) | ~block.is_used.any(axis=1)

    def keeps(self, constraints: InputConstraints) -> np.ndarray:
        at, used = self.own_inputs, self.is_used
        keeps = ~(used & (constraints.is_barred | (constraints.curvature != 0))[at]).any(axis=1)
        keeps &= may_meet(used, constraints, at)
        direction = np.sign(self.scale * self.height)[:, None] * constraints.sign[at]
        rises = self.nonnegative & np.where(direction > 0, self.high == np.inf, self.low == -np.inf)
        return keeps & (rises | ~used | (direction == 0)).all(axis=1)

    # ---------------------------------------------------------------- files

    def _stored_arrays(self):
        ends = {name: np.clip(getattr(self, name), -LARGEST, LARGEST) for name in self.by_input}
        return self.arrays | ends

    @classmethod
    def from_stored(cls, stored: StoredBlock) -> BoxBlock:
        low, high, height = (stored.floats(name) for name in ("low", "high", "height"))
        inputs = stored.inputs(len(low))
        require(height.shape == low.shape[:1], "height")
        require(inputs is not None and low.shape == high.shape == inputs.shape, "low and high")
        low = np.where(low == -LARGEST, -np.inf, low)
        high = np.where(high == LARGEST, np.inf, high)
        return cls(stored.meta["scale"], inputs, low, high, height, stored.is_nonnegative)


def _is_above(u, low):
    """Return the expression that is 1 where u is above `low`, else 0."""
    return 0.5 - 0.5 * sign(low - u)


def _is_at_most(u, high):
    """Return the expression that is 1 where u is at most `high`, else 0."""
    return 0.5 + 0.5 * sign(high - u)


class BoxPanels:
    """Boxes as the kernels compute them: one bit for each row and box, whether the row is in it."""

    def __init__(self, block: BoxBlock):
        used = block.is_used
        no_missing = np.zeros(used.shape, np.uint8)
        inputs = np.where(used, block.inputs, -1).astype(np.int32)
        self._boxes = NumberBoxes(inputs, block.low, block.high, no_missing)
        self._height = block.heights

    def bits(self, X: Any) -> np.ndarray:
        """Return which rows are in each box, as bits: uint64 (n_features, n_words)."""
        bits = np.empty((len(self._height), -(-len(X) // 64)), np.uint64)
        self._boxes.evaluate(X, bits)
        return bits

    def _bits(self, X):
        """Yield some rows at a time: (slice of the rows, their `bits`)."""
        for start in range(0, len(X), ROWS):
            rows = slice(start, min(start + ROWS, len(X)))
            yield rows, self.bits(X[rows])

    def correlate(
        self, X: Any, v: np.ndarray, out: np.ndarray, squared: bool = False, sine: Any = None
    ) -> None:
        total = np.zeros((len(v), len(self._height)))
        for rows, bits in self._bits(X):
            correlate(bits, v[:, rows], total)
        out[:, : total.shape[1]] += total * (self._height**2 if squared else self._height)

    def apply(self, X: Any, coef: np.ndarray, out: np.ndarray) -> None:
        heights = np.ascontiguousarray(coef * self._height)
        for rows, bits in self._bits(X):
            apply(bits, heights, out[:, rows])

    def transform(self, X: Any, out: np.ndarray) -> None:
        by_feature = out.strides[0] == out.itemsize  # as `spread` writes: no transpose is needed
        for rows, bits in self._bits(X):
            place = out[rows].T
            inside = place if by_feature else np.empty(place.shape, out.dtype)
            spread(bits, inside)
            inside *= self._height.astype(out.dtype)[:, None]
            if not by_feature:
                _copy_transpose(inside, out[rows])


def _copy_transpose(a, out):
    """Write the transpose of a to out, in the dtype of out.

    NumPy copies a transpose column by column, and fetches each row anew for each of its columns:
    for 12,000 rows of 300 columns that takes four times as long as some rows at a time.
    """
    size = 64
    for start in range(0, len(a), size):
        out[:, start : start + size] = a[start : start + size].T


# ---------------------------------------------------------------- one by one


@dataclass(frozen=True, eq=False)
class BoxTerm(Term):
    """gain where low_v < u_v <= high_v for each encoding v, and 0 elsewhere."""

    low: np.ndarray
    high: np.ndarray

    activation = "box"

    @cached_property
    def expression(self) -> Expression:
        factors = []
        for v, low, high in zip(self.encodings.tolist(), self.low, self.high, strict=True):
            if low > -np.inf:
                factors.append(_is_above(encoding(v), number(low)))
            if high < np.inf:
                factors.append(_is_at_most(encoding(v), number(high)))
        return reduce(mul, factors, number(1.0)) if factors else number(1.0)

    def condition(self, names: Names, encoder: ColumnEncoder | None) -> str | None:
        words = []
        for k, j in enumerate(self.columns.tolist()):
            own = np.flatnonzero(self.place == k)
            asked = [(int(self.encodings[i]), self.low[i], self.high[i]) for i in own]
            words += conditions(names[j], asked, encoder)
        return " and ".join(words)

    def title(self, names: Sequence[str], most: int, encoder: ColumnEncoder | None = None) -> str:
        return self.condition(names, encoder) or "always"

    def parts(self, U: np.ndarray) -> np.ndarray:
        u = U.T[self.encodings]
        inside = (u > self.low[:, None]) & (u <= self.high[:, None])
        return self.by_column(np.multiply, inside.astype(np.float64))

    def mean_factor(self, pieces: Pieces, finer: int) -> tuple[complex, float]:
        """Return (the share of the pieces on which all encodings are in their intervals, 0)."""
        pieces, is_here = pieces.seen_by(self.encodings)
        low, high = self.low[is_here], self.high[is_here]
        middle, half = pieces.middle, pieces.half
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.sort(np.stack([(low - middle) / half, (high - middle) / half]), axis=0)
        inside = (middle > low) & (middle <= high)
        point = np.where(inside, [[[-1.0]], [[1.0]]], [[[1.0]], [[-1.0]]])
        first, last = np.where(half != 0, np.clip(ends, -1, 1), point)
        share = np.maximum(last.min(axis=1) - first.max(axis=1), 0) / 2
        return pieces.weight @ share, 0.0

    def group_entry(self, c: float, w: np.ndarray, inputs: np.ndarray) -> GroupEntry:
        low, high = np.full(len(w), -np.inf), np.full(len(w), np.inf)
        low[inputs], high[inputs] = self.low, self.high
        return BoxGroup, (), (c, low, high)


def conditions(
    name: str, asked: Sequence[tuple[int, float, float]], encoder: ColumnEncoder | None
) -> list[str]:
    """Return in words the conditions on one column that its encodings lie in intervals.

    Missing cells are mentioned where training rows had some.

    asked : (encoding, low, high) of each interval
    """
    words, low, high = [], -np.inf, np.inf
    has_missing, takes_missing, asks_missing = False, True, False
    of_levels, levels, of_angles = [], (), {}
    show, in_words = _number_words, _interval_words
    for v, above, at_most in asked:
        encoding = None if encoder is None else encoder.encoding(v)
        if encoding is not None and encoder.levels_of(v) is not None:
            of_levels.append((encoding, above, at_most, encoder.of_numbers(v, above, at_most)[2]))
            levels = encoder.levels_of(v)
            continue
        if encoding is not None:
            above, at_most, takes = encoder.of_numbers(v, above, at_most)
            has_missing |= takes is not None
            takes_missing &= takes is not False
            asks_missing |= takes is True and (above == np.inf or at_most == -np.inf)
        if encoding is not None and encoding.of_kind.turn and encoding.unit > 0:
            ends = (encoding.center + encoding.unit * end for end in (above, at_most))
            of_angles.setdefault(encoding.of_kind, []).append((encoding.level, *ends))
        elif encoding is not None and not encoding.of_kind.is_number:
            label = encoder.take(np.array([v])).names({encoding.column: name})[0]
            words += _interval_words(label, above, at_most, _number_words)
        else:
            if encoding is not None and encoder.table is not None:
                clock = encoder.table.clocks.get(encoding.column)
                show = _number_words if clock is None else _clock_words(clock)
                in_words = (
                    _flag_words if encoding.column in encoder.table.flags else _interval_words
                )
            low, high = max(low, above), min(high, at_most)
    if of_levels:
        words.append(_levels_words(name, of_levels, levels))
    if asks_missing:
        return [*words, f"{name} is missing"]
    of_numbers = in_words(name, low, high, show)
    for kind, intervals in of_angles.items():
        of_numbers += _period_words(name, kind, intervals)
    if has_missing and not of_numbers and not takes_missing:
        of_numbers = [f"{name} is not missing"]
    elif has_missing and of_numbers and takes_missing:
        of_numbers = [f"({' and '.join(of_numbers)} or {name} is missing)"]
    return [*words, *of_numbers]


def _number_words(value):
    """Return a threshold with all its digits, of which there are few."""
    return f"{value:.17g}" if float(f"{value:.15g}") != value else f"{value:.15g}"


def _clock_words(clock):
    """Return the function that writes a number of days as the date or time that it stands for."""
    return lambda days: str(clock.cell(float(days)))


def _interval_words(name, low, high, show):
    """Return in words that a number is in an interval: no words where it has no end."""
    if low > -np.inf and high < np.inf:
        return [f"{show(low)} < {name} <= {show(high)}"]
    if low > -np.inf:
        return [f"{name} > {show(low)}"]
    return [f"{name} <= {show(high)}"] if high < np.inf else []


def _period_words(name, kind, asked):
    """Return in words in which parts of a period a time must be, so that the cosines of its angle
    lie in their intervals.

    asked : (level, low, high) of each cosine
    """
    parts = arcs(kind.turn, asked)
    if parts is None:
        return []
    ends = [[moment_in(kind.name, days) for days in part] for part in parts]
    listed = " or ".join(f"{name} is from {first} to {last}" for first, last in ends)
    if not parts:
        return [f"{name} is at no time of the {kind.name}"]
    return [listed if len(parts) == 1 else f"({listed})"]


def _flag_words(name, low, high, show):
    """Return in words that a boolean is in an interval, as `_interval_words` does."""
    takes = [low < value <= high for value in (0, 1)]
    if takes[0] != takes[1]:
        return [name if takes[1] else f"not {name}"]
    return [] if takes[0] else _interval_words(name, low, high, show)


def _levels_words(name, asked, levels):
    """Return in words which levels of a category have their scores in all intervals.

    asked : (encoding, low, high, whether missing cells are in it; None: training rows had none)
    """
    takes_new, inside = True, set(range(len(levels)))
    for of_column, low, high, _ in asked:
        scores = dict(zip(of_column.knots[0].tolist(), of_column.knots[1].tolist(), strict=True))
        inside = {k for k in inside if low < scores[k] <= high}
        takes_new &= low < scores[UNKNOWN] <= high
    takes_missing = [takes for *_, takes in asked if takes is not None]
    outside = [level for k, level in enumerate(levels) if k not in inside]
    inside = [levels[k] for k in sorted(inside)]
    listed, joint = (outside, "not in") if takes_new else (inside, "in")
    listed = [_quoted(str(level)) for level in listed]
    if takes_missing and all(takes_missing) != takes_new:
        listed.append("missing")
    if len(listed) > MOST_LEVELS:
        listed = [*listed[:MOST_LEVELS], f"... {len(listed) - MOST_LEVELS} more"]
    return f"{name} {joint} {{{', '.join(listed)}}}"


def _quoted(level):
    """Return a level in quotes unless it is one word."""
    return level if level.replace("_", "").replace("-", "").isalnum() else f"'{level}'"


class BoxDerivatives(Derivatives):
    """The derivatives of boxes: 0, also at steps."""

    def first(self, rows: RowEncodings) -> Array:
        return rows.put(np.zeros((1, len(self._coef), len(self._seen))))

    def second(self, rows: RowEncodings) -> Array:
        return rows.put(np.zeros((1, len(self._coef), len(self._pairs[0]))))


class BoxGroup(Group):
    """Terms that are c_k where low_kv < u_v <= high_kv for all inputs v, and 0 elsewhere.

    On a part of the space that lies inside or outside such a box the term is constant; on any other
    part its bounds are 0 and c_k.
    """

    has_steps = True

    def __init__(self, coef: np.ndarray, low: np.ndarray, high: np.ndarray, largest: np.ndarray):
        self._coef, self._low, self._high = coef, low, high
        self.work = low.size

    def relax(self, mid: np.ndarray, rad: np.ndarray) -> Relaxation:
        least, most, c = (mid - rad)[:, None], (mid + rad)[:, None], self._coef
        meets_low = (least <= self._low) & (most > self._low)
        meets_high = (least <= self._high) & (most > self._high)
        may = ((most > self._low) & (least <= self._high)).all(axis=2)
        must = ((least > self._low) & (most <= self._high)).all(axis=2)
        top = np.maximum(may * c, must * c).sum(axis=1)
        jumps = (may & ~must)[:, :, None]
        rises = np.where((c > 0)[:, None], meets_low, meets_high) & jumps
        falls = np.where((c > 0)[:, None], meets_high, meets_low) & jumps
        high = np.where(rises.any(axis=1), np.inf, 0.0)
        low = np.where(falls.any(axis=1), -np.inf, 0.0)
        blame = rad * (np.abs(c)[:, None] * (jumps & (meets_low | meets_high))).sum(axis=1)
        return Relaxation(top, np.zeros(mid.shape), low, high, blame)

    def values(self, U: np.ndarray) -> np.ndarray:
        u = U[:, None]
        return ((u > self._low) & (u <= self._high)).all(axis=2) @ self._coef

    def gradients(self, U: np.ndarray) -> np.ndarray:
        return np.zeros_like(U)

    def size(self, largest: np.ndarray) -> float:
        return float(np.abs(self._coef).sum())

    def steepness(self) -> np.ndarray:
        return np.zeros(self._low.shape[1])

    def rises(self, inputs: np.ndarray) -> bool:
        first = np.where((self._coef > 0)[:, None], np.inf, -self._low[:, inputs])
        last = np.where((self._coef > 0)[:, None], self._high[:, inputs], np.inf)
        return bool((np.minimum(first, last) == np.inf).all())

    def coupling(self, inputs: np.ndarray) -> np.ndarray:
        has = ((self._low > -np.inf) | (self._high < np.inf)).astype(np.float64)
        return (np.abs(self._coef) * has[:, inputs].sum(axis=1)) @ has
