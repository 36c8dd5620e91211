"""The table: names of columns and levels of categories, which turn cells into numbers.

Arrays with categories are treated in the same way. Cells of a column of numbers stay numbers, cells
of a category become the numbers of their levels, and missing cells become NaN.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from numbers import Integral, Number
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._base.checks import LARGEST_EXACT, warn_of_lost_integers
from .._base.npz import integers, require
from .._base.warnings import warn
from .._core.checks import are_finite
from .clocks import KINDS_OF_CLOCKS, Clock, Times
from .frames import (
    Columns,
    cells_of,
    in_their_order,
    integers_of,
    is_categorical,
    kind_of,
    label,
    level_cells,
    level_keys,
    listing,
    narrow_float,
    numbers_of,
    own_order,
)
from .places import find_columns
from .text_numbers import is_date, numbers_as_text

if TYPE_CHECKING:
    from collections.abc import Mapping

# The argument categorical of fits: names or indices of columns, or a mask.
Categorical: TypeAlias = Sequence[str] | Sequence[int] | Sequence[bool] | np.ndarray | None

UNKNOWN = -1.0  # the number of a level that no training row has
# In at most this many rows all words of a column may differ by chance.
ROWS_DISTINCT_BY_CHANCE = 10
# The least positive number of full precision in float32.
LEAST_SINGLE = float(np.finfo(np.float32).tiny)
EXACT = 2**24  # the number of levels up to which float32 holds their numbers exactly
# The types of levels: {type: the types of cells that become levels of this type}.
PLAIN: dict[type, Any] = {
    str: str,
    bool: (bool, np.bool_),
    int: (Integral, np.bool_),
    float: Number,
}
# The arrays of a table in a model's file: the kind of each column (an index in PLAIN for a
# category, -1 for numbers, -2, -3 or -4 for one of KINDS_OF_CLOCKS, FLAG for booleans); how many
# levels it has; the names of the columns, if they have names, and all levels, as one text; and the
# end of each string in the text. The time zone of a column of dates is written as its one level.
ARRAYS = "table_kind", "table_size", "table_text", "table_end"
FLAG = -2 - len(KINDS_OF_CLOCKS)


@dataclass(frozen=True)
class Table:
    """The names of the columns of the training rows, and the levels of categories.

    It is frozen: part of a model and of its file.

    names : tuple of str, or None
        The names of the columns; None for an array, whose columns have no names.
    levels : tuple with an entry for each column
        None for a column of numbers. For a category its levels in the training rows, all str, int,
        float or bool: sorted, or in the order that the frame gives them.
    clocks : {column: Clock}
        What the numbers of columns of dates, durations and times of day stand for.
    flags : set of columns
        Those that hold booleans, whose numbers are 0 and 1.
    """

    names: tuple[str, ...] | None
    levels: tuple[tuple[Any, ...] | None, ...]
    clocks: Mapping[int, Clock] = field(default_factory=dict)
    flags: frozenset[int] = frozenset()

    @cached_property
    def is_numeric(self) -> bool:
        """Whether all columns hold numbers, and none times."""
        return all(levels is None for levels in self.levels) and not self.clocks

    def __getstate__(self) -> dict[str, Any]:  # without cached properties
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    @classmethod
    def learn(cls, X: Any, categorical: Categorical = None) -> tuple[np.ndarray, Table]:
        """Return (the training rows as numbers, an ndarray of the shape of X; their Table).

        The numbers are float32 where all columns of numbers are, and float64 otherwise. Time O(1)
        for each cell; memory of one column as Python objects beside the result, and of few rows a
        second copy. Cells are looked up in a dictionary of the levels, which is faster than sorting
        them.

        Parameters
        ----------
        X : data frame, or ndarray of shape (n_samples, n_features)
            In a frame, columns of strings, categoricals and enums are categories; columns of
            numbers, decimals and booleans are numbers, booleans 0 and 1; dates, durations and times
            of day become numbers of days (see `clocks.py`), in float64; of columns of objects, the
            cells decide. The levels of a categorical are its categories, as text where these are
            not all strings or all numbers, such as the intervals of `pandas.cut`. A column in which
            all cells are missing, and whose dtype is not numeric, is a category without levels.
            Sparse columns become dense. The index of pandas is not read.
        categorical : None, or a sequence of names or indices of columns, or a mask
            These columns are categories, whatever they hold.

        Raises
        ------
        TypeError
            A column of lists or other things that are neither numbers, strings nor times, or of two
            of these; a category of times.
        ValueError
            No rows, no columns, equal names, an infinite number, dates in several time zones, or a
            column in `categorical` that X lacks.

        Examples
        --------
        >>> import numpy as np
        >>> X, table = Table.learn(
        ...     np.array([[2.5, "b"], [None, "a"], [1.0, None]], object), categorical=[1]
        ... )
        >>> X
        array([[2.5, 1. ],
               [nan, 0. ],
               [1. , nan]])
        >>> table.levels
        (None, ('a', 'b'))
        """
        columns = Columns(X)
        names, n_rows = columns.names, columns.n_rows
        if not (n_rows and len(columns)):
            raise ValueError(
                f"X must have at least one row and one column, got shape {(n_rows, len(columns))}"
            )
        chosen = chosen_columns(categorical, names, len(columns))
        is_alone = np.ones(len(columns), bool)
        is_alone[columns.plain] = False
        is_alone[list(chosen)] = True
        levels: list[tuple[Any, ...] | None] = [None] * len(columns)
        alone, clocks = {}, {}
        for k in np.flatnonzero(is_alone).tolist():
            alone[k], levels[k], clock = learn_column(
                label(names, k), columns[k], k in chosen, names is not None
            )
            if clock is not None:
                clocks[k] = clock
        for k in (k for k in alone if k not in chosen and not is_categorical(columns[k])):
            count = (
                np.bincount(alone[k][~np.isnan(alone[k])].astype(int)).tolist() if levels[k] else []
            )
            warn_of_words(label(names, k), dict(zip(levels[k] or (), count, strict=True)), n_rows)
        return _matrix(columns, np.arange(len(columns)), alone, levels), cls(
            names, tuple(levels), clocks, columns.booleans - chosen
        )

    def read(self, X: Any) -> np.ndarray:
        """Return rows to predict as an ndarray of numbers, as `learn` does for training rows;
        levels that the table does not know become -1.

        The columns of a frame are found by their names, in any order, and others are not read; by
        their positions if X or the training rows have no names. Levels that are numbers are found
        as `LevelNumbers` says. Raises ValueError if columns are missing or, by positions, too many;
        and TypeError if a column holds strings in place of numbers, or numbers in place of strings.
        """
        columns = Columns(X)
        places = self.places(columns.names, len(columns))
        is_alone = ~np.isin(places, columns.plain) | self._is_special
        alone = {
            j: read_column(
                label(columns.names, k),
                columns[k],
                self.levels[j],
                self._numbers[j],
                self.clocks.get(j),
            )
            for j in np.flatnonzero(is_alone).tolist()
            for k in [places[j]]
        }
        return _matrix(columns, places, alone, self.levels)

    def for_rows(self, X: np.ndarray) -> tuple[np.ndarray, Table]:
        """Return (X, the table) for some of the rows that `learn` returned, without the levels that
        do not occur in these."""
        levels = list(self.levels)
        for j in (j for j, of_column in enumerate(levels) if of_column):
            code = np.where(np.isnan(X[:, j]), len(levels[j]), X[:, j]).astype(np.intp)
            there = np.bincount(code, minlength=len(levels[j]) + 1)[:-1] > 0
            if not there.all():
                X = X.copy() if levels == list(self.levels) else X
                X[:, j] = np.append(there.cumsum() - 1.0, np.nan)[code]
                levels[j] = tuple(
                    level for level, is_there in zip(levels[j], there, strict=True) if is_there
                )
        return X, replace(self, levels=tuple(levels))

    def only(self, is_used: np.ndarray) -> Table:
        """Return the table without the levels of columns that are not used.

        Categories of numbers become columns of numbers.

        is_used : a mask of the columns
        """
        levels = (
            of_column
            if of_column is None or used
            else ()
            if kind_of(of_column) in (None, "strings")
            else None
            for of_column, used in zip(self.levels, is_used.tolist(), strict=True)
        )
        return replace(self, levels=tuple(levels))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that a model's file holds of the table."""
        kind = [
            -1 if levels is None else list(PLAIN).index(type(levels[0]) if levels else str)
            for levels in self.levels
        ]
        texts = list(self.levels)
        for j, clock in self.clocks.items():
            kind[j] = -2 - KINDS_OF_CLOCKS.index(clock.kind)
            texts[j] = (clock.zone,) if clock.zone else ()
        for j in self.flags:
            kind[j] = FLAG
        levels = [level for of_column in texts for level in of_column or ()]
        cells = [
            str(cell).encode("utf-8", "surrogatepass") for cell in (*(self.names or ()), *levels)
        ]
        size = [len(of_column or ()) for of_column in texts]
        end = np.cumsum([len(cell) for cell in cells])
        text = np.frombuffer(b"".join(cells), np.uint8)
        return dict(
            zip(
                ARRAYS,
                (np.array(kind, np.int64), np.array(size, np.int64), text, end.astype(np.int64)),
                strict=True,
            )
        )

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Table | None:
        """Return the table that `to_arrays` wrote, or None if there is none.

        The file is not trusted.
        """
        if not any(name in arrays for name in ARRAYS):
            return None
        kind, size, end = (integers(arrays, f"table_{name}") for name in ("kind", "size", "end"))
        text = arrays["table_text"]
        n = len(kind)
        require(n > 0 and bool(((kind >= FLAG) & (kind < len(PLAIN))).all()), "table_kind")
        most = np.where(kind >= 0, len(end), kind == -2)
        require(len(size) == n and bool(((size >= 0) & (size <= most)).all()), "table_size")
        n_names = len(end) - int(size.sum())
        require(n_names in (0, n), "table_end")
        cells = _split_text(text, end)
        names, starts = cells[:n_names], n_names + np.cumsum([0, *size])
        texts = [cells[slice(*starts[k : k + 2])] for k in range(n)]
        levels = [_levels_from_text(of_column, kind[k]) for k, of_column in enumerate(texts)]
        require(
            all(len(set(each or ())) == len(each or ()) for each in (names, *levels)), "table_text"
        )
        clocks = {
            k: Clock(KINDS_OF_CLOCKS[-2 - kind[k]], *texts[k])
            for k in np.flatnonzero((kind < -1) & (kind > FLAG)).tolist()
        }
        flags = frozenset(np.flatnonzero(kind == FLAG).tolist())
        return cls(tuple(names) or None, tuple(levels), clocks, flags)

    @cached_property
    def _is_special(self):
        """A mask of the columns that are categories or times."""
        return np.array(
            [levels is not None or j in self.clocks for j, levels in enumerate(self.levels)], bool
        )

    @cached_property
    def _numbers(self):
        """The `LevelNumbers` of each category, None for each column of numbers."""
        return [None if levels is None else LevelNumbers(levels) for levels in self.levels]

    def places(self, names: tuple[str, ...] | None, n: int) -> np.ndarray:
        """Return the place in X of each column of this table, by the names of X's n columns."""
        if names is not None and self.names is not None and names != self.names:
            place = {name: k for k, name in enumerate(names)}
            lacking = [name for name in self.names if name not in place]
            if lacking:
                raise ValueError(f"X lacks the columns {listing(lacking)}")
            return np.array([place[name] for name in self.names])
        if n != len(self.levels):
            raise ValueError(f"X must have {len(self.levels)} columns, got {n}")
        return np.arange(n)


def _split_text(text, end):
    """Split a text into its strings, given the positions where they end."""
    require(text.dtype == np.uint8 and text.ndim == 1, "table_text")
    ends = np.concatenate([[0], end])
    require(
        ends[-1] == len(text) and bool((np.diff(ends) >= 0).all()) and ends.min() == 0, "table_end"
    )
    text, ends = text.tobytes(), ends.tolist()
    return [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]


def _levels_from_text(cells, kind):
    """Return the levels of a column from the strings in a file.

    kind : an index in PLAIN, or -1 for numbers
    """
    if kind < 0:
        return None
    plain = list(PLAIN)[kind]
    levels = tuple(
        map({"True": True, "False": False}.__getitem__ if plain is bool else plain, cells)
    )
    require(
        list(map(str, levels)) == cells and (plain is not float or bool(np.isfinite(levels).all())),
        "table_text",
    )
    return levels


def chosen_columns(categorical: Categorical, names: Sequence[str] | None, n: int) -> set[int]:
    """Return the set of indices of the columns that the user's argument `categorical` lists."""
    if categorical is None:
        return set()
    if isinstance(categorical, (str, bytes)) or not hasattr(categorical, "__iter__"):
        raise TypeError(
            "categorical must be a sequence of names or indices of columns, or a mask, got "
            f"{categorical!r}"
        )
    entries = list(categorical)
    if entries and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        if len(entries) != n:
            raise ValueError(
                f"categorical must have an entry for each of the {n} columns of X, got "
                f"{len(entries)}"
            )
        return set(np.flatnonzero(entries).tolist())
    return set(find_columns("categorical", entries, names, n))


def learn_column(
    where: str, column: Any, is_chosen: bool, strings_are_categories: bool = False
) -> tuple[np.ndarray, tuple[Any, ...] | None, Clock | None]:
    """Return (a training column as numbers, its levels, its clock).

    Columns of numbers and times have None for levels, and columns other than times None for a
    clock.

    where : how errors name the column
    is_chosen : whether the user lists it in `categorical`
    strings_are_categories : whether a column of strings is a category though it is not listed
    """
    is_category = is_chosen or is_categorical(column)
    cells = cells_of(where, column, is_category)
    if isinstance(cells, Times):
        check_not_chosen(where, cells.clock, is_chosen)
        return cells.days, None, cells.clock
    kind = kind_of(cells)
    if not is_category and (kind == "numbers" or not strings_are_categories):
        if kind == "strings":
            raise TypeError(f"{where} holds strings: list it in categorical, or make it numbers")
        return numbers_of(where, cells), None, None
    keys = level_keys(where, cells)
    present = set(keys) - {None}
    levels = levels_of(present, set(map(type, present)), ordered_keys(where, column, kind))
    return _codes(keys, LevelNumbers(levels)), levels, None


def check_not_chosen(where: str, clock: Clock, is_chosen: bool) -> None:
    """Check that the user does not list a column of times in `categorical`."""
    if is_chosen:
        raise TypeError(
            f"{where} holds categories that are {clock.kind}: leave it out of categorical, or make "
            "strings of them"
        )


def ordered_keys(where: str, column: Any, kind: str | None) -> list[Any] | None:
    """Return the keys of all categories of a column in their order, or None if they have none.

    kind : whether its cells are read as "numbers" or "strings"
    """
    order = own_order(column)
    order = in_their_order(column) if order is None and kind == "strings" else order
    if order is None:
        return None
    return list(dict.fromkeys(level_keys(where, level_cells(where, list(order)))))


def levels_of(present: set[Any], kinds: set[type], order: Sequence[Any] | None) -> tuple[Any, ...]:
    """Return the levels that are present as levels of one of the PLAIN types, sorted.

    kinds : the types of the levels
    order : all levels in another order, or None
    """
    plain = next(
        plain
        for plain, stands_for in PLAIN.items()
        if all(issubclass(kind, stands_for) for kind in kinds)
    )
    levels = sorted(present) if order is None else [each for each in order if each in present]
    return tuple(map(plain, levels))


def warn_of_words(where: str, count: Mapping[Any, int], n_rows: int) -> None:
    """Warn of a column whose words are nearly all numbers, all dates, or differ in each row. It is
    not called for columns that the user lists as categories.

    count : how many cells each of its words has
    """
    are_text = isinstance(next(iter(count), None), str)
    found = numbers_as_text(count) if are_text else None
    if found is not None:
        others, example = found
        but = f" but {listing(others)}" if others else ""
        warn(
            f"{where} holds words, and all{but} are numbers, such as {example!r}: it becomes a "
            f"category of {len(count)} levels. Make it numbers, with missing cells where there is "
            "none (pandas.to_numeric with errors='coerce', without separators and units), or list "
            "it in categorical",
            UserWarning,
        )
    elif are_text and len(count) > ROWS_DISTINCT_BY_CHANCE and all(map(is_date, count)):
        warn(
            f"{where} holds words that are dates, such as {next(iter(count))!r}: it becomes a "
            f"category of {len(count)} levels, and other dates are unknown levels. Make it dates "
            "(pandas.to_datetime), or list it in categorical",
            UserWarning,
        )
    elif len(count) == n_rows > ROWS_DISTINCT_BY_CHANCE:
        useless = "holds words that are others in each row, and are of no use in other rows"
        warn(f"{where} {useless}: leave it out, or make numbers of it", UserWarning)


def read_column(
    where: str,
    column: Any,
    levels: tuple[Any, ...] | None,
    number: LevelNumbers | None,
    clock: Clock | None = None,
) -> np.ndarray:
    """Return a column of rows to predict as numbers.

    levels, number : the levels of the training column, and their `LevelNumbers`; both None for a
        column of numbers
    clock : the clock of a training column of times; None for other columns
    """
    cells = cells_of(where, column, levels is not None, clock and clock.zone)
    kind, was = kind_of(cells), "numbers" if levels is None else kind_of(levels)
    if clock is not None:
        was = str(clock)
        kind = None if kind == "numbers" and np.isnan(numbers_of(where, cells)).all() else kind
    # of a category of words and numbers, rows to predict may have only numbers
    if (kind, was) == ("numbers", "strings") and is_categorical(column):
        words = [None if cell is None else str(cell) for cell in cells]
        cells, kind = (
            (words, was) if not number.keys().isdisjoint(set(words) - {None}) else (cells, kind)
        )
    if None not in (kind, was) and kind != was:
        other = ValueError if kind.startswith("dates") and was.startswith("dates") else TypeError
        raise other(f"{where} holds {kind}, and held {was} when the model was fitted")
    if kind is None:
        return np.full(len(column), np.nan)
    if levels is None:
        return numbers_of(where, cells)
    narrow = narrow_float(column)
    return _codes(
        level_keys(where, cells), number if narrow is None else LevelNumbers(levels, narrow)
    )


class LevelNumbers(dict[Any, float]):
    """{level: its number}, NaN for a missing cell, None, and UNKNOWN for a cell that is no level.

    Rows may be float32 or float64, whatever the training rows were. So a cell that is not exactly a
    level, such as .1, also counts as one if both are equal in float32, for levels of `in_float32`.

    cells : the dtype of the cells, if it is narrower than float64: all levels are then rounded to
        it, so that large whole numbers are found, too
    """

    def __init__(self, levels: Sequence[Any], cells: np.dtype | None = None):
        super().__init__((level, float(number)) for number, level in enumerate(levels))
        self._near = {rounded: self[level] for level, rounded in in_float32(levels).items()}
        if cells is not None and levels and not isinstance(levels[0], str):
            with np.errstate(over="ignore"):
                rounded = np.array([float(level) for level in levels]).astype(cells).tolist()
                count = Counter()
            count.update(rounded)
            for level, each in zip(levels, rounded, strict=True):
                if count[each] == 1:
                    self.setdefault(each, self[level])
        self[None] = np.nan

    def __missing__(self, cell: Any) -> float:
        if self._near and not isinstance(cell, str):
            return self._near.get(_single(cell), UNKNOWN)
        return UNKNOWN


def in_float32(levels: Sequence[Any]) -> dict[Any, float]:
    """Return {level: its number in float32} of the levels that any number with the same float32
    stands for.

    These are levels that are no whole numbers, and equal to no other level in float32. Whole
    numbers may be codes that differ in one digit, and most of them are exact.
    """
    if not levels or isinstance(levels[0], str):
        return {}
    rounded = [_single(level) for level in levels]
    count = Counter(rounded)
    return {
        level: each
        for level, each in zip(levels, rounded, strict=True)
        if count[each] == 1 and LEAST_SINGLE <= abs(each) < np.inf and float(level) != int(level)
    }


def numbers_rounded_to(single: float) -> tuple[float, float]:
    """Return the least and the largest float64 number that rounds to a number of float32."""
    ends = []
    for to in (-np.inf, np.inf):
        middle = (single + float(np.nextafter(np.float32(single), np.float32(to)))) / 2
        ends.append(middle if _single(middle) == single else float(np.nextafter(middle, single)))
    return ends[0], ends[1]


@np.errstate(over="ignore")
def _single(number):
    """Return a number as float32 holds it."""
    try:
        return float(np.float32(number))
    except OverflowError:  # an integer beyond all floats
        return np.inf


def _codes(keys, number):
    """Return the numbers of cells by their `LevelNumbers`."""
    return np.fromiter(map(number.__getitem__, keys), np.float64, len(keys))


def _matrix(columns, places, alone, levels):
    """Return columns side by side, as float32 if this holds all of them exactly.

    places : the place in X of each column of the result
    alone : {column of the result: the column as numbers}; all others are among the plain numbers of
        X
    levels : for each column of the result its levels, None for numbers
    """
    together = np.ones(len(levels), bool)
    together[list(alone)] = False
    place_of = np.zeros(len(columns), int)
    place_of[columns.plain] = np.arange(len(columns.plain))
    kinds = {column.dtype for j, column in alone.items() if levels[j] is None}
    kinds |= {columns.numbers.dtype} if together.any() else set()
    is_single = kinds == {np.dtype(np.float32)} and all(
        each is None or len(each) <= EXACT for each in levels
    )
    X = np.empty((columns.n_rows, len(levels)), np.float32 if is_single else np.float64)
    X[:, together] = columns.numbers[:, place_of[places[together]]]
    # a long double may be too large: it becomes infinite, and is refused
    with np.errstate(over="ignore"):
        for j, column in alone.items():
            X[:, j] = column
    is_number = np.array([each is None for each in levels], bool)
    for j in np.flatnonzero(
        is_number & (np.fmax.reduce(np.abs(X), axis=0, initial=0) >= LARGEST_EXACT)
    ).tolist():
        warn_of_lost_integers(label(columns.names, places[j]), integers_of(columns[places[j]]))
    if not are_finite(X, True):
        for j in np.flatnonzero(np.isinf(X).any(axis=0)).tolist():
            numbers_of(label(columns.names, places[j]), X[:, j])
    return X
