"""Sums over the rows in boxes: correlations, Gram matrices and sums of coefficients, in
slices of rows on threads.

Slices depend on shapes alone and their sums are added up in order: the same bits for any number of
threads. The rows in a box are bits. Without weights, a Gram matrix counts the rows in both of two
boxes, by bits; with weights, slices of bits become numbers and are multiplied by BLAS. A matrix of
numbers for all rows is never made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparserf._base.threads import single_threaded_blas
from sparserf._core import boxes as core

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from sparserf._base.threads import Workers

    Boxes = core.BinBoxes | core.NumberBoxes

# Rows of a slice: its vectors and the bits of some hundred boxes stay in the second-level cache.
ROWS = 2**13
# Rows that are numbers at a time, of which a Gram matrix with weights is made.
GRAM_ROWS = 2**11


def n_words(n_rows: int) -> int:
    """Return the number of words that hold a bit for each row."""
    return -(-n_rows // 64)


def _slices(n_rows, size):
    """Cut rows into slices of whole words."""
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def _words(rows):
    """Return the words of a slice of rows."""
    return slice(rows.start // 64, n_words(rows.stop))


def _n_rows(boxes, rows):
    """Return how many rows there are: bins are (n_columns, n_rows), numbers (n_rows, n_columns)."""
    return rows.shape[1 if isinstance(boxes, core.BinBoxes) else 0]


def _evaluate(boxes, rows, some, bits):
    """Write whether some rows are in each box to bits."""
    boxes.evaluate(rows[:, some] if isinstance(boxes, core.BinBoxes) else rows[some], bits)


def evaluate(boxes: Boxes, rows: np.ndarray, workers: Workers) -> np.ndarray:
    """Return the bits of all rows, bins or numbers, in each box: uint64 (n_boxes, n_words)."""
    n = _n_rows(boxes, rows)
    bits = np.empty((boxes.n_boxes(), n_words(n)), np.uint64)
    for _ in workers.map(
        lambda some: _evaluate(boxes, rows, some, bits[:, _words(some)]), _slices(n, ROWS)
    ):
        pass
    return bits


def correlate(boxes: Boxes, rows: np.ndarray, v: np.ndarray, workers: Workers) -> np.ndarray:
    """Return the sum of v (n_outputs, n_rows) over the rows in each box: (n_outputs, n_boxes).

    No bits are kept.
    """

    def part(some):
        bits, out = (
            np.empty((boxes.n_boxes(), n_words(some.stop - some.start)), np.uint64),
            np.zeros((len(v), boxes.n_boxes())),
        )
        _evaluate(boxes, rows, some, bits)
        core.correlate(bits, v[:, some], out)
        return out

    return sum(
        workers.map(part, _slices(_n_rows(boxes, rows), ROWS)), np.zeros((len(v), boxes.n_boxes()))
    )


def apply(boxes: Boxes, rows: np.ndarray, coef: np.ndarray, workers: Workers) -> np.ndarray:
    """Return the sum of coef (n_outputs, n_boxes) over the boxes of rows: (n_outputs, n_rows)."""
    n = _n_rows(boxes, rows)
    out = np.zeros((len(coef), n))

    def part(some):
        bits = np.empty((boxes.n_boxes(), n_words(some.stop - some.start)), np.uint64)
        _evaluate(boxes, rows, some, bits)
        core.apply(bits, coef, out[:, some])

    for _ in workers.map(part, _slices(n, ROWS)):
        pass
    return out


def correlate_bits(bits: np.ndarray, v: np.ndarray, workers: Workers) -> np.ndarray:
    """Return the sum of v (n_outputs, n_rows) over the rows in each box: (n_outputs, n_boxes)."""

    def part(some):
        out = np.zeros((len(v), len(bits)))
        core.correlate(bits[:, _words(some)], v[:, some], out)
        return out

    return sum(workers.map(part, _slices(v.shape[1], ROWS)), np.zeros((len(v), len(bits))))


def apply_bits(bits: np.ndarray, coef: np.ndarray, n_rows: int, workers: Workers) -> np.ndarray:
    """Return the sum of coef (n_outputs, n_boxes) over the boxes of rows: (n_outputs, n_rows)."""
    out = np.zeros((len(coef), n_rows))
    for _ in workers.map(
        lambda some: core.apply(bits[:, _words(some)], coef, out[:, some]), _slices(n_rows, ROWS)
    ):
        pass
    return out


def gram(
    left: np.ndarray,
    right: np.ndarray,
    n_rows: int,
    workers: Workers,
    weights: np.ndarray | None = None,
    dtype: DTypeLike = np.float32,
) -> np.ndarray:
    """Return the sum of weights over the rows that are in both boxes: float64 (len(left),
    len(right)).

    left, right : bits; the same object where the boxes are the same
    weights : (n_rows,), at least 0; None: all are 1, and the sums exact
    dtype : the type of the products with weights, and of their sums over GRAM_ROWS rows
    """
    is_same = left is right
    if weights is None:

        def common(some):
            out = np.zeros((len(left), len(right)), np.int64)
            core.common(left[:, _words(some)], right[:, _words(some)], out, symmetric=is_same)
            return out

        total = sum(workers.map(common, _slices(n_rows, ROWS)), np.zeros((len(left), len(right))))
        return np.tril(total) + np.tril(total, -1).T if is_same else total

    if is_same:  # BLAS takes half the time for a product with the transpose of itself
        root = np.sqrt(weights)

    def product(some):
        n = some.stop - some.start
        weighted = np.empty((len(left), n), dtype)
        core.spread(left[:, _words(some)], weighted, root[some] if is_same else weights[some])
        if is_same:
            return weighted @ weighted.T
        plain = np.empty((len(right), n), dtype)
        core.spread(right[:, _words(some)], plain)
        return weighted @ plain.T

    with single_threaded_blas():
        return sum(
            workers.map(product, _slices(n_rows, GRAM_ROWS)), np.zeros((len(left), len(right)))
        )
