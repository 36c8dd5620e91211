"""The problem of a linear model, its iterates, and all that Newton's method computes on row vectors.

With the inputs Z of `inputs.py`, weights s of mean 1 and L' and L'' the derivatives of the loss in the margin z = Z w + b,

    minimise  (1/n) sum_i s_i L(z_i, y_i) + (alpha/2) |w|^2   over w and b, for several outputs at once.

v = s L'(z) / n is the dual point of an iterate, h = s L''(z) / n the curvature of its rows. The gradient in w is alpha w + Z'v,
the Hessian alpha I + Z' diag(h) Z, and at the optimum w = Z'u for u = -v / alpha.

The row vectors f, v, h and u have a line for each output; a sum over the rows is an ndarray with a number for each output.
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

# A row whose curvature is below this share of the largest counts as flat: its h is taken for 0.
FLAT = 1e-10


@dataclass
class Step:
    """The difference of two iterates; each field has a line or a number for each output.

    w : ndarray of shape (n_outputs, n_features)
    f : row vector, Z w
    b : ndarray of shape (n_outputs,), the steps of the intercepts
    u : row vector with w = Z'u, or None where it is not known
    """

    w: np.ndarray
    f: RowVector
    b: np.ndarray
    u: RowVector


@dataclass
class Iterate:
    """The point where a fit stands; each field has a line or a number for each output.

    w : ndarray of shape (n_outputs, n_features), the coefficients
    f : row vector, Z w; in the projected problem the offset of the rows is added to it
    b : ndarray of shape (n_outputs,), the intercepts
    u : row vector with w = Z'u, or None where it is not known
    way : ndarray of shape (n_outputs, n_features), |w| of all iterates and steps on the way here, added up: the rounding of f
        is in proportion to it
    """

    w: np.ndarray
    f: RowVector
    b: np.ndarray
    u: RowVector
    way: np.ndarray

    @classmethod
    def zero(cls, vectors: RowVectors, n_outputs: int, n_features: int) -> Iterate:
        """Return the iterate of no coefficients and no intercepts."""
        shape = n_outputs, n_features
        return cls(np.zeros(shape), vectors.zeros(n_outputs), np.zeros(n_outputs), vectors.zeros(n_outputs), np.zeros(shape))

    @classmethod
    def from_w(cls, w: np.ndarray, f: RowVector, b: np.ndarray, u: RowVector) -> Iterate:
        """Return the iterate at w that one step from zero leads to."""
        return cls(w, f, b, u, np.abs(w))

    def along(self, vectors: RowVectors, t: np.ndarray, step: Step) -> Iterate:
        """Return the iterate t steps on, for a number t of each output."""
        w, way = self.w + t[:, None] * step.w, self.way + np.abs(t)[:, None] * np.abs(step.w)
        u = None if self.u is None or step.u is None else vectors.along(self.u, t, step.u)
        return Iterate(w, vectors.along(self.f, t, step.f), self.b + t * step.b, u, way + np.abs(w))


@dataclass(frozen=True, eq=False)
class LinearProblem(Problem):
    """A `Problem` of several outputs with the penalty (alpha/2) |w|^2.

    What is asked of the rows together is one answer, which holds no row vectors itself.
    """

    n_outputs: int = 1

    @classmethod
    def from_arrays(
        cls, vectors: RowVectors, loss: Loss, y: np.ndarray, weight: np.ndarray, alpha: float, fit_intercept: bool
    ) -> LinearProblem:
        """Return the problem of ndarrays y, of shape (n_outputs, n_rows), and weight."""
        return cls(vectors, loss, vectors.put(y), vectors.put(weight), alpha, fit_intercept, len(y))

    def in_home(self, move: Callable[[RowVector], RowVector], vectors: RowVectors) -> LinearProblem:
        """Return the same problem with its row vectors moved to another home, that of `vectors`, by move(vector)."""
        return replace(self, vectors=vectors, y=move(self.y), weight=move(self.weight))

    def losses_along(self, at: Iterate, step: Step, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean loss of each output at t steps from the iterate, and its slope in t."""
        loss, n, b, b_step = self.loss, self.n_rows, at.b + t * step.b, step.b

        def answer(f, d, y, s):
            xp, z = namespace(f), f + outputs_like(t, d) * d + outputs_like(b, f)
            v = s * loss.derivative(z, y) / n
            return xp.sum(s * loss.value(z, y), axis=-1), xp.vecdot(v, d + outputs_like(b_step, d))

        losses, slopes = self.vectors.sum(answer, at.f, step.f, self.y, self.weight)
        return losses / n, slopes

    def least_curvature(self, f: RowVector, b: np.ndarray, tube: float) -> RowVector:
        """Return the least h at the margins -tube, 0 and tube from f + b."""
        loss, n = self.loss, self.n_rows

        def answer(f, y, s):
            xp, z = namespace(f), f + outputs_like(b, f)
            low, middle, high = (s * loss.curvature(z + shift, y) / n for shift in (-tube, 0.0, tube))
            return xp.minimum(xp.minimum(low, middle), high)

        return self.vectors.map(answer, f, self.y, self.weight)

    def smoothness_at(self, h: RowVector) -> float | np.ndarray:
        """Return a bound of L'' near the margins whose curvature is h: a number, or one for each output.

        A loss of no finite smoothness must be self-concordant: its L'' at most doubles where margins move by less than log 2.
        """
        if np.isfinite(self.loss.smoothness):
            return self.loss.smoothness
        n = self.n_rows
        return 2 * self.vectors.sum(lambda h, s: namespace(h).max(n * h / s, axis=-1), h, self.weight, add=np.maximum)

    def intercept_step(self, total: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return Newton's step -slope / total of the intercepts, for total = sum h; 0 where there are none."""
        return -np.divide(slope, total, out=np.zeros_like(slope), where=(total > 0) & self.fit_intercept)

    def zero_in_flat_rows(self, h: RowVector) -> RowVector:
        """Return h, with 0 in flat rows."""
        flat = FLAT * self.vectors.sum(lambda h: namespace(h).max(h, axis=-1), h, add=np.maximum)

        def answer(h):
            return namespace(h).where(h > outputs_like(flat, h), h, namespace(h).zeros_like(h))

        return self.vectors.map(answer, h)

    def where_curved(self, h: RowVector, x: RowVector) -> RowVector:
        """Return x, with 0 where h is 0."""
        return self.vectors.map(lambda h, x: namespace(x).where(h > 0, x, namespace(x).zeros_like(x)), h, x)

    def most_curved(self, h: RowVector) -> RowVector:
        """Return the largest h of each row among the outputs: a row vector of one output."""
        return self.vectors.map(lambda h: namespace(h).max(h, axis=0), h)

    def dual_point_from_u(self, u: RowVector, v: RowVector, h: RowVector) -> RowVector | None:
        """Return the dual point -alpha u, with v in place of it where h is 0, or None where u is not finite.

        Where there is an intercept a multiple of h is added, so that the dual point sums to 0, as it must.
        """
        alpha = self.alpha

        def parts(u, v, h):
            return namespace(u).where(h > 0, -alpha * u, v)

        def sums(u, v, h):
            xp = namespace(u)
            return xp.sum(parts(u, v, h), axis=-1), xp.sum(h, axis=-1)

        slope, total = self.vectors.sum(sums, u, v, h)
        if not np.isfinite(slope).all():
            return None
        shift = self.intercept_step(total, slope)
        return self.vectors.map(lambda u, v, h: parts(u, v, h) + h * outputs_like(shift, h), u, v, h)

    def u_from_dual_point(self, v: RowVector) -> RowVector:
        """Return u = -v / alpha, which makes the coefficients w = Z'u of the dual point v."""
        alpha = self.alpha
        return self.vectors.map(lambda v: -v / alpha, v)

    def step_of_flat_rows(self, u: RowVector, v: RowVector, h: RowVector) -> RowVector:
        """Return -(u + v / alpha) where h is 0, and 0 elsewhere: the part of a step in u that needs no system."""
        alpha = self.alpha

        def answer(u, v, h):
            return namespace(u).where(h > 0, namespace(u).zeros_like(u), -(u + v / alpha))

        return self.vectors.map(answer, u, v, h)

    def slope_over_roots(self, v: RowVector, u: RowVector, step: RowVector, s: RowVector) -> RowVector:
        """Return (v + alpha (u + step)) / s, with 0 where s, the root of h, is 0."""
        alpha = self.alpha

        def answer(v, u, step, s):
            xp, is_curved = namespace(s), s > 0
            return xp.where(is_curved, (v + alpha * (u + step)) / xp.where(is_curved, s, xp.ones_like(s)), xp.zeros_like(s))

        return self.vectors.map(answer, v, u, step, s)

    def residual_and_slope(
        self, r: RowVector, slopes: RowVector, u: RowVector, s: RowVector, q: RowVector
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return |r|^2 and slopes'(u + s q) of each output."""

        def answer(r, slopes, u, s, q):
            vecdot = namespace(r).vecdot
            return vecdot(r, r), vecdot(slopes, u + s * q)

        return self.vectors.sum(answer, r, slopes, u, s, q)

    def sums_and_sizes(self, x: RowVector) -> tuple[np.ndarray, np.ndarray]:
        """Return sum x and sum |x| of each output."""
        return self.vectors.sum(lambda x: (namespace(x).sum(x, axis=-1), namespace(x).sum(namespace(x).abs(x), axis=-1)), x)

    def change_of_weights(self, h: RowVector, before: RowVector) -> tuple[np.ndarray, np.ndarray]:
        """Return the sum of |h - before| and that of before, of each output."""

        def answer(h, before):
            xp = namespace(h)
            return xp.sum(xp.abs(h - before), axis=-1), xp.sum(before, axis=-1)

        return self.vectors.sum(answer, h, before)

    def sizes_at(self, at: Iterate, v: RowVector) -> tuple[np.ndarray, np.ndarray]:
        """Return the lengths of |f| + |b| and of v, in the norms of margins and of dual points (see `certificate.py`)."""
        b, n = np.abs(at.b), self.n_rows

        def answer(f, v, s):
            xp = namespace(f)
            return norms(xp.sqrt(s / n) * (xp.abs(f) + outputs_like(b, f))), norms(v / xp.sqrt(s))

        of_z, of_v = self.vectors.sum(answer, at.f, v, self.weight, add=np.hypot)
        return of_z, np.sqrt(n) * of_v

    def dual_distances(self, a: RowVector, v: RowVector, h: RowVector) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return, of each output, how far the dual point a is from v = s L'(z) / n.

        Four arrays: the length of (a - v) / sqrt(h), that of (|v| + |a|) / sqrt(h), the length of a in the norm of dual points,
        and whether the conjugate losses are finite at a. Rows where h is 0 are left out of the first two.
        """
        loss, n = self.loss, self.n_rows

        def answer(a, v, h, y, s):
            xp, is_curved = namespace(a), h > 0
            root = xp.sqrt(xp.where(is_curved, h, xp.ones_like(h)))
            zero, is_outside = xp.zeros_like(a), ~_is_in_domain(loss, a * n, y, s)
            between = xp.where(is_curved, (a - v) / root, zero)
            beside = xp.where(is_curved, (xp.abs(v) + xp.abs(a)) / root, zero)
            return norms(between), norms(beside), norms(a / xp.sqrt(s)), norms(xp.astype(is_outside, a.dtype))

        between, beside, size, outside = self.vectors.sum(answer, a, v, h, self.y, self.weight, add=np.hypot)
        return between, beside, np.sqrt(n) * size, outside == 0

    def least_weight(self) -> float:
        """Return the least sample weight."""
        return float(self.vectors.sum(lambda s: namespace(s).min(s), self.weight, add=np.minimum))


def _is_in_domain(loss, a, y, s):
    """Return whether the conjugate of s L is finite at a, row by row."""
    low, high = loss.slopes
    slope = y * a if loss.is_classifier else a
    return (slope >= low * s) & (slope <= high * s)
