"""What Algorithms 1 and 2 of dual random projection do, and the naive solution beside them: the problem in m dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..features import folded
from .descent import newton
from .dual import SketchSteps
from .fit import LinearFit
from .inputs import Beside
from .point import Point
from .sketch import Sketch
from .steps import InputSteps

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..features import Projection
    from ..model import FitInfo

# To which error the small problem is solved, and in how many Newton steps at most.
SMALL_TOL, SMALL_STEPS = 1e-10, 100
# A step so many times the shortest so far is divergence, unless it is ROUNDING beside w. The objective is no sign of it: w
# comes nearer to w*, and may pass where the objective is higher.
GROWTH, ROUNDING = 10.0, 1e-9


@dataclass
class Within:
    """The progress of the projected problem: an iteration of the fit, which asks its callback meanwhile."""

    fit: LinearFit

    def note(self, objective: float, *left: float) -> None:
        pass

    def ask(self, info: Callable[[], FitInfo]) -> bool:
        return self.fit.is_told_to_stop()

    def ask_after_reading(self, n_numbers: float, info: Callable[[], FitInfo]) -> bool:
        """Let the callback end the fit after a pass over the projected rows."""
        return self.fit.progress.ask_after_reading(n_numbers, self.fit.info)

    @property
    def ended_by_callback(self) -> bool:
        return self.fit.ended_by_callback


class Projected:
    """The problem of the projected rows X_hat = X R / sqrt(m), in the memory of this process, and the fit that it moves."""

    def __init__(self, fit: LinearFit, projection: Projection):
        self._fit, self._projection, fit.n_projections = fit, folded(projection), projection.n_projections
        self._beside = Beside(fit.inputs.rows, fit.inputs.project(self._projection))
        self._hat, self._steps = self._beside.inputs, _steps(self._beside.inputs, fit.problem.fit_intercept)
        self._problem = fit.problem.in_home(self._beside.bring, self._hat.rows.vectors)

    def begin(self) -> None:
        """Start to watch for divergence, from where the fit stands."""
        fit = self._fit
        fit.has_diverged, self._least_step, self._best = False, np.inf, (fit.certificate.distance.max(), fit.at)

    def solve(self) -> None:
        """z + R'w / sqrt(m) = argmin over c of alpha/2 |c|^2 + (1/n) sum s_i L(x_hat_i'(c - R'w / sqrt(m)) + x_i'w + b)."""
        fit, bring = self._fit, self._beside.bring
        u = bring(fit.at.u)
        start = Point.at_w(self._hat.correlate(u), bring(fit.at.f), fit.at.b, u)  # R'w / sqrt(m), w = Z'u
        self._small = LinearFit(self._hat, self._problem, Within(fit), start)
        self._small.begin(fit.problem.alpha, SMALL_TOL)
        newton(self._small, self._steps, SMALL_STEPS)

    def recover(self) -> None:
        """w = -X'a / alpha from the dual variables a of the small problem; back to the best where the steps grow."""
        fit, before = self._fit, self._fit.at.w
        u = self._beside.give_back(self._small.problem.u_of(self._small.certificate.look.v))
        self._move_to(fit.inputs.correlate(u), u)
        step, size = np.linalg.norm(fit.at.w - before), np.linalg.norm(fit.at.w)
        fit.has_diverged = not step <= max(GROWTH * self._least_step, ROUNDING * size)
        self._least_step = min(step, self._least_step)
        distance = fit.certificate.distance.max()
        if distance < self._best[0]:
            self._best = distance, fit.at
        if fit.has_diverged:
            fit.move_to(self._best[1])
            fit.look()

    def expand(self) -> None:
        """The naive solution R z / sqrt(m)."""
        self._move_to(self._projection.expand(self._small.at.w), None)

    def _move_to(self, w, u):
        self._fit.move_to(Point.at_w(w, self._fit.inputs.apply(w), self._small.at.b, u))
        self._fit.look()


def _steps(hat, fit_intercept):
    """How Newton's steps are made for the projected rows."""
    if hat.n_features < hat.n_rows:
        return InputSteps(hat)
    # More projections than rows: X_hat X_hat' is smaller, and draws nothing.
    return SketchSteps(Sketch(hat, hat.n_features, None, fit_intercept, None))
