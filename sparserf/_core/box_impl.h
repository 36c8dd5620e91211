/* The kernels of box.h for one instruction set. It is included with
 *   NAME(f)          the name of f for this instruction set
 *   SET              the function attribute that turns the instruction set on
 *   VB               bytes in a vector
 *   BYTE_BITS(m)     the VB bits of a vector of bytes that are 0 or -1
 *   LANE_BITS(m)     the bits of a vector of 8-byte lanes that are 0 or -1
 *   LE_BITS(x, t)    the bits of x <= t, of a vector of doubles; GT_BITS of x > t
 *   ADD_WHERE(s, word, bits, v)  s + v in the lanes in which word has bits, s elsewhere; may be
 *                    left out
 *   COUNT_BYTES(x)   the number of bits of each byte of a vector; may be left out
 */
#define VL (VB / 8)
typedef uint8_t NAME(bytes) __attribute__((vector_size(VB), aligned(1), may_alias));
typedef double NAME(vec) __attribute__((vector_size(VB), aligned(8), may_alias));
typedef int64_t NAME(ivec) __attribute__((vector_size(VB), aligned(8), may_alias));
typedef uint64_t NAME(words) __attribute__((vector_size(VB), aligned(8), may_alias));
#define BYTES NAME(bytes)
#define VEC NAME(vec)
#define IVEC NAME(ivec)
#define WORDS NAME(words)
/* Half a word of bits in each half of a lane. */
typedef uint32_t NAME(halves) __attribute__((vector_size(VB), aligned(4), may_alias));
#define HALVES NAME(halves)
#ifndef ADD_WHERE
#define ADD_WHERE(s, word, bits, v) \
    ((s) + (VEC)((HALVES)(v) & (HALVES)(((word) & (bits)) == (bits))))
#endif

/* ---------------------------------------------------------------- which rows */

TARGET uint64_t NAME(word_of_bins)(const uint8_t *bins, ptrdiff_t step, const bin_test *tests,
                                   int n_tests) {
    BYTES in[64 / VB];
    UNROLL for (int j = 0; j < 64 / VB; j++) in[j] = ~(BYTES){0};
    for (int k = 0; k < n_tests; k++) {
        const uint8_t *b = bins + tests[k].column * step;
        BYTES start = (BYTES){0} + tests[k].start, length = (BYTES){0} + tests[k].length;
        UNROLL for (int j = 0; j < 64 / VB; j++)
            in[j] &= (BYTES)(*(const BYTES *)(b + j * VB) - start <= length);
    }
    uint64_t word = 0;
    UNROLL for (int j = 0; j < 64 / VB; j++) word |= (uint64_t)BYTE_BITS(in[j]) << (j * VB % 64);
    return word;
}

TARGET_EXTERN void NAME(inside_bins)(const uint8_t *bins, ptrdiff_t step, ptrdiff_t n_rows,
                                     const bin_test *tests, int n_tests,
                                     uint64_t *words) {
    ptrdiff_t n_words = n_rows / 64;
    for (ptrdiff_t w = 0; w < n_words; w++)
        words[w] = NAME(word_of_bins)(bins + 64 * w, step, tests, n_tests);
    if (n_rows % 64 == 0) return;
    /* The last rows from copies: a vector would read past their end. */
    uint64_t word = ((uint64_t)1 << (n_rows % 64)) - 1;
    for (int k = 0; k < n_tests; k++) {
        uint8_t last[64] = {0};
        bin_test test = {0, tests[k].start, tests[k].length};
        memcpy(last, bins + tests[k].column * step + 64 * n_words, (size_t)(n_rows % 64));
        word &= NAME(word_of_bins)(last, 0, &test, 1);
    }
    words[n_words] = word;
}

TARGET_EXTERN uint64_t NAME(inside_numbers)(const double *x, const number_test *tests,
                                            int n_tests) {
    uint64_t word = ~(uint64_t)0;
    for (int k = 0; k < n_tests; k++) {
        const double *column = x + 64 * (ptrdiff_t)tests[k].column;
        VEC bound = (VEC){0} + tests[k].bound;
        uint64_t passed = 0;
        /* NaN passes no comparison, and so passes where what is asked is that the opposite
         * comparison fails */
        if (tests[k].above != tests[k].may_miss) {
            UNROLL for (int j = 0; j < 64 / VL; j++)
                passed |= (uint64_t)GT_BITS(*(const VEC *)(column + j * VL), bound) << (j * VL);
        } else {
            UNROLL for (int j = 0; j < 64 / VL; j++)
                passed |= (uint64_t)LE_BITS(*(const VEC *)(column + j * VL), bound) << (j * VL);
        }
        word &= tests[k].may_miss ? ~passed : passed;
    }
    return word;
}

TARGET_EXTERN void NAME(draw)(uint64_t seed, uint64_t limit, uint64_t first_row, ptrdiff_t n_rows,
                              uint64_t *words) {
    uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32), last = (uint32_t)(limit - 1);
    for (ptrdiff_t w = 0; w < (n_rows + 63) / 64; w++) {
        uint64_t row = first_row + 64 * (uint64_t)w;
        uint8_t in[64];
        uint32_t from = (uint32_t)row, carry = (uint32_t)((row + 63) >> 32) * 0x9e3779b9u;
        if (limit == 0) {
            memset(in, 0, sizeof in);
        } else if ((row + 63) >> 32 != row >> 32) { /* rows on both sides of a multiple of 2^32 */
            for (int i = 0; i < 64; i++) {
                uint32_t above = (uint32_t)((row + i) >> 32) * 0x9e3779b9u;
                in[i] = box_mixed(box_mixed((uint32_t)(row + i) ^ low) + high + above) <= last;
            }
        } else {
            for (int i = 0; i < 64; i++)
                in[i] = box_mixed(box_mixed((from + i) ^ low) + high + carry) <= last;
        }
        uint64_t word = 0;
        UNROLL for (int j = 0; j < 64 / VB; j++)
            word |= (uint64_t)BYTE_BITS(-*(const BYTES *)(in + j * VB)) << (j * VB % 64);
        words[w] = word;
    }
    if (n_rows % 64) words[n_rows / 64] &= ((uint64_t)1 << (n_rows % 64)) - 1;
}

/* The bits of the numbers that are not 0, of at most 64. */
TARGET uint64_t NAME(nonzeros)(const int64_t *x, int n) {
    uint64_t bits = 0;
    int i = 0;
    for (; i + VL <= n; i += VL) bits |= (uint64_t)LANE_BITS(*(const IVEC *)(x + i) != 0) << i;
    for (; i < n; i++) bits |= (uint64_t)(x[i] != 0) << i;
    return bits;
}

TARGET_EXTERN void NAME(in_use)(const int64_t *steps, ptrdiff_t n_rows, uint64_t *words) {
    for (ptrdiff_t w = 0; w < (n_rows + 63) / 64; w++)
        words[w] = NAME(nonzeros)(steps + 64 * w,
                                  (int)(n_rows - 64 * w < 64 ? n_rows - 64 * w : 64));
}

/* ---------------------------------------------------------------- sums over the rows of a box */

/* The number of bits of each byte. */
TARGET WORDS NAME(bits_of_bytes)(WORDS x) {
#ifdef COUNT_BYTES
    return (WORDS)COUNT_BYTES(x);
#else
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    return (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
#endif
}

/* Add the bits of x and y to sum, and return the carries. */
TARGET WORDS NAME(add_bits)(WORDS *sum, WORDS x, WORDS y) {
    WORDS either = x ^ y, carry = (x & y) | (either & *sum);
    *sum ^= either;
    return carry;
}

/* The number of bits in both. Carries leave one of eight vectors to count; counts in a byte are at
 * most 128, of BOX_PANEL words. */
TARGET int64_t NAME(common_bits)(const uint64_t *a, const uint64_t *b, ptrdiff_t n_words) {
    const uint64_t low_bytes = 0x00ff00ff00ff00ffu;
    WORDS ones = {0}, twos = {0}, fours = {0}, eights = {0}, x[8];
    uint64_t count = 0;
    ptrdiff_t w = 0;
    for (; w + 8 * VL <= n_words; w += 8 * VL) {
        UNROLL for (int j = 0; j < 8; j++)
            x[j] = *(const WORDS *)(a + w + j * VL) & *(const WORDS *)(b + w + j * VL);
        UNROLL for (int j = 0; j < 8; j += 2) x[j] = NAME(add_bits)(&ones, x[j], x[j + 1]);
        UNROLL for (int j = 0; j < 8; j += 4) x[j] = NAME(add_bits)(&twos, x[j], x[j + 2]);
        eights += NAME(bits_of_bytes)(NAME(add_bits)(&fours, x[0], x[4]));
    }
    ones = NAME(bits_of_bytes)(ones) + (NAME(bits_of_bytes)(twos) << 1)
           + (NAME(bits_of_bytes)(fours) << 2);
    for (; w < n_words; w += VL)
        ones += NAME(bits_of_bytes)(*(const WORDS *)(a + w) & *(const WORDS *)(b + w));
    ones = (ones & low_bytes) + ((ones >> 8) & low_bytes)
           + (((eights & low_bytes) + ((eights >> 8) & low_bytes)) << 3);
    UNROLL for (int l = 0; l < VL; l++) count += ones[l];
    return (int64_t)(count * 0x0001000100010001u >> 48); /* its four parts */
}

TARGET_EXTERN void NAME(common)(const uint64_t *left, const uint64_t *right, ptrdiff_t n_right,
                                ptrdiff_t n_words, int64_t *counts) {
    for (ptrdiff_t b = 0; b < n_right; b++)
        for (ptrdiff_t a = 0; a < BOX_LEFT; a++)
            counts[BOX_LEFT * b + a] = NAME(common_bits)(left + BOX_PANEL * a,
                                                         right + BOX_PANEL * b, n_words);
}

/* s + v for the rows of vector j of a word that are in the box, s for the others. */
TARGET VEC NAME(add_where)(VEC s, uint64_t word, int j, VEC v) {
    HALVES half = (HALVES){0} + (uint32_t)(j * VL < 32 ? word : word >> 32);
    HALVES bits = *(const HALVES *)(bits_of_rows + 2 * (j * VL % 32));
    return ADD_WHERE(s, half, bits, v);
}

/* Sums of 16 interleaved parts of the rows, in every instruction set. */
#define PARTS (16 / VL)
TARGET void NAME(add_word)(VEC *sum, uint64_t word, const double *v) {
    UNROLL for (int j = 0; j < 64 / VL; j++)
        sum[j % PARTS] = NAME(add_where)(sum[j % PARTS], word, j, *(const VEC *)(v + j * VL));
}

TARGET_EXTERN double NAME(sum)(const uint64_t *words, ptrdiff_t n_rows, const double *v) {
    VEC sum[PARTS];
    double last[64] = {0}, parts[16];
    UNROLL for (int j = 0; j < PARTS; j++) sum[j] = (VEC){0};
    for (ptrdiff_t w = 0; w < n_rows / 64; w++)
        if (words[w]) NAME(add_word)(sum, words[w], v + 64 * w);
    if (n_rows % 64) {
        memcpy(last, v + n_rows / 64 * 64, (n_rows % 64) * sizeof(double));
        NAME(add_word)(sum, words[n_rows / 64], last);
    }
    UNROLL for (int j = 0; j < PARTS; j++) *(VEC *)(parts + j * VL) = sum[j];
    for (int width = 8; width; width /= 2)
        for (int l = 0; l < width; l++) parts[l] += parts[l + width];
    return parts[0];
}

TARGET void NAME(apply_word)(const uint64_t *words, ptrdiff_t n_boxes, const double *coef,
                             double *out) {
    VEC f[64 / VL];
    UNROLL for (int j = 0; j < 64 / VL; j++) f[j] = *(const VEC *)(out + j * VL);
    for (ptrdiff_t r = 0; r < n_boxes; r++) {
        if (!words[r]) continue;
        VEC c = (VEC){0} + coef[r];
        UNROLL for (int j = 0; j < 64 / VL; j++) f[j] = NAME(add_where)(f[j], words[r], j, c);
    }
    UNROLL for (int j = 0; j < 64 / VL; j++) *(VEC *)(out + j * VL) = f[j];
}

/* The words of one row of words are far from each other: as many as lie in a line of the cache are
 * turned at a time. */
TARGET_EXTERN void NAME(apply)(const uint64_t *words, ptrdiff_t step, ptrdiff_t n_boxes,
                               const double *coef, ptrdiff_t n_rows,
                               double *out) {
    uint64_t turned[BOX_LINE][BOX_RIGHT];
    double last[64] = {0};
    for (ptrdiff_t i = 0; i < n_rows; i += 64 * BOX_LINE)
        for (ptrdiff_t first = 0; first < n_boxes; first += BOX_RIGHT) {
            ptrdiff_t n = n_boxes - first < BOX_RIGHT ? n_boxes - first : BOX_RIGHT;
            const uint64_t *from = words + first * step + i / 64;
            int n_words = (int)(n_rows - i < 64 * BOX_LINE ? (n_rows - i + 63) / 64 : BOX_LINE);
            for (ptrdiff_t r = 0; r < n; r++)
                for (int w = 0; w < n_words; w++) turned[w][r] = from[r * step + w];
            for (int w = 0; w < n_words; w++) {
                double *to = out + i + 64 * w;
                size_t size = n_rows - i - 64 * w < 64 ? (n_rows - i - 64 * w) * sizeof(double) : 0;
                if (size) to = memcpy(last, to, size);
                NAME(apply_word)(turned[w], n, coef + first, to);
                if (size) memcpy(out + i + 64 * w, last, size);
            }
        }
}

/* v, or 1, in the box and 0 elsewhere, for the 64 rows of a word, of which n are there. */
TARGET void NAME(spread_word)(uint64_t word, const double *v, int n, double *out) {
    double last[64];
    VEC one = (VEC){0} + 1.0;
    if (v && n < 64) v = memcpy(last, v, n * sizeof(double));
    UNROLL for (int j = 0; j < 64 / VL; j++)
        *(VEC *)(out + j * VL) =
            NAME(add_where)((VEC){0}, word, j, v ? *(const VEC *)(v + j * VL) : one);
}

#define SPREAD(NUMBER)                                                              \
    for (ptrdiff_t w = 0; w < (n_rows + 63) / 64; w++) {                            \
        int n = (int)(n_rows - 64 * w < 64 ? n_rows - 64 * w : 64);                 \
        double of_rows[64];                                                         \
        NUMBER *to = out + 64 * w;                                                  \
        NAME(spread_word)(words[w], v ? v + 64 * w : NULL, n, of_rows);             \
        if (n == 64)                                                                \
            for (int i = 0; i < 64; i++) to[i] = (NUMBER)of_rows[i];                \
        else                                                                        \
            for (int i = 0; i < n; i++) to[i] = (NUMBER)of_rows[i];                 \
    }

TARGET_EXTERN void NAME(spread_single)(const uint64_t *words, ptrdiff_t n_rows, const double *v,
                                       float *out) {
    SPREAD(float)
}
TARGET_EXTERN void NAME(spread_double)(const uint64_t *words, ptrdiff_t n_rows, const double *v,
                                       double *out) {
    SPREAD(double)
}
#undef SPREAD

/* ---------------------------------------------------------------- bins and splits */

TARGET_EXTERN void NAME(bin)(const double *x, const double *edges, int n_edges, uint8_t *codes) {
    int64_t place[64] = {0};
    /* No branch: which way a search goes cannot be foretold. */
    for (int64_t half = (n_edges + 1) / 2; half; half /= 2)
        for (int i = 0; i < 64; i++)
            place[i] += half & -(int64_t)(edges[place[i] + half - 1] < x[i]);
    for (int i = 0; i < 64; i++) codes[i] = (uint8_t)(place[i] | -(int64_t)(x[i] != x[i]));
}

/* Gains of the splits after each of n slots, where the left side has the prefix sums (g, c) and
 * `more`, in arrays that are padded to whole vectors with sides that have nothing. Return the
 * position of the largest above `best`, the first of equal ones; -1: none. */
TARGET int NAME(best_place)(const double *g, const double *c, int n, const double *more,
                            const double *total, double ridge,
                            double least, double *best) {
    double gains[BOX_SLOTS + 8];
    VEC largest = (VEC){0} + *best;
    double whole = total[0] * total[0] / (total[1] + ridge), top = *best;
    for (int b = 0; b < n; b += VL) {
        VEC left = *(const VEC *)(g + b) + more[0], right = total[0] - left;
        VEC low = *(const VEC *)(c + b) + more[1], high = total[1] - low;
        IVEC is_large = (low >= least) & (high >= least);
        low += ridge;
        high += ridge;
        VEC gain = (left * left * high + right * right * low) / (low * high) - whole;
        gain = (VEC)((IVEC)gain & is_large);
        *(VEC *)(gains + b) = gain;
        largest = (VEC)(((IVEC)gain & (gain > largest)) | ((IVEC)largest & ~(gain > largest)));
    }
    UNROLL for (int l = 0; l < VL; l++) top = largest[l] > top ? largest[l] : top;
    if (!(top > *best)) return -1;
    *best = top;
    int b = 0;
    while (gains[b] != top) b++;
    return b;
}

TARGET_EXTERN void NAME(best_split)(const int64_t *sums, int n_slots, const double *units,
                                    const double *total, double ridge, double least,
                                    int32_t column, box_split *best) {
    double g[BOX_SLOTS + 8], c[BOX_SLOTS + 8], none[2] = {0, 0}, missing[2], left[2];
    uint8_t slots[BOX_SLOTS];
    int n = 0, is_missing = sums[n_slots - 1] != 0;
    int64_t sum = 0;
    box_numbers(sums[n_slots - 1], units, missing);
    /* Slots of no rows change no side. */
    for (int start = 0; start < n_slots - 1; start += 64) {
        int n_here = n_slots - 1 - start < 64 ? n_slots - 1 - start : 64;
        uint64_t bits = NAME(nonzeros)(sums + start, n_here);
        for (; bits; bits &= bits - 1, n++) {
            unsigned b = slots[n] = (uint8_t)(start + __builtin_ctzll(bits));
            box_numbers(sum += sums[b], units, left);
            g[n] = left[0], c[n] = left[1];
        }
    }
    for (int b = n; b < (n + VL - 1) / VL * VL; b++) g[b] = 0, c[b] = -1 - missing[1];
    for (int side = 0; side <= is_missing; side++) {
        const double *more = side ? missing : none;
        int at = NAME(best_place)(g, c, n, more, total, ridge, least, &best->gain);
        if (at < 0) continue;
        best->column = column, best->bin = slots[at];
        best->missing_left = is_missing ? side : -1;
        best->left_curvature = c[at] + more[1];
    }
}

TARGET_EXTERN void NAME(add_single)(const float *restrict x, ptrdiff_t n, double a,
                                    double *restrict y) {
    for (ptrdiff_t i = 0; i < n; i++) y[i] += a * x[i];
}
TARGET_EXTERN void NAME(add_double)(const double *restrict x, ptrdiff_t n, double a,
                                    double *restrict y) {
    for (ptrdiff_t i = 0; i < n; i++) y[i] += a * x[i];
}

static const box_kernels NAME(kernels) = {
    NAME(inside_bins),   NAME(inside_numbers), NAME(draw),          NAME(in_use),
    NAME(sum),           NAME(apply),          NAME(spread_single), NAME(spread_double),
    NAME(bin),           list_rows,            add_histograms,      NAME(best_split),
    NAME(add_single),    NAME(add_double)};

#undef VL
#undef BYTES
#undef VEC
#undef IVEC
#undef WORDS
#undef HALVES
#undef ADD_WHERE
#undef PARTS
