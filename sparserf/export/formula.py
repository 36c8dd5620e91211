"""A model as a formula: to be read, as text or LaTeX, or to be run.

Python is written by `python.py`, SQL by `sql.py`, SymPy by `sympy.py`, JAX by `jax.py`.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from .._base.checks import check_choice, check_integer
from ..expansion.outputs import are_negligible, describe_limits, function_names, two_classes
from ..losses import PROBABILISTIC
from .expressions import distances, joined, signed
from .written import WrittenModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..expansion import Expansion

Language: TypeAlias = Literal["text", "latex", "python", "sql", "sympy", "jax"]

# The most levels of a category, and the most encodings in a Gaussian envelope, that are listed.
MOST_LISTED = 12


def formula(
    model: Expansion, language: Language, n_terms: int | None, digits: int | None, table: str | Sequence[str] = "data",
    keep: Sequence[str] = (),
) -> Formula:  # fmt: skip
    """Write a model in one of six languages: see `SparseModel.formula`."""
    check_choice("language", language, ("text", "latex", "python", "sql", "sympy", "jax"))
    n_terms = None if n_terms is None else check_integer("n_terms", n_terms, 0)
    digits = None if digits is None else check_integer("digits", digits, 1)
    if language != "sql" and (table != "data" or keep != ()):
        raise ValueError(f"table and keep are for language='sql', got language={language!r}")
    written = WrittenModel.from_model(model, n_terms)
    if language == "python":
        from .python import python_source

        return Formula(python_source(written, digits), language)
    if language == "sympy":
        from .sympy import sympy_source

        return Formula(sympy_source(written, digits), language)
    if language == "jax":
        from .jax import jax_source

        return Formula(jax_source(written, digits), language)
    if language == "sql":
        from .sql import sql_query

        return Formula(sql_query(written, digits, table, keep), language)
    return Formula(_formula(written, Text() if language == "text" else Latex(), 4 if digits is None else digits), language)


class Formula(str):
    """A string that interpreters show in its lines, and notebooks as typeset mathematics or highlighted code."""

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
        """Return a block of code, fenced by more backticks than it has in a row."""
        if self.language in ("text", "latex"):
            return None
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", self)), default=0))
        return f"{fence}{'sql' if self.language == 'sql' else 'python'}\n{self.rstrip()}\n{fence}"


class Text:
    """How the parts of a formula are written as plain text.

    The attributes are templates: of the whole formula (`start`, `first` of an output, `row` between outputs, `line` between
    terms, `where`, `end`), of expressions (`function` of a name and its arguments, `norm` of gamma, `power`, `bracket`,
    `quotient`, `equals`, `ellipsis`), and of two definitions (`soft`, `squeeze`). The methods write names, numbers and words.
    """

    start: str = ""
    first: str = "{} = "
    row: str = "\n"
    line: str = "\n  "
    where: str = "\nwhere"
    end: str = ""
    function: str = "{}({})"
    norm: str = "exp(-{} |u|^2)"
    power: str = "{}^{}"
    bracket: str = "[{}]"
    quotient: str = "({}) / {}"
    equals: str = " = "
    ellipsis: str = "..."
    soft: str = "soft(u, r) = u where |u| <= r, else sign(u) r (2 - r / |u|)"
    squeeze: str = "squeeze(u) = u / sqrt(1 + (u / 3)^2)"

    def output(self, name: str) -> str:
        """Return the name of an output, such as f[class] or f_0."""
        return name

    def name(self, text: str) -> str:
        """Return the name of a column."""
        return text

    def number(self, text: str) -> str:
        """Return a number, such as 1.5e-07."""
        return text

    def words(self, text: str) -> str:
        """Return words within the formula."""
        return text


class Latex(Text):
    """How the parts of a formula are written as LaTeX, in an equation of several lines."""

    start = "\\begin{aligned}\n"
    first = "{} ={{}}& "
    row = " \\\\\n"
    line = " \\\\\n& "
    where = " \\\\\n&\\text{where}"
    end = "\n\\end{aligned}"
    function = r"\operatorname{{{}}}({})"
    norm = "e^{{-{} |u|^2}}"
    power = "{}^{{{}}}"
    quotient = r"\frac{{{}}}{{{}}}"
    ellipsis = r"\dots"
    soft = (
        r"\operatorname{soft}(u, r) = u \text{ where } |u| \le r, \text{ else } "
        r"\operatorname{sign}(u)\, r\, (2 - r / |u|)"
    )
    squeeze = r"\operatorname{squeeze}(u) = u / \sqrt{1 + (u / 3)^2}"

    def output(self, name: str) -> str:
        label = name.removeprefix("f").strip("_")
        return f"f_{{{self.name(label.removeprefix('[').removesuffix(']'))}}}" if label else "f"

    def name(self, text: str) -> str:
        """Return the name of a column, with escaped characters between words: within words MathJax shows backslashes."""
        runs = groupby(text, key=lambda letter: letter if letter in ESCAPED else "")
        return "".join("".join(map(ESCAPED.get, run)) if letter else f"\\text{{{''.join(run)}}}" for letter, run in runs)

    def number(self, text: str) -> str:
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else text

    def words(self, text: str) -> str:
        return self.name(text)


# {character that has a meaning in LaTeX: how it is written}.
ESCAPED = {c: "\\" + c for c in "&%$#_{}"} | {"\\": "\\backslash{}", "~": "{\\sim}", "^": "\\hat{\\ }"}


def _formula(written, to, digits):
    """Return the formula of a `WrittenModel`; to : the `Text` by which its parts are written."""
    number = lambda value: to.number(f"{value:.{digits}g}")  # noqa: E731
    names, encodings = {j: to.name(str(written.names[j])) for j in written.columns.tolist()}, written.encodings or {}
    labels = {v: _label(each, names[each.column], to) for v, each in encodings.items()} or names
    phis = [_phi(term, labels, to, number) for term in written.terms]
    is_small, sums = are_negligible(written.sizes, 10.0 ** -(digits + 2)), []
    for k, name in enumerate(function_names(written.model)):
        parts = [signed(c, f"{number(abs(c))} {phi}") for c, phi, small in
                 zip(written.factors[k], phis, is_small[k], strict=True) if not small]  # fmt: skip
        left = _left_out(written.n_left_out, int(is_small[k].sum()))
        parts += [f"+ {to.ellipsis} {to.words(left)}"] if left else []
        sums.append(to.first.format(to.output(name)) + to.line.join([number(written.intercept[k]), *parts]))
    notes = _notes_on_encodings(written, labels, names, to, number)
    notes += [to.words(line) for line in _how_it_predicts(written.model)]
    head = to.start + to.row.join(sums)
    return head + (to.where + to.line + to.line.join(notes) if notes else "") + to.end


def _left_out(n_smaller, n_negligible):
    """Return in words how many terms are not written."""
    words = [f"{n_smaller} smaller terms"] if n_smaller else []
    words += [f"{n_negligible} below the printed digits"] if n_negligible else []
    return f"({', '.join(words)})" if words else ""


def _how_it_predicts(model):
    """Return lines on how `predict` transforms f; none if it returns f."""
    if model.classes is None:
        return [*filter(None, [describe_limits(model)]), *["predict gives exp(f)"] * (model.link == "log")]
    if model.coef.ndim == 1:
        one, other = two_classes(model)
        line = f"predict gives {other} where f > 0, else {one}"
        return [f"{line}; the probability of {other} is 1 / (1 + exp(-f))" if model.loss in PROBABILISTIC else line]
    line = "predict gives the class of the largest f"
    if model.loss not in PROBABILISTIC:
        return [line]
    share = "exp(f)" if model.link == "softmax" else "1 / (1 + exp(-f))"
    return [f"{line}; the probability of a class is its {share}, divided by the sum of those of all classes"]


def _notes_on_encodings(written, labels, names, to, number):
    """Return lines that define the encodings, and the functions and norms in which they and the terms are written."""
    encodings = written.encodings or {}
    lines = [_definition(each, labels[v], names[each.column], to, number) for v, each in encodings.items()]
    lines = [line for line in dict.fromkeys(lines) if line]
    lines += [names[j] + to.words(f" in {clock.unit}") for j, clock in written.clocks.items()]
    lines += [to.soft] if any(each.reach is not None for each in encodings.values()) else []
    lines += [to.squeeze] if any(each.squeezed for each in encodings.values()) else []
    for seen in {tuple(seen.tolist()): None for seen in written.envelopes.values()}:
        squares = [to.power.format(labels[v], 2) for v in seen[:MOST_LISTED]]
        squares += [f"{to.ellipsis} {to.words(f'({len(seen)} inputs)')}"] if len(seen) > MOST_LISTED else []
        lines.append("|u|^2" + to.equals + " + ".join(squares))
    is_cut = any(each.knots is not None or len((each.table or [()])[0]) > MOST_LISTED for each in encodings.values())
    return lines + [to.words('what is not listed here, and all digits, is in formula("python"), exact and complete')] * is_cut


def _label(encoding, name, to):
    """Return the name of an encoding in the formula, from the name of its column."""
    if encoding.asks is not None:
        kind, level = encoding.asks
        question = {"level": f" is {level}", "missing": " is missing", "present": " is not 0"}
        return to.bracket.format(name + to.words(question[kind]))
    if encoding.is_column_itself:
        return name
    if encoding.angle is not None:
        return to.function.format(encoding.angle[2], name)
    is_rank = encoding.knots is not None
    kind = "mean" if encoding.table is not None else "rank" if is_rank else "clip" if encoding.squeezed else "z"
    return to.function.format(kind, name)


def _definition(encoding, label, name, to, number):
    """Return a line that defines an encoding; None if its label defines it."""
    if encoding.asks is not None:
        line = label + to.equals + number(encoding.high) + to.words(" where it is so, else ") + number(encoding.low)
        if encoding.known is None:
            return line
        unknown, missing = number(encoding.known[1]), number(encoding.fill)
        return line + to.words(", of other words ") + unknown + to.words(", where missing ") + missing
    if encoding.is_column_itself:
        return None
    if encoding.table is not None:
        of_levels, other = encoding.table
        levels = ", ".join(f"{level}: {value:.3g}" for level, value in list(of_levels.items())[:MOST_LISTED])
        levels += f", ... ({MOST_LISTED} of {len(of_levels)} levels listed)" if len(of_levels) > MOST_LISTED else ""
        return label + to.equals + to.words(f"of each level of {{{levels}}}, of others ") + number(other)
    r = name if encoding.knots is None else to.function.format("s", name)
    if encoding.angle is not None:
        turn, level, _ = encoding.angle
        r = to.function.format("cos", f"{number(turn)} {name if not level else f'({name} - {number(level)})'}")
    r = r if not encoding.center else r + " " + signed(-encoding.center, number(abs(encoding.center)))
    u = r if number(encoding.unit) == "1" else to.quotient.format(r, number(encoding.unit))
    u = u if encoding.reach is None else to.function.format("soft", f"{u}, {encoding.reach:.3g}")
    u = to.function.format("squeeze", u) if encoding.squeezed else u
    notes = [f"s linear between {len(encoding.knots[0])} quantiles of the column"] if encoding.knots is not None else []
    notes += [f"{encoding.fill:.3g} where missing"] if encoding.fill else []
    return label + to.equals + u + (to.words(", " + ", ".join(notes)) if notes else "")


def _phi(term, labels, to, number):
    """Return a term without its gain, phi in the formula."""
    if term.gamma is not None:
        factors = [labels[v] if p == 1 else to.power.format(labels[v], p) for v, p in term.powers]
        return " ".join([to.norm.format(number(term.gamma)), *factors])
    if term.centers is not None:
        return to.function.format("exp", joined(distances(term, labels, number, "{} |{}|")))
    parts = [signed(w, f"{number(abs(w))} {labels[v]}") for v, w in zip(term.encodings.tolist(), term.weights, strict=True)]
    if term.activation == "identity" and len(parts) == 1 and not term.offset and term.weights[0] == 1:
        return labels[int(term.encodings[0])]
    if term.offset or not parts:
        parts.append(signed(term.offset, number(abs(term.offset))))
    if term.activation == "identity":
        return f"({joined(parts)})"
    if term.activation == "relu":
        return to.function.format("max", f"0, {joined(parts)}")
    return to.function.format(term.activation, joined(parts))
