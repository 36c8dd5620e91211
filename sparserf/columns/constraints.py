"""Constraints: monotone, convex or concave columns, and those that may meet in one term.

`read_constraints` reads the arguments `monotone`, `convex` and `interactions` once, into
`Constraints` of the columns of X. What follows for the inputs of features, which are encodings of
the columns, are `InputConstraints`. A model of features that keep these, with coefficients of at
least 0 where they see an input that is bound, keeps the constraints for all values of X
(`features/shapes.py` says which features do, and makes them).

Features may see only some encodings of a bound column. A monotone number may be seen as it is or as
a rank, both of which rise with it, and a monotone category as one number, the place of its level in
the order. A convex or concave column may be seen as the number itself, in its units, without
limits. Whether a cell is missing may be seen freely, since rows that have the cell do not differ in
it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .frames import Columns, is_ordered, label, listing
from .kinds import MISSING, NUMBER
from .places import find_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .encoder import ColumnEncoder

# The arguments `monotone` and `convex` of fits: a sign for each column that is bound, by name or
# index, or for all columns; for a category the sign may be its levels in ascending order. And the
# argument `interactions`: groups of columns.
Signs: TypeAlias = "Mapping[Any, Any] | Sequence[int] | np.ndarray | None"
Interactions: TypeAlias = "Sequence[Sequence[Any]] | None"


@dataclass(frozen=True, eq=False)
class InputConstraints:
    """What features may see of their inputs.

    sign : for each input 1 where f must not fall in it, -1 where it must not rise, 0 where it is
        free
    curvature : for each input 1 where f must be convex in it, -1 where concave, 0 where it is free
    is_barred : a mask of the inputs that no feature may see
    groups : a mask (n_groups, n_inputs) of the inputs that may stand in one term; inputs of no
        group stand alone, and with others of their column. None: all may
    column : the column of each input
    """

    sign: np.ndarray
    curvature: np.ndarray
    is_barred: np.ndarray
    groups: np.ndarray | None
    column: np.ndarray

    @property
    def is_bound(self) -> np.ndarray:
        """A mask of the inputs that only features of the right shape may see."""
        return (self.sign != 0) | (self.curvature != 0)

    def take(self, inputs: np.ndarray) -> InputConstraints:
        """Return the constraints of some of the inputs."""
        groups = None if self.groups is None else self.groups[:, inputs]
        return replace(
            self,
            sign=self.sign[inputs],
            curvature=self.curvature[inputs],
            is_barred=self.is_barred[inputs],
            groups=groups,
            column=self.column[inputs],
        )

    def without_curved(self) -> InputConstraints:
        """Return the constraints of features that are neither convex nor concave, such as boxes:
        they may see no input in which f must be."""
        is_curved = self.curvature != 0
        return replace(
            self,
            sign=np.where(is_curved, 0, self.sign),
            curvature=0 * self.curvature,
            is_barred=self.is_barred | is_curved,
        )


@dataclass(frozen=True, eq=False)
class Constraints:
    """What the user asks of the model in the columns of X.

    sign, curvature : as in `InputConstraints`, for each column
    groups : a mask (n_groups, n_columns) of the columns that may stand in one term, or None: all
        may
    orders : {category: its levels, ascending}, of the categories with a sign; f must not fall in
        this order where the sign is 1
    """

    sign: np.ndarray
    curvature: np.ndarray
    groups: np.ndarray | None
    orders: Mapping[int, tuple[Any, ...]]

    @property
    def binds(self) -> bool:
        """Whether the model is bound in some column."""
        return bool(self.sign.any() or self.curvature.any())

    def ranks(self, j: int, levels: Sequence[Any]) -> np.ndarray:
        """Return the place of each of these levels, 0, 1, ..., in the order of a category."""
        place = {level: k for k, level in enumerate(self.orders[j])}
        return np.argsort(np.argsort([place[level] for level in levels])).astype(np.float64)

    def of_inputs(self, encoder: ColumnEncoder | None, n_columns: int) -> InputConstraints:
        """Return the constraints of the encodings of an encoder; None: of the columns
        themselves."""
        if encoder is None:
            return InputConstraints(
                self.sign,
                self.curvature,
                np.zeros(n_columns, bool),
                self.groups,
                np.arange(n_columns),
            )
        column, is_missing = encoder.column, encoder.kind == MISSING
        sign, curvature = (
            np.where(is_missing, 0, each[column]) for each in (self.sign, self.curvature)
        )
        is_affine = (encoder.kind == NUMBER) & (np.diff(encoder.first_knot) == 0)
        is_affine &= np.isinf(encoder.reach)
        barred = (sign != 0) & ~self._rises(encoder) | (curvature != 0) & ~is_affine
        groups = None if self.groups is None else self.groups[:, column]
        return InputConstraints(
            np.where(barred, 0, sign), np.where(barred, 0, curvature), barred, groups, column
        )

    def _rises(self, encoder: ColumnEncoder) -> np.ndarray:
        """Return a mask of the encodings that never fall where their column rises."""
        rises = encoder.rises.copy()
        for v in np.flatnonzero(rises):
            j = int(encoder.column[v])
            if j in self.orders:
                X = np.zeros((len(encoder.table.levels[j]), encoder.n_columns))
                X[:, j] = np.argsort(self.ranks(j, encoder.table.levels[j]))
                scores = encoder.take(np.array([v])).transform(X)[:, 0]
            else:
                scores = encoder.scores[encoder.first_knot[v] : encoder.first_knot[v + 1]]
            rises[v] = bool((np.diff(scores) >= 0).all())
        return rises


# ---------------------------------------------------------------- the arguments


def read_constraints(
    monotone: Signs,
    convex: Signs,
    interactions: Interactions,
    X: Any,
    names: Sequence[str] | None,
    levels: Sequence[Sequence[Any] | None],
    n_columns: int,
) -> Constraints | None:
    """Check the three arguments, and return the constraints; None where they ask for nothing.

    X : what the user gave, which says whether its categories are ordered
    names : the names of the columns, or None
    levels : for each column the levels of the training rows, or None for numbers; empty where all
        columns are numbers
    """
    sign, orders = np.zeros(n_columns, int), {}
    for j, value in _values("monotone", monotone, names, n_columns):
        of_column = levels[j] if levels else None
        if of_column is None:
            sign[j] = _sign("monotone", value, label(names, j))
        elif isinstance(value, (list, tuple)):
            sign[j], orders[j] = 1, _order(value, of_column, label(names, j))
        elif _sign("monotone", value, label(names, j)):
            columns = Columns(X)
            place = j if names is None or columns.names is None else columns.names.index(names[j])
            if not is_ordered(columns[place]):
                where = label(names, j)
                raise ValueError(
                    f"monotone must list the levels of {where}, which has no order, ascending, got "
                    f"{value!r}"
                )
            sign[j], orders[j] = value, tuple(of_column)
    curvature = np.zeros(n_columns, int)
    for j, value in _values("convex", convex, names, n_columns):
        curvature[j] = _sign("convex", value, label(names, j))
        if curvature[j] and levels and levels[j] is not None:
            raise ValueError(
                f"convex must be of columns of numbers, got {value!r} for {label(names, j)}, a "
                "category"
            )
    groups = None if interactions is None else _groups(interactions, names, n_columns)
    is_nothing = groups is None and not (sign.any() or curvature.any())
    return None if is_nothing else Constraints(sign, curvature, groups, orders)


def _values(argument, given, names, n_columns):
    """Yield (column, value) of a mapping, or of a sequence with a value for each column."""
    if given is None:
        return
    if isinstance(given, Mapping):
        seen, places = {}, find_columns(argument, given, names, n_columns)
        for j, (key, value) in zip(places, given.items(), strict=True):
            if j in seen:
                raise ValueError(
                    f"{argument} must name a column once, got {label(names, j)} as {seen[j]!r} and "
                    f"{key!r}"
                )
            seen[j] = key
            yield j, value
        return
    if (
        isinstance(given, (str, bytes))
        or not hasattr(given, "__len__")
        or isinstance(given, (set, frozenset))
    ):
        raise TypeError(
            f"{argument} must be a mapping from columns to signs or a sequence of signs, got "
            f"{given!r}"
        )
    if len(given) != n_columns:
        raise ValueError(
            f"{argument} must have an entry for each of the {n_columns} columns of X, got "
            f"{len(given)}"
        )
    yield from enumerate(given)


def _sign(argument, value, where):
    """Return a sign: 1, -1 or 0."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{argument} must be 1, -1 or 0 for {where}, got {value!r}")
    if value not in (1, -1, 0):
        raise ValueError(f"{argument} must be 1, -1 or 0 for {where}, got {value!r}")
    return int(value)


def _order(given, levels, where):
    """Return the order of the levels of a category that the user lists."""
    order = tuple(given)
    if not all(isinstance(level, Hashable) for level in order):
        raise TypeError(f"monotone must list the levels of {where}, got {given!r}")
    repeated = [level for level in dict.fromkeys(order) if order.count(level) > 1]
    if repeated:
        raise ValueError(
            f"monotone must list each level of {where} once, got {listing(repeated)} more often"
        )
    lacking = [level for level in levels if level not in order]
    if lacking:
        raise ValueError(f"monotone must list all levels of {where}, and lacks {listing(lacking)}")
    return order


def _groups(given, names, n_columns):
    """Return the mask of the columns of each group."""
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
        raise TypeError(f"interactions must be a sequence of groups of columns, got {given!r}")
    groups = []
    for group in given:
        if isinstance(group, (str, bytes, Mapping)) or not hasattr(group, "__iter__"):
            raise TypeError(
                f"interactions must be a sequence of groups of columns, got the group {group!r}"
            )
        columns = find_columns("interactions", group, names, n_columns)
        if not columns or len(set(columns)) < len(columns):
            fault = "has a column twice" if columns else "is empty"
            raise ValueError(
                f"interactions must have groups of different columns, got {group!r}, which {fault}"
            )
        if set(columns) in groups:
            raise ValueError(f"interactions must have different groups, got {group!r} twice")
        groups.append(set(columns))
    if not groups:
        raise ValueError(f"interactions must have at least one group of columns, got {given!r}")
    mask = np.zeros((len(groups), n_columns), bool)
    for k, columns in enumerate(groups):
        mask[k, list(columns)] = True
    return mask
