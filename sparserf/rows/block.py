"""The interface of a block of rows: the sums, products and projections that are computed on it.

`CoreBlock` (core_block.py) computes them for an ndarray or CSR matrix, with the compiled kernels;
`ArrayBlock` (device.py) for an array of another namespace, such as one on a GPU. Kernels for other
hardware go in a subclass of `Block` like these two. A block does not know of the other rows: `Rows`
divides X into blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike

    from .._base.threads import Workers
    from .._base.types import Array, DenseOrCSR
    from ..columns.encoder import ColumnEncoder
    from .few_values import FewValues
    from .protocols import FeatureSetLike, ProjectionLike


class Block(ABC):
    """Rows that can be read all at once. Phi is their feature matrix, (n_rows, len(features)),
    which is not stored.

    Sums over the rows are float64 ndarrays; arrays with an entry or a line for each row are of the
    namespace of X. Overflow is not an error here: it shows as infinity or NaN in the result.

    workers : the threads of this process for the rows
    """

    workers: Workers
    n_rows: int
    n_features_in: int
    dtype: np.dtype

    @abstractmethod
    def encoded(self, encoder: ColumnEncoder) -> Block:
        """Return the block of the encodings that a column encoder makes of these rows."""

    @abstractmethod
    def correlate(self, features: FeatureSetLike, v: Array) -> np.ndarray:
        """Return Phi' v: float64 (len(features),) for v (n_rows,), or (n_outputs, len(features))
        for (n_outputs, n_rows)."""

    @abstractmethod
    def correlate_squares(self, features: FeatureSetLike, v: Array) -> np.ndarray:
        """Return (Phi * Phi)' v, which for v = weights is the diagonal of `gram`; shapes as in
        `correlate`."""

    @abstractmethod
    def correlate_pair(self, features: FeatureSetLike, v: Array) -> np.ndarray:
        """Return Phi' v, v (n_rows,), of cosines cos(t), and of cos(t - pi/2) = sin(t): float64 (2,
        len(features)).

        For features without a phase the first is Phi' v, and the second must not be used.
        """

    @abstractmethod
    def apply(self, features: FeatureSetLike, coef: np.ndarray) -> Array:
        """Return Phi c: float64 (n_rows,) for c (len(features),), or (n_outputs, n_rows) for
        (n_outputs, len(features))."""

    @abstractmethod
    def normal(
        self, features: FeatureSetLike, h: Array, coef: np.ndarray, shift: np.ndarray
    ) -> tuple[Array, np.ndarray]:
        """Return f = Phi c - shift and Phi' diag(h) f, for h (n_outputs, n_rows), c (n_outputs, .)
        and shift (n_outputs,)."""

    @abstractmethod
    def gram(
        self,
        left: FeatureSetLike,
        right: FeatureSetLike | np.ndarray,
        weights: Array,
        dtype: DTypeLike | None = None,
        center: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return Phi_left' diag(weights) Phi_right, float64 of shape (len(left), len(right)), for
        weights >= 0.

        right : features, or indices of features in `left`.
        dtype : the dtype of the products and of their sums over some thousand rows; None: that of
            X. Features without a bound are always multiplied in float64.
        center : None, or, where right is left, an ndarray (len(left),), which is subtracted from
            each row of Phi: (Phi - center)' diag(weights) (Phi - center).
        """

    @abstractmethod
    def transform(self, features: FeatureSetLike) -> Array:
        """Return Phi itself, in the dtype of X."""

    @abstractmethod
    def project(self, projection: ProjectionLike) -> Array:
        """Return the random projection X R / sqrt(m), in the dtype of X: (n_rows,
        n_projections)."""

    @abstractmethod
    def map_parts(
        self, function: Callable[[Any, Block], Array], encoder: ColumnEncoder | None, size: int
    ) -> Array:
        """Return the results of function(X, block), one above the other, for parts of at most
        `size` rows.

        function : a function of the rows X of a part, and of the block of their encodings, that
            returns an array with a line for each row
        encoder : the column encoder that makes the encodings; None: the block is of X itself
        """

    @abstractmethod
    def take(self, index: np.ndarray) -> Array | DenseOrCSR:
        """Return the rows at these indices."""

    # The columns of X themselves:

    @abstractmethod
    def dense(self) -> Array:
        """Return the rows as a dense array."""

    @abstractmethod
    def extremes(self) -> np.ndarray:
        """Return the least and the largest entry of each column, NaN left out: float64 (2,
        n_columns).

        They are infinity and -infinity in a column without a number.
        """

    @abstractmethod
    def few_values(self) -> FewValues:
        """Return the values of the columns that take few whole numbers."""

    @abstractmethod
    def scaled_sum(
        self, weight: Array, unit: np.ndarray, mean: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the sum of weight x / unit over dense rows; given a mean, the sum of weight (x /
        unit - mean)^2."""

    @abstractmethod
    def weighted_sum(self, weight: Array) -> np.ndarray:
        """Return weight' X."""

    @abstractmethod
    def largest_square_distance(self, center: np.ndarray) -> Array:
        """Return the largest squared distance between a row and a point."""

    # For CSR rows alone:

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        raise NotImplementedError("rows are dense")

    @property
    def longest_row(self) -> int:
        """Number of stored entries of the longest row, at least 1."""
        raise NotImplementedError("rows are dense")

    def sparse_moments(self, weight: Array, unit: np.ndarray) -> np.ndarray:
        """Return the sums of weight x / unit, and of weight (x / unit)^2: float64 (2,
        n_columns)."""
        raise NotImplementedError("rows are dense")


def wider_extremes(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the `Block.extremes` of the rows of two blocks together."""
    return np.stack([np.minimum(one[0], other[0]), np.maximum(one[1], other[1])])
