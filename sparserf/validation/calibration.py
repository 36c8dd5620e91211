"""Probabilities of classes from decision values of rows that a classifier has not seen: Platt's sigmoid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .._base.calls import checks_call
from .._base.checks import check_integer, check_rng
from .._base.progress import part, parts, reporting, tell_model
from ..losses.classification import sigmoid
from ..model import SparseModel
from .folds import Data, seeds

if TYPE_CHECKING:
    from .._base.types import MatrixLike, Seed

# Newton's steps at most, and the slope of the mean loss at which they end.
MOST_STEPS, FLAT = 50, 1e-10


@checks_call
def calibrated(
    function_or_model: Callable[..., SparseModel] | SparseModel, X: MatrixLike, y: ArrayLike, *, cv: int = 5,
    sample_weight: ArrayLike | None = None, rng: Seed = None, verbose: bool | None = None,
) -> SparseModel:  # fmt: skip
    """A classifier of any loss with probabilities: those that held-out rows of each decision value had.

    The decision values f_k(x) of each class become a_k f_k(x) + b_k, of which `predict_proba` makes sigmoids, of more than
    two classes divided by their sum. a_k >= 0 and b_k minimise the logistic loss of rows that the model has not seen.

    Parameters
    ----------
    function_or_model : function or SparseModel
        A function that fits, (X, y, rng=...) -> classifier, such as a `functools.partial` of `sparse_rf` with its loss: the
        decision values of each fold are those of a model of the others, and the result is a model of all rows. Or a fitted
        classifier, and X, y are rows that it has not seen.
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        In memory.
    y : array of shape (n_samples,)
        Labels.
    cv : int, default 5
        Folds, at least 2, each with the same share of each class.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative, relative to their mean, in the fits and in the sigmoid.
    rng : None, int or numpy.random.Generator, default None
        Seed of folds and fits.
    verbose : bool or None, default None
        As in `sparse_rf`: after each fit.

    Returns
    -------
    SparseModel
        With coef, intercept and loss="logistic" such that `decision_function` is the log odds, of two classes, and
        `predict_proba` the probabilities. Its `info` is that of the fit. It is pruned, saved and loaded as any other.

    Raises
    ------
    ValueError, TypeError
        An argument out of its range or of another kind; a model of no classes, labels that it does not know, or a class with
        too few rows for all folds to know it.

    Warns
    -----
    ConvergenceWarning
        As the function.

    See Also
    --------
    intervals : Prediction intervals of real targets.

    Notes
    -----
    Targets are (n_1 + 1) / (n_1 + 2) and 1 / (n_0 + 2), for n_1 rows of a class and n_0 others, so that separable classes
    have no probabilities of 0 and 1. Two numbers a class need few rows; a curve that is no sigmoid they do not follow.
    Time: that of cv + 1 fits, or of one prediction.

    References
    ----------
    J. Platt, Probabilistic outputs for support vector machines and comparisons to regularized likelihood methods, 1999.
    B. Zadrozny, C. Elkan, Transforming classifier scores into accurate multiclass probability estimates, KDD 2002.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> from functools import partial
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (1000, 2))
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-3 * X[:, 0] * X[:, 1]))
    >>> fit = partial(srf.sparse_rf, loss="squared_hinge", features="gaussian", n_components=300, n_models=1)
    >>> model = srf.calibrated(fit, X[:700], y[:700], rng=0)
    >>> p = model.predict_proba(X[700:])[:, 1]
    >>> bool(abs(p.mean() - y[700:].mean()) < 0.05), bool(np.mean((p > 0.5) == y[700:]) > 0.7)
    (True, True)
    """
    data, rng, cv = Data(X, y, sample_weight), check_rng(rng), check_integer("cv", cv, 2)
    if callable(function_or_model):
        with reporting("calibrated", None, verbose) as report:
            model, f = _cross_fitted(function_or_model, data, cv, rng)
            if report is not None:
                report.finish(model.info)
    else:
        model = _checked(function_or_model)
        f = _decision(model, data.inputs)
    label = _labels(model, data.y)[data.there]
    weight = np.ones(len(label)) if data.weight is None else data.weight[data.there]
    if len(model.classes) == 2:
        a, b = sigmoid_of(f[data.there], label == 1, weight)
        return replace(model, coef=a * model.coef, intercept=float(a * model.intercept + b), loss="logistic", link="identity")
    a, b = np.array([sigmoid_of(f[data.there, k], label == k, weight) for k in range(len(model.classes))]).T
    return replace(model, coef=a[:, None] * model.coef, intercept=a * model.intercept + b, loss="logistic", link="identity")


def _cross_fitted(function, data, cv, rng):
    """(a model of all rows, the decision values of each row of a model that has not seen it)."""
    fold, (seed, *others) = data.folds(cv, rng), seeds(rng, cv + 1)
    with part(1 / (cv + 1)):
        model = _checked(data.fit(function, data.there, seed))
        tell_model(model.info)
    f = np.zeros((len(data),) if len(model.classes) == 2 else (len(data), len(model.classes)))
    for k, seed in parts(list(enumerate(others))):
        fitted, held = (fold != k) & data.there, fold == k
        labels = np.unique(data.y[fitted])
        if len(labels) < len(model.classes):
            missing = np.setdiff1d(model.classes, labels)[0]
            raise ValueError(f"y must have rows of each class in all folds but one, got too few of {missing!r} for cv={cv}")
        of_others = data.fit(function, fitted, seed)
        f[held] = _decision(of_others, data.take(held)[0])
        tell_model(of_others.info)
    return model, f


def _checked(model):
    if not isinstance(model, SparseModel):
        raise TypeError(f"function_or_model must be a function that fits a SparseModel, or one, got {type(model).__name__}")
    if model.classes is None:
        raise ValueError(f"function_or_model must be of a classifier, got {model!r}")
    return model


def _decision(model, X):
    return np.asarray(model.decision_function(X), np.float64)


def _labels(model, y):
    label = np.searchsorted(model.classes, y).clip(max=len(model.classes) - 1)
    strange = model.classes[label] != y
    if strange.any():
        raise ValueError(f"y must hold labels that the model knows, got {y[strange][0]!r}")
    return label


def sigmoid_of(f: np.ndarray, is_class: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """(a, b) of sigmoid(a f + b), a >= 0, that minimise the mean logistic loss, by Newton's method."""
    n_1, n_0 = weight[is_class].sum(), weight[~is_class].sum()
    t = np.where(is_class, (n_1 + 1) / (n_1 + 2), 1 / (n_0 + 2))
    weight, mean = weight / weight.sum(), np.average(f, weights=weight)
    unit = np.sqrt(np.average((f - mean) ** 2, weights=weight)) or 1.0
    u = np.stack([(f - mean) / unit, np.ones(len(f))])
    share = weight @ t
    c = np.array([0.0, np.log(share / (1 - share))])
    for _ in range(MOST_STEPS):
        p = sigmoid(c @ u)
        slope = u @ (weight * (p - t))
        if np.abs(slope).max() < FLAT:
            break
        step = np.linalg.solve((u * (weight * p * (1 - p))) @ u.T + 1e-12 * np.eye(2), slope)
        before, size = _loss(c @ u, t, weight), 1.0
        while (loss := _loss((c - size * step) @ u, t, weight)) > before and size > 1e-6:
            size /= 2
        if not loss <= before:
            break
        c = c - size * step
    if c[0] <= 0:  # larger values, less of the class: they tell nothing
        return 0.0, float(np.log(share / (1 - share)))
    return float(c[0] / unit), float(c[1] - c[0] * mean / unit)


def _loss(z, t, weight):
    return weight @ (np.logaddexp(0, z) - t * z)
