"""X_hat = X R / sqrt(m): the rows in m projections, grown by columns as more turn out to be needed."""

import numpy as np

from ..features import make_projection
from ..solvers.krylov import Shrunk, root
from ._inputs import Inputs

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

    def __init__(self, inputs, m, projection, fit_intercept, rng):
        self._inputs, self._projection, self._centred = inputs, projection, fit_intercept
        self._rng = rng
        size = inputs.rows.row_size
        self._most = m or max(1, int(min(MOST, inputs.n_features, size, SPEED * size**0.5)))
        self._hat, self.is_exact = np.empty((inputs.n_rows, 0), inputs.rows.dtype), False
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
        n = self._inputs.n_rows
        if m >= n or (self.m and 2 * m > n and n <= MOST):
            self._take_root()
            return
        new = make_projection(self._projection, self._inputs.n_features, m - self.m, self._rng)
        more = self._inputs.project(new)
        more *= np.sqrt((m - self.m) / m)
        self._hat *= np.sqrt(self.m / m)
        self._become(np.hstack([self._hat, more]))

    def _take_root(self):
        self.is_exact = True
        self._become(root(self._inputs.kernel(), np.finfo(self._inputs.rows.dtype).eps))

    def _become(self, hat):
        self._hat, self._small = hat, Inputs(self._inputs.rows.beside(hat))

    def correlate(self, v):
        """X_hat' v, a row each."""
        return self._small.correlate(v)

    def apply(self, c):
        """X_hat c, a row each."""
        return self._small.apply(c)

    def gram(self, h):
        """X_hat' diag(h) X_hat, around the mean that h weights where there is an intercept."""
        G, total = self._small.gram(h), h.sum()
        if self._centred and total > 0:
            mean = self.correlate(h)
            G -= np.outer(mean, mean / total)
        return G
