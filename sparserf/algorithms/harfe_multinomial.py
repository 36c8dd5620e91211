"""HARFE with the multinomial loss: the l0 fits of all classes as one fit, by block coordinate descent over the classes.

Each class has a support of its own. A step is a sweep, in which every class makes a step of HARFE against the others
(`solvers/multinomial.py`). At the end the coefficients on the supports are brought to their best by sweeps that are
extrapolated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..features import merge_solutions
from ..solvers.multinomial import CLASS_VERSUS_REST, BlockDescent, Extrapolation, MultinomialProblem
from ..solvers.ridge import RidgeProblem
from .harfe_fit import L0Fit, begin_fits

if TYPE_CHECKING:
    from .._base.types import RowVector
    from ..features import FeatureSet
    from ..features.feature_set import Solution
    from ..model import FitInfo
    from .harfe_fit import HarfeOptions, SupportIterate
    from .task import Progress, Task

# Sweeps over the classes on their supports end where one lowers the objective by less than this share, or after so many.
SETTLED, MOST_SWEEPS = 1e-7, 100


class OneClassL0Fit(L0Fit):
    """The l0 fit of one class while the others' margins stay as they are."""

    @property
    def iterate(self) -> SupportIterate:
        """Where the fit stands."""
        return self.point

    def current_margins(self) -> RowVector:
        """Return f + b."""
        return self.problem.margins(self.point.f, self.point.b)

    def hold_others(self, y: RowVector, b: float | None = None) -> None:
        """Minimise from now on with the others where y says that they are, from the best intercept, or from b."""
        old, self.problem = self.point, replace(self.problem, loss=CLASS_VERSUS_REST, y=y)
        self._constant = self._at_intercept(self._constant, None)
        self._loss_of_constant = self._constant.objective
        self.point = self._constant if len(old.index) == 0 and b is None else self._at_intercept(old, b)
        self._best, self._seen = None, set()

    def _at_intercept(self, iterate, b):
        """Return an iterate with the others where they are now, at the best intercept, or at b."""
        problem = self.problem
        b = problem.best_intercept(iterate.f, iterate.b) if b is None else b
        objective = problem.objective(problem.margins(iterate.f, b), iterate.w, self._p[iterate.index])
        return replace(iterate, b=b, objective=objective, g=None)

    def take_turn(self, s: int) -> None:
        """Make a step of HARFE or, where none lowers the objective, go to the best coefficients on the support."""
        self.step(s)
        if self.at_rest:
            self.settle_on_support()

    def settle_on_support(self) -> None:
        """Go to the best coefficients on the support, if they are better."""
        if len(self.point.index):
            found = self.solve_on(self.point.index)
            if found.is_better_than(self.point):
                self.go_to(found)

    def put(self, iterate: SupportIterate) -> None:
        """Go to an iterate, to be followed by `hold_others`."""
        self.point = iterate

    @property
    def is_allowed(self) -> bool:
        """Whether the selection allows the signs of the coefficients."""
        return bool((self.point.w >= 0).all()) or not self._positive

    def penalty(self) -> float:
        """Return the penalty of the coefficients."""
        return self.problem.penalised(0.0, self.point.w, self._p[self.point.index])

    def squares(self) -> np.ndarray:
        """Return the squares of the gradient, where the positive selection could use it, for `RidgeProblem.lower_bound`."""
        g = self.gradient()
        return (np.maximum(-g, 0) if self._positive else g) ** 2


class MultinomialL0Fit:
    """The fit of all classes together, with the moves of an `L0Fit`: a step is a sweep over the classes."""

    progress: Progress
    at_rest: bool
    fits_well: bool

    def __init__(self, task: Task, dictionary: FeatureSet, options: HarfeOptions):
        if not options.backtracking:
            raise ValueError(f"backtracking must be True for loss={task.loss.name!r} and more than two classes, got False")
        self._dictionary, self._tol, self._alpha = dictionary, options.tol, options.alpha
        self.progress, self._s = task.progress(options.callback, task.targets[0]), 0
        self._fits = begin_fits(task, dictionary, replace(options, callback=None), OneClassL0Fit)
        self._problem = MultinomialProblem.from_targets(task.rows.vectors, task.targets, task.weight, options.fit_intercept)
        self._classes = BlockDescent(self._problem, self._fits)
        self.at_rest = self.fits_well = False
        self._classes.settle()
        self._loss_of_constant = self._objective()

    def restart(self) -> None:
        """Begin the iterations for a size, from where the last ones ended."""
        self.progress.restart()
        self.at_rest = self.fits_well = False
        for fit in self._fits:
            fit.restart()

    @property
    def ended_by_callback(self) -> bool:
        """Whether a callback ended the fit."""
        return self.progress.ended_by_callback

    @property
    def point(self) -> SupportIterate:
        """The iterate of the class with the most terms."""
        return max((fit.point for fit in self._fits), key=lambda point: len(point.index))

    def step(self, s: int) -> None:
        """Let each class make a step to at most s terms."""
        self._s = s
        self._classes.sweep(lambda fit: fit.take_turn(s))
        self._classes.settle()
        self.at_rest = all(fit.at_rest for fit in self._fits)

    def record(self) -> bool:
        """End an iteration: note the objective, ask the callback, and return whether to stop."""
        self.progress.note(self._objective())
        loss = self._problem.mean_loss(self._classes.margins())
        self.fits_well = loss <= self._tol**2 * self._loss_of_constant
        return self.progress.ask(self.info) or self.at_rest or self.fits_well

    def finish(self) -> None:
        """Go to the best coefficients of all classes on their supports."""
        extrapolation, before = Extrapolation(), np.inf
        for _ in range(MOST_SWEEPS):
            objective = self._objective()
            if not objective < before * (1 - SETTLED) or self.ended_by_callback:
                break
            before = objective
            self._classes.sweep(OneClassL0Fit.settle_on_support)
            self._classes.settle()
            self._extrapolate(extrapolation)
        self.progress.note(self._objective())

    def _extrapolate(self, extrapolation):
        """Go where the last sweeps on the same supports lead, if that is lower and has the signs that the selection allows."""
        points = [fit.point for fit in self._fits]
        found = extrapolation.after_sweep([point.index.tobytes() for point in points], points)
        if found is None:
            return
        (shares, of_classes), before = found, self._objective()
        for fit, points_of_class in zip(self._fits, of_classes, strict=True):
            w, b, f = self._problem.combine_iterates(shares, points_of_class)
            fit.put(replace(fit.point, w=w, b=b, f=f))
        self._classes.settle()
        if not self._objective() < before or not all(fit.is_allowed for fit in self._fits):
            for fit, point in zip(self._fits, points, strict=True):
                fit.put(point)
            self._classes.settle()

    def _objective(self):
        """Return the joint objective: that of the first class, with the loss of all, and the penalties of the others."""
        return self._fits[0].point.objective + sum(fit.penalty() for fit in self._fits[1:])

    def info(self, certified: bool = True) -> FitInfo:
        """Return what is known of the fit; certified: whether to compute the duality gap."""
        return self.progress.info(
            self._objective, self._gap() if certified else np.inf, converged=bool(self.at_rest or self.fits_well),
            n_drawn=len(self._dictionary), n_nonzero=self._count_terms(), alpha=self._alpha,
        )  # fmt: skip

    def _count_terms(self):
        """Return the number of features that any class uses."""
        return len(np.unique(np.concatenate([fit.point.index[fit.point.w != 0] for fit in self._fits])))

    def _gap(self):
        """Return the joint objective less a lower bound over all supports of as many terms."""
        first, joint = self._fits[0].problem, self._problem
        problem = RidgeProblem(first.vectors, joint.loss, joint.y, first.weight, first.alpha, first.fit_intercept)
        squares = np.concatenate([fit.squares() for fit in self._fits])
        return self._objective() - problem.lower_bound(self._classes.margins(), squares, len(self._fits) * self._s)

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms of any class, by ascending index."""
        return merge_solutions([fit.solution() for fit in self._fits])


def fits_of(task: Task, dictionary: FeatureSet, options: HarfeOptions) -> list[L0Fit] | list[MultinomialL0Fit]:
    """Make the fit of each target, or with the multinomial loss the one fit of all classes."""
    if task.is_joint:
        return [MultinomialL0Fit(task, dictionary, options)]
    return begin_fits(task, dictionary, options, L0Fit)
