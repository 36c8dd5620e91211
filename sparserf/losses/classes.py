"""Losses of the margin y z, for labels y of -1 and +1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._arrays import namespace
from .base import Loss
from .elementwise import positive, share, where, xlogx

if TYPE_CHECKING:
    from .._types import Array


class SquaredHinge(Loss):
    """max(0, 1 - y z)^2, for labels.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> srf.losses.SquaredHinge().value(np.array([1.0, 1.0]), np.array([-1.0, 1.0]))  # loss="squared_hinge"
    array([4., 0.])
    """

    name: str = "squared_hinge"
    smoothness: float = 2.0
    is_classifier: bool = True
    is_unimodal: bool = True
    is_piecewise_quadratic: bool = True
    dual_growth: float = 1.0
    slopes: tuple[float, float] = (-np.inf, 0.0)

    def value(self, z: Array, y: Array) -> Array:
        return positive(1.0 - y * z) ** 2

    def derivative(self, z: Array, y: Array) -> Array:
        return -2.0 * y * positive(1.0 - y * z)

    def curvature(self, z: Array, y: Array) -> Array:
        return where(y * z < 1.0, 2.0, z)

    def conjugate(self, u: Array, y: Array) -> Array:
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

    name: str = "smoothed_hinge"
    smoothness: float = 1.0
    is_classifier: bool = True
    is_unimodal: bool = True
    is_piecewise_quadratic: bool = True
    dual_growth: float = 1.0
    slopes: tuple[float, float] = (-1.0, 0.0)

    def value(self, z: Array, y: Array) -> Array:
        short = positive(1.0 - y * z)
        return namespace(z).where(short < 1.0, 0.5 * share(short) ** 2, short - 0.5)

    def derivative(self, z: Array, y: Array) -> Array:
        return -y * share(1.0 - y * z)

    def curvature(self, z: Array, y: Array) -> Array:
        margin = y * z
        return where((margin >= 0.0) & (margin < 1.0), 1.0, z)

    def conjugate(self, u: Array, y: Array) -> Array:
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

    name: str = "logistic"
    smoothness: float = 0.25
    is_classifier: bool = True
    is_unimodal: bool = True
    is_self_concordant: bool = True
    dual_growth: float = 2.0
    slopes: tuple[float, float] = (-1.0, 0.0)

    def value(self, z: Array, y: Array) -> Array:
        margin, xp = y * z, namespace(z)
        return xp.log1p(xp.exp(-xp.abs(margin))) + positive(-margin)

    def derivative(self, z: Array, y: Array) -> Array:
        return -y * sigmoid(-y * z)

    def curvature(self, z: Array, y: Array) -> Array:
        p = sigmoid(y * z)
        return p * (1.0 - p)

    def conjugate(self, u: Array, y: Array) -> Array:
        a = share(-y * u)
        return xlogx(a) + xlogx(1.0 - a)


def sigmoid(z: Array) -> Array:
    """1 / (1 + exp(-z)), without overflow."""
    xp = namespace(z)
    e = xp.exp(-xp.abs(z))
    return xp.maximum(e, xp.sign(z)) / (1.0 + e)  # e <= 1: the larger is 1 where z >= 0, or else e
