"""Dictionaries that algorithms search: batches of features, each of which can be drawn again
without the others.

`make_dictionary` reads the `features` argument of the public functions. Batch k of a random
dictionary comes from a random stream of its own, so that no batch need be kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from .._base.checks import check_choice, check_integer, check_rng
from .._base.random import draw_seed, stream
from .feature_set import FeatureSet
from .fourier import KERNELS, Fourier
from .perceptron import Perceptron
from .rules import Rules
from .shapes import constrained, rows_through

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import Seed
    from ..columns.constraints import InputConstraints
    from ..rows import Rows
    from .fourier import Kernel

# The names that `features` may be.
NAMES = *KERNELS, "perceptron"
# Most numbers in the weights of a default batch: 64 MB in float64.
BATCH_WEIGHTS = 2**23


@runtime_checkable
class FeatureMap(Protocol):
    """The interface of a feature map from which a dictionary draws."""

    @property
    def is_finite(self) -> bool:
        """Whether the map has finitely many features, all of which `draw` returns: nothing is
        random."""
        ...

    def resolve(
        self, rows: Rows, rng: np.random.Generator, weight: np.ndarray | None = None
    ) -> FeatureMap:
        """Return this map with the parameters that the user left open computed from the rows; each
        row counts by its weight."""
        ...

    def draw(self, n_components: int | None, n_features: int, rng: Seed = None) -> FeatureSet:
        """Draw a FeatureSet of n_components features of n_features inputs, or list all features of
        a finite map."""
        ...


# How a dictionary makes its batches.
Kind: TypeAlias = Literal["random", "learned", "grown"]
# All that `features` may be.
Features: TypeAlias = (
    "Literal['auto', 'perceptron'] | Kernel | FeatureMap | Sequence[FeatureMap] | FeatureSet"
)


class Dictionary(Protocol):
    """Features in batches; an algorithm searches one batch, or several, at a time.

    kind : how batches are made: at random or given, learned from accepted features, or grown along
        a gradient
    follows : whether batches follow a fit, so that none can be made again
    """

    @property
    def kind(self) -> Kind: ...

    @property
    def follows(self) -> bool: ...

    @property
    def n_batches(self) -> int:
        """Number of batches."""
        ...

    @property
    def starts(self) -> np.ndarray:
        """Index in the dictionary of the first feature of each batch, and the number of
        features."""
        ...


@dataclass(frozen=True)
class RandomDictionary:
    """A dictionary of all features of the finite maps, and of n_components draws from the other
    maps, in equal shares.

    maps, scales : the maps, and the factor by which the features of each are multiplied
    n_components, batch_size : the number of draws in all, and in a batch
    n_features_in : the number of inputs of the features
    seed : the seed from which each batch gets a random stream of its own
    constraints : what features may see, or None; of the draws `constrained` then makes features
        that keep them
    through : the rows through which `constrained` draws neurons
    """

    maps: tuple[FeatureMap, ...]
    scales: tuple[float, ...]
    n_components: int
    batch_size: int
    n_features_in: int
    seed: np.random.SeedSequence
    constraints: InputConstraints | None = None
    through: np.ndarray | None = None
    is_random = True
    kind: ClassVar[Kind] = "random"
    follows: ClassVar[bool] = False

    def __len__(self) -> int:
        return self.n_components + len(self._finite)

    @property
    def n_batches(self) -> int:
        """Number of batches."""
        return max(1, -(-self.n_components // self.batch_size))

    @property
    def starts(self) -> np.ndarray:
        """Index in the dictionary of the first feature of each batch, and the number of
        features."""
        ends = np.minimum(
            np.arange(1, self.n_batches + 1) * self.batch_size, self.n_components
        ) + len(self._finite)
        return np.concatenate([[0], ends])

    @cached_property
    def _finite(self):
        """All features of the finite maps, as one FeatureSet."""
        features, rng = FeatureSet((), self.n_features_in), stream(self.seed, self.n_batches)
        for map_, scale in zip(self.maps, self.scales, strict=True):
            if map_.is_finite:
                features = features.concat(
                    self._constrained(map_.draw(None, self.n_features_in).scaled(scale), rng)
                )
        return features

    def _constrained(self, features, rng):
        """Return these draws, or where there are constraints, features like them that keep
        these."""
        if self.constraints is None:
            return features
        return constrained(features, self.constraints, self.through, rng)

    def batch(self, k: int) -> FeatureSet:
        """Return the features of batch k. Batch 0 begins with the features of the finite maps."""
        # A dictionary of at most this many weights, 16 MB, is kept, for all targets and passes.
        most_kept = 2**21

        if k not in self._kept:
            drawn = self._drawn(k)
            if len(self) * self.n_features_in > most_kept:
                return drawn
            self._kept[k] = drawn
        return self._kept[k]

    @cached_property
    def _kept(self):
        """The batches that are kept, by their number."""
        return {}

    def __getstate__(self) -> dict[str, Any]:  # without what can be drawn again
        return {name: value for name, value in vars(self).items() if name != "_kept"}

    def _drawn(self, k):
        """Draw the features of batch k."""
        features = self._finite if k == 0 else FeatureSet((), self.n_features_in)
        random = [
            (map_, scale)
            for map_, scale in zip(self.maps, self.scales, strict=True)
            if not map_.is_finite
        ]
        size = min(self.batch_size, self.n_components - k * self.batch_size)
        rng = stream(self.seed, k)
        for i, (map_, scale) in enumerate(random):
            share = size * (i + 1) // len(random) - size * i // len(random)
            features = features.concat(
                self._constrained(map_.draw(share, self.n_features_in, rng).scaled(scale), rng)
            )
        return features


@dataclass(frozen=True)
class FixedDictionary:
    """A dictionary of the features of a FeatureSet, in batches."""

    features: FeatureSet
    batch_size: int
    is_random = False
    kind: ClassVar[Kind] = "random"
    follows: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.features)

    @property
    def n_batches(self) -> int:
        """Number of batches."""
        return -(-len(self) // self.batch_size)

    @property
    def starts(self) -> np.ndarray:
        """Index of the first feature of each batch, and the number of features."""
        return np.minimum(np.arange(self.n_batches + 1) * self.batch_size, len(self))

    def batch(self, k: int) -> FeatureSet:
        """Return the features of batch k."""
        return self.features.take(np.arange(self.starts[k], self.starts[k + 1]))


def make_dictionary(
    features: Any,
    rows: Rows,
    *,
    n_components: int | None,
    batch_size: int | None,
    gamma: Any,
    rng: Seed,
    weight: np.ndarray | None = None,
    constraints: InputConstraints | None = None,
) -> RandomDictionary | FixedDictionary:
    """Check a `features` argument (a kernel's name, a map, a sequence of maps, or a FeatureSet) and
    make its dictionary.

    weight : weights of the rows, for parameters that maps compute from the rows; None: all rows
        count alike.
    constraints : what draws may see of their inputs; a FeatureSet has been checked. None: anything.
    """
    n_features_in = rows.n_features_in
    batch_size = (
        default_batch_size(n_features_in)
        if batch_size is None
        else check_integer("batch_size", batch_size, 1)
    )
    if isinstance(features, FeatureSet):
        if gamma is not None:
            raise ValueError(f"gamma must be None where features is a FeatureSet, got {gamma!r}")
        if len(features) == 0:
            raise ValueError("features must hold at least one feature, got an empty FeatureSet")
        if features.n_features_in != n_features_in:
            raise ValueError(
                f"features must have the {n_features_in} inputs of X, got {features.n_features_in}"
            )
        return FixedDictionary(features, batch_size)
    n_components = check_integer("n_components", n_components, 1)
    maps = _maps(features, gamma)
    if all(map_.is_finite for map_ in maps):
        n_components = 0
    rng = check_rng(rng)
    maps = tuple(map_.resolve(rows, rng, weight) for map_ in maps)
    seed = draw_seed(rng)
    scales = (1.0,) * len(maps)
    through = None if constraints is None else rows_through(rows, weight, rng)
    return RandomDictionary(
        maps, scales, n_components, batch_size, n_features_in, seed, constraints, through
    )


def default_batch_size(n_features_in: int) -> int:
    """Return the default batch size, R in the Sparse-RF paper."""
    return max(64, min(2500, BATCH_WEIGHTS // n_features_in))


def draw_all(
    features: Any,
    rows: Rows,
    *,
    n_components: int | None,
    gamma: Any = None,
    rng: Seed = None,
    scales: Callable[[int], Sequence[float]] | None = None,
    weight: np.ndarray | None = None,
    constraints: InputConstraints | None = None,
) -> FeatureSet:
    """Return the whole dictionary of a `features` argument as one FeatureSet; arguments as in
    `make_dictionary`.

    scales : a function from the number of maps to the factors by which their features are
        multiplied; None: 1
    """
    if isinstance(features, FeatureSet):
        n_components = max(len(features), 1)
    n_components = check_integer("n_components", n_components, 1)
    dictionary = make_dictionary(
        features,
        rows,
        n_components=n_components,
        batch_size=n_components,
        gamma=gamma,
        rng=rng,
        weight=weight,
        constraints=constraints,
    )
    if scales is not None and isinstance(dictionary, RandomDictionary):
        dictionary = replace(dictionary, scales=scales(len(dictionary.maps)))
    return dictionary.batch(0)


def _maps(features, gamma):
    """Check a kernel's name, a map or a sequence of maps, and return the maps."""
    if isinstance(features, str):
        check_choice("features", features, NAMES)
        if features != "perceptron":
            return (Fourier(features, gamma),)
        if gamma is not None:
            raise ValueError(f"gamma must be None where features is 'perceptron', got {gamma!r}")
        return (Perceptron(),)
    maps = tuple(features) if isinstance(features, (list, tuple)) else (features,)
    if any(isinstance(each, Rules) for each in maps):
        raise TypeError(
            "features must not hold Rules here: only sparse_rf and sparse_rf_path grow them, and "
            f"nothing beside them; got {features!r}"
        )
    are_maps = (isinstance(each, FeatureMap) and not isinstance(each, type) for each in maps)
    if not maps or not all(are_maps):
        raise TypeError(
            "features must be a kernel's name, a map, a sequence of maps or a FeatureSet, got "
            f"{features!r}"
        )
    if gamma is not None:
        raise ValueError(
            f"gamma must be given to the map where features is one, got gamma={gamma!r}"
        )
    return maps
