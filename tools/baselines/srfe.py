"""Sparse Random Feature Expansion, which HARFE compares with: basis pursuit denoising by the
Lasso."""

import numpy as np

from sparserf._base.threads import single_threaded_blas
from sparserf.algorithms.arguments import RowSetting
from sparserf.algorithms.model_of_fits import model_of
from sparserf.algorithms.sparse_rf.descent import L1Fit, exact_descent
from sparserf.algorithms.sparse_rf.options import SparseRFOptions
from sparserf.algorithms.task import Task
from sparserf.features import make_dictionary


def srfe(X, y, *, features, eta=1e-2, tol=1e-6, max_iter=40, workers=1):
    r"""Fit a Sparse Random Feature Expansion: basis pursuit denoising on features that are drawn.

    .. math:: \min \|c\|_1 \quad\text{subject to}\quad
              \sqrt{\tfrac1n \sum_i (f(x_i) - y_i)^2} \le \eta\, \sigma_y

    with sigma_y the standard deviation of y. The solutions are those of the Lasso, `sparse_rf` with
    exact=True, each of which begins where the last one ended. The penalty, ``info.alpha`` of the
    model, is halved until the residual is low enough, and then bisected until it is within 1 % of
    what was asked, by max_iter fits at most.

    features : a `FeatureSet`
    tol : the relative duality gap at which each Lasso stops

    A. Hashemi, H. Schaeffer, R. Shi, U. Topcu, G. Tran, R. Ward, Generalization Bounds for Sparse
    Random Feature Expansions, 2021.
    """
    task = Task.from_arrays(X, y, RowSetting(workers=workers)).centered(True)
    how = dict.fromkeys(("n_components", "batch_size", "gamma", "rng"))
    dictionary = make_dictionary(features, task.rows, **how)
    fit = L1Fit(task, task.targets[0], dictionary, SparseRFOptions(tol=tol))

    def residual():
        return fit.progress.unit * np.sqrt(2 * fit.problem.mean_loss(fit.A.z)) / (eta * np.std(y))

    with single_threaded_blas(), task.rows:
        high, low = fit.largest_gradient(), 0.0
        alpha = high / 2
        for _ in range(max_iter):
            fit.restart(alpha)
            exact_descent(fit)
            if 0.99 <= residual() <= 1:
                break
            low, high = (alpha, high) if residual() < 1 else (low, alpha)
            alpha = np.sqrt(low * high) if low else high / 2
        return model_of([fit], task)
