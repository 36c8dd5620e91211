"""A primal-dual interior point for  minimise over x   (1/2) (x - w)' H (x - w) + g' (x - w) + alpha |x|_1,  H however
ill-conditioned: some tens of Cholesky factorisations.

S. Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optimization 2, 1992.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.progress import check_not_ended
from .._core.descent import largest_violation
from .definite import factor_positive

if TYPE_CHECKING:
    from .effort import Effort

MOST_STEPS = 60
# Where the parts of x begin, in units of its size, and of the way to the boundary, how much a step goes.
START, SHORT = 0.1, 0.995
# A residual that has grown by so much, and is more than alpha by so much, is rounding.
ROUNDING = 10


def interior_point(H: np.ndarray, g: np.ndarray, w: np.ndarray, alpha: float, tol: float, effort: Effort) -> np.ndarray:
    """x to a violation of at most tol, the largest distance of 0 to the subdifferential at an x_j, or as near as rounding lets.

    x = u_0 - u_1, both positive, and z = alpha +- v their slacks, v = g + H (x - w): at the optimum u z = 0 and z >= 0.
    What is smaller, in units of the largest, than its slack in units of alpha is taken for zero.
    """
    largest = H.diagonal().max(initial=0.0)
    if not largest > 0:
        return w
    sign, start = np.array([[1.0], [-1.0]]), np.abs(w).max() or alpha / largest
    u, z = np.maximum(sign * w, 0.0) + START * start, np.full((2, len(w)), alpha)
    best, least, least_residual = w, np.inf, np.inf
    for _ in range(MOST_STEPS):
        check_not_ended()
        effort.add_factor(len(w))
        x, mean = u[0] - u[1], np.mean(u * z)
        for point in (np.where((u / u.max() < z / alpha).all(axis=0), 0.0, x), x):
            v = g + H @ (point - w)
            value = 0.5 * (point - w) @ (g + v) + alpha * np.abs(point).sum()
            if value < least:
                best, least, violation = point, value, largest_violation(point, v, alpha)
        residual = alpha + sign * v - z
        worst = np.abs(residual).max()
        step = _newton_direction(H, u, z, residual)
        if violation <= tol or effort.is_spent or step is None or worst > ROUNDING * max(alpha, least_residual):
            break
        least_residual = min(worst, least_residual)
        du, dz = step(-u * z)
        t = _longest(u, du, z, dz)
        share = (np.mean((u + t * du) * (z + t * dz)) / mean) ** 3
        du, dz = step(share * mean - u * z - du * dz)
        t = min(1.0, SHORT * _longest(u, du, z, dz))
        u, z = u + t * du, z + t * dz
    return best


def _newton_direction(H, u, z, residual):
    """step(a) = (du, dz) with z du + u dz = a and dz = residual +- H (du_0 - du_1); None where no number solves it.

    With S = sum u / z, (H + 1 / S) dx = q / S, q = the difference of (a - u residual) / z; then H dx = (q - dx) / S.
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
        dz = residual + sign * ((q - dx) / S)
        return (a - u * dz) / z, dz

    return step


def _longest(u, du, z, dz):
    """The longest step, 1 at most, that leaves all positive."""
    return min(1.0, *(float((-a[d < 0] / d[d < 0]).min(initial=1.0)) for a, d in ((u, du), (z, dz))))
