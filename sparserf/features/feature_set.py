"""FeatureSet: features that have been drawn, phi_j(x) = scale * activation(w_j' x + offset_j). Immutable."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._core.features import ACTIVATIONS, PANEL

# Inputs for each weight of a sparse feature below which multiplying by zeros beats gathering.
DENSE_BELOW = 25
# Activations with values in [-1, 1].
BOUNDED = ("cos", "sin", "tanh", "sign")


@dataclass(frozen=True, eq=False)
class FeatureBlock:
    """Features of one kind: one activation and scale, weights all dense or all sparse.

    weights : ndarray of shape (n_features, n_inputs), or (n_features, order) where `inputs` is given
    inputs : None, or int32 ndarray of shape (n_features, order): the input that each weight multiplies
    offset : ndarray of shape (n_features,)
    """

    activation: str
    scale: float
    weights: np.ndarray
    offset: np.ndarray
    inputs: np.ndarray | None = None

    def __post_init__(self):
        for array in (self.weights, self.offset, self.inputs):
            if array is not None:
                array.flags.writeable = False

    def __len__(self):
        return len(self.offset)

    def take(self, indices):
        inputs = None if self.inputs is None else self.inputs[indices]
        return FeatureBlock(self.activation, self.scale, self.weights[indices], self.offset[indices], inputs)

    @cached_property
    def used_inputs(self):
        """Sparse weights: the sorted inputs that occur, and `inputs` as positions among them."""
        used, position = np.unique(self.inputs, return_inverse=True)
        return used, np.ascontiguousarray(position.reshape(self.inputs.shape), dtype=np.int32)

    def packed(self, dtype, n_inputs, among_used=False):
        """The arguments that the kernels take, in panels of PANEL features padded with zeros, made when first asked for.

        n_inputs is the width of the rows, which hold the used inputs only where among_used. Sparse weights are packed
        as dense ones where few inputs make that the faster way, to the same bits.
        """
        key = dtype, n_inputs, among_used
        if key not in self._packed:
            inputs = self.used_inputs[1] if among_used else self.inputs
            self._packed[key] = self._pack(dtype, n_inputs, inputs)
        return self._packed[key]

    @cached_property
    def _packed(self):
        return {}

    def _pack(self, dtype, n_inputs, inputs):
        weights = self.weights
        if inputs is not None and n_inputs <= DENSE_BELOW * weights.shape[1]:
            weights = np.zeros((len(self), n_inputs))
            np.add.at(weights, (np.arange(len(self))[:, None], inputs), self.weights)
            inputs = None
        inputs = None if inputs is None else _panels(inputs, np.int32)
        weights, offset = _panels(weights, dtype), _panels(self.offset[:, None], dtype)[:, 0]
        return weights, inputs, offset, ACTIVATIONS.index(self.activation), self.scale

    def __getstate__(self):  # without what can be made again
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.__post_init__()


def _panels(array, dtype):
    """(n, d) -> (ceil(n / PANEL), d, PANEL), zero-padded, on a 64-byte boundary."""
    n, d = array.shape
    n_panels = -(-n // PANEL)
    size = n_panels * d * PANEL
    memory = np.zeros(size + 64, dtype)
    start = -memory.ctypes.data % 64 // memory.itemsize
    panels = memory[start : start + size].reshape(n_panels, d, PANEL)
    full = n // PANEL
    with np.errstate(over="ignore"):  # a weight too large for float32: its phase is infinite, which the kernels expect
        panels[:full] = array[: full * PANEL].reshape(full, PANEL, d).swapaxes(1, 2)
        if full < n_panels:
            panels[full, :, : n - full * PANEL] = array[full * PANEL :].T
    return panels


class FeatureSet:
    """Drawn features: a fixed dictionary, or the selected features of a model. Immutable.

    Made by ``map.draw(n_components, n_features, rng=...)``, by ``take`` and by ``concat``.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> features = srf.Fourier(gamma=0.5).draw(100, 3, rng=0)
    >>> len(features), features.n_features_in
    (100, 3)
    >>> features.transform(np.zeros((2, 3))).shape
    (2, 100)
    >>> len(features.take([3, 5]).concat(srf.Linear().draw(None, 3)))
    5
    """

    def __init__(self, blocks, n_features_in):
        self._blocks = tuple(block for block in blocks if len(block))
        self._n_features_in = int(n_features_in)

    @property
    def blocks(self):
        """The homogeneous runs of features, in order."""
        return self._blocks

    @property
    def n_features_in(self):
        """Number of inputs (columns of X)."""
        return self._n_features_in

    def __len__(self):
        return sum(map(len, self._blocks))

    def __repr__(self):
        kinds = ", ".join(f"{len(b)} {b.activation}" for b in self._blocks)
        return f"FeatureSet({kinds or 'empty'}; n_features_in={self._n_features_in})"

    @property
    def largest_value(self):
        """sup over x of |phi_j(x)|, an entry a feature; infinite where it has no bound."""
        bounds = [abs(b.scale) if b.activation in BOUNDED else np.inf for b in self._blocks]
        return np.repeat(bounds, [len(b) for b in self._blocks])

    def take(self, indices):
        """The features at `indices` (integers, in any order, repeats allowed), as a FeatureSet."""
        indices = np.asarray(indices)
        if indices.size == 0:
            return FeatureSet((), self._n_features_in)
        if indices.ndim != 1 or indices.dtype.kind not in "iu":
            raise TypeError(f"indices must be a one-dimensional sequence of integers, got {indices!r}")
        if indices.min() < 0 or indices.max() >= len(self):
            raise ValueError(f"indices must lie in [0, {len(self)}), got {indices.min()} to {indices.max()}")
        starts = np.cumsum([0, *map(len, self._blocks)])
        block_of = np.searchsorted(starts, indices, side="right") - 1
        runs = np.split(np.arange(len(indices)), np.flatnonzero(np.diff(block_of)) + 1)
        return FeatureSet(
            [self._blocks[block_of[run[0]]].take(indices[run] - starts[block_of[run[0]]]) for run in runs],
            self._n_features_in,
        )

    def concat(self, other):
        """These features followed by those of `other`, which must have the same inputs."""
        if not isinstance(other, FeatureSet):
            raise TypeError(f"other must be a FeatureSet, got {type(other).__name__}")
        if other.n_features_in != self._n_features_in:
            raise ValueError(f"both sets must have the same inputs, got {self._n_features_in} and {other.n_features_in}")
        return FeatureSet(_merged(self._blocks + other.blocks), self._n_features_in)

    def transform(self, X, workers=1):
        """The feature matrix, the only place that materialises it.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features_in)
            float32 stays float32; all else becomes float64.
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.

        Returns
        -------
        ndarray of shape (n_samples, len(self))
            C-contiguous. Time O(n_samples * len(self) * n_features_in), or * order for sparse weights.
        """
        from ..rows import as_rows

        return as_rows(X, workers, n_features=self._n_features_in).transform(self)

    def input_usage(self):
        """Share of the features that use each input (weight not zero), of shape (n_features_in,)."""
        count = np.zeros(self._n_features_in)
        for block in self._blocks:
            if block.inputs is None:
                count += np.count_nonzero(block.weights, axis=0)
            else:
                count += np.bincount(block.inputs[block.weights != 0], minlength=self._n_features_in)
        return count / max(len(self), 1)


def _merged(blocks):
    """Neighbouring blocks of one kind joined, so that sets built step by step stay a few blocks."""
    merged = []
    for block in blocks:
        if merged and _kind(merged[-1]) == _kind(block):
            last = merged.pop()
            inputs = None if block.inputs is None else np.concatenate([last.inputs, block.inputs])
            weights, offset = np.concatenate([last.weights, block.weights]), np.concatenate([last.offset, block.offset])
            block = FeatureBlock(block.activation, block.scale, weights, offset, inputs)
        merged.append(block)
    return merged


def _kind(block):
    return block.activation, block.scale, block.inputs is None, block.weights.shape[1], block.weights.dtype
