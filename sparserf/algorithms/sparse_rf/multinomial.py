"""Sparse-RF with the multinomial loss: the l1 fits of all classes as one fit, by block coordinate
descent over the classes.

Each move of an `L1Fit` becomes a sweep, in which every class makes that move against the others
(`solvers/multinomial.py`). Where a sweep shrinks the gap to no less than half, a prox-Newton step
of all classes together follows. The end is certified by the duality gap of the joint problem, which
`MultinomialL1Fit.certify` computes. As long as the joint gap is above the tolerance when all
classes are within their own tolerance, the tolerance of the classes is tightened.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ...solvers.budget import TURN
from ...solvers.l1 import L1Problem, WorkingSet
from ...solvers.multinomial import (
    JointFit,
    MultinomialProblem,
    OneClassFit,
    joint_l1_step,
    take_out_medians,
)
from ..model_of_fits import merge_solutions
from .descent import BaseL1Fit, L1Fit, rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from ...features.dictionary import Dictionary
    from ...features.feature_set import Solution
    from ...model import FitInfo
    from ...rows.rows import Question
    from ..task import Task
    from .descent import State
    from .draws import Draws
    from .options import SparseRFOptions

    # Draws that each class makes, and keeps, when its turn comes.
    DrawsOfClasses: TypeAlias = Callable[["OneClassL1Fit"], Draws]


class OneClassL1Fit(L1Fit, OneClassFit):
    """The l1 fit of one class, with the margins of the others fixed: an `L1Fit` that never ends by
    itself."""

    problem: L1Problem
    joint: MultinomialL1Fit

    @property
    def iterate(self) -> WorkingSet:
        """The working set, with its coefficients and intercept."""
        return self.A

    def stand_at(self, b: float) -> None:
        """Go to an intercept, and compute the slopes anew."""
        self.A.weights.set_problem(self.problem)
        self.A.move(self.problem, self.A.w, b, self.A.f)
        self.A.learn([])

    def penalty(self, w: np.ndarray) -> float:
        """Return alpha |w|_1."""
        return self.problem.penalty(w)

    def questions_at(self, draws: Draws | None, is_last: bool, w: np.ndarray) -> list[Question]:
        """Ask nothing in advance: the answers are out of date once the other classes have moved."""
        return []

    def is_idle(self, draws: Draws, objective: float) -> bool:
        """Never stop on one class alone: the joint fit decides."""
        return False

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of all classes, for the callback."""
        return self.joint.info(certified=False)


class WorkingSets(list[WorkingSet]):
    """The working sets of all classes."""

    def prune(self) -> None:
        """Drop the features of each class whose coefficient is exactly zero."""
        for A in self:
            A.prune()


class MultinomialL1Fit(JointFit[OneClassL1Fit], BaseL1Fit):
    """The fit of all classes together, with the moves of an `L1Fit`: each is a sweep over the
    classes."""

    A: WorkingSets

    def __init__(
        self, task: Task, dictionary: Dictionary, options: SparseRFOptions, *, target: int = 0
    ):
        """Begin at w = 0; target is the number of the first class, as in `L1Fit`."""
        progress = task.progress(options.callback, task.targets[0])
        BaseL1Fit.__init__(self, dictionary, rules_of(dictionary), options.tol, progress)
        fits = [
            OneClassL1Fit(task, y, dictionary, options, target=k)
            for k, y in enumerate(task.targets, target)
        ]
        for fit in fits:
            fit.joint, fit.progress = self, progress
        targets = np.stack(task.targets)
        joint = task.problem(MultinomialProblem, targets, 0.0, options.fit_intercept)
        JointFit.__init__(self, joint, fits)
        self._rows, self.A = task.rows, WorkingSets(fit.A for fit in fits)
        self.balance()
        self.restart(np.inf)

    # Between fits

    def restart(self, alpha: float) -> None:
        """Begin a fit with this penalty, from the coefficients of the last one; see `BaseL1Fit`."""
        super().restart(alpha)
        self._n_tightened = 0
        for fit in self.fits:
            fit.restart(alpha)
            fit.tol = self.tol / len(self.fits)

    def adopt(self, state: Sequence[State]) -> None:
        """Start from the terms and coefficients of each class."""
        for fit, of_class in zip(self.fits, state, strict=True):
            fit.adopt(of_class)
        self.balance()

    # The moves

    def draw(self, *batches: int) -> DrawsOfClasses:
        """Return the draws of these batches, for each class, and note that they were drawn."""
        super().draw(*batches)
        return cache(lambda fit: fit.draw(*batches))

    def draw_all(self) -> DrawsOfClasses:
        """Return all draws of the dictionary, with what each class knows of their gradients."""
        super().draw_all()
        return cache(OneClassL1Fit.draw_all)

    @property
    def knows_all(self) -> bool:
        """Whether each class knows the gradients of all draws, or bounds on them."""
        return all(fit.knows_all for fit in self.fits)

    def improve_over(self, draws: DrawsOfClasses, again: bool = False) -> bool:
        """Let each class make one round over its draws; return whether there is no more to do."""
        return self._improve(draws, lambda fit: fit.improve_over(draws(fit)))

    def descend_over(self, draws: DrawsOfClasses) -> bool:
        """Let each class make a round over its draws and more over the violators; return whether
        there is no more to do."""
        return self._improve(draws, lambda fit: fit.descend_over(draws(fit)))

    def _improve(self, draws, move):
        """Sweep once; return whether no class moved and the joint gap is within the tolerance, or
        rounding allows no more."""
        # After a sweep that shrinks the sum of the gaps of the classes to no less than this share,
        # all classes make a step together.
        slow_sweep = 0.5
        # If the objective falls by less than this share of it, that may be rounding.
        sweep_rounding = 1e-12
        # Where the classes are within their tolerance and the joint gap is not, their tolerance is
        # multiplied by tighter times the square of tolerance / joint gap, of which no less than
        # least is taken; this is done at most most_tighter times. The square is taken since the gap
        # of a class of few terms falls with the square of its violation, and the joint gap with the
        # largest violation.
        tighter = 0.3
        least = 0.03
        most_tighter = 8

        self._turn_to(draws)
        if self.sweep(move):
            self.gap = np.inf
            self.balance()
            is_slow = self._sum_of_gaps() > slow_sweep * self._least_gap
            if is_slow and self.is_solved_to_tolerance and not self.stopped:
                self._step_together()
            objective = self.objective()
            return self.stopped or self._has_idled(
                objective, self._sum_of_gaps(), sweep_rounding * objective
            )
        share = self.tol * self.objective() / max(self.certify(), 1e-300)
        is_done = share >= 1 or self._n_tightened == most_tighter
        if not is_done:
            self._n_tightened += 1
            for fit in self.fits:
                fit.tol *= tighter * max(share, least) ** 2
        return is_done

    def _sum_of_gaps(self):
        """Return the sum of the duality gaps of the classes, each with the others as they were at
        its turn."""
        return sum(fit.gap for fit in self.fits)

    def _step_together(self):
        """Make a step of the coefficients of all classes at once, where it lowers the objective."""
        # Classes up to which there are such steps, which compute a Gram matrix for each pair of
        # them, and coefficients of all classes.
        most_together = 50
        most_coefficients = 4000

        is_small = 0 < sum(map(len, self.A)) <= most_coefficients
        if is_small and len(self.A) <= most_together:
            alpha = self.fits[0].problem.alpha
            if joint_l1_step(self._rows, self.joint, self.A, self.margins(), alpha):
                self.balance()

    def take_out_common(self) -> None:
        """Subtract the medians over the classes."""
        take_out_medians(self._rows, self.A)
        for A in self.A:
            A.budget.add(self._rows.n_rows * (len(self.A) + TURN))

    @property
    def stopped(self) -> bool:
        """Whether the fit has ended before its time: any class has."""
        return any(fit.stopped for fit in self.fits)

    def stop(self) -> None:
        """End the fit: no more moves are made."""
        self.fits[0].stop()

    # The results of the fit

    def certify(self) -> float:
        """Compute and return the joint duality gap over the terms and the draws of the last
        sweep."""
        if self._draws is not None:
            for fit in self.fits:
                fit.look_at(self._draws(fit))
        largest = max(
            fit.A.largest_gradient if self._draws is None else fit.largest for fit in self.fits
        )
        w = np.concatenate([A.w for A in self.A])
        problem = self.joint.with_penalty(L1Problem, self.alpha)
        self.gap = problem.dual_gap(self.margins(), w, largest)
        return self.gap

    def largest_gradient(self) -> float:
        """Return the smallest alpha at which no class has a term."""
        return max(fit.largest_gradient() for fit in self.fits)

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the present coefficients.

        certified : whether to compute the joint duality gap where the classes have moved since;
            else it is the sum of their own
        """
        if certified and not np.isfinite(self.gap):
            self.certify()
        return self.progress.info(
            self.objective,
            self.gap if np.isfinite(self.gap) else self._sum_of_gaps(),
            converged=bool(self.gap <= self.tol * self.objective()),
            n_drawn=self.count_drawn(),
            n_nonzero=len(np.unique(np.concatenate([A.index for A in self.A]))),
            alpha=self.alpha,
        )

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms of any class, by ascending index."""
        return merge_solutions([fit.solution() for fit in self.fits])
