"""The terms of a model one by one, and what each makes of single columns of X."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.checks import is_sparse
from .._base.sampling import draw_rows
from ..features.feature_set import DefaultNames
from ..rows import as_rows, rows_read, staged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .._base.types import DenseOrCSR, MatrixLike
    from ..features.feature_set import FeatureSet
    from ..model import SparseModel


@dataclass(frozen=True, eq=False)
class Term:
    """gain activation(sum_v w_v u_v + offset) of some views u; or of a product gain exp(-gamma sum_v u_v^2) prod_v u_v^w_v.

    position : in the model
    views, weights : those that it sees
    columns : the columns of X that it sees, ascending; place : of each view, that of its column among these
    """

    position: int
    activation: str
    gain: float
    offset: float
    views: np.ndarray
    weights: np.ndarray
    columns: np.ndarray
    place: np.ndarray
    gamma: float | None = None

    @cached_property
    def is_product(self) -> bool:
        """Whether it is Re(K prod_j z_j), with z_j a number that tells one column."""
        return self.activation in ("cos", "sin", "product")

    @property
    def constant(self) -> complex:
        """K of a product."""
        if self.activation == "product":
            return self.gain
        return self.gain * np.exp(1j * (self.offset - (np.pi / 2 if self.activation == "sin" else 0.0)))

    @np.errstate(over="ignore", under="ignore")
    def parts(self, U: np.ndarray) -> np.ndarray:
        """Of each column, in the rows whose views are U, (n_columns, n_rows): z_j of a product; else its part of w'u."""
        u, w = U[:, self.views].T, self.weights[:, None]
        if self.activation == "product":  # (u exp(-gamma u^2 / w))^w does not overflow
            factors = np.where(w > 0, u * np.exp(-self.gamma * u / np.maximum(w, 1) * u), 1.0) ** w
            return self._together(np.multiply, np.where(w > 0, factors, np.exp(-self.gamma * u * u)))
        sums = self._together(np.add, w * u)
        return np.exp(1j * sums) if self.is_product else sums

    def _together(self, combine, values):
        """Values of views, those of a column combined."""
        together = np.full((len(self.columns), values.shape[1]), float(combine.identity))
        combine.at(together, self.place, values)
        return together


def column_of(features: FeatureSet) -> np.ndarray:
    """The column that each view is of."""
    return np.arange(features.n_inputs) if features.stage is None else features.stage.column


def terms_of(features: FeatureSet) -> Iterator[Term]:
    """The terms of a FeatureSet, those that see no column too."""
    n, column = features.n_inputs, column_of(features)
    for block, positions in features.by_block(features.to_blocks(np.arange(len(features)))):
        for k, position in enumerate(positions.tolist()):
            yield _term(block, k, position, column, n)


def _term(block, k, position, column, n):
    gain, gamma = block.scale, None
    if block.envelope is not None:
        views, weights = np.arange(n), np.bincount(block.inputs[k], minlength=n + 1)[1:].astype(np.float64)
        gain *= float(block.weights[k, 0]) ** block.order * (2 * block.gamma) ** (weights.sum() / 2)
        gamma = block.gamma
    else:
        views, weights = _entries(block, k)
    columns, place = np.unique(column[views], return_inverse=True)
    return Term(position, block.activation, float(gain), float(block.offset[k]), views, weights, columns, place, gamma)


def _entries(block, k):
    """(views, weights) of feature k, without those of weight 0."""
    if block.inputs is None:
        views, weights = np.arange(block.order), block.weights[k]
    else:
        views, place = np.unique(block.inputs[k], return_inverse=True)
        weights = np.bincount(place, block.weights[k])
    return views[weights != 0], weights[weights != 0]


def numbers(model: SparseModel, X: MatrixLike, most: int | None = None, rng: np.random.Generator | None = None) -> DenseOrCSR:
    """The rows of X as numbers in memory, or at most so many of them, by chance."""
    rows = rows_read(X, model.features.stage, n_features=model.n_features_in)
    if most is None or rows.n_rows <= most:
        return rows.array()
    return rows.array(draw_rows(rows.n_rows, most, rng))


def thinned(X: DenseOrCSR, most: int, rng: np.random.Generator) -> DenseOrCSR:
    """Rows of numbers, or at most so many of them, by chance."""
    return X if X.shape[0] <= most else X[draw_rows(X.shape[0], most, rng)]


def views(model: SparseModel, X: DenseOrCSR) -> np.ndarray:
    """The views of rows of numbers, (n_rows, n_views)."""
    X, stage = X.astype(np.float64), model.features.stage
    return dense(X if stage is None or stage.is_identity else stage.transform(X))


def dense(X: DenseOrCSR) -> np.ndarray:
    """Numbers in memory as a float64 array."""
    return (X.toarray() if is_sparse(X) else X).astype(np.float64)


def decision(model: SparseModel, X: DenseOrCSR) -> np.ndarray:
    """f of rows of numbers, (n_outputs, n_rows)."""
    rows = staged(as_rows(X, may_miss=True), model.features.stage)
    f = rows.apply(model.features, np.atleast_2d(model.coef))
    return f + np.atleast_1d(model.intercept)[:, None]


def names_of(model: SparseModel) -> Sequence[str]:
    """Of the columns of X."""
    return model.feature_names_in_ or DefaultNames(model.n_features_in)


def levels_of(model: SparseModel) -> Sequence[Sequence[Any] | None]:
    """Of the columns of X: None, or the levels of a category."""
    stage = model.features.stage
    return [None] * model.n_features_in if stage is None or stage.table is None else stage.table.levels
