"""Sparse Random Features (Yen et al. 2014): coordinate descent in the Hilbert space of a random-feature kernel."""

import warnings
from dataclasses import replace

import numpy as np

from .._checks import (
    check_alphas,
    check_callable,
    check_flag,
    check_integer,
    check_real,
    check_rng,
)
from .._threads import single_threaded_blas
from ..model import ConvergenceWarning
from ._proposed import dictionary_of, fits_of, learns
from ._search import MOST_TERMS, choose, hold_out
from ._targets import model_of, read

# Features to draw by default; and of a dictionary that learns, for each penalty that is tried.
N_COMPONENTS, A_PENALTY = 10_000, 1_000
# The gap to which a model of a chosen penalty is solved at least, since the penalty itself is a choice; and in how many steps.
CHOSEN_TOL, CHOSEN_ROUNDS = 1e-2, 50


def algorithm_1(fit, dictionary):
    """Algorithm 1 of the paper: R = batch_size, T = n_batches, A = fit.A, w = fit.A.w."""
    for t in range(dictionary.n_batches):  # repeat
        h = fit.draw(t)  #                     1. sample h_1, ..., h_R from p(h)
        fit.minimise_over(h)  #                2. add them to A; 3. obtain w by solving (9)
        fit.A.prune()  #                       4. A <- A \ {h : w(h) = 0}
        if fit.record():  #                    5. t <- t + 1
            break  #                         until t = T


def exact_descent(fit, dictionary):
    """The optimum over all draws, made again when needed, not stored.

    A round a batch comes near to it for the price of one look at the dictionary; then each round looks at all of it.
    """
    for t in range(dictionary.n_batches):
        fit.improve_over(fit.draw(t))
        if fit.record():
            return
    everything = fit.draw(*range(dictionary.n_batches))
    done = False
    while not done:
        done = fit.improve_over(everything)
        done |= fit.record()


def sparse_rf(
    X, y, *, alpha=None, features="gaussian", gamma=None, loss="squared", n_components=None, batch_size=None,
    exact=False, validation=0.1, max_terms=None, fit_intercept=True, sample_weight=None, tol=1e-4, max_iter=None, rng=None,
    workers=1, callback=None,
):  # fmt: skip
    r"""Sparse Random Features: a kernel model in few terms, by l1 selection among random features.

    Minimises, over the coefficients w of the drawn features phi_1, ..., phi_D and the intercept b,

    .. math:: \frac1n \sum_i s_i L(b + \sum_h w_h \phi_h(x_i), y_i) + \alpha \sum_h |w_h|

    with L the squared loss (z - y)^2 / 2, the squared hinge max(0, 1 - y z)^2 or the logistic loss log(1 + exp(-y z)),
    and sample weights s scaled to mean 1. The feature matrix is never built: draws are searched in tiles, and only those
    that lower the objective enter the working set.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        float32 stays float32; all else becomes float64. Never modified, densified or copied whole. Scale its columns
        first: the kernels measure distances.
    y : array of shape (n_samples,)
        The target; with a classification loss the labels, any two, or more for one-vs-rest over one dictionary.
    alpha : float or None, default None
        Penalty, > 0. The paper's lambda, scikit-learn's Lasso alpha, 1/(n C) in liblinear. None: down a path of penalties,
        the one whose model predicts held-out rows best, until four in a row do no better; its terms are then fitted to all
        rows. See also `sparse_rf_path`.
    features : str, map, sequence of maps, or FeatureSet, default "gaussian"
        "auto": a dictionary that learns, of cosines of any bandwidth and order. Three quarters of each batch are variations
        of the features that are in the model (jittered, added, with an input's weight drawn anew, mixed, rescaled), each
        kind in the share that it succeeds in; all come with the phase that descends most. Scaling a column changes nothing.
        Of X with more than 1,024 columns it sees those of the largest variance. The kernel: "gaussian",
        "laplacian", "cauchy", "matern12", "matern32", "matern52", "perceptron"; or a map (`Fourier`, `Perceptron`,
        `RandomNeurons`, `Linear`); or several, as one dictionary with equal shares; or a fixed dictionary, of which
        n_components and rng then draw nothing.
    gamma : float, None or "knn", default None
        Inverse width of a kernel that is given by name; see `Fourier`.
    loss : {"squared", "squared_hinge", "logistic"}, default "squared"
    n_components : int or None, default None
        D, features to draw and search; those of `Linear` come on top. None: 10,000; with "auto" and alpha=None, 1,000 for
        each penalty of the path.
    batch_size : int or None, default None
        R, features in a batch. None: 2,500, less where X has more than 3,300 columns; 500 of "auto".
    exact : bool, default False
        False: the paper's Algorithm 1, one batch after another; a feature that was dropped, or not taken, does not come
        back. True: over all D draws again and again, until `info.dual_gap` certifies the optimum over all of them; not
        for "auto", whose draws depend on the fit.
    validation : float, default 0.1
        Share of the rows, of each class, that alpha=None holds out, in (0, 1).
    max_terms : int or None, default None
        Most terms that alpha=None may choose; its path ends at 2,000 in any case.
    fit_intercept : bool, default True
        The intercept is not penalised.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative; a weight of k counts as k copies of the row.
    tol : float, default 1e-4
        Largest duality gap of a solution, relative to its objective; at least 1e-2 where alpha is chosen.
    max_iter : int or None, default None
        Most rounds of search and solution, over all batches. None: until the tolerance is reached.
    rng : None, int or numpy.random.Generator, default None
        Seed of the draws.
    workers : int, default 1
        Threads; -1 for all cores. The result is the same, bit for bit, for any number.
    callback : callable or None, default None
        Called after each iteration with the `FitInfo` so far; returning True ends the fit. One-vs-rest: for each class.

    Returns
    -------
    SparseModel
        `support` indexes the dictionary, or counts the draws of "auto", those of class k from k 2^40 on; `info.dual_gap`
        bounds the distance to the optimum over all D features where exact, over the last batch and the features kept before
        it where not, and over the terms alone where alpha was chosen.

    Raises
    ------
    ValueError, TypeError
        An argument out of its range or of another kind: NaN or infinity in X, y or weights, shapes that do not match, a
        single class, alpha or tol not positive, an unknown name, a broken CSR matrix.

    Warns
    -----
    ConvergenceWarning
        Stopped above the tolerance, by max_iter or because floating point allows no further descent.

    See Also
    --------
    sparse_rf_path : Models for many penalties, each from the last.

    Notes
    -----
    Time O(n D d) a pass over the dictionary, several passes; O(n a^2) for a terms in the working set. Memory, beyond
    X: O(n + R d + a^2), and blocks of some megabytes a worker. The paper's lambda_N is n alpha.

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
    >>> model = srf.sparse_rf(X, y, alpha=0.003, gamma=1.0, n_components=2000, rng=0)
    >>> model.info.converged, len(model.features) < 200
    (True, True)
    >>> bool(np.mean((model.predict(X) - y) ** 2) < 0.1 * y.var())  # R^2 above 0.9
    True
    """
    how = {
        "features": features, "gamma": gamma, "loss": loss, "n_components": n_components, "batch_size": batch_size,
        "exact": exact, "fit_intercept": fit_intercept, "sample_weight": sample_weight, "tol": tol, "max_iter": max_iter,
        "rng": rng, "workers": workers, "callback": callback,
    }  # fmt: skip
    share = check_real("validation", validation, 0, strict=True)
    if share >= 1:
        raise ValueError(f"validation must be below 1, got {share}")
    if alpha is None:
        return _search(X, y, share, max_terms, **how)
    if max_terms is not None:
        raise ValueError(f"max_terms needs alpha=None, which chooses a penalty for it, got {max_terms!r} with alpha={alpha!r}")
    return sparse_rf_path(X, y, alphas=[check_real("alpha", alpha, 0, strict=True)], **how)[0]


def sparse_rf_path(
    X, y, *, alphas=None, n_alphas=20, alpha_min_ratio=1e-3, features="gaussian", gamma=None, loss="squared",
    n_components=None, batch_size=None, exact=False, fit_intercept=True, sample_weight=None, tol=1e-4, max_iter=None,
    rng=None, workers=1, callback=None,
):  # fmt: skip
    """Models of `sparse_rf` for many penalties, largest first, each started from the one before, over one dictionary.

    Parameters
    ----------
    X, y, features, gamma, loss, n_components, batch_size, exact, fit_intercept, sample_weight, tol, rng, workers, callback
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

    References
    ----------
    As `sparse_rf`; Section 3.2 of the paper recommends the path.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> models = srf.sparse_rf_path(X, np.sin(2 * X.ravel()), n_alphas=5, n_components=500, rng=0)
    >>> [len(model.features) for model in models][0], len(models)
    (0, 5)
    """
    n_alphas = check_integer("n_alphas", n_alphas, 1)
    alpha_min_ratio = check_real("alpha_min_ratio", alpha_min_ratio, 0, strict=True)
    if alpha_min_ratio > 1:
        raise ValueError(f"alpha_min_ratio must be at most 1, got {alpha_min_ratio}")
    alphas = None if alphas is None else check_alphas(alphas)
    rows, loss, weight, classes, targets = read(X, y, loss, sample_weight, workers)
    options = _options(fit_intercept, tol, max_iter, callback)
    exact = check_flag("exact", exact)
    n_components = N_COMPONENTS if n_components is None else n_components
    dictionary = dictionary_of(features, rows.X, exact, n_components, batch_size, gamma, rng)
    with single_threaded_blas(), rows:
        fits = fits_of(rows, dictionary, loss, targets, weight, options)
        if alphas is None:
            largest = max(fit.largest_gradient() for fit in fits) or 1.0
            alphas = np.maximum(largest * np.geomspace(1.0, alpha_min_ratio, n_alphas), np.finfo(np.float64).tiny)
        models = [_fit_all(fits, dictionary, alpha, exact, loss, classes) for alpha in alphas]
    for model, asked in models:
        if not asked:
            _warn(model.info, options["tol"])
    return [model for model, _ in models]


def _search(X, y, share, max_terms, features, gamma, loss, n_components, batch_size, exact, fit_intercept, sample_weight,
            tol, max_iter, rng, workers, callback):  # fmt: skip
    """`sparse_rf` with alpha=None."""
    max_terms = MOST_TERMS if max_terms is None else check_integer("max_terms", max_terms, 1)
    rows, loss, weight, classes, targets = read(X, y, loss, sample_weight, workers)
    options, exact, rng = _options(fit_intercept, tol, max_iter, callback), check_flag("exact", exact), check_rng(rng)
    groups = np.argmax([np.zeros(rows.n_rows), *(targets if classes is not None else ())], axis=0)  # a number a class
    fitted, held = hold_out(groups, weight, share, rng)
    if n_components is None:
        n_components = A_PENALTY if learns(features) else N_COMPONENTS
    dictionary = dictionary_of(features, rows.X, exact, n_components, batch_size, gamma, rng)
    descend = exact_descent if exact else algorithm_1
    with single_threaded_blas(), rows:
        fits = fits_of(rows, dictionary, loss, targets, fitted, options, settles=False)
        alpha, states, n_drawn = choose(fits, lambda fit: descend(fit, dictionary), held, max_terms)
        for fit, state in zip(fits, states, strict=True):
            fit.restart(alpha)
            fit.adopt(state, weight)
            fit.polish(max(options["tol"], CHOSEN_TOL), CHOSEN_ROUNDS)
            fit.record()
    model = model_of(fits, loss, classes)
    if not any(fit.ended_by_callback for fit in fits):
        _warn(model.info, options["tol"])
    return replace(model, info=replace(model.info, n_drawn=n_drawn))


def _options(fit_intercept, tol, max_iter, callback):
    return {
        "fit_intercept": check_flag("fit_intercept", fit_intercept),
        "tol": check_real("tol", tol, 0, strict=True),
        "max_iter": None if max_iter is None else check_integer("max_iter", max_iter, 1),
        "callback": check_callable("callback", callback),
    }


def _fit_all(fits, dictionary, alpha, exact, loss, classes):
    """(model of all targets, whether a callback ended its fit)."""
    for fit in fits:
        fit.restart(alpha)
        (exact_descent if exact else algorithm_1)(fit, dictionary)
    return model_of(fits, loss, classes), any(fit.ended_by_callback for fit in fits)


def _warn(info, tol):
    if info.converged:
        return
    share = info.dual_gap / info.objective[-1] if info.objective[-1] > 0 else np.inf
    warnings.warn(
        f"alpha={info.alpha:.3g}: stopped after {info.n_iter} iterations with a duality gap of {info.dual_gap:.3g}, "
        f"{share:.2g} of the objective, above tol={tol:.2g}; "
        f"raise max_iter (or tol, or alpha)",
        ConvergenceWarning,
        stacklevel=3,
    )
