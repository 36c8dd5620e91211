"""The levels of a column, each of which has a threshold of its own (Mondrian conformal prediction).

Rows of other levels than a new row's say nothing of it. So a level needs as many rows that
calibrate as a whole table would; where it has fewer, the threshold is that of all rows, and a
warning says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._base.checks import is_sparse
from .._base.warnings import warn
from ..columns.frames import is_frame, label, listing, names_of_frame
from ..columns.places import find_column
from ..columns.table import LevelNumbers, learn_column, read_column
from .experts import Expert, HeldOut, are_enough
from .folds import Dataset, in_memory

if TYPE_CHECKING:
    from .._base.types import MatrixLike

# The number of a level that is not among those known.
UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a column of X, by which rows have numbers.

    name : the column, as the user gave it
    place : its index in X
    column : its name in a data frame; None of an array
    labels : the level of each number; the last is None, of missing cells
    """

    name: str | int
    place: int
    column: str | None
    labels: tuple[Any, ...]

    @classmethod
    def learn(cls, data: Dataset, name: Any) -> tuple[np.ndarray, Self]:
        """Return the number of each row's level, UNKNOWN where its weight is zero, and the levels,
        of the column that a user names, or gives by its index."""
        names = names_of_frame(data.X) if is_frame(data.X) else None
        place = find_column("within", name, names, data.X.shape[1])
        rows = np.flatnonzero(data.used)
        column = _column(data.take(rows)[0], place)
        try:
            cells, levels, _ = learn_column(label(names, place), column, True)
        except TypeError as error:
            what = f"within must be a column of categories, got {name!r}"
            raise TypeError(f"{what}: {error}") from None
        number = np.full(len(data), UNKNOWN)
        number[rows] = _numbers(cells, levels)
        return number, cls(name, place, names and names[place], (*levels, None))

    def numbers(self, X: MatrixLike) -> np.ndarray:
        """Return the number of the level of each row of X; UNKNOWN for a level that is new."""
        X, place = in_memory(X), self.place
        names = names_of_frame(X) if is_frame(X) else None
        if names is not None and self.column is not None:
            place = find_column("within", self.column, names, X.shape[1])
        levels = self.labels[:-1]
        cells = read_column(label(names, place), _column(X, place), levels, LevelNumbers(levels))
        return _numbers(cells, levels)

    def with_enough_rows(
        self, number: np.ndarray, data: Dataset, rows: np.ndarray, coverage: float
    ) -> dict[int, int]:
        """Return the levels that have enough of the rows that calibrate, each with how many rows or
        groups it has; warn of the others.

        Raise a ValueError where the others have most of these rows: then the column is one of many
        different values.

        number : of all rows
        """
        labels, there = self.labels, np.unique(number[data.used]).tolist()
        weights = {k: data.weights_of_groups(rows[number[rows] == k]) for k in there}
        enough = [k for k in there if are_enough(coverage, weights[k])]
        few = [k for k in there if k not in enough]
        needed = int(np.ceil(coverage / (1 - coverage) - 1e-9))
        needs = f"at least {needed} rows, or groups, that calibrate for coverage={coverage:g}"
        if 2 * sum(weights[k].sum() for k in enough) < sum(each.sum() for each in weights.values()):
            raise ValueError(
                f"within must be a column with most rows in levels that have {needs}, got "
                f"{self.name!r}, which has {len(there)} levels, {len(few)} of them with fewer"
            )
        if few:
            named = listing([labels[k] for k in few])
            warn(
                f"within={self.name!r} has levels with too few rows, {named}: each needs {needs}. "
                "Their threshold is that of all rows, which guarantees nothing in such a level",
                UserWarning,
            )
        return {k: len(weights[k]) for k in enough}


@dataclass(frozen=True, eq=False)
class Within:
    """Levels, and the experts that the rows of each calibrate.

    experts : {number of a level: its experts}, of those that have enough rows
    guarantees : {level: the guaranteed share in it, 0 where it has too few rows}
    """

    levels: Levels
    experts: dict[int, tuple[Expert, ...]]
    guarantees: dict[Any, float]

    @classmethod
    def calibrated(
        cls,
        levels: Levels,
        number: np.ndarray,
        held: Sequence[HeldOut],
        guarantees: dict[int, float],
    ) -> Self:
        """Calibrate models in each of the levels for which a share is guaranteed, by its number.

        number : of all rows
        """
        own = {k: tuple(each.expert(number[each.rows] == k) for each in held) for k in guarantees}
        there, labels = np.unique(number[number != UNKNOWN]).tolist(), levels.labels
        return cls(levels, own, {labels[k]: guarantees.get(k, 0.0) for k in there})

    def experts_of_rows(
        self, X: MatrixLike, of_all: tuple[Expert, ...]
    ) -> Iterator[tuple[tuple[Expert, ...], np.ndarray]]:
        """Yield the experts of each level with its rows of X, by their indices, and those of all
        rows for the levels that have none."""
        number = self.levels.numbers(X)
        for k, experts in self.experts.items():
            yield experts, np.flatnonzero(number == k)
        yield of_all, np.flatnonzero(~np.isin(number, list(self.experts)))


def _column(X, place):
    """Return one column of X, a Series of narwhals or a one-dimensional array."""
    if is_frame(X):
        import narwhals as nw

        return nw.from_native(X, eager_only=True)[:, place]
    return X[:, [place]].toarray()[:, 0] if is_sparse(X) else X[:, place]


def _numbers(cells, levels):
    """Return the number of each cell's level, the last for a missing one."""
    return np.where(np.isnan(cells), len(levels), cells).astype(np.intp)
