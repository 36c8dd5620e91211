"""The projected problem of dual random projection, in m dimensions, and the way from its solution
to one in all inputs.

With X_hat = X R / sqrt(m), the dual variables a of the projected problem are nearly the dual
variables of the original one, and give w = -X'a / alpha (Zhang et al. 2013, Section 3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..features import reduced_projection
from .descent import newton
from .fit import LinearFit
from .inputs import HostInputs
from .problem import LinearIterate
from .sketch import Sketch, SketchSteps
from .steps import InputSteps

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..features import Projection
    from ..model import FitInfo
    from .inputs import Inputs
    from .problem import LinearProblem
    from .steps import NewtonSteps

# The relative error to which the projected problem is solved, and the most Newton steps.
PROJECTED_TOL, PROJECTED_STEPS = 1e-10, 100


class ProgressOfIteration:
    """The `Progress` of a fit that is one iteration of another fit: it notes nothing, and calls the
    callback of the other."""

    unit: float = 1.0

    def __init__(self, whole: LinearFit):
        self._whole = whole

    @property
    def ended_by_callback(self) -> bool:
        """Whether the callback has ended the whole fit."""
        return self._whole.ended_by_callback

    def note(self, objective: float, *left: float) -> None:
        """Note nothing."""

    def ask(self, info: Callable[[], FitInfo]) -> bool:
        """Let the callback end the whole fit after a step of this one; return whether it has."""
        return self._whole.is_told_to_stop()

    def ask_after_reading(self, n_numbers: float, info: Callable[[], FitInfo]) -> bool:
        """Let the callback end the whole fit after a pass over the projected rows; return whether
        it has."""
        return self._whole.progress.ask_after_reading(n_numbers, self._whole.info)

    def info(self, objective: Callable[[], float], gap: float, **more: Any) -> FitInfo:
        """Raise an error: nobody is told of this fit."""
        raise NotImplementedError


def solve_as_iteration(
    fit: LinearFit,
    hat: Inputs,
    problem: LinearProblem,
    start: LinearIterate,
    steps: NewtonSteps,
    tol: float,
) -> LinearFit:
    """Return the solution of a small problem of the inputs `hat`, in the memory of this process, as
    an iteration of a fit."""
    small = LinearFit(hat, problem, ProgressOfIteration(fit), start)
    small.set_penalty(fit.problem.alpha, tol)
    newton(small, steps, PROJECTED_STEPS)
    return small


class ProjectedProblem:
    """The problem of the projected rows X_hat = X R / sqrt(m), in the memory of this process,
    beside a fit in all inputs.

    Parameters
    ----------
    fit : LinearFit
        The fit that the solutions move; its n_projections becomes m.
    projection : Projection
        R, which is replaced by one of no more columns than X has, with the same R R'.
    """

    def __init__(self, fit: LinearFit, projection: Projection):
        self._fit = fit
        self._projection = reduced_projection(projection)
        fit.n_projections = projection.n_projections
        self._host = HostInputs(fit.inputs.rows, fit.inputs.project(self._projection))
        hat, fit_intercept = self._host.inputs, fit.problem.fit_intercept
        if hat.n_features < hat.n_rows:
            self._steps = InputSteps(hat)
        else:  # X_hat X_hat' is smaller, and draws nothing
            self._steps = SketchSteps(Sketch(hat, hat.n_features, None, fit_intercept, None))
        self._problem = self._host.bring_problem(fit.problem)

    def solve(self) -> LinearFit:
        """Return the solution of the projected problem at the fit's w, an offset of the rows.

        Its coefficients are c = z + R'w / sqrt(m), for the z that minimises, with the intercept b,
        alpha/2 |z + R'w / sqrt(m)|^2 + (1/n) sum_i s_i L(z'x_hat_i + w'x_i + b, y_i).
        """
        fit, hat, bring = self._fit, self._host.inputs, self._host.bring
        u = bring(fit.iterate.u)
        # R'w / sqrt(m), since w = Z'u
        start = LinearIterate.from_w(hat.correlate(u), bring(fit.iterate.f), fit.iterate.b, u)
        return solve_as_iteration(fit, hat, self._problem, start, self._steps, PROJECTED_TOL)

    def recover(self, small: LinearFit) -> None:
        """Move the fit to w = -X'a / alpha, a the dual variables of the solution of the projected
        problem."""
        alpha = small.problem.alpha
        u = self._host.send_back(
            small.problem.vectors.map(lambda v: -v / alpha, small.certificate.evaluation.v)
        )
        w = self._fit.inputs.correlate(u)
        self._fit.move_to(LinearIterate.from_w(w, self._fit.inputs.apply(w), small.iterate.b, u))
        self._fit.certify()
