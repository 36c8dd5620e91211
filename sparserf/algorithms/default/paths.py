"""Down the penalties: all folds of a member together, until the rows held out are predicted no
better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..._base.progress import ends_at, note_held_out_loss, part
from ..chosen_on_folds import Taken
from .members import Found

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..._base.threads import Workers
    from ...solvers.effort import Effort
    from ..folds import Folds
    from ..held_out_loss import HeldOutLoss
    from .members import Member

# A path begins at HIGHEST times the least penalty at which all coefficients are zero.
HIGHEST = 0.9
# A path ends after as many penalties as a member has patience for (`Member.patience`) that together
# lower the loss of the rows held out by no more than the share NEGLIGIBLE of it.
NEGLIGIBLE = 1e-3
# Where the loss is more than BEHIND times that of another member, they are to lower it by the share
# FALL.
BEHIND = 1.5
# A path has at most so many penalties.
MOST_ALPHAS = 80
# A path ends where folds have more terms than `Member.most_terms` in the mean, or than this share
# of their rows.
TERMS_PER_ROW = 0.6
# With more rows held out, and more terms, half the patience will do: chance is less, and a penalty
# costs more.
MANY_HELD, MANY_TERMS = 8_000, 500
# It also ends where folds have more weights than this: terms times classes or outputs.
MOST_WEIGHTS = 20_000
# Where the last penalty has lowered the loss by more than FALL, there are MORE times as many:
# targets without noise want them. So there are until it is lower by FOUND than at the start:
# where nothing is found, sin 30x cos 25z among 600 rows, a fold that has found nothing fills with
# terms of chance.
FALL, FOUND, MORE = 0.1, 0.05, 3.0
# Folds see the columns in several ways. Where the objective of each fold of a way, as a share of
# the constant's on the same rows, is more than WORSE times that of all folds of the best way, at
# two penalties in a row after each fold has found something, the path begins again with all folds
# in the best: a smooth function of a column is rough in ranks. Which fold finds it first is chance.
WORSE = 1.1
# The share of the progress bar, of what is left of it, that a penalty has; nothing else depends on
# it.
SHOWN_AS_PENALTY = 0.1


@dataclass(frozen=True, eq=False)
class MemberPath:
    """The penalty taken of a member, by the rows held out.

    loss : the least mean loss of the rows held out along the path
    predictions : their margins at the penalty taken, (n_targets, n)
    means : the means of what all folds say of these rows, which the others have seen
    found : what each fold has found there
    without : for each fold the predictions at the penalty that the other folds take
    of_folds : what each fold adds to the loss at each penalty, (n_penalties, n_folds)
    n_drawn : the number of features that all folds have drawn
    ended : whether a callback has ended the path
    place : which of the penalties is taken
    sparser : the same with fewer and fewer columns, at this penalty
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
    place: int
    sparser: Sequence[MemberPath] = ()

    @property
    def losses(self) -> np.ndarray:
        """The loss at each penalty."""
        return self.of_folds.sum(axis=1)


def follow(fits: MemberFits, effort: Effort, beaten: float = np.inf) -> MemberPath:
    """Go down a path of penalties.

    beaten : the least loss of another member
    """
    ended = is_late = False
    while not (fits.is_done or ended or is_late):
        with part(SHOWN_AS_PENALTY):
            ended = fits.turn(effort.deadline)
        is_late = effort.is_late
        fits.judge(beaten)
        fits.show(beaten)
        if not (ended or is_late):
            fits.begin_again()
    if is_late:
        effort.note_cut("paths of penalties")
    elif not ended:
        effort.note_finished()
    path = fits.path(ended)
    if ended or is_late or not path.member.drops_columns:
        return path
    return replace(path, sparser=list(fits.with_fewer_columns(path, effort)))


class MemberFits:
    """The fits of a member on all folds, on their way down the penalties.

    loss : the least mean loss of the rows held out so far
    is_done : whether they have come to the end of the path
    """

    loss: float
    is_done: bool

    def __init__(
        self,
        make: Callable[[], Member],
        folds: Folds,
        loss: HeldOutLoss,
        workers: Workers,
        share: float = 1.0,
    ):
        """Take a function that makes the member; begin before the first penalty.

        share : the share of the most terms that there may be
        """
        self._folds, self._loss, self._workers, self._share = folds, loss, workers, share
        self._begin(make())

    def _begin(self, member):
        """Begin at the first penalty."""
        folds = self._folds
        self._member, every = member, range(len(folds))
        self._fits = list(self._workers.map(partial(member.fold_fit, folds), every))
        largest = self._workers.map(lambda fit: fit.largest_alpha(), self._fits)
        self._alpha = HIGHEST * (max(largest) or 1.0)
        self._of_constant = np.array([fit.objective() for fit in self._fits])
        self.loss, self.is_done, self._waited, self._last_worth = np.inf, False, 0, np.inf
        self._of_folds, self._times_better = [], 0
        self._taken, *self._without = (Taken(member.errors) for _ in range(1 + len(folds)))

    @property
    def _losses(self):
        """The loss at each penalty so far."""
        return [float(of_folds.sum()) for of_folds in self._of_folds]

    def turn(self, deadline: float) -> bool:
        """Fit with this penalty, as far as the time allows; return whether a callback has ended the
        fits."""
        times = MORE if _wants_draws(self._losses) else 1.0

        def turn(fit):
            with ends_at(deadline):
                fit.turn_to(self._alpha, times)

        for _ in self._workers.map(turn, self._fits):
            pass
        for fit in self._fits:
            fit.tell()
            if fit.ended:
                return True
        return False

    def begin_again(self) -> None:
        """Begin again with all folds in the better way to see the columns, if there is one."""
        n_ways = self._member.n_ways
        if n_ways == 1:
            return
        have_found = (self._of_folds[-1] <= (1 - FOUND) * self._of_folds[0]).all()
        objectives = np.array([fit.objective() for fit in self._fits])
        way = _way_alone(objectives / self._of_constant, n_ways) if have_found else None
        self._times_better = self._times_better + 1 if way is not None else 0
        if self._times_better == 2:
            self._begin(self._member.in_way(way))

    def judge(self, beaten: float) -> None:
        """Take the penalty where it is the best so far; go to the next, or end.

        beaten : the least loss of another member
        """
        margins = [fit.margins() for fit in self._fits]
        predictions = self._folds.predictions(margins)
        of_folds = self._loss.of_each_fold(predictions)
        here = float(of_folds.sum())
        self._of_folds.append(of_folds)
        for k, taken in enumerate(self._without):
            taken.see(np.delete(of_folds, k), predictions)
        self._waited += 1
        if here < self._last_worth * _worth(here, beaten):
            self._last_worth, self._waited = here, 0
        if not here >= self.loss:
            found = [Found(self._alpha, fit.share, fit.state()) for fit in self._fits]
            what = len(self._of_folds) - 1, (predictions, self._folds.means(margins), found)
            self._taken.see(of_folds, what)
            self.loss = self._taken.loss
        self._alpha *= self._member.fall
        is_last = len(self._of_folds) == MOST_ALPHAS
        self.is_done = is_last or self._has_waited() or self._is_full()

    def _has_waited(self):
        """Return whether too many penalties have not lowered the loss enough."""
        first, then = self._member.patience
        if len(self._folds.row) > MANY_HELD and self._n_terms > MANY_TERMS:
            then = then // 2
        is_early = len(self._of_folds) < first or not _has_found(self._losses)
        return self._waited >= (first if is_early else then)

    def _is_full(self):
        """Return whether the folds have more terms in the mean than they may."""
        n = min(fit.n for fit in self._fits)
        of_rows = min(self._share * self._member.most_terms(n), TERMS_PER_ROW * n)
        return self._n_terms > min(of_rows, MOST_WEIGHTS / len(self._folds.task.targets))

    @property
    def _n_terms(self):
        """The mean number of terms of the folds."""
        return np.mean([fit.n_terms for fit in self._fits])

    def show(self, beaten: float) -> None:
        """Note the least loss so far, to be shown and told."""
        note_held_out_loss(self._loss.in_units_of_y(min(beaten, self.loss)))

    def path(self, ended: bool) -> MemberPath:
        """Return the penalty taken; ended : whether a callback has ended the path."""
        of_folds, n_drawn = np.array(self._of_folds), sum(fit.n_drawn for fit in self._fits)
        (place, taken), without = self._taken.what, [each.what for each in self._without]
        return MemberPath(self._member, self.loss, *taken, without, of_folds, n_drawn, ended, place)

    def with_fewer_columns(self, path: MemberPath, effort: Effort) -> Iterator[MemberPath]:
        """Yield the path with fewer and fewer columns of its linear functions, until their loss is
        higher by the share FALL, or there is no time."""
        for fit, found in zip(self._fits, path.found, strict=True):
            fit.return_to(found.alpha, found.state)
        loss, least = 0.0, np.inf

        def drop(fit):
            with ends_at(effort.deadline):
                fit.drop_columns()

        while loss <= (1 + FALL) * least and len(self._fits[0].index) > 1 and not effort.is_late:
            for _ in self._workers.map(drop, self._fits):
                pass
            margins = [fit.margins() for fit in self._fits]
            predictions = self._folds.predictions(margins)
            loss = float(self._loss.of_each_fold(predictions).sum())
            least = min(least, loss)
            yield replace(
                path,
                predictions=predictions,
                means=self._folds.means(margins),
                found=[Found(path.found[0].alpha, fit.share, fit.state()) for fit in self._fits],
                without=[predictions] * len(self._folds),
            )


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
    return 1 - (FALL if here > max(BEHIND * beaten, 0.0) else NEGLIGIBLE)
