"""The inputs of monomials under a Gaussian envelope, and their second moments where the rows are CSR."""
from cython cimport floating
from libc.math cimport exp
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t


cdef inline double square_norm(const floating *x, ptrdiff_t d) noexcept nogil:
    cdef double a = 0, b = 0, c = 0, e = 0
    cdef ptrdiff_t j
    for j in range(0, d - 3, 4):
        a += <double>x[j] * x[j]
        b += <double>x[j + 1] * x[j + 1]
        c += <double>x[j + 2] * x[j + 2]
        e += <double>x[j + 3] * x[j + 3]
    for j in range(d - d % 4, d):
        a += <double>x[j] * x[j]
    return (a + b) + (c + e)


def enveloped(const floating[:, ::1] X not None, double rate, double factor, floating[:, ::1] out not None):
    """out[i] = e (1, factor x_i) with e = exp(-rate |x_i|^2); out (n_rows, 1 + n_inputs)."""
    cdef ptrdiff_t i, j, d = X.shape[1]
    cdef double e, largest = 3e38 if floating is float else 1e308
    cdef floating scale
    cdef const floating *x
    cdef floating *u
    if X.shape[0] == 0:
        return
    with nogil:
        for i in range(X.shape[0]):
            x, u = &X[0, 0] + i * d, &out[i, 0]
            e = exp(-rate * square_norm(x, d))
            scale = <floating>min(e * factor, largest)
            u[0] = <floating>e
            for j in range(d):
                u[j + 1] = x[j] * scale


def second_moments(const floating[::1] data not None, const int32_t[::1] indices not None,
                   const int64_t[::1] indptr not None, const double[::1] v not None, double[:, ::1] out not None):
    """out[a, b] += sum_i v[i] x_ia x_ib for a <= b; the indices of a row ascend. O(sum_i nnz_i^2)."""
    cdef ptrdiff_t i, j, k
    cdef double vx
    cdef double *row
    with nogil:
        for i in range(indptr.shape[0] - 1):
            if v[i] == 0:
                continue
            for j in range(indptr[i], indptr[i + 1]):
                vx = v[i] * data[j]
                row = &out[indices[j], 0]
                for k in range(j, indptr[i + 1]):
                    row[indices[k]] += vx * data[k]
