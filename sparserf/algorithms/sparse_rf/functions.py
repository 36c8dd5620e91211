"""The public functions `sparse_rf`, whose penalty is given or chosen, and `sparse_rf_path` (Sparse
Random Features).

A function reads its arguments into a `Task` (rows, targets, weights) and `SparseRFOptions`. With a
penalty `_fit_path` runs Algorithm 1 or the exact descent (`descent.py`) for each target; without
one `choose_model` (`default/search.py`) chooses all. Both may begin with the terms of a model
(`start.py`).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..._base.checks import check_alphas, check_integer, check_real
from ..._base.progress import check_not_ended, shows_progress
from ..._base.threads import single_threaded_blas
from ...features import check_any_sign
from ..dependent_rows import warn_of_dependent_rows
from ..model_of_fits import partial_fits_on_error
from ..path import models_along
from ..rounds import ROUNDS_OF_CHOICE, fit_in_rounds, is_in_rounds, models_of_each
from ..task import Task
from .descent import N_COMPONENTS, L1Fit, algorithm_1, exact_descent, unrest
from .multinomial import MultinomialL1Fit
from .options import ChoiceOptions, SparseRFOptions
from .start import begin_at, check_start_of_task, first_target, with_indices_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from ..._base.splits import Splits
    from ..._base.types import MatrixLike, Seed
    from ...columns.constraints import Interactions, Signs
    from ...columns.encoder import Extrapolate, Missing, Units
    from ...columns.table import Categorical
    from ...columns.targets import ClassWeight
    from ...features.bandwidth import Gamma
    from ...features.dictionary import Features
    from ...losses import LossLike
    from ...model import Callback, SparseModel


# The share of the effort that the first round of a loss with free parameters has (`rounds.py`).
QUICK = 0.1


@shows_progress
def sparse_rf(
    X: MatrixLike,
    y: ArrayLike,
    *,
    alpha: float | None = None,
    features: Features = "auto",
    gamma: Gamma = None,
    scale: Units = "robust",
    missing: Missing = "learn",
    extrapolate: Extrapolate | None = None,
    categorical: Categorical = None,
    monotone: Signs = None,
    convex: Signs = None,
    interactions: Interactions = None,
    loss: LossLike = "squared",
    n_components: int | None = None,
    batch_size: int | None = None,
    max_order: int | None = None,
    exact: bool = False,
    validation: float | Splits | None = None,
    groups: ArrayLike | None = None,
    max_terms: int | None = None,
    effort: float = 1.0,
    time_limit: float | None = None,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    offset: ArrayLike | None = None,
    lower: float | None = None,
    upper: float | None = None,
    tol: float = 1e-4,
    max_iter: int | None = None,
    start: SparseModel | None = None,
    rng: Seed = None,
    workers: int = 1,
    callback: Callback = None,
    verbose: bool | None = None,
) -> SparseModel:
    r"""Fit a sparse model on random features: with `alpha` by the algorithm of Sparse Random
    Features, without it with penalty and kinds of features chosen on folds.

    With X and y alone everything is chosen, on rows that are held out, and the model is the mean of
    several (linear functions, cosines that learn, rules), without the terms that do not pay:

    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (2000, 2))
    >>> y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(2000)
    >>> model = srf.sparse_rf(X, y, rng=0)
    >>> bool(np.mean((model.predict(X) - y) ** 2) < 0.03 * y.var()), len(model.features) < 200
    (True, True)

    With `alpha` and a kernel in `features` this is the paper's Algorithm 1, in its own setting
    ``sparse_rf(X, y, alpha=lambda, features="laplacian", gamma=g, n_components=D, batch_size=R,
    scale=None, fit_intercept=False)``. It minimises over coefficients w and intercept b

    .. math:: \frac1n \sum_i s_i L(b + \sum_h w_h \phi_h(x_i), y_i) + \alpha \sum_h |w_h|

    with L the squared loss (z - y)^2 / 2, or another of `sparserf.losses`, and sample weights s of
    mean 1.

    Parameters
    ----------
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        float32 stays float32; all else becomes float64. A frame's strings and categoricals are
        categories.
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        Real targets, or labels for a classification loss. With "cox" times and events:
        see `losses.Cox`.
    alpha : float, optional
        Penalty, > 0: the paper's lambda, scikit-learn's Lasso alpha, 1/(n C) in liblinear. None:
        chosen on held-out rows.
    features : str, map, sequence of maps, or FeatureSet, default "auto"
        "auto": a dictionary that learns. Else what to draw from: a kernel ("gaussian", "laplacian",
        "cauchy", "matern12", "matern32", "matern52", "perceptron"), or maps such as `Fourier`; or a
        set to search as it is.
    gamma : float, "knn" or None, optional
        Inverse width of a kernel given by name, for columns in units of `scale`; see `Fourier`.
    scale : "robust" or None, default "robust"
        Units in which features see the columns of dense X, which the model keeps. "robust": mean 0
        and deviation 1, with outliers counting less. None: as they are, as CSR columns and those of
        a FeatureSet are in any case. Widths (gamma, or those of a map) are in these units.
    missing : {"learn", "raise"}, default "learn"
        "learn": NaN in dense X is at its column's centre, and a further input says so. "raise": a
        ValueError.
    extrapolate : {"constant", "linear"}, optional
        Beyond the range of the training rows the model is constant in each column of numbers, as
        trees are, or goes on as its terms do. Columns in `convex` and angles of dates go on. None:
        "constant" where alpha is None, else "linear".
    categorical : sequence of names, of indices, or a mask, optional
        Columns that are categories, besides those that a data frame marks. Here and below, where
        names of columns are numbers a number is a name, else an integer is an index; if it is the
        name of one column and the index of another, a warning says so.
    monotone, convex : mapping of columns to 1 or -1, or sequence of 1, -1 and 0, optional
        Columns in which f never falls (1) or rises (-1); is convex (1) or concave (-1). `monotone`
        also takes the levels of a category, ascending.
    interactions : sequence of groups of columns, optional
        Groups of columns that may meet in a term; a column in none has terms of its own. None: all
        may meet.
    loss : str or `sparserf.losses.Loss`, default "squared"
        For real targets also "huber", "quantile", "poisson", "tweedie" or "gamma"; for labels
        "squared_hinge", "logistic", "multinomial" or, in order, "ordinal"; for times until events
        "cox"; or an object, such as `losses.Quantile(level=0.9)`.
    n_components : int, optional
        D, the number of draws. None: 10,000; of "auto" 1,000 with `start`; of `Rules` 4,000, and
        400 for each of several penalties. With "auto" and alpha=None: the cosines that are drawn
        for each penalty and fold, some 500. It has no effect on rules there.
    batch_size : int, optional
        R, the draws in a batch. None: 500 with "auto"; 400 of `Rules`; else 2,500, fewer for more
        than 3,300 columns. For alpha=None: the rules that are grown for each penalty and fold, 400.
        It has no effect on cosines there.
    max_order : int, optional
        The most inputs that a feature of "auto" sees, and the most columns of X in one of `Rules`,
        which is also at most its `max_conditions`. None: all.
    exact : bool, default False
        Whether to search all D draws until `info.dual_gap` certifies the optimum; not for "auto"
        or `Rules`.
    validation : float, mask, indices, pairs or splitter, optional
        For alpha=None, the rows to hold out: a share s, for round(1/s) folds of two to five; a mask
        or indices; or (rows to fit, rows to hold out) for each fold, also from a splitter of
        scikit-learn. None: five folds up to 50,000 rows, three up to 200,000, a fifth of the
        rows beyond.
    groups : array of shape (n_samples,), optional
        The group of each row. Whole groups are held out, and means of a category come from other
        groups.
    max_terms : int, optional
        For alpha=None, the most terms; to come down to them, cosines are moved as in `prune`. None:
        2,000, with the root of the rows beyond 8,000.
    effort : float, default 1.0
        For alpha=None: the draws and trees, in proportion; the rows of the search and of rules, and
        the folds, with its root, and below 1 the most terms of a path and the rows to which the
        weights are fitted at the end.
    time_limit : float, optional
        Seconds, kept to a tenth or 0.3 s beyond the reading of X; `info.cut` has what was left out.
    fit_intercept : bool, default True
        Whether there is an intercept, without a penalty.
    sample_weight : array of shape (n_samples,), optional
        Nonnegative, relative to their mean. A weight of k counts as k copies of the row.
    class_weight : "balanced", mapping of label to weight, optional
        Factors of sample weights; "balanced": n / (k n_c) for class c of k, of n_c rows.
    offset : array of shape (n_samples,) or (n_samples, n_outputs), optional
        Added to f in the loss of each row, such as the log of exposures; not for more than two
        classes without an order.
    lower, upper : float, optional
        Limits to which predictions are clipped; not for classes.
    tol : float, default 1e-4
        Largest duality gap of a fit with alpha, relative to the objective.
    max_iter : int, optional
        The most rounds of a fit with alpha. None: to the tolerance, within a bound on the work.
    start : SparseModel, optional
        A model whose terms come first. With alpha=None there are no others, and the rows should be
        new to it.
    rng : None, int or numpy.random.Generator, default None
        Seed of the draws.
    workers : int, default 1
        Threads; -1 for all cores. The result has the same bits for any number.
    callback : callable, optional
        Called with the `FitInfo` so far after each iteration, and within long ones; returning True
        ends the fit.
    verbose : bool, optional
        Whether to show progress. None: in a terminal or notebook, after two seconds.

    Returns
    -------
    SparseModel
        With alpha, `info.dual_gap` bounds the distance of the objective from its optimum: over all
        D draws if `exact`, else over the last batch and the working set. For alpha=None
        `info.validation_loss` is the mean loss of rows by fits that have not seen them, the gap is
        None, and so is alpha where several were chosen. `support` holds the indices of terms in the
        dictionary.

    Raises
    ------
    ValueError, TypeError
        An argument is out of its range, of another kind or shape, or has no meaning beside another.

    Warns
    -----
    ConvergenceWarning
        The fit ended above the tolerance, by `max_iter`, its work, rounding or, with alpha,
        `time_limit`.
    TimeLimitWarning
        For alpha=None, not one path of penalties was finished within `time_limit`.
    CopiedRowsWarning
        For alpha=None, more than a tenth of the rows that are searched are copies of others, which
        are held out together.
    GroupedRowsWarning
        For alpha=None, rows in memory look grouped or ordered in time, and neither `groups` nor
        `validation` was given.
    UserWarning
        For loss="squared", y looks like labels: two whole numbers; up to 4 in turn from -1, 0 or 1;
        or up to 10 from 0 or 1 that are about as frequent. ``losses.Squared()`` says that they are
        numbers. Or `lower` or `upper` excludes all of y.

    See Also
    --------
    sparse_rf_path : Models for many penalties.
    prune : Fewer terms, at the least change of the predictions.

    Notes
    -----
    Time O(n D d) a pass over the dictionary, several passes; O(n a^2) for a terms in the working
    set. Memory, beyond X: O(n + R d + a^2), and for alpha=None a copy of the rows of a search. The
    paper's lambda_N is n alpha. The page "How the default works" has the rules of alpha=None, "The
    algorithms" more on the arguments.

    References
    ----------
    I. E.-H. Yen, T.-W. Lin, S.-D. Lin, P. Ravikumar, I. S. Dhillon, Sparse Random Features
    Algorithm as Coordinate Descent in Hilbert Space, NIPS 2014. Algorithm 1; `alpha` is lambda in
    (8).

    Examples
    --------
    The paper's algorithm, with X and y as above:

    >>> model = srf.sparse_rf(
    ...     X, y, features="gaussian", gamma=1.0, alpha=0.003, n_components=2000, rng=0
    ... )
    >>> model.info.converged, bool(np.mean((model.predict(X) - y) ** 2) < 0.1 * y.var())
    (True, True)
    """
    call = locals()
    choice, options = ChoiceOptions.of_call(call), SparseRFOptions.of_call(call)
    if alpha is not None:
        alpha = check_real("alpha", alpha, 0, strict=True)
    task = read_task(X, y, options, is_searched=alpha is None and options.is_auto)
    if alpha is not None:
        return _fit_each(task, options, [alpha])[0]
    if groups is None and start is None and choice.holds_out_as_by_default:
        warn_of_dependent_rows(task)
    from ..default.search import choose_model  # which no other function needs

    choice = choice.with_splits(X, y, groups)
    quick = replace(choice, effort=QUICK * choice.effort)
    model = fit_in_rounds(
        task,
        options,
        lambda *own: [choose_model(*own, choice)],
        first=lambda *own: [choose_model(*own, quick)],
        most=ROUNDS_OF_CHOICE,
    )[0]
    return model if start is None else with_indices_of(start, model)


@shows_progress
def sparse_rf_path(
    X: MatrixLike,
    y: ArrayLike,
    *,
    alphas: ArrayLike | None = None,
    n_alphas: int = 20,
    alpha_min_ratio: float = 1e-3,
    features: Features = "auto",
    gamma: Gamma = None,
    scale: Units = "robust",
    missing: Missing = "learn",
    categorical: Categorical = None,
    monotone: Signs = None,
    convex: Signs = None,
    interactions: Interactions = None,
    loss: LossLike = "squared",
    n_components: int | None = None,
    batch_size: int | None = None,
    max_order: int | None = None,
    exact: bool = False,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    offset: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    lower: float | None = None,
    upper: float | None = None,
    tol: float = 1e-4,
    max_iter: int | None = None,
    time_limit: float | None = None,
    rng: Seed = None,
    workers: int = 1,
    callback: Callback = None,
    verbose: bool | None = None,
) -> list[SparseModel]:
    """Fit the models of `sparse_rf` for many penalties, largest first, each started from the one
    before, over one dictionary.

    Parameters
    ----------
    alphas : sequence of float, optional
        Penalties, > 0; used in descending order. None: n_alphas of them, in geometric steps from
        the smallest that makes all coefficients zero down to alpha_min_ratio times that.
    n_alphas : int, default 20
        Number of penalties where alphas is None, at least 1.
    alpha_min_ratio : float, default 1e-3
        The smallest penalty over the largest where alphas is None, in (0, 1].
    X, y, features, gamma, scale, missing, categorical, monotone, convex, interactions, loss,
    n_components, batch_size, max_order, exact, fit_intercept, sample_weight, class_weight, offset,
    groups, lower, upper, tol, max_iter, rng, workers, callback, verbose
        As in `sparse_rf`; max_iter holds for each penalty.
    time_limit : float, optional
        Seconds, beyond the reading of X kept to a tenth or 0.3 s; the smallest penalties are left
        out where there is no time for them, as `info.cut` of the last model says.

    Returns
    -------
    list of SparseModel
        One model for each penalty, `info.alpha` descending.

    Raises
    ------
    ValueError, TypeError
        As `sparse_rf`.

    Warns
    -----
    ConvergenceWarning
        As `sparse_rf`, for each penalty.

    Notes
    -----
    Time: a fit for each penalty, less what a near starting point saves. Memory as `sparse_rf`, and
    the models. Section 3.2 of the paper of `sparse_rf` recommends the path.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> models = srf.sparse_rf_path(
    ...     X, np.sin(2 * X.ravel()), features="gaussian", n_alphas=5, n_components=500, rng=0
    ... )
    >>> [len(model.features) for model in models][0], len(models)
    (0, 5)
    """
    options = SparseRFOptions.of_call(locals())
    n_alphas = check_integer("n_alphas", n_alphas, 1)
    alpha_min_ratio = check_real("alpha_min_ratio", alpha_min_ratio, 0, strict=True)
    if alpha_min_ratio > 1:
        raise ValueError(f"alpha_min_ratio must be at most 1, got {alpha_min_ratio}")
    alphas = None if alphas is None else check_alphas(alphas)
    return _fit_each(read_task(X, y, options), options, alphas, n_alphas, alpha_min_ratio)


def read_task(
    X: MatrixLike, y: ArrayLike, options: SparseRFOptions, is_searched: bool = False
) -> Task:
    """Return the task of a call, with centered targets.

    is_searched : whether members of several kinds search, which see the columns as they are, in
        ranks and in intervals
    """
    start, given = options.start, None if options.start is None else options.start.features
    task = Task.from_options(
        X,
        y,
        options,
        has_ranks=is_searched,
        has_intervals=is_searched,
        start=given,
    )
    if start is not None:
        check_start_of_task(start, task, options.max_order)
    if task.is_joint:
        for features in (task.features, given):
            check_any_sign(features, "classes that are fitted together")
    return task.centered(options.fit_intercept)


def _fit_path(
    task: Task,
    options: SparseRFOptions,
    alphas: Sequence[float] | np.ndarray | None,
    n_alphas: int = 1,
    alpha_min_ratio: float = 1.0,
) -> list[SparseModel]:
    """Return the models for these penalties, each started from the one before; None: for the
    default penalties."""
    start = options.start
    dictionary = _dictionary(task, options, alphas is None or len(alphas) > 1)
    with single_threaded_blas(), task.rows:
        fits = _fits_of(task, dictionary, options)
        if alphas is None:
            alphas = _default_penalties(fits, n_alphas, alpha_min_ratio)
        if start is not None:
            with partial_fits_on_error(fits, task):
                begin_at(start, fits, task, dictionary)
        go_to = partial(_go_to, exact_descent if options.exact else algorithm_1)
        own = task, options.budget, partial(unrest, options.tol)
        return models_along(alphas, fits, go_to, *own, names="penalties", times=_times(alphas))


def _go_to(descend, fit, alpha):
    """Let a fit go to a penalty."""
    fit.restart(alpha)
    check_not_ended()
    fit.begin_in_single()
    descend(fit)
    if fit.stopped:
        check_not_ended()
    fit.end_in_double()


def _fit_each(
    task: Task,
    options: SparseRFOptions,
    alphas: Sequence[float] | np.ndarray | None,
    n_alphas: int = 1,
    alpha_min_ratio: float = 1.0,
) -> list[SparseModel]:
    """Return the models of `_fit_path`, of a loss with free parameters from rounds of each
    penalty."""
    if alphas is None and is_in_rounds(task, options):
        own = replace(options, rng=deepcopy(options.rng))
        with single_threaded_blas(), task.rows:
            fits = _fits_of(task, _dictionary(task, own, True), own)
            alphas = _default_penalties(fits, n_alphas, alpha_min_ratio)
    fit = partial(_fit_path, n_alphas=n_alphas, alpha_min_ratio=alpha_min_ratio)
    return models_of_each(task, options, fit, alphas, _times(alphas), enough=options.tol)


def _times(alphas):
    """Return how long each penalty takes beside the others, for the progress bar."""
    return None if alphas is None else 1 / np.cbrt(alphas)


def _dictionary(task, options, is_one_of_many):
    """Return the dictionary that is searched."""
    # Draws of "auto" beside the terms of a model from which the fit starts: as many as for another
    # penalty of a path.
    draws_of_start = 1_000

    n = draws_of_start if options.start is not None and options.is_auto else N_COMPONENTS
    return options.dictionary(task, n, is_one_of_many=is_one_of_many)


def _default_penalties(fits, n_alphas, alpha_min_ratio):
    """Return penalties in geometric steps from the smallest that makes all coefficients zero."""
    largest = max(fit.largest_gradient() for fit in fits) or 1.0
    return np.maximum(
        largest * np.geomspace(1.0, alpha_min_ratio, n_alphas), np.finfo(np.float64).tiny
    )


def _fits_of(task, dictionary, options):
    """Return the fit of each target, or with the multinomial loss the one fit of all classes."""
    first = first_target(options.start, task)
    if task.is_joint:
        return [MultinomialL1Fit(task, dictionary, options, target=first)]
    targets = enumerate(task.targets, first)
    return [L1Fit(task, y, dictionary, options, target=k) for k, y in targets]
