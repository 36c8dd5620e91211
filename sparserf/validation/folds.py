"""Rows in memory in parts: folds of equal make-up, and some of the rows of X, of whatever kind it is."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import is_foreign
from .._base.checks import check_sample_weight, is_sparse
from .._base.csr import canonical_csr
from ..columns.frames import is_frame, rows_of_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike


class Data:
    """X, y and sample weights whose rows can be taken: a data frame, a dense array or a sparse matrix.

    there : bool ndarray, rows whose weight is not zero
    """

    y: np.ndarray

    def __init__(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None = None):
        self.inputs: Any = self._in_memory(X)
        self.y, n = _column("y", y), self.inputs.shape[0]
        for name, values in (("y", self.y), ("groups", groups)):
            if values is not None and len(values) != n:
                raise ValueError(f"{name} must have an entry for each of the {n} rows of X, got {len(values)}")
        self.weight: np.ndarray | None = None if sample_weight is None else check_sample_weight(sample_weight, n)
        self.there: np.ndarray = np.ones(n, bool) if self.weight is None else self.weight > 0
        self.groups: np.ndarray | None = None if groups is None else _column("groups", groups)

    def __len__(self) -> int:
        return len(self.y)

    @staticmethod
    def _in_memory(X):
        if is_frame(X):
            return X
        if is_sparse(X):
            return canonical_csr(X)
        if is_foreign(X) or "dask" in type(X).__module__ or type(X).__module__.startswith("sparserf"):
            raise TypeError(f"X must be a data frame, a NumPy array or a sparse matrix in memory, got {type(X).__name__}")
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional, got shape {X.shape}")
        return X

    def take(self, some: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """(X, y, weights or None) of these rows, by their places or a mask."""
        some = np.flatnonzero(some) if np.asarray(some).dtype == bool else np.asarray(some)
        X = rows_of_frame(self.inputs, some) if is_frame(self.inputs) else self.inputs[some]
        return X, self.y[some], None if self.weight is None else self.weight[some]

    def with_target(self, y: np.ndarray) -> Data:
        other = copy(self)
        other.y = y
        return other

    def fit(self, function: Callable[..., Any], some: np.ndarray, rng: int, **more: Any) -> Any:
        """function(X, y, ...) of these rows; with their weights where there are any, and the seed unless it has its own."""
        X, y, weight = self.take(some)
        if weight is not None:
            more["sample_weight"] = weight
        if "rng" not in getattr(function, "keywords", {}):
            more["rng"] = rng
        return function(X, y, **more)

    def folds(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """The fold of each row, 0 to n - 1; -1 where its weight is zero. Folds have the same shares of classes, if y has few
        values, and a group is in one of them."""
        fold = np.full(len(self), -1)
        groups = None if self.groups is None else self.groups[self.there]
        fold[self.there] = dealt(strata_of(self.y[self.there], n), n, rng, groups)
        return fold


def _column(name, values):
    values = np.asarray(values)
    if values.dtype.kind == "O":
        values = np.asarray(values.tolist())
    if values.ndim != 1:
        raise ValueError(f"{name} must have one entry a row of X, got shape {values.shape}")
    return values


def strata_of(y: np.ndarray, n_folds: int) -> np.ndarray:
    """A number for each of its values, where these are so few that they may be classes; else 0."""
    values, stratum = np.unique(y, return_inverse=True)
    return stratum if len(values) * n_folds <= len(y) or y.dtype.kind in "OSUb" else np.zeros(len(y), np.intp)


def dealt(stratum: np.ndarray, n_folds: int, rng: np.random.Generator, groups: np.ndarray | None = None) -> np.ndarray:
    """The fold of each row: shuffled, and dealt out stratum by stratum; whole groups, the largest first, where they fit."""
    if groups is not None:
        return _groups_dealt(stratum, n_folds, rng, groups)
    if n_folds > len(stratum):
        raise ValueError(f"cv must be at most the number of rows, {len(stratum)}, got {n_folds}")
    order = rng.permutation(len(stratum))
    order = order[np.argsort(stratum[order], kind="stable")]
    fold = np.empty(len(stratum), np.intp)
    fold[order] = np.arange(len(stratum)) % n_folds
    return fold


def _groups_dealt(stratum, n_folds, rng, groups):
    names, group = np.unique(groups, return_inverse=True)
    if n_folds > len(names):
        raise ValueError(f"cv must be at most the number of groups, {len(names)}, got {n_folds}")
    counts = np.zeros((len(names), stratum.max() + 1))
    np.add.at(counts, (group, stratum), 1.0)
    counts = np.column_stack([counts, counts.sum(axis=1)])
    counts /= counts.sum(axis=0)
    loads, of_group = np.zeros((n_folds, counts.shape[1])), np.empty(len(names), np.intp)
    order = rng.permutation(len(names))
    for k in order[np.argsort(-counts[order].sum(axis=1), kind="stable")]:
        of_group[k] = np.argmin(loads @ counts[k])  # by which the sum of squares of the loads grows least
        loads[of_group[k]] += counts[k]
    return of_group[group]


def seeds(rng: np.random.Generator, n: int) -> list[int]:
    """Seeds of so many fits."""
    return rng.integers(2**63, size=n).tolist()
