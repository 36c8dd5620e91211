"""`sparse_rf` without a penalty: alpha, the kind of model and its terms are chosen by rows that are
held out.

The search goes in rounds. In each, a `Sample` of the rows is drawn and a part of it held out
(`held_out.py`). A candidate is a dictionary over one set of encodings of the columns (as they are,
clipped, or in ranks). Each goes down a path of penalties on the other rows, every fit started from
the last, until the rows held out are predicted no better. At the end of the path the terms that it
has found are fitted with less and less penalty, as long as that predicts better (the relaxed
lasso). Candidates are of several kinds, simplest first: a constant, the inputs, linear functions of
all inputs, and the dictionary that learns (of other `features`: a constant and their dictionary). A
kind of model is the best mean of candidates of this kind and of simpler ones. From all rounds
together the simplest kind within one standard error of the best is chosen; what is in the mean of
no kind that may be as good is not tried again.

Where there are many rows, the candidates of each round race on few of them first: in the first
round all, of which only the best go on. Their paths on all rows begin where the race ended, with
its terms and its penalty.

The terms at the best point of each path are then fitted to all rows, the mean of these models is
taken, pruned, and given the intercept that is best for all rows. What all this may cost is a
`Budget` (`budget.py`). Searches and these fits are made in single precision, where the encoded
columns lose little by it; the model itself is pruned, and its coefficients are computed, in that of
X.

`choose_by_held_out_rows` is that paragraph in code; the functions that it calls follow in the same
order.
`part` and `parts` divide the progress bar into shares of the work; an `Effort` counts the work, and
bounds it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.checks import check_integer
from ..._base.deadline import NEVER, fewer_in_time, share_of_time, time_left
from ..._base.progress import ends_at, note_held_out_loss, part, parts
from ..._base.threads import single_threaded_blas
from ..._base.warnings import TimeLimitWarning, warn
from ...features import (
    FIRST_DRAW,
    LinearFunctions,
    RandomSteps,
    inputs_that_keep,
    inputs_times,
    inverse_deviations,
    linear_functions,
    make_dictionary,
)
from ...model import warn_unconverged
from ...solvers.effort import LOSS, UNBOUNDED, Effort
from ...solvers.multinomial import MultinomialProblem
from ...solvers.problem import Problem
from ..fallback import with_fallbacks
from ..prune import ROWS_A_TERM, pruned
from ..task import (
    in_units,
    merge_solutions,
    model_of,
    partial_fits_on_error,
    partial_model_on_error,
    power_of_two,
    with_ranges,
)
from .budget import FEW_SEARCH_ROWS, MOST_TERMS, OF_FITS, OF_PRUNING, Budget, effort_of_searches
from .descent import N_COMPONENTS, algorithm_1, exact_descent, warn_if_unconverged
from .fits import fits_of
from .held_out import (
    FEW_OUTPUTS,
    HeldOutLosses,
    PathPoint,
    Sample,
    Samples,
    best_mean,
    errors_to_beat_constant,
    gain,
    in_question,
    mean_value,
    splits_of_task,
    strata_of,
)
from .kernel_ridge import MOST_BUMPS, KernelPoint, KernelRidge, free_inputs
from .shared import SharedFit, solution_of, with_shared_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...columns.stage import ColumnStage
    from ...features.dictionary import Dictionary
    from ...features.feature_set import Solution
    from ...model import FitInfo, SparseModel
    from ...rows import Rows
    from ..task import Fit, Task
    from .descent import BaseL1Fit, State
    from .options import ChoiceOptions, SparseRFOptions

# Draws of a dictionary that learns, for each penalty and output, where `n_components` is None.
DRAWS_A_PENALTY = 1_000
# Up to FEW_CLASSES outputs have DRAWS_A_PENALTY each. More outputs share FEW_CLASSES times that
# number, but each has at least the share FEWEST_DRAWS of DRAWS_A_PENALTY.
FEW_CLASSES, FEWEST_DRAWS = 50, 0.25

# A path begins at HIGHEST times the least penalty at which all coefficients are zero.
HIGHEST = 0.9
# Each penalty is FALL times the last; there are at most MOST_ALPHAS.
FALL, MOST_ALPHAS = 0.72, 40
# A path ends after PATIENCE penalties in a row that lower the held-out loss by no more than the
# share NEGLIGIBLE of it; after PATIENCE_AFTER_RACE where it began at the end of a race.
PATIENCE, PATIENCE_AFTER_RACE, NEGLIGIBLE = 2, 1, 1e-3
# Gains below this share of the loss of the empty model do not count, either: a target without noise
# could be met ever better.
NOTHING_LEFT = 1e-6
# Where another candidate comes to this share of the loss of the empty model, kernel ridge is not
# tried: a target that is nearly met, up to the shrinkage of the penalty, would get a bump for each
# row.
NEARLY_MET = 1e-3
# A path also ends at a penalty whose held-out loss is above the best by more than this number of
# standard errors of the difference.
ERRORS = 2.0
# A path also ends where there are more terms than this number for each row.
MOST_A_ROW = 0.5
# From FEWEST_ALPHAS penalties on, a path ends where the best of the round so far is further away
# than BEATEN times what the last two penalties have gained on average.
FEWEST_ALPHAS, BEATEN = 6, 15
# The terms of the best penalty are fitted with RELAXED times that penalty, and again, at most
# MOST_RELAXED times, as long as the held-out loss falls by more than the share WORTH_RELAXING, and
# by more than a standard error. The gap of these fits is at most the share RELAXED_TOL of the
# objective, or they take RELAXED_ROUNDS steps.
RELAXED, MOST_RELAXED, WORTH_RELAXING, RELAXED_TOL, RELAXED_ROUNDS = 0.3, 4, 0.01, 0.02, 5

# A round of searches that look at more rows than WORTH_A_RACE begins with a race, in which
# RACE_ROWS of them are fitted, with at most the share OF_RACE of its work.
WORTH_A_RACE, RACE_ROWS, OF_RACE = 4_000, 2_500, 0.3
# A path of more terms than MANY_FROM_RACE at the end of the race begins STEPS_BACK penalties before
# it: many terms chosen on few rows are too many to begin with.
MANY_FROM_RACE, STEPS_BACK = 600, 4
# The least tolerance of the user's with which searches are in single precision.
LEAST_TOL_IN_SINGLE = 1e-5

# The most steps in which the terms of a chosen penalty are fitted to all rows.
CHOSEN_ROUNDS = 50
# The held-out loss that dropping terms may cost, as a share of that loss, or of its gain over the
# model without terms where that is less.
PRUNED = 0.003
# Where there are at most FEW_SEARCH_ROWS rows, and fewer than ROWS_A_TERM for each term, terms are
# dropped on MIXED_A_ROW made rows for each row as well, whose cells are each with probability MIXED
# that of another row: a model in few of its terms can agree with it on few rows and not between
# them. On 687 rows with 1,200 terms, dropping terms raised the error on test rows by 3.5 % without
# made rows and by .6 % with them; on 892 rows with 270 terms by .3 and .2 %.
MIXED_A_ROW, MIXED = 2, 0.25
# Under a `time_limit` the units of inputs are those of at least FEWEST_FOR_UNITS rows. That all
# candidates look at them takes about the time of LOOKS_FOR_UNITS copies, of which each number takes
# SECONDS_A_NUMBER.
FEWEST_FOR_UNITS, LOOKS_FOR_UNITS, SECONDS_A_NUMBER = 500, 10, 1e-8
# The share of the time that is left in which the seconds of a pass are measured.
TO_MEASURE = 0.1
# Where there is no time to prune, the terms that `max_terms` allows are chosen on this number of
# rows, at least.
FEWEST_PRUNED_ON = 1_000
# Below this share of its root mean square the standard deviation of a target is rounding.
CONSTANT = 1e-13

# The expected work of a candidate of inputs or of linear functions, and of one of steps, where that
# of cosines is 1.
WORK_OF_LINEAR, WORK_OF_STEPS = 0.15, 1.7
# A candidate may take SLACK times its expected share of the work that is left of a round, since
# most take less.
SLACK = 2.0
# A candidate may take at least this share of the work that is left of a round.
LEAST_SHARE = 0.2
# The share of the work that is left that a round may take, unless it is the last.
A_ROUND = 0.6
# The same of the time, under a `time_limit`: another round begins only where there is time for all
# of it.
TIME_OF_ROUND = 0.9
# With more targets than MANY_OUTPUTS, FEW_OUTPUTS of them are searched first, with the share BY_FEW
# of the work.
MANY_OUTPUTS, BY_FEW = 2 * FEW_OUTPUTS, 0.25
# Where a round of all targets would take more than this share of the work that is left, only the
# kinds of models that may be the best for the few are searched for all.
MOST_FOR_ALL_KINDS = 0.3
# Where it would take more than this share, only the best candidate of each of these kinds is.
MOST_FOR_ONE_KIND = 0.7
# The share of the work of a round that is left for what classes share.
FOR_SHARING = 0.2

# The progress bar divides the work by the following numbers; nothing else depends on them.
# The weights of the penalties of a path: from the 18th on they are less and less likely to be
# reached.
WEIGHTS_OF_ALPHAS = 0.8 ** np.maximum(0.0, np.arange(MOST_ALPHAS) - 17)
# The work of a round after the first, in which fewer candidates are left, as a share of the first.
LATER_ROUND = 0.4
# The work of the fits to all rows, as a share of the searches.
FITTING_TO_ALL = 0.15
# The work of pruning, as a share of what comes after the searches.
PRUNING = 0.4


@dataclass(frozen=True, eq=False)
class Candidate:
    """One dictionary over certain encodings of the columns; in each round a path of penalties is
    followed for it.

    encodings : the encodings of the stage of the task that its features see; None: all
    dictionary : what is drawn from
    options : the options of its fits
    to_tolerance : whether each batch is solved to the tolerance; else it takes one round
    work : the expected work, where that of cosines is 1
    is_constant : whether its fits stay without a term
    """

    encodings: np.ndarray | None
    dictionary: Dictionary
    options: SparseRFOptions
    to_tolerance: bool = False
    work: float = 1.0
    is_constant: bool = False

    def without_terms(self) -> Candidate:
        """Return the constant: this candidate, whose fits stay without a term, at next to no
        work."""
        return replace(self, work=0.01, is_constant=True)

    def make_fits(self, task: Task, search: int) -> list[BaseL1Fit]:
        """Make the fits of the targets of a task with these encodings, for the search of this
        number."""
        return fits_of(
            task, self.dictionary, self.options, to_tolerance=self.to_tolerance, search=search
        )


@dataclass(frozen=True, eq=False)
class Round:
    """What one round of searches has found.

    points : {(kind, number of the candidate): the best point of its path}
    n_drawn : the number of features that were drawn
    losses_of_empty : for each path, the held-out loss of the model without a term
    ended : whether a callback has ended the round, perhaps before the last candidate
    """

    points: dict[tuple[int, int], PathPoint]
    n_drawn: int
    losses_of_empty: list[float]
    ended: bool


@dataclass(frozen=True, eq=False)
class Found:
    """What the rounds of searches have found.

    names : the names of the candidates of the best kind or simpler ones whose mean predicts best
    points : for each round, the best point of the path of each of these candidates
    losses : for each round, the held-out losses of the mean of these points
    losses_of_empty : for each path, the held-out loss of the model without a term
    n_drawn : the number of features that were drawn
    ended : whether a callback has ended the search
    kinds : all candidates
    rounds : for each round, the best point of each candidate, by its name
    """

    names: Sequence[tuple[int, int]]
    points: list[list[PathPoint]]
    losses: list[HeldOutLosses]
    losses_of_empty: list[float]
    n_drawn: int
    ended: bool
    kinds: Sequence[Sequence[Candidate]]
    rounds: Sequence[Mapping[tuple[int, int], PathPoint]]

    @property
    def candidates(self) -> list[Candidate]:
        """The candidates of these names."""
        return [self.candidate(name) for name in self.names]

    def candidate(self, name: tuple[int, int]) -> Candidate:
        """Return a candidate by its name."""
        return self.kinds[name[0]][name[1]]


def choose_by_held_out_rows(
    task: Task, options: SparseRFOptions, choice: ChoiceOptions
) -> SparseModel:
    """Return the model of `sparse_rf` with alpha=None."""
    validation, max_terms, deadline = choice.validation, choice.max_terms, options.deadline
    task, units = with_equal_outputs(
        replace(task, is_single=options.is_auto and options.tol >= LEAST_TOL_IN_SINGLE)
    )
    budget = Budget.from_effort(choice.effort, task.raw.n_rows, choice.n_models)
    if max_terms is not None:
        budget = budget.with_terms(check_integer("max_terms", max_terms, 1))
    strata = strata_of(task)
    if not isinstance(validation, float):
        validation = splits_of_task(validation, task, strata)
    with single_threaded_blas(), task.rows:
        # Search: the candidates of the best kind of model, and for each the best penalty of each
        # round.
        kinds = kinds_of(
            replace(task.of_rows(rows_of_units(task, budget)), is_single=False), options
        )
        if deadline < NEVER:
            budget = budget.in_time(
                seconds_a_row(task, kinds[-1][0], deadline), time_left(deadline)
            )
        kinds[-1] = budget.some_of(kinds[-1])
        if may_have_bumps(task, options, budget, max_terms):
            kinds[-1].append(KernelRidge((task.encoding_sets or (None,))[-1], options))
        if (
            not (isinstance(validation, float) or options.is_auto)
            and task.raw.n_rows <= budget.rows
        ):
            # To search one dictionary by one split again finds the same.
            budget = replace(budget, rounds=min(budget.n_rounds({0: (0,)}), len(validation)))
        samples = Samples(task, strata, validation, budget.rows, options.rng)
        n_features = options.n_components or (DRAWS_A_PENALTY if options.is_auto else N_COMPONENTS)
        searches = effort_of_searches(
            budget, task.rows, n_features, options.max_iter is None, deadline
        )
        whole = searches.within
        found = search_in_rounds(
            kinds,
            samples,
            budget,
            searches,
            n_targets=len(task.targets),
            errors=errors_to_beat_constant(task, strata),
        )

        # Fit their terms to all rows, and take the mean of these models.
        with part(1 - PRUNING):
            model, ended = fit_to_all_rows(found, task, options.tol, whole.part(1.0, OF_FITS))
        if max_terms is None:
            max_terms = budget.terms + np.count_nonzero(model.features.is_local)

        # Drop the terms that together cost at most the share PRUNED of what the terms are worth on
        # the rows held out.
        loss, unit = (
            mean_value([losses.loss for losses in found.losses]),
            task.unit(task.targets[0]),
        )
        with partial_model_on_error(lambda: model):
            worth = min(loss, max(0.0, mean_value(found.losses_of_empty) - loss))
            prune = partial(
                drop_terms, model, task, PRUNED * worth, max_terms, budget.pruned, options.rng
            )
            small = whole.part(1.0, OF_PRUNING).done_in_time("prunings", prune, None)
            model = drop_terms_at_once(model, task, max_terms) if small is None else small
            if options.fit_intercept and not task.loss.is_quadratic:
                model = whole.done_in_time(
                    "intercepts", partial(with_best_intercept, model, task), model
                )
    model = with_ranges(
        whole.done_in_time("fallbacks", partial(with_fallbacks, model, task), model), task
    )

    info = replace(
        model.info, n_drawn=found.n_drawn, validation_loss=in_units(loss, unit, task.loss.degree)
    )
    if not ended:
        cut = dict(whole.cuts + whole.cuts_in_time)
        info = replace(info, cut=cut, converged=info.converged and not cut)
        _warn_of_cuts(whole, info, options.tol, choice.effort, len(task.targets))
    return in_their_units(replace(model, info=info), units)


def rows_of_units(task: Task, budget: Budget) -> np.ndarray:
    """Return the rows from which candidates take the units of inputs: all, or some where effort or
    time is little."""
    n_rows, n_encodings = task.raw.n_rows, len(task.stage or range(task.raw.n_features_in))
    n = fewer_in_time(
        n_rows, FEWEST_FOR_UNITS, LOOKS_FOR_UNITS * SECONDS_A_NUMBER * n_rows * n_encodings
    )
    n = min(n, n_rows if budget.effort >= 1 else max(budget.rows, FEWEST_FOR_UNITS))
    return np.arange(n) * n_rows // n


def seconds_a_row(task: Task, candidate: Candidate, deadline: float) -> float:
    """Return the seconds, for each row, of a pass over the draws for one penalty, measured on few
    rows by the time left.

    What takes more than TO_MEASURE of that time is measured in part.
    """
    n = min(task.raw.n_rows, FEWEST_FOR_UNITS)
    few, before = task.of_rows(np.arange(n) * task.raw.n_rows // n), time_left(deadline)
    with ends_at(share_of_time(deadline, TO_MEASURE)):
        for fit in candidate.make_fits(few.with_encodings(candidate.encodings), 0):
            fit.largest_gradient()
    return (before - time_left(deadline)) / n


def _warn_of_cuts(whole: Effort, info: FitInfo, tol: float, effort: float, n_outputs: int) -> None:
    """Warn that the bound of the work of a call has ended parts of the search early; or the time,
    before any was finished."""
    if whole.cuts_in_time:
        if not whole.n_finished:
            what = ", ".join(f"{n} {name}" for name, n in whole.cuts_in_time.items())
            warn(
                "time_limit: not one search was finished, and the model is the best until then, "
                "maybe a constant: ended early "
                f"or left out were {what}; raise time_limit",
                TimeLimitWarning,
            )
        return
    if not whole.cuts:
        warn_if_unconverged(info, tol)
        return
    what = ", ".join(f"{n} {name}" for name, n in whole.cuts.items())
    several = ", or fit fewer classes or outputs at a time" if n_outputs > 1 else ""
    warn_unconverged(
        f"effort={effort:.3g}: the work of the call was spent before all was done: ended early or "
        f"left out were {what}; "
        f"the model is the best that was found; raise effort{several}"
    )


# Several real targets


def with_equal_outputs(task: Task) -> tuple[Task, np.ndarray | None]:
    """Return the task with several real targets in units of their standard deviations, and these
    units.

    So each counts alike in the held-out loss, whatever it was measured in. One target, or classes,
    are returned as they are, with None.
    """
    if task.loss.is_classifier or len(task.targets) == 1:
        return task, None
    units = [deviation(y, task.weight) for y in task.targets]
    targets = [y / unit for y, unit in zip(task.targets, units, strict=True)]
    centers = [center / unit for center, unit in zip(task.centers, units, strict=True)]
    return replace(task, targets=targets, centers=centers), np.array(units)


def in_their_units(model: SparseModel, units: np.ndarray | None) -> SparseModel:
    """Return the model of the targets themselves, for one of `with_equal_outputs`."""
    if units is None:
        return model
    coef, intercept = model.coef * units[:, None], model.intercept * units
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError(
            "y must be of moderate size, got values whose coefficients overflow: scale it"
        )
    return replace(model, coef=coef, intercept=intercept)


def deviation(y: np.ndarray, weight: np.ndarray) -> float:
    """Return the standard deviation of a target; for a constant, its absolute value, or 1 where
    that is 0."""
    size = power_of_two(y)
    u = y / size
    square = float(weight @ (u * u)) / len(u)
    variance = float(weight @ (u - weight @ u / len(u)) ** 2) / len(u)
    return size * float(np.sqrt(variance if variance > (CONSTANT**2) * square else square or 1.0))


# The kinds of models


def kinds_of(task: Task, options: SparseRFOptions) -> list[list[Candidate]]:
    """Return the candidates of each kind of model, simplest first: a constant, inputs, linear
    functions, and one that learns.

    For other `features` than "auto": a constant, and their dictionary. For CSR X linear functions
    come before the inputs: where there are many inputs, each mostly matters little, and a linear
    function of all is one term. Steps are not tried for CSR X: on counts of words they predicted no
    better. Linear functions of all inputs are not tried where f must rise or fall in an input,
    since their weights have any sign, nor steps where all inputs must be convex or concave.
    """

    if not options.is_auto:
        given = Candidate(
            None, options.dictionary(task, N_COMPONENTS), options, to_tolerance=options.exact
        )
        return [[given.without_terms()], [given]]

    # Each set of encodings has all columns in one form: as they are, clipped, or in ranks.
    encoding_sets, is_sparse = task.encoding_sets or (None,), task.raw.is_sparse
    inputs, functions = [], []
    for encodings in encoding_sets if is_sparse else encoding_sets[:1]:
        seen = task.with_encodings(encodings)
        is_scaled = seen.stage is not None and not seen.stage.is_raw
        units = (
            np.ones(len(seen.stage)) if is_scaled else inverse_deviations(seen.rows, task.weight)
        )
        constraints = seen.input_constraints
        each_input = (
            inputs_times(units) if constraints is None else inputs_that_keep(units, constraints)
        )
        dictionary = make_dictionary(
            each_input,
            seen.rows,
            n_components=None,
            batch_size=len(units),
            gamma=None,
            rng=options.rng,
            weight=task.weight,
        )
        inputs.append(
            Candidate(encodings, dictionary, options, to_tolerance=True, work=WORK_OF_LINEAR)
        )
        if constraints is None or not constraints.sign.any():
            free = units if constraints is None else np.where(constraints.is_barred, 0.0, units)
            functions.append(
                Candidate(encodings, LinearFunctions(free), options, work=WORK_OF_LINEAR)
            )

    n_draws = round(DRAWS_A_PENALTY * min(1.0, max(FEWEST_DRAWS, FEW_CLASSES / len(task.targets))))
    learned = [
        Candidate(encodings, options.dictionary(task.with_encodings(encodings), n_draws), options)
        for encodings in encoding_sets
    ]
    constant = inputs[0].without_terms()
    linear = [functions, inputs] if is_sparse else [inputs, functions]
    with_steps = task.with_encodings(encoding_sets[0])
    if not is_sparse and (
        task.constraints is None or (with_steps.input_constraints.curvature == 0).any()
    ):
        steps = options.dictionary(with_steps, n_draws, base=RandomSteps)
        learned.append(Candidate(encoding_sets[0], steps, options, work=WORK_OF_STEPS))
    return [[constant], *(kind for kind in linear if kind), learned]


def may_have_bumps(
    task: Task, options: SparseRFOptions, budget: Budget, max_terms: int | None
) -> bool:
    """Return whether kernel ridge is a candidate: for few dense rows and a loss of bounded
    curvature, where all others are.

    A bump at each row must fit into `max_terms`, and sees many inputs at once: so there are none
    where `max_order` or `interactions` forbid that, or where no input is free of constraints. Nor
    are there any for more than two classes: on the one table of three where bumps were chosen, the
    log loss was .134 with them and .120 without.
    """
    n_rows, several_classes = task.raw.n_rows, task.loss.is_classifier and len(task.targets) > 1
    has_room = n_rows <= MOST_BUMPS and (max_terms is None or max_terms >= n_rows + MOST_TERMS)
    is_smooth = np.isfinite(task.loss.smoothness) and not task.loss.is_smoothed
    is_dense, may_meet = options.is_auto and not task.raw.is_sparse, True
    if task.constraints is not None:
        may_meet = task.constraints.groups is None and bool(free_inputs(task).any())
    is_given = task.offset is not None or options.max_order is not None or not may_meet
    return (
        is_dense
        and is_smooth
        and has_room
        and not (several_classes or is_given)
        and budget.candidates == 1
    )


# Rounds of searches


def search_in_rounds(
    kinds: Sequence[Sequence[Candidate]],
    samples: Samples,
    budget: Budget,
    effort: Effort,
    *,
    n_targets: int,
    errors: float,
) -> Found:
    """Search in rounds, each with other rows held out, until the budget has its models; go on with
    what may be the best.

    Where there are too many targets to search all kinds for all of them, those that may be the best
    for a few are taken.

    kinds : the candidates of each kind of model, simplest first
    samples : the samples of the rounds
    effort : what all searches may take. A round may take a share of what is left; where the last
        round took more than is left now, in proportion to the candidates, there is none after it
    errors : by how many standard errors the constant may be worse, as in `in_question`
    """
    rounds, losses_of_empty, n_drawn, ended = [], [], 0, False
    # {kind in question: the names of its candidates}
    kept = {
        kind: tuple((kind, m) for m in range(len(of_kind))) for kind, of_kind in enumerate(kinds)
    }
    n_rounds, pace_of_work, pace, share = 0, 0.0, 0.0, A_ROUND
    # what is searched beside the kinds in question; the last points of kernel ridge
    beside, of_bumps = set(), {}
    n_candidates, has_race = (
        sum(map(len, kinds[1:])),
        samples.n_rows > WORTH_A_RACE and len(kinds) > 2,
    )

    if n_targets > MANY_OUTPUTS and len(kinds) > 2:
        # Search for a few of them first, without the candidates that cost more than cosines, and
        # without bumps.
        every = {
            (kind, m): each for kind, of_kind in enumerate(kinds) for m, each in enumerate(of_kind)
        }
        cheap = {
            name: each
            for name, each in every.items()
            if each.work <= 1 and not isinstance(each, KernelRidge)
        }
        sample, start = (
            samples.race(RACE_ROWS) if has_race else samples.of_next_round(),
            effort.time_left,
        )
        has_race = False
        with part(BY_FEW):
            few = _search_once(cheap, sample.of_few_outputs(), 0, budget.terms, effort.part(BY_FEW))
        n_drawn, ended = few.n_drawn, few.ended
        more = n_targets / FEW_OUTPUTS * (samples.n_rows / sample.task.rows.n_rows)
        round_of_all, seconds_of_all = more * effort.spent, more * (start - effort.time_left)
        if ended or effort.is_late:
            kept = {0: ((0, 0),)}  # one search more, of the constant, gives a model
        elif round_of_all > MOST_FOR_ALL_KINDS * effort.left or not effort.has_time(
            seconds_of_all / MOST_FOR_ALL_KINDS
        ):
            is_alone = round_of_all > MOST_FOR_ONE_KIND * effort.left
            is_alone |= not effort.has_time(seconds_of_all / MOST_FOR_ONE_KIND)
            kept, share = _kinds_of_few(few.points, is_alone), 1.0

    while not rounds or (not ended and n_rounds < budget.n_rounds(kept)):
        n_left, before, start = budget.n_rounds(kept) - n_rounds, effort.spent, effort.time_left
        candidates = {name: kinds[name[0]][name[1]] for name in sorted({*_names(kept), *beside})}
        work = sum(candidate.work for candidate in candidates.values())
        lacks_time = n_rounds > 0 and not effort.has_time(pace * work)
        if pace_of_work * work > effort.left or lacks_time:
            effort.note_cut("rounds of searches", n_left, lacks_time)
            break
        # the number of the first search of the round
        first = n_rounds * n_candidates * (1 + has_race)
        with part(_share_of_round(kinds, kept, n_left)):
            of_round = effort.part(
                share if n_left > 1 else 1.0, TIME_OF_ROUND if n_left > 1 else 1.0
            )
            this, starts = None, {}
            if has_race and (n_rounds == 0 or samples.may_go_on):
                with part(OF_RACE):
                    runners = {
                        name: each
                        for name, each in candidates.items()
                        if n_rounds == 0 or not isinstance(each, KernelRidge)
                    } or candidates
                    race = _search_once(
                        runners,
                        samples.race(RACE_ROWS),
                        first,
                        budget.terms,
                        of_round.part(OF_RACE),
                    )
                if not race.ended:
                    n_drawn, losses_of_empty = (
                        n_drawn + race.n_drawn,
                        losses_of_empty + race.losses_of_empty,
                    )
                this = race if race.ended else None
                if n_rounds == 0:
                    kept, _ = _those_in_question([race.points], _names(kept), errors)
                    beside = _beside_bumps(kept, [race.points])
                    candidates = {
                        name: each
                        for name, each in candidates.items()
                        if name in {*_names(kept), *beside}
                    }
                starts = race.points if samples.may_go_on else {}
                first += n_candidates
            if this is None:
                sample = samples.of_next_round()
                shares_terms = n_targets > 1 and sample.task.loss.is_classifier
                of_search = of_round.part(1 - FOR_SHARING) if shares_terms else of_round
                this = _search_once(
                    candidates, sample, first, budget.terms, of_search, of_bumps | starts
                )
                of_bumps = {
                    name: point
                    for name, point in this.points.items()
                    if isinstance(point, KernelPoint)
                }
                if shares_terms and not this.ended:
                    this = _with_shared_terms(this, candidates, sample, of_round)

        n_rounds, pace_of_work, pace = (
            n_rounds + 1,
            (effort.spent - before) / work,
            (start - effort.time_left) / work,
        )
        # half a search is worse than none, where others are finished
        if n_rounds > 1 and of_round.cuts_in_time:
            break
        ended, n_drawn = ended or this.ended, n_drawn + this.n_drawn
        losses_of_empty += this.losses_of_empty
        rounds.append(this.points)
        kept, best = _those_in_question(rounds, _names(kept), errors)
        beside = _beside_bumps(kept, rounds)

    kind, some = next(iter(kept.items()))  # the simplest of those that may be the best
    return Found(
        names=some,
        points=[[points[name] for name in some] for points in _rounds_of(kind, rounds)],
        losses=best[kind],
        losses_of_empty=losses_of_empty,
        n_drawn=n_drawn,
        ended=ended,
        kinds=kinds,
        rounds=_rounds_of(kind, rounds),
    )


def _names(kept: Mapping[int, Sequence[tuple[int, int]]]) -> list[tuple[int, int]]:
    """Return the names of the candidates of all kinds in question, each once, simplest first."""
    return sorted(set().union(*kept.values()))


def _beside_bumps(
    kept: Mapping[int, Sequence[tuple[int, int]]],
    rounds: Sequence[Mapping[tuple[int, int], PathPoint]],
) -> set[tuple[int, int]]:
    """Return the names of the candidates that are searched on where kernel ridge is kept: those to
    which it adds, and the best.

    In a race others may gain more by all rows than bumps do.
    """
    names = set()
    for kind, some in kept.items():
        of_bumps = [
            rounds[-1][name] for name in some if name in rounds[-1] and rounds[-1][name].is_large
        ]
        if of_bumps:
            names |= {point.base for point in of_bumps if point.base is not None}
            others = [
                {name: each for name, each in points.items() if name[0] and not each.is_large}
                for points in rounds
            ]
            if set.intersection(*map(set, others)):  # the time may not have sufficed for any
                names |= set(best_mean(others, kind)[0])
    return names


def _kinds_of_few(
    points: Mapping[tuple[int, int], PathPoint], is_alone: bool
) -> dict[int, tuple[Any, ...]]:
    """Return the kinds to search for all targets, with the names of their candidates: the best for
    a few, and all as good.

    Few targets on the rows of one sample hardly tell the best kind: another is kept where its loss
    is higher by at most one standard error of the difference.

    points : {(kind, number of the candidate): its best point, for a few targets}
    is_alone : whether only the best candidate of each kind is kept
    """
    kept, best = {}, min(points.values(), key=lambda point: point.loss)
    for kind in sorted({kind for kind, _ in points}):
        of_kind = [name for name in points if name[0] == kind]
        first = min(of_kind, key=lambda name: points[name].loss)
        more, error = gain([best], [points[first]])
        if more <= error:
            kept[kind] = (first,) if is_alone else tuple(of_kind)
    return kept


def _with_shared_terms(
    this: Round, candidates: Mapping[Any, Candidate], sample: Sample, effort: Effort
) -> Round:
    """Return what a round has found on a sample, with terms that all classes share where these
    predict better.

    Linear functions are left as they are: their penalty is one on squares already, of as many terms
    as there are inputs. So is kernel ridge.
    """
    points, ended = dict(this.points), False
    for name, point in this.points.items():
        candidate = candidates[name]
        is_left = point.is_large or candidate.dictionary.kind == "linear"
        if point.n_terms and not (is_left or ended or effort.is_spent):
            task = sample.task.with_encodings(candidate.encodings)
            points[name], ended = with_shared_terms(point, task, sample, candidate.options, effort)
    return replace(this, points=points, ended=ended)


def _rounds_of(
    kind: int, rounds: Sequence[Mapping[tuple[int, int], PathPoint]]
) -> list[Mapping[tuple[int, int], PathPoint]]:
    """Return the rounds in which a kind took part: one that ended early may have come to simpler
    kinds alone."""
    return [points for points in rounds if any(of == kind for of, _ in points)]


def _those_in_question(
    rounds: Sequence[Mapping[tuple[int, int], PathPoint]],
    names: Sequence[tuple[int, int]],
    errors: float,
) -> tuple[dict[int, tuple[tuple[int, int], ...]], dict[int, list[HeldOutLosses]]]:
    """Return which kinds may be the best, with the candidates in the best mean of each; and the
    losses of each kind's mean.

    A kind whose best mean is of simpler candidates alone is none of them.

    rounds : for each round, {name of the candidate: its best point}
    names : the names of the candidates that have been tried in all rounds
    errors : as in `in_question`
    """
    kinds = sorted({kind for kind, _ in names})
    best = {
        kind: best_mean(of_kind, kind) for kind in kinds if (of_kind := _rounds_of(kind, rounds))
    }
    best = {kind: found for kind, found in best.items() if any(of == kind for of, _ in found[0])}
    losses = {kind: of_mean for kind, (_, of_mean) in best.items()}
    return {kind: best[kind][0] for kind in in_question(losses, errors)}, losses


def _share_of_round(
    kinds: Sequence[Sequence[Candidate]], kept: Mapping[int, Sequence[tuple[int, int]]], n_left: int
) -> float:
    """Return the share of this round in the work that is left, for the progress bar.

    n_left : the number of rounds that are left; those after the first have fewer candidates
    """
    names = _names(kept)
    this = sum(kinds[kind][m].work for kind, m in names)
    others = (this * LATER_ROUND if len(names) == sum(map(len, kinds)) else this) * (n_left - 1)
    return this / ((this + others) * (1 + FITTING_TO_ALL))


def _search_once(
    candidates: Mapping[Any, Candidate],
    sample: Sample,
    first: int,
    most_terms: int,
    effort: Effort,
    starts: Mapping[Any, PathPoint] | None = None,
) -> Round:
    """Follow the path of each candidate on one sample, or of as many as there is time for until a
    callback ends the search.

    candidates : {any name: candidate}
    first : the number of the first search of this round, from which random streams follow
    most_terms : as in `best_point_of_path`
    starts : for candidates that have raced, the point from which the path begins
    """
    points, n_drawn, losses_of_empty, ended = {}, 0, [], False
    work = [candidate.work for candidate in candidates.values()]
    # The constant comes first, if at all. It draws nothing, so that it shares the number of the
    # candidate after it.
    has_constant = next(iter(candidates.values())).is_constant
    for k, (name, candidate) in parts(
        list(enumerate(candidates.items(), first - has_constant)), work
    ):
        if points and effort.is_late:
            effort.note_cut("searches", len(candidates) - len(points))
            break
        share = min(1.0, max(LEAST_SHARE, SLACK * candidate.work / sum(work[len(points) :])))
        of_path, fits = effort.part(share), None
        if isinstance(candidate, KernelRidge):
            if points and min(point.loss for point in points.values()) <= NEARLY_MET * max(
                losses_of_empty, default=0.0
            ):
                continue
            with ends_at(of_path.deadline):
                points[name], drawn = candidate.best_point(
                    sample, max(k, first), of_path, points, (starts or {}).get(name)
                )
                n_drawn += drawn
                of_path.note_finished()
            if name not in points:
                effort.note_cut("searches")
            continue
        with ends_at(of_path.deadline if points else NEVER):  # there must be one point
            fits = candidate.make_fits(
                sample.task.with_encodings(candidate.encodings), max(k, first)
            )
        if fits is None:
            effort.note_cut("searches")
            continue
        descend = exact_descent if candidate.options.exact else algorithm_1
        most = 0 if candidate.is_constant else most_terms
        start, rival = (
            (starts or {}).get(name),
            min((point.loss for point in points.values()), default=np.inf),
        )
        best, drawn, of_empty = best_point_of_path(
            fits, descend, sample, most, of_path, start, rival
        )
        ended = any(fit.ended_by_callback for fit in fits)
        if best.n_terms and not (ended or of_path.is_spent):
            fits = candidate.make_fits(
                sample.task.with_encodings(candidate.encodings), max(k, first)
            )
            best = relaxed(best, fits, sample, of_path)
            ended = any(fit.ended_by_callback for fit in fits)
        points[name] = best
        if not (candidate.is_constant or of_path.cuts or of_path.cuts_in_time):
            effort.note_finished()
        n_drawn += drawn
        losses_of_empty.append(of_empty)
        if ended:
            break
    return Round(points, n_drawn, losses_of_empty, ended)


def best_point_of_path(
    fits: Sequence[BaseL1Fit],
    descend: Callable[[BaseL1Fit], None],
    sample: Sample,
    most_terms: int,
    effort: Effort = UNBOUNDED,
    start: PathPoint | None = None,
    rival: float = np.inf,
) -> tuple[PathPoint, int, float]:
    """Go down a path of penalties until the held-out rows are predicted no better.

    fits : the fits of the targets of `sample.task`, at no terms
    descend : `algorithm_1` or `exact_descent`
    most_terms : the path ends where there are more terms; 0: the empty model alone
    effort : what the path may take
    start : the point, of the same targets and other rows, where the path begins, if it has terms;
        None: at no terms
    rival : the held-out loss of the best candidate so far: the path ends where it is hardly to be
        reached

    Returns the best point of the path, the number of features drawn, and the held-out loss of the
    empty model.
    """
    goes_on = start is not None and start.n_terms > 0
    alpha = start.alpha if goes_on else max(fit.largest_gradient() for fit in fits) or 1.0
    empty = best = at_start = PathPoint.from_fits(fits, alpha, sample)
    if most_terms == 0:
        return empty, 0, empty.loss
    most = sample.of_outputs * min(most_terms, MOST_A_ROW * np.count_nonzero(sample.task.weight))
    for fit in fits:
        fit.spend(effort)
    if goes_on:
        alpha = alpha / FALL**STEPS_BACK if start.n_terms > MANY_FROM_RACE else alpha
        adopt_point(fits, start, alpha)
        at_start = PathPoint.from_fits(fits, alpha, sample)
    alpha, patience = (alpha, PATIENCE_AFTER_RACE) if goes_on else (HIGHEST * alpha, PATIENCE)
    n_drawn, waited, losses = 0, 0, []
    for _ in parts(range(MOST_ALPHAS), WEIGHTS_OF_ALPHAS):
        for fit in parts(fits):
            fit.restart(alpha, forgets_work=True)
            with ends_at(effort.deadline):
                descend(fit)
            # fits that have not had their turn keep the coefficients of the last penalty
            if effort.is_spent:
                break
        n_drawn += max(fit.count_drawn() for fit in fits)
        here = PathPoint.from_fits(fits, alpha, sample)
        effort.add(LOSS / 10 * here.margins.size)
        counts = max(NEGLIGIBLE * best.loss, NOTHING_LEFT * empty.loss)
        waited = 0 if here.loss < best.loss - counts else waited + 1
        best = min(best, here, key=lambda point: point.loss)
        note_held_out_loss(in_units(best.loss, sample.unit, sample.task.loss.degree))
        more, error = gain([best], [here])
        losses.append(best.loss)
        if (
            waited == patience
            or more > ERRORS * error
            or any(fit.ended_by_callback for fit in fits)
        ):
            break
        if (
            len(losses) > FEWEST_ALPHAS
            and BEATEN / 2 * (losses[-3] - losses[-1]) < best.loss - rival
        ):
            break
        if len(np.unique(np.concatenate([fit.A.index for fit in fits]))) > most:
            break
        if effort.is_spent:
            effort.note_cut("paths of penalties")
            break
        alpha *= FALL
    return min(best, at_start, key=lambda point: point.loss), n_drawn, empty.loss


def adopt_point(fits: Sequence[BaseL1Fit], point: PathPoint, alpha: float) -> None:
    """Bring fits without a term to a point of a path, with this penalty."""
    for fit, state in zip(fits, point.states, strict=True):
        fit.restart(alpha)
        fit.adopt(state)


def relaxed(
    best: PathPoint, fits: Sequence[BaseL1Fit], sample: Sample, effort: Effort
) -> PathPoint:
    """Fit the terms of a point with less and less penalty, as long as the held-out rows are
    predicted better; return the best.

    The penalty that selects terms best shrinks their coefficients too much where there is little
    noise (N. Meinshausen, Relaxed Lasso, 2007).

    fits : the fits of the targets of `sample.task`, at no terms
    """
    for fit in fits:
        fit.spend(effort)
    adopt_point(fits, best, best.alpha)
    for _ in range(MOST_RELAXED):
        alpha = RELAXED * best.alpha
        for fit in fits:
            fit.restart(alpha, forgets_work=True)
            with ends_at(effort.deadline):
                fit.polish(RELAXED_TOL, RELAXED_ROUNDS)
        here = PathPoint.from_fits(fits, alpha, sample)
        more, error = gain([here], [best])
        if not more > max(WORTH_RELAXING * best.loss, error) or effort.is_spent:
            break
        best = here
    return best


# Fits to all rows


def fit_to_all_rows(
    found: Found, task: Task, tol: float, effort: Effort
) -> tuple[SparseModel, bool]:
    """Fit the terms of every point that was found to all rows.

    tol : the duality gap of these fits at most, relative to the objective; the rules of the
        dictionary may allow more
    effort : what all of these fits may take

    Returns the mean of these models, and whether a callback ended a search or a fit.
    """
    candidates, points, ended = found.candidates, found.points, found.ended
    if candidates[0].is_constant:  # all rounds have found the same
        points = points[:1]
    pairs = [(k, m) for m in range(len(candidates)) for k in range(len(points))]
    bases = {
        (k, m): points[k][m].base for k, m in pairs if points[k][m].is_large and points[k][m].base
    }
    names = {(k, m): found.names[m] for k, m in pairs if not points[k][m].is_large} | bases
    encodings = None
    if candidates[0].encodings is not None:
        encodings = np.unique(
            np.concatenate(
                [each.encodings for each in (*candidates, *map(found.candidate, bases.values()))]
            )
        )

    def widened(model, candidate):
        return (
            model
            if encodings is None
            else widen_encodings(model, candidate.encodings, encodings, task.stage)
        )

    # The models of the candidates in the mean, and of those to which kernel ridge adds its bumps.
    fitted, to_fit = {}, sorted({(k, name) for (k, _), name in names.items()})
    for k, name in parts(to_fit):
        candidate, of_model = found.candidate(name), effort.part(1 / (len(to_fit) - len(fitted)))
        fitted[k, name], stops = fit_point_again(
            candidate, task, found.rounds[k][name], k, tol, not ended, of_model
        )
        ended |= stops

    models = []
    for m, candidate in enumerate(candidates):
        if isinstance(candidate, KernelRidge):
            under = [fitted.get((k, bases.get((k, m)))) for k in range(len(points))]
            for k, bumps in enumerate(
                candidate.models(task, [of_round[m] for of_round in points], under, effort)
            ):
                model = widened(bumps, candidate)
                models.append(
                    model
                    if under[k] is None
                    else sum_of(widened(under[k], found.candidate(bases[k, m])), model)
                )
        else:
            models += [widened(fitted[k, found.names[m]], candidate) for k in range(len(points))]
    return merge_linear_functions(mean_of(models)), ended


def fit_point_again(
    candidate: Candidate,
    task: Task,
    point: PathPoint,
    search: int,
    tol: float,
    calls_back: bool,
    effort: Effort,
) -> tuple[SparseModel, bool]:
    """Fit the terms of a point of a candidate to all rows; return as `fit_again`.

    search : the number of the search that makes the fits
    """
    of_candidate, fits = task.with_encodings(candidate.encodings), None
    if point.is_shared:
        return share_again(point, of_candidate, candidate.options, calls_back, effort)
    with ends_at(effort.deadline):
        if not effort.is_late:
            fits = candidate.make_fits(of_candidate, search)
    return fit_again(fits, of_candidate, point, tol, calls_back, effort)


def fit_again(
    fits: Sequence[BaseL1Fit] | None,
    task: Task,
    point: PathPoint,
    tol: float,
    calls_back: bool,
    effort: Effort,
) -> tuple[SparseModel, bool]:
    """Fit the terms of a point to all rows; return the model, and whether a callback ended the fit.

    Where there is no time to make the fits (None), or to compute the margins of all rows, the model
    is that of the search.

    alpha was chosen for a share of the rows, and is multiplied by the root of that share: noise
    falls with the root of the number of rows, and alpha with it.

    calls_back : whether the callback is called at the end
    """
    infos = [replace(info, alpha=float(point.alpha), converged=False) for info in point.infos]
    n_adopted, stopped = 0, [StoppedFit(*each) for each in zip(point.states, infos, strict=True)]
    with partial_fits_on_error(fits or stopped, task), ends_at(effort.deadline):
        for fit, state in zip(fits or (), point.states, strict=fits is not None):
            fit.spend(effort)
            fit.restart(point.alpha * np.sqrt(point.share))
            fit.adopt(state)
            n_adopted += 1
            fit.polish(max(tol, fit.rules.search_tol), CHOSEN_ROUNDS)
            fit.record(calls_back)
    if effort.is_spent:
        effort.note_cut("fits to all rows")
    done = [*(fits or ())[:n_adopted], *stopped[n_adopted:]]
    model = model_of(done, task, certified=False) if effort.is_late else model_of(done, task)
    return model, any(fit.ended_by_callback for fit in fits or ())


def share_again(
    point: PathPoint, task: Task, options: SparseRFOptions, calls_back: bool, effort: Effort
) -> tuple[SparseModel, bool]:
    """Fit the terms that all classes share to all rows, or as far as there is work and time; return
    as `fit_again`.

    A penalty on squares weighs as much as a number of rows: alpha, chosen for a share of the rows,
    is multiplied by that share.
    """
    fit: Fit = StoppedFit(point.states[0], replace(point.infos[0], converged=False))
    ended = False
    with partial_fits_on_error([fit], task), ends_at(effort.deadline):
        if not effort.is_late:
            fit = again = SharedFit(task, point.states[0], options)
            again.finish(point.alpha * point.share, effort)
            ended = again.progress.ended_by_callback or (
                calls_back and again.progress.ask(again.info)
            )
    if effort.is_spent:
        effort.note_cut("fits to all rows")
    return model_of([fit], task, certified=False), ended


@dataclass(frozen=True)
class StoppedFit:
    """A fit of a search, as far as it came, as `model_of` needs it.

    state : its `state`, of all classes for those that are fitted together
    found : its `FitInfo`
    """

    state: State | list[State]
    found: FitInfo

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the fit, for the rows of the search."""
        return self.found

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms by ascending index, in the units of y."""
        if isinstance(self.state, list):
            return merge_solutions([solution_of(state) for state in self.state])
        return solution_of(self.state)


# The mean of models


def mean_of(models: Sequence[SparseModel]) -> SparseModel:
    """Return the model whose prediction is the mean of what these models predict; a term that
    several have is one term."""
    if len(models) == 1:
        return models[0]
    every = np.concatenate([model.support for model in models])
    support, first, place = np.unique(every, return_index=True, return_inverse=True)
    coef = np.zeros((*models[0].coef.shape[:-1], len(support)))
    features, start = models[0].features, 0
    for k, model in enumerate(models):
        coef[..., place[start : start + len(model.support)]] += model.coef / len(models)
        features, start = (
            model.features if k == 0 else features.concat(model.features),
            start + len(model.support),
        )
    b = sum(model.intercept / len(models) for model in models)
    infos = [model.info for model in models]
    info = replace(
        infos[0],
        n_iter=max(info.n_iter for info in infos),
        converged=all(info.converged for info in infos),
        objective=(mean_value([info.objective[-1] for info in infos]),),
        dual_gap=mean_value([info.dual_gap for info in infos]),
        n_nonzero=len(support),
        alpha=float(np.exp(mean_value([np.log(info.alpha) for info in infos]))),
    )
    return replace(
        models[0], coef=coef, intercept=b, support=support, features=features.take(first), info=info
    )


def sum_of(model: SparseModel, added: SparseModel) -> SparseModel:
    """Return the model that predicts the sum of both predictions; its `info` is that of the
    second."""
    mean = mean_of([model, added])
    info = replace(
        added.info,
        converged=model.info.converged and added.info.converged,
        n_nonzero=len(mean.support),
    )
    return replace(mean, coef=2 * mean.coef, intercept=2 * mean.intercept, info=info)


def widen_encodings(
    model: SparseModel, of_model: np.ndarray, encodings: np.ndarray, stage: ColumnStage
) -> SparseModel:
    """Return a model of some encodings of a stage as a model of more of them, whose mean with other
    such models can be taken.

    of_model, encodings : the indices of both sets of encodings in the stage, ascending; the first
        is a part of the second
    """
    places, d = np.searchsorted(encodings, of_model), len(of_model)
    # The inputs are numbered by their places, all linear functions after them, and draws far
    # beyond.
    inputs, beyond = np.searchsorted(model.support, [d, FIRST_DRAW])
    support = model.support.copy()
    support[:inputs] = places[support[:inputs]]
    support[inputs:beyond] += len(encodings) - d
    features, stage = model.features.seeing(places, len(encodings)), stage.take(encodings)
    features = features.staged(None if stage.is_identity and stage.table is None else stage)
    return replace(model, features=features, support=support)


def merge_linear_functions(model: SparseModel) -> SparseModel:
    """Return a model with its linear functions of all inputs added up, to one for each output; one
    without them as it is."""
    features, n_inputs = model.features, model.features.n_inputs
    is_function = [
        np.full(len(block), block.is_matrix and not block.nonnegative) for block in features.blocks
    ]
    is_function = features.from_blocks(np.concatenate([np.zeros(0, bool), *is_function]))
    if not is_function.any():
        return model
    ((block, _),) = (merged := features.take(np.flatnonzero(is_function))).by_block(
        np.zeros(is_function.sum())
    )
    coef = np.atleast_2d(model.coef)
    c = merged.to_blocks(coef[:, is_function]) * block.scale
    unit = power_of_two(c)
    functions = linear_functions(c / unit @ block.weights).staged(features.stage)
    inputs, draws = (
        np.flatnonzero(~is_function & of)
        for of in (model.support < n_inputs, model.support >= n_inputs)
    )
    coef = np.hstack([coef[:, inputs], unit * np.eye(len(coef)), coef[:, draws]])
    support = np.concatenate(
        [model.support[inputs], n_inputs + np.arange(len(coef)), model.support[draws]]
    )
    return replace(
        model,
        coef=coef.reshape(*model.coef.shape[:-1], -1),
        support=support,
        features=features.take(inputs).concat(functions).concat(features.take(draws)),
        info=replace(model.info, n_nonzero=len(support)),
    )


# Pruning, and the intercept after it


def drop_terms(
    model: SparseModel,
    task: Task,
    worth: float,
    max_terms: int,
    looked_at: int,
    rng: np.random.Generator,
) -> SparseModel:
    """Return the model without the terms that it does not need, of at most max_terms.

    worth : what dropping terms may add to the mean loss, in the unit of the first target
    looked_at : of more terms, this number, the ones that vary most, may stay

    Bumps at rows all stay: some of them with other coefficients may predict the same at these rows,
    and not between.
    """
    if not len(model.support):
        return model
    bumps = model.features.is_local
    if bumps.any():
        rest = drop_terms(
            terms_of(model, ~bumps),
            task,
            worth,
            max_terms - np.count_nonzero(bumps),
            looked_at,
            rng,
        )
        return sum_of(rest, replace(terms_of(model, bumps), intercept=0.0 * model.intercept))
    rows, unit = (
        task.raw.staged(model.features.stage, is_asked_often=True),
        task.unit(task.targets[0]),
    )
    weight, curvature = loss_curvature(task, rows, model, unit)
    change = unit * np.sqrt(2 * worth / curvature)  # L(z + e) <= L(z) + L'(z) e + curvature e^2 / 2
    is_few = task.raw.n_rows <= min(
        FEW_SEARCH_ROWS, ROWS_A_TERM * min(len(model.support), looked_at)
    )
    if is_few and weight is task.weight and not task.raw.is_sparse:
        raw, weight = with_mixed_rows(task.raw, weight, rng)
        rows = raw.staged(model.features.stage, is_asked_often=True)
    return pruned(rows, model, weight, max_terms, change=change, looked_at=looked_at)


def with_mixed_rows(
    rows: Rows, weight: np.ndarray, rng: np.random.Generator
) -> tuple[Rows, np.ndarray]:
    """Return dense rows and as much weight of rows that are mixed of two: some of the cells of a
    row are those of another."""
    X, n = rows.array(), MIXED_A_ROW * rows.n_rows
    one, other = np.arange(n) % rows.n_rows, rng.choice(rows.n_rows, n, p=weight / weight.sum())
    mixed = np.where(rng.random((n, X.shape[1])) < MIXED, X[other], X[one])
    return rows.on_same_threads(np.concatenate([X, mixed])), np.concatenate(
        [weight, weight[one] / MIXED_A_ROW]
    )


def terms_of(model: SparseModel, some: np.ndarray) -> SparseModel:
    """Return the model of some of its terms, given by a mask."""
    features = model.features.take(np.flatnonzero(some))
    return replace(
        model, coef=model.coef[..., some], support=model.support[some], features=features
    )


def drop_terms_at_once(model: SparseModel, task: Task, max_terms: int) -> SparseModel:
    """Return the model in at most max_terms of its terms, chosen on few rows, where there is no
    time for more."""
    if len(model.support) <= max_terms:
        return model
    n = min(task.raw.n_rows, max(FEWEST_PRUNED_ON, 2 * max_terms))
    some = np.arange(n) * task.raw.n_rows // n
    rows = task.raw.take(some).staged(model.features.stage)
    return pruned(rows, model, task.weight[some], max_terms, looked_at=max_terms)


def loss_curvature(
    task: Task, rows: Rows, model: SparseModel, unit: float
) -> tuple[np.ndarray, float]:
    """Return weights of the rows and c such that a change of f raises the loss by at most c/2 times
    its weighted mean square.

    Where the curvature of the loss has no bound, weights and c are computed at the model's f, and
    about right near it. Where the loss has corners that were smoothed, c is the mean of the
    curvature over the rows at the model's f.
    """
    loss = task.loss_of(task.targets[0])
    if not (np.isinf(loss.smoothness) or loss.is_smoothed):
        # the largest eigenvalue of the softmax's Hessian is 1/2
        of_several = 2 if task.is_joint else 1
        return task.weight, of_several * loss.smoothness
    f = rows.vectors.fetch(rows.apply(model.features.staged(None), model.coef)) + (
        model.intercept - task.centers[0]
    )
    h = task.weight * loss.curvature(f / unit, task.target_of(task.targets[0]))
    mean = float(h.mean())
    if not 0 < mean < np.inf:
        return task.weight, min(loss.smoothness, 1.0)
    return task.weight if loss.is_smoothed else h / mean, mean


def with_best_intercept(model: SparseModel, task: Task) -> SparseModel:
    """Return the model with the intercept that is best for the training rows.

    Each model had it, but with a loss that is not quadratic the mean of models, pruned, need not:
    with a link, it predicts less than the models do in the mean.
    """
    if task.loss.is_quadratic:
        return model
    rows = task.raw.staged(model.features.stage, is_asked_often=True)
    f = rows.vectors.put(
        rows.vectors.fetch(rows.apply(model.features.staged(None), model.coef)).astype(np.float64)
    )
    if task.is_joint:
        joint = MultinomialProblem.from_targets(rows.vectors, task.targets, task.weight, True)
        return replace(model, intercept=joint.best_intercepts(f, model.intercept))
    best = []
    for k, (y, b) in enumerate(
        zip(task.targets, np.atleast_1d(model.intercept) - task.centers, strict=True)
    ):
        unit, f_k = task.unit(y), f if np.ndim(model.intercept) == 0 else rows.vectors.output(f, k)
        problem = task.problem(Problem, y, 0.0, True)
        best.append(
            unit * problem.best_intercept(rows.vectors.scaled(f_k, 1 / unit), float(b) / unit)
            + task.centers[k]
        )
    return replace(
        model,
        intercept=np.reshape(best, np.shape(model.intercept))
        if np.ndim(model.intercept)
        else float(best[0]),
    )
