"""Expressions that formulas, Python and SQL have in common: numbers, sums, and terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..expansion.terms import Term
    from .written import WrittenModel


def float_literal(digits: int | None, value: float) -> str:
    """Return a number as the literal of a float with this many digits; None: the fewest that read back to the same bits."""
    text = repr(float(value)) if digits is None else f"{value:.{digits}g}"
    return text if any(c in text for c in ".e") else text + ".0"


def signed(value: float, text: str) -> str:
    """Return "+ text", or "- text" if the value is negative; text : an expression with the size of the value."""
    return ("- " if value < 0 or (value == 0 and np.signbit(value)) else "+ ") + text


def joined(parts: Sequence[str]) -> str:
    """Return the sum of parts like "+ a" and "- b" as an expression."""
    text = " ".join(parts)
    return text.removeprefix("+ ") if text.startswith("+ ") else "-" + text.removeprefix("- ") if text else "0.0"


def term_expression(
    term: Term, names: dict[int, str], envelopes: dict[float, str], number: Callable[[float], str], functions: dict[str, str],
    summed: Callable[[Sequence[str]], str] = joined,
) -> str:  # fmt: skip
    """Return the code of a term without its gain.

    names, envelopes : the variables that hold the encodings, {encoding: name}, and exp(-gamma |u|^2), {gamma: name}
    number : a function that writes a number
    functions : {activation: template of its call}, and of bumps that of a weighted "distance"
    summed : a function that writes the sum of parts like "+ a"
    """
    if term.gamma is not None:
        factors = [names[v] for v, p in term.powers for _ in range(p)]
        return " * ".join([envelopes[term.gamma], *factors])
    if term.centers is not None:
        return functions[term.activation].format(summed(distances(term, names, number, functions["distance"])))
    parts = [signed(w, f"{number(abs(w))} * {names[v]}") for v, w in zip(term.encodings.tolist(), term.weights, strict=True)]
    if term.offset or not parts:
        parts.append(signed(term.offset, number(abs(term.offset))))
    if term.activation == "identity" and len(parts) == 1 and term.weights[0] == 1:
        return names[int(term.encodings[0])]
    return functions[term.activation].format(summed(parts))


def distances(term: Term, names: dict[int, str], number: Callable[[float], str], size: str) -> list[str]:
    """Return the parts "- w_v |u_v - c_v|" of the exponent of a bump; size : the template of a weight and what |...| is of."""
    parts = []
    for v, w, c in zip(term.encodings.tolist(), term.weights, term.centers, strict=True):
        away = names[v] + (" " + signed(-c, number(abs(c))) if c else "")
        parts.append("- " + size.format(number(w), away))
    return parts


def angle_expression(turn: float, level: float, x: str) -> str:
    """Return the angle turn (x - level) of a number of days x, with all digits: with fewer, days of today are other days."""
    return f"{turn!r} * ({x}{' ' + signed(-level, repr(abs(level))) if level else ''})"


def title(written: WrittenModel) -> str:
    """Return a sentence for the top of the code, which describes the model."""
    left = f", without its {written.n_left_out} smallest terms" if written.n_left_out else ""
    return f"{written.model!r}{left}, as code."
