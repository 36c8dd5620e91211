"""The moves of Sparse-RF on one target: look at draws, let the violators in, solve on the working set, record."""

from __future__ import annotations

from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..._core.search import top_k
from ...solvers.columns import WorkingSet
from ...solvers.effort import Effort, of_a_pass
from ...solvers.lasso import ROUNDING, L1Problem, solve
from .sources import source_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...features.dictionary import Dictionary
    from ...features.feature_set import FeatureSet, Solution
    from ...model import Callback, FitInfo
    from ..task import Progress, Task
    from .draws import Draws

# (features, index, coefficients, intercept), from which a fit to other rows begins.
State: TypeAlias = "tuple[FeatureSet, np.ndarray, np.ndarray, float]"

# Features to draw by default.
N_COMPONENTS = 10_000
# Targets up to which the fit of each may take all the work of a fit: more share what so many may.
FULL = 10
# Rounds in a row that neither lower the gap, nor the objective by that share of it, before rounding is taken to be in the way.
PATIENCE, CREEP = 5, 1e-3
# Of the gap over all draws, what rounds over those that violate may leave, and the most of these.
SHARE_OF_GAP, MOST_ROUNDS = 0.3, 20
# After rounds in which so few violators enter, the next batch's turn is likely.
FEW = 5


def may_be_ended(method: Callable[..., bool | None]) -> Callable[..., bool]:
    """A method of a fit during which the callback may be called; where that ends the fit, the method returns True."""

    @wraps(method)
    def asked(self, *args):
        with self.progress.asked_within(self.info):
            return method(self, *args)
        self.stopped = True  # the callback has ended the fit within the method
        return True

    return asked


class L1Fit:
    """State and progress of one fit: the working set A, the problem (9), and what `info` will say."""

    dictionary: Dictionary
    progress: Progress
    stopped: bool

    def __init__(
        self, task: Task, y: np.ndarray, dictionary: Dictionary, settles: bool = True, target: int = 0, *, fit_intercept: bool,
        tol: float, max_iter: int | None, callback: Callback,
    ):  # fmt: skip
        """settles: to the tolerance; target: a number of its own for each fit over a dictionary."""
        self._rows, self.dictionary = task.rows, dictionary
        self._source = source_of(task.rows, dictionary, target)
        self._schedule = self._source.schedule(settles)
        self._tol, self._max_iter = tol, np.inf if max_iter is None else max_iter
        self.progress, self._slope_unit = task.progress(callback, y), task.slope_unit(y)
        self._problem = task.problem(L1Problem, y, 0.0, fit_intercept)
        self._size = self._problem.loss.size(float(task.weight @ (y / len(y))))
        effort = Effort(np.inf)
        if max_iter is None:
            share = self._schedule.effort * min(1.0, FULL / len(task.targets))
            effort = Effort.of_a_fit(task.rows, dictionary.starts[-1], share)
        self.A: WorkingSet = WorkingSet(task.rows, self._problem, effort)
        self._most_kept = int(np.diff(dictionary.starts).max())  # as many draws as a batch holds
        self.restart(np.inf)

    def restart(self, alpha: float, rested: bool = False) -> None:
        """Begin a fit with this penalty, from where the last one ended; rested: its work does not add to that of the last."""
        if rested:
            self.A.effort.forget()
        self._source.forget()
        self._alpha = float(alpha)
        self._problem = replace(self._problem, alpha=min(self._alpha / self._slope_unit, 1e300))
        self.progress.restart()
        self._n_rounds, self._draws = 0, None
        self._drawn = np.zeros(self.dictionary.n_batches, bool)
        self._gap, self._reached, self.stopped = np.inf, True, False

    def spend(self, effort: Effort) -> None:
        """From now on of this work, beside the bound of its own."""
        self.A.effort.within = effort

    @property
    def _scale(self):
        return self.progress.scale

    @property
    def ended_by_callback(self) -> bool:
        return self.progress.ended_by_callback

    @property
    def near(self) -> float:
        return self._schedule.near

    def state(self) -> State:
        """What `adopt` takes, in the units of y."""
        self.A.prune()
        return self.A.features, self.A.index, self.A.w * self._scale, self.A.b * self._scale

    def adopt(self, state: State) -> None:
        """Begin from where a fit to other rows ended."""
        features, index, w, b = state
        self.A.add(features, index, np.zeros(len(w)))
        f = self.A.apply(w / self._scale)
        b = self._problem.best_intercept(f, b / self._scale)
        self.A.move(self._problem, w / self._scale, b, f)
        self.A.learn([])

    def margins(self) -> np.ndarray:
        """f + b of each row, of the `target`."""
        return self._problem.vectors.fetch(self.A.z)

    def target(self) -> np.ndarray:
        """y / scale."""
        return self._problem.vectors.fetch(self._problem.y)

    def draw(self, *batches: int) -> Draws:
        self._drawn[list(batches)] = True
        self._last_drawn = batches[-1]
        return self._source.draw(batches, self.A)

    def largest_gradient(self) -> float:
        """max_h |g_h| over the draws of the dictionary: at w = 0, the smallest alpha that keeps w there."""
        draws = self._source.draw(self._source.looked_at, self.A)
        return self._slope_unit * float(np.abs(draws.gradient(self.A.v)).max())

    def violates(self, feature: FeatureSet) -> bool:
        """Whether a feature would enter the working set."""
        g = np.abs(self._rows.correlate(feature, self.A.v)).max()
        return bool(g > max(self._problem.alpha, self.A.largest_gradient))

    def residual(self) -> float:
        """The root of the mean loss: for the squared loss, of half the mean square of the residual."""
        return self._scale * np.sqrt(self._problem.mean_loss(self.A.z))

    def polish(self, tol: float, max_rounds: int) -> None:
        """Solve the problem over A alone, to a gap of tol; of all linear functions, over these."""
        self._polish(tol, max_rounds)
        if self._source.is_without_end and len(self.A):
            self._tol = tol
            for _ in range(10 * max_rounds):  # of one function each, which cost little
                if self.improve_over(self.draw(0)) or self.A.effort.is_spent:
                    break
                self.A.prune()

    @may_be_ended
    def _polish(self, tol, max_rounds):
        """In one step at least."""
        A, problem = self.A, self._problem
        for k in range(max_rounds + 1):
            objective = A.objective(problem)
            self._gap = problem.dual_gap(A.z, A.w, A.largest_gradient)
            self._reached = self._gap <= self._largest_gap(tol, objective)
            if (self._reached and k > 0) or k == max_rounds or A.effort.is_spent:
                return
            solve(problem, A, 0.3 * min(tol * objective, self._gap), 1)

    def minimise_over(self, draws: Draws) -> None:
        """Rounds over A and the draws: as many as the schedule says."""
        again = self._settles()
        while not self.improve_over(draws, again) and again and not self.stopped:
            pass

    def _settles(self):
        is_last = self._last_drawn == self.dictionary.n_batches - 1
        return self._schedule.settles == "each" or (self._schedule.settles == "last" and is_last)

    def descend_over(self, draws: Draws) -> bool:
        """A round over the draws, and more over those that violate, which cost less; returns as `improve_over`."""
        return self.improve_over(draws) or self._improve_over_violators(draws)

    @may_be_ended
    def improve_over(self, draws: Draws, again: bool = False) -> bool:
        """One round: if the gap over A and the draws is not within tolerance yet, violators enter and A is solved for.

        again: whether these draws are looked at in the next round. Returns whether there is no more to do: it was within
        tolerance, or floating point allows no further descent.
        """
        violation, self._gap, objective, target = self._look_at(draws)
        self._reached = self._gap <= target
        if self._reached or self._is_idle(draws, objective):
            return True
        self._let_in(draws, violation, target, again)
        return False

    @may_be_ended
    def _improve_over_violators(self, draws):
        """Rounds over the draws that violated in the last, to a share of the gap over all."""
        few = draws.violators(self._problem.alpha, self._most_kept)
        for _ in range(MOST_ROUNDS):
            violation, gap, _, target = self._look_at(few)
            target = max(target, SHARE_OF_GAP * self._gap)
            if gap <= target or self.stopped or not self._let_in(few, violation, target, True):
                break
        return False

    def _look_at(self, draws):
        """(|g| of the draws, the duality gap over these and A, the objective, the gap that is within tolerance)."""
        A, problem = self.A, self._problem
        A.effort.add(of_a_pass(self._rows, len(draws.index)))
        violation = np.abs(draws.gradient(A.v, problem.alpha))
        gap = problem.dual_gap(A.z, A.w, max(violation.max(initial=0.0), A.largest_gradient))
        objective = A.objective(problem)
        return violation, gap, objective, self._largest_gap(self._tol, objective)

    def _largest_gap(self, tol, objective):
        """Return the gap that is within the tolerance; what rounding leaves of a target that is met exactly, too."""
        return max(tol * objective, ROUNDING * objective, ROUNDING * self._size)

    def _let_in(self, draws, violation, target, again):
        """The largest violators enter A, which is solved for: to that gap, or, while the set still grows, by one step.

        Returns how many entered.
        """
        A, problem, schedule = self.A, self._problem, self._schedule
        self._n_rounds += 1
        violation[np.isin(draws.index, A.index)] = 0.0
        n = max(schedule.fewest_enter, int(schedule.enter_a_term * np.count_nonzero(A.w)))
        entering = np.empty(n, np.intp)
        entering = np.sort(entering[: top_k(violation, problem.alpha, entering)])
        draws.enter(A, entering)
        # The next violators will move the solution anyway.
        steps, share = (1, schedule.left_over) if len(entering) else (schedule.most_steps, 0.0)
        solve(problem, A, 0.3 * target, steps, share, partial(self._asked_with, draws if again else None, len(entering)))
        # What still violates, since one step was not enough, must stay unless the next round would find it again.
        A.prune(but=(np.abs(A.g) > problem.alpha) & ~np.isin(A.index, draws.index))
        self.stopped |= self._n_rounds >= self._max_iter or A.effort.is_spent
        return len(entering)

    def _asked_with(self, draws, n_entering, w):
        """Questions that go with the last step of a round, to w: of draws that are looked at again, and of the next batch,
        where this round is likely the last of a batch."""
        t, again = self._last_drawn + 1, [] if draws is None else [draws.question(self._problem.alpha)]
        is_last = draws is None or n_entering <= FEW
        return again + (self._source.ahead(t, self.A, w) if is_last and t < self.dictionary.n_batches else [])

    def _is_idle(self, draws, objective):
        """Whether some rounds in a row over these draws have neither lowered the objective by what counts nor the gap."""
        if draws is not self._draws:
            self._draws, self._idle, self._lowest, self._least_gap = draws, 0, np.inf, np.inf
        fell = objective < self._lowest - CREEP * self._gap or self._gap < 0.9 * self._least_gap
        if fell:
            self._lowest, self._least_gap = min(objective, self._lowest), min(self._gap, self._least_gap)
        self._idle = 0 if fell else self._idle + 1
        return self._idle >= PATIENCE

    def record(self, tells: bool = True) -> bool:
        """End an iteration: note the objective, tell the callback; returns whether to stop."""
        objective = self._objective()
        self.progress.note(objective, self._gap, self._tol * objective)
        if tells and self.progress.ask(self.info):
            self.stopped = True
        return self.stopped

    def _objective(self):
        return self.A.objective(self._problem)

    def count_drawn(self) -> int:
        return int(np.diff(self.dictionary.starts)[self._drawn].sum())

    def info(self, certified: bool = True) -> FitInfo:
        return self.progress.info(
            self._objective, self._gap, converged=bool(self._reached), n_drawn=self.count_drawn(),
            n_nonzero=int(np.count_nonzero(self.A.w)), alpha=self._alpha,
        )  # fmt: skip

    def solution(self) -> Solution:
        """(index, features, w, b) of the terms, by ascending index, in the units of y."""
        self.A.prune()
        order = np.argsort(self.A.index)
        w, b = self.progress.in_units_of_y(self.A.w[order], self.A.b)
        return self.A.index[order], self.A.features.take(order), w, b
