"""The problem of a linear model, and its iterates and steps.

With the inputs Z of `inputs.py`, weights s of mean 1 and L' and L'' the derivatives of the loss in
the margin z = Z w + b,

    minimise  (1/n) sum_i s_i L(z_i, y_i) + (alpha/2) |w|^2   over w and b,

for several outputs at once.

v = s L'(z) / n is the dual point of an iterate, h = s L''(z) / n the curvature of its rows. The
gradient in w is alpha w + Z'v, the Hessian alpha I + Z' diag(h) Z, and at the optimum w = Z'u for u
= -v / alpha.

The row vectors f, v, h and u have a line for each output; a sum over the rows is an ndarray with a
number for each output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from .._base.arrays import namespace, outputs_like
from ..solvers.problem import Problem

if TYPE_CHECKING:
    from .._base.types import RowVector
    from ..losses.base import Loss
    from ..rows import RowVectors

# A row whose curvature is below this share of the largest counts as flat: its h is taken for 0.
FLAT = 1e-10


@dataclass
class Step:
    """The difference of two iterates; each field has a line or a number for each output.

    w : ndarray of shape (n_outputs, n_features), the coefficients
    f : row vector, Z w
    b : ndarray of shape (n_outputs,), the intercepts
    u : row vector with w = Z'u, or None where it is not known
    way : ndarray of shape (n_outputs, n_features), the sizes |w| of all that f was added up from:
        its rounding is in proportion to them
    """

    w: np.ndarray
    f: RowVector
    b: np.ndarray
    u: RowVector
    way: np.ndarray

    @classmethod
    def from_w(cls, w: np.ndarray, f: RowVector, b: np.ndarray, u: RowVector) -> Self:
        """Return the step w whose f was computed from w itself."""
        return cls(w, f, b, u, np.abs(w))


class LinearIterate(Step):
    """The iterate of a fit: the step to it from zero. In the projected problem the offset of the
    rows is added to f."""

    @classmethod
    def zero(cls, vectors: RowVectors, n_outputs: int, n_features: int) -> LinearIterate:
        """Return the iterate of no coefficients and no intercepts."""
        shape = n_outputs, n_features
        return cls(
            np.zeros(shape),
            vectors.zeros(n_outputs),
            np.zeros(n_outputs),
            vectors.zeros(n_outputs),
            np.zeros(shape),
        )

    def along(self, vectors: RowVectors, t: np.ndarray, step: Step) -> LinearIterate:
        """Return the iterate t steps on, for a number t of each output."""
        way = self.way + np.abs(t)[:, None] * step.way
        w = self.w + t[:, None] * step.w
        u = None if self.u is None or step.u is None else vectors.along(self.u, t, step.u)
        return LinearIterate(
            w, vectors.along(self.f, t, step.f), self.b + t * step.b, u, way + np.abs(w)
        )


@dataclass(frozen=True, eq=False)
class LinearProblem(Problem):
    """A `Problem` of several outputs with the penalty (alpha/2) |w|^2."""

    n_outputs: int = 1

    @classmethod
    def from_arrays(
        cls,
        vectors: RowVectors,
        loss: Loss,
        y: np.ndarray,
        weight: np.ndarray,
        alpha: float,
        fit_intercept: bool,
    ) -> LinearProblem:
        """Return the problem of ndarrays y, of shape (n_outputs, n_rows) or (2, n_outputs, n_rows),
        and weight."""
        return cls(
            vectors, loss, vectors.put(y), vectors.put(weight), alpha, fit_intercept, y.shape[-2]
        )

    def smoothness_at(self, h: RowVector) -> float | np.ndarray:
        """Return a bound of L'' near the margins whose curvature is h: a number, or one for each
        output.

        A loss of no finite smoothness must be self-concordant: its L'' at most doubles where
        margins move by less than log 2.
        """
        if np.isfinite(self.loss.smoothness):
            return self.loss.smoothness
        n = self.n_rows
        return 2 * self.vectors.sum(
            lambda h, s: namespace(h).max(n * h / s, axis=-1), h, self.weight, add=np.maximum
        )

    def intercept_step(self, total: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """Return Newton's step -slope / total of the intercepts, for total = sum h; 0 where there
        are none."""
        return -np.divide(
            slope, total, out=np.zeros_like(slope), where=(total > 0) & self.fit_intercept
        )

    def zero_in_flat_rows(self, h: RowVector) -> RowVector:
        """Return h, with 0 in flat rows."""
        flat = FLAT * self.vectors.sum(lambda h: namespace(h).max(h, axis=-1), h, add=np.maximum)

        def answer(h):
            return namespace(h).where(h > outputs_like(flat, h), h, namespace(h).zeros_like(h))

        return self.vectors.map(answer, h)
