"""Rows in an array of another namespace (PyTorch, CuPy, JAX, ...), on its device: features,
products and sums are made there.

The code is written in the operations of the namespace. Kernels for a GPU would be methods of a
subclass of `ArrayBlock`, which `DeviceRows.__init__` would choose by the namespace and the device,
and `ArrayBlock.encoded` would keep: `_evaluator`, which computes features, or `_correlate`,
`correlate_pair` and `apply`, which also add them up without storing a tile of Phi.

Features and coefficients are copied to the device, and sums are copied back. Row vectors and
predictions stay on the device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._base.arrays import from_host, is_foreign, is_on_host, namespace_of, to_host
from .._base.checks import check_device_X
from .._base.threads import Workers
from ..columns.encoder import EncodedMatrix
from .block import Block
from .core_block import slices
from .few_values import FewValues
from .memory import from_host_if_possible
from .remote import RemoteRows
from .vectors import RowVectors

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike

    from .._base.types import Array, RowVector
    from ..columns.encoder import ColumnEncoder
    from .protocols import FeatureSetLike, ProjectionLike

# The most numbers in a tile of the feature matrix, 128 MB in float32, and the most features.
TILE = 2**25
TILE_FEATURES = 4096
# The number of unit vectors that are projected at a time.
N_UNIT_VECTORS = 256


class DeviceVectors(RowVectors):
    """Row vectors that are arrays of an array namespace on its device, of float64 where the device
    has it."""

    n_rows: int

    def __init__(self, n_rows: int, xp: Any, device: Any):
        self.n_rows, self._xp, self._device = n_rows, xp, device

    def put(self, values: Array) -> Array:
        return (
            from_host(values, self._xp, self._device) if isinstance(values, np.ndarray) else values
        )

    def fetch(self, vector: Array) -> np.ndarray:
        return to_host(vector)

    def map(self, answer: Callable[..., Array], *vectors: Array, axis: int = -1) -> Array:
        return answer(*map(self.put, vectors))

    def sum(self, answer: Callable[..., Any], *vectors: Array, add: Any = None) -> Any:
        return _to_host(answer(*map(self.put, vectors)))


class DeviceRows(RemoteRows):
    """The rows of an array on a device, as one block. Sums are copied to the memory of this
    process."""

    n_rows: int
    n_passes: int
    n_features_in: int
    dtype: np.dtype
    is_sparse = False

    @staticmethod
    def is_home_of(X: Any) -> bool:
        return is_foreign(X) and not is_on_host(X)

    @classmethod
    def from_X(cls, X: Array, workers: int, may_miss: bool) -> Self:
        xp, device = namespace_of(X)
        return cls(check_device_X(X, xp, may_miss), xp, device, workers)

    def __init__(self, X: Array, xp: Any, device: Any, workers: int):
        super().__init__(workers)
        self._block = block = ArrayBlock(X, xp, device)
        self.n_rows, self.n_features_in, self.dtype = block.n_rows, block.n_features_in, block.dtype
        self.vectors = DeviceVectors(self.n_rows, xp, device)

    def sum(self, answer: Callable[..., Any], *vectors: RowVector, add: Any = None) -> Any:
        return _to_host(self._answer(answer, vectors))

    def map(self, answer: Callable[..., Array], *vectors: RowVector, axis: int = -1) -> Array:
        return self._answer(answer, vectors)

    def map_and_sum(self, answer: Callable[..., Any], *vectors: RowVector) -> tuple[Array, Any]:
        f, total = self._answer(answer, vectors)
        return f, _to_host(total)

    def _answer(self, answer, vectors):
        """Return answer(block, *vectors) of the only block."""
        self.n_passes += 1
        return answer(self._block, *map(self.vectors.put, vectors))

    def without_missing(self) -> DeviceRows:
        check_device_X(self._block.X, self._block.xp)
        return self

    def select(self, index: np.ndarray) -> DeviceRows:
        return DeviceRows(
            self._block.take(index), self._block.xp, self._block.device, self._n_workers
        )

    def array(self, index: np.ndarray | None = None) -> np.ndarray:
        return to_host(self._block.X if index is None else self._block.take(index))

    def to_namespace_of_X(self, answer: Array) -> Array:
        here = isinstance(answer, np.ndarray)
        return from_host_if_possible(answer, self._block.xp, self._block.device) if here else answer


def _to_host(answer):
    """Copy an array, or each array of a tuple, to the memory of this process."""
    if isinstance(answer, tuple):
        return tuple(map(_to_host, answer))
    return to_host(answer) if is_foreign(answer) else answer


class ArrayBlock(Block):
    """A block of rows in an array of shape (n_rows, n_inputs), of float32 or float64, on a device.

    Products of features with a bound are made in the dtype of X, of others in float64; all are
    added up over tiles in float64. Float32 takes the place of float64 where a namespace has nothing
    wider.
    """

    X: Array
    xp: Any
    device: Any
    n_rows: int
    n_features_in: int

    def __init__(self, X: Array, xp: Any, device: Any):
        self.X, self.xp, self.device, self.workers = X, xp, device, Workers(1)
        self.n_rows, self.n_features_in = X.shape
        self.dtype: np.dtype = np.dtype("float32" if X.dtype == xp.float32 else "float64")
        # float64, or float32 where JAX is not set to 64 bits
        self._widest = self._put(np.zeros(1)).dtype

    def encoded(self, encoder: ColumnEncoder) -> ArrayBlock:
        return ArrayBlock(EncodedMatrix(self.X, encoder), self.xp, self.device)

    def correlate(self, features: FeatureSetLike, v: Array) -> np.ndarray:
        return self._correlate(features, v, lambda phi: phi)

    def correlate_squares(self, features: FeatureSetLike, v: Array) -> np.ndarray:
        return self._correlate(features, v, lambda phi: phi * phi)

    def correlate_pair(self, features: FeatureSetLike, v: Array) -> np.ndarray:
        sines = features.turned(np.full(len(features), -np.pi / 2))
        return np.stack([self.correlate(features, v), self.correlate(sines, v)])

    def _correlate(self, features, v, function):
        """Return function(Phi)' v."""
        xp, shape = self.xp, (*v.shape[:-1], len(features))
        v = xp.reshape(self._put(v), (-1, self.n_rows))
        unit = xp.max(xp.abs(v), axis=1, keepdims=True)  # v may be no float32
        unit = xp.where(unit > 0, unit, xp.ones_like(unit))
        scaled, totals = v / unit, [np.zeros((v.shape[0], 0))]
        for block, places in _parts(features):
            total = self._zeros((v.shape[0], len(places)))
            for rows, phi in self._tiles(block.take(places)):
                total = total + self._widen(xp.astype(scaled[:, rows], phi.dtype) @ function(phi))
            totals.append(to_host(total * unit))
        return features.from_blocks(np.hstack(totals)).reshape(shape)

    def apply(self, features: FeatureSetLike, coef: np.ndarray) -> Array:
        outputs = features.to_blocks(np.atleast_2d(np.asarray(coef, np.float64)))
        f, start = self._zeros((len(outputs), self.n_rows)), 0
        for block, places in _parts(features):
            c = self._put(outputs[:, start : start + len(places)])
            start += len(places)
            f = f + self.xp.concat(
                [c @ self._widen(phi.T) for _, phi in self._tiles(block.take(places))], axis=1
            )
        return self.xp.reshape(f, (*np.shape(coef)[:-1], self.n_rows))

    def normal(
        self, features: FeatureSetLike, h: Array, coef: np.ndarray, shift: np.ndarray
    ) -> tuple[Array, np.ndarray]:
        f = self.apply(features, coef) - self._put(shift)[:, None]
        return f, self.correlate(features, h * f)

    def gram(
        self,
        left: FeatureSetLike,
        right: FeatureSetLike | np.ndarray,
        weights: Array,
        dtype: DTypeLike | None = None,
        center: np.ndarray | None = None,
    ) -> np.ndarray:
        if isinstance(right, np.ndarray):
            right = left.take(right)
        n_rows = max(1, TILE // max(1, len(left) + len(right)))
        weights = self._put(weights)
        unit = float(self.xp.max(weights)) or 1.0
        h = self.xp.astype(weights / unit, self.X.dtype)
        total = self._zeros((len(left), len(right)))
        for rows in slices(self.n_rows, n_rows):
            phi = self._in_product_dtype(self._phi(left, rows), (left, right), dtype)
            phi = phi if center is None else phi - self._put(center, phi.dtype)
            psi = (
                phi
                if right is left
                else self._in_product_dtype(self._phi(right, rows), (left, right), dtype)
            )
            weighted = psi * self.xp.astype(h[rows], psi.dtype)[:, None]
            total = total + self._widen(phi.T @ weighted)
        return to_host(total) * unit

    def _in_product_dtype(self, phi, sets, dtype):
        """Return Phi in the dtype in which products of features of these sets are made."""
        bounded = all(block.is_bounded for features in sets for block in features.blocks)
        double = not bounded or dtype == np.float64
        return self._widen(phi) if double else phi

    def transform(self, features: FeatureSetLike) -> Array:
        n_rows = max(1, TILE // max(1, len(features)))
        tiles = [
            self.xp.astype(self._phi(features, rows), self.X.dtype)
            for rows in slices(self.n_rows, n_rows)
        ]
        return self.xp.concat(tiles, axis=0)

    def map_parts(
        self, function: Callable[[Any, Block], Array], encoder: ColumnEncoder | None, size: int
    ) -> Array:
        def part(rows):
            X = self.X[rows, :]
            return function(
                X, ArrayBlock(X if encoder is None else encoder.transform(X), self.xp, self.device)
            )

        return self.xp.concat(
            [part(rows) for rows in slices(self.n_rows, size) or [slice(0, 0)]], axis=0
        )

    def dense(self) -> Array:
        return self.X

    def project(self, projection: ProjectionLike) -> Array:
        """Return X R / sqrt(m), with R made whole: the projections of the unit vectors, some at a
        time."""
        d = self.n_features_in
        R = np.empty((d, projection.n_projections))
        for columns, project in projection.parts(R.dtype):
            for start in range(0, d, N_UNIT_VECTORS):
                project(
                    np.eye(min(N_UNIT_VECTORS, d - start), d, start),
                    R[start : start + N_UNIT_VECTORS, columns],
                )
        R = self._put(R, self.X.dtype)
        parts = [self.X[rows, :] @ R for rows in slices(self.n_rows, max(1, TILE // max(1, d)))]
        return self.xp.concat(parts, axis=0)

    def extremes(self) -> np.ndarray:
        xp = self.xp

        def least(x):
            return xp.min(xp.where(xp.isnan(x), xp.full_like(x, np.inf), x), axis=0)

        low, high = zip(*((least(x), -least(-x)) for _, x in self._widened_rows()), strict=True)
        return np.stack(
            [to_host(xp.min(xp.stack(low), axis=0)), to_host(xp.max(xp.stack(high), axis=0))]
        )

    def few_values(self) -> FewValues:
        found = FewValues.of_nothing(self.n_features_in)
        for _, x in self._widened_rows():

            def columns(asked, x=x):
                return to_host(self.xp.take(x, self._put(asked), axis=1))

            found = found.with_rows(columns) if found.is_few.any() else found
        return found

    def scaled_sum(
        self, weight: Array, unit: np.ndarray, mean: np.ndarray | None = None
    ) -> np.ndarray:
        def part(x, weight):
            x = x / self._put(unit)
            return weight @ (x if mean is None else (x - self._put(mean)) ** 2)

        return self._sum(part, weight)

    def weighted_sum(self, weight: Array) -> np.ndarray:
        return self._sum(lambda x, weight: weight @ x, weight)

    def largest_square_distance(self, center: np.ndarray) -> Array:
        center, xp = self._put(center), self.xp
        return xp.max(
            xp.stack([xp.max(xp.sum((x - center) ** 2, axis=1)) for _, x in self._widened_rows()])
        )

    def _sum(self, part, weight):
        """Return the sum of part(rows, weights) over tiles of the rows."""
        return to_host(sum(part(x, weight[rows]) for rows, x in self._widened_rows()))

    def _widened_rows(self):
        """Yield (slice of the rows, the rows at that slice in float64)."""
        n_rows = max(1, TILE // self.n_features_in)
        for rows in slices(self.n_rows, n_rows):
            yield rows, self._widen(self.X[rows, :])

    def take(self, index: np.ndarray) -> Array:
        """Return the rows at these indices, an array on the device."""
        return self.xp.take(self.X, self._put(np.asarray(index, np.int64)), axis=0)

    def _tiles(self, block):
        """Yield (slice of the rows, Phi of that slice) of a block of features."""
        n_rows = max(1, TILE // max(1, len(block), self.n_features_in))
        values = self._evaluator(block)
        for rows in slices(self.n_rows, n_rows):
            yield rows, values(self.X[rows, :])

    def _phi(self, features, rows):
        """Return Phi of a slice of the rows, in the order of the features."""
        X, xp = self.X[rows, :], self.xp
        parts = [self._evaluator(block)(X) for block in features.blocks]
        if not parts:
            return xp.zeros((X.shape[0], 0), dtype=X.dtype, device=self.device)
        exact = any(part.dtype != X.dtype for part in parts)
        phi = (
            parts[0]
            if len(parts) == 1
            else xp.concat([self._widen(part) if exact else part for part in parts], axis=1)
        )
        if features.order is None:
            return phi
        return xp.take(phi, self._put(features.order.astype(np.int64)), axis=1)

    def _evaluator(self, block):
        """Return a function that computes a block of features of rows, whose parameters are on the
        device: in the dtype of X where they have a bound, or else in float64."""
        dtype = self.X.dtype if block.is_bounded else self._widest

        def put(values):
            return self._put(values, dtype if values.dtype.kind == "f" else None)

        values = block.evaluator(self.xp, put, self.dtype, self._widen)
        return values if block.is_bounded else lambda X: values(self._widen(X))

    def _put(self, values, dtype=None):
        """Copy an ndarray to the device, in its dtype or in another; return an array that is there
        already as it is."""
        if isinstance(values, np.ndarray):
            return from_host(values, self.xp, self.device, dtype)
        return values

    def _zeros(self, shape):
        """Return zeros in the widest dtype."""
        return self.xp.zeros(shape, dtype=self._widest, device=self.device)

    def _widen(self, values):
        """Convert to float64, or to float32 where the namespace has nothing wider."""
        return self.xp.astype(values, self._widest, copy=False)


def _parts(features):
    """Yield (block of features, the places of at most TILE_FEATURES of them)."""
    for block in features.blocks:
        for places in slices(len(block), TILE_FEATURES):
            yield block, np.arange(places.start, places.stop)
