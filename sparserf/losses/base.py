"""What a loss is asked for: the class that all losses, and those of the user, are of."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._base.arrays import namespace

if TYPE_CHECKING:
    from .._base.types import Array

# The conjugate of a loss that gives none: how often the reach of the search for its z doubles, and how often it is halved.
DOUBLINGS, HALVINGS = 64, 64


class Loss:
    r"""A convex, differentiable loss L(z, y) of the predictor z for the target y; derive from it for one of your own.

    `value`, `derivative` and `curvature` are called with arrays z and y of one shape, float64, and return such: L, at least 0,
    and its derivatives in z (of a derivative with corners, the second on either side), all finite. They compute elementwise,
    with functions of `numpy`, or of the namespace of z where X is on a device. `conjugate` may be left out: it is then found by
    a search, which takes some hundred times as long. A model is saved with the name of the loss alone, and needs no more.

    Attributes
    ----------
    name : str
        What `SparseModel.loss` says; by default that of the class, in small letters.
    link : {"identity", "log"}, default "identity"
        `predict` returns z, or e^z. "softmax", of the house's multinomial loss: probabilities are shares of e^z.
    smoothness : float, default infinity
        A bound of the curvature. `drp` needs one.
    degree : {0, 1, 2}, default 0
        Where ``L(c z, c y) = c^degree scaled(c)(z, y)``, y is divided by a power of two while it is fitted; 0: it is not.
    is_quadratic, is_piecewise_quadratic : bool
        Whether the curvature is the same everywhere, or one of two numbers.
    is_unimodal, is_self_concordant : bool
        Whether the curvature rises in z, then falls; whether it bounds the third derivative.
    is_shift_invariant : bool
        Whether L(z + c, y + c) = L(z, y): y is then less its mean, or its median, while it is fitted with an intercept.
    is_classifier, is_smoothed : bool
        Whether y is -1 or +1; whether there is a corner but for a smoothing.
    is_joint : bool
        Whether the margins of all classes count together; the house's multinomial loss alone.
    dual_growth : float
        The least c with L*(a) - L*(u) - z (a - u) <= c (a - u)^2 / 2 L''(z) for u = L'(z), wherever L*(a) is finite.
    slopes : pair of float
        Where it is: for a from the first to the second, times y for a classifier.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> class LogCosh(srf.losses.Loss):
    ...     smoothness = 1.0
    ...     def value(self, z, y):
    ...         return np.logaddexp(z - y, y - z) - np.log(2)
    ...     def derivative(self, z, y):
    ...         return np.tanh(z - y)
    ...     def curvature(self, z, y):
    ...         return 1 - np.tanh(z - y) ** 2
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> y = np.sin(2 * X.ravel())
    >>> y[::30] = 100  # outliers
    >>> model = srf.sparse_rf(X, y, loss=LogCosh(), features="gaussian", gamma=1.0, alpha=0.001, n_components=500, rng=0)
    >>> model.loss, model.info.converged, bool(abs(model.predict(X) - np.sin(2 * X.ravel())).max() < 0.2)
    ('logcosh', True, True)
    """

    name: str = "loss"
    link: Literal["identity", "log", "softmax"] = "identity"
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
    dual_growth: float = np.inf
    slopes: tuple[float, float] = (-np.inf, np.inf)
    least_step: float = 0.0  # in z, scaled: of the intercept a smaller one is rounding

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        if "name" not in vars(cls):
            cls.name = cls.__name__.lower()

    def value(self, z: Array, y: Array) -> Array:
        """L(z, y)."""
        raise NotImplementedError(f"{type(self).__name__} must have value(z, y)")

    def derivative(self, z: Array, y: Array) -> Array:
        """Of L in z."""
        raise NotImplementedError(f"{type(self).__name__} must have derivative(z, y)")

    def curvature(self, z: Array, y: Array) -> Array:
        """Second derivative of L in z, at least 0."""
        raise NotImplementedError(f"{type(self).__name__} must have curvature(z, y)")

    def conjugate(self, u: Array, y: Array) -> Array:
        """L*(u) = max over z of u z - L(z, y), of slopes u. Here by a search for the z with L'(z) = u."""
        xp = namespace(u)
        z, step = (y, xp.ones_like(u) + xp.abs(y)) if self.link == "identity" else (xp.zeros_like(u), xp.ones_like(u))
        low, high = z - step, z + step
        for _ in range(DOUBLINGS):
            short_low, short_high = self.derivative(low, y) > u, self.derivative(high, y) < u
            if not (xp.any(short_low) or xp.any(short_high)):
                break
            step = 2 * step
            low, high = xp.where(short_low, low - step, low), xp.where(short_high, high + step, high)
        for _ in range(HALVINGS):
            z = (low + high) / 2
            is_below = self.derivative(z, y) < u
            low, high = xp.where(is_below, z, low), xp.where(is_below, high, z)
        return u * z - self.value(z, y)

    def of_target(self, y: np.ndarray, weight: np.ndarray) -> Loss:
        """This loss for a target, (n_rows,) or (n_outputs, n_rows): with parameters chosen that are None.

        ValueError where y is none that the loss is for.
        """
        return self

    def scaled(self, unit: float) -> Loss:
        """The loss in units of z and y."""
        return self

    def doubt(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the share that a row of which nothing is known has beside held-out rows of these targets; 0: none."""
        return 0.0

    def of_unknown_row(self, z: Array, mean: float) -> Array:
        """Return the loss of z for a row of which only the mean of all targets is known."""
        raise NotImplementedError(f"{type(self).__name__} has no doubt")

    def size(self, mean: float) -> float:
        """Return the size of the numbers that cancel where a target of that mean is met exactly; 0 where none need to."""
        return 0.0

    def intercept_step(self, slope: float, curvature: float) -> float:
        """From where the mean loss has that slope and curvature in the intercept, to its best: of Newton's method."""
        return -slope / max(curvature, 1e-300)

    @property
    def parameters(self) -> dict[str, bool | int | float | str | None]:
        """{name: value}, of a dataclass, of what a file can hold."""
        values = asdict(self) if is_dataclass(self) else {}
        return {name: value for name, value in values.items() if value is None or isinstance(value, (bool, int, float, str))}
