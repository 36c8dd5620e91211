"""Soft-thresholding coordinate descent on a quadratic with an l1 penalty.

    minimise over w   (1/2) (w - w0)' H (w - w0) + g' (w - w0) + alpha |w|_1

kept as its gradient v = g + H (w - w0), so that a coordinate costs one number and a change of it one row of H.
"""
from libc.math cimport fabs
from libc.stddef cimport ptrdiff_t


cdef inline double soft_threshold(double z, double alpha) noexcept nogil:
    if z > alpha:
        return z - alpha
    if z < -alpha:
        return z + alpha
    return 0.0


cdef inline double violation(double w, double v, double alpha) noexcept nogil:
    """Distance of 0 to the subdifferential at one coordinate."""
    if w > 0:
        return fabs(v + alpha)
    if w < 0:
        return fabs(v - alpha)
    return max(fabs(v) - alpha, 0.0)


cdef bint epoch(const double[:, ::1] H, double[::1] w, double[::1] v, double alpha, bint nonzeros) noexcept nogil:
    """One pass over all coordinates, or over the nonzeros; returns whether the support changed."""
    cdef ptrdiff_t i, j, p = w.shape[0]
    cdef double new, change
    cdef bint moved = False
    for j in range(p):
        if H[j, j] <= 0.0 or (nonzeros and w[j] == 0.0):
            continue
        new = soft_threshold(w[j] * H[j, j] - v[j], alpha) / H[j, j]
        change = new - w[j]
        if change == 0.0:
            continue
        moved |= (new == 0.0) != (w[j] == 0.0)
        w[j] = new
        for i in range(p):  # v += H[:, j] * change, by symmetry a row
            v[i] += H[j, i] * change
    return moved


cdef double worst_of(const double[::1] w, const double[::1] v, double alpha) noexcept nogil:
    cdef ptrdiff_t j
    cdef double worst = 0.0
    for j in range(w.shape[0]):
        worst = max(worst, violation(w[j], v[j], alpha))
    return worst


def largest_violation(const double[::1] w not None, const double[::1] v not None, double alpha):
    """max_j of the distance of 0 to the subdifferential."""
    cdef double worst
    with nogil:
        worst = worst_of(w, v, alpha)
    return worst


def descend(const double[:, ::1] H not None, double[::1] w not None, double[::1] v not None, double alpha, int n_epochs,
            double tol=0.0):
    """Epochs over all coordinates until the support stands still, then over its nonzeros; w and v change in place.

    Ends before n_epochs where the largest violation is at most tol; returns it.
    """
    cdef int _
    cdef bint nonzeros = False
    cdef double worst
    with nogil:
        worst = worst_of(w, v, alpha)
        for _ in range(n_epochs):
            if worst <= tol:
                break
            nonzeros = not epoch(H, w, v, alpha, nonzeros) and not nonzeros
            worst = worst_of(w, v, alpha)
    return worst
