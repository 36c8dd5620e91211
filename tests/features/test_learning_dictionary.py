"""features="auto": the base distribution of random cosines, the moves from accepted features, and
fits that learn by them."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import sparserf as srf
from sparserf import sparse_rf, sparse_rf_path
from sparserf.features import learning as moves

from ..conftest import each_dtype, each_loss, friedman, phi_oracle, signs
from .sets import learning, random_cosines

# The base distribution


@pytest.mark.parametrize("layout", [np.asarray, csr_array])
@each_dtype
def test_base_weights_are_in_the_units_of_each_input(rng, layout, dtype):
    X = (rng.standard_normal((300, 5)) * [1, 100, 1e-3, 7, 0] + [0, 5, 0, 0, 3]).astype(dtype)
    base = random_cosines(layout(X), np.random.default_rng(0))
    assert base.inputs.tolist() == [0, 1, 2, 3]  # the last is constant
    for unit, size in zip(
        base.units,
        (X[:, :4].std(axis=0, dtype=float), np.ptp(X[:, :4].astype(float), axis=0)),
        strict=True,
    ):
        np.testing.assert_allclose(unit * size, unit[0] * size[0], rtol=1e-5)
        scaled = X[:, :4].astype(float) * unit
        distance = np.sqrt(((scaled[:, None] - scaled) ** 2).sum(axis=2))[np.triu_indices(300, 1)]
        assert np.median(distance) == pytest.approx(1.0, rel=1e-5)


def test_base_weights_have_every_order_and_width(rng):
    base = random_cosines(rng.standard_normal((500, 30)), rng)
    w = base.weights(20_000, rng)
    order = np.count_nonzero(w, axis=1)
    assert order.min() == 1 and order.max() == 30
    for q in (1, 2, 5):  # log-uniform: P(order = q) = log((q + 1) / q) / log 31
        expected = np.log((q + 1) / q) / np.log(31)
        assert abs(np.mean(order == q) - expected) < 4 * np.sqrt(expected / len(order))
    ratio = base.units[1] / base.units[0]
    assert ratio.min() < 0.95 < 1.05 < ratio.max()  # units by deviation and by range differ
    width = np.sqrt(((w / np.sqrt(base.units[0] * base.units[1])) ** 2).sum(axis=1) / 30)
    wide = width[order > 15]  # with many inputs the mean of their squares is near its expectation
    assert 0.2 < np.quantile(wide, 0.01) < 0.4 and 2.5 < np.quantile(wide, 0.99) < 4.8
    assert 0.85 < np.median(wide) < 1.15


@pytest.mark.parametrize("X", [np.ones((5, 3)), np.zeros((1, 1)), 1e200 * np.ones((4, 2))])
def test_base_features_of_constant_inputs_are_constant(X):
    rng = np.random.default_rng(0)
    base = random_cosines(X, rng)
    phi = base.features(base.weights(7, rng), X.shape[1], rng).transform(X)
    assert np.isfinite(phi).all() and np.ptp(phi, axis=0).max() < 1e-12


def test_base_weights_are_on_the_1024_inputs_of_largest_variance(rng):
    X = rng.standard_normal((50, 1500))
    X[:, 700:1176] *= 0.01
    base = random_cosines(X, rng)
    assert len(base.inputs) == 1024 and not ((base.inputs >= 700) & (base.inputs < 1176)).any()
    w = base.weights(9, rng)
    features = base.features(w, 1500, rng)
    np.testing.assert_array_equal(base.weights_of(features), w)
    np.testing.assert_allclose(features.transform(X), phi_oracle(features, X), atol=1e-12)


# Moves from accepted features


@pytest.fixture
def accepted(rng):
    """Return a base distribution of six inputs, and 40 weights that were accepted."""
    base = random_cosines(rng.standard_normal((200, 6)) * [1, 2, 4, 8, 16, 32], rng)
    return base, base.weights(40, rng)


def made(move, accepted, n=500):
    """Make n weights by a move; return them, and the parents of each."""
    base, W = accepted
    drawn = []

    def draw():
        drawn.append(W[np.random.default_rng(len(drawn)).integers(0, len(W), n)])
        return drawn[-1].copy()

    return move(moves.Parents(draw(), draw, base, np.random.default_rng(5))), drawn


def test_jitter_and_rescale_keep_zeros(accepted):
    for move in (moves.jitter, moves.rescale):
        w, (parent,) = made(move, accepted)
        assert ((w == 0) == (parent == 0)).all() and not (w == parent)[parent != 0].any()
    factor = np.divide(w, parent, out=np.full_like(w, np.nan), where=parent != 0)
    np.testing.assert_allclose(np.nanmin(factor, axis=1), np.nanmax(factor, axis=1))
    assert np.log(np.nanmax(factor, axis=1)).std() == pytest.approx(moves.RESCALE, rel=0.15)


def test_add_mix_and_swap(accepted):
    w, (a, b) = made(moves.add, accepted)
    plus = np.isclose(w, a + b).all(axis=1)
    assert (plus | np.isclose(w, a - b).all(axis=1)).all() and 0.4 < plus.mean() < 0.6
    w, (a, b) = made(moves.mix, accepted)
    assert ((w == a) | (w == b)).all() and (w != a).any(axis=1).mean() > 0.5
    w, (a,) = made(moves.swap, accepted)
    assert (np.count_nonzero(w != a, axis=1) == 1).all()


def test_moves_that_succeed_make_more_and_the_base_keeps_its_share(rng):
    dictionary = learning(rng.standard_normal((100, 4)), 10**6, 400, 0)
    proposer = dictionary.proposer(2)
    start, features = proposer.batch(400, srf.FeatureSet((), 4), np.zeros(0), np.zeros(0, int))
    assert start == 3 << 40 and len(features) == 400
    # of each batch only the features made by `jitter`, the first move, are accepted
    for _ in range(12):
        n_base = int(np.count_nonzero(proposer._last == 0))
        assert n_base >= moves.BASE * 400
        kept = np.flatnonzero(proposer._last == 1) if (proposer._last == 1).any() else np.arange(20)
        start, features = proposer.batch(400, features.take(kept), np.ones(len(kept)), start + kept)
    assert np.count_nonzero(proposer._last == 1) > 0.6 * 400 * (1 - moves.BASE)
    assert np.bincount(proposer._last, minlength=6).min() > 0


# Fits


@pytest.mark.nightly
def test_fits_learn_which_inputs_matter(rng):
    X, y = friedman(rng, 1500, 30)
    X_test, y_test = friedman(rng, 1500, 30)
    auto = sparse_rf(X, y, features="auto", rng=0)
    plain = sparse_rf(X, y, features="gaussian", n_components=2000, rng=0)
    errors = [np.mean((model.predict(X_test) - y_test) ** 2) for model in (auto, plain)]
    assert errors[0] < 2.0 < 0.6 * errors[1]  # the noise is 1
    assert auto.input_usage()[:5].min() > np.median(auto.input_usage()[5:])


def penalised(alpha):
    """Return options of a fit with that alpha, or of a search with few draws."""
    return {"n_components": 400} if alpha is None else {"alpha": alpha, "n_components": 1500}


@each_loss
@pytest.mark.parametrize("alpha", [0.02, None])
@pytest.mark.slow
def test_same_seed_same_bits_for_any_number_of_workers(rng, loss, alpha):
    X, y = friedman(rng, 500)
    how = {"features": "auto", "loss": loss, "rng": 3} | penalised(alpha)
    models = [sparse_rf(X, signs(y, loss), workers=workers, **how) for workers in (1, 3)]
    assert len(models[0].coef) > 3
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef, models[0].coef)
        np.testing.assert_array_equal(model.support, models[0].support)
        np.testing.assert_array_equal(model.predict(X), models[0].predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.02, None])
def test_the_scale_of_a_column_changes_no_bit(rng, alpha):
    X, y = friedman(rng, 300, 6)
    units = 2.0 ** np.array([-30, 20, 0, 3, -4, 12])
    f, g = (
        sparse_rf(Z, y, features="auto", rng=0, **penalised(alpha)).predict(Z)
        for Z in (X, X * units)
    )
    np.testing.assert_array_equal(f, g)  # powers of two: no rounding


@pytest.mark.parametrize("alpha", [0.02, None])
@pytest.mark.slow
def test_fits_to_sparse_single_precision_and_wide_rows(rng, alpha):
    X, y = friedman(rng, 300, 6)
    X[X < 0.3] = 0
    how = {"features": "auto", "rng": 0} | penalised(alpha)
    dense = sparse_rf(X, y, **how)
    sparse = sparse_rf(csr_array(X), y, **how).predict(X)
    if alpha:  # a search has more rounds, and later rounds follow the rounding of earlier ones
        np.testing.assert_allclose(sparse, dense.predict(X), rtol=1e-4)
    assert np.corrcoef(sparse, dense.predict(X))[0, 1] > 0.98
    single = sparse_rf(X.astype(np.float32), y, **how).predict(X.astype(np.float32))
    assert single.dtype == np.float32 and np.corrcoef(single, dense.predict(X))[0, 1] > 0.99
    assert sparse_rf(X[:, [0]], y, **how).n_features_in == 1
    wide = csr_array(np.hstack([X, 1e-3 * rng.standard_normal((300, 1100))])[:60])
    assert sparse_rf(wide, y[:60], **how).n_features_in == 1106


@pytest.mark.slow
def test_each_class_has_draws_of_its_own(rng):
    X = rng.standard_normal((600, 3))
    y = np.array(["a", "b", "c"])[np.argmax(np.sin(2 * X), axis=1)]
    how = {"alpha": 0.01, "features": "auto", "loss": "logistic", "rng": 0, "n_components": 1000}
    model = sparse_rf(X, y, **how)
    stream = (model.support >> 40) - 1  # class k of 3 draws from stream k
    assert np.unique(stream).tolist() == [0, 1, 2]
    for k in range(3):
        assert not model.coef[k, stream != k].any() and model.coef[k, stream == k].all()
    assert (model.predict(X) == y).mean() > 0.85


def test_a_path_continues_from_accepted_features(rng):
    X, y = friedman(rng)
    models = sparse_rf_path(
        X, y, alphas=[0.3, 0.1, 0.03], features="auto", n_components=1000, rng=0
    )
    assert [model.info.n_drawn for model in models] == [1000] * 3
    assert all(model.info.converged for model in models)
    assert np.intersect1d(models[0].support, models[1].support).size > 0
    assert all(np.all(np.diff(model.info.objective) <= 0) for model in models)
