"""X'v, X p, and X' diag(h) X p, the product of the normal equations, of rows themselves: X is read once.

Vectors over rows, v, h and f, are (n_outputs, n_rows) with the last axis contiguous; p and out are (n_outputs, n_inputs).
"""
from cython cimport floating
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t

from sparserf._core.features cimport kernels_of, tile_rows


cdef inline tile_rows rows_of(const floating[:, ::1] X) noexcept:
    return tile_rows(&X[0, 0], NULL, NULL, NULL, X.shape[1])


cdef inline ptrdiff_t step(const double[:, :] v) noexcept nogil:
    """How far apart the outputs are, in numbers."""
    return v.strides[0] // <ptrdiff_t>sizeof(double)


def correlate(const floating[:, ::1] X not None, const double[:, :] v not None, double[:, ::1] out not None, bint squared=False,
              int level=-1):
    """out[k] += sum_i v[k, i] x_i, or of the squares."""
    cdef tile_rows rows
    if X.shape[0] * X.shape[1] * v.shape[0] == 0:
        return
    rows = rows_of(X)
    with nogil:
        kernels_of(floating is float, level).correlate_rows(&rows, X.shape[0], <int>v.shape[0], &v[0, 0], step(v), &out[0, 0],
                                                            squared)


def apply(const floating[:, ::1] X not None, const double[:, ::1] p not None, double[:, :] f not None, int level=-1):
    """f[k, i] += x_i'p_k."""
    cdef tile_rows rows
    if X.shape[0] * X.shape[1] * p.shape[0] == 0:
        return
    rows = rows_of(X)
    with nogil:
        kernels_of(floating is float, level).apply_rows(&rows, X.shape[0], <int>p.shape[0], &p[0, 0], &f[0, 0], step(f))


def normal(const floating[:, ::1] X not None, const double[:, ::1] p not None, const double[:, :] h not None,
           double[:, :] f not None, double[:, ::1] out not None, int level=-1):
    """f[k, i] += x_i'p_k, then out[k] += sum_i h[k, i] f[k, i] x_i."""
    cdef tile_rows rows
    if X.shape[0] * X.shape[1] * p.shape[0] == 0:
        return
    rows = rows_of(X)
    with nogil:
        kernels_of(floating is float, level).normal(&rows, X.shape[0], <int>p.shape[0], &p[0, 0], &h[0, 0], step(h), &f[0, 0],
                                                    step(f), &out[0, 0])


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
