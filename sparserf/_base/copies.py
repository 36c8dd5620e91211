"""Copies: rows that are equal, as in bootstrap samples and where a rare class was oversampled.

Of two copies one must not be held out while the other is fitted: the noise of the one is that of
the other, so that what is learned by heart looks right. But where columns have few values, rows of
the same values are new observations, which new rows will resemble as well: of two flags and a noisy
y, only a fit that has seen all four kinds of rows says how well these are predicted. `copies_of`
tells copies from such rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .checks import is_sparse
from .warnings import CopiedRowsWarning, warn

if TYPE_CHECKING:
    from .types import DenseOrCSR

# Equal rows that are more than this share of all rows, and do not all have the same y, are no
# copies of one another: rows of zeros alone, for example.
COMMON_SHARE = 0.05
# With fewer different rows than this, none are taken for copies.
FEWEST_DIFFERENT = 10
# A column of numbers tells rows apart if it has at least FEWEST_VALUES values, and at least
# VALUES_OF_ROWS times as many as there are different rows.
FEWEST_VALUES, VALUES_OF_ROWS = 20, 0.5
# Equal rows of different y may be copies only if at least this share of all rows is different. With
# a smaller share the values are few, and must be seen: of y with a step at one of 30 values, 33
# noisy rows each, the error is 20 times as large where all rows of a value are held out together.
MANY_DIFFERENT = 0.25
# Equal rows have the same y if at least this share of them has. In the data set adult, where equal
# rows are different people, .77 have.
SAME_Y = 0.95
# Equal rows are not equal by chance if the values of the columns could make at least this many
# times as many different rows as there are rows.
ROOM = 10.0
# At most this many columns are looked at.
MOST_COLUMNS = 200
# The number of cells that are hashed at a time.
HASHED = 2**18
# The share of copies among the rows above which a warning is issued.
WARNED_SHARE = 0.1


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
    """Return a hash of 64 bits for each cell; 0 for a cell of 0, so that the sum over a row does
    not depend on which zeros are stored."""
    numbers = np.asarray(cells, np.float64) + 0.0  # -0 becomes 0
    numbers = np.where(np.isnan(numbers), np.nan, numbers)  # all NaN get the same bits
    h = numbers.view(np.uint64) ^ keys
    # the mixing function of splitmix64
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
    number = _separate_common_rows(number_rows(X), y)
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


def _separate_common_rows(number, y):
    """Return the numbers of rows, each row of its own number where equal rows are common (see
    COMMON_SHARE)."""
    is_common = np.bincount(number) > COMMON_SHARE * len(number)
    is_common &= np.bincount(number[~_has_y_of_first(number, y)], minlength=len(is_common)) > 0
    own = np.where(is_common[number], len(is_common) + np.arange(len(number)), number)
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
    """Return a number for each row, equal for rows that a chain of equal numbers and shared groups
    connects; groups : the group of each row, or None."""
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
    if n_copies > WARNED_SHARE * n:
        warn(
            f"{n_copies} of {n} rows are equal to one before them in all columns of X: equal rows "
            "are held out together, so that none is judged by its copy; where rows were copied, "
            "give each once, with the number of its copies as sample_weight; where they are "
            "observations of their own, say so by "
            "warnings.simplefilter('ignore', sparserf.CopiedRowsWarning)",
            CopiedRowsWarning,
        )
