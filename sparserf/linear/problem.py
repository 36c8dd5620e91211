"""The losses of a linear model over its rows, for several outputs at once: all that Newton's method computes on row vectors.

Row vectors f, v, h, u have a line for each output; sums over the rows are ndarrays with a number for each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import namespace, outputs_like
from ..solvers.krylov import norms
from ..solvers.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import RowVector
    from ..losses.base import Loss
    from ..rows import RowVectors
    from .point import Point

# A row of less curvature than this share of the largest counts as flat.
FLAT = 1e-10


@dataclass(frozen=True, eq=False)
class LinearProblem(Problem):
    """The penalty is alpha/2 |w|^2. What is asked of the rows together is one answer, which holds no row vectors itself."""

    n_outputs: int = 1

    @classmethod
    def from_arrays(
        cls, vectors: RowVectors, loss: Loss, y: np.ndarray, weight: np.ndarray, alpha: float, fit_intercept: bool
    ) -> LinearProblem:
        """Of ndarrays y, (n_outputs, n_rows), and weight."""
        return cls(vectors, loss, vectors.put(y), vectors.put(weight), alpha, fit_intercept, len(y))

    def in_home(self, move: Callable[[RowVector], RowVector], vectors: RowVectors) -> LinearProblem:
        """The same problem, its row vectors moved to another home by move(vector)."""
        return replace(self, vectors=vectors, y=move(self.y), weight=move(self.weight))

    def look_at(self, f: RowVector, b: np.ndarray) -> tuple[RowVector, RowVector]:
        """(v, h): the dual point s L'(z) / n and the curvature s L''(z) / n at margins z = f + b."""
        z = self.margins(f, b)
        return self.dual_point(z), self.curvature(z)

    def look_along(self, point: Point, step: Point, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(the mean loss, its slope in t) of each output at point + t step."""
        loss, n, b, b_step = self.loss, self.n_rows, point.b + t * step.b, step.b

        def answer(f, d, y, s):
            xp, z = namespace(f), f + outputs_like(t, d) * d + outputs_like(b, f)
            v = s * loss.derivative(z, y) / n
            return xp.sum(s * loss.value(z, y), axis=-1), xp.vecdot(v, d + outputs_like(b_step, d))

        losses, slopes = self.vectors.sum(answer, point.f, step.f, self.y, self.weight)
        return losses / n, slopes

    def least_curvature(self, f: RowVector, b: np.ndarray, tube: float) -> RowVector:
        """The least s L''(z) / n of margins at -tube, 0 and tube from z = f + b."""
        loss, n = self.loss, self.n_rows

        def answer(f, y, s):
            xp, z = namespace(f), f + outputs_like(b, f)
            low, middle, high = (s * loss.curvature(z + shift, y) / n for shift in (-tube, 0.0, tube))
            return xp.minimum(xp.minimum(low, middle), high)

        return self.vectors.map(answer, f, self.y, self.weight)

    def follow(self, total: np.ndarray, x: np.ndarray) -> np.ndarray:
        """-x / total: by how much the intercept moves where its curvature is total and its slope x; 0 without an intercept."""
        return -np.divide(x, total, out=np.zeros_like(x), where=(total > 0) & self.fit_intercept)

    def largest(self, h: RowVector) -> np.ndarray:
        """The largest h of each output."""
        return self.vectors.sum(lambda h: namespace(h).max(h, axis=-1), h, add=np.maximum)

    def smoothness_at(self, h: RowVector) -> float | np.ndarray:
        """A bound of L'', or where it has none twice the largest of each output where the curvature is h: as margins move by
        less than log 2, the loss being self-concordant."""
        if np.isfinite(self.loss.smoothness):
            return self.loss.smoothness
        n = self.n_rows
        return 2 * self.vectors.sum(lambda h, s: namespace(h).max(n * h / s, axis=-1), h, self.weight, add=np.maximum)

    def curved(self, h: RowVector) -> RowVector:
        """h, and 0 where it is flat."""
        flat = FLAT * self.largest(h)

        def answer(h):
            return namespace(h).where(h > outputs_like(flat, h), h, namespace(h).zeros_like(h))

        return self.vectors.map(answer, h)

    def dual_of(self, u: RowVector, v: RowVector, curved: RowVector) -> RowVector:
        """The dual point a = -alpha u, but v in flat rows; of the sum 0 where there is an intercept. None: u is no number."""
        alpha = self.alpha

        def parts(u, v, h):
            return namespace(u).where(h > 0, -alpha * u, v)

        def sums(u, v, h):
            xp = namespace(u)
            return xp.sum(parts(u, v, h), axis=-1), xp.sum(h, axis=-1)

        slope, total = self.vectors.sum(sums, u, v, curved)
        if not np.isfinite(slope).all():
            return None
        shift = self.follow(total, slope)
        return self.vectors.map(lambda u, v, h: parts(u, v, h) + h * outputs_like(shift, h), u, v, curved)

    def most_curved(self, h: RowVector) -> RowVector:
        """The largest h of each row among its outputs: a row vector of one."""
        return self.vectors.map(lambda h: namespace(h).max(h, axis=0), h)

    def u_of(self, v: RowVector) -> RowVector:
        """u = -v / alpha, which makes w = Z'u of the dual point v."""
        alpha = self.alpha
        return self.vectors.map(lambda v: -v / alpha, v)

    def u_of_flat(self, u: RowVector, v: RowVector, curved: RowVector) -> RowVector:
        """-(u + v / alpha) in flat rows, 0 in others: the part of the step in u that is known."""
        alpha = self.alpha

        def answer(u, v, h):
            return namespace(u).where(h > 0, namespace(u).zeros_like(u), -(u + v / alpha))

        return self.vectors.map(answer, u, v, curved)

    def over_roots(self, v: RowVector, u: RowVector, step: RowVector, s: RowVector) -> RowVector:
        """(v + alpha (u + step)) / s, and 0 where s is 0."""
        alpha = self.alpha

        def answer(v, u, step, s):
            xp, is_curved = namespace(s), s > 0
            return xp.where(is_curved, (v + alpha * (u + step)) / xp.where(is_curved, s, xp.ones_like(s)), xp.zeros_like(s))

        return self.vectors.map(answer, v, u, step, s)

    def where_curved(self, h: RowVector, x: RowVector) -> RowVector:
        """x, and 0 where h is 0."""
        return self.vectors.map(lambda h, x: namespace(x).where(h > 0, x, namespace(x).zeros_like(x)), h, x)

    def left_of(
        self, r: RowVector, slopes: RowVector, u: RowVector, s: RowVector, q: RowVector
    ) -> tuple[np.ndarray, np.ndarray]:
        """(|r|^2, slopes'(u + s q)) of each output."""

        def answer(r, slopes, u, s, q):
            vecdot = namespace(r).vecdot
            return vecdot(r, r), vecdot(slopes, u + s * q)

        return self.vectors.sum(answer, r, slopes, u, s, q)

    def sums_and_sizes(self, x: RowVector) -> tuple[np.ndarray, np.ndarray]:
        """(sum x, sum |x|) of each output."""
        return self.vectors.sum(lambda x: (namespace(x).sum(x, axis=-1), namespace(x).sum(namespace(x).abs(x), axis=-1)), x)

    def sizes_at(self, point: Point, v: RowVector) -> tuple[np.ndarray, np.ndarray]:
        """(the length of |f| + |b|, as of something like margins; the length of v, as of something like dual points)."""
        b, n = np.abs(point.b), self.n_rows

        def answer(f, v, s):
            xp = namespace(f)
            return xp.sqrt(s / n) * (xp.abs(f) + outputs_like(b, f)), v / xp.sqrt(s)

        of_z, of_v = self._lengths(answer, point.f, v, self.weight)
        return of_z, np.sqrt(n) * of_v

    def distances_to(
        self, a: RowVector, v: RowVector, curved: RowVector
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """How far the dual point a is from v = s L'(z) / n: (the length of (a - v) / sqrt(h), that of |v| + |a| over sqrt(h),
        the length of a as of something like dual points, whether the conjugate losses are finite at a)."""
        loss, n = self.loss, self.n_rows

        def answer(a, v, h, y, s):
            xp, is_curved = namespace(a), h > 0
            root = xp.sqrt(xp.where(is_curved, h, xp.ones_like(h)))
            zero, is_outside = xp.zeros_like(a), ~_is_in_domain(loss, a * n, y, s)
            between = xp.where(is_curved, (a - v) / root, zero)
            beside = xp.where(is_curved, (xp.abs(v) + xp.abs(a)) / root, zero)
            return between, beside, a / xp.sqrt(s), xp.astype(is_outside, a.dtype)

        between, beside, size, outside = self._lengths(answer, a, v, curved, self.y, self.weight)
        return between, beside, np.sqrt(n) * size, outside == 0

    def _lengths(self, answer, *vectors):
        """The length of each row vector that answer(*parts) makes, of each output."""
        return self.vectors.sum(lambda *parts: tuple(map(norms, answer(*parts))), *vectors, add=np.hypot)

    def least_weight(self) -> float:
        return float(self.vectors.sum(lambda s: namespace(s).min(s), self.weight, add=np.minimum))

    def moved(self, h: RowVector, then: RowVector) -> tuple[np.ndarray, np.ndarray]:
        """Of each output, (the sum of |h - then|, that of then)."""

        def answer(h, then):
            xp = namespace(h)
            return xp.sum(xp.abs(h - then), axis=-1), xp.sum(then, axis=-1)

        return self.vectors.sum(answer, h, then)


def _is_in_domain(loss, a, y, s):
    """Whether the conjugate loss of s L is finite at a."""
    low, high = loss.slopes
    slope = y * a if loss.is_classifier else a
    return (slope >= low * s) & (slope <= high * s)
