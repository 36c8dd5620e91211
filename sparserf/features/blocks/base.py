"""The base class of blocks of features: all that is asked of features of one kind.

Rows ask a block for its values, files for its arrays, exports for its `expression`, explanations
and proofs for its features one by one, each as a `term`, and others for derivatives, parts, and
whether it keeps constraints. Code outside this folder knows no kind by its name.
A new kind is a file of this folder with a subclass of `FeatureBlock`, and its place in `KINDS`
(`__init__.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np

from .constrained import may_meet, without_forbidden
from .stored import without_zeros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..._base.expressions import Expression
    from ..._base.types import Array, DenseOrCSR
    from ...columns.constraints import InputConstraints
    from ...rows.protocols import PanelsLike
    from .derivatives import Derivatives
    from .stored import StoredBlock
    from .terms import Term

# A function of rows, (n_rows, n_inputs), that returns their features, (n_rows, n_features).
Evaluator: TypeAlias = Callable[["Array"], "Array"]
# A function that brings an ndarray to a device.
Put: TypeAlias = Callable[[np.ndarray], "Array"]

# The arrays whose entries are factors: an entry of 1 is not counted in the size of a model.
FACTORS = "weights", "height"


class FeatureBlock(ABC):
    """Features of one kind: a frozen dataclass, whose arrays have an entry or a line for each
    feature.

    Here `inputs` are what the features are functions of: the columns of X, or what the column
    encoder makes of them.

    Attributes
    ----------
    activation : str
        What the features are, in summaries and files.
    scale : float
        The factor by which all values of the features are multiplied.
    inputs : None, or int32 ndarray of shape (n_features, order)
        The inputs of each feature; None: all of them.
    """

    activation: str
    scale: float
    inputs: np.ndarray | None

    # The arrays that have a number of each feature for each of its inputs.
    by_input: ClassVar[tuple[str, ...]] = ()
    # The values that `activation` may have.
    names: ClassVar[tuple[str, ...]]
    # The arrays that files have of the features.
    stored: ClassVar[tuple[str, ...]]

    # Properties of a kind of features; a class overrides the defaults that do not hold for its
    # kind.
    # Whether |phi_j(x)| has a bound over all x.
    is_bounded = False
    # Whether the features are cosines or sines, which have a phase.
    is_periodic = False
    # Whether the features are linear functions plus a constant.
    is_linear = False
    # Whether the features are near 0 except around a center: many of them can fit any values of the
    # training rows, and say nothing elsewhere.
    is_local = False
    # Whether the features are constant except for jumps at thresholds, which lie between training
    # rows: beyond all thresholds they are constant.
    is_flat_beyond = False
    # Whether inputs can be left out of a feature (`with_inputs`).
    has_parts = True
    # Whether coefficients of the features must be at least 0.
    nonnegative = False
    # Whether Phi = X W' with W the `matrix`.
    is_matrix = False
    # The degree of the moments of the inputs from which all correlations with v follow: 1 for the
    # sums X'v, 2 for the second moments X' diag(v) X; 0 where they follow from neither.
    moment_degree = 0
    # A key of `made_inputs`; None where features are functions of the rows themselves.
    inputs_key: tuple[Any, ...] | None = None
    # Whether the panels compute the features from dense rows alone; of CSR rows they then get the
    # `used_inputs`.
    needs_dense_rows = True

    def __post_init__(self) -> None:
        for array in self.arrays.values():
            array.flags.writeable = False

    def __len__(self) -> int:
        return self._size

    @cached_property
    def _size(self):
        return len(next(iter(self.arrays.values())))

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The fields that are arrays, by name: each has an entry or a line for each feature."""
        values = {name: getattr(self, name) for name in _field_names(type(self))}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    @cached_property
    def kind(self) -> tuple[Any, ...]:
        """A key of what the features of a block share: blocks of equal kind can be concatenated."""
        arrays, names = self.arrays, _field_names(type(self))
        shared = [getattr(self, name) for name in names if name not in arrays]
        shapes = [(name, array.dtype, array.shape[1:]) for name, array in arrays.items()]
        return (self.activation, type(self), *shared, *shapes)

    def __getstate__(self) -> dict[str, Any]:  # without what can be made again
        return {name: self.__dict__[name] for name in _field_names(type(self))}

    def __setstate__(self, state: dict[str, Any]) -> None:  # unpickled arrays are writable
        self.__dict__.update(state)
        self.__post_init__()

    # ---------------------------------------------------------------- other features of the kind

    def take(self, indices: np.ndarray | list[int]) -> Self:
        """Return the features at these indices."""
        return replace(self, **{name: array[indices] for name, array in self.arrays.items()})

    @staticmethod
    def concatenate(blocks: Sequence[FeatureBlock]) -> FeatureBlock:
        """Return one block with the features of several blocks of equal kind."""
        first = blocks[0]
        if len(blocks) == 1:
            return first
        names = first.arrays
        return replace(
            first,
            **{name: np.concatenate([getattr(block, name) for block in blocks]) for name in names},
        )

    def seeing(self, indices: np.ndarray, n_inputs: int) -> Self:
        """Return these features as functions of n_inputs inputs, where `indices` says which of them
        their inputs are."""
        if self.inputs is not None:
            return replace(self, inputs=indices[self.inputs].astype(np.int32))
        wide = {}
        for name in self.by_input:
            wide[name] = np.zeros((len(self), n_inputs))
            wide[name][:, indices] = getattr(self, name)
        return replace(self, **wide)

    def scaled(self, factor: float) -> Self:
        """Return these features times a number."""
        return replace(self, scale=float(factor) * self.scale)

    def turned(self, angle: float | np.ndarray) -> Self:
        """Return these features with an angle, or one for each, added to their phase, where they
        are cosines or sines."""
        return self

    # ---------------------------------------------------------------- inputs

    @property
    def order(self) -> int:
        """The number of inputs of which a feature is a function."""
        return (getattr(self, self.by_input[0]) if self.inputs is None else self.inputs).shape[1]

    @property
    @abstractmethod
    def is_used(self) -> np.ndarray:
        """A mask (n_features, order) of the inputs on which features depend, of those that they
        have."""

    @property
    def own_inputs(self) -> np.ndarray:
        """The inputs of each feature, (n_features, order), or (1, n_inputs) where it has all."""
        return np.arange(self.order)[None] if self.inputs is None else self.inputs

    def count_inputs(self, n_columns: int, column: np.ndarray | None = None) -> np.ndarray:
        """Return how many features use each column.

        column : the column of X that each input is made of; None: inputs are the columns.
        """
        if self.inputs is None and column is None:
            return np.count_nonzero(self.is_used, axis=0)
        inputs = self.own_inputs if column is None else column[self.own_inputs]
        return count_entries(np.where(self.is_used, inputs, -1), n_columns)

    def sees_input(self, n_inputs: int) -> np.ndarray:
        """Return a mask of the inputs that some feature depends on."""
        return self.count_inputs(n_inputs) > 0

    def inputs_seen(self, k: int, n_inputs: int) -> np.ndarray:
        """Return the inputs that feature k depends on, ascending."""
        used = self.is_used[k]
        return np.flatnonzero(used) if self.inputs is None else np.unique(self.inputs[k][used])

    def name(self, k: int, inputs: Sequence[str]) -> str:
        """Return feature k as text, with the names of its inputs, such as "sin(x0, x4)"."""
        used = [inputs[i] for i in self.inputs_seen(k, len(inputs))]
        return f"{self.activation}({', '.join(used) if len(used) <= 3 else f'{len(used)} inputs'})"

    # ---------------------------------------------------------------- values

    def largest_value(self) -> np.ndarray:
        """Return sup over x of |phi_j(x)| of each feature; infinite where it has no bound."""
        return np.full(len(self), abs(self.scale) if self.is_bounded else np.inf)

    def rounding_in_single(self, total: float, sizes: np.ndarray) -> np.ndarray:
        """Return, for each feature, a bound on the change of phi_j'v by single precision; infinite
        where none is known.

        total : sum_i |v_i|
        sizes : sum_i |v_i x_ik| of each input k, or more
        """
        return np.full(len(self), np.inf)

    @property
    def heights(self) -> np.ndarray | None:
        """The value of each feature in the rows where it is not 0, if it has only one; else None.

        The panels of such a block say in which rows a feature is not 0, by `bits`.
        """
        return None

    @abstractmethod
    def packed(self, dtype: np.dtype, n_inputs: int, among_used: bool = False) -> PanelsLike:
        """Return the features as kernels compute them, made at the first call and kept.

        n_inputs : the width of the rows.
        among_used : whether the rows hold the `used_inputs` only.
        """

    @abstractmethod
    def rows_for_panels(self, X: np.ndarray) -> Any:
        """Return dense rows as the panels read them."""

    @property
    @abstractmethod
    def used_inputs(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The sorted inputs that the features have, and `inputs` as positions among them."""

    @abstractmethod
    def evaluator(self, xp: Any, put: Put, dtype: np.dtype, widen: Evaluator) -> Evaluator:
        """Return a function that computes the features in an array namespace.

        xp : the namespace
        put : brings an array to the device, and floats to the dtype of the rows
        dtype : the dtype of X, as NumPy has it; features without a bound get rows of float64
        widen : converts to float64, or the widest that there is
        """

    def made_inputs(self, X: DenseOrCSR) -> DenseOrCSR:
        """Return the inputs of the features, made from rows X; only where there is an
        `inputs_key`."""
        raise NotImplementedError(f"{type(self).__name__} is a function of the rows themselves")

    # -- for kinds with a `moment_degree`

    @property
    def matrix(self) -> np.ndarray:
        """W, of kinds with `is_matrix`: (n_features, n_inputs)."""
        raise NotImplementedError(f"{type(self).__name__} is no matrix")

    def is_identity(self, n_inputs: int) -> bool:
        """Return whether the features are the n_inputs inputs themselves, in their order."""
        return False

    def correlations_from_moments(self, total: np.ndarray, squared: bool) -> np.ndarray:
        """Return the correlations of kinds with a `moment_degree`: (n_outputs, n_features).

        total : sums X'v, or second moments X' diag(v) X laid out as a line, of each output.
        squared : whether the correlations of the squared features are wanted; the inputs in `total`
            are then squared.
        """
        raise NotImplementedError(f"{type(self).__name__} has no moments")

    def coef_on_inputs(self, coef: np.ndarray, n_inputs: int) -> np.ndarray:
        """Return the coefficients of the inputs, (n_outputs, n_inputs), that give the same function
        as coefficients `coef` of the features; only where `moment_degree` is 1."""
        raise NotImplementedError(f"{type(self).__name__} has no moments")

    @cached_property
    def _inputs_differ(self):
        """Whether no two features, of one input each, have the same input."""
        return len(np.unique(self.inputs[:, 0])) == len(self)

    def sum_at_inputs(self, values: np.ndarray, n_inputs: int) -> np.ndarray:
        """Sum values (n_outputs, n_features), whose features have one input each, by input:
        (n_outputs, n_inputs)."""
        total = np.zeros((len(values), n_inputs))
        if self._inputs_differ:
            total[:, self.inputs[:, 0]] = values
        else:
            np.add.at(total.T, self.inputs[:, 0], values.T)
        return total

    # ---------------------------------------------------------------- in models

    @abstractmethod
    def term(self, k: int, position: int, column: np.ndarray) -> Term:
        """Return feature k as a term of a model.

        position : its index in the model
        column : the column of X from which each input is made
        """

    @abstractmethod
    def derivatives(self, *about: Any) -> Derivatives:
        """Return the derivatives of the features, summed with coefficients.

        about : the arguments of `Derivatives` after the block
        """

    @property
    @abstractmethod
    def expression(self) -> Expression:
        """The features, without their scale, as an expression of their inputs, which languages
        print."""

    def written(self, inputs: np.ndarray, n_inputs: int) -> Self:
        """Return the features as functions of some inputs alone, numbered from 0, in the form that
        `expression` writes.

        inputs : the inputs that remain, of all n_inputs; those that no feature uses may be left out
        """
        if self.inputs is None:
            return replace(self, **{name: getattr(self, name)[:, inputs] for name in self.by_input})
        place = np.zeros(n_inputs, np.intp)
        place[inputs] = np.arange(len(inputs))
        return replace(self, inputs=np.where(self.is_used, place[self.inputs], 0))

    def gathered(self, inputs: np.ndarray) -> Self:
        """Return these features, which have all inputs, with some of them: those that they use.

        inputs : (n_features, order)
        """
        own = {
            name: np.take_along_axis(getattr(self, name), inputs, axis=1) for name in self.by_input
        }
        used = np.take_along_axis(self.is_used, inputs, axis=1)
        return replace(self, **own, inputs=np.where(used, inputs, 0))

    # ---------------------------------------------------------------- parts

    def effects(self, deviation: np.ndarray) -> np.ndarray:
        """Return the size of the effect of each input on each feature, (n_features, order); only
        where `has_parts`.

        deviation : the standard deviation of each input
        """
        raise NotImplementedError(f"{type(self).__name__} has no parts")

    def with_inputs(self, stays: np.ndarray, mean: np.ndarray) -> Self:
        """Return the features as functions of some of their inputs; only where `has_parts`.

        stays : a mask of the inputs that stay, (n_features, order)
        mean : the mean of each input, at which inputs that do not stay are fixed
        """
        raise NotImplementedError(f"{type(self).__name__} has no parts")

    @property
    def thresholds(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers at which features jump, as (their inputs, the numbers): here, none."""
        return np.zeros(0, np.intp), np.zeros(0)

    def with_thresholds(self, numbers: np.ndarray) -> Self:
        """Return the features with other `thresholds`, in their order."""
        return self

    def flattened(self, ends: np.ndarray, fill: np.ndarray) -> tuple[Self, np.ndarray]:
        """Return (features that are the same where inputs are within their ends, and constant
        beyond the ends; a mask of those that are constant everywhere).

        By default the features stay as they are: the column encoder is constant beyond the ends.

        ends : (n_inputs, 2), infinite where inputs have none
        fill : the encoding of missing cells, of each input
        """
        return self, np.zeros(len(self), bool)

    # ---------------------------------------------------------------- constraints

    def keeps(self, constraints: InputConstraints) -> np.ndarray:
        """Return a mask of the features that keep constraints with any coefficient that they may
        have. By default these see no input that is bound."""
        at = self.own_inputs
        is_free = ~(constraints.is_bound | constraints.is_barred)[at]
        meets = may_meet(self.is_used, constraints, at)
        return meets & (is_free | ~self.is_used).all(axis=1)

    def constrained(
        self, constraints: InputConstraints, through: np.ndarray, rng: np.random.Generator
    ) -> list[tuple[FeatureBlock, np.ndarray]]:
        """Return as many features, like these draws of a map, that keep constraints: pairs of a
        block and the places of its features. By default inputs that are bound are left out.

        through : rows of all inputs, (n, n_inputs)
        """
        may_see = without_forbidden(1.0 * self.is_used, constraints, rng, self.inputs) != 0
        stays = may_see & ~constraints.is_bound[self.own_inputs]
        block = self.with_inputs(stays, np.zeros(len(constraints.is_bound)))
        return [(block, np.arange(len(self)))]

    # ---------------------------------------------------------------- files

    @property
    def meta(self) -> dict[str, Any]:
        """What a file holds of the block beside its arrays."""
        meta = {"activation": self.activation, "scale": self.scale, "gamma": None}
        return meta | {"nonnegative": True} if self.nonnegative else meta

    def to_arrays(self, i: int) -> dict[str, np.ndarray]:
        """Return the arrays that a file holds of this block, the i-th."""
        written = self._stored_arrays()
        if self.inputs is None:
            written |= without_zeros({name: written[name] for name in self.by_input})
        return {f"{name}_{i}": array for name, array in written.items()}

    @property
    def n_numbers(self) -> int:
        """The number of numbers in a file that describe the features: of inputs only those that
        features use, and without infinite ends, factors of 1, and offsets of 0."""
        n, values = 0, {name: getattr(self, name) for name in self.by_input}
        for name, array in self.arrays.items():
            is_of_input = name in values or name == "inputs"
            entries = array[np.broadcast_to(self.is_used, array.shape)] if is_of_input else array
            if name in FACTORS:
                entries = entries[entries != 1]
            is_known = np.isfinite(entries) if is_of_input else entries != 0
            n += int(np.count_nonzero(is_known))
        return n + (len(without_zeros(values).get("places", ())) if self.inputs is None else 0)

    def _stored_arrays(self):
        """Return the arrays that files have, as a new dict."""
        return dict(self.arrays)

    @classmethod
    @abstractmethod
    def from_stored(cls, stored: StoredBlock) -> FeatureBlock:
        """Check what a file holds of a block of this kind, and return the block."""


@cache
def _field_names(kind):
    """Return the names of the fields of a kind of features."""
    return tuple(field.name for field in fields(kind))


def count_entries(inputs: np.ndarray, n_inputs: int) -> np.ndarray:
    """Return in how many rows of `inputs` each input occurs; negative entries are no inputs."""
    inputs = np.sort(inputs, axis=1)
    return np.bincount(inputs[np.diff(inputs, axis=1, prepend=-1) > 0], minlength=n_inputs)
