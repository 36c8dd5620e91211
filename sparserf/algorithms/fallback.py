"""Fallbacks: what a model sees of a cell whose level no training row has, or that is missing where none was in training."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from .._base.random import sample_rows
from .._core.moments import KINDS
from ..columns.table import UNKNOWN

if TYPE_CHECKING:
    from ..model import SparseModel
    from .task import Task

LEVEL, MISSING = KINDS.index("level"), KINDS.index("missing")
# Training rows, and columns, that fallbacks are chosen by and for, at most; columns of categories first, then those that most
# terms see.
MOST_ROWS, MOST_COLUMNS = 512, 24
# Other points than the centre are tried for so many columns, where the centre loses more than that share of the way from the
# model's loss to a constant's: for a category, and for a number.
MOST_TRIED = 3
OF_CATEGORY, OF_NUMBER = 0.8, 1.0
# The points tried: for a category, shares of the way from its centre to each level; for a number, its quantiles. And the
# quantiles of f among which the best constant is looked for.
STEPS, QUANTILES, CONSTANTS = np.array([0.25, 0.5, 0.75, 1.0]), (np.arange(10) + 0.5) / 10, np.linspace(0, 1, 33)


def with_fallbacks(model: SparseModel, task: Task) -> SparseModel:
    """Return the model with fallbacks chosen for its columns.

    The fallback of a column is the point at which the model loses least on training rows whose cells of that column are hidden.
    It is the centre of the column; or, where the model loses about as much there as a constant would (functions that are not
    linear may be anything at a centre), a point on the way from the centre to a level of a category, or a quantile of a number.
    For columns with missing cells in training rows, the model has learnt what a missing cell means, and that stays. Takes the
    time of predicting at most 512 rows for each of at most 24 columns, and for each point tried for the three columns that
    matter most.
    """
    stage = model.features.stage
    if stage is None or task.raw.is_sparse or not task.raw.in_memory or not len(stage):
        return model
    some, weight = sample_rows(task.weight, MOST_ROWS, np.random.default_rng(0))
    X, hidden = task.raw.array(some), Hidden(model, task, some, weight)
    points = {j: _points(stage, j, X[:, j], hidden.mean) for j in _columns(model, stage)}
    best = {j: (places, at[0]) for j, (places, at) in points.items()}
    losses = {j: hidden.loss(*best[j]) for j in list(points)[:MOST_COLUMNS]}
    for j in sorted(losses, key=losses.__getitem__, reverse=True)[:MOST_TRIED]:
        places, at = points[j]
        if losses[j] > hidden.between(OF_CATEGORY if (stage.kind[places] == LEVEL).any() else OF_NUMBER):
            best[j] = places, min(at, key=partial(hidden.loss, places))
    return replace(model, features=model.features.staged(_falling_back(stage, best, task.raw.array())))


class Hidden:
    """Training rows with the encodings of some columns hidden, and the loss of a model on them, infinite where it overflows."""

    def __init__(self, model: SparseModel, task: Task, some: np.ndarray, weight: np.ndarray):
        self._bare, self._task = replace(model, features=model.features.staged(None)), task
        self._shown, self._weight = model.features.stage.transform(task.raw.array(some)), weight
        self._y = np.vstack([y + np.expand_dims(c, -1) for y, c in zip(task.targets, task.centers, strict=True)])[:, some]

    def loss(self, places: np.ndarray, point: np.ndarray) -> float:
        """Return the loss where these encodings are that point in all rows."""
        shown = self._shown.copy()
        shown[:, places] = point
        return float(self._losses(self._bare.decision_function(shown).T).sum())

    def between(self, share: float) -> float:
        """Return that share of the way from the loss of the model, with nothing hidden, to that of the best constant."""
        of_model, of_constant = self._ends
        return of_model + share * max(0.0, of_constant - of_model)

    @cached_property
    def mean(self) -> np.ndarray:
        """The weighted mean of each encoding; 0 where it is 0 but for rounding."""
        mean = self._weight / self._weight.sum() @ self._shown
        return np.where(np.abs(mean) > 1e-12, mean, 0.0)

    @cached_property
    def _ends(self):
        """The losses of the model and of nearly the best constant: a quantile; for classes fitted together the mean margins."""
        f = np.atleast_2d(self._bare.decision_function(self._shown).T)
        with np.errstate(over="ignore", invalid="ignore"):  # of f near the largest float
            constants = [f.mean(axis=1), *([] if self._task.is_joint else np.quantile(f, CONSTANTS, axis=1))]
        of_constants = [self._losses(np.tile(c[:, None], f.shape[1])) for c in constants]
        return float(self._losses(f).sum()), float(np.min(of_constants, axis=0).sum())

    @np.errstate(over="ignore", invalid="ignore")
    def _losses(self, f):
        """Return the loss of each output, in units of its own target; of classes fitted together, one for each class."""
        f, y, task = np.atleast_2d(f).astype(np.float64), self._y, self._task
        if task.is_joint:
            losses = task.loss.value(f, y)
        else:
            units = map(task.scale, y)
            losses = np.stack([task.loss.scaled(u).value(z / u, t / u) for z, t, u in zip(f, y, units, strict=True)])
        return np.nan_to_num(losses @ self._weight, nan=np.inf)


def _columns(model, stage):
    """Return categories, and columns of numbers that may be missing and that terms see; first those that most terms see."""
    is_category, is_seen = np.zeros((2, stage.n_columns), bool)
    is_category[stage.column[stage.kind == LEVEL]] = is_seen[stage.column] = True
    if stage.table is not None:
        is_seen &= [levels is None for levels in stage.table.levels]
    worth = is_category + np.where(is_category | (is_seen & stage.may_miss), model.input_usage(), 0.0)
    return [int(j) for j in np.argsort(-worth, kind="stable")[: max(MOST_COLUMNS, is_category.sum())] if worth[j] > 0]


def _points(stage, j, x, mean):
    """Return (the encodings of a column, points in these): the present fallback, and what else is tried."""
    if not (stage.kind[stage.column == j] == LEVEL).any():
        places = np.flatnonzero((stage.column == j) & (stage.kind != MISSING))
        there = x[~np.isnan(x)]
        tried = np.quantile(there, QUANTILES, method="nearest") if len(there) else there
        return places, np.vstack([stage.fill[places], _of_cells(stage, places, j, tried)])
    places = np.flatnonzero((stage.column == j) & (stage.kind != MISSING))
    of_levels, is_level = _of_cells(stage, places, j, np.arange(len(stage.table.levels[j]))), stage.kind[places] == LEVEL
    unknown = _of_cells(stage, places, j, [UNKNOWN])  # of a mean of y that of all rows, wherever the levels are
    of_levels = np.unique(np.where(is_level, of_levels, unknown), axis=0)
    centre = np.where(is_level, mean[places], unknown[0])
    return places, np.vstack([centre, *(centre + step * (of_levels - centre) for step in STEPS)])


def _of_cells(stage, places, j, cells):
    """Return these encodings of some cells of column j."""
    X = np.zeros((len(cells), stage.n_columns))
    X[:, j] = cells
    return stage.take(places).transform(X)


def _falling_back(stage, points, X):
    """Return the stage with fallbacks {column: (encodings, point)}; what training rows have of such cells stays."""
    fill, unknown = stage.fill.copy(), {}
    for j, (places, point) in points.items():
        fill[places] = _of_cells(stage, places, j, [np.nan])[0] if np.isnan(X[:, j]).any() else point
        other = _of_cells(stage, places, j, [UNKNOWN])[0] if (X[:, j] == UNKNOWN).any() else point
        scores = stage.center[places] + other * stage.unit[places]
        unknown |= {v: score for v, score in zip(places.tolist(), scores.tolist(), strict=True) if stage.kind[v] == LEVEL}
    return stage.with_fallbacks(fill, unknown)
