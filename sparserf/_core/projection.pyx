"""Random projections without a matrix product: by sparse signs, and by the fast Hadamard transform.

The sparse-sign matrix S (n_inputs, n_projections) has few non-zero entries a row,
S[j, columns[j, l]] = signs[j, l] = +-1.
Sums are float64, in the order of the inputs, for both dense and CSR rows.
"""
from cython cimport floating
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int8_t, int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from sparserf._core.rows cimport RowSlice

cdef enum:
    LANES = 8  # rows side by side: an entry of S adds a vector to the sums of a column
    INPUTS = 64  # inputs, of LANES rows, that are copied side by side at a time
    CACHED = 2048  # numbers that stay in the first-level cache during all stages of a transform


def sparse_sign(const floating[:, :] X not None, const int32_t[:, ::1] columns not None,
                const int8_t[:, ::1] signs not None, double scale, floating[:, ::1] out not None):
    """Write scale X S to out; X has any strides. Memory: 8 * n_projections numbers."""
    cdef ptrdiff_t tile, chunk, i, j, k, r, n_rows, d = X.shape[1], m = out.shape[1]
    cdef double[LANES * INPUTS] x
    cdef double *sums = <double *>malloc(LANES * (m + 1) * sizeof(double))
    if sums == NULL:
        raise MemoryError
    memset(&x[0], 0, sizeof(x))
    with nogil:
        for tile in range((X.shape[0] + LANES - 1) // LANES):
            i = tile * LANES
            n_rows = min(<ptrdiff_t>LANES, X.shape[0] - i)
            memset(sums, 0, LANES * m * sizeof(double))
            for chunk in range((d + INPUTS - 1) // INPUTS):
                j = chunk * INPUTS
                k = min(<ptrdiff_t>INPUTS, d - j)
                side_by_side(&X[i, j], X.strides, n_rows, k, &x[0])
                scatter(&x[0], k, &columns[j, 0], &signs[j, 0], columns.shape[1], sums)
            for r in range(n_rows):
                for k in range(m):
                    out[i + r, k] = <floating>(scale * sums[LANES * k + r])
        free(sums)


cdef inline void side_by_side(const floating *X, const Py_ssize_t *strides, ptrdiff_t n_rows,
                              ptrdiff_t d, double *x) noexcept nogil:
    """Copy n_rows <= LANES rows of X to x[j, i] = X[i, j]; strides are in bytes."""
    cdef ptrdiff_t i, j
    cdef const char *row
    for i in range(n_rows):
        row = <const char *>X + i * strides[0]
        for j in range(d):
            x[LANES * j + i] = (<const floating *>(row + j * strides[1]))[0]


cdef inline void scatter(const double *x, ptrdiff_t n, const int32_t *columns, const int8_t *signs,
                         ptrdiff_t zeta, double *sums) noexcept nogil:
    """Add signs[k, l] x[k] to sums[columns[k, l]], LANES rows side by side.

    There are n inputs k, with zeta columns l each.
    """
    cdef ptrdiff_t k, l
    for k in range(n):
        for l in range(zeta * k, zeta * (k + 1)):
            add(sums + LANES * <ptrdiff_t>columns[l], x + LANES * k, signs[l])


cdef inline void add(double *sum, const double *x, double sign) noexcept nogil:
    """Add sign x to sum.

    All is read before anything is written: the compiler cannot know that they do not overlap.
    """
    cdef ptrdiff_t i
    cdef double[LANES] more
    for i in range(LANES):
        more[i] = sum[i] + x[i] * sign
    for i in range(LANES):
        sum[i] = more[i]


def sparse_sign_csr(RowSlice X not None, const int32_t[:, ::1] columns not None,
                    const int8_t[:, ::1] signs not None, double scale,
                    floating[:, ::1] out not None):
    """Write scale X S to out, for CSR rows X of the type of out. Memory: n_projections numbers."""
    cdef ptrdiff_t i, k, m = out.shape[1]
    cdef int64_t j
    cdef double x
    cdef const int32_t *indices = X.rows.indices
    cdef const floating *data = <const floating *>X.values(sizeof(floating) == sizeof(float))
    cdef double *sums = <double *>malloc((m + 1) * sizeof(double))
    if sums == NULL:
        raise MemoryError
    with nogil:
        for i in range(X.rows.n_rows):
            memset(sums, 0, m * sizeof(double))
            for j in range(X.rows.indptr[i], X.rows.indptr[i + 1]):
                x = data[j]
                for k in range(columns.shape[1]):
                    sums[columns[indices[j], k]] += signs[indices[j], k] * x
            for k in range(m):
                out[i, k] = <floating>(scale * sums[k])
        free(sums)


def hadamard(floating[:, ::1] rows not None):
    """Replace rows by rows H, H[i, j] = (-1)^popcount(i & j), not normalised.

    The length of a row is a power of two.
    """
    cdef ptrdiff_t i
    with nogil:
        for i in range(rows.shape[0]):
            transform(&rows[i, 0], rows.shape[1])


cdef void transform(floating *x, ptrdiff_t n) noexcept nogil:
    """Transform x in place: sums and differences of numbers that are h = 1, 2, 4, ... apart.

    These are log2(n) stages, three or two of which are done in one pass over x. The quarters of a
    long x come first, each through all its stages while it is in the cache.
    """
    cdef ptrdiff_t i, h = 1
    if n > CACHED:
        for i in range(4):
            transform(x + i * (n // 4), n // 4)
        two_stages(x, n // 4)
        return
    if n >= 8:
        for i in range(n // 8):
            three_stages(x + 8 * i)
        h = 8
    while 4 * h <= n:
        for i in range(n // (4 * h)):
            two_stages(x + 4 * h * i, h)
        h *= 4
    if h < n:
        one_stage(x, h)


cdef inline void one_stage(floating *x, ptrdiff_t h) noexcept nogil:
    cdef ptrdiff_t k
    cdef floating *restrict a = x
    cdef floating *restrict b = x + h
    for k in range(h):
        a[k], b[k] = a[k] + b[k], a[k] - b[k]


cdef inline void two_stages(floating *x, ptrdiff_t h) noexcept nogil:
    cdef ptrdiff_t k
    cdef floating p, q, r, s
    cdef floating *restrict a = x
    cdef floating *restrict b = x + h
    cdef floating *restrict c = x + 2 * h
    cdef floating *restrict d = x + 3 * h
    for k in range(h):
        p, q, r, s = a[k] + b[k], a[k] - b[k], c[k] + d[k], c[k] - d[k]
        a[k], b[k], c[k], d[k] = p + r, q + s, p - r, q - s


cdef inline void three_stages(floating *x) noexcept nogil:
    """Do the stages h = 1, 2 and 4 of eight numbers."""
    cdef floating a = x[0] + x[1], b = x[0] - x[1], c = x[2] + x[3], d = x[2] - x[3]
    cdef floating e = x[4] + x[5], f = x[4] - x[5], g = x[6] + x[7], h = x[6] - x[7]
    cdef floating p = a + c, q = b + d, r = a - c, s = b - d
    cdef floating t = e + g, u = f + h, v = e - g, w = f - h
    x[0], x[1], x[2], x[3] = p + t, q + u, r + v, s + w
    x[4], x[5], x[6], x[7] = p - t, q - u, r - v, s - w
