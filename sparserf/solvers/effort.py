"""The work that a fit may take: counted from shapes alone, so that it ends at the same place on any machine."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from ..rows import Rows

# The most work of an l1 fit, in multiplications: of up to FEW_ROWS rows, for each row more, and passes over the dictionary
# beside it. And those that take as long as a feature value does, beside one for each input.
EFFORT, FEW_ROWS, A_ROW, PASSES, VALUE = 1.2e11, 5_000, 4e7, 5, 20
# What counts for a whole call alone: a step's values of a loss with a logarithm, for each row, and a turn to a class's others.
LOSS, TURN = 10_000, 3_000


class Effort:
    """Multiplications so far, and the most that there may be."""

    within: Effort | None
    cuts: Counter[str]

    def __init__(self, most: float, within: Effort | None = None):
        """within: the work of which this is a part, to which all that is added here adds."""
        self._most, self._spent, self.within, self.cuts = most, 0.0, within, Counter()

    @classmethod
    def of_a_fit(cls, rows: Rows, n_features: int, share: float = 1.0) -> Self:
        """What an l1 fit may take that looks at so many features, or a share of that beside the passes."""
        most = EFFORT + A_ROW * max(0, rows.n_rows - FEW_ROWS)
        return cls(share * most + PASSES * of_a_pass(rows, n_features))

    def part(self, share: float) -> Effort:
        """An effort of its own, of at most that share of what is left."""
        return Effort(share * self.left, self)

    def add(self, multiplications: float) -> None:
        self._spent += multiplications
        self.add_around(multiplications)

    def add_around(self, multiplications: float) -> None:
        """To the work of which this is a part alone."""
        if self.within is not None:
            self.within.add(multiplications)

    def note_cut(self, what: str, n: int = 1) -> None:
        """What this has ended before its time, in the plural, and how many: the whole knows."""
        self.cuts[what] += n
        if self.within is not None:
            self.within.note_cut(what, n)

    def add_factor(self, p: int) -> None:
        """A Cholesky factor of p × p numbers: p³ / 6, at half the speed of a matrix product."""
        self.add(p**3 / 3)

    def forget(self) -> None:
        self._spent = 0.0

    @property
    def spent(self) -> float:
        return self._spent

    @property
    def left(self) -> float:
        return max(0.0, self._most - self._spent)

    @property
    def is_spent(self) -> bool:
        return self._spent >= self._most or (self.within is not None and self.within.is_spent)


def of_a_pass(rows: Rows, n_features: int) -> int:
    """The multiplications that take as long as the correlations of so many features."""
    return rows.n_rows * n_features * (VALUE + rows.row_size)


UNBOUNDED = Effort(float("inf"))
