"""The maps: what they draw, the kernels whose features they are, and what they read off the data.

Kernels are checked by sampling with a fixed seed: the mean of phi(x) phi(z) over the draws must lie
within 4.5 standard errors of the kernel that the documentation names.
"""

import dataclasses
import pickle
from itertools import combinations
from math import comb
from typing import get_args

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from scipy.spatial.distance import cdist, pdist
from scipy.special import gamma as gamma_function
from scipy.stats import chi2, kstest

from sparserf import Fourier, Linear, Perceptron, RandomNeurons, Taylor
from sparserf.features import Activation

from ..conftest import KERNELS, as_within_a_call, each_dtype, peak_below, phi_oracle
from .sets import each_layout, gamma_of, raises, resolved, same, sparse_rows

NEURONS = [
    RandomNeurons(activation, order, weights, 0.7)
    for activation in get_args(Activation)
    for order, weights in ((None, "normal"), (2, "uniform"), (3, "cauchy"))
]
PERCEPTRONS = [Perceptron(2.0), Perceptron(2.0, np.arange(4.0))]
MAPS = [*(Fourier(kernel, 0.3) for kernel in KERNELS), *NEURONS, *PERCEPTRONS, Linear()]
each_map = pytest.mark.parametrize(
    "map_", MAPS, ids=lambda m: "-".join(str(v) for v in vars(m).values()) or "linear"
)
each_metric = pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
each_kernel = pytest.mark.parametrize("kernel", KERNELS)


# Drawing and arguments


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


@pytest.mark.every_case
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
        (
            lambda: Fourier(gamma="scale"),
            ValueError,
            "gamma must be None, 'knn' or a positive number, got 'scale'",
        ),
        (lambda: Fourier(gamma=[1.0]), TypeError, "gamma must be"),
        (lambda: Fourier(gamma=True), TypeError, "gamma must be"),
        (
            lambda: Fourier().draw(3, 4),
            ValueError,
            "gamma must be a number to draw without data, got None",
        ),
        (lambda: Fourier(gamma="knn").draw(3, 4), ValueError, "gamma must be a number"),
        (lambda: RandomNeurons("softmax"), ValueError, "activation must be one of 'sin'"),
        (lambda: RandomNeurons(weights="laplace"), ValueError, "weights must be one of"),
        (lambda: RandomNeurons(scale=0), ValueError, "scale must be"),
        (lambda: RandomNeurons(scale="1"), TypeError, "scale must be"),
        (lambda: RandomNeurons(order=0), ValueError, "order must be at least 1, got 0"),
        (lambda: RandomNeurons(order=1.5), TypeError, "order must be an integer, got 1.5"),
        (
            lambda: RandomNeurons(order=5).draw(3, 4),
            ValueError,
            "order must be at most the number of inputs, 4, got 5",
        ),
        (lambda: Perceptron(0), ValueError, "radius must be"),
        (lambda: Perceptron(np.inf), ValueError, "radius must be"),
        (lambda: Perceptron("1"), TypeError, "radius must be"),
        (
            lambda: Perceptron().draw(3, 4),
            ValueError,
            "radius must be a number to draw without data",
        ),
        (
            lambda: Perceptron(1.0, np.zeros(3)).draw(3, 4),
            ValueError,
            "center must have shape (4,), got (3,)",
        ),
        (lambda: Linear().draw(None, 0), ValueError, "n_features must be at least 1, got 0"),
        (lambda: Taylor(0), ValueError, "degree must be at least 1, got 0"),
        (lambda: Taylor(2.0), TypeError, "degree must be an integer, got 2.0"),
        (lambda: Taylor(True), TypeError, "degree must be an integer"),
        (lambda: Taylor(gamma=0), ValueError, "gamma must be"),
        (lambda: Taylor(gamma=np.nan), ValueError, "gamma must be"),
        (lambda: Taylor(gamma=1e301), ValueError, "gamma must be at most 1e300"),
        (
            lambda: Taylor(gamma="median"),
            ValueError,
            "gamma must be None, 'knn' or a positive number, got 'median'",
        ),
        (lambda: Taylor(gamma=[1.0]), TypeError, "gamma must be"),
        (
            lambda: Taylor(include_squares=1),
            TypeError,
            "include_squares must be True or False, got 1",
        ),
        (
            lambda: Taylor().draw(None, 4),
            ValueError,
            "gamma must be a number to draw without data, got None",
        ),
        (lambda: Taylor(gamma="knn").draw(None, 4), ValueError, "gamma must be a number"),
        (
            lambda: Taylor(gamma=1.0).draw(None, 0),
            ValueError,
            "n_features must be at least 1, got 0",
        ),
        (lambda: Taylor(gamma=1.0).draw(None, 2.0), TypeError, "n_features must be an integer"),
    ],
)
def test_invalid_map(make, error, message):
    with raises(error, message):
        make()


@pytest.mark.parametrize(
    "map_", [Fourier(gamma=1.0), RandomNeurons(), Perceptron(1.0)], ids=["F", "R", "P"]
)
def test_invalid_draw(map_):
    for arguments, error, name in [
        ((-1, 4), ValueError, "n_components"),
        ((2.0, 4), TypeError, "n_components"),
        ((None, 4), TypeError, "n_components"),
        ((3, 0), ValueError, "n_features"),
        ((3, "4"), TypeError, "n_features"),
        ((3, True), TypeError, "n_features"),
    ]:
        with raises(error, f"{name} must be"):
            map_.draw(*arguments)


# Distributions and kernels


def check_law(map_, kernel, X, n_draws=40_000):
    """Check that the mean of phi(x) phi(z) over the draws is k(x, z) for all pairs of rows of X."""
    phi = map_.draw(n_draws, X.shape[1], rng=11).transform(X)
    for i, j in [(0, 0), *combinations(range(len(X)), 2)]:
        product = phi[i] * phi[j]
        assert (
            abs(product.mean() - kernel(X[i], X[j]))
            <= 4.5 * np.sqrt(product.var() / n_draws) + 1e-12
        )


def fourier_kernel(name, gamma):
    """Return the kernel of Fourier(name, gamma) as a function of two rows."""

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
    X, kernels = (
        rng.standard_normal((4, 3)),
        {"normal": ("gaussian", scale**2 / 2), "cauchy": ("laplacian", scale)},
    )
    for weights, parameters in kernels.items():
        kernel = fourier_kernel(*parameters)
        check_law(
            RandomNeurons(activation, None, weights, scale), lambda x, z, k=kernel: k(x, z) / 2, X
        )


@pytest.mark.parametrize(
    ("weights", "law"), [("normal", "norm"), ("uniform", "uniform"), ("cauchy", "cauchy")]
)
def test_laws_of_weights_and_offsets(weights, law):
    scale = 2.5
    parameters = (-scale, 2 * scale) if weights == "uniform" else (0, scale)
    for activation, order in [("tanh", None), ("relu", 2), ("sin", None)]:
        (block,) = RandomNeurons(activation, order, weights, scale).draw(3000, 3, rng=5).blocks
        of_offset = (
            ("uniform", (0, 2 * np.pi))
            if activation == "sin" and weights != "uniform"
            else (law, parameters)
        )
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
    """The weight of an input has one distribution, whether the input comes first or last in its
    subset."""
    (block,) = RandomNeurons("tanh", 2).draw(20_000, 3, rng=2).blocks
    for k in range(3):
        w = block.weights[block.inputs == k]
        assert kstest(w, "norm").pvalue > 1e-4


def test_sparse_draws_are_cheap_in_a_million_inputs():
    with peak_below(1e6):
        features = RandomNeurons("tanh", 3).draw(1000, 1_000_000, rng=0)
    assert len(features) == 1000


# Bandwidths and the ball of perceptrons, read off the data


def metric_of(kernel):
    """Return the distance of which the kernel is a function."""
    return "cityblock" if kernel == "laplacian" else "euclidean"


def to_gamma(kernel, scale):
    """Return the gamma at which the kernel has that length scale."""
    return 1 / scale if kernel == "laplacian" else 0.5 / scale**2


@each_kernel
def test_gamma_none_is_read_off_the_median_distance(rng, kernel):
    X = rng.standard_normal((80, 3))
    expected = to_gamma(kernel, np.median(pdist(X, metric_of(kernel))))
    assert gamma_of(kernel, None, X) == pytest.approx(expected, rel=1e-12)
    assert gamma_of(kernel, None, X.astype(np.float32)) == pytest.approx(expected, rel=1e-5)


@each_kernel
@pytest.mark.parametrize("n", [80, 30])
def test_gamma_knn_is_read_off_the_fiftieth_neighbour(rng, kernel, n):
    X = rng.standard_normal((n, 3))
    each = np.sort(cdist(X, X, metric_of(kernel)), axis=1)[:, min(50, n - 1)]
    assert gamma_of(kernel, "knn", X) == pytest.approx(to_gamma(kernel, each.mean()), rel=1e-12)


@each_kernel
def test_gamma_that_is_given_stays(rng, kernel):
    assert resolved(Fourier(kernel, 2), rng.standard_normal((9, 2))) == Fourier(kernel, 2.0)


@each_metric
@pytest.mark.parametrize("rule", [None, "knn"])
@pytest.mark.parametrize("make", [csr_array, csr_matrix])
def test_gamma_of_csr_is_that_of_dense(rng, kernel, rule, make):
    X = sparse_rows(rng)
    for rows in (
        X,
        1e200 * X,
        np.repeat(X[:30], 3, axis=0),
        X.astype(np.float32),
        X + 1e4 * (X != 0),
    ):
        assert gamma_of(kernel, rule, make(rows)) == pytest.approx(
            gamma_of(kernel, rule, rows), rel=1e-6
        )


@each_kernel
@pytest.mark.parametrize("rule", [None, "knn"])
@each_layout
def test_gamma_of_equal_rows_is_that_of_distance_one(rng, kernel, rule, layout):
    one = rng.standard_normal((1, 20))
    for X in (one, np.repeat(one, 60, axis=0), np.zeros((60, 3)), np.full((60, 1), 7.0)):
        assert gamma_of(kernel, rule, layout(X)) == to_gamma(kernel, 1.0)


@each_metric
@pytest.mark.parametrize("rule", [None, "knn"])
@each_layout
def test_equal_rows_do_not_count(rng, kernel, rule, layout):
    """Most distances between the rows are 0: medians and means are over the others."""
    X = np.repeat(rng.standard_normal((1, 20)), 100, axis=0)
    X[:3] = rng.standard_normal((3, 20))
    distance = cdist(X, X, metric_of(kernel))
    each = np.sort(distance, axis=1)[:, 50] if rule else distance[np.triu_indices(100, 1)]
    scale = each[each > 0].mean() if rule else np.median(each[each > 0])
    assert gamma_of(kernel, rule, layout(X)) == pytest.approx(to_gamma(kernel, scale), rel=1e-6)


@each_metric
@each_layout
@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e200, 1e308])
@as_within_a_call
def test_gamma_is_positive_and_finite_at_any_size(rng, kernel, layout, size):
    X = size * rng.uniform(-1, 1, (40, 3))
    for rule in (None, "knn"):
        assert 0 < gamma_of(kernel, rule, layout(X)) < np.inf


@pytest.mark.slow
def test_gamma_is_read_off_a_sample_that_the_seed_determines(rng):
    X = rng.standard_normal((2500, 2))
    values = [gamma_of("gaussian", None, X, seed) for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]
    assert values[0] == pytest.approx(values[2], rel=0.1)


@each_dtype
@each_layout
def test_perceptron_ball_is_read_off_the_data(rng, layout, dtype):
    X = (sparse_rows(rng) + 1000).astype(dtype)
    map_ = resolved(Perceptron(), layout(X))
    np.testing.assert_allclose(map_.center, X.mean(axis=0, dtype=np.float64), rtol=1e-6)
    X = X.astype(np.float64)
    assert map_.radius == pytest.approx(np.linalg.norm(X - X.mean(axis=0), axis=1).max(), rel=1e-4)
    fixed = Perceptron(2.0, [1.0] * 6)
    assert resolved(fixed, layout(X)) is fixed


@each_layout
def test_perceptron_radius_around_a_given_center(rng, layout):
    X = sparse_rows(rng)
    for center in (np.ones(6), [1.0] * 6):
        map_ = resolved(Perceptron(None, center), layout(X))
        assert map_.radius == pytest.approx(np.linalg.norm(X - 1, axis=1).max(), rel=1e-12)
        assert len(map_.draw(3, 6, rng=0)) == 3


@each_layout
@pytest.mark.parametrize("X", [np.ones((1, 3)), np.full((60, 2), 0.1), np.zeros((5, 2))])
def test_perceptrons_can_be_drawn_for_equal_rows(layout, X):
    map_ = resolved(Perceptron(), layout(X))
    assert 0 < map_.radius < np.inf
    assert np.isfinite(map_.draw(5, X.shape[1], rng=0).blocks[0].offset).all()
