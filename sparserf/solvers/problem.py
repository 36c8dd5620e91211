"""What the small solvers know of a problem: all but its features and its penalty's form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from .._base.arrays import check_no_overflow, namespace, outputs_like

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import Array, RowVector
    from ..features.feature_set import FeatureSet
    from ..losses.base import Loss
    from ..rows.home import Rows
    from ..rows.vectors import RowVectors

# exp(-FAR) is 0: at its best the intercept is no farther than this from all -f and y.
FAR = 746.0


@dataclass(frozen=True, eq=False)
class Problem:
    """Loss, target, weights of mean 1, the penalty's factor, and whether there is an intercept. z = Phi w + b.

    y, weight, and the f, z, v and h below are row vectors, which `vectors` computes on. Of several outputs, the first axis of y
    and z, losses are added up.
    """

    vectors: RowVectors
    loss: Loss
    y: RowVector
    weight: RowVector
    alpha: float
    fit_intercept: bool

    @classmethod
    def of(cls, vectors: RowVectors, loss: Loss, y: np.ndarray, weight: np.ndarray, alpha: float, fit_intercept: bool) -> Self:
        """Of ndarrays y and weight."""
        return cls(vectors, loss, vectors.put(y), vectors.put(weight), alpha, fit_intercept)

    @property
    def n_rows(self) -> int:
        return self.vectors.n_rows

    def margins(self, f: RowVector, b: float | np.ndarray) -> RowVector:
        """z = f + b, b a number, or one for each output."""
        return self.vectors.map(lambda f: f + outputs_like(b, f), f)

    def losses(self, z: RowVector) -> RowVector:
        """L of each row."""
        return self.vectors.map(self.loss.value, z, self.y)

    def mean_losses(self, z: RowVector) -> np.ndarray:
        """(1/n) sum s_i L(z_i), of each output."""
        loss = self.loss
        return self._mean(lambda z, y, s: s * loss.value(z, y), z, self.y, self.weight)

    def mean_loss(self, z: RowVector) -> float:
        return float(self.mean_losses(z).sum())

    def mean_pair(self, z: RowVector, c: float) -> float:
        """(1/n) sum s_i (L(z_i) + L*(c L'(z_i))): the losses' part of a duality gap at c times the dual point."""
        loss, c = self.loss, float(c)

        def pair(z, y, s):
            return s * (loss.value(z, y) + loss.conjugate(c * loss.derivative(z, y), y))

        return float(self._mean(pair, z, self.y, self.weight).sum())

    def mean_conjugate(self, u: RowVector, c: float) -> float:
        """(1/n) sum s_i L*(c u_i)."""
        loss, c = self.loss, float(c)
        return float(self._mean(lambda u, y, s: s * loss.conjugate(c * u, y), u, self.y, self.weight).sum())

    def _mean(self, answer, *vectors):
        sums = self.vectors.sum(lambda *parts: namespace(parts[0]).sum(answer(*parts), axis=-1), *vectors)
        return np.asarray(sums / self.n_rows)

    def derivative(self, z: RowVector) -> RowVector:
        """L'(z)."""
        return self.vectors.map(self.loss.derivative, z, self.y)

    def dual_point(self, z: RowVector) -> RowVector:
        """-theta = s L'(z) / n: its correlation with a feature is the gradient of the mean loss in that coefficient."""
        return self.vectors.map(self.dual_at(), z, self.y, self.weight)

    def dual_at(self) -> Callable[[Array, Array, Array], Array]:
        """The function of (z, y, s) that makes `dual_point`: all that travels to the rows."""
        loss, n = self.loss, self.n_rows
        return lambda z, y, s: s * loss.derivative(z, y) / n

    def look(
        self, rows: Rows, features: FeatureSet, change: np.ndarray, f: RowVector, b: float | np.ndarray,
        questions: Sequence[Callable[..., np.ndarray]],
    ) -> tuple[RowVector, float, list[np.ndarray]]:  # fmt: skip
        """(f + Phi c, the mean loss there with intercept b, answers as of `Rows.ask` at the dual point there), in one pass."""
        loss, dual = self.loss, self.dual_at()  # the problem itself must not travel with the answer

        def answer(block, f, y, s):
            f = f + block.apply(features, change)
            z = f + outputs_like(b, f)
            losses = namespace(f).sum(s * loss.value(z, y), axis=-1)
            v = dual(z, y, s)
            return f, (losses, *(ask(block, v) for ask in questions))

        f, (losses, *answers) = rows.map_and_sum(answer, f, self.y, self.weight)
        return f, float(np.sum(losses / self.n_rows)), [check_no_overflow(answer) for answer in answers]

    def curvature(self, z: RowVector) -> RowVector:
        """h = s L''(z) / n: the Hessian of the mean loss in w is Phi' diag(h) Phi."""
        return self.vectors.map(self.curvature_at(), z, self.y, self.weight)

    def curvature_at(self) -> Callable[[Array, Array, Array], Array]:
        """The function of (z, y, s) that makes `curvature`."""
        loss, n = self.loss, self.n_rows
        return lambda z, y, s: s * loss.curvature(z, y) / n

    def following(self, h: RowVector, x: float | np.ndarray) -> float | np.ndarray:
        """`followed` of row weights h."""
        return self.followed(float(np.sum(self.vectors.total(h))) if self.fit_intercept else 0.0, x)

    def followed(self, total: float, x: float | np.ndarray) -> float | np.ndarray:
        """-x / sum h: by how much the intercept follows a step of w for x = Phi' h, or its own slope x; 0 without one."""
        return -x / total if self.fit_intercept and total > 0 else np.zeros_like(x)

    def best_intercepts(self, f: RowVector, b: np.ndarray) -> np.ndarray:
        """`best_intercept` of each output."""
        output = self.vectors.output
        return np.array([self.output(k).best_intercept(output(f, k), float(b_k)) for k, b_k in enumerate(b)])

    def output(self, k: int) -> Self:
        """The problem of one output."""
        return replace(self, y=self.vectors.output(self.y, k))

    def best_intercept(self, f: RowVector, b: float) -> float:
        """argmin over b at fixed f = Phi w; 0 without an intercept.

        Newton's method in a bracket. Where it does not halve the slope (far out the logistic loss is nearly linear), the
        bracket is halved instead, or found by doubling.
        """
        if not self.fit_intercept:
            return 0.0
        low, high, previous = -np.inf, np.inf, np.inf
        farthest = sum(self.vectors.largest(f, self.y)) + FAR
        for _ in range(200):
            slope, curvature = self._slope_and_curvature(f, b)
            if slope == 0:
                break
            low, high = (low, b) if slope > 0 else (b, high)
            step = self.loss.intercept_step(slope, curvature)
            if abs(step) < self.loss.least_step:
                break
            new = min(max(b + step, -farthest), farthest)
            if not low < new < high or abs(slope) > 0.5 * previous:
                new = (low + high) / 2 if np.isfinite(low + high) else b - np.sign(slope) * (1 + abs(b))
            previous, last, b = abs(slope), b, float(new)
            if abs(b - last) <= 1e-15 * (1 + abs(b)):
                break
        return b

    def nearer_intercept(self, f: RowVector, b: float) -> float:
        """A step of Newton's method from b towards `best_intercept`: of the squared loss, to it."""
        slope, curvature = self._slope_and_curvature(f, b) if self.fit_intercept else (0.0, 1.0)
        return b - slope / max(curvature, 1e-300)

    def _slope_and_curvature(self, f, b):
        """Of the mean loss in the intercept."""
        loss, b = self.loss, float(b)

        def both(f, y, s):
            xp, z = namespace(f), f + b
            return xp.sum(s * loss.derivative(z, y), axis=-1), xp.sum(s * loss.curvature(z, y), axis=-1)

        return (float(total / self.n_rows) for total in self.vectors.sum(both, f, self.y, self.weight))
