"""The base class of models: how decision values become predictions and probabilities, by a link."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import check_same_device, namespace, namespace_of, to_host
from .._base.checks import check_offset
from .._base.floats import methods_as_ieee
from ..losses.classification import sigmoid, softmax
from ..losses.links import LINKS
from ..losses.ordinal import class_probabilities, most_probable
from ..rows import from_host_if_possible

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from .._base.types import Array, MatrixLike
    from ..losses.links import LinkName


@methods_as_ieee
class BaseModel(ABC):
    """The base class of models, frozen dataclasses that predict from their decision values f. Their
    arrays are read-only.

    A subclass computes f in `_map_decisions`, has `classes` and `intercept`, and may have a `link`.

    classes : None, or ndarray of shape (n_classes,)
        The labels of a classifier, sorted, or classes in order as these; None for a regression.
    intercept : float, or ndarray of shape (n_outputs,)
        The constant of each output.
    link : {"identity", "ascending", "log", "log_hazard", "softmax", "cumulative"}
        How predictions are made of f: a regression predicts f or, with "log", e^f, with "ascending"
        the f of a row in ascending order; for a classifier see `probabilities`.
    """

    classes: np.ndarray | None
    intercept: float | np.ndarray
    link: LinkName = "identity"

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:  # unpickled arrays are writable
        self.__dict__.update(state)
        self.__post_init__()

    @abstractmethod
    def _map_decisions(
        self,
        X: MatrixLike,
        workers: int,
        finish: Callable[[Array], Array],
        offset: ArrayLike | None,
    ) -> Array:
        """Return finish(f + offset) for the decision values f of the rows of X, as an array of the
        same kind as X.

        finish is called for blocks of rows, with f of shape (n_rows,) or (n_rows, n_outputs). It
        returns an array with one entry, or one line, for each of these rows.
        """

    def predict(
        self, X: MatrixLike, workers: int = 1, *, offset: ArrayLike | None = None
    ) -> np.ndarray:
        """Predict class labels, or regression values: the decision values f, with the log link e^f,
        of several quantiles those of each row in ascending order.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.
        offset : array of shape (n_samples,) or (n_samples, n_outputs), or None, default None
            The number that is added to f, such as the log of the exposures, for several real
            targets one for each. None: 0 in all rows, also where the model was fitted with offsets:
            with the log link the rate, for the exposure 1. The limits of a model, `lower` and
            `upper`, hold for predictions with offsets: for counts, not for rates. Not for more than
            two classes without an order.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_outputs) for several targets or quantiles
            In the namespace, on the device or in the partitions of X. Time O(n_samples) times that
            of the terms, which see few inputs each.

        Raises
        ------
        ValueError, TypeError
            X does not fit the model, or offset not the rows.
        """
        finish = self._inverse_link
        if self.classes is not None:
            finish = partial(labels_of_decisions, *self.cut_classes)
        return self._map_decisions(X, workers, finish, offset)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The thresholds that cut f into classes in order; of other models none."""
        return ()

    @property
    def cut_classes(self) -> tuple[np.ndarray, tuple[float, ...]]:
        """(classes, cuts): of a classifier with one f the classes that it predicts, from the least
        f to the largest, and the cuts of f between them; of one with several f all, and no cuts."""
        if not self.thresholds:
            return self.classes, () if np.ndim(self.intercept) else (0.0,)
        cuts, places = most_probable(self.thresholds)
        return self.classes[list(places)], cuts

    @property
    def _inverse_link(self) -> Callable[[Array], Array]:
        """The function that makes predictions of a regression of its f."""
        return partial(predictions, self.link)

    def _read_offset(
        self, offset: ArrayLike | None, X: MatrixLike, n_rows: int
    ) -> list[np.ndarray]:
        """Check the offsets; return them as row vectors to go with f, (n_rows,) or (n_outputs,
        n_rows): one, or none."""
        if offset is None:
            return []
        if self.classes is not None and np.ndim(self.intercept):
            raise ValueError(
                f"offset must be None for more than two classes, got one for {len(self.classes)}"
            )
        check_same_device("offset", offset, X)
        return [check_offset(offset, n_rows, np.size(self.intercept))]


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
