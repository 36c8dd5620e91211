"""Draws of a dictionary, and which of them violate the optimality condition of the l1 problem, |phi_h' v| <= alpha."""

from __future__ import annotations

from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..._core.search import top_k
from ...features import FeatureSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..._base.types import Array, RowVector
    from ...rows.array_block import ArrayBlock
    from ...rows.block import Block
    from ...rows.home import Question, Rows
    from ...solvers.columns import WorkingSet

# Numbers in the weights of the batches that are drawn again for one pass: 128 MB.
TOGETHER = 2**24


class Batch:
    """Some draws of a batch. Where they are not at hand they are made again, and they travel as what makes them: a seed."""

    def __init__(self, make: Callable[[], FeatureSet], some: np.ndarray | None = None, features: FeatureSet | None = None):
        """make: a function that draws the batch; some: the places of those that are meant, None: all; features: these, if they
        are at hand."""
        self._make, self._some = make, some
        if features is not None:
            self.features = features

    @cached_property
    def features(self) -> FeatureSet:
        features = self._make()
        return features if self._some is None else features.take(self._some)

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch, (self._make, self._some)


def correlations(batches: Iterable[Batch], block: Block | ArrayBlock, v: Array) -> np.ndarray:
    """The correlations of some batches with v; of none, an empty array."""
    return np.concatenate([np.zeros(0), *(block.correlate(batch.features, v) for batch in batches)])


class Draws:
    """Draws in batches that are made when needed, and what is known of their gradients.

    Since the dual point v was last seen it moved by at most max |phi_h(x)| times the change of v in sum: draws whose gradient
    cannot have come to alpha are not looked at.
    """

    def __init__(self, rows: Rows, batches: Sequence[tuple[np.ndarray, Callable[[], FeatureSet] | None]]):
        """batches: pairs (index of some draws in the dictionary, a function that makes them)."""
        self._rows, self._batches = rows, batches
        self._ends = np.cumsum([0, *(len(index) for index, _ in batches)])
        self.index: np.ndarray = np.concatenate([index for index, _ in batches])
        n = len(self.index)
        self._v, self._moved = None, np.inf
        self._g, self._is_exact = np.full(n, np.inf), np.zeros(n, bool)
        self._largest = np.zeros(n)  # max |phi_h(x)|, known once a batch has been drawn

    def gradient(self, v: RowVector, alpha: float = 0.0) -> np.ndarray:
        """phi_h' v of each draw; or, where that lies within -alpha and alpha, perhaps a bound on it that does."""
        self._move_to(v)
        for some, batches in self._passes(np.flatnonzero((np.abs(self._g) > alpha) & ~self._is_exact)):
            self._learn(some, self._rows.ask(v, [partial(correlations, batches)])[0])
        return self._g

    def question(self, alpha: float) -> Question:
        """(what to ask of the rows at the next v, what takes v and the answer), of the draws that may violate there.

        Those are asked about whose gradient may come to alpha if v moves no more than the last time.
        """
        with np.errstate(invalid="ignore"):
            some = np.flatnonzero(~(np.abs(self._g) + self._largest * self._moved <= alpha))
        batches = [batch for _, batch in self._parts(some)]

        def take(v, answer):
            self._move_to(v)
            self._learn(some, answer)

        return partial(correlations, batches), take

    def expecting_any_move(self) -> Self:
        """Of v: the steps so far were not made for these draws."""
        self._moved = np.inf
        return self

    def _move_to(self, v):
        if v is self._v:
            return
        if self._v is not None:
            self._moved = self._rows.vectors.distance(v, self._v)
            if self._moved > 0:
                self._is_exact[:] = False
                self._g += np.copysign(self._largest * self._moved, self._g)
        self._v = v

    def _learn(self, some, g):
        self._g[some], self._is_exact[some] = g, True

    def enter(self, A: WorkingSet, positions: np.ndarray) -> None:
        """Add the draws at these positions (ascending) to the working set."""
        for some, batch in self._parts(positions):
            A.add(batch.features, self.index[some], self._g[some])

    def violators(self, alpha: float, most: int) -> KeptDraws:
        """The draws whose gradient, when last computed, was above alpha in size: the largest, at most so many, in memory."""
        largest = np.empty(min(most, len(self.index)), np.intp)
        largest = np.sort(largest[: top_k(np.abs(self._g), alpha, largest)])
        nothing = FeatureSet((), self._rows.n_features_in)
        features = reduce(FeatureSet.concat, (batch.features for _, batch in self._parts(largest)), nothing)
        return KeptDraws(self._rows, features, self.index[largest], self._v, self._g[largest])

    def _parts(self, positions):
        """(their positions, the `Batch` of them) batch by batch, of these positions, ascending."""
        for (index, make), start, end in zip(self._batches, self._ends[:-1], self._ends[1:], strict=True):
            some = positions[(positions >= start) & (positions < end)]
            if len(some):
                batch = Batch(make, None if len(some) == len(index) else some - start)
                if np.isinf(self._g[some]).any():
                    self._largest[some] = batch.features.largest_value
                yield some, batch

    def _passes(self, positions):
        """(positions, batches) that are asked together, of these positions."""
        together, size = [], 0
        for part in self._parts(positions):
            more = len(part[0]) * self._rows.n_features_in
            if together and size + more > TOGETHER:
                yield _joined(together)
                together, size = [], 0
            together.append(part)
            size += more
        if together:
            yield _joined(together)


def _joined(parts):
    some, batches = zip(*parts, strict=True)
    return np.concatenate(some), batches


class KeptDraws(Draws):
    """Draws that are in memory, with their gradient at some v where it is known."""

    def __init__(
        self, rows: Rows, features: FeatureSet, index: np.ndarray, v: RowVector = None, gradient: np.ndarray | None = None,
        make: Callable[[], FeatureSet] | None = None,
    ):  # fmt: skip
        """make: what would draw them again, if that is less than they are."""
        super().__init__(rows, [(index, make)])
        self._features, self._make, self._v, self._largest[:] = features, make, v, features.largest_value
        if gradient is not None:
            self._learn(slice(None), gradient)

    def _parts(self, positions):
        if len(positions):
            some = None if len(positions) == len(self.index) else positions
            features = self._features if some is None else self._features.take(some)
            yield positions, Batch(self._make, some, features) if self._make else Batch(lambda: features)
