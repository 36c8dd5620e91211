"""A model as a formula: to read, as text and LaTeX; as code in `code.py` and `sql.py`."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from .._base.checks import check_choice, check_integer
from ..losses import PROBABILISTIC
from .outputs import function_names, negligible, sides
from .pieces import Pieces, joined, powers, signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model import SparseModel


Language: TypeAlias = Literal["text", "latex", "python", "sql"]


class Formula(str):
    """A string that interpreters show in its lines, and notebooks typeset or in the colours of its language."""

    language: Language

    def __new__(cls, text: str, language: Language = "text") -> Self:
        self = super().__new__(cls, text)
        self.language = language
        return self

    def __repr__(self) -> str:
        return str(self)

    def _repr_latex_(self) -> str | None:
        return f"$$\n{self}\n$$" if self.language == "latex" else None

    def _repr_markdown_(self) -> str | None:
        """A block of code, between more backticks than there are in a row in it."""
        if self.language not in ("python", "sql"):
            return None
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", self)), default=0))
        return f"{fence}{self.language}\n{self.rstrip()}\n{fence}"


def formula(
    model: SparseModel, language: Language, n_terms: int | None, digits: int | None, table: str | Sequence[str] = "data",
    keep: Sequence[str] = (),
) -> Formula:  # fmt: skip
    """`SparseModel.formula`."""
    check_choice("language", language, ("text", "latex", "python", "sql"))
    n_terms = None if n_terms is None else check_integer("n_terms", n_terms, 0)
    digits = None if digits is None else check_integer("digits", digits, 1)
    if language != "sql" and (table != "data" or keep != ()):
        raise ValueError(f"table and keep are for language='sql', got language={language!r}")
    pieces = Pieces.of(model, n_terms)
    if language == "python":
        from .code import python

        return Formula(python(pieces, digits), language)
    if language == "sql":
        from .sql import sql

        return Formula(sql(pieces, digits, table, keep), language)
    return Formula(written(pieces, Text() if language == "text" else Latex(), 4 if digits is None else digits), language)


# Levels of a category, and inputs of an envelope, that are listed.
MOST_LISTED = 12


class Text:
    """Plain text."""

    first: str = "{} = "
    start: str = ""
    row: str = "\n"
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
    soft: str = "soft(u, r) = u where |u| <= r, else sign(u) r (2 - r / |u|)"
    squeeze: str = "squeeze(u) = u / sqrt(1 + (u / 3)^2)"

    def output(self, name: str) -> str:
        return name

    def name(self, text: str) -> str:
        return text

    def number(self, text: str) -> str:
        return text

    def words(self, text: str) -> str:
        return text


class Latex(Text):
    """LaTeX, for mathematics of several lines."""

    first: str = "{} ={{}}& "
    start: str = "\\begin{aligned}\n"
    row: str = " \\\\\n"
    line: str = " \\\\\n& "
    end: str = "\n\\end{aligned}"
    where: str = " \\\\\n&\\text{where}"
    norm: str = "e^{{-{} |u|^2}}"
    power: str = "{}^{{{}}}"
    bracket: str = "[{}]"
    quotient: str = "\\frac{{{}}}{{{}}}"
    infinity: str = "\\dots"
    soft: str = (r"\operatorname{soft}(u, r) = u \text{ where } |u| \le r, \text{ else } "
                 r"\operatorname{sign}(u)\, r\, (2 - r / |u|)")  # fmt: skip
    squeeze: str = r"\operatorname{squeeze}(u) = u / \sqrt{1 + (u / 3)^2}"

    def output(self, name: str) -> str:
        label = name.removeprefix("f").strip("_")
        return f"f_{{{self.name(label.removeprefix('[').removesuffix(']'))}}}" if label else "f"

    @property
    def function(self) -> str:
        return "\\operatorname{{{}}}({})"

    def name(self, text: str) -> str:
        """Words, and between them, as mathematics, what is escaped: MathJax shows the backslash of an escape within words."""
        runs = groupby(text, key=lambda letter: letter if letter in ESCAPED else "")
        return "".join("".join(map(ESCAPED.get, run)) if letter else f"\\text{{{''.join(run)}}}" for letter, run in runs)

    def number(self, text: str) -> str:
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else text

    def words(self, text: str) -> str:
        return self.name(text)


ESCAPED = {c: "\\" + c for c in "&%$#_{}"} | {"\\": "\\backslash{}", "~": "{\\sim}", "^": "\\hat{\\ }"}


def written(pieces: Pieces, to: Text, digits: int) -> str:
    """The formula; to: a language."""
    number = lambda value: to.number(f"{value:.{digits}g}")  # noqa: E731
    names = {j: to.name(str(pieces.names[j])) for j in pieces.columns}
    labels = {v: _label(view, names[view.column], to) for v, view in pieces.views.items()} if pieces.views else names
    phis = [_phi(term, labels, to, number) for term in pieces.terms]
    is_small, sums = negligible(pieces.size, 10.0 ** -(digits + 2)), []
    for k, name in enumerate(function_names(pieces.model)):
        parts = [signed(c, f"{number(abs(c))} {phi}") for c, phi, small in
                 zip(pieces.coef[k], phis, is_small[k], strict=True) if not small]  # fmt: skip
        left = _left(pieces.left_out, int(is_small[k].sum()))
        parts += [f"+ {to.infinity} {to.words(left)}"] if left else []
        sums.append(to.first.format(to.output(name)) + to.line.join([number(pieces.intercept[k]), *parts]))
    said = _views_said(pieces, labels, names, to, number) + [to.words(line) for line in _meaning(pieces.model)]
    head = to.start + to.row.join(sums)
    return head + (to.where + to.line + to.line.join(said) if said else "") + to.end


def _left(smaller, negligible):
    """How many terms are not written."""
    said = [f"{smaller} smaller terms"] if smaller else []
    said += [f"{negligible} below the printed digits"] if negligible else []
    return f"({', '.join(said)})" if said else ""


def _meaning(model):
    """What is made of f, where that is not what is predicted."""
    if model.classes is None:
        return ["predict gives exp(f)"] if model.link == "log" else []
    if model.coef.ndim == 1:
        one, other = sides(model)
        said = f"predict gives {other} where f > 0, else {one}"
        return [f"{said}; the probability of {other} is 1 / (1 + exp(-f))" if model.loss in PROBABILISTIC else said]
    said = "predict gives the class of the largest f"
    if model.loss not in PROBABILISTIC:
        return [said]
    share = "exp(f)" if model.link == "softmax" else "1 / (1 + exp(-f))"
    return [f"{said}; the probability of a class is its {share}, divided by the sum of those of all classes"]


def _views_said(pieces, labels, names, to, number):
    """Lines about what views are, and what these use."""
    views = pieces.views or {}
    lines = [_said(view, labels[v], names[view.column], to, number) for v, view in views.items()]
    lines = [line for line in dict.fromkeys(lines) if line]
    lines += [to.soft] if any(view.reach is not None for view in views.values()) else []
    lines += [to.squeeze] if any(view.squeezed for view in views.values()) else []
    for seen in {tuple(seen.tolist()): None for seen in pieces.gammas.values()}:
        squares = [to.power.format(labels[v], 2) for v in seen[:MOST_LISTED]]
        squares += [f"{to.infinity} {to.words(f'({len(seen)} inputs)')}"] if len(seen) > MOST_LISTED else []
        lines.append("|u|^2" + to.equals + " + ".join(squares))
    is_cut = any(view.knots is not None or len((view.table or [()])[0]) > MOST_LISTED for view in views.values())
    return lines + [to.words('what is not listed here, and all digits, is in formula("python"), exact and complete')] * is_cut


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
        said = label + to.equals + number(view.high) + to.words(" where it is so, else ") + number(view.low)
        if view.known is None:
            return said
        return said + to.words(", of other words ") + number(view.known[1]) + to.words(", where missing ") + number(view.fill)
    if _is_itself(view):
        return None
    if view.table is not None:
        values = list(view.table[0].items())
        levels = ", ".join(f"{level}: {value:.3g}" for level, value in values[:MOST_LISTED])
        levels += f", ... ({MOST_LISTED} of {len(values)} levels listed)" if len(values) > MOST_LISTED else ""
        return label + to.equals + to.words(f"of each level of {{{levels}}}, of others ") + number(view.table[1])
    r = name if view.knots is None else to.function.format("s", name)
    r = r if not view.center else r + " " + signed(-view.center, number(abs(view.center)))
    said = r if number(view.unit) == "1" else to.quotient.format(r, number(view.unit))
    said = said if view.reach is None else to.function.format("soft", f"{said}, {view.reach:.3g}")
    said = to.function.format("squeeze", said) if view.squeezed else said
    notes = [f"s linear between {len(view.knots[0])} quantiles of the column"] if view.knots is not None else []
    notes += [f"{view.fill:.3g} where missing"] if view.fill else []
    return label + to.equals + said + (to.words(", " + ", ".join(notes)) if notes else "")


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
