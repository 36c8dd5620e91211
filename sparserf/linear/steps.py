"""Steps of Newton's method, H d = -g: by conjugate gradients on the Hessian, or from the second
moments of few inputs.

H = alpha I + Z' Pi diag(h) Pi Z at the iterate, where Pi is the projection that eliminates the
intercept, or none. A product with H is one pass over the rows. Where d is large and conjugate
gradients are slow, `range_basis.py` or `sketch.py` preconditions them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import namespace
from ..solvers.krylov import ArrayVectors, DampedInverse, conjugate_gradients
from .problem import Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import RowVector
    from ..rows import RowVectors
    from ..solvers.krylov import VectorSpace
    from .fit import LinearFit
    from .inputs import Inputs
    from .problem import LinearProblem

# Steps of conjugate gradients on one system at most.
MOST_CG_STEPS = 1000
# The most of them for each rank that X can have. Without rounding they end after as many as X has
# rank; where its columns differ by 1e10 in size, after some twenty times as many; more do not help.
STEPS_A_RANK = 50
# A system that takes this number of steps of conjugate gradients is worth a better preconditioner.
SLOW_STEPS = 20
# The multiplications of a matrix product, for each number of the rows, that take as long as one
# pass over the rows.
PRODUCTS_A_PASS = 50
# The same for rows that are CSR.
SPARSE_PRODUCTS_A_PASS = 4
# Second moments are taken of a sample of the rows from this number of inputs on: within small
# factors of the moments of all rows, in the time of few passes.
LEAST_INPUTS_TO_SAMPLE = 200
# The rows that the sample has for each input,
SAMPLED_ROWS_AN_INPUT = 40
# and how many times as many rows X must have.
SAMPLES_IN_ROWS = 2


class NewtonSteps(ABC):
    """A way to make the steps of Newton's method."""

    @abstractmethod
    def __call__(self, fit: LinearFit, shares: np.ndarray) -> tuple[Step, int]:
        """Return a step from fit.iterate, and how many steps of conjugate gradients it took.

        shares : for each output, the share of its residual to which its system is solved; above 1,
            not at all
        """

    def is_quick_at_once(self, fit: LinearFit) -> bool:
        """Return whether systems are known to be quick to solve at the fit's penalty, wherever the
        fit is, so that no larger penalty needs to lead to it."""
        return False


class PreconditionedSteps(NewtonSteps):
    """`NewtonSteps` that cost more to begin with than plain ones, and need fewer steps of conjugate
    gradients."""

    @abstractmethod
    def is_quicker(self, fit: LinearFit) -> bool:
        """Return whether these are quicker than plain steps at the fit's penalty."""


def solve_system(
    fit: LinearFit,
    A: Callable[[Any], Any],
    precondition: Callable[[Any], Any],
    b: Any,
    zero: Any,
    enough: Callable[..., np.ndarray],
    max_steps: int,
    space: VectorSpace,
) -> tuple[Any, int]:
    """Solve a system of a Newton step by `conjugate_gradients`, which the callback of the fit may
    end.

    max_steps is bounded by the rank of X. Return the solution and the number of steps.
    """

    def ends(x, r, rho):
        return enough(x, r, rho) | fit.is_told_to_stop()

    most = STEPS_A_RANK * (1 + min(fit.inputs.n_rows, fit.inputs.n_features))
    return conjugate_gradients(A, precondition, b, zero, ends, min(max_steps, most), space)


def step_from_w(
    fit: LinearFit, w: np.ndarray, u: RowVector, h: RowVector, total: np.ndarray
) -> Step:
    """Return the step w = Z'u, with the intercept that follows it; total: the sum of the row
    weights h."""
    f, weighed = fit.inputs.apply_and_weigh(w, h)
    return Step.from_w(w, f, fit.problem.intercept_step(total, weighed), u)


@dataclass
class Direction:
    """A vector of the coefficients in conjugate gradients, for each output.

    u : row vector with w = Z'u, or None where it is not known
    f : row vector, Z w, where w or all that it is a sum of has been multiplied with the Hessian;
        else None
    way : ndarray shaped as w, the sizes of what f was added up from, where there is an f
    """

    w: np.ndarray
    u: RowVector
    f: RowVector = None
    way: np.ndarray | None = None


class DirectionSpace:
    """The space of directions for conjugate gradients: inner products are taken of w."""

    def __init__(self, vectors: RowVectors):
        self._vectors = vectors

    def dots(self, a: Direction, b: Direction) -> np.ndarray:
        """Return the inner products of each output."""
        return np.vecdot(a.w, b.w)

    def along(self, x: Direction, t: np.ndarray, d: Direction) -> Direction:
        """Return x + t d, for a number t of each output."""
        u = None if x.u is None or d.u is None else self._vectors.along(x.u, t, d.u)
        sum_ = Direction(ArrayVectors.along(x.w, t, d.w), u)
        if x.f is not None and d.f is not None:
            sum_.f, sum_.way = self._vectors.along(x.f, t, d.f), x.way + np.abs(t[:, None] * d.w)
        return sum_


def times_hessian(fit: LinearFit, p: Direction) -> Direction:
    """Return H p, H the Hessian at the iterate of a fit, in one pass over the rows; let p know its
    margins."""
    here, problem = fit.certificate.evaluation, fit.problem
    vectors, alpha = problem.vectors, problem.alpha
    p.f, product, weighed = fit.inputs.normal(here.h, p.w)
    shift = problem.intercept_step(here.total, weighed)
    w, u = alpha * p.w + (product + shift[:, None] * here.means), None
    if p.u is not None:
        u = vectors.along(vectors.times(here.h, vectors.minus(p.f, -shift)), alpha, p.u)
    return Direction(w, u)


def gradient_step(
    fit: LinearFit,
    shares: np.ndarray,
    precondition: Callable[[Direction], Direction],
    max_steps: int = MOST_CG_STEPS,
) -> tuple[Step, int]:
    """Return a step by conjugate gradients in w, as `NewtonSteps` do: one pass over the rows for
    each step of theirs."""
    here, problem, vectors = fit.certificate, fit.problem, fit.problem.vectors
    none, u = np.zeros_like(here.g), fit.iterate.u
    if u is not None:
        u = vectors.scaled(vectors.along(here.evaluation.v, problem.alpha, u), -1.0)
    b = Direction(-here.g, u)
    most = shares**2 * np.vecdot(b.w, precondition(b).w)
    zero = Direction(none, vectors.zeros(len(none)), vectors.zeros(len(none)), none)
    times, space = partial(times_hessian, fit), DirectionSpace(vectors)
    x, n_steps = solve_system(
        fit, times, precondition, b, zero, lambda x, r, rho: rho <= most, max_steps, space
    )
    weighed = vectors.sum(lambda h, f: namespace(f).vecdot(h, f), here.evaluation.h, x.f)
    return Step(
        x.w, x.f, problem.intercept_step(here.evaluation.total, weighed), x.u, x.way
    ), n_steps


def plain_step(
    fit: LinearFit, shares: np.ndarray, max_steps: int = MOST_CG_STEPS
) -> tuple[Step, int]:
    """Return a step without a preconditioner; see `gradient_step`."""
    return gradient_step(fit, shares, lambda r: r, max_steps)


class WeightCache:
    """A cache of results that were computed from the row weights h, one for each output; they are
    good while alpha stays and h changes little."""

    def __init__(self):
        self.forget()

    def forget(self) -> None:
        """Drop all results."""
        self._h = self._alpha = self._made = None

    def update(
        self, problem: LinearProblem, h: RowVector, make: Callable[[RowVector], Any]
    ) -> tuple[RowVector, list[Any]]:
        """Return the row weights of which the kept results were made, and the result make(h) of
        each output.

        Results are made anew where h has changed much, or alpha at all. Outputs of a quadratic loss
        share one result.
        """
        # A preconditioner is made anew once the row weights h have changed by more than this share
        # of their sum.
        most_change = 0.2

        is_stale = np.full(problem.n_outputs, True)
        if self._alpha == problem.alpha:

            def change_and_size(h, before):
                xp = namespace(h)
                return xp.sum(xp.abs(h - before), axis=-1), xp.sum(before, axis=-1)

            change, size = problem.vectors.sum(change_and_size, h, self._h)
            is_stale = change > most_change * size
        if is_stale.all():
            self._h, self._alpha, self._made = h, problem.alpha, [None] * len(is_stale)
        elif is_stale.any():
            self._h = problem.vectors.chosen(is_stale, h, self._h)
        for k in np.flatnonzero(is_stale):
            is_shared = k > 0 and problem.loss.is_quadratic
            self._made[k] = self._made[0] if is_shared else make(problem.vectors.output(h, k))
        return self._h, self._made


class InputSteps(PreconditionedSteps):
    """`NewtonSteps` where the inputs are few: H itself is made and inverted, of a sample of the
    rows where they are many.

    Conjugate gradients correct for the rows beyond the sample, and for changes in h since H was
    made.

    Parameters
    ----------
    inputs : Inputs
    rng : numpy.random.Generator or None, default None
        Draws the sample; None: H is made of all rows.
    """

    def __init__(self, inputs: Inputs, rng: np.random.Generator | None = None):
        self._inputs = inputs
        self._cache = WeightCache()
        self._sample = None
        self._n_sampled = inputs.n_rows
        n, d = inputs.n_rows, inputs.n_features
        if (
            rng is not None
            and d >= LEAST_INPUTS_TO_SAMPLE
            and n >= SAMPLES_IN_ROWS * SAMPLED_ROWS_AN_INPUT * d
        ):
            self._n_sampled, sample = SAMPLED_ROWS_AN_INPUT * d, np.zeros(n)
            sample[rng.choice(n, self._n_sampled, replace=False, shuffle=False)] = 1.0
            self._sample = inputs.rows.vectors.put(sample)

    def __call__(self, fit: LinearFit, shares: np.ndarray) -> tuple[Step, int]:
        """Return a step without u, and the steps of conjugate gradients it took; see
        `NewtonSteps`."""
        g, here = fit.certificate.g, fit.certificate.evaluation
        h_then, parts = self._cache.update(
            fit.problem, here.h, partial(self._inverse_of_hessian, fit.problem)
        )

        def times_inverse(w):
            return np.array([part.inverse @ w_k for part, w_k in zip(parts, w, strict=True)])

        is_inverse = (
            self._sample is None
            and h_then is here.h
            and all(part.nu == fit.problem.alpha for part in parts)
        )
        if is_inverse:
            return step_from_w(fit, times_inverse(-g), None, here.h, here.total), 0
        max_steps = MOST_CG_STEPS if self._sample is None else SLOW_STEPS
        step, n_steps = gradient_step(
            fit, shares, lambda r: Direction(times_inverse(r.w), None), max_steps
        )
        if n_steps == max_steps:  # a few rows may differ from all those of the sample
            self._sample, self._n_sampled = None, self._inputs.n_rows
            self._cache.forget()
        return step, n_steps

    def _inverse_of_hessian(self, problem, h):
        """Return the inverse of H for row weights h of one output, of the sample where there is
        one."""
        if self._sample is not None:
            vectors = problem.vectors
            of_sample = vectors.times(h, self._sample)
            total, total_of_sample = vectors.totals(h, of_sample)
            h = vectors.scaled(of_sample, float(total / max(total_of_sample, 1e-300)))
        H, _ = self._inputs.weighted_gram(h, problem.fit_intercept)
        return DampedInverse(H, problem.alpha, is_exact=True)

    @property
    def n_passes(self) -> int:
        """How many passes over the rows take as long as the second moments do."""
        return self._inputs.n_features * self._n_sampled // (PRODUCTS_A_PASS * self._inputs.n_rows)

    def is_quicker(self, fit: LinearFit) -> bool:
        """Return True: second moments that have been made are quicker than plain steps at any
        penalty."""
        return True
