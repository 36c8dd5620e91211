"""Sparse-RF with the multinomial loss: the l1 fits of all classes as one fit, by block coordinate descent over the classes.

Each move of an `L1Fit` becomes a sweep, in which every class makes that move against the others (`solvers/multinomial.py`).
Where a sweep leaves more than half of the gap, a prox-Newton step of all classes together follows. The end is certified by the
duality gap of the joint problem; as long as that is above the tolerance when all classes are within theirs, theirs is
tightened.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...solvers.effort import TURN, UNBOUNDED, Effort
from ...solvers.l1 import L1Problem
from ...solvers.multinomial import (
    CLASS_VERSUS_REST,
    MOST_JOINT_COEFFICIENTS,
    BlockDescent,
    MultinomialProblem,
    joint_l1_step,
    nearest_median,
    shared_features,
)
from ..task import merge_solutions
from .descent import PATIENCE, L1Fit, SparseRFOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._base.types import RowVector
    from ...features.dictionary import Dictionary
    from ...features.feature_set import Solution
    from ...model import FitInfo
    from ...solvers.l1 import WorkingSet
    from ..task import Progress, Task
    from .descent import State
    from .draws import Draws

# After a sweep that leaves more than this share of the gaps of the classes, all classes make a step together.
SLOW = 0.5
# Classes up to which there are such steps, which compute a Gram matrix for each pair of them.
MOST_TOGETHER = 50
# A fall of the objective by less than that share of it may be rounding.
ROUNDING = 1e-12
# Where the classes are within their tolerance and the joint gap is not, their tolerance is multiplied by TIGHTER times the
# square of the share of the joint gap that may stay, of at least LEAST, and at most MOST_TIGHTER times: the gap of a class of
# few terms falls with the square of its violation, that of all classes with the largest violation.
TIGHTER, LEAST, MOST_TIGHTER = 0.3, 0.03, 8


class OneClassL1Fit(L1Fit):
    """The l1 fit of one class while the others' margins stay as they are.

    largest : float
        The largest correlation |phi' v| that was last seen, of draws and terms.
    """

    largest: float = np.inf

    @property
    def iterate(self) -> WorkingSet:
        """Where the fit stands."""
        return self.A

    def current_margins(self) -> RowVector:
        """Return f + b as a row vector."""
        return self.A.z

    def hold_others(self, y: RowVector, b: float | None = None) -> None:
        """Minimise from now on with the others where y says that they are, from the best intercept, or from b."""
        self._problem = replace(self._problem, loss=CLASS_VERSUS_REST, y=y)
        A = self.A
        A.weights.turn_to(self._problem)
        A.move(self._problem, A.w, self._problem.best_intercept(A.f, A.b) if b is None else b, A.f)
        A.learn([])

    def put(self, w: np.ndarray, b: float, f: RowVector) -> None:
        """Replace the coefficients, the intercept and f = Phi w, to be followed by `hold_others`."""
        self.A.put(w, b, f)

    def shift(self, places: np.ndarray, by: np.ndarray, change: RowVector) -> None:
        """Add `by` to the coefficients at these places, and to f its change, to be followed by `hold_others`."""
        w = self.A.w.copy()
        w[places] += by
        self.A.put(w, self.A.b, self._rows.vectors.along(self.A.f, 1.0, change))

    def certify(self, draws: Draws | None) -> None:
        """Compute the largest correlation with the terms and, unless they are None, with draws."""
        if draws is not None:
            self._look_at(draws)
        else:
            self.largest = self.A.largest_gradient

    def _look_at(self, draws):
        violation, *more = super()._look_at(draws)
        self.largest = max(violation.max(initial=0.0), self.A.largest_gradient)
        return violation, *more

    def _questions_at(self, draws, n_entering, w):
        """Ask nothing in advance: the answers are out of date once the other classes have moved."""
        return []

    def _is_idle(self, draws, objective):
        """Never stop on one class alone: the joint fit decides."""
        return False

    @property
    def to_tolerance(self) -> bool:
        """Whether the last draws are gone over until the tolerance is met."""
        return self._is_solved_to_tolerance()

    @property
    def gap(self) -> float:
        """The duality gap of this class alone."""
        return self._gap

    @property
    def alpha(self) -> float:
        """The penalty in the units of the problem."""
        return self._problem.alpha

    def objective(self) -> float:
        """Return the loss of all classes with the penalty of this one."""
        return self._objective()

    def set_tol(self, tol: float) -> None:
        """Take another tolerance for the duality gap."""
        self._tol = tol

    def tighten(self, by: float) -> None:
        """Multiply the tolerance by a factor."""
        self._tol *= by

    def stop(self) -> None:
        """Make no more moves."""
        self.stopped = True


class DrawsOfClasses:
    """The draws of some batches, which each class makes when its turn comes."""

    def __init__(self, batches: Sequence[int]):
        self._batches, self._made = batches, {}

    def of(self, fit: OneClassL1Fit) -> Draws:
        """Return the draws of a class, making them at first."""
        if fit not in self._made:
            self._made[fit] = fit.draw(*self._batches)
        return self._made[fit]


class WorkingSetsOfClasses:
    """The working sets of all classes, as algorithms ask for the one of an `L1Fit`."""

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


class MultinomialL1Fit:
    """The fit of all classes together, with the moves of an `L1Fit`: each is a sweep over the classes."""

    dictionary: Dictionary
    progress: Progress

    def __init__(
        self, task: Task, dictionary: Dictionary, options: SparseRFOptions, *, to_tolerance: bool = True,
        target: int = 0,
    ):  # fmt: skip
        """to_tolerance, target, options: as those of `L1Fit`, of the first class."""
        self._rows, self.dictionary, self._tol, self._targets = task.rows, dictionary, options.tol, task.targets
        callback = options.callback
        self.progress = task.progress(callback, task.targets[0])
        tells = callback and (lambda _: callback(self.info(certified=False)))
        of_class = replace(options, tol=options.tol / len(task.targets), callback=tells)
        self._fits = [
            OneClassL1Fit(task, y, dictionary, of_class, to_tolerance=to_tolerance, target=k)
            for k, y in enumerate(task.targets, target)
        ]
        self._problem = MultinomialProblem.from_targets(task.rows.vectors, task.targets, task.weight, options.fit_intercept)
        self._classes = BlockDescent(self._problem, self._fits)
        self.A: WorkingSetsOfClasses = WorkingSetsOfClasses(self._fits)
        self._effort = UNBOUNDED
        self._settle()
        self.restart(np.inf)

    def restart(self, alpha: float, forgets_work: bool = False) -> None:
        """Begin a fit with this penalty, from where the last one ended; forgets_work: whether its work is counted anew."""
        self._alpha, self._draws, self._gap, self._n_tightened = float(alpha), None, np.inf, 0
        self._idle, self._lowest, self._least_gap = 0, np.inf, np.inf
        self._reached = False
        self.progress.restart()
        for fit in self._fits:
            fit.restart(alpha, forgets_work)
            fit.set_tol(self._tol / len(self._fits))

    def spend(self, effort: Effort) -> None:
        """Count the work from now on as a part of this effort."""
        self._effort = effort
        for fit in self._fits:
            fit.spend(effort)

    @property
    def stopped(self) -> bool:
        """Whether no more moves are to be made."""
        return any(fit.stopped for fit in self._fits)

    @property
    def ended_by_callback(self) -> bool:
        """Whether a callback ended the fit."""
        return self.progress.ended_by_callback or any(fit.ended_by_callback for fit in self._fits)

    @property
    def search_tol(self) -> float:
        """The gap, as a share of the objective, that is near enough where the penalty itself is a choice."""
        return self._fits[0].search_tol

    def state(self) -> list[State]:
        """Return the state of each class, for `adopt`."""
        return [fit.state() for fit in self._fits]

    def adopt(self, state: Sequence[State]) -> None:
        """Begin from where a fit to other rows ended."""
        for fit, of_class in zip(self._fits, state, strict=True):
            fit.adopt(of_class)
        self._settle()

    def margins(self) -> np.ndarray:
        """Return the margins of all classes in the memory of this process."""
        return np.stack([fit.margins() for fit in self._fits])

    def target(self) -> np.ndarray:
        """Return the target of all classes, -1 or +1."""
        return np.stack(self._targets)

    def draw(self, *batches: int) -> DrawsOfClasses:
        """Return the draws of these batches, for each class."""
        return DrawsOfClasses(batches)

    def largest_gradient(self) -> float:
        """Return the smallest alpha at which no class has a term."""
        return max(fit.largest_gradient() for fit in self._fits)

    def count_drawn(self) -> int:
        """Return the number of features drawn so far."""
        return self._fits[0].count_drawn()

    def polish(self, tol: float, max_rounds: int) -> None:
        """Solve the problem over the terms alone, to a gap of tol times the objective."""
        self._draws = None
        for k in range(max_rounds):
            if k:
                self._step_together()
            self._sweep(lambda fit: fit.polish(tol, 1))
            self._reached = self._certify() <= tol * self._objective()
            if self._reached or self.stopped or self._effort.is_spent:
                return

    def minimise_over(self, draws: DrawsOfClasses) -> None:
        """Sweep over the classes, each over its terms and draws, once, or until there is no more to do."""
        while not self.improve_over(draws) and self._fits[-1].to_tolerance and not self.stopped:
            pass

    def improve_over(self, draws: DrawsOfClasses) -> bool:
        """Let each class make one round over its draws; return whether there is no more to do."""
        return self._improve(draws, lambda fit: fit.improve_over(draws.of(fit)))

    def descend_over(self, draws: DrawsOfClasses) -> bool:
        """Let each class make a round over its draws and more over the violators; return whether there is no more to do."""
        return self._improve(draws, lambda fit: fit.descend_over(draws.of(fit)))

    def _improve(self, draws, move):
        """Sweep once; return whether no class moved and the joint gap is within the tolerance, or rounding allows no more."""
        if draws is not self._draws:
            self._draws, self._idle, self._lowest, self._least_gap = draws, 0, np.inf, np.inf
        if self._sweep(move):
            if self._fits[-1].to_tolerance and sum(fit.gap for fit in self._fits) > SLOW * self._least_gap and not self.stopped:
                self._step_together()
            return self.stopped or self._is_idle(self._objective())
        share = self._tol * self._objective() / max(self._certify(), 1e-300)
        is_done = share >= 1 or self._n_tightened == MOST_TIGHTER
        if not is_done:
            self._n_tightened += 1
            for fit in self._fits:
                fit.tighten(TIGHTER * max(share, LEAST) ** 2)
        return is_done

    def _is_idle(self, objective):
        """Return whether the last PATIENCE sweeps lowered neither the objective, but for rounding, nor the classes' gaps."""
        gap = sum(fit.gap for fit in self._fits)
        fell = objective < self._lowest * (1 - ROUNDING) or gap < 0.9 * self._least_gap
        self._lowest, self._least_gap = min(objective, self._lowest), min(gap, self._least_gap)
        self._idle = 0 if fell else self._idle + 1
        return self._idle >= PATIENCE

    def _sweep(self, move):
        """Let each class move against the others; return whether any did."""
        has_moved = self._classes.sweep(move, is_stopped=lambda: self.stopped)
        if has_moved:
            self._gap, self._reached = np.inf, False
            self._settle()
        return has_moved

    def _step_together(self):
        """Make a step of the coefficients of all classes at once, where it lowers the objective."""
        sets = [fit.A for fit in self._fits]
        if not 0 < sum(map(len, sets)) <= MOST_JOINT_COEFFICIENTS or len(sets) > MOST_TOGETHER:
            return
        moved = joint_l1_step(self._rows, self._problem, sets, self._classes.margins(), self._fits[0].alpha)
        if moved is not None:
            for fit, (w, b, f) in zip(self._fits, moved, strict=True):
                fit.put(w, b, f)
            self._settle()

    def _settle(self):
        """Take out what all classes have in common, go to the best intercepts, and tell each class where the others are."""
        self._take_out_common()
        for fit in self._fits:
            fit.A.effort.add(self._rows.n_rows * (len(self._fits) + TURN))
        self._classes.settle()

    def _take_out_common(self):
        """Take the median over the classes away from the coefficients of features that all have."""
        index, places = shared_features([fit.A.index for fit in self._fits])
        if len(index) == 0:
            return
        w = np.stack([fit.A.w[there] for fit, there in zip(self._fits, places, strict=True)])
        by = -nearest_median(w)
        moved = np.flatnonzero(by)
        if len(moved) == 0:
            return
        features = self._fits[0].A.features.take(places[0][moved])
        change = self._rows.apply(features, by[moved])
        for fit, there in zip(self._fits, places, strict=True):
            fit.shift(there[moved], by[moved], change)

    def _certify(self):
        """Compute and return the joint duality gap over the terms and the draws of the last sweep."""
        for fit in self._fits:
            fit.certify(None if self._draws is None else self._draws.of(fit))
        p = self._problem
        problem = L1Problem(p.vectors, p.loss, p.y, p.weight, self._alpha, p.fit_intercept)
        w = np.concatenate([fit.A.w for fit in self._fits])
        self._gap = problem.dual_gap(self._classes.margins(), w, max(fit.largest for fit in self._fits))
        return self._gap

    def _objective(self):
        """Return the joint objective: that of the first class, with the loss of all, and the penalties of the others."""
        penalty = self._alpha * sum(np.abs(fit.A.w).sum() for fit in self._fits[1:])
        return self._fits[0].objective() + float(penalty if np.isfinite(self._alpha) else 0.0)

    def record(self, tells: bool = True) -> bool:
        """End an iteration: note the objective, ask the callback, and return whether to stop."""
        objective = self._objective()
        self.progress.note(objective, self._gap, self._tol * objective)
        if tells and self.progress.ask(partial(self.info, False)):
            self._fits[0].stop()
        return self.stopped

    def info(self, certified: bool = True) -> FitInfo:
        """Return what is known of the fit.

        certified: whether to compute the joint duality gap where the classes have moved since; else it is the sum of their own
        """
        if certified and not np.isfinite(self._gap):
            self._certify()
        gap = self._gap if np.isfinite(self._gap) else sum(fit.gap for fit in self._fits)
        return self.progress.info(
            self._objective, gap, converged=bool(self._reached or self._gap <= self._tol * self._objective()),
            n_drawn=self.count_drawn(), n_nonzero=len(self.A.index), alpha=self._alpha,
        )  # fmt: skip

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms of any class, by ascending index."""
        return merge_solutions([fit.solution() for fit in self._fits])


def fits_of(
    task: Task, dictionary: Dictionary, options: SparseRFOptions, *, to_tolerance: bool = True, search: int = 0
) -> list[L1Fit] | list[MultinomialL1Fit]:
    """Make the fit of each target, or with the multinomial loss the one fit of all classes.

    to_tolerance : whether fits go on to the tolerance
    search : the number of the search of which the fits are a part, each of which draws features of its own
    """
    first = search * len(task.targets)
    if task.is_joint:
        return [MultinomialL1Fit(task, dictionary, options, to_tolerance=to_tolerance, target=first)]
    return [L1Fit(task, y, dictionary, options, to_tolerance=to_tolerance, target=k) for k, y in enumerate(task.targets, first)]
