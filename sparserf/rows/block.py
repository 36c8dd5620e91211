"""A block of rows at hand, dense or CSR: what it answers, in slices on threads, through _core and products of matrices."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._base.checks import is_sparse
from .._base.threads import Workers, single_threaded_blas
from ..columns.stage import ColumnStage, EncodedMatrix
from . import products, statistics, tiles
from .scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import DTypeLike

    from .._base.types import DenseOrCSR
    from ..features.feature_set import FeatureSet
    from ..features.projections import Projection

# Elements of the feature matrix in a slice: half a millisecond of work, against some 20 microseconds to hand it
# out. Fewer than two slices' worth stay on the calling thread; the number of slices divides evenly among few workers.
SLICE_ELEMENTS = 2**19
SLICES_MULTIPLE = 4
# Rows of a slice, at least: those of a tile.
FEWEST_ROWS = 64
# Numbers of X in a slice, of which a thread makes a copy where they are not contiguous.
SLICE_NUMBERS = 2**20
# Numbers in X up to which BLAS takes one thread by itself: to ask it to takes longer than to predict a row.
FEW_NUMBERS = 2**11
# Numbers in the inputs of monomials that are kept beside X during a fit: a gigabyte.
MOST_KEPT = 2**27
# Rows, at least, that are projected at a time: a matrix product arranges the random matrix in memory for each.
PROJECTED_ROWS = 128


class Block:
    """An ndarray (any strides, never copied whole) or a CSR matrix, and the threads that answer.

    As a context manager it keeps its threads, and the inputs of monomials, for as long as it is entered; else for one
    question.

    Slices depend on the shapes only, and their sums are added in order: the same bits for any `workers`.
    """

    X: DenseOrCSR
    workers: Workers
    scratch: Scratch
    dtype: np.dtype
    n_rows: int
    n_features_in: int

    def __init__(self, X: DenseOrCSR, workers: Workers, scratch: Scratch | None = None):
        """workers: `Workers`, which blocks may share, as they may their scratch where one is asked after the other."""
        self.X, self.workers, self._kept, self._staged = X, workers, None, None
        self.scratch = Scratch() if scratch is None else scratch
        self.dtype = X.dtype
        self.n_rows, self.n_features_in = X.shape

    def staged(self, stage: ColumnStage) -> Block:
        """This block as a column stage shows it, the same one for as long as this is entered."""
        if self._staged is not None and self._staged[0] is stage:
            return self._staged[1]
        shown = self.beside(stage.transform(self.X) if is_sparse(self.X) else EncodedMatrix(self.X, stage))
        if self.is_entered:
            self._staged = stage, shown
        return shown

    def beside(self, X: DenseOrCSR) -> Block:
        """A block of another matrix, on the same threads, for as long as this is entered or not."""
        other = Block(X, self.workers, self.scratch)
        other._kept = {} if self.is_entered else None
        return other

    @property
    def is_entered(self) -> bool:
        return self._kept is not None

    @property
    def row_size(self) -> int:
        """Numbers that a row holds, on average where they are sparse."""
        return max(1, self.X.nnz // max(1, self.n_rows)) if is_sparse(self.X) else self.n_features_in

    def correlate(self, features: FeatureSet, v: np.ndarray) -> np.ndarray:
        """Phi' v: float64 of shape (len(features),) for v of shape (n_rows,), or (n_outputs, .) for (n_outputs, n_rows)."""
        return self._correlate(features, v, squared=False)

    def correlate_squares(self, features: FeatureSet, v: np.ndarray) -> np.ndarray:
        """(Phi * Phi)' v, the diagonal of `gram` for v = weights; shapes as in `correlate`."""
        return self._correlate(features, v, squared=True)

    def correlate_pair(self, features: FeatureSet, v: np.ndarray) -> np.ndarray:
        """`correlate` of cosines with v (n_rows,), and of the same a quarter later, cos(t - pi/2) for cos(t): (2, .)."""
        outputs, totals = np.asarray(v, np.float64)[None], [np.zeros((2, 1, 0))]

        for block in features.blocks:

            def part(rows, block=block):
                return tiles.sums_of_pair(block, self._inputs(block, rows), outputs[:, rows])

            totals.append(sum(self.each_slice(part, len(block)))[:, :, : len(block)])
        total = np.concatenate(totals, axis=2)[:, 0]
        return features.from_blocks(total)

    def _correlate(self, features, v, squared):
        if len(features) == 0 or self.n_rows == 0:
            return np.zeros((*np.shape(v)[:-1], len(features)))
        outputs = np.ascontiguousarray(np.atleast_2d(np.asarray(v, np.float64)))
        moments, totals = self.prepare(features, squared), []

        def part(rows):
            asked = zip(features.blocks, moments, strict=True)
            return [tiles.sums(b, self._inputs(b, rows), outputs[:, rows], squared, m, self.scratch) for b, m in asked]

        work = sum(tiles.work(block, self.X) for block in features.blocks)
        at_least = max(tiles.fewest_rows(block, self.X) for block in features.blocks)
        with single_threaded_blas() if any(moments) else nullcontext(), np.errstate(over="ignore", invalid="ignore"):
            for sums in self.each_slice(part, work, at_least):
                totals = [total + more for total, more in zip(totals, sums, strict=True)] if totals else sums
        answers = zip(features.blocks, totals, moments, strict=True)
        total = [tiles.correlations(block, sums, squared, m) for block, sums, m in answers]
        total = total[0] if len(total) == 1 else np.hstack(total)
        return features.from_blocks(total).reshape(*np.shape(v)[:-1], len(features))

    def apply(self, features: FeatureSet, coef: np.ndarray) -> np.ndarray:
        """Phi c: float64 of shape (n_rows,) for coef of shape (len(features),), or (n_outputs, .) for (n_outputs, .)."""
        coef = np.ascontiguousarray(coef, np.float64)
        shape = *coef.shape[:-1], self.n_rows
        outputs = features.to_blocks(coef if coef.ndim == 2 else coef[None])
        f, moments = np.zeros((len(outputs), self.n_rows)), self.prepare(features)

        def part(rows):
            for (block, c), by_moments in zip(features.by_block(outputs), moments, strict=True):
                tiles.apply(block, self._inputs(block, rows), c, f[:, rows], by_moments)

        if 0 < self.n_rows <= FEWEST_ROWS and self.X.size <= FEW_NUMBERS:  # one slice: to plan more takes longer than a row
            part(slice(0, self.n_rows))
            return f.reshape(shape)
        work = sum(len(block) if block.moment_order == 2 else tiles.work(block, self.X) for block in features.blocks)
        with single_threaded_blas() if any(moments) and self.X.size > FEW_NUMBERS else nullcontext():
            for _ in self.each_slice(part, work):
                pass
        return f.reshape(shape)

    def normal(self, features: FeatureSet, h: np.ndarray, coef: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f = Phi c - shift, and Phi' diag(h) f, for h (n_outputs, n_rows), c (n_outputs, .) and shift (n_outputs,).

        Of the inputs themselves in one pass.
        """
        f, total = np.repeat(-shift[:, None], self.n_rows, axis=1), np.zeros(coef.shape)
        if not self.are_inputs(features):
            f += self.apply(features, coef)
            return f, self.correlate(features, h * f)

        def part(rows):
            return tiles.normal(self.X, rows, h[:, rows], coef, f[:, rows])

        with single_threaded_blas():
            for sums in self.each_slice(part, *tiles.normal_work(self.X)):
                total += sums
        return f, total

    def gram(
        self, left: FeatureSet, right: FeatureSet | np.ndarray, weights: np.ndarray, dtype: DTypeLike | None = None,
        center: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Phi_left' diag(weights) Phi_right, float64 of shape (len(left), len(right)); weights >= 0.

        Of float32 rows, products and their sums over a slice are in float32, unless dtype says otherwise. center: where right
        is left, (Phi - center)' diag(weights) (Phi - center).
        """
        return products.gram(self, left, right, weights, dtype, center)

    def kernel(self, features: FeatureSet, weights: np.ndarray) -> np.ndarray:
        """Phi diag(weights) Phi', float64 of shape (n_rows, n_rows), for few rows and weights >= 0."""
        return products.kernel(self, features, weights)

    def transform(self, features: FeatureSet) -> np.ndarray:
        """Phi itself, in the dtype of X."""
        phi = np.empty((self.n_rows, len(features)), self.dtype)

        self.prepare(features)

        def part(rows):
            if features.order is None:
                self._fill(features, rows, phi[rows])
            else:
                phi[rows] = features.from_blocks(self._fill(features, rows, self.scratch(phi[rows].shape, self.dtype)))

        for _ in self.each_slice(part, max(len(features), tiles.PANEL)):
            pass
        return phi

    def project(self, projection: Projection) -> np.ndarray:
        """X R / sqrt(m) of a random projection, in the dtype of X: (n_rows, n_projections)."""
        out = np.empty((self.n_rows, projection.n_projections), self.dtype)
        work = projection.cost(self.X) / tiles.PRODUCT_SPEED
        with single_threaded_blas(), nullcontext() if self.is_entered else self:
            for columns, project in projection.parts(self.dtype):

                def part(rows):
                    project(tiles.in_order(tiles.some_rows(self.X, rows)), out[rows, columns])

                for _ in self.each_slice(part, work, PROJECTED_ROWS):
                    pass
        return out

    def are_inputs(self, features: FeatureSet) -> bool:
        return len(features.blocks) == 1 and features.blocks[0].is_inputs_themselves(self.n_features_in)

    def phi(self, features: FeatureSet, rows: slice, name: str) -> np.ndarray:
        """Phi of some rows, to read only: the rows themselves, or in the scratch of that name."""
        if self.are_inputs(features) and not is_sparse(self.X):
            return tiles.in_order(self.X[rows])
        n_rows = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        return self._fill(features, rows, self.scratch((n_rows, len(features)), self.dtype, name))

    def _fill(self, features, rows, out):
        """Phi of some rows, a slice or indices, in the order of the blocks, into out."""
        for block, values in features.by_block(out):
            tiles.transform(block, self._inputs(block, rows), values)
        return out

    def prepare(self, features: FeatureSet, squared: bool = False) -> list[bool]:
        """Keep the inputs of monomials for the questions to come, where there are any; returns which blocks moments answer."""
        for block in features.blocks if self._kept is not None else ():
            fits = (len(self._kept) + 1) * self.X.size <= MOST_KEPT
            if block.envelope is not None and block.envelope not in self._kept and fits:
                self._kept[block.envelope] = tiles.inputs(block, self.X)
        return [tiles.by_moments(block, self.X, squared) for block in features.blocks]

    def _inputs(self, block, rows):
        """Some rows, a slice or indices, as a block sees them."""
        kept = self._kept.get(block.envelope) if self._kept else None
        X = self.X if kept is None else kept
        if isinstance(X, EncodedMatrix) or not (isinstance(rows, slice) and rows.stop - rows.start == self.n_rows):
            X = tiles.some_rows(X, rows)
        return tiles.inputs(block, X) if kept is None else X

    def __enter__(self) -> Self:
        self.workers.__enter__()
        self._kept = {}
        return self

    def __exit__(self, *error: Any) -> None:
        self._kept = self._staged = None
        self.workers.__exit__(*error)

    def extremes(self) -> np.ndarray:
        """(the least, the largest) of each column."""
        return statistics.extremes(self.X)

    def moments(self, weight: np.ndarray, unit: np.ndarray) -> np.ndarray:
        """Of CSR rows the sums of weight x / unit, and of the squares."""
        return statistics.moments(self.X, weight, unit)

    def scaled_sum(self, weight: np.ndarray, unit: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
        """Of dense rows the sum of weight x / unit; or, around a mean of that, of the squares."""
        return statistics.scaled_sum(self.X, weight, unit, mean)

    def weighted_sum(self, weight: np.ndarray) -> np.ndarray:
        """weight' X."""
        return statistics.weighted_sum(self.X, weight)

    def largest_square_distance(self, center: np.ndarray) -> float:
        """Of the rows to a point."""
        return statistics.largest_square_distance(self.X, center)

    def array(self, index: np.ndarray | None = None) -> DenseOrCSR:
        """The numbers of some rows, or of all."""
        if index is None:
            return self.X[:] if isinstance(self.X, EncodedMatrix) else self.X
        return tiles.some_rows(self.X, index)

    @property
    def n_entries(self) -> int:
        return self.X.nnz

    @property
    def longest_row(self) -> int:
        return np.diff(self.X.indptr).max(initial=1)

    def each_slice(self, function: Callable[[slice], Any], n_features: float, at_least: int = 0) -> Iterator[Any]:
        """Yield function(rows) for slices of rows, in order."""
        n_slices = self.n_rows * max(n_features / SLICE_ELEMENTS, self.row_size / SLICE_NUMBERS)
        n_slices = 1 if n_slices < 2 else -(-n_slices // SLICES_MULTIPLE) * SLICES_MULTIPLE
        size = max(FEWEST_ROWS, at_least, int(-(-self.n_rows // n_slices) // -64 * -64))
        return self.workers.map(function, products.slices(self.n_rows, size))
