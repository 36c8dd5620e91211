"""What harfe and mfga choose on folds where it is not given, and what they say of it."""

import re
import warnings
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array

import sparserf as srf
from sparserf.algorithms.chosen_on_folds import sizes_to_try

from ..rows.homes import in_chunks

RNG = np.random.default_rng(0)
N = 100
X = RNG.standard_normal((N, 3)) * [1.0, 1e6, 1e-3]
Y = np.sin(2 * X[:, 0]) + X[:, 2] * 1e3 + 0.1 * RNG.standard_normal(N)
TARGETS = {
    "squared": Y,
    "huber": Y,
    "poisson": np.floor(np.exp(Y / 2)),
    "logistic": Y > 0,
    "multinomial": np.digitize(Y, [-0.7, 0.7]),
}
SMALL = {"n_components": 300, "rng": 0, "verbose": False}
BOTH = pytest.mark.parametrize("method", [srf.harfe, srf.mfga])


@cache
def searched(method):
    """Return the model of a search for all that can be chosen."""
    return method(X, Y, **SMALL)


def chosen(model):
    """Return the arguments that a model says were chosen."""
    values = dict(re.findall(r"(\w+)=([\d.e-]+)", model.info.chosen))
    return {"n_nonzero_coefs": int(values["n_nonzero_coefs"]), "alpha": float(values["alpha"])}


@BOTH
@pytest.mark.parametrize("loss", TARGETS)
def test_the_call_with_what_was_chosen_gives_the_same_model(method, loss):
    model = method(X, TARGETS[loss], loss=loss, **SMALL)
    again = method(X, TARGETS[loss], loss=loss, **chosen(model), **SMALL)
    np.testing.assert_array_equal(model.coef, again.coef)
    np.testing.assert_array_equal(model.support, again.support)
    assert model.info.alpha == again.info.alpha == chosen(model)["alpha"]
    assert model.info.validation_loss > 0
    assert again.info.validation_loss is None
    assert again.info.chosen is None


@pytest.mark.slow
@BOTH
def test_one_of_both_may_be_given(method):
    few = method(X, Y, n_nonzero_coefs=4, **SMALL)
    assert chosen(few)["n_nonzero_coefs"] == few.info.n_nonzero == 4
    strong = method(X, Y, alpha=0.3, **SMALL)
    assert strong.info.alpha == chosen(strong)["alpha"] == 0.3


@pytest.mark.slow
@BOTH
def test_workers_and_powers_of_two_change_no_bit(method):
    model = searched(method)
    np.testing.assert_array_equal(method(X, Y, workers=2, **SMALL).coef, model.coef)
    np.testing.assert_array_equal(method(X, 2.0**40 * Y, **SMALL).coef, 2.0**40 * model.coef)
    columns = 2.0 ** np.array([30, -20, 10])
    np.testing.assert_array_equal(method(X * columns, Y, **SMALL).coef, model.coef)


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("single", [False, True])
def test_raw_columns_are_better_than_the_constant(method, single):
    """Also a column of deviation 1e6 that says nothing: a third of the variance at most, in the
    mean over three seeds of data (.05 to .15, measured)."""
    shares = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((300, 3)) * [1.0, 1e6, 1e-3]
        y = np.sin(2 * A[:, 0]) + A[:, 2] * 1e3 + 0.1 * rng.standard_normal(300)
        A = A.astype(np.float32) if single else A
        model = method(A[:150], y[:150], **SMALL | {"rng": seed})
        shares.append(np.mean((model.predict(A[150:]) - y[150:]) ** 2) / y[150:].var())
    assert np.mean(shares) < 1 / 3


@pytest.mark.slow
@BOTH
def test_noise_is_the_constant(method):
    """Of five tables of noise at least four (of ten, 10 and 9, measured)."""
    n_constant = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        model = method(rng.standard_normal((80, 3)), rng.standard_normal(80), **SMALL)
        n_constant += len(model.features) == 0
    assert n_constant >= 4


@BOTH
def test_a_constant_is_a_fit_without_warnings(method):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = method(X, np.full(N, 3.5), **SMALL)
    assert len(model.features) == 0
    assert model.info.converged
    assert model.info.chosen == "the constant, by the loss on 5 folds"
    np.testing.assert_array_equal(model.predict(X), 3.5)


@BOTH
@pytest.mark.parametrize("n", range(1, 11))
def test_few_rows(method, n):
    """One row is an error, more are a fit: perhaps the constant."""
    if n == 1:
        with pytest.raises(ValueError, match="X must have at least two rows"):
            method(X[:1], Y[:1], **SMALL)
        return
    model = method(X[:n], Y[:n], **SMALL)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.slow
@BOTH
def test_a_class_of_one_row(method):
    """Its fold would have nothing to fit of it: it is never held out."""
    y = np.arange(N) == 3
    assert np.isfinite(method(X, y, loss="logistic", **SMALL).predict_proba(X)).all()
    with pytest.raises(ValueError, match="X must have rows to hold out, two of a class"):
        method(X[:2], [0, 1], loss="logistic", **SMALL)


@pytest.mark.slow
@BOTH
def test_huge_targets(method):
    model = method(X, 1e300 * Y, **SMALL)
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.info.validation_loss)


def test_outputs_of_harfe_are_chosen_one_by_one():
    """Noise beside a function takes no term from it, nor has some of its own."""
    model = srf.harfe(X, np.column_stack([Y, RNG.standard_normal(N)]), **SMALL)
    alone = searched(srf.harfe)
    assert not model.coef[1].any()
    np.testing.assert_allclose(model.coef[0], alone.coef, rtol=1e-12)
    assert "constants" in model.info.chosen


def test_outputs_of_mfga_share_their_terms():
    model = srf.mfga(X, np.column_stack([Y, 2 * Y]), **SMALL)
    np.testing.assert_allclose(model.coef[1], 2 * model.coef[0], rtol=1e-6)


@pytest.mark.slow
@BOTH
def test_which_rows_are_held_out(method):
    """Rows of a group are held out together, a mask says which are, and pairs are folds."""
    groups = np.arange(N) // 10
    assert "by the loss on 5 folds" in method(X, Y, groups=groups, **SMALL).info.chosen
    held = np.arange(N) >= 70
    model = method(X, Y, validation=held, **SMALL)
    assert "rows that were held out" in model.info.chosen
    pairs = [(np.flatnonzero(~held), np.flatnonzero(held))] * 2
    assert "2 folds" in method(X, Y, validation=pairs, **SMALL).info.chosen
    # what is held out is not fitted: other targets there change the choice alone
    wild = np.where(held, 1e3 * RNG.standard_normal(N), Y)
    assert len(method(X, wild, validation=held, **SMALL).features) == 0


@BOTH
def test_nothing_is_held_out_where_nothing_is_chosen(method):
    with pytest.raises(ValueError, match="validation must be None where n_nonzero_coefs and alpha"):
        method(X, Y, n_nonzero_coefs=3, alpha=0.1, validation=0.3, **SMALL)
    for share in (0.0, 1.0, "no"):
        with pytest.raises((ValueError, TypeError), match="validation"):
            method(X, Y, validation=share, **SMALL)


@pytest.mark.slow
@BOTH
def test_rows_that_look_grouped_are_spoken_of(method):
    follows = np.repeat(RNG.standard_normal((20, 2)), 10, axis=0)
    y = np.repeat(RNG.standard_normal(20), 10) + 0.01 * RNG.standard_normal(200)
    A = follows + 0.01 * RNG.standard_normal((200, 2))
    with pytest.warns(srf.GroupedRowsWarning):
        method(A, y, **SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error", srf.GroupedRowsWarning)
        method(A, y, groups=np.arange(200) // 10, **SMALL)


@pytest.mark.slow
@BOTH
def test_copies_of_rows_are_held_out_together(method):
    """Copies of a row are in one fold: the loss that is told is not that of rows that the fit has
    seen, which would be some tenth of it. (More rows may have more terms.)"""
    rng, n = np.random.default_rng(0), 150
    A = rng.standard_normal((n, 3)) * [1.0, 1e6, 1e-3]
    y = np.sin(2 * A[:, 0]) + A[:, 2] * 1e3 + 0.1 * rng.standard_normal(n)
    often = np.repeat(np.arange(n), 2)
    given = {"features": srf.Fourier(gamma=0.5)} | SMALL
    model = method(A, y, **given)
    with warnings.catch_warnings(action="ignore", category=srf.CopiedRowsWarning):
        doubled = method(A[often], y[often], **given)
    assert doubled.info.n_nonzero > 0
    assert 0.4 < doubled.info.validation_loss / model.info.validation_loss < 2.5


@BOTH
def test_rows_out_of_memory(method):
    """They are chosen on in memory, and give what the same rows give there."""
    model, there = searched(method), method(in_chunks(X, 40), Y, **SMALL)
    assert there.info.chosen == model.info.chosen
    np.testing.assert_allclose(there.predict(X), model.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@BOTH
def test_csr_rows_are_as_they_are(method):
    A = np.where(RNG.random((N, 3)) < 0.4, X / [1, 1e6, 1e-3], 0.0)
    y = A @ [1.0, 2.0, -1.0] + 0.1 * RNG.standard_normal(N)
    sparse, dense = method(csr_array(A), y, **SMALL), method(A, y, scale=None, **SMALL)
    assert sparse.features.encoder is None
    assert np.mean((sparse.predict(csr_array(A)) - y) ** 2) < 0.2 * y.var()
    assert np.mean((dense.predict(A) - y) ** 2) < 0.2 * y.var()


@BOTH
def test_little_time_gives_the_best_so_far(method):
    with warnings.catch_warnings(action="ignore"):
        model = method(X, Y, time_limit=1e-3, **SMALL)
    assert np.isfinite(model.predict(X)).all()
    assert model.info.cut and not model.info.converged


@BOTH
def test_a_callback_ends_the_search(method):
    seen = []
    model = method(X, Y, callback=lambda info: seen.append(info) or len(seen) == 3, **SMALL)
    assert len(seen) >= 3
    assert np.isfinite(model.predict(X)).all()


@BOTH
def test_files_keep_what_was_chosen(method, tmp_path):
    model = searched(method)
    model.save(tmp_path / "model.npz")
    assert srf.load(tmp_path / "model.npz").info == model.info


@pytest.mark.parametrize(
    ("n_rows", "n_features", "given", "sizes"),
    [
        (1, 100, None, [1]),
        (10, 100, None, [3, 6]),
        (100, 100, None, [3, 6, 12, 24, 48, 60]),
        (10_000, 10_000, None, [3, 6, 12, 24, 48, 96, 192, 384]),
        (10_000, 20, None, [3, 6, 12, 20]),
        (100, 100, 2, [2]),
        (100, 100, 70, [3, 6, 12, 24, 48, 70]),
        (10, 100, 70, [3, 6, 12, 24, 48, 70]),
    ],
)
def test_numbers_of_terms(n_rows, n_features, given, sizes):
    assert sizes_to_try(n_rows, n_features, given) == sizes
