"""Dictionaries whose draws depend on the fit so far, and the base class of the objects that make
the draws of one target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .._base.random import stream

# The index of the first draw of the first target; lower ones belong to the inputs and to linear
# functions of them.
FIRST_DRAW = 1 << 40


@dataclass(frozen=True, eq=False, kw_only=True)
class FollowingDictionary:
    """A dictionary whose batches depend on the coefficients of the fit so far.

    No batch can be made again. The draws of a target have indices that no other target has.

    n_components, batch_size : the most draws in all, and in a batch
    n_features_in : the number of inputs of the features
    seed : the seed from which each target of a fit gets a random stream of its own
    """

    n_components: int
    batch_size: int
    n_features_in: int
    seed: np.random.SeedSequence

    kind: ClassVar[Literal["learned", "grown"]]
    follows: ClassVar[bool] = True

    @property
    def n_batches(self) -> int:
        """Number of batches."""
        return max(1, -(-self.n_components // self.batch_size))

    @property
    def starts(self) -> np.ndarray:
        """The number of draws, at most, before each batch, and in all."""
        return np.minimum(np.arange(self.n_batches + 1) * self.batch_size, self.n_components)


class Follower:
    """Makes the draws of one target of a fit, from a random stream of its own.

    The index of its first draw is (target + 1) FIRST_DRAW.
    """

    def __init__(self, dictionary: FollowingDictionary, target: int):
        self._rng = stream(dictionary.seed, target)
        self._next = (target + 1) * FIRST_DRAW

    def _numbered(self, n: int) -> int:
        """Return the index of the first of n new draws."""
        first, self._next = self._next, self._next + n
        return first
