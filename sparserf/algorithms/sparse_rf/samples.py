"""What the searches of a fit may cost; the rows that one looks at, and which of them it holds out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from ..._base.checks import check_integer
from ..._base.sampling import spread_evenly
from ...solvers.effort import of_a_pass
from ..task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...losses.base import Loss
    from ...rows.home import Rows

# Of effort 1: rows that a search looks at, about, where there are more; and terms at which it ends.
MOST_ROWS, MOST_TERMS = 16_000, 2_000
# Rows to hold out at least, if that is no more than half of them: of one row chance tells which model is the best.
FEWEST_HELD = 10
# So many standard errors a model must beat the constant by where one row alone tells of the target, a share of that where more
# do: of few rows the best point of a path owes much to chance. Chosen among 10 to 50 on rare events and 4 to 300 rows of
# noise, beside weak signals in 10 to 1,000 rows.
CHANCE = 30.0
# Models of which the mean is taken, of up to FEW_ROWS rows, and of more; and rounds of searches, at least. What is held out of
# few rows tells little of which kind of model is the best.
FEW_ROWS, OF_FEW, OF_MORE = 5_000, (6, 4), (4, 2)

# The work of all searches of a call: in all, for each row that a search looks at, and passes over what is drawn for a penalty.
SEARCHES, A_ROW, PASSES = 3e11, 2.5e7, 250
# Outputs by which the kind of model is chosen, where there are more.
FEW_OUTPUTS = 3


@dataclass(frozen=True)
class Budget:
    """What `effort` allows: rows of a search, terms of a model, models of which the mean is taken, rounds of searches.

    A search takes a time in proportion to rows and terms. These grow first, and the number of models by what is left: in all
    the time grows about as the effort. Where `rounds` is given, that is how many there are.
    """

    rows: int
    terms: int
    n_models: float
    fewest_rounds: float
    rounds: int | None
    effort: float

    @classmethod
    def of(cls, effort: float, n_rows: int, rounds: int | None) -> Self:
        rounds = None if rounds is None else check_integer("n_models", rounds, 1)
        rows, terms = round(MOST_ROWS * effort**0.5), round(MOST_TERMS * effort**0.25)
        left = effort**0.75 * min(n_rows, MOST_ROWS) / min(n_rows, rows)
        n_models, fewest = OF_FEW if n_rows <= FEW_ROWS else OF_MORE
        return cls(max(2, rows), max(1, terms), n_models * left, fewest * min(1.0, left), rounds, effort)

    def work(self, rows: Rows, n_features: int) -> float:
        """The multiplications that all searches together may take, of whatever outputs: n_features are drawn for a penalty."""
        n = min(rows.n_rows, self.rows)
        once = SEARCHES + A_ROW * n + PASSES * of_a_pass(rows, n_features) * n / rows.n_rows
        return once * self.effort * (1.0 if self.rounds is None else max(1.0, self.rounds / OF_FEW[1]))

    @property
    def looked_at(self) -> int:
        """Terms of the mean of models, of which the model in fewer is found."""
        return 3 * self.terms // 2

    def n_rounds(self, kept: Mapping[int, Sequence[int]]) -> int:
        """Of the kinds that are kept, {kind: its members}: one more while the best kind is in question."""
        if self.rounds is not None:
            return self.rounds
        n_members = max(len(members) for members in kept.values())
        return max(1, round(max(self.fewest_rounds, self.n_models / n_members))) + (len(kept) > 1)


@dataclass(frozen=True)
class Sample:
    """A task, in whose weights those of the rows held out are 0; their weights, 0 for the others; share: of all, how many
    rows are fitted; unit: of y, one for all searches; factors: of each target, by which losses in its scale are in that unit;
    index: the places of these rows among all; doubt: of a loss of probabilities or of rates, what a row of which nothing is
    known counts beside the held-out ones; mean: of the target, which such a row has; of_outputs: the share of all that these
    targets are, which may have that share of the terms.

    Few rows that are all predicted right have a loss that falls to 0 as the margins grow, and rows without an event one that
    falls with the rate. With a row more a probability of 0 or 1 costs as much as if one in n + 1 rows had been of any class,
    or one more than there are events had come: n, as the rounds of a search together hold out about all rows once.
    """

    task: Task
    held: np.ndarray
    share: float
    factors: list[float]
    unit: float
    index: np.ndarray
    doubt: float = 0.0
    mean: float = 0.0
    of_outputs: float = 1.0

    @property
    def loss(self) -> Loss:
        """Of a target in its scale."""
        return self.task.loss_of(self.task.targets[0])

    @classmethod
    def of(cls, task: Task, groups: np.ndarray, validation: float, most_rows: int, rng: np.random.Generator) -> Self:
        """The rows that have a weight, or about so many of them; of each group that share of `validation` held out."""
        rows, targets, weight = task.raw, task.targets, task.weight
        n = effective(weight)
        if np.count_nonzero(weight) > most_rows:
            weight = thinned(groups, weight, most_rows, rng)
        some = np.flatnonzero(weight)
        if len(some) < rows.n_rows or not rows.in_memory:
            rows, targets, weight, groups = rows.take(some), [y[some] for y in targets], weight[some], groups[some]
        fitted, held = hold_out(groups, weight, validation, rng)
        sampled = replace(task, raw=rows, targets=targets, weight=fitted)
        unit, degree = task.scale(task.targets[0]), task.loss.degree
        factors = [(sampled.scale(y) / unit) ** degree for y in sampled.targets]
        target, share = task.targets[0], min(1.0, effective(fitted) / n)
        doubt, mean = task.loss.doubt(target, task.weight), float(task.weight @ (target / len(target)))
        return cls(sampled, held, share, factors, unit, some, doubt, mean)


def of_few_outputs(sample: Sample) -> Sample:
    """The sample of some of its outputs, evenly spaced; of classes the largest, and where they count together, all others as
    one."""
    task = sample.task
    sizes = [task.weight @ (y > 0) for y in task.targets] if task.loss.is_classifier else np.zeros(len(task.targets))
    order = np.argsort(sizes, kind="stable")[::-1] if task.loss.is_classifier else np.arange(len(sizes))
    some = order[:FEW_OUTPUTS] if task.loss.is_classifier else order[spread_evenly(len(order), FEW_OUTPUTS)]
    targets, factors = [task.targets[k] for k in some], [sample.factors[k] for k in some]
    centers = [task.centers[k] for k in some]
    if task.is_joint:
        targets.append(-np.maximum.reduce(targets))
        factors, centers = [*factors, 1.0], [*centers, 0.0]
    share = len(some) / len(task.targets)
    return replace(sample, task=replace(task, targets=targets, centers=centers), factors=factors, of_outputs=share)


def effective(weight: np.ndarray) -> float:
    """The number of rows of equal weight whose mean varies as much as the mean of these."""
    return weight.sum() ** 2 / (weight @ weight)


def errors_of_chance(task: Task, groups: np.ndarray) -> float:
    """Return how many standard errors a model must beat the constant by: the more, the fewer rows tell of the target.

    These are, of labels, all rows but those of the most frequent; of a target with the log link, events, as if they were equal.
    """
    weight, telling = task.weight, effective(task.weight)
    if task.loss.is_classifier:
        telling *= 1 - np.bincount(groups, weight).max() / weight.sum()
    elif task.loss.link == "log":
        telling = effective(weight * (task.targets[0] / task.targets[0].max()))
    return CHANCE / telling


def each_group(groups: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """The rows of each group that have a weight, shuffled."""
    for group in np.unique(groups):
        yield rng.permutation(np.flatnonzero((weight > 0) & (groups == group)))


def thinned(groups: np.ndarray, weight: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Weights of about n of the rows, 0 for the others; the same sums to expect. Of each group its share, at least two.

    A row is taken with a probability p in proportion to its weight, at most 1; its weight is then divided by p.
    """
    thin, total = np.zeros(len(weight)), weight.sum()
    for members in each_group(groups, weight, rng):
        of_these = weight[members]
        p = probabilities(of_these, max(2, round(n * float(of_these.sum() / total))))
        taken = np.diff(np.floor(np.cumsum(np.concatenate([[rng.random()], p])))) > 0
        thin[members[taken]] = of_these[taken] / p[taken]
    return thin


def probabilities(weight: np.ndarray, n: float) -> np.ndarray:
    """In proportion to the weights, at most 1, of sum n; all 1 where there are no more than n."""
    if len(weight) <= n:
        return np.ones(len(weight))
    p, certain = n * (weight / weight.sum()), np.zeros(len(weight), bool)
    while p.max() > 1:
        certain |= p > 1
        p = np.where(certain, 1.0, (n - np.count_nonzero(certain)) * (weight / weight[~certain].sum()))
    return p


def hold_out(groups: np.ndarray, weight: np.ndarray, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(weights of the rows to fit, of those held out), 0 for the others; each of mean 1. The same share of each group.

    A row of weight k is held out whole or not at all, though k copies of it would be parted: those held out would be
    predicted from their twins. In the mean over many splits, the same weight is held out.
    """
    share = max(share, min(0.5, FEWEST_HELD / np.count_nonzero(weight)))
    held = np.zeros(len(weight), bool)
    for members in each_group(groups, weight, rng):
        n = min(max(1, round(share * len(members))), len(members) - 1)
        held[members[: max(n, 0)]] = True
    if not held.any():
        raise ValueError(f"X must have rows to hold out, two of a class, got {len(weight)} in all: give more, or an alpha")
    return tuple(len(weight) * part / part.sum() for part in (weight * ~held, weight * held))
