"""Rules: boxes that are grown along the gradient of a fit, as the nodes of small trees.

A rule is a box, 1 where some columns lie in intervals and 0 elsewhere. At each batch of draws a
fit asks for new boxes: trees are grown on random rows and columns along the gradient of the loss at
its present coefficients (`growth.py`), all of their nodes are proposed, and those of the largest
gradient are the draws. It is Algorithm 1 of Yen et al. (2014) with draws that look at the residual,
and column generation for an l1 problem over all boxes (Demiriz, Bennett and Shawe-Taylor 2002).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import is_foreign, to_host
from .._base.checks import check_integer, check_real, is_sparse
from .._base.random import draw_seed, sample_rows, stream
from .._base.threads import Workers
from .blocks import BoxBlock
from .feature_set import FeatureSet
from .growth import BINNED_CELLS, HIGHEST, Bins, Limits, Trees, grow_boxes, to_grid

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Array, RowVector
    from ..columns.constraints import InputConstraints
    from ..rows import Block, Rows
    from .growth import Pass

# Most columns that rules may see, those of the largest variance.
MOST_COLUMNS = 1024
# The edges of bins are computed from a sample of at most so many rows.
SAMPLE = 100_000
# Draws in a batch, and draws of each target in all, where the user gives no numbers.
BATCH = 400
# The index of the first draw of the first target.
FIRST_DRAW = 1 << 40
# Boxes of which all rows, or none, are members say nothing: the least deviation of a box, as a
# share of all weight.
LEAST_DEVIATION = 1e-9


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

    At each penalty small trees are grown along the gradient of the loss, on random rows and
    columns; every node but the root is proposed as a box, and boxes that violate the optimality
    condition enter, of those that hold the same rows the simplest.

    Parameters
    ----------
    max_conditions : int, default 6
        The most columns in one rule, at least 1.
    n_bins : int, default 127
        The most different intervals into which a column is cut, 2 to 255.
    min_samples : int, default 5
        The fewest rows in a node of a tree and in its complement, at least 1.
    max_leaves : int, default 30
        Each tree has 2 to so many leaves, at random.
    n_trees : int, default 20
        The trees that are grown at each penalty.
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
    they are: no code knows y. Growth takes a pass over the rows for each level of the trees.

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
    n_bins: int = 127
    min_samples: int = 5
    max_leaves: int = 30
    n_trees: int = 20
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
            object.__setattr__(self, name, check_integer(name, getattr(self, name), least))
        if self.n_bins > HIGHEST + 1:
            raise ValueError(f"n_bins must be at most {HIGHEST + 1}, got {self.n_bins}")
        for name in ("max_samples", "max_features"):
            share = check_real(name, getattr(self, name), 0, strict=True)
            if share > 1:
                raise ValueError(f"{name} must be at most 1, got {share}")
            object.__setattr__(self, name, share)

    @property
    def trees(self) -> Trees:
        """How trees are grown."""
        return Trees(
            n_trees=self.n_trees,
            most_leaves=self.max_leaves,
            row_share=self.max_samples,
            node_share=self.max_features,
            pace=1.0,
            max_conditions=self.max_conditions,
            min_samples=float(self.min_samples),
        )


@dataclass(frozen=True, eq=False)
class RuleDictionary:
    """A dictionary of rules, grown batch by batch along the gradient of a fit.

    trees : how trees are grown
    inputs : the inputs that rules may see
    bins : the bins of these inputs
    limits : what boxes may see of these inputs
    weight : the weight of each row, of mean 1
    n_components, batch_size : the number of draws in all, and in a batch
    n_features_in : the number of inputs
    seed : the seed from which each target of a fit gets a random stream of its own
    """

    trees: Trees
    inputs: np.ndarray
    bins: Bins
    limits: Limits
    weight: np.ndarray
    n_components: int
    batch_size: int
    n_features_in: int
    seed: np.random.SeedSequence

    @property
    def n_batches(self) -> int:
        """Number of batches."""
        return max(1, -(-self.n_components // self.batch_size))

    @property
    def starts(self) -> np.ndarray:
        """The number of draws, at most, before each batch, and in all."""
        return np.minimum(np.arange(self.n_batches + 1) * self.batch_size, self.n_components)

    def grower(self, rows: Rows, target: int) -> RuleGrower:
        """Return the object that grows the batches of one target of a fit."""
        return RuleGrower(self, rows, target)


def make_rule_dictionary(
    rules: Rules,
    rows: Rows,
    *,
    n_components: int | None,
    batch_size: int | None,
    gamma: Any,
    rng: np.random.Generator,
    weight: np.ndarray,
    constraints: InputConstraints | None = None,
) -> RuleDictionary:
    """Make the dictionary of some rules, with bins from a sample of the rows."""
    if gamma is not None:
        raise ValueError(f"gamma must be None where features is Rules, got {gamma!r}")
    n_components = check_integer("n_components", n_components, 1)
    batch_size = BATCH if batch_size is None else check_integer("batch_size", batch_size, 1)
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
    X = X[:, inputs]
    limits = Limits()
    if constraints is not None:
        own = constraints.take(inputs)
        limits = Limits(own.groups, own.sign if own.sign.any() else None)
    # No more than there can be: trees keep places for all that they may get.
    trees = replace(
        rules.trees,
        max_conditions=min(rules.max_conditions, len(inputs)),
        most_leaves=min(rules.max_leaves, max(2, rows.n_rows)),
    )
    return RuleDictionary(
        trees,
        inputs,
        Bins.of_sample(X, rules.n_bins),
        limits,
        weight,
        n_components,
        batch_size,
        d,
        draw_seed(rng),
    )


class RuleGrower:
    """Grows the batches of one target of a fit: boxes along its gradient.

    Rows in memory are binned once; other rows at each pass. The index of the first draw is (target
    + 1) FIRST_DRAW, so that the draws of no two targets share an index.
    """

    def __init__(self, dictionary: RuleDictionary, rows: Rows, target: int):
        self._dictionary, self._next = dictionary, (target + 1) * FIRST_DRAW
        self._rng = stream(dictionary.seed, target)
        self._numbers = np.arange(rows.n_rows)
        self._bins = None

    def batch(
        self, n: int, rows: Rows, v: RowVector, h: RowVector
    ) -> tuple[int, FeatureSet, np.ndarray]:
        """Grow at most n boxes; return the index of the first, the boxes, and their gradients.

        v : the dual point, of which the gradients are the correlations
        h : the curvature of each row, or its weight
        """
        dictionary = self._dictionary
        largest = [each * rows.n_rows for each in rows.vectors.largest(v, h)]
        boxes = grow_boxes(
            partial(self._ask, rows, v, h, largest),
            dictionary.bins.n_bins,
            dictionary.trees,
            self._rng,
            Workers(1),
            dictionary.limits,
        )
        block, sense = self._block(boxes), dictionary.limits.sense(boxes)[0]
        features = FeatureSet([block], dictionary.n_features_in)
        g, share = rows.sum(partial(_sums_in_boxes, features), v, dictionary.weight)
        share = share / rows.n_rows
        deviation = np.sqrt(np.maximum(share * (1 - share), 0))
        height = np.where(sense < 0, -1.0, 1.0) / np.sqrt(np.maximum(deviation, LEAST_DEVIATION))
        g = g * height
        worth = np.where(sense == 0, np.abs(g), -g)  # of a rule that may only rise, g < 0
        worth[~_first_of_rows(g, share, block)] = 0.0
        best = np.argsort(-worth, kind="stable")[:n]
        best = np.sort(best[(deviation[best] > LEAST_DEVIATION) & (worth[best] > 0)])
        start, self._next = self._next, self._next + n
        block = replace(block, height=height)
        places = [best[sense[best] == 0], best[sense[best] != 0]]
        blocks = [replace(block.take(some), nonnegative=k == 1) for k, some in enumerate(places)]
        features = FeatureSet(blocks, dictionary.n_features_in)
        return start, features, g[np.concatenate(places)]

    def _ask(self, rows, v, h, largest, asked):
        """Return the histograms of a pass over all rows."""
        dictionary = self._dictionary
        bins_of = partial(_binned, dictionary.bins, dictionary.inputs)
        if rows.in_memory:
            if self._bins is None:
                self._bins = rows.map(bins_of)
            bins_of = partial(_same, self._bins)
        answer = partial(_histograms, asked, bins_of, largest, rows.n_rows)
        return rows.sum(answer, v, h, self._numbers)

    def _block(self, boxes):
        """Return boxes of bins as intervals of numbers, of height 1."""
        dictionary = self._dictionary
        column, low, high, _ = dictionary.bins.thresholds(boxes)
        inputs = np.where(column >= 0, dictionary.inputs[column], 0).astype(np.int32)
        low, high = np.where(column >= 0, low, -np.inf), np.where(column >= 0, high, np.inf)
        return BoxBlock(1.0, inputs, low, high, np.ones(len(boxes)))


def _first_of_rows(g: np.ndarray, share: np.ndarray, block: BoxBlock) -> np.ndarray:
    """Return a mask of the simplest of the boxes that hold the same rows, which have the same
    gradient and share to the last bit."""
    order = np.lexsort((block.is_used.sum(axis=1), share, g))
    is_first = np.ones(len(g), bool)
    is_first[order[1:]] = (np.diff(g[order]) != 0) | (np.diff(share[order]) != 0)
    return is_first


def _sums_in_boxes(features: FeatureSet, block: Block, v: Array, weight: Array) -> Any:
    """Return Phi'v and Phi'weight of a block of rows."""
    return block.correlate(features, v), block.correlate(features, weight)


def _binned(bins: Bins, inputs: np.ndarray, block: Block) -> np.ndarray:
    """Return the bins of a block of rows, uint8 (n_inputs, n_rows)."""
    out = np.empty((len(inputs), block.n_rows), np.uint8)
    size = max(1, BINNED_CELLS // len(inputs))
    for start in range(0, block.n_rows, size):
        some = np.arange(start, min(start + size, block.n_rows))
        X = block.take(some)
        X = (to_host(X) if is_foreign(X) else X)[:, inputs]
        X = X.toarray() if is_sparse(X) else np.ascontiguousarray(X)
        out[:, some] = bins.transform(X, Workers(1))
    return out


def _same(binned: np.ndarray, block: Block) -> np.ndarray:
    """Return bins that were made before, of rows that are one block."""
    return binned


def _histograms(
    asked: Pass,
    bins_of: Callable[[Block], np.ndarray],
    largest: list[float],
    n_rows: int,
    block: Block,
    v: Array,
    h: Array,
    numbers: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the histograms of the rows of a block, whose numbers among all rows are given.

    largest : max |n_rows v| and max |n_rows h| over all rows
    """
    gradient, curvature = (
        to_grid(n_rows * (to_host(each) if is_foreign(each) else each), most, n_rows)
        for each, most in zip((v, h), largest, strict=True)
    )
    return asked.answer(bins_of(block), gradient, curvature, int(numbers[0]), Workers(1))
