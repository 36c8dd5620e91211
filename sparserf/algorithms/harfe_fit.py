"""The options of HARFE, and the steps of a fit of one target: a gradient step, the s largest entries of it, ridge regression.

Symbols are the paper's: A, the columns of the dictionary over their scales r; c = r w, for the coefficients w of the features
themselves; c~, the gradient step; S, the support; mu, the step size. g is the gradient of the mean loss in w over the whole
dictionary, and p = alpha r^2, so that the penalty alpha/2 ||c||^2 is 1/2 sum_j p_j w_j^2. On the support of an iterate
g / r + alpha c = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self, TypeVar

import numpy as np

from .._base.arrays import check_no_overflow, namespace
from .._base.checks import check_choice, check_flag, check_integer, check_real
from .._core.threshold import hard_threshold
from ..solvers import ridge
from ..solvers.active import Support
from .selection import SelectionOptions

if TYPE_CHECKING:
    from .._base.types import RowVector
    from ..features import FeatureSet
    from ..features.feature_set import Solution
    from ..features.neurons import Activation
    from ..model import FitInfo
    from ..solvers.ridge import RidgeProblem
    from .task import Progress, Task

T = TypeVar("T", bound="L0Fit")
# An objective that falls by less than this share has not fallen, but for rounding.
ROUNDING = 1e-12
# An objective that was predicted from inner products is known to this share of the loss of the best constant.
PREDICTED = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class HarfeOptions(SelectionOptions):
    """The arguments of `harfe` and `harfe_path` beside X, y and the numbers of terms, checked."""

    alpha: float
    order: int | None = None
    activation: Activation = "sin"
    selection: Literal["magnitude", "positive"] = "magnitude"
    normalize: bool = True
    step_size: float = 0.1
    backtracking: bool = True
    start: Literal["greedy", "zero"] = "greedy"
    max_iter: int = 50
    tol: float = 5e-3

    def __post_init__(self):
        super().__post_init__()
        self._set_checked(
            alpha=check_real("alpha", self.alpha, 0, strict=True),
            selection=check_choice("selection", self.selection, ("magnitude", "positive")),
            normalize=check_flag("normalize", self.normalize),
            step_size=check_real("step_size", self.step_size, 0, strict=True),
            backtracking=check_flag("backtracking", self.backtracking),
            start=check_choice("start", self.start, ("greedy", "zero")),
            max_iter=check_integer("max_iter", self.max_iter, 1),
            tol=check_real("tol", self.tol, 0),
        )


@dataclass(eq=False)
class SupportIterate:
    """Where a fit stands: a support (ascending), the coefficients w on it, the intercept b, and the objective.

    f : Phi w, or None where the objective was predicted from inner products, before any row has been asked
    is_feasible : whether the selection allows the signs of the coefficients
    g : the gradient of the mean loss in the coefficients of the whole dictionary, or None until someone asks
    """

    index: np.ndarray
    w: np.ndarray
    b: float
    f: RowVector
    objective: float
    is_feasible: bool = True
    g: np.ndarray | None = None

    def is_better_than(self, other: SupportIterate) -> bool:
        """Return whether this one is lower by more than rounding; after an iterate that is not feasible any is better."""
        if not other.is_feasible:
            return True
        return self.is_feasible and self.objective < other.objective - ROUNDING * abs(other.objective)


@dataclass(frozen=True, eq=False)
class Start:
    """Where the fit of one target starts: its problem, and the iterate of no terms, at the best constant."""

    y: np.ndarray
    problem: RidgeProblem
    constant: SupportIterate

    @classmethod
    def from_target(cls, task: Task, y: np.ndarray, options: HarfeOptions) -> Self:
        """Find the best constant for a target."""
        problem = task.problem(ridge.RidgeProblem, y, options.alpha, options.fit_intercept)
        f = problem.vectors.zeros()
        b = problem.best_intercept(f, 0.0)
        loss = problem.mean_loss(problem.margins(f, b))
        return cls(y, problem, SupportIterate(np.zeros(0, np.int64), np.zeros(0), b, f, loss))

    def dual_point(self) -> RowVector:
        """Return v at the constant, whose product Phi'v is the gradient of the mean loss."""
        return self.problem.dual_point(self.problem.margins(self.constant.f, self.constant.b))


class L0Fit:
    """A fit of one target over a dictionary that is drawn whole: its iterate, the best one so far, and the steps between.

    point : the iterate where the fit stands
    at_rest : whether the last step has found no other support
    fits_well : whether the residual is below the tolerance
    """

    progress: Progress
    problem: RidgeProblem
    point: SupportIterate
    at_rest: bool
    fits_well: bool

    def __init__(self, task: Task, start: Start, dictionary: FeatureSet, r: np.ndarray, options: HarfeOptions):
        """r : the scales of the features of the dictionary."""
        self._rows, self._dictionary, self._r = task.rows, dictionary, r
        self.problem, self.progress = start.problem, task.progress(options.callback, start.y)
        self._p = np.minimum(self.problem.alpha * r * r, 1e300)
        self._support = Support(task.rows, dictionary, r)
        self._alpha, self._tol, self._backtracking = options.alpha, options.tol, options.backtracking
        self._positive = options.selection == "positive"
        self._step_size = self._mu = options.step_size
        self.point = self._constant = start.constant
        self._loss_of_constant, self._s = start.constant.objective, 0
        self.restart()

    def restart(self) -> None:
        """Begin the iterations for a number of terms, from where the last ones have ended."""
        self.progress.restart()
        self._best, self._seen = None, set()
        self.at_rest = self.fits_well = False

    @property
    def ended_by_callback(self) -> bool:
        return self.progress.ended_by_callback

    def _margins(self, point):
        return self.problem.margins(point.f, point.b)

    def _slopes(self, point):
        """Return g of an iterate, by a pass over rows and dictionary unless it is known."""
        if point.g is None:
            point.g = self._rows.correlate(self._dictionary, self.problem.dual_point(self._margins(point)))
        return point.g

    def gradient(self) -> np.ndarray:
        """Return the gradient of the mean loss in c, over the whole dictionary."""
        return self._slopes(self.point) / self._r

    def select(self, mu: float, s: int, most_new: int) -> np.ndarray:
        """Return S, the s largest |c~| of c~ = c - mu (gradient + alpha c), at most most_new of them not in the support.

        On the support the gradient of the objective is zero, so that c~ = c there; off it c = 0.

        Of these, the positive selection takes those that are positive, as the reference implementation does; with backtracking,
        it takes the s largest that are positive: no negative entry may take the place of one that lowers the objective.
        """
        index, w = self.point.index, self.point.w
        c_tilde = -mu * self.gradient()
        if self._positive and self._backtracking:
            c_tilde = np.maximum(c_tilde, 0.0)
        c_tilde[index] = 0.0
        new = largest(c_tilde, most_new)
        kept = np.zeros(len(c_tilde))
        kept[new], kept[index] = c_tilde[new], w * self._r[index]
        S = largest(kept, s)
        return S[kept[S] > 0] if self._positive else S

    def solve_on(self, S: np.ndarray) -> SupportIterate:
        """Return the iterate of least objective on S; with backtracking, the positive selection drops what is not positive."""
        while True:
            point = self._ridge(S)
            negative = point.w <= 0
            if not (self._positive and self._backtracking and negative.any()):
                return point
            S = point.index[~negative]

    def _ridge(self, S):
        """Return the solution of ridge regression on S."""
        A, problem = self._support, self.problem
        A.replace(S)
        p = self._p[A.index]
        if len(S) == 0:
            return self._constant
        if problem.loss.is_quadratic and len(S) <= problem.n_rows:
            return self._predicted(p)
        w, b, f, change = self._start()
        found = ridge.solve(problem, A, p, w, b, f, change)
        w, b, f = found.w, problem.best_intercept(found.f, found.b), found.f
        return self._iterate(w, b, f, problem.objective(problem.margins(f, b), w, p))

    def _iterate(self, w, b, f, objective, g=None):
        """Return the iterate of coefficients w in the order in which the support has its columns."""
        order = np.argsort(self._support.index)
        feasible = not self._positive or bool((w >= 0).all())
        return SupportIterate(self._support.index[order], w[order], b, f, objective, feasible, g)

    def _predicted(self, p):
        """Return the solution for the squared loss, from inner products alone: one Newton step from the best constant.

        The objective is predicted, too: it is as exact as inner products are, and no row is asked.
        """
        A, constant, (h, total) = self._support, self._constant, self._curvature
        seen = ridge.LocalModel(None, constant.objective, self._slopes(constant)[A.index], 0.0, (*A.curvature(h), total))
        d, e, promise = ridge.newton_step(self.problem, p, np.zeros(len(A)), seen)
        return self._iterate(d, constant.b + e, None, constant.objective - promise)

    @cached_property
    def _curvature(self):
        """The row weights h of the Hessian, and their sum: of the squared loss, which has the same everywhere."""
        h = self.problem.row_curvature(self._constant.f, self._constant.b)
        return h, float(self.problem.vectors.total(h))

    def _start(self):
        """Return (w, b, f, change), where the ridge solver begins on the support: Phi w is f, or f + Phi change."""
        A, old = self._support, self.point
        w, zeros = np.zeros(len(A)), self._rows.vectors.zeros()
        if self.problem.loss.is_quadratic:  # one step is the solution, from anywhere
            return w, self._constant.b, zeros, None
        _, new, kept = np.intersect1d(A.index, old.index, return_indices=True)
        w[new] = old.w[kept]
        if np.count_nonzero(w) == np.count_nonzero(old.w):
            return w, old.b, old.f, None
        return w, old.b, zeros, w

    def _evaluated(self, point):
        """Return a predicted iterate on the support as the rows have it, with its gradient from the same pass over them."""
        if point.f is not None:
            return point
        A = self._support
        w = point.w[np.searchsorted(point.index, A.index)]
        view = A.local_model(self.problem, w, self._rows.vectors.zeros(), point.b, everything=self._dictionary)
        return self._iterate(w, point.b, view.f, self.problem.penalised(view.loss, w, self._p[A.index]), view.g)

    def _may_be_better(self, point):
        """Return whether an iterate may be lower than the one where the fit stands, so that the rows must be asked."""
        doubt = PREDICTED * self._loss_of_constant if point.f is None else 0.0
        return not self.point.is_feasible or (point.is_feasible and point.objective < self.point.objective + doubt)

    def step(self, s: int) -> None:
        """Go to a better iterate of s terms, halving mu until there is one; without backtracking, to wherever mu leads.

        A smaller mu lets fewer new terms in. Where not even one new term lowers the objective, the fit is at rest; without
        backtracking it is where a support comes back.
        """
        self._s = s
        mu, most_new, tried = min(self._step_size, 2 * self._mu), s, None
        while True:
            S = self.select(mu, s, most_new)  # the s largest |c~|
            self.at_rest = np.array_equal(S, self.point.index) or (not self._backtracking and S.tobytes() in self._seen)
            if self.at_rest:
                return
            if not np.array_equal(S, tried):
                point, tried = self.solve_on(S), S  # ridge regression on S
                if not self._backtracking or self._may_be_better(point):
                    point = self._evaluated(point)
                    if not self._backtracking or point.is_better_than(self.point):
                        break
            self.at_rest = most_new == 1
            if self.at_rest:
                return
            mu, most_new = mu / 2, max(1, min(most_new, np.setdiff1d(S, self.point.index).size) // 2)
        self._mu = mu
        self.go_to(point)

    def minimise_on(self, S: np.ndarray) -> None:
        """Minimise on a support that is known, as the only iteration."""
        self._s = len(S)
        self.go_to(self._evaluated(self.solve_on(S)))
        self.record()

    def go_to(self, point: SupportIterate) -> None:
        """Stand at this iterate, and remember it where it is the best so far."""
        self.point = point
        self._seen.add(point.index.tobytes())
        if self._best is None or point.is_better_than(self._best):
            self._best = point

    def record(self) -> bool:
        """End an iteration: note the objective and tell the callback. Return whether to stop."""
        best = self._best or self.point
        self.progress.note(best.objective)
        self.fits_well = self.problem.mean_loss(self._margins(best)) <= self._tol**2 * self._loss_of_constant
        ended = self.progress.ask(self.info)
        return self.at_rest or self.fits_well or ended

    def finish(self) -> None:
        """Go back to the best iterate of these iterations."""
        self.point = self._best or self.point

    def info(self, certified: bool = True) -> FitInfo:
        return self.progress.info(
            lambda: self.point.objective, self._gap() if certified else np.inf,
            converged=bool(self.at_rest or self.fits_well), n_drawn=len(self._dictionary),
            n_nonzero=int(np.count_nonzero(self.point.w)), alpha=self._alpha,
        )  # fmt: skip

    def _gap(self):
        """Return the distance to a lower bound on the objective of any model of s terms."""
        squares = np.maximum(-self.gradient(), 0) ** 2 if self._positive else self.gradient() ** 2
        return self.point.objective - self.problem.lower_bound(self._margins(self.point), squares, self._s)

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms by ascending index, in the units of y."""
        used = self.point.w != 0
        index = self.point.index[used]
        w, b = self.progress.in_units_of_y(self.point.w[used], self.point.b)
        return index, self._dictionary.take(index), w, b


def begin_fits(task: Task, dictionary: FeatureSet, options: HarfeOptions, Kind: type[T]) -> list[T]:
    """Return a fit of each target, at its best constant.

    One pass over the rows gives the scales r of all features, where they are normalized, and the gradients at the constants.
    """
    starts, n = [Start.from_target(task, y, options) for y in task.targets], task.rows.n_rows

    def answer(block, s, *dual_points):
        squares = block.correlate_squares(dictionary, s / n) if options.normalize else np.ones(1)
        return squares, block.correlate(dictionary, namespace(s).stack(dual_points))

    squares, g = task.rows.sum(answer, starts[0].problem.weight, *(start.dual_point() for start in starts))
    r = scales_of(check_no_overflow(squares)) if options.normalize else np.ones(len(dictionary))
    for start, slopes in zip(starts, check_no_overflow(g), strict=True):
        start.constant.g = slopes
    return [Kind(task, start, dictionary, r, options) for start in starts]


def scales_of(squares: np.ndarray) -> np.ndarray:
    """Return r_j, the root mean square of each feature from its mean square, or 1 for a feature that is zero on all rows."""
    r = np.sqrt(squares)
    return np.where(r > 0, r, 1.0)


def largest(c: np.ndarray, s: int) -> np.ndarray:
    """Return the indices of the s largest |c_j| > 0, ascending; ties go to the first."""
    out = np.empty(min(s, len(c)), np.intp)
    return out[: hard_threshold(c, out)]
