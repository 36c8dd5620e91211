"""Linear models by Newton's method, certified; and Dual Random Projection, which recovers the
optimal linear model from a problem of a few random projections of the inputs.

Algorithms 1 and 2 of L. Zhang, M. Mahdavi, R. Jin, T. Yang, S. Zhu, Recovering the Optimal Solution
by Dual Random Projection, COLT 2013, are `algorithm_2` below, with T = 1 and more. The paper sums
the losses, and here is their mean: lambda is n alpha.

By default a fit goes to the same optimum by Newton's method on the problem itself, where random
combinations of the rows or projections of the inputs precondition conjugate gradients that would be
slow without; see `linear/`. Where no penalty is given, folds choose it (`chosen_on_folds.py`).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._base.checks import check_alphas, check_real
from .._base.progress import shows_progress
from .._base.threads import single_threaded_blas
from ..features import make_projection
from ..linear import ProjectedProblem, has_few_inputs
from .chosen_on_folds import FoldOptions, fit_as_chosen
from .drp_fit import DRPOptions, NewtonFit, RidgeFit, linear_fit, read_task
from .model_of_fits import model_of, with_ranges
from .path import models_along
from .rounds import is_in_rounds, models_of_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from .._base.splits import Splits
    from .._base.types import MatrixLike, Seed
    from ..columns.encoder import Missing, Units
    from ..columns.table import Categorical
    from ..columns.targets import ClassWeight
    from ..features.feature_set import Solution
    from ..features.projections import ProjectionName
    from ..linear import LinearFit
    from ..losses import LinearLossLike
    from ..model import Callback, SparseModel
    from .folds import Folds
    from .task import Task

# Penalties that are tried fall by this factor, at most so many.
FACTOR, MOST_PENALTIES = 0.2, 20
# The largest: of n rows no larger one is best for a model that explains this share of the variance,
# whatever the columns.
LEAST_SHARE = 0.01
# On folds a relative error of the coefficients of this size is proved at most, by so many Newton
# steps.
TOL_ON_FOLDS, STEPS_ON_FOLDS = 0.3, 20
# The most rounds in which a loss with free parameters comes to the joint optimum (`rounds.py`):
# each takes off some nine tenths of what its loss is above that.
MOST_ROUNDS = 30


def algorithm_2(fit: LinearFit, projected: ProjectedProblem, T: int) -> bool:
    """Run Algorithm 2 of the DRP paper (Algorithm 1 with T = 1); return whether the iteration
    diverges.

    It ends before T once the fit's tolerance is met. Where it diverges, the fit goes back to the w
    that was nearest to w*. Here X_hat = X R / sqrt(m).
    """
    guard = DivergenceGuard(fit)
    for _ in range(T):  # for t = 1, ..., T
        # z = argmin alpha/2 |z + R'w / sqrt(m)|^2 + (1/n) sum_i L(z'x_hat_i + w'x_i, y_i)
        z = projected.solve()
        # a_i = L'(z'x_hat_i + w'x_i, y_i) / n;  w = -X'a / alpha
        projected.recover(z)

        diverges = guard.diverges()
        if fit.record() or diverges:
            return diverges
    return False


class DivergenceGuard:
    """The way of w in Algorithm 2, which goes back to its best point where the iteration diverges.

    A rising objective is no sign of divergence: w comes nearer to w*, and may pass where the
    objective is higher.
    """

    def __init__(self, fit: LinearFit):
        self._fit, self._w, self._shortest = fit, fit.w, np.inf
        self._nearest, self._distance = fit.iterate, fit.certificate.distance.max()

    def diverges(self) -> bool:
        """Return whether the last step of the fit was ten times the shortest so far, and more than
        rounding; if so, move the fit to its nearest iterate."""
        fit = self._fit
        step, size = np.linalg.norm(fit.w - self._w), np.linalg.norm(fit.w)
        diverges = not step <= max(10.0 * self._shortest, 1e-9 * size)
        self._w, self._shortest = fit.w, min(step, self._shortest)

        if fit.certificate.distance.max() < self._distance:
            self._nearest, self._distance = fit.iterate, fit.certificate.distance.max()
        if diverges:
            fit.move_to(self._nearest)
            fit.certify()
        return diverges


@shows_progress
def drp(
    X: MatrixLike,
    y: ArrayLike,
    *,
    alpha: float | None = None,
    n_projections: int | None = None,
    n_iter: int | None = None,
    accelerate: bool = True,
    projection: Literal["auto"] | ProjectionName = "auto",
    scale: Units = "robust",
    missing: Missing = "learn",
    categorical: Categorical = None,
    loss: LinearLossLike = "squared",
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    offset: ArrayLike | None = None,
    validation: float | Splits | None = None,
    groups: ArrayLike | None = None,
    tol: float = 1e-4,
    rng: Seed = None,
    workers: int = 1,
    callback: Callback = None,
    verbose: bool | None = None,
) -> SparseModel:
    r"""Fit a linear model by Newton's method, with a proved bound on the error of its coefficients;
    with ``accelerate=False`` by the paper's Dual Random Projection.

    It minimises, over the coefficients w of all inputs and the intercept b,

    .. math:: \frac1n \sum_i s_i L(b + w^T x_i, y_i) + \frac\alpha2 \|w\|^2

    with sample weights s of mean 1, and bounds how far w is from its optimum w*. Without `alpha`
    the penalty is chosen on folds. The paper's own setting, with its lambda, m and T::

        drp(X, y, alpha=lambda / n, accelerate=False, n_projections=m, n_iter=T,
            scale=None, fit_intercept=False)

    Parameters
    ----------
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        As in `sparse_rf`; never made dense, and with `alpha` and ``scale=None`` never copied whole.
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        Real targets, which share one penalty and one basis or sketch, or labels for a
        classification loss.
    alpha : float, optional
        Penalty, > 0, in the units of the columns as seen: the paper's lambda / n, scikit-learn's
        Ridge alpha / n, 1 / (n C) of LogisticRegression. With "quantile", "poisson" and "tweedie"
        it is in a unit of the loss. None: the one of least loss on held-out rows, or nearly so; no
        coefficients where none is better than the constant.
    n_projections : int, optional
        The number m of projections; needed with ``accelerate=False``. None: what takes the fewest
        passes over X.
    n_iter : int, optional
        The most iterations: Newton steps, or T of Algorithm 2, where 1 is Algorithm 1. None: 100.
    accelerate : bool, default True
        Whether to take Newton steps on the problem itself. False: the iteration of the paper.
    projection : {"auto", "gaussian", "sparse_sign", "srht"}, default "auto"
        The kind of R: normal entries, eight random signs an input, or a subsampled Hadamard
        transform. "auto": "sparse_sign", or the paper's "gaussian" with ``accelerate=False``.
    scale : "robust" or None, default "robust"
        Units in which the columns of dense X are seen, as in `sparse_rf`; `coef` are of the columns
        as seen. None: as they are, as CSR columns are in any case.
    missing : {"learn", "raise"}, default "learn"
        "learn": NaN in dense X is at its column's centre, and a further input says so. "raise": a
        ValueError.
    loss : str or `sparserf.losses.Loss`, default "squared"
        As in `sparse_rf`, and "smoothed_hinge"; a loss of your own must have a finite `smoothness`.
    tol : float, default 1e-4
        Stop where the relative error of the coefficients, ``||w - w*|| / ||w*||``, is proved to be
        at most tol.
    categorical, fit_intercept, sample_weight, class_weight, offset, validation, groups, rng,
    workers, callback, verbose
        As in `sparse_rf`. The paper has no intercept.

    Returns
    -------
    SparseModel
        Its `coef` has all inputs. `info.error_bound` bounds ``||w - w*|| / ||w*||``, rounding
        included; `info.n_passes`, `info.n_projections` and `info.n_conjugate` tell what it took.
        An alpha that was chosen is `info.alpha`, and a call with it gives the same bits; of the
        constant it is None.

    Raises
    ------
    ValueError, TypeError
        As `sparse_rf`; with ``accelerate=False``, n_projections is missing, or the loss is
        "multinomial" for more than two classes.

    Warns
    -----
    ConvergenceWarning
        The bound is above tol at the end: by n_iter, by rounding, or since the paper's iteration
        diverges with too few projections.
    CopiedRowsWarning, GroupedRowsWarning
        As `sparse_rf`, for alpha=None.

    See Also
    --------
    drp_path : Fit models for many penalties, from one basis or sketch.

    Notes
    -----
    Time O(nnz k) for k passes over the nnz numbers of X, and O(nnz r + d r^2) for a basis of r
    directions, or O(n m^2 + m^3) a step for a sketch. Memory, beyond X: O((n + d) n_outputs), with
    a basis (2 n + d) r, with a sketch n m. For alpha=None penalties fall by a factor of 5 on folds
    of at most 16,000 rows, which are copied. The page "The algorithms" has more on the arguments.

    References
    ----------
    L. Zhang, M. Mahdavi, R. Jin, T. Yang, S. Zhu, Recovering the Optimal Solution by Dual Random
    Projection, COLT 2013. Algorithms 1 and 2.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 20)) @ rng.normal(size=(20, 5000))  # 5,000 inputs of rank 20
    >>> y = X[:, :10].sum(axis=1) + rng.normal(size=300)
    >>> model = srf.drp(X, y, alpha=0.1, rng=0)
    >>> model.coef.shape, model.info.error_bound < 1e-4
    ((5000,), True)
    >>> model = srf.drp(X, y, rng=0)
    >>> model.info.chosen
    'alpha=0.1065, by the loss on 5 folds'
    """
    call = locals()
    options, choice = DRPOptions.of_call(call), FoldOptions.of_call(call)
    if alpha is not None:
        alpha = check_real("alpha", alpha, 0, strict=True)
        choice.check_not_given("alpha is given")
        return fit_paths(read_task(X, y, options), options, [alpha])[0]
    task = read_task(X, y, options)
    model = fit_as_chosen(task, options, choice.with_splits(X, y, groups), PenaltyPath)
    if model.info.alpha is None or not is_in_rounds(task, options):
        return model
    # as where this alpha is given: to the tolerance
    (again,) = fit_paths(task, options, [model.info.alpha])
    how = {"validation_loss": model.info.validation_loss, "chosen": model.info.chosen}
    return replace(again, info=replace(again.info, **how))


@shows_progress
def drp_path(
    X: MatrixLike,
    y: ArrayLike,
    *,
    alphas: ArrayLike,
    n_projections: int | None = None,
    n_iter: int | None = None,
    accelerate: bool = True,
    projection: Literal["auto"] | ProjectionName = "auto",
    scale: Units = "robust",
    missing: Missing = "learn",
    categorical: Categorical = None,
    loss: LinearLossLike = "squared",
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    offset: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    tol: float = 1e-4,
    rng: Seed = None,
    workers: int = 1,
    callback: Callback = None,
    verbose: bool | None = None,
) -> list[SparseModel]:
    """Fit models of `drp` for many penalties, largest first, each from the one before, with one
    basis or sketch.

    Parameters
    ----------
    X, y
        As in `drp`.
    alphas : sequence of float
        Penalties, > 0; they are used in descending order.
    n_projections, n_iter, accelerate, projection, scale, missing, categorical, loss, fit_intercept,
    sample_weight
        As in `drp`. Where n_projections is None, the basis or sketch grows for smaller penalties.
    class_weight, offset, groups, tol, rng, workers, callback, verbose
        As in `drp`.

    Returns
    -------
    list of SparseModel
        One for each penalty, `info.alpha` descending.

    Raises
    ------
    ValueError, TypeError
        As `drp`.

    Warns
    -----
    ConvergenceWarning
        As `drp`, for each penalty.

    Notes
    -----
    Time: a fit for each penalty, less the basis or sketch and what a near starting point saves.
    Memory as for `drp`, and d numbers for each model and output.

    References
    ----------
    As `drp`.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1000))
    >>> models = srf.drp_path(X, np.sign(X[:, 0]), alphas=[1, 0.1, 0.01], loss="logistic", rng=0)
    >>> [model.info.alpha for model in models], all(model.info.converged for model in models)
    ([1.0, 0.1, 0.01], True)
    """
    options = DRPOptions.of_call(locals())
    alphas = check_alphas(alphas).tolist()
    return fit_paths(read_task(X, y, options), options, alphas)


class PenaltyPath:
    """The `Method` by which folds choose a penalty: on each fold a fit goes down the same
    penalties, with one basis or sketch.

    The fits are accelerated, whatever the options: the paper's iteration has the same optimum.
    """

    arguments: tuple[str, ...] = ("alpha",)
    has_constant: bool
    is_given: bool = False
    errors: float = 0.5
    patience: int = 2

    def __init__(self, task: Task, folds: Folds, options: DRPOptions):
        self._options = replace(options, accelerate=True, rng=deepcopy(options.rng))
        self.has_constant = options.fit_intercept
        self._n_fitted, self._n_rows = folds.n_fitted, task.rows.n_rows
        fit = linear_fit(folds.task.centered(self.has_constant), [1.0], self._options)
        fit.set_penalty(1.0, np.inf)
        self._trace = fit.trace()

    def places(self, n_rows: int) -> list[float]:
        """Return the penalties, falling."""
        # The best penalty of a model w is about (its noise) / (n |w|^2); of w that explains the
        # share q of the variance it is at most trace / (n q).
        largest = self._trace * min(1.0, 1 / (LEAST_SHARE * n_rows))
        return np.clip(largest * FACTOR ** np.arange(MOST_PENALTIES), 1e-300, 1e300).tolist()

    def begin(self, task: Task) -> list[NewtonFit]:
        """Return the fit of all targets of a task, at zero coefficients."""
        # folds may begin on several threads, each with the same draws
        options = replace(self._options, rng=deepcopy(self._options.rng))
        is_ridge = task.loss.is_quadratic and has_few_inputs(task.rows, options.n_projections)
        task, places = task.centered(self.has_constant), self.places(task.rows.n_rows)
        return [(RidgeFit if is_ridge else NewtonFit)(task, places, options)]

    def advance(self, fits: Sequence[NewtonFit], place: float) -> None:
        """Let the fit go on to a penalty."""
        for fit in fits:
            fit.fit_at(place, TOL_ON_FOLDS, STEPS_ON_FOLDS)

    def models(
        self, fits: Sequence[NewtonFit], place: float
    ) -> list[tuple[tuple[float], list[Solution]]]:
        """Return the one model of a penalty; of all rows, which are more, it is as much less."""
        alpha = place * self._n_fitted / self._n_rows
        return [((alpha,), [fit.solution() for fit in fits])]

    def fit(
        self, task: Task, options: DRPOptions, values: Sequence[tuple[float] | None]
    ) -> SparseModel:
        """Return the model of the penalty that was chosen."""
        if values[0] is not None:
            return fit_path(task, options, values[0])[0]
        constant = NewtonFit(task, [1.0], options)
        constant.fit_at(1.0, np.inf, 0)
        model = with_ranges(model_of([constant.fit], task), task)
        return replace(model, info=replace(model.info, alpha=None))


def fit_paths(task: Task, options: DRPOptions, alphas: Sequence[float]) -> list[SparseModel]:
    """Return a model of each penalty, from one path; or where the loss has free parameters, from a
    fit of its own."""
    # near the optimum the loss is as far above it as the square of the distance
    how = {"enough": options.tol**2, "most": MOST_ROUNDS}
    return models_of_each(task, options, fit_path, alphas, **how)


def fit_path(task: Task, options: DRPOptions, alphas: Sequence[float]) -> list[SparseModel]:
    """Return a model of each penalty, each fit started from the one before; a warning names the
    line that called the caller."""
    with single_threaded_blas():
        newton = NewtonFit(task, alphas, options)
        fit = newton.fit
        if not options.accelerate:
            R = make_projection(
                options.kind, fit.inputs.n_features, options.n_projections, options.rng
            )
            projected = ProjectedProblem(fit, R)

        diverges = False

        def go_to(fit, alpha):
            nonlocal diverges
            fit.progress.restart()
            if options.accelerate:
                newton.fit_at(alpha, options.tol, options.most_iterations)
            else:
                fit.set_penalty(alpha, options.tol)
                diverges = algorithm_2(fit, projected, options.most_iterations)
                fit.progress.correct(fit.objective())  # on the way to w* it may rise

        def complaint(info):
            return f"alpha={info.alpha:.3g}: {_complaint(fit, info, diverges)}"

        with fit.inputs.rows, np.errstate(over="ignore", invalid="ignore"):
            return models_along(alphas, [fit], go_to, task, options.budget, complaint)


def _complaint(fit, info, diverges):
    """Return the complaint of a warning about a fit that has ended before it converged."""
    if diverges:
        return (
            f"the iteration diverges: n_projections={fit.n_projections} is too small; raise it, "
            "or accelerate"
        )
    is_rounding = fit.certificate.is_rounding.all()
    why = (
        "the rest of it may be rounding; raise tol or alpha"
        if is_rounding
        else "raise n_iter, tol or alpha"
    )
    bound = (
        "no bound on the error"
        if info.error_bound is None
        else f"a bound on the error of {info.error_bound:.2g} of ||w||, above tol={fit.tol:.2g}"
    )
    return f"stopped after {info.n_iter} iterations with {bound}; {why}"
