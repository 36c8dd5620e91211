"""The coefficients of greedy selection with the multinomial loss: one support, on which the classes
are fitted in turn.

Block coordinate descent over the classes (multinomial.py), whose moves are Newton steps of
`CoefficientsOnRows` on each class.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..losses import Logistic
from .greedy import CoefficientsOnRows
from .multinomial import CLASS_VERSUS_REST, JointFit, MultinomialProblem, OneClassFit
from .problem import Iterate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import RowVector
    from ..features import FeatureSet
    from ..rows import Rows
    from .active import ActiveFeatures
    from .ridge import RidgeProblem


class OneClassCoefficients(CoefficientsOnRows, OneClassFit):
    """The coefficients of one class, as a problem of one output, while the margins of the others
    stay as they are."""

    iterate: Iterate

    def fix_other_classes(self, y: RowVector, b: float | None = None) -> None:
        """Fix the margins of the other classes, which the target y holds, and go to the best
        intercept, or to b."""
        y = self._problem.vectors.map(lambda y: y[:, None, :], y)
        problem = self._problem = replace(self._problem, loss=CLASS_VERSUS_REST, y=y)
        at = self.iterate
        best = problem.best_intercepts(at.f, at.b) if b is None else np.array([b])
        objective = problem.objective(problem.margins(at.f, best), at.w, problem.alpha)
        self.iterate, self._slopes = replace(at, b=best, objective=objective), None

    def penalty(self, w: np.ndarray) -> float:
        """Return alpha / 2 |w|^2."""
        return self._problem.penalised(0.0, w, self._problem.alpha)

    def take_turn(self) -> None:
        """Take Newton steps until their predicted decrease is small beside the first."""
        self.refit(most_steps=10, share=0.1)


class MultinomialCoefficients(JointFit[OneClassCoefficients]):
    """The coefficients of all classes, which offer what `CoefficientsOnRows` does."""

    converged: bool
    predicted_decrease: float

    def __init__(self, rows: Rows, problem: RidgeProblem, everything: FeatureSet, n_classes: int):
        self._rows, self._everything = rows, everything
        self.converged, self.predicted_decrease = True, 0.0
        # each begins as the class against the rest, with the curvatures there
        ys = [
            problem.vectors.map(lambda y, k=k: y[k : k + 1, ...], problem.y)
            for k in range(n_classes)
        ]
        of_class = [replace(problem, loss=Logistic(), y=y) for y in ys]
        fits = [OneClassCoefficients(rows, each, everything, 1) for each in of_class]
        super().__init__(problem.with_penalty(MultinomialProblem, 0.0), fits)
        self.balance()

    @property
    def A(self) -> ActiveFeatures:
        """The selected features."""
        return self.fits[0].A

    @property
    def iterate(self) -> Iterate:
        """The iterate of all classes."""
        w, b, f = zip(
            *((fit.iterate.w, fit.iterate.b, fit.iterate.f) for fit in self.fits), strict=True
        )
        return Iterate(np.vstack(w), np.concatenate(b), self.joint.stack(f), self.objective())

    def gradients(self) -> np.ndarray:
        """Return, for each feature of the dictionary, the norm of the gradient of the mean loss
        over the classes."""
        slopes = self._rows.correlate(self._everything, self.joint.dual_point(self.margins()))
        return np.hypot.reduce(np.abs(slopes), axis=0)

    def append(self, J: np.ndarray, likely: Sequence[int] = ()) -> bool:
        """Select the features J of the dictionary, except any that depends on others for the first
        class; return True.

        likely: ignored, as by `CoefficientsOnRows`
        """
        k, (first, *others) = len(self.A), self.fits
        first.append(J)
        for fit in others:
            fit.append(self.A.index[k:], all_of_them=True)
        return True

    def refit(self) -> None:
        """Sweep over the classes until the coefficients of all are at their best."""
        left = self.descend(OneClassCoefficients.take_turn)
        if left:
            self.converged, self.predicted_decrease = False, left

    def take_out_common(self) -> None:
        """Subtract the mean over the classes from each, which makes the sum of squares least."""
        vectors, n = self._rows.vectors, len(self.fits)
        iterates = [fit.iterate for fit in self.fits]
        w = sum(it.w for it in iterates) / n
        f = vectors.map(lambda *fs: sum(fs) / n, *(it.f for it in iterates))
        for fit, at in zip(self.fits, iterates, strict=True):
            fit.iterate = replace(at, w=at.w - w, f=vectors.along(at.f, -1.0, f))

    def complete_refit(self, certified: bool) -> None:
        """Do nothing: every round ends with the best coefficients."""
