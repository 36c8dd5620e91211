"""X_hat = X R / sqrt(m): the rows in m projections, grown by columns as more turn out to be needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..features import make_projection
from ..solvers.definite import semidefinite_root
from ..solvers.krylov import DampedInverse
from .inputs import Beside

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import RowVector
    from ..features.projections import ProjectionName
    from .inputs import Inputs


@dataclass(frozen=True)
class Growth:
    """The number of projections where it is left to the data."""

    fewest: int = 64
    by: int = 4
    a_dimension: int = 4  # this many are enough for each effective dimension
    most: int = 2048  # since (m, m) matrices are factored
    speed: int = 20  # m <= speed sqrt(numbers a row): n m^2 operations in BLAS then take no longer than some passes

    def most_of(self, inputs: Inputs) -> int:
        size = inputs.rows.row_size
        return max(1, int(min(self.most, inputs.n_features, size, self.speed * size**0.5)))


GROWTH = Growth()


class Sketch:
    """The projected rows, around their mean where there is an intercept, in the memory of this process.

    m of them; None: as many as the data ask for. Where m reaches the number of rows, a square root of X X' takes their
    place, which is a sketch without error. Row vectors are of the home of X.
    """

    is_exact: bool

    def __init__(
        self, inputs: Inputs, m: int | None, projection: ProjectionName | None, fit_intercept: bool,
        rng: np.random.Generator | None,
    ):  # fmt: skip
        self._inputs, self._projection, self._fit_intercept, self._rng = inputs, projection, fit_intercept, rng
        self._most = m or GROWTH.most_of(inputs)
        self._hat, self.is_exact = np.empty((inputs.n_rows, 0), inputs.rows.dtype), False
        self._grow(m or min(GROWTH.fewest, self._most))

    @property
    def m(self) -> int:
        return self._hat.shape[1]

    def suffice(self, h: RowVector, alpha: float) -> float:
        """Grow, where free to, until the projections are enough for row weights h and alpha; the level that they are for."""
        while self.m < self._most and not self.is_exact:
            if GROWTH.a_dimension * DampedInverse(self.curvature(h), alpha, is_exact=True).effective_dimension() <= self.m:
                break
            self._grow(min(GROWTH.by * self.m, self._most))
        return DampedInverse(self.curvature(h), alpha, self.is_exact).nu

    def _grow(self, m):
        n = self._inputs.n_rows
        if m >= n or (self.m and 2 * m > n and n <= GROWTH.most):
            self._take_root()
            return
        new = make_projection(self._projection, self._inputs.n_features, m - self.m, self._rng)
        more = self._inputs.project(new)
        more *= np.sqrt((m - self.m) / m)
        self._hat *= np.sqrt(self.m / m)
        self._become(np.hstack([self._hat, more]))

    def _take_root(self):
        self.is_exact = True
        self._become(semidefinite_root(self._inputs.kernel(), np.finfo(self._inputs.rows.dtype).eps))

    def _become(self, hat):
        self._hat, self._beside = hat, Beside(self._inputs.rows, hat)

    def correlate(self, v: RowVector) -> np.ndarray:
        """X_hat' v."""
        return self._beside.inputs.correlate(self._beside.bring(v))

    def curvature(self, h: RowVector) -> np.ndarray:
        """X_hat' diag(h) X_hat of one output, around the mean that h weights where there is an intercept."""
        return self._beside.inputs.curvature(self._beside.bring(h), self._fit_intercept)[0]

    def weighing(self, h: RowVector) -> Callable[[np.ndarray], tuple[RowVector, np.ndarray]]:
        """The function of c that answers (X_hat c, h' X_hat c)."""
        beside, h = self._beside, self._beside.bring(h)

        def weigh(c):
            f, weighed = beside.inputs.apply_and_weigh(c, h)
            return beside.give_back(f), weighed

        return weigh
