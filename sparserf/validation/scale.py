"""The scale of residuals: a model of how large they are, used where it makes intervals better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..algorithms.sparse_rf import sparse_rf
from .folds import Dataset

if TYPE_CHECKING:
    from .._base.types import MatrixLike
    from ..expansion.base import BaseModel

# The fewest rows from which a scale is learned.
FEWEST_FOR_SCALE = 100
# The fewest groups from which a scale is learned: one decides, one is held out by the search, and
# one is fitted.
FEWEST_GROUPS_FOR_SCALE = 3


@dataclass(frozen=True, eq=False)
class Scale:
    """The size of residuals, up to a factor: exp of a model of log(|y - f(x)| + floor).

    low, high : the range of that model on the rows it was fitted to, at which its predictions are
        clipped; for several outputs an array, with zeros for the outputs whose scale is 1
    """

    model: BaseModel
    low: float | np.ndarray
    high: float | np.ndarray

    def predict(self, X: MatrixLike, workers: int = 1) -> np.ndarray:
        """Return s(x) of each row, or a line of them for several outputs."""
        log_size = np.asarray(self.model.predict(X, workers), np.float64)
        return np.exp(np.clip(log_size, self.low, self.high))


def learn_scale(
    model: BaseModel, data: Dataset, rows: np.ndarray, coverage: float, seed: int
) -> Scale | None:
    """Learn the scale of a model's residuals from rows, which the model may have seen.

    Rows, or groups, apart from those that it is learned from decide whether it is used, by the
    interval score of intervals that hold the share `coverage` of them; of several outputs, for each
    of them. Return None where intervals of one width score better, or where rows or groups are too
    few to learn from.
    """
    if len(rows) < FEWEST_FOR_SCALE or len(data.weights_of_groups(rows)) < FEWEST_GROUPS_FOR_SCALE:
        return None
    deciding, learning = data.draw(rows, int(0.3 * len(rows)), np.random.default_rng(seed))
    residual = np.zeros(data.y.shape)
    predicted = model.predict(data.take(rows)[0], **data.offset_of(rows))
    residual[rows] = np.abs(data.y[rows] - np.asarray(predicted, np.float64))
    floor = 0.5 * np.median(residual[learning], axis=0)
    if not np.any(floor > 0):
        return None
    data = replace(data, y=np.log(residual + np.where(floor > 0, floor, 1.0)), offset=None)
    of_log = data.fit(sparse_rf, learning, seed)
    seen = np.asarray(of_log.predict(data.take(learning)[0]), np.float64)
    scale = Scale(of_log, seen.min(axis=0), seen.max(axis=0))
    X, _, weight = data.take(deciding)
    width, r = scale.predict(X), residual[deciding]
    without = interval_score(r, np.ones(width.shape), weight, coverage)
    helps = (floor > 0) & (interval_score(r, width, weight, coverage) < without)
    if not np.any(helps):
        return None
    if np.ndim(helps) == 0:
        return replace(scale, low=float(scale.low), high=float(scale.high))
    low, high = (np.where(helps, end, 0.0) for end in (scale.low, scale.high))
    return replace(scale, low=low, high=high)


def interval_score(
    residual: np.ndarray, width: np.ndarray, weight: np.ndarray | None, coverage: float
) -> np.ndarray:
    """Return the mean interval score, 2 h + 2 max(|residual| - h, 0) / (1 - coverage), over rows.

    The half widths h are the multiple of `width` that holds the share `coverage` of these rows. A
    lower score is better. Of several outputs, (n_rows, n_outputs), each has a score.
    """
    if residual.ndim == 2:
        outputs = zip(residual.T, width.T, strict=True)
        return np.array([interval_score(*output, weight, coverage) for output in outputs])
    weight, score = np.ones(len(width)) if weight is None else weight, residual / width
    order = np.argsort(score)
    cumulative = np.cumsum(weight[order])
    k = min(np.searchsorted(cumulative, coverage * cumulative[-1]), len(cumulative) - 1)
    h = width * score[order[k]]
    return np.average(2 * h + 2 * np.maximum(residual - h, 0) / (1 - coverage), weights=weight)
