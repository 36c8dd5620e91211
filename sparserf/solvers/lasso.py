"""The l1 problem on a working set:  minimise over w, b   (1/n) sum_i s_i L(phi_i'w + b, y_i) + alpha |w|_1.

Prox-Newton: each step minimises the quadratic model on the (weighted) Gram matrix by coordinate descent and searches
along the line. With the squared loss the model is exact and one step is the solution.
"""

import numpy as np

from .._core.descent import descend, largest_violation
from .._core.search import top_k
from .definite import solve_positive
from .problem import Problem

# Passes of coordinate descent before feature-sign search takes over.
EPOCHS = 10
# Fewest coordinates that enter in a step of feature-sign search, else a twentieth of those there are; and the lengths
# of step that are tried.
ENTER = 5
STEPS = 0.5 ** np.arange(7)
MAX_STEPS = 2000
# How often feature-sign search may fail to descend, and coordinate descent help it on.
PATIENCE = 20
# A fall of the objective below this share of it is rounding.
ROUNDING = 1e-14
# A step of this size or more, or NaN, is that of a model without a minimum.
LARGEST = 1e250


class L1Problem(Problem):
    """The penalty is alpha |w|_1."""

    def objective(self, z, w):
        """P at margins z = Phi w + b."""
        return self.mean_loss(z) + self.alpha * np.abs(w).sum()

    def dual_gap(self, z, w, largest):
        """P - D >= 0 where `largest` is the largest correlation of the dual point with any feature of the problem.

        The dual point is scaled by c = min(1, alpha / largest) to be feasible, D = -(1/n) sum s_i L*(c L'(z_i)).
        It also needs sum(theta) = 0, which is the optimality of the intercept.
        """
        c = min(1.0, self.alpha / largest) if largest > 0 else 1.0
        return max(0.0, self.mean_pair(z, c) + float(self.alpha * np.abs(w).sum()))


def solve(problem, phi, w, b, f, g, tol, max_iter=100, share=0.0, passes=None):
    """Prox-Newton from (w, b, f = Phi w) until the duality gap over phi is at most tol.

    phi answers correlate(v), apply(c) and curvature(h) = (Phi' diag(h) Phi, Phi' h); g is the gradient of the mean loss
    in w. Returns w, b, f, g of the end. The objective never rises; the end is above tol where no step lowers it any
    more in floating point. share: of the largest violation, what a step may leave in any case.
    passes: of coordinate descent in a step, which then is all there is to it.
    """
    for step in range(max_iter + 1):
        z = f + b
        gap = problem.dual_gap(z, w, np.abs(g).max(initial=0.0))
        if gap <= tol or step == max_iter:
            break
        H, slope_b = _quadratic_model(problem, phi, z)
        # The gap shrinks with the violation.
        accuracy = max(0.3 * tol / gap, share) * largest_violation(w, g, problem.alpha)
        with np.errstate(over="ignore", invalid="ignore"):  # if rounding left H no minimum, d may be of any size
            d = minimize(H, g, w, problem.alpha, accuracy, passes) - w
            point = _line_search(problem, phi, (w, b, f), d, slope_b @ d, g)
        if point is None:
            break
        w, b, f = point
        g = phi.correlate(problem.dual_point(f + b))
    return w, b, f, g


def _quadratic_model(problem, phi, z):
    """(H, slope): the Hessian in w with the intercept eliminated, and the intercept's step per step in w.

    H is damped by what rounding may have taken from its smallest eigenvalue, so that the model has a minimum.
    """
    h = problem.curvature(z)
    H, m = phi.curvature(h)
    damping = 1e-14 * H.diagonal().max(initial=0.0)
    slope = problem.following(h, m)
    H = H + np.outer(m, slope)
    H.flat[:: len(m) + 1] += damping
    return H, slope


def _line_search(problem, phi, point, d, d_b, g):
    """Halve the step until the objective falls by a share of what the model promises; None if it never does."""
    w, b, f = point
    if not np.abs(d).max(initial=0.0) < LARGEST:
        return None
    d_f = phi.apply(d)
    start = problem.objective(f + b, w)
    promise = g @ d + problem.alpha * (np.abs(w + d).sum() - np.abs(w).sum())
    t = 1.0
    while promise < 0 and t > 1e-10:
        new_w, new_f = w + t * d, f + t * d_f
        if problem.objective(new_f + (b + t * d_b), new_w) <= start + 1e-4 * t * promise + 0.1 * ROUNDING * start:
            return new_w, problem.best_intercept(new_f, b + t * d_b), new_f
        t /= 2
    return None


def minimize(H, g, w, alpha, tol, passes=None):
    """argmin over x of (1/2) (x-w)'H(x-w) + g'(x-w) + alpha |x|_1, to violations of at most tol; or what some passes reach.

    Coordinate descent, which needs a few passes where the features differ enough; where it has not converged by then,
    feature-sign search from the same start, which takes any H that is positive semidefinite.
    """
    x, v = w.copy(), g.copy()
    descend(H, x, v, alpha, EPOCHS if passes is None else passes)
    if passes is not None or largest_violation(x, v, alpha) <= tol:
        return x
    x, v = w.copy(), g.copy()
    patience = PATIENCE
    for _ in range(MAX_STEPS):
        if patience == 0 or largest_violation(x, v, alpha) <= tol:
            break
        if not _feature_sign_step(H, x, v, alpha, 0.5 * tol):  # rounding is all that it sees: passes still descend
            descend(H, x, v, alpha, EPOCHS)
            patience -= 1
    return x


def _feature_sign_step(H, x, v, alpha, tol):
    """One step of feature-sign search (Lee, Battle, Raina & Ng 2006) in place; returns whether the objective fell.

    The worst violators among the zeros get the sign in which they descend. With all signs fixed the penalty is linear
    and the minimum a linear system. The step goes there if it keeps the signs; else the best of some shorter ones is
    taken, a coordinate that would change its sign set to zero. The last of them ends at the first such zero, so that
    it is sure to descend.
    """
    # One alone keeps its sign where the others stand at their minimum; else none enters.
    for n_enter in (max(ENTER, np.count_nonzero(x) // 20), 1, 0):
        sign = _with_violators(x, v, alpha + tol, n_enter)
        A = np.flatnonzero(sign)
        slope = v[A] + alpha * sign[A]
        d = solve_positive(H[np.ix_(A, A)], -slope)
        if d is None:
            return False
        if np.all((x[A] != 0) | (d * sign[A] > 0)):
            break
    x_A = x[A]
    crossing = (x_A != 0) & (x_A * (x_A + d) < 0)
    to_zero = np.full(len(A), np.inf)
    to_zero[crossing] = -x_A[crossing] / d[crossing]
    lengths = (*STEPS, to_zero.min()) if crossing.any() else (1.0,)
    best, best_value = None, -ROUNDING * alpha * np.abs(x_A).sum()
    for t in lengths:
        step = np.where(to_zero <= t, -x_A, t * d)
        change = step @ H[A]
        value = step @ slope + 0.5 * step @ change[A]
        if value < best_value:
            best_value, best = value, (step, change)
    if best is None:
        return False
    step, change = best
    x[A] = np.where(step == -x_A, 0.0, x_A + step)
    v += change
    return True


def _with_violators(x, v, threshold, n):
    """The signs of x, and for the n zeros of largest |v| above the threshold the sign in which they descend."""
    entering = np.empty(n, np.intp)
    entering = entering[: top_k(np.where(x == 0, np.abs(v), 0.0), threshold, entering)]
    sign = np.sign(x)
    sign[entering] = -np.sign(v[entering])
    return sign
