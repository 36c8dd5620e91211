"""The mean of models, and a model of linear functions as one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...features import linear_functions
from ..task import power_of_two

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model import SparseModel


def one_function(model: SparseModel) -> SparseModel:
    """The model with its linear functions of all inputs added up, one for each output."""
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


def mean_of(models: Sequence[SparseModel]) -> SparseModel:
    """The model whose prediction is the mean of theirs."""
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
    info = _mean_info([model.info for model in models], len(support))
    return replace(models[0], coef=coef, intercept=b, support=support, features=features.take(first), info=info)


def _mean_info(infos, n_terms):
    """Means of what the searches ended with; the rest at its worst."""
    return replace(
        infos[0],
        n_iter=max(info.n_iter for info in infos),
        converged=all(info.converged for info in infos),
        objective=(mean_value([info.objective[-1] for info in infos]),),
        dual_gap=mean_value([info.dual_gap for info in infos]),
        n_nonzero=n_terms,
        alpha=float(np.exp(mean_value([np.log(info.alpha) for info in infos]))),
    )


def mean_value(values: Sequence[float]) -> float:
    """The mean of numbers whose sum may overflow."""
    return float(sum(value / len(values) for value in values))
