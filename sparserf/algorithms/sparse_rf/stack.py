"""The stack: how much each member counts, by what it predicts of rows that it has not seen.

With M_m the margins that member m predicts of the rows held out, the weights u_m >= 0 and an
intercept for each target minimise the mean loss of b + sum_m u_m M_m on these rows: the stacked
regression of L. Breiman (Machine Learning 24, 1996). All weights 0 is the constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..task import Task
    from .folds import Folds

# Weights below this are 0.
LEAST_WEIGHT = 0.02


@dataclass(frozen=True, eq=False)
class HeldOutLoss:
    """The loss of margins on the rows that are held out, in units of the task's targets.

    targets : the target of each row held out, (n_targets, n) or (2, n_targets, n) with offsets
    weight : the weight of each, of sum 1
    """

    task: Task
    folds: Folds
    targets: np.ndarray

    @classmethod
    def of(cls, task: Task, folds: Folds) -> HeldOutLoss:
        """Return the loss for the targets of a task of the rows of the folds."""
        unit = task.unit(task.targets[0])
        each = [task.target_of(y)[..., folds.row] * (task.unit(y) / unit) for y in task.targets]
        stacked = np.stack(each, axis=-2) if each[0].ndim == 1 else np.stack(each, axis=1)
        return cls(task, folds, stacked)

    def losses(self, margins: np.ndarray) -> np.ndarray:
        """Return the loss of each row held out, added up over targets."""
        loss = self.task.loss_of(self.task.targets[0])
        return np.atleast_2d(loss.value(margins, self.targets)).sum(axis=0)

    def mean(self, margins: np.ndarray) -> float:
        """Return the mean loss."""
        return float(self.folds.weight @ self.losses(margins))

    def slopes(self, margins: np.ndarray) -> np.ndarray:
        """Return the derivative of the mean loss in each margin."""
        loss = self.task.loss_of(self.task.targets[0])
        return self.folds.weight * loss.derivative(margins, self.targets)


def stacked_weights(
    loss: HeldOutLoss, predictions: Sequence[np.ndarray], fit_intercept: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weight of each member, and the intercept of each target.

    predictions : the margins (n_targets, n) of each member on the rows held out
    """
    M = np.stack(predictions)
    k, n_targets = len(M), M.shape[1]

    def value_and_slope(point):
        margins = np.tensordot(point[:k], M, 1) + point[k:, None]
        slopes = loss.slopes(margins)
        in_intercept = slopes.sum(axis=1) if fit_intercept else np.zeros(n_targets)
        return loss.mean(margins), np.append(np.tensordot(M, slopes, 2), in_intercept)

    start = np.append(np.full(k, 1 / k), np.zeros(n_targets))
    bounds = [(0, None)] * k + [(None, None) if fit_intercept else (0, 0)] * n_targets
    found = minimize(value_and_slope, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    weights = np.where(found[:k] < LEAST_WEIGHT, 0.0, found[:k])
    return weights, found[k:]
