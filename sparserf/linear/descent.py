"""Newton's method for a linear fit: a path of penalties, and at each of them steps with a line
search.

A step solves H d = -g by conjugate gradients, inexactly: to a share of the residual that falls with
the distance to the optimum, so that convergence stays superlinear (S. C. Eisenstat, H. F. Walker,
Choosing the forcing terms in an inexact Newton method, SIAM J. Sci. Comput. 17, 1996, choice 2).
Steps are made by the `NewtonSteps` of `steps.py`, `range_basis.py` and `sketch.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..solvers.krylov import norms
from .certificate import ROUNDING_RATIO
from .steps import plain_step

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from .fit import LinearFit
    from .problem import Step
    from .steps import NewtonSteps

    Iteration: TypeAlias = Callable[[LinearFit, int], None]

# If the objective falls by less than this share of it, that may be rounding.
FALL_ROUNDING = 1e-10
# After this number of steps in a row that neither halve the bound nor lower the objective by more
# than rounding, it is taken that no step can.
STALLED_STEPS = 4
# Where w is 0 and the loss is not quadratic, the fit goes to its penalty by larger ones. Each is
# this multiple of the next.
PENALTY_FACTOR = 10.0
# The first is about this multiple of the trace of the losses' Hessian.
FIRST_PENALTY = 0.01
# There are no more: a smaller share of the trace is rounding.
MOST_PENALTIES = 14
# On the way, the fit goes on to the next penalty at this relative error, or after this number of
# steps.
TOL_ON_THE_WAY, STEPS_ON_THE_WAY = 0.3, 20


def n_larger_penalties(fit: LinearFit) -> int:
    """Return how many larger penalties lead to the fit's own: none from a w that is not 0, or for a
    quadratic loss."""
    if fit.problem.loss.is_quadratic or fit.iterate.w.any():
        return 0
    # The trace of the losses' Hessian where they are most curved, or more; for a loss without a
    # largest curvature, here.
    smoothness = float(np.max(fit.problem.smoothness_at(fit.certificate.evaluation.h)))
    trace = smoothness * float(fit.inputs.sizes @ fit.inputs.sizes)
    ratio = trace * FIRST_PENALTY / fit.problem.alpha
    return max(0, int(np.log(max(ratio, 1.0)) / np.log(PENALTY_FACTOR)))


def descend(
    fit: LinearFit, steps: NewtonSteps, max_iter: int, iterate: Iteration | None = None
) -> None:
    """Minimise the objective of a fit that has begun at ever smaller penalties, down to the fit's
    own.

    Far from w* a small penalty makes systems that are hard to solve, for steps that hardly lower
    the objective; where they are quick to solve, no larger penalties lead to it.

    iterate : what minimises at a penalty, in at most so many iterations; None: `newton`
    """
    iterate = iterate or (lambda fit, max_iter: newton(fit, steps, max_iter))
    alpha, tol = fit.alpha, fit.tol
    fit.n_projections = fit.n_conjugate = 0
    n_larger = 0 if steps.is_quick_at_once(fit) else n_larger_penalties(fit)
    for k in range(n_larger, max(0, n_larger - MOST_PENALTIES), -1):
        if not fit.ended_by_callback:
            fit.set_penalty(alpha * PENALTY_FACTOR**k, TOL_ON_THE_WAY, is_on_the_way=True)
            iterate(fit, min(max_iter, STEPS_ON_THE_WAY))
    if n_larger:
        fit.set_penalty(alpha, tol)
    iterate(fit, max_iter)


def newton(fit: LinearFit, steps: NewtonSteps, max_iter: int) -> None:
    """Take Newton steps until the fit's bound is within its tolerance, or rounding allows no
    more."""
    # Each step so far that did neither makes the next one solve its system to finer times the
    # share.
    finer = 1e-2

    distance_before = None

    def move(waited):
        nonlocal distance_before
        here = fit.certificate
        shares = _residual_shares(fit, distance_before, finer**waited)
        step, n_conjugate = steps(fit, shares)
        fit.n_conjugate += n_conjugate
        if (np.vecdot(here.g, step.w) > 0).any():
            # Rounding has made the preconditioner indefinite; without one the step goes down.
            step, n_conjugate = plain_step(fit, shares)
            fit.n_conjugate += n_conjugate
        # the penalty is 0 beside rounding
        if not (np.isfinite(step.w).all() and np.isfinite(step.b).all()):
            return False
        distance_before = here.distance
        fit.move_to(fit.iterate.along(fit.problem.vectors, line_search(fit, step), step))
        return True

    move_until_near(fit, move, max_iter)


def move_until_near(fit: LinearFit, move: Callable[[int], bool], max_iter: int) -> None:
    """Move until the fit's bound is within its tolerance, or rounding allows no more.

    move : a function of the number of moves in a row that have neither halved the bound nor lowered
        the objective by more than rounding; returns False where there is no further move
    """
    least_bound, lowest, waited = np.inf, None, 0
    for _ in range(max_iter):
        here = fit.certificate
        if here.converged or here.is_rounding.all() or fit.ended_by_callback or not move(waited):
            return
        fit.certify()
        objective = fit.objective()
        if fit.record(objective):
            return
        bound = float(fit.certificate.bound.max())
        fell = lowest is None or objective < lowest - FALL_ROUNDING * abs(lowest)
        # an infinite bound does not halve
        waited = 0 if bound < 0.5 * least_bound or fell else waited + 1
        least_bound = min(bound, least_bound)
        lowest = objective if lowest is None else min(objective, lowest)
        if waited == STALLED_STEPS:
            return


def _residual_shares(fit, distance_before, finer):
    """Return to which share the residual of each output has to fall; above 1 where no step is
    needed.

    distance_before : the certificate's distance a step ago, None before the first
    finer : a factor of shares that follow the fall of the distance
    """
    # The system of the first Newton step is solved to first_share of its residual, and the system
    # of the last step to safety times the residual that the tolerance allows.
    first_share = 0.3
    safety = 0.5

    here = fit.certificate
    # distance to w*
    allowed = np.maximum(
        fit.tol * norms(fit.iterate.w) - here.rounding, ROUNDING_RATIO * here.rounding
    )
    share = safety * np.maximum(
        allowed / np.maximum(np.maximum(here.distance, allowed), 1e-300), fit.tol
    )
    if not fit.problem.loss.is_quadratic:
        forcing = first_share
        if distance_before is not None:
            fall = np.minimum(here.distance / np.maximum(distance_before, 1e-300), 1.0)
            forcing = np.minimum(first_share, fall**2)
        share = np.maximum(forcing * finer, share)
    return np.where((here.bound <= fit.tol) | here.is_rounding, 2.0, share)


def line_search(fit: LinearFit, step: Step) -> np.ndarray:
    """Return the step length t of each output: 1 or, where that goes too far, one that about halves
    the slope.

    The objective is convex, so that its slope never falls along the step; t is found by the secant
    rule in a bracket.
    """
    # Trials of a line search at most.
    most_trials = 40

    t = np.ones(len(step.b))
    before, start = fit.along(step, 0.0 * t)
    values, slopes = fit.along(step, t)
    if fit.problem.loss.is_quadratic and (values <= before * (1 + FALL_ROUNDING)).all():
        return t
    low, high, slope_low, slope_high = 0.0 * t, t, start, -start
    for _ in range(most_trials):
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
