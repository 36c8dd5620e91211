"""The columns of a box as coordinates z, in which boxes are cut, and the inputs u of terms as
functions of them.

There is a coordinate for each column that terms see, by what is made of the column:

- a column of numbers with one encoding: z is the encoding u itself, which is continuous in x
- a column of numbers with several encodings, or with an angle: z is piecewise linear in x, and
  every u lies near a chord over an interval of z
- a category, a column of numbers that takes few, or a cell that is fixed: z is the index in a table
  of the values of all encodings of the column, one line for each level or number; these are ordered
  by f, so that an interval has levels of like f

On a box of z with middle s = 0 and ends s = -1 and 1, input v is within `spread` of mid + chord s.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..expansion.terms import (
    column_clocks,
    column_flags,
    column_levels,
    column_names,
    columns_of_encodings,
    encoder_of,
)
from ..features.activations import EPS

if TYPE_CHECKING:
    from ..columns.encoder import ColumnEncoder
    from ..expansion import Expansion
    from ..expansion.box import Box

# A coordinate of a column with several encodings has cells over which each encoding changes by less
# than this share of its range.
FINE = 1 / 128
# Cells are halved at most so often for that.
HALVINGS = 12
# The most quarters of a turn of an angle at which such a coordinate is cut.
MOST_QUARTERS = 2**13
# The most cells that are halved.
MOST_CELLS = 2**14


class Geometry(NamedTuple):
    """The inputs on n boxes: within spread of mid + chord s for s in [-1, 1], with the derivatives
    du/dz in [flat, steep].

    rad : the most that each is away from mid, at most |chord| + spread: no more than |chord| where
        u is monotone in z

    All arrays are of shape (n, n_inputs). Inputs of tables have chord 0.
    """

    mid: np.ndarray
    chord: np.ndarray
    spread: np.ndarray
    flat: np.ndarray
    steep: np.ndarray
    rad: np.ndarray


class Space:
    """The coordinates of a box, and the inputs of terms.

    columns : the column of each coordinate
    low, high : ndarray of shape (n_axes,), the whole box
    encodings : the encoding that each input is; place : the input of each encoding, 0 for those
        that no term sees
    axis : the coordinate of each input
    membership : (n_inputs, n_axes), 1 where an input is made of a coordinate and 0 elsewhere
    is_table : whether each coordinate is the index in a table
    tables : {coordinate: values of its inputs, (n_levels, n_inputs of it)}
    """

    encodings: np.ndarray
    encoder: ColumnEncoder
    place: np.ndarray
    axis: np.ndarray
    low: np.ndarray
    high: np.ndarray
    membership: np.ndarray
    is_table: np.ndarray

    def __init__(self, model: Expansion, box: Box, seen: np.ndarray, rising: int | None = None):
        """Make the coordinates of the columns of the encodings that terms see, ascending.

        rising : a column of numbers whose coordinate must rise with the numbers
        """
        self._rising = rising
        encoder = encoder_of(model.features)
        self._model, self._box, self.encodings = model, box, seen
        column = encoder.column[seen]
        used, of_input = np.unique(column, return_inverse=True)
        self._used = used
        # The encoder of the inputs alone, whose rows hold the columns that are used.
        self.encoder = replace(encoder.in_knots.take(seen), column=of_input, n_columns=len(used))
        self.place = np.zeros(len(columns_of_encodings(model.features)), np.intp)
        self.place[seen] = np.arange(len(seen))
        self.axis = np.zeros(len(seen), np.intp)
        self.columns: list[int] = []
        self.tables: dict[int, np.ndarray] = {}
        self._states: dict[int, np.ndarray] = {}
        self._inputs_of: list[np.ndarray] = []
        self._curves: dict[int, Curve] = {}
        low, high = [], []
        for k, j in enumerate(used.tolist()):
            inputs, ends = np.flatnonzero(of_input == k), (box.low[j], box.high[j])
            if j in box.levels or not ends[0] < ends[1]:
                states = box.levels.get(j, np.array([box.low[j]]))
                self._add_table(j, inputs, states, low, high)
                continue
            numbers = inputs[encoder.is_continuous[seen[inputs]]]
            constant = np.setdiff1d(inputs, numbers)
            if len(constant):
                self._add_table(j, constant, np.array([ends[0]]), low, high)
            if len(numbers):
                self._add_number(j, numbers, ends, low, high)
        self.low, self.high = np.array(low, float), np.array(high, float)
        self.membership = (self.axis[:, None] == np.arange(len(low))).astype(np.float64)
        self.is_table = np.isin(np.arange(len(low)), list(self.tables))
        # the inputs that are their coordinate itself
        self._direct = np.flatnonzero(~np.isin(self.axis, [*self.tables, *self._curves]))
        self._bound_inputs()

    def _encode(self, j, x):
        """Return all inputs at numbers x of column j, (n, n_inputs); those of other columns are
        meaningless."""
        X = np.zeros((len(x), len(self._used)))
        X[:, np.searchsorted(self._used, j)] = x
        return self.encoder.transform(X)

    def _add_axis(self, j, inputs, ends, low, high):
        """Add a coordinate, and return its index."""
        self.axis[inputs] = len(self.columns)
        self.columns.append(j)
        self._inputs_of.append(inputs)
        low.append(ends[0])
        high.append(ends[1])
        return len(self.columns) - 1

    def _add_table(self, j, inputs, states, low, high):
        """Add a coordinate whose values are the indices of some cells of column j."""
        a = self._add_axis(j, inputs, (0.0, len(states) - 1.0), low, high)
        self._states[a], self.tables[a] = states, self._encode(j, states)[:, inputs]

    def _add_number(self, j, inputs, ends, low, high):
        """Add the coordinate of a column of numbers."""
        turns = bool(self.encoder.turn[inputs].any())
        knots = [self.encoder.encoding(v).turns(*ends, MOST_QUARTERS) for v in inputs]
        inside = (k[(k > ends[0]) & (k < ends[1])] for k in knots)
        places = np.unique(np.concatenate([ends, *inside]))
        rises = j != self._rising or (np.diff(self.knots(inputs[0])[1]) >= 0).all()
        if len(inputs) == 1 and not turns and rises:
            u = self._encode(j, places)[:, inputs[0]]
            a = self._add_axis(j, inputs, (u.min(), u.max()), low, high)
            self._states[a] = places[[u.argmin(), u.argmax()]]
        else:
            curve = Curve(self, inputs, places)
            a = self._add_axis(j, inputs, (0.0, curve.z[-1]), low, high)
            self._curves[a] = curve

    def knots(self, v: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the knots and the scores of an input."""
        own = slice(*self.encoder.first_knot[v : v + 2])
        return self.encoder.knots[own], self.encoder.scores[own]

    def _bound_inputs(self):
        """Bound the size of all inputs, and the rounding of encodings."""
        n = len(self.encodings)
        self.rounding, self.largest = np.zeros(n), np.zeros(n)
        for a in range(len(self.columns)):
            inputs = self._inputs_of[a]
            self.largest[inputs] = np.abs(self.tables[a]).max(axis=0) if a in self.tables else 0.0
        for v in range(n):
            a = self.axis[v]
            j = self.columns[a]
            states = self._states[a] if a in self.tables else [self._box.low[j], self._box.high[j]]
            largest = np.abs(np.nan_to_num(states)).max()
            self.rounding[v] = self.encoder.encoding(v).rounding(float(largest))
        number = [v for v in range(n) if self.axis[v] not in self.tables]
        if number:
            ends = self.geometry(self.low[None], self.high[None])
            self.largest[number] = (np.abs(ends.mid) + ends.rad)[0, number]

    def order_levels(self, values: Any) -> None:
        """Order the levels of categories by the value of a function of z, (n, n_axes) -> (n,), over
        points of the box."""
        rng = np.random.default_rng(0)
        for a in [a for a in self.tables if len(self._states[a]) > 2]:
            n = len(self._states[a])
            Z = np.repeat(self.random(rng, 32)[None], n, axis=0)
            Z[:, :, a] = np.arange(n)[:, None]
            mean = values(Z.reshape(n * 32, -1)).reshape(n, 32).mean(axis=1)
            order = np.argsort(mean, kind="stable")
            self._states[a], self.tables[a] = self._states[a][order], self.tables[a][order]

    def along(self, a: int, n: int) -> np.ndarray:
        """Return points of coordinate a of a column of numbers, ascending: n of its interval, or
        all that it takes, without a missing cell."""
        if not self.is_table[a]:
            return np.linspace(self.low[a], self.high[a], n)
        order = np.argsort(self._states[a], kind="stable")
        return order[~np.isnan(self._states[a][order])].astype(np.float64)

    def random(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return random points of the box, (n, n_axes)."""
        Z = self.low + rng.random((n, len(self.low))) * (self.high - self.low)
        for a in self.tables:
            Z[:, a] = rng.integers(0, len(self._states[a]), n)
        return Z

    def inputs(self, Z: np.ndarray) -> np.ndarray:
        """Return the inputs at points, (n, n_inputs)."""
        U = np.empty((len(Z), len(self.encodings)))
        U[:, self._direct] = Z[:, self.axis[self._direct]]
        for a, table in self.tables.items():
            U[:, self._inputs_of[a]] = table[Z[:, a].astype(np.intp)]
        for a, curve in self._curves.items():
            U[:, self._inputs_of[a]] = curve.at(Z[:, a])
        return U

    def inputs_of_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the inputs in rows of numbers, (n, n_columns)."""
        return self.encoder.transform(rows[:, self._used])

    def geometry(self, low: np.ndarray, high: np.ndarray) -> Geometry:
        """Return the inputs on boxes of z, each array (n, n_axes)."""
        n = len(low), len(self.encodings)
        mid, chord, rad = (np.zeros(n) for _ in range(3))
        answers = Geometry(
            mid, chord, np.broadcast_to(self.rounding, n).copy(), np.ones(n), np.ones(n), rad
        )
        direct, axes = self._direct, self.axis[self._direct]
        answers.mid[:, direct] = (low[:, axes] + high[:, axes]) / 2
        answers.chord[:, direct] = (high[:, axes] - low[:, axes]) / 2
        answers.rad[:, direct] = answers.chord[:, direct] + self.rounding[direct]
        for a in self.tables:
            inputs = self._inputs_of[a]
            least, most = self._range_of_table(a, low[:, a], high[:, a])
            # one value is its own middle, without rounding
            loose = np.where(least < most, 4 * EPS * (np.abs(least) + np.abs(most)), 0.0)
            answers.mid[:, inputs] = (least + most) / 2
            answers.spread[:, inputs] = (most - least) / 2 + loose + self.rounding[inputs]
            answers.rad[:, inputs] = answers.spread[:, inputs]
        for a, curve in self._curves.items():
            for array, part in zip(answers, curve.over(low[:, a], high[:, a]), strict=True):
                array[:, self._inputs_of[a]] = part
            for array in (answers.spread, answers.rad):
                array[:, self._inputs_of[a]] += self.rounding[self._inputs_of[a]]
        return answers

    def _range_of_table(self, a, low, high):
        """Return the least and the largest values in the lines low to high of a table."""
        first, last = low.astype(np.intp), high.astype(np.intp)
        return tuple(
            _range_query(_ranges(self.tables[a], take), first, last, take)
            for take in (np.minimum, np.maximum)
        )

    def halve(
        self, low: np.ndarray, high: np.ndarray, a: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (low, high) of the first halves of boxes, and then of the second, cut across one
        coordinate of each, a."""
        i = np.arange(len(low))
        middle = low[i, a] + (high[i, a] - low[i, a]) / 2
        left, right = high.copy(), low.copy()
        left[i, a] = np.where(self.is_table[a], np.floor(middle), middle)
        right[i, a] = np.where(self.is_table[a], np.floor(middle) + 1, middle)
        return np.concatenate([low, right]), np.concatenate([left, high])

    def row(self, z: np.ndarray) -> np.ndarray:
        """Return the row of numbers at a point, (n_columns,), in the units of X; levels are
        codes."""
        row = np.where(np.isfinite(self._box.low), (self._box.low + self._box.high) / 2, np.nan)
        for j, levels in self._box.levels.items():
            row[j] = levels[0]
        for a, j in enumerate(self.columns):
            if a in self.tables:
                row[j] = self._states[a][int(z[a])]
            elif a in self._curves:
                row[j] = np.interp(z[a], self._curves[a].z, self._curves[a].x)
            else:
                row[j] = self._invert(a, z[a])
        for j, clock in column_clocks(self._model).items():
            row[j] = row[j] if np.isnan(row[j]) else clock.to_a_microsecond(float(row[j]))
        return row

    def _invert(self, a, z):
        """Return a number whose one encoding is z, by bisection between the places of the least and
        the largest encoding."""
        least, most = self._states[a]
        j, v = self.columns[a], self._inputs_of[a][0]
        if z in self._encode(j, self._states[a])[:, v]:
            return self._states[a][self._encode(j, self._states[a])[:, v] == z][0]
        for _ in range(100):
            middle = (least + most) / 2
            is_below = self._encode(j, np.array([middle]))[0, v] < z
            least, most = (middle, most) if is_below else (least, middle)
        return (least + most) / 2

    def cells(self, row: np.ndarray) -> dict[str | int, Any]:
        """Return a row of numbers as a user writes it: {name of a column, or its index: number,
        time, level, or None}."""
        names, levels = column_names(self._model), column_levels(self._model)
        clocks, flags = column_clocks(self._model), column_flags(self._model)
        keys = names if self._model.feature_names_in_ else range(len(names))
        cells = {}
        for j, key in enumerate(keys):
            if np.isnan(row[j]):
                cells[key] = None
            elif j in clocks:
                cells[key] = clocks[j].cell(float(row[j]))
            elif j in flags and row[j] in (0, 1):
                cells[key] = bool(row[j])
            else:
                cells[key] = float(row[j]) if levels[j] is None else levels[j][int(row[j])]
        return cells


class Curve:
    """The coordinate of a column of numbers with several encodings: z is linear in x on each cell
    of a grid.

    x, z : the grid, ascending; z is what all encodings together have changed by
    """

    x: np.ndarray
    z: np.ndarray

    def __init__(self, space: Space, inputs: np.ndarray, places: np.ndarray):
        """Refine a grid of numbers that holds all knots until the encodings change little on each
        cell."""
        encoder = space.encoder.take(inputs)
        self._space, self._inputs = space, inputs
        self._encoder = replace(encoder, column=np.zeros(len(inputs), np.intp), n_columns=1)
        x = np.unique(np.concatenate([np.linspace(places[0], places[-1], 9), places]))
        u = self._encode(x)
        for _ in range(HALVINGS):
            share = np.abs(np.diff(u, axis=0)) / np.maximum(np.ptp(u, axis=0), 1e-300)
            wide = np.flatnonzero(share.max(axis=1) > FINE)
            if len(x) > MOST_CELLS:  # derivatives are bounded on cells of any size
                break
            x = np.unique(np.append(x, (x[wide] + x[wide + 1]) / 2))
            u = self._encode(x)
        share = np.abs(np.diff(u, axis=0)) / np.maximum(np.ptp(u, axis=0), 1e-300)
        z = np.append(0.0, np.cumsum(share.mean(axis=1) + 1e-3 * np.diff(x) / (x[-1] - x[0])))
        is_new = np.append(True, np.diff(z) > 0)
        self.x, self.z = x[is_new], z[is_new]
        self._slopes()

    def _encode(self, x):
        """Return the inputs of the column at numbers x, (n, n_inputs of it)."""
        return self._encoder.transform(x[:, None])

    def _slopes(self):
        """Bound du/dz on each cell."""
        dx = np.diff(self.x) / np.diff(self.z)
        flat, steep = zip(
            *(self._space.encoder.encoding(v).slopes(self.x, dx) for v in self._inputs), strict=True
        )
        self._ends = _ranges(np.stack([*(-each for each in flat), *steep], axis=1), np.maximum)

    def at(self, z: np.ndarray) -> np.ndarray:
        """Return the inputs of the column at coordinates z."""
        return self._encode(np.interp(z, self.z, self.x))

    def over(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return (mid, chord, spread, flat, steep, rad) of the inputs over intervals of z: see
        `Geometry`."""
        last = len(self.z) - 2
        first_cell = np.clip(np.searchsorted(self.z, low, side="right") - 1, 0, last)
        last_cell = np.clip(np.searchsorted(self.z, high, side="left") - 1, first_cell, last)
        ends = _range_query(self._ends, first_cell, last_cell, np.maximum)
        flat, steep = -ends[:, : len(self._inputs)], ends[:, len(self._inputs) :]
        left, right, width = self.at(low), self.at(high), (high - low)[:, None]
        slope = np.clip((right - left) / np.maximum(width, 1e-300), flat, steep)
        bow = (steep - slope) * (slope - flat) / np.maximum(steep - flat, 1e-300) * width
        chord = (right - left) / 2
        rad = np.abs(chord) + np.where(flat * steep >= 0, 0.0, bow)
        return (left + right) / 2, chord, bow, flat, steep, rad


def _ranges(cells, take):
    """Return the minima or maxima of the lines k to k + 2^p - 1 of an array, for each p: a list of
    arrays."""
    levels = [cells]
    while 2 * (step := 2 ** (len(levels) - 1)) <= len(cells):
        levels.append(take(levels[-1][:-step], levels[-1][step:]))
    return levels


def _range_query(levels, first, last, take):
    """Return the minima or maxima of the lines first to last, for arrays of both."""
    power = np.frexp(last - first + 1)[1] - 1
    out = np.empty((len(first), levels[0].shape[1]))
    for p in np.unique(power).tolist():
        has_power = power == p
        out[has_power] = take(levels[p][first[has_power]], levels[p][last[has_power] + 1 - 2**p])
    return out
