"""Several real targets, each in units of its standard deviation, so that each counts alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..task import power_of_two

if TYPE_CHECKING:
    from ...model import SparseModel
    from ..task import Task

# Below this share of its root mean square the standard deviation of a target is rounding.
CONSTANT = 1e-13


def with_equal_outputs(task: Task) -> tuple[Task, np.ndarray | None]:
    """Return the task with several real targets in units of their standard deviations, and these
    units.

    So each counts alike in the held-out loss, whatever it was measured in. One target, or classes,
    are returned as they are, with None.
    """
    if task.loss.is_classifier or len(task.targets) == 1:
        return task, None
    units = [deviation(y, task.weight) for y in task.targets]
    targets = [y / unit for y, unit in zip(task.targets, units, strict=True)]
    centers = [center / unit for center, unit in zip(task.centers, units, strict=True)]
    return replace(task, targets=targets, centers=centers), np.array(units)


def in_their_units(model: SparseModel, units: np.ndarray | None) -> SparseModel:
    """Return the model of the targets themselves, for one of `with_equal_outputs`."""
    if units is None:
        return model
    coef, intercept = model.coef * units[:, None], model.intercept * units
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError(
            "y must be of moderate size, got values whose coefficients overflow: scale it"
        )
    return replace(model, coef=coef, intercept=intercept)


def deviation(y: np.ndarray, weight: np.ndarray) -> float:
    """Return the standard deviation of a target; for a constant, its absolute value, or 1 where
    that is 0."""
    size = power_of_two(y)
    u = y / size
    square = float(weight @ (u * u)) / len(u)
    variance = float(weight @ (u - weight @ u / len(u)) ** 2) / len(u)
    return size * float(np.sqrt(variance if variance > (CONSTANT**2) * square else square or 1.0))
