"""A model evaluated at rows of X: the rows as numbers in memory, the encodings that its terms see,
and decision values."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import is_sparse
from .._base.random import draw_rows
from ..columns.frames import is_frame, rows_of_frame
from ..expansion.terms import encoder_of, terms_of
from ..rows import as_rows, read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._base.types import DenseOrCSR, MatrixLike
    from ..expansion import Expansion
    from ..features import Term
    from ..rows import Rows

# The most cells of rows that are encoded at once.
AT_ONCE = 2**21


def read_numbers(
    model: Expansion, X: MatrixLike, most: int | None = None, rng: np.random.Generator | None = None
) -> DenseOrCSR:
    """Return the rows of X as numbers in memory, levels as codes; of more than `most` rows a
    sample, drawn by rng."""
    return read_sample(model, X, most, rng)[0]


def read_sample(
    model: Expansion, X: MatrixLike, most: int | None, rng: np.random.Generator | None
) -> tuple[DenseOrCSR, np.ndarray, int]:
    """Return the rows of X as numbers, of more than `most` a sample, the indices of these rows in
    X, and the number of all. Of a frame no other rows are read."""

    read = partial(read_rows, encoder=model.features.encoder, n_features=model.n_features_in)
    rows = None if is_frame(X) else read(X)
    n_rows = len(X) if rows is None else rows.n_rows
    index = np.arange(n_rows)
    if most is not None and n_rows > most:
        index = draw_rows(n_rows, most, rng)
    if rows is None:
        return read(X if len(index) == n_rows else rows_of_frame(X, index)).array(), index, n_rows
    return rows.array(None if len(index) == n_rows else index), index, n_rows


def subsample(X: DenseOrCSR, most: int | None, rng: np.random.Generator) -> DenseOrCSR:
    """Return X, or if it has more than `most` rows a sample of `most` rows, drawn by rng, in their
    order."""
    if most is None or X.shape[0] <= most:
        return X
    return X[draw_rows(X.shape[0], most, rng)]


def column_of(X: DenseOrCSR, j: int) -> np.ndarray:
    """Return column j of X as a vector."""
    return X[:, j] if isinstance(X, np.ndarray) else X[:, [j]].toarray().ravel()


def to_dense(X: DenseOrCSR) -> np.ndarray:
    """Return X as a float64 ndarray."""
    return (X.toarray() if is_sparse(X) else X).astype(np.float64)


class SeenTerms:
    """The terms of a model that depend on some column, as functions of the encodings that they see,
    alone.

    terms : list of Term, whose `encodings` are places among these
    columns : ndarray, the columns of X from which these encodings are made, ascending
    """

    terms: list[Term]
    columns: np.ndarray

    def __init__(self, model: Expansion):
        terms = [term for term in terms_of(model.features) if len(term.columns)]
        encodings = [np.zeros(0, np.intp), *(term.encodings for term in terms)]
        seen = np.unique(np.concatenate(encodings))
        self._encoder = encoder_of(model.features).take(seen)
        self.columns, self._column = np.unique(self._encoder.column, return_inverse=True)
        self.terms = [
            replace(term, encodings=np.searchsorted(seen, term.encodings)) for term in terms
        ]

    def places(self, term: Term) -> np.ndarray:
        """Return the places among `columns` of the columns of a term."""
        return np.searchsorted(self.columns, term.columns)

    def encode(self, X: DenseOrCSR) -> np.ndarray:
        """Return the encodings of rows of numbers, (n_rows, n_encodings), each of them contiguous
        in memory."""
        U = np.empty((X.shape[0], len(self._encoder)), order="F")
        step = max(1, AT_ONCE // max(1, X.shape[1]))  # some encodings of CSR rows are dense
        for start in range(0, X.shape[0], step):
            part = slice(start, start + step)
            U[part] = to_dense(self._encoder.transform(X[part].astype(np.float64)))
        return U

    def by_column(self, weights: np.ndarray, U: np.ndarray) -> np.ndarray:
        """Return the sum over the encodings of each column of weights times encodings, (n_outputs,
        n_columns, n_rows).

        weights : (n_outputs, n_encodings)
        """
        total = np.zeros((len(weights), len(self.columns), len(U)))
        np.add.at(total, (slice(None), self._column), weights[:, :, None] * U.T)
        return total


def side_by_side(points: Mapping[int, np.ndarray], n_columns: int) -> np.ndarray:
    """Return rows of numbers whose columns hold some points each, those of no other column beside
    them; shorter ones repeat their last point."""
    rows = np.zeros((max((len(at) for at in points.values()), default=0), n_columns))
    for j, at in points.items():
        rows[:, j] = at[np.minimum(np.arange(len(rows)), len(at) - 1)]
    return rows


def decision_values(model: Expansion, X: DenseOrCSR) -> np.ndarray:
    """Return the decision values f of rows of numbers, (n_outputs, n_rows)."""
    f = encoded_rows(model, X).apply(model.features, np.atleast_2d(model.coef))
    return f + np.atleast_1d(model.intercept)[:, None]


def encoded_rows(model: Expansion, X: DenseOrCSR) -> Rows:
    """Return rows of numbers with their columns encoded by the column encoder of the model."""
    return as_rows(X, may_miss=True).encoded(model.features.encoder)
