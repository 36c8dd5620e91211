"""The greedy fit of the squared loss from inner products alone, for rounds of one feature (batch orthogonal matching
pursuit, Rubinstein, Zibulevsky & Elad 2008)."""

import numpy as np

from ._greedy_fit import GreedyFit

# Largest table of inner products: half a gigabyte.
MOST = 2**26
# Where the objective is below this share of its start, or a pivot of its diagonal, inner products are too coarse.
FINE = 1e-6
# A feature whose largest value around its mean is this share of its largest value is constant, but for rounding.
CONSTANT = 4 * np.finfo(np.float64).eps


class GramFit(GreedyFit):
    """A GreedyFit whose rounds do not go through the columns that are in: g = C w - q over all features, with

    C = Phi' diag(h) Phi_S, a column a round, and q = Phi' (h y), where Phi_S and y are taken around their means if there
    is an intercept. What it ends with is refined on the rows; where inner products are too coarse, so is every round.
    """

    def __init__(self, rows, everything, *args, most_terms, **options):
        super().__init__(rows, everything, *args, **options)
        self._mean = self.b.copy()
        self._y = self._around_mean(self._problem.y - self._mean[:, None])
        self._C = np.empty((most_terms, len(everything)))
        self._q = rows.correlate(everything, self._h * self._y)
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
