"""A loss with an offset, a number for each row that is added to its predictor: L(z + o, y)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import namespace
from .base import Loss
from .links import LINKS

if TYPE_CHECKING:
    from .._base.types import Array

# The largest |o|, by the link.
LARGEST_OFFSET = dict.fromkeys(("softmax", "cumulative"), 1e30) | {
    name: link.largest_offset for name, link in LINKS.items()
}


class OffsetLoss(Loss):
    """The loss L(z + o, y) of the predictor z, for targets (2, ...) that hold y and then o.

    Whatever is known of a loss in z is known of it at z + o, too: bounds of the curvature, the
    slopes of its conjugate. The conjugate is L*(u) - u o.
    """

    intercept_reach: float = 2.0  # y and o may add up

    def __init__(self, loss: Loss):
        """loss : L, with all its parameters, in the unit of z and o."""
        self.loss = loss
        for name in Loss.__annotations__.keys() - {"intercept_reach"}:
            setattr(self, name, getattr(loss, name))

    @staticmethod
    def targets(y: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Return the targets of this loss, (2, *y.shape), for targets and offsets of one unit."""
        return np.stack([y, np.broadcast_to(offset, y.shape)])

    def value(self, z: Array, y: Array) -> Array:
        return self.loss.value(z + y[1, ...], y[0, ...])

    def derivative(self, z: Array, y: Array) -> Array:
        return self.loss.derivative(z + y[1, ...], y[0, ...])

    def curvature(self, z: Array, y: Array) -> Array:
        return self.loss.curvature(z + y[1, ...], y[0, ...])

    def conjugate(self, u: Array, y: Array) -> Array:
        return self.loss.conjugate(u, y[0, ...]) - u * y[1, ...]

    def bounded_slope(self, u: Array, y: Array) -> Array:
        return self.loss.bounded_slope(u, y[0, ...])

    def shift_size(self, y: Array) -> Array:
        return namespace(y).abs(y[1, ...])

    def size(self, mean: float) -> float:
        return self.loss.size(mean)

    def intercept_step(self, slope: float, curvature: float) -> float:
        return self.loss.intercept_step(slope, curvature)
