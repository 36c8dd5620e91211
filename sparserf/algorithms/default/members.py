"""The members of the default: linear functions, learned cosines, and rules.

A member is a way to make a sequence of models of falling penalty. In each fold it has a `FoldPath`,
which goes down the penalties one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ...features import Rules, inputs_that_keep, linear_functions
from ...features.dictionary import FixedDictionary
from ..fit_progress import power_of_two
from ..model_of_fits import model_of
from ..sparse_rf.descent import N_COMPONENTS
from .l1_path import L1Path
from .ridge_path import RidgePath, WideRidgePath

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...features.dictionary import Dictionary
    from ...model import SparseModel
    from ..folds import FoldRows, Folds
    from ..sparse_rf.options import SparseRFOptions
    from ..task import Task
    from .fold_path import FoldPath, State

# The most terms of a fit, and the most numbers, or bits, that it keeps of them. Of rules there may
# be more with the root of the rows beyond ROWS_OF_MOST.
MOST_TERMS, MOST_NUMBERS, ROWS_OF_MOST, MOST_BITS = 2_000, 2**24, 8_000, 2**31
# Draws of cosines for each penalty and fold at 1,500 rows; in proportion to the root of the rows.
DRAWS, ROWS_OF_DRAWS, FEWEST_DRAWS = 500, 1_500, 20


class FoldOptimum(NamedTuple):
    """What a fold has found at the penalty taken: the penalty, the share of the rows that the fold
    fits, and the terms and weights."""

    alpha: float
    share: float
    state: State


@dataclass(frozen=True, eq=False)
class Member(ABC):
    """A way to make models of falling penalty.

    name : what it is called in reports
    options : the options of its fits
    encodings : the places in the encoder of the encodings that a model sees, or None where there is
        no encoder of several; model k has those of number k, in turn
    """

    name: ClassVar[str]
    options: SparseRFOptions = field(repr=False)
    encodings: Sequence[np.ndarray | None] = field(repr=False)

    fall: ClassVar[float] = 0.7
    # Penalties in a row that may lower the loss of the rows held out by little: while it has not
    # been lowered by more than noise might, and then.
    patience: ClassVar[tuple[int, int]] = 5, 2
    # The largest penalty is taken whose loss is within so many standard errors of the least.
    errors: ClassVar[float] = 0.5
    # Whether its fits can drop columns (`RidgePath.drop_columns`).
    drops_columns: ClassVar[bool] = False

    @staticmethod
    def rows_of(folds: Folds) -> FoldRows:
        """Return the rows that the member sees."""
        return folds.searched

    @abstractmethod
    def fold_fit(self, folds: Folds, k: int) -> FoldPath:
        """Return the fit of fold k, at no terms."""

    def most_terms(self, n: int) -> int:
        """Return the most terms of a fit to n rows."""
        return min(MOST_TERMS, MOST_NUMBERS // n)

    @property
    def n_ways(self) -> int:
        """The number of ways to see the columns; fold k has that of number k, in turn."""
        return len(self.encodings)

    def in_way(self, way: int) -> Member:
        """Return the member with one of its ways to see the columns alone."""
        return replace(self, encodings=[self.encodings[way]])

    @abstractmethod
    def constant(self, task: Task) -> SparseModel:
        """Return the model without a term, fitted to all rows."""

    @abstractmethod
    def refits(self, found: Sequence[FoldOptimum]) -> list[Callable[[], SparseModel]]:
        """Return functions that fit what the folds have found to all rows that the member sees, and
        return the models whose mean is the member's."""


# Members whose terms an l1 penalty chooses


@dataclass(frozen=True, eq=False)
class L1Member(Member):
    """A member whose terms an l1 penalty chooses among the draws of a dictionary.

    seen : the task of all rows that the member sees, with some encodings, and the dictionary over
        these, of each of the `encodings`; fold k has that of number k, in turn
    """

    seen: Sequence[tuple[Task, Dictionary]] = field(repr=False)

    def in_way(self, way: int) -> Member:
        return replace(super().in_way(way), seen=[self.seen[way]])

    def fold_fit(self, folds: Folds, k: int) -> FoldPath:
        (task, dictionary), rows = self.seen[k % len(self.seen)], self.rows_of(folds)
        told = rows.place, folds.task.unit(folds.task.targets[0])
        return L1Path(task, dictionary, self.options, k, rows.fitted[k], told)

    def constant(self, task: Task) -> SparseModel:
        seen = task.with_encodings(self.encodings[0])
        return model_of([L1Path(seen, self.seen[0][1], self.options)], seen, certified=False)

    def refits(self, found: Sequence[FoldOptimum]) -> list[Callable[[], SparseModel]]:
        """Return functions that fit the terms of each fold to all rows.

        alpha was chosen for a share of the rows, and is multiplied by the root of that share: noise
        falls with the root of the number of rows, and alpha with it.
        """
        return [
            partial(self._refit, *way, of_fold)
            for way, of_fold in zip(cycle(self.seen), found, strict=False)
        ]

    def _refit(self, task, dictionary, of_fold):
        """Return the model of the terms of a fold, fitted to all rows of the task."""
        again = L1Path(task, dictionary, self.options)
        alpha = RELAX * of_fold.alpha * np.sqrt(of_fold.share)
        lets = self.options.budget.lets
        lets(again.fit_again, of_fold.state, alpha, REFIT_TOL, REFIT_ROUNDS)
        return model_of([again], task, certified=False)


# The relative gap of the fits to all rows, and their most steps: with 3 in place of 5, the loss on
# test rows of seven tables of classes was 1.000 of it, and 26 classes had .0394 of the labels wrong
# for .0406.
REFIT_TOL, REFIT_ROUNDS = 0.02, 3
# The share of the penalty that is left there: the mean of models needs less than each.
RELAX = 0.7


class UserFeatures(L1Member):
    """The features that the user gives, of which an l1 penalty chooses."""

    name = "features"

    @classmethod
    def of_folds(cls, folds: Folds, options: SparseRFOptions) -> L1Member:
        """Return the member for the rows of these folds."""
        if isinstance(options.features, Rules):
            return UserRules.of_folds(folds, options)
        dictionary = options.dictionary(folds.task, N_COMPONENTS)
        return cls(options, [None], [(folds.task, dictionary)])


class InputsMember(L1Member):
    """The inputs, each with the sign that the constraints ask for: the linear functions where these
    bind."""

    name = "inputs"

    @classmethod
    def of_folds(cls, folds: Folds, options: SparseRFOptions) -> InputsMember:
        """Return the member for the rows of these folds."""
        encodings = folds.task.encoding_sets[0] if folds.task.encoding_sets else None
        task = folds.task.with_encodings(encodings)
        inputs = inputs_that_keep(np.ones(task.rows.n_features_in), task.input_constraints)
        return cls(options, [encodings], [(task, FixedDictionary(inputs, len(inputs)))])


class Cosines(L1Member):
    """Cosines that follow those accepted, over the columns as they are and in ranks, a fold each in
    turn."""

    name = "cosines"

    @classmethod
    def of_folds(cls, folds: Folds, options: SparseRFOptions, effort: float) -> Cosines:
        """Return the member for the rows of these folds, with draws in proportion to the effort."""
        seen, encodings = [], folds.task.encoding_sets or (None,)
        for each in encodings:
            task = folds.task.with_encodings(each)
            draws = DRAWS * effort * np.sqrt(len(task.weight) / ROWS_OF_DRAWS)
            seen.append((task, options.dictionary(task, max(FEWEST_DRAWS, round(draws)))))
        return cls(options, encodings, seen)


class RuleMember(L1Member):
    """A member of rules, which are fitted to more rows than are searched: bits are small."""

    fall = 0.9
    patience = 17, 7

    @staticmethod
    def rows_of(folds: Folds) -> FoldRows:
        return folds.many

    def most_terms(self, n: int) -> int:
        return most_rules(n)


def most_rules(n: int) -> int:
    """Return the most rules of a fit to n rows."""
    return round(min(MOST_TERMS * max(1.0, n / ROWS_OF_MOST) ** 0.5, MOST_BITS / n))


class UserRules(RuleMember):
    """Rules as the user gives them."""

    name = UserFeatures.name

    @classmethod
    def of_folds(cls, folds: Folds, options: SparseRFOptions) -> UserRules:
        """Return the member for the rows of these folds."""
        task = cls.rows_of(folds).task
        return cls(options, [None], [(task, options.dictionary(task, N_COMPONENTS))])


class GrownRules(RuleMember):
    """Rules of the default, which see numbers as they are."""

    name = "rules"

    @classmethod
    def of_folds(cls, folds: Folds, options: SparseRFOptions, effort: float) -> GrownRules:
        """Return the member for the rows of these folds, with trees in proportion to the effort."""
        task, rules = cls.rows_of(folds).task, Rules(n_trees=max(1, round(Rules.n_trees * effort)))
        if options.max_order is not None:
            rules = replace(rules, max_conditions=min(rules.max_conditions, options.max_order))
        own, encodings = replace(options, features=rules, max_order=None), task.intervals
        task = replace(task.with_encodings(encodings), features=rules, is_single=False)
        return cls(own, [encodings], [(task, own.dictionary(task, N_COMPONENTS))])


# Linear functions


# The most inputs of linear functions by a Gram matrix, and the most numbers of X.
MOST_RIDGE, MOST_INPUTS = 1_000, 2**23


@dataclass(frozen=True, eq=False)
class LinearMember(Member):
    """Linear functions of all inputs, or of the fewest that will do, with a penalty on the squares
    of their weights."""

    name = "linear"
    drops_columns = True
    fall = 0.1
    errors = 1.0
    task: Task = field(repr=False)

    @classmethod
    def of_folds(cls, folds: Folds, options: SparseRFOptions) -> LinearMember:
        """Return the member for the rows of these folds."""
        encodings = folds.task.encoding_sets[0] if folds.task.encoding_sets else None
        return cls(options, [encodings], folds.task.with_encodings(encodings))

    def fold_fit(self, folds: Folds, k: int) -> FoldPath:
        return self._path(self.task, folds.splits[k][0])

    def _path(self, task, fitted=None):
        """Return the path of these rows, by a Gram matrix or without."""
        n, d = len(task.weight), task.rows.n_features_in
        is_narrow = d <= MOST_RIDGE and d * n <= MOST_INPUTS
        return (RidgePath if is_narrow else WideRidgePath)(task, self.options, fitted)

    def constant(self, task: Task) -> SparseModel:
        seen = task.with_encodings(self.encodings[0])
        model = model_of([self._path(seen)], seen, certified=False)
        nothing = np.zeros(0, np.intp)
        return replace(
            model,
            coef=model.coef[..., nothing],
            support=model.support[nothing],
            features=model.features.take(nothing),
        )

    def refits(self, found: Sequence[FoldOptimum]) -> list[Callable[[], SparseModel]]:
        return [partial(self._refit, found)]

    def _refit(self, found):
        """Return the linear functions fitted to all rows."""
        again = self._path(self.task)
        again.fit_at(found[0].alpha * float(np.mean([of_fold.share for of_fold in found])))
        while len(again.index) > len(found[0].state[1]):
            again.drop_columns()
        return as_functions(model_of([again], self.task, certified=False))


def as_functions(model: SparseModel) -> SparseModel:
    """Return a model of inputs as one of a linear function for each output."""
    n = model.features.n_inputs
    W = np.zeros((np.atleast_2d(model.coef).shape[0], n))
    W[:, model.support] = model.coef
    unit = power_of_two(W)  # y, and so W, may be of any size
    coef = unit * np.eye(len(W)).reshape(*model.coef.shape[:-1], -1)
    features = linear_functions(W / unit).encoded(model.features.encoder)
    return replace(
        model,
        coef=coef,
        support=n + np.arange(len(W)),
        features=features,
        info=replace(model.info, n_nonzero=len(W)),
    )
