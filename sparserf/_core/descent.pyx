"""Soft-thresholding coordinate descent on a quadratic with an l1 penalty.

    minimise over w   (1/2) (w - w0)' H (w - w0) + g' (w - w0) + alpha |w|_1,
    w_j >= 0 where a mask says so

The gradient v = g + H (w - w0) is kept up to date: looking at a coordinate reads one number,
changing it one row of H, which is float32 or float64.
"""
from cython cimport floating
from libc.math cimport fabs
from libc.stddef cimport ptrdiff_t

from sparserf._core.boxes cimport box_kernels, kernels_of


cdef inline double soft_threshold(double z, double alpha) noexcept nogil:
    if z > alpha:
        return z - alpha
    if z < -alpha:
        return z + alpha
    return 0.0


cdef inline double violation(double w, double v, double alpha, bint is_nonnegative) noexcept nogil:
    """Return the distance of 0 to the subdifferential at one coordinate."""
    if w > 0:
        return fabs(v + alpha)
    if w < 0:
        return fabs(v - alpha)
    if is_nonnegative and v > 0:
        return 0.0
    return max(fabs(v) - alpha, 0.0)


cdef bint epoch(const floating[:, ::1] H, double[::1] w, double[::1] v, double alpha,
                const unsigned char[::1] nonnegative, bint nonzeros,
                const box_kernels *kernels) noexcept nogil:
    """Pass once over all coordinates, or over the nonzeros; return whether the support changed."""
    cdef ptrdiff_t j, p = w.shape[0]
    cdef double new, change
    cdef const floating *row
    cdef bint moved = False
    for j in range(p):
        if w[j] == 0.0 and (nonzeros or fabs(v[j]) <= alpha):
            continue
        row = &H[j, 0]
        if row[j] <= 0.0:
            continue
        new = soft_threshold(w[j] * row[j] - v[j], alpha) / row[j]
        if nonnegative is not None and nonnegative[j] and new < 0:
            new = 0.0
        change = new - w[j]
        if change == 0.0:
            continue
        moved |= (new == 0.0) != (w[j] == 0.0)
        w[j] = new
        if floating is float:  # v += H[:, j] * change, which is a row by symmetry
            kernels.add_single(row, p, change, &v[0])
        else:
            kernels.add_double(row, p, change, &v[0])
    return moved


cdef double worst_of(const double[::1] w, const double[::1] v, double alpha,
                     const unsigned char[::1] nonnegative) noexcept nogil:
    cdef ptrdiff_t j
    cdef double worst = 0.0
    for j in range(w.shape[0]):
        worst = max(worst, violation(w[j], v[j], alpha, nonnegative is not None and nonnegative[j]))
    return worst


def largest_violation(const double[::1] w not None, const double[::1] v not None, double alpha,
                      nonnegative=None):
    """Return the largest distance of 0 to the subdifferential over the coordinates.

    nonnegative: a mask of the coordinates that must be at least 0, as they are in w, or None
    """
    cdef const unsigned char[::1] mask = as_bytes(nonnegative, w.shape[0])
    cdef double worst
    with nogil:
        worst = worst_of(w, v, alpha, mask)
    return worst


def as_bytes(nonnegative, n):
    """Return a mask of n coordinates as the kernels read it."""
    if nonnegative is None:
        return None
    if nonnegative.dtype != bool or nonnegative.shape != (n,):
        raise ValueError(f"nonnegative must be a mask of {n} coordinates")
    return nonnegative.view("uint8")


def descend(const floating[:, ::1] H not None, double[::1] w not None, double[::1] v not None,
            double alpha, int n_epochs, double tol=0.0, nonnegative=None, int level=-1):
    """Change w and v in place by passes over the coordinates.

    Pass over all until the support does not change, then over the nonzeros, and so on. Stop
    after n_epochs passes, or where the largest violation is at most tol; return that violation.

    nonnegative: a mask of the coordinates that must be at least 0, as they are in w, or None
    level : the instruction set, a position in rows.LEVELS; any other is the default
    """
    cdef const unsigned char[::1] mask = as_bytes(nonnegative, w.shape[0])
    cdef const box_kernels *kernels = kernels_of(level)
    cdef int _
    cdef bint nonzeros = False
    cdef double worst
    with nogil:
        worst = worst_of(w, v, alpha, mask)
        for _ in range(n_epochs):
            if worst <= tol:
                break
            nonzeros = not epoch(H, w, v, alpha, mask, nonzeros, kernels) and not nonzeros
            worst = worst_of(w, v, alpha, mask)
    return worst
