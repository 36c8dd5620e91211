"""Probabilities of classes from decision values: Platt's sigmoid, fitted to held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .._base.calls import checks_call
from .._base.checks import check_integer, check_rng
from .._base.deadline import check_time_limit, limit_of_next
from .._base.progress import part, parts, reporting, tell_model
from ..columns.targets import label_indices
from ..losses import Ordinal
from ..losses.classification import sigmoid
from ..model import SparseModel
from .cross_validation import check_takes_time_limit
from .folds import Dataset, draw_seeds

if TYPE_CHECKING:
    from .._base.types import MatrixLike, Seed


@checks_call
def calibrated(
    function_or_model: Callable[..., SparseModel] | SparseModel,
    X: MatrixLike,
    y: ArrayLike,
    *,
    cv: int = 5,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    time_limit: float | None = None,
    rng: Seed = None,
    verbose: bool | None = None,
) -> SparseModel:
    """Give a classifier of any loss probabilities, calibrated on held-out rows (Platt scaling).

    The decision value f_k(x) of each class becomes a_k f_k(x) + b_k, of which `predict_proba` takes
    the sigmoid; for more than two classes the sigmoids are divided by their sum. a_k >= 0 and b_k
    minimise the logistic loss on rows that the model has not seen. For loss="ordinal" they are a
    factor of f and the thresholds, and its own loss.

    Parameters
    ----------
    function_or_model : function or SparseModel
        A function that fits, (X, y, rng=...) -> classifier, such as a `functools.partial` of
        `sparse_rf` with its loss; where a function of the package is given no loss, it is
        "logistic". The decision values of the rows of a fold come from a model of the other folds,
        and the result is a model of all rows. Or a fitted classifier; then X, y must be rows that
        it has not seen.
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        Rows in memory.
    y : array of shape (n_samples,)
        Labels.
    cv : int, default 5
        Number of folds, at least 2, each with the same share of each class.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative weights, relative to their mean, for the fits and the sigmoids: a row of weight
        k counts as k rows; to a sigmoid as at most sqrt(n) times the mean of the n rows of its
        class.
    groups : array of shape (n_samples,) or None, default None
        The group of each row: numbers, strings or other labels. Rows of a group stay in one fold,
        and a function that has an argument `groups`, such as `sparse_rf`, is given those of its
        rows. A fitted model has no folds.
    time_limit : float or None, default None
        Seconds that the whole call may take, > 0, for a function that has a `time_limit`, such as
        `sparse_rf`. Each fit has an equal share of the time that is left; so the model depends on
        the machine. A fitted model needs none.
    rng : None, int or numpy.random.Generator, default None
        Seed of the folds and fits.
    verbose : bool or None, default None
        Whether to show progress, as in `sparse_rf`.

    Returns
    -------
    SparseModel
        A model with loss="logistic", or "ordinal" as before, whose coef and intercept make
        `predict_proba` the probabilities, and for two classes `decision_function` the log odds. Its
        `info` is that of the fit. It is pruned, saved and loaded as any other.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range or of another type, the model is no classifier, it does
        not know a label of y, or a class has too few rows to be in all folds but one.

    Warns
    -----
    CopiedRowsWarning
        More than a tenth of the rows are copies of others, with which they stay in one part.
    ConvergenceWarning
        As the function.

    See Also
    --------
    intervals : Prediction intervals of real targets.

    Notes
    -----
    The targets of the sigmoid are (n_1 + 1) / (n_1 + 2) and 1 / (n_0 + 2), for n_1 rows of a class
    and n_0 others, counted by weights of mean 1, so that separable classes do not get probabilities
    of 0 and 1. Two numbers for each class need few rows; they cannot follow a curve that is no
    sigmoid. Time: that of cv + 1 fits, or of one prediction.

    References
    ----------
    J. Platt, Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods, 1999.
    B. Zadrozny, C. Elkan, Transforming classifier scores into accurate multiclass probability
    estimates, KDD 2002.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> from functools import partial
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (1000, 2))
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-3 * X[:, 0] * X[:, 1]))
    >>> fit = partial(srf.sparse_rf, loss="squared_hinge", features="gaussian", n_components=300)
    >>> model = srf.calibrated(fit, X[:700], y[:700], rng=0)
    >>> p = model.predict_proba(X[700:])[:, 1]
    >>> bool(abs(p.mean() - y[700:].mean()) < 0.05), bool(np.mean((p > 0.5) == y[700:]) > 0.7)
    (True, True)
    """
    data = Dataset.from_arguments(X, y, sample_weight, groups=groups)
    rng, cv = check_rng(rng), check_integer("cv", cv, 2)
    deadline = check_time_limit(time_limit)
    if callable(function_or_model):
        if time_limit is not None:
            check_takes_time_limit(function_or_model)
        with reporting("calibrated", None, verbose, time_limit) as report:
            model, f = _cross_fit(_of_labels(function_or_model), data, cv, rng, deadline)
            if report is not None:
                report.finish(model.info)
    else:
        model = _check_classifier(function_or_model)
        f = _decision_values(model, data.X)
    label = label_indices(model.classes, data.y[data.used])
    weight = np.ones(len(label)) if data.weight is None else data.weight[data.used]
    if model.thresholds:
        return _with_scale(model, f[data.used], label.astype(np.float64), weight)
    if len(model.classes) == 2:
        a, b = fit_sigmoid(f[data.used], label == 1, weight)
        coef, intercept = a * model.coef, float(a * model.intercept + b)
    else:
        pairs = enumerate(f[data.used].T)
        a, b = np.array([fit_sigmoid(f_k, label == k, weight) for k, f_k in pairs]).T
        coef, intercept = a[:, None] * model.coef, a * model.intercept + b
    return replace(model, coef=coef, intercept=intercept, loss="logistic", link="identity")


def _with_scale(model, f, label, weight):
    """Return a model of classes in order with the factor of its f, at least 0, and the thresholds
    that are best for rows that it has not seen; one more row is of an unknown class."""
    # The largest factor: of rows that f tells apart without an error the best one has no bound.
    largest = 100.0

    loss, share = Ordinal(model.thresholds), weight / weight.sum()
    doubt, unit = loss.doubt(label, weight), float(np.sqrt(share @ (f - share @ f) ** 2)) or 1.0

    def mean_loss(a):
        z = a / unit * f
        fitted = loss.fitted_to(z, label, weight)
        losses = (1 - doubt) * fitted.value(z, label) + doubt * fitted.of_unknown_row(z, 0.0)
        return float(share @ losses)

    from scipy.optimize import minimize_scalar  # slow to import

    a = float(minimize_scalar(mean_loss, bounds=(0.0, largest), method="bounded").x) / unit
    thresholds = loss.fitted_to(a * f, label, weight).thresholds
    return replace(
        model,
        coef=a * model.coef,
        intercept=float(a * model.intercept),
        loss_parameters={**model.loss_parameters, "thresholds": thresholds},
    )


def _of_labels(function):
    """Return the function with loss="logistic", if its loss is the squared one by default."""
    try:
        loss = signature(function).parameters.get("loss")
    except (TypeError, ValueError):  # a callable without a signature
        return function
    is_chosen = (
        loss is None or loss.default != "squared" or "loss" in getattr(function, "keywords", {})
    )
    return function if is_chosen else partial(function, loss="logistic")


def _cross_fit(function, data, cv, rng, deadline):
    """Return a model of all rows, and each row's decision values by a model without that row."""
    splits = data.splits(cv, rng)
    cv = len(splits)
    seed, *fold_seeds = draw_seeds(rng, cv + 1)
    with part(1 / (cv + 1)):
        model = data.fit(function, data.used, seed, **limit_of_next(deadline, cv + 1))
        model = _check_classifier(model)
        tell_model(model.info)
    f = np.zeros((len(data), *np.shape(model.intercept)))
    for k, ((fitted, held), seed) in parts(list(enumerate(zip(splits, fold_seeds, strict=True)))):
        labels = np.unique(data.y[fitted])
        if len(labels) < len(model.classes):
            missing = np.setdiff1d(model.classes, labels)[0]
            raise ValueError(
                f"y must have rows of each class in all folds but one, got too few of {missing!r} "
                f"for cv={cv}"
            )
        model_of_others = data.fit(function, fitted, seed, **limit_of_next(deadline, cv - k))
        f[held] = _decision_values(model_of_others, data.take(held)[0])
        tell_model(model_of_others.info)
    return model, f


def _check_classifier(model):
    """Check that a model is a SparseModel of classes, and return it."""
    if not isinstance(model, SparseModel):
        raise TypeError(
            "function_or_model must be a function that fits a SparseModel, or one, got "
            f"{type(model).__name__}"
        )
    if model.classes is None:
        raise ValueError(
            f"function_or_model must be of a classifier, got a regression, {model!r}: give it a "
            "loss for labels, as partial(sparserf.sparse_rf, loss='logistic') does"
        )
    return model


def _decision_values(model, X):
    """Return the decision values of the rows of X, in double precision."""
    return np.asarray(model.decision_function(X), np.float64)


def bounded(weight: np.ndarray) -> np.ndarray:
    """Return the weights of n rows, of which those above sqrt(n) times the mean are cut to that.

    The mean is that of the result: its largest weights are as large as they can be.
    """
    root, ascending = np.sqrt(len(weight)), np.sort(weight)
    below = np.cumsum(ascending)[::-1]  # the sum without the q largest
    q = np.arange(int(np.ceil(root)))
    caps = below[q] / (root - q)
    fits = np.flatnonzero(ascending[::-1][q] <= caps)
    return np.minimum(weight, caps[fits[0]]) if len(fits) else weight


def fit_sigmoid(f: np.ndarray, is_class: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Return a >= 0 and b for which sigmoid(a f + b) has the least mean logistic loss.

    Of a weight that is more than sqrt(n) times the mean of its class of n rows the rest is left
    out: two numbers, fitted to one row of half of all weight, would bend the probabilities of all
    others (truncated importance weights: E. L. Ionides, Journal of Computational and Graphical
    Statistics 17, 2008). Weights of classes stay.

    Decision values enter as u = (f - mean) / deviation, so that the two unknowns are of one size. A
    step of Newton's method is halved until the loss does not rise. Where the best a is not
    positive, larger values speak against the class: a is 0 and b the log odds.
    """
    weight = weight / weight.max()
    for of_class in (is_class, ~is_class):
        weight[of_class] = bounded(weight[of_class])
    counted = weight / weight.mean()
    n_1, n_0 = counted[is_class].sum(), counted[~is_class].sum()
    t = np.where(is_class, (n_1 + 1) / (n_1 + 2), 1 / (n_0 + 2))
    weight, mean = weight / weight.sum(), np.average(f, weights=weight)
    unit = np.sqrt(np.average((f - mean) ** 2, weights=weight)) or 1.0
    u = np.stack([(f - mean) / unit, np.ones(len(f))])
    share = weight @ t
    c = np.array([0.0, np.log(share / (1 - share))])
    for _ in range(50):
        p = sigmoid(c @ u)
        gradient = u @ (weight * (p - t))
        if np.abs(gradient).max() < 1e-10:
            break
        step = np.linalg.solve((u * (weight * p * (1 - p))) @ u.T + 1e-12 * np.eye(2), gradient)
        before, size = _logistic_loss(c @ u, t, weight), 1.0
        while (loss := _logistic_loss((c - size * step) @ u, t, weight)) > before and size > 1e-6:
            size /= 2
        if not loss <= before:
            break
        c = c - size * step
    if c[0] <= 0:
        return 0.0, float(np.log(share / (1 - share)))
    return float(c[0] / unit), float(c[1] - c[0] * mean / unit)


def _logistic_loss(z, t, weight):
    """Return the weighted logistic loss of log odds z for targets t in (0, 1)."""
    return weight @ (np.logaddexp(0, z) - t * z)
