"""Hard thresholding: the s largest entries of a vector; of equal ones, the lower index wins."""
from libc.math cimport fabs
from libc.stddef cimport ptrdiff_t
from libc.stdlib cimport free, malloc


cdef double kth_largest(double *a, ptrdiff_t n, ptrdiff_t k) noexcept nogil:
    """Return the k-th largest (k >= 1) number of a, which is reordered.

    This is Hoare's quickselect, with a median of three as pivot.
    """
    cdef ptrdiff_t low = 0, high = n - 1, i, j
    cdef double pivot, x, y, z, swap
    while low < high:
        x, y, z = a[low], a[(low + high) // 2], a[high]
        pivot = max(min(x, y), min(max(x, y), z))
        i, j = low, high
        while i <= j:
            while a[i] > pivot:
                i += 1
            while a[j] < pivot:
                j -= 1
            if i <= j:
                swap = a[i]
                a[i] = a[j]
                a[j] = swap
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return a[k - 1]


def hard_threshold(const double[::1] x not None, ptrdiff_t[::1] out not None):
    """Write the indices of the len(out) largest |x_j| > 0, ascending; return how many."""
    cdef ptrdiff_t j, n = x.shape[0], s = out.shape[0], found = 0, ties
    cdef double least = 0.0, value
    cdef double *sizes
    if n == 0 or s == 0:
        return 0
    sizes = <double *>malloc(n * sizeof(double))
    if sizes == NULL:
        raise MemoryError
    with nogil:
        for j in range(n):
            value = fabs(x[j])
            if value > 0:
                sizes[found] = value
                found += 1
        ties = found
        if found > s:
            least = kth_largest(sizes, found, s)
            ties = s
            # sizes[:s] are the largest; entries equal to the least fill what the larger ones leave
            for j in range(s):
                if sizes[j] > least:
                    ties -= 1
            found = s
        free(sizes)
        s = 0
        for j in range(n):
            value = fabs(x[j])
            if value > least or (value > 0 and value == least and ties > 0):
                if value == least:
                    ties -= 1
                out[s] = j
                s += 1
    return s
