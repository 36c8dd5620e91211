"""Boxes: which rows lie in them, sums over these rows, and the histograms by which trees of boxes
are grown (`trees.pyx`).

bins    uint8 (n_columns, n_rows), each column contiguous: the bin of each cell, 0 to 254, or
        MISSING. `bin_columns` makes them: the bin of x is the number of edges below x, so that x <=
        edges[b] where its bin is at most b.
boxes   int32 (n_boxes, n_conditions, 4), a condition is (column, low, high, missing): low <= bin <=
        high or, where missing is 1, bin == MISSING. A column of -1 is no condition. low > high is
        an interval of no bins.
steps   int64 (n_rows,): the gradient of each row, in units, times 2**32, plus its curvature in
        units, which is at least 0. All sizes of gradients, and all curvatures, add up to less than
        2**31: all sums of steps are exact.
bits    uint64 (n_boxes, n_words), the last axis contiguous: bit i % 64 of word i // 64 says whether
        row i is in the box. Bits past the last row are 0.

Other sums are float64. All instruction sets give the same bits; `level` is a position in
rows.LEVELS, any other the default. What is added up of some rows is added to `out`: rows may come
in slices.
"""
from cython cimport floating
from libc.math cimport INFINITY
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from sparserf._core import rows as rows_module

MISSING = BOX_MISSING
HIGHEST = BOX_MISSING - 1  # the last bin that there can be: as `high` of a condition, no bound
cdef int default_level = rows_module.LEVEL
cdef int n_levels = len(rows_module.LEVELS)


cdef const box_kernels *kernels_of(int level) noexcept nogil:
    return box_select(level if 0 <= level < n_levels else default_level)


cdef inline box_common_kernel common_of(int level) noexcept nogil:
    return box_common(level if 0 <= level < n_levels else default_level)


cdef inline ptrdiff_t words_of(ptrdiff_t n_rows) noexcept nogil:
    return (n_rows + BOX_WORD - 1) // BOX_WORD


cdef int check_words(const uint64_t[:, :] bits, ptrdiff_t n_rows) except -1:
    if bits.shape[1] != words_of(n_rows):
        raise ValueError(f"bits must have {words_of(n_rows)} words for {n_rows} rows, "
                         f"got {bits.shape[1]}")
    return check_contiguous("bits", bits.strides[1], sizeof(uint64_t), bits.shape[1])


cdef int check_contiguous(str name, ptrdiff_t stride, ptrdiff_t size, ptrdiff_t n) except -1:
    if n > 1 and stride != size:
        raise ValueError(f"{name} must have a contiguous last axis, got a stride of {stride} bytes")
    return 0


cdef int check_equal(str name, str what, ptrdiff_t wanted, ptrdiff_t got) except -1:
    if got != wanted:
        raise ValueError(f"{name} must have {wanted} {what}, got {got}")
    return 0


# ---------------------------------------------------------------- bins


def bin_columns(X not None, const double[::1] edges not None, const int64_t[::1] first not None,
                uint8_t[:, :] out not None, int level=-1):
    """Write the bin of each cell of X (n_rows, n_columns) to out (n_columns, n_rows).

    X : float32 or float64, of any strides
    edges : ascending, of column j from first[j] on to first[j + 1]; 2**k - 1 of them, at most 255,
        the last of them infinity where the column has fewer
    """
    if X.itemsize == sizeof(float):
        bin_numbers[float](X, edges, first, out, level)
    else:
        bin_numbers[double](X, edges, first, out, level)


cdef int bin_numbers(const floating[:, :] X, const double[::1] edges, const int64_t[::1] first,
                     uint8_t[:, :] out, int level) except -1:
    cdef ptrdiff_t w, start, j, i, n, n_edges
    cdef double[BOX_WORD] x
    cdef uint8_t[BOX_WORD] codes
    cdef double none = 0
    cdef const double *of_column
    cdef const box_kernels *kernels = kernels_of(level)
    check_equal("first", "entries", X.shape[1] + 1, first.shape[0])
    check_equal("out", "columns", X.shape[1], out.shape[0])
    check_equal("out", "rows", X.shape[0], out.shape[1])
    check_contiguous("out", out.strides[1], 1, out.shape[1])
    for j in range(X.shape[1]):
        n_edges = first[j + 1] - first[j]
        if (first[j] < 0 or first[j + 1] > edges.shape[0] or not 0 <= n_edges <= 255
                or n_edges & (n_edges + 1)):
            raise ValueError(f"first must leave 2**k - 1 edges, at most 255, to column {j}, "
                             f"got {n_edges}")
    memset(&x[0], 0, sizeof(x))
    with nogil:
        for w in range(words_of(X.shape[0])):
            start = BOX_WORD * w
            n = min(<ptrdiff_t>BOX_WORD, X.shape[0] - start)
            for j in range(X.shape[1]):
                for i in range(n):
                    x[i] = X[start + i, j]
                of_column = &edges[first[j]] if first[j + 1] > first[j] else &none
                kernels.bin(&x[0], of_column, <int>(first[j + 1] - first[j]), &codes[0])
                memcpy(&out[j, start], &codes[0], n)
    return 0


# ---------------------------------------------------------------- which rows


cdef class BinBoxes:
    """Boxes of bins (see the head of this file), as tests that the kernels read.

    boxes : int32 (n_boxes, n_conditions, 4)
    n_columns : the number of columns that the bins have
    """

    cdef bin_test *tests
    cdef ptrdiff_t *first
    cdef ptrdiff_t n, n_columns

    def __cinit__(self, const int32_t[:, :, :] boxes not None, ptrdiff_t n_columns):
        cdef ptrdiff_t r, k, n = 0
        cdef int32_t low, high, missing
        check_equal("boxes", "numbers a condition", 4, boxes.shape[2])
        self.n, self.n_columns = boxes.shape[0], n_columns
        self.tests = <bin_test *>malloc((2
                                         * boxes.shape[0] * boxes.shape[1] + 1) * sizeof(bin_test))
        self.first = <ptrdiff_t *>malloc((boxes.shape[0] + 1) * sizeof(ptrdiff_t))
        if self.tests == NULL or self.first == NULL:
            raise MemoryError
        for r in range(boxes.shape[0]):
            self.first[r] = n
            for k in range(boxes.shape[1]):
                if boxes[r, k, 0] == -1:
                    continue
                low, high, missing = boxes[r, k, 1], boxes[r, k, 2], boxes[r, k, 3]
                if not 0 <= boxes[r, k, 0] < n_columns:
                    raise ValueError(f"boxes must have columns below {n_columns}, got "
                                     f"{boxes[r, k, 0]} in box {r}")
                if not (0 <= low <= BOX_MISSING and 0 <= high < BOX_MISSING and 0 <= missing <= 1):
                    raise ValueError(f"boxes must have bins in 0 to {BOX_MISSING - 1}, "
                                     f"and missing 0 or 1, got {(low, high, missing)} in box {r}")
                # An interval of the ring; two of them, of which one leaves out what is below, the
                # other what is above.
                if low > high:
                    low = high = BOX_MISSING
                    if not missing:  # no bin at all: two intervals that have none in common
                        n = self.add(n, boxes[r, k, 0], 0, 0)
                    n = self.add(n, boxes[r, k, 0], BOX_MISSING, BOX_MISSING)
                elif not missing:
                    n = self.add(n, boxes[r, k, 0], low, high)
                else:
                    if low > 0:
                        n = self.add(n, boxes[r, k, 0], low, BOX_MISSING)
                    if high < BOX_MISSING - 1:
                        n = self.add(n, boxes[r, k, 0], BOX_MISSING, high)
        self.first[boxes.shape[0]] = n

    cdef ptrdiff_t add(self, ptrdiff_t n, int32_t column, int32_t start, int32_t end) noexcept:
        self.tests[n].column, self.tests[n].start = column, <uint8_t>start
        self.tests[n].length = <uint8_t>(end - start)
        return n + 1

    def __dealloc__(self):
        free(self.tests)
        free(self.first)

    def n_boxes(self):
        """Return the number of boxes."""
        return self.n

    cdef inline void inside(self, const box_kernels *kernels, ptrdiff_t r, const uint8_t *bins,
                            ptrdiff_t step, ptrdiff_t n_rows, uint64_t *words) noexcept nogil:
        kernels.inside_bins(bins, step, n_rows, self.tests + self.first[r],
                            <int>(self.first[r + 1] - self.first[r]), words)

    cdef int check(self, const uint8_t[:, :] bins) except -1:
        check_equal("bins", "columns", self.n_columns, bins.shape[0])
        return check_contiguous("bins", bins.strides[1], 1, bins.shape[1])

    def evaluate(self, const uint8_t[:, :] bins not None, uint64_t[:, :] bits not None,
                 int level=-1):
        """Write whether the rows are in each box to bits."""
        cdef ptrdiff_t r
        cdef const box_kernels *kernels = kernels_of(level)
        self.check(bins)
        check_words(bits, bins.shape[1])
        check_equal("bits", "boxes", self.n, bits.shape[0])
        if bins.shape[1] == 0:
            return
        with nogil:
            for r in range(self.n):
                self.inside(kernels, r, &bins[0, 0] if bins.shape[0] > 0 else NULL, bins.strides[0],
                            bins.shape[1], &bits[r, 0])


cdef class NumberBoxes:
    """Boxes of numbers, for rows that were not binned, as tests that the kernels read.

    columns : int32 (n_boxes, n_conditions), -1 where there is no condition
    low, high : float64 of the same shape; a condition is low < x <= high, -inf and inf are no
        bounds
    missing : uint8 of the same shape, whether a row whose cell is NaN meets the condition
    """

    cdef number_test *tests
    cdef ptrdiff_t *first
    cdef int32_t *used    # the columns that boxes see
    cdef int32_t *places  # where each column is among these
    cdef ptrdiff_t n
    cdef ptrdiff_t n_used
    cdef int32_t last_column

    def __cinit__(self, const int32_t[:, :] columns not None, const double[:, :] low not None,
                  const double[:, :] high not None, const uint8_t[:, :] missing not None):
        cdef ptrdiff_t r, k, n = 0, n_tests = columns.shape[0] * columns.shape[1]
        cdef int32_t place
        for name, m, c in (("low", low.shape[0], low.shape[1]),
                           ("high", high.shape[0], high.shape[1]),
                           ("missing", missing.shape[0], missing.shape[1])):
            if (m, c) != (columns.shape[0], columns.shape[1]):
                raise ValueError(f"{name} must have the shape {columns.shape[0], columns.shape[1]} "
                                 f"of columns, got {m, c}")
        self.n, self.last_column = columns.shape[0], -1
        self.tests = <number_test *>malloc((2 * n_tests + 1) * sizeof(number_test))
        self.first = <ptrdiff_t *>malloc((columns.shape[0] + 1) * sizeof(ptrdiff_t))
        self.used = <int32_t *>malloc((n_tests + 1) * sizeof(int32_t))
        if self.tests == NULL or self.first == NULL or self.used == NULL:
            raise MemoryError
        for r in range(columns.shape[0]):
            for k in range(columns.shape[1]):
                if columns[r, k] < -1:
                    raise ValueError(f"columns must be at least -1, got {columns[r, k]} in box {r}")
                self.last_column = max(self.last_column, columns[r, k])
        self.places = <int32_t *>malloc((self.last_column + 2) * sizeof(int32_t))
        if self.places == NULL:
            raise MemoryError
        memset(self.places, -1, (self.last_column + 2) * sizeof(int32_t))
        for r in range(columns.shape[0]):
            self.first[r] = n
            for k in range(columns.shape[1]):
                if columns[r, k] == -1:
                    continue
                if low[r, k] != low[r, k] or high[r, k] != high[r, k]:
                    raise ValueError(f"low and high must be numbers, got NaN in box {r}")
                if self.places[columns[r, k]] < 0:
                    self.places[columns[r, k]] = <int32_t>self.n_used
                    self.used[self.n_used] = columns[r, k]
                    self.n_used += 1
                place = self.places[columns[r, k]]
                # Without a bound on either side a test remains where a missing cell must not pass.
                if high[r, k] < INFINITY or (low[r, k] == -INFINITY and not missing[r, k]):
                    n = self.add(n, place, False, high[r, k], missing[r, k])
                if low[r, k] > -INFINITY:
                    n = self.add(n, place, True, low[r, k], missing[r, k])
        self.first[columns.shape[0]] = n

    cdef ptrdiff_t add(self, ptrdiff_t n, int32_t column, bint above, double bound,
                       uint8_t missing) noexcept:
        self.tests[n].column, self.tests[n].above, self.tests[n].bound = column, above, bound
        self.tests[n].may_miss = missing != 0
        return n + 1

    def __dealloc__(self):
        free(self.tests)
        free(self.first)
        free(self.used)
        free(self.places)

    def n_boxes(self):
        """Return the number of boxes."""
        return self.n

    def evaluate(self, X not None, uint64_t[:, :] bits not None, int level=-1):
        """Write whether rows of X, float32 or float64 of any strides, are in each box to bits."""
        if X.itemsize == sizeof(float):
            evaluate_numbers[float](self, X, bits, level)
        else:
            evaluate_numbers[double](self, X, bits, level)


cdef int evaluate_numbers(NumberBoxes self, const floating[:, :] X, uint64_t[:, :] bits,
                          int level) except -1:
    cdef ptrdiff_t w, i, j, r, n
    cdef uint64_t rows
    cdef double *x
    cdef const box_kernels *kernels = kernels_of(level)
    check_words(bits, X.shape[0])
    check_equal("bits", "boxes", self.n, bits.shape[0])
    if self.last_column >= X.shape[1]:
        raise ValueError(f"X must have more than {self.last_column} columns, got {X.shape[1]}")
    x = <double *>malloc((BOX_WORD * self.n_used + 1) * sizeof(double))
    if x == NULL:
        raise MemoryError
    memset(x, 0, BOX_WORD * self.n_used * sizeof(double))
    with nogil:
        for w in range(words_of(X.shape[0])):
            n = min(<ptrdiff_t>BOX_WORD, X.shape[0] - BOX_WORD * w)
            for j in range(self.n_used):
                for i in range(n):
                    x[BOX_WORD * j + i] = X[BOX_WORD * w + i, self.used[j]]
            rows = ~<uint64_t>0 if n == BOX_WORD else (<uint64_t>1 << n) - 1
            for r in range(self.n):
                bits[r, w] = rows & kernels.inside_numbers(x, self.tests + self.first[r],
                                                           <int>(self.first[r + 1] - self.first[r]))
        free(x)
    return 0


# ---------------------------------------------------------------- sums over the rows in boxes


def common(const uint64_t[:, :] left not None, const uint64_t[:, :] right not None,
           int64_t[:, :] out not None, bint symmetric=False, int level=-1):
    """Add the number of rows that are in both box a of left and box b of right to out[a, b].

    symmetric : whether left and right are the same boxes; only the entries on and below the
        diagonal are computed
    """
    cdef ptrdiff_t a, b, w, start, n_words
    cdef uint64_t *of_left
    cdef uint64_t *of_right
    cdef box_common_kernel count = common_of(level)
    check_words(left, BOX_WORD * right.shape[1])
    check_words(right, BOX_WORD * left.shape[1])
    check_equal("out", "boxes of left", left.shape[0], out.shape[0])
    check_equal("out", "boxes of right", right.shape[0], out.shape[1])
    of_left = <uint64_t *>calloc((BOX_LEFT + BOX_RIGHT) * BOX_PANEL, sizeof(uint64_t))
    if of_left == NULL:
        raise MemoryError
    of_right = of_left + BOX_LEFT * BOX_PANEL
    with nogil:
        for b in range((right.shape[0] + BOX_RIGHT - 1) // BOX_RIGHT):
            start = BOX_RIGHT * b // BOX_LEFT if symmetric else 0
            for w in range((left.shape[1] + BOX_PANEL - 1) // BOX_PANEL):
                pack(right, BOX_RIGHT * b, BOX_RIGHT, BOX_PANEL * w, of_right)
                for a in range(start, (left.shape[0] + BOX_LEFT - 1) // BOX_LEFT):
                    n_words = pack(left, BOX_LEFT * a, BOX_LEFT, BOX_PANEL * w, of_left)
                    add_counts(count, of_left, of_right, n_words, BOX_LEFT * a, BOX_RIGHT * b,
                               symmetric, out)
        free(of_left)


cdef ptrdiff_t pack(const uint64_t[:, :] bits, ptrdiff_t first, ptrdiff_t most, ptrdiff_t start,
                    uint64_t *panel) noexcept nogil:
    """Copy words from `start` on of at most so many boxes to a panel, and zeros up to a multiple of
    8, which is returned."""
    cdef ptrdiff_t r, n = min(<ptrdiff_t>BOX_PANEL, bits.shape[1] - start), whole = (n + 7) // 8 * 8
    for r in range(min(most, bits.shape[0] - first)):
        memcpy(panel + BOX_PANEL * r, &bits[first + r, start], n * sizeof(uint64_t))
        memset(panel + BOX_PANEL * r + n, 0, (whole - n) * sizeof(uint64_t))
    return whole


cdef void add_counts(box_common_kernel count, const uint64_t *of_left, const uint64_t *of_right,
                     ptrdiff_t n_words, ptrdiff_t a, ptrdiff_t b, bint symmetric,
                     int64_t[:, :] out) noexcept nogil:
    """Add the numbers of bits that boxes of two panels have in common to out, from out[a, b] on."""
    cdef int64_t[BOX_LEFT * BOX_RIGHT] counts
    cdef ptrdiff_t i, j, n_left = min(<ptrdiff_t>BOX_LEFT, out.shape[0] - a)
    cdef ptrdiff_t n_right = min(<ptrdiff_t>BOX_RIGHT, out.shape[1] - b)
    if symmetric:
        n_right = min(n_right, a + n_left - b)
    count(of_left, of_right, n_right, n_words, &counts[0])
    for i in range(n_left):
        for j in range(min(n_right, a + i + 1 - b) if symmetric else n_right):
            out[a + i, b + j] += counts[BOX_LEFT * j + i]


def correlate(const uint64_t[:, :] bits not None, const double[:, :] v not None,
              double[:, :] out not None, int level=-1):
    """Add the sum of v[k, i] over the rows i in box r to out[k, r]; v's last axis is contiguous."""
    cdef ptrdiff_t i, r, k, start, n
    cdef const box_kernels *kernels = kernels_of(level)
    check_words(bits, v.shape[1])
    check_contiguous("v", v.strides[1], sizeof(double), v.shape[1])
    check_equal("out", "outputs", v.shape[0], out.shape[0])
    check_equal("out", "boxes", bits.shape[0], out.shape[1])
    with nogil:
        # So many of v stay in the cache for all boxes, and so much of a box is read in one go.
        for i in range((bits.shape[1] + BOX_PANEL - 1) // BOX_PANEL):
            start = BOX_WORD * BOX_PANEL * i
            n = min(<ptrdiff_t>BOX_WORD * BOX_PANEL, v.shape[1] - start)
            for r in range(bits.shape[0]):
                for k in range(v.shape[0]):
                    out[k, r] += kernels.sum(&bits[r, BOX_PANEL * i], n, &v[k, start])


def apply(const uint64_t[:, :] bits not None, const double[:, :] coef not None,
          double[:, :] out not None, int level=-1):
    """Add the sum of coef[k, r] over the boxes r of row i to out[k, i].

    The last axes are contiguous.
    """
    cdef ptrdiff_t k
    cdef const box_kernels *kernels = kernels_of(level)
    check_words(bits, out.shape[1])
    check_contiguous("coef", coef.strides[1], sizeof(double), coef.shape[1])
    check_contiguous("out", out.strides[1], sizeof(double), out.shape[1])
    check_equal("coef", "boxes", bits.shape[0], coef.shape[1])
    check_equal("out", "outputs", coef.shape[0], out.shape[0])
    if bits.shape[0] == 0 or bits.shape[1] == 0:
        return
    with nogil:
        for k in range(coef.shape[0]):
            kernels.apply(&bits[0, 0], bits.strides[0] // <ptrdiff_t>sizeof(uint64_t),
                          bits.shape[0], &coef[k, 0], out.shape[1],
                          &out[k, 0])


def spread(const uint64_t[:, :] bits not None, out not None, const double[::1] v=None,
           int level=-1):
    """Write 1, or v[i], where row i is in box r, and 0 elsewhere, to out[r, i].

    out is float32 or float64, its last axis contiguous.
    """
    if out.itemsize == sizeof(float):
        spread_numbers[float](bits, out, v, level)
    else:
        spread_numbers[double](bits, out, v, level)


cdef int spread_numbers(const uint64_t[:, :] bits, floating[:, :] out, const double[::1] v,
                        int level) except -1:
    cdef ptrdiff_t r
    cdef const double *of_rows = NULL
    cdef const box_kernels *kernels = kernels_of(level)
    check_words(bits, out.shape[1])
    check_contiguous("out", out.strides[1], sizeof(floating), out.shape[1])
    check_equal("out", "boxes", bits.shape[0], out.shape[0])
    if v is not None:
        check_equal("v", "rows", out.shape[1], v.shape[0])
    if out.shape[1] == 0:
        return 0
    if v is not None:
        of_rows = &v[0]
    with nogil:
        for r in range(bits.shape[0]):
            if floating is float:
                kernels.spread_single(&bits[r, 0], out.shape[1], of_rows, &out[r, 0])
            else:
                kernels.spread_double(&bits[r, 0], out.shape[1], of_rows, &out[r, 0])
    return 0


# ---------------------------------------------------------------- histograms of nodes


cdef uint64_t limit_of(double share) except? 1:
    """Return the number of the 2**32 values of a hash at which a row is drawn."""
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, got {share}")
    return <uint64_t>(share * 4294967296.0 + 0.5)


def draw_rows(uint64_t seed, double share, uint64_t first_row, ptrdiff_t n_rows,
              uint64_t[::1] words not None, int level=-1):
    """Write to words which rows a tree sees: each with probability `share`, by a hash.

    first_row : the number of the first row
    """
    cdef uint64_t limit = limit_of(share)
    check_equal("words", "entries", words_of(n_rows), words.shape[0])
    if n_rows > 0:
        with nogil:
            kernels_of(level).draw(seed, limit, first_row, n_rows, &words[0])


def histograms(BinBoxes boxes not None, const uint8_t[:, :] bins not None,
               const int64_t[::1] steps not None, const int32_t[::1] tree not None,
               const uint64_t[::1] seeds not None, double share, uint64_t first_row,
               const int32_t[:, ::1] columns not None, const int64_t[:, ::1] first not None,
               const int64_t[::1] at not None, int64_t[::1] sums not None,
               int64_t[::1] counts not None, ptrdiff_t start, ptrdiff_t stop, int level=-1):
    """Add the histograms of some boxes to sums, and the numbers of their rows to counts.

    A row counts if its tree draws it and its step is not 0.

    tree : the tree of each box, ascending
    seeds : of each tree, by which it draws a share of the rows
    first_row : the number of the first of these rows among all rows
    start, stop : the boxes
    columns, first : (n_trees, n), (n_trees, n + 1): the columns that a tree sees, and the place of
        each among the sums of a node: one for each bin, and last the missing cells; bins beyond
        these count as missing
    at : where the sums of each box begin
    """
    cdef ptrdiff_t r, end, t, i, block, n, n_listed, j, n_rows = bins.shape[1]
    cdef uint64_t limit = limit_of(share)
    cdef const box_kernels *kernels = kernels_of(level)
    cdef uint64_t[BLOCK_WORDS] seen
    cdef uint64_t *used
    cdef uint64_t[BLOCK_WORDS] words
    cdef uint32_t *rows
    cdef int64_t *listed
    cdef box_column *own
    boxes.check(bins)
    check_equal("steps", "rows", n_rows, steps.shape[0])
    check_equal("at", "boxes", boxes.n, at.shape[0])
    check_equal("counts", "boxes", boxes.n, counts.shape[0])
    check_trees(boxes.n_columns, tree, boxes.n, columns, first)
    check_equal("seeds", "entries", columns.shape[0], seeds.shape[0])
    if not 0 <= start <= stop <= boxes.n:
        raise ValueError(f"start and stop must be between 0 and {boxes.n}, "
                         f"got {(start, stop)}")
    for r in range(start, stop):
        check_place("sums", at[r], first[tree[r], columns.shape[1]], sums.shape[0])
    if n_rows == 0 or start == stop or columns.shape[1] == 0:
        return
    rows = <uint32_t *>malloc(BOX_BLOCK * sizeof(uint32_t))
    listed = <int64_t *>malloc(BOX_BLOCK * sizeof(int64_t))
    used = <uint64_t *>malloc(words_of(n_rows) * sizeof(uint64_t))
    own = <box_column *>malloc(columns.shape[1] * sizeof(box_column))
    if rows == NULL or listed == NULL or used == NULL or own == NULL:
        free(rows)
        free(listed)
        free(used)
        free(own)
        raise MemoryError
    with nogil:
        kernels.in_use(&steps[0], n_rows, used)
        end = start
        while end < stop:  # tree by tree, whose sums stay in the cache
            start, t = end, tree[end]
            while end < stop and tree[end] == t:
                end += 1
            for i in range((n_rows + BOX_BLOCK - 1) // BOX_BLOCK):
                block = BOX_BLOCK * i
                n = min(<ptrdiff_t>BOX_BLOCK, n_rows - block)
                kernels.draw(seeds[t], limit, first_row + <uint64_t>block, n, &seen[0])
                for j in range(words_of(n)):
                    seen[j] &= used[BLOCK_WORDS * i + j]
                for j in range(columns.shape[1]):
                    own[j] = box_column_of(&bins[columns[t, j], block], n, first[t, j],
                                           first[t, j + 1] - first[t, j])
                for r in range(start, end):
                    boxes.inside(kernels, r, &bins[0, block], bins.strides[0], n, &words[0])
                    for j in range(words_of(n)):
                        words[j] &= seen[j]
                    n_listed = kernels.list(&words[0], words_of(n), &steps[block], rows, listed)
                    counts[r] += n_listed
                    kernels.histograms(own, columns.shape[1], rows, listed, n_listed, &sums[at[r]])
        free(rows)
        free(listed)
        free(used)
        free(own)


cdef int check_trees(ptrdiff_t n_columns, const int32_t[::1] tree, ptrdiff_t n_boxes,
                     const int32_t[:, ::1] columns, const int64_t[:, ::1] first) except -1:
    cdef ptrdiff_t t, j
    check_equal("tree", "boxes", n_boxes, tree.shape[0])
    check_equal("first", "trees", columns.shape[0], first.shape[0])
    check_equal("first", "places", columns.shape[1] + 1, first.shape[1])
    for t in range(tree.shape[0]):
        if not 0 <= tree[t] < columns.shape[0]:
            raise ValueError(f"tree must be of {columns.shape[0]} trees, got {tree[t]}")
    for t in range(columns.shape[0]):
        for j in range(columns.shape[1]):
            if not 0 <= columns[t, j] < n_columns:
                raise ValueError(f"columns must be below {n_columns}, got {columns[t, j]}")
            if first[t, j] < 0 or not 2 <= first[t, j + 1] - first[t, j] <= BOX_SLOTS:
                raise ValueError(f"first must leave 2 to {BOX_SLOTS} sums to a column, "
                                 f"got {first[t, j + 1] - first[t, j]}")
    return 0


cdef int check_place(str name, int64_t place, int64_t size, ptrdiff_t n) except -1:
    if place < 0 or size > n - place:
        raise ValueError(f"{name} must have room for {size} sums from {place} on, got {n}")
    return 0
