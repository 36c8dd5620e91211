"""A model as JavaScript that needs nothing else, for Node.js and browsers.

It reads a row into x, the numbers of its columns, makes u, their encodings, of them, and adds up
terms, each a function of u. The page of a model (`page/`) computes with the same functions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._base.expressions import variable
from ..columns.clocks import DATES, DURATIONS
from ..columns.table import in_float32
from ..losses import PROBABILISTIC
from ..losses.links import LINKS
from ..losses.ordinal import probability_weights
from .printer import Printer, balanced
from .written import heading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.expressions import Expression
    from .written import WrittenModel

# Integers beyond it are not all numbers of JavaScript.
LARGEST_EXACT = 2**53
# The functions that read a row, which all sources have.
READ = """
// Whether a cell is missing: null, undefined or NaN.
function isMissing(cell) {
  return cell === null || cell === undefined || Number.isNaN(cell);
}

// The number of a cell, NaN where it is missing.
function number(cell) {
  if (isMissing(cell)) return NaN;
  if (!["number", "boolean", "bigint"].includes(typeof cell) || !Number.isFinite(Number(cell)))
    throw new TypeError(`a cell must be a finite number, got ${String(cell)}`);
  return Number(cell);
}

// The numbers of a row, by the places of their columns.
function read(row) {
  const isList = Array.isArray(row) || ArrayBuffer.isView(row), x = [];
  for (const [at, name, numberOf] of columns) {
    if (!Object.hasOwn(row, isList ? at : name))
      throw new TypeError(`the row must have the column ${name}`);
    x[at] = numberOf(row[isList ? at : name]);
    if (!mayMiss && Number.isNaN(x[at])) throw new TypeError(`${name} must not be missing`);
  }
  return x;
}
"""
# Functions that are written where they are called.
FUNCTIONS = {
    "level(": """
// What finds the place of a level: -1 of any other, NaN of a missing one.
// near: the places of levels by their numbers in single precision
function level(levels, near = []) {
  const place = new Map(levels.map((each, k) => [each, k])), rounded = new Map(near);
  return cell => {
    if (isMissing(cell)) return NaN;
    const key = ["boolean", "bigint"].includes(typeof cell) ? Number(cell) : cell;
    if (levels.length && typeof key !== typeof levels[0])
      throw new TypeError(`a level must be a ${typeof levels[0]}, got ${String(cell)}`);
    return place.get(key) ?? rounded.get(Math.fround(key)) ?? -1;
  };
}
""",
    "timeOfDay]": """
// Days since midnight: a number is as it is, and text is read as 12:30 or 12:30:15.5.
function timeOfDay(cell) {
  if (typeof cell !== "string") return number(cell);
  const parts = /^(\\d\\d):(\\d\\d)(?::(\\d\\d(?:\\.\\d+)?))?$/.exec(cell);
  if (!parts) throw new TypeError(`a cell must be a time of day, got ${cell}`);
  const [hours, minutes, seconds] = parts.slice(1).map(each => Number(each ?? 0));
  return Math.round(((hours * 60 + minutes) * 60 + seconds) * 1e6) / 864e8;
}
""",
    "date]": """
// Days since 1970-01-01: a number is as it is, and text is read as 2024-03-01 or 2024-03-01T12:30.
function date(cell) {
  if (typeof cell !== "string") return number(cell);
  const [, day, clock = "00:00"] = /^(\\d{4}-\\d\\d-\\d\\d)(?:[T ](.*))?$/.exec(cell) ?? [];
  const whole = Date.parse(`${day}T00:00:00Z`) / 864e5;
  if (Number.isNaN(whole)) throw new TypeError(`a cell must be a date, got ${cell}`);
  return whole + timeOfDay(clock);
}
""",
    "between(": """
// Linear between scores at knots, constant beyond the ends.
function between(x, knots, scores) {
  let low = 0, high = knots.length - 1;
  if (x <= knots[low]) return scores[low];
  if (x >= knots[high]) return scores[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (knots[middle] <= x) low = middle;
    else high = middle;
  }
  return scores[low]
    + (x - knots[low]) / (knots[high] - knots[low]) * (scores[high] - scores[low]);
}
""",
    "reached(": """
// As it is up to the reach of the training rows, and beyond it less than twice that.
function reached(u, reach) {
  const size = Math.abs(u);
  return size > reach ? Math.sign(u) * reach * (2 - reach / size) : u;
}
""",
}
# The functions of all sources, after the terms; and those of classifiers with probabilities.
DECISION = """
// The decision values of the numbers of a row, one for each output.
function decisions(x) {
  const u = encode(x), f = [...intercept];
  for (const [coef, phi] of terms) {
    const value = phi(u);
    for (let k = 0; k < f.length; k++) f[k] += coef[k] * value;
  }
  return f.map(each => Math.min(Math.max(each, lower), upper));
}

function decision_function(row) {
  return outputOf(decisions(read(row)));
}
"""
SIGMOIDS = """
function probabilities(f) {
  const p = f.map(each => 1 / (1 + Math.exp(-each)));
  if (p.length === 1) return [1 - p[0], p[0]];
  const total = p.reduce((a, b) => a + b);
  return p.map(each => total > 0 ? each / total : 1 / p.length);
}
"""
CUMULATIVE = """
const thresholds = {thresholds}, weights = {weights};
function probabilities(f) {{
  const sigmoid = z => 1 / (1 + Math.exp(-z));
  return weights.map((weight, k) => weight
    * (k < thresholds.length ? sigmoid(thresholds[k] - f[0]) : 1)
    * (k > 0 ? sigmoid(f[0] - thresholds[k - 1]) : 1));
}}
"""
SOFTMAX = """
function probabilities(f) {
  const e = f.map(each => Math.exp(each - Math.max(...f))), total = e.reduce((a, b) => a + b);
  return e.map(each => each / total);
}
"""
PROBABILITIES = """
// The probability of each class.
function predict_proba(row) {
  return probabilities(decisions(read(row)));
}
"""


def source(written: WrittenModel, digits: int | None) -> str:
    """Return source with the functions `decision_function`, `predict` and, where there are any,
    `predict_proba`, of a row."""
    printer, model = JavaScriptPrinter(digits, written), written.model
    # a program without terms reads the first column in other languages, to count rows
    columns = written.columns.tolist() if len(written.used_encodings) else []
    of_cells = written.encodings or dict.fromkeys(written.used_encodings.tolist())
    made = [
        f"  u[{v}] = {f'x[{v}]' if each is None else printer(each)};"
        for v, each in of_cells.items()
    ]
    envelopes = [
        f"const {line.replace(' = ', ' = u => ', 1)};" for line in printer.envelopes("Math.exp")
    ]
    terms = [
        f"  [{printer.array(c)}, u => {printer(term.expression)}],"
        for term, c in zip(written.terms, written.factors.T, strict=True)
    ]
    ends = [
        sign + "Infinity" if end is None else repr(end)
        for sign, end in (("-", model.lower), ("", model.upper))
    ]
    has_several, has_probabilities = model.coef.ndim > 1, model.loss in PROBABILISTIC
    names = ["decision_function", "predict", *["predict_proba"] * has_probabilities]
    body = [
        *["const columns = [", *(f"  {_column(written, j)}," for j in columns)],
        "];",
        f"const mayMiss = {_literal(written.encoder.may_miss)};",
        READ,
        "// The encodings of the numbers of a row.",
        *["function encode(x) {", "  const u = [];", *made, "  return u;", "}", *envelopes, ""],
        "// The terms: the coefficients of a term, one for each output, and its function.",
        *[f"const intercept = {printer.array(written.intercept)};", "const terms = [", *terms],
        "];",
        f"const lower = {ends[0]}, upper = {ends[1]};",
        f"const outputOf = f => {'f' if has_several else 'f[0]'};",
        DECISION,
        *_predict(model, printer),
    ]
    if has_probabilities:
        body += [_probabilities(model).rstrip(), PROBABILITIES.rstrip()]
    used = "\n".join(body)
    used += "timeOfDay]" * ("date]" in used)  # by which dates with a time are read
    return "\n".join(
        [
            *_comment(written),
            *(text.rstrip() for name, text in FUNCTIONS.items() if name in used),
            "",
            *body,
            "",
            "// Of Node.js; in browsers they are functions of the page.",
            f'if (typeof module !== "undefined") module.exports = {{ {", ".join(names)} }};',
            "",
        ]
    )


def _comment(written):
    """Return the lines at the top."""
    what = "an object {name of a column: cell} or an array of all cells"
    lines = [heading(written), f"A row is {what}; null is a missing cell."]
    lines += [
        f"{written.names[j]} is in {clock.unit}, or text such as 2024-03-01T12:30"
        for j, clock in written.clocks.items()
    ]
    return ["// " + _on_a_line(line) for line in lines]


def _on_a_line(text):
    """Return text without what ends a line, or a script in a page."""
    return json.dumps(text)[1:-1].replace('\\"', '"').replace("<", "\\u003c")


def _column(written, j):
    """Return the entry of a column: its place, its name, and the function of its cells."""
    name, clock = str(written.names[j]), written.clocks.get(j)
    reader = "number"
    if clock is not None and clock.kind != DURATIONS:
        reader = "date" if clock.kind == DATES else "timeOfDay"
    elif written.is_category(j):
        reader = _level(name, written.levels[j])
    return f"[{j}, {_literal(name)}, {reader}]"


def _level(name, levels):
    """Return what finds the places of the levels of a column."""
    if levels and not isinstance(levels[0], str):
        if len({float(level) for level in levels}) < len(levels):
            raise ValueError(
                f"language 'javascript' needs levels that numbers of double precision tell apart, "
                f"got column {name!r}"
            )
        near = [[rounded, levels.index(level)] for level, rounded in in_float32(levels).items()]
        numbers = [int(x) if abs(x) <= LARGEST_EXACT and x == int(x) else float(x) for x in levels]
        return f"level({_list(numbers)}{', ' + json.dumps(near) if near else ''})"
    return f"level({_list(levels)})"


def _list(values: Sequence[Any]) -> str:
    return f"[{', '.join(map(_literal, values))}]"


def _literal(value: Any) -> str:
    """Return a label, level or name as a literal of ASCII, which a script in a page may hold."""
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if type(value) is int and abs(value) > LARGEST_EXACT:
        return f"{value}n"
    return json.dumps(value).replace("<", "\\u003c").replace(">", "\\u003e")


class JavaScriptPrinter(Printer):
    """Writes expressions in JavaScript: a category is the place of its level."""

    templates: ClassVar[dict[str, str]] = {
        "cos": "Math.cos({})",
        "sin": "Math.sin({})",
        "tanh": "Math.tanh({})",
        "exp": "Math.exp({})",
        "absolute": "Math.abs({})",
        "positive": "Math.max({}, 0.0)",
        "sign": "({} >= 0 ? 1.0 : -1.0)",
    }

    smaller: ClassVar[str] = "Math.min({}, {})"
    interpolated: ClassVar[str] = "between({}, {}, {})"
    reached: ClassVar[str] = "reached({}, {})"
    where: ClassVar[str] = "({} ? {} : {})"
    is_missing: ClassVar[str] = "Number.isNaN({})"
    is_level: ClassVar[str] = "{0} === {1}"

    def name(self, v: int) -> str:
        return f"u[{v}]"

    def array(self, values: np.ndarray) -> str:
        return f"[{', '.join(map(self.literal, values.tolist()))}]"

    def summed(self, parts: Sequence[str]) -> str:
        return balanced(parts)

    def number(self, e: Expression) -> str:
        """Return a number, in brackets where it has a sign: -- is an operation of its own."""
        return f"({self.literal(e.value)})" if np.signbit(e.value) else self.literal(e.value)

    def cell(self, e: Expression) -> str:
        return f"x[{e.column}]"

    def envelope(self, e: Expression) -> str:
        return f"{super().envelope(e)}(u)"

    def looked_up(self, e: Expression) -> str:
        numbers = np.array([e.other, *e.values.values()])
        return f"{self.array(numbers)}[1 + {self(e.operands[0])}]"


def _predict(model, printer):
    """Return the lines of the function `predict`."""
    lines = ["function predict(row) {"]
    if model.classes is None:
        link = LINKS[model.link]
        in_order = ".sort((a, b) => a - b)" if link.is_ascending else ""
        lines = [
            f"const inverseLink = f => {printer(link.prediction(variable('f')))};",
            f"const predictions = f => f.map(inverseLink){in_order};",
            "",
            *lines,
            "  return outputOf(predictions(decisions(read(row))));",
        ]
    else:
        predicted, cuts = model.cut_classes
        if model.coef.ndim > 1:
            class_of = "classes[f.indexOf(Math.max(...f))]"
        elif model.thresholds:
            listed = f"{_list(predicted.tolist())}[{_list(cuts)}"
            class_of = f"{listed}.filter(cut => f[0] > cut).length]"
        else:
            class_of = "classes[Number(f[0] > 0)]"
        lines = [
            f"const classes = {_list(model.classes.tolist())};",
            f"const classOf = f => {class_of};",
            "",
            *lines,
            "  return classOf(decisions(read(row)));",
        ]
    return [*lines, "}"]


def _probabilities(model):
    """Return the function of the probabilities of the classes."""
    if model.thresholds:
        weights = probability_weights(model.thresholds)
        return CUMULATIVE.format(thresholds=_list(model.thresholds), weights=_list(weights))
    return SOFTMAX if model.coef.ndim > 1 and model.link == "softmax" else SIGMOIDS
