"""Rows wherever they live: two verbs, which a home answers block by block, and every question asked through them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._base.arrays import check_no_overflow, namespace
from .._base.checks import is_sparse
from .statistics import wider
from .vectors import HostVectors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import DTypeLike

    from .._base.types import Array, DenseOrCSR, RowVector
    from ..features.feature_set import FeatureSet
    from ..features.projections import Projection
    from .array_block import ArrayBlock
    from .block import Block
    from .memory import Memory
    from .vectors import RowVectors

# A question to a block of rows at a dual point, and what takes its answer.
Question: TypeAlias = "tuple[Callable[..., np.ndarray], Callable[..., object]]"

# Numbers in rows that are taken into memory, where no more are asked for.
TAKEN_NUMBERS = 2**26


class Rows:
    """X in blocks, and what is asked of all its rows.

    A home answers the verbs, each of which calls answer(block, *parts) for each `Block`, the parts being those of row vectors:
    of the home, or ndarrays whose last axis is the rows.

    sum(answer, *vectors, add) : the answers, arrays or tuples of arrays, added up in the order of the blocks
    map(answer, *vectors, axis) : the answers laid side by side: a row vector, or, of axis 0, a matrix of the rows
    map_and_sum(answer, *vectors) : (a row vector, a sum), of answers that are such pairs

    And take(index), `Rows` of some of these, in memory where they are few; array(index), the numbers of few; in_memory,
    whether they are there themselves; and vectors, the `RowVectors`. n_passes counts how often all blocks were asked.
    """

    n_rows: int
    n_features_in: int
    dtype: np.dtype
    is_sparse: bool
    in_memory: bool
    n_passes: int = 0

    sum: Callable[..., Any]
    map: Callable[..., Any]
    map_and_sum: Callable[..., Any]
    take: Callable[[np.ndarray], Rows]
    array: Callable[..., DenseOrCSR]
    beside: Callable[[DenseOrCSR], Memory]
    kernel: Callable[[FeatureSet, np.ndarray], np.ndarray]
    __enter__: Callable[[], Rows]
    __exit__: Callable[..., None]

    @cached_property
    def vectors(self) -> RowVectors:
        """The `RowVectors` of these rows."""
        return HostVectors(self.n_rows)

    def count_pass(self) -> None:
        self.n_passes += 1

    def give(self, answer: Array) -> Array:
        """An array with an entry or a line for each row, as whoever brought X expects it."""
        return answer

    def correlate(self, features: FeatureSet, v: RowVector) -> np.ndarray:
        """Phi' v: float64 of shape (len(features),) for v of shape (n_rows,), or (n_outputs, .) for (n_outputs, n_rows)."""
        return check_no_overflow(self.sum(lambda block, v: block.correlate(features, v), v))

    def ask(self, v: RowVector, questions: Sequence[Callable[..., np.ndarray]]) -> list[np.ndarray]:
        """The answers of questions (block, v), each added up over the blocks, in one pass."""
        return [check_no_overflow(answer) for answer in self.sum(lambda block, v: tuple(ask(block, v) for ask in questions), v)]

    def correlate_squares(self, features: FeatureSet, v: RowVector) -> np.ndarray:
        """(Phi * Phi)' v, the diagonal of `gram` for v = weights; shapes as in `correlate`."""
        return check_no_overflow(self.sum(lambda block, v: block.correlate_squares(features, v), v))

    def correlate_pair(self, features: FeatureSet, v: RowVector) -> np.ndarray:
        """`correlate` of cosines with v (n_rows,), and of the same a quarter later, cos(t - pi/2) for cos(t): (2, .)."""
        return check_no_overflow(self.sum(lambda block, v: block.correlate_pair(features, v), v))

    def apply(self, features: FeatureSet, coef: np.ndarray) -> RowVector:
        """Phi c: float64 of shape (n_rows,) for coef of shape (len(features),), or (n_outputs, .) for (n_outputs, .)."""
        return self.map(lambda block: check_no_overflow(block.apply(features, coef)))

    def normal(self, features: FeatureSet, h: RowVector, coef: np.ndarray, shift: np.ndarray) -> tuple[RowVector, np.ndarray]:
        """f = Phi c - shift, and Phi' diag(h) f, for h (n_outputs, n_rows), c (n_outputs, .) and shift (n_outputs,)."""
        f, total = self.map_and_sum(lambda block, h: block.normal(features, h, coef, shift), h)
        return f, check_no_overflow(total)

    def gram(
        self, left: FeatureSet, right: FeatureSet | np.ndarray, weights: RowVector, dtype: DTypeLike | None = None
    ) -> np.ndarray:
        """Phi_left' diag(weights) Phi_right, float64 of shape (len(left), len(right)); weights >= 0.

        right: features, or the places of some in left. Of float32 rows, products and their sums over a slice are in float32,
        unless dtype says otherwise.
        """
        return check_no_overflow(self.sum(lambda block, weights: block.gram(left, right, weights, dtype), weights))

    def moments(
        self, left: FeatureSet, right: FeatureSet | np.ndarray, weights: RowVector, dtype: DTypeLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """`gram`, and Phi_right' weights, in one pass."""
        chosen = left.take(right) if isinstance(right, np.ndarray) else right

        def answer(block, weights):
            return block.gram(left, right, weights, dtype), block.correlate(chosen, weights)

        gram, sums = self.sum(answer, weights)
        return check_no_overflow(gram), check_no_overflow(sums)

    def signed_moments(
        self, features: FeatureSet, change: RowVector, dtype: DTypeLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(Phi' diag(change) Phi, Phi' change), of weights of any sign, in one pass."""

        def answer(block, change):
            xp = namespace(change)
            gained, lost = (xp.clip(part, 0.0, None) for part in (change, -change))
            gram = block.gram(features, features, gained, dtype) - block.gram(features, features, lost, dtype)
            return gram, block.correlate(features, change)

        gram, sums = self.sum(answer, change)
        return check_no_overflow(gram), check_no_overflow(sums)

    def transform(self, features: FeatureSet) -> Array:
        """Phi itself, in the dtype of X."""
        return self.map(lambda block: block.transform(features), axis=0)

    def project(self, projection: Projection) -> Array:
        """X R / sqrt(m) of a random projection, in the dtype of X: (n_rows, n_projections)."""
        return self.map(lambda block: check_no_overflow(block.project(projection)), axis=0)

    def mean(self, share: RowVector) -> np.ndarray:
        """The mean of each column, of rows that count by their share; the shares add up to one."""
        return self.sum(lambda block, share: block.weighted_sum(share), share)

    def farthest(self, center: np.ndarray) -> float:
        """The largest square of a row's distance to a point."""
        return float(self.sum(lambda block: block.largest_square_distance(center), add=np.maximum))

    def spreads(self, weight: RowVector) -> tuple[np.ndarray, np.ndarray]:
        """(standard deviation, half the range) of each column, of rows of positive weights of mean 1."""
        low, high = self.sum(lambda block: block.extremes(), add=wider)
        return self._deviations(weight, np.maximum(-low, high)), high / 2 - low / 2

    def _deviations(self, weight, largest):
        """The standard deviation of each column, of entries up to `largest` in size; 0 where rounding is all that varies."""
        unit = np.where(largest > 0, largest, 1.0)  # no sum or square overflows
        if self.is_sparse:
            first, second = self.sum(lambda block, weight: block.moments(weight, unit), weight) / self.n_rows
            variance = second - first**2
        else:
            mean = self.sum(lambda block, weight: block.scaled_sum(weight, unit), weight) / self.n_rows
            variance = self.sum(lambda block, weight: block.scaled_sum(weight, unit, mean), weight) / self.n_rows
        return np.where(variance > 1e-14, np.sqrt(np.maximum(variance, 0)), 0.0) * unit

    @cached_property
    def row_size(self) -> int:
        """Numbers that a row holds, on average where they are sparse."""
        if not self.is_sparse:
            return self.n_features_in
        return max(1, int(self.sum(lambda block: block.n_entries)) // max(1, self.n_rows))

    @cached_property
    def longest_row(self) -> int:
        """Numbers in the longest row, 1 at least."""
        if not self.is_sparse:
            return self.n_features_in
        return int(self.sum(lambda block: block.longest_row, add=np.maximum))


def correlation(features: FeatureSet, block: Block | ArrayBlock, v: Array) -> np.ndarray:
    """A question for `Rows.ask`: Phi' v."""
    return block.correlate(features, v)


def correlation_pair(features: FeatureSet, block: Block | ArrayBlock, v: Array) -> np.ndarray:
    """A question for `Rows.ask`, as `Rows.correlate_pair`."""
    return block.correlate_pair(features, v)


def each_part(function: Callable[[Any], Any], answer: Any) -> Any:
    """The function of an answer, or of each part of one that is a tuple."""
    return tuple(map(function, answer)) if isinstance(answer, tuple) else function(answer)


def added(add: Callable[[Any, Any], Any], total: Any, part: Any) -> Any:
    """Two answers, which may be tuples, added up."""
    if isinstance(part, tuple):
        return tuple(add(one, other) for one, other in zip(total, part, strict=True))
    with np.errstate(over="ignore", invalid="ignore"):
        return add(total, part)


def stacked(parts: Sequence[DenseOrCSR], place: np.ndarray) -> DenseOrCSR:
    """Rows of several blocks as one ndarray or CSR matrix, in these places."""
    if is_sparse(parts[0]):
        from scipy.sparse import vstack

        whole = vstack(parts, format="csr")
    else:
        whole = np.concatenate(parts)
    return whole if np.array_equal(place, np.arange(len(place))) else whole[place]
