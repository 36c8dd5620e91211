"""How large residuals are at each x: a scale for the width of intervals, used where it helps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from ..model import SparseModel

if TYPE_CHECKING:
    from .._base.types import MatrixLike
    from .folds import Data

# Share of the rows that learn the scale which decide whether it is used, and the fewest rows to learn it from.
DECIDING, FEWEST = 0.3, 100


@dataclass(frozen=True, eq=False)
class Scale:
    """How large residuals are, up to a factor: exp of a model of log(|y - f| + floor), within what it said of its own rows."""

    model: SparseModel
    low: float
    high: float

    def of(self, X: MatrixLike, workers: int = 1) -> np.ndarray:
        return np.exp(np.clip(np.asarray(self.model.predict(X, workers), np.float64), self.low, self.high))

    @classmethod
    def learned(cls, model: SparseModel, data: Data, some: np.ndarray, coverage: float, seed: int) -> Self | None:
        """Of a model and these rows, whether it has seen them or not; None where one width for all scores better.

        Rows apart from those that it learns from decide, by the interval score, each with the width that holds that share.
        """
        from ..algorithms.sparse_rf import sparse_rf

        if len(some) < FEWEST:
            return None
        some = np.random.default_rng(seed).permutation(some)
        few, many = np.split(some, [int(DECIDING * len(some))])
        residual = np.zeros(len(data))
        residual[some] = np.abs(data.y[some] - np.asarray(model.predict(data.take(some)[0]), np.float64))
        floor = 0.5 * np.median(residual[many])
        if not floor > 0:
            return None
        data = data.with_target(np.log(residual + floor))
        of_log = data.fit(partial(sparse_rf, n_models=1), many, seed)
        known = of_log.predict(data.take(many)[0])
        scale = cls(of_log, float(known.min()), float(known.max()))
        X, _, weight = data.take(few)
        widths = scale.of(X)
        better = interval_score(residual[few], widths, weight, coverage) < interval_score(
            residual[few], np.ones(len(few)), weight, coverage
        )
        return scale if better else None


def interval_score(residual: np.ndarray, width: np.ndarray, weight: np.ndarray | None, coverage: float) -> float:
    """The mean of 2 h + 2 max(|residual| - h, 0) / (1 - coverage), h the multiple of the width that holds that share."""
    weight, score = np.ones(len(width)) if weight is None else weight, residual / width
    order = np.argsort(score)
    sums = np.cumsum(weight[order])
    h = width * score[order][min(np.searchsorted(sums, coverage * sums[-1]), len(sums) - 1)]
    return np.average(2 * h + 2 * np.maximum(residual - h, 0) / (1 - coverage), weights=weight)
