"""The kinds of models that a search tries, and which of them predict held-out rows best: one, or the mean of several."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Self

import numpy as np

from .sparse_rf_mean import mean_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .._types import L1FitLike, State
    from ..task import Task
    from .sparse_rf_samples import Sample


@dataclass(frozen=True, eq=False)
class Member:
    """Fits of one kind of model, of a task of these views: fits(task, number of the search). work: expected, as a share."""

    views: np.ndarray | None
    fits: Callable[[Task, int], Sequence[L1FitLike]]
    work: float = 1.0


class HeldOut:
    """What has losses, of each row, and held, the weights of the rows held out."""

    losses: np.ndarray
    held: np.ndarray

    @property
    def loss(self) -> float:
        """Of the held-out rows, in the mean."""
        return float(np.mean(self.held * self.losses))

    def gain_over(self, other: HeldOut) -> tuple[float, float]:
        """(by how much it predicts the held-out rows better, the standard error of that), in the same unit."""
        inside = self.held > 0
        gain, share = (other.losses - self.losses)[inside], self.held[inside] / self.held.sum()
        unit = np.abs(gain).max() or 1.0  # no square over- or underflows
        gain = gain / unit
        mean = share @ gain
        return unit * mean, unit * np.sqrt(share**2 @ (gain - mean) ** 2)


@dataclass(frozen=True, eq=False)
class Choice(HeldOut):
    """What one member found in one search: the point of its path that predicts the held-out rows best.

    alpha : the penalty
    margins : of each target, at each row, less the mean of the target where that was taken from it
    losses_of : a function of such margins, the loss of each row, of y in the unit of the sample; losses : of these
    states : of each fit, from where to go on; of one of all classes, a list
    held : weights of the rows held out; share : of all rows, how many were fitted
    """

    alpha: float
    margins: np.ndarray
    losses_of: Callable[[np.ndarray], np.ndarray]
    losses: np.ndarray
    states: list[State | list[State]]
    held: np.ndarray
    share: float

    @classmethod
    def of(cls, fits: Sequence[L1FitLike], alpha: float, sample: Sample) -> Self:
        margins, states = np.vstack([fit.margins() for fit in fits]), [fit.state() for fit in fits]
        losses_of = partial(losses_at, sample, np.vstack([fit.target() for fit in fits]))
        return cls(alpha, margins, losses_of, losses_of(margins), states, sample.held, sample.share)


def losses_at(sample: Sample, targets: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """Of each row, with its share of the row of any label."""
    losses = sample.loss.value(margins, targets)
    if sample.doubt:
        losses = (1 - sample.doubt) * losses + sample.doubt * sample.loss.of_any_label(margins)
    return (losses * np.array(sample.factors)[:, None]).sum(axis=0)


@dataclass(frozen=True, eq=False)
class Mixture(HeldOut):
    """What some members of a kind predict in one search, in the mean: the losses of the rows."""

    losses: np.ndarray
    held: np.ndarray

    @classmethod
    def of(cls, choices: Sequence[Choice]) -> Self:
        margins = sum(choice.margins / len(choices) for choice in choices)
        return cls(choices[0].losses_of(margins), choices[0].held)


def best_mean(searches: Sequence[Mapping[int, Choice]]) -> tuple[tuple[int, ...], list[Mixture]]:
    """(the members whose mean predicts the held-out rows best, the `Mixture` of each search).

    searches : of each, {member: its Choice}
    """
    members = sorted(set.intersection(*map(set, searches)))
    subsets = [some for n in range(1, len(members) + 1) for some in combinations(members, n)]
    mixtures = [[Mixture.of([choices[member] for member in some]) for choices in searches] for some in subsets]
    best = int(np.argmin([mean_value([mixture.loss for mixture in of_searches]) for of_searches in mixtures]))
    return subsets[best], mixtures[best]


def in_question(mixtures: Mapping[int, Sequence[Mixture]]) -> list[int]:
    """Of some kinds, the best and those simpler, which come before it, that are worse by at most a standard error.

    mixtures: of each kind the Mixture of each search so far, as many as there are of all.
    """
    n = min(map(len, mixtures.values()))
    best = min(mixtures, key=lambda kind: mean_value([mixture.loss for mixture in mixtures[kind][:n]]))
    kept = []
    for kind in mixtures:
        pairs = zip(mixtures[best], mixtures[kind][:n], strict=False)
        gains = np.array([mixture.gain_over(other) for mixture, other in pairs])
        if kind == best or gains[:, 0].sum() <= np.hypot.reduce(gains[:, 1]):
            kept.append(kind)
        if kind == best:
            return kept
