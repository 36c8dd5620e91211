"""A slice of the rows as the kernels read it; and its products X'v, X p and X' diag(h) X p.

Rows are dense or CSR. v, h and f are (n_outputs, n_rows) with the last axis contiguous; p and out
are (n_outputs, n_inputs). Sums are float64, whatever the type of the rows. X is read once in each
call.
"""
import os

from cython cimport floating
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t

# The instruction sets that this processor has, and the position of the one that all kernels use:
# the best, or SPARSERF_LEVEL.
LEVELS = ("baseline", "x86-64-v3", "x86-64-v4")[:tile_best_level() + 1]
LEVEL = len(LEVELS) - 1
if os.environ.get("SPARSERF_LEVEL"):
    if os.environ["SPARSERF_LEVEL"] not in LEVELS:
        raise ValueError(f"SPARSERF_LEVEL must be one of {LEVELS} on this processor, "
                         f"got {os.environ['SPARSERF_LEVEL']!r}")
    LEVEL = LEVELS.index(os.environ["SPARSERF_LEVEL"])
cdef int default_level = LEVEL


cdef class RowSlice:
    """X (n_rows, n_inputs), C-contiguous float32 or float64; or the data of CSR rows.

    indices, indptr : of CSR rows, int32 and int64
    level : the position in LEVELS of the instruction set that kernels use for these rows; any other
        number is the default
    """

    def __cinit__(self, X not None, indices=None, indptr=None, int level=-1):
        if (indices is None) != (indptr is None):
            raise TypeError("CSR rows need indices and indptr")
        self._arrays = X, indices, indptr
        self.single = X.itemsize == sizeof(float)
        self.kernels = tile_select(self.single, level, default_level)
        if indices is None and self.single:
            read_dense[float](self, X)
        elif indices is None:
            read_dense[double](self, X)
        elif self.single:
            read_csr[float](self, X, indices, indptr)
        else:
            read_csr[double](self, X, indices, indptr)

    def correlate(self, const double[:, :] v not None, double[:, ::1] out not None,
                  bint squared=False):
        """Add sum_i v[k, i] x_i, or the sum of the squares x_i^2, to out[k]; of dense rows."""
        if self.has_numbers() and v.shape[0] > 0:
            with nogil:
                self.kernels.correlate_rows(
                    &self.rows, <int>v.shape[0], &v[0, 0], step(v), &out[0, 0], squared)

    def apply(self, const double[:, ::1] p not None, double[:, :] f not None):
        """Add x_i'p_k to f[k, i]; of dense rows."""
        if self.has_numbers() and p.shape[0] > 0:
            with nogil:
                self.kernels.apply_rows(&self.rows, <int>p.shape[0], &p[0, 0], &f[0, 0], step(f))

    def normal(self, const double[:, ::1] p not None, const double[:, :] h not None,
               double[:, :] f not None, double[:, ::1] out not None):
        """Add x_i'p_k to f[k, i], and then sum_i h[k, i] f[k, i] x_i to out[k]."""
        if self.rows.n_rows == 0 or p.shape[0] == 0 or p.shape[1] == 0:
            return
        with nogil:
            if self.rows.x != NULL:
                self.kernels.normal(&self.rows, <int>p.shape[0], &p[0, 0], &h[0, 0], step(h),
                                    &f[0, 0], step(f), &out[0, 0])
            elif self.single:
                normal_csr(self, <const float *>self.rows.data, p, h, f, out)
            else:
                normal_csr(self, <const double *>self.rows.data, p, h, f, out)

    cdef bint has_numbers(self) except -1:
        if self.rows.x == NULL:
            raise TypeError("rows must be dense, got CSR")
        return self.rows.n_rows > 0 and self.rows.n_inputs > 0

    cdef const void *values(self, bint single) except? NULL:
        """Return the values of CSR rows, which must have that type."""
        if self.rows.x != NULL or self.single != single:
            raise TypeError("rows must be CSR, in the type of what is made of them")
        return self.rows.data


cdef void read_dense(RowSlice self, const floating[:, ::1] X) noexcept:
    self.rows.n_rows, self.rows.n_inputs = X.shape[0], X.shape[1]
    # Without any numbers, any address says that the rows are dense; it is never read.
    self.rows.x = (<const void *>&X[0, 0] if X.shape[0] > 0 and X.shape[1] > 0
                   else <const void *>self)


cdef void read_csr(RowSlice self, const floating[::1] data, const int32_t[::1] indices,
                   const int64_t[::1] indptr) noexcept:
    self.rows.n_rows, self.rows.indptr = indptr.shape[0] - 1, &indptr[0]
    if data.shape[0] > 0:
        self.rows.data, self.rows.indices = &data[0], &indices[0]


cdef inline ptrdiff_t step(const double[:, :] v) noexcept nogil:
    """Return the stride between the outputs of v, in numbers."""
    return v.strides[0] // <ptrdiff_t>sizeof(double)


cdef void normal_csr(RowSlice X, const floating *data, const double[:, ::1] p,
                     const double[:, :] h, double[:, :] f,
                     double[:, ::1] out) noexcept nogil:
    cdef ptrdiff_t i, k
    cdef int64_t j, start, end
    cdef double v, a, b
    cdef const int32_t *indices = X.rows.indices
    cdef const double *p_k
    cdef double *out_k
    for i in range(X.rows.n_rows):
        start, end = X.rows.indptr[i], X.rows.indptr[i + 1]
        for k in range(p.shape[0]):
            a, b, p_k, out_k = 0, 0, &p[k, 0], &out[k, 0]
            for j in range(start, end - 1, 2):
                a += data[j] * p_k[indices[j]]
                b += data[j + 1] * p_k[indices[j + 1]]
            if (end - start) % 2:
                a += data[end - 1] * p_k[indices[end - 1]]
            f[k, i] += a + b
            v = h[k, i] * f[k, i]
            for j in range(start, end):
                out_k[indices[j]] += v * data[j]
