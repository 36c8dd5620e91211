"""Made rows: rows like those of a table, each cell of which comes from one of two near rows.

A made row has only cells that occur in their columns: categories stay categories, missing cells are
missing, whole numbers are whole, and nothing leaves the bounds. Since the two rows are near, a
relation between columns that holds for near rows about holds in the made row, too.

The squared distance of two rows is a sum over the columns: of squared differences of numbers in
robust units, 1/2 for different categories, and 4 for a cell that is missing in one row alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.random import draw_rows
from .encodings import robust_units
from .frames import columns_of_rows, is_frame, rows_of_frame

if TYPE_CHECKING:
    from .encoder import ColumnEncoder

# The second row is drawn from this many nearest rows of the first.
N_NEAR = 30
# Near rows are sought among at most this many rows, a random sample of more.
MOST_PARTNERS = 4_000
# The number of distances that are computed at a time.
DISTANCES = 2**20


def draw_sources(
    X: np.ndarray,
    is_category: np.ndarray,
    weight: np.ndarray,
    n_made: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw the rows from which the cells of made rows come, as indices (n_made, n_columns).

    X : float ndarray of shape (n_rows, n_columns), NaN where a cell is missing, a category as the
        number of its level
    is_category : whether each column is one of categories
    weight : positive weights of the rows, which count in robust units

    Time O(min(n_made, n_rows) n_columns min(n_rows, MOST_PARTNERS)).
    """
    first = rng.integers(0, len(X), n_made)
    partners = (
        np.arange(len(X)) if len(X) <= MOST_PARTNERS else draw_rows(len(X), MOST_PARTNERS, rng)
    )
    second = partners[_draw_near(X, is_category, weight, first, partners, rng)]
    from_first = rng.random((n_made, X.shape[1])) < 0.5
    return np.where(from_first, first[:, None], second[:, None])


def with_made_rows(
    X: np.ndarray, weight: np.ndarray, encoder: ColumnEncoder | None, n_made: int, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return (encoded rows with made rows below them, the weights of all).

    encoder : the encoder of the rows: all encodings of a column come from the cell of one row;
        None: each encoding is a column
    share : the weight of all made rows, divided by that of the others
    """
    numbers, rng = np.zeros(X.shape[1], bool), np.random.default_rng(0)
    sources = draw_sources(X, numbers, weight, n_made, rng)
    if encoder is not None:
        _, first, place = np.unique(encoder.column, return_index=True, return_inverse=True)
        sources = sources[:, first[place]]
    made = np.full(n_made, share * weight.sum() / n_made)
    return np.concatenate([X, take_cells(X, sources)]), np.concatenate([weight, made])


def _draw_near(X, is_category, weight, first, partners, rng):
    """Draw one of the nearest rows among `partners` for each row of `first`; return its place."""
    farthest = 10.0  # numbers are clipped at this many units from the centre of their column
    of_categories, of_missing = 0.5, 4.0  # squared distances: see the head of this file
    same = 1e-9  # rows at a squared distance below this are equal, and make no new row
    missing = np.isnan(X)
    center, unit, _, _ = robust_units(X[:, ~is_category], weight)
    Z = (X[:, ~is_category] - center) / np.where(unit > 0, unit, np.inf)
    Z = np.clip(np.where(missing[:, ~is_category], 0.0, Z), -farthest, farthest)
    Z = np.hstack([Z, np.sqrt(of_missing) * missing[:, missing.any(axis=0)]])
    C = np.where(missing, -1.0, X)[:, is_category]
    P = Z[partners]
    # the product with (z, |z|^2, 1) is |z|^2 + |p|^2 - 2 z'p
    of_partners = np.column_stack([-2 * P, np.ones(len(P)), np.square(P).sum(axis=1)]).T
    rows, place = np.unique(first, return_inverse=True)
    n_near = min(N_NEAR, len(partners))
    nearest = np.empty((len(rows), n_near), np.int32)
    step = max(1, DISTANCES // len(partners))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        z = Z[block]
        z = np.column_stack([z, np.square(z).sum(axis=1), np.ones(len(z))])
        distance = z @ of_partners
        for codes in C.T:
            distance += of_categories * (codes[block, None] != codes[partners])
        distance[distance < same] = np.inf
        nearest[start : start + step] = np.argpartition(distance, n_near - 1, axis=1)[:, :n_near]
    return nearest[place, rng.integers(0, n_near, len(first))]


def take_cells(X: Any, sources: np.ndarray) -> Any:
    """Return rows, of the kind of X, a data frame or ndarray, with cells of the rows `sources`.

    sources : indices of rows, of shape (n_rows,) for whole rows, or (n_rows, n_columns) for each
        cell
    """
    if is_frame(X):
        return rows_of_frame(X, sources) if sources.ndim == 1 else columns_of_rows(X, sources)
    return X[sources] if sources.ndim == 1 else np.take_along_axis(X, sources, axis=0)
