"""The fits of a task: one of each target, or one of all classes together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .descent import L1Fit
from .multinomial import MultinomialL1Fit

if TYPE_CHECKING:
    from ...features.dictionary import Dictionary
    from ..task import Task
    from .descent import BaseL1Fit
    from .options import SparseRFOptions


def fits_of(
    task: Task,
    dictionary: Dictionary,
    options: SparseRFOptions,
    *,
    search: int = 0,
) -> list[BaseL1Fit]:
    """Make the fit of each target, or with the multinomial loss the one fit of all classes.

    search : the number of the search that makes the fits; each search draws features of its own
    """
    first = search * len(task.targets)
    if task.is_joint:
        return [MultinomialL1Fit(task, dictionary, options, target=first)]
    return [
        L1Fit(task, y, dictionary, options, target=k) for k, y in enumerate(task.targets, first)
    ]
