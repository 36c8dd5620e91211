"""Along a path of values that are given, penalties or numbers of terms: a model for each, each fit
from where the one before has ended, in the time that there is.

What is not given is chosen along such a path on folds, by `chosen_on_folds.py`. The path of `mfga`
is none of these: its values are the rounds of one run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from .._base.progress import check_not_ended, ends_at, parts
from ..model import warn_unconverged
from .model_of_fits import Fit, model_in_time, partial_fits_on_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..features import FeatureSet
    from ..model import FitInfo, SparseModel
    from ..solvers.budget import Budget
    from .task import Task

F, V = TypeVar("F", bound=Fit), TypeVar("V")


def begun_in_time(
    begin: Callable[[FeatureSet], Sequence[F]], features: FeatureSet, budget: Budget
) -> Sequence[F]:
    """Return the fits that begin over all features; over none where there is no time for a pass
    over them."""
    with ends_at(budget.deadline):
        check_not_ended()
        return begin(features)
    return begin(features.take(np.zeros(0, np.intp)))


def models_along(
    values: Sequence[V],
    fits: Sequence[F],
    go_to: Callable[[F, V], None],
    task: Task,
    budget: Budget,
    complaint: Callable[[FitInfo], str],
    *,
    names: str = "values",
    times: np.ndarray | None = None,
) -> list[SparseModel]:
    """Return the model of all fits at each value; of none more once the time is over.

    go_to : lets a fit go to a value, and has come to its own end there where it returns
    complaint : the words of the warning of a model that has not converged, though the user's
        callback has not ended it
    names : what the values are, in the plural: `info.cut` says how many were left out
    times : how long each takes beside the others, for the progress bar
    """
    models, complaints = [], []
    with partial_fits_on_error(fits, task):
        for place, value in parts(list(enumerate(values)), times):
            each = budget.parts(fits, is_open=True)
            n_cut = sum(not own.lets(go_to, fit, value) for fit, own in each)
            n_left, is_late = len(values) - place - 1, budget.is_late
            budget.note_cut("fits", n_cut)
            budget.note_cut(names, n_left if is_late else 0)
            model = model_in_time(fits, task, budget)
            models.append(model)
            if not (model.info.converged or any(fit.progress.ended_by_callback for fit in fits)):
                complaints.append(complaint(model.info))
            if is_late:
                break
    for words in complaints:
        warn_unconverged(words)
    return models
