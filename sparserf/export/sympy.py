"""A model as a SymPy expression: Python source that builds it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .expressions import angle_expression, float_literal, signed, term_expression, title
from .written import encoded_values, reach_of

if TYPE_CHECKING:
    from .written import WrittenModel

HELPERS = '''
from sympy import Abs, Heaviside, Max, Min, Piecewise, Symbol, cos, exp, sign, sin, sqrt, tanh


def _reached(u, reach):
    """As it is up to the reach of the training rows, and beyond it less than twice that."""
    return Max(-reach, Min(u, reach)) + sign(u) * reach * (1 - reach / Max(Abs(u), reach))


def _squeezed(u):
    return u / sqrt(1 + (u / 3) ** 2)


def _between(x, knots, scores):
    """Linear between the scores at knots, and constant beyond them."""
    pieces = [(scores[0], x <= knots[0])]
    for k in range(1, len(knots)):
        slope = (scores[k] - scores[k - 1]) / (knots[k] - knots[k - 1])
        pieces.append((scores[k - 1] + slope * (x - knots[k - 1]), x <= knots[k]))
    return Piecewise(*pieces, (scores[-1], True))


def _is(condition, high, low):
    return Piecewise((high, condition), (low, True))

'''
# The templates of activations. SymPy is not asked to simplify, which takes very long where there are knots.
CALLS = {
    **{name: f"{name}({{}}, evaluate=False)" for name in ("cos", "sin", "tanh")},
    "relu": "Max({}, 0, evaluate=False)",
    "sign": "(2 * Heaviside({}, 1, evaluate=False) - 1)",
    "identity": "({})",
    "bump": "exp({}, evaluate=False)",
    "distance": "{} * Abs({}, evaluate=False)",
}


def sympy_source(written: WrittenModel, digits: int | None) -> str:
    """Return source that defines `f`, an expression or a list of one for each output, of symbols named like the columns.

    Variables are x3, the symbol of column 3 of X, u5, encoding 5, and envelope0.
    """
    number, model = partial(float_literal, digits), written.model
    body = [f"# {str(written.names[j])!r} is in {clock.unit}" for j, clock in written.clocks.items()]
    body += [f"x{j} = Symbol({str(written.names[j])!r}, real=True)" for j in written.columns.tolist()]
    if written.encodings is None:
        names = {v: f"x{v}" for v in written.used_encodings.tolist()}
    else:
        names = {v: f"u{v}" for v in written.encodings}
        for place, v in enumerate(written.made_encodings.tolist()):
            if v in names:
                body += [f"u{v} = {line}" for line in _encode(written, place, f"u{v}", number)]
    envelopes = {gamma: f"envelope{i}" for i, gamma in enumerate(written.envelopes)}
    for gamma, seen in written.envelopes.items():
        squares = " + ".join(f"{names[v]}**2" for v in seen.tolist())
        body.append(f"{envelopes[gamma]} = exp(-{number(gamma)} * ({squares}))")
    phis = [term_expression(term, names, envelopes, number, CALLS) for term in written.terms]
    sums = []
    for b, c in zip(written.intercept, written.factors, strict=True):
        parts = [signed(factor, f"{number(abs(factor))} * {phi}") for factor, phi in zip(c, phis, strict=True)]
        f = "(\n    " + "\n    ".join([number(b), *parts]) + "\n)"
        f = f if model.lower is None else f"Max({f}, {number(model.lower)})"
        sums.append(f if model.upper is None else f"Min({f}, {number(model.upper)})")
    body.append(f"f = {sums[0]}" if model.coef.ndim == 1 else f"f = [{', '.join(sums)}]")
    levels = {written.names[j]: list(of) for j, of in written.levels.items()}
    body = [f"levels = {levels!r}  # a category's symbol is the place of the level, -1 for others", *body] if levels else body
    return "\n".join([f'"""{title(written)}"""', HELPERS, *body]) + "\n"


def _encode(written, place, u, number):
    """Return the expressions that are assigned to u, one after the other, to make an encoding of a column without gaps."""
    stage, kind = written.stage, written.kinds[place]
    x = f"x{stage.column[place]}"
    if kind in ("level", "missing", "present"):
        level = int(stage.level[place])
        if kind == "missing":
            return [number(encoded_values(stage, place, [0.0])[0])]
        high, low = encoded_values(stage, place, [level, level - 1] if kind == "level" else [1.0, 0.0])
        condition = f"({x} >= {level}) & ({x} < {level + 1})" if kind == "level" else f"({x} > 0) | ({x} < 0)"
        return [f"_is({condition}, {number(high)}, {number(low)})"]
    some = slice(stage.first_knot[place], stage.first_knot[place + 1])
    if some.stop > some.start:
        x = f"_between({x}, {stage.knots[some].tolist()}, {stage.scores[some].tolist()})"
    turn = float(stage.turn[place])
    x = f"cos({angle_expression(turn, float(stage.level[place]), x)}, evaluate=False)" if turn else x
    unit, reach = float(stage.unit[place]), reach_of(stage, place)
    if not unit:
        return ["0.0"]
    lines = [f"({x} - {number(stage.center[place])}) / {number(unit)}"]
    lines += [f"_reached({u}, {number(reach)})"] if reach is not None else []
    return lines + ([f"_squeezed({u})"] if kind == "clipped" else [])
