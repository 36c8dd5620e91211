"""The rows of X, in memory, on disk, on a device or on a cluster, and the sums over them that
algorithms compute.

`as_rows` makes the `Rows` for whatever the user gave as X: an array, a sparse matrix, `Chunks`, a
tensor on a device, a dask collection. An algorithm has sums and products over the rows computed by
`Rows`, block by block (`Block`), with compiled kernels for blocks in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import is_foreign, namespace_of, to_host
from .._base.checks import check_finite, check_training_X, check_X, is_sparse
from .._base.threads import Workers, check_workers
from ..columns.frames import is_table
from ..columns.table import Table
from .block import Block
from .chunks import BlockError, ChunkedRows, Chunks
from .core_block import CoreBlock
from .dask import DaskRows, chunks_of_frames, holds_numbers, is_dask_frame
from .device import DeviceRows
from .memory import MemoryRows, from_host_if_possible
from .remote import RemoteRows
from .rows import Rows, correlation, correlation_pair
from .vectors import HostVectors, RowVectors

if TYPE_CHECKING:
    from .._base.types import MatrixLike
    from ..columns.encoder import ColumnEncoder
    from ..columns.table import Categorical

__all__ = [
    "Block",
    "BlockError",
    "Chunks",
    "HostVectors",
    "RowVectors",
    "Rows",
    "as_readable",
    "as_rows",
    "correlation",
    "correlation_pair",
    "from_host_if_possible",
    "is_elsewhere",
    "read_rows",
]


# The classes of rows that are not in the memory of this process.
HOMES: tuple[type[RemoteRows], ...] = (ChunkedRows, DaskRows, DeviceRows)


def as_rows(
    X: MatrixLike, workers: int = 1, *, n_features: int | None = None, may_miss: bool = False
) -> Rows:
    """Check X and return its rows.

    n_features : int or None
        How many columns X must have; None: X is to train on, and must have at least one row and one
        column.
    may_miss : bool
        Whether dense rows may hold NaN.
    """
    workers, origin = check_workers(workers), None
    # predicting a single ndarray row takes little longer than some such checks
    if type(X) is not np.ndarray:
        for home in HOMES:
            if home.is_home_of(X):
                return _check_shape(home.from_X(X, workers, may_miss), n_features)
        if is_foreign(X):
            origin, X = namespace_of(X), to_host(X)  # its memory is shared, not copied
    if n_features is not None:
        return MemoryRows(
            CoreBlock(check_X(X, n_features, may_miss=may_miss), Workers(workers)), origin
        )
    X = check_training_X(X)
    is_finite = check_finite("X", X, may_miss and not is_sparse(X))
    return MemoryRows(CoreBlock(X, Workers(workers)), origin, is_finite)


def read_rows(
    X: MatrixLike, encoder: ColumnEncoder | None, workers: int = 1, *, n_features: int | None = None
) -> Rows:
    """Return the rows of X as numbers that a column encoder can encode, such as codes for the
    levels of a category.

    The rows are not encoded yet: `Rows.encoded` does so.

    encoder : ColumnEncoder or None
        The encoder, whose table defines how a data frame is read. None: X must be numbers.
    n_features : int or None
        As in `as_rows`. A data frame is read by position where the model was fitted to an array.
    """
    X = read_table(X, encoder, n_features)
    return as_rows(
        X, workers, n_features=n_features, may_miss=encoder is not None and encoder.may_miss
    )


def is_elsewhere(X: Any) -> bool:
    """Return whether the rows of X are not in the memory of this process."""
    return any(home.is_home_of(X) for home in HOMES)


def as_readable(X: MatrixLike, has_table: bool) -> Any:
    """Return X; for a dask dataframe whose columns are not all numbers, or that a table reads, the
    `Chunks` of its partitions.

    has_table : whether a table reads X, whatever its columns are
    """
    if is_dask_frame(X) and (has_table or not holds_numbers(X)):
        return chunks_of_frames(X)
    return X


def first_rows(X: MatrixLike) -> Any:
    """Return X, or the first block of `Chunks`: what is read as a table is read by its type."""
    return X.first if isinstance(X, Chunks) else X


def learn_table(X: MatrixLike, categorical: Categorical) -> tuple[Any, Table]:
    """Return (training rows as numbers, the table by which they are read), of a frame, an array, or
    `Chunks` of these."""
    return X.learn(categorical) if isinstance(X, Chunks) else Table.learn(X, categorical)


def read_table(X: MatrixLike, encoder: ColumnEncoder | None, n_features: int | None) -> Any:
    """Return X as numbers: a frame, or an array with categories, or `Chunks` of these, by the table
    of an encoder.

    n_features : the number of columns of a model without a table, by which a frame is read by
        position; None: it is not read
    """
    table = None if encoder is None else encoder.table
    X = as_readable(X, table is not None and not table.is_numeric)
    first = first_rows(X)
    if table is None:
        if n_features is None or not is_table(first):
            return X
        table = Table(None, (None,) * n_features)
    elif table.is_numeric and not (is_table(first) or _holds_objects(first)):
        return X
    return X.read_by(table) if isinstance(X, Chunks) else table.read(X)


def _holds_objects(X):
    """Return whether X is an array of objects, of which some may be missing."""
    return isinstance(X, np.ndarray) and X.dtype.kind == "O"


def _check_shape(rows, n_features):
    """Return rows, checked to have n_features columns; None: at least one row and one column."""
    if n_features is not None and rows.n_features_in != n_features:
        raise ValueError(f"X must have {n_features} columns, got {rows.n_features_in}")
    if n_features is None and not rows.n_rows * rows.n_features_in:
        raise ValueError(
            "X must have at least one row and one column, got shape "
            f"{(rows.n_rows, rows.n_features_in)}"
        )
    return rows
