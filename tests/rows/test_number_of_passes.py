"""How many passes over the rows a fit takes: from disk each pass reads everything, on a cluster
each is a round trip."""

import numpy as np
import pytest

import sparserf as srf
from sparserf.rows import Rows
from sparserf.rows.core_block import CoreBlock

from .homes import NAMED as IN_BATCHES
from .homes import X as IN_MEMORY
from .homes import Y as TARGET

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2000, 10))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2] + 0.1 * RNG.standard_normal(2000)
KERNEL = {"features": "gaussian", "gamma": 0.05, "n_components": 1000, "rng": 0}
HARFE = {
    "activation": "sin",
    "n_components": 1000,
    "n_nonzero_coefs": 50,
    "alpha": 1e-4,
    "rng": 0,
}

EXACT = {"alpha": 0.005, "exact": True, "tol": 1e-6, **KERNEL}

# The most passes for each iteration, the most besides, and a fit. One question that is asked twice
# exceeds them.
FITS = {
    # Once the scales and the first gradient; each iteration the products of new columns, and the
    # new iterate with its gradient.
    "harfe": (2, 1, lambda: srf.harfe(X, Y, **HARFE)),
    # Each iteration three steps of Newton's method with their Hessians, the iterate, and its
    # gradient.
    "harfe logistic": (5, 1, lambda: srf.harfe(X, Y > 0, loss="logistic", **HARFE)),
    "harfe squared_hinge": (9, 1, lambda: srf.harfe(X, Y > 0, loss="squared_hinge", **HARFE)),
    # Once the first gradient and at the end the residual; once in some iterations two for several
    # lines of the table.
    "mfga": (0.6, 2, lambda: srf.mfga(X, Y, n_nonzero_coefs=20, alpha=1e-3, **KERNEL)),
    # Once the first gradient; each iteration the products of new columns, and the new iterate with
    # its gradient.
    "mfga several": (
        2,
        1,
        lambda: srf.mfga(X, Y, n_nonzero_coefs=20, alpha=1e-3, n_select=4, **KERNEL),
    ),
    "mfga best phase": (
        2,
        1,
        lambda: srf.mfga(X, Y, n_nonzero_coefs=10, alpha=1e-3, best_phase=True, **KERNEL),
    ),
    "mfga two outputs": (
        2,
        1,
        lambda: srf.mfga(
            X, np.column_stack([Y, X[:, 1]]), n_nonzero_coefs=10, alpha=1e-3, n_select=2, **KERNEL
        ),
    ),
    # Each iteration some five steps of Newton's method with a Hessian that is kept, the last with
    # the gradient.
    "mfga logistic": (
        7,
        1,
        lambda: srf.mfga(X, Y > 0, n_nonzero_coefs=20, alpha=1e-3, loss="logistic", **KERNEL),
    ),
    "mfga squared_hinge": (
        7,
        1,
        lambda: srf.mfga(X, Y > 0, n_nonzero_coefs=20, alpha=1e-3, loss="squared_hinge", **KERNEL),
    ),
    # Each batch its gradients, unless they came with the last step before it; each round in it the
    # products of the features that enter, and the step together with the gradients after it.
    "sparse_rf": (10, 0, lambda: srf.sparse_rf(X, Y, alpha=0.005, batch_size=250, **KERNEL)),
    "sparse_rf exact": (3, 0, lambda: srf.sparse_rf(X, Y, batch_size=250, **EXACT)),
    # Each step its margins, and the gradients at the best intercept there.
    "sparse_rf logistic": (
        24,
        0,
        lambda: srf.sparse_rf(X, Y > 0, alpha=0.002, batch_size=250, loss="logistic", **KERNEL),
    ),
    "sparse_rf auto": (3, 8, lambda: srf.sparse_rf(X, Y, alpha=0.02, n_components=2000, rng=0)),
}


@pytest.mark.parametrize("name", FITS)
def test_passes_over_all_rows(name, monkeypatch):
    an_iteration, beside, fit = FITS[name]
    asked, encoded = [], Rows.encoded

    def recorded(rows, encoder, is_asked_often=False):
        shown = encoded(rows, encoder, is_asked_often)
        if is_asked_often:
            asked.append(shown)
        return shown

    monkeypatch.setattr(Rows, "encoded", recorded)
    n_iter = fit().info.n_iter
    assert len(asked) == 1
    assert 0 < asked[0].n_passes <= an_iteration * n_iter + beside


# Of an exact fit, the most looks at the whole dictionary in single and in double precision, the
# terms that it has, and the fit. The bounds on gradients go from one precision to the other, and
# from one penalty to the next.
MANY = {**KERNEL, "n_components": 5000, "batch_size": 500, "exact": True}
EXACT_FITS = {
    "squared": (6.2, 0.2, 250, lambda: srf.sparse_rf(X, Y, alpha=0.005, **MANY)),
    "logistic": (
        5.4,
        0.2,
        120,
        lambda: srf.sparse_rf(X, Y > 0, alpha=0.005, loss="logistic", **MANY),
    ),
    "path of 12": (
        21.5,
        0.8,
        250,
        lambda: srf.sparse_rf_path(X, Y, alphas=np.geomspace(0.1, 0.005, 12), **MANY)[-1],
    ),
}


@pytest.mark.parametrize("name", EXACT_FITS)
def test_looks_at_the_dictionary(name, monkeypatch):
    """An exact fit makes few features for its certificate, and the gap is that over all of them."""
    most_single, most_double, n_terms, fit = EXACT_FITS[name]
    made, correlate = {np.float32: 0, np.float64: 0}, CoreBlock.correlate

    def counted(block, features, v):
        made[block.dtype.type] += len(features) * block.n_rows
        return correlate(block, features, v)

    monkeypatch.setattr(CoreBlock, "correlate", counted)
    model = fit()
    single, double = (made[kind] / len(X) / 5000 for kind in (np.float32, np.float64))
    assert 2 < single <= most_single and double <= most_double
    assert model.info.converged and len(model.coef) >= n_terms


# The most passes over all rows that each fit to chunks takes, and the fit.
FITS_TO_CHUNKS = {
    "sparse_rf": (60, lambda X, y: srf.sparse_rf(X, y, alpha=0.01, **IN_BATCHES)),
    "sparse_rf exact": (52, lambda X, y: srf.sparse_rf(X, y, alpha=0.01, exact=True, **IN_BATCHES)),
    "harfe": (
        25,
        lambda X, y: srf.harfe(X, y, n_components=500, n_nonzero_coefs=20, alpha=1e-4, rng=0),
    ),
    "mfga": (14, lambda X, y: srf.mfga(X, y, n_nonzero_coefs=10, alpha=1e-3, rng=0)),
    "drp": (5, lambda X, y: srf.drp(X, y, alpha=0.01, scale=None, rng=0)),
    "drp logistic": (18, lambda X, y: srf.drp(X, y > 0, alpha=0.01, loss="logistic", rng=0)),
}


@pytest.mark.parametrize("name", FITS_TO_CHUNKS)
def test_passes_over_chunks(name):
    """A pass reads each block once; beside the passes the first blocks are read for the type of the
    rows and for samples."""
    most, fit = FITS_TO_CHUNKS[name]
    starts = []
    fit(
        srf.Chunks(
            lambda start, stop: starts.append(start) or IN_MEMORY[start:stop],
            IN_MEMORY.shape,
            block_rows=250,
        ),
        TARGET,
    )
    assert 0 < min(map(starts.count, starts)) <= most
