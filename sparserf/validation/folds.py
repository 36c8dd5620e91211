"""A dataset in memory, of which rows can be taken or fitted, or held out in folds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from inspect import signature
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from .._base.arrays import is_foreign
from .._base.checks import check_integer, check_length, check_offset, check_sample_weight, is_sparse
from .._base.copies import copies_of, warn_of_copies
from .._base.csr import canonical_csr
from .._base.splits import check_groups, draw_groups, read_splits, stratified_folds
from .._base.warnings import CopiedRowsWarning
from ..columns.frames import is_frame, rows_of_frame
from ..columns.table import Table
from ..columns.targets import as_labels, levels_in_order
from ..columns.times import has_fields, read_times

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from .._base.splits import Split, Splits


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows in memory with their targets and weights, from which a part can be taken or fitted.

    Attributes
    ----------
    X : data frame, ndarray or CSR matrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), or (n_samples, n_outputs); of times until events structured
    weight : ndarray of shape (n_samples,) or None
        Sample weights.
    used : ndarray of shape (n_samples,), of bools
        Which rows have a weight other than zero. The others are in no fit and in no fold.
    offset : ndarray of shape (n_samples,), or (n_samples, n_outputs), or None
        What is added to f in each row.
    groups : ndarray of shape (n_samples,) or None
        The number of the group of each row. Rows of a group are fitted, or held out, together.
    levels : ndarray or None
        The levels of y in their order, where it says them.
    given_y : array-like
        y as the user gave it, where it says its levels; else the same as y.
    copies : ndarray of shape (n_samples,) or None
        Where there are no groups, the number of each row and its copies, which stay together, too.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    used: np.ndarray
    offset: np.ndarray | None
    groups: np.ndarray | None
    levels: np.ndarray | None
    given_y: Any
    copies: np.ndarray | None = None

    @classmethod
    def from_arguments(
        cls,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        several_outputs: bool = False,
    ) -> Self:
        """Check the arguments of a public function and make a dataset of them.

        several_outputs : whether y may have several columns
        """
        levels, given_y, X = levels_in_order(y), y, in_memory(X)
        # real targets are labels, too: what they must be the fit says
        y = read_times(y, X.shape[0]).array if has_fields(y) else as_labels(y)
        n = X.shape[0]
        n_outputs = y.shape[1] if several_outputs and y.ndim == 2 else 1
        if n_outputs < 2 or len(y) != n:
            check_length("y", y, n)
        weight = None if sample_weight is None else check_sample_weight(sample_weight, n)
        used = np.ones(n, bool) if weight is None else weight > 0
        offset = None if offset is None else check_offset(offset, n, n_outputs).T
        groups = check_groups(groups, n)
        copies = _copies(X, y, used) if groups is None else None
        given_y = y if levels is None else given_y
        return cls(X, y, weight, used, offset, groups, levels, given_y, copies)

    @property
    def together(self) -> np.ndarray | None:
        """The number of what each row stays together with: its group, or its copies; None: it is on
        its own."""
        return self.copies if self.groups is None else self.groups

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return X, y and the weights (or None) of rows, given by their indices or by a mask."""
        rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
        X = rows_of_frame(self.X, rows) if is_frame(self.X) else self.X[rows]
        return X, self.y[rows], None if self.weight is None else self.weight[rows]

    def offset_of(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the argument `offset` for rows, given by indices or a mask, or no argument."""
        return {} if self.offset is None else {"offset": self.offset[rows]}

    def held_rows(self, fitted: np.ndarray, held: np.ndarray) -> HeldRows:
        """Return the rows of a mask, which a model has not seen that was fitted to others."""
        return HeldRows(*self.take(held), self.y[fitted], self.offset_of(held))

    def fit(
        self, function: Callable[..., Any], rows: np.ndarray, rng: int, **arguments: Any
    ) -> Any:
        """Return function(X, y, ...) for some rows.

        Their weights and offsets are passed on if there are any, their groups if the function takes
        such an argument, and the seed unless the function is a partial with a seed of its own.
        """
        X, y, weight = self.take(rows)
        if self.levels is not None:  # which the function knows by y alone
            places = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
            y = getattr(self.given_y, "iloc", self.given_y)[places]
        if weight is not None:
            arguments["sample_weight"] = weight
        if self.groups is not None and "groups" in signature(function).parameters:
            arguments["groups"] = self.groups[rows]
        if "rng" not in getattr(function, "keywords", {}):
            arguments["rng"] = rng
        with warnings.catch_warnings():
            if self.copies is not None:  # which are said of all rows
                warnings.simplefilter("ignore", CopiedRowsWarning)
            return function(X, y, **self.offset_of(rows), **arguments)

    def assign_folds(self, n_folds: int, rng: np.random.Generator) -> np.ndarray:
        """Return the fold of each row, 0 to n_folds - 1, or -1 where its weight is zero.

        If y has few values, all folds have about the same share of each. Where there are fewer
        different rows than folds, each is a fold with its copies.
        """
        self._warn_of_copies()
        fold = np.full(len(self), -1)
        unit = None if self.together is None else self.together[self.used]
        if self.copies is not None and n_folds <= len(unit):
            n_folds = min(n_folds, len(np.unique(unit)))
        fold[self.used] = stratified_folds(_strata(self.y[self.used], n_folds), n_folds, rng, unit)
        return fold

    def splits(
        self, cv: int | Splits, rng: np.random.Generator, groups: ArrayLike | None = None
    ) -> list[Split]:
        """Return the splits of all folds, or of all pairs that the user gives.

        All rows in them have a positive weight.

        groups : the labels of the groups as the user gave them, for a splitter
        """
        if isinstance(cv, Number):
            fold = self.assign_folds(check_integer("cv", cv, 2), rng)
            return [((fold != k) & self.used, fold == k) for k in range(fold.max() + 1)]
        splits = [
            (fitted & self.used, held & self.used)
            for fitted, held in read_splits("cv", cv, self.X, self.y, groups)
        ]
        for k, split in enumerate(splits):
            if not all(part.any() for part in split):
                raise ValueError(
                    "cv must have rows of positive weight in both parts of each pair, not so in "
                    f"pair {k}"
                )
        return splits

    def _warn_of_copies(self):
        """Warn of copies, if there are many."""
        if self.copies is not None:
            warn_of_copies(self.copies[self.used])

    def weights_of_groups(self, rows: np.ndarray) -> np.ndarray:
        """Return the weight of each group of these rows; if there are no groups, of each row, with
        its copies."""
        weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
        if self.together is None:
            return weight
        return np.bincount(np.unique(self.together[rows], return_inverse=True)[1], weight)

    def draw(
        self, rows: np.ndarray, n: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw n of these rows, or whole groups of about as many; return them and the rest.

        Both are shuffled.
        """
        if self.together is None:
            return tuple(np.split(rng.permutation(rows), [n]))
        self._warn_of_copies()
        drawn = draw_groups(self.together[rows], np.zeros(len(rows), np.intp), n / len(rows), rng)
        return rng.permutation(rows[drawn]), rng.permutation(rows[~drawn])


class HeldRows(NamedTuple):
    """Rows that a model has not seen.

    X, y, weight : the rows, their targets, and their weights; None where all are equal
    fitted_y : the targets of the rows that the model was fitted to
    offset : the argument `offset` of the rows, or no argument
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    fitted_y: np.ndarray
    offset: dict[str, np.ndarray]

    def ask(self, method: Callable[..., ArrayLike]) -> np.ndarray:
        """Return what a method of a model returns for the rows, in double precision."""
        return np.asarray(method(self.X, **self.offset), np.float64)


def in_memory(X: Any) -> Any:
    """Return X as a data frame, an ndarray or a CSR matrix, which must be in host memory."""
    if is_frame(X):
        return X
    if is_sparse(X):
        return canonical_csr(X)
    if is_foreign(X) or "dask" in type(X).__module__ or type(X).__module__.startswith("sparserf"):
        raise TypeError(
            "X must be a data frame, a NumPy array or a sparse matrix in memory, got "
            f"{type(X).__name__}"
        )
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional, got shape {X.shape}")
    return X


def _copies(X, y, used):
    """Return the number of each row and its copies among those used, or None."""
    numbers, is_category = _as_numbers(X)
    if numbers is None:
        return None
    if y.dtype.names:
        y = np.column_stack([np.unique(y[name], return_inverse=True)[1] for name in y.dtype.names])
    copies = copies_of(numbers[used], y[used], is_category)
    if copies is None:
        return None
    number = np.zeros(len(y), np.intp)
    number[used] = copies
    return number


def _as_numbers(X):
    """Return X as numbers, and a mask of its categories; (None, None) where it cannot be read: the
    function that is to fit it may be able to, or will say what is wrong."""
    if is_sparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "fiub"):
        return X, None
    words = None
    if isinstance(X, np.ndarray):
        words = [j for j, column in enumerate(X.T) if any(isinstance(x, str) for x in column)]
    try:
        with warnings.catch_warnings(action="ignore"):
            numbers, table = Table.learn(X, words)
    except (TypeError, ValueError):
        return None, None
    return numbers, np.array([levels is not None for levels in table.levels])


def _strata(y, n_folds):
    """Return the index of each row's value if y has few, as classes are, else 0 for all rows, as of
    several outputs; of times until events whether it is one."""
    if y.ndim == 2:
        return np.zeros(len(y), np.intp)
    y = y["event"] if y.dtype.names else y
    values, stratum = np.unique(y, return_inverse=True)
    has_few = len(values) * n_folds <= len(y) or y.dtype.kind in "OSUb"
    return stratum if has_few else np.zeros(len(y), np.intp)


def draw_seeds(rng: np.random.Generator, n: int) -> list[int]:
    """Draw the seeds of n fits."""
    return rng.integers(2**63, size=n).tolist()
