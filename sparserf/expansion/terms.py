"""The terms of a model one by one, and the names and levels of the columns of X."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..columns.encoder import ColumnEncoder
from ..columns.kinds import NUMBER, Encoding
from ..features import DefaultNames

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..columns.clocks import Clock
    from ..columns.table import Table
    from ..features import FeatureSet, Term
    from .expansion import Expansion


def terms_of(features: FeatureSet) -> Iterator[Term]:
    """Yield the terms of all features, block by block, including features that depend on no
    column."""
    column = columns_of_encodings(features)
    for block, positions in features.blocks_and_places():
        for k, position in enumerate(positions.tolist()):
            yield block.term(k, position, column)


def term_gains(features: FeatureSet) -> np.ndarray:
    """Return the factor of each term beside its coefficient, (n_terms,)."""
    gain = np.empty(len(features))
    for term in terms_of(features):
        gain[term.position] = term.gain
    return gain


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
    return np.arange(features.n_inputs) if features.encoder is None else features.encoder.column


def encoding_spreads(model: Expansion) -> np.ndarray:
    """Return the spread of each encoding over the training rows, as far as the model knows it.

    It is 1, the standard deviation, in robust units; of a number as it is, that of numbers spread
    evenly over the range of its column; and 1 where no more is known.
    """
    features, ranges = model.features, model.ranges
    spread, is_number = np.ones(features.n_inputs), np.ones(features.n_inputs, bool)
    encoder = features.encoder
    if encoder is not None:
        as_it_is = (encoder.center == 0) & (encoder.unit == 1) & np.isinf(encoder.reach)
        is_number = as_it_is & (encoder.kind == NUMBER)
        is_number &= (np.diff(encoder.first_knot) == 0) | np.isfinite(encoder.ends[:, 0])
    place = np.full(features.n_features_in, -1)
    place[ranges.column] = np.arange(len(ranges.column))
    at = place[columns_of_encodings(features)]
    known = np.flatnonzero(is_number & (at >= 0))
    low, high = ranges.ends[at[known]].T
    spread[known] = (high / 2 - low / 2) / np.sqrt(3)
    return spread


def encoder_of(features: FeatureSet) -> ColumnEncoder:
    """Return the column encoder of features; for those that have none, one that makes an encoding
    of each column as it is."""
    if features.encoder is not None:
        return features.encoder
    n = features.n_inputs
    return ColumnEncoder.from_encodings([Encoding(j, NUMBER) for j in range(n)], n, may_miss=False)


def table_of(features: FeatureSet) -> Table | None:
    """Return what features know of the columns of a data frame; None of an array of numbers."""
    return None if features.encoder is None else features.encoder.table


def column_names(model: Expansion) -> Sequence[str]:
    """Return the names of the columns of X: the names in the data frame, or x0, x1, ..."""
    return model.feature_names_in_ or DefaultNames(model.n_features_in)


def column_clocks(model: Expansion) -> Mapping[int, Clock]:
    """Return {column: its `Clock`} of the columns of X that are dates, durations or times of
    day."""
    table = table_of(model.features)
    return {} if table is None else table.clocks


def column_values(model: Expansion) -> dict[int, np.ndarray]:
    """Return {column: the values that it takes, ascending} of the columns of numbers that took few
    whole ones in training, and of booleans: 0 and 1 where no more is known of them."""
    return {j: np.array([0.0, 1.0]) for j in column_flags(model)} | model.ranges.taken


def column_flags(model: Expansion) -> frozenset[int]:
    """Return the columns of X that hold booleans."""
    table = table_of(model.features)
    return frozenset() if table is None else table.flags


def column_levels(model: Expansion) -> Sequence[Sequence[Any] | None]:
    """Return the levels of each column of X that is a category, and None for each column of
    numbers."""
    table = table_of(model.features)
    return [None] * model.n_features_in if table is None else table.levels
