"""Losses of the margin y z, for labels y of -1 and +1."""

import numpy as np

from .._arrays import namespace
from .base import Loss
from .elementwise import positive, share, where, xlogx


class SquaredHinge(Loss):
    """max(0, 1 - y z)^2, for labels.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> srf.losses.SquaredHinge().value(np.array([1.0, 1.0]), np.array([-1.0, 1.0]))  # loss="squared_hinge"
    array([4., 0.])
    """

    name, smoothness, is_classifier, is_unimodal = "squared_hinge", 2.0, True, True
    is_piecewise_quadratic, dual_growth, slopes = True, 1.0, (-np.inf, 0.0)

    def value(self, z, y):
        return positive(1.0 - y * z) ** 2

    def derivative(self, z, y):
        return -2.0 * y * positive(1.0 - y * z)

    def curvature(self, z, y):
        return where(y * z < 1.0, 2.0, z)

    def conjugate(self, u, y):
        a = -y * u  # >= 0 in the domain
        return a**2 / 4 - a


class SmoothedHinge(Loss):
    """For labels: 1/2 - y z for y z <= 0, (1 - y z)^2 / 2 up to y z = 1, and 0 from there.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> srf.losses.SmoothedHinge().value(np.array([1.0, 1.0]), np.array([-1.0, 1.0]))  # loss="smoothed_hinge"
    array([1.5, 0. ])
    """

    name, smoothness, is_classifier, is_unimodal = "smoothed_hinge", 1.0, True, True
    is_piecewise_quadratic, dual_growth, slopes = True, 1.0, (-1.0, 0.0)

    def value(self, z, y):
        short = positive(1.0 - y * z)
        return namespace(z).where(short < 1.0, 0.5 * share(short) ** 2, short - 0.5)

    def derivative(self, z, y):
        return -y * share(1.0 - y * z)

    def curvature(self, z, y):
        margin = y * z
        return where((margin >= 0.0) & (margin < 1.0), 1.0, z)

    def conjugate(self, u, y):
        a = share(-y * u)
        return a**2 / 2 - a


class Logistic(Loss):
    """log(1 + exp(-y z)), for labels.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> srf.losses.Logistic().value(np.array([1.0, 1.0]), np.array([-1.0, 1.0]))  # loss="logistic"
    array([1.31326169, 0.31326169])
    """

    name, smoothness, is_classifier, is_unimodal = "logistic", 0.25, True, True
    is_self_concordant, dual_growth, slopes = True, 2.0, (-1.0, 0.0)

    def value(self, z, y):
        margin, xp = y * z, namespace(z)
        return xp.log1p(xp.exp(-xp.abs(margin))) + positive(-margin)

    def derivative(self, z, y):
        return -y * sigmoid(-y * z)

    def curvature(self, z, y):
        p = sigmoid(y * z)
        return p * (1.0 - p)

    def conjugate(self, u, y):
        a = share(-y * u)
        return xlogx(a) + xlogx(1.0 - a)


def sigmoid(z):
    """1 / (1 + exp(-z)), without overflow."""
    xp = namespace(z)
    e = xp.exp(-xp.abs(z))
    return xp.maximum(e, xp.sign(z)) / (1.0 + e)  # e <= 1: the larger is 1 where z >= 0, or else e
