"""Down the penalties: all folds of a member together, until the rows held out are predicted no
better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..._base.progress import ends_at, note_held_out_loss, part
from ..chosen_on_folds import Taken
from .members import FoldOptimum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..._base.threads import Workers
    from ...solvers.budget import Budget
    from ..folds import Folds
    from ..held_out_loss import HeldOutLoss
    from .members import Member

# The share of the progress bar, of what is left of it, that a penalty has; nothing else depends on
# it.
SHOWN_AS_PENALTY = 0.1


class PathRules:
    """When a path goes on, and when it ends. docs/default.md says what each rule is worth.

    first_alpha : the first penalty, over the least at which all coefficients are zero
    max_alphas : the most penalties of a path

    The loss is the mean one of the rows held out. A path ends where the last penalties, as many as
    `Member.patience` says, have together lowered it by no more than a share:

    small_gain : the share
    large_gain : the share where the loss is far behind that of another member, and the share by
        which one penalty lowers the loss of a target with little noise
    far_behind : the loss over that of another member from which on it is far behind
    sure_gain : the share by which the loss must be lower than at the first penalty for a member to
        have found more than noise. Until then its patience is longer.
    many_rows, many_terms : with more rows held out, and more terms, half the patience will do:
        chance is less, and a penalty costs more

    It also ends where it is full:

    max_terms_per_row : the most terms of a fold in the mean, as a share of the rows that it fits
    max_weights : the most weights of a fold in the mean: terms times classes or outputs

    draws_factor : the draws are so many times as many after a penalty that has lowered the loss by
        `large_gain`, which targets without noise want, and until `sure_gain` is there: where
        nothing is found, sin 30x cos 25z among 600 rows, a fold fills with terms of chance
    worse_way : folds see the columns in several ways. Where the objective of each fold of a way, as
        a share of the constant's on the same rows, is more than so many times that of all folds of
        the best way, at two penalties in a row after each fold has made a sure gain, the path
        begins again with all folds in the best: a smooth function of a column is rough in ranks.
        Which fold finds it first is chance.
    column_loss : columns of linear functions are dropped until the loss is higher by this share
    """

    first_alpha: float = 0.9
    max_alphas: int = 80
    small_gain: float = 1e-3
    large_gain: float = 0.1
    far_behind: float = 1.5
    sure_gain: float = 0.05
    many_rows: int = 8_000
    many_terms: int = 500
    max_terms_per_row: float = 0.6
    max_weights: int = 20_000
    draws_factor: float = 3.0
    worse_way: float = 1.1
    column_loss: float = 0.1


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
    found: Sequence[FoldOptimum]
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


def follow(fits: MemberFits, budget: Budget, best_other_loss: float = np.inf) -> MemberPath:
    """Go down a path of penalties.

    best_other_loss : the least loss of another member
    """
    ended = is_late = False
    while not (fits.is_done or ended or is_late):
        with part(SHOWN_AS_PENALTY):
            ended = fits.fit(budget.deadline)
        is_late = budget.is_late
        fits.judge(best_other_loss)
        fits.show(best_other_loss)
        if not (ended or is_late):
            fits.begin_again()
    if is_late:
        budget.note_cut("paths of penalties")
    path = fits.path(ended)
    if ended or is_late or not path.member.drops_columns:
        return path
    return replace(path, sparser=list(fits.with_fewer_columns(path, budget)))


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
        self._alpha = PathRules.first_alpha * (max(largest) or 1.0)
        self._of_constant = np.array([fit.objective() for fit in self._fits])
        self.loss, self.is_done, self._waited, self._loss_to_beat = np.inf, False, 0, np.inf
        self._of_folds, self._times_better = [], 0
        self._taken, *self._without = (Taken(member.errors) for _ in range(1 + len(folds)))

    @property
    def _losses(self):
        """The loss at each penalty so far."""
        return [float(of_folds.sum()) for of_folds in self._of_folds]

    def fit(self, deadline: float) -> bool:
        """Fit all folds with this penalty, as far as the time allows; return whether a callback has
        ended the fits."""
        draws_factor = PathRules.draws_factor if _wants_draws(self._losses) else 1.0

        def fit_fold(fit):
            with ends_at(deadline):
                fit.fit_at(self._alpha, draws_factor)

        for _ in self._workers.map(fit_fold, self._fits):
            pass
        return any(fit.report() for fit in self._fits)

    def begin_again(self) -> None:
        """Begin again with all folds in the better way to see the columns, if there is one."""
        n_ways = self._member.n_ways
        if n_ways == 1:
            return
        have_found = (self._of_folds[-1] <= (1 - PathRules.sure_gain) * self._of_folds[0]).all()
        objectives = np.array([fit.objective() for fit in self._fits])
        way = _way_alone(objectives / self._of_constant, n_ways) if have_found else None
        self._times_better = self._times_better + 1 if way is not None else 0
        if self._times_better == 2:
            self._begin(self._member.in_way(way))

    def judge(self, best_other_loss: float) -> None:
        """Take the penalty where it is the best so far; go to the next, or end.

        best_other_loss : the least loss of another member
        """
        margins = [fit.margins() for fit in self._fits]
        predictions = self._folds.predictions(margins)
        of_folds = self._loss.of_each_fold(predictions)
        here = float(of_folds.sum())
        self._of_folds.append(of_folds)
        for k, taken in enumerate(self._without):
            taken.see(np.delete(of_folds, k), predictions)
        self._waited += 1
        if here < self._loss_to_beat * _share_to_beat(here, best_other_loss):
            self._loss_to_beat, self._waited = here, 0
        if not here >= self.loss:
            found = [FoldOptimum(self._alpha, fit.share, fit.state()) for fit in self._fits]
            what = len(self._of_folds) - 1, (predictions, self._folds.means(margins), found)
            self._taken.see(of_folds, what)
            self.loss = self._taken.loss
        self._alpha *= self._member.fall
        is_last = len(self._of_folds) == PathRules.max_alphas
        self.is_done = is_last or self._has_waited() or self._is_full()

    def _has_waited(self):
        """Return whether too many penalties have not lowered the loss enough."""
        first, then = self._member.patience
        if len(self._folds.row) > PathRules.many_rows and self._n_terms > PathRules.many_terms:
            then = then // 2
        is_early = len(self._of_folds) < first or not _has_found(self._losses)
        return self._waited >= (first if is_early else then)

    def _is_full(self):
        """Return whether the folds have more terms in the mean than they may."""
        n = min(fit.n for fit in self._fits)
        of_rows = min(self._share * self._member.most_terms(n), PathRules.max_terms_per_row * n)
        return self._n_terms > min(of_rows, PathRules.max_weights / len(self._folds.task.targets))

    @property
    def _n_terms(self):
        """The mean number of terms of the folds."""
        return np.mean([fit.n_terms for fit in self._fits])

    def show(self, best_other_loss: float) -> None:
        """Note the least loss so far, to be shown and told."""
        note_held_out_loss(self._loss.in_units_of_y(min(best_other_loss, self.loss)))

    def path(self, ended: bool) -> MemberPath:
        """Return the penalty taken; ended : whether a callback has ended the path."""
        n_drawn = self._fits[0].n_shared + sum(fit.n_drawn for fit in self._fits)
        of_folds = np.array(self._of_folds)
        (place, taken), without = self._taken.what, [each.what for each in self._without]
        return MemberPath(self._member, self.loss, *taken, without, of_folds, n_drawn, ended, place)

    def with_fewer_columns(self, path: MemberPath, budget: Budget) -> Iterator[MemberPath]:
        """Yield the path with fewer and fewer columns of its linear functions, until their loss is
        higher by `PathRules.column_loss`, or there is no time."""
        for fit, found in zip(self._fits, path.found, strict=True):
            fit.return_to(found.alpha, found.state)
        loss, least = 0.0, np.inf

        def drop(fit):
            with ends_at(budget.deadline):
                fit.drop_columns()

        most = 1 + PathRules.column_loss
        while loss <= most * least and len(self._fits[0].index) > 1 and not budget.is_late:
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
                found=[
                    FoldOptimum(path.found[0].alpha, fit.share, fit.state()) for fit in self._fits
                ],
                without=[predictions] * len(self._folds),
            )


def _way_alone(objectives, n_ways):
    """Return the better way to see the columns where each fold of another is worse than all of its
    folds, by their objectives; else None."""
    of_ways = [objectives[way::n_ways] for way in range(n_ways)]
    best = int(np.argmin([max(each, default=np.inf) for each in of_ways]))
    most = PathRules.worse_way * np.abs(max(of_ways[best], default=np.inf))
    return best if any(min(each, default=0.0) > most for each in of_ways) else None


def _wants_draws(losses):
    """Return whether there are to be more draws, by the losses at the penalties before."""
    if len(losses) < 2:
        return False
    return losses[-1] < (1 - PathRules.large_gain) * losses[-2] or not _has_found(losses)


def _has_found(losses):
    """Return whether a path has lowered the loss by more than noise might."""
    return losses[-1] <= (1 - PathRules.sure_gain) * losses[0]


def _share_to_beat(here, best_other_loss):
    """Return the share of the loss to beat below which a loss is a gain."""
    is_behind = here > max(PathRules.far_behind * best_other_loss, 0.0)
    return 1 - (PathRules.large_gain if is_behind else PathRules.small_gain)
