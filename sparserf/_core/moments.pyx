"""Inputs of features, and the parts of second moments that BLAS does not compute.

The inputs are the encodings of a column encoder and the factors of monomials under a Gaussian
envelope.
"""
from cython cimport floating
from libc.math cimport cos, exp, fabs, sqrt
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t


KINDS = ("number", "level", "missing", "year", "week", "day")
cdef enum:
    NUMBER, LEVEL, MISSING, YEAR, WEEK, DAY
# By how much the angle of "year", "week" and "day" turns in a day; a year has the mean length of
# the Gregorian calendar.
TURNS = (6.283185307179586 / 365.2425, 6.283185307179586 / 7, 6.283185307179586)
cdef double[3] TURN = TURNS


cdef class Views:
    """The encodings that a `ColumnEncoder` makes of columns, computed in double precision.

    A view, in names here, is an encoding.

    column, kind : the column from which each encoding is computed, and how: a position in KINDS
    first_knot : the position of the first knot of each encoding, and the number of knots
    level : the level of each encoding of kind LEVEL, and where an angle is 0
    arithmetic : (5, n_views), power, center, factor, reach, and the value of a missing number
    knots : (2, n_knots), the knots, ascending, and their scores
    """

    cdef const int32_t[::1] column, kind, first_knot
    cdef const double[::1] level
    cdef const double[:, ::1] arithmetic, knots

    def __cinit__(self, const int32_t[::1] column not None, const int32_t[::1] kind not None,
                  const int32_t[::1] first_knot not None, const double[::1] level not None,
                  const double[:, ::1] arithmetic not None, const double[:, ::1] knots not None):
        self.column, self.kind, self.first_knot, self.level = column, kind, first_knot, level
        self.arithmetic, self.knots = arithmetic, knots

    def show(self, X not None, out not None):
        """Write encoding v of row i to out[i, v].

        X has any strides, out is C-contiguous; both are float32 or float64.
        """
        if X.itemsize == sizeof(float):
            show_rows[float](self, X, out)
        else:
            show_rows[double](self, X, out)

    cdef inline double seen(self, ptrdiff_t v, double x) noexcept nogil:
        """Return encoding v of the number x in its column."""
        cdef double value, size, reach = self.arithmetic[3, v]
        cdef int32_t kind = self.kind[v]
        if kind == MISSING:
            value = x != x
        elif kind == LEVEL:
            value = self.level[v] <= x < self.level[v] + 1
        elif x != x:
            return self.arithmetic[4, v]
        elif kind >= YEAR:
            value = cos(TURN[kind - YEAR] * (x - self.level[v]))
        else:
            value = self.between_knots(v, x) if self.first_knot[v] < self.first_knot[v + 1] else x
        value = (self.arithmetic[0, v] * value - self.arithmetic[1, v]) * self.arithmetic[2, v]
        size = fabs(value)
        if size > reach:
            size = reach * (2 - reach / size)
            value = size if value > 0 else -size
        return value

    cdef inline double between_knots(self, ptrdiff_t v, double x) noexcept nogil:
        """Return the score at x: linear between two knots, constant beyond the ends."""
        cdef ptrdiff_t low = self.first_knot[v], high = self.first_knot[v + 1] - 1, middle
        cdef double share
        if x <= self.knots[0, low]:
            return self.knots[1, low]
        if x >= self.knots[0, high]:
            return self.knots[1, high]
        while high - low > 1:
            middle = (low + high) // 2
            if self.knots[0, middle] <= x:
                low = middle
            else:
                high = middle
        if self.knots[1, low] == self.knots[0, low] and self.knots[1, high] == self.knots[0, high]:
            return x
        share = (x - self.knots[0, low]) / (self.knots[0, high] - self.knots[0, low])
        return self.knots[1, low] + share * (self.knots[1, high] - self.knots[1, low])


cdef int show_rows(Views self, const floating[:, :] X, floating[:, ::1] out) except -1:
    cdef ptrdiff_t i, v
    with nogil:
        for i in range(X.shape[0]):
            for v in range(self.column.shape[0]):
                out[i, v] = <floating>self.seen(v, X[i, self.column[v]])
    return 0


cdef inline double weighted_square(const floating *x, ptrdiff_t d, double gamma) noexcept nogil:
    """Return gamma |x|^2 as a sum of x gamma x: x^2 may overflow where gamma x^2 does not."""
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


def enveloped(const floating[:, ::1] X not None, double gamma, ptrdiff_t order,
              floating[:, ::1] out not None):
    """Write e (1, sqrt(2 gamma) x_i), e = exp(-gamma |x_i|^2 / order), to out[i].

    out (n_rows, 1 + n_inputs).
    """
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


def by_sign(const floating[:, ::1] U not None, const double[:] v not None, double size,
            floating[:, ::1] out not None):
    """Write the rows of U times sqrt(|v_i| / size) to out, in two parts.

    First comes A, the rows with v_i > 0, then B, the rows with v_i < 0: U' diag(v / size) U =
    A'A - B'B. Return where B begins and ends.
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


def entry_extremes(const floating[::1] data not None, const int32_t[::1] indices not None,
                   double[:, ::1] out not None, int64_t[::1] count not None):
    """Lower out[0, j] and raise out[1, j] to the entries of column j of CSR rows.

    Add the number of these entries to count[j].
    """
    cdef ptrdiff_t i, j
    cdef double x
    with nogil:
        for i in range(data.shape[0]):
            j, x = indices[i], data[i]
            count[j] += 1
            if x < out[0, j]:
                out[0, j] = x
            if x > out[1, j]:
                out[1, j] = x


def second_moments(const floating[::1] data not None, const int32_t[::1] indices not None,
                   const int64_t[::1] indptr not None, const double[::1] v not None,
                   double[:, ::1] out not None):
    """Add sum_i v[i] x_ia x_ib to out[a, b] for a <= b. O(sum_i nnz_i^2).

    The rows are CSR, with ascending indices.
    """
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
