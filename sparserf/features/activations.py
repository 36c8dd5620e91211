"""The activations sigma of neurons sigma(w'x + b): a class for each, which answers all that is
asked of it.

A new activation is a class here, with its name in `ACTIVATIONS` and, if users may choose it, in
`Activation`; and a branch in the kernels (`_core/features.pyx`, `_core/tile.h` and
`_core/tile_impl.h`). If its formula needs an operation that `_base/expressions.py` lacks, that
operation is added there and in each printer of `export/`. What draws, differentiates, integrates,
bounds, explains or exports neurons asks these objects, and knows no activation by its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import factorial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from .._base.expressions import cos, positive, sign, sin, tanh

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.expressions import Expression
    from .._base.types import Array

# The activations that users may choose.
Activation: TypeAlias = Literal["sin", "cos", "tanh", "relu", "sign"]
EPS = float(np.finfo(np.float64).eps)
# The rounding of a comparison of numbers of size 1.
NEAR = 1e-12
# The most values that are computed at once for a mean: they fit the cache.
AT_ONCE = 2**17


class Derivative(NamedTuple):
    """A derivative of an activation, function(other activation(z + shift)), by one that the kernels
    compute."""

    activation: str
    shift: float
    function: Callable[[Array], Array]


class Line(NamedTuple):
    """A line above an activation on intervals [m - r, m + r], sigma(t) <= top + slope (t - m), and
    bounds of sigma'.

    value : sigma(m)
    jumps : where sigma may jump up in the interval; None: nowhere
    """

    slope: np.ndarray
    top: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    jumps: np.ndarray | None = None


class ActivationFunction(ABC):
    """An activation sigma, with sigma' in [-1, 1].

    name : as users and files call it
    largest : the supremum of its size; infinite where it has no bound
    is_linear : whether it is z itself
    is_odd : whether sigma(-z) = -sigma(z)
    rises : whether it never falls
    is_convex : whether it is convex
    has_steps : whether it jumps somewhere
    phase : the angle for which sigma(z) = cos(z + phase), or None
    folds : how many times it can be integrated in closed form
    slope, bend : its first and second derivative, or a number where they are constant except at
        steps and kinks
    """

    name: ClassVar[str]
    largest: ClassVar[float] = 1.0
    is_linear: ClassVar[bool] = False
    is_odd: ClassVar[bool] = False
    rises: ClassVar[bool] = False
    is_convex: ClassVar[bool] = False
    has_steps: ClassVar[bool] = False
    phase: ClassVar[float | None] = None
    folds: ClassVar[float] = 0
    slope: ClassVar[Derivative | float]
    bend: ClassVar[Derivative | float]

    def __init_subclass__(cls, **about: Any) -> None:
        """Take what a class says of itself, its attributes by their names."""
        for name, value in about.items():
            setattr(cls, name, value)

    @property
    def is_bounded(self) -> bool:
        """Whether its values lie in [-largest, largest]."""
        return bool(np.isfinite(self.largest))

    @property
    def is_periodic(self) -> bool:
        """Whether it is a cosine of another phase, to which an angle can be added."""
        return self.phase is not None

    @abstractmethod
    def value(self, z: Array, xp: Any = np) -> Array:
        """Return sigma(z) in an array namespace, as the kernels do: for NaN, sigma(0)."""

    @abstractmethod
    def expression(self, z: Expression) -> Expression:
        """Return sigma(z) as an expression, which languages print."""

    def first(self, z: np.ndarray) -> np.ndarray:
        """Return sigma'(z); at steps and kinks that of one side."""
        if not isinstance(self.slope, Derivative):
            return np.full_like(z, self.slope)
        other, shift, function = self.slope
        return function(ACTIVATIONS[other].value(z + shift))

    def mean(self, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return, for each s, the mean of sigma(s + t) over t, along the last axis.

        s, t : arrays of shape (..., n) and (..., n_background)
        """
        made, m = np.empty(s.shape), t.shape[-1]
        step, weight = max(1, AT_ONCE // t.size), np.full(m, 1 / m)
        for start in range(0, s.shape[-1], step):
            part = slice(start, start + step)
            made[..., part] = self.value(s[..., part, None] + t[..., None, :]) @ weight
        return made

    def antiderivative(self, z: np.ndarray, folds: int) -> np.ndarray:
        """Return sigma integrated `folds` times, at most as often as the attribute `folds` says."""
        return self.value(z)

    def line(self, m: np.ndarray, r: np.ndarray) -> Line:
        """Return lines above sigma on intervals [m - r, m + r]."""
        raise NotImplementedError(f"{self.name} has no lines")

    def line_of_negative(self, m: np.ndarray, r: np.ndarray) -> Line:
        """Return lines above -sigma. Odd and periodic sigma need none: -sigma(z) is sigma at
        another argument."""
        raise NotImplementedError(f"{self.name} has no lines")


class Cosine(
    ActivationFunction,
    name="cos",
    phase=0.0,
    slope=Derivative("cos", np.pi / 2, lambda values: values),
    bend=Derivative("cos", 0.0, lambda values: -values),
):
    """cos(z)."""

    def value(self, z: Array, xp: Any = np) -> Array:
        return _wave(xp.cos, z, xp)

    def expression(self, z: Expression) -> Expression:
        return cos(z)


class Sine(
    ActivationFunction,
    name="sin",
    phase=-np.pi / 2,
    is_odd=True,
    slope=Derivative("sin", np.pi / 2, lambda values: values),
    bend=Derivative("sin", 0.0, lambda values: -values),
):
    """sin(z)."""

    def value(self, z: Array, xp: Any = np) -> Array:
        return _wave(xp.sin, z, xp)

    def expression(self, z: Expression) -> Expression:
        return sin(z)


def _wave(function, z, xp):
    """Return a cosine or sine; 0, its mean, of a phase that is not finite."""
    is_finite, zero = xp.isfinite(z), xp.zeros_like(z)
    return xp.where(is_finite, function(xp.where(is_finite, z, zero)), zero)


def cosine_line(
    sin_m: np.ndarray, cos_m: np.ndarray, sin_r: np.ndarray, cos_r: np.ndarray, r: np.ndarray
) -> Line:
    """Return lines above cos: tangents at the middle where they are, or else of the slope of the
    chord."""
    swing, ends, across, along = sin_m * sin_r, cos_m * cos_r, cos_m * sin_r, sin_m * cos_r
    is_wide = r >= np.pi
    high, low = np.abs(across) - along, -np.abs(across) - along  # the derivative at both ends
    np.copyto(high, 1.0, where=is_wide | (-sin_m >= cos_r - NEAR))
    np.copyto(low, -1.0, where=is_wide | (sin_m >= cos_r - NEAR))
    # Up to r = pi a tangent that is above cos at both ends is above it in between.
    is_tangent = ~is_wide & (cos_m - ends >= np.abs(swing - sin_m * r) + NEAR)
    slope, top = swing / -r, ends
    np.copyto(slope, 0.0, where=is_wide)
    np.copyto(slope, -sin_m, where=is_tangent)
    np.copyto(top, cos_m, where=is_tangent)
    # Where cos is concave and has that slope, at t with sin t = -slope; s is t - m.
    cos_t = np.sqrt(1 - slope * slope)
    cos_s = cos_t * cos_m - slope * sin_m
    mixed = np.flatnonzero(~is_tangent & ~is_wide & (cos_s >= cos_r - NEAR))
    a, c = slope.take(mixed), cos_t.take(mixed)
    crest = c - a * np.arctan2(-a * cos_m.take(mixed) - c * sin_m.take(mixed), cos_s.take(mixed))
    top.put(mixed, np.maximum(top.take(mixed), crest))
    np.copyto(top, 1.0, where=is_wide)
    return Line(slope, top, cos_m, low, high)


class Tanh(
    ActivationFunction,
    name="tanh",
    is_odd=True,
    rises=True,
    folds=1,
    slope=Derivative("tanh", 0.0, lambda values: 1 - values**2),
    bend=Derivative("tanh", 0.0, lambda values: -2 * values * (1 - values**2)),
):
    """tanh(z)."""

    def value(self, z: Array, xp: Any = np) -> Array:
        return xp.where(xp.isnan(z), xp.zeros_like(z), xp.tanh(z))

    def expression(self, z: Expression) -> Expression:
        return tanh(z)

    def antiderivative(self, z: np.ndarray, folds: int) -> np.ndarray:
        """Return tanh, or its antiderivative log(2 cosh)."""
        return np.logaddexp(z, -z) if folds else np.tanh(z)

    def line(self, m: np.ndarray, r: np.ndarray) -> Line:
        left, right = np.tanh(m - r), np.tanh(m + r)
        slope = np.clip((right - left) / np.maximum(2 * r, 1e-300), 0.0, 1.0)
        # Where the derivative is the slope, and tanh is concave.
        tanh_t = np.minimum(np.sqrt(1 - slope), 1 - EPS)
        t = np.arctanh(tanh_t)
        crest = np.where((m - r <= t) & (t <= m + r), tanh_t - slope * (t - m), -np.inf)
        top = np.maximum(np.maximum(left + slope * r, right - slope * r), crest)
        squares = left * left, right * right
        high = np.where((m - r <= 0) & (m + r >= 0), 1.0, 1 - np.minimum(*squares))
        return Line(slope, top, np.tanh(m), 1 - np.maximum(*squares), high)


class Relu(
    ActivationFunction,
    name="relu",
    largest=np.inf,
    rises=True,
    is_convex=True,
    folds=np.inf,
    slope=Derivative("sign", 0.0, lambda values: values / 2 + 0.5),
    bend=0.0,
):
    """max(z, 0)."""

    def value(self, z: Array, xp: Any = np) -> Array:
        return xp.where(z > 0, z, xp.zeros_like(z))

    def expression(self, z: Expression) -> Expression:
        return positive(z)

    def antiderivative(self, z: np.ndarray, folds: int) -> np.ndarray:
        return np.maximum(z, 0.0) ** (folds + 1) / factorial(folds + 1)

    def line(self, m: np.ndarray, r: np.ndarray) -> Line:
        left, right, slope = self._chord(m, r)
        top = np.maximum(left + slope * r, right - slope * r)
        return Line(
            slope,
            top,
            np.maximum(m, 0),
            (m - r >= 0).astype(np.float64),
            (m + r > 0).astype(np.float64),
        )

    def line_of_negative(self, m: np.ndarray, r: np.ndarray) -> Line:
        left, right, slope = self._chord(m, r)
        slope = -slope
        top = np.maximum(slope * r - left, -slope * r - right)
        top = np.where((m - r < 0) & (m + r > 0), np.maximum(top, slope * m), top)
        return Line(
            slope,
            top,
            -np.maximum(m, 0),
            -(m + r > 0).astype(np.float64),
            -(m - r >= 0).astype(np.float64),
        )

    def _chord(self, m, r):
        """Return the values at both ends, and the slope of the chord."""
        left, right = np.maximum(m - r, 0), np.maximum(m + r, 0)
        return left, right, np.clip((right - left) / np.maximum(2 * r, 1e-300), 0.0, 1.0)


class Sign(
    ActivationFunction,
    name="sign",
    is_odd=True,
    rises=True,
    has_steps=True,
    folds=np.inf,
    slope=0.0,
    bend=0.0,
):
    """The sign of z, a step: 1 at 0."""

    def value(self, z: Array, xp: Any = np) -> Array:
        return xp.where(z >= 0, xp.ones_like(z), -xp.ones_like(z))

    def expression(self, z: Expression) -> Expression:
        return sign(z)

    def antiderivative(self, z: np.ndarray, folds: int) -> np.ndarray:
        """Return the sign integrated `folds` times: sign(z) z^folds / folds!."""
        if folds:
            return np.sign(z) ** (folds + 1) * np.abs(z) ** folds / factorial(folds)
        return self.value(z)

    def line(self, m: np.ndarray, r: np.ndarray) -> Line:
        """Return constants above the sign, which may be 1 or -1 at 0, or lines from (l, -1) to (0,
        1) where -l > h."""
        jumps = np.abs(m) <= r
        value = self.value(m)
        is_steep = jumps & (m < 0)
        slope = np.where(is_steep, 2 / np.maximum(r - m, 1e-300), 0.0)
        top = np.where(is_steep, 1 + slope * m, np.where(jumps, 1.0, value))
        nothing = np.zeros_like(m)
        return Line(slope, top, value, nothing, nothing, jumps)


class Identity(
    ActivationFunction,
    name="identity",
    largest=np.inf,
    is_linear=True,
    is_odd=True,
    rises=True,
    is_convex=True,
    slope=1.0,
    bend=0.0,
):
    """z itself: a linear function."""

    def value(self, z: Array, xp: Any = np) -> Array:
        return z

    def expression(self, z: Expression) -> Expression:
        return z


# All activations by their names.
ACTIVATIONS: dict[str, ActivationFunction] = {
    each.name: each for each in (Cosine(), Sine(), Tanh(), Relu(), Sign(), Identity())
}
# The activation that all periodic ones are, with another phase.
COSINE = ACTIVATIONS[Cosine.name]
# The name of the activation of neurons that must be convex in an input.
CONVEX = Relu.name
# The name of the activation that takes the place of one that does not rise, where neurons must.
RISING = Tanh.name
