"""What phi is: the maps and their laws, FeatureSet, the dictionaries that are searched, and the gamma rules.

The laws are checked by sampling with a fixed seed: the mean of phi(x) phi(z) over the draws lies within 4.5 standard
errors of the kernel that is documented.
"""

import copy
import dataclasses
import pickle
import re
import tracemalloc
from itertools import combinations, combinations_with_replacement
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix
from scipy.spatial.distance import cdist, pdist
from scipy.special import gamma as gamma_function
from scipy.stats import chi2, kstest

from sparserf import FeatureSet, Fourier, Linear, Perceptron, RandomNeurons, Taylor
from sparserf.features import make_dictionary
from sparserf.rows import as_rows

from ..conftest import phi_oracle

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
seeds = st.integers(0, 2**32 - 1)


def examples(n):
    return settings(max_examples=n, derandomize=True, deadline=None, database=None)


def raises(error, message):
    """pytest.raises whose message begins with `message`, taken literally."""
    return pytest.raises(error, match=r"^" + re.escape(message))


def same(a, b):
    """Whether two FeatureSets hold the same features, bit for bit, in the same blocks."""
    if a.n_features_in != b.n_features_in or len(a.blocks) != len(b.blocks):
        return False
    pairs = zip(a.blocks, b.blocks, strict=True)
    return all(
        (p.activation, p.scale, p.gamma) == (q.activation, q.scale, q.gamma)
        and all(np.array_equal(getattr(p, name), getattr(q, name)) for name in ("weights", "offset"))
        and ((p.inputs is None and q.inputs is None) or np.array_equal(p.inputs, q.inputs))
        for p, q in pairs
    ) and np.array_equal(*([] if f.order is None else f.order for f in (a, b)))


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
        (lambda: Taylor(0), ValueError, "degree must be at least 1, got 0"),
        (lambda: Taylor(2.0), TypeError, "degree must be an integer, got 2.0"),
        (lambda: Taylor(True), TypeError, "degree must be an integer"),
        (lambda: Taylor(gamma=0), ValueError, "gamma must be"),
        (lambda: Taylor(gamma=np.nan), ValueError, "gamma must be"),
        (lambda: Taylor(gamma=1e301), ValueError, "gamma must be at most 1e300"),
        (lambda: Taylor(gamma="median"), ValueError, "gamma must be None, 'knn' or a positive number, got 'median'"),
        (lambda: Taylor(gamma=[1.0]), TypeError, "gamma must be"),
        (lambda: Taylor(include_squares=1), TypeError, "include_squares must be True or False, got 1"),
        (lambda: Taylor().draw(None, 4), ValueError, "gamma must be a number to draw without data, got None"),
        (lambda: Taylor(gamma="knn").draw(None, 4), ValueError, "gamma must be a number"),
        (lambda: Taylor(gamma=1.0).draw(None, 0), ValueError, "n_features must be at least 1, got 0"),
        (lambda: Taylor(gamma=1.0).draw(None, 2.0), TypeError, "n_features must be an integer"),
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


# Taylor features


def exponents(d, degree, squares):
    """The power of each input in each monomial: by degree, then by the inputs in ascending order."""
    choices = combinations_with_replacement if squares else combinations
    return [[inputs.count(i) for i in range(d)] for k in range(degree + 1) for inputs in choices(range(d), k)]


def taylor_oracle(X, degree, gamma, squares=True):
    t = np.sqrt(2 * gamma) * np.asarray(X, np.float64)
    columns = [
        np.prod([t[:, i] ** v / np.sqrt(factorial(v)) for i, v in enumerate(powers)], axis=0)
        for powers in exponents(X.shape[1], degree, squares)
    ]
    return np.exp(-(t**2).sum(axis=1, keepdims=True) / 2) * np.stack(columns, axis=1)


@pytest.mark.parametrize(("d", "degree"), [(1, 1), (1, 12), (2, 6), (3, 2), (3, 5), (5, 1), (6, 3), (40, 2)])
@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_taylor_features_are_the_formula(rng, d, degree, squares, dtype):
    X = (rng.standard_normal((20, d)) * (rng.random((20, d)) < 0.7)).astype(dtype)
    map_ = Taylor(degree, 0.4, squares)
    features = map_.draw(None, d)
    expected = taylor_oracle(X, degree, 0.4, squares)
    counts = comb(d + degree, degree), sum(comb(d, k) for k in range(degree + 1))
    assert len(features) == map_.count(d) == expected.shape[1] == counts[0 if squares else 1]
    assert (len(features.blocks), features.order, features.n_features_in) == (1, None, d)
    for layout in (np.asarray, csr_array):
        phi = features.transform(layout(X))
        assert phi.dtype == dtype
        np.testing.assert_allclose(phi, expected, rtol=4 * (degree + d + 4) * np.finfo(dtype).eps, atol=0)


def test_a_degree_above_the_number_of_inputs_adds_nothing_without_squares():
    high, low = (Taylor(degree, 0.3, include_squares=False).draw(None, 3) for degree in (10**6, 3))
    X = np.random.default_rng(0).standard_normal((5, 3))
    np.testing.assert_array_equal(high.transform(X), low.transform(X))


def test_taylor_features_are_not_random():
    map_ = Taylor(3, 0.5)
    assert same(map_.draw(None, 4), map_.draw(7, 4, rng=3))
    assert map_.resolve(as_rows(np.ones((3, 4))), None) is map_
    assert Taylor(np.int8(2), 1.0).count(127) == len(Taylor(np.int8(2), 1).draw(None, np.int8(127))) == 8256
    with pytest.raises(dataclasses.FrozenInstanceError):
        map_.degree = 2
    check_read_only(map_.draw(None, 4))


@pytest.mark.parametrize("rule", [None, "knn"])
@each_layout
def test_gamma_of_taylor_is_that_of_the_gaussian_kernel(rng, rule, layout):
    X = sparse_rows(rng)
    map_ = Taylor(3, rule, False).resolve(as_rows(layout(X)), np.random.default_rng(0))
    assert map_ == Taylor(3, gamma_of("gaussian", rule, layout(X)), False)
    assert Taylor(2, rule).gamma == rule


@pytest.mark.parametrize(("degree", "d", "squares"), [
    (2, 6000, True), (2, 5800, False), (24, 24, True), (8, 60, False), (10**5, 1, True), (3 * 10**4, 2 * 10**4, True),
    (10**9, 10**9, False),
])  # fmt: skip
def test_too_many_taylor_features_are_refused_before_they_are_listed(degree, d, squares):
    tracemalloc.start()
    try:
        with raises(ValueError, f"degree={degree} of {d} inputs makes more than 16777216 features"):
            Taylor(degree, 1.0, squares).draw(None, d)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1e5


@examples(100)
@given(seeds, st.integers(1, 6), st.sampled_from([1, 2, 3, 7]), st.sampled_from([1e-300, 1e-3, 1.0, 1e3, 1e300]), st.booleans())
def test_squares_of_taylor_features_add_up_to_one_at_most(seed, d, degree, gamma, single):
    """Rows of any size, a zero among them: no NaN, and no warning, which would be an error."""
    rng = np.random.default_rng(seed)
    limit = 38 if single else 308
    X = rng.uniform(-1, 1, (30, d)) * 10.0 ** rng.uniform(-limit, limit, (30, d)) * (rng.random((30, d)) < 0.8)
    X[:15] = rng.standard_normal((15, d)) / np.sqrt(gamma) if not single or 1e-60 < gamma < 1e60 else 0
    X[0] = 0
    X = X.astype(np.float32 if single else np.float64)
    features = Taylor(degree, gamma).draw(None, d)
    phi, of_csr = features.transform(X).astype(np.float64), features.transform(csr_array(X))
    assert ((phi**2).sum(axis=1) <= 1 + 10 * degree * np.finfo(X.dtype).eps).all()
    np.testing.assert_allclose(of_csr, phi, rtol=1e-5 if single else 1e-12, atol=1e-44 if single else 1e-307)
    np.testing.assert_array_equal(phi[0], np.arange(len(features)) == 0)


@pytest.mark.parametrize(("gamma", "x", "dtype"), [
    (5e-324, 1e200, np.float64), (1e-308, 1.5e154, np.float64), (2e-308, 1e154, np.float64), (1e300, 1e-150, np.float64),
    (1e80, 1e-40, np.float32), (1e-70, 3e35, np.float32), (1e300, 1e30, np.float32), (1.0, 1e200, np.float64),
])  # fmt: skip
@each_layout
def test_taylor_features_where_gamma_makes_up_for_the_size_of_the_rows(gamma, x, dtype, layout):
    """t^v exp(-t^2 / 2) / sqrt(v!) in t alone, whatever gamma and x would be on their own."""
    x = np.array([[x]], dtype)
    t = np.exp(np.log(2 * np.float64(gamma)) / 2 + np.log(np.float64(x)))
    with np.errstate(over="ignore", under="ignore"):
        expected = t ** np.arange(4) * np.exp(-(t**2) / 2) / np.sqrt([1, 1, 2, 6]) if t[0, 0] < 1e9 else np.zeros((1, 4))
    phi = Taylor(3, gamma).draw(None, 1).transform(layout(x))
    np.testing.assert_allclose(phi, expected, rtol=1e-4 if dtype == np.float32 else 1e-10, atol=1e-44)


@pytest.mark.parametrize(("d", "degree", "exponent", "dtype", "accuracy"), [
    (1, 2000, 800.0, np.float64, 1e-9), (1, 400, 150.0, np.float32, 1e-4), (1, 1000, 150.0, np.float32, 2e-4),
    (2, 200, 60.0, np.float32, 1e-4), (2, 200, 60.0, np.float64, 1e-9),
])  # fmt: skip
def test_taylor_features_of_high_degree_neither_overflow_nor_vanish(d, degree, exponent, dtype, accuracy):
    """The envelope alone would be 0, some powers infinite, and 1 / sqrt(degree!) 0; phi(x)'phi(x) is 1 all the same."""
    features = Taylor(degree, exponent / d).draw(None, d)
    for sign in (1, -1):
        X = np.full((1, d), sign, dtype)
        X[0, -1] = 1
        for layout in (np.asarray, csr_array):
            phi = features.transform(layout(X)).astype(np.float64)
            assert np.square(phi).sum() == pytest.approx(1, abs=accuracy)
            assert abs(phi).max() < 0.3
    logarithm = [v * np.log(2 * exponent) - exponent * 2 - sum(np.log(range(1, v + 1))) for v in (50, 100, 300)]
    if d == 1 and dtype == np.float64:
        np.testing.assert_allclose(
            features.transform(np.ones((1, 1)))[0, [50, 100, 300]], np.exp(np.array(logarithm) / 2), 1e-9
        )


def test_names():
    parts = Linear(), Taylor(2, 1.0), RandomNeurons("sin", 2), Fourier(gamma=1.0)
    features = FeatureSet((), 4)
    for map_ in parts:
        features = features.concat(map_.draw(2, 4, rng=0))
    assert features.names()[:10] == [
        "x0", "x1", "x2", "x3", "gaussian", "gaussian*x0", "gaussian*x1", "gaussian*x2", "gaussian*x3", "gaussian*x0^2",
    ]  # fmt: skip
    some = features.take([len(features) - 1, 10, 2, len(features) - 3])
    pair = ", ".join("abcd"[i] for i in features.blocks[2].inputs[1])
    assert some.names(list("abcd")) == ["cos(4 inputs)", "gaussian*a*b", "c", f"sin({pair})"]
    assert FeatureSet((), 2).names() == []
    with raises(ValueError, "inputs must hold a name for each of the 4 columns of X, got 3"):
        features.names(["a", "b", "c"])


def test_input_usage_of_products():
    """By the monomials: the envelope, of all inputs, does not count."""
    features = Taylor(3, 1.0).draw(None, 4)
    used = np.array(exponents(4, 3, True)) > 0
    np.testing.assert_allclose(features.input_usage(), used.mean(axis=0))
    np.testing.assert_array_equal(features.take([0, 0]).input_usage(), np.zeros(4))
    np.testing.assert_array_equal(Taylor(1, 1.0).draw(None, 2).take([2, 0, 2, 1]).input_usage(), [0.25, 0.5])


@pytest.mark.parametrize(("d", "degree"), [(1, 1), (1, 9), (3, 2), (3, 4), (1, 400), (2, 90)])
def test_the_largest_value_of_a_product_is_its_supremum(rng, d, degree):
    """t^v exp(-t^2 / 2) is largest where t_i^2 = v_i, and no larger anywhere."""
    gamma, features = 0.7, Taylor(degree, 0.7).draw(None, d).scaled(-2.0)
    powers = np.array(exponents(d, degree, True))
    some = rng.permutation(len(features))[:300]
    features, powers = features.take(some), powers[some]
    largest = features.largest_value
    np.testing.assert_allclose(abs(features.transform(np.sqrt(powers / (2 * gamma)))).diagonal(), largest, rtol=1e-9)
    assert largest.max() <= 2
    for spread in (0.3, 1, 3, 20):
        X = np.vstack([spread * rng.standard_normal((200, d)), np.sqrt(powers / 2 / gamma) * rng.uniform(0.9, 1.1)])
        assert (abs(features.transform(X)) <= largest * (1 + 1e-9)).all()


# FeatureSet


PARTS = [
    Fourier("gaussian", 0.3).draw(6, 3, 1), Fourier("laplacian", 0.3).draw(40, 3, 2), Linear().draw(None, 3),
    Taylor(2, 0.4).draw(None, 3), Taylor(2, 0.1).draw(None, 3), Taylor(1, 0.4).draw(None, 3), Taylor(3, 0.4).draw(None, 3),
    RandomNeurons("relu", 2).draw(5, 3, 3), RandomNeurons("relu").draw(4, 3, 4), RandomNeurons("sin", 2).draw(4, 3, 5),
    Fourier("gaussian", 0.3).draw(6, 3, 1).scaled(0.5), Perceptron(1.0).draw(33, 3, 6),
]  # fmt: skip
KIND = [part.blocks[0].kind for part in PARTS]


def interleaved(rng):
    """A FeatureSet made by concat and take in any order, and the part and position there of each of its features."""
    features, origin = FeatureSet((), 3), []
    for _ in range(rng.integers(1, 7)):
        p = rng.integers(len(PARTS))
        some = rng.integers(0, len(PARTS[p]), rng.integers(0, 20))
        more, those = PARTS[p].take(some), [(p, j) for j in some]
        if rng.random() < 0.2:
            more, those = more.concat(features), those + origin
        features, origin = (
            (features.concat(more), origin + those) if rng.random() < 0.5 else (more.concat(features), those + origin)
        )
        if origin and rng.random() < 0.7:
            kept = rng.permutation(len(origin)) if rng.random() < 0.5 else rng.integers(0, len(origin), 60)
            features, origin = features.take(kept), [origin[k] for k in kept]
    return features, origin


def columns_of(origin, X, change=lambda part: part):
    """The feature matrix, column by column from the parts."""
    phi = [phi_oracle(change(part), X) for part in PARTS]
    return np.stack([np.zeros(len(X)), *(phi[p][:, j] for p, j in origin)], axis=1)[:, 1:]


def quarter_turned(part):
    """Sines for cosines and cosines for sines."""
    other = {"cos": "sin", "sin": "cos"}
    blocks = [dataclasses.replace(b, activation=other[b.activation]) if b.is_periodic else b for b in part.blocks]
    return FeatureSet(blocks, part.n_features_in)


@examples(100)
@given(seeds)
def test_sets_of_interleaved_kinds(seed):
    """However they are put together: a block a kind, and every answer in the order of the features."""
    rng = np.random.default_rng(seed)
    features, origin = interleaved(rng)
    X, n = rng.standard_normal((20, 3)), len(origin)
    phi = columns_of(origin, X)
    close = {"rtol": 1e-9, "atol": 1e-9}
    assert len(features) == n
    assert len({block.kind for block in features.blocks}) == len(features.blocks) == len({KIND[p] for p, _ in origin})
    np.testing.assert_allclose(features.transform(X), phi, **close)
    np.testing.assert_allclose(features.transform(csr_array(X)), phi, **close)
    np.testing.assert_allclose(phi_oracle(features, X), phi, **close)
    rows, v, c, h = as_rows(X), rng.standard_normal((2, 20)), rng.standard_normal((2, n)), rng.random(20)
    np.testing.assert_allclose(rows.correlate(features, v), v @ phi, **close)
    np.testing.assert_allclose(rows.correlate_squares(features, v[0]), v[0] @ phi**2, **close)
    np.testing.assert_allclose(rows.apply(features, c), c @ phi.T, **close)
    np.testing.assert_allclose(rows.kernel(features, abs(c[0])), phi * abs(c[0]) @ phi.T, **close)
    other, others = interleaved(rng)
    np.testing.assert_allclose(rows.gram(features, other, h), phi.T * h @ columns_of(others, X), **close)
    laid = features.to_blocks(c)
    np.testing.assert_array_equal(features.from_blocks(laid), c)
    np.testing.assert_array_equal(features.to_blocks(features.from_blocks(c)), c)
    np.testing.assert_allclose(rows.apply(FeatureSet(features.blocks, 3), laid), c @ phi.T, **close)
    assert features.order is None or ((np.sort(features.order) == np.arange(n)).all() and (np.diff(features.order) != 1).any())
    for twin in (pickle.loads(pickle.dumps(features)), copy.deepcopy(features), features.take(np.arange(n))):
        assert same(twin, features) and np.array_equal(twin.transform(X), features.transform(X))
        check_read_only(twin)
    np.testing.assert_allclose(features.scaled(-1.5).transform(X), -1.5 * phi, **close)
    angles, activations = rng.uniform(-9, 9, n), np.array([KIND[p][0] for p, _ in origin], "U9")
    periodic = np.isin(activations, ["cos", "sin"])
    ahead = columns_of(origin, X, quarter_turned) * np.where(activations == "cos", -1, 1)
    turned = np.where(periodic, phi * np.cos(angles) + ahead * np.sin(angles), phi)
    np.testing.assert_array_equal(features.is_periodic, periodic)
    np.testing.assert_allclose(features.turned(angles).transform(X), turned, **close)
    np.testing.assert_array_equal(features.largest_value, [PARTS[p].largest_value[j] for p, j in origin])
    usage = np.zeros((1, 3)) if n == 0 else np.array([PARTS[p].take([j]).input_usage() for p, j in origin])
    np.testing.assert_allclose(features.input_usage(), usage.mean(axis=0), atol=1e-15)


def test_indices_of_a_small_type_reach_every_block(rng):
    features = Linear().draw(None, 3).concat(Fourier(gamma=1.0).draw(300, 3, 0)).concat(Taylor(gamma=1.0).draw(None, 3))
    X = rng.standard_normal((4, 3))
    for type_ in (np.uint8, np.int8, np.int16, np.uint64):
        indices = np.array([100, 0, 1], type_)
        np.testing.assert_array_equal(features.take(indices).transform(X), features.transform(X)[:, [100, 0, 1]])


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
    if features.order is not None:
        with pytest.raises(ValueError, match="read-only"):
            features.order[...] = 0
    for name in ("blocks", "order", "n_features_in"):
        with pytest.raises(AttributeError):
            setattr(features, name, None)


def test_feature_sets_are_immutable():
    for features in (mixed(), mixed().take([5, 2, 60]), mixed().take([60, 2, 61, 5]), mixed().concat(mixed())):
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
    return make_dictionary(features, as_rows(X), n_components=n_components, batch_size=batch_size, gamma=gamma, rng=rng)


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
    return Fourier(kernel, rule).resolve(as_rows(X), np.random.default_rng(rng)).gamma


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
    assert Fourier(kernel, 2).resolve(as_rows(rng.standard_normal((9, 2))), rng) == Fourier(kernel, 2.0)


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
    map_ = Perceptron().resolve(as_rows(layout(X)), None)
    np.testing.assert_allclose(map_.center, X.mean(axis=0, dtype=np.float64), rtol=1e-6)
    X = X.astype(np.float64)
    assert map_.radius == pytest.approx(np.linalg.norm(X - X.mean(axis=0), axis=1).max(), rel=1e-4)
    fixed = Perceptron(2.0, [1.0] * 6)
    assert fixed.resolve(as_rows(layout(X)), None) is fixed


@each_layout
def test_perceptron_radius_around_a_given_center(rng, layout):
    X = sparse_rows(rng)
    for center in (np.ones(6), [1.0] * 6):
        map_ = Perceptron(None, center).resolve(as_rows(layout(X)), None)
        assert map_.radius == pytest.approx(np.linalg.norm(X - 1, axis=1).max(), rel=1e-12)
        assert len(map_.draw(3, 6, rng=0)) == 3


@each_layout
@pytest.mark.parametrize("X", [np.ones((1, 3)), np.full((60, 2), 0.1), np.zeros((5, 2))])
def test_perceptron_of_rows_that_do_not_differ_can_be_drawn(layout, X):
    map_ = Perceptron().resolve(as_rows(layout(X)), None)
    assert 0 < map_.radius < np.inf
    assert np.isfinite(map_.draw(5, X.shape[1], rng=0).blocks[0].offset).all()
