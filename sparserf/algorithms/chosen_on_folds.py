"""What a call leaves open, chosen on folds of the rows.

A method has a path: its penalties, or its numbers of terms, one after the other. On each fold the
path is followed once, and the loss of the rows held out (`held_out_loss.py`) chooses a place on it
(`chosen_on_folds`). A fit to all rows then goes to that place, as if the user had given it; or
stays at the constant, where no place is better than that by more than chance (`fit_as_chosen`).

`sparse_rf` follows the paths of several members in this way (`default/search.py`).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import count, takewhile
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from .._base.checks import as_array, check_real
from .._base.progress import note_held_out_loss, part, parts
from .._base.splits import read_splits
from .._base.threads import single_threaded_blas
from .._base.warnings import TimeLimitWarning, warn
from .arguments import Arguments
from .dependent_rows import warn_of_dependent_rows
from .folds import folds_of, given_splits, strata_of
from .held_out_loss import HeldOutLoss, constant_margins
from .model_of_fits import merge_solutions
from .rounds import ROUNDS_OF_CHOICE, Options, fit_in_rounds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from .._base.splits import Split, Splits
    from .._base.types import MatrixLike
    from ..features import FeatureSet
    from ..features.feature_set import Solution
    from ..model import SparseModel
    from ..solvers.budget import Budget
    from .folds import Folds
    from .model_of_fits import Fit
    from .task import Task

# A place that lowers the loss of the rows held out by no more than this share of it is no gain.
NEGLIGIBLE = 1e-3
# About the most rows that are looked at to choose.
MOST_ROWS = 16_000
# The numbers of terms that are tried begin at FIRST, each twice as many as the one before; they end
# at MOST_TERMS, or this share of the rows of a fold.
FIRST, MOST_TERMS, TERMS_PER_ROW = 3, 384, 0.6
# The share of the time that a choice may take.
CHOOSING = 0.65


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldOptions(Arguments):
    """The arguments by which something is chosen on folds.

    validation : the share of the rows that each fold holds out; or which rows, after `with_splits`
        as splits of all rows of X; None: folds that suit the number of rows
    """

    validation: float | Splits | Sequence[Split] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.validation, Real):
            share = check_real("validation", self.validation, 0, strict=True)
            if share >= 1:
                raise ValueError(f"validation must be below 1, got {share}")
            object.__setattr__(self, "validation", share)

    @property
    def holds_out_as_by_default(self) -> bool:
        """Whether nothing was said of which rows to hold out, or how many."""
        return self.validation is None

    def check_not_given(self, why: str) -> None:
        """Raise a ValueError where something is given that has no meaning; why : what leaves
        nothing to choose."""
        if self.validation is not None:
            raise ValueError(f"validation must be None where {why}, got {self.validation!r}")

    def with_splits(self, X: MatrixLike, y: ArrayLike, groups: ArrayLike | None) -> Self:
        """Return the options with the rows to hold out as splits of the rows of X, unless they are
        to be drawn."""
        given = given_splits(self.validation)
        if given is None:
            return self
        return replace(
            self, validation=read_splits("validation", given, X, as_array("y", y), groups)
        )


class Method(Protocol):
    """One of the methods, as its path is followed: its algorithm is `advance`.

    arguments : the names of the arguments that are chosen
    has_constant : whether models have an intercept
    is_given : whether the number of terms is given, which the constant has not
    errors : the simplest model is taken whose loss is within so many standard errors of the least
    patience : the path ends after so many places in a row without a gain
    """

    arguments: tuple[str, ...]
    has_constant: bool
    is_given: bool
    errors: float
    patience: int

    def places(self, n_rows: int) -> Sequence[Any]:
        """Return the places on the path of so many rows, in the order in which fits come to them,
        the simplest model first."""
        ...

    def begin(self, task: Task) -> Sequence[Fit]:
        """Return a fit of each target of a task, or the one fit of all, at the best constant."""
        ...

    def advance(self, fits: Sequence[Fit], place: Any) -> None:
        """Let the fits go on to a place on the path."""
        ...

    def models(self, fits: Sequence[Fit], place: Any) -> list[tuple[Any, list[Solution]]]:
        """Return the models that are tried at a place, the simplest first: for each the arguments
        that it stands for, and the solution of each fit."""
        ...

    def fit(self, task: Task, options: Any, values: Sequence[Any]) -> SparseModel:
        """Return the model of a task at the arguments that were chosen for each real target, None
        for the constant."""
        ...


@dataclass(frozen=True)
class Chosen:
    """What was chosen.

    value : the arguments of the model of least loss, or nearly so; None where there was no time for
        one
    is_gain : whether its loss is lower than that of the constant by more than chance
    loss : the mean loss of the rows of each fold, with what the other folds choose; of the constant
        where there is no gain
    n_folds : the number of folds
    """

    value: Any
    is_gain: bool
    loss: float
    n_folds: int


def info_of_choice(
    chosen: Sequence[Chosen], values: Sequence[Any], arguments: Sequence[str]
) -> dict[str, Any]:
    """Return what `FitInfo` says of the choice for each output: the loss, and words on what was
    chosen, and how.

    values : what was taken for each output, None for the constant
    arguments : the names of the parts of a value
    """
    taken = [value for value in values if value is not None]
    spans = [(min(each), max(each)) for each in zip(*taken, strict=True)]
    words = [
        f"{name}={low:.4g}" if low == high else f"{name}={low:.4g} to {high:.4g}"
        for name, (low, high) in zip(arguments, spans, strict=bool(spans))
    ]
    if len(taken) < len(values):
        words.append("the constant" if len(values) == 1 else "constants")
    return {
        "validation_loss": float(sum(best.loss for best in chosen)),
        "chosen": by_the_loss_on_folds(words, chosen[0].n_folds),
    }


def by_the_loss_on_folds(words: Sequence[str], n_folds: int) -> str:
    """Return words on what was chosen, and how."""
    how = "rows that were held out" if n_folds == 1 else f"{n_folds} folds"
    return f"{', '.join(words)}, by the loss on {how}"


def fit_as_chosen(
    task: Task,
    options: Options,
    choice: FoldOptions,
    method: Callable[[Task, Folds, Options], Method],
) -> SparseModel:
    """Return the model of what folds choose along the path of a method; warn where the rows look
    grouped and nothing was said of that.

    choice : with splits that `FoldOptions.with_splits` has read
    method : makes the method for a task, of which there are these folds
    """

    def fit(task, options):
        # the fit to all rows draws what it draws where the values are given
        again = replace(options, rng=deepcopy(options.rng))
        if task.groups is None and choice.holds_out_as_by_default:
            warn_of_dependent_rows(task)
        folds = folds_of(task, strata_of(task), choice.validation, MOST_ROWS, options.rng)
        path, targets = method(task, folds, options), folds.task.of_each_output()
        with single_threaded_blas(), task.rows, folds.task.rows:
            with part(CHOOSING):
                each = options.budget.part(CHOOSING).parts(targets)
                chosen = [chosen_on_folds(path, replace(folds, task=y), own) for y, own in each]
            values = [best.value if best.is_gain or path.is_given else None for best in chosen]
            model = path.fit(task, again, values)
        how = info_of_choice(chosen, values, path.arguments)
        converged = model.info.converged and "paths" not in options.budget.cuts
        return [replace(model, info=replace(model.info, converged=converged, **how))]

    return fit_in_rounds(task, options, fit, most=ROUNDS_OF_CHOICE)[0]


def chosen_on_folds(method: Method, folds: Folds, budget: Budget) -> Chosen:
    """Return what is chosen along the path of a method.

    folds : folds of rows of the task
    """
    task = with_single_outputs(folds.task)
    loss, n_folds = HeldOutLoss.of(task, folds), len(folds)
    fits = [FoldFit(method, folds, k) for k in range(n_folds)]
    taken, *without = (Taken(method.errors) for _ in range(1 + n_folds))
    n_waited = 0
    for place in parts(method.places(folds.n_fitted), is_open=True):
        if not all(budget.lets(fit.advance, place) for fit in fits):  # some are in the midst of it
            budget.note_cut("paths")
            warn(
                "time_limit: the search for what is not given was cut short, and the best until "
                "then is taken, maybe the constant; raise time_limit",
                TimeLimitWarning,
            )
            break
        least, is_seen = taken.loss, False
        for models in zip(*(fit.models(place) for fit in fits), strict=True):
            value, is_seen = models[0][0], True
            margins = np.concatenate([margins for _, margins in models], axis=1)
            of_folds = loss.of_each_fold(margins)
            taken.see(of_folds, (value, margins))
            for k, each in enumerate(without):
                each.see(np.delete(of_folds, k), margins)
        if is_seen:
            note_held_out_loss(loss.in_units_of_y(taken.loss))
            n_waited = 0 if taken.loss < (1 - NEGLIGIBLE) * least else n_waited + 1
        if n_waited == method.patience or any(fit.ended for fit in fits):
            break

    zeros = np.zeros(loss.targets.shape[-2:])
    constant = loss.losses(zeros + (constant_margins(loss) if method.has_constant else 0.0))
    told = loss.in_units_of_y(float(loss.weight @ constant))
    if taken.loss == np.inf:
        return Chosen(None, False, told, n_folds)
    value, margins = taken.what
    is_gain = loss.is_gain(loss.losses(margins), constant)
    if n_folds > 1:
        each = [every.what[:, folds.fold == k] for k, every in enumerate(without)]
        margins = np.concatenate(each, axis=1)
    own = loss.in_units_of_y(loss.mean(margins))
    return Chosen(value, is_gain, own if is_gain else told, n_folds)


def sizes_to_try(n_rows: int, n_features: int, given: int | None) -> list[int]:
    """Return the numbers of terms to try on the path of a fold of so many rows.

    n_features : the number of features in all
    given : the number of terms where it is given, up to which the path leads
    """
    most = min(MOST_TERMS, max(1, int(TERMS_PER_ROW * n_rows))) if given is None else given
    most = min(most, n_features)
    sizes = (FIRST * 2**k for k in count())
    return [*takewhile(lambda size: size < most, sizes), most]


class SizePath:
    """The numbers of terms of a method, which the fits of a fold go through, with several penalties
    on each support; or one of both, where it is given.

    A subclass has `begin`, `advance` and `fit` of a `Method`; its fits have a `solution_with` a
    penalty.

    alpha : the penalty of the fits; those that are tried on their supports are `alphas` of the
        subclass, or where each takes several Newton steps, as the loss is not quadratic, its
        `few_alphas`. Classes that are fitted together have `alpha` alone.
    """

    # With 0.25 in its place the error on 15 tables was 1.006 (harfe) and 1.017 (mfga) of it; over
    # that of `sparse_rf` it was 1.30 in the median for harfe, and is 1.26.
    errors: float = 0.0
    patience: int = 3
    arguments: tuple[str, ...] = ("n_nonzero_coefs", "alpha")
    first_alpha: ClassVar[float]
    alphas: ClassVar[tuple[float, ...]]
    few_alphas: ClassVar[tuple[float, ...]]
    has_constant: bool
    is_given: bool
    alpha: float

    def __init__(self, features: FeatureSet, options: Any, s: int | None, task: Task):
        """Take all features, the options of a fit, and the number of terms where it is given."""
        self.has_constant, self.is_given = options.fit_intercept, s is not None
        self.alpha = self.first_alpha if options.alpha is None else options.alpha
        self._features, self._options, self._s = features, replace(options, alpha=self.alpha), s
        self._tried = self.alphas if task.loss.is_quadratic else self.few_alphas
        if options.alpha is not None or task.is_joint:
            self._tried = ()

    def places(self, n_rows: int) -> list[int]:
        """Return the numbers of terms."""
        return sizes_to_try(n_rows, len(self._features), self._s)

    def models(
        self, fits: Sequence[Any], place: int
    ) -> list[tuple[tuple[int, float], list[Solution]]]:
        """Return a model for each penalty, the largest first; at the number of terms that is given
        alone where it is."""
        if self._s is not None and place < self._s:
            return []
        if not self._tried:
            return [((place, self.alpha), [fit.solution() for fit in fits])]
        return [
            ((place, alpha), [fit.solution_with(alpha) for fit in fits]) for alpha in self._tried
        ]

    def goal(self, value: tuple[int, float] | None) -> tuple[int, float]:
        """Return the number of terms and the penalty that stand for what was chosen."""
        return value or (self._s or 0, self.alpha)


def with_single_outputs(task: Task) -> Task:
    """Return the task with a target for each output of those that are fitted together."""
    return replace(task, targets=[y for target in task.targets for y in np.atleast_2d(target)])


class FoldFit:
    """The fits of a method to the rows that a fold fits, and what they say of those held out."""

    def __init__(self, method: Method, folds: Folds, k: int):
        """Begin at the best constant of fold k."""
        task = folds.task
        part = task.of_rows(np.flatnonzero(folds.splits[k][0]))
        part = replace(part, weight=part.weight / part.weight.mean())
        self._held_out = task.of_rows(folds.held_out[k]).rows
        self._unit = task.unit(np.atleast_2d(task.targets[0])[0])
        self._method, self._fits = method, method.begin(part)

    def advance(self, place: Any) -> None:
        """Let the fits go on to a place on the path."""
        self._method.advance(self._fits, place)

    def models(self, place: Any) -> list[tuple[Any, np.ndarray]]:
        """Return for each model at a place the arguments that it stands for, and the margins
        (n_outputs, n_rows) of the rows held out, in the unit of the first output."""
        models = self._method.models(self._fits, place)
        return [(value, self._margins(solutions)) for value, solutions in models]

    def _margins(self, solutions):
        _, features, w, b = solutions[0] if len(solutions) == 1 else merge_solutions(solutions)
        rows = self._held_out
        f = rows.vectors.fetch(rows.apply(features, np.atleast_2d(w)))
        return (f + np.reshape(b, (-1, 1))) / self._unit

    @property
    def ended(self) -> bool:
        """Whether the callback has ended a fit."""
        return any(fit.progress.ended_by_callback for fit in self._fits)


class Taken:
    """The place taken along a path: the first, which is the simplest, whose loss is within so many
    standard errors of the least loss; the difference and its error are paired over folds.

    A place is forgotten where a later one is better by more, so few are kept at a time.

    loss : the least loss so far
    """

    loss: float

    def __init__(self, errors: float):
        self.loss, self._errors, self._kept = np.inf, errors, []

    @property
    def what(self) -> Any:
        """What was seen at the place taken."""
        return self._kept[0][1]

    def see(self, of_folds: np.ndarray, what: Any) -> None:
        """See the next place, by what each fold adds to its loss."""
        here = float(of_folds.sum())
        if self._kept and not here < self.loss:
            return
        near = [each for each in self._kept if is_near(each[0] - of_folds, self._errors)]
        self.loss, self._kept = here, [*near, (of_folds, what)]


def is_near(differences: np.ndarray, errors: float) -> bool:
    """Return whether a loss is within so many standard errors of a lower one, by what each fold
    adds to the difference; never where there is one fold."""
    n, total = len(differences), float(differences.sum())
    if n < 2 or not np.isfinite(total):
        return False
    return total <= errors * np.std(differences, ddof=1) * n**0.5
