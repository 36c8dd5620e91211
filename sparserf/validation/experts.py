"""Models and the scores of rows that they have not seen, of which a quantile is the threshold of
conformal prediction.

The score of a number is |y - f(x)| / s(x), where the scale s is 1 or a model of the size of
residuals. A model of several quantiles has intervals already, from the lowest to the highest: the
score is how far y lies beyond them, less than 0 within (conformalized quantile regression). The
score of a class is the probability of all classes that are more probable (`mass_above`); of classes
in order it is at most the largest of two on either side of it (`without_gaps`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from ..columns.targets import places_of
from ..losses.links import AscendingLink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..expansion.base import BaseModel
    from ..model import SparseModel
    from .folds import Dataset
    from .scale import Scale


@dataclass(frozen=True, eq=False)
class Expert:
    """A model, the scale of its residuals, and the scores of rows that calibrate it.

    Attributes
    ----------
    model : SparseModel
        The model f.
    scale : Scale or None
        The scale s; None for 1.
    scores : ndarray of shape (n,), or (n, n_outputs) for several outputs
        In ascending order.
    cumulative_weights : ndarray of shape (n + 1,), or (n + 1, n_outputs)
        The weight of the first 0, 1, ..., n scores.
    group_weights : ndarray of shape (n_groups,) or None
        The weight of each group of these rows; None where each row is on its own.
    """

    model: SparseModel
    scale: Scale | None
    scores: np.ndarray
    cumulative_weights: np.ndarray
    group_weights: np.ndarray | None = None

    @property
    def weights(self) -> np.ndarray:
        """The weight of each score, or of each group of rows, in any order."""
        if self.group_weights is not None:
            return self.group_weights
        return np.diff(self.of_output().cumulative_weights)

    @property
    def n_outputs(self) -> int:
        """The number of real targets; 1 of a classifier."""
        return 1 if self.scores.ndim == 1 else self.scores.shape[1]

    def of_output(self, k: int = 0) -> Self:
        """Return the expert of one of the outputs."""
        if self.scores.ndim == 1:
            return self
        return replace(
            self, scores=self.scores[:, k], cumulative_weights=self.cumulative_weights[:, k]
        )

    def score_at(self, weight: float) -> float:
        """Return the least score up to which the scores have this weight."""
        return self.scores[np.searchsorted(self.cumulative_weights, weight) - 1]

    def weight_below(self, scores: np.ndarray) -> np.ndarray:
        """Return the weight of the rows whose scores are less than each of these."""
        return self.cumulative_weights[np.searchsorted(self.scores, scores)]

    def weight_up_to(self, scores: np.ndarray) -> np.ndarray:
        """Return the weight of the rows whose scores are at most each of these."""
        return self.cumulative_weights[np.searchsorted(self.scores, scores, side="right")]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that neither a model nor its scale saw, and their scores.

    data, rows : the dataset, and the indices of the rows in it
    scores : (n,), or (n, n_outputs)
    classes : the classes of the scores, or None
    """

    model: SparseModel
    scale: Scale | None
    data: Dataset
    rows: np.ndarray
    scores: np.ndarray
    classes: np.ndarray | None = None

    @classmethod
    def of_numbers(
        cls, model: SparseModel, scale: Scale | None, data: Dataset, rows: np.ndarray
    ) -> Self:
        """Score rows whose targets are numbers."""
        X, y, _ = data.take(rows)
        (low, high), spread = ends_and_scale(model, scale, X, **data.offset_of(rows))
        return cls(model, scale, data, rows, np.maximum(low - y, y - high) / spread)

    @classmethod
    def of_classes(
        cls, model: SparseModel, classes: np.ndarray, data: Dataset, rows: np.ndarray
    ) -> Self:
        """Score rows whose targets are among these classes."""
        X, y, _ = data.take(rows)
        scores = class_scores(model, classes, X, **data.offset_of(rows))
        own = scores[np.arange(len(y)), places_of(classes, y)]
        return cls(model, None, data, rows, own, classes)

    def expert(self, some: np.ndarray | slice = slice(None)) -> Expert:
        """Return the model calibrated on these rows, or on those of a mask."""
        data, rows, scores = self.data, self.rows[some], self.scores[some]
        weight = np.ones(len(rows)) if data.weight is None else data.weight[rows]
        order = np.argsort(scores, axis=0, kind="stable")
        cumulative = np.cumsum(weight[order], axis=0)
        return Expert(
            self.model,
            self.scale,
            np.take_along_axis(scores, order, axis=0),
            np.concatenate([np.zeros((1, *cumulative.shape[1:])), cumulative]),
            None if data.together is None else data.weights_of_groups(rows),
        )


def ends_and_scale(
    model: SparseModel,
    scale: Scale | None,
    X: MatrixLike,
    workers: int = 1,
    offset: ArrayLike | None = None,
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return the lowest and the highest prediction of each row of X, the same but for several
    quantiles, and s(x), 1 where there is no scale."""
    argument = {} if offset is None else {"offset": offset}  # models of users may have none
    predicted = np.asarray(model.predict(X, workers, **argument), np.float64)
    if has_ends(model):
        return (predicted[:, 0], predicted[:, -1]), np.ones(len(predicted))
    spread = np.ones(predicted.shape) if scale is None else scale.predict(X, workers)
    return (predicted, predicted), spread


def has_ends(model: BaseModel) -> bool:
    """Return whether a model predicts several quantiles, of which the outer ones are ends."""
    return model.classes is None and model.link == AscendingLink.name


def class_scores(
    model: SparseModel,
    classes: np.ndarray,
    X: MatrixLike,
    workers: int = 1,
    offset: ArrayLike | None = None,
) -> np.ndarray:
    """Return the score of each class in each row, (n_rows, n_classes); infinite for classes that
    the model does not know."""
    argument = {} if offset is None else {"offset": offset}
    p = np.asarray(model.predict_proba(X, workers, **argument), np.float64)
    scores = np.full((len(p), len(classes)), np.inf)
    scores[:, places_of(classes, model.classes)] = mass_above(p)
    return without_gaps(scores) if model.thresholds else scores


def mass_above(p: np.ndarray) -> np.ndarray:
    """Return for each class of each row the probability of all classes that are more probable, 0
    for the most probable ones."""
    order = np.argsort(-p, axis=1, kind="stable")
    descending = np.take_along_axis(p, order, axis=1)
    above = np.zeros_like(p)
    np.cumsum(descending[:, :-1], axis=1, out=above[:, 1:])
    for k in range(1, p.shape[1]):
        is_tie = descending[:, k] == descending[:, k - 1]
        above[is_tie, k] = above[is_tie, k - 1]
    mass = np.empty_like(p)
    np.put_along_axis(mass, order, above, axis=1)
    return mass


def without_gaps(scores: np.ndarray) -> np.ndarray:
    """Return scores of classes in order, lowered so that those up to any number have no gap: a
    class between two others has no larger score than both."""
    from_left = np.minimum.accumulate(scores, axis=1)
    from_right = np.minimum.accumulate(scores[:, ::-1], axis=1)[:, ::-1]
    return np.maximum(from_left, from_right)


def weight_within(coverage: float, weights: Sequence[np.ndarray]) -> float:
    """Return the weight of the calibration rows whose scores an interval holds.

    The new row counts as one more, of the mean weight, so that n equal rows give coverage * (n +
    1). With groups, a whole new group does.

    weights : for each expert the weights of its rows or groups
    """
    weight, total, one = _asked_for(coverage, np.concatenate(weights))
    if weight > total:
        most = f"{total / (total + one):.3g}"
        raise ValueError(
            f"coverage must be at most n / (n + 1) for n rows, or groups, that calibrate, {most}, "
            f"got {coverage}"
        )
    return weight


def are_enough(coverage: float, weights: np.ndarray) -> bool:
    """Return whether rows or groups of these weights have a threshold for this coverage."""
    if not len(weights):
        return False
    weight, total, _ = _asked_for(coverage, weights)
    return bool(weight <= total)


def _asked_for(coverage, w):
    """Return the weight to hold, of all, and of the new row, for rows or groups of weights w."""
    total, one = w.sum(), (w @ w) / w.sum()
    return coverage * (total + one) - 1e-9 * one, total, one  # n rows allow n / (n + 1), rounded
