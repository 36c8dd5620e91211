"""A model as a file of C99, which needs the C library alone and computes as `predict` does in
double precision.

The file is put together from the templates at the end of this module and from tables of numbers. It
has a function that encodes the columns of a row, functions that add up the terms of one activation
each, in vectors, and the functions that users call.
"""

from __future__ import annotations

import re
from string import Template
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .._base.expressions import variable
from .._base.files import new_file
from .._base.screen import GLUE
from ..columns.kinds import arithmetic
from ..expansion.terms import table_of
from ..losses import PROBABILISTIC
from ..losses.links import LINKS
from ..losses.ordinal import probability_weights
from .printer import Printer, signed
from .written import TermGroup, WrittenModel

if TYPE_CHECKING:
    from os import PathLike

    from .._base.expressions import Expression
    from ..expansion import Expansion

# The number of terms that are computed side by side. Compilers vectorize loops of this length;
# loops of length 16 they unroll.
LANES = 32
# Dense weights of which at most one in SPARSE_BELOW is not 0 are written as sparse ones.
SPARSE_BELOW = 3
# The most characters on a line of the comment at the top.
WIDTH = 112
# The most numbers on a line of an array.
NUMBERS = 5


def to_c(model: Expansion, path: str | PathLike[str] | None = None, name: str = "predict") -> str:
    """Write a model as a file of C: see `SparseModel.to_c`."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise ValueError(
            f"name must be the name of a function in C, letters, digits and _, got {name!r}"
        )
    if {name, name.rstrip("0123456789")} & RESERVED:
        raise ValueError(f"name must not be a word of C or of the file itself, got {name!r}")
    written = WrittenModel.from_model(model)
    model = written.model
    n_inputs, n_outputs = len(written.encoder), len(written.intercept)
    groups = [part for group in written.groups for part in _without_zeros(group)]
    printer = CPrinter(written)
    see = _encodings(written, printer)
    terms = "".join(printer.terms(group, b) for b, group in enumerate(groups))
    declarations, functions = _public_functions(model, name, printer)
    sizes = {"n_columns": model.n_features_in, "n_inputs": n_inputs, "n_outputs": n_outputs}
    parts = [_comment(written, name), _filled(HEAD, **sizes, lanes=LANES), declarations, see]
    has_waves, has_tanhs, has_bumps = (f"{call}(" in terms for call in ("waves", "tanhs", "bumps"))
    parts += [WAVES * has_waves, EXPONENTIAL * (has_tanhs or has_bumps)]
    parts += [TANHS * has_tanhs, BUMPS * has_bumps, terms, _outputs(written, len(groups))]
    source = "".join([*parts, functions])
    if path is not None:
        with new_file(path) as file:
            file.write(source.encode())
    return source


def _filled(template, **values):
    """Fill in the ${names} of a template."""
    return Template(template).substitute(values)


def _comment(written, name):
    """Return the comment at the top: what the file computes from which columns, and which rows it
    rejects."""
    model = written.model
    nan = f"NAN {'is a missing number, ' * written.encoder.may_miss}and infinite ones are"
    then = "f is NAN"
    if model.classes is not None:
        then = "the class is -1, and decision values and probabilities are NAN"
    lines = [
        f"{name}: {model!r}, written by sparserf. C99; link with -lm.",
        f"A row x is the {model.n_features_in} columns of X in their order, as doubles.",
        f"{nan} refused in the columns that f depends on: {then}.",
        *_about_columns(model),
    ]
    wrapped = [
        piece
        for line in lines
        for piece in wrap(line, WIDTH, break_long_words=False, subsequent_indent="  ")
    ]
    return "/* " + "\n * ".join(wrapped).replace(GLUE, " ") + "\n */\n"


def _about_columns(model):
    """Yield a line for each column that has a name or is a category."""
    table = table_of(model.features)
    if table is None:
        return
    for j, levels in enumerate(table.levels):
        name = "" if table.names is None else f" {_commented(table.names[j])}"
        if levels is not None:
            listed = ", ".join(
                f"{k} {_commented(level)}".replace(" ", GLUE) for k, level in enumerate(levels)
            )
            yield (
                f"x[{j}]{name}, the number of its level; -1 for any other, NAN where missing: "
                f"{listed}"
            )
        elif j in table.clocks:
            yield f"x[{j}]{name}, {table.clocks[j].unit}"
        elif name:
            yield f"x[{j}]{name}"


def _commented(level):
    """Return a level or a name, escaped so that it neither ends nor begins a comment and has no
    trigraph."""
    if not isinstance(level, str):
        return str(level)
    escaped = "".join(
        c if c.isprintable() and c not in '"\\' else f"\\x{ord(c):02x}" for c in level
    )
    return '"' + escaped.replace("*/", "*\\/").replace("/*", "/\\*").replace("??", "?\\?") + '"'


def _public_functions(model, name, printer):
    """Return (the declarations, the definitions) of the functions that other files call."""
    if model.classes is None:
        templates = (
            (OF_VALUE, ONE_VALUE) if np.size(model.intercept) == 1 else (OF_VALUES, SOME_VALUES)
        )
        link = LINKS[model.link]
        one, each = (printer(link.prediction(variable(f))) for f in ("f[0]", "out[o]"))
        sort = ASCENDING if link.is_ascending else ""
        about = {"name": name, "what": link.formula, "one": one, "each": each, "sort": sort}
        return [_filled(template, **about) for template in templates]
    ctype, labels = _labels(model.classes)
    rule = (
        ": of two classes it is the second\n * where the value is positive, of more of the largest"
    )
    rule = "" if model.thresholds else rule
    declared = _filled(
        OF_CLASSES, name=name, n=len(labels), ctype=ctype, labels=_in_lines(labels), rule=rule
    )
    defined = _filled(CLASSES, name=name, place=_place(model))
    if model.loss in PROBABILISTIC:
        declared += _filled(OF_PROBABILITIES, name=name)
        defined += _probabilities(model, name)
    return declared, defined


def _place(model):
    """Return the statements of the place of the class of f."""
    if not model.thresholds:
        return PLACE_OF_LARGEST
    predicted, cuts = model.cut_classes
    places = [str(model.classes.tolist().index(label)) for label in predicted.tolist()]
    return _filled(PLACE_AMONG_CUTS, n=len(cuts), cuts=_numbers(cuts), places=_in_lines(places))


def _probabilities(model, name):
    """Return the function of the probabilities of the classes."""
    if model.link == "softmax" and np.size(model.intercept) > 1:
        return _filled(PROBABILITIES, name=name, of_f=SOFTMAX)
    of_f, thresholds = ONE_VS_REST, model.thresholds
    if thresholds:
        weights = _numbers(probability_weights(thresholds))
        of_f = _filled(CUMULATIVE, thresholds=_numbers(thresholds), weights=weights)
    return SIGMOID + _filled(PROBABILITIES, name=name, of_f=of_f)


def _labels(classes):
    """Return (the type in C of the labels of classes, their literals)."""
    kind = classes.dtype.kind
    if kind in "US":
        return "const char *const", [_string(c) for c in classes.tolist()]
    if kind == "f":
        return "const double", [_number(float(c)) for c in classes]
    if kind == "u":
        return "const unsigned long long", [f"{c}ull" for c in classes]
    smallest = -(2**63)  # it has no literal in C
    return "const long long", [
        f"{c}ll" if c > smallest else f"{c + 1}ll - 1" for c in map(int, classes)
    ]


def _string(label):
    """Return a string, or bytes, as a literal of ASCII."""
    label = label.encode("utf-8", "surrogatepass") if isinstance(label, str) else label
    plain = {c: chr(c) for c in range(32, 127) if chr(c) not in '"\\?'}
    return '"' + "".join(plain.get(c, f"\\{c:03o}") for c in label) + '"'


def _encodings(written, printer):
    """Return the C function `see`, which makes the encodings of a row, with what it needs."""
    columns, may_miss = written.columns, written.encoder.may_miss
    is_each = np.array_equal(columns, np.arange(len(columns)))
    arrays, place = ("", "j") if is_each else (_array("int", "columns", columns), "columns[j]")
    if written.has_raw_inputs:
        return arrays + _filled(SEE_RAW, column=place)
    lines = "\n".join(f"    u[{v}] = {printer(each)};" for v, each in enumerate(written.inputs))
    helpers = "".join(text for name, text in HELPERS.items() if name in lines)
    or_nan, refused = (
        ("", f"isinf(x[{place}])") if may_miss else (" or NAN", f"!isfinite(x[{place}])")
    )
    see = _filled(SEE, or_nan=or_nan, n=len(columns), refused=refused, lines=lines)
    return helpers + printer.take_tables() + arrays + see


class CPrinter(Printer):
    """Writes expressions in C: encodings of cells x[j], one by one, and terms of inputs u, LANES of
    them side by side in z."""

    templates: ClassVar[dict[str, str]] = {
        "cos": "cos({})",
        "sin": "sin({})",
        "tanh": "tanh({})",
        "exp": "exp({})",
        "absolute": "fabs({})",
        "positive": "({0} > 0 ? {0} : 0)",
        "sign": "({} >= 0 ? 1 : -1)",
    }

    smaller: ClassVar[str] = "{0} > {1} ? {1} : {0}"
    reached: ClassVar[str] = "reached({}, {})"
    where: ClassVar[str] = "{} ? {} : {}"
    is_missing: ClassVar[str] = "isnan({})"
    is_level: ClassVar[str] = "{0} >= {1} && {0} < {2}"

    def __init__(self, written: WrittenModel):
        super().__init__(None, written)
        self._tables, self._n_tables, self._group = [], 0, None

    def take_tables(self) -> str:
        """Return the definitions of the arrays that were written since the last call."""
        tables, self._tables = "".join(self._tables), []
        return tables

    def literal(self, value: float) -> str:
        return _number(float(value))

    # -- encodings

    def cell(self, e: Expression) -> str:
        return f"x[{e.column}]"

    def _tabulated(self, template, e, **arrays):
        """Fill in a template of a function of some arrays, which are defined, and of a cell."""
        self._n_tables += 1
        self._tables += [
            _array("double", f"{what}_{self._n_tables}", values) for what, values in arrays.items()
        ]
        n = len(next(iter(arrays.values())))
        return _filled(template, v=self._n_tables, n=n, x=self(e.operands[0]))

    def between(self, e: Expression) -> str:
        return self._tabulated(BETWEEN, e, knots=e.knots, scores=e.scores)

    def units(self, e: Expression) -> str:
        """Return (r power - center) factor: with a power of two nothing overflows."""
        power, center, factor = map(float, arithmetic(e.center, e.unit))
        if not factor:
            return "0"
        r = self(e.operands[0])
        if not center and np.isfinite(power * factor) and power * factor:
            return r if power * factor == 1 else f"{r} * {_number(power * factor)}"
        r = r if power == 1 else f"{r} * {_number(power)}"
        return f"({r} {signed(-center, _number(abs(center)))}) * {_number(factor)}"

    def looked_up(self, e: Expression) -> str:
        return self._tabulated(OF_LEVEL, e, levels=np.array([e.other, *e.values.values()]))

    # -- terms

    def terms(self, group: TermGroup, b: int) -> str:
        """Return the C function that adds up the terms of group b, with its tables."""
        n_terms, inputs = len(group.block), group.block.inputs
        self._group, self._begins = (b, -(-n_terms // LANES)), ""
        expression = group.block.expression
        over = expression.find("reduce")
        summand, n_vectors = self(over.operands[0]), self._group[1]
        steps = "".join(f"        {line}\n" for line in self._steps(expression))
        self._add_table("coef", group.coef.T)
        order = "N_INPUTS" if inputs is None else inputs.shape[1]
        start, sign = " = {0};", "+"
        if over.how == "multiply":
            start, sign = ";\n        for (int k = 0; k < LANES; k++) z[k] = 1;", "*"
        about = f"\n/* {n_terms} terms, {LANES} side by side. */\n" + self.take_tables()
        text = {"start": start, "sign": sign, "summand": summand, "steps": steps}
        text |= {"b": b, "begins": self._begins, "n_groups": n_vectors, "order": order}
        return about + _filled(TERMS, **text)

    def _steps(self, e):
        """Return the statements that make z, the sum or product over inputs, the expression e of
        it."""
        if e.operation == "reduce":
            return []
        operand, *others = e.operands
        if e.operation == "exp" and operand.operation == "negative":
            return [*self._steps(operand.operands[0]), "bumps(z);"]
        if e.operation in VECTORS:
            return [*self._steps(operand), VECTORS[e.operation]]
        if e.operation == "add" and not any(each.find("reduce") for each in others):
            parts = [
                self(each) for each in others if each.operation != "parameter" or each.values.any()
            ]
            return [
                *self._steps(operand),
                *(f"for (int k = 0; k < LANES; k++) z[k] += {part};" for part in parts),
            ]
        return [f"for (int k = 0; k < LANES; k++) z[k] = {self(e)};"]

    def reduce(self, e: Expression) -> str:
        """Return the sum or product over inputs, which z holds."""
        return "z[k]"

    def _add_table(self, what, values):
        """Define the array of some numbers of the terms of the group."""
        b, n_vectors = self._group
        ctype = "int" if what == "inputs" else "double"
        table = _array(ctype, f"{what}_{b}", _in_lanes(values, n_vectors))
        self._tables += [] if table in self._tables else [table]

    def parameter(self, e: Expression) -> str:
        """Return the numbers of terms."""
        b = self._group[0]
        self._add_table(e.name, e.values)
        if e.values.ndim == 1:
            return f"{e.name}_{b}[g][k]"
        return f"{e.name}_{b}[g][{0 if e.values.shape[1] == 1 else 'i'}][k]"

    def seen(self, e: Expression) -> str:
        """Return the inputs of terms."""
        u, b = "u", self._group[0]
        if e.enveloped is not None:
            gamma, degree = e.enveloped
            root, u = float(np.sqrt(2 * gamma)), "factor"
            self._begins = _filled(FACTORS, gamma=_number(gamma), order=degree, root=_number(root))
        if e.inputs is None:
            return f"{u}[i]"
        self._add_table("inputs", e.inputs)
        return f"{u}[inputs_{b}[g][i][k]]"


def _without_zeros(group):
    """Return the parts in which a group of terms with dense weights is written: if these are mostly
    0, with sparse ones.

    The terms are in the order of the number of their inputs, and a part has terms of about as many.
    """
    block = group.block
    if block.inputs is not None:
        return [group]
    is_there = block.is_used
    count = np.maximum(1, is_there.sum(axis=1))
    if len(block) < LANES or count.sum() * SPARSE_BELOW > is_there.size:
        return [group]
    order = np.argsort(count, kind="stable")
    # of each vector
    last = np.arange(LANES - 1, len(order) + LANES - 1, LANES)
    largest = count[order][np.minimum(last, len(order) - 1)]
    cuts = LANES * (1 + np.flatnonzero(np.diff(np.ceil(3 * np.log2(largest)))))
    parts = []
    for terms in np.split(order, cuts):
        inputs = np.argsort(~is_there[terms], axis=1, kind="stable")[:, : count[terms].max()]
        parts.append(TermGroup(block.take(terms).gathered(inputs), group.coef[:, terms]))
    return parts


def _in_lanes(values, n_vectors):
    """Return (n_terms, m) or (n_terms,) values as (n_vectors, m, LANES) or (n_vectors, LANES), with
    zeros at the end."""
    padded = np.zeros((n_vectors * LANES, *values.shape[1:]), values.dtype)
    padded[: len(values)] = values
    return np.moveaxis(padded.reshape(n_vectors, LANES, *values.shape[1:]), 1, -1)


def _outputs(written, n_groups):
    """Return the C function `values`, which computes all outputs f of a row, with the sum of linear
    terms."""
    lower, upper = written.model.lower, written.model.upper
    calls = [f"    add_terms_{b}(u, sum);" for b in range(n_groups)]
    linear = ""
    if written.linear.any():
        linear = "\n" + _array("double", "linear", written.linear) + LINEAR
        calls.append("    add_linear(u, sum);")
    limits = {
        "lower": "" if lower is None else _filled(LOWER, limit=_number(lower)),
        "upper": "" if upper is None else _filled(UPPER, limit=_number(upper)),
    }
    intercept = _array("double", "intercept", written.constant)
    return f"{linear}\n{intercept}" + _filled(VALUES, calls="\n".join(calls), **limits)


def _array(ctype, name, values):
    """Return the definition of a constant array."""
    sizes = "".join(f"[{n}]" for n in values.shape)
    write = str if ctype == "int" else _number
    return f"static const {ctype} {name}{sizes} = {_nested(values.tolist(), write)};\n"


def _nested(values, write):
    """Return nested lists as an initializer; write : a function that writes a number."""
    if isinstance(values[0], list):
        return "{" + ",\n    ".join(_nested(each, write) for each in values) + "}"
    return _in_lines([write(each) for each in values])


def _numbers(values):
    """Return numbers as an initializer."""
    return _in_lines([_number(value) for value in values])


def _in_lines(words):
    """Return words in braces, NUMBERS on a line."""
    lines = [", ".join(words[i : i + NUMBERS]) for i in range(0, len(words), NUMBERS)]
    return "{" + ",\n     ".join(lines) + "}"


def _number(value):
    """Return the shortest literal that reads back as the same double."""
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return "0" if value == 0 else repr(value).removesuffix(".0")


# -- the templates; `to_c` puts together the ones that the model needs

HEAD = r"""
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "compile without -ffast-math: NAN and rounding must be those of C99"
#endif

enum { N_COLUMNS = ${n_columns}, N_INPUTS = ${n_inputs}, N_OUTPUTS = ${n_outputs} };
enum { LANES = ${lanes} };

/* Added and taken again, it rounds a double to an integer. */
#define ROUNDER 6755399441055744.0
/* Whether doubles are computed as doubles; if not, the C library has the functions. */
#define IS_DOUBLE (FLT_EVAL_METHOD >= 0 && FLT_EVAL_METHOD != 2)
"""

# Declarations of the functions that other files call, by what the model predicts.
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
/* The place of a row's class among ${name}_classes, or -1; the same of n_rows rows that lie one
 * after the other; and the N_OUTPUTS decision values of a row${rule}. */
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

# Calls of the functions that make encodings, and these functions, which compute the formulas of
# `columns/kinds.py`.
BETWEEN = "between(knots_${v}, scores_${v}, ${n}, ${x})"
OF_LEVEL = "of_level(levels_${v}, ${n}, ${x})"
HELPERS = {
    "between(": r"""
/* Linear between two knots, constant beyond the ends. */
static double between(const double *knot, const double *score, int n, double x) {
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
""",
    "of_level(": r"""
/* The first value where x is no level, and else that of level x. */
static double of_level(const double *value, int n, double x) {
    return x < 0 ? value[0] : x < n - 1 ? value[1 + (int)x] : value[n - 1];
}
""",
    "reached(": r"""
/* Drawn in, beyond the reach of the training rows, to at most twice that. */
static double reached(double u, double reach) {
    double size = fabs(u);
    return size > reach ? copysign(reach * (2 - reach / size), u) : u;
}
""",
}
SEE = r"""
/* What terms see of a row; 0 where a number is infinite${or_nan}. */
static int see(const double *x, double *u) {
    for (int j = 0; j < ${n}; j++)
        if (${refused}) return 0;
${lines}
    return 1;
}
"""

# The function `see` of a model whose encodings are columns as they are.
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

# The sum of all linear terms.
LINEAR = r"""
static void add_linear(const double *u, double sum[N_OUTPUTS][LANES]) {
    for (int o = 0; o < N_OUTPUTS; o++)
        for (int j = 0; j < N_INPUTS; j++) sum[o][j % LANES] += linear[o][j] * u[j];
}
"""

# The sum of the terms of one group, numbered b; and what the inputs of products are.
TERMS = r"""
static void add_terms_${b}(const double *u, double sum[N_OUTPUTS][LANES]) {
${begins}    for (int g = 0; g < ${n_groups}; g++) {
        double z[LANES]${start}
        for (int i = 0; i < ${order}; i++)
            for (int k = 0; k < LANES; k++) z[k] ${sign}= ${summand};
${steps}        for (int o = 0; o < N_OUTPUTS; o++)
            for (int k = 0; k < LANES; k++) sum[o][k] += coef_${b}[g][o][k] * z[k];
    }
}
"""

FACTORS = """\
    double factor[1 + N_INPUTS], square = 0;
    for (int j = 0; j < N_INPUTS; j++) square += u[j] * ${gamma} * u[j];
    factor[0] = exp(-square / ${order});
    for (int j = 0; j < N_INPUTS; j++) factor[1 + j] = u[j] * (factor[0] * ${root});
"""

# All outputs f of a row, and the functions declared above.
VALUES = r"""
/* f of a row, N_OUTPUTS numbers; 0 where a column that it depends on holds what no row may, and f
 * is NAN. */
static int values(const double *x, double *f) {
    double u[N_INPUTS], sum[N_OUTPUTS][LANES] = {{0}};
    for (int o = 0; o < N_OUTPUTS; o++) f[o] = NAN;
    if (!see(x, u)) return 0;
${calls}
    for (int o = 0; o < N_OUTPUTS; o++) {
        f[o] = intercept[o];
        for (int k = 0; k < LANES; k++) f[o] += sum[o][k];${lower}${upper}
    }
    return 1;
}
"""

LOWER = "\n        if (f[o] < ${limit}) f[o] = ${limit};"
UPPER = "\n        if (f[o] > ${limit}) f[o] = ${limit};"

ONE_VALUE = r"""
double ${name}(const double *x) {
    double f[N_OUTPUTS];
    values(x, f);
    return ${one};
}

void ${name}_rows(const double *X, size_t n_rows, double *out) {
    for (size_t i = 0; i < n_rows; i++) out[i] = ${name}(X + i * N_COLUMNS);
}
"""

# The sorting of the outputs, of which there are few.
ASCENDING = """\
    for (int o = 1; o < N_OUTPUTS; o++)
        for (int k = o; k > 0 && out[k - 1] > out[k]; k--) {
            double larger = out[k - 1];
            out[k - 1] = out[k];
            out[k] = larger;
        }
"""

SOME_VALUES = r"""
void ${name}(const double *x, double *out) {
    values(x, out);
    for (int o = 0; o < N_OUTPUTS; o++) out[o] = ${each};
${sort}}

void ${name}_rows(const double *X, size_t n_rows, double *out) {
    for (size_t i = 0; i < n_rows; i++) ${name}(X + i * N_COLUMNS, out + i * N_OUTPUTS);
}
"""

PLACE_OF_LARGEST = r"""
    int best = 0;
    if (N_OUTPUTS == 1) return f[0] > 0;
    for (int o = 1; o < N_OUTPUTS; o++)
        if (f[o] > f[best]) best = o;
    return best;"""

PLACE_AMONG_CUTS = r"""
    static const double cuts[] = ${cuts};
    static const int places[] = ${places};
    int n_below = 0;
    for (int k = 0; k < ${n}; k++) n_below += f[0] > cuts[k];
    return places[n_below];"""

CLASSES = r"""
int ${name}(const double *x) {
    double f[N_OUTPUTS];
    if (!values(x, f)) return -1;${place}
}

void ${name}_rows(const double *X, size_t n_rows, int *out) {
    for (size_t i = 0; i < n_rows; i++) out[i] = ${name}(X + i * N_COLUMNS);
}

void ${name}_decision(const double *x, double *f) {
    values(x, f);
}
"""

PROBABILITIES = r"""
void ${name}_proba(const double *x, double *p) {
    double f[N_OUTPUTS];
    if (!values(x, f)) {
        for (int o = 0; o < N_CLASSES; o++) p[o] = NAN;
        return;
    }
${of_f}}
"""

# The statements that make probabilities of f, one template for each link, and the function that two
# of them call.
SIGMOID = r"""
static double sigmoid(double z) {
    double e = exp(-fabs(z));
    return (z > 0 ? 1 : e) / (1 + e);
}
"""

ONE_VS_REST = """\
    if (N_OUTPUTS == 1) {
        p[N_CLASSES - 1] = sigmoid(f[0]);
        p[0] = 1 - p[N_CLASSES - 1];
        return;
    }
    double total = 0;
    for (int o = 0; o < N_OUTPUTS; o++) total += p[o] = sigmoid(f[o]);
    for (int o = 0; o < N_OUTPUTS; o++) p[o] = total > 0 ? p[o] / total : 1.0 / N_OUTPUTS;
"""

CUMULATIVE = """\
    static const double thresholds[] = ${thresholds};
    static const double weights[] = ${weights};
    for (int k = 0; k < N_CLASSES; k++) {
        p[k] = weights[k];
        if (k < N_CLASSES - 1) p[k] *= sigmoid(thresholds[k] - f[0]);
        if (k > 0) p[k] *= sigmoid(f[0] - thresholds[k - 1]);
    }
"""

SOFTMAX = """\
    double most = f[0], total = 0;
    for (int o = 1; o < N_OUTPUTS; o++) most = f[o] > most ? f[o] : most;
    for (int o = 0; o < N_OUTPUTS; o++) total += p[o] = exp(f[o] - most);
    for (int o = 0; o < N_OUTPUTS; o++) p[o] /= total;
"""

# -- the activations: the formulas of `_core/simd.h`, in arithmetic that compilers turn into vectors

WAVES = r"""
/* sin(x + shift pi), shift 0 or 1/2: x less k pi, a multiple for which it lies in [-pi/2, pi/2];
 * then a polynomial. It errs by some 1e-15 of the larger of itself and 1e-6, for |x| <= FARTHEST;
 * beyond, the C library. A phase that overflows counts as 0, the mean. */
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

EXPONENTIAL = r"""
/* exp(x) = 2^k exp(r) with |r| <= log(2) / 2: returns exp(r) - 1, and 2^k in two_k. */
static inline double exp_minus_one(double x, double *two_k) {
    double rounded = x * 1.4426950408889634074 + ROUNDER;
    double k = rounded - ROUNDER;
    double r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
    double p = r * 2.0914898727175524234e-9 + 2.5105513541847084876e-8;
    uint64_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(two_k, &bits, sizeof bits);
    p = p * r + 2.7557273132896040925e-7;
    p = p * r + 2.7557254685728802533e-6;
    p = p * r + 2.4801587325951109373e-5;
    p = p * r + 1.9841269875385479525e-4;
    p = p * r + 1.3888888888883632605e-3;
    p = p * r + 8.3333333333259731077e-3;
    p = p * r + 4.1666666666669842e-2;
    p = p * r + 1.6666666666666671113e-1;
    p = p * r + 0.5;
    return p * (r * r) + r;
}
"""

TANHS = r"""
/* tanh(x) = e / (e + 2), e = exp(2 |x|) - 1 = 2^k (exp(r) - 1) + (2^k - 1), with the sign of x,
 * for |x| <= 20. It errs by some 1e-15 of itself. Arguments are bounded in loops of their own:
 * compilers vectorize these, and not all in one. */
static inline double near_tanh(double x) {
    double two_k, p = exp_minus_one(2 * fabs(x), &two_k);
    double e = two_k * p + (two_k - 1);
    return copysign(e / (e + 2), x);
}

static void tanhs(double *z) {
    for (int k = 0; k < LANES; k++) z[k] = z[k] < 20 ? z[k] : isnan(z[k]) ? 0 : 20;
    for (int k = 0; k < LANES; k++) z[k] = z[k] > -20 ? z[k] : -20;
    for (int k = 0; k < LANES; k++) z[k] = IS_DOUBLE ? near_tanh(z[k]) : tanh(z[k]);
}
"""

BUMPS = r"""
/* exp(-x) for 0 <= x <= 709, where it is 0: the smallest normal number is exp(-708.4). It errs by
 * some 1e-15 of itself. */
static inline double near_bump(double x) {
    double two_k, p = exp_minus_one(-x, &two_k);
    return two_k * p + two_k;
}

static void bumps(double *z) {
    for (int k = 0; k < LANES; k++) z[k] = z[k] < 709 ? z[k] : 709;
    for (int k = 0; k < LANES; k++) z[k] = IS_DOUBLE ? near_bump(z[k]) : exp(-z[k]);
}
"""

# The statements that apply functions to z[LANES], all at once.
VECTORS = {"cos": "waves(z, 0.5);", "sin": "waves(z, 0);", "tanh": "tanhs(z);"}

# Names that a model's function may not have: the words of C, and all names in the templates.
TEMPLATES = [text for name, text in vars().items() if name.isupper() and isinstance(text, str)]
TEMPLATES += [*HELPERS.values(), *VECTORS.values()]
TEMPLATES += ["columns weights_ centers_ inputs_ offset_ linear intercept"]
RESERVED = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long main register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile "
    "while".split()
) | set(re.findall(r"\w+", re.sub(r"/\*.*?\*/|\$\{\w+\}", "", "".join(TEMPLATES), flags=re.DOTALL)))
