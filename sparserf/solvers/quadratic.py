"""A quadratic with an l1 penalty:  minimise over x   (1/2) (x - w)' H (x - w) + g' (x - w) + alpha |x|_1.

Passes of coordinate descent find the support, and a Newton step on it, kept to the orthant of its signs, the values; again
until the violation is below the tolerance. H is positive semidefinite. Where that takes long, features being nearly collinear,
an interior point comes near first.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from .._base.progress import check_not_ended
from .._core.descent import descend, largest_violation
from .definite import solve_positive
from .effort import UNBOUNDED
from .interior_point import interior_point

if TYPE_CHECKING:
    from .effort import Effort

# Passes of coordinate descent before each Newton step; rounds of both before the interior point, and after it.
PASSES, FEW_ROUNDS, MOST_ROUNDS = 20, 6, 30
# Multiplications of a matrix product in the time of one of a pass, which waits for memory.
WAIT = 10


def minimize(H: np.ndarray, g: np.ndarray, w: np.ndarray, alpha: float, tol: float, effort: Effort = UNBOUNDED) -> np.ndarray:
    """argmin over x from x = w, to a violation of at most tol: the largest distance of 0 to the subdifferential at one x_j.

    Or the x at which the effort is spent.
    """
    x, violation = _alternate(H, g, w, w, alpha, tol, FEW_ROUNDS, effort)
    if violation > tol and not effort.is_spent:
        x = interior_point(H, g, w, alpha, tol, effort)
        x, _ = _alternate(H, g, w, x, alpha, tol, MOST_ROUNDS, effort)
    return x


def _alternate(H, g, w, x, alpha, tol, rounds, effort):
    """(x, its violation) after at most so many rounds of passes and a Newton step, from x."""
    x, v = x.copy(), g + H @ (x - w)
    for _ in range(rounds):
        check_not_ended()
        effort.add(WAIT * PASSES * len(x) ** 2)
        if descend(H, x, v, alpha, PASSES) <= tol or effort.is_spent:
            break
        effort.add_factor(np.count_nonzero(x))
        newton_step(H, x, v, alpha)
        v = g + H @ (x - w)  # without what rounding has added up
    return x, largest_violation(x, v, alpha)


def newton_step(H: np.ndarray, x: np.ndarray, v: np.ndarray, alpha: float) -> None:
    """On the support, where the signs stay and the penalty is linear: to the minimum, or as near to it as descends.

    What would change its sign becomes zero; or keeps the new one, if that is lower, as where alpha is next to nothing. If
    neither descends, the step ends where half of what becomes zero on the way has done so, or a quarter, ...: the first of
    these that descends. At the last, the first sign to change, it is sure to.
    """
    A = np.flatnonzero(x)
    x_A, H_A = x[A], H.take(A, axis=0).take(A, axis=1)
    d = solve_positive(H_A, -(v[A] + alpha * np.sign(x_A)))
    if d is None:
        return
    to_zero = np.divide(-x_A, d, out=np.full(len(A), np.inf), where=x_A * d < 0)
    changing = np.sort(to_zero[to_zero <= 1])
    ends = [changing[len(changing) >> k] for k in range(1, len(changing).bit_length() + 1)]

    def change(new):
        step = new - x_A
        return step @ (v[A] + 0.5 * (H_A @ step)) + alpha * (np.abs(new) - np.abs(x_A)).sum()

    kept = np.where(to_zero <= 1, 0.0, x_A + d)
    shorter = (np.where(to_zero <= t, 0.0, x_A + t * d) for t in ends)
    for new in itertools.chain([min(kept, x_A + d, key=change)], shorter):
        if change(new) < 0:
            x[A] = new
            return
