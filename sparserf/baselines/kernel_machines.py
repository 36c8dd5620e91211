"""The kernel machines that random features approximate: kernel ridge regression, and a support
vector machine.

f is in the span of the kernel at the rows, f = sum_i a_i k(x_i, .), so that Newton's method is on n
numbers, with the kernel matrix K in memory; of the squared hinge only the rows inside the margin
enter a step (O. Chapelle, Training a Support Vector Machine in the Primal, Neural Computation 19,
2007).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np

from .._base.calls import checks_call
from .._base.checks import check_choice, check_flag, check_integer, check_real, is_sparse
from .._base.floats import methods_as_ieee
from .._base.threads import Workers, check_workers, single_threaded_blas
from ..algorithms.arguments import RowSetting
from ..algorithms.task import Task, in_units
from ..features import Fourier, Perceptron, distances
from ..model import BaseModel, identity, warn_unconverged
from ..rows import HostVectors, as_rows
from ..solvers import ridge
from ..solvers.problem import backtrack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from .._base.types import DenseOrCSR, MatrixLike
    from ..columns.targets import ClassWeight
    from ..features.bandwidth import Gamma
    from ..rows import Rows

KERNELS = ("gaussian", "laplacian", "perceptron", "gaussian+linear")
MachineKernel: TypeAlias = Literal["gaussian", "laplacian", "perceptron", "gaussian+linear"]
# Entries of the kernel matrix in a block: 8 MB, and a few such arrays a worker while it is made.
BLOCK_ENTRIES = 2**20
# Largest duality gap of kernel ridge regression, relative to its objective, that is no reason to
# warn.
TOLERANCE = 1e-3
# Arrays as large as the kernel matrix that a fit may hold at once.
MATRICES = 4


@checks_call
def kernel_ridge(
    X: MatrixLike,
    y: ArrayLike,
    *,
    kernel: MachineKernel = "gaussian",
    gamma: Gamma = None,
    alpha: float = 1e-3,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    max_rows: int = 20_000,
    workers: int = 1,
) -> KernelModel:
    r"""Fit kernel ridge regression.

    .. math:: \min_{f, b} \frac1n \sum_i \frac{s_i}2 (f(x_i) + b - y_i)^2 + \frac\alpha2 \|f\|_K^2

    with sample weights s of mean 1: f = sum_i a_i k(x_i, .) where (K + n alpha diag(1/s)) a = y - b
    and sum(a) = 0.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    kernel : {"gaussian", "laplacian", "perceptron", "gaussian+linear"}, default "gaussian" k(x, z):
        "gaussian" is ``exp(-gamma |x - z|_2^2)``, "laplacian" ``exp(-gamma |x - z|_1)``,
        "perceptron" ``1 - c_d |x - z|_2 / radius`` as in `Perceptron`, with the radius read off X,
        and "gaussian+linear" the mean of the first and x'z.
    gamma : float, None or "knn", default None
        As in `Fourier`; the rules look at a fixed sample of the rows.
    alpha : float, default 1e-3
        Penalty, > 0; scikit-learn's KernelRidge takes alpha * n_samples.
    fit_intercept : bool, default True
        The intercept is not penalised.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative; they count relative to their mean.
    max_rows : int, default 20_000
        More rows are an error: the kernel matrix of 20,000 takes 3 GiB, and a fit up to four times
        that.
    workers : int, default 1
        Threads that make the kernel matrix; -1 for all cores. The result does not depend on it.

    Returns
    -------
    KernelModel

    Raises
    ------
    ValueError, TypeError
        X has more than max_rows rows; gamma is given beside the perceptron kernel; else as
        `sparse_rf`.

    Warns
    -----
    ConvergenceWarning
        The duality gap is above a thousandth of the objective: alpha is too small for floating
        point.

    Notes
    -----
    Time O(n^2 d + n^3) on one thread of BLAS, memory up to 32 n^2 bytes.

    References
    ----------
    C. Saunders, A. Gammerman, V. Vovk, Ridge Regression Learning Algorithm in Dual Variables, ICML
    1998.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.baselines import kernel_ridge
    >>> X = np.linspace(-3, 3, 100)[:, None]
    >>> model = kernel_ridge(X, np.sin(2 * X.ravel()), gamma=1.0)
    >>> bool(np.abs(model.predict(X) - np.sin(2 * X.ravel())).max() < 0.1)
    True
    """
    options = KernelOptions(
        loss="squared",
        kernel=kernel,
        gamma=gamma,
        alpha=check_real("alpha", alpha, 0, strict=True),
        fit_intercept=check_flag("fit_intercept", fit_intercept),
        sample_weight=sample_weight,
        class_weight=None,
        max_rows=check_integer("max_rows", max_rows, 1),
        workers=workers,
        tol=0.0,
        max_iter=1,
    )
    model, share = _fit(X, y, options)
    if share > TOLERANCE:
        _warn(model, alpha, TOLERANCE, "raise alpha")
    return model


@checks_call
def kernel_svm(
    X: MatrixLike,
    y: ArrayLike,
    *,
    kernel: MachineKernel = "gaussian",
    gamma: Gamma = None,
    alpha: float = 1e-3,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    max_rows: int = 20_000,
    workers: int = 1,
) -> KernelModel:
    r"""Fit a support vector machine with the squared hinge, by Newton's method on the rows inside
    the margin.

    .. math:: \min_{f, b} \frac1n \sum_i s_i \max(0, 1 - y_i (f(x_i) + b))^2
              + \frac\alpha2 \|f\|_K^2

    with sample weights s of mean 1 and y_i = -1 or 1: f = sum_i a_i k(x_i, .), a_i = 0 beyond the
    margin.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        The labels, any two, or more for one-vs-rest.
    kernel, gamma, fit_intercept, sample_weight, max_rows, workers
        As in `kernel_ridge`.
    class_weight : "balanced", mapping of label to weight, or None, default None
        As in `sparse_rf`.
    alpha : float, default 1e-3
        Penalty, > 0; it is 1 / (n C) of LIBSVM's and liblinear's squared hinge of cost C.
    tol : float, default 1e-8
        Largest duality gap, relative to the objective, at which to stop.
    max_iter : int, default 200
        Newton steps at most. It takes ten or so, and more the nearer the classes come to being
        separated.

    Returns
    -------
    KernelModel

    Raises
    ------
    ValueError, TypeError
        As `kernel_ridge`; y has a single class; tol is not positive.

    Warns
    -----
    ConvergenceWarning
        The fit stopped above the tolerance, by max_iter or because floating point allows no further
        descent.

    Notes
    -----
    Time O(n^2 d), and a step O(n^2 + m^3) for m rows inside the margin, at first all; memory up to
    32 n^2 bytes.

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
    options = KernelOptions(
        loss="squared_hinge",
        kernel=kernel,
        gamma=gamma,
        alpha=check_real("alpha", alpha, 0, strict=True),
        fit_intercept=check_flag("fit_intercept", fit_intercept),
        sample_weight=sample_weight,
        class_weight=class_weight,
        max_rows=check_integer("max_rows", max_rows, 1),
        workers=workers,
        tol=check_real("tol", tol, 0, strict=True),
        max_iter=check_integer("max_iter", max_iter, 1),
    )
    model, share = _fit(X, y, options)
    if share > tol:
        _warn(model, alpha, tol, "raise max_iter (or tol, or alpha)")
    return model


def _warn(model, alpha, tol, advice):
    """Warn that the duality gap of a model is above the tolerance."""
    warn_unconverged(
        f"alpha={alpha:.3g}: stopped with a duality gap of {model.dual_gap:.3g} at an objective of "
        f"{model.objective:.3g}, above tol={tol:.2g}; {advice}"
    )


@dataclass(frozen=True)
class KernelOptions:
    """The arguments of a kernel machine, checked except where a check needs X."""

    loss: str
    kernel: MachineKernel
    gamma: Gamma
    alpha: float
    fit_intercept: bool
    sample_weight: ArrayLike | None
    class_weight: ClassWeight
    max_rows: int
    workers: int
    tol: float
    max_iter: int


def _fit(X, y, options):
    """Return the model, and the largest duality gap of a target as a share of its objective."""
    rows = RowSetting(
        options.loss, options.sample_weight, options.class_weight, workers=options.workers
    )
    task = Task.from_arrays(X, y, rows)
    rows, n = task.rows, task.rows.n_rows
    if n > options.max_rows:
        raise ValueError(
            f"X must have at most max_rows={options.max_rows} rows, got {n}: their kernel matrix "
            "takes "
            f"{8 * n * n / 2**30:.3g} GiB, the fit up to {8 * MATRICES * n * n / 2**30:.3g} GiB"
        )
    kernel = Kernel.from_rows(options.kernel, options.gamma, rows, task.weight)
    with single_threaded_blas():
        X = rows.array()
        K = kernel.matrix(X, check_workers(options.workers))
        fits = [KernelFit(K, task, y, options.alpha, options.fit_intercept) for y in task.targets]
        shares = [fit.descend(options.tol, options.max_iter) for fit in fits]
        a, b, norm, objective, gap = zip(*(fit.solution() for fit in fits), strict=True)
    if not (np.isfinite(a).all() and np.isfinite([b, norm]).all()):
        raise ValueError(
            "y must be of moderate size, got values whose coefficients overflow: scale it"
        )
    support = np.flatnonzero(np.any(a, axis=0))
    coef, b, norm = np.array(a)[:, support], np.array(b), np.array(norm)
    if len(fits) == 1:
        coef, b, norm = coef[0], float(b[0]), float(norm[0])
    model = KernelModel(
        kernel=kernel,
        rows=X[support],
        support=task.index[support],
        coef=coef,
        intercept=b,
        loss=task.loss.name,
        classes=task.classes,
        norm=norm,
        objective=sum(objective),
        dual_gap=sum(gap),
    )
    return model, max(shares)


@dataclass(frozen=True, eq=False)
class Iterate:
    """The iterate of a kernel fit: the coefficients a of the rows, the intercept b, and f = K a."""

    a: np.ndarray
    b: float
    f: np.ndarray


class KernelFit:
    """The fit of one target by Newton's method in f, in which the loss is quadratic but for which
    rows count.

    Parameters
    ----------
    K : ndarray of shape (n_rows, n_rows)
    task : Task
    y : ndarray of shape (n_rows,)
        One of its targets.
    alpha : float
    fit_intercept : bool
    """

    def __init__(self, K: np.ndarray, task: Task, y: np.ndarray, alpha: float, fit_intercept: bool):
        self._K, self._unit = K, task.unit(y)
        self._problem = ridge.RidgeProblem.from_arrays(
            HostVectors(len(y)), task.loss, y / self._unit, task.weight, alpha, fit_intercept
        )
        zero = np.zeros(len(y))
        self._iterate = Iterate(zero, self._problem.best_intercept(zero, 0.0), zero)

    def descend(self, tol: float, max_iter: int) -> float:
        """Take steps until the duality gap is at most tol times the objective; return what share of
        it is left."""
        for _ in range(max_iter):
            if self._gap() <= tol * self._objective(self._iterate) or not self._step():
                break
        return self._gap() / max(self._objective(self._iterate), 1e-300)

    def _step(self):
        """Solve for the rows that count, and halve the step until the objective falls; return
        whether it did."""
        problem, here = self._problem, self._iterate
        v, h = problem.dual_point(here.f + here.b), problem.curvature(here.f + here.b)
        inside = np.flatnonzero(h)
        K = self._K if len(inside) == len(here.f) else self._K[np.ix_(inside, inside)]
        solved = ridge.solve_dual(problem, K, v[inside], h[inside], here.f[inside])
        if solved is None:
            return False
        end_a, start = np.zeros(len(here.a)), self._objective(here)
        end_a[inside], e = solved
        end_f = self._K @ end_a

        def iterate_at(t):
            f = here.f + t * (end_f - here.f)
            return Iterate(
                here.a + t * (end_a - here.a), problem.best_intercept(f, here.b + t * e), f
            )

        _, end = backtrack(iterate_at, lambda end, t: self._objective(end) < start)
        self._iterate = here if end is None else end
        return end is not None

    def _objective(self, iterate):
        """Return the objective at an iterate."""
        squared_norm = max(0.0, float(iterate.a @ iterate.f))
        return (
            self._problem.mean_loss(iterate.f + iterate.b)
            + 0.5 * self._problem.alpha * squared_norm
        )

    def _gap(self):
        """Return the duality gap: the most that f can gain of the dual point v is sqrt(v'Kv) times
        its norm."""
        z = self._iterate.f + self._iterate.b
        v, u = self._problem.dual_point(z), self._problem.derivative(z)
        bound = self._problem.dual_value(u, max(0.0, float(v @ self._K @ v)))
        return max(0.0, self._objective(self._iterate) - bound)

    def solution(self) -> tuple[np.ndarray, float, float, float, float]:
        """Return (a, b, norm of f, objective, duality gap) in the units of y."""
        here, unit = self._iterate, self._unit
        values = (in_units(value, unit) for value in (self._objective(here), self._gap()))
        return (
            here.a * unit,
            here.b * unit,
            unit * float(np.sqrt(max(0.0, here.a @ here.f))),
            *values,
        )


@methods_as_ieee
@dataclass(frozen=True, eq=False)
class KernelModel(BaseModel):
    """A fitted kernel machine, f(x) = intercept + sum_i coef_i k(x, rows_i), of `kernel_ridge` or
    `kernel_svm`; immutable.

    Attributes
    ----------
    kernel : Kernel
        Its `name`, and its `gamma` or `radius`.
    rows : array or CSR matrix of shape (n_support, n_features)
        The training rows whose coefficient is not zero.
    support : int64 ndarray of shape (n_support,)
        Their indices among the training rows, ascending.
    coef : ndarray of shape (n_support,), or (n_classes, n_support) for more than two classes
    intercept : float, or ndarray of shape (n_classes,)
    loss : {"squared", "squared_hinge"}
    classes : None, or ndarray of shape (n_classes,)
    norm : float, or ndarray of shape (n_classes,)
        The norm of f - intercept in the kernel's Hilbert space, sqrt(a'Ka).
    objective, dual_gap : float
        The objective of the fit, and a bound on its distance to the optimum. One-vs-rest: sums over
        the classes.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 100)[:, None]
    >>> model = srf.baselines.kernel_ridge(X, np.sin(2 * X.ravel()), gamma=1.0, alpha=1e-4)
    >>> model.coef.shape, bool(abs(model.predict(X) - np.sin(2 * X.ravel())).max() < 0.05)
    ((100,), True)
    """

    kernel: Kernel
    rows: DenseOrCSR
    support: np.ndarray
    coef: np.ndarray
    intercept: float | np.ndarray
    loss: str
    classes: np.ndarray | None
    norm: float | np.ndarray
    objective: float
    dual_gap: float

    def __repr__(self) -> str:
        return f"KernelModel({self.kernel}, {len(self.support)} rows, loss={self.loss!r})"

    def decision_function(
        self, X: MatrixLike, workers: int = 1, *, offset: ArrayLike | None = None
    ) -> np.ndarray:
        """Compute f(x): shape (n_samples,), or (n_samples, n_classes) for more than two classes.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.
        offset : array of shape (n_samples,) or None, default None
            What is added to f, as in `predict`.

        Returns
        -------
        ndarray
            float32 for float32 X, float64 for all else. Time O(n_samples * n_support * n_features);
            memory O(n_support) and blocks of some megabytes a worker.
        """
        return self._map_decisions(X, workers, identity, offset)

    def _map_decisions(self, X, workers, finish, offset):
        """Return finish(f(x) + offset) of each row, where X is."""
        rows = as_rows(X, workers, n_features=self.rows.shape[1])
        offset, X = self._read_offset(offset, X, rows.n_rows), rows.array()
        f = np.zeros((X.shape[0], *self.coef.shape[:-1]))
        with single_threaded_blas():
            for part, product in self.kernel.blocks(
                X, self.rows, check_workers(workers), lambda K: K @ self.coef.T
            ):
                f[part] = product
        f = sum(offset, f + self.intercept).astype(X.dtype, copy=False)
        return rows.to_namespace_of_X(
            rows.vectors.map(lambda f: finish(f.T), rows.vectors.put(f.T), axis=0)
        )


@dataclass(frozen=True)
class Kernel:
    """A kernel by name, with its gamma, or the radius of the perceptron kernel."""

    name: str
    gamma: float | None = None
    radius: float | None = None

    @classmethod
    def from_rows(cls, name: Any, gamma: Gamma, rows: Rows, weight: np.ndarray) -> Self:
        """Return the kernel of that name, of the width that the random features of the same name
        would read off the rows."""
        check_choice("kernel", name, KERNELS)
        if name == "perceptron":
            if gamma is not None:
                raise ValueError(f"gamma must be None where kernel is 'perceptron', got {gamma!r}")
            return cls(name, radius=Perceptron().resolve(rows, None, weight).radius)
        fourier = Fourier(name.removesuffix("+linear"), gamma)
        return cls(name, gamma=fourier.resolve(rows, np.random.default_rng(0), weight).gamma)

    def blocks(
        self,
        A: DenseOrCSR,
        B: DenseOrCSR,
        workers: int,
        use: Callable[[np.ndarray], Any] = lambda K: K,
    ) -> Iterator[tuple[slice, Any]]:
        """Yield (a slice of rows of A, use(K of these rows and B)) in order; the slices depend on
        the shapes alone."""
        if is_sparse(A) != is_sparse(B):
            from scipy.sparse import csr_array

            A, B = csr_array(A), csr_array(B)
        B = B.astype(np.float64, copy=False)  # else once a block
        size = max(1, BLOCK_ENTRIES // max(1, B.shape[0]))
        slices = [slice(i, min(i + size, A.shape[0])) for i in range(0, A.shape[0], size)]
        yield from zip(
            slices,
            Workers(workers).map(lambda rows: use(self._block(A[rows], B)), slices),
            strict=True,
        )

    def matrix(self, X: DenseOrCSR, workers: int) -> np.ndarray:
        """Return the kernel matrix of the rows of X, float64."""
        K = np.empty((X.shape[0], X.shape[0]))
        for rows, block in self.blocks(X, X, workers):
            K[rows] = block
        return K

    def _block(self, A, B):
        """Return the kernel matrix of the rows of A and of B."""
        A = A.astype(np.float64, copy=False)
        if self.name == "perceptron":
            d = A.shape[1]
            c_d = math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
            K = 1 - c_d / self.radius * distances(A, B, "euclidean")
        elif self.name == "laplacian":
            K = np.exp(-self.gamma * distances(A, B, "cityblock"))
        else:
            K = np.exp(-self.gamma * distances(A, B, "euclidean") ** 2)
            if self.name == "gaussian+linear":
                product = A @ B.T
                K = (K + (product.toarray() if is_sparse(product) else product)) / 2
        if not np.isfinite(K).all():
            raise ValueError(
                "X must be of moderate size, got values whose kernel overflows: scale its columns"
            )
        return K
