"""The step of Newton's method, H w = -g, by conjugate gradients on the Hessian itself.

H = alpha I + Z' Pi diag(h) Pi Z, with Pi the projection that an intercept at its best means; none where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..solvers.krylov import ArrayVectors, DampedInverse, conjugate_gradients, dots
from .point import Point

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import RowVector
    from ..rows import RowVectors
    from .dual import SketchSteps
    from .fit import LinearFit
    from .inputs import Inputs
    from .problem import LinearProblem

# Without rounding conjugate gradients end after as many steps as X has rank; where its columns differ by 1e10 in size, after
# some twenty times as many; more lead nowhere.
MAX_STEPS, RANKS = 1000, 50
# Steps of conjugate gradients on one system that are worth a better preconditioner.
SLOW = 20
# Share of their sum by which the row weights h may change before a preconditioner is made anew.
MOVED = 0.2
# Multiplications of a matrix product, a number of the rows, that take as long as one pass over them.
A_PASS = 50


@dataclass(frozen=True)
class Sampling:
    """A sample of the rows, whose second moments are within small factors of those of all, and take the time of few passes."""

    rows_an_input: int = 40
    fewest_inputs: int = 200
    fewest_samples: int = 2  # that the rows have to hold

    def pays(self, n: int, d: int) -> bool:
        return d >= self.fewest_inputs and n >= self.fewest_samples * self.rows_an_input * d


SAMPLING = Sampling()


def solve(
    fit: LinearFit, A: Callable[[Any], Any], precondition: Callable[[Any], Any], b: Any, zero: Any,
    enough: Callable[..., np.ndarray], max_steps: int, space: Any,
) -> tuple[Any, int]:  # fmt: skip
    """`conjugate_gradients`, until the callback says so too."""

    def over(x, r, rho):
        return enough(x, r, rho) | fit.is_told_to_stop()

    most = RANKS * (1 + min(fit.inputs.n_rows, fit.inputs.n_features))
    return conjugate_gradients(A, precondition, b, zero, over, min(max_steps, most), space)


def step_to(fit: LinearFit, w: np.ndarray, u: RowVector, h: RowVector, total: np.ndarray) -> Point:
    """The step w, with u and with the intercept that follows, total being the sum of the row weights h."""
    f, weighed = fit.inputs.apply_and_weigh(w, h)
    return Point.at_w(w, f, fit.problem.follow(total, weighed), u)


class Hessian:
    """Products with H at the point where a fit stands, in one pass each."""

    def __init__(self, fit: LinearFit):
        self._inputs, self._problem, self._look = fit.inputs, fit.problem, fit.certificate.look

    def times(self, p: np.ndarray) -> np.ndarray:
        return self._times(p)[0]

    def times_pair(self, p: tuple[np.ndarray, RowVector]) -> tuple[np.ndarray, RowVector]:
        """The same for p = (w, u) with w = Z'u: H w, and what it is Z' of."""
        (w, u), vectors = p, self._problem.vectors
        in_w, f, shift = self._times(w)
        in_u = vectors.times(self._look.h, vectors.minus(f, -shift))
        return in_w, vectors.along(in_u, self._problem.alpha, u)

    def _times(self, w):
        look, problem = self._look, self._problem
        f, product, weighed = self._inputs.normal(look.h, w)
        shift = problem.follow(look.total, weighed)
        return problem.alpha * w + (product + shift[:, None] * look.means), f, shift


class Pairs:
    """Vectors of conjugate gradients kept as (w, u) with w = Z'u: inner products are those of w."""

    def __init__(self, vectors: RowVectors):
        self._vectors = vectors

    def dots(self, a: tuple[np.ndarray, RowVector], b: tuple[np.ndarray, RowVector]) -> np.ndarray:
        return dots(a[0], b[0])

    def along(
        self, x: tuple[np.ndarray, RowVector], t: np.ndarray, d: tuple[np.ndarray, RowVector]
    ) -> tuple[np.ndarray, RowVector]:
        return ArrayVectors.along(x[0], t, d[0]), self._vectors.along(x[1], t, d[1])


def plain_step(fit: LinearFit, shares: np.ndarray, max_steps: int = MAX_STEPS) -> tuple[Point, int]:
    """(the step from fit.at, steps of conjugate gradients) without a preconditioner: one pass over the rows each."""
    here, problem, vectors = fit.certificate, fit.problem, fit.problem.vectors
    most = shares**2 * dots(here.g, here.g)
    b = -here.g, vectors.scaled(vectors.along(here.look.v, problem.alpha, fit.at.u), -1.0)
    zero = np.zeros_like(here.g), vectors.zeros(len(here.g))
    (w, u), n_iter = solve(
        fit, Hessian(fit).times_pair, lambda r: r, b, zero, lambda x, r, rho: rho <= most, max_steps, Pairs(vectors)
    )
    return step_to(fit, w, u, here.look.h, here.look.total), n_iter


class Kept:
    """What make(h) has made of the row weights h of each output, kept while alpha stays and h changes little."""

    def __init__(self):
        self.forget()

    def forget(self) -> None:
        self._h = self._alpha = self._made = None

    def update(self, problem: LinearProblem, h: RowVector, make: Callable[[RowVector], Any]) -> tuple[RowVector, list[Any]]:
        """(the h that each output's was made of, a list of what was made); made again where h or alpha is not what it was."""
        is_stale = self._is_stale(problem, h)
        if is_stale.all():
            self._h, self._alpha, self._made = h, problem.alpha, [None] * len(is_stale)
        elif is_stale.any():
            self._h = problem.vectors.chosen(is_stale, h, self._h)
        for k in np.flatnonzero(is_stale):  # the curvature of a quadratic loss is that of all outputs
            is_shared = k > 0 and problem.loss.is_quadratic
            self._made[k] = self._made[0] if is_shared else make(problem.vectors.output(h, k))
        return self._h, self._made

    def _is_stale(self, problem, h):
        if self._alpha != problem.alpha:
            return np.full(problem.n_outputs, True)
        moved, size = problem.moved(h, self._h)
        return moved > MOVED * size


class InputSteps:
    """Steps where the inputs are few: H itself is made and inverted, of a sample of the rows where they are many. Conjugate
    gradients correct what is not in the sample, and what h has changed since."""

    def __init__(self, inputs: Inputs, rng: np.random.Generator | None = None):
        """rng: for the sample; None: none."""
        self._inputs, self._kept, self._sample, self._n_sampled = inputs, Kept(), None, inputs.n_rows
        n, d = inputs.n_rows, inputs.n_features
        if rng is not None and SAMPLING.pays(n, d):
            self._n_sampled, some = SAMPLING.rows_an_input * d, np.zeros(n)
            some[rng.choice(n, self._n_sampled, replace=False, shuffle=False)] = 1.0
            self._sample = inputs.rows.vectors.put(some)

    def __call__(self, fit: LinearFit, shares: np.ndarray) -> tuple[Point, int]:
        """(the step from fit.at, a Point without u; steps of conjugate gradients)."""
        g, look = fit.certificate.g, fit.certificate.look
        h_then, parts = self._kept.update(fit.problem, look.h, lambda h: self._shrunk(fit.problem, h))

        def precondition(r):
            return np.array([part.inverse @ r_k for part, r_k in zip(parts, r, strict=True)])

        is_exact = self._sample is None and h_then is look.h and all(part.nu == fit.problem.alpha for part in parts)
        w, n_iter = (precondition(-g), 0) if is_exact else self._corrected(fit, precondition, shares)
        return step_to(fit, w, None, look.h, look.total), n_iter

    def _corrected(self, fit, precondition, shares):
        """(w, steps of conjugate gradients), of an inverse that is not that of H."""
        g = fit.certificate.g
        most = shares**2 * dots(g, precondition(g))
        max_steps, zero = MAX_STEPS if self._sample is None else SLOW, np.zeros_like(g)
        w, n_iter = solve(
            fit, Hessian(fit).times, precondition, -g, zero, lambda w, r, rho: rho <= most, max_steps, ArrayVectors
        )
        if n_iter == max_steps:  # few rows may hold what the others do not
            self._sample, self._n_sampled = None, self._inputs.n_rows
            self._kept.forget()
        return w, n_iter

    @property
    def n_passes(self) -> int:
        """How many passes over the rows take as long as the second moments do."""
        return self._inputs.n_features * self._n_sampled // (A_PASS * self._inputs.n_rows)

    def pay(self, fit: LinearFit) -> bool:
        return True

    def _shrunk(self, problem, h):
        if self._sample is not None:
            vectors = problem.vectors
            some = vectors.times(h, self._sample)
            total, of_some = vectors.totals(h, some)
            h = vectors.scaled(some, float(total / max(of_some, 1e-300)))
        H, _ = self._inputs.curvature(h, problem.fit_intercept)
        return DampedInverse(H, problem.alpha, is_exact=True)


class AdaptiveSteps:
    """Plain steps until one is slow; from there on those that make() makes, at penalties for which they pay."""

    def __init__(self, make: Callable[[], InputSteps | SketchSteps], slow: int = SLOW):
        self._make, self._other, self._slow = make, None, slow

    def __call__(self, fit: LinearFit, shares: np.ndarray) -> tuple[Point, int]:
        """(the step from fit.at, a Point, steps of conjugate gradients)."""
        if self._other is None:
            step, n_iter = plain_step(fit, shares, self._slow)
            if n_iter == self._slow:
                self._other = self._make()
            return step, n_iter
        return (self._other if self._other.pay(fit) else plain_step)(fit, shares)
