"""Features that `harfe` and `mfga` take from a fit of `sparse_rf`, where features="auto"."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeVar

from .._base.deadline import limit_of_next
from .sparse_rf import sparse_rf
from .task import Task

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from .arguments import FitOptions

Options = TypeVar("Options", bound="FitOptions")

# The share of the time that the search may take, where there is a `time_limit`.
SHARE_OF_SEARCH = 0.8


def read_task_and_features(
    X: MatrixLike,
    y: ArrayLike,
    options: Options,
    several_outputs: Literal["together", "apart"],
    has_ranks: bool = False,
) -> tuple[Task, Options]:
    """Return the task of a fit, and its options, in which features that a search has found stand
    for "auto"."""
    if options.is_auto:
        options = with_found_features(X, y, options)
    task = Task.from_options(X, y, options, several_outputs=several_outputs, has_ranks=has_ranks)
    return task.centered(options.fit_intercept), options


def with_found_features(X: MatrixLike, y: ArrayLike, options: Options) -> Options:
    """Return the options with the terms that `sparse_rf` finds as features, which know their
    columns.

    They are those that its model has kept: with all that its folds have found, 16 fits of 30 or
    100 terms had 1.06 times the error. They may be none where the time was over. What was cut is
    noted in the budget of the options.
    """
    if (gamma := vars(options).get("gamma")) is not None:
        raise ValueError(f"gamma must be None where features is 'auto', got {gamma!r}")
    about_columns, rows = {**vars(options.columns), "extrapolate": None}, vars(options.rows)
    own = {"fit_intercept": options.fit_intercept, "rng": options.rng}
    limit = limit_of_next(options.budget.deadline, 1 / SHARE_OF_SEARCH)
    found = sparse_rf(X, y, **about_columns, **rows, **own, **limit)
    for what, n in found.info.cut.items():
        options.budget.note_cut(what, n)
    if len(found.features) == 0 and not found.info.cut:
        raise ValueError(
            "features='auto' has found no term that predicts y better than a constant: give other "
            "features"
        )
    columns = replace(options.columns, categorical=None)
    return replace(options, features=found.features, columns=columns)
