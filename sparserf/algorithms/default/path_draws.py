"""The features that a path draws at a penalty, with their gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.progress import check_not_ended
from ...features import FeatureSet
from ...solvers.problem import feasible_slope
from ..sparse_rf.draws import best_turn, largest_above

if TYPE_CHECKING:
    from ...features import FixedDictionary, LearningDictionary, RandomDictionary, RuleDictionary
    from .fold_path import FoldPath

# The most violators that enter at a penalty: so many, with the root of the rows beyond
# ROWS_OF_ENTER, or this share of the terms; of rules not more than so many times the first.
ENTER, ROWS_OF_ENTER, ENTER_PER_TERM, RULES_TO_ENTER = 100, 8_000, 0.5, 4
# So many targets have rules grown at a penalty, in turn.
TARGETS_AT_ONCE = 2


def enter_of_rows(path: FoldPath) -> int:
    """Return how many violators may enter at a penalty where there are few terms."""
    return round(ENTER * max(1.0, path.n / ROWS_OF_ENTER) ** 0.5)


def most_to_enter(path: FoldPath) -> int:
    """Return how many violators may enter at a penalty."""
    return max(enter_of_rows(path), int(ENTER_PER_TERM * path.n_terms))


class PathDraws(ABC):
    """Features that are drawn for a path, which has them: they do not keep it, so that its memory
    is free once nobody else does.

    n_shared : the number of features from which all folds draw; 0 where each has its own
    """

    n_shared: int = 0

    @abstractmethod
    def __init__(self, path: FoldPath, dictionary: Any, k: int):
        """Take the path, its dictionary, and the number of the fold."""

    @abstractmethod
    def draw(self, path: FoldPath, times: float = 1.0) -> tuple[np.ndarray, FeatureSet, np.ndarray]:
        """Return the numbers of the draws, the features, and their gradients (n_targets, n)."""


class CosineDraws(PathDraws):
    """Cosines that follow the terms, each turned to the phase at which the gradient of some target
    is largest."""

    def __init__(self, path: FoldPath, dictionary: LearningDictionary, k: int):
        self._n = dictionary.n_components
        self._proposer = dictionary.proposer(k)

    def draw(self, path: FoldPath, times: float = 1.0) -> tuple[np.ndarray, FeatureSet, np.ndarray]:
        strength = np.abs(path.w).sum(axis=0)
        start, features = self._proposer.batch(
            round(times * self._n), path.features, strength, path.index
        )
        C, S = path.fitted_rows.correlate_pair(features, path.slopes())
        best, place = np.hypot(C, S).argmax(axis=0), np.arange(len(features))
        turn = best_turn(features, C[best, place], S[best, place])
        return start + place, features.turned(turn), C * np.cos(turn) - S * np.sin(turn)


class RuleDraws(PathDraws):
    """Rules that are grown along the gradient of a few targets in turn."""

    def __init__(self, path: FoldPath, dictionary: RuleDictionary, k: int):
        K, few = len(path.w), min(len(path.w), TARGETS_AT_ONCE)
        trees = replace(dictionary.trees, n_trees=-(-dictionary.trees.n_trees // few))
        own = replace(dictionary, weight=path.weight, trees=trees)
        self._dictionary = dictionary
        self._few = few
        self._growers = [own.grower(k * K + j) for j in range(K)]
        self._next = 0

    def draw(self, path: FoldPath, times: float = 1.0) -> tuple[np.ndarray, FeatureSet, np.ndarray]:
        found = []
        V, K = path.slopes(), len(self._growers)
        n = -(-RULES_TO_ENTER * enter_of_rows(path) // self._few)
        turn, self._next = (self._next + np.arange(self._few)) % K, self._next + self._few
        for k in turn.tolist():
            own = path.fitted_rows, V[k], path.curvature_of(k)
            start, features, g = self._growers[k].batch(n, *own)
            found.append((start + np.arange(len(features)), features, g[None]))
        if len(found) == 1:
            return found[0]
        index, each, _ = zip(*found, strict=True)
        features = reduce(FeatureSet.concat, each)
        return (
            np.concatenate(index),
            features,
            self._dictionary.correlate(features, path.fitted_rows, V),
        )


class GivenDraws(PathDraws):
    """The features of a fixed distribution, or those that the user gives: of each batch the ones
    with the largest gradients that are no terms yet."""

    def __init__(self, path: FoldPath, dictionary: RandomDictionary | FixedDictionary, k: int):
        self._dictionary, self.n_shared = dictionary, int(dictionary.starts[-1])

    def draw(self, path: FoldPath, times: float = 1.0) -> tuple[np.ndarray, FeatureSet, np.ndarray]:
        V, found = path.slopes(), []
        for k, start in enumerate(self._dictionary.starts[:-1].tolist()):
            check_not_ended()
            features = self._dictionary.batch(k)
            index = start + np.arange(len(features))
            g = path.fitted_rows.correlate(features, V)
            size = np.abs(feasible_slope(g, features.nonnegative)).max(axis=0)
            size[np.isin(index, path.index)] = 0.0
            largest = largest_above(size, 0.0, most_to_enter(path))
            found.append((index[largest], features.take(largest), g[:, largest]))
        index, each, gradients = zip(*found, strict=True)
        return np.concatenate(index), reduce(FeatureSet.concat, each), np.hstack(gradients)


# The draws of each kind of dictionary.
DRAWS_OF: dict[str, type[PathDraws]] = {
    "learned": CosineDraws,
    "grown": RuleDraws,
    "random": GivenDraws,
}
