"""The moves of HARFE on one target: a gradient step, the s largest of it, ridge regression on them; what is recorded."""

from dataclasses import dataclass

import numpy as np

from .._core.threshold import hard_threshold
from ..solvers import ridge
from ..solvers.columns import Support
from ..task import Progress

# A smaller relative fall of the objective is rounding.
ROUNDING = 1e-12
# Steps in which a support grows to its size.
GROWTH_STEPS = 10


@dataclass(frozen=True)
class Point:
    """An iterate: the support (ascending), its coefficients, the intercept, f = Phi w, and what this is worth."""

    index: np.ndarray
    w: np.ndarray
    b: float
    f: np.ndarray
    objective: float
    is_feasible: bool = True

    def is_better_than(self, other):
        """Lower by more than rounding; whatever comes after a point that the selection does not allow is better."""
        if not other.is_feasible:
            return True
        return self.is_feasible and self.objective < other.objective - ROUNDING * abs(other.objective)


class L0Fit:
    """State and progress of one fit over a dictionary that is drawn whole; c = r w are the coefficients of the paper."""

    def __init__(self, task, y, everything, r, *, fit_intercept, alpha, selection, step_size, backtracking, tol, callback):
        rows = task.rows
        self._rows, self._everything, self._r = rows, everything, r
        self._p = np.minimum(alpha * r * r, 1e300)
        self.progress = Progress(callback, task.scale(y))
        self._problem = task.problem(ridge.RidgeProblem, y, alpha, fit_intercept)
        self._support = Support(rows, everything, r)
        self._positive = selection == "positive"
        self._step_size = self._mu = step_size
        self._backtracking, self._tol = backtracking, tol
        f = rows.vectors.zeros()
        b = self._problem.best_intercept(f, 0.0)
        self._loss_of_constant = self._problem.mean_loss(self._problem.margins(f, b))
        self.point = Point(np.zeros(0, np.int64), np.zeros(0), b, f, self._loss_of_constant)
        self._gradient_at = None
        self.restart()

    def restart(self):
        """Begin the iterations for a size, from where the last ones ended."""
        self.progress.restart()
        self._best, self._seen = None, set()
        self.at_rest = self.fits_well = False

    @property
    def ended_by_callback(self):
        return self.progress.ended_by_callback

    def margins(self, point):
        return self._problem.margins(point.f, point.b)

    def gradient(self):
        """Of the mean loss at the point, in c: one pass over the dictionary, kept while the point is the same."""
        if self._gradient_at is not self.point:
            v = self._problem.dual_point(self.margins(self.point))
            self._g = self._rows.correlate(self._everything, v) / self._r
            self._gradient_at = self.point
        return self._g

    def select(self, mu, s, most_new):
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

    def solve_on(self, S):
        """The point of least objective on S; for the positive selection, of those of S that get a positive coefficient."""
        while True:
            point = self._ridge(S)
            negative = point.w <= 0
            if not (self._positive and self._backtracking and negative.any()):
                return point
            S = point.index[~negative]

    def _ridge(self, S):
        A, problem = self._support, self._problem
        A.replace(S)
        w, f = np.zeros(len(A)), self._rows.vectors.zeros()
        if problem.loss.is_classifier:  # Newton's method, from where it was
            _, new, old = np.intersect1d(A.index, self.point.index, return_indices=True)
            w[new] = self.point.w[old]
            f = A.apply(w)
        b, p = problem.best_intercept(f, self.point.b), self._p[A.index]
        if len(S):
            w, b, f = ridge.solve(problem, A, p, w, b, f)
            b = problem.best_intercept(f, b)
        order = np.argsort(A.index)
        feasible = not self._positive or bool((w >= 0).all())
        return Point(A.index[order], w[order], b, f, problem.objective(problem.margins(f, b), w, p), feasible)

    def step(self, s):
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
                if not self._backtracking or point.is_better_than(self.point):
                    break
            self.at_rest = most_new == 1
            if self.at_rest:
                return
            mu, most_new = mu / 2, max(1, min(most_new, np.setdiff1d(S, self.point.index).size) // 2)
        self._mu = mu
        self.go_to(point)

    def minimise_on(self, S):
        """The one iteration where the support is known."""
        self._s = len(S)
        self.go_to(self.solve_on(S))
        self.record()

    def go_to(self, point):
        self.point = point
        self._seen.add(point.index.tobytes())
        if self._best is None or point.is_better_than(self._best):
            self._best = point

    def record(self):
        """End an iteration: note the objective, tell the callback; returns whether to stop."""
        best = self._best or self.point
        self.progress.note(best.objective)
        self.fits_well = self._problem.mean_loss(self.margins(best)) <= self._tol**2 * self._loss_of_constant
        ended = self.progress.ask(self.info)
        return self.at_rest or self.fits_well or ended

    def finish(self):
        """Return to the best point."""
        self.point = self._best or self.point

    def info(self, certified=True):
        return self.progress.info(
            lambda: self.point.objective, self._gap() if certified else np.inf,
            converged=bool(self.at_rest or self.fits_well), n_drawn=len(self._everything),
            n_nonzero=int(np.count_nonzero(self.point.w)), alpha=self._problem.alpha,
        )  # fmt: skip

    def _gap(self):
        squares = np.maximum(-self.gradient(), 0) ** 2 if self._positive else self.gradient() ** 2
        return self.point.objective - self._problem.lower_bound(self.margins(self.point), squares, self._s)

    def solution(self):
        """(index, features, w, b) of the terms, by ascending index, in the units of y."""
        used = self.point.w != 0
        index = self.point.index[used]
        w, b = self.progress.in_units_of_y(self.point.w[used], self.point.b)
        return index, self._everything.take(index), w, b


def largest(c, s):
    """Indices of the s largest |c_j| > 0, ascending; of those that tie the first."""
    out = np.empty(min(s, len(c)), np.intp)
    return out[: hard_threshold(c, out)]


def feature_scales(rows, everything, weight, normalize):
    """r_j = sqrt((1/n) sum_i s_i phi_j(x_i)^2), or 1; where a feature is zero on all rows, 1."""
    if not normalize:
        return np.ones(len(everything))
    r = np.sqrt(rows.correlate_squares(everything, weight / rows.n_rows))
    return np.where(r > 0, r, 1.0)
