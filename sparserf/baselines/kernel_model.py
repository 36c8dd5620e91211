"""KernelModel: what the kernel machines return, an expansion in training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._base.threads import check_workers, single_threaded_blas
from ..model import BaseModel, identity
from ..rows import as_rows
from .kernels import Kernel

if TYPE_CHECKING:
    from .._base.types import DenseOrCSR, MatrixLike


@dataclass(frozen=True, eq=False)
class KernelModel(BaseModel):
    """f(x) = intercept + sum_i coef_i k(x, rows_i). Made by `kernel_ridge` and `kernel_svm`; immutable.

    Attributes
    ----------
    kernel : Kernel
        With `name`, and `gamma` or `radius`.
    rows : array or CSR matrix of shape (n_support, n_features)
        The training rows with a coefficient that is not zero.
    support : int64 ndarray of shape (n_support,)
        Their indices, ascending.
    coef : ndarray of shape (n_support,), or (n_classes, n_support) for more than two classes
    intercept : float, or ndarray of shape (n_classes,)
    loss : {"squared", "squared_hinge"}
    classes : None, or ndarray of shape (n_classes,)
    norm : float, or ndarray of shape (n_classes,)
        Of f - intercept in the kernel's Hilbert space, sqrt(a'Ka).
    objective, dual_gap : float
        At the end, and a bound on its distance to the optimum. One-vs-rest: sums.

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

    def decision_function(self, X: MatrixLike, workers: int = 1) -> np.ndarray:
        """f(x): shape (n_samples,), or (n_samples, n_classes) for more than two classes.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.

        Returns
        -------
        ndarray
            float32 for float32 X, float64 for all else. Time O(n_samples * n_support * n_features); memory O(n_support)
            and blocks of some megabytes a worker.
        """
        return self._map_decisions(X, workers, identity)

    def _map_decisions(self, X, workers, finish):
        rows = as_rows(X, workers, n_features=self.rows.shape[1])
        X = rows.array()
        f = np.zeros((X.shape[0], *self.coef.shape[:-1]))
        with single_threaded_blas():
            for part, product in self.kernel.blocks(X, self.rows, check_workers(workers), lambda K: K @ self.coef.T):
                f[part] = product
        with np.errstate(over="ignore"):  # infinite beyond the largest float, of float32 X beyond that of float32
            f = (f + self.intercept).astype(X.dtype, copy=False)
        return rows.to_namespace_of_X(rows.vectors.map(lambda f: finish(f.T), rows.vectors.put(f.T), axis=0))
