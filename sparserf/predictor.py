"""What models share: arrays that cannot be written to, and predictions of what they make of each row."""

from functools import partial, reduce

import numpy as np

from ._arrays import namespace, namespace_of, to_host
from .losses.classes import sigmoid, softmax
from .rows import given


class Predictor:
    """What a model has beside its own: `classes`, None or an array of labels, and

    _answers(X, workers, finish) : finish(f), of decision values f (n_rows,), or (n_rows, n_outputs), as whoever brought X
        expects arrays; an answer of blocks of rows: finish(f) has an entry or a line for each of the rows that f is of
    """

    link = "identity"

    def __post_init__(self):
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __setstate__(self, state):  # unpickled arrays are writable
        self.__dict__.update(state)
        self.__post_init__()

    def predict(self, X, workers=1):
        """Regression values, with the log link e^f, or class labels. Parameters as in `decision_function`."""
        finish = MEANS[self.link] if self.classes is None else partial(labels, self.classes)
        return self._answers(X, workers, finish)


def itself(f):
    return f


def exponential(f):
    return namespace(f).exp(f)


MEANS = {"identity": itself, "log": exponential}
# Decision values of that size are as good as infinite ones, whose differences are no numbers.
FAR = 1e30
# Of a classifier: its link, as that of the loss.
LINKS = ("identity", "softmax")


def labels(classes, f):
    """Of each row of decision values the label, in their namespace where that has such labels."""
    xp, several = namespace(f), f.ndim == 2
    index = xp.argmax(f, axis=1) if several else xp.astype(f > 0, xp.int64)
    if xp is np:
        return classes[index]
    there = given(classes, *namespace_of(f))
    return classes[to_host(index)] if there is classes else xp.take(there, index)


def probabilities(link, f):
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
