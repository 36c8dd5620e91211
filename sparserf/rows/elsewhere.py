"""What homes have in common whose rows are not in the memory of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from .._base.threads import Workers
from .block import Block
from .home import TAKEN_NUMBERS, Rows
from .memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from .._base.types import DenseOrCSR
    from ..features.feature_set import FeatureSet


class Elsewhere(Rows):
    """A home answers the verbs, `array(index)`, and some(index), these rows where they are. Its threads, for what has come to
    this process, stay for as long as it is entered."""

    in_memory = False
    some: Callable[[np.ndarray], Rows]

    def __init__(self, workers: int):
        self._n_workers, self._workers = workers, Workers(workers)

    def beside(self, X: DenseOrCSR) -> Memory:
        """Rows of a matrix in the memory of this process."""
        return Memory(Block(X, self._workers))

    def kernel(self, features: FeatureSet, weights: np.ndarray) -> np.ndarray:
        return self.beside(self.array()).kernel(features, weights)

    def take(self, index: np.ndarray) -> Rows:
        if len(index) * self.n_features_in <= TAKEN_NUMBERS:
            return self.beside(self.array(index))
        return self.some(index)

    def __enter__(self) -> Self:
        self._workers.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._workers.__exit__(*error)
