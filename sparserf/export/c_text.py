"""What every file of C has in common, or those whose models have such views or terms: its text."""

HEAD = r"""
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "compile without -ffast-math: NAN and rounding must be those of C99"
#endif

enum { N_COLUMNS = ${n_columns}, N_INPUTS = ${n_inputs}, N_OUTPUTS = ${n_outputs}, LANES = ${lanes} };

/* Added and taken again, it rounds a double to an integer. */
#define ROUNDER 6755399441055744.0
/* Whether doubles are computed as doubles; if not, the C library has the functions. */
#define IS_DOUBLE (FLT_EVAL_METHOD >= 0 && FLT_EVAL_METHOD != 2)
"""

# What other files may call: declarations, and the functions further down.
OF_VALUE = r"""
/* ${what} of a row, and of n_rows rows that lie one after the other. */
double ${name}(const double *x);
void ${name}_rows(const double *X, size_t n_rows, double *out);
"""

OF_VALUES = r"""
/* The N_OUTPUTS numbers ${what} of a row, and of n_rows rows that lie one after the other. */
void ${name}(const double *x, double *out);
void ${name}_rows(const double *X, size_t n_rows, double *out);
"""

OF_CLASSES = r"""
/* The place of a row's class among ${name}_classes, or -1; the same of n_rows rows that lie one after the other; and the
 * N_OUTPUTS decision values of a row: of two classes it is the second where the value is positive, of more of the largest. */
enum { N_CLASSES = ${n} };
extern ${ctype} ${name}_classes[N_CLASSES];
int ${name}(const double *x);
void ${name}_rows(const double *X, size_t n_rows, int *out);
void ${name}_decision(const double *x, double *f);

${ctype} ${name}_classes[N_CLASSES] = ${labels};
"""

OF_PROBABILITIES = r"""
/* The probability of each of the N_CLASSES classes. */
void ${name}_proba(const double *x, double *p);
"""

# A view as `ColumnStage` has it, and `_core/moments.pyx`.
VIEWS = r"""
/* What terms see of a row: views of its columns. value is, by kind, the number, or what its scores say between knots; or
 * whether it is that level, is missing, or is not 0. The view is u = (value power - center) factor; where reach < |u| it is
 * drawn in to at most twice the reach; "clipped" is then u / sqrt(1 + u^2 / 9). fill is the view of a missing number. */
enum { NUMBER, CLIPPED, LEVEL, MISSING, PRESENT };
typedef struct {
    int column, kind;
    double level, power, center, factor, reach, fill;
    int first_knot, n_knots;
} view;
"""

SEEN = r"""
/* Linear between two knots, constant beyond the ends. */
static double between_knots(const double *knot, const double *score, int n, double x) {
    int low = 0, high = n - 1;
    if (x <= knot[low]) return score[low];
    if (x >= knot[high]) return score[high];
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (knot[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return score[low] + (x - knot[low]) / (knot[high] - knot[low]) * (score[high] - score[low]);
}

static double seen(const view *v, double x) {
    double value = x, size;
    if (v->kind == MISSING)
        value = isnan(x);
    else if (v->kind == LEVEL)
        value = v->level <= x && x < v->level + 1;
    else if (v->kind == PRESENT)
        value = x != 0;
    else if (isnan(x))
        return v->fill;
    else if (v->n_knots)
        value = between_knots(knots + v->first_knot, scores + v->first_knot, v->n_knots, x);
    value = (value * v->power - v->center) * v->factor;
    size = fabs(value);
    if (size > v->reach) value = copysign(v->reach * (2 - v->reach / size), value);
    if (v->kind != CLIPPED) return value;
    value = fmin(fmax(value, -1e100), 1e100);
    return value / sqrt(1 + value * value / 9);
}

/* The views of a row; 0 where a number is infinite${or_nan}. */
static int see(const double *x, double *u) {
    for (int v = 0; v < N_INPUTS; v++) {
        double value = x[views[v].column];
        if (${refused}) return 0;
        u[v] = seen(views + v, value);
    }
    return 1;
}
"""

# Of columns as they are.
SEE_RAW = r"""
/* The columns that terms see; 0 where one is not finite. */
static int see(const double *x, double *u) {
    for (int j = 0; j < N_INPUTS; j++) {
        u[j] = x[${column}];
        if (!isfinite(u[j])) return 0;
    }
    return 1;
}
"""

LINEAR = r"""
static void add_linear(const double *u, double sum[N_OUTPUTS][LANES]) {
    for (int o = 0; o < N_OUTPUTS; o++)
        for (int j = 0; j < N_INPUTS; j++) sum[o][j % LANES] += linear[o][j] * u[j];
}
"""

# Of terms of one kind, numbered b.
NEURONS = r"""
static void add_terms_${b}(const double *u, double sum[N_OUTPUTS][LANES]) {
    for (int g = 0; g < ${n_groups}; g++) {
        double z[LANES] = {0};
        for (int i = 0; i < ${order}; i++)
            for (int k = 0; k < LANES; k++) z[k] += weights_${b}[g][i][k] * u[${input}];
        for (int k = 0; k < LANES; k++) z[k] += offset_${b}[g][k];
        ${activation}
        for (int o = 0; o < N_OUTPUTS; o++)
            for (int k = 0; k < LANES; k++) sum[o][k] += coef_${b}[g][o][k] * z[k];
    }
}
"""

PRODUCTS = r"""
static void add_terms_${b}(const double *u, double sum[N_OUTPUTS][LANES]) {
    double factor[1 + N_INPUTS], square = 0;
    for (int j = 0; j < N_INPUTS; j++) square += u[j] * ${gamma} * u[j];
    factor[0] = exp(-square / ${order});
    for (int j = 0; j < N_INPUTS; j++) factor[1 + j] = u[j] * (factor[0] * ${root});
    for (int g = 0; g < ${n_groups}; g++) {
        double z[LANES];
        for (int k = 0; k < LANES; k++) z[k] = 1;
        for (int i = 0; i < ${order}; i++)
            for (int k = 0; k < LANES; k++) z[k] *= weights_${b}[g][0][k] * factor[inputs_${b}[g][i][k]];
        for (int o = 0; o < N_OUTPUTS; o++)
            for (int k = 0; k < LANES; k++) sum[o][k] += coef_${b}[g][o][k] * z[k];
    }
}
"""

VALUES = r"""
/* f of a row, N_OUTPUTS numbers; 0 where a column that it depends on holds what no row may, and f is NAN. */
static int values(const double *x, double *f) {
    double u[N_INPUTS], sum[N_OUTPUTS][LANES] = {{0}};
    for (int o = 0; o < N_OUTPUTS; o++) f[o] = NAN;
    if (!see(x, u)) return 0;
${calls}
    for (int o = 0; o < N_OUTPUTS; o++) {
        f[o] = intercept[o];
        for (int k = 0; k < LANES; k++) f[o] += sum[o][k];
    }
    return 1;
}
"""

ONE_VALUE = r"""
double ${name}(const double *x) {
    double f[N_OUTPUTS];
    values(x, f);
    return ${mean}(f[0]);
}

void ${name}_rows(const double *X, size_t n_rows, double *out) {
    for (size_t i = 0; i < n_rows; i++) out[i] = ${name}(X + i * N_COLUMNS);
}
"""

SOME_VALUES = r"""
void ${name}(const double *x, double *out) {
    values(x, out);
    for (int o = 0; o < N_OUTPUTS; o++) out[o] = ${mean}(out[o]);
}

void ${name}_rows(const double *X, size_t n_rows, double *out) {
    for (size_t i = 0; i < n_rows; i++) ${name}(X + i * N_COLUMNS, out + i * N_OUTPUTS);
}
"""

CLASSES = r"""
int ${name}(const double *x) {
    double f[N_OUTPUTS];
    int best = 0;
    if (!values(x, f)) return -1;
    if (N_OUTPUTS == 1) return f[0] > 0;
    for (int o = 1; o < N_OUTPUTS; o++)
        if (f[o] > f[best]) best = o;
    return best;
}

void ${name}_rows(const double *X, size_t n_rows, int *out) {
    for (size_t i = 0; i < n_rows; i++) out[i] = ${name}(X + i * N_COLUMNS);
}

void ${name}_decision(const double *x, double *f) {
    values(x, f);
}
"""

PROBABILITIES = r"""
static double sigmoid(double z) {
    double e = exp(-fabs(z));
    return (z > 0 ? 1 : e) / (1 + e);
}

void ${name}_proba(const double *x, double *p) {
    double f[N_OUTPUTS], total = 0;
    if (!values(x, f)) {
        for (int o = 0; o < N_CLASSES; o++) p[o] = NAN;
        return;
    }
    if (N_OUTPUTS == 1) {
        p[N_CLASSES - 1] = sigmoid(f[0]);
        p[0] = 1 - p[N_CLASSES - 1];
        return;
    }
    for (int o = 0; o < N_OUTPUTS; o++) total += p[o] = sigmoid(f[o]);
    for (int o = 0; o < N_OUTPUTS; o++) p[o] = total > 0 ? p[o] / total : 1.0 / N_OUTPUTS;
}
"""

SOFTMAX = r"""
void ${name}_proba(const double *x, double *p) {
    double f[N_OUTPUTS], most, total = 0;
    if (!values(x, f)) {
        for (int o = 0; o < N_CLASSES; o++) p[o] = NAN;
        return;
    }
    most = f[0];
    for (int o = 1; o < N_OUTPUTS; o++) most = f[o] > most ? f[o] : most;
    for (int o = 0; o < N_OUTPUTS; o++) total += p[o] = exp(f[o] - most);
    for (int o = 0; o < N_OUTPUTS; o++) p[o] /= total;
}
"""

# All templates.
ALL = (HEAD, VIEWS, SEEN, SEE_RAW, LINEAR, NEURONS, PRODUCTS, VALUES, ONE_VALUE, SOME_VALUES, CLASSES, PROBABILITIES, SOFTMAX,
       OF_CLASSES, OF_PROBABILITIES, OF_VALUE)  # fmt: skip
