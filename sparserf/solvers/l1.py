"""The l1 problem on a working set:

    minimise over w, b   (1/n) sum_i s_i L(phi_i'w + b, y_i) + alpha |w|_1.

The coefficients of some features must be at least 0 (`FeatureSet.nonnegative`); where one is 0, it
can leave only upwards. Prox-Newton (J. D. Lee, Y. Sun, M. A. Saunders, Proximal Newton-type methods
for minimizing composite functions, 2014): each step minimises the quadratic model of the losses,
with the penalty as it is, on the weighted Gram matrix Phi' diag(h) Phi, and searches along the
line. With the squared loss the model is exact and one step is the solution. With the loss of a
quantile most rows are where it is linear, and Newton's model sees the curvature of few rows. So
after a whole step that is rejected, a share of the curvatures of a majorant (`Problem.majorant`) is
added to the model, and more after each further one; with the whole majorant a whole step is sure to
lower the objective. For losses other than the squared one the Gram matrix is most of the work. It
is kept while the steps made with it make progress, and computed on a sample of the rows, and in
single precision, where these suffice (`CurvatureWeights`). The end is certified by the duality gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import namespace
from .._core.descent import largest_violation
from .active import ActiveFeatures
from .l1_quadratic import L1Quadratic, minimize
from .problem import SHORTEST_STEP, Problem, backtrack, feasible_slope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import RowVector
    from ..features import FeatureSet
    from ..rows import Rows
    from ..rows.rows import Question
    from .budget import Budget

# A fall of the objective below this share of it is rounding.
L1_ROUNDING = 1e-14
# A model that is not exact is minimised until at most a share of the violation is left: at first
# TRUST, multiplied by TRUST after each whole step, divided by it after a rejected one, and never
# above MOST_TRUST.
TRUST, MOST_TRUST = 0.1, 0.5
# Where that takes long, FORCING times the square of the share of the violation that the last step
# has left is enough (S. C. Eisenstat, H. F. Walker, Choosing the forcing terms in an inexact Newton
# method, 1996).
FORCING = 0.9
# The least damping of the model, as a share of the largest diagonal entry of its Hessian, in double
# and in single precision: as much as rounding may have taken from the smallest eigenvalue. After a
# rejected step it is multiplied by DAMPING_FACTOR, and after a whole one divided by it.
DAMPING, SINGLE_DAMPING = 1e-12, 1e-6
DAMPING_FACTOR = 100
# With more rows than this a new Gram matrix is in single precision, where that suffices. A fit of
# rules then took .7 of the time with 10,000 rows, and as long with 3,000.
MANY_ROWS = 5_000
# A step is slow if it leaves more than a share of the gap: SLOW_GAP, or TIMES_ALLOWED times the
# share of the violation that it was allowed to leave, if that is more. After a slow step the row
# weights are computed anew, at the new margins.
SLOW_GAP, TIMES_ALLOWED = 0.05, 5
# The sample of the rows grows after a slow step that leaves more than this share of the gap, or
# that was not allowed to be inexact.
POOR = 0.7
# The fit ends after a whole step of the best model that leaves more than the share IDLE of the gap,
# and lowers the objective by at most CREEP times the gap: that is rounding.
IDLE, CREEP = 0.9, 1e-6
# After a rejected step at least this share of a majorant is added to the curvatures. After each
# further one the share is multiplied by SHARE_FACTOR, and after each whole step divided by it.
LEAST_SHARE, SHARE_FACTOR = 0.01, 10
# The work of a step on hardly any rows and terms, in multiplications.
STEP_WORK = 1e7
# A step of this size or more, or NaN, shows that the model has no minimum.
LARGEST_STEP = 1e250
# The quadratic model is made of a sample of the rows: at first this many for each term, and GROWTH
# times as many whenever the sample grows.
ROWS_A_TERM = 8
GROWTH = 2


class L1Problem(Problem):
    """A problem with the penalty alpha |w|_1."""

    def objective(self, z: RowVector, w: np.ndarray) -> float:
        """Return the objective P at margins z = Phi w + b."""
        return self.mean_loss(z) + self.penalty(w)

    def penalty(self, w: np.ndarray) -> float:
        """Return alpha |w|_1."""
        return self.alpha * np.abs(w).sum()

    def dual_gap(self, z: RowVector, w: np.ndarray, largest: float) -> float:
        """Return the duality gap P - D >= 0; `largest` is the largest `feasible_slope` of any
        feature of the problem, in size.

        v = s L'(z) / n is scaled by c = min(1, alpha / largest) to be feasible: |c phi' v| <= alpha
        for all features, or c phi' v >= -alpha where the coefficient must be at least 0. Then D =
        -(1/n) sum_i s_i L*(c L'(z_i)). Feasibility also needs sum(v) = 0, which is the optimality
        of the intercept.
        """
        c = self.alpha / largest if largest > self.alpha else 1.0
        return max(0.0, self.mean_loss_and_conjugate(z, c) + float(self.alpha * np.abs(w).sum()))


class CurvatureWeights:
    """The row weights h of the quadratic model, whose Hessian is Phi' diag(h) Phi.

    They are s L''(z) / n at some margins z, of all rows or of a sample of them, and are kept until
    `improve` drops them. After a rejected step a share of the majorant there is added.

    share : float
        The share of the majorant.
    is_best : bool
        Whether no other weights make a better model: they are of all rows, at the z last asked for,
        in the precision of the rows.
    is_rough : bool
        Whether products in single precision will do.
    total : float
        The sum of h; 0 without an intercept.
    """

    is_best: bool
    is_rough: bool
    total: float
    share: float

    def __init__(self, problem: L1Problem):
        self._problem, self._h, self._rows_a_term, self._rejected = problem, None, ROWS_A_TERM, None
        is_curved = not problem.loss.is_quadratic
        self._has_majorant = is_curved and bool(np.isfinite(problem.loss.smoothness))
        self._may_be_rough = is_curved and problem.n_rows > MANY_ROWS
        self.share = 0.0
        self._uniform = None  # a random number for each row, by which the sample is drawn
        self._is_new = self._is_whole = False
        self.is_best, self.is_rough, self.total = False, self._may_be_rough, 0.0

    @property
    def shortest_step(self) -> float:
        """The shortest step with these weights: a whole one where others may make a better
        model."""
        return 1.0 if self._has_majorant and self.share < 1.0 else SHORTEST_STEP

    @property
    def problem(self) -> L1Problem:
        """The problem whose rows are weighted."""
        return self._problem

    def set_problem(self, problem: L1Problem) -> None:
        """Go on with another target of the same rows."""
        self._problem = problem

    def at(self, z: RowVector, n_terms: int) -> RowVector:
        """Return the cached row weights, or compute them at margins z."""
        self._is_new = self._h is None
        if self._is_new:
            everywhere = self._everywhere(z)
            self._h = (
                everywhere
                if self._problem.loss.is_quadratic
                else self._sampled(everywhere, self._rows_a_term * n_terms)
            )
            self._is_whole = self._h is everywhere
            self.total = (
                float(self._problem.vectors.total(self._h)) if self._problem.fit_intercept else 0.0
            )
        is_new_and_whole = self._is_new and self._is_whole and not self.is_rough
        is_right = not self.is_rough if self._problem.loss.is_quadratic else is_new_and_whole
        self.is_best = is_right and self._rejected is None
        return self._h

    def _everywhere(self, z):
        """Return the row weights of all rows at z, or at the margins of a rejected step where the
        weights there are larger."""
        # Row weights at the margins of a rejected step are at most this many times the largest
        # weight at its start.
        most_curved = 1e3
        # The curvature of each row where all have none, for a loss whose curvature has no bound.
        curvature_of_none = 1.0

        problem, vectors = self._problem, self._problem.vectors
        h = problem.curvature(z)
        if self.share > 0:
            return vectors.along(h, self.share, problem.majorant(z))
        # no row is curved, as where all are well beyond their margins: take the largest curvature
        if not vectors.count(h):
            most = (
                problem.loss.smoothness
                if np.isfinite(problem.loss.smoothness)
                else curvature_of_none
            )
            h = vectors.scaled(problem.weight, most / problem.n_rows)
        if self._rejected is None:
            return h
        at_rejected = problem.curvature(self._rejected)
        most = most_curved * vectors.largest(h)[0]
        at_rejected = vectors.map(lambda h: namespace(h).clip(h, None, most), at_rejected)
        return vectors.larger(h, at_rejected)

    def _sampled(self, h, n):
        """Return about n of these weights, as `RowVectors.sampled`; or all, if there are few
        more."""
        vectors = self._problem.vectors
        if vectors.count(h) <= 2 * n:
            return h
        if self._uniform is None:
            self._uniform = vectors.put(np.random.default_rng(0).random(vectors.n_rows))
        return vectors.sampled(h, n, self._uniform)

    def add_majorant(self) -> bool:
        """Add a larger share of the majorant, after a rejected step; return False if that is 1."""
        if not self._has_majorant or self.share == 1.0:
            return False
        self.share, self._h = min(1.0, max(SHARE_FACTOR * self.share, LEAST_SHARE)), None
        return True

    def reduce_majorant(self) -> None:
        """Add a smaller share of the majorant to the next weights, after a whole step."""
        self.share = self.share / SHARE_FACTOR if self.share > LEAST_SHARE else 0.0

    def improve(self, rejected: RowVector, grow: bool, settle: bool) -> None:
        """Drop the cached row weights. The next call of `at` computes them, covering the margins
        `rejected` of a rejected step.

        grow: take a larger sample, if the last one was new
        settle: compute in the precision of the rows, if the last weights were new and of all rows
        """
        if self._problem.loss.is_quadratic:
            self.is_rough = False
            return
        self.is_rough = self._may_be_rough and not (settle and self._is_new and self._is_whole)
        if grow and self._is_new and not self._is_whole:
            self._rows_a_term *= GROWTH
        self._h, self._rejected = None, rejected


class WorkingSet(ActiveFeatures):
    """The active features of the l1 problem, and the iterate on them.

    w, b, f : ndarray, float, row vector
        The coefficients, the intercept, and f = Phi w.
    z, v : row vectors
        The margins f + b, and the dual point there.
    g : ndarray
        The slopes Phi' v of the mean loss in the coefficients.
    weights : CurvatureWeights
        The row weights of the quadratic model.
    forcing : float
        The share of the violation that the next model may leave where minimising it takes long (see
        FORCING); 0 where models are exact.
    """

    forcing: float = 0.0
    w: np.ndarray
    g: np.ndarray
    b: float
    f: RowVector
    z: RowVector
    v: RowVector

    def __init__(self, rows: Rows, problem: L1Problem, budget: Budget):
        super().__init__(rows, budget)
        self.weights: CurvatureWeights = CurvatureWeights(problem)
        self.w, self.g = np.zeros(0), np.zeros(0)
        f = rows.vectors.zeros()
        self.move(problem, self.w, problem.best_intercept(f, 0.0), f)

    def move(
        self, problem: L1Problem, w: np.ndarray, b: float, f: RowVector, loss: float | None = None
    ) -> None:
        """Go to other coefficients. The slopes g are not known there until `learn` or `set_slopes`.

        loss: the mean loss there, if it is known
        """
        self.w, self.b, self.f, self._loss = w, b, f, loss
        self.z = problem.margins(f, b)
        self.v = problem.dual_point(self.z)

    def settle_on(self, problem: L1Problem, rows: Rows) -> None:
        """Go on with the same rows in another precision: compute f and the slopes anew.

        The Gram matrix stays, and is good enough as long as the steps made with it make progress.
        """
        is_finer = np.finfo(rows.dtype).eps < np.finfo(self._rows.dtype).eps
        self.set_precision(rows)
        self.weights.is_rough |= is_finer
        f = self.apply(self.w)
        self.move(problem, self.w, problem.best_intercept(f, self.b), f)
        self.learn([])

    def row_curvature(self) -> RowVector:
        """Return s L''(z) / n of each row; where that is 0 in some, s / n."""
        problem = self.weights.problem
        h = problem.curvature(self.z)
        if problem.vectors.count(h) == problem.n_rows:
            return h
        return problem.vectors.scaled(problem.weight, 1 / problem.n_rows)

    def put(self, w: np.ndarray, b: float, f: RowVector) -> None:
        """Replace coefficients, intercept and f, to be followed by `move`: margins and dual point
        are not computed yet."""
        self.w, self.b, self.f = w, b, f

    def objective(self, problem: L1Problem) -> float:
        """Return the objective at the iterate."""
        if self._loss is None:
            self._loss = problem.mean_loss(self.z)
        return self._loss + problem.penalty(self.w)

    def set_slopes(
        self, g: np.ndarray, questions: Sequence[Question], answers: Sequence[np.ndarray]
    ) -> None:
        """Take g for the slopes at v, and hand over the answers to the questions that were asked at
        v with them."""
        self.g = g
        for (_, take), answer in zip(questions, answers, strict=True):
            take(self.v, answer)

    def learn(self, questions: Sequence[Question]) -> None:
        """Compute the slopes g at v, and the answers to questions in the same pass."""
        g, answers = self.ask(self.v, [ask for ask, _ in questions])
        self.set_slopes(g, questions, answers)

    @property
    def largest_gradient(self) -> float:
        """The largest |g_j| of the feasible slopes, 0 without features."""
        return np.abs(self.feasible_slopes).max(initial=0.0)

    @property
    def feasible_slopes(self) -> np.ndarray:
        """The slopes g, as far as w can follow them (`feasible_slope`)."""
        return feasible_slope(self.g, self.features.nonnegative)

    def largest_violation(self, alpha: float) -> float:
        """Return the largest distance of 0 to the subdifferential of the objective in one
        coefficient."""
        return largest_violation(self.w, self.g, alpha, self.features.nonnegative)

    def add(self, features: FeatureSet, index: np.ndarray, g: np.ndarray) -> None:
        """Add features at the end, with coefficient zero and slope g."""
        self.append(features, index)
        self.w, self.g = np.concatenate([self.w, np.zeros(len(index))]), np.concatenate([self.g, g])

    def prune(self, but: np.ndarray | bool = False) -> None:
        """Drop the features whose coefficient is exactly zero, except where the mask `but`
        holds."""
        kept = np.flatnonzero((self.w != 0) | but)
        self.keep(kept)
        self.w, self.g = self.w[kept], self.g[kept]


def prox_newton(
    problem: L1Problem,
    A: WorkingSet,
    tol: float,
    max_iter: int = 100,
    share: float = 0.0,
    ask_with: Callable[[np.ndarray], list[Question]] = lambda w: [],
) -> None:
    """Move the working set A, by prox-Newton from its iterate, until the duality gap over it is at
    most tol.

    The objective never rises by more than rounding. The end is above tol where no step lowers the
    objective by more than rounding, the budget of A is spent, or max_iter steps are done.

    share : the share of the largest violation that may remain after a step
    ask_with : a function of w, the questions to ask the rows in the same pass as a step to w that
        is expected to be the last
    """
    gap = problem.dual_gap(A.z, A.w, A.largest_gradient)
    is_exact = problem.loss.is_quadratic
    trust, damping = 0.0 if is_exact else TRUST, DAMPING
    for k in range(max_iter):
        if gap <= tol or A.budget.is_spent:
            break
        A.budget.add(STEP_WORK)
        h, before, start = A.weights.at(A.z, len(A)), gap, A.objective(problem)

        # The gap shrinks with the violation: no more accuracy than the tolerance needs.
        violation = A.largest_violation(problem.alpha)
        accuracy = max(0.3 * tol / gap, share, trust) * violation
        asked = ask_with if is_exact or max_iter == 1 else lambda w: []
        accuracy = accuracy, max(accuracy, A.forcing * violation)

        moved, rejected, is_wild = _model_step(problem, A, h, damping, accuracy, start, asked)
        while not moved and rejected is not None and A.weights.add_majorant():
            h = A.weights.at(A.z, len(A))
            moved, rejected, is_wild = _model_step(problem, A, h, damping, accuracy, start, asked)
        while is_wild and damping < 1:
            damping = min(1.0, damping * DAMPING_FACTOR)
            moved, rejected, is_wild = _model_step(problem, A, h, damping, accuracy, start, asked)

        if (not moved and A.weights.is_best) or (
            is_exact and not A.weights.is_rough and k == max_iter - 1
        ):
            break

        if not is_exact and violation > 0:
            left = A.largest_violation(problem.alpha) / violation
            A.forcing = min(MOST_TRUST, FORCING * left**2)
        trust = trust * TRUST if rejected is None else min(MOST_TRUST, trust / TRUST)
        if rejected is None:
            A.weights.reduce_majorant()
            damping = max(DAMPING, damping / DAMPING_FACTOR)
        else:
            damping = min(1.0, damping * DAMPING_FACTOR)

        gap = problem.dual_gap(A.z, A.w, A.largest_gradient) if moved else gap
        fell = start - A.objective(problem)
        if (
            A.weights.is_best
            and rejected is None
            and gap > IDLE * before
            and fell <= CREEP * before
        ):
            break
        if gap > max(SLOW_GAP, TIMES_ALLOWED * share) * before:
            A.weights.improve(rejected, share == 0.0 or gap > POOR * before, share == 0.0)


def _model_step(problem, A, h, damping, accuracy, start, ask_with):
    """Minimise the quadratic model and step towards its minimum; return (moved, rejected, is_wild).

    moved : whether a step lowered the objective
    rejected : the margins at the end of the whole step where that was rejected, else None
    is_wild : whether the predicted decrease was more than there is to gain, and nothing was gained.
        A loss is never below 0. A model below 0 has a minimum by its damping alone, since fewer
        rows are curved than there are terms

    accuracy : the violation to which the model is minimised where that is quick, and where it is
        not
    damping : the share of the largest diagonal entry of the Hessian that is added to it; at least
        what rounding may have taken from its smallest eigenvalue. Features that are collinear, as a
        box and its two parts, would else be told apart by rounding
    """
    H, m = A.weighted_gram(h, A.weights.is_rough)
    damping = max(damping, SINGLE_DAMPING) if A.is_rough else damping
    damping = damping * H.diagonal().max(initial=0.0)
    # with the intercept eliminated, its step for one in each w
    slope_b = problem.intercept_response(A.weights.total, m)
    H = H + np.outer(m, slope_b)
    H.flat[:: len(m) + 1] += damping

    # Where rounding has left H no minimum, d may be of any size.
    model = L1Quadratic(H, A.g, A.w, problem.alpha, A.features.nonnegative)
    d = minimize(model, *accuracy, A.budget) - A.w
    questions = ask_with(A.w + d) if np.abs(d).max(initial=0.0) < LARGEST_STEP else []
    predicted_change = A.g @ d + problem.alpha * (np.abs(A.w + d).sum() - np.abs(A.w).sum())

    # A predicted change above 0 is rounding.
    change = min(0.0, predicted_change)
    moved, rejected = _step(problem, A, d, slope_b @ d, start, change, questions)

    is_wild = rejected is not None and not moved and predicted_change < -2 * start
    return moved, rejected, is_wild and not problem.loss.is_quadratic


def _step(problem, A, d, d_b, start, predicted_change, questions):
    """Move A by the first of the whole step, its half, a quarter, ... that lowers the objective
    enough.

    Return (moved, the margins at the end of the whole step where that was rejected, else None).

    Where the model is exact the whole step is expected to do, and its f, objective and slopes are
    computed in one pass.
    """
    # A step is taken where the objective falls by at least this share of the decrease that the
    # model predicts (Armijo's rule).
    armijo = 1e-4

    if not np.abs(d).max(initial=0.0) < LARGEST_STEP:
        return False, None

    def is_lower(objective, t):
        return objective <= start + armijo * t * predicted_change + 0.1 * L1_ROUNDING * start

    f_1 = None  # f at the whole step, where it has been computed
    if problem.loss.is_quadratic:
        b = problem.newton_intercept(A.f, A.b) + d_b  # without the rounding in A.b
        f_1, loss, g, answers = A.evaluate_step(problem, d, A.f, b, [ask for ask, _ in questions])
        if is_lower(loss + problem.penalty(A.w + d), 1.0):
            A.move(problem, A.w + d, b, f_1, loss)
            A.set_slopes(g, questions, answers)
            return True, None
    vectors = problem.vectors
    d_f = A.apply(d) if f_1 is None else vectors.along(f_1, -1.0, A.f)
    rejected = problem.margins(vectors.along(A.f, 1.0, d_f), A.b + d_b)

    def objective_at(t):
        return problem.objective(
            problem.margins(vectors.along(A.f, t, d_f), A.b + t * d_b), A.w + t * d
        )

    t, objective = backtrack(objective_at, is_lower, shortest=A.weights.shortest_step)
    if objective is None:
        return False, rejected
    if np.isinf(problem.loss.smoothness):  # a whole step of a model without a bound may go anywhere
        rejected = problem.margins(vectors.along(A.f, 2 * t, d_f), A.b + 2 * t * d_b)
    f = vectors.along(A.f, t, d_f)
    A.move(problem, A.w + t * d, problem.best_intercept(f, A.b + t * d_b), f)
    A.learn(questions)
    return True, rejected if t < 1 else None
