"""Folds: which rows each part of a search fits, and which it holds out.

Every row is predicted by fits that have not seen it. `Folds.row` has the rows of these predictions,
fold after fold: a row that several of a user's pairs hold out is there several times. Their losses
choose penalties and the weights of members.

What a fold knows of y stays in it: no fold sees the terms, the phases or the weights of another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._base.checks import is_sparse
from .._base.copies import warn_of_copies
from .._base.deadline import time_left
from .._base.splits import stratified_folds
from ..rows.remote import MOST_FETCHED_NUMBERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.splits import Split
    from .._base.types import DenseOrCSR, T
    from .task import Task

# Up to so many rows there are so many folds; with more rows one part is held out.
FOLDS_OF_ROWS = ((50_000, 5), (200_000, 3))
# Where one part of the rows is held out, it is one of so many.
PARTS = 5
# The most folds where the user gives a share to hold out, and where more effort asks for more.
MOST_FOLDS, MOST_FOLDS_OF_EFFORT = 5, 10


class FoldRows(NamedTuple):
    """The rows that folds fit: those of a search, or many, of which those of the search are a
    sample.

    task : the task of all of them
    place : where those of the search are among them
    fitted : for each fold the mask of those that it fits
    """

    task: Task
    place: np.ndarray
    fitted: Sequence[np.ndarray]


@dataclass(frozen=True, eq=False)
class Folds:
    """The rows of a search and its folds.

    task : the task of these rows
    splits : for each fold the masks of the rows to fit and to hold out
    many : the rows for what is fitted to many of them, of which those of the search are a sample,
        or all
    are_of_rows : whether they were drawn row by row, neither by groups nor by the user; copies of a
        row count as one
    copies : where they were, the number of each row and its copies, which are together; None where
        there are none
    """

    task: Task
    splits: Sequence[Split]
    many: FoldRows
    are_of_rows: bool = False
    copies: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.splits)

    @property
    def together(self) -> np.ndarray | None:
        """The number of what each row was held out with, its group or its copies; None: it was on
        its own."""
        return self.copies if self.task.groups is None else self.task.groups

    @property
    def searched(self) -> FoldRows:
        """The rows of the search."""
        every = np.arange(len(self.task.weight))
        return FoldRows(self.task, every, [fitted for fitted, _ in self.splits])

    @property
    def n_fitted(self) -> int:
        """The least number of rows that a fold fits."""
        return min(int(np.count_nonzero(fitted)) for fitted, _ in self.splits)

    @cached_property
    def held_out(self) -> list[np.ndarray]:
        """The rows that each fold holds out."""
        return [np.flatnonzero(held) for _, held in self.splits]

    @cached_property
    def row(self) -> np.ndarray:
        """The rows held out, fold after fold."""
        return np.concatenate(self.held_out)

    @cached_property
    def fold(self) -> np.ndarray:
        """The fold of each of them."""
        return np.repeat(np.arange(len(self)), [len(rows) for rows in self.held_out])

    @cached_property
    def weight(self) -> np.ndarray:
        """The weight of each row held out, of sum 1; each fold counts alike."""
        weights = [self.task.weight[rows] for rows in self.held_out]
        return np.concatenate([each / each.sum() for each in weights]) / len(self)

    def predictions(self, margins: Sequence[np.ndarray]) -> np.ndarray:
        """Return the margins (n_targets, len(row)) of the rows held out, each by its own fold."""
        pairs = zip(margins, self.held_out, strict=True)
        return np.concatenate([each[:, rows] for each, rows in pairs], axis=1)

    def means(self, margins: Sequence[np.ndarray]) -> np.ndarray:
        """Return the mean over folds of the margins of these rows."""
        total = sum(each[:, self.row] for each in margins)
        return total / len(self)


def strata_of(task: Task) -> np.ndarray:
    """Return the stratum of each row: its class or, of events, whether its count is above 0.

    A sample takes, and holds out, the same share of each stratum.
    """
    if task.loss.has_events:
        return (task.targets[0] > 0).astype(np.intp)
    if task.loss.is_ordered:
        return task.targets[0].astype(np.intp)
    classes = task.targets if task.loss.is_classifier else ()
    return np.argmax([np.zeros(task.raw.n_rows), *classes], axis=0)


def splits_of_task(splits: Sequence[Split], task: Task, strata: np.ndarray) -> list[Split]:
    """Return splits of all rows of X as splits of the rows of a task; raise a ValueError where one
    has too few rows.

    Of rows of positive weight each needs some in either part, and to fit some of each class or,
    with a log link, an event.
    """
    splits = [(fitted[task.index], held[task.index]) for fitted, held in splits]
    for k, (fitted, held) in enumerate(splits):
        for what, part in (("fit", fitted), ("hold out", held)):
            if not part.any():
                raise ValueError(
                    f"validation must have rows of positive weight to {what} in each pair, got "
                    f"none in pair {k}"
                )
        if task.loss.is_classifier and len(missing := np.setdiff1d(strata, strata[fitted])):
            label = task.classes[missing[0] - (len(task.targets) > 1)].item()
            raise ValueError(
                "validation must have rows of each class to fit in each pair, got none of "
                f"{label!r} in pair {k}"
            )
        if task.loss.has_events and not strata[fitted].any():
            what = "an event" if task.loss.has_times else "y above 0"
            raise ValueError(
                f"validation must have rows to fit with {what} in each pair, got none in pair {k}"
            )
    return splits


def rows_within(task: Task, fitted: np.ndarray) -> DenseOrCSR:
    """Return the encoded rows of a task, in memory, as a model of those fitted sees them: where it
    is to be constant beyond them, the others are clipped to their range."""
    X, inputs = task.rows.array(), task.inputs_held
    if not (inputs.any() and not fitted.all()):
        return X
    low, high = np.full((2, X.shape[1]), [[-np.inf], [np.inf]])
    some = X[fitted]
    if not is_sparse(X):
        low[inputs], high[inputs] = some.min(axis=0)[inputs], some.max(axis=0)[inputs]
        return np.clip(X, low, high, dtype=X.dtype)
    ends = (each.toarray().ravel()[inputs] for each in (some.min(axis=0), some.max(axis=0)))
    low[inputs], high[inputs] = (np.minimum(next(ends), 0.0), np.maximum(next(ends), 0.0))
    data = np.clip(X.data, low[X.indices], high[X.indices], dtype=X.dtype)
    return type(X)((data, X.indices, X.indptr), shape=X.shape)


def given_splits(validation: float | T | None) -> T | None:
    """Return what the user says of which rows to hold out; None where folds are to be drawn."""
    return None if isinstance(validation, float) else validation


def folds_of(
    task: Task,
    strata: np.ndarray,
    validation: float | Sequence[Split] | None,
    most_rows: int,
    rng: np.random.Generator,
    most_many: int = 0,
    effort: float = 1.0,
) -> Folds:
    """Return the folds of a task.

    strata : the stratum of each row (`strata_of`)
    validation : a share s, for round(1 / s) folds and at most five; the splits of all rows of X; or
        None, for a number of folds that suits the rows
    most_rows : about the most rows that are searched, in the memory of this process
    most_many : about the most rows in all, of which those that are searched are a sample
    effort : its root multiplies the number of folds that suits the rows
    """
    splits = given_splits(validation)
    if splits is not None:
        splits = splits_of_task(splits, task, strata)
    if not task.raw.in_memory:  # wide rows are fewer
        most = max(1, MOST_FETCHED_NUMBERS // task.raw.row_size)
        most_rows, most_many = min(most_rows, most), min(most_many, most)
    task, strata, splits, _ = _sampled(task, strata, splits, max(most_rows, most_many), rng)
    if not task.raw.in_memory:
        task = replace(task, raw=task.raw.take(np.arange(task.raw.n_rows)))
    copies, are_of_rows = None, splits is None and task.groups is None
    if splits is None:
        copies = task.copies if task.groups is None else None
        warn_of_copies(copies)
        n = _n_folds(validation, len(strata), effort)
        splits = drawn_splits(strata, n, rng, task.groups, copies)
    many, fitted = task, [fitted for fitted, _ in splits]
    task, strata, splits, place = _sampled(task, strata, splits, most_rows, rng)
    copies = None if copies is None else copies[place]
    return Folds(task, splits, FoldRows(many, place, fitted), are_of_rows, copies)


def _n_folds(validation, n_rows, effort):
    """Return the number of folds to draw; 1: one part is held out."""
    if validation is not None:
        return max(2, min(MOST_FOLDS, round(1 / validation)))
    n = next((n for rows, n in FOLDS_OF_ROWS if n_rows <= rows), 1)
    n = max(1, min(MOST_FOLDS_OF_EFFORT, round(n * effort**0.5)))
    return n if time_left() > 0 else 1


def _sampled(task, strata, splits, n, rng):
    """Return a task, its strata and its splits for about n of its rows, where it has more; and
    their places."""
    if np.count_nonzero(task.weight) <= n:
        return task, strata, splits, np.arange(len(task.weight))
    task, some = sample_of(task, _parts_of(strata, splits), n, rng)
    if splits is not None:
        splits = [(fitted[some], held[some]) for fitted, held in splits]
    return task, strata[some], splits, some


def _parts_of(strata, splits):
    """Return the stratum of each row, and which splits fit it or hold it out, as one number."""
    if splits is None:
        return strata
    masks = [mask for split in splits for mask in split]
    return np.unique(np.column_stack([strata, *masks]), axis=0, return_inverse=True)[1].ravel()


def drawn_splits(
    strata: np.ndarray,
    n: int,
    rng: np.random.Generator,
    groups: np.ndarray | None,
    copies: np.ndarray | None = None,
) -> list[Split]:
    """Return the splits of n folds, or of one part of the rows, with rows of each stratum to fit.

    Where all rows of a stratum are in one fold, they are not held out; with groups that is a
    ValueError.

    groups, copies : the number of the group of each row; where there are no groups, of its copies
    """
    unit = copies if groups is None else groups
    n_units = len(strata) if unit is None else len(np.unique(unit))
    if n_units < 2:
        name, what = ("X", "rows") if groups is None else ("groups", "groups")
        raise ValueError(
            f"{name} must have at least two {what}, of which one can be held out, got {n_units}: "
            "give more, or give what is to be chosen on them"
        )
    fold = stratified_folds(strata, min(n if n > 1 else PARTS, n_units), rng, unit)
    splits = []
    for k in range(min(n, n_units)):
        held = fold == k
        lost = np.isin(strata, np.setdiff1d(strata[held], strata[~held]))
        if lost.any() and groups is not None:
            raise ValueError(
                "groups must leave rows of each class to fit, and with a log link rows with and "
                f"without events, got one of {np.count_nonzero(lost)} rows with all of a class"
            )
        if (held & ~lost).any():
            splits.append((~held | lost, held & ~lost))
    if not splits:
        raise ValueError(
            f"X must have rows to hold out, two of a class, got {len(strata)} in all: give more, "
            "or give what is to be chosen on them"
        )
    return splits


def sample_of(
    task: Task, strata: np.ndarray, n: int, rng: np.random.Generator
) -> tuple[Task, np.ndarray]:
    """Return the task of about n of its rows, with the weights of `thinned`, and their places."""
    weight = thinned(strata, task.weight, n, rng)
    some = np.flatnonzero(weight)
    return replace(task.of_rows(some), weight=weight[some] / weight[some].mean()), some


def thinned(strata: np.ndarray, weight: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return weights of about n of the rows, 0 for the others, under which sums have the same
    expectation.

    Each stratum has its share of the rows, at least two. A row is taken with a probability p in
    proportion to its weight, at most 1; its weight is then divided by p.
    """
    thin, total = np.zeros(len(weight)), weight.sum()
    for stratum in np.unique(strata):
        members = rng.permutation(np.flatnonzero((weight > 0) & (strata == stratum)))
        of_stratum = weight[members]
        p = sampling_probabilities(of_stratum, max(2, round(n * float(of_stratum.sum() / total))))
        taken = np.diff(np.floor(np.cumsum(np.concatenate([[rng.random()], p])))) > 0
        thin[members[taken]] = of_stratum[taken] / p[taken]
    return thin


def sampling_probabilities(weight: np.ndarray, n: float) -> np.ndarray:
    """Return the probability of each row: in proportion to its weight, at most 1, of sum n; all 1
    for at most n rows."""
    if len(weight) <= n:
        return np.ones(len(weight))
    p, certain = n * (weight / weight.sum()), np.zeros(len(weight), bool)
    while p.max() > 1:
        certain |= p > 1
        others = (n - np.count_nonzero(certain)) * (weight / weight[~certain].sum())
        p = np.where(certain, 1.0, others)
    return p
