"""Rows in an array of another namespace, on its device: one block, and row vectors that stay beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import from_host, is_foreign, to_host
from .array_block import ArrayBlock
from .elsewhere import Elsewhere
from .home import each_part
from .vectors import RowVectors

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Array, RowVector


def brought(answer: Array) -> np.ndarray:
    """What blocks answer, in this process."""
    return to_host(answer) if is_foreign(answer) else answer


class DeviceVectors(RowVectors):
    """Arrays of that namespace, of float64 where the device has it."""

    n_rows: int

    def __init__(self, n_rows: int, xp: Any, device: Any):
        self.n_rows, self._xp, self._device = n_rows, xp, device

    def put(self, values: Array) -> Array:
        return from_host(values, self._xp, self._device) if isinstance(values, np.ndarray) else values

    def fetch(self, vector: Array) -> np.ndarray:
        return to_host(vector)

    def map(self, answer: Callable[..., Array], *vectors: Array, axis: int = -1) -> Array:
        return answer(*map(self.put, vectors))

    def sum(self, answer: Callable[..., Any], *vectors: Array, add: Any = None) -> Any:
        return each_part(brought, answer(*map(self.put, vectors)))


class OnDevice(Elsewhere):
    """Its answers, too, are arrays there, but for sums, which come to this process."""

    n_rows: int
    n_features_in: int
    dtype: np.dtype
    is_sparse = False

    def __init__(self, X: Array, xp: Any, device: Any, workers: int):
        super().__init__(workers)
        self._block = ArrayBlock(X, xp, device)
        self.n_rows, self.n_features_in, self.dtype = self._block.n_rows, self._block.n_features_in, self._block.dtype
        self.vectors = DeviceVectors(self.n_rows, xp, device)

    def sum(self, answer: Callable[..., Any], *vectors: RowVector, add: Any = None) -> Any:
        return each_part(brought, self._asked(answer, vectors))

    def map(self, answer: Callable[..., Array], *vectors: RowVector, axis: int = -1) -> Array:
        return self._asked(answer, vectors)

    def map_and_sum(self, answer: Callable[..., Any], *vectors: RowVector) -> tuple[Array, Any]:
        f, total = self._asked(answer, vectors)
        return f, each_part(brought, total)

    def _asked(self, answer, vectors):
        self.count_pass()
        return answer(self._block, *map(self.vectors.put, vectors))

    def some(self, index: np.ndarray) -> OnDevice:
        return OnDevice(self._block.taken(index), *self._block.place, self._n_workers)

    def array(self, index: np.ndarray | None = None) -> np.ndarray:
        return to_host(self._block.X if index is None else self._block.taken(index))

    def give(self, answer: Array) -> Array:
        """As it is, an array there; or numbers of this process, there where that namespace has such numbers."""
        return given(answer, *self._block.place) if isinstance(answer, np.ndarray) else answer


def given(answer: np.ndarray, xp: Any, device: Any) -> Array:
    """An answer of this process in another namespace; or as it is, where that has no numbers like these, as of labels it may
    not."""
    try:
        there = from_host(answer, xp, device)
    except (TypeError, ValueError):
        return answer
    return there if answer.dtype.kind == "f" or np.array_equal(to_host(there), answer) else answer
