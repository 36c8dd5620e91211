"""Down the penalties: all folds of a member together, until the rows held out are predicted no
better."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..._base.progress import ends_at, note_held_out_loss, parts
from .members import Found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._base.threads import Workers
    from ...solvers.effort import Effort
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


@dataclass(frozen=True, eq=False)
class MemberPath:
    """The best penalty of a member, by the rows held out.

    loss : the mean loss of the rows held out there
    predictions : their margins, (n_targets, n)
    means : the means of what all folds say of these rows, which the others have seen
    found : what each fold has found there
    without : for each fold the predictions at the penalty that is best for the other folds
    losses : the loss at each penalty
    n_drawn : the number of features that all folds have drawn
    ended : whether a callback has ended the path
    """

    member: Member
    loss: float
    predictions: np.ndarray
    means: np.ndarray
    found: Sequence[Found]
    without: Sequence[np.ndarray]
    losses: Sequence[float]
    n_drawn: int
    ended: bool


def follow(
    member: Member,
    folds: Folds,
    loss: HeldOutLoss,
    effort: Effort,
    workers: Workers,
    beaten: float = np.inf,
) -> MemberPath:
    """Go down a path of penalties on all folds.

    beaten : the least loss of another member
    """
    fits = [member.fold_fit(folds, k) for k in range(len(folds))]
    shares = [folds.share(k) for k in range(len(folds))]
    alpha = HIGHEST * (max(fit.largest_alpha() for fit in fits) or 1.0)
    n_rows, n_targets = len(folds.task.weight), len(folds.task.targets)
    most = min(MOST_TERMS, TERMS_PER_ROW * min(shares) * n_rows, MOST_WEIGHTS / n_targets)
    best, waited, losses, ended = None, 0, [], False
    of_constant = np.array([fit.objective() for fit in fits])
    without: list[np.ndarray] = []
    least_of_others = np.full(len(folds), np.inf)
    for _ in parts(range(MOST_ALPHAS)):
        turn = partial(_turn, alpha, MORE if _wants_draws(losses) else 1.0, effort.deadline)
        for fit in list(workers.map(turn, fits)):
            if not ended:
                fit.tell()
                ended = fit.ended
        if member.n_ways > 1 and not (ended or effort.is_late):
            way = _way_alone([fit.objective() for fit in fits] / of_constant, member.n_ways)
            if way is not None:
                return follow(member.in_way(way), folds, loss, effort, workers, beaten)
        margins = [fit.margins() for fit in fits]
        predictions = folds.predictions(margins)
        of_folds = loss.of_each_fold(predictions)
        here = float(of_folds.sum())
        losses.append(here)
        without = without or [predictions] * len(folds)
        for k in np.flatnonzero(here - of_folds < least_of_others):
            least_of_others[k], without[k] = here - of_folds[k], predictions
        waited = 0 if best is not None and here < best[0] * _worth(here, beaten) else waited + 1
        if best is None or here < best[0]:
            found = [
                Found(alpha, share, fit.state()) for share, fit in zip(shares, fits, strict=True)
            ]
            best = here, predictions, folds.means(margins), found
            note_held_out_loss(loss.in_units_of_y(here))
        if effort.is_late:
            effort.note_cut("paths of penalties")
        if ended or effort.is_late:
            break
        is_early = len(losses) < FIRST_PATIENCE or not _has_found(losses)
        has_waited = waited >= (FIRST_PATIENCE if is_early else PATIENCE)
        if has_waited or np.mean([fit.n_terms for fit in fits]) > most:
            effort.note_finished()
            break
        alpha *= member.fall
    return MemberPath(member, *best, without, losses, sum(fit.n_drawn for fit in fits), ended)


def _turn(alpha, times, deadline, fit):
    """Fit with a penalty, as far as the time allows; return the fit."""
    with ends_at(deadline):
        fit.turn_to(alpha, times)
    return fit


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
