"""Fits of a loss that has parameters of its own, such as thresholds or a baseline: f and these are
fitted in turn.

All other code knows a loss whose parameters are fixed. `fit_in_rounds` lets a function fit f for
the present ones, asks `Loss.fitted_to` for those that are best for this f, and repeats. The mean
loss with its penalty is convex in f and the parameters together, and never rises. A model has the
parameters that are best for its own f.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from .._base.deadline import share_of_time, time_left
from .._base.progress import is_ended_by_callback, part
from .._base.warnings import held_back, warn
from ..losses import LOSSES, check_loss

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..losses import Loss
    from ..model import SparseModel
    from .arguments import FitOptions
    from .task import Task

Options = TypeVar("Options", bound="FitOptions")

# The most rounds; and the share of the mean loss by which parameters must lower it for another one.
MOST_ROUNDS = 30
ENOUGH = 1e-4


def is_in_rounds(task: Task, options: FitOptions) -> bool:
    """Return whether the loss of a call has parameters that are to be fitted together with f; those
    of few classes may have another one."""
    loss = check_loss(options.rows.loss, LOSSES)
    return loss.has_free_parameters and task.loss.name == loss.name


def fit_in_rounds(
    task: Task,
    options: Options,
    fit: Callable[[Task, Options], list[SparseModel]],
    enough: float = ENOUGH,
) -> list[SparseModel]:
    """Return fit(task, options), models of one task; the parameters of their loss, if it has free
    ones, are fitted together with f of the last model, and are in the end the best for each.

    Each round draws the same random numbers, and has half of the time that is left. Rounds end
    where parameters lower the mean loss by no more than the share `enough`, or by no less than in
    the round before: then f is another choice in each round.
    """
    if not is_in_rounds(task, options):
        return fit(task, options)
    gain = np.inf
    for _ in range(MOST_ROUNDS):
        own = replace(
            options,
            rng=deepcopy(options.rng),
            deadline=share_of_time(options.deadline, 0.5),
        )
        with part(0.5), held_back() as warnings:
            models = fit(task, own)
        _, z = _centered(models[-1], task, options.fit_intercept)
        loss = task.loss.fitted_to(z, task.targets[0], task.weight)
        before, after = (_mean_loss(each, z, task) for each in (task.loss, loss))
        last, gain = gain, before - after
        if (
            gain <= enough * before
            or gain >= last
            or is_ended_by_callback()
            or not time_left(options.deadline)
        ):
            break
        task = replace(task, loss=loss)
    for message, category in warnings:
        warn(message, category)
    return [_with_parameters(each, task, options) for each in models]


def _with_parameters(model, task, options):
    """Return the model with the parameters of the loss that are best for its f."""
    model, z = _centered(model, task, options.fit_intercept)
    loss = task.loss.fitted_to(z, task.targets[0], task.weight)
    return replace(model, loss_parameters=loss.parameters)


def _centered(model, task, has_intercept):
    """Return the model, whose f has the mean 0 over the rows where it has an intercept, and its
    decision values in the rows, offsets included."""
    rows = task.raw.staged(model.features.stage)
    f = rows.vectors.fetch(rows.apply(model.features.staged(None), model.coef)).astype(np.float64)
    b = -float(task.weight @ f / len(f)) if has_intercept else model.intercept
    z = f + b if task.offset is None else f + b + task.offset
    return replace(model, intercept=b), z


def _mean_loss(loss: Loss, z: np.ndarray, task: Task) -> float:
    """Return the mean loss of decision values."""
    y, weight = task.targets[0], task.weight
    return float(weight @ loss.value(z, y)) / len(z) + loss.mean_of_parameters(y, weight)
