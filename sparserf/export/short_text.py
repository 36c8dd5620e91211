"""A model as plain text that fits a screen: its largest terms, in which names and sums are
shortened, and in words what the others are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .._base.screen import folded, glued, percent, short_name, short_names
from .printer import summands
from .text import DIGITS, VARIATION, Text, formula_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from .._base.expressions import Expression
    from .written import WrittenModel


class TextLimits(NamedTuple):
    """How much of a formula is written; None: all.

    n_terms : the most terms of an output
    n_parts : the most parts of a sum within a term; of a table of parts, twice as many
    n_outputs : the most outputs
    n_encodings : the most encodings that are defined
    """

    n_terms: int
    n_parts: int
    n_outputs: int | None = None
    n_encodings: int | None = None


# A formula is written within the first of the limits ON_A_SCREEN at which it has at most so many
# characters and lines, else within the last.
MOST_CHARACTERS, MOST_LINES = 4_000, 50
ON_A_SCREEN = (
    *(TextLimits(n, 12, 10, 20) for n in (30, 20)),
    *(TextLimits(n, 5, 10, 20) for n in (20, 15, 12)),
    *(
        TextLimits(n, parts, 10, definitions)
        for n in (10, 8, 6, 5, 4, 3, 2, 1)
        for parts, definitions in ((5, 20), (4, 12), (3, 8))
    ),
    TextLimits(1, 2, 1, 3),
)
# The most parts of a sum where the user gives the number of terms.
GIVEN_PARTS = 12
# The most lines that a term, or a note, is folded to.
MOST_FOLDED = 4


def shortened(written: WrittenModel, digits: int | None, n_terms: int | None) -> str:
    """Return the formula as plain text in this number of the largest terms; None: in as many as fit
    a screen."""
    all_limits = ON_A_SCREEN if n_terms is None else (TextLimits(n_terms, GIVEN_PARTS),)
    written, text = written.largest(all_limits[0].n_terms, of_each=True), ""
    for limits in all_limits:
        text = formula_of(written, ShortText(digits or DIGITS, written, limits))
        if len(text) <= MOST_CHARACTERS and text.count("\n") < MOST_LINES:
            break
    return text


class ShortText(Text):
    """Writes a formula as plain text, with names, sums and lists that are shortened."""

    most_listed = 4

    def __init__(self, digits: int, written: WrittenModel, limits: TextLimits):
        self._limits = limits
        self.n_terms, self.n_outputs = limits.n_terms, limits.n_outputs
        self._seen: set[int] = set()  # the encodings that have been written
        self._gammas: set[float] = set()  # and the envelopes
        super().__init__(digits, written)

    def shown(self, text: object) -> str:
        return short_name(text)

    def all_shown(self, names: Mapping[int, object]) -> dict[int, str]:
        return short_names(names)

    def defined_encodings(self) -> set[int]:
        return set(self._seen)

    def defined_envelopes(self) -> dict[float, np.ndarray]:
        return {g: seen for g, seen in self.written.envelopes.items() if g in self._gammas}

    def definitions(self, lines: list[str]) -> list[str]:
        most = self._limits.n_encodings
        if most is None or len(lines) <= most:
            return lines
        return [*lines[:most], f"{self.ellipsis} ({len(lines) - most} more)"]

    def finished(self, text: str) -> str:
        return folded(text, MOST_FOLDED)

    def table_of(self, c: float, parts: Sequence[Expression], most: int | None = None) -> str:
        return super().table_of(c, parts, 2 * self._limits.n_parts)

    def encoding(self, e: Expression) -> str:
        self._seen.add(e.v)
        return super().encoding(e)

    def envelope(self, e: Expression) -> str:
        self._gammas.add(e.gamma)
        return super().envelope(e)

    def add(self, e: Expression) -> str:
        """Return a sum, of many parts the largest and what the others are of its variation."""
        largest, rest, constants = self.by_variation(summands(e), self._limits.n_parts)
        if not rest.count:
            return super().add(e)
        self.remark(VARIATION)
        words = f"{self.ellipsis} ({rest.count} smaller, {percent(rest.share)} of the variation)"
        shown = [self.glued(each.part) for each in largest]
        return self.summed([*shown, f"+ {glued(words)}", *map(self.glued, constants)])
