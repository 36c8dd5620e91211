"""The mean of models: one model whose prediction is the mean of theirs, and linear functions added up to one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...features import linear_functions
from ..task import power_of_two

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...columns.stage import ColumnStage
    from ...model import SparseModel


def mean_of(models: Sequence[SparseModel]) -> SparseModel:
    """Return the model whose prediction is the mean of theirs; a term that several have in common is one term."""
    if len(models) == 1:
        return models[0]
    every = np.concatenate([model.support for model in models])
    support, first, place = np.unique(every, return_index=True, return_inverse=True)
    coef = np.zeros((*models[0].coef.shape[:-1], len(support)))
    features, start = models[0].features, 0
    for k, model in enumerate(models):
        coef[..., place[start : start + len(model.support)]] += model.coef / len(models)
        features, start = model.features if k == 0 else features.concat(model.features), start + len(model.support)
    b = sum(model.intercept / len(models) for model in models)
    infos = [model.info for model in models]
    info = replace(
        infos[0],
        n_iter=max(info.n_iter for info in infos),
        converged=all(info.converged for info in infos),
        objective=(mean_value([info.objective[-1] for info in infos]),),
        dual_gap=mean_value([info.dual_gap for info in infos]),
        n_nonzero=len(support),
        alpha=float(np.exp(mean_value([np.log(info.alpha) for info in infos]))),
    )
    return replace(models[0], coef=coef, intercept=b, support=support, features=features.take(first), info=info)


def mean_value(values: Sequence[float]) -> float:
    """Return the mean of numbers whose sum may overflow."""
    return float(sum(value / len(values) for value in values))


def with_views(model: SparseModel, views_of_model: np.ndarray, views: np.ndarray, stage: ColumnStage) -> SparseModel:
    """Return a model of some views of a stage as one of more views, so that it can be in a mean with models of these.

    views_of_model, views : indices of views of the stage, ascending; the first are among the second
    """
    features, stage = model.features.seeing(np.searchsorted(views, views_of_model), len(views)), stage.take(views)
    return replace(model, features=features.staged(None if stage.is_identity and stage.table is None else stage))


def one_function(model: SparseModel) -> SparseModel:
    """Return the model with its linear functions of all inputs added up, to one for each output; another model as it is."""
    if [block.is_matrix for block in model.features.blocks] != [True]:
        return model
    (block,) = model.features.blocks
    coef = np.atleast_2d(model.features.to_blocks(model.coef)) * block.scale
    unit = power_of_two(coef)
    weights = coef / unit @ block.weights
    features = linear_functions(weights).staged(model.features.stage)
    return replace(
        model, coef=unit * np.eye(len(coef)).reshape(*model.coef.shape[:-1], -1), features=features,
        support=np.arange(len(coef)) + model.features.n_inputs, info=replace(model.info, n_nonzero=len(coef)),
    )  # fmt: skip
