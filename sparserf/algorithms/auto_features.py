"""What `harfe` and `mfga` fit; with features="auto" their dictionary is first found, as the terms
of `sparse_rf`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeVar

from ..losses import JOINTLY
from .sparse_rf import sparse_rf
from .task import Task

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from .arguments import FitOptions

Options = TypeVar("Options", bound="FitOptions")


def read_task(
    X: MatrixLike, y: ArrayLike, options: FitOptions, several_outputs: Literal["together", "apart"]
) -> Task:
    """Return the `Task` of `harfe` or `mfga`, with centered targets.

    several_outputs : whether real targets of several outputs are one target or one each
    """
    if options.is_auto:
        options = with_found_features(X, y, options)
    task = Task.from_options(X, y, options, losses=JOINTLY, several_outputs=several_outputs)
    return task.centered(options.fit_intercept)


def with_found_features(X: MatrixLike, y: ArrayLike, options: Options) -> Options:
    """Return the options with the terms that `sparse_rf` finds as features, which know their
    columns."""
    columns, rows = vars(options.columns), vars(options.rows)
    found = sparse_rf(X, y, **columns, **rows, fit_intercept=options.fit_intercept, rng=options.rng)
    if len(found.features) == 0:
        raise ValueError(
            "features='auto' has found no term that predicts y better than a constant: give other "
            "features"
        )
    return replace(
        options, features=found.features, columns=replace(options.columns, categorical=None)
    )
