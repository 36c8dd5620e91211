"""Losses of numbers: of residuals z - y, and of the mean e^z of counts and amounts.

The losses of the mean are half the unit deviances of the Poisson, the Tweedie and the gamma
distribution, with the log link. All are functions of r = z - log y, the log of the ratio of the
predicted mean to y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from .._base.arrays import namespace, outputs_like
from .._base.checks import check_real
from .base import Loss, robust_spread, where, xlogx

if TYPE_CHECKING:
    from .._base.types import Array
    from .links import LinkName

# The default of Huber's delta, in units of the robust spread of y. With normal errors of that
# spread the estimator has 95 % of the efficiency of the mean.
DELTA = 1.35
# The default smoothing of a quantile, in units of the robust spread of y.
SMOOTHING = 0.1
# The intervals `slopes` are widened by this factor, since slopes are rounded.
WIDENED = 1 + 1e-15
# In losses of the mean, z - log y and log y - z are clipped at this number, so that nothing
# overflows.
FARTHEST = 600.0
# The largest y of losses of the mean: a larger y, times e^FARTHEST, may overflow.
LARGEST_MEAN = 1e30
# The least that the largest y of losses of the mean may be: with smaller ones, curvatures and
# penalties, which are in proportion to y, may underflow.
SMALLEST_MEAN = 1e-290


class Squared(Loss):
    """Squared loss, (z - y)^2 / 2: the mean of y is predicted.

    ==========  =============
    derivative  z - y
    curvature   1
    conjugate   u^2 / 2 + u y
    ==========  =============

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> loss = srf.losses.Squared()  # loss="squared"
    >>> (
    ...     loss.value(np.array([3.0]), np.array([1.0])),
    ...     loss.derivative(np.array([3.0]), np.array([1.0])),
    ... )
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
    r"""Huber loss: (z - y)^2 / 2 up to \|z - y\| = delta, a line from there, so that the influence
    of outliers is bounded.

    ==========  ==================================================================
    loss        (z - y)^2 / 2, or delta \|z - y\| - delta^2 / 2 beyond delta
    derivative  z - y, clipped to [-delta, delta]
    curvature   1 where \|z - y\| <= delta, 0 elsewhere
    conjugate   u^2 / 2 + u y, for u in [-delta, delta]
    ==========  ==================================================================

    Parameters
    ----------
    delta : float or None, default None
        In units of y, > 0, as in LightGBM (`alpha`) and skglm; not, as in scikit-learn's
        HuberRegressor, of the spread of the residuals. None: 1.35 times the spread of y, 1.4826
        times the weighted median of \|y - median\|, or the standard deviation where that is 0. The
        model has the number in `loss_parameters`.

    References
    ----------
    P. J. Huber, Robust Estimation of a Location Parameter, Ann. Math. Statist. 35, 1964.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> y = np.sin(2 * X.ravel())
    >>> y[::15] = 50.0  # outliers
    >>> model = srf.sparse_rf(
    ...     X,
    ...     y,
    ...     loss=srf.losses.Huber(delta=0.2),
    ...     features="gaussian",
    ...     gamma=1.0,
    ...     alpha=1e-3,
    ...     rng=0,
    ... )
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
        return -self.delta * WIDENED, self.delta * WIDENED

    def of_target(self, y: np.ndarray, weight: np.ndarray) -> Huber:
        if self.delta is not None:
            return self
        return replace(self, delta=DELTA * robust_spread(y, weight))

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
    r"""Smoothed pinball loss: the quantile of y of a given level is predicted, or those of several
    levels by one model.

    It is the mean of the pinball loss max(level (y - z), (1 - level) (z - y)) over all shifts of z
    by at most `smoothing`: a quadratic for \|z - y\| <= smoothing. The smoothing adds at most
    smoothing / 4 to the loss, and moves the quantile in proportion to smoothing^2. With s =
    smoothing and r = z - y:

    ==========  =======================================================================
    loss        s (1 - min(\|r\| / s, 1))^2 / 4 + \|r\| / 2 + (1/2 - level) r
    derivative  r / (2 s), clipped to [-1/2, 1/2], + 1/2 - level
    curvature   1 / (2 s) where \|r\| <= s, 0 elsewhere
    conjugate   u y - s (level + u) (1 - level - u), for u in [-level, 1 - level]
    ==========  =======================================================================

    Of several levels the losses are added up. The levels share terms, and each has coefficients and
    an output of its own, f_0 of the lowest level. `predict` has a column for each level and sorts
    each row, so that no prediction of a level lies above that of a higher one: by sorting, the loss
    of a row only falls.

    Parameters
    ----------
    level : float, or sequence of float, default 0.5
        In (0, 1); several in ascending order.
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
    >>> model = srf.sparse_rf(
    ...     X, y, loss=loss, features="gaussian", gamma=0.5, alpha=0.003, n_components=500, rng=0
    ... )
    >>> bool(abs(np.mean(y < model.predict(X)) - 0.9) < 0.02)
    True
    >>> loss = srf.losses.Quantile([0.1, 0.5, 0.9])
    >>> model = srf.sparse_rf(
    ...     X, y, loss=loss, features="gaussian", gamma=0.5, alpha=0.003, n_components=500, rng=0
    ... )
    >>> predicted = model.predict(X)
    >>> predicted.shape, bool((np.diff(predicted) >= 0).all())
    ((2000, 3), True)
    """

    level: float | Sequence[float] = 0.5
    smoothing: float | None = None

    is_piecewise_quadratic: ClassVar[bool] = True
    is_smoothed: ClassVar[bool] = True
    is_unimodal: ClassVar[bool] = True
    is_shift_invariant: ClassVar[bool] = True
    dual_growth: ClassVar[float] = 1.0
    degree: ClassVar[Literal[0, 1, 2]] = 1
    least_step: ClassVar[float] = 1e-15

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", _checked_levels(self.level))
        if self.smoothing is not None:
            object.__setattr__(
                self, "smoothing", check_real("smoothing", self.smoothing, 0, strict=True)
            )

    @property
    def smoothness(self) -> float:
        return 0.5 / self.smoothing

    @property
    def _levels(self) -> float | np.ndarray:
        """The level, or all levels as an array."""
        return self.level if self.n_outputs == 1 else np.array(self.level)

    @property
    def slopes(self) -> tuple[float, float] | tuple[np.ndarray, np.ndarray]:
        return -self._levels * WIDENED, (1.0 - self._levels) * WIDENED

    @property
    def n_outputs(self) -> int:
        return np.size(self.level)

    @property
    def link(self) -> LinkName:
        return "identity" if self.n_outputs == 1 else "ascending"

    def of_output(self, k: int) -> Quantile:
        return self if self.n_outputs == 1 else replace(self, level=self.level[k])

    def of_target(self, y: np.ndarray, weight: np.ndarray) -> Quantile:
        least = float(np.finfo(np.float64).smallest_subnormal)
        if self.smoothing is not None:
            return self
        return replace(self, smoothing=max(SMOOTHING * robust_spread(y, weight), least))

    def scaled(self, unit: float) -> Quantile:
        return replace(self, smoothing=self.smoothing / unit)

    def value(self, z: Array, y: Array) -> Array:
        xp, r = namespace(z), z - y
        size = xp.abs(r)
        near = xp.clip(size, None, self.smoothing) / self.smoothing
        slope = 0.5 - outputs_like(self._levels, z)
        return 0.25 * self.smoothing * (1.0 - near) ** 2 + 0.5 * size + slope * r

    def derivative(self, z: Array, y: Array) -> Array:
        share = namespace(z).clip((z - y) * (0.5 / self.smoothing), -0.5, 0.5)
        return share + (0.5 - outputs_like(self._levels, z))

    def curvature(self, z: Array, y: Array) -> Array:
        return where(namespace(z).abs(z - y) <= self.smoothing, self.smoothness, z)

    def conjugate(self, u: Array, y: Array) -> Array:
        low, high = self.slopes
        u = namespace(u).clip(u, outputs_like(low, u), outputs_like(high, u))
        level = outputs_like(self._levels, u)
        return u * y - self.smoothing * (level + u) * (1.0 - level - u)


def pinball_loss(level: float, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the pinball loss of a level, which is not smoothed."""
    return np.maximum(level * (y - z), (1.0 - level) * (z - y))


def _checked_levels(level):
    """Return a level as a float, or several as a tuple."""
    given = level.tolist() if hasattr(level, "tolist") else level
    if isinstance(given, str) or not isinstance(given, Sequence):
        return _checked_level(given)
    if not given:
        raise ValueError(f"level must be a number, or several, got {level!r}")
    levels = tuple(map(_checked_level, given))
    for one, other in pairwise(levels):
        if not one < other:
            raise ValueError(f"level must be in ascending order, got {other} after {one}")
    return levels if len(levels) > 1 else levels[0]


def _checked_level(level):
    """Return a level as a float."""
    level = check_real("level", level, 0, strict=True)
    if level >= 1:
        raise ValueError(f"level must be below 1, got {level}")
    return level


class LossOfAmounts(Loss):
    """A loss of the mean m = e^z of counts or amounts y, which may be 0, but not all."""

    link: Literal["identity", "log"] = "log"
    is_self_concordant: bool = True
    least_step: float = 4e-15

    def of_target(self, y: np.ndarray, weight: np.ndarray) -> Self:
        _check_range(y, y.min() >= 0, ">= 0", self.name)
        if not (np.atleast_2d(y).max(axis=1) > 0).all():
            raise ValueError(f"y must have a positive entry for loss={self.name!r}, got all zeros")
        if np.atleast_2d(y).max(axis=1).min() < SMALLEST_MEAN:
            largest = np.atleast_2d(y).max(axis=1).min()
            least = f"an entry of at least {SMALLEST_MEAN:g} for loss={self.name!r}"
            raise ValueError(f"y must have {least}, got at most {largest}: divide it by a unit")
        return self

    def penalty_unit(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the size of a row at the mean of y: the mean curvature at the best constant."""
        return min(self.size(float(mean)) for mean in np.atleast_2d(y) @ weight / weight.sum())

    def doubt(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Return 1 / (1 + the effective number of events), or of rows where counts are large."""
        events = weight * (y / y.max())
        return 1.0 / (1.0 + float(events.sum() ** 2 / (events @ events)))

    def of_unknown_row(self, z: Array, mean: float) -> Array:
        return self.value(z, namespace(z).full_like(z, mean))

    def slope_of_unknown_row(self, z: Array, mean: float) -> Array:
        return self.derivative(z, namespace(z).full_like(z, mean))


class Poisson(LossOfAmounts):
    """Poisson loss, y log(y / m) - y + m at the mean m = e^z: half the unit deviance, for counts
    and rates y >= 0.

    ==========  ==================================================
    derivative  m - y
    curvature   m
    conjugate   a log(a / y) - (a - y), for a = u + y >= 0
    ==========  ==================================================

    For counts over exposures e, of time or of size, `offset` is log e; or y is the rate, and
    `sample_weight` is e.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (2000, 1))
    >>> exposure = rng.uniform(0.5, 5, 2000)
    >>> counts = rng.poisson(exposure * np.exp(np.sin(2 * X.ravel())))
    >>> how = {"features": "gaussian", "gamma": 1.0, "alpha": 0.01, "n_components": 500, "rng": 0}
    >>> model = srf.sparse_rf(X, counts, loss="poisson", offset=np.log(exposure), **how)
    >>> bool(
    ...     abs(model.decision_function(X) - np.sin(2 * X.ravel())).max() < 0.3
    ... )  # predict is e to the power of it
    True
    """

    is_unimodal: bool = True

    def size(self, mean: float) -> float:
        return mean

    def intercept_step(self, slope: float, curvature: float) -> float:
        """Return the exact step: it multiplies all e^z by the factor that makes their mean the mean
        of y, curvature - slope."""
        return float(np.log1p(-min(1.0, slope / max(curvature, 1e-300))))

    def value(self, z: Array, y: Array) -> Array:
        xp, positive = namespace(z), y > 0
        r = _log_ratio(z, y)
        return xp.where(positive, y * (xp.expm1(r) - r), xp.exp(r))

    def derivative(self, z: Array, y: Array) -> Array:
        xp, r = namespace(z), _log_ratio(z, y)
        return xp.where(y > 0, y * xp.expm1(r), xp.exp(r))

    def curvature(self, z: Array, y: Array) -> Array:
        return _or_one(y) * namespace(z).exp(_log_ratio(z, y))

    def conjugate(self, u: Array, y: Array) -> Array:
        mean = namespace(u).clip(u + y, 0.0, None)
        return (xlogx(mean) - xlogx(y)) - (mean - y)


@dataclass(frozen=True)
class Tweedie(LossOfAmounts):
    """Tweedie loss for amounts of which some are 0: half the unit deviance at the mean m = e^z.

    The power p of the deviance is in (1, 2).

    A sum of a Poisson number of gamma amounts, such as the claims of a policy in a year or the rain
    of a day, has this distribution. Its variance is in proportion to m^p: near p = 1 as of counts,
    near p = 2 as of gamma amounts. With a = 2 - p and c = p - 1:

    ==========  =====================================================
    loss        m^a / a + y m^-c / c - y^a / (a c)
    derivative  m^a - y m^-c
    curvature   a m^a + c y m^-c
    conjugate   of slopes u, for y = 0 of u >= 0; by Newton's method
    ==========  =====================================================

    Parameters
    ----------
    power : float, default 1.5
        p, in (1, 2), as in scikit-learn's TweedieRegressor. For powers of 1 and 2 see `Poisson` and
        `Gamma`.

    References
    ----------
    B. Jorgensen, Exponential Dispersion Models, J. R. Statist. Soc. B 49, 1987.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (2000, 1))
    >>> claims = rng.poisson(np.exp(np.sin(2 * X.ravel())))
    >>> y = 100 * rng.standard_gamma(3 * claims) / 3  # each claim costs 100 in the mean
    >>> how = {"features": "gaussian", "gamma": 1.0, "alpha": 0.2, "n_components": 500, "rng": 0}
    >>> model = srf.sparse_rf(X, y, loss=srf.losses.Tweedie(power=1.5), **how)
    >>> (
    ...     bool((y == 0).any()),
    ...     bool(abs(np.log(model.predict(X) / 100) - np.sin(2 * X.ravel())).max() < 0.3),
    ... )
    (True, True)
    """

    power: float = 1.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "power", check_real("power", self.power, 1, strict=True))
        if self.power >= 2:
            raise ValueError(f"power must be below 2, got {self.power}")

    def size(self, mean: float) -> float:
        return mean ** (2.0 - self.power)

    def intercept_step(self, slope: float, curvature: float) -> float:
        """Return the exact step b: the slope at z + b is e^(ab) rising - e^(-cb) falling, the means
        of m^a and of y m^-c."""
        rising = curvature + (self.power - 1.0) * slope
        return float(np.log1p(-min(1.0, slope / max(rising, 1e-300))))

    def value(self, z: Array, y: Array) -> Array:
        xp, a, c = namespace(z), 2.0 - self.power, self.power - 1.0
        r, log_mean = self._exponents(z, y)
        of_positive = _or_one(y) ** a * (xp.expm1(a * r) / a + xp.expm1(-c * r) / c)
        return xp.where(y > 0, of_positive, xp.exp(a * log_mean) / a)

    def derivative(self, z: Array, y: Array) -> Array:
        xp, a, c = namespace(z), 2.0 - self.power, self.power - 1.0
        r, log_mean = self._exponents(z, y)
        return xp.where(y > 0, _or_one(y) ** a * xp.exp(-c * r) * xp.expm1(r), xp.exp(a * log_mean))

    def curvature(self, z: Array, y: Array) -> Array:
        xp, a, c = namespace(z), 2.0 - self.power, self.power - 1.0
        r, log_mean = self._exponents(z, y)
        return xp.where(
            y > 0,
            _or_one(y) ** a * (a * xp.exp(a * r) + c * xp.exp(-c * r)),
            a * xp.exp(a * log_mean),
        )

    def conjugate(self, u: Array, y: Array) -> Array:
        xp, a, c = namespace(u), 2.0 - self.power, self.power - 1.0
        left = xp.clip(u, 0.0, None)
        of_zero = (xlogx(left) - left) / a
        unit = _or_one(y) ** a
        r = _ratio_of_slope(u / unit, a, c)
        of_positive = u * (xp.log(_or_one(y)) + r) - unit * (
            xp.expm1(a * r) / a + xp.expm1(-c * r) / c
        )
        return xp.where(y > 0, of_positive, of_zero)

    def _exponents(self, z, y):
        """Return (z - log y, clipped to [-FARTHEST, FARTHEST], where y is positive, else 0; z where
        y is 0, else 0)."""
        xp, r, zero = namespace(z), _log_ratio(z, y), namespace(z).zeros_like(z)
        return xp.where(y > 0, xp.clip(r, -FARTHEST, None), zero), xp.where(y > 0, zero, r)


class Gamma(Loss):
    """Gamma loss, y / m - 1 - log(y / m) at the mean m = e^z: half the unit deviance, for y > 0.

    Errors count in proportion to the mean.

    ==========  ==================================================
    derivative  1 - y / m
    curvature   y / m
    conjugate   (1 - u) log(1 - u) + u (1 + log y), for u <= 1
    ==========  ==================================================

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
        """Return the exact step: it makes the curvature, the mean of y / m, that of the weights."""
        return float(np.log(max(curvature, 1e-300)))

    def value(self, z: Array, y: Array) -> Array:
        r = _negative_log_ratio(z, y)
        return namespace(z).expm1(r) - r

    def derivative(self, z: Array, y: Array) -> Array:
        return -namespace(z).expm1(_negative_log_ratio(z, y))

    def curvature(self, z: Array, y: Array) -> Array:
        return namespace(z).exp(_negative_log_ratio(z, y))

    def conjugate(self, u: Array, y: Array) -> Array:
        xp = namespace(u)
        left = xp.clip(1.0 - u, 0.0, None)
        return xlogx(left) + u * (1.0 + xp.log(y))


def _check_range(y, is_in_range, what, name):
    """Check that the targets of a loss of the mean are in its range, and not too large."""
    if not is_in_range:
        raise ValueError(f"y must be {what} for loss={name!r}, got {y.min()}")
    if y.max() > LARGEST_MEAN:
        raise ValueError(
            f"y must be at most {LARGEST_MEAN:g} for loss={name!r}, got {y.max()}: divide it by a "
            "unit"
        )


def _or_one(y):
    """Return y where it is positive, and 1 elsewhere."""
    return namespace(y).where(y > 0, y, namespace(y).ones_like(y))


def _log_ratio(z, y):
    """Return z - log y, and z where y is 0; at most FARTHEST."""
    xp = namespace(z)
    return xp.clip(z - xp.log(_or_one(y)), None, FARTHEST)


def _negative_log_ratio(z, y):
    """Return log y - z, at most FARTHEST."""
    xp = namespace(z)
    return xp.clip(xp.log(y) - z, None, FARTHEST)


def _ratio_of_slope(v, a, c):
    """Return the r with e^(a r) - e^(-c r) = v, for a + c = 1: the log of the ratio of the mean to
    y at which a slope is v.

    With s = e^(a r) where v >= 0, and s = e^(-c r) elsewhere, it is the root s >= 1 of s - s^-k =
    |v| for k = c / a, or a / c. Newton's method rises to the root of this concave function from the
    left, until no root moves by 1e-8 of itself: the conjugate errs by the square of that.
    """
    xp, size = namespace(v), namespace(v).abs(v)
    k = xp.where(v < 0, xp.full_like(v, a / c), xp.full_like(v, c / a))
    s = xp.clip(size, 1.0, None)
    for _ in range(60):
        falling = s**-k
        step = (size - s + falling) / (1.0 + k * falling / s)
        s = s + step
        if not xp.any(step > 1e-8 * s):
            break
    return xp.log(s) * xp.where(v < 0, xp.full_like(v, -1.0 / c), xp.full_like(v, 1.0 / a))
