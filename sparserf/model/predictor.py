"""What models share: arrays that cannot be written to, and predictions of what they make of each row."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._base.arrays import namespace, namespace_of, to_host
from ..losses.classification import sigmoid, softmax
from ..rows import from_host_if_possible

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Array, MatrixLike


class Predictor:
    """What a model has beside its own: `classes`, None or an array of labels, and

    _answers(X, workers, finish) : finish(f), of decision values f (n_rows,), or (n_rows, n_outputs), as whoever brought X
        expects arrays; an answer of blocks of rows: finish(f) has an entry or a line for each of the rows that f is of
    """

    classes: np.ndarray | None
    _answers: Callable[..., Array]
    link: Literal["identity", "log", "softmax"] = "identity"

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:  # unpickled arrays are writable
        self.__dict__.update(state)
        self.__post_init__()

    def predict(self, X: MatrixLike, workers: int = 1) -> np.ndarray:
        """Regression values, with the log link e^f, or class labels.

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
        finish = MEANS[self.link] if self.classes is None else partial(labels, self.classes)
        return self._answers(X, workers, finish)


def itself(f: Array) -> Array:
    return f


def exponential(f: Array) -> Array:
    return namespace(f).exp(f)


MEANS = {"identity": itself, "log": exponential}
# Decision values of that size are as good as infinite ones, whose differences are no numbers.
FAR = 1e30
# Of a classifier: its link, as that of the loss.
LINKS = ("identity", "softmax")


def labels(classes: np.ndarray, f: Array) -> Array:
    """Of each row of decision values the label, in their namespace where that has such labels."""
    xp, several = namespace(f), f.ndim == 2
    index = xp.argmax(f, axis=1) if several else xp.astype(f > 0, xp.int64)
    if xp is np:
        return classes[index]
    there = from_host_if_possible(classes, *namespace_of(f))
    return classes[to_host(index)] if there is classes else xp.take(there, index)


def probabilities(link: str, f: Array) -> Array:
    """Of each class, of decision values with the logistic loss; with the link "softmax" the multinomial."""
    if link == "softmax" and f.ndim == 2:
        return softmax(namespace(f).clip(f, -FAR, FAR).T).T
    xp, p = namespace(f), sigmoid(f)
    if p.ndim == 1:
        p = p[:, None]
        return xp.concat([1 - p, p], axis=1)
    total = reduce(xp.add, (p[:, k] for k in range(p.shape[1])))[:, None]  # in one order, however many rows there are
    shares = p / xp.where(total > 0, total, xp.ones_like(total))
    return xp.where(total > 0, shares, xp.full_like(p, 1 / p.shape[1]))
