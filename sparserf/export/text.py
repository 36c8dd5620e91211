"""A model as plain text, to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.expressions import cell, encoding
from ..expansion.outputs import are_negligible, describe_limits, function_names, two_classes
from ..losses import PROBABILISTIC
from ..losses.links import LINKS
from .printer import Printer, signed

if TYPE_CHECKING:
    from .._base.expressions import Expression
    from .written import WrittenModel

# The most levels of a category, or encodings in a Gaussian envelope, that are listed.
MOST_LISTED = 12
# The digits of numbers.
DIGITS = 4


def source(written: WrittenModel, digits: int | None) -> str:
    """Return the formula as plain text."""
    return formula_of(written, Text(digits or DIGITS, written))


def formula_of(written: WrittenModel, to: Text) -> str:
    """Return the formula of a model; to : what writes it."""
    conditions = [term.condition(written.names, written.features.stage) for term in written.terms]
    phis = [
        to.in_brackets(term.expression) if condition is None else to.words(f"if {condition}")
        for term, condition in zip(written.terms, conditions, strict=True)
    ]
    is_small, sums = are_negligible(written.sizes, 10.0 ** -(to.digits + 2)), []
    for k, name in enumerate(function_names(written.model)):
        parts = [
            signed(c, f"{to.literal(abs(c))} {phi}")
            for c, phi, small in zip(written.factors[k], phis, is_small[k], strict=True)
            if not small
        ]
        left = _left_out(written.n_left_out, int(is_small[k].sum()))
        parts += [f"+ {to.ellipsis} {to.words(left)}"] if left else []
        sums.append(
            to.first.format(to.output(name))
            + to.line.join([to.literal(written.intercept[k]), *parts])
        )
    of_formulas = [
        term.encodings
        for term, condition in zip(written.terms, conditions, strict=True)
        if condition is None
    ]
    notes = _notes_on_encodings(written, to, of_formulas) + [
        to.words(line) for line in _how_it_predicts(written.model)
    ]
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
        link = LINKS[model.link]
        return [
            *filter(None, [describe_limits(model)]),
            *[f"predict gives {link.formula}"] * (not link.is_identity),
        ]
    if model.coef.ndim == 1:
        one, other = two_classes(model)
        line = f"predict gives {other} where f > 0, else {one}"
        return [
            f"{line}; the probability of {other} is 1 / (1 + exp(-f))"
            if model.loss in PROBABILISTIC
            else line
        ]
    line = "predict gives the class of the largest f"
    if model.loss not in PROBABILISTIC:
        return [line]
    share = "exp(f)" if model.link == "softmax" else "1 / (1 + exp(-f))"
    return [
        f"{line}; the probability of a class is its {share}, divided by the sum of those of all "
        "classes"
    ]


def _notes_on_encodings(written, to, of_terms):
    """Return lines that define the encodings of some terms, and the functions and norms in which
    they and the terms are written."""
    used = set(np.concatenate([np.zeros(0, int), *of_terms]).tolist())
    encodings = {v: each for v, each in (written.encodings or {}).items() if v in used}
    lines = [to.definition(v, each) for v, each in encodings.items()]
    lines = [line for line in dict.fromkeys(lines) if line]
    columns = {int(written.features.stage.column[v]) for v in encodings}
    lines += [
        to.cell(cell(j)) + to.words(f" in {clock.unit}")
        for j, clock in written.clocks.items()
        if j in columns
    ]
    lines += [to.soft] if any(each.find("reached") for each in encodings.values()) else []
    for seen in {tuple(seen.tolist()): None for seen in written.envelopes.values()}:
        squares = [to.power.format(to(encoding(v)), 2) for v in seen[:MOST_LISTED]]
        squares += (
            [f"{to.ellipsis} {to.words(f'({len(seen)} inputs)')}"]
            if len(seen) > MOST_LISTED
            else []
        )
        lines.append("|u|^2" + to.equals + " + ".join(squares))
    lines += _note_on_ends(encodings, written.features.stage, to)
    knots = [each.find("between") for each in encodings.values()]
    is_cut = any(each is not None and not is_held(each) for each in knots) or any(
        map(_is_long, encodings.values())
    )
    return (
        lines
        + [
            to.words(
                'what is not listed here, and all digits, is in formula("python"), exact and '
                "complete"
            )
        ]
        * is_cut
    )


def _is_long(e):
    """Return whether an encoding is a table that is not listed whole."""
    return e.operation == "table" and len(e.values) > MOST_LISTED


class Text(Printer):
    """Writes a formula as plain text.

    The attributes are templates: of the whole formula (`start`, `first` of an output, `row` between
    outputs, `line` between terms, `where`, `end`), of expressions (`function` of a name and its
    arguments, `norm` of gamma, `power`, `bracket`, `quotient`, `equals`, `ellipsis`), and of the
    definition of `soft`. The methods write names, numbers and words.
    """

    times = " "
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

    def __init__(self, digits: int, written: WrittenModel):
        super().__init__(digits, written)
        self._columns = {j: self.name(str(written.names[j])) for j in written.columns.tolist()}

    def output(self, name: str) -> str:
        """Return the name of an output, such as f[class] or f_0."""
        return name

    def name(self, text: str) -> str:
        """Return the name of a column."""
        return text

    def mantissa(self, text: str) -> str:
        """Return a number, such as 1.5e-07."""
        return text

    def words(self, text: str) -> str:
        """Return words within the formula."""
        return text

    # -- operations

    def literal(self, value: float) -> str:
        return self.mantissa(f"{value:.{self.digits}g}")

    def cell(self, e: Expression) -> str:
        return self._columns[e.column]

    def encoding(self, e: Expression) -> str:
        """Return the name of an encoding, of its column and its kind."""
        if self.written.encodings is None:
            return self._columns[e.v]
        written, stage = self.written.encodings[e.v], self.written.features.stage
        column = self._columns[int(stage.column[e.v])]
        encoding = stage.encoding(e.v)
        form, words = encoding.of_kind.symbol(encoding, stage.levels_of(e.v))
        if form == "question":
            return self.bracket.format(column + self.words(words))
        return column if _is_cell(written) else self.function.format(words, column)

    def envelope(self, e: Expression) -> str:
        return self.norm.format(self.literal(e.gamma))

    def cos(self, e: Expression) -> str:
        """Return a function that is called as the operation is."""
        return self.function.format(e.operation, self(e.operands[0]))

    sin = tanh = exp = sign = cos

    def positive(self, e: Expression) -> str:
        return self.function.format("max", f"0, {self(e.operands[0])}")

    def at_most(self, e: Expression) -> str:
        return self.function.format("min", f"{self(e.operands[0])}, {self.literal(e.most)}")

    def absolute(self, e: Expression) -> str:
        return f"|{self(e.operands[0])}|"

    def raised(self, e: Expression) -> str:
        u = self(e.operands[0])
        return u if e.power == 1 else self.power.format(u, e.power)

    def between(self, e: Expression) -> str:
        if is_held(e):  # said once, for all columns
            return self(e.operands[0])
        return self.function.format("s", self(e.operands[0]))

    def angle(self, e: Expression) -> str:
        x = self(e.operands[0])
        return self.function.format(
            "cos", f"{self.literal(e.turn)} {f'({x} - {self.literal(e.level)})' if e.level else x}"
        )

    def units(self, e: Expression) -> str:
        r = self(e.operands[0])
        r = r + " " + signed(-e.center, self.literal(abs(e.center))) if e.center else r
        return r if self.literal(e.unit) == "1" else self.quotient.format(r, self.literal(e.unit))

    def reached(self, e: Expression) -> str:
        return self.function.format("soft", f"{self(e.operands[0])}, {e.reach:.3g}")

    # -- what encodings are

    def filled(self, e: Expression) -> str:
        """Return an encoding of a number, and words on what it is where that is missing."""
        return self._with_notes(e.operands[0], [f"{e.fill:.3g} where missing"] if e.fill else [])

    def _with_notes(self, e, notes):
        knots = e.find("between")
        ranks = (
            []
            if knots is None or is_held(knots)
            else [f"s linear between {len(knots.knots)} quantiles of the column"]
        )
        return self(e) + (self.words(", " + ", ".join(ranks + notes)) if ranks + notes else "")

    def asked(self, e: Expression) -> str:
        """Return words on an indicator."""
        return self.literal(e.high) + self.words(" where it is so, else ") + self.literal(e.low)

    def table(self, e: Expression) -> str:
        """Return words on the numbers of levels."""
        other = self.literal(e.other)
        if len(e.values) == len(e.levels) > 1:
            levels = ", ".join(
                f"{e.levels[k]}: {value:.3g}" for k, value in list(e.values.items())[:MOST_LISTED]
            )
            more = len(e.levels) > MOST_LISTED
            levels += f", ... ({MOST_LISTED} of {len(e.levels)} levels listed)" if more else ""
            return self.words(f"of each level of {{{levels}}}, of others ") + other
        line = (
            self.literal(*e.values.values())
            + self.words(" where it is so, else ")
            + self.literal(e.rest)
        )
        if e.rest == e.other == e.fill:
            return line
        return (
            line
            + self.words(", of other words ")
            + other
            + self.words(", where missing ")
            + self.literal(e.fill)
        )

    def definition(self, v: int, e: Expression) -> str | None:
        """Return a line that defines an encoding; None if its name defines it."""
        if _is_cell(e):
            return None
        is_noted = e.operation in ("filled", "asked", "table")
        return self(encoding(v)) + self.equals + (self(e) if is_noted else self._with_notes(e, []))


def _is_cell(e):
    """Return whether an encoding is the number of its cell, and 0 where that is missing."""
    e = e.operands[0] if e.operation == "filled" and not e.fill else e
    if e.operation != "units" or (e.center, e.unit) != (0.0, 1.0):
        return False
    return e.operands[0].operation == "cell" or (
        e.operands[0].operation == "between" and is_held(e.operands[0])
    )


def is_held(e: Expression) -> bool:
    """Return whether a function that is linear between knots is the number itself between two (or
    at one)."""
    return len(e.knots) <= 2 and np.array_equal(e.knots, e.scores)


def _note_on_ends(encodings, stage, to):
    """Return a line on the ends that columns are held within; none where there are no such."""
    ends = {}
    for v, each in encodings.items():
        found = each.find("between")
        if found is not None and is_held(found):
            ends[int(stage.column[v])] = found.knots[[0, -1]].tolist()
    listed = [
        to.cell(cell(j)) + to.words(f" in [{low:.{to.digits}g}, {high:.{to.digits}g}]")
        for j, (low, high) in list(ends.items())[:MOST_LISTED]
    ]
    if len(ends) > MOST_LISTED:
        listed.append(f"{to.ellipsis} {to.words(f'({len(ends)} columns)')}")
    start = to.words("numbers beyond these ends count as the end: ")
    return [start + ", ".join(listed)] if ends else []
