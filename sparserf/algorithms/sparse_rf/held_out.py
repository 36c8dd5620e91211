"""Rows that are held out: which rows a search looks at and which of them it holds out, and what
predicts these best.

A `Sample` is drawn for each round of searches (`Samples`): of many rows it takes about
`Budget.rows` (`thinned`), and of these it holds out the share `validation`, 0.1 by default, the
same share of each class (`hold_out`), or whole groups. Each round draws its rows anew, so that the
rows held out in two rounds may overlap. Where the user says which rows to fit and which to hold
out, each round takes one such `Split`. The sample of a race fits few of its rows. The losses on the
rows held out (`HeldOutLosses`) choose the best penalty of a path and, with the standard error of a
difference (`gain`), the best kind of model (`in_question`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, cycle
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..._base.splits import draw_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..._base.splits import Split
    from ...model import FitInfo
    from ..task import Task
    from .descent import BaseL1Fit

# The fewest rows that are held out, where that is no more than half of the rows: on very few rows
# chance decides which model is the best.
FEWEST_HELD = 10
# A model must beat the constant by ERRORS_TIMES_ROWS / n standard errors, where n is the number of
# informative rows (`errors_to_beat_constant`): on few rows the best point of a path owes much to
# chance. Chosen among 10 to 50 on rare events and 4 to 300 rows of noise, beside weak signals in 10
# to 1,000 rows.
ERRORS_TIMES_ROWS = 30.0
# With groups, n is the number of informative groups, but no more than this number of errors is
# asked for, unless rows alone would. With 1 a model was chosen in .83 of 30 draws of 3 groups of
# 100 rows with a signal (R^2 .17), and in .47 of 5 groups of 40 rows of noise; with 2 in .50 and
# .43; with 0 in .97 and .67.
MOST_ERRORS_OF_GROUPS = 1.0
# The number of outputs on which kinds of models are compared first, where there are many.
FEW_OUTPUTS = 3
# The most candidates whose mean is taken: MOST_IN_MEAN in all, MOST_OF_A_KIND of them of one kind.
# With three in each of several rounds, many models are in the mean already. Two learned ones and a
# linear one hardly take longer than the two.
MOST_IN_MEAN, MOST_OF_A_KIND = 3, 2
# Where a mean has a term for each row, it must be better than the best without by a standard error,
# and by this share of the loss.
WORTH_MANY_TERMS = 0.02
NO_ROWS = np.zeros(0, np.intp)


@dataclass(frozen=True)
class Sample:
    """The rows of a round of searches, of which some are held out.

    task : the task of these rows; rows that are held out have weight 0 in it, so that their
        predictions come with the fit
    held : the weights of the rows held out, 0 for the others, of mean 1
    share : the share of all rows that is fitted, counted by weight
    factors : for each target, the factor that turns losses in its own unit into losses in `unit`
    unit : the unit of y, one for all searches
    index : the indices of these rows among all
    pseudo_weight : the weight of the pseudo-row (see below), for a loss of probabilities or rates;
        else 0
    mean : the mean of the target, which the pseudo-row has (with a log link and offsets, the mean
        rate)
    of_outputs : the share of all targets that the sample has; they may have that share of the terms

    Where a few rows are all predicted right, their loss falls to 0 as the margins grow; and where
    no row has an event, it falls with the rate. A pseudo-row, one more held-out row whose target is
    unknown, prevents that: a probability of 0 or 1 costs as much as if one in n + 1 rows had been
    of any class, or as if one more event had come. Here n counts all rows, not those alone that are
    held out in one round.
    """

    task: Task
    held: np.ndarray
    share: float
    factors: list[float]
    unit: float
    index: np.ndarray
    pseudo_weight: float = 0.0
    mean: float = 0.0
    of_outputs: float = 1.0

    @classmethod
    def draw(
        cls,
        task: Task,
        strata: np.ndarray,
        validation: float | Split,
        most_rows: int,
        rng: np.random.Generator,
        *,
        most_fitted: float = np.inf,
        fitted_before: np.ndarray = NO_ROWS,
    ) -> Self:
        """Draw about `most_rows` of the rows that have a weight, or take all; hold out some of
        them.

        strata : the stratum of each row (`strata_of`)
        validation : the share of each stratum that is held out; or the masks of the rows to fit and
            to hold out, of which all others are left out
        most_fitted : about the most rows that are fitted
        fitted_before : indices of rows, ascending, that a race has fitted; others are held out
            before them
        """
        rows, targets, weight, offset, groups = (
            task.raw,
            task.targets,
            task.weight,
            task.offset,
            task.groups,
        )
        n, is_share = effective(weight), isinstance(validation, float)
        if not is_share:
            weight = weight * (validation[0] | validation[1])
        # of a split the sample has rows of either part of each stratum
        if np.count_nonzero(weight) > most_rows:
            weight = thinned(
                strata if is_share else 2 * strata + validation[1], weight, most_rows, rng
            )
        some = np.flatnonzero(weight)
        weight, strata, groups = (
            weight[some],
            strata[some],
            None if groups is None else groups[some],
        )
        if is_share:
            fitted, held = hold_out(
                strata, weight, validation, rng, groups, np.isin(some, fitted_before)
            )
        else:
            fitted, held = weights_of_parts(weight, validation[1][some])
        if np.count_nonzero(fitted) > most_fitted:
            fitted = thinned(strata, fitted, most_fitted, rng)
            used = np.flatnonzero(fitted + held)
            some, groups = some[used], None if groups is None else groups[used]
            fitted, held = fitted[used] / fitted[used].mean(), held[used] / held[used].mean()
        if len(some) < rows.n_rows or not rows.in_memory:
            rows, targets = rows.take(some), [y[some] for y in targets]
            offset = None if offset is None else offset[some]
        sampled = replace(
            task, raw=rows, targets=targets, weight=fitted, offset=offset, groups=groups
        )
        unit, degree = task.unit(task.targets[0]), task.loss.degree
        factors = [(sampled.unit(y) / unit) ** degree for y in sampled.targets]
        (target, *_), weight = task.rates()
        share, pseudo_weight = (
            min(1.0, effective(fitted) / n),
            task.loss.doubt(task.targets[0], task.weight),
        )
        mean = float(weight @ (target / len(target)))
        return cls(sampled, held, share, factors, unit, some, pseudo_weight, mean)

    def of_few_outputs(self) -> Self:
        """Return the sample with FEW_OUTPUTS of its targets: for classes the largest, for real
        targets evenly spaced ones.

        Where classes are fitted together, all others are one more class.
        """
        task = self.task
        sizes = (
            [task.weight @ (y > 0) for y in task.targets]
            if task.loss.is_classifier
            else np.zeros(len(task.targets))
        )
        order = (
            np.argsort(sizes, kind="stable")[::-1]
            if task.loss.is_classifier
            else np.arange(len(sizes))
        )
        some = (
            order[:FEW_OUTPUTS]
            if task.loss.is_classifier
            else order[np.arange(FEW_OUTPUTS) * len(order) // FEW_OUTPUTS]
        )
        targets, factors = [task.targets[k] for k in some], [self.factors[k] for k in some]
        centers = [task.centers[k] for k in some]
        if task.is_joint:
            targets.append(-np.maximum.reduce(targets))
            factors, centers = [*factors, 1.0], [*centers, 0.0]
        share = len(some) / len(task.targets)
        return replace(
            self,
            task=replace(task, targets=targets, centers=centers),
            factors=factors,
            of_outputs=share,
        )

    def losses_at(self, margins: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the loss of each row at these margins (n_targets, n_rows), added up over targets,
        in the unit of the sample.

        The loss of the pseudo-row is shared among all rows.
        """
        loss = self.task.loss_of(self.task.targets[0])
        losses = loss.value(margins, targets)
        if self.pseudo_weight:
            unknown = self.task.losses_of_unknown_row(margins, self.mean)
            losses = (1 - self.pseudo_weight) * losses + self.pseudo_weight * unknown
        return (losses * np.array(self.factors)[:, None]).sum(axis=0)


# Which rows


class Samples:
    """The samples of the rounds of searches.

    task : the task of all rows
    strata : the stratum of each row (`strata_of`)
    validation : the share that each round holds out, of rows drawn anew; or the splits of which
        each round takes one, from the last to the first and then again: where rows are in time
        order, the last has the most rows to fit
    most_rows : about the most rows of a sample
    """

    def __init__(
        self,
        task: Task,
        strata: np.ndarray,
        validation: float | Sequence[Split],
        most_rows: int,
        rng: np.random.Generator,
    ):
        self._of_rounds = cycle([validation] if isinstance(validation, float) else validation[::-1])
        self._first = validation if isinstance(validation, float) else validation[-1]
        self._about, self._how, self._fitted_before = (task, strata), (most_rows, rng), NO_ROWS
        self.n_rows: int = min(most_rows, np.count_nonzero(task.weight))
        # Whether no round holds out a row that a race has fitted.
        self.may_go_on: bool = isinstance(validation, float) and task.groups is None

    def race(self, most_fitted: int) -> Sample:
        """Draw the sample of a race, which fits about this number of rows. Further rounds hold out
        other rows than these."""
        sample = Sample.draw(*self._about, self._first, *self._how, most_fitted=most_fitted)
        if self.may_go_on:
            self._fitted_before = sample.index[np.flatnonzero(sample.task.weight)]
        return sample

    def of_next_round(self) -> Sample:
        """Draw the sample of the next round."""
        return Sample.draw(
            *self._about, next(self._of_rounds), *self._how, fitted_before=self._fitted_before
        )


def strata_of(task: Task) -> np.ndarray:
    """Return the stratum of each row: its class or, with a log link, whether its count is above 0.

    A sample takes, and holds out, the same share of each stratum.
    """
    if task.loss.link == "log":
        return (task.targets[0] > 0).astype(np.intp)
    classes = task.targets if task.loss.is_classifier else ()
    return np.argmax([np.zeros(task.raw.n_rows), *classes], axis=0)


def splits_of_task(splits: Sequence[Split], task: Task, strata: np.ndarray) -> list[Split]:
    """Return splits of all rows of X as splits of the rows of a task; raise a ValueError where one
    has too few rows.

    Of rows of positive weight each needs some in either part, and to fit some of each class or,
    with a log link, an event.
    """
    splits = [(fitted[task.index], held[task.index]) for fitted, held in splits]
    for k, (fitted, held) in enumerate(splits):
        for what, part in (("fit", fitted), ("hold out", held)):
            if not part.any():
                raise ValueError(
                    f"validation must have rows of positive weight to {what} in each pair, got "
                    f"none in pair {k}"
                )
        if task.loss.is_classifier and len(missing := np.setdiff1d(strata, strata[fitted])):
            label = task.classes[missing[0] - (len(task.classes) > 2)].item()
            raise ValueError(
                "validation must have rows of each class to fit in each pair, got none of "
                f"{label!r} in pair {k}"
            )
        if task.loss.link == "log" and not strata[fitted].any():
            raise ValueError(
                "validation must have rows to fit with y above 0 in each pair, got none in pair "
                f"{k}"
            )
    return splits


def effective(weight: np.ndarray) -> float:
    """Return the number of rows of equal weight whose mean varies as much as the mean of rows with
    these weights."""
    return weight.sum() ** 2 / (weight @ weight)


def each_stratum(
    strata: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Yield the rows of each stratum that have a weight, shuffled."""
    for stratum in np.unique(strata):
        yield rng.permutation(np.flatnonzero((weight > 0) & (strata == stratum)))


def thinned(strata: np.ndarray, weight: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return weights of about n of the rows, 0 for the others, under which sums have the same
    expectation.

    Each stratum has its share of the rows, at least two. A row is taken with a probability p in
    proportion to its weight, at most 1; its weight is then divided by p.
    """
    thin, total = np.zeros(len(weight)), weight.sum()
    for members in each_stratum(strata, weight, rng):
        of_stratum = weight[members]
        p = sampling_probabilities(of_stratum, max(2, round(n * float(of_stratum.sum() / total))))
        taken = np.diff(np.floor(np.cumsum(np.concatenate([[rng.random()], p])))) > 0
        thin[members[taken]] = of_stratum[taken] / p[taken]
    return thin


def sampling_probabilities(weight: np.ndarray, n: float) -> np.ndarray:
    """Return the probability of each row: in proportion to its weight, at most 1, of sum n; all 1
    for at most n rows."""
    if len(weight) <= n:
        return np.ones(len(weight))
    p, certain = n * (weight / weight.sum()), np.zeros(len(weight), bool)
    while p.max() > 1:
        certain |= p > 1
        p = np.where(
            certain, 1.0, (n - np.count_nonzero(certain)) * (weight / weight[~certain].sum())
        )
    return p


def hold_out(
    strata: np.ndarray,
    weight: np.ndarray,
    share: float,
    rng: np.random.Generator,
    groups: np.ndarray | None = None,
    last: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of the rows to fit and of those held out, 0 for the others, each of mean
    1.

    By default `sparse_rf` holds out rows by this function: of each stratum the same share, at
    random, in all at least FEWEST_HELD rows where that is no more than half. A row of weight k is
    held out whole or not at all, as k copies of it should be: copies that are held out would be
    predicted from their twins. In the mean over many splits, the same weight is held out. Rows of a
    group are held out together, about the same share of all rows and of each stratum.

    last : a mask of the rows of which none is held out where there are enough others
    """
    share = max(share, min(0.5, FEWEST_HELD / np.count_nonzero(weight)))
    held = np.zeros(len(weight), bool)
    if groups is not None:
        some = np.flatnonzero(weight)
        held[some] = draw_groups(groups[some], strata[some], share, rng)
        return weights_of_parts(weight, held)
    for members in each_stratum(strata, weight, rng):
        n = min(max(1, round(share * len(members))), len(members) - 1)
        members = members if last is None else members[np.argsort(last[members], kind="stable")]
        held[members[: max(n, 0)]] = True
    if not held.any():
        raise ValueError(
            f"X must have rows to hold out, two of a class, got {len(weight)} in all: give more, "
            "or an alpha"
        )
    return weights_of_parts(weight, held)


def weights_of_parts(weight: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of the rows to fit and of those held out, a mask, 0 for the others, each
    of mean 1."""
    return tuple(len(weight) * part / part.sum() for part in (weight * ~held, weight * held))


# What predicts them best


@dataclass(frozen=True, eq=False)
class HeldOutLosses:
    """The losses of one model, or of the mean of several, on the rows of a sample.

    losses : the loss of each row, held out or not
    held : the weights of the rows held out, 0 for the others, of mean 1
    index : the indices of the rows among all
    groups : the group of each row, or None
    """

    losses: np.ndarray
    held: np.ndarray
    index: np.ndarray
    groups: np.ndarray | None = field(default=None, kw_only=True)

    @property
    def loss(self) -> float:
        """The mean loss of the rows held out."""
        return float(np.mean(self.held * self.losses))


@dataclass(frozen=True, eq=False)
class PathPoint(HeldOutLosses):
    """One penalty of a path: what the fits predict there, and from where they can go on.

    alpha : the penalty
    share : the share of all rows that was fitted, counted by weight
    margins : the margins of each target, at each row
    losses_at : a function of such margins that returns the loss of each row
    states : for each fit, the state that its `adopt` takes
    infos : for each fit, its `FitInfo` there
    is_shared : whether all classes share their terms, with a penalty on squares (`shared.py`)
    is_large : whether it has a term for each row
    """

    alpha: float
    share: float
    margins: np.ndarray
    losses_at: Callable[[np.ndarray], np.ndarray]
    states: list[Any]
    infos: Sequence[FitInfo] = ()
    is_shared: bool = False
    is_large: ClassVar[bool] = False

    @property
    def n_terms(self) -> int:
        """The number of terms of the fit that has the most."""
        return max((info.n_nonzero for info in self.infos), default=0)

    @classmethod
    def from_fits(cls, fits: Sequence[BaseL1Fit], alpha: float, sample: Sample) -> Self:
        """Return the point of a path at the current iterates of these fits to a sample."""
        margins, states = np.vstack([fit.margins() for fit in fits]), [fit.state() for fit in fits]
        targets = np.vstack([fit.target() for fit in fits])
        losses_at = partial(sample.losses_at, targets=targets)
        infos = [fit.info(certified=False) for fit in fits]
        return cls(
            losses_at(margins),
            sample.held,
            sample.index,
            alpha,
            sample.share,
            margins,
            losses_at,
            states,
            infos,
            groups=sample.task.groups,
        )


def best_mean(
    searches: Sequence[Mapping[tuple[int, int], PathPoint]], kind: int
) -> tuple[tuple[tuple[int, int], ...], list[HeldOutLosses]]:
    """Return the candidates whose mean predicts the held-out rows best, and its losses in each
    search.

    They are candidates of a kind or of simpler ones, but for the constant, kind 0, which is alone:
    at most MOST_IN_MEAN, and MOST_OF_A_KIND of each.

    searches : for each search, {(kind, number of the candidate): its best point}
    """
    names = sorted(set.intersection(*map(set, searches)))
    names = [name for name in names if name[0] == kind or 0 < name[0] < kind]
    subsets = [some for n in range(1, MOST_IN_MEAN + 1) for some in combinations(names, n)]
    subsets = [
        some for some in subsets if max(Counter(of for of, _ in some).values()) <= MOST_OF_A_KIND
    ]
    losses = []  # of the mean of each subset, in each search
    for some in subsets:
        of_searches = []
        for points in searches:
            first = points[some[0]]
            margins = sum(points[name].margins / len(some) for name in some)
            of_searches.append(
                HeldOutLosses(
                    first.losses_at(margins), first.held, first.index, groups=first.groups
                )
            )
        losses.append(of_searches)
    means = [mean_value([each.loss for each in of_searches]) for of_searches in losses]
    simple = [
        k
        for k, some in enumerate(subsets)
        if not any(searches[0][candidate].is_large for candidate in some)
    ]
    best, best_simple = int(np.argmin(means)), min(simple, key=means.__getitem__, default=None)
    if best_simple is not None:
        more, error = gain(losses[best], losses[best_simple])
        best = best if more > max(error, WORTH_MANY_TERMS * means[best_simple]) else best_simple
    return subsets[best], losses[best]


def gain(better: Sequence[HeldOutLosses], worse: Sequence[HeldOutLosses]) -> tuple[float, float]:
    """Return the mean gain of one model over another on the rows held out, and its standard error.

    A row that several searches held out counts as one, with the mean of its gains; and so does a
    group, where rows of more than one were held out. The error is infinite where one row has all
    the weight, since then nothing is known of how much the gain varies.

    better, worse : the losses of either model in each search
    """
    gains = np.concatenate(
        [(w.losses - b.losses)[b.held > 0] for b, w in zip(better, worse, strict=True)]
    )
    shares = np.concatenate([b.held[b.held > 0] / b.held.sum() for b in better]) / len(better)
    _, row = np.unique(np.concatenate([b.index[b.held > 0] for b in better]), return_inverse=True)
    if better[0].groups is not None:
        names, group = np.unique(
            np.concatenate([b.groups[b.held > 0] for b in better]), return_inverse=True
        )
        row = group if len(names) > 1 else row
    unit = np.abs(gains).max() or 1.0  # no square over- or underflows
    share = np.bincount(row, shares)
    each = np.bincount(row, shares * (gains / unit)) / share
    mean, alone = share @ each, share @ share
    if alone >= 1 - 1e-12:
        return unit * mean, np.inf
    return unit * mean, unit * np.sqrt(share**2 @ (each - mean) ** 2 / (1 - alone))


def in_question(losses: Mapping[int, Sequence[HeldOutLosses]], errors: float) -> list[int]:
    """Return the kinds of models among which another search has to decide, simplest first.

    The kinds are the best one so far, and each simpler one that may be as good. Where the constant
    is the best, the next best is returned, too, if it may be as good, since one search alone may
    miss a signal. A kind may be as good as the best where its loss is higher by at most one
    standard error of the difference; the constant, kind 0, by at most `errors` of them.

    losses : {kind: its losses in each search so far}; only as many searches are compared as all
        kinds took part in
    """
    n = min(map(len, losses.values()))
    mean_losses = {kind: mean_value([each.loss for each in losses[kind][:n]]) for kind in losses}
    ranked = sorted(losses, key=mean_losses.__getitem__)
    best, kept = ranked[0], [ranked[0]]
    for kind in [kind for kind in losses if kind < best] or ranked[1:2]:
        more, error = gain(losses[best][:n], losses[kind][:n])
        if more <= (error if kind else errors * error):
            kept.append(kind)
    return sorted(kept)


def errors_to_beat_constant(task: Task, strata: np.ndarray) -> float:
    """Return by how many standard errors a model must beat the constant: the fewer informative
    rows, the more.

    With labels, the informative rows are all but the rows of the most frequent class; with the log
    link, their number is that of equal events that would vary as much as the target. Rows of a
    group inform as one row: see MOST_ERRORS_OF_GROUPS.
    """
    weight, rare, size = task.weight, 1.0, 1.0
    if task.loss.is_classifier:
        rare = max(1 - np.bincount(strata, weight).max() / weight.sum(), np.finfo(float).eps)
    elif task.loss.link == "log":
        size = task.targets[0] / task.targets[0].max()
    errors = ERRORS_TIMES_ROWS / (rare * effective(weight * size))
    if task.groups is None:
        return errors
    of_groups = ERRORS_TIMES_ROWS / (rare * effective(np.bincount(task.groups, weight * size)))
    return max(errors, min(of_groups, MOST_ERRORS_OF_GROUPS))


def mean_value(values: Sequence[float]) -> float:
    """Return the mean of numbers whose sum may overflow."""
    return float(sum(value / len(values) for value in values))
