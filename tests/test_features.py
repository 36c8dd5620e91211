"""What phi is: the maps and their laws, FeatureSet, the dictionaries that are searched, and the gamma rules.

The laws are checked by sampling with a fixed seed: the mean of phi(x) phi(z) over the draws lies within 4.5 standard
errors of the kernel that is documented.
"""

import copy
import dataclasses
import pickle
import re
import tracemalloc
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from scipy.spatial.distance import cdist, pdist
from scipy.special import gamma as gamma_function
from scipy.stats import chi2, kstest

from sparserf import FeatureSet, Fourier, Linear, Perceptron, RandomNeurons
from sparserf.features import make_dictionary

from .conftest import phi_oracle

KERNELS = ("gaussian", "laplacian", "cauchy", "matern12", "matern32", "matern52")
NEURONS = [
    RandomNeurons(activation, order, weights, 0.7)
    for activation in ("sin", "cos", "tanh", "relu", "sign")
    for order, weights in ((None, "normal"), (2, "uniform"), (3, "cauchy"))
]
PERCEPTRONS = [Perceptron(2.0), Perceptron(2.0, np.arange(4.0))]
MAPS = [*(Fourier(kernel, 0.3) for kernel in KERNELS), *NEURONS, *PERCEPTRONS, Linear()]
each_map = pytest.mark.parametrize("map_", MAPS, ids=lambda m: "-".join(str(v) for v in vars(m).values()) or "linear")
each_metric = pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
each_layout = pytest.mark.parametrize("layout", [np.asarray, csr_array])
each_kernel = pytest.mark.parametrize("kernel", KERNELS)


def raises(error, message):
    """pytest.raises whose message begins with `message`, taken literally."""
    return pytest.raises(error, match=r"^" + re.escape(message))


def same(a, b):
    """Whether two FeatureSets hold the same features, bit for bit, in the same blocks."""
    if a.n_features_in != b.n_features_in or len(a.blocks) != len(b.blocks):
        return False
    pairs = zip(a.blocks, b.blocks, strict=True)
    return all(
        (p.activation, p.scale) == (q.activation, q.scale)
        and all(np.array_equal(getattr(p, name), getattr(q, name)) for name in ("weights", "offset"))
        and ((p.inputs is None and q.inputs is None) or np.array_equal(p.inputs, q.inputs))
        for p, q in pairs
    )


def mixed(d=5):
    """A FeatureSet of several kinds of block, some of them twice."""
    parts = [
        Fourier("gaussian", 0.3).draw(7, d, 1), RandomNeurons("relu", 2).draw(40, d, 2), Linear().draw(None, d),
        RandomNeurons("sin", 2).draw(3, d, 3), Perceptron(1.0).draw(33, d, 4), RandomNeurons("relu", 2).draw(2, d, 5),
    ]  # fmt: skip
    features = FeatureSet((), d)
    for part in parts:
        features = features.concat(part)
    return features


# Maps


@each_map
@pytest.mark.parametrize("n", [0, 1, 33])
def test_draw_has_the_shape_asked_for(map_, n):
    features = map_.draw(n, 4, rng=0)
    n = 4 if isinstance(map_, Linear) else n
    assert (len(features), features.n_features_in, len(features.blocks)) == (n, 4, min(n, 1))
    assert features.transform(np.ones((3, 4))).shape == (3, n)
    for block in features.blocks:
        order = block.weights.shape[1]
        assert (len(block), block.weights.shape, block.offset.shape) == (n, (n, order), (n,))
        assert order == 4 if block.inputs is None else block.inputs.shape == (n, order)
        assert block.inputs is None or block.inputs.dtype == np.int32


@each_map
def test_draw_is_determined_by_its_seed(map_):
    first = map_.draw(20, 4, rng=7)
    assert same(first, map_.draw(20, 4, rng=7))
    assert same(first, map_.draw(20, 4, rng=np.random.default_rng(7)))
    assert isinstance(map_, Linear) or not same(first, map_.draw(20, 4, rng=8))


@each_map
def test_a_drawn_transform_is_the_formula(map_, rng):
    X = rng.standard_normal((50, 4))
    features = map_.draw(40, 4, rng=1)
    np.testing.assert_allclose(features.transform(X), phi_oracle(features, X), rtol=0, atol=1e-9)


@each_map
def test_maps_are_frozen_and_a_draw_leaves_them_alone(map_):
    before = pickle.dumps(map_)
    map_.draw(3, 4, rng=0)
    assert pickle.dumps(map_) == before
    for name in vars(map_):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(map_, name, 1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Fourier("gauss"), ValueError, "kernel must be one of 'gaussian'"),
        (lambda: Fourier(3), ValueError, "kernel must be"),
        (lambda: Fourier(gamma=0), ValueError, "gamma must be"),
        (lambda: Fourier(gamma=-1.0), ValueError, "gamma must be"),
        (lambda: Fourier(gamma=np.nan), ValueError, "gamma must be"),
        (lambda: Fourier(gamma=np.inf), ValueError, "gamma must be"),
        (lambda: Fourier(gamma="scale"), ValueError, "gamma must be None, 'knn' or a positive number, got 'scale'"),
        (lambda: Fourier(gamma=[1.0]), TypeError, "gamma must be"),
        (lambda: Fourier(gamma=True), TypeError, "gamma must be"),
        (lambda: Fourier().draw(3, 4), ValueError, "gamma must be a number to draw without data, got None"),
        (lambda: Fourier(gamma="knn").draw(3, 4), ValueError, "gamma must be a number"),
        (lambda: RandomNeurons("softmax"), ValueError, "activation must be one of 'sin'"),
        (lambda: RandomNeurons(weights="laplace"), ValueError, "weights must be one of"),
        (lambda: RandomNeurons(scale=0), ValueError, "scale must be"),
        (lambda: RandomNeurons(scale="1"), TypeError, "scale must be"),
        (lambda: RandomNeurons(order=0), ValueError, "order must be at least 1, got 0"),
        (lambda: RandomNeurons(order=1.5), TypeError, "order must be an integer, got 1.5"),
        (lambda: RandomNeurons(order=5).draw(3, 4), ValueError, "order must be at most the number of inputs, 4, got 5"),
        (lambda: Perceptron(0), ValueError, "radius must be"),
        (lambda: Perceptron(np.inf), ValueError, "radius must be"),
        (lambda: Perceptron("1"), TypeError, "radius must be"),
        (lambda: Perceptron().draw(3, 4), ValueError, "radius must be a number to draw without data"),
        (lambda: Perceptron(1.0, np.zeros(3)).draw(3, 4), ValueError, "center must have shape (4,), got (3,)"),
        (lambda: Linear().draw(None, 0), ValueError, "n_features must be at least 1, got 0"),
    ],
)
def test_invalid_map(make, error, message):
    with raises(error, message):
        make()


@pytest.mark.parametrize("map_", [Fourier(gamma=1.0), RandomNeurons(), Perceptron(1.0)], ids=["F", "R", "P"])
def test_invalid_draw(map_):
    for arguments, error, name in [
        ((-1, 4), ValueError, "n_components"), ((2.0, 4), TypeError, "n_components"),
        ((None, 4), TypeError, "n_components"), ((3, 0), ValueError, "n_features"), ((3, "4"), TypeError, "n_features"),
        ((3, True), TypeError, "n_features"),
    ]:  # fmt: skip
        with raises(error, f"{name} must be"):
            map_.draw(*arguments)


# Laws


def check_law(map_, kernel, X, n_draws=40_000):
    """The mean over draws of phi(x) phi(z) is k(x, z) for all pairs of rows of X."""
    phi = map_.draw(n_draws, X.shape[1], rng=11).transform(X)
    for i, j in [(0, 0), *combinations(range(len(X)), 2)]:
        product = phi[i] * phi[j]
        assert abs(product.mean() - kernel(X[i], X[j])) <= 4.5 * np.sqrt(product.var() / n_draws) + 1e-12


def fourier_kernel(name, gamma):
    def kernel(x, z):
        r = np.sqrt(2 * gamma) * np.linalg.norm(x - z)
        return {
            "gaussian": np.exp(-(r**2) / 2),
            "laplacian": np.exp(-gamma * abs(x - z).sum()),
            "cauchy": np.prod(1 / (1 + gamma * (x - z) ** 2)),
            "matern12": np.exp(-r),
            "matern32": (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
            "matern52": (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r),
        }[name]

    return kernel


@each_kernel
@pytest.mark.parametrize("gamma", [0.1, 1.7])
@pytest.mark.parametrize("d", [1, 4])
def test_fourier_kernels(rng, kernel, gamma, d):
    check_law(Fourier(kernel, gamma), fourier_kernel(kernel, gamma), rng.standard_normal((4, d)))


@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("center", [0.0, 3.0])
def test_perceptron_kernel(rng, d, center):
    radius, c = 2.0, gamma_function(d / 2) / (np.sqrt(np.pi) * gamma_function((d + 1) / 2))
    X = rng.standard_normal((4, d))
    X *= 1.9 * rng.random((4, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    map_ = Perceptron(radius, np.full(d, center))
    check_law(map_, lambda x, z: 1 - c * np.linalg.norm(x - z) / radius, X + center)


def test_arc_cosine_kernel_of_relu(rng):
    def kernel(x, z):
        x, z = np.append(x, 1), np.append(z, 1)
        norms = np.linalg.norm(x) * np.linalg.norm(z)
        t = np.arccos(min(1.0, x @ z / norms))
        return norms * (np.sin(t) + (np.pi - t) * np.cos(t)) / (2 * np.pi)

    check_law(RandomNeurons("relu"), kernel, rng.standard_normal((4, 3)))


@pytest.mark.parametrize("activation", ["sin", "cos"])
@pytest.mark.parametrize("scale", [0.5, 1.5])
def test_half_the_kernels_of_sines(rng, activation, scale):
    X, kernels = rng.standard_normal((4, 3)), {"normal": ("gaussian", scale**2 / 2), "cauchy": ("laplacian", scale)}
    for weights, parameters in kernels.items():
        kernel = fourier_kernel(*parameters)
        check_law(RandomNeurons(activation, None, weights, scale), lambda x, z, k=kernel: k(x, z) / 2, X)


@pytest.mark.parametrize(("weights", "law"), [("normal", "norm"), ("uniform", "uniform"), ("cauchy", "cauchy")])
def test_laws_of_weights_and_offsets(weights, law):
    scale = 2.5
    parameters = (-scale, 2 * scale) if weights == "uniform" else (0, scale)
    for activation, order in [("tanh", None), ("relu", 2), ("sin", None)]:
        (block,) = RandomNeurons(activation, order, weights, scale).draw(3000, 3, rng=5).blocks
        of_offset = ("uniform", (0, 2 * np.pi)) if activation == "sin" and weights != "uniform" else (law, parameters)
        assert kstest(block.weights.ravel(), law, parameters).pvalue > 1e-4
        assert kstest(block.offset, *of_offset).pvalue > 1e-4


@pytest.mark.parametrize(("d", "order"), [(6, 3), (5, 1), (7, 2), (5, 4), (4, 4), (8, 5)])
def test_subsets_are_uniform_and_without_repeats(d, order):
    n = 30_000
    (block,) = RandomNeurons(order=order).draw(n, d, rng=9).blocks
    assert (np.diff(block.inputs, axis=1) > 0).all()
    assert block.inputs.min() >= 0
    assert block.inputs.max() < d
    count = np.unique(block.inputs @ (d ** np.arange(order)), return_counts=True)[1]
    assert len(count) == comb(d, order)
    expected = n / len(count)
    assert ((count - expected) ** 2 / expected).sum() <= chi2.ppf(1 - 1e-5, max(len(count) - 1, 1))


def test_weights_do_not_depend_on_where_they_are_sparse():
    """An input that comes early in the subset has the same law as one that comes late."""
    (block,) = RandomNeurons("tanh", 2).draw(20_000, 3, rng=2).blocks
    for k in range(3):
        w = block.weights[block.inputs == k]
        assert kstest(w, "norm").pvalue > 1e-4


def test_sparse_draws_are_cheap_in_a_million_inputs():
    tracemalloc.start()
    features = RandomNeurons("tanh", 3).draw(1000, 1_000_000, rng=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(features) == 1000
    assert peak < 1e6


# FeatureSet


def test_take_in_any_order_with_repeats_over_blocks(rng):
    features, X = mixed(), rng.standard_normal((20, 5))
    phi = features.transform(X)
    np.testing.assert_allclose(phi, phi_oracle(features, X), atol=1e-12)
    for indices in (
        rng.integers(0, len(features), 300), np.arange(len(features)), np.arange(len(features))[::-1], [89], [3, 3, 3],
        np.array([0, 60, 0, 60], np.uint8), range(5, 9),
    ):  # fmt: skip
        taken = features.take(indices)
        assert len(taken) == len(indices)
        np.testing.assert_array_equal(taken.transform(X), phi[:, np.asarray(indices)])
    assert same(features.take(np.arange(len(features))), features)
    np.testing.assert_array_equal(features.take([50, 2, 2]).take([2, 0]).transform(X), phi[:, [2, 50]])


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


def check_read_only(features):
    for block in features.blocks:
        for array in (block.weights, block.offset, block.inputs):
            if array is not None:
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = 0
        for name in ("weights", "offset", "inputs", "scale", "activation"):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(block, name, None)
    for name in ("blocks", "n_features_in"):
        with pytest.raises(AttributeError):
            setattr(features, name, None)


def test_feature_sets_are_immutable():
    for features in (mixed(), mixed().take([5, 2, 60]), mixed().concat(mixed())):
        check_read_only(features)


@pytest.mark.parametrize("again", [lambda f: pickle.loads(pickle.dumps(f)), copy.copy, copy.deepcopy])
def test_pickles_and_copies_are_the_same_features_and_immutable(rng, again):
    features, X = mixed(), rng.standard_normal((70, 5))
    phi = features.transform(X)  # so that what can be made again has been made
    twin = again(features)
    assert same(features, twin)
    np.testing.assert_array_equal(twin.transform(X), phi)
    check_read_only(twin)


def test_a_pickle_holds_only_the_features():
    features = Fourier(gamma=1.0).draw(1000, 20, rng=0)
    fresh = len(pickle.dumps(features))
    features.transform(np.ones((3, 20)))
    assert len(pickle.dumps(features)) == fresh < 1.1 * 8 * 1000 * 21


def test_repr_says_what_is_in_it():
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
    np.testing.assert_array_equal(Linear().draw(None, 4).take([1, 1, 2]).input_usage(), [0, 2 / 3, 1 / 3, 0])


def test_input_usage_of_sparse_weights_is_sparse_work():
    features = Linear().draw(None, 20_000)
    tracemalloc.start()
    usage = features.input_usage()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(usage, np.full(20_000, 1 / 20_000))
    assert peak < 20e6


@pytest.mark.parametrize("X", [np.ones((3, 4)), np.ones(5), [["a"] * 5], np.full((2, 5), np.nan)])
def test_transform_of_invalid_rows(X):
    with pytest.raises((ValueError, TypeError), match=r"^X must"):
        mixed().transform(X)


def test_transform_of_no_rows():
    for X in (np.empty((0, 5)), csr_array((0, 5))):
        assert mixed().transform(X).shape == (0, 90)


# Dictionaries


def dictionary(features, n_components=100, batch_size=30, X=None, gamma=None, rng=0):
    X = np.random.default_rng(1).standard_normal((50, 5)) if X is None else X
    return make_dictionary(features, X, n_components=n_components, batch_size=batch_size, gamma=gamma, rng=rng)


SEVERAL = [Fourier("laplacian"), Linear(), RandomNeurons("tanh", 2), Perceptron()]
SPECS = {
    "name": "gaussian", "perceptron": "perceptron", "map": RandomNeurons("relu", 2), "sequence": SEVERAL,
    "linear": Linear(), "with linear": (Fourier("cauchy", "knn"), Linear()), "fixed": mixed(),
}  # fmt: skip
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
    assert not same(d.batch(0), dictionary(RandomNeurons(), n_components=90, batch_size=30, rng=1).batch(0))


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
        ({"features": 3}, TypeError, "features must be a kernel's name, a map, a sequence of maps or a FeatureSet"),
        ({"features": []}, TypeError, "features must be"),
        ({"features": ["gaussian"]}, TypeError, "features must be"),
        ({"features": [mixed()]}, TypeError, "features must be"),
        ({"features": Fourier}, TypeError, "features must be"),
        ({"features": mixed(4)}, ValueError, "features must have the 5 inputs of X, got 4"),
        ({"features": mixed().take([])}, ValueError, "features must hold at least one feature"),
        ({"features": RandomNeurons(order=6)}, ValueError, "order must be at most the number of inputs, 5, got 6"),
        ({"features": Perceptron(1.0, np.zeros(4))}, ValueError, "center must have shape (5,), got (4,)"),
        ({"features": Perceptron(None, np.zeros(4))}, ValueError, "center must have shape (5,), got (4,)"),
        ({"features": mixed(), "gamma": 1.0}, ValueError, "gamma must be None where features is a FeatureSet"),
        ({"features": Fourier(), "gamma": 1.0}, ValueError, "gamma must be given to the map"),
        ({"features": "perceptron", "gamma": 1.0}, ValueError, "gamma must be None where features is 'perceptron'"),
        ({"features": "gaussian", "gamma": "median"}, ValueError, "gamma must be None, 'knn' or a positive number"),
        ({"features": "gaussian", "n_components": 0}, ValueError, "n_components must be at least 1, got 0"),
        ({"features": "gaussian", "n_components": 1.0}, TypeError, "n_components must be an integer"),
        ({"features": "gaussian", "batch_size": 0}, ValueError, "batch_size must be at least 1, got 0"),
        ({"features": "gaussian", "batch_size": "3"}, TypeError, "batch_size must be an integer"),
    ],
)
def test_invalid_dictionary(arguments, error, message):
    with raises(error, message):
        dictionary(**arguments).batch(0)


# Gamma and the perceptron's ball, read off the data


def gamma_of(kernel, rule, X, rng=0):
    return Fourier(kernel, rule).resolve(X, np.random.default_rng(rng)).gamma


def metric_of(kernel):
    return "cityblock" if kernel == "laplacian" else "euclidean"


def to_gamma(kernel, scale):
    return 1 / scale if kernel == "laplacian" else 0.5 / scale**2


def sparse_rows(rng, n=90, d=6):
    return rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)


@each_kernel
def test_gamma_none_is_of_the_median_distance(rng, kernel):
    X = rng.standard_normal((80, 3))
    expected = to_gamma(kernel, np.median(pdist(X, metric_of(kernel))))
    assert gamma_of(kernel, None, X) == pytest.approx(expected, rel=1e-12)
    assert gamma_of(kernel, None, X.astype(np.float32)) == pytest.approx(expected, rel=1e-5)


@each_kernel
@pytest.mark.parametrize("n", [80, 30])
def test_gamma_knn_is_of_the_fiftieth_neighbour(rng, kernel, n):
    X = rng.standard_normal((n, 3))
    each = np.sort(cdist(X, X, metric_of(kernel)), axis=1)[:, min(50, n - 1)]
    assert gamma_of(kernel, "knn", X) == pytest.approx(to_gamma(kernel, each.mean()), rel=1e-12)


@each_kernel
def test_gamma_that_is_given_stays(rng, kernel):
    assert Fourier(kernel, 2).resolve(rng.standard_normal((9, 2)), rng) == Fourier(kernel, 2.0)


@each_metric
@pytest.mark.parametrize("rule", [None, "knn"])
@pytest.mark.parametrize("make", [csr_array, csr_matrix])
def test_gamma_of_csr_is_that_of_dense(rng, kernel, rule, make):
    X = sparse_rows(rng)
    for rows in (X, 1e200 * X, np.repeat(X[:30], 3, axis=0), X.astype(np.float32), X + 1e4 * (X != 0)):
        assert gamma_of(kernel, rule, make(rows)) == pytest.approx(gamma_of(kernel, rule, rows), rel=1e-6)


@each_kernel
@pytest.mark.parametrize("rule", [None, "knn"])
@each_layout
def test_gamma_where_no_two_rows_differ_is_of_distance_one(rng, kernel, rule, layout):
    one = rng.standard_normal((1, 20))
    for X in (one, np.repeat(one, 60, axis=0), np.zeros((60, 3)), np.full((60, 1), 7.0)):
        assert gamma_of(kernel, rule, layout(X)) == to_gamma(kernel, 1.0)


@each_metric
@pytest.mark.parametrize("rule", [None, "knn"])
@each_layout
def test_equal_rows_do_not_count(rng, kernel, rule, layout):
    """Most of the distances between these rows are 0: the median is over the others."""
    X = np.repeat(rng.standard_normal((1, 20)), 100, axis=0)
    X[:3] = rng.standard_normal((3, 20))
    distance = cdist(X, X, metric_of(kernel))
    each = np.sort(distance, axis=1)[:, 50] if rule else distance[np.triu_indices(100, 1)]
    scale = each[each > 0].mean() if rule else np.median(each[each > 0])
    assert gamma_of(kernel, rule, layout(X)) == pytest.approx(to_gamma(kernel, scale), rel=1e-6)


@each_metric
@each_layout
@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e200, 1e308])
def test_gamma_is_positive_and_finite_at_any_size(rng, kernel, layout, size):
    X = size * rng.uniform(-1, 1, (40, 3))
    for rule in (None, "knn"):
        assert 0 < gamma_of(kernel, rule, layout(X)) < np.inf


def test_gamma_is_of_a_sample_that_the_seed_determines(rng):
    X = rng.standard_normal((2500, 2))
    values = [gamma_of("gaussian", None, X, seed) for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]
    assert values[0] == pytest.approx(values[2], rel=0.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@each_layout
def test_perceptron_ball_is_read_off_the_data(rng, layout, dtype):
    X = (sparse_rows(rng) + 1000).astype(dtype)
    map_ = Perceptron().resolve(layout(X), None)
    np.testing.assert_allclose(map_.center, X.mean(axis=0, dtype=np.float64), rtol=1e-6)
    X = X.astype(np.float64)
    assert map_.radius == pytest.approx(np.linalg.norm(X - X.mean(axis=0), axis=1).max(), rel=1e-4)
    fixed = Perceptron(2.0, [1.0] * 6)
    assert fixed.resolve(layout(X), None) is fixed


@each_layout
def test_perceptron_radius_around_a_given_center(rng, layout):
    X = sparse_rows(rng)
    for center in (np.ones(6), [1.0] * 6):
        map_ = Perceptron(None, center).resolve(layout(X), None)
        assert map_.radius == pytest.approx(np.linalg.norm(X - 1, axis=1).max(), rel=1e-12)
        assert len(map_.draw(3, 6, rng=0)) == 3


@each_layout
@pytest.mark.parametrize("X", [np.ones((1, 3)), np.full((60, 2), 0.1), np.zeros((5, 2))])
def test_perceptron_of_rows_that_do_not_differ_can_be_drawn(layout, X):
    map_ = Perceptron().resolve(layout(X), None)
    assert 0 < map_.radius < np.inf
    assert np.isfinite(map_.draw(5, X.shape[1], rng=0).blocks[0].offset).all()
