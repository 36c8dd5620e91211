"""A convex problem on given features in plain NumPy: its objective, gradient, gap and minima, with
which the tests of this room compare what the library fits."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit

from .. import conftest

# Beside the three losses of all methods, drp has the hinge that is smoothed to have a curvature of
# at most 1.
VALUE = conftest.VALUE | {
    "smoothed_hinge": lambda z, y: np.where(
        y * z < 0, 0.5 - y * z, np.maximum(0, 1 - y * z) ** 2 / 2
    )
}
SLOPE = conftest.SLOPE | {"smoothed_hinge": lambda z, y: -y * np.clip(1 - y * z, 0, 1)}
CONJUGATE = conftest.CONJUGATE | {"smoothed_hinge": lambda u, y: u**2 / 2 + y * u}
BETA = conftest.BETA | {"smoothed_hinge": 1.0}
CURVATURE = {
    "squared": lambda z, y: np.ones_like(z),
    "squared_hinge": lambda z, y: 2.0 * (y * z < 1),
    "smoothed_hinge": lambda z, y: 1.0 * ((0 < y * z) & (y * z < 1)),
    "logistic": lambda z, y: expit(z) * expit(-z),
}

LINEAR_LOSSES = tuple(VALUE)
ROUNDING = 1e-12
seeds = st.integers(0, 2**32 - 1)


@dataclass
class Problem:
    """Features on rows, a target, a loss L and weights s of mean 1.

    The mean loss at the margins z = phi w + b is (1/n) sum_i s_i L(z_i, y_i).
    """

    phi: np.ndarray
    y: np.ndarray
    loss: str = "squared"
    fit_intercept: bool = False
    weight: np.ndarray | None = None

    def __post_init__(self):
        s = np.ones(len(self.y)) if self.weight is None else self.weight
        self.s = s / s.mean()

    def mean_loss(self, z):
        """Return the mean loss at the margins z."""
        return np.mean(self.s * VALUE[self.loss](z, self.y))

    def v(self, z):
        """Return the row vector v with the gradient phi' v of the mean loss."""
        return self.s * SLOPE[self.loss](z, self.y) / len(self.y)

    def hessian(self, phi, z):
        """Return the second derivatives of the mean loss along features phi."""
        h = self.s * CURVATURE[self.loss](z, self.y) / len(self.y)
        return (phi.T * h) @ phi

    def ones(self):
        """Return the column of the intercept, if the problem has an intercept."""
        return np.ones((len(self.y), int(self.fit_intercept)))

    def beta(self, phi=None):
        """Return a bound of the second derivative of the mean loss along each feature."""
        phi = self.phi if phi is None else phi
        return BETA[self.loss] * (self.s @ phi**2) / len(self.y)

    def coef(self, model):
        """Return the coefficients of a model over all features."""
        w = np.zeros(self.phi.shape[1])
        w[model.support] = model.coef
        return w

    def margins(self, model):
        """Return the margins of a model."""
        return self.phi @ self.coef(model) + model.intercept

    def with_intercept(self, f):
        """Return f plus the best intercept, if the problem has an intercept."""
        if not self.fit_intercept:
            return f
        return f + brentq(lambda b: self.v(f + b).sum(), -99, 99, xtol=1e-15)

    def lowest(self, f):
        """Return the mean loss at the margins f plus the best intercept."""
        return self.mean_loss(self.with_intercept(f))

    def z0(self):
        """Return the margins of the empty model."""
        return self.with_intercept(np.zeros(len(self.y)))

    def on(self, columns):
        """Return the problem on some of the features."""
        return replace(self, phi=self.phi[:, columns])

    # With the penalty alpha |w|_1

    def l1_objective(self, model, alpha):
        """Return the objective of a model."""
        return self.mean_loss(self.margins(model)) + alpha * np.abs(model.coef).sum()

    def l1_gap(self, model, alpha):
        """Return P - D, D = -(1/n) sum_i s_i L*(c L'_i, y_i), c = min(1, alpha / max|g|)."""
        z = self.margins(model)
        c = min(1.0, alpha / np.abs(self.phi.T @ self.v(z)).max())
        u = c * SLOPE[self.loss](z, self.y)
        return self.l1_objective(model, alpha) + np.mean(self.s * CONJUGATE[self.loss](u, self.y))

    def l1_minimum(self, alpha):
        """Return an objective that is attained, the least but for 2 k t: by an interior point, of w
        = u - v with a barrier -t sum (log u + log v), t down to 1e-10."""
        k, phi = self.phi.shape[1], np.hstack([self.phi, -self.phi, self.ones()])

        def at(x, t):
            u, z = x[: 2 * k], phi @ x
            if u.min() <= 0:
                return np.inf, None
            slopes = np.zeros_like(x)
            slopes[: 2 * k] = alpha - t / u
            value = self.mean_loss(z) + alpha * u.sum() - t * np.log(u).sum()
            return value, phi.T @ self.v(z) + slopes

        x = np.zeros(phi.shape[1])
        x[: 2 * k] = 1 / k
        for t in 10.0 ** -np.arange(1, 11):
            for _ in range(50):
                F, g = at(x, t)
                barrier = np.full(len(x), 1e-12)
                barrier[: 2 * k] = t / x[: 2 * k] ** 2
                step = np.linalg.solve(self.hessian(phi, phi @ x) + np.diag(barrier), g)
                if g @ step < 1e-2 * t:
                    break
                moves = (x - a * step for a in 0.5 ** np.arange(40))
                x = next((new for new in moves if at(new, t)[0] < F), x)
        w = x[:k] - x[k : 2 * k]
        return self.mean_loss(phi @ x) + alpha * np.abs(w).sum()

    # With the penalty alpha / 2 |w|^2

    def ridge_objective(self, w, b, alpha):
        """Return the objective at coefficients w and intercept b."""
        return self.mean_loss(self.phi @ w + b) + alpha / 2 * w @ w

    def ridge_minimum(self, alpha):
        """Return the best (w, b), by Newton's method with a line search."""
        phi = np.hstack([self.phi, self.ones()])
        k, penalty = self.phi.shape[1], np.full(phi.shape[1], alpha)
        penalty[k:] = 0.0

        def at(t):
            z = phi @ t
            return self.mean_loss(z) + penalty @ t**2 / 2, phi.T @ self.v(z) + penalty * t

        t = np.zeros(phi.shape[1])
        F, g = at(t)
        for _ in range(100):
            H = self.hessian(phi, phi @ t) + np.diag(penalty + 1e-12)
            step = np.linalg.solve(H, g)
            moves = (t - a * step for a in 0.5 ** np.arange(40))
            new = next(
                (
                    u
                    for u in moves
                    if at(u)[0] < F or np.linalg.norm(at(u)[1]) < np.linalg.norm(g) / 2
                ),
                t,
            )
            if new is t:
                break
            t, (F, g) = new, at(new)
        return t[:k], t[k] if self.fit_intercept else 0.0

    def least_ridge(self, alpha):
        """Return the least objective."""
        return self.ridge_objective(*self.ridge_minimum(alpha), alpha)


def low_rank(seed, loss, n=60, d=150, spectrum=None):
    """Return X = U S V' of rank 5, or of given singular values, and a target."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(1, 4, 5) * np.sqrt(n) if spectrum is None else spectrum
    U, V = (np.linalg.qr(rng.standard_normal((k, len(s))))[0] for k in (n, d))
    y = U @ rng.standard_normal(len(s)) * np.sqrt(n) + 0.3 * rng.standard_normal(n)
    return (U * s) @ V.T, y if loss == "squared" else np.where(y > 0, 1.0, -1.0)


def alike(seed, loss, fit_intercept=False):
    """Return a problem of 7 columns that are much alike, so that the best s of them are easily
    missed."""
    rng = np.random.default_rng(seed)
    phi = rng.standard_normal((25, 7)) + 1.5 * rng.standard_normal((25, 1))
    y = phi[:, :4] @ rng.standard_normal(4) + rng.standard_normal(25)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    return Problem(phi, y, loss, fit_intercept)
