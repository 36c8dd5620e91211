"""Down the penalties: all folds of several members side by side, each member until it predicts the
rows held out no better."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..._base.progress import ends_at, note_held_out_loss, part
from .members import Found

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._base.threads import Workers
    from ...solvers.effort import Effort
    from .fold_path import FoldPath
    from .folds import Folds
    from .held_out_loss import HeldOutLoss
    from .members import Member

# A path begins at HIGHEST times the least penalty at which all coefficients are zero.
HIGHEST = 0.9
# A path ends after PATIENCE penalties in a row that lower the loss of the rows held out by no more
# than the share NEGLIGIBLE of it; after FIRST_PATIENCE while it has not lowered it by FOUND, and no
# sooner.
PATIENCE, FIRST_PATIENCE, NEGLIGIBLE = 2, 5, 1e-3
# Where the loss is more than BEHIND times that of another member, each of them is to lower it by a
# share that takes it there in SOON penalties.
BEHIND, SOON = 1.5, 8
# A path has at most so many penalties.
MOST_ALPHAS = 40
# A path ends where folds have more terms than this in the mean, or than this share of their rows.
MOST_TERMS, TERMS_PER_ROW = 2_000, 0.6
# It also ends where folds have more weights than this: terms times classes or outputs.
MOST_WEIGHTS = 20_000
# Where the last penalty has lowered the loss by more than FALL, there are MORE times as many:
# targets without noise want them. So there are until it is lower by FOUND than at the start:
# where nothing is found, sin 30x cos 25z among 600 rows, a fold that has found nothing fills with
# terms of chance.
FALL, FOUND, MORE = 0.1, 0.05, 3.0
# Folds see the columns in several ways. Where the objective of each fold of a way, as a share of
# the constant's on the same rows, is more than WORSE times that of all folds of the best way, the
# path begins again with all folds in the best: a smooth function of a column is rough in ranks.
WORSE = 1.1
# The share of the progress bar, of what is left of it, that a penalty of all members has; nothing
# else depends on it.
SHOWN_AS_PENALTY = 0.1


@dataclass(frozen=True, eq=False)
class MemberPath:
    """The best penalty of a member, by the rows held out.

    loss : the mean loss of the rows held out there
    predictions : their margins, (n_targets, n)
    means : the means of what all folds say of these rows, which the others have seen
    found : what each fold has found there
    without : for each fold the predictions at the penalty that is best for the other folds
    of_folds : what each fold adds to the loss at each penalty, (n_penalties, n_folds)
    n_drawn : the number of features that all folds have drawn
    ended : whether a callback has ended the path
    """

    member: Member
    loss: float
    predictions: np.ndarray
    means: np.ndarray
    found: Sequence[Found]
    without: Sequence[np.ndarray]
    of_folds: np.ndarray
    n_drawn: int
    ended: bool

    @property
    def losses(self) -> np.ndarray:
        """The loss at each penalty."""
        return self.of_folds.sum(axis=1)


def follow(
    makes: Sequence[Callable[[], Member]],
    folds: Folds,
    loss: HeldOutLoss,
    effort: Effort,
    workers: Workers,
    beaten: float = np.inf,
) -> list[MemberPath]:
    """Go down the penalties with some members side by side, each fold of each by itself.

    makes : functions that make the members
    beaten : the least loss of the members before
    """
    every: list[MemberFits] = []
    for make in makes:
        if every and effort.is_late:
            effort.note_cut("members")
            break
        every.append(MemberFits(make(), folds, loss, workers))
    going, ended, is_late = every, False, False
    while going and not (ended or is_late):
        turns = [turn for fits in going for turn in fits.turns()]
        with part(SHOWN_AS_PENALTY):
            for fit in list(workers.map(partial(_turn, effort.deadline), turns)):
                if not ended:
                    fit.tell()
                    ended = fit.ended
        is_late = effort.is_late
        for fits in going:
            fits.judge(beaten, may_begin_again=not (ended or is_late))
        note_held_out_loss(loss.in_units_of_y(min(beaten, *(fits.loss for fits in every))))
        going = [fits for fits in going if not fits.is_done]
    if is_late and going:
        effort.note_cut("paths of penalties", len(going))
    effort.note_finished(len(every) - len(going))
    return [fits.path(ended) for fits in every]


def _turn(deadline, turn):
    """Fit with a penalty, as far as the time allows; return the fit."""
    fit, alpha, times = turn
    with ends_at(deadline):
        fit.turn_to(alpha, times)
    return fit


class MemberFits:
    """The fits of a member on all folds, on their way down the penalties.

    loss : the least mean loss of the rows held out so far
    is_done : whether they have come to the end of the path
    """

    loss: float
    is_done: bool

    def __init__(self, member: Member, folds: Folds, loss: HeldOutLoss, workers: Workers):
        self._folds, self._loss, self._workers = folds, loss, workers
        self._shares = [folds.share(k) for k in range(len(folds))]
        self._begin(member)

    def _begin(self, member):
        """Begin at the first penalty."""
        folds = self._folds
        self._member, every = member, range(len(folds))
        self._fits = list(self._workers.map(partial(member.fold_fit, folds), every))
        largest = self._workers.map(lambda fit: fit.largest_alpha(), self._fits)
        self._alpha = HIGHEST * (max(largest) or 1.0)
        self._of_constant = np.array([fit.objective() for fit in self._fits])
        self.loss, self.is_done, self._waited = np.inf, False, 0
        self._of_folds, self._losses, self._without = [], [], [None] * len(folds)
        self._least_of_others = np.full(len(folds), np.inf)

    def turns(self) -> list[tuple[FoldPath, float, float]]:
        """Return what is to be done at this penalty: (fit, penalty, how many times the draws)."""
        times = MORE if _wants_draws(self._losses) else 1.0
        return [(fit, self._alpha, times) for fit in self._fits]

    def judge(self, beaten: float, may_begin_again: bool) -> None:
        """Take the penalty where it is the best so far; turn to the next, or end.

        beaten : the least loss of the members before
        may_begin_again : whether all folds may begin again in the better way to see the columns
        """
        way, n_ways = None, self._member.n_ways
        if may_begin_again and n_ways > 1:
            way = _way_alone([fit.objective() for fit in self._fits] / self._of_constant, n_ways)
        if way is not None:
            self._begin(self._member.in_way(way))
            return
        margins = [fit.margins() for fit in self._fits]
        predictions = self._folds.predictions(margins)
        of_folds = self._loss.of_each_fold(predictions)
        here = float(of_folds.sum())
        self._of_folds.append(of_folds)
        self._losses.append(here)
        for k in np.flatnonzero(here - of_folds < self._least_of_others):
            self._least_of_others[k], self._without[k] = here - of_folds[k], predictions
        is_worth = here < self.loss * _worth(here, beaten)
        self._waited = 0 if is_worth else self._waited + 1
        if here < self.loss:
            found = [
                Found(self._alpha, share, fit.state())
                for share, fit in zip(self._shares, self._fits, strict=True)
            ]
            self.loss, self._best = here, (predictions, self._folds.means(margins), found)
        self._alpha *= self._member.fall
        self._n_drawn = sum(fit.n_drawn for fit in self._fits)
        self.is_done = self._has_waited() or self._is_full() or len(self._losses) == MOST_ALPHAS
        if self.is_done:
            self._fits = []  # which hold the values of their terms

    def _has_waited(self):
        """Return whether too many penalties have not lowered the loss enough."""
        is_early = len(self._losses) < FIRST_PATIENCE or not _has_found(self._losses)
        return self._waited >= (FIRST_PATIENCE if is_early else PATIENCE)

    def _is_full(self):
        """Return whether the folds have more terms in the mean than they may."""
        task = self._folds.task
        of_rows = TERMS_PER_ROW * min(self._shares) * len(task.weight)
        most = min(MOST_TERMS, of_rows, MOST_WEIGHTS / len(task.targets))
        return np.mean([fit.n_terms for fit in self._fits]) > most

    def path(self, ended: bool) -> MemberPath:
        """Return the best penalty; ended : whether a callback has ended the path."""
        done = self._without, np.array(self._of_folds), self._n_drawn, ended
        return MemberPath(self._member, self.loss, *self._best, *done)


def _way_alone(objectives, n_ways):
    """Return the better way to see the columns where each fold of another is worse than all of its
    folds, by their objectives; else None."""
    of_ways = [objectives[way::n_ways] for way in range(n_ways)]
    best = int(np.argmin([max(each, default=np.inf) for each in of_ways]))
    most = WORSE * np.abs(max(of_ways[best], default=np.inf))
    return best if any(min(each, default=0.0) > most for each in of_ways) else None


def _wants_draws(losses):
    """Return whether there are to be more draws, by the losses at the penalties before."""
    return len(losses) > 1 and (losses[-1] < (1 - FALL) * losses[-2] or not _has_found(losses))


def _has_found(losses):
    """Return whether a path has lowered the loss by more than noise might."""
    return losses[-1] <= (1 - FOUND) * losses[0]


def _worth(here, beaten):
    """Return the share of the best loss below which a loss is worth going on."""
    near = max(BEHIND * beaten, 0.0)
    return min(1 - NEGLIGIBLE, (near / here) ** (1 / SOON) if here > near else 1.0)
