/* The tile kernels for one type and one instruction set; see simd.h for the macros that this file
 * is included with, and
 *   MR, NV        rows and vectors of the register block of the dense projection
 *   AT_ONCE       vectors of which a sine is taken at once
 *   FUSED(a, b, c) a * b + c, rounded as the products and sums of its vectors are: once where they
 *                 are fused
 */
#include "simd.h"

#define NVECS (TILE_COLUMNS / VL)
#if SINGLE
#define MAGNITUDE fabsf
#else
#define MAGNITUDE fabs
#endif

/* z = X W' for MR rows and NV vectors of features, sums held in registers. */
TARGET void NAME(project_block)(const T *const *x, ptrdiff_t d, const T *w, T *z) {
    VEC sum[MR][NV];
    UNROLL for (int i = 0; i < MR; i++)
        UNROLL for (int j = 0; j < NV; j++) sum[i][j] = (VEC){0};
    for (ptrdiff_t k = 0; k < d; k++, w += TILE_COLUMNS) {
        VEC weight[NV];
        UNROLL for (int j = 0; j < NV; j++) weight[j] = *(const VEC *)(w + j * VL);
        UNROLL for (int i = 0; i < MR; i++) {
            T xi = x[i][k];
            UNROLL for (int j = 0; j < NV; j++) sum[i][j] = weight[j] * xi + sum[i][j];
        }
    }
    UNROLL for (int i = 0; i < MR; i++)
        UNROLL for (int j = 0; j < NV; j++) *(VEC *)(z + i * TILE_COLUMNS + j * VL) = sum[i][j];
}

TARGET void NAME(project_dense)(const T *x, ptrdiff_t d, int n_rows, const T *w, T *z) {
    for (int i = 0; i < n_rows; i += MR) {
        const T *row[MR]; /* past the end: the last row again */
        for (int k = 0; k < MR; k++) row[k] = x + (i + k < n_rows ? i + k : n_rows - 1) * d;
        for (int j = 0; j < TILE_COLUMNS; j += NV * VL)
            NAME(project_block)(row, d, w + j, z + i * TILE_COLUMNS + j);
    }
}

TARGET void NAME(project_csr)(const T *data, const int32_t *indices, const int64_t *indptr,
                              int n_rows, const T *w, T *z) {
    for (int i = 0; i < n_rows; i++, z += TILE_COLUMNS) {
        VEC sum[NVECS];
        UNROLL for (int j = 0; j < NVECS; j++) sum[j] = (VEC){0};
        for (int64_t k = indptr[i]; k < indptr[i + 1]; k++) {
            const T *wk = w + (ptrdiff_t)indices[k] * TILE_COLUMNS;
            UNROLL for (int j = 0; j < NVECS; j++)
                sum[j] = *(const VEC *)(wk + j * VL) * data[k] + sum[j];
        }
        UNROLL for (int j = 0; j < NVECS; j++) *(VEC *)(z + j * VL) = sum[j];
    }
}

/* Sparse weights and products: a row is made beside z and copied, since the compiler cannot know
 * what z overlaps with. */
TARGET void NAME(project_sparse)(const T *x, ptrdiff_t d, int n_rows, ptrdiff_t order, const T *w,
                                 const int32_t *inputs, T *z) {
    for (int i = 0; i < n_rows; i++, x += d, z += TILE_COLUMNS) {
        T sum[TILE_COLUMNS];
        for (int j = 0; j < TILE_COLUMNS; j++) sum[j] = w[j] * x[inputs[j]];
        for (ptrdiff_t k = TILE_COLUMNS; k < order * TILE_COLUMNS; k += TILE_COLUMNS)
            for (int j = 0; j < TILE_COLUMNS; j++) sum[j] = w[k + j] * x[inputs[k + j]] + sum[j];
        memcpy(z, sum, sizeof sum);
    }
}

TARGET void NAME(project_product)(const T *x, ptrdiff_t d, int n_rows, ptrdiff_t order, const T *w,
                                  const int32_t *inputs, T *z) {
    for (int i = 0; i < n_rows; i++, x += d, z += TILE_COLUMNS) {
        T product[TILE_COLUMNS];
        for (int j = 0; j < TILE_COLUMNS; j++) product[j] = w[j] * x[inputs[j]];
        for (ptrdiff_t k = TILE_COLUMNS; k < order * TILE_COLUMNS; k += TILE_COLUMNS)
            for (int j = 0; j < TILE_COLUMNS; j++) product[j] *= w[j] * x[inputs[k + j]];
        memcpy(z, product, sizeof product);
    }
}

/* The weighted distances of MR rows to the centers of NV vectors of bumps: sums in registers. */
TARGET void NAME(distance_block)(const T *const *x, ptrdiff_t d, const T *w, const T *c, T *z) {
    const IVEC magnitude = ~(IVEC)-(VEC){0};
    VEC sum[MR][NV];
    UNROLL for (int i = 0; i < MR; i++)
        UNROLL for (int j = 0; j < NV; j++) sum[i][j] = (VEC){0};
    for (ptrdiff_t k = 0; k < d; k++, w += TILE_COLUMNS, c += TILE_COLUMNS) {
        VEC weight[NV], center[NV];
        UNROLL for (int j = 0; j < NV; j++) weight[j] = *(const VEC *)(w + j * VL);
        UNROLL for (int j = 0; j < NV; j++) center[j] = *(const VEC *)(c + j * VL);
        UNROLL for (int i = 0; i < MR; i++) {
            T xi = x[i][k];
            UNROLL for (int j = 0; j < NV; j++)
                sum[i][j] = weight[j] * (VEC)((IVEC)(xi - center[j]) & magnitude) + sum[i][j];
        }
    }
    UNROLL for (int i = 0; i < MR; i++)
        UNROLL for (int j = 0; j < NV; j++) *(VEC *)(z + i * TILE_COLUMNS + j * VL) = sum[i][j];
}

TARGET void NAME(distance_dense)(const T *x, ptrdiff_t d, int n_rows, const T *w, const T *c,
                                 T *z) {
    for (int i = 0; i < n_rows; i += MR) {
        const T *row[MR]; /* past the end: the last row again */
        for (int k = 0; k < MR; k++) row[k] = x + (i + k < n_rows ? i + k : n_rows - 1) * d;
        for (int j = 0; j < TILE_COLUMNS; j += NV * VL)
            NAME(distance_block)(row, d, w + j, c + j, z + i * TILE_COLUMNS + j);
    }
}

TARGET void NAME(distance_sparse)(const T *x, ptrdiff_t d, int n_rows, ptrdiff_t order, const T *w,
                                  const T *c, const int32_t *inputs, T *z) {
    for (int i = 0; i < n_rows; i++, x += d, z += TILE_COLUMNS) {
        T sum[TILE_COLUMNS];
        for (int j = 0; j < TILE_COLUMNS; j++) sum[j] = w[j] * MAGNITUDE(x[inputs[j]] - c[j]);
        for (ptrdiff_t k = TILE_COLUMNS; k < order * TILE_COLUMNS; k += TILE_COLUMNS)
            for (int j = 0; j < TILE_COLUMNS; j++)
                sum[j] = w[k + j] * MAGNITUDE(x[inputs[k + j]] - c[k + j]) + sum[j];
        memcpy(z, sum, sizeof sum);
    }
}

/* The activation of an argument that the polynomials do not cover: huge, infinite or NaN (an
 * overflowed product). A phase that cannot be resolved averages to zero. */
TARGET T NAME(activate_scalar)(int activation, T z) {
    if (activation == TANH) return z != z ? 0 : (T)tanh((double)z);
    if (z - z != 0) return 0;
    return (T)(activation == COSINE ? cos((double)z) : sin((double)z));
}

#define FOR_TILE for (int k = 0; k < n_rows * TILE_COLUMNS; k += VL)
#define Z (*(VEC *)(z + k))
#define SHIFTED(k) (*(const VEC *)(z + (k)) + *(const VEC *)(offset + (k) % TILE_COLUMNS))
#define IS_MODERATE(v) ((v <= (T)ARGUMENT_LIMIT) & (v >= (T)-ARGUMENT_LIMIT))

TARGET int NAME(all_of)(IVEC good) {
    INT all = -1;
    for (int l = 0; l < VL; l++) all &= good[l];
    return all != 0;
}

/* AT_ONCE vectors may be of several rows, the last of them beyond n_rows: the rows whose arguments
 * are looked at. They are 0 beyond n_rows (see project), as what is left there from another tile
 * may not be moderate. */
#define ROWS_AT_ONCE ((AT_ONCE * VL + TILE_COLUMNS - 1) / TILE_COLUMNS)
#define IN_WHOLE_STEPS(n_rows) (((n_rows) + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE * ROWS_AT_ONCE)

/* z = scale * function of AT_ONCE vectors v of z + offset; good is false where an argument is not
 * moderate. */
#define FOR_TILE_AT_ONCE(function)                                  \
    for (int k = 0; k < n_rows * TILE_COLUMNS; k += AT_ONCE * VL) { \
        VEC v[AT_ONCE];                                             \
        EACH v[j] = SHIFTED(k + j * VL);                            \
        EACH good &= IS_MODERATE(v[j]);                             \
        function;                                                   \
        EACH *(VEC *)(z + k + j * VL) = v[j] * scale;               \
    }

/* z = scale * activation(z + offset), and 1; or 0 where the polynomials do not cover an argument,
 * or it is NaN: then z is to be made again. */
TARGET int NAME(activate)(int activation, T scale, const T *offset, int n_rows, T *z) {
    const VEC zero = {0}, one = zero + (T)1;
    IVEC good = ~(IVEC){0};
    switch (activation) {
    case COSINE: FOR_TILE_AT_ONCE(NAME(sine)(v, (T)0.5)) break;
    case SINE: FOR_TILE_AT_ONCE(NAME(sine)(v, (T)0)) break;
    case TANH: FOR_TILE_AT_ONCE(NAME(tanh)(v)) break;
    case BUMP: FOR_TILE_AT_ONCE(NAME(exp_of_minus)(v)) return 1; /* of any argument */
    case RELU: FOR_TILE { VEC v = SHIFTED(k); Z = (VEC)((IVEC)v & (v > zero)) * scale; } break;
    case SIGN:
        FOR_TILE {
            VEC v = SHIFTED(k);
            Z = (VEC)(((IVEC)one & (v >= zero)) | ((IVEC)-one & ~(v >= zero))) * scale;
        }
        break;
    default: FOR_TILE Z = SHIFTED(k) * scale;
    }
    return NAME(all_of)(good);
}

/* The same, one by one, where an argument is huge. */
TARGET int NAME(activate_each)(int activation, T scale, const T *offset, int n_rows, T *z) {
    for (int k = 0; k < n_rows * TILE_COLUMNS; k++)
        z[k] = scale * NAME(activate_scalar)(activation, z[k] + offset[k % TILE_COLUMNS]);
    return 1;
}

TARGET void NAME(project)(const tile_rows *rows, const tile_features *f, ptrdiff_t row, int n_rows,
                          ptrdiff_t panel, T *tile) {
    const T *w =
        (const T *)f->weights + panel * (f->activation == PRODUCT ? 1 : f->order) * TILE_COLUMNS;
    const T *x = (const T *)rows->x + (rows->x ? row * rows->n_inputs : 0);
    const T *c = (const T *)f->centers + (f->centers ? panel * f->order * TILE_COLUMNS : 0);
    if (f->activation == BUMP && f->inputs)
        NAME(distance_sparse)(x, rows->n_inputs, n_rows, f->order, w, c,
                              f->inputs + panel * f->order * TILE_COLUMNS, tile);
    else if (f->activation == BUMP)
        NAME(distance_dense)(x, rows->n_inputs, n_rows, w, c, tile);
    else if (!rows->x)
        NAME(project_csr)(rows->data, rows->indices, rows->indptr + row, n_rows, w, tile);
    else if (f->activation == PRODUCT)
        NAME(project_product)(x, rows->n_inputs, n_rows, f->order, w,
                              f->inputs + panel * f->order * TILE_COLUMNS, tile);
    else if (f->inputs)
        NAME(project_sparse)(x, rows->n_inputs, n_rows, f->order, w,
                             f->inputs + panel * f->order * TILE_COLUMNS, tile);
    else
        NAME(project_dense)(x, rows->n_inputs, n_rows, w, tile);
    memset(tile + n_rows * TILE_COLUMNS, 0,
           (IN_WHOLE_STEPS(n_rows) - n_rows) * TILE_COLUMNS * sizeof(T));
}

/* A tile with an argument beyond the limit is made twice: the first time has overwritten the
 * arguments. */
#define MADE(activation, tile)                                                                     \
    (is_huge ? NAME(activate_each)(activation, (T)f->scale,                                        \
                                   (const T *)f->offset + panel * TILE_COLUMNS, n_rows, tile)      \
             : NAME(activate)(activation, (T)f->scale,                                             \
                              (const T *)f->offset + panel * TILE_COLUMNS, n_rows, tile))

TARGET_EXTERN void NAME(make)(const tile_rows *rows, const tile_features *f, ptrdiff_t row,
                              int n_rows, ptrdiff_t panel, void *tile) {
    for (int is_huge = 0, is_made = 0; !is_made; is_huge = 1) {
        NAME(project)(rows, f, row, n_rows, panel, tile);
        is_made = MADE(f->activation, tile);
    }
}

TARGET_EXTERN void NAME(make_pair)(const tile_rows *rows, const tile_features *f, ptrdiff_t row,
                                   int n_rows, ptrdiff_t panel, void *tile, void *sine) {
    for (int is_huge = 0, is_made = 0; !is_made; is_huge = 1) {
        NAME(project)(rows, f, row, n_rows, panel, tile);
        memcpy(sine, tile, IN_WHOLE_STEPS(n_rows) * TILE_COLUMNS * sizeof(T));
        is_made = MADE(COSINE, tile) & MADE(SINE, sine);
    }
}

/* Vectors of doubles, loaded from a tile of T. A sum along a row is kept in LANES parts whatever
 * the width of the vectors, so that its order, and with fused operations its bits, are those of
 * every instruction set. */
#define DL (VB / 8)
#define DVECS (TILE_COLUMNS / DL)
#define LANES 8
#define PARTS (LANES / DL)
typedef double NAME(dvec) __attribute__((vector_size(VB), aligned(8), may_alias));
#define DVEC NAME(dvec)
#if SINGLE
typedef float NAME(half) __attribute__((vector_size(VB / 2), aligned(4), may_alias));
#define LOAD_DOUBLE(p) __builtin_convertvector(*(const NAME(half) *)(p), DVEC)
#else
#define LOAD_DOUBLE(p) (*(const DVEC *)(p))
#endif

/* Sums of OUTPUTS outputs at a time, over COLUMN_VECS vectors of columns: a number of the tile is
 * loaded, and made a double, once for all of them, and the sums stay in registers. */
#define OUTPUTS 4
#define COLUMN_VECS 2
TARGET void NAME(sum_rows)(const T *z, int n_rows, int n_outputs, const double *v, ptrdiff_t v_step,
                           double *sums, ptrdiff_t sums_step, int squared) {
    for (int first = 0; first < DVECS; first += COLUMN_VECS) {
        DVEC sum[OUTPUTS][COLUMN_VECS];
        const T *zi = z + first * DL;
        double *out = sums + first * DL;
        UNROLL for (int k = 0; k < n_outputs; k++)
            UNROLL for (int j = 0; j < COLUMN_VECS; j++)
                sum[k][j] = *(DVEC *)(out + k * sums_step + j * DL);
        for (int i = 0; i < n_rows; i++, zi += TILE_COLUMNS)
            UNROLL for (int j = 0; j < COLUMN_VECS; j++) {
                DVEC zj = LOAD_DOUBLE(zi + j * DL);
                if (squared) zj = zj * zj;
                UNROLL for (int k = 0; k < n_outputs; k++)
                    sum[k][j] = zj * v[k * v_step + i] + sum[k][j];
            }
        UNROLL for (int k = 0; k < n_outputs; k++)
            UNROLL for (int j = 0; j < COLUMN_VECS; j++)
                *(DVEC *)(out + k * sums_step + j * DL) = sum[k][j];
    }
}

TARGET_EXTERN void NAME(correlate)(const void *tile, int n_rows, ptrdiff_t n_outputs,
                                   const double *v, ptrdiff_t v_step, double *sums,
                                   ptrdiff_t sums_step, int squared) {
#define SUM_ROWS(n, squared) NAME(sum_rows)(tile, n_rows, n, v, v_step, sums, sums_step, squared)
    for (int n; n_outputs > 0; n_outputs -= n, v += n * v_step, sums += n * sums_step) {
        n = squared || n_outputs < OUTPUTS ? 1 : OUTPUTS;
        if (squared)
            SUM_ROWS(1, 1);
        else if (n == 1)
            SUM_ROWS(1, 0);
        else
            SUM_ROWS(OUTPUTS, 0);
    }
#undef SUM_ROWS
}
#undef OUTPUTS
#undef COLUMN_VECS

TARGET double NAME(total)(const DVEC *sum) {
#define LANE(l) sum[(l) / DL][(l) % DL]
    return ((LANE(0) + LANE(4)) + (LANE(2) + LANE(6))) +
           ((LANE(1) + LANE(5)) + (LANE(3) + LANE(7)));
#undef LANE
}

TARGET_EXTERN void NAME(apply)(const void *tile, int n_rows, const double *coef, double *out) {
    const T *z = tile;
    for (int i = 0; i < n_rows; i++, z += TILE_COLUMNS) {
        DVEC sum[PARTS];
        UNROLL for (int l = 0; l < PARTS; l++) sum[l] = (DVEC){0};
        UNROLL for (int j = 0; j < DVECS; j++)
            sum[j % PARTS] =
                LOAD_DOUBLE(z + j * DL) * *(const DVEC *)(coef + j * DL) + sum[j % PARTS];
        out[i] += NAME(total)(sum);
    }
}

/* Sums of dense rows themselves, not of a tile, FEW_ROWS at a time: p and sums are read once for
 * all of these. Sets `row` to the next rows, past the end to the last row again, whose weight is
 * then 0; returns how many rows there are. */
TARGET int NAME(few_rows)(const tile_rows *rows, ptrdiff_t first, const T **row) {
    int n_rows = rows->n_rows - first < FEW_ROWS ? (int)(rows->n_rows - first) : FEW_ROWS;
    for (int r = 0; r < FEW_ROWS; r++)
        row[r] = (const T *)rows->x + (first + (r < n_rows ? r : n_rows - 1)) * rows->n_inputs;
    return n_rows;
}

/* Prefetches the next rows while these are worked on: the processor itself foresees them only once
 * they are read. Prefetches no more than a second-level cache holds, and nothing past X. */
#define NEAR (ptrdiff_t)(262144 / FEW_ROWS / sizeof(T))
#define ASK_FOR_NEXT(k)                                                                            \
    if (ask && k < NEAR)                                                                           \
        UNROLL for (int i = 0; i < FEW_ROWS; i++)                                                  \
            __builtin_prefetch(row[i] + FEW_ROWS * d + k, 0, 2)

/* f[i] = x_i'p */
TARGET void NAME(dot_few)(const T *const *row, ptrdiff_t d, const double *p, double *f, int ask) {
    DVEC sum[FEW_ROWS][PARTS];
    ptrdiff_t k, whole = d - d % LANES;
    UNROLL for (int i = 0; i < FEW_ROWS; i++)
        UNROLL for (int l = 0; l < PARTS; l++) sum[i][l] = (DVEC){0};
    for (k = 0; k < whole; k += LANES) {
        ASK_FOR_NEXT(k);
        UNROLL for (int l = 0; l < PARTS; l++) {
            DVEC pl = *(const DVEC *)(p + k + l * DL);
            UNROLL for (int i = 0; i < FEW_ROWS; i++)
                sum[i][l] = LOAD_DOUBLE(row[i] + k + l * DL) * pl + sum[i][l];
        }
    }
    UNROLL for (int i = 0; i < FEW_ROWS; i++) {
        f[i] = NAME(total)(sum[i]);
        for (k = whole; k < d; k++) f[i] = FUSED((double)row[i][k], p[k], f[i]);
    }
}

/* sums += sum_i v[i] x_i, or of the squares */
TARGET void NAME(add_few)(const T *const *row, ptrdiff_t d, const double *v, double *sums,
                          int squared, int ask) {
    ptrdiff_t k;
    for (k = 0; k + DL <= d; k += DL) {
        DVEC s = *(const DVEC *)(sums + k);
        ASK_FOR_NEXT(k);
        UNROLL for (int i = 0; i < FEW_ROWS; i++) {
            DVEC xi = LOAD_DOUBLE(row[i] + k);
            if (squared) xi = xi * xi;
            s = xi * v[i] + s;
        }
        *(DVEC *)(sums + k) = s;
    }
    for (; k < d; k++)
        UNROLL for (int i = 0; i < FEW_ROWS; i++) {
            double xi = row[i][k];
            if (squared) xi = xi * xi;
            sums[k] = FUSED(xi, v[i], sums[k]);
        }
}

TARGET_EXTERN void NAME(correlate_rows)(const tile_rows *rows, int n_outputs, const double *v,
                                        ptrdiff_t v_step, double *sums, int squared) {
    for (ptrdiff_t i = 0, d = rows->n_inputs; i < rows->n_rows; i += FEW_ROWS) {
        const T *row[FEW_ROWS];
        int n_rows = NAME(few_rows)(rows, i, row);
        for (int k = 0; k < n_outputs; k++) {
            double weight[FEW_ROWS];
            UNROLL for (int r = 0; r < FEW_ROWS; r++)
                weight[r] = r < n_rows ? v[k * v_step + i + r] : 0;
            if (squared)
                NAME(add_few)(row, d, weight, sums + k * d, 1, k == 0);
            else
                NAME(add_few)(row, d, weight, sums + k * d, 0, k == 0);
        }
    }
}

TARGET_EXTERN void NAME(apply_rows)(const tile_rows *rows, int n_outputs, const double *p,
                                    double *f, ptrdiff_t f_step) {
    for (ptrdiff_t i = 0, d = rows->n_inputs; i < rows->n_rows; i += FEW_ROWS) {
        const T *row[FEW_ROWS];
        int n_rows = NAME(few_rows)(rows, i, row);
        for (int k = 0; k < n_outputs; k++) {
            double product[FEW_ROWS];
            NAME(dot_few)(row, d, p + k * d, product, k == 0);
            for (int r = 0; r < n_rows; r++) f[k * f_step + i + r] += product[r];
        }
    }
}

TARGET_EXTERN void NAME(normal)(const tile_rows *rows, int n_outputs, const double *p,
                                const double *h, ptrdiff_t h_step, double *f, ptrdiff_t f_step,
                                double *sums) {
    for (ptrdiff_t i = 0, d = rows->n_inputs; i < rows->n_rows; i += FEW_ROWS) {
        const T *row[FEW_ROWS];
        int n_rows = NAME(few_rows)(rows, i, row);
        for (int k = 0; k < n_outputs; k++) {
            double v[FEW_ROWS], *f_k = f + k * f_step + i;
            NAME(dot_few)(row, d, p + k * d, v, 0);
            for (int r = 0; r < FEW_ROWS; r++) {
                if (r < n_rows) f_k[r] += v[r];
                v[r] = r < n_rows ? h[k * h_step + i + r] * f_k[r] : 0;
            }
            NAME(add_few)(row, d, v, sums + k * d, 0, k == 0);
        }
    }
}

static const tile_kernels NAME(kernels) = {
    NAME(make),           NAME(make_pair),  NAME(correlate), NAME(apply),
    NAME(correlate_rows), NAME(apply_rows), NAME(normal)};

#undef VL
#undef VEC
#undef IVEC
#undef ROUNDING
#undef SIGN_SHIFT
#undef EXPONENT_SHIFT
#undef EXPONENT_BIAS
#undef ARGUMENT_LIMIT
#undef TANH_LIMIT
#undef EXP_LIMIT
#undef NVECS
#undef MAGNITUDE
#undef FOR_TILE
#undef Z
#undef SHIFTED
#undef IS_MODERATE
#undef FOR_TILE_AT_ONCE
#undef EACH
#undef MADE
#undef DL
#undef DVECS
#undef LANES
#undef PARTS
#undef DVEC
#undef LOAD_DOUBLE
#undef NEAR
#undef ASK_FOR_NEXT
#undef NAME
#undef VB
#undef FUSED
#undef MR
#undef AT_ONCE
#undef NV
