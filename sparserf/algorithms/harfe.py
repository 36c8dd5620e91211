"""Hard-Ridge Random Feature Expansion (HARFE): hard thresholding pursuit with ridge regression on random features.

With A the m x N matrix of N random features phi_j(x_k) on m rows, the paper looks for the c that minimises, (6) there,

    ||A c - y||^2 + m lambda ||c||^2    subject to at most s entries of c that are not zero.

Algorithm 1 of the paper repeats two lines: a gradient step, c~ = (1 - m mu lambda) c + mu A'(y - A c); and ridge regression
on the support S of the s largest entries of c~. (The paper prints (8) with y in place of [y; 0], and the loop condition with
"or" in place of "and".) Here the objective is over 2 m, so that lambda is `alpha`; the columns of A are phi_j / r_j with r_j
the root mean square of feature j, and c_j = r_j w_j for the coefficients w of the features themselves; the loss may be another;
an intercept is not penalised; and by default the step is halved until the objective falls, which the fixed step of the paper
does not ensure. The path over s is that of graded hard thresholding pursuit.

E. Saha, H. Schaeffer, G. Tran, HARFE: Hard-Ridge Random Feature Expansion, 2022.
S. Foucart, Hard Thresholding Pursuit: An Algorithm for Compressive Sensing, SIAM Journal on Numerical Analysis 49, 2011.
J.-L. Bouchot, S. Foucart, P. Hitczenko, Hard thresholding pursuit algorithms: number of iterations, 2016.

This file has the functions of the user, the loop of Algorithm 1, and the dictionary. The steps of a fit are in `harfe_fit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._base.checks import check_integer, check_sizes
from .._base.progress import parts, reported
from .._base.threads import single_threaded_blas
from ..columns.fallback import with_fallbacks
from ..features import RandomNeurons, draw_all
from ..model import warn_unconverged
from .harfe_classes import fits_of
from .harfe_fit import HarfeOptions
from .selection import read_task
from .task import model_of, partial_fits_on_error

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from numpy.typing import ArrayLike

    from .._base.types import Activation, Callback, Categorical, Features, LossLike, MatrixLike, Missing, Seed, Units
    from ..features import FeatureSet
    from ..model import SparseModel
    from ..rows.home import Rows
    from .harfe_classes import ClassesFit
    from .harfe_fit import L0Fit

    AnyFit: TypeAlias = L0Fit | ClassesFit

# Steps in which a support grows to its size before Algorithm 1.
GROWTH_STEPS = 10
# For the progress that is shown: each iteration of Algorithm 1 is expected to be so much less likely than the one before; and
# after a greedy start Algorithm 1 is expected to take the work of so many steps of growth.
FADING, AFTER_GROWTH = 0.6, 2.0


def algorithm_1(fit: AnyFit, s: int, max_iter: int) -> None:
    """Run Algorithm 1 of the paper from the iterate where the fit stands: A = Phi / r, c = r w, mu = step_size."""
    n_iter = 0 if fit.ended_by_callback else max_iter
    for _ in parts(range(n_iter), np.maximum(FADING ** np.arange(n_iter), 1e-9)):  # while n < tot_iter and residual > eps
        fit.step(s)  #          c~ = (1 - m mu lambda) c + mu A'(y - A c);  S = the s largest |c~|;  ridge regression on S
        if fit.record():
            break
    fit.finish()


def grow(fit: AnyFit, s: int) -> None:
    """Start greedily: let the support grow to s, a share of it in each step, and exchange terms on the way."""
    size = len(fit.point.index)
    for k in parts(range(1, GROWTH_STEPS), rest=AFTER_GROWTH):
        fit.step(size + (s - size) * k // GROWTH_STEPS)
        fit.record()
        if fit.ended_by_callback:
            break


@reported
def harfe(
    X: MatrixLike, y: ArrayLike, *, n_components: int = 10_000, n_nonzero_coefs: int | None = None, order: int | None = None,
    alpha: float = 1e-4, activation: Activation = "sin", features: Features | None = None, scale: Units = "auto",
    missing: Missing = "learn", categorical: Categorical = None, loss: LossLike = "squared",
    selection: Literal["magnitude", "positive"] = "magnitude", normalize: bool = True, step_size: float = 0.1,
    backtracking: bool = True, start: Literal["greedy", "zero"] = "greedy", max_iter: int = 50, tol: float = 5e-3,
    fit_intercept: bool = True, sample_weight: ArrayLike | None = None, rng: Seed = None, workers: int = 1,
    callback: Callback = None, verbose: bool | None = None,
) -> SparseModel:  # fmt: skip
    r"""Hard-Ridge Random Feature Expansion: the best s of many random features, by hard thresholding and ridge regression.

    Looks for the coefficients c, at most s of them not zero, and the intercept b that minimise

    .. math:: \frac1n \sum_i s_i L(b + \sum_j c_j \phi_j(x_i) / r_j, y_i) + \frac\alpha2 \sum_j c_j^2

    with L as in `sparse_rf`, sample weights s of mean 1, and r_j the root mean square of feature j on the training rows
    (`normalize`). Each iteration takes a gradient step, keeps the s largest coefficients, and solves the ridge problem
    on them. The problem is not convex: the result is a point that no such step improves.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        float32 stays float32; all else becomes float64. Never modified; copied, in other units, where it holds at most
        2**23 numbers.
    y : array of shape (n_samples,), or (n_samples, n_outputs) for several real targets
        With a classification loss the labels, any two, or more: for one-vs-rest, or, with loss="multinomial", for all classes
        together, one step of each after the other. All outputs and classes share one dictionary, and each has
        n_nonzero_coefs terms of its own; the support of the model is all of them.
    n_components : int, default 10_000
        N, features to draw.
    n_nonzero_coefs : int or None, default None
        s, terms of the model, at most the number of features. None: 0.15 n_samples, but no more than a tenth of the
        features. See `harfe_path`.
    order : int or None, default None
        q, inputs that each feature sees. Each costs q multiplications a row, or one an input of X where those are at
        most 25 q, which is then faster. None: all of them.
    alpha : float, default 1e-4
        Ridge penalty, > 0. With normalize=True it is the reference implementation's ``lam``, which the paper's tables
        list as lambda or m lambda; with normalize=False it is lambda of (6) in the paper, for columns as they are.
    activation : {"sin", "cos", "tanh", "relu", "sign"}, default "sin"
        Of the features, with standard normal weights: ``RandomNeurons(activation, order)``.
    features : map, sequence of maps, str, FeatureSet or None, default None
        A dictionary in place of the one that activation and order describe, as in `sparse_rf`. "auto": the terms of
        ``sparse_rf(X, y)``, which costs what that does; where it finds fewer than are asked for, all of them.
    scale : {"auto", "robust"} or None, default "auto"
        Units of the columns. "robust": each less its mean, over its standard deviation, numbers far from its median counted as
        less far: neither shifts and sizes of columns nor a few wild cells decide. They are kept in the model, which takes X as
        it is. None: columns as they are. "auto": "robust" for features that are named, or left out; None for maps. Those of
        CSR X, and what a FeatureSet was drawn for, are always as they are.
    missing : {"learn", "raise"}, default "learn"
    categorical : sequence of names, of indices, or a mask; or None, default None
        NaN in dense X, and columns that are categories, as in `sparse_rf`.
    loss : str or `sparserf.losses.Loss`, default "squared"
        "squared", "huber", "quantile", "poisson", "gamma", of real targets; "squared_hinge", "logistic", "multinomial", of
        labels; or an object of `sparserf.losses`, with parameters, or your own.
    selection : {"magnitude", "positive"}, default "magnitude"
        "magnitude": the s largest ``|c|``, Algorithm 1 as printed. "positive": a model with coefficients > 0. With
        backtracking, the s largest c > 0. Without, those of the s largest ``|c|`` that are positive, often fewer than s,
        which is what the reference implementation behind the published figures does; max_iter may end that before it
        has a point without negative coefficients. Positive ones lose nothing in expressiveness (-sin(z) = sin(-z)) and
        regularise where s is near the number of rows.
    normalize : bool, default True
        Scale each feature to mean square 1 on the training rows, as the reference does (up to a factor); False takes
        them as they are, as the paper's text does.
    step_size : float, default 0.1
        mu > 0, of the gradient of the objective above: the paper's mu with normalize=True, its mu n with
        normalize=False. It only decides how easily new terms replace old ones.
    backtracking : bool, default True
        Halve the step until the objective falls. False: the paper's fixed step, ended where a support comes back; the
        best point on the way is the result.
    start : {"greedy", "zero"}, default "greedy"
        "greedy": nine iterations in which the support grows to s, and then those of Algorithm 1, which end lower on most
        data. "zero": the paper's.
    max_iter : int, default 50
        Most iterations of Algorithm 1.
    tol : float, default 5e-3
        Stop where the residual, relative to that of the best constant, is below: for every loss, the root of the mean
        loss over that of the best constant. 0 never stops for it.
    fit_intercept : bool, default True
        The intercept is not penalised. The paper has none.
    sample_weight : array of shape (n_samples,) or None, default None
        As in `sparse_rf`: nonnegative, relative to their mean.
    rng : None, int or numpy.random.Generator, default None
        Seed of the draws.
    workers : int, default 1
        Threads; -1 for all cores. The result is the same, bit for bit, for any number.
    callback : callable or None, default None
        Called after each iteration with the `FitInfo` so far; returning True ends the fit.
    verbose : bool or None, default None
        As in `sparse_rf`.

    Returns
    -------
    SparseModel
        `coef` are c_j / r_j. `info.converged`: the support came to rest, or tol was reached. `info.dual_gap` bounds the
        distance to the best of *all* models of s terms, which is out of reach in general: it is rarely small.

    Raises
    ------
    ValueError, TypeError
        As `sparse_rf`; n_nonzero_coefs above the number of features; features beside order or activation; "multinomial" of
        more than two classes without backtracking.

    Warns
    -----
    ConvergenceWarning
        max_iter ended the fit.

    See Also
    --------
    harfe_path : Models for many numbers of terms from one run.

    Notes
    -----
    Time O(n N q) an iteration for the gradient, and for the ridge problem O(k s m) where k terms change plus O(m^3), m
    the lesser of s and n: in the primal for s <= n, in the dual beyond. Memory, beyond X: O(n + N q + m^2), blocks of
    some megabytes a worker, and of features of 64 inputs and more up to twice that of X. Any other loss than squared takes
    several such solutions an iteration.

    References
    ----------
    E. Saha, H. Schaeffer, G. Tran, HARFE: Hard-Ridge Random Feature Expansion, 2022. Algorithm 1, problem (6).

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (500, 6))
    >>> y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    >>> model = srf.harfe(X, y, n_components=2000, n_nonzero_coefs=60, order=2, rng=0)
    >>> len(model.features), bool(np.mean((model.predict(X) - y) ** 2) < 0.01 * y.var())
    (60, True)
    """
    sizes = None if n_nonzero_coefs is None else [check_integer("n_nonzero_coefs", n_nonzero_coefs, 1)]
    options = HarfeOptions(
        n_components=n_components, order=order, alpha=alpha, activation=activation, features=features, scale=scale,
        missing=missing, categorical=categorical, loss=loss, selection=selection, normalize=normalize, step_size=step_size,
        backtracking=backtracking, start=start, max_iter=max_iter, tol=tol, fit_intercept=fit_intercept,
        sample_weight=sample_weight, rng=rng, workers=workers, callback=callback,
    )  # fmt: skip
    return models_of_sizes(X, y, sizes, 1, options)[0]


@reported
def harfe_path(
    X: MatrixLike, y: ArrayLike, *, n_nonzero_coefs: Iterable[int] | None = None, n_models: int = 10,
    n_components: int = 10_000, order: int | None = None, alpha: float = 1e-4, activation: Activation = "sin",
    features: Features | None = None, scale: Units = "auto", missing: Missing = "learn", categorical: Categorical = None,
    loss: LossLike = "squared", selection: Literal["magnitude", "positive"] = "magnitude", normalize: bool = True,
    step_size: float = 0.1, backtracking: bool = True, start: Literal["greedy", "zero"] = "greedy", max_iter: int = 50,
    tol: float = 5e-3, fit_intercept: bool = True, sample_weight: ArrayLike | None = None, rng: Seed = None, workers: int = 1,
    callback: Callback = None, verbose: bool | None = None,
) -> list[SparseModel]:  # fmt: skip
    """Models of `harfe` for growing numbers of terms, each from the one before: graded thresholding over one dictionary.

    Parameters
    ----------
    X, y, n_components, order, alpha, activation, features, scale, missing, categorical, loss, selection, normalize
        As in `harfe`.
    n_nonzero_coefs : sequence of int or None, default None
        Numbers of terms; used in ascending order. None: n_models of them, in geometric steps up to the default of
        `harfe`.
    n_models : int, default 10
        At least 1.
    step_size, backtracking, start, max_iter, tol, fit_intercept, sample_weight, rng, workers, callback, verbose
        As in `harfe`, for each model.

    Returns
    -------
    list of SparseModel

    Raises
    ------
    ValueError, TypeError
        As `harfe`.

    Warns
    -----
    ConvergenceWarning
        As `harfe`, for each model.

    Notes
    -----
    One drawing of features, and for each size some passes over them. Time and memory as `harfe`.

    References
    ----------
    J.-L. Bouchot, S. Foucart, P. Hitczenko, Hard thresholding pursuit algorithms: number of iterations, 2016.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> models = srf.harfe_path(X, np.sin(2 * X.ravel()), n_nonzero_coefs=[2, 5, 10], n_components=500, rng=0)
    >>> [len(model.features) for model in models]
    [2, 5, 10]
    """
    options = HarfeOptions(
        n_components=n_components, order=order, alpha=alpha, activation=activation, features=features, scale=scale,
        missing=missing, categorical=categorical, loss=loss, selection=selection, normalize=normalize, step_size=step_size,
        backtracking=backtracking, start=start, max_iter=max_iter, tol=tol, fit_intercept=fit_intercept,
        sample_weight=sample_weight, rng=rng, workers=workers, callback=callback,
    )  # fmt: skip
    return models_of_sizes(X, y, n_nonzero_coefs, check_integer("n_models", n_models, 1), options)


def models_of_sizes(
    X: MatrixLike, y: ArrayLike, n_nonzero_coefs: Iterable[int] | None, n_models: int, options: HarfeOptions
) -> list[SparseModel]:
    """Return a model for each number of terms, each fit from where the one before has ended."""
    task = read_task(X, y, options, several_outputs="apart")
    dictionary = draw_dictionary(
        task.features, task.rows, task.weight, n_components=options.n_components, activation=options.activation,
        order=options.order, rng=options.rng,
    )  # fmt: skip
    sizes = sizes_of(n_nonzero_coefs, n_models, task.rows.n_rows, len(dictionary), options.is_auto)
    models = []
    with single_threaded_blas(), task.rows:
        fits = fits_of(task, dictionary, options)
        with partial_fits_on_error(fits, task):
            for s in parts(sizes):
                for fit in parts(fits):
                    fit.restart()
                    if options.start == "greedy":
                        grow(fit, s)
                    algorithm_1(fit, s, options.max_iter)
                is_ended = any(fit.ended_by_callback for fit in fits)
                models.append((with_fallbacks(model_of(fits, task), task), is_ended))
    for model, is_ended in models:
        if not (model.info.converged or is_ended):
            warn_unconverged(
                f"n_nonzero_coefs={model.info.n_nonzero}: stopped after max_iter={options.max_iter} iterations, before the "
                f"support came to rest, above tol={options.tol:.3g} and with a dual gap of {model.info.dual_gap:.3g}; "
                "raise max_iter or tol",
            )
    return [model for model, _ in models]


def draw_dictionary(
    features: Any, rows: Rows, weight: np.ndarray, *, n_components: int, activation: Activation, order: int | None, rng: Seed
) -> FeatureSet:
    """Return all N features: random neurons of this activation and order, or those that the features argument describes."""
    if features is None:
        features = RandomNeurons(activation, order=order)
    elif order is not None or activation != "sin":
        raise ValueError(f"order and activation must not be given beside features, got {order!r} and {activation!r}")
    return draw_all(features, rows, n_components=n_components, rng=rng, weight=weight)


def sizes_of(n_nonzero_coefs: Iterable[int] | None, n_models: int, n_rows: int, n_features: int, is_auto: bool) -> list[int]:
    """Return s of each model, ascending.

    is_auto : whether the features are those that a search has found, of which there may be fewer than the user asks for
    """
    if n_nonzero_coefs is None:
        largest = max(1, min(int(0.15 * n_rows), n_features // 10))
        return np.unique(np.geomspace(largest, max(1, largest // 20), n_models).astype(int)).tolist()
    sizes = check_sizes("n_nonzero_coefs", n_nonzero_coefs, np.inf if is_auto else n_features)
    return sorted({min(size, n_features) for size in sizes})
