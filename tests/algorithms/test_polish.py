"""Polishing: the cosines of a small model are moved nearer to what the large one predicts, and keep
what they were promised to be."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import sparserf as srf
from sparserf import prune
from sparserf.algorithms import polish
from sparserf.features import FeatureSet

from ..conftest import friedman
from ..fitted_models import bumps

N, D = 400, 4
X = np.random.default_rng(0).uniform(-2, 2, (N, D))


def some_model(n_terms=60, n_outputs=None, others=True, seed=0):
    """Return a model of cosines, sines and, maybe, terms that cannot be moved, in random order."""
    rng = np.random.default_rng(seed)
    cosines = srf.Fourier(gamma=0.1).draw(n_terms, D, rng=seed)
    blocks = [*cosines.blocks, *srf.RandomNeurons("sin").draw(5, D, rng=seed).blocks]
    if others:
        blocks += srf.RandomNeurons("tanh").draw(10, D, rng=seed).blocks
        blocks += srf.Linear().draw(None, D).blocks
    features = FeatureSet(blocks, D)
    features = features.take(rng.permutation(len(features)))
    shape = (n_outputs, len(features)) if n_outputs else len(features)
    intercept = np.linspace(-1.0, 1.0, n_outputs) if n_outputs else 0.3
    info = srf.FitInfo(7, True, (3.0,), 0.1, 500, len(features), 0.25)
    support = 3 * np.arange(len(features)) + (1 << 40)
    coef = rng.standard_normal(shape)
    return srf.SparseModel(coef, intercept, support, features, "squared", None, info)


def change(model, small, X, weight=None):
    """Return the mean square of the change over the variance of the predictions."""
    f, g = (np.asarray(each.decision_function(X)).reshape(len(X), -1) for each in (model, small))
    share = np.full(len(X), 1 / len(X)) if weight is None else weight / weight.sum()
    return (share @ (f - g) ** 2).sum() / (share @ (f - share @ f) ** 2).sum()


@pytest.mark.parametrize("n_outputs", [None, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_is_nearer_on_its_rows(n_outputs, weighted, fit_intercept):
    model = some_model(n_outputs=n_outputs)
    weight = np.random.default_rng(1).uniform(0.1, 3, N) if weighted else np.ones(N)
    rows, h = polish.rows_to_polish_on(model.features.rows_of(X), weight, None)
    made = rows.array()
    for k in (3, 12):
        small = prune(model, X, max_terms=k, polish=False, sample_weight=weight)
        moved = polish.polished(small, model, rows, h, fit_intercept)
        before, after = change(model, small, made, h), change(model, moved, made, h)
        assert after < 0.9 * before
        assert moved.coef.shape == small.coef.shape
        np.testing.assert_array_equal(moved.support, small.support)
        if not fit_intercept:
            np.testing.assert_array_equal(moved.intercept, small.intercept)
        can_move = polish.movable(small, rows)
        own, then = moved.features.transform(X), small.features.transform(X)
        np.testing.assert_array_equal(own[:, ~can_move], then[:, ~can_move])
        assert np.any(own[:, can_move] != then[:, can_move], axis=0).all()


def test_pruned_to_few_terms_it_is_nearer_on_other_rows():
    other = np.random.default_rng(5).uniform(-2, 2, (2_000, D))
    for seed in range(3):
        model = some_model(others=False, seed=seed)
        plain, moved = (prune(model, X, max_terms=15, polish=each) for each in (False, True))
        assert len(plain.support) == len(moved.support) == 15
        assert change(model, moved, other) < 0.5 * change(model, plain, other)
        assert set(moved.support) <= set(model.support)


def test_where_fewer_terms_do_they_stay_as_they_are():
    model = some_model()
    few = prune(model, X, tol=0.01)
    for max_terms in (len(few.support) + 10, None):
        one = prune(model, X, tol=0.01, max_terms=max_terms)
        np.testing.assert_array_equal(one.coef, few.coef)


def test_the_slope_is_that_of_the_error(monkeypatch):
    """By differences; and the weights of no effect, of a column that is constant, do not move."""
    import scipy.optimize

    Z = X.copy()
    Z[:, 2] = 1.5
    model, asked = some_model(n_outputs=2), []

    def minimize(function, x, **how):
        found = real(function, x, **how)
        for at in (x + 0.01, found.x):
            e, slope = function(at)
            d = np.random.default_rng(0).standard_normal(len(at)) * (slope != 0)
            step = 1e-5
            high, low = function(at + step * d)[0], function(at - step * d)[0]
            asked.append(((high - low) / (2 * step), slope @ d, e))
        return found

    real = scipy.optimize.minimize
    monkeypatch.setattr(scipy.optimize, "minimize", minimize)
    small = prune(model, Z, max_terms=8, polish=False)
    moved = prune(model, Z, max_terms=8)
    assert len(asked) == 2
    for difference, slope, e in asked:
        assert difference == pytest.approx(slope, rel=1e-4, abs=1e-4 * e)
    assert change(model, moved, Z) < change(model, small, Z)


def test_zero_weights_stay_zero():
    """Terms see the columns that they saw: max_order and interactions hold."""
    Z, y = friedman(np.random.default_rng(0), 300, 6)
    groups = [[0, 1], [2, 3, 4, 5]]
    how = {"max_terms": 8, "effort": 0.05, "rng": 0, "verbose": False}
    model = srf.sparse_rf(Z, y, max_order=2, interactions=groups, **how)
    assert model.features.is_periodic.any() and len(model.support) == 8
    for k in np.flatnonzero(~model.features.is_linear):
        seen = set(np.flatnonzero(model.features.take([k]).columns_seen))
        assert len(seen) <= 2 and any(seen <= set(group) for group in groups)


def test_what_must_rise_rises():
    Z, y = friedman(np.random.default_rng(0), 250, 5)
    how = {"monotone": {3: 1, 4: 1}, "max_terms": 8, "effort": 0.05, "rng": 0, "verbose": False}
    model = srf.sparse_rf(Z, y, **how)
    assert (
        model.features.nonnegative.any()
        and not polish.movable(model, model.features.rows_of(Z)).any()
    )
    small = prune(model, Z, max_terms=5)
    for each in (model, small):
        grid = np.repeat(Z[:50, None], 20, axis=1)
        grid[:, :, 3] = np.linspace(0, 1, 20)
        rise = np.diff(each.predict(grid.reshape(-1, 5)).reshape(50, 20), axis=1)
        assert rise.min() >= -1e-9


@pytest.mark.parametrize("kind", ["csr", "sparse weights", "bumps", "no cosines"])
def test_what_cannot_move_stays(kind):
    """CSR rows, sparse weights, cosines beside bumps, and models without cosines."""
    Z, model = X, some_model()
    if kind == "csr":
        Z = csr_array(np.where(X > 0.5, X, 0.0))
    else:
        features = {
            "sparse weights": srf.RandomNeurons("cos", order=2).draw(40, D, rng=0),
            "bumps": bumps(D, 10).concat(srf.Fourier(gamma=0.1).draw(20, D, rng=0)),
            "no cosines": srf.RandomNeurons("tanh").draw(40, D, rng=0),
        }[kind]
        coef = np.random.default_rng(0).standard_normal(40)
        model = replace(model, features=features, coef=coef, support=np.arange(40))
    one, other = (prune(model, Z, max_terms=6, polish=each) for each in (True, False))
    np.testing.assert_array_equal(one.coef, other.coef)
    np.testing.assert_array_equal(one.support, other.support)


def test_the_same_bits_for_any_number_of_workers():
    model, Z = some_model(200), np.random.default_rng(5).uniform(-2, 2, (6000, D))
    one, *others = (prune(model, Z, max_terms=10, workers=workers) for workers in (1, 2, 3))
    for other in others:
        assert one.coef.tobytes() == other.coef.tobytes()
        np.testing.assert_array_equal(one.features.transform(X), other.features.transform(X))


@pytest.mark.slow
def test_made_rows_have_cells_of_rows_and_keep_the_encodings_of_a_cell_together(rng):
    table = pd.DataFrame({"a": rng.standard_normal(60), "b": rng.permutation(list("uvwxyz") * 10)})
    y = table["a"].to_numpy() ** 2 + (table["b"] == "u")
    model = srf.sparse_rf(table, y, rng=0, verbose=False)
    encoder = model.features.encoder
    rows = model.features.rows_of(table)
    made, h = polish.rows_to_polish_on(rows, np.ones(60), encoder)
    Z, own = made.array(), rows.array()
    assert len(Z) == len(h) == 120 and h.sum() == pytest.approx(1)
    assert h[60:].sum() == pytest.approx(polish.MADE / (1 + polish.MADE))
    np.testing.assert_array_equal(Z[:60], own)
    for column in np.unique(encoder.column):
        there = {tuple(cells) for cells in own[:, encoder.column == column]}
        assert {tuple(cells) for cells in Z[:, encoder.column == column]} <= there
    assert not {tuple(row) for row in Z[60:]} <= {tuple(row) for row in own}


def test_of_many_rows_and_terms():
    assert polish.steps_for(50, 20) == polish.STEPS and polish.steps_for(2_000, 20) == 0
    assert polish.steps_for(50, 20) > polish.steps_for(150, 20) > polish.steps_for(300, 20) > 0
    n = 4 * polish.ROWS
    Z, weight = np.random.default_rng(0).standard_normal((n, D)), np.arange(1.0, n + 1)
    rows, h = polish.rows_to_polish_on(some_model().features.rows_of(Z), weight, None)
    np.testing.assert_array_equal(rows.array(), Z[::4])
    np.testing.assert_allclose(h, weight[::4] / weight[::4].sum())


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_the_size_of_the_coefficients_does_not_matter(size):
    model = some_model()
    scaled = replace(model, coef=model.coef * size, intercept=model.intercept * size)
    one, other = prune(model, X, max_terms=6), prune(scaled, X, max_terms=6)
    np.testing.assert_allclose(other.predict(X) / size, one.predict(X), rtol=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-200, 1e-20, 1e20, 1e160, 1e200])
def test_the_size_of_the_rows_does_not_matter(size):
    """Cosines of rows of any size, and of a row far away, move or stay, without a warning."""
    far = X.copy()
    far[0] = size
    for Z, others in ((X * size, False), (far, size < 1e100)):
        small = prune(some_model(others=others), Z, max_terms=5)
        assert len(small.coef) <= 5 and np.isfinite(small.coef).all()
        assert np.isfinite(small.predict(X)).all()


@pytest.mark.parametrize("Z", [X[:1], 0 * X + 1, np.repeat(X[:3], 9, axis=0)])
def test_few_rows_that_differ(Z):
    """Of one row, or of equal ones, the prediction is kept; few rows need not be met exactly, since
    made ones count, too."""
    model = some_model()
    small = prune(model, Z, max_terms=5)
    if len(np.unique(Z, axis=0)) == 1:
        np.testing.assert_allclose(small.predict(Z), model.predict(Z), atol=1e-9)
    else:
        assert change(model, small, Z) < 0.1


@pytest.mark.nightly
def test_a_fit_of_few_terms_is_nearer_than_terms_alone():
    """Of sparse_rf with max_terms, on rows that it has not seen, in the mean over data: beside the
    best terms of the whole model as they are."""

    def error(seed, **how):
        rng = np.random.default_rng(seed)
        Z, f = friedman(rng, 1_150, 5)
        y = f[:150] + 0.1 * f.std() * rng.standard_normal(150)
        model = srf.sparse_rf(Z[:150], y, effort=0.1, rng=seed, verbose=False, **how)
        model = model if how else prune(model, Z[:150], max_terms=10, polish=False)
        assert len(model.support) == 10
        return np.mean((model.predict(Z[150:]) - f[150:]) ** 2)

    polished = [error(seed, max_terms=10) for seed in range(5)]
    alone = [error(seed) for seed in range(5)]
    assert np.mean(np.log(polished)) < np.mean(np.log(alone))
