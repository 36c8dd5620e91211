/* tile_impl.h for one type, for each instruction set. */
#if defined(__clang__)
/* Clang takes vectors as wide as they are written, and ignores a whole attribute if a part of it is
 * unknown to it. */
#define WIDE
#else
#define WIDE ",prefer-vector-width=512"
#endif
#define NAME(f) JOIN(JOIN(T, base), f)
#define SET
#if defined(__FP_FAST_FMA) || defined(__aarch64__)
#define FUSED(a, b, c) __builtin_fma(a, b, c)
#else
#define FUSED(a, b, c) ((a) * (b) + (c))
#endif
#define VB 16
#define MR 4
#define NV 2
#define AT_ONCE 4
#include "tile_impl.h"
#undef SET

#if HAS_X86_LEVELS
#define NAME(f) JOIN(JOIN(T, v3), f)
#define SET __attribute__((target("avx2,fma")))
#define FUSED(a, b, c) __builtin_fma(a, b, c)
#define VB 32
#define MR 4
#define NV 2
#define AT_ONCE 4
#include "tile_impl.h"
#undef SET

#define NAME(f) JOIN(JOIN(T, v4), f)
#define SET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma" WIDE)))
#define FUSED(a, b, c) __builtin_fma(a, b, c)
#define VB 64
#if SINGLE
#define MR 8
#define NV 2
#else
#define MR 4
#define NV 4
#endif
#define AT_ONCE 4
#include "tile_impl.h"
#undef SET
#endif
#undef WIDE
