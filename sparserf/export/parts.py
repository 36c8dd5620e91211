"""The parts of a model that exports write: the views of columns that its terms see, what is linear in these, and the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from .._core.moments import KINDS
from ..columns.stage import ColumnStage
from ..features import DENSE_BELOW

if TYPE_CHECKING:
    from ..model import SparseModel


@dataclass(frozen=True, eq=False)
class Terms:
    """sum_j coef_j phi_j(u) of terms of one kind: phi_j = activation(w_j'u + offset_j), or for products as in `MonomialBlock`.

    coef : (n_outputs, n_terms), what the scale of the features is a factor of
    weights : (n_terms, n_inputs), or (n_terms, order) where `inputs` is given; (n_terms, 1) of products
    offset : (n_terms,)
    inputs : None, or (n_terms, order), the input that each weight multiplies, or the factors of a product
    gamma : of products, else None
    """

    activation: str
    coef: np.ndarray
    weights: np.ndarray
    offset: np.ndarray
    inputs: np.ndarray | None
    gamma: float | None

    def __len__(self) -> int:
        return len(self.offset)


@dataclass(frozen=True, eq=False)
class Parts:
    """f = intercept + linear u + the sum of all terms, of u, the views that a stage shows.

    stage : a `ColumnStage` of those views alone that f depends on; of columns as they are, too
    linear : (n_outputs, len(stage))
    terms : a tuple of `Terms`
    intercept : (n_outputs,)
    """

    stage: ColumnStage
    linear: np.ndarray
    terms: tuple[Terms, ...]
    intercept: np.ndarray

    @cached_property
    def columns(self) -> np.ndarray:
        """The columns of X that are read, ascending."""
        return np.unique(self.stage.column)

    @cached_property
    def is_raw(self) -> bool:
        """Whether the views are columns as they are."""
        stage = self.stage
        as_they_are = not (stage.kind.any() or len(stage.knots) or stage.may_miss) and stage.is_raw
        return as_they_are and bool(((stage.center == 0) & (stage.unit == 1)).all())

    @classmethod
    def of(cls, model: SparseModel) -> Self:
        features = model.features
        used = _used(features)
        place = np.cumsum(used) - 1  # of each input among those that are used
        coef = features.to_blocks(np.atleast_2d(model.coef))
        linear, terms, intercept = np.zeros((len(coef), len(used))), [], np.array(model.intercept, np.float64, ndmin=1)
        for block, c in features.by_block(coef):
            if block.activation == "identity":
                linear += _on_inputs(block, block.scale * c, len(used))
                intercept += block.scale * c @ block.offset
            else:
                terms.append(_terms(block, block.scale * c, used, place))
        stage = _raw(features.n_inputs) if features.stage is None else features.stage
        return cls(_at_levels(stage.take(np.flatnonzero(used)).in_knots), linear[:, used], tuple(terms), intercept)


def _used(features):
    """Which inputs f depends on, a mask."""
    used = np.zeros(features.n_inputs, bool)
    for block in features.blocks:
        if block.envelope is not None:
            used[:] = True
        elif block.inputs is None:
            used |= (block.weights != 0).any(axis=0)
        else:
            used[block.inputs[block.weights != 0]] = True
    if not used.any():  # a row tells how many rows there are
        used[0] = True
    return used


def _on_inputs(block, coef, n_inputs):
    """The coefficients on the inputs, of coef on linear features."""
    if block.inputs is None:
        return coef @ block.weights
    return np.stack([np.bincount(block.inputs.ravel(), (c[:, None] * block.weights).ravel(), n_inputs) for c in coef])


def _terms(block, coef, used, place):
    weights, inputs, n_inputs = block.weights, block.inputs, int(used.sum())
    if block.envelope is None and inputs is None:
        weights = weights[:, used]
    elif block.envelope is None:
        inputs = np.where(weights != 0, place[inputs], 0)
        if n_inputs <= DENSE_BELOW * block.order:
            weights, inputs = block.dense_weights(inputs, n_inputs), None
    return Terms(block.activation, coef, weights, block.offset, inputs, block.gamma)


def _raw(n):
    """The stage of n columns as they are."""
    zero, one, none = np.zeros(n), np.ones(n), np.zeros(0)
    infinite, whole, first = np.full(n, np.inf), np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
    return ColumnStage(n, np.arange(n), whole, zero, zero, one, infinite, one, zero, first, none, none, may_miss=False)


def _at_levels(stage):
    """The stage without those knots of categories that lie between two levels: only training rows are there."""
    table = stage.table
    levels = [None] * stage.n_columns if table is None else table.levels
    is_category = np.array([levels[j] is not None for j in stage.column], bool)
    of_category = np.repeat(is_category, np.diff(stage.first_knot))
    kept = ~of_category | (stage.knots == np.floor(stage.knots))
    first = np.append(0, np.cumsum(kept))[stage.first_knot]
    return replace(stage, first_knot=first, knots=stage.knots[kept], scores=stage.scores[kept])


def kinds(stage: ColumnStage) -> np.ndarray:
    """Of each view, by name."""
    return np.array(KINDS)[stage.kind]
