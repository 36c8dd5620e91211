/* cos, sin, tanh and exp of a vector: fixed polynomials after range reduction, no table, no branch.
 *
 * Included by tile_impl.h once a type and instruction set, with
 *   T, INT        the scalar type and the signed integer of its size
 *   SINGLE        1 where T is float, 0 where it is double
 *   VB            bytes in a vector
 *   NAME(f)       the name of f for this type and instruction set
 *   TARGET        the function attribute that turns the instruction set on
 *
 * Error: about 3 ulp at most in double (tanh 4, exp 1.5) for |x| <= ARGUMENT_LIMIT (sin and cos
 * relative to max(|result|, 2^-20)); beyond the limit tile_impl.h calls libm. The reduction
 * subtracts k*pi in three (float: four) parts whose products with k are exact, so that it needs no
 * fused multiply-add to be right.
 */
#define VL (VB / (int)sizeof(T))
typedef T NAME(vec) __attribute__((vector_size(VB), aligned(sizeof(T)), may_alias));
typedef INT NAME(ivec) __attribute__((vector_size(VB), aligned(sizeof(T)), may_alias));
#define VEC NAME(vec)
#define IVEC NAME(ivec)

#if SINGLE
#define ROUNDING 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer, kept in the low bits */
#define SIGN_SHIFT 31
#define EXPONENT_SHIFT 23
#define EXPONENT_BIAS 127
#define ARGUMENT_LIMIT 2e4f
#define TANH_LIMIT 10.0f
#define EXP_LIMIT 87.0f /* where exp(-x) is still normal */
#else
#define ROUNDING 6755399441055744.0 /* 1.5 * 2^52 */
#define SIGN_SHIFT 63
#define EXPONENT_SHIFT 52
#define EXPONENT_BIAS 1023
#define ARGUMENT_LIMIT 1e6
#define TANH_LIMIT 20.0
#define EXP_LIMIT 708.0
#endif

/* Every step is taken for AT_ONCE vectors before the next: one vector alone would wait for each of
 * its own results. */
#define EACH UNROLL for (int j = 0; j < AT_ONCE; j++)

/* sin(k*pi + r) = (-1)^k sin(r): r = x - (k - shift)*pi lies in [-pi/2, pi/2];
 * shift = 1/2 gives cos(x). */
TARGET void NAME(sine)(VEC *x, T shift) {
    VEC magic[AT_ONCE], k[AT_ONCE], r[AT_ONCE], s[AT_ONCE], p[AT_ONCE];
    EACH magic[j] = x[j] * (T)0.31830988618379067154 + shift;
    EACH magic[j] = magic[j] + (T)ROUNDING;
    EACH k[j] = (magic[j] - (T)ROUNDING) - shift;
#if SINGLE
    EACH r[j] = x[j] - k[j] * 3.140625f;
    EACH r[j] = r[j] - k[j] * 9.670257568359375e-4f;
    EACH r[j] = r[j] - k[j] * 6.277114152908325e-7f;
    EACH r[j] = r[j] - k[j] * 1.2154201e-10f;
    EACH s[j] = r[j] * r[j];
    EACH p[j] = s[j] * 2.6346056468e-6f + -1.98226929285e-4f;
    EACH p[j] = p[j] * s[j] + 8.33324178982e-3f;
    EACH p[j] = p[j] * s[j] + -1.66666659603e-1f;
#else
    EACH r[j] = x[j] - k[j] * 0x1.921fb54p+1;
    EACH r[j] = r[j] - k[j] * 0x1.10b46118p-29;
    EACH r[j] = r[j] - k[j] * 0x1.313198a2e0370p-60;
    EACH s[j] = r[j] * r[j];
    EACH p[j] = s[j] * 2.7313442774399189806e-15 + -7.6439622324426545328e-13;
    EACH p[j] = p[j] * s[j] + 1.6058977059718266793e-10;
    EACH p[j] = p[j] * s[j] + -2.5052107613095432063e-8;
    EACH p[j] = p[j] * s[j] + 2.7557319219132584056e-6;
    EACH p[j] = p[j] * s[j] + -1.9841269841254860234e-4;
    EACH p[j] = p[j] * s[j] + 8.333333333333315713e-3;
    EACH p[j] = p[j] * s[j] + -1.6666666666666666633e-1;
#endif
    EACH s[j] = s[j] * r[j];
    EACH r[j] = s[j] * p[j] + r[j];
    EACH x[j] = (VEC)((IVEC)r[j] ^ ((IVEC)magic[j] << SIGN_SHIFT));
}

/* exp(x) = 2^k exp(r) with |r| <= log(2) / 2: x = exp(r) - 1 and two_k = 2^k. */
TARGET void NAME(exp_minus_one)(VEC *x, VEC *two_k) {
    VEC magic[AT_ONCE], k[AT_ONCE], r[AT_ONCE], p[AT_ONCE];
    EACH magic[j] = x[j] * (T)1.4426950408889634074 + (T)ROUNDING;
    EACH k[j] = magic[j] - (T)ROUNDING;
#if SINGLE
    EACH r[j] = x[j] - k[j] * 0x1.62cp-1f;
    EACH r[j] = r[j] - k[j] * 0x1.217f7ep-12f;
    EACH p[j] = r[j] * 1.98912685101e-4f + 1.393390005e-3f;
    EACH p[j] = p[j] * r[j] + 8.3333106746e-3f;
    EACH p[j] = p[j] * r[j] + 4.16664626662e-2f;
    EACH p[j] = p[j] * r[j] + 1.66666666819e-1f;
    EACH p[j] = p[j] * r[j] + 5.00000001369e-1f;
#else
    EACH r[j] = x[j] - k[j] * 0x1.62e42feep-1;
    EACH r[j] = r[j] - k[j] * 0x1.a39ef35793c76p-33;
    EACH p[j] = r[j] * 2.0914898727175524234e-9 + 2.5105513541847084876e-8;
    EACH p[j] = p[j] * r[j] + 2.7557273132896040925e-7;
    EACH p[j] = p[j] * r[j] + 2.7557254685728802533e-6;
    EACH p[j] = p[j] * r[j] + 2.4801587325951109373e-5;
    EACH p[j] = p[j] * r[j] + 1.9841269875385479525e-4;
    EACH p[j] = p[j] * r[j] + 1.3888888888883632605e-3;
    EACH p[j] = p[j] * r[j] + 8.3333333333259731077e-3;
    EACH p[j] = p[j] * r[j] + 4.1666666666669842e-2;
    EACH p[j] = p[j] * r[j] + 1.6666666666666671113e-1;
    EACH p[j] = p[j] * r[j] + 5.0e-1;
#endif
    EACH two_k[j] = (VEC)(((IVEC)magic[j] + EXPONENT_BIAS) << EXPONENT_SHIFT);
    EACH x[j] = p[j] * (r[j] * r[j]) + r[j];
}

/* tanh(x) = e/(e+2) with e = exp(2x) - 1 = 2^k (exp(r) - 1) + (2^k - 1), for |x|;
 * the sign is put back last. */
TARGET void NAME(tanh)(VEC *x) {
    const VEC limit = (VEC){0} + (T)TANH_LIMIT;
    IVEC sign[AT_ONCE];
    VEC y[AT_ONCE], two_k[AT_ONCE];
    EACH sign[j] = (IVEC)x[j] & (IVEC)-(VEC){0};
    EACH y[j] = (VEC)((IVEC)x[j] ^ sign[j]);
    EACH y[j] = (VEC)(((IVEC)y[j] & ~(y[j] > limit)) | ((IVEC)limit & (y[j] > limit)));
    EACH y[j] = y[j] + y[j];
    NAME(exp_minus_one)(y, two_k);
    EACH y[j] = two_k[j] * y[j] + (two_k[j] - (T)1);
    EACH x[j] = (VEC)((IVEC)(y[j] / (y[j] + (T)2)) | sign[j]);
}

/* exp(-x) for x >= 0: exactly 1 at 0; 0 beyond EXP_LIMIT, and where x is NaN. */
TARGET void NAME(exp_of_minus)(VEC *x) {
    VEC y[AT_ONCE], two_k[AT_ONCE];
    EACH y[j] = -x[j];
    NAME(exp_minus_one)(y, two_k);
    EACH x[j] = (VEC)((IVEC)(two_k[j] * y[j] + two_k[j]) & (x[j] <= (T)EXP_LIMIT));
}
