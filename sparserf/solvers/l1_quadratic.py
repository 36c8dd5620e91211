"""A quadratic with an l1 penalty:

    minimise over x   (1/2) (x - w)' H (x - w) + g' (x - w) + alpha |x|_1.

Some x_j, those of a mask `nonnegative`, must be at least 0. H is positive semidefinite. It is the
model that prox-Newton minimises in each of its steps. Passes of coordinate descent find the
support, and a Newton step on it, projected to the orthant of its signs, finds the values. Both are
repeated until the violation, the largest distance of 0 to the subdifferential in one x_j, is below
the tolerance. Where that takes long, as when features are nearly collinear, a primal-dual interior
point method comes near the minimum first, in some tens of Cholesky factorisations however
ill-conditioned H is (S. Mehrotra, On the implementation of a primal-dual interior point method,
SIAM J. Optimization 2, 1992).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._base.progress import check_not_ended
from .._core.descent import descend, largest_violation
from .budget import UNBOUNDED
from .cholesky import factor_positive, solve_positive

if TYPE_CHECKING:
    from .budget import Budget

# Passes of coordinate descent before each Newton step.
PASSES = 20
# A support of at least this many features is large: a Cholesky factor is more work than the passes
# before it.
LARGE = 500
# The most steps of the interior point method.
INTERIOR_STEPS = 60
# A step of the interior point method goes at most this share of the way to the boundary.
SHORT = 0.995
# Rows of a Hessian in single precision that turn to double at a time.
ROWS_AT_ONCE = 512


class L1Quadratic(NamedTuple):
    """The problem: H in single or double precision, g, w, alpha, and a mask of the x_j that must be
    at least 0, as the w_j are; None: there are none."""

    H: np.ndarray
    g: np.ndarray
    w: np.ndarray
    alpha: float
    nonnegative: np.ndarray | None = None

    def slopes(self, x: np.ndarray) -> np.ndarray:
        """Return g + H (x - w), the slopes of the quadratic at x."""
        H, d = self.H, x - self.w
        if H.dtype == np.float64:
            return self.g + H @ d
        parts = (H[i : i + ROWS_AT_ONCE] for i in range(0, len(H), ROWS_AT_ONCE))
        return self.g + np.concatenate([part.astype(np.float64) @ d for part in parts])


def minimize(
    model: L1Quadratic, tol: float, enough: float = 0.0, budget: Budget = UNBOUNDED
) -> np.ndarray:
    """Return the minimiser x, starting from x = w, to a violation of at most tol; or the x at which
    the budget is spent.

    enough : a violation that suffices where the first rounds do not reach tol
    """
    # The most rounds, of passes and a Newton step each: to tol; then to `enough`, more of them
    # where the interior point method is expensive, whose factors are of all features; and after it.
    quick_rounds = 2
    few_rounds = 12 if len(model.w) >= LARGE else 4
    most_rounds = 30

    x, violation = alternate(model, model.w, tol, quick_rounds, budget=budget)
    tol = max(tol, enough)
    if violation > tol and not budget.is_spent:
        x, violation = alternate(model, x, tol, few_rounds, budget=budget)
    if violation > tol and not budget.is_spent:
        x = interior_point(model, tol, budget)
        x, _ = alternate(model, x, tol, most_rounds, budget=budget)
    return x


def alternate(
    model: L1Quadratic,
    x: np.ndarray,
    tol: float,
    rounds: int,
    passes: int = PASSES,
    least: float = 0.0,
    budget: Budget = UNBOUNDED,
) -> tuple[np.ndarray, float]:
    """Return (x, its violation) after rounds of passes from x, with a Newton step between two.

    They end at a violation of tol, after `rounds` rounds, or where the budget is spent; the passes
    of a round at a violation of `least`.
    """
    # Multiplications of a matrix product in the time of one of a pass, which waits for memory.
    wait = 10

    v = model.g.copy() if x is model.w else model.slopes(x)
    x = x.copy()
    for k in range(rounds):
        check_not_ended()
        budget.add(wait * passes * len(x) ** 2)
        left = descend(model.H, x, v, model.alpha, passes, least, model.nonnegative)
        if left <= tol or budget.is_spent or k == rounds - 1:
            break
        budget.add_factor(np.count_nonzero(x))
        newton_step_on_support(model, x, v)
        v = model.slopes(x)  # computed anew: updates add up rounding
    return x, left


def newton_step_on_support(model: L1Quadratic, x: np.ndarray, v: np.ndarray) -> None:
    """Move x, in place, towards the minimum on its support, where the penalty is linear as long as
    no sign changes.

    A coefficient that would change its sign becomes zero, or gets the new sign if that is allowed
    and lower, as where alpha is tiny. If neither lowers the objective, the step is shortened to
    where half of the coefficients that become zero on the way have done so, or a quarter, ..., the
    first of these that lowers it. The shortest of these steps, to the first change of a sign, is
    sure to. On a large support the same is then done on what is left of it, whose minimum follows
    from the same factor.

    v : the slopes at x
    """
    # Once this share of the support has become zero, a new factor costs less than to go on.
    most_zeros = 0.2

    H, _, _, alpha, nonnegative = model
    A = np.flatnonzero(x)
    x_A, v_A, H_A = x[A], v[A], H[np.ix_(A, A)].astype(np.float64, copy=False)
    may_cross = None if nonnegative is None else ~nonnegative[A]
    support = OnSupport(H_A, v_A + alpha * np.sign(x_A), x_A)
    while (d := support.way_to_minimum(x_A)) is not None:
        d[x_A == 0] = 0.0
        step, is_whole = _descent(H_A, x_A, v_A, d, alpha, may_cross)
        if step is None:
            break
        x_A, v_A = step
        x[A] = x_A
        n_left = np.count_nonzero(x_A)
        if is_whole or len(A) < LARGE or n_left < (1 - most_zeros) * len(A):
            break
        support.fix_zeros(x_A)


class OnSupport:
    """The quadratic with the penalty linear, on a support of which more and more becomes zero.

    With H the Hessian on the support, y the minimum, and E the columns of the identity where x is
    to be zero, the minimum under E' x = 0 is y - Z (E' Z)^-1 E' y, Z = H^-1 E.
    """

    def __init__(self, H: np.ndarray, slopes: np.ndarray, x: np.ndarray):
        """Take H, the slopes at x, and x, from where the first way to the minimum is."""
        self._factor = factor_positive(H)
        self._way = None if self._factor is None else self._solve(-slopes)
        self._minimum = None if self._way is None else x + self._way
        self._zeros, self._Z = np.zeros(0, np.intp), np.zeros((len(x), 0))

    def _solve(self, b):
        """Return H^-1 b."""
        from scipy.linalg import cho_solve

        return cho_solve(self._factor, b, check_finite=False)

    def way_to_minimum(self, x: np.ndarray) -> np.ndarray | None:
        """Return the minimum less x; None where rounding leaves none that is finite."""
        way = self._way
        if len(self._zeros):
            pull = solve_positive(self._Z[self._zeros], self._minimum[self._zeros])
            way = None if pull is None else self._minimum - self._Z @ pull - x
        return way if way is not None and np.isfinite(way).all() else None

    def fix_zeros(self, x: np.ndarray) -> None:
        """Let what is zero in x stay zero from now on."""
        new = np.setdiff1d(np.flatnonzero(x == 0), self._zeros)
        columns = np.zeros((len(x), len(new)))
        columns[new, np.arange(len(new))] = 1.0
        self._zeros = np.concatenate([self._zeros, new])
        self._Z = np.hstack([self._Z, self._solve(columns)])


def _descent(H, x, v, d, alpha, may_cross):
    """Return (a pair, whether it is after the whole step): x and its slopes after a step from x
    along d that lowers the objective, None where none does."""
    to_zero = np.divide(-x, d, out=np.full(len(x), np.inf), where=x * d < 0)
    changing = np.sort(to_zero[to_zero <= 1])
    ends = [changing[len(changing) >> k] for k in range(1, len(changing).bit_length() + 1)]

    def after(new):
        step = new - x
        moved = H @ step
        return step @ (v + 0.5 * moved) + alpha * (np.abs(new) - np.abs(x)).sum(), new, v + moved

    at_zero = np.where(to_zero <= 1, 0.0, x + d)
    whole = [at_zero]
    if len(changing):
        crossed = x + d if may_cross is None else np.where((to_zero <= 1) & ~may_cross, 0.0, x + d)
        whole.append(crossed)
    change, *end = min(map(after, whole), key=lambda each: each[0])
    if change < 0:
        return end, True
    for t in ends:
        change, *end = after(np.where(to_zero <= t, 0.0, x + t * d))
        if change < 0:
            return end, False
    return None, False


def interior_point(model: L1Quadratic, tol: float, budget: Budget) -> np.ndarray:
    """Return the minimiser x to a violation of at most tol, or as near as rounding or the budget
    allow.

    x = u_0 - u_1 with both parts positive, and z = alpha +- v their slacks, v = g + H (x - w): at
    the optimum u z = 0 and z is nonnegative. A coefficient counts as zero where both its parts, in
    units of the largest, are smaller than their slacks, in units of alpha. A coefficient that must
    be at least 0 has no part u_1: that is 0, its slack alpha, and neither moves.
    """
    # The parts of x begin at its positive and negative parts plus this share of the size of w.
    beyond = 0.1
    # The method ends at rounding: where a residual has grown to more than this many times its least
    # value, and exceeds alpha as many times.
    residual_rounding = 10

    H, _, w, alpha, nonnegative = model
    largest = H.diagonal().max(initial=0.0)
    if not largest > 0:
        return w

    sign = np.array([[1.0], [-1.0]])
    start = np.abs(w).max() or alpha / largest
    exists = np.ones((2, len(w)))
    if nonnegative is not None:
        exists[1, nonnegative] = 0.0
    n_parts = exists.sum()
    u, z = exists * (np.maximum(sign * w, 0.0) + beyond * start), np.full((2, len(w)), alpha)
    best, least, least_residual = w, np.inf, np.inf

    for _ in range(INTERIOR_STEPS):
        check_not_ended()
        budget.add_factor(len(w))
        x, mean = u[0] - u[1], np.sum(u * z) / n_parts
        for candidate in (np.where((u / u.max() < z / alpha).all(axis=0), 0.0, x), x):
            v = model.slopes(candidate)
            value = 0.5 * (candidate - w) @ (model.g + v) + alpha * np.abs(candidate).sum()
            if value < least:
                best = candidate
                least = value
                violation = largest_violation(candidate, v, alpha, nonnegative)

        residual = exists * (alpha + sign * v - z)
        worst = np.abs(residual).max()
        step = _newton_direction(H, u, z, residual, exists)
        if (
            violation <= tol
            or budget.is_spent
            or step is None
            or worst > residual_rounding * max(alpha, least_residual)
        ):
            break

        least_residual = min(worst, least_residual)
        du, dz = step(-u * z)
        t = _longest(u, du, z, dz)
        share = (np.sum((u + t * du) * (z + t * dz)) / n_parts / mean) ** 3
        du, dz = step(exists * (share * mean - u * z - du * dz))
        t = min(1.0, SHORT * _longest(u, du, z, dz))
        u, z = u + t * du, z + t * dz
    return best


def _newton_direction(H, u, z, residual, exists):
    """Return the function step(a) = (du, dz) with z du + u dz = a and dz = residual +- H (du_0 -
    du_1) of the parts that exist.

    With S = sum u / z, (H + 1 / S) dx = q / S, q the difference of (a - u residual) / z; then H dx
    = (q - dx) / S. None where the system has no finite solution.
    """
    from scipy.linalg import cho_solve

    S, damped, sign = (u / z).sum(axis=0), H.copy(), np.array([[1.0], [-1.0]])
    damped.flat[:: len(S) + 1] += 1 / S
    factor = factor_positive(damped)
    if factor is None:
        return None

    def step(a):
        plus, minus = (a - u * residual) / z
        q = plus - minus
        dx = cho_solve(factor, q / S, check_finite=False)
        dz = residual + exists * sign * ((q - dx) / S)
        return (a - u * dz) / z, dz

    return step


def _longest(u, du, z, dz):
    """Return the longest step, of at most 1, that keeps u and z nonnegative."""
    return min(
        1.0, *(float((-a[d < 0] / d[d < 0]).min(initial=1.0)) for a, d in ((u, du), (z, dz)))
    )
