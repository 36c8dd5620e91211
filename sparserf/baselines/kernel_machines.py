"""The kernel machines that random features approximate: kernel ridge regression, and a support vector machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.calls import checks_call
from .._base.checks import check_flag, check_integer, check_real
from .._base.threads import check_workers, single_threaded_blas
from ..algorithms.task import Task, in_units
from ..model import warn_unconverged
from ..rows import HostVectors
from ..solvers import ridge
from ..solvers.problem import backtrack
from .kernel_model import KernelModel
from .kernels import Kernel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..features.bandwidth import Gamma
    from .kernels import MachineKernel

# Largest duality gap of kernel ridge regression, relative to its objective, that is no reason to warn.
TOLERANCE = 1e-3
# Arrays as large as the kernel matrix that a fit may hold at once.
MATRICES = 4


@checks_call
def kernel_ridge(
    X: MatrixLike, y: ArrayLike, *, kernel: MachineKernel = "gaussian", gamma: Gamma = None, alpha: float = 1e-3,
    fit_intercept: bool = True, sample_weight: ArrayLike | None = None, max_rows: int = 20_000, workers: int = 1,
) -> KernelModel:  # fmt: skip
    r"""Kernel ridge regression.

    .. math:: \min_{f, b} \frac1n \sum_i \frac{s_i}2 (f(x_i) + b - y_i)^2 + \frac\alpha2 \|f\|_K^2

    with sample weights s of mean 1: f = sum_i a_i k(x_i, .) where (K + n alpha diag(1/s)) a = y - b and sum(a) = 0.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    kernel : {"gaussian", "laplacian", "perceptron", "gaussian+linear"}, default "gaussian"
        ``exp(-gamma |x - z|_2^2)``; ``exp(-gamma |x - z|_1)``; ``1 - c_d |x - z|_2 / radius`` as in `Perceptron`, of which the
        radius is read off X; the mean of the first and x'z.
    gamma : float, None or "knn", default None
        As in `Fourier`, with the rules on a fixed sample of the rows.
    alpha : float, default 1e-3
        > 0; scikit-learn's KernelRidge with alpha * n_samples.
    fit_intercept : bool, default True
        The intercept is not penalised.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative, relative to their mean.
    max_rows : int, default 20_000
        More rows are refused: the kernel matrix of 20,000 takes 3 GiB, and a fit up to four times that.
    workers : int, default 1
        Threads that make the kernel matrix; -1 for all cores. The result does not depend on it.

    Returns
    -------
    KernelModel

    Raises
    ------
    ValueError, TypeError
        More than max_rows rows; gamma beside the perceptron kernel; else as `sparse_rf`.

    Warns
    -----
    ConvergenceWarning
        A duality gap above a thousandth of the objective is left: alpha is too small for floating point.

    Notes
    -----
    Time O(n^2 d + n^3) on one thread of BLAS, memory up to 32 n^2 bytes.

    References
    ----------
    C. Saunders, A. Gammerman, V. Vovk, Ridge Regression Learning Algorithm in Dual Variables, ICML 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.baselines import kernel_ridge
    >>> X = np.linspace(-3, 3, 100)[:, None]
    >>> model = kernel_ridge(X, np.sin(2 * X.ravel()), gamma=1.0)
    >>> bool(np.abs(model.predict(X) - np.sin(2 * X.ravel())).max() < 0.1)
    True
    """
    model, share = _fit(X, y, "squared", kernel, gamma, alpha, fit_intercept, sample_weight, max_rows, workers, 0.0, 1)
    if share > TOLERANCE:
        _warn(model, alpha, TOLERANCE, "raise alpha")
    return model


@checks_call
def kernel_svm(
    X: MatrixLike, y: ArrayLike, *, kernel: MachineKernel = "gaussian", gamma: Gamma = None, alpha: float = 1e-3,
    fit_intercept: bool = True, sample_weight: ArrayLike | None = None, tol: float = 1e-8, max_iter: int = 200,
    max_rows: int = 20_000, workers: int = 1,
) -> KernelModel:  # fmt: skip
    r"""Support vector machine with the squared hinge, by Newton's method on the rows inside the margin.

    .. math:: \min_{f, b} \frac1n \sum_i s_i \max(0, 1 - y_i (f(x_i) + b))^2 + \frac\alpha2 \|f\|_K^2

    with sample weights s of mean 1 and y_i = -1 or 1: f = sum_i a_i k(x_i, .), a_i = 0 beyond the margin.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        The labels, any two, or more for one-vs-rest.
    kernel, gamma, fit_intercept, sample_weight, max_rows, workers
        As in `kernel_ridge`.
    alpha : float, default 1e-3
        > 0; 1 / (n C) in LIBSVM and liblinear with the squared hinge of cost C.
    tol : float, default 1e-8
        Largest duality gap, relative to the objective.
    max_iter : int, default 200
        Most of Newton's steps: ten or so, more the nearer the classes come to being separated.

    Returns
    -------
    KernelModel

    Raises
    ------
    ValueError, TypeError
        As `kernel_ridge`; a single class; tol not positive.

    Warns
    -----
    ConvergenceWarning
        Stopped above the tolerance, by max_iter or because floating point allows no further descent.

    Notes
    -----
    Time O(n^2 d), and a step O(n^2 + m^3) for m rows inside the margin, at first all; memory up to 32 n^2 bytes.

    References
    ----------
    O. Chapelle, Training a Support Vector Machine in the Primal, Neural Computation 19, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.baselines import kernel_svm
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = kernel_svm(X, y, gamma=2.0)
    >>> bool(np.mean(model.predict(X) == y) > 0.95), len(model.support) < 200
    (True, True)
    """
    tol, max_iter = check_real("tol", tol, 0, strict=True), check_integer("max_iter", max_iter, 1)
    model, share = _fit(
        X, y, "squared_hinge", kernel, gamma, alpha, fit_intercept, sample_weight, max_rows, workers, tol, max_iter
    )
    if share > tol:
        _warn(model, alpha, tol, "raise max_iter (or tol, or alpha)")
    return model


def _warn(model, alpha, tol, advice):
    warn_unconverged(
        f"alpha={alpha:.3g}: stopped with a duality gap of {model.dual_gap:.3g} at an objective of "
        f"{model.objective:.3g}, above tol={tol:.2g}; {advice}"
    )


def _fit(X, y, loss, kernel, gamma, alpha, fit_intercept, sample_weight, max_rows, workers, tol, max_iter):
    """(model, the largest duality gap of a target as a share of its objective)."""
    task = Task.from_arrays(X, y, loss, sample_weight, workers)
    rows = task.rows
    alpha, fit_intercept = check_real("alpha", alpha, 0, strict=True), check_flag("fit_intercept", fit_intercept)
    n, max_rows = rows.n_rows, check_integer("max_rows", max_rows, 1)
    if n > max_rows:
        raise ValueError(
            f"X must have at most max_rows={max_rows} rows, got {n}: their kernel matrix takes {8 * n * n / 2**30:.3g} "
            f"GiB, the fit up to {8 * MATRICES * n * n / 2**30:.3g} GiB"
        )
    kernel = Kernel.resolve(kernel, gamma, rows, task.weight)
    with single_threaded_blas():
        X = rows.array()
        K = kernel.matrix(X, check_workers(workers))
        fits = [KernelFit(K, task, y, alpha, fit_intercept) for y in task.targets]
        shares = [fit.descend(tol, max_iter) for fit in fits]
        return _model(fits, kernel, X, task), max(shares)


class KernelFit:
    """One target: f = K a + b. Newton's method in f, in which the loss is quadratic but for which rows count."""

    def __init__(self, K: np.ndarray, task: Task, y: np.ndarray, alpha: float, fit_intercept: bool):
        self._K, self._scale = K, task.scale(y)
        self._problem = ridge.RidgeProblem.from_arrays(
            HostVectors(len(y)), task.loss, y / self._scale, task.weight, alpha, fit_intercept
        )
        f = np.zeros(len(y))
        self._point = f, self._problem.best_intercept(f, 0.0), f  # a, b, K a

    def descend(self, tol: float, max_iter: int) -> float:
        """Steps until the duality gap is at most tol times the objective; returns what share of it is left."""
        for _ in range(max_iter):
            if self._gap() <= tol * self._objective(*self._point) or not self._step():
                break
        return self._gap() / max(self._objective(*self._point), 1e-300)

    def _step(self):
        """Solve for the rows that count; halve the step until the objective falls. Returns whether it did."""
        problem, (a, b, f) = self._problem, self._point
        v, h = problem.dual_point(f + b), problem.curvature(f + b)
        inside = np.flatnonzero(h)
        K = self._K if len(inside) == len(f) else self._K[np.ix_(inside, inside)]
        solved = ridge.solve_dual(problem, K, v[inside], h[inside], f[inside])
        if solved is None:
            return False
        end, start = np.zeros(len(a)), self._objective(a, b, f)
        end[inside], e = solved
        end_f = self._K @ end

        def point_at(t):
            new_f = f + t * (end_f - f)
            return a + t * (end - a), problem.best_intercept(new_f, b + t * e), new_f

        _, point = backtrack(point_at, lambda point, t: self._objective(*point) < start)
        self._point = self._point if point is None else point
        return point is not None

    def _objective(self, a, b, f):
        return self._problem.mean_loss(f + b) + 0.5 * self._problem.alpha * max(0.0, float(a @ f))

    def _gap(self):
        """P - D: the most that f can gain of the dual point v is sqrt(v'Kv) times its norm."""
        _, b, f = self._point
        v = self._problem.dual_point(f + b)
        u = self._problem.derivative(f + b)
        bound = self._problem.dual_value(u, max(0.0, float(v @ self._K @ v)))
        return max(0.0, self._objective(*self._point) - bound)

    def solution(self) -> tuple[np.ndarray, float, float, float, float]:
        """(a, b, norm, objective, gap) in the units of y."""
        (a, b, f), scale = self._point, self._scale
        values = (in_units(value, scale) for value in (self._objective(a, b, f), self._gap()))
        return a * scale, b * scale, scale * float(np.sqrt(max(0.0, a @ f))), *values


def _model(fits, kernel, X, task):
    with np.errstate(over="ignore"):
        a, b, norm, objective, gap = zip(*(fit.solution() for fit in fits), strict=True)
    if not (np.isfinite(a).all() and np.isfinite([b, norm]).all()):
        raise ValueError("y must be of moderate size, got values whose coefficients overflow: scale it")
    support = np.flatnonzero(np.any(a, axis=0))
    coef, b, norm = np.array(a)[:, support], np.array(b), np.array(norm)
    if len(fits) == 1:
        coef, b, norm = coef[0], float(b[0]), float(norm[0])
    about = task.loss.name, task.classes, norm, sum(objective), sum(gap)
    return KernelModel(kernel, X[support], task.index[support], coef, b, *about)
