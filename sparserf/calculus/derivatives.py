"""The first and second derivatives of a model by each column of X.

    df/dx_j     = sum_v df/du_v u_v',
    d2f/dx_j^2  = sum_vw d2f/(du_v du_w) u_v' u_w' + sum_v df/du_v u_v''

with u_v, u_w the encodings of column j. The derivatives by encodings are sums over the features of
products, such as coef_k w_kv sigma'(w_k'u + b_k): a matrix product of the values sigma', which the
kernels compute as they compute those of features, with a matrix that does not depend on the rows.
Everything is computed for a part of the rows at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import check_no_overflow, namespace
from ..expansion.outputs import of_output
from ..features import FeatureSet
from ..rows import read_rows
from .encodings import encoding_derivatives, putter, smooth_encodings

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Array, MatrixLike
    from ..expansion import Expansion
    from ..features import FeatureBlock
    from ..rows import Block


# About the most numbers in the features, and in the derivatives, of the rows that are computed at
# once.
PART_NUMBERS = 2**18


def gradient(model: Expansion, X: MatrixLike, workers: int, output: object) -> Array:
    """Return the derivatives of f by the columns of X: see `SparseModel.gradient`."""
    return _map_derivatives(model, X, workers, output, second=False)


def hessian_diag(model: Expansion, X: MatrixLike, workers: int, output: object) -> Array:
    """Return the second derivatives of f by each column of X: see `SparseModel.hessian_diag`."""
    return _map_derivatives(model, X, workers, output, second=True)


def _map_derivatives(model, X, workers, output, second):
    """Return the first or second derivatives of f at the rows of X, wherever these are."""
    model = model if output is None else of_output(model, output)
    features = model.features
    rows = read_rows(X, features.encoder, workers, n_features=features.n_features_in)
    return rows.to_namespace_of_X(rows.map(ModelDerivatives(model, second), axis=0))


class ModelDerivatives:
    """The derivatives of a model at a block of rows: a function of the block, whose matrices are
    made once.

    second : whether second derivatives are computed, or first ones.
    """

    def __init__(self, model: Expansion, second: bool):
        features = model.features
        encoder = features.encoder
        encoder = None if encoder is None or encoder.is_identity else encoder
        seen = np.arange(features.n_inputs) if encoder is None else smooth_encodings(encoder)
        column = seen if encoder is None else encoder.column[seen]
        self._model, self._second, self._encoder = model, second, encoder
        self._smooth = None if encoder is None else encoder.take(seen)
        self._pairs = _pairs_of_one_column(column) if second else None
        self._layers = _layers(column, model.n_features_in)
        self._pair_layers = _layers(column[self._pairs[0]], model.n_features_in) if second else None
        coef = np.atleast_2d(model.coef)
        self._shape = len(coef), len(seen)
        self._parts = [
            block.derivatives(c, seen, self._pairs, features.n_inputs)
            for block, c in features.by_block(features.to_blocks(coef))
            if len(seen)
        ]
        widest = max(
            [1, features.n_inputs, len(coef) * model.n_features_in, *map(len, features.blocks)]
        )
        fewest_rows = 64  # those of a tile
        self._size = max(fewest_rows, PART_NUMBERS // widest // fewest_rows * fewest_rows)

    def __call__(self, block: Block) -> Array:
        """Return the derivatives at a block of rows, (n_rows, n_columns) or (n_rows, n_outputs,
        n_columns)."""
        return block.map_parts(self._of_rows, self._encoder, self._size)

    def _of_rows(self, X, block):
        """Return the derivatives at some rows X; block : their encodings."""
        put = putter(X)
        rows = RowsOfEncodings(block, put)
        xp, n_rows = namespace(put(np.zeros(1))), X.shape[0]
        slope, curve = (
            (None, None)
            if self._smooth is None
            else map(put, encoding_derivatives(self._smooth, X))
        )
        answer = put(np.zeros((n_rows, self._shape[0], self._model.n_features_in)))
        if not self._second or curve is not None:
            by_encoding = self._sum("first", rows, n_rows, self._shape[1])
            factor = curve if self._second else slope
            by_encoding = by_encoding if factor is None else by_encoding * factor[:, None, :]
            answer = answer + _by_column(by_encoding, self._layers, put)
        if self._second:
            one, other = self._pairs
            by_pair = self._sum("second", rows, n_rows, len(one))
            by_pair = by_pair * put(np.where(one == other, 1.0, 2.0))
            if slope is not None:
                one, other = (xp.take(slope, put(place), axis=1) for place in (one, other))
                by_pair = by_pair * (one * other)[:, None, :]
            answer = answer + _by_column(by_pair, self._pair_layers, put)
        if self._model.has_limits:
            answer = xp.where(self._is_cut(block, xp, put), xp.zeros_like(answer), answer)
        answer = check_no_overflow(answer[:, 0, :] if self._model.coef.ndim == 1 else answer)
        return xp.astype(answer, X.dtype, copy=False)

    def _sum(self, order, rows, n_rows, width):
        """Return the sum of derivatives of one order over the parts: (n_rows, n_outputs, width)."""
        total = rows.put(np.zeros((n_rows, self._shape[0], width)))
        for part in self._parts:
            total = total + getattr(part, order)(rows)
        return total

    def _is_cut(self, block, xp, put):
        """Return where f is beyond the limits of the model: (n_rows, n_outputs, 1)."""
        f = block.apply(self._model.features.encoded(None), np.atleast_2d(self._model.coef))
        f = f + put(np.atleast_1d(np.asarray(self._model.intercept, np.float64)))[:, None]
        low, high = self._model.limits
        return xp.permute_dims((f < low) | (f > high), (1, 0))[:, :, None]


class RowsOfEncodings:
    """The encodings of some rows, as derivatives of features ask for them:
    `RowEncodings`."""

    def __init__(self, block: Block, put: Callable[[Any], Any]):
        self._block, self.put = block, put

    def values(self, features: FeatureBlock) -> Array:
        values = self._block.transform(FeatureSet([features], self._block.n_features_in))
        return namespace(values).astype(values, self.put(np.zeros(1)).dtype, copy=False)

    def dense(self) -> Array:
        return self._block.dense()


# ---------------------------------------------------------------- arrays


def _pairs_of_one_column(column):
    """Return the places (a, b), a <= b, of pairs of encodings of one column."""
    by_column = {}
    for place, j in enumerate(column.tolist()):
        by_column.setdefault(j, []).append(place)
    pairs = [
        (a, b) for places in by_column.values() for k, a in enumerate(places) for b in places[k:]
    ]
    return tuple(np.array(pairs, np.int64).reshape(-1, 2).T.copy())


def _layers(column, n_columns):
    """Return arrays (n_columns,) of places of `column`, each place in one of them, in the entry of
    its column; -1 elsewhere."""
    order = np.argsort(column, kind="stable")
    first = np.searchsorted(column[order], column[order])
    turn = np.arange(len(order)) - first
    layers = []
    for k in range(turn.max(initial=-1) + 1):
        layers.append(np.full(n_columns, -1))
        layers[-1][column[order[turn == k]]] = order[turn == k]
    return layers


def _by_column(values, layers, put):
    """Sum values of encodings, along the last axis, by their columns."""
    xp, width, total = namespace(values), values.shape[2], 0.0
    for layer in layers:
        if np.array_equal(layer, np.arange(width)):
            total = total + values
        else:
            taken = xp.take(values, put(np.maximum(layer, 0)), axis=2)
            total = total + taken * put(1.0 * (layer >= 0))
    return total
