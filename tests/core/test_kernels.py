"""The compiled kernels against plain NumPy.

features   correlate, apply and transform at every instruction set, for both types, every activation
           and every kind of rows and weights, at sizes around the edges of a tile; that no byte
           around the output is written; the accuracy of cos, sin, tanh and of bumps, also at phases
           and distances that are huge or overflow
rows       X'v, X p and X'diag(h) X p of dense and CSR rows; arrays that they refuse
search     top_k against sorting, and threshold: hard_threshold against sorting
checks     are_finite and is_canonical against their definitions, with faults anywhere
descent    descend and largest_violation against their definitions and scikit-learn, and
           solvers.l1_quadratic.minimize
"""

import math
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.linear_model import Lasso

from sparserf._core import checks, descent, moments, search, threshold
from sparserf._core.features import ACTIVATIONS, PANEL, Panels
from sparserf._core.rows import LEVEL, LEVELS, RowSlice
from sparserf.features import BumpBlock, FeatureSet, MonomialBlock, NeuronBlock
from sparserf.solvers.l1_quadratic import L1Quadratic, minimize

from ..conftest import (
    SIZES,
    activate,
    as_within_a_call,
    each_dtype,
    examples,
    phi_oracle,
    read_only,
)

# A width of rows at which weights of few inputs are packed sparse.
WIDE = 10**9
each_level = pytest.mark.parametrize("level", range(len(LEVELS)), ids=LEVELS)
each_activation = pytest.mark.parametrize(
    "activation", [name for name in ACTIVATIONS if name not in ("product", "bump")]
)
each_kind = pytest.mark.parametrize("kind", ["dense", "q-sparse", "csr"])


def sampled_shapes():
    """Return triples (rows, inputs, features) in which every size occurs three times in each
    place."""
    rng = np.random.default_rng(7)
    return [
        shape
        for _ in range(3)
        for shape in zip(*(rng.permutation(SIZES).tolist() for _ in range(3)), strict=True)
    ]


class Case:
    """Random rows and features as the kernels take them, their values `phi` by NumPy, and the
    largest `error` of rounding."""

    def __init__(self, shape, dtype, activation, kind, seed=0):
        rng = np.random.default_rng([*shape, seed])
        n, d, p = shape
        order = min(3, d) if kind == "q-sparse" else d
        X, weights, offset = (rng.standard_normal(size) for size in [(n, d), (p, order), p])
        if activation == "sign":  # sums are exact and never 0, so that rounding changes no sign
            X, weights, offset = (
                np.rint(4 * X) / 4,
                np.rint(4 * weights) / 4,
                (np.rint(16 * offset) + 0.5) / 16,
            )
        if kind == "csr":
            X *= rng.random(X.shape) < 0.3
        X, (weights, offset) = (
            X.astype(dtype),
            (a.astype(dtype).astype(np.float64) for a in (weights, offset)),
        )
        subsets = rng.permuted(np.tile(np.arange(d, dtype=np.int32), (p, 1)), axis=1)[:, :order]
        inputs = subsets if kind == "q-sparse" else None
        self.shape, self.dtype, eps = shape, dtype, np.finfo(dtype).eps
        block = NeuronBlock(activation, 0.7, weights, offset, inputs)
        self.panels = block.packed(np.dtype(dtype), WIDE if kind == "q-sparse" else d)
        self.phi = phi_oracle(FeatureSet([block], d), X)
        size = phi_oracle(
            FeatureSet([NeuronBlock("identity", 0.7, abs(weights), abs(offset), inputs)], d), abs(X)
        )
        self.error = 4 * (order + 2) * eps * size + 8 * eps
        self.rows = lambda level: rows_of(X, kind, level)

    @property
    def width(self):
        return -(-self.shape[2] // PANEL) * PANEL


class ProductCase(Case):
    """Random products of `order` inputs."""

    def __init__(self, shape, dtype, order):
        rng = np.random.default_rng([*shape, order])
        n, d, p = shape
        X, weights = (
            rng.standard_normal((n, d)).astype(dtype),
            rng.standard_normal((p, 1)).astype(dtype).astype(np.float64),
        )
        inputs = rng.integers(0, d, (p, order)).astype(np.int32)
        self.shape, self.dtype = shape, dtype
        self.panels = MonomialBlock(0.7, weights, inputs, 1.0).packed(np.dtype(dtype), d)
        self.phi = 0.7 * (weights * X.astype(np.float64)[:, inputs]).prod(axis=2)
        self.error = 8 * (order + 2) * np.finfo(dtype).eps * abs(self.phi)
        self.rows = lambda level: RowSlice(X, level=level)


class BumpCase(Case):
    """Random bumps: of all inputs, some of weight 0, or "q-sparse"; at large distances, too, where
    they vanish."""

    def __init__(self, shape, dtype, kind):
        rng = np.random.default_rng([*shape, 1])
        n, d, p = shape
        order = min(3, d) if kind == "q-sparse" else d
        X = rng.standard_normal((n, d)).astype(dtype)
        weights, centers = (
            a.astype(dtype).astype(np.float64) for a in rng.standard_normal((2, p, order))
        )
        weights *= rng.random((p, order)) < 0.8
        weights[::5] *= 100
        subsets = rng.permuted(np.tile(np.arange(d, dtype=np.int32), (p, 1)), axis=1)[:, :order]
        block = BumpBlock(0.7, weights, centers, subsets if kind == "q-sparse" else None)
        self.shape, self.dtype = shape, dtype
        self.panels = block.packed(np.dtype(dtype), WIDE if kind == "q-sparse" else d)
        self.phi = phi_oracle(FeatureSet([block], d), X)
        distance = -np.log(np.maximum(self.phi / 0.7, 1e-300))
        self.error = (
            4 * np.finfo(dtype).eps * (order + 2) * (1 + distance) * self.phi
            + 4 * np.finfo(dtype).tiny
        )
        self.rows = lambda level: RowSlice(X, level=level)


def rows_of(X, kind, level=-1):
    """Return the rows as the kernels take them, dense or CSR."""
    if kind != "csr":
        return RowSlice(X, level=level)
    S = csr_array(X)
    return RowSlice(S.data, S.indices.astype(np.int32), S.indptr.astype(np.int64), level)


class Framed:
    """A strided view of `values` within NaN: reading outside of it shows in the result, writing
    outside in the frame."""

    def __init__(self, values):
        n, m = values.shape
        self._frame = np.full((n + 2, m + 80), np.nan, values.dtype)
        self.view = self._frame[1 : n + 1, 40 : m + 40]
        self.view[...] = values

    def take(self):
        """Return the values, and check that nothing around them was written."""
        values = self.view.copy()
        self.view[...] = np.nan
        assert np.isnan(self._frame).all()
        return values


def check_correlate(case, level, rng, n_outputs):
    """Check that v'Phi and v'Phi^2 are added to the output, and nothing else is written."""
    n, _, p = case.shape
    v, start = rng.standard_normal((n_outputs, n)), rng.standard_normal((n_outputs, case.width))
    size = abs(case.phi) + case.error
    for squared, phi, error in (
        (False, case.phi, case.error),
        (True, case.phi**2, 2 * size * case.error),
    ):
        out = Framed(start)
        case.panels.correlate(case.rows(level), Framed(v).view, out.view, squared)
        rounding = 4 * (n + 2) * np.finfo(np.float64).eps * (abs(v) @ abs(phi) + abs(start[:, :p]))
        assert (abs(out.take()[:, :p] - start[:, :p] - v @ phi) <= abs(v) @ error + rounding).all()


def check_apply(case, level, rng, n_outputs):
    """Check that Phi c is added to the output, and nothing else is written."""
    n, _, p = case.shape
    coef, start = rng.standard_normal((n_outputs, p)), rng.standard_normal((n_outputs, n))
    out = Framed(start)
    case.panels.apply(case.rows(level), Framed(coef).view, out.view)
    rounding = 4 * (p + 2) * np.finfo(np.float64).eps * (abs(coef) @ abs(case.phi).T + abs(start))
    assert (
        abs(out.take() - start - coef @ case.phi.T) <= abs(coef) @ case.error.T + rounding
    ).all()


def transform(case, level=-1):
    """Return the values of the features by the kernel, and check that nothing else is written."""
    out = Framed(np.zeros((case.shape[0], case.shape[2]), case.dtype))
    case.panels.transform(case.rows(level), out.view)
    return out.take()


def check_kernels(case, level, n_outputs):
    """Check the three kernels against NumPy."""
    rng = np.random.default_rng(case.shape)
    check_correlate(case, level, rng, n_outputs)
    check_apply(case, level, rng, n_outputs)
    values = transform(case, level)
    assert (abs(values - case.phi) <= case.error).all()
    for dtype in (np.float32, np.float64):
        out = Framed(np.zeros(values.shape[::-1], dtype))
        case.panels.transform(case.rows(level), out.view.T)
        np.testing.assert_array_equal(out.take().T, values.astype(dtype))


@each_level
@each_dtype
@each_activation
@each_kind
def test_kernels_agree_with_numpy(level, dtype, activation, kind):
    for i, shape in enumerate(sampled_shapes()):
        check_kernels(Case(shape, dtype, activation, kind), level, n_outputs=(1, 3, 2, 0)[i % 4])


@each_level
@each_dtype
@pytest.mark.parametrize("order", [1, 2, 3, 7])
def test_products_agree_with_numpy(level, dtype, order):
    shapes = [shape for shape in sampled_shapes() if shape[1] > 0]
    for i, shape in enumerate([*shapes, (1030, 20, 337)]):
        check_kernels(ProductCase(shape, dtype, order), level, n_outputs=(1, 3, 2, 0)[i % 4])


@pytest.mark.slow
@each_level
@each_dtype
@pytest.mark.parametrize("kind", ["dense", "q-sparse"])
def test_bumps_agree_with_numpy(level, dtype, kind):
    for i, shape in enumerate([*sampled_shapes(), (1030, 150, 337)]):
        check_kernels(BumpCase(shape, dtype, kind), level, n_outputs=(1, 3, 2, 0)[i % 4])


@each_dtype
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (2, 7), (33, 64), (500, 31)])
def test_rows_by_the_sign_of_their_weight(dtype, shape, rng):
    U, v = (
        rng.standard_normal(shape).astype(dtype),
        rng.standard_normal(shape[0]) * rng.integers(0, 2, shape[0]),
    )
    out = np.full(shape, np.nan, dtype)
    middle, end = moments.by_sign(U, v, 2.0, out)
    expected = np.vstack(
        [U[v > 0] * np.sqrt(v[v > 0] / 2)[:, None], U[v < 0] * np.sqrt(-v[v < 0] / 2)[:, None]]
    )
    assert (middle, end) == ((v > 0).sum(), (v != 0).sum())
    np.testing.assert_allclose(out[:end], expected, rtol=4 * np.finfo(dtype).eps)
    assert np.isnan(out[end:]).all()


@each_dtype
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (2, 7), (33, 64), (500, 31)])
def test_second_moments_of_sparse_rows(dtype, shape, rng):
    X = rng.standard_normal(shape) * (rng.random(shape) < 0.3)
    S, v = csr_array(X.astype(dtype)), rng.standard_normal(shape[0])
    start = rng.standard_normal((shape[1], shape[1]))
    total = start.copy()
    moments.second_moments(S.data, S.indices.astype(np.int32), S.indptr.astype(np.int64), v, total)
    X = S.toarray().astype(np.float64)
    np.testing.assert_allclose(
        np.triu(total - start), np.triu(X.T @ (v[:, None] * X)), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_array_equal(np.tril(total, -1), np.tril(start, -1))


@each_level
@each_dtype
@each_kind
@pytest.mark.parametrize("shape", sampled_shapes(), ids=str)
def test_correlate_pair(shape, kind, dtype, level, rng):
    """Sums of cosines have the bits of sums of cosines alone; sums of sines are as accurate as
    any."""
    cos, sin = Case(shape, dtype, "cos", kind), Case(shape, dtype, "sin", kind)
    v, start = rng.standard_normal((2, shape[0])), rng.standard_normal((2, cos.width))
    alone, out, quarter = start.copy(), Framed(start), Framed(start)
    cos.panels.correlate(cos.rows(level), v, alone)
    cos.panels.correlate(cos.rows(level), Framed(v).view, out.view, sine=quarter.view)
    np.testing.assert_array_equal(out.take(), alone)
    rounding = (
        4
        * (shape[0] + 2)
        * np.finfo(np.float64).eps
        * (abs(v) @ abs(sin.phi) + abs(start[:, : shape[2]]))
    )
    found = (quarter.take() - start)[:, : shape[2]]
    assert (abs(found - v @ sin.phi) <= abs(v) @ sin.error + rounding).all()


@each_level
@each_dtype
@each_kind
@pytest.mark.parametrize("n_rows", [1, 3, 33])
def test_what_is_left_in_a_tile_from_another_changes_no_bit(n_rows, kind, dtype, level):
    """Vectors are taken several at once, of one row more where rows are odd: there lies what the
    call before has left."""
    case, before, found = (
        Case((n_rows, 5, 65), dtype, "cos", kind),
        rows_of(np.ones((64, 5), dtype), kind, level),
        [],
    )
    for scale in (1e-3, 1e30):
        left = NeuronBlock("identity", scale, np.ones((65, 5)), np.ones(65)).packed(
            np.dtype(dtype), 5
        )
        left.correlate(before, np.ones((1, 64)), np.zeros((1, case.width)))
        alone, pair, sine = np.zeros((3, 1, case.width))
        case.panels.correlate(case.rows(level), np.ones((1, n_rows)), alone)
        case.panels.correlate(case.rows(level), np.ones((1, n_rows)), pair, sine=sine)
        found.append((alone.tobytes(), pair.tobytes(), sine.tobytes()))
    assert found[0] == found[1]
    assert found[0][0] == found[0][1]


@each_level
@each_dtype
@each_kind
def test_kernels_agree_with_numpy_on_a_large_case(level, dtype, kind):
    check_kernels(Case((1030, 150, 337), dtype, "cos", kind), level, n_outputs=5)


@each_dtype
@each_activation
@each_kind
def test_levels_agree_to_rounding_and_one_of_them_is_the_default(dtype, activation, kind):
    case = Case((65, 33, 65), dtype, activation, kind)
    by_level = [transform(case, level) for level in range(len(LEVELS))]
    for phi in by_level:
        assert (abs(phi.astype(np.float64) - by_level[0]) <= 2 * case.error).all()
    for level in (-1, len(LEVELS), 99):  # a level that this processor lacks is never run
        np.testing.assert_array_equal(transform(case, level), by_level[LEVEL])


@each_level
@each_dtype
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("shape", [*sampled_shapes(), (1003, 517, 2)], ids=str)
def test_products_of_rows_agree_with_numpy(level, dtype, squared, shape, rng):
    n, d, k = shape
    k = min(k, 3)
    X = read_only(rng.standard_normal((n, d)).astype(dtype))
    v, p = (
        read_only(rng.standard_normal((k, n + 5)))[:, 3 : n + 3],
        read_only(rng.standard_normal((k, d))),
    )
    before, start = rng.standard_normal((k, d)), rng.standard_normal((k, n + 5))
    out, f, wide = before.copy(), start.copy(), X.astype(np.float64)
    rows = RowSlice(X, level=level)
    rows.correlate(v, out, squared)
    rows.apply(p, f[:, 3 : n + 3])
    np.testing.assert_allclose(out, before + v @ (wide**2 if squared else wide), rtol=0, atol=1e-11)
    np.testing.assert_allclose(
        f[:, 3 : n + 3], start[:, 3 : n + 3] + p @ wide.T, rtol=0, atol=1e-11
    )
    np.testing.assert_array_equal(
        np.delete(f, slice(3, n + 3), axis=1), np.delete(start, slice(3, n + 3), axis=1)
    )


@pytest.mark.parametrize(
    "level", [level for level, name in enumerate(LEVELS) if name != "baseline"] or [0]
)
@each_dtype
@pytest.mark.parametrize("d", SIZES)
def test_products_of_rows_are_those_of_the_normal_equations(level, dtype, d, rng):
    """The sums for normal equations have the bits of f = X p followed by X'(h f)."""
    X, p, h = (
        rng.standard_normal((65, d)).astype(dtype),
        rng.standard_normal((2, d)),
        rng.standard_normal((2, 65)),
    )
    f, out, f_then, out_then = (
        np.zeros((2, 65)),
        np.zeros((2, d)),
        np.zeros((2, 65)),
        np.zeros((2, d)),
    )
    rows = RowSlice(X, level=level)
    rows.normal(p, h, f, out)
    rows.apply(p, f_then)
    rows.correlate(h * f_then, out_then)
    np.testing.assert_array_equal(f, f_then)
    np.testing.assert_array_equal(out, out_then)


@each_level
@each_dtype
@pytest.mark.parametrize("shape", [*sampled_shapes(), (1003, 517, 2)], ids=str)
def test_normal_agrees_with_numpy(level, dtype, shape, rng):
    n, d, k = shape
    k = min(k, 3)
    X, p, h = (
        rng.standard_normal((n, d)).astype(dtype),
        rng.standard_normal((k, d)),
        rng.standard_normal((k, n)),
    )
    before, start = rng.standard_normal((k, d)), rng.standard_normal((k, n))
    out, f = before.copy(), start.copy()
    RowSlice(X, level=level).normal(p, h, f, out)
    wide = X.astype(np.float64)
    np.testing.assert_allclose(f, start + p @ wide.T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(out, before + (h * (start + p @ wide.T)) @ wide, rtol=0, atol=1e-9)


@each_dtype
@pytest.mark.parametrize("shape", [*sampled_shapes(), (1003, 517, 2)], ids=str)
def test_normal_of_sparse_rows(dtype, shape, rng):
    n, d, k = shape
    k = min(k, 3)
    X = csr_array((rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)).astype(dtype))
    p, h, start, out = (
        rng.standard_normal((k, d)),
        rng.standard_normal((k, n)),
        rng.standard_normal((k, n)),
        np.zeros((k, d)),
    )
    f = start.copy()
    RowSlice(X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64)).normal(p, h, f, out)
    wide = X.toarray().astype(np.float64)
    np.testing.assert_allclose(f, start + p @ wide.T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(out, (h * (start + p @ wide.T)) @ wide, rtol=0, atol=1e-9)


def refused_rows():
    """Yield (what is wrong, a function that gives such rows to a kernel)."""
    X, i, p = np.zeros((3, 2)), np.zeros(2, np.int32), np.array([0, 1, 2], np.int64)
    yield "a type", lambda: RowSlice(X.astype(np.float16))
    yield "integers", lambda: RowSlice(X.astype(np.int64))
    yield "not contiguous", lambda: RowSlice(X[:, ::2])
    yield "no array", lambda: RowSlice(None)
    yield "other indices", lambda: RowSlice(np.zeros(2), i.astype(np.int64), p)
    yield "indices alone", lambda: RowSlice(np.zeros(2), i)
    yield (
        "sums of CSR",
        lambda: RowSlice(np.zeros(2), i, p).correlate(np.zeros((1, 2)), np.zeros((1, 2))),
    )
    yield (
        "products of CSR",
        lambda: RowSlice(np.zeros(2), i, p).apply(np.zeros((1, 2)), np.zeros((1, 2))),
    )


@pytest.mark.every_case
@pytest.mark.parametrize("ask", [pytest.param(ask, id=name) for name, ask in refused_rows()])
def test_rows_that_kernels_cannot_read_are_refused(ask):
    with pytest.raises((TypeError, ValueError)):
        ask()


@each_kind
def test_rows_of_another_type_or_width_than_the_features_are_refused(kind):
    """The kernels would read past the end of these rows."""
    case = Case((5, 4, 3), np.float64, "cos", kind)
    v, out, phi = np.zeros((1, 5)), np.zeros((1, case.width)), np.zeros((5, 3))
    single = rows_of(np.zeros((5, 4), np.float32), kind)
    for X in (single, RowSlice(np.zeros((5, 7)))) if kind == "dense" else (single,):
        for ask in (
            lambda X: case.panels.correlate(X, v, out),
            lambda X: case.panels.apply(X, out, v),
            lambda X: case.panels.transform(X, phi),
        ):
            with pytest.raises(
                (TypeError, ValueError), match=r"of one type|must have 4 inputs, got 7"
            ):
                ask(X)
    for shape in (4, 3), (6, 3), (5, 0):
        with pytest.raises(ValueError, match="out must have a line for each of 5 rows"):
            case.panels.transform(case.rows(-1), np.zeros(shape))
    with pytest.raises(ValueError, match="mismatch"):
        Panels("cos", 1.0, np.zeros((1, 4, PANEL)), np.zeros((1, PANEL), np.float32))
    with pytest.raises(ValueError, match="not in tuple"):
        Panels("cosine", 1.0, np.zeros((1, 4, PANEL)), np.zeros((1, PANEL)))


@each_dtype
@pytest.mark.parametrize(
    "shape", [(0, 3), (3, 0), (1, 1), (1, 20), (20, 1), (3, 7), (5, 8), (4, 17)], ids=str
)
def test_are_finite_sees_every_number(rng, dtype, shape):
    n, d = shape
    wide = np.full((64, 64), np.inf, dtype)
    layouts = wide[:n, :d], wide[: 2 * n : 2, : 3 * d : 3], wide[:n, :d][::-1, ::-1], wide[:d, :n].T
    for X in (*layouts, *(np.empty((n, d), dtype, order) for order in "CF")):
        X[...] = rng.standard_normal(shape).astype(dtype)
        assert (
            checks.are_finite(X)
            and checks.are_finite(X, True)
            and checks.are_finite(X[:, :1].ravel())
        )
        for place in np.ndindex(shape):
            before = X[place]
            for number in (np.nan, np.inf, -np.inf, np.finfo(dtype).max, np.finfo(dtype).tiny / 8):
                X[place] = number
                assert checks.are_finite(X) == np.isfinite(X).all()
                assert checks.are_finite(X, True) == (not np.isinf(X).any())
                assert checks.are_finite(np.stack([X, X])) == np.isfinite(X).all()
            X[place] = before
        X[...] = np.inf


def test_are_finite_sees_infinity_amid_nan():
    X = np.full((2, 40), np.nan)
    assert checks.are_finite(X, True)
    X[1, 39] = np.inf
    assert not checks.are_finite(X, True)


def is_canonical_oracle(indptr, indices, n_columns):
    """Return whether indptr ascends over all entries, and columns ascend within each row and
    exist."""
    if indptr[0] != 0 or indptr[-1] != len(indices) or np.any(np.diff(indptr.astype(np.int64)) < 0):
        return False
    rows = np.split(indices.astype(np.int64), indptr[1:-1])
    return all(np.all(np.diff(row) > 0) and np.all((0 <= row) & (row < n_columns)) for row in rows)


@pytest.mark.slow
@examples(100)
@given(st.integers(1, 4), st.integers(0, 5), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_is_canonical_sees_every_fault(n, d, n_faults, seed):
    rng = np.random.default_rng(seed)
    X = csr_array(rng.random((n, d)) < 0.6)
    indptr, indices = X.indptr.astype(np.int32), X.indices.astype(np.int32)
    for _ in range(n_faults):
        array = indptr if rng.random() < 0.5 or not len(indices) else indices
        array[rng.integers(len(array))] = rng.choice(
            [-(2**31), -1, 0, 1, 2, d - 1, d, len(indices), 2**31 - 1]
        )
    assert checks.is_canonical(indptr, indices, n, d) == is_canonical_oracle(indptr, indices, d)


def test_is_canonical_counts_rows():
    indptr, indices = np.array([0, 1, 2], np.int32), np.zeros(2, np.int32)
    assert [checks.is_canonical(indptr, indices, n, 1) for n in (0, 1, 2, 3)] == [
        False,
        False,
        True,
        False,
    ]
    assert not checks.is_canonical(np.zeros(0, np.int32), indices, 0, 1)
    assert checks.is_canonical(np.zeros(1, np.int32), np.zeros(0, np.int32), 0, 1)


def limit_of(dtype):
    """Return the largest phase that polynomials handle; beyond it libm does."""
    return 1e6 if dtype == np.float64 else 2e4


@cache
def exact(activation, dtype):
    """Return arguments within the limit, most of them hard, and the exact results, each as a sum of
    two doubles."""
    rng, limit = np.random.default_rng(3), limit_of(dtype)
    tiny = -300 if dtype == np.float64 else -37
    near_zeros = np.pi / 2 * rng.integers(-int(limit / 1.6), int(limit / 1.6), 1500)
    logarithmic = np.logspace(tiny, np.log10(limit), 1000) * rng.choice([-1, 1], 1000)
    edges = [0.0, limit, -limit, np.pi / 2, np.pi / 4, 10.0, 20.0, -20.0, np.nextafter(20.0, 30.0)]
    x = np.concatenate(
        [
            edges,
            rng.uniform(-limit, limit, 1500),
            rng.uniform(-25, 25, 1500),
            logarithmic,
            near_zeros,
        ]
    )
    x = x.astype(dtype)
    with mpmath.workprec(200):
        y = [getattr(mpmath, activation)(mpmath.mpf(float(value))) for value in x]
        high = np.array([float(value) for value in y])
        return x, high, np.array([float(value - float(value)) for value in y])


@each_level
@pytest.mark.parametrize(("dtype", "floor"), [(np.float64, 1e-6), (np.float32, 2.0**-20)])
@pytest.mark.parametrize("activation", ["cos", "sin", "tanh"])
def test_activations_are_exact_to_three_units(activation, dtype, floor, level):
    x, high, low = exact(activation, dtype)
    error = abs((activate(activation, x, level).astype(np.float64) - high) - low)
    size = abs(high) if activation == "tanh" else np.maximum(abs(high), floor)
    assert (error <= 3 * np.spacing(size.astype(dtype))).all()


@each_level
@each_dtype
@pytest.mark.parametrize("activation", ["cos", "sin", "tanh"])
def test_activations_beyond_the_limit_are_those_of_libm(activation, dtype, level):
    limit = dtype(limit_of(dtype))
    x = np.array(
        [np.nextafter(limit, dtype(np.inf)), 1.5 * limit, 1e8, 1e15, 1e22, np.finfo(dtype).max],
        dtype,
    )
    x = np.concatenate([x, -x])
    expected = np.array([getattr(math, activation)(float(value)) for value in x]).astype(dtype)
    np.testing.assert_array_equal(activate(activation, x, level), expected)


@each_level
@each_dtype
@each_kind
@pytest.mark.parametrize("activation", ["cos", "sin", "tanh"])
def test_a_phase_that_overflows_is_zero_or_saturates(activation, dtype, level, kind):
    huge = np.finfo(dtype).max / 4
    signs = np.array([[1, 1], [1, -1], [-1, -1], [0, 0]], dtype)
    inputs = np.tile(np.arange(2, dtype=np.int32), (4, 1)) if kind == "q-sparse" else None
    block = NeuronBlock(activation, 1.0, huge * signs.astype(np.float64), np.full(4, 0.25), inputs)
    out = np.full((1, 4), np.nan, dtype)
    panels = block.packed(np.dtype(dtype), WIDE if kind == "q-sparse" else 2)
    panels.transform(rows_of(np.full((1, 2), huge, dtype), kind, level), out)
    assert np.isclose(out[0, 3], getattr(math, activation)(0.25), rtol=4 * np.finfo(dtype).eps)
    if activation == "tanh":
        assert (out[0, 0], out[0, 2]) == (1, -1)
        # the phase is NaN or infinite, by the order in which products are added
        assert abs(out[0, 1]) <= 1
    else:
        np.testing.assert_array_equal(out[0, :3], 0)


def bump(x, level):
    """Compute exp(-|x|) by one bump of weight 1 at 0."""
    panels, out = (
        BumpBlock(1.0, np.ones((1, 1)), np.zeros((1, 1))).packed(x.dtype, 1),
        np.empty((len(x), 1), x.dtype),
    )
    panels.transform(RowSlice(x[:, None], level=level), out)
    return out[:, 0]


@each_level
@pytest.mark.parametrize(("dtype", "limit"), [(np.float64, 708.0), (np.float32, 87.0)])
def test_bumps_are_exact_to_a_unit_and_a_half(dtype, limit, level):
    """And they are 1 at the center, and 0 where exp(-distance) is about to be subnormal."""
    rng = np.random.default_rng(0)
    # between two powers of two
    halves = np.log(2) * (rng.integers(0, int(limit / np.log(2)), 2000) + 0.5)
    x = np.concatenate(
        [
            [0.0, limit],
            np.logspace(-20, 0, 500),
            rng.uniform(0, 2, 1500),
            rng.uniform(0, limit, 3000),
            halves,
        ]
    )
    x = np.minimum(x, limit).astype(dtype)
    with mpmath.workprec(120):
        y = [mpmath.exp(-mpmath.mpf(float(value))) for value in x]
        error = [
            abs(mpmath.mpf(float(value)) - right)
            for value, right in zip(bump(x, level), y, strict=True)
        ]
        unit = np.spacing(np.array([float(right) for right in y]).astype(dtype)).astype(np.float64)
        assert (np.array([float(e) for e in error]) <= 1.5 * unit).all()
    assert bump(np.zeros(1, dtype), level) == 1
    beyond = np.array(
        [np.nextafter(dtype(limit), dtype(np.inf)), 10 * limit, np.finfo(dtype).max], dtype
    )
    np.testing.assert_array_equal(bump(np.concatenate([beyond, -beyond]), level), 0)


@each_level
@each_dtype
@pytest.mark.parametrize("kind", ["dense", "q-sparse"])
@as_within_a_call
def test_bumps_at_distances_that_overflow(dtype, level, kind):
    """A weight beyond the type counts as its largest number; a center without weight does not
    matter, wherever it is."""
    huge = np.finfo(dtype).max
    weights, centers = (
        np.array([[1.0, 0], [1e300, 0], [1e300, 1e300], [2, 2]]),
        np.array([[1.0, 1e305], [1, -1e305], [1, 2], [-9e307, 0]]),
    )
    inputs = np.tile(np.arange(2, dtype=np.int32), (4, 1)) if kind == "q-sparse" else None
    X, out = (
        np.array([[1, 2], [1, -huge], [huge, huge], [-huge, 0]], dtype),
        np.full((4, 4), np.nan, dtype),
    )
    panels = BumpBlock(1.0, weights, centers, inputs).packed(
        np.dtype(dtype), WIDE if kind == "q-sparse" else 2
    )
    panels.transform(RowSlice(X, level=level), out)
    np.testing.assert_array_equal(out, [[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])


@each_dtype
def test_bumps_that_kernels_cannot_read_are_refused(dtype):
    weights, offset, inputs = (
        np.zeros((1, 4, PANEL), dtype),
        np.zeros((1, PANEL), dtype),
        np.zeros((1, 4, PANEL), np.int32),
    )
    for centers in (
        None,
        weights[:, :3].copy(),
        np.zeros((2, 4, PANEL), dtype),
        weights.astype("f2"),
        weights[0],
    ):
        with pytest.raises((TypeError, ValueError)):
            Panels("bump", 1.0, weights, offset, None, centers)
    with pytest.raises(ValueError, match="for bumps alone"):
        Panels("cos", 1.0, weights, offset, None, weights)
    rows = rows_of(np.ones((3, 4), dtype), "csr")
    for panels in (
        Panels("bump", 1.0, weights, offset, None, weights),
        Panels("cos", 1.0, weights, offset, inputs),
    ):
        with pytest.raises(TypeError, match="rows must be dense where inputs or centers are given"):
            panels.transform(rows, np.zeros((3, 4), dtype))


@each_level
@each_dtype
def test_steps_and_kinks_at_zero(dtype, level):
    tiny = np.finfo(dtype).tiny
    x = np.array([0.0, -0.0, tiny, -tiny, 3, -3], dtype)
    np.testing.assert_array_equal(activate("sign", x, level), [1, 1, 1, -1, 1, -1])
    np.testing.assert_array_equal(activate("relu", x, level), [0, 0, tiny, 0, 3, 0])


def check_top_k(score, threshold, k):
    """Check that top_k gives the k largest scores above the threshold, of equal scores the
    first."""
    score = np.array(score, np.float64)
    order = np.lexsort((np.arange(len(score)), -score))
    expected = order[score[order] > threshold][:k]
    out = np.full(k, -1, np.intp)
    n = search.top_k(score, threshold, out)
    np.testing.assert_array_equal(out[:n], expected)
    np.testing.assert_array_equal(out[n:], -1)


@examples(100)
@given(st.lists(st.integers(-3, 3), max_size=40), st.integers(-4, 4), st.integers(0, 45))
def test_top_k_with_ties(score, threshold, k):
    check_top_k(score, threshold, k)


@pytest.mark.parametrize("k", [0, 1, 2, 31, 1000, 4999, 5000, 6000])
@pytest.mark.parametrize("threshold", [-np.inf, 0.0, 0.5, 10.0])
def test_top_k_of_many(rng, k, threshold):
    score = rng.standard_normal(5000)
    for order in (score, np.sort(score), -np.sort(score), np.repeat(score[:50], 100)):
        check_top_k(order, threshold, k)


def test_top_k_never_takes_nan():
    out = np.full(4, -1, np.intp)
    assert search.top_k(np.array([np.nan, 1.0, np.nan, 2.0]), 0.0, out) == 2
    assert out.tolist() == [3, 1, -1, -1]


def check_hard_threshold(x, s):
    """Check that hard_threshold gives the s largest entries that are not zero, of equal sizes the
    first, in ascending order."""
    x = np.array(x, np.float64)
    size = abs(x)
    order = np.lexsort((np.arange(len(x)), -size))
    expected = np.sort(order[size[order] > 0][:s])
    out = np.full(s, -1, np.intp)
    n = threshold.hard_threshold(x, out)
    np.testing.assert_array_equal(out[:n], expected)
    np.testing.assert_array_equal(out[n:], -1)


@examples(300)
@given(st.lists(st.integers(-3, 3), max_size=40), st.integers(0, 45))
def test_hard_threshold_with_ties(x, s):
    check_hard_threshold(x, s)


@pytest.mark.parametrize("s", [0, 1, 2, 31, 1000, 4999, 5000, 6000])
def test_hard_threshold_of_many(rng, s):
    x = rng.standard_normal(5000)
    for order in (
        x,
        np.sort(x),
        -np.sort(x),
        np.repeat(x[:50], 100),
        x * (rng.random(5000) < 0.1),
        np.zeros(5000),
    ):
        check_hard_threshold(order, s)


@pytest.mark.parametrize("size", SIZES)
def test_hard_threshold_sizes(rng, size):
    for s in (0, 1, size // 2, size, size + 1):
        check_hard_threshold(rng.standard_normal(size), s)


def least_squares(rng, kind, p=30):
    """Draw (X, y) with a Gram matrix of that kind; y has noise, so that no minimum is
    degenerate."""
    n = 2 * p
    X = rng.standard_normal((n, p))
    if kind == "ill conditioned":
        U, _, V = np.linalg.svd(X, full_matrices=False)
        X = U * np.logspace(0, -6, p) * np.sqrt(n) @ V
    elif kind == "badly scaled":
        X *= 10.0 ** rng.uniform(-3, 3, p)
    elif kind == "duplicate columns":
        X[:, p // 2 :] = X[:, : p - p // 2]
    elif kind == "fewer rows than columns":
        X, n = X[: p // 2], p // 2
    elif kind == "zero columns":
        X[:, ::3] = 0
    elif kind == "nearly equal columns":
        X = X[:, :1] + 1e-5 * X
    return X, X @ (rng.standard_normal(p) * (rng.random(p) < 0.3)) + 0.1 * rng.standard_normal(n)


KINDS = (
    "well conditioned",
    "ill conditioned",
    "badly scaled",
    "duplicate columns",
    "fewer rows than columns",
    "zero columns",
    "nearly equal columns",
)
each_gram = pytest.mark.parametrize("kind", KINDS)


def quadratic(rng, kind):
    """Return (H, g) of the least squares problem of that kind."""
    X, y = least_squares(rng, kind)
    return X.T @ X / len(X), -X.T @ y / len(X)


def violations(w, v, alpha, nonnegative=False):
    """Compute how far each coordinate is from optimality, given the gradient v of the smooth
    part."""
    at_zero = np.maximum(np.where(nonnegative, -v, abs(v)) - alpha, 0)
    return np.where(w == 0, at_zero, abs(v + alpha * np.sign(w)))


@pytest.mark.parametrize("p", SIZES)
def test_largest_violation(rng, p):
    w, v = rng.standard_normal((2, p))
    w[::3] = 0
    nonnegative = rng.random(p) < 0.5
    for alpha in (0.0, 0.3, 5.0):
        expected = violations(w, v, alpha).max(initial=0)
        assert descent.largest_violation(w, v, alpha) == pytest.approx(expected, rel=1e-14)
        feasible = np.where(nonnegative, abs(w), w)
        expected = violations(feasible, v, alpha, nonnegative).max(initial=0)
        assert descent.largest_violation(feasible, v, alpha, nonnegative) == pytest.approx(
            expected, rel=1e-14
        )


def descend_plainly(H, w, v, alpha, n_epochs, nonnegative):
    """Return (w, v) after passes over all coordinates until the support does not change, then over
    the nonzeros, and so on."""
    w, v, nonzeros = w.copy(), v.copy(), False
    for _ in range(n_epochs):
        support = w != 0
        for j in range(len(w)):
            if H[j, j] > 0 and (w[j] != 0 or not nonzeros):
                z = w[j] * H[j, j] - v[j]
                new = np.sign(z) * max(abs(z) - alpha, 0) / H[j, j]
                new = max(new, 0.0) if nonnegative[j] else new
                v, w[j] = v + H[j] * (new - w[j]), new
        nonzeros = np.array_equal(support, w != 0) and not nonzeros
    return w, v


@each_level
@each_dtype
@pytest.mark.parametrize("p", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_descend_keeps_coordinates_nonnegative_as_plain_numpy_does(rng, p, share, dtype, level):
    X = rng.standard_normal((p + 3, p))
    H, g = (X.T @ X / len(X)).astype(dtype), rng.standard_normal(p)
    nonnegative = rng.random(p) < share
    start = rng.standard_normal(p) * (rng.random(p) < 0.5)
    start = np.where(nonnegative, abs(start), start)
    w, v = start.copy(), g.copy()
    worst = descent.descend(H, w, v, 0.2, 3, 0.0, nonnegative, level)
    expected = H.astype(np.float64), start, g, 0.2, 3, nonnegative
    expected_w, expected_v = descend_plainly(*expected)
    np.testing.assert_allclose(w, expected_w, atol=1e-10 * abs(expected_w).max(initial=1))
    np.testing.assert_allclose(v, expected_v, atol=1e-9 * abs(expected_v).max(initial=1))
    assert (w[nonnegative] >= 0).all()
    assert worst == descent.largest_violation(w, v, 0.2, nonnegative)
    at_baseline = start.copy(), g.copy()
    descent.descend(H, *at_baseline, 0.2, 3, 0.0, nonnegative, 0)
    assert [each.tobytes() for each in at_baseline] == [w.tobytes(), v.tobytes()]
    if not share:  # the same bits as without a mask
        other, gradient = start.copy(), g.copy()
        descent.descend(H, other, gradient, 0.2, 3, level=level)
        assert (other.tobytes(), gradient.tobytes()) == (w.tobytes(), v.tobytes())


@pytest.mark.parametrize(
    "mask", [np.ones(2, bool), np.ones(3), np.ones((3, 1), bool)], ids=["short", "numbers", "2-d"]
)
def test_a_mask_that_is_none_is_refused(mask):
    with pytest.raises(ValueError, match="nonnegative must be a mask of 3"):
        descent.largest_violation(np.zeros(3), np.zeros(3), 0.1, mask)
    with pytest.raises(ValueError, match="nonnegative must be a mask of 3"):
        descent.descend(np.eye(3), np.zeros(3), np.zeros(3), 0.1, 1, 0.0, mask)


@each_gram
@pytest.mark.parametrize("n_epochs", [1, 7])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3])
def test_descend_never_raises_the_objective_and_keeps_its_gradient(rng, kind, n_epochs, share):
    H, g = quadratic(rng, kind)
    alpha, w0 = share * abs(g).max(), rng.standard_normal(len(g)) / (1 + np.sqrt(H.diagonal()))
    w, v = w0.copy(), g.copy()

    def objective():
        return 0.5 * (w - w0) @ H @ (w - w0) + g @ (w - w0) + alpha * abs(w).sum()

    value = objective()
    for _ in range(20):
        descend_from = value
        descent.descend(H, w, v, alpha, n_epochs)
        value = objective()
        assert value <= descend_from + 1e-12 * max(1, abs(descend_from))
    scale = abs(H) @ abs(w - w0) + abs(g) + abs(H) @ abs(w0)
    assert (abs(v - (g + H @ (w - w0))) <= 1e-11 * scale.max()).all()


def test_descend_leaves_coordinates_without_curvature_alone(rng):
    H, g = quadratic(rng, "zero columns")
    w = rng.standard_normal(len(g))
    start, v = w.copy(), g.copy()
    descent.descend(H, w, v, 0.1, 0)
    np.testing.assert_array_equal(w, start)
    np.testing.assert_array_equal(v, g)
    descent.descend(H, w, v, 0.1, 50)
    np.testing.assert_array_equal(w[::3], start[::3])
    np.testing.assert_array_equal(v[::3], g[::3])
    assert (w != start).sum() == (H.diagonal() > 0).sum()


@pytest.mark.parametrize("share", [0.9, 0.3, 0.03])
@pytest.mark.parametrize("kind", ["well conditioned", "fewer rows than columns"])
@pytest.mark.parametrize("positive", [False, True])
def test_solution_is_that_of_scikit_learn(rng, kind, share, positive):
    X, y = least_squares(rng, kind)
    H, g = X.T @ X / len(X), -X.T @ y / len(X)
    alpha, zero = share * abs(g).max(), np.zeros(len(g))
    expected = Lasso(
        alpha=alpha, fit_intercept=False, tol=1e-14, max_iter=100_000, positive=positive
    )
    expected, mask = expected.fit(X, y).coef_, np.full(len(g), positive)
    w, v = zero.copy(), g.copy()
    descent.descend(H, w, v, alpha, 20_000, 0.0, mask)
    for solution in (w, minimize(L1Quadratic(H, g, zero, alpha, mask), 1e-12)):
        np.testing.assert_allclose(solution, expected, atol=1e-6)
        np.testing.assert_array_equal(solution != 0, expected != 0)


@each_gram
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.01, 1e-3, 1e-5])
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("masked", [0.0, 0.5, 1.0])
def test_minimize_reaches_its_tolerance(kind, share, warm, masked):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        H, g = quadratic(rng, kind)
        w = warm * rng.standard_normal(len(g)) * (rng.random(len(g)) < 0.3) * (H.diagonal() > 0)
        nonnegative = rng.random(len(g)) < masked
        w = np.where(nonnegative, abs(w), w)
        alpha, start = share * abs(g).max(), w.copy()
        tol = 1e-8 * abs(g).max()
        g = g + H @ w
        gradient = g.copy()
        x = minimize(L1Quadratic(H, g, w, alpha, nonnegative), tol)
        np.testing.assert_array_equal(w, start)
        np.testing.assert_array_equal(g, gradient)
        assert (x[nonnegative] >= 0).all()
        # Of nearly equal columns rounding may end the interior point early: with masks in 1 of 240
        # problems of other seeds.
        reached = 1e4 * tol if masked and kind == "nearly equal columns" else 1.01 * tol
        assert violations(x, g + H @ (x - w), alpha, nonnegative).max() <= reached


def test_minimize_over_no_coordinates():
    nothing = L1Quadratic(np.empty((0, 0)), np.empty(0), np.empty(0), 0.1)
    assert minimize(nothing, 1e-9).shape == (0,)
