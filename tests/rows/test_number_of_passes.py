"""How often a fit asks all its rows: from disk each pass reads everything, on a cluster each is a round trip."""

import numpy as np
import pytest

import sparserf as srf
from sparserf import baselines
from sparserf.rows import Rows

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2000, 10))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2] + 0.1 * RNG.standard_normal(2000)
KERNEL = {"features": "gaussian", "gamma": 0.05, "n_components": 1000, "rng": 0}
HARFE = {"n_components": 1000, "n_nonzero_coefs": 50, "rng": 0}

EXACT = {"alpha": 0.005, "exact": True, "tol": 1e-6, **KERNEL}

# (the most passes for an iteration, and beside these; a fit, which returns a model). Asked twice, any question is too many.
FITS = {
    # The scales and the first gradient. The products of new columns; the new point with the gradient at it.
    "harfe": (2, 1, lambda: srf.harfe(X, Y, **HARFE)),
    # Three steps of Newton's method with their Hessians, the point, the gradient at it.
    "harfe logistic": (5, 1, lambda: srf.harfe(X, Y > 0, loss="logistic", **HARFE)),
    "harfe squared_hinge": (9, 1, lambda: srf.harfe(X, Y > 0, loss="squared_hinge", **HARFE)),
    # The first gradient; a column of the table; the residual at the end.
    "mfga": (1, 2, lambda: srf.mfga(X, Y, n_nonzero_coefs=20, **KERNEL)),
    # The first gradient. The products of new columns; the new point with the gradient at it.
    "mfga several": (2, 1, lambda: srf.mfga(X, Y, n_nonzero_coefs=20, n_select=4, **KERNEL)),
    "mfga best phase": (2, 1, lambda: srf.mfga(X, Y, n_nonzero_coefs=10, best_phase=True, **KERNEL)),
    "mfga two outputs": (2, 1, lambda: srf.mfga(X, np.column_stack([Y, X[:, 1]]), n_nonzero_coefs=10, n_select=2, **KERNEL)),
    # Steps of Newton's method with a Hessian that is kept: some five, the last with the gradient at the new point.
    "mfga logistic": (7, 1, lambda: srf.mfga(X, Y > 0, n_nonzero_coefs=20, loss="logistic", **KERNEL)),
    "mfga squared_hinge": (7, 1, lambda: srf.mfga(X, Y > 0, n_nonzero_coefs=20, loss="squared_hinge", **KERNEL)),
    # A batch: the gradients, unless they came with the last step of the one before; of each of some rounds the products of what
    # enters, and the step with the next look.
    "sparse_rf": (10, 0, lambda: srf.sparse_rf(X, Y, alpha=0.005, batch_size=250, **KERNEL)),
    "sparse_rf exact": (3, 0, lambda: srf.sparse_rf(X, Y, batch_size=250, **EXACT)),
    # A step with its margins, and at the best intercept there the gradients with the next look.
    "sparse_rf logistic": (24, 0, lambda: srf.sparse_rf(X, Y > 0, alpha=0.002, batch_size=250, loss="logistic", **KERNEL)),
    "sparse_rf auto": (3, 8, lambda: srf.sparse_rf(X, Y, alpha=0.02, n_components=2000, rng=0)),
    # The gradient at the constant, the Gram matrix, the solution.
    "rks": (3, 0, lambda: baselines.rks(X, Y, alpha=0.01, **{**KERNEL, "n_components": 50})),
}


@pytest.mark.parametrize("name", FITS)
def test_passes_over_all_rows(name, monkeypatch):
    an_iteration, beside, fit = FITS[name]
    asked, staged = [], Rows.staged

    def recorded(rows, stage, is_asked_often=False):
        shown = staged(rows, stage, is_asked_often)
        if is_asked_often:
            asked.append(shown)
        return shown

    monkeypatch.setattr(Rows, "staged", recorded)
    n_iter = fit().info.n_iter
    assert len(asked) == 1
    assert 0 < asked[0].n_passes <= an_iteration * n_iter + beside
