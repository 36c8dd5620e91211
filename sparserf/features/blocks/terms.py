"""One feature of a model as a function of the columns of X: the base class of terms.

A feature is a function of *encodings* u_0, u_1, ... of the columns of X, one or more of each
column, which the `ColumnEncoder` of a model computes; without an encoder the encodings are the
columns themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np

from .pieces import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..._base.expressions import Expression
    from ...columns.encoder import ColumnEncoder
    from .bounds import Group
    from .pieces import Pieces

# The names of the columns of X, by their indices.
Names: TypeAlias = "Sequence[str] | Mapping[int, str]"
# Of a term: the class that bounds terms of its kind, what it shares with others in a group, and
# what it has of its own.
GroupEntry: TypeAlias = "tuple[type[Group], tuple[Any, ...], tuple[Any, ...]]"


@dataclass(frozen=True, eq=False)
class Term(ABC):
    """One feature of a model.

    Most terms are products Re(K prod_j z_j) of factors z_j, each of which depends on one column
    alone. Others are functions of a sum over the columns (`is_product` is False), and write
    `worth` and `mean` themselves.

    position : int
        The index of the feature in the model.
    gain : float
        The factor of what `expression` writes.
    encodings : ndarray of shape (n_encodings,)
        The indices of the encodings on which the term depends, ascending.
    weights : ndarray of shape (n_encodings,)
        How much each encoding counts, such as its weight in w'u.
    columns : ndarray of shape (n_columns,)
        The columns of X from which these encodings are made, ascending.
    place : ndarray of shape (n_encodings,)
        The index in `columns` of the column of each encoding.
    """

    position: int
    gain: float
    encodings: np.ndarray
    weights: np.ndarray
    columns: np.ndarray
    place: np.ndarray

    # Whether the term is a linear function of its encodings, and whether it has a bound.
    is_linear: ClassVar[bool] = False
    is_bounded: ClassVar[bool] = True
    # Whether the term is a product with a factor for each column.
    is_product: ClassVar[bool] = True

    @classmethod
    def of_columns(
        cls,
        column: np.ndarray,
        position: int,
        gain: float,
        encodings: np.ndarray,
        weights: np.ndarray,
        *own: Any,
    ) -> Self:
        """Make a term; column : the column of X from which each encoding of the model is made."""
        columns, place = np.unique(column[encodings], return_inverse=True)
        return cls(position, float(gain), encodings, weights, columns, place, *own)

    # ---------------------------------------------------------------- how they are written

    @property
    @abstractmethod
    def activation(self) -> str:
        """The name of what the term is, in summaries."""

    @property
    @abstractmethod
    def expression(self) -> Expression:
        """The term without its gain, as an expression of encodings."""

    def condition(self, names: Names, encoder: ColumnEncoder | None) -> str | None:
        """Return in words where the term is not 0, if it is one number there; else None.

        names : the names of the columns of X
        encoder : the encoder that makes the encodings; None: these are the columns
        """
        return None

    def title(self, names: Sequence[str], most: int, encoder: ColumnEncoder | None = None) -> str:
        """Return the term in words; of more than `most` columns those of the largest weights.

        names, encoder : as in `condition`
        """
        weight = np.zeros(len(self.columns))
        np.add.at(weight, self.place, np.abs(self.weights))
        largest = np.argsort(-weight, kind="stable")[:most]
        listed = ", ".join(names[j] for j in self.columns[largest].tolist())
        more = f" + {len(self.columns) - most} more" if len(self.columns) > most else ""
        return f"{self.activation}({listed}{more})"

    # ---------------------------------------------------------------- column by column

    @property
    def combine(self) -> np.ufunc:
        """What combines the parts of columns: np.multiply in a product, else np.add."""
        return np.multiply if self.is_product else np.add

    @property
    def constant(self) -> complex:
        """The constant K of a product."""
        return self.gain

    @abstractmethod
    def parts(self, U: np.ndarray) -> np.ndarray:
        """Return the part of each column, (n_columns, n_rows), in rows of encodings U.

        The parts of a product are its factors z_j; those of any other term are summands.
        """

    def by_column(self, combine: np.ufunc, values: np.ndarray) -> np.ndarray:
        """Combine values of the encodings, (n_encodings, n_rows), to one of each column, by np.add
        or np.multiply."""
        order = np.argsort(self.place, kind="stable")
        first = np.searchsorted(self.place[order], np.arange(len(self.columns)))
        return combine.reduceat(values[order], first, axis=0)

    def worth(self, known: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Return the worth of sets of columns in the game of Shapley values, (..., n_rows): the
        mean of the term over background rows where the columns of a set are known.

        known : the parts of the columns in each set, combined, in the rows, (..., n_rows)
        rest : those of all other columns, in the background rows, (..., n_background); of a product
            their means over these rows, (..., 1), say as much
        """
        return (self.constant * rest.mean(axis=-1, keepdims=True) * known).real

    def at(self, known: np.ndarray) -> np.ndarray:
        """Return the term where the parts of all its columns, combined, are some numbers."""
        nothing = np.full((1, 1), self.combine.identity, known.dtype)
        return self.worth(known.reshape(1, -1), nothing).reshape(known.shape)

    # ---------------------------------------------------------------- means over boxes

    @property
    def speeds(self) -> np.ndarray:
        """How fast the term may change with each of its encodings, (n_encodings,)."""
        return np.abs(self.weights)

    def mean(self, columns: Sequence[Pieces], finer: int) -> tuple[float, float] | None:
        """Return (the mean of the term over a box, how much of it rounding may be).

        None where that takes too many points. The columns are independent.

        columns : the pieces of each of the term's columns
        finer : the factor of the number of nodes of all Gauss-Legendre rules
        """
        mean, size = complex(self.constant), 1.0
        for pieces in columns:
            factor, more = self.mean_factor(pieces, finer)
            mean *= factor
            size += more
        size += self.phase_size + 4 * len(columns)
        return mean.real, ROUNDING * abs(self.gain) * size

    @property
    def phase_size(self) -> float:
        """The size of an angle that all factors share; rounding is relative to it."""
        return 0.0

    def mean_factor(self, pieces: Pieces, finer: int) -> tuple[complex, float]:
        """Return (the mean of the factor of one column of a product, a size that its rounding is
        relative to)."""
        raise NotImplementedError(f"{type(self).__name__} is no product")

    # ---------------------------------------------------------------- bounds

    @abstractmethod
    def group_entry(self, c: float, w: np.ndarray, inputs: np.ndarray) -> GroupEntry:
        """Return the `GroupEntry` of this term; linear terms need none.

        c, w : the coefficient times the gain, and the weights of all inputs
        inputs : the input of each of the term's encodings
        """
