"""FeatureBlock: what is asked of the features of one kind, whichever it is, and what all kinds answer alike."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._core.features import PANEL, Panels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Inputs for each weight of a sparse feature below which multiplying by zeros beats gathering.
DENSE_BELOW = 25


class FeatureBlock:
    """Features of one kind, a frozen dataclass: `NeuronBlock`, `LinearBlock` or `MonomialBlock`.

    Every kind has, as fields or not, what the kernels, other devices and the file of a model take:

    activation : str, one of `_core.features.ACTIVATIONS`
    scale : float
    weights : ndarray of shape (n_features, n_inputs), or (n_features, order) where `inputs` is given; (n_features, 1) of
        monomials
    offset : ndarray of shape (n_features,)
    inputs : None, or int32 ndarray of shape (n_features, order): the input that each weight multiplies, or the factors
    gamma : None, or the inverse width of an envelope

    It answers what is below: most of it here, and elsewhere where the answer of a kind is another. Where moment_order is not
    0 it answers two questions more, for n_inputs columns of rows as the features see them:

    of_moments(total, squared) : the correlations, or those of the squares, (n_outputs, n_features), in moments of the rows
    on_inputs(coef, n_inputs) : of order 1, the coefficients on the columns, (n_outputs, n_inputs), of coef on the features
    """

    activation: str
    scale: float
    weights: np.ndarray
    offset: np.ndarray
    inputs: np.ndarray | None
    gamma: float | None
    matrix: np.ndarray
    of_moments: Callable[[np.ndarray, bool], np.ndarray]
    on_inputs: Callable[[np.ndarray, int], np.ndarray]

    is_bounded = False  # |phi_j(x)| has a bound over all x
    is_periodic = False  # cosines or sines
    is_matrix = False  # Phi = X W' with W the `matrix`
    moment_order = 0  # 1 where X'v holds all correlations with v, 2 where X' diag(v) X does
    # (gamma, order) of features that see u = exp(-gamma |x|^2 / order) (1, sqrt(2 gamma) x) in place of x
    envelope: tuple[float, int] | None = None

    def __post_init__(self) -> None:
        for array in self._arrays.values():
            _read_only(array)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def _arrays(self):
        """The fields with an entry a feature."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    @property
    def order(self) -> int:
        """Inputs that a feature sees, or factors of a monomial."""
        return (self.weights if self.inputs is None else self.inputs).shape[1]

    @property
    def kind(self) -> tuple[Any, ...]:
        """What the features of a block have in common: blocks of one kind can be joined."""
        return self.activation, type(self), self.scale, self.gamma, self.inputs is None, self.order, self.weights.dtype

    def take(self, indices: np.ndarray | list[int]) -> Self:
        return replace(self, **{name: array[indices] for name, array in self._arrays.items()})

    @staticmethod
    def joined(blocks: Sequence[FeatureBlock]) -> FeatureBlock:
        """One block of several of a kind."""
        first = blocks[0]
        if len(blocks) == 1:
            return first
        names = first._arrays
        return replace(first, **{name: np.concatenate([getattr(block, name) for block in blocks]) for name in names})

    def seeing(self, views: np.ndarray, n_inputs: int) -> Self:
        """These features of rows whose inputs are views, as indices, of n_inputs."""
        if self.inputs is not None:
            return replace(self, inputs=views[self.inputs].astype(np.int32))
        weights = np.zeros((len(self), n_inputs))
        weights[:, views] = self.weights
        return replace(self, weights=weights)

    def scaled(self, factor: float) -> Self:
        return replace(self, scale=float(factor) * self.scale)

    def turned(self, angle: float | np.ndarray) -> Self:
        """With an angle added to the phase of each, where they are cosines or sines."""
        return self

    def largest_value(self) -> np.ndarray:
        """sup over x of |phi_j(x)|, an entry a feature; infinite where it has no bound."""
        return np.full(len(self), abs(self.scale) if self.is_bounded else np.inf)

    def count_inputs(self, n_columns: int, column: np.ndarray | None = None) -> np.ndarray:
        """Number of the features that use each column; column: of each input, None: it is the input."""
        used = self.weights != 0
        if self.inputs is None and column is None:
            return np.count_nonzero(used, axis=0)
        inputs = np.arange(self.order)[None] if self.inputs is None else self.inputs
        inputs = inputs if column is None else column[inputs]
        return count_entries(np.where(used, inputs, -1), n_columns)

    def inputs_seen(self, k: int, n_inputs: int) -> np.ndarray:
        """The inputs that feature k depends on, ascending."""
        used = self.weights[k] != 0
        return np.flatnonzero(used) if self.inputs is None else np.unique(self.inputs[k][used])

    def name(self, k: int, inputs: Sequence[str]) -> str:
        """Feature k in words, of the names of the inputs."""
        used = [inputs[i] for i in self.inputs_seen(k, len(inputs))]
        return f"{self.activation}({', '.join(used) if len(used) <= 3 else f'{len(used)} inputs'})"

    def is_inputs_themselves(self, n_inputs: int) -> bool:
        """Whether feature j is input j, of all n_inputs: nothing to gather, scatter or multiply by."""
        return False

    @cached_property
    def inputs_differ(self) -> bool:
        """Whether no two features of order 1 see the same input."""
        return len(np.unique(self.inputs[:, 0])) == len(self)

    def at_inputs(self, terms: np.ndarray, n_inputs: int) -> np.ndarray:
        """Terms (n_outputs, n_features) of features of order 1, added up at the input of each: (n_outputs, n_inputs)."""
        total = np.zeros((len(terms), n_inputs))
        if self.inputs_differ:
            total[:, self.inputs[:, 0]] = terms
        else:
            np.add.at(total.T, self.inputs[:, 0], terms.T)
        return total

    @cached_property
    def used_inputs(self) -> tuple[np.ndarray, np.ndarray]:
        """Sparse weights: the sorted inputs that occur, and `inputs` as positions among them."""
        used, position = np.unique(self.inputs, return_inverse=True)
        return used, np.ascontiguousarray(position.reshape(self.inputs.shape), dtype=np.int32)

    def spread(self, inputs: np.ndarray, n_inputs: int) -> np.ndarray:
        """Sparse weights as dense ones of n_inputs, where `inputs` are their places."""
        weights = np.zeros((len(self), n_inputs))
        np.add.at(weights, (np.arange(len(self))[:, None], inputs), self.weights)
        return weights

    def packed(self, dtype: np.dtype, n_inputs: int, among_used: bool = False) -> Panels:
        """The features as the kernels take them, `Panels` that are made when first asked for.

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

    @np.errstate(over="ignore", under="ignore")  # a weight too large for float32: its phase is infinite, as kernels expect
    def _pack(self, dtype, n_inputs, inputs):
        weights = self.weights
        if inputs is not None and self.envelope is None and n_inputs <= DENSE_BELOW * self.order:
            weights, inputs = self.spread(inputs, n_inputs), None
        inputs = None if inputs is None else _in_panels(inputs, np.int32)
        offset = _in_panels(self.offset[:, None], dtype)[:, 0]
        return Panels(self.activation, self.scale, _in_panels(weights, dtype), offset, inputs)

    def __getstate__(self) -> dict[str, Any]:  # without what can be made again
        return {field.name: self.__dict__[field.name] for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:  # unpickled arrays are writable
        self.__dict__.update(state)
        self.__post_init__()


def no_offset(block: FeatureBlock) -> np.ndarray:
    return _read_only(np.zeros(len(block)))


def count_entries(inputs: np.ndarray, n_inputs: int) -> np.ndarray:
    """In how many rows of `inputs` each input occurs; negative ones are none."""
    inputs = np.sort(inputs, axis=1)
    return np.bincount(inputs[np.diff(inputs, axis=1, prepend=-1) > 0], minlength=n_inputs)


def _read_only(array):
    array.flags.writeable = False
    return array


def _in_panels(array, dtype):
    """(n, d) -> (ceil(n / PANEL), d, PANEL), zero-padded, on a 64-byte boundary."""
    n, d = array.shape
    n_panels = -(-n // PANEL)
    size = n_panels * d * PANEL
    memory = np.zeros(size + 64, dtype)
    start = -memory.ctypes.data % 64 // memory.itemsize
    panels = memory[start : start + size].reshape(n_panels, d, PANEL)
    full = n // PANEL
    panels[:full] = array[: full * PANEL].reshape(full, PANEL, d).swapaxes(1, 2)
    if full < n_panels:
        panels[full, :, : n - full * PANEL] = array[full * PANEL :].T
    return panels
