"""Fits of a loss that has parameters of its own, such as thresholds or a baseline: f and these are
fitted in turn.

All other code knows a loss whose parameters are fixed. `fit_in_rounds` lets a function fit f for
the present ones, asks `Loss.fitted_to` for those that are best for this f, and repeats. With its
penalty the mean loss never rises, and has no minimum but the joint one where it is convex in f and
the parameters together. A model has the parameters that are best for its own f.

The first parameters are those of a constant, and f is drawn towards it. So after a first round that
is a quick one they become those for the multiple of f that is best with parameters of its own: on
two tables, two draws each, a quick round and one more of the default had a mean log loss of 1.058,
one round 1.100, two 1.067, three and five 1.061. After a whole first round, whose f is nearer to
its own rows, the multiple is too large: with one more 1.080.

A choice on folds is of a constant where f is better by no more than chance. With parameters for f a
constant is worse than it need be, and by how much is noise: where the first round has found an f,
and a later one a constant, the model is the first.

Such parameters take up any constant. So f always has an intercept while it is fitted; in the end
its mean over the rows is 0, or where the user wants no intercept this is 0.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .._base.progress import is_ended_by_callback, part, parts
from .._base.warnings import held_back, warn
from ..losses import LOSSES, check_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.warnings import Warned
    from ..losses import Loss
    from ..model import SparseModel
    from .arguments import FitOptions
    from .task import Task

Options = TypeVar("Options", bound="FitOptions")

# The most rounds of a fit; and those of a choice on folds.
MOST_ROUNDS, ROUNDS_OF_CHOICE = 10, 2
# The share of the mean loss that parameters must take off for another round.
ENOUGH = 1e-4
# The share of the time that is left which a round has, but the last one.
SHARE = 0.3
# The largest multiple of f after a quick round.
LARGEST_MULTIPLE = 5.0
# A mean of f that is at most this share of its size is rounding.
ROUNDING = 1e-12


def is_in_rounds(task: Task, options: FitOptions) -> bool:
    """Return whether the loss of a call has parameters that are to be fitted together with f; of
    few classes another loss may stand for it."""
    loss = check_loss(options.rows.loss, LOSSES)
    return loss.has_free_parameters and task.loss.name == loss.name


def fit_in_rounds(
    task: Task,
    options: Options,
    fit: Callable[[Task, Options], list[SparseModel]],
    *,
    first: Callable[[Task, Options], list[SparseModel]] | None = None,
    most: int = MOST_ROUNDS,
    enough: float = ENOUGH,
) -> list[SparseModel]:
    """Return fit(task, options), models of one task; the parameters of their loss, if it has free
    ones, are fitted together with f of the last model, and are in the end the best for each.

    first : the fit of the first round, a quick one
    most, enough : the most rounds, and the share of the mean loss by which parameters must lower it
        for another one

    Each round draws the same random numbers.
    """
    if not is_in_rounds(task, options):
        return fit(task, options)
    models: list[SparseModel] = []
    warnings: list[Warned] = []
    for k in range(most):
        share = SHARE if k < most - 1 else 1.0
        own = replace(
            options,
            rng=deepcopy(options.rng),
            budget=options.budget.for_round(share),
            fit_intercept=True,
        )
        is_quick = k == 0 and first is not None
        with part(share), held_back() as warned:
            found = (first if is_quick else fit)(task, own)
        if models and models[-1].coef.any() and not found[-1].coef.any():
            break
        models, warnings = found, warned
        if k == most - 1 or is_ended_by_callback() or options.budget.is_late:
            break
        _, z = _centered(models[-1], task, options.fit_intercept)
        loss = _fitted(task, _best_multiple(task, z) if is_quick else z)
        before, after = (_mean_loss(each, z, task) for each in (task.loss, loss))
        if not is_quick and before - after <= enough * before:
            break
        task = replace(task, loss=loss)
    for message, category in warnings:
        warn(message, category)
    return [_with_parameters(model, task, options.fit_intercept) for model in models]


def models_of_each(
    task: Task,
    options: Options,
    fit_path: Callable[..., list[SparseModel]],
    alphas: Sequence[float] | np.ndarray | None,
    times: np.ndarray | None = None,
    **how: Any,
) -> list[SparseModel]:
    """Return fit_path(task, options, alphas=alphas), a model of each penalty. Where the loss has
    free parameters each penalty has rounds of its own, and those for which there is no time are
    left out.

    times : how long each takes beside the others, for the progress bar
    how : arguments of `fit_in_rounds`
    """
    if not is_in_rounds(task, options):
        return fit_path(task, options, alphas=alphas)
    models: list[SparseModel] = []
    for alpha in parts(alphas, times):
        models += fit_in_rounds(task, options, partial(fit_path, alphas=[alpha]), **how)
        n_left = len(alphas) - len(models)
        if n_left and options.budget.is_late:
            info = models[-1].info
            cut = {**info.cut, "penalties": n_left}
            models[-1] = replace(models[-1], info=replace(info, cut=cut))
            break
    return models


def _with_parameters(model, task, has_intercept):
    """Return the model with the parameters of the loss that are best for its f."""
    model, z = _centered(model, task, has_intercept)
    return replace(model, loss_parameters=_fitted(task, z).parameters)


def _centered(model, task, has_intercept):
    """Return the model, whose f has the mean 0 over the rows or no intercept, and its decision
    values in the rows, offsets included."""
    rows = task.raw.encoded(model.features.encoder)
    f = rows.vectors.fetch(rows.apply(model.features.encoded(None), model.coef)).astype(np.float64)
    mean, size = (float(task.weight @ each) / len(f) for each in (f, np.abs(f)))
    b = -mean if has_intercept and abs(mean) > ROUNDING * size else 0.0
    z = f + b if task.offset is None else f + b + task.offset
    return replace(model, intercept=b), z


def _fitted(task, z):
    """Return the loss with the parameters that are best for decision values."""
    return task.loss.fitted_to(z, task.targets[0], task.weight)


def _best_multiple(task, z):
    """Return decision values with the multiple of f that is best with parameters of its own."""
    offset = 0.0 if task.offset is None else task.offset

    def multiple(c):
        return c * (z - offset) + offset

    def mean_loss(c):
        return _mean_loss(_fitted(task, multiple(c)), multiple(c), task)

    from scipy.optimize import minimize_scalar  # slow to import

    how = {"method": "bounded", "options": {"xatol": 1e-2}}
    return multiple(minimize_scalar(mean_loss, bounds=(1.0, LARGEST_MULTIPLE), **how).x)


def _mean_loss(loss: Loss, z: np.ndarray, task: Task) -> float:
    """Return the mean loss of decision values."""
    y, weight = task.targets[0], task.weight
    return float(weight @ loss.value(z, y)) / len(z) + loss.mean_of_parameters(y, weight)
