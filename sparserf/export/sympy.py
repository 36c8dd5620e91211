"""A model as a SymPy expression: Python source that builds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from .printer import Printer
from .written import heading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.expressions import Expression
    from .written import WrittenModel

HEAD = """
from sympy import Abs, Add, Heaviside, Max, Min, Piecewise, Symbol
from sympy import cos, evaluate, exp, sign, sin, sqrt, tanh

"""
# Functions that are written where they are called.
FUNCTIONS = {
    "_reached(": '''
def _reached(u, reach):
    """As it is up to the reach of the training rows, and beyond it less than twice that."""
    return Max(-reach, Min(u, reach)) + sign(u) * reach * (1 - reach / Max(Abs(u), reach))

''',
    "_between(": '''
def _between(x, knots, scores):
    """Linear between the scores at knots, and constant beyond them."""
    pieces = [(scores[0], x <= knots[0])]
    for k in range(1, len(knots)):
        slope = (scores[k] - scores[k - 1]) / (knots[k] - knots[k - 1])
        pieces.append((scores[k - 1] + slope * (x - knots[k - 1]), x <= knots[k]))
    return Piecewise(*pieces, (scores[-1], True))

''',
    "_of_level(": """
def _of_level(x, values, other):
    pieces = [(value, x < k + 1) for k, value in enumerate(values)]
    return Piecewise((other, x < 0), *pieces, (values[-1], True))

""",
    "_is(": """
def _is(condition, high, low):
    return Piecewise((high, condition), (low, True))

""",
}
# The most parts of a sum that are added two by two: the depth of sums that are not simplified is
# their number.
MOST_IN_A_ROW = 8


def source(written: WrittenModel, digits: int | None) -> str:
    """Return source that defines `f`, an expression or a list of one for each output, of symbols
    named like the columns."""
    printer, model = SympyPrinter(digits, written), written.model
    number = printer.literal
    notes = [
        f"# {str(written.names[j])!r} is in {clock.unit}" for j, clock in written.clocks.items()
    ]
    levels = {written.names[j]: list(of) for j, of in written.levels.items()}
    if levels:
        places = "a category's symbol is the place of the level, -1 for others"
        notes.append(f"levels = {levels!r}  # {places}")
    notes += [
        f"x{j} = Symbol({str(written.names[j])!r}, real=True)" for j in written.columns.tolist()
    ]
    body = [f"u{v} = {printer(encoding)}" for v, encoding in (written.encodings or {}).items()]
    body += printer.envelopes("exp")
    phis = [printer.in_brackets(term.expression) for term in written.terms]
    sums = []
    for b, c in zip(written.intercept, written.factors, strict=True):
        parts = [
            number(b),
            *(f"{number(factor)} * {phi}" for factor, phi in zip(c, phis, strict=True)),
        ]
        f = "Add(\n    " + ",\n    ".join(parts) + "\n)"
        f = f if model.lower is None else f"Max({f}, {number(model.lower)})"
        sums.append(f if model.upper is None else f"Min({f}, {number(model.upper)})")
    body.append(f"f = {sums[0]}" if model.coef.ndim == 1 else f"f = [{', '.join(sums)}]")
    functions = [text for name, text in FUNCTIONS.items() if any(name in line for line in body)]
    # To simplify takes very long where there are knots.
    lines = [
        f'"""{heading(written)}"""',
        HEAD + "".join(functions),
        *notes,
        "with evaluate(False):",
    ]
    return "\n".join([*lines, *("    " + line for line in body)]) + "\n"


class SympyPrinter(Printer):
    """Writes expressions in SymPy: of cells that are not missing, where a category is the place of
    its level."""

    templates: ClassVar[dict[str, str]] = {
        **{name: f"{name}({{}})" for name in ("cos", "sin", "tanh", "exp")},
        "absolute": "Abs({})",
        "positive": "Max({}, 0)",
        "sign": "(2 * Heaviside({}, 1) - 1)",
    }

    smaller: ClassVar[str] = "Min({}, {})"
    interpolated: ClassVar[str] = "_between({}, {}, {})"
    where: ClassVar[str] = "_is({}, {}, {})"

    def summed(self, parts: Sequence[str]) -> str:
        """Return a sum, of many parts in one go."""
        if len(parts) <= MOST_IN_A_ROW:
            return super().summed(parts)
        return f"Add({', '.join(part[2:] if part[0] == '+' else '-' + part[2:] for part in parts)})"

    def impute(self, e: Expression) -> str:
        """Return what is there."""
        return self(e.operands[0])

    def flag(self, e: Expression) -> str:
        return self.literal(e.low)

    def table(self, e: Expression) -> str:
        return self.known_level(e)

    def looked_up(self, e: Expression) -> str:
        numbers = ", ".join(map(self.literal, e.values.values()))
        return f"_of_level({self(e.operands[0])}, [{numbers}], {self.literal(e.other)})"
