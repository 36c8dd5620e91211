"""The differences of f between each value of a column that takes few and the next, as sums of terms
to be bounded: whether f rises, or falls, along the values."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..expansion.terms import encoder_of
from .relaxations import TermSum
from .search import Search
from .space import Space

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..expansion import Expansion
    from ..expansion.box import Box
    from ..features import Term


class StepSpace(Space):
    """The coordinates of a box in which one column has two values: each of its encodings is two
    inputs, of the value after the step and of that before it.

    before, after : the input of each encoding at the two values
    """

    before: np.ndarray
    after: np.ndarray

    def __init__(
        self, model: Expansion, box: Box, seen: np.ndarray, j: int, step: tuple[float, float]
    ):
        """Make the coordinates; step : two values of column j, of which `row` has the second."""
        of_column = np.flatnonzero(encoder_of(model.features).column[seen] == j)
        fixed = replace(box, levels=box.levels | {j: np.array([step[1]])})
        super().__init__(model, fixed, np.concatenate([seen, seen[of_column]]))
        self.before, self.after = self.place, self.place.copy()
        self.after[seen] = np.arange(len(seen))
        a = self.columns.index(j)
        is_before = self._inputs_of[a] >= len(seen)
        at = self._encode(j, np.array([step[0]]))[:, self._inputs_of[a]]
        self.tables[a] = np.where(is_before, at, self.tables[a])
        self._bound_inputs()


def falls_at_steps(
    model: Expansion, box: Box, terms: Sequence[tuple[Term, float]], j: int, sign: int
) -> Iterator[tuple[tuple[float, float], StepSpace, Search]]:
    """Yield (its two values, space, search) for each step of column j from a value to the next.

    The search is for the most that f times the sign falls there, or 0. Terms that are the same at
    both values take no part.
    """
    encoder = encoder_of(model.features)
    terms = [(term, coef) for term, coef in terms if j in term.columns]
    seen = np.unique(np.concatenate([term.encodings for term, _ in terms]))
    for step in pairwise(box.levels[j][~np.isnan(box.levels[j])].tolist()):
        cells = np.zeros((2, encoder.n_columns))
        cells[:, j] = step
        U, moving = encoder.transform(cells), []
        for term, coef in terms:
            one, other = term.parts(U)[np.searchsorted(term.columns, j)]
            if one != other:
                moving.append((term, sign * coef))
        space = StepSpace(model, box, seen, j, step)
        falls = [(term, -coef, space.after[term.encodings]) for term, coef in moving]
        falls += [(term, coef, space.before[term.encodings]) for term, coef in moving]
        search = Search(TermSum(falls, space.largest), space)
        search.best = 0.0
        yield step, space, search
