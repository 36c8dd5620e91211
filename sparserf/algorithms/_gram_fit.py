"""The greedy fit of the squared loss from inner products alone, for rounds of one feature (batch orthogonal matching
pursuit, Rubinstein, Zibulevsky & Elad 2008)."""

import numpy as np

from ._greedy_fit import GreedyFit

# Largest table of inner products: half a gigabyte.
MOST = 2**26


class GramFit(GreedyFit):
    """A GreedyFit whose rounds do not go through the columns that are in: g = C w + b m - q over all features, with

    C = Phi' diag(h) Phi_S, a column a round, m = Phi' h and q = Phi' (h y), y and b less the mean of y where there is an
    intercept. What it ends with is refined on the rows.
    """

    def __init__(self, rows, everything, *args, most_terms, **options):
        super().__init__(rows, everything, *args, **options)
        h, y = self._h, self._problem.y
        self._mean = y @ h / h.sum() if self._problem.fit_intercept else np.zeros(len(y))
        self._y = y - self._mean[:, None]
        self._C = np.empty((most_terms, len(everything)))
        self._m, *q = rows.correlate(everything, np.vstack([h, h * self._y]))
        self._q, self._is_refined = np.array(q), True

    def gradients(self):
        if self._g is None:
            g = self.w @ self._C[: len(self)] + np.outer(self.b - self._mean, self._m) - self._q
            self._g = g, np.hypot.reduce(np.abs(g), axis=0), None
        return self._g

    def _append(self, J):
        k, features = len(self), self._everything.take(J)
        columns = self._rows.correlate(self._everything, self._h * self._rows.transform(features).T.astype(np.float64))
        index = np.concatenate([self.A.index, J])
        H = columns[:, index]
        if self._problem.fit_intercept:
            H = H - np.outer(self._m[J], self._m[index] / self._h.sum())
        H[np.arange(len(J)), k + np.arange(len(J))] += self._problem.alpha
        added = self._factor.append(H[:, :k].T, H[:, k:])
        self._C[k : k + added.sum()] = columns[added]
        self.A.append(features.take(np.flatnonzero(added)), J[added])

    def refit(self):
        """w = (C_S - m m' / sum h + alpha I)^-1 q; the objective falls by half of w'q."""
        q, total = self._q[:, self.A.index], self._h.sum()
        self.w = self._factor.solve(q.T).T
        self.b = self._mean - self.w @ self._sums() / total if self._problem.fit_intercept else self._mean
        objective = 0.5 * float((self._h * self._y**2).sum() - (q * self.w).sum())
        self._objective = min(self._objective, max(0.0, objective))
        self._g, self._is_refined = None, False

    def info(self):
        self._refine()
        return super().info()

    def solution(self):
        self._refine()
        return super().solution()

    def _refine(self):
        """A step of Newton's method from the residual itself, which inner products know only up to rounding."""
        if self._is_refined:
            return
        known = self.gradients()  # the next round goes on from these, whether or not anyone asked
        self.f, self._g = self.A.apply(self.w), None
        (self.w, self.b, self.f), _ = self._newton_step()
        self._g, self._is_refined = known, True

    def _sums(self):
        return self._m[self.A.index]
