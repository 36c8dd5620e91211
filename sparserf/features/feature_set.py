"""Features that have been drawn, in one block for each kind: a `FeatureSet`, which is immutable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._base.checks import check_indices, check_names
from .._base.floats import methods_as_ieee
from ..rows import read_rows
from .blocks import FeatureBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..columns.encoder import ColumnEncoder
    from ..rows import Rows

# (index, features, coefficients, intercept) of the terms of a fit: index are the places of the
# features in its dictionary.
Solution: TypeAlias = "tuple[np.ndarray, FeatureSet, np.ndarray, float | np.ndarray]"


class DefaultNames(Sequence[str]):
    """The names x0, x1, ... of n inputs, each made at its look-up: of very many inputs few names
    are looked up."""

    def __init__(self, n: int):
        self._n = n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, i: int) -> str:
        if not 0 <= i < self._n:  # a search for a name that there is not ends here
            raise IndexError(f"there are {self._n} names, got index {i}")
        return f"x{i}"


@methods_as_ieee
@dataclass(frozen=True, eq=False, init=False, repr=False)
class FeatureSet:
    """Drawn features: a fixed dictionary, or the selected features of a model. Immutable.

    A set is made by ``map.draw(n_components, n_features, rng=...)``, by ``take`` and by ``concat``.
    Its features are functions of inputs: of the columns of X, or of what a column encoder makes of
    them, which is then part of the set.

    Attributes
    ----------
    blocks : tuple of FeatureBlock
        The features, one block for each kind.
    n_inputs : int
        Number of inputs of the features.
    order : None, or int ndarray of shape (len(self),)
        A permutation: the position of each feature in the blocks laid end to end; None for the
        identity, 0, 1, 2, ...
    encoder : ColumnEncoder or None
        How the inputs of the features are computed from the columns of X; None: the columns are the
        inputs.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> features = srf.Fourier(gamma=0.5).draw(100, 3, rng=0)
    >>> len(features), features.n_features_in
    (100, 3)
    >>> features.transform(np.zeros((2, 3))).shape
    (2, 100)
    >>> features.take([3, 5]).concat(srf.Linear().draw(None, 3)).names(["age", "height", "weight"])[
    ...     1:3
    ... ]
    ['cos(age, height, weight)', 'age']
    """

    __slots__ = ("__weakref__", "blocks", "encoder", "n_inputs", "order")

    blocks: tuple[FeatureBlock, ...]
    n_inputs: int
    order: np.ndarray | None
    encoder: ColumnEncoder | None

    def __init__(
        self,
        blocks: Iterable[FeatureBlock],
        n_inputs: int,
        order: np.ndarray | None = None,
        encoder: ColumnEncoder | None = None,
    ):
        """Make a set of some blocks. Blocks of equal kind become one: however a set is built, its
        blocks stay few."""
        blocks, of_kind = [block for block in blocks if len(block)], {}
        for i, block in enumerate(blocks):
            of_kind.setdefault(block.kind, []).append(i)
        if len(of_kind) < len(blocks):
            sequence = [i for members in of_kind.values() for i in members]
            if sequence != sorted(sequence):
                starts = np.cumsum([0, *map(len, blocks)])
                moved = [np.arange(starts[i], starts[i + 1]) for i in sequence]
                place = np.empty(starts[-1], np.intp)
                place[np.concatenate(moved)] = np.arange(starts[-1])
                order = place if order is None else place[order]
            blocks = [
                FeatureBlock.concatenate([blocks[i] for i in members])
                for members in of_kind.values()
            ]
        if order is not None and np.array_equal(order, np.arange(len(order))):
            order = None
        if order is not None:
            order.flags.writeable = False
        object.__setattr__(self, "blocks", tuple(blocks))
        object.__setattr__(self, "n_inputs", int(n_inputs))
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "encoder", encoder)

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureSet, (self.blocks, self.n_inputs, self.order, self.encoder)

    def encoded(self, encoder: ColumnEncoder | None) -> FeatureSet:
        """Return these features as functions of the inputs that a column encoder makes; None: of
        the columns of X."""
        return FeatureSet(self.blocks, self.n_inputs, self.order, encoder)

    def seeing(self, indices: np.ndarray, n_inputs: int) -> FeatureSet:
        """Return these features as functions of n_inputs inputs, where `indices` says which of them
        their inputs are."""
        if np.array_equal(indices, np.arange(n_inputs)):
            return self
        return FeatureSet(
            [block.seeing(indices, n_inputs) for block in self.blocks],
            n_inputs,
            self.order,
            self.encoder,
        )

    def rows_of(self, X: MatrixLike, workers: int = 1) -> Rows:
        """Check X and return its rows, encoded by the column encoder of these features where they
        have one."""
        return read_rows(X, self.encoder, workers, n_features=self.n_features_in).encoded(
            self.encoder
        )

    @property
    def places(self) -> np.ndarray:
        """The permutation `order` as an array, also where `order` is None."""
        return np.arange(len(self)) if self.order is None else self.order

    @property
    def n_features_in(self) -> int:
        """Number of columns of X."""
        return self.n_inputs if self.encoder is None else self.encoder.n_columns

    @property
    def feature_names_in_(self) -> tuple[str, ...] | None:
        """The names of the columns of the data frame that was fitted; None for an array."""
        return (
            None if self.encoder is None or self.encoder.table is None else self.encoder.table.names
        )

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def __repr__(self) -> str:
        kinds = ", ".join(f"{len(b)} {b.activation}" for b in self.blocks)
        return f"FeatureSet({kinds or 'empty'}; n_features_in={self.n_features_in})"

    def to_blocks(self, values: np.ndarray) -> np.ndarray:
        """Reorder values of the features, along the last axis, from the order of the features to
        that of the blocks."""
        if self.order is None:
            return values
        laid = np.empty_like(values)
        laid[..., self.order] = values
        return laid

    def from_blocks(self, laid: np.ndarray, axis: int = -1) -> np.ndarray:
        """Reorder values, along an axis, from the order of the blocks to that of the features: undo
        `to_blocks`."""
        return laid if self.order is None else laid.take(self.order, axis=axis)

    def by_block(self, laid: np.ndarray) -> Iterator[tuple[FeatureBlock, np.ndarray]]:
        """Yield (block, its part of the values) for values that are in the order of the blocks
        along the last axis."""
        start = 0
        for block in self.blocks:
            yield block, laid[..., start : start + len(block)]
            start += len(block)

    def blocks_and_places(self) -> Iterator[tuple[FeatureBlock, np.ndarray]]:
        """Yield (block, the places of its features in this set)."""
        return self.by_block(self.to_blocks(np.arange(len(self))))

    @property
    def largest_value(self) -> np.ndarray:
        """The supremum over x of ``|phi_j(x)|`` of each feature; infinite where it has no bound."""
        return self.from_blocks(
            np.concatenate([np.zeros(0), *(block.largest_value() for block in self.blocks)])
        )

    def rounding_in_single(self, total: float, sizes: np.ndarray) -> np.ndarray:
        """Return `FeatureBlock.rounding_in_single` of each feature."""
        each = [block.rounding_in_single(total, sizes) for block in self.blocks]
        return self.from_blocks(np.concatenate([np.zeros(0), *each]))

    def take(self, indices: ArrayLike) -> FeatureSet:
        """Return the features at `indices` (integers, in any order, repeats allowed), as a
        FeatureSet."""
        indices = check_indices("indices", indices, len(self))
        place = indices if self.order is None else self.order[indices]
        if len(self.blocks) == 1:
            return FeatureSet([self.blocks[0].take(place)], self.n_inputs, None, self.encoder)
        blocks, order, start, n = [], np.empty(len(indices), np.intp), 0, 0
        for block in self.blocks:
            inside = np.flatnonzero((place >= start) & (place < start + len(block)))
            blocks.append(block.take(place[inside] - start))
            order[inside] = np.arange(n, n + len(inside))
            start, n = start + len(block), n + len(inside)
        return FeatureSet(blocks, self.n_inputs, order, self.encoder)

    def concat(self, other: FeatureSet) -> FeatureSet:
        """Return these features followed by those of `other`, which must have the same inputs."""
        if not isinstance(other, FeatureSet):
            raise TypeError(f"other must be a FeatureSet, got {type(other).__name__}")
        if other.n_inputs != self.n_inputs:
            raise ValueError(
                f"both sets must have the same inputs, got {self.n_inputs} and {other.n_inputs}"
            )
        if self.encoder is not other.encoder and not (
            self.encoder and self.encoder.is_same(other.encoder)
        ):
            raise ValueError("both sets must see the columns of X in the same units")
        order = None
        if self.order is not None or other.order is not None:
            order = np.concatenate([self.places, len(self) + other.places])
        return FeatureSet(self.blocks + other.blocks, self.n_inputs, order, self.encoder)

    def scaled(self, factor: float) -> FeatureSet:
        """Return these features times a number."""
        return FeatureSet(
            [block.scaled(factor) for block in self.blocks], self.n_inputs, self.order, self.encoder
        )

    @property
    def is_periodic(self) -> np.ndarray:
        """A mask of the features that are cosines or sines."""
        return self.mask(lambda block: block.is_periodic)

    @property
    def is_linear(self) -> np.ndarray:
        """A mask of the features that are linear functions of the inputs."""
        return self.mask(lambda block: block.is_linear)

    @property
    def is_local(self) -> np.ndarray:
        """A mask of the features that are near 0 except around a center."""
        return self.mask(lambda block: block.is_local)

    @property
    def nonnegative(self) -> np.ndarray:
        """A mask of the features whose coefficients must be at least 0."""
        return self.mask(lambda block: block.nonnegative)

    def mask(self, holds: Callable[[FeatureBlock], bool | np.ndarray]) -> np.ndarray:
        """Return a mask of the features for which something holds.

        holds : a function of a block that returns one bool, or one for each of its features
        """
        masks = [np.full(len(block), holds(block)) for block in self.blocks]
        return self.from_blocks(np.concatenate([np.zeros(0, bool), *masks]))

    def flattened(self, ends: np.ndarray, fill: np.ndarray) -> tuple[FeatureSet, np.ndarray]:
        """Return (these features, constant beyond the ends of their inputs; a mask of those that
        are constant everywhere): see `FeatureBlock.flattened`."""
        found = {block: block.flattened(ends, fill) for block in self.blocks}
        blocks = [block for block, _ in found.values()]
        is_constant = self.mask(lambda block: found[block][1])
        return FeatureSet(blocks, self.n_inputs, self.order, self.encoder), is_constant

    def turned(self, angles: np.ndarray) -> FeatureSet:
        """Return these features with an angle added to the phase of each that is a cosine or
        sine."""
        blocks = [block.turned(angle) for block, angle in self.by_block(self.to_blocks(angles))]
        return FeatureSet(blocks, self.n_inputs, self.order, self.encoder)

    def transform(self, X: MatrixLike, workers: int = 1) -> np.ndarray:
        """Compute the feature matrix Phi and store it whole; fits and predictions compute Phi a
        tile at a time.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features_in)
            float32 stays float32; all else becomes float64.
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.

        Returns
        -------
        ndarray of shape (n_samples, len(self))
            C-contiguous. Time O(n_samples * len(self) * n_features_in), where for sparse weights
            the number of inputs of a feature replaces n_features_in.
        """
        rows = self.rows_of(X, workers)
        return rows.to_namespace_of_X(rows.transform(self))

    def names(self, inputs: Iterable[str] | None = None) -> list[str]:
        """Return the names of the features: "x3", "gaussian*x0*x1" (a monomial of `Taylor`),
        "sin(x0, x4)", "cos(21 inputs)".

        Parameters
        ----------
        inputs : sequence of str or None, default None
            A name for each column of X. None: those of the data frame, or x0, x1, ...
        """
        d, encoder = self.n_features_in, self.encoder
        inputs = self.feature_names_in_ if inputs is None else inputs
        inputs = DefaultNames(d) if inputs is None else check_names("inputs", inputs, d)
        inputs = inputs if encoder is None else encoder.names(inputs)
        names = [block.name(k, inputs) for block in self.blocks for k in range(len(block))]
        return [str(name) for name in self.from_blocks(np.array(names, dtype=object))]

    def input_usage(self) -> np.ndarray:
        """Return the share of the features that use each column of X (weight not zero), of shape
        (n_features_in,).

        A monomial of `Taylor` uses its factors; that its envelope falls with every input does not
        count.
        """
        d, count = self.n_features_in, np.zeros(self.n_features_in)
        column = (
            None
            if self.encoder is None or self.encoder.is_column_by_column
            else self.encoder.column
        )
        for block in self.blocks:
            count += block.count_inputs(d, column)
        return count / max(len(self), 1)

    @property
    def inputs_seen(self) -> np.ndarray:
        """A mask of the inputs that some feature depends on, (n_inputs,)."""
        inputs = np.zeros(self.n_inputs, bool)
        for block in self.blocks:
            inputs |= block.sees_input(self.n_inputs)
        return inputs

    @property
    def inputs_that_matter_beyond(self) -> np.ndarray:
        """A mask of the inputs on which some feature depends also beyond all its thresholds."""
        inputs = np.zeros(self.n_inputs, bool)
        for block in self.blocks:
            inputs |= block.sees_input(self.n_inputs) & (not block.is_flat_beyond)
        return inputs

    def seeing_only_what_they_use(self) -> FeatureSet:
        """Return these features with a column encoder that knows only the encodings they depend on
        (`ColumnEncoder.only`)."""
        encoder = self.encoder and self.encoder.only(self.inputs_seen)
        return self if encoder is self.encoder else self.encoded(encoder)

    @property
    def n_numbers(self) -> int:
        """How many numbers a file holds of the features, and of the encodings that they see: see
        `SparseModel.size`."""
        of_encodings = 0 if self.encoder is None else self.encoder.n_numbers(self.inputs_seen)
        return sum(block.n_numbers for block in self.blocks) + of_encodings

    @property
    def columns_seen(self) -> np.ndarray:
        """A mask of the columns of X that some feature depends on, (n_features_in,)."""
        inputs = self.inputs_seen
        if self.encoder is None:
            return inputs
        seen = np.zeros(self.n_features_in, bool)
        seen[self.encoder.column[inputs]] = True
        return seen


def are_same(one: FeatureSet, other: FeatureSet) -> bool:
    """Return whether two sets hold the same features, in the same order."""
    return one is other or _contents(one) == _contents(other)


def check_any_sign(features: Any, where: str) -> None:
    """Check that no feature of a FeatureSet asks for a coefficient of at least 0, where
    coefficients may be of any sign.

    where : the method, or what is fitted, for the message
    """
    if isinstance(features, FeatureSet) and features.nonnegative.any():
        n = np.count_nonzero(features.nonnegative)
        raise ValueError(
            f"features must take coefficients of any sign in {where}, got {n} that ask for "
            "nonnegative ones"
        )


def keys_of(features: FeatureSet) -> list[tuple[Any, ...]]:
    """Return a key of each feature; features with equal keys are the same function of their
    inputs."""
    keys = [()] * len(features)
    for block, places in features.blocks_and_places():
        for j, place in enumerate(places.tolist()):
            keys[place] = (block.kind, *(array[j].tobytes() for array in block.arrays.values()))
    return keys


def _contents(features):
    """Return what determines the values of features, as a dict that does not depend on the order of
    the blocks."""
    written = {None: features.n_inputs}
    if features.encoder is not None:
        written |= {name: array.tobytes() for name, array in features.encoder.to_arrays().items()}
    for block, place in features.blocks_and_places():
        of_kind = block.take(np.argsort(place))
        arrays = (np.sort(place), *of_kind.arrays.values())
        written[block.kind] = [(array + 0).tobytes() for array in arrays]  # -0 is 0
    return written
