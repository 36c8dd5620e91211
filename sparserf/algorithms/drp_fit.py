"""The fit of `drp`: its arguments, its start at zero coefficients, and the path of penalties that
is followed where alpha is left to folds."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._base.checks import (
    check_choice,
    check_flag,
    check_integer,
    check_real,
    checked,
)
from ..features import PROJECTIONS, Linear
from ..linear import (
    Inputs,
    LinearFit,
    LinearProblem,
    MultinomialLinearFit,
    MultinomialLinearProblem,
    RidgeSolutions,
    choose_steps,
    descend,
    has_few_inputs,
)
from ..losses import LOSSES
from .arguments import FitOptions
from .task import Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..features.feature_set import Solution
    from ..features.projections import ProjectionName
    from ..model import FitInfo
    from .task import Progress

# Penalties that are tried fall by this factor, at most so many.
FACTOR, MOST_PENALTIES = 0.2, 20
# The largest: of n rows no larger one is best for a model that explains this share of the variance,
# whatever the columns.
LEAST_SHARE = 0.01
# On folds a relative error of the coefficients of this size is proved at most, by so many Newton
# steps.
TOL_ON_FOLDS, STEPS_ON_FOLDS = 0.3, 20


@dataclass(frozen=True, kw_only=True, eq=False)
class DRPOptions(FitOptions):
    """The arguments of `drp` and `drp_path` beyond X, y and the penalties, checked.

    An accelerated fit draws its projections and directions, and samples rows, with rng.
    """

    features: Linear = field(default_factory=Linear)
    n_projections: int | None = checked(check_integer, 1, default=None)
    n_iter: int | None = checked(check_integer, 1, default=None)
    accelerate: bool = checked(check_flag, default=True)
    projection: Literal["auto"] | ProjectionName = checked(
        check_choice, ("auto", *PROJECTIONS), default="auto"
    )
    tol: float = checked(check_real, 0, strict=True, default=1e-4)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.accelerate and self.n_projections is None:
            raise ValueError(
                "n_projections must be given where accelerate=False, got None: some 20 times the "
                "rank of X"
            )

    @property
    def most_iterations(self) -> int:
        """The most iterations; so many that the tolerance decides where the user gives none."""
        return 100 if self.n_iter is None else self.n_iter

    @property
    def kind(self) -> ProjectionName:
        """The kind of projection."""
        if self.projection != "auto":
            return self.projection
        return "sparse_sign" if self.accelerate else "gaussian"


def read_task(X: MatrixLike, y: ArrayLike, options: DRPOptions) -> Task:
    """Return the task of X and y."""
    task = Task.from_options(X, y, options, losses=LOSSES, several_outputs="together")
    smoothness = task.loss_of(np.vstack(task.targets)).smoothness
    if np.isinf(smoothness) and not task.loss.is_self_concordant:
        raise ValueError(
            "loss must have a finite smoothness, with which drp bounds the effect of rounding, "
            f"got {task.loss!r}"
        )
    if task.is_joint and not options.accelerate:
        raise ValueError(
            "accelerate must be True for loss='multinomial' and more than two classes, got False"
        )
    return task


def linear_fit(task: Task, alphas: Sequence[float], options: DRPOptions) -> tuple[LinearFit, Task]:
    """Return a fit at zero coefficients, of all outputs or of all classes together, and its task.

    alphas : the penalties that the fit will turn to
    """
    fit_intercept = options.fit_intercept
    task = task.centered(fit_intercept)
    targets = np.vstack(task.targets)
    Kind = MultinomialLinearProblem if task.is_joint else LinearProblem
    problem = task.problem(Kind, targets, 1.0, fit_intercept)
    progress = task.progress(options.callback, targets)
    inputs = Inputs.from_rows(task.rows, problem.weight, fit_intercept, alphas)
    make = MultinomialLinearFit if task.is_joint else LinearFit
    return make(inputs, problem, progress, unit=problem.alpha), task


class NewtonFit:
    """A fit by Newton's method along falling penalties, and the way it makes its steps."""

    fit: LinearFit
    task: Task

    def __init__(self, task: Task, alphas: Sequence[float], options: DRPOptions):
        self.fit, self.task = linear_fit(task, alphas, options)
        self._options = options

    @cached_property
    def _steps(self):
        """The Newton steps of each fit; the paper's iteration, which has none, draws nothing for
        them."""
        options = self._options
        return choose_steps(self.fit, options.n_projections, options.kind, options.rng)

    def fit_at(self, alpha: float, tol: float, most_iterations: int) -> None:
        """Go on to a penalty, until the relative error is proved to be at most tol."""
        self.fit.set_penalty(alpha, tol)
        if isinstance(self.fit, MultinomialLinearFit):
            self.fit.descend(self._steps, most_iterations)
        else:
            descend(self.fit, self._steps[0], most_iterations)

    @property
    def progress(self) -> Progress:
        """The objectives so far, and whether the user's callback has ended the fit."""
        return self.fit.progress

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the fit."""
        return self.fit.info(certified)

    def solution(self) -> Solution:
        """Return (index, features, w, b) of all inputs, in the units of X and y."""
        index, features, w, b = self.fit.solution()
        return index, features, w, b + np.reshape(np.stack(self.task.centers), np.shape(b))


class RidgeFit(NewtonFit):
    """The same for the squared loss and few inputs, whose second moments give the optimum at any
    penalty."""

    def __init__(self, task: Task, alphas: Sequence[float], options: DRPOptions):
        super().__init__(task, alphas, options)
        self._solutions = RidgeSolutions(self.fit)

    def fit_at(self, alpha: float, tol: float, most_iterations: int) -> None:
        """Go to the optimum at a penalty."""
        self._solutions.set_alpha(alpha)


class PenaltyPath:
    """The `Method` by which folds choose a penalty: on each fold a fit goes down the same
    penalties, with one basis or sketch.

    The fits are accelerated, whatever the options: the paper's iteration has the same optimum.
    """

    has_constant: bool
    errors: float = 0.5
    patience: int = 2

    def __init__(self, task: Task, options: DRPOptions):
        """task : the rows from which the folds are drawn"""
        self._options = replace(options, accelerate=True, rng=deepcopy(options.rng))
        self.has_constant = options.fit_intercept
        fit, _ = linear_fit(task, [1.0], self._options)
        fit.set_penalty(1.0, np.inf)
        self._trace = fit.trace()

    def places(self, n_rows: int) -> list[float]:
        """Return the penalties, falling."""
        # The best penalty of a model w is about (its noise) / (n |w|^2); of w that explains the
        # share q of the variance it is at most trace / (n q).
        largest = self._trace * min(1.0, 1 / (LEAST_SHARE * n_rows))
        return np.clip(largest * FACTOR ** np.arange(MOST_PENALTIES), 1e-300, 1e300).tolist()

    def begin(self, task: Task) -> list[NewtonFit]:
        """Return the fit of all targets of a task, at zero coefficients."""
        # folds may begin on several threads, each with the same draws
        options = replace(self._options, rng=deepcopy(self._options.rng))
        is_ridge = task.loss.is_quadratic and has_few_inputs(task.rows, options.n_projections)
        return [(RidgeFit if is_ridge else NewtonFit)(task, self.places(task.rows.n_rows), options)]

    def advance(self, fits: Sequence[NewtonFit], place: float) -> None:
        """Let the fit go on to a penalty."""
        for fit in fits:
            fit.fit_at(place, TOL_ON_FOLDS, STEPS_ON_FOLDS)

    def models(self, fits: Sequence[NewtonFit], place: float) -> list[tuple[float, list[Solution]]]:
        """Return the one model of a penalty."""
        return [(place, [fit.solution() for fit in fits])]
