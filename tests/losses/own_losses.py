"""Losses that the package does not have, as users write them."""

import numpy as np

from sparserf.losses import Loss, Poisson, Quantile


class LogCosh(Loss):
    """log cosh(z - y), which does not say that it is one of the residual, and has no conjugate."""

    smoothness = 1.0

    def value(self, z, y):
        return np.logaddexp(z - y, y - z) - np.log(2)

    def derivative(self, z, y):
        return np.tanh(z - y)

    def curvature(self, z, y):
        return 1 - np.tanh(z - y) ** 2


class _Known(Loss):
    """A loss of the package by its three functions alone, without what else the package knows of
    it."""

    def __init__(self, loss):
        self._known = loss

    def value(self, z, y):
        return self._known.value(z, y)

    def derivative(self, z, y):
        return self._known.derivative(z, y)

    def curvature(self, z, y):
        return self._known.curvature(z, y)


class OwnPoisson(_Known):
    """`Poisson` without its conjugate and its range of targets."""

    link = "log"

    def __init__(self):
        super().__init__(Poisson())


class OwnQuantile(_Known):
    """A smoothed pinball loss of a level of 0.9, with a smoothing in units of y."""

    degree = 1

    def __init__(self, unit=1.0):
        super().__init__(Quantile(0.9, 0.1 * unit))
        self._unit, self.smoothness = unit, self._known.smoothness

    def scaled(self, unit):
        return OwnQuantile(self._unit / unit)


def broken(**methods):
    """Return an object of a class like `LogCosh` in which these methods and attributes are
    others."""
    return type("Broken", (LogCosh,), methods)()


def _raises(self, z, y):
    raise ZeroDivisionError("by my own code")


def _writes(self, z, y):
    z -= y
    return np.logaddexp(z, -z) - np.log(2)


# Losses that are wrong, and what the error says: {what is wrong: (loss, error, message)}.
WRONG = {
    "a number": (
        broken(value=lambda self, z, y: 1.0),
        TypeError,
        "value.* must return an array of real numbers, got float",
    ),
    "a list": (broken(derivative=lambda self, z, y: list(z)), TypeError, "derivative.* got list"),
    "None": (broken(curvature=lambda self, z, y: None), TypeError, "curvature.* got NoneType"),
    "words": (
        broken(value=lambda self, z, y: z.astype(str)),
        TypeError,
        "value.* got an array of dtype <U",
    ),
    "complex": (
        broken(value=lambda self, z, y: z + 0j),
        TypeError,
        "value.* got an array of dtype complex",
    ),
    "objects": (
        broken(value=lambda self, z, y: z.astype(object)),
        TypeError,
        "value.* got an array of dtype object",
    ),
    "a mean": (broken(value=lambda self, z, y: np.mean(z - y)), TypeError, "value"),
    "one entry": (
        broken(value=lambda self, z, y: np.ones(1)),
        ValueError,
        "value.* the shape of z",
    ),
    "a column": (
        broken(derivative=lambda self, z, y: np.tanh(z - y)[:, None]),
        ValueError,
        "derivative.* the shape of z",
    ),
    "a matrix": (
        broken(curvature=lambda self, z, y: np.eye(len(z))),
        ValueError,
        "curvature.* the shape of z",
    ),
    "too few": (
        broken(derivative=lambda self, z, y: np.tanh(z - y)[1:]),
        ValueError,
        "derivative.* the shape of z",
    ),
    "NaN": (
        broken(derivative=lambda self, z, y: np.where(z > y, np.nan, -1)),
        ValueError,
        "derivative.* finite, got nan at",
    ),
    "infinite": (
        broken(value=lambda self, z, y: np.log(np.cosh(1e4 * (z - y)))),
        ValueError,
        "value.* finite, got inf at z=",
    ),
    "raises": (broken(value=_raises), ValueError, "value raised ZeroDivisionError: by my own code"),
    "raises late": (broken(curvature=_raises), ValueError, "curvature raised ZeroDivisionError"),
    "writes": (broken(value=_writes), ValueError, "value raised ValueError: .*read-only"),
    "few arguments": (broken(value=lambda self, z: z), ValueError, "value raised TypeError"),
    "rows together": (
        broken(value=lambda self, z, y: np.cumsum((z - y) ** 2)),
        ValueError,
        "value.* elementwise",
    ),
    "negative": (
        broken(value=lambda self, z, y: LogCosh().value(z, y) - 1),
        ValueError,
        "value.* at least 0, got -",
    ),
    "wrong sign": (
        broken(derivative=lambda self, z, y: np.tanh(y - z)),
        ValueError,
        "derivative.* the wrong sign",
    ),
    "twice": (
        broken(derivative=lambda self, z, y: 2 * np.tanh(z - y)),
        ValueError,
        "derivative.* where the value changes by",
    ),
    "of y": (broken(derivative=lambda self, z, y: y), ValueError, "derivative"),
    "concave": (
        broken(
            value=lambda self, z, y: 100 - (z - y) ** 2, derivative=lambda self, z, y: 2 * (y - z)
        ),
        ValueError,
        "derivative.* must rise with z",
    ),
    "negative curvature": (
        broken(curvature=lambda self, z, y: np.tanh(z - y) ** 2 - 1),
        ValueError,
        "curvature.* at least 0",
    ),
    "no curvature": (
        broken(curvature=lambda self, z, y: 0 * z),
        ValueError,
        "curvature.* is -?0.0 near z=",
    ),
    "a jump": (
        broken(
            value=lambda self, z, y: abs(z - y),
            derivative=lambda self, z, y: np.sign(z - y),
            curvature=lambda self, z, y: 0 * z,
        ),
        ValueError,
        "the derivative must not jump",
    ),
    "smoothness": (broken(smoothness=0.5), ValueError, "curvature.* above smoothness"),
    "no smoothness": (
        broken(smoothness=None),
        ValueError,
        "smoothness must be a number above 0, or infinity, got None",
    ),
    "slopes": (broken(slopes=(-0.5, 0.5)), ValueError, "derivative.* not within slopes"),
    "degree": (broken(degree=2), ValueError, "degree is not true"),
    "no degree": (broken(degree=3), ValueError, "degree must be 0, 1 or 2, got 3"),
    "link": (broken(link="logit"), ValueError, "link must be 'identity' or 'log', got 'logit'"),
    "shifts": (
        broken(
            is_shift_invariant=True,
            value=lambda self, z, y: (z - y) ** 2 * (1 + y**2),
            smoothness=np.inf,
            derivative=lambda self, z, y: 2 * (z - y) * (1 + y**2),
            curvature=lambda self, z, y: 2 * (1 + y**2),
        ),
        ValueError,
        "is_shift_invariant is not true",
    ),
    "conjugate": (broken(conjugate=lambda self, u, y: u * y + 1), ValueError, "conjugate"),
    "of_target": (
        broken(of_target=lambda self, y, weight: None),
        TypeError,
        "of_target.* must return a Loss, got NoneType",
    ),
}
