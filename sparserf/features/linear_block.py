"""LinearBlock: a linear map of the inputs; the inputs themselves are one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .block import FeatureBlock, no_offset

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, eq=False)
class LinearBlock(FeatureBlock):
    """phi_j(x) = scale * w_j'x, the weights w all dense, or all sparse where `inputs` is given."""

    scale: float
    weights: np.ndarray
    inputs: np.ndarray | None = None

    activation = "identity"
    gamma: ClassVar[float | None] = None

    @cached_property
    def offset(self) -> np.ndarray:
        return no_offset(self)

    @property
    def is_matrix(self) -> bool:
        return self.inputs is None

    @cached_property
    def matrix(self) -> np.ndarray:
        return self.scale * self.weights

    @property
    def moment_order(self) -> int:
        return int(self.is_matrix or self.order == 1)

    def is_inputs_themselves(self, n_inputs: int) -> bool:
        return len(self) == n_inputs and self._is_each_input

    @cached_property
    def _is_each_input(self):
        if self.is_matrix or self.order > 1:
            return False
        return np.array_equal(self.inputs[:, 0], np.arange(len(self))) and bool((self._coefficients == 1).all())

    @cached_property
    def _coefficients(self):
        """Of features of one input each."""
        return self.scale * self.weights[:, 0]

    def of_moments(self, total: np.ndarray, squared: bool) -> np.ndarray:
        if self.is_inputs_themselves(total.shape[1]):
            return total
        if self.is_matrix:
            return total @ self.matrix.T
        c = self._coefficients
        return (c * c if squared else c) * total[:, self.inputs[:, 0]]

    def on_inputs(self, coef: np.ndarray, n_inputs: int) -> np.ndarray:
        if self.is_matrix:
            return coef @ self.matrix
        return coef if self.is_inputs_themselves(n_inputs) else self.at_inputs(coef * self._coefficients, n_inputs)

    def name(self, k: int, inputs: Sequence[str]) -> str:
        used = self.inputs_seen(k, len(inputs))
        return inputs[used[0]] if len(used) == 1 else super().name(k, inputs)
