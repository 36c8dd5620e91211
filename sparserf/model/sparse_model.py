"""SparseModel: what every algorithm returns, f(x) = intercept + sum_j coef_j phi_j(x) over the selected features."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from .._base.arrays import check_no_overflow, namespace, outputs_like
from .._base.warnings import warn
from ..explain.explained import Explained
from ..features import FeatureSet
from ..losses import PROBABILISTIC
from .predictor import Predictor, itself, probabilities

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from onnx import ModelProto

    from .._base.types import Array, MatrixLike
    from ..rows import Block
    from ..sklearn import FittedClassifier, FittedRegressor


class ConvergenceWarning(UserWarning):
    """A fit stopped before it reached its tolerance; the message names the gap, the tolerance and what to change.

    Examples
    --------
    >>> import warnings, numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", srf.ConvergenceWarning)
    ...     model = srf.harfe(X, np.sin(2 * X.ravel()), n_nonzero_coefs=5, rng=0)  # an error where it does not converge
    """


def warn_unconverged(message: str) -> None:
    warn(message, ConvergenceWarning)


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
        The mean loss of the held-out rows (logistic, multinomial: with one row more, of any class), before the last fit to all
        rows. While alpha is searched, the least so far.
    n_projections, n_conjugate, error_bound : int, int and float; None but for `drp`
        Projections of the sketch; steps of conjugate gradients in all; a bound on ``||w - w*|| / ||w*||``, the largest over the
        outputs.
    progress : float
        The share of the work that is done, an estimate which never falls; 1 at the end.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> info = srf.sparse_rf(X, np.sin(2 * X.ravel()), features="gaussian", alpha=0.01, n_components=500, rng=0).info
    >>> info.converged, info.n_drawn, info.alpha, bool(info.dual_gap <= 1e-4 * info.objective[-1])
    (True, 500, 0.01, True)
    """

    n_iter: int
    converged: bool
    objective: tuple[float, ...]
    dual_gap: float
    n_drawn: int
    n_nonzero: int
    alpha: float
    validation_loss: float | None = None
    n_projections: int | None = None
    n_conjugate: int | None = None
    error_bound: float | None = None
    progress: float = 1.0


# What users give as callback: it is called with what a fit tells of itself, and ends the fit by returning something true.
Callback: TypeAlias = "Callable[[FitInfo], object] | None"


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
    loss : str
        The name of the loss, one of `sparserf.losses` or of your own.
    classes : None, or ndarray of shape (n_classes,)
        Sorted labels of a classifier.
    info : FitInfo
    loss_parameters : dict
        Of the loss, {name: number}, those that were chosen too.
    link : {"identity", "log", "softmax"}
        `predict` returns f, or e^f. "softmax": `predict_proba` are shares of e^f.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.random.default_rng(0).uniform(-2, 2, (500, 2))
    >>> model = srf.harfe(X, np.sin(3 * X[:, 0]) * X[:, 1], n_nonzero_coefs=40, rng=0)
    >>> f = model.intercept + model.features.transform(X) @ model.coef  # all that it is
    >>> bool(np.allclose(f, model.predict(X))), len(model.coef)
    (True, 40)
    """

    coef: NDArray[np.float64]
    intercept: float | NDArray[np.float64]
    support: NDArray[np.int64]
    features: FeatureSet
    loss: str
    classes: np.ndarray | None
    info: FitInfo
    loss_parameters: dict[str, bool | int | float | str | None] = field(default_factory=dict)
    link: Literal["identity", "log", "softmax"] = "identity"

    def __repr__(self) -> str:
        kind = "regression" if self.classes is None else f"{len(self.classes)} classes"
        return f"SparseModel({kind}, {len(self.features)} terms, {self.n_features_in} inputs, loss={self.loss!r})"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @property
    def n_features_in(self) -> int:
        return self.features.n_features_in

    @property
    def feature_names_in_(self) -> tuple[str, ...] | None:
        """The names of the columns of the data frame that it was fitted to, as strings; None for an array."""
        return self.features.feature_names_in_

    def decision_function(self, X: MatrixLike, workers: int = 1) -> np.ndarray:
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
        answer = partial(decided, self.features, self.coef, self.intercept, rows.dtype, finish)
        return rows.to_namespace_of_X(rows.map(answer, axis=0))

    def predict_proba(self, X: MatrixLike, workers: int = 1) -> np.ndarray:
        """Probability of each class, shape (n_samples, n_classes); with the logistic or the multinomial loss only.

        More than two classes: the softmax of the decision values of loss="multinomial"; of loss="logistic" the one-vs-rest
        probabilities, scaled to sum to 1.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.

        Raises
        ------
        ValueError
            The model has another loss: see `calibrated`.
        """
        if self.loss not in PROBABILISTIC:
            names = " or ".join(f"loss={name!r}" for name in PROBABILISTIC)
            raise ValueError(f"predict_proba needs a model fitted with {names}, this one has loss={self.loss!r}")
        return self._answers(X, workers, partial(probabilities, self.link))

    def input_usage(self) -> np.ndarray:
        """Share of the selected features that use each input, shape (n_features_in,)."""
        return self.features.input_usage()

    def to_estimator(self) -> FittedRegressor | FittedClassifier:
        """This model as an estimator of scikit-learn that has been fitted: `predict`, `score` and all that is built on them.

        Returns
        -------
        sparserf.sklearn.FittedRegressor or FittedClassifier
            Fitting it, or a clone of it, changes nothing.

        Raises
        ------
        ImportError
            scikit-learn is not there.
        """
        from ..sklearn import to_estimator

        return to_estimator(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to an uncompressed file, of the ending .npz where the path has none; `load` reads it back to the same
        predictions, bit for bit.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        ValueError
            More than 2**27 inputs, and more than the file would hold numbers: `load` would not believe it.
        """
        from .file import write

        write(self, path)

    def to_onnx(
        self, path: str | PathLike[str] | None = None, *, dtype: Literal["float32", "float64"] = "float32"
    ) -> ModelProto:
        """The model as an `onnx.ModelProto` of O(n_terms n_features_in) numbers, written to path too; see docs/export.md.

        Parameters
        ----------
        path : str, path or None, default None
            Where the file goes. None: nowhere.
        dtype : {"float32", "float64"}, default "float32"
            Of numbers that come in and go out, and of cosines, sines and tanh; all else is in double precision.

        Raises
        ------
        ImportError
            The package onnx is not there: `pip install sparserf[onnx]`.
        ValueError
            Another dtype; a column without a name, or with levels that an input cannot tell apart.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> model = srf.mfga(np.eye(3), [1.0, 2.0, 3.0], n_nonzero_coefs=1, rng=0)
        >>> [output.name for output in model.to_onnx().graph.output]
        ['variable']
        >>> "double price(const double *x);" in model.to_c(name="price")
        True
        """
        from ..export.onnx import to_onnx

        return to_onnx(self, path, dtype)

    def to_c(self, path: str | PathLike[str] | None = None, *, name: str = "predict") -> str:
        """The model as the text of a file of C99, of as many numbers, written to path too; example in `to_onnx`.

        Parameters
        ----------
        path : str, path or None, default None
            Where the file goes. None: nowhere.
        name : str, default "predict"
            Of the function that predicts a row, with which the names of the others begin.

        Raises
        ------
        ValueError
            A name that is none in C, or that C or the file uses itself.
        """
        from ..export.c import to_c

        return to_c(self, path, name)


@np.errstate(over="ignore")  # infinite beyond the largest float, of float32 X beyond that of float32
def decided(
    features: FeatureSet, coef: np.ndarray, intercept: float | np.ndarray, dtype: np.dtype, finish: Callable[[Array], Array],
    block: Block,
) -> Array:  # fmt: skip
    """What finish makes of Phi c + b, in the dtype of X, rows first."""
    f = check_no_overflow(block.apply(features, coef))
    f = f + outputs_like(intercept, f)
    if isinstance(f, np.ndarray):
        return finish(f.T.astype(dtype, copy=False))
    xp = namespace(f)
    return finish(xp.astype(f if f.ndim == 1 else f.T, getattr(xp, dtype.name), copy=False))
