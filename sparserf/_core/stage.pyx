"""What a column stage shows of rows."""
from cython cimport floating
from libc.math cimport fabs
from libc.stddef cimport ptrdiff_t


def show(const floating[:, :] X not None, const double[::1] power not None, const double[::1] center not None,
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
