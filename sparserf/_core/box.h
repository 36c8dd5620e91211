/* Rows in boxes: which rows of a block lie in a box, as the bits of 64-bit words, and sums over
 * these rows.
 *
 * Bit i % 64 of word i / 64 says whether row i is in the box; the bits past the last row are 0. A
 * box is a conjunction of tests: on bins (bytes), an interval of the ring of 256 codes, in which
 * the code of a missing cell comes after the last bin and before the first; on numbers, a bound.
 */
#ifndef SPARSERF_BOX_H
#define SPARSERF_BOX_H
#include <stddef.h>
#include <stdint.h>

#define BOX_WORD 64        /* rows of a word */
#define BOX_MISSING 255    /* the bin of a missing cell */
#define BOX_SLOTS 256      /* most sums of a column: 255 bins, and the missing cells */
#define BOX_BLOCK 4096     /* rows whose list, with their gradients, stays in the cache */
/* Pairs of boxes are counted by panels of their words: BOX_LEFT boxes that stay in the first-level
 * cache, by BOX_RIGHT that stay in the second. */
#define BOX_PANEL 256      /* words of a box */
#define BOX_LEFT 8
#define BOX_RIGHT 128
#define BOX_LINE 8         /* words of a line of the cache */

/* Whether (bin - start) mod 256 <= length. */
typedef struct {
    int32_t column;
    uint8_t start, length;
} bin_test;

/* Whether x <= bound, or x > bound where above; NaN passes where may_miss. */
typedef struct {
    int32_t column;
    int8_t above, may_miss;
    double bound;
} number_test;

/* The step of a row is its gradient and its curvature, both as whole numbers of units, in one
 * number: 2^32 gradient + curvature. So is a sum of steps, exact while all |gradients| add up to
 * less than 2^31, and all curvatures, which are at least 0, to less than 2^32. */
static inline void box_numbers(int64_t step, const double *units, double *numbers) {
    numbers[0] = units[0] * (double)(int32_t)(step >> 32);
    numbers[1] = units[1] * (double)(uint32_t)step;
}

/* A column whose sums begin at `first`: one for each bin, and last, that of the missing cells.
 * exceeds : whether a code is above `last`, as that of a missing cell may be */
typedef struct {
    const uint8_t *codes;
    int64_t first;
    int32_t last, exceeds;
} box_column;
static inline box_column box_column_of(const uint8_t *codes, ptrdiff_t n_rows, int64_t first,
                                       int64_t n_slots) {
    uint8_t most = 0;
    if (n_slots < BOX_SLOTS)
        for (ptrdiff_t i = 0; i < n_rows; i++) most = codes[i] > most ? codes[i] : most;
    return (box_column){codes, first, (int32_t)n_slots - 1, most >= n_slots};
}

/* The split of a node with the largest gain: rows up to `bin` to the left; missing_left: -1 where
 * the node has no missing cell. */
typedef struct {
    double gain, left_curvature;
    int32_t column, bin, missing_left;
} box_split;

/* The kernels of one instruction set. All give the same bits. */
typedef struct {
    /* words = whether rows are in a box; bins of column j begin at bins + j * step */
    void (*inside_bins)(const uint8_t *bins, ptrdiff_t step, ptrdiff_t n_rows, const bin_test *,
                        int n_tests, uint64_t *words);
    /* word of at most 64 rows; numbers of column j begin at x + 64 * j */
    uint64_t (*inside_numbers)(const double *x, const number_test *, int n_tests);
    /* words = whether hash(seed, row) < limit, for rows from first_row on */
    void (*draw)(uint64_t seed, uint64_t limit, uint64_t first_row, ptrdiff_t n_rows,
                 uint64_t *words);
    /* words = whether the step of a row is not 0 */
    void (*in_use)(const int64_t *steps, ptrdiff_t n_rows, uint64_t *words);
    /* sum of v over the rows in the box */
    double (*sum)(const uint64_t *words, ptrdiff_t n_rows, const double *v);
    /* out[i] += sum of coef[r] over the boxes r that row i is in, whose words begin at r * step */
    void (*apply)(const uint64_t *words, ptrdiff_t step, ptrdiff_t n_boxes, const double *coef,
                  ptrdiff_t n_rows, double *out);
    /* out[i] = v[i], or 1 where v is NULL, in the box; 0 elsewhere */
    void (*spread_single)(const uint64_t *words, ptrdiff_t n_rows, const double *v, float *out);
    void (*spread_double)(const uint64_t *words, ptrdiff_t n_rows, const double *v, double *out);
    /* codes[i] = the number of edges below x[i], BOX_MISSING where x[i] is NaN, for 64 numbers;
     * there are 2^k - 1 edges, ascending, padded with infinity */
    void (*bin)(const double *x, const double *edges, int n_edges, uint8_t *codes);
    /* Write the positions of the bits of the words, and the steps at these, to lists; return how
     * many. */
    ptrdiff_t (*list)(const uint64_t *words, ptrdiff_t n_words, const int64_t *steps,
                      uint32_t *rows, int64_t *listed);
    /* Add the steps of the n rows in a list to the sums of their bins in each column. */
    void (*histograms)(const box_column *columns, ptrdiff_t n_columns, const uint32_t *rows,
                       const int64_t *listed, ptrdiff_t n, int64_t *sums);
    /* Improve `best` by the splits of a column: sums are of n_slots bins, the last of missing
     * cells, whose total, gradient and curvature in numbers, is that of the node; each side must
     * have a curvature of at least `least`, which is positive. */
    void (*best_split)(const int64_t *sums, int n_slots, const double *units, const double *total,
                       double ridge, double least, int32_t column, box_split *best);
    /* y += a x, of n numbers: a change of the slopes of a quadratic, rounded alike in all */
    void (*add_single)(const float *x, ptrdiff_t n, double a, double *y);
    void (*add_double)(const double *x, ptrdiff_t n, double a, double *y);
} box_kernels;

/* Two rounds of Wellons' low-bias mixer of 32 bits, one for each half of the key. */
static inline uint32_t box_mixed(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x21f0aaadu;
    x = (x ^ (x >> 15)) * 0x735a2d97u;
    return x ^ (x >> 15);
}
static inline uint32_t box_hash(uint64_t key, uint32_t number) {
    return box_mixed(box_mixed(number ^ (uint32_t)key) + (uint32_t)(key >> 32));
}

/* The kernels of a level of tile.h that this processor has. */
const box_kernels *box_select(int level);
/* counts[BOX_LEFT * b + a] = the number of bits in both box a of BOX_LEFT and box b of n_right,
 * whose words, a multiple of 8 and at most BOX_PANEL, begin BOX_PANEL apart; the fastest of a level
 * on this processor. */
typedef void (*box_common_kernel)(const uint64_t *left, const uint64_t *right, ptrdiff_t n_right,
                                  ptrdiff_t n_words, int64_t *counts);
box_common_kernel box_common(int level);
#endif
