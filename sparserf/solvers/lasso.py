"""The l1 problem on a working set:  minimise over w, b   (1/n) sum_i s_i L(phi_i'w + b, y_i) + alpha |w|_1.

Prox-Newton: each step minimises the quadratic model on the (weighted) Gram matrix and searches along the line. With the
squared loss the model is exact and one step is the solution. For the others the Gram matrix is most of the work: it is kept
for as long as the steps made with it do, and made of a sample of the rows, and in single precision, where these do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import namespace
from .._core.descent import largest_violation
from .backtracking import backtrack
from .problem import Problem
from .quadratic import minimize

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import RowVector
    from ..rows.home import Question
    from .columns import WorkingSet

# A fall of the objective below this share of it is rounding.
ROUNDING = 1e-14
# The curvature where there is none, of a loss that has no largest.
MOST = 1.0


@dataclass(frozen=True)
class Rules:
    """When Prox-Newton trusts its model, asks for a better one, or ends.

    trust, most_trust : to which share of the violation a model that is not exact is minimised at first; less by that factor
        after a whole step, more after one that fell short, up to most_trust
    damping, damped : the least share of the largest diagonal entry that damps the model, and by which factor it rises and falls
    slow, times : a better model is asked for after a step that leaves more than this share of the gap, or more than `times` the
        share of the violation that it was allowed to leave
    poor : a step that may leave a share of the violation, and leaves more of the gap, asks for one of more rows
    idle, creep : a whole step of the best model that leaves more than `idle` of the gap, and lowers the objective by less than
        `creep` of it, is rounding
    rows_a_term, growth : rows in the sample that the model is made of, for each term at first, and by how much they grow
    effort : multiplications in the time of a step on next to nothing
    largest : a step of this size or more, or NaN, is that of a model without a minimum
    most_curved : times the largest row weight here, those at the end of a step that goes too far may be
    """

    trust: float = 0.1
    most_trust: float = 0.5
    damping: float = 1e-14
    damped: float = 100
    slow: float = 0.05
    times: float = 5
    poor: float = 0.7
    idle: float = 0.9
    creep: float = 1e-6
    rows_a_term: float = 8
    growth: float = 2
    effort: float = 1e7
    largest: float = 1e250
    most_curved: float = 1e3


RULES = Rules()


class L1Problem(Problem):
    """The penalty is alpha |w|_1."""

    def objective(self, z: RowVector, w: np.ndarray) -> float:
        """P at margins z = Phi w + b."""
        return self.mean_loss(z) + self.penalty(w)

    def penalty(self, w: np.ndarray) -> float:
        return self.alpha * np.abs(w).sum()

    def dual_gap(self, z: RowVector, w: np.ndarray, largest: float) -> float:
        """P - D >= 0 where `largest` is the largest correlation of the dual point with any feature of the problem.

        The dual point is scaled by c = min(1, alpha / largest) to be feasible, D = -(1/n) sum s_i L*(c L'(z_i)).
        It also needs sum(theta) = 0, which is the optimality of the intercept.
        """
        c = self.alpha / largest if largest > self.alpha else 1.0
        return max(0.0, self.mean_pair(z, c) + float(self.alpha * np.abs(w).sum()))


class ModelWeights:
    """The row weights h of the quadratic model, Phi' diag(h) Phi its Hessian: s L''(z) / n at some z, of some of the rows."""

    is_best: bool
    is_rough: bool
    total: float

    def __init__(self, problem: L1Problem):
        self._problem, self._h, self._rows_a_term, self._aim = problem, None, RULES.rows_a_term, None
        self._uniform = None  # a random number a row
        self.is_best, self.is_rough = False, not problem.loss.is_quadratic

    def turn_to(self, problem: L1Problem) -> None:
        """Of the same rows, with another y."""
        self._problem = problem

    def at(self, z: RowVector, n_terms: int) -> RowVector:
        """Those that there are, or new ones at z; is_best: of all rows, at z alone, and not for single precision."""
        is_new = self._h is None
        if is_new:
            everywhere = self._everywhere(z)
            self._h = everywhere if self._problem.loss.is_quadratic else self._sampled(everywhere, self._rows_a_term * n_terms)
            self._is_whole = self._h is everywhere
            self.total = float(self._problem.vectors.total(self._h)) if self._problem.fit_intercept else 0.0
        is_new_and_whole = is_new and self._is_whole and not self.is_rough
        self.is_best = self._problem.loss.is_quadratic or (is_new_and_whole and self._aim is None)
        self._is_new = is_new
        return self._h

    def _everywhere(self, z):
        """At z, or where it is larger at the aim, there."""
        problem, vectors = self._problem, self._problem.vectors
        h = problem.curvature(z)
        if not vectors.count(h):  # every row is well beyond its margin: the most that there can be
            most = problem.loss.smoothness if np.isfinite(problem.loss.smoothness) else MOST
            h = vectors.scaled(problem.weight, most / problem.n_rows)
        return h if self._aim is None else vectors.larger(h, self._at_aim(h))

    def _at_aim(self, h):
        """Those at the aim; of a loss without a largest curvature at most so many times the largest of h."""
        at_aim, vectors = self._problem.curvature(self._aim), self._problem.vectors
        if np.isfinite(self._problem.loss.smoothness):
            return at_aim
        most = RULES.most_curved * vectors.largest(h)[0]
        return vectors.map(lambda h: namespace(h).clip(h, None, most), at_aim)

    def _sampled(self, h, n):
        """About n of these weights, as `RowVectors.sampled`; or all, if there are few more."""
        vectors = self._problem.vectors
        if vectors.count(h) <= 2 * n:
            return h
        if self._uniform is None:
            self._uniform = vectors.put(np.random.default_rng(0).random(vectors.n_rows))
        return vectors.sampled(h, n, self._uniform)

    def improve(self, aim: RowVector, grow: bool, settle: bool) -> None:
        """Let the next be new; where the last step fell short, for the way to its margins `aim`.

        grow: of more rows, if these are new; settle: where these were of all, and new, in the precision of the rows.
        """
        if self._problem.loss.is_quadratic:
            return
        self.is_rough = not (settle and self._is_new and self._is_whole)
        if grow and self._is_new and not self._is_whole:
            self._rows_a_term *= RULES.growth
        self._h, self._aim = None, aim


def solve(
    problem: L1Problem, A: WorkingSet, tol: float, max_iter: int = 100, share: float = 0.0,
    ask_with: Callable[[np.ndarray], list[Question]] = lambda w: [],
) -> None:  # fmt: skip
    """Prox-Newton from where the working set A is until the duality gap over it is at most tol.

    A answers look, ask, apply(c) and curvature(h, is_rough) = (Phi' diag(h) Phi, Phi' h), and keeps w, b, its row vectors, the
    gradient g of the mean loss in w, `effort`, and `weights`, the h of the model. The objective never rises; the end is above
    tol where no step lowers it by what counts. share: of the largest violation, what a step may leave. ask_with(w): questions
    to the rows, and what takes their answers, that are asked with a step to w which is expected to be the last.
    """
    gap = problem.dual_gap(A.z, A.w, A.largest_gradient)
    is_exact = problem.loss.is_quadratic
    trust, damping = 0.0 if is_exact else RULES.trust, RULES.damping
    for k in range(max_iter):
        if gap <= tol or A.effort.is_spent:
            break
        A.effort.add(RULES.effort)
        A.effort.add_around(A.work_of_a_step(is_exact))
        h, before, start = A.weights.at(A.z, len(A)), gap, A.objective(problem)
        # The gap shrinks with the violation.
        accuracy = max(0.3 * tol / gap, share, trust) * largest_violation(A.w, A.g, problem.alpha)
        asked = ask_with if is_exact or max_iter == 1 else lambda w: []
        moved, aim, is_wild = _model_step(problem, A, h, damping, accuracy, start, asked)
        while is_wild and damping < 1:
            damping = min(1.0, damping * RULES.damped)
            moved, aim, is_wild = _model_step(problem, A, h, damping, accuracy, start, asked)
        if (not moved and A.weights.is_best) or (is_exact and k == max_iter - 1):
            break
        trust = trust * RULES.trust if aim is None else min(RULES.most_trust, trust / RULES.trust)
        damping = max(RULES.damping, damping / RULES.damped) if aim is None else min(1.0, damping * RULES.damped)
        gap = problem.dual_gap(A.z, A.w, A.largest_gradient) if moved else gap
        fell = start - A.objective(problem)
        if A.weights.is_best and aim is None and gap > RULES.idle * before and fell <= RULES.creep * before:
            break
        if gap > max(RULES.slow, RULES.times * share) * before:
            A.weights.improve(aim, share == 0.0 or gap > RULES.poor * before, share == 0.0)


def _model_step(problem, A, h, damping, accuracy, start, ask_with):
    """(whether it moves, the aim, as of `_step`; whether it promised more than there is, and went nowhere).

    The loss is never below 0. A model that is has no minimum but for its damping: fewer rows are curved than there are terms.
    """
    H, slope_b = _quadratic_model(problem, A, h, damping)
    with np.errstate(over="ignore", invalid="ignore"):  # if rounding left H no minimum, d may be of any size
        d = minimize(H, A.g, A.w, problem.alpha, accuracy, A.effort) - A.w
        questions = ask_with(A.w + d) if np.abs(d).max(initial=0.0) < RULES.largest else []
        promise = A.g @ d + problem.alpha * (np.abs(A.w + d).sum() - np.abs(A.w).sum())
        moved, aim = _step(problem, A, d, slope_b @ d, start, min(0.0, promise), questions)  # above 0 it is rounding
    return moved, aim, aim is not None and not moved and promise < -2 * start and not problem.loss.is_quadratic


def _quadratic_model(problem, A, h, damping):
    """(H, slope): the Hessian in w with the intercept eliminated, and the intercept's step per step in w.

    H is damped by that share of its largest entry, at least by what rounding may have taken from its smallest eigenvalue.
    """
    H, m = A.curvature(h, A.weights.is_rough)
    damping = damping * H.diagonal().max(initial=0.0)
    slope = problem.followed(A.weights.total, m)
    H = H + np.outer(m, slope)
    H.flat[:: len(m) + 1] += damping
    return H, slope


def _step(problem, A, d, d_b, start, promise, questions):
    """Move A by the step, or by the half, a quarter, ... that lowers the objective by a share of what the model promises.

    Returns (whether one does, aim): the margins at the whole step, None where that was taken. Where the model is exact the
    whole step is expected to do, and its f, objective and gradient come from one pass.
    """
    if not np.abs(d).max(initial=0.0) < RULES.largest:
        return False, None

    def is_lower(objective, t):
        return objective <= start + 1e-4 * t * promise + 0.1 * ROUNDING * start

    f_1 = None
    if problem.loss.is_quadratic:
        b = problem.nearer_intercept(A.f, A.b) + d_b  # without what rounding has left in A.b
        f_1, loss, g, answers = A.look(problem, d, A.f, b, [ask for ask, _ in questions])
        if is_lower(loss + problem.penalty(A.w + d), 1.0):
            A.move(problem, A.w + d, b, f_1, loss)
            A.settle(g, questions, answers)
            return True, None
    return _line_search(problem, A, d, d_b, f_1, is_lower, questions)


def _line_search(problem, A, d, d_b, f_1, is_lower, questions):
    """Halve the step until the objective falls enough; f_1 is f at the whole step, or None where it has not been computed."""
    vectors = problem.vectors
    d_f = A.apply(d) if f_1 is None else vectors.along(f_1, -1.0, A.f)
    aim = problem.margins(vectors.along(A.f, 1.0, d_f), A.b + d_b)

    def objective_at(t):
        return problem.objective(problem.margins(vectors.along(A.f, t, d_f), A.b + t * d_b), A.w + t * d)

    t, objective = backtrack(objective_at, is_lower)
    if objective is None:
        return False, aim
    if np.isinf(problem.loss.smoothness):  # a whole step of a model without a bound may go anywhere
        aim = problem.margins(vectors.along(A.f, 2 * t, d_f), A.b + 2 * t * d_b)
    f = vectors.along(A.f, t, d_f)
    A.move(problem, A.w + t * d, problem.best_intercept(f, A.b + t * d_b), f)
    A.learn(questions)
    return True, aim if t < 1 else None
