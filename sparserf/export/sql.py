"""A model as a SELECT statement, in SQL that SQLite, DuckDB and PostgreSQL read alike.

The query is a chain of steps, the common table expressions of WITH: the first reads the columns as
doubles, the next makes their encodings, then come envelopes, exponents of bumps, terms, outputs and
predictions. Steps are MATERIALIZED, since engines that inline subqueries would compute each
encoding again in every term.

Engines differ in what one of them does silently and another refuses. SQLite reads "x9" as a text
where the table has no such column: columns are read as r."x9". DuckDB computes with decimals where
it sees 0.5, and takes 0.5e0 as a double: all numbers have an exponent. PostgreSQL stops at the
first product that over- or underflows: what is as good as 0 is 0 from the start, and what saturates
is first clipped to FARTHEST. NaN is the largest number to these two: it becomes NULL.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._base.expressions import cell, variable
from ..columns.clocks import DATES, DURATIONS
from ..columns.table import numbers_rounded_to
from ..expansion.outputs import two_classes
from ..losses import PROBABILISTIC
from ..losses.links import LINKS
from ..losses.ordinal import probability_weights
from .printer import Printer, balanced, float_literal, signed
from .written import heading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.expressions import Expression
    from .written import WrittenModel

# The template of a number in double precision.
DOUBLE = "CAST({} AS DOUBLE PRECISION)"
# The months of a date from its text, since March of the year 0.
MONTHS = (
    f"({DOUBLE.format('SUBSTR({0}, 1, 4)')} * 12.0 + {DOUBLE.format('SUBSTR({0}, 6, 2)')} - 3.0)"
)
# The most columns that a step computes.
MOST_MADE = 750
# The most columns that a step has: PostgreSQL allows 1,664, SQLite 2,000.
MOST_COLUMNS = 1600
# The most outputs that one CASE compares with each other.
MOST_COMPARED = 8
# e^-x is written as 0 for x beyond FAR: PostgreSQL raises an error for results below its smallest
# double, products too.
FAR = 500.0
# The exponent of a prediction, which nothing is multiplied by, may be between these; e to the power
# of more is the largest double.
EXPONENTS = (-745.0, 709.78)
# The largest double, but for rounding.
LARGEST = 1.79e308
# A cell so near 0 that it moves no phase by more than this is read as 0: third powers of larger
# ones do not underflow.
NEAREST = 1e-90
# Numbers are clipped to so many units where no term grows without a bound, or encodings saturate.
FARTHEST = 1e100
# A regular expression of what is quoted, or is the name of a column of a step.
WORDS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\b[a-z]\d+\b""")


def source(
    written: WrittenModel, digits: int | None, table: str | Sequence[str], keep: Sequence[str]
) -> str:
    """Return the SELECT statement of `SparseModel.formula`.

    The columns of its steps are k0, k1, ... for the columns to keep; c3 for a cell of column 3 of
    X, where it is a time its text, and then n3 for its months; x3 for its number or level, NULL
    where it is NaN; v5 for encoding 5 before it saturates, and u5 for the encoding; s0, ... for
    |u|^2; e0, ... for envelopes;
    z0, ... for exponents of bumps; t0, ... for terms; f0, ... for outputs; l0, ... for outputs
    within their limits; and a0, ... for outputs as they are put in ascending order.
    """
    printer = SqlPrinter(digits, written)
    number = printer.literal
    source = ".".join(_identifiers("table", table.split(".") if isinstance(table, str) else table))
    kept = {f"k{i}": name for i, name in enumerate(_identifiers("keep", keep))}
    columns, encodings = written.columns.tolist(), written.encodings
    read, sizes, clocks = _columns_read(written), _sizes_that_matter(written), written.clocks
    inputs = {k: f"r.{name}" for k, name in kept.items()} | {f"c{j}": read[j] for j in columns}
    dates = [j for j, clock in clocks.items() if clock.kind == DATES]
    steps = [("inputs", inputs), ("months", {f"n{j}": MONTHS.format(f"c{j}") for j in dates})]
    numbers = {f"x{j}": _days(f"c{j}", f"n{j}", clock) for j, clock in clocks.items()}
    numbers |= {
        f"x{j}": _without_nan(written, j, *sizes.get(j, (0.0, LARGEST)))
        for j in columns
        if j not in clocks
    }
    steps.append(("numbers", numbers))
    if encodings is not None:
        views = {f"u{v}": printer.view(v, each) for v, each in encodings.items()}
        steps += [("units", printer.units_made), ("views", views)]
    squares = [
        balanced([f"+ {u} * {u}" for u in map(printer.name, seen.tolist())])
        for seen in written.envelopes.values()
    ]
    steps.append(("squares", {f"s{i}": f"({square})" for i, square in enumerate(squares)}))
    envelopes = {
        f"e{i}": _power(f"-{number(gamma)} * s{i}", f"s{i} > {number(FAR / gamma)}")
        for i, gamma in enumerate(written.envelopes)
    }
    steps.append(("envelopes", envelopes))
    terms = {f"t{k}": printer.in_brackets(term.expression) for k, term in enumerate(written.terms)}
    steps += [("exponents", printer.exponents), ("terms", terms)]
    sums = [_sum(b, c, number) for b, c in zip(written.intercept, written.factors, strict=True)]
    steps.append(("outputs", {f"f{k}": f for k, f in enumerate(sums)}))
    more, answers = _answers(written.model, len(sums), PredictionPrinter(digits, written))
    _check_kept(kept.values(), answers)
    comment = f"-- {heading(written)}\n" if written.n_left_out else ""
    return comment + query(steps + more, {name: k for k, name in kept.items()} | answers, source)


def _identifiers(argument, names):
    """Check the names of a table or of columns, and quote them."""
    if isinstance(names, (str, bytes)) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{argument} must be a sequence of names, got {names!r}")
    if not all(map(_is_name, names)) or (argument == "table" and not names):
        raise ValueError(
            f"{argument} must have names of SQL, text that is not empty and without NUL, got "
            f"{names!r}"
        )
    return [quoted(name) for name in names]


def _is_name(name):
    """Return whether a text may be a name in SQL."""
    return bool(name) and "\0" not in name and _is_text(name)


def _is_text(text):
    """Return whether a string is text in UTF-8: it has no half of a pair of surrogates."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def _check_kept(kept, answers):
    """Check that no column to keep has the name of another, or of a result: engines regard neither
    quotes nor case."""
    taken = {name.strip('"').casefold() for name in answers}
    for name in kept:
        plain = name[1:-1].replace('""', '"')
        if plain.casefold() in taken:
            raise ValueError(
                "keep must have names that differ from each other and from those of the results, "
                "whatever their "
                f"case, got {plain!r}: rename the column"
            )
        taken.add(plain.casefold())


def _columns_read(written):
    """Return {column: the expression that reads it}: a number as a double, a category as it is."""
    columns = written.columns.tolist()
    names = [str(name) for name in written.model.feature_names_in_ or ()]
    place = {}
    for j, name in enumerate(names):
        place.setdefault(name.casefold(), []).append(j)
    for j in columns if names else ():
        if not _is_name(names[j]):
            raise ValueError(
                "a column that SQL reads must have a name without NUL, of valid text, got "
                f"X[{names[j]!r}]"
            )
        if len(same := place[names[j].casefold()]) > 1:
            raise ValueError(
                f"SQL engines take columns as one whose names differ in case alone, got "
                f"{', '.join(repr(names[k]) for k in same)}: rename them before the fit"
            )
    return {j: _read(written, j) for j in columns}


def _read(written, j):
    """Return the expression that reads column j of X: a number as a double, a time as text, a
    category as it is."""
    cell, clock = f"r.{quoted(str(written.names[j]))}", written.clocks.get(j)
    if clock is not None and clock.kind == DURATIONS:
        hint = f"make {written.names[j]!r} its number of days before the fit"
        raise ValueError(f"engines of SQL have no durations in common: {hint}")
    if clock is not None and clock.zone is not None:
        hint = (
            f"make {written.names[j]!r}, in {clock.zone}, local times without a zone before the fit"
        )
        raise ValueError(f"engines of SQL have no time zones in common: {hint}")
    if clock is not None:
        return f"CAST({cell} AS VARCHAR(40))"
    return cell if written.is_category(j) else DOUBLE.format(cell)


def _without_nan(written, j, nearest, farthest):
    """Return the number of a cell of column j, or its level: NULL where NaN or infinite, else a
    number of the two sizes."""
    if not written.is_category(j):
        near = f"WHEN ABS(c{j}) < {nearest!r} THEN 0e0 " if nearest else ""
        far = (
            f"WHEN c{j} > {farthest!r} THEN {farthest!r} WHEN c{j} < {-farthest!r} THEN "
            f"{-farthest!r} "
        )
        return (
            f"CASE {near}WHEN NOT ABS(c{j}) <= {LARGEST!r} THEN NULL "
            f"{far if farthest < LARGEST else ''}ELSE c{j} END"
        )
    if all(isinstance(level, str) for level in written.levels[j]):
        return f"c{j}"
    return f"CASE WHEN ABS({DOUBLE.format(f'c{j}')}) <= {LARGEST!r} THEN c{j} END"


def _sizes_that_matter(written):
    """Return {column: (size below which its cells are as good as 0, size beyond which they are as
    good as that size)}."""
    # the largest speed of a term with each encoding; the encodings with which one has no bound
    weight, grows = {}, set()
    for term in written.terms:
        for v, size in zip(term.encodings.tolist(), term.speeds.tolist(), strict=True):
            weight[v] = max(size, weight.get(v, 0.0))
        if not term.is_bounded:
            grows |= set(term.encodings.tolist())
    sizes = {}
    for v, size in weight.items():
        encoding = cell(v) if written.encodings is None else written.encodings[v]
        j, unit = encoding.find("cell").column, _nearest_unit(encoding) / max(size, 1e-200)
        saturates = any(map(encoding.find, ("between", "saturate")))
        near, far = sizes.get(j, (np.inf, 0.0))
        far = max(far, 0.0 if saturates else LARGEST if v in grows else FARTHEST * unit)
        sizes[j] = min(NEAREST * unit, near), far
    return {
        j: (near if near < np.inf else 0.0, min(far, LARGEST) or LARGEST)
        for j, (near, far) in sizes.items()
    }


def _nearest_unit(encoding):
    """Return the unit in which numbers near 0 are small: the least distance of two knots, or the
    unit; infinite for levels."""
    units, knots = encoding.find("units"), encoding.find("between")
    if units is None or not units.unit:
        return 1.0 if encoding.operation == "cell" else np.inf
    return units.unit if knots is None else float(np.diff(knots.knots).min(initial=np.inf))


def _days(text, months, clock):
    """Return the days since 1970-01-01 of a date, or since midnight of a time, from the text that
    all engines have of it.

    The text is in ISO 8601. A date that is written in another way is NULL, or an invalid number to
    an engine.

    months : the column of the months since March of the year 0
    """
    second = _number_in(text, 18 if clock.kind == DATES else 7)
    hour, minute = (
        _number_in(text, first, 2) for first in ((12, 15) if clock.kind == DATES else (1, 4))
    )
    time = f"({hour} / 24.0 + {minute} / 1440.0 + {second} / 86400.0)"
    if clock.kind != DATES:
        return f"CASE WHEN {text} LIKE '__:__:__%' THEN {time} END"
    year = f"FLOOR({months} / 12.0)"  # it begins in March
    parts = [
        f"365.0 * {year}",
        f"FLOOR({year} / 4.0)",
        f"FLOOR({year} / 400.0)",
        f"{_number_in(text, 9, 2)} - 719469.0",
        f"FLOOR((153.0 * ({months} - 12.0 * {year}) + 2.0) / 5.0)",
    ]
    days = f"({' + '.join(parts)} - FLOOR({year} / 100.0))"
    has_time = " OR ".join(f"{text} LIKE '____-__-__{between}__:__:__%'" for between in " T")
    return (
        f"CASE WHEN {text} LIKE '____-__-__' THEN {days} WHEN {has_time} THEN {days} + {time} END"
    )


def _number_in(text, first, size=None):
    """Return the number that is written in a text, from a first place on."""
    return DOUBLE.format(f"SUBSTR({text}, {first}{'' if size is None else f', {size}'})")


def _sum(b, c, number):
    """Return the sum of an intercept b and the terms t0, t1, ... times their coefficients c."""
    terms = (signed(a, f"{number(abs(a))} * t{k}") for k, a in enumerate(c) if a)
    return balanced([signed(b, number(abs(b))), *terms])


def query(steps: Sequence[tuple[str, dict[str, str]]], answers: dict[str, str], table: str) -> str:
    """Return the SELECT statement of some results at the end of a chain of steps.

    The first step reads the table, each other step the one before. A column that is used once is
    inlined where it is used, and a step that has only such columns is left out.

    steps : pairs of a name and {column: expression}
    answers : the results, {alias: expression}
    """
    (first, inputs), *steps = steps
    made = []
    for k, (name, columns) in enumerate(steps):
        later = [columns for _, columns in steps[k + 1 :]] + [answers]
        uses = Counter(word for each in later for word in _words(each))
        several = [column for column in columns if uses[column] > 1][:MOST_MADE]
        once = {column: columns[column] for column in columns if column not in several}
        *others, answers = [_inlined(each, once) for each in later]
        steps[k + 1 :] = [
            (name, each) for (name, _), each in zip(steps[k + 1 :], others, strict=True)
        ]
        made += [(name, {column: columns[column] for column in several})] if several else []
    if not made:
        return _select(_inlined(answers, inputs), f"{table} AS r")
    expressions, source, there = [], f"{table} AS r", {}
    for k, (name, columns) in enumerate(made := [(first, inputs), *made]):
        later = {
            word
            for each in [columns for _, columns in made[k + 1 :]] + [answers]
            for word in _words(each)
        }
        columns = {column: column for column in there if column in later} | columns
        if len(columns) > MOST_COLUMNS:
            raise ValueError(
                f"SQL engines bear some {MOST_COLUMNS:,} columns in a SELECT, and the model needs "
                f"{len(columns):,}: "
                "make one of fewer terms with sparserf.prune"
            )
        name += "_" * (f'"{name}"' == table.rpartition(".")[2].lower())
        expressions.append(f"{name} AS MATERIALIZED (\n{_select(columns, source)}\n)")
        source, there = name, columns
    return f"WITH {', '.join(expressions)}\n{_select(answers, source)}"


def _words(columns):
    """Return all words in some expressions that are quoted, or are names of columns."""
    return [word for expression in columns.values() for word in WORDS.findall(expression)]


def _inlined(columns, written):
    """Return {alias: expression} with the names of some columns replaced by their expressions,
    {name: expression}."""
    swap = partial(WORDS.sub, lambda word: written.get(word[0], word[0]))
    return (
        {alias: swap(expression) for alias, expression in columns.items()} if written else columns
    )


def _select(columns, source):
    """Return the SELECT of {alias: expression} from a source."""
    parts = [
        column if column == expression else f"{expression} AS {column}"
        for column, expression in columns.items()
    ]
    return "SELECT " + ",\n  ".join(parts) + f"\nFROM {source}"


def _answers(model, n_outputs, printer):
    """Return (more steps, {alias: expression}) for the predictions and probabilities, from the
    outputs f0, f1, ..."""
    f = [f"f{k}" for k in range(n_outputs)]
    if model.classes is None:
        aliases = ["prediction"]
        if model.coef.ndim > 1:
            aliases = [f"prediction_{k}" for k in range(n_outputs)]
        steps = []
        if model.has_limits:
            limited = {f"l{k}": _within(model, each) for k, each in enumerate(f)}
            steps, f = [("limited", limited)], list(limited)
        link = LINKS[model.link]
        if link.is_ascending:
            exchanges, f = _ascending(f)
            steps += exchanges
        values = [printer(link.prediction(variable(each))) for each in f]
        return steps, dict(zip(aliases, map(DOUBLE.format, values), strict=True))
    is_double, classes = model.classes.dtype.kind == "f", model.classes.tolist()
    if len(classes) > MOST_MADE:
        raise ValueError(
            f"language 'sql' is for up to {MOST_MADE} classes, the model has {len(classes)}"
        )
    if model.thresholds:
        label = _cut(*model.cut_classes)
        steps, answers = _cumulative(model.thresholds)
    elif model.coef.ndim == 1:
        one, other = two_classes(model)
        label = f"CASE WHEN f0 > 0 THEN {literal(other)} WHEN f0 <= 0 THEN {literal(one)} END"
        if model.loss in PROBABILISTIC:
            answers, steps = ["1e0 - p0", "p0"], [("parts", {"p0": _logistic("f0")})]
        else:
            answers, steps, classes = ["f0"], [], [other]
    else:
        steps, largest = _largest(f)
        cases = " ".join(
            f"WHEN {each} = {largest} THEN {literal(label)}"
            for each, label in zip(f, classes, strict=True)
        )
        label, answers = f"CASE {cases} END", f
        if model.loss in PROBABILISTIC:
            shares, answers = _shares(f, largest, model.link == "softmax")
            steps += shares
    kind = "probability" if model.loss in PROBABILISTIC else "decision"
    aliases = [quoted(f"{kind}_{_text(label)}") for label in classes]
    label = DOUBLE.format(label) if is_double else label
    answers = dict(zip(aliases, map(DOUBLE.format, answers), strict=True))
    return steps, {"prediction": label} | answers


def _cut(classes, cuts):
    """Return the label of the class in which f0 is, of some classes and the cuts between them."""
    first, *others = map(literal, classes.tolist())
    ends = [double_literal(None, cut) for cut in cuts]
    cases = [f"WHEN f0 > {end} THEN {label}" for end, label in zip(ends, others, strict=True)]
    return f"CASE {' '.join(reversed(cases))} WHEN f0 <= {ends[0]} THEN {first} END"


def _cumulative(thresholds):
    """Return (steps, the probability of each class between two of the thresholds)."""
    numbers = [double_literal(None, threshold) for threshold in thresholds]
    distances = {f"a{k}": f"f0 - ({number})" for k, number in enumerate(numbers)}
    distances |= {f"b{k}": f"{number} - f0" for k, number in enumerate(numbers)}
    parts = {f"p{k}": _logistic(f"a{k}") for k in range(len(numbers))}
    parts |= {f"q{k}": _logistic(f"b{k}") for k in range(len(numbers))}
    middle = [
        f"{double_literal(None, weight)} * q{k} * p{k - 1}"
        for k, weight in enumerate(probability_weights(thresholds)[1:-1], 1)
    ]
    answers = ["q0", *middle, f"p{len(numbers) - 1}"]
    return [("distances", distances), ("parts", parts)], answers


def _ascending(columns):
    """Return (the steps that put some columns in ascending order; the columns that then hold the
    numbers): the odd-even transposition sort, as many turns as columns, in which neighbours change
    places."""
    steps, n = [], len(columns)
    for turn in range(n):
        made = list(columns)
        for k in range(turn % 2, n - 1, 2):
            one, other = columns[k : k + 2]
            made[k] = f"CASE WHEN {one} > {other} THEN {other} ELSE {one} END"
            made[k + 1] = f"CASE WHEN {one} > {other} THEN {one} ELSE {other} END"
        made = {f"a{n * turn + k}": each for k, each in enumerate(made)}
        steps.append((f"exchanged_{turn}", made))
        columns = list(made)
    return steps, columns


def _within(model, f):
    """Return f within the limits of the model, whose digits are not rounded."""
    lower, upper = (
        None if limit is None else double_literal(None, limit)
        for limit in (model.lower, model.upper)
    )
    cases = [] if lower is None else [f"WHEN {f} < {lower} THEN {lower}"]
    cases += [] if upper is None else [f"WHEN {f} > {upper} THEN {upper}"]
    return f"CASE {' '.join(cases)} ELSE {f} END"


def _power(exponent, is_far):
    """Return e to the power of an expression, and 0 where the condition is_far holds."""
    return f"CASE WHEN {is_far} THEN 0e0 ELSE EXP({exponent}) END"


def _logistic(f):
    """Return 1 / (1 + e^-f), without under- or overflow."""
    return (
        f"CASE WHEN {f} > {FAR} THEN 1e0 WHEN {f} < -{FAR} THEN 0e0 ELSE 1e0 / (1e0 + "
        f"EXP(-{f})) END"
    )


def _largest(columns):
    """Return (the steps that find the largest of some columns, few at a time; the column that then
    holds it)."""
    steps, n = [], 0
    while len(columns) > 1:
        made = {}
        for start in range(0, len(columns), MOST_COMPARED):
            group = columns[start : start + MOST_COMPARED]
            cases = [
                f"WHEN {' AND '.join(f'{a} >= {b}' for b in group[i + 1 :])} THEN {a}"
                for i, a in enumerate(group[:-1])
            ]
            made[f"m{n}"] = f"CASE {' '.join(cases)} ELSE {group[-1]} END" if cases else group[0]
            n += 1
        columns = list(made)
        steps.append((f"largest_{len(steps)}", made))
    return steps, columns[0]


def _shares(f, largest, is_softmax):
    """Return (steps, the probability of each class): its e^f, or 1 / (1 + e^-f), divided by the sum
    over all classes."""
    parts = [
        _power(f"{each} - {largest}", f"{each} < {largest} - {FAR}")
        if is_softmax
        else _logistic(each)
        for each in f
    ]
    p = {f"p{k}": part for k, part in enumerate(parts)}
    steps = [("parts", p), ("totals", {"q0": "(" + balanced([f"+ {each}" for each in p]) + ")"})]
    return steps, [
        f"CASE WHEN q0 > 0 THEN {each} / q0 ELSE {double_literal(None, 1 / len(f))} END"
        for each in p
    ]


class SqlPrinter(Printer):
    """Writes expressions in SQL. What is used several times is a column of a step of the query.

    units_made : the encodings in their units, before they saturate, {column: expression}; NULL
        where the cell is NULL
    exponents : the exponents of terms, {column: expression}
    """

    units_made: dict[str, str]
    exponents: dict[str, str]
    templates: ClassVar[dict[str, str]] = {
        "cos": "COS({})",
        "sin": "SIN({})",
        "tanh": "TANH({})",
        "absolute": "ABS({})",
        "positive": "(CASE WHEN {0} <= 0 THEN 0e0 ELSE {0} END)",
        "sign": "(CASE WHEN {0} >= 0 THEN 1e0 WHEN {0} < 0 THEN -1e0 END)",
    }

    smaller = "CASE WHEN {0} > {1} THEN {1} ELSE {0} END"

    def __init__(self, digits: int | None, written: WrittenModel):
        super().__init__(digits, written)
        self._names = {gamma: f"e{i}" for i, gamma in enumerate(written.envelopes)}
        self.units_made, self.exponents, self._made = {}, {}, 0

    def literal(self, value: float) -> str:
        return double_literal(self.digits, value)

    def summed(self, parts: Sequence[str]) -> str:
        return balanced(parts)

    def exp(self, e: Expression) -> str:
        """Return an exponential, 0 where it is small; the exponent becomes a column."""
        column = f"z{len(self.exponents)}"
        self.exponents[column] = self(e.operands[0])
        return _power(column, f"{column} < -{FAR}")

    # -- encodings

    def view(self, v: int, e: Expression) -> str:
        """Return encoding v, a double; what it is in its units becomes a column."""
        self._made = v
        is_double = e.operation in ("flag", "table")
        return DOUBLE.format(self(e)) if is_double else self(e)

    def impute(self, e: Expression) -> str:
        u, x = map(self, e.operands)
        return f"CASE WHEN {x} IS NULL THEN {self.literal(e.fill)} ELSE {u} END"

    def units(self, e: Expression, saturates: bool = False) -> str:
        """Return the column of a number in units; one that saturates is first clipped to FARTHEST
        units."""
        x, r = self(e.find("cell")), e.operands[0]
        if not e.unit:
            return f"0e0 * {x}"
        column = f"v{self._made}"
        self.units_made[column] = self._in_units(e, r, x, saturates)
        return column

    def _in_units(self, e, r, x, saturates):
        """Return the expression of a number, or angle, or what is between knots, in units."""
        if r.operation == "between":
            return self._between(x, r.knots, (r.scores - e.center) / e.unit, 0, len(r.knots))
        shown = f"({self(r)} - {self.literal(e.center)}) / {self.literal(e.unit)}"
        if not saturates:
            return shown
        low, high = (
            min(max(e.center + side * e.unit, -LARGEST), LARGEST) for side in (-FARTHEST, FARTHEST)
        )
        far = f"WHEN {x} > {self.literal(high)} THEN {self.literal(FARTHEST)} "
        far += f"WHEN {x} < {self.literal(low)} THEN {self.literal(-FARTHEST)}"
        return f"CASE {far} ELSE {shown} END"

    def _between(self, x, knots, values, first, last):
        """Return what is linear between knots, for x between the knots first - 1 and last, by
        nested CASEs."""
        if first < last:
            middle = (first + last) // 2
            low = self._between(x, knots, values, first, middle)
            high = self._between(x, knots, values, middle + 1, last)
            return f"CASE WHEN {x} < {self.literal(knots[middle])} THEN {low} ELSE {high} END"
        if first in (0, len(knots)):
            return self.literal(values[0] if first == 0 else values[-1])
        slope = (values[first] - values[first - 1]) / (knots[first] - knots[first - 1])
        at = f"({x} - {self.literal(knots[first - 1])})"
        return f"({self.literal(values[first - 1])} + {at} * {self.literal(slope)})"

    def saturate(self, e: Expression) -> str:
        u = self.units(e.operands[0], saturates=True)
        reach, twice, square = (self.literal(value) for value in (e.reach, 2 * e.reach, e.reach**2))
        above, below = (f"({sign}{twice} - {square} / {u})" for sign in ("", "-"))
        return f"CASE WHEN {u} > {reach} THEN {above} WHEN {u} < -{reach} THEN {below} ELSE {u} END"

    def flag(self, e: Expression) -> str:
        x, high, low = self(e.operands[0]), self.literal(e.high), self.literal(e.low)
        return f"CASE WHEN {x} IS NULL THEN {high} ELSE {low} END"

    def table(self, e: Expression) -> str:
        """Return the number of each level, by a CASE of those that differ from the rest."""
        x, other = self(e.operands[0]), self.literal(e.other)
        cases = [
            f"WHEN {_is_level(e, x, e.levels[k])} THEN {self.literal(value)}"
            for k, value in e.values.items()
        ]
        has_rest = len(e.values) < len(e.levels)
        if not has_rest or not e.rest == e.other == e.fill:
            cases.insert(0, f"WHEN {x} IS NULL THEN {self.literal(e.fill)}")
            if has_rest:
                cases.append(f"WHEN {self._is_other(e, x)} THEN {self.literal(e.rest)}")
        return f"CASE {' '.join(cases)} ELSE {other} END"

    def _is_other(self, e, x):
        """Return the condition that x is a level whose number is not in the table."""
        others = [level for k, level in enumerate(e.levels) if k not in e.values]
        exact = [each for each in others if each not in e.in_float32]
        conditions = [f"{x} IN ({', '.join(map(literal, exact))})"] if exact else []
        return " OR ".join(
            conditions + [_is_level(e, x, each) for each in others if each in e.in_float32]
        )


def _is_level(table, x, level):
    """Return the condition that x is a level: equal to it, or rounded to the same number of float32
    (`in_float32`)."""
    single = table.in_float32.get(level)
    if single is None:
        return f"{x} = {literal(level)}"
    low, high = numbers_rounded_to(single)
    return f"{x} BETWEEN {low!r} AND {high!r}"


def double_literal(digits: int | None, value: float) -> str:
    """Return a number as a literal with an exponent, which engines read as a double where they know
    one."""
    text = float_literal(digits, value)
    return text if "e" in text else text + "e0"


def quoted(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """Return a level of a category, or the label of a class, as SQL writes it."""
    value = _text(value) if isinstance(value, bytes) else value
    if isinstance(value, str):
        if "\0" in value or not _is_text(value):
            raise ValueError(f"text in SQL must be valid Unicode without NUL, got {value!r}")
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        return double_literal(None, value)
    return repr(int(value) if isinstance(value, (bool, np.bool_)) else value)


def _text(label):
    """Return a label as text; bytes are read as UTF-8."""
    return label.decode("utf-8", "surrogateescape") if isinstance(label, bytes) else str(label)


class PredictionPrinter(SqlPrinter):
    """Writes predictions in SQL, as expressions of the columns of f."""

    def exp(self, e: Expression) -> str:
        """Return an exponential: 0 where it is below the smallest double, and the largest where it
        is beyond."""
        (z,) = e.operands
        f, (low, high) = self(z.operands[0] if z.operation == "at_most" else z), EXPONENTS
        return (
            f"CASE WHEN {f} < {low} THEN 0e0 WHEN {f} > {high} THEN {LARGEST!r} ELSE EXP({f}) END"
        )
