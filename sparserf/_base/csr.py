"""Checks of sparse X: any format of SciPy becomes CSR that compiled code can trust."""

from __future__ import annotations

import sys
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from .._core.checks import is_canonical

if TYPE_CHECKING:
    from .types import DenseOrCSR


def canonical_csr(X: DenseOrCSR) -> DenseOrCSR:
    """Return X as CSR of float32 or float64 whose indices are in range, sorted and without repeats.

    The indices are copies, which other code cannot change; the values are shared with X if X is
    canonical already.
    """
    X = _copy_structure(X)
    return X if _is_canonical(X) else _make_canonical(X)


def csr_arrays(
    X: DenseOrCSR, rows: slice | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (data, indices, indptr) of CSR rows, or of a slice of them, for compiled code."""
    indptr = X.indptr if rows is None else X.indptr[rows.start : rows.stop + 1]
    return (
        np.ascontiguousarray(X.data),
        np.ascontiguousarray(X.indices, np.int32),
        np.ascontiguousarray(indptr, np.int64),
    )


def _copy_structure(X):
    """Return X with its own index arrays, which no other code can change; values are shared."""
    own = copy(X)
    if X.format in ("csr", "csc", "bsr"):
        own.indices, own.indptr = np.array(X.indices), np.array(X.indptr)
        own.data = np.require(X.data, requirements="A")  # compiled code needs aligned numbers
    elif X.format == "coo":
        own.coords = tuple(map(np.array, X.coords))
    return own


def _is_canonical(X):
    """Return whether X is canonical CSR already.

    For a single row this takes a tenth of the time of `_make_canonical`.
    """
    if type(X) is not sys.modules["scipy.sparse"].csr_array or X.ndim != 2:
        return False
    try:
        dtype, shape = X.data.dtype, X.data.shape
        known = dtype.char in "fd" and dtype.isnative and shape == X.indices.shape
        return known and is_canonical(X.indptr, X.indices, *X.shape)
    except (AttributeError, TypeError, ValueError):  # other integers, or not contiguous
        return False


def _make_canonical(X):
    """Return a sparse matrix of any format as canonical CSR."""
    from scipy.sparse import csr_array

    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional, got shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X must hold real numbers, got dtype {X.dtype}")
    if X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"X must have fewer than 2**31 columns, got {X.shape[1]}")
    try:
        # SciPy's routines for these formats may make invalid CSR rows
        if X.format in ("lil", "dok", "dia"):
            X = X.tocsr()
        _check_sparse_structure(X)
        # SciPy's routines accept no others
        if X.dtype not in (np.float32, np.float64) or not X.dtype.isnative:
            X = X.astype(np.float64)
        X = csr_array(X)
    except (ValueError, IndexError, TypeError) as error:
        raise ValueError(f"X is not a valid sparse matrix: {error}") from None
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _check_sparse_structure(X):
    """Check the index arrays before SciPy's routines, which trust them, go through them."""
    if X.format == "coo":
        for axis, (index, size) in enumerate(zip(X.coords, X.shape, strict=True)):
            _check_indices(f"coords[{axis}]", index, size, len(X.data))
    if X.format not in ("csr", "csc", "bsr"):
        return
    shape = X.shape[::-1] if X.format == "csc" else X.shape
    block = X.blocksize if X.format == "bsr" else (1, 1)
    indptr = np.asarray(X.indptr)
    if indptr.ndim != 1 or indptr.dtype.kind not in "iu" or len(indptr) != shape[0] // block[0] + 1:
        raise ValueError(
            f"indptr must hold {shape[0] // block[0] + 1} integers, got shape {indptr.shape}"
        )
    if (
        indptr[0] != 0
        or np.any(np.diff(indptr) < 0)
        or indptr[-1] > min(len(X.indices), len(X.data))
    ):
        raise ValueError("indptr must start at 0, not decrease, and end within the data")
    _check_indices("indices", X.indices, shape[1] // block[1], len(X.data))


def _check_indices(name, indices, size, n):
    """Check that there are n indices, all in [0, size)."""
    indices = np.asarray(indices)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or len(indices) != n:
        raise ValueError(
            f"{name} must hold {n} integers, one for each entry of data, got shape {indices.shape}"
        )
    if n and (indices.min() < 0 or indices.max() >= size):
        raise ValueError(f"{name} must lie in [0, {size}), got {indices.min()} to {indices.max()}")
