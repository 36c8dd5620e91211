/* Instantiates box_impl.h for each instruction set, as tile.c does tile_impl.h. Lists of rows and
   histograms, which no vectors speed up, are the same in all. */
#include "box.h"
#include "tile.h"
#include <string.h>

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define TARGET static inline SET __attribute__((always_inline, unused))
#define TARGET_EXTERN static SET __attribute__((unused))

#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_X86_LEVELS 1
#else
#define HAS_X86_LEVELS 0
#endif

static ptrdiff_t list_rows(const uint64_t *words, ptrdiff_t n_words, const int64_t *steps,
                           uint32_t *rows, int64_t *listed) {
    ptrdiff_t n = 0;
    for (ptrdiff_t w = 0; w < n_words; w++)
        for (uint64_t word = words[w]; word; word &= word - 1, n++) {
            uint32_t i = (uint32_t)(64 * w + __builtin_ctzll(word));
            rows[n] = i;
            listed[n] = steps[i];
        }
    return n;
}

/* Columns that are added up together: what is read of a row is read once for all of them, and no
   row waits for the sum of the row before it. */
#define TOGETHER 4
#define CODE(j) columns[j].codes[row]
#define LAST(j) columns[j].last
#define PLAIN(j) sums[columns[j].first + CODE(j)] += own;
#define CAPPED(j) sums[columns[j].first + (CODE(j) < LAST(j) ? CODE(j) : LAST(j))] += own;
#define EACH_ROW(add)                   \
    for (ptrdiff_t i = 0; i < n; i++) { \
        const uint32_t row = rows[i];   \
        const int64_t own = listed[i];  \
        add                             \
    }

static void add_histograms(const box_column *columns, ptrdiff_t n_columns, const uint32_t *rows,
                           const int64_t *listed, ptrdiff_t n, int64_t *sums) {
    for (; n_columns >= TOGETHER; columns += TOGETHER, n_columns -= TOGETHER)
        if (columns[0].exceeds | columns[1].exceeds | columns[2].exceeds | columns[3].exceeds)
            EACH_ROW(CAPPED(0) CAPPED(1) CAPPED(2) CAPPED(3))
        else
            EACH_ROW(PLAIN(0) PLAIN(1) PLAIN(2) PLAIN(3))
    for (ptrdiff_t j = 0; j < n_columns; j++)
        EACH_ROW(CAPPED(j))
}
#undef CODE
#undef LAST
#undef PLAIN
#undef CAPPED
#undef EACH_ROW

/* Bit i of half a word of rows, twice. */
#define TWICE(i) 1u << (i), 1u << (i)
#define OF_FOUR(i) TWICE(i), TWICE(i + 1), TWICE(i + 2), TWICE(i + 3)
static const uint32_t bits_of_rows[64] __attribute__((aligned(64))) = {
    OF_FOUR(0),  OF_FOUR(4),  OF_FOUR(8),  OF_FOUR(12),
    OF_FOUR(16), OF_FOUR(20), OF_FOUR(24), OF_FOUR(28)};

/* Lanes whose bit is set, as masks. */
#if HAS_X86_LEVELS
#define BYTE_BITS(m) (uint16_t)_mm_movemask_epi8((__m128i)(m))
#define LE_BITS(x, t) _mm_movemask_pd((__m128d)((x) <= (t)))
#define GT_BITS(x, t) _mm_movemask_pd((__m128d)((x) > (t)))
#define LANE_BITS(m) _mm_movemask_pd((__m128d)(m))
#else
typedef uint8_t bytes_of_base __attribute__((vector_size(16)));
/* Return each byte that is not 0 as a bit, the first as the lowest. */
static inline uint64_t bits_of_bytes(bytes_of_base m) {
    uint64_t bits = 0;
    for (int i = 0; i < 16; i++) bits |= (uint64_t)(m[i] & 1) << i;
    return bits;
}
#define BYTE_BITS(m) bits_of_bytes((bytes_of_base)(m))
#define LE_BITS(x, t) ((uint64_t)((x)[0] <= (t)[0]) | (uint64_t)((x)[1] <= (t)[1]) << 1)
#define GT_BITS(x, t) ((uint64_t)((x)[0] > (t)[0]) | (uint64_t)((x)[1] > (t)[1]) << 1)
#define LANE_BITS(m) ((uint64_t)((m)[0] & 1) | (uint64_t)((m)[1] & 1) << 1)
#endif
#define NAME(f) JOIN(base, f)
#define SET
#define VB 16
#include "box_impl.h"
#undef NAME
#undef SET
#undef VB
#undef BYTE_BITS
#undef LE_BITS
#undef GT_BITS
#undef LANE_BITS

#if HAS_X86_LEVELS
#define BYTE_BITS(m) (uint32_t)_mm256_movemask_epi8((__m256i)(m))
#define LE_BITS(x, t) _mm256_movemask_pd((__m256d)((x) <= (t)))
#define GT_BITS(x, t) _mm256_movemask_pd((__m256d)((x) > (t)))
#define LANE_BITS(m) _mm256_movemask_pd((__m256d)(m))
/* Of the two halves of each byte, by a table. */
#define NIBBLES 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4
#define HALF(x, shift) _mm256_shuffle_epi8(_mm256_setr_epi8(NIBBLES, NIBBLES), \
                                           (__m256i)(((x) >> (shift)) & 0x0f0f0f0f0f0f0f0fu))
#define COUNT_BYTES(x) _mm256_add_epi8(HALF(x, 0), HALF(x, 4))
#define NAME(f) JOIN(v3, f)
#define SET __attribute__((target("avx2,fma")))
#define VB 32
#include "box_impl.h"
#undef NAME
#undef SET
#undef VB
#undef BYTE_BITS
#undef LE_BITS
#undef GT_BITS
#undef LANE_BITS
#undef COUNT_BYTES

#if defined(__clang__)
#define WIDE /* Clang takes vectors as wide as they are written */
#else
#define WIDE ",prefer-vector-width=512"
#endif
#define BYTE_BITS(m) _mm512_movepi8_mask((__m512i)(m))
#define LE_BITS(x, t) _mm512_cmp_pd_mask((__m512d)(x), (__m512d)(t), _CMP_LE_OQ)
#define GT_BITS(x, t) _mm512_cmp_pd_mask((__m512d)(x), (__m512d)(t), _CMP_GT_OQ)
#define LANE_BITS(m) _mm512_movepi64_mask((__m512i)(m))
#define ADD_WHERE(s, word, bits, v)                                                        \
    ((VEC)_mm512_mask_add_pd((__m512d)(s),                                                 \
                             _mm512_test_epi64_mask((__m512i)(word), (__m512i)(bits)),     \
                             (__m512d)(s), (__m512d)(v)))
#define NAME(f) JOIN(v4, f)
#define SET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma" WIDE)))
#define VB 64
#include "box_impl.h"

/* Processors of this level may count the bits of numbers in an instruction, which takes a third of
   the time; the counts are the same. */
#define COUNTED __attribute__((target("avx512f,avx512vpopcntdq")))
/* The sums of neighbours in a and in b, in turns. */
static inline COUNTED __m512i sums_of_neighbours(__m512i a, __m512i b) {
    return _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}
/* The sums of neighbouring pairs of numbers in a, then in b. */
static inline COUNTED __m512i sums_of_pairs(__m512i a, __m512i b) {
    return _mm512_add_epi64(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd));
}
static COUNTED void v4_common_counted(const uint64_t *left, const uint64_t *right,
                                      ptrdiff_t n_right, ptrdiff_t n_words, int64_t *counts) {
    for (ptrdiff_t b = 0; b < n_right; b++, right += BOX_PANEL) {
        __m512i n[BOX_LEFT];
        UNROLL for (int a = 0; a < BOX_LEFT; a++) n[a] = _mm512_setzero_si512();
        for (ptrdiff_t w = 0; w < n_words; w += 8) {
            __m512i x = _mm512_loadu_si512(right + w);
            UNROLL for (int a = 0; a < BOX_LEFT; a++) {
                __m512i both = _mm512_and_si512(x, _mm512_loadu_si512(left + BOX_PANEL * a + w));
                n[a] = _mm512_add_epi64(n[a], _mm512_popcnt_epi64(both));
            }
        }
        UNROLL for (int a = 0; a < 8; a += 2) n[a] = sums_of_neighbours(n[a], n[a + 1]);
        n[0] = sums_of_pairs(sums_of_pairs(n[0], n[2]), sums_of_pairs(n[4], n[6]));
        _mm512_storeu_si512(counts + BOX_LEFT * b, n[0]);
    }
}
#endif

box_common_kernel box_common(int level) {
#if HAS_X86_LEVELS
    if (level == LEVEL_V4 && __builtin_cpu_supports("avx512vpopcntdq")) return v4_common_counted;
    if (level != LEVEL_BASELINE) return v3_common; /* no slower than with wider vectors */
#endif
    (void)level;
    return base_common;
}

const box_kernels *box_select(int level) {
#if HAS_X86_LEVELS
    if (level == LEVEL_V4) return &v4_kernels;
    if (level == LEVEL_V3) return &v3_kernels;
#endif
    (void)level;
    return &base_kernels;
}
