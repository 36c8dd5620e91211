"""Categories of many levels: the mean of the target of each level, of training rows that of the other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .encodings import frequent_levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .table import Table

N_FOLDS = 5
# Means that differ by less of the largest target are equal but for rounding.
ROUNDING = 1e-12


def with_means(
    X: np.ndarray, table: Table, targets: Sequence[np.ndarray], weight: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, dict[int, tuple[np.ndarray, np.ndarray]]]:
    """(X with its categories of many levels so written that views know the means, {column: (knots, scores)} of these).

    X : ndarray, level k of a category as k
    targets : list of ndarray, (n_rows,) or (n_outputs, n_rows); the one that varies most is meant

    A level k, of a row at prediction, has the mean of its rows. In a training row it is k + 1/4 + t / 4, which has that of
    the rows of the other folds, t of the way from the least to the largest of these: a row does not know its own target.
    """
    y = max(np.vstack(targets), key=np.var)
    means = {}
    for j, levels in enumerate(table.levels):
        if levels and len(frequent_levels(X[:, j], weight)) < len(levels) - 1:
            X = X if means else X.astype(np.float64)
            X[:, j], means[j] = _written(X[:, j], len(levels), y, weight, rng)
    return X, means


def _written(codes, n_levels, y, weight, rng):
    there = np.flatnonzero(~np.isnan(codes))
    level, y, weight = codes[there].astype(np.intp), y[there], weight[there]
    fold = rng.permutation(len(there)) % N_FOLDS
    unit = np.abs(y).max(initial=0.0) or 1.0  # no square over- or underflows
    sums = [np.bincount(fold * n_levels + level, part, N_FOLDS * n_levels).reshape(N_FOLDS, -1)
            for part in (weight, weight * (y / unit))]  # fmt: skip
    count, total = (of_folds.sum(axis=0) for of_folds in sums)
    prior = _prior(count, total, weight, y / unit, level)
    of_all, of_others = _shrunken(count, total, *prior), _shrunken(count - sums[0], total - sums[1], *prior)
    mean = of_others[fold, level]
    low, high = mean.min(initial=prior[0]), mean.max(initial=prior[0])
    if high - low <= ROUNDING:  # as where each level has a row of its own, of which the other rows tell nothing
        low, high, mean, of_all = prior[0], prior[0], np.full(len(mean), prior[0]), np.full(n_levels, prior[0])
    written = codes.copy()
    written[there] = level + 0.25 + (mean - low) / ((high - low) or 1.0) / 4
    knots = (np.arange(n_levels)[:, None] + [0, 0.25, 0.5]).ravel()
    scores = np.stack([of_all, np.full(n_levels, low), np.full(n_levels, high)], axis=1).ravel()
    return written, (np.append(-1.0, knots), unit * np.append(prior[0], scores))


def _prior(count, total, weight, y, level):
    """(mean of all, how many rows it counts as for a level): the variance within levels over that between them."""
    mean = total.sum() / max(count.sum(), 1e-300)
    means = total / np.maximum(count, 1e-300)
    within = weight @ (y - means[level]) ** 2 / max(count.sum(), 1e-300)
    between = count @ (means - mean) ** 2 / max(count.sum(), 1e-300) - within * len(count) / max(count.sum(), 1e-300)
    return mean, float(np.clip(within / max(between, 1e-3 * within, 1e-300), 1.0, 1e3))


def _shrunken(count, total, mean, rows):
    return (total + rows * mean) / (count + rows)
