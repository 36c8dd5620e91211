"""Linear functions w'x, of which the inputs themselves are some."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..activations import ACTIVATIONS
from .neurons import NeuronBlock, Neurons
from .weighted import zero_offset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...columns.constraints import InputConstraints
    from ..activations import ActivationFunction
    from .base import FeatureBlock
    from .stored import StoredBlock


@dataclass(frozen=True, eq=False)
class LinearBlock(Neurons):
    """Linear functions, phi_j(x) = scale * w_j'x: weights w are all dense, or, given `inputs`, all
    sparse.

    nonnegative : whether coefficients must be at least 0
    """

    scale: float
    weights: np.ndarray
    inputs: np.ndarray | None = None
    nonnegative: bool = False

    activation = "identity"
    names: ClassVar[tuple[str, ...]] = (activation,)
    sigma: ClassVar[ActivationFunction] = ACTIVATIONS[activation]

    @cached_property
    def offset(self) -> np.ndarray:
        return zero_offset(self)

    @property
    def is_matrix(self) -> bool:
        return self.inputs is None

    @cached_property
    def matrix(self) -> np.ndarray:
        return self.scale * self.weights

    @property
    def moment_degree(self) -> int:
        return int(self.is_matrix or self.order == 1)

    def is_identity(self, n_inputs: int) -> bool:
        return len(self) == n_inputs and self._is_each_input

    @cached_property
    def _is_each_input(self):
        if self.is_matrix or self.order > 1:
            return False
        return np.array_equal(self.inputs[:, 0], np.arange(len(self))) and bool(
            (self._coefficients == 1).all()
        )

    @cached_property
    def _coefficients(self):
        """The factor of the input of each feature, where features have one input each."""
        return self.scale * self.weights[:, 0]

    def correlations_from_moments(self, total: np.ndarray, squared: bool) -> np.ndarray:
        if self.is_identity(total.shape[1]):
            return total
        if self.is_matrix:
            return total @ self.matrix.T
        c = self._coefficients
        return (c * c if squared else c) * total[:, self.inputs[:, 0]]

    def coef_on_inputs(self, coef: np.ndarray, n_inputs: int) -> np.ndarray:
        if self.is_matrix:
            return coef @ self.matrix
        if self.is_identity(n_inputs):
            return coef
        return self.sum_at_inputs(coef * self._coefficients, n_inputs)

    def name(self, k: int, inputs: Sequence[str]) -> str:
        used = self.inputs_seen(k, len(inputs))
        return inputs[used[0]] if len(used) == 1 else super().name(k, inputs)

    def constrained(
        self, constraints: InputConstraints, through: np.ndarray, rng: np.random.Generator
    ) -> list[tuple[FeatureBlock, np.ndarray]]:
        """Return the functions with the signs that their inputs must have: (block, places)."""
        at = self.own_inputs
        sign = constraints.sign[at]
        weights = np.where(constraints.is_barred[at], 0.0, self.weights)
        is_signed = ((weights != 0) & (sign != 0)).any(axis=1)
        weights = np.where(sign != 0, np.sign(self.scale) * sign * np.abs(weights), weights)
        parts, signed = [], replace(self, weights=weights)
        for is_positive in (False, True):
            places = np.flatnonzero(is_signed == is_positive)
            if len(places):
                parts.append((replace(signed.take(places), nonnegative=is_positive), places))
        return parts

    @classmethod
    def from_stored(cls, stored: StoredBlock) -> Neurons:
        """Return linear functions; with an offset they are neurons."""
        neurons = NeuronBlock.from_stored(stored)
        if neurons.offset.any():
            return neurons
        return cls(neurons.scale, neurons.weights, neurons.inputs, neurons.nonnegative)
