"""The kinds of models that a search tries, and which of them predict held-out rows best: one, or the mean of several."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Self

import numpy as np

from .mean import mean_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..task import Task
    from .descent import L1FitLike
    from .fit import State
    from .samples import Sample


@dataclass(frozen=True, eq=False)
class Member:
    """Fits of one kind of model, of a task of these views: fits(task, number of the search).

    work : expected, as a share
    is_constant : whether the fits stay without a term
    """

    views: np.ndarray | None
    fits: Callable[[Task, int], Sequence[L1FitLike]]
    work: float = 1.0
    is_constant: bool = False


class HeldOut:
    """What has losses, of each row, held, the weights of the rows held out, and index, the places of the rows among all."""

    losses: np.ndarray
    held: np.ndarray
    index: np.ndarray

    @property
    def loss(self) -> float:
        """Of the held-out rows, in the mean."""
        return float(np.mean(self.held * self.losses))


def gain(better: Sequence[HeldOut], worse: Sequence[HeldOut]) -> tuple[float, float]:
    """Return by how much one predicts the held-out rows of some searches better than another, and the standard error of that.

    A row that several searches held out counts as one, with the mean of its gains. The error is infinite where one row has all
    the weight: of how much the gain varies, nothing is known then.
    """
    gains = np.concatenate([(w.losses - b.losses)[b.held > 0] for b, w in zip(better, worse, strict=True)])
    shares = np.concatenate([b.held[b.held > 0] / b.held.sum() for b in better]) / len(better)
    _, row = np.unique(np.concatenate([b.index[b.held > 0] for b in better]), return_inverse=True)
    unit = np.abs(gains).max() or 1.0  # no square over- or underflows
    share = np.bincount(row, shares)
    each = np.bincount(row, shares * (gains / unit)) / share
    mean, alone = share @ each, share @ share
    if alone >= 1 - 1e-12:
        return unit * mean, np.inf
    return unit * mean, unit * np.sqrt(share**2 @ (each - mean) ** 2 / (1 - alone))


@dataclass(frozen=True, eq=False)
class Choice(HeldOut):
    """What one member found in one search: the point of its path that predicts the held-out rows best.

    alpha : the penalty
    margins : of each target, at each row
    losses_of : a function of such margins, the loss of each row, of y in the unit of the sample; losses : of these
    states : of each fit, from where to go on; of one of all classes, a list
    held : weights of the rows held out; index : the places of the rows; share : of all rows, how many were fitted
    """

    alpha: float
    margins: np.ndarray
    losses_of: Callable[[np.ndarray], np.ndarray]
    losses: np.ndarray
    states: list[State | list[State]]
    held: np.ndarray
    index: np.ndarray
    share: float

    @classmethod
    def of(cls, fits: Sequence[L1FitLike], alpha: float, sample: Sample) -> Self:
        margins, states = np.vstack([fit.margins() for fit in fits]), [fit.state() for fit in fits]
        losses_of = partial(losses_at, sample, np.vstack([fit.target() for fit in fits]))
        return cls(alpha, margins, losses_of, losses_of(margins), states, sample.held, sample.index, sample.share)


def losses_at(sample: Sample, targets: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """Return the loss of each row, with its share of the row of which nothing is known."""
    losses = sample.loss.value(margins, targets)
    if sample.doubt:
        losses = (1 - sample.doubt) * losses + sample.doubt * sample.loss.of_unknown_row(margins, sample.mean)
    return (losses * np.array(sample.factors)[:, None]).sum(axis=0)


@dataclass(frozen=True, eq=False)
class Mixture(HeldOut):
    """What some members of a kind predict in one search, in the mean: the losses of the rows."""

    losses: np.ndarray
    held: np.ndarray
    index: np.ndarray

    @classmethod
    def of(cls, choices: Sequence[Choice]) -> Self:
        margins, first = sum(choice.margins / len(choices) for choice in choices), choices[0]
        return cls(first.losses_of(margins), first.held, first.index)


def best_mean(searches: Sequence[Mapping[int, Choice]]) -> tuple[tuple[int, ...], list[Mixture]]:
    """(the members whose mean predicts the held-out rows best, the `Mixture` of each search).

    searches : of each, {member: its Choice}
    """
    members = sorted(set.intersection(*map(set, searches)))
    subsets = [some for n in range(1, len(members) + 1) for some in combinations(members, n)]
    mixtures = [[Mixture.of([choices[member] for member in some]) for choices in searches] for some in subsets]
    best = int(np.argmin([mean_value([mixture.loss for mixture in of_searches]) for of_searches in mixtures]))
    return subsets[best], mixtures[best]


def in_question(mixtures: Mapping[int, Sequence[Mixture]], errors: float) -> list[int]:
    """Return of some kinds those that may be the best, simplest first, of which another search can tell.

    They are the best, those simpler, which come before it, that may be as good, and where the constant is the best the next
    best that may be as good: one search alone may miss a signal.

    mixtures: of each kind the Mixture of each search so far, as many as there are of all; errors: so many standard errors worse
    may the constant, kind 0, be, and each other kind one.
    """
    n = min(map(len, mixtures.values()))
    ranked = sorted(mixtures, key=lambda kind: mean_value([mixture.loss for mixture in mixtures[kind][:n]]))
    best, rivals = ranked[0], [kind for kind in mixtures if kind < ranked[0]] or ranked[1:2]

    def may_be_as_good(kind):
        more, error = gain(mixtures[best][:n], mixtures[kind][:n])
        return more <= (error if kind else errors * error)

    return sorted([best, *filter(may_be_as_good, rivals)])
