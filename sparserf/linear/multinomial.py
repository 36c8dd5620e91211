"""A linear model with the multinomial loss: the fits of all classes as one fit, by block coordinate
descent over the classes.

In its turn each class makes one Newton step against the others (`solvers/multinomial.py`), whose
system is solved coarsely. Sweeps are extrapolated, and go down a path of penalties as the fit of a
single output does (descent.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..solvers.krylov import norms
from ..solvers.multinomial import CLASS_VERSUS_REST, BlockDescent, Extrapolation, MultinomialProblem
from .certificate import ErrorBound, relative_bound
from .descent import (
    FALL_ROUNDING,
    MOST_PENALTIES,
    PENALTY_FACTOR,
    STALLED_STEPS,
    STEPS_ON_THE_WAY,
    TOL_ON_THE_WAY,
    line_search,
    n_larger_penalties,
)
from .fit import CertifiedFit, LinearFit
from .problem import Iterate, LinearProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import RowVector
    from ..features import Solution
    from ..model import FitInfo
    from .certificate import Certificate
    from .fit import Progress
    from .inputs import Inputs
    from .steps import NewtonSteps

# To which share of its residual the system of a turn is solved; the others' turns change it by
# more.
SHARE = 0.05


class OneClassLinearFit(LinearFit):
    """The linear fit of one class while the others' margins stay as they are."""

    problem: LinearProblem
    certificate: Certificate
    n_conjugate: int

    def __init__(
        self,
        inputs: Inputs,
        problem: LinearProblem,
        progress: Progress,
        info: Callable[[], FitInfo],
    ):
        """info : a function that returns the `FitInfo` of all classes, for the callback"""
        self._info = info
        super().__init__(inputs, problem, progress, unit=problem.alpha)

    def fix_other_classes(self, y: RowVector, b: np.ndarray | None = None) -> None:
        """Fix the margins of the other classes, which the target y holds, and go to the best
        intercept, or to b.

        One pass over the rows certifies the new iterate.
        """
        self.problem = replace(self.problem, loss=CLASS_VERSUS_REST, y=y)
        if b is None:
            self.move_to(self.iterate)
        else:
            # In place, as `move_to` does it: sweeps are extrapolated from these iterates, with the
            # intercepts that are written here.
            self.iterate.b, self.certificate = b, None
        self.certify()

    def take_turn(self, steps: NewtonSteps) -> None:
        """Make one Newton step."""
        step, n_conjugate = steps(self, np.array([SHARE]))
        self.n_conjugate += n_conjugate
        if np.isfinite(step.w).all() and np.isfinite(step.b).all():
            self.move_to(self.iterate.along(self.problem.vectors, line_search(self, step), step))

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of all classes."""
        return self._info()


def joint_bound(fits: Sequence[OneClassLinearFit], tol: float) -> ErrorBound:
    """Return the error bound of the coefficients W of all classes, of which |W - W*| <= |G| / alpha
    for their gradients G."""
    of_each = [fit.certificate for fit in fits]
    distance = np.hypot.reduce([certificate.distance for certificate in of_each])
    rounding = np.hypot.reduce([certificate.rounding for certificate in of_each])
    bound = relative_bound(
        np.hypot.reduce([norms(fit.iterate.w) for fit in fits]), distance + rounding
    )
    gap = sum(certificate.gap for certificate in of_each)
    return ErrorBound(
        distance=distance,
        rounding=rounding,
        bound=bound,
        gap=gap,
        converged=bool(bound.max() <= tol),
    )


class MultinomialLinearFit(CertifiedFit):
    """The fit of all classes together, with the methods of a `LinearFit`."""

    problem: LinearProblem
    alpha: float
    tol: float

    def __init__(
        self,
        inputs: Inputs,
        problems: Sequence[LinearProblem],
        joint: MultinomialProblem,
        progress: Progress,
    ):
        """problems, joint : the problem of each class against the rest, at a penalty of 1 on X, and
        the joint problem."""
        super().__init__(inputs, progress)
        self._fits = [
            OneClassLinearFit(inputs, problem, progress, self.info) for problem in problems
        ]
        self._joint, self._classes = joint, BlockDescent(joint, self._fits)
        self.problem = problems[0]

    def begin(self, alpha: float, tol: float) -> None:
        """Turn to another penalty, from the present iterate."""
        self.alpha, self.tol, self.certificate = alpha, tol, None
        for fit in self._fits:
            fit.begin(alpha, tol)

    def descend(self, steps: Sequence[NewtonSteps], max_iter: int) -> None:
        """Sweep at ever smaller penalties, down to the fit's own; steps: the Newton steps
        of each class."""
        alpha, tol = self.alpha, self.tol
        n_falls = (
            0 if steps[0].is_quick_at_once(self._fits[0]) else n_larger_penalties(self._fits[0])
        )
        for fit in self._fits:
            fit.n_projections = fit.n_conjugate = 0
        for k in range(n_falls, max(0, n_falls - MOST_PENALTIES), -1):
            self.begin(alpha * PENALTY_FACTOR**k, TOL_ON_THE_WAY)
            self._sweeps(steps, min(max_iter, STEPS_ON_THE_WAY), is_on_the_way=True)
        self.begin(alpha, tol)
        self._sweeps(steps, max_iter)

    def _sweeps(self, steps, max_iter, is_on_the_way=False):
        """Sweep until the bound is below the tolerance, or rounding allows no more."""
        least, lowest, waited, extrapolation = np.inf, np.inf, 0, Extrapolation()
        steps_of = dict(zip(self._fits, steps, strict=True))
        self._settle()
        for _ in range(max_iter):
            if self.converged or self.certificate.is_rounding.all() or self.ended_by_callback:
                return
            self._classes.sweep(lambda fit: fit.take_turn(steps_of[fit]))
            self._take_out_common()
            self._extrapolate(extrapolation)
            self._settle()
            objective = self.objective()
            if not is_on_the_way:
                self.progress.note(objective, float(self.certificate.bound.max()), self.tol)
                self.progress.ask(self.info)
            bound = float(self.certificate.bound.max())
            waited = (
                0 if bound < 0.5 * least or objective < lowest * (1 - FALL_ROUNDING) else waited + 1
            )
            least, lowest = min(bound, least), min(objective, lowest)
            if waited == STALLED_STEPS:
                return

    def _settle(self):
        """Go to the best intercepts, give each class the margins of the others, and certify the
        iterates of all."""
        self._classes.settle()
        self.certificate = joint_bound(self._fits, self.tol)

    def _take_out_common(self):
        """Subtract the mean over the classes from each, which makes the sum of squares least, and
        rounding no larger."""
        iterates = [fit.iterate for fit in self._fits]
        mean = self._combined(np.full(len(iterates), 1 / len(iterates)), iterates)
        for fit in self._fits:
            fit.iterate = fit.iterate.along(fit.problem.vectors, np.array([-1.0]), mean)

    def _combined(self, shares, iterates):
        """Return the sum of iterates, each times its share."""
        w, b, f = self._joint.combine_iterates(shares, iterates)
        u = (
            None
            if any(it.u is None for it in iterates)
            else self._joint.combine(shares, [it.u for it in iterates])
        )
        return Iterate.from_w(w, f, b, u)

    def _extrapolate(self, extrapolation):
        """Go where the last sweeps at the same penalty lead, if that is lower."""
        iterates = [fit.iterate for fit in self._fits]
        found = extrapolation.after_sweep(self.alpha, iterates)
        if found is None:
            return
        shares, of_classes = found
        ends = [self._combined(shares, of_class) for of_class in of_classes]
        if self._objective_at(ends) < self._objective_at(iterates):
            for fit, end in zip(self._fits, ends, strict=True):
                # computed anew, without the rounding of all steps before
                end.f = self.inputs.apply(end.w)
                fit.iterate = end

    def _objective_at(self, iterates):
        """Return the joint objective at an iterate of each class, with the best intercepts."""
        *_, z = self._joint.at_best_intercepts(
            [it.f for it in iterates], np.concatenate([it.b for it in iterates])
        )
        penalty = (
            0.5 * self._fits[0].problem.alpha * sum(float(norms(it.w)[0]) ** 2 for it in iterates)
        )
        return self._joint.mean_loss(z) + penalty

    def objective(self) -> float:
        """Return the joint objective."""
        return self._objective_at([fit.iterate for fit in self._fits])

    @property
    def w(self) -> np.ndarray:
        """The coefficients, (n_classes, n_features)."""
        return np.vstack([fit.w for fit in self._fits])

    @property
    def n_projections(self) -> int:
        """The most projections in the sketch of a class."""
        return max(fit.n_projections for fit in self._fits)

    @property
    def n_conjugate(self) -> int:
        """The steps of conjugate gradients of all classes."""
        return sum(fit.n_conjugate for fit in self._fits)

    def trace(self) -> float:
        """Return the largest of the traces of the Hessian of each class."""
        return max(fit.trace() for fit in self._fits)

    def solution(self) -> Solution:
        """Return (index, features, w, b) of all inputs, in the units of X."""
        of_each = [fit.solution() for fit in self._fits]
        index, features, *_ = of_each[0]
        return (
            index,
            features,
            np.stack([w for *_, w, _ in of_each]),
            np.array([b for *_, b in of_each]),
        )
