"""A model as plain text, to be read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._base.expressions import cell, encoding, made
from .._base.screen import WIDTH, folded, glued, one_line, percent, short_name, short_names
from ..expansion.outputs import are_negligible, describe_limits, function_names, two_classes
from ..expansion.terms import encoding_spreads
from ..losses import PROBABILISTIC
from ..losses.links import LINKS
from .printer import Printer, signed, summands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.expressions import Expression
    from ..features import Term
    from .written import WrittenModel

# The most levels of a category, or encodings in a Gaussian envelope, that are listed.
MOST_LISTED = 12
# The same, where a formula is shortened.
FEW_LISTED = 4
# The digits of numbers.
DIGITS = 4
# What parts of a sum are of its variation.
VARIATION = "% of the variation: of the squares of weight times spread, as of independent columns"


class Limits(NamedTuple):
    """How much of a formula is written; None: all.

    n_terms : the most terms of an output
    n_parts : the most parts of a sum within a term; of a table of parts, twice as many
    n_outputs : the most outputs
    n_encodings : the most definitions of encodings
    """

    n_terms: int | None
    n_parts: int | None = None
    n_outputs: int | None = None
    n_encodings: int | None = None


# A formula that fits a screen is the first of these that has at most so many characters and lines.
MOST_CHARACTERS, MOST_LINES = 4_000, 50
ON_A_SCREEN = (
    *(Limits(n, 12, 10, 20) for n in (30, 20)),
    *(Limits(n, 5, 10, 20) for n in (20, 15, 12, 10, 8, 6, 5)),
    *(Limits(n, 4, 10, 20) for n in (4, 3, 2, 1)),
    *(Limits(n, 3, 10, 10) for n in (2, 1)),
    Limits(1, 3, 2, 5),
)
# The most lines that a term, or a note, is folded to where it is shortened.
MOST_FOLDED = 4


def source(written: WrittenModel, digits: int | None) -> str:
    """Return the whole formula as plain text."""
    return formula_of(written, Text(digits or DIGITS, written, Limits(None)))


def shortened(written: WrittenModel, digits: int | None, n_terms: int | None) -> str:
    """Return the formula as plain text with long names, sums and lists shortened, in this number of
    the largest terms; None: as many as fit a screen."""
    text = ""
    for limits in ON_A_SCREEN if n_terms is None else [Limits(n_terms, 12)]:
        written = written.largest(limits.n_terms, of_each=True)
        text = formula_of(written, Text(digits or DIGITS, written, limits))
        if len(text) <= MOST_CHARACTERS and text.count("\n") < MOST_LINES:
            break
    return text


def formula_of(written: WrittenModel, to: Text) -> str:
    """Return the formula of a model; to : what writes it."""
    outputs = function_names(written.model)
    sums = [
        to.first.format(to.output(name)) + to.line.join(_sum_of(written, to, k))
        for k, name in enumerate(outputs[: to.limits.n_outputs])
    ]
    if len(sums) < len(outputs):
        left = f"({len(outputs) - len(sums)} of {len(outputs)} outputs left out)"
        sums.append(f"{to.ellipsis} {to.words(left)}")
    notes = _notes_on_encodings(written, to)
    notes += [to.words(line) for line in (*_how_it_predicts(written.model, to), *to.remarks)]
    head = to.start + to.row.join(sums)
    return to.finished(
        head + (to.where + to.line + to.line.join(notes) if notes else "") + to.end
    )


def _sum_of(written, to, k):
    """Return the parts of output k: the intercept, terms, and what is left out."""
    sizes, n_terms = written.sizes, to.limits.n_terms
    places = np.arange(len(written.terms))
    if n_terms is not None:
        places = np.argsort(-sizes[k], kind="stable")[:n_terms]
    is_small = are_negligible(sizes, 10.0 ** -(to.digits + 2))[k, places]
    terms = [
        to.term(written.factors[k, i], written.terms[i]) for i in places[~is_small].tolist()
    ]
    n_smaller, words = written.n_left_out + len(written.terms) - len(places), []
    if n_smaller:
        share = percent(written.share_left_out(k, sizes[k, places].sum()))
        words.append(f"{n_smaller} smaller terms, {share} of what all can add")
    if is_small.any():
        words.append(f"{is_small.sum()} below the printed digits")
    left = to.words(f"({', '.join(words)})")
    terms += [f"+ {to.ellipsis} {left}"] if words else []
    return [to.literal(written.intercept[k]), *terms]


def _how_it_predicts(model, to):
    """Return lines on how `predict` transforms f; none if it returns f."""
    if model.classes is None:
        link = LINKS[model.link]
        return [
            *filter(None, [describe_limits(model)]),
            *[f"predict gives {link.formula}"] * (not link.is_identity),
        ]
    if model.coef.ndim == 1:
        one, other = map(to.shown, two_classes(model))
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


def _notes_on_encodings(written, to):
    """Return lines that define the encodings that have been written, and the functions and norms in
    which they and the terms are written."""
    norms = _norms(written, to)
    used = to.seen
    if to.limits.n_parts is None:  # also those that lists in the formula leave out
        used = {v for term in written.terms if to.condition(term) is None for v in term.encodings}
    encodings = {v: each for v, each in (written.encodings or {}).items() if v in used}
    lines = [to.definition(v, each) for v, each in encodings.items()]
    lines = to.first_of([line for line in dict.fromkeys(lines) if line])
    columns = {int(written.features.stage.column[v]) for v in encodings}
    lines += [
        to.cell(cell(j)) + to.words(f" in {clock.unit}")
        for j, clock in written.clocks.items()
        if j in columns
    ]
    lines += [to.soft] if any(each.find("reached") for each in encodings.values()) else []
    lines += norms
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


def _norms(written, to):
    """Return lines that define the norms in Gaussian envelopes."""
    lines, most = [], to.most_listed
    for seen in {tuple(seen.tolist()): None for seen in written.envelopes.values()}:
        squares = [to.power.format(to(encoding(v)), 2) for v in seen[:most]]
        if len(seen) > most:
            squares.append(f"{to.ellipsis} {to.words(f'({len(seen)} inputs)')}")
        lines.append("|u|^2" + to.equals + " + ".join(squares))
    return lines


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

    def __init__(self, digits: int, written: WrittenModel, limits: Limits):
        super().__init__(digits, written)
        self.limits = limits
        self.names = self._short_names({j: written.names[j] for j in written.columns.tolist()})
        self.seen: dict[int, None] = {}  # the encodings that have been written, in their order
        self.remarks: list[str] = []
        self._factors: dict[Term, str] = {}
        self._columns = {j: self.name(name) for j, name in self.names.items()}
        self._levels: dict[int, dict[int, str]] = {}

    @cached_property
    def _spreads(self):
        """The spread of each encoding."""
        return encoding_spreads(self.written.model)

    @property
    def most_listed(self) -> int:
        """The most levels, columns or encodings that are listed."""
        return MOST_LISTED if self.limits.n_parts is None else FEW_LISTED

    def one_line(self, text: object) -> str:
        """Return text without ends of lines."""
        return one_line(text)

    def shown(self, text: object) -> str:
        """Return the name of a column, a level or a label, cut where names are shortened."""
        return one_line(text) if self.limits.n_parts is None else short_name(text)

    def _short_names(self, names):
        """Return {place: name} as they are `shown`, all different."""
        if self.limits.n_parts is None:
            return {k: self.shown(name) for k, name in names.items()}
        return short_names(names)

    def _levels_of(self, v):
        """Return the levels of the column of encoding v as they are shown, {place: level}."""
        stage = self.written.features.stage
        j = int(stage.column[v])
        if j not in self._levels:
            self._levels[j] = self._short_names(dict(enumerate(stage.levels_of(v) or ())))
        return self._levels[j]

    def first_of(self, lines: list[str]) -> list[str]:
        """Return the definitions that are written."""
        most = self.limits.n_encodings
        if most is None or len(lines) <= most:
            return lines
        return [*lines[:most], f"{self.ellipsis} ({len(lines) - most} more)"]

    def finished(self, text: str) -> str:
        """Return the formula in lines of a screen."""
        return folded(text, None if self.limits.n_parts is None else MOST_FOLDED)

    # -- terms

    def condition(self, term: Term) -> str | None:
        """Return in words where a term holds; None where it is no rule."""
        words = term.condition(self.names, self.written.features.stage)
        if words is None:
            return None
        return " and ".join(map(glued, self.one_line(words).split(" and ")))

    def factor(self, c: float, term: Term) -> str:
        """Return a term with its factor in one line."""
        if term not in self._factors:
            condition = self.condition(term)
            self._factors[term] = (
                self.in_brackets(term.expression)
                if condition is None
                else self.words(f"if {condition}")
            )
        return signed(c, f"{self.literal(abs(c))} {self._factors[term]}")

    def term(self, c: float, term: Term) -> str:
        """Return a term with its factor: a linear function that is no line, as a table."""
        line = self.factor(c, term)
        if term.is_linear and len(self.line.strip("\n") + line) > WIDTH:
            return self.table_of(c, summands(term.expression))
        return line

    def table_of(self, c: float, parts: Sequence[Expression]) -> str:
        """Return c times a sum as a table, a line for each part, the largest first, with its share
        of the variation."""
        shares = self._shares(parts)
        order = np.argsort(-shares, kind="stable").tolist()
        most = None if self.limits.n_parts is None else 2 * self.limits.n_parts
        rows = [self._row(c, parts[i], shares[i]) for i in order[:most]]
        rest = order[len(rows) :]
        if rest:
            rows.append((self.ellipsis, f"({len(rest)} smaller parts)", percent(shares[rest].sum())))
        widths = [max(len(row[k]) for row in rows) for k in range(3)]
        self._remark(VARIATION)
        head = "+ the sum of"
        lines = [f"{head:{widths[0] + widths[1] + 8}}of its variation"]
        lines += [
            f"      {number:{widths[0]}}  {name:{widths[1]}}  {share:>{widths[2]}}".rstrip()
            for number, name, share in rows
        ]
        return "\n".join(lines)

    def _row(self, c, part, share):
        """Return (number, name, share) of a part of c times a sum."""
        weight, rest = _split(part)
        value = c * weight
        name = "" if rest is None else self(rest)
        return signed(value, self.literal(abs(value))), name, percent(share) if share else ""

    def add(self, e: Expression) -> str:
        """Return a sum, of many parts the largest and what the others are of its variation."""
        parts, most = summands(e), self.limits.n_parts
        if most is None:
            return self.summed([self.summand(each) for each in parts])
        shares = self._shares(parts)
        if np.count_nonzero(shares) <= most:
            return self.summed([self._glued_summand(each) for each in parts])
        order = np.argsort(-shares, kind="stable").tolist()
        texts = [self._glued_summand(parts[i]) for i in order[:most]]
        rest = [i for i in order[most:] if shares[i]]
        share = percent(shares[rest].sum())
        texts.append(f"+ {self.ellipsis} ({len(rest)} smaller, {share} of the variation)")
        texts += [self._glued_summand(parts[i]) for i in order[most:] if not shares[i]]
        self._remark(VARIATION)
        return self.summed(texts)

    def _glued_summand(self, e):
        """Return "+ a" or "- a" with an a that stays in one line."""
        text = self.summand(e)
        return text[:2] + glued(text[2:])

    def _shares(self, parts):
        """Return what each part of a sum is of its variation, as if all were independent: of a
        constant, 0."""
        found = [part.find("encoding") for part in parts]
        sizes = [
            0.0 if each is None else abs(_split(part)[0]) * self._spreads[each.v]
            for part, each in zip(parts, found, strict=True)
        ]
        largest = max(sizes) or 1.0
        squares = np.square(np.array(sizes) / largest)
        return squares / (squares.sum() or 1.0)

    def _remark(self, text):
        """Note a line that is written once, at the end."""
        if text not in self.remarks:
            self.remarks.append(text)

    def output(self, name: str) -> str:
        """Return the name of an output, such as f[class] or f_0."""
        return self.shown(name)

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
        self.seen[e.v] = None
        if self.written.encodings is None:
            return self._columns[e.v]
        written, stage = self.written.encodings[e.v], self.written.features.stage
        column = self._columns[int(stage.column[e.v])]
        encoding = stage.encoding(e.v)
        form, words = encoding.of_kind.symbol(encoding, self._levels_of(e.v) or None)
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
                f"{self.shown(e.levels[k])}: {value:.3g}"
                for k, value in list(e.values.items())[: self.most_listed]
            )
            more = len(e.levels) > self.most_listed
            listed = f", ... ({self.most_listed} of {len(e.levels)} levels listed)"
            levels += listed if more else ""
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


def _split(part):
    """Return (weight, what it is the weight of) of a part of a sum; None of a constant."""
    if part.operation == "number":
        return part.value, None
    if part.operation == "negative":
        weight, rest = _split(part.operands[0])
        return -weight, rest
    if part.operation == "multiply" and part.operands[0].operation == "number":
        rest = part.operands[1:]
        return part.operands[0].value, rest[0] if len(rest) == 1 else made("multiply", *rest)
    return 1.0, part


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
        for j, (low, high) in list(ends.items())[: to.most_listed]
    ]
    if len(ends) > to.most_listed:
        listed.append(f"{to.ellipsis} {to.words(f'({len(ends)} columns)')}")
    start = to.words("numbers beyond these ends count as the end: ")
    return [start + ", ".join(listed)] if ends else []
