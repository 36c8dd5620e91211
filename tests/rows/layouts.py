"""Layouts of a matrix in memory, dense and sparse: LAYOUTS maps the name of each to a function that
arranges an array so."""

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix

from ..conftest import read_only


def csr_with(array=csr_array, index=np.int32, arrange=lambda a: a):
    """Return a function from X to CSR with that type of indices, whose three arrays are arranged by
    `arrange`."""

    def make(X):
        S = csr_array(X)
        made = array(X.shape, dtype=X.dtype)
        made.data, made.indices, made.indptr = map(
            arrange, (S.data, S.indices.astype(index), S.indptr.astype(index))
        )
        return made

    return make


def non_native(array):
    return array.astype(array.dtype.newbyteorder())


def every_other(array):
    return np.repeat(array, 2, axis=0)[::2]


def shuffled(X):
    """Return CSR whose columns are not sorted within rows, and in which each entry is written as
    two halves."""
    i, j = np.nonzero(X)
    order = np.random.default_rng(0).permutation(2 * len(i))
    order = order[np.argsort(np.tile(i, 2)[order], kind="stable")]
    indptr = 2 * np.concatenate([[0], np.cumsum((X != 0).sum(axis=1))])
    return csr_array((np.tile(X[i, j] / 2, 2)[order], np.tile(j, 2)[order], indptr), X.shape)


def written_zeros(X):
    """Return CSR that writes out its zeros."""
    S = csr_array(np.ones_like(X))
    S.data = X.ravel().copy()
    return S


def with_slack(X):
    """Return CSR whose arrays are longer than its number of entries."""
    S = csr_array(X)
    S.data, S.indices = np.append(S.data, np.nan).astype(X.dtype), np.append(S.indices, 0)
    return S


DENSE = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "read-only": read_only,
    "every other row": every_other,
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "non-native": non_native,
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "unaligned": lambda X: np.frombuffer(b"x" + X.tobytes(), X.dtype, offset=1).reshape(X.shape),
    "list": lambda X: X.tolist(),
    "objects": lambda X: X.astype(object),
}
SPARSE = {
    "csr": csr_with(),
    "int64 indices": csr_with(index=np.int64),
    "matrix": csr_with(csr_matrix),
    "read-only csr": csr_with(arrange=read_only),
    "every other entry": csr_with(arrange=every_other),
    "non-native csr": csr_with(arrange=non_native),
    "shuffled": shuffled,
    "zeros": written_zeros,
    "with slack": with_slack,
    "csc": csc_array,
    "coo": coo_array,
}
LAYOUTS = DENSE | SPARSE
