"""Several classes on shared terms: after a search, every class takes a coefficient of every term
that any class has found.

Under the l1 penalty each class chooses terms of its own. But a term that tells one class from
another mostly helps with other classes, too, and once it is in the model a further coefficient
costs nothing. So the l1 paths find the terms, and a penalty on the squares of all coefficients
(`solvers/ridge_outputs.py`) shares them among the classes. That penalty is chosen on the rows held
out, on a path of its own, and the shared terms are taken where they predict these rows decidedly
better.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..._base.progress import ends_at
from ...solvers.effort import UNBOUNDED, Effort
from ...solvers.ridge import RidgeProblem
from ...solvers.ridge_outputs import RidgeOfOutputs
from ..task import merge_solutions
from .held_out import PathPoint, gain

if TYPE_CHECKING:
    from ...features import FeatureSet
    from ...features.feature_set import Solution
    from ...model import FitInfo
    from ..task import Progress, Task
    from .descent import State
    from .held_out import Sample
    from .options import SparseRFOptions

# The path begins at STRONGEST times the penalty under which a coefficient of the usual size has the
# slope of the l1 penalty. Each penalty is FALL times the last; there are at most MOST_ALPHAS.
STRONGEST, FALL, MOST_ALPHAS = 10.0, 0.3, 8
# A fit ends where a step lowers the objective by less than the share TOL of it, and has converged
# where the gap is at most the share NEAR_ENOUGH, as in searches.
TOL, NEAR_ENOUGH = 1e-3, 0.5
# The fit to all rows goes on to these multiples of TOL, one after another, until it has converged.
SMALLER = np.array([1.0, 0.1, 0.01, 0.001])
# The next penalty must lower the held-out loss by this share of it; and all together by the share
# WORTH_SHARING, and by more than a standard error.
NEGLIGIBLE, WORTH_SHARING = 1e-3, 0.01


class SharedFit:
    """The fit of all classes on the same terms, as `PathPoint` and `model_of` use a fit.

    progress : the callback, and whether it has ended the fit
    """

    progress: Progress

    def __init__(
        self,
        task: Task,
        state: tuple[FeatureSet, np.ndarray, np.ndarray, np.ndarray],
        options: SparseRFOptions,
    ):
        """Begin at the state (features, index, w, b), by ascending index, with a row of w and a
        number in b for each class."""
        self._features, self._index, w, b = state
        self._targets, loss = np.stack(task.targets), task.loss_of(task.targets[0])
        self.progress = task.progress(options.callback, task.targets[0])
        problem = RidgeProblem.from_arrays(
            task.rows.vectors, loss, self._targets, task.weight, 0.0, options.fit_intercept
        )
        self._ridge = RidgeOfOutputs(task.rows, self._features, problem, w, b)

    def minimise(self, alpha: float, effort: Effort) -> None:
        """Minimise with this penalty from where the fit stands, until the work or the time is over
        or the callback ends it."""
        self.progress.restart()
        with self.progress.asked_within(self.info), ends_at(effort.deadline):
            self._ridge.minimise(alpha, TOL, effort)

    def finish(self, alpha: float, effort: Effort) -> None:
        """Minimise with this penalty, by ever smaller steps where the gap asks for them."""
        self.progress.restart()
        with self.progress.asked_within(self.info), ends_at(effort.deadline):
            for tol in TOL * SMALLER:
                self._ridge.minimise(alpha, tol, effort)
                if self._is_near or effort.is_spent:
                    break

    @property
    def _is_near(self):
        return bool(self._ridge.gap() <= NEAR_ENOUGH * self._ridge.objective())

    def margins(self) -> np.ndarray:
        """Return the margins of all classes, (n_classes, n_rows)."""
        return self._ridge.margins()

    def target(self) -> np.ndarray:
        """Return the target of all classes, -1 or +1, (n_classes, n_rows)."""
        return self._targets

    def state(self) -> tuple[FeatureSet, np.ndarray, np.ndarray, np.ndarray]:
        """Return (features, index, w, b), from which a fit to other rows can begin."""
        return self._features, self._index, self._ridge.w, self._ridge.b

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the present coefficients; their gap is known, so that `certified`
        changes nothing."""
        objective, gap = self._ridge.objective(), self._ridge.gap()
        return self.progress.info(
            lambda: objective,
            gap,
            converged=self._is_near,
            n_drawn=0,
            n_nonzero=len(self._index),
            alpha=self._ridge.alpha,
        )

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms, by ascending index."""
        return self._index, self._features, self._ridge.w, self._ridge.b


def with_shared_terms(
    best: PathPoint,
    task: Task,
    sample: Sample,
    options: SparseRFOptions,
    effort: Effort = UNBOUNDED,
) -> tuple[PathPoint, bool]:
    """Return the point at which all classes share the terms of a point of a path; or that point,
    unless it is decidedly worse.

    best : a point that the rows of `sample` were fitted for
    task : the task of the sample, with the encodings of the point

    Also returns whether the callback has ended the search. Terms whose coefficients must be at
    least 0 are not shared: ridge regression of all outputs may give them any sign.
    """
    states = best.states[0] if task.is_joint else best.states
    index, features, w, b = merge_solutions([solution_of(state) for state in states])
    if len(index) == 0 or effort.is_spent or features.nonnegative.any():
        return best, False
    fit, found = SharedFit(task, (features, index, w, b), options), best
    alpha = STRONGEST * best.alpha / np.sqrt(np.mean(w[w != 0] ** 2))
    for _ in range(MOST_ALPHAS):
        fit.minimise(alpha, effort)
        here = replace(PathPoint.from_fits([fit], alpha, sample), is_shared=True)
        if not here.loss < (1 - NEGLIGIBLE) * found.loss and found is not best:
            break
        found, alpha = here, FALL * alpha
        if fit.progress.ended_by_callback:
            break
        if effort.is_spent:
            effort.note_cut("paths of penalties")
            break
    more, error = gain([found], [best])
    return found if more > max(
        WORTH_SHARING * best.loss, error
    ) else best, fit.progress.ended_by_callback


def solution_of(state: State) -> Solution:
    """Return the (index, features, w, b) by ascending index of a state (features, index, w, b)."""
    features, index, w, b = state
    order = np.argsort(index)
    return index[order], features.take(order), w[..., order], b
