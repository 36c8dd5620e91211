"""Ridge regression on random features: on all features drawn, or on the features that a score or a
kernel alignment chooses.

`rks`, `eerf` and `lkrf` draw the dictionary of `sparse_rf` of the same seed, choose features for
each target, perhaps with copies, and solve one ridge problem on these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._base.calls import checks_call
from .._base.checks import check_choice, check_integer, check_real, check_sizes, checked
from .._base.threads import single_threaded_blas
from ..algorithms.arguments import FitOptions
from ..algorithms.harfe_fit import HarfeOptions, L0Fit, SupportIterate
from ..algorithms.task import Task, model_of, power_of_two, with_ranges
from ..features import check_any_sign, make_dictionary
from ..model import gap_in_words, warn_unconverged
from ..solvers.ridge import RidgeProblem

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike, Seed
    from ..columns.targets import ClassWeight
    from ..features import FeatureSet
    from ..features.bandwidth import Gamma
    from ..features.dictionary import Features
    from ..features.feature_set import Solution
    from ..losses import SelectingLossLike
    from ..model import FitInfo, SparseModel


@checks_call
def rks(
    X: MatrixLike,
    y: ArrayLike,
    *,
    n_components: int = 1000,
    features: Features = "gaussian",
    gamma: Gamma = None,
    loss: SelectingLossLike = "squared",
    alpha: float = 1e-3,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    rng: Seed = None,
    workers: int = 1,
) -> SparseModel:
    r"""Fit random kitchen sinks: ridge regression on all features that are drawn.

    .. math:: \min_{\theta, b} \frac1n \sum_i s_i
              L(b + \frac1{\sqrt D} \sum_j \theta_j \phi_j(x_i), y_i)
              + \frac\alpha2 \|\theta\|^2

    with L as in `sparse_rf` and sample weights s of mean 1. With the squared loss and for many
    features D it nears `kernel_ridge` of the same alpha.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        The target; with a classification loss the labels, any two, or more for one-vs-rest over one
        dictionary.
    n_components : int, default 1000
        D, the number of features to draw; those of `Linear` and `Taylor` come on top.
    features, gamma, loss, fit_intercept, sample_weight, class_weight
        As in `sparse_rf`, which draws the same dictionary from the same seed.
    alpha : float, default 1e-3
        Penalty, > 0.
    rng : None, int or numpy.random.Generator, default None
        Seed of the draws.
    workers : int, default 1
        Threads; -1 for all cores. The result is the same, bit for bit, for any number.

    Returns
    -------
    SparseModel
        `coef` holds theta_j / sqrt(D), `support` the places of the features in the dictionary.
        `info.dual_gap` bounds the distance of the objective to its minimum over all theta.

    Raises
    ------
    ValueError, TypeError
        As `sparse_rf`.

    Warns
    -----
    ConvergenceWarning
        The duality gap is above a thousandth of the objective: alpha is too small for Newton's
        method or for the dtype.

    Notes
    -----
    Time O(n D (d + m) + m^3), m the lesser of n and D; for a loss other than squared as much each
    of Newton's steps. Memory, beyond X: O(n + D d + m^2), and blocks of some megabytes a worker.

    References
    ----------
    A. Rahimi, B. Recht, Weighted Sums of Random Kitchen Sinks, NIPS 2008; here the norm of theta is
    penalised where they bound its largest coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.baselines import rks
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> y = np.sin(2 * X.ravel())
    >>> bool(np.std(rks(X, y, n_components=200, gamma=1.0, rng=0).predict(X) - y) < 0.1)
    True
    """
    return _fit(X, y, RidgeOptions.of_call(locals()))


@checks_call
def eerf(
    X: MatrixLike,
    y: ArrayLike,
    *,
    n_nonzero_coefs: int,
    n_components: int = 10_000,
    features: Features = "gaussian",
    gamma: Gamma = None,
    loss: SelectingLossLike = "squared",
    alpha: float = 1e-3,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    rng: Seed = None,
    workers: int = 1,
) -> SparseModel:
    r"""Fit energy-based random features: ridge regression on the features that correlate most with
    the target.

    The score of a feature is \|(1/n) sum_i s_i y_i phi_j(x_i)\|. Here y is the real target, centred
    where there is an intercept, or the labels -1 and 1. The features of the largest scores enter
    the problem of `rks`.

    Parameters
    ----------
    X, y, features, gamma, loss, alpha, fit_intercept, sample_weight, class_weight, rng, workers
        As in `rks`.
    n_nonzero_coefs : int
        Terms of the model (of each class), at most the number of features; D of the ridge problem.
    n_components : int, default 10_000
        Number of features to draw and score.

    Returns
    -------
    SparseModel
        As that of `rks`; `info.dual_gap` is that of the ridge problem on the features that were
        chosen.

    Raises
    ------
    ValueError, TypeError
        As `rks`; n_nonzero_coefs is above the number of features.

    Warns
    -----
    ConvergenceWarning
        As `rks`.

    Notes
    -----
    Time O(n N d) for the scores of N features, then as `rks`. Memory, beyond X: O(n + N d + m^2).

    References
    ----------
    S. Shahrampour, A. Beirami, V. Tarokh, On Data-Dependent Random Features for Improved
    Generalization in Supervised Learning, AAAI 2018.

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
    options = RidgeOptions.of_call(locals())

    def choose(score, s):
        return _copies_of(np.argsort(-score, kind="stable")[:s], len(score))

    return _fit(X, y, options, choose)


@checks_call
def lkrf(
    X: MatrixLike,
    y: ArrayLike,
    *,
    n_nonzero_coefs: int,
    n_components: int = 10_000,
    rho: float | None = None,
    selection: Literal["largest", "sample"] = "largest",
    features: Features = "gaussian",
    gamma: Gamma = None,
    loss: SelectingLossLike = "squared",
    alpha: float = 1e-3,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    rng: Seed = None,
    workers: int = 1,
) -> SparseModel:
    r"""Learn a kernel with random features: ridge regression on features that a kernel alignment
    chooses.

    The alignment with the target reweights the N features that are drawn, within a chi-square ball:

    .. math:: \max_q \sum_j q_j \left(\sum_i s_i y_i \phi_j(x_i)\right)^2
              \quad\text{subject to}\quad q \ge 0, \ \sum_j q_j = 1, \ \|q - 1/N\|^2 \le \rho / N

    with y as in `eerf`. The features that q chooses enter the problem of `rks`.

    Parameters
    ----------
    X, y, n_nonzero_coefs, n_components, features, gamma, loss, alpha, fit_intercept, sample_weight,
    class_weight, rng, workers
        As in `eerf`.
    rho : float or None, default None
        Radius of the ball, > 0. None: 0.005 N, as in the authors' example.
    selection : {"largest", "sample"}, default "largest"
        "largest" takes the features of the n_nonzero_coefs largest q, as Shahrampour & Tarokh
        (2018) describe it. q never falls where the alignment rises, so that these are the features
        of `eerf`, whatever rho is. "sample" makes that many independent draws from q, a feature
        drawn k times counting as k features, or takes each positive entry of q once where there are
        no more: what the authors' code does.

    Returns
    -------
    SparseModel
        As that of `eerf`.

    Raises
    ------
    ValueError, TypeError
        As `eerf`; rho is not positive; selection is neither.

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
    S. Shahrampour, V. Tarokh, Learning Bounds for Greedy Approximation with Explicit Feature Maps,
    NIPS 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.baselines import lkrf
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> y = np.sin(2 * X.ravel())
    >>> model = lkrf(
    ...     X, y, n_nonzero_coefs=20, n_components=500, gamma=1.0, selection="sample", rng=0
    ... )
    >>> len(model.features) <= 20
    True
    """
    options = RidgeOptions.of_call(locals())
    rho = None if rho is None else check_real("rho", rho, 0, strict=True)
    is_sampled = check_choice("selection", selection, ("largest", "sample")) == "sample"

    def choose(score, s):
        v = (score / (score.max() or 1.0)) ** 2  # scaled: the same q
        q = aligned(v, 0.005 * len(v) if rho is None else rho)
        if not is_sampled:
            return _copies_of(np.lexsort([-v, -q])[:s], len(v))
        if np.count_nonzero(q) <= s:
            return _copies_of(q > 0, len(v))
        return np.bincount(options.rng.choice(len(v), s, p=q / q.sum()), minlength=len(v))

    return _fit(X, y, options, choose)


def _copies_of(index, n):
    """Return the number of copies of n features: one of those in index, none of the others."""
    copies = np.zeros(n, np.intp)
    copies[index] = 1
    return copies


def aligned(v: np.ndarray, rho: float) -> np.ndarray:
    """Return the q in the simplex with ||q - 1/N||^2 <= rho / N that maximises q'v, for v in [0, 1]
    (Sinha & Duchi 2016).

    For a multiplier l of the ball q is the projection of 1/N + v/l onto the simplex; its distance
    to 1/N falls with l, which is found by bisection.
    """
    uniform, squared_radius = 1 / len(v), rho / len(v)

    def inside(multiplier):
        return (
            np.sum((_nearest_in_simplex(uniform + v / multiplier) - uniform) ** 2) <= squared_radius
        )

    # inside: projections bring points together
    high = max(np.sqrt(np.sum((v - v.mean()) ** 2) / squared_radius), 1e-12)
    low = high
    # below that, q is on the largest v alone, to the precision of floats
    while low > 1e-12 and inside(low):
        high, low = low, low / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if inside(middle) else (middle, high)
    return _nearest_in_simplex(uniform + v / high)


def _nearest_in_simplex(x):
    """Return the point nearest to x with entries >= 0 that sum to 1: max(0, x - shift)."""
    x = x - x.max()  # the same projection, exact where it matters
    down = np.sort(x)[::-1]
    shift = (np.cumsum(down) - 1) / np.arange(1, len(x) + 1)
    return np.maximum(x - shift[np.flatnonzero(down > shift)[-1]], 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class RidgeOptions(FitOptions):
    """The arguments of `rks`, `eerf` or `lkrf`, checked except where a check needs X.

    n_nonzero_coefs is None where all features that are drawn are taken.
    """

    n_components: int
    gamma: Gamma
    alpha: float = checked(check_real, 0, strict=True)
    n_nonzero_coefs: int | None = checked(check_integer, 1, default=None)


def _fit(X, y, options, choose=None):
    """Return the model of the ridge problem on the features of which choose(score, n_nonzero_coefs)
    makes copies.

    choose returns how many copies of each feature there are, 0 of most; None takes one of each.
    """
    task = Task.from_options(X, y, options)
    check_any_sign(task.features, "ridge regression on all features")
    rows, weight, targets = task.rows, task.weight, task.targets
    dictionary = make_dictionary(
        task.features,
        rows,
        n_components=options.n_components,
        batch_size=None,
        gamma=options.gamma,
        rng=options.rng,
        weight=weight,
    )
    everything = dictionary.batch(0)
    for k in range(1, dictionary.n_batches):
        everything = everything.concat(dictionary.batch(k))
    if choose is not None:
        (n_terms,) = check_sizes("n_nonzero_coefs", [options.n_nonzero_coefs], len(everything))
    with single_threaded_blas(), rows:
        copies = [np.ones(len(everything), np.intp)] * len(targets)
        if choose is not None:
            is_centred = options.fit_intercept and not task.loss.is_classifier
            copies = [
                choose(score, n_terms)
                for score in _scores(rows, everything, targets, weight, is_centred)
            ]
        how = {"fit_intercept": options.fit_intercept, "alpha": options.alpha}
        fits = [
            RidgeFit(task, y, everything, m, **how) for m, y in zip(copies, targets, strict=True)
        ]
        model = with_ranges(model_of(fits, task), task)
    if not model.info.converged:
        warn_unconverged(
            f"alpha={options.alpha:.3g}: Newton's method stopped{gap_in_words(model.info)}; raise "
            "alpha"
        )
    return model


def _scores(rows, everything, targets, weight, is_centred):
    """Return |(1/n) sum_i s_i y_i phi_j(x_i)|, a row a target, for y in units in which nothing
    overflows."""
    y = np.array([target / power_of_two(target) for target in targets])
    if is_centred:
        y -= np.mean(weight * y)
    return np.abs(rows.correlate(everything, weight * y / rows.n_rows))


class RidgeFit:
    """The ridge problem of one target on the features that have copies.

    theta, of D copies in all, is r w with r = sqrt(D / copies).

    Parameters
    ----------
    task : Task
    y : ndarray of shape (n_rows,)
        One of its targets.
    everything : FeatureSet
        All features that were drawn.
    copies : ndarray of shape (len(everything),)
    fit_intercept : bool
    alpha : float
    """

    def __init__(
        self,
        task: Task,
        y: np.ndarray,
        everything: FeatureSet,
        copies: np.ndarray,
        fit_intercept: bool,
        alpha: float,
    ):
        self._chosen, self._n_drawn = np.flatnonzero(copies), len(everything)
        r = np.sqrt(copies.sum() / copies[self._chosen])
        options = HarfeOptions(alpha=alpha, fit_intercept=fit_intercept, step_size=1.0, tol=0.0)
        problem = task.problem(RidgeProblem, y, alpha, fit_intercept)
        constant = SupportIterate.best_constant(problem)
        self._fit = L0Fit(task, y, problem, constant, everything.take(self._chosen), r, options)
        self._fit.minimise_on(np.arange(len(r)))

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the ridge problem; it has converged where its gap is no reason to
        warn."""
        # Largest duality gap of a ridge problem, relative to its objective, that is no reason to
        # warn.
        tolerance = 1e-3

        info = self._fit.info(certified)
        gap = np.inf if info.dual_gap is None else info.dual_gap
        return replace(info, n_drawn=self._n_drawn, converged=gap <= tolerance * info.objective[-1])

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms; index counts all features that were
        drawn."""
        index, *rest = self._fit.solution()
        return self._chosen[index], *rest
