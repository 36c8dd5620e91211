"""NeuronBlock: an activation of a weighted sum of the inputs."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from .block import FeatureBlock

# Activations with values in [-1, 1], and those that a phase is added to.
BOUNDED, PERIODIC = ("cos", "sin", "tanh", "sign"), ("cos", "sin")


@dataclass(frozen=True, eq=False)
class NeuronBlock(FeatureBlock):
    """phi_j(x) = scale * activation(w_j'x + offset_j), the weights w all dense, or all sparse where `inputs` is given."""

    activation: str
    scale: float
    weights: np.ndarray
    offset: np.ndarray
    inputs: np.ndarray | None = None

    gamma: ClassVar[float | None] = None

    @property
    def is_bounded(self) -> bool:
        return self.activation in BOUNDED

    @property
    def is_periodic(self) -> bool:
        return self.activation in PERIODIC

    def turned(self, angle: float | np.ndarray) -> Self:
        return replace(self, offset=self.offset + angle) if self.is_periodic else self
