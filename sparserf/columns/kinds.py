"""The kinds of encodings: a class for each, with everything that depends on the kind.

An encoding makes of a cell x its raw value r, and of that u = (r - center) / unit, 0 where the unit
is 0. Where |u| > reach it is reach (2 - reach / |u|) with the sign of u.

A new kind is a class here, with its place in `KINDS`, which is its index in the arrays of an
encoder, and its number in `IN_FILES`. Kinds that the kernel lacks (`_core/moments.pyx`) are encoded
by NumPy. What encodes, differentiates, integrates, bounds, or exports encodings asks these objects,
or an `Encoding`, and knows no kind by its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._base.expressions import (
    Expression,
    angle,
    between,
    cell,
    flag,
    impute,
    saturate,
    table,
    units,
)
from .._base.npz import require
from .._core.moments import TURNS
from .table import UNKNOWN, in_float32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import Array

EPS = float(np.finfo(np.float64).eps)


class Kind:
    """Properties that all encodings of one kind share.

    name : as in the kernel
    is_number : whether r is the number itself or, where the encoding has knots, linear between the
        scores at these
    is_continuous : whether r is a continuous function of a number; that of a missing one is then
        `fill`
    is_curved : whether u is no affine function of r within the reach
    rises : whether r, without knots, never falls where the number rises
    keeps_zero : whether r of 0 is 0
    turn : by how much the angle whose cosine r is turns in a day; 0 where r is no cosine
    question : of an encoding that is 1 or 0, the words after the column's name, such as "is
    missing"
    """

    name: ClassVar[str]
    is_number: ClassVar[bool] = False
    is_continuous: ClassVar[bool] = False
    is_curved: ClassVar[bool] = False
    rises: ClassVar[bool] = False
    keeps_zero: ClassVar[bool] = False
    turn: ClassVar[float] = 0.0
    question: ClassVar[str] = ""

    def __init_subclass__(cls, **about: Any) -> None:
        """Set the class attributes that a subclass gives as keywords."""
        for name, value in about.items():
            setattr(cls, name, value)

    def raw(self, x: Array, level: Array, xp: Any = np) -> Array:
        """Return r of cells x; for numbers with knots, x are their scores."""
        return x

    def derivatives(self, x: Array, level: Array, xp: Any = np) -> tuple[Array, Array]:
        """Return the first and second derivative of r by x.

        Only kinds that are continuous, and no numbers, have them.
        """
        raise NotImplementedError(f"{self.name} has no derivatives")

    def check(
        self, levels: Sequence[Any] | None, level: float, knots: np.ndarray, reach: float
    ) -> None:
        """Check an encoding from a file that is not trusted.

        levels : those of its column, None of numbers
        """

    def label(self, column: str, level: float, levels: Sequence[Any] | None) -> str:
        """Return the name of an encoding in the names of features."""
        return column

    def symbol(self, encoding: Encoding, levels: Sequence[Any] | None) -> tuple[str, str]:
        """Return how formulas write an encoding: ("function", the name of a function of the
        column), or ("question", the words after the column's name)."""
        if self.question:
            return "question", self.question
        if levels is not None:
            return "function", "mean"
        return "function", "z" if encoding.knots is None or encoding.is_held else "rank"

    def expression(
        self, encoding: Encoding, levels: Sequence[Any] | None, u: Sequence[float]
    ) -> Expression:
        """Return the encoding as an expression of a cell that is not a missing number.

        levels : the levels of the column; None: it holds numbers
        u : for a column with levels, the encoding of each level, of any other cell, and of a
            missing cell; for other columns, that of a number and that of a missing cell
        """
        x = cell(encoding.column)
        if levels is not None:
            return table(x, levels, dict(enumerate(u[:-2])), 0.0, u[-2], u[-1], in_float32(levels))
        r = x if encoding.knots is None else between(x, *encoding.knots)
        return encoding.in_reach(units(r, encoding.center, encoding.unit))


class Number(Kind, name="number", is_number=True, is_continuous=True, rises=True, keeps_zero=True):
    """The number, or a function of it that is linear between knots."""


class Level(Kind, name="level"):
    """Whether the cell is a level: 1 or 0. For a level that no training row has it is the score of
    the knot at -1, if there is one."""

    def raw(self, x: Array, level: Array, xp: Any = np) -> Array:
        return xp.astype((level <= x) & (x < level + 1), x.dtype)

    def check(
        self, levels: Sequence[Any] | None, level: float, knots: np.ndarray, reach: float
    ) -> None:
        require(levels is not None and level in range(len(levels)), "stage_level")
        require(knots.tolist() in ([], [UNKNOWN]), "stage_knots")

    def label(self, column: str, level: float, levels: Sequence[Any] | None) -> str:
        return f"{column}={levels[int(level)]}"

    def symbol(self, encoding: Encoding, levels: Sequence[Any] | None) -> tuple[str, str]:
        return "question", f" is {levels[int(encoding.level)]}"

    def expression(
        self, encoding: Encoding, levels: Sequence[Any] | None, u: Sequence[float]
    ) -> Expression:
        k = int(encoding.level)
        rest = u[int(k == 0)] if len(levels) > 1 else u[-2]
        return table(
            cell(encoding.column), levels, {k: u[k]}, rest, u[-2], u[-1], in_float32(levels)
        )


class Missing(Kind, name="missing", question=" is missing"):
    """Whether the cell is missing."""

    def raw(self, x: Array, level: Array, xp: Any = np) -> Array:
        return xp.astype(xp.isnan(x), x.dtype)

    def label(self, column: str, level: float, levels: Sequence[Any] | None) -> str:
        return column + self.question

    def expression(
        self, encoding: Encoding, levels: Sequence[Any] | None, u: Sequence[float]
    ) -> Expression:
        return flag(cell(encoding.column), u[-1], u[0])


class Angle(Kind, is_continuous=True, is_curved=True):
    """The cosine of the days since `level` as an angle, which turns once in a period."""

    def __init__(self, name: str, turn: float):
        self.name, self.turn = name, turn

    def raw(self, x: Array, level: Array, xp: Any = np) -> Array:
        return xp.cos(self.turn * (x - level))

    def derivatives(self, x: Array, level: Array, xp: Any = np) -> tuple[Array, Array]:
        phase = self.turn * (x - level)
        return -self.turn * xp.sin(phase), -self.turn * self.turn * xp.cos(phase)

    def check(
        self, levels: Sequence[Any] | None, level: float, knots: np.ndarray, reach: float
    ) -> None:
        require(not len(knots), "stage_knots")
        require(np.isinf(reach), "stage_reach")

    def label(self, column: str, level: float, levels: Sequence[Any] | None) -> str:
        return f"{column} ({'sine' if level else 'cosine'} of {self.name})"

    def symbol(self, encoding: Encoding, levels: Sequence[Any] | None) -> tuple[str, str]:
        return "function", f"{'sin' if encoding.level else 'cos'}{self.name}"

    def expression(
        self, encoding: Encoding, levels: Sequence[Any] | None, u: Sequence[float]
    ) -> Expression:
        return units(
            angle(cell(encoding.column), self.turn, encoding.level), encoding.center, encoding.unit
        )


# All kinds: the place of each is its index in the arrays of an encoder, and in the kernel.
KINDS = (Number(), Level(), Missing(), *map(Angle, ("year", "week", "day"), TURNS))
NUMBER, LEVEL, MISSING, YEAR, WEEK, DAY = range(len(KINDS))
# The number of each kind in files; 1 and 4 are not used.
IN_FILES = np.array([0, 2, 3, 5, 6, 7])


@dataclass(frozen=True, eq=False)
class Encoding:
    """One encoding of a column.

    column : int
        The column of X.
    kind : int
        Its place in `KINDS`.
    level : float
        The level at which an encoding is 1, or the time at which an angle is 0.
    knots : None, or (knots, scores)
        The knots, ascending, and the values at them, between which the encoding is linear. That of
        a level may have one knot, at -1, the code of levels that no training row has: its score is
        the value there.
    center, unit, reach, fill : float
        As in `ColumnEncoder`.
    """

    column: int
    kind: int
    level: float = 0.0
    knots: tuple[np.ndarray, np.ndarray] | None = None
    center: float = 0.0
    unit: float = 1.0
    reach: float = np.inf
    fill: float = 0.0

    @property
    def of_kind(self) -> Kind:
        """Its kind."""
        return KINDS[self.kind]

    @property
    def is_held(self) -> bool:
        """Whether it is the number, constant beyond its knots: two, or one."""
        return (
            self.of_kind.is_number
            and self.knots is not None
            and len(self.knots[0]) <= 2
            and np.array_equal(*self.knots)
        )

    @property
    def may_reach(self) -> bool:
        """Whether some cell may be beyond the reach: not where all scores are within."""
        if np.isinf(self.reach) or not self.unit:
            return False
        return self.knots is None or bool(
            np.abs(self.knots[1] - self.center).max() > self.reach * self.unit
        )

    def in_reach(self, u: Expression) -> Expression:
        """Return an expression of u, saturated beyond the reach where that may matter."""
        return saturate(u, self.reach) if self.may_reach else u

    def expression(
        self, levels: Sequence[Any] | None, u: Sequence[float], may_miss: bool
    ) -> Expression:
        """Return the encoding as an expression of the cell: see `Kind.expression`; may_miss :
        whether cells may be missing."""
        kind = self.of_kind
        written = kind.expression(self, levels, u)
        is_filled = may_miss and kind.is_continuous and levels is None
        return impute(written, cell(self.column), self.fill) if is_filled else written

    def quarters(self, low: float, high: float) -> tuple[float, float, float]:
        """Return (the days of a quarter turn, the numbers of the first and the last quarter that
        begin between low and high, counted from `level`)."""
        quarter = np.pi / 2 / self.of_kind.turn
        return (
            quarter,
            np.ceil((low - self.level) / quarter),
            np.floor((high - self.level) / quarter),
        )

    def cuts(self, low: float, high: float) -> np.ndarray:
        """Return the cells at which to cut a column into pieces on which the encoding is smooth, in
        any order; some may be beyond low and high.

        Cuts are at knots, at the reach, beyond which the encoding is curved, and then at distances
        that double, so that the poles of the curve are far from each piece.
        """
        if self.of_kind.turn:
            quarter, first, last = self.quarters(low, high)
            return self.level + quarter * np.arange(first, last + 1)
        knots, scores = self.knots or (np.zeros(0), np.zeros(0))
        ends = scores if len(knots) else np.array([low, high])
        span = np.abs(ends - self.center).max() / self.unit
        away = []
        if np.isfinite(self.reach):
            n_cuts = int(np.ceil(np.log2(max(span / self.reach, 1.0)))) + 1
            away = [self.reach * 2.0**k for k in range(n_cuts)]
        raw = self.center + self.unit * np.array([-r for r in away] + [0.0] * bool(away) + away)
        if len(knots):
            inside = (raw > scores.min()) & (raw < scores.max())
            raw = np.interp(raw[inside], scores, knots)
        return np.concatenate([knots, raw])

    def turns(self, low: float, high: float, most: int) -> np.ndarray:
        """Return the cells where the encoding may change between falling and rising: its knots, or
        quarter turns, unless there are `most` or more of these."""
        if not self.of_kind.turn:
            return np.zeros(0) if self.knots is None else self.knots[0]
        quarter, first, last = self.quarters(low, high)
        if last - first < most:
            return self.level + quarter * np.arange(first, last + 1)
        return np.zeros(0)

    def rounding(self, largest: float) -> float:
        """Return a bound of the rounding of u, for cells of at most the size `largest`.

        It is a few roundings of (r - center) / unit. An unscaled number is not rounded; the cosine
        of an angle has the rounding of the angle.
        """
        is_number = self.of_kind.is_number and (self.knots is None or self.is_held)
        is_as_it_is = is_number and (self.center, self.unit, self.reach) == (0.0, 1.0, np.inf)
        if is_as_it_is or not self.unit > 0:
            return 0.0
        turn = self.of_kind.turn
        raw = largest if self.knots is None else np.abs(self.knots[1]).max()
        raw = 1 + turn * (raw + abs(self.level)) if turn else raw
        return 16 * EPS * (raw + abs(self.center)) / self.unit

    def slopes(self, x: np.ndarray, dx: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the largest derivative du/dz between each two neighbours of a grid.

        The grid has the numbers x, and dx is dx/dz between them.

        The slope between knots is multiplied by a derivative that falls with the distance from the
        center. The derivative of the cosine of an angle is a sine, of which the least and the
        largest on a cell are known.
        """
        turn, unit = self.of_kind.turn, self.unit
        if turn:
            least, most = _sines(turn * (x[:-1] - self.level), turn * (x[1:] - self.level))
            return -most * turn * dx / unit, -least * turn * dx / unit
        if unit == 0:
            return np.zeros(len(dx)), np.zeros(len(dx))
        r = x if self.knots is None else np.interp(x, *self.knots)
        rise, t = np.diff(r) / np.diff(x), (r - self.center) / unit
        far = np.maximum(np.abs(t[:-1]), np.abs(t[1:]))
        near = np.where(t[:-1] * t[1:] <= 0, 0.0, np.minimum(np.abs(t[:-1]), np.abs(t[1:])))
        # times the derivative of the encoding by (r - center) / unit, at a size of that
        steepness = (np.minimum(self.reach / np.maximum(t, 1e-300), 1.0) ** 2 for t in (far, near))
        ends = [rise * dx / unit * each for each in steepness]
        least, most = np.minimum(*ends), np.maximum(*ends)
        return least - 1e-9 * np.abs(least), most + 1e-9 * np.abs(most)


def arithmetic(center: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (power, center, factor) with (r - c) / unit = (power r - center) factor, in which
    nothing overflows; power is a power of two, and factor is 0 where the unit is 0."""
    exponent = np.where(unit > 0, np.clip(np.frexp(unit)[1], -1000, 1000), 0)
    power = np.ldexp(1.0, -exponent)
    factor = np.divide(1.0, unit * power, out=np.zeros(np.shape(unit)), where=np.asarray(unit) > 0)
    return power, np.where(factor > 0, center * power, 0.0), factor


def _sines(first, last):
    """Return the least and largest sine between two angles, a little outwards for rounding."""
    ends = np.sin(first), np.sin(last)
    slack = 1e-9 + 8 * EPS * (np.abs(first) + np.abs(last))
    has_most, has_least = (
        np.floor((last + slack - at) / (2 * np.pi)) >= np.ceil((first - slack - at) / (2 * np.pi))
        for at in (np.pi / 2, -np.pi / 2)
    )
    least, most = np.minimum(*ends) - slack, np.maximum(*ends) + slack
    return np.where(has_least, -1.0, np.maximum(least, -1.0)), np.where(
        has_most, 1.0, np.minimum(most, 1.0)
    )
