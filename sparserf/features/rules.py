"""Rules: boxes that are grown along the gradient of a fit, as the nodes of small trees.

A rule is a box, 1 where some columns lie in intervals and 0 elsewhere. At each batch of draws a
fit asks for new boxes: trees are grown on random rows and columns along the gradient of the loss at
its present coefficients (`growth.py`), all of their nodes are proposed, and those of the largest
gradient are the draws. It is Algorithm 1 of Yen et al. (2014) with draws that look at the residual,
and column generation for an l1 problem over all boxes (Demiriz, Bennett and Shawe-Taylor 2002).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar, Literal, Self
from weakref import WeakKeyDictionary

import numpy as np

from .._base.arrays import namespace, to_host
from .._base.checks import check_integer, check_real
from .._base.random import draw_seed, sample_rows
from .._base.threads import Workers
from .._core.boxes import BinBoxes, correlate
from ..rows.vectors import HostVectors
from .blocks import BoxBlock
from .feature_set import FeatureSet
from .following import Follower, FollowingDictionary
from .growth import (
    BINNED_CELLS,
    EXACT,
    HIGHEST,
    SMALLEST,
    Bins,
    BoxLimits,
    Forest,
    Order,
    TreeOptions,
    rounding_unit,
    steps_of,
)
from .thresholds import dense_cells

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Array, RowVector
    from ..columns.constraints import InputConstraints
    from ..columns.encoder import ColumnEncoder
    from ..rows import Block, Rows
    from .growth import Nodes, Pass

# The number of rows that are added up at a time: they stay in the cache. It is a multiple of 64.
ROWS_OF_SUM = 4096
# Up to FEW_ROWS rows a tree has at most LEAVES leaves, and a node at least ROWS_OF_NODE rows. With
# more rows the leaves grow with their square root, up to MOST_LEAVES, and the rows of a node with
# their fourth root.
LEAVES, ROWS_OF_NODE, FEW_ROWS, MOST_LEAVES = 60, 5, 3_000, 500
# A tree sees TREE_COLUMNS columns, or LEAST_SHARE of all if that is more, drawn at random.
TREE_COLUMNS, LEAST_SHARE = 40, 0.3
# Rules see at most this many columns, those of the largest variance.
MOST_COLUMNS = 1024
# The edges of bins are computed from a sample of at most this many rows.
SAMPLE = 100_000
# The default number of draws in a batch.
BATCH = 400
# Cosines of an angle that differ by no more than this are of the same time: the difference is
# rounding of the days since 1970.
SAME_ANGLE = 1e-9
# The least standard deviation of a box over the rows: a box that holds all rows, or none, is
# constant.
LEAST_DEVIATION = 1e-9
# Gradients of boxes that differ by less than this share of the largest count as equal: they may
# differ by rounding alone.
SAME_GRADIENT = 2.0**-30


@dataclass(frozen=True)
class Rules:
    r"""Rules such as ``age > 40 and bmi <= 25``: boxes that are grown where the fit still errs.

    A rule is a feature that is h where each of its columns lies in an interval, and 0 elsewhere.
    `sparse_rf` with ``features=Rules()`` minimises, over rules and their coefficients,

    .. math:: \frac1n \sum_i s_i L(b + \sum_j w_j h_j 1[x_i \in B_j], y_i)
        + \alpha \sum_j |w_j|,    \qquad h_j = (p_j (1 - p_j))^{-1/4}

    with p_j the weighted share of the rows in box B_j: the penalty of the effect w_j h_j of a rule
    is alpha times the root of its standard deviation. The duality gap of a model is over the rules
    that were found, not over all boxes.

    In each batch small trees are grown along the gradient of the loss, on random rows and columns,
    with more leaves where there are more rows. Every node except the root is proposed as a box. Of
    the boxes that violate the optimality condition, and of those with the same rows only the
    simplest, enter the model. A path has one batch at each penalty, a fit of a single penalty ten.

    Parameters
    ----------
    max_conditions : int, default 6
        The most columns in one rule, at least 1.
    n_bins : int, default 255
        The most different intervals into which a column is cut, 2 to 255.
    min_samples : int, optional
        The fewest rows in a node of a tree and in its complement, at least 1. None: 5, growing with
        the fourth root of the number of rows beyond 3,000.
    max_leaves : int, optional
        Each tree has from 2 to this many leaves, at random. None: 60, growing with the square root
        of the number of rows beyond 3,000, and at most 500.
    n_trees : int, default 10
        The trees that are grown for a batch.
    max_samples, max_features : float, default 0.7
        The share of the rows that a tree sees, and of the columns that a node sees, in (0, 1].

    Raises
    ------
    ValueError, TypeError
        A number is of another kind or size.

    Notes
    -----
    A column is binned once, to a byte a cell. A missing cell is a value of its own, on the side of
    a threshold where it lowers the loss more. The levels of a category are ordered by how frequent
    they are: no code knows y. Where rows are not in memory, growth takes a pass over them for each
    level of the trees.

    References
    ----------
    J. H. Friedman, B. E. Popescu, Predictive Learning via Rule Ensembles, Annals of Applied
    Statistics 2, 2008.
    A. Demiriz, K. P. Bennett, J. Shawe-Taylor, Linear Programming Boosting via Column Generation,
    Machine Learning 46, 2002.
    I. E.-H. Yen et al., Sparse Random Features Algorithm as Coordinate Descent in Hilbert Space,
    NIPS 2014, Algorithm 1.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(500, 3))
    >>> y = 2.0 * ((X[:, 0] > 0.4) & (X[:, 1] <= 0.7)) + 0.1 * rng.normal(size=500)
    >>> model = srf.sparse_rf(X, y, features=srf.Rules(), alpha=0.01, rng=0)
    >>> bool(np.mean((model.predict(X) - y) ** 2) < 0.05 * y.var())
    True
    """

    max_conditions: int = 6
    n_bins: int = 255
    min_samples: int | None = None
    max_leaves: int | None = None
    n_trees: int = 10
    max_samples: float = 0.7
    max_features: float = 0.7

    def __post_init__(self) -> None:
        for name, least in (
            ("max_conditions", 1),
            ("n_bins", 2),
            ("min_samples", 1),
            ("max_leaves", 2),
            ("n_trees", 1),
        ):
            value = getattr(self, name)
            if value is not None or name not in ("min_samples", "max_leaves"):
                object.__setattr__(self, name, check_integer(name, value, least))
        if self.n_bins > HIGHEST + 1:
            raise ValueError(f"n_bins must be at most {HIGHEST + 1}, got {self.n_bins}")
        for name in ("max_samples", "max_features"):
            share = check_real(name, getattr(self, name), 0, strict=True)
            if share > 1:
                raise ValueError(f"{name} must be at most 1, got {share}")
            object.__setattr__(self, name, share)

    def trees(self, n_rows: int, n_inputs: int) -> TreeOptions:
        """Return the options of trees that see n_inputs inputs of n_rows rows."""
        more = max(1.0, n_rows / FEW_ROWS)
        leaves = self.max_leaves or min(MOST_LEAVES, round(LEAVES * more**0.5))
        # At most as many leaves as rows: a tree reserves memory for all.
        return TreeOptions(
            n_trees=self.n_trees,
            most_leaves=min(leaves, max(2, n_rows)),
            row_share=self.max_samples,
            column_share=min(1.0, max(LEAST_SHARE, TREE_COLUMNS / n_inputs)),
            node_share=self.max_features,
            max_conditions=min(self.max_conditions, n_inputs),
            min_samples=float(self.min_samples or round(ROWS_OF_NODE * more**0.25)),
        )


@dataclass(frozen=True, eq=False)
class RuleInputs:
    """What rules may see of some rows.

    inputs : the inputs that they may see, at most MOST_COLUMNS
    bins, limits : of these inputs
    n_features_in : the number of all inputs
    """

    inputs: np.ndarray
    bins: Bins
    limits: BoxLimits
    n_features_in: int

    @classmethod
    def from_rows(
        cls,
        n_bins: int,
        rows: Rows,
        weight: np.ndarray,
        rng: np.random.Generator,
        encoder: ColumnEncoder | None = None,
        max_order: int | None = None,
        constraints: InputConstraints | None = None,
    ) -> Self:
        """Take the bins from a sample of the rows, their edges between numbers of all rows.

        encoder : the encoder that makes the inputs of the columns of X; None: these are the columns
        max_order : the most columns of X in a rule; None: no limit
        """
        d = rows.n_features_in
        sample, _ = sample_rows(weight, SAMPLE, rng)
        X = rows.array(sample)
        inputs = np.arange(d)
        if d > MOST_COLUMNS:
            inputs = np.sort(np.argsort(-rows.spreads(weight)[0], kind="stable")[:MOST_COLUMNS])
        if constraints is not None:
            constraints = constraints.without_curved()
            inputs = inputs[~constraints.is_barred[inputs]]
        if not len(inputs):
            inputs = np.zeros(1, np.intp)
        limits = BoxLimits()
        if max_order is not None:
            column = inputs if encoder is None else encoder.column[inputs]
            limits = replace(limits, order=Order(max_order, column))
        if constraints is not None:
            own = constraints.take(inputs)
            sign = own.sign if own.sign.any() else None
            limits = replace(limits, groups=own.groups, monotone=sign)
        bins = Bins.of_sample(X[:, inputs], n_bins, same_angles(encoder, inputs))
        if len(sample) < rows.n_rows:
            bins = bins.within(rows, inputs)
        return cls(inputs, bins, limits, d)


def same_angles(encoder: ColumnEncoder | None, inputs: np.ndarray) -> np.ndarray | None:
    """Return, for each of some inputs, how far values of the same time may differ; None without an
    encoder.

    encoder : the encoder that makes the inputs of the columns of X; None: these are the columns
    """
    return None if encoder is None else np.where(encoder.turn[inputs] > 0, SAME_ANGLE, 0.0)


class BinnedRows:
    """Rows in memory whose bins are known, in place of `Rows`; rules grow on them on one thread.

    bins : uint8 (n_inputs, n_rows)
    """

    bins: np.ndarray
    n_rows: int
    workers: Workers
    vectors: HostVectors

    def __init__(self, bins: np.ndarray):
        self.bins, self.n_rows, self.workers = bins, bins.shape[1], Workers(1)
        self.vectors = HostVectors(self.n_rows)

    def sum(self, answer: Callable[..., np.ndarray], *vectors: np.ndarray) -> np.ndarray:
        """Return answer(block, *vectors) of the only block, which is this object."""
        return answer(self, *vectors)


@dataclass(frozen=True, eq=False, kw_only=True)
class RuleDictionary(FollowingDictionary):
    """A dictionary of rules, grown batch by batch along the gradient of a fit.

    trees : how trees are grown
    seen : what rules may see
    weight : the weight of each row, of mean 1
    has_intercept : whether models have one: a box and the rows outside of it are then one feature
    """

    trees: TreeOptions
    seen: RuleInputs
    weight: np.ndarray
    has_intercept: bool = True

    kind: ClassVar[Literal["grown"]] = "grown"

    def binned(self, rows: Rows | BinnedRows) -> np.ndarray | None:
        """Return the bins of rows, which all targets share, uint8 (n_inputs, n_rows); None where
        the rows are not in memory."""
        if isinstance(rows, BinnedRows):
            return rows.bins
        if rows.in_memory and rows not in self._binned:
            self._binned[rows] = rows.map(partial(_bins_of, self.seen))
        return self._binned.get(rows)

    @cached_property
    def _binned(self):
        """The bins of rows, {rows: bins}, for as long as the rows exist."""
        return WeakKeyDictionary()

    @cached_property
    def keys(self) -> np.ndarray:
        """The `row_keys` of the rows."""
        return row_keys(len(self.weight))

    def canonical_keys(self, key: np.ndarray) -> np.ndarray:
        """Return sums of `keys` over boxes as numbers that are equal for boxes that are one
        feature: with an intercept, also for a box and the rows outside of it."""
        return np.minimum(key, self.keys.sum() - key) if self.has_intercept else key

    @cached_property
    def numbers(self) -> np.ndarray:
        """The number of each row."""
        return np.arange(len(self.weight))

    def boxes_of(self, features: FeatureSet) -> tuple[np.ndarray, np.ndarray]:
        """Return rules of this dictionary as boxes of bins, and their heights."""
        boxes, height = [np.zeros((0, 1, 4), np.int32)] * (not features.blocks), [np.zeros(0)]
        for block in features.blocks:
            column = np.searchsorted(self.seen.inputs, block.inputs)
            boxes.append(self.seen.bins.boxes(column, block.low, block.high))
            height.append(block.heights)
        order = features.from_blocks(np.arange(len(features)))
        return np.concatenate(boxes)[order], np.concatenate(height)[order]

    def correlate(self, features: FeatureSet, rows: BinnedRows, V: np.ndarray) -> np.ndarray:
        """Return the correlations of rules of this dictionary with vectors (n_targets, n_rows)."""
        boxes, height = self.boxes_of(features)
        bits = np.empty((len(boxes), -(-rows.n_rows // 64)), np.uint64)
        BinBoxes(boxes, len(rows.bins)).evaluate(rows.bins, bits)
        sums = np.zeros((len(V), len(boxes)))
        for start in range(0, rows.n_rows, ROWS_OF_SUM):
            some = slice(start, start + ROWS_OF_SUM)
            correlate(bits[:, start // 64 : some.stop // 64], V[:, some], sums)
        return sums * height

    def grower(self, target: int) -> RuleGrower:
        """Return the object that grows the batches of one target of a fit."""
        return RuleGrower(self, target)


def rules_at_a_penalty(is_one_of_many: bool) -> int:
    """Return the default number of rules of each target to grow at a penalty: a batch on a path,
    where the rules of larger penalties are there already, else ten batches."""
    return BATCH if is_one_of_many else 10 * BATCH


def make_rule_dictionary(
    rules: Rules,
    seen: RuleInputs,
    weight: np.ndarray,
    *,
    has_intercept: bool,
    n_components: int | None,
    batch_size: int | None,
    rng: np.random.Generator,
) -> RuleDictionary:
    """Make the dictionary of some rules."""
    n_components = check_integer("n_components", n_components, 1)
    batch_size = BATCH if batch_size is None else check_integer("batch_size", batch_size, 1)
    return RuleDictionary(
        trees=rules.trees(len(weight), len(seen.inputs)),
        seen=seen,
        weight=weight,
        has_intercept=has_intercept,
        n_components=n_components,
        batch_size=batch_size,
        n_features_in=seen.n_features_in,
        seed=draw_seed(rng),
    )


class RuleGrower(Follower):
    """Grows the batches of one target of a fit: boxes along its gradient."""

    def __init__(self, dictionary: RuleDictionary, target: int):
        super().__init__(dictionary, target)
        self._dictionary = dictionary
        self._keys: dict[int, float] = {}  # of the boxes so far, by their indices

    def batch(
        self,
        n: int,
        rows: Rows,
        v: RowVector,
        h: RowVector,
        terms: tuple[np.ndarray, FeatureSet] | None = None,
    ) -> tuple[int, FeatureSet, np.ndarray]:
        """Grow at most n boxes; return the index of the first, the boxes, and their gradients.

        Of boxes that hold the same rows there is the simplest, and none if a term holds them.

        v : the dual point, of which the gradients are the correlations
        h : the curvature of each row, or its weight
        terms : the indices and the features of the terms; None: boxes may hold the rows of terms
        """
        dictionary = self._dictionary
        forest = self._grow(rows, v, h)
        boxes = forest.boxes()
        sense = dictionary.seen.limits.sense(boxes)[0]
        answer = partial(_sums_in_boxes, forest.nodes(), self._bins_of(rows))
        g, share, key = rows.sum(answer, v, dictionary.weight, dictionary.keys)
        share = share / rows.n_rows
        deviation = np.sqrt(np.maximum(share * (1 - share), 0))
        height = np.where(sense < 0, -1.0, 1.0) / np.sqrt(np.maximum(deviation, LEAST_DEVIATION))
        g = g * height
        key = dictionary.canonical_keys(key)
        size = np.where(sense == 0, np.abs(g), -g)  # a coefficient that must be >= 0 needs g < 0
        size[~_first_of_rows(key, boxes)] = 0.0
        size[np.isin(key, self._keys_of(terms, rows))] = 0.0
        best = np.argsort(-_without_rounding(size), kind="stable")[:n]
        best = np.sort(best[(deviation[best] > LEAST_DEVIATION) & (size[best] > 0)])
        places = [best[sense[best] == 0], best[sense[best] != 0]]
        blocks = [
            self._block(boxes[some], height[some], nonnegative=k == 1)
            for k, some in enumerate(places)
            if len(some)
        ]
        features, chosen = FeatureSet(blocks, dictionary.n_features_in), np.concatenate(places)
        first = self._numbered(n)
        self._keys |= zip(range(first, first + n), key[chosen].tolist(), strict=False)
        return first, features, g[chosen]

    def _keys_of(self, terms, rows):
        """Return the keys of the boxes among the terms. Those that were not grown here, as of the
        model from which a fit starts, are computed from the rows."""
        if terms is None:
            return []
        index, features = terms
        given = [place for place, k in enumerate(index.tolist()) if k not in self._keys]
        if given:
            keys = rows.vectors.put(self._dictionary.keys)
            asked = rows.correlate(_of_height_one(features.take(given)), keys)
            asked = self._dictionary.canonical_keys(asked)
            self._keys |= zip(index[given].tolist(), asked.tolist(), strict=True)
        return [self._keys[k] for k in index.tolist()]

    def _grow(self, rows, v, h):
        """Grow new trees, in memory or by passes over the rows."""
        dictionary = self._dictionary
        seen = dictionary.seen
        forest = Forest(seen.bins.n_bins, dictionary.trees, self._rng, seen.limits)
        totals = rows.vectors.sum(_total_sizes, v, h)
        units = np.array([rounding_unit(rows.n_rows * float(each)) for each in totals])
        kept = dictionary.binned(rows)
        if kept is not None:
            steps = _steps(*(rows.vectors.fetch(each) for each in (v, h)), units, rows.n_rows)
            forest.grow(kept, steps, units, rows.workers)
            return forest

        def ask(asked):
            answer = partial(_histograms, asked, self._bins_of(rows), units, rows.n_rows)
            return rows.sum(answer, v, h, dictionary.numbers)

        forest.grow_by_passes(ask, units, rows.workers)
        return forest

    def _bins_of(self, rows):
        """Return a function that returns the bins of a block of the rows."""
        kept = self._dictionary.binned(rows)
        return partial(_bins_of, self._dictionary.seen) if kept is None else lambda _: kept

    def _block(self, boxes, height, nonnegative):
        """Return boxes of bins as intervals of numbers."""
        seen = self._dictionary.seen
        column, low, high, _ = seen.bins.thresholds(boxes)
        inputs = np.where(column >= 0, seen.inputs[column], 0).astype(np.int32)
        return BoxBlock(1.0, inputs, low, high, height, nonnegative)


def row_keys(n_rows: int) -> np.ndarray:
    """Return a random whole number for each row, the same in all fits, whose sums are exact.

    Boxes with the same rows have the same sum wherever the rows are; others have different sums.
    """
    bits = int(np.log2(EXACT)) - n_rows.bit_length()
    return np.random.default_rng(n_rows).integers(0, 2**bits, n_rows).astype(np.float64)


def _without_rounding(size: np.ndarray) -> np.ndarray:
    """Return numbers as multiples of a unit in which numbers that differ by rounding are equal, so
    that neither the order of the rows nor their blocks decide between boxes."""
    return np.rint(size / max(size.max(initial=0.0) * SAME_GRADIENT, SMALLEST))


def _of_height_one(features: FeatureSet) -> FeatureSet:
    """Return the features with boxes of height 1 in place of boxes of other heights."""
    blocks = [
        replace(each, scale=1.0, height=np.ones(len(each))) if isinstance(each, BoxBlock) else each
        for each in features.blocks
    ]
    return FeatureSet(blocks, features.n_inputs, features.order)


def _first_of_rows(key: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Return a mask of the simplest of the boxes that hold the same rows, whose keys are equal."""
    order = np.argsort((boxes[:, :, 0] >= 0).sum(axis=1), kind="stable")
    order = order[np.argsort(key[order], kind="stable")]
    is_first = np.ones(len(key), bool)
    is_first[order[1:]] = np.diff(key[order]) != 0
    return is_first


def _sums_in_boxes(
    nodes: Nodes, bins_of: Callable[[Block], np.ndarray], block: Block, *vectors: Array
) -> np.ndarray:
    """Return the sums of row vectors over the rows of a block in the boxes that are nodes."""
    return nodes.sums_in_boxes(bins_of(block), np.stack(list(map(to_host, vectors))), block.workers)


def _bins_of(seen: RuleInputs, block: Block) -> np.ndarray:
    """Return the bins of a block of rows, uint8 (n_inputs, n_rows)."""
    out = np.empty((len(seen.inputs), block.n_rows), np.uint8)
    size = max(1, BINNED_CELLS // len(seen.inputs))

    def part(start):
        some = np.arange(start, min(start + size, block.n_rows))
        out[:, some] = seen.bins.transform(dense_cells(block, some, seen.inputs), Workers(1))

    for _ in block.workers.map(part, range(0, block.n_rows, size)):
        pass
    return out


def _total_sizes(*vectors: Array) -> tuple[Array, ...]:
    """Return the sum of |x| of each array."""
    xp = namespace(vectors[0])
    return tuple(xp.sum(xp.abs(x)) for x in vectors)


def _steps(v: Array, h: Array, units: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the steps of some of n_rows rows, of gradients n_rows v and curvatures n_rows h."""
    return steps_of(n_rows * to_host(v), n_rows * to_host(h), units)


def _histograms(
    asked: Pass,
    bins_of: Callable[[Block], np.ndarray],
    units: np.ndarray,
    n_rows: int,
    block: Block,
    v: Array,
    h: Array,
    numbers: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the histograms of the rows of a block, whose numbers among all rows are given."""
    steps = _steps(v, h, units, n_rows)
    return asked.answer(bins_of(block), steps, int(numbers[0]), block.workers)
