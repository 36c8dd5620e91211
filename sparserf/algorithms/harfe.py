"""Hard-Ridge Random Feature Expansion (HARFE): hard thresholding pursuit with ridge regression on
random features.

With A the m x N matrix of N random features phi_j(x_k) on m rows, the paper looks for the c that
minimises, (6) there,

    ||A c - y||^2 + m lambda ||c||^2    subject to at most s entries of c that are not zero.

Algorithm 1 of the paper repeats two lines: a gradient step, c~ = (1 - m mu lambda) c + mu A'(y - A
c); and ridge regression on the support S of the s largest entries of c~. (The paper prints (8) with
y in place of [y; 0], and the loop condition with "or" in place of "and".) Here the objective is
divided by 2 m, so that lambda is `alpha`; the columns of A are phi_j / r_j with r_j the root mean
square of feature j, and c_j = r_j w_j for the coefficients w of the features themselves; the loss
may be another; an intercept is not penalised; and by default the step is halved until the objective
falls, since the paper's fixed step may raise it. The path over s is that of graded hard
thresholding pursuit.

E. Saha, H. Schaeffer, G. Tran, HARFE: Hard-Ridge Random Feature Expansion, 2022.
S. Foucart, Hard Thresholding Pursuit: An Algorithm for Compressive Sensing, SIAM Journal on
Numerical Analysis 49, 2011.
J.-L. Bouchot, S. Foucart, P. Hitczenko, Hard thresholding pursuit algorithms: number of iterations,
2016.

This file has the functions that users call, the loop of Algorithm 1 and the drawing of A. One turn
of the loop on one target is in `harfe_fit`; on classes that are fitted together, in
`harfe_multinomial`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from .._base.checks import check_integer, check_sizes
from .._base.progress import Ended, parts, shows_progress
from .._base.threads import single_threaded_blas
from ..features import Linear, RandomNeurons, check_any_sign, draw_all, sines_of_few
from ..model import gap_in_words
from .auto_features import read_task_and_features
from .chosen_on_folds import FoldOptions, SizePath, fit_as_chosen
from .harfe_fit import HarfeOptions, L0Fit, begin_fits
from .path import begun_in_time, models_along
from .rounds import fit_in_rounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeAlias

    from numpy.typing import ArrayLike

    from .._base.splits import Splits
    from .._base.types import MatrixLike, Seed
    from ..columns.constraints import Interactions, Signs
    from ..columns.encoder import Missing, Units
    from ..columns.table import Categorical
    from ..columns.targets import ClassWeight
    from ..features import FeatureSet
    from ..features.bandwidth import Gamma
    from ..features.dictionary import Features
    from ..features.neurons import Activation
    from ..losses import LossLike
    from ..model import Callback, SparseModel
    from .harfe_multinomial import MultinomialL0Fit
    from .task import Task

    # The fit of one target, or of several classes together.
    PursuitFit: TypeAlias = L0Fit | MultinomialL0Fit

# The sines that are drawn by default.
N_DEFAULT = 4_000
# On a fold terms are exchanged by so many iterations for each number of terms.
EXCHANGES = 2


def algorithm_1(fit: PursuitFit, s: int, max_iter: int) -> None:
    """Run Algorithm 1 of the HARFE paper from the current iterate of the fit: A = Phi / r, c = r w,
    mu = step_size."""
    for _ in iterations(fit, max_iter):  # while n < tot_iter and residual > eps
        # c~ = (1 - m mu lambda) c + mu A'(y - A c);  S = the s largest |c~|;  ridge regression on S
        fit.step(s)
        if fit.record():
            break


def iterations(fit: PursuitFit, max_iter: int) -> Iterator[int]:
    """Return the iterations that a fit may take, with their weights for the progress bar: each is
    expected to be followed by another with probability 0.6."""
    n_iter = 0 if fit.progress.ended_by_callback else max_iter
    return parts(range(n_iter), np.maximum(0.6 ** np.arange(n_iter), 1e-9))


def grow(fit: PursuitFit, s: int) -> None:
    """Start greedily: let the support grow to s, by a tenth of the growth in each step, and
    exchange terms on the way. Algorithm 1 adds the last tenth.

    For the progress bar, Algorithm 1 takes the time of two such steps.
    """
    size, n_steps = len(fit.iterate.index), 10
    for k in parts(range(1, n_steps), rest=2.0):
        fit.step(size + (s - size) * k // n_steps)
        fit.record()
        if fit.progress.ended_by_callback:
            break


@shows_progress
def harfe(
    X: MatrixLike,
    y: ArrayLike,
    *,
    n_components: int | None = None,
    n_nonzero_coefs: int | None = None,
    order: int | None = None,
    alpha: float | None = None,
    activation: Activation | None = None,
    features: Features | None = None,
    gamma: Gamma = None,
    scale: Units = "robust",
    missing: Missing = "learn",
    categorical: Categorical = None,
    monotone: Signs = None,
    convex: Signs = None,
    interactions: Interactions = None,
    loss: LossLike = "squared",
    selection: Literal["magnitude", "positive"] = "magnitude",
    normalize: bool = True,
    step_size: float = 0.1,
    backtracking: bool = True,
    start: Literal["greedy", "zero"] = "greedy",
    max_iter: int = 50,
    tol: float = 5e-3,
    time_limit: float | None = None,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    offset: ArrayLike | None = None,
    validation: float | Splits | None = None,
    groups: ArrayLike | None = None,
    lower: float | None = None,
    upper: float | None = None,
    rng: Seed = None,
    workers: int = 1,
    callback: Callback = None,
    verbose: bool | None = None,
) -> SparseModel:
    r"""Fit a model of s terms, kept by hard thresholding among many random features and fitted by
    ridge regression (HARFE); s and the penalty are chosen on folds where they are not given.

    Hard-Ridge Random Feature Expansion minimises, over coefficients c of which at most s are not
    zero and the intercept b,

    .. math:: \frac1n \sum_i s_i L(b + \sum_j c_j \phi_j(x_i) / r_j, y_i)
              + \frac\alpha2 \sum_j c_j^2

    with the loss L as in `sparse_rf`, sample weights s_i of mean 1, and r_j the root mean square of
    feature j (`normalize`). The problem is not convex: the result is a point that no such step
    improves. The paper's own setting is ``harfe(X, y, n_nonzero_coefs=s, order=q,
    alpha=lambda, scale=None, fit_intercept=False, backtracking=False, start="zero")``.

    Parameters
    ----------
    X, y
        As in `sparse_rf`. Outputs and classes share one dictionary, and each has n_nonzero_coefs
        terms of its own.
    n_components : int, optional
        N, the number of features to draw. None: 4,000 by default, 10,000 where order, activation or
        features is given.
    n_nonzero_coefs : int, optional
        s, the number of terms. None: of 3, 6, 12, ..., 384, at most 0.6 of the rows of a fold, the
        one with the least loss on rows that are held out; none at all, but the constant, where that
        is not better by more than chance. What was chosen is in `info`.
    order : int, optional
        q, the number of inputs that each feature sees. None: all, where activation is given.
    alpha : float, optional
        Ridge penalty, > 0, in the unit of the loss; with normalize=False lambda of (6) in the
        paper. None: of 1, 0.1, ..., 1e-4 (0.1 to 1e-3 where the loss is not quadratic) the one with
        the least loss on these rows, on supports that 0.01 has found; 0.01 for classes that are
        fitted together.
    activation : {"sin", "cos", "tanh", "relu", "sign"}, optional
        The function phi of the features, whose weights are standard normal, as in `RandomNeurons`.
        None: "sin", where order is given.
    features : map, sequence of maps, str or FeatureSet, optional
        In place of order and activation, the dictionary as in `sparse_rf`; "auto": the terms that
        ``sparse_rf(X, y)`` finds, worth its time where few terms are to be as good as possible.
        None of the three: the columns, and sines of one and of two of them at two widths, which see
        numbers in ranks, too.
    gamma : float, "knn" or None, optional
        Inverse width of a kernel given by name, as in `sparse_rf`.
    scale, missing, categorical, monotone, convex, interactions
        As in `sparse_rf`.
    loss : str or `sparserf.losses.Loss`, default "squared"
        As in `sparse_rf`: with "squared_hinge" and "logistic" classes are one-vs-rest, with
        "multinomial" fitted together.
    selection : {"magnitude", "positive"}, default "magnitude"
        "magnitude": keep the s largest ``|c|``, as Algorithm 1 does. "positive": keep positive c
        alone, which regularises where s is near the number of rows.
    normalize : bool, default True
        Whether to scale features to mean square 1 on the rows, as the reference implementation
        does.
    step_size : float, default 0.1
        mu > 0, the step along the gradient; the paper's mu n with normalize=False.
    backtracking : bool, default True
        Whether to halve the step until the objective falls. False: the paper's fixed step, until a
        support comes back.
    start : {"greedy", "zero"}, default "greedy"
        "greedy": let the support grow to s first, which ends lower on most data. "zero": the
        paper's c = 0.
    max_iter : int, default 50
        The most iterations of Algorithm 1.
    tol : float, default 5e-3
        Stop where the relative residual is at most tol: the root of the mean loss over that of the
        best constant.
    time_limit : float, optional
        Seconds, beyond the reading of X kept to a tenth or 0.3 s: the model is the best so far, and
        `info.cut` says what was left out. Of features="auto" the search has four fifths of them.
    fit_intercept, sample_weight, class_weight, offset, groups, validation, lower, upper, rng,
    workers, callback, verbose
        As in `sparse_rf`; `validation` where n_nonzero_coefs or alpha is not given. The paper has
        no intercept.

    Returns
    -------
    SparseModel
        `coef` are c_j / r_j. `info.chosen` says what was chosen; a call with that number of terms
        and penalty, and the same seed, gives the same model. `info.converged` says whether the
        support came to rest, or tol was reached. `info.dual_gap` bounds the distance of the
        objective to that of the best of *all* models of s terms; it is rarely small.

    Raises
    ------
    ValueError, TypeError
        As `sparse_rf`; n_nonzero_coefs is larger than the number of features.

    Warns
    -----
    ConvergenceWarning
        The fit ended after max_iter iterations or by `time_limit`, before the support came to rest
        or tol was reached.
    TimeLimitWarning
        As `sparse_rf`, for features="auto".

    See Also
    --------
    harfe_path : Models for many numbers of terms from one run.

    Notes
    -----
    Time: an iteration takes O(n N q) for the gradient and, with m the lesser of s and n, O(k s m) +
    O(m^3) for the ridge problem where k terms change; a loss other than the squared one solves
    several. The choice takes some 20 iterations on each of five folds, of at most 16,000 rows in
    all. Memory, beyond X: O(n + N q + m^2), and for the choice a copy of these rows.

    References
    ----------
    E. Saha, H. Schaeffer, G. Tran, HARFE: Hard-Ridge Random Feature Expansion, 2022. Algorithm 1,
    problem (6).

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
    call = locals()
    options, choice = HarfeOptions.of_call(call), FoldOptions.of_call(call)
    if n_nonzero_coefs is not None:
        n_nonzero_coefs = check_integer("n_nonzero_coefs", n_nonzero_coefs, 1)
        if alpha is not None:
            choice.check_not_given("n_nonzero_coefs and alpha are given")
            return models_of_sizes(X, y, options, [n_nonzero_coefs])[0]
    return model_of_best_size(X, y, options, choice, n_nonzero_coefs)


@shows_progress
def harfe_path(
    X: MatrixLike,
    y: ArrayLike,
    *,
    n_nonzero_coefs: Iterable[int] | None = None,
    n_models: int = 10,
    n_components: int | None = None,
    order: int | None = None,
    alpha: float = 1e-2,
    activation: Activation | None = None,
    features: Features | None = None,
    gamma: Gamma = None,
    scale: Units = "robust",
    missing: Missing = "learn",
    categorical: Categorical = None,
    monotone: Signs = None,
    convex: Signs = None,
    interactions: Interactions = None,
    loss: LossLike = "squared",
    selection: Literal["magnitude", "positive"] = "magnitude",
    normalize: bool = True,
    step_size: float = 0.1,
    backtracking: bool = True,
    start: Literal["greedy", "zero"] = "greedy",
    max_iter: int = 50,
    tol: float = 5e-3,
    time_limit: float | None = None,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    offset: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    lower: float | None = None,
    upper: float | None = None,
    rng: Seed = None,
    workers: int = 1,
    callback: Callback = None,
    verbose: bool | None = None,
) -> list[SparseModel]:
    """Fit models of `harfe` for growing numbers of terms, each from the one before, over one
    dictionary.

    Parameters
    ----------
    X, y, n_components, order, activation, features, gamma, scale, missing, categorical, monotone,
    convex, interactions, loss, selection, normalize
        As in `harfe`.
    alpha : float, default 1e-2
        As in `harfe`; one penalty for all models.
    n_nonzero_coefs : sequence of int or None, default None
        The numbers of terms, which are used in ascending order. None: n_models of them, in
        geometric steps up to 0.15 of the rows, but at most a tenth of the features.
    n_models : int, default 10
        The number of models where n_nonzero_coefs is None, at least 1.
    time_limit : float, optional
        As in `harfe`, for the whole call; the largest numbers of terms are left out where there is
        no time for them, as `info.cut` of the last model says.
    step_size, backtracking, start, max_iter, tol, fit_intercept, sample_weight, class_weight,
    offset, groups, lower, upper, rng, workers, callback, verbose
        As in `harfe`, for each model.

    Returns
    -------
    list of SparseModel
        One model for each number of terms, ascending.

    Raises
    ------
    ValueError, TypeError
        As `harfe`.

    Warns
    -----
    ConvergenceWarning, TimeLimitWarning
        As `harfe`, for each model.

    Notes
    -----
    The features are drawn once. Time and memory are as for `harfe`, for each number of terms.

    References
    ----------
    J.-L. Bouchot, S. Foucart, P. Hitczenko, Hard thresholding pursuit algorithms: number of
    iterations, 2016.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> models = srf.harfe_path(
    ...     X, np.sin(2 * X.ravel()), n_nonzero_coefs=[2, 5, 10], n_components=500, rng=0
    ... )
    >>> [len(model.features) for model in models]
    [2, 5, 10]
    """
    options = HarfeOptions.of_call(locals())
    return models_of_sizes(X, y, options, n_nonzero_coefs, check_integer("n_models", n_models, 1))


def read_call(X: MatrixLike, y: ArrayLike, options: HarfeOptions) -> tuple[Task, FeatureSet]:
    """Return the task of a call, and the dictionary, drawn whole."""
    is_default = options.features is None and options.order is None and options.activation is None
    task, found = read_task_and_features(X, y, options, "apart", has_ranks=is_default)
    if options.is_auto and not len(task.features):  # there was no time to find any
        dictionary = task.features
    else:
        dictionary = draw_dictionary(task, found)
    if task.is_joint:
        check_any_sign(dictionary, "classes that are fitted together")
    return task, dictionary


def models_of_sizes(
    X: MatrixLike,
    y: ArrayLike,
    options: HarfeOptions,
    n_nonzero_coefs: Iterable[int] | None,
    n_models: int = 1,
) -> list[SparseModel]:
    """Return a model for each number of terms, each fit from where the one before has ended."""
    task, dictionary = read_call(X, y, options)
    if n_nonzero_coefs is None:
        largest = max(1, min(int(0.15 * task.rows.n_rows), len(dictionary) // 10))
        sizes = np.geomspace(largest, max(1, largest // 20), n_models).astype(int)
    else:
        sizes = sizes_within(n_nonzero_coefs, dictionary, options)
    sizes = sorted({min(int(size), len(dictionary)) for size in sizes})

    def fit(task, options):
        go_to, complaint = partial(_go_to, options), partial(_unrest, options)
        with single_threaded_blas(), task.rows:
            fits = fits_in_time(task, dictionary, options)
            names = "numbers of terms"
            return models_along(sizes, fits, go_to, task, options.budget, complaint, names=names)

    return fit_in_rounds(task, options, fit)


def sizes_within(
    n_nonzero_coefs: Iterable[int], dictionary: FeatureSet, options: HarfeOptions
) -> np.ndarray:
    """Return the numbers of terms, checked; a search may have found fewer features than the user
    wants."""
    most = np.inf if options.is_auto else len(dictionary)
    return check_sizes("n_nonzero_coefs", n_nonzero_coefs, most)


def model_of_best_size(
    X: MatrixLike, y: ArrayLike, options: HarfeOptions, choice: FoldOptions, s: int | None
) -> SparseModel:
    """Return the model whose number of terms and penalty, where they are not given, are chosen on
    folds; each real target has its own."""
    task, dictionary = read_call(X, y, options)
    if s is not None:
        s = min(int(sizes_within([s], dictionary, options)[0]), len(dictionary))
    choice = choice.with_splits(X, y, options.rows.groups)
    return fit_as_chosen(
        task, options, choice, lambda task, _, options: HarfePath(dictionary, options, s, task)
    )


class HarfePath(SizePath):
    """The path of HARFE over a dictionary, of rows in single precision."""

    first_alpha: ClassVar[float] = 1e-2
    alphas: ClassVar[tuple[float, ...]] = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
    few_alphas: ClassVar[tuple[float, ...]] = (1e-1, 1e-2, 1e-3)

    def begin(self, task: Task) -> Sequence[PursuitFit]:
        """Return the fits of a fold, at the best constants."""
        options = replace(self._options, start="zero")
        return fits_in_time(replace(task, is_single=True), self._features, options)

    def advance(self, fits: Sequence[PursuitFit], place: int) -> None:
        """Let the fits go on to so many terms, and exchange terms a few times."""
        for fit in fits:
            fit.restart()
            algorithm_1(fit, place, EXCHANGES)
            if isinstance(fit, L0Fit):  # sweeps over classes at the end are not worth their time
                fit.go_to_best()

    def fit(
        self, task: Task, options: HarfeOptions, values: Sequence[tuple[int, float] | None]
    ) -> SparseModel:
        """Return the model with the numbers of terms and the penalties that were chosen."""
        goals = {}
        for target, value in zip(task.of_each_output(), values, strict=True):
            size, alpha = self.goal(value)
            own = replace(options, alpha=alpha)
            goals |= dict.fromkeys(fits_in_time(target, self._features, own), (own, size))

        def go_to(fit, _):
            own, size = goals[fit]
            fit.at_rest = size == 0  # the constant
            if size:
                _go_to(own, fit, size)

        complaint = partial(_unrest, options)
        return models_along([None], list(goals), go_to, task, options.budget, complaint)[0]


def _unrest(options, info):
    """Return the words of a warning of a fit that ended before its support came to rest."""
    by, more = f" after max_iter={options.max_iter} iterations", "max_iter"
    if "fits" in info.cut:
        by, more = f" by time_limit after {info.n_iter} iterations", "time_limit"
    return (
        f"{info.n_nonzero} terms: stopped{by}, before the support came to rest"
        f"{gap_in_words(info)}, above tol={options.tol:.3g}; raise {more} or tol"
    )


def fits_in_time(task: Task, dictionary: FeatureSet, options: HarfeOptions) -> Sequence[PursuitFit]:
    """Return a fit of each target, or the one fit of all classes, at its best constant; over no
    features where there is no time for a pass over the dictionary."""

    def begin(dictionary):
        if not task.is_joint:
            return begin_fits(task, dictionary, options)
        from .harfe_multinomial import MultinomialL0Fit

        return [MultinomialL0Fit(task, dictionary, options)]

    return begun_in_time(begin, dictionary, options.budget)


def _go_to(options, fit, s):
    """Let a fit go to its best s terms, or where it ends before to the best so far."""
    fit.restart()
    try:
        if options.start == "greedy":
            grow(fit, s)
        algorithm_1(fit, s, options.max_iter)
    except Ended:
        fit.go_to_best()
        raise
    fit.go_to_best()


def draw_dictionary(task: Task, options: HarfeOptions) -> FeatureSet:
    """Return all N features: random neurons of an activation and order, draws from the features of
    the task, or by default the inputs and `sines_of_few`."""
    features, order, activation = task.features, options.order, options.activation
    n_components = 10_000 if options.n_components is None else options.n_components
    if features is None and options.gamma is not None:
        raise ValueError(
            f"gamma must be None where features is, got {options.gamma!r}: neurons of harfe have "
            "none"
        )
    if features is not None and (order is not None or activation is not None):
        raise ValueError(
            f"order and activation must not be given beside features, got {order!r} and "
            f"{activation!r}"
        )
    if features is None and order is None and activation is None:
        features = (Linear(), *sines_of_few(task.rows.n_features_in))
        n_components = N_DEFAULT if options.n_components is None else n_components
    elif features is None:
        features = RandomNeurons("sin" if activation is None else activation, order=order)
    return draw_all(
        features,
        task.rows,
        n_components=n_components,
        gamma=options.gamma,
        rng=options.rng,
        weight=task.weight,
        constraints=task.input_constraints,
    )
