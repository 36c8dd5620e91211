"""The few boxes on a grid that come nearest to what a model of rules predicts: with another seed
most of them come back.

The terms of a model of rules are draws. With another seed nearly all are others, while what they
predict together is nearly the same. So the boxes are not taken from its terms. Candidates are those
of one input, or of two that meet in a term, with at most two ends, which are on a grid of N_BINS
quantiles of each input: the rows alone say where. As `prune` takes terms, orthogonal least squares
takes one after another for the predictions of the model. Of candidates that gain nearly as much as
the best, the first is taken, those of one end before those of two, in the order of the inputs: what
the draws have left open, they do not decide.

One histogram of two inputs, added up along both, has the sums of a vector over the rows in all
their boxes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .._base.checks import is_sparse
from .._base.progress import check_not_ended
from .._base.threads import Workers
from ..features import Bins, BoxBlock, FeatureSet, same_angles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..rows import Rows

# (place of the input, low, high) for one input or two
GridBox: TypeAlias = "list[tuple[int, float, float]]"

# The most boxes: of more, terms of the model come nearer.
MOST_BOXES = 20
# Each input is cut into at most so many bins. Of fewer, the ends that matter are missing where an
# input is skewed; of more, many boxes gain nearly the same.
N_BINS = 40
# Gains that differ by this share of the largest count as the same.
SAME_GAIN = 0.02
# A box of whose variance less than this share is orthogonal to the boxes before says nothing new.
NOTHING_NEW = 1e-3
# The most pairs of inputs, those that meet in most terms: each has up to some thousand boxes.
MOST_PAIRS = 500


def nearest_boxes(
    rows: Rows,
    features: FeatureSet,
    f: np.ndarray,
    h: np.ndarray,
    most: int,
    tol: float,
    max_order: int | None,
) -> FeatureSet:
    """Return the boxes that are nearest to f: at most `most`, fewer where these leave at most tol
    of its variance.

    features : boxes, the terms of the model, of one block
    f : (n_outputs, n_rows), around its mean
    h : weights of the rows, of sum 1
    max_order : the most columns of X that a box may see; None: no limit
    """
    inputs, pairs = _inputs_and_pairs(features, max_order)
    X = rows.array()[:, inputs]
    X = (X.toarray() if is_sparse(X) else X).astype(np.float64)
    grid = _Grid(X, same_angles(features.encoder, inputs), pairs)
    boxes = _taken(grid, f.astype(np.float64), h, most, tol)
    seen = np.zeros((len(boxes), 2), np.int32)
    low, high = np.full(seen.shape, -np.inf), np.full(seen.shape, np.inf)
    for k, box in enumerate(boxes):
        for place, (i, *ends) in enumerate(box):
            seen[k, place], (low[k, place], high[k, place]) = inputs[i], ends
    block = BoxBlock(1.0, seen, low, high, np.ones(len(boxes)))
    return FeatureSet([block], features.n_inputs, encoder=features.encoder)


def _inputs_and_pairs(features, max_order):
    """Return the inputs that terms see, and the pairs of places among them that meet in terms."""
    (block,) = features.blocks
    inputs, place = block.used_inputs
    sees = np.zeros((len(block), len(inputs)), bool)
    np.logical_or.at(sees, (np.arange(len(block))[:, None], place), block.is_used)
    inputs, sees = inputs[sees.any(axis=0)], sees[:, sees.any(axis=0)].astype(np.float64)
    one, other = np.triu_indices(len(inputs), 1)
    n_terms = (sees.T @ sees)[one, other]
    if max_order == 1:
        column = inputs if features.encoder is None else features.encoder.column[inputs]
        n_terms[column[one] != column[other]] = 0
    best = np.sort(np.argsort(-n_terms, kind="stable")[:MOST_PAIRS])
    best = best[n_terms[best] > 0]
    return inputs, list(zip(one[best].tolist(), other[best].tolist(), strict=True))


def _taken(grid: _Grid, f: np.ndarray, h: np.ndarray, most: int, tol: float) -> list[GridBox]:
    """Return the boxes in the order in which orthogonal least squares takes them."""
    share, one_row = grid.sums(h), h.min() / 2
    some = (share > one_row) & (share < 1 - one_row)
    spread = share * (1 - share)
    left, free = f, spread
    boxes, before = [], np.zeros((0, f.shape[1]))
    largest = tol * float((f**2 @ h).sum())
    while len(boxes) < most and float((left**2 @ h).sum()) > largest:
        check_not_ended()
        is_new = some & (free > NOTHING_NEW * spread)
        c2 = sum(grid.sums(h * each) ** 2 for each in left)
        gain = np.where(is_new, c2 / np.where(is_new, free, 1.0), 0.0)
        if not gain.max(initial=0.0) > 0:
            break
        boxes.append(grid.box(int((gain >= (1 - SAME_GAIN) * gain.max()).argmax())))
        q = grid.rows_in(boxes[-1]) - h @ grid.rows_in(boxes[-1])
        for _ in range(2):  # the second time takes away what rounding has left
            q = q - (before @ (h * q)) @ before
        q /= np.sqrt(h @ q**2)
        left, free = left - np.outer(left @ (h * q), q), free - grid.sums(h * q) ** 2
        before = np.vstack([before, q])
    return boxes


class _Grid:
    """All candidates: first those up to an edge of an input, then those between two edges, then
    those of two inputs, each below or above an edge of it."""

    def __init__(self, X: np.ndarray, gaps: np.ndarray | None, pairs: Sequence[tuple[int, int]]):
        bins = Bins.of_sample(X, N_BINS, gaps)
        self._X, self._edges, self._pairs = X, bins.edges, pairs
        self._bins = bins.transform(X, Workers(1)).astype(np.intp)
        self._between = [np.triu_indices(len(edges), 1) for edges in self._edges]
        n_pairs = [4 * len(self._edges[i]) * len(self._edges[j]) for i, j in pairs]
        n_between = [len(first) for first, _ in self._between]
        self._ends = np.cumsum([*map(len, self._edges), *n_between, *n_pairs])

    def sums(self, v: np.ndarray) -> np.ndarray:
        """Return the sum of v over the rows in each candidate."""
        up_to = [
            np.bincount(own, v, len(edges) + 1).cumsum()
            for own, edges in zip(self._bins, self._edges, strict=True)
        ]
        parts = [each[:-1] for each in up_to]
        between = zip(up_to, self._between, strict=True)
        parts += [each[last] - each[first] for each, (first, last) in between]
        for i, j in self._pairs:
            shape = len(up_to[i]), len(up_to[j])
            cells = np.bincount(self._bins[i] * shape[1] + self._bins[j], v, shape[0] * shape[1])
            below = cells.reshape(shape).cumsum(axis=0).cumsum(axis=1)
            both, of_i, of_j = below[:-1, :-1], below[:-1, -1:], below[-1:, :-1]
            above = below[-1, -1] - of_i - of_j + both
            parts += [each.ravel() for each in (both, of_i - both, of_j - both, above)]
        return np.concatenate(parts)

    def box(self, k: int) -> GridBox:
        """Return candidate k."""
        part, n = int(np.searchsorted(self._ends, k, side="right")), len(self._edges)
        k -= int(self._ends[part - 1]) if part else 0
        if part < n:
            return [(part, -np.inf, self._edges[part][k])]
        if part < 2 * n:
            first, last = self._between[part - n]
            return [(part - n, *self._edges[part - n][[first[k], last[k]]])]
        i, j = self._pairs[part - 2 * n]
        side, at_i, at_j = np.unravel_index(k, (4, len(self._edges[i]), len(self._edges[j])))
        asked = (i, self._edges[i][at_i], side >= 2), (j, self._edges[j][at_j], side % 2)
        return [(v, t, np.inf) if above else (v, -np.inf, t) for v, t, above in asked]

    def rows_in(self, box: GridBox) -> np.ndarray:
        """Return 1 for each row in a box, else 0."""
        inside = [(low < self._X[:, i]) & (self._X[:, i] <= high) for i, low, high in box]
        return np.all(inside, axis=0).astype(np.float64)
