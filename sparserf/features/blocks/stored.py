"""A block of features in the file of a model, which is not trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._base.npz import floats, require

# Dense arrays of which at most one number in SPARSE_BELOW is not 0 are stored as these numbers and
# their places, unless they are too few for `may_be_sparse`.
SPARSE_BELOW = 3


@dataclass(frozen=True, eq=False)
class StoredBlock:
    """Block i of the content of a file, whose features have n_inputs inputs.

    Its methods raise ValueError, or KeyError where an array is missing, if no block was so written.
    """

    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]
    i: int
    n_inputs: int

    @property
    def is_nonnegative(self) -> bool:
        """Whether the coefficients of the features must be at least 0."""
        return "nonnegative" in self.meta

    def floats(self, name: str) -> np.ndarray:
        """Return an array of finite numbers."""
        return floats(self.arrays, f"{name}_{self.i}")

    def offset(self, is_zero: bool = False) -> np.ndarray:
        """Return the offset of each feature, whose length is the number of features."""
        offset = self.floats("offset")
        require(offset.ndim == 1 and len(offset) > 0, "offset")
        require(not (is_zero and offset.any()), "offset")
        return offset

    def inputs(self, n_features: int, n_inputs: int | None = None) -> np.ndarray | None:
        """Return the inputs of each feature, indices of n_inputs inputs (None: of all); None where
        features have all inputs."""
        inputs = self.arrays.get(f"inputs_{self.i}")
        if inputs is not None:
            n_inputs = self.n_inputs if n_inputs is None else n_inputs
            require(inputs.dtype == np.int32 and inputs.ndim == 2, "inputs")
            require(len(inputs) == n_features and inputs.size > 0, "inputs")
            require(inputs.min() >= 0 and inputs.max() < n_inputs, "inputs")
        return inputs

    def by_input(self, name: str, n_features: int, inputs: np.ndarray | None) -> np.ndarray:
        """Return the array with a number of each feature for each of its inputs, with the zeros
        that are not in the file."""
        values, shape = self.floats(name), (n_features, self.n_inputs)
        if f"places_{self.i}" in self.arrays:
            require(inputs is None, "places")
            values = self._with_zeros(name, values, shape)
        require(values.shape == (shape if inputs is None else inputs.shape), name)
        return values

    def _with_zeros(self, name, values, shape):
        """Return an array of that shape with values at their places in the file, and zeros
        elsewhere."""
        places, size = self.arrays[f"places_{self.i}"], shape[0] * shape[1]
        require(places.dtype == np.int32 and places.ndim == 1, "places")
        require(values.shape == places.shape and may_be_sparse(size, len(places)), name)
        ends = places[[0, -1]].tolist() if len(places) else [0, -1]
        require(
            ends[0] >= 0 and ends[1] < size and bool((places[1:] > places[:-1]).all()), "places"
        )
        whole = np.zeros(size)
        whole[places] = values
        return whole.reshape(shape)


def may_be_sparse(size: int, n: int) -> bool:
    """Return whether arrays of that size may be stored as their n nonzero numbers: the memory that
    a file takes must be in proportion to its size."""
    most_for_one, most_more = 32, 2**16
    return size < 2**31 and size <= most_for_one * n + most_more


def without_zeros(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return dense arrays of one shape as a file holds them: whole; or, where the first is mostly 0
    and the others are 0 in the same places, their other numbers, and the places of these."""
    first = next(iter(arrays.values()))
    is_zero = first == 0
    places = np.flatnonzero(~is_zero)
    if len(places) * SPARSE_BELOW > first.size or not may_be_sparse(first.size, len(places)):
        return arrays
    if any(array[is_zero].any() for array in arrays.values()):
        return arrays
    nonzero = {name: array.ravel()[places] for name, array in arrays.items()}
    return nonzero | {"places": places.astype(np.int32)}
