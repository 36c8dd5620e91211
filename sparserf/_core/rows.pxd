"""A slice of the rows, and the kernels of tile.c; only the module `rows` is linked with them."""
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t

cdef extern from "tile.h" nogil:
    enum: TILE_ROWS, TILE_COLUMNS
    enum: BUFFER "TILE_ROWS * TILE_COLUMNS + 8"
    ctypedef struct tile_rows:
        const void *x
        const void *data
        const int32_t *indices
        const int64_t *indptr
        ptrdiff_t n_rows
        ptrdiff_t n_inputs
    ctypedef struct tile_features:
        const void *weights
        const int32_t *inputs
        const void *centers
        const void *offset
        ptrdiff_t order
        double scale
        int activation
    ctypedef struct tile_kernels:
        void (*make)(const tile_rows *, const tile_features *, ptrdiff_t, int, ptrdiff_t,
                     void *) noexcept nogil
        void (*make_pair)(const tile_rows *, const tile_features *, ptrdiff_t, int, ptrdiff_t,
                          void *, void *) noexcept nogil
        void (*correlate)(const void *, int, ptrdiff_t, const double *, ptrdiff_t, double *,
                          ptrdiff_t, bint) noexcept nogil
        void (*apply)(const void *, int, const double *, double *) noexcept nogil
        void (*correlate_rows)(const tile_rows *, int, const double *, ptrdiff_t, double *,
                               int) noexcept nogil
        void (*apply_rows)(const tile_rows *, int, const double *, double *,
                           ptrdiff_t) noexcept nogil
        void (*normal)(const tile_rows *, int, const double *, const double *, ptrdiff_t, double *,
                       ptrdiff_t, double *) noexcept nogil
    int tile_best_level()
    const tile_kernels *tile_select(int, int, int)


cdef class RowSlice:
    cdef tile_rows rows
    cdef const tile_kernels *kernels
    cdef bint single
    cdef object _arrays

    cdef bint has_numbers(self) except -1
    cdef const void *values(self, bint single) except? NULL
