"""Losses that the package does not have, as users write them."""

import numpy as np

from sparserf.losses import Loss


class LogCosh(Loss):
    """log cosh(z - y), which does not say that it is one of the residual, and has no conjugate."""

    smoothness = 1.0

    def value(self, z, y):
        return np.logaddexp(z - y, y - z) - np.log(2)

    def derivative(self, z, y):
        return np.tanh(z - y)

    def curvature(self, z, y):
        return 1 - np.tanh(z - y) ** 2
