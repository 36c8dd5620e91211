"""Cosines of any bandwidth and order: the distribution from which a dictionary starts where nothing is known."""

from dataclasses import dataclass, field

import numpy as np

from .._checks import check_integer, check_rng, is_sparse
from .bandwidth import SAMPLE, distance_scale
from .block import FeatureBlock
from .feature_set import FeatureSet

# Bandwidths, beside that of the data.
NARROWEST, WIDEST = 0.25, 4.0
# Inputs that features may see, those of the largest variance: weights are dense over them.
MOST_INPUTS = 1024
# A column of smaller numbers is constant: weights are their inverse.
SMALLEST = {"float32": 1e-35, "float64": 1e-290}


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
    def of(cls, X, rng):
        """As X asks for."""
        low, high = _extremes(X)
        scale = np.stack([_deviations(X, np.maximum(-low, high)), high / 2 - low / 2])
        inputs = np.sort(np.argsort(-scale[0], kind="stable")[:MOST_INPUTS])
        inputs = inputs[scale[0, inputs] > SMALLEST[X.dtype.name]]
        if not len(inputs):
            return cls(np.zeros(1, np.intp), np.zeros((2, 1)))
        sample = np.sort(rng.choice(X.shape[0], min(SAMPLE, X.shape[0]), replace=False))
        rows = X[sample][:, inputs]
        rows = (rows.toarray() if is_sparse(rows) else rows).astype(np.float64)
        units = 1 / scale[:, inputs]
        return cls(inputs, np.stack([unit / distance_scale(rows * unit, None, "euclidean", rng) for unit in units]))

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
            block = FeatureBlock("cos", float(np.sqrt(2)), weights, offset)
        elif n_features <= MOST_INPUTS:
            block = FeatureBlock("cos", float(np.sqrt(2)), self._spread(weights, n_features), offset)
        else:
            inputs = np.tile(self.inputs.astype(np.int32), (len(weights), 1))
            block = FeatureBlock("cos", float(np.sqrt(2)), weights, offset, inputs)
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


def scaled_inputs(X):
    """The inputs themselves, in units of their standard deviation; those of CSR rows share a unit, a power of two."""
    low, high = _extremes(X)
    deviation = _deviations(X, np.maximum(-low, high))
    varies = deviation > SMALLEST[X.dtype.name]
    deviation = np.where(varies, deviation, 0.0)
    unit = 2.0 ** np.frexp(deviation.max())[1] if is_sparse(X) else np.where(varies, deviation, 1.0)
    weights = np.where(varies, 1 / unit, 0.0)
    inputs = np.arange(X.shape[1], dtype=np.int32)
    return FeatureSet([FeatureBlock("identity", 1.0, weights[:, None], np.zeros(X.shape[1]), inputs[:, None])], X.shape[1])


def _extremes(X):
    """(the least, the largest) of each column."""
    both = X.min(axis=0), X.max(axis=0)
    return np.stack([(x.toarray() if is_sparse(x) else np.asarray(x)).astype(np.float64).ravel() for x in both])


def _deviations(X, largest):
    """The standard deviation of each column, of entries up to `largest` in size; 0 where rounding is all that varies."""
    unit = np.where(largest > 0, largest, 1.0)  # no square overflows
    if is_sparse(X):
        data = X.data / unit[X.indices]
        first, second = (np.bincount(X.indices, power, X.shape[1]) / X.shape[0] for power in (data, data * data))
        variance = second - first**2
    else:
        variance = np.zeros(X.shape[1])
        mean = X.mean(axis=0, dtype=np.float64)
        for start in range(0, X.shape[0], 4096):
            variance += (((X[start : start + 4096] - mean) / unit) ** 2).sum(axis=0)
        variance /= X.shape[0]
    return np.where(variance > 1e-14, np.sqrt(np.maximum(variance, 0)), 0.0) * unit
