"""The values of columns that take few whole numbers, such as flags, counts and ratings: found in
one pass, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from .._base.csr import csr_arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import DenseOrCSR

# Up to this many values are few: as many as the days of a month, or the hours of a day.
MOST = 32
# The number of rows that are sorted at a time, and at first: in the first rows most columns already
# have many values.
ROWS = 2**12
FIRST_ROWS = 2**6
# The number of stored entries of CSR rows that are sorted at a time.
ENTRIES = 2**20


@dataclass(frozen=True, eq=False)
class FewValues:
    """The columns of some rows that hold at most `MOST` different numbers, all of them whole, and
    these numbers. NaN is left out.

    is_few : bool ndarray of shape (n_columns,)
    column, value : ndarray of shape (n_values,)
        The values of these columns, one after the other, ascending in each.
    """

    is_few: np.ndarray
    column: np.ndarray
    value: np.ndarray

    @classmethod
    def of_rows(cls, X: DenseOrCSR) -> Self:
        """Return the few values of dense or CSR rows."""
        return cls._of_dense(X) if isinstance(X, np.ndarray) else cls._of_csr(X)

    @classmethod
    def of_nothing(cls, n_columns: int) -> Self:
        """Return the few values of no rows."""
        return cls(np.ones(n_columns, bool), np.zeros(0, np.int64), np.zeros(0))

    @classmethod
    def _of_dense(cls, X):
        found, start = cls.of_nothing(X.shape[1]), 0
        while start < len(X) and found.is_few.any():
            rows = slice(start, start + (ROWS if start else FIRST_ROWS))
            found, start = found.with_rows(lambda asked, x=X[rows]: x[:, asked]), rows.stop
        return found

    @classmethod
    def _of_csr(cls, X):
        (n_rows, n_columns), (data, indices, indptr) = X.shape, csr_arrays(X)
        found = cls.of_nothing(n_columns)
        for start in range(0, int(indptr[-1]), ENTRIES):
            some = slice(start, min(start + ENTRIES, int(indptr[-1])))
            is_asked = found.is_few[indices[some]] & ~np.isnan(data[some])
            x, column = data[some][is_asked], indices[some][is_asked].astype(np.int64)
            is_few = found.is_few.copy()
            is_few[column[x != np.rint(x)]] = False
            x, column = x[is_few[column]], column[is_few[column]]
            values = np.unique(x)
            pairs = np.unique(column * len(values) + np.searchsorted(values, x))
            column, place = np.divmod(pairs, max(len(values), 1))
            found = found.join(cls(is_few, column, values[place].astype(np.float64)))
        n_stored = np.bincount(indices[: indptr[-1]], minlength=n_columns)
        zeros = np.flatnonzero(n_stored < n_rows)
        return found.join(cls(np.ones(n_columns, bool), zeros, np.zeros(len(zeros))))

    def with_rows(self, columns: Callable[[np.ndarray], np.ndarray]) -> FewValues:
        """Return the few values of these rows and further dense ones.

        columns : a function that returns the further rows at some columns; it is asked only for
            columns that may still take few values
        """
        asked, is_few = np.flatnonzero(self.is_few), self.is_few.copy()
        x = columns(asked)
        is_whole = ((x == np.rint(x)) | np.isnan(x)).all(axis=0)
        is_few[asked] = is_whole
        asked, x = asked[is_whole], np.array(x[:, is_whole].T, order="C")
        x.sort(axis=1)  # NaN last
        is_new = ~np.isnan(x)
        is_new[:, 1:] &= x[:, 1:] != x[:, :-1]
        place, _ = np.nonzero(is_new)
        return self.join(FewValues(is_few, asked[place], x[is_new].astype(np.float64)))

    def join(self, other: FewValues) -> FewValues:
        """Return the few values of these rows and others together."""
        is_few = self.is_few & other.is_few
        column = np.concatenate([self.column, other.column])
        value = np.concatenate([self.value, other.value]) + 0.0  # -0 becomes 0
        order = np.lexsort((value, column))
        column, value = column[order], value[order]
        stays = is_few[column]
        stays[1:] &= (column[1:] != column[:-1]) | (value[1:] != value[:-1])
        column, value = column[stays], value[stays]
        is_few &= np.bincount(column, minlength=len(is_few)) <= MOST
        stays = is_few[column]
        return FewValues(is_few, column[stays], value[stays])

    def by_column(self, is_asked: np.ndarray, most: int) -> dict[int, np.ndarray]:
        """Return {column: its values} of the columns in a mask that have at most `most` values."""
        n_values = np.bincount(self.column, minlength=len(is_asked))
        asked = np.flatnonzero(is_asked & (n_values > 0) & (n_values <= most))
        first = np.searchsorted(self.column, asked)
        ends = zip(asked.tolist(), first.tolist(), n_values[asked].tolist(), strict=True)
        return {j: self.value[start : start + n].copy() for j, start, n in ends}
