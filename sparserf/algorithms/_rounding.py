"""How far the solution may be, with all that rounding may have added to what is known of it.

A sum of k products, |a|'|b| in all, is computed to within LIKELY sqrt(k) u |a|'|b|, u = 2^-53: each of its k additions adds an
error of at most u times the sum so far, and as many independent errors of mean zero add up to more than twice the root of the
sum of their squares in one case of thousands (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019).
The numbers of float32 rows are exact in float64, in which all is added up.

Lengths over the rows are |e| = sqrt(n sum e_i^2 / s_i) of what is like v, and sqrt(sum s_i e_i^2 / n) of what is like z.
"""

import numpy as np

from ..solvers.krylov import norms

UNIT, LIKELY = 2.0**-53, 2.0
# Margins that move by no more keep the least curvature that they have between.
TUBES = (1e-3, 1e-5, 1e-7)


def of_sums(k):
    return LIKELY * k**0.5 * UNIT


def over_rows(s, v):
    """|v| of each output; 0 in rows without weight."""
    return np.sqrt(len(s)) * norms(np.divide(v, np.sqrt(s), out=np.zeros_like(v), where=s > 0))


def of_margins(inputs, problem, point, offset, v, h):
    """|z - z^| of z = f + b + offset. f is the sum of Z w of the steps to w; b is not quite at its best.

    |x_i'w - (x_i'w)^| <= of_sums(d) sum_j |x_ij| |w_j|, whose length over the rows is at most sum_j |x_j| |w_j|. The slope
    xi = sum v in b is that of a b away by xi / sum h.
    """
    s, (xi, total) = problem.weight, (np.abs(v.sum(axis=1)), h.sum(axis=1))
    astray = np.divide(xi, total, out=np.zeros_like(xi), where=(total > 0) & problem.fit_intercept)
    additions = 2 * UNIT * norms(np.sqrt(s / len(s)) * (np.abs(point.f) + np.abs(point.b)[:, None] + np.abs(offset)))
    return of_sums(inputs.rows.longest_row + 2) * (point.way @ inputs.sizes_in_sums) + additions + astray


def of_dual_point(problem, v, in_z):
    """|v - v^| of v = s L'(z) / n: |L'(z) - L'(z^)| <= smoothness |z - z^|."""
    return problem.loss.smoothness * in_z + 4 * UNIT * over_rows(problem.weight, v)


def of_gradient(inputs, problem, w, v, in_v):
    """|g_j - g_j^| of g = alpha w + Z'v: |z_j'e| <= |z_j| |e| for the error e of v, and the rounding of the sums themselves."""
    return np.outer(in_v, inputs.sizes) + of_correlation(inputs, problem, v) + 2 * UNIT * problem.alpha * np.abs(w)


def of_correlation(inputs, problem, v):
    """In Z'v, sums over the rows."""
    return of_sums(inputs.n_rows) * np.outer(over_rows(problem.weight, v), inputs.sizes_in_sums)


def in_domain(problem, a):
    """Whether the conjugate losses are finite at n a / s: of each output."""
    if not problem.loss.is_classifier:
        return np.full(len(a), True)
    most = np.inf if problem.loss.name == "squared_hinge" else problem.weight
    up = -problem.y * a * a.shape[1]
    return ((up >= 0) & (up <= most)).all(axis=1)


def nearby(inputs, problem, z, g, in_g):
    """(r, e): |w - w*| <= r + e for gradients of |g| + in_g; infinite where that is not found. For few inputs, one output."""
    unknown = np.inf, np.inf
    return next((found for tube in TUBES if (found := _inside(tube, inputs, problem, z, g, in_g)) is not None), unknown)


@np.errstate(over="ignore")
def _inside(tube, inputs, problem, z, g, in_g):
    """`nearby`, None where w* may be outside of a tube around the margins.

    Inside, the Hessian is at least H = alpha I + Z' Pi diag(h) Pi Z for h the least curvature there, and that at least theta D,
    D the diagonal of H. So theta |D^1/2 dw|^2 <= -g'dw for dw on the way to w*, and |D^1/2 dw| <= |D^-1/2 g| / theta. If that
    moves no margin out of the tube, w* is inside.
    """
    s, n = problem.weight, inputs.n_rows
    h = np.min([problem.curvature(z + shift) for shift in (-tube, 0.0, tube)], axis=0)
    H, total = inputs.gram(h), h.sum()
    mean = inputs.correlate(h) if problem.fit_intercept and total > 0 else np.zeros(len(H))
    before = H.diagonal().copy()
    H -= np.outer(mean, mean / max(total, 1e-300))
    H.flat[:: len(H) + 1] += problem.alpha
    D = H.diagonal()
    if not (D > 0).all():
        return None
    theta = np.linalg.eigvalsh(H / np.sqrt(D) / np.sqrt(D)[:, None])[0] - of_sums(n) * (1 + before / D).sum()
    if theta <= 0:
        return None
    lengths = norms(np.vstack([g, in_g]) / np.sqrt(D))
    moved = 2 * lengths.sum() / theta * np.sqrt(n / s[s > 0].min() * (inputs.sizes**2 / D).sum())
    if problem.fit_intercept:
        moved += lengths.sum() / np.sqrt(max(theta * total, 1e-300))
    if problem.loss.name != "squared" and not moved < tube:
        return None
    return tuple(lengths / (theta * np.sqrt(D.min())))
