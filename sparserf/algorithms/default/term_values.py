"""The values of the terms of a path at its rows: numbers or, of rules, bits.

The rows that are fitted come first. A Gram matrix of bits is a count of the rows that two boxes
have in common: 32 times less memory than numbers in single precision, and less time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..._core.boxes import BinBoxes, apply, common, correlate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...features import FeatureSet, RuleDictionary
    from ...rows import Rows

# Weights of rows that are not all alike become whole numbers of so many bits: where the Gram matrix
# is made once, and where it is made anew for each step.
BITS_ONCE, BITS_A_STEP = 12, 3
# The model of a step is made of at most so many rows, where it is made anew for each.
MODEL_ROWS = 2**15
# So many boxes are counted at a time.
COUNTED = 512


class Curvature(NamedTuple):
    """The curvature of each row fitted, as the quadratic model of a step has it.

    planes : where it is in bits, pairs (a number, the rows to which it is added; None: all), whose
        sum it is
    words : the words of bits that have the rows of the planes; None: all
    """

    h: np.ndarray
    planes: Sequence[tuple[float, np.ndarray | None]] = ()
    words: np.ndarray | None = None


class TermValues(ABC):
    """The values of p terms at n_rows rows, of which the first n are fitted.

    dtype : of Gram matrices
    """

    dtype: np.dtype

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of terms."""

    @abstractmethod
    def enter(self, features: FeatureSet) -> None:
        """Add terms."""

    @abstractmethod
    def keep(self, kept: np.ndarray) -> None:
        """Keep these n terms, in this order: each is in its place, or beyond the first n."""

    @abstractmethod
    def correlate(self, v: np.ndarray) -> np.ndarray:
        """Return the sum of each term times v over the rows fitted, v (n,) or (n_targets, n)."""

    @abstractmethod
    def apply(self, w: np.ndarray) -> np.ndarray:
        """Return the sum of the terms with weights w at each row: w @ Phi'."""

    def of_model(self, h: np.ndarray, is_once: bool) -> Curvature:
        """Return curvatures of the rows fitted as the quadratic model of a step has them.

        is_once : whether they are the same at each step
        """
        return Curvature(h)

    @abstractmethod
    def gram(self, curvature: Curvature, A: np.ndarray) -> np.ndarray:
        """Return Phi_A diag(h) Phi_A' over the rows fitted, of the terms A."""

    @abstractmethod
    def gram_rows(self, curvature: Curvature, start: int, end: int) -> np.ndarray:
        """Return the products of the terms from start to end with all before end, likewise."""


class Numbers(TermValues):
    """Values as numbers, (p, n_rows)."""

    dtype: np.dtype

    def __init__(self, values: np.ndarray, n: int, rows: Rows | None = None):
        """Take the values of the first terms; rows : of which those that enter are made."""
        self._values, self._n, self._rows = values, n, rows
        self.dtype = values.dtype

    def __len__(self) -> int:
        return len(self._values)

    @property
    def _fitted(self):
        return self._values[:, : self._n]

    def of_terms(self, kept: np.ndarray) -> np.ndarray:
        """Return the values of some terms."""
        return self._values[kept]

    def enter(self, features: FeatureSet) -> None:
        if not all(block.is_bounded for block in features.blocks):
            self.dtype = np.dtype(np.float64)
            self._values = self._values.astype(self.dtype, copy=False)
        p = len(self)
        _resize(self._values, p + len(features))
        self._rows.map(lambda block: block.fill(features, self._values[p:].T))

    def keep(self, kept: np.ndarray) -> None:
        _keep(self._values, kept)

    def correlate(self, v: np.ndarray) -> np.ndarray:
        return (v.astype(self.dtype) @ self._fitted.T).astype(np.float64)

    def apply(self, w: np.ndarray) -> np.ndarray:
        return w.astype(self.dtype) @ self._values

    def gram(self, curvature: Curvature, A: np.ndarray) -> np.ndarray:
        phi = self._fitted if len(A) == len(self) else self._fitted[A]
        rooted = phi * np.sqrt(curvature.h).astype(self.dtype)
        return rooted @ rooted.T

    def gram_rows(self, curvature: Curvature, start: int, end: int) -> np.ndarray:
        phi = self._fitted[:end]
        return (phi[start:] * curvature.h.astype(self.dtype)) @ phi.T


class Bits(TermValues):
    """Values of rules as bits: which of the rows are in the box of each, and its height."""

    dtype: np.dtype = np.dtype(np.float32)

    def __init__(self, dictionary: RuleDictionary, bins: np.ndarray, n: int):
        """Begin without a term; bins : uint8 (n_inputs, n_rows), of the inputs that rules see."""
        self._dictionary, self._bins, self._n = dictionary, bins, n
        self._random = np.random.default_rng(n).random(n)
        self._words = -(-n // 64)
        self._bits = np.empty((0, self._words + -(-(bins.shape[1] - n) // 64)), np.uint64)
        self._height = np.zeros(0)

    def __len__(self) -> int:
        return len(self._bits)

    @property
    def _fitted(self):
        return self._bits[:, : self._words]

    def enter(self, features: FeatureSet) -> None:
        p = len(self)
        boxes, height = self._dictionary.boxes_of(features)
        _resize(self._bits, p + len(features))
        tests, words = BinBoxes(boxes, len(self._bins)), self._words
        tests.evaluate(self._bins[:, : self._n], self._bits[p:, :words])
        tests.evaluate(self._bins[:, self._n :], self._bits[p:, words:])
        self._height = np.concatenate([self._height, height])

    def keep(self, kept: np.ndarray) -> None:
        _keep(self._bits, kept)
        self._height = self._height[kept]

    def correlate(self, v: np.ndarray) -> np.ndarray:
        sums = np.zeros((np.size(v) // self._n, len(self)))
        correlate(self._fitted, np.atleast_2d(v), sums)
        return (sums * self._height).reshape(*v.shape[:-1], -1)

    def apply(self, w: np.ndarray) -> np.ndarray:
        heights = np.ascontiguousarray(np.atleast_2d(w) * self._height)
        f = np.zeros((len(heights), self._bins.shape[1]))
        apply(self._fitted, heights, f[:, : self._n])
        apply(self._bits[:, self._words :], heights, f[:, self._n :])
        return f.reshape(*w.shape[:-1], -1)

    def of_model(self, h: np.ndarray, is_once: bool) -> Curvature:
        """Return curvatures as whole numbers of few bits times a unit, rounded up or down at random
        such that all sums have the right expectation; where the model is made anew for each step,
        of at most MODEL_ROWS rows, and 0 of the others."""
        least, most = float(h.min()), float(h.max())
        if is_once and least == most:
            return Curvature(h, [(most, None)])
        words = np.arange(self._words) if is_once else self._sampled_words
        rows = (64 * words[:, None] + np.arange(64)).ravel()
        rows, n_bits = rows[rows < self._n], BITS_ONCE if is_once else BITS_A_STEP
        unit = most / (2**n_bits - 1)
        whole = np.floor(h[rows] / unit + self._random[rows]).astype(np.int64)
        unit *= self._n / len(rows)
        planes = [(unit * 2**k, as_bits(whole >> k & 1)) for k in range(n_bits)]
        of_model = np.zeros(self._n)
        of_model[rows] = unit * whole
        return Curvature(of_model, planes, None if len(rows) == self._n else words)

    @cached_property
    def _sampled_words(self):
        """The words of rows of which models are made, ascending."""
        drawn = np.random.default_rng(self._n).permutation(self._words)
        return np.sort(drawn[: MODEL_ROWS // 64])

    def gram(self, curvature: Curvature, A: np.ndarray) -> np.ndarray:
        bits, p = self._fitted if len(A) == len(self) else self._fitted[A], len(A)
        bits = bits if curvature.words is None else bits.take(curvature.words, axis=1)
        out = np.empty((p, p), self.dtype)
        for start in range(0, p, COUNTED):
            end = min(start + COUNTED, p)
            out[start:end, :end] = _sums(bits[start:end], bits[:end], curvature.planes)
            out[:start, start:end] = out[start:end, :start].T
        return self._in_heights(out, A, A)

    def gram_rows(self, curvature: Curvature, start: int, end: int) -> np.ndarray:
        bits, every = self._fitted[:end], np.arange(end)
        sums = _sums(bits[start:], bits, curvature.planes).astype(self.dtype)
        return self._in_heights(sums, every[start:], every)

    def _in_heights(self, out, left, right):
        out *= self._height[left].astype(self.dtype)[:, None]
        out *= self._height[right].astype(self.dtype)
        return out


def _resize(values, n):
    """Give an array, of which nothing else keeps a view, n rows in place: the system moves pages,
    and no second copy is made."""
    values.resize((n, values.shape[1]), refcheck=False)


def _keep(values, kept):
    """Keep rows of an array in place, as `TermValues.keep` does."""
    moved = np.flatnonzero(kept != np.arange(len(kept)))
    values[moved] = values[kept[moved]]
    _resize(values, len(kept))


def _sums(left, right, planes):
    """Return the sum of a curvature over the rows that each two boxes have in common."""
    total = np.zeros((len(left), len(right)))
    for number, rows in planes:
        counts = np.zeros(total.shape, np.int64)
        common(left if rows is None else left & rows, right, counts)
        total += number * counts
    return total


def as_bits(mask: np.ndarray) -> np.ndarray:
    """Return which rows a mask has as bits, as `_core/boxes.pyx` has them."""
    packed = np.packbits(mask.astype(bool), bitorder="little")
    return np.pad(packed, (0, -len(packed) % 8)).view(np.uint64)
