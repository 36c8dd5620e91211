"""What distributions have in common from which dictionaries that learn start: neurons of random weights over some inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._base.checks import check_integer, check_rng, is_sparse
from .._base.sampling import sample_rows
from .bandwidth import SAMPLE
from .feature_set import FeatureSet
from .neuron_block import NeuronBlock
from .units import SMALLEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Seed
    from ..columns.stage import ColumnStage
    from ..rows.home import Rows

# Inputs that features may see, those of the largest variance: weights are dense over them.
MOST_INPUTS = 1024


@dataclass(frozen=True, eq=False)
class Base:
    """phi = scale * activation(w'x + b). A distribution has those two, and is_periodic, as fields of the class, and answers

    of(rows, weight, rng, stage) : as the rows ask for, which count by their weights, positive and of mean 1; stage: what shows
        them
    weights(n, rng) : n draws of w over the inputs, (n, len(inputs))
    entries(j, order, rng) : entries for the inputs j of weights that see so many inputs
    offsets(weights, rng) : b for each w

    inputs : the inputs that are not constant, at most MOST_INPUTS
    units : the size that entries of w have in proportion, of each input
    max_order : most inputs that a w sees; None: all
    """

    inputs: np.ndarray = field(repr=False)
    units: np.ndarray = field(repr=False)
    max_order: int | None = field(default=None, kw_only=True)

    activation: ClassVar[str]
    scale: ClassVar[float]
    is_periodic: ClassVar[bool]
    of: ClassVar[Callable[..., Any]]
    weights: ClassVar[Callable[..., np.ndarray]]
    entries: ClassVar[Callable[..., np.ndarray]]
    offsets: ClassVar[Callable[..., np.ndarray]]
    is_finite = False

    @property
    def most(self) -> int:
        """Inputs that a feature sees at most."""
        return len(self.inputs) if self.max_order is None else min(self.max_order, len(self.inputs))

    def limited(self, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """These weights, of each that sees more inputs than it may some, by chance, 0."""
        if self.most == len(self.inputs):
            return weights
        lot = np.where(weights != 0, rng.random(weights.shape), 0.0)
        return np.where(lot.argsort(axis=1).argsort(axis=1) >= weights.shape[1] - self.most, weights, 0.0)

    def features(self, weights: np.ndarray, n_features: int, rng: np.random.Generator) -> FeatureSet:
        """The features of weights over the inputs, with random offsets."""
        offset = self.offsets(weights, rng)
        if len(self.inputs) == n_features:
            block = NeuronBlock(self.activation, self.scale, weights, offset)
        elif n_features <= MOST_INPUTS:
            block = NeuronBlock(self.activation, self.scale, self._spread(weights, n_features), offset)
        else:
            inputs = np.tile(self.inputs.astype(np.int32), (len(weights), 1))
            block = NeuronBlock(self.activation, self.scale, weights, offset, inputs)
        return FeatureSet([block], n_features)

    def weights_of(self, features: FeatureSet) -> np.ndarray:
        """The weights that `features`, made here, was given."""
        if not len(features):
            return np.zeros((0, len(self.inputs)))
        (block,) = features.blocks
        weights = block.weights if block.inputs is not None else block.weights[:, self.inputs]
        return weights if features.order is None else weights[features.order]

    def draw(self, n_components: int, n_features: int, rng: Seed = None) -> FeatureSet:
        """A FeatureSet of n_components features of n_features inputs; `rng` is a seed or a Generator."""
        rng = check_rng(rng)
        return self.features(self.weights(check_integer("n_components", n_components, 0), rng), n_features, rng)

    def _spread(self, weights, n_features):
        everywhere = np.zeros((len(weights), n_features))
        everywhere[:, self.inputs] = weights
        return everywhere


def inputs_that_vary(rows: Rows, weight: np.ndarray, stage: ColumnStage | None) -> tuple[np.ndarray, np.ndarray]:
    """(at most MOST_INPUTS of the inputs that are not constant, their standard deviations, half their ranges)."""
    in_units = stage is not None and not stage.is_raw
    scale = np.stack([stage.half_range > 0, stage.half_range] if in_units else rows.spreads(weight))
    deviation = stage.unit if in_units else scale[0]
    inputs = np.sort(np.argsort(-deviation, kind="stable")[:MOST_INPUTS])
    inputs = inputs[scale[0, inputs] > SMALLEST[rows.dtype.name]]
    return inputs, scale[:, inputs]


def sample_of(rows: Rows, inputs: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(some rows, float64 (n, len(inputs)), how much each counts)."""
    sample, weight = sample_rows(weight, SAMPLE, rng)
    X = rows.array(sample)[:, inputs]
    return (X.toarray() if is_sparse(X) else X).astype(np.float64), weight
