"""The loss of the rows that are held out: of margins, of the best constant, and whether one is
lower than the other by more than chance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .fit_progress import in_units

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .folds import Folds
    from .task import Task

# The share of the way between margins on which a curvature is taken.
STEP = 0.1
# The standard errors by which a model must be better than the constant. Penalties and weights are
# chosen on the rows that judge, and so noise seems to be better by up to 1.4 in .97 of 50 kinds of
# tables of noise (40 to 1,000 rows, numbers and labels). Of 440 real tables of 40 to 300 rows those
# that are lost cost 1.6 % of error; with 0 it is .9 %, with 2 3.8 %.
ERRORS = 1.4
# Of very few rows, or groups, the standard error is itself chance: of VERY_FEW of them the stack
# must be better by twice as many. Of twelve tables of noise of 6 rows one had 10 times the error.
VERY_FEW = 10
# A gain of less than this share of the constant's loss is rounding: weights are no nearer to where
# the loss is least (`minimum`).
LEAST_GAIN = 1e-8


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

    def is_gain(self, losses: np.ndarray, constant: np.ndarray) -> bool:
        """Return whether the losses of the rows held out are lower than those of a constant by so
        many standard errors that it is no chance."""
        folds, gains = self.folds, constant - losses
        of = folds.row if folds.together is None else folds.together[folds.row]
        _, place = np.unique(of, return_inverse=True)
        share = np.bincount(place, folds.weight)
        unit = np.abs(gains).max() or 1.0  # no square over- or underflows
        each = np.bincount(place, folds.weight * (gains / unit)) / share
        mean, alone = share @ each, share @ share
        if alone >= 1 - 1e-12:
            return False
        error = np.sqrt(share**2 @ (each - mean) ** 2 / (1 - alone))
        errors = ERRORS * (1 + (VERY_FEW / len(share)) ** 2)
        least = max(errors * error, LEAST_GAIN * float(folds.weight @ constant) / unit)
        return bool(mean > least)


def constant_margins(loss: HeldOutLoss, start: np.ndarray | None = None) -> np.ndarray:
    """Return the margins of the best constant on the rows held out, (n_targets, 1).

    start : margins to begin at
    """
    n_targets, n = loss.targets.shape[-2:]
    if start is None:
        is_log = loss.task.loss.link == "log"
        start = np.full(n_targets, np.log(loss.mean_target) if is_log else 0.0)

    def value_and_slope(b):
        margins = np.repeat(b[:, None], n, axis=1)
        return loss.mean(margins), loss.slopes(margins).sum(axis=1)

    return minimum(value_and_slope, start.ravel())[:, None]


def minimum(
    value_and_slope: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    bounds: Sequence[tuple[float, float | None]] | None = None,
) -> np.ndarray:
    """Return where a function is least, by L-BFGS-B, in units of its value at the start: models may
    be right to a millionth, and amounts of any size."""
    unit = abs(value_and_slope(start)[0]) or 1.0

    def in_units(x):
        value, slope = value_and_slope(x)
        return value / unit, slope / unit

    from scipy.optimize import minimize  # slow to import

    options = {"ftol": 1e-12, "gtol": 1e-8}
    how = {"jac": True, "method": "L-BFGS-B", "bounds": bounds, "options": options}
    return minimize(in_units, start, **how).x
