"""The multinomial loss in Sparse-RF: the l1 fits of all classes as one, which takes turns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...features.feature_set import joined
from ...solvers.effort import TURN, UNBOUNDED, Effort
from ...solvers.joint_step import MOST, joint_step
from ...solvers.lasso import L1Problem
from ...solvers.rivals import Rivals, nearest_median, shared
from .fit import PATIENCE, L1Fit
from .turns import ClassFit, Turns, WorkingSets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...features.dictionary import Dictionary
    from ...features.feature_set import Solution
    from ...model import Callback, FitInfo
    from ..task import Progress, Task
    from .fit import State

# After a sweep that leaves more than this share of the gaps of the classes, a step of all of them together.
SLOW = 0.5
# Classes up to which there are such steps, which look at each pair of them.
MOST_TOGETHER = 50
# A fall of the objective by less than that share of it may be rounding.
ROUNDING = 1e-12
# How often the tolerance of the classes is made tighter, where it leaves more of the duality gap of all, by TIGHTER times the
# square of what share of that may stay, at least LEAST: the gap of a class of few terms falls with the square of its violation,
# that of all with the largest violation.
TIGHTER, LEAST, MOST_TIGHTER = 0.3, 0.03, 8


class ClassesFit:
    """The moves of an `L1Fit` for all classes: each move is a sweep, in which all classes take their turn."""

    dictionary: Dictionary
    progress: Progress

    def __init__(
        self, task: Task, dictionary: Dictionary, settles: bool = True, target: int = 0, *, tol: float, callback: Callback,
        **options: Any,
    ):  # fmt: skip
        self._rows, self.dictionary, self._tol, self._targets = task.rows, dictionary, tol, task.targets
        self.progress = task.progress(callback, task.targets[0])
        tells = callback and (lambda _: callback(self.info(certified=False)))
        how = {"tol": tol / len(task.targets), "callback": tells, **options}
        self._fits = [ClassFit(task, y, dictionary, settles, k, **how) for k, y in enumerate(task.targets, target)]
        self._rivals = Rivals.of_targets(task.rows.vectors, task.targets, task.weight, options["fit_intercept"])
        self.A: WorkingSets = WorkingSets(self._fits)
        self._effort = UNBOUNDED
        self._settle()
        self.restart(np.inf)

    def restart(self, alpha: float, rested: bool = False) -> None:
        self._alpha, self._draws, self._gap, self._n_tightened = float(alpha), None, np.inf, 0
        self._reached = False
        self.progress.restart()
        for fit in self._fits:
            fit.restart(alpha, rested)
            fit.tighten(self._tol / len(self._fits) / fit._tol)

    def spend(self, effort: Effort) -> None:
        """From now on of this work."""
        self._effort = effort
        for fit in self._fits:
            fit.spend(effort)

    @property
    def stopped(self) -> bool:
        return any(fit.stopped for fit in self._fits)

    @property
    def ended_by_callback(self) -> bool:
        return self.progress.ended_by_callback or any(fit.ended_by_callback for fit in self._fits)

    @property
    def near(self) -> float:
        return self._fits[0].near

    def state(self) -> list[State]:
        return [fit.state() for fit in self._fits]

    def adopt(self, state: Sequence[State]) -> None:
        for fit, of_class in zip(self._fits, state, strict=True):
            fit.adopt(of_class)
        self._settle()

    def margins(self) -> np.ndarray:
        return np.stack([fit.margins() for fit in self._fits])

    def target(self) -> np.ndarray:
        return np.stack(self._targets)

    def draw(self, *batches: int) -> Turns:
        return Turns(batches)

    def largest_gradient(self) -> float:
        return max(fit.largest_gradient() for fit in self._fits)

    def count_drawn(self) -> int:
        return self._fits[0].count_drawn()

    def polish(self, tol: float, max_rounds: int) -> None:
        """Over the terms alone, to a gap of tol."""
        self._draws = None
        for k in range(max_rounds):
            if k:
                self._step_together()
            self._sweep(lambda fit: fit.polish(tol, 1))
            self._reached = self._certify() <= tol * self._objective()
            if self._reached or self.stopped or self._effort.is_spent:
                return

    def minimise_over(self, draws: Turns) -> None:
        while not self.improve_over(draws) and self._fits[-1].settles and not self.stopped:
            pass

    def improve_over(self, draws: Turns) -> bool:
        return self._improve(draws, lambda fit: fit.improve_over(draws.of(fit)))

    def descend_over(self, draws: Turns) -> bool:
        return self._improve(draws, lambda fit: fit.descend_over(draws.of(fit)))

    def _improve(self, draws, move):
        """A sweep; whether no class moved, and the gap of all is within the tolerance, or rounding allows no more."""
        if draws is not self._draws:
            self._draws, self._idle, self._lowest, self._least_gap = draws, 0, np.inf, np.inf
        if not self._sweep(move):
            if self._fits[-1].settles and sum(fit.gap for fit in self._fits) > SLOW * self._least_gap and not self.stopped:
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
        """Whether some sweeps in a row have neither lowered the objective by more than rounding nor the gaps of the classes."""
        gap = sum(fit.gap for fit in self._fits)
        fell = objective < self._lowest * (1 - ROUNDING) or gap < 0.9 * self._least_gap
        self._lowest, self._least_gap = min(objective, self._lowest), min(gap, self._least_gap)
        self._idle = 0 if fell else self._idle + 1
        return self._idle >= PATIENCE

    def _sweep(self, move):
        """The move of each class against the others; returns whether no class moved, as each says of itself."""
        is_quiet, turns = True, self._rivals.turns(self._margins())
        for fit in self._fits:
            if not is_quiet:
                fit.against(turns.against())
            is_quiet &= bool(move(fit))
            if self.stopped:
                break
            turns.end(fit.A.z)
        if not is_quiet:
            self._gap, self._reached = np.inf, False
            self._settle()
        return is_quiet

    def _step_together(self):
        """A step of the coefficients of all classes at once, where it lowers the objective."""
        sets = [fit.A for fit in self._fits]
        if not 0 < sum(map(len, sets)) <= MOST or len(sets) > MOST_TOGETHER:
            return
        moved = joint_step(self._rows, self._rivals, sets, self._margins(), self._fits[0].alpha)
        if moved is not None:
            for A, (w, f, b) in zip(sets, moved, strict=True):
                A.w, A.f, A.b = w, f, b
            self._settle()

    def _margins(self):
        return self._rivals.together([fit.A.z for fit in self._fits])

    def _settle(self):
        """Take out what all classes have in common, go to the best intercepts, and turn all to each other."""
        self._take_out_common()
        sets = [fit.A for fit in self._fits]
        for A in sets:
            A.effort.add(self._rows.n_rows * (len(sets) + TURN))
        _, b, z = self._rivals.settled([A.f for A in sets], np.array([A.b for A in sets]))
        for fit, y, b_k in zip(self._fits, self._rivals.all_against(z), b, strict=False):
            fit.against(y, float(b_k))

    def _take_out_common(self):
        index, places = shared([fit.A.index for fit in self._fits])
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
            fit.shift(there[moved], by[moved], self._rows.vectors.along(fit.A.f, 1.0, change))

    def _certify(self):
        """The duality gap of all classes over the terms and the draws of the last sweep."""
        for fit in self._fits:
            fit.certify(None if self._draws is None else self._draws.of(fit))
        rivals = self._rivals
        problem = L1Problem(rivals.vectors, rivals.loss, rivals.y, rivals.weight, self._alpha, rivals.fit_intercept)
        w = np.concatenate([fit.A.w for fit in self._fits])
        self._gap = problem.dual_gap(self._margins(), w, max(fit.largest for fit in self._fits))
        return self._gap

    def _objective(self):
        penalty = self._alpha * sum(np.abs(fit.A.w).sum() for fit in self._fits[1:])
        return self._fits[0]._objective() + float(penalty if np.isfinite(self._alpha) else 0.0)

    def record(self, tells: bool = True) -> bool:
        """End an iteration: note the objective, tell the callback; returns whether to stop."""
        objective = self._objective()
        self.progress.note(objective, self._gap, self._tol * objective)
        if tells and self.progress.ask(partial(self.info, False)):
            self._fits[0].stopped = True
        return self.stopped

    def info(self, certified: bool = True) -> FitInfo:
        """certified: with the gap of all, where the classes have moved since it was last known; else the sum of their own."""
        if certified and not np.isfinite(self._gap):
            self._certify()
        gap = self._gap if np.isfinite(self._gap) else sum(fit.gap for fit in self._fits)
        return self.progress.info(
            self._objective, gap, converged=bool(self._reached or self._gap <= self._tol * self._objective()),
            n_drawn=self.count_drawn(), n_nonzero=len(self.A.index), alpha=self._alpha,
        )  # fmt: skip

    def solution(self) -> Solution:
        """(index, features, w, b) of the terms of any class, by ascending index."""
        return joined([fit.solution() for fit in self._fits])


def fits_of(
    task: Task, dictionary: Dictionary, options: dict[str, Any], settles: bool = True, search: int = 0
) -> list[L1Fit] | list[ClassesFit]:
    """The fit of each target, in that search of several, or one of all classes; settles: to the tolerance."""
    first = search * len(task.targets)
    if task.is_joint:
        return [ClassesFit(task, dictionary, settles, first, **options)]
    return [L1Fit(task, y, dictionary, settles, k, **options) for k, y in enumerate(task.targets, first)]
