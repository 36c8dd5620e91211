"""Losses of a positive mean e^z: half the unit deviances of Poisson's and the gamma distribution, with the log link.

Both are functions of r = z - log y, by which the mean is off. Beyond FAR, where e^r is no number for long, they are flat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from .._base.arrays import namespace
from .base import Loss
from .elementwise import xlogx

if TYPE_CHECKING:
    from .._base.types import Array

FAR = 600.0
# A mean of more than this, times e^FAR, is no number.
LARGEST = 1e30


class Poisson(Loss):
    """y log(y / m) - y + m at the mean m = e^z, half the unit deviance, for counts and rates y >= 0.

    For counts c over exposures e, of time or of size, y is the rate c / e, and `sample_weight` is e.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (2000, 1))
    >>> exposure = rng.uniform(0.5, 5, 2000)
    >>> counts = rng.poisson(exposure * np.exp(np.sin(2 * X.ravel())))
    >>> how = {"features": "gaussian", "gamma": 1.0, "alpha": 0.01, "n_components": 500, "rng": 0}
    >>> model = srf.sparse_rf(X, counts / exposure, loss="poisson", sample_weight=exposure, **how)
    >>> bool(abs(model.decision_function(X) - np.sin(2 * X.ravel())).max() < 0.3)  # predict is e to the power of it
    True
    """

    link: Literal["identity", "log"] = "log"
    is_self_concordant: bool = True
    is_unimodal: bool = True
    least_step: float = 4e-15

    def of_target(self, y: np.ndarray, weight: np.ndarray) -> Self:
        _check_range(y, y.min() >= 0, ">= 0", self.name)
        if not (np.atleast_2d(y).max(axis=1) > 0).all():
            raise ValueError("y must have a positive entry for loss='poisson', got all zeros")
        return self

    def doubt(self, y: np.ndarray, weight: np.ndarray) -> float:
        """One row more than there are events, counted as equal ones that vary as much: of counts far above 0, than rows."""
        events = weight * (y / y.max())
        return 1.0 / (1.0 + float(events.sum() ** 2 / (events @ events)))

    def of_unknown_row(self, z: Array, mean: float) -> Array:
        return self.value(z, namespace(z).full_like(z, mean))

    def size(self, mean: float) -> float:
        return mean

    def intercept_step(self, slope: float, curvature: float) -> float:
        """To the best one: all e^z are multiplied, and curvature - slope is the mean of y."""
        with np.errstate(divide="ignore"):
            return float(np.log1p(-min(1.0, slope / max(curvature, 1e-300))))

    def value(self, z: Array, y: Array) -> Array:
        xp, positive = namespace(z), y > 0
        r = _off(z, y)
        return xp.where(positive, y * (xp.expm1(r) - r), xp.exp(r))

    def derivative(self, z: Array, y: Array) -> Array:
        xp, r = namespace(z), _off(z, y)
        return xp.where(y > 0, y * xp.expm1(r), xp.exp(r))

    def curvature(self, z: Array, y: Array) -> Array:
        return _or_one(y) * namespace(z).exp(_off(z, y))

    def conjugate(self, u: Array, y: Array) -> Array:
        mean = namespace(u).clip(u + y, 0.0, None)
        return (xlogx(mean) - xlogx(y)) - (mean - y)


class Gamma(Loss):
    """y / m - 1 - log(y / m) at the mean m = e^z, half the unit deviance, for y > 0: errors count as shares of the mean.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (2000, 1))
    >>> y = 1000 * np.exp(np.sin(2 * X.ravel())) * rng.gamma(5, 1 / 5, 2000)
    >>> how = {"features": "gaussian", "gamma": 1.0, "alpha": 0.01, "n_components": 500, "rng": 0}
    >>> model = srf.sparse_rf(X, y, loss="gamma", **how)
    >>> bool(abs(model.predict(X) / (1000 * np.exp(np.sin(2 * X.ravel()))) - 1).max() < 0.3)
    True
    """

    link: Literal["identity", "log"] = "log"
    is_self_concordant: bool = True
    is_unimodal: bool = True
    least_step: float = 4e-15

    def of_target(self, y: np.ndarray, weight: np.ndarray) -> Self:
        _check_range(y, y.min() > 0, "> 0", self.name)
        return self

    def size(self, mean: float) -> float:
        return 1.0

    def intercept_step(self, slope: float, curvature: float) -> float:
        """To the best one: the curvature, the mean of y / m, becomes that of the weights."""
        return float(np.log(max(curvature, 1e-300)))

    def value(self, z: Array, y: Array) -> Array:
        r = _short(z, y)
        return namespace(z).expm1(r) - r

    def derivative(self, z: Array, y: Array) -> Array:
        return -namespace(z).expm1(_short(z, y))

    def curvature(self, z: Array, y: Array) -> Array:
        return namespace(z).exp(_short(z, y))

    def conjugate(self, u: Array, y: Array) -> Array:
        xp = namespace(u)
        left = xp.clip(1.0 - u, 0.0, None)
        return xlogx(left) + u * (1.0 + xp.log(y))


def _check_range(y, is_in, what, name):
    if not is_in:
        raise ValueError(f"y must be {what} for loss={name!r}, got {y.min()}")
    if y.max() > LARGEST:
        raise ValueError(f"y must be at most {LARGEST:g} for loss={name!r}, got {y.max()}: divide it by a unit")


def _or_one(y):
    return namespace(y).where(y > 0, y, namespace(y).ones_like(y))


def _off(z, y):
    """z - log y, and z where y is 0; at most FAR."""
    xp = namespace(z)
    return xp.clip(z - xp.log(_or_one(y)), None, FAR)


def _short(z, y):
    """log y - z, at most FAR."""
    xp = namespace(z)
    return xp.clip(xp.log(y) - z, None, FAR)
