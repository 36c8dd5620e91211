"""Data frames: columns are read as numbers, strings or times; errors name the column.

Columns of arrays are read in the same way. Data frames are read through narwhals, which is imported
when X is a data frame.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.checks import MISSING, check_unmasked, is_real_type, text_of
from .clocks import Times, kind_of_times, times_of_cells, times_of_series, times_of_stamps
from .plain import plain_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

# An error lists at most this many items.
MOST_NAMED = 10


def is_frame(X: object) -> bool:
    """Return whether X is a data frame in memory, of a library that narwhals knows."""
    kind = type(X)
    if not (hasattr(kind, "columns") or hasattr(kind, "__narwhals_dataframe__")):
        return False
    from narwhals.dependencies import is_into_dataframe

    return is_into_dataframe(X)


def is_table(X: object) -> bool:
    """Return whether X is a data frame, or an array that holds dates, durations or times of day."""
    if not isinstance(X, np.ndarray):
        return is_frame(X)
    return X.dtype.kind in "mM" or (
        X.dtype.kind == "O" and any(kind_of_times(kind) for kind in set(map(type, X.flat)))
    )


def rows_of_frame(X: Any, rows: np.ndarray) -> Any:
    """Return the rows of a frame at an array of indices, as a frame of the same library."""
    import narwhals as nw

    return nw.from_native(X, eager_only=True)[rows.tolist()].to_native()


def columns_of_rows(X: Any, sources: np.ndarray) -> Any:
    """Return a frame whose column j has the cells of the rows sources[:, j] of X.

    It is of the same library, with the default index.
    """
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    columns = [
        nw.maybe_reset_index(column[sources[:, j].tolist()])
        for j, column in enumerate(frame.iter_columns())
    ]
    return nw.maybe_reset_index(frame[sources[:, 0].tolist()]).with_columns(*columns).to_native()


class Columns:
    """The columns of X: those of plain numbers together, and any column alone.

    names : tuple of str, or None
        The names of the columns; None for an array.
    n_rows : int
    plain, numbers : ndarray
        The places of the columns that were read together, and their numbers: see `plain_numbers`.
    """

    names: tuple[str, ...] | None
    n_rows: int
    plain: np.ndarray
    numbers: np.ndarray

    def __init__(self, X: Any):
        """Open a data frame or an ndarray; raise TypeError if X is neither."""
        if is_frame(X):
            import narwhals as nw

            self.names = names_of_frame(X)
            self._frame = nw.from_native(X, eager_only=True)
            self._columns: dict[int, Any] = {}
            self.n_rows, self._n = len(self._frame), len(self.names)
            native = nw.to_native(X, pass_through=True)
            self.plain, self.numbers, self._flags = plain_numbers(native)
            return
        if not isinstance(X, np.ndarray):
            what = (
                "X must be a data frame or a dense NumPy array where columns have names or are "
                "categories"
            )
            hint = "; of one row, give a frame with one row" if type(X).__name__ == "Series" else ""
            raise TypeError(f"{what}, got {type(X).__name__}{hint}")
        check_unmasked("X", X)
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional, got shape {X.shape}")
        self._columns = dict(enumerate(np.asarray(X).T))
        self.names, (self.n_rows, self._n) = None, X.shape
        self.plain, self.numbers = np.arange(0), np.zeros((self.n_rows, 0))

    def __len__(self) -> int:
        return self._n

    @property
    def booleans(self) -> frozenset[int]:
        """The places of the columns whose dtype says that they hold booleans."""
        if self.names is None:
            return frozenset(k for k, each in self._columns.items() if each.dtype.kind == "b")
        import narwhals as nw

        others = np.setdiff1d(np.arange(self._n), self.plain).tolist()
        return self._flags | {k for k in others if self[k].dtype == nw.Boolean}

    def __getitem__(self, k: int) -> Any:
        """Return column k, a Series of narwhals or a one-dimensional ndarray."""
        if k not in self._columns:
            self._columns[k] = self._frame[:, int(k)]
        return self._columns[k]


def label(names: Sequence[str] | None, k: int) -> str:
    """Return the name of column k in errors."""
    return f"X[:, {k}]" if names is None else f"X[{names[k]!r}]"


def listing(items: Sequence[Any]) -> str:
    """Return the items as text for an error, at most MOST_NAMED of them."""
    more = len(items) - MOST_NAMED
    return ", ".join(map(repr, items[:MOST_NAMED])) + (f" and {more} more" if more > 0 else "")


def cells_of(where: str, column: Any, is_category: bool, zone: str | None = None) -> Any:
    """Return the cells of a column as an ndarray of real numbers, a list, or `Times`.

    Categories, and columns whose dtype does not determine the type of the cells, become lists of
    numbers or of strings, with None for missing cells. Dates, durations and times of day become
    `Times`.

    where : how errors name the column
    zone : the time zone in which dates with one are read; None: their own
    """
    if isinstance(column, np.ndarray):
        return _array_cells(where, column, is_category, zone)
    import narwhals as nw

    dtype = column.dtype
    if not is_category and (
        dtype.is_float() or (dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128))
    ):
        numbers = column.to_numpy()
        has_missing = not dtype.is_float() and numbers.dtype.kind == "f"  # integers, as floats
        return numbers.astype(np.float64) if has_missing else numbers
    if (moments := times_of_series(where, column, zone)) is not None:
        return moments
    if dtype.is_nested() or dtype == nw.Binary:
        raise _refusal(where, type(dtype).__name__)
    if not is_category and (dtype.is_numeric() or dtype == nw.Boolean):
        return column.cast(nw.Float64).to_numpy()
    cells = _listed(column)
    return level_cells(where, cells) if is_categorical(column) else _of_one_kind(where, cells, zone)


def level_cells(where: str, cells: list[Any]) -> list[Any]:
    """Return the cells of a categorical, None where they are missing.

    If all are strings, or all are numbers, they stay as they are. Others, such as intervals,
    periods, dates, tuples, or words beside numbers, become text.
    """
    kinds = {
        kind for kind in set(map(type, cells)) if kind.__name__ not in MISSING and kind is not float
    }
    are_strings = {issubclass(kind, str) for kind in kinds} == {True} and not any(
        type(cell) is float and cell == cell for cell in cells
    )
    if are_strings or all(is_real_type(kind) for kind in kinds):
        return _of_one_kind(where, cells)
    return [
        None if type(cell).__name__ in MISSING or cell != cell else as_text(cell) for cell in cells
    ]


def as_text(value: Any) -> str:
    """Return a name or a level as text: of a string of any type its characters."""
    return text_of(value) if isinstance(value, str) else str(value)


def in_their_order(column: Any) -> Any:
    """Return the different cells of a categorical in ascending order; None if they are strings or
    numbers, which are sorted elsewhere, or have no order."""
    if not is_categorical(column):
        return None
    cells = {
        cell for cell in _listed(column) if type(cell).__name__ not in MISSING and cell == cell
    }
    if all(isinstance(cell, str) or is_real_type(type(cell)) for cell in cells):
        return None
    try:
        return sorted(sorted(cells, key=str))  # of sets, which have some order, always the same
    except TypeError:  # they have no order
        return None


def is_categorical(column: Any) -> bool:
    """Return whether the dtype of a column is categorical, whatever its categories are."""
    if isinstance(column, np.ndarray):
        return False
    import narwhals as nw

    return column.dtype in (nw.Categorical, nw.Enum)


def integers_of(column: Any) -> Any:
    """Return the integers and decimals among the cells of a column, exact, before they become
    float64."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "iu":
            return column
        if column.dtype.kind == "O":
            return column.tolist()
        return []
    return (
        [] if column.dtype.is_float() else [cell for cell in column.to_list() if cell is not None]
    )


def narrow_float(column: Any) -> np.dtype | None:
    """Return float16 or float32 where the dtype of a column is that, else None."""
    if isinstance(column, np.ndarray):
        return column.dtype if column.dtype.kind == "f" and column.dtype.itemsize < 8 else None
    dtype = str(column.dtype)
    return np.dtype(dtype.lower()) if dtype in ("Float16", "Float32") else None


def own_order(column: Any) -> Any:
    """Return all categories of a column in the frame's order of them, or None if it has none."""
    if isinstance(column, np.ndarray):
        return None
    import narwhals as nw

    if column.dtype == nw.Enum:
        return column.dtype.categories
    dictionary = _arrow_dictionary(column)
    if dictionary is None or not dictionary.type.ordered:
        return None
    return dictionary.unify_dictionaries().chunk(0).dictionary.to_pylist()


def is_ordered(column: Any) -> bool:
    """Return whether the categories of a column are ordered."""
    return own_order(column) is not None


def kind_of(cells: Any) -> str | None:
    """Return 'numbers' or 'strings', or what `Times` are; None where all cells are missing."""
    if isinstance(cells, Times):
        return None if np.isnan(cells.days).all() else str(cells.clock)
    if isinstance(cells, np.ndarray):
        return "numbers"
    first = next((cell for cell in cells if cell is not None), None)
    return None if first is None else "strings" if isinstance(first, str) else "numbers"


def numbers_of(where: str, cells: Any) -> np.ndarray:
    """Return cells as an ndarray of numbers, NaN where missing, times in days.

    Raise a ValueError if one is infinite.
    """
    if isinstance(cells, Times):
        return cells.days
    try:
        numbers = np.array(cells, np.float64) if isinstance(cells, list) else cells
    except OverflowError as error:
        raise ValueError(f"{where} must hold finite numbers: {error}") from None
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(infinite.argmax())
        raise ValueError(f"{where} must be finite or missing, got {numbers[row]} in row {row}")
    return numbers


def level_keys(where: str, cells: Any) -> Any:
    """Return cells as keys of a dictionary of levels, None if missing; numbers other than integers
    and booleans become floats."""
    if all(
        issubclass(kind, (str, Integral, np.bool_, type(None))) for kind in set(map(type, cells))
    ):
        return cells
    return [None if cell != cell else cell for cell in numbers_of(where, cells).tolist()]


def names_of_frame(frame: Any) -> tuple[str, ...]:
    """Return the names of the columns as strings; raise ValueError if two are the same.

    In tables of Arrow the names are `column_names`, and `columns` are the columns themselves.
    """
    given = frame.column_names if hasattr(type(frame), "column_names") else frame.columns
    names = tuple(map(as_text, given))
    if len(set(names)) < len(names):
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        raise ValueError(
            f"X must have columns of different names, got more than one {listing(repeated)}"
        )
    return names


def _array_cells(where, column, is_category, zone):
    """Return the cells of a column of an array, as `cells_of` does."""
    if column.dtype.kind in "OUT":
        return _of_one_kind(where, column.astype(object).tolist(), zone)
    if column.dtype.kind in "mM":
        return times_of_stamps(where, column)
    if column.dtype.kind not in "fiub":
        raise _refusal(where, column.dtype.name)
    if column.dtype.itemsize > 8:
        # a long double may be too large: it becomes infinite, and is refused later
        with np.errstate(over="ignore"):
            column = column.astype(np.float64)
    return _of_one_kind(where, column.tolist()) if is_category else column


def _listed(series):
    """Return the cells of a Series as a list."""
    dictionary = _arrow_dictionary(series)
    if series.implementation.is_pandas() and hasattr(series.to_native().dtype, "categories"):
        # its `to_list` makes (1.0, 2.0] of the category (1, 2] where other cells are missing
        native = series.to_native()
        categories = [*native.cat.categories.tolist(), None]
        return [categories[code] for code in native.cat.codes.tolist()]
    if dictionary is None:
        return series.to_list()
    # takes a twentieth of the time of `to_list`
    return dictionary.cast(dictionary.type.value_type).to_pylist()


def _arrow_dictionary(series):
    """Return the ChunkedArray of a categorical Series of Arrow, else None."""
    import narwhals as nw

    if series.implementation.is_pyarrow() and series.dtype == nw.Categorical:
        return series.to_native()
    return None


def _of_one_kind(where, cells, zone=None):
    """Return the cells with None for missing ones, or `Times`.

    Raise a TypeError unless all are of one kind.
    """
    kinds = set(map(type, cells))
    missing = {kind for kind in kinds if kind.__name__ in MISSING}
    if any(kind_of_times(kind) for kind in kinds - missing):
        cells = [None if type(cell) in missing or cell != cell else cell for cell in cells]
        return times_of_cells(where, cells, zone)
    wrong = {kind for kind in kinds - missing if not (issubclass(kind, str) or is_real_type(kind))}
    if wrong:
        raise _refusal(where, next(type(cell).__name__ for cell in cells if type(cell) in wrong))
    if kinds <= {str, type(None)}:
        return cells
    cells = [None if type(cell) in missing or cell != cell else cell for cell in cells]
    kinds = dict.fromkeys(map(type, cells))
    others = [kind for kind in kinds if not issubclass(kind, (str, type(None)))]
    if others and any(issubclass(kind, str) for kind in kinds):
        raise TypeError(
            f"{where} holds strings and {others[0].__name__}: leave it out, or make it numbers or "
            "strings"
        )
    return cells if others else [None if cell is None else text_of(cell) for cell in cells]


def _refusal(where, kind):
    """Return the TypeError for a column whose cells are neither numbers nor strings."""
    return TypeError(f"{where} holds {kind}: leave it out, or make it numbers or strings")
