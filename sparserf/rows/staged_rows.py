"""Rows seen through the column stage, here called staged: each block is transformed where it becomes features.

The column stage (`columns.ColumnStage`) makes centred and scaled inputs of the columns of X, and of categories and missing
cells; features are functions of these inputs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .memory import MemoryRows
from .rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Array, DenseOrCSR, RowVector
    from ..columns.stage import ColumnStage
    from ..features import FeatureSet

# Most numbers that are transformed at once and kept, where rows are asked one question; and where they are asked many.
FEW, DURING_A_FIT = 2**12, 2**23


def staged(rows: Rows, stage: ColumnStage | None, is_asked_often: bool = False) -> Rows:
    """Return these rows seen through a column stage, or as they are where there is none.

    Few dense rows in memory are transformed at once, others block by block at each pass.
    """
    if stage is None or stage.is_identity:
        return rows
    few = DURING_A_FIT if is_asked_often else FEW
    if isinstance(rows, MemoryRows) and rows.n_rows * len(stage) <= few and not rows.is_sparse:
        return rows.on_same_threads(stage.transform(rows.array()))
    return StagedRows(rows, stage)


class StagedRows(Rows):
    """Rows whose blocks answer through a column stage, wherever they live."""

    n_rows: int
    n_features_in: int
    dtype: np.dtype
    in_memory: bool

    def __init__(self, rows: Rows, stage: ColumnStage):
        self._rows, self._stage = rows, stage
        self.n_rows, self.n_features_in, self.dtype = rows.n_rows, len(stage), rows.dtype
        self.in_memory, self.vectors = rows.in_memory, rows.vectors
        self.is_sparse: bool = rows.is_sparse and stage.keeps_zeros

    @property
    def n_passes(self) -> int:
        return self._rows.n_passes

    def sum(self, answer: Callable[..., Any], *vectors: RowVector, add: Callable[[Any, Any], Any] = np.add) -> Any:
        return self._rows.sum(partial(_answer_staged, self._stage, answer), *vectors, add=add)

    def map(self, answer: Callable[..., Any], *vectors: RowVector, axis: int = -1) -> RowVector:
        return self._rows.map(partial(_answer_staged, self._stage, answer), *vectors, axis=axis)

    def map_and_sum(self, answer: Callable[..., Any], *vectors: RowVector) -> tuple[RowVector, Any]:
        return self._rows.map_and_sum(partial(_answer_staged, self._stage, answer), *vectors)

    def kernel(self, features: FeatureSet, weights: np.ndarray) -> np.ndarray:
        return self.on_same_threads(self.array()).kernel(features, weights)

    def take(self, index: np.ndarray) -> Rows:
        return staged(self._rows.take(index), self._stage, is_asked_often=True)

    def array(self, index: np.ndarray | None = None) -> DenseOrCSR:
        return self._stage.transform(self._rows.array(index))

    def on_same_threads(self, X: DenseOrCSR) -> Rows:
        return self._rows.on_same_threads(X)

    def to_namespace_of_X(self, answer: Array) -> Array:
        return self._rows.to_namespace_of_X(answer)

    def __enter__(self) -> Self:
        self._rows.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)


def _answer_staged(stage, answer, block, *parts):
    """Ask a question of a block seen through a stage."""
    return answer(block.staged(stage), *parts)
