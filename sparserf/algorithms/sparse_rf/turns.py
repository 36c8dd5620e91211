"""The l1 fit of one class against the others as they are, and what it looks at in its turns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...solvers.rivals import AGAINST
from .descent import L1Fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._base.types import RowVector
    from .draws import Draws


class ClassFit(L1Fit):
    """The fit of one class against the others as they are."""

    largest: float = np.inf  # correlation that was last seen

    def against(self, y: RowVector, b: float | None = None) -> None:
        """Turn to the others' margins, at the best intercept, or at b."""
        self._problem = replace(self._problem, loss=AGAINST, y=y)
        A = self.A
        A.weights.turn_to(self._problem)
        A.move(self._problem, A.w, self._problem.best_intercept(A.f, A.b) if b is None else b, A.f)
        A.learn([])

    def shift(self, places: np.ndarray, by: np.ndarray, f: RowVector) -> None:
        """Add to some coefficients, and to Phi w what that does."""
        self.A.w = self.A.w.copy()
        self.A.w[places] += by
        self.A.f = f

    def certify(self, draws: Draws | None) -> None:
        """The largest correlation with the draws, or of none, and with the terms."""
        if draws is not None:
            self._look_at(draws)
        else:
            self.largest = self.A.largest_gradient

    def _look_at(self, draws):
        violation, *more = super()._look_at(draws)
        self.largest = max(violation.max(initial=0.0), self.A.largest_gradient)
        return violation, *more

    def _questions_at(self, draws, n_entering, w):
        """None: what is asked now is not known any more after the turns of the others."""
        return []

    def _is_idle(self, draws, objective):
        """What it gains the others may pay for: `ClassesFit` knows."""
        return False

    @property
    def to_tolerance(self) -> bool:
        return self._is_solved_to_tolerance()

    @property
    def gap(self) -> float:
        return self._gap

    @property
    def alpha(self) -> float:
        return self._problem.alpha

    def tighten(self, by: float) -> None:
        self._tol *= by


class Turns:
    """The draws of some batches, each class's made in its turn."""

    def __init__(self, batches: Sequence[int]):
        self._batches, self._made = batches, {}

    def of(self, fit: ClassFit) -> Draws:
        if fit not in self._made:
            self._made[fit] = fit.draw(*self._batches)
        return self._made[fit]


class WorkingSets:
    """Those of all classes."""

    def __init__(self, fits: Sequence[ClassFit]):
        self._fits = fits

    @property
    def index(self) -> np.ndarray:
        return np.unique(np.concatenate([fit.A.index for fit in self._fits]))

    def prune(self) -> None:
        for fit in self._fits:
            fit.A.prune()
