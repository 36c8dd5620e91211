"""A block of rows in memory, dense or CSR: sums and products, in slices of rows on threads, by
compiled kernels and BLAS.

A sum or product is computed slice by slice. A slice is so large that a thread is busy with it for
half a millisecond or more. Slices depend on shapes alone and their sums are added up in order: the
same bits for any number of threads.

Within a slice, the functions at the end of this file compute with the features of one kind. The
kernels of `_core` make most features tile by tile: some rows by some features, which stay in the
cache. Features that are monomials of degree 1 or 2 of their inputs u need no tile: with U the
matrix of the inputs, the moments U'v (degree 1) and U'diag(v)U (degree 2) hold the correlations of
all these features with v; their sum with coefficients c is, for degree 1, a product of U with a
vector. `moments_cost_less` compares the costs of both ways.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from functools import cached_property, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._base.checks import is_sparse
from .._base.csr import csr_arrays
from .._base.threads import Workers, single_threaded_blas
from .._core.boxes import common
from .._core.features import PANEL
from .._core.moments import by_sign, entry_extremes, second_moments
from .._core.rows import RowSlice
from ..columns.encoder import ColumnEncoder, EncodedMatrix
from .block import Block, wider_extremes
from .few_values import FewValues

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike

    from .._base.types import DenseOrCSR
    from .protocols import FeatureBlockLike, FeatureSetLike, ProjectionLike

# A slice of rows has this many feature values: half a millisecond of work, against some 20
# microseconds to hand a slice to a thread. The number of slices is a multiple of 4, which divides
# evenly among few threads; fewer than two slices stay on the calling thread.
SLICE_ELEMENTS = 2**19
SLICES_MULTIPLE = 4
# The fewest rows of a slice: as many as a tile of the kernels has.
FEWEST_ROWS = 64
# The fewest rows of a slice for each output: to add up the sums of a slice takes as long as to
# compute with a few rows.
ROWS_AN_OUTPUT = 8
# The most numbers of X in a slice: where X is not contiguous, a thread copies the slice.
SLICE_NUMBERS = 2**20
# With at most this many numbers in X, BLAS is not limited to one thread: it uses one anyway, and to
# set the limit takes longer than to predict a row.
FEW_NUMBERS = 2**11
# The most numbers in the inputs of monomials that are kept beside X during a fit: a gigabyte.
MOST_KEPT = 2**27
# The fewest rows that are projected at a time: each product arranges the random matrix in memory.
PROJECTED_ROWS = 128
# Up to this many columns of a Gram matrix are computed as correlations, and not by a matrix
# product.
FEW_COLUMNS = 4
# A Gram matrix of more than GRAM_PANEL features is made in panels of this many, from GRAM_ROWS rows
# at a time, whose features are made GRAM_PART_ROWS rows at a time.
GRAM_PANEL, GRAM_ROWS, GRAM_PART_ROWS = 1024, 2048, 128
# With at most this many different weights, beside 0, a Gram matrix of features with `heights` is
# made by counting the rows of each weight, of whose bits at least BITS_ROWS rows are made at a
# time.
FEW_WEIGHTS = 4
BITS_ROWS = 2**13
# The number of rows in a part of the kernel matrix.
KERNEL_ROWS = 256
# The number of rows that are copied at a time for sums over the columns.
COPIED_ROWS = 4096
# A feature value in a tile takes as long as this many multiplications of a matrix product, or as
# reading and multiplying INPUTS_SPEED inputs.
PRODUCT_SPEED = 16
INPUTS_SPEED = 4
# The most numbers of X in a slice of rows for which a matrix of second moments is summed.
MOMENTS_SLICE = 2**19
# Up to this many outputs the compiled product with rows in C order is faster than that of BLAS,
# which copies such rows for more than one output, and converts them to float64 where they are
# float32 and the outputs are not.
FEW_OUTPUTS = 8
# To read an entry of CSR rows and add it to sums takes as long as this many feature values.
SPARSE_NORMAL = 5


class Scratch:
    """Memory of each thread that is used again and again: to allocate memory can take as long as to
    compute in it."""

    @cached_property
    def _here(self):
        """The arrays of this thread, by name; made at the first use, since predicting one row needs
        none."""
        return threading.local()

    def __call__(self, shape: tuple[int, ...], dtype: np.dtype, name: str = "left") -> np.ndarray:
        """Return a two-dimensional array of this thread, uninitialized; the next call with this
        name overwrites it."""
        size, arrays = shape[0] * shape[1] * dtype.itemsize, self._here.__dict__
        memory = arrays.get(name)
        if memory is None or len(memory) < size:
            memory = arrays[name] = np.empty(size, np.uint8)
        return memory[:size].view(dtype).reshape(shape)


class CoreBlock(Block):
    """An ndarray (any strides, never copied whole) or a CSR matrix, and the threads that work on
    it.

    While entered as a context manager it keeps its threads, the inputs of monomials, and the
    encodings of these rows by the last column encoder; otherwise they are made anew for each sum or
    product. In its methods the variable `block` is a `FeatureBlock`, not a block of rows.
    """

    X: DenseOrCSR
    workers: Workers
    scratch: Scratch
    dtype: np.dtype
    n_rows: int
    n_features_in: int

    def __init__(
        self,
        X: DenseOrCSR,
        workers: Workers,
        scratch: Scratch | None = None,
        *,
        keeps: bool = False,
    ):
        """Make a block of the rows of X.

        workers : the threads, which other blocks may share.
        scratch : memory, which may be shared with blocks that compute at other times; None: memory
            of its own.
        keeps : whether to keep results as if entered, on threads that another block has entered.
        """
        self.X, self.workers, self._kept, self._encoded = X, workers, {} if keeps else None, None
        self.scratch = Scratch() if scratch is None else scratch
        self.dtype = X.dtype
        self.n_rows, self.n_features_in = X.shape

    def encoded(self, encoder: ColumnEncoder) -> CoreBlock:
        """Return the block of the encodings that a column encoder makes of these rows: while
        entered, the same object each time.

        Dense rows are encoded slice by slice, CSR rows at once.
        """
        if self._encoded is not None and self._encoded[0] is encoder:
            return self._encoded[1]
        shown = self.on_same_threads(
            encoder.transform(self.X) if is_sparse(self.X) else EncodedMatrix(self.X, encoder)
        )
        if self._kept is not None:
            self._encoded = encoder, shown
        return shown

    def on_same_threads(self, X: DenseOrCSR) -> CoreBlock:
        """Return a block of another matrix, which shares the threads and keeps results if this
        block does."""
        return CoreBlock(X, self.workers, self.scratch, keeps=self._kept is not None)

    def __enter__(self) -> Self:
        self.workers.__enter__()
        self._kept = {}
        return self

    def __exit__(self, *error: Any) -> None:
        self._kept = self._encoded = None
        self.workers.__exit__(*error)

    def _each_slice(self, function, work, at_least=0):
        """Yield function(slice) for slices of the rows, in order, on the threads.

        work : the cost of a row, in units of the time that one feature value takes.
        at_least : fewest rows of a slice.
        """
        row_size = (
            max(1, self.X.nnz // max(1, self.n_rows)) if is_sparse(self.X) else self.n_features_in
        )
        n_slices = self.n_rows * max(work / SLICE_ELEMENTS, row_size / SLICE_NUMBERS)
        n_slices = 1 if n_slices < 2 else -(-n_slices // SLICES_MULTIPLE) * SLICES_MULTIPLE
        size = max(FEWEST_ROWS, at_least, int(-(-self.n_rows // n_slices) // -64 * -64))
        return self.workers.map(function, slices(self.n_rows, size))

    # ---------------------------------------------------------------- inputs and values of features

    def _prepare(self, features, squared=False):
        """Keep the inputs of monomials while entered; return, for each block of features, whether
        moments cost less."""
        for block in features.blocks if self._kept is not None else ():
            fits = (len(self._kept) + 1) * self.X.size <= MOST_KEPT
            if block.inputs_key is not None and block.inputs_key not in self._kept and fits:
                self._kept[block.inputs_key] = block.made_inputs(self.X)
        return [moments_cost_less(block, self.X, squared) for block in features.blocks]

    def _inputs(self, block, rows):
        """Return what a block of features is a function of: these rows, or what it makes of them.

        rows : a slice, or indices
        """
        kept = self._kept.get(block.inputs_key) if self._kept else None
        X = self.X if kept is None else kept
        if isinstance(X, EncodedMatrix) or not (
            isinstance(rows, slice) and rows.stop - rows.start == self.n_rows
        ):
            X = _rows_at(X, rows)
        if kept is not None:
            return X
        return _in_order(X) if block.inputs_key is None else block.made_inputs(X)

    def _is_identity(self, features):
        """Return whether Phi is X itself."""
        return len(features.blocks) == 1 and features.blocks[0].is_identity(self.n_features_in)

    def _phi(self, features, rows, name):
        """Return Phi of some rows, not to be written to: the rows themselves, or an array in the
        scratch of that name."""
        if self._is_identity(features) and not is_sparse(self.X):
            return _in_order(self.X[rows])
        shape = _n_of(rows), len(features)
        return self._fill(features, rows, self.scratch(shape, self.dtype, name))

    def _fill(self, features, rows, out):
        """Write Phi of some rows, a slice or indices, to out, in the order of the blocks of
        features; return it."""
        for block, values in features.by_block(out):
            U = self._inputs(block, rows)
            if block.is_matrix:
                values[:] = U @ block.matrix.T
            else:
                for panels, piece, packed_rows in _packed(block, U):
                    panels.transform(packed_rows, values[piece])
        return out

    # ---------------------------------------------------------------- sums over rows and features

    def correlate(self, features: FeatureSetLike, v: np.ndarray) -> np.ndarray:
        return self._correlate(features, v, squared=False)

    def correlate_squares(self, features: FeatureSetLike, v: np.ndarray) -> np.ndarray:
        return self._correlate(features, v, squared=True)

    def correlate_pair(self, features: FeatureSetLike, v: np.ndarray) -> np.ndarray:
        outputs = np.ascontiguousarray(np.atleast_2d(np.asarray(v, np.float64)))
        totals = [np.zeros((2, len(outputs), 0))]

        for block in features.blocks:

            def part(rows, block=block):
                sums = np.zeros((2, len(outputs), _round_up(len(block))))
                v = outputs[:, rows]
                for panels, piece, packed_rows in _packed(block, self._inputs(block, rows)):
                    panels.correlate(
                        packed_rows,
                        v[:, piece],
                        sums[0],
                        sine=sums[1] if block.is_periodic else None,
                    )
                return sums

            totals.append(sum(self._each_slice(part, len(block)))[:, :, : len(block)])
        total = np.concatenate(totals, axis=2)
        return features.from_blocks(total if np.ndim(v) == 2 else total[:, 0])

    def _correlate(self, features, v, squared):
        """Return Phi' v for each output v, or (Phi * Phi)' v where squared: the sums of slices,
        added up in order."""
        if len(features) == 0 or self.n_rows == 0:
            return np.zeros((*np.shape(v)[:-1], len(features)))
        outputs = np.ascontiguousarray(np.atleast_2d(np.asarray(v, np.float64)))
        moments, totals = self._prepare(features, squared), []

        def part(rows):
            asked = zip(features.blocks, moments, strict=True)
            return [
                _sums(b, self._inputs(b, rows), outputs[:, rows], squared, m, self.scratch)
                for b, m in asked
            ]

        work, at_least = zip(*[_work(block, self.X) for block in features.blocks], strict=True)
        with single_threaded_blas() if any(moments) else nullcontext():
            for sums in self._each_slice(
                part, sum(work), max(*at_least, ROWS_AN_OUTPUT * len(outputs))
            ):
                totals = [a + b for a, b in zip(totals, sums, strict=True)] if totals else sums
        for i, block in enumerate(features.blocks):
            if moments[i]:
                totals[i] = block.correlations_from_moments(totals[i], squared)
            else:
                totals[i] = totals[i][:, : len(block)]
        total = totals[0] if len(totals) == 1 else np.hstack(totals)
        return features.from_blocks(total).reshape(*np.shape(v)[:-1], len(features))

    def apply(self, features: FeatureSetLike, coef: np.ndarray) -> np.ndarray:
        coef = np.ascontiguousarray(coef, np.float64)
        shape = *coef.shape[:-1], self.n_rows
        outputs = features.to_blocks(coef if coef.ndim == 2 else coef[None])
        f, moments = np.zeros((len(outputs), self.n_rows)), self._prepare(features)

        def part(rows):
            for (block, c), by_moments in zip(features.by_block(outputs), moments, strict=True):
                _apply(block, self._inputs(block, rows), c, f[:, rows], by_moments)

        # to plan slices takes longer than to predict a row
        if 0 < self.n_rows <= FEWEST_ROWS and self.X.size <= FEW_NUMBERS:
            part(slice(0, self.n_rows))
            return f.reshape(shape)
        work = sum(
            len(block) if block.moment_degree == 2 else _work(block, self.X)[0]
            for block in features.blocks
        )
        with (
            single_threaded_blas() if any(moments) and self.X.size > FEW_NUMBERS else nullcontext()
        ):
            for _ in self._each_slice(part, work):
                pass
        return f.reshape(shape)

    def normal(
        self, features: FeatureSetLike, h: np.ndarray, coef: np.ndarray, shift: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        f, total = np.repeat(-shift[:, None], self.n_rows, axis=1), np.zeros(coef.shape)
        if not self._is_identity(features):
            f += self.apply(features, coef)
            return f, self.correlate(features, h * f)

        def part(rows):  # X is read once for both
            sums = np.zeros(coef.shape)
            if is_sparse(self.X):
                RowSlice(*csr_arrays(self.X, rows)).normal(coef, h[:, rows], f[:, rows], sums)
                return sums
            X = _in_order(self.X[rows])
            if X.flags.c_contiguous:
                RowSlice(X).normal(coef, h[:, rows], f[:, rows], sums)
            else:
                f[:, rows] += (X @ coef.T).T
                sums += (X.T @ (h[:, rows] * f[:, rows]).T).T
            return sums

        if is_sparse(self.X):
            a_row = max(1, self.X.nnz // max(1, self.n_rows))
            # with fewer rows, to add up the sums of a slice would take longer than to make them
            work, at_least = SPARSE_NORMAL * a_row, 8 * self.n_features_in // a_row
        else:
            work, at_least = -(-self.n_features_in // INPUTS_SPEED), 0
        with single_threaded_blas():
            for sums in self._each_slice(part, work, at_least):
                total += sums
        return f, total

    def transform(self, features: FeatureSetLike) -> np.ndarray:
        return self.fill(features, np.empty((self.n_rows, len(features)), self.dtype))

    def fill(self, features: FeatureSetLike, phi: np.ndarray) -> np.ndarray:
        """Write Phi to an array (n_rows, len(features)), float32 or float64, of any strides; return
        it."""
        self._prepare(features)

        def part(rows):
            if features.order is None:
                self._fill(features, rows, phi[rows])
            else:
                phi[rows] = features.from_blocks(
                    self._fill(features, rows, self.scratch(phi[rows].shape, self.dtype))
                )

        for _ in self._each_slice(part, max(len(features), PANEL)):
            pass
        return phi

    def project(self, projection: ProjectionLike) -> np.ndarray:
        out = np.empty((self.n_rows, projection.n_projections), self.dtype)
        work = projection.cost(self.X) / PRODUCT_SPEED
        with single_threaded_blas(), nullcontext() if self._kept is not None else self:
            for columns, project in projection.parts(self.dtype):

                def part(rows):
                    project(_in_order(_rows_at(self.X, rows)), out[rows, columns])

                for _ in self._each_slice(part, work, PROJECTED_ROWS):
                    pass
        return out

    def map_parts(
        self, function: Callable[[Any, Block], np.ndarray], encoder: ColumnEncoder | None, size: int
    ) -> np.ndarray:
        def part(rows):
            X = _rows_at(self.X, rows)
            return function(
                X, CoreBlock(X if encoder is None else encoder.transform(X), Workers(1))
            )

        with single_threaded_blas():
            return np.concatenate(
                list(self.workers.map(part, slices(self.n_rows, size) or [slice(0, 0)]))
            )

    def take(self, index: np.ndarray) -> DenseOrCSR:
        return self.X[index]

    def dense(self) -> np.ndarray:
        return self.X.toarray() if is_sparse(self.X) else self.X

    # ---------------------------------------------------------------- matrices of products

    def gram(
        self,
        left: FeatureSetLike,
        right: FeatureSetLike | np.ndarray,
        weights: np.ndarray,
        dtype: DTypeLike | None = None,
        center: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return Phi_left' diag(weights) Phi_right, as in `Block.gram`; rows of weight zero cost
        nothing.

        Memory: a slice of at most max(2**19, 4 * GRAM_PANEL**2) elements a thread, or GRAM_ROWS
        rows of all features.
        """
        shared = None
        if isinstance(right, np.ndarray):
            shared, right = right, left.take(right)
        if 0 < len(right) <= FEW_COLUMNS < len(left):
            return self.correlate(left, weights * self.transform(right).T).T
        total = np.zeros((len(left), len(right)))
        if not total.size:
            return total
        self._prepare(left), self._prepare(right)
        # Features without a bound may have means far above their spread, which a product in float32
        # would lose.
        bounded = all(block.is_bounded for block in (*left.blocks, *right.blocks))
        dtype = np.dtype(dtype or self.dtype) if bounded else np.dtype(np.float64)
        center = None if center is None else left.to_blocks(center)
        have_heights = [block.heights is not None for block in (*left.blocks, *right.blocks)]
        few = _few_different(weights) if any(have_heights) and center is None else None
        if all(have_heights) and few is not None:
            self._add_gram_of_bits(left, right, shared, weights, few, total)
        else:
            with single_threaded_blas():
                if right is left and len(left) > GRAM_PANEL:
                    self._add_gram_by_panels(left, weights, dtype, center, few is not None, total)
                else:
                    self._add_gram_by_slices(left, right, shared, weights, dtype, center, total)
        return left.from_blocks(right.from_blocks(total), axis=0)

    def _add_gram_of_bits(self, left, right, shared, weights, few, total):
        """Add to `total` the product of features that have `heights`.

        An entry is the sum, over the few different weights, of the weight times the number of its
        rows in which both features are not 0, times the heights of both.
        """
        if shared is not None:
            shared = right.to_blocks(left.places[shared])

        def count(rows):
            """Return, for each weight, the numbers of its rows in the slice, times the weight."""
            found = []
            for weight in few:
                index = rows.start + np.flatnonzero(weights[rows] == weight)
                if len(index):
                    bits = self._bits(left, _as_slice(index))
                    other = bits if right is left else None if shared is None else bits[shared]
                    other = self._bits(right, _as_slice(index)) if other is None else other
                    counts = np.zeros(total.shape, np.int64)
                    common(bits, other, counts, symmetric=right is left)
                    found.append((weight, counts))
            return found

        for found in self._each_slice(count, len(left) + len(right), BITS_ROWS):
            for weight, counts in found:
                total += weight * counts
        heights, others = (np.concatenate([b.heights for b in f.blocks]) for f in (left, right))
        total *= heights[:, None]
        total *= others
        if right is left:
            total += np.tril(total, -1).T

    def _bits(self, features, rows):
        """Return, as bits, in which of some rows, a slice or indices, features are not 0, in the
        order of the blocks."""
        out = np.empty((len(features), -(-_n_of(rows) // 64)), np.uint64)
        for block, bits in features.by_block(out.T):
            for panels, piece, packed_rows in _packed(block, self._inputs(block, rows)):
                start = (piece.start or 0) // 64
                of_piece = panels.bits(packed_rows)
                bits[start : start + of_piece.shape[1]] = of_piece.T
        return out

    def _add_gram_by_slices(self, left, right, shared, weights, dtype, center, total):
        """Add to `total` a product of matrices for each slice of the rows."""
        if shared is not None:
            shared = right.to_blocks(left.places[shared])

        def product(part):
            rows = part.start + np.flatnonzero(weights[part])
            h = weights[rows, None]
            if len(rows) == part.stop - part.start:
                rows = part
            phi = self._phi(left, rows, "left").astype(dtype, copy=False)
            if center is not None:
                phi = np.subtract(phi, center, out=self.scratch(phi.shape, phi.dtype))
            # X itself, all rows with the same weight: no product has to be stored
            if right is left and len(h) and (h == h[0]).all() and self._is_identity(left):
                return h[0] * (phi.T @ phi)
            if right is left:
                phi = np.multiply(
                    phi, np.sqrt(h).astype(dtype), out=self.scratch(phi.shape, phi.dtype)
                )
                return phi.T @ phi
            psi = (
                phi[:, shared]
                if shared is not None
                else self._phi(right, rows, "right").astype(dtype, copy=False)
            )
            return phi.T @ np.multiply(
                psi, h.astype(dtype), out=self.scratch(psi.shape, psi.dtype, "right")
            )

        for more in self._each_slice(
            product, len(left) + len(right), 4 * min(len(right), GRAM_PANEL)
        ):
            total += more

    def _add_gram_by_panels(self, features, weights, dtype, center, by_bits, total):
        """Add to `total` a product for each pair of panels of the features: for so many features, a
        matrix as large as `total` for each slice would take too much memory.

        by_bits : whether features that have `heights` are multiplied with each other by their bits
        """
        have_bits = np.repeat(
            [by_bits and block.heights is not None for block in features.blocks],
            [len(block) for block in features.blocks],
        )
        if have_bits.any():
            boxes = features.take(features.to_blocks(np.arange(len(features)))[have_bits])
            total[np.ix_(have_bits, have_bits)] = self.gram(boxes, boxes, weights)
        panels, there = _panels(have_bits), np.flatnonzero(weights)
        pairs = [
            (one, other)
            for i, one in enumerate(panels)
            for other in panels[: i + 1]
            if not (have_bits[one.start] and have_bits[other.start])
        ]
        phi = np.empty((min(GRAM_ROWS, len(there)), len(features)), dtype)

        def fill(part):
            h = weights[index[part], None]
            values = self._phi(features, index[part], "left")
            if center is not None:
                values = np.subtract(values, center, out=phi[part])
            np.multiply(values, np.sqrt(h).astype(dtype), out=phi[part])

        def add(pair):
            one, other = pair
            total[one, other] += phi[: len(index), one].T @ phi[: len(index), other]

        with self.workers:
            for chunk in slices(len(there), GRAM_ROWS):
                index = there[chunk]
                for task, parts in ((fill, slices(len(index), GRAM_PART_ROWS)), (add, pairs)):
                    for _ in self.workers.map(task, parts):
                        pass
        _mirror(total, panels)

    def kernel(self, features: FeatureSetLike, weights: np.ndarray) -> np.ndarray:
        """Return Phi diag(weights) Phi', float64 of shape (n_rows, n_rows), for few rows and
        weights >= 0.

        Memory: n_rows * 1,024 elements beside the result.
        """
        total = np.zeros((self.n_rows, self.n_rows))
        parts = slices(self.n_rows, KERNEL_ROWS)
        for places in slices(len(features), GRAM_PANEL):
            places = np.arange(places.start, places.stop)
            phi = self.transform(features.take(places)) * np.sqrt(weights[places]).astype(
                self.dtype
            )

            def add(part, phi=phi):
                total[part, : part.stop] += phi[part] @ phi[: part.stop].T

            with single_threaded_blas():
                for _ in self.workers.map(add, parts):
                    pass
        _mirror(total, parts)
        return total

    # ---------------------------------------------------------------- the columns themselves

    def extremes(self) -> np.ndarray:
        X = self.X
        if not is_sparse(X):
            return reduce(
                wider_extremes,
                self._each_slice(lambda rows: _extremes(X[rows]), self.n_features_in),
            )
        extremes = np.full((2, self.n_features_in), [[np.inf], [-np.inf]])
        count = np.zeros(self.n_features_in, np.int64)
        data, indices, indptr = csr_arrays(X)
        entry_extremes(data[: indptr[-1]], indices[: indptr[-1]], extremes, count)
        has_zeros = count < self.n_rows  # entries that are not stored
        extremes[:, has_zeros] = np.clip(
            extremes[:, has_zeros], [[-np.inf], [0.0]], [[0.0], [np.inf]]
        )
        return extremes

    def few_values(self) -> FewValues:
        return FewValues.of_rows(self.X)

    def scaled_sum(
        self, weight: np.ndarray, unit: np.ndarray, mean: np.ndarray | None = None
    ) -> np.ndarray:
        total = np.zeros(self.n_features_in)
        for rows in slices(self.n_rows, COPIED_ROWS):
            x = self.X[rows] / unit
            total += (weight[rows, None] * (x if mean is None else (x - mean) ** 2)).sum(axis=0)
        return total

    def weighted_sum(self, weight: np.ndarray) -> np.ndarray:
        with single_threaded_blas():
            return sum(
                weight[rows] @ self.X[rows].astype(np.float64)
                for rows in slices(self.n_rows, COPIED_ROWS)
            )

    def largest_square_distance(self, center: np.ndarray) -> float:
        return max(
            _square_distances(self.X[rows], center).max()
            for rows in slices(self.n_rows, COPIED_ROWS)
        )

    @property
    def n_entries(self) -> int:
        return self.X.nnz

    @property
    def longest_row(self) -> int:
        return np.diff(self.X.indptr).max(initial=1)

    def sparse_moments(self, weight: np.ndarray, unit: np.ndarray) -> np.ndarray:
        data, weight = self.X.data / unit[self.X.indices], np.repeat(weight, np.diff(self.X.indptr))
        return np.stack(
            [
                np.bincount(self.X.indices, weight * power, self.n_features_in)
                for power in (data, data * data)
            ]
        )


def slices(n: int, size: int) -> list[slice]:
    """Cut n rows, or features, into slices of `size`, the last of which may be shorter."""
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def _extremes(x):
    """Return `Block.extremes` of an ndarray. Rows in C order are taken as fewer, longer lines,
    which NumPy compares faster."""
    (n, d), lines = x.shape, FEWEST_ROWS if x.flags.c_contiguous else 1
    if n > lines and n % lines:
        return wider_extremes(_extremes(x[: -(n % lines)]), _extremes(x[-(n % lines) :]))
    lines = lines if n % lines == 0 else 1
    answers = []
    for compare, start in ((np.fmin, np.inf), (np.fmax, -np.inf)):
        of_lines = compare.reduce(x.reshape(n // lines, lines * d), axis=0, initial=start)
        answers.append(compare.reduce(of_lines.reshape(lines, d), axis=0))
    return np.array(answers, np.float64)


def _in_order(X):
    """Return X, copied in C order unless it is in C or Fortran order.

    BLAS takes no other order, and NumPy's own loops, which cost as much as the copy, sum in another
    order.
    """
    return X if is_sparse(X) or X.strides[0] == X.itemsize else np.ascontiguousarray(X)


def _rows_at(X, rows):
    """Return X[rows]; a slice of CSR rows shares the memory of X, where SciPy would copy it."""
    if not (is_sparse(X) and isinstance(rows, slice)):
        return X[rows]
    first, last = X.indptr[rows.start], X.indptr[rows.stop]
    indptr = X.indptr[rows.start : rows.stop + 1] - first
    return type(X)(
        (X.data[first:last], X.indices[first:last], indptr), shape=(len(indptr) - 1, X.shape[1])
    )


def _square_distances(rows, center):
    """Return the squared distance of each row, dense or CSR, to a point."""
    rows = rows.astype(np.float64)
    if not is_sparse(rows):
        return ((rows - center) ** 2).sum(axis=1)
    norms = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return np.maximum(norms - 2 * (rows @ center) + center @ center, 0.0)


# ---------------------------------------------------------------- a block of features, some rows

# Here `block` is a block of features, U are its inputs for some rows, v (n_outputs, n_rows) and c
# (n_outputs, len(block)).


def moments_cost_less(block: FeatureBlockLike, X: DenseOrCSR, squared: bool = False) -> bool:
    """Return whether moments of the inputs, by BLAS where they are dense, cost less than making the
    features."""
    if not block.moment_degree:
        return False
    if block.is_matrix:
        return not squared
    if block.is_identity(X.shape[1]):
        return True
    if is_sparse(X) and block.moment_degree == 1:
        return True
    return len(block) * PRODUCT_SPEED >= (X.shape[1] + 1) ** block.moment_degree


def _work(block, X):
    """Return (the time of `_sums` for a row in units of one feature value, the fewest rows of a
    slice)."""
    if not moments_cost_less(block, X):
        return len(block), 0
    width = X.nnz // max(1, X.shape[0]) + 1 if is_sparse(X) else X.shape[1] + 1
    if block.moment_degree == 1:
        return -(-width // INPUTS_SPEED), 0
    n_inputs = X.shape[1] + 1
    return width + width * width // PRODUCT_SPEED, max(
        n_inputs, min(64 * n_inputs, MOMENTS_SLICE // n_inputs)
    )


def _sums(block, U, v, squared, by_moments, scratch):
    """Return the sums over some rows from which the correlations of a block with v follow: float64
    (n_outputs, .).

    squared : whether the squares of the features are correlated with v.
    by_moments : whether to return moments of the inputs, which
        `FeatureBlock.correlations_from_moments` takes once they are added up over all rows; else
        correlations, padded to whole panels of the kernels.
    """
    if not by_moments:
        out = np.zeros((len(v), _round_up(len(block))))
        for panels, piece, rows in _packed(block, U):
            panels.correlate(rows, v[:, piece], out, squared)
        return out
    if block.moment_degree == 1 and _is_read_once(U, len(v)):
        total = np.zeros((len(v), U.shape[1]))
        RowSlice(U).correlate(v, total, squared)
        return total
    if squared:  # the square of a float32 may not be a float32
        U = U.astype(np.float64, copy=False)
        U = (
            U.power(2)
            if is_sparse(U)
            else np.multiply(U, U, out=scratch(U.shape, U.dtype, "squares"))
        )
    if block.moment_degree == 1:
        return (U.T @ v.T).T if is_sparse(U) else v @ U
    return np.array([_second_moments(U, each, scratch).ravel() for each in v])


def _apply(block, U, c, out, by_moments):
    """Add Phi c to out (n_outputs, n_rows); where `by_moments` and the features are linear, by a
    product with the inputs."""
    if not by_moments or block.moment_degree != 1:
        for panels, piece, rows in _packed(block, U):
            panels.apply(rows, c, out[:, piece])
        return
    c = block.coef_on_inputs(c, U.shape[1])
    if _is_read_once(U, len(c)):
        RowSlice(U).apply(np.ascontiguousarray(c), out)
    else:
        out += (U @ c.T).T


def _is_read_once(U, n_outputs):
    """Return whether the compiled product with the rows is faster than that of BLAS."""
    return not is_sparse(U) and U.flags.c_contiguous and n_outputs <= FEW_OUTPUTS


def _second_moments(U, v, scratch):
    """Return U' diag(v) U, float64."""
    if not is_sparse(U):
        size = float(np.abs(v).max(initial=0.0)) or 1.0  # v may be no float32
        scaled = scratch(U.shape, U.dtype)
        middle, end = by_sign(np.ascontiguousarray(U), v, size, scaled)
        plus, minus = scaled[:middle], scaled[middle:end]  # BLAS takes half the time for A'A
        return size * (plus.T @ plus - minus.T @ minus).astype(np.float64, copy=False)
    total = np.zeros((U.shape[1], U.shape[1]))
    second_moments(*csr_arrays(U), np.ascontiguousarray(v), total)
    return total + np.triu(total, 1).T


def _round_up(n_features):
    """Return the number of features in whole panels of the kernels."""
    return -(-n_features // PANEL) * PANEL


def _n_of(rows):
    """Return the number of rows in a slice or in indices."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def _as_slice(index):
    """Return ascending indices, at least one, as a slice where none is left out: it copies no
    rows."""
    first, last = index[0], index[-1]
    return slice(first, last + 1) if last - first == len(index) - 1 else index


def _few_different(weights):
    """Return the different weights other than 0, or None if they are more than FEW_WEIGHTS."""
    few, weights = [], weights[weights != 0]
    while len(weights) and len(few) < FEW_WEIGHTS:
        few.append(weights[0])
        weights = weights[weights != weights[0]]
    return None if len(weights) else few


def _panels(have_bits):
    """Cut features into panels of about equal length, at most GRAM_PANEL, in each of which all
    features have bits, or none."""
    ends, panels = [*(np.flatnonzero(np.diff(have_bits)) + 1), len(have_bits)], []
    for start, end in pairwise([0, *ends]):
        n_panels = -(-(end - start) // GRAM_PANEL)
        size = -(-(end - start) // n_panels)
        panels += [slice(i, min(i + size, end)) for i in range(start, end, size)]
    return panels


def _mirror(total, parts):
    """Copy what is below the blocks on the diagonal, transposed, to above them."""
    for part in parts:
        total[: part.start, part] = total[part, : part.start].T


def _packed(block, X):
    """Yield (the features of a block, a slice of the rows X, these rows), in the layout of the
    kernels.

    The slice is all rows, except where CSR rows are made dense, SLICE_NUMBERS numbers at a time.
    """
    if not is_sparse(X):
        yield block.packed(X.dtype, X.shape[1]), slice(None), block.rows_for_panels(X)
    elif not block.needs_dense_rows:
        yield block.packed(X.dtype, X.shape[1]), slice(None), RowSlice(*csr_arrays(X))
    else:
        used = block.used_inputs[0]
        panels = block.packed(X.dtype, len(used), among_used=True)
        n_rows = max(FEWEST_ROWS, SLICE_NUMBERS // max(1, len(used)) // FEWEST_ROWS * FEWEST_ROWS)
        for piece in slices(X.shape[0], n_rows):
            yield panels, piece, block.rows_for_panels(_rows_at(X, piece)[:, used].toarray())
