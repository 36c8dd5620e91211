"""Where the rows live. Every home answers `sum` and `map` over its blocks; only `as_rows` looks at what X is."""

from .._checks import check_training_X, check_X
from .._threads import check_workers
from .chunks import BlockError, Chunks, InChunks
from .memory import Memory


def as_rows(X, workers=1, *, n_features=None):
    """The rows of X: any that have n_features columns, or at least one row and column to train on."""
    workers = check_workers(workers)
    if isinstance(X, Chunks):
        if n_features is not None and X.shape[1] != n_features:
            raise ValueError(f"X must have {n_features} columns, got {X.shape[1]}")
        return InChunks(X, workers)
    return Memory(check_training_X(X) if n_features is None else check_X(X, n_features), workers)
