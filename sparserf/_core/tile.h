/* A tile is TILE_ROWS rows by TILE_COLUMNS features of the feature matrix: it is made in the
 * first-level cache, used, and overwritten by the next.
 *
 * phi_j(x) = scale * activation(w_j' x + offset_j), scale * the product of `order` factors w_j x,
 * or, of a bump, scale * exp(-sum_l w_jl |x_l - c_jl|) with weights w >= 0 and a center c.
 * Parameters come in panels of TILE_COLUMNS features, padded with zeros; the rows of X are dense
 * (row-major) or CSR.
 */
#ifndef SPARSERF_TILE_H
#define SPARSERF_TILE_H
#include <stddef.h>
#include <stdint.h>

#define TILE_ROWS 64
#define TILE_COLUMNS 32
#define FEW_ROWS 8 /* rows of X itself that are taken at a time */

enum { COSINE, SINE, TANH, RELU, SIGN, IDENTITY, PRODUCT, BUMP };

typedef struct {
    const void *x;          /* dense: (n_rows, n_inputs), rows contiguous; NULL where it is CSR */
    const void *data;       /* CSR: the values, */
    const int32_t *indices; /* their columns, */
    const int64_t *indptr;  /* and where each row begins */
    ptrdiff_t n_rows, n_inputs;
} tile_rows;

typedef struct {
    const void *weights;   /* dense: (n_panels, n_inputs, TILE_COLUMNS); of products: (n_panels, 1,
                              TILE_COLUMNS); other sparse ones: (n_panels, order, TILE_COLUMNS) */
    const int32_t *inputs; /* sparse: the input that each weight multiplies, or the factors; NULL
                              where they are dense */
    const void *centers;   /* of bumps, laid out as the weights; else NULL */
    const void *offset;    /* (n_panels, TILE_COLUMNS); of bumps and products zero */
    ptrdiff_t order;       /* weights a feature: n_inputs where they are dense */
    double scale;
    int activation;
} tile_features;

/* What one instruction set offers for one type. Sums are in double whatever the tile's type. */
typedef struct {
    /* tile = phi of rows [row, row + n_rows) and panel `panel`; n_rows <= TILE_ROWS */
    void (*make)(const tile_rows *, const tile_features *, ptrdiff_t row, int n_rows,
                 ptrdiff_t panel, void *tile);
    /* The same for features that are cosines, cos(t); and sine = cos(t - pi/2) = sin(t) */
    void (*make_pair)(const tile_rows *, const tile_features *, ptrdiff_t row, int n_rows,
                      ptrdiff_t panel, void *tile, void *sine);
    /* sums[k, j] += sum_i v[k, i] tile[i, j], or v[k, i] tile[i, j]^2 where squared, of n_outputs
     * vectors v and sums that are v_step and sums_step apart */
    void (*correlate)(const void *tile, int n_rows, ptrdiff_t n_outputs, const double *v,
                      ptrdiff_t v_step, double *sums, ptrdiff_t sums_step, int squared);
    /* out[i] += sum_j tile[i, j] coef[j] */
    void (*apply)(const void *tile, int n_rows, const double *coef, double *out);
    /* The last three take all dense rows x, not a tile, and n_outputs vectors: those with an entry
     * for each row are v_step, h_step and f_step apart, those with an entry for each input are
     * contiguous.
     * sums[k] += sum_i v[k, i] x_i, or v[k, i] x_i^2 where squared */
    void (*correlate_rows)(const tile_rows *, int n_outputs, const double *v, ptrdiff_t v_step,
                           double *sums, int squared);
    /* f[k, i] += x_i'p[k] */
    void (*apply_rows)(const tile_rows *, int n_outputs, const double *p, double *f,
                       ptrdiff_t f_step);
    /* f[k, i] += x_i'p[k], then sums[k] += sum_i h[k, i] f[k, i] x_i */
    void (*normal)(const tile_rows *, int n_outputs, const double *p, const double *h,
                   ptrdiff_t h_step, double *f, ptrdiff_t f_step, double *sums);
} tile_kernels;

enum { LEVEL_BASELINE, LEVEL_V3, LEVEL_V4 };

/* The best instruction set of this processor. */
int tile_best_level(void);
/* The kernels for float (single) or double: of a level that this processor has, else of the default
 * level. */
const tile_kernels *tile_select(int single, int level, int default_level);
#endif
