"""Thresholds: numbers of few digits between two neighbouring values of the rows, far from both.

A rule asks whether x <= t. With t equal to a value of the rows, the answer for such a row would
depend on rounding: as float32, by another engine, or as 3 * .1 for .3. So t is in the middle half
of the gap between its neighbours and, where these differ in float32, between their float32 values,
too.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import is_foreign, to_host
from .._base.checks import is_sparse
from .feature_set import FeatureSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..rows import Block, Rows

# Thresholds between values that differ in float32 have at most this many digits; others have more,
# by which `is_for_single` tells them.
DIGITS = 9
# The number of digits with which any float64 is written exactly.
ALL_DIGITS = 17
# The number of cells that are sorted at a time.
SORTED_CELLS = 2**20


def thresholds_between(low: np.ndarray, high: np.ndarray, marks: bool = True) -> np.ndarray:
    """Return a number t between each pair of neighbours low < high: low <= t < high.

    It is the shortest decimal number in the middle half of the gap, nearest to the middle, for
    which float32 of t, too, is between the neighbours in float32. Where these are next to each
    other there, t is the largest number that float32 rounds to the lower one: any float64 number is
    then on the side of its float32.

    marks : whether a threshold between neighbours that are one number in float32 has more than
        DIGITS digits, for `is_for_single`
    """
    first, last, is_single, is_next = _ends(low, high)
    between = np.where(is_next, last, np.clip(first / 2 + last / 2, first, last))
    middle, is_open = between.copy(), ~is_next
    zero = is_open & is_single & (first <= 0) & (last >= 0)
    between[zero], is_open[zero] = 0.0, False
    is_single |= not marks
    for digits in range(1, ALL_DIGITS + 1):
        places = np.flatnonzero(is_open & (is_single | (digits > DIGITS)))
        rounded = np.array([float(f"{x:.{digits}g}") for x in middle[places].tolist()])
        fits = (first[places] <= rounded) & (rounded <= last[places])
        if digits > DIGITS:  # a number with zeros at its end has fewer
            is_long = np.array([not _is_short(x) for x in rounded.tolist()], bool)
            fits &= is_single[places] | is_long
        between[places[fits]] = rounded[fits]
        is_open[places[fits]] = False
    return between


def moved_between(t: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return thresholds between the neighbours low <= t < high: t itself where it may stay, also
    where it has no neighbours on both sides.

    A new threshold need not have more than DIGITS digits where its neighbours are equal in float32:
    the values of the sample from which the thresholds come differ there, and at most the few rows
    whose value is the threshold in float32 change sides.
    """
    t = t.copy()
    has_gap = np.isfinite(low) & np.isfinite(high)
    first, last, *_ = _ends(low[has_gap], high[has_gap])
    moves = np.flatnonzero(has_gap)[(t[has_gap] < first) | (t[has_gap] > last)]
    t[moves] = thresholds_between(low[moves], high[moves], marks=False)
    return t


def _ends(low, high):
    """Return, for each pair of neighbours, (the least threshold, the largest, whether they differ
    in float32 or are beyond it, whether they are also neighbours among all numbers of float32)."""
    quarter = high / 4 - low / 4
    first = low + quarter
    last = np.minimum(high - quarter, np.nextafter(high, -np.inf))
    with np.errstate(over="ignore"):
        one, other = low.astype(np.float32), high.astype(np.float32)
    is_held = np.isfinite(one) & np.isfinite(other)
    is_apart = is_held & (one < other)
    one, other = (np.where(is_apart, each, np.float32(0)) for each in (one, other))
    before = np.nextafter(other, np.float32(-np.inf))
    ends = before.astype(np.float64) / 2 + other.astype(np.float64) / 2
    below = np.where(ends.astype(np.float32) < other, ends, np.nextafter(ends, -np.inf))
    is_next = is_apart & (before == one)
    first = np.where(is_apart, np.maximum(first, one), first)
    last = np.where(is_apart, np.minimum(last, below), last)
    first, last = np.where(is_next, below, first), np.where(is_next, below, last)
    return first, np.maximum(first, last), is_apart | ~is_held, is_next


@np.errstate(over="ignore")
def starts_in_single(values: np.ndarray) -> np.ndarray:
    """Return a mask of the ascending values that are above the one before in float32."""
    singles = values.astype(np.float32)
    return np.concatenate([[True], singles[1:] > singles[:-1]])


def is_for_single(t: float) -> bool:
    """Return whether a threshold of `thresholds_between` was between numbers that float32 tells
    apart."""
    with np.errstate(over="ignore"):
        one, other = np.float32(t), np.float32(np.nextafter(t, np.inf))
    return bool(_is_short(t) or one != other)


def _is_short(t):
    """Return whether a number has at most DIGITS digits."""
    return float(f"{t:.{DIGITS}g}") == t


def neighbours(
    rows: Rows, inputs: np.ndarray, thresholds: Sequence[np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, for the thresholds of each of some inputs, the largest number of the rows that is at
    most the threshold, and the least one above it; infinite where there is none. One pass."""
    low, high = rows.sum(partial(_neighbours, inputs, thresholds), add=np.maximum)
    ends = np.cumsum([len(each) for each in thresholds])[:-1]
    return list(zip(np.split(low, ends), np.split(-high, ends), strict=True))


def between_rows(features: FeatureSet, raw: Rows) -> FeatureSet:
    """Return features that have the same values on the rows, with thresholds moved between values
    of the rows. One pass, if there are thresholds.

    raw : the rows before the column encoder of the features encodes them
    """
    pairs = [block.thresholds for block in features.blocks]
    inputs, t = (np.concatenate(each) for each in zip(*pairs, strict=True)) if pairs else ([], [])
    if not len(t):
        return features
    used, encoder = np.unique(inputs), features.encoder
    of_input = [np.flatnonzero(inputs == v) for v in used]
    rows, columns = raw, used
    if encoder is not None:
        rows, columns = raw.encoded(encoder.take(used)), np.arange(len(used))
    moved = t.copy()
    ends = neighbours(rows, columns, [t[places] for places in of_input])
    for places, (low, high) in zip(of_input, ends, strict=True):
        moved[places] = moved_between(t[places], low, high)
    parts = np.split(moved, np.cumsum([len(own) for _, own in pairs])[:-1])
    blocks = [
        block.with_thresholds(part) for block, part in zip(features.blocks, parts, strict=True)
    ]
    return FeatureSet(blocks, features.n_inputs, features.order, encoder)


def _neighbours(inputs: np.ndarray, thresholds: Sequence[np.ndarray], block: Block) -> np.ndarray:
    """Return the `neighbours` among the rows of a block, the upper ones as their negatives."""
    size = max(1, SORTED_CELLS // len(inputs))

    def part(start):
        X = dense_cells(block, np.arange(start, min(start + size, block.n_rows)), inputs)
        return np.hstack([_beside(x, t) for x, t in zip(X.T, thresholds, strict=True)])

    parts = list(block.workers.map(part, range(0, block.n_rows, size)))
    return np.max(parts, axis=0)


def dense_cells(block: Block, rows: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """Return some inputs of some rows of a block, dense, in the memory of this process."""
    X = block.take(rows)
    X = (to_host(X) if is_foreign(X) else X)[:, inputs]
    return X.toarray() if is_sparse(X) else np.ascontiguousarray(X)


def _beside(x, thresholds):
    """Return the neighbours of thresholds in a column, the upper ones as their negatives."""
    x = np.sort(x[~np.isnan(x)]).astype(np.float64)
    at = np.searchsorted(x, thresholds, side="right")
    x = np.concatenate([[-np.inf], x, [np.inf]])
    return np.stack([x[at], -x[at + 1]])
