"""Expressions: encodings, activations and terms as trees of operations, which languages print.

An operation is a name; the printer of a language has a method or a template of that name for it.
The operations are

- leaves: `number`; `cell`, of a column of X; `encoding`, of such a cell; `envelope`, the Gaussian
  factor of some terms; `variable`, by its name;
- arithmetic: `add`, `multiply`, `negative`, `raised`;
- functions: `cos`, `sin`, `tanh`, `exp`, `absolute`, `sign` (1 at 0), `positive` (the larger of z
  and 0), `at_most` (the smaller of z and a number);
- of cells: `between`, `angle`, `units`, `saturate`, `impute`, `flag`, `table`;
- of terms, many of which are written at once, in arrays: `reduce`, a sum or product over the inputs
  of each term, of `seen`, its inputs, and `parameter`, its numbers. `expanded` writes one term out
  in the other operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
        return _joined("add", self, _read(other))

    def __mul__(self, other: Expression | float) -> Expression:
        return _joined("multiply", self, _read(other))

    def __sub__(self, other: Expression | float) -> Expression:
        return self + -_read(other)

    def __neg__(self) -> Expression:
        return made("negative", self)

    def __radd__(self, other: float) -> Expression:
        return _read(other) + self

    def __rmul__(self, other: float) -> Expression:
        return _read(other) * self

    def __rsub__(self, other: float) -> Expression:
        return _read(other) - self

    def find(self, operation: str) -> Expression | None:
        """Return an expression of this operation that this one is made of, or None."""
        if self.operation == operation:
            return self
        return next(filter(None, (each.find(operation) for each in self.operands)), None)


def made(operation: str, *operands: Expression, **about: Any) -> Expression:
    """Return the expression of an operation on some operands."""
    return Expression(operation, operands, about)


def _joined(operation, *operands):
    """Return a sum or product of the operands; those that are one themselves are flattened."""
    flat = [
        part
        for each in operands
        for part in (each.operands if each.operation == operation else [each])
    ]
    return made(operation, *flat)


def _read(value):
    """Return a number as an expression, and an expression as it is."""
    return value if isinstance(value, Expression) else number(value)


def number(value: float) -> Expression:
    """Return a constant."""
    return made("number", value=float(value))


def cell(column: int) -> Expression:
    """Return the cell of a column: a number, or a level."""
    return made("cell", column=column)


def encoding(v: int) -> Expression:
    """Return encoding v of a cell."""
    return made("encoding", v=v)


def envelope(gamma: float, encodings: np.ndarray) -> Expression:
    """Return exp(-gamma |u|^2) of some encodings u."""
    return made("envelope", gamma=gamma, encodings=encodings)


def variable(name: str) -> Expression:
    """Return a variable of the program in which it is written."""
    return made("variable", name=name)


def at_most(z: Expression, most: float) -> Expression:
    """Return the smaller of z and a number; printers write all digits of the number."""
    return made("at_most", z, most=most)


def raised(u: Expression, power: int) -> Expression:
    """Return a power, at least 1."""
    return made("raised", u, power=power)


def _function(operation: str) -> Callable[[Expression], Expression]:
    """Return a function that makes the expression of an operation on one operand."""
    return lambda z: made(operation, z)


cos, sin, tanh, exp, absolute, sign, positive = map(
    _function, ("cos", "sin", "tanh", "exp", "absolute", "sign", "positive")
)


def between(x: Expression, knots: np.ndarray, scores: np.ndarray) -> Expression:
    """Return the function that is linear between scores at knots, and constant beyond them."""
    return made("between", x, knots=knots, scores=scores)


def angle(x: Expression, turn: float, level: float) -> Expression:
    """Return cos(turn (x - level)) of a number of days."""
    return made("angle", x, turn=turn, level=level)


def units(r: Expression, center: float, unit: float) -> Expression:
    """Return (r - center) / unit, 0 where the unit is 0."""
    return made("units", r, center=center, unit=unit)


def saturate(u: Expression, reach: float) -> Expression:
    """Return u where |u| <= reach, and else reach (2 - reach / |u|) with the sign of u."""
    return made("saturate", u, reach=reach)


def impute(u: Expression, x: Expression, fill: float) -> Expression:
    """Return u, made of a cell x, and a constant where x is missing."""
    return made("impute", u, x, fill=fill)


def flag(x: Expression, high: float, low: float) -> Expression:
    """Return high where x is missing, and else low."""
    return made("flag", x, high=high, low=low)


def table(
    x: Expression,
    levels: Sequence[Any],
    values: Mapping[int, float],
    rest: float,
    other: float,
    fill: float,
    in_float32: Mapping[Any, float],
) -> Expression:
    """Return a number for each level of a category.

    values : {place of a level: its number}
    rest, other, fill : the numbers of the levels that are not among these, of cells that are no
        level, and of missing ones
    in_float32 : {level: number} of the levels that x also is where it is rounded to that number of
        float32
    """
    about = {
        "levels": levels,
        "values": values,
        "rest": rest,
        "other": other,
        "fill": fill,
        "in_float32": in_float32,
    }
    return made("table", x, **about)


# ---------------------------------------------------------------- terms


def parameter(name: str, values: np.ndarray) -> Expression:
    """Return a number of each term, (n_terms,), or of its inputs, (n_terms, n_inputs).

    Of a single term the shapes are without n_terms.
    """
    return made("parameter", name=name, values=values)


def seen(inputs: np.ndarray | None, enveloped: tuple[float, int] | None = None) -> Expression:
    """Return the inputs of each term.

    inputs : the encoding that each input is, (n_terms, n_inputs); None: all of them
    enveloped : (gamma, degree), if inputs are those of exp(-gamma |u|^2 / degree) (1, sqrt(2 gamma)
        u) in place of u
    """
    return made("seen", inputs=inputs, enveloped=enveloped)


def reduce_inputs(how: str, summand: Expression) -> Expression:
    """Return the sum ("add") or product ("multiply") of an expression over a term's inputs."""
    return made("reduce", summand, how=how)


def is_matrix(sums: Expression) -> bool:
    """Return whether an expression of the operation `reduce` is the product of all inputs with a
    matrix of numbers."""
    if sums.how != "add" or sums.operands[0].operation != "multiply":
        return False
    kinds = [each.operation for each in sums.operands[0].operands]
    return kinds == ["parameter", "seen"] and sums.find("seen").inputs is None


def expanded(expression: Expression) -> Expression:
    """Return the expression of one term, with sums and products over inputs written out.

    No sum is negated as a whole.
    """
    if expression.operation == "reduce":
        n = max(
            len(each.values if each.operation == "parameter" else each.inputs)
            for each in _leaves(expression)
        )
        return made(expression.how, *(_at(expression.operands[0], i) for i in range(n)))
    operands = [expanded(each) for each in expression.operands]
    if expression.operation == "parameter":
        return number(expression.values)
    if expression.operation == "negative" and operands[0].operation == "add":
        return made("add", *map(_negative, operands[0].operands))
    if expression.operation in ("add", "multiply"):
        return _joined(expression.operation, *operands)
    return made(expression.operation, *operands, **expression.about)


def _leaves(expression):
    """Return the leaves of an expression that are inputs or parameters."""
    if expression.operation in ("seen", "parameter"):
        return [expression] * (not expression.operands)
    return [leaf for each in expression.operands for leaf in _leaves(each)]


def _at(expression, i):
    """Return an expression for input i of one term."""
    if expression.operation == "seen":
        return encoding(int(expression.inputs[i]))
    if expression.operation == "parameter":
        return number(expression.values[i])
    operands = [_at(each, i) for each in expression.operands]
    if expression.operation == "negative":
        return _negative(operands[0])
    return made(expression.operation, *operands, **expression.about)


def _negative(expression):
    """Return the negative, of a number as a number."""
    return number(-expression.value) if expression.operation == "number" else -expression
