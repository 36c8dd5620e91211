"""The fit of `drp`: its arguments, and its start at zero coefficients."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    from .fit_progress import Progress


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
    """Return the task of X and y, with centered targets."""
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
    return task.centered(options.fit_intercept)


def linear_fit(task: Task, alphas: Sequence[float], options: DRPOptions) -> LinearFit:
    """Return a fit at zero coefficients, of all outputs or of all classes together.

    alphas : the penalties that the fit will turn to
    """
    fit_intercept = options.fit_intercept
    targets = np.vstack(task.targets)
    Kind = MultinomialLinearProblem if task.is_joint else LinearProblem
    problem = task.problem(Kind, targets, 1.0, fit_intercept)
    progress = task.progress(options.callback, targets)
    inputs = Inputs.from_rows(task.rows, problem.weight, fit_intercept, alphas)
    make = MultinomialLinearFit if task.is_joint else LinearFit
    return make(inputs, problem, progress, unit=problem.alpha)


class NewtonFit:
    """A fit by Newton's method along falling penalties, and the way it makes its steps."""

    fit: LinearFit
    task: Task

    def __init__(self, task: Task, alphas: Sequence[float], options: DRPOptions):
        self.fit, self.task = linear_fit(task, alphas, options), task
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
