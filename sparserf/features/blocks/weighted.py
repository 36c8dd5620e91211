"""The base class of features that have weights and are computed by `_core/features.pyx`."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from ..._core.features import PANEL, Panels
from ..._core.rows import RowSlice
from .base import FeatureBlock

# With at most this many inputs for each sparse weight, sparse weights are multiplied as dense ones,
# zeros included, which is then faster than to gather the inputs.
DENSE_BELOW = 25


class WeightedBlock(FeatureBlock):
    """Features that have weights.

    weights : ndarray of shape (n_features, n_inputs), or (n_features, order) with `inputs`; of
        monomials (n_features, 1)
    offset : ndarray of shape (n_features,)
        What is added to the weighted sum of the inputs; 0 where a kind has none.
    """

    weights: np.ndarray
    offset: np.ndarray

    by_input: ClassVar[tuple[str, ...]] = ("weights",)
    stored: ClassVar[tuple[str, ...]] = ("weights", "offset", "inputs", "places")
    # DENSE_BELOW, for features of this kind.
    dense_below = DENSE_BELOW

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def is_used(self) -> np.ndarray:
        return self.weights != 0

    @property
    def needs_dense_rows(self) -> bool:
        return self.inputs is not None

    @cached_property
    def used_inputs(self) -> tuple[np.ndarray, np.ndarray | None]:
        used, position = np.unique(self.inputs, return_inverse=True)
        return used, np.ascontiguousarray(position.reshape(self.inputs.shape), dtype=np.int32)

    def among_used(self) -> Self:
        """Return these features as functions of the `used_inputs` alone."""
        return replace(self, inputs=self.used_inputs[1])

    def dense(self, n_inputs: int) -> Self:
        """Return these features, whose weights are sparse, with dense ones."""
        return replace(self, weights=self.dense_weights(self.inputs, n_inputs), inputs=None)

    def dense_weights(self, inputs: np.ndarray, n_inputs: int) -> np.ndarray:
        """Return sparse weights as dense ones, (n_features, n_inputs), where `inputs` are their
        columns."""
        weights = np.zeros((len(self), n_inputs))
        np.add.at(weights, (np.arange(len(self))[:, None], inputs), self.weights)
        return weights

    def packed(self, dtype: np.dtype, n_inputs: int, among_used: bool = False) -> Panels:
        """Return the features as `FeatureBlock.packed` does.

        Sparse weights are packed as dense ones where few inputs make that the faster way, to the
        same bits.
        """
        key = dtype, n_inputs, among_used
        if key not in self._packed:
            block = self.among_used() if among_used else self
            if block.inputs is not None and n_inputs <= self.dense_below * self.order:
                block = block.dense(n_inputs)
            # A weight may be too large for float32: its phase is infinite then, as the kernels
            # expect.
            self._packed[key] = block._panels(dtype)
        return self._packed[key]

    def _panels(self, dtype):
        """Lay the features out in panels."""
        weights, centers = self.parameters(dtype)
        inputs = None if self.inputs is None else _in_panels(self.inputs, np.int32)
        offset = _in_panels(self.offset[:, None], dtype)[:, 0]
        centers = None if centers is None else _in_panels(centers, dtype)
        return Panels(
            self.activation, self.scale, _in_panels(weights, dtype), offset, inputs, centers
        )

    def parameters(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray | None]:
        """Return (the weights, the centers of a kind that has some), as the kernels compute values
        of that dtype from them."""
        return self.weights, None

    @cached_property
    def _packed(self):
        """The `Panels` that have been made, by the arguments of `packed`."""
        return {}

    def rows_for_panels(self, X: np.ndarray) -> RowSlice:
        return RowSlice(np.ascontiguousarray(X))

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return the features of float64 rows, all at once."""
        out = np.empty((len(X), len(self)))
        self.packed(out.dtype, X.shape[1]).transform(self.rows_for_panels(X), out)
        return out

    def effects(self, deviation: np.ndarray) -> np.ndarray:
        """Return the variance of each w_v u_v."""
        return (self.weights * deviation[self.own_inputs]) ** 2

    def with_inputs(self, stays: np.ndarray, mean: np.ndarray) -> Self:
        return replace(self, weights=np.where(stays, self.weights, 0.0))

    def _stored_arrays(self):
        return self.arrays | {"offset": self.offset}


def zero_offset(block: WeightedBlock) -> np.ndarray:
    """Return the offset of features that have none."""
    offset = np.zeros(len(block))
    offset.flags.writeable = False
    return offset


def _in_panels(array, dtype):
    """Lay (n, d) out as (ceil(n / PANEL), d, PANEL), zero-padded, on a 64-byte boundary."""
    n, d = array.shape
    n_panels = -(-n // PANEL)
    size = n_panels * d * PANEL
    memory = np.zeros(size + 64, dtype)
    start = -memory.ctypes.data % 64 // memory.itemsize
    panels = memory[start : start + size].reshape(n_panels, d, PANEL)
    full = n // PANEL
    panels[:full] = array[: full * PANEL].reshape(full, PANEL, d).swapaxes(1, 2)
    if full < n_panels:
        panels[full, :, : n - full * PANEL] = array[full * PANEL :].T
    return panels
