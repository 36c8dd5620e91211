"""Correlations, sums and values of the features of one kind over a slice of rows, dense or CSR, in the cheapest way.

Most features are made tile by tile, by the compiled kernels: some rows by some features, that stay in the cache. Features that
are monomials of degree 1 or 2 of their inputs u need no tile: with U the matrix of the inputs, the moments U'v and
U'diag(v)U hold the correlations of all of them with v, and U c their sum. `by_moments` says which way costs less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import is_sparse
from .._base.csr import csr_arrays
from .._core.features import PANEL
from .._core.moments import by_sign, enveloped, second_moments
from .._core.rows import RowSlice

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import DenseOrCSR
    from ..features.blocks import FeatureBlock

# Multiplications of a matrix product that take as long as one feature value in a tile.
PRODUCT_SPEED = 16
# Inputs that are read and multiplied in the time of one feature value.
INPUTS_SPEED = 4
# Most numbers in a slice of rows for which a matrix of second moments is summed.
SLICE = 2**19
# Numbers of rows that are copied at a time where they are not contiguous.
COPIED = 2**19
# Most outputs for which the compiled product with rows in C order is faster than that of BLAS, which copies such rows for more
# than one output, and converts them to float64 where they are float32 and the outputs are not.
FEW_OUTPUTS = 8
# Feature values that take as long as reading an entry of CSR rows and adding it to sums.
SPARSE_NORMAL = 5


def inputs(block: FeatureBlock, X: DenseOrCSR) -> DenseOrCSR:
    """Return the inputs of the features of a block: X itself, or u = exp(-gamma |x|^2 / order) (1, sqrt(2 gamma) x)."""
    if block.envelope is None:
        return in_order(X)
    gamma, order = block.envelope
    if not is_sparse(X):
        U = np.empty((X.shape[0], X.shape[1] + 1), X.dtype)
        whole = isinstance(X, np.ndarray) and X.flags.c_contiguous
        size = max(1, X.shape[0] if whole else COPIED // X.shape[1])
        for start in range(0, X.shape[0], size):
            some = slice(start, start + size)
            enveloped(np.ascontiguousarray(X[some]), gamma, order, U[some])
        return U
    row, first = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indptr[:-1]  # where each row begins
    data = X.data.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        envelope = np.exp(np.bincount(row, data * gamma * data, X.shape[0]) / -order)
        data = np.insert((data * (np.sqrt(2 * gamma) * envelope)[row]).astype(X.dtype), first, envelope)
    indices = np.insert(X.indices + 1, first, 0)
    return type(X)((data, indices, X.indptr + np.arange(X.shape[0] + 1)), shape=(X.shape[0], X.shape[1] + 1))


def in_order(X: DenseOrCSR) -> DenseOrCSR:
    """Return X, copied in C order unless it is in C or Fortran order: BLAS takes no other, and NumPy's own loops, which cost as
    much as the copy, sum in another order."""
    return X if is_sparse(X) or X.strides[0] == X.itemsize else np.ascontiguousarray(X)


def some_rows(X: DenseOrCSR, rows: slice | np.ndarray) -> DenseOrCSR:
    """Return X[rows]; of a slice of CSR rows a view, which SciPy would copy."""
    if not (is_sparse(X) and isinstance(rows, slice)):
        return X[rows]
    first, last = X.indptr[rows.start], X.indptr[rows.stop]
    indptr = X.indptr[rows.start : rows.stop + 1] - first
    return type(X)((X.data[first:last], X.indices[first:last], indptr), shape=(len(indptr) - 1, X.shape[1]))


def slices(n: int, size: int) -> list[slice]:
    """Cut n rows, or features, into slices of `size`, the last of which may be shorter."""
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


# In the functions below, `block` is a block of features, U are its `inputs` of some rows, and v, c and out have a line for each
# output: v (n_outputs, n_rows), c (n_outputs, len(block)).


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def sums(
    block: FeatureBlock, U: DenseOrCSR, v: np.ndarray, squared: bool, moments: bool, scratch: Callable[..., np.ndarray]
) -> np.ndarray:
    """Return what `correlations` takes once it is added up over all slices of rows: float64 (n_outputs, .).

    squared : whether the squares of the features are correlated with v.
    moments : whether the sums are moments of the inputs, as `by_moments` says.
    """
    if not moments:
        out = _padded(len(v), len(block))
        panels, rows = _packed(block, U)
        panels.correlate(rows, v, out, squared)
        return out
    if block.moment_order == 1 and _is_read_once(U, len(v)):
        total = np.zeros((len(v), U.shape[1]))
        RowSlice(U).correlate(v, total, squared)
        return total
    if squared:  # the square of a float32 may not be a float32
        U = U.astype(np.float64, copy=False)
        U = U.power(2) if is_sparse(U) else np.multiply(U, U, out=scratch(U.shape, U.dtype, "squares"))
    if block.moment_order == 1:
        return (U.T @ v.T).T
    return np.array([_second_moments(U, each, scratch).ravel() for each in v])


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def sums_of_pair(block: FeatureBlock, U: DenseOrCSR, v: np.ndarray) -> np.ndarray:
    """Return the `sums` of a block of cosines, and of the sines of the same phases: float64 (2, n_outputs, .)."""
    out = np.stack([_padded(len(v), len(block))] * 2)
    panels, rows = _packed(block, U)
    panels.correlate(rows, v, out[0], sine=out[1])
    return out


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def correlations(block: FeatureBlock, total: np.ndarray, squared: bool, moments: bool) -> np.ndarray:
    """Return Phi' v for each output, or (Phi * Phi)' v, of the `sums` of all rows: (n_outputs, len(block))."""
    return block.correlations_from_moments(total, squared) if moments else total[:, : len(block)]


def apply(block: FeatureBlock, U: DenseOrCSR, c: np.ndarray, out: np.ndarray, moments: bool) -> None:
    """Add Phi c to out (n_outputs, n_rows), for each output."""
    if moments and block.moment_order == 1:
        _apply_to_inputs(block, U, c, out)
        return
    panels, rows = _packed(block, U)
    panels.apply(rows, c, out)


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def _apply_to_inputs(block, U, c, out):
    """Add Phi c to out, for features of one input each, or a matrix of weights, by a product with the inputs."""
    if block.is_matrix and len(block) <= len(c):
        out += c @ (U @ block.matrix.T).T
        return
    c = block.coef_on_inputs(c, U.shape[1])
    if _is_read_once(U, len(c)):
        RowSlice(U).apply(np.ascontiguousarray(c), out)
    else:
        out += (U @ c.T).T


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def normal(X: DenseOrCSR, rows: slice, h: np.ndarray, c: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Add X c to f for a slice of rows; return X' diag(h) f, (n_outputs, n_inputs), of the new f."""
    total = np.zeros(c.shape)
    if is_sparse(X):
        RowSlice(*csr_arrays(X, rows)).normal(c, h, f, total)
        return total
    X = in_order(X[rows])
    if X.flags.c_contiguous:
        RowSlice(X).normal(c, h, f, total)
    else:
        f += (X @ c.T).T
        total += (X.T @ (h * f).T).T
    return total


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def transform(block: FeatureBlock, U: DenseOrCSR, out: np.ndarray) -> None:
    """Write Phi to out (n_rows, len(block)), whose last axis is contiguous."""
    if block.is_matrix:
        out[:] = U @ block.matrix.T
    else:
        panels, rows = _packed(block, U)
        panels.transform(rows, out)


def work(block: FeatureBlock, X: DenseOrCSR) -> int:
    """Return how many feature values take as long as `sums` of a row do."""
    if not by_moments(block, X):
        return len(block)
    width = X.nnz // max(1, X.shape[0]) + 1 if is_sparse(X) else X.shape[1] + 1
    return width + width * width // PRODUCT_SPEED if block.moment_order == 2 else -(-width // INPUTS_SPEED)


def normal_work(X: DenseOrCSR) -> tuple[int, int]:
    """Return how many feature values take as long as `normal` of a row, and how many rows are worth the sums of all inputs."""
    if not is_sparse(X):
        return -(-X.shape[1] // INPUTS_SPEED), 0
    a_row = max(1, X.nnz // max(1, X.shape[0]))
    return SPARSE_NORMAL * a_row, 8 * X.shape[1] // a_row


def fewest_rows(block: FeatureBlock, X: DenseOrCSR) -> int:
    """Return how many rows a slice needs to be worth the sum of a matrix of second moments; 0 where none is summed."""
    width = X.shape[1] + 1
    return max(width, min(64 * width, SLICE // width)) if block.moment_order == 2 and by_moments(block, X) else 0


def _padded(n_outputs, n_features):
    """Return zeros for sums over features, whose number the kernels round up to whole panels."""
    return np.zeros((n_outputs, -(-n_features // PANEL) * PANEL))


def _is_read_once(U, n_outputs):
    """Return whether the compiled product with the rows is faster than that of BLAS."""
    return not is_sparse(U) and U.flags.c_contiguous and n_outputs <= FEW_OUTPUTS


def by_moments(block: FeatureBlock, X: DenseOrCSR, squared: bool = False) -> bool:
    """Return whether moments of the inputs, by BLAS where they are dense, cost less than making the features."""
    if not block.moment_order:
        return False
    if block.is_matrix:
        return not squared
    if block.is_identity(X.shape[1]):
        return True
    return (is_sparse(X) and block.order == 1) or len(block) * PRODUCT_SPEED >= (X.shape[1] + 1) ** block.order


def _second_moments(U, v, scratch):
    """Return U' diag(v) U, float64."""
    if not is_sparse(U):
        size = float(np.abs(v).max(initial=0.0)) or 1.0  # v may be no float32
        scaled = scratch(U.shape, U.dtype)
        middle, end = by_sign(np.ascontiguousarray(U), v, size, scaled)
        plus, minus = scaled[:middle], scaled[middle:end]  # BLAS takes half the time for A'A
        return size * (plus.T @ plus - minus.T @ minus).astype(np.float64, copy=False)
    total = np.zeros((U.shape[1], U.shape[1]))
    second_moments(*csr_arrays(U), np.ascontiguousarray(v), total)
    return total + np.triu(total, 1).T


def _packed(block, X):
    """Return the features of a block, and rows of their inputs, in the layout of the kernels."""
    if not is_sparse(X):
        return block.packed(X.dtype, X.shape[1]), RowSlice(np.ascontiguousarray(X))
    if block.inputs is not None:  # gather from the inputs that occur in the weights, dense for this slice of rows
        used = X[:, block.used_inputs[0]].toarray()
        return block.packed(X.dtype, used.shape[1], among_used=True), RowSlice(used)
    return block.packed(X.dtype, X.shape[1]), RowSlice(*csr_arrays(X))
