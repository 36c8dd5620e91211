"""The coefficients of greedy selection with the multinomial loss: one support, on which the classes
are fitted in turn.

Block coordinate descent over the classes (multinomial.py), whose moves are Newton steps of
`CoefficientsOnRows` on each class.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .greedy import LAST_DECREASE, SLOW_NEWTON, CoefficientsOnRows
from .multinomial import CLASS_VERSUS_REST, BlockDescent, ClassesInTurn, MultinomialProblem
from .problem import Iterate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import RowVector
    from ..features import FeatureSet
    from ..rows import Rows
    from .active import ActiveFeatures
    from .ridge import RidgeProblem

# Sweeps end where the predicted decreases of all classes together are below this share of the
# objective.
ENOUGH = 1e-7


class OneClassCoefficients(CoefficientsOnRows):
    """The coefficients of one class while the others' margins stay as they are."""

    iterate: Iterate

    def fix_other_classes(self, y: RowVector, b: np.ndarray | None = None) -> None:
        """Fix the margins of the other classes, which the target y holds, and go to the best
        intercept, or to b."""
        problem = self._problem = replace(self._problem, loss=CLASS_VERSUS_REST, y=y)
        b = problem.best_intercepts(self.iterate.f, self.iterate.b) if b is None else b
        objective = problem.objective(
            problem.margins(self.iterate.f, b), self.iterate.w, problem.alpha
        )
        self.iterate, self._slopes = replace(self.iterate, b=b, objective=objective), None

    def take_turn(self) -> float:
        """Take Newton steps until their predicted decrease is small, and return the first predicted
        decrease."""
        # A class's turn ends where the predicted decrease of a step is below the share share of the
        # first, or after most_steps steps.
        share = 0.1
        most_steps = 10

        first, before, is_fresh = None, np.inf, False
        for _ in range(most_steps):
            d, e, predicted_decrease = self._newton_step()
            if not predicted_decrease > max(
                LAST_DECREASE * self.iterate.objective, 0.0 if first is None else share * first
            ):
                break
            first, is_slow = first or predicted_decrease, predicted_decrease > SLOW_NEWTON * before
            falls = self._advance(d, e, False, is_slow)
            if is_fresh and not falls:
                break
            is_fresh = is_slow or not falls
            if is_fresh:
                self._compute_hessian()
            before = predicted_decrease
        return first or 0.0


class MultinomialCoefficients:
    """The coefficients of all classes, which offer what `CoefficientsOnRows` does."""

    iterate: Iterate
    converged: bool
    predicted_decrease: float

    def __init__(self, rows: Rows, problem: RidgeProblem, everything: FeatureSet, n_classes: int):
        self._rows = rows
        self._problem = problem
        self._everything = everything
        self._dictionary_slopes = None
        joint = problem.with_penalty(MultinomialProblem, 0.0)
        first = ClassesInTurn(joint, problem.vectors.zeros(n_classes)).target(1)
        nothing = replace(problem, loss=CLASS_VERSUS_REST, y=first)
        self._classes = BlockDescent(
            joint, [OneClassCoefficients(rows, nothing, everything, 1) for _ in range(n_classes)]
        )
        self.converged, self.predicted_decrease = True, 0.0
        self._settle()

    @property
    def A(self) -> ActiveFeatures:
        """The selected features."""
        return self._classes.fits[0].A

    def gradients(self) -> np.ndarray:
        """Return, for each feature of the dictionary, the norm of the gradient of the mean loss
        over the classes."""
        if self._dictionary_slopes is None:
            v = self._problem.dual_point(self._problem.margins(self.iterate.f, self.iterate.b))
            self._dictionary_slopes = self._rows.correlate(self._everything, v)
        return np.hypot.reduce(np.abs(self._dictionary_slopes), axis=0)

    def append(self, J: np.ndarray, likely: Sequence[int] = ()) -> bool:
        """Select the features J of the dictionary, except any that depends on others for the first
        class; return True.

        likely: makes no difference
        """
        k, (first, *others) = len(self.A), self._classes.fits
        first.append(J)
        for fit in others:
            fit.append(self.A.index[k:], all_of_them=True)
        return True

    def refit(self) -> None:
        """Sweep over the classes until the predicted decrease of all together is negligible."""
        # Sweeps in a round at most.
        most_sweeps = 100

        def move(fit):
            self.predicted_decrease += fit.take_turn()

        for _ in range(most_sweeps):
            self.predicted_decrease = 0.0
            self._classes.sweep(move)
            self._take_out_common()
            self._settle()
            if self.predicted_decrease <= ENOUGH * self.iterate.objective:
                return
        self.converged = False

    def _take_out_common(self):
        """Subtract the mean over the classes from each, which makes the sum of squares least."""
        iterates = [fit.iterate for fit in self._classes.fits]
        vectors, n = self._rows.vectors, len(iterates)
        w = sum(it.w for it in iterates) / n
        f = vectors.map(lambda *fs: sum(fs) / n, *(it.f for it in iterates))
        for fit in self._classes.fits:
            fit.iterate = replace(
                fit.iterate, w=fit.iterate.w - w, f=vectors.along(fit.iterate.f, -1.0, f)
            )

    def _settle(self):
        """Go to the best intercepts, and give each class the margins of the others."""
        f, b, z = self._classes.settle()
        w = np.vstack([fit.iterate.w for fit in self._classes.fits])
        self.iterate = Iterate(w, b, f, self._problem.objective(z, w, self._problem.alpha))
        self._dictionary_slopes = None

    def settle(self, certified: bool) -> None:
        """Do nothing: every round ends with the best coefficients."""
