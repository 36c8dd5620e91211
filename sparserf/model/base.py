"""The base class of models: it predicts from decision values, through a link, and its arrays cannot be written to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._base.arrays import namespace, namespace_of, to_host
from ..losses.classification import sigmoid, softmax
from ..rows import from_host_if_possible

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Array, MatrixLike


class BaseModel(ABC):
    """A frozen dataclass that predicts from its decision values f.

    A subclass has `classes`, None or an array of labels, may have a `link`, and computes f in `_map_decisions`.
    """

    classes: np.ndarray | None
    link: Literal["identity", "log", "softmax"] = "identity"

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:  # unpickled arrays are writable
        self.__dict__.update(state)
        self.__post_init__()

    @abstractmethod
    def _map_decisions(self, X: MatrixLike, workers: int, finish: Callable[[Array], Array]) -> Array:
        """Return finish(f) for the decision values f of the rows of X, in the kind of array that X is.

        f is of shape (n_rows,), or (n_rows, n_outputs), for a block of rows at a time, and finish(f) has one entry or line for
        each of these rows.
        """

    def predict(self, X: MatrixLike, workers: int = 1) -> np.ndarray:
        """Predict class labels, or regression values: the decision values f, with the log link e^f.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_outputs) for several real targets
            In the namespace, on the device or in the partitions of X. Time O(n_samples) times that of the terms, which see
            few inputs each.
        """
        finish = INVERSE_LINKS[self.link] if self.classes is None else partial(labels_of_decisions, self.classes)
        return self._map_decisions(X, workers, finish)


def identity(f: Array) -> Array:
    return f


def exponential(f: Array) -> Array:
    return namespace(f).exp(f)


# What a regression predicts from f, by its link.
INVERSE_LINKS = {"identity": identity, "log": exponential}
# The links that a classifier may have.
CLASSIFIER_LINKS = ("identity", "softmax")
# Decision values beyond this size count as of this size in a softmax: differences of infinite ones are NaN.
LARGEST_DECISION = 1e30


def labels_of_decisions(classes: np.ndarray, f: Array) -> Array:
    """Return the label of each row of decision values, in their namespace where that has labels of this dtype."""
    xp, several = namespace(f), f.ndim == 2
    index = xp.argmax(f, axis=1) if several else xp.astype(f > 0, xp.int64)
    if xp is np:
        return classes[index]
    there = from_host_if_possible(classes, *namespace_of(f))
    return classes[to_host(index)] if there is classes else xp.take(there, index)


def probabilities(link: str, f: Array) -> Array:
    """Return the probability of each class: with the link "softmax" the softmax of f, else sigmoids, scaled to sum to 1."""
    if link == "softmax" and f.ndim == 2:
        return softmax(namespace(f).clip(f, -LARGEST_DECISION, LARGEST_DECISION).T).T
    xp, p = namespace(f), sigmoid(f)
    if p.ndim == 1:
        p = p[:, None]
        return xp.concat([1 - p, p], axis=1)
    total = reduce(xp.add, (p[:, k] for k in range(p.shape[1])))[:, None]  # in one order, however many rows there are
    shares = p / xp.where(total > 0, total, xp.ones_like(total))
    return xp.where(total > 0, shares, xp.full_like(p, 1 / p.shape[1]))
