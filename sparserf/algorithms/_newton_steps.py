"""The step of Newton's method for w = X'u, by conjugate gradients: in u on a sketch, or in w where there are few inputs.

H = alpha I + X' Pi diag(h) Pi X, with Pi the projection that an intercept at its best means; none where there is none.
"""

import numpy as np

from ..solvers.krylov import Shrunk, conjugate_gradients, dots
from ._recovery import Point

MAX_STEPS = 1000
# Share of their sum by which the row weights h may change before a preconditioner is made anew.
MOVED = 0.2
# Curvature of a row, beside the largest, that counts as none.
FLAT = 1e-10


class Preconditioned:
    """What the two kinds of step share: a preconditioner for each output, kept while its row weights change little."""

    def __init__(self, rows, inputs, fit_intercept):
        self._rows, self._inputs, self._fit_intercept = rows, inputs, fit_intercept
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

    def _following(self, h, sums):
        """-sums / sum h, a number each: by how much the intercept follows; 0 without one."""
        total = h.sum(axis=1)
        return -np.divide(sums, total, out=np.zeros(len(h)), where=(total > 0) & self._fit_intercept)


class InputSteps(Preconditioned):
    """Few inputs: H itself is made and factored, and conjugate gradients correct what h has changed since."""

    def __call__(self, fit, shares):
        """(the step from fit.at, a Point, steps of conjugate gradients)."""
        alpha, h = fit.problem.alpha, fit.problem.curvature(fit.z)
        _, parts = self._update(h, alpha, self._inverse)

        def A(p):
            f = self._rows.apply(self._inputs, p)
            return alpha * p + self._rows.correlate(self._inputs, h * (f + self._following(h, dots(h, f))[:, None]))

        def precondition(r):
            return np.array([P @ r_k for P, r_k in zip(parts, r, strict=True)])

        most = shares**2 * dots(fit.g, precondition(fit.g))
        w, n_iter = conjugate_gradients(A, precondition, -fit.g, lambda w, r, rho: rho <= most, MAX_STEPS)
        f = self._rows.apply(self._inputs, w)
        return Point(w, f, self._following(h, dots(h, f)), np.zeros_like(f)), n_iter

    def _inverse(self, h, alpha):
        G = self._rows.gram(self._inputs, self._inputs, h)
        if self._fit_intercept and h.sum() > 0:
            mean = self._rows.correlate(self._inputs, h)
            G -= np.outer(mean, mean / h.sum())
        return Shrunk(G, alpha, is_exact=True).inverse


class RowSteps(Preconditioned):
    """The step in u.  With s = sqrt(h), q = u / s and f = X X'u:  (alpha I + s X X' s) q = s f - v / s, as in the dual.

    Rows without curvature are out of the system: there u = -v / alpha.
    """

    def __init__(self, rows, inputs, fit_intercept, sketch):
        super().__init__(rows, inputs, fit_intercept)
        self._sketch = sketch

    def __call__(self, fit, shares):
        """(the step from fit.at, a Point, steps of conjugate gradients)."""
        alpha, h, v = fit.problem.alpha, fit.problem.curvature(fit.z), fit.v
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

        slopes = self._rows.apply(self._inputs, fit.g)

        def enough(q, r, _):
            """Of the step w of q: |r|^2 bounds |H w + g|^2 in the norm of H^-1, and -g'w is |g|^2 there once r is 0."""
            return (shares > 1) | (dots(r, r) <= -(shares**2) * dots(slopes, u + s * q))

        q, n_iter = conjugate_gradients(A, precondition, b, enough, MAX_STEPS)
        u = u + s * q
        w = self._rows.correlate(self._inputs, u)
        f = self._rows.apply(self._inputs, w)
        return Point(w, f, self._following(h, dots(h, f)), u), n_iter

    def _scales(self, h):
        """s, and the projection on what is orthogonal to it, where there is an intercept."""
        s = np.sqrt(h)
        unit = s / np.maximum(np.sqrt(h.sum(axis=1)), 1e-300)[:, None]
        return s, lambda q: q - unit * dots(unit, q)[:, None] if self._fit_intercept else q

    def _kernel(self, u):
        return self._rows.apply(self._inputs, self._rows.correlate(self._inputs, u))
