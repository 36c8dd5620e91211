"""Steps of any order: the distribution from which a dictionary starts of what jumps, as trees do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from .base import Base, inputs_that_vary, sample_of

if TYPE_CHECKING:
    from ..columns.stage import ColumnStage
    from ..rows.home import Rows

# Chance that a step which sees some inputs sees no more.
NO_MORE = 0.4
# Of the largest |w'x| of some rows, by how much two differ that are not the same: more than float32 rounds by.
DIFFERENT = 1e-5


@dataclass(frozen=True, eq=False)
class Steps(Base):
    """phi = 1 where w'x > t, else -1: w has entries +-1 in units of the inputs' half ranges, of a few inputs, q with
    probability (1 - p) p^(q - 1); t lies where the sum w'x of some row changes to the next.

    Of one input that is a tree's split; of several that are zeros and ones, that some of them hold together; of others, a half
    space. Between two values of w'x t is random, so that no row lies on a step, where rounding would decide.

    units : 1 / half the range
    sample : some rows, (n, len(inputs))
    """

    sample: np.ndarray = field(repr=False)

    activation: ClassVar[str] = "sign"
    scale: ClassVar[float] = 1.0
    is_periodic: ClassVar[bool] = False

    @classmethod
    def of(
        cls, rows: Rows, weight: np.ndarray, rng: np.random.Generator, stage: ColumnStage | None = None,
        max_order: int | None = None,
    ) -> Self:  # fmt: skip
        inputs, scale = inputs_that_vary(rows, weight, stage)
        if not len(inputs):
            return cls(np.zeros(1, np.intp), np.zeros(1), np.zeros((1, 1)), max_order=max_order)
        return cls(inputs, 1 / scale[1], sample_of(rows, inputs, weight, rng)[0], max_order=max_order)

    def weights(self, n: int, rng: np.random.Generator) -> np.ndarray:
        k = len(self.inputs)
        order = np.minimum(rng.geometric(NO_MORE, n), self.most)
        seen = rng.random((n, k)).argsort(axis=1) < order[:, None]
        return rng.choice([-1.0, 1.0], (n, k)) * seen * self.units

    def entries(self, j: np.ndarray, order: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.choice([-1.0, 1.0], len(j)) * self.units[j]

    def offsets(self, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """-t of each w: above w'x of a row of the sample, more often from the middle, by a random part of what lies between it
        and the next larger, or, where there is none, below it; of a w'x that is always the same, anywhere below."""
        Z = np.sort(self.sample @ weights.T, axis=0)
        column, last = np.arange(len(weights)), len(Z) - 1
        low = high = Z[rng.integers(0, len(Z), (2, len(weights))).sum(axis=0) // 2, column]
        least = DIFFERENT * np.maximum(np.abs(Z[0]), np.abs(Z[-1]))
        above, below = np.count_nonzero(Z <= low + least, axis=0), np.count_nonzero(Z < low - least, axis=0)
        is_highest, is_constant = above > last, (above > last) & (below == 0)
        low = np.where(is_highest, Z[np.maximum(below - 1, 0), column], low)
        high = np.where(is_highest, high, Z[np.minimum(above, last), column])
        low = np.where(is_constant, low - 1 - np.abs(low), low)
        return -(low + (high - low) * rng.uniform(0.25, 0.75, len(weights)))
