"""Dual Random Projection: the optimal linear model, recovered from a problem of a few random
projections of the inputs.

Algorithms 1 and 2 of L. Zhang, M. Mahdavi, R. Jin, T. Yang, S. Zhu, Recovering the Optimal Solution
by Dual Random Projection, COLT 2013, are `algorithm_2` below, with T = 1 and more. The paper sums
the losses, and here is their mean: lambda is n alpha.

By default a fit goes to the same optimum by Newton's method on the problem itself, where random
combinations of the rows or projections of the inputs precondition conjugate gradients that would be
slow without; see `linear/`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._base.checks import (
    check_alphas,
    check_choice,
    check_flag,
    check_integer,
    check_real,
    checked,
)
from .._base.progress import parts, shows_progress
from .._base.threads import single_threaded_blas
from ..features import PROJECTIONS, Linear, make_projection
from ..linear import (
    AdaptiveSteps,
    Inputs,
    InputSteps,
    LinearFit,
    LinearProblem,
    MultinomialLinearFit,
    ProjectedProblem,
    RangeBasis,
    RangeSteps,
    Sketch,
    SketchSteps,
    descend,
)
from ..losses import LOSSES
from ..model import warn_unconverged
from ..solvers.multinomial import MultinomialProblem
from .arguments import FitOptions
from .fallback import with_fallbacks
from .task import Task, model_of, partial_fits_on_error, with_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike, Seed
    from ..columns.stage import Missing
    from ..columns.table import Categorical
    from ..columns.targets import ClassWeight
    from ..features.projections import ProjectionName
    from ..losses import LinearLossLike
    from ..model import Callback, SparseModel

# A step of Algorithm 2 of STEP_GROWTH times the shortest so far is divergence, unless it is below
# STEP_ROUNDING times |w|. A rising objective is no sign of divergence: w comes nearer to w*, and
# may pass where the objective is higher.
STEP_GROWTH, STEP_ROUNDING = 10.0, 1e-9
# The inputs' own second moments take the place of a sketch up to FEW_INPUTS inputs; up to
# MOST_FEW_INPUTS where at least the share DENSE of the entries of X is not zero.
FEW_INPUTS, MOST_FEW_INPUTS, DENSE = 256, 2048, 0.25
# Second moments that take longer than this number of passes over the rows wait until conjugate
# gradients take as many steps.
FEW_PASSES = 10


def algorithm_2(fit: LinearFit, projected: ProjectedProblem, T: int) -> bool:
    """Run Algorithm 2 of the DRP paper (Algorithm 1 with T = 1); return whether the iteration
    diverges.

    It ends before T once the fit's tolerance is met. Where it diverges, the fit goes back to the w
    that was nearest to w*. Here X_hat = X R / sqrt(m).
    """
    shortest, nearest, distance = np.inf, fit.iterate, fit.certificate.distance.max()
    # for t = 1, ..., T
    for _ in range(T):
        before = fit.w
        # z = argmin alpha/2 |z + R'w / sqrt(m)|^2 + (1/n) sum_i L(z'x_hat_i + w'x_i, y_i)
        small = projected.solve()
        projected.recover(small)  #   a_i = L'(z'x_hat_i + w'x_i, y_i) / n;  w = -X'a / alpha
        step, size = np.linalg.norm(fit.w - before), np.linalg.norm(fit.w)
        diverges = not step <= max(STEP_GROWTH * shortest, STEP_ROUNDING * size)
        shortest = min(step, shortest)
        if fit.certificate.distance.max() < distance:
            nearest, distance = fit.iterate, fit.certificate.distance.max()
        if diverges:
            fit.move_to(nearest)
            fit.certify()
        if fit.record() or diverges:
            return diverges
    return False


@shows_progress
def drp(
    X: MatrixLike,
    y: ArrayLike,
    *,
    alpha: float,
    n_projections: int | None = None,
    n_iter: int | None = None,
    accelerate: bool = True,
    projection: Literal["auto"] | ProjectionName = "auto",
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
) -> SparseModel:
    r"""Fit the optimal linear model of many inputs, certified, by Dual Random Projection.

    It minimises, over the coefficients w of all inputs and the intercept b,

    .. math:: \frac1n \sum_i s_i L(b + w^T x_i, y_i) + \frac\alpha2 \|w\|^2

    with sample weights s of mean 1, and bounds how far w is from its optimum. With the losses
    "quantile", "poisson" and "tweedie" alpha is in a unit that makes w the same in all units of y:
    see "Penalties and units" on the page on losses. The paper projects the rows once, :math:`\hat X
    = X R / \sqrt m` with m projections, and the dual variables of the projected problem lead back
    to w; that is ``accelerate=False``, which needs m some twenty times the effective rank of X. By
    default this is Newton's method on the problem itself. Where its conjugate gradients would be
    slow they are preconditioned by a basis of the range of X, if X is of low effective rank at
    alpha, or by the projected rows.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        float32 stays float32; all else becomes float64. X is never modified, densified or copied
        whole. Where there is an intercept, adding a constant to a column changes the model by
        rounding only.
    y : array of shape (n_samples,), or (n_samples, n_outputs) for several real targets The target;
        with a classification loss the labels, any two, or more for one-vs-rest. All outputs share
        one sketch. With loss="multinomial" the classes are fitted in turns until the bound holds
        for all coefficients together.
    alpha : float
        Penalty, > 0: the paper's lambda / n, scikit-learn's Ridge alpha / n, 1/(n C) of
        LogisticRegression. It is multiplied by 1 / the spread of y for "quantile", by the mean of y
        for "poisson", by a power of it for "tweedie".
    n_projections : int or None, default None
        The number m of projections, which must be given with ``accelerate=False``. None chooses
        what takes the fewest passes over X: nothing, a basis of the range, a sketch with as many
        projections as the effective dimension asks for, or, where the inputs are few (2,048 or
        less, dense, and no more than rows), their second moments. "Beyond the paper" on the page on
        methods says how.
    n_iter : int or None, default None
        Iterations at most; None iterates until tol, 100 times at most. An iteration is a step of
        Newton's method, of which the squared loss needs one or two, or with loss="multinomial" a
        round of one step for each class. With ``accelerate=False`` it is T of Algorithm 2, and 1 is
        Algorithm 1. Steps at larger penalties, by which other losses than the squared one come down
        to alpha, do not count.
    accelerate : bool, default True
        True is Newton's method on the problem itself, which a sketch may precondition; False is the
        iteration of the paper.
    projection : {"auto", "gaussian", "sparse_sign", "srht"}, default "auto" The kind of R.
        "gaussian" has normal entries, as in the paper; "sparse_sign" eight random signs an input;
        "srht" is a subsampled randomised Hadamard transform, for which m may be up to the next
        power of two from n_features. "auto" is "sparse_sign", or "gaussian" with
        ``accelerate=False``.
    missing : {"learn", "raise"}, default "learn"
        What to do with NaN in dense X in host memory. "learn" puts the mean of the column in place
        of a missing number, and adds an input that says where it was missing; "raise" raises a
        ValueError.
    categorical : sequence of names, of indices, or a mask; or None, default None As in `sparse_rf`:
        these columns become inputs of zeros and ones, as columns of strings in a data frame do.
    loss : str or `sparserf.losses.Loss`, default "squared"
        As in `sparse_rf`, and "smoothed_hinge": 1/2 - y z for y z < 0, (1 - y z)^2 / 2 up to y z =
        1, then 0. A loss of your own must have a finite `smoothness`.
    fit_intercept : bool, default True
        Whether to fit an intercept, which is not penalised. The paper has none.
    sample_weight : array of shape (n_samples,) or None, default None
        As in `sparse_rf`: nonnegative; they count relative to their mean.
    class_weight : "balanced", mapping of label to weight, or None, default None
        As in `sparse_rf`.
    offset : array of shape (n_samples,), or (n_samples, n_outputs) for several real targets; or
        None, default None What is added to f in the loss of each row, such as the log of the
        exposures, as in `sparse_rf`.
    groups : array of shape (n_samples,) or None, default None
        The group of each row, as in `sparse_rf`: no row's mean of a category comes from its own
        group.
    tol : float, default 1e-4
        The fit stops once the relative error of the coefficients, ``||w - w*|| / ||w*||`` with w*
        the optimum, is proved to be at most tol. The proof holds for any data, so that the error
        itself is often a hundredth of that.
    rng : None, int or numpy.random.Generator, default None
        Seed of the projections.
    workers : int, default 1
        Threads; -1 for all cores. The result is the same, bit for bit, for any number.
    callback : callable or None, default None
        Called with the `FitInfo` so far after each iteration, and within one that takes long;
        returning True ends the fit.
    verbose : bool or None, default None
        As in `sparse_rf`.

    Returns
    -------
    SparseModel
        Its `coef` has all inputs. `info.error_bound` bounds ``||w - w*|| / ||w*||``. It is
        certified: ``||w - w*||`` is at most sqrt(2 gap / alpha) for any dual point, by the strong
        convexity of the penalty, and less where the losses are curved in all directions; what
        rounding may add is included, its errors taken as independent. `info.n_passes` is the number
        of passes over X, `info.n_projections` that of directions of the basis or of projections of
        the sketch, 0 without one, and `info.n_conjugate` that of steps of conjugate gradients, of
        one pass each, or two on a sketch.

    Raises
    ------
    ValueError, TypeError
        As `sparse_rf`; with ``accelerate=False``, n_projections is missing, or the loss is
        "multinomial" for more than two classes.

    Warns
    -----
    ConvergenceWarning
        The bound is above tol at the end. Either n_iter is too small; or what is left may be
        rounding, as where alpha is below 1e-12 of the mean ``||x_i||^2`` and there are more than
        256 inputs, or where columns differ by 1e10 in size and the loss is a hinge, and w is then
        often nearer than can be told; or the paper's iteration diverges since m is too small, and
        the best w on its way is returned.

    See Also
    --------
    drp_path : Fit models for many penalties, from one basis or sketch.

    Notes
    -----
    Time is O(nnz k) for k passes over X, nnz the numbers that X holds: some ten with a basis where
    r directions are nearly all of X, beside the O(nnz r + d r^2) of drawing them and O(n r^2) a
    Newton step; O(n m^2 + m^3) a step with a sketch. Memory beyond X is O((n + d) n_outputs), n m
    for a sketch, (2 n + d) r for a basis, at most twice that of X, d^2 where the d inputs are few,
    and blocks of some megabytes a worker.

    References
    ----------
    L. Zhang, M. Mahdavi, R. Jin, T. Yang, S. Zhu, Recovering the Optimal Solution by Dual Random
    Projection, COLT 2013. Algorithms 1 and 2. The basis: N. Halko, P.-G. Martinsson, J. A. Tropp,
    Finding Structure with Randomness, SIAM Review 53, 2011, Algorithm 4.2; as a preconditioner: Z.
    Frangella, J. A. Tropp, M. Udell, Randomized Nystroem Preconditioning, SIAM J. Matrix Anal.
    Appl. 44, 2023. The sketch as one, with m found by doubling: J. Lacotte, M. Pilanci, Effective
    Dimension Adaptive Sketching Methods for Faster Regularized Least-Squares Optimization, NeurIPS
    2020.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 20)) @ rng.normal(size=(20, 5000))  # 5,000 inputs of rank 20
    >>> y = X[:, :10].sum(axis=1) + rng.normal(size=300)
    >>> model = srf.drp(X, y, alpha=0.1, rng=0)
    >>> model.coef.shape, model.info.error_bound < 1e-4
    ((5000,), True)
    """
    alphas = [check_real("alpha", alpha, 0, strict=True)]
    return _fit_path(X, y, alphas, DRPOptions.of_call(locals()))[0]


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
    n_projections, n_iter, accelerate, projection, missing, categorical, loss, fit_intercept,
    sample_weight
        As in `drp`. Where n_projections is None, the basis or sketch grows by what a smaller
        penalty needs beyond it.
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
    return _fit_path(X, y, check_alphas(alphas).tolist(), DRPOptions.of_call(locals()))


@dataclass(frozen=True, kw_only=True, eq=False)
class DRPOptions(FitOptions):
    """The arguments of `drp` and `drp_path` beyond X, y and the penalties, checked.

    An accelerated fit draws its projections and directions, and samples rows, with rng.
    """

    features: Linear = field(default_factory=Linear)
    n_projections: int | None = checked(check_integer, 1, default=None)
    n_iter: int | None = checked(check_integer, 1, default=None)
    accelerate: bool = checked(check_flag, default=True)
    projection: Literal["auto"] | ProjectionName = checked(
        check_choice, ("auto", *PROJECTIONS), default="auto"
    )
    tol: float = checked(check_real, 0, strict=True, default=1e-4)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.accelerate and self.n_projections is None:
            raise ValueError(
                "n_projections must be given where accelerate=False, got None: some 20 times the "
                "rank of X"
            )

    @property
    def most_iterations(self) -> int:
        """The most iterations; so many that the tolerance decides where the user gives none."""
        return 100 if self.n_iter is None else self.n_iter

    @property
    def kind(self) -> ProjectionName:
        """The kind of projection."""
        if self.projection != "auto":
            return self.projection
        return "sparse_sign" if self.accelerate else "gaussian"


def _fit_path(X, y, alphas, options):
    """Return a model of each penalty, each fit started from the one before; a warning names the
    line that called the caller."""
    models, complaints = [], []
    with single_threaded_blas():
        fit, task = linear_fit(X, y, alphas, options)
        if not options.accelerate:
            R = make_projection(
                options.kind, fit.inputs.n_features, options.n_projections, options.rng
            )
            projected = ProjectedProblem(fit, R)
        else:
            steps = _choose_steps(fit, options, n_fits=len(task.targets) if task.is_joint else 1)
        with fit.inputs.rows, partial_fits_on_error([fit], task):
            for alpha in parts(alphas, is_open=True):
                with np.errstate(over="ignore", invalid="ignore"):
                    fit.progress.restart()
                    fit.begin(alpha, options.tol)
                    diverges = False
                    if not options.accelerate:
                        diverges = algorithm_2(fit, projected, options.most_iterations)
                    elif task.is_joint:
                        fit.descend(steps, options.most_iterations)
                    else:
                        descend(fit, steps[0], options.most_iterations)
                    models.append(with_ranges(with_fallbacks(model_of([fit], task), task), task))
                    complaints.append(_complaint(fit, diverges))
    for model, complaint in zip(models, complaints, strict=True):
        if complaint:
            warn_unconverged(f"alpha={model.info.alpha:.3g}: {complaint}")
    return models


def linear_fit(
    X: MatrixLike, y: ArrayLike, alphas: Sequence[float], options: DRPOptions
) -> tuple[LinearFit | MultinomialLinearFit, Task]:
    """Return a fit at zero coefficients, of all outputs or of all classes together, and its task.

    alphas : the penalties that the fit will turn to
    """
    task = Task.from_options(X, y, options, losses=LOSSES, several_outputs="together")
    smoothness = task.loss_of(np.vstack(task.targets)).smoothness
    if np.isinf(smoothness) and not task.loss.is_self_concordant:
        raise ValueError(
            "loss must have a finite smoothness, with which drp bounds the effect of rounding, "
            f"got {task.loss!r}"
        )
    fit_intercept = options.fit_intercept
    task = task.centered(fit_intercept)
    if task.is_joint and not options.accelerate:
        raise ValueError(
            "accelerate must be True for loss='multinomial' and more than two classes, got False"
        )
    targets = np.vstack(task.targets)
    problem, progress = (
        task.problem(LinearProblem, targets, 1.0, fit_intercept),
        task.progress(options.callback, targets),
    )
    inputs = Inputs.from_rows(task.rows, problem.weight, fit_intercept, alphas)
    if task.is_joint:
        problems = [
            task.problem(LinearProblem, y[None, :], 1.0, fit_intercept) for y in task.targets
        ]
        joint = MultinomialProblem.from_targets(
            task.rows.vectors, task.targets, task.weight, fit_intercept
        )
        return MultinomialLinearFit(inputs, problems, joint, progress), task
    return LinearFit(inputs, problem, progress, unit=problem.alpha), task


def _choose_steps(fit, options, n_fits):
    """Return what makes the Newton steps of each of n_fits: `InputSteps`, `SketchSteps`, or what is
    quickest."""
    inputs, m = fit.inputs, options.n_projections
    few = max(FEW_INPUTS, min(MOST_FEW_INPUTS, inputs.rows.row_size / DENSE))
    if inputs.n_features <= min(inputs.n_rows, few, inputs.n_features if m is None else m):
        steps = [InputSteps(inputs, options.rng) for _ in range(n_fits)]
        if m or steps[0].n_passes <= FEW_PASSES:
            return steps
        return [AdaptiveSteps(lambda own=own: own, slow=own.n_passes) for own in steps]
    # all share one
    sketch = cache(lambda: Sketch(inputs, m, options.kind, fit.problem.fit_intercept, options.rng))
    if m:
        return [SketchSteps(sketch()) for _ in range(n_fits)]
    basis = RangeBasis(inputs, fit.problem.fit_intercept, options.rng)
    return [
        AdaptiveSteps(lambda: SketchSteps(sketch()), first=RangeSteps(basis)) for _ in range(n_fits)
    ]


def _complaint(fit, diverges):
    """Return what is wrong with a fit that has ended, for a warning, or None."""
    if fit.converged or fit.ended_by_callback:
        return None
    if diverges:
        return (
            f"the iteration diverges: n_projections={fit.n_projections} is too small; raise "
            "it, "
            "or accelerate"
        )
    info, is_rounding = fit.info(), fit.certificate.is_rounding.all()
    why = (
        "what is left of it may be rounding; raise tol or alpha"
        if is_rounding
        else "raise n_iter, tol or alpha"
    )
    return (
        f"stopped after {info.n_iter} iterations with a bound on the error of "
        f"{info.error_bound:.2g} of ||w||, above "
        f"tol={fit.tol:.2g}; {why}"
    )
