"""The terms of a model with fewer inputs each: candidates from which `prune` takes those that give its predictions best.

The mean of cos(u + v) over a v that is independent of u, and symmetric around its mean m, is a smaller cosine of the rest:
E cos(u + v) = E cos(v - m) cos(u + m). So the part of a cosine that a few of its inputs tell is a cosine of these, the weights
of the others being zero and its phase moved by their means. Of other neurons and of dependent inputs that holds nearly, and
the coefficients are fitted again.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ..features import FeatureSet, Linear

if TYPE_CHECKING:
    from ..features.blocks import FeatureBlock
    from ..rows import Rows

# Of a term of many inputs, subsets of those that move it most: of so many more than may stay.
MORE_INPUTS = 2
# Candidates in all, about: their Gram matrix is most of the work.
MOST_CANDIDATES = 2_000


def of_few_inputs(rows: Rows, features: FeatureSet, h: np.ndarray, max_order: int) -> FeatureSet:
    """Return candidates that see at most max_order columns of X, parts of the features.

    Linear functions, which are sums of functions of one column, stay as they are, and so do monomials of as few factors.
    h : weights of the rows, of sum 1
    """
    mean, deviation = _moments_of_inputs(rows, features, h)
    n_subsets = max(1, MOST_CANDIDATES // max(len(features), 1))
    blocks = []
    for block in features.blocks:
        column = _columns_seen(features, block)
        if block.activation in ("identity", "product"):
            if block.activation == "identity" or block.order <= max_order:
                blocks.append(block)
        else:
            effect = (block.weights * deviation[_inputs_of(block)]) ** 2
            subsets = [_subsets(column[k], effect[k], max_order, n_subsets) for k in range(len(block))]
            few = np.repeat(np.arange(len(block)), list(map(len, subsets)))
            kept = np.concatenate([np.isin(column[k], some)[None] for k, of_term in enumerate(subsets) for some in of_term])
            blocks.append(_with_weights(block.take(few), kept, mean))
    return FeatureSet(blocks, features.n_inputs, stage=features.stage)


def with_fewer_weights(rows: Rows, features: FeatureSet, h: np.ndarray, share: float) -> FeatureSet:
    """Return the features without their smallest weights: those of each that make up to this share of the variance of w'x.

    The inputs are taken as uncorrelated. h : weights of the rows, of sum 1
    """
    mean, deviation = _moments_of_inputs(rows, features, h)
    blocks = []
    for block in features.blocks:
        if block.activation == "product":
            blocks.append(block)
            continue
        effect = (block.weights * deviation[_inputs_of(block)]) ** 2
        ascending = np.argsort(effect, axis=1, kind="stable")
        below = np.cumsum(np.take_along_axis(effect, ascending, axis=1), axis=1)
        kept = np.empty(effect.shape, bool)
        np.put_along_axis(kept, ascending, below > share * below[:, -1:], axis=1)
        blocks.append(_with_weights(block, kept, mean))
    return FeatureSet(blocks, features.n_inputs, features.order, features.stage)


def _moments_of_inputs(rows, features, h):
    """Return the mean of each input and its standard deviation."""
    inputs = Linear().draw(None, features.n_inputs)
    mean = rows.correlate(inputs, h)
    return mean, np.sqrt(np.maximum(rows.correlate_squares(inputs, h) - mean**2, 0.0))


def _inputs_of(block):
    """Return the inputs that the weights multiply, (n_features, order)."""
    return np.broadcast_to(np.arange(block.order), block.weights.shape) if block.inputs is None else block.inputs


def _columns_seen(features, block):
    """Return the columns of X that the weights are of, -1 where they are zero."""
    inputs = _inputs_of(block) if block.activation != "product" else block.inputs
    column = inputs if features.stage is None else features.stage.column[inputs]
    return np.where(block.weights != 0, column, -1) if block.activation != "product" else column


def _subsets(columns, effect, max_order, most):
    """Return sets of at most max_order columns, of those that move a term most; the first are the largest."""
    seen, place = np.unique(columns[columns >= 0], return_inverse=True)
    if len(seen) <= max_order:
        return [seen]
    total = np.bincount(place, effect[columns >= 0])
    largest = np.argsort(-total, kind="stable")[: max_order + MORE_INPUTS]
    return [seen[list(some)] for some in combinations(largest, max_order)][:most]


def _with_weights(block: FeatureBlock, kept: np.ndarray, mean: np.ndarray) -> FeatureBlock:
    """Return the block with the weights that are kept, the others' inputs standing at their means."""
    weights = np.where(kept, block.weights, 0.0)
    if block.activation == "identity":
        return replace(block, weights=weights)
    hidden = np.where(kept, 0.0, block.weights)
    moved = (hidden * mean[_inputs_of(block)]).sum(axis=1)
    return replace(block, weights=weights, offset=(block.offset + moved).astype(block.offset.dtype))
