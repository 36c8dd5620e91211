"""Which rows are fitted and which are held out: as the user gives them, in folds, or by whole
groups.

A `Split` says it by two masks over all rows. Rows that are in neither are left out, as rows later
than those held out are. Rows of a group are never in both.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .calls import pairs_from
from .checks import as_array, check_labels_there, is_sparse

# The masks of the rows to fit and of the rows to hold out, both of shape (n_rows,).
Split: TypeAlias = "tuple[np.ndarray, np.ndarray]"


class Splitter(Protocol):
    """The interface of scikit-learn's splitters, such as `GroupKFold` and `TimeSeriesSplit`."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        """Yield pairs of the indices of rows to fit and of rows to hold out."""
        ...


# What users give: the rows to hold out, as a mask or by their indices; pairs of rows to fit and to
# hold out; or a splitter.
Splits: TypeAlias = ArrayLike | Iterable[tuple[ArrayLike, ArrayLike]] | Splitter

if TYPE_CHECKING:
    from typing import NoReturn


# What the user gives


def check_groups(groups: ArrayLike | None, n_rows: int) -> np.ndarray | None:
    """Return the number of the group of each row, counted in the order of their labels; None for
    None.

    Labels may be of any kind. Those that have no order among each other are counted in the order in
    which they come.
    """
    if groups is None:
        return None
    values = as_array("groups", groups)
    if values.shape != (n_rows,):
        raise ValueError(
            f"groups must have an entry for each of the {n_rows} rows of X, got shape "
            f"{values.shape}"
        )
    check_labels_there("groups", values)
    if values.dtype.kind not in "OT":
        return np.unique(values, return_inverse=True)[1]
    labels = values.tolist()
    try:
        known = dict.fromkeys(labels)
    except TypeError as error:
        raise TypeError(f"groups must hold labels, such as numbers or strings: {error}") from None
    try:
        known = sorted(known)
    except TypeError:
        pass
    number = {label: k for k, label in enumerate(known)}
    return np.array([number[label] for label in labels], np.intp)


def read_splits(
    name: str, given: Splits, X: Any, y: np.ndarray, groups: ArrayLike | None = None
) -> list[Split]:
    """Return the splits that the user gives as the argument of this name; at least one, each with
    rows in both parts.

    X, y, groups : what a splitter is given; an X that is not in memory is replaced by one of no
        columns
    """
    n_rows = len(y)
    if callable(getattr(given, "split", None)) and not isinstance(given, (str, bytes)):
        is_in_memory = isinstance(X, (np.ndarray, list)) or is_sparse(X) or hasattr(X, "columns")
        is_in_memory &= not type(X).__module__.startswith("dask")
        with warnings.catch_warnings():  # `_whole_groups` sees to it that they are not
            warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
            pairs = given.split(X if is_in_memory else np.empty((n_rows, 0)), y, groups)
            splits = _read_pairs(f"{name}.split", pairs, n_rows)
    elif _holds_scalars(given):
        held = _mask(name, "to hold out", given, n_rows)
        if not held.any() or held.all():
            raise ValueError(
                f"{name} must hold out some of the {n_rows} rows and leave some, got {held.sum()} "
                "to hold out"
            )
        return _whole_groups(name, [(~held, held)], groups)
    elif isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        _raise_not_splits(name, given)
    else:
        splits = _read_pairs(name, given, n_rows)
    if not splits:
        raise ValueError(
            f"{name} must have at least one pair of rows to fit and rows to hold out, got none of "
            f"{given!r}"
        )
    return _whole_groups(name, splits, groups)


def _holds_scalars(given):
    """Return whether what the user gives is a mask or indices, and not pairs of these."""
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
        return len(given) > 0 and (isinstance(given[0], (Number, np.bool_)))
    return hasattr(given, "dtype")


def _read_pairs(name, pairs, n_rows):
    """Return the `Split` of each pair, read as it comes: a generator may use its arrays again."""
    return [
        _read_pair(name, k, pair, n_rows) for k, pair in enumerate(pairs_from(name, pairs, n_rows))
    ]


def _read_pair(name, k, pair, n_rows):
    """Return the `Split` of pair k."""
    try:
        fitted, held = pair
    except (TypeError, ValueError):
        _raise_not_splits(name, pair)
    split = (
        _mask(name, f"to fit of pair {k}", fitted, n_rows),
        _mask(name, f"to hold out of pair {k}", held, n_rows),
    )
    for part, what in zip(split, ("to fit", "to hold out"), strict=True):
        if not part.any():
            raise ValueError(f"{name} must have rows {what} in each pair, got none in pair {k}")
    both = np.flatnonzero(split[0] & split[1])
    if len(both):
        raise ValueError(
            f"{name} must have no row in both parts of a pair, got row {both[0]} in both of pair "
            f"{k}"
        )
    return split


def _mask(name, what, rows, n_rows):
    """Return the mask of rows that are given by a mask or by their indices; what : which rows these
    are, for errors."""
    rows = as_array(name, rows)
    if rows.dtype.kind == "O":  # such as the nullable types of pandas
        rows = np.array(rows.tolist())
    if rows.ndim != 1:
        raise ValueError(
            f"{name} must have one dimension in the rows {what}, got shape {rows.shape}"
        )
    if rows.dtype.kind == "b":
        if len(rows) != n_rows:
            raise ValueError(
                f"{name} must have {n_rows} entries in a mask of rows {what}, one a row of X, got "
                f"{len(rows)}"
            )
        return rows.copy()
    if rows.size and rows.dtype.kind not in "iu":
        raise TypeError(
            f"{name} must hold bools or integers in the rows {what}, got dtype {rows.dtype}"
        )
    if rows.size and (rows.min() < 0 or rows.max() >= n_rows):
        raise ValueError(
            f"{name} must lie in [0, {n_rows}) in the rows {what}, got {rows.min()} to {rows.max()}"
        )
    counts = np.bincount(rows.astype(np.intp), minlength=n_rows)
    if rows.size and counts.max() > 1:
        raise ValueError(
            f"{name} must have each row once in the rows {what}, got row {counts.argmax()} "
            f"{counts.max()} times"
        )
    return counts > 0


def _whole_groups(name, splits, groups):
    """Return the splits, after a check that none of them has rows of one group in both parts."""
    if groups is not None:
        number = check_groups(groups, len(splits[0][0]))
        for k, (fitted, held) in enumerate(splits):
            both = np.intersect1d(number[fitted], number[held])
            if len(both):
                row, other = (
                    np.flatnonzero(part & (number == both[0]))[0] for part in (fitted, held)
                )
                raise ValueError(
                    f"{name} must have the rows of a group in one part of each pair, got rows "
                    f"{row} and {other} of one group "
                    f"in the two parts of pair {k}"
                )
    return splits


def _raise_not_splits(name, given) -> NoReturn:
    """Raise the TypeError for what is nothing of what the user may give."""
    raise TypeError(
        f"{name} must be a number, the rows to hold out (a mask or indices), pairs (rows to fit, "
        "rows to hold out), or have a "
        f"method split(X, y, groups), got {given!r}"
    )


# Folds and whole groups


def stratified_folds(
    stratum: np.ndarray, n_folds: int, rng: np.random.Generator, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return the fold of each row, so that all folds have about as many rows of each stratum.

    Rows are shuffled and dealt out in turn, stratum by stratum. Whole groups are assigned one after
    the other, the largest first, each to the fold where it makes the sizes of the folds, and of the
    strata in them, the most even.
    """
    if groups is None:
        if n_folds > len(stratum):
            raise ValueError(
                f"cv must be at most the number of rows, {len(stratum)}, got {n_folds}"
            )
        order = rng.permutation(len(stratum))
        order = order[np.argsort(stratum[order], kind="stable")]
        fold = np.empty(len(stratum), np.intp)
        fold[order] = np.arange(len(stratum)) % n_folds
        return fold
    group, counts = _counts_in_groups(groups, stratum)
    if n_folds > len(counts):
        raise ValueError(f"cv must be at most the number of groups, {len(counts)}, got {n_folds}")
    counts = counts / counts.sum(axis=0)
    loads, fold_of_group = np.zeros((n_folds, counts.shape[1])), np.empty(len(counts), np.intp)
    order = rng.permutation(len(counts))
    for k in order[np.argsort(-counts[order].sum(axis=1), kind="stable")]:
        # where the sum of squares of the loads grows least
        fold_of_group[k] = np.argmin(loads @ counts[k])
        loads[fold_of_group[k]] += counts[k]
    return fold_of_group[group]


def draw_groups(
    groups: np.ndarray, stratum: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Draw whole groups that together have about this share of the rows, and of the rows of each
    stratum; return their mask.

    Groups come in random order. One is drawn where it brings the shares nearer to what they are to
    be, in their sum of squares. Of each stratum some rows are left, and some are drawn where a
    group has some, leaves some, and leaves half of all rows. Where all groups are too large, the
    first is drawn that has at most half of the rows.
    """
    group, counts = _counts_in_groups(groups, stratum)
    if len(counts) < 2:
        raise ValueError(
            "groups must be at least two, of which one can be held out, got one in all rows of "
            "positive weight"
        )
    total = counts.sum(axis=0)
    drawn, left, distance = np.zeros(len(counts), bool), total.copy(), len(total) * share**2
    order = rng.permutation(len(counts))
    for k in order:
        if left[-1] <= (1 - share) * total[-1]:
            break
        after = left - counts[k]
        distance_after = np.sum((1 - after / total - share) ** 2)
        if after.min() > 0 and distance_after < distance:
            drawn[k], left, distance = True, after, distance_after
    for s in np.flatnonzero(left == total):  # strata of which no row is drawn yet
        some = [k for k in order if not drawn[k] and counts[k, s] and (left - counts[k] > 0).all()]
        if some and left[s] == total[s] and left[-1] - counts[some[0], -1] >= total[-1] / 2:
            drawn[some[0]], left = True, left - counts[some[0]]
    if not drawn.any():
        some = [k for k in order if (counts[k] < total).all()]
        if not some:
            raise ValueError(
                "groups must leave rows of each class to fit where one group is held out, got none "
                "that does"
            )
        drawn[min(some, key=lambda k: counts[k, -1] > total[-1] / 2)] = True
    return drawn[group]


def _counts_in_groups(groups, stratum):
    """Return (the number of the group of each row, the rows of each stratum and of all strata in
    each group)."""
    n_groups, group = np.unique(groups, return_inverse=True)
    strata, stratum = np.unique(stratum, return_inverse=True)
    counts = np.bincount(
        group * len(strata) + stratum, minlength=len(n_groups) * len(strata)
    ).reshape(-1, len(strata))
    return group, np.column_stack([counts, counts.sum(axis=1)]).astype(np.float64)
