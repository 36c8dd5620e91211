"""Bumps: the map, where its centers and its width come from; blocks of bumps on rows of any layout,
and as other bumps."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist

from sparserf import Bumps, FeatureSet, Linear, sparse_rf
from sparserf.features import BumpBlock, are_same

from ..conftest import bumps, each_dtype, peak_below, phi_oracle, read_only
from .sets import each_layout, raises, resolved, sparse_rows

D = 5


def test_values_are_the_laplacian_kernel(rng):
    X, centers = rng.standard_normal((2, 40, D))
    phi = Bumps(centers[:30], 0.3).draw(None, D).transform(X)
    np.testing.assert_allclose(
        phi, np.exp(-0.3 * np.abs(X[:, None] - centers[:30]).sum(axis=2)), rtol=1e-14
    )
    assert (Bumps(X, 0.3).draw(None, D).transform(X).diagonal() == 1).all()


@each_layout
@each_dtype
def test_centers_are_rows(layout, dtype, rng):
    X = sparse_rows(rng).astype(dtype)
    map_ = resolved(Bumps(20), layout(X))
    assert map_.centers.shape == (20, X.shape[1])
    places = [np.flatnonzero((X == center).all(axis=1)) for center in map_.centers]
    assert len(set(np.concatenate(places))) == 20
    assert map_.gamma == pytest.approx(1 / np.median(pdist(X, "cityblock")))
    assert (map_.centers == resolved(Bumps(20), layout(X)).centers).all()
    assert not (map_.centers == resolved(Bumps(20), layout(X), rng=1).centers).all()
    assert len(resolved(Bumps(1000), layout(X)).centers) == len(X)


def test_rows_without_weight_are_no_centers(rng):
    X, weight = rng.standard_normal((60, D)), np.arange(60) % 3.0
    map_ = resolved(Bumps(30), X, weight=weight)
    assert 0 < len(map_.centers) <= 30
    assert all((X[weight > 0] == center).all(axis=1).any() for center in map_.centers)


def test_what_is_given_stays(rng):
    centers = rng.standard_normal((7, D))
    map_ = Bumps(centers, 0.5)
    assert resolved(map_, rng.standard_normal((30, D))) is map_
    first = centers.copy()
    centers[:] = 0
    np.testing.assert_array_equal(map_.centers, first)
    assert resolved(Bumps(first, "knn"), rng.standard_normal((90, D))).gamma > 0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Bumps([[]]),
            ValueError,
            "centers must be of shape (n_centers, n_features), got (1, 0)",
        ),
        (lambda: Bumps(0), ValueError, "centers must be at least 1, got 0"),
        (lambda: Bumps(2.0), TypeError, "centers must be an integer, got 2.0"),
        (
            lambda: Bumps(np.zeros(3)),
            ValueError,
            "centers must be of shape (n_centers, n_features), got (3,)",
        ),
        (
            lambda: Bumps(np.zeros((0, 3))),
            ValueError,
            "centers must be of shape (n_centers, n_features), got (0, 3)",
        ),
        (lambda: Bumps([[np.nan]]), ValueError, "centers must"),
        (lambda: Bumps(csr_array(np.eye(3))), TypeError, "centers must be dense"),
        (lambda: Bumps(gamma=0), ValueError, "gamma must be"),
        (
            lambda: Bumps(9, 1.0).draw(None, 3),
            ValueError,
            "centers must be an array to draw without data, got 9",
        ),
        (
            lambda: Bumps(np.eye(3)).draw(None, 3),
            ValueError,
            "gamma must be a number to draw without data, got None",
        ),
        (
            lambda: Bumps(np.eye(3), 1.0).draw(None, 4),
            ValueError,
            "centers must have 4 columns, got 3",
        ),
        (
            lambda: Bumps(np.eye(3), 1.0).draw(None, 0),
            ValueError,
            "n_features must be at least 1, got 0",
        ),
    ],
)
def test_invalid_bumps(make, error, message):
    with raises(error, message):
        make()


def test_a_fit_in_robust_units_has_centers_in_these_units(rng):
    """The size of a column does not matter."""
    X, size = rng.standard_normal((200, 3)), np.array([1.0, 2.0**20, 2.0**-20])
    y = np.abs(X).max(axis=1)
    one, other = (
        sparse_rf(Z, y, features=Bumps(50), scale="robust", alpha=0.01, rng=0)
        for Z in (X, X * size)
    )
    np.testing.assert_array_equal(one.support, other.support)
    np.testing.assert_allclose(one.predict(X), other.predict(X * size), rtol=1e-9)


def test_beside_another_map(rng):
    """All bumps come first, once."""
    X = rng.standard_normal((100, D))
    model = sparse_rf(
        X,
        X[:, 0] + np.exp(-np.abs(X - X[3]).sum(axis=1)),
        features=(Linear(), Bumps(X[:9], 1.0)),
        alpha=1e-4,
    )
    assert {block.activation for block in model.features.blocks} == {"identity", "bump"}
    assert 3 + D in model.support


# Blocks


LAYOUTS = {
    "c": np.ascontiguousarray,
    "fortran": np.asfortranarray,
    "read only": read_only,
    "columns": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1].copy()[::-1],
}


@each_dtype
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts_and_workers_give_the_same_bits(dtype, layout, rng):
    X, features = rng.standard_normal((300, D)).astype(dtype), FeatureSet(bumps(D, 40), D)
    phi = features.transform(X)
    assert phi.dtype == dtype
    np.testing.assert_allclose(phi, phi_oracle(features, X), atol=8 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(features.transform(layout(X), workers=2), phi)


@each_dtype
def test_sparse_rows(dtype, rng):
    """Inputs without an entry are at a distance from the center, too; those without weight are not
    read."""
    X = np.where(rng.random((50, 400)) < 0.02, rng.standard_normal((50, 400)), 0).astype(dtype)
    weights, centers = rng.standard_normal((2, 9, 400)) * (rng.random((2, 9, 400)) < 0.1)
    inputs = np.argsort(rng.random((9, 400)), axis=1)[:, :3].astype(np.int32)
    blocks = [
        BumpBlock(1.0, weights, centers),
        BumpBlock(1.0, weights[:, :3] + 1, centers[:, :3], inputs),
    ]
    for block in (*blocks, BumpBlock(2.0, np.zeros((3, 400)), centers[:3])):
        features = FeatureSet([block], 400)
        expected = phi_oracle(features, X)
        np.testing.assert_allclose(
            features.transform(csr_array(X)), expected, atol=32 * np.finfo(dtype).eps
        )
        np.testing.assert_allclose(features.transform(X), expected, atol=32 * np.finfo(dtype).eps)


@pytest.mark.slow
def test_wide_sparse_rows_are_laid_out_a_part_at_a_time(rng):
    """All 3,000 rows would take 480 MB."""
    n, d = 3000, 20_000
    X = csr_array((np.ones(n), (np.arange(n), rng.integers(0, d, n))), shape=(n, d))
    features = FeatureSet([BumpBlock(1.0, np.full((2, d), 1e-3), np.zeros((2, d)))], d)
    rows = features.rows_of(X)
    with peak_below(60e6):
        np.testing.assert_allclose(features.transform(X), np.exp(-1e-3), rtol=1e-12)
        np.testing.assert_allclose(rows.apply(features, np.ones(2)), 2 * np.exp(-1e-3), rtol=1e-12)
        np.testing.assert_allclose(
            rows.correlate(features, np.ones(n)), n * np.exp(-1e-3), rtol=1e-12
        )


def test_bumps_of_some_inputs_of_many(rng):
    X = rng.standard_normal((20, 7))
    few, features = np.array([0, 5, 6]), FeatureSet(bumps(3), 3)
    np.testing.assert_allclose(
        features.seeing(few, 7).transform(X), features.transform(X[:, few]), rtol=1e-14
    )


def test_dense_and_sparse_weights_have_the_same_bits(rng):
    X, (_, block) = rng.standard_normal((20, 60)), bumps(60, 30)
    inputs = np.sort(block.inputs, axis=1)
    block = BumpBlock(1.0, block.weights, block.centers, inputs)
    features, dense = FeatureSet([block], 60), FeatureSet([block.dense(60)], 60)
    np.testing.assert_array_equal(features.transform(X), dense.transform(X))


def test_names_usage_and_bound():
    block = BumpBlock(-2.0, np.array([[1.0, 0, -1], [0, 0, 0]]), np.zeros((2, 3)))
    features = FeatureSet([block], 3)
    assert features.names(["a", "b", "c"]) == ["bump(a, c)", "bump()"]
    np.testing.assert_array_equal(features.input_usage(), [0.5, 0, 0.5])
    np.testing.assert_array_equal(features.largest_value, [2, 2])
    assert repr(features) == "FeatureSet(2 bump; n_features_in=3)"


def test_bumps_at_other_centers_are_other_features():
    block = BumpBlock(1.0, np.ones((2, 2)), np.array([[0.0, 1.0], [0.0, 2.0]]))
    features = FeatureSet([block], 2)
    assert not are_same(features.take([0]), features.take([1]))
    assert are_same(features.take([1, 0]).take([1, 0]), features)
    assert not are_same(features, features.take([0, 0]))
    assert are_same(features, FeatureSet([block], 2))
