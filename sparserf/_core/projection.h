/* The inner loops of the sparse-sign projection and of the Hadamard transform.
 *
 * Additions of exact products in one fixed order: nothing here depends on how wide the vectors of a processor are.
 */
#ifndef SPARSERF_PROJECTION_H
#define SPARSERF_PROJECTION_H
#include <stddef.h>
#include <stdint.h>

#define LANES 8                  /* rows side by side: an entry of R adds one vector to the sums of a column */
#define INPUTS 64                /* inputs of so many rows that are put side by side at a time */
#define CACHED ((ptrdiff_t)2048) /* numbers that stay in the first-level cache during all stages of a transform */

typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

/* sums[columns[k, l]] += signs[k, l] x[k] for n inputs with zeta columns each; x and sums hold LANES rows side by side. */
static void scatter(const double *x, ptrdiff_t n, const int32_t *columns, const int8_t *signs, ptrdiff_t zeta, double *sums) {
    for (ptrdiff_t k = 0; k < n; k++, x += LANES)
        for (ptrdiff_t l = 0; l < zeta; l++)
            *(lanes *)(sums + LANES * (ptrdiff_t)*columns++) += *(const lanes *)x * (double)*signs++;
}

#define T double
#define NAME(f) f##_double
#include "hadamard_impl.h"
#undef T
#undef NAME

#define T float
#define NAME(f) f##_float
#include "hadamard_impl.h"
#undef T
#undef NAME
#endif
