"""The ranges of the columns of training rows: a mapping that keeps two arrays, since columns may be
many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Self

import numpy as np


class Ranges(Mapping[int, tuple[float, float]]):
    """The least and the largest number of some columns, {index: (least, largest)}, read-only.

    column : int64 ndarray of shape (n_columns,), the indices, ascending
    ends : float64 ndarray of shape (n_columns, 2)
    """

    __slots__ = ("column", "ends")

    column: np.ndarray
    ends: np.ndarray

    def __init__(self, column: np.ndarray, ends: np.ndarray):
        self.column, self.ends = column, ends
        self.column.flags.writeable = self.ends.flags.writeable = False

    @classmethod
    def of_nothing(cls) -> Self:
        """Return the ranges of no columns."""
        return cls(np.zeros(0, np.int64), np.zeros((0, 2)))

    def __getitem__(self, column: int) -> tuple[float, float]:
        place = int(np.searchsorted(self.column, column))
        if place == len(self.column) or self.column[place] != column:
            raise KeyError(column)
        low, high = self.ends[place].tolist()
        return low, high

    def __iter__(self) -> Iterator[int]:
        return iter(self.column.tolist())

    def __len__(self) -> int:
        return len(self.column)

    def __repr__(self) -> str:
        return repr(dict(self))

    def of(self, is_kept: np.ndarray) -> Ranges:
        """Return the ranges of the columns in a mask of all columns."""
        kept = is_kept[self.column]
        return Ranges(self.column[kept], self.ends[kept])

    def __reduce__(self) -> tuple[type[Ranges], tuple[np.ndarray, np.ndarray]]:
        return Ranges, (self.column, self.ends)
