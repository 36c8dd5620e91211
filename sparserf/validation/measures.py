"""What held-out rows say of a model: the loss of each, and means over folds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from .._base.progress import parts, tell_model
from ..losses import PROBABILISTIC, loss_from_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..model import SparseModel
    from .cross_validation import Run
    from .folds import Data

Measure: TypeAlias = Literal["squared_error", "absolute_error", "error", "log_loss", "loss"]

# Probabilities are at least so large where their logarithm is taken.
LEAST = 1e-15


class Scores:
    """Measures what is held out; name: of the measure, once it is known."""

    name: str | None

    def __init__(self, measure: str | Callable[..., ArrayLike]):
        self._measure, self.name = measure, None if measure == "auto" else getattr(measure, "__name__", str(measure))

    def of_run(self, run: Run, data: Data, fold: np.ndarray, fold_seeds: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """(mean losses (n_settings, cv), mean numbers of terms) of a run."""
        losses, terms = np.zeros((2, len(run.settings), len(fold_seeds)))
        for k, seed in parts(list(enumerate(fold_seeds))):
            models = run.models(data, (fold != k) & data.there, seed)
            X, y, weight = data.take(fold == k)
            losses[:, k] = [np.average(self._of(model, X, y), weights=weight) for model in models]
            terms[:, k] = [len(model.features) for model in models]
            tell_model(models[-1].info)
        return losses, terms.mean(axis=1)

    def _of(self, model, X, y):
        if callable(self._measure):
            losses = np.asarray(self._measure(model, X, y), np.float64)
            if losses.shape != (len(y),):
                raise ValueError(f"measure must give the loss of each of {len(y)} rows, got shape {losses.shape}")
            return losses
        name = natural(model) if self._measure == "auto" else self._measure
        self.name = self.name or name
        if name != self.name:
            raise ValueError(f"measure must be given where losses differ, got 'auto' for {self.name!r} and {name!r}")
        return MEASURES[name](model, X, y)


def natural(model: SparseModel) -> str:
    """The measure of a model's own loss."""
    if model.classes is not None:
        return "log_loss" if model.loss in PROBABILISTIC else "error"
    return "squared_error" if model.loss == "squared" else "loss"


def log_loss(model: SparseModel, X: MatrixLike, y: np.ndarray) -> np.ndarray:
    p = np.asarray(model.predict_proba(X), np.float64)
    k = np.searchsorted(model.classes, y).clip(max=len(model.classes) - 1)
    of_label = np.where(model.classes[k] == y, p[np.arange(len(y)), k], 0.0)
    return -np.log(np.maximum(of_label, LEAST))


def own_loss(model: SparseModel, X: MatrixLike, y: np.ndarray) -> np.ndarray:
    return loss_from_parameters(model.loss, model.loss_parameters).value(np.asarray(model.decision_function(X), np.float64), y)


MEASURES: dict[str, Callable[..., np.ndarray]] = {
    "squared_error": lambda model, X, y: (y - np.asarray(model.predict(X), np.float64)) ** 2,
    "absolute_error": lambda model, X, y: np.abs(y - np.asarray(model.predict(X), np.float64)),
    "error": lambda model, X, y: (model.predict(X) != y).astype(np.float64),
    "log_loss": log_loss,
    "loss": own_loss,
}
