"""The work that a fit may take: counted from shapes alone, so that it ends at the same place on any machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from ..rows.home import Rows

# The most work of an l1 fit, in multiplications: of up to FEW_ROWS rows, for each row more, and passes over the dictionary
# beside it. And those that take as long as a feature value does, beside one for each input.
EFFORT, FEW_ROWS, A_ROW, PASSES, VALUE = 1.2e11, 5_000, 4e7, 5, 20


class Effort:
    """Multiplications so far, and the most that there may be."""

    def __init__(self, most: float):
        self._most, self._spent = most, 0.0

    @classmethod
    def of_a_fit(cls, rows: Rows, n_features: int, share: float = 1.0) -> Self:
        """What an l1 fit may take that looks at so many features, or a share of that beside the passes."""
        most = EFFORT + A_ROW * max(0, rows.n_rows - FEW_ROWS)
        return cls(share * most + PASSES * of_a_pass(rows, n_features))

    def add(self, multiplications: float) -> None:
        self._spent += multiplications

    def add_factor(self, p: int) -> None:
        """A Cholesky factor of p × p numbers: p³ / 6, at half the speed of a matrix product."""
        self.add(p**3 / 3)

    def forget(self) -> None:
        self._spent = 0.0

    @property
    def is_spent(self) -> bool:
        return self._spent >= self._most


def of_a_pass(rows: Rows, n_features: int) -> int:
    """The multiplications that take as long as the correlations of so many features."""
    return rows.n_rows * n_features * (VALUE + rows.row_size)


UNBOUNDED = Effort(float("inf"))
