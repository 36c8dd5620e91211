"""How far the solution may be, with all that rounding may have added to what is known of it.

A sum of k products, |a|'|b| in all, is computed to within LIKELY sqrt(k) u |a|'|b|, u = 2^-53: each of its k additions adds an
error of at most u times the sum so far, and as many independent errors of mean zero add up to more than twice the root of the
sum of their squares in one case of thousands (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019).
The numbers of float32 rows are exact in float64, in which all is added up.

Lengths over the rows are |e| = sqrt(n sum e_i^2 / s_i) of what is like v, and sqrt(sum s_i e_i^2 / n) of what is like z.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..solvers.krylov import norms

if TYPE_CHECKING:
    from .inputs import Inputs
    from .point import Point
    from .problem import LinearProblem

UNIT, LIKELY = 2.0**-53, 2.0
# Margins that move by no more keep the least curvature that they have between.
TUBES = (1e-3, 1e-5, 1e-7)


def of_sums(k: int) -> float:
    return LIKELY * k**0.5 * UNIT


def of_margins(inputs: Inputs, way: np.ndarray, size: np.ndarray, astray: np.ndarray) -> np.ndarray:
    """|z - z^| of z = f + b, of |f| + |b| of that size. f is the sum of Z w of the steps to w, whose |w| add up to way; b is
    astray from its best.

    |x_i'w - (x_i'w)^| <= of_sums(d) sum_j |x_ij| |w_j|, whose length over the rows is at most sum_j |x_j| |w_j|.
    """
    return of_sums(inputs.rows.longest_row + 2) * (way @ inputs.sizes_in_sums) + 2 * UNIT * size + astray


def of_dual_point(smoothness: float | np.ndarray, in_z: np.ndarray, size: np.ndarray) -> np.ndarray:
    """|v - v^| of v = s L'(z) / n of that size: |L'(z) - L'(z^)| <= smoothness |z - z^|."""
    return smoothness * in_z + 4 * UNIT * size


def of_gradient(inputs: Inputs, alpha: float, w: np.ndarray, in_v: np.ndarray, size: np.ndarray) -> np.ndarray:
    """|g_j - g_j^| of g = alpha w + Z'v: |z_j'e| <= |z_j| |e| for the error e of v, and the rounding of the sums themselves."""
    return np.outer(in_v, inputs.sizes) + of_correlation(inputs, size) + 2 * UNIT * alpha * np.abs(w)


def of_correlation(inputs: Inputs, size: np.ndarray) -> np.ndarray:
    """The error of Z'v, sums over the rows, for v of that size."""
    return of_sums(inputs.n_rows) * np.outer(size, inputs.sizes_in_sums)


def nearby(inputs: Inputs, problem: LinearProblem, at: Point, g: np.ndarray, in_g: np.ndarray) -> np.ndarray:
    """(r, e), a number an output: |w - w*| <= r + e for gradients of |g| + in_g; infinite where that is not found."""
    found = np.full((2, len(g)), np.inf)
    for tube in TUBES if problem.loss.is_unimodal else ():
        h = problem.least_curvature(at.f, at.b, tube)
        for k in np.flatnonzero(np.isinf(found[0])):
            found[:, k] = _inside(tube, inputs, problem, problem.vectors.output(h, k), g[k], in_g[k])
        if np.isfinite(found).all():
            break
    return found


@np.errstate(over="ignore")
def _inside(tube, inputs, problem, h, g, in_g):
    """`nearby` of one output whose margins have the least curvature h in a tube around them; infinite where w* may be outside.

    Inside, the Hessian is at least H = alpha I + Z' Pi diag(h) Pi Z, and that at least theta D, D the diagonal of H. So theta
    |D^1/2 dw|^2 <= -g'dw for dw on the way to w*, and |D^1/2 dw| <= |D^-1/2 g| / theta. If that moves no margin out of the
    tube, w* is inside.
    """
    unknown = np.inf, np.inf
    H, before = inputs.curvature(h, problem.fit_intercept)
    H.flat[:: len(H) + 1] += problem.alpha
    D = H.diagonal()
    if not (D > 0).all():
        return unknown
    theta = np.linalg.eigvalsh(H / np.sqrt(D) / np.sqrt(D)[:, None])[0] - of_sums(inputs.n_rows) * (1 + before / D).sum()
    if theta <= 0:
        return unknown
    lengths = norms(np.vstack([g, in_g]) / np.sqrt(D))
    if not problem.loss.is_quadratic and not _moved(lengths.sum(), theta, D, inputs, problem, h) < tube:
        return unknown
    return tuple(lengths / (theta * np.sqrt(D.min())))


def _moved(length, theta, D, inputs, problem, h):
    """By how much margins move at most, where |D^1/2 dw| <= length / theta."""
    by_w = 2 * length / theta * np.sqrt(inputs.n_rows / problem.least_weight() * (inputs.sizes**2 / D).sum())
    if not problem.fit_intercept:
        return by_w
    return by_w + length / np.sqrt(max(theta * float(problem.vectors.total(h)), 1e-300))
