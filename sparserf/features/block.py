"""FeatureBlock: features of one kind, as the kernels take them."""

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
    """Features of one kind.

    A function of a projection, weights all dense or all sparse: phi_j(x) = scale * activation(w_j' x + offset_j).
    Or, where the activation is "product", a monomial under a Gaussian envelope: phi_j(x) = scale * product over l of
    w_j0 u[inputs_jl], with u = exp(-gamma |x|^2 / order) (1, sqrt(2 gamma) x). The envelope and the coefficient are shared
    among the factors, so that none overflows; the 1 makes monomials of any lower degree.

    weights : ndarray of shape (n_features, n_inputs), or (n_features, order) where `inputs` is given; (n_features, 1)
        for products
    offset : ndarray of shape (n_features,); 0 for products
    inputs : None, or int32 ndarray of shape (n_features, order): the input that each weight multiplies
    gamma : None, or of products the width of the envelope
    """

    activation: str
    scale: float
    weights: np.ndarray
    offset: np.ndarray
    inputs: np.ndarray | None = None
    gamma: float | None = None

    def __post_init__(self):
        for array in (self.weights, self.offset, self.inputs):
            if array is not None:
                array.flags.writeable = False

    def __len__(self):
        return len(self.offset)

    @property
    def is_bounded(self):
        return self.is_product or self.activation in BOUNDED

    @property
    def is_product(self):
        return self.activation == "product"

    @cached_property
    def is_matrix(self):
        """Whether the features are linear functions of all inputs: Phi = X W', W the `matrix`."""
        return self.activation == "identity" and self.inputs is None and not self.offset.any()

    @cached_property
    def matrix(self):
        return self.scale * self.weights

    @property
    def order(self):
        """Inputs that a feature sees, or factors of a product."""
        return (self.weights if self.inputs is None else self.inputs).shape[1]

    @property
    def kind(self):
        """What the features of a block have in common."""
        return self.activation, self.scale, self.gamma, self.inputs is None, self.order, self.weights.dtype

    def take(self, indices):
        inputs = None if self.inputs is None else self.inputs[indices]
        return FeatureBlock(self.activation, self.scale, self.weights[indices], self.offset[indices], inputs, self.gamma)

    @staticmethod
    def joined(blocks):
        """One block of several of a kind."""
        first = blocks[0]
        if len(blocks) == 1:
            return first
        inputs = None if first.inputs is None else np.concatenate([block.inputs for block in blocks])
        weights, offset = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("weights", "offset"))
        return FeatureBlock(first.activation, first.scale, weights, offset, inputs, first.gamma)

    def largest_value(self):
        """sup over x of |phi_j(x)|, an entry a feature; infinite where it has no bound."""
        if self.is_product:  # prod_i |t_i|^v_i exp(-t_i^2 / 2) is at most prod_i (v_i / e)^(v_i / 2)
            inputs = np.sort(self.inputs, axis=1)
            peak = sum((entry > 0) * _rise(run) for entry, run in zip(inputs.T, runs(inputs), strict=True))
            return abs(self.scale) * (np.abs(self.weights[:, 0]) * np.exp(peak / self.order)) ** self.order
        return np.full(len(self), abs(self.scale) if self.is_bounded else np.inf)

    def count_inputs(self, n_features_in):
        """Number of the features that use each input."""
        if self.inputs is None:
            return np.count_nonzero(self.weights, axis=0)
        first = 1 if self.is_product else 0  # 0 is the 1 of a product
        used = np.sort(np.where(self.weights != 0, self.inputs - first, -1), axis=1)
        return np.bincount(used[np.diff(used, axis=1, prepend=-1) > 0], minlength=n_features_in)

    def inputs_seen(self, k, n_features_in):
        """The inputs that feature k depends on, ascending; a product all of them, by its envelope."""
        used = self.weights[k] != 0
        if self.is_product:
            return np.arange(n_features_in if used.any() else 0)
        return np.flatnonzero(used) if self.inputs is None else np.unique(self.inputs[k][used])

    def name(self, k, inputs):
        """Feature k in words: its activation and the names of the inputs that it sees."""
        if self.is_product:
            powers = np.bincount(self.inputs[k], minlength=1)
            factors = [inputs[i - 1] + (f"^{powers[i]}" if powers[i] > 1 else "") for i in np.flatnonzero(powers) if i > 0]
            return "*".join(["gaussian", *factors])
        used = [inputs[i] for i in self.inputs_seen(k, len(inputs))]
        if self.activation == "identity" and len(used) == 1:
            return used[0]
        return f"{self.activation}({', '.join(used) if len(used) <= 3 else f'{len(used)} inputs'})"

    def is_inputs_themselves(self, n_inputs):
        """Whether feature j is input j, of all n_inputs: nothing to gather, scatter or multiply by."""
        return len(self) == n_inputs and self._is_each_input

    @cached_property
    def _is_each_input(self):
        if self.activation != "identity" or self.inputs is None or self.order > 1 or self.offset.any():
            return False
        in_order = np.array_equal(self.inputs[:, 0], np.arange(len(self)))
        return in_order and bool((self.scale * self.weights == 1).all())

    @cached_property
    def coefficients(self):
        """Of products of inputs."""
        return self.scale * self.weights[:, 0] ** self.order

    @cached_property
    def inputs_differ(self):
        """Whether no two features of order 1 see the same input."""
        return len(np.unique(self.inputs[:, 0])) == len(self)

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
        if inputs is not None and not self.is_product and n_inputs <= DENSE_BELOW * weights.shape[1]:
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


def runs(inputs):
    """Column by column of ascending tuples, the number of times that its entry has occurred so far; 1 for 0."""
    run = np.ones(len(inputs))
    yield run
    for previous, entry in zip(inputs.T[:-1], inputs.T[1:], strict=True):
        run = np.where((entry == previous) & (entry > 0), run + 1, 1.0)
        yield run


def _rise(v):
    """The logarithm of (v / e)^(v / 2), less that of v - 1."""
    less = v - 1
    return (v * np.log(v) - less * np.log(np.maximum(less, 1)) - 1) / 2


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
