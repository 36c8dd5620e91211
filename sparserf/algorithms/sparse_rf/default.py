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

from ..._base.deadline import NEVER, time_left
from ..._base.threads import Workers, check_workers, single_threaded_blas
from ...solvers.effort import Effort
from ..fallback import with_fallbacks
from ..task import in_units, partial_model_on_error, with_ranges
from .all_rows import fitted_to_all_rows
from .folds import folds_of
from .held_out import errors_to_beat_constant, splits_of_task, strata_of
from .members import MOST_TERMS, Cosines, Given, GrownRules, Linear, follow
from .search import (
    LEAST_TOL_IN_SINGLE,
    drop_terms,
    drop_terms_at_once,
    in_their_units,
    merge_linear_functions,
    widen_encodings,
    with_best_intercept,
    with_equal_outputs,
)
from .stack import HeldOutLoss, Stack

if TYPE_CHECKING:
    from ...model import SparseModel
    from ..task import Task
    from .options import ChoiceOptions, SparseRFOptions

# The loss that dropping terms may cost, as a share of what the terms are worth.
PRUNED = 0.001
# The most terms that may stay, those that vary most.
LOOKED_AT = 800
# The number of rows, about, that a search looks at with effort 1; under a time limit as many as
# ROWS_A_SECOND allows, but FEWEST_ROWS at least.
MOST_SEARCH_ROWS, ROWS_A_SECOND, FEWEST_ROWS = 16_000, 500, 400
# The shares of the time that is left which searches and pruning may take.
SEARCHING, OF_PRUNING = 0.65, 0.6


def choose_model(task: Task, options: SparseRFOptions, choice: ChoiceOptions) -> SparseModel:
    """Return the model of `sparse_rf` with alpha=None."""
    task, units = with_equal_outputs(
        replace(task, is_single=options.is_auto and options.tol >= LEAST_TOL_IN_SINGLE)
    )
    strata, validation = strata_of(task), choice.validation
    if not isinstance(validation, float):
        validation = splits_of_task(validation, task, strata)
    elif validation == 0.1:
        validation = None
    whole = Effort(np.inf, deadline=options.deadline)
    workers = Workers(check_workers(options.rows.workers))
    with single_threaded_blas(), task.rows, workers:
        most_rows = most_search_rows(task, options, choice.effort)
        folds = folds_of(task, strata, validation, most_rows, options.rng)
        loss = HeldOutLoss.of(folds.task, folds)
        searches = whole.part(1.0, SEARCHING)
        paths = []
        for kind, share in members_of(folds, options, choice.effort):
            if paths and searches.is_late:
                searches.note_cut("members")
                break
            beaten = min((path.loss for path in paths), default=np.inf)
            paths.append(follow(kind(), folds, loss, searches.part(1.0, share), workers, beaten))
        stack = Stack.of(loss, paths, options.fit_intercept)
        is_worth = stack.is_better_than_constant(errors_to_beat_constant(task, strata))
        used = stack.used if is_worth else []
        if os.environ.get("REPORT"):
            for path, u in zip(paths, stack.weights, strict=True):
                print(
                    path.member.name, f"{path.loss:.5f}", len(path.losses), path.n_terms, f"{u:.3f}"
                )
            print(stack.loss_of_stack, stack.loss_of_constant, is_worth)
        model = _fit_to_all_rows(used or [(paths[0], 0.0)], stack.intercepts, folds.task, workers)
        before = len(model.features)
        if used:
            worth = min(stack.loss_of_stack, stack.loss_of_constant - stack.loss_of_stack)
            most = choice.max_terms or MOST_TERMS
            prune = partial(_pruned, model, folds.task, PRUNED * worth, most, options.rng)
            small = whole.part(1.0, OF_PRUNING).done_in_time("prunings", prune, None)
            model = drop_terms_at_once(model, folds.task, most) if small is None else small
            if options.fit_intercept:
                model = whole.done_in_time(
                    "intercepts", partial(with_best_intercept, model, folds.task), model
                )
        model = whole.done_in_time("fallbacks", partial(with_fallbacks, model, folds.task), model)
        with partial_model_on_error(lambda: model):
            model = of_all_rows(model, folds.task, task, options.fit_intercept, whole)
        if os.environ.get("REPORT"):
            print("terms", before, len(model.features))
    unit = task.unit(task.targets[0])
    value = stack.loss_of_stack if used else stack.loss_of_constant
    info = replace(
        model.info,
        validation_loss=in_units(value, unit, task.loss.degree),
        cut=dict(whole.cuts_in_time),
    )
    return in_their_units(replace(model, info=info), units)


def of_all_rows(
    model: SparseModel, sample: Task, task: Task, fit_intercept: bool, effort: Effort
) -> SparseModel:
    """Return a model of a sample of the rows as one of all rows: with their weights and ranges."""
    if len(sample.weight) == len(task.weight):
        return with_ranges(model, sample)
    again = partial(fitted_to_all_rows, model, len(sample.weight), task, fit_intercept)
    return with_ranges(effort.done_in_time("fits to all rows", again, model), task)


def _pruned(model, task, worth, most, rng):
    """Return the model without the terms that it does not need: of those that vary most, or, where
    most of these stay, of nearly all."""
    looked_at = LOOKED_AT
    small = drop_terms(model, task, worth, most, looked_at, rng)
    if len(small.support) <= looked_at // 2 or looked_at >= len(model.support):
        return small
    return drop_terms(model, task, worth, most, 5 * most // 4, rng)


def most_search_rows(task: Task, options: SparseRFOptions, effort: float) -> int:
    """Return about how many rows are searched: as many as the effort and the time allow."""
    most = round(MOST_SEARCH_ROWS * effort**0.5)
    if options.deadline < NEVER:
        seconds = time_left(options.deadline)
        most = min(most, max(FEWEST_ROWS, round(ROWS_A_SECOND * seconds)))
    return most


def members_of(folds, options, effort):
    """Return functions that make the members, each with the share of the time left that it may
    take."""
    if not options.is_auto:
        return [(partial(Given.of_folds, folds, options), 1.0)]
    return [
        (partial(Linear.of_folds, folds, options), 0.2),
        (partial(Cosines.of_folds, folds, options, effort), 0.5),
        (partial(GrownRules.of_folds, folds, options, effort), 1.0),
    ]


def _fit_to_all_rows(used, intercepts, task, workers):
    """Return the weighted sum of what the members predict, fitted to all rows."""
    models, weights, places = [], [], []
    for path, u in used:
        found = path.member.models(task, path, workers) if u else [path.member.constant(task)]
        models += found
        weights += [u / len(found)] * len(found)
        own = path.member.places
        places += [own[k % len(own)] for k in range(len(found))]
    if places[0] is not None:
        every = np.unique(np.concatenate(places))
        models = [
            widen_encodings(model, of_model, every, task.stage)
            for model, of_model in zip(models, places, strict=True)
        ]
    if len(models) == 1 and weights[0] == 0:
        return models[0]
    return merge_linear_functions(weighted_sum(models, weights, intercepts, task))


def weighted_sum(models, weights, intercepts, task):
    """Return the model whose f is the weighted sum of those of the models, around the centres of
    the targets, and the intercepts."""
    first = models[0]
    every = np.concatenate([model.support for model in models])
    support, at, place = np.unique(every, return_index=True, return_inverse=True)
    coef = np.zeros((*first.coef.shape[:-1], len(support)))
    features, start = first.features, 0
    center = np.reshape(
        np.concatenate([np.ravel(c) for c in task.centers]), np.shape(first.intercept)
    )
    unit = task.unit(task.targets[0])
    b = center + unit * np.reshape(intercepts, np.shape(first.intercept))
    for k, (model, u) in enumerate(zip(models, weights, strict=True)):
        np.add.at(coef, (..., place[start : start + len(model.support)]), u * model.coef)
        features = features if k == 0 else features.concat(model.features)
        start += len(model.support)
        b = b + u * (model.intercept - center)
    return replace(
        first,
        coef=coef,
        intercept=b if np.ndim(b) else float(b),
        support=support,
        features=features.take(at),
        info=replace(first.info, n_nonzero=len(support)),
    )
