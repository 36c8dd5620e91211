"""Shapley values, against their definition: all orders of the inputs, all background rows."""

from itertools import permutations

import numpy as np
import pytest

import sparserf as srf
from sparserf.expansion.terms import terms_of
from sparserf.explain import games

from ..fitted_models import FITS, X


def brute(f, rows, background):
    """Return Shapley values by their definition: all orders, all background rows."""
    d, worth = rows.shape[1], {}

    def v(inputs):
        if inputs not in worth:
            mixed = np.repeat(background[None], len(rows), axis=0)
            mixed[:, :, list(inputs)] = rows[:, None, list(inputs)]
            worth[inputs] = (
                f(mixed.reshape(-1, d)).reshape(len(rows), len(background), -1).mean(axis=1)
            )
        return worth[inputs]

    orders = list(permutations(range(d)))
    total = np.zeros((len(rows), d, v(()).shape[1]))
    for order in orders:
        for k, j in enumerate(order):
            total[:, j] += v(tuple(sorted(order[: k + 1]))) - v(tuple(sorted(order[:k])))
    return (total / len(orders)).squeeze()


# How games are played: all sets; where pairs are few, integrals of products; orders.
WAYS = {
    "all sets": {"MOST_OF_PRODUCT": 10, "MOST_OF_SUM": 10},
    "few pairs": {"MOST_OF_PRODUCT": 1, "MOST_OF_SUM": 1, "MOST_PAIRS": 10**6},
    "many pairs": {"MOST_OF_PRODUCT": 1, "MOST_OF_SUM": 1, "MOST_PAIRS": 0},
}
# The kinds of models all of whose terms are products or linear.
PRODUCTS = ("gaussian", "sin", "products", "cubes", "bumps", "rules", "linear", "no term")


def played(monkeypatch, way):
    for name, most in WAYS[way].items():
        monkeypatch.setattr(games, name, most)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FITS)
def test_shapley_values(models, name, way, monkeypatch):
    """The values are those of the definition, or near them where orders are sampled; they add up
    exactly either way."""
    played(monkeypatch, way)
    model, rows, background = models[name], X[:12], X[50:80]
    values = model.shapley(rows, background, n_permutations=200, rng=0)
    expected = brute(model.decision_function, rows, background)
    size = np.abs(expected).max()
    is_exact = way == "all sets" or (way == "few pairs" and name in PRODUCTS)
    assert values.shape == expected.shape
    assert np.abs(values - expected).max() <= (1e-12 if is_exact else 0.06) * size
    f, mean = model.decision_function(rows), model.decision_function(background).mean(axis=0)
    assert np.abs(values.sum(axis=1) - (f - mean)).max() < 1e-12 * (np.abs(f).max() + 1)


def wide(features, n_columns=40, **arguments):
    """Return a model of terms that see all of many columns, and its rows."""
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((300, n_columns)) @ rng.standard_normal((n_columns, n_columns)) / 6
    arguments = {"n_nonzero_coefs": 12, "n_components": 100, "alpha": 1e-3, "rng": 0} | arguments
    model = srf.mfga(Z, np.sin(Z[:, :8].sum(axis=1)), features=features, **arguments)
    assert max(len(term.columns) for term in terms_of(model.features)) == n_columns
    return model, Z


@pytest.mark.parametrize("features", ["gaussian", "laplacian", srf.Taylor(2, 0.02)])
def test_products_of_many_columns_are_integrated_exactly(features):
    """The values of few rows are exact: no order is drawn, and those of many rows by many orders
    come near them. They add up for far outliers, too."""
    model, Z = wide(features)
    rows, background = Z[:5].copy(), Z[100:150]
    rows[0], rows[1] = 1e300, 20 * rows[1]
    exact = model.shapley(rows, background)
    f, mean = model.decision_function(rows), model.decision_function(background).mean()
    np.testing.assert_allclose(exact.sum(axis=1), f - mean, atol=1e-12)
    assert exact.tobytes() == model.shapley(rows, background, n_permutations=2, rng=1).tobytes()
    sampled = model.shapley(Z[:40], background, n_permutations=40)[2:5]  # too many pairs
    assert np.abs(sampled - exact[2:]).max() < 0.05 * np.abs(exact[2:]).max()
    assert np.abs(sampled - exact[2:]).max() > 0


@pytest.mark.parametrize("features", ["gaussian", srf.RandomNeurons("tanh")])
def test_standard_errors_are_the_spread_of_draws(features):
    """They are those of the background that is drawn, and of the orders."""
    model, Z = wide(features)
    draws = [model.shapley(Z[:4], Z, n_background=32, return_std=True, rng=k) for k in range(12)]
    values, errors = (np.stack(each) for each in zip(*draws, strict=True))
    told = np.sqrt((errors**2).mean())
    spread = values.std(axis=0, ddof=1)
    assert 0.6 < told / np.sqrt((spread**2).mean()) < 1.6
    f = model.decision_function(Z[:4])
    base = f - values.sum(axis=2)  # the mean of f over the background of each draw
    assert np.ptp(base, axis=1).max() < 1e-12 < np.ptp(base[:, 0])


def test_the_background_is_drawn_by_the_seed(of_frame):
    """It is the same for a frame and its parts: the rows' number and the seed decide."""
    model, data = of_frame
    values = model.shapley(data[:1], data)
    assert values.tobytes() == model.shapley(data[:1], data).tobytes()
    assert values.tobytes() != model.shapley(data[:1], data, rng=1).tobytes()
    mean = model.decision_function(data[:1]) - values.sum()
    every = model.shapley(data[:1], data, n_background=None)
    whole = model.decision_function(data).mean()
    assert abs(model.decision_function(data[:1]) - every.sum() - whole) < 1e-10
    assert 1e-9 < abs(mean - whole) < 4 * model.decision_function(data).std() / 100**0.5
    reads = srf.Chunks(lambda start, stop: data[start:stop], shape=data.shape, block_rows=100)
    assert values.tobytes() == model.shapley(data[:1], reads).tobytes()


def test_shapley_values_of_a_frame(of_frame):
    """A column is one input, whatever views there are of it; the background may be drawn by the
    seed."""
    model, data = of_frame
    values = model.shapley(data[:20], data[100:150])
    f, mean = model.decision_function(data[:20]), model.decision_function(data[100:150]).mean()
    np.testing.assert_allclose(values.sum(axis=1), f - mean, atol=1e-10)
    same = data[100:101]
    assert np.abs(model.shapley(same, same)).max() < 1e-12
    first, again = (model.shapley(data, rng=3) for _ in range(2))
    assert first.tobytes() == again.tobytes() and np.isfinite(first).all()


@pytest.mark.parametrize("name", ["gaussian", "bumps", "cubes"])
def test_independent_inputs_are_exact(models, name, monkeypatch):
    """For products whose background is independent, the values are exact from two orders: nothing
    is sampled."""
    played(monkeypatch, "many pairs")
    grid = np.stack(np.meshgrid(*[[-1.0, 0.5]] * 4), axis=-1).reshape(-1, 4)
    values = models[name].shapley(X[:10], grid, n_permutations=2, rng=0)
    expected = brute(models[name].decision_function, X[:10], grid)
    np.testing.assert_allclose(values, expected, atol=1e-12 * np.abs(expected).max())


def sampler(f, rows, background, n_permutations, rng):
    """Return sampled Shapley values of any function: along an order, a background row becomes the
    row, input by input."""
    n, d = rows.shape
    total = np.zeros((n, d))
    for _ in range(n_permutations):
        mixed = background[rng.integers(0, len(background), n)].copy()
        order, last = rng.permutation(d), f(mixed)
        for j in order:
            mixed[:, j] = rows[:, j]
            last, before = f(mixed), last
            total[:, j] += last - before
    return total / n_permutations


@pytest.mark.slow
def test_the_generic_sampler_comes_to_the_same(models):
    model = models["auto"]
    exact = model.shapley(X[:40], X[50:250], n_background=None)
    sampled = sampler(model.decision_function, X[:40], X[50:250], 600, np.random.default_rng(0))
    assert np.sqrt(np.mean((sampled - exact) ** 2)) < 0.1 * exact.std()


def test_bad_arguments_are_named(models):
    model = models["linear"]
    with pytest.raises(ValueError, match="background must have at least one row"):
        model.shapley(X, X[:0])
    with pytest.raises(ValueError, match="n_permutations"):
        model.shapley(X, n_permutations=1)
    with pytest.raises(ValueError, match="background must be given for a single row"):
        model.shapley(X[:1])
    with pytest.raises(ValueError, match="4 columns"):
        model.shapley(X, X[:, :3])
    with pytest.raises(ValueError, match="n_rows"):
        model.importances(X, n_rows=1)
    with pytest.raises(ValueError, match="n_background"):
        model.shapley(X, n_background=0)
    with pytest.raises(ValueError, match="at least 2 background rows"):
        model.shapley(X, X[:1], return_std=True)
    assert model.shapley(X[:0], X).shape == (0, 4)
