"""Shapley values, against their definition: all orders of the inputs, all background rows."""

from itertools import permutations

import numpy as np
import pytest

from sparserf.explain import shapley

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


@pytest.mark.one_case
@pytest.mark.parametrize("most_exact", [10, 1])
@pytest.mark.parametrize("name", FITS)
def test_shapley_values(models, name, most_exact, monkeypatch):
    """The values are those of the definition, or near them where orders are sampled; they add up
    exactly either way."""
    monkeypatch.setattr(shapley, "MOST_EXACT", most_exact)
    model, rows, background = models[name], X[:12], X[50:80]
    values = model.shapley(rows, background, n_permutations=200, rng=0)
    expected = brute(model.decision_function, rows, background)
    size = np.abs(expected).max()
    assert (
        values.shape == expected.shape
        and np.abs(values - expected).max() <= (1e-12 if most_exact == 10 else 0.06) * size
    )
    f, mean = model.decision_function(rows), model.decision_function(background).mean(axis=0)
    assert np.abs(values.sum(axis=1) - (f - mean)).max() < 1e-12 * (np.abs(f).max() + 1)


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
    monkeypatch.setattr(shapley, "MOST_EXACT", 1)
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
    exact = model.shapley(X[:40], X[50:250])
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
    assert model.shapley(X[:0], X).shape == (0, 4)
