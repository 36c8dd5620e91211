"""The kernels of box.c; only the module `boxes` is linked with them."""
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "box.h" nogil:
    enum: BOX_WORD, BOX_MISSING, BOX_SLOTS, BOX_BLOCK
    enum: BOX_PANEL, BOX_LEFT, BOX_RIGHT
    enum: BLOCK_WORDS "BOX_BLOCK / BOX_WORD"
    ctypedef struct bin_test:
        int32_t column
        uint8_t start, length
    ctypedef struct number_test:
        int32_t column
        int8_t above, may_miss
        double bound
    ctypedef struct box_split:
        double gain, left_curvature
        int32_t column, bin, missing_left
    ctypedef struct box_column:
        const uint8_t *codes
        int64_t first
        int32_t last, exceeds
    ctypedef struct box_kernels:
        void (*inside_bins)(const uint8_t *, ptrdiff_t, ptrdiff_t, const bin_test *, int,
                            uint64_t *) noexcept nogil
        uint64_t (*inside_numbers)(const double *, const number_test *, int) noexcept nogil
        void (*draw)(uint64_t, uint64_t, uint64_t, ptrdiff_t, uint64_t *) noexcept nogil
        void (*in_use)(const int64_t *, ptrdiff_t, uint64_t *) noexcept nogil
        double (*sum)(const uint64_t *, ptrdiff_t, const double *) noexcept nogil
        void (*apply)(const uint64_t *, ptrdiff_t, ptrdiff_t, const double *, ptrdiff_t,
                      double *) noexcept nogil
        void (*spread_single)(const uint64_t *, ptrdiff_t, const double *, float *) noexcept nogil
        void (*spread_double)(const uint64_t *, ptrdiff_t, const double *, double *) noexcept nogil
        void (*bin)(const double *, const double *, int, uint8_t *) noexcept nogil
        ptrdiff_t (*list)(const uint64_t *, ptrdiff_t, const int64_t *, uint32_t *,
                          int64_t *) noexcept nogil
        void (*histograms)(const box_column *, ptrdiff_t, const uint32_t *, const int64_t *,
                           ptrdiff_t, int64_t *) noexcept nogil
        void (*best_split)(const int64_t *, int, const double *, const double *, double, double,
                           int32_t, box_split *) noexcept nogil
        void (*add_single)(const float *, ptrdiff_t, double, double *) noexcept nogil
        void (*add_double)(const double *, ptrdiff_t, double, double *) noexcept nogil
    uint32_t box_hash(uint64_t, uint32_t)
    void box_numbers(int64_t, const double *, double *)
    box_column box_column_of(const uint8_t *, ptrdiff_t, int64_t, int64_t)
    const box_kernels *box_select(int)
    ctypedef void (*box_common_kernel)(const uint64_t *, const uint64_t *, ptrdiff_t, ptrdiff_t,
                                       int64_t *) noexcept nogil
    box_common_kernel box_common(int)


cdef const box_kernels *kernels_of(int level) noexcept nogil
