"""Warnings that point at the user's line, which called this package."""

from __future__ import annotations

import sys
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    # A message and its category.
    Warned = tuple[str, type[Warning]]


class _Thread(threading.local):
    """The list that holds back the warnings of a thread, or None."""

    held: list[Warned] | None = None


_here = _Thread()


class TimeLimitWarning(UserWarning):
    """Issued if a `time_limit` ends before the first path: the model is the best until then.

    Examples
    --------
    >>> import warnings, numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", srf.TimeLimitWarning)
    ...     model = srf.sparse_rf(X, np.sin(2 * X.ravel()), time_limit=0.001, rng=0)
    >>> bool(np.isfinite(model.predict(X)).all())
    True
    """


class GroupedRowsWarning(UserWarning):
    """Issued if rows look grouped or ordered in time, and neither `groups` nor `validation` says
    so.

    Examples
    --------
    >>> import warnings, numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> person = rng.permutation(np.repeat(np.arange(50.0), 6))
    >>> y = rng.normal(size=50)[person.astype(int)] + 0.3 * rng.normal(size=300)
    >>> X = np.column_stack([person, rng.normal(size=300)])
    >>> with warnings.catch_warnings(record=True) as warned:
    ...     warnings.simplefilter("always", srf.GroupedRowsWarning)
    ...     model = srf.sparse_rf(X, y, rng=0)
    >>> str(warned[0].message)[:60]
    'rows look grouped by column 0 (50 levels of 6 rows in the me'
    >>> model = srf.sparse_rf(X, y, groups=person, rng=0)
    """


class CopiedRowsWarning(UserWarning):
    """Issued if more than a tenth of the rows are copies of others, where rows are held out.

    Examples
    --------
    >>> import warnings, numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = X[:, 0] + rng.normal(size=100)
    >>> copied, count = np.unique(rng.integers(0, 100, 100), return_counts=True)
    >>> rows = np.repeat(copied, count)
    >>> with warnings.catch_warnings(record=True) as warned:
    ...     warnings.simplefilter("always", srf.CopiedRowsWarning)
    ...     model = srf.sparse_rf(X[rows], y[rows], rng=0)
    >>> str(warned[0].message)[:64]
    '38 of 100 rows are equal to one before them in all columns of X:'
    >>> model = srf.sparse_rf(X[copied], y[copied], sample_weight=count, rng=0)
    """


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the user's line, beyond all functions of this package; or put
    it into the list of `held_back`."""
    if _here.held is not None:
        _here.held.append((message, category))
        return
    frame, level = sys._getframe(), 1
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] == __package__.partition(".")[0]
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def held_back() -> Iterator[list[Warned]]:
    """Hold back the warnings of this thread within this block, in the list that it gives."""
    outer, _here.held = _here.held, []
    try:
        yield _here.held
    finally:
        _here.held = outer
