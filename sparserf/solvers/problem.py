"""What the small solvers know of a problem: all but its features and its penalty's form."""

from dataclasses import dataclass, replace

import numpy as np

# exp(-FAR) is 0: at its best the intercept is no farther than this from all -f and y.
FAR = 746.0


@dataclass(frozen=True, eq=False)
class Problem:
    """Loss, target, weights of mean 1, the penalty's factor, and whether there is an intercept. z = Phi w + b.

    Of several outputs, the first axis of y and z, losses are added up.
    """

    loss: object
    y: np.ndarray
    weight: np.ndarray
    alpha: float
    fit_intercept: bool

    def mean_loss(self, z):
        return float(np.mean(self.weight * self.loss.value(z, self.y), axis=-1).sum())

    def mean_pair(self, z, c):
        """(1/n) sum s_i (L(z_i) + L*(c L'(z_i))): the losses' part of a duality gap at c times the dual point."""
        u = c * self.loss.derivative(z, self.y)
        return float(np.mean(self.weight * (self.loss.value(z, self.y) + self.loss.conjugate(u, self.y)), axis=-1).sum())

    def dual_point(self, z):
        """-theta = s L'(z) / n: its correlation with a feature is the gradient of the mean loss in that coefficient."""
        return self.weight * self.loss.derivative(z, self.y) / z.shape[-1]

    def curvature(self, z):
        """h = s L''(z) / n: the Hessian of the mean loss in w is Phi' diag(h) Phi."""
        return self.weight * self.loss.curvature(z, self.y) / z.shape[-1]

    def following(self, h, x):
        """-x / sum h: by how much the intercept follows a step of w for x = Phi' h, or its own slope x; 0 without one."""
        total = h.sum()
        return -x / total if self.fit_intercept and total > 0 else np.zeros_like(x)

    def best_intercepts(self, f, b):
        """`best_intercept` of each output."""
        outputs = (replace(self, y=y) for y in self.y)
        return np.array([one.best_intercept(f_k, b_k) for one, f_k, b_k in zip(outputs, f, b, strict=True)])

    def best_intercept(self, f, b):
        """argmin over b at fixed f = Phi w; 0 without an intercept.

        Newton's method in a bracket. Where it does not halve the slope (far out the logistic loss is nearly linear), the
        bracket is halved instead, or found by doubling.
        """
        if not self.fit_intercept:
            return 0.0
        low, high, previous = -np.inf, np.inf, np.inf
        farthest = np.abs(f).max() + np.abs(self.y).max() + FAR
        for _ in range(200):
            z = f + b
            slope = float(np.mean(self.weight * self.loss.derivative(z, self.y)))
            if slope == 0:
                break
            low, high = (low, b) if slope > 0 else (b, high)
            curvature = float(np.mean(self.weight * self.loss.curvature(z, self.y)))
            new = min(max(b - slope / max(curvature, 1e-300), -farthest), farthest)
            if not low < new < high or abs(slope) > 0.5 * previous:
                new = (low + high) / 2 if np.isfinite(low + high) else b - np.sign(slope) * (1 + abs(b))
            previous, last, b = abs(slope), b, float(new)
            if abs(b - last) <= 1e-15 * (1 + abs(b)):
                break
        return b
