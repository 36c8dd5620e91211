"""One model of several: the weighted sum of what they predict, in one set of terms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...features import FIRST_DRAW, linear_functions
from ...solvers.multinomial import MultinomialProblem
from ...solvers.problem import Problem
from ..fit_progress import power_of_two

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...columns.encoder import ColumnEncoder
    from ...model import SparseModel
    from ..task import Task


def weighted_sum(
    models: Sequence[SparseModel], weights: Sequence[float], constant: np.ndarray, task: Task
) -> SparseModel:
    """Return the model whose f is the weighted sum of those of the models, around a constant.

    constant : its margin for each target, in the unit of the first
    """
    first = models[0]
    every = np.concatenate([model.support for model in models])
    support, at, place = np.unique(every, return_index=True, return_inverse=True)
    coef = np.zeros((*first.coef.shape[:-1], len(support)))
    features, start = first.features, 0
    centers = np.concatenate([np.ravel(c) for c in task.centers])
    away = task.unit(task.targets[0]) * np.ravel(constant)
    around = np.reshape(centers + away, np.shape(first.intercept))
    b = around
    for k, (model, u) in enumerate(zip(models, weights, strict=True)):
        np.add.at(coef, (..., place[start : start + len(model.support)]), u * model.coef)
        features = features if k == 0 else features.concat(model.features)
        start += len(model.support)
        b = b + u * (model.intercept - around)
    return replace(
        first,
        coef=coef,
        intercept=b if np.ndim(b) else float(b),
        support=support,
        features=features.take(at),
        info=replace(first.info, n_nonzero=len(support)),
    )


def widen_encodings(
    model: SparseModel, of_model: np.ndarray, encodings: np.ndarray, encoder: ColumnEncoder
) -> SparseModel:
    """Return a model of some encodings of an encoder as a model of more of them, whose mean with
    other such models can be taken.

    of_model, encodings : the indices of both sets of encodings in the encoder, ascending; the first
        is a part of the second
    """
    places, d = np.searchsorted(encodings, of_model), len(of_model)
    # The inputs are numbered by their places, all linear functions after them, and draws far
    # beyond.
    inputs, beyond = np.searchsorted(model.support, [d, FIRST_DRAW])
    support = model.support.copy()
    support[:inputs] = places[support[:inputs]]
    support[inputs:beyond] += len(encodings) - d
    features, encoder = model.features.seeing(places, len(encodings)), encoder.take(encodings)
    features = features.encoded(None if encoder.is_identity and encoder.table is None else encoder)
    return replace(model, features=features, support=support)


def merge_linear_functions(model: SparseModel) -> SparseModel:
    """Return a model with its linear functions of all inputs added up, to one for each output; one
    without them as it is."""
    features, n_inputs = model.features, model.features.n_inputs
    is_function = [
        np.full(len(block), block.is_matrix and not block.nonnegative) for block in features.blocks
    ]
    is_function = features.from_blocks(np.concatenate([np.zeros(0, bool), *is_function]))
    if not is_function.any():
        return model
    ((block, _),) = (merged := features.take(np.flatnonzero(is_function))).by_block(
        np.zeros(is_function.sum())
    )
    coef = np.atleast_2d(model.coef)
    c = merged.to_blocks(coef[:, is_function]) * block.scale
    unit = power_of_two(c)
    functions = linear_functions(c / unit @ block.weights).encoded(features.encoder)
    inputs, draws = (
        np.flatnonzero(~is_function & of)
        for of in (model.support < n_inputs, model.support >= n_inputs)
    )
    coef = np.hstack([coef[:, inputs], unit * np.eye(len(coef)), coef[:, draws]])
    support = np.concatenate(
        [model.support[inputs], n_inputs + np.arange(len(coef)), model.support[draws]]
    )
    return replace(
        model,
        coef=coef.reshape(*model.coef.shape[:-1], -1),
        support=support,
        features=features.take(inputs).concat(functions).concat(features.take(draws)),
        info=replace(model.info, n_nonzero=len(support)),
    )


def with_best_intercept(model: SparseModel, task: Task) -> SparseModel:
    """Return the model with the intercept that is best for the training rows.

    Each model had it, but with a loss that is not quadratic the mean of models, pruned, need not:
    with a link, it predicts less than the models do in the mean.
    """
    if task.loss.is_quadratic:
        return model
    rows = task.raw.encoded(model.features.encoder, is_asked_often=True)
    f = rows.vectors.put(
        rows.vectors.fetch(rows.apply(model.features.encoded(None), model.coef)).astype(np.float64)
    )
    if task.is_joint:
        joint = task.problem(MultinomialProblem, np.stack(task.targets), 0.0, True)
        return replace(model, intercept=joint.best_intercepts(f, model.intercept))
    best = []
    for k, (y, b) in enumerate(
        zip(task.targets, np.atleast_1d(model.intercept) - task.centers, strict=True)
    ):
        unit, f_k = task.unit(y), f if np.ndim(model.intercept) == 0 else rows.vectors.output(f, k)
        problem = task.problem(Problem, y, 0.0, True, k)
        best.append(
            unit * problem.best_intercept(rows.vectors.scaled(f_k, 1 / unit), float(b) / unit)
            + task.centers[k]
        )
    return replace(
        model,
        intercept=np.reshape(best, np.shape(model.intercept))
        if np.ndim(model.intercept)
        else float(best[0]),
    )
