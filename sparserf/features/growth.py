"""Boxes grown along a gradient: all nodes of small trees, split by histograms of bins.

Each tree sees random rows, and each of its nodes random columns.

A tree begins as one node, which holds the rows that it draws. A node is split in two at the bin of
the column where the gain

    G_l^2 / (C_l + ridge) + G_r^2 / (C_r + ridge) - G^2 / (C + ridge)

is largest, where G and C are the sums of gradient and curvature over the rows of the left side, the
right side and the node. The sums of all bins of all columns, the histogram of a node, tell all its
gains. `_core/trees.pyx` grows a tree on rows in memory in one call. Where rows are elsewhere, all
trees grow together, level by level: one pass over the rows makes the histograms of the smaller
halves of all nodes that were split, and subtraction from the histogram of the node makes those of
the larger halves. Histograms are sums over rows, which whoever has the rows makes for a `Pass`.

Which rows a tree draws depends on its seed and the numbers of the rows alone, which columns a node
draws on that seed, its way from the root and the numbers of the columns, and `steps_of` rounds
gradients such that all sums are exact: the same boxes for any home of the rows, any number of
threads, any chunks of the rows, and any instruction set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._core.boxes import HIGHEST, MISSING, BinBoxes, bin_columns, histograms
from .._core.trees import Tree, sums_in_nodes
from .thresholds import moved_between, neighbours, starts_in_single, thresholds_between

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.threads import Workers
    from ..rows import Rows

# The number of cells that are binned at a time, which takes half a millisecond or more; CSR rows
# are made dense this many cells at a time.
BINNED_CELLS = 2**18
# The nodes of a pass are cut into at most this many parts for threads.
PARTS = 16
# A part of the nodes that reads at least this many cells is worth a thread.
FEWEST_CELLS = 2**17
# Integers up to this size, and sums of integers that stay below it, are exact in float64.
EXACT = 2.0**53
# The least positive number of float64, of which all are multiples.
SMALLEST = 5e-324


# ---------------------------------------------------------------- bins


def column_edges(x: np.ndarray, n_bins: int, gap: float = 0.0) -> np.ndarray:
    """Return the edges between the bins of a column, ascending: at most n_bins - 1.

    An edge is between two neighbouring values (`thresholds_between`), between any two if there are
    at most n_bins, else where n_bins quantiles are. NaN is left out. Where float32 tells more than
    n_bins values apart, an edge is between two that it does.

    gap : values that are no farther apart count as the same
    """
    values = np.sort(np.asarray(x, np.float64)[~np.isnan(x)])
    if len(values) == 0:
        return np.empty(0)
    starts = np.concatenate([[True], values[1:] > values[:-1] + gap])
    in_single = starts & starts_in_single(values)
    starts = in_single if np.count_nonzero(in_single) > n_bins else starts
    least, largest = values[starts], values[np.append(starts[1:], True)]
    above = np.arange(1, len(least))
    if len(least) > n_bins:
        at = np.linspace(0, len(values) - 1, n_bins + 1)[1:-1]
        of_values = values[np.rint(at).astype(np.intp)]
        above = np.unique(np.searchsorted(least, of_values, side="right") - 1)
        above = above[above > 0]
    return thresholds_between(largest[above - 1], least[above])


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
        if isinstance(X, np.ndarray):
            return cls([column_edges(x, n_bins, gap) for x, gap in zip(X.T, gaps, strict=True)])
        columns = X.tocsc()
        parts = np.split(columns.data, columns.indptr[1:-1])
        zeros = np.zeros(X.shape[0])
        return cls([column_edges(np.append(x, zeros[len(x) :]), n_bins) for x in parts])

    def within(self, rows: Rows, columns: np.ndarray) -> Bins:
        """Return the bins of a sample with edges between neighbouring values of all rows: one pass.

        columns : the columns of the rows to which these bins belong
        """
        pairs = zip(self.edges, neighbours(rows, columns, self.edges), strict=True)
        return Bins([moved_between(edges, *ends) for edges, ends in pairs])

    @cached_property
    def n_bins(self) -> np.ndarray:
        """The number of bins of each column, without that of missing cells."""
        return np.array([len(edges) + 1 for edges in self.edges], np.int64)

    def transform(self, X: np.ndarray, workers: Workers) -> np.ndarray:
        """Return the bins of rows, dense or CSR: uint8 (n_columns, n_rows)."""
        if X.shape[1] != len(self.edges):
            raise ValueError(f"X must have {len(self.edges)} columns, got {X.shape[1]}")
        out = np.empty((X.shape[1], X.shape[0]), np.uint8)
        edges, first = self._padded
        size = max(1, BINNED_CELLS // max(1, X.shape[1]))

        def part(start):
            rows = X[start : start + size]
            rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
            bin_columns(rows, edges, first, out[:, start : start + size])

        for _ in workers.map(part, range(0, X.shape[0], size)):
            pass
        return out

    @cached_property
    def _padded(self):
        """The edges as `bin_columns` takes them, and where those of each column begin."""
        sizes = [2 ** len(edges).bit_length() - 1 for edges in self.edges]
        first = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        padded = np.full(first[-1], np.inf)
        for start, edges in zip(first, self.edges, strict=False):
            padded[start : start + len(edges)] = edges
        return padded, first

    @cached_property
    def _ends(self):
        """The ends low < x <= high of each bin of each column, (2, n_columns + 1, MISSING + 1).

        The last column, which conditions on no column have, has all numbers in each bin.
        """
        ends = np.full((2, len(self.edges) + 1, MISSING + 1), np.inf)
        ends[0, :, 0] = ends[0, -1] = -np.inf
        for j, edges in enumerate(self.edges):
            ends[0, j, 1 : len(edges) + 1] = ends[1, j, : len(edges)] = edges
        return ends

    def thresholds(
        self, boxes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return columns, low, high, missing as `NumberBoxes` takes them: low < x <= high."""
        column, low, high, missing = (boxes[:, :, k] for k in range(4))
        above, up_to = self._ends
        number_low = above[column, low]
        number_low[low > high] = np.inf  # nothing is above it
        return column, number_low, up_to[column, high], missing.astype(np.uint8)

    def boxes(self, column: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the boxes of bins whose `thresholds` are low < x <= high; a column of -1 is no
        condition."""
        boxes = np.zeros((*column.shape, 4), np.int32)
        boxes[:, :, 0], boxes[:, :, 2] = -1, HIGHEST
        for j, edges in enumerate(self.edges):
            here = (column == j) & ((low > -np.inf) | (high < np.inf))
            first = np.searchsorted(edges, low[here], side="right")
            last = np.where(high[here] < np.inf, np.searchsorted(edges, high[here]), HIGHEST)
            is_empty = low[here] == np.inf
            first[is_empty], last[is_empty] = 1, 0
            boxes[here, 0], boxes[here, 1], boxes[here, 2] = j, first, last
        return boxes


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
        self, bins: np.ndarray, steps: np.ndarray, first_row: int, workers: Workers
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums (n_sums,) over some rows, and how many of them each node has.

        bins : uint8 (n_columns, n_rows)
        steps : `steps_of` these rows
        first_row : the number of the first of these rows among all rows
        """
        sums, counts = np.zeros(self.n_sums, np.int64), np.zeros(len(self.tree), np.int64)
        tests = BinBoxes(self.boxes, len(bins))

        def part(bounds):
            of_rows = bins, steps, self.tree, self.seeds, self.share, first_row
            places = self.columns, self.first, self.at
            histograms(tests, *of_rows, *places, sums, counts, *bounds)

        work = len(steps) * self.share * self.columns.shape[1]
        for _ in workers.map(part, _parts(len(self.tree), work)):
            pass
        return sums, counts


def _parts(n_nodes, work):
    """Cut nodes into parts that are worth a thread, (start, stop) each.

    work : the number of cells that a node reads
    """
    n = int(min(PARTS, n_nodes, max(1, n_nodes * work // FEWEST_CELLS)))
    edges = [n_nodes * i // max(1, n) for i in range(n + 1)]
    return list(pairwise(edges))


def rounding_unit(total: float) -> float:
    """Return a power of two as a unit: of numbers that are rounded to multiples of it, all sums are
    below 2^31 units.

    total : the sum of the sizes of the numbers, added up in any order: where it is a power of two,
        the factor 1.001 keeps rounding from changing the unit
    """
    return max(np.ldexp(1.0, np.frexp(1.001 * total)[1] - 30), SMALLEST)


def steps_of(gradient: np.ndarray, curvature: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Return gradients and curvatures as whole numbers of units, in one int64 for each row.

    It is 2^32 g + c (`_core/boxes.pyx`); all sums are exact.

    units : `rounding_unit` the totals of both
    """
    g, c = (
        np.rint(x / u).astype(np.int64) for x, u in zip((gradient, curvature), units, strict=True)
    )
    return (g << 32) + c


# ---------------------------------------------------------------- trees


@dataclass(frozen=True)
class TreeOptions:
    """How trees are drawn and how far they grow; `Rules` checks these numbers.

    n_trees : the number of trees
    most_leaves : each tree has from 2 to this many leaves
    row_share, column_share : the shares of all rows and columns that each tree sees
    node_share : of the columns of its tree on which a node may be split, the share that it sees
    max_conditions : the most columns on which a box depends
    min_samples : the fewest rows of a node, each of which counts by its curvature
    ridge : the number that is added to the curvature of each side
    """

    n_trees: int = 30
    most_leaves: int = 30
    row_share: float = 0.7
    column_share: float = 1.0
    node_share: float = 0.7
    max_conditions: int = 6
    min_samples: float = 5.0
    ridge: float = 1.0


class Order(NamedTuple):
    """The most columns of X that a box may see.

    column : the column of X from which each column of bins is made
    """

    most: int
    column: np.ndarray


@dataclass(frozen=True, eq=False)
class BoxLimits:
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

    @property
    def typed(self) -> BoxLimits:
        """These limits, with arrays of the types that `_core/trees.pyx` reads."""
        groups = None if self.groups is None else np.ascontiguousarray(self.groups, np.uint8)
        monotone = None if self.monotone is None else np.ascontiguousarray(self.monotone, np.int8)
        order = self.order and Order(
            self.order.most, np.ascontiguousarray(self.order.column, np.int32)
        )
        return BoxLimits(groups, monotone, order)

    def sense(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (the sign that the coefficient of each box must have, 0 for any; a mask of the
        boxes that keep the limits)."""
        if self.monotone is None:
            return np.zeros(len(boxes), np.int8), np.ones(len(boxes), bool)
        column, low, high, _ = np.moveaxis(boxes, 2, 0)
        sign = np.where((column < 0) | (low > high), 0, self.monotone[column])
        rises, falls = sign * (low > 0), sign * (high < HIGHEST)
        signs = rises - falls
        up, down = (signs > 0).any(axis=1), (signs < 0).any(axis=1)
        two_sided = ((rises != 0) & (falls != 0)).any(axis=1)
        return up.astype(np.int8) - down, ~two_sided & ~(up & down)


class Forest:
    """Trees that grow: what each sees, and its nodes."""

    def __init__(
        self,
        n_bins: np.ndarray,
        options: TreeOptions,
        rng: np.random.Generator,
        limits: BoxLimits | None = None,
    ):
        """Draw the trees.

        n_bins : the number of bins of each column
        """
        limits = BoxLimits() if limits is None else limits
        n, d = options.n_trees, len(n_bins)
        n_columns = int(np.ceil(options.column_share * d))
        n_leaves = rng.integers(2, options.most_leaves + 1, n)
        self._row_share, self._seeds = options.row_share, rng.integers(0, 2**64, n, np.uint64)
        drawn = rng.permuted(np.tile(np.arange(d, dtype=np.int32), (n, 1)), axis=1)[:, :n_columns]
        self._columns, self._n_bins, limits = np.sort(drawn, axis=1), n_bins, limits.typed
        ends = np.cumsum(2 * n_leaves - 1).tolist()
        self._nodes = np.empty((ends[-1], options.max_conditions, 4), np.int32)
        places = map(slice, [0, *ends], ends)
        self._trees = [
            Tree(options, self._nodes[place], seed, columns, n_bins, limits)
            for place, seed, columns in zip(places, self._seeds, self._columns, strict=True)
        ]

    def grow(
        self, bins: np.ndarray, steps: np.ndarray, units: np.ndarray, workers: Workers
    ) -> None:
        """Grow the trees on rows in memory.

        bins : uint8 (n_columns, n_rows)
        steps : `steps_of` the rows in these units
        """

        def grow(tree):
            tree.grow(bins, steps, units)

        for _ in workers.map(grow, self._trees):
            pass

    def grow_by_passes(
        self,
        ask: Callable[[Pass], tuple[np.ndarray, np.ndarray]],
        units: np.ndarray,
        workers: Workers,
    ) -> None:
        """Grow the trees by a pass over the rows for each level.

        ask : a function that adds up `Pass.answer` over all rows. Its sums are exact, and so are
            the differences that make the histograms of siblings
        units : those of the steps
        """

        def answer(part):
            tree, sums, counts = part
            tree.answer(sums, counts, units)

        while any(map(len, nodes := [tree.asks() for tree in self._trees])):
            asked = self._pass(nodes)
            sums, counts = ask(asked)
            sums, counts = (np.ascontiguousarray(each, np.int64) for each in (sums, counts))
            at, ends = np.append(asked.at, asked.n_sums), np.cumsum([len(each) for each in nodes])
            parts = [
                (tree, sums[at[end - len(own)] : at[end]], counts[end - len(own) : end])
                for tree, own, end in zip(self._trees, nodes, ends, strict=True)
                if len(own)
            ]
            for _ in workers.map(answer, parts):
                pass

    @cached_property
    def _first(self):
        """The place of the first sum of each column among the sums of a node, and the number of all
        sums, (n_trees, n_columns + 1)."""
        return np.cumsum(np.pad(self._n_bins[self._columns] + 1, ((0, 0), (1, 0))), axis=1)

    def _pass(self, nodes):
        """Return the pass that makes the histograms of some nodes of each tree, one after the
        other."""
        tree = np.repeat(np.arange(len(nodes), dtype=np.int32), [len(each) for each in nodes])
        size = self._first[tree, -1]
        of_trees = self._seeds, self._row_share, self._columns, self._first
        return Pass(np.concatenate(nodes), tree, *of_trees, np.cumsum(size) - size, int(size.sum()))

    def boxes(self) -> np.ndarray:
        """Return the boxes that are nodes of the trees, without the roots; trees may have the same.

        They are int32 (n_boxes, max_conditions, 4), in the form of `_core/boxes.pyx`, the
        conditions of a box in the order of the columns.
        """
        return self._nodes[self._is_box]

    def nodes(self) -> Nodes:
        """Return the nodes of the trees that have grown."""
        splits = [tree.splits() for tree in self._trees]
        first = np.cumsum([0, *map(len, splits)], dtype=np.int64)
        return Nodes(np.concatenate(splits), first, self._is_box)

    @property
    def _is_box(self):
        """Which nodes are boxes."""
        return self._nodes[:, 0, 0] >= 0


class Nodes(NamedTuple):
    """The nodes of trees that have grown.

    splits, first : as `sums_in_nodes` takes them
    is_box : which nodes are boxes
    """

    splits: np.ndarray
    first: np.ndarray
    is_box: np.ndarray

    def sums_in_boxes(self, bins: np.ndarray, v: np.ndarray, workers: Workers) -> np.ndarray:
        """Return the sum of each line of v over the rows that are in each box, (len(v), n_boxes).

        bins : uint8 (n_columns, n_rows)
        v : (., n_rows)
        """
        sums = np.empty((len(v), len(self.splits)))

        def part(bounds):
            sums_in_nodes(self.splits, self.first, bins, v, sums, *bounds)

        for _ in workers.map(part, _parts(len(self.first) - 1, bins.shape[1])):
            pass
        return sums[:, self.is_box]
