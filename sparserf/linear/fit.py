"""A fit of a linear model: its problem, its iterates, how near to the optimum they are, and what it reports.

With the inputs Z of `inputs.py`, weights s of mean 1 and L' and L'' the derivatives of the loss in the margin z = Z w + b,

    minimise  (1/n) sum_i s_i L(z_i, y_i) + (alpha/2) |w|^2   over w and b, for several outputs at once.

v = s L'(z) / n is the dual point of an iterate, h = s L''(z) / n the curvature of its rows. The gradient in w is alpha w + Z'v,
the Hessian alpha I + Z' diag(h) Z, and at the optimum w = Z'u for u = -v / alpha.

The row vectors f, v, h and u have a line for each output; a sum over the rows is an ndarray with a number for each output.
How the problem is solved is in `descent.py`, how near an iterate is to the optimum in `certificate.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._base.arrays import namespace, outputs_like
from ..solvers.krylov import norms
from ..solvers.problem import Problem
from .certificate import certify

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import RowVector
    from ..features.feature_set import Solution
    from ..losses.base import Loss
    from ..model import FitInfo
    from ..rows import RowVectors
    from .certificate import Certificate, ErrorBound, Evaluation
    from .inputs import Inputs

# The numbers that a pass over the rows counts for, beside the numbers that it reads, until the callback is called again.
NUMBERS_A_PASS = 2**14
# A row whose curvature is below this share of the largest counts as flat: its h is taken for 0.
FLAT = 1e-10


@dataclass
class Step:
    """The difference of two iterates; each field has a line or a number for each output.

    w : ndarray of shape (n_outputs, n_features)
    f : row vector, Z w
    b : ndarray of shape (n_outputs,), the steps of the intercepts
    u : row vector with w = Z'u, or None where it is not known
    way : ndarray of shape (n_outputs, n_features), the sizes of what f was added up from; None: |w|
    """

    w: np.ndarray
    f: RowVector
    b: np.ndarray
    u: RowVector
    way: np.ndarray | None = None


@dataclass
class Iterate:
    """The iterate of a fit; each field has a line or a number for each output.

    w : ndarray of shape (n_outputs, n_features), the coefficients
    f : row vector, Z w; in the projected problem the offset of the rows is added to it
    b : ndarray of shape (n_outputs,), the intercepts
    u : row vector with w = Z'u, or None where it is not known
    way : ndarray of shape (n_outputs, n_features), |w| of all iterates and steps on the way here, added up: the rounding of f
        is in proportion to it
    """

    w: np.ndarray
    f: RowVector
    b: np.ndarray
    u: RowVector
    way: np.ndarray

    @classmethod
    def zero(cls, vectors: RowVectors, n_outputs: int, n_features: int) -> Iterate:
        """Return the iterate of no coefficients and no intercepts."""
        shape = n_outputs, n_features
        return cls(np.zeros(shape), vectors.zeros(n_outputs), np.zeros(n_outputs), vectors.zeros(n_outputs), np.zeros(shape))

    @classmethod
    def from_w(cls, w: np.ndarray, f: RowVector, b: np.ndarray, u: RowVector) -> Iterate:
        """Return the iterate at w that one step from zero leads to."""
        return cls(w, f, b, u, np.abs(w))

    def along(self, vectors: RowVectors, t: np.ndarray, step: Step) -> Iterate:
        """Return the iterate t steps on, for a number t of each output."""
        way = self.way + np.abs(t)[:, None] * (np.abs(step.w) if step.way is None else step.way)
        w = self.w + t[:, None] * step.w
        u = None if self.u is None or step.u is None else vectors.along(self.u, t, step.u)
        return Iterate(w, vectors.along(self.f, t, step.f), self.b + t * step.b, u, way + np.abs(w))


@dataclass(frozen=True, eq=False)
class LinearProblem(Problem):
    """A `Problem` of several outputs with the penalty (alpha/2) |w|^2."""

    n_outputs: int = 1

    @classmethod
    def from_arrays(
        cls, vectors: RowVectors, loss: Loss, y: np.ndarray, weight: np.ndarray, alpha: float, fit_intercept: bool
    ) -> LinearProblem:
        """Return the problem of ndarrays y, of shape (n_outputs, n_rows) or (2, n_outputs, n_rows), and weight."""
        return cls(vectors, loss, vectors.put(y), vectors.put(weight), alpha, fit_intercept, y.shape[-2])

    def moved_to(self, move: Callable[[RowVector], RowVector], vectors: RowVectors) -> LinearProblem:
        """Return the same problem with its row vectors copied, by move(vector), to where `vectors` computes."""
        return replace(self, vectors=vectors, y=move(self.y), weight=move(self.weight))

    def smoothness_at(self, h: RowVector) -> float | np.ndarray:
        """Return a bound of L'' near the margins whose curvature is h: a number, or one for each output.

        A loss of no finite smoothness must be self-concordant: its L'' at most doubles where margins move by less than log 2.
        """
        if np.isfinite(self.loss.smoothness):
            return self.loss.smoothness
        n = self.n_rows
        return 2 * self.vectors.sum(lambda h, s: namespace(h).max(n * h / s, axis=-1), h, self.weight, add=np.maximum)

    def intercept_step(self, total: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return Newton's step -slope / total of the intercepts, for total = sum h; 0 where there are none."""
        return -np.divide(slope, total, out=np.zeros_like(slope), where=(total > 0) & self.fit_intercept)

    def zero_in_flat_rows(self, h: RowVector) -> RowVector:
        """Return h, with 0 in flat rows."""
        flat = FLAT * self.vectors.sum(lambda h: namespace(h).max(h, axis=-1), h, add=np.maximum)

        def answer(h):
            return namespace(h).where(h > outputs_like(flat, h), h, namespace(h).zeros_like(h))

        return self.vectors.map(answer, h)


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
        """Note the objective at the end of an iteration; left: the distance to the end of the fit, and the one to reach."""
        ...

    def ask(self, info: Callable[[], FitInfo]) -> bool:
        """Call the callback with info(); return whether it has ended the fit, now or before."""
        ...

    def ask_after_reading(self, n_numbers: float, info: Callable[[], FitInfo]) -> bool:
        """Call the callback as `ask` does, but only where much was read since the last call; n_numbers were read just now."""
        ...

    def info(self, objective: Callable[[], float], gap: float, **more: Any) -> FitInfo:
        """Return the `FitInfo` of a fit with this objective and duality gap, in units of y."""
        ...


class CertifiedFit:
    """The base of `LinearFit` and of the fit of all classes together: a penalty, a tolerance, a certificate and a report.

    A class of fits adds the coefficients w, objective(), n_projections and n_conjugate, and `begin`, which turns to a penalty.

    alpha, tol : float
        The penalty, in units of X, and the relative error at which to stop; 1 and infinity until `begin`.
    certificate : `ErrorBound` of the iterate, or None where the fit has moved since it was made
    """

    inputs: Inputs
    progress: Progress
    alpha: float
    tol: float
    certificate: ErrorBound | None
    n_projections: Any
    n_conjugate: Any

    def __init__(self, inputs: Inputs, progress: Progress):
        self.inputs, self.progress = inputs, progress
        self.alpha, self.tol, self.certificate = 1.0, np.inf, None

    @property
    def w(self) -> np.ndarray:
        """The coefficients of Z, a line for each output or class."""
        raise NotImplementedError

    def objective(self) -> float:
        """Return the objective at the iterate."""
        raise NotImplementedError

    @property
    def converged(self) -> bool:
        """Whether the bound on the error is within the tolerance."""
        return self.certificate is not None and self.certificate.converged

    @property
    def ended_by_callback(self) -> bool:
        """Whether the callback has ended the fit."""
        return self.progress.ended_by_callback

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the iterate; certified makes no difference: the certificate is always known."""
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
            n_passes=self.inputs.rows.n_passes,
            error_bound=float(min(bound, np.finfo(np.float64).max)),
        )


class LinearFit(CertifiedFit):
    """A fit of all outputs together: a problem, an iterate, and its certificate.

    Parameters
    ----------
    inputs : Inputs
    problem : LinearProblem
        Its alpha is that of a penalty of 1 on X.
    progress : Progress
    start : Iterate or None, default None
        Where to start; None for zero coefficients.
    unit : float, default 1.0
        What a penalty on X is multiplied by in the problem, as y is in units of its own.

    Attributes
    ----------
    n_projections : int
        Columns of the sketch that the last step used.
    n_conjugate : int
        Steps of conjugate gradients so far.
    """

    problem: LinearProblem
    alpha: float
    tol: float
    certificate: Certificate
    iterate: Iterate

    def __init__(
        self, inputs: Inputs, problem: LinearProblem, progress: Progress, start: Iterate | None = None, unit: float = 1.0
    ):
        super().__init__(inputs, progress)
        self.problem, self._unit, self._is_on_the_way = problem, unit, False
        self.n_projections = self.n_conjugate = 0
        self.move_to(start or Iterate.zero(problem.vectors, problem.n_outputs, inputs.n_features))

    def begin(self, alpha: float, tol: float, is_on_the_way: bool = False) -> None:
        """Turn to another penalty and tolerance; one pass over the rows if they have not been looked at from here.

        is_on_the_way: whether this penalty only leads to another, so that its iterations are not reported.
        """
        known = self.certificate and self.certificate.evaluation
        self.alpha, self.tol, self.certificate, self._is_on_the_way = alpha, tol, None, is_on_the_way
        self.problem = replace(self.problem, alpha=self._unit * alpha / self.inputs.unit**2)
        self.certify(known)

    def move_to(self, iterate: Iterate) -> None:
        """Move to an iterate at the best intercepts for its w. They are written into the iterate that is given."""
        iterate.b = self.problem.best_intercepts(iterate.f, iterate.b)
        self.iterate, self.certificate = iterate, None

    def certify(self, known: Evaluation | None = None) -> None:
        """Make the certificate, in one pass over the rows; in none where the evaluation of the iterate is known."""
        self.certificate = certify(self.inputs, self.problem, self.iterate, self.tol, known)

    @property
    def w(self) -> np.ndarray:
        """The coefficients, of shape (n_outputs, n_features), of Z."""
        return self.iterate.w

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

    def record(self, objective: float | None = None) -> bool:
        """End an iteration: note the objective and call the callback; return whether to stop."""
        if not self._is_on_the_way:
            bound = np.inf if self.certificate is None else float(self.certificate.bound.max())
            self.progress.note(self.objective() if objective is None else objective, bound, self.tol)
            self.progress.ask(self.info)
        return self.converged or self.ended_by_callback

    def is_told_to_stop(self) -> bool:
        """Let the callback end the fit after a pass over the rows within an iteration; return whether it has."""
        n_numbers = self.inputs.rows.row_size * self.inputs.n_rows * self.problem.n_outputs
        return self.progress.ask_after_reading(NUMBERS_A_PASS + n_numbers, self.info)

    def solution(self) -> Solution:
        """Return (index, features, w, b) of all inputs, in the units of X and y."""
        # Both units are powers of two, whose ratio may overflow.
        exponent = np.frexp(self.progress.unit)[1] - np.frexp(self.inputs.unit)[1]
        most = np.finfo(np.float64).max
        with np.errstate(over="ignore", under="ignore"):
            w = np.clip(np.ldexp(self.iterate.w, exponent), -most, most)
            b = np.clip(self.progress.unit * self.iterate.b - w @ self.inputs.centre, -most, most)
        return np.arange(w.shape[1]), self.inputs.features, *((w[0], b[0]) if len(b) == 1 else (w, b))
