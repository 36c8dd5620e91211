"""A model in the form in which it is exported: the columns that it reads, how each is encoded, its
linear part, other terms.

    f(x) = intercept + sum_j coef_j phi_j(u),  u_v = encoding_v(x_c(v))

Encodings and terms are expressions (`_base/expressions.py`), which languages print: formulas,
Python, SQL and SymPy term by term, C, ONNX and JAX in arrays of all terms of one kind.
`WrittenModel` has the same model in both forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ..expansion.terms import (
    column_clocks,
    column_names,
    columns_of_encodings,
    encoder_of,
    table_of,
    term_sizes,
    terms_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.expressions import Expression
    from ..columns.clocks import Clock
    from ..columns.encoder import ColumnEncoder
    from ..expansion import Expansion
    from ..features import FeatureBlock, FeatureSet, Term


class Encodings(Mapping[int, "Expression"]):
    """{v: encoding v as an expression}, each made at its first look-up."""

    def __init__(self, encoder: ColumnEncoder, used: list[int]):
        self._encoder, self._used, self._made = encoder, used, dict[int, "Expression"]()

    def __len__(self) -> int:
        return len(self._used)

    def __iter__(self) -> Iterator[int]:
        return iter(self._used)

    def __getitem__(self, v: int) -> Expression:
        if v not in self._made:
            self._made[v] = self._encoder.expression(v)
        return self._made[v]


@dataclass(frozen=True, eq=False)
class WrittenModel:
    """A model, or its largest terms, to be written in another language.

    model : Expansion
        The whole model, which defines how outputs become predictions.
    features : FeatureSet
        The features of the terms that are written.
    coef : ndarray of shape (n_outputs, n_terms)
        The coefficients of the terms that are written.
    n_left_out : int
        The number of terms that are not written.
    size_of_all : ndarray of shape (n_outputs,), or None where all terms are written
        The sum of the sizes |coef| sup|phi| of all terms of the model.
    """

    model: Expansion
    features: FeatureSet
    coef: np.ndarray
    n_left_out: int
    size_of_all: np.ndarray | None = None

    @classmethod
    def from_model(cls, model: Expansion, n_terms: int | None = None) -> Self:
        """Return the n_terms largest terms of a model, by |coef| sup|phi|, to be written; None: all
        terms."""
        model = model.stripped
        whole = cls(model, model.features, np.atleast_2d(model.coef), 0)
        return whole if n_terms is None else whole.largest(n_terms)

    def largest(self, n_terms: int, *, of_each: bool = False) -> WrittenModel:
        """Return the n_terms largest of these terms, to be written; of_each : of each output."""
        sizes = self._sizes if of_each else self._sizes.max(axis=0, initial=0.0)[None]
        largest = np.unique(np.argsort(-sizes, axis=1, kind="stable")[:, :n_terms])
        if len(largest) == len(self.features):
            return self
        features, coef = self.features.take(largest), self.coef[:, largest]
        n_left_out = self.n_left_out + len(self.features) - len(largest)
        return WrittenModel(self.model, features, coef, n_left_out, self._size_of_all)

    @cached_property
    def _size_of_all(self):
        """The sum of the sizes of all terms of the model, (n_outputs,)."""
        return self._sizes.sum(axis=1) if self.size_of_all is None else self.size_of_all

    def share_left_out(self, k: int, size: float) -> float:
        """Return the share that is left out of the sizes of all terms of output k; size : the sum
        of the sizes of the terms that are written."""
        whole = self._size_of_all[k]
        return float(np.clip(1 - size / whole, 0.0, 1.0)) if 0 < whole < np.inf else 0.0

    @property
    def intercept(self) -> np.ndarray:
        """The intercepts, of shape (n_outputs,)."""
        return np.atleast_1d(self.model.intercept)

    @cached_property
    def used_encodings(self) -> np.ndarray:
        """The indices of the encodings that f depends on, ascending."""
        return np.flatnonzero(self.features.inputs_seen)

    @cached_property
    def made_encodings(self) -> np.ndarray:
        """The indices of the encodings that a program makes: `used_encodings`; if there are none,
        the first one, by which it counts the rows."""
        return self.used_encodings if len(self.used_encodings) else np.zeros(1, np.intp)

    @cached_property
    def columns(self) -> np.ndarray:
        """The columns of X that a program reads, ascending."""
        return np.unique(columns_of_encodings(self.features)[self.made_encodings])

    @property
    def names(self) -> Sequence[str]:
        """The names of all columns of X."""
        return column_names(self.model)

    def is_category(self, j: int) -> bool:
        """Return whether column j of X holds levels, not numbers."""
        table = table_of(self.features)
        return table is not None and table.levels[j] is not None

    @cached_property
    def levels(self) -> dict[int, Sequence[Any]]:
        """The levels of the categories that a program reads, {column: levels}, by whose places
        cells of numbers are read."""
        table = table_of(self.features)
        return {j: table.levels[j] for j in self.columns.tolist() if self.is_category(j)}

    @cached_property
    def clocks(self) -> dict[int, Clock]:
        """The clocks of the columns of times that a program reads, {column: Clock}, whose cells are
        numbers of days."""
        clocks = column_clocks(self.model)
        return {j: clocks[j] for j in self.columns.tolist() if j in clocks}

    # -- term by term, for formulas, Python and SQL

    @cached_property
    def encodings(self) -> Encodings | None:
        """The encodings `used_encodings` as expressions; None if all are the columns as they
        are."""
        encoder = self.features.encoder
        if encoder is None or encoder.is_identity:
            return None
        return Encodings(encoder, self.used_encodings.tolist())

    @cached_property
    def _sizes(self):
        """|coef| sup|phi| of each term in the order of the features, (n_outputs, n_terms)."""
        return term_sizes(self.features, self.coef)

    @cached_property
    def terms(self) -> list[Term]:
        """The terms one by one, those first that are largest in some output."""
        terms = {term.position: term for term in terms_of(self.features)}
        largest = np.argsort(-self._sizes.max(axis=0, initial=0.0), kind="stable")
        return [terms[k] for k in largest.tolist()]

    @cached_property
    def factors(self) -> np.ndarray:
        """The factors coef times gain of the expression of each of `terms`, (n_outputs,
        n_terms)."""
        factors = [self.coef[:, term.position] * term.gain for term in self.terms]
        return np.array(factors).reshape(len(factors), len(self.coef)).T

    @cached_property
    def sizes(self) -> np.ndarray:
        """The sizes |coef| sup|phi| of `terms`, (n_outputs, n_terms)."""
        return self._sizes[:, [term.position for term in self.terms]]

    @property
    def envelopes(self) -> dict[float, np.ndarray]:
        """The Gaussian envelopes exp(-gamma sum_v u_v^2) in `terms`: {gamma: the encodings v}."""
        found = (term.expression.find("envelope") for term in self.terms)
        return {e.gamma: e.encodings for e in found if e is not None}

    # -- in arrays, for C and ONNX: the inputs are `made_encodings`, numbered from 0

    @cached_property
    def encoder(self) -> ColumnEncoder:
        """The `ColumnEncoder` that makes the inputs."""
        return encoder_of(self.features).take(self.made_encodings)

    @property
    def inputs(self) -> list[Expression]:
        """The inputs as expressions of cells."""
        return [self.encoder.expression(v) for v in range(len(self.encoder))]

    @cached_property
    def has_raw_inputs(self) -> bool:
        """Whether the inputs are columns of X as they are."""
        encoder = self.encoder
        as_they_are = (
            not (encoder.kind.any() or len(encoder.knots) or encoder.may_miss) and encoder.is_raw
        )
        return as_they_are and bool(((encoder.center == 0) & (encoder.unit == 1)).all())

    @cached_property
    def _blocks(self):
        """The blocks of the features, each with its coefficients times the scale of its
        features."""
        coef = self.features.to_blocks(self.coef)
        return [(block, block.scale * c) for block, c in self.features.by_block(coef)]

    @cached_property
    def linear(self) -> np.ndarray:
        """The sum of all linear terms as coefficients of the inputs, (n_outputs, n_inputs)."""
        n = self.features.n_inputs
        linear = np.zeros((len(self.coef), n))
        for block, coef in self._blocks:
            if block.is_linear and block.inputs is None:
                linear += coef @ block.weights
            elif block.is_linear:
                inputs = block.inputs.ravel()
                linear += np.stack(
                    [np.bincount(inputs, (c[:, None] * block.weights).ravel(), n) for c in coef]
                )
        return linear[:, self.made_encodings]

    @cached_property
    def constant(self) -> np.ndarray:
        """The intercepts plus the offsets of linear terms, (n_outputs,)."""
        constant = np.array(self.model.intercept, np.float64, ndmin=1)
        for block, coef in self._blocks:
            if block.is_linear:
                constant += coef @ block.offset
        return constant

    @cached_property
    def groups(self) -> tuple[TermGroup, ...]:
        """The terms that are not linear, one group for each block of the features."""
        encodings, n = self.made_encodings, self.features.n_inputs
        return tuple(
            TermGroup(block.written(encodings, n), coef)
            for block, coef in self._blocks
            if not block.is_linear
        )


class TermGroup(NamedTuple):
    """Terms of one kind, sum_j coef_j phi_j(u).

    block : FeatureBlock
        The features, whose `expression` is one of the inputs.
    coef : ndarray of shape (n_outputs, n_terms)
        The coefficients, times the scale of the features.
    """

    block: FeatureBlock
    coef: np.ndarray


def heading(written: WrittenModel) -> str:
    """Return a sentence for the top of the code, which describes the model."""
    left = f", without its {written.n_left_out} smallest terms" if written.n_left_out else ""
    return f"{' '.join(repr(written.model).split())}{left}, as code."
