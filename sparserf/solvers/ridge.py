"""The ridge problem on a support:  minimise over w, b   (1/n) sum_i s_i L(phi_i'w + b, y_i) + 1/2 sum_j p_j w_j^2.

Newton's method, each step in the primal (Gram matrix, terms x terms) or in the dual (kernel matrix, rows x rows),
whichever is smaller. With the squared loss one step is the solution. p > 0.
"""

import numpy as np

from .definite import solve_positive
from .problem import Problem

MAX_STEPS = 50
# A step that promises to lower the objective by less than this share of it is not worth taking.
NEGLIGIBLE = 1e-12


class RidgeProblem(Problem):
    """The penalty is 1/2 sum_j p_j w_j^2, p = alpha r^2 for the scales r of the features."""

    def objective(self, z, w, p):
        with np.errstate(over="ignore"):  # infinitely bad
            return self.mean_loss(z) + 0.5 * float(np.sum((np.sqrt(p) * w) ** 2))

    def dual_value(self, u, largest_squares, c=1.0):
        """D <= P at c times the dual point, u = L'(z), where a w can use at most `largest_squares` = sum of g_j^2 / r_j^2."""
        most = min(float(largest_squares) / (2 * max(self.alpha, 1e-300)), 1e300)  # float: infinity without a warning
        return -self.mean_conjugate(u, c) - c * c * most

    def lower_bound(self, z, squares, s):
        """On the objective of any s features: sum of the s largest g_j^2 is all that a dual point can lose to w.

        Along c times the dual point the dual is concave in c; golden-section search.
        """
        largest, u = np.sort(squares)[max(0, len(squares) - s) :].sum(), self.derivative(z)
        golden = (5**0.5 - 1) / 2
        low, high, a, b = 0.0, 1.0, 1 - golden, golden
        at_a, at_b, best = (self.dual_value(u, largest, c) for c in (a, b, 0.0))
        for _ in range(20):
            best = max(best, at_a, at_b)
            if at_a < at_b:
                low, a, at_a = a, b, at_b
                b = low + golden * (high - low)
                at_b = self.dual_value(u, largest, b)
            else:
                high, b, at_b = b, a, at_a
                a = high - golden * (high - low)
                at_a = self.dual_value(u, largest, a)
        return max(best, at_a, at_b)


def solve(problem, phi, p, w, b, f):
    """argmin from (w, b, f = Phi w): returns w, b, f.

    phi answers correlate(v), apply(c), curvature(h) = (Phi' diag(h) Phi, Phi' h), and kernel() = Phi diag(alpha / p) Phi',
    the last where there are fewer rows than terms.
    """
    for _ in range(MAX_STEPS):
        z = problem.margins(f, b)
        v, h = problem.dual_point(z), problem.curvature(z)
        step = _primal_step if len(w) <= problem.n_rows else _dual_step
        new = step(problem, phi, p, v, h, w, b, f)
        if problem.loss.name == "squared" and new is not None:
            return new
        point = None if new is None else line_search(problem, p, (w, b, f), new)
        if point is None:
            break
        w, b, f = point
    return w, b, f


def _primal_step(problem, phi, p, v, h, w, b, f):
    """[H + P, m; m', sum h] [d; e] = -[g; sum v], with e eliminated. None where no number solves it."""
    H, m = phi.curvature(h)
    g = phi.correlate(v) + p * w
    slope, shift = problem.following(h, m), problem.following(h, problem.vectors.total(v))
    H = H + np.outer(m, slope) if problem.fit_intercept else H.copy()
    H.flat[:: len(m) + 1] += p
    d = solve_positive(H, -(g + m * shift))
    return None if d is None else (w + d, b + shift + slope @ d, problem.vectors.along(f, 1, phi.apply(d)))


def _dual_step(problem, phi, p, v, h, w, b, f):
    """Of fewer rows than terms, whose vectors come here."""
    K, vectors = phi.kernel(), problem.vectors
    solved = solve_dual(problem, K, *map(vectors.fetch, (v, h, f)))
    if solved is None:
        return None
    u, e = solved
    return phi.correlate(vectors.put(u)) / (p / problem.alpha), b + e, vectors.put(K @ u)


def solve_dual(problem, K, v, h, f):
    """w = R^-2 Phi' u with u = root q, root = sqrt(h):  (alpha I + root K root) q = root (f - e) - v / root,  sum u = 0.

    R^2 = P / alpha and K = Phi R^-2 Phi', so that Phi w = K u. Returns u and the step e of the intercept; None where no
    number solves it.
    """
    h = np.maximum(h, 1e-9 * np.abs(v))  # where the logistic loss is straight
    root = np.sqrt(h)
    M = root[:, None] * K
    M *= root
    M.flat[:: len(M) + 1] += problem.alpha
    rhs = root * f - np.divide(v, root, out=np.zeros_like(v), where=root > 0)
    solved = solve_positive(M, np.column_stack([rhs, root]))
    if solved is None:
        return None
    q, q_1 = solved.T
    e = (root @ q) / (root @ q_1) if problem.fit_intercept and root @ q_1 > 0 else 0.0
    return root * (q - e * q_1), e


def line_search(problem, p, start, end):
    """The first of 1, 1/2, 1/4, ... of the step that lowers the objective; None where none does by what counts."""
    (w, b, f), (w_1, b_1, f_1) = start, end
    before = problem.objective(problem.margins(f, b), w, p)
    for t in 0.5 ** np.arange(30):
        w_t, b_t, f_t = w + t * (w_1 - w), b + t * (b_1 - b), problem.vectors.between(f, t, f_1)
        if problem.objective(problem.margins(f_t, b_t), w_t, p) < before - NEGLIGIBLE * abs(before):
            return w_t, b_t, f_t
    return None
