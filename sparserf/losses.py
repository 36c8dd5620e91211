"""The losses L(z, y): value, derivative and curvature in z, and convex conjugate. Elementwise over rows.

y is the target for `squared`, -1 or +1 for the others. `smoothness` bounds the curvature (beta in the papers), which is the
same everywhere where the loss `is_quadratic`.
"""

import numpy as np


class Squared:
    """(z - y)^2 / 2."""

    name, smoothness, is_classifier, is_quadratic = "squared", 1.0, False, True

    def value(self, z, y):
        return 0.5 * (z - y) ** 2

    def derivative(self, z, y):
        return z - y

    def curvature(self, z, y):
        return np.ones_like(z)

    def conjugate(self, u, y):
        return 0.5 * u**2 + u * y


class SquaredHinge:
    """max(0, 1 - y z)^2."""

    name, smoothness, is_classifier, is_quadratic = "squared_hinge", 2.0, True, False

    def value(self, z, y):
        return np.maximum(0.0, 1.0 - y * z) ** 2

    def derivative(self, z, y):
        return -2.0 * y * np.maximum(0.0, 1.0 - y * z)

    def curvature(self, z, y):
        return np.where(y * z < 1.0, 2.0, 0.0)

    def conjugate(self, u, y):
        a = -y * u  # >= 0 in the domain
        return a**2 / 4 - a


class SmoothedHinge:
    """1/2 - y z for y z <= 0, (1 - y z)^2 / 2 up to y z = 1, and 0 from there."""

    name, smoothness, is_classifier, is_quadratic = "smoothed_hinge", 1.0, True, False

    def value(self, z, y):
        short = np.maximum(0.0, 1.0 - y * z)
        return np.where(short < 1.0, 0.5 * np.minimum(short, 1.0) ** 2, short - 0.5)

    def derivative(self, z, y):
        return -y * np.clip(1.0 - y * z, 0.0, 1.0)

    def curvature(self, z, y):
        margin = y * z
        return np.where((margin >= 0.0) & (margin < 1.0), 1.0, 0.0)

    def conjugate(self, u, y):
        a = np.clip(-y * u, 0.0, 1.0)  # in [0, 1] in the domain
        return a**2 / 2 - a


class Logistic:
    """log(1 + exp(-y z))."""

    name, smoothness, is_classifier, is_quadratic = "logistic", 0.25, True, False

    def value(self, z, y):
        margin = y * z
        return np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0)

    def derivative(self, z, y):
        return -y * sigmoid(-y * z)

    def curvature(self, z, y):
        p = sigmoid(y * z)
        return p * (1.0 - p)

    def conjugate(self, u, y):
        a = np.clip(-y * u, 0.0, 1.0)  # in [0, 1] in the domain
        return _xlogx(a) + _xlogx(1.0 - a)


def sigmoid(z):
    """1 / (1 + exp(-z)), without overflow."""
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, e) / (1.0 + e)


def _xlogx(a):
    return a * np.log(np.where(a > 0, a, 1.0))


LOSSES = {loss.name: loss for loss in (Squared(), SquaredHinge(), SmoothedHinge(), Logistic())}
