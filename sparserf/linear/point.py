"""A point of a linear fit, or a step between two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .._base.types import RowVector
    from ..rows import RowVectors


@dataclass
class Point:
    """Coefficients w, and what belongs to them; a line for each output.

    w, way : ndarrays of shape (n_outputs, n_features)
        way: |w| of all steps to w added up, which rounding is in proportion to.
    f, u : row vectors
        f = Z w, and in the projected problem what the rows have beside that; u with w = Z'u, None where it is not known.
    b : ndarray of shape (n_outputs,)
        The intercepts.
    """

    w: np.ndarray
    f: RowVector
    b: np.ndarray
    u: RowVector
    way: np.ndarray

    @classmethod
    def at_zero(cls, vectors: RowVectors, k: int, d: int) -> Point:
        return cls(np.zeros((k, d)), vectors.zeros(k), np.zeros(k), vectors.zeros(k), np.zeros((k, d)))

    @classmethod
    def at_w(cls, w: np.ndarray, f: RowVector, b: np.ndarray, u: RowVector) -> Point:
        return cls(w, f, b, u, np.abs(w))

    @property
    def knows_u(self) -> bool:
        """Whether w is not 0, and u is known."""
        return self.u is not None and bool(self.w.any())

    def along(self, vectors: RowVectors, t: np.ndarray, step: Point) -> Point:
        """This + t step, for a number t of each output."""
        w, way = self.w + t[:, None] * step.w, self.way + np.abs(t)[:, None] * step.way
        u = None if self.u is None or step.u is None else vectors.along(self.u, t, step.u)
        return Point(w, vectors.along(self.f, t, step.f), self.b + t * step.b, u, way + np.abs(w))
