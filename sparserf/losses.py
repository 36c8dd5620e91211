"""The losses L(z, y): value, derivative and curvature in z, and convex conjugate. Elementwise over rows.

y is the target for `squared`, -1 or +1 for the others. `smoothness` bounds the curvature (beta in the papers), which is the
same everywhere where the loss `is_quadratic`, and one of two numbers where it `is_piecewise_quadratic`; `steepest` bounds
|L'|. z and y may be arrays of any namespace.
"""

import numpy as np

from ._arrays import namespace


class Squared:
    """(z - y)^2 / 2."""

    name, smoothness, is_classifier = "squared", 1.0, False
    is_quadratic = is_piecewise_quadratic = True
    steepest = np.inf

    def value(self, z, y):
        return 0.5 * (z - y) ** 2

    def derivative(self, z, y):
        return z - y

    def curvature(self, z, y):
        return namespace(z).ones_like(z)

    def conjugate(self, u, y):
        return 0.5 * u**2 + u * y


class SquaredHinge:
    """max(0, 1 - y z)^2."""

    name, smoothness, is_classifier = "squared_hinge", 2.0, True
    is_quadratic, is_piecewise_quadratic = False, True
    steepest = np.inf

    def value(self, z, y):
        return _positive(1.0 - y * z) ** 2

    def derivative(self, z, y):
        return -2.0 * y * _positive(1.0 - y * z)

    def curvature(self, z, y):
        return _where(y * z < 1.0, 2.0, z)

    def conjugate(self, u, y):
        a = -y * u  # >= 0 in the domain
        return a**2 / 4 - a


class SmoothedHinge:
    """1/2 - y z for y z <= 0, (1 - y z)^2 / 2 up to y z = 1, and 0 from there."""

    name, smoothness, is_classifier = "smoothed_hinge", 1.0, True
    is_quadratic, is_piecewise_quadratic = False, True
    steepest = 1.0

    def value(self, z, y):
        short = _positive(1.0 - y * z)
        return namespace(z).where(short < 1.0, 0.5 * _share(short) ** 2, short - 0.5)

    def derivative(self, z, y):
        return -y * _share(1.0 - y * z)

    def curvature(self, z, y):
        margin = y * z
        return _where((margin >= 0.0) & (margin < 1.0), 1.0, z)

    def conjugate(self, u, y):
        a = _share(-y * u)
        return a**2 / 2 - a


class Logistic:
    """log(1 + exp(-y z))."""

    name, smoothness, is_classifier = "logistic", 0.25, True
    is_quadratic = is_piecewise_quadratic = False
    steepest = 1.0

    def value(self, z, y):
        margin, xp = y * z, namespace(z)
        return xp.log1p(xp.exp(-xp.abs(margin))) + _positive(-margin)

    def derivative(self, z, y):
        return -y * sigmoid(-y * z)

    def curvature(self, z, y):
        p = sigmoid(y * z)
        return p * (1.0 - p)

    def conjugate(self, u, y):
        a = _share(-y * u)
        return _xlogx(a) + _xlogx(1.0 - a)


def sigmoid(z):
    """1 / (1 + exp(-z)), without overflow."""
    xp = namespace(z)
    e = xp.exp(-xp.abs(z))
    return xp.maximum(e, xp.sign(z)) / (1.0 + e)  # e <= 1: the larger is 1 where z >= 0, or else e


def _positive(a):
    """max(a, 0)."""
    return namespace(a).clip(a, 0.0, None)


def _share(a):
    """a, in [0, 1]; what a conjugate is asked for is in its domain but for rounding."""
    return namespace(a).clip(a, 0.0, 1.0)


def _where(condition, value, like):
    """The value where the condition holds, 0 elsewhere."""
    return namespace(like).astype(condition, like.dtype) * value


def _xlogx(a):
    xp = namespace(a)
    return a * xp.log(xp.where(a > 0, a, xp.ones_like(a)))


LOSSES = {loss.name: loss for loss in (Squared(), SquaredHinge(), SmoothedHinge(), Logistic())}
