"""The check of a user's own loss: its methods are called on a few rows, and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.floats import as_ieee
from .base import Loss
from .links import LINKS, OF_OWN

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# The relative error that a derivative may have beside a difference quotient.
TOLERANCE = 1e-2
# The rounding of a difference: this many roundings of the values, and of 1.
ROUNDINGS = 64.0
EPS = float(np.finfo(np.float64).eps)
METHODS = "value", "derivative", "curvature"


@as_ieee
def check(loss: Loss, y: ArrayLike) -> None:
    """Check a loss of your own on a few targets; an error says if something is wrong with it.

    Every fit does so at its first use of the loss. At predictors z among the targets, `value`,
    `derivative` and `curvature` must return float64 arrays of the shape of z, finite and
    elementwise, and leave z and y alone. The value must be at least 0 and convex, the derivative
    that of the value, and the curvature that of the derivative, of which it may be more, but not
    less than half. Slopes and curvatures must be within `slopes` and `smoothness`, and `degree`,
    `is_shift_invariant` and `conjugate` must be true.

    Parameters
    ----------
    loss : Loss
        An object of your class.
    y : array of shape (n_samples,)
        Targets as those of the fit. Of a classifier two labels: the greater one is y = 1, the other
        y = -1.

    Raises
    ------
    TypeError
        If loss is no `Loss`, or a method returns something else than an array of real numbers.
    ValueError
        If a method raises, returns another shape or a number that is not finite, or is not what it
        should be; the message has a z and y at which.
    NotImplementedError
        If `value`, `derivative` or `curvature` is missing.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> class Cubic(srf.losses.Loss):
    ...     def value(self, z, y):
    ...         return abs(z - y) ** 3 / 3
    ...
    ...     def derivative(self, z, y):
    ...         return (y - z) * abs(z - y)
    ...
    ...     def curvature(self, z, y):
    ...         return 2 * abs(z - y)
    >>> srf.losses.check(Cubic(), np.arange(5.0))
    Traceback (most recent call last):
    ...
    ValueError: loss 'cubic': derivative(z, y) has the wrong sign: it is -1.0 at z=1.0, y=0.0,
    where the value changes by 1.12 a unit of z
    """
    if not isinstance(loss, Loss):
        raise TypeError(
            f"loss must be an object of a class derived from sparserf.losses.Loss, got {loss!r}"
        )
    y = np.asarray(y, np.float64).ravel() if not loss.is_classifier else _signs(y, loss)
    if not len(y) or not np.isfinite(y).all():
        raise ValueError("y must have finite entries to check a loss on")
    if not isinstance(chosen := _call(loss, "of_target", y, np.ones(len(y))), Loss):
        raise TypeError(
            f"{_name(loss)}: of_target(y, weight) must return a Loss, got {type(chosen).__name__}"
        )
    _check_attributes(chosen)
    z, y, unit = _points(chosen, y)
    value, slope, curvature = (_answer(chosen, method, z, y) for method in METHODS)
    _Points(chosen, z, y).check(value, slope, curvature, unit)


def _signs(y, loss):
    """Return labels as -1 and 1, or of several ordered classes as their places."""
    labels, label = np.unique(np.asarray(y), return_inverse=True)
    if loss.is_ordered and len(labels) > 2:
        return label.astype(np.float64)
    if len(labels) != 2:
        raise ValueError(
            f"y must have two labels for a loss with is_classifier=True, got {len(labels)}"
        )
    return np.where(label == 1, 1.0, -1.0)


def _name(loss):
    """Return the words for a loss in errors."""
    return f"loss {loss.name!r}"


def _check_attributes(loss):
    """Check the types and ranges of a loss's attributes."""
    if not isinstance(loss.name, str):
        raise TypeError(f"the name of a loss must be a string, got {loss.name!r}")
    if loss.link not in OF_OWN and not loss.is_ordered:
        names = " or ".join(map(repr, OF_OWN))
        raise ValueError(f"{_name(loss)}: link must be {names}, got {loss.link!r}")
    if loss.n_outputs != 1:
        raise ValueError(f"{_name(loss)}: n_outputs must be 1, got {loss.n_outputs!r}")
    if loss.degree not in (0, 1, 2):
        raise ValueError(f"{_name(loss)}: degree must be 0, 1 or 2, got {loss.degree!r}")
    try:
        is_positive = bool(loss.smoothness > 0)
    except (TypeError, ValueError):
        is_positive = False
    if not is_positive:
        raise ValueError(
            f"{_name(loss)}: smoothness must be a number above 0, or infinity, got "
            f"{loss.smoothness!r}"
        )


def _call(loss, method, *arguments):
    """Return what a method of the loss returns; a ValueError says which one raised."""
    try:
        return getattr(loss, method)(*arguments)
    except NotImplementedError:
        raise
    except Exception as error:
        raise ValueError(
            f"{_name(loss)}: {method} raised {type(error).__name__}: {error}"
        ) from error


def _answer(loss, method, z, y):
    """Return method(z, y) as an array of float64, checked for its type, shape and values."""
    z, y = z.copy(), y.copy()
    z.flags.writeable = y.flags.writeable = False  # a loss that writes into them raises
    answer: Any = _call(loss, method, z, y)
    what = f"{_name(loss)}: {method}(z, y)"
    if not isinstance(answer, np.ndarray) or answer.dtype.kind not in "fiub":
        got = (
            f"an array of dtype {answer.dtype}"
            if isinstance(answer, np.ndarray)
            else type(answer).__name__
        )
        raise TypeError(f"{what} must return an array of real numbers, got {got}")
    if answer.shape != z.shape:
        raise ValueError(
            f"{what} must return an array of the shape of z, {z.shape}, got {answer.shape}"
        )
    answer = answer.astype(np.float64)
    if not np.isfinite(answer).all():
        k = int(np.flatnonzero(~np.isfinite(answer))[0])
        raise ValueError(f"{what} must be finite, got {answer[k]} at z={z[k]!s}, y={y[k]!s}")
    return answer


def _points(loss, y):
    """Return predictors, a target for each, and the unit in which predictors differ.

    Each of at most 12 targets is paired with each of at most 9 predictors.
    """
    n_targets, n_predictors = 12, 9
    y = np.unique(y)
    y = y[np.unique(np.linspace(0, len(y) - 1, n_targets).astype(int))]
    if loss.is_classifier or not LINKS[loss.link].is_identity:
        mean = float(np.abs(y).mean()) or 1.0
        middle, unit = 0.0 if loss.is_classifier else LINKS[loss.link].margin(mean), 1.0
        z = middle + np.linspace(-3.0, 3.0, n_predictors)
    else:
        unit = float(np.ptp(y)) or float(np.abs(y).max()) or 1.0
        z = np.append(y[np.unique(np.linspace(0, len(y) - 1, n_predictors - 1).astype(int))], 0.0)
    z, y = (each.ravel() for each in np.meshgrid(z, y))
    return z, y, unit


class _Points:
    """A loss at predictors z and targets y, at which its answers are compared."""

    def __init__(self, loss, z, y):
        self.loss, self.z, self.y = loss, z, y

    def fail(self, wrong, message, *values):
        """Raise a ValueError about the first point at which something is wrong.

        The message has places for z, y and the values there.
        """
        if wrong.any():
            k = int(np.flatnonzero(wrong)[0])
            z, y, *there = (float(each[k]) for each in (self.z, self.y, *values))
            raise ValueError(f"{_name(self.loss)}: {message.format(*there, at=f'z={z}, y={y}')}")

    def check(self, value, slope, curvature, unit):
        """Check the answers against each other, and what the loss says of itself."""
        loss, z, y = self.loss, self.z, self.y
        back = _answer(loss, "value", z[::-1], y[::-1])[::-1]
        rounding = ROUNDINGS * EPS * (1 + np.abs(value) + np.abs(slope) * (np.abs(z) + np.abs(y)))
        self.fail(
            np.abs(back - value) > rounding,
            "value(z, y) must be elementwise: at {at} it is {} or {}, by the other rows",
            value,
            back,
        )
        self.fail(
            value < -rounding,
            "value(z, y) must be at least 0, got {} at {at}: add what no z changes",
            value,
        )
        self.fail(
            curvature < 0,
            "curvature(z, y) must be at least 0, since the loss must be convex, got {} at {at}",
            curvature,
        )
        self.fail(
            curvature > loss.smoothness * (1 + TOLERANCE),
            "curvature(z, y) is {} at {at}, above smoothness",
            curvature,
        )
        inside = loss.bounded_slope(slope, y)
        low, high = loss.slopes
        self.fail(
            (inside < low - TOLERANCE * abs(low)) | (inside > high + TOLERANCE * abs(high)),
            "derivative(z, y) is {} at {at}, which is not within slopes",
            slope,
        )
        self.check_derivatives(slope, curvature, unit)
        if type(loss).conjugate is not Loss.conjugate:
            conjugate = _answer(loss, "conjugate", slope, y)
            size = np.abs(conjugate) + np.abs(slope * z) + np.abs(value)
            self.fail(
                np.abs(conjugate + value - slope * z) > TOLERANCE * size,
                "conjugate(u, y) must be u z - L(z, y) for the slope u of L at z, got {} at {at}, "
                "not {}",
                conjugate,
                slope * z - value,
            )
        if loss.is_shift_invariant:
            moved = _answer(loss, "value", z + unit, y + unit)
            self.fail(
                np.abs(moved - value) > TOLERANCE * (value + np.abs(slope) * unit),
                "is_shift_invariant is not true: the value is {} at {at}, and {} where a number is "
                "added to both",
                value,
                moved,
            )
        if loss.degree:
            scaled = _call(loss, "scaled", 0.5)
            grown = 0.5**loss.degree * _answer(scaled, "value", 2 * z, 2 * y)
            self.fail(
                np.abs(grown - value) > TOLERANCE * (value + np.abs(grown)),
                "degree is not true: the value is {} at {at}, and not {}, from L(2 z, 2 y)",
                value,
                grown,
            )

    def check_derivatives(self, slope, curvature, unit):
        """Check slopes against differences of values, and curvatures against those of slopes.

        Differences are taken over several shares of the spread of y. The loss may be curved on a
        smaller scale: a curvature is too small only if it is so over all of them, by a factor of 2.
        """
        loss, y = self.loss, self.y
        is_short, rise, most = np.ones(len(y), bool), np.zeros(len(y)), curvature
        for share in (0.3, 1e-3, 1e-5, 1e-7):
            ends = self.z - share * unit / 2, self.z + share * unit / 2
            width = ends[1] - ends[0]
            values, slopes, curvatures = (
                [_answer(loss, method, z, y) for z in ends] for method in METHODS
            )
            steepest = np.maximum(*np.abs(slopes))
            rounding = EPS * (
                1 + np.maximum(*np.abs(values)) + steepest * (np.abs(self.z) + np.abs(y))
            )
            change = np.divide(values[1] - values[0], width, out=np.array(slope), where=width > 0)
            slack = TOLERANCE * steepest + ROUNDINGS * np.divide(
                rounding, width, out=np.full(len(y), np.inf), where=width > 0
            )
            tells = np.abs(change) > slack
            self.fail(
                tells
                & (np.minimum(*np.abs(slopes)) > 0)
                & (np.sign(change) == -np.sign(slopes[0]))
                & (np.sign(slopes[0]) == np.sign(slopes[1])),
                "derivative(z, y) has the wrong sign: it is {} at {at}, where the value changes by "
                "{} a unit of z",
                slope,
                change,
            )
            self.fail(
                slopes[0] > slopes[1] + TOLERANCE * steepest,
                "derivative(z, y) must rise with z, since the loss must be convex: at {at} it "
                "falls from {} to {}",
                *slopes,
            )
            self.fail(
                (change < slopes[0] - slack) | (change > slopes[1] + slack),
                "derivative(z, y) is {} at {at}, where the value changes by {} a unit of z",
                slope,
                change,
            )
            most = np.maximum(np.maximum(*curvatures), curvature)
            noise = ROUNDINGS * EPS * (steepest + most * (np.abs(self.z) + np.abs(y)))
            rise = np.divide(slopes[1] - slopes[0], width, out=np.zeros(len(y)), where=width > 0)
            is_short &= (slopes[1] - slopes[0]) > 2.0 * most * width + noise
        self.fail(
            is_short,
            "curvature(z, y) is {} near {at}, where the derivative rises by {} a unit of z: it "
            "must be the derivative's own derivative, and the derivative must not jump",
            most,
            rise,
        )
