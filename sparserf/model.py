"""SparseModel: what every algorithm returns, f(x) = intercept + sum_j coef_j phi_j(x) over the selected features."""

import sys
import warnings
from dataclasses import asdict, dataclass, fields
from functools import partial

import numpy as np

from . import _npz
from ._arrays import finite, namespace, outputs_like
from ._npz import floats, require
from .features import FeatureSet, saved
from .losses import LOSSES
from .predictor import Predictor, itself, probabilities
from .stage import ARRAYS as STAGE_ARRAYS
from .stage import ColumnStage

# Inputs that a file may claim beyond the numbers that it holds: `input_usage` makes an array of so many, a gigabyte.
MOST_INPUTS = 2**27


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
class SparseModel(Predictor):
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
        arrays = {"coef": self.coef, "intercept": np.asarray(self.intercept, np.float64), "support": self.support}
        if self.classes is not None:
            arrays["classes"] = self.classes
        blocks = []
        for i, block in enumerate(self.features.blocks):
            meta, values = saved.written(block, i)
            blocks.append(meta)
            arrays |= values
        if self.features.order is not None:
            arrays["order"] = self.features.order.astype(np.int64)
        stage = self.features.stage
        if stage is not None:
            arrays |= stage.written()
        info = asdict(self.info)
        arrays["objective"] = np.array(info.pop("objective"), np.float64)
        _check_inputs(self.n_features_in, arrays)
        meta = {"loss": self.loss, "n_features_in": self.n_features_in, "blocks": blocks, "info": info}
        _npz.write(path, meta, arrays)


@np.errstate(over="ignore")  # infinite beyond the largest float, of float32 X beyond that of float32
def decided(features, coef, intercept, dtype, finish, block):
    """What finish makes of Phi c + b, in the dtype of X, rows first."""
    f = finite(block.apply(features, coef))
    f = f + outputs_like(intercept, f)
    if isinstance(f, np.ndarray):
        return finish(f.T.astype(dtype, copy=False))
    xp = namespace(f)
    return finish(xp.astype(f if f.ndim == 1 else f.T, getattr(xp, dtype.name), copy=False))


def load(path):
    """Read a model that `SparseModel.save` wrote.

    The file is not trusted: no pickle, no code, no array larger than the file, no more than 2**27 inputs without numbers.

    Raises
    ------
    ValueError
        Anything but a whole, consistent model file.
    OSError
        There is no such file, or it may not be read.

    Examples
    --------
    >>> import numpy as np, sparserf as srf, tempfile, pathlib
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = srf.sparse_rf(X, np.sin(2 * X.ravel()), features="gaussian", alpha=0.01, n_components=500, rng=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.npz"
    >>> model.save(path)
    >>> bool((srf.load(path).predict(X) == model.predict(X)).all())
    True
    """
    meta, arrays = _npz.read(path)
    try:
        return _model(meta, arrays)
    except (KeyError, TypeError, AttributeError, OverflowError, ValueError) as error:
        raise ValueError(f"{path} is not a whole model: {type(error).__name__}: {error}") from None


def _model(meta, arrays):
    require(set(meta) == {"format", "loss", "n_features_in", "blocks", "info"}, "metadata")
    require(type(meta["blocks"]) is list and type(meta["info"]) is dict, "metadata")
    d = meta["n_features_in"]
    require(type(d) is int and d > 0, "n_features_in")
    _check_inputs(d, arrays)
    require(type(meta["loss"]) is str and meta["loss"] in LOSSES, "loss")
    stage = ColumnStage.restored(arrays, d)
    n_inputs = d if stage is None else len(stage)
    blocks = [saved.read(block, arrays, i, n_inputs) for i, block in enumerate(meta["blocks"])]
    features = FeatureSet(blocks, n_inputs, _order(arrays, sum(map(len, blocks))), stage)
    classes, coef, intercept = arrays.get("classes"), floats(arrays, "coef"), floats(arrays, "intercept")
    outputs = intercept.shape if classes is None else () if len(classes) == 2 else (len(classes),)
    require(len(outputs) < 2 and outputs != (0,), "intercept")
    require((classes is not None) == LOSSES[meta["loss"]].is_classifier, "classes")
    if classes is not None:
        require(classes.ndim == 1 and len(classes) >= 2 and bool(np.all(classes[:-1] < classes[1:])), "classes")
    require(coef.shape == (*outputs, len(features)) and intercept.shape == outputs, "coef and intercept")
    support = arrays["support"]
    require(support.shape == (len(features),) and support.dtype == np.int64, "support")
    require(bool(np.all(np.diff(support) > 0)) and (len(support) == 0 or support[0] >= 0), "support")
    known = {"coef", "intercept", "support", "classes", "objective", "order", *STAGE_ARRAYS}
    require(set(arrays) <= known | {f"{name}_{i}" for name in saved.ARRAYS for i in range(len(blocks))}, "members")
    return SparseModel(coef, intercept if outputs else float(intercept), support, features, meta["loss"], classes,
                       _info(meta["info"], floats(arrays, "objective")))  # fmt: skip


def _check_inputs(d, arrays):
    if d > max(MOST_INPUTS, sum(np.size(array) for array in arrays.values())):
        raise ValueError(f"n_features_in must be at most {MOST_INPUTS}, or the numbers in the file, got {d}")


def _order(arrays, n):
    order = arrays.get("order")
    if order is not None:
        require(order.dtype == np.int64 and np.array_equal(np.sort(order), np.arange(n)), "order")
    return order


def _info(meta, objective):
    require(set(meta) == {field.name for field in fields(FitInfo)} - {"objective"}, "info")
    require(all(type(meta[n]) is int for n in ("n_iter", "n_drawn", "n_nonzero")), "info")
    require(objective.ndim == 1 and len(objective) > 0 and type(meta["converged"]) is bool, "info")
    require(all(type(meta[n]) in (int, float) and np.isfinite(float(meta[n])) for n in ("dual_gap", "alpha")), "info")
    require(all(meta[n] is None or type(meta[n]) is int for n in ("n_projections", "n_conjugate")), "info")
    require(all(meta[n] is None or type(meta[n]) is float for n in ("error_bound", "validation_loss")), "info")
    return FitInfo(**meta, objective=tuple(objective.tolist()))
