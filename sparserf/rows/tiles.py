"""The questions asked of features of one kind over a slice of rows, dense or CSR: which way is the cheapest.

Most features are made tile by tile. What is a sum of monomials of degree 1 or 2 needs none: with u the inputs of the
features, U'v and U'diag(v)U hold the correlations of all of them, and U c their sum.
"""

import numpy as np

from .._checks import is_sparse
from .._core import features as _core
from .._core import normal as _rows
from .._core.moments import by_sign, enveloped, second_moments

PANEL = _core.PANEL
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


def inputs(block, X):
    """The rows that a block sees: X itself, or of products u = exp(-gamma |x|^2 / order) (1, sqrt(2 gamma) x)."""
    if not block.is_product:
        return in_order(X)
    if not is_sparse(X):
        U = np.empty((X.shape[0], X.shape[1] + 1), X.dtype)
        size = max(1, len(X) if X.flags.c_contiguous else COPIED // X.shape[1])
        for start in range(0, len(X), size):
            some = slice(start, start + size)
            enveloped(np.ascontiguousarray(X[some]), block.gamma, block.order, U[some])
        return U
    row, first = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indptr[:-1]  # where each row begins
    data = X.data.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        envelope = np.exp(np.bincount(row, data * block.gamma * data, X.shape[0]) / -block.order)
        data = np.insert((data * (np.sqrt(2 * block.gamma) * envelope)[row]).astype(X.dtype), first, envelope)
    indices = np.insert(X.indices + 1, first, 0)
    return type(X)((data, indices, X.indptr + np.arange(X.shape[0] + 1)), shape=(X.shape[0], X.shape[1] + 1))


def in_order(X):
    """X, contiguous where BLAS would not take it as it is: NumPy's own loops cost as much as the copy, and sum otherwise."""
    return X if is_sparse(X) or X.strides[0] == X.itemsize else np.ascontiguousarray(X)


def some_rows(X, rows):
    """X[rows]; of a slice of CSR rows a view, where scipy would copy them."""
    if not (is_sparse(X) and isinstance(rows, slice)):
        return X[rows]
    first, last = X.indptr[rows.start], X.indptr[rows.stop]
    indptr = X.indptr[rows.start : rows.stop + 1] - first
    return type(X)((X.data[first:last], X.indices[first:last], indptr), shape=(len(indptr) - 1, X.shape[1]))


# In the following, U are the `inputs` of the block.


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def sums(block, U, v, squared, moments, scratch):
    """What adds up over slices of rows to the correlations with v (n_outputs, n_rows): float64 (n_outputs, .)."""
    if not moments:
        out = padded(len(v), len(block))
        _core.correlate(*_arguments(block, U), v, out, squared)
        return out
    if not is_quadratic(block) and _is_read_once(U, len(v)):
        total = np.zeros((len(v), U.shape[1]))
        _rows.correlate(U, v, total, squared)
        return total
    if squared:  # those of a float32 need not be one
        U = U.astype(np.float64, copy=False)
        U = U.power(2) if is_sparse(U) else np.multiply(U, U, out=scratch(U.shape, U.dtype, "squares"))
    return np.array([_second_moments(U, each, scratch).ravel() for each in v]) if is_quadratic(block) else (U.T @ v.T).T


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def sums_of_pair(block, U, v):
    """`sums` of a block of cosines, and of the same a quarter later: float64 (2, n_outputs, .)."""
    out = np.stack([padded(len(v), len(block))] * 2)
    _core.correlate(*_arguments(block, U), v, out[0], sine=out[1])
    return out


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def correlations(block, total, squared, moments):
    """(Phi' v')', or (Phi * Phi)' v' where squared, of the `sums` of all rows: (n_outputs, len(block))."""
    if not moments:
        return total[:, : len(block)]
    if block.is_inputs_themselves(total.shape[1]):
        return total
    if block.is_matrix:
        return total @ block.matrix.T
    place = block.inputs[:, 0].astype(np.intp)
    if is_quadratic(block):
        place = place * round(total.shape[1] ** 0.5) + block.inputs[:, 1]
    return _coefficients(block, squared) * total[:, place]


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def apply(block, U, c, out, moments):
    """out += (Phi c')' for c (n_outputs, len(block)) and out (n_outputs, n_rows)."""
    if moments and not is_quadratic(block):
        if block.is_matrix and len(block) <= len(c):
            out += c @ (U @ block.matrix.T).T
            return
        if block.is_matrix:
            c = c @ block.matrix
        elif not block.is_inputs_themselves(U.shape[1]):
            terms, c = c * _coefficients(block, False), np.zeros((len(c), U.shape[1]))
            if block.inputs_differ:
                c[:, block.inputs[:, 0]] = terms
            else:
                np.add.at(c.T, block.inputs[:, 0], terms.T)
        if _is_read_once(U, len(c)):
            _rows.apply(U, np.ascontiguousarray(c), out)
        else:
            out += (U @ c.T).T
        return
    coef = padded(len(c), len(block))
    coef[:, : len(block)] = c
    _core.apply(*_arguments(block, U), coef, out)


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def normal(X, rows, h, c, f):
    """f += X c, f (n_outputs, .), of a slice of rows; then X' diag(h) f, (n_outputs, n_inputs)."""
    total = np.zeros(c.shape)
    if is_sparse(X):
        data, indices, indptr = X.data, X.indices, X.indptr[rows.start : rows.stop + 1]
        data, indices = np.ascontiguousarray(data), np.ascontiguousarray(indices, np.int32)
        _rows.normal_csr(data, indices, np.ascontiguousarray(indptr, np.int64), c, h, f, total)
        return total
    X = in_order(X[rows])
    if X.flags.c_contiguous:
        _rows.normal(X, c, h, f, total)
    else:
        f += (X @ c.T).T
        total += (X.T @ (h * f).T).T
    return total


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def transform(block, U, out):
    """out = Phi, out (n_rows, len(block)) with its last axis contiguous."""
    if block.is_matrix:
        out[:] = U @ block.matrix.T
    else:
        _core.transform(*_arguments(block, U), out)


def work(block, X):
    """Feature values that cost as much, a row, as a question does."""
    if not by_moments(block, X):
        return len(block)
    width = X.nnz // max(1, X.shape[0]) + 1 if is_sparse(X) else X.shape[1] + 1
    return width + width * width // PRODUCT_SPEED if is_quadratic(block) else -(-width // INPUTS_SPEED)


def normal_work(X):
    """The same of `normal`, and the rows of a slice that are worth the sums of all inputs."""
    if not is_sparse(X):
        return -(-X.shape[1] // INPUTS_SPEED), 0
    a_row = max(1, X.nnz // max(1, X.shape[0]))
    return SPARSE_NORMAL * a_row, 8 * X.shape[1] // a_row


def fewest_rows(block, X):
    """Rows of a slice that are worth the sum of a matrix of second moments."""
    width = X.shape[1] + 1
    return max(width, min(64 * width, SLICE // width)) if is_quadratic(block) and by_moments(block, X) else 0


def padded(n_outputs, n_features):
    return np.zeros((n_outputs, -(-n_features // PANEL) * PANEL))


def _is_read_once(U, n_outputs):
    """Whether products with the rows themselves are made by a kernel of ours."""
    return not is_sparse(U) and U.flags.c_contiguous and n_outputs <= FEW_OUTPUTS


def is_quadratic(block):
    return block.is_product and block.order == 2


def _is_linear(block):
    return (
        block.inputs is not None and block.order == 1 and block.activation in ("identity", "product") and not block.offset.any()
    )


def by_moments(block, X, squared=False):
    """Whether products of the inputs, in BLAS where they are dense, cost less than the features."""
    if block.is_matrix:
        return not squared
    if block.is_inputs_themselves(X.shape[1]):
        return True
    if not (_is_linear(block) or is_quadratic(block)):
        return False
    return (is_sparse(X) and block.order == 1) or len(block) * PRODUCT_SPEED >= (X.shape[1] + 1) ** block.order


def _coefficients(block, squared):
    c = block.coefficients
    return c * c if squared else c


def _second_moments(U, v, scratch):
    """U' diag(v) U."""
    if not is_sparse(U):
        size = float(np.abs(v).max(initial=0.0)) or 1.0  # v may be no float32
        scaled = scratch(U.shape, U.dtype)
        middle, end = by_sign(np.ascontiguousarray(U), v, size, scaled)
        plus, minus = scaled[:middle], scaled[middle:end]  # BLAS takes half the time for A'A
        return size * (plus.T @ plus - minus.T @ minus).astype(np.float64, copy=False)
    total = np.zeros((U.shape[1], U.shape[1]))
    second_moments(*_csr(U), np.ascontiguousarray(v), total)
    return total + np.triu(total, 1).T


def _arguments(block, X):
    """What the kernels take: the features of a block, and the rows."""
    if not is_sparse(X):
        return *block.packed(X.dtype, X.shape[1]), np.ascontiguousarray(X), None, None, None
    if block.inputs is not None:  # gather from the inputs that occur in the weights, dense for this slice of rows
        used = X[:, block.used_inputs[0]].toarray()
        return *block.packed(X.dtype, used.shape[1], among_used=True), used, None, None, None
    return *block.packed(X.dtype, X.shape[1]), None, *_csr(X)


def _csr(X):
    return (np.ascontiguousarray(a, t) for a, t in ((X.data, X.dtype), (X.indices, np.int32), (X.indptr, np.int64)))
