"""The columns that a user means by names or indices.

A number is a name where some column has that name, as in a frame whose names are integers;
elsewhere an integer is an index. Names are compared as text, as models store them: "1", 1 and 1.0
mean the same column, unless there are columns "1" and "1.0".
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.checks import text_of
from .._base.warnings import warn
from .frames import listing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def find_columns(
    argument: str, keys: Iterable[Any], names: Sequence[str] | None, n_columns: int
) -> list[int]:
    """Return the index of each column that is given by its name or index.

    A name that is also the index of another column causes a warning, and is taken as the name.

    names : the names of the columns, or None where they have none
    """
    keys = list(keys)
    by_name = _Names(names or ())
    places = [by_name.get(key) for key in keys]
    lacking = [key for key, place in zip(keys, places, strict=True) if place is None]
    unknown = [key for key in lacking if isinstance(key, str)]
    if unknown:
        has = "an array, whose columns have no names" if names is None else "which lacks them"
        raise ValueError(f"{argument} must name columns of X, {has}: {listing(unknown)}")
    wrong = [key for key in lacking if _is_bool(key) or not isinstance(key, Integral)]
    if wrong:
        raise TypeError(
            f"{argument} must name columns of X or give their indices, got {wrong[0]!r}"
        )
    if lacking and by_name.are_numbers:
        raise ValueError(
            f"{argument} must name columns of X, whose names are numbers, and it lacks "
            f"{listing(lacking)}"
        )
    outside = [key for key in lacking if not 0 <= key < n_columns]
    if outside:
        raise ValueError(
            f"{argument} must have indices of columns in [0, {n_columns}), got {listing(outside)}"
        )
    found = [int(key) if place is None else place for key, place in zip(keys, places, strict=True)]
    for key, place in zip(keys, found, strict=True):
        is_index = isinstance(key, Integral) and not _is_bool(key) and 0 <= key < n_columns
        if is_index and place != key:
            warn(
                f"{argument} has {key!r}, which is the name of one column and the index of "
                f"another, X[{names[key]!r}]: it is taken as the name, which {names[place]!r} is "
                "without a warning",
                UserWarning,
            )
            break
    return found


def find_column(argument: str, key: Any, names: Sequence[str] | None, n_columns: int) -> int:
    """Return the index of one column, as `find_columns` does."""
    (place,) = find_columns(argument, [key], names, n_columns)
    return place


class _Names:
    """The names of columns, by which keys of any type are looked up."""

    def __init__(self, names: Sequence[str]):
        self._place = {name: k for k, name in enumerate(names)}
        self._of_number: dict[Any, int] | None = None

    def get(self, key: Any) -> int | None:
        """Return the place of the column of this name, or None."""
        if isinstance(key, str):
            return self._place.get(text_of(key))
        if str(key) in self._place:  # also of tuples and dates
            return self._place[str(key)]
        if _is_bool(key) or not isinstance(key, Real):
            return None
        return self._numbers.get(key)

    @property
    def are_numbers(self) -> bool:
        """Whether all names are numbers."""
        return 0 < len(self._numbers) and all(_number(name) is not None for name in self._place)

    @property
    def _numbers(self):
        """{number: place} of the names that are numbers."""
        if self._of_number is None:
            numbers = ((_number(name), k) for name, k in self._place.items())
            self._of_number = {number: k for number, k in numbers if number is not None}
        return self._of_number


def _is_bool(key):
    """Return whether a key is a bool, which is no index."""
    return isinstance(key, (bool, np.bool_))


def _number(name):
    """Return the number that a name is, if Python writes the number so; else None."""
    for kind in (int, float):
        try:
            number = kind(name)
        except ValueError:
            continue
        if str(number) == name:
            return number
    return None
