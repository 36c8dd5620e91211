"""Rows in the memory of this process: one block, worked on by threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._base.arrays import from_host, to_host
from .._base.checks import is_sparse
from .core_block import slices
from .rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Array, DenseOrCSR, RowVector
    from .core_block import CoreBlock
    from .protocols import FeatureSetLike


# Float32 loses too much where it changes a number of X by more than this share of the standard
# deviation of its column.
MOST_LOST = 1e-5
MOST_IN_SINGLE = float(np.finfo(np.float32).max)
# The number of columns that are compared at a time.
COMPARED_COLUMNS = 64


class MemoryRows(Rows):
    """The rows of an ndarray or CSR matrix, as one block. While entered, it keeps threads and what
    `CoreBlock` keeps."""

    n_rows: int
    n_passes: int
    n_features_in: int
    dtype: np.dtype
    is_sparse: bool
    is_finite: bool
    in_memory = True

    def __init__(
        self, block: CoreBlock, origin: tuple[Any, Any] | None = None, is_finite: bool = False
    ):
        """Make the rows of a block.

        origin : (array namespace, device) of the user's X, whose memory `block` shares; None: X is
            NumPy's or SciPy's.
        is_finite : whether all numbers are known to be finite.
        """
        self._block, self._origin, self.is_finite = block, origin, is_finite
        self.n_rows, self.n_features_in, self.dtype = block.n_rows, block.n_features_in, block.dtype
        self.is_sparse, self.workers = is_sparse(block.X), block.workers

    def sum(self, answer: Callable[..., Any], *vectors: RowVector, add: Any = None) -> Any:
        self.n_passes += 1
        return answer(self._block, *vectors)

    def map(self, answer: Callable[..., Any], *vectors: RowVector, axis: int = -1) -> Any:
        self.n_passes += 1
        return answer(self._block, *vectors)

    map_and_sum = map

    def in_single(self) -> Self | None:
        X = self.array()
        if not isinstance(X, np.ndarray) or X.dtype != np.float64:
            return None
        single = X.astype(np.float32)
        columns = [np.s_[:, some] for some in slices(X.shape[1], COMPARED_COLUMNS)]
        loses_little = all(_loses_little(single[some], X[some]) for some in columns)
        return self.on_same_threads(single) if loses_little else None

    def kernel(self, features: FeatureSetLike, weights: np.ndarray) -> np.ndarray:
        self.n_passes += 1
        return self._block.kernel(features, weights)

    def on_same_threads(self, X: DenseOrCSR) -> Self:
        return type(self)(self._block.on_same_threads(X), self._origin)

    def take(self, index: np.ndarray) -> Self:
        return self.on_same_threads(self.array(index))

    def array(self, index: np.ndarray | None = None) -> DenseOrCSR:
        return self._block.X if index is None else self._block.X[index]

    def to_namespace_of_X(self, answer: Array) -> Array:
        return answer if self._origin is None else from_host_if_possible(answer, *self._origin)

    def __enter__(self) -> Self:
        self._block.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._block.__exit__(*error)


def _loses_little(single, X):
    """Return whether columns lose little in single precision."""
    most = np.minimum(MOST_LOST * X.std(axis=0), MOST_IN_SINGLE)
    return (np.abs(single - X).max(axis=0) <= most).all()


def from_host_if_possible(answer: np.ndarray, xp: Any, device: Any) -> Array:
    """Convert an ndarray to another namespace; return it as it is where that namespace cannot hold
    it, such as strings."""
    try:
        there = from_host(answer, xp, device)
    except (TypeError, ValueError):
        return answer
    return there if answer.dtype.kind == "f" or np.array_equal(to_host(there), answer) else answer
