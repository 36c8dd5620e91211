"""A model as LaTeX, to be read."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from .._base.screen import GLUE
from .text import DIGITS, Text, formula_of

if TYPE_CHECKING:
    from ..features import Term
    from .written import WrittenModel


def source(written: WrittenModel, digits: int | None) -> str:
    """Return the formula as LaTeX."""
    return formula_of(written, Latex(digits or DIGITS, written))


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

    def shown(self, text: object) -> str:
        return str(text)

    one_line = shown

    def finished(self, text: str) -> str:
        return text.replace(GLUE, " ")

    def term(self, c: float, term: Term) -> str:
        return self.factor(c, term)

    def output(self, name: str) -> str:
        label = name.removeprefix("f").strip("_")
        return f"f_{{{self.name(label.removeprefix('[').removesuffix(']'))}}}" if label else "f"

    def name(self, text: str) -> str:
        """Return the name of a column, with escaped characters between words: within words MathJax
        shows backslashes."""
        runs = groupby(text, key=lambda letter: letter if letter in ESCAPED else "")
        return "".join(
            "".join(map(ESCAPED.get, run)) if letter else f"\\text{{{''.join(run)}}}"
            for letter, run in runs
        )

    def mantissa(self, text: str) -> str:
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else text

    def words(self, text: str) -> str:
        return self.name(text)


# {character that has a meaning in LaTeX: how it is written}.
ESCAPED = {c: "\\" + c for c in "&%$#_{}"} | {
    "\\": "\\backslash{}",
    "~": "{\\sim}",
    "^": "\\hat{\\ }",
}
