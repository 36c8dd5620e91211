"""Losses of labels: of the margin y z for y = -1 or 1, and the multinomial loss."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import namespace
from .base import Loss, clip_to_unit, positive_part, where, xlogx

if TYPE_CHECKING:
    from .._base.types import Array
    from .links import LinkName


class SquaredHinge(Loss):
    """Squared hinge loss, max(0, 1 - y z)^2, for labels y of -1 and +1.

    ==========  ========================================
    derivative  -2 y max(0, 1 - y z)
    curvature   2 where y z < 1, 0 elsewhere
    conjugate   a^2 / 4 - a, for a = -y u >= 0
    ==========  ========================================

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> srf.losses.SquaredHinge().value(
    ...     np.array([1.0, 1.0]), np.array([-1.0, 1.0])
    ... )  # loss="squared_hinge"
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
        return positive_part(1.0 - y * z) ** 2

    def derivative(self, z: Array, y: Array) -> Array:
        return -2.0 * y * positive_part(1.0 - y * z)

    def curvature(self, z: Array, y: Array) -> Array:
        return where(y * z < 1.0, 2.0, z)

    def conjugate(self, u: Array, y: Array) -> Array:
        a = -y * u  # >= 0 in the domain
        return a**2 / 4 - a


class SmoothedHinge(Loss):
    """Smoothed hinge loss, for labels: 1/2 - y z for y z <= 0, (1 - y z)^2 / 2 up to y z = 1, and 0
    from there.

    ==========  ========================================
    derivative  -y min(max(0, 1 - y z), 1)
    curvature   1 where 0 <= y z < 1, 0 elsewhere
    conjugate   a^2 / 2 - a, for a = -y u in [0, 1]
    ==========  ========================================

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> srf.losses.SmoothedHinge().value(
    ...     np.array([1.0, 1.0]), np.array([-1.0, 1.0])
    ... )  # loss="smoothed_hinge"
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
        short = positive_part(1.0 - y * z)
        return namespace(z).where(short < 1.0, 0.5 * clip_to_unit(short) ** 2, short - 0.5)

    def derivative(self, z: Array, y: Array) -> Array:
        return -y * clip_to_unit(1.0 - y * z)

    def curvature(self, z: Array, y: Array) -> Array:
        margin = y * z
        return where((margin >= 0.0) & (margin < 1.0), 1.0, z)

    def conjugate(self, u: Array, y: Array) -> Array:
        a = clip_to_unit(-y * u)
        return a**2 / 2 - a


class Logistic(Loss):
    """Logistic loss, log(1 + exp(-y z)), for labels y of -1 and +1.

    With p = 1 / (1 + exp(-y z)), the probability of the row's label:

    ==========  ==================================================
    derivative  -y (1 - p)
    curvature   p (1 - p)
    conjugate   a log a + (1 - a) log(1 - a), for a = -y u in [0, 1]
    ==========  ==================================================

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
        return xp.log1p(xp.exp(-xp.abs(margin))) + positive_part(-margin)

    def derivative(self, z: Array, y: Array) -> Array:
        return -y * sigmoid(-y * z)

    def curvature(self, z: Array, y: Array) -> Array:
        p = sigmoid(y * z)
        return p * (1.0 - p)

    def conjugate(self, u: Array, y: Array) -> Array:
        a = clip_to_unit(-y * u)
        return xlogx(a) + xlogx(1.0 - a)

    def doubt(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Return 1 / (1 + the effective number of rows): the pseudo-row counts as one row."""
        return 1.0 / (1.0 + float(weight.sum() ** 2 / (weight @ weight)))

    def of_unknown_row(self, z: Array, mean: float) -> Array:
        """Return the mean of the losses for both labels."""
        return (self.value(z, 1.0) + self.value(z, -1.0)) / 2

    def slope_of_unknown_row(self, z: Array, mean: float) -> Array:
        return (self.derivative(z, 1.0) + self.derivative(z, -1.0)) / 2


class Multinomial(Logistic):
    """Multinomial loss, -log(exp(z_y) / sum_k exp(z_k)): one margin z_k for each class, which are
    fitted together.

    z and y are (n_classes, n_rows), y is +1 at the class of the row and -1 at all others; the loss
    of a row is the sum of its column. With two classes the second alone has a margin and that of
    the first is 0: that is the logistic loss. With p_k = exp(z_k) / sum_l exp(z_l):

    ==========  ================================================================================
    derivative  p_k - 1 for the class of the row, p_k for the others
    curvature   p_k (1 - p_k), the diagonal of the Hessian
    conjugate   sum_k a_k log a_k, for a_k = u_k + 1 for the class of the row, u_k for the others
    ==========  ================================================================================

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> label = (np.stack([X[:, 0], X[:, 1], 0 * X[:, 0]]) * 3 + rng.gumbel(size=(3, 600))).argmax(
    ...     axis=0
    ... )
    >>> model = srf.drp(X, label, alpha=1e-3, loss="multinomial", rng=0)
    >>> bool(
    ...     abs(model.coef - np.array([[2, -1], [-1, 2], [-1, -1]])).max() < 0.5
    ... )  # less their mean
    True
    >>> bool(np.allclose(model.predict_proba(X).sum(axis=1), 1))
    True
    """

    name: str = "multinomial"
    link: LinkName = "softmax"
    is_joint: bool = True

    def value(self, z: Array, y: Array) -> Array:
        if is_single(z):
            return super().value(z, y)
        return where(y > 0, log_sum_exp(z) - z, z)

    def derivative(self, z: Array, y: Array) -> Array:
        return super().derivative(z, y) if is_single(z) else softmax(z) - where(y > 0, 1.0, z)

    def curvature(self, z: Array, y: Array) -> Array:
        """Return the diagonal of the Hessian of a row."""
        if is_single(z):
            return super().curvature(z, y)
        p = softmax(z)
        return p * (1.0 - p)

    def conjugate(self, u: Array, y: Array) -> Array:
        if is_single(u):
            return super().conjugate(u, y)
        return xlogx(clip_to_unit(u + where(y > 0, 1.0, u)))

    def of_unknown_row(self, z: Array, mean: float) -> Array:
        return (
            super().of_unknown_row(z, mean) if is_single(z) else (log_sum_exp(z) - z) / z.shape[0]
        )

    def slope_of_unknown_row(self, z: Array, mean: float) -> Array:
        if is_single(z):
            return super().slope_of_unknown_row(z, mean)
        return softmax(z) - 1.0 / z.shape[0]


class OneClassMultinomial(Logistic):
    """The multinomial loss of the margin z of one class, where those of the others are fixed.

    It is log(e^z + e^c) - t, where c = log of the sum of e^z over the other classes, and t is the
    margin of the row's own class (z itself in rows of this class). y is (3, ...): +1 in rows of the
    class and -1 in the others; c; and c - t >= 0 in rows of other classes, 0 in rows of the class.
    """

    name: str = "multinomial"
    # That of all classes together: their gradient changes by at most half of the change of margins.
    smoothness: float = 0.5
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
    """Return whether there is one margin for each row, as for two classes."""
    return z.ndim == 1 or z.shape[0] == 1


def log_sum_exp(z: Array) -> Array:
    """Return the log of the sum of e^z over the classes: (n_rows,), of z (n_classes, n_rows)."""
    xp, most = namespace(z), namespace(z).max(z, axis=0)
    return most + xp.log(_sum_over_classes(xp.exp(z - most)))


def softmax(z: Array) -> Array:
    """Return e^z divided by its sum over the classes, of z (n_classes, n_rows)."""
    xp = namespace(z)
    e = xp.exp(z - xp.max(z, axis=0))
    return e / _sum_over_classes(e)


def _sum_over_classes(e: Array) -> Array:
    """Return the sum over the classes, always added up in the order of the classes."""
    return reduce(namespace(e).add, (e[k, ...] for k in range(e.shape[0])))


def sigmoid(z: Array) -> Array:
    """Return 1 / (1 + exp(-z)), without overflow."""
    xp = namespace(z)
    e = xp.exp(-xp.abs(z))
    # as e <= 1, the maximum is 1 where z > 0, and else e
    return xp.maximum(e, xp.sign(z)) / (1.0 + e)
