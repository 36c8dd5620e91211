/* tile_impl.h for one type, for each instruction set. */
#define NAME(f) JOIN(JOIN(T, base), f)
#define SET
#define VB 16
#define MR 4
#define NV 2
#include "tile_impl.h"
#undef SET

#if HAS_X86_LEVELS
#define NAME(f) JOIN(JOIN(T, v3), f)
#define SET __attribute__((target("avx2,fma")))
#define VB 32
#define MR 4
#define NV 2
#include "tile_impl.h"
#undef SET

#define NAME(f) JOIN(JOIN(T, v4), f)
#define SET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")))
#define VB 64
#if SINGLE
#define MR 8
#define NV 2
#else
#define MR 4
#define NV 4
#endif
#include "tile_impl.h"
#undef SET
#endif
