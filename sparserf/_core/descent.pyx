"""Soft-thresholding coordinate descent on a quadratic with an l1 penalty.

    minimise over w   (1/2) (w - w0)' H (w - w0) + g' (w - w0) + alpha |w|_1

The gradient v = g + H (w - w0) is kept up to date: to look at a coordinate costs one number, to change it one row of H.
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
    """Return the distance of 0 to the subdifferential at one coordinate."""
    if w > 0:
        return fabs(v + alpha)
    if w < 0:
        return fabs(v - alpha)
    return max(fabs(v) - alpha, 0.0)


cdef bint epoch(const double[:, ::1] H, double[::1] w, double[::1] v, double alpha, bint nonzeros) noexcept nogil:
    """Pass once over all coordinates, or over the nonzeros; return whether the support changed."""
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
        for i in range(p):  # v += H[:, j] * change, which is a row by symmetry
            v[i] += H[j, i] * change
    return moved


cdef double worst_of(const double[::1] w, const double[::1] v, double alpha) noexcept nogil:
    cdef ptrdiff_t j
    cdef double worst = 0.0
    for j in range(w.shape[0]):
        worst = max(worst, violation(w[j], v[j], alpha))
    return worst


def largest_violation(const double[::1] w not None, const double[::1] v not None, double alpha):
    """Return the largest distance of 0 to the subdifferential over the coordinates."""
    cdef double worst
    with nogil:
        worst = worst_of(w, v, alpha)
    return worst


def descend(const double[:, ::1] H not None, double[::1] w not None, double[::1] v not None, double alpha, int n_epochs,
            double tol=0.0):
    """Pass over all coordinates until the support does not change, then over the nonzeros, and so on; change w and v in place.

    Stop after n_epochs passes, or where the largest violation is at most tol; return the largest violation.
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
