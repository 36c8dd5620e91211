"""`sparse_rf` without a penalty: members, folds, one stack.

Members (`members.py`) go down a path of falling penalties on each fold of the rows (`folds.py`).
So every row is predicted by fits that have not seen it. These predictions choose the penalty of
each member and how much it counts (`stack.py`). What the folds have found is fitted to all rows,
the weighted mean is taken (`mean.py`), and terms that do not pay for themselves are dropped
(`fewer_terms.py`). Where there are many rows, or they are not in memory, all this is done on a
sample in memory, and the weights are fitted to all rows at the end (`all_rows.py`).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from operator import call
from typing import TYPE_CHECKING

import numpy as np

from ..._base.deadline import NEVER, time_left
from ..._base.progress import part
from ..._base.threads import Workers, check_workers, single_threaded_blas
from ..._base.warnings import TimeLimitWarning, warn
from ...features import between_rows
from ..chosen_on_folds import by_the_loss_on_folds
from ..fit_progress import in_units
from ..folds import folds_of, sample_of, strata_of
from ..held_out_loss import HeldOutLoss
from ..model_of_fits import partial_model_on_error, with_ranges, with_ties
from .all_rows import fitted_to_all_rows
from .fewer_terms import drop_terms, drop_terms_at_once
from .mean import merge_linear_functions, weighted_sum, widen_encodings, with_best_intercept
from .members import (
    MOST_TERMS,
    Cosines,
    GrownRules,
    InputsMember,
    LinearMember,
    UserFeatures,
    most_rules,
)
from .outputs import TargetModel, in_their_units, join_targets, with_equal_outputs
from .paths import MemberFits, follow
from .stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...model import FitInfo, SparseModel
    from ...solvers.budget import Budget
    from ..folds import Folds
    from ..sparse_rf.options import ChoiceOptions, SparseRFOptions
    from ..task import Task
    from .members import Member

# The loss that dropping terms may cost, and that dropping columns of linear functions may cost
# before, as a share of what the terms are worth.
PRUNED = 0.002
# Of more terms than this those that vary most may stay; which is seen on so many rows, or those of
# the search.
LOOKED_AT, PRUNED_ON = 2_500, 20_000
# The number of rows, about, that a search looks at with effort 1; under a time limit as many as
# ROWS_A_SECOND allows, but FEWEST_ROWS at least.
MOST_SEARCH_ROWS, ROWS_A_SECOND, FEWEST_ROWS = 16_000, 500, 400
# About the most rows to which rules are fitted.
MOST_RULE_ROWS = 100_000
# The multiplications that the weights may take which are fitted to all rows at the end.
LAST_WORK = 1e12
# Rows to which rules were fitted count as no more than this share of those rows: cosines were
# fitted to fewer.
MOST_SEEN = 0.67
# The shares of the time that is left which searches and pruning may take.
SEARCHING, OF_PRUNING = 0.65, 0.6
# The share of the progress bar that searches have; nothing else depends on it.
SHOWN_AS_SEARCH = 0.8


def choose_model(task: Task, options: SparseRFOptions, choice: ChoiceOptions) -> SparseModel:
    """Return the model of `sparse_rf` with alpha=None.

    Each real target has a search, penalties and terms of its own, on the same folds: terms that
    noise takes would be missing where there is something to find.
    """
    loss = task.loss
    task, units = with_equal_outputs(replace(task, is_single=options.is_auto))
    budget = options.budget
    workers = Workers(check_workers(options.rows.workers))
    tasks, chosen = task.of_each_output(), []
    with single_threaded_blas(), task.rows, workers:
        most_rows = most_search_rows(choice.effort, budget.part(1 / len(tasks)).deadline)
        most_many = round(MOST_RULE_ROWS / MOST_SEARCH_ROWS * most_rows)
        own = choice.validation, most_rows, options.rng, most_many, choice.effort
        folds = folds_of(task, strata_of(task), *own)
        for target, own in budget.parts(list(zip(tasks, folds_of_each(folds), strict=True))):
            same = replace(options, rng=deepcopy(options.rng), budget=own)
            chosen.append(choose_for_target(*target, same, choice, workers))
        model = chosen[0].model
        if len(chosen) > 1:
            model = join_targets(chosen, task.encoder, options.is_auto)
            if choice.max_terms is not None:
                few = partial(drop_terms, model, chosen[0].sample, 0.0, choice.max_terms, LOOKED_AT)
                model = budget.done_in_time("prunings", few, None) or drop_terms_at_once(
                    model, chosen[0].sample, choice.max_terms
                )
        with partial_model_on_error(lambda: model):
            model = with_ties(with_ranges(model, task))
    return in_their_units(model, units, loss)


def folds_of_each(folds: Folds) -> list[Folds]:
    """Return the folds for each output."""
    every, searched = folds.many, folds.task.of_each_output()
    many = searched if every.task is folds.task else every.task.of_each_output()
    return [
        replace(folds, task=task, many=every._replace(task=of_many))
        for task, of_many in zip(searched, many, strict=True)
    ]


def choose_for_target(
    task: Task,
    folds: Folds,
    options: SparseRFOptions,
    choice: ChoiceOptions,
    workers: Workers,
) -> TargetModel:
    """Return the model that is chosen for one target, or for all classes, without its ranges.

    folds : the folds of the rows that are searched
    """
    budget = options.budget
    with task.rows:
        with part(SHOWN_AS_SEARCH):
            stack = search(folds, options, choice, budget.part(SEARCHING), workers)
        if budget.cuts["paths of penalties"] == len(stack.paths):
            _warn_of_time(budget)
        sample = folds.task
        model, encodings = fit_to_sample(stack, sample, workers, options.is_auto)
        n_seen = n_rows_seen(stack, folds)
        if stack.used:
            some = folds.many.task
            if len(some.weight) > max(PRUNED_ON, len(sample.weight)):
                some, _ = sample_of(some, strata_of(some), PRUNED_ON, options.rng)
            many, max_terms = most_rules(n_seen), choice.max_terms
            model = small_model(model, stack, some, options, max_terms, many)
        with partial_model_on_error(lambda: model):
            n, n_last = len(sample.weight), n_rows_at_last(task, choice.effort, len(model.support))
            if n < n_last:
                counted = max(n, min(n_seen, round(MOST_SEEN * n_last)))
                again = partial(fit_at_last, model, counted, task, n_last, options)
                model = budget.done_in_time("fits to all rows", again, model)
                model = replace(model, features=between_rows(model.features, task.raw))
    return TargetModel(replace(model, info=info_of(stack, model, budget)), encodings, sample)


def search(
    folds: Folds, options: SparseRFOptions, choice: ChoiceOptions, budget: Budget, workers: Workers
) -> Stack:
    """Follow the members down their paths on folds of the rows; return how much each counts."""
    loss, paths = HeldOutLoss.of(folds.task, folds), []
    # Poor draws need more terms, and a path of many takes longer than effort 1 does.
    share_of_terms = min(1.0, choice.effort**0.5)
    members = list(members_of(folds, options, choice.effort))
    for k, (make, share) in enumerate(members):
        begin = partial(MemberFits, make, folds, loss, workers, share_of_terms)
        fits = budget.done_in_time("members", begin, None) if paths else begin()
        if fits is None:
            budget.note_cut("members", len(members) - k - 1)
            break
        best_other_loss = min((path.loss for path in paths), default=np.inf)
        with part(share, is_open=True):
            paths.append(follow(fits, budget.part(share), best_other_loss))
        del fits  # the values of its terms
        if paths[-1].ended:
            break
    return Stack.of(loss, paths, options.fit_intercept).with_fewest_columns(PRUNED)


def members_of(
    folds: Folds, options: SparseRFOptions, effort: float
) -> Iterator[tuple[Callable[[], Member], float]]:
    """Yield functions that make the members, each with the share of the time left that it may
    take."""
    if not options.is_auto:
        yield partial(UserFeatures.of_folds, folds, options), 1.0
        return
    constraints = folds.task.constraints
    linear = LinearMember if constraints is None or not constraints.binds else InputsMember
    yield partial(linear.of_folds, folds, options), 0.2
    yield partial(Cosines.of_folds, folds, options, effort), 0.5
    yield partial(GrownRules.of_folds, folds, options, effort), 1.0


def most_search_rows(effort: float, deadline: float) -> int:
    """Return about how many rows are searched: as many as the effort and the time allow."""
    most = round(MOST_SEARCH_ROWS * effort**0.5)
    if deadline < NEVER:
        most = min(most, max(FEWEST_ROWS, round(ROWS_A_SECOND * time_left(deadline))))
    return most


def n_rows_seen(stack: Stack, folds: Folds) -> int:
    """Return the number of rows to which terms of the stack were fitted."""
    seen = [path.member.rows_of(folds).task for path, _ in stack.used] or [folds.task]
    return max(len(task.weight) for task in seen)


def n_rows_at_last(task: Task, effort: float, n_terms: int) -> int:
    """Return the number of rows to which the weights are fitted at the end: as many as LAST_WORK
    allows; the root of `effort` is their share, where that is below 1, as it is of the rows of a
    search.

    A pass over all rows costs the same whatever the effort of a search: with 280,000 rows of 20
    columns it was 52 of 56 seconds at effort .1.
    """
    n = round(effort**0.5 * len(task.weight))
    work = len(task.targets) * max(1, n_terms) ** 2
    return min(n, len(task.weight), round(LAST_WORK / work))


def fit_at_last(
    model: SparseModel, n_sample: int, task: Task, n_rows: int, options: SparseRFOptions
) -> SparseModel:
    """Return the model, which counts as one of n_sample rows, with weights for n_rows of those of
    the task."""
    if n_rows < len(task.weight):
        task, _ = sample_of(task, strata_of(task), n_rows, options.rng)
    return fitted_to_all_rows(model, n_sample, task, options.fit_intercept)


def fit_to_sample(
    stack: Stack, task: Task, workers: Workers, is_auto: bool
) -> tuple[SparseModel, np.ndarray | None]:
    """Return the weighted sum of what the members predict, fitted to all rows of the search; or the
    constant. And the places of the encodings that it sees, None where there is no choice.

    is_auto : whether the linear functions are those of members, which become one, and not terms of
        the user's features, which keep their indices
    """
    if not stack.used:
        member = stack.paths[0].member
        return member.constant(task), member.encodings[0]
    refits, weights, encodings = [], [], []
    for path, u in stack.used:
        own = path.member.refits(path.found)
        refits += own
        weights += [u / len(own)] * len(own)
        encodings += islice(cycle(path.member.encodings), len(own))
    models, every = list(workers.map(call, refits)), None
    if encodings[0] is not None:
        every = np.unique(np.concatenate(encodings))
        models = [
            widen_encodings(model, of_model, every, task.encoder)
            for model, of_model in zip(models, encodings, strict=True)
        ]
    summed = weighted_sum(models, weights, stack.constant_margins, task)
    return (merge_linear_functions(summed) if is_auto else summed), every


def small_model(
    model: SparseModel,
    stack: Stack,
    task: Task,
    options: SparseRFOptions,
    max_terms: int | None,
    many: int,
) -> SparseModel:
    """Return the model without the terms that do not pay for themselves, with the intercept that is
    best for all rows.

    many : the most terms where the user does not say it
    """
    most, looked_at = max_terms or many, LOOKED_AT * many // MOST_TERMS
    worth = PRUNED * stack.worth
    unit = stack.loss.task.unit(stack.loss.task.targets[0]) / task.unit(task.targets[0])
    worth = in_units(worth, unit, task.loss.degree)
    budget, has_intercept = options.budget, options.fit_intercept
    drop = partial(drop_terms, model, task, worth, most, looked_at, has_intercept)
    small = budget.part(OF_PRUNING).done_in_time("prunings", drop, None)
    if small is None:
        small = model if max_terms is None else drop_terms_at_once(model, task, most, has_intercept)
    if not has_intercept:
        return small
    return budget.done_in_time("intercepts", partial(with_best_intercept, small, task), small)


def info_of(stack: Stack, model: SparseModel, budget: Budget) -> FitInfo:
    """Return what the model says of its fit, in units of y."""
    losses = [loss for path in stack.paths for loss in path.losses]
    least = np.minimum.accumulate(losses)
    members = [(path.member.name, path.found[0].alpha, u) for path, u in stack.used]
    is_one = [name for name, *_ in members] == [UserFeatures.name]
    words = [f"{u:.2g} times {name}" for name, _, u in members]
    words = [f"alpha={members[0][1]:.4g}"] if is_one else words
    return replace(
        model.info,
        alpha=members[0][1] if is_one else None,
        chosen=by_the_loss_on_folds(words or ["the constant"], len(stack.loss.folds)),
        dual_gap=None,
        n_iter=len(losses),
        objective=tuple(map(stack.loss.in_units_of_y, least)),
        n_drawn=sum(path.n_drawn for path in stack.paths),
        n_nonzero=len(model.support),
        validation_loss=stack.loss.in_units_of_y(stack.loss_of_other_rows()),
        cut=dict(budget.cuts),
        converged=not budget.cuts,
    )


def _warn_of_time(budget):
    """Warn that no member has come to the end of its path."""
    what = ", ".join(f"{n} {name}" for name, n in budget.cuts.items())
    warn(
        "time_limit: not one path of penalties was finished, and the model is the best until then, "
        f"maybe a constant: ended early or left out were {what}; raise time_limit",
        TimeLimitWarning,
    )
