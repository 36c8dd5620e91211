"""The multinomial loss of a linear model: a `LinearFit` of each class, which take turns, as one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np

from ..solvers.krylov import norms
from ..solvers.rivals import AGAINST, Extrapolation, Rivals
from .certificate import ROUNDING_RATIO
from .descent import (
    MOST_PENALTIES,
    NEGLIGIBLE,
    PATIENCE,
    PENALTY_FACTOR,
    STEPS_ON_THE_WAY,
    TOL_ON_THE_WAY,
    line_search,
    n_larger_penalties,
)
from .fit import CertifiedFit, LinearFit
from .problem import Iterate, LinearProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import RowVector, Solution
    from ..algorithms.task import Progress, Task
    from ..model import FitInfo
    from .certificate import Certificate
    from .descent import NewtonSteps
    from .inputs import Inputs

# To which share of its residual the system of a turn is solved; the others' turns change it by more.
SHARE = 0.05


class ClassFit(LinearFit):
    """The fit of one class against the others as they are."""

    problem: LinearProblem
    certificate: Certificate
    whole: LinearClasses

    def against(self, y: RowVector, b: np.ndarray | None = None) -> None:
        """Turn to the others' margins, at the best intercept, or at b, and look at the rows from there."""
        self.problem = replace(self.problem, loss=AGAINST, y=y)
        if b is None:
            self.move_to(self.at)
        else:
            self.at.b, self.certificate = b, None
        self.look()

    def take_turn(self, steps: NewtonSteps) -> None:
        step, n_conjugate = steps(self, np.array([SHARE]))
        self.n_conjugate += n_conjugate
        if all(np.isfinite(part).all() for part in (step.w, step.b)):
            self.move_along(line_search(self, step), step)

    def info(self, certified: bool = True) -> FitInfo:
        return self.whole.info()


class JointCertificate:
    """|W - W*| is at most |G| / alpha, for the gradients G of all classes; of one number, as of one output."""

    distance: np.ndarray
    rounding: np.ndarray
    bound: np.ndarray
    converged: bool
    is_rounding: np.ndarray
    gap: float

    def __init__(self, fits: Sequence[ClassFit], tol: float):
        of_each = [fit.certificate for fit in fits]
        self.distance = np.hypot.reduce([certificate.distance for certificate in of_each])
        self.rounding = np.hypot.reduce([certificate.rounding for certificate in of_each])
        total, size = self.distance + self.rounding, np.hypot.reduce([norms(fit.at.w) for fit in fits])
        self.bound = np.divide(total, size - total, out=np.where(total > 0, np.inf, 0.0), where=size > total)
        self.converged = bool(self.bound.max() <= tol)
        self.is_rounding = self.distance <= ROUNDING_RATIO * self.rounding
        self.gap = sum(c.gap for c in of_each)


class LinearClasses(CertifiedFit):
    """What a `LinearFit` is, of all classes together."""

    problem: LinearProblem
    certificate: JointCertificate
    has_diverged: bool = False

    def __init__(self, fits: Sequence[ClassFit], rivals: Rivals, progress: Progress):
        super().__init__(fits[0].inputs, progress)
        self._fits, self._rivals, self.problem, self.certificate = fits, rivals, fits[0].problem, None
        for fit in fits:
            fit.whole = self

    @classmethod
    def of(cls, task: Task, inputs: Inputs, progress: Progress, fit_intercept: bool) -> Self:
        problems = [task.problem(LinearProblem, y[None, :], 1.0, fit_intercept) for y in task.targets]
        fits = [ClassFit(inputs, problem, progress, unit=problem.alpha) for problem in problems]
        return cls(fits, Rivals.of_targets(task.rows.vectors, task.targets, task.weight, fit_intercept), progress)

    def begin(self, alpha: float, tol: float) -> None:
        super().begin(alpha, tol)
        for fit in self._fits:
            fit.begin(alpha, tol)

    def descend(self, steps: Sequence[NewtonSteps], max_iter: int) -> None:
        """`sweeps` at ever smaller penalties, down to the fit's own."""
        alpha, tol, n_falls = self.alpha, self.tol, n_larger_penalties(self._fits[0])
        for fit in self._fits:
            fit.n_projections = fit.n_conjugate = 0
        for k in range(n_falls, max(0, n_falls - MOST_PENALTIES), -1):
            self.begin(alpha * PENALTY_FACTOR**k, TOL_ON_THE_WAY)
            self._sweeps(steps, min(max_iter, STEPS_ON_THE_WAY), is_on_the_way=True)
        self.begin(alpha, tol)
        self._sweeps(steps, max_iter)

    def _sweeps(self, steps, max_iter, is_on_the_way=False):
        """A turn of each class, again and again, until the bound is below the tolerance, or rounding allows no more."""
        least, lowest, waited, extrapolation = np.inf, np.inf, 0, Extrapolation()
        self._settle()
        for _ in range(max_iter):
            if self.converged or self.certificate.is_rounding.all() or self.ended_by_callback:
                return
            turns = self._rivals.turns(self._margins())
            for k, (fit, step) in enumerate(zip(self._fits, steps, strict=True)):
                if k:
                    fit.against(turns.against(1))
                fit.take_turn(step)
                turns.end(fit.problem.margins(fit.at.f, fit.at.b))
            self._take_out_common()
            self._extrapolate(extrapolation)
            self._settle()
            objective = self.objective()
            if not is_on_the_way:
                self.progress.note(objective, float(self.certificate.bound.max()), self.tol)
                self.progress.ask(self.info)
            bound = float(self.certificate.bound.max())
            waited = 0 if bound < 0.5 * least or objective < lowest * (1 - NEGLIGIBLE) else waited + 1
            least, lowest = min(bound, least), min(objective, lowest)
            if waited == PATIENCE:
                return

    def _margins(self):
        return self._rivals.together([fit.problem.margins(fit.at.f, fit.at.b) for fit in self._fits])

    def _settle(self):
        """Go to the best intercepts, turn all to each other, and look at the rows."""
        _, b, z = self._settled_at([fit.at for fit in self._fits])
        for k, (fit, y) in enumerate(zip(self._fits, self._rivals.all_against(z, 1), strict=False)):
            fit.against(y, b[k : k + 1])
        self.certificate = JointCertificate(self._fits, self.tol)

    def _take_out_common(self):
        """The mean of all classes, with which the rounding of all together becomes no more, in the sum of squares."""
        points = [fit.at for fit in self._fits]
        mean = self._combined(np.full(len(points), 1 / len(points)), points)
        for fit in self._fits:
            fit.at = fit.at.along(self._rivals.vectors, np.array([-1.0]), mean)

    def _combined(self, shares, points):
        """The sum of points, each times its share."""
        w, b = (sum(share * getattr(p, name) for share, p in zip(shares, points, strict=True)) for name in ("w", "b"))
        u = None if any(p.u is None for p in points) else self._rivals.combined(shares, [p.u for p in points])
        return Iterate.from_w(w, self._rivals.combined(shares, [p.f for p in points]), b, u)

    def _extrapolate(self, extrapolation):
        """Go where the last sweeps lead, if that is lower."""
        points = [fit.at for fit in self._fits]
        found = extrapolation.of(self.alpha, np.concatenate([np.append(p.w, p.b) for p in points]), points)
        if found is None:
            return
        shares, _, after = found
        ends = [self._combined(shares, of_class) for of_class in zip(*after, strict=True)]
        if self._objective_at(ends) < self._objective_at(points):
            for fit, end in zip(self._fits, ends, strict=True):
                end.f = self.inputs.apply(end.w)  # without the rounding of all steps before
                fit.at = end

    def _settled_at(self, points):
        return self._rivals.settled([p.f for p in points], np.concatenate([p.b for p in points]))

    def _objective_at(self, points):
        *_, z = self._settled_at(points)
        penalty = 0.5 * self._fits[0].problem.alpha * sum(float(norms(p.w)[0]) ** 2 for p in points)
        return self._rivals.mean_loss(z) + penalty

    def objective(self) -> float:
        return self._objective_at([fit.at for fit in self._fits])

    @property
    def w(self) -> np.ndarray:
        return np.vstack([fit.w for fit in self._fits])

    @property
    def n_projections(self) -> int:
        return max(fit.n_projections for fit in self._fits)

    @property
    def n_conjugate(self) -> int:
        return sum(fit.n_conjugate for fit in self._fits)

    def solution(self) -> Solution:
        """(index, features, w, b) of all inputs, in the units of X."""
        of_each = [fit.solution() for fit in self._fits]
        index, features, *_ = of_each[0]
        return index, features, np.stack([w for *_, w, _ in of_each]), np.array([b for *_, b in of_each])
