"""Splits of the rows into those to fit and those to hold out.

Users give them as a mask, indices, pairs or a splitter (`read_splits`); otherwise they are folds
(`stratified_folds`), or whole groups are drawn (`draw_groups`). A `Split` is two masks over all
rows. A row may be in neither, as rows later than those held out are, but no group is in both.
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


# Splits in a user's call: the rows to hold out, as a mask or as indices; pairs of rows to fit and
# to hold out; or a splitter.
Splits: TypeAlias = ArrayLike | Iterable[tuple[ArrayLike, ArrayLike]] | Splitter

if TYPE_CHECKING:
    from typing import NoReturn


# Splits and groups that users give


def check_groups(groups: ArrayLike | None, n_rows: int) -> np.ndarray | None:
    """Return the number of each row's group, in the order of the labels, or None for None.

    Labels may be of any kind. Those that cannot be sorted are numbered as they first occur.
    """
    if groups is None:
        return None
    # a list may hold tuples, of which NumPy makes a second dimension
    values = (
        np.fromiter(groups, object, len(groups))
        if isinstance(groups, (list, tuple))
        else as_array("groups", groups)
    )
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
    """Return the splits that a user gives as the argument `name`.

    There must be at least one, and each must have rows in both parts.

    X, y, groups : passed on to a splitter; an X that is not in memory is replaced by one without
        columns
    """
    n_rows = len(y)
    if callable(getattr(given, "split", None)) and not isinstance(given, (str, bytes)):
        is_in_memory = isinstance(X, (np.ndarray, list)) or is_sparse(X) or hasattr(X, "columns")
        is_in_memory &= not type(X).__module__.startswith("dask")
        with warnings.catch_warnings():
            # a splitter may ignore the groups, as `_whole_groups` checks what it returns
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
    """Return whether an argument is a mask or indices, rather than pairs of them."""
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
        return len(given) > 0 and isinstance(given[0], (Number, np.bool_))
    return hasattr(given, "dtype")


def _read_pairs(name, pairs, n_rows):
    """Return the `Split` of each pair, copied as it comes: a generator may reuse its arrays."""
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
    for mask, part in zip(split, ("to fit", "to hold out"), strict=True):
        if not mask.any():
            raise ValueError(f"{name} must have rows {part} in each pair, got none in pair {k}")
    both = np.flatnonzero(split[0] & split[1])
    if len(both):
        raise ValueError(
            f"{name} must have no row in both parts of a pair, got row {both[0]} in both of pair "
            f"{k}"
        )
    return split


def _mask(name, part, rows, n_rows):
    """Return the mask of rows that are given as a mask or as indices.

    part : "to fit" or "to hold out", and of which pair, for errors
    """
    rows = as_array(name, rows)
    if rows.dtype.kind == "O":  # such as the nullable types of pandas
        rows = np.array(rows.tolist())
    if rows.ndim != 1:
        raise ValueError(
            f"{name} must have one dimension in the rows {part}, got shape {rows.shape}"
        )
    if rows.dtype.kind == "b":
        if len(rows) != n_rows:
            raise ValueError(
                f"{name} must have {n_rows} entries in a mask of rows {part}, one a row of X, got "
                f"{len(rows)}"
            )
        return rows.copy()
    if rows.size and rows.dtype.kind not in "iu":
        raise TypeError(
            f"{name} must hold bools or integers in the rows {part}, got dtype {rows.dtype}"
        )
    if rows.size and (rows.min() < 0 or rows.max() >= n_rows):
        raise ValueError(
            f"{name} must lie in [0, {n_rows}) in the rows {part}, got {rows.min()} to {rows.max()}"
        )
    counts = np.bincount(rows.astype(np.intp), minlength=n_rows)
    if rows.size and counts.max() > 1:
        raise ValueError(
            f"{name} must have each row once in the rows {part}, got row {counts.argmax()} "
            f"{counts.max()} times"
        )
    return counts > 0


def _whole_groups(name, splits, groups):
    """Check that no split has rows of one group in both parts, and return the splits."""
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
                    f"{row} and {other} of one group in the two parts of pair {k}"
                )
    return splits


def _raise_not_splits(name, given) -> NoReturn:
    """Raise the TypeError for an argument that is no kind of `Splits`."""
    raise TypeError(
        f"{name} must be a number, the rows to hold out (a mask or indices), pairs (rows to fit, "
        f"rows to hold out), or have a method split(X, y, groups), got {given!r}"
    )


# Folds, and groups that are drawn


def stratified_folds(
    stratum: np.ndarray, n_folds: int, rng: np.random.Generator, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return the fold of each row; each stratum is spread evenly over the folds.

    Rows are shuffled, and those of a stratum are dealt out in turn. Groups stay whole: they are
    assigned one by one, the largest first, each to the fold that keeps the folds, and the strata in
    them, most even in size. Groups of one composition are assigned at once.
    """
    if n_folds > len(stratum):
        raise ValueError(f"cv must be at most the number of rows, {len(stratum)}, got {n_folds}")
    if groups is None:
        order = rng.permutation(len(stratum))
        order = order[np.argsort(stratum[order], kind="stable")]
        fold = np.empty(len(stratum), np.intp)
        fold[order] = np.arange(len(stratum)) % n_folds
        return fold
    group, counts = _counts_in_groups(groups, stratum)
    if n_folds > len(counts):
        raise ValueError(f"cv must be at most the number of groups, {len(counts)}, got {n_folds}")
    kinds, kind = np.unique(counts, axis=0, return_inverse=True)
    kinds, kind = kinds / counts.sum(axis=0), kind.ravel()
    loads = np.zeros((n_folds, counts.shape[1]))
    fold_of_group = np.empty(len(counts), np.intp)
    order = rng.permutation(len(counts))
    order = order[np.argsort(kind[order], kind="stable")]
    of_kind = np.split(order, np.cumsum(np.bincount(kind))[:-1])
    for k in np.argsort(-kinds.sum(axis=1), kind="stable"):
        folds = _emptiest(loads @ kinds[k], float(kinds[k] @ kinds[k]), len(of_kind[k]))
        fold_of_group[of_kind[k]] = folds
        loads += np.bincount(folds, minlength=n_folds)[:, None] * kinds[k]
    return fold_of_group[group]


def _emptiest(growth, more, n):
    """Return the folds of n groups of one composition: each group goes to the fold in which the sum
    of squares of the loads grows least.

    growth : for each fold, the growth by the first group, but for a constant
    more : by how much more each further group makes it grow
    """
    most = min(n, n // len(growth) + 1 + int((growth.max() - growth.min()) / more + 1))
    steps = growth[:, None] + more * np.arange(most)
    return np.argsort(steps, axis=None, kind="stable")[:n] // most


def draw_groups(
    groups: np.ndarray, stratum: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Draw whole groups that have about this share of all rows and of each stratum.

    Return the mask of their rows. Groups come in random order, and one is drawn if it brings the
    shares nearer to `share`, by the sum of squared differences, and leaves rows of each stratum. A
    stratum of which no row was drawn then gives the first group that leaves rows of each stratum,
    unless less than half of all rows would be left. If no group was drawn, the first is that has at
    most half of the rows.
    """
    group, counts = _counts_in_groups(groups, stratum)
    if len(counts) < 2:
        raise ValueError(
            "groups must be at least two, of which one can be held out, got one in all rows of "
            "positive weight"
        )
    total = counts.sum(axis=0)
    drawn = np.zeros(len(counts), bool)
    left, distance = total.copy(), len(total) * share**2
    order = rng.permutation(len(counts))
    for k in order:
        if left[-1] <= (1 - share) * total[-1]:
            break
        after = left - counts[k]
        distance_after = np.sum((1 - after / total - share) ** 2)
        if after.min() > 0 and distance_after < distance:
            drawn[k], left, distance = True, after, distance_after
    for s in np.flatnonzero(left == total):  # strata of which no row is drawn yet
        candidates = [
            k for k in order if not drawn[k] and counts[k, s] and (left - counts[k] > 0).all()
        ]
        if not candidates or left[s] < total[s]:
            continue
        first = candidates[0]
        if left[-1] - counts[first, -1] >= total[-1] / 2:
            drawn[first], left = True, left - counts[first]
    if not drawn.any():
        candidates = [k for k in order if (counts[k] < total).all()]
        if not candidates:
            raise ValueError(
                "groups must leave rows of each class to fit where one group is held out, got none "
                "that does"
            )
        drawn[min(candidates, key=lambda k: counts[k, -1] > total[-1] / 2)] = True
    return drawn[group]


def _counts_in_groups(groups, stratum):
    """Return (the number of each row's group, how many rows of each stratum a group has).

    The counts have a line for each group, and a last column for all strata together.
    """
    labels, group = np.unique(groups, return_inverse=True)
    strata, stratum = np.unique(stratum, return_inverse=True)
    cell = group * len(strata) + stratum
    counts = np.bincount(cell, minlength=len(labels) * len(strata)).reshape(-1, len(strata))
    return group, np.column_stack([counts, counts.sum(axis=1)]).astype(np.float64)
