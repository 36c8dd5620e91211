"""Tasks of rows and targets, and their folds, for tests of what a search decides by them."""

import numpy as np

from sparserf.algorithms.arguments import RowSetting
from sparserf.algorithms.folds import folds_of, strata_of
from sparserf.algorithms.task import Task

MANY = 10**9


def task_of(X, y, loss="squared", **rows):
    """Return the task of a fit to X and y; rows : sample_weight, offset, groups."""
    return Task.from_arrays(X, y, RowSetting(loss, **rows))


def folds(task, validation=None, most_rows=MANY, seed=0, most_many=0):
    """Return the folds of a task."""
    rng = np.random.default_rng(seed)
    return folds_of(task, strata_of(task), validation, most_rows, rng, most_many)
