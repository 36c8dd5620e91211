"""The derivatives of the features of one block, summed with their coefficients: the base class, and
what kinds of features share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..._base.arrays import namespace
from ..._base.checks import is_sparse

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..._base.types import Array
    from ...rows.protocols import FeatureBlockLike


class RowEncodings(Protocol):
    """The encodings of some rows, in an array namespace: `RowsOfEncodings` of `calculus/`, which is
    above this folder."""

    def put(self, values: Any) -> Any:
        """Return an ndarray in the namespace of the rows, on their device."""
        ...

    def values(self, features: FeatureBlockLike) -> Array:
        """Return the values of a block of features, (n_rows, n_features), float64."""
        ...

    def dense(self) -> Array:
        """Return the encodings, (n_rows, n_encodings), in the dtype of the rows."""
        ...


class Derivatives(ABC):
    """The derivatives of the features of a block by their encodings, summed with coefficients.

    coef : (n_outputs, n_features), times the scale of the features
    seen : the encodings by which derivatives are taken
    pairs : the pairs of them, as places in `seen`, by which second derivatives are taken, or None
    """

    def __init__(
        self,
        block: FeatureBlockLike,
        coef: np.ndarray,
        seen: np.ndarray,
        pairs: tuple[np.ndarray, np.ndarray] | None,
        n_inputs: int,
    ):
        self._block, self._coef, self._n_inputs = block, block.scale * coef, n_inputs
        self._seen, self._pairs = seen, pairs

    @abstractmethod
    def first(self, rows: RowEncodings) -> Array:
        """Return the first derivatives by the encodings `seen`, (n_rows, n_outputs, n_seen); 1 row
        if all are equal."""

    @abstractmethod
    def second(self, rows: RowEncodings) -> Array:
        """Return the second derivatives by `pairs` of encodings, (n_rows, n_outputs, n_pairs)."""

    def _sums(self, values, matrix, rows):
        """Return the product of values and a matrix, reshaped to (n_rows, n_outputs, .)."""
        if is_sparse(matrix) and not isinstance(values, np.ndarray):
            matrix = matrix.toarray()
        product = values @ (matrix if is_sparse(matrix) else rows.put(matrix))
        return namespace(product).reshape(
            product, (product.shape[0], len(self._coef), product.shape[1] // len(self._coef))
        )

    def _select(self, feature, column, values, width):
        """Return the matrix, (n_features, n_outputs * width), that multiplies values of features.

        In the line of a feature it has, for each output, coefficient times value at the feature's
        column; `feature`, `column` and `values` give these for some features.
        """
        from scipy.sparse import csr_array

        most_dense = 2**16  # a matrix of at most this many numbers is dense
        k = np.arange(len(self._coef))[:, None]
        entries = self._coef[:, feature] * values
        place = np.broadcast_to(feature, entries.shape).ravel(), (k * width + column).ravel()
        matrix = csr_array((entries.ravel(), place), shape=(self._coef.shape[1], len(k) * width))
        return matrix.toarray() if matrix.shape[0] * matrix.shape[1] <= most_dense else matrix


def places_in(seen: np.ndarray, n: int) -> np.ndarray:
    """Return where each of n encodings stands in `seen`; -1 for those that are not there."""
    place = np.full(n, -1)
    place[seen] = np.arange(len(seen))
    return place


def pair_finder(pairs: tuple[np.ndarray, np.ndarray]) -> Callable[[Any, Any], np.ndarray]:
    """Return a function of two arrays of places: the index of each of their pairs in `pairs`, -1 of
    a pair that is none of these."""
    index = {
        pair: p for p, pair in enumerate(zip(*(places.tolist() for places in pairs), strict=True))
    }
    return lambda left, right: np.array(
        [index.get(pair, -1) for pair in zip(left.tolist(), right.tolist(), strict=True)]
    )
