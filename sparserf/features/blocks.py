"""Blocks of features of one kind: neurons, linear functions, monomials, bumps; what a `FeatureSet`
is made of.

Features of a new kind need a class here, with the `expression` that all languages print; a branch
of `block_from_arrays`, which reads them from the file of a model, and of `Term`
(`expansion/terms.py`), their parts by columns; code that computes their values, in the kernels
(`_core/tile_impl.h`) for rows in memory and in `ArrayBlock` (`rows/device.py`) for rows on a
device; and an entry in each table of what is asked of kinds: `PARTS` of derivatives, `MEANS` over
boxes and `GROUPS` of bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from .._base.expressions import (
    absolute,
    encoding,
    envelope,
    exp,
    expanded,
    made,
    over,
    parameter,
    raised,
    seen,
)
from .._base.npz import floats, require
from .._core.features import ACTIVATIONS as KINDS
from .._core.features import PANEL, Panels
from .activations import ACTIVATIONS, ActivationFunction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .._base.expressions import Expression

# Most inputs for each sparse weight at which sparse weights are multiplied as dense ones, zeros
# included: that is then faster than gathering the inputs.
DENSE_BELOW = 25
# What the file of a model holds of a block: numbers and names that its features share, and arrays.
BLOCK_META, BLOCK_ARRAYS = (
    ("activation", "scale", "gamma"),
    ("weights", "offset", "inputs", "centers", "places"),
)
# Dense weights of which at most one in SPARSE_BELOW is not 0 are in a file as these alone, with
# their places, if all weights are at most MOST_FOR_ONE for each of them and MOST_MORE: what a file
# makes in memory is in proportion to its size.
SPARSE_BELOW, MOST_FOR_ONE, MOST_MORE = 3, 32, 2**16


class FeatureBlock:
    """Features of one kind; every kind is a frozen dataclass: `NeuronBlock`, `LinearBlock`,
    `MonomialBlock` or `BumpBlock`.

    Here `inputs` are what the features are functions of: the columns of X, or what the column stage
    makes of them.

    Attributes
    ----------
    activation : str
        Its name: that of the activation of neurons, or "product" or "bump".
    scale : float
        The factor by which all values of the features are multiplied.
    weights : ndarray of shape (n_features, n_inputs), (n_features, order) or (n_features, 1) The
        second shape where `inputs` is given; the third for monomials. `order` is the number of
        inputs of a feature.
    offset : ndarray of shape (n_features,)
        What is added to the weighted sum of the inputs.
    inputs : None, or int32 ndarray of shape (n_features, order)
        The input that each weight multiplies, or the factors of each monomial; None: weights are
        dense.
    gamma : None or float
        The inverse width of an envelope.
    centers : None or ndarray of the shape of the weights
        Where each bump has its peak.
    """

    activation: str
    scale: float
    weights: np.ndarray
    offset: np.ndarray
    inputs: np.ndarray | None
    gamma: float | None
    centers: np.ndarray | None = None

    # Properties of a kind of features; a class overrides the defaults that do not hold for its
    # kind.
    # The activation of neurons, of which linear functions are some; None where features are no
    # functions of w'x.
    sigma: ActivationFunction | None = None
    # Whether |phi_j(x)| has a bound over all x.
    is_bounded = False
    # Whether the features are cosines or sines, which have a phase.
    is_periodic = False
    # Whether coefficients of the features must be at least 0.
    nonnegative = False
    # Whether Phi = X W' with W the `matrix`.
    is_matrix = False
    # The degree of the moments of the inputs that hold all correlations with v: 1 for the sums X'v,
    # 2 for the second moments X' diag(v) X; 0 where neither does.
    moment_degree = 0
    # Most inputs for each sparse weight at which sparse weights are taken as dense ones, zeros
    # included.
    dense_below = DENSE_BELOW
    # (gamma, degree) of features that are functions of u = exp(-gamma |x|^2 / degree) (1, sqrt(2
    # gamma) x) in place of x.
    envelope: tuple[float, int] | None = None

    @property
    def is_linear(self) -> bool:
        """Whether the features are linear functions, but for a constant."""
        return self.sigma is not None and self.sigma.is_linear

    @property
    def rises(self) -> bool:
        """Whether features of positive scale never fall with w'x."""
        return self.sigma is not None and self.sigma.rises

    @property
    def is_convex(self) -> bool:
        """Whether features of positive scale are convex functions."""
        return self.sigma is not None and self.sigma.is_convex

    @property
    def matrix(self) -> np.ndarray:
        """W, of kinds with `is_matrix`: (n_features, n_inputs)."""
        raise NotImplementedError(f"{type(self).__name__} is no matrix")

    def correlations_from_moments(self, total: np.ndarray, squared: bool) -> np.ndarray:
        """Return the correlations of kinds with a `moment_degree`: (n_outputs, n_features).

        total : sums X'v, or second moments X' diag(v) X laid out as a line, of each output.
        squared : whether the correlations of the squared features are wanted; the inputs in `total`
            are then squared.
        """
        raise NotImplementedError(f"{type(self).__name__} has no moments")

    def coef_on_inputs(self, coef: np.ndarray, n_inputs: int) -> np.ndarray:
        """Return coefficients of the inputs, (n_outputs, n_inputs), with the same sum as coef,
        where `moment_degree` is 1."""
        raise NotImplementedError(f"{type(self).__name__} has no moments")

    def __post_init__(self) -> None:
        for array in self.arrays.values():
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The fields that are arrays, by name: each has an entry or a line for each feature."""
        arrays = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                arrays[field.name] = value
        return arrays

    @property
    def order(self) -> int:
        """The number of inputs of which a feature is a function, or the number of factors (the
        degree) of a monomial."""
        return (self.weights if self.inputs is None else self.inputs).shape[1]

    @property
    def inputs_of_weights(self) -> np.ndarray:
        """The input of each weight, (n_features, order), or (1, n_inputs) where weights are dense;
        of monomials `inputs`."""
        return np.arange(self.order)[None] if self.inputs is None else self.inputs

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key of what the features of a block share: blocks of equal kind can be concatenated."""
        shape = self.inputs is None, self.order, self.weights.dtype
        return self.activation, type(self), self.scale, self.gamma, *shape, self.nonnegative

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
        for name in ("weights", "centers"):
            if getattr(self, name) is not None:
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

    def largest_value(self) -> np.ndarray:
        """Return sup over x of |phi_j(x)| of each feature; infinite where it has no bound."""
        return np.full(len(self), abs(self.scale) if self.is_bounded else np.inf)

    def count_inputs(self, n_columns: int, column: np.ndarray | None = None) -> np.ndarray:
        """Return how many features use each column.

        column : the column of X that each input is made of; None: inputs are the columns.
        """
        used = self.weights != 0
        if self.inputs is None and column is None:
            return np.count_nonzero(used, axis=0)
        inputs = self.inputs_of_weights if column is None else column[self.inputs_of_weights]
        return _count_entries(np.where(used, inputs, -1), n_columns)

    def sees_input(self, n_inputs: int) -> np.ndarray:
        """Return a mask of the inputs that some feature depends on."""
        return self.count_inputs(n_inputs) > 0

    def inputs_seen(self, k: int, n_inputs: int) -> np.ndarray:
        """Return the inputs that feature k depends on, ascending."""
        used = self.weights[k] != 0
        return np.flatnonzero(used) if self.inputs is None else np.unique(self.inputs[k][used])

    def name(self, k: int, inputs: Sequence[str]) -> str:
        """Return feature k as text, with the names of its inputs, such as "sin(x0, x4)"."""
        used = [inputs[i] for i in self.inputs_seen(k, len(inputs))]
        return f"{self.activation}({', '.join(used) if len(used) <= 3 else f'{len(used)} inputs'})"

    @staticmethod
    def expression(terms: Any) -> Expression:
        """Return features, without their scale, as an expression of their inputs, in which
        languages print them.

        terms : features of this kind, or one (`expansion.terms.Term`, `export.written.TermGroup`),
            with the attributes of a block; the weights of bumps are at least 0
        """
        inputs = parameter("weights", terms.weights) * seen(terms.inputs)
        return terms.sigma.expression(over("add", inputs) + parameter("offset", terms.offset))

    @classmethod
    def expression_of_one(cls, term: Any) -> Expression:
        """Return one feature as an expression without `over`."""
        return expanded(cls.expression(term))

    def is_identity(self, n_inputs: int) -> bool:
        """Return whether feature j is input j, of all n_inputs: nothing to gather, scatter or
        multiply by."""
        return False

    @cached_property
    def inputs_differ(self) -> bool:
        """Whether no two features, of one input each, have the same input."""
        return len(np.unique(self.inputs[:, 0])) == len(self)

    def sum_at_inputs(self, terms: np.ndarray, n_inputs: int) -> np.ndarray:
        """Sum terms (n_outputs, n_features), whose features have one input each, by input:
        (n_outputs, n_inputs)."""
        total = np.zeros((len(terms), n_inputs))
        if self.inputs_differ:
            total[:, self.inputs[:, 0]] = terms
        else:
            np.add.at(total.T, self.inputs[:, 0], terms.T)
        return total

    @property
    def needs_dense_rows(self) -> bool:
        """Whether the kernels compute the features from dense rows alone; of CSR rows they then get
        the `used_inputs`."""
        return self.inputs is not None

    @cached_property
    def used_inputs(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The sorted inputs that occur in sparse weights, and `inputs` as positions among them."""
        used, position = np.unique(self.inputs, return_inverse=True)
        return used, np.ascontiguousarray(position.reshape(self.inputs.shape), dtype=np.int32)

    def among_used(self) -> FeatureBlock:
        """Return these features as functions of the `used_inputs` alone."""
        return replace(self, inputs=self.used_inputs[1])

    def dense(self, n_inputs: int) -> FeatureBlock:
        """Return these features, whose weights are sparse, with dense ones."""
        return replace(self, weights=self.dense_weights(self.inputs, n_inputs), inputs=None)

    def dense_weights(self, inputs: np.ndarray, n_inputs: int) -> np.ndarray:
        """Return sparse weights as dense ones, (n_features, n_inputs), where `inputs` are their
        columns."""
        weights = np.zeros((len(self), n_inputs))
        np.add.at(weights, (np.arange(len(self))[:, None], inputs), self.weights)
        return weights

    def packed(self, dtype: np.dtype, n_inputs: int, among_used: bool = False) -> Panels:
        """Return the features in the layout of the kernels, as `Panels`, which are made at the
        first call and kept.

        n_inputs : the width of the rows.
        among_used : whether the rows hold the `used_inputs` only.

        Sparse weights are packed as dense ones where few inputs make that the faster way, to the
        same bits.
        """
        key = dtype, n_inputs, among_used
        if key not in self._packed:
            block = self.among_used() if among_used else self
            if (
                block.inputs is not None
                and self.envelope is None
                and n_inputs <= self.dense_below * self.order
            ):
                block = block.dense(n_inputs)
            # A weight may be too large for float32: its phase is infinite then, as the kernels
            # expect.
            self._packed[key] = block._panels(dtype)
        return self._packed[key]

    def _panels(self, dtype):
        """Lay the features out in panels."""
        weights, centers = self.parameters(dtype)
        inputs = None if self.inputs is None else _in_panels(self.inputs, np.int32)
        offset = _in_panels(self.offset[:, None], dtype)[:, 0]
        centers = None if centers is None else _in_panels(centers, dtype)
        return Panels(
            self.activation, self.scale, _in_panels(weights, dtype), offset, inputs, centers
        )

    def parameters(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the weights and centers as values of that dtype are computed from them."""
        return self.weights, None

    @cached_property
    def _packed(self):
        """The `Panels` that have been made, by the arguments of `packed`."""
        return {}

    def __getstate__(self) -> dict[str, Any]:  # without what can be made again
        return {field.name: self.__dict__[field.name] for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:  # unpickled arrays are writable
        self.__dict__.update(state)
        self.__post_init__()

    def to_arrays(self, i: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what the file of a model holds of this block, the i-th: (meta, arrays)."""
        written = self.arrays | {"offset": self.offset} | self._without_zeros()
        arrays = {f"{name}_{i}": array for name, array in written.items()}
        meta = {name: getattr(self, name) for name in BLOCK_META}
        if self.nonnegative:  # left out where it is not so
            meta["nonnegative"] = True
        return meta, arrays

    def _without_zeros(self):
        """Return {name: array} of what stands in a file for dense weights, and centers, that are
        mostly 0; else nothing."""
        if self.inputs is not None:
            return {}
        is_zero = self.weights == 0
        places = np.flatnonzero(~is_zero)
        if len(places) * SPARSE_BELOW > is_zero.size or not _may_be_sparse(
            is_zero.size, len(places)
        ):
            return {}
        if self.centers is not None and self.centers[is_zero].any():
            return {}
        some = {
            name: getattr(self, name).ravel()[places]
            for name in ("weights", "centers")
            if getattr(self, name) is not None
        }
        return some | {"places": places.astype(np.int32)}


@dataclass(frozen=True, eq=False)
class NeuronBlock(FeatureBlock):
    """Neurons, phi_j(x) = scale * activation(w_j'x + offset_j): weights w are all dense, or, given
    `inputs`, all sparse.

    nonnegative : whether coefficients must be at least 0, as of neurons that rise with an input in
        which the model must rise
    """

    activation: str
    scale: float
    weights: np.ndarray
    offset: np.ndarray
    inputs: np.ndarray | None = None
    nonnegative: bool = False

    gamma: ClassVar[float | None] = None

    @property
    def sigma(self) -> ActivationFunction:
        return ACTIVATIONS[self.activation]

    @property
    def is_bounded(self) -> bool:
        return self.sigma.is_bounded

    @property
    def is_periodic(self) -> bool:
        return self.sigma.is_periodic

    def largest_value(self) -> np.ndarray:
        return np.full(
            len(self), abs(self.scale) * self.sigma.largest if self.is_bounded else np.inf
        )

    def turned(self, angle: float | np.ndarray) -> Self:
        return replace(self, offset=self.offset + angle) if self.is_periodic else self


@dataclass(frozen=True, eq=False)
class LinearBlock(FeatureBlock):
    """Linear functions, phi_j(x) = scale * w_j'x: weights w are all dense, or, given `inputs`, all
    sparse.

    The inputs themselves are such a block.

    nonnegative : whether coefficients must be at least 0
    """

    scale: float
    weights: np.ndarray
    inputs: np.ndarray | None = None
    nonnegative: bool = False

    activation = "identity"
    sigma: ClassVar[ActivationFunction] = ACTIVATIONS[activation]
    gamma: ClassVar[float | None] = None

    @cached_property
    def offset(self) -> np.ndarray:
        return _zero_offset(self)

    @property
    def is_matrix(self) -> bool:
        return self.inputs is None

    @cached_property
    def matrix(self) -> np.ndarray:
        return self.scale * self.weights

    @property
    def moment_degree(self) -> int:
        return int(self.is_matrix or self.order == 1)

    def is_identity(self, n_inputs: int) -> bool:
        return len(self) == n_inputs and self._is_each_input

    @cached_property
    def _is_each_input(self):
        if self.is_matrix or self.order > 1:
            return False
        return np.array_equal(self.inputs[:, 0], np.arange(len(self))) and bool(
            (self._coefficients == 1).all()
        )

    @cached_property
    def _coefficients(self):
        """The factor of the input of each feature, where features have one input each."""
        return self.scale * self.weights[:, 0]

    def correlations_from_moments(self, total: np.ndarray, squared: bool) -> np.ndarray:
        if self.is_identity(total.shape[1]):
            return total
        if self.is_matrix:
            return total @ self.matrix.T
        c = self._coefficients
        return (c * c if squared else c) * total[:, self.inputs[:, 0]]

    def coef_on_inputs(self, coef: np.ndarray, n_inputs: int) -> np.ndarray:
        if self.is_matrix:
            return coef @ self.matrix
        return (
            coef
            if self.is_identity(n_inputs)
            else self.sum_at_inputs(coef * self._coefficients, n_inputs)
        )

    def name(self, k: int, inputs: Sequence[str]) -> str:
        used = self.inputs_seen(k, len(inputs))
        return inputs[used[0]] if len(used) == 1 else super().name(k, inputs)


@dataclass(frozen=True, eq=False)
class MonomialBlock(FeatureBlock):
    """Monomials under a Gaussian envelope: products of entries of u = exp(-gamma |x|^2 / degree)
    (1, sqrt(2 gamma) x).

    phi_j(x) = scale * product over l of w_j u[inputs_jl], where the degree, the number of factors,
    is the attribute `order`. Each factor has its share of the envelope and of the coefficient, so
    that none overflows; the 1 in u makes monomials of any lower degree.
    """

    scale: float
    weights: np.ndarray
    inputs: np.ndarray
    gamma: float

    activation = "product"
    is_bounded = True

    @cached_property
    def offset(self) -> np.ndarray:
        return _zero_offset(self)

    @property
    def envelope(self) -> tuple[float, int]:
        return self.gamma, self.order

    @property
    def moment_degree(self) -> int:
        return self.order if self.order <= 2 else 0

    @cached_property
    def _coefficients(self):
        """The factor of the product of inputs of u, of each feature."""
        return self.scale * self.weights[:, 0] ** self.order

    def correlations_from_moments(self, total: np.ndarray, squared: bool) -> np.ndarray:
        c, place = self._coefficients, self.inputs[:, 0].astype(np.intp)
        if self.order == 2:
            place = place * round(total.shape[1] ** 0.5) + self.inputs[:, 1]
        return (c * c if squared else c) * total[:, place]

    def coef_on_inputs(self, coef: np.ndarray, n_inputs: int) -> np.ndarray:
        return self.sum_at_inputs(coef * self._coefficients, n_inputs)

    @staticmethod
    def expression(terms: Any) -> Expression:
        factors = seen(terms.inputs, enveloped=(terms.gamma, terms.inputs.shape[1]))
        return over("multiply", parameter("weights", terms.weights) * factors)

    @classmethod
    def expression_of_one(cls, term: Any) -> Expression:
        powers = zip(term.encodings.tolist(), term.weights.tolist(), strict=True)
        return made(
            "multiply", envelope(term.gamma), *(raised(encoding(v), int(p)) for v, p in powers if p)
        )

    # prod_i |t_i|^v_i exp(-t_i^2 / 2) is at most prod_i (v_i / e)^(v_i / 2)
    def largest_value(self) -> np.ndarray:
        inputs = np.sort(self.inputs, axis=1)
        peak = sum(
            (entry > 0) * _rise(run) for entry, run in zip(inputs.T, runs(inputs), strict=True)
        )
        return (
            abs(self.scale) * (np.abs(self.weights[:, 0]) * np.exp(peak / self.order)) ** self.order
        )

    def count_inputs(self, n_columns: int, column: np.ndarray | None = None) -> np.ndarray:
        """Return how many features have each column as a factor; that the envelope falls with every
        input does not count."""
        factors = self.inputs - 1 if column is None else np.append(column, -1)[self.inputs - 1]
        return _count_entries(np.where(self.weights != 0, factors, -1), n_columns)

    def sees_input(self, n_inputs: int) -> np.ndarray:
        """Return all inputs, on which the envelope depends."""
        return np.full(n_inputs, bool(self.weights.any()))

    def inputs_seen(self, k: int, n_inputs: int) -> np.ndarray:
        """Return all inputs, on which the envelope depends."""
        return np.arange(n_inputs if self.weights[k, 0] != 0 else 0)

    def name(self, k: int, inputs: Sequence[str]) -> str:
        powers = np.bincount(self.inputs[k], minlength=1)
        factors = [
            inputs[i - 1] + (f"^{powers[i]}" if powers[i] > 1 else "")
            for i in np.flatnonzero(powers)
            if i > 0
        ]
        return "*".join(["gaussian", *factors])


@dataclass(frozen=True, eq=False)
class BumpBlock(FeatureBlock):
    """Bumps, phi_j(x) = scale * exp(-sum_l |w_jl (x_l - c_jl)|), with the peak `scale` at the
    center c_j.

    The Laplacian kernel with a width of its own for each input: a product of one factor for each
    input. An input of weight 0 does not matter. Weights and centers are all dense, or, given
    `inputs`, all sparse: inputs of one bump with other weights than 0 differ.
    """

    scale: float
    weights: np.ndarray
    centers: np.ndarray
    inputs: np.ndarray | None = None

    activation = "bump"
    gamma: ClassVar[float | None] = None
    is_bounded = True
    needs_dense_rows = True
    dense_below = 12  # a distance takes twice the time of a product

    @staticmethod
    def expression(terms: Any) -> Expression:
        away = absolute(seen(terms.inputs) - parameter("centers", terms.centers))
        return exp(-over("add", parameter("weights", terms.weights) * away))

    @cached_property
    def offset(self) -> np.ndarray:
        return _zero_offset(self)

    @cached_property
    def used_inputs(self) -> tuple[np.ndarray, np.ndarray | None]:
        if self.inputs is not None:
            return super().used_inputs
        return np.flatnonzero(self.weights.any(axis=0)), None

    def among_used(self) -> FeatureBlock:
        if self.inputs is not None:
            return super().among_used()
        used = self.used_inputs[0]
        return replace(self, weights=self.weights[:, used], centers=self.centers[:, used])

    def dense(self, n_inputs: int) -> FeatureBlock:
        feature, place = np.nonzero(self.weights)
        centers = np.zeros((len(self), n_inputs))
        centers[feature, self.inputs[feature, place]] = self.centers[feature, place]
        return replace(
            self, weights=self.dense_weights(self.inputs, n_inputs), centers=centers, inputs=None
        )

    def parameters(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray | None]:
        """Return (abs(weights), centers), of which no distance is 0 times infinity.

        Weights are finite in that dtype, and where one is 0 there, or subnormal, it and its center
        are 0.
        """
        weights, limits = np.abs(self.weights), np.finfo(dtype)
        weights = np.where(weights < limits.tiny, 0, np.minimum(weights, limits.max))
        return weights, np.where(weights == 0, 0, self.centers)


# ---------------------------------------------------------------- from a file


def block_from_arrays(
    meta: dict[str, Any], arrays: dict[str, np.ndarray], i: int, n_features_in: int
) -> FeatureBlock:
    """Make block i from the contents of a file, which are not trusted.

    Raises ValueError, or KeyError where an array is missing, if `FeatureBlock.to_arrays` cannot
    have written this.
    """
    offset, inputs = floats(arrays, f"offset_{i}"), arrays.get(f"inputs_{i}")
    weights = _with_zeros(arrays, "weights", i, (offset.size, n_features_in))
    is_bump = type(meta) is dict and meta.get("activation") == BumpBlock.activation
    require(is_bump == (f"centers_{i}" in arrays), "centers")
    require(type(meta) is dict and set(meta) - {"nonnegative"} == set(BLOCK_META), "blocks")
    require(meta.get("nonnegative", True) is True, "nonnegative")
    about = {"nonnegative": True} if "nonnegative" in meta else {}
    require(type(meta["activation"]) is str and meta["activation"] in KINDS, "activation")
    require(type(meta["scale"]) is float and np.isfinite(meta["scale"]), "scale")
    require(offset.ndim == 1 and len(offset) > 0, "offset")
    require(
        not about or meta["activation"] not in (MonomialBlock.activation, BumpBlock.activation),
        "nonnegative",
    )
    if meta["activation"] == MonomialBlock.activation:
        require(not offset.any(), "offset")
        require(
            type(meta["gamma"]) is float and 0 < meta["gamma"] <= 1e300 and inputs is not None,
            "gamma",
        )
        _require_inputs(inputs, len(offset), n_features_in + 1)  # index 0 is the constant 1 in u
        require(weights.shape == (len(offset), 1), "weights")
        return MonomialBlock(meta["scale"], weights, inputs, meta["gamma"])
    require(meta["gamma"] is None, "gamma")
    if inputs is None:
        require(weights.shape == (len(offset), n_features_in), "weights")
    else:
        _require_inputs(inputs, len(offset), n_features_in)
        require(weights.shape == inputs.shape, "weights")
    if meta["activation"] == BumpBlock.activation:
        centers = _with_zeros(arrays, "centers", i, (offset.size, n_features_in))
        require(not offset.any(), "offset")
        require(centers.shape == weights.shape, "centers")
        require(inputs is None or _are_distinct(inputs, weights), "inputs")
        return BumpBlock(meta["scale"], weights, centers, inputs)
    if meta["activation"] == LinearBlock.activation and not offset.any():
        return LinearBlock(meta["scale"], weights, inputs, **about)
    return NeuronBlock(meta["activation"], meta["scale"], weights, offset, inputs, **about)


def _may_be_sparse(size, n):
    """Return whether arrays of that size may stand in a file as n entries that are not 0."""
    return size < 2**31 and size <= MOST_FOR_ONE * n + MOST_MORE


def _with_zeros(arrays, name, i, shape):
    """Return the array of block i of that name; where a file holds the places of its entries, with
    zeros elsewhere."""
    values = floats(arrays, f"{name}_{i}")
    if f"places_{i}" not in arrays:
        return values
    places, size = arrays[f"places_{i}"], shape[0] * shape[1]
    require(f"inputs_{i}" not in arrays and places.dtype == np.int32 and places.ndim == 1, "places")
    require(values.shape == places.shape and _may_be_sparse(size, len(places)), name)
    ends = places[[0, -1]].tolist() if len(places) else [0, -1]
    require(ends[0] >= 0 and ends[1] < size and bool((places[1:] > places[:-1]).all()), "places")
    whole = np.zeros(size)
    whole[places] = values
    return whole.reshape(shape)


def _require_inputs(inputs, n_features, n_inputs):
    """Require inputs of a file to be indices of n_inputs inputs, with a line for each feature."""
    require(inputs.dtype == np.int32 and inputs.ndim == 2 and len(inputs) == n_features, "inputs")
    require(inputs.size > 0 and inputs.min() >= 0 and inputs.max() < n_inputs, "inputs")


def _are_distinct(inputs, weights):
    """Return whether the inputs of each feature whose weights are not zero differ."""
    inputs = np.sort(np.where(weights != 0, inputs, np.arange(-inputs.shape[1], 0)), axis=1)
    return bool((np.diff(inputs, axis=1) != 0).all())


# ---------------------------------------------------------------- arrays


def runs(inputs: np.ndarray) -> Iterator[np.ndarray]:
    """Yield, column by column of ascending tuples, how often the entry of each tuple has occurred
    in it so far; 1 for 0."""
    run = np.ones(len(inputs))
    yield run
    for previous, entry in zip(inputs.T[:-1], inputs.T[1:], strict=True):
        run = np.where((entry == previous) & (entry > 0), run + 1, 1.0)
        yield run


def _rise(v):
    """Return the logarithm of (v / e)^(v / 2), minus the same logarithm at v - 1."""
    less = v - 1
    return (v * np.log(v) - less * np.log(np.maximum(less, 1)) - 1) / 2


def _zero_offset(block):
    """Return the offset of features that have none."""
    offset = np.zeros(len(block))
    offset.flags.writeable = False
    return offset


def _count_entries(inputs, n_inputs):
    """Return in how many rows of `inputs` each input occurs; negative ones are none."""
    inputs = np.sort(inputs, axis=1)
    return np.bincount(inputs[np.diff(inputs, axis=1, prepend=-1) > 0], minlength=n_inputs)


def _in_panels(array, dtype):
    """Lay (n, d) out as (ceil(n / PANEL), d, PANEL), zero-padded, on a 64-byte boundary."""
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
