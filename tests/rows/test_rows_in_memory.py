"""Rows in memory: correlate, apply, gram and transform against plain NumPy for every type and
layout of X.

Answers have the same bits for any number of workers, inputs stay as they are, neither X nor the
feature matrix is copied whole, and overflow is an error.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparserf import FeatureSet, Fourier, Linear, RandomNeurons, Taylor
from sparserf.features import NeuronBlock, linear_functions
from sparserf.features.blocks import BoxBlock
from sparserf.rows import as_rows, core_block
from sparserf.solvers.active import ActiveFeatures

from ..conftest import SIZES, as_within_a_call, each_dtype, peak_below, phi_oracle, read_only
from .layouts import LAYOUTS, non_native

D = 6
FEATURES = {
    "dense": Fourier("gaussian", 0.3).draw(45, D, rng=1),
    "q-sparse": RandomNeurons("tanh", 2).draw(33, D, rng=2),
    "linear": Linear().draw(None, D).take([4, 0, 4]),
    "empty": FeatureSet((), D),
    "taylor": Taylor(2, 0.2).draw(None, D),
    "cubic": Taylor(3, 0.2).draw(None, D).take(np.arange(0, 84, 2)),
}
FEATURES["mixed"] = (
    FEATURES["dense"]
    .concat(FEATURES["linear"])
    .concat(FEATURES["q-sparse"])
    .take(np.arange(80)[::-1])
)
FEATURES["functions"] = linear_functions(np.random.default_rng(3).standard_normal((5, D))).scaled(
    -0.7
)
FEATURES["functions among others"] = (
    FEATURES["mixed"].concat(FEATURES["functions"]).take(np.arange(0, 85)[::-1])
)
FEATURES["products"] = (
    FEATURES["taylor"].concat(Taylor(1, 0.1).draw(None, D)).concat(FEATURES["cubic"])
)
FEATURES["products"] = (
    FEATURES["products"]
    .concat(Linear().draw(None, D))
    .take(np.random.default_rng(0).permutation(83)[:80])
)


each_features = pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
each_storage = pytest.mark.parametrize("layout", [np.asarray, csr_array], ids=["dense", "csr"])


def random_X(rng, n, dtype=np.float64, d=D):
    """Draw a matrix about half of whose entries are zero, and some whole rows and a column."""
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    X[::17], X[:, 3] = 0, 0
    return X.astype(dtype)


def agree(actual, expected, size, dtype):
    """Check that sums are equal but for rounding; `size` is the sum of the absolute values of their
    terms."""
    assert actual.dtype == np.float64
    assert actual.shape == expected.shape
    assert (abs(actual - expected) <= 50 * np.finfo(dtype).eps * size).all()


# Against NumPy


@each_layout
@each_dtype
@pytest.mark.parametrize("kind", ["mixed", "products", "functions among others"])
@pytest.mark.parametrize("n", [1, 150])
def test_every_layout_answers_every_question(rng, layout, dtype, kind, n):
    X, features = random_X(rng, n, dtype), FEATURES[kind]
    phi = phi_oracle(features, X)
    size = abs(phi) + 1
    rows, v, c, h = (
        as_rows(layout(X)),
        rng.standard_normal(n),
        rng.standard_normal(len(features)),
        rng.random(n),
    )
    agree(rows.correlate(features, v), v @ phi, abs(v) @ size, dtype)
    agree(rows.correlate_squares(features, v), v @ phi**2, abs(v) @ size**2, dtype)
    agree(rows.apply(features, c), phi @ c, size @ abs(c), dtype)
    agree(rows.kernel(features, abs(c)), phi * abs(c) @ phi.T, size * abs(c) @ size.T, dtype)
    agree(rows.gram(features, features, h), phi.T * h @ phi, size.T * h @ size, dtype)
    transformed = rows.transform(features)
    assert transformed.dtype == rows.dtype
    assert transformed.flags.c_contiguous
    agree(transformed.astype(np.float64), phi, size, dtype)


def test_only_native_float32_stays_float32(rng):
    X = random_X(rng, 5, np.float32)
    for layout, array in LAYOUTS.items():
        if layout != "non-native csr":  # scipy makes it native in some versions
            kept = layout not in ("non-native", "list", "objects")
            assert as_rows(array(X)).dtype == (np.float32 if kept else np.float64)
    for dtype in (np.int8, np.uint64, bool, np.float16, np.longdouble):
        for storage in (np.asarray, csr_array) if np.dtype(dtype).kind != "f" else (np.asarray,):
            assert as_rows(storage((X > 0).astype(dtype))).dtype == np.float64


@each_features
@each_storage
@each_dtype
@pytest.mark.parametrize("n", [1, 64, 65, 3000])
def test_vectors_and_stacks_of_them(rng, features, layout, dtype, n):
    X = random_X(rng, n, dtype)
    phi = phi_oracle(features, X)
    size, rows = abs(phi) + 1, as_rows(layout(X))
    for shape in ((), (1,), (3,)):
        v, c = rng.standard_normal((*shape, n)), rng.standard_normal((*shape, len(features)))
        agree(rows.correlate(features, v), v @ phi, abs(v) @ size, dtype)
        agree(rows.apply(features, c), c @ phi.T, abs(c) @ size.T, dtype)


ARRANGEMENTS = {
    "F": np.asfortranarray,
    "every other": lambda v: np.repeat(v, 2, axis=-1)[..., ::2],
    "read-only": read_only,
    "backwards": lambda v: v[..., ::-1].copy()[..., ::-1],
    "non-native": non_native,
    "float32": lambda v: v.astype(np.float32),
    "integers": lambda v: np.rint(8 * v).astype(int),
    "list": lambda v: v.tolist(),
}


@each_storage
@pytest.mark.parametrize("arrange", ARRANGEMENTS.values(), ids=ARRANGEMENTS)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_any_layout_of_v_and_coef(rng, layout, arrange, shape):
    X, features = random_X(rng, 200), FEATURES["mixed"]
    rows, phi = as_rows(layout(X)), phi_oracle(features, X)
    v, c = arrange(rng.standard_normal((*shape, 200))), arrange(rng.standard_normal((*shape, 80)))
    np.testing.assert_allclose(
        rows.correlate(features, v), np.asarray(v, np.float64) @ phi, atol=1e-10
    )
    np.testing.assert_allclose(
        rows.apply(features, c), np.asarray(c, np.float64) @ phi.T, atol=1e-10
    )


GRAM_PAIRS = [
    ("mixed", "mixed"),
    ("mixed", "dense"),
    ("q-sparse", "linear"),
    ("empty", "mixed"),
    ("dense", "empty"),
    ("products", "taylor"),
    ("functions", "functions"),
    ("functions", "mixed"),
]


@each_storage
@each_dtype
@pytest.mark.parametrize("zeros", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 90, 6000])
def test_gram_with_weights(rng, layout, dtype, zeros, n):
    X = random_X(rng, n, dtype)
    h = rng.uniform(0.1, 2, n) * (rng.random(n) >= zeros)
    rows = as_rows(layout(X))
    phi = {
        name: phi_oracle(FEATURES[name], X)
        for name in {name for pair in GRAM_PAIRS for name in pair}
    }
    for left, right in GRAM_PAIRS:
        gram = rows.gram(FEATURES[left], FEATURES[right], h)
        size = (abs(phi[left]) + 1).T * h @ (abs(phi[right]) + 1)
        agree(gram, phi[left].T * h @ phi[right], size, dtype)
        if left == right:
            np.testing.assert_array_equal(gram, gram.T)


@each_storage
@each_dtype
@pytest.mark.parametrize("n", [2, 300])
def test_gram_by_panels(rng, monkeypatch, layout, dtype, n):
    """Gram matrices of many features are made by panels: equal but for rounding, with the same bits
    for any workers."""
    X, h = random_X(rng, n, dtype), rng.random(n) * (rng.random(n) < 0.8)
    features = FEATURES["functions among others"].concat(FEATURES["products"])
    expected = as_rows(layout(X)).gram(features, features, h)
    size = (abs(phi_oracle(features, X)) + 1).T * h @ (abs(phi_oracle(features, X)) + 1)
    for name, value in {"GRAM_PANEL": 32, "GRAM_ROWS": 96, "GRAM_PART_ROWS": 40}.items():
        monkeypatch.setattr(core_block, name, value)
    gram = as_rows(layout(X)).gram(features, features, h)
    agree(gram, expected, size, dtype)
    np.testing.assert_array_equal(gram, gram.T)
    for workers in (2, 3):
        assert as_rows(layout(X), workers).gram(features, features, h).tobytes() == gram.tobytes()


INTERVALS = BoxBlock(
    1.5,
    np.tile(np.int32([1, 3]), (9, 1)),
    *np.sort(np.random.default_rng(5).normal(size=(2, 9, 2)), axis=0),
    np.arange(1.0, 10.0),
)


@each_storage
@each_dtype
@pytest.mark.parametrize("n", SIZES[1:])
@pytest.mark.parametrize("kind", [*FEATURES, "boxes"])
def test_values_are_written_to_any_place(rng, layout, dtype, n, kind):
    """Also feature by feature, and of the other type."""
    features = FEATURES["linear"].concat(FeatureSet([INTERVALS], D)).take([9, 0, 4, 1, 11, 5])
    features = FEATURES.get(kind, features)
    rows, p = as_rows(layout(random_X(rng, n, dtype))), len(features)
    for kept in (np.float32, np.float64):
        for place in (
            np.empty((p, n), kept).T,
            np.empty((n, p), kept),
            np.empty((p, n, 2), kept).T[1],
        ):
            rows.map(lambda block, place=place: block.fill(features, place))
            np.testing.assert_allclose(place, rows.transform(features), rtol=1e-6)


@each_storage
@each_dtype
@pytest.mark.parametrize("d", [1, 2, 3, 33])
@pytest.mark.parametrize("k", [1, 2, 33])
def test_linear_functions_of_all_inputs(rng, layout, dtype, d, k):
    """Functions of one input are not taken for scaled inputs, nor functions of two inputs for
    products."""
    X, W = random_X(rng, 70, dtype, max(d, 4))[:, :d], rng.standard_normal((k, d))
    features, rows, v, c = (
        linear_functions(W),
        as_rows(layout(X)),
        rng.standard_normal((2, 70)),
        rng.standard_normal((2, k)),
    )
    phi, size = X @ W.T, abs(X) @ abs(W).T + 1
    agree(rows.transform(features).astype(np.float64), phi, size, dtype)
    agree(rows.correlate(features, v), v @ phi, abs(v) @ size, dtype)
    agree(rows.correlate_squares(features, v), v @ phi**2, abs(v) @ size**2, dtype)
    agree(rows.apply(features, c), c @ phi.T, abs(c) @ size.T, dtype)


@each_storage
@each_dtype
@pytest.mark.parametrize("zeros", [0.0, 0.5])
@pytest.mark.parametrize("k", [1, 30, 80])
def test_gram_with_some_of_its_own_features(rng, layout, dtype, zeros, k):
    """The features on the right may be given by their indices, in any order; the bits are the same
    for any workers."""
    X = random_X(rng, 6000, dtype)
    h, places = rng.uniform(0.1, 2, 6000) * (rng.random(6000) >= zeros), rng.permutation(80)[:k]
    for name in ("mixed", "products"):
        features, phi = FEATURES[name], phi_oracle(FEATURES[name], X)
        gram = as_rows(layout(X)).gram(features, places, h)
        agree(
            gram,
            phi.T * h @ phi[:, places],
            (abs(phi) + 1).T * h @ (abs(phi[:, places]) + 1),
            dtype,
        )
        assert as_rows(layout(X), 3).gram(features, places, h).tobytes() == gram.tobytes()


@each_storage
def test_gram_of_equal_sets_is_that_of_one(rng, layout):
    rows, left = as_rows(layout(random_X(rng, 300))), FEATURES["mixed"]
    right, h = left.take(np.arange(80)), rng.random(300)
    np.testing.assert_allclose(
        rows.gram(left, right, h), rows.gram(left, left, h), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_array_equal(rows.gram(left, left, np.zeros(300)), np.zeros((80, 80)))


@each_storage
def test_no_rows(layout):
    rows, features = as_rows(layout(np.empty((0, D))), n_features=D), FEATURES["mixed"]
    np.testing.assert_array_equal(rows.correlate(features, np.empty(0)), np.zeros(80))
    assert rows.apply(features, np.ones(80)).shape == (0,)
    assert rows.apply(features, np.ones((2, 80))).shape == (2, 0)
    assert rows.transform(features).shape == (0, 80)
    np.testing.assert_array_equal(rows.gram(features, features, np.empty(0)), np.zeros((80, 80)))


# Monomials of degree 1 and 2, whose sums are made of the moments of the inputs


MONOMIALS = {
    "linear": lambda d: Linear().draw(None, d),
    "degree 1": lambda d: Taylor(1, 0.5 / d).draw(None, d),
    "degree 2": lambda d: Taylor(2, 0.5 / d).draw(None, d),
    "no squares": lambda d: Taylor(2, 0.5 / d, False).draw(None, d),
    "repeated": lambda d: (
        Taylor(2, 0.5 / d).draw(None, d).take(np.tile(np.arange(d + 2)[::-1], 60)).scaled(-3.0)
    ),
    "descending": lambda d: descending(Taylor(2, 0.5 / d).draw(None, d)),
}
each_monomial = pytest.mark.parametrize("draw", MONOMIALS.values(), ids=MONOMIALS)


def descending(features):
    """Return the same products with their factors in descending order."""
    blocks = [replace(b, inputs=np.ascontiguousarray(b.inputs[:, ::-1])) for b in features.blocks]
    return FeatureSet(blocks, features.n_features_in)


@contextmanager
def only_tiles():
    """Make all features in tiles, none through moments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core_block, "moments_cost_less", lambda *_: False)
        yield


@each_monomial
@each_dtype
@pytest.mark.parametrize("layout", ["C", "F", "read-only", "backwards", "csr", "shuffled", "zeros"])
def test_moments_give_what_tiles_give(rng, draw, dtype, layout):
    """Both ways are within some units in the last place of the terms that are added up."""
    for n, d in [*((n, 7) for n in SIZES), (65, 1), (65, 2), (33, 40), (1000, 5)]:
        X, features = random_X(rng, n, dtype, max(d, 4))[:, :d], draw(d)
        given = LAYOUTS[layout](X)
        rows, phi = as_rows(given, n_features=d), phi_oracle(features, X)
        before, few = bits_of(given), features.take([len(features) - 1, 0])
        assert all(core_block.moments_cost_less(b, rows.array()) for b in features.blocks)
        for v in (rng.standard_normal(n), rng.standard_normal((3, n)) * [[1e99], [1e-99], [0]]):
            for ask, values in ((rows.correlate, phi), (rows.correlate_squares, phi**2)):
                expected, size = v @ values, abs(v) @ abs(values)
                close = 20 * np.finfo(dtype).eps * size
                moments = ask(features, v)
                with only_tiles():
                    tiles = ask(features, v)
                assert moments.shape == expected.shape
                assert (abs(moments - expected) <= close).all()
                assert (abs(tiles - expected) <= close).all()
                some = ask(few, v)
                assert (abs(some - expected[..., [-1, 0]]) <= close[..., [-1, 0]]).all()
        c = rng.standard_normal((2, len(features)))
        assert (
            abs(rows.apply(features, c) - c @ phi.T)
            <= 20 * np.finfo(dtype).eps * (abs(c) @ abs(phi).T)
        ).all()
        assert bits_of(given) == before


@each_dtype
@pytest.mark.parametrize("layout", ["C", "csr"])
def test_few_monomials_are_made_in_tiles_and_all_of_degree_2_by_moments(rng, dtype, layout):
    X, features = LAYOUTS[layout](random_X(rng, 300, dtype, 40)), FEATURES["empty"]
    for features in (Taylor(2, 0.01).draw(None, 40), Taylor(3, 0.01).draw(None, 40)):
        (whole,), few = features.blocks, features.take(np.arange(0, len(features), 97)[:9])
        assert core_block.moments_cost_less(whole, X) == (whole.order == 2)
        assert not core_block.moments_cost_less(*few.blocks, X)
        v = rng.standard_normal(300)
        answer, expected = as_rows(X).correlate(few, v), v @ phi_oracle(few, X)
        agree(answer, expected, abs(v) @ (abs(phi_oracle(few, X)) + 1e-3), dtype)
        np.testing.assert_allclose(
            as_rows(X).correlate(features, v)[np.arange(0, len(features), 97)[:9]],
            answer,
            atol=1e-4,
        )


@each_storage
def test_float32_moments_of_many_rows_are_as_accurate_as_few(rng, layout):
    X, features = random_X(rng, 30_000, np.float32, 5), Taylor(2, 0.1).draw(None, 5)
    v, phi = 1 + rng.random(30_000), phi_oracle(features, X)
    error = abs(as_rows(layout(X)).correlate(features, v) - v @ phi)
    assert (error <= 20 * np.finfo(np.float32).eps * (v @ abs(phi))).all()


@each_storage
@each_dtype
def test_the_range_of_floats_does_not_bound_squares_or_moments(layout, dtype):
    """The squares of these inputs, and these v, are beyond the range of float32."""
    X = np.tile(np.array([[3e25, 2e-25, 1.0, 0.0]], dtype), (50, 1))
    rows, v = as_rows(layout(X)), np.full(50, 2.0)
    squares = rows.correlate_squares(Linear().draw(None, 4), v)
    np.testing.assert_allclose(squares, 100 * X[0].astype(np.float64) ** 2, rtol=1e-6)
    rows, features = as_rows(layout(np.full((50, 4), 0.25, dtype))), Taylor(2, 0.5).draw(None, 4)
    phi = phi_oracle(features, np.full((1, 4), 0.25))[0]
    for size in (1e-320, 1e-290, 1e-60, 1e60, 1e300):
        sums = rows.correlate(features, np.full(50, size)) / size
        np.testing.assert_allclose(sums, 50 * phi, rtol=1e-2 if size < 1e-300 else 1e-5)


def test_the_moments_of_many_inputs_take_no_more_than_their_square(rng):
    """The matrix of the 320,000 features of 800 inputs for 3,000 rows would take 8 GB."""
    X, features = rng.standard_normal((3000, 800)), Taylor(2, 1e-3).draw(None, 800)
    rows, v = as_rows(X), rng.standard_normal(3000)
    few = features.take(np.arange(0, len(features), 4001))
    with peak_below(64e6):  # X is 19 MB
        whole = rows.correlate(features, v)
    np.testing.assert_allclose(whole[::4001], v @ phi_oracle(few, X), rtol=1e-9, atol=1e-9)


# Features in use, and their Gram matrix, which grows with them


@each_storage
def test_gram_matrices_are_kept_for_equal_weights_only(rng, layout, monkeypatch):
    """However features and weights change, Gram matrices are right; for equal weights only new
    columns are computed."""
    X, everything = random_X(rng, 200), FEATURES["products"]
    rows, phi = as_rows(layout(X)), phi_oracle(everything, X)
    made = []
    for name, ask in (("gram", rows.gram), ("moments", rows.moments)):
        monkeypatch.setattr(
            rows,
            name,
            lambda left, right, *how, ask=ask: made.append(len(right)) or ask(left, right, *how),
        )
    columns, index, free, last = ActiveFeatures(rows), np.zeros(0, int), rng.permutation(80), None
    weights = [rng.random(200), rng.random(200) * (rng.random(200) < 0.5)]
    steps = [
        (5, 5, 0),
        (3, 8, 0),
        (0, 6, 0),
        (9, 12, 0),
        (2, 9, 1),
        (4, 13, 1),
        (0, 13, 0),
        (1, 3, 0),
        (2, 5, 0),
    ]
    for new, kept, which in steps:
        columns.append(everything.take(free[:new]), free[:new])
        known = len(index) if which == last else 0
        index, free = np.concatenate([index, free[:new]]), free[new:]
        still = np.sort(rng.permutation(len(index))[:kept])
        columns.keep(still)
        index, last, made[:], h = index[still], which, [], weights[which]
        G, sums = columns.weighted_gram(h.copy())
        expected = phi[:, index]
        np.testing.assert_array_equal(columns.index, index)
        np.testing.assert_allclose(G, expected.T * h @ expected, atol=1e-9)
        np.testing.assert_allclose(sums, h @ expected, atol=1e-9)
        assert sum(made) == np.count_nonzero(still >= known)
        v, c = (
            rng.standard_normal(200),
            rng.standard_normal((2, len(index))) * (rng.random(len(index)) < 0.5),
        )
        np.testing.assert_allclose(columns.correlate(v), v @ expected, atol=1e-9)
        np.testing.assert_allclose(columns.apply(c), c @ expected.T, atol=1e-9)


@each_storage
@each_dtype
@pytest.mark.parametrize("workers", [1, 2])
def test_features_of_many_inputs_are_computed_once(rng, layout, dtype, workers, monkeypatch):
    """Values of features are kept while they are at most twice as many numbers as X has."""
    X = random_X(rng, 300, dtype, 80)
    everything, rows = Fourier("gaussian", 0.02).draw(250, 80, rng=0), as_rows(layout(X), workers)
    phi, made, transform = phi_oracle(everything, X), [], rows.transform
    monkeypatch.setattr(
        rows, "transform", lambda features: made.append(len(features)) or transform(features)
    )
    columns, index, known = ActiveFeatures(rows), np.zeros(0, int), 0
    # The features become too many to be kept, first for CSR rows and then for dense rows.
    for new, kept in [(30, 30), (20, 35), (0, 35), (20, 50), (90, 140), (30, 40), (0, 30)]:
        free = np.setdiff1d(np.arange(250), index)[:new]
        columns.append(everything.take(free), free)
        index, made[:] = np.concatenate([index, free]), []
        v, c, h = rng.standard_normal(300), rng.standard_normal((2, len(index))), rng.random(300)
        expected, size = phi[:, index], abs(phi[:, index]) + 1
        agree(columns.correlate(v), v @ expected, abs(v) @ size, dtype)
        agree(columns.apply(c), c @ expected.T, abs(c) @ size.T, dtype)
        G, sums = columns.weighted_gram(h)
        agree(G, expected.T * h @ expected, size.T * h @ size, dtype)
        agree(sums, h @ expected, h @ size, dtype)
        held = len(index) <= 2 * rows.row_size
        assert sum(made) == (len(index) - known if held else 0)
        still = np.sort(rng.permutation(len(index))[:kept])
        columns.keep(still)
        index, known = index[still], kept if held else 0
    assert columns.index.tolist() == index.tolist()


# Workers


def answers(rows, features, v, c, h):
    """Ask rows for sums, margins, Gram matrices and values of features."""
    right = features.take(np.arange(0, len(features), 3))
    return [
        *(rows.correlate(features, u) for u in (v, v[0])),
        *(rows.apply(features, u) for u in (c, c[0])),
        *(rows.gram(left, right, u) for left in (right, features) for u in (h, v[0] ** 2)),
        rows.transform(features),
    ]


@pytest.fixture(scope="module")
def many_blocks():
    """Return X of 5003 rows, enough for many blocks, and (features, v, coefficients, weights) to
    ask about."""
    rng, n, d = np.random.default_rng(0), 5003, 20
    features = (
        Fourier("gaussian", 0.1)
        .draw(200, d, rng=1)
        .concat(RandomNeurons("relu", 3).draw(100, d, rng=2))
    )
    h = rng.random(n) * (rng.random(n) < 0.7)
    return random_X(rng, n, d=d), (
        features,
        rng.standard_normal((2, n)),
        rng.standard_normal((2, 300)),
        h,
    )


@each_storage
@each_dtype
def test_the_same_bits_for_any_number_of_workers(many_blocks, layout, dtype):
    X, arguments = layout(many_blocks[0].astype(dtype)), many_blocks[1]
    expected = answers(as_rows(X, 1), *arguments)
    for workers in (1, 2, 3, 8, -1):
        for answer, bits in zip(answers(as_rows(X, workers), *arguments), expected, strict=True):
            np.testing.assert_array_equal(answer, bits)
    with as_rows(X, 3) as rows:
        for answer, bits in zip(answers(rows, *arguments), expected, strict=True):
            np.testing.assert_array_equal(answer, bits)


@pytest.mark.slow
@each_storage
@each_dtype
def test_the_same_bits_of_products_for_any_number_of_workers(
    many_blocks, monkeypatch, layout, dtype
):
    monkeypatch.setattr(core_block, "SLICE_ELEMENTS", 2**15)
    X, (_, v, c, h) = layout(many_blocks[0].astype(dtype)), many_blocks[1]
    features = Linear().draw(None, 20).concat(Taylor(2, 0.05).draw(None, 20))
    features = features.concat(Taylor(3, 0.05).draw(None, 20).take(np.arange(0, 1771, 9)))
    features = features.take(np.random.default_rng(0).permutation(len(features)))
    every = [as_rows(X, workers) for workers in (1, 2, 3)]
    for ask in (
        lambda rows: rows.correlate(features, v),
        lambda rows: rows.correlate_squares(features, v),
    ):
        expected, *others = map(ask, every)
        assert [answer.tobytes() for answer in others] == [expected.tobytes()] * 2
    few = features.take(np.arange(300))
    expected, *others = (answers(rows, few, v, c, h) for rows in every)
    for other in others:
        assert [answer.tobytes() for answer in other] == [answer.tobytes() for answer in expected]


@each_dtype
@pytest.mark.parametrize("order", [1, 2, 7])
def test_sparse_weights_give_the_same_bits_packed_dense(rng, order, dtype):
    for width in (7, 25 * order, 25 * order + 1):
        X, block = (
            random_X(rng, 200, dtype, width),
            RandomNeurons("cos", order).draw(70, width, rng=0).blocks[0],
        )
        weights = np.zeros((70, width))
        np.put_along_axis(weights, block.inputs, block.weights, axis=1)
        dense = NeuronBlock("cos", 1.0, weights, block.offset)
        answers = [as_rows(X).transform(FeatureSet([b], width)) for b in (block, dense)]
        np.testing.assert_array_equal(*answers)


def test_the_same_kernel_matrix_for_any_number_of_workers(many_blocks):
    X, (features, *_) = many_blocks
    features = features.concat(Fourier("gaussian", 0.2).draw(900, X.shape[1], rng=3))
    weights = np.random.default_rng(0).random(len(features))
    expected = as_rows(X[:700]).kernel(features, weights)
    for workers in (2, 3):
        np.testing.assert_array_equal(as_rows(X[:700], workers).kernel(features, weights), expected)
    phi = phi_oracle(features, X[:700])
    agree(expected, phi * weights @ phi.T, abs(phi) * weights @ abs(phi).T, np.float64)


@pytest.mark.slow
def test_one_object_of_rows_may_be_asked_from_many_threads(many_blocks):
    X, (features, v, c, h) = many_blocks
    expected = answers(as_rows(X, 1), features, v, c, h)
    with as_rows(X, 2) as rows, ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(answers, rows, features, v, c, h) for _ in range(3)]:
            for answer, bits in zip(future.result(), expected, strict=True):
                np.testing.assert_array_equal(answer, bits)


def test_no_thread_outlives_a_question(many_blocks):
    X, (features, v, *_) = many_blocks
    before = threading.active_count()
    rows = as_rows(X, 3)
    rows.correlate(features, v)
    assert threading.active_count() == before
    with rows:
        rows.correlate(features, v)
        assert threading.active_count() > before
    assert threading.active_count() == before


@each_storage
def test_some_of_the_rows(many_blocks, monkeypatch, layout):
    """Taken rows answer as rows of their own, on the threads of the rows that they were taken
    from."""
    monkeypatch.setattr(core_block, "GRAM_PANEL", 128)
    X, arguments = layout(many_blocks[0]), many_blocks[1]
    features, v, c, h = arguments
    index = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:2000])
    arguments = features, v[:, index], c, h[index]
    expected = answers(as_rows(X[index]), *arguments)
    for rows in (as_rows(X), as_rows(X, 2)):
        for answer, bits in zip(answers(rows.take(index), *arguments), expected, strict=True):
            np.testing.assert_array_equal(answer, bits)
    with as_rows(X, 3) as rows:
        some, pool = rows.take(index), rows._block.workers._pool
        for answer, bits in zip(answers(some, *arguments), expected, strict=True):
            np.testing.assert_array_equal(answer, bits)
        assert rows._block.workers._pool is pool is not None


@pytest.mark.every_case
@pytest.mark.parametrize("workers", [0, -2, 1.5, True, None, "2"])
def test_invalid_workers(workers):
    with pytest.raises(
        ValueError if type(workers) is int else TypeError, match=r"^workers must be"
    ):
        as_rows(np.ones((2, 2)), workers)


# Inputs and memory


def bits_of(X):
    """Return the bytes of an array or a sparse matrix."""
    if isinstance(X, np.ndarray):
        return X.tobytes("A")
    return b"".join(
        a.tobytes()
        for a in (X.data, *((X.indices, X.indptr) if hasattr(X, "indptr") else X.coords))
    )


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("list", "objects")])
@each_dtype
def test_inputs_are_never_modified(rng, layout, dtype):
    X, features = LAYOUTS[layout](random_X(rng, 400, dtype)), FEATURES["mixed"]
    v, c, h = rng.standard_normal((2, 400)), rng.standard_normal((2, 80)), rng.random(400)
    before = [bits_of(a) for a in (X, v, c, h)]
    answers(as_rows(X, 2), features, v, c, h)
    assert [bits_of(a) for a in (X, v, c, h)] == before


@pytest.fixture(scope="module")
def wide():
    """Return a CSR matrix with 10 entries in each row that would take 16 GB if it were dense."""
    rng = np.random.default_rng(0)
    indices = np.sort(rng.choice(1_000_000, (2000, 10)), axis=1)
    X = csr_array(
        (rng.standard_normal(20_000), indices.ravel(), np.arange(0, 20_001, 10)),
        shape=(2000, 1_000_000),
    )
    X.sum_duplicates()
    return X


@pytest.mark.parametrize("workers", [1, 2])
def test_csr_is_never_dense_as_a_whole(wide, rng, workers):
    linear = Linear().draw(None, 1_000_000).take(np.unique(wide.indices)[:300])
    neurons = RandomNeurons("tanh", 5).draw(500, 1_000_000, rng=1)
    rows, v, c = as_rows(wide, workers), rng.standard_normal(2000), rng.standard_normal(500)
    with peak_below(64e6):
        x, phi = rows.transform(linear), rows.transform(neurons)
        a, b = rows.correlate(neurons, v), rows.apply(neurons, c)
    (block,) = neurons.blocks
    z = (
        sum(wide[:, block.inputs[:, k]].toarray() * block.weights[:, k] for k in range(5))
        + block.offset
    )
    np.testing.assert_array_equal(x, wide[:, linear.blocks[0].inputs[:, 0]].toarray())
    np.testing.assert_allclose(phi, np.tanh(z), atol=1e-14)
    np.testing.assert_allclose(a, v @ np.tanh(z), atol=1e-10)
    np.testing.assert_allclose(b, np.tanh(z) @ c, atol=1e-10)


@pytest.mark.slow
@each_storage
def test_the_feature_matrix_is_never_held(rng, layout):
    """The values of 2,000 features in 20,000 rows would take 320 MB."""
    features, X = Fourier("gaussian", 0.3).draw(2000, D, rng=1), layout(random_X(rng, 20_000))
    rows, v, c, h = (
        as_rows(X, 2),
        rng.standard_normal(20_000),
        rng.standard_normal(2000),
        np.ones(20_000),
    )
    few = features.take(np.arange(100))
    rows.correlate(few, v)
    with peak_below(16e6):
        rows.correlate(features, v)
    with peak_below(16e6):
        rows.apply(features, c)
    with peak_below(32e6):
        rows.gram(features, few, h)


@pytest.mark.slow
def test_a_large_X_in_fortran_order_is_never_copied_whole(rng):
    X = np.asfortranarray(rng.standard_normal((20_000, 200)))
    features = Fourier("gaussian", 0.01).draw(300, 200, rng=1)
    rows = as_rows(X)
    with peak_below(16e6):  # X is 32 MB
        rows.correlate(features, rng.standard_normal(20_000))


# Overflow


QUESTIONS = {
    "correlate": lambda rows, features: rows.correlate(features, np.ones(rows.n_rows)),
    "correlate, of both signs": lambda rows, features: rows.correlate(
        features, 1e99 * np.linspace(-1, 1, rows.n_rows)
    ),
    "gram": lambda rows, features: rows.gram(features, features, np.ones(rows.n_rows)),
    "gram of two": lambda rows, features: rows.gram(
        features, FEATURES["linear"], np.ones(rows.n_rows)
    ),
}


@pytest.mark.every_case
@each_storage
@each_dtype
@pytest.mark.parametrize("n", [3, 5000])
@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
@as_within_a_call
def test_overflow_is_an_error_that_names_X(layout, dtype, n, ask):
    """It is one even where one block of rows gives +inf and another -inf."""
    huge = np.sqrt(np.finfo(dtype).max)
    features = (
        RandomNeurons("relu", scale=float(huge)).draw(300, D, rng=0).concat(FEATURES["linear"])
    )
    with pytest.raises(ValueError, match=r"^X must be of moderate size"):
        ask(as_rows(layout(np.full((n, D), huge, dtype)), 2), features)


@each_storage
@each_dtype
@pytest.mark.parametrize("size", [1.0, 0.0, 1e-30])
@pytest.mark.parametrize("n", [3, 5000])
@as_within_a_call
def test_products_never_overflow(layout, dtype, size, n):
    X = np.full((n, D), np.finfo(dtype).max * size if size else np.finfo(dtype).tiny, dtype)
    for features in (FEATURES["taylor"], FEATURES["cubic"], FEATURES["taylor"].take([3, 3, 1])):
        rows = as_rows(layout(X), 2)
        for answer in (
            rows.transform(features),
            rows.correlate(features, np.ones(n)),
            rows.gram(features, features, np.ones(n)),
        ):
            assert np.isfinite(answer).all() and abs(answer).max() <= n * (1 + 1e-6)


@each_storage
@each_dtype
def test_phases_that_overflow_are_no_error(layout, dtype):
    X = np.full((5, D), np.finfo(dtype).max / 4, dtype)
    features = Fourier(gamma=1e10).draw(40, D, rng=0)
    phi = as_rows(layout(X)).transform(features)
    assert (abs(phi) <= np.sqrt(2) + 1e-6).all()
    assert np.isfinite(as_rows(layout(X)).correlate(features, np.ones(5))).all()
