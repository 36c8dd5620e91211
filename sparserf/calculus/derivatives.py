"""The first and second derivatives of a model by each column of X.

    df/dx_j     = sum_v df/du_v u_v',
    d2f/dx_j^2  = sum_vw d2f/(du_v du_w) u_v' u_w' + sum_v df/du_v u_v''

with u_v, u_w the encodings of column j. The derivatives by encodings are sums over the features of
products, such as coef_k w_kv sigma'(w_k'u + b_k): a matrix product of the values sigma', which the
kernels compute as they compute those of features, with a matrix that does not depend on the rows.
Everything is computed for a part of the rows at a time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import check_no_overflow, namespace
from .._base.checks import is_sparse
from ..expansion.outputs import of_output
from ..features import BumpBlock, FeatureBlock, FeatureSet, LinearBlock, MonomialBlock, NeuronBlock
from ..features.activations import Derivative
from ..rows import read_rows
from .encodings import putter, slopes, smooth_encodings

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Array, MatrixLike
    from ..expansion import Expansion
    from ..rows import Block

# Numbers in the features, and in the derivatives, of a part of the rows; and the fewest rows of a
# part.
PART_NUMBERS, FEWEST_ROWS = 2**18, 64
# Most numbers in a matrix that is multiplied as a dense one, zeros included.
MOST_DENSE = 2**16


def gradient(model: Expansion, X: MatrixLike, workers: int, output: object) -> Array:
    """Return the derivatives of f by the columns of X: see `SparseModel.gradient`."""
    return _map_derivatives(model, X, workers, output, second=False)


def hessian_diag(model: Expansion, X: MatrixLike, workers: int, output: object) -> Array:
    """Return the second derivatives of f by each column of X: see `SparseModel.hessian_diag`."""
    return _map_derivatives(model, X, workers, output, second=True)


def _map_derivatives(model, X, workers, output, second):
    model = model if output is None else of_output(model, output)
    features = model.features
    rows = read_rows(X, features.stage, workers, n_features=features.n_features_in)
    return rows.to_namespace_of_X(rows.map(Derivatives(model, second), axis=0))


class Derivatives:
    """The derivatives of a model at a block of rows: a function of the block, whose matrices are
    made once.

    second : whether second derivatives are computed, or first ones.
    """

    def __init__(self, model: Expansion, second: bool):
        features = model.features
        stage = None if features.stage is None or features.stage.is_identity else features.stage
        seen = np.arange(features.n_inputs) if stage is None else smooth_encodings(stage)
        column = seen if stage is None else stage.column[seen]
        self._model, self._second, self._stage = model, second, stage
        self._smooth = None if stage is None else stage.take(seen)
        self._pairs = _pairs_of_one_column(column) if second else None
        self._layers = _layers(column, model.n_features_in)
        self._pair_layers = _layers(column[self._pairs[0]], model.n_features_in) if second else None
        coef = np.atleast_2d(model.coef)
        self._shape = len(coef), len(seen)
        self._parts = [
            kind_of_part(block)(block, c, seen, self._pairs, features.n_inputs)
            for block, c in features.by_block(features.to_blocks(coef))
            if len(seen)
        ]
        widest = max(
            [1, features.n_inputs, len(coef) * model.n_features_in, *map(len, features.blocks)]
        )
        self._size = max(FEWEST_ROWS, PART_NUMBERS // widest // FEWEST_ROWS * FEWEST_ROWS)

    def __call__(self, block: Block) -> Array:
        """Return the derivatives at a block of rows, (n_rows, n_columns) or (n_rows, n_outputs,
        n_columns)."""
        return block.map_parts(self._of_rows, self._stage, self._size)

    def _of_rows(self, X, block):
        """Return the derivatives at some rows X; block : their encodings."""
        put = putter(X)
        xp, n_rows = namespace(put(np.zeros(1))), X.shape[0]
        slope, curve = (None, None) if self._smooth is None else map(put, slopes(self._smooth, X))
        answer = put(np.zeros((n_rows, self._shape[0], self._model.n_features_in)))
        if not self._second or curve is not None:
            by_encoding = self._sum("first", block, put, n_rows, self._shape[1])
            factor = curve if self._second else slope
            by_encoding = by_encoding if factor is None else by_encoding * factor[:, None, :]
            answer = answer + _by_column(by_encoding, self._layers, put)
        if self._second:
            one, other = self._pairs
            by_pair = self._sum("second", block, put, n_rows, len(one)) * put(
                np.where(one == other, 1.0, 2.0)
            )
            if slope is not None:
                one, other = (xp.take(slope, put(place), axis=1) for place in (one, other))
                by_pair = by_pair * (one * other)[:, None, :]
            answer = answer + _by_column(by_pair, self._pair_layers, put)
        if self._model.has_limits:
            answer = xp.where(self._is_cut(block, xp, put), xp.zeros_like(answer), answer)
        answer = check_no_overflow(answer[:, 0, :] if self._model.coef.ndim == 1 else answer)
        return xp.astype(answer, X.dtype, copy=False)

    def _sum(self, order, block, put, n_rows, width):
        """Return the sum of derivatives of one order over the parts: (n_rows, n_outputs, width)."""
        total = put(np.zeros((n_rows, self._shape[0], width)))
        for part in self._parts:
            total = total + getattr(part, order)(block, put)
        return total

    def _is_cut(self, block, xp, put):
        """Return where f is beyond the limits of the model: (n_rows, n_outputs, 1)."""
        f = block.apply(self._model.features.staged(None), np.atleast_2d(self._model.coef))
        f = f + put(np.atleast_1d(np.asarray(self._model.intercept, np.float64)))[:, None]
        low, high = self._model.limits
        return xp.permute_dims((f < low) | (f > high), (1, 0))[:, :, None]


# ---------------------------------------------------------------- the derivatives of features of
# one kind, by encodings


class Part:
    """The derivatives of the features of one block, summed with their coefficients.

    coef : (n_outputs, n_features)
    seen : the encodings by which derivatives are taken
    pairs : the pairs of them, as places in `seen`, by which second derivatives are taken, or None
    """

    def __init__(
        self,
        block: FeatureBlock,
        coef: np.ndarray,
        seen: np.ndarray,
        pairs: tuple[np.ndarray, np.ndarray] | None,
        n_inputs: int,
    ):
        self._block, self._coef, self._seen, self._pairs, self._n_inputs = (
            block,
            block.scale * coef,
            seen,
            pairs,
            n_inputs,
        )

    def first(self, block: Block, put: Callable[[Any], Any]) -> Array:
        """Return the first derivatives by the encodings `seen` at rows, (n_rows, n_outputs,
        n_seen); 1 row if all are equal.

        block : the encodings of the rows
        put : a function that brings an array to the namespace of the rows
        """
        raise NotImplementedError

    def second(self, block: Block, put: Callable[[Any], Any]) -> Array:
        """Return the second derivatives by `pairs` of encodings at rows, (n_rows, n_outputs,
        n_pairs)."""
        raise NotImplementedError

    def _set(self, **changes):
        """Return the features with other fields, without their scale, which `coef` has."""
        return FeatureSet([replace(self._block, scale=1.0, **changes)], self._n_inputs)

    @cached_property
    def _plain(self):
        return self._set()

    def _values(self, features, block, put):
        """Return the values of features at rows, in float64."""
        values = block.transform(features)
        return namespace(values).astype(values, put(np.zeros(1)).dtype, copy=False)

    def _sums(self, values, matrix, put):
        """Return a product with a matrix as (n_rows, n_outputs, .)."""
        if is_sparse(matrix) and not isinstance(values, np.ndarray):
            matrix = matrix.toarray()
        product = values @ (matrix if is_sparse(matrix) else put(matrix))
        return namespace(product).reshape(
            product, (product.shape[0], len(self._coef), product.shape[1] // len(self._coef))
        )

    def _select(self, feature, column, values, width):
        """Return the matrix (n_features, n_outputs width) with coef values of some features in some
        columns."""
        from scipy.sparse import csr_array

        k = np.arange(len(self._coef))[:, None]
        entries = self._coef[:, feature] * values
        place = np.broadcast_to(feature, entries.shape).ravel(), (k * width + column).ravel()
        return _thinned(
            csr_array((entries.ravel(), place), shape=(self._coef.shape[1], len(k) * width))
        )


class NeuronPart(Part):
    """The derivatives of c sigma(w'u + b): c w_v sigma'(w'u + b), and c w_v w_w sigma''(w'u +
    b)."""

    @cached_property
    def _weights(self):
        block = self._block
        if block.inputs is None:
            return block.weights[:, self._seen]
        if self._n_inputs <= block.dense_below * block.order:
            return block.dense_weights(block.inputs, self._n_inputs)[:, self._seen]
        from scipy.sparse import csr_array

        row = np.repeat(np.arange(len(block)), block.order)
        shape = len(block), self._n_inputs
        return csr_array((block.weights.ravel(), (row, block.inputs.ravel())), shape=shape)[
            :, self._seen
        ]

    @cached_property
    def _by_first(self):
        return _times_coef(self._weights, self._coef)

    @cached_property
    def _by_second(self):
        left, right = (self._weights[:, place] for place in self._pairs)
        return _times_coef(left.multiply(right) if is_sparse(left) else left * right, self._coef)

    @cached_property
    def _slopes(self):
        return self._features_of(self._block.sigma.slope)

    @cached_property
    def _bends(self):
        return self._features_of(self._block.sigma.bend)

    def _features_of(self, derivative):
        """Return the features of whose values a derivative of sigma is a function; None where it is
        constant."""
        if not isinstance(derivative, Derivative):
            return None
        return self._set(
            activation=derivative.activation, offset=self._block.offset + derivative.shift
        )

    def first(self, block: Block, put: Callable[[Any], Any]) -> Array:
        slope = self._block.sigma.slope
        if not slope:
            return put(np.zeros((1, len(self._coef), len(self._seen))))
        return self._sums(self._derivatives(slope, self._slopes, block, put), self._by_first, put)

    def second(self, block: Block, put: Callable[[Any], Any]) -> Array:
        bend = self._block.sigma.bend
        if not bend:
            return put(np.zeros((1, len(self._coef), len(self._pairs[0]))))
        return self._sums(self._derivatives(bend, self._bends, block, put), self._by_second, put)

    def _derivatives(self, derivative, features, block, put):
        """Return a derivative of sigma at w'u + b, (n_rows, n_features); 1 row if it is
        constant."""
        if features is None:
            return put(np.full((1, len(self._block)), derivative))
        return derivative.function(self._values(features, block, put))


class BumpPart(Part):
    """The derivatives of c exp(-sum_v w_v |u_v - c_v|): -c w_v s_v phi, and c w_v w_w s_v s_w phi;
    s_v = 1 at the center."""

    @cached_property
    def _by_input(self):
        """(place in `seen` or -1, input, weight, center) of each bump, for one input of each bump
        at a time."""
        block, place = self._block, _places(self._seen, self._n_inputs)
        inputs = np.broadcast_to(block.inputs_of_weights, block.weights.shape)
        return [
            (place[i], i, np.abs(w), c)
            for i, w, c in zip(inputs.T, block.weights.T, block.centers.T, strict=True)
        ]

    @cached_property
    def _first_steps(self):
        """The (inputs, matrix, its place) of which first derivatives are the sum: see `_step`."""
        steps = []
        for i, (place, _, weights, _) in enumerate(self._by_input):
            steps += self._step((i,), place, -weights, len(self._seen))
        return steps

    @cached_property
    def _second_steps(self):
        """The (inputs, matrix, its place) of which second derivatives are the sum; no inputs where
        signs are equal."""
        steps, number = [], _numbers(self._pairs)
        for i, (left, _, weights, _) in enumerate(self._by_input):
            for j, (right, _, other_weights, _) in enumerate(self._by_input):
                signs = () if i == j else (i, j)
                steps += self._step(
                    signs, number(left, right), weights * other_weights, len(self._pairs[0])
                )
        return steps

    def _step(self, positions, place, values, width):
        """Return [(positions, matrix, place)], or [] where no bump has a part.

        The bumps, times the signs of their inputs at some positions, times the matrix are summands
        of the derivatives: of all of them where place is None, and else, where the bumps have the
        same inputs, of that at this place.
        """
        some = np.flatnonzero((place >= 0) & (values != 0))
        if not len(some):
            return []
        if self._block.inputs is None:
            return [
                (positions, self._select(some, np.zeros_like(some), values[some], 1), int(place[0]))
            ]
        return [(positions, self._select(some, place[some], values[some], width), None)]

    def first(self, block: Block, put: Callable[[Any], Any]) -> Array:
        return self._sum(self._first_steps, len(self._seen), block, put)

    def second(self, block: Block, put: Callable[[Any], Any]) -> Array:
        return self._sum(self._second_steps, len(self._pairs[0]), block, put)

    def _sum(self, steps, width, block, put):
        """Return the sum of values times signs of some inputs times a matrix."""
        phi = self._values(self._plain, block, put)
        U, total = block.dense(), put(np.zeros((phi.shape[0], len(self._coef), width)))
        xp, minus, at_place = namespace(phi), -phi, {}
        for positions, matrix, place in steps:
            signed = phi
            for i in positions:
                signed = xp.where(
                    self._is_below(U, i, put), minus if signed is phi else -signed, signed
                )
            sums = self._sums(signed, matrix, put)
            if place is None:
                total = total + sums
            else:
                at_place[place] = at_place.get(place, 0.0) + sums
        if not at_place:
            return total
        nothing = total[:, :, :1]
        return xp.concat([at_place.get(place, nothing) for place in range(width)], axis=2)

    def _is_below(self, U, i, put):
        """Return where the i-th input of a bump is below its center."""
        _, inputs, _, centers = self._by_input[i]
        xp = namespace(U)
        u = (
            U[:, int(inputs[0])][:, None]
            if self._block.inputs is None
            else xp.take(U, put(inputs.astype(np.int64)), axis=1)
        )
        return u < xp.astype(put(centers.copy()), U.dtype)[None, :]


class MonomialPart(Part):
    """The derivatives of c exp(-gamma |u|^2) prod_l w (2 gamma)^1/2 u_l, one factor, or pair of
    factors, left out at a time."""

    @cached_property
    def _places(self):
        """The place in `seen` of each factor of each feature, -1 for the factor 1: (order,
        n_features)."""
        place = np.append(-1, _places(self._seen, self._n_inputs))
        return place[self._block.inputs].T

    @cached_property
    def _factor(self):
        return self._block.weights[:, 0] ** self._block.order

    def _products(self, U, left_out, put, xp):
        """Return the products of the factors that are not left out, each with its share of the
        envelope."""
        gamma, order = self._block.envelope
        share = xp.exp(-gamma / order * xp.sum(U * U, axis=1))[:, None]
        factors = xp.concat([xp.ones_like(share), float(np.sqrt(2 * gamma)) * U], axis=1) * share
        values = put(np.ones((1, len(self._block)))) * share ** len(left_out)
        for position, inputs in enumerate(self._block.inputs.T):
            if position not in left_out:
                values = values * xp.take(factors, put(inputs.astype(np.int64)), axis=1)
        return values

    @cached_property
    def _whole(self):
        """The step, as in `_first_steps`, that is the sum of the features themselves."""
        everything = np.arange(len(self._block))
        return [((), self._select(everything, np.zeros_like(everything), self._factor, 1))]

    @cached_property
    def _first_steps(self):
        """The (factor that is left out, matrix) of which the first derivatives of the products are
        the sum."""
        steps, root = [], np.sqrt(2 * self._block.gamma)
        for i, place in enumerate(self._places):
            some = np.flatnonzero(place >= 0)
            if len(some):
                steps.append(
                    (
                        (i,),
                        self._select(some, place[some], root * self._factor[some], len(self._seen)),
                    )
                )
        return steps

    @cached_property
    def _second_steps(self):
        """The (pair of factors that are left out, matrix) of which the second derivatives of the
        products are the sum."""
        steps, number = [], _numbers(self._pairs)
        for i, j in permutations(range(self._block.order), 2):
            pair = number(self._places[i], self._places[j])
            some = np.flatnonzero(pair >= 0)
            if len(some):
                values = 2 * self._block.gamma * self._factor[some]
                steps.append(((i, j), self._select(some, pair[some], values, len(self._pairs[0]))))
        return steps

    def _sum(self, steps, width, U, put, xp):
        """Return the sum of products without some factors, times a matrix."""
        total = put(np.zeros((U.shape[0], len(self._coef), width)))
        for left_out, matrix in steps:
            total = total + self._sums(self._products(U, left_out, put, xp), matrix, put)
        return total

    def first(self, block: Block, put: Callable[[Any], Any]) -> Array:
        U, u, xp = self._at(block, put)
        alone = self._sum(self._first_steps, len(self._seen), U, put, xp)
        return alone - 2 * self._block.gamma * u * self._sum(self._whole, 1, U, put, xp)

    def second(self, block: Block, put: Callable[[Any], Any]) -> Array:
        U, u, xp = self._at(block, put)
        gamma, (one, other) = self._block.gamma, self._pairs
        alone = self._sum(self._first_steps, len(self._seen), U, put, xp)
        left, right = (xp.take(u, put(place), axis=2) for place in self._pairs)
        mixed = left * xp.take(alone, put(other), axis=2) + right * xp.take(alone, put(one), axis=2)
        envelope = 4 * gamma**2 * left * right - put(np.where(one == other, 2 * gamma, 0.0))
        answer = self._sum(self._second_steps, len(one), U, put, xp) - 2 * gamma * mixed
        return answer + envelope * self._sum(self._whole, 1, U, put, xp)

    def _at(self, block, put):
        """Return (the encodings, those of them that are `seen`, (n_rows, 1, n_seen), the
        namespace), in float64."""
        U = put(block.dense())
        xp = namespace(U)
        U = xp.astype(U, put(np.zeros(1)).dtype, copy=False)
        return U, xp.take(U, put(self._seen), axis=1)[:, None, :], xp


def kind_of_part(block: FeatureBlock) -> type[Part]:
    """Return the class that computes the derivatives of the features of a block."""
    return PARTS[type(block)]


# {kind of features: the class of their derivatives}.
PARTS: dict[type[FeatureBlock], type[Part]] = {
    NeuronBlock: NeuronPart,
    LinearBlock: NeuronPart,
    MonomialBlock: MonomialPart,
    BumpBlock: BumpPart,
}


# ---------------------------------------------------------------- arrays


def _places(seen, n):
    """Return where each of n encodings stands in `seen`; -1 for those that are not there."""
    place = np.full(n, -1)
    place[seen] = np.arange(len(seen))
    return place


def _pairs_of_one_column(column):
    """Return the places (a, b), a <= b, of pairs of encodings of one column."""
    by_column = {}
    for place, j in enumerate(column.tolist()):
        by_column.setdefault(j, []).append(place)
    pairs = [
        (a, b) for places in by_column.values() for k, a in enumerate(places) for b in places[k:]
    ]
    return tuple(np.array(pairs, np.int64).reshape(-1, 2).T.copy())


def _numbers(pairs):
    """Return a function that looks up pairs of places, elementwise: their indices in `pairs`, -1
    where they are none."""
    index = {
        pair: p for p, pair in enumerate(zip(*(places.tolist() for places in pairs), strict=True))
    }
    return lambda left, right: np.array(
        [index.get(pair, -1) for pair in zip(left.tolist(), right.tolist(), strict=True)]
    )


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
            total = total + xp.take(values, put(np.maximum(layer, 0)), axis=2) * put(
                1.0 * (layer >= 0)
            )
    return total


def _times_coef(weights, coef):
    """Return the matrix (n_features, n_outputs n_weights) of coef_kj weights_jv, sparse if the
    weights are."""
    if is_sparse(weights):
        from scipy.sparse import csr_array, hstack

        return hstack([csr_array(weights * c[:, None]) for c in coef], format="csr")
    return (weights[:, None, :] * coef.T[:, :, None]).reshape(len(weights), -1)


def _thinned(matrix):
    """Return a sparse matrix as it is, or dense where it is small."""
    return matrix.toarray() if matrix.shape[0] * matrix.shape[1] <= MOST_DENSE else matrix
