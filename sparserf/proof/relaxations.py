"""Sums of terms and linear functions above them: what branch and bound is made of.

Each kind of features bounds its terms (`features/blocks/bounds.py`); all functions work on many
boxes at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..features import Relaxation
from ..features.activations import EPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..features import Group, Term

# The number of pairs of a box and a term that are computed at a time: arrays of so many numbers
# stay in cache.
IN_CACHE = 8_192
# The number of values of terms that are made at a time.
IN_MEMORY = 2**20


class TermSum:
    """A sum of terms, linear'u + groups, which is what is bounded. Linear terms have no offset."""

    linear: np.ndarray
    n_terms: int

    def __init__(self, terms: Sequence[tuple[Term, float, np.ndarray]], largest: np.ndarray):
        """Take triples (term, coefficient, the input of each of its encodings).

        largest : the largest |u| of each input
        """
        n = len(largest)
        self.linear, self.n_terms = np.zeros(n), len(terms)
        by_kind: dict[tuple, list[tuple]] = {}
        for term, coef, inputs in terms:
            c, w = coef * term.gain, np.zeros(n)
            w[inputs] = term.weights
            if term.is_linear:
                self.linear += c * w
            else:
                group, shared, own = term.group_entry(c, w, inputs)
                by_kind.setdefault((group, *shared), []).append(own)
        self.groups: list[Group] = []
        for (group, *shared), entries in by_kind.items():
            arrays = [np.array(each, np.float64) for each in zip(*entries, strict=True)]
            self.groups.append(group(*shared, *arrays, largest))
        size = np.abs(self.linear) @ largest + sum(group.size(largest) for group in self.groups)
        self.work: int = n + sum(group.work for group in self.groups)
        self.has_steps: bool = any(group.has_steps for group in self.groups)
        # A bound of the rounding of values and of tops, sums of n_terms + n numbers of functions
        # that are right to a few ulps.
        self.rounding: float = 4 * EPS * (self.n_terms + n + 32) * size
        steepness = np.abs(self.linear) + sum(group.steepness() for group in self.groups)
        self.slope_rounding: np.ndarray = 4 * EPS * (self.n_terms + 32) * steepness

    def relax(self, mid: np.ndarray, rad: np.ndarray) -> Relaxation:
        """Return the relaxation of the sum on boxes."""
        shape = mid.shape
        slope, low, high = (np.broadcast_to(self.linear, shape).copy() for _ in range(3))
        sums = Relaxation(mid @ self.linear, slope, low, high, np.zeros(shape))
        for rows in self._slices(len(mid), IN_CACHE):
            for group in self.groups:
                for total, part in zip(sums, group.relax(mid[rows], rad[rows]), strict=True):
                    total[rows] += part
        return sums

    def values(self, U: np.ndarray) -> np.ndarray:
        """Return the sum at points."""
        f = U @ self.linear
        for rows in self._slices(len(U), IN_MEMORY):
            f[rows] += sum(group.values(U[rows]) for group in self.groups)
        return f

    def _slices(self, n, most):
        """Cut n rows into slices of at most so many pairs of a row and a term."""
        step = max(1, most // max(self.n_terms, 1))
        return (slice(start, start + step) for start in range(0, n, step))

    def rises(self, inputs: np.ndarray) -> bool:
        """Return whether every term rises with some inputs, by its weights alone."""
        return bool((self.linear[inputs] >= 0).all()) and all(
            group.rises(inputs) for group in self.groups
        )

    def coupling(self, inputs: np.ndarray) -> np.ndarray:
        """Return how much each input can change the derivatives by some inputs: an estimate."""
        return sum((group.coupling(inputs) for group in self.groups), np.zeros(len(self.linear)))

    def gradients(self, U: np.ndarray) -> np.ndarray:
        """Return the derivatives of the sum at points."""
        return self.linear + sum((group.gradients(U) for group in self.groups), np.zeros_like(U))
