"""Shapley values of a model, term by term: a term depends on few columns, and its values for the
others are 0.

The game of a row x: a set S of columns is worth v(S) = mean over the background rows b of f(x_S,
b_rest) (Lundberg and Lee, 2017). Shapley values are additive, so each term has its own game, played
by its own columns alone (`games.py`); linear terms are played all at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import check_integer, check_rng
from .evaluate import SeenTerms, read_numbers, subsample
from .games import game_of, worth_alone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._base.types import DenseOrCSR, MatrixLike, Seed
    from ..expansion import Expansion

# The default number of background rows, as in shap (`maskers.Independent`).
BACKGROUND = 100
# The default number of random orders of the columns of a term of many columns.
ORDERS = 4
# The number of parts of the background: standard errors come from how the values of each differ.
PARTS = 8
# The most rows that are explained at once, and the most encodings of them.
STEP, MOST_ENCODED = 300, 2**21


def shapley(
    model: Expansion,
    X: MatrixLike,
    background: MatrixLike | None,
    n_background: int | None,
    n_permutations: int,
    return_std: bool,
    rng: Seed,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Compute Shapley values: see `SparseModel.shapley`."""
    n_permutations, rng = check_integer("n_permutations", n_permutations, 2), check_rng(rng)
    X = read_numbers(model, X)
    B = background_of(model, X, background, n_background, rng)
    if not return_std:
        return _laid_out(model, ShapleyValues(model, B, X.shape[0], n_permutations, rng), X)
    if B.shape[0] < 2:
        raise ValueError("return_std=True needs at least 2 background rows, got 1")
    parts = np.array_split(rng.permutation(B.shape[0]), min(PARTS, B.shape[0]))
    weight = np.array([len(part) for part in parts]) / B.shape[0]
    games = (ShapleyValues(model, B[part], X.shape[0], n_permutations, rng) for part in parts)
    each = np.stack([_laid_out(model, of_part, X) for of_part in games])
    values = np.tensordot(weight, each, 1)
    variance = np.tensordot(weight, (each - values) ** 2, 1) / (len(parts) - 1)
    return values, np.sqrt(variance)


def background_of(
    model: Expansion,
    X: DenseOrCSR,
    background: MatrixLike | None,
    n_background: int | None,
    rng: np.random.Generator,
) -> DenseOrCSR:
    """Return the background as rows of numbers: at most n_background rows of it, drawn by rng; if
    it is None, of X."""
    if n_background is not None:
        n_background = check_integer("n_background", n_background, 1)
    if background is None and X.shape[0] == 1:
        raise ValueError(
            "background must be given for a single row: what is usual is in other rows, as those "
            "of the fit"
        )
    if background is None:
        B = subsample(X, n_background, rng)
    else:
        B = read_numbers(model, background, n_background, rng)
    if B.shape[0] == 0:
        raise ValueError("background must have at least one row, got none")
    return B


def _laid_out(model, shapley_values, X):
    """Return Shapley values of rows of numbers as an array of (n_rows, n_columns), or (n_rows,
    n_columns, n_outputs) for several outputs."""
    out = np.zeros((X.shape[0], model.n_features_in, len(np.atleast_2d(model.coef))))
    for part, values in shapley_values.by_slices(X):
        out[part, shapley_values.columns] = values.transpose(2, 1, 0)
    return out if model.coef.ndim > 1 else out[:, :, 0]


class ShapleyValues:
    """The games of all terms of a model against background rows B.

    columns : the columns of X that some term sees, ascending
    """

    columns: np.ndarray

    def __init__(
        self,
        model: Expansion,
        B: DenseOrCSR,
        n_rows: int,
        n_permutations: int,
        rng: np.random.Generator,
    ):
        """Compute once what all of n_rows rows need of the background, and draw all orders."""
        self._seen, coef = SeenTerms(model), np.atleast_2d(model.coef)
        self.columns, encoded = self._seen.columns, self._seen.encode(B)
        self._mean = encoded.mean(axis=0)
        # (n_outputs, n_encodings), the sum of all linear terms
        self._linear = np.zeros((len(coef), encoded.shape[1]))
        self._games = []
        for term in self._seen.terms:
            c = coef[:, term.position, None, None]
            if term.is_linear:
                self._linear[:, term.encodings] += c[:, :, 0] * term.gain * term.weights
            else:
                game = game_of(term, term.parts(encoded), n_rows, n_permutations, rng)
                self._games.append((term, c, self._seen.places(term), game))

    def by_slices(self, X: DenseOrCSR) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield slices of the rows of numbers X, and their Shapley values, (n_outputs,
        n_columns_seen, n_rows)."""
        step = max(1, min(STEP, MOST_ENCODED // max(1, self._linear.shape[1])))
        for start in range(0, X.shape[0], step):
            part = slice(start, min(start + step, X.shape[0]))
            U = self._seen.encode(X[part])
            values = self._seen.by_column(self._linear, U - self._mean)
            for term, c, places, game in self._games:
                values[:, places] += c * game.values(term.parts(U))
            yield part, values


def partial_dependence(model: Expansion, X: DenseOrCSR, B: DenseOrCSR) -> dict[int, np.ndarray]:
    """Return the mean of the f of one output over background rows B with one column set to its
    value in each row of X, less the mean of f: {column: (n_rows,)}, for the columns that some term
    sees."""
    seen, coef = SeenTerms(model), np.atleast_2d(model.coef)
    U, encoded = seen.encode(X), seen.encode(B)
    linear = np.zeros((1, U.shape[1]))
    alone = np.zeros((len(seen.columns), len(U)))
    for term in seen.terms:
        c = coef[0, term.position]
        if term.is_linear:
            linear[:, term.encodings] += c * term.gain * term.weights
        else:
            of_b = term.parts(encoded)
            alone[seen.places(term)] += c * worth_alone(term, term.parts(U), of_b)
    alone += seen.by_column(linear, U - encoded.mean(axis=0))[0]
    return dict(zip(seen.columns.tolist(), alone, strict=True))
