"""A linear model with the multinomial loss: a fit whose outputs are the classes, by block
coordinate descent over them.

In its turn each class makes one Newton step against the others (`solvers/multinomial.py`), whose
system is solved coarsely. Sweeps are extrapolated, and go down a path of penalties as the fit of
outputs of their own does (descent.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._base.progress import check_not_ended
from ..losses.classification import Multinomial
from ..solvers.krylov import norms
from ..solvers.multinomial import CLASS_VERSUS_REST, Extrapolation, MultinomialProblem
from .certificate import relative_bound
from .descent import descend, line_search, move_until_near
from .fit import LinearFit
from .problem import LinearIterate, LinearProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import RowVector
    from ..model import FitInfo
    from .certificate import Evaluation
    from .fit import Progress
    from .inputs import Inputs
    from .steps import NewtonSteps

# To which share of its residual the system of a turn is solved; the others' turns change it by
# more.
SHARE = 0.05


class LossOfAllClasses(Multinomial):
    """The multinomial loss, with the bounds that hold where all classes move.

    The least curvature of one class's margins bounds its distance to the optimum while the others
    stay, and says nothing of the distance where these move, too.
    """

    is_self_concordant: bool = False
    smoothness: float = CLASS_VERSUS_REST.smoothness
    is_unimodal: bool = CLASS_VERSUS_REST.is_unimodal
    dual_growth: float = CLASS_VERSUS_REST.dual_growth


@dataclass(frozen=True, eq=False)
class MultinomialLinearProblem(MultinomialProblem, LinearProblem):
    """The `LinearProblem` whose outputs are the classes of one multinomial loss."""


class OneClassLinearFit(LinearFit):
    """The linear fit of one class, in its turn, while the others' margins stay as they are."""

    def __init__(self, joint: MultinomialLinearFit, k: int, y: RowVector):
        """y : the target of CLASS_VERSUS_REST, which holds the margins of the others"""
        whole, at, self._joint, of_k = joint.problem, joint.iterate, joint, slice(k, k + 1)
        f, u = (
            None if x is None else whole.vectors.map(lambda x: x[of_k, ...], x)
            for x in (at.f, at.u)
        )
        problem = replace(
            whole.with_penalty(LinearProblem, whole.alpha),
            loss=CLASS_VERSUS_REST,
            y=whole.vectors.map(lambda y: y[:, None, :], y),
        )
        start = LinearIterate(at.w[of_k], f, at.b[of_k], u, at.way[of_k])
        super().__init__(joint.inputs, problem, joint.progress, start)
        self.alpha, self.tol = joint.alpha, joint.tol
        self.certify()

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of all classes."""
        return self._joint.info()


class MultinomialLinearFit(LinearFit):
    """The fit of all classes together: a `LinearFit` whose outputs are the classes."""

    problem: MultinomialLinearProblem

    def __init__(
        self, inputs: Inputs, problem: MultinomialLinearProblem, progress: Progress, unit: float
    ):
        problem = replace(problem, loss=LossOfAllClasses())
        super().__init__(inputs, problem, progress, unit=unit)

    def certify(self, known: Evaluation | None = None) -> None:
        """Make the certificate, in which the coefficients W of all classes have one bound: |W - W*|
        <= |G| / alpha for their gradients G."""
        super().certify(known)
        distance, rounding, size = (
            np.hypot.reduce(lengths, keepdims=True)
            for lengths in (self.certificate.distance, self.certificate.rounding, norms(self.w))
        )
        bound = relative_bound(size, distance + rounding)
        self.certificate = replace(
            self.certificate,
            distance=distance,
            rounding=rounding,
            bound=bound,
            converged=bool(bound.max() <= self.tol),
        )

    def descend(self, steps: Sequence[NewtonSteps], max_iter: int) -> None:
        """Sweep at ever smaller penalties, down to the fit's own; steps: the Newton steps
        of each class."""

        def iterate(_, max_iter):
            extrapolation = Extrapolation()

            def move(_):
                self._sweep(steps)
                self._take_out_common()
                self._extrapolate(extrapolation)
                return True

            move_until_near(self, move, max_iter)

        descend(self, steps[0], max_iter, iterate)

    def _sweep(self, steps):
        """Let each class make one Newton step against the others as they are by then."""
        iterates, problem, vectors = [], self.problem, self.problem.vectors

        def turn(place, y):
            check_not_ended()
            k, steps_of_class = place
            fit = OneClassLinearFit(self, k, y)
            step, n_conjugate = steps_of_class(fit, np.array([SHARE]))
            self.n_conjugate += n_conjugate
            self.n_projections = max(self.n_projections, fit.n_projections)
            if np.isfinite(step.w).all() and np.isfinite(step.b).all():
                fit.move_to(fit.iterate.along(vectors, line_search(fit, step), step))
            iterates.append(fit.iterate)
            return problem.margins(fit.iterate.f, fit.iterate.b)

        z = problem.margins(self.iterate.f, self.iterate.b)
        problem.in_turn(z, list(enumerate(steps)), turn)
        w, b, way = (
            np.concatenate([getattr(it, name) for it in iterates]) for name in ("w", "b", "way")
        )
        f, u = problem.stack([it.f for it in iterates]), None
        if all(it.u is not None for it in iterates):
            u = problem.stack([it.u for it in iterates])
        self.iterate = LinearIterate(w, f, b, u, way)

    def _take_out_common(self):
        """Subtract the mean over the classes from each, which makes the sum of squares least, and
        rounding no larger, and go to the best intercepts."""
        at, vectors, n = self.iterate, self.problem.vectors, len(self.w)

        def mean(x):
            return sum(x[k : k + 1, ...] for k in range(n)) / n

        u = None if at.u is None else vectors.map(mean, at.u)
        common = LinearIterate.from_w(mean(at.w), vectors.map(mean, at.f), mean(at.b), u)
        self.move_to(at.along(vectors, np.full(n, -1.0), common))

    def _extrapolate(self, extrapolation):
        """Go where the last sweeps at the same penalty lead, if that is lower."""
        combine, past = extrapolation.after_sweep([self.iterate])
        if not past:
            return
        w, b = (combine(*(getattr(it, name) for it in past[0])) for name in ("w", "b"))
        us = [it.u for it in past[0]]
        u = None if any(u is None for u in us) else self.problem.vectors.map(combine, *us)
        here, before = self.iterate, self.objective()
        # computed anew, without the rounding of all steps before
        self.move_to(LinearIterate.from_w(w, self.inputs.apply(w), b, u))
        if not self.objective() < before:
            self.iterate = here
