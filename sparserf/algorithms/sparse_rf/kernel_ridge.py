"""Kernel ridge: a bump at each row, and a ridge penalty; the candidate of the search where only
near rows tell of a row.

With K_ij = exp(-sum_l m_l |x_il - x_jl|), the Laplacian kernel with a weight m_l of its own for
each input, it minimises

    (1/n) sum_i s_i L(z_i, y_i) + (alpha/2) c'K c,    z = a + K c + b,

where a is zero, or the margins of the best other candidate, whose errors the bumps then correct.
Bumps do not see inputs in which the model must rise or fall.

A loss whose curvature is at most kappa (`Loss.smoothness`) lies below the parabola of that
curvature that touches it at z. The minimum of these parabolas solves, for t = z - L'(z) / kappa and
ridge = n alpha / kappa,

    (K + ridge diag(1/s)) c = t - a - b,    sum_i c_i = 0 (that is the intercept).

With the squared loss that is the solution. For others it is repeated from its own z, with
Nesterov's momentum. One Cholesky factor serves all repetitions, all targets and both a.

The weights m are learned on few rows: they are made proportional to the root of the mean square of
the derivative of f in each input, and f is fitted again (A. Radhakrishnan et al., Mechanism for
feature learning in neural networks and backpropagation-free machine learning models, Science 383,
2024, whose matrix M is diagonal here). Then narrower kernels are tried on all rows of the sample:
the more rows, the nearer the neighbours. The rows held out choose.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..._base.progress import check_not_ended
from ...features import BumpBlock, FeatureSet
from ...features.learning import inputs_that_vary
from ...losses.offset import OffsetLoss
from ...model import FitInfo
from ...rows import HostVectors
from ...solvers.effort import VALUE
from ...solvers.ridge import RidgeProblem
from ..task import in_units, model_of
from .held_out import PathPoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...features.feature_set import Solution
    from ...losses import Loss
    from ...model import SparseModel
    from ...solvers.effort import Effort
    from ..task import Task
    from .held_out import Sample
    from .options import SparseRFOptions

# The most rows of a task: each has a bump. With bumps at 5,000 rows of three tables of 6,500 to
# 30,000 the errors on test rows fell by 0 to 4 %, and the search took up to 2.5 times as long.
MOST_BUMPS = 5_000
# The number of rows, about, on which weights and ridge are chosen, and of those at which
# derivatives are computed.
FEW_ROWS, FEW_DERIVATIVES = 1_000, 200
# The first ridge. Others are RIDGE_STEP times that, or divided by it, between the two limits.
FIRST_RIDGE, RIDGE_STEP, LEAST_RIDGE, LARGEST_RIDGE = 0.1, 4.0, 1e-3, 1e3
# The most that is added to K_ii, for a row of next to no weight: it is finite in single precision.
LARGEST_ON_DIAGONAL = 1e30
# How often weights are learned at most, and the least weight as a share of the largest.
MOST_LEARNED, LEAST_WEIGHT = 2, 0.02
# Each narrower kernel has NARROWER times the weights; on few rows wider ones are tried, too.
NARROWER = 2.5
# A kernel and a ridge that were chosen on less than 1 / MORE_ROWS of the rows are tried anew.
MORE_ROWS = 1.2
# The most repetitions for a loss that is not quadratic, in a search and at the end. They end once
# one changes the objective by less than ENOUGH of it.
REPETITIONS_OF_TRIAL, MOST_REPETITIONS, ENOUGH = 15, 100, 1e-4
# Reading an input of a bump takes the time of this number of multiplications.
AN_INPUT = 2
# The bumps at all rows have converged where the duality gap is at most this share of the objective.
CONVERGED = 1e-2


@dataclass(frozen=True, eq=False)
class KernelRidge:
    """The candidate of kernel ridge over certain encodings of the columns.

    encodings : the encodings of the stage of the task that bumps see; None: all
    options : the options of `sparse_rf`
    work : the expected work, where that of cosines is 1
    """

    encodings: np.ndarray | None
    options: SparseRFOptions
    work: float = 0.5
    is_constant = False

    def best_point(
        self,
        sample: Sample,
        number: int,
        effort: Effort,
        others: Mapping[Any, PathPoint],
        start: KernelPoint | None,
    ) -> tuple[KernelPoint, int]:
        """Return the best point on a sample, and the number of bumps that were tried.

        number : the number of the search
        others : the points of other candidates on this sample, by name
        start : the point, on other rows, whose weights and ridge to take or, where it had fewer
            rows, to begin with; None: they are learned
        """
        sample = replace(sample, task=sample.task.with_encodings(self.encodings))
        task, X = sample.task, sample.task.rows.array()
        of_others = [(name, point) for name, point in others.items() if point.n_terms]
        bases = [(None, np.zeros((len(task.targets), len(X))))]
        if of_others:
            name, best = min(of_others, key=lambda each: each[1].loss)
            bases.append((name, best.margins))
        fitted = np.flatnonzero(task.weight)
        trial = partial(Trial, sample, X, self.options.fit_intercept, effort)
        # Bumps that do not see all inputs are to tell what is left of the best other candidate.
        first = bases[:1] if task.constraints is None else bases
        choice = (
            start.choice
            if start
            else learned_weights(trial(some_of(fitted, FEW_ROWS), *(a for _, a in first)))
        )
        on_all = trial(fitted, *(margins for _, margins in bases))
        best = on_all.fit(choice)
        if start is None or sample.share > MORE_ROWS * start.share:
            best = on_all.at_best_ridge(on_all.narrowed(best))

        base, margins = bases[best.base]
        f, first = (
            task.rows.apply(bumps_at(X[fitted], best.choice), best.c),
            (number * len(task.targets) + 1) << 40,
        )
        margins = margins + task.rows.vectors.fetch(f) + best.b[:, None]
        fit = KernelFit.from_solution(task, X[fitted], fitted, best, first)
        losses_at = partial(sample.losses_at, targets=targets_of(task))
        point = KernelPoint(
            losses_at(margins),
            sample.held,
            sample.index,
            best.choice.ridge,
            sample.share,
            margins,
            losses_at,
            [fit],
            [fit.info()],
            groups=task.groups,
            choice=best.choice,
            first=first,
            base=base,
        )
        return point, len(fitted)

    def models(
        self,
        task: Task,
        points: Sequence[KernelPoint],
        bases: Sequence[SparseModel | None],
        effort: Effort,
    ) -> list[SparseModel]:
        """Return, for the point of each round, the bumps at all rows, with the mean of the weights
        and ridges of all rounds.

        bases : for each round the model to which its bumps are added, fitted to all rows; None:
            they stand alone
        effort : where its time is over, bumps are those of the search
        """
        task = task.with_encodings(self.encodings)
        # to a base, which has the centers
        added = replace(task, centers=[0.0 * center for center in task.centers])
        if effort.is_late:
            effort.note_cut("fits to all rows")
            found = zip(points, bases, strict=True)
            return [
                model_of([point.states[0]], task if base is None else added)
                for point, base in found
            ]
        weights = np.exp(np.mean([np.log(point.choice.weights) for point in points], axis=0))
        ridge = float(np.exp(np.mean([np.log(point.choice.ridge) for point in points])))
        choice = KernelChoice(points[0].choice.inputs, weights, ridge)
        X, s, y, some = task.rows.array(), task.weight, targets_of(task), np.arange(task.raw.n_rows)
        unit = units_of(task)
        margins = [
            np.zeros(y.shape) if base is None else base_margins(task, base) / unit[:, None]
            for base in bases
        ]
        effort.add_factor(len(X))
        K, loss = bumps_at(X, choice).transform(X).astype(np.float64), task.loss_of(task.targets[0])
        factor, models, solved = Factor(K, s, choice.ridge), [], {}
        for base, a in zip(bases, margins, strict=True):
            if id(base) not in solved:
                c, b = factor.fit(y, a, loss, self.options.fit_intercept)
                found = Solved(choice, 0, c, b, np.nan)
                fit = KernelFit.from_solution(task, X, some, found, points[0].first)
                fit = fit.certified(task, K, a, found, self.options.fit_intercept)
                solved[id(base)] = model_of([fit], task if base is None else added)
            models.append(solved[id(base)])
        return models


def some_of(index: np.ndarray, most: int) -> np.ndarray:
    """Return the indices, or `most` of them, evenly spaced."""
    return index if len(index) <= most else index[np.arange(most) * len(index) // most]


def targets_of(task: Task) -> np.ndarray:
    """Return the targets in their units, (n_targets, n_rows)."""
    return np.vstack([task.target_of(y) for y in task.targets])


def units_of(task: Task) -> np.ndarray:
    """Return the unit of each target."""
    return np.array([task.unit(y) for y in task.targets])


def base_margins(task: Task, model: SparseModel) -> np.ndarray:
    """Return the margins of a model at the rows, without the centers of the targets, (n_targets,
    n_rows)."""
    rows = task.raw.staged(model.features.stage)
    f = np.atleast_2d(
        rows.vectors.fetch(rows.apply(model.features.staged(None), np.atleast_2d(model.coef)))
    )
    return f + (np.atleast_1d(model.intercept) - np.ravel(task.centers))[:, None]


# Kernel ridge with a given kernel


@dataclass(frozen=True, eq=False)
class KernelChoice:
    """A kernel and a ridge.

    inputs, weights : the inputs that vary, and the weight m of each
    ridge : n alpha / kappa
    """

    inputs: np.ndarray
    weights: np.ndarray
    ridge: float = FIRST_RIDGE


@dataclass(frozen=True, eq=False)
class Solved:
    """A solution on some rows.

    choice : its kernel and ridge
    base : which of the given margins it adds to
    c, b : coefficients (n_targets, n_rows), intercepts (n_targets,)
    loss : the held-out loss
    """

    choice: KernelChoice
    base: int
    c: np.ndarray
    b: np.ndarray
    loss: float


def bumps_at(centers: np.ndarray, choice: KernelChoice) -> FeatureSet:
    """Return a bump at each of the centers, (n, n_inputs)."""
    weights = np.zeros(centers.shape)
    weights[:, choice.inputs] = choice.weights
    return FeatureSet([BumpBlock(1.0, weights, centers.astype(np.float64))], centers.shape[1])


class Factor:
    """The Cholesky factor of K + ridge diag(1/s), in the precision of K, and solutions with it."""

    def __init__(self, K: np.ndarray, s: np.ndarray, ridge: float):
        from scipy.linalg import cholesky

        M = K.copy()
        self._diagonal = ridge / np.maximum(s, ridge / LARGEST_ON_DIAGONAL)
        M.flat[:: len(K) + 1] += self._diagonal
        self._factor, self._dtype = (
            (cholesky(M, lower=True, overwrite_a=True, check_finite=False), True),
            K.dtype,
        )
        self._s, self._ridge, self._ones = s, ridge, self._solve(np.ones((1, len(K))))

    def _solve(self, t):
        from scipy.linalg import cho_solve

        return cho_solve(self._factor, t.T.astype(self._dtype), check_finite=False).T.astype(
            np.float64
        )

    def minimum(
        self, t: np.ndarray, fit_intercept: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (c, b, K c) that minimise the sum of s (K c + b - t)^2 + ridge c'K c, for each
        line of t."""
        c = self._solve(t)
        b = c.sum(axis=1) / self._ones.sum() if fit_intercept else np.zeros(len(t))
        c = c - b[:, None] * self._ones
        return c, b, t - b[:, None] - c * self._diagonal

    def fit(
        self,
        y: np.ndarray,
        a: np.ndarray,
        loss: Loss,
        fit_intercept: bool,
        repetitions: int = MOST_REPETITIONS,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (c, b) for targets y and margins a, (n_targets, n_rows)."""
        if loss.is_quadratic:
            return self.minimum(y - a, fit_intercept)[:2]
        kappa = loss.smoothness
        here = ahead = a
        momentum, lowest, is_done = 1.0, np.inf, False
        for _ in range(repetitions):
            c, b, f = self.minimum(ahead - loss.derivative(ahead, y) / kappa - a, fit_intercept)
            z = a + f + b[:, None]
            objective = float(
                (self._s * loss.value(z, y)).sum() + 0.5 * kappa * self._ridge * (c * f).sum()
            )
            is_done = abs(lowest - objective) < ENOUGH * abs(objective)
            momentum = 1.0 if objective > lowest else momentum
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = z + (momentum - 1) / following * (z - here)
            here, momentum, lowest = z, following, min(lowest, objective)
            if is_done:
                break
        return c, b


# What the rows held out choose


class Trial:
    """Fits to some rows of a sample, compared on its rows held out.

    some : the rows that are fitted
    centers : their encodings
    """

    def __init__(
        self,
        sample: Sample,
        X: np.ndarray,
        fit_intercept: bool,
        effort: Effort,
        some: np.ndarray,
        *bases: np.ndarray,
    ):
        task = sample.task
        self.task, self.some, self.centers = task, some, X[some]
        self._sample, self._held, self._effort, self._bases = (
            sample,
            np.flatnonzero(sample.held),
            effort,
            bases,
        )
        self._held_X, self._fit_intercept = X[self._held], fit_intercept
        self._s = task.weight[some] / task.weight[some].mean()
        self._y, self._loss = targets_of(task), task.loss_of(task.targets[0])

    def fit(self, choice: KernelChoice) -> Solved:
        """Return the solution, added to the base with which it predicts the rows held out best."""
        bumps = bumps_at(self.centers, choice)
        return self._fit(choice, bumps.transform(self.centers), bumps.transform(self._held_X))

    def _fit(self, choice, K, held_K):
        check_not_ended()
        self._effort.add_factor(len(K))
        self._effort.add(len(K) * (len(K) + len(held_K)) * (VALUE + AN_INPUT * len(choice.inputs)))
        solved, factor = [], Factor(K, self._s, choice.ridge)
        for k, base in enumerate(self._bases):
            c, b = factor.fit(
                self._y[:, self.some],
                base[:, self.some],
                self._loss,
                self._fit_intercept,
                REPETITIONS_OF_TRIAL,
            )
            margins = base.copy()
            margins[:, self._held] += c @ held_K.T + b[:, None]
            losses = self._sample.losses_at(margins, self._y)
            solved.append(Solved(choice, k, c, b, float(np.mean(self._sample.held * losses))))
        return min(solved, key=lambda each: each.loss)

    def at_best_ridge(self, first: Solved) -> Solved:
        """Return the best solution, going from the ridge of this one to larger or to smaller
        ones."""
        choice = first.choice
        bumps = bumps_at(self.centers, choice)
        fit, best = (
            partial(
                self._fit, K=bumps.transform(self.centers), held_K=bumps.transform(self._held_X)
            ),
            first,
        )
        for factor in (RIDGE_STEP, 1 / RIDGE_STEP):
            while LEAST_RIDGE <= best.choice.ridge * factor <= LARGEST_RIDGE:
                new = fit(replace(choice, ridge=best.choice.ridge * factor))
                if not new.loss < best.loss:
                    break
                best = new
            if best is not first:
                break
        return best

    def narrowed(self, best: Solved) -> Solved:
        """Return the best of this solution and those with narrower kernels."""
        while True:
            new = self.fit(replace(best.choice, weights=NARROWER * best.choice.weights))
            if not new.loss < best.loss:
                return best
            best = new

    def in_unit(self, choice: KernelChoice, weights: np.ndarray) -> KernelChoice:
        """Return the choice with weights in this proportion, with which the median distance of rows
        is 1."""
        weights = np.maximum(weights / weights.max(), LEAST_WEIGHT)
        X = some_of(self.centers[:, choice.inputs] * weights, FEW_DERIVATIVES)
        distance = sum(np.abs(np.subtract.outer(x, x)) for x in X.T)
        distance = distance[distance > 0]
        return replace(choice, weights=weights / (np.median(distance) if len(distance) else 1.0))

    def derivatives(self, solved: Solved) -> np.ndarray:
        """Return the root of the mean square of the derivative of K c in each input, at few of the
        rows."""
        choice, at = solved.choice, some_of(np.arange(len(self.centers)), FEW_DERIVATIVES)
        K, squares = (
            bumps_at(self.centers, choice).transform(self.centers[at]),
            np.zeros(len(choice.inputs)),
        )
        for place, (j, m) in enumerate(zip(choice.inputs, choice.weights, strict=True)):
            slope = (np.sign(self.centers[:, j] - self.centers[at, j][:, None]) * K) @ solved.c.T
            squares[place] = m * m * np.mean(slope**2)
        return np.sqrt(squares) if squares.any() else choice.weights


def learned_weights(trial: Trial) -> KernelChoice:
    """Return the kernel and the ridge that are best on few rows."""
    inputs, scale = inputs_that_vary(trial.task.rows, trial.task.weight, trial.task.stage)
    free = free_inputs(trial.task)
    inputs, scale = inputs[free[inputs]], scale[:, free[inputs]]
    inputs, weights = (
        (inputs, 1 / scale[0]) if len(inputs) else (np.flatnonzero(free)[:1], np.ones(1))
    )
    best = trial.at_best_ridge(trial.fit(trial.in_unit(KernelChoice(inputs, weights), weights)))
    for _ in range(MOST_LEARNED):
        new = trial.at_best_ridge(trial.fit(trial.in_unit(best.choice, trial.derivatives(best))))
        if not new.loss < best.loss:
            break
        best = new
    for size in (NARROWER, 1 / NARROWER):
        new = trial.at_best_ridge(
            trial.fit(replace(best.choice, weights=size * best.choice.weights))
        )
        best = min(best, new, key=lambda each: each.loss)
    return best.choice


def free_inputs(task: Task) -> np.ndarray:
    """Return a mask of the inputs that bumps may see: those in which the model need not rise, fall,
    or be convex or concave."""
    constraints = task.input_constraints
    if constraints is None:
        return np.ones(len(task.stage) if task.stage is not None else task.raw.n_features_in, bool)
    return ~(constraints.is_bound | constraints.is_barred)


# The point and the fit


@dataclass(frozen=True, eq=False)
class KernelPoint(PathPoint):
    """A `PathPoint` of kernel ridge.

    choice : the kernel and the ridge
    first : the index of the first row's bump
    base : the name of the candidate to whose margins bumps are added; None: they stand alone
    """

    is_large: ClassVar[bool] = True

    choice: KernelChoice = field(kw_only=True)
    first: int = field(kw_only=True)
    base: Any = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class KernelFit:
    """The bumps at some rows, all targets together, as `model_of` needs them.

    objective : the objective on these rows; of a fit of the search the held-out loss, all that it
        computes
    dual_gap : a bound on the distance of the objective to its optimum; infinite in the search
    """

    features: FeatureSet
    index: np.ndarray
    w: np.ndarray
    b: np.ndarray
    alpha: float
    objective: float
    dual_gap: float = np.inf

    @classmethod
    def from_solution(
        cls, task: Task, X: np.ndarray, places: np.ndarray, solved: Solved, first: int
    ) -> KernelFit:
        """Take the solution on the rows X, whose places among the rows of the task are given; equal
        rows have one bump."""
        _, which, place = np.unique(X, axis=0, return_index=True, return_inverse=True)
        c = np.zeros((len(solved.c), len(which)))
        np.add.at(c.T, place.ravel(), solved.c.T)
        order, unit = np.argsort(which), units_of(task)
        which = which[order]

        alpha = task.loss_of(task.targets[0]).smoothness * solved.choice.ridge / len(X)
        return cls(
            features=bumps_at(X[which], solved.choice),
            index=first + places[which],
            w=unit[:, None] * c[:, order],  # `solution` refuses coefficients that overflow
            b=unit * solved.b,
            alpha=float(alpha),
            objective=in_units(solved.loss, float(unit[0]), task.loss.degree),
        )

    def certified(
        self, task: Task, K: np.ndarray, a: np.ndarray, solved: Solved, fit_intercept: bool
    ) -> KernelFit:
        """Return the fit with its objective and its duality gap, over all rows of the task.

        K : the kernel matrix
        a : the margins to which the bumps are added, (n_targets, n_rows)
        """
        loss, units = OffsetLoss(task.loss_of(task.targets[0])), units_of(task)
        objective = gap = 0.0
        for y, a_k, c_k, b, unit in zip(
            targets_of(task), a, solved.c, solved.b, units, strict=True
        ):
            problem = RidgeProblem.from_arrays(
                HostVectors(len(K)),
                loss,
                OffsetLoss.targets(y, a_k),
                task.weight,
                self.alpha,
                fit_intercept,
            )
            f = c_k @ K
            here = problem.mean_loss(f + b) + 0.5 * self.alpha * float(c_k @ f)
            # The dual point at the best intercept: its entries sum to 0, so that its bound holds
            # for every intercept.
            z = f + problem.best_intercept(f, float(b))
            v = problem.dual_point(z)
            bound = problem.dual_value(problem.derivative(z), max(0.0, float(v @ K @ v)))
            objective += in_units(here, unit, task.loss.degree)
            gap += in_units(max(0.0, here - bound), unit, task.loss.degree)
        largest = float(np.finfo(np.float64).max)
        return replace(self, objective=min(objective, largest), dual_gap=min(gap, largest))

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the solution, which has converged where its gap is small."""
        return FitInfo(
            n_iter=1,
            converged=self.dual_gap <= CONVERGED * self.objective,
            objective=(self.objective,),
            dual_gap=self.dual_gap,
            n_drawn=len(self.index),
            n_nonzero=len(self.index),
            alpha=self.alpha,
        )

    def solution(self) -> Solution:
        """Return (index, features, w, b) by ascending index, in the units of y. Raise ValueError
        where they overflow."""
        if not (np.isfinite(self.w).all() and np.isfinite(self.b).all()):
            raise ValueError(
                "y must be of moderate size, got values whose coefficients overflow: scale it"
            )
        if len(self.w) == 1:
            return self.index, self.features, self.w[0], float(self.b[0])
        return self.index, self.features, self.w, self.b
