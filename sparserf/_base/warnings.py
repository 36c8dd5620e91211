"""Warnings that point at the user's line, which called this package."""

import sys
import warnings


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the user's line, however many functions of this package are between it and here."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__.partition(".")[0]:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
