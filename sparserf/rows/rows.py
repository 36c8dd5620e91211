"""The rows of X, wherever they live, and the sums and products over all of them that algorithms
compute.

What can be read by slices, such as a table of a database, becomes `Chunks` of a function that reads
it. Rows in a new kind of storage that sums where the rows are need a subclass of `RemoteRows`, its
place in `HOMES` (`rows/__init__.py`) and, where vectors of its rows are no ndarrays, a subclass of
`RowVectors`. The blocks are `CoreBlock`s if their rows can be brought to the memory of a process as
NumPy or CSR arrays; otherwise a new subclass of `Block` is needed, too.

X is cut into blocks (see `Block`): one block in memory, one for each chunk of a file, one for each
partition of a cluster. A function answer(block, *parts) computes something on the rows of one
block, where `parts` are the entries of row vectors (arrays with an entry for each row) that belong
to the rows of the block. `Rows.sum` calls it on all blocks and adds the results up, `Rows.map` lays
the results side by side; going once through all blocks is a pass. Whatever an algorithm computes of
X, such as Phi' v for a feature matrix Phi that is never stored, is written once, with `sum` and
`map`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from .._base.arrays import check_no_overflow, namespace
from .._base.checks import is_sparse
from .block import wider_extremes
from .few_values import FewValues
from .vectors import HostVectors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import DTypeLike

    from .._base.threads import Workers
    from .._base.types import Array, DenseOrCSR, RowVector
    from ..columns.encoder import ColumnEncoder
    from .block import Block
    from .protocols import FeatureSetLike, ProjectionLike
    from .vectors import RowVectors

# `Rows.encoded` stores at most this many numbers as the encodings of dense rows in memory, for one
# pass, and for the many passes of a fit.
FEW = 2**12
DURING_A_FIT = 2**23
# (a function of a block and a dual point v that `Rows.ask` sums over the blocks, a function that is
# called with the sum)
Question: TypeAlias = "tuple[Callable[..., np.ndarray], Callable[..., object]]"


class Rows(ABC):
    """The rows of X in blocks, and sums and products over all of them.

    A subclass says where the rows live and implements the abstract methods. The sums are added up
    in the order of the blocks, which depends on shapes alone: the same bits for any number of
    threads or machines.

    Attributes
    ----------
    n_rows, n_features_in : int
        The shape of X.
    dtype : dtype
        float32 or float64.
    is_sparse : bool
        Whether the rows are CSR.
    in_memory : bool
        Whether the rows are in the memory of this process.
    is_finite : bool
        Whether all numbers are known to be finite: no cell is missing.
    workers : Workers
        The threads of this process, for what is computed between passes or within a block.
    n_passes : int
        How many passes over all blocks were made.
    """

    n_rows: int
    n_features_in: int
    dtype: np.dtype
    is_sparse: bool
    in_memory: bool
    is_finite: bool = False
    workers: Workers
    n_passes: int = 0

    # ---------------------------------------------------------------- what a subclass implements

    @abstractmethod
    def sum(
        self,
        answer: Callable[..., Any],
        *vectors: RowVector,
        add: Callable[[Any, Any], Any] = np.add,
    ) -> Any:
        """Return the results of answer(block, *parts) for all blocks, added up in the order of the
        blocks.

        answer : a function answer(block, *parts) that returns an array in the memory of this
            process, or a tuple of arrays.
        vectors : row vectors of these rows, or ndarrays whose last axis is the rows.
        add : the function that adds up two results, or, where results are tuples, two entries of
            theirs.
        """

    @abstractmethod
    def map(self, answer: Callable[..., Any], *vectors: RowVector, axis: int = -1) -> Any:
        """Return the results for all blocks side by side: a row vector, or, for axis 0, a matrix
        with a line for each row."""

    @abstractmethod
    def map_and_sum(self, answer: Callable[..., Any], *vectors: RowVector) -> tuple[RowVector, Any]:
        """Compute pairs in one pass: return the first entries side by side, a row vector, and the
        sum of the second entries."""

    @abstractmethod
    def take(self, index: np.ndarray) -> Rows:
        """Return the rows at these ascending indices; few rows are brought to the memory of this
        process."""

    @abstractmethod
    def array(self, index: np.ndarray | None = None) -> DenseOrCSR:
        """Return the rows at these indices, or all rows, as an ndarray or CSR matrix in the memory
        of this process."""

    @abstractmethod
    def on_same_threads(self, X: DenseOrCSR) -> Rows:
        """Return the rows of another matrix in the memory of this process, which share the threads
        of these rows."""

    def kernel(self, features: FeatureSetLike, weights: np.ndarray) -> np.ndarray:
        """Return Phi diag(weights) Phi', float64 of shape (n_rows, n_rows), for few rows and
        weights >= 0."""
        return self.on_same_threads(self.array()).kernel(features, weights)

    @abstractmethod
    def __enter__(self) -> Self:
        """Keep threads, and what blocks compute once for many passes, until `__exit__`."""

    @abstractmethod
    def __exit__(self, *error: Any) -> None: ...

    @cached_property
    def vectors(self) -> RowVectors:
        """The arithmetic of the row vectors of these rows."""
        return HostVectors(self.n_rows)

    def in_single(self) -> Rows | None:
        """Return these rows in float32; None where they are not dense float64 in memory, or where
        that loses too much."""
        return None

    def without_missing(self) -> Rows:
        """Return these rows, where a NaN is an error from now on."""
        return self

    def to_namespace_of_X(self, answer: Array) -> Array:
        """Convert an array with an entry or a line for each row to the array namespace and device
        of the user's X."""
        return answer

    def encoded(self, encoder: ColumnEncoder | None, is_asked_often: bool = False) -> Rows:
        """Return the rows of the encodings that a column encoder makes of the columns: features are
        functions of the encodings.

        Few dense rows in memory are encoded at once, others block by block at each pass. Without an
        encoder, or with one that changes nothing, these are the rows themselves.
        """
        if (
            encoder is None
            or encoder.is_identity
            or (self.is_finite and encoder.changes_only_missing_cells)
        ):
            return self
        few = DURING_A_FIT if is_asked_often else FEW
        if self.in_memory and not self.is_sparse and self.n_rows * len(encoder) <= few:
            return self.on_same_threads(encoder.transform(self.array()))
        return EncodedRows(self, encoder)

    # ---------------------------------------------------------------- sums and products

    def correlate(self, features: FeatureSetLike, v: RowVector) -> np.ndarray:
        """Return Phi' v: float64 (len(features),) for v (n_rows,), or (n_outputs, len(features))
        for (n_outputs, n_rows)."""
        return check_no_overflow(self.sum(lambda block, v: block.correlate(features, v), v))

    def ask(self, v: RowVector, questions: Sequence[Callable[..., np.ndarray]]) -> list[np.ndarray]:
        """Return the results of some functions (block, v), each added up over the blocks, in one
        pass."""
        return [
            check_no_overflow(answer)
            for answer in self.sum(lambda block, v: tuple(ask(block, v) for ask in questions), v)
        ]

    def correlate_squares(self, features: FeatureSetLike, v: RowVector) -> np.ndarray:
        """Return (Phi * Phi)' v, which is the diagonal of `gram` for v = weights; shapes as in
        `correlate`."""
        return check_no_overflow(self.sum(lambda block, v: block.correlate_squares(features, v), v))

    def correlate_pair(self, features: FeatureSetLike, v: RowVector) -> np.ndarray:
        """Return Phi' v for features that are cosines cos(t), and for the sines cos(t - pi/2) =
        sin(t): (2, len(features))."""
        return check_no_overflow(self.sum(lambda block, v: block.correlate_pair(features, v), v))

    def apply(self, features: FeatureSetLike, coef: np.ndarray) -> RowVector:
        """Return Phi c: float64 (n_rows,) for c (len(features),), or (n_outputs, n_rows) for
        (n_outputs, len(features))."""
        return self.map(lambda block: check_no_overflow(block.apply(features, coef)))

    def normal(
        self, features: FeatureSetLike, h: RowVector, coef: np.ndarray, shift: np.ndarray
    ) -> tuple[RowVector, np.ndarray]:
        """Return f = Phi c - shift and Phi' diag(h) f in one pass: a product with the matrix of the
        weighted normal equations.

        h : (n_outputs, n_rows); coef : (n_outputs, len(features)); shift : (n_outputs,)
        """
        f, total = self.map_and_sum(lambda block, h: block.normal(features, h, coef, shift), h)
        return f, check_no_overflow(total)

    def gram(
        self,
        left: FeatureSetLike,
        right: FeatureSetLike | np.ndarray,
        weights: RowVector,
        dtype: DTypeLike | None = None,
    ) -> np.ndarray:
        """Return Phi_left' diag(weights) Phi_right, as `Block.gram` of all rows."""
        return check_no_overflow(
            self.sum(lambda block, weights: block.gram(left, right, weights, dtype), weights)
        )

    def moments(
        self,
        left: FeatureSetLike,
        right: FeatureSetLike | np.ndarray,
        weights: RowVector,
        dtype: DTypeLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return `gram` and Phi_right' weights, in one pass."""
        chosen = left.take(right) if isinstance(right, np.ndarray) else right

        def answer(block, weights):
            return block.gram(left, right, weights, dtype), block.correlate(chosen, weights)

        gram, sums = self.sum(answer, weights)
        return check_no_overflow(gram), check_no_overflow(sums)

    def signed_moments(
        self, features: FeatureSetLike, change: RowVector, dtype: DTypeLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return Phi' diag(change) Phi and Phi' change in one pass, where the entries of `change`
        may have any sign."""

        def answer(block, change):
            xp = namespace(change)
            gained, lost = (xp.clip(part, 0.0, None) for part in (change, -change))
            gram = block.gram(features, features, gained, dtype) - block.gram(
                features, features, lost, dtype
            )
            return gram, block.correlate(features, change)

        gram, sums = self.sum(answer, change)
        return check_no_overflow(gram), check_no_overflow(sums)

    def transform(self, features: FeatureSetLike) -> Array:
        """Return Phi itself, in the dtype of X: (n_rows, len(features))."""
        return self.map(lambda block: block.transform(features), axis=0)

    def project(self, projection: ProjectionLike) -> Array:
        """Return the random projection X R / sqrt(m), in the dtype of X: (n_rows,
        n_projections)."""
        return self.map(lambda block: check_no_overflow(block.project(projection)), axis=0)

    def mean(self, share: RowVector) -> np.ndarray:
        """Return the mean of each column where each row counts by its share; the shares add up to
        one."""
        return self.sum(lambda block, share: block.weighted_sum(share), share)

    def largest_square_distance(self, center: np.ndarray) -> float:
        """Return the largest squared distance between a row and a point."""
        return float(self.sum(lambda block: block.largest_square_distance(center), add=np.maximum))

    def columns(self, which: np.ndarray) -> np.ndarray:
        """Return some columns of dense rows, by their indices, in the memory of this process. One
        pass."""
        return self.vectors.fetch(self.map(lambda block: block.dense()[:, which], axis=0))

    def with_columns(self, which: np.ndarray, values: np.ndarray) -> Rows:
        """Return these dense rows, in the dtype of the values, with values (n_rows, len(which)) in
        place of some columns."""
        X = self.array().astype(values.dtype)
        X[:, which] = values
        return self.on_same_threads(X)

    @cached_property
    def extremes(self) -> np.ndarray:
        """The least and the largest entry of each column, NaN left out: float64 (2, n_features_in).
        One pass."""
        return self.sum(lambda block: block.extremes(), add=wider_extremes)

    @cached_property
    def few_values(self) -> FewValues:
        """The values of the columns that take few whole numbers. One pass."""
        return self.sum(lambda block: block.few_values(), add=FewValues.join)

    def spreads(self, weight: RowVector) -> tuple[np.ndarray, np.ndarray]:
        """Return the standard deviation and half the range of each column, for positive weights of
        mean 1."""
        low, high = self.extremes
        return self._deviations(weight, np.maximum(-low, high)), high / 2 - low / 2

    def _deviations(self, weight, largest):
        """Return the standard deviation of each column, given its largest absolute value; 0 where
        all variation is rounding."""
        unit = np.where(largest > 0, largest, 1.0)  # no sum or square overflows
        if self.is_sparse:
            first, second = (
                self.sum(lambda block, weight: block.sparse_moments(weight, unit), weight)
                / self.n_rows
            )
            variance = second - first**2
        else:
            mean = (
                self.sum(lambda block, weight: block.scaled_sum(weight, unit), weight) / self.n_rows
            )
            variance = (
                self.sum(lambda block, weight: block.scaled_sum(weight, unit, mean), weight)
                / self.n_rows
            )
        return np.where(variance > 1e-14, np.sqrt(np.maximum(variance, 0)), 0.0) * unit

    @cached_property
    def row_size(self) -> int:
        """Number of stored entries of a row; for CSR rows the mean."""
        if not self.is_sparse:
            return self.n_features_in
        return max(1, int(self.sum(lambda block: block.n_entries)) // max(1, self.n_rows))

    @cached_property
    def longest_row(self) -> int:
        """Number of stored entries of the longest row, at least 1."""
        if not self.is_sparse:
            return self.n_features_in
        return int(self.sum(lambda block: block.longest_row, add=np.maximum))


class EncodedRows(Rows):
    """Encoded rows: each block, wherever it lives, encodes its columns by a column encoder at each
    pass."""

    n_rows: int
    n_features_in: int
    dtype: np.dtype
    in_memory: bool
    workers: Workers

    def __init__(self, rows: Rows, encoder: ColumnEncoder):
        self._rows, self._encoder = rows, encoder
        self.n_rows, self.n_features_in, self.dtype = rows.n_rows, len(encoder), rows.dtype
        self.in_memory, self.vectors = rows.in_memory, rows.vectors
        self.workers = rows.workers
        self.is_sparse: bool = rows.is_sparse and encoder.keeps_zeros

    @property
    def n_passes(self) -> int:
        return self._rows.n_passes

    def sum(
        self,
        answer: Callable[..., Any],
        *vectors: RowVector,
        add: Callable[[Any, Any], Any] = np.add,
    ) -> Any:
        return self._rows.sum(partial(_ask_encoded, self._encoder, answer), *vectors, add=add)

    def map(self, answer: Callable[..., Any], *vectors: RowVector, axis: int = -1) -> RowVector:
        return self._rows.map(partial(_ask_encoded, self._encoder, answer), *vectors, axis=axis)

    def map_and_sum(self, answer: Callable[..., Any], *vectors: RowVector) -> tuple[RowVector, Any]:
        return self._rows.map_and_sum(partial(_ask_encoded, self._encoder, answer), *vectors)

    def take(self, index: np.ndarray) -> Rows:
        return self._rows.take(index).encoded(self._encoder, is_asked_often=True)

    def array(self, index: np.ndarray | None = None) -> DenseOrCSR:
        return self._encoder.transform(self._rows.array(index))

    def on_same_threads(self, X: DenseOrCSR) -> Rows:
        return self._rows.on_same_threads(X)

    def to_namespace_of_X(self, answer: Array) -> Array:
        return self._rows.to_namespace_of_X(answer)

    def __enter__(self) -> Self:
        self._rows.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)


def _ask_encoded(encoder, answer, block, *parts):
    """Compute answer(block, *parts) on the encodings that a column encoder makes of a block."""
    return answer(block.encoded(encoder), *parts)


def correlation(features: FeatureSetLike, block: Block, v: Array) -> np.ndarray:
    """Return Phi' v of one block: a function to sum by `Rows.ask`."""
    return block.correlate(features, v)


def correlation_pair(features: FeatureSetLike, block: Block, v: Array) -> np.ndarray:
    """Return `Rows.correlate_pair` of one block: a function to sum by `Rows.ask`."""
    return block.correlate_pair(features, v)


# ---------------------------------------------------------------- results of several blocks


def add_answers(add: Callable[[Any, Any], Any], total: Any, part: Any) -> Any:
    """Add up two results, entry by entry where they are tuples."""
    if isinstance(part, tuple):
        return tuple(add(one, other) for one, other in zip(total, part, strict=True))
    return add(total, part)


def stack_blocks(parts: Sequence[DenseOrCSR], place: np.ndarray) -> DenseOrCSR:
    """Stack the rows of several blocks to one ndarray or CSR matrix, and return the rows at the
    indices `place` of it."""
    if is_sparse(parts[0]):
        from scipy.sparse import vstack

        whole = vstack(parts, format="csr")
    else:
        whole = np.concatenate(parts)
    return whole if np.array_equal(place, np.arange(len(place))) else whole[place]
