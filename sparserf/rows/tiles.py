"""The questions asked of features of one kind over a slice of rows, dense or CSR: which way is the cheapest.

Most features are made tile by tile. What is a sum of monomials of degree 1 or 2 needs none: with u the inputs of the
features, U'v and U'diag(v)U hold the correlations of all of them, and U c their sum.
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
    from ..features.block import FeatureBlock

# Multiplications of a matrix product that take as long as one feature value in a tile.
PRODUCT_SPEED = 16
# Inputs that are read and multiplied in the time of one feature value.
INPUTS_SPEED = 4
# Numbers in a slice of rows for which a matrix of second moments is summed.
SLICE = 2**19
# Numbers of rows that are not contiguous that are copied at a time.
COPIED = 2**19
# Outputs for which a product of rows in C order takes less than in BLAS, which copies them for more than one, and in double
# precision where they are float32 and the outputs are not.
FEW_OUTPUTS = 8
# Feature values in the time of reading an entry of CSR rows, and of adding it to sums.
SPARSE_NORMAL = 5


def inputs(block: FeatureBlock, X: DenseOrCSR) -> DenseOrCSR:
    """The rows that a block sees: X itself, or under an envelope u = exp(-gamma |x|^2 / order) (1, sqrt(2 gamma) x)."""
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
    """X, contiguous where BLAS would not take it as it is: NumPy's own loops cost as much as the copy, and sum otherwise."""
    return X if is_sparse(X) or X.strides[0] == X.itemsize else np.ascontiguousarray(X)


def some_rows(X: DenseOrCSR, rows: slice | np.ndarray) -> DenseOrCSR:
    """X[rows]; of a slice of CSR rows a view, where scipy would copy them."""
    if not (is_sparse(X) and isinstance(rows, slice)):
        return X[rows]
    first, last = X.indptr[rows.start], X.indptr[rows.stop]
    indptr = X.indptr[rows.start : rows.stop + 1] - first
    return type(X)((X.data[first:last], X.indices[first:last], indptr), shape=(len(indptr) - 1, X.shape[1]))


# In the following, U are the `inputs` of the block.


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def sums(
    block: FeatureBlock, U: DenseOrCSR, v: np.ndarray, squared: bool, moments: bool, scratch: Callable[..., np.ndarray]
) -> np.ndarray:
    """What adds up over slices of rows to the correlations with v (n_outputs, n_rows): float64 (n_outputs, .)."""
    if not moments:
        out = padded(len(v), len(block))
        panels, rows = _packed(block, U)
        panels.correlate(rows, v, out, squared)
        return out
    if block.moment_order == 1 and _is_read_once(U, len(v)):
        total = np.zeros((len(v), U.shape[1]))
        RowSlice(U).correlate(v, total, squared)
        return total
    if squared:  # those of a float32 need not be one
        U = U.astype(np.float64, copy=False)
        U = U.power(2) if is_sparse(U) else np.multiply(U, U, out=scratch(U.shape, U.dtype, "squares"))
    if block.moment_order == 1:
        return (U.T @ v.T).T
    return np.array([_second_moments(U, each, scratch).ravel() for each in v])


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def sums_of_pair(block: FeatureBlock, U: DenseOrCSR, v: np.ndarray) -> np.ndarray:
    """`sums` of a block of cosines, and of the same a quarter later: float64 (2, n_outputs, .)."""
    out = np.stack([padded(len(v), len(block))] * 2)
    panels, rows = _packed(block, U)
    panels.correlate(rows, v, out[0], sine=out[1])
    return out


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def correlations(block: FeatureBlock, total: np.ndarray, squared: bool, moments: bool) -> np.ndarray:
    """(Phi' v')', or (Phi * Phi)' v' where squared, of the `sums` of all rows: (n_outputs, len(block))."""
    return block.of_moments(total, squared) if moments else total[:, : len(block)]


def apply(block: FeatureBlock, U: DenseOrCSR, c: np.ndarray, out: np.ndarray, moments: bool) -> None:
    """out += (Phi c')' for c (n_outputs, len(block)) and out (n_outputs, n_rows)."""
    if moments and block.moment_order == 1:
        _apply_to_inputs(block, U, c, out)
        return
    panels, rows = _packed(block, U)
    panels.apply(rows, c, out)


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def _apply_to_inputs(block, U, c, out):
    if block.is_matrix and len(block) <= len(c):
        out += c @ (U @ block.matrix.T).T
        return
    c = block.on_inputs(c, U.shape[1])
    if _is_read_once(U, len(c)):
        RowSlice(U).apply(np.ascontiguousarray(c), out)
    else:
        out += (U @ c.T).T


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def normal(X: DenseOrCSR, rows: slice, h: np.ndarray, c: np.ndarray, f: np.ndarray) -> np.ndarray:
    """f += X c, f (n_outputs, .), of a slice of rows; then X' diag(h) f, (n_outputs, n_inputs)."""
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
    """out = Phi, out (n_rows, len(block)) with its last axis contiguous."""
    if block.is_matrix:
        out[:] = U @ block.matrix.T
    else:
        panels, rows = _packed(block, U)
        panels.transform(rows, out)


def work(block: FeatureBlock, X: DenseOrCSR) -> int:
    """Feature values that cost as much, a row, as a question does."""
    if not by_moments(block, X):
        return len(block)
    width = X.nnz // max(1, X.shape[0]) + 1 if is_sparse(X) else X.shape[1] + 1
    return width + width * width // PRODUCT_SPEED if block.moment_order == 2 else -(-width // INPUTS_SPEED)


def normal_work(X: DenseOrCSR) -> tuple[int, int]:
    """The same of `normal`, and the rows of a slice that are worth the sums of all inputs."""
    if not is_sparse(X):
        return -(-X.shape[1] // INPUTS_SPEED), 0
    a_row = max(1, X.nnz // max(1, X.shape[0]))
    return SPARSE_NORMAL * a_row, 8 * X.shape[1] // a_row


def fewest_rows(block: FeatureBlock, X: DenseOrCSR) -> int:
    """Rows of a slice that are worth the sum of a matrix of second moments."""
    width = X.shape[1] + 1
    return max(width, min(64 * width, SLICE // width)) if block.moment_order == 2 and by_moments(block, X) else 0


def padded(n_outputs: int, n_features: int) -> np.ndarray:
    return np.zeros((n_outputs, -(-n_features // PANEL) * PANEL))


def _is_read_once(U, n_outputs):
    """Whether products with the rows themselves are made by a kernel of ours."""
    return not is_sparse(U) and U.flags.c_contiguous and n_outputs <= FEW_OUTPUTS


def by_moments(block: FeatureBlock, X: DenseOrCSR, squared: bool = False) -> bool:
    """Whether products of the inputs, in BLAS where they are dense, cost less than the features."""
    if not block.moment_order:
        return False
    if block.is_matrix:
        return not squared
    if block.is_inputs_themselves(X.shape[1]):
        return True
    return (is_sparse(X) and block.order == 1) or len(block) * PRODUCT_SPEED >= (X.shape[1] + 1) ** block.order


def _second_moments(U, v, scratch):
    """U' diag(v) U."""
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
    """(the features of a block, the rows) as the kernels take them."""
    if not is_sparse(X):
        return block.packed(X.dtype, X.shape[1]), RowSlice(np.ascontiguousarray(X))
    if block.inputs is not None:  # gather from the inputs that occur in the weights, dense for this slice of rows
        used = X[:, block.used_inputs[0]].toarray()
        return block.packed(X.dtype, used.shape[1], among_used=True), RowSlice(used)
    return block.packed(X.dtype, X.shape[1]), RowSlice(*csr_arrays(X))
