"""Steps of Newton's method by conjugate gradients in the dual, which a sketch of the rows
preconditions.

With s = sqrt(h), w = Z'u, u = s q and f = Z Z'u, a Newton step solves (alpha I + s Z Z' s) q = s f
- v / s, a system of as many unknowns as there are rows. Where there is an intercept all of it is
orthogonal to s. The preconditioner puts the projected rows X_hat = X R / sqrt(m) in place of Z,
which Woodbury's identity reduces to an m x m system; so the number m of projections decides how
fast the gradients converge, and never what they converge to (J. Wang, J. D. Lee, M. Mahdavi, M.
Kolar, N. Srebro, Sketching Meets Random Projection in the Dual, 2016). Where m is left to the data
it grows with the effective dimension of X at alpha (J. Lacotte, M. Pilanci, Effective Dimension
Adaptive Sketching Methods for Faster Regularized Least-Squares Optimization, NeurIPS 2020).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import namespace
from ..features import make_projection
from ..solvers.cholesky import semidefinite_root
from ..solvers.krylov import DampedInverse
from .inputs import HostInputs
from .steps import MOST_STEPS, PreconditionedSteps, WeightCache, solve_system, step_from_w

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import RowVector
    from ..features.projections import ProjectionName
    from .fit import LinearFit
    from .inputs import Inputs
    from .problem import LinearProblem, Step

# Where m is left to the data it starts at FEWEST_PROJECTIONS and grows by GROWTH_FACTOR until there
# are PROJECTIONS_A_DIMENSION for each effective dimension.
FEWEST_PROJECTIONS, GROWTH_FACTOR, PROJECTIONS_A_DIMENSION = 64, 4, 4
# It stays below MOST_PROJECTIONS, since (m, m) matrices are factored, and below PROJECTIONS_A_ROOT
# sqrt(numbers a row): n m^2 operations in BLAS then take no longer than some passes over the rows.
MOST_PROJECTIONS, PROJECTIONS_A_ROOT = 2048, 20
# A sketch pays up to this level nu, times alpha: below, it saves more steps than its products with
# the rows cost.
HIGHEST_LEVEL = 16


class Sketch:
    """The projected rows X_hat, around their mean where there is an intercept, in the memory of
    this process.

    Where m reaches the number of rows, a square root of X X' takes their place: a sketch without
    error. The row vectors that its methods take and return live where X does.

    Parameters
    ----------
    inputs : Inputs
    m : int or None
        The number of projections; None: chosen by the effective dimension of the data.
    projection : str or None
        The kind of R; None where m is at least the number of rows, so that nothing is drawn.
    fit_intercept : bool
    rng : numpy.random.Generator or None

    Attributes
    ----------
    is_exact : bool
        Whether X_hat X_hat' is X X' but for rounding.
    """

    is_exact: bool

    def __init__(
        self,
        inputs: Inputs,
        m: int | None,
        projection: ProjectionName | None,
        fit_intercept: bool,
        rng: np.random.Generator | None,
    ):
        self._inputs, self._projection, self._fit_intercept, self._rng = (
            inputs,
            projection,
            fit_intercept,
            rng,
        )
        self._most = m or most_projections(inputs.n_features, inputs.rows.row_size)
        self._hat, self.is_exact = np.empty((inputs.n_rows, 0), inputs.rows.dtype), False
        self._grow_to(m or min(FEWEST_PROJECTIONS, self._most))

    @property
    def m(self) -> int:
        """The number of columns so far."""
        return self._hat.shape[1]

    def grow_for(self, h: RowVector, alpha: float) -> float:
        """Append projections, where free to, until they are enough for row weights h and alpha.

        Returns the level nu that they are enough for: alpha, or more where there are too few.
        """
        while self.m < self._most and not self.is_exact:
            dimension = DampedInverse(
                self.weighted_gram(h), alpha, is_exact=True
            ).effective_dimension()
            if PROJECTIONS_A_DIMENSION * dimension <= self.m:
                break
            self._grow_to(min(GROWTH_FACTOR * self.m, self._most))
        return DampedInverse(self.weighted_gram(h), alpha, self.is_exact).nu

    def _grow_to(self, m):
        """Append columns up to m, or take the root of X X' where it is hardly larger."""
        n = self._inputs.n_rows
        if m >= n or (self.m and 2 * m > n and n <= MOST_PROJECTIONS):
            self.is_exact = True
            hat = semidefinite_root(self._inputs.kernel(), np.finfo(self._inputs.rows.dtype).eps)
        else:
            new = make_projection(self._projection, self._inputs.n_features, m - self.m, self._rng)
            more = self._inputs.project(new)
            more *= np.sqrt((m - self.m) / m)
            self._hat *= np.sqrt(self.m / m)
            hat = np.hstack([self._hat, more])
        self._hat, self._host = hat, HostInputs(self._inputs.rows, hat)

    def correlate(self, v: RowVector) -> np.ndarray:
        """Return X_hat' v."""
        return self._host.inputs.correlate(self._host.bring(v))

    def weighted_gram(self, h: RowVector) -> np.ndarray:
        """Return X_hat' diag(h) X_hat of one output, around the mean that h weights where there is
        an intercept."""
        return self._host.inputs.weighted_gram(self._host.bring(h), self._fit_intercept)[0]

    def weighing(self, h: RowVector) -> Callable[[np.ndarray], tuple[RowVector, np.ndarray]]:
        """Return the function of c that computes X_hat c and h' X_hat c."""
        host, h = self._host, self._host.bring(h)

        def apply_and_weigh(c):
            f, weighed = host.inputs.apply_and_weigh(c, h)
            return host.send_back(f), weighed

        return apply_and_weigh


def most_projections(n_features: int, row_size: int) -> int:
    """Return the most columns of a sketch where m is left to the data."""
    return max(
        1, int(min(MOST_PROJECTIONS, n_features, row_size, PROJECTIONS_A_ROOT * row_size**0.5))
    )


class Roots:
    """The roots s of row weights h, and the projection on what is orthogonal to s where there is an
    intercept."""

    h: RowVector
    s: RowVector
    total: np.ndarray

    def __init__(self, problem: LinearProblem, h: RowVector):
        self._problem, self._vectors, self.h = problem, problem.vectors, h
        self.s, self.total = self._vectors.root(h), self._vectors.total(h)

    def orthogonal_part(self, q: RowVector) -> RowVector:
        """Return q less its part along s."""
        if not self._problem.fit_intercept:
            return q
        shift = self._problem.intercept_step(self.total, self._vectors.dots(self.s, q))
        return self._vectors.along(q, shift, self.s)

    def times(self, f: RowVector, weighed: np.ndarray) -> RowVector:
        """Return s f less its part along s, for weighed = h'f."""
        return self._vectors.times(
            self.s, self._vectors.minus(f, -self._problem.intercept_step(self.total, weighed))
        )

    def kernel_times(self, inputs: Inputs, u: RowVector) -> RowVector:
        """Return s Z Z'u less its part along s, in two passes over the rows."""
        return self.times(*inputs.apply_and_weigh(inputs.correlate(u), self.h))


class SketchSteps(PreconditionedSteps):
    """Steps by conjugate gradients in q, preconditioned by a sketch.

    Rows without curvature are out of the system: their u is -v / alpha.
    """

    def __init__(self, sketch: Sketch):
        self._sketch, self._cache, self._is_quicker = sketch, WeightCache(), {}

    def __call__(self, fit: LinearFit, shares: np.ndarray) -> tuple[Step, int]:
        """Return a step and the steps of conjugate gradients it took; see `NewtonSteps`. Notes m in
        fit.n_projections."""
        fit.n_projections = self._sketch.m
        problem, vectors, inputs = fit.problem, fit.problem.vectors, fit.inputs
        roots = Roots(problem, problem.zero_in_flat_rows(fit.certificate.evaluation.h))
        u, b = _known_part(fit, roots)
        slopes = inputs.apply(fit.certificate.g)

        def A(q):
            return vectors.along(
                roots.kernel_times(inputs, vectors.times(roots.s, q)), problem.alpha, q
            )

        def enough(q, r, _):
            """Judge the step w of q: |r|^2 bounds |H w + g|^2 in the norm of H^-1, and -g'w is
            |g|^2 there once r is 0."""

            def answer(r, slopes, u, s, q):
                vecdot = namespace(r).vecdot
                return vecdot(r, r), vecdot(slopes, u + s * q)

            residual, slope = vectors.sum(answer, r, slopes, u, roots.s, q)
            return (shares > 1) | (residual <= -(shares**2) * slope)

        precondition, zero = self._preconditioner(problem, roots), vectors.zeros(len(shares))
        q, n_steps = solve_system(fit, A, precondition, b, zero, enough, MOST_STEPS, vectors)
        u = vectors.along(u, 1.0, vectors.times(roots.s, q))
        return step_from_w(fit, inputs.correlate(u), u, roots.h, roots.total), n_steps

    def _preconditioner(self, problem, roots):
        """Return the function of r that nearly computes (alpha I + s Z Z' s)^-1 r.

        It is made of the sketch and of the row weights at the time when that was last factored.
        """
        sketch, vectors = self._sketch, problem.vectors

        def make(h):
            return DampedInverse(sketch.weighted_gram(h), problem.alpha, sketch.is_exact)

        h_then, parts = self._cache.update(problem, roots.h, make)
        then = roots if h_then is roots.h else Roots(problem, h_then)
        apply_and_weigh, levels = sketch.weighing(h_then), np.array([part.nu for part in parts])

        def zero_where_flat(h, x):
            return namespace(x).where(h > 0, x, namespace(x).zeros_like(x))

        def precondition(r):
            c = sketch.correlate(vectors.times(then.s, then.orthogonal_part(r)))
            c = np.array([part.inverse @ c_k for part, c_k in zip(parts, c, strict=True)])
            z = vectors.map(
                zero_where_flat, roots.h, vectors.along(r, -1.0, then.times(*apply_and_weigh(c)))
            )
            return vectors.scaled(roots.orthogonal_part(z), 1 / levels)

        return precondition

    def is_quicker(self, fit: LinearFit) -> bool:
        """Return whether the sketch is fine enough to be quicker at the fit's penalty; it grows for
        that where it may."""
        alpha = fit.problem.alpha
        if alpha not in self._is_quicker:
            h = fit.certificate.evaluation.h
            # among the outputs, row by row
            most_curved = fit.problem.vectors.map(lambda h: namespace(h).max(h, axis=0), h)
            level = self._sketch.grow_for(most_curved, alpha)
            self._is_quicker[alpha] = level <= HIGHEST_LEVEL * alpha
        return self._is_quicker[alpha]


def _known_part(fit, roots):
    """Return the part of the step in u that needs no system, and the right-hand side of the system
    for q."""
    problem, vectors, v = fit.problem, fit.problem.vectors, fit.certificate.evaluation.v
    alpha = problem.alpha

    def step_of_flat_rows(u, v, h):
        return namespace(u).where(h > 0, namespace(u).zeros_like(u), -(u + v / alpha))

    def sums_and_sizes(x):
        return namespace(x).sum(x, axis=-1), namespace(x).sum(namespace(x).abs(x), axis=-1)

    def slope_over_roots(v, u, step, s):
        xp, is_curved = namespace(s), s > 0
        return xp.where(
            is_curved,
            (v + alpha * (u + step)) / xp.where(is_curved, s, xp.ones_like(s)),
            xp.zeros_like(s),
        )

    u = vectors.map(step_of_flat_rows, fit.iterate.u, v, roots.h)
    slope, size = vectors.sum(sums_and_sizes, u)
    u = vectors.along(u, problem.intercept_step(roots.total, slope), roots.h)
    b = roots.orthogonal_part(vectors.map(slope_over_roots, v, fit.iterate.u, u, roots.s))
    if size.any():
        b = vectors.along(b, 1.0, roots.kernel_times(fit.inputs, u))
    return u, vectors.scaled(b, -1.0)
