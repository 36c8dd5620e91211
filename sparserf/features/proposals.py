"""A dictionary that learns: draws that follow the features which a fit has accepted.

A proposal is made of accepted weights W, rows picked with probability in proportion to |coefficient|, by one of five moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.checks import check_integer, check_rng
from .base import Base
from .mixture import Mixture
from .streams import seed_of, stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..columns.stage import ColumnStage
    from ..rows.home import Rows
    from .feature_set import FeatureSet

# Draws in a batch by default: the sooner it is known what is accepted, the better the next.
BATCH = 500
# Share of each batch from the base distribution, always: the paper's rate is that of its draws (docs/learning.md). Without an
# accepted feature, all of the batch.
BASE = 0.25
# Standard deviation of the entrywise factor of a jitter less 1, and of the logarithm of a rescaling.
JITTER, RESCALE = 0.3, 0.4
# How the moves share the rest: by survivors for each draw, with a prior, over batches that count FADE less each time.
FADE, SURVIVORS, TRIES = 0.8, 1.0, 20.0


def jitter(W: np.ndarray, pick: Callable[[], np.ndarray], base: Base, rng: np.random.Generator) -> np.ndarray:
    """An accepted w, each entry times 1 + 0.3 e."""
    w = W[pick()]
    return w * (1 + JITTER * rng.standard_normal(w.shape))


def add(W: np.ndarray, pick: Callable[[], np.ndarray], base: Base, rng: np.random.Generator) -> np.ndarray:
    """The sum or difference of two: frequencies of the product of their cosines."""
    w = W[pick()]
    return w + rng.choice([-1.0, 1.0], (len(w), 1)) * W[pick()]


def swap(W: np.ndarray, pick: Callable[[], np.ndarray], base: Base, rng: np.random.Generator) -> np.ndarray:
    """One input's weight drawn anew, whether w saw it or not."""
    w = W[pick()].copy()
    row, j = np.arange(len(w)), rng.integers(0, w.shape[1], len(w))
    w[row, j] = base.entries(j, np.count_nonzero(w, axis=1), rng)
    return w


def mix(W: np.ndarray, pick: Callable[[], np.ndarray], base: Base, rng: np.random.Generator) -> np.ndarray:
    """Each entry from one of two."""
    w, other = W[pick()], W[pick()]
    return np.where(rng.random(w.shape) < 0.5, w, other)


def rescale(W: np.ndarray, pick: Callable[[], np.ndarray], base: Base, rng: np.random.Generator) -> np.ndarray:
    """An accepted w, longer or shorter; of a step, another threshold along it."""
    w = W[pick()]
    return w * np.exp(RESCALE * rng.standard_normal((len(w), 1)))


MOVES = jitter, add, swap, mix, rescale


@dataclass(frozen=True, eq=False)
class LearningDictionary:
    """Batches of draws, of which each but the first is made when the features accepted from those before are known."""

    base: Base
    n_components: int
    batch_size: int
    n_features_in: int
    seed: np.random.SeedSequence

    @property
    def n_batches(self) -> int:
        return max(1, -(-self.n_components // self.batch_size))

    @property
    def starts(self) -> np.ndarray:
        """How many were drawn before each batch, and in all."""
        return np.minimum(np.arange(self.n_batches + 1) * self.batch_size, self.n_components)

    def proposer(self, target: int) -> Proposer:
        """Of the fit of one target."""
        return Proposer(self, target)


def make_learning_dictionary(
    rows: Rows, *, weight: np.ndarray, n_components: int | None, batch_size: int | None, gamma: Any, rng: np.random.Generator,
    stage: ColumnStage | None = None, base: type[Base] = Mixture, max_order: int | None = None,
) -> LearningDictionary:  # fmt: skip
    """The dictionary of features="auto"; base: the kind of distribution from which it starts; max_order: most inputs that a
    feature sees, None: all."""
    if gamma is not None:
        raise ValueError(f"gamma must be None where features is 'auto', which tries many, got {gamma!r}")
    n_components = check_integer("n_components", n_components, 1)
    batch_size = BATCH if batch_size is None else check_integer("batch_size", batch_size, 1)
    rng = check_rng(rng)
    base = base.of(rows, weight, rng, stage, max_order)
    return LearningDictionary(base, n_components, batch_size, rows.n_features_in, seed_of(rng))


class Proposer:
    """The draws for one target, from a random stream of its own; remembers the moves of the last batch, to see what came of it.

    Draws count up from (target + 1) << 40, so that no two targets' share an index; the inputs have those below.
    """

    def __init__(self, dictionary: LearningDictionary, target: int):
        self._base, self._d = dictionary.base, dictionary.n_features_in
        self._rng = stream(dictionary.seed, target)
        self._next, self._last = (target + 1) << 40, np.zeros(0, np.intp)  # the move of each draw of the last batch
        self._survivors, self._tries = np.zeros(len(MOVES) + 1), np.zeros(len(MOVES) + 1)

    def batch(self, n: int, features: FeatureSet, coef: np.ndarray, index: np.ndarray) -> tuple[int, FeatureSet]:
        """(the first index, features): n draws that follow these features, of these coefficients and indices."""
        self._learn(index)
        W, rng = self._base.weights_of(features), self._rng
        counts, p = self._counts(n, np.any(coef)), np.abs(coef) / max(np.abs(coef).sum(), 1e-300)
        weights = [self._base.weights(counts[0], rng)]
        for move, k in zip(MOVES, counts[1:], strict=True):
            if k:
                moved = move(W, lambda k=k: rng.choice(len(p), k, p=p), self._base, rng)
                weights.append(self._base.limited(moved, rng))
        self._last = np.repeat(np.arange(len(counts)), counts)
        start, self._next = self._next, self._next + n
        return start, self._base.features(np.vstack(weights), self._d, rng)

    def _learn(self, index):
        """Count which moves made those of the last batch that are still there."""
        first, n = self._next - len(self._last), len(MOVES) + 1
        alive = index[(index >= first) & (index < self._next)] - first
        self._tries = FADE * self._tries + np.bincount(self._last, minlength=n)
        self._survivors = FADE * self._survivors + np.bincount(self._last[alive], minlength=n)

    def _counts(self, n, has_accepted):
        """Of n draws, how many from the base distribution, and by each move."""
        if not has_accepted:
            return np.array([n] + [0] * len(MOVES))
        gain = (self._survivors + SURVIVORS)[1:] / (self._tries + TRIES)[1:]
        moves = ((1 - BASE) * n * gain / gain.sum()).astype(np.intp)
        return np.concatenate([[n - moves.sum()], moves])
