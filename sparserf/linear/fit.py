"""w* = argmin (1/n) sum_i s_i L(x_i'w + b, y_i) + (alpha/2) |w|^2: where a fit stands, and what it tells of itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..solvers.krylov import dots, norms
from .certificate import Certificate
from .point import Point

if TYPE_CHECKING:
    from ..features.feature_set import Solution
    from ..model import FitInfo
    from .certificate import Look
    from .inputs import Inputs
    from .problem import LinearProblem

# As how many numbers a pass over the rows counts, beside those that it reads, until the callback is called again.
NUMBERS_A_PASS = 2**14


class Told:
    """What a fit tells of itself: by its certificate, its coefficients w, and the `progress` that notes its objectives.

    progress notes objectives and asks a callback: a `Progress` of task.py, or what stands for one.
    """

    inputs: Inputs
    progress: Any
    alpha: float
    tol: float
    certificate: Any

    def __init__(self, inputs: Inputs, progress: Any):
        self.inputs, self.progress = inputs, progress

    def begin(self, alpha: float, tol: float) -> None:
        """Turn to another penalty, from where it stands."""
        self.alpha, self.tol, self.certificate = alpha, tol, None

    @property
    def converged(self) -> bool:
        return self.certificate is not None and self.certificate.converged

    @property
    def ended_by_callback(self) -> bool:
        return self.progress.ended_by_callback

    def info(self, certified: bool = True) -> FitInfo:
        here = self.certificate
        bound = np.inf if here is None else here.bound.max()
        return self.progress.info(
            self.objective,
            np.inf if here is None else here.gap,
            converged=self.converged,
            n_drawn=self.inputs.n_features,
            n_nonzero=int(np.count_nonzero(self.w.any(axis=0))),
            alpha=self.alpha,
            n_projections=self.n_projections,
            n_conjugate=self.n_conjugate,
            error_bound=float(min(bound, np.finfo(np.float64).max)),
        )


class LinearFit(Told):
    """The problem over all outputs, a point, and its certificate. z = Z w + b."""

    problem: LinearProblem
    certificate: Certificate
    at: Point

    def __init__(self, inputs: Inputs, problem: LinearProblem, progress: Any, at: Point | None = None, unit: float = 1.0):
        """unit: of alpha in the problem."""
        super().__init__(inputs, progress)
        self.problem, self._unit = problem, unit
        self.has_diverged = self.is_on_the_way = False
        self.n_projections = self.n_conjugate = 0
        self.move_to(at or Point.at_zero(problem.vectors, problem.n_outputs, inputs.n_features))

    def begin(self, alpha: float, tol: float) -> None:
        """One pass if it has not looked at the rows from there."""
        seen = self.certificate and self.certificate.look
        super().begin(alpha, tol)
        self.problem = replace(self.problem, alpha=self._unit * alpha / self.inputs.unit**2)
        self.look(seen)

    def move_to(self, point: Point) -> None:
        """To its w, at the best intercepts."""
        point.b = self.problem.best_intercepts(point.f, point.b)
        self.at, self.certificate = point, None

    def move_along(self, t: np.ndarray, step: Point) -> None:
        self.move_to(self.at.along(self.problem.vectors, t, step))

    def look(self, seen: Look | None = None) -> None:
        """Make the certificate, in one pass; seen: a `Look` from the same point, with which none is needed."""
        self.certificate = Certificate(self.inputs, self.problem, self.at, self.tol, seen)

    @property
    def w(self) -> np.ndarray:
        return self.at.w

    def total_curvature(self) -> float:
        """Trace of the Hessian of the losses where they are most curved, or more; if they may be of any curvature, here."""
        return float(np.max(self.problem.smoothness_at(self.certificate.look.h))) * float(self.inputs.sizes @ self.inputs.sizes)

    def objective(self) -> float:
        z = self.problem.margins(self.at.f, self.at.b)
        return (self.problem.mean_losses(z) + self._penalties(self.at.w)).sum()

    def along(self, step: Point, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(the objective, its slope in t) of each output at t from here along the step."""
        losses, slopes = self.problem.look_along(self.at, step, t)
        w = self.at.w + t[:, None] * step.w
        return losses + self._penalties(w), slopes + self.problem.alpha * dots(w, step.w)

    def _penalties(self, w):
        return 0.5 * norms(np.sqrt(self.problem.alpha) * w) ** 2

    def record(self, objective: float | None = None) -> bool:
        """End an iteration: note the objective, tell the callback; returns whether to stop."""
        if not self.is_on_the_way:
            bound = np.inf if self.certificate is None else float(self.certificate.bound.max())
            self.progress.note(self.objective() if objective is None else objective, bound, self.tol)
            self.progress.ask(self.info)
        return self.converged or self.ended_by_callback

    def is_told_to_stop(self) -> bool:
        """Let the callback end the fit after a pass over the rows within an iteration."""
        n_numbers = self.inputs.rows.row_size * self.inputs.n_rows * self.problem.n_outputs
        return self.progress.ask_after_reading(NUMBERS_A_PASS + n_numbers, self.info)

    def solution(self) -> Solution:
        """(index, features, w, b) of all inputs, in the units of X and y."""
        # Both are powers of two, whose ratio may overflow.
        exponent = np.frexp(self.progress.scale)[1] - np.frexp(self.inputs.unit)[1]
        most = np.finfo(np.float64).max
        with np.errstate(over="ignore", under="ignore"):
            w = np.clip(np.ldexp(self.at.w, exponent), -most, most)
            b = np.clip(self.progress.scale * self.at.b - w @ self.inputs.centre, -most, most)
        return np.arange(w.shape[1]), self.inputs.features, *((w[0], b[0]) if len(b) == 1 else (w, b))
