"""What the columns of training rows held: the ranges of their numbers, and the values of columns
that took few.

Two arrays have the ranges, since columns may be many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Self

import numpy as np


class Ranges(Mapping[int, tuple[float, float]]):
    """The least and the largest number of the columns that terms see, {index: (least, largest)},
    read-only.

    The ranges of columns that no term sees are known beside them, where a model has not been to a
    file.

    column : int64 ndarray of shape (n_columns,), the indices of all columns that are known,
        ascending
    ends : float64 ndarray of shape (n_columns, 2)
    taken : {column: ndarray}, the values of the columns that took few, ascending; among all columns
        that are known
    is_seen : bool ndarray of shape (n_columns,), which columns terms see
    """

    __slots__ = ("column", "ends", "is_seen", "taken")

    column: np.ndarray
    ends: np.ndarray
    taken: dict[int, np.ndarray]
    is_seen: np.ndarray

    def __init__(
        self,
        column: np.ndarray,
        ends: np.ndarray,
        taken: Mapping[int, np.ndarray] | None = None,
        is_seen: np.ndarray | None = None,
    ):
        self.column, self.ends, self.taken = column, ends, dict(taken or {})
        self.is_seen = np.ones(len(column), bool) if is_seen is None else is_seen
        for array in (column, ends, self.is_seen, *self.taken.values()):
            array.flags.writeable = False

    @classmethod
    def of_nothing(cls) -> Self:
        """Return the ranges of no columns."""
        return cls(np.zeros(0, np.int64), np.zeros((0, 2)))

    @classmethod
    def from_mapping(cls, ranges: Mapping[int, tuple[float, float]]) -> Self:
        """Return the ranges of columns that took many values."""
        column = sorted(ranges)
        ends = np.array([ranges[j] for j in column], np.float64).reshape(-1, 2)
        return cls(np.array(column, np.int64), ends)

    def __getitem__(self, column: int) -> tuple[float, float]:
        ends = self.known(column)
        if ends is None or not self.is_seen[np.searchsorted(self.column, column)]:
            raise KeyError(column)
        return ends

    def __iter__(self) -> Iterator[int]:
        return iter(self.column[self.is_seen].tolist())

    def __len__(self) -> int:
        return int(self.is_seen.sum())

    def __repr__(self) -> str:
        return repr(dict(self))

    def known(self, column: int) -> tuple[float, float] | None:
        """Return the range of a column, whether terms see it or not; None where it is not known."""
        place = int(np.searchsorted(self.column, column))
        if place == len(self.column) or self.column[place] != column:
            return None
        low, high = self.ends[place].tolist()
        return low, high

    def seen_by(self, is_seen: np.ndarray) -> Ranges:
        """Return the ranges for terms that see the columns in a mask of all columns."""
        is_here = np.isin(self.column, np.flatnonzero(is_seen))
        return Ranges(self.column, self.ends, self.taken, is_here)

    @property
    def of_seen(self) -> Ranges:
        """The ranges that say nothing of columns that no term sees."""
        if self.is_seen.all():
            return self
        column = self.column[self.is_seen]
        stays = set(column.tolist())
        taken = {j: values for j, values in self.taken.items() if j in stays}
        return Ranges(column, self.ends[self.is_seen], taken)

    def __reduce__(self) -> tuple[type[Ranges], tuple[object, ...]]:
        return Ranges, (self.column, self.ends, self.taken, self.is_seen)
