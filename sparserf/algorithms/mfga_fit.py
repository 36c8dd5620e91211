"""The moves of MFGA on one target: look at all gradients, let the largest in, fit all coefficients again, record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._core.search import top_k
from ..solvers.ridge import RidgeProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..features.feature_set import FeatureSet, Solution
    from ..model import Callback, FitInfo
    from ..solvers.greedy_classes import OnClasses
    from ..solvers.greedy_rows import OnRows
    from ..solvers.greedy_table import OnTable
    from .task import Progress, Task

# Gradients below this share of the largest at the start are rounding.
ROUNDING = 1e-14


class GreedyFit:
    """Progress of one fit, whose point is `OnRows`, `OnTable` or `OnClasses`: that answers

    gradients() : of the mean loss in the coefficient of each feature of the dictionary, the norm over the outputs
    append(J) : let these features in, those that do not depend on what is in; False where they are constants
    refit() : all coefficients to their best
    settle(certified) : what is left to do before anyone sees the coefficients; not certified: without asking the rows

    and has the features A that are in, the `Point`, `converged`, and what a step still promised where it has not.
    """

    progress: Progress
    at_rest: bool

    def __init__(
        self, task: Task, y: np.ndarray, everything: FeatureSet, r: np.ndarray,
        make: Callable[..., OnClasses | OnRows | OnTable], *, fit_intercept: bool, alpha: float, tol: float | None,
        callback: Callback,
    ):  # fmt: skip
        """make(rows, problem, everything, n_outputs): the point. y: (n_rows,), or (n_outputs, n_rows)."""
        self._everything, self._r, self._tol = everything, r, tol
        self.progress, self._one_output, self._alpha = task.progress(callback, y), y.ndim == 1, alpha
        self._problem = task.problem(RidgeProblem, np.atleast_2d(y), alpha, fit_intercept)
        self._on = make(task.rows, self._problem, everything, len(np.atleast_2d(y)))
        self._free, self._first = np.ones(len(everything), bool), None
        self._last, self.at_rest = self._on.point.objective, False

    def __len__(self) -> int:
        return len(self._on.A)

    @property
    def promise(self) -> float:
        return self._on.promise

    def enter(self, n_select: int) -> None:
        """Add the n_select features of largest gradient; one that depends on the others is left out, the next one tried."""
        end = len(self) + n_select
        while len(self) < end and not self.at_rest:
            J = self._largest(end - len(self))
            self.at_rest = len(J) == 0
            if not self.at_rest:
                self._free[J] = False
                if not self._on.append(J) and not len(self):
                    self._first = None  # their gradient was rounding

    def _largest(self, n):
        score = np.where(self._free, self._on.gradients() / self._r, 0.0)
        self._first = score.max(initial=0.0) if self._first is None else self._first
        out = np.empty(min(n, len(score)), np.intp)
        return out[: top_k(score, ROUNDING * self._first, out)]

    def refit(self) -> None:
        self._on.refit()

    def record(self) -> bool:
        """End a round: note the objective, tell the callback; returns whether to stop."""
        objective = self._on.point.objective
        fall, self._last = self._last - objective, objective
        self.progress.note(objective)
        slow = self._tol is not None and fall < self._tol * objective
        return self.progress.ask(self.info) or slow or self.at_rest

    def info(self, certified: bool = True) -> FitInfo:
        self._on.settle(certified)
        return self.progress.info(
            lambda: self._on.point.objective, self._gap() if certified else np.inf, converged=self._on.converged,
            n_drawn=len(self._everything), n_nonzero=self._on.point.w.shape[1], alpha=self._alpha,
        )  # fmt: skip

    def _gap(self):
        point = self._on.point
        with np.errstate(over="ignore"):  # infinite where the bound says nothing
            squares = self._on.gradients() ** 2
        return point.objective - self._problem.lower_bound(self._problem.margins(point.f, point.b), squares, len(self))

    def solution(self) -> Solution:
        """(index, features, w, b) of the terms, by ascending index, in the units of y."""
        self._on.settle(True)
        A, point = self._on.A, self._on.point
        order = np.argsort(A.index[: point.w.shape[1]])  # of what has just come in none has a coefficient yet
        w, b = self.progress.in_units_of_y(point.w[:, order], point.b)
        return A.index[order], A.features.take(order), *((w[0], b[0]) if self._one_output else (w, b))
