"""Files of earlier formats, read as if they were of the present one.

Who changes what a file holds adds 1 to `FORMAT` in _npz.py, a line to UPGRADES, and tiny files of the new format to
tests/files, where those of the old ones stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._base.npz import FORMAT

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np


def _with_progress(meta, arrays):
    """Format 2 knows the version that wrote the file, and `FitInfo.progress`."""
    return {**meta, "version": "0.1.0", "info": {**meta["info"], "progress": 1.0}}, arrays


def _without_fallbacks(meta, arrays):
    """Format 3 knows what views of levels show of a level that no training row had; before it was none of them."""
    return meta, arrays


# From each format to the next: functions of the metadata and the arrays, which are not checked yet.
UPGRADES: dict[int, Callable[..., Any]] = {1: _with_progress, 2: _without_fallbacks}


def upgraded(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    for number in range(meta["format"], FORMAT):
        meta, arrays = UPGRADES[number](meta, arrays)
    return {**meta, "format": FORMAT}, arrays
