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

from ..solvers.multinomial import JointFit, MultinomialProblem, OneClassFit
from ..solvers.problem import feasible_slope
from ..solvers.ridge import RidgeProblem
from .harfe_fit import L0Fit, begin_fits
from .model_of_fits import merge_solutions

if TYPE_CHECKING:
    from ..features import FeatureSet
    from ..features.feature_set import Solution
    from ..model import FitInfo
    from .fit_progress import Progress
    from .harfe_fit import HarfeOptions, SupportIterate
    from .task import Task


class OneClassL0Fit(L0Fit, OneClassFit):
    """The l0 fit of one class, with the margins of the others fixed."""

    problem: RidgeProblem
    iterate: SupportIterate

    def stand_at(self, b: float) -> None:
        """Go to an intercept; the constant, to its best one."""
        here, at = self.constant, self.iterate
        self.constant = self._at_intercept(here, self.problem.best_intercept(here.f, here.b))
        self.iterate = self._at_intercept(at, b)
        self.forget_past()

    def _at_intercept(self, at, b):
        """Return an iterate with intercept b, and its objective for the others as they are now."""
        loss = self.problem.mean_loss(self.problem.margins(at.f, b))
        penalty = self.problem.penalised(0.0, at.w, self.p[at.index])
        return replace(at, b=b, objective=loss + penalty, g=None)

    def penalty(self, w: np.ndarray) -> float:
        """Return the penalty of coefficients on the support."""
        index = self.iterate.index
        is_feasible = not (w < 0)[self.nonnegative[index]].any()
        return self.problem.penalised(0.0, w, self.p[index]) if is_feasible else np.inf

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


class MultinomialL0Fit(JointFit[OneClassL0Fit]):
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
        targets, has_intercept = np.stack(task.targets), options.fit_intercept
        super().__init__(
            task.problem(MultinomialProblem, targets, 0.0, has_intercept),
            begin_fits(task, dictionary, replace(options, callback=None), OneClassL0Fit),
        )
        self.at_rest = self.fits_well = False
        self.balance()
        self._loss_of_constant = self.objective()

    @property
    def iterate(self) -> SupportIterate:
        """The iterate of the class with the most terms."""
        return max((fit.iterate for fit in self.fits), key=lambda iterate: len(iterate.index))

    def restart(self) -> None:
        """Begin the iterations for a number of terms, from where the last ones have ended."""
        self.progress.restart()
        self.at_rest = self.fits_well = False
        for fit in self.fits:
            fit.restart()

    def step(self, s: int) -> None:
        """Let each class make a step to at most s terms."""
        self._s = s
        self.sweep(lambda fit: fit.take_turn(s))
        self.balance()
        self.at_rest = all(fit.at_rest for fit in self.fits)

    def record(self) -> bool:
        """End an iteration: note the objective and call the callback. Return whether to stop."""
        self.progress.note(self.objective())
        self.fits_well = self.loss() <= self._tol**2 * self._loss_of_constant
        return self.progress.ask(self.info) or self.at_rest or self.fits_well

    def go_to_best(self) -> None:
        """Go to the best coefficients of all classes on their supports."""
        if not self.stopped:
            self.descend(OneClassL0Fit.settle_on_support)
        self.progress.note(self.objective())

    @property
    def stopped(self) -> bool:
        """Whether the callback has ended the fit."""
        return self.progress.ended_by_callback

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the fit; certified : whether to compute the duality gap.

        The gap is the distance to a lower bound on the objective over all supports of as many
        terms.
        """
        used, gap = [fit.iterate.index[fit.iterate.w != 0] for fit in self.fits], np.inf
        if certified:
            problem = self.joint.with_penalty(RidgeProblem, self.fits[0].problem.alpha)
            squares = [feasible_slope(fit.gradient(), fit.nonnegative) ** 2 for fit in self.fits]
            gap = self.objective() - problem.lower_bound(
                self.margins(), np.concatenate(squares), len(self.fits) * self._s
            )
        return self.progress.info(
            self.objective,
            gap,
            converged=bool(self.at_rest or self.fits_well),
            n_drawn=len(self._dictionary),
            n_nonzero=len(np.unique(np.concatenate(used))),
            alpha=self._alpha,
        )

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms of any class, by ascending index."""
        return merge_solutions([fit.solution() for fit in self.fits])
