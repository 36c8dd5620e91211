"""Boxes grown along a gradient: all nodes of small trees, split by histograms of bins.

Each tree sees random rows, and each of its nodes random columns.

A tree begins as one node, which holds the rows that it draws. A node is split in two at the bin of
the column where the gain

    G_l^2 / (C_l + ridge) + G_r^2 / (C_r + ridge) - G^2 / (C + ridge)

is largest, where G and C are the sums of gradient and curvature over the rows of the left side, the
right side and the node. The sums of all bins of all columns, the histogram of a node, tell all its
gains. All trees grow together, level by level: one pass over the rows makes the histograms of the
smaller halves of all nodes that were split, and subtraction from the histogram of the node makes
those of the larger halves. Histograms are sums over rows, which whoever has the rows makes for a
`Pass`.

Which rows a tree draws depends on its seed and the numbers of the rows alone, and `to_grid` rounds
gradients such that all sums are exact: the same boxes for any number of threads, any chunks of the
rows, and any instruction set.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._core.boxes import (
    HIGHEST,
    MISSING,
    BinBoxes,
    best_splits,
    bin_columns,
    histograms,
    keep_histograms,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.threads import Workers

# Cells that are binned at a time: half a millisecond or more. So many of CSR rows are made dense.
BINNED_CELLS = 2**18
# Most parts into which the nodes of a pass, or of a search for splits, are cut for threads.
PARTS = 16
# Fewest numbers (cells of rows, or sums of histograms) that are worth a thread.
FEWEST_NUMBERS = 2**17
# All integers up to here are numbers of float64, and so are the sums that stay below it.
EXACT = 2.0**53
# All numbers of float64 are multiples of this one.
SMALLEST = 5e-324


# ---------------------------------------------------------------- bins


def column_edges(x: np.ndarray, n_bins: int, gap: float = 0.0) -> np.ndarray:
    """Return the edges between the bins of a column, ascending: at most n_bins - 1.

    An edge is about midway between two neighbouring values, between any two if there are at most
    n_bins, else where n_bins quantiles are. NaN is left out.

    gap : values that are no farther apart count as the same
    """
    values = np.sort(np.asarray(x, np.float64)[~np.isnan(x)])
    if len(values) == 0:
        return np.empty(0)
    starts = np.concatenate([[True], values[1:] > values[:-1] + gap])
    least, largest = values[starts], values[np.append(starts[1:], True)]
    above = np.arange(1, len(least))
    if len(least) > n_bins:
        at = np.linspace(0, len(values) - 1, n_bins + 1)[1:-1]
        of_values = values[np.rint(at).astype(np.intp)]
        above = np.unique(np.searchsorted(least, of_values, side="right") - 1)
        above = above[above > 0]
    return shortest_between(largest[above - 1], least[above])


def shortest_between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the middle of each pair of neighbouring values, rounded to as few digits as keep it at
    or above `low` and below `high`: a threshold that is printed whole."""
    middle = low / 2 + high / 2
    between = np.where(middle < high, np.maximum(middle, low), low)
    is_open = np.ones(len(between), bool)
    for digits in range(1, 16):
        places = np.flatnonzero(is_open)
        rounded = np.array([float(f"{x:.{digits}g}") for x in between[places].tolist()])
        fits = (low[places] <= rounded) & (rounded < high[places])
        between[places[fits]] = rounded[fits]
        is_open[places[fits]] = False
    return between


@dataclass(frozen=True, eq=False)
class Bins:
    """The edges between the bins of each column: the bin of x is the number of edges below x, that
    of NaN is MISSING.

    edges : the edges of each column, ascending
    """

    edges: Sequence[np.ndarray]

    @classmethod
    def of_sample(cls, X: np.ndarray, n_bins: int = 255, gaps: np.ndarray | None = None) -> Bins:
        """Return the bins of the columns of sampled rows, dense or CSR, in which 0 is a value.

        gaps : the `gap` of each column; None: 0
        """
        gaps = np.zeros(X.shape[1]) if gaps is None else gaps
        if isinstance(n_bins, bool) or n_bins != int(n_bins) or not 1 <= n_bins <= MISSING:
            raise ValueError(f"n_bins must be between 1 and {MISSING}, got {n_bins!r}")
        if isinstance(X, np.ndarray):
            return cls([column_edges(x, n_bins, gap) for x, gap in zip(X.T, gaps, strict=True)])
        columns = X.tocsc()
        parts = np.split(columns.data, columns.indptr[1:-1])
        zeros = np.zeros(X.shape[0])
        return cls([column_edges(np.append(x, zeros[len(x) :]), n_bins) for x in parts])

    @property
    def n_bins(self) -> np.ndarray:
        """The number of bins of each column, without that of missing cells."""
        return np.array([len(edges) + 1 for edges in self.edges], np.int64)

    def transform(self, X: np.ndarray, workers: Workers) -> np.ndarray:
        """Return the bins of rows, dense or CSR: uint8 (n_columns, n_rows)."""
        if X.shape[1] != len(self.edges):
            raise ValueError(f"X must have {len(self.edges)} columns, got {X.shape[1]}")
        out = np.empty((X.shape[1], X.shape[0]), np.uint8)
        edges, first = self._padded()
        size = max(1, BINNED_CELLS // max(1, X.shape[1]))

        def part(start):
            rows = X[start : start + size]
            rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
            bin_columns(rows, edges, first, out[:, start : start + size])

        for _ in workers.map(part, range(0, X.shape[0], size)):
            pass
        return out

    def _padded(self):
        """Return the edges as `bin_columns` takes them, and where those of each column begin."""
        sizes = [2 ** len(edges).bit_length() - 1 for edges in self.edges]
        first = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        padded = np.full(first[-1], np.inf)
        for start, edges in zip(first, self.edges, strict=False):
            padded[start : start + len(edges)] = edges
        return padded, first

    def thresholds(
        self, boxes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return columns, low, high, missing as `NumberBoxes` takes them: low < x <= high."""
        edges, first = self._padded()
        edges = np.concatenate([edges, [np.inf]])
        column, low, high, missing = np.moveaxis(boxes, 2, 0)
        start = first[column]
        end = np.where(column < 0, start, first[column + 1])
        below, above = start + low - 1, start + high
        number_low = np.where(low == 0, -np.inf, edges[np.where(below < end, below, -1)])
        number_high = edges[np.where(above < end, above, -1)]
        number_low[low > high] = np.inf  # nothing is above it
        return column, number_low, number_high, missing.astype(np.uint8)


# ---------------------------------------------------------------- passes over the rows


class Pass(NamedTuple):
    """The histograms that a pass over the rows is to make, as `histograms` takes them.

    boxes : int32 (n_nodes, n_conditions, 4), of the nodes
    tree : the tree of each node, ascending
    at : where the sums of each node begin among n_sums
    """

    boxes: np.ndarray
    tree: np.ndarray
    seeds: np.ndarray
    share: float
    columns: np.ndarray
    first: np.ndarray
    at: np.ndarray
    n_sums: int

    def answer(
        self,
        bins: np.ndarray,
        gradient: np.ndarray,
        curvature: np.ndarray,
        first_row: int,
        workers: Workers,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums (n_sums, 2) over some rows, and how many of them each node has.

        bins : uint8 (n_columns, n_rows)
        first_row : the number of the first of these rows among all rows
        """
        sums, counts = np.zeros((self.n_sums, 2)), np.zeros(len(self.tree), np.int64)
        tests = BinBoxes(self.boxes, len(bins))

        def part(bounds):
            histograms(
                tests,
                bins,
                gradient,
                curvature,
                self.tree,
                self.seeds,
                self.share,
                first_row,
                self.columns,
                self.first,
                self.at,
                sums,
                counts,
                *bounds,
            )

        work = len(gradient) * self.share * self.columns.shape[1]
        for _ in workers.map(part, _parts(len(self.tree), work)):
            pass
        return sums, counts


def _parts(n_nodes, work):
    """Cut nodes, each of which costs some work, into parts that are worth a thread."""
    n = int(min(PARTS, n_nodes, max(1, n_nodes * work // FEWEST_NUMBERS)))
    edges = [n_nodes * i // max(1, n) for i in range(n + 1)]
    return list(pairwise(edges))


def to_grid(values: np.ndarray, largest: float, n_rows: int) -> np.ndarray:
    """Round values to multiples of a power of two, so coarse that all sums of n_rows are exact.

    largest : the largest absolute value, of all rows
    """
    if not largest > 0:
        return np.zeros_like(values, np.float64)
    bits = np.frexp(largest)[1] + np.frexp(float(max(1, n_rows)))[1]
    unit = max(np.ldexp(2.0, bits - np.frexp(EXACT)[1]), SMALLEST)
    return np.rint(values / unit) * unit


# ---------------------------------------------------------------- trees


@dataclass(frozen=True)
class Trees:
    """How trees are drawn and how far they grow.

    n_trees : how many trees grow
    most_leaves : each has 2 to so many leaves
    row_share, column_share : the shares of all rows and columns that each tree sees
    node_share : the share of the columns of its tree, as far as it may be split on them, that each
        node sees
    pace : the share of the leaves that it still may get that a tree gets at a level, rounded up;
        the splits of lower gain wait. 1 takes the fewest passes; less finds small boxes where they
        gain.
    max_conditions : the most columns on which a box depends
    min_samples : fewest rows of a node, in proportion to curvature
    ridge : what is added to the curvature of each side
    """

    n_trees: int = 30
    most_leaves: int = 30
    row_share: float = 0.7
    column_share: float = 1.0
    node_share: float = 0.7
    pace: float = 0.5
    max_conditions: int = 6
    min_samples: float = 5.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        for name, least in (("n_trees", 1), ("most_leaves", 2), ("max_conditions", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or value != int(value) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
        for name in ("row_share", "column_share", "node_share", "pace"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(
                    f"{name} must be above 0 and at most 1, got {getattr(self, name)!r}"
                )
        if not self.min_samples > 0:
            raise ValueError(f"min_samples must be positive, got {self.min_samples!r}")
        if not self.ridge >= 0:
            raise ValueError(f"ridge must be at least 0, got {self.ridge!r}")


class Order(NamedTuple):
    """The most columns of X that a box may see.

    column : the column of X from which each column of bins is made
    """

    most: int
    column: np.ndarray


@dataclass(frozen=True, eq=False)
class Limits:
    """Which columns may meet in a box, and in which direction boxes may be bounded.

    groups : bool (n_groups, n_columns): the columns of a box are all in some group; None: any may
        meet
    monotone : (n_columns,), 1 or -1 where a model rises or falls with a column; None: nowhere. A
        box is bounded on one side of such columns, and has a `sense`, the sign that its coefficient
        may have
    order : the most columns of X in a box; None: no limit
    """

    groups: np.ndarray | None = None
    monotone: np.ndarray | None = None
    order: Order | None = None

    def may_split(self, boxes: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return a mask of which of the columns (n_boxes, n) each box may be split on."""
        used = boxes[:, :, 0]
        seen = (columns[:, :, None] == used[:, None, :]).any(axis=2)
        allowed = seen | ~(used >= 0).all(axis=1)[:, None]
        if self.groups is not None:
            fits = (self.groups[:, used] | (used < 0)).all(axis=2).T  # (n_boxes, n_groups)
            allowed &= (fits[:, :, None] & self.groups[:, columns].transpose(1, 0, 2)).any(axis=1)
        if self.order is not None:
            most, column = self.order
            own = np.where(used < 0, -1, column[used])
            n_seen = (np.diff(np.sort(own, axis=1), prepend=-1) > 0).sum(axis=1)
            is_seen = (column[columns][:, :, None] == own[:, None, :]).any(axis=2)
            allowed &= is_seen | (n_seen < most)[:, None]
        return allowed

    def sense(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sign that each coefficient must have, 0: any; and which keep the limits."""
        if self.monotone is None:
            return np.zeros(len(boxes), np.int8), np.ones(len(boxes), bool)
        column, low, high, _ = np.moveaxis(boxes, 2, 0)
        sign = np.where((column < 0) | (low > high), 0, self.monotone[column])
        rises, falls = sign * (low > 0), sign * (high < HIGHEST)
        signs = rises - falls
        up, down = (signs > 0).any(axis=1), (signs < 0).any(axis=1)
        two_sided = ((rises != 0) & (falls != 0)).any(axis=1)
        return up.astype(np.int8) - down, ~two_sided & ~(up & down)


def grow_boxes(
    ask: Callable[[Pass], tuple[np.ndarray, np.ndarray]],
    n_bins: np.ndarray,
    trees: Trees,
    rng: np.random.Generator,
    workers: Workers,
    limits: Limits | None = None,
) -> np.ndarray:
    """Return the different boxes that are nodes of new trees, without the roots.

    They are int32 (n_boxes, max_conditions, 4), in the form of `_core/boxes.pyx`, the conditions of
    a box in the order of the columns.

    ask : a function that adds up `Pass.answer` over all rows; it is called once a level. Gradient
        and curvature are on the grid of `to_grid`, so that a sibling by subtraction is exact: that
        it has no missing cells is seen by their sums being 0.
    n_bins : the number of bins of each column
    """
    limits = Limits() if limits is None else limits
    forest = _Forest(n_bins, trees, rng)
    nodes = _Nodes.roots(forest)
    asked = forest.place(nodes.tree, nodes.boxes)
    forest.keep(asked, *_answered(ask, asked), np.full(len(nodes.tree), -1), nodes)
    grown, waiting = [], None
    while True:
        allowed = limits.may_split(nodes.boxes, forest.columns[nodes.tree])
        allowed = _some_columns(allowed, trees.node_share, rng)
        waiting = _Splits.joined(waiting, forest.best_splits(nodes, allowed, workers))
        chosen = forest.chosen(waiting)
        split, waiting = waiting.take(chosen), waiting.take(~chosen)
        children = _children(split.nodes.boxes, split.place, n_bins)
        kept = limits.sense(children.reshape(-1, *children.shape[2:]))[1].reshape(-1, 2)
        grown.append(children[kept])
        goes_on = forest.n_leaves[split.nodes.tree] < forest.budget[split.nodes.tree]
        if not goes_on.any():
            break
        split, children, kept = split.take(goes_on), children[goes_on], kept[goes_on]
        # The smaller half, by curvature, is summed.
        parents, pair = split.nodes, np.arange(len(children))
        side = (split.found[:, 2] > split.found[:, 4] - split.found[:, 2]).astype(int)
        asked = forest.place(parents.tree, children[pair, side])
        small = _Nodes(parents.tree, asked.boxes, parents.at.copy(), parents.count.copy())
        forest.keep(asked, *_answered(ask, asked), parents.at, small)
        large = _Nodes(
            parents.tree, children[pair, 1 - side], parents.at, parents.count - small.count
        )
        nodes = _Nodes.pairs(small, large, kept[pair, side], kept[pair, 1 - side])
    boxes = np.concatenate([np.empty((0, trees.max_conditions, 4), np.int32), *grown])
    last = np.where(boxes[:, :, 0] < 0, len(n_bins), boxes[:, :, 0])
    boxes = np.take_along_axis(boxes, np.argsort(last, axis=1, kind="stable")[:, :, None], axis=1)
    return np.unique(boxes, axis=0)


def _some_columns(allowed, share, rng):
    """Return a mask of a random share of the allowed columns of each node, rounded up."""
    if share == 1:
        return allowed.astype(np.uint8)
    draws = np.where(allowed, rng.random(allowed.shape, np.float32), np.float32(2))
    n = np.ceil(share * allowed.sum(axis=1, keepdims=True)).astype(np.intp)
    largest = np.take_along_axis(np.sort(draws, axis=1), np.maximum(n - 1, 0), axis=1)
    return (allowed & (draws <= largest)).astype(np.uint8)


def _answered(ask, asked):
    """Return the sums and counts of a pass, checked."""
    sums, counts = ask(asked)
    if sums.shape != (asked.n_sums, 2) or counts.shape != asked.tree.shape:
        wanted, got = ((asked.n_sums, 2), asked.tree.shape), (sums.shape, counts.shape)
        raise ValueError(f"ask must return sums and counts of shapes {wanted}, got {got}")
    return np.ascontiguousarray(sums), np.ascontiguousarray(counts, np.int64)


class _Nodes(NamedTuple):
    """Nodes of trees: the tree, box, place of the histogram and number of rows of each."""

    tree: np.ndarray
    boxes: np.ndarray
    at: np.ndarray
    count: np.ndarray

    @classmethod
    def roots(cls, forest):
        n = len(forest.budget)
        boxes = np.zeros((n, forest.trees.max_conditions, 4), np.int32)
        boxes[:, :, 0] = -1
        return cls(
            np.arange(n, dtype=np.int32), boxes, np.zeros(n, np.int64), np.zeros(n, np.int64)
        )

    @classmethod
    def pairs(cls, small, large, keeps_small, keeps_large):
        """Return the kept nodes of both, tree by tree."""
        kept = np.concatenate([keeps_small, keeps_large])
        nodes = cls(*(np.concatenate(both) for both in zip(small, large, strict=True))).take(kept)
        return nodes.take(np.argsort(nodes.tree, kind="stable"))

    def take(self, which):
        return _Nodes(*(values[which] for values in self))


class _Splits(NamedTuple):
    """The best splits of nodes, as `best_splits` finds them, tree by tree."""

    nodes: _Nodes
    found: np.ndarray
    place: np.ndarray

    @classmethod
    def joined(cls, first, second):
        """Return the splits of both, tree by tree."""
        if first is None:
            return second
        each = zip(first.nodes, second.nodes, strict=True)
        nodes = _Nodes(*(np.concatenate(pair) for pair in each))
        both = cls(
            nodes,
            np.concatenate([first.found, second.found]),
            np.concatenate([first.place, second.place]),
        )
        return both.take(np.argsort(nodes.tree, kind="stable"))

    def take(self, which):
        return _Splits(self.nodes.take(which), self.found[which], self.place[which])


class _Forest:
    """Trees that grow: what each sees, how many leaves it has, and the histograms of its nodes."""

    def __init__(self, n_bins, trees, rng):
        n, d = trees.n_trees, len(n_bins)
        n_columns = int(np.ceil(trees.column_share * d))
        self.trees, self.n_columns = trees, d
        self.budget, self.n_leaves = rng.integers(2, trees.most_leaves + 1, n), np.ones(n, np.int64)
        self.seeds = rng.integers(0, 2**64, n, np.uint64)
        self.columns = np.array(
            [np.sort(rng.permutation(d)[:n_columns]) for _ in range(n)], np.int32
        ).reshape(n, n_columns)
        self.first = np.zeros((n, n_columns + 1), np.int64)
        np.cumsum(n_bins[self.columns] + 1, axis=1, out=self.first[:, 1:])
        # A histogram takes the place of that of its parent, or a new one: as many as the tree has
        # leaves.
        size = self.budget * self.first[:, -1]
        self.free = np.cumsum(size) - size
        self.kept = np.empty((size.sum(), 2))

    def place(self, tree, boxes):
        """Return the pass that makes the histograms of some nodes, one after the other."""
        size = self.first[tree, -1]
        at, n_sums = np.cumsum(size) - size, int(size.sum())
        of_trees = self.seeds, self.trees.row_share, self.columns, self.first
        return Pass(np.ascontiguousarray(boxes), tree, *of_trees, at, n_sums)

    def keep(self, asked, sums, counts, parent, nodes):
        """Keep the histograms of nodes, subtracted from those of their parents.

        Write the places of the histograms, and the numbers of rows, to the nodes.
        """
        size = self.first[asked.tree, -1]
        starts = np.flatnonzero(np.diff(asked.tree, prepend=-1))
        within = np.cumsum(size) - size
        within -= np.repeat(within[starts], np.diff(np.append(starts, len(size))))
        nodes.at[:] = self.free[asked.tree] + within
        nodes.count[:] = counts
        np.add.at(self.free, asked.tree, size)
        keep_histograms(sums, asked.at, size, nodes.at, np.asarray(parent, np.int64), self.kept)

    def best_splits(self, nodes, allowed, workers):
        """Return the best split of each node, where it has one."""
        found, place = np.empty((len(nodes.tree), 5)), np.empty((len(nodes.tree), 3), np.int32)

        def part(bounds):
            best_splits(
                self.kept,
                nodes.at,
                nodes.count,
                nodes.tree,
                self.columns,
                self.first,
                allowed,
                self.trees.ridge,
                self.trees.min_samples,
                found,
                place,
                *bounds,
            )

        for _ in workers.map(part, _parts(len(nodes.tree), self.first[0, -1])):
            pass
        return _Splits(nodes, found, place).take(found[:, 0] > 0)

    def chosen(self, splits):
        """Choose splits of largest gain, for a share of the leaves that each tree may still get.

        Return a mask. A tree whose splits are as many as its leaves may be gets no more.
        """
        tree, gain = splits.nodes.tree, splits.found[:, 0]
        order = np.lexsort((-gain, tree))
        starts = np.flatnonzero(np.diff(tree[order], prepend=-1))
        rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
        most = np.ceil(self.trees.pace * (self.budget - self.n_leaves))
        chosen = np.zeros(len(tree), bool)
        chosen[order[rank < most[tree[order]]]] = True
        np.add.at(self.n_leaves, tree[chosen], 1)
        return chosen


def _children(boxes, place, n_bins):
    """Return both sides of splits of boxes: (n_boxes, 2, n_conditions, 4)."""
    column, last, missing_left = place.T
    here = np.arange(len(boxes))
    is_there = boxes[:, :, 0] == column[:, None]
    is_old = is_there.any(axis=1)
    at = np.where(is_old, is_there.argmax(axis=1), (boxes[:, :, 0] < 0).argmax(axis=1))
    low, high = (
        np.where(is_old, boxes[here, at, k], unbounded) for k, unbounded in ((1, 0), (2, HIGHEST))
    )
    only_missing = last == n_bins[column] - 1  # all bins are on the left
    children = np.repeat(boxes[:, None], 2, axis=1)
    left = np.stack([column, low, np.where(only_missing, high, last), missing_left == 1], axis=1)
    right = np.stack(
        [
            column,
            np.where(only_missing, 1, last + 1),
            np.where(only_missing, 0, high),
            missing_left == 0,
        ],
        axis=1,
    )
    children[here, 0, at], children[here, 1, at] = left, right
    return children
