"""What models that are not of the library predict from their decision values."""

import numpy as np


def as_signs(y):
    """Return (classes, target): of two labels the sorted labels, and -1 and 1."""
    classes = np.unique(y)
    return classes, np.where(y == classes[1], 1.0, -1.0)


class Decides:
    """A model with `classes`, None for a regression, and a `decision_function`."""

    def predict(self, X, workers=1):
        """Return f(X), or the labels of its signs; `workers` is for calls as of the library's
        models."""
        f = self.decision_function(X)
        return f if self.classes is None else self.classes[(f > 0).astype(int)]
