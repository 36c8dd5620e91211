"""Sparse Random Features (Yen et al. 2014): Algorithm 1 (`algorithm_1`), the exact descent, and the
fit that both move.

Over the features phi_h of a dictionary, with coefficients w, and an intercept b without a penalty,
both minimise

    F(w, b) = (1/n) sum_i s_i L(z_i, y_i) + alpha sum_h |w_h|,   z_i = b + sum_h w_h phi_h(x_i), (9)

with sample weights s of mean 1; alpha is the paper's lambda. Its problem (8) is the same over all
features that can be drawn. Let v_i = s_i L'(z_i, y_i) / n; this row vector is called the dual
point. The gradient of the mean loss in w_h is g_h = phi_h' v, and (w, b) is optimal where

    |phi_h' v| <= alpha for every h,  phi_h' v = -alpha sign(w_h) where w_h is not zero,
    sum_i v_i = 0.

Where w_h must be at least 0 (`FeatureSet.nonnegative`) the first is phi_h' v >= -alpha: whatever
compares |phi_h' v| with alpha takes a positive phi_h' v for 0 there
(`solvers.problem.feasible_slope`).

A draw with |phi_h' v| > alpha violates this. Only such a draw can lower F, and a step on it alone
lowers F by at least (|g_h| - alpha)^2 / (2 gamma_h), where gamma_h bounds the curvature of the loss
along w_h (Theorem 1 of the paper, before the expectation). So of each batch only violators enter
the working set A, and the matrix of all features is never stored: one pass over the rows gives
phi_h' v for all draws of a batch.

Algorithm 1 draws R = `batch_size` features T times, and after each batch minimises (9) over A:
nearly, since the next batch moves the solution anyway (`BatchRules.early_tol`), and to the
tolerance after the last. The exact descent goes over all R T draws, made again when needed, until
the duality gap over all of them is within the tolerance.

The duality gap is F less the dual objective at v times min(1, alpha / max_h |g_h|), which satisfies
|phi_h' v| <= alpha. It is computed in `L1Fit.look_at` (by `L1Problem.dual_gap`, the formula) and
tested in `L1Fit.improve_over`, and in `L1Fit.descend_over` over the violators.

Reading order: the two algorithms, the interface that they need of a fit (`BaseL1Fit`), how
thoroughly a batch is solved, and the fit of one target (`L1Fit`), whose methods are the moves. The
fit of all classes together is in `multinomial.py`.

The path of the default (`default/l1_path.py`) makes steps on the same problem, along which the loss
out of fold decides and no gap is certified. It shares the rule of entering, the phases of cosines,
and the descent on a quadratic model. It stores the values of its terms, which is no gain here: with
all values kept, fits to 1,000 rows took 1.05 times the CPU time of tiles with Gaussian features,
.99 with learned cosines and 1.35 with rules (means over six tables), and memory would grow with the
terms. On the working set of this fit that path is slower, as its file says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ..._base.progress import check_not_ended, parts
from ...model import gap_in_words
from ...solvers.budget import Budget, work_of_pass
from ...solvers.l1 import L1_ROUNDING, L1Problem, WorkingSet, prox_newton
from .draws import largest_above, source_of

if TYPE_CHECKING:
    from ...features import FeatureSet
    from ...features.dictionary import Dictionary
    from ...features.feature_set import Solution
    from ...model import FitInfo
    from ...rows.rows import Question
    from ..fit_progress import Progress
    from ..task import Task
    from .draws import Draws, DrawSource
    from .options import SparseRFOptions

State: TypeAlias = "tuple[FeatureSet, np.ndarray, np.ndarray, float]"

# D, the number of features that are drawn where `n_components` is None.
N_COMPONENTS = 10_000
# The descent ends, as it has come down to rounding, after so many rounds in a row of which none
# lowers the objective by more than a thousandth of the gap, nor the gap itself by a tenth.
IDLE_ROUNDS = 5
# A fit begins in single precision from this number of feature values in a pass over the dictionary.
WORTH_SINGLE = 2**22
# The relative gap to which it goes there at least.
SINGLE_ROUNDING = 1e-5

# The two algorithms


def algorithm_1(fit: BaseL1Fit) -> None:
    """Run Algorithm 1 of Yen et al.: R = batch_size, T = n_batches, A = fit.A, w = fit.A.w.

    `parts` goes through the batches, and says to the progress bar that each is an equal part of the
    work.
    """
    for t in parts(range(fit.dictionary.n_batches)):  # repeat
        h = fit.draw(t)  #             1. sample h_1, ..., h_R from p(h)
        fit.minimise_over(h)  #        2. add them to A; 3. obtain w by solving (9)
        fit.A.prune()  #               4. A <- A \ {h : w(h) = 0}
        if fit.record():  #            5. t <- t + 1
            break  #                   until t = T


def exact_descent(fit: BaseL1Fit) -> None:
    """Minimise (9) over all draws of the dictionary to the tolerance; they are made again when
    needed, not stored.

    One round a batch comes near to the optimum for the price of one look at the dictionary; then
    each round looks at all of it, as far as a gradient may have come to alpha. What is known of the
    gradients at the end of a fit is where the next begins.
    """
    n_batches = fit.dictionary.n_batches
    for t in parts(range(0 if fit.knows_all else n_batches), rest=n_batches):
        fit.improve_over(fit.draw(t))
        if fit.record():
            return
    everything = fit.draw_all()
    done = False
    while not done:
        done = fit.descend_over(everything)
        done |= fit.record()


# The interface of a fit


class BaseL1Fit(ABC):
    """A fit of (9), with the moves that the algorithms make.

    There are two subclasses: the fit of one target (`L1Fit`), and the fit of all classes of the
    multinomial loss together (`MultinomialL1Fit`).

    dictionary : the features that are drawn
    rules : how thoroughly a batch is solved
    tol : the duality gap that is near enough, relative to the objective
    progress : the objectives so far, in units of y, and the callback
    A : the working set, with `prune`, which drops zeros, and the `index` of its features
    alpha : the penalty
    gap : the duality gap that was last computed; infinite where none has been
    """

    dictionary: Dictionary
    rules: BatchRules
    tol: float
    progress: Progress
    A: Any
    alpha: float
    gap: float
    _draws: Any = None

    def __init__(self, dictionary: Dictionary, rules: BatchRules, tol: float, progress: Progress):
        """Take the fields that both fits have; a subclass makes the others, and then calls
        `restart`."""
        self.dictionary, self.rules, self.tol, self.progress = dictionary, rules, tol, progress

    @abstractmethod
    def restart(self, alpha: float) -> None:
        """Begin a fit with this penalty, from the coefficients of the last one."""
        self.alpha, self.gap = float(alpha), np.inf
        self.progress.restart()
        # Which batches were drawn, and the number of the last.
        self._drawn, self._last_drawn = np.zeros(self.dictionary.n_batches, bool), -1
        self._turn_to(None)

    def _turn_to(self, draws):
        """Begin to count, where these are other draws, how many rounds in a row have lowered
        nothing."""
        if draws is not self._draws or draws is None:
            self._draws, self._n_idle, self._lowest, self._least_gap = draws, 0, np.inf, np.inf

    def _has_idled(self, objective, gap, rounding):
        """Return whether IDLE_ROUNDS rounds in a row have lowered neither the objective, by more
        than rounding, nor the gap."""
        self._n_idle += 1
        if objective < self._lowest - rounding or gap < 0.9 * self._least_gap:
            self._lowest, self._least_gap = min(objective, self._lowest), min(gap, self._least_gap)
            self._n_idle = 0
        return self._n_idle >= IDLE_ROUNDS

    @abstractmethod
    def adopt(self, state: Any) -> None:
        """Start from the terms and coefficients of a model, in units of y: a `State`, or one of
        each class."""

    @abstractmethod
    def draw(self, *batches: int) -> Any:
        """Return the draws of these batches, and note that they were drawn."""
        self._drawn[list(batches)] = True
        self._last_drawn = batches[-1]

    @abstractmethod
    def draw_all(self) -> Any:
        """Return all draws of the dictionary, with what is known of their gradients."""
        self._drawn[:] = True
        self._last_drawn = self.dictionary.n_batches - 1

    @property
    @abstractmethod
    def knows_all(self) -> bool:
        """Whether the gradients of all draws are known, or bounds on them."""

    def minimise_over(self, draws: Any) -> None:
        """Minimise (9) over A and the draws: to the tolerance where the rules say so of the last
        batch, else by one round."""
        again, is_done = self.is_solved_to_tolerance, False
        while not is_done:
            is_done = self.improve_over(draws, again) or not again or self.stopped

    @property
    def is_solved_to_tolerance(self) -> bool:
        """Whether the batch that was drawn last is solved to the tolerance."""
        return self.rules.solves == "every" or self._is_last_batch

    @property
    def _is_last_batch(self):
        """Whether the last batch was drawn."""
        return self._last_drawn == self.dictionary.n_batches - 1

    def begin_in_single(self) -> None:  # noqa: B027
        """Go to single precision until the fit has come to the tolerance there, where the fit can
        and that is faster."""

    def end_in_double(self) -> None:  # noqa: B027
        """Go to the precision of the rows, where the fit has not come there."""

    @abstractmethod
    def improve_over(self, draws: Any, again: bool = False) -> bool:
        """Take one round over A and the draws; return whether there is no more to do.

        again : whether the next round looks at these draws again
        """

    @abstractmethod
    def descend_over(self, draws: Any) -> bool:
        """Take one round over A and the draws, then rounds over the violators among the draws;
        return as `improve_over`."""

    def record(self) -> bool:
        """End an iteration: note the objective, and call the callback; return whether the fit stops
        here."""
        objective = self.objective()
        self.progress.note(objective, self.gap, self.tol * objective)
        if self.progress.ask(partial(self.info, False)):
            self.stop()
        return self.stopped

    @property
    @abstractmethod
    def stopped(self) -> bool:
        """Whether the fit has ended before its time: by the callback, its rounds or its work."""

    @abstractmethod
    def stop(self) -> None:
        """End the fit: no more moves are made."""

    @abstractmethod
    def objective(self) -> float:
        """Return F at the coefficients, in the unit of the target."""

    @abstractmethod
    def largest_gradient(self) -> float:
        """Return max_h |g_h| over the draws of the dictionary: at w = 0, the smallest alpha that
        keeps w there."""

    def count_drawn(self) -> int:
        """Return how many features were drawn since the last `restart`."""
        return int(np.diff(self.dictionary.starts)[self._drawn].sum())

    @abstractmethod
    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the present coefficients.

        certified : whether to compute the duality gap where it is not known
        """

    @abstractmethod
    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms, by ascending index, in units of y."""


# How thoroughly each batch is solved


@dataclass(frozen=True)
class BatchRules:
    """How thoroughly a fit minimises (9) over each batch before it draws the next.

    solves : which batches are solved to the tolerance: "every" or the "last"; the others take one
        round
    enter_per_term, enter_at_least : the most violators that enter A in a round: `enter_per_term`
        times the number of terms in the model, or `enter_at_least` where that is more
    early_tol : the relative gap to which batches before the last are solved where every batch is
    work : the share of the default work of a fit (`Budget.for_l1_fit`) that the fit may take
    """

    solves: Literal["every", "last"] = "every"
    enter_per_term: float = 1 / 4
    enter_at_least: int = 100
    early_tol: float = 0.1
    work: float = 1.0


# For random draws: each batch is solved as in the paper, the last to the tolerance.
TO_TOLERANCE = BatchRules()
# For draws that follow the accepted features: better draws are worth more than the optimum over the
# present draws, so that more violators enter in a round, and the last batch alone is solved to the
# tolerance. With a penalty so small that the model keeps as many terms as there are rows, that
# optimum is not worth its time: hence the smaller share of the work.
FOLLOWING = BatchRules(solves="last", enter_per_term=1, enter_at_least=200, work=0.25)


def rules_of(dictionary: Dictionary) -> BatchRules:
    """Return the rules by which the draws of a dictionary are solved."""
    return FOLLOWING if dictionary.follows else TO_TOLERANCE


# The fit of one target


class L1Fit(BaseL1Fit):
    """The fit of one target: the working set A, the problem (9) on it, and the moves of the
    algorithms.

    Inside, the target is divided by its unit, a power of two (`Task.unit`), and alpha by the unit
    of a slope.

    A : the working set, with its coefficients w and intercept b, margins z and dual point v
    problem : (9), in the units of the fit
    largest : the largest |phi_h' v| of the draws and terms that the fit last looked at
    stopped : whether the fit has ended before its time: by the callback, its rounds or its work
    """

    A: WorkingSet
    problem: L1Problem
    gap: float
    largest: float
    stopped: bool = False

    def __init__(
        self,
        task: Task,
        y: np.ndarray,
        dictionary: Dictionary,
        options: SparseRFOptions,
        *,
        target: int = 0,
    ):
        """Begin at w = 0, with an infinite penalty until `restart` gives one.

        target : the number of this fit among all over the dictionary, from which its random stream
            follows; less a multiple of the number of targets, that of y among these
        """
        # Each of up to this number of targets may take the work of a whole fit; more targets share
        # the work of so many.
        targets_of_full_work = 10

        check_not_ended()
        super().__init__(
            dictionary,
            rules_of(dictionary),
            options.tol,
            task.progress(options.callback, y),
        )
        self._rows, self._slope_unit = task.rows, task.slope_unit(y)
        self._source: DrawSource = source_of(task.rows, dictionary, target)
        self._max_iter = np.inf if options.max_iter is None else options.max_iter
        output = target % len(task.targets)
        self.problem = task.problem(L1Problem, y, 0.0, options.fit_intercept, output)
        self._size = self.problem.loss.size(float(task.weight @ (y / len(y))))
        starts, budget = dictionary.starts, Budget()
        if options.max_iter is None:
            share = self.rules.work * min(1.0, targets_of_full_work / len(task.targets))
            budget = Budget.for_l1_fit(task.rows, starts[-1], share)
        self.A = WorkingSet(task.rows, self.problem, budget)
        # draws that are looked at alone: as many as a batch holds
        self._most_kept = int(np.diff(starts).max())
        # the relative gap that is near enough over the present batch, where that is more than `tol`
        self._batch_tol = 0.0
        # the rows, and the same in single precision once that is used
        self._double, self._single = task.rows, None
        self.restart(np.inf)

    # Between fits

    def restart(self, alpha: float) -> None:
        """Begin a fit with this penalty, from the coefficients of the last one; see `BaseL1Fit`."""
        super().restart(alpha)
        self._source.forget()
        self.problem = replace(self.problem, alpha=min(self.alpha / self._slope_unit, 1e300))
        # the rounds so far, and whether the gap is within the tolerance
        self._n_rounds, self._reached = 0, True
        self.stopped, self.largest = False, np.inf

    def adopt(self, state: State) -> None:
        """Start from terms (features, index, w, b), in units of y."""
        features, index, w, b = state
        w, b = w / self.progress.unit, b / self.progress.unit
        self.A.add(features, index, np.zeros(len(w)))
        f = self.A.apply(w)
        self.A.move(self.problem, w, self.problem.best_intercept(f, b), f)
        self.A.learn([])

    def begin_in_single(self) -> None:
        """Go to single precision, which takes half the time, if features and rows lose little by it
        and are many."""
        is_worth_it = (
            self.rules.solves == "every"
            and self._rows.n_rows * self.dictionary.starts[-1] >= WORTH_SINGLE
        )
        loses_little = is_worth_it and all(
            block.is_bounded
            for block in (*self.dictionary.batch(0).blocks, *self.A.features.blocks)
        )
        if self._single is None and loses_little:
            self._single = self._double.in_single()
        if self._single is not None:
            self._set_rows(self._single)

    def end_in_double(self) -> None:
        """Go to the precision of the rows, where the fit has not come there."""
        if self._is_single:
            self._double.n_passes = self._double.n_passes + self._single.n_passes
            self._single.n_passes = 0
            self._set_rows(self._double)
            self.progress.correct(self.objective())

    @property
    def _is_single(self):
        """Whether the fit is in a lower precision than the rows are."""
        return self._rows is not self._double

    def _set_rows(self, rows):
        """Go on with the same rows in another precision."""
        self._rows = rows
        self._source.set_precision(rows)
        self.A.settle_on(self.problem, rows)

    # The moves

    def minimise_over(self, draws: Draws) -> None:
        """Minimise (9) over A and the draws, as `BaseL1Fit`; over those of the last batch also in
        the precision of the rows."""
        self._batch_tol = 0.0 if self._is_last_batch else self.rules.early_tol
        super().minimise_over(draws)
        self._batch_tol = 0.0
        if self._is_single and self._is_last_batch and not self.stopped:
            self.end_in_double()
            super().minimise_over(self._source.draw((self._last_drawn,), self.A))

    def draw(self, *batches: int) -> Draws:
        """Return the draws of these batches, and note that they were drawn."""
        super().draw(*batches)
        return self._source.draw(batches, self.A)

    def draw_all(self) -> Draws:
        """Return all draws of the dictionary, with what is known of their gradients."""
        super().draw_all()
        return self._source.everything()

    @property
    def knows_all(self) -> bool:
        """Whether the gradients of all draws are known, or bounds on them."""
        return self._source.knows_all

    def improve_over(self, draws: Draws, again: bool = False) -> bool:
        """Take one round: where the gap over A and the draws is not within tolerance, violators
        enter, and (9) is solved on A.

        again : whether the next round looks at these draws again
        Returns whether there is no more to do: the gap was within tolerance, or floating point
        allows no further descent.
        """
        with self.progress.asked_within(self.info):
            violation, self.gap, objective, tolerance = self.look_at(draws)
            self._reached = self.gap <= self._allowed_gap(self.tol, objective)
            if self.gap <= tolerance or self.is_idle(draws, objective):
                return True
            self._let_in(draws, violation, tolerance, again)
            return False
        self.stopped = True  # the callback has ended the fit within the round
        return True

    def descend_over(self, draws: Draws) -> bool:
        """Take one round over the draws, then cheaper rounds over those that violate or nearly do;
        return as `improve_over`.

        The further rounds end where the gap over these is a share of the gap over all.
        """
        # `descend_over` looks alone at the draws whose gradient was this share of alpha or more,
        # until their gap is that share of the gap over all draws, and for at most most_rounds
        # rounds.
        nearly = 0.9
        share_of_gap = 0.3
        most_rounds = 20

        is_done = self.improve_over(draws)
        if is_done and self._is_single and not self.stopped:
            self.end_in_double()
            is_done = self.improve_over(draws)
        if is_done:
            return True
        with self.progress.asked_within(self.info):
            few = draws.nearest(nearly * self.problem.alpha, self._most_kept)
            for _ in range(most_rounds):
                violation, gap, _, tolerance = self.look_at(few)
                tolerance = max(tolerance, share_of_gap * self.gap)
                if (
                    gap <= tolerance
                    or self.stopped
                    or not self._let_in(few, violation, tolerance, True)
                ):
                    break
            draws.learn_from(few, self.A.v)
            return False
        self.stopped = True  # the callback has ended the fit within the rounds
        return True

    def look_at(self, draws: Draws) -> tuple[np.ndarray, float, float, float]:
        """Return |g| of the draws (`feasible_slope`), the gap over these and A, the objective, and
        the gap that is within tolerance."""
        A, problem = self.A, self.problem
        A.budget.add(work_of_pass(self._rows, len(draws.index)))
        violation = np.abs(draws.gradient(A.v, problem.alpha, A))
        self.largest = max(violation.max(initial=0.0), A.largest_gradient)
        gap, objective = problem.dual_gap(A.z, A.w, self.largest), A.objective(problem)
        return (
            violation,
            gap,
            objective,
            self._allowed_gap(max(self.tol, self._batch_tol), objective),
        )

    def _allowed_gap(self, tol, objective):
        """Return the largest gap within the tolerance, or the rounding error where a target is met
        exactly."""
        least = SINGLE_ROUNDING if self._is_single else L1_ROUNDING
        return max(tol * objective, least * objective, least * self._size)

    def _let_in(self, draws, violation, tolerance, again):
        """Let the largest violators enter A, solve (9) on A, and drop zeros; return how many
        violators entered.

        The solve goes to a gap of 0.3 times the tolerance; while A still grows it is one step.
        """
        # The share of the largest violation that may remain after the step of a round in which
        # violators enter, and the most steps in a round in which none does.
        step_leaves = 0.1
        most_steps = 100

        A, problem, rules = self.A, self.problem, self.rules
        self._n_rounds += 1
        violation[np.isin(draws.index, A.index)] = 0.0
        n = max(rules.enter_at_least, int(rules.enter_per_term * np.count_nonzero(A.w)))
        entering = largest_above(violation, problem.alpha, n)
        draws.enter(A, entering)
        # The next violators will move the solution anyway.
        steps, share = (1, step_leaves) if len(entering) else (most_steps, 0.0)
        # This round is likely the last over its batch where no draws are looked at again, or few
        # violators entered: then the gradients of the next batch are computed in advance.
        is_last = not again or len(entering) <= 5
        ask_with = partial(self.questions_at, draws if again else None, is_last)
        prox_newton(problem, A, 0.3 * tolerance, steps, share, ask_with)
        # Terms that still violate after one step stay, unless the next round would find them again.
        A.prune(but=(np.abs(A.feasible_slopes) > problem.alpha) & ~np.isin(A.index, draws.index))
        self.stopped |= self._n_rounds >= self._max_iter or A.budget.is_spent
        return len(entering)

    def questions_at(self, draws: Draws | None, is_last: bool, w: np.ndarray) -> list[Question]:
        """Return the questions that are put to the rows together with the last step of a round,
        which goes to w.

        draws : the draws that the next round looks at again, whose gradients to compute
        is_last : whether to compute the gradients of the next batch, too, since this round is
            likely the last over its own
        """
        questions = [] if draws is None else [draws.question(self.problem.alpha, self.A)]
        t = self._last_drawn + 1
        return questions + (
            self._source.ask_ahead(t, self.A, w)
            if is_last and t < self.dictionary.n_batches
            else []
        )

    def is_idle(self, draws: Draws, objective: float) -> bool:
        """Return whether IDLE_ROUNDS rounds in a row over these draws have lowered neither the
        objective nor the gap."""
        self._turn_to(draws)
        return self._has_idled(objective, self.gap, 1e-3 * self.gap)

    def stop(self) -> None:
        """End the fit: no more moves are made."""
        self.stopped = True

    # The results of the fit

    def largest_gradient(self) -> float:
        """Return max_h |g_h| over the draws of the dictionary: at w = 0, the smallest alpha that
        keeps w there. 0 where there are no draws, or no gradient is more than rounding."""
        draws = self._source.draw(self._source.batches_at_zero, self.A)
        largest = float(np.abs(draws.gradient(self.A.v)).max(initial=0.0))
        is_rounding = largest <= self.problem.rounding_of_slopes(self.A.v)
        return 0.0 if is_rounding else self._slope_unit * largest

    def objective(self) -> float:
        """Return F at the coefficients, in the unit of the target."""
        return self.A.objective(self.problem)

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the present coefficients; their gap is always known, so that
        `certified` changes nothing."""
        return self.progress.info(
            self.objective,
            self.gap,
            converged=bool(self._reached),
            n_drawn=self.count_drawn(),
            n_nonzero=int(np.count_nonzero(self.A.w)),
            alpha=self.alpha,
        )

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms, by ascending index, in units of y."""
        self.A.prune()
        order = np.argsort(self.A.index)
        w, b = self.progress.in_units_of_y(self.A.w[order], self.A.b)
        return self.A.index[order], self.A.features.take(order), w, b


def unrest(tol: float, info: FitInfo) -> str:
    """Return the words of a warning of a fit that ended above its tolerance."""
    is_cut = "fits" in info.cut
    by, more = (" by time_limit", "time_limit") if is_cut else ("", "max_iter")
    return (
        f"alpha={info.alpha:.3g}: stopped{by} after {info.n_iter} iterations{gap_in_words(info)}, "
        f"above tol={tol:.2g}; raise {more} (or tol, or alpha)"
    )
