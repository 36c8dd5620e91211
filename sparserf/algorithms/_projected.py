"""What Algorithms 1 and 2 of dual random projection do, and the naive solution beside them: the problem in m dimensions."""

import numpy as np

from ..features.projections import folded
from ._inputs import Inputs
from ._newton_steps import InputSteps, SketchSteps
from ._recovery import Point, Recovery, newton
from ._sketch import Sketch

# To which error the small problem is solved, and in how many Newton steps at most.
SMALL_TOL, SMALL_STEPS = 1e-10, 100
# A step so many times the shortest so far is divergence, unless it is ROUNDING beside w. The objective is no sign of it: w
# comes nearer to w*, and may pass where the objective is higher.
GROWTH, ROUNDING = 10.0, 1e-9


class ProjectedFit(Recovery):
    """Keeps X_hat = X R / sqrt(m) beside the rows."""

    def __init__(self, inputs, problem, projection, **options):
        super().__init__(inputs, problem, **options)
        self._projection, self.n_projections = folded(projection), projection.n_projections
        self._hat = Inputs(inputs.rows.beside(inputs.project(self._projection)))
        if self._hat.n_features < inputs.n_rows:
            self._small_steps = InputSteps(self._hat, problem.fit_intercept)
        else:  # more projections than rows: X_hat X_hat' is smaller, and draws nothing
            exact = Sketch(self._hat, self._hat.n_features, None, problem.fit_intercept, None)
            self._small_steps = SketchSteps(self._hat, problem.fit_intercept, exact)

    def solve_projected(self):
        """z + R'w / sqrt(m) = argmin over c of alpha/2 |c|^2 + (1/n) sum s_i L(x_hat_i'(c - R'w / sqrt(m)) + x_i'w + b)."""
        start = self._hat.correlate(self.at.u)  # R'w / sqrt(m), w = Z'u
        f = self._hat.apply(start)
        self._small = Recovery(self._hat, self.problem, offset=self.at.f - f, callback=lambda _: self.is_told_to_stop())
        self._small.begin(self.problem.alpha, SMALL_TOL)
        self._small.move_to(Point.at_w(start, f, self.at.b, self.at.u))
        self._small.look()
        newton(self._small, self._small_steps, SMALL_STEPS)

    def begin(self, alpha, tol):
        super().begin(alpha, tol)
        self.has_diverged, self._least_step, self._best = False, np.inf, (self.distance.max(), self.at)

    def recover(self):
        """w = -X'a / alpha from the dual variables a of the small problem; back to the best where the steps grow."""
        before, u = self.at.w, -self._small.v / self.problem.alpha
        self._go_to(self.inputs.correlate(u), u)
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
        self.move_to(Point.at_w(w, self.inputs.apply(w), self._small.at.b, u))
