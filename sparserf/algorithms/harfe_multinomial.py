"""HARFE with the multinomial loss: the l0 fits of all classes as one fit, by block coordinate
descent over the classes.

Each class has a support of its own. A step is a sweep, in which every class in turn makes a step of
HARFE while the margins of the others stay as they are (`solvers/multinomial.py`). At the end the
coefficients on the supports are brought to their best by further sweeps, which are extrapolated
(Anderson acceleration).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..solvers.multinomial import CLASS_VERSUS_REST, BlockDescent, Extrapolation, MultinomialProblem
from ..solvers.problem import feasible_slope
from ..solvers.ridge import RidgeProblem
from .harfe_fit import L0Fit, begin_fits
from .task import merge_solutions

if TYPE_CHECKING:
    from .._base.types import RowVector
    from ..features import FeatureSet
    from ..features.feature_set import Solution
    from ..model import FitInfo
    from .harfe_fit import HarfeOptions, SupportIterate
    from .task import Progress, Task


class OneClassL0Fit(L0Fit):
    """The l0 fit of one class, with the margins of the others fixed: a
    `solvers.multinomial.OneClassFit`."""

    problem: RidgeProblem
    constant: SupportIterate
    iterate: SupportIterate

    def fix_other_classes(self, y: RowVector, b: float | None = None) -> None:
        """Keep the other classes at the margins that the target y describes, and go to intercept b,
        or to the best one."""
        old, self.problem = self.iterate, replace(self.problem, loss=CLASS_VERSUS_REST, y=y)
        self.constant = self._at_intercept(self.constant, None)
        self.iterate = (
            self.constant if len(old.index) == 0 and b is None else self._at_intercept(old, b)
        )
        self.forget_past()

    def _at_intercept(self, iterate, b):
        """Return an iterate with its objective for the others as they are now, at the best
        intercept, or at b."""
        problem = self.problem
        b = problem.best_intercept(iterate.f, iterate.b) if b is None else b
        objective = problem.objective(
            problem.margins(iterate.f, b), iterate.w, self.p[iterate.index]
        )
        return replace(iterate, b=b, objective=objective, g=None)

    def take_turn(self, s: int) -> None:
        """Make a step of HARFE or, where none lowers the objective, go to the best coefficients on
        the support."""
        self.step(s)
        if self.at_rest:
            self.settle_on_support()

    def settle_on_support(self) -> None:
        """Go to the best coefficients on the support, if they are better."""
        if len(self.iterate.index):
            found = self.solve_on(self.iterate.index)
            if found.is_better_than(self.iterate):
                self.go_to(found)

    def penalty(self) -> float:
        """Return the penalty of the coefficients."""
        return self.problem.penalised(0.0, self.iterate.w, self.p[self.iterate.index])


class MultinomialL0Fit:
    """The fit of all classes together, with the moves of an `L0Fit`: a step is a sweep over the
    classes.

    progress : the objectives so far, and the callback
    at_rest : whether no class has found another support in the last sweep
    fits_well : whether the relative residual is at most the tolerance
    """

    progress: Progress
    at_rest: bool
    fits_well: bool

    def __init__(self, task: Task, dictionary: FeatureSet, options: HarfeOptions):
        if not options.backtracking:
            raise ValueError(
                f"backtracking must be True for loss={task.loss.name!r} and more than two classes, "
                "got False"
            )
        self._dictionary, self._tol, self._alpha = dictionary, options.tol, options.alpha
        self.progress, self._s = task.progress(options.callback, task.targets[0]), 0
        self._fits = begin_fits(task, dictionary, replace(options, callback=None), OneClassL0Fit)
        self._problem = MultinomialProblem.from_targets(
            task.rows.vectors, task.targets, task.weight, options.fit_intercept
        )
        self._classes = BlockDescent(self._problem, self._fits)
        self.at_rest = self.fits_well = False
        self._classes.settle()
        self._loss_of_constant = self._objective()

    @property
    def iterate(self) -> SupportIterate:
        """The iterate of the class with the most terms."""
        return max((fit.iterate for fit in self._fits), key=lambda iterate: len(iterate.index))

    def restart(self) -> None:
        """Begin the iterations for a number of terms, from where the last ones have ended."""
        self.progress.restart()
        self.at_rest = self.fits_well = False
        for fit in self._fits:
            fit.restart()

    def step(self, s: int) -> None:
        """Let each class make a step to at most s terms."""
        self._s = s
        self._classes.sweep(lambda fit: fit.take_turn(s))
        self._classes.settle()
        self.at_rest = all(fit.at_rest for fit in self._fits)

    def record(self) -> bool:
        """End an iteration: note the objective and call the callback. Return whether to stop."""
        self.progress.note(self._objective())
        loss = self._problem.mean_loss(self._classes.margins())
        self.fits_well = loss <= self._tol**2 * self._loss_of_constant
        return self.progress.ask(self.info) or self.at_rest or self.fits_well

    def finish(self) -> None:
        """Go to the best coefficients of all classes on their supports."""
        # The sweeps at the end, on fixed supports, end where one lowers the objective by less than
        # this share, or after this number.
        settled = 1e-7
        most_sweeps = 100

        extrapolation, before = Extrapolation(), np.inf
        for _ in range(most_sweeps):
            objective = self._objective()
            if not objective < before * (1 - settled) or self.progress.ended_by_callback:
                break
            before = objective
            self._classes.sweep(OneClassL0Fit.settle_on_support)
            self._classes.settle()
            self._extrapolate(extrapolation)
        self.progress.note(self._objective())

    def _extrapolate(self, extrapolation):
        """Go where the last sweeps on the same supports lead, if that is lower and has the signs
        that the selection allows."""
        iterates = [fit.iterate for fit in self._fits]
        found = extrapolation.after_sweep(
            [iterate.index.tobytes() for iterate in iterates], iterates
        )
        if found is None:
            return
        (shares, of_classes), before = found, self._objective()
        for fit, iterates_of_class in zip(self._fits, of_classes, strict=True):
            w, b, f = self._problem.combine_iterates(shares, iterates_of_class)
            fit.iterate = replace(fit.iterate, w=w, b=b, f=f)  # its objective comes from `settle`
        is_better = False
        try:  # the time may be over before that is known
            self._classes.settle()
            is_feasible = not any(
                (fit.iterate.w < 0)[fit.nonnegative[fit.iterate.index]].any() for fit in self._fits
            )
            is_better = is_feasible and self._objective() < before
        finally:
            if not is_better:
                for fit, iterate in zip(self._fits, iterates, strict=True):
                    fit.iterate = iterate
        if not is_better:
            self._classes.settle()

    def _objective(self):
        """Return the joint objective: the objective of the first class, which has the loss of all,
        plus the other penalties."""
        objective = self._fits[0].iterate.objective
        return objective + sum(fit.penalty() for fit in self._fits[1:])

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the fit; certified : whether to compute the duality gap.

        The gap is the distance to a lower bound on the objective over all supports of as many
        terms.
        """
        used, gap = [fit.iterate.index[fit.iterate.w != 0] for fit in self._fits], np.inf
        if certified:
            problem = self._problem.with_penalty(RidgeProblem, self._fits[0].problem.alpha)
            gradients = [feasible_slope(fit.gradient(), fit.nonnegative) for fit in self._fits]
            bound = problem.lower_bound(
                self._classes.margins(), np.concatenate(gradients) ** 2, len(self._fits) * self._s
            )
            gap = self._objective() - bound
        return self.progress.info(
            self._objective,
            gap,
            converged=bool(self.at_rest or self.fits_well),
            n_drawn=len(self._dictionary),
            n_nonzero=len(np.unique(np.concatenate(used))),
            alpha=self._alpha,
        )

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms of any class, by ascending index."""
        return merge_solutions([fit.solution() for fit in self._fits])
