"""Losses of the margin y z, for labels y of -1 and +1."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._base.arrays import namespace
from .base import Loss
from .elementwise import positive, share, where, xlogx

if TYPE_CHECKING:
    from .._base.types import Array


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
    least_step: float = 4e-15
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

    def doubt(self, y: np.ndarray, weight: np.ndarray) -> float:
        """One row more than there are."""
        return 1.0 / (1.0 + float(weight.sum() ** 2 / (weight @ weight)))

    def of_unknown_row(self, z: Array, mean: float) -> Array:
        """In the mean over the labels."""
        return (self.value(z, 1.0) + self.value(z, -1.0)) / 2


class Multinomial(Logistic):
    """-log of the share of e^z that the row's class has among all classes: one margin z a class, which count together.

    z and y are (n_classes, n_rows), y +1 at the class of the row and -1 at all others; the loss of a row is the sum of its
    column. Of two classes the second alone has a margin, the other's being 0: that is the logistic loss.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> label = (np.stack([X[:, 0], X[:, 1], 0 * X[:, 0]]) * 3 + rng.gumbel(size=(3, 600))).argmax(axis=0)
    >>> model = srf.drp(X, label, alpha=1e-3, loss="multinomial", rng=0)
    >>> bool(abs(model.coef - np.array([[2, -1], [-1, 2], [-1, -1]])).max() < 0.5)  # less their mean
    True
    >>> bool(np.allclose(model.predict_proba(X).sum(axis=1), 1))
    True
    """

    name: str = "multinomial"
    link: Literal["identity", "log", "softmax"] = "softmax"
    is_joint: bool = True

    def value(self, z: Array, y: Array) -> Array:
        if is_single(z):
            return super().value(z, y)
        return where(y > 0, log_sum_exp(z) - z, z)

    def derivative(self, z: Array, y: Array) -> Array:
        return super().derivative(z, y) if is_single(z) else softmax(z) - where(y > 0, 1.0, z)

    def curvature(self, z: Array, y: Array) -> Array:
        """The diagonal of the Hessian of a row."""
        if is_single(z):
            return super().curvature(z, y)
        p = softmax(z)
        return p * (1.0 - p)

    def conjugate(self, u: Array, y: Array) -> Array:
        return super().conjugate(u, y) if is_single(u) else xlogx(share(u + where(y > 0, 1.0, u)))

    def of_unknown_row(self, z: Array, mean: float) -> Array:
        return super().of_unknown_row(z, mean) if is_single(z) else (log_sum_exp(z) - z) / z.shape[0]


class AgainstOthers(Logistic):
    """The multinomial loss as a function of the margin z of one class: log(e^z + e^c) - t, with z itself in place of t where
    the row is of the class.

    y is (3, ...): +1 or -1, c = log of the sum of e^z over the other classes, and c - t >= 0, or 0 in rows of the class, for
    the margin t of the row's own class.
    """

    name: str = "multinomial"
    smoothness: float = 0.5  # of the losses of all classes together the gradient moves by up to half of what the margins do
    is_unimodal: bool = False
    dual_growth: float = np.inf

    def value(self, z: Array, y: Array) -> Array:
        return super().value(z - y[1, ...], y[0, ...]) + y[2, ...]

    def derivative(self, z: Array, y: Array) -> Array:
        return super().derivative(z - y[1, ...], y[0, ...])

    def curvature(self, z: Array, y: Array) -> Array:
        return super().curvature(z - y[1, ...], y[0, ...])

    def conjugate(self, u: Array, y: Array) -> Array:
        return super().conjugate(u, y[0, ...]) + u * y[1, ...] - y[2, ...]


def is_single(z: Array) -> bool:
    """Whether there is one margin a row: of two classes."""
    return z.ndim == 1 or z.shape[0] == 1


def log_sum_exp(z: Array) -> Array:
    """Over the classes, (n_rows,) of z (n_classes, n_rows)."""
    xp, most = namespace(z), namespace(z).max(z, axis=0)
    return most + xp.log(_total(xp.exp(z - most)))


def softmax(z: Array) -> Array:
    """e^z as shares of their sum over the classes."""
    xp = namespace(z)
    e = xp.exp(z - xp.max(z, axis=0))
    return e / _total(e)


def _total(e: Array) -> Array:
    """Over the classes, in one order, however many rows there are."""
    return reduce(namespace(e).add, (e[k, ...] for k in range(e.shape[0])))


def sigmoid(z: Array) -> Array:
    """1 / (1 + exp(-z)), without overflow."""
    xp = namespace(z)
    e = xp.exp(-xp.abs(z))
    return xp.maximum(e, xp.sign(z)) / (1.0 + e)  # e <= 1: the larger is 1 where z >= 0, or else e
