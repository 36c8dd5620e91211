"""A block of rows in an array of another namespace, on its device: features, products and sums are made there.

What goes there are features and coefficients; what comes back are sums. Answers with an entry a row are arrays there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import from_host, to_host
from ..columns.stage import EncodedMatrix
from .products import slices

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .._base.types import Array
    from ..columns.stage import ColumnStage
    from ..features.feature_set import FeatureSet
    from ..features.projections import Projection

# Numbers of a tile of the feature matrix: 128 MB in float32.
TILE = 2**25
# Features in a tile; unit vectors that are projected at a time.
TILE_FEATURES, SOME = 4096, 256


class ArrayBlock:
    """An array of shape (n_rows, n_inputs), of float32 or float64, and what it answers, as `Block` does.

    Products of features with a bound are made in the dtype of X, of others in float64; all are added up over tiles in float64.
    """

    n_rows: int
    n_features_in: int

    def __init__(self, X: Array, xp: Any, device: Any):
        self.X, self._xp, self._device = X, xp, device
        self.n_rows, self.n_features_in = X.shape
        self.dtype: np.dtype = np.dtype("float32" if X.dtype == xp.float32 else "float64")
        self._widest = self._put(np.zeros(1)).dtype  # float64, or float32 where JAX has been told of no wider numbers

    def staged(self, stage: ColumnStage) -> ArrayBlock:
        """This block as a column stage shows it."""
        return ArrayBlock(EncodedMatrix(self.X, stage), self._xp, self._device)

    def correlate(self, features: FeatureSet, v: Array) -> np.ndarray:
        return self._correlate(features, v, lambda phi: phi)

    def correlate_squares(self, features: FeatureSet, v: Array) -> np.ndarray:
        return self._correlate(features, v, lambda phi: phi * phi)

    def correlate_pair(self, features: FeatureSet, v: Array) -> np.ndarray:
        quarter = features.turned(np.full(len(features), -np.pi / 2))
        return np.stack([self.correlate(features, v), self.correlate(quarter, v)])

    def _correlate(self, features, v, of):
        xp, shape = self._xp, (*v.shape[:-1], len(features))
        v = xp.reshape(self._put(v), (-1, self.n_rows))
        unit = xp.max(xp.abs(v), axis=1, keepdims=True)  # v may be no float32
        unit = xp.where(unit > 0, unit, xp.ones_like(unit))
        there, totals = v / unit, [np.zeros((v.shape[0], 0))]
        for block, some in _parts(features):
            total = self._zeros((v.shape[0], len(some)))
            for rows, phi in self._tiles(block.take(some)):
                total = total + self._exact(xp.astype(there[:, rows], phi.dtype) @ of(phi))
            totals.append(to_host(total * unit))
        return features.from_blocks(np.hstack(totals)).reshape(shape)

    def apply(self, features: FeatureSet, coef: np.ndarray) -> Array:
        outputs = features.to_blocks(np.atleast_2d(np.asarray(coef, np.float64)))
        f, start = self._zeros((len(outputs), self.n_rows)), 0
        for block, some in _parts(features):
            c = self._put(outputs[:, start : start + len(some)])
            start += len(some)
            f = f + self._xp.concat([c @ self._exact(phi.T) for _, phi in self._tiles(block.take(some))], axis=1)
        return self._xp.reshape(f, (*np.shape(coef)[:-1], self.n_rows))

    def normal(self, features: FeatureSet, h: Array, coef: np.ndarray, shift: np.ndarray) -> tuple[Array, np.ndarray]:
        f = self.apply(features, coef) - self._put(shift)[:, None]
        return f, self.correlate(features, h * f)

    def gram(
        self, left: FeatureSet, right: FeatureSet | np.ndarray, weights: Array, dtype: DTypeLike | None = None,
        center: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        if isinstance(right, np.ndarray):
            right = left.take(right)
        n_rows = max(1, TILE // max(1, len(left) + len(right)))
        weights = self._put(weights)
        unit = float(self._xp.max(weights)) or 1.0
        h, total = self._xp.astype(weights / unit, self.X.dtype), self._zeros((len(left), len(right)))
        for some in slices(self.n_rows, n_rows):
            phi = self._product_dtype(self._phi(left, some), (left, right), dtype)
            phi = phi if center is None else phi - self._put(center, phi.dtype)
            psi = phi if right is left else self._product_dtype(self._phi(right, some), (left, right), dtype)
            weighted = psi * self._xp.astype(h[some], psi.dtype)[:, None]
            total = total + self._exact(phi.T @ weighted)
        return to_host(total) * unit

    def _product_dtype(self, phi, sets, dtype):
        bounded = all(block.is_bounded for features in sets for block in features.blocks)
        double = not bounded or dtype == np.float64
        return self._exact(phi) if double else phi

    def transform(self, features: FeatureSet) -> Array:
        n_rows = max(1, TILE // max(1, len(features)))
        tiles = [self._xp.astype(self._phi(features, some), self.X.dtype) for some in slices(self.n_rows, n_rows)]
        return self._xp.concat(tiles, axis=0)

    def project(self, projection: Projection) -> Array:
        """X R / sqrt(m), R made whole: of the unit vectors, some at a time."""
        d = self.n_features_in
        R = np.empty((d, projection.n_projections))
        for columns, project in projection.parts(R.dtype):
            for start in range(0, d, SOME):
                project(np.eye(min(SOME, d - start), d, start), R[start : start + SOME, columns])
        return self.X @ self._put(R, self.X.dtype)

    def extremes(self) -> np.ndarray:
        xp = self._xp
        each = ((xp.min(x, axis=0), xp.max(x, axis=0)) for _, x in self._exact_rows())
        low, high = zip(*each, strict=True)
        return np.stack([to_host(xp.min(xp.stack(low), axis=0)), to_host(xp.max(xp.stack(high), axis=0))])

    def scaled_sum(self, weight: Array, unit: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
        def part(x, weight):
            x = x / self._put(unit)
            return weight @ (x if mean is None else (x - self._put(mean)) ** 2)

        return self._sum(part, weight)

    def weighted_sum(self, weight: Array) -> np.ndarray:
        return self._sum(lambda x, weight: weight @ x, weight)

    def largest_square_distance(self, center: np.ndarray) -> Array:
        center, xp = self._put(center), self._xp
        return xp.max(xp.stack([xp.max(xp.sum((x - center) ** 2, axis=1)) for _, x in self._exact_rows()]))

    def _sum(self, part, weight):
        with np.errstate(over="ignore", invalid="ignore"):
            return to_host(sum(part(x, weight[some]) for some, x in self._exact_rows()))

    def _exact_rows(self):
        """(a slice, these rows in float64)."""
        n_rows = max(1, TILE // self.n_features_in)
        for some in slices(self.n_rows, n_rows):
            yield some, self._exact(self.X[some, :])

    def taken(self, index: np.ndarray) -> Array:
        """Some rows, an array there."""
        return self._xp.take(self.X, self._put(np.asarray(index, np.int64)), axis=0)

    @property
    def place(self) -> tuple[Any, Any]:
        return self._xp, self._device

    def _tiles(self, block):
        """(a slice of the rows, Phi of these) of features of one kind."""
        n_rows = max(1, TILE // max(1, len(block), self.n_features_in))
        there = self._there(block)
        for some in slices(self.n_rows, n_rows):
            yield some, self._values(block, there, self._as_seen_by(block, self.X[some, :]))

    def _phi(self, features, some):
        """Phi of a slice of the rows, in the order of the features."""
        X, xp = self.X[some, :], self._xp
        parts = [self._values(block, self._there(block), self._as_seen_by(block, X)) for block in features.blocks]
        if not parts:
            return xp.zeros((X.shape[0], 0), dtype=X.dtype, device=self._device)
        exact = any(part.dtype != X.dtype for part in parts)
        phi = parts[0] if len(parts) == 1 else xp.concat([self._exact(part) if exact else part for part in parts], axis=1)
        return phi if features.order is None else xp.take(phi, self._put(features.order.astype(np.int64)), axis=1)

    def _as_seen_by(self, block, X):
        return X if block.is_bounded else self._exact(X)

    def _there(self, block):
        """What the features are made of, on the device: (matrix of weights, offset, inputs)."""
        dtype = self.X.dtype if block.is_bounded else self._widest
        if block.envelope is not None:
            inputs = [self._put(column.astype(np.int64)) for column in block.inputs.T]
            return self._put(block.weights[:, 0], self.X.dtype), None, inputs
        weights, inputs = block.weights, None
        if block.inputs is not None:
            used, place = block.used_inputs
            weights = block.spread(place, len(used))
            inputs = None if len(used) == self.n_features_in else self._put(used.astype(np.int64))
        return self._put(weights.T, dtype), self._put(block.offset, dtype), inputs

    def _values(self, block, there, X):
        weights, offset, inputs = there
        if block.envelope is not None:
            return self._products(block, weights, inputs, X)
        z = (X if inputs is None else self._xp.take(X, inputs, axis=1)) @ weights + offset[None, :]
        return self._activation(block.activation, z) * float(block.scale)

    def _products(self, block, weights, inputs, X):
        """The product of w_j u over its factors, u = exp(-gamma |x|^2 / order) (1, sqrt(2 gamma) x)."""
        xp, (gamma, order) = self._xp, block.envelope
        envelope = xp.exp(xp.sum(self._exact(X) ** 2, axis=1) * (-gamma / order))[:, None]
        ones = xp.ones((X.shape[0], 1), dtype=envelope.dtype, device=self._device)
        u = xp.concat([ones, self._exact(X) * float(np.sqrt(2 * gamma))], axis=1) * envelope
        u, phi = xp.astype(u, X.dtype), 1.0
        for factor in inputs:
            phi = phi * (xp.take(u, factor, axis=1) * weights[None, :])
        return phi * float(block.scale)

    def _activation(self, name, z):
        """As the kernels have it: a phase that is no number counts as 0, and the sign of 0 is 1."""
        xp = self._xp
        if name == "identity":
            return z
        if name == "relu":
            return xp.where(z > 0, z, xp.zeros_like(z))
        if name == "sign":
            return xp.where(z >= 0, xp.ones_like(z), -xp.ones_like(z))
        if name == "tanh":
            return xp.where(xp.isnan(z), xp.zeros_like(z), xp.tanh(z))
        finite = xp.isfinite(z)
        value = getattr(xp, name)(xp.where(finite, z, xp.zeros_like(z)))
        return xp.where(finite, value, xp.zeros_like(z))

    def _put(self, values, dtype=None):
        """Numbers of this process, on the device: float64, integers, or of that dtype; an array there as it is."""
        return from_host(values, self._xp, self._device, dtype) if isinstance(values, np.ndarray) else values

    def _zeros(self, shape):
        return self._xp.zeros(shape, dtype=self._widest, device=self._device)

    def _exact(self, values):
        return self._xp.astype(values, self._widest, copy=False)


def _parts(features):
    """(a block of features, the places in it of TILE_FEATURES at most)."""
    for block in features.blocks:
        for some in slices(len(block), TILE_FEATURES):
            yield block, np.arange(some.start, some.stop)
