"""Random projections: the kernels against plain NumPy, each kind against its matrix, and the same
bits for any workers.

The matrix R / sqrt(m) of a projection is the projection of the identity in CSR. The diagonal of R
R' / m is 1, except for Gaussian entries. Random quantities must lie within six standard deviations,
which they exceed with probability 2e-9.
"""

import time
import tracemalloc

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.sparse import csr_array, eye_array, random_array

from sparserf._base.random import stream
from sparserf._core import projection as core
from sparserf._core.rows import RowSlice
from sparserf.features import PROJECTIONS as NAMES
from sparserf.features import Linear, make_projection

from ..conftest import SIZES, as_within_a_call, each_dtype
from ..rows.layouts import LAYOUTS

PROJECTIONS = ("gaussian", "sparse_sign", "srht")
each_kind = pytest.mark.parametrize("kind", PROJECTIONS)
each_layout = pytest.mark.parametrize(
    "layout", ["C", "F", "every other row", "every other column", "backwards", "csr"]
)


def rows_of(X, workers):
    """Return the rows of X, on so many threads."""
    return Linear().draw(None, X.shape[1]).rows_of(X, workers)


def shapes():
    """Return triples (rows, inputs, projections), at least (0, 1, 1), in which every size occurs
    three times in each place."""
    rng = np.random.default_rng(7)
    sizes = np.array([rng.permutation(SIZES) for _ in range(9)]).reshape(3, 3, -1)
    sizes = [*sizes.transpose(0, 2, 1).reshape(-1, 3).tolist(), [70, 1000, 300]]
    return [(n, max(d, 1), max(m, 1)) for n, d, m in sizes]


def make(kind, d, m, seed=0):
    """Make a projection onto m columns, or for srht onto as many as it has if that is less."""
    length = 1 << (d - 1).bit_length()
    return make_projection(kind, d, min(m, length) if kind == "srht" else m, seed)


def matrix(p):
    """Return R / sqrt(m)."""
    return p.project(eye_array(p.n_features, format="csr"))


def draw(rng, shape, dtype, density=0.5):
    """Draw a matrix in which this share of the entries is not zero."""
    return (rng.standard_normal(shape) * (rng.random(shape) < density)).astype(dtype)


def locked(X):
    """Make the arrays of X read-only, and return X."""
    for array in (X.data, X.indices, X.indptr) if isinstance(X, csr_array) else (X,):
        array.flags.writeable = False
    return X


def assert_projects(p, X, R, dense):
    """Check that p projects X to dense @ R but for rounding."""
    X_hat = p.project(X)
    assert X_hat.dtype == X.dtype and X_hat.shape == (X.shape[0], p.n_projections)
    dense = dense.astype(np.float64)
    error = (
        4
        * (len(R) + 8)
        * np.finfo(X.dtype).eps
        * (np.abs(dense).sum(axis=1, keepdims=True) * np.abs(R).max() + 1e-300)
    )
    assert (np.abs(X_hat - dense @ R) <= error).all()


@each_dtype
@pytest.mark.parametrize("shape", shapes())
def test_the_kernel_of_sparse_signs_is_the_product(shape, dtype, rng):
    n, d, m = shape
    zeta = min(3, m)
    X, S = draw(rng, (n, d), dtype), np.zeros((d, m))
    columns = rng.permuted(np.tile(np.arange(m, dtype=np.int32), (d, 1)), axis=1)[:, :zeta].copy()
    signs = (2 * rng.integers(0, 2, (d, zeta)) - 1).astype(np.int8)
    np.put_along_axis(S, columns.astype(np.intp), signs.astype(np.float64), axis=1)
    frame = np.full((n + 2, m), np.nan, dtype)
    core.sparse_sign(X, columns, signs, 0.5, frame[1:-1])
    assert np.isnan(frame[[0, -1]]).all()
    np.testing.assert_allclose(
        frame[1:-1],
        0.5 * (X.astype(np.float64) @ S),
        rtol=1e-6,
        atol=1e-5 * (dtype == np.float32) + 1e-13,
    )
    C, from_csr = csr_array(X), np.full((n, m), np.nan, dtype)
    arrays = C.data, C.indices.astype(np.int32), C.indptr.astype(np.int64)
    core.sparse_sign_csr(RowSlice(*arrays), columns, signs, 0.5, from_csr)
    np.testing.assert_array_equal(from_csr, frame[1:-1])  # the same sums in the same order


@each_dtype
@pytest.mark.parametrize("length", [2**k for k in range(12)])
def test_the_hadamard_transform_is_the_product(length, dtype, rng):
    X = rng.integers(-8, 8, (5, length)).astype(dtype)  # sums of integers are exact
    frame = np.full((7, length), np.nan, dtype)
    frame[1:-1] = X
    core.hadamard(frame[1:-1])
    assert np.isnan(frame[[0, -1]]).all()
    np.testing.assert_array_equal(frame[1:-1], X @ hadamard(length, dtype))


@pytest.mark.parametrize("length", [2**12, 2**13, 2**17])
def test_long_hadamard_transforms(length, rng):
    X = rng.integers(-8, 8, (2, length)).astype(np.float64)
    Z = X.copy()
    core.hadamard(Z)
    for k in rng.integers(0, length, 5):
        row = np.bitwise_count(np.arange(length) & k) % 2
        np.testing.assert_array_equal(Z[:, k], X @ (1.0 - 2 * row))
    core.hadamard(Z)
    np.testing.assert_array_equal(Z, length * X)


@each_kind
@each_dtype
@pytest.mark.parametrize("shape", shapes())
def test_project_is_the_product(kind, dtype, shape, rng):
    n, d, m = shape
    p, X = make(kind, d, m), draw(rng, (n, d), dtype)
    R = matrix(p)
    assert R.shape == (p.n_features, p.n_projections) == (d, min(m, R.shape[1]))
    assert_projects(p, X, R, X)


@each_kind
@each_dtype
@each_layout
def test_projections_of_every_layout(kind, dtype, layout, rng):
    p, X = make(kind, 150, 40), draw(rng, (77, 150), dtype)
    arranged = locked(LAYOUTS[layout](X))
    before = arranged.copy()
    assert_projects(p, arranged, matrix(p), X)
    assert_projects(p, arranged[5:21], matrix(p), X[5:21])
    assert abs(arranged - before).max() == 0


@each_kind
@each_dtype
def test_csr_is_projected_as_dense_rows_are(kind, dtype, rng):
    p, X = make(kind, 150, 40), draw(rng, (77, 150), dtype, 0.1)
    X[3] = 0.0
    tolerance = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(
        p.project(csr_array(X)), p.project(X), rtol=tolerance, atol=tolerance
    )
    np.testing.assert_array_equal(p.project(csr_array(X))[3], 0.0)


def test_matrices_are_those_of_their_formula():
    p = make("sparse_sign", 40, 21)
    S = sum(np.eye(21)[p.columns[:, k]] * p.signs[:, k, None] for k in range(8))
    np.testing.assert_allclose(matrix(p), S / np.sqrt(8), rtol=1e-14)
    p = make("srht", 40, 21)
    HS = hadamard(64)[:40, p.sample]
    np.testing.assert_allclose(matrix(p), p.signs[:, None] * HS / np.sqrt(21), rtol=1e-14)
    p = make("gaussian", 40, 170)
    parts = [stream(p.seed, k).standard_normal((40, width)) for k, width in enumerate([64, 64, 42])]
    np.testing.assert_array_equal(matrix(p), np.hstack(parts) / np.sqrt(170))


@pytest.mark.parametrize("m", [1, 3, 8, 13, 64, 1000])
def test_rows_of_a_sparse_sign_matrix(m):
    p = make("sparse_sign", 500, m)
    zeta = min(8, m)
    assert p.columns.shape == p.signs.shape == (500, zeta)
    assert p.columns.dtype == np.int32 and p.signs.dtype == np.int8
    assert (np.diff(p.columns, axis=1) > 0).all() and p.columns.min() >= 0 and p.columns.max() < m
    assert set(np.unique(p.signs)) <= {-1, 1}
    if m <= 64:  # some column does not occur with probability below 1e-20
        assert set(np.unique(p.columns)) == set(range(m))
    R = matrix(p)
    assert ((R != 0).sum(axis=1) == zeta).all()
    np.testing.assert_allclose((R**2).sum(axis=1), 1.0, rtol=1e-14)


def test_srht_is_of_unit_rows_and_distinct_columns():
    p = make("srht", 100, 50)
    assert len(set(p.sample.tolist())) == 50
    np.testing.assert_allclose(np.abs(matrix(p)), 50**-0.5, rtol=1e-14)
    np.testing.assert_allclose((matrix(p) ** 2).sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("d", [1, 4, 64, 256])
def test_srht_of_all_columns_is_orthogonal(d):
    p = make_projection("srht", d, d, 0)
    R = matrix(p)
    np.testing.assert_array_equal(R @ R.T, np.eye(d))  # entries are powers of two: no rounding


@pytest.mark.slow
@each_kind
def test_mean_of_the_squared_matrix_is_the_identity(kind):
    """The mean of R R' / m over 4,000 matrices is the identity; the variance of its entries is at
    most 2 / (4000 m)."""
    d, m, n = 6, 4, 4000
    R = np.array([matrix(make(kind, d, m, seed)) for seed in range(n)])
    mean = np.einsum("kij,klj->il", R, R) / n
    assert np.abs(mean - np.eye(d)).max() < 6 * np.sqrt(2 / (n * m))
    assert np.abs(R.mean(axis=0)).max() < 6 / np.sqrt(n * m)


def test_gaussian_entries():
    """The first four moments of 200,000 entries are those of N(0, 1)."""
    entries = np.sqrt(200) * matrix(make("gaussian", 1000, 200)).ravel()
    for power, moment, variance in [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)]:
        assert abs((entries**power).mean() - moment) < 6 * np.sqrt(variance / entries.size)
    starts = [columns.start for columns, _ in make("gaussian", 1000, 200).parts(np.float64)]
    assert starts == [0, 64, 128, 192]
    assert len({entries[start] for start in starts}) == 4


@pytest.mark.parametrize(
    ("d", "width"), [(1, 64), (2**15, 64), (2**15 + 1, 63), (2**21, 1), (2**22, 1)]
)
def test_the_width_of_gaussian_parts(d, width):
    assert make("gaussian", d, 100)._width == width
    assert make("gaussian", d, 1)._width == 1


@each_kind
def test_same_seed_same_bits(kind, rng):
    X = rng.standard_normal((20, 100))
    first, again, other = (make(kind, 100, 70, seed) for seed in (5, np.random.default_rng(5), 6))
    np.testing.assert_array_equal(first.project(X), again.project(X))
    np.testing.assert_array_equal(first.project(X), first.project(X))
    assert not np.array_equal(first.project(X), other.project(X))


@each_kind
@each_dtype
@pytest.mark.parametrize("layout", ["C", "F", "csr"])
def test_same_bits_for_any_number_of_workers(kind, dtype, layout, rng, cut_rows):
    cut_rows(2**10)
    p, X = make(kind, 150, 90), LAYOUTS[layout](draw(rng, (1500, 150), dtype))
    one, two, five = (rows_of(X, workers).project(p) for workers in (1, 2, 5))
    assert one.dtype == dtype and one.shape == (1500, 90)
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, five)
    np.testing.assert_allclose(one, p.project(X), rtol=1e-4, atol=1e-4)
    with rows_of(X, 2) as rows:
        np.testing.assert_array_equal(rows.project(p), one)


@pytest.mark.every_case
@each_kind
@each_dtype
@as_within_a_call
def test_huge_values_overflow_to_an_error(kind, dtype):
    X = np.full((130, 40), np.finfo(dtype).max)
    p = make(kind, 40, 16)
    p.project(X), p.project(csr_array(X))
    with pytest.raises(ValueError, match="X must be of moderate size"):
        rows_of(X, 2).project(p)
    assert np.isfinite(rows_of(X / dtype(1e6), 2).project(p)).all()


@pytest.mark.slow
def test_millions_of_inputs_take_little_memory():
    d, m = 2_000_000, 64
    X = random_array((500, d), density=1e-5, format="csr", rng=0)
    tracemalloc.start()
    start = time.process_time()
    p = make_projection("sparse_sign", d, m, 0)
    X_hat = rows_of(X, 2).project(p)
    assert time.process_time() - start < 3
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6  # columns and signs are 80 MB, and 16 MB more while the signs are drawn
    norms = np.sqrt(X.power(2).sum(axis=1))
    assert abs((np.linalg.norm(X_hat, axis=1) / norms).mean() - 1) < 0.1


def test_wrong_arguments_are_named():
    with pytest.raises(
        ValueError, match="projection must be one of 'gaussian', 'sparse_sign', 'srht', got 'fft'"
    ):
        make_projection("fft", 3, 2)
    with pytest.raises(ValueError, match=r"n_projections must be at most 4, .* got 5"):
        make_projection("srht", 3, 5)
    with pytest.raises(ValueError, match="n_projections must be at least 1"):
        make_projection("gaussian", 3, 0)
    with pytest.raises(TypeError, match="n_features must be an integer"):
        make_projection("gaussian", 3.0, 2)
    assert NAMES == PROJECTIONS
