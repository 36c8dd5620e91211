"""The moves of MFGA on one target: look at all gradients, let the largest in, fit all coefficients again, record."""

import numpy as np

from .._core.search import top_k
from ..solvers.columns import Columns
from ..solvers.greedy import Cholesky
from ..solvers.ridge import RidgeProblem, line_search
from ..task import Progress

# Gradients below this share of the largest at the start are rounding.
ROUNDING = 1e-14
# Newton steps in a round; they end where one promises less than a share of the objective, and the curvature is taken
# anew where a step shrinks that promise by less than a factor.
MAX_STEPS = 50
NEGLIGIBLE = 1e-9
SLOW = 0.3
# Largest table of inner products: half a gigabyte.
MOST = 2**26
# Where the objective is below this share of its start, or a pivot of its diagonal, inner products are too coarse.
FINE = 1e-6
# A feature whose largest value around its mean is this share of its largest value is constant, but for rounding.
CONSTANT = 4 * np.finfo(np.float64).eps


class GreedyFit:
    """State and progress of one fit: the selected columns with coefficients w, intercepts b and f = Phi w.

    y is (n_rows,), or (n_outputs, n_rows) for outputs that share a support; w, b and f have an entry an output.
    """

    def __init__(self, task, y, everything, r, *, fit_intercept, alpha, best_phase, tol, callback):
        rows = task.rows
        self._rows, self._everything, self._r = rows, everything, r
        self._tol, self._one_output = tol, y.ndim == 1
        self.progress = Progress(callback, task.scale(y))
        self._quarter = everything.turned(np.full(len(everything), -np.pi / 2)) if best_phase else None
        self._problem = task.problem(RidgeProblem, np.atleast_2d(y), alpha, fit_intercept)
        n_outputs = np.atleast_2d(y).shape[0]
        self.A, self._factor = Columns(rows), Cholesky()
        self.w, self.f = np.zeros((n_outputs, 0)), rows.vectors.zeros(n_outputs)
        self.b = self._problem.best_intercepts(self.f, np.zeros(n_outputs))
        self._h = self._problem.curvature(self._z)[0]
        self._free, self._first, self._g = np.ones(len(everything), bool), None, None
        self._objective = self._problem.objective(self._z, self.w, alpha)
        self._last, self._negligible = self._objective, NEGLIGIBLE**2 * self._objective
        self.converged, self.at_rest, self.promise = True, False, 0.0

    def __len__(self):
        return len(self.A)

    @property
    def _z(self):
        return self._problem.margins(self.f, self.b)

    def gradients(self):
        """Of the mean loss, in the coefficient of each feature of the dictionary; and its norm over the outputs.

        With the best phase, each cosine cos(t) may be any cos(t + d), whose gradient is g cos d - q sin d for the gradients
        g of cos t and q of sin t; the angle d of largest norm comes third.
        """
        if self._g is None:
            v = self._problem.dual_point(self._z)
            g = self._rows.correlate(self._everything, v)
            if self._quarter is None:
                self._g = g, np.hypot.reduce(np.abs(g), axis=0), None
            else:
                q = np.where(self._everything.is_periodic, self._rows.correlate(self._quarter, v), 0.0)
                difference, product = ((g - q) * (g + q)).sum(axis=0), -2 * (g * q).sum(axis=0)
                norm = np.sqrt(((g * g + q * q).sum(axis=0) + np.hypot(difference, product)) / 2)
                self._g = g, norm, np.arctan2(product, difference) / 2
        return self._g

    def enter(self, n_select):
        """Add the n_select features of largest gradient; one that depends on the others is left out, the next one tried."""
        end = len(self) + n_select
        while len(self) < end and not self.at_rest:
            J = self._largest(end - len(self))
            self.at_rest = len(J) == 0
            if not self.at_rest:
                self._free[J] = False
                self._append(J)

    def _largest(self, n):
        _, norm, _ = self.gradients()
        score = np.where(self._free, norm / self._r, 0.0)
        self._first = score.max(initial=0.0) if self._first is None else self._first
        out = np.empty(min(n, len(score)), np.intp)
        return out[: top_k(score, ROUNDING * self._first, out)]

    def _append(self, J):
        features, k = self._everything.take(J), len(self)
        if self._quarter is not None:
            features = features.turned(self.gradients()[2][J])
        self.A.append(features, J)
        H = self._hessian()
        added = self._factor.append(H[:k, k:], H[k:, k:])
        self.A.keep(np.concatenate([np.arange(k), k + np.flatnonzero(added)]))
        self.w = np.hstack([self.w, np.zeros((len(self.w), len(self) - k))])

    def _hessian(self):
        """Of the objective in w, with the intercept at its best.

        The curvature of a feature around its mean is a difference: no less than the rounding of what it is the difference of.
        """
        H, m = self.A.curvature(self._h)
        least = np.finfo(np.float64).eps * H.diagonal()
        H = H + np.outer(m, self._problem.following(self._h, m))
        H.flat[:: len(H) + 1] = np.maximum(H.diagonal(), least) + self._problem.alpha
        return H

    def refit(self):
        """All coefficients at their best: Newton's method, whose matrix stays the same for as long as that serves."""
        before, is_fresh = np.inf, False
        for _ in range(MAX_STEPS):
            (w, b, f), promise = self._newton_step()
            objective = self._problem.objective(self._problem.margins(f, b), w, self._problem.alpha)
            falls = objective < self._objective
            if falls:
                self.w, self.b, self.f, self._objective, self._g = w, b, f, objective, None
            enough = max(NEGLIGIBLE * objective, self._negligible)
            if self._problem.loss.name == "squared" or not promise > enough or (is_fresh and not falls):
                return
            is_fresh = not falls or promise > SLOW * before
            if is_fresh:
                self._take_curvature()
            before = promise
        self.converged, self.promise = False, promise

    def _take_curvature(self):
        self._h, self._factor = self._problem.curvature(self._z)[0], Cholesky()
        H = self._hessian()
        self._factor.append(H[:0], H, all_of_them=True)

    def _newton_step(self):
        """((w, b, f) after the step, what the quadratic model promises of it)."""
        problem, v, m = self._problem, self._problem.dual_point(self._z), self._sums()
        known = self._g is not None and self._quarter is None
        g = self._g[0][:, self.A.index] if known else self.A.correlate(v)
        g, g_b = g + problem.alpha * self.w, problem.vectors.total(v)
        shift, slope = problem.following(self._h, g_b), problem.following(self._h, m)
        d = -self._factor.solve((g + np.outer(shift, m)).T).T
        e = shift + d @ slope
        end = self.w + d, self.b + e, problem.vectors.along(self.f, 1, self.A.apply(d))
        if problem.loss.name != "squared":
            end = line_search(problem, problem.alpha, (self.w, self.b, self.f), end) or (self.w, self.b, self.f)
        return end, -0.5 * float((g * d).sum() + (g_b * e).sum())

    def _sums(self):
        """Phi' h of the columns."""
        return self.A.curvature(self._h)[1]

    def record(self):
        """End a round: note the objective, tell the callback; returns whether to stop."""
        fall, self._last = self._last - self._objective, self._objective
        self.progress.note(self._objective)
        slow = self._tol is not None and fall < self._tol * self._objective
        return self.progress.ask(self.info) or slow or self.at_rest

    def info(self, certified=True):
        return self.progress.info(
            lambda: self._objective, self._gap() if certified else np.inf, converged=self.converged,
            n_drawn=len(self._everything), n_nonzero=self.w.shape[1], alpha=self._problem.alpha,
        )  # fmt: skip

    def _gap(self):
        with np.errstate(over="ignore"):  # infinite where the bound says nothing
            squares = self.gradients()[1] ** 2
        return self._objective - self._problem.lower_bound(self._z, squares, len(self))

    def solution(self):
        """(index, features, w, b) of the terms, by ascending index, in the units of y."""
        order = np.argsort(self.A.index[: self.w.shape[1]])  # of what has just come in none has a coefficient yet
        w, b = self.progress.in_units_of_y(self.w[:, order], self.b)
        return self.A.index[order], self.A.features.take(order), *((w[0], b[0]) if self._one_output else (w, b))


class GramFit(GreedyFit):
    """Of the squared loss, for rounds of one feature: batch orthogonal matching pursuit (Rubinstein, Zibulevsky & Elad 2008).

    A GreedyFit whose rounds do not go through the columns that are in: g = C w - q over all features, with

    C = Phi' diag(h) Phi_S, a column a round, and q = Phi' (h y), where Phi_S and y are taken around their means if there
    is an intercept. What it ends with is refined on the rows; where inner products are too coarse, so is every round.
    """

    def __init__(self, task, y, everything, *args, most_terms, **options):
        super().__init__(task, y, everything, *args, **options)
        self._mean = self.b.copy()
        self._y = self._around_mean(self._problem.y - self._mean[:, None])
        self._C = np.empty((most_terms, len(everything)))
        self._q = task.rows.correlate(everything, self._h * self._y)
        self._m, self._start = np.zeros(0), self._objective
        self._is_refined, self._on_rows = True, False

    def _around_mean(self, values):
        """Twice: the first time leaves the rounding of the mean. As they are, products of large means would cancel."""
        with np.errstate(over="ignore", invalid="ignore"):  # of what is asked next nothing is finite then, which is refused
            for _ in range(2 if self._problem.fit_intercept else 0):
                values = values - (values @ self._h / self._h.sum())[:, None]
        return values

    def gradients(self):
        if self._on_rows:
            return super().gradients()
        if self._g is None:
            g = self.w @ self._C[: len(self)] - self._q
            self._g = g, np.hypot.reduce(np.abs(g), axis=0), None
        return self._g

    def _append(self, J):
        k, features = len(self), self._everything.take(J)
        phi = self._rows.transform(features).T.astype(np.float64)
        varying = self._around_mean(phi)
        if not np.abs(varying).max() > CONSTANT * np.abs(phi).max():  # a round is of one feature
            self._first = self._first if k else None  # its gradient was rounding
            return
        columns = self._rows.correlate(self._everything, self._h * varying)
        H = columns[:, np.concatenate([self.A.index, J])]
        H[np.arange(len(J)), k + np.arange(len(J))] += self._problem.alpha
        added = self._factor.append(H[:, :k].T, H[:, k:])
        self._C[k : k + added.sum()], self._m = columns[added], np.concatenate([self._m, (phi @ self._h)[added]])
        self.A.append(features.take(np.flatnonzero(added)), J[added])

    def refit(self):
        """w = (C_S + alpha I)^-1 q; the objective falls by half of w'q."""
        q = self._q[:, self.A.index]
        self.w = self._factor.solve(q.T).T
        self.b = self._mean + self.w @ self._problem.following(self._h, self._m)
        objective = 0.5 * float((self._h * self._y**2).sum() - (q * self.w).sum())
        self._g, self._is_refined = None, False
        self._on_rows = self._on_rows or not (objective > FINE * self._start and self._factor.weakest > FINE)
        if self._on_rows:
            self._refine()
            objective = self._problem.objective(self._z, self.w, self._problem.alpha)
        self._objective = min(self._objective, objective)

    def info(self, certified=True):
        self._is_refined |= not certified
        self._refine()
        return super().info(certified)

    def solution(self):
        self._refine()
        return super().solution()

    def _refine(self):
        """A step of Newton's method from the residual itself."""
        if self._is_refined:
            return
        known = None if self._on_rows else self.gradients()  # the next round goes on from these, whether or not anyone asked
        self.f, self._g = self.A.apply(self.w), None
        (self.w, self.b, self.f), _ = self._newton_step()
        self._g, self._is_refined = known, True

    def _sums(self):
        return self._m
