"""The text of activations in C: the formulas of `_core/simd.h`, in arithmetic that compilers turn into vectors."""

WAVES = r"""
/* sin(x + shift pi), shift 0 or 1/2: x less k pi, a multiple for which it lies in [-pi/2, pi/2]; then a polynomial. It errs by
 * some 1e-15 of the larger of itself and 1e-6, for |x| <= FARTHEST; beyond, the C library. A phase that overflows counts as 0,
 * the mean. */
#define FARTHEST (IS_DOUBLE ? 1e6 : -1.0)

static inline double near_wave(double x, double shift) {
    double turns = (x * 0.31830988618379067154 + shift + ROUNDER) - ROUNDER;
    double odd = turns - 2 * ((0.5 * turns + ROUNDER) - ROUNDER);
    double k = turns - shift;
    double r = ((x - k * 0x1.921fb54p+1) - k * 0x1.10b46118p-29) - k * 0x1.313198a2e0370p-60;
    double s = r * r;
    double p = s * 2.7313442774399189806e-15 + -7.6439622324426545328e-13;
    p = p * s + 1.6058977059718266793e-10;
    p = p * s + -2.5052107613095432063e-8;
    p = p * s + 2.7557319219132584056e-6;
    p = p * s + -1.9841269841254860234e-4;
    p = p * s + 8.333333333333315713e-3;
    p = p * s + -1.6666666666666666633e-1;
    return (1 - 2 * odd * odd) * (s * r * p + r);
}

static double far_wave(double x, double shift) {
    return !isfinite(x) ? 0 : shift ? cos(x) : sin(x);
}

static void waves(double *z, double shift) {
    int is_far = 0;
    for (int k = 0; k < LANES; k++) is_far |= !(fabs(z[k]) <= FARTHEST);
    if (is_far)
        for (int k = 0; k < LANES; k++) z[k] = far_wave(z[k], shift);
    else
        for (int k = 0; k < LANES; k++) z[k] = near_wave(z[k], shift);
}
"""

TANHS = r"""
/* tanh(x) = e / (e + 2), e = exp(2 |x|) - 1 = 2^k (exp(r) - 1) + (2^k - 1), with the sign of x. It errs by
 * some 1e-15 of itself. */
static inline double near_tanh(double x) {
    double y = 2 * (fabs(x) > 20 ? 20 : fabs(x));
    double rounded = y * 1.4426950408889634074 + ROUNDER;
    double k = rounded - ROUNDER, two_k, e;
    double r = (y - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
    double p = r * 2.0914898727175524234e-9 + 2.5105513541847084876e-8;
    uint64_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&two_k, &bits, sizeof bits);
    p = p * r + 2.7557273132896040925e-7;
    p = p * r + 2.7557254685728802533e-6;
    p = p * r + 2.4801587325951109373e-5;
    p = p * r + 1.9841269875385479525e-4;
    p = p * r + 1.3888888888883632605e-3;
    p = p * r + 8.3333333333259731077e-3;
    p = p * r + 4.1666666666669842e-2;
    p = p * r + 1.6666666666666671113e-1;
    p = p * r + 0.5;
    e = two_k * (p * (r * r) + r) + (two_k - 1);
    return copysign(e / (e + 2), x);
}

static void tanhs(double *z) {
    for (int k = 0; k < LANES; k++) z[k] = isnan(z[k]) ? 0 : IS_DOUBLE ? near_tanh(z[k]) : tanh(z[k]);
}
"""

ACTIVATIONS = {
    "cos": "waves(z, 0.5);",
    "sin": "waves(z, 0);",
    "tanh": "tanhs(z);",
    "relu": "for (int k = 0; k < LANES; k++) z[k] = z[k] > 0 ? z[k] : 0;",
    "sign": "for (int k = 0; k < LANES; k++) z[k] = z[k] >= 0 ? 1 : -1;",
}

# All templates.
ALL = (WAVES, TANHS, *ACTIVATIONS.values())
