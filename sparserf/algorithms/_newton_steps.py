"""The step of Newton's method for w = X'u by conjugate gradients: in w, on H itself or its factors, or in u, on a sketch.

H = alpha I + X' Pi diag(h) Pi X, with Pi the projection that an intercept at its best means; none where there is none.
"""

import numpy as np

from ..solvers.krylov import Shrunk, conjugate_gradients, dots
from ._recovery import FLAT, Point

# Without rounding conjugate gradients end after as many steps as X has rank; where its columns differ by 1e10 in size, after
# some twenty times as many; more lead nowhere.
MAX_STEPS, RANKS = 1000, 50
# Steps of conjugate gradients on one system that are worth a better preconditioner.
SLOW = 20
# Share of their sum by which the row weights h may change before a preconditioner is made anew.
MOVED = 0.2
# Of this many rows for each of at least MANY inputs, drawn at random, the second moments are within small factors of those
# of all rows, and made in the time of few passes over them.
ROWS_AN_INPUT, MANY = 40, 200
# Multiplications of a matrix product, a number of the rows, that take as long as one pass over them.
A_PASS = 50
# Times alpha, up to which the level nu of a sketch saves more steps than its products with the rows cost.
PAYS = 16


class Steps:
    """What the kinds of step share: a preconditioner for each output, kept while its row weights change little."""

    def __init__(self, inputs, fit_intercept):
        self._inputs, self._fit_intercept = inputs, fit_intercept
        self._made = {}

    def _update(self, h, alpha, make):
        """(h when it was made, make(h, alpha)) of each output; made again where h or alpha is not what it was."""
        for k, h_k in enumerate(h):
            old = self._made.get(k)
            if k and np.array_equal(h_k, h[0]):
                self._made[k] = self._made[0]
            elif old is None or old[1] != alpha or np.abs(h_k - old[0]).sum() > MOVED * old[0].sum():
                self._made[k] = (h_k, alpha, make(h_k, alpha))
        made = [self._made[k] for k in range(len(h))]
        return np.array([h for h, *_ in made]), [P for *_, P in made]

    def _solve(self, fit, A, precondition, b, enough, max_steps, dots=dots):
        """`conjugate_gradients`, until the callback says so too."""

        def over(x, r, rho):
            return enough(x, r, rho) | fit.is_told_to_stop()

        most = RANKS * (1 + min(self._inputs.n_rows, self._inputs.n_features))
        return conjugate_gradients(A, precondition, b, over, min(max_steps, most), dots)

    def _following(self, h, sums):
        """-sums / sum h, a number each: by how much the intercept follows; 0 without one."""
        total = h.sum(axis=1)
        return -np.divide(sums, total, out=np.zeros(len(h)), where=(total > 0) & self._fit_intercept)

    def _hessian(self, fit):
        """The function of w that answers diag(h) Pi X w, and X' of it."""
        h, means = fit.h, fit.means

        def product(w):
            f, total = self._inputs.normal(h, w)
            shift = self._following(h, dots(h, f))[:, None]
            return h * (f + shift), total + shift * means

        return product

    def _point(self, w, u, h):
        f = self._inputs.apply(w)
        return Point.at_w(w, f, self._following(h, dots(h, f)), u)


class PlainSteps(Steps):
    """No preconditioner: one pass over the rows a step. Every vector is kept as (w, u) with w = X'u."""

    def __call__(self, fit, shares, max_steps=MAX_STEPS):
        """(the step from fit.at, a Point, steps of conjugate gradients)."""
        d, alpha, h = self._inputs.n_features, fit.problem.alpha, fit.h
        hessian = self._hessian(fit)

        def A(p):
            u, w = hessian(np.ascontiguousarray(p[:, :d]))
            return alpha * p + np.hstack([w, u])

        def dots_in_w(a, b):
            return dots(a[:, :d], b[:, :d])

        most = shares**2 * dots(fit.g, fit.g)
        b = -np.hstack([fit.g, alpha * fit.at.u + fit.v])
        x, n_iter = self._solve(fit, A, lambda r: r, b, lambda x, r, rho: rho <= most, max_steps, dots_in_w)
        return self._point(np.ascontiguousarray(x[:, :d]), x[:, d:], h), n_iter


class InputSteps(Steps):
    """Few inputs: H itself is made and factored, of a sample of the rows where they are many, and conjugate gradients correct
    what is not in the sample and what h has changed since."""

    def __init__(self, inputs, fit_intercept, rng=None):
        super().__init__(inputs, fit_intercept)
        n, d = inputs.n_rows, inputs.n_features
        is_sampled = rng is not None and d >= MANY and n >= 2 * ROWS_AN_INPUT * d
        self._sample = rng.choice(n, ROWS_AN_INPUT * d, replace=False, shuffle=False) if is_sampled else None

    def __call__(self, fit, shares):
        """(the step from fit.at, a Point, steps of conjugate gradients)."""
        alpha, h = fit.problem.alpha, fit.h
        _, parts = self._update(h, alpha, self._inverse)
        hessian = self._hessian(fit)

        def A(p):
            return alpha * p + hessian(p)[1]

        def precondition(r):
            return np.array([P @ r_k for P, r_k in zip(parts, r, strict=True)])

        most = shares**2 * dots(fit.g, precondition(fit.g))
        max_steps = MAX_STEPS if self._sample is None else SLOW
        w, n_iter = self._solve(fit, A, precondition, -fit.g, lambda w, r, rho: rho <= most, max_steps)
        if n_iter == max_steps:  # few rows may hold what the others do not
            self._sample, self._made = None, {}
        return self._point(w, np.full(h.shape, np.nan), h), n_iter

    @property
    def n_passes(self):
        """Over the rows, that take as long as the second moments do."""
        n, d = self._inputs.n_rows, self._inputs.n_features
        return d * (n if self._sample is None else len(self._sample)) // (A_PASS * n)

    def pay(self, fit):
        return True

    def _inverse(self, h, alpha):
        if self._sample is not None:
            some = np.zeros_like(h)
            some[self._sample] = h[self._sample]
            h = some * (h.sum() / max(some.sum(), 1e-300))
        G = self._inputs.gram(h)
        if self._fit_intercept and h.sum() > 0:
            mean = self._inputs.correlate(h)
            G -= np.outer(mean, mean / h.sum())
        return Shrunk(G, alpha, is_exact=True).inverse


class SketchSteps(Steps):
    """The step in u.  With s = sqrt(h), q = u / s and f = X X'u:  (alpha I + s X X' s) q = s f - v / s, as in the dual.

    Rows without curvature are out of the system: there u = -v / alpha.
    """

    def __init__(self, inputs, fit_intercept, sketch):
        super().__init__(inputs, fit_intercept)
        self._sketch, self._pays = sketch, {}

    def __call__(self, fit, shares):
        """(the step from fit.at, a Point, steps of conjugate gradients)."""
        fit.n_projections = self._sketch.m
        alpha, h, v = fit.problem.alpha, fit.h, fit.v
        h = np.where(h > FLAT * h.max(axis=1, keepdims=True), h, 0.0)
        h_then, parts = self._update(h, alpha, lambda h, alpha: Shrunk(self._sketch.gram(h), alpha, self._sketch.is_exact))
        nu = np.array([[P.nu] for P in parts])
        (s, balanced), (s_then, balanced_then) = self._scales(h), self._scales(h_then)

        def A(q):
            return alpha * q + balanced(s * self._kernel(s * q))

        def precondition(r):
            c = self._sketch.correlate(s_then * balanced_then(r))
            c = np.array([P.inverse @ c_k for P, c_k in zip(parts, c, strict=True)])
            z = r - balanced_then(s_then * self._sketch.apply(c))
            return balanced(np.where(s > 0, z, 0.0)) / nu

        u = np.where(h > 0, 0.0, -(fit.at.u + v / alpha))  # what is known
        u += h * self._following(h, u.sum(axis=1))[:, None]
        f = self._kernel(u) if u.any() else u
        over_s = np.divide(v + alpha * (fit.at.u + u), s, out=np.zeros_like(s), where=s > 0)
        b = -balanced(over_s + s * f)

        slopes = self._inputs.apply(fit.g)

        def enough(q, r, _):
            """Of the step w of q: |r|^2 bounds |H w + g|^2 in the norm of H^-1, and -g'w is |g|^2 there once r is 0."""
            return (shares > 1) | (dots(r, r) <= -(shares**2) * dots(slopes, u + s * q))

        q, n_iter = self._solve(fit, A, precondition, b, enough, MAX_STEPS)
        u = u + s * q
        return self._point(self._inputs.correlate(u), u, h), n_iter

    def pay(self, fit):
        """Whether, at the fit's penalty, the sketch is fine enough; it grows for it where it may."""
        alpha = fit.problem.alpha
        if alpha not in self._pays:
            self._pays[alpha] = self._sketch.suffice(fit.h.max(axis=0), alpha) <= PAYS * alpha
        return self._pays[alpha]

    def _scales(self, h):
        """s, and the projection on what is orthogonal to it, where there is an intercept."""
        s = np.sqrt(h)
        unit = s / np.maximum(np.sqrt(h.sum(axis=1)), 1e-300)[:, None]
        return s, lambda q: q - unit * dots(unit, q)[:, None] if self._fit_intercept else q

    def _kernel(self, u):
        return self._inputs.apply(self._inputs.correlate(u))


class AdaptiveSteps:
    """Plain steps until one is slow; from there on those that make() makes, at penalties for which they pay."""

    def __init__(self, plain, make, slow=SLOW):
        self._plain, self._make, self._other, self._slow = plain, make, None, slow

    def __call__(self, fit, shares):
        """(the step from fit.at, a Point, steps of conjugate gradients)."""
        if self._other is None:
            step, n_iter = self._plain(fit, shares, self._slow)
            if n_iter == self._slow:
                self._other = self._make()
            return step, n_iter
        return (self._other if self._other.pay(fit) else self._plain)(fit, shares)
