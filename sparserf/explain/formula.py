"""A model as a formula: to read, as text and LaTeX; as code in `code.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from .._checks import check_choice, check_integer
from .pieces import Pieces, joined, powers, signed

if TYPE_CHECKING:
    from ..model import SparseModel


def formula(
    model: SparseModel, language: Literal["text", "latex", "python", "sql"], n_terms: int | None, digits: int | None
) -> str:
    """`SparseModel.formula`."""
    check_choice("language", language, ("text", "latex", "python", "sql"))
    n_terms = None if n_terms is None else check_integer("n_terms", n_terms, 0)
    digits = None if digits is None else check_integer("digits", digits, 1)
    pieces = Pieces.of(model, n_terms)
    if language in ("python", "sql"):
        from . import code

        return getattr(code, language)(pieces, digits)
    return written(pieces, Text() if language == "text" else Latex(), 4 if digits is None else digits)


class Text:
    """Plain text."""

    first: str = "f{} = "
    start: str = ""
    line: str = "\n  "
    end: str = ""
    where: str = "\nwhere"
    function: str = "{}({})"
    norm: str = "exp(-{} |u|^2)"
    power: str = "{}^{}"
    bracket: str = "[{}]"
    quotient: str = "({}) / {}"
    equals: str = " = "
    infinity: str = "..."

    def name(self, text: str) -> str:
        return text

    def number(self, text: str) -> str:
        return text

    def words(self, text: str) -> str:
        return text


class Latex(Text):
    """LaTeX, for mathematics of several lines."""

    first: str = "f{} ={{}}& "
    start: str = "\\begin{aligned}\n"
    line: str = " \\\\\n& "
    end: str = "\n\\end{aligned}"
    where: str = " \\\\\n&\\text{where}"
    norm: str = "e^{{-{} |u|^2}}"
    power: str = "{}^{{{}}}"
    bracket: str = "[{}]"
    quotient: str = "\\frac{{{}}}{{{}}}"
    infinity: str = "\\dots"

    @property
    def function(self) -> str:
        return "\\operatorname{{{}}}({})"

    def name(self, text: str) -> str:
        return f"\\text{{{''.join(ESCAPED.get(c, c) for c in text)}}}"

    def number(self, text: str) -> str:
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else text

    def words(self, text: str) -> str:
        return self.name(text)


ESCAPED = {c: "\\" + c for c in "&%$#_{}"} | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}


def written(pieces: Pieces, to: Text, digits: int) -> str:
    """The formula; to: a language."""
    number = lambda value: to.number(f"{value:.{digits}g}")  # noqa: E731
    names = {j: to.name(str(pieces.names[j])) for j in pieces.columns}
    labels = {v: _label(view, names[view.column], to) for v, view in pieces.views.items()} if pieces.views else names
    phis = [_phi(term, labels, to, number) for term in pieces.terms]
    several = len(pieces.intercept) > 1
    sums = []
    for k, (b, c) in enumerate(zip(pieces.intercept, pieces.coef, strict=True)):
        parts = [signed(a, f"{number(abs(a))} {phi}") for a, phi in zip(c, phis, strict=True)]
        parts += [f"+ {to.infinity} {to.words(f'({pieces.left_out} smaller terms)')}"] if pieces.left_out else []
        sums.append(to.first.format(f"_{k}" if several else "") + to.line.join([number(b), *parts]))
    said = [_said(view, labels[v], names[view.column], to, number) for v, view in (pieces.views or {}).items()]
    said = [line for line in dict.fromkeys(said) if line]
    said += [to.words("predict gives ") + to.power.format("e", "f")] if pieces.model.link == "log" else []
    is_softmax = several and pieces.model.link == "softmax"
    said += [to.words("probabilities are shares of ") + to.power.format("e", "f_k")] if is_softmax else []
    head = to.start + (to.line if to.start else "\n").join(sums)
    return head + (to.where + to.line + to.line.join(said) if said else "") + to.end


def _label(view, name, to):
    """What a view is called."""
    if view.is_it is not None:
        kind, level = view.is_it
        is_it = {"level": f" is {level}", "missing": " is missing", "present": " is not 0"}
        return to.bracket.format(name + to.words(is_it[kind]))
    if _is_itself(view):
        return name
    kind = "mean" if view.table is not None else "rank" if view.knots is not None else "clip" if view.squeezed else "z"
    return to.function.format(kind, name)


def _is_itself(view):
    plain = view.knots is None and view.table is None and not view.squeezed
    return plain and (view.center, view.unit, view.reach) == (0.0, 1.0, None) and not view.fill


def _said(view, label, name, to, number):
    """A line about what a view is, None where its label says it."""
    if view.is_it is not None:
        return label + to.equals + number(view.high) + to.words(" where it is so, else ") + number(view.low)
    if _is_itself(view):
        return None
    if view.table is not None:
        levels = ", ".join(f"{level}: {value:.3g}" for level, value in list(view.table[0].items())[:12])
        levels += ", ..." if len(view.table[0]) > 12 else ""
        return label + to.equals + to.words(f"of each level of {{{levels}}}, of others ") + number(view.table[1])
    r = name if view.knots is None else to.function.format("s", name)
    r = r if not view.center else r + " " + signed(-view.center, number(abs(view.center)))
    said = label + to.equals + (r if number(view.unit) == "1" else to.quotient.format(r, number(view.unit)))
    notes = [f"s linear between the {len(view.knots[0])} knots of its quantiles"] if view.knots is not None else []
    notes += [f"softly bounded beyond {view.reach:.3g} in size"] if view.reach is not None else []
    notes += ["then u / (1 + u^2 / 9)^1/2"] if view.squeezed else []
    notes += [f"{view.fill:.3g} where missing"] if view.fill else []
    return said + (to.words(", " + ", ".join(notes)) if notes else "")


def _phi(term, labels, to, number):
    """A term less its gain."""
    if term.gamma is not None:
        factors = [labels[v] if p == 1 else to.power.format(labels[v], p) for v, p in powers(term)]
        return " ".join([to.norm.format(number(term.gamma)), *factors])
    parts = [signed(w, f"{number(abs(w))} {labels[v]}") for v, w in zip(term.views.tolist(), term.weights, strict=True)]
    if term.activation == "identity" and len(parts) == 1 and not term.offset and term.weights[0] == 1:
        return labels[int(term.views[0])]
    if term.offset or not parts:
        parts.append(signed(term.offset, number(abs(term.offset))))
    if term.activation == "identity":
        return f"({joined(parts)})"
    if term.activation == "relu":
        return to.function.format("max", f"0, {joined(parts)}")
    return to.function.format(term.activation, joined(parts))
