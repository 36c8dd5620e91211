"""Taylor features of the Gaussian kernel against their formula, also where rows, gamma or degrees
are extreme."""

import dataclasses
from itertools import combinations, combinations_with_replacement
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparserf import Taylor

from ..conftest import each_dtype, examples, peak_below
from .sets import check_read_only, each_layout, gamma_of, raises, resolved, same, seeds, sparse_rows


def exponents(d, degree, squares):
    """Return the power of each input in each monomial, by degree and then by the inputs in
    ascending order."""
    choices = combinations_with_replacement if squares else combinations
    return [
        [inputs.count(i) for i in range(d)]
        for k in range(degree + 1)
        for inputs in choices(range(d), k)
    ]


def taylor_oracle(X, degree, gamma, squares=True):
    """Compute prod_i t_i^v_i / sqrt(v_i!) exp(-t't / 2), t = sqrt(2 gamma) x, for each row and
    monomial."""
    t = np.sqrt(2 * gamma) * np.asarray(X, np.float64)
    columns = [
        np.prod([t[:, i] ** v / np.sqrt(factorial(v)) for i, v in enumerate(powers)], axis=0)
        for powers in exponents(X.shape[1], degree, squares)
    ]
    return np.exp(-(t**2).sum(axis=1, keepdims=True) / 2) * np.stack(columns, axis=1)


@pytest.mark.parametrize(
    ("d", "degree"), [(1, 1), (1, 12), (2, 6), (3, 2), (3, 5), (5, 1), (6, 3), (40, 2)]
)
@pytest.mark.parametrize("squares", [True, False])
@each_dtype
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
        np.testing.assert_allclose(
            phi, expected, rtol=4 * (degree + d + 4) * np.finfo(dtype).eps, atol=0
        )


def test_a_degree_above_the_number_of_inputs_adds_nothing_without_squares():
    high, low = (Taylor(degree, 0.3, include_squares=False).draw(None, 3) for degree in (10**6, 3))
    X = np.random.default_rng(0).standard_normal((5, 3))
    np.testing.assert_array_equal(high.transform(X), low.transform(X))


def test_taylor_features_are_not_random():
    map_ = Taylor(3, 0.5)
    assert same(map_.draw(None, 4), map_.draw(7, 4, rng=3))
    assert resolved(map_, np.ones((3, 4))) is map_
    assert (
        Taylor(np.int8(2), 1.0).count(127)
        == len(Taylor(np.int8(2), 1).draw(None, np.int8(127)))
        == 8256
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        map_.degree = 2
    check_read_only(map_.draw(None, 4))


@pytest.mark.parametrize("rule", [None, "knn"])
@each_layout
def test_gamma_of_taylor_is_that_of_the_gaussian_kernel(rng, rule, layout):
    X = sparse_rows(rng)
    map_ = resolved(Taylor(3, rule, False), layout(X))
    assert map_ == Taylor(3, gamma_of("gaussian", rule, layout(X)), False)
    assert Taylor(2, rule).gamma == rule


@pytest.mark.parametrize(
    ("degree", "d", "squares"),
    [
        (2, 6000, True),
        (2, 5800, False),
        (24, 24, True),
        (8, 60, False),
        (10**5, 1, True),
        (3 * 10**4, 2 * 10**4, True),
        (10**9, 10**9, False),
    ],
)
def test_too_many_taylor_features_are_refused_before_they_are_listed(degree, d, squares):
    with (
        peak_below(1e5),
        raises(ValueError, f"degree={degree} of {d} inputs makes more than 16777216 features"),
    ):
        Taylor(degree, 1.0, squares).draw(None, d)


@examples(100)
@given(
    seeds,
    st.integers(1, 6),
    st.sampled_from([1, 2, 3, 7]),
    st.sampled_from([1e-300, 1e-3, 1.0, 1e3, 1e300]),
    st.booleans(),
)
def test_squares_of_taylor_features_add_up_to_one_at_most(seed, d, degree, gamma, single):
    """Rows may be of any size, and one is zero: there is no NaN and no warning, which would fail
    the test."""
    rng = np.random.default_rng(seed)
    limit = 38 if single else 308
    X = (
        rng.uniform(-1, 1, (30, d))
        * 10.0 ** rng.uniform(-limit, limit, (30, d))
        * (rng.random((30, d)) < 0.8)
    )
    X[:15] = (
        rng.standard_normal((15, d)) / np.sqrt(gamma) if not single or 1e-60 < gamma < 1e60 else 0
    )
    X[0] = 0
    X = X.astype(np.float32 if single else np.float64)
    features = Taylor(degree, gamma).draw(None, d)
    phi, of_csr = features.transform(X).astype(np.float64), features.transform(csr_array(X))
    assert ((phi**2).sum(axis=1) <= 1 + 10 * degree * np.finfo(X.dtype).eps).all()
    np.testing.assert_allclose(
        of_csr, phi, rtol=1e-5 if single else 1e-12, atol=1e-44 if single else 1e-307
    )
    np.testing.assert_array_equal(phi[0], np.arange(len(features)) == 0)


@pytest.mark.parametrize(
    ("gamma", "x", "dtype"),
    [
        (5e-324, 1e200, np.float64),
        (1e-308, 1.5e154, np.float64),
        (2e-308, 1e154, np.float64),
        (1e300, 1e-150, np.float64),
        (1e80, 1e-40, np.float32),
        (1e-70, 3e35, np.float32),
        (1e300, 1e30, np.float32),
        (1.0, 1e200, np.float64),
    ],
)
@each_layout
def test_taylor_features_where_gamma_makes_up_for_the_size_of_the_rows(gamma, x, dtype, layout):
    """Values depend on t = sqrt(2 gamma) x alone, even where gamma or x alone would overflow or
    vanish."""
    x = np.array([[x]], dtype)
    t = np.exp(np.log(2 * np.float64(gamma)) / 2 + np.log(np.float64(x)))
    with np.errstate(over="ignore", under="ignore"):
        expected = (
            t ** np.arange(4) * np.exp(-(t**2) / 2) / np.sqrt([1, 1, 2, 6])
            if t[0, 0] < 1e9
            else np.zeros((1, 4))
        )
    phi = Taylor(3, gamma).draw(None, 1).transform(layout(x))
    np.testing.assert_allclose(
        phi, expected, rtol=1e-4 if dtype == np.float32 else 1e-10, atol=1e-44
    )


@pytest.mark.parametrize(
    ("d", "degree", "exponent", "dtype", "accuracy"),
    [
        (1, 2000, 800.0, np.float64, 1e-9),
        (1, 400, 150.0, np.float32, 1e-4),
        (1, 1000, 150.0, np.float32, 2e-4),
        (2, 200, 60.0, np.float32, 1e-4),
        (2, 200, 60.0, np.float64, 1e-9),
    ],
)
def test_taylor_features_of_high_degree_neither_overflow_nor_vanish(
    d, degree, exponent, dtype, accuracy
):
    """phi(x)'phi(x) is 1 even where exp(-t^2 / 2) and 1 / sqrt(v!) alone would be 0, and powers
    infinite."""
    features = Taylor(degree, exponent / d).draw(None, d)
    for sign in (1, -1):
        X = np.full((1, d), sign, dtype)
        X[0, -1] = 1
        for layout in (np.asarray, csr_array):
            phi = features.transform(layout(X)).astype(np.float64)
            assert np.square(phi).sum() == pytest.approx(1, abs=accuracy)
            assert abs(phi).max() < 0.3
    logarithm = [
        v * np.log(2 * exponent) - exponent * 2 - sum(np.log(range(1, v + 1)))
        for v in (50, 100, 300)
    ]
    if d == 1 and dtype == np.float64:
        np.testing.assert_allclose(
            features.transform(np.ones((1, 1)))[0, [50, 100, 300]],
            np.exp(np.array(logarithm) / 2),
            1e-9,
        )


def test_input_usage_of_products():
    """A product uses the inputs of its monomial; the factor exp(-t't / 2), which has all inputs,
    does not count."""
    features = Taylor(3, 1.0).draw(None, 4)
    used = np.array(exponents(4, 3, True)) > 0
    np.testing.assert_allclose(features.input_usage(), used.mean(axis=0))
    np.testing.assert_array_equal(features.take([0, 0]).input_usage(), np.zeros(4))
    np.testing.assert_array_equal(
        Taylor(1, 1.0).draw(None, 2).take([2, 0, 2, 1]).input_usage(), [0.25, 0.5]
    )


@pytest.mark.parametrize(("d", "degree"), [(1, 1), (1, 9), (3, 2), (3, 4), (1, 400), (2, 90)])
def test_the_largest_value_of_a_product_is_its_supremum(rng, d, degree):
    """t^v exp(-t^2 / 2) attains its largest value where t_i^2 = v_i, and no row exceeds it."""
    gamma, features = 0.7, Taylor(degree, 0.7).draw(None, d).scaled(-2.0)
    powers = np.array(exponents(d, degree, True))
    some = rng.permutation(len(features))[:300]
    features, powers = features.take(some), powers[some]
    largest = features.largest_value
    np.testing.assert_allclose(
        abs(features.transform(np.sqrt(powers / (2 * gamma)))).diagonal(), largest, rtol=1e-9
    )
    assert largest.max() <= 2
    for spread in (0.3, 1, 3, 20):
        X = np.vstack(
            [
                spread * rng.standard_normal((200, d)),
                np.sqrt(powers / 2 / gamma) * rng.uniform(0.9, 1.1),
            ]
        )
        assert (abs(features.transform(X)) <= largest * (1 + 1e-9)).all()
