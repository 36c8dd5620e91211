"""The step of Newton's method w = Z'u in u, by conjugate gradients that a sketch of the rows preconditions.

With s = sqrt(h), q = u / s and f = Z Z'u:  (alpha I + s Z Z' s) q = s f - v / s, as in the dual. Where there is an intercept
all of it is orthogonal to s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..solvers.krylov import DampedInverse
from .steps import MAX_STEPS, Kept, solve, step_to

if TYPE_CHECKING:
    from .._base.types import RowVector
    from .fit import LinearFit
    from .point import Point
    from .problem import LinearProblem
    from .sketch import Sketch

# Times alpha, up to which the level nu of a sketch saves more steps than its products with the rows cost.
PAYS = 16


class Roots:
    """The roots s of row weights h, and the projection on what is orthogonal to s, where there is an intercept."""

    h: RowVector
    s: RowVector
    total: np.ndarray

    def __init__(self, problem: LinearProblem, h: RowVector):
        self._problem, self._vectors, self.h = problem, problem.vectors, h
        self.s, self.total = self._vectors.root(h), self._vectors.total(h)

    def balanced(self, q: RowVector) -> RowVector:
        """q less its part along s."""
        if not self._problem.fit_intercept:
            return q
        return self._vectors.along(q, self._problem.follow(self.total, self._vectors.dots(self.s, q)), self.s)

    def times(self, f: RowVector, weighed: np.ndarray) -> RowVector:
        """`balanced` s f, for weighed = h'f."""
        return self._vectors.times(self.s, self._vectors.minus(f, -self._problem.follow(self.total, weighed)))


class SketchSteps:
    """Steps by conjugate gradients in q, with a sketch; rows without curvature are out of the system: there u = -v / alpha."""

    def __init__(self, sketch: Sketch):
        self._sketch, self._kept, self._pays = sketch, Kept(), {}

    def __call__(self, fit: LinearFit, shares: np.ndarray) -> tuple[Point, int]:
        """(the step from fit.at, a Point, steps of conjugate gradients)."""
        fit.n_projections = self._sketch.m
        problem, vectors, inputs = fit.problem, fit.problem.vectors, fit.inputs
        roots = Roots(problem, problem.curved(fit.certificate.look.h))
        u, b = _known(fit, roots)
        slopes = inputs.apply(fit.certificate.g)

        def A(q):
            return vectors.along(_seen(inputs, roots, vectors.times(roots.s, q)), problem.alpha, q)

        def enough(q, r, _):
            """Of the step w of q: |r|^2 bounds |H w + g|^2 in the norm of H^-1, and -g'w is |g|^2 there once r is 0."""
            left, slope = problem.left_of(r, slopes, u, roots.s, q)
            return (shares > 1) | (left <= -(shares**2) * slope)

        precondition, zero = self._preconditioner(problem, roots), vectors.zeros(len(shares))
        q, n_iter = solve(fit, A, precondition, b, zero, enough, MAX_STEPS, vectors)
        u = vectors.along(u, 1.0, vectors.times(roots.s, q))
        return step_to(fit, inputs.correlate(u), u, roots.h, roots.total), n_iter

    def _preconditioner(self, problem, roots):
        """r -> (alpha I + s Z Z' s)^-1 r, nearly: of the sketch, and the row weights when it was last factored."""
        sketch, vectors = self._sketch, problem.vectors

        def make(h):
            return DampedInverse(sketch.curvature(h), problem.alpha, sketch.is_exact)

        h_then, parts = self._kept.update(problem, roots.h, make)
        then = roots if h_then is roots.h else Roots(problem, h_then)
        seen_by_sketch, levels = sketch.weighing(h_then), np.array([part.nu for part in parts])

        def precondition(r):
            c = sketch.correlate(vectors.times(then.s, then.balanced(r)))
            c = np.array([part.inverse @ c_k for part, c_k in zip(parts, c, strict=True)])
            z = problem.where_curved(roots.h, vectors.along(r, -1.0, then.times(*seen_by_sketch(c))))
            return vectors.scaled(roots.balanced(z), 1 / levels)

        return precondition

    def pay(self, fit: LinearFit) -> bool:
        """Whether, at the fit's penalty, the sketch is fine enough; it grows for it where it may."""
        alpha = fit.problem.alpha
        if alpha not in self._pays:
            self._pays[alpha] = self._sketch.suffice(fit.problem.most_curved(fit.certificate.look.h), alpha) <= PAYS * alpha
        return self._pays[alpha]


def _known(fit, roots):
    """(the part of the step in u that is known, the right-hand side of the system for q)."""
    problem, vectors, v = fit.problem, fit.problem.vectors, fit.certificate.look.v
    u = problem.u_of_flat(fit.at.u, v, roots.h)
    slope, size = problem.sums_and_sizes(u)
    u = vectors.along(u, problem.follow(roots.total, slope), roots.h)
    b = roots.balanced(problem.over_roots(v, fit.at.u, u, roots.s))
    if size.any():
        b = vectors.along(b, 1.0, _seen(fit.inputs, roots, u))
    return u, vectors.scaled(b, -1.0)


def _seen(inputs, roots, u):
    """`balanced` s Z Z'u, in two passes."""
    return roots.times(*inputs.apply_and_weigh(inputs.correlate(u), roots.h))
