"""A box of rows: an interval for each column of numbers, and some of the levels of each category,
or of the values of each column of numbers that takes few."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..columns.clocks import kind_of_times
from ..columns.places import find_columns
from ..columns.table import UNKNOWN, LevelNumbers
from .terms import column_clocks, column_flags, column_levels, column_names, column_values, terms_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .expansion import Expansion

# The most values of a column that an error lists.
MOST_LISTED = 8
# The largest number in a box: a few sums and products of its ends do not overflow.
LARGEST = 1e300
# What users write: {name or index of a column: (low, high), a number, a level, a list of levels, or
# None, a missing cell}; of a column of times low and high are such times, or numbers of days. Of a
# column that took few whole numbers (low, high) stands for those of them that lie in it.
BoxLike: TypeAlias = "Mapping[str | int, Any]"


@dataclass(frozen=True, eq=False)
class Box:
    """A box of rows of numbers: all rows whose cells are in it, column by column.

    low, high : ndarray of shape (n_columns,)
        The interval of each column of numbers; both are NaN where the cell is missing. 0 for
        columns in `levels`.
    levels : {column: ndarray}
        The codes of the levels of each category, and the values of each column of numbers that
        takes few, ascending; NaN, the last, where the cell may be missing.
    unknown : tuple of int
        The columns of numbers of which nothing is known. No term sees them.
    """

    low: np.ndarray
    high: np.ndarray
    levels: dict[int, np.ndarray]
    unknown: tuple[int, ...] = ()


def read_box(model: Expansion, box: BoxLike | None) -> Box:
    """Check a box of a user, and complete it: return a `Box` with all columns of X.

    Columns that the box leaves out have the range of the training rows, all values that they took
    there if these are few, or all known levels. A column that no term sees, and of which nothing is
    known, is 0.

    Raises
    ------
    ValueError
        The box names a column that there is not, or one twice; an interval is empty, reversed or
        not finite, or holds none of the few values of its column; a level is unknown; a column of
        numbers that terms see is left out, and the model does not know its range.
    TypeError
        The box is no mapping, or a part of it has another type than its column asks for.
    """
    names, levels, clocks = column_names(model), column_levels(model), column_clocks(model)
    values, flags = column_values(model), column_flags(model)
    parts = _by_column({} if box is None else box, names)
    low, high, codes, unknown = np.zeros(len(names)), np.zeros(len(names)), {}, []
    for j, of_column in enumerate(levels):
        if of_column is not None:
            if j in parts:
                codes[j] = _read_levels(names[j], parts[j], of_column)
            else:
                codes[j] = _all_levels(of_column)
        elif j in flags and j in parts and (cells := _booleans(parts[j])) is not None:
            codes[j] = cells
        elif j in parts:
            ends = _read_interval(names[j], _in_days(names[j], parts[j], clocks.get(j)))
            if j in values and ends[0] < ends[1]:
                codes[j] = _values_within(names[j], parts[j], ends, values[j])
            else:
                low[j], high[j] = ends
        elif j in values:
            codes[j] = values[j]
        elif (ends := model.ranges.known(j)) is not None:
            low[j], high[j] = ends
        else:
            unknown.append(j)
    if unknown:
        seen = {j for term in terms_of(model.features) for j in term.columns.tolist()}
        check_known(model, [j for j in unknown if j in seen])
    return Box(low, high, codes, tuple(unknown))


def check_known(model: Expansion, unknown: Sequence[int]) -> None:
    """Check that there are no columns of which nothing is known, where something must be."""
    if unknown:
        names = column_names(model)
        listed = ", ".join(repr(names[j]) for j in unknown[:5]) + ", ..." * (len(unknown) > 5)
        raise ValueError(
            "box must have an interval for columns whose range in training the model does not "
            f"know: {listed}"
        )


def _by_column(box, names):
    """Return {index of a column: part of the box}."""
    if not isinstance(box, Mapping):
        raise TypeError(f"box must be a mapping of columns to intervals or levels, got {box!r}")
    parts = {}
    for j, part in zip(find_columns("box", box, names, len(names)), box.values(), strict=True):
        if j in parts:
            raise ValueError(
                f"box must have each column once, got {names[j]!r} by its name and by its index"
            )
        parts[j] = part
    return parts


def _all_levels(levels):
    """Return the codes of all known levels; of a category without levels, a missing cell."""
    return np.arange(len(levels), dtype=np.float64) if levels else np.array([np.nan])


def _read_levels(name, part, levels):
    """Return the codes of a level or a list of levels; None is a missing cell."""
    code = LevelNumbers(levels)
    chosen = list(part) if _is_list(part, set, frozenset) else [part]
    if not chosen:
        raise ValueError(f"box must have at least one level of {name!r}, got {part!r}")
    for level in chosen:
        if not isinstance(level, Hashable):
            raise TypeError(f"box must have a level or a list of levels for {name!r}, got {part!r}")
        if code[level] == UNKNOWN:
            raise ValueError(f"box must have known levels of {name!r}, got {level!r}")
    return np.unique([code[level] for level in chosen])


def _booleans(part):
    """Return the values of a list of booleans, None among them for a missing cell; None where it is
    no such list."""
    if not _is_list(part, set, frozenset) or not len(part):
        return None
    if not all(isinstance(x, (bool, np.bool_)) or x is None for x in part):
        return None
    return np.unique([np.nan if cell is None else float(cell) for cell in part])


def _is_list(part, *others):
    """Return whether a part is a list, tuple or vector, or of another of these types."""
    is_vector = isinstance(part, np.ndarray) and part.ndim == 1
    return is_vector or isinstance(part, (list, tuple, *others))


def _values_within(name, part, ends, values):
    """Return those of the few values of a column that an interval holds."""
    inside = values[(values >= ends[0]) & (values <= ends[1])]
    if not len(inside):
        listed = ", ".join(f"{x:g}" for x in values[:MOST_LISTED])
        more = ", ..." if len(values) > MOST_LISTED else ""
        raise ValueError(
            f"box must hold a value that {name!r} took in training, one of {listed}{more}, or be a "
            f"number, got {part!r}"
        )
    return inside


def _in_days(name, part, clock):
    """Return an interval, or a cell, of a column of times with numbers of days in place of
    times."""
    if clock is None or part is None:
        return part
    where = f"box[{name!r}]"
    if _is_list(part):
        return tuple(clock.days(where, end) if kind_of_times(type(end)) else end for end in part)
    return clock.days(where, part) if kind_of_times(type(part)) else part


def _read_interval(name, part):
    """Return the two ends of an interval, or of a number; None is a missing cell."""
    if part is None:
        return np.nan, np.nan
    ends = (part, part) if isinstance(part, (Real, np.bool_)) else part
    is_pair = _is_list(ends) and len(ends) == 2
    if not (is_pair and all(isinstance(end, (Real, np.bool_)) for end in ends)):
        raise TypeError(f"box must have a number or a pair (low, high) for {name!r}, got {part!r}")
    try:
        low, high = map(float, ends)
    except OverflowError:  # integers
        low = high = np.inf
    if not (abs(low) <= LARGEST and abs(high) <= LARGEST):
        raise ValueError(
            f"box must have finite numbers of at most {LARGEST:g} for {name!r}, got {part!r}"
        )
    if low > high:
        raise ValueError(f"box must have low <= high for {name!r}, got {part!r}")
    return low, high
