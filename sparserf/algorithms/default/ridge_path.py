"""Linear functions on one fold, with a penalty on the squares of their weights: of all columns, and
then of fewer and fewer of them.

Columns are dropped by recursive feature elimination (I. Guyon, J. Weston, S. Barnhill, V. Vapnik,
Machine Learning 46, 2002): those whose part of the function varies least, a share at a time, with
the others fitted again each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._base.checks import is_sparse
from ..._base.progress import check_not_ended
from ...features import FeatureSet, inputs_times
from ...solvers.krylov import ArrayVectors, conjugate_gradients
from .fold_path import FoldPath, eliminate_intercept
from .path_rows import rows_in_order
from .term_values import Numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..sparse_rf.options import SparseRFOptions
    from ..task import Task
    from .fold_path import State

# A direction of the columns that varies less than this, in units of their variances, is penalised
# as if it varied so much: the large weights that it would have cancel in training alone.
LEAST_VARIANCE = 1e-3
# Newton steps for each penalty, where the loss is no square; a fall of the objective by less than
# this share of it ends them.
STEPS, FALL = 4, 1e-3
# A step by conjugate gradients ends where the residual is this share of the gradient, or after so
# many products with the Hessian.
CG_TOL, CG_STEPS = 0.03, 50
# The share of the columns that stay, each time that some are dropped.
KEPT = 0.7


class RidgePath(FoldPath):
    """Linear functions of all inputs, with a penalty (alpha |w|^2 + w'Mw) / 2 on their weights in
    units of the deviations of the inputs, and of the mean curvature. With C the covariances of the
    inputs in these units, C + M has the eigenvectors of C, and its eigenvalues, but for those below
    LEAST_VARIANCE, which are that."""

    features: FeatureSet
    index: np.ndarray
    w: np.ndarray
    b: np.ndarray
    z: np.ndarray
    alpha: float
    # The curvature of each target of which the penalty is a multiple; None: that of each step.
    _curvatures: list[float] | None = None

    def __init__(self, task: Task, options: SparseRFOptions, fitted: np.ndarray | None = None):
        super().__init__(task, options, fitted)
        X = rows_in_order(task, self._order, self.n)
        X, n = (X.toarray() if is_sparse(X) else X).astype(np.float64), self.n
        share = self.s / self.s.sum()
        self._mean = (share @ X[:n]) * self._has_intercept
        X -= self._mean
        deviation = np.sqrt(share @ X[:n] ** 2)
        is_constant = deviation <= 1e-7 * np.maximum(np.abs(self._mean), 1e-30)
        self._scale = np.where(is_constant, 0.0, 1 / np.where(is_constant, 1.0, deviation))
        X *= self._scale
        held = np.ascontiguousarray(X.T)
        self.values = Numbers(held, n)
        self.features, self.index = inputs_times(np.ones(X.shape[1])), np.arange(X.shape[1])
        self.w = np.zeros((len(self.w), len(held)))
        self._variances = np.sign(self._scale)
        self._missing = missing_variance((held[:, :n] * share) @ held[:, :n].T)

    def largest_alpha(self) -> float:
        return max(1.0, len(self._scale) / self.n)

    def fit_at(self, alpha: float, times: float = 1.0) -> None:
        self.alpha, before = alpha, np.inf
        is_exact = self.is_quadratic and type(self) is RidgePath
        for _ in range(1 if is_exact else STEPS):
            self.sweep()
            now = self.objective()
            if now > (1 - FALL) * before:
                break
            before = now

    # Fewer columns

    def return_to(self, alpha: float, state: State) -> None:
        """Return to what was found with this penalty."""
        _, _, w, b = state
        w, b = w / self._units[:, None], b / self._units
        self.alpha = alpha
        self.w = w / np.where(self._scale > 0, self._scale, 1.0)
        self.b = b + w @ self._mean
        self.z = self._apply(self.w) + self.b[:, None]

    def drop_columns(self) -> None:
        """Drop the columns whose part of the function varies least, and fit the others again."""
        if self._curvatures is None:
            # With fewer and fewer columns the penalty stays what it is: as a share of the curvature
            # at each step it would fall with every one where classes can be told apart.
            self._curvatures = [float(self.curvature_of(k).sum()) for k in range(len(self.w))]
        varies = self._variances * (self.w**2).sum(axis=0)
        n = max(1, int(KEPT * len(varies)))
        kept = np.sort(np.argsort(-varies, kind="stable")[:n])
        dropped = self.w.copy()
        dropped[:, kept] = 0.0
        self.z -= self._apply(dropped)
        self.features, self.index = self.features.take(kept), self.index[kept]
        self.w, self._variances = self.w[:, kept], self._variances[kept]
        self._mean, self._scale = self._mean[kept], self._scale[kept]
        self._keep_values(kept)
        self.fit_at(self.alpha)

    def _apply(self, w):
        """Return the sum of the columns times these weights at each row."""
        return self.values.apply(w)

    def _keep_values(self, kept):
        """Keep the values of these columns."""
        self.values = Numbers(self.values.of_terms(kept), self.n)
        self._missing = self._missing[np.ix_(kept, kept)]
        self.gram = None if self.gram is None else self.gram[np.ix_(kept, kept)]

    def _set_unit(self, k, alpha, total):
        """Set the penalty of target k, where its curvature is `total`."""
        total = total if self._curvatures is None else self._curvatures[k]
        self._unit = alpha * self._slope_units[0] * max(total, 1e-300)

    # Steps

    def _active(self, g, w, alpha):
        return np.arange(len(w))

    def _minimise(self, k, H, m, total, g, w, alpha, A):
        eliminate_intercept(H, m, total)
        self._set_unit(k, alpha, self._total)
        H[np.diag_indices_from(H)] += self._unit
        H += self._total * self._missing
        return w - np.linalg.solve(H, g + self._slope_of_penalty(w)), 0.0

    def _slope_of_penalty(self, w):
        return self._unit * w + self._total * (self._missing @ w)

    def _penalty(self, w, alpha):
        return 0.5 * (w @ self._slope_of_penalty(w))

    def state(self) -> State:
        w = self.w * self._scale
        b = self.b - w @ self._mean
        return self.features, self.index, w * self._units[:, None], b * self._units

    @property
    def n_terms(self) -> int:
        return len(self.w)


class WideRidgePath(RidgePath):
    """The same for many inputs, whose Gram matrix is never made: each Newton step by conjugate
    gradients, a product with the rows and one with their transpose each."""

    def __init__(self, task: Task, options: SparseRFOptions, fitted: np.ndarray | None = None):
        FoldPath.__init__(self, task, options, fitted)
        self._X, share = rows_in_order(task, self._order, self.n), self.s / self.s.sum()
        X = self._X[: self.n]
        mean, squares = X.T @ share, (X.multiply(X) if is_sparse(X) else X * X).T @ share
        deviation = np.sqrt(np.maximum(squares - mean**2, 0.0))
        is_constant = deviation <= 1e-7 * np.maximum(np.abs(mean), 1e-30)
        unit = deviation
        if is_sparse(X):  # a rare entry says little, and keeps its unit
            unit = np.full(len(deviation), np.sqrt(np.mean(deviation**2)) or 1.0)
        self._scale = np.where(is_constant, 0.0, 1 / np.where(is_constant, 1.0, unit))
        self._variances = (deviation * self._scale) ** 2
        self._mean, d = np.zeros(len(mean)), len(mean)
        self.features, self.index = inputs_times(np.ones(d)), np.arange(d)
        self.w = np.zeros((len(self.w), d))

    def _step(self, k, alpha, loss, y):
        n, z, w, X, scale = self.n, self.z[k], self.w[k], self._X, self._scale
        fitted = X[:n]
        u, h = self.s * loss.derivative(z[:n], y), self.curvature(loss, z[:n], y)
        total = h.sum()
        self._set_unit(k, alpha, total)
        m = scale * (fitted.T @ h) if self._has_intercept else np.zeros(len(w))

        def hessian(d):
            return (
                scale * (fitted.T @ (h * (fitted @ (scale * d))))
                - m * ((m @ d) / total)
                + self._unit * d
            )

        slope = u.sum() if self._has_intercept else 0.0
        g = scale * (fitted.T @ u) - m * (slope / total) + self._slope_of_penalty(w)
        d = solve(hessian, -g)
        db = -(slope + m @ d) / total
        self._move(k, alpha, loss, y, slice(None), w + d, db, X @ (scale * d) + db)
        return 0.0

    def _slope_of_penalty(self, w):
        return self._unit * w

    def _apply(self, w):
        return np.stack([self._X @ (self._scale * w_k) for w_k in w])

    def _keep_values(self, kept):
        self._X = self._X[:, kept]


def missing_variance(C: np.ndarray) -> np.ndarray:
    """Return the matrix that lifts the eigenvalues of C to LEAST_VARIANCE."""
    variances, directions = np.linalg.eigh(C)
    few = variances < LEAST_VARIANCE
    directions = directions[:, few]
    return (directions * (LEAST_VARIANCE - np.maximum(variances[few], 0.0))) @ directions.T


def solve(hessian: Callable[[np.ndarray], np.ndarray], b: np.ndarray) -> np.ndarray:
    """Return x with hessian(x) near b."""
    enough = CG_TOL**2 * (b @ b)

    def product(x):
        check_not_ended()
        return hessian(x[0])[None]

    def is_near(_, r, __):
        return np.vecdot(r, r) <= enough

    b = b[None]
    x, _ = conjugate_gradients(
        product, lambda r: r, b, np.zeros_like(b), is_near, CG_STEPS, ArrayVectors
    )
    return x[0]
