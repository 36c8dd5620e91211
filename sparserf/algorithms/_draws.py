"""Draws of a dictionary, and which of them violate the optimality condition of the l1 problem, |phi_h' v| <= alpha."""

from functools import partial, reduce

import numpy as np

from .._core.search import top_k
from ..features import FeatureSet


def draws_of(rows, dictionary, batches):
    """Some batches of a dictionary. One batch is kept while in use; of several, each is drawn again when needed."""
    each = [(np.arange(*dictionary.starts[k : k + 2]), partial(dictionary.batch, k)) for k in batches]
    if len(each) > 1:
        return Draws(rows, each)
    ((index, make),) = each
    return KeptDraws(rows, make(), index)


class Draws:
    """Draws in batches that are made when needed."""

    def __init__(self, rows, batches):
        """batches: pairs (index of some draws in the dictionary, a function that makes them)."""
        self._rows, self._batches = rows, batches
        self._ends = np.cumsum([0, *(len(index) for index, _ in batches)])
        self.index = np.concatenate([index for index, _ in batches])
        self._v, self._g = None, np.full(len(self.index), np.inf)
        self._largest = np.zeros(len(self.index))  # max |phi_h(x)|, known once a batch has been drawn

    def gradient(self, v, alpha=0.0):
        """phi_h' v of each draw; or, where that lies within -alpha and alpha, perhaps a bound on it that does.

        Since v was last seen it moved by at most max |phi_h(x)| times the change of v in sum: draws whose gradient
        cannot have come to alpha are not looked at.
        """
        moved, self._v = np.inf if self._v is None else self._rows.vectors.distance(v, self._v), v
        if 0 < moved < np.inf:
            self._g += np.copysign(self._largest * moved, self._g)
        unknown = (np.abs(self._g) > alpha) & ((moved > 0) | np.isinf(self._g))
        for features, some in self._parts(np.flatnonzero(unknown)):
            self._g[some] = self._rows.correlate(features, v)
        return self._g

    def enter(self, A, positions):
        """Add the draws at these positions (ascending) to the working set."""
        for features, some in self._parts(positions):
            A.add(features, self.index[some], self._g[some])

    def violators(self, alpha, most):
        """Of those whose gradient was above alpha when last asked for the largest, at most so many, kept."""
        largest = np.empty(min(most, len(self.index)), np.intp)
        largest = np.sort(largest[: top_k(np.abs(self._g), alpha, largest)])
        nothing = FeatureSet((), self._rows.n_features_in)
        features = reduce(FeatureSet.concat, (features for features, _ in self._parts(largest)), nothing)
        return KeptDraws(self._rows, features, self.index[largest], self._v, self._g[largest])

    def _parts(self, positions):
        """(features, their positions) batch by batch, of these positions, ascending."""
        for (index, make), start, end in zip(self._batches, self._ends[:-1], self._ends[1:], strict=True):
            some = positions[(positions >= start) & (positions < end)]
            if len(some):
                features = make()
                self._largest[start:end] = features.largest_value
                yield features if len(some) == len(index) else features.take(some - start), some


class KeptDraws(Draws):
    """Draws that are in memory, with their gradient at some v where it is known."""

    def __init__(self, rows, features, index, v=None, gradient=np.inf):
        super().__init__(rows, [(index, lambda: self._features)])
        self._features, self._v = features, v
        self._g[:], self._largest[:] = gradient, features.largest_value

    def turn(self, v):
        """Give each cosine the phase at which |sum_i v_i cos(w'x_i + b)| is largest, (C^2 + S^2)^1/2: b + atan2(-S, C)."""
        C, S = self._rows.correlate_pair(self._features, v)
        self._features = self._features.turned(np.arctan2(-S, C))
        self._v, self._g = v, np.hypot(C, S)
