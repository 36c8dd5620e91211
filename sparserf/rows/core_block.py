"""A block of rows in memory, dense or CSR: sums and products, in slices of rows on threads, by compiled kernels and BLAS.

A question is answered slice by slice. A slice is so large that a thread is busy with it for half a millisecond or more, and
within it the kernels of `_core` make a tile of Phi at a time, which never leaves the cache (`tiles.py` knows how, for the
features of one kind). Slices depend on shapes alone and their sums are added up in order: the same bits for any number of
threads.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._base.checks import is_sparse
from .._base.threads import Workers, single_threaded_blas
from ..columns.stage import ColumnStage, EncodedMatrix
from . import tiles
from .block import Block, wider_extremes

if TYPE_CHECKING:

    from numpy.typing import DTypeLike

    from .._base.types import DenseOrCSR
    from ..features import FeatureSet, Projection

# Feature values in a slice of rows: half a millisecond of work, against some 20 microseconds to hand a slice to a thread. Fewer
# than two slices stay on the calling thread. The number of slices is a multiple of 4, which divides evenly among few threads.
SLICE_ELEMENTS = 2**19
SLICES_MULTIPLE = 4
# Fewest rows of a slice: those of a tile of the kernels.
FEWEST_ROWS = 64
# Most numbers of X in a slice, of which a thread makes a copy where X is not contiguous.
SLICE_NUMBERS = 2**20
# Most numbers in X for which BLAS is not told to use one thread: it does by itself, and telling it takes longer than to predict
# a row.
FEW_NUMBERS = 2**11
# Most numbers in the inputs of monomials that are kept beside X during a fit: a gigabyte.
MOST_KEPT = 2**27
# Fewest rows that are projected at a time: a matrix product arranges the random matrix in memory each time.
PROJECTED_ROWS = 128
# Most columns of a Gram matrix that are computed as correlations, one by one, and not as a product of matrices.
FEW_COLUMNS = 4
# A Gram matrix of more features than GRAM_PANEL is made panel by panel, for GRAM_ROWS rows at a time, whose features are made
# in parts of GRAM_PART_ROWS rows.
GRAM_PANEL, GRAM_ROWS, GRAM_PART_ROWS = 1024, 2048, 128
# Rows in a part of the kernel matrix.
KERNEL_ROWS = 256
# Rows that are copied at a time for sums over the columns.
COPIED_ROWS = 4096


class Scratch:
    """Memory of each thread that is overwritten at the next call: fresh memory can cost as much as what is done in it."""

    @cached_property
    def _here(self):
        return threading.local()

    def __call__(self, shape: tuple[int, ...], dtype: np.dtype, name: str = "left") -> np.ndarray:
        """Return a two-dimensional array of this thread, uninitialized: the memory of that name."""
        size, arrays = shape[0] * shape[1] * dtype.itemsize, self._here.__dict__
        memory = arrays.get(name)
        if memory is None or len(memory) < size:
            memory = arrays[name] = np.empty(size, np.uint8)
        return memory[:size].view(dtype).reshape(shape)


class CoreBlock(Block):
    """An ndarray (any strides, never copied whole) or a CSR matrix, and the threads that work on it.

    As a context manager it keeps its threads, the inputs of monomials and the last block seen through a column stage, for as
    long as it is entered. Otherwise these live for one question. In its methods `block` is a block of features.
    """

    X: DenseOrCSR
    workers: Workers
    scratch: Scratch
    dtype: np.dtype
    n_rows: int
    n_features_in: int

    def __init__(self, X: DenseOrCSR, workers: Workers, scratch: Scratch | None = None, *, keeps: bool = False):
        """workers, scratch : may be those of other blocks, scratch where one block is asked after the other.

        keeps : whether to keep what is computed once for many questions, as if entered, on threads that others entered.
        """
        self.X, self.workers, self._kept, self._staged = X, workers, {} if keeps else None, None
        self.scratch = Scratch() if scratch is None else scratch
        self.dtype = X.dtype
        self.n_rows, self.n_features_in = X.shape

    def staged(self, stage: ColumnStage) -> CoreBlock:
        """Return this block seen through a column stage: the same object each time while this is entered.

        Dense rows are transformed where they are sliced, CSR rows at once.
        """
        if self._staged is not None and self._staged[0] is stage:
            return self._staged[1]
        shown = self.on_same_threads(stage.transform(self.X) if is_sparse(self.X) else EncodedMatrix(self.X, stage))
        if self._is_entered:
            self._staged = stage, shown
        return shown

    def on_same_threads(self, X: DenseOrCSR) -> CoreBlock:
        """Return a block of another matrix, which shares the threads, and is entered if this is."""
        return CoreBlock(X, self.workers, self.scratch, keeps=self._is_entered)

    @property
    def _is_entered(self):
        return self._kept is not None

    def __enter__(self) -> Self:
        self.workers.__enter__()
        self._kept = {}
        return self

    def __exit__(self, *error: Any) -> None:
        self._kept = self._staged = None
        self.workers.__exit__(*error)

    def array(self, index: np.ndarray | None = None) -> DenseOrCSR:
        """Return the rows at these indices, or all rows, as an ndarray or CSR matrix."""
        if index is None:
            return self.X[:] if isinstance(self.X, EncodedMatrix) else self.X
        return tiles.some_rows(self.X, index)

    def _each_slice(self, function, work, at_least=0):
        """Yield function(slice) for slices of the rows, in order, on the threads.

        work : how many feature values take as long as the work for a row.
        at_least : fewest rows of a slice.
        """
        row_size = max(1, self.X.nnz // max(1, self.n_rows)) if is_sparse(self.X) else self.n_features_in
        n_slices = self.n_rows * max(work / SLICE_ELEMENTS, row_size / SLICE_NUMBERS)
        n_slices = 1 if n_slices < 2 else -(-n_slices // SLICES_MULTIPLE) * SLICES_MULTIPLE
        size = max(FEWEST_ROWS, at_least, int(-(-self.n_rows // n_slices) // -64 * -64))
        return self.workers.map(function, tiles.slices(self.n_rows, size))

    # ---------------------------------------------------------------- rows as features see them

    def _prepare(self, features, squared=False):
        """Keep the inputs of monomials while entered; return whether moments answer, for each block of features."""
        for block in features.blocks if self._kept is not None else ():
            fits = (len(self._kept) + 1) * self.X.size <= MOST_KEPT
            if block.envelope is not None and block.envelope not in self._kept and fits:
                self._kept[block.envelope] = tiles.inputs(block, self.X)
        return [tiles.by_moments(block, self.X, squared) for block in features.blocks]

    def _inputs(self, block, rows):
        """Return the `tiles.inputs` of a block of features for some rows, a slice or indices."""
        kept = self._kept.get(block.envelope) if self._kept else None
        X = self.X if kept is None else kept
        if isinstance(X, EncodedMatrix) or not (isinstance(rows, slice) and rows.stop - rows.start == self.n_rows):
            X = tiles.some_rows(X, rows)
        return tiles.inputs(block, X) if kept is None else X

    def _is_identity(self, features):
        """Return whether Phi is X itself."""
        return len(features.blocks) == 1 and features.blocks[0].is_identity(self.n_features_in)

    def _phi(self, features, rows, name):
        """Return Phi of some rows, to read only: the rows themselves, or made in the scratch of that name."""
        if self._is_identity(features) and not is_sparse(self.X):
            return tiles.in_order(self.X[rows])
        n_rows = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        return self._fill(features, rows, self.scratch((n_rows, len(features)), self.dtype, name))

    def _fill(self, features, rows, out):
        """Write Phi of some rows, a slice or indices, in the order of the blocks of features, into out; return it."""
        for block, values in features.by_block(out):
            tiles.transform(block, self._inputs(block, rows), values)
        return out

    # ---------------------------------------------------------------- sums over rows and features

    def correlate(self, features: FeatureSet, v: np.ndarray) -> np.ndarray:
        return self._correlate(features, v, squared=False)

    def correlate_squares(self, features: FeatureSet, v: np.ndarray) -> np.ndarray:
        return self._correlate(features, v, squared=True)

    def correlate_pair(self, features: FeatureSet, v: np.ndarray) -> np.ndarray:
        outputs, totals = np.asarray(v, np.float64)[None], [np.zeros((2, 1, 0))]

        for block in features.blocks:

            def part(rows, block=block):
                return tiles.sums_of_pair(block, self._inputs(block, rows), outputs[:, rows])

            totals.append(sum(self._each_slice(part, len(block)))[:, :, : len(block)])
        total = np.concatenate(totals, axis=2)[:, 0]
        return features.from_blocks(total)

    def _correlate(self, features, v, squared):
        if len(features) == 0 or self.n_rows == 0:
            return np.zeros((*np.shape(v)[:-1], len(features)))
        outputs = np.ascontiguousarray(np.atleast_2d(np.asarray(v, np.float64)))
        moments, totals = self._prepare(features, squared), []

        def part(rows):
            asked = zip(features.blocks, moments, strict=True)
            return [tiles.sums(b, self._inputs(b, rows), outputs[:, rows], squared, m, self.scratch) for b, m in asked]

        work = sum(tiles.work(block, self.X) for block in features.blocks)
        at_least = max(tiles.fewest_rows(block, self.X) for block in features.blocks)
        with single_threaded_blas() if any(moments) else nullcontext(), np.errstate(over="ignore", invalid="ignore"):
            for sums in self._each_slice(part, work, at_least):
                totals = [total + more for total, more in zip(totals, sums, strict=True)] if totals else sums
        answers = zip(features.blocks, totals, moments, strict=True)
        total = [tiles.correlations(block, sums, squared, m) for block, sums, m in answers]
        total = total[0] if len(total) == 1 else np.hstack(total)
        return features.from_blocks(total).reshape(*np.shape(v)[:-1], len(features))

    def apply(self, features: FeatureSet, coef: np.ndarray) -> np.ndarray:
        coef = np.ascontiguousarray(coef, np.float64)
        shape = *coef.shape[:-1], self.n_rows
        outputs = features.to_blocks(coef if coef.ndim == 2 else coef[None])
        f, moments = np.zeros((len(outputs), self.n_rows)), self._prepare(features)

        def part(rows):
            for (block, c), by_moments in zip(features.by_block(outputs), moments, strict=True):
                tiles.apply(block, self._inputs(block, rows), c, f[:, rows], by_moments)

        if 0 < self.n_rows <= FEWEST_ROWS and self.X.size <= FEW_NUMBERS:  # one slice: to plan more takes longer than a row
            part(slice(0, self.n_rows))
            return f.reshape(shape)
        work = sum(len(block) if block.moment_order == 2 else tiles.work(block, self.X) for block in features.blocks)
        with single_threaded_blas() if any(moments) and self.X.size > FEW_NUMBERS else nullcontext():
            for _ in self._each_slice(part, work):
                pass
        return f.reshape(shape)

    def normal(self, features: FeatureSet, h: np.ndarray, coef: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f, total = np.repeat(-shift[:, None], self.n_rows, axis=1), np.zeros(coef.shape)
        if not self._is_identity(features):
            f += self.apply(features, coef)
            return f, self.correlate(features, h * f)

        def part(rows):  # X is read once for both
            return tiles.normal(self.X, rows, h[:, rows], coef, f[:, rows])

        with single_threaded_blas():
            for sums in self._each_slice(part, *tiles.normal_work(self.X)):
                total += sums
        return f, total

    def transform(self, features: FeatureSet) -> np.ndarray:
        phi = np.empty((self.n_rows, len(features)), self.dtype)

        self._prepare(features)

        def part(rows):
            if features.order is None:
                self._fill(features, rows, phi[rows])
            else:
                phi[rows] = features.from_blocks(self._fill(features, rows, self.scratch(phi[rows].shape, self.dtype)))

        for _ in self._each_slice(part, max(len(features), tiles.PANEL)):
            pass
        return phi

    def project(self, projection: Projection) -> np.ndarray:
        out = np.empty((self.n_rows, projection.n_projections), self.dtype)
        work = projection.cost(self.X) / tiles.PRODUCT_SPEED
        with single_threaded_blas(), nullcontext() if self._is_entered else self:
            for columns, project in projection.parts(self.dtype):

                def part(rows):
                    project(tiles.in_order(tiles.some_rows(self.X, rows)), out[rows, columns])

                for _ in self._each_slice(part, work, PROJECTED_ROWS):
                    pass
        return out

    # ---------------------------------------------------------------- matrices of products

    def gram(
        self, left: FeatureSet, right: FeatureSet | np.ndarray, weights: np.ndarray, dtype: DTypeLike | None = None,
        center: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return Phi_left' diag(weights) Phi_right, as `Block.gram` says; rows of weight zero cost nothing.

        Memory: a slice of at most max(2**19, 4 * GRAM_PANEL**2) elements a thread, or GRAM_ROWS rows of all features.
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
        # Features without a bound may have means far above their spread, which a product in float32 would lose.
        bounded = all(block.is_bounded for block in (*left.blocks, *right.blocks))
        dtype = np.dtype(dtype or self.dtype) if bounded else np.dtype(np.float64)
        center = None if center is None else left.to_blocks(center)
        with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
            if right is left and len(left) > GRAM_PANEL:
                self._add_gram_by_panels(left, weights, dtype, center, total)
            else:
                self._add_gram_by_slices(left, right, shared, weights, dtype, center, total)
        return right.from_blocks(left.from_blocks(total.T).T)

    def _add_gram_by_slices(self, left, right, shared, weights, dtype, center, total):
        """Add to `total` a product of matrices for each slice of the rows."""
        if shared is not None:
            shared = right.to_blocks(left.places[shared])

        @np.errstate(over="ignore", invalid="ignore")
        def product(part):
            kept = part.start + np.flatnonzero(weights[part])
            h = weights[kept, None]
            if len(kept) == part.stop - part.start:
                kept = part
            phi = self._phi(left, kept, "left").astype(dtype, copy=False)
            if center is not None:
                phi = np.subtract(phi, center, out=self.scratch(phi.shape, phi.dtype))
            if right is left and len(h) and (h == h[0]).all() and self._is_identity(left):  # nothing to write
                return h[0] * (phi.T @ phi)
            if right is left:
                phi = np.multiply(phi, np.sqrt(h).astype(dtype), out=self.scratch(phi.shape, phi.dtype))
                return phi.T @ phi
            psi = phi[:, shared] if shared is not None else self._phi(right, kept, "right").astype(dtype, copy=False)
            return phi.T @ np.multiply(psi, h.astype(dtype), out=self.scratch(psi.shape, psi.dtype, "right"))

        for more in self._each_slice(product, len(left) + len(right), 4 * min(len(right), GRAM_PANEL)):
            total += more

    def _add_gram_by_panels(self, features, weights, dtype, center, total):
        """Add to `total` a product for each pair of panels of the features: no slice is worth a matrix as large as `total`."""
        panels, there = tiles.slices(len(features), GRAM_PANEL), np.flatnonzero(weights)
        pairs = [(one, other) for i, one in enumerate(panels) for other in panels[: i + 1]]
        phi = np.empty((min(GRAM_ROWS, len(there)), len(features)), dtype)

        @np.errstate(over="ignore", invalid="ignore")
        def fill(part):
            h = weights[kept[part], None]
            values = self._phi(features, kept[part], "left")
            if center is not None:
                values = np.subtract(values, center, out=phi[part])
            np.multiply(values, np.sqrt(h).astype(dtype), out=phi[part])

        @np.errstate(over="ignore", invalid="ignore")
        def add(pair):
            one, other = pair
            total[one, other] += phi[: len(kept), one].T @ phi[: len(kept), other]

        with nullcontext() if self._is_entered else self:
            for some in tiles.slices(len(there), GRAM_ROWS):
                kept = there[some]
                for task, parts in ((fill, tiles.slices(len(kept), GRAM_PART_ROWS)), (add, pairs)):
                    for _ in self.workers.map(task, parts):
                        pass
        for panel in panels:
            total[: panel.start, panel] = total[panel, : panel.start].T

    def kernel(self, features: FeatureSet, weights: np.ndarray) -> np.ndarray:
        """Return Phi diag(weights) Phi', float64 of shape (n_rows, n_rows), for few rows and weights >= 0.

        Memory: n_rows * 1,024 elements beside it.
        """
        total = np.zeros((self.n_rows, self.n_rows))
        parts = tiles.slices(self.n_rows, KERNEL_ROWS)
        for some in tiles.slices(len(features), GRAM_PANEL):
            some = np.arange(some.start, some.stop)
            phi = self.transform(features.take(some)) * np.sqrt(weights[some]).astype(self.dtype)

            def add(part, phi=phi):
                total[part, : part.stop] += phi[part] @ phi[: part.stop].T

            with single_threaded_blas():
                for _ in self.workers.map(add, parts):
                    pass
        for part in parts:
            total[: part.start, part] = total[part, : part.start].T
        return total

    # ---------------------------------------------------------------- the columns themselves

    def extremes(self) -> np.ndarray:
        X = self.X
        if is_sparse(X):
            return np.stack([x.toarray().astype(np.float64).ravel() for x in (X.min(axis=0), X.max(axis=0))])
        parts = (X[some] for some in tiles.slices(self.n_rows, COPIED_ROWS))
        return reduce(wider_extremes, (np.stack([x.min(axis=0), x.max(axis=0)]).astype(np.float64) for x in parts))

    def scaled_sum(self, weight: np.ndarray, unit: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
        total = np.zeros(self.n_features_in)
        for some in tiles.slices(self.n_rows, COPIED_ROWS):
            x = self.X[some] / unit
            total += (weight[some, None] * (x if mean is None else (x - mean) ** 2)).sum(axis=0)
        return total

    def weighted_sum(self, weight: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"), single_threaded_blas():
            return sum(weight[some] @ self.X[some].astype(np.float64) for some in tiles.slices(self.n_rows, COPIED_ROWS))

    def largest_square_distance(self, center: np.ndarray) -> float:
        return max(_square_distances(self.X[some], center).max() for some in tiles.slices(self.n_rows, COPIED_ROWS))

    @property
    def n_entries(self) -> int:
        return self.X.nnz

    @property
    def longest_row(self) -> int:
        return np.diff(self.X.indptr).max(initial=1)

    def sparse_moments(self, weight: np.ndarray, unit: np.ndarray) -> np.ndarray:
        data, weight = self.X.data / unit[self.X.indices], np.repeat(weight, np.diff(self.X.indptr))
        return np.stack([np.bincount(self.X.indices, weight * power, self.n_features_in) for power in (data, data * data)])


def _square_distances(rows, center):
    """Return the squared distance of each row, dense or CSR, to a point."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = rows.astype(np.float64)
        if not is_sparse(rows):
            return ((rows - center) ** 2).sum(axis=1)
        norms = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        return np.maximum(norms - 2 * (rows @ center) + center @ center, 0.0)
