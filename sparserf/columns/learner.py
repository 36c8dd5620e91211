"""A table that is learnt from blocks of its rows, one after the other, as from all rows at once.

Of each block only the levels of its categories are kept. Whether a column holds numbers or is a
category depends on all blocks, except those in which all its cells are missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .clocks import Times
from .frames import (
    Columns,
    cells_of,
    is_categorical,
    kind_of,
    label,
    level_cells,
    level_keys,
    listing,
)
from .places import find_columns
from .table import (
    EXACT,
    Table,
    check_not_chosen,
    chosen_columns,
    levels_of,
    ordered_keys,
    warn_of_words,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .clocks import Clock
    from .table import Categorical


@dataclass
class _Column:
    """The state of a column after the blocks so far.

    kinds : the kinds of its cells: "numbers", "strings", or those of clocks
    clock : the clock of times, else None
    is_category, has_list : whether some block has it as a categorical, or as a column whose dtype
        does not determine the type of its cells
    has_plain_numbers : whether some block has it as numbers, and not as a category
    keys, types, orders : the levels so far, their types, and the orders that blocks give them
    is_single : whether all its numbers are float32
    """

    kinds: set[str] = field(default_factory=set)
    clock: Clock | None = None
    is_category: bool = False
    has_list: bool = False
    has_plain_numbers: bool = False
    keys: set[Any] = field(default_factory=set)
    types: set[type] = field(default_factory=set)
    orders: list[Any] = field(default_factory=list)
    is_single: bool = True

    def add(self, where: str, column: Any, is_chosen: bool) -> None:
        """Look at the cells of one block."""
        is_category = is_chosen or is_categorical(column)
        cells = cells_of(where, column, is_category, self.clock and self.clock.zone)
        kind = kind_of(cells)
        if isinstance(cells, Times):
            check_not_chosen(where, cells.clock, is_chosen)
            self.clock = self.clock if kind is None and self.clock else cells.clock
            self.is_single = False
        if isinstance(cells, np.ndarray):
            kind = None if cells.dtype.kind == "f" and np.isnan(cells).all() else kind
            self.is_single &= kind is None or cells.dtype == np.float32
        self.has_list |= isinstance(cells, list)
        self.is_category |= is_category
        self.kinds |= {kind} - {None}
        if len(self.kinds) > 1:
            both = " in some blocks and ".join(sorted(self.kinds, reverse=True))
            raise TypeError(f"{where} holds {both} in others: leave it out, or make it one of them")
        if is_category or kind == "strings":
            present = set(keys := level_keys(where, cells)) - {None}
            self.keys |= present
            self.types |= set(map(type, keys)) - {type(None)}
            self.orders.append(ordered_keys(where, column, kind))
        else:
            self.is_single &= not (isinstance(cells, list) and kind == "numbers")
            self.has_plain_numbers |= kind == "numbers"
        if self.is_category and self.has_plain_numbers:
            raise TypeError(
                f"{where} is a category in some blocks and numbers in others: list it in "
                "categorical"
            )

    @property
    def holds_numbers(self) -> bool:
        """Whether it is a column of numbers, and no category."""
        is_number = self.kinds == {"numbers"} or self.clock is not None
        return not self.is_category and (is_number or not (self.kinds or self.has_list))

    def levels(self) -> tuple[Any, ...]:
        """Return its levels: in the order that all blocks give them, or else sorted."""
        orders = {None if each is None else tuple(each) for each in self.orders}
        return levels_of(self.keys, self.types, orders.pop() if len(orders) == 1 else None)


class TableLearner:
    """Learns the table of rows that come in blocks: `add` each block, then call `table`.

    categorical : the user's argument
    given : the user's {name or index of a category: all its levels}, or None
    """

    def __init__(self, categorical: Categorical, given: Mapping[Any, Sequence[Any]] | None):
        self._categorical, self._given, self._n_rows = categorical, given or {}, 0
        # the names of the first block, by which columns are found in the others
        self._frame: Table | None = None

    def add(self, X: Any) -> None:
        """Look at a block, a frame or an array."""
        columns = Columns(X)
        names = columns.names
        if self._frame is None:
            self._frame = Table(names, (None,) * len(columns))
            places = find_columns("levels", self._given, names, len(columns))
            if len(set(places)) < len(places):
                raise ValueError(f"levels must name a column once, got {list(self._given)!r}")
            given = map(tuple, self._given.values())
            self._levels = dict(zip(places, given, strict=True))
            self._chosen = chosen_columns(self._categorical, names, len(columns)) | set(
                self._levels
            )
            self._columns = [_Column() for _ in range(len(columns))]
            self._flags = frozenset(range(len(columns)))
        self._n_rows += columns.n_rows
        places, booleans = self._frame.places(names, len(columns)), columns.booleans
        self._flags = frozenset(k for k in self._flags if places[k] in booleans)
        for k, place in enumerate(places):
            self._columns[k].add(label(self._frame.names, k), columns[place], k in self._chosen)

    @property
    def needs_no_more(self) -> bool:
        """Whether the user has given the levels of all categories so far."""
        return all(
            column.holds_numbers or k in self._levels for k, column in enumerate(self._columns)
        )

    def table(self) -> tuple[Table, bool]:
        """Return the table, and whether float32 holds all its numbers."""
        names, levels = self._frame.names, []
        for k, column in enumerate(self._columns):
            where = label(names, k)
            if column.holds_numbers:
                levels.append(None)
                continue
            if names is None and k not in self._chosen:
                raise TypeError(
                    f"{where} holds strings: list it in categorical, or make it numbers"
                )
            levels.append(
                self._levels_given(k, where, column) if k in self._levels else column.levels()
            )
            if k not in self._chosen and not column.is_category:
                warn_of_words(where, dict.fromkeys(sorted(column.keys), 1), self._n_rows)
        numbers = [column for column in self._columns if column.holds_numbers]
        is_single = (
            bool(numbers)
            and all(c.is_single for c in numbers)
            and all(len(each or ()) <= EXACT for each in levels)
        )
        clocks = {
            k: column.clock for k, column in enumerate(self._columns) if column.clock is not None
        }
        return Table(names, tuple(levels), clocks, self._flags - self._chosen), is_single

    def _levels_given(self, k, where, column):
        """Return the levels that the user gives of a category, in their order."""
        given = level_cells(where, list(self._levels[k]))
        keys = [key for key in level_keys(where, given) if key is not None]
        if len(set(keys)) < len(keys) or not keys:
            raise ValueError(
                f"levels must list different levels of {where}, got {self._levels[k]!r}"
            )
        lacking = [key for key in column.keys if key not in keys]
        if lacking:
            raise ValueError(
                f"levels must list all levels of {where}, and lacks "
                f"{listing(sorted(lacking, key=str))}"
            )
        return levels_of(set(keys), set(map(type, keys)), keys)
