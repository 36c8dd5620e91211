"""Random projections that need no matrix product: the sparse-sign one, and the fast Hadamard transform.

The sparse-sign matrix S (n_inputs, n_projections) has few non-zero entries a row, S[j, columns[j, l]] = signs[j, l] = +-1.
Sums are float64 in the order of the inputs, for dense rows and CSR alike.
"""
from cython cimport floating
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int8_t, int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef extern from "projection.h" nogil:
    enum: LANES, INPUTS
    enum: BUFFER "LANES * INPUTS"
    void scatter(const double *, ptrdiff_t, const int32_t *, const int8_t *, ptrdiff_t, double *)
    void hadamard_float(float *, ptrdiff_t)
    void hadamard_double(double *, ptrdiff_t)


def sparse_sign(const floating[:, :] X not None, const int32_t[:, ::1] columns not None, const int8_t[:, ::1] signs not None,
                double scale, floating[:, ::1] out not None):
    """out = scale X S; X of any strides. Scratch: 8 * n_projections numbers."""
    cdef ptrdiff_t tile, chunk, i, j, k, r, n_rows, d = X.shape[1], m = out.shape[1]
    cdef double[BUFFER] x
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


cdef inline void side_by_side(const floating *X, const Py_ssize_t *strides, ptrdiff_t n_rows, ptrdiff_t d,
                              double *x) noexcept nogil:
    """x[j, i] = X[i, j] for n_rows rows of LANES, strides in bytes."""
    cdef ptrdiff_t i, j
    cdef const char *row
    for i in range(n_rows):
        row = <const char *>X + i * strides[0]
        for j in range(d):
            x[LANES * j + i] = (<const floating *>(row + j * strides[1]))[0]


def sparse_sign_csr(const floating[::1] data not None, const int32_t[::1] indices not None,
                    const int64_t[::1] indptr not None, const int32_t[:, ::1] columns not None,
                    const int8_t[:, ::1] signs not None, double scale, floating[:, ::1] out not None):
    """out = scale X S for the CSR rows X. Scratch: n_projections numbers."""
    cdef ptrdiff_t i, k, m = out.shape[1]
    cdef int64_t j
    cdef double x
    cdef double *sums = <double *>malloc((m + 1) * sizeof(double))
    if sums == NULL:
        raise MemoryError
    with nogil:
        for i in range(indptr.shape[0] - 1):
            memset(sums, 0, m * sizeof(double))
            for j in range(indptr[i], indptr[i + 1]):
                x = data[j]
                for k in range(columns.shape[1]):
                    sums[columns[indices[j], k]] += signs[indices[j], k] * x
            for k in range(m):
                out[i, k] = <floating>(scale * sums[k])
        free(sums)


def hadamard(floating[:, ::1] rows not None):
    """rows = rows H in place, H the matrix of +-1, not normalised; the length of a row is a power of two."""
    cdef ptrdiff_t i
    with nogil:
        for i in range(rows.shape[0]):
            if floating is float:
                hadamard_float(&rows[i, 0], rows.shape[1])
            else:
                hadamard_double(&rows[i, 0], rows.shape[1])
