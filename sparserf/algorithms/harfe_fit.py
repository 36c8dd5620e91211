"""The moves of HARFE on one target: a gradient step, the s largest of it, ridge regression on them; what is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import check_no_overflow, namespace
from .._core.threshold import hard_threshold
from ..solvers import ridge
from ..solvers.columns import Support

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import RowVector
    from ..features.feature_set import FeatureSet, Solution
    from ..model import Callback, FitInfo
    from ..solvers.ridge import RidgeProblem
    from .task import Progress, Task

# A smaller relative fall of the objective is rounding.
ROUNDING = 1e-12
# An objective that inner products promise is certain to that share of the loss of the best constant.
SURE = 1e-6
# Steps in which a support grows to its size.
GROWTH_STEPS = 10


@dataclass(eq=False)
class Iterate:
    """The support (ascending), its coefficients, the intercept, f = Phi w, and what this is worth.

    f is None where the objective is a promise: that of inner products, before any row has been asked. g is the gradient of the
    mean loss in all coefficients of the dictionary, None until someone asks.
    """

    index: np.ndarray
    w: np.ndarray
    b: float
    f: RowVector
    objective: float
    is_feasible: bool = True
    g: np.ndarray | None = None

    def is_better_than(self, other: Iterate) -> bool:
        """Lower by more than rounding; whatever comes after a point that the selection does not allow is better."""
        if not other.is_feasible:
            return True
        return self.is_feasible and self.objective < other.objective - ROUNDING * abs(other.objective)


class L0Fit:
    """State and progress of one fit over a dictionary that is drawn whole; c = r w are the coefficients of the paper."""

    progress: Progress
    point: Iterate
    at_rest: bool
    fits_well: bool

    def __init__(
        self, task: Task, y: np.ndarray, everything: FeatureSet, *, fit_intercept: bool, alpha: float, selection: str,
        step_size: float, backtracking: bool, tol: float, callback: Callback,
    ):  # fmt: skip
        self._rows, self._everything = task.rows, everything
        self.progress, self._alpha = task.progress(callback, y), alpha
        self.problem: RidgeProblem = task.problem(ridge.RidgeProblem, y, alpha, fit_intercept)
        self._positive = selection == "positive"
        self._step_size = self._mu = step_size
        self._backtracking, self._tol = backtracking, tol
        f = task.rows.vectors.zeros()
        b = self.problem.best_intercept(f, 0.0)
        self._loss_of_constant = self.problem.mean_loss(self.problem.margins(f, b))
        self.point = self._constant = Iterate(np.zeros(0, np.int64), np.zeros(0), b, f, self._loss_of_constant)

    def begin(self, r: np.ndarray, g: np.ndarray | None = None) -> None:
        """With scales r of the features, and the gradient in w of the best constant, where it is known."""
        self._r, self._constant.g = r, g
        self._p = np.minimum(self.problem.alpha * r * r, 1e300)
        self._support = Support(self._rows, self._everything, r)
        self.restart()

    def restart(self) -> None:
        """Begin the iterations for a size, from where the last ones ended."""
        self.progress.restart()
        self._best, self._seen = None, set()
        self.at_rest = self.fits_well = False

    @property
    def ended_by_callback(self) -> bool:
        return self.progress.ended_by_callback

    def _margins(self, point):
        return self.problem.margins(point.f, point.b)

    def dual_point(self, point: Iterate | None = None) -> RowVector:
        return self.problem.dual_point(self._margins(point or self.point))

    def _slopes(self, point):
        """The gradient of the mean loss in w: one pass over the dictionary, unless it is known."""
        if point.g is None:
            point.g = self._rows.correlate(self._everything, self.dual_point(point))
        return point.g

    def gradient(self) -> np.ndarray:
        """Of the mean loss at the point, in c."""
        return self._slopes(self.point) / self._r

    def select(self, mu: float, s: int, most_new: int | None) -> np.ndarray:
        """S: the s largest of c~ = c - mu (g + alpha c), at most so many new; on the support g + alpha c = 0.

        For the positive selection, those of them that are positive, as the reference has it; with backtracking, the s
        largest that are positive: what is negative must not take the places of what lowers the objective.
        """
        index, w = self.point.index, self.point.w
        c_tilde = -mu * self.gradient()
        if self._positive and self._backtracking:
            c_tilde = np.maximum(c_tilde, 0.0)
        c_tilde[index] = 0.0
        new = largest(c_tilde, most_new)
        kept = np.zeros(len(c_tilde))
        kept[new], kept[index] = c_tilde[new], w * self._r[index]
        S = largest(kept, s)
        return S[kept[S] > 0] if self._positive else S

    def solve_on(self, S: np.ndarray) -> Iterate:
        """The point of least objective on S; for the positive selection, of those of S that get a positive coefficient."""
        while True:
            point = self._ridge(S)
            negative = point.w <= 0
            if not (self._positive and self._backtracking and negative.any()):
                return point
            S = point.index[~negative]

    def _ridge(self, S):
        A, problem = self._support, self.problem
        A.replace(S)
        p = self._p[A.index]
        if len(S) == 0:
            return self._constant
        if problem.loss.is_quadratic and len(S) <= problem.n_rows:
            return self._promised(p)
        w, b, f, change = self._start()
        found = ridge.solve(problem, A, p, w, b, f, change)
        w, b, f = found.w, problem.best_intercept(found.f, found.b), found.f
        return self._iterate(w, b, f, problem.objective(problem.margins(f, b), w, p))

    def _iterate(self, w, b, f, objective, g=None):
        """Of coefficients in the order of the support."""
        order = np.argsort(self._support.index)
        feasible = not self._positive or bool((w >= 0).all())
        return Iterate(self._support.index[order], w[order], b, f, objective, feasible, g)

    def _promised(self, p):
        """Of the squared loss: a step of Newton's method from the constant, by inner products alone."""
        A, constant, (h, total) = self._support, self._constant, self._curvature
        seen = ridge.View(None, constant.objective, self._slopes(constant)[A.index], 0.0, (*A.curvature(h), total))
        d, e, promise = ridge.newton_step(self.problem, p, np.zeros(len(A)), seen)
        return self._iterate(d, constant.b + e, None, constant.objective - promise)

    @cached_property
    def _curvature(self):
        """(h, sum h) of the squared loss, the same everywhere."""
        h = self.problem.row_curvature(self._constant.f, self._constant.b)
        return h, float(self.problem.vectors.total(h))

    def _start(self):
        """(w, b, f, change): where a solution on the support begins, Phi w being f, or f + Phi change."""
        A, old = self._support, self.point
        w, zeros = np.zeros(len(A)), self._rows.vectors.zeros()
        if self.problem.loss.is_quadratic:  # one step is the solution, from anywhere
            return w, self._constant.b, zeros, None
        _, new, kept = np.intersect1d(A.index, old.index, return_indices=True)
        w[new] = old.w[kept]
        if np.count_nonzero(w) == np.count_nonzero(old.w):
            return w, old.b, old.f, None
        return w, old.b, zeros, w

    def _looked_at(self, point):
        """What the rows say of a promised point on the support: the gradient over the dictionary in the same pass."""
        if point.f is not None:
            return point
        A = self._support
        w = point.w[np.searchsorted(point.index, A.index)]
        view = A.view(self.problem, w, self._rows.vectors.zeros(), point.b, everything=self._everything)
        return self._iterate(w, point.b, view.f, self.problem.penalised(view.loss, w, self._p[A.index]), view.g)

    def _may_be_better(self, point):
        """Whether the rows need be asked."""
        certain = SURE * self._loss_of_constant if point.f is None else 0.0
        return not self.point.is_feasible or (point.is_feasible and point.objective < self.point.objective + certain)

    def step(self, s: int) -> None:
        """To a better point of s terms, halving mu until it is one; or, plainly, to whatever point mu leads to."""
        self._s = s
        mu, most_new, tried = min(self._step_size, 2 * self._mu), s, None
        while True:
            S = self.select(mu, s, most_new)
            self.at_rest = np.array_equal(S, self.point.index) or (not self._backtracking and S.tobytes() in self._seen)
            if self.at_rest:
                return
            if not np.array_equal(S, tried):
                point, tried = self.solve_on(S), S
                if not self._backtracking or self._may_be_better(point):
                    point = self._looked_at(point)
                    if not self._backtracking or point.is_better_than(self.point):
                        break
            self.at_rest = most_new == 1
            if self.at_rest:
                return
            mu, most_new = mu / 2, max(1, min(most_new, np.setdiff1d(S, self.point.index).size) // 2)
        self._mu = mu
        self.go_to(point)

    def minimise_on(self, S: np.ndarray) -> None:
        """The one iteration where the support is known."""
        self._s = len(S)
        self.go_to(self._looked_at(self.solve_on(S)))
        self.record()

    def go_to(self, point: Iterate) -> None:
        self.point = point
        self._seen.add(point.index.tobytes())
        if self._best is None or point.is_better_than(self._best):
            self._best = point

    def record(self) -> bool:
        """End an iteration: note the objective, tell the callback; returns whether to stop."""
        best = self._best or self.point
        self.progress.note(best.objective)
        self.fits_well = self.problem.mean_loss(self._margins(best)) <= self._tol**2 * self._loss_of_constant
        ended = self.progress.ask(self.info)
        return self.at_rest or self.fits_well or ended

    def finish(self) -> None:
        """Return to the best point."""
        self.point = self._best or self.point

    def info(self, certified: bool = True) -> FitInfo:
        return self.progress.info(
            lambda: self.point.objective, self._gap() if certified else np.inf,
            converged=bool(self.at_rest or self.fits_well), n_drawn=len(self._everything),
            n_nonzero=int(np.count_nonzero(self.point.w)), alpha=self._alpha,
        )  # fmt: skip

    def _gap(self):
        squares = np.maximum(-self.gradient(), 0) ** 2 if self._positive else self.gradient() ** 2
        return self.point.objective - self.problem.lower_bound(self._margins(self.point), squares, self._s)

    def solution(self) -> Solution:
        """(index, features, w, b) of the terms, by ascending index, in the units of y."""
        used = self.point.w != 0
        index = self.point.index[used]
        w, b = self.progress.in_units_of_y(self.point.w[used], self.point.b)
        return index, self._everything.take(index), w, b


def begin_all(fits: Sequence[L0Fit], task: Task, everything: FeatureSet, normalize: bool) -> None:
    """The scales of all features, and their gradients at the best constant of each fit, in one pass over the rows."""

    n = task.rows.n_rows

    def answer(block, s, *dual_points):
        squares = block.correlate_squares(everything, s / n) if normalize else np.ones(1)
        return squares, block.correlate(everything, namespace(s).stack(dual_points))

    squares, g = task.rows.sum(answer, fits[0].problem.weight, *(fit.dual_point() for fit in fits))
    r = scales_of(check_no_overflow(squares)) if normalize else np.ones(len(everything))
    for fit, g_of_fit in zip(fits, check_no_overflow(g), strict=True):
        fit.begin(r, g_of_fit)


def scales_of(squares: np.ndarray) -> np.ndarray:
    """r_j = sqrt((1/n) sum_i s_i phi_j(x_i)^2); where a feature is zero on all rows, 1."""
    r = np.sqrt(squares)
    return np.where(r > 0, r, 1.0)


def largest(c: np.ndarray, s: int | None) -> np.ndarray:
    """Indices of the s largest |c_j| > 0, ascending; of those that tie the first."""
    out = np.empty(min(s, len(c)), np.intp)
    return out[: hard_threshold(c, out)]
