"""The column encoder, which encodes columns of any kind and unit as comparable numbers.

The inputs of features are not the columns of X but *encodings* of them: a number in robust units
or as a rank; the levels of a category; whether a cell is missing; the day of the year of a date, as
an angle. `kinds.py` says what each kind of encoding is, and `encodings.py` chooses them from the
training rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np

from .._base.arrays import from_host, namespace_of
from .._base.checks import is_sparse
from .._base.npz import floats, integers, require
from .._core.moments import KINDS as COMPILED_KINDS
from .._core.moments import Views
from .kinds import IN_FILES, KINDS, LEVEL, NUMBER, Encoding, arithmetic
from .table import ARRAYS as OF_TABLE
from .table import UNKNOWN, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.expressions import Expression
    from .._base.types import Array
    from .kinds import Kind

# The arguments scale, missing and extrapolate of fits.
Units: TypeAlias = Literal["robust"] | None
Missing: TypeAlias = Literal["learn", "raise"]
Extrapolate: TypeAlias = Literal["constant", "linear"]

# The arrays of an encoder in a model's file: arrays with an entry for each encoding, arrays of
# knots, and their names in the file.
OF_ENCODINGS = "column", "kind", "level", "center", "unit", "reach", "half_range", "fill"
OF_KNOTS = "first_knot", "knots", "scores"
OF_ENCODER = tuple(f"stage_{name}" for name in (*OF_ENCODINGS, *OF_KNOTS, "may_miss"))
ARRAYS = OF_ENCODER + OF_TABLE
# For features that look for intervals, missing cells are encoded as -BEYOND_NUMBERS or
# BEYOND_NUMBERS, which float32 holds, and the numbers of such a column must be smaller than
# LARGEST_NUMBER.
BEYOND_NUMBERS = 1e38
LARGEST_NUMBER = BEYOND_NUMBERS / 10
# The (knots, scores) of an encoding that has none.
NO_KNOTS = np.zeros(0), np.zeros(0)
# An encoding that is 0, in place of one that the encoder does not know. Its half range is 1, and
# that of a constant column is 0.
UNKNOWN_ENCODING = {
    "kind": NUMBER,
    "level": 0.0,
    "center": 0.0,
    "unit": 0.0,
    "reach": np.inf,
    "half_range": 1.0,
    "fill": 0.0,
}


@dataclass(frozen=True, eq=False)
class ColumnEncoder:
    """The encoding of the columns of X as the inputs of features.

    It is frozen: part of a model and of its file.

    Each encoding is made of one column, and a column may have several. Its raw value r is what its
    kind says of the cell, and the encoding is u = (r - center) / unit, 0 where unit is 0. Where |u|
    > reach it is reach (2 - reach / |u|) with the sign of u, so that a few outliers do not dominate
    distances and linear functions. See `kinds.py`.

    n_columns : int
        The number of columns of X.
    column, kind, level : ndarray of int, int and float, shape (n_encodings,)
        The column of each encoding, its kind as an index in `KINDS`, and the level at which it is
        1, or the time at which an angle is 0.
    center, unit : ndarray of float, shape (n_encodings,)
        The weighted mean and standard deviation over the training rows, of numbers that are clipped
        at a distance from the median; unit is 0 for a constant.
    reach : ndarray of float, shape (n_encodings,)
        The distance from the center, in units, within which 99.9 % of the training rows lie, or ten
        median absolute deviations if that is more.
    half_range : ndarray of float, shape (n_encodings,)
        Half of the range of the training rows, in units.
    fill : ndarray of float, shape (n_encodings,)
        The encoding of a missing number or time, and of a missing level where the encoding has a
        knot.
    first_knot : ndarray of int, shape (n_encodings + 1,)
        Where the knots of each encoding begin in `knots` and `scores`, and where the knots of the
        last encoding end.
    knots, scores : ndarray of float
        The knots of all encodings, one after the other, and the raw values at them.
    table : Table or None
        The names and levels of the columns. None: all columns are numbers without names.
    may_miss : bool
        Whether rows may have NaN.
    """

    n_columns: int
    column: np.ndarray
    kind: np.ndarray
    level: np.ndarray
    center: np.ndarray
    unit: np.ndarray
    reach: np.ndarray
    half_range: np.ndarray
    fill: np.ndarray
    first_knot: np.ndarray
    knots: np.ndarray
    scores: np.ndarray
    table: Table | None = None
    may_miss: bool = True

    def encoding(self, v: int) -> Encoding:
        """Return encoding v, with all that the encoder says of it."""
        own = slice(*self.first_knot[v : v + 2])
        knots = (self.knots[own], self.scores[own]) if own.stop > own.start else None
        numbers = (float(getattr(self, name)[v]) for name in ("center", "unit", "reach", "fill"))
        return Encoding(
            int(self.column[v]), int(self.kind[v]), float(self.level[v]), knots, *numbers
        )

    def expression(self, v: int) -> Expression:
        """Return encoding v as an expression of its cell."""
        encoding, levels, cells = self.encoding(v), self.levels_of(v), [1.0, np.nan]
        if levels is not None:
            cells = [*range(len(levels)), UNKNOWN, np.nan]
        elif encoding.of_kind.is_continuous:
            cells = []
        X = np.zeros((len(cells), self.n_columns))
        X[:, encoding.column] = cells
        encoded = self.take(np.array([v])).transform(X)[:, 0].tolist() if cells else []
        return encoding.expression(levels, encoded, self.may_miss)

    def of_numbers(self, v: int, low: float, high: float) -> tuple[float, float, bool | None]:
        """Return (low, high, whether a missing cell is inside) for the interval low < u <= high of
        encoding v.

        An end beyond all numbers is replaced by infinity. The last is None where missing cells do
        not lie beyond all numbers.
        """
        fill = float(self.fill[v])
        if abs(fill) != BEYOND_NUMBERS:
            return low, high, None
        ends = [np.copysign(np.inf, x) if abs(x) > LARGEST_NUMBER else x for x in (low, high)]
        return float(ends[0]), float(ends[1]), bool(low < fill <= high)

    def levels_of(self, v: int) -> tuple[Any, ...] | None:
        """Return the levels of the column of encoding v; None where it holds numbers."""
        return None if self.table is None else self.table.levels[int(self.column[v])]

    @cached_property
    def kinds(self) -> list[tuple[Kind, np.ndarray]]:
        """The kinds that occur, each with a mask of its encodings."""
        return [(KINDS[k], self.kind == k) for k in np.unique(self.kind).tolist()]

    def _of_kinds(self, attribute):
        """Return an attribute of the kind of each encoding, as an array."""
        return np.array([getattr(kind, attribute) for kind in KINDS])[self.kind]

    @classmethod
    def from_encodings(
        cls,
        encodings: Sequence[Encoding],
        n_columns: int,
        table: Table | None = None,
        may_miss: bool = True,
    ) -> Self:
        """Return the encoder of some encodings of n_columns columns, with centres 0 and units 1."""
        n = len(encodings)
        first_knot, knots, scores = _pack_knots([each.knots or NO_KNOTS for each in encodings])
        return cls(
            n_columns=n_columns,
            column=np.array([each.column for each in encodings], int),
            kind=np.array([each.kind for each in encodings], int),
            level=np.array([each.level for each in encodings], float),
            center=np.zeros(n),
            unit=np.ones(n),
            reach=np.full(n, np.inf),
            half_range=np.ones(n),
            fill=np.zeros(n),
            first_knot=first_knot,
            knots=knots,
            scores=scores,
            table=table,
            may_miss=may_miss,
        )

    def __post_init__(self) -> None:
        for name in (*OF_ENCODINGS, *OF_KNOTS):
            getattr(self, name).flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:  # unpickled arrays are writable
        self.__dict__.update(state)
        self.__post_init__()

    def __getstate__(self) -> dict[str, Any]:  # without cached properties
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    def __len__(self) -> int:
        return len(self.column)

    def is_same(self, other: ColumnEncoder | None) -> bool:
        """Return whether another encoder, or None, encodes columns in the same way."""
        if other is self or other is None:
            return other is self
        return self.table == other.table and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in (*OF_ENCODINGS, *OF_KNOTS)
        )

    @cached_property
    def is_column_by_column(self) -> bool:
        """Whether there is one encoding of each column, in their order."""
        return np.array_equal(self.column, np.arange(self.n_columns))

    @cached_property
    def keeps_zeros(self) -> bool:
        """Whether all encodings of 0 are 0, so that CSR rows stay sparse."""
        is_centered = bool(((self.center == 0) & np.isinf(self.reach)).all())
        low, high = self.ends.T
        is_at_zero = (np.diff(self.first_knot) == 0) | np.isfinite(low) & (low <= 0) & (high >= 0)
        return is_centered and bool(self._of_kinds("keeps_zero").all() and is_at_zero.all())

    @property
    def is_raw(self) -> bool:
        """Whether numbers are encoded as they are, not in robust units."""
        return bool(np.isinf(self.reach).all())

    @property
    def _is_unscaled(self):
        """A mask of the encodings that are numbers in the units of their columns."""
        has_no_units = (self.center == 0) & (self.unit == 1) & np.isinf(self.reach)
        return (self.kind == NUMBER) & has_no_units

    @property
    def is_itself(self) -> np.ndarray:
        """A mask of the encodings that are numbers as they are, perhaps constant beyond ends."""
        has_no_knots = (np.diff(self.first_knot) == 0) | np.isfinite(self.ends[:, 0])
        return self._is_unscaled & has_no_knots

    @cached_property
    def is_for_intervals(self) -> np.ndarray:
        """A mask of the unscaled numbers of an encoder that also has numbers in robust units: rules
        look for intervals in these."""
        return self._is_unscaled & (not self.is_raw)

    @cached_property
    def is_identity(self) -> bool:
        """Whether the encodings are the columns themselves, and no cell may be missing."""
        return not self.may_miss and self.changes_only_missing_cells

    @cached_property
    def changes_only_missing_cells(self) -> bool:
        """Whether the encodings are the columns themselves, except for missing cells."""
        is_plain = self.is_column_by_column and not len(self.knots)
        return is_plain and bool(self._is_unscaled.all())

    @cached_property
    def turn(self) -> np.ndarray:
        """The angle by which each encoding turns in a day; 0 for encodings that are no cosines."""
        return self._of_kinds("turn")

    @cached_property
    def is_continuous(self) -> np.ndarray:
        """A mask of the encodings that are continuous functions of a number.

        They are the number itself, in any form, and angles.
        """
        return self._of_kinds("is_continuous")

    @cached_property
    def is_curved(self) -> np.ndarray:
        """A mask of the encodings that are curved also within their reach."""
        return self._of_kinds("is_curved")

    @cached_property
    def rises(self) -> np.ndarray:
        """A mask of the encodings that, knots aside, never fall where their column rises."""
        return self._of_kinds("rises")

    def take(self, places: np.ndarray) -> ColumnEncoder:
        """Return the encoder of the encodings at these places."""
        sizes = np.diff(self.first_knot)[places]
        first = np.concatenate([[0], np.cumsum(sizes)])
        knots = np.arange(first[-1]) + np.repeat(self.first_knot[:-1][places] - first[:-1], sizes)
        arrays = {name: getattr(self, name)[places] for name in OF_ENCODINGS}
        arrays |= {"first_knot": first, "knots": self.knots[knots], "scores": self.scores[knots]}
        return replace(self, **arrays)

    def joined(self, other: ColumnEncoder) -> ColumnEncoder:
        """Return the encoder of these encodings, and then those of another of the same columns."""
        names = (*OF_ENCODINGS, "knots", "scores")
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in names}
        arrays = {name: np.concatenate(pair) for name, pair in pairs.items()}
        first = np.concatenate([self.first_knot, self.first_knot[-1] + other.first_knot[1:]])
        return replace(self, **arrays, first_knot=first)

    def only(self, is_used: np.ndarray) -> ColumnEncoder:
        """Return the encoder in which encodings that are not used are 0.

        It holds nothing of the training rows about these.

        is_used : a mask of the encodings. Of a column without any used encoding the table keeps
            only the name, and whether it holds numbers.
        """
        if is_used.all():
            return self
        arrays = {
            name: np.where(is_used, getattr(self, name), value)
            for name, value in UNKNOWN_ENCODING.items()
        }
        without = dict.fromkeys(np.flatnonzero(~is_used).tolist(), NO_KNOTS)
        columns = np.zeros(self.n_columns, bool)
        columns[self.column[is_used]] = True
        table = None if self.table is None else self.table.only(columns)
        return replace(self._with_knots(without), **arrays, table=table)

    @property
    def is_whole(self) -> bool:
        """Whether the encoder knows all its encodings, none of which `only` has replaced."""
        return not ((self.unit == 0) & (self.half_range == UNKNOWN_ENCODING["half_range"])).any()

    def held(self, ends: np.ndarray) -> ColumnEncoder:
        """Return the encoder with numbers that are constant beyond the ends (low, high) of each
        encoding, by a knot at each end whose score is the knot itself.

        Not held are encodings with an infinite end, or whose ends are farther apart than the
        largest float.
        """
        near = ends[:, 1] / 2 - ends[:, 0] / 2 < np.finfo(float).max / 2
        held = near & self.rises & (np.diff(self.first_knot) == 0) & (self.unit > 0)
        given = {v: (np.unique(ends[v]),) * 2 for v in np.flatnonzero(held).tolist()}
        return self._with_knots(given) if given else self

    def flattened(self, ends: np.ndarray) -> ColumnEncoder:
        """Return the encoder that is constant beyond the ends (low, high) of each encoding.

        The knots of an encoding are those between its ends, and one at each end. Encodings with
        infinite ends stay, and so do those that do not rise with a number.
        """
        given = {}
        for v in np.flatnonzero(np.isfinite(ends).all(axis=1) & self.rises).tolist():
            knots, scores = self.encoding(v).knots or (ends[v], ends[v])
            low, high = np.clip(ends[v], knots[0], knots[-1])
            cut = np.unique([low, *knots[(low < knots) & (knots < high)], high])
            is_number = np.array_equal(knots, scores)  # which interpolation would round
            given[v] = cut, cut if is_number else np.interp(cut, knots, scores)
        return self._with_knots(given) if given else self

    @cached_property
    def ends(self) -> np.ndarray:
        """The numbers between which each encoding is `held`, (n_encodings, 2); infinite where it is
        not."""
        ends = np.tile([-np.inf, np.inf], (len(self), 1))
        for v in np.flatnonzero(np.diff(self.first_knot)).tolist():
            encoding = self.encoding(v)
            if encoding.is_held:
                ends[v] = encoding.knots[0][[0, -1]]
        return ends

    @property
    def released(self) -> ColumnEncoder:
        """The encoder without the knots of `held`, for a fit to other rows."""
        held = np.flatnonzero(np.isfinite(self.ends[:, 0])).tolist()
        return self._with_knots(dict.fromkeys(held, NO_KNOTS)) if held else self

    @cached_property
    def in_knots(self) -> ColumnEncoder:
        """The encoder that encodes rows alike, but has levels with a knot as numbers, with a knot
        at each level: as the kernels read them."""
        levels = np.flatnonzero((self.kind == LEVEL) & (np.diff(self.first_knot) > 0))
        if not len(levels):
            return self
        kind, given = self.kind.copy(), {}
        for v in levels.tolist():
            knots = np.arange(UNKNOWN, len(self.table.levels[self.column[v]]))
            given[v] = knots, np.append(self.scores[self.first_knot[v]], knots[1:] == self.level[v])
        kind[levels] = NUMBER
        return replace(self._with_knots(given), kind=kind)

    def _with_knots(self, given):
        """Return the encoder with {encoding: (knots, scores)} in place of its own knots."""
        pairs = []
        for v in range(len(self)):
            own = slice(self.first_knot[v], self.first_knot[v + 1])
            pairs.append(given.get(v) or (self.knots[own], self.scores[own]))
        first, knots, scores = _pack_knots(pairs)
        return replace(self, first_knot=first, knots=knots, scores=scores)

    @cached_property
    def arithmetic(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The arrays (power, center, factor, reach) of u = (power r - center) factor.

        With powers of two nothing overflows.
        """
        power, center, factor = arithmetic(self.center, self.unit)
        return power, center, factor, np.where(factor > 0, self.reach, 1.0)

    @cached_property
    def _is_compiled(self):
        """Whether the compiled encoder knows all kinds."""
        return self.kind.max(initial=0) < len(COMPILED_KINDS)

    @cached_property
    def _kernel(self):
        """The compiled encoder of dense rows in memory."""
        encoder = self.in_knots
        return Views(
            np.ascontiguousarray(encoder.column, np.int32),
            np.ascontiguousarray(encoder.kind, np.int32),
            np.ascontiguousarray(encoder.first_knot, np.int32),
            encoder.level,
            np.stack([*self.arithmetic, self.fill]),
            np.stack([encoder.knots, encoder.scores]),
        )

    def transform(self, X: Array) -> Array:
        """Return the encodings of rows of X, a new array (n_rows, n_encodings).

        It has the dtype, namespace and device of X.

        The encodings of CSR rows are CSR if zeros are encoded as 0, and dense otherwise.
        """
        if is_sparse(X):
            if self.keeps_zeros:
                return self._transform_sparse(X)
            X = X.toarray()
        if not isinstance(X, np.ndarray):
            return self.in_knots._transform_in_namespace(X, *namespace_of(X))
        if not self._is_compiled:
            return self.in_knots._transform_in_namespace(X, np, None)
        out = np.empty((len(X), len(self)), X.dtype)
        self._kernel.show(X, out)
        return out

    def _transform_sparse(self, X):
        """Encode CSR rows where zeros stay zeros: numbers, clipped and divided by their units."""
        seen = X[:, self.column]
        seen.sort_indices()
        x, unit = np.clip(seen.data, *self.ends[seen.indices].T), self.unit[seen.indices]
        with np.errstate(over="ignore"):
            u = np.divide(x, unit, out=np.zeros(len(x)), where=unit > 0)
            seen.data = u.astype(X.dtype)
        return seen

    def _transform_in_namespace(self, X, xp, device):
        """Encode rows in an array namespace, on their device."""
        power, center, factor, reach, level, fill = (
            from_host(array, xp, device) for array in (*self.arithmetic, self.level, self.fill)
        )
        column, is_continuous = (
            from_host(a, xp, device) for a in (self.column.astype(np.int64), self.is_continuous)
        )
        kinds = [(kind, from_host(is_it, xp, device)) for kind, is_it in self.kinds]
        x = xp.astype(xp.take(X, column, axis=1), power.dtype)
        is_missing = xp.isnan(x)
        r = self._between_knots(xp.where(is_missing, xp.zeros_like(x), x), xp, device)
        for kind, is_it in kinds:
            r = r if kind.is_number else xp.where(is_it, kind.raw(x, level, xp), r)
        with np.errstate(over="ignore", invalid="ignore"):
            u = (r * power - center) * factor
            size = xp.abs(u)
            u = xp.where(
                size > reach, xp.sign(u) * reach * (2 - reach / xp.maximum(size, reach)), u
            )
        return xp.astype(xp.where(is_continuous & is_missing, fill, u), X.dtype)

    def _between_knots(self, x, xp, device):
        """Return x, (n_rows, n_encodings), interpolated where an encoding has knots."""
        columns = [x[:, v] for v in range(len(self))] if len(self.knots) else []
        for v in np.flatnonzero(np.diff(self.first_knot)):
            of_v = slice(self.first_knot[v], self.first_knot[v + 1])
            last = int(of_v.stop - of_v.start) - 1
            knots, scores = (
                from_host(a[of_v].copy(), xp, device) for a in (self.knots, self.scores)
            )
            if np.isfinite(self.ends[v, 0]):
                columns[v] = xp.clip(columns[v], *self.ends[v].tolist())
                continue
            at = xp.clip(xp.searchsorted(knots, columns[v]), 1, max(1, last))
            left, right = xp.take(knots, at - 1), xp.take(knots, xp.clip(at, 0, last))
            share = xp.clip(
                (columns[v] - left) / xp.where(right > left, right - left, xp.ones_like(left)),
                0.0,
                1.0,
            )
            low, high = xp.take(scores, at - 1), xp.take(scores, xp.clip(at, 0, last))
            columns[v] = low + share * (high - low)
        return xp.stack(columns, axis=1) if columns else x

    def names(self, columns: Sequence[str]) -> list[str]:
        """Return a name for each encoding, from the names of the columns."""
        each = zip(self.column.tolist(), self.kind.tolist(), self.level.tolist(), strict=True)
        return [
            KINDS[kind].label(columns[j], level, self.levels_of(v))
            for v, (j, kind, level) in enumerate(each)
        ]

    def n_numbers(self, is_used: np.ndarray) -> int:
        """Return how many numbers, such as centres and quantiles, define the encodings of a mask:
        their columns, and what differs from an encoding that is the column itself."""
        changed = [self.center != 0, self.unit != 1, np.isfinite(self.reach), self.fill != 0]
        n_knots = np.bincount(
            np.repeat(np.arange(len(self)), np.diff(self.first_knot)),
            1 + (self.scores != self.knots),
            len(self),
        )
        return int((1 + np.sum([*changed, self.kind != NUMBER], axis=0) + n_knots)[is_used].sum())

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that a model's file holds of the encoder."""
        finite = {
            "reach": np.where(np.isinf(self.reach), -1.0, self.reach),
            "may_miss": np.array([int(self.may_miss)]),
            "kind": IN_FILES[self.kind],
        }
        own = {name: getattr(self, name) for name in (*OF_ENCODINGS, *OF_KNOTS)}
        arrays = {f"stage_{name}": array for name, array in (own | finite).items()}
        return arrays if self.table is None else arrays | self.table.to_arrays()

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_columns: int) -> ColumnEncoder | None:
        """Return the encoder that `to_arrays` wrote, or None if there is none.

        The file is not trusted.
        """
        if not any(name in arrays for name in ARRAYS):
            return None
        whole = {
            name: integers(arrays, f"stage_{name}")
            for name in ("column", "kind", "first_knot", "may_miss")
        }
        numbers = {
            name: floats(arrays, f"stage_{name}")
            for name in (*OF_ENCODINGS, *OF_KNOTS)
            if name not in whole
        }
        may_miss, kind = whole.pop("may_miss"), whole["kind"]
        require(bool(np.isin(kind, IN_FILES).all()), "stage_kind")
        whole["kind"] = np.searchsorted(IN_FILES, kind)
        require(len(may_miss) == 1 and may_miss[0] in (0, 1), "stage_may_miss")
        numbers["reach"] = np.where(numbers["reach"] == -1, np.inf, numbers["reach"])
        encoder = cls(
            n_columns,
            **whole,
            **numbers,
            table=Table.from_arrays(arrays),
            may_miss=bool(may_miss[0]),
        )
        encoder._check()
        return encoder

    def _check(self):
        """Check that the arrays of an encoder from a file fit together."""
        n, first = len(self), self.first_knot
        require(
            all(getattr(self, name).shape == (n,) for name in OF_ENCODINGS)
            and first.shape == (n + 1,),
            "stage",
        )
        require(bool(((self.column >= 0) & (self.column < self.n_columns)).all()), "stage_column")
        require(
            bool((self.unit >= 0).all() and ((self.reach > 0) | (self.unit == 0)).all()), "stage"
        )
        require(
            self.knots.shape == self.scores.shape == (first[-1],) and first[0] == 0, "stage_knots"
        )
        require(bool((np.diff(first) >= 0).all()), "stage_first_knot")
        same = np.delete(
            np.diff(self.knots) > 0, first[1:-1][(first[1:-1] > 0) & (first[1:-1] < first[-1])] - 1
        )
        require(bool(same.all()), "stage_knots")
        levels = None if self.table is None else self.table.levels
        require(levels is None or len(levels) == self.n_columns, "table")
        for kind, is_it in self.kinds:
            for v in [] if kind.is_number else np.flatnonzero(is_it):
                kind.check(
                    self.levels_of(v),
                    self.level[v],
                    self.knots[slice(*first[v : v + 2])],
                    self.reach[v],
                )


def _pack_knots(pairs):
    """Return a `ColumnEncoder`'s (first_knot, knots, scores) from each encoding's (knots,
    scores)."""
    first, all_knots, all_scores = [0], [np.zeros(0)], [np.zeros(0)]
    for knots, scores in pairs:
        first.append(first[-1] + len(knots))
        all_knots.append(knots)
        all_scores.append(scores)
    return np.array(first), np.concatenate(all_knots), np.concatenate(all_scores)


class EncodedMatrix:
    """The encodings of all rows of X, a matrix whose rows are computed at `encoded[rows]`."""

    shape: tuple[int, int]
    dtype: np.dtype

    def __init__(self, X: Array, encoder: ColumnEncoder):
        self._X, self._encoder = X, encoder
        self.shape, self.dtype = (X.shape[0], len(encoder)), X.dtype
        self.size: int = self.shape[0] * self.shape[1]

    def __getitem__(self, rows: slice | np.ndarray) -> Array:
        return self._encoder.transform(self._X[rows])
