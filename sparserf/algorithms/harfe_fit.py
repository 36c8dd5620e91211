"""The fit of one target by HARFE: a gradient step, the s largest entries of it, ridge regression on
these; and its options.

`harfe.algorithm_1` is the loop of the HARFE paper, and `L0Fit.step` is one turn of it:

1. `L0Fit.select` takes the gradient step c~ = c - mu (gradient + alpha c), and S, the places of its
   s largest entries.
2. `L0Fit.solve_on` solves the ridge problem on S.
3. Where the objective has not fallen, mu is halved, and S chosen again.

Symbols are the paper's: A, the columns of the dictionary over their root mean squares r; c = r w,
for the coefficients w of the features themselves; c~, the gradient step; S, the support; mu, the
step size. g is the gradient of the mean loss in w over the whole dictionary, and p = alpha r^2, so
that the penalty alpha/2 ||c||^2 is 1/2 sum_j p_j w_j^2. At the solution of the ridge problem g / r
+ alpha c = 0 on the support.

Coefficients of some features must be at least 0 (`FeatureSet.nonnegative`); with the positive
selection those of all. Of such features only positive entries of c~ count, and those that ridge
regression makes negative leave the support.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self, TypeVar

import numpy as np

from .._base.arrays import check_no_overflow, namespace
from .._base.checks import check_choice, check_flag, check_integer, check_real, checked
from .._core.threshold import hard_threshold
from ..solvers import ridge
from ..solvers.active import Support
from ..solvers.problem import feasible_slope
from .arguments import FitOptions

if TYPE_CHECKING:
    from .._base.types import RowVector
    from ..features import FeatureSet
    from ..features.bandwidth import Gamma
    from ..features.feature_set import Solution
    from ..features.neurons import Activation
    from ..model import FitInfo
    from ..solvers.ridge import RidgeProblem
    from .fit_progress import Progress
    from .task import Task

T = TypeVar("T", bound="L0Fit")


@dataclass(frozen=True, kw_only=True, eq=False)
class HarfeOptions(FitOptions):
    """The arguments of `harfe` and `harfe_path` beyond X, y and the numbers of terms, checked."""

    n_components: int | None = None
    order: int | None = None
    activation: Activation | None = None
    gamma: Gamma = None
    alpha: float | None = checked(check_real, 0, strict=True, default=None)
    selection: Literal["magnitude", "positive"] = checked(
        check_choice, ("magnitude", "positive"), default="magnitude"
    )
    normalize: bool = checked(check_flag, default=True)
    step_size: float = checked(check_real, 0, strict=True, default=0.1)
    backtracking: bool = checked(check_flag, default=True)
    start: Literal["greedy", "zero"] = checked(check_choice, ("greedy", "zero"), default="greedy")
    max_iter: int = checked(check_integer, 1, default=50)
    tol: float = checked(check_real, 0, default=5e-3)


@dataclass(eq=False)
class SupportIterate:
    """The iterate of a fit: a support (ascending), the coefficients w on it, the intercept b, and
    the objective.

    f : Phi w, or None where the objective was predicted from inner products and no pass over the
        rows has been made
    is_feasible : whether the coefficients have the signs that the selection allows
    g : the gradient of the mean loss in the coefficients of the whole dictionary, or None until it
        is computed
    """

    index: np.ndarray
    w: np.ndarray
    b: float
    f: RowVector
    objective: float
    is_feasible: bool = True
    g: np.ndarray | None = None

    @classmethod
    def best_constant(cls, problem: RidgeProblem) -> Self:
        """Return the iterate of no terms, at the intercept that fits best alone."""
        f = problem.vectors.zeros()
        b = problem.best_intercept(f, 0.0)
        return cls(
            np.zeros(0, np.int64), np.zeros(0), b, f, problem.mean_loss(problem.margins(f, b))
        )

    def is_better_than(self, other: SupportIterate) -> bool:
        """Return whether this iterate is lower by more than rounding; any iterate is better than
        one that is not feasible."""
        # If the objective falls by less than this share of it, that is rounding.
        l0_rounding = 1e-12

        if not other.is_feasible:
            return True
        return self.is_feasible and self.objective < other.objective - l0_rounding * abs(
            other.objective
        )


class L0Fit:
    """The fit of one target over a dictionary that is drawn whole.

    problem : the ridge problem of the target
    iterate : the current iterate
    constant : the iterate of no terms
    at_rest : whether the last step has found no other support
    fits_well : whether the relative residual is at most the tolerance
    progress : the objectives so far, in units of y, and the callback
    p : the factor of w_j^2 / 2 in the penalty, for each feature of the dictionary
    nonnegative : a mask of the features whose coefficients must be at least 0
    """

    problem: RidgeProblem
    iterate: SupportIterate
    constant: SupportIterate
    at_rest: bool
    fits_well: bool
    progress: Progress
    p: np.ndarray
    nonnegative: np.ndarray

    def __init__(
        self,
        task: Task,
        y: np.ndarray,
        problem: RidgeProblem,
        constant: SupportIterate,
        dictionary: FeatureSet,
        r: np.ndarray,
        options: HarfeOptions,
    ):
        """Begin at the best constant of the problem of target y; r : the root mean squares of the
        features, or ones."""
        self.problem, self.iterate, self.constant = problem, constant, constant
        self.progress = task.progress(options.callback, y)
        self.p = np.minimum(problem.alpha * r * r, 1e300)
        self.nonnegative = dictionary.nonnegative | (options.selection == "positive")
        # The positive selection without backtracking may go by points with negative coefficients.
        self._always_nonnegative = (
            self.nonnegative if options.backtracking else dictionary.nonnegative
        )
        self._rows, self._dictionary, self._r = task.rows, dictionary, r
        self._support = Support(task.rows, dictionary, r)
        self._alpha = options.alpha
        self._tol = options.tol
        self._backtracking = options.backtracking
        self._step_size = self._mu = options.step_size / task.penalty_unit(y)
        self._s, self._row_weights = 0, None
        self.restart()

    def restart(self) -> None:
        """Begin the iterations for a number of terms, from where the last ones have ended."""
        self.progress.restart()
        self.at_rest = self.fits_well = False
        self.forget_past()

    def forget_past(self) -> None:
        """Forget the best iterate so far, and the supports that have been tried."""
        self._best, self._seen = None, set()

    def gradient(self) -> np.ndarray:
        """Return the gradient of the mean loss in c over the whole dictionary, at the current
        iterate."""
        return self._slopes_at(self.iterate) / self._r

    def _slopes_at(self, at):
        """Return g of an iterate, by a pass over the rows unless it is known."""
        if at.g is None:
            at.g = self._rows.correlate(
                self._dictionary, self.problem.dual_point(self.problem.margins(at.f, at.b))
            )
        return at.g

    def step(self, s: int) -> None:
        """Go to a better iterate of s terms, halving mu until there is one; without backtracking,
        to wherever mu leads.

        A smaller mu lets fewer new terms in. Where not even one new term lowers the objective, the
        fit is at rest; without backtracking it is at rest where a support comes back.
        """
        # An objective that is predicted from inner products is exact to this share of the loss of
        # the best constant.
        predicted = 1e-6

        self._s = s
        mu, most_new, tried = min(self._step_size, 2 * self._mu), s, None
        while True:
            S = self.select(mu, s, most_new)  # the s largest |c~|
            self.at_rest = np.array_equal(S, self.iterate.index) or (
                not self._backtracking and S.tobytes() in self._seen
            )
            if self.at_rest:
                return

            if not np.array_equal(S, tried):
                found, tried = self.solve_on(S), S  # ridge regression on S
                if not self._backtracking:
                    found = self._evaluated(found)
                    break
                # A pass over the rows decides. None is made where the predicted objective is too
                # high for its error to matter.
                here = self.iterate
                error = predicted * self.constant.objective if found.f is None else 0.0
                if not here.is_feasible or (
                    found.is_feasible and found.objective < here.objective + error
                ):
                    found = self._evaluated(found)
                    if found.is_better_than(here):
                        break

            self.at_rest = most_new == 1
            if self.at_rest:
                return
            mu = mu / 2
            most_new = max(1, min(most_new, np.setdiff1d(S, self.iterate.index).size) // 2)

        self._mu = mu
        self.go_to(found)

    def select(self, mu: float, s: int, most_new: int) -> np.ndarray:
        """Return S, the s largest |c~| of c~ = c - mu (gradient + alpha c), at most most_new of
        them not in the support.

        On the support the gradient of the objective is zero, so that c~ = c there; off it c = 0.

        Where coefficients must be at least 0, only c~ > 0 counts: a negative entry must not take
        the place of one that lowers the objective. The positive selection without backtracking
        keeps the positive ones among the s largest, as the reference implementation does.
        """
        index, w = self.iterate.index, self.iterate.w
        c_tilde = -mu * feasible_slope(self.gradient(), self._always_nonnegative)
        c_tilde[index] = 0.0
        new = largest(c_tilde, most_new)
        c = np.zeros(len(c_tilde))
        c[new], c[index] = c_tilde[new], w * self._r[index]
        S = largest(c, s)
        return S[(c[S] > 0) | ~self.nonnegative[S]]

    def solve_on(self, S: np.ndarray) -> SupportIterate:
        """Return the iterate of least objective on S.

        Terms whose coefficients must be positive, and are not, are dropped, and the others solved
        again.
        """
        while True:
            found = self._solve_ridge(S)
            negative = (found.w <= 0) & self._always_nonnegative[found.index]
            if not negative.any():
                return found
            S = found.index[~negative]

    def _solve_ridge(self, S):
        """Return the solution of ridge regression on S, whatever the signs of its coefficients."""
        A, problem = self._support, self.problem
        A.replace(S)
        p = self.p[A.index]
        if len(S) == 0:
            return self.constant

        if problem.loss.is_quadratic and len(S) <= problem.n_rows:
            # One Newton step from the best constant. It needs inner products alone, and no pass
            # over the rows; the objective is predicted from them, too, and as exact as they are.
            constant = self.constant
            # the row weights h of the Hessian and their sum, which are the same everywhere
            if self._row_weights is None:
                h = problem.row_curvature(constant.f, constant.b)
                self._row_weights = h, float(problem.vectors.total(h))
            h, total = self._row_weights
            g = self._slopes_at(constant)[A.index]
            at_constant = ridge.LocalModel(
                None, constant.objective, g, 0.0, (*A.weighted_gram(h), total)
            )
            d, e, fall = ridge.newton_step(problem, p, np.zeros(len(A)), at_constant)
            return self._make_iterate(d, constant.b + e, None, constant.objective - fall)

        # Start from the coefficients of the terms that stay: Phi w is f, or f + Phi change.
        here, zeros = self.iterate, self._rows.vectors.zeros()
        w, b, f, change = np.zeros(len(A)), here.b, zeros, None
        if problem.loss.is_quadratic:  # one step is the solution, from anywhere
            b = self.constant.b
        else:
            _, there, before = np.intersect1d(A.index, here.index, return_indices=True)
            w[there] = here.w[before]
            if np.count_nonzero(w) == np.count_nonzero(here.w):
                f = here.f
            else:
                change = w
        found = ridge.solve(problem, A, p, w, b, f, change)
        b = problem.best_intercept(found.f, found.b)
        return self._make_iterate(
            found.w, b, found.f, problem.objective(problem.margins(found.f, b), found.w, p)
        )

    def _evaluated(self, found):
        """Return a predicted iterate with f, its objective on the rows, and its gradient, all from
        one pass over them."""
        if found.f is not None:
            return found
        A, problem = self._support, self.problem
        w = found.w[np.searchsorted(found.index, A.index)]
        seen = A.local_model(
            problem, w, self._rows.vectors.zeros(), found.b, everything=self._dictionary
        )
        return self._make_iterate(
            w, found.b, seen.f, problem.penalised(seen.loss, w, self.p[A.index]), seen.g
        )

    def _make_iterate(self, w, b, f, objective, g=None):
        """Return the iterate of coefficients w, which are in the order in which the support has its
        columns."""
        order = np.argsort(self._support.index)
        is_feasible = bool((w >= 0)[self.nonnegative[self._support.index]].all())
        return SupportIterate(self._support.index[order], w[order], b, f, objective, is_feasible, g)

    def go_to(self, iterate: SupportIterate) -> None:
        """Stand at this iterate, and remember it where it is the best so far."""
        self.iterate = iterate
        self._seen.add(iterate.index.tobytes())
        if self._best is None or iterate.is_better_than(self._best):
            self._best = iterate

    def record(self) -> bool:
        """End an iteration: note the objective and call the callback. Return whether to stop."""
        best, problem = self._best or self.iterate, self.problem
        self.progress.note(best.objective)
        loss = problem.mean_loss(problem.margins(best.f, best.b))
        self.fits_well = loss <= self._tol**2 * self.constant.objective
        ended = self.progress.ask(self.info)
        return self.at_rest or self.fits_well or ended

    def go_to_best(self) -> None:
        """Go back to the best iterate since the last `restart`."""
        self.iterate = self._best or self.iterate
        # one that is not feasible may have been lower
        self.progress.correct(self.iterate.objective)

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the fit; certified : whether to compute the duality gap.

        The gap is the distance to a lower bound on the objective of any model of s terms.
        """
        at, problem, gap = self.iterate, self.problem, np.inf
        if certified:
            squares = feasible_slope(self.gradient(), self.nonnegative) ** 2
            gap = at.objective - problem.lower_bound(problem.margins(at.f, at.b), squares, self._s)
        return self.progress.info(
            lambda: at.objective,
            gap,
            converged=bool(self.at_rest or self.fits_well),
            n_drawn=len(self._dictionary),
            n_nonzero=int(np.count_nonzero(at.w)),
            alpha=self._alpha,
        )

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms by ascending index, in the units of y."""
        return self._solution_at(self.iterate)

    def solution_with(self, alpha: float) -> Solution:
        """Return the same with another penalty on the present support."""
        if alpha == self._alpha:
            return self.solution()
        p, self.p = self.p, np.minimum(self.p * (alpha / self._alpha), 1e300)
        try:
            return self._solution_at(self.solve_on(self.iterate.index))
        finally:
            self.p = p

    def _solution_at(self, at):
        used = at.w != 0
        index = at.index[used]
        w, b = self.progress.in_units_of_y(at.w[used], at.b)
        return index, self._dictionary.take(index), w, b


def begin_fits(
    task: Task, dictionary: FeatureSet, options: HarfeOptions, Kind: type[T] = L0Fit
) -> list[T]:
    """Return a fit of each target, at its best constant.

    One pass over the rows gives the root mean squares r of all features, where features are
    normalized, and the gradients at the constants.
    """
    n, problems, constants, dual_points = task.rows.n_rows, [], [], []
    for k, y in enumerate(task.targets):
        problem = task.problem(ridge.RidgeProblem, y, options.alpha, options.fit_intercept, k)
        constant = SupportIterate.best_constant(problem)
        problems.append(problem)
        constants.append(constant)
        dual_points.append(problem.dual_point(problem.margins(constant.f, constant.b)))

    def answer(block, s, *dual_points):
        squares = block.correlate_squares(dictionary, s / n) if options.normalize else np.ones(1)
        return squares, block.correlate(dictionary, namespace(s).stack(dual_points))

    squares, g = task.rows.sum(answer, problems[0].weight, *dual_points)
    r = (
        root_mean_squares(check_no_overflow(squares))
        if options.normalize
        else np.ones(len(dictionary))
    )
    fits = []
    for y, problem, constant, v, slopes in zip(
        task.targets, problems, constants, dual_points, check_no_overflow(g), strict=True
    ):
        is_rounding = np.abs(slopes / r).max(initial=0.0) <= problem.rounding_of_slopes(v)
        constant.g = np.zeros_like(slopes) if is_rounding else slopes
        fits.append(Kind(task, y, problem, constant, dictionary, r, options))
    return fits


def root_mean_squares(squares: np.ndarray) -> np.ndarray:
    """Return the root mean square r_j of each feature, from its mean square; 1 for a feature that
    is zero on all rows."""
    r = np.sqrt(squares)
    return np.where(r > 0, r, 1.0)


def largest(c: np.ndarray, s: int) -> np.ndarray:
    """Return the indices of the s largest |c_j| > 0, ascending; ties go to the first."""
    out = np.empty(min(s, len(c)), np.intp)
    return out[: hard_threshold(c, out)]
