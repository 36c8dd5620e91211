"""Where the rows live. Every kind of rows answers correlate, gram and apply; only `as_rows` looks at what X is."""

from .._checks import check_training_X, check_X
from .._threads import check_workers
from .memory import Memory


def as_rows(X, workers=1, *, n_features=None):
    """The rows of X: any that have n_features columns, or at least one row and column to train on."""
    X = check_training_X(X) if n_features is None else check_X(X, n_features)
    return Memory(X, check_workers(workers))
