"""Units in which inputs are measured: the spread of each column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..rows.home import Rows

# A column of smaller numbers is constant: weights are their inverse.
SMALLEST = {"float32": 1e-35, "float64": 1e-290}


def inverse_deviations(rows: Rows, weight: np.ndarray) -> np.ndarray:
    """1 / the standard deviation of each column, 0 of a constant one. Of CSR rows in proportion to its fourth root.

    Which lies between the counts of words as they are and all words alike: a rare one tells more, but in fewer rows.
    """
    deviation = rows.spreads(weight)[0]
    varies = deviation > SMALLEST[rows.dtype.name]
    largest = deviation.max(initial=0.0, where=varies) or 1.0
    unit = np.where(varies, deviation, largest)
    if rows.is_sparse:
        unit = largest**0.75 * unit**0.25  # no entry is large in its unit
    return np.where(varies, 1 / unit, 0.0)
