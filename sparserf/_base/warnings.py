"""Warnings that point at the user's line, which called this package."""

import sys
import warnings


class TimeLimitWarning(UserWarning):
    """Issued if a `time_limit` ends before the first search: the model is the best until then.

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


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the user's line, beyond all functions of this package."""
    frame, level = sys._getframe(), 1
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] == __package__.partition(".")[0]
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
