"""Gram matrices of boxes among other features, whose products with each other are counts of rows
where few weights differ."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparserf import FeatureSet, Fourier, Linear
from sparserf.features.blocks.boxes import BoxBlock
from sparserf.rows import as_rows, core_block

from ..conftest import each_dtype, phi_oracle

N, D = 700, 4
WEIGHTS = {
    "one": lambda rng: np.full(N, 0.3),
    "two": lambda rng: np.where(np.arange(N) < 300, 0.3, 0.1),
    "two and zeros": lambda rng: rng.choice([0.0, 0.3, 0.1], N),
    "more than few": lambda rng: rng.choice(np.arange(1, core_block.FEW_WEIGHTS + 2) / 7, N),
    "all different": lambda rng: rng.uniform(0.1, 1, N) * (rng.random(N) < 0.8),
    "none": lambda rng: np.zeros(N),
}
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "every other": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr": csr_array,
}


def mixed_features():
    """Return features and, for rows X, their values by NumPy: cosines, linear functions and two
    blocks of boxes, in any order."""
    rng = np.random.default_rng(0)
    blocks = []
    for n, nonnegative in ((70, False), (25, True)):
        inputs = rng.integers(0, D, (n, 2)).astype(np.int32)
        low, high = np.sort(rng.normal(0, 1.5, (2, n, 2)), axis=0)
        low[rng.random(low.shape) < 0.6] = -np.inf
        blocks.append(BoxBlock(1.5, inputs, low, high, rng.uniform(0.5, 2, n), nonnegative))
    first, second = (FeatureSet([block], D) for block in blocks)
    others = Fourier("gaussian", 0.3).draw(60, D, rng=1), Linear().draw(None, D)
    order = rng.permutation(95 + 60 + D)

    def values(X):
        X = X.astype(np.float64)
        inside = [
            ((X[:, b.inputs] > b.low) & (X[:, b.inputs] <= b.high)).all(axis=2) * b.heights
            for b in blocks
        ]
        phi = [inside[0], phi_oracle(others[0], X), inside[1], phi_oracle(others[1], X)]
        return np.hstack(phi)[:, order]

    return first.concat(others[0]).concat(second).concat(others[1]).take(order), values, order


@pytest.fixture
def small_panels(monkeypatch):
    for name, value in {
        "GRAM_PANEL": 32,
        "GRAM_ROWS": 256,
        "GRAM_PART_ROWS": 100,
        "BITS_ROWS": 256,
        "SLICE_ELEMENTS": 2**12,
    }.items():
        monkeypatch.setattr(core_block, name, value)


def random_X(rng, dtype):
    return np.where(rng.random((N, D)) < 0.4, 0.0, rng.standard_normal((N, D))).astype(dtype)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@each_dtype
def test_boxes_among_others(rng, small_panels, layout, weights, dtype):
    """Products are those of NumPy, symmetric, and have the same bits for any number of workers."""
    features, values, _ = mixed_features()
    X, h = random_X(rng, dtype), weights(rng)
    phi, grams = values(X), []
    for workers in (1, 3):
        grams.append(as_rows(layout(X), workers).gram(features, features, h))
    size = (abs(phi) + 1).T * h @ (abs(phi) + 1)
    assert (abs(grams[0] - phi.T * h @ phi) <= 50 * np.finfo(dtype).eps * size).all()
    np.testing.assert_array_equal(grams[0], grams[0].T)
    assert grams[0].tobytes() == grams[1].tobytes()


@pytest.mark.parametrize("weights", ["one", "two", "two and zeros"])
def test_boxes_are_counted_where_few_weights_differ(rng, small_panels, weights):
    """Products of boxes are exact where those of float32 numbers would not be."""
    features, values, order = mixed_features()
    X, h = random_X(rng, np.float32), WEIGHTS[weights](rng)
    is_box = (order < 70) | ((order >= 130) & (order < 155))
    phi = values(X)[:, is_box]
    gram = as_rows(X).gram(features, features, h)[np.ix_(is_box, is_box)]
    np.testing.assert_allclose(gram, phi.T * h @ phi, rtol=1e-13)


def test_boxes_around_a_center(rng, small_panels):
    """Features around a center are no boxes any more."""
    features, values, _ = mixed_features()
    X, h, center = random_X(rng, np.float64), np.full(N, 0.3), rng.standard_normal(len(features))
    phi = values(X) - center
    gram = as_rows(X)._block.gram(features, features, h, np.float64, center)
    np.testing.assert_allclose(gram, phi.T * h @ phi, rtol=1e-11, atol=1e-11)
