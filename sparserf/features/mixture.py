"""Cosines of any bandwidth and order: the distribution from which a dictionary starts where nothing is known."""

from dataclasses import dataclass, field

import numpy as np

from .._checks import check_integer, check_rng, is_sparse
from ..robust import some_rows
from .bandwidth import SAMPLE, distance_scale
from .feature_set import FeatureSet
from .neuron_block import NeuronBlock
from .units import SMALLEST

# Bandwidths, beside that of the data.
NARROWEST, WIDEST = 0.25, 4.0
# Inputs that features may see, those of the largest variance: weights are dense over them.
MOST_INPUTS = 1024


@dataclass(frozen=True, eq=False)
class Mixture:
    """phi = sqrt(2) cos(w'x + b): the order of w, inputs that it sees, log-uniform from 1 to all; its size log-uniform too.

    With w_j = u_j / s_j, s the inputs' standard deviations or their ranges by even chance, u'(x / s) has at order q and
    bandwidth c the spread that draws of the Gaussian kernel would have whose width is c times the median distance between
    the rows x / s. An input that is nearly always the same counts for little in units of its range.

    inputs : the inputs that are not constant, at most MOST_INPUTS
    units : 1 / s of them, in both kinds, so scaled that the median distance is 1
    """

    inputs: np.ndarray = field(repr=False)
    units: np.ndarray = field(repr=False)

    is_finite = False

    @classmethod
    def of(cls, rows, weight, rng, stage=None):
        """As the rows ask for, which count by their weights, positive and of mean 1; stage: what shows them."""
        in_units = stage is not None and not stage.is_raw
        scale = np.stack([stage.half_range > 0, stage.half_range] if in_units else rows.spreads(weight))
        deviation = stage.unit if in_units else scale[0]
        inputs = np.sort(np.argsort(-deviation, kind="stable")[:MOST_INPUTS])
        inputs = inputs[scale[0, inputs] > SMALLEST[rows.dtype.name]]
        if not len(inputs):
            return cls(np.zeros(1, np.intp), np.zeros((2, 1)))
        sample, weight = some_rows(weight, SAMPLE, rng)
        X = rows.array(sample)[:, inputs]
        X = (X.toarray() if is_sparse(X) else X).astype(np.float64)
        units = 1 / scale[:, inputs]
        widths = [distance_scale((X * unit).__getitem__, weight, None, "euclidean", rng) for unit in units]
        return cls(inputs, np.stack([unit / width for unit, width in zip(units, widths, strict=True)]))

    def weights(self, n, rng):
        """n draws of w over the inputs: (n, len(inputs))."""
        k = len(self.inputs)
        order = np.minimum(np.exp(rng.uniform(0.0, np.log(k + 1), n)).astype(np.intp), k)
        seen = rng.random((n, k)).argsort(axis=1) < order[:, None]
        return rng.standard_normal((n, k)) * seen * self.sizes(order, rng)[:, None] * self.units[rng.integers(0, 2, n)]

    def sizes(self, order, rng):
        """The standard deviation of the u_j of some draws of that order."""
        width = np.exp(rng.uniform(np.log(NARROWEST), np.log(WIDEST), len(order)))
        return width * np.sqrt(len(self.inputs) / np.maximum(order, 1))

    def features(self, weights, n_features, rng):
        """The features of weights over the inputs, with phases uniform on [0, 2 pi]."""
        offset = rng.uniform(0.0, 2 * np.pi, len(weights))
        if len(self.inputs) == n_features:
            block = NeuronBlock("cos", float(np.sqrt(2)), weights, offset)
        elif n_features <= MOST_INPUTS:
            block = NeuronBlock("cos", float(np.sqrt(2)), self._spread(weights, n_features), offset)
        else:
            inputs = np.tile(self.inputs.astype(np.int32), (len(weights), 1))
            block = NeuronBlock("cos", float(np.sqrt(2)), weights, offset, inputs)
        return FeatureSet([block], n_features)

    def weights_of(self, features):
        """The weights that `features`, made here, was given."""
        if not len(features):
            return np.zeros((0, len(self.inputs)))
        (block,) = features.blocks
        weights = block.weights if block.inputs is not None else block.weights[:, self.inputs]
        return weights if features.order is None else weights[features.order]

    def draw(self, n_components, n_features, rng=None):
        """A FeatureSet of n_components features of n_features inputs; `rng` is a seed or a Generator."""
        rng = check_rng(rng)
        return self.features(self.weights(check_integer("n_components", n_components, 0), rng), n_features, rng)

    def _spread(self, weights, n_features):
        everywhere = np.zeros((len(weights), n_features))
        everywhere[:, self.inputs] = weights
        return everywhere
