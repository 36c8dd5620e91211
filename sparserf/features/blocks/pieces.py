"""The pieces of a box on which encodings are affine, and nodes: means of terms are sums over
them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

ROUNDING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Pieces:
    """The encodings of one column over its part of a box: a mixture of lines, on each of which they
    are uniform, and of points.

    encodings : ndarray of shape (n_encodings,), ascending
    weight : ndarray of shape (n_pieces,)
        The share of each piece; they add up to 1.
    middle, half : ndarray of shape (n_pieces, n_encodings)
        A line goes from middle - half to middle + half; for a point half is 0.
    """

    encodings: np.ndarray
    weight: np.ndarray
    middle: np.ndarray
    half: np.ndarray

    def seen_by(self, encodings: np.ndarray) -> tuple[Pieces, np.ndarray]:
        """Return the pieces with those encodings alone that a term sees, and their mask among all
        encodings of the term."""
        is_here = np.isin(encodings, self.encodings)
        seen = np.searchsorted(self.encodings, encodings[is_here])
        return (
            Pieces(encodings[is_here], self.weight, self.middle[:, seen], self.half[:, seen]),
            is_here,
        )


def nodes(low: float, high: float, change: float, finer: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes of Gauss-Legendre rules on equal parts of an interval, and their weights,
    which add up to 1.

    change : how far a phase, or another argument, changes over the interval
    finer : a factor of the number of nodes of each rule
    """
    # Each rule has this many nodes, and the phase changes over it by at most this many radians.
    n_nodes, most_change = 16, 4.0
    n_parts = max(1, int(np.ceil(change / most_change)))
    places, weights = _rule(n_nodes * finer)
    ends = np.linspace(low, high, n_parts + 1)
    middle, half = (ends[1:] + ends[:-1]) / 2, (high - low) / (2 * n_parts)
    return (middle[:, None] + half * places).ravel(), np.tile(weights / n_parts, n_parts)


@cache
def _rule(n):
    """Return the nodes and weights of the Gauss-Legendre rule of n nodes on [-1, 1]; the weights
    add up to 1."""
    places, weights = np.polynomial.legendre.leggauss(n)
    return places, weights / 2
