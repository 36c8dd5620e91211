"""Made rows: rows in the manner of a table, each cell of which comes from one of two near rows of
it.

A made row has only cells that occur in their columns: categories stay categories, missing cells are
missing, whole numbers are whole, and nothing leaves the bounds. Since both rows are near, what
holds between columns of near rows about holds in it, too.

Near are rows by the sum, over the columns, of the squared differences of numbers in robust units,
and of 1/2 for each other category; a cell that is missing in one row alone counts as two units
away.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.random import draw_rows
from .encodings import robust_units
from .frames import columns_of_rows, is_frame, rows_of_frame

# A made row is made of a row and one of its N_NEAR nearest rows, among at most MOST_PARTNERS rows,
# drawn at random.
N_NEAR, MOST_PARTNERS = 30, 4_000
# Numbers count as at most FARTHEST units from the centre of their column.
FARTHEST = 10.0
# The square of the distance of two different categories, and of a missing cell and one that is not.
OF_CATEGORIES, OF_MISSING = 0.5, 4.0
# Rows at a squared distance below this are the same: nothing new can be made of them.
SAME = 1e-9
# The numbers of a block of distances.
BLOCK = 2**20


def draw_sources(
    X: np.ndarray,
    is_category: np.ndarray,
    weight: np.ndarray,
    n_made: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw the rows from which the cells of made rows come: return their indices, of shape (n_made,
    n_columns).

    X : float ndarray of shape (n_rows, n_columns), NaN where a cell is missing, a category as the
        number of its level
    is_category : whether each column is one of categories
    weight : positive weights of the rows, which count in robust units

    Time O(n_made n_columns min(n_rows, MOST_PARTNERS)).
    """
    first = rng.integers(0, len(X), n_made)
    partners = (
        np.arange(len(X)) if len(X) <= MOST_PARTNERS else draw_rows(len(X), MOST_PARTNERS, rng)
    )
    second = partners[_draw_near(X, is_category, weight, first, partners, rng)]
    from_first = rng.random((n_made, X.shape[1])) < 0.5
    return np.where(from_first, first[:, None], second[:, None])


def _draw_near(X, is_category, weight, first, partners, rng):
    """Draw for each row of `first` one of its nearest other rows among `partners`; return their
    places there."""
    missing = np.isnan(X)
    center, unit, _, _ = robust_units(X[:, ~is_category], weight)
    Z = (X[:, ~is_category] - center) / np.where(unit > 0, unit, np.inf)
    Z = np.clip(np.where(missing[:, ~is_category], 0.0, Z), -FARTHEST, FARTHEST)
    Z = np.hstack([Z, np.sqrt(OF_MISSING) * missing])
    C = np.where(missing, -1.0, X)[:, is_category]
    near, of_partners = np.empty(len(first), np.intp), np.square(Z[partners]).sum(axis=1)
    n_near = min(N_NEAR, len(partners))
    for start in range(0, len(first), step := max(1, BLOCK // len(partners))):
        some = first[start : start + step]
        distance = (
            np.square(Z[some]).sum(axis=1)[:, None] + of_partners - 2 * Z[some] @ Z[partners].T
        )
        for codes in C.T:
            distance += OF_CATEGORIES * (codes[some, None] != codes[partners])
        distance[distance < SAME] = np.inf
        nearest = np.argpartition(distance, n_near - 1, axis=1)[:, :n_near]
        near[start : start + step] = nearest[
            np.arange(len(some)), rng.integers(0, n_near, len(some))
        ]
    return near


def number_rows(X: np.ndarray) -> np.ndarray:
    """Return a number for each row of X, as `draw_sources` has it: the same where all cells are
    equal, or missing in both."""
    cells = np.where(np.isnan(X), np.nan, X) + 0.0  # one NaN, and one 0
    return np.unique(
        cells.view(np.dtype((np.void, cells.itemsize * cells.shape[1])))[:, 0], return_inverse=True
    )[1]


def take_cells(X: Any, sources: np.ndarray) -> Any:
    """Return rows of the kind of X, a data frame or ndarray, whose cells are those of X in the rows
    `sources`.

    sources : indices of rows, of shape (n_rows,) for whole rows, or (n_rows, n_columns) for each
        cell
    """
    if is_frame(X):
        return rows_of_frame(X, sources) if sources.ndim == 1 else columns_of_rows(X, sources)
    return X[sources] if sources.ndim == 1 else np.take_along_axis(X, sources, axis=0)
