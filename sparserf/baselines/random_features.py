"""Ridge regression on random features: on all that are drawn, or on those that a score or a kernel alignment chooses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._base.checks import check_choice, check_flag, check_integer, check_real, check_rng, check_sizes
from .._base.door import door
from .._base.threads import single_threaded_blas
from ..algorithms.harfe_fit import HarfeOptions, L0Fit, Start
from ..algorithms.task import RAW_COLUMNS, Task, model_of, power_of_two
from ..features import make_dictionary
from ..model import warn_unconverged
from .alignment import aligned

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import Features, Gamma, MatrixLike, Seed, SelectingLossLike, Solution
    from ..features import FeatureSet
    from ..model import FitInfo, SparseModel

# Largest duality gap of a ridge problem, relative to its objective, that is no reason to warn.
TOLERANCE = 1e-3


@door
def rks(
    X: MatrixLike, y: ArrayLike, *, n_components: int = 1000, features: Features = "gaussian", gamma: Gamma = None,
    loss: SelectingLossLike = "squared", alpha: float = 1e-3, fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None, rng: Seed = None, workers: int = 1,
) -> SparseModel:  # fmt: skip
    r"""Random kitchen sinks: ridge regression on all features that are drawn.

    .. math:: \min_{\theta, b} \frac1n \sum_i s_i L(b + \frac1{\sqrt D} \sum_j \theta_j \phi_j(x_i), y_i)
              + \frac\alpha2 \|\theta\|^2

    with L as in `sparse_rf` and sample weights s of mean 1: with the squared loss and for many features D, `kernel_ridge` of
    the same alpha.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        The target; with a classification loss the labels, any two, or more for one-vs-rest over one dictionary.
    n_components : int, default 1000
        D, features to draw; those of `Linear` and `Taylor` come on top.
    features, gamma, loss, fit_intercept, sample_weight
        As in `sparse_rf`, which draws the same dictionary from the same seed.
    alpha : float, default 1e-3
        > 0.
    rng : None, int or numpy.random.Generator, default None
        Seed of the draws.
    workers : int, default 1
        Threads; -1 for all cores. The result is the same, bit for bit, for any number.

    Returns
    -------
    SparseModel
        `coef` are theta_j / sqrt(D), `support` indexes the dictionary. `info.dual_gap` bounds the distance to the optimum
        over all theta.

    Raises
    ------
    ValueError, TypeError
        As `sparse_rf`.

    Warns
    -----
    ConvergenceWarning
        A duality gap above a thousandth of the objective is left: alpha is too small for Newton's method or for the dtype.

    Notes
    -----
    Time O(n D (d + m) + m^3), m the lesser of n and D; for a loss other than squared as much each of Newton's steps.
    Memory, beyond X: O(n + D d + m^2), and blocks of some megabytes a worker.

    References
    ----------
    A. Rahimi, B. Recht, Weighted Sums of Random Kitchen Sinks, NIPS 2008, with a bound on the norm in place of the
    largest coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.baselines import rks
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> y = np.sin(2 * X.ravel())
    >>> bool(np.std(rks(X, y, n_components=200, gamma=1.0, rng=0).predict(X) - y) < 0.1)
    True
    """
    return _fit(X, y, None, None, features, n_components, gamma, loss, alpha, fit_intercept, sample_weight, rng, workers)


@door
def eerf(
    X: MatrixLike, y: ArrayLike, *, n_nonzero_coefs: int, n_components: int = 10_000, features: Features = "gaussian",
    gamma: Gamma = None, loss: SelectingLossLike = "squared", alpha: float = 1e-3, fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None, rng: Seed = None, workers: int = 1,
) -> SparseModel:  # fmt: skip
    r"""Energy-based random features: ridge regression on the features that correlate most with the target.

    The score of a feature is \|(1/n) sum_i s_i y_i phi_j(x_i)\|, with the squared loss and an intercept of the centred
    y, with any other of the labels -1 and 1. On the best, the problem of `rks`.

    Parameters
    ----------
    X, y, features, gamma, loss, alpha, fit_intercept, sample_weight, rng, workers
        As in `rks`.
    n_nonzero_coefs : int
        Terms of the model (a class), at most the number of features; D of the ridge problem.
    n_components : int, default 10_000
        Features to draw and score.

    Returns
    -------
    SparseModel
        As of `rks`; `info.dual_gap` is of the ridge problem on the features that were chosen.

    Raises
    ------
    ValueError, TypeError
        As `rks`; n_nonzero_coefs above the number of features.

    Warns
    -----
    ConvergenceWarning
        As `rks`.

    Notes
    -----
    Time O(n N d) for the scores of N features, then as `rks`. Memory, beyond X: O(n + N d + m^2).

    References
    ----------
    S. Shahrampour, A. Beirami, V. Tarokh, On Data-Dependent Random Features for Improved Generalization in Supervised
    Learning, AAAI 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.baselines import eerf
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> y = np.sin(2 * X.ravel())
    >>> model = eerf(X, y, n_nonzero_coefs=20, n_components=500, gamma=1.0, rng=0)
    >>> len(model.features), model.info.n_drawn
    (20, 500)
    """
    return _fit(
        X, y, n_nonzero_coefs, lambda score, s, _: _marked(np.argsort(-score, kind="stable")[:s], len(score)),
        features, n_components, gamma, loss, alpha, fit_intercept, sample_weight, rng, workers,
    )  # fmt: skip


@door
def lkrf(
    X: MatrixLike, y: ArrayLike, *, n_nonzero_coefs: int, n_components: int = 10_000, rho: float | None = None,
    selection: Literal["largest", "sample"] = "largest", features: Features = "gaussian", gamma: Gamma = None,
    loss: SelectingLossLike = "squared", alpha: float = 1e-3, fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None, rng: Seed = None, workers: int = 1,
) -> SparseModel:  # fmt: skip
    r"""Learning kernels with random features: ridge regression on features that a kernel alignment chooses.

    The alignment with the target reweights the N features that are drawn, within a chi-square ball:

    .. math:: \max_q \sum_j q_j \left(\sum_i s_i y_i \phi_j(x_i)\right)^2 \quad\text{subject to}\quad
              q \ge 0, \ \sum_j q_j = 1, \ \|q - 1/N\|^2 \le \rho / N

    with y as in `eerf`. On what q chooses, the problem of `rks`.

    Parameters
    ----------
    X, y, n_nonzero_coefs, n_components, features, gamma, loss, alpha, fit_intercept, sample_weight, rng, workers
        As in `eerf`.
    rho : float or None, default None
        Radius of the ball, > 0. None: 0.005 N, as in the authors' example.
    selection : {"largest", "sample"}, default "largest"
        "largest": the features of the n_nonzero_coefs largest q, as Shahrampour & Tarokh (2018) describe it. q never
        falls where the alignment rises, so that these are the features of `eerf`, whatever rho is. "sample": so many
        independent draws from q, one that comes k times counting as k features; or, where q has no more positive
        entries, all of those once: what the authors' code does.

    Returns
    -------
    SparseModel
        As of `eerf`.

    Raises
    ------
    ValueError, TypeError
        As `eerf`; rho not positive; another selection.

    Warns
    -----
    ConvergenceWarning
        As `rks`.

    Notes
    -----
    Time and memory as `eerf`, and O(N log N) for q.

    References
    ----------
    A. Sinha, J. Duchi, Learning Kernels with Random Features, NIPS 2016.
    S. Shahrampour, V. Tarokh, Learning Bounds for Greedy Approximation with Explicit Feature Maps, NIPS 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.baselines import lkrf
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> y = np.sin(2 * X.ravel())
    >>> model = lkrf(X, y, n_nonzero_coefs=20, n_components=500, gamma=1.0, selection="sample", rng=0)
    >>> len(model.features) <= 20
    True
    """
    rho = None if rho is None else check_real("rho", rho, 0, strict=True)
    sample = check_choice("selection", selection, ("largest", "sample")) == "sample"

    def choose(score, s, rng):
        v = (score / (score.max() or 1.0)) ** 2  # scaled: the same q
        q = aligned(v, 0.005 * len(v) if rho is None else rho)
        if not sample:
            return _marked(np.lexsort([-v, -q])[:s], len(v))
        if np.count_nonzero(q) <= s:
            return _marked(q > 0, len(v))
        return np.bincount(rng.choice(len(v), s, p=q / q.sum()), minlength=len(v))

    return _fit(
        X, y, n_nonzero_coefs, choose, features, n_components, gamma, loss, alpha, fit_intercept, sample_weight, rng, workers
    )


def _marked(index, n):
    copies = np.zeros(n, np.intp)
    copies[index] = 1
    return copies


def _fit(
    X, y, n_terms, choose, features, n_components, gamma, loss, alpha, fit_intercept, sample_weight, rng, workers
):  # fmt: skip
    task = Task.from_arguments(
        X, y, features=features, loss=loss, sample_weight=sample_weight, workers=workers, rng=None, columns=RAW_COLUMNS
    )
    rows, weight, targets = task.rows, task.weight, task.targets
    alpha, fit_intercept = check_real("alpha", alpha, 0, strict=True), check_flag("fit_intercept", fit_intercept)
    rng = check_rng(rng)
    dictionary = make_dictionary(
        task.features, rows, n_components=n_components, batch_size=None, gamma=gamma, rng=rng, weight=weight
    )
    everything = dictionary.batch(0)
    for k in range(1, dictionary.n_batches):
        everything = everything.concat(dictionary.batch(k))
    if choose is not None:
        (n_terms,) = check_sizes("n_nonzero_coefs", [check_integer("n_nonzero_coefs", n_terms, 1)], len(everything))
    with single_threaded_blas(), rows:
        copies = [np.ones(len(everything), np.intp)] * len(targets)
        if choose is not None:
            scores = _scores(rows, everything, targets, weight, fit_intercept and not task.loss.is_classifier)
            copies = [choose(score, n_terms, rng) for score in scores]
        fits = [RidgeFit(task, y, everything, m, fit_intercept, alpha) for m, y in zip(copies, targets, strict=True)]
        model = model_of(fits, task)
    if not model.info.converged:
        warn_unconverged(
            f"alpha={alpha:.3g}: Newton's method stopped with a duality gap of {model.info.dual_gap:.3g} at an objective of "
            f"{model.info.objective[-1]:.3g}; raise alpha"
        )
    return model


def _scores(rows, everything, targets, weight, centred):
    """|(1/n) sum_i s_i y_i phi_j(x_i)|, a row a target, for y in units in which nothing overflows."""
    y = np.array([target / power_of_two(target) for target in targets])
    if centred:
        y -= np.mean(weight * y)
    return np.abs(rows.correlate(everything, weight * y / rows.n_rows))


class RidgeFit:
    """The ridge problem on the features that have copies; theta of D features is r w with r = sqrt(D / copies)."""

    def __init__(
        self, task: Task, y: np.ndarray, everything: FeatureSet, copies: np.ndarray, fit_intercept: bool, alpha: float
    ):
        self._chosen, self._n_drawn = np.flatnonzero(copies), len(everything)
        r = np.sqrt(copies.sum() / copies[self._chosen])
        options = HarfeOptions(alpha=alpha, fit_intercept=fit_intercept, step_size=1.0, tol=0.0)
        self._fit = L0Fit(task, Start.from_target(task, y, options), everything.take(self._chosen), r, options)
        self._fit.minimise_on(np.arange(len(r)))

    def info(self, certified: bool = True) -> FitInfo:
        info = self._fit.info(certified)
        return replace(info, n_drawn=self._n_drawn, converged=info.dual_gap <= TOLERANCE * info.objective[-1])

    def solution(self) -> Solution:
        index, *rest = self._fit.solution()
        return self._chosen[index], *rest
