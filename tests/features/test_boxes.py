"""Boxes, in all that is asked of a model."""

from dataclasses import replace

import array_api_strict as strict
import numpy as np
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf.features.blocks.boxes import BoxBlock

RNG = np.random.default_rng(0)
N, D = 500, 4
X = RNG.standard_normal((N, D))
Y = 2.0 * (X[:, 0] > 0.3) * (X[:, 1] <= 1) - (X[:, 2] > 0) + 0.1 * RNG.standard_normal(N)


def boxes(n=80, order=3):
    """Return random boxes; some ends are infinite, and some inputs occur twice."""
    rng = np.random.default_rng(1)
    inputs = rng.integers(0, D, (n, order)).astype(np.int32)
    low, high = np.sort(rng.normal(0, 1.5, (2, n, order)), axis=0)
    low[rng.random(low.shape) < 0.6] = -np.inf
    high[rng.random(high.shape) < 0.6] = np.inf
    height = rng.uniform(0.5, 2, n)
    return srf.FeatureSet([BoxBlock(1.5, inputs, low, high, height)], D)


def oracle(features, X):
    (block,) = features.blocks
    phi = np.empty((len(X), len(block)))
    for j in range(len(block)):
        x = X[:, block.inputs[j]]
        phi[:, j] = (
            block.scale * block.height[j] * ((x > block.low[j]) & (x <= block.high[j])).all(axis=1)
        )
    return phi


MODEL = srf.sparse_rf(X, Y, features=boxes(), alpha=0.01)
THREE = srf.sparse_rf(X, np.digitize(Y, [-1, 1]), loss="logistic", features=boxes(), alpha=0.003)


def test_values_anywhere():
    features = boxes()
    phi = oracle(features, X)
    assert np.array_equal(features.transform(X), phi)
    assert np.array_equal(features.transform(X, workers=2), phi)
    Z = np.where(RNG.random(X.shape) < 0.5, 0.0, X)
    assert np.array_equal(features.transform(sp.csr_array(Z)), oracle(features, Z))
    Z = X.astype(np.float32)
    np.testing.assert_allclose(features.transform(Z), oracle(features, Z), rtol=1e-6)
    there = features.transform(strict.asarray(X, device=strict.Device("device1")))
    assert np.array_equal(np.from_dlpack(there.to_device(strict.Device("CPU_DEVICE"))), phi)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("home", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weights", ["equal", "two", "different"])
def test_products_of_boxes(home, dtype, weights):
    rng = np.random.default_rng(2)
    Z = np.where(rng.random((20_000, D)) < 0.5, 0.0, rng.normal(size=(20_000, D))).astype(dtype)
    (block,) = boxes().blocks
    free, rising = block.take(np.arange(50)), block.take(np.arange(50, 80))
    features = srf.FeatureSet([free, replace(rising, nonnegative=True)], D)
    h = {
        "equal": np.full(len(Z), 0.3),
        "two": rng.choice([0.0, 0.3, 0.1], len(Z)),
        "different": rng.uniform(0, 1, len(Z)),
    }[weights]
    some, phi = np.array([2, 40, 41, 60, 70, 79]), oracle(boxes(), Z)
    grams = []
    for workers in (1, 3):
        rows = features.rows_of(home(Z), workers=workers)
        for right, psi in (
            (features, phi),
            (some, phi[:, some]),
            (features.take(some), phi[:, some]),
        ):
            grams.append(rows.gram(features, right, h, np.float64))
            np.testing.assert_allclose(grams[-1], (phi.T * h) @ psi, rtol=1e-5, atol=1e-9)
    for one, other in zip(grams[:3], grams[3:], strict=True):
        assert one.tobytes() == other.tobytes()


def test_fits():
    assert len(MODEL.coef) > 3
    f = MODEL.intercept + oracle(MODEL.features, X) @ MODEL.coef
    np.testing.assert_allclose(MODEL.predict(X), f, rtol=1e-12, atol=1e-12)
    small = srf.prune(MODEL, X, max_terms=5)
    assert len(small.coef) == 5
    assert srf.prune(MODEL, X, max_order=1).features.blocks[0].is_used.sum(axis=1).max() <= 2
    srf.prune(MODEL, X, readable=True)
    again = srf.sparse_rf(X, Y, features=boxes(), alpha=0.005, start=MODEL)
    assert len(again.coef) >= len(MODEL.coef)
    for fit in (srf.mfga, srf.harfe):
        fit(X, Y, features=boxes(), n_nonzero_coefs=5, rng=0)
    with pytest.raises(ValueError, match="must have features that keep monotone"):
        srf.sparse_rf(X, Y, features=boxes(), alpha=0.01, monotone={0: 1})


def test_words():
    assert (
        " if " in MODEL.formula() and " <= " in MODEL.formula() and "sign(" not in MODEL.formula()
    )
    assert " <= " in str(MODEL.summary()) and "box" in str(MODEL.summary(X))
    assert MODEL.features.names()[0].startswith("box(")
    assert MODEL.input_usage().sum() > 0
    MODEL.formula("latex"), MODEL._repr_html_()


def test_slopes_are_zero():
    assert not MODEL.gradient(X).any() and not MODEL.hessian_diag(X).any()
    assert not THREE.gradient(X).any()


def test_proofs():
    box = {j: (-1.0, 1.0) for j in range(D)}
    bounds = MODEL.bounds(box, time_limit=20)
    f = MODEL.predict(np.random.default_rng(4).uniform(-1, 1, (100_000, D)))
    assert bounds.converged
    assert bounds.least.lower <= f.min() + 1e-12 and f.max() <= bounds.largest.upper + 1e-12
    assert abs(bounds.largest.upper - f.max()) < 0.3
    assert abs(bounds.least.lower - f.min()) < 0.3
    inputs = np.zeros((1, 1), np.int32)
    rising = srf.FeatureSet(
        [BoxBlock(1.0, inputs, np.zeros((1, 1)), np.full((1, 1), np.inf), np.ones(1))], D
    )
    for sign in (1, -1):
        model = srf.sparse_rf(X, sign * X[:, 0], features=rising, alpha=0.01)
        assert model.is_monotone(0, sign=sign).status == "proved"
        assert model.is_monotone(0, sign=-sign).status == "refuted"


def test_staged():
    model = srf.sparse_rf(X, Y, features=boxes(), alpha=0.01)
    assert len(model.bounds({0: (-1, 1)}, time_limit=5).at_least) == D
