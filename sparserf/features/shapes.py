"""Features that keep the constraints of their inputs: which do (`keeps`), and how draws are made
to.

A model must rise in x_i where the sign s_i is 1, and fall where it is -1. It does if every feature
that sees x_i, times a coefficient of at least 0, does: neurons scale activation(w'x + b), and
linear functions, with s_i scale w_i >= 0 and an activation that never falls. What other weights
they have does not matter. Likewise a model is convex in x_i if every feature that sees it is: a
convex activation of positive scale, or a linear function; and concave with one of negative scale.
Features that see no input that is bound may be anything.

Draws are first weights w, in the direction in which the feature is to rise. `within` sets weights
to zero until the inputs of each w may meet; `Shape` and `signed` then make neurons of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._base.checks import is_sparse
from .._base.random import sample_rows
from .activations import ACTIVATIONS, CONVEX, RISING
from .blocks import BumpBlock, FeatureBlock, LinearBlock, MonomialBlock, NeuronBlock
from .feature_set import FeatureSet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..columns.constraints import InputConstraints
    from ..rows import Rows

# The rows through which neurons are drawn: at most MOST_ROWS, of at most MOST_NUMBERS numbers, but
# at least FEWEST_ROWS.
MOST_ROWS, FEWEST_ROWS, MOST_NUMBERS = 100, 16, 2**22


class Shape(NamedTuple):
    """A kind of neurons that rise with w'x: scale activation(t) with t = w'x + b, or for a negative
    scale t = b - w'x."""

    activation: str
    scale: float


# ---------------------------------------------------------------- what keeps the constraints


def check_shapes(argument: str, features: FeatureSet, constraints: InputConstraints) -> None:
    """Check that all features keep the constraints; argument : the one that gave them."""
    breaks = np.flatnonzero(~keeps(features, constraints))
    if len(breaks):
        k = int(breaks[0])
        raise ValueError(
            f"{argument} must have features that keep monotone, convex and interactions, with "
            "coefficients of at "
            f"least 0 where they see a column that is bound, got feature {k}, "
            f"{features.take([k]).names()[0]!r}, "
            "that may not"
        )


def keeps(features: FeatureSet, constraints: InputConstraints) -> np.ndarray:
    """Return a mask of the features that keep the constraints, with any coefficient that they may
    have."""
    kept = [_keeps(block, constraints) for block in features.blocks]
    return features.from_blocks(np.concatenate([np.zeros(0, bool), *kept]))


def _keeps(block: FeatureBlock, constraints: InputConstraints) -> np.ndarray:
    """Return a mask of the features of a block that keep the constraints."""
    if isinstance(block, MonomialBlock):  # its envelope sees all inputs
        is_free = (
            not (constraints.is_bound | constraints.is_barred).any() and constraints.groups is None
        )
        return np.full(len(block), is_free)
    at, seen = block.inputs_of_weights, block.weights != 0
    kept = ~(seen & constraints.is_barred[at]).any(axis=1)
    if not block.is_linear:  # a linear function is a sum of functions of one input
        kept &= _may_meet(seen, constraints, at)
    is_positive, direction = block.nonnegative, np.sign(block.scale)
    rises = is_positive & block.rises & (direction * np.sign(block.weights) == constraints.sign[at])
    kept &= (rises | ~seen | (constraints.sign[at] == 0)).all(axis=1)
    bends = block.is_linear | (
        is_positive & block.is_convex & (constraints.curvature[at] == direction)
    )
    return kept & (bends | ~seen | (constraints.curvature[at] == 0)).all(axis=1)


def _may_meet(seen, constraints, at):
    """Return a mask of the features whose inputs are of one column, or all in some group."""
    if constraints.groups is None:
        return np.ones(len(seen), bool)
    column = np.broadcast_to(constraints.column[at], seen.shape)
    meets = np.where(seen, column, -1).max(axis=1) == np.where(
        seen, column, len(constraints.column) + column.max()
    ).min(axis=1)
    meets |= ~seen.any(axis=1)
    for group in constraints.groups:
        meets |= ~(seen & ~group[at]).any(axis=1)
    return meets


# ---------------------------------------------------------------- from weights to features that
# keep them


def within(
    weights: np.ndarray,
    constraints: InputConstraints,
    rng: np.random.Generator,
    inputs: np.ndarray | None = None,
) -> np.ndarray:
    """Return the weights with zeros at inputs that may not be seen, or not together: for each w the
    rest of a random choice.

    Of each w one of its inputs is drawn, and one of the groups that hold it; inputs outside of it
    are left out. Of inputs in which f must be convex and others in which it must be concave, one
    kind is left out.

    inputs : the input of each weight, (n_features, order); None: weights are dense
    """
    at = np.arange(weights.shape[1])[None] if inputs is None else inputs
    weights = np.where(constraints.is_barred[at], 0.0, weights)
    if constraints.groups is not None:
        place = np.where(weights != 0, rng.random(weights.shape), -1.0).argmax(axis=1)
        one = place if inputs is None else inputs[np.arange(len(inputs)), place]
        of_one = constraints.groups[:, one]  # (n_groups, n_features)
        group = constraints.groups[np.where(of_one, rng.random(of_one.shape), -1.0).argmax(axis=0)]
        together = group if inputs is None else np.take_along_axis(group, inputs, axis=1)
        same = constraints.column[at] == constraints.column[one][:, None]
        weights = np.where(same | (together & of_one.any(axis=0)[:, None]), weights, 0.0)
    curvature = constraints.curvature[at]
    if (curvature > 0).any() and (curvature < 0).any():
        seen = [((weights != 0) & (curvature == sign)).sum(axis=1) for sign in (1, -1)]
        chosen = np.where(rng.random(len(weights)) * (seen[0] + seen[1]) < seen[0], 1, -1)
        weights = np.where(curvature == -chosen[:, None], 0.0, weights)
    return weights


def neurons(
    weights: np.ndarray,
    shape: np.ndarray,
    shapes: Sequence[Shape],
    constraints: InputConstraints,
    offsets: Callable[[np.ndarray], np.ndarray],
    spreads: Callable[[np.ndarray], np.ndarray] | None,
    inputs: np.ndarray | None = None,
) -> list[tuple[NeuronBlock, np.ndarray]]:
    """Return neurons that keep the constraints, of weights in which `within` has left what they may
    see: (block, places).

    Weights get the signs that their inputs must have. A w that sees an input in which f must be
    convex or concave gets the activation `CONVEX`.

    shape : the number among `shapes` that each w is to have
    offsets : returns the offset of each w of the right signs
    spreads : returns the standard deviation of w'x of each w, by which the w of an activation
        without a bound are divided, so that their penalty does not depend on their size; None: they
        stay as they are
    """
    at = np.arange(weights.shape[1])[None] if inputs is None else inputs
    weights = np.where(constraints.sign[at] != 0, constraints.sign[at] * np.abs(weights), weights)
    curvature = np.where(weights != 0, constraints.curvature[at], 0)
    bent, found = np.sign(curvature.sum(axis=1)), []
    kinds = [(each, (bent == 0) & (shape == k)) for k, each in enumerate(shapes)]
    size = abs(shapes[0].scale)
    kinds += [(Shape(CONVEX, sign * size), bent == sign) for sign in (1, -1)]
    is_large = np.any(
        [is_it for each, is_it in kinds if not ACTIVATIONS[each.activation].is_bounded], axis=0
    )
    if spreads is not None and is_large.any():
        spread = spreads(weights)
        weights = np.divide(
            weights, spread[:, None], out=weights, where=(is_large & (spread > 0))[:, None]
        )
    offset = offsets(weights)
    for (activation, scale), is_it in kinds:
        some = np.flatnonzero(is_it)
        if len(some):
            sign = np.sign(scale)
            of_some = None if inputs is None else inputs[some]
            block = NeuronBlock(
                activation,
                scale,
                sign * weights[some],
                sign * offset[some],
                of_some,
                nonnegative=True,
            )
            found.append((block, some))
    return found


def inputs_that_keep(weights: np.ndarray, constraints: InputConstraints) -> FeatureSet:
    """Return a FeatureSet of each input times its weight, > 0, with the sign that the input must
    have."""
    d = len(weights)
    parts, places = [], []
    for is_signed in (False, True):
        some = np.flatnonzero((constraints.sign != 0) == is_signed)
        signed = weights[some] * np.where(is_signed, constraints.sign[some], 1)
        signed = np.where(constraints.is_barred[some], 0.0, signed)
        parts.append(
            LinearBlock(1.0, signed[:, None], some[:, None].astype(np.int32), nonnegative=is_signed)
        )
        places.append(some)
    return in_places(parts, places, d)


def in_places(
    blocks: Sequence[FeatureBlock], places: Sequence[np.ndarray], n_inputs: int
) -> FeatureSet:
    """Return the FeatureSet whose features have these places, given for those of each block."""
    order = np.empty(sum(map(len, blocks)), np.intp)
    order[np.concatenate(places)] = np.arange(len(order))
    return FeatureSet(blocks, n_inputs, order)


# ---------------------------------------------------------------- draws of maps


def rows_through(rows: Rows, weight: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Return a sample of the rows through which neurons are drawn, float64."""
    n = max(FEWEST_ROWS, min(MOST_ROWS, MOST_NUMBERS // rows.n_features_in))
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

    Of features that rise with no input, cosines and sines, half lose their weights at inputs that
    are bound, and the other half are neurons of the same weights with the activation `RISING`.
    Bumps lose them all. Features that rise with w'x, and linear functions, get the right signs.
    Monomials, whose envelope sees all inputs, raise a ValueError.

    through : rows of all inputs, (n, n_inputs): each neuron has w'x + b = 0 between a random two of
        them
    """
    blocks, places = [], []
    for block, place in features.by_block(features.to_blocks(np.arange(len(features)))):
        if isinstance(block, MonomialBlock):
            if not _keeps(block, constraints).all():
                raise ValueError(
                    "features must not be Taylor with monotone, convex or interactions: its "
                    "envelope sees all columns"
                )
            parts = [(block, np.arange(len(block)))]
        elif isinstance(block, LinearBlock):
            parts = _constrained_linear(block, constraints)
        else:
            parts = _constrained_block(block, constraints, through, rng)
        blocks += [part for part, _ in parts]
        places += [place[some] for _, some in parts]
    return in_places(blocks, places, features.n_inputs) if blocks else features


def _constrained_linear(block, constraints):
    """Return linear functions of the right signs: (block, places)."""
    at = block.inputs_of_weights
    weights = np.where(constraints.is_barred[at], 0.0, block.weights)
    is_signed = ((weights != 0) & (constraints.sign[at] != 0)).any(axis=1)
    weights = np.where(
        constraints.sign[at] != 0,
        np.sign(block.scale) * constraints.sign[at] * np.abs(weights),
        weights,
    )
    with_signs = replace(block, weights=weights)
    parts = [
        (replace(with_signs.take(some), nonnegative=is_positive), some)
        for is_positive in (False, True)
        for some in [np.flatnonzero(is_signed == is_positive)]
    ]
    return [(part, some) for part, some in parts if len(some)]


def _constrained_block(block, constraints, through, rng):
    """Return neurons or bumps that keep the constraints: (block, places)."""
    at, is_bound = block.inputs_of_weights, constraints.is_bound
    weights, n = within(block.weights, constraints, rng, block.inputs), len(block)
    is_bump = isinstance(block, BumpBlock)
    if is_bump or (is_bound.any() and not (block.rises or is_bound.all())):
        is_free = np.full(n, is_bump) | (np.arange(n) % 2 == 0)
        weights = np.where(is_free[:, None] & is_bound[at], 0.0, weights)
    if block.rises and not block.is_convex and (constraints.curvature != 0).any():
        is_flat = np.arange(n) % 2 == 0
        weights = np.where(is_flat[:, None] & (constraints.curvature[at] != 0), 0.0, weights)
    seen = ((weights != 0) & is_bound[at]).any(axis=1)
    free, bound = np.flatnonzero(~seen), np.flatnonzero(seen)
    parts = []
    if len(free):
        parts.append((replace(block.take(free), weights=weights[free]), free))
    if len(bound):
        scale = abs(block.scale)
        shapes = [Shape(block.activation if block.rises else RISING, scale)]
        if block.is_convex:
            shapes.append(Shape(block.activation, -scale))
        inputs = None if block.inputs is None else block.inputs[bound]

        def values(w, some):  # of (n, ., n_inputs) rows, some for each w
            return (
                w[:, None]
                * (some if inputs is None else np.take_along_axis(some, inputs[:, None], axis=2))
            ).sum(axis=2)

        def offsets(w):
            share, pairs = (
                rng.random(len(w)),
                values(w, through[rng.integers(0, len(through), (len(w), 2))]),
            )
            return -(share * pairs[:, 0] + (1 - share) * pairs[:, 1])

        def spreads(w):
            seen = (
                w @ through.T if inputs is None else np.einsum("ij,kij->ik", w, through[:, inputs])
            )
            return seen.std(axis=1)

        shape = rng.integers(0, len(shapes), len(bound))
        shaped = neurons(
            weights[bound],
            shape,
            shapes,
            constraints,
            offsets,
            None if block.rises else spreads,
            inputs,
        )
        parts += [(part, bound[some]) for part, some in shaped]
    return parts
