"""MFGA with the multinomial loss: one support, whose coefficients the classes fit by turns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .greedy_rows import NEGLIGIBLE, SLOW, OnRows
from .ridge import Point
from .rivals import AGAINST, Rivals

if TYPE_CHECKING:
    from .._base.types import RowVector
    from ..features import FeatureSet
    from ..rows import Rows
    from .columns import Columns
    from .ridge import RidgeProblem

# Turns of each class in a round at most; they end where all together promise less than a share of the objective. A turn ends
# where a step promises less than a share of its first, or after so many.
MOST_SWEEPS, ENOUGH, SHARE, MOST_STEPS = 100, 1e-7, 0.1, 10


class OnClass(OnRows):
    """The point of one class against the others as they are."""

    point: Point

    def against(self, y: RowVector, b: np.ndarray | None = None) -> None:
        """Turn to the others' margins, at the best intercept, or at b."""
        problem = self._problem = replace(self._problem, loss=AGAINST, y=y)
        b = problem.best_intercepts(self.point.f, self.point.b) if b is None else b
        objective = problem.objective(problem.margins(self.point.f, b), self.point.w, problem.alpha)
        self.point, self._slopes = replace(self.point, b=b, objective=objective), None

    def margins(self) -> RowVector:
        return self._problem.margins(self.point.f, self.point.b)

    def take_turn(self) -> float:
        """Steps of Newton's method; returns what the first promised."""
        first, before, is_fresh = None, np.inf, False
        for _ in range(MOST_STEPS):
            d, e, promise = self._newton_step()
            if not promise > max(NEGLIGIBLE * self.point.objective, 0.0 if first is None else SHARE * first):
                break
            first, is_slow = first or promise, promise > SLOW * before
            falls = self._advance(d, e, False, is_slow)
            if is_fresh and not falls:
                break
            is_fresh = is_slow or not falls
            if is_fresh:
                self._take_curvature()
            before = promise
        return first or 0.0


class OnClasses:
    """The point of all classes, as `GreedyFit` asks for one."""

    point: Point
    converged: bool
    promise: float

    def __init__(self, rows: Rows, problem: RidgeProblem, everything: FeatureSet, n_classes: int):
        self._rows, self._problem, self._everything, self._seen = rows, problem, everything, None
        self._rivals = Rivals(problem.vectors, problem.loss, problem.y, problem.weight, 0.0, problem.fit_intercept)
        nothing = replace(problem, loss=AGAINST, y=self._rivals.turns(problem.vectors.zeros(n_classes)).against(1))
        self._classes = [OnClass(rows, nothing, everything, 1) for _ in range(n_classes)]
        self.converged, self.promise = True, 0.0
        self._settle()

    @property
    def A(self) -> Columns:
        return self._classes[0].A

    def gradients(self) -> np.ndarray:
        """The norm over the classes."""
        if self._seen is None:
            v = self._problem.dual_point(self._problem.margins(self.point.f, self.point.b))
            self._seen = self._rows.correlate(self._everything, v)
        return np.hypot.reduce(np.abs(self._seen), axis=0)

    def append(self, J: np.ndarray) -> bool:
        """To all classes those that the first takes."""
        k, (first, *others) = len(self.A), self._classes
        first.append(J)
        for each in others:
            each.append(self.A.index[k:], all_of_them=True)
        return True

    def refit(self) -> None:
        """Sweeps over the classes until none promises to lower the objective by what counts."""
        for _ in range(MOST_SWEEPS):
            self.promise = 0.0
            turns = self._rivals.turns(self._rivals.together([each.margins() for each in self._classes]))
            for k, each in enumerate(self._classes):
                if k:
                    each.against(turns.against(1))
                self.promise += each.take_turn()
                turns.end(each.margins())
            self._take_out_common()
            self._settle()
            if self.promise <= ENOUGH * self.point.objective:
                return
        self.converged = False

    def _take_out_common(self):
        """The mean of all classes."""
        points, vectors, n = [each.point for each in self._classes], self._rows.vectors, len(self._classes)
        w, f = sum(p.w for p in points) / n, vectors.map(lambda *fs: sum(fs) / n, *(p.f for p in points))
        for each in self._classes:
            each.point = replace(each.point, w=each.point.w - w, f=vectors.along(each.point.f, -1.0, f))

    def _settle(self):
        """Go to the best intercepts, and turn all to each other."""
        points = [each.point for each in self._classes]
        f, b, z = self._rivals.settled([p.f for p in points], np.concatenate([p.b for p in points]))
        w = np.vstack([p.w for p in points])
        for k, (each, y) in enumerate(zip(self._classes, self._rivals.all_against(z, 1), strict=False)):
            each.against(y, b[k : k + 1])
        self.point, self._seen = Point(w, b, f, self._problem.objective(z, w, self._problem.alpha)), None

    def settle(self, certified: bool) -> None:
        """Every round ends with all that there is to do."""
