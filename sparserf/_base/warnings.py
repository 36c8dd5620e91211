"""Warnings that point at the line of the user that called this package."""

import sys
import warnings


def warn(message: str, category: type[Warning]) -> None:
    """Warn, pointing at the line of the user that called this package, however many of its functions are between."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__.partition(".")[0]:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
