"""Copies: rows that are equal, as in bootstrap samples and where a rare class was oversampled.

Of two copies one must not be held out while the other is fitted: the noise of the one is that of
the other, so that what is learned by heart looks right. But where columns have few values, rows of
the same values are new observations, which new rows will resemble as well: of two flags and a noisy
y only fits that have seen all four kinds of rows say how well these are predicted. `copies_of`
tells the two apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .checks import is_sparse
from .warnings import CopiedRowsWarning, warn

if TYPE_CHECKING:
    from .types import DenseOrCSR

# A row that so large a share of all rows equals, with another y, is a level: such as zeros alone.
LARGE = 0.05
# Of fewer different rows none can be spared.
FEWEST_DIFFERENT = 10
# A column of numbers tells rows apart if it has so many values, and so many times the number of
# different rows.
FEWEST_VALUES, VALUES_OF_ROWS = 20, 0.5
# Where this share of all rows is different, new rows will be new, too. With fewer, a step of y in
# one of 30 values, of 33 rows each with noise, has 20 times the error if values are held out whole.
MANY_DIFFERENT = 0.25
# Rows have the y of their equals if this share of them has: .77 of adult's, natural repeats.
SAME_Y = 0.95
# The columns could make so many times as many different rows: equal by chance rows are not.
ROOM = 10.0
# At most so many columns are looked at.
MOST_COLUMNS = 200
# Numbers of rows that are hashed at a time.
HASHED = 2**18
# The share of the rows above which copies are worth a warning.
WORTH_A_WORD = 0.1


def number_rows(X: DenseOrCSR) -> np.ndarray:
    """Return a number for each row, (n_rows,), equal for equal rows.

    Cells are equal that are missing in both, and 0 is -0. Different rows have the same hash of 64
    bits, and so the same number, by a chance of n_rows**2 / 2**65. One pass over X; no copy of it.
    """
    n, d = X.shape
    keys = np.random.default_rng(0).integers(2**64, size=d, dtype=np.uint64)
    hashes = np.zeros(n, np.uint64)
    step = max(1, HASHED // max(1, X.nnz // max(1, n) if is_sparse(X) else d))
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        if is_sparse(X):
            part = X[rows]
            each = _hashes(part.data, keys[part.indices])
            line = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
            np.add.at(hashes[rows], line, each)
        else:
            hashes[rows] = _hashes(X[rows], keys).sum(axis=1)
    return np.unique(hashes, return_inverse=True)[1]


def _hashes(cells, keys):
    """Return a hash of 64 bits for each cell, 0 for a cell of 0: a sum over a row does not see
    which zeros are stored."""
    numbers = np.asarray(cells, np.float64) + 0.0  # one 0
    numbers = np.where(np.isnan(numbers), np.nan, numbers)  # one NaN
    h = numbers.view(np.uint64) ^ keys
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        h = (h ^ (h >> np.uint64(shift))) * np.uint64(factor)
    return np.where(numbers == 0, np.uint64(0), h ^ (h >> np.uint64(31)))


def copies_of(
    X: DenseOrCSR, y: np.ndarray, is_category: np.ndarray | None = None
) -> np.ndarray | None:
    """Return the number of each row, equal for rows that are copies of one another; None where no
    rows are.

    Equal rows are copies where a column of numbers tells nearly all different rows apart, and these
    are many, or equal rows have the same y; and where columns have few values, if equal rows have
    the same y although the columns could make many more rows.

    X : the rows as numbers, NaN where a cell is missing
    y : the target, its rows along the first axis
    is_category : a mask of the columns that hold numbers of categories; None: none do
    """
    number = _without_levels(number_rows(X), y)
    different, first = np.unique(number, return_index=True)
    if not FEWEST_DIFFERENT <= len(different) < len(number):
        return None
    is_category = np.zeros(X.shape[1], bool) if is_category is None else is_category
    n_copies = len(number) - len(different)
    n_same = np.count_nonzero(_has_y_of_first(number, y)) - len(different)
    has_same_y = n_same >= SAME_Y * n_copies
    if not (has_same_y or len(different) >= MANY_DIFFERENT * len(number)):
        return None
    room, some = 0.0, _some_columns(X)
    if is_sparse(X):
        X = X[first].tocsc()
    for j in some:
        column = X[:, [j]].toarray() if is_sparse(X) else X[first, j]
        n_values = len(np.unique(column))
        tells_apart = n_values >= max(FEWEST_VALUES, VALUES_OF_ROWS * len(different))
        if tells_apart and not is_category[j]:
            return number
        room += np.log(n_values)
    return number if has_same_y and room >= np.log(ROOM * len(number)) else None


def _has_y_of_first(number, y):
    """Return whether each row has the y of the first that is equal to it."""
    _, first, place = np.unique(number, return_index=True, return_inverse=True)
    return (y == y[first[place]]).reshape(len(y), -1).all(axis=1)


def _without_levels(number, y):
    """Return the numbers of rows, where those of a level are on their own."""
    of_level = np.bincount(number) > LARGE * len(number)
    of_level &= np.bincount(number[~_has_y_of_first(number, y)], minlength=len(of_level)) > 0
    own = np.where(of_level[number], len(of_level) + np.arange(len(number)), number)
    return np.unique(own, return_inverse=True)[1]


def _some_columns(X):
    """Return the columns to look at: of many, those of most entries in CSR, else evenly spaced."""
    d = X.shape[1]
    if d <= MOST_COLUMNS:
        return np.arange(d)
    if is_sparse(X):
        counts = np.bincount(X.indices, minlength=d)
        return np.sort(np.argsort(-counts, kind="stable")[:MOST_COLUMNS])
    return np.arange(MOST_COLUMNS) * d // MOST_COLUMNS


def joined(number: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Return numbers under which rows are together that are so by their own numbers or by a group
    (or None)."""
    if groups is None:
        return number
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components  # slow to import

    n = number.max() + 1
    edges = coo_array(
        (np.ones(len(number)), (number, n + groups)), shape=(n + groups.max() + 1,) * 2
    )
    return connected_components(edges, directed=False)[1][number]


def warn_of_copies(number: np.ndarray | None) -> None:
    """Warn where more than a tenth of the rows are copies of others.

    number : as `copies_of` returns it
    """
    if number is None:
        return
    n, n_copies = len(number), len(number) - len(np.unique(number))
    if n_copies > WORTH_A_WORD * n:
        warn(
            f"{n_copies} of {n} rows are equal to one before them in all columns of X: equal rows "
            "are held out together, so that none is judged by its copy; where rows were copied, "
            "give each once, with the number of its copies as sample_weight; where they are "
            "observations of their own, say so by "
            "warnings.simplefilter('ignore', sparserf.CopiedRowsWarning)",
            CopiedRowsWarning,
        )
