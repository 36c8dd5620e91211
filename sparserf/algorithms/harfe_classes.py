"""The multinomial loss in HARFE: the fits of all classes, each with a support of its own, as one, which takes turns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..features.feature_set import joined
from ..solvers.ridge import RidgeProblem
from ..solvers.rivals import AGAINST, Extrapolation, Rivals
from .harfe_fit import HarfeOptions, L0Fit, SupportIterate, begin_fits

if TYPE_CHECKING:
    from .._base.types import RowVector, Solution
    from ..features import FeatureSet
    from ..model import FitInfo
    from .task import Progress, Task

# Sweeps over the classes on their supports end where one lowers the objective by less than this share; or after so many.
SETTLED, MOST_SWEEPS = 1e-7, 100


class ClassFit(L0Fit):
    """The fit of one class against the others as they are."""

    point: SupportIterate

    def against(self, y: RowVector, b: float | None = None) -> None:
        """Turn to the others' margins, at the best intercept, or at b."""
        problem, old = replace(self.problem, loss=AGAINST, y=y), self.point
        self.problem = problem
        self._constant = self._at(self._constant, None)
        self._loss_of_constant = self._constant.objective
        self.point = self._constant if len(old.index) == 0 and b is None else self._at(old, b)
        self._best, self._seen = None, set()

    def _at(self, point, b):
        problem = self.problem
        b = problem.best_intercept(point.f, point.b) if b is None else b
        objective = problem.objective(problem.margins(point.f, b), point.w, self._p[point.index])
        return SupportIterate(point.index, point.w, b, point.f, objective, point.is_feasible)

    def take_turn(self, s: int) -> None:
        """A step, or where there is none that lowers the objective, to the best point on the support."""
        self.step(s)
        if self.at_rest:
            self.settle_on_support()

    def settle_on_support(self) -> None:
        if len(self.point.index):
            point = self.solve_on(self.point.index)
            if point.is_better_than(self.point):
                self.go_to(point)

    def move(self, w: np.ndarray, b: float, f: RowVector) -> None:
        self.point = replace(self.point, w=w, b=b, f=f)

    def penalty(self) -> float:
        return self.problem.penalised(0.0, self.point.w, self._p[self.point.index])

    def squares(self) -> np.ndarray:
        g = self.gradient()
        return (np.maximum(-g, 0) if self._positive else g) ** 2


class ClassesFit:
    """The moves of an `L0Fit` for all classes: a step is a sweep, in which all classes take their turn."""

    progress: Progress
    at_rest: bool
    fits_well: bool

    def __init__(self, task: Task, everything: FeatureSet, options: HarfeOptions):
        if not options.backtracking:
            raise ValueError(f"backtracking must be True for loss={task.loss.name!r} and more than two classes, got False")
        self._rows, self._everything, self._tol, self._alpha = task.rows, everything, options.tol, options.alpha
        self.progress, self._s = task.progress(options.callback, task.targets[0]), 0
        self._fits = begin_fits(task, everything, replace(options, callback=None), ClassFit)
        self._rivals = Rivals.of_targets(task.rows.vectors, task.targets, task.weight, options.fit_intercept)
        self._settle()
        self._loss_of_constant = self._objective()

    def restart(self) -> None:
        self.progress.restart()
        self.at_rest = self.fits_well = False
        for fit in self._fits:
            fit.restart()

    @property
    def ended_by_callback(self) -> bool:
        return self.progress.ended_by_callback

    @property
    def point(self) -> SupportIterate:
        """That of the most terms."""
        return max((fit.point for fit in self._fits), key=lambda point: len(point.index))

    def step(self, s: int) -> None:
        self._s = s
        self._sweep(lambda fit: fit.take_turn(s))
        self.at_rest = all(fit.at_rest for fit in self._fits)

    def record(self) -> bool:
        """End an iteration: note the objective, tell the callback; returns whether to stop."""
        self.progress.note(self._objective())
        loss = self._rivals.mean_loss(self._margins())
        self.fits_well = loss <= self._tol**2 * self._loss_of_constant
        return self.progress.ask(self.info) or self.at_rest or self.fits_well

    def finish(self) -> None:
        """To the best coefficients of all classes on their supports."""
        extrapolation, before = Extrapolation(), np.inf
        for _ in range(MOST_SWEEPS):
            objective = self._objective()
            if not objective < before * (1 - SETTLED) or self.ended_by_callback:
                break
            before = objective
            self._sweep(lambda fit: fit.settle_on_support())
            self._extrapolate(extrapolation)
        self.progress.note(self._objective())

    def _sweep(self, move):
        turns = self._rivals.turns(self._margins())
        for k, fit in enumerate(self._fits):
            if k:
                fit.against(turns.against())
            move(fit)
            turns.end(fit.problem.margins(fit.point.f, fit.point.b))
        self._settle()

    def _margins(self):
        return self._rivals.together([fit.problem.margins(fit.point.f, fit.point.b) for fit in self._fits])

    def _settle(self):
        """Go to the best intercepts, and turn all to each other."""
        points = [fit.point for fit in self._fits]
        _, b, z = self._rivals.settled([point.f for point in points], np.array([point.b for point in points]))
        for fit, y, b_k in zip(self._fits, self._rivals.all_against(z), b, strict=False):
            fit.against(y, float(b_k))

    def _extrapolate(self, extrapolation):
        """Go where the last sweeps lead, if that is lower."""
        points = [fit.point for fit in self._fits]
        key = [point.index.tobytes() for point in points]
        found = extrapolation.of(key, np.concatenate([np.append(point.w, point.b) for point in points]), points)
        if found is None:
            return
        shares, before, after = found[0], self._objective(), list(zip(*found[2], strict=True))
        for fit, of_class in zip(self._fits, after, strict=True):
            w, b = (sum(share * getattr(p, name) for share, p in zip(shares, of_class, strict=True)) for name in ("w", "b"))
            fit.move(w, b, self._rivals.combined(shares, [p.f for p in of_class]))
        self._settle()
        if not self._objective() < before or not all((fit.point.w >= 0).all() or not fit._positive for fit in self._fits):
            for fit, point in zip(self._fits, points, strict=True):
                fit.point = point
            self._settle()

    def _objective(self):
        """Of all classes together, where they are turned to each other."""
        return self._fits[0].point.objective + sum(fit.penalty() for fit in self._fits[1:])

    def info(self, certified: bool = True) -> FitInfo:
        return self.progress.info(
            self._objective, self._gap() if certified else np.inf, converged=bool(self.at_rest or self.fits_well),
            n_drawn=len(self._everything), n_nonzero=len(self._index()), alpha=self._alpha,
        )  # fmt: skip

    def _index(self):
        return np.unique(np.concatenate([fit.point.index[fit.point.w != 0] for fit in self._fits]))

    def _gap(self):
        first = self._fits[0].problem
        problem = RidgeProblem(first.vectors, self._rivals.loss, self._rivals.y, first.weight, first.alpha, first.fit_intercept)
        squares = np.concatenate([fit.squares() for fit in self._fits])
        return self._objective() - problem.lower_bound(self._margins(), squares, len(self._fits) * self._s)

    def solution(self) -> Solution:
        """(index, features, w, b) of the terms of any class, by ascending index."""
        return joined([fit.solution() for fit in self._fits])


def fits_of(task: Task, everything: FeatureSet, options: HarfeOptions) -> list[L0Fit] | list[ClassesFit]:
    """The fit of each target, or one of all classes."""
    if task.is_joint:
        return [ClassesFit(task, everything, options)]
    return begin_fits(task, everything, options, L0Fit)
