"""Blocks of rows in arrays of another namespace answer as NumPy does, and as rows in memory do."""

import array_api_strict as strict
import numpy as np
import pytest

from sparserf import Fourier, Linear, RandomNeurons, Taylor
from sparserf._base.arrays import to_host
from sparserf.features import BumpBlock, FeatureSet, linear_functions, make_projection
from sparserf.rows import device
from sparserf.rows.device import ArrayBlock

from ..conftest import bumps, each_dtype, phi_oracle

D = 5
ACTIVATIONS = [RandomNeurons(name, 2).draw(7, D, rng=1) for name in ("sin", "tanh", "relu", "sign")]
FEATURES = (
    Fourier("gaussian", 0.3)
    .draw(12, D, rng=2)
    .concat(Linear().draw(None, D))
    .concat(Taylor(2, 0.2).draw(None, D))
)
for some in ACTIVATIONS:
    FEATURES = FEATURES.concat(some)
FEATURES = FEATURES.concat(FeatureSet(bumps(D), D))
FEATURES = FEATURES.concat(linear_functions(np.arange(10.0).reshape(2, 5)))
FEATURES = FEATURES.take(np.random.default_rng(0).permutation(len(FEATURES)))
ALIKE = Fourier("gaussian", 0.3).draw(12, D, rng=2)


@pytest.mark.parametrize("tile", [2**25, 60])
@each_dtype
def test_answers_on_features(rng, dtype, tile, monkeypatch):
    """Answers are those of NumPy for every size of the tiles of features that are made at a
    time."""
    monkeypatch.setattr(device, "TILE", tile)
    monkeypatch.setattr(device, "TILE_FEATURES", 9 if tile < 100 else 4096)
    X = rng.normal(size=(40, D)).astype(dtype)
    block, phi = (
        ArrayBlock(strict.asarray(X), strict, strict.asarray(X).device),
        phi_oracle(FEATURES, X),
    )
    quarter = phi_oracle(FEATURES.turned(np.full(len(FEATURES), -np.pi / 2)), X)
    v, h, c = rng.normal(size=(2, 40)), rng.random(40), rng.normal(size=(2, len(FEATURES)))
    there, weights = strict.asarray(v), strict.asarray(h)
    near = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-3, "atol": 1e-3}
    np.testing.assert_allclose(block.correlate(FEATURES, there), v @ phi, **near)
    np.testing.assert_allclose(block.correlate(FEATURES, there[0, :]), v[0] @ phi, **near)
    np.testing.assert_allclose(block.correlate_squares(FEATURES, there), v @ phi**2, **near)
    np.testing.assert_allclose(
        block.correlate_pair(FEATURES, there), [v @ phi, v @ quarter], **near
    )
    np.testing.assert_allclose(to_host(block.apply(FEATURES, c)), c @ phi.T, **near)
    np.testing.assert_allclose(to_host(block.apply(FEATURES, c[0])), c[0] @ phi.T, **near)
    np.testing.assert_allclose(to_host(block.transform(FEATURES)), phi, **near)
    np.testing.assert_allclose(block.gram(FEATURES, FEATURES, weights), phi.T * h @ phi, **near)
    some = np.array([3, 1, 8])
    np.testing.assert_allclose(
        block.gram(FEATURES, some, weights), phi.T * h @ phi[:, some], **near
    )
    alike = phi_oracle(ALIKE, X)
    np.testing.assert_allclose(block.gram(ALIKE, FEATURES, weights), alike.T * h @ phi, **near)
    gram = block.gram(ALIKE, ALIKE, weights, np.float64, np.ones(12))
    np.testing.assert_allclose(gram, (alike - 1).T * h @ (alike - 1), **near)
    f, total = block.normal(FEATURES, strict.asarray(h[None]), c[:1], np.array([0.5]))
    np.testing.assert_allclose(to_host(f), c[:1] @ phi.T - 0.5, **near)
    np.testing.assert_allclose(
        total, (h * (c[:1] @ phi.T - 0.5)) @ phi, rtol=near["rtol"], atol=100 * near["atol"]
    )


def test_no_features(rng):
    X, nothing = strict.asarray(rng.normal(size=(4, D))), FeatureSet((), D)
    block = ArrayBlock(X, strict, X.device)
    assert block.transform(nothing).shape == (4, 0)
    assert block.gram(nothing, nothing, strict.asarray(np.ones(4))).shape == (0, 0)
    np.testing.assert_array_equal(to_host(block.apply(nothing, np.zeros(0))), np.zeros(4))


def test_phases_that_are_nan_count_as_zero():
    """X w overflows here. The compiled kernels count such phases as zero, too."""
    X = np.array([[1e308, -1e308], [1.0, 2.0]])
    block = ArrayBlock(strict.asarray(X), strict, strict.asarray(X).device)
    features = RandomNeurons("tanh").draw(6, 2, rng=0)
    with np.errstate(over="ignore", invalid="ignore"):
        for each in (features, RandomNeurons("sin").draw(6, 2, rng=0)):
            assert np.isfinite(to_host(block.transform(each))).all()


@each_dtype
def test_bumps_at_distances_that_overflow(dtype):
    """No value is NaN; a bump is 1 at its center, and does not depend on inputs whose weight is too
    small for the dtype."""
    huge = np.finfo(dtype).max
    X = np.array([[1, 2], [1, -huge], [-huge, 0]], dtype)
    block = BumpBlock(
        1.0,
        np.array([[1, 0], [1e300, 5e-324], [2, 2]]),
        np.array([[1, 1e305], [1, -1e305], [1e305, 0]]),
    )
    there, features = strict.asarray(X), FeatureSet([block], 2)
    with np.errstate(over="ignore", under="ignore"):
        phi = to_host(ArrayBlock(there, strict, there.device).transform(features))
    np.testing.assert_array_equal(phi, [[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(features.transform(X), phi)


@pytest.mark.parametrize("tile", [2**25, 12])
def test_answers_on_the_rows_themselves(rng, tile, monkeypatch):
    monkeypatch.setattr(device, "TILE", tile)
    X, s, unit, mean = (
        rng.normal(size=(30, D)),
        rng.random(30),
        rng.uniform(1, 2, D),
        rng.normal(size=D),
    )
    block, weight = (
        ArrayBlock(strict.asarray(X), strict, strict.asarray(X).device),
        strict.asarray(s),
    )
    np.testing.assert_allclose(block.extremes(), [X.min(axis=0), X.max(axis=0)])
    np.testing.assert_allclose(block.weighted_sum(weight), s @ X)
    np.testing.assert_allclose(block.scaled_sum(weight, unit), s @ (X / unit))
    np.testing.assert_allclose(block.scaled_sum(weight, unit, mean), s @ (X / unit - mean) ** 2)
    assert float(block.largest_square_distance(mean)) == pytest.approx(
        ((X - mean) ** 2).sum(axis=1).max()
    )
    np.testing.assert_array_equal(to_host(block.take(np.array([4, 4, 0]))), X[[4, 4, 0]])


def test_projections_are_those_of_rows_in_memory(rng):
    """X has 300 inputs, more than the 256 unit vectors that are projected at a time."""
    X = rng.normal(size=(6, 300))
    for kind in ("gaussian", "sparse_sign", "srht"):
        projection = make_projection(kind, 300, 20, rng=0)
        block = ArrayBlock(strict.asarray(X), strict, strict.asarray(X).device)
        np.testing.assert_allclose(
            to_host(block.project(projection)), projection.project(X), rtol=1e-9, atol=1e-11
        )
