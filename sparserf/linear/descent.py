"""Newton's method down a path of penalties, and the search along each of its steps.

What makes a step is a function steps(fit, shares): (the step from fit.at, a `Point`; how many steps of conjugate gradients it
took), to which share of its residual each output's system is to be solved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..solvers.krylov import dots, norms
from .certificate import HARDLY
from .steps import plain_step

if TYPE_CHECKING:
    from .dual import SketchSteps
    from .fit import LinearFit
    from .point import Point
    from .steps import AdaptiveSteps, InputSteps

# Whatever makes the steps of Newton's method.
NewtonSteps: TypeAlias = "AdaptiveSteps | InputSteps | SketchSteps"

# A Newton step's system is solved to this share at first; and to SAFETY times what the tolerance asks for at last.
FIRST, SAFETY = 0.3, 0.5
# Steps in a row that neither halve the bound nor lower the objective, by more than NEGLIGIBLE of it, before rounding is
# taken to be in the way.
PATIENCE, NEGLIGIBLE = 4, 1e-10


@dataclass(frozen=True)
class Falls:
    """The penalties on the way to that of the fit, from one that the losses' curvature does not exceed much."""

    first: float = 0.01  # of the trace of the Hessian
    by: float = 10.0  # the factor from each to the next
    bound: float = 0.3  # to which each is met
    most: int = 14  # a smaller share of the trace is rounding
    most_steps: int = 20  # at each

    def number_to(self, fit: LinearFit) -> int:
        """How many there are; none from a w that is not 0."""
        if fit.problem.loss.is_quadratic or fit.at.w.any():
            return 0
        return max(0, int(np.log(max(fit.total_curvature() * self.first / fit.problem.alpha, 1.0)) / np.log(self.by)))


FALLS = Falls()


def descend(fit: LinearFit, steps: NewtonSteps, max_iter: int) -> None:
    """`newton` at ever smaller penalties, down to the fit's own.

    Far from w* a small penalty makes systems that are hard to solve, for steps that lead nowhere.
    """
    alpha, tol = fit.alpha, fit.tol
    fit.n_projections = fit.n_conjugate = 0
    n_falls = FALLS.number_to(fit)
    for k in range(n_falls, max(0, n_falls - FALLS.most), -1):
        if not fit.ended_by_callback:
            fit.is_on_the_way = True
            fit.begin(alpha * FALLS.by**k, FALLS.bound)
            newton(fit, steps, min(max_iter, FALLS.most_steps))
    fit.is_on_the_way = False
    if n_falls:
        fit.begin(alpha, tol)
    newton(fit, steps, max_iter)


def newton(fit: LinearFit, steps: NewtonSteps, max_iter: int) -> None:
    """Newton's method until the fit's bound is below its tolerance, or rounding allows no more."""
    least, lowest, waited, before = np.inf, None, 0, None
    for _ in range(max_iter):
        here = fit.certificate
        if here.converged or here.is_rounding.all() or fit.ended_by_callback:
            return
        shares = _shares(fit, before)
        step, n_conjugate = steps(fit, shares)
        fit.n_conjugate += n_conjugate
        if (dots(here.g, step.w) > 0).any():  # rounding has made its preconditioner indefinite; none is needed to go down
            step, n_conjugate = plain_step(fit, shares)
            fit.n_conjugate += n_conjugate
        if not all(np.isfinite(part).all() for part in (step.w, step.b)):  # a penalty that rounding does not know from 0
            return
        before = here.distance
        fit.move_along(line_search(fit, step), step)
        fit.look()
        objective = fit.objective()
        if fit.record(objective):
            return
        worst, fell = float(fit.certificate.bound.max()), lowest is None or objective < lowest - NEGLIGIBLE * abs(lowest)
        waited = 0 if worst < 0.5 * least or fell else waited + 1  # < : infinite bounds do not halve
        least, lowest = min(worst, least), objective if lowest is None else min(objective, lowest)
        if waited == PATIENCE:
            return


def _shares(fit, before):
    """To which share the residual of each output has to fall; above 1: it need not. Eisenstat & Walker (1996), choice 2."""
    here = fit.certificate
    aim = np.maximum(fit.tol * norms(fit.at.w) - here.rounding, HARDLY * here.rounding)
    needed = SAFETY * np.maximum(aim / np.maximum(np.maximum(here.distance, aim), 1e-300), fit.tol)
    share = needed if fit.problem.loss.is_quadratic else np.maximum(_forcing(here.distance, before), needed)
    return np.where((here.bound <= fit.tol) | here.is_rounding, 2.0, share)


def _forcing(distance, before):
    if before is None:
        return FIRST
    return np.minimum(FIRST, np.minimum(distance / np.maximum(before, 1e-300), 1.0) ** 2)


def line_search(fit: LinearFit, step: Point) -> np.ndarray:
    """t of each output: 1, or where that goes too far a t that about halves the slope, which never falls along the step."""
    t = np.ones(len(step.b))
    before, start = fit.along(step, 0.0 * t)
    values, slopes = fit.along(step, t)
    if fit.problem.loss.is_quadratic and (values <= before * (1 + NEGLIGIBLE)).all():
        return t
    low, high, slope_low, slope_high = 0.0 * t, t, start, -start
    for _ in range(40):
        far = (slopes > 0) & ((slopes > -0.5 * start) | (values > before * (1 + 1e-14)))
        short = (slopes < 0.5 * start) & (t < 1)
        if not (far | short).any():
            break
        low, slope_low = np.where(short, t, low), np.where(short, slopes, slope_low)
        high, slope_high = np.where(far, t, high), np.where(far, slopes, slope_high)
        secant = slope_low / np.minimum(slope_low - slope_high, -1e-300)
        t = np.where(far | short, low + (high - low) * np.clip(secant, 0.1, 0.9), t)
        values, slopes = fit.along(step, t)
    return np.where(start < 0, t, 0.0)
