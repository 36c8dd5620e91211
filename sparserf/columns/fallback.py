"""What a model sees of a cell that says nothing: of a level that no training row has, or missing where none was in training."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from .._core.moments import KINDS
from .robust import some_rows
from .table import UNKNOWN

if TYPE_CHECKING:
    from ..algorithms.task import Task
    from ..model import SparseModel

LEVEL, MISSING = KINDS.index("level"), KINDS.index("missing")
# Of so many training rows, and of so many columns, categories first, and of these those that most terms see.
MOST_ROWS, MOST_COLUMNS = 512, 24
# Points are tried of so many columns, where the centre is more than that share of the way from the model's loss to a
# constant's: of a category, and of a number.
MOST_TRIED = 3
OF_CATEGORY, OF_NUMBER = 0.8, 1.0
# From the centre of a category to each of its levels; quantiles of a number; and of f, among which a constant is looked for.
STEPS, QUANTILES, CONSTANTS = np.array([0.25, 0.5, 0.75, 1.0]), (np.arange(10) + 0.5) / 10, np.linspace(0, 1, 33)


def with_fallbacks(model: SparseModel, task: Task) -> SparseModel:
    """The model with the fallbacks of its columns: where it loses least on training rows whose cells of a column are hidden.

    That is the centre of a column, or, since functions that are not linear may be anything there, where the centre does about
    as badly as a constant, or worse, a point on the way from it to a level of a category, or a quantile of a number. Of columns
    with missing cells in training rows, what is missing is what the model has learnt of these. Takes the time of predicting at
    most 512 rows for each of 24 columns at most, and for each point tried of the three that matter most.
    """
    stage = model.features.stage
    if stage is None or task.raw.is_sparse or not task.raw.in_memory or not len(stage):
        return model
    some, weight = some_rows(task.weight, MOST_ROWS, np.random.default_rng(0))
    X, hidden = task.raw.array(some), Hidden(model, task, some, weight)
    points = {j: _points(stage, j, X[:, j], hidden.mean) for j in _columns(model, stage)}
    best = {j: (views, at[0]) for j, (views, at) in points.items()}
    losses = {j: hidden.loss(*best[j]) for j in list(points)[:MOST_COLUMNS]}
    for j in sorted(losses, key=losses.__getitem__, reverse=True)[:MOST_TRIED]:
        views, at = points[j]
        if losses[j] > hidden.between(OF_CATEGORY if (stage.kind[views] == LEVEL).any() else OF_NUMBER):
            best[j] = views, min(at, key=partial(hidden.loss, views))
    return replace(model, features=model.features.staged(_falling_back(stage, best, task.raw.array())))


class Hidden:
    """Training rows of which some views are hidden, and what a model loses on them; infinite where that is no number."""

    def __init__(self, model: SparseModel, task: Task, some: np.ndarray, weight: np.ndarray):
        self._bare, self._task = replace(model, features=model.features.staged(None)), task
        self._shown, self._weight = model.features.stage.show(task.raw.array(some)), weight
        self._y = np.vstack([y + np.expand_dims(c, -1) for y, c in zip(task.targets, task.centers, strict=True)])[:, some]

    def loss(self, views: np.ndarray, point: np.ndarray) -> float:
        """Where these views are that point in all rows."""
        shown = self._shown.copy()
        shown[:, views] = point
        return float(self._losses(self._bare.decision_function(shown).T).sum())

    def between(self, share: float) -> float:
        """That share of the way from the loss of the model, with nothing hidden, to that of the best constant."""
        of_model, of_constant = self._ends
        return of_model + share * max(0.0, of_constant - of_model)

    @cached_property
    def mean(self) -> np.ndarray:
        """Of each view; 0 where rounding has left a little of a view around its mean."""
        mean = self._weight / self._weight.sum() @ self._shown
        return np.where(np.abs(mean) > 1e-12, mean, 0.0)

    @cached_property
    def _ends(self):
        """Both losses, that of a constant nearly: of one of some quantiles; of classes that count together, of mean margins."""
        f = np.atleast_2d(self._bare.decision_function(self._shown).T)
        with np.errstate(over="ignore", invalid="ignore"):  # of f near the largest float
            constants = [f.mean(axis=1), *([] if self._task.is_joint else np.quantile(f, CONSTANTS, axis=1))]
        of_constants = [self._losses(np.tile(c[:, None], f.shape[1])) for c in constants]
        return float(self._losses(f).sum()), float(np.min(of_constants, axis=0).sum())

    @np.errstate(over="ignore", invalid="ignore")
    def _losses(self, f):
        """Of each output, or of all that count together; each in the unit of its own target."""
        f, y, task = np.atleast_2d(f).astype(np.float64), self._y, self._task
        if task.is_joint:
            losses = task.loss.value(f, y)
        else:
            units = map(task.scale, y)
            losses = np.stack([task.loss.scaled(u).value(z / u, t / u) for z, t, u in zip(f, y, units, strict=True)])
        return np.nan_to_num(losses @ self._weight, nan=np.inf)


def _columns(model, stage):
    """Categories, and numbers that may be missing and that terms see; those first that most terms see."""
    is_category, is_seen = np.zeros((2, stage.n_columns), bool)
    is_category[stage.column[stage.kind == LEVEL]] = is_seen[stage.column] = True
    if stage.table is not None:
        is_seen &= [levels is None for levels in stage.table.levels]
    worth = is_category + np.where(is_category | (is_seen & stage.may_miss), model.input_usage(), 0.0)
    return [int(j) for j in np.argsort(-worth, kind="stable")[: max(MOST_COLUMNS, is_category.sum())] if worth[j] > 0]


def _points(stage, j, x, mean):
    """(views of a column, points in these): what it falls back on as yet, and what else is tried."""
    if not (stage.kind[stage.column == j] == LEVEL).any():
        views = np.flatnonzero((stage.column == j) & (stage.kind != MISSING))
        there = x[~np.isnan(x)]
        tried = np.quantile(there, QUANTILES, method="nearest") if len(there) else there
        return views, np.vstack([stage.fill[views], _of_cells(stage, views, j, tried)])
    views = np.flatnonzero((stage.column == j) & (stage.kind != MISSING))
    of_levels, is_level = _of_cells(stage, views, j, np.arange(len(stage.table.levels[j]))), stage.kind[views] == LEVEL
    unknown = _of_cells(stage, views, j, [UNKNOWN])  # of a mean of y that of all rows, wherever the levels are
    of_levels = np.unique(np.where(is_level, of_levels, unknown), axis=0)
    centre = np.where(is_level, mean[views], unknown[0])
    return views, np.vstack([centre, *(centre + step * (of_levels - centre) for step in STEPS)])


def _of_cells(stage, views, j, cells):
    """These views of some cells of column j."""
    X = np.zeros((len(cells), stage.n_columns))
    X[:, j] = cells
    return stage.take(views).show(X)


def _falling_back(stage, points, X):
    """The stage with {column: (views, point)}; what training rows have of such cells stays."""
    fill, unknown = stage.fill.copy(), {}
    for j, (views, point) in points.items():
        fill[views] = _of_cells(stage, views, j, [np.nan])[0] if np.isnan(X[:, j]).any() else point
        other = _of_cells(stage, views, j, [UNKNOWN])[0] if (X[:, j] == UNKNOWN).any() else point
        scores = stage.center[views] + other * stage.unit[views]
        unknown |= {v: score for v, score in zip(views.tolist(), scores.tolist(), strict=True) if stage.kind[v] == LEVEL}
    return stage.falling_back(fill, unknown)
