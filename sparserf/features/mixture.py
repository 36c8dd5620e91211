"""Cosines of any bandwidth and order: the distribution from which a dictionary starts where nothing is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from .bandwidth import distance_scale
from .base import Base, inputs_that_vary, sample_of

if TYPE_CHECKING:
    from ..columns.stage import ColumnStage
    from ..rows.home import Rows

# Bandwidths, beside that of the data.
NARROWEST, WIDEST = 0.25, 4.0


@dataclass(frozen=True, eq=False)
class Mixture(Base):
    """phi = sqrt(2) cos(w'x + b): the order of w, inputs that it sees, log-uniform from 1 to all; its size log-uniform too.

    With w_j = u_j / s_j, s the inputs' standard deviations or their ranges by even chance, u'(x / s) has at order q and
    bandwidth c the spread that draws of the Gaussian kernel would have whose width is c times the median distance between
    the rows x / s. An input that is nearly always the same counts for little in units of its range.

    units : 1 / s, in both kinds, so scaled that the median distance is 1
    """

    activation: ClassVar[str] = "cos"
    scale: ClassVar[float] = float(np.sqrt(2))
    is_periodic: ClassVar[bool] = True

    @classmethod
    def of(
        cls, rows: Rows, weight: np.ndarray, rng: np.random.Generator, stage: ColumnStage | None = None,
        max_order: int | None = None,
    ) -> Self:  # fmt: skip
        inputs, scale = inputs_that_vary(rows, weight, stage)
        if not len(inputs):
            return cls(np.zeros(1, np.intp), np.zeros((2, 1)), max_order=max_order)
        X, weight = sample_of(rows, inputs, weight, rng)
        units = 1 / scale
        widths = [distance_scale((X * unit).__getitem__, weight, None, "euclidean", rng) for unit in units]
        units = np.stack([unit / width for unit, width in zip(units, widths, strict=True)])
        return cls(inputs, units, max_order=max_order)

    def weights(self, n: int, rng: np.random.Generator) -> np.ndarray:
        k = len(self.inputs)
        order = np.minimum(np.exp(rng.uniform(0.0, np.log(self.most + 1), n)).astype(np.intp), self.most)
        seen = rng.random((n, k)).argsort(axis=1) < order[:, None]
        return rng.standard_normal((n, k)) * seen * self.sizes(order, rng)[:, None] * self.units[rng.integers(0, 2, n)]

    def entries(self, j: np.ndarray, order: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        unit = self.units[rng.integers(0, 2, len(j)), j]
        return rng.standard_normal(len(j)) * self.sizes(order, rng) * unit

    def sizes(self, order: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The standard deviation of the u_j of some draws of that order."""
        width = np.exp(rng.uniform(np.log(NARROWEST), np.log(WIDEST), len(order)))
        return width * np.sqrt(len(self.inputs) / np.maximum(order, 1))

    def offsets(self, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Uniform on [0, 2 pi]."""
        return rng.uniform(0.0, 2 * np.pi, len(weights))
