"""The three questions over rows, of features made tile by tile; the feature matrix itself is never stored.

float32 and float64 tiles; sums are always float64.
"""
from cython cimport floating
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, uintptr_t
from libc.string cimport memcpy, memset

from sparserf._core.rows cimport BUFFER, TILE_COLUMNS, TILE_ROWS, RowSlice, tile_features

ACTIVATIONS = ("cos", "sin", "tanh", "relu", "sign", "identity", "product")
PANEL = TILE_COLUMNS


cdef inline double *aligned(double *p) noexcept nogil:
    """The next address that starts a cache line: a vector that crosses two costs two loads."""
    return <double *>((<uintptr_t>p + 63) & ~<uintptr_t>63)


cdef inline ptrdiff_t n_tiles(RowSlice X) noexcept nogil:
    return (X.rows.n_rows + TILE_ROWS - 1) // TILE_ROWS


cdef inline const double *of_panel(const double[:] coef, ptrdiff_t panel, double *last) noexcept nogil:
    """The coefficients of a panel, where they end within it copied to `last`, with zeros behind them."""
    cdef ptrdiff_t start = panel * TILE_COLUMNS, n = coef.shape[0] - start
    if n >= TILE_COLUMNS:
        return &coef[start]
    memset(last, 0, TILE_COLUMNS * sizeof(double))
    if n > 0:
        memcpy(last, &coef[start], n * sizeof(double))
    return last


cdef class Panels:
    """Features of one kind, in panels of PANEL that are padded with zeros.

    activation : one of ACTIVATIONS
    weights : (n_panels, n_inputs or order, PANEL), or of products (n_panels, 1, PANEL); float32 or float64, as the rows
    offset : (n_panels, PANEL), in the same
    inputs : None, or int32 (n_panels, order, PANEL): what each weight multiplies, or the factors of a product
    """

    cdef tile_features features
    cdef ptrdiff_t n_panels
    cdef bint single
    cdef object _arrays

    def __cinit__(self, activation, double scale, weights not None, offset not None, const int32_t[:, :, ::1] inputs=None):
        self._arrays = weights, offset, inputs
        self.single = weights.itemsize == sizeof(float)
        self.features.activation, self.features.scale = ACTIVATIONS.index(activation), scale
        if self.single:
            read_weights[float](self, weights, offset)
        else:
            read_weights[double](self, weights, offset)
        if inputs is not None:
            self.features.order = inputs.shape[1]
            if inputs.shape[0] > 0 and inputs.shape[1] > 0:
                self.features.inputs = &inputs[0, 0, 0]

    def correlate(self, RowSlice X not None, const double[:, :] v not None, double[:, :] out not None, bint squared=False,
                  double[:, :] sine=None):
        """out[k, j] += sum_i v[k, i] phi_j(x_i), or phi_j(x_i)^2 where squared; last axes contiguous.

        v (n_outputs, n_rows), out (n_outputs, PANEL * n_panels). sine, of cosines: += the same a quarter later, cos(t - pi/2)
        for cos(t), over one projection.
        """
        cdef ptrdiff_t i_tile, row, panel, k
        cdef int n_rows
        cdef bint paired = sine is not None
        cdef double[BUFFER] buffer
        cdef double[BUFFER] another
        cdef double *tile = aligned(&buffer[0])
        cdef double *quarter = aligned(&another[0])
        self.check(X)
        with nogil:
            for i_tile in range(n_tiles(X)):
                row = TILE_ROWS * i_tile
                n_rows = <int>min(<ptrdiff_t>TILE_ROWS, X.rows.n_rows - row)
                for panel in range(self.n_panels):
                    if paired:
                        X.kernels.make_pair(&X.rows, &self.features, row, n_rows, panel, tile, quarter)
                    else:
                        X.kernels.make(&X.rows, &self.features, row, n_rows, panel, tile)
                    for k in range(v.shape[0]):
                        if squared:
                            X.kernels.correlate_squares(tile, n_rows, &v[k, row], &out[k, panel * TILE_COLUMNS])
                        else:
                            X.kernels.correlate(tile, n_rows, &v[k, row], &out[k, panel * TILE_COLUMNS])
                        if paired:
                            X.kernels.correlate(quarter, n_rows, &v[k, row], &sine[k, panel * TILE_COLUMNS])

    def apply(self, RowSlice X not None, const double[:, :] coef not None, double[:, :] out not None):
        """out[k, i] += sum_j phi_j(x_i) coef[k, j]; last axes contiguous.

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
        """out[i, j] = phi_j(x_i); out (n_rows, n_features), its last axis contiguous, in the type of the rows."""
        cdef ptrdiff_t i_tile, row, panel, i, width
        cdef int n_rows
        cdef double[BUFFER] buffer
        cdef floating *z = <floating *>aligned(&buffer[0])
        self.check(X)
        if X.single != (sizeof(floating) == sizeof(float)):
            raise TypeError("out must be of the type of the rows")
        with nogil:
            for i_tile in range(n_tiles(X)):
                row = TILE_ROWS * i_tile
                n_rows = <int>min(<ptrdiff_t>TILE_ROWS, X.rows.n_rows - row)
                for panel in range(self.n_panels):
                    X.kernels.make(&X.rows, &self.features, row, n_rows, panel, z)
                    width = min(<ptrdiff_t>TILE_COLUMNS, out.shape[1] - panel * TILE_COLUMNS)
                    for i in range(n_rows):
                        memcpy(&out[row + i, panel * TILE_COLUMNS], z + i * TILE_COLUMNS, width * sizeof(floating))

    cdef int check(self, RowSlice X) except -1:
        """Weights of another type or width than the rows would be read past their end."""
        if self.single != X.single:
            raise TypeError("features and rows must be of one type")
        if self.n_panels > 0 and X.rows.x != NULL and self.features.inputs == NULL and self.features.order != X.rows.n_inputs:
            raise ValueError(f"rows must have {self.features.order} inputs, got {X.rows.n_inputs}")
        return 0


cdef void read_weights(Panels self, const floating[:, :, ::1] weights, const floating[:, ::1] offset) noexcept:
    self.n_panels, self.features.order = weights.shape[0], weights.shape[1]
    if weights.shape[0] > 0:
        self.features.offset = &offset[0, 0]
        if weights.shape[1] > 0:
            self.features.weights = &weights[0, 0, 0]
