"""RandomSteps: the base distribution of steps, by which features="auto" learns functions that
jump."""

import numpy as np
import pytest

from sparserf import sparse_rf
from sparserf.features import RandomSteps
from sparserf.rows import as_rows

from ..conftest import each_dtype
from .sets import each_layout


def steps_of(X, layout=np.asarray, seed=0):
    """Read the base distribution off the rows of X."""
    return RandomSteps.from_rows(as_rows(layout(X)), np.ones(len(X)), np.random.default_rng(seed))


@each_layout
@each_dtype
def test_weights_are_in_proportion_to_ranges_and_on_few_inputs(rng, layout, dtype):
    X = (
        rng.uniform(-1, 1, (300, 9)) * [1, 100, 1e-3, 7, 0, 1, 1, 1, 1]
        + [0, 5, 0, 0, 3, 0, 0, 0, 0]
    ).astype(dtype)
    base = steps_of(X, layout)
    assert base.inputs.tolist() == [0, 1, 2, 3, 5, 6, 7, 8]  # the fifth is constant
    w = base.weights(20_000, rng)
    seen = w != 0
    halves = np.ptp(X[:, base.inputs].astype(float), axis=0) / 2
    np.testing.assert_allclose(np.abs(w * halves)[seen], 1.0, rtol=1e-5)
    order, p = seen.sum(axis=1), 0.4
    assert order.min() == 1 and order.max() == 8
    for q in (1, 2, 3):  # P(order = q) = p (1 - p)^(q - 1)
        expected = p * (1 - p) ** (q - 1)
        assert abs(np.mean(order == q) - expected) < 4 * np.sqrt(expected / len(order))
    share = seen.mean(axis=0)
    assert share.max() < 1.05 * share.min()
    assert abs(np.mean(w[seen] > 0) - 0.5) < 0.01


@each_dtype
def test_no_row_is_so_near_to_a_step_that_rounding_decides(rng, dtype):
    X = np.column_stack([rng.integers(0, k, 1500) for k in (2, 2, 2, 3, 5, 10)]).astype(dtype)
    base = steps_of(X)
    features = base.draw(2000, 6, rng=1)
    (block,) = features.blocks
    z = X.astype(float) @ block.weights.T + block.offset
    assert np.abs(z).min() > 1e-4  # phases are sums of some weights
    ups = (features.transform(X) > 0).sum(axis=0)
    np.testing.assert_array_equal(features.transform(X) > 0, z > 0)
    assert ((ups > 0) & (ups < len(X))).all()  # each step separates some rows from others


def test_a_constant_sum_makes_no_step(rng):
    X = np.eye(4)[rng.integers(0, 4, 200)]  # the four add up to one
    base = steps_of(X)
    features = base.features(np.ones((50, 4)), 4, rng)
    assert (features.transform(X) == 1).all()
    of_two = base.features(np.tile([1.0, 0, 0, 0], (50, 1)), 4, rng).transform(X)
    np.testing.assert_array_equal(of_two > 0, np.repeat(X[:, :1] > 0, 50, axis=1))


@each_layout
@pytest.mark.parametrize("X", [np.zeros((50, 3)), np.ones((1, 2))])
def test_steps_of_constant_inputs_are_constant(layout, X):
    features = steps_of(X, layout).draw(5, X.shape[1], rng=0)
    assert (features.transform(X) == 1).all()


@each_dtype
@pytest.mark.slow
def test_the_default_learns_functions_that_jump(rng, dtype):
    X = rng.uniform(-1, 1, (3000, 6)).astype(dtype)

    def f(X):
        return (X[:, 0] > 0.3) + 2.0 * ((X[:, 1] > 0) & (X[:, 2] > -0.2))

    model = sparse_rf(X[:2000], f(X[:2000]) + 0.1 * rng.standard_normal(2000), rng=0)
    assert "sign" in {block.activation for block in model.features.blocks}
    assert np.mean((model.predict(X[2000:]) - f(X[2000:])) ** 2) < 0.03 * f(X).var()


@pytest.mark.slow
def test_the_default_learns_conjunctions_of_binary_inputs(rng):
    X = rng.integers(0, 2, (4000, 30)).astype(float)
    y = 1.0 * ((X[:, 0] == 1) & (X[:, 1] == 1) & (X[:, 2] == 0)) + 0.5 * (
        (X[:, 3] == 1) | (X[:, 4] == 0)
    )
    model = sparse_rf(X[:3000], y[:3000], rng=0)
    assert np.mean((model.predict(X[3000:]) - y[3000:]) ** 2) < 0.01 * y.var()
    np.testing.assert_array_equal(
        model.predict(X), sparse_rf(X[:3000], y[:3000], rng=0, workers=2).predict(X)
    )
