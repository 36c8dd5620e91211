"""Multinomial models, fitted class by class: block coordinate descent, whose blocks are the
classes.

The loss of a row is -log of the softmax share of its class, over the margins z_k = f_k + b_k of all
classes. It is smooth and convex, and each penalty is of the coefficients of one class, so that
minimising over one class at a time, sweep after sweep, comes to the optimum of all (P. Tseng,
Convergence of a block coordinate descent method for nondifferentiable minimization, 2001). As a
function of one class's margin the loss is the logistic one, shifted by what the others add up to
(`OneClassMultinomial`): each class is fitted by the moves that an algorithm has for a single
target. `JointFit` is the fit of all classes; an algorithm gives it a `OneClassFit` of each.

Three things keep sweeps from creeping:

- After each sweep the intercepts of all classes are fitted together
  (`MultinomialProblem.best_intercepts`).
- A function that is added to the margins of all classes changes no probability, only the penalty,
  and sweeps would creep towards the best one: algorithms subtract what the classes have in common
  (`take_out_medians`, or the mean).
- A few sweeps are extrapolated (`Extrapolation`) or, with the l1 penalty, followed by a prox-Newton
  step for the coefficients of all classes together (`joint_l1_step`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from .._base.arrays import namespace, outputs_like
from .._base.progress import check_not_ended
from .._core.descent import largest_violation
from ..losses.classification import OneClassMultinomial, log_sum_exp, softmax
from .l1_quadratic import L1Quadratic, minimize
from .problem import Problem, backtrack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import RowVector
    from ..rows import Rows
    from .l1 import WorkingSet

# The loss of one class as a function of its own margins.
CLASS_VERSUS_REST = OneClassMultinomial()
# The quadratic model of `joint_l1_step` is minimised to this share of the violation.
SHARE = 0.01

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class MultinomialProblem(Problem):
    """The loss of all classes together, without the penalty; y is -1 or +1, of shape (n_classes,
    n_rows), as margins are."""

    def stack(self, zs: Sequence[RowVector]) -> RowVector:
        """Return the row vector of all classes, (n_classes, n_rows), of one for each class."""
        return self.vectors.map(
            lambda *zs: namespace(zs[0]).stack([namespace(z).reshape(z, (-1,)) for z in zs]), *zs
        )

    def in_turn(
        self, z: RowVector, fits: Sequence[T], move: Callable[[T, RowVector], RowVector | None]
    ) -> None:
        """Let each class move in its turn, from margins z of all, in time O(n) each.

        What the other classes add up to is computed for each row from three parts: the log of the
        sum of e^z over the classes behind this one, as they were at the start of the sweep; the
        same over the classes whose turn is over, as they have moved; and the margin of the row's
        own class. No class is subtracted from a sum of all, in which the others may have been lost
        to rounding.

        fits : the fit of each class
        move : a function of the fit of a class and the target of the loss CLASS_VERSUS_REST, which
            holds the margins of the others as they are by then; returns the margins of the class
            as they are then, or None to end the sweep
        """

        def behind(z):
            xp, after = namespace(z), [z[-1, ...]]
            for k in range(z.shape[0] - 2, 0, -1):
                after.append(log_sum_exp(xp.stack([z[k, ...], after[-1]])))
            return xp.stack(after[::-1])

        def margin_of_own(z, y):
            xp = namespace(z)
            return xp.sum(xp.where(y > 0, z, xp.zeros_like(z)), axis=0)

        def target(k, y, own, after, *before):
            xp, is_k = namespace(own), y[k, ...] > 0
            sums = [*before, *([after[k, ...]] if k < after.shape[0] else [])]
            others = sums[0] if len(sums) == 1 else log_sum_exp(xp.stack(sums))
            beyond = xp.where(is_k, xp.zeros_like(own), others - own)
            return xp.stack([y[k, ...], others, beyond])

        def moved(k, z, y, own, *before):
            xp, z = namespace(own), namespace(own).reshape(z, (-1,))
            before = log_sum_exp(xp.stack([*before, z])) if before else z
            return xp.stack([xp.where(y[k, ...] > 0, z, own), before])

        vectors, y, before = self.vectors, self.y, ()
        after, own = vectors.map(behind, z), vectors.map(margin_of_own, z, y)
        for k, fit in enumerate(fits):
            z_k = move(fit, vectors.map(partial(target, k), y, own, after, *before))
            if z_k is None or k == len(fits) - 1:
                return
            both = vectors.map(partial(moved, k), z_k, y, own, *before)
            own, before = vectors.output(both, 0), (vectors.output(both, 1),)

    def best_intercepts(self, f: RowVector, b: np.ndarray) -> np.ndarray:
        """Return the intercepts of all classes, of mean 0, that minimise the loss at fixed f,
        starting from b.

        Newton's method. Where its step does not lower the loss, each class's mean probability is
        brought to its share of the rows, which does from anywhere (J. N. Darroch, D. Ratcliff,
        Generalized iterative scaling for log-linear models, 1972).
        """
        # The most Newton steps. A step of size below `sure` is the last. One below `near` is taken
        # even where the loss does not fall, which rounding may hide.
        most_steps = 100
        sure = 1e-8
        near = 1e-4

        if not self.fit_intercept:
            return np.zeros(len(b))
        b, (loss, slope, shares, curvature) = b - b.mean(), self._expand_in_intercepts(f, b)
        for _ in range(most_steps):
            check_not_ended()
            newton = -np.linalg.pinv(curvature, rcond=1e-13, hermitian=True) @ slope
            if np.abs(slope).max() <= sure * shares.min() and np.abs(newton).max() <= sure:
                return b + newton
            scaled = np.log(np.maximum(shares - slope, 1e-300)) - np.log(np.maximum(shares, 1e-300))
            for step in (newton, scaled - scaled.mean()):
                seen = self._expand_in_intercepts(f, b + step)
                if seen[0] < loss:
                    break
            else:  # the loss may not fall by more than rounding, its slope still does
                return b + newton if np.abs(newton).max() <= near else b
            b, (loss, slope, shares, curvature) = b + step, seen
        return b

    def _expand_in_intercepts(self, f, b):
        """Return (the mean loss, its slopes in the intercepts, the mean probability of each class,
        its Hessian there)."""
        loss, b = self.loss, np.asarray(b)

        def answer(f, y, s):
            z = f + outputs_like(b, f)
            xp, p = namespace(z), softmax(z)
            return (
                xp.sum(s * loss.value(z, y)),
                xp.sum(s * loss.derivative(z, y), axis=-1),
                (p * s) @ p.T,
            )

        total, slope, products = self.vectors.sum(answer, f, self.y, self.weight)
        products = np.asarray(products) / self.n_rows
        shares = products.sum(axis=1)
        curvature = np.diag(shares) - products
        return float(total / self.n_rows), np.asarray(slope) / self.n_rows, shares, curvature


class OneClassFit:
    """The fit of one class while the margins of the others stay as they are: what the fit of a
    single target needs beside its moves.

    problem : its problem, with the loss CLASS_VERSUS_REST
    iterate : its coefficients w, its intercept b (a float, or an array of one), and f = Phi w
    """

    problem: Any
    iterate: Any

    def fix_other_classes(self, y: RowVector, b: float | None = None) -> None:
        """Minimise from now on against the margins of the others, which the target y of the loss
        CLASS_VERSUS_REST holds.

        b : the intercept to go to; None: the best one
        """
        self.problem, at = replace(self.problem, loss=CLASS_VERSUS_REST, y=y), self.iterate
        self.stand_at(self.problem.best_intercept(at.f, at.b) if b is None else b)

    def stand_at(self, b: float) -> None:
        """Go to an intercept, and compute anew what depends on the margins of the others."""
        raise NotImplementedError

    def penalty(self, w: np.ndarray) -> float:
        """Return the penalty of coefficients of the present features; infinity where their signs
        are not allowed."""
        raise NotImplementedError


F = TypeVar("F", bound=OneClassFit)


class JointFit(Generic[F]):
    """The fit of all classes together: block coordinate descent over the fits of the classes.

    joint : the problem of all classes
    fits : the fit of each class
    stopped : whether the fit has ended before its time, and with it the present sweep
    """

    joint: MultinomialProblem
    fits: Sequence[F]
    stopped: bool = False

    def __init__(self, joint: MultinomialProblem, fits: Sequence[F]):
        self.joint, self.fits, self._seen = joint, fits, None

    def take_out_common(self) -> None:
        """Subtract what all classes have in common, where that lowers the penalty: by default
        nothing."""

    def margins(self) -> RowVector:
        """Return the margins of all classes, (n_classes, n_rows)."""
        if self._seen is None:
            z = self.joint.stack([self._margins_of(fit) for fit in self.fits])
            self._seen = z, self.joint.mean_loss(z)
        return self._seen[0]

    def loss(self) -> float:
        """Return the mean loss."""
        self.margins()
        return self._seen[1]

    def objective(self) -> float:
        """Return the joint objective: the loss, and the penalties of all classes."""
        return self.loss() + sum(fit.penalty(fit.iterate.w) for fit in self.fits)

    def _margins_of(self, fit):
        return self.joint.margins(fit.iterate.f, fit.iterate.b)

    def sweep(self, move: Callable[[F], object]) -> bool:
        """Let each class move in its turn, against the others as they are by then; return whether
        any class moved. If so, `balance` must follow.

        move : a function of the fit of a class, which returns True if it has not moved
        """
        has_moved, start = False, self.margins()

        def turn(fit, y):
            nonlocal has_moved
            check_not_ended()
            self._seen = None
            if has_moved:
                fit.fix_other_classes(y)
            has_moved |= not move(fit)
            return None if self.stopped else self._margins_of(fit)

        self.joint.in_turn(start, self.fits, turn)
        return has_moved

    def balance(self) -> None:
        """Take out what classes have in common, go to the best intercepts of all, and give each
        class the margins of the others."""
        self._seen = None
        self.take_out_common()
        b, z = self._best_intercepts([fit.iterate for fit in self.fits])

        def turn(place, y):
            k, fit = place
            check_not_ended()
            fit.fix_other_classes(y, float(b[k]))
            return self.joint.vectors.output(z, k)

        self.joint.in_turn(z, list(enumerate(self.fits)), turn)
        self._seen = z, self.joint.mean_loss(z)

    def _best_intercepts(self, iterates):
        """Return (b, z) of all classes at the best intercepts, from the iterate of each class."""
        f = self.joint.stack([it.f for it in iterates])
        b = self.joint.best_intercepts(f, np.concatenate([np.ravel(it.b) for it in iterates]))
        return b, self.joint.margins(f, b)

    def descend(self, move: Callable[[F], object]) -> float:
        """Sweep, and extrapolate sweeps, until one lowers the objective by a negligible share of
        it; return 0 then, or after the most sweeps the decrease of the objective by the last."""
        # A sweep that lowers the objective by at most this share of it is the last.
        settled = 1e-7
        most_sweeps = 100

        extrapolation, fall = Extrapolation(), 0.0
        for _ in range(most_sweeps):
            before = self.objective()
            self.sweep(move)
            self.balance()
            self._extrapolate(extrapolation)
            fall = before - self.objective()
            if not fall > settled * before or self.stopped:
                return 0.0
        return fall

    def _extrapolate(self, extrapolation):
        """Go to the extrapolation of the last sweeps, if the objective is lower there."""
        combine, past = extrapolation.after_sweep([fit.iterate for fit in self.fits])
        ends = [
            replace(
                of_class[-1],
                w=combine(*(it.w for it in of_class)),
                b=combine(*(it.b for it in of_class)),
                f=self.joint.vectors.map(combine, *(it.f for it in of_class)),
            )
            for of_class in past
        ]
        if not ends:
            return
        _, z = self._best_intercepts(ends)
        penalty = sum(fit.penalty(end.w) for fit, end in zip(self.fits, ends, strict=True))
        if self.joint.mean_loss(z) + penalty < self.objective():
            for fit, end in zip(self.fits, ends, strict=True):
                fit.iterate = end
            self.balance()


class Extrapolation:
    """Anderson acceleration: the affine combination of the iterates after a few sweeps whose last
    moves cancel best.

    Q. Bertrand, M. Massias, Anderson acceleration of coordinate descent, 2021.
    """

    def __init__(self):
        self._sweeps, self._sizes = [], None

    def after_sweep(
        self, iterates: Sequence[Any]
    ) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
        """Take the iterate of each class after a sweep; return (a function that combines 5 arrays,
        the last 5 iterates of each class), after every fifth sweep.

        After other sweeps, and where the iterates do not move, no iterates are returned. Sweeps
        before one that changes the number of terms are forgotten.
        """
        # The number of sweeps that are extrapolated together.
        depth = 5

        def combine(*xs):
            return sum(share * x for share, x in zip(shares, xs, strict=True))

        sizes, shares = [np.size(it.w) for it in iterates], []
        self._sweeps = self._sweeps if sizes == self._sizes else []
        self._sizes = sizes
        self._sweeps.append((np.concatenate([np.append(it.w, it.b) for it in iterates]), iterates))
        if len(self._sweeps) <= depth:
            return combine, []
        places, sweeps = zip(*self._sweeps, strict=True)
        self._sweeps = []
        moves = np.diff(np.stack(places), axis=0)
        products = moves @ moves.T
        trace = np.trace(products)
        if not 0 < trace < np.inf:
            return combine, []
        c = np.linalg.solve(products / trace + 1e-12 * np.eye(depth), np.ones(depth))
        shares += (c / c.sum()).tolist()
        return combine, list(zip(*sweeps[1:], strict=True))


# Under the l1 penalty


def take_out_medians(rows: Rows, sets: Sequence[WorkingSet]) -> None:
    """Subtract, from the coefficients of each feature that all classes have, their median over the
    classes.

    No probability changes, and the penalty falls. The working sets are moved by `WorkingSet.put`,
    to be followed by `JointFit.balance`.
    """
    index, places = shared_features([A.index for A in sets])
    if len(index) == 0:
        return
    by = -nearest_median(np.stack([A.w[there] for A, there in zip(sets, places, strict=True)]))
    moved = np.flatnonzero(by)
    if len(moved) == 0:
        return
    change = rows.apply(sets[0].features.take(places[0][moved]), by[moved])
    for A, there in zip(sets, places, strict=True):
        w = A.w.copy()
        w[there[moved]] += by[moved]
        A.put(w, A.b, rows.vectors.along(A.f, 1.0, change))


def shared_features(indices: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return (the indices of features that all classes have, their places among the features of
    each class)."""
    every = reduce(np.intersect1d, indices)
    return every, [np.intersect1d(index, every, return_indices=True)[1] for index in indices]


def nearest_median(w: np.ndarray) -> np.ndarray:
    """Return, for each column of w, (n_classes, n_terms), the median that is nearest to 0.

    Subtracting a median from the column makes the sum of absolute values least; between two classes
    there is a range of them.
    """
    w, n = np.sort(w, axis=0), len(w)
    return np.clip(0.0, w[(n - 1) // 2], w[n // 2])


def joint_l1_step(
    rows: Rows, problem: MultinomialProblem, sets: Sequence[WorkingSet], z: RowVector, alpha: float
) -> bool:
    """Make a prox-Newton step of all classes together; return whether one lowers the objective.

    It helps where classes are coupled so strongly that sweeps creep. The working sets are moved by
    `WorkingSet.put`, to be followed by `JointFit.balance`.

    sets : the working set of each class, with its slopes g at the margins z of all
    """
    w, g = (np.concatenate([getattr(A, name) for A in sets]) for name in ("w", "g"))
    starts, along = np.cumsum([len(A) for A in sets])[:-1], problem.vectors.along
    H, slope_b = _joint_quadratic_model(rows, problem, sets, z)
    accuracy = SHARE * largest_violation(w, g, alpha)
    d = minimize(L1Quadratic(H, g, w, alpha), accuracy, budget=sets[0].budget) - w
    if not np.isfinite(d).all():
        return False
    d_b, of_each = slope_b @ d, np.split(d, starts)
    d_f = [A.apply(step) for A, step in zip(sets, of_each, strict=True)]
    d_z = problem.margins(problem.stack(d_f), d_b)

    def objective_at(t):
        return problem.mean_loss(along(z, t, d_z)) + alpha * np.abs(w + t * d).sum()

    start = objective_at(0.0)
    t, objective = backtrack(objective_at, lambda objective, t: objective < start)
    if objective is not None:
        for A, step, e, change in zip(sets, of_each, d_b, d_f, strict=True):
            A.put(A.w + t * step, float(A.b + t * e), along(A.f, t, change))
    return objective is not None


def _joint_quadratic_model(rows, problem, sets, z):
    """Return (H, slope_b): the Hessian in all coefficients with the intercepts eliminated, and
    their step for one in each."""
    # The damping of that Hessian, as a share of its largest diagonal entry.
    damping = 1e-12

    def row_weights(i, z, s):
        """Return s / n times row i of diag(p) - p p', the Hessian of the loss in the margins."""
        xp, p = namespace(z), softmax(z)
        own = [p[i, ...] if j == i else xp.zeros_like(p[i, ...]) for j in range(p.shape[0])]
        return (xp.stack(own) - p[i, ...] * p) * (s / problem_rows)

    n, k, vectors, problem_rows = sum(map(len, sets)), len(sets), problem.vectors, problem.n_rows
    ends = np.cumsum([0, *map(len, sets)])
    places = [slice(*ends[i : i + 2]) for i in range(k)]
    H, M, T = np.zeros((n, n)), np.zeros((n, k)), np.zeros((k, k))
    for i, A in enumerate(sets):
        h = vectors.map(partial(row_weights, i), z, problem.weight)
        M[places[i]], T[i] = rows.correlate(A.features, h).T, vectors.total(h)
        for j in range(i, k):
            sign = 1.0 if i == j else -1.0
            weights = vectors.scaled(vectors.output(h, j), sign)
            cross = sign * rows.gram(A.features, sets[j].features, weights)
            H[places[i], places[j]], H[places[j], places[i]] = cross, cross.T
    sets[0].budget.add(rows.n_rows * n * n / 2)
    slope_b = np.zeros((k, n))
    if problem.fit_intercept:
        slope_b = -np.linalg.pinv(T, rcond=1e-13, hermitian=True) @ M.T
    H += M @ slope_b
    H.flat[:: n + 1] += damping * H.diagonal().max(initial=0.0)
    return H, slope_b
