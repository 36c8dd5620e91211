"""Second moments of CSR rows: the sum over rows of v_i x_i x_i', one triangle of it."""
from cython cimport floating
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t


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
