"""Draws of a dictionary, which of them violate |phi_h' v| <= alpha, and the sources that make the
draws of one target.

A draw whose coefficient must be at least 0 violates only phi_h' v >= -alpha: a positive gradient of
it counts as 0 (`feasible_slope`).

`Draws` know their gradients phi_h' v at the dual point v (defined in `descent.py`), or a bound on
them. Their features are made when needed: of draws from a random map only the seed is stored.
`DrawsInMemory` keep their features.

A `DrawSource` makes the draws of each batch: `RandomSource` from a fixed distribution,
`LearningSource` near the accepted features, `RuleSource` along the gradient. `SOURCES` says which
dictionary has which.

A pass over the rows is the unit of cost. So the pass that computes the next dual point also
computes what will be needed there: a `Question` is a pair, a function that every block of rows
answers at a dual point, and a function that takes the dual point and the sum of the answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..._base.arrays import namespace
from ..._core.search import top_k
from ...features import FeatureSet
from ...rows import correlation_pair
from ...solvers.problem import feasible_slope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..._base.types import Array, RowVector
    from ...features import FixedDictionary, LearningDictionary, RandomDictionary, RuleDictionary
    from ...features.dictionary import Dictionary
    from ...rows import Block, Rows
    from ...rows.rows import Question
    from ...solvers.l1 import WorkingSet


class LazyBatch:
    """Features of a batch, made when they are needed. A pickle has the function that makes them,
    with its seed."""

    def __init__(
        self,
        make: Callable[[], FeatureSet],
        places: np.ndarray | None = None,
        features: FeatureSet | None = None,
    ):
        """Take a function that draws the whole batch, the places in it (None: all), and the
        features if already drawn."""
        self._make, self._places = make, places
        if features is not None:
            self.features = features

    @cached_property
    def features(self) -> FeatureSet:
        """The features at these places."""
        features = self._make()
        return features if self._places is None else features.take(self._places)

    def __reduce__(self) -> tuple[Any, ...]:
        return LazyBatch, (self._make, self._places)


def correlations(batches: Iterable[LazyBatch], block: Block, v: Array) -> np.ndarray:
    """Return phi_h' v over a block of rows, for the features of all batches; of no batch an empty
    array."""
    every = [np.zeros(0)]
    for batch in batches:
        every.append(block.correlate(batch.features, v))
    return np.concatenate(every)


def largest_above(score: np.ndarray, least: float, most: int) -> np.ndarray:
    """Return the places, ascending, of the largest scores above `least`, at most so many."""
    places = np.empty(min(most, len(score)), np.intp)
    return np.sort(places[: top_k(score, least, places)])


class Draws:
    """Draws in batches that are made when needed, with their gradients, or bounds on these.

    The gradient of a draw is computed at a dual point v. When v moves to u it changes by at most
    max_x |phi_h(x)| times sum_i |u_i - v_i|, and when the rows turn to another precision by what
    that rounds, so that draws whose gradient cannot have come to alpha need no second look. The
    sphere of gap-safe screening would tell less (docs/performance.md).

    index : the numbers of the draws in the dictionary
    """

    def __init__(
        self, rows: Rows, batches: Sequence[tuple[np.ndarray, Callable[[], FeatureSet] | None]]
    ):
        """Take, for each batch, the numbers of its draws in the dictionary and a function that
        makes them."""
        self._rows, self._batches = rows, batches
        self._ends = np.cumsum([0, *(len(index) for index, _ in batches)])
        self.index: np.ndarray = np.concatenate([index for index, _ in batches])
        n = len(self.index)
        # the dual point at which gradients are known, and how far it moved the last time
        self._v, self._moved = None, np.inf
        self._g, self._is_exact = np.full(n, np.inf), np.zeros(n, bool)
        # Filled in once a batch has been drawn: max |phi_h(x)|, and whether a coefficient must be
        # at least 0.
        self._largest, self._nonnegative = np.zeros(n), np.zeros(n, bool)
        # the rows in double precision, where they have turned to another since
        self._double: Rows | None = None

    def gradient(self, v: RowVector, alpha: float = 0.0, A: WorkingSet | None = None) -> np.ndarray:
        """Return phi_h' v of each draw, or its `feasible_slope`, or perhaps a bound, where both are
        from -alpha to alpha.

        A : the working set at v, which knows the gradients of the draws that are in it; None: there
            is none
        """
        self._move_to(v)
        self._learn_from(A)
        for positions, batches in self._passes(
            np.flatnonzero((np.abs(self._g) > alpha) & ~self._is_exact)
        ):
            self._learn(positions, self._rows.ask(v, [partial(correlations, batches)])[0])
        return self._g

    def question(self, alpha: float, A: WorkingSet | None = None) -> Question:
        """Return the question for the gradients at the next dual point, of A where that is given.

        It is about the draws whose gradient may come to alpha if v moves no more than the last
        time, without those in A, which computes its own.
        """
        may_violate = ~(np.abs(self._g) + self._largest * self._moved <= alpha)
        may_violate[self._in(A)[0]] = False
        positions = np.flatnonzero(may_violate)
        batches = [batch for _, batch in self._parts(positions)]

        def take(v, answer):
            self._move_to(v)
            self._learn(positions, answer)
            self._learn_from(A)

        return partial(correlations, batches), take

    def _in(self, A):
        """Return the positions of the draws that are in A, and their places there."""
        if A is None:
            return np.zeros(0, np.intp), np.zeros(0, np.intp)
        at = np.searchsorted(self.index, A.index)
        there = np.flatnonzero(at < len(self.index))
        there = there[self.index[at[there]] == A.index[there]]
        return at[there], there

    def _learn_from(self, A):
        """Take the gradients of the draws that are in A from there: the slopes of A, at the dual
        point."""
        positions, there = self._in(A)
        if len(positions):
            self._describe(positions, A.features, there)
            self._learn(positions, A.g[there])

    @property
    def are_known(self) -> bool:
        """Whether the gradients of all draws are known, or bounds on them."""
        return bool(np.isfinite(self._g).all())

    def set_precision(self, rows: Rows) -> None:
        """Go on with the same rows in another precision; of both, one is single."""
        self._double = max(self._rows, rows, key=lambda rows: rows.dtype.itemsize)
        self._rows, self._moved = rows, np.inf
        self._is_exact[:] = False

    def forget_last_move(self) -> Self:
        """Forget how far v moved the last time, so that the next `question` is about all draws;
        return self."""
        self._moved = np.inf
        return self

    def _move_to(self, v):
        """Turn the gradients, or the bounds on them, into bounds at the dual point v, in the
        precision of the rows."""
        if self._double is not None:
            self._widen_by_rounding()
            self._double = None
        if v is self._v:
            return
        if self._v is not None:
            self._moved = self._rows.vectors.distance(v, self._v)
            if self._moved > 0:
                self._is_exact[:] = False
                self._g += np.copysign(self._largest * self._moved, self._g)
        self._v = v

    def _widen_by_rounding(self):
        """Turn the gradients that are known into bounds on those in another precision, at the same
        dual point."""
        known = np.flatnonzero(np.isfinite(self._g))
        if not len(known):
            return
        size = self._double.vectors.map(lambda v: namespace(v).abs(v), self._v)
        squares = self._double.sum(lambda block, size: block.scaled_sum(size, 1.0, 0.0), size)
        total = float(self._double.vectors.total(size))
        sizes = np.sqrt(total * squares)  # by Cauchy and Schwarz
        for part, batch in self._parts(known):
            rounding = batch.features.rounding_in_single(total, sizes)
            self._g[part] += np.copysign(rounding, self._g[part])

    def _learn(self, positions, g):
        """Note the gradients of the draws at these positions, at the dual point."""
        self._g[positions] = feasible_slope(g, self._nonnegative[positions])
        self._is_exact[positions] = True

    def _describe(self, positions, features, places=slice(None)):
        """Note the bounds on the gradients of the draws at these positions, which are the features
        at these places."""
        self._largest[positions] = features.largest_value[places]
        self._nonnegative[positions] = features.nonnegative[places]

    def enter(self, A: WorkingSet, positions: np.ndarray) -> None:
        """Add the draws at these positions (ascending) to the working set."""
        for part, batch in self._parts(positions):
            A.add(batch.features, self.index[part], self._g[part])

    def nearest(self, least: float, most: int) -> DrawsInMemory:
        """Return the draws whose gradient, or the bound on it, was above `least` in size when last
        computed: the largest, at most `most`."""
        largest = largest_above(np.abs(self._g), least, most)
        nothing = FeatureSet((), self._rows.n_features_in)
        features = reduce(
            FeatureSet.concat, (batch.features for _, batch in self._parts(largest)), nothing
        )
        few = DrawsInMemory(self._rows, features, self.index[largest], self._v)
        few._g[:], few._is_exact[:] = self._g[largest], self._is_exact[largest]
        return few

    def learn_from(self, few: Draws, v: RowVector) -> None:
        """Take the gradients of some of these draws at the dual point v, or bounds on them, from
        what these know."""
        self._move_to(v)
        few._move_to(v)
        positions = np.searchsorted(self.index, few.index)
        self._g[positions], self._is_exact[positions] = few._g, few._is_exact

    def _parts(self, positions):
        """Yield, for each batch, the part of the ascending positions that is in it, and the
        `LazyBatch` of that part."""
        for (index, make), start, end in zip(
            self._batches, self._ends[:-1], self._ends[1:], strict=True
        ):
            part = positions[(positions >= start) & (positions < end)]
            if len(part):
                batch = LazyBatch(make, None if len(part) == len(index) else part - start)
                if np.isinf(self._g[part]).any():
                    self._describe(part, batch.features)
                yield part, batch

    def _passes(self, positions):
        """Split the positions into passes over the rows: yield (positions, batches) of each
        pass."""
        # The most numbers in the weights of the batches that are made again for one pass over the
        # rows: 128 MB.
        weights_a_pass = 2**24

        positions_of_pass, batches, size = [], [], 0
        for part, batch in self._parts(positions):
            more = len(part) * self._rows.n_features_in
            if batches and size + more > weights_a_pass:
                yield np.concatenate(positions_of_pass), batches
                positions_of_pass, batches, size = [], [], 0
            positions_of_pass.append(part)
            batches.append(batch)
            size += more
        if batches:
            yield np.concatenate(positions_of_pass), batches


class DrawsInMemory(Draws):
    """Draws that are in memory, with their gradient at some v where it is known."""

    def __init__(
        self,
        rows: Rows,
        features: FeatureSet,
        index: np.ndarray,
        v: RowVector = None,
        gradient: np.ndarray | None = None,
        make: Callable[[], FeatureSet] | None = None,
    ):
        """Take the features, and in `make` the function that draws them again, where it is smaller
        to send than they are."""
        super().__init__(rows, [(index, make)])
        self._features, self._make, self._v = features, make, v
        self._describe(slice(None), features)
        if gradient is not None:
            self._learn(slice(None), gradient)

    def _parts(self, positions):
        """Yield the positions, which are in one batch, and the `LazyBatch` of them."""
        if len(positions):
            places = None if len(positions) == len(self.index) else positions
            features = self._features if places is None else self._features.take(places)
            yield (
                positions,
                LazyBatch(self._make, places, features)
                if self._make
                else LazyBatch(lambda: features),
            )


# Sources: where the draws of one target come from


class DrawSource(ABC):
    """Where the draws of one target come from: draws of a dictionary for a working set.

    batches_at_zero : the batches whose largest gradient at w = 0 is the penalty at which a path
        begins
    """

    batches_at_zero: Sequence[int] = (0,)

    @abstractmethod
    def draw(self, batches: Sequence[int], A: WorkingSet) -> Draws:
        """Return the draws of these batches, for the working set A as it is."""

    @abstractmethod
    def ask_ahead(self, t: int, A: WorkingSet, w: np.ndarray) -> list[Question]:
        """Return the questions whose answers draw((t,), A) will need once A has the coefficients w.

        They are put to the rows together with the step to w, so that the next batch takes no pass
        of its own.
        """

    def everything(self) -> Draws:
        """Return all draws of the dictionary, where they can be made again, with what was known of
        them the last time."""
        raise NotImplementedError(f"{type(self).__name__} makes no draw twice")

    @property
    def knows_all(self) -> bool:
        """Whether the gradients of all draws are known, or bounds on them."""
        return False

    def forget(self) -> None:  # noqa: B027
        """Drop the answers to questions that were asked ahead, unless any next batch can use
        them."""

    def set_precision(self, rows: Rows) -> None:
        """Go on with the same rows in another precision."""
        self._rows = rows
        self.forget()


class RandomSource(DrawSource):
    """Draws from the distributions of maps, or a FeatureSet, in batches.

    The batch that was drawn last is kept; and what is known of all draws, from one penalty to the
    next.
    """

    batches_at_zero: Sequence[int]

    def __init__(self, rows: Rows, dictionary: RandomDictionary | FixedDictionary, target: int):
        """Take a dictionary; all targets have the same draws."""
        self._rows, self._dictionary, self._last, self._all = rows, dictionary, (None, None), None
        self.batches_at_zero = range(dictionary.n_batches)

    def draw(self, batches: Sequence[int], A: WorkingSet) -> Draws:
        """Return the draws of one batch, in memory, or those of all batches."""
        if len(batches) > 1:
            return self.everything()
        ((index, make),) = self._made(batches)
        # the draws of the batch: its number k does not identify them
        which = index[:1].tolist(), len(index)
        if which != self._last[0]:
            make_again = make if self._dictionary.is_random else None
            self._last = which, DrawsInMemory(self._rows, make(), index, make=make_again)
        return self._last[1].forget_last_move()

    def everything(self) -> Draws:
        """Return all draws, made again when needed, with what was known of them the last time."""
        if self._all is None:
            self._all = Draws(self._rows, self._made(range(self._dictionary.n_batches)))
        return self._all

    def _made(self, batches):
        """Return, for each batch, the numbers of its draws and the function that makes them."""
        starts, make = self._dictionary.starts, self._dictionary.batch
        return [(np.arange(*starts[k : k + 2]), partial(make, k)) for k in batches]

    @property
    def knows_all(self) -> bool:
        """Whether the gradients of all draws are known, or bounds on them."""
        return self._all is not None and self._all.are_known

    def set_precision(self, rows: Rows) -> None:
        """Go on with the same rows in another precision."""
        super().set_precision(rows)
        self._last = None, None
        if self._all is not None:
            self._all.set_precision(rows)

    def ask_ahead(self, t: int, A: WorkingSet, w: np.ndarray) -> list[Question]:
        """Return the question for the gradients of batch t."""
        return [self.draw((t,), A).question(0.0, A)]


class LearningSource(DrawSource):
    """Draws that follow the working set, each cosine turned to its best phase; neurons without a
    phase stay as they are (`best_turn`)."""

    def __init__(self, rows: Rows, dictionary: LearningDictionary, target: int):
        """Take a dictionary that learns; each target has a proposer of draws, with a random stream
        of its own."""
        self._rows = rows
        self._sizes = np.diff(dictionary.starts)
        self._proposer = dictionary.proposer(target)
        self.forget()

    def forget(self) -> None:
        """Drop the proposals that were made ahead, and their gradients."""
        self._t, self._v, self._proposed, self._answer = None, None, None, None

    def draw(self, batches: Sequence[int], A: WorkingSet) -> Draws:
        """Return the proposals of one batch, in memory, with their gradients at the dual point of
        A."""
        (t,) = batches
        if t != self._t:
            self._proposed = self._proposer.batch(self._sizes[t], A.features, A.w, A.index)
            self._t = t
        if self._v is not A.v:
            (self._answer,) = self._rows.ask(A.v, [partial(correlation_pair, self._proposed[1])])
        (start, features), (C, S) = self._proposed, self._answer
        self.forget()
        g = np.where(features.is_periodic, np.hypot(C, S), C)
        features, index = features.turned(best_turn(features, C, S)), start + np.arange(len(g))
        return DrawsInMemory(self._rows, features, index, A.v, g)

    def ask_ahead(self, t: int, A: WorkingSet, w: np.ndarray) -> list[Question]:
        """Propose batch t from the features of A that have a coefficient in w; return the question
        for its gradients."""
        # a batch is proposed once, however often a round needs it: proposing counts as a try
        if t != self._t:
            used = np.flatnonzero(w)
            proposed = self._proposer.batch(
                self._sizes[t], A.features.take(used), w[used], A.index[used]
            )
            self._t, self._proposed = t, proposed

        def take(v, answer):
            self._v, self._answer = v, answer

        return [(partial(correlation_pair, self._proposed[1]), take)]


def best_turn(features: FeatureSet, C: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Return the angle that is added to the phase b of each cosine where |sum_i v_i cos(w'x_i + b)|
    is largest over b; 0 for features without a phase.

    With C and S the correlations of v with the cosine and the sine, the angle is atan2(-S, C). The
    correlation there is C cos(angle) - S sin(angle) = (C^2 + S^2)^(1/2).
    """
    return np.where(features.is_periodic, np.arctan2(-S, C), 0.0)


class RuleSource(DrawSource):
    """Rules that are grown along the gradient at the dual point of the working set."""

    def __init__(self, rows: Rows, dictionary: RuleDictionary, target: int):
        """Take a dictionary of rules; each target has a grower, with a random stream of its own."""
        self._rows, self._sizes = rows, np.diff(dictionary.starts)
        self._grower = dictionary.grower(target)

    def draw(self, batches: Sequence[int], A: WorkingSet) -> Draws:
        """Return the boxes of one batch, in memory, with their gradients."""
        (t,) = batches
        h = A.row_curvature()
        terms = A.index, A.features
        start, features, g = self._grower.batch(self._sizes[t], self._rows, A.v, h, terms)
        return DrawsInMemory(self._rows, features, start + np.arange(len(g)), A.v, g)

    def ask_ahead(self, t: int, A: WorkingSet, w: np.ndarray) -> list[Question]:
        """Return no question: boxes are grown at the dual point."""
        return []


# The source of the draws of each kind of dictionary.
SOURCES: dict[str, Callable[..., DrawSource]] = {
    "random": RandomSource,
    "learned": LearningSource,
    "grown": RuleSource,
}


def source_of(rows: Rows, dictionary: Dictionary, target: int) -> DrawSource:
    """Return the source of the draws of one target, which is the number of this fit among all over
    the dictionary."""
    return SOURCES[dictionary.kind](rows, dictionary, target)
