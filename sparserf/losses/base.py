"""The base class of losses L(z, y), and functions for losses in any array namespace."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from .._base.arrays import namespace

if TYPE_CHECKING:
    from .._base.types import Array
    from .links import LinkName

    # What a parameter of a loss may be in a file.
    Parameter: TypeAlias = bool | int | float | str | tuple[float, ...] | tuple[str, ...] | None


class Loss:
    r"""A convex, differentiable loss L(z, y) of the predictor z for the target y; derive from it
    for one of your own.

    Write `value`, `derivative` and `curvature`. They are called with float64 arrays z and y of one
    shape and return arrays of that shape, all finite: L, which is at least 0, and its first and
    second derivative in z (at a corner of the derivative, the second one on either side). They
    compute elementwise, with functions of `numpy`, or of the namespace of z where X is on a device.
    `conjugate` may be left out: it is then found by a search, which takes some hundred times as
    long. A model is saved with the name of the loss alone, and needs no more. `check` says whether
    all that is right, and each fit asks it.

    Attributes
    ----------
    name : str
        The name in `SparseModel.loss`; by default the name of the class in lower case.
    link : {"identity", "log"}, default "identity"
        `predict` returns z, or e^z. "softmax" is for `Multinomial` alone: probabilities are in
        proportion to e^z. "cumulative" is for `Ordinal`: thresholds cut z into classes.
        "log_hazard" is for `Cox`: z is the log of a hazard ratio. "ascending" is for several levels
        of `Quantile`: `predict` returns the outputs of each row in ascending order.
    smoothness : float, default infinity
        An upper bound of the curvature. `drp` needs one.
    degree : {0, 1, 2}, default 0
        The degree with which ``L(c z, c y) = c^degree scaled(c)(z, y)``: y is divided by a power of
        two while it is fitted. 0: y is not scaled.
    is_quadratic, is_piecewise_quadratic : bool
        Whether the curvature is the same everywhere; whether it is one of two numbers.
    is_unimodal, is_self_concordant : bool
        Whether the curvature first rises in z, then falls; whether the curvature bounds the third
        derivative.
    is_shift_invariant : bool
        Whether L(z + c, y + c) = L(z, y): the mean or the median of y is then subtracted while it
        is fitted with an intercept.
    is_classifier, is_smoothed : bool
        Whether y is -1 or +1 (see `is_ordered`); whether the loss is a smoothed version of one with
        a corner.
    has_times : bool
        Whether y are times until events, some of them censored; `Cox` alone.
    is_joint : bool
        Whether the loss of a row depends on the margins of all classes together; `Multinomial`
        alone.
    is_ordered : bool
        Whether y is the place of the class, from 0, of three or more classes in order; `Ordinal`
        alone.
    n_outputs : int, default 1
        The number of outputs that a model has for one y, more than 1 for several levels of
        `Quantile` alone. Then the first axis of z and y is that of the outputs.
    dual_growth : float
        The least c with L*(a) - L*(u) - z (a - u) <= c (a - u)^2 / 2 L''(z) for u = L'(z), wherever
        L*(a) is finite.
    slopes : pair of float, or of arrays (n_outputs,)
        The interval of slopes a on which L*(a) is finite; for a classifier that of a y.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> class LogCosh(srf.losses.Loss):
    ...     smoothness = 1.0
    ...
    ...     def value(self, z, y):
    ...         return np.logaddexp(z - y, y - z) - np.log(2)
    ...
    ...     def derivative(self, z, y):
    ...         return np.tanh(z - y)
    ...
    ...     def curvature(self, z, y):
    ...         return 1 - np.tanh(z - y) ** 2
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> y = np.sin(2 * X.ravel())
    >>> y[::30] = 100  # outliers
    >>> model = srf.sparse_rf(
    ...     X,
    ...     y,
    ...     loss=LogCosh(),
    ...     features="gaussian",
    ...     gamma=1.0,
    ...     alpha=0.001,
    ...     n_components=500,
    ...     rng=0,
    ... )
    >>> (
    ...     model.loss,
    ...     model.info.converged,
    ...     bool(abs(model.predict(X) - np.sin(2 * X.ravel())).max() < 0.2),
    ... )
    ('logcosh', True, True)
    """

    name: str = "loss"
    link: LinkName = "identity"
    smoothness: float = np.inf
    degree: Literal[0, 1, 2] = 0
    is_quadratic: bool = False
    is_piecewise_quadratic: bool = False
    is_unimodal: bool = False
    is_self_concordant: bool = False
    is_shift_invariant: bool = False
    is_classifier: bool = False
    is_smoothed: bool = False
    is_joint: bool = False
    has_times: bool = False
    is_ordered: bool = False
    n_outputs: int = 1
    dual_growth: float = np.inf
    slopes: tuple[float, float] | tuple[np.ndarray, np.ndarray] = (-np.inf, np.inf)
    # A step of the intercept smaller than this, in scaled units of z, is rounding.
    least_step: float = 0.0
    # A best intercept is at most this many times the largest |y|, and some hundreds, away from all
    # values of -f.
    intercept_reach: float = 1.0

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        if "name" not in vars(cls):
            cls.name = cls.__name__.lower()

    def value(self, z: Array, y: Array) -> Array:
        """Return L(z, y)."""
        raise NotImplementedError(f"{type(self).__name__} must have value(z, y)")

    def derivative(self, z: Array, y: Array) -> Array:
        """Return the first derivative of L in z."""
        raise NotImplementedError(f"{type(self).__name__} must have derivative(z, y)")

    def curvature(self, z: Array, y: Array) -> Array:
        """Return the second derivative of L in z, at least 0."""
        raise NotImplementedError(f"{type(self).__name__} must have curvature(z, y)")

    def conjugate(self, u: Array, y: Array) -> Array:
        """Return the conjugate L*(u) = max over z of u z - L(z, y) at slopes u.

        By default the z with L'(z) = u is found by bisection: an interval is doubled until it
        contains z, at most 64 times, and then halved 64 times.
        """
        xp = namespace(u)
        z, step = (
            (y, xp.ones_like(u) + xp.abs(y))
            if self.link == "identity"
            else (xp.zeros_like(u), xp.ones_like(u))
        )
        low, high = z - step, z + step
        for _ in range(64):
            is_above, is_below = self.derivative(low, y) > u, self.derivative(high, y) < u
            if not (xp.any(is_above) or xp.any(is_below)):
                break
            step = 2 * step
            low = xp.where(is_above, low - step, low)
            high = xp.where(is_below, high + step, high)
        for _ in range(64):
            z = (low + high) / 2
            is_below = self.derivative(z, y) < u
            low, high = xp.where(is_below, z, low), xp.where(is_below, high, z)
        return u * z - self.value(z, y)

    def of_output(self, k: int) -> Loss:
        """Return the loss of output k alone."""
        return self

    def of_target(self, y: np.ndarray, weight: np.ndarray) -> Loss:
        """Return the loss with parameters that are None chosen for the target.

        y : (n_rows,) or (n_outputs, n_rows)

        Raises ValueError if y is outside the range of targets of this loss.
        """
        return self

    @property
    def has_free_parameters(self) -> bool:
        """Whether there are parameters that `fitted_to` fits together with f, and that the user has
        not given."""
        return False

    def fitted_to(self, z: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Loss:
        """Return the loss with the parameters that are best for decision values z (thresholds of
        ordered classes, a baseline hazard); self where it has none.

        Such parameters take up any constant of f: where a model has an intercept, its f has the
        mean 0 over the rows.
        """
        return self

    def mean_of_parameters(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the part of the mean loss that `fitted_to` minimises which is not in `value`: it
        depends on the free parameters, and on no z."""
        return 0.0

    @property
    def has_events(self) -> bool:
        """Whether y counts events, or sums up amounts, at a rate in proportion to e^z."""
        return self.link == "log"

    def scaled(self, unit: float) -> Loss:
        """Return the loss for z / unit and y / unit, with its parameters divided by the unit."""
        return self

    def penalty_unit(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the factor by which a ridge penalty alpha is multiplied, so that the same alpha
        gives the same model in all units of y: the size of the curvatures of rows.

        For a loss of degree 1 it is 1 / the robust spread of y, for the losses of amounts a power
        of their mean, and for all others 1. For several outputs it is the smallest of theirs.
        """
        if self.degree == 1:
            return min(1.0 / robust_spread(each, weight) for each in np.atleast_2d(y))
        return 1.0

    def doubt(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the weight, in [0, 1), of a pseudo-row in the mean loss of held-out rows.

        The target of the pseudo-row is unknown (see `of_unknown_row`). It keeps a predicted
        probability of 0 or 1, or a rate of 0, from looking perfect on few rows. 0: there is none.
        """
        return 0.0

    def of_unknown_row(self, z: Array, mean: float) -> Array:
        """Return the loss of z of the pseudo-row (see `doubt`); the mean of all targets replaces
        its unknown target."""
        raise NotImplementedError(f"{type(self).__name__} has no doubt")

    def slope_of_unknown_row(self, z: Array, mean: float) -> Array:
        """Return the derivative of `of_unknown_row` in z, added up over the outputs."""
        raise NotImplementedError(f"{type(self).__name__} has no doubt")

    def size(self, mean: float) -> float:
        """Return the size of the terms of a row's loss that cancel where the loss is 0, from the
        mean of y; 0 if none do. The rounding error of a small mean loss is in proportion to it."""
        return 0.0

    def bounded_slope(self, u: Array, y: Array) -> Array:
        """Return the slope that lies in the interval `slopes` where L*(u) is finite: u, or u y for
        labels of two classes."""
        return y * u if self.is_classifier else u

    def shift_size(self, y: Array) -> Array | float:
        """Return the size of the offset, if any, to whose sum with z rounding is relative."""
        return 0.0

    def intercept_step(self, slope: float, curvature: float) -> float:
        """Return Newton's step in the intercept, from the slope and curvature of the mean loss."""
        return -slope / max(curvature, 1e-300)

    @property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters of the loss in a model's file, {name: value}: the fields of a dataclass
        that are plain values, or tuples of numbers or of strings."""
        values = asdict(self) if is_dataclass(self) else {}
        return {name: value for name, value in values.items() if is_parameter(value)}


def is_parameter(value: Any) -> bool:
    """Return whether a value may be a parameter of a loss in a file."""
    if isinstance(value, tuple):
        return any(all(type(each) in kinds for each in value) for kinds in ((int, float), (str,)))
    return value is None or isinstance(value, (bool, int, float, str))


def positive_part(a: Array) -> Array:
    """Return max(a, 0)."""
    return namespace(a).clip(a, 0.0, None)


def clip_to_unit(a: Array) -> Array:
    """Return a clipped to [0, 1].

    Rounding may take an argument of a conjugate out of its domain.
    """
    return namespace(a).clip(a, 0.0, 1.0)


def where(condition: Array, value: float, like: Array) -> Array:
    """Return an array like `like`, with the value where the condition holds, else 0."""
    return namespace(like).astype(condition, like.dtype) * value


def xlogx(a: Array) -> Array:
    """Return a log a, and 0 where a is 0."""
    xp = namespace(a)
    return a * xp.log(xp.where(a > 0, a, xp.ones_like(a)))


def robust_spread(y: np.ndarray, weight: np.ndarray) -> float:
    """Return the robust standard deviation of a target, or of several, each around its median.

    It is 1.4826 times the median absolute deviation, as for a normal distribution; the standard
    deviation where that is 0; and 1 for a constant.
    """
    y = np.atleast_2d(y)
    unit = float(np.abs(y).max()) or 1.0
    y = y / unit
    away = np.concatenate([np.abs(each - weighted_median(each, weight)) for each in y])
    found = 1.4826 * weighted_median(away, np.tile(weight, len(y)))
    if found == 0:
        found = np.sqrt(
            np.mean((y - (y @ weight / weight.sum())[:, None]) ** 2 @ weight / weight.sum())
        )
    return float(unit * found) or 1.0


def weighted_median(values: np.ndarray, weight: np.ndarray) -> float:
    """Return the least value such that half of the weight lies at or below it."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    return values[order][np.searchsorted(total, (0.5 - 1e-12) * total[-1])]
