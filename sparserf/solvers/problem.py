"""The objective of a model on fixed rows, without its features: loss, target, sample weights,
strength of the penalty.

    (1/n) sum_i s_i L(z_i, y_i) + penalty(w),   z = f + b,   f = Phi w

Subclasses of `Problem` in this folder, and in `linear/`, add the penalty. Whatever has a number for
each row (y, s, f, z) is a row vector: it may lie in memory, on a device or on a cluster, and
`RowVectors` computes on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from .._base.arrays import check_no_overflow, namespace, outputs_like

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import RowVector
    from ..features import FeatureSet
    from ..losses.base import Loss
    from ..rows import Rows, RowVectors

OfKind = TypeVar("OfKind", bound="Problem")
# A slope phi'v of at most this share of sum |v| is rounding.
SLOPE_ROUNDING = 1e-12
# The shortest step that a line search tries, as a share of the whole one.
SHORTEST_STEP = 2.0**-33


@dataclass(eq=False)
class Iterate:
    """The iterate of a fit.

    w : ndarray of shape (n_terms,), or (n_outputs, n_terms)
        The coefficients.
    b : float, or ndarray of shape (n_outputs,)
        The intercept.
    f : row vector
        Phi w, the margins less the intercept.
    objective : float
        The objective at w and b.
    """

    w: np.ndarray
    b: float | np.ndarray
    f: RowVector
    objective: float


@dataclass(frozen=True, eq=False)
class Problem:
    """The mean loss over rows as a function of margins z = f + b; a subclass adds the penalty.

    y and weight are row vectors, as are f, z, v and h below. With several outputs, y and z have a
    first axis of outputs, whose losses are added up.

    vectors : RowVectors
        The operations on row vectors, where these live.
    loss : Loss
    y : row vector
        The target.
    weight : row vector
        The sample weights s, of mean 1.
    alpha : float
        The strength of the penalty.
    fit_intercept : bool
        Whether b is fitted; else it is 0.
    """

    vectors: RowVectors
    loss: Loss
    y: RowVector
    weight: RowVector
    alpha: float
    fit_intercept: bool

    @classmethod
    def from_arrays(
        cls,
        vectors: RowVectors,
        loss: Loss,
        y: np.ndarray,
        weight: np.ndarray,
        alpha: float,
        fit_intercept: bool,
    ) -> Self:
        """Make the problem of a target and sample weights that are ndarrays, putting them where the
        rows live."""
        return cls(vectors, loss, vectors.put(y), vectors.put(weight), alpha, fit_intercept)

    def with_penalty(self, Kind: type[OfKind], alpha: float) -> OfKind:
        """Return the problem of the same losses with the penalty of another kind of problem."""
        return Kind(self.vectors, self.loss, self.y, self.weight, alpha, self.fit_intercept)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.vectors.n_rows

    def margins(self, f: RowVector, b: float | np.ndarray) -> RowVector:
        """Return z = f + b; b is a number, or one for each output."""
        return self.vectors.map(lambda f: f + outputs_like(b, f), f)

    def _weighted_means(self, function, x):
        """Return (1/n) sum_i s_i function(x_i, y_i) of each output."""

        def answer(x, y, s):
            return namespace(x).sum(s * function(x, y), axis=-1)

        return np.asarray(self.vectors.sum(answer, x, self.y, self.weight) / self.n_rows)

    def mean_losses(self, z: RowVector) -> np.ndarray:
        """Return (1/n) sum_i s_i L(z_i, y_i) of each output."""
        return self._weighted_means(self.loss.value, z)

    def mean_loss(self, z: RowVector) -> float:
        """Return (1/n) sum_i s_i L(z_i, y_i), added up over the outputs."""
        return float(self.mean_losses(z).sum())

    def mean_loss_and_conjugate(self, z: RowVector, c: float) -> float:
        """Return (1/n) sum_i s_i (L(z_i) + L*(c L'(z_i))), which is the losses' part of the duality
        gap.

        c is the factor by which the dual point is scaled to be feasible.
        """
        loss, c = self.loss, float(c)

        def both(z, y):
            return loss.value(z, y) + loss.conjugate(c * loss.derivative(z, y), y)

        return float(self._weighted_means(both, z).sum())

    def mean_conjugate(self, u: RowVector, c: float) -> float:
        """Return (1/n) sum_i s_i L*(c u_i), added up over the outputs."""
        loss, c = self.loss, float(c)
        return float(self._weighted_means(lambda u, y: loss.conjugate(c * u, y), u).sum())

    def derivative(self, z: RowVector) -> RowVector:
        """Return L'(z_i) of each row."""
        return self.vectors.map(self.loss.derivative, z, self.y)

    def dual_point(self, z: RowVector) -> RowVector:
        """Return v = s L'(z) / n, the dual point: Phi' v is the gradient of the mean loss in the
        coefficients."""
        loss, n = self.loss, self.n_rows
        return self.vectors.map(
            lambda z, y, s: s * loss.derivative(z, y) / n, z, self.y, self.weight
        )

    def rounding_of_slopes(self, v: RowVector) -> float:
        """Return the size up to which a slope phi'v, with |phi| of about 1, is rounding."""
        size = self.vectors.total(self.vectors.map(lambda v: namespace(v).abs(v), v))
        return SLOPE_ROUNDING * float(np.sum(size))

    def curvature(self, z: RowVector) -> RowVector:
        """Return h = s L''(z) / n: Phi' diag(h) Phi is the Hessian of the mean loss in the
        coefficients."""
        loss, n = self.loss, self.n_rows
        return self.vectors.map(
            lambda z, y, s: s * loss.curvature(z, y) / n, z, self.y, self.weight
        )

    def majorant(self, z: RowVector) -> RowVector:
        """Return weights of rows, at least h, with which the quadratic model at z lies above the
        loss.

        For a loss of the residual that is symmetric up to a linear function, the least such weight
        is (L'(z) - L'(y)) / (z - y) (D. R. Hunter, K. Lange, Quantile regression via an MM
        algorithm, J. Comput. Graph. Stat. 9, 2000). For others it is the bound on the curvature.
        """
        loss, n = self.loss, self.n_rows
        if not loss.is_shift_invariant:
            return self.vectors.scaled(self.weight, loss.smoothness / n)

        def above(z, y, s):
            xp, way = namespace(z), z - y
            change = loss.derivative(z, y) - loss.derivative(y, y)
            is_at_y = xp.abs(way) <= 1e-9 * xp.abs(y)  # where the difference is rounding
            mean = change / xp.where(way == 0, xp.ones_like(way), way)
            most = xp.full_like(way, loss.smoothness)
            return s * xp.where(is_at_y, most, xp.clip(mean, 0.0, loss.smoothness)) / n

        return self.vectors.map(above, z, self.y, self.weight)

    def evaluate_step(
        self,
        rows: Rows,
        features: FeatureSet,
        change: np.ndarray,
        f: RowVector,
        b: float | np.ndarray,
        questions: Sequence[Callable[..., np.ndarray]],
    ) -> tuple[RowVector, float, list[np.ndarray]]:
        """Return (f + Phi change, the mean loss there with intercept b, the answers to questions),
        in one pass over the rows.

        questions : functions of (block of rows, dual point there), as those of `Rows.ask`
        """
        loss, n = self.loss, self.n_rows  # these, and not the problem itself, travel to the rows

        def answer(block, f, y, s):
            f = f + block.apply(features, change)
            z = f + outputs_like(b, f)
            losses = namespace(f).sum(s * loss.value(z, y), axis=-1)
            v = s * loss.derivative(z, y) / n  # the dual point
            return f, (losses, *(ask(block, v) for ask in questions))

        f, (losses, *answers) = rows.map_and_sum(answer, f, self.y, self.weight)
        return f, float(np.sum(losses / n)), [check_no_overflow(answer) for answer in answers]

    def intercept_response(self, total: float, x: float | np.ndarray) -> float | np.ndarray:
        """Return -x / total, where the intercept's own step minimises the quadratic model; 0
        without an intercept.

        total is the sum of the row weights h. x is Phi' h, for the step of the intercept that goes
        with a unit step of each coefficient; or the slope of the mean loss in the intercept, for
        its Newton step.
        """
        return -x / total if self.fit_intercept and total > 0 else np.zeros_like(x)

    def best_intercepts(self, f: RowVector, b: np.ndarray) -> np.ndarray:
        """Return `best_intercept` of each output, starting from b."""
        best, output = np.empty(len(b)), self.vectors.output
        for k, b_k in enumerate(b):
            of_one = replace(self, loss=self.loss.of_output(k), y=output(self.y, k))
            best[k] = of_one.best_intercept(output(f, k), float(b_k))
        return best

    def best_intercept(self, f: RowVector, b: float) -> float:
        """Return the b that minimises the mean loss at fixed f = Phi w, starting from b; 0 without
        an intercept.

        Newton's method within a bracket. Where a step does not halve the slope (far out the
        logistic loss is nearly linear), the bracket is halved instead, or, while it is unbounded,
        the step is doubled.
        """
        # exp(-far) is 0 in double precision: at this distance from all values of -f and y the loss
        # of no row changes any more, so that the best intercept is nearer.
        far = 746.0
        # The most steps, of Newton's method or of bisection.
        most_intercept_steps = 200

        if not self.fit_intercept:
            return 0.0
        low, high, previous = -np.inf, np.inf, np.inf
        largest_f, largest_y = self.vectors.largest(f, self.y)
        farthest = largest_f + self.loss.intercept_reach * largest_y + far
        for _ in range(most_intercept_steps):
            slope, curvature = self._slope_and_curvature(f, b)
            if slope == 0:
                break
            low, high = (low, b) if slope > 0 else (b, high)
            step = self.loss.intercept_step(slope, curvature)
            if abs(step) < self.loss.least_step:
                break
            new = min(max(b + step, -farthest), farthest)
            if not low < new < high or abs(slope) > 0.5 * previous:
                new = (
                    (low + high) / 2
                    if np.isfinite(low + high)
                    else b - np.sign(slope) * (1 + abs(b))
                )
            previous, last, b = abs(slope), b, float(new)
            if abs(b - last) <= 1e-15 * (1 + abs(b)):
                break
        return b

    def newton_intercept(self, f: RowVector, b: float) -> float:
        """Return b after one Newton step towards `best_intercept`; with the squared loss that is
        the best intercept."""
        slope, curvature = self._slope_and_curvature(f, b) if self.fit_intercept else (0.0, 1.0)
        return b - slope / max(curvature, 1e-300)

    def _slope_and_curvature(self, f, b):
        """Return the first and second derivative of the mean loss in the intercept."""
        loss, b = self.loss, float(b)

        def both(f, y, s):
            xp, z = namespace(f), f + b
            return xp.sum(s * loss.derivative(z, y), axis=-1), xp.sum(
                s * loss.curvature(z, y), axis=-1
            )

        slope, curvature = self.vectors.sum(both, f, self.y, self.weight)
        return float(slope / self.n_rows), float(curvature / self.n_rows)


def backtrack(
    point_at: Callable[[float], Any],
    is_lower: Callable[[Any, float], bool],
    t: float = 1.0,
    shortest: float = SHORTEST_STEP,
) -> tuple[float, Any]:
    """Return (t, point_at(t)) for the first of t, t/2, t/4, ... whose point is lower; (0, None) if
    none is.

    Each solver decides by is_lower(point, t) what counts as lower: by a share of the predicted
    decrease, or by more than rounding.
    """
    while t >= shortest:
        point = point_at(t)
        if is_lower(point, t):
            return t, point
        t /= 2
    return 0.0, None


def feasible_slope(g: np.ndarray, nonnegative: np.ndarray) -> np.ndarray:
    """Return the slopes g, 0 where they are positive and the coefficient must be at least 0: from 0
    it cannot follow them."""
    return np.where(nonnegative, np.minimum(g, 0.0), g)
