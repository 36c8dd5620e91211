"""Expressions: trees of a few operations in which encodings, activations and terms are written, and which languages print.

An operation is a name; a `Printer` has a method of that name for it. The operations are

- leaves: `number`, `cell` (of a column), `encoding`; and in a sum or product over the inputs of a term, `seen` (its input) and
  `parameter` (its number of the term, or of each of its inputs);
- arithmetic: `add`, `multiply`, `negative`, and `over`, a sum or product over the inputs of a term;
- functions: `cos`, `sin`, `tanh`, `exp`, `absolute`, `sign` (1 at 0), `positive` (the larger of z and 0);
- of cells alone: `between`, `angle`, `units`, `reached`, `squeezed`, `filled`, `asked`, `table`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np


@dataclass(frozen=True, eq=False)
class Expression:
    """An operation, the expressions that it is made of, and what else it is made of.

    operation : the name of the operation
    operands : the expressions
    about : numbers, arrays and names, {name: value}
    """

    operation: str
    operands: tuple[Expression, ...]
    about: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.about[name]
        except KeyError:
            raise AttributeError(name) from None

    def __add__(self, other: Expression | float) -> Expression:
        return made("add", self, _read(other))

    def __mul__(self, other: Expression | float) -> Expression:
        return made("multiply", self, _read(other))

    def __sub__(self, other: Expression | float) -> Expression:
        return self + -_read(other)

    def __neg__(self) -> Expression:
        return made("negative", self)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Expression | float) -> Expression:
        return _read(other) - self


def made(operation: str, *operands: Expression, **about: Any) -> Expression:
    """Return the expression of an operation on some operands."""
    return Expression(operation, operands, about)


def _read(value):
    return value if isinstance(value, Expression) else number(value)


def number(value: float) -> Expression:
    """Return a constant."""
    return made("number", value=float(value))


def cell(column: int) -> Expression:
    """Return the cell of a column: a number, or a level."""
    return made("cell", column=column)


def cos(z: Expression) -> Expression:
    """Return the cosine."""
    return made("cos", z)


def sin(z: Expression) -> Expression:
    """Return the sine."""
    return made("sin", z)


def tanh(z: Expression) -> Expression:
    """Return the hyperbolic tangent."""
    return made("tanh", z)


def exp(z: Expression) -> Expression:
    """Return the exponential."""
    return made("exp", z)


def absolute(z: Expression) -> Expression:
    """Return the size of a number."""
    return made("absolute", z)


def sign(z: Expression) -> Expression:
    """Return 1 where z >= 0, and else -1."""
    return made("sign", z)


def positive(z: Expression) -> Expression:
    """Return the larger of z and 0."""
    return made("positive", z)


def between(x: Expression, knots: np.ndarray, scores: np.ndarray) -> Expression:
    """Return what is linear between the scores at knots, and constant beyond them."""
    return made("between", x, knots=knots, scores=scores)


def angle(x: Expression, turn: float, level: float) -> Expression:
    """Return cos(turn (x - level)) of a number of days."""
    return made("angle", x, turn=turn, level=level)


def units(r: Expression, center: float, unit: float) -> Expression:
    """Return (r - center) / unit, 0 where the unit is 0."""
    return made("units", r, center=center, unit=unit)


def reached(u: Expression, reach: float) -> Expression:
    """Return u where |u| <= reach, and else reach (2 - reach / |u|) with the sign of u."""
    return made("reached", u, reach=reach)


def squeezed(u: Expression) -> Expression:
    """Return u / (1 + (u / 3)^2)^1/2."""
    return made("squeezed", u)


def filled(u: Expression, x: Expression, fill: float) -> Expression:
    """Return u, made of a cell x, and a constant where x is missing."""
    return made("filled", u, x, fill=fill)


def asked(x: Expression, question: str, high: float, low: float) -> Expression:
    """Return high or low, by whether x is missing, or whether it is not 0; question : "missing" or "present"."""
    return made("asked", x, question=question, high=high, low=low)


def table(
    x: Expression, levels: Sequence[Any], values: Mapping[int, float], rest: float, other: float, fill: float,
    in_float32: Mapping[Any, float],
) -> Expression:  # fmt: skip
    """Return a number for each level of a category.

    values : {place of a level: its number}
    rest, other, fill : the numbers of the levels that are not among these, of cells that are no level, and of missing ones
    in_float32 : {level: number} of the levels that x also is where it is rounded to that number of float32
    """
    about = {"levels": levels, "values": values, "rest": rest, "other": other, "fill": fill, "in_float32": in_float32}
    return made("table", x, **about)
