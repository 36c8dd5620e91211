"""Multi Feature Greedy Approximation (Shahrampour & Tarokh 2018): features of several kernels, the largest gradient first."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import check_callable, check_flag, check_integer, check_real, check_rng
from .._base.progress import parts, reported
from .._base.threads import single_threaded_blas
from ..columns.fallback import with_fallbacks
from ..losses import JOINTLY
from ..model import warn_unconverged
from ..solvers.greedy_classes import OnClasses
from ..solvers.greedy_rows import OnRows
from ..solvers.greedy_table import MOST, OnTable
from .mfga_candidates import candidates, n_terms, norms
from .mfga_fit import GreedyFit
from .proposed import proposed
from .task import Task, model_of, partial_fits_on_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from .._base.types import Callback, Categorical, Features, Gamma, LossLike, MatrixLike, Missing, Seed, Units
    from ..model import SparseModel


def algorithm_1(fits: Sequence[GreedyFit], n_nonzero_coefs: int, n_select: int) -> Iterator[None]:
    """Algorithm 1 of the paper, on each target; yields after each round."""
    going = fits
    for _ in parts(range(-(-n_nonzero_coefs // n_select))):  #  for t in [M]
        for fit in going:
            fit.enter(min(n_select, n_nonzero_coefs - len(fit)))  #  J = argmax_j |grad R(theta)_j|;  I = I + {J}
            fit.refit()  #                                           theta = argmin R over supp(theta) in I
        going = [fit for fit in going if not fit.record() and len(fit) < n_nonzero_coefs]
        yield
        if not going:
            break


@reported
def mfga(
    X: MatrixLike, y: ArrayLike, *, n_nonzero_coefs: int | None = None, features: Features | None = None,
    nu: ArrayLike | None = None, gamma: Gamma = None, scale: Units = "auto", missing: Missing = "learn",
    categorical: Categorical = None, n_components: int = 10_000, loss: LossLike = "squared", alpha: float = 1e-3,
    n_select: int = 1, normalize: bool = False, best_phase: bool = False, fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None, tol: float | None = None, rng: Seed = None, workers: int = 1,
    callback: Callback = None, verbose: bool | None = None,
) -> SparseModel:  # fmt: skip
    r"""Multi Feature Greedy Approximation: the best few of the features of one or several kernels, one after the other.

    Each round adds the features in whose coefficients the objective falls fastest, and fits all coefficients again:

    .. math:: \min \frac1n \sum_i s_i L(b + \sum_j \theta_j \sqrt{\nu_{p(j)}} \phi_j(x_i), y_i) + \frac\alpha2 \sum_j \theta_j^2

    over the coefficients of the features chosen so far and the intercept b, with L as in `sparse_rf`, sample weights s
    of mean 1, and p(j) the map that feature j is from.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        float32 stays float32; all else becomes float64. Never modified; copied, in other units, where it holds at most
        2**23 numbers.
    y : array of shape (n_samples,), or (n_samples, n_outputs) for several real targets with one shared support, with
        the squared loss. With a classification loss the labels, any two, or more: for one-vs-rest, n_nonzero_coefs terms for
        each class, or, with loss="multinomial", all classes together in n_nonzero_coefs terms that they share.
    n_nonzero_coefs : int or None, default None
        M, terms of the model, at most the number of features. None: 30, or all features. See `mfga_path` for all numbers up
        to it.
    features : map, sequence of maps, str, FeatureSet or None, default None
        The candidates, as in `sparse_rf`. None: ``(Taylor(2, gamma), Linear())``; of degree 1 for more than 2,000 inputs.
        The paper's, which it counts as C(d, 2) + 2 d + 1, are ``Taylor(2)`` alone, or with `Linear` those of
        ``include_squares=False``. "auto": the terms of ``sparse_rf(X, y)``, which costs what that does; where it finds fewer
        than n_nonzero_coefs, all of them.
    nu : sequence of float or None, default None
        A positive weight for each map; they are scaled to sum to 1. None: all the same.
    gamma : float, "knn" or None, default None
        Inverse width of the default features, or of the kernel that `features` names. None: by the rule "knn" of
        `Fourier`, the paper's, for the default features.
    scale : {"auto", "robust"} or None, default "auto"
        Units of the columns. "robust": each less its mean, over its standard deviation, numbers far from its median counted as
        less far: neither shifts and sizes of columns nor a few wild cells decide. They are kept in the model, which takes X as
        it is. None: columns as they are. "auto": "robust" for features that are named, or left out; None for maps. Those of
        CSR X, and what a FeatureSet was drawn for, are always as they are.
    missing : {"learn", "raise"}, default "learn"
    categorical : sequence of names, of indices, or a mask; or None, default None
        NaN in dense X, and columns that are categories, as in `sparse_rf`.
    n_components : int, default 10_000
        Features to draw from the maps that are random, in equal shares.
    loss : str or `sparserf.losses.Loss`, default "squared"
        "squared", "huber", "quantile", "poisson", "gamma", of real targets; "squared_hinge", "logistic", "multinomial", of
        labels; or an object of `sparserf.losses`, with parameters, or your own.
    alpha : float, default 1e-3
        Ridge penalty, >= 0.
    n_select : int, default 1
        Features added in a round. Some tens are as many times as fast, and a little less sparse.
    normalize : bool, default False
        Compare gradients divided by the norms of their features (around their mean, with an intercept): orthogonal
        matching pursuit as it is usually written. False compares them as they are, as the paper does.
    best_phase : bool, default False
        Give each cosine that enters the phase with the largest gradient, which is a closed form, in place of the one
        that was drawn. Without a map like `Fourier` there are none.
    fit_intercept : bool, default True
        The intercept is not penalised. The paper has none.
    sample_weight : array of shape (n_samples,) or None, default None
        As in `sparse_rf`: nonnegative, relative to their mean.
    tol : float or None, default None
        End before n_nonzero_coefs where a round lowers the objective by less than tol times its value.
    rng : None, int or numpy.random.Generator, default None
        Seed of the draws, and of the 2,000 rows that a rule for gamma looks at: with more rows than that, and no number
        for gamma, the default features depend on it too.
    workers : int, default 1
        Threads; -1 for all cores. The result is the same, bit for bit, for any number.
    callback : callable or None, default None
        Called after each round with the `FitInfo` so far; returning True ends the fit. One-vs-rest: for each class.
    verbose : bool or None, default None
        As in `sparse_rf`.

    Returns
    -------
    SparseModel
        Of fewer terms where no other feature has a gradient, or is independent of those that are in.
        `info.dual_gap` bounds the distance to the best of *all* models of as many terms, out of reach in general.

    Raises
    ------
    ValueError, TypeError
        As `sparse_rf`; n_nonzero_coefs above the number of features; nu that does not fit the maps, or is not positive, or
        beside a FeatureSet; normalize beside best_phase; best_phase beside the loss "multinomial" of more than two classes.

    Warns
    -----
    ConvergenceWarning
        A classification loss was not at its minimum on the support when Newton's method ended.

    See Also
    --------
    mfga_path : The models after every round.

    Notes
    -----
    The gradients of all monomials of degree 1 or 2 come from one product X'diag(.)X of O(n d^2), or of the entries of
    CSR rows with each other; those of other features are O(n d) each. With k terms so far and n_select = p, a round
    takes O(n k p) for the Gram matrix and O(k^2 p) for its Cholesky factor, which grows by blocks. With the squared loss
    and p = 1 it takes one more such product in place of that: the inner products of the new feature with all others.
    Memory, beyond X: O(n + k^2), a copy of X of at most 1 GB, the list of candidates (for p = 1 times k, of at most half
    a gigabyte), of features of 64 inputs and more up to twice that of X, and blocks of some megabytes or of d^2 numbers a
    worker.

    After t rounds the objective is within ``(F_0 - F(u)) exp(-t mu / (beta |u|_0))`` of that of any u with ``|u|_0`` terms, for
    an objective that is mu-strongly convex and beta-smooth in each coefficient (Theorem 3 of the paper).

    References
    ----------
    S. Shahrampour, V. Tarokh, Learning Bounds for Greedy Approximation with Explicit Feature Maps from Multiple
    Kernels, NeurIPS 2018. Algorithm 1. Several features a round: J. Wang, S. Kwon, B. Shim, Generalized Orthogonal
    Matching Pursuit, 2012.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 10))
    >>> y = X[:, 0] * X[:, 1] + X[:, 2]
    >>> model = srf.mfga(X, y, n_nonzero_coefs=20, rng=0)
    >>> len(model.features), bool(np.mean((model.predict(X) - y) ** 2) < 0.2 * y.var())
    (20, True)
    """
    columns = {"scale": scale, "missing": missing, "categorical": categorical}
    fits, rounds, task = _begin(
        X, y, n_nonzero_coefs, features, nu, gamma, columns, n_components, loss, alpha, n_select, normalize, best_phase,
        fit_intercept, sample_weight, tol, rng, workers, callback)  # fmt: skip
    for _ in rounds:
        pass
    return _model(fits, task)


@reported
def mfga_path(
    X: MatrixLike, y: ArrayLike, *, n_nonzero_coefs: int | None = None, features: Features | None = None,
    nu: ArrayLike | None = None, gamma: Gamma = None, scale: Units = "auto", missing: Missing = "learn",
    categorical: Categorical = None, n_components: int = 10_000, loss: LossLike = "squared", alpha: float = 1e-3,
    n_select: int = 1, normalize: bool = False, best_phase: bool = False, fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None, tol: float | None = None, rng: Seed = None, workers: int = 1,
    callback: Callback = None, verbose: bool | None = None,
) -> list[SparseModel]:  # fmt: skip
    """Models of `mfga` after every round, from one run: of n_select terms, of twice as many, and so on.

    Parameters
    ----------
    X, y, n_nonzero_coefs, features, nu, gamma, scale, missing, categorical, n_components, loss, alpha, n_select
        As in `mfga`.
    normalize, best_phase, fit_intercept, sample_weight, tol, rng, workers, callback, verbose
        As in `mfga`.

    Returns
    -------
    list of SparseModel
        The last is that of `mfga`. Choose by the error on rows that were held out.

    Raises
    ------
    ValueError, TypeError
        As `mfga`.

    Warns
    -----
    ConvergenceWarning
        As `mfga`, for each model.

    Notes
    -----
    Time as `mfga`. Memory, beyond it: the models, O(d) a term each, or O(1) for monomials.

    References
    ----------
    As `mfga`.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.random.default_rng(0).normal(size=(400, 5))
    >>> y = X[:, 0] * X[:, 1] + X[:, 2]
    >>> models = srf.mfga_path(X[:300], y[:300], n_nonzero_coefs=15, rng=0)
    >>> errors = [np.mean((model.predict(X[300:]) - y[300:]) ** 2) for model in models]
    >>> best = models[int(np.argmin(errors))]
    >>> len(models), bool(len(best.features) > 1)
    (15, True)
    """
    columns = {"scale": scale, "missing": missing, "categorical": categorical}
    fits, rounds, task = _begin(
        X, y, n_nonzero_coefs, features, nu, gamma, columns, n_components, loss, alpha, n_select, normalize, best_phase,
        fit_intercept, sample_weight, tol, rng, workers, callback)  # fmt: skip
    return [_model(fits, task) for _ in rounds]


def _begin(X, y, n_nonzero_coefs, features, nu, gamma, columns, n_components, loss, alpha, n_select, normalize, best_phase,
           fit_intercept, sample_weight, tol, rng, workers, callback):  # fmt: skip
    """(a fit of each target, their rounds still to come, the task)."""
    rng = check_rng(rng)
    about = {"loss": loss, "fit_intercept": fit_intercept, "sample_weight": sample_weight, "rng": rng, "workers": workers}
    features, columns, is_found = proposed(features, X, y, columns, **about)
    how = {"several_outputs": "together", "losses": JOINTLY}
    task = Task.from_arguments(
        X, y, features=features, loss=loss, sample_weight=sample_weight, workers=workers, rng=rng, columns=columns, **how
    )
    features = task.features
    task = task.centered(check_flag("fit_intercept", fit_intercept))
    rows, weight = task.rows, task.weight
    if not task.loss.is_quadratic and len(np.atleast_2d(task.targets[0])) > 1:
        raise ValueError(f"y must have one output for loss={task.loss.name!r}, got {len(task.targets[0])}: fit one at a time")
    options = {
        "fit_intercept": fit_intercept,
        "alpha": check_real("alpha", alpha, 0),
        "tol": None if tol is None else check_real("tol", tol, 0),
        "callback": check_callable("callback", callback),
    }
    normalize, best_phase = check_flag("normalize", normalize), check_flag("best_phase", best_phase)
    if normalize and best_phase:
        raise ValueError("normalize must be False where best_phase is True: the norm of a feature changes with its phase")
    if best_phase and task.is_joint:
        raise ValueError(f"best_phase must be False for loss={task.loss.name!r} and more than two classes, got True")
    n_select = check_integer("n_select", n_select, 1)
    if n_nonzero_coefs is not None:
        check_integer("n_nonzero_coefs", n_nonzero_coefs, 1)
    everything = candidates(features, rows, weight, nu, gamma, n_components, rng)
    n_nonzero_coefs = n_terms(n_nonzero_coefs, len(everything), is_found)
    with single_threaded_blas(), rows:
        r = norms(rows, everything, weight, fit_intercept) if normalize else np.ones(len(everything))
        if n_select == 1 and task.loss.name == "squared" and not best_phase and n_nonzero_coefs * len(everything) <= MOST:
            make = partial(OnTable, most_terms=n_nonzero_coefs)
        elif task.is_joint:
            make = OnClasses
        else:
            make = partial(OnRows, best_phase=best_phase)
        targets = [np.stack(task.targets)] if task.is_joint else task.targets
        fits = [GreedyFit(task, y, everything, r, make, **options) for y in targets]
    return fits, _rounds(task, fits, n_nonzero_coefs, n_select), task


def _rounds(task, fits, n_nonzero_coefs, n_select):
    with single_threaded_blas(), task.rows, partial_fits_on_error(fits, task):
        yield from algorithm_1(fits, n_nonzero_coefs, n_select)


def _model(fits, task):
    with partial_fits_on_error(fits, task):
        model = with_fallbacks(model_of(fits, task), task)
    if not model.info.converged:
        warn_unconverged(
            f"{model.info.n_nonzero} terms: Newton's method ended before the minimum over their coefficients, where a step "
            f"promised to lower the objective by {max(fit.promise for fit in fits):.3g}; raise alpha",
        )
    return model
