/* Instantiates tile_impl.h for float and double and for each instruction set, and chooses one at
 * run time.
 *
 * Explicit vectors of a fixed width keep the order of every sum the same on each call. A table
 * chooses the instruction set, not the loader, so that tests can run each of them and compare.
 */
#include "tile.h"
#include <math.h>
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
#define HAS_X86_LEVELS 1
#else
#define HAS_X86_LEVELS 0
#endif

#define SINGLE 0
#define T double
#define INT int64_t
#include "tile_levels.h"
#undef SINGLE
#undef T
#undef INT

#define SINGLE 1
#define T float
#define INT int32_t
#include "tile_levels.h"

int tile_best_level(void) {
#if HAS_X86_LEVELS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("fma"))
        return LEVEL_V4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return LEVEL_V3;
#endif
    return LEVEL_BASELINE;
}

const tile_kernels *tile_select(int single, int level, int default_level) {
    if (level < 0 || level > tile_best_level()) level = default_level;
#if HAS_X86_LEVELS
    if (level == LEVEL_V4) return single ? &float_v4_kernels : &double_v4_kernels;
    if (level == LEVEL_V3) return single ? &float_v3_kernels : &double_v3_kernels;
#endif
    (void)level;
    return single ? &float_base_kernels : &double_base_kernels;
}
