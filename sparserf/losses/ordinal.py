"""The loss of classes in order: one decision value, and thresholds that cut it into classes.

The probability of the classes up to k is sigmoid(theta_k - z). That of class k, between theta_(k-1)
and theta_k, is

    sigmoid(theta_k - z) - sigmoid(theta_(k-1) - z)
        = (1 - exp(theta_(k-1) - theta_k)) sigmoid(theta_k - z) sigmoid(z - theta_(k-1)),

a product, in which nothing cancels. Its ratio for two classes rises with z: so the most probable
class does, too, and changes at cuts of z (`most_probable`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .._base.arrays import as_like, namespace
from .._base.checks import check_real
from .base import Loss, clip_to_unit, positive_part, xlogx
from .classification import Logistic, sigmoid

if TYPE_CHECKING:
    from .._base.types import Array
    from .links import LinkName

# Where thresholds are fitted, each class counts as at least this share of the rows, so that
# neighbouring thresholds differ by more than their rounding.
LEAST_SHARE = 1e-9
# Newton's method for thresholds takes at most MOST_STEPS steps, and ends before one whose predicted
# decrease of the mean loss is no more than ROUNDING.
MOST_STEPS, ROUNDING = 100, 1e-14


@dataclass(frozen=True)
class Ordinal(Loss):
    r"""Loss of ordered classes, the cumulative logit (proportional odds): for classes 0, ..., K - 1
    in order, P(y <= k) = sigmoid(theta_k - z).

    With a = theta_k - z and b = theta_(k-1) - z for the class k of the row, infinite beyond the
    first and the last one:

    ==========  =================================================================
    loss        -log(sigmoid(a) - sigmoid(b))
    derivative  1 - sigmoid(a) - sigmoid(b), in (-1, 1)
    curvature   sigmoid'(a) + sigmoid'(b), at most 1/2
    conjugate   u z - loss at the z of slope u, the root of a quadratic in e^z
    ==========  =================================================================

    A model has one decision value f, which is larger where higher classes are more probable, and
    the thresholds. A constant that is added to f and all thresholds changes nothing: where there is
    an intercept, f has the mean 0 over the training rows. `predict` returns the most probable
    class, as for other classifiers. The median class, the number of thresholds below f, has the
    least expected distance in classes. Of two classes this is the logistic loss.

    Parameters
    ----------
    thresholds : sequence of float, optional
        K - 1 numbers in ascending order, of at least three classes. None: fitted together with f.

    References
    ----------
    P. McCullagh, Regression models for ordinal data, J. R. Stat. Soc. B 42, 1980.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (1000, 2))
    >>> f = 3 * np.sin(X[:, 0]) + X[:, 1]
    >>> stars = 1 + np.digitize(f + rng.logistic(size=1000), [-2, 0, 3])
    >>> model = srf.sparse_rf(X, stars, loss="ordinal", rng=0)
    >>> model.classes.tolist(), model.predict_proba(X[:2]).shape
    ([1, 2, 3, 4], (2, 4))
    >>> bool(abs(np.diff(model.loss_parameters["thresholds"]) - [2, 3]).max() < 0.5)
    True
    """

    thresholds: Sequence[float] | None = None

    name: ClassVar[str] = "ordinal"
    link: ClassVar[LinkName] = "cumulative"
    smoothness: ClassVar[float] = 0.5
    least_step: ClassVar[float] = 4e-15
    is_classifier: ClassVar[bool] = True
    is_ordered: ClassVar[bool] = True
    is_self_concordant: ClassVar[bool] = True
    slopes: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def __post_init__(self) -> None:
        if self.thresholds is not None:
            object.__setattr__(self, "thresholds", _checked(self.thresholds))

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.thresholds) + 1

    @property
    def has_free_parameters(self) -> bool:
        return self.thresholds is None

    @property
    def intercept_reach(self) -> float:
        return 1.0 if self.thresholds is None else max(1.0, *map(abs, self.thresholds))

    def of_target(self, y: np.ndarray, weight: np.ndarray) -> Loss:
        """Return the loss with the thresholds of the constant, the log odds of the classes up to
        each; of two classes, whose y is -1 or 1, the logistic loss."""
        if y.min() < 0:
            if self.thresholds is not None:
                raise ValueError(
                    "thresholds must be None for two classes, which have the logistic loss, got "
                    f"{self.thresholds}"
                )
            return Logistic()
        share = np.bincount(y.astype(np.intp), weight)
        if self.thresholds is None:
            share = np.maximum(share / share.sum(), LEAST_SHARE)
            up_to, above = np.cumsum(share)[:-1], np.cumsum(share[::-1])[-2::-1]
            return replace(self, thresholds=tuple(np.log(up_to / above).tolist()))
        if len(share) != self.n_classes:
            raise ValueError(
                f"thresholds must be one less than the classes, {len(share) - 1}, got "
                f"{len(self.thresholds)}"
            )
        return self

    def fitted_to(self, z: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Ordinal:
        """Return the loss with the thresholds that are best for decision values z, by Newton's
        method: their mean loss is convex, and infinite where two of them meet."""
        thresholds = _Thresholds(z, y.astype(np.intp), weight, self.n_classes)
        return replace(self, thresholds=tuple(thresholds.best(np.array(self.thresholds)).tolist()))

    def value(self, z: Array, y: Array) -> Array:
        lower, upper = self._ends(z, y)
        return _loss(z, lower, upper)

    def derivative(self, z: Array, y: Array) -> Array:
        lower, upper = self._ends(z, y)
        return sigmoid(z - upper) - sigmoid(lower - z)

    def curvature(self, z: Array, y: Array) -> Array:
        lower, upper = self._ends(z, y)
        p, q = sigmoid(z - upper), sigmoid(lower - z)
        return p * (1.0 - p) + q * (1.0 - q)

    def conjugate(self, u: Array, y: Array) -> Array:
        """Return the conjugate; the z of slope u is (theta_(k-1) + theta_k) / 2 + artanh u +
        arsinh(u cosh(g / 2) / sqrt(1 - u^2)), for thresholds at the distance g."""
        # The cosh of half a larger distance overflows. Where thresholds are farther apart, z moves
        # on by the excess of their half distance.
        farthest, nearly_one = 600.0, 1.0 - 2.0**-53

        xp = namespace(u)
        lower, upper = self._ends(u, y)
        is_first, is_last = y == 0, y == self.n_classes - 1
        is_end = is_first | is_last
        a = clip_to_unit(xp.where(is_first, u, -u))
        of_end = u * xp.where(is_first, upper, xp.where(is_last, lower, xp.zeros_like(u)))
        of_end = of_end + xlogx(a) + xlogx(1.0 - a)

        lower = xp.where(is_end, xp.zeros_like(u), lower)
        upper = xp.where(is_end, xp.ones_like(u), upper)
        u = xp.clip(u, -nearly_one, nearly_one)
        half = xp.clip(upper - lower, None, farthest) / 2
        z = xp.atanh(u) + xp.asinh(u * xp.cosh(half) / xp.sqrt((1.0 - u) * (1.0 + u)))
        z = z + xp.sign(u) * ((upper - lower) / 2 - half) + (lower + upper) / 2
        return xp.where(is_end, of_end, u * z - _loss(z, lower, upper))

    def bounded_slope(self, u: Array, y: Array) -> Array:
        """Return u; for the first and the last class mapped to the interval [-1, 1], as for
        others."""
        xp = namespace(u)
        of_ends = xp.where(y == self.n_classes - 1, 2.0 * u + 1.0, u)
        return xp.where(y == 0, 2.0 * u - 1.0, of_ends)

    def doubt(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the `doubt` of the logistic loss: the pseudo-row counts as one row."""
        return Logistic().doubt(y, weight)

    def of_unknown_row(self, z: Array, mean: float) -> Array:
        """Return the mean of the losses for all classes."""
        return self._mean_over_classes(self.value, z)

    def slope_of_unknown_row(self, z: Array, mean: float) -> Array:
        return self._mean_over_classes(self.derivative, z)

    def _mean_over_classes(self, of, z):
        """Return the mean over all classes k of a function of(z, k)."""
        ones = namespace(z).ones_like(z)
        return sum(of(z, k * ones) for k in range(self.n_classes)) / self.n_classes

    def _ends(self, z, y):
        """Return the thresholds below and above the class of each row, infinite beyond the first
        and the last class."""
        xp = namespace(z)
        padded = as_like(np.array([-np.inf, *self.thresholds, np.inf]), z)
        k = xp.astype(xp.reshape(y, (-1,)), xp.int64)
        return tuple(xp.reshape(xp.take(padded, k + more), y.shape) for more in (0, 1))


def _checked(thresholds):
    """Return thresholds as a tuple of floats."""
    given = thresholds.tolist() if hasattr(thresholds, "tolist") else thresholds
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise TypeError(f"thresholds must be numbers in ascending order, got {thresholds!r}")
    checked = tuple(check_real("thresholds", each, -np.inf) for each in given)
    for one, other in pairwise(checked):
        if not one < other:
            raise ValueError(f"thresholds must be in ascending order, got {other} after {one}")
    return checked


def _softplus(t):
    """Return log(1 + e^t)."""
    xp = namespace(t)
    return xp.log1p(xp.exp(-xp.abs(t))) + positive_part(t)


def _loss(z, lower, upper):
    """Return minus the log probability of the class between two thresholds."""
    xp = namespace(z)
    return _softplus(z - upper) + _softplus(lower - z) - xp.log(-xp.expm1(lower - upper))


class _Thresholds:
    """The mean loss of decision values as a function of the thresholds.

    k : the class of each row
    """

    def __init__(self, z: np.ndarray, k: np.ndarray, weight: np.ndarray, n_classes: int):
        self._z, self._k, self._weight = z, k, weight / weight.sum()
        self._n_classes = n_classes
        self._shares = np.maximum(self._of_classes(1.0), LEAST_SHARE)[1:-1]

    def _of_classes(self, values):
        """Return, for each class, the weighted sum of values over its rows."""
        return np.bincount(self._k, self._weight * values, self._n_classes)

    def best(self, theta: np.ndarray) -> np.ndarray:
        """Return the thresholds at which the mean loss is least."""
        from scipy.linalg import solveh_banded  # which a model that predicts does not need

        value, gradient, hessian = self._at(theta)
        longest = 1.0 + float(np.ptp(self._z))  # beyond the rows the loss is a line
        for _ in range(MOST_STEPS):
            step = -solveh_banded(hessian, gradient)
            if -gradient @ step <= ROUNDING:
                break
            step *= min(1.0, longest / np.abs(step).max())
            gaps, change = np.diff(theta), np.diff(step)
            t = min(1.0, 0.9 / (-change / gaps).max(initial=0.9))  # gaps keep a tenth
            while t > ROUNDING and self._at(theta + t * step)[0] > value + 0.1 * t * (
                gradient @ step
            ):
                t /= 2
            new = self._at(theta + t * step)
            if not new[0] < value:
                break
            theta, (value, gradient, hessian) = theta + t * step, new
        return theta

    def _at(self, theta):
        """Return the mean loss, its gradient, and its Hessian, tridiagonal: the entries above the
        diagonal, then the diagonal."""
        padded = np.concatenate([[-np.inf], theta, [np.inf]])
        lower, upper = padded[self._k] - self._z, self._z - padded[self._k + 1]
        gaps = np.diff(theta)
        value = self._of_classes(_softplus(upper) + _softplus(lower)).sum()
        value -= self._shares @ np.log(-np.expm1(-gaps))
        p, q, odds = sigmoid(upper), sigmoid(lower), np.exp(-gaps) / -np.expm1(-gaps)
        pull, bend = self._shares * odds, self._shares * odds * (1 + odds)
        gradient = self._of_classes(q)[1:] - self._of_classes(p)[:-1]
        gradient[1:] -= pull
        gradient[:-1] += pull
        diagonal = self._of_classes(p * (1 - p))[:-1] + self._of_classes(q * (1 - q))[1:]
        diagonal[1:] += bend
        diagonal[:-1] += bend
        diagonal += np.finfo(np.float64).eps  # where all rows are far from all thresholds
        return value, gradient, np.stack([np.concatenate([[0.0], -bend]), diagonal])


def class_probabilities(thresholds: Sequence[float], f: Array) -> Array:
    """Return the probability of each class, (n_rows, n_classes), for decision values (n_rows,)."""
    xp, f = namespace(f), f[:, None]
    lower, upper, weights = (
        xp.astype(as_like(np.array(each), f), f.dtype)
        for each in ([-np.inf, *thresholds], [*thresholds, np.inf], probability_weights(thresholds))
    )
    return weights * sigmoid(upper - f) * sigmoid(f - lower)


def probability_weights(thresholds: Sequence[float]) -> list[float]:
    """Return for each class the factor of the product of two sigmoids that is its probability."""
    middle = -np.expm1(-np.diff(thresholds))
    return [1.0, *middle.tolist(), 1.0]


@lru_cache(maxsize=128)
def most_probable(thresholds: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return (cuts, classes): the most probable class is the first of `classes` where f is at most
    the first cut, the second up to the second cut, and so on. A class may be most probable nowhere.

    Classes are added in order. A class that overtakes the last one before the place where that one
    overtakes its predecessor removes it from the list.
    """
    starts, classes = [-np.inf], [0]
    for k in range(1, len(thresholds) + 1):
        while (start := _overtakes(thresholds, classes[-1], k)) <= starts[-1]:
            starts.pop()
            classes.pop()
        if start < np.inf:
            starts.append(start)
            classes.append(k)
    return tuple(starts[1:]), tuple(classes)


def _overtakes(thresholds, j, k):
    """Return the f from which on class k > j is more probable than j, by bisection; infinite where
    it is so everywhere or nowhere."""
    far = 750.0  # so far from all thresholds, probabilities of classes underflow

    def is_ahead(f):
        of_j, of_k = (_loss(np.float64(f), padded[i], padded[i + 1]) for i in (j, k))
        return of_k < of_j

    padded = np.array([-np.inf, *thresholds, np.inf])
    low, high = thresholds[0] - far, thresholds[-1] + far
    if is_ahead(low):
        return -np.inf
    if not is_ahead(high):
        return np.inf
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if is_ahead(middle) else (middle, high)
    return low
