"""Random projections of the inputs, X R / sqrt(m) with R of d rows, m columns and E[R R' / m] = I.

A projection is computed in parts, each of which makes a slice of its columns, so that a matrix R
that is too large to store is drawn once for all rows, a part at a time. A projection does not
change after it is made: threads may share it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, get_args

import numpy as np

from .._base.checks import check_choice, check_integer, check_rng, is_sparse
from .._base.csr import csr_arrays
from .._base.random import draw_seed, stream
from .._core import projection as _core
from .._core.rows import RowSlice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .._base.types import DenseOrCSR, Seed

    # (a slice of the columns of R, a function project(X, out)): see `Projection.parts`.
    Part: TypeAlias = tuple[slice, Callable[[DenseOrCSR, np.ndarray], None]]

ProjectionName: TypeAlias = Literal["gaussian", "sparse_sign", "srht"]
PROJECTIONS: tuple[str, ...] = get_args(ProjectionName)

# The most numbers, and the most columns, in a part of a Gaussian matrix.
PART, PART_COLUMNS = 2**21, 64
# The number of nonzero entries in a row of a sparse-sign matrix, called zeta below.
ZETA = 8
# A multiplication by an entry of CSR rows takes as long as this many multiplications of a matrix
# product.
SPARSE_COST = 16
# The number of numbers that are transformed by H at a time: they stay in the cache until columns
# are taken from them.
TRANSFORMED = 2**18


@dataclass(frozen=True, eq=False)
class Projection(ABC):
    """A random matrix R of n_features rows and n_projections columns."""

    n_features: int
    n_projections: int

    @abstractmethod
    def parts(self, dtype: np.dtype) -> Iterator[Part]:
        """Yield pairs (slice of the columns, function project) that together compute X R / sqrt(m),
        for rows X of that dtype.

        project(X, out) writes these columns of X R / sqrt(m) to out, for any rows X, and may be
        called by several threads.
        """

    @abstractmethod
    def cost(self, X: DenseOrCSR) -> int:
        """Return the cost of projecting a row of X, in each part, in multiplications of a matrix
        product."""

    def project(self, X: DenseOrCSR) -> np.ndarray:
        """Return X R / sqrt(m) in the dtype of X, an ndarray (n_rows, d) of any strides or a CSR
        matrix."""
        out = np.empty((X.shape[0], self.n_projections), X.dtype)
        for columns, project in self.parts(X.dtype):
            project(X, out[:, columns])
        return out


@dataclass(frozen=True, eq=False)
class Gaussian(Projection):
    """A matrix of independent entries N(0, 1). Each part is drawn from a random stream of its own,
    and none is kept."""

    seed: np.random.SeedSequence = field(repr=False)

    def parts(self, dtype: np.dtype) -> Iterator[Part]:
        for k, start in enumerate(range(0, self.n_projections, self._width)):
            columns = slice(start, min(start + self._width, self.n_projections))
            R = stream(self.seed, k).standard_normal((self.n_features, columns.stop - start))
            R /= np.sqrt(self.n_projections)
            yield columns, partial(_multiply, R.astype(dtype, copy=False))

    def cost(self, X: DenseOrCSR) -> int:
        return _entries(X) * self._width * (SPARSE_COST if is_sparse(X) else 1)

    @property
    def _width(self):
        """The number of columns of a part."""
        return min(self.n_projections, max(1, min(PART_COLUMNS, PART // self.n_features)))


def _multiply(R, X, out):
    """Write X R to out."""
    out[:] = X @ R


@dataclass(frozen=True, eq=False)
class SparseSign(Projection):
    """A sparse matrix of signs.

    Each row has zeta = min(8, m) non-zero entries +-sqrt(m / zeta), one in each of zeta groups of
    columns of nearly equal size.
    """

    columns: np.ndarray = field(repr=False)  # (n_features, zeta) int32
    signs: np.ndarray = field(repr=False)  # the same shape, int8

    @classmethod
    def draw(cls, n_features: int, n_projections: int, rng: np.random.Generator) -> Self:
        """Draw the columns and signs of the non-zero entries."""
        zeta = min(ZETA, n_projections)
        edges = n_projections * np.arange(zeta + 1) // zeta
        columns = rng.integers(edges[:-1], edges[1:], (n_features, zeta), np.int32)
        return cls(n_features, n_projections, columns, _signs(rng, columns.shape))

    def parts(self, dtype: np.dtype) -> Iterator[Part]:
        yield slice(0, self.n_projections), self._project

    def cost(self, X: DenseOrCSR) -> int:
        return _entries(X) * self.columns.shape[1] * (SPARSE_COST if is_sparse(X) else 2)

    @property
    def _scale(self):
        return self.columns.shape[1] ** -0.5  # sqrt(m / zeta) / sqrt(m)

    def _project(self, X, out):
        if not is_sparse(X):
            _core.sparse_sign(X, self.columns, self.signs, self._scale, out)
            return
        _core.sparse_sign_csr(RowSlice(*csr_arrays(X)), self.columns, self.signs, self._scale, out)


@dataclass(frozen=True, eq=False)
class Hadamard(Projection):
    """A subsampled randomized Hadamard transform, R = D H S.

    D are random signs, H is the +-1 Hadamard matrix of the next power of two of d, S a choice of m
    of its columns, without repeats.
    """

    signs: np.ndarray = field(repr=False)  # (n_features,) int8
    sample: np.ndarray = field(repr=False)  # (n_projections,)

    @classmethod
    def draw(cls, n_features: int, n_projections: int, rng: np.random.Generator) -> Self:
        """Draw the signs D and the choice S."""
        length = _power_of_two(n_features)
        if n_projections > length:
            raise ValueError(
                f"n_projections must be at most {length}, the next power of two of the "
                f"{n_features} columns of X, for "
                f"'srht', got {n_projections}"
            )
        sample = np.sort(rng.choice(length, n_projections, replace=False))
        return cls(n_features, n_projections, _signs(rng, n_features), sample)

    def parts(self, dtype: np.dtype) -> Iterator[Part]:
        yield slice(0, self.n_projections), self._project

    def cost(self, X: DenseOrCSR) -> int:
        length = _power_of_two(self.n_features)
        return 2 * length * length.bit_length()

    def _project(self, X, out):
        length, d, n = _power_of_two(self.n_features), self.n_features, X.shape[0]
        scratch = np.empty((min(n, max(1, TRANSFORMED // length)), length), X.dtype)
        signs = self.signs.astype(X.dtype)
        for start in range(0, n, len(scratch) or 1):
            block = X[start : start + len(scratch)]
            rows = scratch[: block.shape[0]]
            np.multiply(block.toarray() if is_sparse(block) else block, signs, out=rows[:, :d])
            rows[:, d:] = 0.0
            _core.hadamard(rows)
            out[start : start + len(rows)] = rows[:, self.sample]
        out /= out.dtype.type(np.sqrt(self.n_projections))


@dataclass(frozen=True, eq=False)
class Matrix(Projection):
    """A matrix that is given: `scaled` is R / sqrt(m), of shape (n_features, n_projections)."""

    scaled: np.ndarray = field(repr=False)

    def parts(self, dtype: np.dtype) -> Iterator[Part]:
        project = partial(_multiply, self.scaled.astype(dtype, copy=False))
        yield slice(0, self.n_projections), project

    def cost(self, X: DenseOrCSR) -> int:
        return _entries(X) * self.n_projections * (SPARSE_COST if is_sparse(X) else 1)


def reduced_projection(projection: Projection) -> Projection:
    """Return a projection with the same R R' and at most as many columns as rows: the factor L of R
    = L Q', where Q'Q = I."""
    if projection.n_projections <= projection.n_features:
        return projection
    R = projection.project(np.eye(projection.n_features))
    return Matrix(projection.n_features, projection.n_features, np.linalg.qr(R.T, mode="r").T)


def _entries(X):
    """Return the number of stored entries of a row of X, for CSR rows the mean."""
    return X.nnz // max(1, X.shape[0]) if is_sparse(X) else X.shape[1]


def _signs(rng, shape):
    """Draw an int8 array of +1 and -1."""
    return 2 * rng.integers(0, 2, shape, np.int8) - 1


def _power_of_two(n):
    """Return the least power of two that is at least n."""
    return 1 << (n - 1).bit_length()


def make_projection(
    kind: ProjectionName, n_features: int, n_projections: int, rng: Seed = None
) -> Projection:
    """Draw a projection of a kind, "gaussian", "sparse_sign" or "srht"; `rng` is a seed or a
    Generator."""
    check_choice("projection", kind, PROJECTIONS)
    n_features = check_integer("n_features", n_features, 1)
    n_projections = check_integer("n_projections", n_projections, 1)
    rng = check_rng(rng)
    if kind == "gaussian":
        return Gaussian(n_features, n_projections, draw_seed(rng))
    return (SparseSign if kind == "sparse_sign" else Hadamard).draw(n_features, n_projections, rng)
