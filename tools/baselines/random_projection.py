"""The naive solution of a randomly projected problem, from which dual random projection recovers
the optimal one."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import eye_array

import sparserf as srf
from sparserf.features import make_projection

from .decisions import Decides


@dataclass
class LinearModel(Decides):
    coef: np.ndarray
    intercept: float
    classes: np.ndarray | None

    def decision_function(self, X):
        return X @ self.coef + self.intercept


def random_projection(
    X, y, *, alpha, n_projections, loss="squared", fit_intercept=True, rng=None, workers=1
):
    """Fit a linear model of m Gaussian projections of the inputs, and write it as one of the
    inputs: w = R z / sqrt(m), z the solution of `drp` for the rows R'x / sqrt(m).

    R is that of `drp` with ``accelerate=False`` and the same seed. The model predicts nearly as the
    optimum does where X is of low rank and m is large, but w is far from the optimal w*, however
    large m is below the number of inputs.

    L. Zhang, M. Mahdavi, R. Jin, T. Yang, S. Zhu, Recovering the Optimal Solution by Dual Random
    Projection, COLT 2013: w^ of Section 3, and its Theorem 3.
    """
    d = X.shape[1]
    R = make_projection("gaussian", d, n_projections, np.random.default_rng(rng))
    R = R.project(eye_array(d, format="csr"))  # over sqrt(m)
    how = {"loss": loss, "fit_intercept": fit_intercept, "workers": workers}
    small = srf.drp(X @ R, y, alpha=alpha, scale=None, tol=1e-9, rng=0, **how)
    z = np.zeros(n_projections)
    z[small.support] = small.coef
    return LinearModel(R @ z, small.intercept, small.classes)
