"""The dictionaries of Sparse-RF as sources of draws, and how far a fit goes with what each draws.

A source is of one target. It answers

draw(batches, A) : the draws of these batches, for the working set A
ahead(t, A, w) : questions and what takes their answers, as `Draws.question` gives them, which draw((t,), A) will need when A
    has the coefficients w: they are asked with the step to w
forget() : what was asked ahead will not be drawn
schedule(settles) : the `Schedule` of a fit that is, or is not, to reach the tolerance

and has looked_at, the batches whose largest gradient tells where a path of penalties begins, and is_without_end, whether the
draws of a batch are the best of all that there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from ..._base.checks import check_callable, check_choice, check_flag, check_integer, check_real, check_rng
from ...features import (
    NAMES,
    LearningDictionary,
    LinearFunctions,
    Mixture,
    inputs_times,
    inverse_deviations,
    make_dictionary,
    make_learning_dictionary,
)
from ...losses import JOINTLY
from ...rows.home import correlation, correlation_pair
from ..task import Task
from .draws import Draws, KeptDraws

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from ..._base.types import (
        Callback,
        Categorical,
        Dictionary,
        Features,
        Gamma,
        LossLike,
        MatrixLike,
        Missing,
        Question,
        Seed,
        Units,
    )
    from ...features.base import Base
    from ...features.dictionary import FixedDictionary, RandomDictionary
    from ...rows.home import Rows
    from ...solvers.columns import WorkingSet


@dataclass(frozen=True)
class Schedule:
    """How far a fit goes with what it draws.

    settles : which batches are solved to the tolerance, "each", the "last", or "none"; the others take one round
    enter_a_term, fewest_enter : how many violators enter the working set at once, for each term that it has, but at least these
    left_over : of the largest violation, what the step after may leave: it is one of many
    most_steps : of the solver in a round in which none enters
    near : the gap, as a share of the objective, that is near enough where the penalty itself is a choice
    effort : the share of the work of a fit at most
    """

    settles: Literal["each", "last", "none"] = "each"
    enter_a_term: float = 1 / 4
    fewest_enter: int = 100
    left_over: float = 0.1
    most_steps: int = 100
    near: float = 0.5
    effort: float = 1.0


TO_TOLERANCE = Schedule()
# Of many penalties one is chosen, and its terms are fitted again.
SEARCHING = Schedule(settles="none", enter_a_term=1, most_steps=1)
# Better draws are worth more than the optimum over these.
LEARNING = Schedule(settles="none", enter_a_term=1, fewest_enter=200)
# Of a penalty that keeps as many terms as there are rows the optimum over the last batch is not worth the time.
LEARNING_AND_SETTLING = replace(LEARNING, settles="last", effort=0.25)
# Functions of several rounds and penalties add up to one; of them a few are as good as all.
LINEAR = Schedule(settles="none", left_over=0.0, near=0.1)


@dataclass(frozen=True, eq=False)
class Setting:
    """What the user asks for but for the penalty, checked; options: those of an `L1Fit`."""

    task: Task
    options: dict[str, Any]
    exact: bool
    features: Any
    rng: np.random.Generator
    how: dict[str, Any]

    @classmethod
    def of(
        cls, X: MatrixLike, y: ArrayLike, *, features: Features, gamma: Gamma, scale: Units, missing: Missing,
        categorical: Categorical, loss: LossLike, n_components: int | None, batch_size: int | None, exact: bool,
        fit_intercept: bool, sample_weight: ArrayLike | None, tol: float, max_iter: int | None, rng: Seed, workers: int,
        callback: Callback, is_curved: bool = False, max_order: int | None = None,
    ) -> Self:  # fmt: skip
        if isinstance(features, str):
            check_choice("features", features, ("auto", *NAMES))
        rng, columns = check_rng(rng), {"scale": scale, "missing": missing, "categorical": categorical}
        is_auto = isinstance(features, str) and features == "auto"
        if max_order is not None and not is_auto:
            raise ValueError(f"max_order needs features='auto', got {max_order!r} with other features")
        task_how = {"is_curved": is_curved and is_auto, "several_outputs": "apart", "losses": JOINTLY}
        task = Task.from_arguments(
            X, y, features=features, loss=loss, sample_weight=sample_weight, workers=workers, rng=rng, columns=columns,
            **task_how,
        )  # fmt: skip
        features = task.features
        task = task.centered(check_flag("fit_intercept", fit_intercept))
        options = {
            "fit_intercept": fit_intercept,
            "tol": check_real("tol", tol, 0, strict=True),
            "max_iter": None if max_iter is None else check_integer("max_iter", max_iter, 1),
            "callback": check_callable("callback", callback),
        }
        how = {"gamma": gamma, "n_components": n_components, "batch_size": batch_size}
        if max_order is not None:
            how["max_order"] = check_integer("max_order", max_order, 1)
        return cls(task, options, check_flag("exact", exact), features, rng, how)

    @property
    def learns(self) -> bool:
        return isinstance(self.features, str) and self.features == "auto"

    def dictionary(self, default: int, task: Task | None = None, base: type[Base] = Mixture) -> Dictionary:
        """Of `features`, of so many where n_components does not say; task: whose rows, None: of all views; base: from which
        distribution one that learns starts."""
        about, task = {"rng": self.rng, "weight": self.task.weight, **self.how}, task or self.task
        about["n_components"] = default if about["n_components"] is None else about["n_components"]
        if not self.learns:
            return make_dictionary(self.features, task.rows, **about)
        if self.exact:
            raise ValueError("exact must be False where features is 'auto', whose draws cannot be made again; got True")
        return make_learning_dictionary(task.rows, stage=task.stage, base=base, **about)

    def dictionary_of_inputs(self, task: Task) -> Dictionary:
        """Of the inputs of a task, each times its unit."""
        units = units_of(task)
        about = {"n_components": None, "batch_size": len(units), "gamma": None, "rng": self.rng, "weight": task.weight}
        return make_dictionary(inputs_times(units), task.rows, **about)


def units_of(task: Task) -> np.ndarray:
    """Of the inputs of a task, for linear functions."""
    is_scaled = task.stage is not None and not task.stage.is_raw
    return np.ones(len(task.stage)) if is_scaled else inverse_deviations(task.rows, task.weight)


class RandomDraws:
    """Draws that can be made again. One batch is kept while in use; of several, each is drawn again when needed."""

    is_without_end = False
    schedule: Callable[[bool], Schedule] = staticmethod(lambda settles: TO_TOLERANCE if settles else SEARCHING)

    def __init__(self, rows: Rows, dictionary: RandomDictionary | FixedDictionary, _: int):
        self._rows, self._dictionary, self._kept = rows, dictionary, (None, None)

    @property
    def looked_at(self) -> tuple[int, ...]:
        return tuple(range(self._dictionary.n_batches))

    def forget(self) -> None:
        """What is known of draws at a dual point stays true."""

    def draw(self, batches: Sequence[int], A: WorkingSet) -> Draws:
        starts = self._dictionary.starts
        each = [(np.arange(*starts[k : k + 2]), partial(self._dictionary.batch, k)) for k in batches]
        if len(each) > 1:
            return Draws(self._rows, each)
        ((index, make),) = each
        which = index[:1].tolist(), len(index)  # a dictionary may grow
        if which != self._kept[0]:
            self._kept = which, KeptDraws(self._rows, make(), index, make=make if self._dictionary.is_random else None)
        return self._kept[1].expecting_any_move()

    def ahead(self, t: int, A: WorkingSet, w: np.ndarray) -> list[Question]:
        return [self.draw((t,), A).question(0.0)]


class LearningDraws:
    """Draws that follow the working set, each cosine turned to the phase at which |sum_i v_i cos(w'x_i + b)| is largest."""

    is_without_end: bool = False
    looked_at: tuple[int, ...] = (0,)
    schedule: Callable[[bool], Schedule] = staticmethod(lambda settles: LEARNING_AND_SETTLING if settles else LEARNING)

    def __init__(self, rows: Rows, dictionary: LearningDictionary, target: int):
        self._rows, self._sizes, self._proposer = rows, np.diff(dictionary.starts), dictionary.proposer(target)
        self._turns = dictionary.base.is_periodic
        self._question = correlation_pair if self._turns else correlation
        self.forget()

    def forget(self) -> None:
        self._t, self._v, self._proposed, self._answer = None, None, None, None

    def draw(self, batches: Sequence[int], A: WorkingSet) -> Draws:
        (t,) = batches
        if t != self._t:
            self._propose(t, A.features, A.w, A.index)
        if self._v is not A.v:
            (self._answer,) = self._rows.ask(A.v, [partial(self._question, self._proposed[1])])
        (start, features), g = self._proposed, self._answer
        self.forget()
        if self._turns:
            C, S = g
            features, g = features.turned(best_phase(C, S)), np.hypot(C, S)
        return KeptDraws(self._rows, features, start + np.arange(len(features)), A.v, g)

    def ahead(self, t: int, A: WorkingSet, w: np.ndarray) -> list[Question]:
        if t != self._t:  # a batch is proposed once, however often a round asks about it: proposing counts as a try
            there = np.flatnonzero(w)
            self._propose(t, A.features.take(there), w[there], A.index[there])

        def take(v, answer):
            self._v, self._answer = v, answer

        return [(partial(self._question, self._proposed[1]), take)]

    def _propose(self, t, features, w, index):
        self._t, self._proposed = t, self._proposer.batch(self._sizes[t], features, w, index)


def best_phase(C: np.ndarray, S: np.ndarray) -> np.ndarray:
    """The angle that turns cosines of correlation C, and sines of S, to cosines of the largest, (C^2 + S^2)^1/2."""
    return np.arctan2(-S, C)


class LinearDraws:
    """The best of all linear functions of the inputs, which is their gradient."""

    is_without_end: bool = True
    looked_at: tuple[int, ...] = (0,)
    schedule: Callable[[bool], Schedule] = staticmethod(lambda settles: LINEAR)

    def __init__(self, rows: Rows, dictionary: LinearFunctions, target: int):
        d = rows.n_features_in
        self._rows, self._dictionary = rows, dictionary
        self._inputs, self._first = inputs_times(np.ones(d)), d + (target << 20)
        self._v = self._slope = None

    def forget(self) -> None:
        """The slope at a dual point stays true."""

    def draw(self, batches: Sequence[int], A: WorkingSet) -> Draws:
        if self._v is not A.v:
            self._v, self._slope = A.v, self._rows.correlate(self._inputs, A.v)
        function, g = self._dictionary.steepest(self._slope)
        new = A.index.max(initial=self._first - 1) + 1
        return KeptDraws(self._rows, function, np.array([new]), A.v, np.array([g]))

    def ahead(self, t: int, A: WorkingSet, w: np.ndarray) -> list[Question]:
        def take(v, slope):
            self._v, self._slope = v, slope

        return [(partial(correlation, self._inputs), take)]


SOURCES: dict[type, Any] = {LearningDictionary: LearningDraws, LinearFunctions: LinearDraws}


def source_of(rows: Rows, dictionary: Dictionary, target: int) -> RandomDraws | LearningDraws | LinearDraws:
    """Of a dictionary; target: a number of its own for each fit."""
    return SOURCES.get(type(dictionary), RandomDraws)(rows, dictionary, target)
