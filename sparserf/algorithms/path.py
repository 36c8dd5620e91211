"""Along a path of values that are given, penalties or numbers of terms: a model for each, each fit
from where the one before has ended, in the time that there is.

What is not given is chosen along such a path on folds, by `chosen_on_folds.py`. The path of `mfga`
is none of these: its values are the rounds of one run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .._base.progress import parts
from .task import Fit, model_in_time, partial_fits_on_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np

    from ..model import SparseModel
    from ..solvers.budget import Budget
    from .task import Task

F, V = TypeVar("F", bound=Fit), TypeVar("V")


def models_along(
    values: Sequence[V],
    fits: Sequence[F],
    go_to: Callable[[F, V, Budget], bool],
    task: Task,
    budget: Budget,
    *,
    names: str = "values",
    times: np.ndarray | None = None,
) -> Iterator[SparseModel]:
    """Yield the model of all fits at each value; none more once the time is over.

    go_to : lets a fit go to a value within a `Budget`, its share of the time; returns whether it
        has come to its own end there
    names : what the values are, in the plural: `info.cut` says how many were left out
    times : how long each takes beside the others, for the progress bar
    """
    with partial_fits_on_error(fits, task):
        for place, value in parts(list(enumerate(values)), times):
            n_done = 0
            for k, fit in parts(list(enumerate(fits)), is_open=True):
                n_done += go_to(fit, value, budget.part(1 / (len(fits) - k)))
            n_left, is_late = len(values) - place - 1, budget.is_late
            if n_done < len(fits):
                budget.note_cut("fits", len(fits) - n_done)
            if is_late and n_left:
                budget.note_cut(names, n_left)
            yield model_in_time(fits, task, budget)
            if is_late:
                break
