"""The public functions `sparse_rf`, whose penalty is given or chosen, and `sparse_rf_path` (Sparse Random Features).

A function reads its arguments into a `Task` (rows, targets, weights) and `SparseRFOptions`. With a penalty `_fit_path` runs
Algorithm 1 or the exact descent (`descent.py`) for each target; without one `choose_by_held_out_rows` (`search.py`) chooses it.
Both may begin with the terms of a model (`start.py`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..._base.checks import check_alphas, check_integer, check_real
from ..._base.deadline import NEVER, limits_time
from ..._base.progress import check_not_ended, ends_at, parts, shows_progress
from ..._base.threads import single_threaded_blas
from ...features import check_any_sign
from ...losses import JOINTLY
from ...solvers.effort import Effort
from ..fallback import with_fallbacks
from ..task import Task, model_of, partial_fits_on_error, with_ranges
from .descent import N_COMPONENTS, algorithm_1, exact_descent, fits_of, warn_if_unconverged
from .options import ChoiceOptions, SparseRFOptions
from .search import choose_by_held_out_rows
from .start import begin_at, check_start_of_task, first_search, with_indices_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from ..._base.splits import Splits
    from ..._base.types import MatrixLike, Seed
    from ...columns.constraints import Interactions, Signs
    from ...columns.stage import Missing, Units
    from ...columns.table import Categorical
    from ...columns.targets import ClassWeight
    from ...features.bandwidth import Gamma
    from ...features.dictionary import Features
    from ...losses import LossLike
    from ...model import Callback, SparseModel
    from .descent import BaseL1Fit

# Draws of "auto" beside the terms of a model from which the fit starts: as many as for another penalty of a path.
DRAWS_OF_START = 1_000


@shows_progress
def sparse_rf(
    X: MatrixLike, y: ArrayLike, *, alpha: float | None = None, features: Features = "auto", gamma: Gamma = None,
    scale: Units = "auto", missing: Missing = "learn", categorical: Categorical = None, monotone: Signs = None,
    convex: Signs = None, interactions: Interactions = None, loss: LossLike = "squared", n_components: int | None = None,
    batch_size: int | None = None, max_order: int | None = None, exact: bool = False,
    validation: float | Splits = 0.1, groups: ArrayLike | None = None, n_models: int | None = None,
    max_terms: int | None = None, effort: float = 1.0, time_limit: float | None = None, fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None, class_weight: ClassWeight = None, offset: ArrayLike | None = None,
    lower: float | None = None, upper: float | None = None, tol: float = 1e-4, max_iter: int | None = None,
    start: SparseModel | None = None, rng: Seed = None, workers: int = 1, callback: Callback = None,
    verbose: bool | None = None,
) -> SparseModel:  # fmt: skip
    r"""Fit a sparse model on random features (Sparse Random Features): few terms, selected by an l1 penalty.

    With X and y alone everything is chosen: the features follow what the fit accepts, and the penalty and the number of terms
    are chosen to predict best the tenth of the rows that a search holds out.

    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (2000, 2))
    >>> y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(2000)
    >>> model = srf.sparse_rf(X, y, rng=0)
    >>> bool(np.mean((model.predict(X) - y) ** 2) < 0.03 * y.var()), len(model.features) < 200  # R^2 above 0.97
    (True, True)

    For labels set `loss` to "logistic" or "multinomial", for counts to "poisson". Set `rng` for the same model each time,
    `effort` for more accuracy or less time, `max_terms` for a smaller model, and `workers=-1` to use all cores.

    With `alpha`, a kernel in `features`, and `gamma`, this is the paper's Algorithm 1. What is minimised, over the coefficients
    w of the drawn features phi_1, ..., phi_D and the intercept b, is

    .. math:: \frac1n \sum_i s_i L(b + \sum_h w_h \phi_h(x_i), y_i) + \alpha \sum_h |w_h|

    with L the squared loss (z - y)^2 / 2, or another of `sparserf.losses`, and sample weights s scaled to mean 1. The matrix of
    all features is never built: draws are searched in tiles, and only draws that lower the objective enter the working set.

    Parameters
    ----------
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        float32 stays float32; all else becomes float64. X is never modified or densified; where it holds at most 2**23
        numbers, a copy in other units is made. Of a frame the names of columns are kept, strings and categoricals are
        categories, and dates, durations and times of day are days and angles.
    y : array of shape (n_samples,), or (n_samples, n_outputs) for several real targets
        With a classification loss the labels: any two, or more for one-vs-rest or "multinomial". Several targets share one
        dictionary and alpha; with alpha=None each counts in units of its standard deviation, in `info` too.
    alpha : float or None, default None
        Penalty, > 0: the paper's lambda, scikit-learn's Lasso alpha, 1/(n C) in liblinear. None: chosen on held-out rows (see
        Notes). `sparse_rf_path` fits many penalties.
    features : str, map, sequence of maps, or FeatureSet, default "auto"
        "auto": a dictionary that learns, of cosines of any bandwidth and number of inputs. Three quarters of each batch are
        variations of the features in the model (jittered, added, with an input's weight drawn anew, mixed, rescaled); each
        kind of variation has the share in which it succeeds, and each cosine the phase that descends most. With alpha=None and
        dense X a second dictionary has steps, signs of sums of few inputs, and up to 5,000 rows may each get a bump,
        ``exp(-sum_l m_l |x_l - c_l|)`` with the row as its center c, where that predicts held-out rows better. Of more than
        1,024 inputs, features see those of the largest variance. A name draws from a kernel as the paper does: "gaussian",
        "laplacian", "cauchy", "matern12", "matern32", "matern52", "perceptron". A map (`Fourier`, `Perceptron`,
        `RandomNeurons`, `Bumps`, `Linear`), or several with equal shares, is drawn from; a FeatureSet is searched as it is.
    gamma : float, None or "knn", default None
        Inverse width of a kernel that is given by name, for columns in units of `scale`; see `Fourier`.
    scale : {"auto", "robust"} or None, default "auto"
        Units of the columns. "robust": each column less its mean, over its standard deviation, where numbers far from the
        median count as less far, so that a few wild cells do not decide; the units are kept in the model, which takes X as it
        is. None: columns as they are. "auto": "robust" where features are "auto" or a kernel's name, None for maps. Columns of
        CSR X with an alpha, and of a FeatureSet, are always as they are.
    missing : {"learn", "raise"}, default "learn"
        What NaN in dense X means. "learn": a missing number is at the centre of its column, and where a sample of the training
        rows has some, a further input says that it is missing; "raise": a ValueError. Where only new rows lack a column, their
        cells are where the model lost least on training rows without that column, by default at the centre. CSR X must have
        no NaN.
    categorical : sequence of names, of indices, or a mask; or None, default None
        Columns that are categories, beside strings and categoricals of a data frame. Frequent levels are inputs that are zero
        or one. Where levels are rarer than a hundredth, or more than 24, a further input is the mean of y over the rows of the
        level (of a training row: over the rows of other folds). A level that training rows do not have counts as missing, with
        about the mean of y over all rows. X must be in host memory.
    monotone : mapping of columns to 1, -1 or levels; a sequence of 1, -1 and 0 for all columns; or None, default None
        Columns, by name or index, in which f never falls (1) or never rises (-1), whatever the other columns are; in
        scikit-learn `monotonic_cst`. It holds for all values, by construction: whatever sees such a column rises with it, a
        linear function, a tanh, a step or a clipped line whose weights have the right signs, with a coefficient of at least 0.
        f of two classes is the decision value of `classes[1]`. For a category the levels in ascending order, or 1 and -1 where
        it is an ordered one of pandas; missing cells, and levels that no training row with a weight has, listed or not, are in
        no order. For more than two classes a ValueError.
    convex : mapping of columns to 1 or -1, a sequence of 1, -1 and 0 for all columns, or None, default None
        Columns of numbers in which f is convex (1) or concave (-1) at any values of the others. Such a column is seen as it is,
        neither clipped nor in ranks, by linear functions and lines with one corner; beyond the training rows f goes on along
        lines. A column may be in `monotone`, too.
    interactions : sequence of groups of columns, or None, default None
        Groups of columns, by names or indices, that may meet in one term. Columns in no common group never do, so that f is a
        sum of functions of the columns of one group each. A column in no group is in terms of its own (scikit-learn's
        `interaction_cst` has one more group of all such columns). `max_order` holds as well. Linear functions are sums of
        functions of one column, and may have all columns. None: all may meet.
    loss : str or `sparserf.losses.Loss`, default "squared"
        For real targets also "huber", "quantile", "poisson", "tweedie", "gamma"; for labels "squared_hinge", "logistic",
        and "multinomial", which fits all classes together; or an object, such as `losses.Quantile(level=0.9)`.
    n_components : int or None, default None
        D, the number of features to draw and search; those of `Linear` come on top. None: 10,000; with "auto" and alpha=None,
        1,000 for each penalty of the path; with "auto" and `start`, 1,000.
    batch_size : int or None, default None
        R, the number of features in a batch. None: 500 with "auto"; else 2,500, fewer where X has more than 3,300 columns.
    max_order : int or None, default None
        The most inputs that a feature of "auto" sees; linear functions are then sums of those of one input. With 1 or 2
        `plot.effects` shows the whole model. None: all inputs.
    exact : bool, default False
        False: the paper's Algorithm 1, one batch after another; a feature that was dropped, or not taken, does not come
        back. True: all D draws are searched again and again, until `info.dual_gap` certifies the optimum over them; not for
        "auto".
    validation : float, mask, indices, pairs or splitter, default 0.1
        Which rows alpha=None holds out in each round of searches. A share in (0, 1): so many of the rows, at random, the same
        share of each class, and of zero and other counts; at least ten rows where that is no more than half of them. Or the
        rows themselves, as a mask (n_samples,) or by their indices. Or pairs (rows to fit, rows to hold out) of masks or
        indices: a list, a generator, or a splitter of scikit-learn, such as `TimeSeriesSplit(5)`, whose `split(X, y, groups)`
        is called once. A round takes one pair, from the last to the first and then again, and leaves out rows that are in
        neither part. In the end the terms are fitted to all rows.
    groups : array of shape (n_samples,) or None, default None
        The group of each row: numbers, strings or other labels. Whole groups are held out, so many that they have about the
        share `validation` of the rows and of each class; pairs must not divide a group. And the mean of y over the rows of a
        category is, for a training row, one over other groups.
    n_models : int or None, default None
        Number of rounds of searches of alpha=None; the result is the mean of their models. Each round holds out rows that are
        drawn anew and, for "auto", has draws of its own. None: at least two rounds, or three for up to 5,000 rows; further
        rounds until the mean is over four models; one more where the best kind of model is uncertain (see Notes).
    max_terms : int or None, default None
        The most terms of alpha=None; a term that classes share counts once. None: 2,000, and a bump for each row where these
        predict better. Searches go on to so many terms, if that is more, but to no more than half as many as rows that they
        fit. Bumps are tried where there is room for 2,000 terms and a bump for each row.
    effort : float, default 1.0
        Time that alpha=None trades for accuracy, > 0. With 10, a search looks at 10^(1/2) times as many rows, where there are
        more than 16,000, a model has up to 10^(1/4) times 2,000 terms, and more models are in the mean: some 10 times the
        time. With 0.1 it looks at half of the rows, in one round and with fewer candidates: about a tenth of the time. The
        most work of a call grows with it; see Notes.
    time_limit : float or None, default None
        Seconds that the call may take, > 0; it takes at most a tenth or 0.3 s more. The model is the best so far, and
        `info.cut` says what there was no time for. Short limits look at fewer rows. The result depends on the speed of the
        machine, and on what else runs there: set `effort` where the same bits are needed. None: as long as it takes.
    fit_intercept : bool, default True
        Whether there is an intercept; it is not penalised.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative, relative to their mean. A weight of k counts as k copies of the row, which alpha=None holds out together.
        Rows of weight zero, and classes that have only such rows, are as if they were not there; the other rows are copied.
    class_weight : "balanced", mapping of label to weight, or None, default None
        Of classification losses: weights of the classes, >= 0, by which sample weights are multiplied. "balanced": the weights
        n / (k n_c) of k classes at which each counts as much as any other, where n_c of the n rows, counted by sample weight,
        are of class c. A class that a mapping does not name has the weight 1.
    offset : array of shape (n_samples,), or (n_samples, n_outputs) for several real targets; or None, default None
        What is added to f in the loss of each row, L(f(x_i) + o_i, y_i): the log of the exposures of counts, or what is known
        of f already. `predict` takes the offsets of other rows. None: 0. Not for more than two classes.
    lower, upper : float or None, default None
        The least and the largest prediction, of each output, whatever the row and its offset: what is known of every target,
        such as 0 and 100 of a percentage. The fit and its intercept are the same as without them; the model, and whatever it
        is saved or exported as, sets predictions beyond them to them. Those of "poisson", "gamma" and "tweedie" are above 0
        without them, and end within rounding of a limit, on its inner side. None: no limit. Not for classes.
    tol : float, default 1e-4
        Largest duality gap of a solution, relative to its objective. With alpha=None, where alpha itself is a choice, a gap of
        half the objective is near enough, and a tenth for linear functions of all inputs.
    max_iter : int or None, default None
        The most rounds of search and solution, over all batches. None: until the tolerance is reached or the work is spent:
        over all penalties of a path 1.2e11 multiplications, 4e7 for each row beyond 5,000, and five passes over the
        dictionary, counted from shapes (7 to 20 s with 5,000 rows on two cores); a quarter of that for "auto" with an alpha.
        More than ten outputs or classes share the work of ten, each with its own passes.
    start : SparseModel or None, default None
        A model from which the fit begins, for other rows or another penalty: of as many columns, of this loss, and of the same
        classes or as many outputs. With an alpha it begins at the terms and coefficients of the model, and new draws come on
        top, of "auto" 1,000 by default; columns stay encoded as in the model. With alpha=None nothing is drawn: the penalty of
        the model's terms is chosen by held-out rows, which should be rows that the model was not fitted to.
    rng : None, int or numpy.random.Generator, default None
        Seed of the draws.
    workers : int, default 1
        Threads; -1 for all cores. The result has the same bits for any number.
    callback : callable or None, default None
        Called with the `FitInfo` so far after each iteration, and a few times a second while one lasts; returning True ends the
        fit. One-vs-rest calls it for each class. Called once more at the end, where the last call did not say `progress` 1.
    verbose : bool or None, default None
        Whether to show a progress bar with the held-out loss and the time. None: after two seconds and to the end, in a
        terminal or notebook alone. True: at once, and the line stays; elsewhere by the log "sparserf", or on standard error.
        False: no.

    Returns
    -------
    SparseModel
        The model; with alpha=None the mean of the models of some searches, without the terms that it does not need. `support`
        holds the indices of its terms in the dictionary. For "auto" the draws of class k of m in search j (searches
        are numbered over rounds, kinds and encodings) have indices from (j m + k + 1) 2^40 on: with one target, from 2^40 in
        search 0 and from 2^41 in search 1. Smaller indices are encodings of columns, or from their number on linear functions
        of all of them, one a class. Terms of `start` keep their indices, and new draws have larger ones; those that another
        dictionary lacks have indices from its size on.
        `info.dual_gap` bounds the distance of the objective from its optimum: over all D features where `exact`, else over the
        last batch and the features that were kept before it. Where alpha was chosen, objective, gap and alpha are those of the
        models before their mean and pruning, over their own terms. For float32 X the gap is for features rounded to float32:
        over the same features in float64, 1e-6 of the objective more was found at alpha = 0.01, and 1e-2 at 1e-4.

    Raises
    ------
    ValueError, TypeError
        An argument is out of its range or of another kind: NaN or infinity in X, y, weights or offsets, shapes that do not
        match, a single class, alpha or tol not positive, lower not below upper, an unknown name, a broken CSR matrix; a sign
        that is none of 1, -1 and 0, a category without an order in `monotone`, an empty group; features or a start that break
        constraints; pairs with a row in both parts, without rows in one of them, or without rows of a class to fit; groups with
        missing labels.

    Warns
    -----
    ConvergenceWarning
        The fit ended above the tolerance: by max_iter, by the most work where max_iter is None, or because rounding allows no
        further descent; with an alpha also by time_limit. With alpha=None once, naming what the most work of a call has cut
        short.
    TimeLimitWarning
        With alpha=None, where not one search was finished within time_limit.

    See Also
    --------
    sparse_rf_path : Models for many penalties, each started from the last.
    prune : Fewer terms for nearly the same predictions.

    Notes
    -----
    With alpha=None, up to 16,000 rows go down a path of penalties for each kind of model, a constant, the inputs, linear
    functions of all inputs, and the dictionary that learns, while they predict held-out rows better; of more than 4,000 rows,
    first some 2,500 do, and only the kinds that may be best go on. Searches are in single precision. The first kind that none
    beats by more than the standard error is taken, its terms are fitted to all rows, and `prune` drops terms that cost at most
    .003 of the held-out loss together. Where that predicts the held-out rows better, more than two classes share their terms:
    each has a coefficient of every term, under the penalty alpha / 2 sum(w^2), and `info.alpha` is that alpha. The page "How
    the default works" of the documentation has all rules, and what bounds the work of a call.

    Time O(n D d) a pass over the dictionary, several passes; O(n a^2) for a terms in the working set. Memory, beyond X: O(n +
    R d + a^2), blocks of some megabytes a worker, values of features of 64 inputs and more up to twice the size of X (a class),
    up to 2^25 values of terms that classes share, and a copy of the rows that a search looks at, where these are not all. The
    paper's lambda_N is n alpha.

    References
    ----------
    I. E.-H. Yen, T.-W. Lin, S.-D. Lin, P. Ravikumar, I. S. Dhillon, Sparse Random Features Algorithm as Coordinate
    Descent in Hilbert Space, NIPS 2014. Algorithm 1; `alpha` is lambda in (8).

    Examples
    --------
    The paper's algorithm, on 2,000 draws for the Gaussian kernel, with a given penalty:

    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (2000, 2))
    >>> y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(2000)
    >>> model = srf.sparse_rf(X, y, features="gaussian", gamma=1.0, alpha=0.003, n_components=2000, rng=0)
    >>> model.info.converged, bool(np.mean((model.predict(X) - y) ** 2) < 0.1 * y.var())
    (True, True)

    No prediction leaves limits that are known of y, wherever the row is:

    >>> share = srf.sparse_rf(X, np.clip(y, 0, 1), features="gaussian", alpha=0.003, lower=0, upper=1, n_components=500, rng=0)
    >>> far = share.predict(5 * X)
    >>> bool(far.min() >= 0), bool(far.max() <= 1), share.ranges == {j: (X[:, j].min(), X[:, j].max()) for j in range(2)}
    (True, True, True)

    Started from a model of a larger penalty, the optimum is the same:

    >>> kernel = {"features": "gaussian", "gamma": 1.0, "scale": None, "n_components": 2000, "tol": 1e-6, "exact": True}
    >>> first, alone = (srf.sparse_rf(X, y, alpha=alpha, rng=0, **kernel) for alpha in (0.003, 0.002))
    >>> more = srf.sparse_rf(X, y, alpha=0.002, start=first, rng=0, **kernel)
    >>> bool(abs(more.info.objective[-1] / alone.info.objective[-1] - 1) < 1e-6)
    True
    """
    call = locals()
    choice, options = ChoiceOptions.of_call(call), SparseRFOptions.of_call(call)
    if alpha is not None:
        alpha = check_real("alpha", alpha, 0, strict=True)
    with limits_time(options.deadline):
        task = read_task(X, y, options, has_several_encodings=alpha is None and options.learns)
        if alpha is not None:
            return _fit_path(task, options, [alpha])[0]
        model = choose_by_held_out_rows(task, options, choice.with_splits(X, y, groups))
    return model if start is None else with_indices_of(start, model)


@shows_progress
def sparse_rf_path(
    X: MatrixLike, y: ArrayLike, *, alphas: ArrayLike | None = None, n_alphas: int = 20, alpha_min_ratio: float = 1e-3,
    features: Features = "auto", gamma: Gamma = None, scale: Units = "auto", missing: Missing = "learn",
    categorical: Categorical = None, monotone: Signs = None, convex: Signs = None, interactions: Interactions = None,
    loss: LossLike = "squared", n_components: int | None = None, batch_size: int | None = None, max_order: int | None = None,
    exact: bool = False, fit_intercept: bool = True, sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None, offset: ArrayLike | None = None, groups: ArrayLike | None = None,
    lower: float | None = None, upper: float | None = None, tol: float = 1e-4, max_iter: int | None = None, rng: Seed = None,
    workers: int = 1, callback: Callback = None, verbose: bool | None = None,
) -> list[SparseModel]:  # fmt: skip
    """Fit the models of `sparse_rf` for many penalties, largest first, each started from the one before, over one dictionary.

    Parameters
    ----------
    X, y, features, gamma, scale, missing, categorical, monotone, convex, interactions, loss, n_components, batch_size, exact,
    fit_intercept
        As in `sparse_rf`.
    sample_weight, class_weight, offset, groups, lower, upper, max_order, tol, rng, workers, callback, verbose
        As in `sparse_rf`.
    alphas : sequence of float or None, default None
        Penalties, > 0; used in descending order. None: n_alphas of them, in geometric steps from the smallest that
        makes all coefficients zero down to alpha_min_ratio times that.
    n_alphas : int, default 20
        Number of penalties where alphas is None, at least 1.
    alpha_min_ratio : float, default 1e-3
        The smallest penalty over the largest where alphas is None, in (0, 1].
    max_iter : int or None, default None
        As in `sparse_rf`, for each penalty.

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
    Time: a fit for each penalty, less what a near starting point saves. Memory as `sparse_rf`, and the models.
    Section 3.2 of the paper of `sparse_rf` recommends the path.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> models = srf.sparse_rf_path(X, np.sin(2 * X.ravel()), features="gaussian", n_alphas=5, n_components=500, rng=0)
    >>> [len(model.features) for model in models][0], len(models)
    (0, 5)
    """
    options = SparseRFOptions.of_call(locals())
    n_alphas = check_integer("n_alphas", n_alphas, 1)
    alpha_min_ratio = check_real("alpha_min_ratio", alpha_min_ratio, 0, strict=True)
    if alpha_min_ratio > 1:
        raise ValueError(f"alpha_min_ratio must be at most 1, got {alpha_min_ratio}")
    alphas = None if alphas is None else check_alphas(alphas)
    return _fit_path(read_task(X, y, options), options, alphas, n_alphas, alpha_min_ratio)


def read_task(X: MatrixLike, y: ArrayLike, options: SparseRFOptions, has_several_encodings: bool = False) -> Task:
    """Return what is to be fitted, with centered targets.

    has_several_encodings : whether features are to see several encodings of the columns (as they are, clipped, in ranks)
    """
    start, given = options.start, None if options.start is None else options.start.features
    task = Task.from_options(
        X, y, options, losses=JOINTLY, several_outputs="apart", has_several_encodings=has_several_encodings, start=given
    )
    if start is not None:
        check_start_of_task(start, task, options.max_order)
    if task.is_joint:
        for features in (task.features, given):
            check_any_sign(features, "classes that are fitted together")
    return task.centered(options.fit_intercept)


def _fit_path(
    task: Task, options: SparseRFOptions, alphas: Sequence[float] | np.ndarray | None, n_alphas: int = 1,
    alpha_min_ratio: float = 1.0,
) -> list[SparseModel]:  # fmt: skip
    """Return the models for these penalties, each started from the one before; None: for the default penalties."""
    start, deadline = options.start, options.deadline
    dictionary = options.dictionary(task, DRAWS_OF_START if start is not None and options.learns else N_COMPONENTS)
    descend = exact_descent if options.exact else algorithm_1
    models, ended_by_callback, effort = [], [], Effort(np.inf, deadline=deadline)
    with single_threaded_blas(), task.rows:
        fits = fits_of(task, dictionary, options, search=first_search(start, task))
        if alphas is None:
            largest = max(fit.largest_gradient() for fit in fits) or 1.0
            alphas = np.maximum(largest * np.geomspace(1.0, alpha_min_ratio, n_alphas), np.finfo(np.float64).tiny)
        with partial_fits_on_error(fits, task):
            if start is not None:
                begin_at(start, fits, task, dictionary)
            for alpha in parts(alphas, 1 / np.cbrt(alphas)):
                n_done = 0
                for k, fit in parts(list(enumerate(fits))):
                    fit.restart(alpha)
                    of_fit = effort.part(1 / (len(fits) - k))
                    if deadline < NEVER:
                        fit.spend(of_fit)
                    with ends_at(of_fit.deadline):
                        check_not_ended()
                        fit.begin_in_single()
                        descend(fit)
                        n_done += not (fit.stopped and of_fit.is_late)
                    if not of_fit.is_late:
                        fit.end_in_double()
                if n_done < len(fits):
                    effort.note_cut("fits", len(fits) - n_done, lacks_time=True)
                models.append(_model_in_time(fits, task, effort))
                ended_by_callback.append(any(fit.ended_by_callback for fit in fits))
    for model, ended in zip(models, ended_by_callback, strict=True):
        if not ended:
            warn_if_unconverged(model.info, options.tol)
    return models


def _model_in_time(fits: Sequence[BaseL1Fit], task: Task, effort: Effort) -> SparseModel:
    """Return the model of these fits, with its fallbacks where there is time for them."""
    model = model_of(fits, task, certified=not effort.is_late)
    model = with_ranges(effort.done_in_time("fallbacks", partial(with_fallbacks, model, task), model), task)
    cut = dict(effort.cuts_in_time)
    return replace(model, info=replace(model.info, cut=cut, converged=model.info.converged and "fits" not in cut))
