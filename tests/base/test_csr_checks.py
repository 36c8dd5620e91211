"""Checks of sparse X: indices are copied at the start of a call, so that changing them during it
changes nothing."""

import threading
import time
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf._base.checks import check_X

pytestmark = pytest.mark.filterwarnings("ignore:y is -1 or 1 alone")
FITS = {
    "sparse_rf": {
        "features": "gaussian",
        "gamma": 0.5,
        "alpha": 0.002,
        "n_components": 200,
        "batch_size": 40,
        "exact": True,
    },
    "harfe": {
        "n_components": 200,
        "n_nonzero_coefs": 20,
        "tol": 0,
        "start": "zero",
        "step_size": 0.5,
        "max_iter": 5,
    },
    "mfga": {"n_nonzero_coefs": 10},
    "drp": {"alpha": 1e-4, "loss": "logistic", "n_projections": 10},
}
GARBAGE = (10**9, -(2**31))


def rows(kind=sp.csr_array, n=300, d=40):
    """Draw sparse rows of that kind, and labels of -1 and 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.2)
    return kind(X), np.sign(X @ rng.standard_normal(d) + 0.1)


def corrupt(X, garbage):
    """Overwrite the indices of a CSR matrix."""
    X.indices[:], X.indptr[:] = garbage, garbage
    X.indptr[0] = 0


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", FITS)
@pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")
def test_structure_changed_in_a_fit_changes_nothing(name, kind, garbage):
    heard = []

    def callback(info):
        if not heard:
            corrupt(X, garbage)
        heard.append(info)

    X, y = rows(kind)
    plain = getattr(srf, name)(X, y, rng=0, workers=2, callback=lambda info: None, **FITS[name])
    model = getattr(srf, name)(X, y, rng=0, workers=2, callback=callback, **FITS[name])
    assert len(heard) >= 2 and (X.indices == garbage).all()
    assert model.coef.tobytes() == plain.coef.tobytes()
    np.testing.assert_array_equal(model.support, plain.support)


def test_structure_changed_by_a_thread_in_a_prediction_changes_nothing():
    X, y = rows(n=3000)
    model = srf.sparse_rf(X, y, rng=0, **FITS["sparse_rf"])
    plain, whole, end = model.predict(X), X.copy(), threading.Event()

    def corrupts():
        while not end.is_set():
            corrupt(X, 10**9)
            X.indices[:], X.indptr[:] = whole.indices, whole.indptr
            time.sleep(1e-4)

    thread, n_right = threading.Thread(target=corrupts), 0
    thread.start()
    try:
        for _ in range(100):
            with suppress(ValueError):  # X may be invalid at the start of the call
                np.testing.assert_array_equal(model.predict(X, workers=2), plain)
                n_right += 1
    finally:
        end.set()
        thread.join()
    assert n_right > 0


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "csc_array", "coo_array", "bsr_array"])
def test_values_of_csr_are_shared_and_indices_never(kind):
    X, _ = rows(getattr(sp, kind))
    mine = check_X(X)
    assert np.shares_memory(mine.data, X.data) == (X.format == "csr")
    for places in X.coords if X.format == "coo" else (X.indices, X.indptr):
        assert not np.shares_memory(mine.indices, places) and not np.shares_memory(
            mine.indptr, places
        )
    np.testing.assert_array_equal(mine.toarray(), X.toarray())


@pytest.mark.parametrize("column", [-1, 3, 10**6])
def test_lil_with_a_column_that_does_not_exist(column):
    X = sp.lil_array((3, 3))
    X[0, 1] = 1
    X.rows[0] = [column]
    with pytest.raises(ValueError, match="X is not a valid sparse matrix: indices must lie in"):
        check_X(X)


PLACES = [np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_array, sp.bsr_array]


@pytest.mark.parametrize("of", PLACES, ids=lambda of: of.__name__)
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_errors_name_the_row_and_the_column(of, bad):
    X = np.random.default_rng(0).normal(size=(20, 4)) * (np.arange(4) % 3 > 0)
    X[7, 2] = bad
    with pytest.raises(ValueError, match=rf"^X must be finite, got {bad} at \[7, 2\]$"):
        srf.drp(of(X), X[:, 1], alpha=0.1)
    model = srf.drp(np.nan_to_num(X, posinf=0, neginf=0), X[:, 1], alpha=0.1)
    X[9, 1] = X[12, 1] = bad
    with pytest.raises(ValueError, match=rf"^X must be finite, got {bad} at \[7, 2\] and 2 more$"):
        model.predict(of(X))


@pytest.mark.parametrize("name", ["y", "sample_weight", "offset", "groups"])
@pytest.mark.parametrize(
    "make",
    [
        lambda y: sp.csr_array(y[:, None]),
        lambda y: sp.csc_matrix(y[:, None]),
        lambda y: sp.coo_array(y[None]),
        lambda y: sp.coo_array(y),
    ],
)
def test_what_is_given_for_each_row_is_dense(name, make):
    X = np.random.default_rng(0).uniform(1, 2, (20, 3))
    y = X[:, 0]
    with pytest.raises(TypeError, match=rf"^{name} must be dense, got a sparse .*: give {name}.to"):
        srf.drp(X, **{"y": y, name: make(y)}, alpha=0.1)
    if name == "y":
        with pytest.raises(TypeError, match=r"^y must be dense"):
            srf.sparse_rf(X, make(y > 1.5), loss="logistic", rng=0)
