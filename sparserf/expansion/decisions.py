"""How decision values become predictions, labels and probabilities, by a link."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import namespace, namespace_of, to_host
from ..losses.classification import sigmoid, softmax
from ..losses.links import LINKS
from ..losses.ordinal import class_probabilities
from ..rows import from_host_if_possible

if TYPE_CHECKING:
    from .._base.types import Array


def identity(f: Array) -> Array:
    """Return f itself."""
    return f


def predictions(link: str, f: Array) -> Array:
    """Return what a regression predicts from f, (n_rows,) or (n_rows, n_outputs)."""
    return LINKS[link].predict(f)


# The links that a classifier may have.
CLASSIFIER_LINKS = ("identity", "softmax", "cumulative")
# The largest size of a decision value in a softmax; larger ones are clipped, since differences of
# infinite ones are NaN.
LARGEST_DECISION = 1e30


def within(lower: float, upper: float, values: Array) -> Array:
    """Return values, with those beyond the limits set to them: to the nearest number of the dtype
    that is within."""
    xp = namespace(values)
    dtype = np.float32 if values.dtype == xp.float32 else np.float64
    return xp.clip(values, *rounded_inwards(lower, upper, dtype))


def rounded_inwards(lower: float, upper: float, dtype: type[np.floating]) -> tuple[float, float]:
    """Return the least number of a dtype that is at least lower, and the largest that is at most
    upper."""
    low, high = dtype(lower), dtype(upper)
    low = np.nextafter(low, dtype(np.inf)) if float(low) < lower else low
    high = np.nextafter(high, dtype(-np.inf)) if float(high) > upper else high
    return float(low), float(high)


def predictions_within(link: str, lower: float, upper: float, f: Array) -> Array:
    """Return predictions within limits: also where they are rounded to the dtype of f."""
    return within(lower, upper, predictions(link, f))


def labels_of_decisions(classes: np.ndarray, cuts: tuple[float, ...], f: Array) -> Array:
    """Return the label of each row of decision values, in the namespace of f if it has labels of
    this dtype; classes, cuts : as `cut_classes` of the model."""
    xp = namespace(f)
    if f.ndim == 2:
        index = xp.argmax(f, axis=1)
    else:  # as many as there are cuts below f
        index = reduce(xp.add, (xp.astype(f > cut, xp.int64) for cut in cuts))
    if xp is np:
        return classes[index]
    there = from_host_if_possible(classes, *namespace_of(f))
    return classes[to_host(index)] if there is classes else xp.take(there, index)


def probabilities(link: str, thresholds: tuple[float, ...], f: Array) -> Array:
    """Return the probability of each class: with the link "softmax" the softmax of f, with
    "cumulative" those between thresholds, else the sigmoids of f scaled to sum to 1."""
    if link == "cumulative":
        return class_probabilities(thresholds, f)
    if link == "softmax" and f.ndim == 2:
        return softmax(namespace(f).clip(f, -LARGEST_DECISION, LARGEST_DECISION).T).T
    xp, p = namespace(f), sigmoid(f)
    if p.ndim == 1:
        p = p[:, None]
        return xp.concat([1 - p, p], axis=1)
    # always in the order of the classes
    total = reduce(xp.add, (p[:, k] for k in range(p.shape[1])))[:, None]
    shares = p / xp.where(total > 0, total, xp.ones_like(total))
    return xp.where(total > 0, shares, xp.full_like(p, 1 / p.shape[1]))
