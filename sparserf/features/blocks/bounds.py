"""Linear functions above sums of terms, over boxes of their inputs, from which branch and bound
proves bounds: the interface that each kind of features implements.

Over the box of all u with |u_v - mid_v| <= rad_v, a group of terms with value g(u) has a
`Relaxation`

    g(u) <= top + sum_v slope_v (u_v - mid_v),  low_v <= dg / du_v <= high_v.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np


class Relaxation(NamedTuple):
    """A linear function above a sum of terms on each of n boxes, and bounds of its derivatives.

    top : (n,)
    slope, low, high : (n, n_inputs), as in the formulas of the module
    blame : (n, n_inputs)
        The gap between the terms and the linear function at the middle of the box, as the shares of
        the inputs that cause it.
    """

    top: np.ndarray
    slope: np.ndarray
    low: np.ndarray
    high: np.ndarray
    blame: np.ndarray


class Group(ABC):
    """Terms of one kind, as functions of n_inputs inputs u.

    Its arguments are the two parts of `Term.group_entry`, what the terms share and an array of what
    each has of its own, and `largest`, the largest |u_v| of each input.

    work : about the time that a box takes, in units of the time of one neuron
    has_steps : whether the terms jump somewhere
    """

    work: int
    has_steps: bool = False

    @abstractmethod
    def relax(self, mid: np.ndarray, rad: np.ndarray) -> Relaxation:
        """Return the relaxation of the sum of the terms on boxes (n, n_inputs)."""

    @abstractmethod
    def values(self, U: np.ndarray) -> np.ndarray:
        """Return the sum of the terms at points (n, n_inputs)."""

    @abstractmethod
    def gradients(self, U: np.ndarray) -> np.ndarray:
        """Return the derivatives of the sum at points, (n, n_inputs); at steps and kinks that of
        one side."""

    @abstractmethod
    def size(self, largest: np.ndarray) -> float:
        """Return a bound of the size to which the rounding of the sum is relative: sum |c| (sup
        |phi| + sup of |t| in its parts).

        largest : the largest |u_v| of each input
        """

    @abstractmethod
    def steepness(self) -> np.ndarray:
        """Return a bound of the sum of the sizes of all terms' derivatives, for each input; 0 where
        none is needed."""

    @abstractmethod
    def rises(self, inputs: np.ndarray) -> bool:
        """Return whether every term rises with some inputs wherever the others are, by its weights
        alone."""

    @abstractmethod
    def coupling(self, inputs: np.ndarray) -> np.ndarray:
        """Return how much each input can change the derivatives by some inputs, (n_inputs,): an
        estimate."""
