"""Checks of users' arrays, in one pass: are numbers finite, are CSR rows whole and in order."""
from cython cimport floating
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t


def are_finite(X not None, bint may_miss=False):
    """Return whether all float32 or float64 numbers are finite, or, where may_miss, finite or NaN.

    X has any strides; with more than two axes it may be copied.
    """
    X = X if X.ndim == 2 else X.reshape(1, -1)
    if X.itemsize == sizeof(float):
        return none_infinite[float](X, may_miss)
    return none_infinite[double](X, may_miss)


cdef bint none_infinite(const floating[:, :] X, bint may_miss) noexcept:
    """Return whether `are_finite` holds for a matrix.

    Lines are read along the axis whose numbers are nearer to each other.
    """
    cdef ptrdiff_t i, inner = X.strides[1] <= X.strides[0]
    cdef ptrdiff_t n = X.shape[inner], n_lines = X.shape[1 - inner]
    cdef ptrdiff_t step = X.strides[inner], line = X.strides[1 - inner]
    cdef const char *x
    cdef bint good = True
    if n == 0 or n_lines == 0:
        return True
    x = <const char *>&X[0, 0]
    with nogil:
        if line == n * step:
            n, n_lines = n * n_lines, 1
        for i in range(n_lines):
            if step == sizeof(floating):
                good &= is_line_good(
                    <const floating *>(x + i * line), n, sizeof(floating), may_miss)
            else:
                good &= is_line_good(<const floating *>(x + i * line), n, step, may_miss)
    return good


cdef inline bint is_line_good(const floating *x, ptrdiff_t n, ptrdiff_t step,
                              bint may_miss) noexcept nogil:
    """Return whether `are_finite` holds for a line.

    A sum of 0 x is NaN only where some x is not finite; then the numbers are read one by one.
    """
    cdef floating number, zero = 0  # a literal would be double
    cdef floating[8] zeros = [0, 0, 0, 0, 0, 0, 0, 0]
    cdef ptrdiff_t j, k
    for j in range(0, n - 7, 8):
        for k in range(8):
            zeros[k] += at(x, (j + k) * step)[0] * zero
    for j in range(n - n % 8, n):
        zeros[0] += at(x, j * step)[0] * zero
    for k in range(1, 8):
        zeros[0] += zeros[k]
    if zeros[0] == 0 or not may_miss:
        return zeros[0] == 0
    for j in range(n):
        number = at(x, j * step)[0]
        if number == number and number * zero != 0:
            return False
    return True


cdef inline const floating *at(const floating *x, ptrdiff_t offset) noexcept nogil:
    """Return the address of x plus a number of bytes."""
    return <const floating *>(<const char *>x + offset)


def is_canonical(const int32_t[::1] indptr not None, const int32_t[::1] indices not None,
                 ptrdiff_t n_rows, ptrdiff_t n_columns):
    """Return whether indptr divides all indices among n_rows rows.

    The indices of each row must ascend in [0, n_columns), without repeats.
    """
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
