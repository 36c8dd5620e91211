"""Polish a small model: move the weights within its cosines, until its predictions are nearest to
those of the larger model that it was taken from.

Each term of a large model says little, and the best few of them are not the best few cosines that
there are. With A the values of the terms on some rows, functions of the weights w and offsets b of
the cosines, h the weights of the rows, of sum 1, and f what the large model predicts,

    E(w, b) = min_c tr (f - A c)' diag(h) (f - A c)

is lowered by L-BFGS, beginning at the cosines that were chosen. As c is the best for each w and b,
the slope of E is that at this c (variable projection). Weights that are zero stay zero, so that
each term sees the columns that it saw, and terms of other kinds stay as they are.

Few rows leave open what many weights are between them. So rows are made in their manner: each
column is that of a row or of one near it (`columns/made_rows.py`).

G. Golub, V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems
whose variables separate, SIAM Journal on Numerical Analysis 10, 1973.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._base.progress import check_not_ended
from .._base.random import evenly
from ..columns.made_rows import with_made_rows
from ..features import FeatureSet
from .fit_progress import power_of_two

if TYPE_CHECKING:
    from ..columns.encoder import ColumnEncoder
    from ..features.blocks import FeatureBlock
    from ..model import SparseModel
    from ..rows import Rows

# The rows on which terms are chosen and moved, evenly spaced. Where there are fewer, one is made
# for each as far as there is place; these weigh MADE times as much as all others.
ROWS, MADE = 3_000, 0.3
# The most steps of L-BFGS, and the most multiplications of all of them; a cosine with its slope
# takes as long as COSINE multiplications.
STEPS, WORK, COSINE = 25, 2.5e9, 200
# With fewer steps than this, terms stay as they are.
FEWEST_STEPS = 3
# Coefficients have a penalty of this share of the mean square of their term, so that those of terms
# which have come to be equal are bounded.
RIDGE = 1e-8
# The curvature by which a weight is measured is at least this share of the mean.
LEAST_CURVATURE = 1e-3


def movable(model: SparseModel, rows: Rows) -> np.ndarray:
    """Return a mask of the terms that polishing can move: cosines and sines of dense weights.

    None move with CSR rows, and where coefficients must be at least 0, or are held near others, as
    those of bumps.
    """
    features = model.features
    if rows.is_sparse or features.nonnegative.any() or features.is_local.any():
        return np.zeros(len(features), bool)
    return features.mask(_is_movable)


def _is_movable(block: FeatureBlock) -> bool:
    """Return whether the features of a block can be moved."""
    return block.is_periodic and block.inputs is None


def steps_for(n_terms: int, n_inputs: int) -> int:
    """Return how many steps terms may be moved; 0 where that is too few to help."""
    work = ROWS * n_terms * (n_terms + n_inputs + COSINE)
    steps = min(STEPS, int(WORK / work))
    return steps if steps >= FEWEST_STEPS else 0


def rows_to_polish_on(
    rows: Rows, weight: np.ndarray, encoder: ColumnEncoder | None
) -> tuple[Rows, np.ndarray]:
    """Return dense rows, and made ones where they are few, in memory, and their weights, of sum 1.

    encoder : the column encoder that encoded the rows
    """
    index = evenly(n := rows.n_rows, ROWS)
    X, weight = rows.array(index), weight[index]
    if (n_made := min(ROWS - n, n)) > 0:
        X, weight = with_made_rows(X, weight, encoder, n_made, MADE)
    return rows.on_same_threads(X), weight / weight.sum()


def polished(
    small: SparseModel, model: SparseModel, rows: Rows, h: np.ndarray, fit_intercept: bool = True
) -> SparseModel:
    """Return the small model with the weights within its cosines moved, and all coefficients fitted
    again, to where it is nearest to what the model predicts for the rows.

    rows, h : by `rows_to_polish_on`
    fit_intercept : whether the intercept may change
    """
    steps = steps_for(len(small.features), small.features.n_inputs)
    if not (steps and movable(small, rows).any()):
        return small
    unit = power_of_two(np.atleast_2d(model.coef))
    f = rows.vectors.fetch(rows.apply(model.features, np.atleast_2d(model.coef) / unit))
    f = f + np.reshape(model.intercept, (-1, 1)) / unit
    if not fit_intercept:
        f = f - np.reshape(small.intercept, (-1, 1)) / unit
    size = power_of_two(f)  # no square overflows
    terms = _Terms(small.features, rows, f.T / size, h, fit_intercept)
    U = terms.nearest(steps)
    if U is None:
        return small
    features, coef = terms.features_and_coef(U)
    coef, b = np.split(coef * size * unit, [len(features)], axis=1)
    if not (np.isfinite(coef).all() and np.isfinite(b).all()):
        return small
    b = np.reshape(b, np.shape(small.intercept)) if fit_intercept else small.intercept
    return replace(
        small,
        features=features,
        coef=coef.reshape(small.coef.shape),
        intercept=b if np.ndim(b) else float(b),
    )


class _Fit(NamedTuple):
    """Terms at some weights: the sines of the cosines, the best coefficients (n_terms, n_outputs),
    what these leave of f, and the mean square of that."""

    sines: np.ndarray
    coef: np.ndarray
    left: np.ndarray
    error: float


class _Terms:
    """The terms of a model on some rows, as functions of the weights U of its cosines.

    U has a line for each cosine: its weights of the inputs, these around their means in units of
    their standard deviations, and its offset. The values have a column for each term, in the order
    of the blocks, and a last one of 1 where there is an intercept.
    """

    def __init__(self, features, rows, f, h, fit_intercept):
        X, n_terms = rows.array().astype(np.float64), len(features) + fit_intercept
        self._features, self._f, self._h = features, f, h[:, None]
        size = np.maximum(np.abs(X).max(axis=0), np.finfo(np.float64).tiny)  # no square overflows
        X = X / size
        mean = h @ X
        deviation = np.sqrt(h @ (X - mean) ** 2)
        deviation = np.where(deviation > 0, deviation, 1.0)
        self._Z = np.hstack([(X - mean) / deviation, np.ones((len(X), 1))])
        self._mean, self._unit = size * mean, size * deviation
        self._values, self._is_cosine = np.ones((len(X), n_terms)), np.zeros(n_terms, bool)
        self._scale, lines, start = np.ones(n_terms), [], 0
        for block in features.blocks:
            here = slice(start, start := start + len(block))
            if _is_movable(block):
                offset = block.offset + block.sigma.phase + block.weights @ self._mean
                lines.append(np.hstack([block.weights * self._unit, offset[:, None]]))
                self._is_cosine[here], self._scale[here] = True, 1 / block.scale
            else:
                values = rows.transform(FeatureSet([block], features.n_inputs)).astype(np.float64)
                largest = np.abs(values).max(axis=0)
                self._scale[here] = 1 / np.where(largest > 0, largest, 1.0)
                self._values[:, here] = values * self._scale[here]
        self._start = np.vstack(lines)
        self._values[:, self._is_cosine] = np.cos(self._Z @ self._start.T)
        self._ridge = RIDGE * (h @ self._values**2)

    def at(self, U: np.ndarray) -> _Fit:
        """Return the terms at weights U."""
        from scipy.linalg import solve

        check_not_ended()
        values, angles = self._values, self._Z @ U.T
        values[:, self._is_cosine] = np.cos(angles)
        weighted = self._h * values
        G = values.T @ weighted
        G[np.diag_indices_from(G)] += self._ridge
        coef = solve(G, weighted.T @ self._f, assume_a="pos", check_finite=False)
        left = self._f - values @ coef
        error = (self._h * left**2).sum() + self._ridge @ (coef**2).sum(axis=1)
        return _Fit(np.sin(angles), coef, left, float(error))

    def nearest(self, steps: int) -> np.ndarray | None:
        """Return weights U at which the terms are nearer to f, from those that they have on; None
        where there is nothing to move, or numbers overflow."""
        from scipy.optimize import minimize

        if not (self._f.any() and np.isfinite(self._start).all()):
            return None
        start, is_free = self.at(self._start), self._start != 0
        is_free[:, -1] = True
        size = (start.coef[self._is_cosine] ** 2).sum(axis=1)[:, None]
        curvature = size * ((self._h * start.sines**2).T @ self._Z**2)
        curvature += LEAST_CURVATURE * curvature.mean()
        if not (start.error > 0 and curvature.all()):
            return None
        unit = np.sqrt(start.error / curvature)

        def error_and_slope(x):
            fit = self.at(self._start + unit * x.reshape(unit.shape))
            pull = (self._h * fit.left) @ fit.coef[self._is_cosine].T
            slope = np.where(is_free, 2 * unit * ((fit.sines * pull).T @ self._Z), 0.0)
            return fit.error / start.error, slope.ravel() / start.error

        how = {"method": "L-BFGS-B", "options": {"maxiter": steps}}
        found = minimize(error_and_slope, np.zeros(unit.size), jac=True, **how)
        return self._start + unit * found.x.reshape(unit.shape)

    def features_and_coef(self, U: np.ndarray) -> tuple[FeatureSet, np.ndarray]:
        """Return the features of weights U and their coefficients, (n_outputs, n_terms)."""
        coef, blocks, start = self.at(U).coef.T * self._scale, [], 0
        for block in self._features.blocks:
            if _is_movable(block):
                own = U[start : (start := start + len(block))]
                weights = own[:, :-1] / self._unit
                offset = own[:, -1] - block.sigma.phase - weights @ self._mean
                block = replace(block, weights=weights, offset=offset)
            blocks.append(block)
        n = len(self._features)
        coef[:, :n] = self._features.from_blocks(coef[:, :n])
        about = self._features.n_inputs, self._features.order, self._features.encoder
        return FeatureSet(blocks, *about), coef
