/* The Walsh-Hadamard transform x := H x, H[i, j] = (-1)^popcount(i & j), of the type T: log2(n) stages of sums and differences
 * of what lies h = 1, 2, 4, ... apart, three or two of them in one pass over x. */

/* The stages h = 1, 2 and 4, within eight numbers. */
static inline void NAME(eight)(T *x) {
    T a = x[0] + x[1], b = x[0] - x[1], c = x[2] + x[3], d = x[2] - x[3];
    T e = x[4] + x[5], f = x[4] - x[5], g = x[6] + x[7], h = x[6] - x[7];
    T p = a + c, q = b + d, r = a - c, s = b - d, t = e + g, u = f + h, v = e - g, w = f - h;
    x[0] = p + t, x[1] = q + u, x[2] = r + v, x[3] = s + w;
    x[4] = p - t, x[5] = q - u, x[6] = r - v, x[7] = s - w;
}

static inline void NAME(one_stage)(T *x, ptrdiff_t h) {
    T *restrict a = x, *restrict b = x + h;
    for (ptrdiff_t k = 0; k < h; k++) {
        T p = a[k] + b[k], q = a[k] - b[k];
        a[k] = p, b[k] = q;
    }
}

static inline void NAME(two_stages)(T *x, ptrdiff_t h) {
    T *restrict a = x, *restrict b = x + h, *restrict c = x + 2 * h, *restrict d = x + 3 * h;
    for (ptrdiff_t k = 0; k < h; k++) {
        T p = a[k] + b[k], q = a[k] - b[k], r = c[k] + d[k], s = c[k] - d[k];
        a[k] = p + r, b[k] = q + s, c[k] = p - r, d[k] = q - s;
    }
}

/* n is a power of two. The quarters of a long x come first, each through all its stages while it is in cache. */
static void NAME(hadamard)(T *x, ptrdiff_t n) {
    ptrdiff_t h = 1;
    if (n > CACHED) {
        for (ptrdiff_t i = 0; i < n; i += n / 4) NAME(hadamard)(x + i, n / 4);
        NAME(two_stages)(x, n / 4);
        return;
    }
    if (n >= 8) {
        for (ptrdiff_t i = 0; i < n; i += 8) NAME(eight)(x + i);
        h = 8;
    }
    for (; 4 * h <= n; h *= 4)
        for (ptrdiff_t i = 0; i < n; i += 4 * h) NAME(two_stages)(x + i, h);
    if (h < n) NAME(one_stage)(x, h);
}
