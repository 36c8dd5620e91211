"""The table: the names of columns and the levels of categories, by which the cells of a data frame become numbers.

Arrays with categories are treated in the same way. Cells of a column of numbers stay numbers, cells of a category become
the numbers of their levels, and missing cells become NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, repeat
from numbers import Integral, Number
from typing import Any, TypeAlias

import numpy as np

from .._base.npz import integers, require
from .._base.warnings import warn
from .frames import cells_of, is_categorical, keys_of, kind_of, label, listing, numbers_of, open_columns, own_order
from .frames import is_frame as is_frame

# The argument categorical of fits: names or indices of columns, or a mask.
Categorical: TypeAlias = Sequence[str] | Sequence[int] | Sequence[bool] | np.ndarray | None

UNKNOWN = -1.0  # the number of a level that no training row has
ROWS_DISTINCT_BY_CHANCE = 10  # the most rows in which all words of a column may differ by chance
EXACT = 2**24  # the number of levels up to which float32 holds their numbers exactly
# The types of levels: {type: the types of cells that become levels of this type}.
PLAIN: dict[type, Any] = {str: str, bool: (bool, np.bool_), int: (Integral, np.bool_), float: Number}
# The arrays of a table in a model's file: the kind of each column, an index in PLAIN or -1 for numbers; how many levels it has;
# the names of the columns, if they have names, and all levels, as one text; and the end of each string in the text.
ARRAYS = "table_kind", "table_size", "table_text", "table_end"


@dataclass(frozen=True, eq=False)
class Table:
    """The names of the columns of the training rows, and the levels of categories. Frozen: part of a model and of its file.

    names : tuple of str, or None
        The names of the columns; None for an array, whose columns have no names.
    levels : tuple with an entry for each column
        None for a column of numbers. For a category its levels in the training rows, all str, int, float or bool: sorted, or in
        the order that the frame gives them.
    """

    names: tuple[str, ...] | None
    levels: tuple[tuple[Any, ...] | None, ...]

    @cached_property
    def is_numeric(self) -> bool:
        """Whether all columns hold numbers."""
        return all(levels is None for levels in self.levels)

    def __getstate__(self) -> dict[str, Any]:  # without cached properties
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    @classmethod
    def learn(cls, X: Any, categorical: Categorical = None) -> tuple[np.ndarray, Table]:
        """Return (the training rows as numbers, an ndarray of the shape of X; their Table).

        The numbers are float32 where all columns of numbers are, and float64 otherwise. Time O(1) for each cell; memory of one
        column as Python objects beside the result. Cells are looked up in a dictionary of the levels, which is faster than
        sorting them.

        Parameters
        ----------
        X : data frame, or ndarray of shape (n_samples, n_features)
            In a frame, columns of strings, categoricals and enums are categories; columns of numbers, decimals and booleans
            are numbers, booleans 0 and 1; of columns of objects, the cells decide. A column in which all cells are missing, and
            whose dtype is not numeric, is a category without levels. Sparse columns become dense. The index of pandas is
            not read.
        categorical : None, or a sequence of names or indices of columns, or a mask
            These columns are categories, whatever they hold. Integers are indices, also where names in pandas are integers.

        Raises
        ------
        TypeError
            A column of dates, lists or other things that are neither numbers nor strings; a column of numbers and strings.
        ValueError
            No rows, no columns, equal names, an infinite number, or a column in `categorical` that X lacks.

        Examples
        --------
        >>> import numpy as np
        >>> X, table = Table.learn(np.array([[2.5, "b"], [None, "a"], [1.0, None]], object), categorical=[1])
        >>> X
        array([[2.5, 1. ],
               [nan, 0. ],
               [1. , nan]])
        >>> table.levels
        (None, ('a', 'b'))
        """
        names, columns, n_rows = open_columns(X)
        if not (n_rows and columns):
            raise ValueError(f"X must have at least one row and one column, got shape {(n_rows, len(columns))}")
        chosen = _chosen(categorical, names, len(columns))
        learnt = [_learn_column(label(names, k), column, k in chosen, names is not None) for k, column in enumerate(columns)]
        values, levels = zip(*learnt, strict=True)
        for k, of_column in enumerate(levels):
            if len(of_column or ()) == n_rows > ROWS_DISTINCT_BY_CHANCE and k not in chosen:
                useless = "holds words that are others in each row, and are of no use in other rows"
                warn(f"{label(names, k)} {useless}: leave it out, or make numbers of it", UserWarning)
        return _matrix(values, levels, n_rows), cls(names, levels)

    def read(self, X: Any) -> np.ndarray:
        """Return rows to predict as an ndarray of numbers, as `learn` does for training rows. Unknown levels become -1.

        The columns of a frame are found by their names, in any order; by their positions if X or the training rows have no
        names. Raises ValueError if columns are missing or too many, and TypeError if a column holds strings in place of
        numbers, or numbers in place of strings.
        """
        names, columns, n_rows = open_columns(X)
        places = self._places(names, len(columns))
        values = [
            _read_column(label(names, k), columns[k], levels, number)
            for k, levels, number in zip(places, self.levels, self._numbers, strict=True)
        ]
        return _matrix(values, self.levels, n_rows)

    def for_rows(self, X: np.ndarray) -> tuple[np.ndarray, Table]:
        """Return (X, the table) for some of the rows that `learn` returned, without the levels that do not occur in them."""
        levels = list(self.levels)
        for j in (j for j, of_column in enumerate(levels) if of_column):
            code = np.where(np.isnan(X[:, j]), len(levels[j]), X[:, j]).astype(np.intp)
            there = np.bincount(code, minlength=len(levels[j]) + 1)[:-1] > 0
            if not there.all():
                X = X.copy() if levels == list(self.levels) else X
                X[:, j] = np.append(there.cumsum() - 1.0, np.nan)[code]
                levels[j] = tuple(level for level, is_there in zip(levels[j], there, strict=True) if is_there)
        return X, replace(self, levels=tuple(levels))

    def only(self, is_used: np.ndarray) -> Table:
        """Return the table without the levels of columns that are not used; categories of numbers become columns of numbers.

        is_used : a mask of the columns
        """
        levels = (
            of_column if of_column is None or used else () if kind_of(of_column) in (None, "strings") else None
            for of_column, used in zip(self.levels, is_used.tolist(), strict=True)
        )
        return replace(self, levels=tuple(levels))

    def is_same(self, other: Table | None) -> bool:
        """Return whether another table, or None, has the same names and levels."""
        return other is self or (other is not None and (self.names, self.levels) == (other.names, other.levels))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that a model's file holds of the table."""
        kind = [-1 if levels is None else list(PLAIN).index(type(levels[0]) if levels else str) for levels in self.levels]
        levels = [level for of_column in self.levels for level in of_column or ()]
        cells = [str(cell).encode("utf-8", "surrogatepass") for cell in (*(self.names or ()), *levels)]
        size, end = [len(of_column or ()) for of_column in self.levels], np.cumsum([len(cell) for cell in cells])
        text = np.frombuffer(b"".join(cells), np.uint8)
        return dict(zip(ARRAYS, (np.array(kind, np.int64), np.array(size, np.int64), text, end.astype(np.int64)), strict=True))

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Table | None:
        """Return the table that `to_arrays` wrote, from a file that is not trusted; None where it holds no table."""
        if not any(name in arrays for name in ARRAYS):
            return None
        (kind, size, end), text = (integers(arrays, f"table_{name}") for name in ("kind", "size", "end")), arrays["table_text"]
        n = len(kind)
        require(n > 0 and bool(((kind >= -1) & (kind < len(PLAIN))).all()), "table_kind")
        require(len(size) == n and bool(((size >= 0) & (size <= len(end)) & ((size == 0) | (kind >= 0))).all()), "table_size")
        n_names = len(end) - int(size.sum())
        require(n_names in (0, n), "table_end")
        cells = _split_text(text, end)
        names, starts = cells[:n_names], n_names + np.cumsum([0, *size])
        levels = [_levels_from_text(cells[slice(*starts[k : k + 2])], kind[k]) for k in range(n)]
        require(all(len(set(each or ())) == len(each or ()) for each in (names, *levels)), "table_text")
        return cls(tuple(names) or None, tuple(levels))

    @cached_property
    def _numbers(self):
        """The numbers of the levels: {level: number} for each category, None for each column of numbers."""
        return [None if levels is None else _number_levels(levels) for levels in self.levels]

    def _places(self, names, n):
        """Return the position in X of each column of this table, from the names of the n columns of X."""
        if names is not None and self.names is not None and names != self.names:
            place = {name: k for k, name in enumerate(names)}
            lacking = [name for name in self.names if name not in place]
            extra = [name for name in names if name not in self.names]
            faults = [f"lacks the columns {listing(lacking)}"] * bool(lacking)
            faults += [f"has columns that the model was not fitted with: {listing(extra)}"] * bool(extra)
            if faults:
                raise ValueError(f"X {' and '.join(faults)}")
            return [place[name] for name in self.names]
        if n != len(self.levels):
            raise ValueError(f"X must have {len(self.levels)} columns, got {n}")
        return range(n)


def _split_text(text, end):
    """Split a text into its strings, given the positions where they end."""
    require(text.dtype == np.uint8 and text.ndim == 1, "table_text")
    ends = np.concatenate([[0], end])
    require(ends[-1] == len(text) and bool((np.diff(ends) >= 0).all()) and ends.min() == 0, "table_end")
    text, ends = text.tobytes(), ends.tolist()
    return [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]


def _levels_from_text(cells, kind):
    """Return the levels of a column from the strings that a file holds; kind : an index in PLAIN, or -1 for numbers."""
    if kind < 0:
        return None
    plain = list(PLAIN)[kind]
    levels = tuple(map({"True": True, "False": False}.__getitem__ if plain is bool else plain, cells))
    require(list(map(str, levels)) == cells and (plain is not float or bool(np.isfinite(levels).all())), "table_text")
    return levels


def _chosen(categorical, names, n):
    """Return the set of indices of the columns that the user's argument `categorical` lists."""
    if categorical is None:
        return set()
    if isinstance(categorical, (str, bytes)) or not hasattr(categorical, "__iter__"):
        raise TypeError(f"categorical must be a sequence of names or indices of columns, or a mask, got {categorical!r}")
    entries = list(categorical)
    if entries and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        if len(entries) != n:
            raise ValueError(f"categorical must have an entry for each of the {n} columns of X, got {len(entries)}")
        return set(np.flatnonzero(entries).tolist())
    strange = [e for e in entries if isinstance(e, (bool, np.bool_)) or not isinstance(e, (str, Integral))]
    if strange:
        raise TypeError(f"categorical must hold names or indices of columns, got {strange[0]!r}")
    place = {name: k for k, name in enumerate(names or ())}
    unknown = [entry for entry in entries if isinstance(entry, str) and entry not in place]
    if unknown:
        has = "an array, whose columns have no names" if names is None else "which lacks them"
        raise ValueError(f"categorical must name columns of X, {has}: {listing(unknown)}")
    indices = [int(entry) for entry in entries if not isinstance(entry, str)]
    outside = [k for k in indices if not 0 <= k < n]
    if outside:
        raise ValueError(f"categorical must lie in [0, {n}), got {listing(outside)}")
    return {place[entry] for entry in entries if isinstance(entry, str)} | set(indices)


def _learn_column(where, column, is_chosen, strings_are_categories):
    """Return (a training column as numbers, its levels); the levels are None for a column of numbers.

    where : how errors name the column
    is_chosen : whether the user lists it in `categorical`
    strings_are_categories : whether a column of strings is a category though it is not listed
    """
    is_category = is_chosen or is_categorical(column)
    cells = cells_of(where, column, is_category)
    kind = kind_of(cells)
    if not is_category and (kind == "numbers" or not strings_are_categories):
        if kind == "strings":
            raise TypeError(f"{where} holds strings: list it in categorical, or make it numbers")
        return numbers_of(where, cells), None
    keys, order = keys_of(where, cells), own_order(column)
    present = set(keys) - {None}
    kinds = set(map(type, present))
    plain = next(plain for plain, stands_for in PLAIN.items() if all(issubclass(kind, stands_for) for kind in kinds))
    in_order = sorted(present) if order is None else [level for level in keys_of(where, list(order)) if level in present]
    levels = tuple(map(plain, in_order))
    return _codes(keys, _number_levels(levels)), levels


def _read_column(where, column, levels, number):
    """Return a column of rows to predict as numbers.

    levels, number : the levels of the training column, and {level: number}; both None for a column of numbers
    """
    cells = cells_of(where, column, levels is not None)
    kind, was = kind_of(cells), "numbers" if levels is None else kind_of(levels)
    if None not in (kind, was) and kind != was:
        raise TypeError(f"{where} holds {kind}, and held {was} when the model was fitted")
    return numbers_of(where, cells) if levels is None else _codes(keys_of(where, cells), number)


def _number_levels(levels):
    """Return {level: its number}, with NaN for a missing cell, None."""
    return {level: float(number) for number, level in enumerate(levels)} | {None: np.nan}


def _codes(keys, number):
    """Return the numbers of cells by {level: number}, UNKNOWN for other cells."""
    return np.fromiter(map(number.get, keys, repeat(UNKNOWN)), np.float64, len(keys))


def _matrix(values, levels, n_rows):
    """Return the columns side by side, as float32 if this holds all of them exactly."""
    kinds = {column.dtype for column, each in zip(values, levels, strict=True) if each is None}
    is_single = kinds == {np.dtype(np.float32)} and all(each is None or len(each) <= EXACT for each in levels)
    X = np.empty((n_rows, len(values)), np.float32 if is_single else np.float64)
    for k, column in enumerate(values):
        X[:, k] = column
    return X
