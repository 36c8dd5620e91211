"""Whether CSR rows are whole and in order, in one pass over their structure."""
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t


def is_canonical(const int32_t[::1] indptr not None, const int32_t[::1] indices not None, ptrdiff_t n_rows, ptrdiff_t n_columns):
    """Whether indptr divides all indices among n_rows, and those of each row ascend, without repeats, in [0, n_columns)."""
    cdef ptrdiff_t i, j, n = indices.shape[0]
    cdef int32_t last
    cdef bint good = indptr.shape[0] == n_rows + 1
    if not good or indptr[0] != 0 or indptr[n_rows] != n:
        return False
    with nogil:
        for i in range(n_rows):
            if indptr[i] > indptr[i + 1] or indptr[i + 1] > n:
                good = False
                break
            last = -1
            for j in range(indptr[i], indptr[i + 1]):
                good &= indices[j] > last
                last = indices[j]
            good &= last < n_columns
    return good
