"""A fit of a linear model: its iterate, the distance of that to the optimum, and its report.

The problem and its iterates are in `problem.py`, how it is solved in `descent.py`, how near an
iterate is to the optimum in `certificate.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._base.arrays import namespace, outputs_like
from ..solvers.krylov import norms
from .certificate import certify
from .problem import LinearIterate

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..features.feature_set import Solution
    from ..model import FitInfo
    from .certificate import Certificate, Evaluation
    from .inputs import Inputs
    from .problem import LinearProblem, Step


class Progress(Protocol):
    """The progress of a fit: its objectives so far, and the user's callback, which may end it.

    unit : the power of two by which y was divided
    """

    unit: float

    @property
    def ended_by_callback(self) -> bool:
        """Whether the callback has ended the fit."""
        ...

    def note(self, objective: float, *left: float) -> None:
        """Note the objective at the end of an iteration; left: the distance to the end of the fit,
        and the one to reach."""
        ...

    def ask(self, info: Callable[[], FitInfo]) -> bool:
        """Call the callback with info(); return whether it has ended the fit, now or before."""
        ...

    def ask_after_reading(self, n_numbers: float, info: Callable[[], FitInfo]) -> bool:
        """Call the callback as `ask` does, but only where much was read since the last call;
        n_numbers were read just now."""
        ...

    def info(self, objective: Callable[[], float], gap: float, **more: Any) -> FitInfo:
        """Return the `FitInfo` of a fit with this objective and duality gap, in units of y."""
        ...


class LinearFit:
    """A fit of all outputs together: a problem, an iterate, and its certificate.

    Parameters
    ----------
    inputs : Inputs
    problem : LinearProblem
        Its alpha is that of a penalty of 1 on X.
    progress : Progress
    start : LinearIterate or None, default None
        Where to start; None for zero coefficients.
    unit : float, default 1.0
        The factor of a penalty on X in the problem, as y is in units of its own.

    Attributes
    ----------
    alpha, tol : float
        The penalty, in units of X, and the relative error at which to stop; 1 and infinity until
        `set_penalty`.
    certificate : Certificate of the iterate, or None where the fit has moved since it was made
    n_projections : int
        Columns of the sketch that the last step used.
    n_conjugate : int
        Steps of conjugate gradients so far.
    """

    inputs: Inputs
    progress: Progress
    problem: LinearProblem
    alpha: float
    tol: float
    certificate: Certificate
    iterate: LinearIterate

    def __init__(
        self,
        inputs: Inputs,
        problem: LinearProblem,
        progress: Progress,
        start: LinearIterate | None = None,
        unit: float = 1.0,
    ):
        self.inputs, self.progress = inputs, progress
        self.alpha, self.tol, self.certificate = 1.0, np.inf, None
        self.problem, self._unit, self._is_on_the_way = problem, unit, False
        self.n_projections = self.n_conjugate = 0
        self.move_to(
            start or LinearIterate.zero(problem.vectors, problem.n_outputs, inputs.n_features)
        )

    def set_penalty(self, alpha: float, tol: float, is_on_the_way: bool = False) -> None:
        """Turn to another penalty and tolerance; one pass over the rows if they have not been
        looked at from here.

        is_on_the_way: whether this penalty only leads to another, so that its iterations are not
        reported.
        """
        known = self.certificate and self.certificate.evaluation
        self.alpha = alpha
        self.tol = tol
        self.certificate = None
        self._is_on_the_way = is_on_the_way
        self.problem = replace(self.problem, alpha=self.penalty_on_inputs(alpha))
        self.certify(known)

    def penalty_on_inputs(self, alpha: float) -> float:
        """Return a penalty on X in the units of the inputs and of the problem."""
        return self._unit * alpha / self.inputs.unit**2

    def move_to(self, iterate: LinearIterate) -> None:
        """Move to an iterate at the best intercepts for its w. They are written into the iterate
        that is given."""
        iterate.b = self.problem.best_intercepts(iterate.f, iterate.b)
        self.iterate, self.certificate = iterate, None

    def certify(self, known: Evaluation | None = None) -> None:
        """Make the certificate, in one pass over the rows; in none where the evaluation of the
        iterate is known."""
        self.certificate = certify(self.inputs, self.problem, self.iterate, self.tol, known)

    @property
    def w(self) -> np.ndarray:
        """The coefficients, of shape (n_outputs, n_features), of Z."""
        return self.iterate.w

    @property
    def converged(self) -> bool:
        """Whether the bound on the error is within the tolerance."""
        return self.certificate is not None and self.certificate.converged

    @property
    def ended_by_callback(self) -> bool:
        """Whether the callback has ended the fit."""
        return self.progress.ended_by_callback

    def objective(self) -> float:
        """Return the objective of all outputs together."""
        z = self.problem.margins(self.iterate.f, self.iterate.b)
        return (self.problem.mean_losses(z) + self._penalties(self.iterate.w)).sum()

    def along(self, step: Step, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the objective of each output at t steps from here, and its slope in t."""
        problem, here = self.problem, self.iterate
        loss, n, b, b_step = problem.loss, problem.n_rows, here.b + t * step.b, step.b

        def answer(f, d, y, s):
            xp, z = namespace(f), f + outputs_like(t, d) * d + outputs_like(b, f)
            v = s * loss.derivative(z, y) / n
            return xp.sum(s * loss.value(z, y), axis=-1), xp.vecdot(v, d + outputs_like(b_step, d))

        losses, slopes = problem.vectors.sum(answer, here.f, step.f, problem.y, problem.weight)
        w = here.w + t[:, None] * step.w
        return losses / n + self._penalties(w), slopes + problem.alpha * np.vecdot(w, step.w)

    def _penalties(self, w):
        """Return (alpha/2) |w|^2 of each output."""
        return 0.5 * norms(np.sqrt(self.problem.alpha) * w) ** 2

    def trace(self) -> float:
        """Return the trace of the Hessian of the losses at the iterate, the largest of the outputs,
        in the unit of penalties on X."""
        h, inputs = self.certificate.evaluation.total.max(), self.inputs
        return float(h * (inputs.unit * inputs.sizes) @ (inputs.unit * inputs.sizes) / self._unit)

    def record(self, objective: float | None = None) -> bool:
        """End an iteration: note the objective and call the callback; return whether to stop."""
        if not self._is_on_the_way:
            bound = np.inf if self.certificate is None else float(self.certificate.bound.max())
            self.progress.note(
                self.objective() if objective is None else objective, bound, self.tol
            )
            self.progress.ask(self.info)
        return self.converged or self.ended_by_callback

    def is_told_to_stop(self) -> bool:
        """Let the callback end the fit after a pass over the rows within an iteration; return
        whether it has."""
        # The numbers that a pass over the rows counts for, beside the numbers that it reads, until
        # the callback is called again.
        numbers_a_pass = 2**14

        n_numbers = self.inputs.rows.row_size * self.inputs.n_rows * self.problem.n_outputs
        return self.progress.ask_after_reading(numbers_a_pass + n_numbers, self.info)

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the iterate; certified makes no difference: the certificate is
        always known."""
        here = self.certificate
        bound = np.inf if here is None else float(here.bound.max())
        return self.progress.info(
            self.objective,
            np.inf if here is None else here.gap,
            converged=self.converged,
            n_drawn=self.inputs.n_features,
            n_nonzero=int(np.count_nonzero(self.w.any(axis=0))),
            alpha=self.alpha,
            n_projections=self.n_projections,
            n_conjugate=self.n_conjugate,
            n_passes=self.inputs.rows.n_passes,
            error_bound=bound if bound < np.inf else None,
        )

    def solution(self) -> Solution:
        """Return (index, features, w, b) of all inputs, in the units of X and y."""
        # Both units are powers of two, whose ratio may overflow.
        exponent = np.frexp(self.progress.unit)[1] - np.frexp(self.inputs.unit)[1]
        most = np.finfo(np.float64).max
        with np.errstate(over="ignore", under="ignore"):
            w = np.clip(np.ldexp(self.iterate.w, exponent), -most, most)
            b = np.clip(self.progress.unit * self.iterate.b - w @ self.inputs.centre, -most, most)
        return (
            np.arange(w.shape[1]),
            self.inputs.features,
            *((w[0], b[0]) if len(b) == 1 else (w, b)),
        )
