"""Sparse Random Features (Yen et al. 2014): coordinate descent in the Hilbert space of a random-feature kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._base.checks import check_alphas, check_integer, check_real
from ..._base.progress import shows_progress
from .descent import algorithm_1, exact_descent, models_on_path
from .search import chosen
from .sources import Setting

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..._base.types import MatrixLike, Seed
    from ...columns.stage import Missing, Units
    from ...columns.table import Categorical
    from ...features.bandwidth import Gamma
    from ...features.dictionary import Features
    from ...losses import LossLike
    from ...model import Callback, SparseModel


@shows_progress
def sparse_rf(
    X: MatrixLike, y: ArrayLike, *, alpha: float | None = None, features: Features = "auto", gamma: Gamma = None,
    scale: Units = "auto", missing: Missing = "learn", categorical: Categorical = None, loss: LossLike = "squared",
    n_components: int | None = None, batch_size: int | None = None, max_order: int | None = None, exact: bool = False,
    validation: float = 0.1, n_models: int | None = None, max_terms: int | None = None, effort: float = 1.0,
    fit_intercept: bool = True, sample_weight: ArrayLike | None = None, tol: float = 1e-4, max_iter: int | None = None,
    rng: Seed = None, workers: int = 1, callback: Callback = None, verbose: bool | None = None,
) -> SparseModel:  # fmt: skip
    r"""Sparse Random Features: a kernel model in few terms, by l1 selection among random features.

    Minimises, over the coefficients w of the drawn features phi_1, ..., phi_D and the intercept b,

    .. math:: \frac1n \sum_i s_i L(b + \sum_h w_h \phi_h(x_i), y_i) + \alpha \sum_h |w_h|

    with L the squared loss (z - y)^2 / 2, or another of `sparserf.losses`, and sample weights s scaled to mean 1. The feature
    matrix is never built: draws are searched in tiles, and only those that lower the objective enter the working set.

    Parameters
    ----------
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        float32 stays float32; all else becomes float64. Never modified or densified; copied, in other units, where it holds
        at most 2**23 numbers. Of a frame the names of columns are kept, and strings and categoricals are categories.
    y : array of shape (n_samples,), or (n_samples, n_outputs) for several real targets
        With a classification loss the labels, any two, or more: for one-vs-rest, or "multinomial". All share one dictionary and
        alpha. With alpha=None each output counts in units of its standard deviation, also in `info`.
    alpha : float or None, default None
        Penalty, > 0. The paper's lambda, scikit-learn's Lasso alpha, 1/(n C) in liblinear. None: chosen on held-out rows; see
        Notes, and `sparse_rf_path`.
    features : str, map, sequence of maps, or FeatureSet, default "auto"
        "auto": a dictionary that learns, of cosines of any bandwidth and order. Three quarters of each batch are variations of
        the features that are in the model (jittered, added, with an input's weight drawn anew, mixed, rescaled), each kind in
        the share that it succeeds in; all come with the phase that descends most. With alpha=None also one of steps, signs of
        sums of few inputs, where X is dense. Of more than 1,024 inputs it sees those of the largest variance. Or the paper's:
        the kernel, "gaussian", "laplacian", "cauchy", "matern12", "matern32", "matern52", "perceptron"; or a map (`Fourier`,
        `Perceptron`, `RandomNeurons`, `Linear`); or several, with equal shares; or a FeatureSet, of which nothing is drawn.
    gamma : float, None or "knn", default None
        Inverse width of a kernel that is given by name, for columns in units of `scale`; see `Fourier`.
    scale : {"auto", "robust"} or None, default "auto"
        Units of the columns. "robust": each less its mean, over its standard deviation, numbers far from its median counted as
        less far: neither shifts and sizes of columns nor a few wild cells decide. They are kept in the model, which takes X as
        it is. None: columns as they are. "auto": "robust" for features that are named, or left out; None for maps. Those of
        CSR X, but for alpha=None, and what a FeatureSet was drawn for, are always as they are.
    missing : {"learn", "raise"}, default "learn"
        NaN in dense X. "learn": a missing number is at the centre of its column, beside an input that says that it is missing,
        where a sample of the training rows has such; "raise": a ValueError. What is missing in new rows alone is where the
        model lost least on training rows without that column's cells, by default at the centre. CSR X must have none.
    categorical : sequence of names, of indices, or a mask; or None, default None
        Columns that are categories, beside those of strings and categoricals of a data frame. Frequent levels are inputs that
        are zero or one; where some are rarer than a hundredth, or beyond 24, the mean of y over the rows of the level is an
        input, of training rows over those of other folds. A level that is not known is as what is missing in new
        rows alone, which has, in the mean, about the mean of all rows. X must be in host memory.
    loss : str or `sparserf.losses.Loss`, default "squared"
        Also "huber", "quantile", "poisson", "gamma"; of labels "squared_hinge", "logistic", and "multinomial", which fits all
        classes together; or an object, such as `losses.Quantile(level=0.9)`.
    n_components : int or None, default None
        D, features to draw and search; those of `Linear` come on top. None: 10,000; with "auto" and alpha=None, 1,000 for
        each penalty of the path.
    batch_size : int or None, default None
        R, features in a batch. None: 2,500, less where X has more than 3,300 columns; 500 of "auto".
    max_order : int or None, default None
        Most inputs, views of columns, that a feature of "auto" sees; linear functions are sums of those of one. With 1 or 2
        `plot.effects` shows the model whole. None: all.
    exact : bool, default False
        False: the paper's Algorithm 1, one batch after another; a feature that was dropped, or not taken, does not come
        back. True: over all D draws again and again, until `info.dual_gap` certifies the optimum over them; not for "auto".
    validation : float, default 0.1
        Share of the rows of a search, of each class, and of counts of 0 and others, that alpha=None holds out, in (0, 1); at
        least ten rows, where that is no more than half of them.
    n_models : int or None, default None
        Rounds of searches of alpha=None, each with rows of its own held out and, of "auto", draws of its own; the result is the
        mean of their models. None: two, or four for up to 5,000 rows; or until there are four or six models, where fewer of a
        search predict best (see Notes); and one more where it is open which kind of model is the best.
    max_terms : int or None, default None
        Most terms of alpha=None, each class's counted once where they share it. None: 2,000.
    effort : float, default 1.0
        Time for accuracy, > 0, of alpha=None. Of 10 a search looks at 10^(1/2) times as many rows, where there are more than
        16,000, a model has up to 10^(1/4) times 2,000 terms, and more models are in the mean: it takes some 10 times as long.
        The most work of a call grows with it; see Notes.
    fit_intercept : bool, default True
        The intercept is not penalised.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative, relative to their mean; a weight of k counts as k copies of the row, which alpha=None holds out together.
        Rows of weight zero, and classes of such rows alone, are as if they were not there; the other rows are then copied.
    tol : float, default 1e-4
        Largest duality gap of a solution, relative to its objective; at least 0.5 where alpha is chosen.
    max_iter : int or None, default None
        Most rounds of search and solution, over all batches. None: until the tolerance is reached, or the work of the fit,
        over all penalties of a path, has come to 1.2e11 multiplications, 4e7 more for each row beyond 5,000, and five passes
        over the dictionary: 7 to 20 s with 5,000 rows on two cores; a quarter for "auto" with an alpha. More than ten outputs
        or classes share what ten may take, but for the passes. Counted from shapes.
    rng : None, int or numpy.random.Generator, default None
        Seed of the draws.
    workers : int, default 1
        Threads; -1 for all cores; of any number the same bits.
    callback : callable or None, default None
        Called with the `FitInfo` so far after each iteration, and some times a second while one lasts; returning True ends the
        fit. One-vs-rest: for each class. Where the last call did not say `progress` 1, once more at the end.
    verbose : bool or None, default None
        Show the share that is done, held-out loss, time. None: from the third second to the end, where someone looks, in a
        terminal or notebook. True: at once, and the line stays; elsewhere by log "sparserf", else on standard error. False: no.

    Returns
    -------
    SparseModel
        `support` indexes the dictionary. Of "auto" it counts the draws, those of class k of m in search j, of each kind and
        view one, from (j m + k + 1) 2^40 on; where the model is linear, below are views of columns, or from their number on
        functions of all of them, one a class. `info.dual_gap` bounds the distance to the optimum over all D features where
        exact, and over the last batch and the features kept before it where not. Where alpha was chosen, objective, gap and
        alpha are of the models before their mean and pruning, over their own terms. Of float32 X the gap is of features
        rounded to float32: over the same in float64 1e-6 of the objective more was found at alpha = 0.01, 1e-2 at 1e-4.

    Raises
    ------
    ValueError, TypeError
        An argument out of its range or of another kind: NaN or infinity in X, y or weights, shapes that do not match, a
        single class, alpha or tol not positive, an unknown name, a broken CSR matrix.

    Warns
    -----
    ConvergenceWarning
        Above the tolerance at the end: by max_iter, the most work where it is None, or since rounding allows no descent. With
        alpha=None once, of what the most work of a call has cut.

    See Also
    --------
    sparse_rf_path : Models for many penalties, each from the last.
    prune : Fewer terms for nearly the same predictions.

    Notes
    -----
    alpha=None goes down a path of penalties until two in a row predict the held-out rows no better, or one worse by two
    standard errors, or there are 2,000 terms, or half as many as rows. A search looks at 16,000 rows, where there are more. Of
    "auto" there are paths of three kinds: over the inputs themselves; over the linear functions of all of them, u'x with
    ``|u| = 1``, which is ridge regression and ends in one term; and over the dictionary that learns, of cosines of the
    columns as they are, clipped, and in ranks, and of steps. Other features have one path, of a round of coordinate descent a
    batch, or, where exact, to the optimum. All searches take the first kind that none beats by more than the standard error
    of the difference, and of its dictionaries those whose mean predicts best; simplest is a constant, which must be beaten by
    1 + 10 / m errors, for m rows (of classes, those not of the most frequent; of counts, as many equal events as vary as
    much). With the logistic, the multinomial and the Poisson loss, one row more than there are counts as held out, of any
    class, or with the mean of y: where all others are predicted right, probabilities and rates stay as far from 0 and 1 as so
    many rows can tell. The terms of the best models are then fitted to all rows, with alpha times the root of the share of
    them that it was chosen for, and the mean is taken. By `prune` terms are dropped that cost at most .003 of the held-out
    loss together, or of what it is below that of no term, or are not among the 3,000 largest; and the intercept is fitted
    again.

    All searches of a call, of all outputs, classes and rounds, take at most 1e11 multiplications, 2.5e7 for each row that a
    search looks at, and 250 passes over the draws of a penalty, times effort; the fits to all rows a fifth of that, and 4e7
    for each row beyond 5,000. Counted from shapes; max_iter lifts that. A path, a round or a fit that has spent its share ends
    with the best so far. Of more than six outputs three, the largest classes, are searched first; where all kinds for all
    outputs would take too much, the kind that is best for these is searched for all. More than 50 share the draws of so many.

    Time O(n D d) a pass over the dictionary, several passes; O(n a^2) for a terms in the working set. Memory, beyond X: O(n +
    R d + a^2), blocks of some megabytes a worker, of features of 64 inputs and more up to twice that of X (a class), and a
    copy of the rows that a search looks at, where these are not all. The paper's lambda_N is n alpha.

    References
    ----------
    I. E.-H. Yen, T.-W. Lin, S.-D. Lin, P. Ravikumar, I. S. Dhillon, Sparse Random Features Algorithm as Coordinate
    Descent in Hilbert Space, NIPS 2014. Algorithm 1; `alpha` is lambda in (8).

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (2000, 2))
    >>> y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(2000)
    >>> model = srf.sparse_rf(X, y, rng=0)  # all is chosen
    >>> bool(np.mean((model.predict(X) - y) ** 2) < 0.03 * y.var()), len(model.features) < 200  # R^2 above 0.97
    (True, True)
    >>> model = srf.sparse_rf(X, y, features="gaussian", gamma=1.0, alpha=0.003, n_components=2000, rng=0)  # the paper's
    >>> model.info.converged, bool(np.mean((model.predict(X) - y) ** 2) < 0.1 * y.var())
    (True, True)
    """
    how = {
        "features": features, "gamma": gamma, "scale": scale, "missing": missing, "categorical": categorical, "loss": loss,
        "n_components": n_components, "batch_size": batch_size, "exact": exact, "fit_intercept": fit_intercept,
        "sample_weight": sample_weight, "tol": tol, "max_iter": max_iter, "rng": rng, "workers": workers, "callback": callback,
    }  # fmt: skip
    share = check_real("validation", validation, 0, strict=True)
    if share >= 1:
        raise ValueError(f"validation must be below 1, got {share}")
    if alpha is None:
        setting = Setting.of(X, y, **how, is_curved=True, max_order=max_order)
        return chosen(setting, exact_descent if setting.exact else algorithm_1, share, n_models, max_terms, effort)
    for name, value, default in (("max_terms", max_terms, None), ("n_models", n_models, None), ("effort", effort, 1.0)):
        if value != default:
            raise ValueError(f"{name} needs alpha=None, got {value!r} with alpha={alpha!r}")
    alphas = [check_real("alpha", alpha, 0, strict=True)]
    return models_on_path(Setting.of(X, y, **how, max_order=max_order), lambda largest: alphas)[0]


@shows_progress
def sparse_rf_path(
    X: MatrixLike, y: ArrayLike, *, alphas: ArrayLike | None = None, n_alphas: int = 20, alpha_min_ratio: float = 1e-3,
    features: Features = "auto", gamma: Gamma = None, scale: Units = "auto", missing: Missing = "learn",
    categorical: Categorical = None, loss: LossLike = "squared", n_components: int | None = None, batch_size: int | None = None,
    max_order: int | None = None, exact: bool = False, fit_intercept: bool = True, sample_weight: ArrayLike | None = None,
    tol: float = 1e-4, max_iter: int | None = None, rng: Seed = None, workers: int = 1, callback: Callback = None,
    verbose: bool | None = None,
) -> list[SparseModel]:  # fmt: skip
    """Models of `sparse_rf` for many penalties, largest first, each started from the one before, over one dictionary.

    Parameters
    ----------
    X, y, features, gamma, scale, missing, categorical, loss, n_components, batch_size, exact, fit_intercept, sample_weight
        As in `sparse_rf`.
    max_order, tol, rng, workers, callback, verbose
        As in `sparse_rf`.
    alphas : sequence of float or None, default None
        Penalties, > 0; used in descending order. None: n_alphas of them, in geometric steps from the smallest that
        leaves no term in the model down to alpha_min_ratio times that.
    n_alphas : int, default 20
        At least 1.
    alpha_min_ratio : float, default 1e-3
        In (0, 1].
    max_iter : int or None, default None
        As in `sparse_rf`, for each penalty.

    Returns
    -------
    list of SparseModel
        One a penalty, `info.alpha` descending.

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
    The time of a fit for each penalty, less what a near starting point saves. Memory as `sparse_rf`, and the models.
    Section 3.2 of the paper of `sparse_rf` recommends the path.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> models = srf.sparse_rf_path(X, np.sin(2 * X.ravel()), features="gaussian", n_alphas=5, n_components=500, rng=0)
    >>> [len(model.features) for model in models][0], len(models)
    (0, 5)
    """
    n_alphas = check_integer("n_alphas", n_alphas, 1)
    alpha_min_ratio = check_real("alpha_min_ratio", alpha_min_ratio, 0, strict=True)
    if alpha_min_ratio > 1:
        raise ValueError(f"alpha_min_ratio must be at most 1, got {alpha_min_ratio}")
    alphas = None if alphas is None else check_alphas(alphas)
    setting = Setting.of(
        X, y, features=features, gamma=gamma, scale=scale, missing=missing, categorical=categorical, loss=loss, exact=exact,
        n_components=n_components, batch_size=batch_size, max_order=max_order, fit_intercept=fit_intercept,
        sample_weight=sample_weight, tol=tol, max_iter=max_iter, rng=rng, workers=workers, callback=callback,
    )  # fmt: skip

    def from_largest(largest):
        return np.maximum(largest() * np.geomspace(1.0, alpha_min_ratio, n_alphas), np.finfo(np.float64).tiny)

    return models_on_path(setting, from_largest if alphas is None else lambda largest: alphas)
