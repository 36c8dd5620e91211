"""The base class of rows that are not in the memory of this process: on disk, on a device, on a
cluster."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._base.checks import check_indices
from .._base.threads import Workers
from .core_block import CoreBlock
from .memory import MemoryRows
from .rows import Rows

if TYPE_CHECKING:
    from .._base.types import DenseOrCSR

# `RemoteRows.take` brings rows of at most this many numbers to the memory of this process: half a
# gigabyte in float64.
MOST_FETCHED_NUMBERS = 2**26


class RemoteRows(Rows):
    """Rows that are not in the memory of this process. While entered, they keep threads for rows
    that are fetched."""

    in_memory = False

    def __init__(self, workers: int):
        self._n_workers, self.workers = workers, Workers(workers)

    @staticmethod
    @abstractmethod
    def is_home_of(X: Any) -> bool:
        """Return whether X, as users give it, is of the kind whose rows this class reads."""

    @classmethod
    @abstractmethod
    def from_X(cls, X: Any, workers: int, may_miss: bool) -> Self:
        """Check X, which is of that kind, and return its rows; may_miss : whether they may hold
        NaN."""

    @abstractmethod
    def select(self, index: np.ndarray) -> Rows:
        """Return the rows at these ascending indices where they are: nothing is fetched."""

    def distinct(self, index: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return (the different indices, ascending; the place of each index among them), checked;
        None: of all rows."""
        if index is None:
            return np.arange(self.n_rows), np.arange(self.n_rows)
        return np.unique(check_indices("index", index, self.n_rows), return_inverse=True)

    def take(self, index: np.ndarray) -> Rows:
        if len(index) * self.row_size <= MOST_FETCHED_NUMBERS:
            return self.on_same_threads(self.array(index))
        return self.select(index)

    def on_same_threads(self, X: DenseOrCSR) -> MemoryRows:
        return MemoryRows(CoreBlock(X, self.workers))

    def __enter__(self) -> Self:
        self.workers.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.workers.__exit__(*error)
