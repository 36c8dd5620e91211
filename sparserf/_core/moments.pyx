"""The inputs of features: what a column stage shows of rows, and of monomials under a Gaussian envelope; and what second moments
need beside BLAS."""
from cython cimport floating
from libc.math cimport exp, fabs, sqrt
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t


def shown(const floating[:, :] X not None, const double[::1] power not None, const double[::1] center not None,
          const double[::1] factor not None, const double[::1] reach not None, floating[:, ::1] out not None):
    """out_ij = (power_j x_ij - center_j) factor_j, in double precision; 0 where factor_j is 0.

    What is larger than r = reach_j in size is r (2 - r / size), with its sign.
    """
    cdef ptrdiff_t i, j, d = X.shape[1]
    cdef double value, size
    with nogil:
        for i in range(X.shape[0]):
            for j in range(d):
                value = (power[j] * X[i, j] - center[j]) * factor[j]
                size = fabs(value)
                if size > reach[j]:
                    size = reach[j] * (2 - reach[j] / size)
                    value = size if value > 0 else -size
                out[i, j] = <floating>value


cdef inline double weighted_square(const floating *x, ptrdiff_t d, double gamma) noexcept nogil:
    """gamma |x|^2 as a sum of x gamma x: a square may overflow where its product with gamma does not."""
    cdef double a = 0, b = 0, c = 0, e = 0
    cdef ptrdiff_t j
    for j in range(0, d - 3, 4):
        a += x[j] * gamma * x[j]
        b += x[j + 1] * gamma * x[j + 1]
        c += x[j + 2] * gamma * x[j + 2]
        e += x[j + 3] * gamma * x[j + 3]
    for j in range(d - d % 4, d):
        a += x[j] * gamma * x[j]
    return (a + b) + (c + e)


def enveloped(const floating[:, ::1] X not None, double gamma, ptrdiff_t order, floating[:, ::1] out not None):
    """out[i] = e (1, sqrt(2 gamma) x_i) with e = exp(-gamma |x_i|^2 / order); out (n_rows, 1 + n_inputs)."""
    cdef ptrdiff_t i, j, d = X.shape[1]
    cdef double e, factor = sqrt(2 * gamma)
    cdef const floating *x
    cdef floating *u
    if X.shape[0] == 0 or d == 0:
        return
    with nogil:
        for i in range(X.shape[0]):
            x, u = &X[0, 0] + i * d, &out[i, 0]
            e = exp(-weighted_square(x, d, gamma) / order)
            u[0] = <floating>e
            for j in range(d):
                u[j + 1] = <floating>(x[j] * (e * factor))


def by_sign(const floating[:, ::1] U not None, const double[:] v not None, double size, floating[:, ::1] out not None):
    """The rows of U times sqrt(|v_i| / size): those of v_i > 0 at the front of out, those of v_i < 0 after them.

    Returns where the second begin and end. U' diag(v / size) U is the front's A'A less that of the others.
    """
    cdef ptrdiff_t i, j, d = U.shape[1], n_plus = 0, end, plus = 0
    cdef double root
    cdef const floating *u
    cdef floating *row
    with nogil:
        for i in range(v.shape[0]):
            n_plus += v[i] > 0
        end = n_plus
        for i in range(v.shape[0]):
            if v[i] == 0 or d == 0:
                continue
            root = sqrt(fabs(v[i]) / size)
            if v[i] > 0:
                row = &out[plus, 0]
                plus += 1
            else:
                row = &out[end, 0]
                end += 1
            u = &U[i, 0]
            for j in range(d):
                row[j] = u[j] * <floating>root
    return n_plus, end


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
