"""Dual Random Projection (Zhang et al. 2013): the optimal linear model from a problem of a few random projections."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._base.checks import check_alphas, check_callable, check_choice, check_flag, check_integer, check_real, check_rng
from .._base.progress import parts, reported
from .._base.threads import check_workers, single_threaded_blas
from ..columns.fallback import with_fallbacks
from ..features import PROJECTIONS, make_projection
from ..linear.choice import steps_of
from ..linear.classes import LinearClasses
from ..linear.descent import descend
from ..linear.fit import LinearFit
from ..linear.projected import Projected
from ..model import warn_unconverged
from .drp_fit import linear_fit
from .task import model_of, partial_fits_on_error

if TYPE_CHECKING:

    from numpy.typing import ArrayLike

    from .._base.types import Callback, Categorical, LinearLossLike, MatrixLike, Missing, ProjectionName, Seed
    from ..model import SparseModel

# Iterations where n_iter leaves their number to the tolerance.
MOST_ITER = 100


def algorithm_2(fit: LinearFit, projected: Projected, max_iter: int) -> None:
    """Algorithm 2 of the paper; Algorithm 1 where T, max_iter, is 1. X_hat = X R / sqrt(m)."""
    projected.begin()
    for _ in range(max_iter):  #   for t = 1, ..., T
        projected.solve()  #         z = argmin alpha/2 |z + R'w / sqrt(m)|^2 + (1/n) sum_i L(z'x_hat_i + w'x_i, y_i)
        projected.recover()  #       a_i = L'(z'x_hat_i + w'x_i, y_i) / n;  w = -X'a / alpha
        if fit.record() or fit.has_diverged:
            return


@reported
def drp(
    X: MatrixLike, y: ArrayLike, *, alpha: float, n_projections: int | None = None, n_iter: int | None = None,
    accelerate: bool = True, projection: Literal["auto"] | ProjectionName = "auto", missing: Missing = "learn",
    categorical: Categorical = None, loss: LinearLossLike = "squared", fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None, tol: float = 1e-6, rng: Seed = None, workers: int = 1, callback: Callback = None,
    verbose: bool | None = None,
) -> SparseModel:  # fmt: skip
    r"""Dual Random Projection: the optimal linear model of many inputs, by way of a few random projections of them.

    Minimises, over the coefficients w of all inputs and the intercept b,

    .. math:: \frac1n \sum_i s_i L(b + w^T x_i, y_i) + \frac\alpha2 \|w\|^2

    with sample weights s of mean 1, and bounds the distance to the minimum. The rows are projected once,
    :math:`\hat X = X R / \sqrt m` with m projections; what the projected problem knows of the dual variables leads back to
    w. By default the projected rows, where they are needed, precondition conjugate gradients on Newton's steps: m decides
    how fast they converge, and rounding how far. ``accelerate=False`` is the paper's own iteration, which needs m some
    twenty times the effective rank of X.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        float32 stays float32; all else becomes float64. Never modified, densified or copied whole. Where there is an
        intercept a shift of a column changes what rounding changes, and no more.
    y : array of shape (n_samples,), or (n_samples, n_outputs) for several real targets
        With a classification loss the labels, any two, or more for one-vs-rest. All outputs share one sketch. With
        loss="multinomial" the classes are fitted in turns until the bound holds for all coefficients together.
    alpha : float
        Penalty, > 0: the paper's lambda / n, scikit-learn's Ridge alpha / n, 1/(n C) of LogisticRegression.
    n_projections : int or None, default None
        m. None: none, for as long as conjugate gradients on X itself are quick; where they are slow, as many as the effective
        dimension of X at alpha asks for, found by growing, in no more memory than X, and if they are enough to pay. Where
        the inputs are few (2,048 or less, dense, and no more than rows) their second moments, of a sample of the rows where
        these are many, take the place of a sketch, and come first where they take the time of few passes over X. Must be
        given where not accelerate.
    n_iter : int or None, default None
        Most iterations: steps of Newton's method, of which the squared loss needs one or two, with loss="multinomial" rounds of
        one for each class; or T of Algorithm 2, 1 being Algorithm 1. None: until tol, at most 100. Steps at larger penalties,
        from which the other losses come down to alpha where w starts at 0, do not count.
    accelerate : bool, default True
        Newton's method on the problem itself, which a sketch may precondition. False: the iteration of the paper.
    projection : {"auto", "gaussian", "sparse_sign", "srht"}, default "auto"
        R: normal entries, as in the paper; eight random signs an input; or a subsampled randomised Hadamard transform, which
        takes m up to the next power of two from n_features. "auto": "sparse_sign"; "gaussian" where not accelerate.
    missing : {"learn", "raise"}, default "learn"
        NaN in dense X in host memory. "learn": the mean of the column stands for a missing number, beside an input that says
        that it is missing; "raise": a ValueError.
    categorical : sequence of names, of indices, or a mask; or None, default None
        As in `sparse_rf`: columns that become inputs of zeros and ones, beside those of strings in a data frame.
    loss : str or `sparserf.losses.Loss`, default "squared"
        As in `sparse_rf`, and "smoothed_hinge": 1/2 - y z for y z < 0, (1 - y z)^2 / 2 up to y z = 1, then 0. Your own must
        have a finite `smoothness`.
    fit_intercept : bool, default True
        The intercept is not penalised. The paper has none.
    sample_weight : array of shape (n_samples,) or None, default None
        As in `sparse_rf`: nonnegative, relative to their mean.
    tol : float, default 1e-6
        The bound on ``||w - w*|| / ||w*||`` at which to stop.
    rng : None, int or numpy.random.Generator, default None
        Seed of the projections.
    workers : int, default 1
        Threads; -1 for all cores. The result is the same, bit for bit, for any number.
    callback : callable or None, default None
        Called with the `FitInfo` so far after each iteration, and within one that takes long; returning True ends the fit.
    verbose : bool or None, default None
        As in `sparse_rf`.

    Returns
    -------
    SparseModel
        `coef` of all inputs. `info.error_bound` is certified: ``||w - w*||`` is at most sqrt(2 gap / alpha) for any dual point,
        by the strong convexity of the penalty, and less where the losses are curved in all directions; what rounding may add
        is included, its errors taken as independent. `info.n_projections`: m, 0
        where there was no need; `info.n_conjugate`: steps of conjugate gradients, of one pass over X each, or two on a sketch.

    Raises
    ------
    ValueError, TypeError
        As `sparse_rf`; where not accelerate, n_projections missing, or the loss "multinomial" of more than two classes.

    Warns
    -----
    ConvergenceWarning
        The bound is above tol at the end: n_iter is too small, or what is left may be rounding, as where alpha is below
        1e-12 of the mean ``||x_i||^2`` and there are more than 256 inputs, or where columns differ by 1e10 in size and the loss
        is a hinge; w is then often nearer than can be told. Or the paper's iteration diverges, m being too small; the best w
        on its way is returned.

    See Also
    --------
    drp_path : Models for many penalties, from one sketch.

    Notes
    -----
    Time O(nnz k) for k steps of conjugate gradients; on a sketch O(nnz (k + 8)), and O(n m^2 + m^3) a Newton step. Memory,
    beyond X: O((n + d) n_outputs), O(n m) for a sketch, and blocks of some megabytes a worker; d^2 where the inputs are few.

    References
    ----------
    L. Zhang, M. Mahdavi, R. Jin, T. Yang, S. Zhu, Recovering the Optimal Solution by Dual Random Projection, COLT 2013.
    Algorithms 1 and 2. As a preconditioner, with the number of projections found by doubling: J. Lacotte, M. Pilanci,
    Effective Dimension Adaptive Sketching Methods for Faster Regularized Least-Squares Optimization, NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 20)) @ rng.normal(size=(20, 5000))  # 5,000 inputs of rank 20
    >>> y = X[:, :10].sum(axis=1) + rng.normal(size=300)
    >>> model = srf.drp(X, y, alpha=0.1, rng=0)
    >>> model.coef.shape, model.info.error_bound < 1e-6
    ((5000,), True)
    """
    alphas, columns = [check_real("alpha", alpha, 0, strict=True)], {"missing": missing, "categorical": categorical}
    return _models(
        X, y, alphas, n_projections, n_iter, accelerate, projection, columns, loss, fit_intercept, sample_weight, tol, rng,
        workers, callback,
    )[0]  # fmt: skip


@reported
def drp_path(
    X: MatrixLike, y: ArrayLike, *, alphas: ArrayLike, n_projections: int | None = None, n_iter: int | None = None,
    accelerate: bool = True, projection: Literal["auto"] | ProjectionName = "auto", missing: Missing = "learn",
    categorical: Categorical = None, loss: LinearLossLike = "squared", fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None, tol: float = 1e-6, rng: Seed = None, workers: int = 1, callback: Callback = None,
    verbose: bool | None = None,
) -> list[SparseModel]:  # fmt: skip
    """Models of `drp` for many penalties, largest first, each started from the one before, from one sketch.

    Parameters
    ----------
    X, y, n_projections, n_iter, accelerate, projection, missing, categorical, loss, fit_intercept, sample_weight, tol, rng
        As in `drp`.
    workers, callback, verbose
        As in `drp`. Where m is left to the data, the sketch grows by what a smaller penalty needs beyond it.
    alphas : sequence of float
        Penalties, > 0; used in descending order.

    Returns
    -------
    list of SparseModel
        One a penalty, `info.alpha` descending.

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
    The time of a fit for each penalty, less the sketch and what a near starting point saves. Memory as `drp`, and d
    numbers a model and output.

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
    columns = {"missing": missing, "categorical": categorical}
    return _models(
        X, y, check_alphas(alphas).tolist(), n_projections, n_iter, accelerate, projection, columns, loss, fit_intercept,
        sample_weight, tol, rng, workers, callback,
    )  # fmt: skip


def _models(X, y, alphas, n_projections, n_iter, accelerate, projection, columns, loss, fit_intercept, sample_weight, tol, rng,
            workers, callback):  # fmt: skip
    """A model of each penalty; what is wrong with it is a warning at the line that calls the caller."""
    tol = check_real("tol", tol, 0, strict=True)
    n_iter = MOST_ITER if n_iter is None else check_integer("n_iter", n_iter, 1)
    with single_threaded_blas():
        fit, minimise, task = _begin(
            X, y, alphas, n_projections, accelerate, projection, columns, loss, fit_intercept, sample_weight, rng, workers,
            callback,
        )  # fmt: skip
        with fit.inputs.rows, partial_fits_on_error([fit], task):
            models = [_fit(fit, task, minimise, alpha, tol, n_iter) for alpha in parts(alphas, is_open=True)]
    for model, what in models:
        if what:
            warn_unconverged(f"alpha={model.info.alpha:.3g}: {what}")
    return [model for model, _ in models]


@np.errstate(over="ignore", invalid="ignore")
def _fit(fit, task, minimise, alpha, tol, n_iter):
    """(the model, what is wrong with it)."""
    fit.progress.restart()
    fit.begin(alpha, tol)
    minimise(fit, max_iter=n_iter)
    return with_fallbacks(model_of([fit], task), task), _complaint(fit)


def _begin(X, y, alphas, n_projections, accelerate, projection, columns, loss, fit_intercept, sample_weight, rng, workers,
           callback):  # fmt: skip
    """(the fit, minimise(fit, max_iter), the task)."""
    m = None if n_projections is None else check_integer("n_projections", n_projections, 1)
    accelerate = check_flag("accelerate", accelerate)
    kind = check_choice("projection", projection, ("auto", *PROJECTIONS))
    kind = kind if kind != "auto" else "sparse_sign" if accelerate else "gaussian"
    if not accelerate and m is None:
        raise ValueError("n_projections must be given where accelerate=False, got None: some 20 times the rank of X")
    rng, workers = check_rng(rng), check_workers(workers)
    callback = check_callable("callback", callback)
    fit, task = linear_fit(X, y, alphas, loss, fit_intercept, sample_weight, workers, rng, columns, callback)
    if task.is_joint:
        if not accelerate:
            raise ValueError("accelerate must be True for loss='multinomial' and more than two classes, got False")
        steps = steps_of(fit.inputs, fit.problem.fit_intercept, m, kind, rng, len(task.targets))
        return fit, partial(LinearClasses.descend, steps=steps), task
    if accelerate:
        return fit, partial(descend, steps=steps_of(fit.inputs, fit.problem.fit_intercept, m, kind, rng)[0]), task
    projected = Projected(fit, make_projection(kind, fit.inputs.n_features, m, rng))
    return fit, partial(algorithm_2, projected=projected), task


def _complaint(fit):
    if fit.converged or fit.ended_by_callback:
        return None
    if fit.has_diverged:
        return f"the iteration diverges: n_projections={fit.n_projections} is too small; raise it, or accelerate"
    info, is_rounding = fit.info(), fit.certificate.is_rounding.all()
    why = "what is left of it may be rounding; raise tol or alpha" if is_rounding else "raise n_iter, tol or alpha"
    return (
        f"stopped after {info.n_iter} iterations with a bound on the error of {info.error_bound:.2g} of ||w||, above "
        f"tol={fit.tol:.2g}; {why}"
    )
