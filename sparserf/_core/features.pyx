"""Sums of features over rows, and rows of features, made tile by tile: Phi itself is never stored.

Phi'v, Phi c and Phi itself, of float32 or float64 tiles (see tile.h); sums are always float64.
"""
from cython cimport floating
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, uintptr_t
from libc.string cimport memcpy, memset

from sparserf._core.rows cimport BUFFER, TILE_COLUMNS, TILE_ROWS, RowSlice, tile_features

ACTIVATIONS = ("cos", "sin", "tanh", "relu", "sign", "identity", "product", "bump")
PANEL = TILE_COLUMNS


cdef inline double *aligned(double *p) noexcept nogil:
    """Return the next start of a cache line: a vector that crosses two lines costs two loads."""
    return <double *>((<uintptr_t>p + 63) & ~<uintptr_t>63)


cdef inline ptrdiff_t n_tiles(RowSlice X) noexcept nogil:
    return (X.rows.n_rows + TILE_ROWS - 1) // TILE_ROWS


cdef inline const double *of_panel(const double[:] coef, ptrdiff_t panel,
                                   double *last) noexcept nogil:
    """Return the coefficients of a panel; the last panel's are copied to `last` and zero-padded."""
    cdef ptrdiff_t start = panel * TILE_COLUMNS, n = coef.shape[0] - start
    if n >= TILE_COLUMNS:
        return &coef[start]
    memset(last, 0, TILE_COLUMNS * sizeof(double))
    if n > 0:
        memcpy(last, &coef[start], n * sizeof(double))
    return last


ctypedef fused number:
    float
    double


cdef void copy_tile(const number *tile, int n_rows, ptrdiff_t panel, ptrdiff_t row,
                    floating[:, :] out) noexcept nogil:
    """Copy a tile to its place in out, feature by feature where numbers of a row are not side by
    side."""
    cdef ptrdiff_t i, j, start = panel * TILE_COLUMNS
    cdef ptrdiff_t width = min(<ptrdiff_t>TILE_COLUMNS, out.shape[1] - start)
    if sizeof(number) == sizeof(floating) and out.strides[1] == sizeof(floating):
        for i in range(n_rows):
            memcpy(&out[row + i, start], tile + i * TILE_COLUMNS, width * sizeof(floating))
        return
    for j in range(width):
        for i in range(n_rows):
            out[row + i, start + j] = <floating>tile[i * TILE_COLUMNS + j]


cdef class Panels:
    """Features of one kind, in panels of PANEL features that are padded with zeros.

    activation : one of ACTIVATIONS
    weights : float32 or float64, as the rows: (n_panels, n_inputs, PANEL); (n_panels, order, PANEL)
        where inputs are given; (n_panels, 1, PANEL) of products
    offset : (n_panels, PANEL), of the same type
    inputs : None, or int32 (n_panels, order, PANEL): the input that each weight multiplies, or the
        factors of a product
    centers : of bumps, of the shape and type of the weights, which are at least 0; else None
    """

    cdef tile_features features
    cdef ptrdiff_t n_panels
    cdef bint single
    cdef object _arrays

    def __cinit__(self, activation, double scale, weights not None, offset not None,
                  const int32_t[:, :, ::1] inputs=None, centers=None):
        self._arrays = weights, offset, inputs, centers
        self.single = weights.itemsize == sizeof(float)
        self.features.activation, self.features.scale = ACTIVATIONS.index(activation), scale
        if self.single:
            read_weights[float](self, weights, offset, centers)
        else:
            read_weights[double](self, weights, offset, centers)
        if inputs is not None:
            self.features.order = inputs.shape[1]
            if inputs.shape[0] > 0 and inputs.shape[1] > 0:
                self.features.inputs = &inputs[0, 0, 0]

    def correlate(self, RowSlice X not None, const double[:, :] v not None,
                  double[:, :] out not None, bint squared=False, double[:, :] sine=None):
        """Add sum_i v[k, i] phi_j(x_i), or of phi_j(x_i)^2 where squared, to out[k, j].

        v (n_outputs, n_rows), out (n_outputs, PANEL * n_panels); last axes are contiguous. Where
        the features are cosines, the sums of the sines of the same phases can be added to `sine`:
        the phases are computed once for both.
        """
        cdef ptrdiff_t i_tile, row, panel, n_outputs = v.shape[0]
        cdef ptrdiff_t v_step = v.strides[0] // <ptrdiff_t>sizeof(double)
        cdef ptrdiff_t out_step = out.strides[0] // <ptrdiff_t>sizeof(double)
        cdef ptrdiff_t sine_step = 0
        cdef int n_rows
        cdef bint paired = sine is not None
        cdef double[BUFFER] buffer
        cdef double[BUFFER] another
        cdef double *tile = aligned(&buffer[0])
        cdef double *quarter = aligned(&another[0])
        self.check(X)
        if n_outputs == 0:
            return
        if paired:
            sine_step = sine.strides[0] // <ptrdiff_t>sizeof(double)
        with nogil:
            for i_tile in range(n_tiles(X)):
                row = TILE_ROWS * i_tile
                n_rows = <int>min(<ptrdiff_t>TILE_ROWS, X.rows.n_rows - row)
                for panel in range(self.n_panels):
                    if paired:
                        X.kernels.make_pair(
                            &X.rows, &self.features, row, n_rows, panel, tile, quarter)
                    else:
                        X.kernels.make(&X.rows, &self.features, row, n_rows, panel, tile)
                    X.kernels.correlate(tile, n_rows, n_outputs, &v[0, row], v_step,
                                        &out[0, panel * TILE_COLUMNS], out_step, squared)
                    if paired:
                        X.kernels.correlate(quarter, n_rows, n_outputs, &v[0, row], v_step,
                                            &sine[0, panel * TILE_COLUMNS], sine_step, False)

    def apply(self, RowSlice X not None, const double[:, :] coef not None,
              double[:, :] out not None):
        """Add sum_j phi_j(x_i) coef[k, j] to out[k, i]; last axes are contiguous.

        coef (n_outputs, n_features), out (n_outputs, n_rows).
        """
        cdef ptrdiff_t i_tile, row, panel, k
        cdef int n_rows
        cdef double[BUFFER] buffer
        cdef double[TILE_COLUMNS] last
        cdef double *tile = aligned(&buffer[0])
        self.check(X)
        with nogil:
            for i_tile in range(n_tiles(X)):
                row = TILE_ROWS * i_tile
                n_rows = <int>min(<ptrdiff_t>TILE_ROWS, X.rows.n_rows - row)
                for panel in range(self.n_panels):
                    X.kernels.make(&X.rows, &self.features, row, n_rows, panel, tile)
                    for k in range(coef.shape[0]):
                        X.kernels.apply(tile, n_rows, of_panel(coef[k], panel, last), &out[k, row])

    def transform(self, RowSlice X not None, floating[:, :] out not None):
        """Write phi_j(x_i) to out[i, j].

        out (n_rows, n_features), float32 or float64, of any strides.
        """
        cdef ptrdiff_t i_tile, row, panel
        cdef int n_rows
        cdef double[BUFFER] buffer
        cdef double *tile = aligned(&buffer[0])
        self.check(X)
        if out.shape[0] != X.rows.n_rows or out.shape[1] <= TILE_COLUMNS * (self.n_panels - 1):
            raise ValueError(f"out must have a line for each of {X.rows.n_rows} rows, and an entry "
                             f"for each feature, got {out.shape[0], out.shape[1]}")
        with nogil:
            for i_tile in range(n_tiles(X)):
                row = TILE_ROWS * i_tile
                n_rows = <int>min(<ptrdiff_t>TILE_ROWS, X.rows.n_rows - row)
                for panel in range(self.n_panels):
                    X.kernels.make(&X.rows, &self.features, row, n_rows, panel, tile)
                    if X.single:
                        copy_tile(<const float *>tile, n_rows, panel, row, out)
                    else:
                        copy_tile(<const double *>tile, n_rows, panel, row, out)

    cdef int check(self, RowSlice X) except -1:
        """Check that weights have the type and width of the rows: no read is past an end."""
        if self.single != X.single:
            raise TypeError("features and rows must be of one type")
        if X.rows.x == NULL and (self.features.inputs != NULL or self.features.centers != NULL):
            raise TypeError("rows must be dense where inputs or centers are given, got CSR")
        if (self.n_panels > 0 and X.rows.x != NULL and self.features.inputs == NULL
                and self.features.order != X.rows.n_inputs):
            raise ValueError(f"rows must have {self.features.order} inputs, got {X.rows.n_inputs}")
        return 0


cdef int read_weights(Panels self, const floating[:, :, ::1] weights, const floating[:, ::1] offset,
                      const floating[:, :, ::1] centers) except -1:
    cdef bint is_bump = ACTIVATIONS[self.features.activation] == "bump"
    if is_bump != (centers is not None):
        raise ValueError("centers must be given for bumps alone")
    if is_bump and (centers.shape[0] != weights.shape[0] or centers.shape[1] != weights.shape[1]
                    or centers.shape[2] != weights.shape[2]):
        raise ValueError("centers must have the shape of the weights")
    self.n_panels, self.features.order = weights.shape[0], weights.shape[1]
    if weights.shape[0] > 0:
        self.features.offset = &offset[0, 0]
        if weights.shape[1] > 0:
            self.features.weights = &weights[0, 0, 0]
            if is_bump:
                self.features.centers = &centers[0, 0, 0]
    return 0
