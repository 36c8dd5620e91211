"""X'v, X p, and X' diag(h) X p, the product of the normal equations, of rows themselves: X is read once."""
from cython cimport floating
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t

from sparserf._core.features import LEVEL

cdef extern from "tile.h" nogil:
    enum: FEW_ROWS
    ctypedef struct tile_kernels:
        void (*correlate_rows)(const void *, ptrdiff_t, int, const double *, double *, int) noexcept nogil
        void (*correlate_row_squares)(const void *, ptrdiff_t, int, const double *, double *, int) noexcept nogil
        void (*apply_rows)(const void *, ptrdiff_t, int, const double *, double *, int) noexcept nogil
        void (*normal)(const void *, ptrdiff_t, int, const double *, const double *, double *, double *, int) noexcept nogil
    const tile_kernels *tile_select(int, int, int)

cdef int default_level = LEVEL


def correlate(const floating[:, ::1] X not None, const double[:, :] v not None, double[:, ::1] out not None, bint squared=False,
              int level=-1):
    """out[k] += sum_i v[k, i] x_i, or of the squares; last axes contiguous. v (n_outputs, n_rows), out (n_outputs, n_inputs)."""
    cdef ptrdiff_t group, i, k, n = X.shape[0], d = X.shape[1]
    cdef const tile_kernels *kernels = tile_select(floating is float, level, default_level)
    cdef int n_rows
    if d == 0 or n == 0:
        return
    with nogil:
        for group in range((n + FEW_ROWS - 1) // FEW_ROWS):
            i = group * FEW_ROWS
            n_rows = <int>min(<ptrdiff_t>FEW_ROWS, n - i)
            for k in range(v.shape[0]):
                if squared:
                    kernels.correlate_row_squares(&X[i, 0], d, n_rows, &v[k, i], &out[k, 0], k == 0)
                else:
                    kernels.correlate_rows(&X[i, 0], d, n_rows, &v[k, i], &out[k, 0], k == 0)


def apply(const floating[:, ::1] X not None, const double[:, ::1] p not None, double[:, :] f not None, int level=-1):
    """f[k, i] += x_i'p_k; last axes contiguous. p (n_outputs, n_inputs), f (n_outputs, n_rows)."""
    cdef ptrdiff_t group, i, k, n = X.shape[0], d = X.shape[1]
    cdef const tile_kernels *kernels = tile_select(floating is float, level, default_level)
    cdef int n_rows
    if d == 0 or n == 0:
        return
    with nogil:
        for group in range((n + FEW_ROWS - 1) // FEW_ROWS):
            i = group * FEW_ROWS
            n_rows = <int>min(<ptrdiff_t>FEW_ROWS, n - i)
            for k in range(p.shape[0]):
                kernels.apply_rows(&X[i, 0], d, n_rows, &p[k, 0], &f[k, i], k == 0)


def normal(const floating[:, ::1] X not None, const double[:, ::1] p not None, const double[:, :] h not None,
           double[:, :] f not None, double[:, ::1] out not None, int level=-1):
    """f[k, i] += x_i'p_k, then out[k] += sum_i h[k, i] f[k, i] x_i; last axes contiguous. p, out (n_outputs, n_inputs)."""
    cdef ptrdiff_t group, i, k, n = X.shape[0], d = X.shape[1]
    cdef const tile_kernels *kernels = tile_select(floating is float, level, default_level)
    cdef int n_rows
    if d == 0 or n == 0:
        return
    with nogil:
        for group in range((n + FEW_ROWS - 1) // FEW_ROWS):
            i = group * FEW_ROWS
            n_rows = <int>min(<ptrdiff_t>FEW_ROWS, n - i)
            for k in range(p.shape[0]):
                kernels.normal(&X[i, 0], d, n_rows, &p[k, 0], &h[k, i], &f[k, i], &out[k, 0], k == 0)


def normal_csr(const floating[::1] data not None, const int32_t[::1] indices not None, const int64_t[::1] indptr not None,
               const double[:, ::1] p not None, const double[:, :] h not None, double[:, :] f not None,
               double[:, ::1] out not None):
    """`normal` of CSR rows."""
    cdef ptrdiff_t i, k
    cdef int64_t j, end
    cdef double v, a, b
    cdef const double *p_k
    cdef double *out_k
    if p.shape[1] == 0:
        return
    with nogil:
        for i in range(indptr.shape[0] - 1):
            end = indptr[i + 1]
            for k in range(p.shape[0]):
                a, b, p_k, out_k = 0, 0, &p[k, 0], &out[k, 0]
                for j in range(indptr[i], end - 1, 2):
                    a += data[j] * p_k[indices[j]]
                    b += data[j + 1] * p_k[indices[j + 1]]
                if (end - indptr[i]) % 2:
                    a += data[end - 1] * p_k[indices[end - 1]]
                f[k, i] += a + b
                v = h[k, i] * f[k, i]
                for j in range(indptr[i], end):
                    out_k[indices[j]] += v * data[j]
