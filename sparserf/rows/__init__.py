"""Where the rows live. Every home answers `sum` and `map` over its blocks; only `as_rows` looks at what X is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import is_foreign, is_on_host, namespace_of, to_host
from .._base.checks import check_device_X, check_training_X, check_X
from .._base.threads import check_workers
from ..columns.table import Table, is_frame
from .chunks import BlockError as BlockError
from .chunks import Chunks, InChunks
from .cluster import InDask, is_dask, partitions_of
from .device import OnDevice
from .device import given as given
from .memory import Memory
from .staged_rows import staged as staged

if TYPE_CHECKING:
    from .._base.types import MatrixLike
    from ..columns.stage import ColumnStage
    from .home import Rows


def as_rows(X: MatrixLike, workers: int = 1, *, n_features: int | None = None, may_miss: bool = False) -> Rows:
    """The rows of X: any that have n_features columns, or at least one row and column to train on.

    may_miss : whether NaN may be in dense ones
    """
    workers = check_workers(workers)
    if type(X) is np.ndarray:  # first: a row is predicted in the time of some such questions
        return Memory.of(_checked(X, n_features, may_miss), workers)
    if isinstance(X, Chunks):
        return _of_shape(InChunks(X, workers, may_miss=may_miss), n_features)
    if is_dask(X):
        return _of_shape(InDask(partitions_of(X), workers, may_miss), n_features)
    if is_foreign(X):
        return _of_another_namespace(X, workers, n_features, may_miss)
    return Memory.of(_checked(X, n_features, may_miss), workers)


def rows_read(X: MatrixLike, stage: ColumnStage | None, workers: int = 1, *, n_features: int | None = None) -> Rows:
    """The rows of X, which a stage is to show, as numbers: a table is read as the stage knows it. None: as they are.

    A frame is read by places where the model was fitted to an array.
    """
    if type(X) is not np.ndarray and n_features is not None and (stage is None or stage.table is None) and is_frame(X):
        X = Table(None, (None,) * n_features).read(X)
    if stage is None:
        return as_rows(X, workers, n_features=n_features)
    return as_rows(stage.read(X), workers, n_features=n_features, may_miss=stage.may_miss)


def _of_shape(rows, n_features):
    if n_features is not None and rows.n_features_in != n_features:
        raise ValueError(f"X must have {n_features} columns, got {rows.n_features_in}")
    if n_features is None and not rows.n_rows * rows.n_features_in:
        raise ValueError(f"X must have at least one row and one column, got shape {(rows.n_rows, rows.n_features_in)}")
    return rows


def _checked(X, n_features, may_miss):
    return check_training_X(X, may_miss) if n_features is None else check_X(X, n_features, may_miss=may_miss)


def _of_another_namespace(X, workers, n_features, may_miss):
    """In the memory of this process shared, not copied; elsewhere where they are. Answers go back to where X is."""
    xp, device = namespace_of(X)
    if not is_on_host(X):
        return _of_shape(OnDevice(check_device_X(X, xp, may_miss), xp, device, workers), n_features)
    rows = Memory.of(_checked(to_host(X), n_features, may_miss), workers)
    rows.give = lambda answer: given(answer, xp, device)
    return rows
