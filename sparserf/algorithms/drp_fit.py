"""Where a fit of `drp` begins: the linear model at zero, of X around its means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import check_flag
from ..features import Linear
from ..linear.fit import LinearFit
from ..linear.inputs import Inputs
from ..linear.multinomial import MultinomialLinearFit
from ..linear.problem import LinearProblem
from ..losses import LOSSES
from .task import Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..columns.stage import ColumnSetting
    from ..losses import LinearLossLike
    from ..model import Callback


def linear_fit(
    X: MatrixLike, y: ArrayLike, alphas: Sequence[float], loss: LinearLossLike, fit_intercept: bool,
    sample_weight: ArrayLike | None, workers: int, rng: np.random.Generator | None, columns: ColumnSetting,
    callback: Callback = None,
) -> tuple[LinearFit | MultinomialLinearFit, Task]:  # fmt: skip
    """(a `LinearFit` at zero, or `MultinomialLinearFit`, to begin at one of the penalties; the task), all checked."""
    columns = {"scale": None, **columns}
    how = {"several_outputs": "together", "losses": LOSSES}
    task = Task.from_arguments(
        X, y, features=Linear(), loss=loss, sample_weight=sample_weight, workers=workers, rng=rng, columns=columns, **how
    )
    if np.isinf(task.loss.smoothness) and not task.loss.is_self_concordant:
        raise ValueError(f"loss must have a finite smoothness, with which drp bounds the effect of rounding, got {task.loss!r}")
    task = task.centered(check_flag("fit_intercept", fit_intercept))
    targets = np.vstack(task.targets)
    problem, progress = task.problem(LinearProblem, targets, 1.0, fit_intercept), task.progress(callback, targets)
    inputs = Inputs.of(task.rows, problem.weight, fit_intercept, alphas)
    if not task.is_joint:
        return LinearFit(inputs, problem, progress, unit=problem.alpha), task
    return MultinomialLinearFit(task, inputs, progress, fit_intercept), task
