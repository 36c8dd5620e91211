"""The three questions over one block of rows, made tile by tile; the feature matrix itself is never stored.

Every function takes the same two groups of arguments:

features: weights (n_panels, n_inputs or order, 32; of products 1), inputs (n_panels, order, 32) int32 or None,
          offset (n_panels, 32), activation (a number of ACTIVATIONS), scale;
rows:     X (n_rows, n_inputs) C-contiguous, None, None, None; or None, data, indices int32, indptr int64 for CSR.

float32 and float64 tiles; sums are always float64. `level` is the place of an instruction set in LEVELS; any other number is
the default.
"""
import os

from cython cimport floating
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.string cimport memcpy, memset

ACTIVATIONS = ("cos", "sin", "tanh", "relu", "sign", "identity", "product")
PANEL = TILE_COLUMNS
# The instruction sets that this processor has, and the number of the one that all kernels use: the best, or SPARSERF_LEVEL.
LEVELS = ("baseline", "x86-64-v3", "x86-64-v4")[:tile_best_level() + 1]
LEVEL = len(LEVELS) - 1
if os.environ.get("SPARSERF_LEVEL"):
    if os.environ["SPARSERF_LEVEL"] not in LEVELS:
        raise ValueError(f"SPARSERF_LEVEL must be one of {LEVELS} on this processor, got {os.environ['SPARSERF_LEVEL']!r}")
    LEVEL = LEVELS.index(os.environ["SPARSERF_LEVEL"])
cdef int default_level = LEVEL


cdef const tile_kernels *kernels_of(bint single, int level) noexcept nogil:
    """The kernels for float (single) or double, of a level that this processor has, else of LEVEL."""
    return tile_select(single, level, default_level)


cdef inline double *aligned(double *p) noexcept nogil:
    """The next address that starts a cache line: a vector that crosses two costs two loads."""
    return <double *>((<uintptr_t>p + 63) & ~<uintptr_t>63)


cdef struct Tiles:
    tile_features features
    tile_rows rows
    const tile_kernels *kernels
    ptrdiff_t n_rows


cdef Tiles tiles_of(const floating[:, :, ::1] weights, const int32_t[:, :, ::1] inputs, const floating[:, ::1] offset,
                    int activation, double scale, const floating[:, ::1] X, const floating[::1] data,
                    const int32_t[::1] indices, const int64_t[::1] indptr, int level) noexcept:
    cdef Tiles t
    memset(&t, 0, sizeof(Tiles))
    t.features.activation, t.features.scale = activation, scale
    t.features.order = weights.shape[1] if inputs is None else inputs.shape[1]
    if weights.shape[0] > 0:
        t.features.offset = &offset[0, 0]
        if weights.shape[1] > 0:
            t.features.weights = &weights[0, 0, 0]
            if inputs is not None:
                t.features.inputs = &inputs[0, 0, 0]
    if X is not None:
        t.n_rows, t.rows.n_inputs = X.shape[0], X.shape[1]
        # A block of no inputs still needs an address, to be told from CSR; it is never read.
        t.rows.x = <const void *>&X[0, 0] if X.shape[0] > 0 and X.shape[1] > 0 else <const void *>&t
    else:
        t.n_rows, t.rows.n_inputs, t.rows.indptr = indptr.shape[0] - 1, weights.shape[1], &indptr[0]
        if data.shape[0] > 0:
            t.rows.data, t.rows.indices = &data[0], &indices[0]
    t.kernels = kernels_of(floating is float, level)
    return t


def correlate(const floating[:, :, ::1] weights not None, const int32_t[:, :, ::1] inputs,
              const floating[:, ::1] offset not None, int activation, double scale,
              const floating[:, ::1] X, const floating[::1] data, const int32_t[::1] indices, const int64_t[::1] indptr,
              const double[:, :] v not None, double[:, :] out not None, bint squared=False, int level=-1,
              double[:, :] sine=None):
    """out[k, j] += sum_i v[k, i] phi_j(x_i), or phi_j(x_i)^2 where squared; last axes contiguous.

    v (n_outputs, n_rows), out (n_outputs, 32 * n_panels). sine, of cosines: += the same a quarter later, cos(t - pi/2) for
    cos(t), over one projection.
    """
    cdef Tiles t = tiles_of(weights, inputs, offset, activation, scale, X, data, indices, indptr, level)
    cdef ptrdiff_t row_tile, row, panel, k
    cdef int n_rows
    cdef bint paired = sine is not None
    cdef double[BUFFER] buffer
    cdef double[BUFFER] another
    cdef double *tile = aligned(&buffer[0])
    cdef double *quarter = aligned(&another[0])
    with nogil:
        for row_tile in range((t.n_rows + TILE_ROWS - 1) // TILE_ROWS):
            row = row_tile * TILE_ROWS
            n_rows = <int>min(<ptrdiff_t>TILE_ROWS, t.n_rows - row)
            for panel in range(weights.shape[0]):
                if paired:
                    t.kernels.make_pair(&t.rows, &t.features, row, n_rows, panel, tile, quarter)
                else:
                    t.kernels.make(&t.rows, &t.features, row, n_rows, panel, tile)
                for k in range(v.shape[0]):
                    if squared:
                        t.kernels.correlate_squares(tile, n_rows, &v[k, row], &out[k, panel * TILE_COLUMNS])
                    else:
                        t.kernels.correlate(tile, n_rows, &v[k, row], &out[k, panel * TILE_COLUMNS])
                    if paired:
                        t.kernels.correlate(quarter, n_rows, &v[k, row], &sine[k, panel * TILE_COLUMNS])


def apply(const floating[:, :, ::1] weights not None, const int32_t[:, :, ::1] inputs,
          const floating[:, ::1] offset not None, int activation, double scale,
          const floating[:, ::1] X, const floating[::1] data, const int32_t[::1] indices, const int64_t[::1] indptr,
          const double[:, :] coef not None, double[:, :] out not None, int level=-1):
    """out[k, i] += sum_j phi_j(x_i) coef[k, j]; coef (n_outputs, 32 * n_panels), out (n_outputs, n_rows); last axes contiguous."""
    cdef Tiles t = tiles_of(weights, inputs, offset, activation, scale, X, data, indices, indptr, level)
    cdef ptrdiff_t row_tile, row, panel, k
    cdef int n_rows
    cdef double[BUFFER] buffer
    cdef double *tile = aligned(&buffer[0])
    with nogil:
        for row_tile in range((t.n_rows + TILE_ROWS - 1) // TILE_ROWS):
            row = row_tile * TILE_ROWS
            n_rows = <int>min(<ptrdiff_t>TILE_ROWS, t.n_rows - row)
            for panel in range(weights.shape[0]):
                t.kernels.make(&t.rows, &t.features, row, n_rows, panel, tile)
                for k in range(coef.shape[0]):
                    t.kernels.apply(tile, n_rows, &coef[k, panel * TILE_COLUMNS], &out[k, row])


def transform(const floating[:, :, ::1] weights not None, const int32_t[:, :, ::1] inputs,
              const floating[:, ::1] offset not None, int activation, double scale,
              const floating[:, ::1] X, const floating[::1] data, const int32_t[::1] indices, const int64_t[::1] indptr,
              floating[:, :] out not None, int level=-1):
    """out[i, j] = phi_j(x_i); out (n_rows, n_features), its last axis contiguous."""
    cdef Tiles t = tiles_of(weights, inputs, offset, activation, scale, X, data, indices, indptr, level)
    cdef ptrdiff_t row_tile, row, panel, i, width
    cdef int n_rows
    cdef double[BUFFER] buffer
    cdef floating *z = <floating *>aligned(&buffer[0])
    with nogil:
        for row_tile in range((t.n_rows + TILE_ROWS - 1) // TILE_ROWS):
            row = row_tile * TILE_ROWS
            n_rows = <int>min(<ptrdiff_t>TILE_ROWS, t.n_rows - row)
            for panel in range(weights.shape[0]):
                t.kernels.make(&t.rows, &t.features, row, n_rows, panel, z)
                width = min(<ptrdiff_t>TILE_COLUMNS, out.shape[1] - panel * TILE_COLUMNS)
                for i in range(n_rows):
                    memcpy(&out[row + i, panel * TILE_COLUMNS], z + i * TILE_COLUMNS, width * sizeof(floating))
