"""A model evaluated at rows of X: the rows as numbers in memory, their encodings, and their
decision values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import is_sparse
from .._base.random import draw_rows
from ..rows import as_rows, read_rows

if TYPE_CHECKING:
    from .._base.types import DenseOrCSR, MatrixLike
    from ..expansion import Expansion
    from ..rows import Rows


def read_numbers(
    model: Expansion, X: MatrixLike, most: int | None = None, rng: np.random.Generator | None = None
) -> DenseOrCSR:
    """Return the rows of X as numbers in memory, levels as codes; of more than `most` rows a
    sample, drawn by rng."""
    rows = read_rows(X, model.features.stage, n_features=model.n_features_in)
    if most is None or rows.n_rows <= most:
        return rows.array()
    return rows.array(draw_rows(rows.n_rows, most, rng))


def subsample(X: DenseOrCSR, most: int, rng: np.random.Generator) -> DenseOrCSR:
    """Return X, or if it has more than `most` rows a sample of `most` rows, drawn by rng, in their
    order."""
    return X if X.shape[0] <= most else X[draw_rows(X.shape[0], most, rng)]


def column_of(X: DenseOrCSR, j: int) -> np.ndarray:
    """Return column j of X as a vector."""
    return X[:, j] if isinstance(X, np.ndarray) else X[:, [j]].toarray().ravel()


def to_dense(X: DenseOrCSR) -> np.ndarray:
    """Return X as a float64 ndarray."""
    return (X.toarray() if is_sparse(X) else X).astype(np.float64)


def encode(model: Expansion, X: DenseOrCSR) -> np.ndarray:
    """Return the encodings of rows of numbers, as an array of shape (n_rows, n_encodings)."""
    X, stage = X.astype(np.float64), model.features.stage
    return to_dense(X if stage is None or stage.is_identity else stage.transform(X))


def decision_values(model: Expansion, X: DenseOrCSR) -> np.ndarray:
    """Return the decision values f of rows of numbers, (n_outputs, n_rows)."""
    f = encoded_rows(model, X).apply(model.features, np.atleast_2d(model.coef))
    return f + np.atleast_1d(model.intercept)[:, None]


def encoded_rows(model: Expansion, X: DenseOrCSR) -> Rows:
    """Return rows of numbers with their columns encoded by the column stage of the model."""
    return as_rows(X, may_miss=True).staged(model.features.stage)
