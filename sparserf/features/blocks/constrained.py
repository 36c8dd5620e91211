"""What features may see of their inputs under constraints (`InputConstraints`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ...columns.constraints import InputConstraints


def may_meet(seen: np.ndarray, constraints: InputConstraints, at: np.ndarray) -> np.ndarray:
    """Return a mask of the features whose inputs are of one column, or all in some group.

    seen : a mask of the inputs that each feature depends on, (n_features, order)
    at : the inputs, of the same shape or of one line
    """
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


def without_forbidden(
    weights: np.ndarray,
    constraints: InputConstraints,
    rng: np.random.Generator,
    inputs: np.ndarray | None = None,
) -> np.ndarray:
    """Return the weights with zeros at inputs that may not be seen, or not together.

    Which of its inputs a feature keeps is drawn. For each w one of its inputs is drawn, and one of
    the groups that hold it; inputs outside of that group are left out. Of inputs in which f must be
    convex and inputs in which it must be concave, one kind is drawn to be left out.

    inputs : the input of each weight, (n_features, order); None: weights are dense
    """
    at = np.arange(weights.shape[1])[None] if inputs is None else inputs
    weights = np.where(constraints.is_barred[at], 0.0, weights)
    if constraints.groups is not None:
        place = np.where(weights != 0, rng.random(weights.shape), -1.0).argmax(axis=1)
        one = place if inputs is None else inputs[np.arange(len(inputs)), place]
        holds = constraints.groups[:, one]  # (n_groups, n_features)
        group = constraints.groups[np.where(holds, rng.random(holds.shape), -1.0).argmax(axis=0)]
        together = group if inputs is None else np.take_along_axis(group, inputs, axis=1)
        same = constraints.column[at] == constraints.column[one][:, None]
        weights = np.where(same | (together & holds.any(axis=0)[:, None]), weights, 0.0)
    curvature = constraints.curvature[at]
    if (curvature > 0).any() and (curvature < 0).any():
        seen = [((weights != 0) & (curvature == sign)).sum(axis=1) for sign in (1, -1)]
        chosen = np.where(rng.random(len(weights)) * (seen[0] + seen[1]) < seen[0], 1, -1)
        weights = np.where(curvature == -chosen[:, None], 0.0, weights)
    return weights
