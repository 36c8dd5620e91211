"""Rows as a column stage shows them: made block by block, where they become features."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .home import Rows
from .memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Array, DenseOrCSR, RowVector
    from ..columns.stage import ColumnStage
    from ..features.feature_set import FeatureSet

# Numbers in rows that are shown at once, where they are asked one question; and where there will be many, during a fit.
FEW, DURING_A_FIT = 2**12, 2**23


def staged(rows: Rows, stage: ColumnStage | None, is_asked_often: bool = False) -> Rows:
    """These rows as the stage shows them: few numbers in memory at once, others block by block; as they are without one."""
    if stage is None or stage.is_identity:
        return rows
    few = DURING_A_FIT if is_asked_often else FEW
    if isinstance(rows, Memory) and rows.n_rows * len(stage) <= few and not rows.is_sparse:
        shown = rows.beside(stage.transform(rows.array()))
        shown.give = rows.give
        return shown
    return StagedRows(rows, stage)


class StagedRows(Rows):
    """Of any home, whose blocks answer through the stage."""

    n_rows: int
    n_features_in: int
    dtype: np.dtype
    in_memory: bool
    give: Callable[[Array], Array]
    beside: Callable[[DenseOrCSR], Memory]

    def __init__(self, rows: Rows, stage: ColumnStage):
        self._rows, self._stage = rows, stage
        self.n_rows, self.n_features_in, self.dtype = rows.n_rows, len(stage), rows.dtype
        self.in_memory, self.vectors = rows.in_memory, rows.vectors
        self.is_sparse: bool = rows.is_sparse and stage.keeps_zeros
        self.give, self.beside = rows.give, rows.beside

    @property
    def n_passes(self) -> int:
        return self._rows.n_passes

    def sum(self, answer: Callable[..., Any], *vectors: RowVector, add: Callable[[Any, Any], Any] = np.add) -> Any:
        return self._rows.sum(partial(_through, self._stage, answer), *vectors, add=add)

    def map(self, answer: Callable[..., Any], *vectors: RowVector, axis: int = -1) -> RowVector:
        return self._rows.map(partial(_through, self._stage, answer), *vectors, axis=axis)

    def map_and_sum(self, answer: Callable[..., Any], *vectors: RowVector) -> tuple[RowVector, Any]:
        return self._rows.map_and_sum(partial(_through, self._stage, answer), *vectors)

    def kernel(self, features: FeatureSet, weights: np.ndarray) -> np.ndarray:
        return self.beside(self.array()).kernel(features, weights)

    def take(self, index: np.ndarray) -> Rows:
        return staged(self._rows.take(index), self._stage, is_asked_often=True)

    def array(self, index: np.ndarray | None = None) -> DenseOrCSR:
        return self._stage.transform(self._rows.array(index))

    def __enter__(self) -> Self:
        self._rows.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)


def _through(stage, answer, block, *parts):
    return answer(block.staged(stage), *parts)
