"""Dropping the terms that a model does not need: those without which its predictions change by
little beside its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...columns.made_rows import with_made_rows
from ..prune import ROWS_A_TERM, Pruning, in_few_terms, pruned

if TYPE_CHECKING:
    from ...model import SparseModel
    from ...rows import Rows
    from ..task import Task

# Where there are at most FEW_ROWS rows, and fewer than ROWS_A_TERM for each term, terms are dropped
# on a made row for each row as well, which weigh MADE times as much as the rows: a model in few of
# its terms can agree with it on few rows and not between them.
FEW_ROWS, MADE = 5_000, 1.0
# The penalty that holds coefficients near those of the model: smooth cosines are nearly
# collinear, and huge coefficients that cancel at the rows do not elsewhere.
RIDGE = 1e-6
# Where there is no time to prune, the terms that are allowed are chosen on this number of rows, at
# least.
FEWEST_PRUNED_ON = 1_000


def drop_terms(
    model: SparseModel,
    task: Task,
    worth: float,
    max_terms: int,
    looked_at: int,
    fit_intercept: bool = True,
) -> SparseModel:
    """Return the model without the terms that it does not need, of at most max_terms.

    worth : what dropping terms may add to the mean loss, in the unit of the first target
    looked_at : of more terms, this number, the ones that vary most, may stay
    """
    if not len(model.support):
        return model
    rows = task.raw.encoded(model.features.encoder, is_asked_often=True)
    unit = task.unit(task.targets[0])
    weight, curvature = loss_curvature(task, rows, model, unit)
    change = unit * np.sqrt(2 * worth / curvature)  # L(z + e) <= L(z) + L'(z) e + curvature e^2 / 2
    pruning = Pruning(max_terms, 0.0, change, looked_at, fit_intercept, ridge=RIDGE)
    small = in_few_terms(rows, model, weight, pruning)
    if small is not None:
        return small
    most = min(FEW_ROWS, ROWS_A_TERM * min(len(model.support), looked_at))
    is_few = task.raw.n_rows <= most
    if is_few and not task.raw.is_sparse:
        encoder = model.features.encoder
        X, weight = with_made_rows(rows.array(), weight, encoder, rows.n_rows, MADE)
        rows = rows.on_same_threads(X)
    return pruned(rows, model, weight, pruning)


def drop_terms_at_once(
    model: SparseModel, task: Task, max_terms: int, fit_intercept: bool = True
) -> SparseModel:
    """Return the model in at most max_terms of its terms, chosen on few rows, where there is no
    time for more."""
    if len(model.support) <= max_terms:
        return model
    n = min(task.raw.n_rows, max(FEWEST_PRUNED_ON, 2 * max_terms))
    some = np.arange(n) * task.raw.n_rows // n
    rows = task.raw.take(some).encoded(model.features.encoder)
    pruning = Pruning(max_terms, looked_at=max_terms, fit_intercept=fit_intercept)
    return pruned(rows, model, task.weight[some], pruning)


def loss_curvature(
    task: Task, rows: Rows, model: SparseModel, unit: float
) -> tuple[np.ndarray, float]:
    """Return weights of the rows and c such that a change of f raises the loss by at most c/2 times
    its weighted mean square.

    Where the curvature of the loss has no bound, weights and c are computed at the model's f, and
    about right near it. Where the loss has corners that were smoothed, c is the mean of the
    curvature over the rows, and outputs, at the model's f.
    """
    loss = task.loss_of(task.targets[0])
    if not (np.isinf(loss.smoothness) or loss.is_smoothed):
        # the largest eigenvalue of the softmax's Hessian is 1/2
        of_several = 2 if task.is_joint else 1
        return task.weight, of_several * loss.smoothness
    f = rows.vectors.fetch(rows.apply(model.features.encoded(None), model.coef))
    f = f + np.expand_dims(model.intercept - task.centers[0], -1)
    h = task.weight * loss.curvature(f / unit, task.target_of(task.targets[0]))
    mean = float(h.mean())
    if not 0 < mean < np.inf:
        return task.weight, min(loss.smoothness, 1.0)
    return task.weight if loss.is_smoothed else h / mean, mean
