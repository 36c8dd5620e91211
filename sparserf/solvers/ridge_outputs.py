"""Ridge regression of several outputs on the same features:  minimise over w, b

    sum_k (1/n) sum_i s_i L(w_k'phi_i + b_k, y_ki) + (alpha/2) sum_k |w_k|^2.

Limited-memory BFGS (D. C. Liu, J. Nocedal, On the limited memory BFGS method for large scale
optimization, 1989), on features around their means, so that coefficients and intercepts do not pull
at each other. A step is one pass over the rows, and no Gram matrix is made, of which each output
would need its own. It comes near to the optimum, as is enough for a penalty that is chosen on
held-out rows. A loss of all outputs together, the multinomial one, will do as well. Where they are
no more than MOST_KEPT numbers, the values of the features are kept, since steps are many and each
asks for all of them twice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .._base.progress import check_not_ended
from ..features import Linear
from .effort import LOSS, UNBOUNDED, work_of_pass
from .problem import backtrack

if TYPE_CHECKING:
    from ..features import FeatureSet
    from ..rows import Rows
    from .effort import Effort
    from .ridge import LocalModel, RidgeProblem

# The last moves, with the changes of the gradient, that are kept.
KEPT = 8
# A step is taken where the objective falls by at least this share of what the slope promises
# (Armijo's rule).
ARMIJO = 1e-4
# The most steps for one penalty, and the shortest share of one that is tried.
MOST_STEPS, SHORTEST = 60, 1e-3
# The time of a step's two products with the values of the features, in multiplications for each
# value and output.
PRODUCTS = 5
# The most values of features that are kept: 128 MB in single precision.
MOST_KEPT = 2**25


class RidgeOfOutputs:
    """The problem of all outputs on some features, and where its solution stands.

    w : ndarray of shape (n_outputs, n_features)
        The coefficients.
    b : ndarray of shape (n_outputs,)
        The intercepts.
    alpha : float
        The penalty of the last `minimise`.
    """

    w: np.ndarray
    b: np.ndarray
    alpha: float

    def __init__(
        self, rows: Rows, features: FeatureSet, problem: RidgeProblem, w: np.ndarray, b: np.ndarray
    ):
        """Begin at the coefficients w and the intercepts b."""
        # the work of making the values of the features, in each step
        self._pass = 2 * work_of_pass(rows, len(features))
        if rows.in_memory and rows.n_rows * len(features) <= MOST_KEPT:
            rows, features, self._pass = (
                rows.on_same_threads(rows.transform(features)),
                Linear().draw(None, len(features)),
                0,
            )
        self._rows, self._features, self._problem = rows, features, problem
        self.w, self.b, self.alpha = w, b, 0.0
        weight = problem.vectors.scaled(problem.weight, 1 / problem.n_rows)
        self._means = (
            rows.correlate(features, weight) if problem.fit_intercept else np.zeros(len(features))
        )
        self._at = problem.local_model(
            rows, features, w, problem.vectors.zeros(len(b)), b, features
        )

    def minimise(self, alpha: float, tol: float, effort: Effort = UNBOUNDED) -> int:
        """Minimise with this penalty until a step lowers the objective by less than the share tol;
        return the number of steps.

        effort : what the steps may take
        """
        self.alpha = alpha
        objective, g, kept = self.objective(), self._gradient(), []
        for k in range(MOST_STEPS):
            check_not_ended()
            effort.add(self._work_of_step())
            d = -inverse_hessian_times(g, kept)
            slope = float(np.vdot(g, d))
            is_lower = partial(falls_enough, objective, slope)
            t, there = backtrack(partial(self._moved, d), is_lower, shortest=SHORTEST)
            if there is None or not slope < 0:  # rounding allows no further descent
                return k
            before, g_before, (objective, self.w, self.b, self._at) = objective, g, there
            g = self._gradient()
            kept = [*kept[-KEPT + 1 :], (t * d, g - g_before)]
            if before - objective <= tol * objective or effort.is_spent:
                return k + 1
        return MOST_STEPS

    def objective(self) -> float:
        """Return the objective."""
        return self._problem.penalised(self._at.loss, self.w, self.alpha)

    def gap(self) -> float:
        """Return how far the objective is from its minimum at most, at the best intercepts: it is
        alpha-strongly convex."""
        g = self._at.g + self.alpha * self.w
        return float(np.sum((g / np.sqrt(2 * self.alpha)) ** 2))

    def margins(self) -> np.ndarray:
        """Return the margins of all outputs, (n_outputs, n_rows)."""
        return self._problem.vectors.fetch(self._problem.margins(self._at.f, self.b))

    def _gradient(self) -> np.ndarray:
        """Return the gradient in the coefficients of features around their means and, as the last
        column, in the intercepts."""
        at, has_b = self._at, self._problem.fit_intercept
        g = at.g - np.outer(at.g_b, self._means) + self.alpha * self.w
        return np.column_stack([g, at.g_b if has_b else np.zeros(len(self.b))])

    def _moved(
        self, step: np.ndarray, t: float
    ) -> tuple[float, np.ndarray, np.ndarray, LocalModel]:
        """Return (the objective, w, b, the local model) after t times a step, of what `_gradient`
        is the gradient in."""
        d = t * step[:, :-1]
        w, b = self.w + d, self.b + t * step[:, -1] - d @ self._means
        at = self._problem.local_model(self._rows, self._features, d, self._at.f, b, self._features)
        return self._problem.penalised(at.loss, w, self.alpha), w, b, at

    def _work_of_step(self) -> float:
        return self._pass + len(self.b) * self._rows.n_rows * (
            PRODUCTS * len(self._features) + LOSS / 10
        )


def falls_enough(objective: float, slope: float, there: tuple[float, ...], t: float) -> bool:
    """Return whether the objective, the first of `there`, has fallen by the share ARMIJO of what
    the slope of a step says."""
    return there[0] <= objective + ARMIJO * t * slope


def inverse_hessian_times(g: np.ndarray, kept: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the product of g with the inverse of a Hessian that has these pairs of moves and
    changes of the gradient.

    Without a pair, g in the length of one is returned.
    """
    if not kept:
        return g / max(np.linalg.norm(g), 1e-300)
    q, shares = g.copy(), []
    for move, change in reversed(kept):
        shares.append(np.vdot(move, q) / np.vdot(move, change))
        q -= shares[-1] * change
    move, change = kept[-1]
    q *= np.vdot(move, change) / np.vdot(change, change)
    for (move, change), share in zip(kept, reversed(shares), strict=True):
        q += (share - np.vdot(change, q) / np.vdot(move, change)) * move
    return q
