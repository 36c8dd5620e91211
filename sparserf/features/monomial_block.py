"""MonomialBlock: products of inputs under a Gaussian envelope."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .block import FeatureBlock, count_entries, no_offset

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, eq=False)
class MonomialBlock(FeatureBlock):
    """phi_j(x) = scale * product over l of w_j u[inputs_jl], with u = exp(-gamma |x|^2 / order) (1, sqrt(2 gamma) x).

    The envelope and the coefficient are shared among the factors, so that none overflows; the 1 makes monomials of any
    lower degree.
    """

    scale: float
    weights: np.ndarray
    inputs: np.ndarray
    gamma: float

    activation = "product"
    is_bounded = True

    @cached_property
    def offset(self) -> np.ndarray:
        return no_offset(self)

    @property
    def envelope(self) -> tuple[float, int]:
        return self.gamma, self.order

    @property
    def moment_order(self) -> int:
        return self.order if self.order <= 2 else 0

    @cached_property
    def _coefficients(self):
        return self.scale * self.weights[:, 0] ** self.order

    def of_moments(self, total: np.ndarray, squared: bool) -> np.ndarray:
        c, place = self._coefficients, self.inputs[:, 0].astype(np.intp)
        if self.order == 2:
            place = place * round(total.shape[1] ** 0.5) + self.inputs[:, 1]
        return (c * c if squared else c) * total[:, place]

    def on_inputs(self, coef: np.ndarray, n_inputs: int) -> np.ndarray:
        return self.at_inputs(coef * self._coefficients, n_inputs)

    def largest_value(self) -> np.ndarray:  # prod_i |t_i|^v_i exp(-t_i^2 / 2) is at most prod_i (v_i / e)^(v_i / 2)
        inputs = np.sort(self.inputs, axis=1)
        peak = sum((entry > 0) * _rise(run) for entry, run in zip(inputs.T, runs(inputs), strict=True))
        return abs(self.scale) * (np.abs(self.weights[:, 0]) * np.exp(peak / self.order)) ** self.order

    def count_inputs(self, n_columns: int, column: np.ndarray | None = None) -> np.ndarray:
        """Of the factors; that the envelope falls with every input does not count."""
        factors = self.inputs - 1 if column is None else np.append(column, -1)[self.inputs - 1]
        return count_entries(np.where(self.weights != 0, factors, -1), n_columns)

    def inputs_seen(self, k: int, n_inputs: int) -> np.ndarray:
        """All of them, by the envelope."""
        return np.arange(n_inputs if self.weights[k, 0] != 0 else 0)

    def name(self, k: int, inputs: Sequence[str]) -> str:
        powers = np.bincount(self.inputs[k], minlength=1)
        factors = [inputs[i - 1] + (f"^{powers[i]}" if powers[i] > 1 else "") for i in np.flatnonzero(powers) if i > 0]
        return "*".join(["gaussian", *factors])


def runs(inputs: np.ndarray) -> Iterator[np.ndarray]:
    """Column by column of ascending tuples, the number of times that its entry has occurred so far; 1 for 0."""
    run = np.ones(len(inputs))
    yield run
    for previous, entry in zip(inputs.T[:-1], inputs.T[1:], strict=True):
        run = np.where((entry == previous) & (entry > 0), run + 1, 1.0)
        yield run


def _rise(v):
    """The logarithm of (v / e)^(v / 2), less that of v - 1."""
    less = v - 1
    return (v * np.log(v) - less * np.log(np.maximum(less, 1)) - 1) / 2
