"""`sparse_rf` without a penalty: members, folds, one stack.

Members (`members.py`) go down a path of falling penalties on each fold of the rows (`folds.py`).
So every row is predicted by fits that have not seen it. These predictions choose the penalty of
each member and how much it counts (`stack.py`). What the folds have found is fitted to all rows,
the mean is taken, and terms that do not pay for themselves are dropped.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..._base.threads import single_threaded_blas
from ...solvers.effort import UNBOUNDED
from ..fallback import with_fallbacks
from ..task import in_units, with_ranges
from .folds import folds_of
from .held_out import strata_of, splits_of_task, errors_to_beat_constant
from .members import Cosines, GrownRules, Linear, follow
from .search import (
    LEAST_TOL_IN_SINGLE,
    drop_terms,
    in_their_units,
    merge_linear_functions,
    widen_encodings,
    with_best_intercept,
    with_equal_outputs,
)
from .stack import HeldOutLoss, stacked_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model import SparseModel
    from ..task import Task
    from .options import ChoiceOptions, SparseRFOptions

# The loss that dropping terms may cost, as a share of what the terms are worth.
PRUNED = 0.003


def choose_model(task: Task, options: SparseRFOptions, choice: ChoiceOptions) -> SparseModel:
    """Return the model of `sparse_rf` with alpha=None."""
    task, units = with_equal_outputs(
        replace(task, is_single=options.is_auto and options.tol >= LEAST_TOL_IN_SINGLE)
    )
    strata = strata_of(task)
    validation = choice.validation
    if not isinstance(validation, float):
        validation = splits_of_task(validation, task, strata)
    elif validation == 0.1:
        validation = None
    with single_threaded_blas():
        folds = folds_of(task, strata, validation, 16_000, options.rng)
        loss = HeldOutLoss.of(folds.task, folds)
        names = os.environ.get("MEMBERS", "lcr")
        kinds = [
            kind for letter, kind in (("l", Linear), ("c", Cosines), ("r", GrownRules))
            if letter in names
        ]
        paths = [follow(kind.of_folds(folds, options), folds, loss, UNBOUNDED) for kind in kinds]
        weights, intercepts = stacked_weights(
            loss, [path.predictions for path in paths], options.fit_intercept
        )
        used = [(path, u) for path, u in zip(paths, weights, strict=True) if u > 0]
        stacked = sum(u * path.predictions for path, u in used) + intercepts[:, None]
        nothing = [0 * stacked]
        at_nothing = stacked_weights(loss, nothing, options.fit_intercept)[1]
        value, constant = loss.mean(stacked), loss.mean(nothing[0] + at_nothing[:, None])
        if os.environ.get("REPORT"):
            print([(p.member.name, round(p.loss, 5), len(p.losses), p.n_terms, round(u, 3)) for p, u in zip(paths, weights)], value, constant)
        model = _fit_to_all_rows(used, intercepts, task, options)
        before = len(model.features)
        worth = min(value, max(0.0, constant - value))
        model = drop_terms(model, task, PRUNED * worth, 2_000, 2_500, options.rng)
        if os.environ.get("REPORT"):
            print("terms", before, len(model.features))
        if options.fit_intercept and not task.loss.is_quadratic:
            model = with_best_intercept(model, task)
    model = with_ranges(with_fallbacks(model, task), task)
    unit = task.unit(task.targets[0])
    info = replace(model.info, validation_loss=in_units(value, unit, task.loss.degree))
    return in_their_units(replace(model, info=info), units)


def _fit_to_all_rows(used, intercepts, task, options):
    """Return the weighted sum of what the members predict, fitted to all rows."""
    models, weights = [], []
    every = np.unique(np.concatenate([place for path, _ in used for place in _places(path.member)]))
    for path, u in used:
        found = path.member.models(task, path, UNBOUNDED)
        for k, model in enumerate(found):
            own = _places(path.member)
            models.append(widen_encodings(model, own[k % len(own)], every, task.stage))
            weights.append(u / len(found))
    return merge_linear_functions(weighted_sum(models, weights, intercepts, task))


def _places(member):
    """Return the places of the encodings that each way of a member to see the columns has."""
    places = member.places if isinstance(member.places, (list, tuple)) else [member.places]
    return places


def weighted_sum(models, weights, intercepts, task):
    """Return the model whose f is the weighted sum of those of the models, around the centres of
    the targets, and the intercepts."""
    first = models[0]
    every = np.concatenate([model.support for model in models])
    support, at, place = np.unique(every, return_index=True, return_inverse=True)
    coef = np.zeros((*first.coef.shape[:-1], len(support)))
    features, start = first.features, 0
    center = np.reshape(np.concatenate([np.ravel(c) for c in task.centers]), np.shape(first.intercept))
    unit = task.unit(task.targets[0])
    b = center + unit * np.reshape(intercepts, np.shape(first.intercept))
    for k, (model, u) in enumerate(zip(models, weights, strict=True)):
        np.add.at(coef, (..., place[start : start + len(model.support)]), u * model.coef)
        features = features if k == 0 else features.concat(model.features)
        start += len(model.support)
        b = b + u * (model.intercept - center)
    return replace(
        first, coef=coef, intercept=b if np.ndim(b) else float(b), support=support,
        features=features.take(at), info=replace(first.info, n_nonzero=len(support)),
    )
