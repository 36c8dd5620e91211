"""The moves of Sparse-RF on one target: look at draws, let the violators in, solve on the working set, record."""

from dataclasses import replace
from functools import wraps

import numpy as np

from .._asking import Answering, Ended
from .._checks import check_callable, check_flag, check_integer, check_real
from .._core.search import top_k
from ..model import warn_unconverged
from ..solvers.effort import Effort
from ..solvers.lasso import ROUNDING, L1Problem, solve
from ._columns import WorkingSet
from ._draws import draws_of
from .task import Progress

# Features to draw by default.
N_COMPONENTS = 10_000
# The most work of a fit, in multiplications: of up to FEW_ROWS rows, for each row more, and passes over the dictionary beside
# it. And those that take as long as a feature value does, beside one for each input.
EFFORT, FEW_ROWS, A_ROW, PASSES, VALUE = 1.2e11, 5_000, 4e7, 5, 20
# Rounds in a row that neither lower the gap, nor the objective by that share of it, before rounding is taken to be in the way.
PATIENCE, CREEP = 5, 1e-3


def may_be_ended(method):
    """A method of a fit whose callback is told of what is there, now and then, and may end it: there is no more to do then."""

    @wraps(method)
    def asked(self, *args):
        try:
            with self._answering:
                return method(self, *args)
        except Ended:
            self.stopped = self.progress.ended_by_callback = True
            return True

    return asked


class L1Fit:
    """State and progress of one fit: the working set A, the problem (9), and what `info` will say."""

    # How many violators enter the working set at once: for each term that it has, but at least these.
    enter_a_term, fewest_enter = 1 / 4, 100
    # Of the largest violation, what the step after may leave: it is one of many.
    left_over = 0.1
    # Most steps of the solver in a round.
    most_steps = 100
    # Of the gap over all draws, what rounds over those that violate may leave, and the most of these.
    share_of_gap, most_rounds = 0.3, 20
    # The gap that is near enough where the penalty itself is a choice, of the objective.
    near = 0.5

    def __init__(self, task, y, dictionary, *, fit_intercept, tol, max_iter, callback):
        rows = task.rows
        self._rows, self.dictionary = rows, dictionary
        self._tol, self._max_iter = tol, np.inf if max_iter is None else max_iter
        self.progress = Progress(callback, task.scale(y))
        self._problem = task.problem(L1Problem, y, 0.0, fit_intercept)
        self._answering = Answering(lambda: callback is not None and callback(self.info()))
        self.A = WorkingSet(rows, self._problem, Effort(_most_effort(rows, dictionary) if max_iter is None else np.inf))
        self.A.b = self._problem.best_intercept(self.A.f, 0.0)
        self._most_kept = int(np.diff(dictionary.starts).max())  # as many draws as a batch holds
        self.restart(np.inf)

    def restart(self, alpha, rested=False):
        """Begin a fit with this penalty, from where the last one ended; rested: its work does not add to that of the last."""
        if rested:
            self.A.effort.forget()
        self._answering.has_told()
        self._alpha = float(alpha)
        self._problem = replace(self._problem, alpha=min(self._alpha / self._scale, 1e300))
        self.progress.restart()
        self._n_rounds, self._draws = 0, None
        self._drawn = np.zeros(self.dictionary.n_batches, bool)
        self._gap, self._reached, self.stopped = np.inf, True, False

    @property
    def _scale(self):
        return self.progress.scale

    def state(self):
        """What `adopt` takes, in the units of y."""
        self.A.prune()
        return self.A.features, self.A.index, self.A.w * self._scale, self.A.b * self._scale

    def adopt(self, state):
        """Begin from where a fit to other rows ended."""
        features, index, w, b = state
        self.A.add(features, index, np.zeros(len(w)))
        self.A.w = w / self._scale
        self.A.f = self.A.apply(self.A.w)
        self.A.b = self._problem.best_intercept(self.A.f, b / self._scale)
        self.A.g = self.A.correlate(self.dual_point())

    def losses(self):
        """The loss of each row."""
        with np.errstate(over="ignore"):
            losses = self._problem.vectors.fetch(self._problem.losses(self._margins())) * self._scale * self._scale
        return np.minimum(losses, np.finfo(np.float64).max / (4 * len(losses)))

    def draw(self, *batches):
        self._drawn[list(batches)] = True
        return draws_of(self._rows, self.dictionary, batches)

    def largest_gradient(self):
        """max_h |g_h| over the whole dictionary: at w = 0, the smallest alpha that keeps w there."""
        batches = range(self.dictionary.n_batches)
        return self._scale * float(np.abs(draws_of(self._rows, self.dictionary, batches).gradient(self.dual_point())).max())

    def residual(self):
        """The root of the mean loss: for the squared loss, of half the mean square of the residual."""
        return self._scale * np.sqrt(self._problem.mean_loss(self._margins()))

    @may_be_ended
    def polish(self, tol, max_rounds):
        """Solve the problem over A alone, to a gap of tol, in one step at least."""
        A, problem = self.A, self._problem
        for k in range(max_rounds + 1):
            z = self._margins()
            objective = problem.objective(z, A.w)
            self._gap = problem.dual_gap(z, A.w, A.largest_gradient)
            self._reached = self._gap <= max(tol, ROUNDING) * objective
            if (self._reached and k > 0) or k == max_rounds:
                return
            left = 0.3 * min(tol * objective, self._gap)
            A.w, A.b, A.f, A.g = solve(problem, A, A.w, A.b, A.f, A.g, left, 1)

    def minimise_over(self, draws):
        """Solve the problem over A and the draws, to the tolerance."""
        while not self.stopped and not self.improve_over(draws):
            pass

    def descend_over(self, draws):
        """A round over the draws, and more over those that violate, which cost less; returns as `improve_over`."""
        return self.improve_over(draws) or self._improve_over_violators(draws)

    @may_be_ended
    def improve_over(self, draws):
        """One round: if the gap over A and the draws is not within tolerance yet, violators enter and A is solved for.

        Returns whether there is no more to do: it was within tolerance, or floating point allows no further descent.
        """
        violation, self._gap, objective, target = self._look_at(draws)
        self._reached = self._gap <= target
        if self._reached or self._is_idle(draws, objective):
            return True
        self._let_in(draws, violation, target)
        return False

    @may_be_ended
    def _improve_over_violators(self, draws):
        """Rounds over the draws that violated in the last, to a share of the gap over all."""
        few = draws.violators(self._problem.alpha, self._most_kept)
        for _ in range(self.most_rounds):
            violation, gap, _, target = self._look_at(few)
            target = max(target, self.share_of_gap * self._gap)
            if gap <= target or self.stopped or not self._let_in(few, violation, target):
                break
        return False

    def _look_at(self, draws):
        """(|g| of the draws, the duality gap over these and A, the objective, the gap that is within tolerance)."""
        A, problem = self.A, self._problem
        A.effort.add(self._rows.n_rows * len(draws.index) * (VALUE + self._rows.row_size))
        z = self._margins()
        violation = np.abs(draws.gradient(problem.dual_point(z), problem.alpha))
        gap = problem.dual_gap(z, A.w, max(violation.max(initial=0.0), A.largest_gradient))
        objective = problem.objective(z, A.w)
        return violation, gap, objective, max(self._tol, ROUNDING) * objective

    def _let_in(self, draws, violation, target):
        """The largest violators enter A, which is solved for: to that gap, or, while the set still grows, by one step.

        Returns how many entered.
        """
        A, problem = self.A, self._problem
        self._n_rounds += 1
        violation[np.isin(draws.index, A.index)] = 0.0
        entering = np.empty(max(self.fewest_enter, int(self.enter_a_term * np.count_nonzero(A.w))), np.intp)
        entering = np.sort(entering[: top_k(violation, problem.alpha, entering)])
        draws.enter(A, entering)
        # The next violators will move the solution anyway.
        steps, share = (1, self.left_over) if len(entering) else (self.most_steps, 0.0)
        A.w, A.b, A.f, A.g = solve(problem, A, A.w, A.b, A.f, A.g, 0.3 * target, steps, share)
        # What still violates, since one step was not enough, must stay unless the next round would find it again.
        A.prune(but=(np.abs(A.g) > problem.alpha) & ~np.isin(A.index, draws.index))
        self.stopped |= self._n_rounds >= self._max_iter or A.effort.is_spent
        return len(entering)

    def _is_idle(self, draws, objective):
        """Whether some rounds in a row over these draws have neither lowered the objective by what counts nor the gap."""
        if draws is not self._draws:
            self._draws, self._idle, self._lowest, self._least_gap = draws, 0, np.inf, np.inf
        fell = objective < self._lowest - CREEP * self._gap or self._gap < 0.9 * self._least_gap
        if fell:
            self._lowest, self._least_gap = min(objective, self._lowest), min(self._gap, self._least_gap)
        self._idle = 0 if fell else self._idle + 1
        return self._idle >= PATIENCE

    def record(self, tells=True):
        """End an iteration: note the objective, tell the callback; returns whether to stop."""
        self.progress.note(self._objective())
        if tells and self.progress.ask(self.info):
            self.stopped = True
        self._answering.has_told()
        return self.stopped

    @property
    def ended_by_callback(self):
        return self.progress.ended_by_callback

    def _objective(self):
        return self._problem.objective(self._margins(), self.A.w)

    def _margins(self):
        return self._problem.margins(self.A.f, self.A.b)

    def dual_point(self):
        return self._problem.dual_point(self._margins())

    def count_drawn(self):
        return int(np.diff(self.dictionary.starts)[self._drawn].sum())

    def info(self, certified=True):
        return self.progress.info(
            self._objective, self._gap, converged=bool(self._reached), n_drawn=self.count_drawn(),
            n_nonzero=int(np.count_nonzero(self.A.w)), alpha=self._alpha,
        )  # fmt: skip

    def solution(self):
        """(index, features, w, b) of the terms, by ascending index, in the units of y."""
        self.A.prune()
        order = np.argsort(self.A.index)
        w, b = self.progress.in_units_of_y(self.A.w[order], self.A.b)
        return self.A.index[order], self.A.features.take(order), w, b


class SearchingFit(L1Fit):
    """A round for each batch: of many penalties one is chosen, and its terms are fitted again."""

    enter_a_term, left_over, most_steps = 1, 0.1, 1

    def minimise_over(self, draws):
        self.improve_over(draws)


def _most_effort(rows, dictionary):
    """Multiplications that a fit may take where max_iter does not say how many rounds."""
    a_pass = rows.n_rows * dictionary.starts[-1] * (VALUE + rows.row_size)
    return EFFORT + A_ROW * max(0, rows.n_rows - FEW_ROWS) + PASSES * a_pass


def options_of(fit_intercept, tol, max_iter, callback):
    """The options of an `L1Fit`, checked."""
    return {
        "fit_intercept": check_flag("fit_intercept", fit_intercept),
        "tol": check_real("tol", tol, 0, strict=True),
        "max_iter": None if max_iter is None else check_integer("max_iter", max_iter, 1),
        "callback": check_callable("callback", callback),
    }


def warn(info, tol):
    """If the tolerance was not reached."""
    if info.converged:
        return
    share = info.dual_gap / info.objective[-1] if info.objective[-1] > 0 else np.inf
    warn_unconverged(
        f"alpha={info.alpha:.3g}: stopped after {info.n_iter} iterations with a duality gap of {info.dual_gap:.3g}, "
        f"{share:.2g} of the objective, above tol={tol:.2g}; "
        f"raise max_iter (or tol, or alpha)"
    )
