"""Several real targets in one search: each counts in units of its standard deviation, whatever it was measured in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..task import power_of_two

if TYPE_CHECKING:
    from ...model import SparseModel
    from .sources import Setting

# Below that share of its root mean square the deviation of a target is rounding.
CONSTANT = 1e-13


def with_equal_outputs(setting: Setting) -> tuple[Setting, np.ndarray | None]:
    """(the setting of these targets, their units); one target, or classes, as they are, with None."""
    task = setting.task
    if task.loss.is_classifier or len(task.targets) == 1:
        return setting, None
    units = [deviation(y, task.weight) for y in task.targets]
    targets = [y / unit for y, unit in zip(task.targets, units, strict=True)]
    centers = [center / unit for center, unit in zip(task.centers, units, strict=True)]
    return replace(setting, task=replace(task, targets=targets, centers=centers)), np.array(units)


def in_their_units(model: SparseModel, units: np.ndarray | None) -> SparseModel:
    """The model of the targets themselves."""
    if units is None:
        return model
    with np.errstate(over="ignore"):
        coef, intercept = model.coef * units[:, None], model.intercept * units
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("y must be of moderate size, got values whose coefficients overflow: scale it")
    return replace(model, coef=coef, intercept=intercept)


def deviation(y: np.ndarray, weight: np.ndarray) -> float:
    """The standard deviation; of a constant its size, or 1."""
    size = power_of_two(y)
    u = y / size
    square = float(weight @ (u * u)) / len(u)
    variance = float(weight @ (u - weight @ u / len(u)) ** 2) / len(u)
    return size * float(np.sqrt(variance if variance > (CONSTANT**2) * square else square or 1.0))
