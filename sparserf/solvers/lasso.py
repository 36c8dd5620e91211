"""The l1 problem on a working set:  minimise over w, b   (1/n) sum_i s_i L(phi_i'w + b, y_i) + alpha |w|_1.

Prox-Newton: each step minimises the quadratic model on the (weighted) Gram matrix and searches along the line. With the
squared loss the model is exact and one step is the solution. For the others the Gram matrix is most of the work: it is kept
for as long as the steps made with it do, and made of a sample of the rows, and in single precision, where these do.
"""

import numpy as np

from .._core.descent import largest_violation
from .problem import Problem
from .quadratic import minimize

# To which share of the violation a model that is not exact is minimised at first; then less, while whole steps succeed, or
# more, at most HARDLY.
TRUST, HARDLY = 0.1, 0.5
# Its damping, from LEAST on, which rises by a factor where a step falls short, and falls by it where not.
LEAST, DAMPED = 1e-14, 100
# A fall of the objective below this share of it is rounding.
ROUNDING = 1e-14
# Multiplications in the time of a step on next to nothing.
LEAST_STEP = 1e7
# A step of this size or more, or NaN, is that of a model without a minimum.
LARGEST = 1e250
# Rows in the sample for each term at first, and by how much it grows. A step that leaves more than SLOW of the gap asks for
# a better model; a whole one of the best model that leaves more than IDLE, and lowers the objective by less than CREEP of the
# gap, is rounding.
# Where a step may leave a share of the violation, it may leave TIMES that share of the gap before a better model is asked for,
# and POOR of the gap before one of more rows is.
ROWS_A_TERM, GROWTH, SLOW, IDLE, CREEP = 8, 2, 0.05, 0.9, 1e-3
TIMES, POOR = 5, 0.7


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


class ModelWeights:
    """The row weights h of the quadratic model, Phi' diag(h) Phi its Hessian: s L''(z) / n at some z, of some of the rows."""

    def __init__(self, problem):
        self._problem, self._h, self._rows_a_term, self._aim = problem, None, ROWS_A_TERM, None
        self._uniform = None  # a random number a row
        self.is_best, self.is_rough = False, not problem.loss.is_quadratic

    def at(self, z, n_terms):
        """Those that there are, or new ones at z; is_best: of all rows, at z alone, and not for single precision."""
        is_new = self._h is None
        if is_new:
            everywhere = self._everywhere(z)
            self._h = everywhere if self._problem.loss.is_quadratic else self._sampled(everywhere, self._rows_a_term * n_terms)
            self._is_whole = self._h is everywhere
        is_new_and_whole = is_new and self._is_whole and not self.is_rough
        self.is_best = self._problem.loss.is_quadratic or (is_new_and_whole and self._aim is None)
        self._is_new = is_new
        return self._h

    def _everywhere(self, z):
        """At z, or where it is larger at the aim, there."""
        problem, vectors = self._problem, self._problem.vectors
        h = problem.curvature(z)
        if not vectors.count(h):  # every row is well beyond its margin: the most that there can be
            h = vectors.scaled(problem.weight, problem.loss.smoothness / problem.n_rows)
        return h if self._aim is None else vectors.larger(h, problem.curvature(self._aim))

    def _sampled(self, h, n):
        """About n of these weights, as `RowVectors.sampled`; or all, if there are few more."""
        vectors = self._problem.vectors
        if vectors.count(h) <= 2 * n:
            return h
        if self._uniform is None:
            self._uniform = vectors.put(np.random.default_rng(0).random(vectors.n_rows))
        return vectors.sampled(h, n, self._uniform)

    def improve(self, aim, grow, settle):
        """Let the next be new; where the last step fell short, for the way to its margins `aim`.

        grow: of more rows, if these are new; settle: where these were of all, and new, in the precision of the rows.
        """
        if self._problem.loss.is_quadratic:
            return
        self.is_rough = not (settle and self._is_new and self._is_whole)
        if grow and self._is_new and not self._is_whole:
            self._rows_a_term *= GROWTH
        self._h, self._aim = None, aim


def solve(problem, phi, w, b, f, g, tol, max_iter=100, share=0.0):
    """Prox-Newton from (w, b, f = Phi w) until the duality gap over phi is at most tol.

    phi answers correlate(v), apply(c), curvature(h, is_rough) = (Phi' diag(h) Phi, Phi' h), and keeps `effort` and `weights`,
    the h of the model; g is the gradient of the mean loss in w. Returns w, b, f, g of the end. The objective never rises; the
    end is above tol where no step lowers it by what counts. share: of the largest violation, what a step may leave.
    """
    gap = problem.dual_gap(problem.margins(f, b), w, np.abs(g).max(initial=0.0))
    trust, damping = 0.0 if problem.loss.is_quadratic else TRUST, LEAST
    for _ in range(max_iter):
        if gap <= tol or phi.effort.is_spent:
            break
        phi.effort.add(LEAST_STEP)
        H, slope_b = _quadratic_model(problem, phi, phi.weights.at(problem.margins(f, b), len(w)), damping)
        # The gap shrinks with the violation.
        accuracy = max(0.3 * tol / gap, share, trust) * largest_violation(w, g, problem.alpha)
        with np.errstate(over="ignore", invalid="ignore"):  # if rounding left H no minimum, d may be of any size
            d = minimize(H, g, w, problem.alpha, accuracy, phi.effort) - w
            point, aim = _line_search(problem, phi, (w, b, f), d, slope_b @ d, g)
        if point is None and phi.weights.is_best:
            break
        trust = trust * TRUST if aim is None else min(HARDLY, trust / TRUST)
        damping = max(LEAST, damping / DAMPED) if aim is None else min(1.0, damping * DAMPED)
        before, start = gap, problem.objective(problem.margins(f, b), w)
        if point is not None:
            w, b, f = point
            g = phi.correlate(problem.dual_point(problem.margins(f, b)))
            gap = problem.dual_gap(problem.margins(f, b), w, np.abs(g).max(initial=0.0))
        fell = start - problem.objective(problem.margins(f, b), w)
        if phi.weights.is_best and aim is None and gap > IDLE * before and fell <= CREEP * before:
            break
        if gap > max(SLOW, TIMES * share) * before:
            phi.weights.improve(aim, share == 0.0 or gap > POOR * before, share == 0.0)
    return w, b, f, g


def _quadratic_model(problem, phi, h, damping):
    """(H, slope): the Hessian in w with the intercept eliminated, and the intercept's step per step in w.

    H is damped by that share of its largest entry, at least by what rounding may have taken from its smallest eigenvalue.
    """
    H, m = phi.curvature(h, phi.weights.is_rough)
    damping = damping * H.diagonal().max(initial=0.0)
    slope = problem.following(h, m)
    H = H + np.outer(m, slope)
    H.flat[:: len(m) + 1] += damping
    return H, slope


def _line_search(problem, phi, point, d, d_b, g):
    """(point, aim): halve the step until the objective falls by a share of what the model promises; None if it never does.

    aim: the margins at the whole step, None where that was taken.
    """
    w, b, f = point
    if not np.abs(d).max(initial=0.0) < LARGEST:
        return None, None
    d_f = phi.apply(d)
    along = problem.vectors.along
    start, aim = problem.objective(problem.margins(f, b), w), problem.margins(along(f, 1, d_f), b + d_b)
    promise = min(0.0, g @ d + problem.alpha * (np.abs(w + d).sum() - np.abs(w).sum()))  # above 0 it is rounding
    for t in 0.5 ** np.arange(34):
        new_w, new_f = w + t * d, along(f, t, d_f)
        if problem.objective(problem.margins(new_f, b + t * d_b), new_w) <= start + 1e-4 * t * promise + 0.1 * ROUNDING * start:
            return (new_w, problem.best_intercept(new_f, b + t * d_b), new_f), aim if t < 1 else None
    return None, aim
