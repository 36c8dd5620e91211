"""X in any layout in memory: threads copy blocks of what is not contiguous, and X is never copied
whole."""

import numpy as np
import pytest

import sparserf as srf
from sparserf.features.blocks import monomials
from sparserf.rows import core_block

from ..conftest import peak_memory

N, D = 10_000, 64
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = X[:, 0] + np.sin(X[:, 1])
FEW = {"n_components": 40, "rng": 0}
NAMED, PRODUCTS = (
    srf.sparse_rf(X[:500], Y[:500], features="gaussian", alpha=0.1, **FEW),
    srf.mfga(X[:500], Y[:500], n_nonzero_coefs=4, alpha=1e-3, rng=0),
)
USES = {
    "sparse_rf": lambda X: srf.sparse_rf(X, Y, features="gaussian", alpha=0.3, **FEW),
    "sparse_rf auto": lambda X: srf.sparse_rf(X, Y, alpha=0.3, **FEW),
    "harfe": lambda X: srf.harfe(X, Y, n_nonzero_coefs=4, alpha=1e-4, max_iter=2, **FEW),
    "mfga": lambda X: srf.mfga(X, Y, n_nonzero_coefs=2, alpha=1e-3, rng=0),
    "drp": lambda X: srf.drp(X, Y, alpha=0.01, rng=0),
    "drp sketched": lambda X: srf.drp(X, Y, alpha=0.01, n_projections=4, rng=0),
    "predict": NAMED.predict,
    "predict by products": PRODUCTS.predict,
    "prune": lambda X: srf.prune(NAMED, X, max_terms=2),
}
LAYOUTS = {
    "fortran": lambda: np.asfortranarray(X),
    "broadcast": lambda: np.broadcast_to(X[:, :1], X.shape),
}


def peak(use, X):
    """Return the most bytes that use(X) allocates at a time."""
    with peak_memory() as n_bytes:
        use(X)
    return n_bytes[0]


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_no_layout_of_x_is_copied_whole(use, monkeypatch):
    # X is as many blocks as one of hundreds of megabytes
    monkeypatch.setattr(core_block, "SLICE_NUMBERS", 2**15)
    monkeypatch.setattr(monomials, "COPIED_NUMBERS", 2**15)
    contiguous = peak(USES[use], X)
    for layout, make in LAYOUTS.items():
        assert peak(USES[use], make()) <= contiguous + X.nbytes / 5, layout


@pytest.mark.slow
@pytest.mark.parametrize("model", [NAMED, PRODUCTS], ids=["features", "products"])
def test_prediction_allocates_at_most_a_fifth_of_x(model):
    wide = np.random.default_rng(1).standard_normal((D, 80_000)).T  # 41 MB, in Fortran order
    assert peak(model.predict, wide) <= wide.nbytes / 5
