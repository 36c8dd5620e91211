"""SparseModel: what every algorithm returns, f(x) = intercept + sum_j coef_j phi_j(x) over the selected features."""

import sys
import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np

from ._arrays import finite, namespace, outputs_like
from .explain.explained import Explained
from .features import FeatureSet
from .predictor import Predictor, itself, probabilities


class ConvergenceWarning(UserWarning):
    """A fit stopped before it reached its tolerance; the message names the gap, the tolerance and what to change."""


def warn_unconverged(message):
    """A ConvergenceWarning at the line that called this package, however many of its functions are between."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, ConvergenceWarning, stacklevel=level)


@dataclass(frozen=True)
class FitInfo:
    """How a fit went.

    Attributes
    ----------
    n_iter : int
        Iterations of the algorithm (for `sparse_rf`: batches, and where exact then sweeps over all draws).
    converged : bool
        Whether the tolerance was reached.
    objective : tuple of float
        The objective after each iteration, never rising. One-vs-rest: the sum over the classes.
    dual_gap : float
        Bound on the distance of the objective to the optimum of the problem that was solved last. One-vs-rest: the sum.
    n_drawn : int
        Features that were looked at.
    n_nonzero : int
        Features in the model.
    alpha : float
        The penalty.
    validation_loss : float; None but where alpha was chosen
        The mean loss of the held-out rows, before the last fit to all rows.
    n_projections, n_conjugate, error_bound : int, int and float; None but for `drp`
        Projections of the sketch; steps of conjugate gradients in all; a bound on ||w - w*|| / ||w*||, the largest over the
        outputs.
    """

    n_iter: int
    converged: bool
    objective: tuple
    dual_gap: float
    n_drawn: int
    n_nonzero: int
    alpha: float
    validation_loss: float | None = None
    n_projections: int | None = None
    n_conjugate: int | None = None
    error_bound: float | None = None


@dataclass(frozen=True, eq=False)
class SparseModel(Explained, Predictor):
    """A sparse expansion in selected features. Made by the algorithms and by `load`; immutable, picklable.

    Attributes
    ----------
    coef : ndarray of shape (n_terms,), or (n_outputs, n_terms) for several outputs or more than two classes
    intercept : float, or ndarray of shape (n_outputs,)
    support : int64 ndarray of shape (n_terms,)
        Index of each term in the dictionary that it was selected from, ascending.
    features : FeatureSet
        The selected features alone: predicting costs O(n_terms) a row, whatever the size of the dictionary.
    n_features_in : int
    loss : {"squared", "squared_hinge", "smoothed_hinge", "logistic"}
    classes : None, or ndarray of shape (n_classes,)
        Sorted labels of a classifier.
    info : FitInfo
    """

    coef: np.ndarray
    intercept: float | np.ndarray
    support: np.ndarray
    features: FeatureSet
    loss: str
    classes: np.ndarray | None
    info: FitInfo

    def __repr__(self):
        kind = "regression" if self.classes is None else f"{len(self.classes)} classes"
        return f"SparseModel({kind}, {len(self.features)} terms, {self.n_features_in} inputs, loss={self.loss!r})"

    @property
    def n_features_in(self):
        return self.features.n_features_in

    @property
    def feature_names_in_(self):
        """The names of the columns of the data frame that it was fitted to, as strings; None for an array."""
        return self.features.feature_names_in_

    def decision_function(self, X, workers=1):
        """f(x): shape (n_samples,), or (n_samples, n_outputs) for several outputs or more than two classes.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features_in)
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.

        Returns
        -------
        ndarray
            float32 for float32 X, float64 for all else.
        """
        return self._answers(X, workers, itself)

    def _answers(self, X, workers, finish):
        rows = self.features.rows_of(X, workers)
        return rows.give(rows.map(partial(decided, self.features, self.coef, self.intercept, rows.dtype, finish), axis=0))

    def predict_proba(self, X, workers=1):
        """Probability of each class, shape (n_samples, n_classes); with the logistic loss only.

        More than two classes: the one-vs-rest probabilities, scaled to sum to 1.
        """
        if self.loss != "logistic":
            raise ValueError(f"predict_proba needs loss='logistic', this model has loss={self.loss!r}")
        return self._answers(X, workers, probabilities)

    def input_usage(self):
        """Share of the selected features that use each input, shape (n_features_in,)."""
        return self.features.input_usage()

    def save(self, path):
        """Write the model to an uncompressed .npz file; `load` reads it back to the same predictions, bit for bit.

        Of more than 2**27 inputs, and than the file would hold numbers, a ValueError: `load` would not believe it.
        """
        from .model_file import write

        write(self, path)


@np.errstate(over="ignore")  # infinite beyond the largest float, of float32 X beyond that of float32
def decided(features, coef, intercept, dtype, finish, block):
    """What finish makes of Phi c + b, in the dtype of X, rows first."""
    f = finite(block.apply(features, coef))
    f = f + outputs_like(intercept, f)
    if isinstance(f, np.ndarray):
        return finish(f.T.astype(dtype, copy=False))
    xp = namespace(f)
    return finish(xp.astype(f if f.ndim == 1 else f.T, getattr(xp, dtype.name), copy=False))
