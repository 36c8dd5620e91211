"""Sparse-RF with the multinomial loss: the l1 fits of all classes as one fit, by block coordinate
descent over the classes.

Each move of an `L1Fit` becomes a sweep, in which every class makes that move against the others
(`solvers/multinomial.py`). Where a sweep shrinks the gap to no less than half, a prox-Newton step
of all classes together follows. The end is certified by the duality gap of the joint problem, which
`MultinomialL1Fit.certify` computes. As long as the joint gap is above the tolerance when all
classes are within their own tolerance, the tolerance of the classes is tightened.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...solvers.effort import TURN
from ...solvers.l1 import L1Problem
from ...solvers.multinomial import (
    CLASS_VERSUS_REST,
    MOST_JOINT_COEFFICIENTS,
    BlockDescent,
    MultinomialProblem,
    joint_l1_step,
    take_out_medians,
)
from ..task import merge_solutions
from .descent import IDLE_ROUNDS, BaseL1Fit, L1Fit, rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._base.types import RowVector
    from ...features.dictionary import Dictionary
    from ...features.feature_set import Solution
    from ...model import FitInfo
    from ...rows.rows import Question
    from ...solvers.l1 import WorkingSet
    from ..task import Task
    from .descent import State
    from .draws import Draws
    from .options import SparseRFOptions


class OneClassL1Fit(L1Fit):
    """The l1 fit of one class, with the margins of the others fixed: an `L1Fit` that never ends by
    itself."""

    problem: L1Problem

    @property
    def iterate(self) -> WorkingSet:
        """The working set, with its coefficients and intercept."""
        return self.A

    def fix_other_classes(self, y: RowVector, b: float | None = None) -> None:
        """Minimise from now on against the margins of the others, which the target y of
        CLASS_VERSUS_REST holds.

        b : the intercept to go to; None: the best one
        """
        A, self.problem = self.A, replace(self.problem, loss=CLASS_VERSUS_REST, y=y)
        A.weights.set_problem(self.problem)
        A.move(self.problem, A.w, self.problem.best_intercept(A.f, A.b) if b is None else b, A.f)
        A.learn([])

    def questions_at(self, draws: Draws | None, is_last: bool, w: np.ndarray) -> list[Question]:
        """Ask nothing in advance: the answers are out of date once the other classes have moved."""
        return []

    def is_idle(self, draws: Draws, objective: float) -> bool:
        """Never stop on one class alone: the joint fit decides."""
        return False


class DrawsOfClasses:
    """Draws that each class makes when its turn comes, by a function of the fit of the class."""

    def __init__(self, make: Callable[[OneClassL1Fit], Draws]):
        self._make, self._made = make, {}

    def of(self, fit: OneClassL1Fit) -> Draws:
        """Return the draws of a class, making them the first time."""
        if fit not in self._made:
            self._made[fit] = self._make(fit)
        return self._made[fit]


class WorkingSetsOfClasses:
    """The working sets of all classes, as the algorithms use the working set of an `L1Fit`."""

    def __init__(self, fits: Sequence[OneClassL1Fit]):
        self._fits = fits

    @property
    def index(self) -> np.ndarray:
        """The indices of the features that any class has."""
        return np.unique(np.concatenate([fit.A.index for fit in self._fits]))

    def prune(self) -> None:
        """Drop the features of each class whose coefficient is exactly zero."""
        for fit in self._fits:
            fit.A.prune()


class MultinomialL1Fit(BaseL1Fit):
    """The fit of all classes together, with the moves of an `L1Fit`: each is a sweep over the
    classes."""

    gap: float

    def __init__(
        self,
        task: Task,
        dictionary: Dictionary,
        options: SparseRFOptions,
        *,
        target: int = 0,
    ):
        """Begin at w = 0; target is the number of the first class, as in `L1Fit`."""
        rules, callback = rules_of(dictionary), options.callback
        super().__init__(dictionary, rules, options.tol, task.progress(callback, task.targets[0]))
        self._rows = task.rows
        callback_of_class = callback and (lambda _: callback(self.info(certified=False)))
        of_class = replace(options, tol=options.tol / len(task.targets), callback=callback_of_class)
        self._fits = [
            OneClassL1Fit(task, y, dictionary, of_class, target=k)
            for k, y in enumerate(task.targets, target)
        ]
        self.A: WorkingSetsOfClasses = WorkingSetsOfClasses(self._fits)
        self._problem = MultinomialProblem.from_targets(
            task.rows.vectors, task.targets, task.weight, options.fit_intercept
        )
        self._classes = BlockDescent(self._problem, self._fits)
        self._settle()
        self.restart(np.inf)

    # Between fits

    def restart(self, alpha: float) -> None:
        """Begin a fit with this penalty, from the coefficients of the last one; see `BaseL1Fit`."""
        super().restart(alpha)
        self._n_tightened, self._reached = 0, False
        for fit in self._fits:
            fit.restart(alpha)
            fit.tol = self.tol / len(self._fits)

    def end_by(self, deadline: float) -> None:
        """Let the fit end at the deadline, too, in all classes."""
        self.progress.deadline = deadline
        for fit in self._fits:
            fit.end_by(deadline)

    def adopt(self, state: Sequence[State]) -> None:
        """Start from the terms and coefficients of each class."""
        for fit, of_class in zip(self._fits, state, strict=True):
            fit.adopt(of_class)
        self._settle()

    # The moves

    def draw(self, *batches: int) -> DrawsOfClasses:
        """Return the draws of these batches, for each class, and note that they were drawn."""
        super().draw(*batches)
        return DrawsOfClasses(lambda fit: fit.draw(*batches))

    def draw_all(self) -> DrawsOfClasses:
        """Return all draws of the dictionary, with what each class knows of their gradients."""
        super().draw_all()
        return DrawsOfClasses(lambda fit: fit.draw_all())

    @property
    def knows_all(self) -> bool:
        """Whether each class knows the gradients of all draws, or bounds on them."""
        return all(fit.knows_all for fit in self._fits)

    def improve_over(self, draws: DrawsOfClasses, again: bool = False) -> bool:
        """Let each class make one round over its draws; return whether there is no more to do."""
        return self._improve(draws, lambda fit: fit.improve_over(draws.of(fit)))

    def descend_over(self, draws: DrawsOfClasses) -> bool:
        """Let each class make a round over its draws and more over the violators; return whether
        there is no more to do."""
        return self._improve(draws, lambda fit: fit.descend_over(draws.of(fit)))

    def _improve(self, draws, move):
        """Sweep once; return whether no class moved and the joint gap is within the tolerance, or
        rounding allows no more."""
        # After a sweep that shrinks the sum of the gaps of the classes to no less than this share,
        # all classes make a step together.
        slow_sweep = 0.5
        # Where the classes are within their tolerance and the joint gap is not, their tolerance is
        # multiplied by tighter times the square of tolerance / joint gap, of which no less than
        # least is taken; this is done at most most_tighter times. The square is taken since the gap
        # of a class of few terms falls with the square of its violation, and the joint gap with the
        # largest violation.
        tighter = 0.3
        least = 0.03
        most_tighter = 8

        if draws is not self._draws:
            self._draws, self._n_idle, self._lowest, self._least_gap = draws, 0, np.inf, np.inf
        if self._sweep(move):
            if (
                self.is_solved_to_tolerance
                and self._sum_of_gaps() > slow_sweep * self._least_gap
                and not self.stopped
            ):
                self._step_together()
            return self.stopped or self._is_idle()
        share = self.tol * self.objective() / max(self.certify(), 1e-300)
        is_done = share >= 1 or self._n_tightened == most_tighter
        if not is_done:
            self._n_tightened += 1
            for fit in self._fits:
                fit.tol *= tighter * max(share, least) ** 2
        return is_done

    def _sum_of_gaps(self):
        """Return the sum of the duality gaps of the classes, each with the others as they were at
        its turn."""
        return sum(fit.gap for fit in self._fits)

    def _is_idle(self):
        """Return whether IDLE_ROUNDS sweeps in a row lowered neither the gaps nor, by more than
        rounding, the objective."""
        # If the objective falls by less than this share of it, that may be rounding.
        sweep_rounding = 1e-12

        objective, gap = self.objective(), self._sum_of_gaps()
        fell = objective < self._lowest * (1 - sweep_rounding) or gap < 0.9 * self._least_gap
        self._lowest, self._least_gap = min(objective, self._lowest), min(gap, self._least_gap)
        self._n_idle = 0 if fell else self._n_idle + 1
        return self._n_idle >= IDLE_ROUNDS

    def _sweep(self, move: Callable[[OneClassL1Fit], object]) -> bool:
        """Let each class move against the others; return whether any did."""
        has_moved = self._classes.sweep(move, is_stopped=lambda: self.stopped)
        if has_moved:
            self.gap, self._reached = np.inf, False
            self._settle()
        return has_moved

    def _step_together(self):
        """Make a step of the coefficients of all classes at once, where it lowers the objective."""
        # Classes up to which there are such steps, which compute a Gram matrix for each pair of
        # them.
        most_together = 50

        sets = [fit.A for fit in self._fits]
        if not 0 < sum(map(len, sets)) <= MOST_JOINT_COEFFICIENTS or len(sets) > most_together:
            return
        moved = joint_l1_step(
            self._rows, self._problem, sets, self._classes.margins(), self._fits[0].problem.alpha
        )
        if moved is not None:
            for A, (w, b, f) in zip(sets, moved, strict=True):
                A.put(w, b, f)
            self._settle()

    def _settle(self):
        """Subtract the medians over the classes, go to the best intercepts, and give each class the
        margins of the others."""
        take_out_medians(self._rows, [fit.A for fit in self._fits])
        for fit in self._fits:
            fit.A.effort.add(self._rows.n_rows * (len(self._fits) + TURN))
        self._classes.settle()

    @property
    def stopped(self) -> bool:
        """Whether the fit has ended before its time: any class has."""
        return any(fit.stopped for fit in self._fits)

    def stop(self) -> None:
        """End the fit: no more moves are made."""
        self._fits[0].stop()

    # The results of the fit

    def certify(self) -> float:
        """Compute and return the joint duality gap over the terms and the draws of the last
        sweep."""
        largest = []  # of each class, max |phi' v|
        for fit in self._fits:
            if self._draws is None:
                largest.append(fit.A.largest_gradient)
            else:
                fit.look_at(self._draws.of(fit))
                largest.append(fit.largest)
        w = np.concatenate([fit.A.w for fit in self._fits])
        problem = self._problem.with_penalty(L1Problem, self.alpha)
        self.gap = problem.dual_gap(self._classes.margins(), w, max(largest))
        return self.gap

    def objective(self) -> float:
        """Return the joint objective: that of the first class, with the loss of all, and the
        penalties of the others."""
        penalty = sum(np.abs(fit.A.w).sum() for fit in self._fits[1:])
        return self._fits[0].objective() + (
            float(self.alpha * penalty) if np.isfinite(self.alpha) else 0.0
        )

    @property
    def ended_by_callback(self) -> bool:
        """Whether the callback has ended the fit, or that of a class."""
        return self.progress.ended_by_callback or any(fit.ended_by_callback for fit in self._fits)

    def largest_gradient(self) -> float:
        """Return the smallest alpha at which no class has a term."""
        return max(fit.largest_gradient() for fit in self._fits)

    def count_drawn(self) -> int:
        """Return how many features the first class has drawn since the last `restart`."""
        return self._fits[0].count_drawn()

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the present coefficients.

        certified : whether to compute the joint duality gap where the classes have moved since;
            else it is the sum of their own
        """
        if certified and not np.isfinite(self.gap):
            self.certify()
        gap = self.gap if np.isfinite(self.gap) else self._sum_of_gaps()
        return self.progress.info(
            self.objective,
            gap,
            converged=bool(self._reached or self.gap <= self.tol * self.objective()),
            n_drawn=self.count_drawn(),
            n_nonzero=len(self.A.index),
            alpha=self.alpha,
        )

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms of any class, by ascending index."""
        return merge_solutions([fit.solution() for fit in self._fits])
