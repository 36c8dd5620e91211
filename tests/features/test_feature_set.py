"""FeatureSet: taking, joining, scaling and turning features keeps their order; names, input usage,
copies and pickles."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from scipy.sparse import csr_array

from sparserf import FeatureSet, Fourier, Linear, Perceptron, RandomNeurons, Taylor

from ..conftest import bumps, examples, peak_below, phi_oracle
from .sets import check_read_only, mixed, raises, same, seeds

PARTS = [
    Fourier("gaussian", 0.3).draw(6, 3, 1),
    Fourier("laplacian", 0.3).draw(40, 3, 2),
    Linear().draw(None, 3),
    Taylor(2, 0.4).draw(None, 3),
    Taylor(2, 0.1).draw(None, 3),
    Taylor(1, 0.4).draw(None, 3),
    Taylor(3, 0.4).draw(None, 3),
    RandomNeurons("relu", 2).draw(5, 3, 3),
    RandomNeurons("relu").draw(4, 3, 4),
    RandomNeurons("sin", 2).draw(4, 3, 5),
    Fourier("gaussian", 0.3).draw(6, 3, 1).scaled(0.5),
    Perceptron(1.0).draw(33, 3, 6),
    *(FeatureSet([block], 3) for block in bumps(3)),
]
KIND = [part.blocks[0].kind for part in PARTS]


def interleaved(rng):
    """Make a FeatureSet by random calls of concat and take; return it, and (part, position in the
    part) of each feature."""
    features, origin = FeatureSet((), 3), []
    for _ in range(rng.integers(1, 7)):
        p = rng.integers(len(PARTS))
        some = rng.integers(0, len(PARTS[p]), rng.integers(0, 20))
        more, those = PARTS[p].take(some), [(p, j) for j in some]
        if rng.random() < 0.2:
            more, those = more.concat(features), those + origin
        features, origin = (
            (features.concat(more), origin + those)
            if rng.random() < 0.5
            else (more.concat(features), those + origin)
        )
        if origin and rng.random() < 0.7:
            kept = (
                rng.permutation(len(origin))
                if rng.random() < 0.5
                else rng.integers(0, len(origin), 60)
            )
            features, origin = features.take(kept), [origin[k] for k in kept]
    return features, origin


def columns_of(origin, X, change=lambda part: part):
    """Compute the feature matrix column by column from the parts."""
    phi = [phi_oracle(change(part), X) for part in PARTS]
    return np.stack([np.zeros(len(X)), *(phi[p][:, j] for p, j in origin)], axis=1)[:, 1:]


def quarter_turned(part):
    """Return the features with sines for cosines and cosines for sines."""
    other = {"cos": "sin", "sin": "cos"}
    blocks = [
        dataclasses.replace(b, activation=other[b.activation]) if b.is_periodic else b
        for b in part.blocks
    ]
    return FeatureSet(blocks, part.n_features_in)


@pytest.mark.slow
@examples(100)
@given(seeds)
def test_sets_of_interleaved_kinds(seed):
    """However a set is put together, it has one block for each kind, and every answer is in the
    order of its features."""
    rng = np.random.default_rng(seed)
    features, origin = interleaved(rng)
    X, n = rng.standard_normal((20, 3)), len(origin)
    phi = columns_of(origin, X)
    close = {"rtol": 1e-9, "atol": 1e-9}
    assert len(features) == n
    assert (
        len({block.kind for block in features.blocks})
        == len(features.blocks)
        == len({KIND[p] for p, _ in origin})
    )
    np.testing.assert_allclose(features.transform(X), phi, **close)
    np.testing.assert_allclose(features.transform(csr_array(X)), phi, **close)
    np.testing.assert_allclose(phi_oracle(features, X), phi, **close)
    rows, v, c, h = (
        features.rows_of(X),
        rng.standard_normal((2, 20)),
        rng.standard_normal((2, n)),
        rng.random(20),
    )
    np.testing.assert_allclose(rows.correlate(features, v), v @ phi, **close)
    np.testing.assert_allclose(rows.correlate_squares(features, v[0]), v[0] @ phi**2, **close)
    np.testing.assert_allclose(rows.apply(features, c), c @ phi.T, **close)
    np.testing.assert_allclose(rows.kernel(features, abs(c[0])), phi * abs(c[0]) @ phi.T, **close)
    other, others = interleaved(rng)
    np.testing.assert_allclose(
        rows.gram(features, other, h), phi.T * h @ columns_of(others, X), **close
    )
    laid = features.to_blocks(c)
    np.testing.assert_array_equal(features.from_blocks(laid), c)
    np.testing.assert_array_equal(features.to_blocks(features.from_blocks(c)), c)
    np.testing.assert_allclose(rows.apply(FeatureSet(features.blocks, 3), laid), c @ phi.T, **close)
    assert features.order is None or (
        (np.sort(features.order) == np.arange(n)).all() and (np.diff(features.order) != 1).any()
    )
    check_read_only(features)
    again = (
        pickle.loads(pickle.dumps(features)),
        copy.copy(features),
        copy.deepcopy(features),
        features.take(np.arange(n)),
    )
    for twin in again:
        assert same(twin, features) and np.array_equal(twin.transform(X), features.transform(X))
        check_read_only(twin)
    np.testing.assert_allclose(features.scaled(-1.5).transform(X), -1.5 * phi, **close)
    angles, activations = rng.uniform(-9, 9, n), np.array([KIND[p][0] for p, _ in origin], "U9")
    periodic = np.isin(activations, ["cos", "sin"])
    ahead = columns_of(origin, X, quarter_turned) * np.where(activations == "cos", -1, 1)
    turned = np.where(periodic, phi * np.cos(angles) + ahead * np.sin(angles), phi)
    np.testing.assert_array_equal(features.is_periodic, periodic)
    np.testing.assert_allclose(features.turned(angles).transform(X), turned, **close)
    np.testing.assert_array_equal(
        features.largest_value, [PARTS[p].largest_value[j] for p, j in origin]
    )
    usage = (
        np.zeros((1, 3))
        if n == 0
        else np.array([PARTS[p].take([j]).input_usage() for p, j in origin])
    )
    np.testing.assert_allclose(features.input_usage(), usage.mean(axis=0), atol=1e-15)


def test_indices_of_a_small_type_reach_every_block(rng):
    features = (
        Linear()
        .draw(None, 3)
        .concat(Fourier(gamma=1.0).draw(300, 3, 0))
        .concat(Taylor(gamma=1.0).draw(None, 3))
    )
    X = rng.standard_normal((4, 3))
    for type_ in (np.uint8, np.int8, np.int16, np.uint64):
        indices = np.array([100, 0, 1], type_)
        np.testing.assert_array_equal(
            features.take(indices).transform(X), features.transform(X)[:, [100, 0, 1]]
        )


def test_take_in_any_order_with_repeats_over_blocks(rng):
    features, X = mixed(), rng.standard_normal((20, 5))
    phi = features.transform(X)
    np.testing.assert_allclose(phi, phi_oracle(features, X), atol=1e-12)
    for indices in (
        rng.integers(0, len(features), 300),
        np.arange(len(features)),
        np.arange(len(features))[::-1],
        [89],
        [3, 3, 3],
        np.array([0, 60, 0, 60], np.uint8),
        range(5, 9),
    ):
        taken = features.take(indices)
        assert len(taken) == len(indices)
        np.testing.assert_array_equal(taken.transform(X), phi[:, np.asarray(indices)])
    assert same(features.take(np.arange(len(features))), features)
    np.testing.assert_array_equal(
        features.take([50, 2, 2]).take([2, 0]).transform(X), phi[:, [2, 50]]
    )


def test_take_of_nothing():
    empty = mixed().take([])
    assert (len(empty), empty.n_features_in, empty.blocks) == (0, 5, ())
    assert empty.transform(np.ones((3, 5))).shape == (3, 0)
    assert len(empty.concat(mixed())) == len(mixed()) == len(mixed().concat(empty))
    np.testing.assert_array_equal(empty.input_usage(), np.zeros(5))


@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        ([-1], ValueError, "indices must lie in [0, 90), got -1 to -1"),
        ([0, 90], ValueError, "indices must lie in [0, 90), got 0 to 90"),
        ([0.0], TypeError, "indices must be a one-dimensional sequence of integers"),
        ([True], TypeError, "indices must be a one-dimensional sequence of integers"),
        ([[1, 2]], TypeError, "indices must be a one-dimensional sequence of integers"),
        (3, TypeError, "indices must be a one-dimensional sequence of integers"),
    ],
)
def test_invalid_take(indices, error, message):
    with raises(error, message):
        mixed().take(indices)


def test_concat_follows_in_order_and_joins_neighbours_of_one_kind(rng):
    X = rng.standard_normal((9, 5))
    a, b = mixed().take([60, 61, 3]), mixed().take([4, 5, 88])
    both = a.concat(b)
    np.testing.assert_array_equal(both.transform(X), np.hstack([a.transform(X), b.transform(X)]))
    assert len(both) == 6
    assert len(both.blocks) == len(a.blocks) + len(b.blocks) - 1
    one_by_one = FeatureSet((), 5)
    for j in range(40):
        one_by_one = one_by_one.concat(mixed().take([j]))
    assert same(one_by_one, mixed().take(np.arange(40)))


def test_invalid_concat():
    with raises(ValueError, "both sets must have the same inputs, got 5 and 4"):
        mixed().concat(mixed(4))
    with raises(TypeError, "other must be a FeatureSet, got list"):
        mixed().concat([])


def test_a_pickle_holds_only_the_features():
    features = Fourier(gamma=1.0).draw(1000, 20, rng=0)
    fresh = len(pickle.dumps(features))
    features.transform(np.ones((3, 20)))
    assert len(pickle.dumps(features)) == fresh < 1.1 * 8 * 1000 * 21


def test_repr_names_activations_and_inputs():
    assert repr(Linear().draw(None, 2)) == "FeatureSet(2 identity; n_features_in=2)"
    assert repr(FeatureSet((), 3)) == "FeatureSet(empty; n_features_in=3)"


def test_input_usage():
    features = mixed()
    used = np.zeros((len(features), 5), dtype=bool)
    for j in range(len(features)):
        (block,) = features.take([j]).blocks
        inputs = np.arange(5) if block.inputs is None else block.inputs[0]
        used[j, inputs[block.weights[0] != 0]] = True
    np.testing.assert_allclose(features.input_usage(), used.mean(axis=0))
    np.testing.assert_array_equal(
        Linear().draw(None, 4).take([1, 1, 2]).input_usage(), [0, 2 / 3, 1 / 3, 0]
    )


def test_input_usage_of_sparse_weights_is_sparse_work():
    features = Linear().draw(None, 20_000)
    with peak_below(20e6):
        usage = features.input_usage()
    np.testing.assert_array_equal(usage, np.full(20_000, 1 / 20_000))


@pytest.mark.every_case
@pytest.mark.parametrize("X", [np.ones((3, 4)), np.ones(5), [["a"] * 5], np.full((2, 5), np.nan)])
def test_transform_of_invalid_rows(X):
    with pytest.raises((ValueError, TypeError), match=r"^X must"):
        mixed().transform(X)


def test_transform_of_no_rows():
    for X in (np.empty((0, 5)), csr_array((0, 5))):
        assert mixed().transform(X).shape == (0, 90)


def test_names():
    parts = Linear(), Taylor(2, 1.0), RandomNeurons("sin", 2), Fourier(gamma=1.0)
    features = FeatureSet((), 4)
    for map_ in parts:
        features = features.concat(map_.draw(2, 4, rng=0))
    assert features.names()[:10] == [
        "x0",
        "x1",
        "x2",
        "x3",
        "gaussian",
        "gaussian*x0",
        "gaussian*x1",
        "gaussian*x2",
        "gaussian*x3",
        "gaussian*x0^2",
    ]
    some = features.take([len(features) - 1, 10, 2, len(features) - 3])
    pair = ", ".join("abcd"[i] for i in features.blocks[2].inputs[1])
    assert some.names(list("abcd")) == ["cos(4 inputs)", "gaussian*a*b", "c", f"sin({pair})"]
    assert FeatureSet((), 2).names() == []
    with raises(ValueError, "inputs must hold a name for each of the 4 columns of X, got 3"):
        features.names(["a", "b", "c"])
