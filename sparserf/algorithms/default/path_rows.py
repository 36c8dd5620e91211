"""The rows of a path, in memory: those that are fitted first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._base.threads import Workers
from ...rows.core_block import CoreBlock
from ...rows.memory import MemoryRows
from ..folds import rows_within

if TYPE_CHECKING:
    from ..._base.types import DenseOrCSR
    from ...rows import Rows
    from ..task import Task


def rows_in_order(task: Task, order: np.ndarray, n: int) -> DenseOrCSR:
    """Return the encoded rows of a task as a model of the first n in this order sees them."""
    fitted = np.zeros(len(order), bool)
    fitted[order[:n]] = True
    X = rows_within(task, fitted)
    return X if n == len(order) else X[order]


def rows_on_one_thread(X: DenseOrCSR) -> Rows:
    """Return the rows of a matrix in memory, on the thread that asks."""
    return MemoryRows(CoreBlock(X, Workers(1)))
