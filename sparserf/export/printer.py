"""Printers: what writes expressions in a language, by a method or a template for each operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.expressions import Expression
    from .written import WrittenModel

# A sum of more entries than this is written as a sum of sums: parsers limit the depth of an
# expression (SQLite to 1,000).
MOST_IN_A_ROW = 64


def float_literal(digits: int | None, value: float) -> str:
    """Return a number as the literal of a float with this many digits; None: the fewest that read
    back to the same bits."""
    text = repr(float(value)) if digits is None else f"{value:.{digits}g}"
    return text if any(c in text for c in ".e") else text + ".0"


def signed(value: float, text: str) -> str:
    """Return "+ text", or "- text" if the value is negative; text : an expression with the size of
    the value."""
    return ("- " if value < 0 or (value == 0 and np.signbit(value)) else "+ ") + text


def signed_sum(parts: Sequence[str]) -> str:
    """Return the sum of parts like "+ a" and "- b" as an expression."""
    text = " ".join(parts)
    if not text:
        return "0.0"
    return text[2:] if text.startswith("+ ") else "-" + text.removeprefix("- ")


def balanced(parts: Sequence[str]) -> str:
    """Return the sum of parts like "+ a"; if there are many, as a sum of sums in brackets, whose
    depth is small."""
    if len(parts) <= MOST_IN_A_ROW:
        return signed_sum(parts)
    size = max(MOST_IN_A_ROW, -(-len(parts) // MOST_IN_A_ROW))
    return balanced([f"+ ({balanced(parts[k : k + size])})" for k in range(0, len(parts), size)])


def summands(e: Expression) -> Sequence[Expression]:
    """Return the summands of a sum, or the expression itself, without what is 0."""
    operands = e.operands if e.operation == "add" else (e,)
    return [each for each in operands if not _is_number(each, 0.0)] or operands[-1:]


class Printer:
    """Writes expressions of a model as text. Variables are x3, column 3, u5, encoding 5, and
    envelope0.

    The method that has the name of an operation writes it; `_base/expressions.py` lists the
    operations.

    written : the model
    digits : the digits of numbers; None: as many as read back to the same bits
    templates : {operation: template of the call of a function of one number}
    smaller, interpolated, reached : templates of the smaller of two numbers, of linear
        interpolation at x between scores at knots, and of `saturate`
    times, where, is_missing, is_level : templates of a product, of one value or another, and of
        conditions on a cell: that it is missing, or is the level of a place, where categories are
        the places of their levels
    """

    written: WrittenModel
    digits: int | None
    templates: ClassVar[dict[str, str]] = {}
    smaller: ClassVar[str] = ""
    interpolated: ClassVar[str] = ""
    reached: ClassVar[str] = "_reached({}, {})"
    times: ClassVar[str] = " * "
    where: ClassVar[str] = ""
    is_missing: ClassVar[str] = ""
    is_level: ClassVar[str] = "({0} >= {1}) & ({0} < {2})"

    def __init__(self, digits: int | None, written: WrittenModel):
        self.digits, self.written = digits, written
        self._names = {gamma: f"envelope{i}" for i, gamma in enumerate(written.envelopes)}

    def name(self, v: int) -> str:
        """Return the variable of encoding v."""
        return f"x{v}" if self.written.encodings is None else f"u{v}"

    def envelopes(self, exp: str) -> list[str]:
        """Return the lines that make the envelopes; exp : the exponential function."""
        lines = []
        for gamma, seen in self.written.envelopes.items():
            squares = " + ".join(f"{self.name(v)}**2" for v in seen.tolist())
            lines.append(f"{self._names[gamma]} = {exp}(-{self.literal(gamma)} * ({squares}))")
        return lines

    def __call__(self, expression: Expression) -> str:
        """Return an expression as text."""
        template = self.templates.get(expression.operation)
        if template is None:
            return getattr(self, expression.operation)(expression)
        return template.format(*map(self, expression.operands))

    def in_brackets(self, expression: Expression) -> str:
        """Return an expression as a factor: a sum in brackets, unless it is 1 times something."""
        if expression.operation not in ("add", "negative"):
            return self(expression)
        parts = [each for each in expression.operands if not _is_number(each, 0.0)]
        first = parts[0].operands if len(parts) == 1 and parts[0].operation == "multiply" else ()
        if first and _is_number(first[0], 1.0):
            return self(first[1])
        return f"({self(expression)})"

    def literal(self, value: float) -> str:
        """Return a number that is not negative."""
        return float_literal(self.digits, value)

    def array(self, values: np.ndarray) -> str:
        """Return an array of numbers."""
        return str(values.tolist())

    def summed(self, parts: Sequence[str]) -> str:
        """Return the sum of parts like "+ a" and "- b"."""
        return signed_sum(parts)

    def number(self, e: Expression) -> str:
        return self.literal(e.value)

    def cell(self, e: Expression) -> str:
        return f"x{e.column}"

    def encoding(self, e: Expression) -> str:
        return self.name(e.v)

    def envelope(self, e: Expression) -> str:
        return self._names[e.gamma]

    def variable(self, e: Expression) -> str:
        return e.name

    def add(self, e: Expression) -> str:
        """Return a sum, without what is 0."""
        return self.summed([self.summand(each) for each in summands(e)])

    def summand(self, e: Expression) -> str:
        """Return "+ a" or "- a"."""
        if e.operation == "negative":
            text = self.summand(e.operands[0])
            return ("- " if text.startswith("+") else "+ ") + text[2:]
        if e.operation == "number":
            return signed(e.value, self.literal(abs(e.value)))
        if e.operation == "multiply" and e.operands[0].operation == "number":
            value = e.operands[0].value
            factors = [self.literal(abs(value)), *map(self.in_brackets, e.operands[1:])]
            return signed(value, self.times.join(factors))
        return "+ " + self(e)

    def negative(self, e: Expression) -> str:
        return "-" + self.in_brackets(e.operands[0])

    def multiply(self, e: Expression) -> str:
        return self.times.join(map(self.in_brackets, e.operands))

    def raised(self, e: Expression) -> str:
        return self.times.join([self(e.operands[0])] * e.power)

    def units(self, e: Expression) -> str:
        if not e.unit:
            return f"0.0 * {self(e.find('cell'))}"
        r = self(e.operands[0])
        r = f"({r} {signed(-e.center, self.literal(abs(e.center)))})" if e.center else r
        return r if e.unit == 1 else f"{r} / {self.literal(e.unit)}"

    def at_most(self, e: Expression) -> str:
        return self.smaller.format(self(e.operands[0]), repr(e.most))

    def between(self, e: Expression) -> str:
        x, knots, scores = self(e.operands[0]), self.array(e.knots), self.array(e.scores)
        return self.interpolated.format(x, knots, scores)

    def angle(self, e: Expression) -> str:
        """Return the cosine of turn (x - level) with all digits: fewer would move the day x."""
        level = f" {signed(-e.level, repr(abs(e.level)))}" if e.level else ""
        return self.templates["cos"].format(f"{e.turn!r} * ({self(e.operands[0])}{level})")

    def saturate(self, e: Expression) -> str:
        return self.reached.format(self(e.operands[0]), self.literal(e.reach))

    def impute(self, e: Expression) -> str:
        u, x = map(self, e.operands)
        return self.where.format(self.is_missing.format(x), self.literal(e.fill), u)

    def flag(self, e: Expression) -> str:
        is_missing = self.is_missing.format(self(e.operands[0]))
        return self.where.format(is_missing, self.literal(e.high), self.literal(e.low))

    def table(self, e: Expression) -> str:
        """Return the number of each level, by its place."""
        known = self.known_level(e)
        if len(e.values) < len(e.levels) and e.rest == e.other == e.fill:
            return known
        is_missing = self.is_missing.format(self(e.operands[0]))
        return self.where.format(is_missing, self.literal(e.fill), known)

    def known_level(self, e: Expression) -> str:
        """Return the number of each level of a cell that is not missing."""
        if len(e.values) == len(e.levels):
            return self.looked_up(e)
        x, known = self(e.operands[0]), self.literal(e.rest)
        if e.rest != e.other:
            known = self.where.format(f"{x} < 0", self.literal(e.other), known)
        for k, value in e.values.items():
            known = self.where.format(self.is_level.format(x, k, k + 1), self.literal(value), known)
        return known

    def looked_up(self, e: Expression) -> str:
        """Return the number of a level from the list of all."""
        raise NotImplementedError(f"{type(self).__name__} has no tables of places")


def _is_number(expression, value):
    """Return whether an expression is a number, 0 or 1."""
    return expression.operation == "number" and expression.value == value
