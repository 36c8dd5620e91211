"""Dictionaries, which fits search batch by batch: features drawn from maps, or a FeatureSet as it
is given."""

import pickle

import numpy as np
import pytest

from sparserf import Fourier, Linear, Perceptron, RandomNeurons

from .sets import dictionary_of, mixed, raises, same


def dictionary(features, n_components=100, batch_size=30, X=None, gamma=None, rng=0):
    """Make a dictionary for X, by default 50 rows of 5 inputs."""
    X = np.random.default_rng(1).standard_normal((50, 5)) if X is None else X
    return dictionary_of(features, X, n_components, batch_size, rng, gamma)


SEVERAL = [Fourier("laplacian"), Linear(), RandomNeurons("tanh", 2), Perceptron()]
SPECS = {
    "name": "gaussian",
    "perceptron": "perceptron",
    "map": RandomNeurons("relu", 2),
    "sequence": SEVERAL,
    "linear": Linear(),
    "with linear": (Fourier("cauchy", "knn"), Linear()),
    "fixed": mixed(),
}
each_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


@each_spec
@pytest.mark.parametrize("batch_size", [1, 30, 100, 1000, None])
def test_batches_fill_the_dictionary(spec, batch_size):
    d = dictionary(spec, batch_size=batch_size)
    sizes = [len(d.batch(k)) for k in range(d.n_batches)]
    np.testing.assert_array_equal(d.starts, np.cumsum([0, *sizes]))
    assert len(d) == sum(sizes)
    n_linear = 5 if spec in (SPECS["linear"], SPECS["sequence"], SPECS["with linear"]) else 0
    assert len(d) == {id(SPECS["fixed"]): 90, id(SPECS["linear"]): 5}.get(id(spec), 100 + n_linear)
    if batch_size is not None:
        assert max(sizes[1:], default=0) <= batch_size
        assert sizes[0] <= batch_size + n_linear


@each_spec
def test_a_batch_can_be_drawn_again_without_the_others(spec):
    d = dictionary(spec)
    batches = [d.batch(k) for k in range(d.n_batches)]
    again = dictionary(spec)
    for k in reversed(range(d.n_batches)):
        assert same(again.batch(k), batches[k])
        assert same(d.batch(k), batches[k])
        assert same(pickle.loads(pickle.dumps(again)).batch(k), batches[k])


def test_batches_are_different_draws():
    d = dictionary(RandomNeurons(), n_components=90, batch_size=30)
    weights = np.concatenate([block.weights for k in range(3) for block in d.batch(k).blocks])
    assert len(np.unique(weights)) == weights.size
    assert not same(
        d.batch(0), dictionary(RandomNeurons(), n_components=90, batch_size=30, rng=1).batch(0)
    )


def test_a_generator_is_advanced_by_a_dictionary():
    rng = np.random.default_rng(0)
    first, second = dictionary("gaussian", rng=rng), dictionary("gaussian", rng=rng)
    assert same(first.batch(1), dictionary("gaussian", rng=0).batch(1))
    assert not same(first.batch(1), second.batch(1))


def test_maps_share_each_batch_and_linear_comes_first():
    d = dictionary(SEVERAL)
    for k in range(d.n_batches):
        kinds = {block.activation: len(block) for block in d.batch(k).blocks}
        identity = kinds.pop("identity", 0)
        assert identity == (5 if k == 0 else 0)
        assert max(kinds.values()) - min(kinds.values()) <= 1
    np.testing.assert_array_equal(d.batch(0).take(range(5)).transform(np.eye(5)), np.eye(5))


def test_more_maps_than_features():
    d = dictionary(SEVERAL, n_components=2, batch_size=1)
    assert [len(d.batch(k)) for k in range(d.n_batches)] == [6, 1]


def test_a_fixed_dictionary_is_its_features(rng):
    X, d = rng.standard_normal((8, 5)), dictionary(mixed())
    phi = np.hstack([d.batch(k).transform(X) for k in range(d.n_batches)])
    np.testing.assert_array_equal(phi, mixed().transform(X))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"features": "gauss"}, ValueError, "features must be one of 'gaussian'"),
        (
            {"features": 3},
            TypeError,
            "features must be a kernel's name, a map, a sequence of maps or a FeatureSet",
        ),
        ({"features": []}, TypeError, "features must be"),
        ({"features": ["gaussian"]}, TypeError, "features must be"),
        ({"features": [mixed()]}, TypeError, "features must be"),
        ({"features": Fourier}, TypeError, "features must be"),
        ({"features": mixed(4)}, ValueError, "features must have the 5 inputs of X, got 4"),
        ({"features": mixed().take([])}, ValueError, "features must hold at least one feature"),
        (
            {"features": RandomNeurons(order=6)},
            ValueError,
            "order must be at most the number of inputs, 5, got 6",
        ),
        (
            {"features": Perceptron(1.0, np.zeros(4))},
            ValueError,
            "center must have shape (5,), got (4,)",
        ),
        (
            {"features": Perceptron(None, np.zeros(4))},
            ValueError,
            "center must have shape (5,), got (4,)",
        ),
        (
            {"features": mixed(), "gamma": 1.0},
            ValueError,
            "gamma must be None where features is a FeatureSet",
        ),
        ({"features": Fourier(), "gamma": 1.0}, ValueError, "gamma must be given to the map"),
        (
            {"features": "perceptron", "gamma": 1.0},
            ValueError,
            "gamma must be None where features is 'perceptron'",
        ),
        (
            {"features": "gaussian", "gamma": "median"},
            ValueError,
            "gamma must be None, 'knn' or a positive number",
        ),
        (
            {"features": "gaussian", "n_components": 0},
            ValueError,
            "n_components must be at least 1, got 0",
        ),
        (
            {"features": "gaussian", "n_components": 1.0},
            TypeError,
            "n_components must be an integer",
        ),
        (
            {"features": "gaussian", "batch_size": 0},
            ValueError,
            "batch_size must be at least 1, got 0",
        ),
        ({"features": "gaussian", "batch_size": "3"}, TypeError, "batch_size must be an integer"),
    ],
)
def test_invalid_dictionary(arguments, error, message):
    with raises(error, message):
        dictionary(**arguments).batch(0)
