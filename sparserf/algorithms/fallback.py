"""Fallbacks: the values that replace the encodings of a cell whose value the fit has not seen,
chosen at the end of a fit.

There are two kinds of such cells in rows to predict: a NaN in a column without NaN in training, and
a level of a category that no training row has. (Where training rows have NaN in a column, or
unknown levels, the model has learnt what they mean, and their encodings stay.) The fallback of a
column, one value for each of its encodings, replaces cells of both kinds. It is the centre or,
where the centre loses too much on rows whose cells of that column are hidden, the best of the
points

    centre,
    centre + t (level - centre), each level of a category and four t up to 1,
    ten quantiles of a number.

From fit to predict: `Task.from_options` fits a `ColumnStage`, whose `fill` is the encodings of a
NaN, at first the centre of the column. After the fit `with_fallbacks` replaces `fill`, and the
scores of unknown levels, in the stage of the model. `predict` reads X, which may have NaN where
`ColumnStage.may_miss`, and `ColumnStage.transform` puts these values in place.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .._base.progress import check_not_ended
from .._base.random import sample_rows
from ..columns.kinds import LEVEL, MISSING
from ..columns.table import UNKNOWN
from .task import model_of, with_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..columns.stage import ColumnStage
    from ..model import SparseModel
    from ..solvers.effort import Effort
    from .task import Fit, Task

# Fallbacks are chosen on at most MOST_FALLBACK_ROWS training rows, and for at most
# MOST_FALLBACK_COLUMNS columns, unless more are categories: first for these, then for the columns
# that most terms see.
MOST_FALLBACK_ROWS, MOST_FALLBACK_COLUMNS = 512, 24
# The best constant is looked for among these quantiles of the model's predictions.
CONSTANTS = np.linspace(0, 1, 33)


def model_in_time(fits: Sequence[Fit], task: Task, effort: Effort) -> SparseModel:
    """Return the model of these fits, with its fallbacks where there is time for them.

    `info` says what was cut; a fit that was has not converged.
    """
    model = model_of(fits, task, certified=not effort.is_late)
    model = with_ranges(
        effort.done_in_time("fallbacks", partial(with_fallbacks, model, task), model), task
    )
    cut, info = dict(effort.cuts), model.info
    converged = info.converged and not {"fits", "rounds"} & set(cut)
    return replace(model, info=replace(info, cut=cut, converged=converged))


def with_fallbacks(model: SparseModel, task: Task) -> SparseModel:
    """Return the model with fallbacks chosen for its columns; the model itself where none of its
    cells can need one.

    At the fallback of a column the model loses least on training rows whose cells of that column
    are hidden. It is the centre of the column; or, where the model loses about as much there as a
    constant would (a nonlinear function may be anything at a centre), a point on the way from the
    centre to a level of a category, or a quantile of a number. Takes the time to predict at most
    512 rows for each of at most 24 columns, and for each point that is tried for the three columns
    that matter most.
    """
    # The number of columns, the ones that lose most, for which points other than the present
    # fallback are tried.
    most_tried = 3
    # Other points are tried where the present fallback loses more than this share of the way from
    # the model's loss to the loss of the best constant, for a category and for a number.
    of_category = 0.8
    of_number = 1.0

    stage = model.features.stage
    if stage is None or task.raw.is_sparse or not task.raw.in_memory or not len(stage):
        return model
    columns = _columns_in_doubt(model, stage)
    if not columns:
        return model

    check_not_ended()
    sample, weight = sample_rows(task.weight, MOST_FALLBACK_ROWS, np.random.default_rng(0))
    X = task.raw.array(sample)
    hidden = HiddenCells(model, task, X, sample, weight)
    points, best, losses = {}, {}, {}
    for j in columns:
        places, tried = points[j] = _points(stage, j, X[:, j], hidden.mean)
        best[j] = places, tried[0]
        check_not_ended()
        if len(losses) < MOST_FALLBACK_COLUMNS:
            losses[j] = hidden.loss_at(places, tried[0])

    for j in sorted(losses, key=losses.__getitem__, reverse=True)[:most_tried]:
        places, tried = points[j]
        share = of_category if (stage.kind[places] == LEVEL).any() else of_number
        if losses[j] > hidden.loss_of_model + share * max(
            0.0, hidden.loss_of_constant - hidden.loss_of_model
        ):
            best[j] = places, min(tried, key=partial(hidden.loss_at, places))
    return replace(
        model, features=model.features.staged(_replace_fallbacks(stage, best, task.raw.array()))
    )


class HiddenCells:
    """The loss of a model on training rows in which the cells of a column are hidden; infinite
    where it overflows.

    mean : the weighted mean of each encoding over the rows; 0 where it differs from 0 by rounding
        alone
    loss_of_model : the loss with nothing hidden
    loss_of_constant : the loss of about the best constant: a quantile of the predictions; for
        classes that are fitted together, the mean margins
    """

    mean: np.ndarray
    loss_of_model: float
    loss_of_constant: float

    def __init__(
        self, model: SparseModel, task: Task, X: np.ndarray, sample: np.ndarray, weight: np.ndarray
    ):
        """X, weight : the rows, and their weights; sample : their places among the rows of the
        task."""
        self._on_encodings = replace(
            model, features=model.features.staged(None), lower=None, upper=None
        )
        self._task, self._weight = task, weight
        self._encodings = model.features.stage.transform(X)
        self._y = np.vstack(
            [y + np.expand_dims(c, -1) for y, c in zip(task.targets, task.centers, strict=True)]
        )[:, sample]
        self._offset = 0.0 if task.offset is None else task.offset[..., sample]

        mean = weight / weight.sum() @ self._encodings
        self.mean = np.where(np.abs(mean) > 1e-12, mean, 0.0)

        f = np.atleast_2d(self._on_encodings.decision_function(self._encodings).T)
        self.loss_of_model = float(self._losses(f).sum())
        constants = [f.mean(axis=1), *([] if task.is_joint else np.quantile(f, CONSTANTS, axis=1))]
        losses = [self._losses(np.tile(c[:, None], f.shape[1])) for c in constants]
        self.loss_of_constant = float(np.min(losses, axis=0).sum())

    def loss_at(self, places: np.ndarray, point: np.ndarray) -> float:
        """Return the loss where the encodings at these places have the values of a point in all
        rows."""
        check_not_ended()
        hidden = self._encodings.copy()
        hidden[:, places] = point
        return float(self._losses(self._on_encodings.decision_function(hidden).T).sum())

    def _losses(self, f):
        """Return the loss of each output, in the unit of its target; of classes fitted together,
        one for each class."""
        f, y, task = np.atleast_2d(f).astype(np.float64) + self._offset, self._y, self._task
        if task.is_joint:
            losses = task.loss.value(f, y)
        else:
            losses = np.empty(f.shape)
            for k, (f_k, y_k) in enumerate(zip(f, y, strict=True)):
                unit = task.unit(y_k)
                losses[k] = task.loss.scaled(unit).value(f_k / unit, y_k / unit)
        return np.nan_to_num(losses @ self._weight, nan=np.inf)


def _columns_in_doubt(model, stage):
    """Return the columns that need a fallback: categories, and numbers that terms see and that may
    be missing.

    The columns that most terms see come first.
    """
    is_category, is_seen = np.zeros((2, stage.n_columns), bool)
    is_category[stage.column[stage.kind == LEVEL]] = is_seen[stage.column] = True
    if not (stage.may_miss or is_category.any()):
        return []
    if stage.table is not None:
        is_seen &= [levels is None for levels in stage.table.levels]
    worth = is_category + np.where(
        is_category | (is_seen & stage.may_miss), model.input_usage(), 0.0
    )
    first = np.argsort(-worth, kind="stable")[: max(MOST_FALLBACK_COLUMNS, is_category.sum())]
    return first[worth[first] > 0].tolist()


def _points(
    stage: ColumnStage, j: int, x: np.ndarray, mean: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the encodings of column j, and points in these: first the centre, then
    what else is tried.

    x : the cells of the column in the rows
    mean : the mean of each encoding over the rows
    """
    # The points that are tried for a category: these shares of the way from its centre to each
    # level.
    steps = np.array([0.25, 0.5, 0.75, 1.0])
    # The points that are tried for a number: these quantiles of it.
    quantiles = (np.arange(10) + 0.5) / 10

    is_own = stage.column == j
    places = np.flatnonzero(is_own & (stage.kind != MISSING))
    if not (stage.kind[is_own] == LEVEL).any():
        there = x[~np.isnan(x)]
        tried = np.quantile(there, quantiles, method="nearest") if len(there) else there
        return places, np.vstack([stage.fill[places], _encode_cells(stage, places, j, tried)])
    of_levels = _encode_cells(stage, places, j, np.arange(len(stage.table.levels[j])))
    is_level = stage.kind[places] == LEVEL
    # an encoding by the mean of y is here the mean over all rows
    unknown = _encode_cells(stage, places, j, [UNKNOWN])
    of_levels = np.unique(np.where(is_level, of_levels, unknown), axis=0)
    centre = np.where(is_level, mean[places], unknown[0])
    return places, np.vstack([centre, *(centre + step * (of_levels - centre) for step in steps)])


def _encode_cells(stage, places, j, cells):
    """Return the encodings at these places of some cells of column j, (n_cells, n_places)."""
    X = np.zeros((len(cells), stage.n_columns))
    X[:, j] = cells
    return stage.take(places).transform(X)


def _replace_fallbacks(stage, points, X):
    """Return the stage with fallbacks {column: (places of its encodings, point)}.

    Columns of X, all training rows, that have NaN or unknown levels keep the encodings that these
    had.
    """
    fill, unknown = stage.fill.copy(), {}
    for j, (places, point) in points.items():
        fill[places] = (
            _encode_cells(stage, places, j, [np.nan])[0] if np.isnan(X[:, j]).any() else point
        )
        of_unknown = (
            _encode_cells(stage, places, j, [UNKNOWN])[0] if (X[:, j] == UNKNOWN).any() else point
        )
        scores = stage.center[places] + of_unknown * stage.unit[places]
        for v, score in zip(places.tolist(), scores.tolist(), strict=True):
            if stage.kind[v] == LEVEL:
                unknown[v] = score
    return stage.with_fallbacks(fill, unknown)
