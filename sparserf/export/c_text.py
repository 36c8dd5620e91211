"""What every file of C has in common, or those whose models have such views or terms: its text."""

HEAD = r"""
#include <float.h>
#include <math.h>
#include <stddef.h>

#ifdef __FAST_MATH__
#error "compile without -ffast-math: NAN and rounding must be those of C99"
#endif

enum { N_COLUMNS = ${n_columns}, N_INPUTS = ${n_inputs}, N_OUTPUTS = ${n_outputs}, LANES = ${lanes} };
"""

# What other files may call: declarations, and the functions further down.
OF_VALUE = r"""
/* f of a row, and of n_rows rows that lie one after the other. */
double ${name}(const double *x);
void ${name}_rows(const double *X, size_t n_rows, double *out);
"""

OF_VALUES = r"""
/* The N_OUTPUTS numbers f of a row, and of n_rows rows that lie one after the other. */
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

# The formulas of `_core/simd.h`, in arithmetic that compilers turn into vectors.
WAVES = r"""
/* sin(x + shift pi), shift 0 or 1/2: x less k pi, a multiple for which it lies in [-pi/2, pi/2]; then a polynomial. Adding and
 * taking ROUNDER rounds to an integer. About 3 units in the last place for |x| <= FARTHEST; beyond, and where doubles are
 * computed in another precision (FLT_EVAL_METHOD 2 or less than 0), the C library. A phase that overflows counts as 0. */
#define ROUNDER 6755399441055744.0
#define FARTHEST (FLT_EVAL_METHOD >= 0 && FLT_EVAL_METHOD != 2 ? 1e6 : -1.0)

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

ACTIVATIONS = {
    "cos": "waves(z, 0.5);",
    "sin": "waves(z, 0);",
    "tanh": "for (int k = 0; k < LANES; k++) z[k] = isnan(z[k]) ? 0 : tanh(z[k]);",
    "relu": "for (int k = 0; k < LANES; k++) z[k] = z[k] > 0 ? z[k] : 0;",
    "sign": "for (int k = 0; k < LANES; k++) z[k] = z[k] >= 0 ? 1 : -1;",
}

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
    return f[0];
}

void ${name}_rows(const double *X, size_t n_rows, double *out) {
    for (size_t i = 0; i < n_rows; i++) values(X + i * N_COLUMNS, out + i);
}
"""

SOME_VALUES = r"""
void ${name}(const double *x, double *out) {
    values(x, out);
}

void ${name}_rows(const double *X, size_t n_rows, double *out) {
    for (size_t i = 0; i < n_rows; i++) values(X + i * N_COLUMNS, out + i * N_OUTPUTS);
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

# All templates.
ALL = (HEAD, VIEWS, SEEN, SEE_RAW, LINEAR, WAVES, *ACTIVATIONS.values(), NEURONS, PRODUCTS, VALUES, ONE_VALUE, SOME_VALUES,
       CLASSES, PROBABILITIES, OF_CLASSES, OF_PROBABILITIES, OF_VALUE)  # fmt: skip
