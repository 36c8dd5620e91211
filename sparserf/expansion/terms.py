"""The terms of a model one by one, and the names and levels of the columns of X.

A feature is a function of *encodings* u_0, u_1, ... of the columns of X, one or more of each
column, which the `ColumnStage` of the model computes; without a stage the encodings are the columns
themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..columns.kinds import NUMBER, Encoding
from ..columns.stage import ColumnStage
from ..features import DefaultNames
from ..features.activations import ACTIVATIONS, ActivationFunction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .._base.expressions import Expression
    from ..columns.clocks import Clock
    from ..features import FeatureBlock, FeatureSet
    from .expansion import Expansion


@dataclass(frozen=True, eq=False)
class Term:
    """One feature of a model: gain activation(sum_v w_v u_v + offset), a function of encodings u_v.

    With the activation "product", that of features of `Taylor`, it is gain exp(-gamma sum_v u_v^2)
    prod_v u_v^w_v; with "bump" it is gain exp(-sum_v w_v |u_v - c_v|).

    position : int
        The index of the feature in the model.
    kind : type of FeatureBlock
        The kind of the feature.
    activation, gain, offset
        As in the formula.
    encodings, weights : ndarray of shape (n_encodings,)
        The indices v of the encodings on which the term depends, ascending, and their weights w_v:
        of a product the powers, of a bump at least 0.
    columns : ndarray of shape (n_columns,)
        The columns of X from which these encodings are made, ascending.
    place : ndarray of shape (n_encodings,)
        The index in `columns` of the column of each encoding.
    gamma : float or None
        As in the formula of a product; None for other activations.
    centers : ndarray of shape (n_encodings,) or None
        As in the formula of a bump; None for other activations.
    """

    position: int
    kind: type[FeatureBlock]
    activation: str
    gain: float
    offset: float
    encodings: np.ndarray
    weights: np.ndarray
    columns: np.ndarray
    place: np.ndarray
    gamma: float | None = None
    centers: np.ndarray | None = None

    @classmethod
    def from_block(cls, block: FeatureBlock, k: int, position: int, column: np.ndarray) -> Self:
        """Return the term of feature k of a block; column : the column of X from which each
        encoding is made."""
        gain, offset, gamma, centers = block.scale, float(block.offset[k]), None, None
        if block.envelope is not None:
            n = len(column)
            encodings, weights = (
                np.arange(n),
                np.bincount(block.inputs[k], minlength=n + 1)[1:].astype(np.float64),
            )
            gain *= float(block.weights[k, 0]) ** block.order * (2 * block.gamma) ** (
                weights.sum() / 2
            )
            gamma = block.gamma
        elif block.centers is not None:
            inputs = np.arange(block.order) if block.inputs is None else block.inputs[k]
            used = np.argsort(inputs, kind="stable")
            used = used[block.weights[k, used] != 0]
            encodings, weights, centers = (
                inputs[used],
                np.abs(block.weights[k, used]),
                block.centers[k, used],
            )
        else:
            if block.inputs is None:
                encodings, weights = np.arange(block.order), block.weights[k]
            else:
                encodings, place = np.unique(block.inputs[k], return_inverse=True)
                weights = np.bincount(place, block.weights[k])
            encodings, weights = encodings[weights != 0], weights[weights != 0]
        columns, place = np.unique(column[encodings], return_inverse=True)
        about = type(block), block.activation, float(gain), offset
        return cls(position, *about, encodings, weights, columns, place, gamma, centers)

    @property
    def sigma(self) -> ActivationFunction | None:
        """The activation of a neuron; None of products and bumps."""
        return ACTIVATIONS.get(self.activation)

    @property
    def is_linear(self) -> bool:
        """Whether the term is a linear function of its encodings."""
        return self.sigma is not None and self.sigma.is_linear

    @cached_property
    def is_product(self) -> bool:
        """Whether the term is Re(K prod_j z_j), where z_j depends on column j alone, as products,
        bumps and cosines are."""
        return self.sigma is None or self.sigma.is_periodic

    @property
    def constant(self) -> complex:
        """The constant K of a term that is a product."""
        return (
            self.gain
            if self.sigma is None
            else self.gain * np.exp(1j * (self.offset + self.sigma.phase))
        )

    @property
    def inputs(self) -> np.ndarray:
        """The encodings, as the inputs of its weights."""
        return self.encodings

    @cached_property
    def expression(self) -> Expression:
        """The term without its gain as an expression of encodings."""
        return self.kind.expression_of_one(self)

    @np.errstate(over="ignore", under="ignore")
    def parts(self, U: np.ndarray) -> np.ndarray:
        """Return the part of each column of the term, (n_columns, n_rows), in rows of encodings U,
        (n_rows, n_encodings).

        The parts of a product are its factors z_j; the parts of any other term are the summands of
        w'u.
        """
        u, w = U[:, self.encodings].T, self.weights[:, None]
        if self.gamma is not None:  # (u exp(-gamma u^2 / w))^w does not overflow
            factors = np.where(w > 0, u * np.exp(-self.gamma * u / np.maximum(w, 1) * u), 1.0) ** w
            return self._by_column(
                np.multiply, np.where(w > 0, factors, np.exp(-self.gamma * u * u))
            )
        if self.centers is not None:
            return np.exp(-self._by_column(np.add, w * np.abs(u - self.centers[:, None])))
        sums = self._by_column(np.add, w * u)
        return np.exp(1j * sums) if self.is_product else sums

    def _by_column(self, combine, values):
        """Combine values of the encodings, (n_encodings, n_rows), to one of each column, by np.add
        or np.multiply."""
        combined = np.full((len(self.columns), values.shape[1]), float(combine.identity))
        combine.at(combined, self.place, values)
        return combined


def terms_of(features: FeatureSet) -> Iterator[Term]:
    """Yield the terms of all features, block by block, including features that depend on no
    column."""
    column = columns_of_encodings(features)
    for block, positions in features.by_block(features.to_blocks(np.arange(len(features)))):
        for k, position in enumerate(positions.tolist()):
            yield Term.from_block(block, k, position, column)


def term_sizes(features: FeatureSet, coef: np.ndarray) -> np.ndarray:
    """Return |coef_j| sup_x |phi_j(x)|, shape (n_outputs, n_terms).

    For a term without a bound it is |coef_j gain_j| sum_v |w_v|, the size at encodings of 1.
    """
    largest = np.array(features.largest_value)
    if np.isinf(largest).any():
        for term in terms_of(features):
            if np.isinf(largest[term.position]):
                largest[term.position] = abs(term.gain) * np.abs(term.weights).sum()
    return np.abs(np.atleast_2d(coef)) * largest


def columns_of_encodings(features: FeatureSet) -> np.ndarray:
    """Return the column of X from which each encoding is made."""
    return np.arange(features.n_inputs) if features.stage is None else features.stage.column


def stage_of(features: FeatureSet) -> ColumnStage:
    """Return the column stage of features; for those that have none, one that makes an encoding of
    each column as it is."""
    if features.stage is not None:
        return features.stage
    n = features.n_inputs
    return ColumnStage.from_encodings([Encoding(j, NUMBER) for j in range(n)], n, may_miss=False)


def column_names(model: Expansion) -> Sequence[str]:
    """Return the names of the columns of X: the names in the data frame, or x0, x1, ..."""
    return model.feature_names_in_ or DefaultNames(model.n_features_in)


def column_clocks(model: Expansion) -> Mapping[int, Clock]:
    """Return {column: its `Clock`} of the columns of X that are dates, durations or times of
    day."""
    stage = model.features.stage
    return {} if stage is None or stage.table is None else stage.table.clocks


def column_levels(model: Expansion) -> Sequence[Sequence[Any] | None]:
    """Return the levels of each column of X that is a category, and None for each column of
    numbers."""
    stage = model.features.stage
    return (
        [None] * model.n_features_in if stage is None or stage.table is None else stage.table.levels
    )
