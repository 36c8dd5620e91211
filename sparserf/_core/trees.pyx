"""Trees of boxes that grow along a gradient, each in a call or, along passes over rows elsewhere,
level by level. How a tree grows is said in `features/growth.py`; bins and boxes in `boxes.pyx`.

A tree asks for the histograms of some of its nodes: of its root and, after each level, of the
smaller half of each node that was split. That of the larger half is what is left of the node's.
Where rows are in memory they are kept as a list, of which each node has a part, and a pair of nodes
of few rows keeps no histograms: theirs are made column by column, where a split is looked for.

Which columns a node sees depends on the seed of its tree, on its way from the root and on the
numbers of the columns alone: all ways to grow give the same boxes.

The sums over all rows in the nodes of trees that have grown (`sums_in_nodes`) follow the rows down
the trees in the same way, some thousand rows at a time.
"""
from libc.math cimport ceil
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memchr, memcpy, memmove, memset

import numpy as np

from sparserf._core.boxes cimport (BLOCK_WORDS, BOX_BLOCK, BOX_MISSING, BOX_SLOTS, BOX_WORD,
                                   box_column, box_column_of, box_hash, box_kernels, box_numbers,
                                   box_split, kernels_of)

cdef enum:
    NO_NODE = -1
    NO_COLUMN = -1
    HIGHEST = BOX_MISSING - 1
    # A node and its sibling keep no histograms if they have at most so many rows for each bin of a
    # column, or so few that the histograms of all that have more could be more than so many bytes.
    ROWS_A_BIN = 4
    KEPT_BYTES = 1 << 26
    # Histograms of so many columns are made at a time of such a node, and stay in the cache.
    AT_A_TIME = 4

cdef uint32_t NO_HASH = 0xffffffff  # larger than those of columns

# sums : the histogram of the node, of the steps of rows (boxes.pyx); NULL: it is not kept
# total : the sums of gradient and curvature of all of its rows
# start, count : where its rows begin among those of the tree, and how many they are
ctypedef struct tree_node:
    box_split split
    int64_t *sums
    double[2] total
    uint64_t key
    int64_t start, count
    int32_t parent
    bint is_kept

ctypedef struct ranked:
    double gain
    int32_t node

# Rows in memory, and the list of those that a tree sees, node by node.
# listed : room for the steps of a block of the list, or of a node of few rows
ctypedef struct row_list:
    const uint8_t *bins
    ptrdiff_t step
    const int64_t *steps
    uint32_t *rows
    uint32_t *spare
    int64_t *listed
    int64_t few
    box_column *columns


cdef int by_gain(const void *a, const void *b) noexcept nogil:
    """Order splits by falling gain, those of equal gain as nodes grew."""
    cdef double left = (<const ranked *>a).gain, right = (<const ranked *>b).gain
    if left != right:
        return -1 if left > right else 1
    return (<const ranked *>a).node - (<const ranked *>b).node


cdef int by_number(const void *a, const void *b) noexcept nogil:
    cdef uint32_t left = (<const uint32_t *>a)[0], right = (<const uint32_t *>b)[0]
    return (left > right) - (left < right)


cdef inline uint64_t key_below(uint64_t key, uint32_t side) noexcept nogil:
    """Return the key of a child, by hashes of numbers that no column has."""
    return (<uint64_t>box_hash(key, ~(2 * side)) << 32) | box_hash(key, ~(2 * side + 1))


cdef inline ptrdiff_t sibling_of(ptrdiff_t k) noexcept nogil:
    """Return the other child of the parent of a node: left ones are odd."""
    return k + 1 if k % 2 else k - 1


cdef void gather(row_list *rows, int64_t start, ptrdiff_t n) noexcept nogil:
    """Copy the steps of n listed rows."""
    cdef ptrdiff_t i
    for i in range(n):
        rows.listed[i] = rows.steps[rows.rows[start + i]]


cdef int64_t sum_of(const int64_t *x, ptrdiff_t n) noexcept nogil:
    cdef ptrdiff_t i
    cdef int64_t total = 0
    for i in range(n):
        total += x[i]
    return total


cdef int check_equal(str name, str what, ptrdiff_t wanted, ptrdiff_t got) except -1:
    if got != wanted:
        raise ValueError(f"{name} must have {wanted} {what}, got {got}")
    return 0


cdef class Tree:
    """A tree that grows until it has some number of leaves.

    how : `TreeOptions`, which say how it grows
    boxes : int32 (2 n_leaves - 1, n_conditions, 4), to which its nodes are written, the conditions
        of each in the order of their columns; what is no node, the root and, at the end, nodes that
        do not keep the limits have no condition
    seed : by which rows, and the columns of nodes, are drawn
    columns : the columns that it sees, ascending
    n_bins : the number of bins of each of all columns
    limits : `BoxLimits.typed`, or None
    """

    cdef object boxes
    cdef uint64_t seed
    cdef int32_t[:, :, ::1] conditions
    cdef const int32_t[::1] columns
    cdef const int64_t[::1] n_bins
    cdef const uint8_t[:, ::1] groups
    cdef const int8_t[::1] monotone
    cdef const int32_t[::1] of_column
    cdef tree_node *nodes
    cdef ranked *waiting
    cdef int32_t *asked
    cdef int64_t *first
    cdef uint32_t *hashes
    cdef int32_t *seen
    cdef double[2] units
    cdef ptrdiff_t n_nodes, n_waiting, n_asked, n_leaves, most_leaves, n_columns
    cdef ptrdiff_t most_order
    cdef double node_share, row_share, min_samples, ridge
    cdef const box_kernels *kernels

    def __cinit__(self, how, boxes, uint64_t seed, const int32_t[::1] columns not None,
                  const int64_t[::1] n_bins not None, limits=None, int level=-1):
        cdef ptrdiff_t j
        self.boxes, self.conditions, self.seed = boxes, boxes, seed
        self.columns, self.n_bins = columns, n_bins
        self.groups = None if limits is None else limits.groups
        self.monotone = None if limits is None else limits.monotone
        self.most_order, self.of_column = 0, None
        if limits is not None and limits.order is not None:
            self.most_order, self.of_column = limits.order
        self.node_share, self.row_share = how.node_share, how.row_share
        self.min_samples, self.ridge = how.min_samples, how.ridge
        self.kernels = kernels_of(level)
        self.check()
        self.n_columns, self.most_leaves = columns.shape[0], (boxes.shape[0] + 1) // 2
        self.nodes = <tree_node *>calloc(boxes.shape[0], sizeof(tree_node))
        self.waiting = <ranked *>malloc(boxes.shape[0] * sizeof(ranked))
        self.asked = <int32_t *>malloc(boxes.shape[0] * sizeof(int32_t))
        self.first = <int64_t *>malloc((self.n_columns + 1) * sizeof(int64_t))
        self.hashes = <uint32_t *>malloc((2 * self.n_columns + 1) * sizeof(uint32_t))
        self.seen = <int32_t *>malloc(self.n_columns * sizeof(int32_t) + 1)
        if (self.nodes == NULL or self.waiting == NULL or self.asked == NULL or self.first == NULL
                or self.hashes == NULL or self.seen == NULL):
            raise MemoryError
        self.first[0] = 0
        for j in range(self.n_columns):
            self.first[j + 1] = self.first[j] + n_bins[columns[j]] + 1
        memset(&self.conditions[0, 0, 0], NO_COLUMN, boxes.nbytes)
        self.nodes[0].key, self.nodes[0].parent = key_below(seed, 0), NO_NODE
        self.n_leaves = self.n_nodes = 1
        self.asked[0] = 0
        self.n_asked = self.n_columns > 0 and self.most_leaves > 1

    cdef int check(self) except -1:
        cdef ptrdiff_t j, d = self.n_bins.shape[0]
        if self.boxes.shape[0] % 2 == 0 or self.boxes.shape[1] == 0 or self.boxes.shape[2] != 4:
            raise ValueError("boxes must have an odd number of nodes, conditions and 4 numbers, "
                             f"got {self.boxes.shape}")
        if self.groups is not None:
            check_equal("groups", "columns", d, self.groups.shape[1])
        if self.monotone is not None:
            check_equal("monotone", "columns", d, self.monotone.shape[0])
        if self.of_column is not None:
            check_equal("of_column", "columns", d, self.of_column.shape[0])
        for j in range(d):
            if not 1 <= self.n_bins[j] < BOX_SLOTS:
                raise ValueError(f"n_bins must be between 1 and {BOX_SLOTS - 1}, "
                                 f"got {self.n_bins[j]}")
        for j in range(self.columns.shape[0]):
            if not 0 <= self.columns[j] < d:
                raise ValueError(f"columns must be below {d}, got {self.columns[j]}")
        return 0

    def __dealloc__(self):
        cdef ptrdiff_t k
        for k in range(self.n_nodes):
            free(self.nodes[k].sums)
        free(self.nodes)
        free(self.waiting)
        free(self.asked)
        free(self.first)
        free(self.hashes)
        free(self.seen)

    def asks(self):
        """Return the boxes of the nodes whose histograms the tree asks for; none: it has grown."""
        return self.boxes[[self.asked[i] for i in range(self.n_asked)]]

    def splits(self):
        """Return the splits of the nodes as `sums_in_nodes` takes them, a line for each box."""
        cdef ptrdiff_t k
        cdef const box_split *split
        cdef int32_t[:, ::1] lines
        splits = np.full((self.conditions.shape[0], 4), NO_COLUMN, np.int32)
        lines = splits
        for k in range(1, self.n_nodes, 2):
            split = &self.nodes[self.nodes[k].parent].split
            lines[self.nodes[k].parent, 0] = split.column
            lines[self.nodes[k].parent, 1] = split.bin
            lines[self.nodes[k].parent, 2] = split.missing_left
            lines[self.nodes[k].parent, 3] = <int32_t>k
        return splits

    def answer(self, const int64_t[::1] sums not None, const int64_t[::1] counts not None,
               const double[::1] units not None):
        """Take the histograms that the tree asks for, one after the other, and grow by a level.

        sums : (n_sums,), as `boxes.histograms` makes them
        counts : the number of rows of each of these nodes
        units : those of gradient and curvature in steps
        """
        cdef ptrdiff_t i
        cdef int64_t size = self.first[self.n_columns]
        self.measure(units)
        check_equal("sums", "sums", self.n_asked * size, sums.shape[0])
        check_equal("counts", "nodes", self.n_asked, counts.shape[0])
        with nogil:
            for i in range(self.n_asked):
                self.nodes[self.asked[i]].count = counts[i]
                memcpy(self.new_sums(self.asked[i]), &sums[i * size], size * sizeof(int64_t))
                self.subtract(self.asked[i])
            self.grow_level(NULL)

    cdef int measure(self, const double[::1] units) except -1:
        check_equal("units", "numbers", 2, units.shape[0])
        self.units[0], self.units[1] = units[0], units[1]
        return 0

    def grow(self, const uint8_t[:, :] bins not None, const int64_t[::1] steps not None,
             const double[::1] units not None):
        """Grow on all rows, to the end.

        bins, steps : of the rows, as in boxes.pyx
        units : those of gradient and curvature in steps
        """
        cdef row_list rows
        cdef ptrdiff_t j, n_rows = bins.shape[1]
        check_equal("bins", "columns", self.n_bins.shape[0], bins.shape[0])
        check_equal("steps", "rows", n_rows, steps.shape[0])
        self.measure(units)
        if n_rows > 1 and bins.strides[1] != 1:
            raise ValueError("bins must have a contiguous last axis, "
                             f"got a stride of {bins.strides[1]} bytes")
        if n_rows > <ptrdiff_t>0xffffffff:
            raise ValueError(f"bins must have fewer than 2**32 rows, got {n_rows}")
        if n_rows == 0 or self.n_asked == 0:
            self.n_asked = 0
            return
        rows.bins, rows.step = &bins[0, 0], bins.strides[0]
        rows.steps = &steps[0]
        rows.rows = <uint32_t *>malloc(n_rows * sizeof(uint32_t))
        rows.spare = <uint32_t *>malloc(n_rows * sizeof(uint32_t))
        rows.few = self.few_of(n_rows)
        rows.listed = <int64_t *>malloc(max(rows.few, <int64_t>BOX_BLOCK) * sizeof(int64_t))
        rows.columns = <box_column *>malloc(self.n_columns * sizeof(box_column))
        try:
            if (rows.rows == NULL or rows.spare == NULL or rows.listed == NULL
                    or rows.columns == NULL):
                raise MemoryError
            with nogil:
                self.draw_rows(&rows, n_rows)
                for j in range(self.n_columns):
                    rows.columns[j] = box_column_of(
                        &bins[self.columns[j], 0], n_rows, self.first[j],
                        self.first[j + 1] - self.first[j])
                while self.n_asked > 0:
                    self.sum_level(&rows)
                    self.grow_level(&rows)
        finally:
            free(rows.rows)
            free(rows.spare)
            free(rows.listed)
            free(rows.columns)

    # ------------------------------------------------------------ histograms

    cdef int64_t *new_sums(self, ptrdiff_t k) except NULL nogil:
        """Return room for the histogram of a node, zeros."""
        self.nodes[k].sums = <int64_t *>calloc(self.first[self.n_columns], sizeof(int64_t))
        if self.nodes[k].sums == NULL:
            with gil:
                raise MemoryError
        return self.nodes[k].sums

    cdef void forget(self, ptrdiff_t k) noexcept nogil:
        free(self.nodes[k].sums)
        self.nodes[k].sums = NULL

    cdef void subtract(self, ptrdiff_t k) noexcept nogil:
        """Give the sibling of a node what is left of the histogram of their parent."""
        cdef int64_t i
        cdef int64_t *left
        cdef int64_t *sums = self.nodes[k].sums
        cdef tree_node *parent
        if k == 0:
            return
        parent = self.nodes + self.nodes[k].parent
        left = parent.sums
        for i in range(self.first[self.n_columns]):
            left[i] -= sums[i]
        parent.sums = NULL
        self.nodes[sibling_of(k)].sums = left
        self.nodes[sibling_of(k)].count = parent.count - self.nodes[k].count

    cdef int64_t few_of(self, int64_t n_rows) noexcept nogil:
        """Return at most how many rows a node and its sibling have that keep no histograms."""
        cdef int64_t size = self.first[self.n_columns]
        return max(ROWS_A_BIN * size // self.n_columns,
                   2 * n_rows * size * <int64_t>sizeof(int64_t) // KEPT_BYTES)

    cdef void draw_rows(self, row_list *rows, ptrdiff_t n_rows) noexcept nogil:
        """List the rows that the tree sees, whose step is not 0."""
        cdef uint64_t limit = <uint64_t>(self.row_share * 4294967296.0 + 0.5)
        cdef uint64_t[BLOCK_WORDS] words
        cdef uint64_t[BLOCK_WORDS] used
        cdef ptrdiff_t b, start, n, n_words, i, n_listed = 0
        for b in range((n_rows + BOX_BLOCK - 1) // BOX_BLOCK):
            start = BOX_BLOCK * b
            n = min(<ptrdiff_t>BOX_BLOCK, n_rows - start)
            n_words = (n + BOX_WORD - 1) // BOX_WORD
            self.kernels.draw(self.seed, limit, start, n, &words[0])
            self.kernels.in_use(rows.steps + start, n, &used[0])
            for i in range(n_words):
                words[i] &= used[i]
            n = self.kernels.list(&words[0], n_words, rows.steps + start, rows.rows + n_listed,
                                  rows.listed)
            for i in range(n_listed, n_listed + n):
                rows.rows[i] += <uint32_t>start
            n_listed += n
        self.nodes[0].start, self.nodes[0].count = 0, n_listed

    cdef int sum_level(self, row_list *rows) except -1 nogil:
        """Make the histograms that are asked for, of pairs of nodes that keep them."""
        cdef ptrdiff_t i, k
        cdef int64_t most
        for i in range(self.n_asked):
            k = self.asked[i]
            most = self.nodes[k].count
            if k > 0:
                most = max(most, self.nodes[sibling_of(k)].count)
            if most > rows.few:
                self.sum_rows(k, rows)
                self.subtract(k)
            elif k > 0:
                self.forget(self.nodes[k].parent)
        return 0

    cdef int sum_rows(self, ptrdiff_t k, row_list *rows) except -1 nogil:
        """Make the histogram of a node."""
        cdef ptrdiff_t i, n
        cdef int64_t start, count = self.nodes[k].count
        cdef int64_t *sums = self.new_sums(k)
        for i in range((count + BOX_BLOCK - 1) // BOX_BLOCK):
            start = self.nodes[k].start + BOX_BLOCK * i
            n = min(<int64_t>BOX_BLOCK, count - BOX_BLOCK * i)
            gather(rows, start, n)
            self.kernels.histograms(rows.columns, self.n_columns, rows.rows + start, rows.listed,
                                    n, sums)
        return 0

    # ------------------------------------------------------------ splits

    cdef void grow_level(self, row_list *rows) noexcept nogil:
        """Look for splits of the nodes of a level, and split the best, as many as there may be
        leaves yet."""
        cdef ptrdiff_t i, n
        self.n_waiting = 0
        for i in range(self.n_asked):
            self.look_at(self.asked[i], rows)
            if self.asked[i] > 0:
                self.look_at(sibling_of(self.asked[i]), rows)
        qsort(self.waiting, self.n_waiting, sizeof(ranked), &by_gain)
        n = min(self.n_waiting, self.most_leaves - self.n_leaves)
        self.n_asked, self.n_leaves = 0, self.n_leaves + n
        for i in range(n):
            self.split(self.waiting[i].node, rows)
        if self.n_leaves == self.most_leaves:
            self.n_asked = 0
        if self.n_asked == 0:
            for i in range(self.n_nodes):
                self.forget(i)
                if not self.nodes[i].is_kept:
                    self.conditions[i, 0, 0] = NO_COLUMN

    cdef void look_at(self, ptrdiff_t k, row_list *rows) noexcept nogil:
        """Find the best split of a node, which waits if it has one."""
        cdef tree_node *node = self.nodes + k
        if node.is_kept or k == 0:
            self.find_split(node, k, rows)
        if node.split.gain > 0:
            self.waiting[self.n_waiting].gain = node.split.gain
            self.waiting[self.n_waiting].node = <int32_t>k
            self.n_waiting += 1
        else:
            self.forget(k)

    cdef void find_split(self, tree_node *node, ptrdiff_t k, row_list *rows) noexcept nogil:
        """Find the split of a node with the largest gain, among the columns that it sees."""
        cdef ptrdiff_t j, n = 0
        cdef double least
        cdef uint32_t largest
        if node.count < 2 * self.min_samples:
            return
        if node.sums == NULL:
            gather(rows, node.start, node.count)
            box_numbers(sum_of(rows.listed, node.count), &self.units[0], &node.total[0])
        else:
            box_numbers(sum_of(node.sums, self.first[1]), &self.units[0], &node.total[0])
        if not node.total[1] > 0:
            return
        least = self.min_samples * node.total[1] / node.count
        largest = self.draw_columns(k)
        for j in range(self.n_columns):
            if self.hashes[j] <= largest:
                self.seen[n] = <int32_t>j
                n += 1
        if node.sums == NULL:
            self.split_few(node, n, least, rows)
            return
        for j in range(n):
            self.split_on(node, self.seen[j], node.sums + self.first[self.seen[j]], least)

    cdef void split_on(self, tree_node *node, ptrdiff_t j, const int64_t *sums,
                       double least) noexcept nogil:
        """Improve the split of a node by those of a column, whose sums are given."""
        self.kernels.best_split(sums, <int>(self.first[j + 1] - self.first[j]), &self.units[0],
                                &node.total[0], self.ridge, least, self.columns[j], &node.split)

    cdef void split_few(self, tree_node *node, ptrdiff_t n_seen, double least,
                        row_list *rows) noexcept nogil:
        """Improve the split of a node of few rows, whose histograms are made some columns at a
        time and not kept."""
        cdef ptrdiff_t b, i, n
        cdef const int32_t *seen
        cdef box_column[AT_A_TIME] columns
        cdef int64_t[AT_A_TIME * BOX_SLOTS] sums
        for b in range((n_seen + AT_A_TIME - 1) // AT_A_TIME):
            seen = self.seen + AT_A_TIME * b
            n = min(<ptrdiff_t>AT_A_TIME, n_seen - AT_A_TIME * b)
            for i in range(n):
                columns[i] = rows.columns[seen[i]]
                columns[i].first = BOX_SLOTS * i
            memset(&sums[0], 0, n * BOX_SLOTS * sizeof(int64_t))
            self.kernels.histograms(&columns[0], n, rows.rows + node.start, rows.listed,
                                    node.count, &sums[0])
            for i in range(n):
                self.split_on(node, seen[i], &sums[BOX_SLOTS * i], least)

    cdef uint32_t draw_columns(self, ptrdiff_t k) noexcept nogil:
        """Draw a share of the columns that a node may be split on, rounded up.

        Return the largest hash of a column that the node sees. `hashes` of columns that it may not
        be split on are larger than any.
        """
        cdef ptrdiff_t j, n = 0
        cdef uint32_t *drawn = self.hashes + self.n_columns
        for j in range(self.n_columns):
            self.hashes[j] = NO_HASH
            if self.may_split(k, self.columns[j]):
                self.hashes[j] = min(box_hash(self.nodes[k].key, self.columns[j]), NO_HASH - 1)
                drawn[n] = self.hashes[j]
                n += 1
        if n == 0 or self.node_share == 1:
            return NO_HASH - 1
        qsort(drawn, n, sizeof(uint32_t), &by_number)
        return drawn[<ptrdiff_t>ceil(self.node_share * n) - 1]

    cdef bint may_split(self, ptrdiff_t k, int32_t column) noexcept nogil:
        """Return whether the columns of a box and this one may meet, and are not too many."""
        cdef ptrdiff_t g, c, n_conditions = self.conditions.shape[1]
        cdef bint fits = self.conditions[k, n_conditions - 1, 0] == NO_COLUMN
        for c in range(n_conditions):
            fits |= self.conditions[k, c, 0] == column
        if self.of_column is not None and fits:
            fits = self.order_with(k, column) <= self.most_order
        if self.groups is None or not fits:
            return fits
        for g in range(self.groups.shape[0]):
            fits = self.groups[g, column]
            for c in range(n_conditions):
                if self.conditions[k, c, 0] != NO_COLUMN:
                    fits &= self.groups[g, self.conditions[k, c, 0]]
            if fits:
                return True
        return False

    cdef ptrdiff_t order_with(self, ptrdiff_t k, int32_t column) noexcept nogil:
        """Return how many columns of X a box sees together with this column."""
        cdef ptrdiff_t c, b, n = 1
        cdef int32_t own
        cdef bint is_new
        for c in range(self.conditions.shape[1]):
            if self.conditions[k, c, 0] == NO_COLUMN:
                break
            own = self.of_column[self.conditions[k, c, 0]]
            is_new = own != self.of_column[column]
            for b in range(c):
                is_new &= own != self.of_column[self.conditions[k, b, 0]]
            n += is_new
        return n

    # ------------------------------------------------------------ children

    cdef void split(self, ptrdiff_t k, row_list *rows) noexcept nogil:
        """Split a node, and ask for the histogram of the smaller half, by curvature."""
        cdef ptrdiff_t side, left = self.n_nodes
        cdef tree_node *node = self.nodes + k
        cdef tree_node *child = self.nodes + left
        self.n_nodes += 2
        for side in range(2):
            child[side].parent, child[side].key = <int32_t>k, key_below(node.key, <uint32_t>side)
            self.bound(k, left + side, side)
            child[side].is_kept = self.keeps_directions(left + side)
        if rows != NULL:
            part_rows(node, child, rows)
        if child[0].is_kept or child[1].is_kept:
            side = node.split.left_curvature > node.total[1] - node.split.left_curvature
            self.asked[self.n_asked] = <int32_t>(left + side)
            self.n_asked += 1
        else:
            self.forget(k)

    cdef void bound(self, ptrdiff_t parent, ptrdiff_t k, ptrdiff_t side) noexcept nogil:
        """Write the box of a side of the split of a node."""
        cdef ptrdiff_t c = 0, n_conditions = self.conditions.shape[1]
        cdef int32_t *box = &self.conditions[k, 0, 0]
        cdef int32_t *condition
        cdef box_split *split = &self.nodes[parent].split
        memcpy(box, &self.conditions[parent, 0, 0], 4 * n_conditions * sizeof(int32_t))
        while box[4 * c] != NO_COLUMN and box[4 * c] < split.column:
            c += 1
        condition = box + 4 * c
        if condition[0] != split.column:
            memmove(condition + 4, condition, 4 * (n_conditions - c - 1) * sizeof(int32_t))
            condition[0], condition[1], condition[2] = split.column, 0, HIGHEST
        condition[3] = split.missing_left == 1 - side
        if split.bin < self.n_bins[split.column] - 1:
            condition[2 - side] = split.bin + <int32_t>side
        elif side == 1:  # all bins are on the left
            condition[1], condition[2] = 1, 0

    cdef bint keeps_directions(self, ptrdiff_t k) noexcept nogil:
        """Return whether a box only rises, or only falls, along all columns with a direction."""
        cdef ptrdiff_t c
        cdef bint rises = False, falls = False
        cdef int32_t *condition
        cdef int8_t sign
        if self.monotone is None:
            return True
        for c in range(self.conditions.shape[1]):
            condition = &self.conditions[k, c, 0]
            if condition[0] == NO_COLUMN or condition[1] > condition[2]:
                continue
            sign = self.monotone[condition[0]]
            rises |= (sign > 0 and condition[1] > 0) or (sign < 0 and condition[2] < HIGHEST)
            falls |= (sign < 0 and condition[1] > 0) or (sign > 0 and condition[2] < HIGHEST)
        return not (rises and falls)


# ---------------------------------------------------------------- rows of nodes


cdef ptrdiff_t part(uint32_t *listed, ptrdiff_t n, const uint8_t *codes, uint8_t start,
                    uint8_t length, uint32_t *spare) noexcept nogil:
    """Put the rows whose codes are in an interval of the ring of 256 before the others, both in the
    same order; return how many they are."""
    cdef ptrdiff_t i, n_inside = 0, n_outside = 0
    cdef uint32_t row
    cdef bint is_inside
    for i in range(n):
        row = listed[i]
        is_inside = <uint8_t>(codes[row] - start) <= length
        listed[n_inside] = spare[n_outside] = row
        n_inside += is_inside
        n_outside += not is_inside
    memcpy(listed + n_inside, spare, n_outside * sizeof(uint32_t))
    return n_inside


cdef inline ptrdiff_t part_left(uint32_t *listed, ptrdiff_t n, const uint8_t *codes, int32_t bin,
                                bint is_missing_left, uint32_t *spare) noexcept nogil:
    """Put the rows on the left of a split before the others; return how many they are."""
    cdef uint8_t start = BOX_MISSING if is_missing_left else 0
    return part(listed, n, codes, start, <uint8_t>(bin - start), spare)


cdef void part_rows(const tree_node *node, tree_node *children, row_list *rows) noexcept nogil:
    """Part the list of the rows of a node between its children."""
    cdef int64_t n_left = part_left(rows.rows + node.start, node.count,
                                    rows.bins + node.split.column * rows.step, node.split.bin,
                                    node.split.missing_left == 1, rows.spare)
    children[0].start, children[0].count = node.start, n_left
    children[1].start, children[1].count = node.start + n_left, node.count - n_left


def sums_in_nodes(const int32_t[:, ::1] splits not None, const int64_t[::1] first not None,
                  const uint8_t[:, :] bins not None, const double[:, :] v not None,
                  double[:, :] sums not None, ptrdiff_t start, ptrdiff_t stop):
    """Write the sum of v[j, i] over the rows i in node k of some trees to sums[j, k].

    splits : int32 (n_nodes, 4), of the nodes of each tree, its root first: the column, the last bin
        on the left, whether missing cells are on the left (1), on the right (0) or in no child
        (-1), and the number in its tree of the left child, which is above its own and which the
        right one follows. A column of -1 is a leaf.
    first : where the nodes of each tree begin, and n_nodes
    bins : uint8 (n_columns, n_rows), each column contiguous
    start, stop : the trees
    """
    cdef ptrdiff_t b, t, k, n, j, most = 0, n_rows = bins.shape[1]
    cdef uint32_t *rows
    cdef int64_t *ends
    cdef uint8_t *misses
    check_splits(splits, first, bins.shape[0], start, stop)
    check_equal("v", "rows", n_rows, v.shape[1])
    check_equal("sums", "outputs", v.shape[0], sums.shape[0])
    check_equal("sums", "nodes", splits.shape[0], sums.shape[1])
    if n_rows > 1 and bins.strides[1] != 1:
        raise ValueError("bins must have a contiguous last axis, "
                         f"got a stride of {bins.strides[1]} bytes")
    for t in range(start, stop):
        sums[:, first[t]:first[t + 1]] = 0
        most = max(most, first[t + 1] - first[t])
    if n_rows == 0 or v.shape[0] == 0:
        return
    rows = <uint32_t *>malloc(2 * BOX_BLOCK * sizeof(uint32_t))
    ends = <int64_t *>malloc(2 * most * sizeof(int64_t) + 1)
    misses = <uint8_t *>malloc(bins.shape[0] + 1)
    try:
        if rows == NULL or ends == NULL or misses == NULL:
            raise MemoryError
        with nogil:
            for j in range(bins.shape[0]):
                misses[j] = memchr(&bins[j, 0], BOX_MISSING, n_rows) != NULL
            for b in range((n_rows + BOX_BLOCK - 1) // BOX_BLOCK):
                n = min(<ptrdiff_t>BOX_BLOCK, n_rows - BOX_BLOCK * b)
                for t in range(start, stop):
                    add_rows(splits[first[t]:first[t + 1]], bins[:, BOX_BLOCK * b:],
                             v[:, BOX_BLOCK * b:], n, misses, rows, ends,
                             sums[:, first[t]:first[t + 1]])
            for t in range(start, stop):
                for k in range(first[t + 1] - 1, first[t] - 1, -1):
                    if splits[k, 0] != NO_COLUMN:
                        for j in range(v.shape[0]):
                            sums[j, k] += (sums[j, first[t] + splits[k, 3]]
                                           + sums[j, first[t] + splits[k, 3] + 1])
    finally:
        free(rows)
        free(ends)
        free(misses)


cdef void add_rows(const int32_t[:, ::1] splits, const uint8_t[:, :] bins, const double[:, :] v,
                   ptrdiff_t n, const uint8_t *misses, uint32_t *rows, int64_t *ends,
                   double[:, :] sums) noexcept nogil:
    """Add v of n rows to the sums of the last node of a tree that each is in.

    rows, ends : room for twice as many rows, and for two ends of the part of each node in their
        list
    """
    cdef ptrdiff_t i, j, k, left, right, n_own
    cdef double total
    cdef const uint8_t *codes
    cdef uint32_t *listed
    memset(ends, 0, 2 * splits.shape[0] * sizeof(int64_t))
    for i in range(n):
        rows[i] = <uint32_t>i
    ends[1] = n
    for k in range(splits.shape[0]):
        listed, n_own = rows + ends[2 * k], ends[2 * k + 1] - ends[2 * k]
        if n_own == 0:
            continue
        if splits[k, 0] != NO_COLUMN:
            codes = &bins[splits[k, 0], 0]
            left = part_left(listed, n_own, codes, splits[k, 1], splits[k, 2] == 1,
                             rows + BOX_BLOCK)
            right = n_own - left
            if splits[k, 2] == -1 and misses[splits[k, 0]]:
                right = part(listed + left, right, codes, 0, HIGHEST, rows + BOX_BLOCK)
            i = 2 * splits[k, 3]
            ends[i] = ends[2 * k]
            ends[i + 1] = ends[i + 2] = ends[2 * k] + left
            ends[i + 3] = ends[i + 2] + right
            listed, n_own = listed + left + right, n_own - left - right
        for j in range(v.shape[0]):
            total = 0
            for i in range(n_own):
                total += v[j, listed[i]]
            sums[j, k] += total


cdef int check_splits(const int32_t[:, ::1] splits, const int64_t[::1] first, ptrdiff_t n_columns,
                      ptrdiff_t start, ptrdiff_t stop) except -1:
    cdef ptrdiff_t t, k, n
    check_equal("splits", "numbers a node", 4, splits.shape[1])
    if not 0 <= start <= stop < first.shape[0]:
        raise ValueError(f"start and stop must be between 0 and {first.shape[0] - 1}, "
                         f"got {(start, stop)}")
    for t in range(start, stop):
        if not 0 <= first[t] < first[t + 1] <= splits.shape[0]:
            raise ValueError(f"first must ascend from 0 to {splits.shape[0]}, "
                             f"got {first[t]} before {first[t + 1]}")
        n = first[t + 1] - first[t]
        for k in range(n):
            if splits[first[t] + k, 0] == NO_COLUMN:
                continue
            if not 0 <= splits[first[t] + k, 0] < n_columns:
                raise ValueError(f"splits must have columns below {n_columns}, "
                                 f"got {splits[first[t] + k, 0]}")
            if not k < splits[first[t] + k, 3] < n - 1:
                raise ValueError(f"splits must have children between {k + 1} and {n - 1} of node "
                                 f"{k}, got {splits[first[t] + k, 3]}")
    return 0
