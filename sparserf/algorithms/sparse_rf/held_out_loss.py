"""The loss of the rows that are held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..task import in_units

if TYPE_CHECKING:
    from ..task import Task
    from .folds import Folds


# The share of the way between margins on which a curvature is taken.
STEP = 0.1


@dataclass(frozen=True, eq=False)
class HeldOutLoss:
    """The loss of margins on the rows that are held out, in units of the task's targets.

    task : the task of the rows held out, fold after fold
    weight : the weight of each, of sum 1
    targets : the target of each, (n_targets, n) or (2, n_targets, n) with offsets
    doubt, mean_target : the weight of a row with an unknown target (`Loss.doubt`), and the mean of
        all targets: a probability of 0 or 1 is not perfect
    """

    task: Task
    folds: Folds
    weight: np.ndarray
    targets: np.ndarray
    doubt: float
    mean_target: float

    @classmethod
    def of(cls, task: Task, folds: Folds) -> HeldOutLoss:
        """Return the loss for the targets of a task of the rows of the folds."""
        unit = task.unit(task.targets[0])
        each = [task.target_of(y)[..., folds.row] * (task.unit(y) / unit) for y in task.targets]
        stacked = np.stack(each, axis=-2) if each[0].ndim == 1 else np.stack(each, axis=1)
        (target, *_), weight = task.rates()
        mean = float(weight @ (np.atleast_2d(target)[0] / target.shape[-1]))
        doubt = task.loss.doubt(task.targets[0], task.weight)
        held = replace(task, offset=None if task.offset is None else task.offset[..., folds.row])
        return cls(held, folds, folds.weight, stacked, doubt, mean)

    def without(self, k: int) -> HeldOutLoss:
        """Return the loss of the rows of all folds but k."""
        weight = np.where(self.folds.fold == k, 0.0, self.weight)
        return replace(self, weight=weight / weight.sum())

    def losses(self, margins: np.ndarray) -> np.ndarray:
        """Return the loss of each row held out, added up over targets."""
        loss = self.task.loss_of(self.task.targets[0])
        losses = np.atleast_2d(loss.value(margins, self.targets))
        if self.doubt:
            unknown = self.task.losses_of_unknown_row(margins, self.mean_target)
            losses = (1 - self.doubt) * losses + self.doubt * unknown
        return losses.sum(axis=0)

    def mean(self, margins: np.ndarray) -> float:
        """Return the mean loss."""
        return float(self.weight @ self.losses(margins))

    def of_each_fold(self, margins: np.ndarray) -> np.ndarray:
        """Return the part that the rows of each fold have of the mean loss."""
        return np.bincount(self.folds.fold, self.weight * self.losses(margins))

    def slopes(self, margins: np.ndarray) -> np.ndarray:
        """Return the derivative of the mean loss in each margin."""
        loss = self.task.loss_of(self.task.targets[0])
        slopes = loss.derivative(margins, self.targets)
        if self.doubt:
            unknown = self.task.slopes_of_unknown_row(margins, self.mean_target)
            slopes = (1 - self.doubt) * slopes + self.doubt * unknown
        return self.weight * slopes

    def spread(self, margins: np.ndarray, others: np.ndarray) -> float:
        """Return the mean of half the curvature at these margins times the squared distance of
        others; the curvature is how the slopes change on the first STEP of the way."""
        way = others - margins
        change = self.slopes(margins + STEP * way) - self.slopes(margins)
        return float((change * way).sum()) / (2 * STEP)

    def in_units_of_y(self, loss: float) -> float:
        """Return a mean loss in the unit of y."""
        return in_units(loss, self.task.unit(self.task.targets[0]), self.task.loss.degree)
