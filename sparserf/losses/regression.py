"""Losses of the residual z - y, for real targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from .._base.arrays import namespace
from .._base.checks import check_real
from .base import Loss
from .elementwise import where

if TYPE_CHECKING:
    from .._base.types import Array

# Of the robust spread of y where the parameter is None. With normal errors of that spread, delta loses 5 % of efficiency.
DELTA, SMOOTHING = 1.35, 0.1
# Of an interval of slopes, but for rounding.
ABOUT = 1 + 1e-15
# 1 / the median of |e| of a standard normal e.
NORMAL = 1.4826


class Squared(Loss):
    """(z - y)^2 / 2: the mean of y is predicted.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> loss = srf.losses.Squared()  # loss="squared"
    >>> loss.value(np.array([3.0]), np.array([1.0])), loss.derivative(np.array([3.0]), np.array([1.0]))
    (array([2.]), array([2.]))
    """

    smoothness: float = 1.0
    is_quadratic: bool = True
    is_piecewise_quadratic: bool = True
    is_unimodal: bool = True
    is_shift_invariant: bool = True
    dual_growth: float = 1.0
    degree: Literal[0, 1, 2] = 2

    def value(self, z: Array, y: Array) -> Array:
        return 0.5 * (z - y) ** 2

    def derivative(self, z: Array, y: Array) -> Array:
        return z - y

    def curvature(self, z: Array, y: Array) -> Array:
        return namespace(z).ones_like(z)

    def conjugate(self, u: Array, y: Array) -> Array:
        return 0.5 * u**2 + u * y


@dataclass(frozen=True)
class Huber(Loss):
    r"""(z - y)^2 / 2 up to \|z - y\| = delta, from there delta \|z - y\| - delta^2 / 2: rows far from the rest pull no more.

    Parameters
    ----------
    delta : float or None, default None
        In units of y, > 0, as in LightGBM (`alpha`) and skglm; not, as in scikit-learn's HuberRegressor, of the spread of the
        residuals. None: 1.35 times the spread of y, 1.4826 times the weighted median of \|y - median\|, or the standard
        deviation where that is 0. The model has the number in `loss_parameters`.

    References
    ----------
    P. J. Huber, Robust Estimation of a Location Parameter, Ann. Math. Statist. 35, 1964.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> y = np.sin(2 * X.ravel())
    >>> y[::15] = 50.0  # outliers
    >>> model = srf.sparse_rf(X, y, loss=srf.losses.Huber(delta=0.2), features="gaussian", gamma=1.0, alpha=1e-3, rng=0)
    >>> bool(abs(model.predict(X) - np.sin(2 * X.ravel())).max() < 0.1), model.loss_parameters
    (True, {'delta': 0.2})
    """

    delta: float | None = None

    smoothness: ClassVar[float] = 1.0
    is_piecewise_quadratic: ClassVar[bool] = True
    is_unimodal: ClassVar[bool] = True
    is_shift_invariant: ClassVar[bool] = True
    dual_growth: ClassVar[float] = 1.0
    degree: ClassVar[Literal[0, 1, 2]] = 2
    least_step: ClassVar[float] = 1e-15

    def __post_init__(self) -> None:
        if self.delta is not None:
            object.__setattr__(self, "delta", check_real("delta", self.delta, 0, strict=True))

    @property
    def slopes(self) -> tuple[float, float]:
        return -self.delta * ABOUT, self.delta * ABOUT

    def of_target(self, y: np.ndarray, weight: np.ndarray) -> Huber:
        return self if self.delta is not None else replace(self, delta=DELTA * spread(y, weight))

    def scaled(self, unit: float) -> Huber:
        return replace(self, delta=self.delta / unit)

    def value(self, z: Array, y: Array) -> Array:
        size = namespace(z).abs(z - y)
        near = namespace(z).clip(size, None, self.delta)
        return near * (size - 0.5 * near)

    def derivative(self, z: Array, y: Array) -> Array:
        return namespace(z).clip(z - y, -self.delta, self.delta)

    def curvature(self, z: Array, y: Array) -> Array:
        return where(namespace(z).abs(z - y) <= self.delta, 1.0, z)

    def conjugate(self, u: Array, y: Array) -> Array:
        u = namespace(u).clip(u, -self.delta, self.delta)
        return 0.5 * u**2 + u * y


@dataclass(frozen=True)
class Quantile(Loss):
    r"""The pinball loss max(level (y - z), (1 - level) (z - y)), in the mean over all shifts of z by at most `smoothing`.

    Its minimum is the quantile of that level. With the smoothing it is a quadratic for \|z - y\| <= smoothing; that adds at
    most smoothing / 4 to the loss, and moves the quantile in proportion to smoothing^2.

    Parameters
    ----------
    level : float, default 0.5
        In (0, 1).
    smoothing : float or None, default None
        In units of y, > 0. None: a tenth of the spread of y, as of `Huber`.

    References
    ----------
    M. Fernandes, E. Guerre, E. Horta, Smoothing Quantile Regressions, J. Bus. Econ. Stat. 39, 2021.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (2000, 1))
    >>> y = (1 + X.ravel() ** 2) * rng.standard_exponential(2000)
    >>> loss = srf.losses.Quantile(level=0.9)
    >>> model = srf.sparse_rf(X, y, loss=loss, features="gaussian", gamma=0.5, alpha=0.003, n_components=500, rng=0)
    >>> bool(abs(np.mean(y < model.predict(X)) - 0.9) < 0.02)
    True
    """

    level: float = 0.5
    smoothing: float | None = None

    is_piecewise_quadratic: ClassVar[bool] = True
    is_smoothed: ClassVar[bool] = True
    is_unimodal: ClassVar[bool] = True
    is_shift_invariant: ClassVar[bool] = True
    dual_growth: ClassVar[float] = 1.0
    degree: ClassVar[Literal[0, 1, 2]] = 1
    least_step: ClassVar[float] = 1e-15

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", check_real("level", self.level, 0, strict=True))
        if self.level >= 1:
            raise ValueError(f"level must be below 1, got {self.level}")
        if self.smoothing is not None:
            object.__setattr__(self, "smoothing", check_real("smoothing", self.smoothing, 0, strict=True))

    @property
    def smoothness(self) -> float:
        return 0.5 / self.smoothing

    @property
    def slopes(self) -> tuple[float, float]:
        return -self.level * ABOUT, (1.0 - self.level) * ABOUT

    def of_target(self, y: np.ndarray, weight: np.ndarray) -> Quantile:
        return self if self.smoothing is not None else replace(self, smoothing=SMOOTHING * spread(y, weight))

    def scaled(self, unit: float) -> Quantile:
        return replace(self, smoothing=self.smoothing / unit)

    def value(self, z: Array, y: Array) -> Array:
        xp, r = namespace(z), z - y
        size = xp.abs(r)
        near = xp.clip(size, None, self.smoothing) / self.smoothing
        return 0.25 * self.smoothing * (1.0 - near) ** 2 + 0.5 * size + (0.5 - self.level) * r

    def derivative(self, z: Array, y: Array) -> Array:
        share = namespace(z).clip((z - y) * (0.5 / self.smoothing), -0.5, 0.5)
        return share + (0.5 - self.level)

    def curvature(self, z: Array, y: Array) -> Array:
        return where(namespace(z).abs(z - y) <= self.smoothing, self.smoothness, z)

    def conjugate(self, u: Array, y: Array) -> Array:
        u = namespace(u).clip(u, *self.slopes)
        return u * y - self.smoothing * (self.level + u) * (1.0 - self.level - u)


def spread(y: np.ndarray, weight: np.ndarray) -> float:
    """The robust standard deviation of a target, or of several, each around its weighted median, together; 1 of a constant."""
    y = np.atleast_2d(y)
    unit = float(np.abs(y).max()) or 1.0
    y = y / unit
    away = np.concatenate([np.abs(each - median(each, weight)) for each in y])
    found = NORMAL * median(away, np.tile(weight, len(y)))
    if found == 0:
        found = np.sqrt(np.mean((y - (y @ weight / weight.sum())[:, None]) ** 2 @ weight / weight.sum()))
    return float(unit * found) or 1.0


def median(values: np.ndarray, weight: np.ndarray) -> float:
    """The least value that half of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    return values[order][np.searchsorted(total, (0.5 - 1e-12) * total[-1])]
