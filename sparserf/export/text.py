"""A model as plain text, to be read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._base.expressions import cell, encoding, made
from .._base.screen import WIDTH, folded, glued, one_line, percent
from ..expansion.outputs import are_negligible, describe_limits, function_names, two_classes
from ..expansion.terms import encoding_spreads
from ..losses import PROBABILISTIC
from ..losses.links import LINKS
from .printer import Printer, signed, summands

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .._base.expressions import Expression
    from ..features import Term
    from .written import WrittenModel

# The digits of numbers.
DIGITS = 4
# The remark on the shares of the parts of a sum.
VARIATION = "% of the variation: of the squares of weight times spread, as of independent columns"

# Sizes that are compared are at most this, so that none is infinite.
LARGEST = 1e300


def source(written: WrittenModel, digits: int | None) -> str:
    """Return the whole formula as plain text."""
    return formula_of(written, Text(digits or DIGITS, written))


def formula_of(written: WrittenModel, to: Text) -> str:
    """Return the formula of a model; to : what writes it."""
    outputs = function_names(written.model)
    sums = [
        to.first.format(to.output(name)) + to.line.join(_sum_of(written, to, k))
        for k, name in enumerate(outputs[: to.n_outputs])
    ]
    if len(sums) < len(outputs):
        left = f"({len(outputs) - len(sums)} of {len(outputs)} outputs left out)"
        sums.append(f"{to.ellipsis} {to.words(left)}")
    notes = _notes_on_encodings(written, to)
    notes += [to.words(line) for line in (*_how_it_predicts(written.model, to), *to.remarks)]
    head = to.start + to.row.join(sums)
    return to.finished(head + (to.where + to.line + to.line.join(notes) if notes else "") + to.end)


def _sum_of(written, to, k):
    """Return the parts of output k: the intercept, terms, and what is left out."""
    sizes, n_terms = written.sizes, to.n_terms
    places = np.arange(len(written.terms))
    if n_terms is not None:
        places = np.argsort(-sizes[k], kind="stable")[:n_terms]
    is_small = are_negligible(sizes, 10.0 ** -(to.digits + 2))[k, places]
    terms = [to.term(written.factors[k, i], written.terms[i]) for i in places[~is_small].tolist()]
    n_smaller, n_small = written.n_left_out + len(written.terms) - len(places), int(is_small.sum())
    if n_small and n_terms is not None:  # and so are those that are smaller
        n_smaller, n_small = 0, n_small + n_smaller
    words = [f"{n_small} below the printed digits"] if n_small else []
    if n_smaller:
        share = percent(written.share_left_out(k, sizes[k, places].sum()))
        smaller = f"{n_smaller} smaller term{'s'[: n_smaller != 1]}"
        words.insert(0, f"{smaller}, {share} of what all can add")
    left = to.words(f"({', '.join(words)})")
    terms += [f"+ {to.ellipsis} {left}"] if words else []
    return [to.literal(written.intercept[k]), *terms]


def _how_it_cuts(model, to):
    """Return the lines on the thresholds of classes in order, and on the cuts of `predict`."""
    labels, (classes, cuts) = model.classes.tolist(), model.cut_classes
    theta = [
        f"{to.literal(threshold)} for {to.shown(label)}"
        for threshold, label in zip(model.thresholds, labels[:-1], strict=True)
    ]
    ends = [
        f"{to.shown(label)} up to f = {to.literal(cut)}"
        for label, cut in zip(classes[:-1].tolist(), cuts, strict=True)
    ]
    ends.append(f"{to.shown(classes[-1].item())} beyond")
    return [
        f"predict gives the most probable class: {', '.join(ends)}",
        "the probability of a class or one before it is 1 / (1 + exp(f - t)), t = "
        + ", ".join(theta),
    ]


def _how_it_predicts(model, to):
    """Return lines on how `predict` transforms f; none if it returns f."""
    if model.classes is None:
        link = LINKS[model.link]
        return [
            *filter(None, [describe_limits(model)]),
            *[f"predict gives {link.formula}"] * (link.formula != "f"),
        ]
    if model.thresholds:
        return _how_it_cuts(model, to)
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
    norms = _norms(to)
    defined = to.defined_encodings()
    made = written.encodings
    encodings = {} if made is None else {v: made[v] for v in made if v in defined}
    lines = [to.definition(v, each) for v, each in encodings.items()]
    lines = to.definitions([line for line in dict.fromkeys(lines) if line])
    columns = {int(written.features.encoder.column[v]) for v in encodings}
    lines += [
        to.cell(cell(j)) + to.words(f" in {clock.unit}")
        for j, clock in written.clocks.items()
        if j in columns
    ]
    lines += [to.soft] if any(each.find("saturate") for each in encodings.values()) else []
    lines += norms
    lines += _note_on_ends(encodings, written.features.encoder, to)
    knots = [each.find("between") for each in encodings.values()]
    is_cut = any(each is not None and not is_held(each) for each in knots) or any(
        each.operation == "table" and len(each.values) > to.most_listed
        for each in encodings.values()
    )
    whole = 'what is not listed here, and all digits, is in formula("python"), exact and complete'
    return lines + [to.words(whole)] * is_cut


def _norms(to):
    """Return lines that define the norms in Gaussian envelopes."""
    lines, most = [], to.most_listed
    for seen in {tuple(seen.tolist()): None for seen in to.defined_envelopes().values()}:
        squares = [to.power.format(to(encoding(v)), 2) for v in seen[:most]]
        if len(seen) > most:
            squares.append(f"{to.ellipsis} {to.words(f'({len(seen)} inputs)')}")
        lines.append("|u|^2" + to.equals + " + ".join(squares))
    return lines


class WeightedPart(NamedTuple):
    """A part of a sum, and its share of the variation."""

    part: Expression
    share: float


class Rest(NamedTuple):
    """How many parts of a sum are not written, and their share of the variation."""

    count: int
    share: float


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

    # The most terms of an output, and the most outputs; None: all.
    n_terms: int | None = None
    n_outputs: int | None = None
    # The most levels, columns or encodings that are listed.
    most_listed: int = 12

    def __init__(self, digits: int, written: WrittenModel):
        super().__init__(digits, written)
        self.remarks: list[str] = []  # what is said once, at the end
        self.names = self.all_shown({j: written.names[j] for j in written.columns.tolist()})
        self._columns = {j: self.name(name) for j, name in self.names.items()}
        self._levels: dict[int, dict[int, str]] = {}
        self._phis: dict[Term, str] = {}

    # -- what is shown of names, encodings and lines

    def shown(self, text: object) -> str:
        """Return the name of a column, a level or a label, without ends of lines."""
        return one_line(text)

    def one_line(self, words: str) -> str:
        """Return words without ends of lines."""
        return one_line(words)

    def all_shown(self, names: Mapping[int, object]) -> dict[int, str]:
        """Return names of one kind as they are `shown`, {place: name}."""
        return {k: self.shown(name) for k, name in names.items()}

    def levels_of(self, v: int) -> dict[int, str]:
        """Return the levels of the column of encoding v as they are shown, {place: level}."""
        encoder = self.written.features.encoder
        j = int(encoder.column[v])
        if j not in self._levels:
            self._levels[j] = self.all_shown(dict(enumerate(encoder.levels_of(v) or ())))
        return self._levels[j]

    def defined_encodings(self) -> set[int]:
        """Return the encodings that are defined below the formula: those of all terms but rules."""
        terms = self.written.terms
        return {
            v for term in terms if self.condition(term) is None for v in term.encodings.tolist()
        }

    def defined_envelopes(self) -> dict[float, np.ndarray]:
        """Return the envelopes that are defined: {gamma: encodings}."""
        return self.written.envelopes

    def definitions(self, lines: list[str]) -> list[str]:
        """Return the definitions of encodings that are written, of all."""
        return lines

    def finished(self, text: str) -> str:
        """Return the formula in lines of a screen."""
        return folded(text)

    # -- terms

    def condition(self, term: Term) -> str | None:
        """Return in words where a term holds; None where it is no rule."""
        words = term.condition(self.names, self.written.features.encoder)
        if words is None:
            return None
        return " and ".join(map(glued, self.one_line(words).split(" and ")))

    def factor(self, c: float, term: Term) -> str:
        """Return a term with its factor in one line."""
        if term not in self._phis:
            phi = self.condition(term)
            phi = self.in_brackets(term.expression) if phi is None else self.words(f"if {phi}")
            self._phis[term] = phi
        return signed(c, f"{self.literal(abs(c))} {self._phis[term]}")

    def term(self, c: float, term: Term) -> str:
        """Return a term with its factor: a linear function that is no line, as a table."""
        line = self.factor(c, term)
        if term.is_linear and len(self.line.strip("\n") + line) > WIDTH:
            return self.table_of(c, summands(term.expression))
        return line

    def add(self, e: Expression) -> str:
        """Return a sum of parts that each stay in one line."""
        return self.summed(list(map(self.glued, summands(e))))

    def glued(self, part: Expression) -> str:
        """Return "+ a" or "- a" with an a that stays in one line."""
        text = self.summand(part)
        return text[:2] + glued(text[2:])

    def table_of(self, c: float, parts: Sequence[Expression], most: int | None = None) -> str:
        """Return c times a sum as a table, a line for each part, the largest first, with its share
        of the variation.

        most : the most parts that have a line; None: all
        """
        largest, rest, constants = self.by_variation(parts, most)
        rows = []
        for part, share in (*largest, *((part, None) for part in constants)):
            weight, of = _split(part)
            number = signed(c * weight, self.literal(abs(c * weight)))
            shown = "" if share is None else percent(share)
            rows.append((number, "" if of is None else self(of), shown))
        if rest.count:
            words = f"({rest.count} smaller part{'s'[: rest.count != 1]})"
            rows.append((self.ellipsis, words, percent(rest.share)))
        widths = [max(len(row[k]) for row in rows) for k in range(3)]
        head = "+ the sum of"
        lines = [f"{head:{widths[0] + widths[1] + 6}}of its variation"]
        lines += [
            f"    {number:{widths[0]}}  {name:{widths[1]}}  {share:>{widths[2]}}".rstrip()
            for number, name, share in rows
        ]
        self.remark(VARIATION)
        return "\n".join(lines)

    def by_variation(
        self, parts: Sequence[Expression], most: int | None
    ) -> tuple[list[WeightedPart], Rest, list[Expression]]:
        """Return the parts of a sum, the largest first: at most so many, the rest of them, and the
        constants.

        A part is as large as its share of the variation of the sum, as if all were independent: of
        the squares of weights times spreads.
        """
        found = [(part, part.find("encoding")) for part in parts]
        constants = [part for part, of in found if of is None]
        varied = [(part, of.v) for part, of in found if of is not None]
        sizes = [abs(_split(part)[0]) * self._spreads[v] for part, v in varied]
        sizes = np.minimum(sizes, LARGEST)
        squares = np.square(sizes / (sizes.max(initial=0.0) or 1.0))
        shares = squares / (squares.sum() or 1.0)
        order = np.argsort(-sizes, kind="stable")[:most].tolist()
        rest = Rest(len(varied) - len(order), float(1 - shares[order].sum()))
        return [WeightedPart(varied[i][0], float(shares[i])) for i in order], rest, constants

    @cached_property
    def _spreads(self):
        """The spread of each encoding."""
        return encoding_spreads(self.written.model)

    def remark(self, text: str) -> None:
        """Note a line that is written once, at the end."""
        if text not in self.remarks:
            self.remarks.append(text)

    # -- names and numbers

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
        if self.written.encodings is None:
            return self._columns[e.v]
        written, encoder = self.written.encodings[e.v], self.written.features.encoder
        column = self._columns[int(encoder.column[e.v])]
        encoding = encoder.encoding(e.v)
        form, words = encoding.of_kind.symbol(encoding, self.levels_of(e.v) or None)
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
        x = f"({x} - {self.literal(e.level)})" if e.level else x
        return self.function.format("cos", f"{self.literal(e.turn)} {x}")

    def units(self, e: Expression) -> str:
        r = self(e.operands[0])
        r = r + " " + signed(-e.center, self.literal(abs(e.center))) if e.center else r
        return r if self.literal(e.unit) == "1" else self.quotient.format(r, self.literal(e.unit))

    def saturate(self, e: Expression) -> str:
        return self.function.format("soft", f"{self(e.operands[0])}, {e.reach:.3g}")

    # -- what encodings are

    def impute(self, e: Expression) -> str:
        """Return an encoding of a number, and words on what it is where that is missing."""
        return self._with_notes(e.operands[0], [f"{e.fill:.3g} where missing"] if e.fill else [])

    def _with_notes(self, e, notes):
        knots = e.find("between")
        if knots is not None and not is_held(knots):
            notes = [f"s linear between {len(knots.knots)} quantiles of the column", *notes]
        return self(e) + (self.words(", " + ", ".join(notes)) if notes else "")

    def flag(self, e: Expression) -> str:
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
        line = self.literal(*e.values.values()) + self.words(" where it is so, else ")
        line += self.literal(e.rest)
        if e.rest == e.other == e.fill:
            return line
        line += self.words(", of other words ") + other
        return line + self.words(", where missing ") + self.literal(e.fill)

    def definition(self, v: int, e: Expression) -> str | None:
        """Return a line that defines an encoding; None if its name defines it."""
        if _is_cell(e):
            return None
        is_noted = e.operation in ("impute", "flag", "table")
        return self(encoding(v)) + self.equals + (self(e) if is_noted else self._with_notes(e, []))


def _is_cell(e):
    """Return whether an encoding is the number of its cell, and 0 where that is missing."""
    e = e.operands[0] if e.operation == "impute" and not e.fill else e
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


def _note_on_ends(encodings, encoder, to):
    """Return a line on the ends that columns are held within; none where there are no such."""
    ends = {}
    for v, each in encodings.items():
        found = each.find("between")
        if found is not None and is_held(found):
            ends[int(encoder.column[v])] = found.knots[[0, -1]].tolist()
    listed = [
        to.cell(cell(j)) + to.words(f" in [{low:.{to.digits}g}, {high:.{to.digits}g}]")
        for j, (low, high) in list(ends.items())[: to.most_listed]
    ]
    if len(ends) > to.most_listed:
        listed.append(f"{to.ellipsis} {to.words(f'({len(ends)} columns)')}")
    start = to.words("numbers beyond these ends count as the end: ")
    return [start + ", ".join(listed)] if ends else []
