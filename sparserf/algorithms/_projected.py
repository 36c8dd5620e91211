"""What Algorithms 1 and 2 of dual random projection do, and the naive solution beside them: the problem in m dimensions."""

import numpy as np

from ..features import Linear
from ..rows import Memory
from ._newton_steps import InputSteps
from ._recovery import Point, Recovery, newton

# To which error the small problem is solved, and in how many Newton steps at most.
SMALL_TOL, SMALL_STEPS = 1e-10, 100
# A step so many times the shortest so far is divergence, unless it is ROUNDING beside w. The objective is no sign of it: w
# comes nearer to w*, and may pass where the objective is higher.
GROWTH, ROUNDING = 10.0, 1e-9


class ProjectedFit(Recovery):
    """Keeps X_hat = X R / sqrt(m) beside the rows."""

    def __init__(self, rows, inputs, problem, projection, workers, **options):
        super().__init__(rows, inputs, problem, **options)
        self._projection, self.n_projections = projection, projection.n_projections
        self._hat = Memory(rows.project(projection), workers)
        self._hat_inputs = Linear().draw(None, self._hat.n_features_in)
        self._small_steps = InputSteps(self._hat, self._hat_inputs, problem.fit_intercept)

    def solve_projected(self):
        """z + R'w / sqrt(m) = argmin over c of alpha/2 |c|^2 + (1/n) sum s_i L(x_hat_i'(c - R'w / sqrt(m)) + x_i'w + b)."""
        start = self._projection.project(self.at.w)
        f = self._hat.apply(self._hat_inputs, start)
        self._small = Recovery(self._hat, self._hat_inputs, self.problem, offset=self.at.f - f)
        self._small.begin(self.problem.alpha, SMALL_TOL)
        self._small.move_to(Point(start, f, self.at.b, np.full_like(f, np.nan)))
        self._small.look()
        newton(self._small, self._small_steps, SMALL_STEPS)

    def begin(self, alpha, tol):
        super().begin(alpha, tol)
        self.has_diverged, self._least_step, self._best = False, np.inf, (self.distance.max(), self.at)

    def recover(self):
        """w = -X'a / alpha from the dual variables a of the small problem; back to the best where the steps grow."""
        before, u = self.at.w, -self._small.v / self.problem.alpha
        self._go_to(self.rows.correlate(self.inputs, u), u)
        self.look()
        step, size = np.linalg.norm(self.at.w - before), np.linalg.norm(self.at.w)
        self.has_diverged = not step <= max(GROWTH * self._least_step, ROUNDING * size)
        self._least_step = min(step, self._least_step)
        if self.distance.max() < self._best[0]:
            self._best = self.distance.max(), self.at
        if self.has_diverged:
            self.move_to(self._best[1])
            self.look()

    def expand(self):
        """The naive solution R z / sqrt(m)."""
        self._go_to(self._projection.expand(self._small.at.w), np.full_like(self.at.u, np.nan))
        self.look()

    def _go_to(self, w, u):
        self.move_to(Point(w, self.rows.apply(self.inputs, w), self._small.at.b, u))
