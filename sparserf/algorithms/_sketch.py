"""X_hat = X R / sqrt(m): the rows in m projections, grown by columns as more turn out to be needed."""

import numpy as np

from ..features import Linear, make_projection
from ..rows import Memory
from ..solvers.krylov import Shrunk

# Projections to begin with where their number is left to the data, and how it grows; how many are enough for each effective
# dimension; and the most that they may come to, since (m, m) matrices are factored.
FEWEST, GROWTH, ENOUGH, MOST = 64, 4, 4, 2048
# m <= SPEED sqrt(numbers a row): n m^2 operations in BLAS then take no longer than some passes over the rows.
SPEED = 20


class Sketch:
    """The projected rows, around their mean where there is an intercept, and the three questions over them.

    m of them; None: as many as the data ask for. Where m reaches the number of rows, a square root of X X' takes their
    place, which is a sketch without error.
    """

    def __init__(self, rows, m, projection, fit_intercept, rng, workers):
        self._rows, self._projection, self._centred, self._rng, self._workers = rows, projection, fit_intercept, rng, workers
        self._most = m or max(1, int(min(MOST, rows.n_features_in, rows.row_size, SPEED * rows.row_size**0.5)))
        self._hat, self.is_exact = np.empty((rows.n_rows, 0), rows.dtype), False
        self._grow(m or min(FEWEST, self._most))

    @property
    def m(self):
        return self._hat.shape[1]

    def suffice(self, h, alpha):
        """Grow, where free to, until the projections are enough for row weights h and alpha; the level that they are for."""
        while self.m < self._most and not self.is_exact:
            if ENOUGH * Shrunk(self.gram(h), alpha, is_exact=True).effective_dimension() <= self.m:
                break
            self._grow(min(GROWTH * self.m, self._most))
        return Shrunk(self.gram(h), alpha, self.is_exact).nu

    def _grow(self, m):
        if m >= self._rows.n_rows or (self.m and 2 * m > self._rows.n_rows):
            self._take_root()
            return
        new = make_projection(self._projection, self._rows.n_features_in, m - self.m, self._rng)
        more = self._rows.project(new)
        if self._centred:
            more -= more.mean(axis=0, dtype=np.float64).astype(more.dtype)
        more *= np.sqrt((m - self.m) / m)
        self._hat *= np.sqrt(self.m / m)
        self._become(np.hstack([self._hat, more]))

    def _take_root(self):
        everything = Linear().draw(None, self._rows.n_features_in)
        K = self._rows.kernel(everything, np.ones(len(everything)))
        if self._centred:
            K = K - K.mean(axis=0)
            K -= K.mean(axis=1)[:, None]
        values, V = np.linalg.eigh((K + K.T) / 2)
        kept = values > len(K) * np.finfo(self._rows.dtype).eps * values[-1]
        self.is_exact = True
        self._become(np.ascontiguousarray(V[:, kept] * np.sqrt(values[kept])))

    def _become(self, hat):
        self._hat, self._inputs = hat, Linear().draw(None, max(1, hat.shape[1]))
        self._small = Memory(hat, self._workers)

    def correlate(self, v):
        """X_hat' v, a row each."""
        return self._small.correlate(self._inputs, v)

    def apply(self, c):
        """X_hat c, a row each."""
        return self._small.apply(self._inputs, c)

    def gram(self, h):
        """X_hat' diag(h) X_hat, around the mean that h weights where there is an intercept."""
        G, total = self._small.gram(self._inputs, self._inputs, h), h.sum()
        if self._centred and total > 0:
            mean = self.correlate(h)
            G -= np.outer(mean, mean / total)
        return G
