"""Features that keep the constraints of their inputs: which features do (`keeps`), and draws that
are changed so that they do (`constrained`).

A model must rise in x_i where the sign s_i is 1, and fall where it is -1. It does if every feature
that sees x_i, times a coefficient of at least 0, does: neurons scale activation(w'x + b), and
linear functions, with s_i scale w_i >= 0 and an activation that never falls. What other weights
they have does not matter. Likewise a model is convex in x_i if every feature that sees it is: a
convex activation of positive scale, or a linear function; and concave with one of negative scale.
Features that see no input that is bound may be anything. `FeatureBlock.keeps` and
`FeatureBlock.constrained` say this for each kind of features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import is_sparse
from .._base.random import sample_rows
from .blocks import LinearBlock
from .feature_set import FeatureSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..columns.constraints import InputConstraints
    from ..rows import Rows
    from .blocks import FeatureBlock


def check_shapes(argument: str, features: FeatureSet, constraints: InputConstraints) -> None:
    """Check that all features keep the constraints; argument : the one that gave them."""
    breaks = np.flatnonzero(~keeps(features, constraints))
    if len(breaks):
        k = int(breaks[0])
        raise ValueError(
            f"{argument} must have features that keep monotone, convex and interactions, with "
            "coefficients of at least 0 where they see a column that is bound, got feature "
            f"{k}, {features.take([k]).names()[0]!r}, that may not"
        )


def keeps(features: FeatureSet, constraints: InputConstraints) -> np.ndarray:
    """Return a mask of the features that keep the constraints, with any coefficient that they may
    have."""
    return features.mask(lambda block: block.keeps(constraints))


def inputs_that_keep(weights: np.ndarray, constraints: InputConstraints) -> FeatureSet:
    """Return a FeatureSet of each input times its weight, > 0, with the sign that the input must
    have."""
    parts, places = [], []
    for is_signed in (False, True):
        inputs = np.flatnonzero((constraints.sign != 0) == is_signed)
        signed = weights[inputs] * np.where(is_signed, constraints.sign[inputs], 1)
        signed = np.where(constraints.is_barred[inputs], 0.0, signed)[:, None]
        column = inputs[:, None].astype(np.int32)
        parts.append(LinearBlock(1.0, signed, column, nonnegative=is_signed))
        places.append(inputs)
    return in_places(parts, places, len(weights))


def in_places(
    blocks: Sequence[FeatureBlock], places: Sequence[np.ndarray], n_inputs: int
) -> FeatureSet:
    """Return the FeatureSet of some blocks; places : of each block, the places of its features."""
    order = np.empty(sum(map(len, blocks)), np.intp)
    order[np.concatenate(places)] = np.arange(len(order))
    return FeatureSet(blocks, n_inputs, order)


def rows_through(rows: Rows, weight: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Return a sample of the rows through which neurons are drawn, float64."""
    # 100 rows, or fewer where these would hold more than 2**22 numbers, but at least 16.
    fewest_rows, most_rows, most_numbers = 16, 100, 2**22
    n = max(fewest_rows, min(most_rows, most_numbers // rows.n_features_in))
    X = rows.array(sample_rows(np.ones(rows.n_rows) if weight is None else weight, n, rng)[0])
    return (X.toarray() if is_sparse(X) else X).astype(np.float64)


def constrained(
    features: FeatureSet,
    constraints: InputConstraints,
    through: np.ndarray,
    rng: np.random.Generator,
) -> FeatureSet:
    """Return features like these draws of a map, as many and in their order, that keep the
    constraints.

    through : rows of all inputs, (n, n_inputs), through which neurons are drawn
    """
    blocks, places = [], []
    for block, place in features.blocks_and_places():
        for part, own in block.constrained(constraints, through, rng):
            blocks.append(part)
            places.append(place[own])
    return in_places(blocks, places, features.n_inputs) if blocks else features
