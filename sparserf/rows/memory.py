"""Rows in the memory of this process: one block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from .._base.checks import is_sparse
from .._base.threads import Workers
from .block import Block
from .home import Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from .._base.types import DenseOrCSR, RowVector
    from ..features.feature_set import FeatureSet


class Memory(Rows):
    """One block. Its threads, and what it keeps, stay for as long as it is entered."""

    n_rows: int
    n_features_in: int
    dtype: np.dtype

    def __init__(self, block: Block):
        self._block = block
        self.n_rows, self.n_features_in, self.dtype = block.n_rows, block.n_features_in, block.dtype

    @classmethod
    def of(cls, X: DenseOrCSR, workers: int) -> Self:
        """An ndarray of any strides, or a CSR matrix, on so many threads."""
        return cls(Block(X, Workers(workers)))

    in_memory = True

    @property
    def is_sparse(self) -> bool:
        return is_sparse(self._block.X)

    def sum(self, answer: Callable[..., Any], *vectors: RowVector, add: Any = None) -> Any:
        self.count_pass()
        return answer(self._block, *vectors)

    def map(self, answer: Callable[..., Any], *vectors: RowVector, axis: int = -1) -> Any:
        self.count_pass()
        return answer(self._block, *vectors)

    map_and_sum = map

    def kernel(self, features: FeatureSet, weights: np.ndarray) -> np.ndarray:
        """Phi diag(weights) Phi', float64 of shape (n_rows, n_rows), for few rows and weights >= 0."""
        self.count_pass()
        return self._block.kernel(features, weights)

    def beside(self, X: DenseOrCSR) -> Memory:
        """Rows of another matrix, in the memory of this process, on the same threads for as long as this is entered or not."""
        return Memory(self._block.beside(X))

    def take(self, index: np.ndarray) -> Memory:
        return self.beside(self.array(index))

    def array(self, index: np.ndarray | None = None) -> DenseOrCSR:
        return self._block.array(index)

    def __enter__(self) -> Self:
        self._block.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._block.__exit__(*error)
