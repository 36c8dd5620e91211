"""Multi Feature Greedy Approximation (MFGA): the best few features of one or several kernels, one
after another.

The candidates are explicit features phi_{p,m} of P kernels with weights nu_p. The model is a
function of their span, (2) in the paper,

    f(x) = b + sum_j theta_j sqrt(nu_p(j)) phi_j(x),

in which few theta_j are not zero. R(theta) is its penalised mean loss; in place of the constraint
||theta|| <= C of (2) there is a ridge penalty, as in the paper's experiments.

Algorithm 1 of the paper starts from no feature. Each round adds to the support I the feature with
the largest |grad R(theta)_j|, and then minimises R over all theta with support in I. Off the
support theta_j is 0, so that the gradient of R in theta_j is the gradient of the mean loss. Theorem
3 of the paper bounds R after t rounds. Several features a round are Generalized Orthogonal Matching
Pursuit.

This file has the functions that users call, the loop of Algorithm 1 and the drawing of the
candidates. A fit of one target, `GreedyFit`, has its gradients and the minimisation over the
support from one of three solvers (solvers/greedy.py):

- `CoefficientsOnTable`, for the squared loss and one feature a round: it keeps a table of inner
  products, which takes the place of passes over the rows;
- `CoefficientsOnRows`, for other losses, several features a round, the best phase, or where that
  table would be too large;
- `MultinomialCoefficients`, for several classes with the multinomial loss
  (solvers/greedy_multinomial.py).

S. Shahrampour, V. Tarokh, Learning Bounds for Greedy Approximation with Explicit Feature Maps from
Multiple Kernels, NeurIPS 2018.

J. Wang, S. Kwon, B. Shim, Generalized Orthogonal Matching Pursuit, IEEE Transactions on Signal
Processing 60, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .._base.checks import check_flag, check_integer, check_real, check_vector, checked
from .._base.progress import parts, shows_progress
from .._base.threads import single_threaded_blas
from .._core.search import top_k
from ..features import FeatureSet, Linear, Taylor, check_any_sign, draw_all, sines_of_few
from ..model import warn_unconverged
from ..solvers.greedy import AMONG, LARGEST_TABLE, CoefficientsOnRows, CoefficientsOnTable
from ..solvers.greedy_multinomial import MultinomialCoefficients
from ..solvers.ridge import RidgeProblem
from .arguments import FitOptions
from .auto_features import read_task_and_features
from .chosen_on_folds import FoldOptions, SizePath, fit_as_chosen
from .model_of_fits import model_in_time, partial_fits_on_error
from .path import begun_in_time
from .rounds import fit_in_rounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    from numpy.typing import ArrayLike

    from .._base.splits import Splits
    from .._base.types import MatrixLike, Seed
    from ..columns.encoder import Missing, Units
    from ..columns.table import Categorical
    from ..columns.targets import ClassWeight
    from ..features.bandwidth import Gamma
    from ..features.dictionary import Features
    from ..features.feature_set import Solution
    from ..losses import LossLike
    from ..model import Callback, FitInfo, SparseModel
    from ..rows import Rows
    from .fit_progress import Progress
    from .task import Task

    # The features that are in the model so far, and the fit of their coefficients.
    GreedySolver: TypeAlias = CoefficientsOnRows | CoefficientsOnTable | MultinomialCoefficients


@dataclass(frozen=True, kw_only=True, eq=False)
class MfgaOptions(FitOptions):
    """The arguments of `mfga` and `mfga_path` beyond X and y, checked."""

    n_components: int | None
    n_nonzero_coefs: int | None = checked(check_integer, 1, default=None)
    nu: ArrayLike | None
    gamma: Gamma
    alpha: float | None = checked(check_real, 0, default=None)
    n_select: int = checked(check_integer, 1)
    normalize: bool = checked(check_flag)
    best_phase: bool = checked(check_flag)
    tol: float | None = checked(check_real, 0, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.normalize and self.best_phase:
            raise ValueError(
                "normalize must be False where best_phase is True: the norm of a feature changes "
                "with its phase"
            )


# The sines that are drawn by default.
N_DEFAULT = 2_000
# The rounds in which a fit on a fold comes from one number of terms to the next.
ROUNDS = 4


def algorithm_1(fits: Sequence[GreedyFit], n_nonzero_coefs: int, n_select: int) -> Iterator[None]:
    """Run Algorithm 1 of the MFGA paper on all targets, round by round; yield after each round."""
    going = fits
    for _ in parts(range(-(-n_nonzero_coefs // n_select))):  # for t in [M]
        for fit in going:
            # J = argmax_j |grad R(theta)_j|;  I = I + {J}
            fit.enter(min(n_select, n_nonzero_coefs - len(fit)))
            # theta = argmin R over supp(theta) in I
            fit.refit()

        going = [fit for fit in going if not fit.record() and len(fit) < n_nonzero_coefs]
        yield
        if not going:
            break


@shows_progress
def mfga(
    X: MatrixLike,
    y: ArrayLike,
    *,
    n_nonzero_coefs: int | None = None,
    features: Features | None = None,
    nu: ArrayLike | None = None,
    gamma: Gamma = None,
    scale: Units = "robust",
    missing: Missing = "learn",
    categorical: Categorical = None,
    n_components: int | None = None,
    loss: LossLike = "squared",
    alpha: float | None = None,
    n_select: int = 1,
    normalize: bool = False,
    best_phase: bool = False,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    offset: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    validation: float | Splits | None = None,
    tol: float | None = None,
    time_limit: float | None = None,
    rng: Seed = None,
    workers: int = 1,
    callback: Callback = None,
    verbose: bool | None = None,
) -> SparseModel:
    r"""Fit a model of the best few features of several kernels, chosen one after another (MFGA);
    their number and the penalty are chosen on folds where they are not given.

    Each round of Multi Feature Greedy Approximation adds the features in whose coefficients the
    objective falls fastest, and then fits all coefficients again:

    .. math:: \min \frac1n \sum_i s_i L(b + \sum_j \theta_j \sqrt{\nu_{p(j)}} \phi_j(x_i), y_i)
              + \frac\alpha2 \sum_j \theta_j^2

    over the coefficients of the features chosen so far and the intercept b, with the loss L as in
    `sparse_rf`, sample weights s_i of mean 1, and p(j) the map that feature j is from. The paper's
    own setting is ``mfga(X, y, n_nonzero_coefs=M, features=(Taylor(2, "knn"), Linear()),
    alpha=lambda, scale=None, fit_intercept=False)``.

    Parameters
    ----------
    X, y
        As in `sparse_rf`. Several real targets share one support, and need the squared loss; more
        than two classes share one with loss="multinomial", else each has n_nonzero_coefs terms of
        its own.
    n_nonzero_coefs : int, optional
        M, the number of terms. None: of 3, 6, 12, ..., 384, at most 0.6 of the rows of a fold, the
        one with the least loss on rows that are held out, on whose folds a number is reached from
        the one before in four rounds; none at all, but the constant, where that is not better by
        more than chance. What was chosen is in `info`.
    features : map, sequence of maps, str or FeatureSet, optional
        The candidates, as in `sparse_rf`; "auto": the terms that ``sparse_rf(X, y)`` finds, worth
        its time where few terms are to be as good as possible. None: ``Taylor(2)``, of degree 1 for
        more than 2,000 inputs, the columns (``Linear()``), and sines of one and of two of them at
        two widths, which see numbers in ranks, too; without the sines where gamma is given.
    nu : sequence of float, optional
        A positive weight for each map, scaled to sum to 1. None: all are the same.
    gamma : float, "knn" or None, optional
        Inverse width of the default monomials, None as in `Taylor`, "knn" being the paper's rule;
        or of a kernel given by name.
    scale, missing, categorical
        As in `sparse_rf`.
    n_components : int, optional
        The number of features to draw from the maps that are random, in equal shares. None: 2,000
        by default, 10,000 where features is given.
    loss : str or `sparserf.losses.Loss`, default "squared"
        As in `sparse_rf`: with "squared_hinge" and "logistic" classes are one-vs-rest, with
        "multinomial" fitted together.
    alpha : float, optional
        Ridge penalty, >= 0, in the unit of the loss. None: of 0.1, 0.01, 1e-3, 1e-4, 1e-6 (0.1,
        1e-3, 1e-5 where the loss is not quadratic) the one with the least loss on the rows that are
        held out, on supports that 1e-3 has found; 1e-3 for classes that are fitted together.
    n_select : int, default 1
        The number of features that a round adds: with some tens it is as many times as fast, and a
        little less sparse.
    normalize : bool, default False
        Whether gradients are divided by the norms of their features first, as in orthogonal
        matching pursuit.
    best_phase : bool, default False
        Whether each cosine that enters gets the phase with the largest gradient in place of the one
        drawn.
    tol : float, optional
        End before n_nonzero_coefs where a round lowers the objective by less than tol times its
        value. None: never.
    time_limit : float, optional
        Seconds, beyond the reading of X kept to a tenth or 0.3 s: the model is the best so far, and
        `info.cut` says what was left out. Of features="auto" the search has four fifths of them.
    fit_intercept, sample_weight, class_weight, offset, groups, validation, rng, workers, callback,
    verbose
        As in `sparse_rf`; `validation` where n_nonzero_coefs or alpha is not given. The paper has
        no intercept. `rng` also draws the 2,000 rows from which a rule takes gamma.

    Returns
    -------
    SparseModel
        `info.chosen` says what was chosen; a call with that number of terms and penalty, and the
        same seed, gives the same model. It has fewer terms than n_nonzero_coefs where each other
        feature has no gradient, or depends on selected ones, or where the time was over.
        `info.dual_gap` bounds the distance of the objective to that of the best of *all* models of
        as many terms; it is rarely small.

    Raises
    ------
    ValueError, TypeError
        As `sparse_rf`; n_nonzero_coefs is larger than the number of features.

    Warns
    -----
    ConvergenceWarning
        Newton's method ended before the minimum over the coefficients of the support, never with
        the squared loss; or `time_limit` ended the rounds.
    TimeLimitWarning
        As `sparse_rf`, for features="auto".

    See Also
    --------
    mfga_path : The models after every round.

    Notes
    -----
    Time: the gradients of all monomials take O(n d^2), that of any other feature O(n d); with k
    terms so far and n_select = p, a round takes O(n k p) for the Gram matrix and O(k^2 p) for its
    Cholesky factor. Memory, beyond X: O(n + k^2), the candidates and, for p = 1 and the squared
    loss, 2 k numbers for each, up to half a gigabyte.

    After t rounds the objective is within ``(F_0 - F(u)) exp(-t mu / (beta |u|_0))`` of that of any
    u with ``|u|_0`` terms, for an objective that is mu-strongly convex and beta-smooth in each
    coefficient (Theorem 3 of the paper).

    References
    ----------
    S. Shahrampour, V. Tarokh, Learning Bounds for Greedy Approximation with Explicit Feature Maps
    from Multiple Kernels, NeurIPS 2018. Algorithm 1. Several features a round: J. Wang, S. Kwon, B.
    Shim, Generalized Orthogonal Matching Pursuit, 2012.

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
    call = locals()
    options, choice = MfgaOptions.of_call(call), FoldOptions.of_call(call)
    if options.n_nonzero_coefs is None or options.alpha is None:
        return model_of_best_size(X, y, options, choice)
    choice.check_not_given("n_nonzero_coefs and alpha are given")
    return models_of_rounds(X, y, options, every_round=False)[-1]


@shows_progress
def mfga_path(
    X: MatrixLike,
    y: ArrayLike,
    *,
    n_nonzero_coefs: int | None = None,
    features: Features | None = None,
    nu: ArrayLike | None = None,
    gamma: Gamma = None,
    scale: Units = "robust",
    missing: Missing = "learn",
    categorical: Categorical = None,
    n_components: int | None = None,
    loss: LossLike = "squared",
    alpha: float = 1e-3,
    n_select: int = 1,
    normalize: bool = False,
    best_phase: bool = False,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    offset: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    tol: float | None = None,
    time_limit: float | None = None,
    rng: Seed = None,
    workers: int = 1,
    callback: Callback = None,
    verbose: bool | None = None,
) -> list[SparseModel]:
    """Fit models of `mfga` after every round of one run: of n_select terms, of twice as many, and
    so on.

    Parameters
    ----------
    n_nonzero_coefs : int, default 30
        The most terms, or all features where there are fewer.
    alpha : float, default 1e-3
        As in `mfga`; one penalty for all models.
    X, y, features, nu, gamma, scale, missing, categorical, n_components, loss, n_select
        As in `mfga`.
    normalize, best_phase, fit_intercept, sample_weight, class_weight, offset, groups, tol, rng,
    workers, callback, verbose
        As in `mfga`.
    time_limit : float, optional
        As in `mfga`; the last rounds are left out where there is no time for them, as `info.cut` of
        the last model says.

    Returns
    -------
    list of SparseModel
        The model after each round; the last is the model of `mfga`. Choose one by its error on
        held-out rows.

    Raises
    ------
    ValueError, TypeError
        As `mfga`.

    Warns
    -----
    ConvergenceWarning, TimeLimitWarning
        As `mfga`, for each model.

    Notes
    -----
    Time as `mfga`. Memory as `mfga`, and the models: O(d) for each term of each, or O(1) for a
    monomial.

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
    return models_of_rounds(X, y, MfgaOptions.of_call(locals()), every_round=True)


def read_call(X: MatrixLike, y: ArrayLike, options: MfgaOptions) -> tuple[Task, FeatureSet]:
    """Return the task of a call, and all candidates."""
    has_ranks = options.features is None
    task, found = read_task_and_features(X, y, options, "together", has_ranks)
    _check_outputs(task, options)
    if options.is_auto and not len(task.features):  # there was no time to find any
        return task, task.features
    candidates = draw_candidates(task, found)
    check_any_sign(candidates, "mfga")
    return task, candidates


def most_terms(n_nonzero_coefs: int, candidates: FeatureSet, options: MfgaOptions) -> int:
    """Return the number of terms that is given, checked; a search may have found fewer features
    than the user wants."""
    if n_nonzero_coefs > len(candidates) and not options.is_auto:
        most = f"{len(candidates)}, the number of features"
        raise ValueError(
            f"n_nonzero_coefs must be at most {most}, got {n_nonzero_coefs}; lower it, or give "
            "other features"
        )
    return min(n_nonzero_coefs, len(candidates))


def models_of_rounds(
    X: MatrixLike, y: ArrayLike, options: MfgaOptions, every_round: bool
) -> list[SparseModel]:
    """Return the model after each round of Algorithm 1, or after the last round alone."""
    # The default number of terms of a path.
    n_terms = 30

    task, candidates = read_call(X, y, options)
    if options.n_nonzero_coefs is None:
        n_nonzero_coefs = min(n_terms, len(candidates))
    else:
        n_nonzero_coefs = most_terms(options.n_nonzero_coefs, candidates, options)
    own = candidates, n_nonzero_coefs, every_round
    return fit_in_rounds(task, options, lambda task, options: fitted(task, options, *own))


def fitted(
    task: Task,
    options: MfgaOptions,
    candidates: FeatureSet,
    n_nonzero_coefs: int,
    every_round: bool = False,
) -> list[SparseModel]:
    """Return the model after each round of Algorithm 1, or after the last round alone, for a task
    and its candidates."""
    budget, models, n_done = options.budget, [], 0
    with single_threaded_blas(), task.rows:
        fits = fits_in_time(task, candidates, n_nonzero_coefs, options)

        def go():
            nonlocal n_done
            for _ in algorithm_1(fits, n_nonzero_coefs, options.n_select):
                n_done += 1
                if every_round:
                    models.append(model_in_time(fits, task, budget))

        with partial_fits_on_error(fits, task):
            if not budget.lets(go):
                budget.note_cut("rounds", -(-n_nonzero_coefs // options.n_select) - n_done)
            if budget.is_late or not models:
                models[max(n_done - 1, 0) :] = [model_in_time(fits, task, budget)]
    for model in models:
        _warn_if_unconverged(model.info, fits)
    return models


def model_of_best_size(
    X: MatrixLike, y: ArrayLike, options: MfgaOptions, choice: FoldOptions
) -> SparseModel:
    """Return the model whose number of terms and penalty, where they are not given, are chosen on
    folds."""
    task, candidates = read_call(X, y, options)
    s = options.n_nonzero_coefs
    s = None if s is None else most_terms(s, candidates, options)
    choice = choice.with_splits(X, y, options.rows.groups)
    return fit_as_chosen(
        task, options, choice, lambda task, _, options: MfgaPath(candidates, options, s, task)
    )


class MfgaPath(SizePath):
    """The path of MFGA over its candidates, of rows in single precision."""

    first_alpha: ClassVar[float] = 1e-3
    alphas: ClassVar[tuple[float, ...]] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
    few_alphas: ClassVar[tuple[float, ...]] = (1e-1, 1e-3, 1e-5)

    def begin(self, task: Task) -> Sequence[GreedyFit]:
        """Return the fits of a fold before the first round."""
        # so that inner products are asked of the rows, which has any number of features a round
        options, most = replace(self._options, n_select=ROUNDS), len(self._features)
        return fits_in_time(replace(task, is_single=True), self._features, most, options)

    def advance(self, fits: Sequence[GreedyFit], place: int) -> None:
        """Let ROUNDS rounds add what is left to so many terms."""
        n_new = place - min(len(fit) for fit in fits)
        for _ in algorithm_1(fits, place, max(1, -(-n_new // ROUNDS))):
            pass

    def fit(
        self, task: Task, options: MfgaOptions, values: Sequence[tuple[int, float] | None]
    ) -> SparseModel:
        """Return the model with the number of terms and the penalty that were chosen."""
        size, alpha = self.goal(values[0])
        return fitted(task, replace(options, alpha=alpha), self._features, size)[-1]


def _check_outputs(task, options):
    """Raise a ValueError where the loss, or the best phase, is for one output alone."""
    if not task.loss.is_quadratic and len(np.atleast_2d(task.targets[0])) > 1:
        raise ValueError(
            f"y must have one output for loss={task.loss.name!r}, got {len(task.targets[0])}: fit "
            "one at a time"
        )
    if options.best_phase and task.is_joint:
        raise ValueError(
            f"best_phase must be False for loss={task.loss.name!r} and more than two classes, got "
            "True"
        )


def _warn_if_unconverged(info, fits):
    """Warn where Newton's method did not reach a minimum, or there was no time for a round."""
    if "rounds" in info.cut:
        warn_unconverged(
            f"{info.n_nonzero} terms: stopped by time_limit, {info.cut['rounds']} rounds before "
            "the last; raise time_limit"
        )
    elif not info.converged:
        warn_unconverged(
            f"{info.n_nonzero} terms: Newton's method ended before the minimum over their "
            "coefficients, where a step is predicted to lower the objective by "
            f"{max(fit.predicted_decrease for fit in fits):.3g}; raise alpha",
        )


def draw_candidates(task: Task, options: MfgaOptions) -> FeatureSet:
    """Return all candidates, the features of each map times sqrt(nu_p)."""
    # Up to this number of inputs there are monomials of two of them.
    most_inputs = 2000

    features, gamma = task.features, options.gamma
    n_components = 10_000 if options.n_components is None else options.n_components
    if features is None:
        monomials = Taylor(2 if task.rows.n_features_in <= most_inputs else 1, gamma)
        features = (monomials, Linear())
        if gamma is None:
            n_components = N_DEFAULT if options.n_components is None else n_components
            features += sines_of_few(task.rows.n_features_in)
        gamma = None
    if isinstance(features, FeatureSet) and options.nu is not None:
        raise ValueError("nu must be None where features is a FeatureSet")

    def roots_of_nu(n_maps):
        nu = np.ones(n_maps) if options.nu is None else check_vector("nu", options.nu)
        if len(nu) != n_maps or nu.min() <= 0:
            raise ValueError(
                f"nu must hold a positive number for each of the {n_maps} maps, got {nu.tolist()}"
            )
        return tuple(np.sqrt(nu / nu.max() / (nu / nu.max()).sum()).tolist())

    return draw_all(
        features,
        task.rows,
        n_components=n_components,
        gamma=gamma,
        rng=options.rng,
        scales=roots_of_nu,
        weight=task.weight,
    )


def root_mean_squares(
    rows: Rows, features: FeatureSet, weight: np.ndarray, fit_intercept: bool
) -> np.ndarray:
    """Return the root mean square of each feature, around its mean where there is an intercept;
    infinity for a constant."""
    # A feature whose variance is below this share of its mean square is taken for a constant.
    constant = 1e-13

    square = rows.correlate_squares(features, weight / rows.n_rows)
    mean = rows.correlate(features, weight / rows.n_rows) if fit_intercept else 0.0
    variance = square - mean * mean
    return np.sqrt(np.where(variance > constant * square, variance, np.inf))


def greedy_fits(
    task: Task, candidates: FeatureSet, n_nonzero_coefs: int, options: MfgaOptions
) -> list[GreedyFit]:
    """Return a fit of each target, or one of all classes together, before the first round."""
    r = np.ones(len(candidates))
    if options.normalize:
        r = root_mean_squares(task.rows, candidates, task.weight, options.fit_intercept)

    is_small = n_nonzero_coefs * len(candidates) <= LARGEST_TABLE
    if (
        options.n_select == 1
        and task.loss.name == "squared"
        and not options.best_phase
        and is_small
    ):
        make_solver = partial(CoefficientsOnTable, most_terms=n_nonzero_coefs, r=r)
    elif task.is_joint:
        make_solver = MultinomialCoefficients
    else:
        make_solver = partial(CoefficientsOnRows, best_phase=options.best_phase)

    fits = []
    for k, y in enumerate([np.stack(task.targets)] if task.is_joint else task.targets):
        outputs = np.atleast_2d(y)
        problem = task.problem(RidgeProblem, outputs, options.alpha, options.fit_intercept, k)
        solver = make_solver(task.rows, problem, candidates, len(outputs))
        fits.append(
            GreedyFit(
                solver,
                problem,
                task.progress(options.callback, y),
                candidates,
                r,
                options,
                y.ndim == 1,
            )
        )
    return fits


def fits_in_time(
    task: Task, candidates: FeatureSet, n_nonzero_coefs: int, options: MfgaOptions
) -> list[GreedyFit]:
    """Return the `greedy_fits`; over no candidates where there is no time for a pass over all."""

    def begin(candidates):
        return greedy_fits(task, candidates, min(n_nonzero_coefs, len(candidates)), options)

    return begun_in_time(begin, candidates, options.budget)


class GreedyFit:
    """A fit of one target, of several outputs that share a support, or of all classes together;
    theta has the support I.

    progress : the objectives so far, in units of y, and the callback
    at_rest : whether no candidate is left that has a gradient
    """

    progress: Progress
    at_rest: bool

    def __init__(
        self,
        solver: GreedySolver,
        problem: RidgeProblem,
        progress: Progress,
        candidates: FeatureSet,
        r: np.ndarray,
        options: MfgaOptions,
        one_output: bool,
    ):
        """r : the numbers by which the gradients of candidates are divided before they are
        compared."""
        self._solver = solver
        self._problem = problem
        self.progress = progress
        self._candidates = candidates
        self._r = r
        self._alpha, self._tol, self._one_output = options.alpha, options.tol, one_output
        # that of the problem is in other units
        self._penalty_unit = problem.alpha / options.alpha if options.alpha else 1.0
        # _first : the largest gradient at the start
        self._is_untried, self._first = np.ones(len(candidates), bool), None
        self._last, self.at_rest = solver.iterate.objective, False

    def __len__(self) -> int:
        """Return the number of features that are in."""
        return len(self._solver.A)

    @property
    def predicted_decrease(self) -> float:
        """The decrease that the next Newton step predicts, where a refit did not reach the
        minimum."""
        return self._solver.predicted_decrease

    def enter(self, n_select: int) -> None:
        """Add the n_select features of largest gradient; one that depends on features already in
        gives way to the next."""
        # A gradient below this share of the largest gradient at the start is taken for rounding.
        gradient_rounding = 1e-14

        end = len(self) + n_select
        while len(self) < end and not self.at_rest:
            score = np.where(self._is_untried, self._solver.gradients() / self._r, 0.0)
            if self._first is None:
                self._first = score.max(initial=0.0)
                at = self._solver.iterate
                v = self._problem.dual_point(self._problem.margins(at.f, at.b))
                self.at_rest = self._first <= self._problem.rounding_of_slopes(v)
                if self.at_rest:
                    break
            best = np.empty(min(end - len(self) + AMONG, len(score)), np.intp)
            n_new = end - len(self)
            # the features whose gradient is above rounding
            best = best[: top_k(score, gradient_rounding * self._first, best)]
            J = best[:n_new]
            self.at_rest = len(J) == 0
            if not self.at_rest:
                self._is_untried[J] = False
                if not self._solver.append(J, best[n_new:]) and not len(self):
                    # the gradient of a constant was rounding: it is no measure for the gradients of
                    # others
                    self._first = None

    def refit(self) -> None:
        """Minimise the objective over all coefficients of the support."""
        self._solver.refit()

    def record(self) -> bool:
        """End a round: note the objective and call the callback. Return whether to stop."""
        objective = self._solver.iterate.objective
        fall, self._last = self._last - objective, objective
        self.progress.note(objective)
        is_slow = self._tol is not None and fall < self._tol * objective
        return self.progress.ask(self.info) or is_slow or self.at_rest

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the fit; certified : whether to compute the duality gap.

        The gap is the distance to a lower bound on the objective of any model of as many terms.
        """
        self._solver.complete_refit(certified)
        at, problem, gap = self._solver.iterate, self._problem, np.inf
        if certified:
            squares = self._solver.gradients() ** 2  # which may overflow: a bound that says nothing
            gap = at.objective - problem.lower_bound(
                problem.margins(at.f, at.b), squares, len(self)
            )
        return self.progress.info(
            lambda: at.objective,
            gap,
            converged=self._solver.converged,
            n_drawn=len(self._candidates),
            n_nonzero=int(at.w.any(axis=0).sum()),
            alpha=self._alpha,
        )

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms by ascending index, in the units of y."""
        self._solver.complete_refit(True)
        at = self._solver.iterate
        return self._solution_of(at.w, at.b)

    def solution_with(self, alpha: float) -> Solution:
        """Return the same with another penalty on the features that are in."""
        if alpha == self._alpha:
            return self.solution()
        return self._solution_of(*self._solver.refitted(alpha * self._penalty_unit))

    def _solution_of(self, w, b):
        A = self._solver.A
        # features that have just entered have no coefficient yet, or 0
        used = np.flatnonzero(w.any(axis=0))
        order = used[np.argsort(A.index[used])]
        w, b = self.progress.in_units_of_y(w[:, order], b)
        return (
            A.index[order],
            A.features.take(order),
            *((w[0], b[0]) if self._one_output else (w, b)),
        )
