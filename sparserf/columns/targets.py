"""Checks of the target y, numbers of one or several outputs or labels; labels as -1 and 1."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from .._base.checks import (
    LARGEST_EXACT,
    as_array,
    as_real,
    as_strings,
    check_finite,
    check_labels_there,
    check_length,
    check_real,
    check_sample_weight,
    is_real_type,
    real_rows,
)
from .._base.warnings import warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..losses.base import Loss

# The argument `class_weight`: weights of the classes by label.
ClassWeight: TypeAlias = Literal["balanced"] | Mapping[Any, float] | None
# What errors and warnings advise where y looks like labels.
ARE_LABELS = (
    "For labels: loss='logistic', or of several classes loss='multinomial', or a classifier of "
    "sparserf.sklearn"
)


def encode_target(
    y: ArrayLike,
    loss: Loss,
    there: np.ndarray,
    n_rows: int,
    several_outputs: Literal["together", "apart"],
) -> tuple[np.ndarray | None, list[np.ndarray]]:
    """Check y and encode it for a loss: return (classes, targets).

    For a regression classes is None. For labels each class has a target, +1 in rows of the class
    and -1 in others; two classes have one target, +1 in rows of the second. Three or more classes
    in order have one, too: their places.

    A loss of several outputs for one y has a target for each of them.

    there : the indices of the rows of positive weight among all n_rows rows
    several_outputs : whether several outputs of a real y are one target, (n_outputs, n_rows), or
        each a target of its own
    """
    if loss.n_outputs > 1:
        return None, [check_target(y, n_rows)[there]] * loss.n_outputs
    if not loss.is_classifier:
        target = np.ascontiguousarray(check_target(y, n_rows, several_outputs=True)[..., there])
        return None, [*target] if several_outputs == "apart" and target.ndim == 2 else [target]
    check = check_ordered_labels if loss.is_ordered else check_labels
    classes, label = check(y, n_rows, there)
    if len(classes) == 2:
        return classes, [np.where(label == 1, 1.0, -1.0)]
    if loss.is_ordered:
        return classes, [label.astype(np.float64)]
    return classes, [np.where(label == k, 1.0, -1.0) for k in range(len(classes))]


def check_target(y: ArrayLike, n_samples: int, several_outputs: bool = False) -> np.ndarray:
    """Return y as finite float64, (n_samples,), or (n_outputs, n_samples) of several outputs."""
    if isinstance(y, str):
        raise TypeError(
            f"y must be an array, the target of each row, got {y!r}: of a frame, X.pop({y!r})"
        )
    is_categorical = _is_categorical(y)  # whatever its categories
    y = _flatten_column(as_array("y", y))
    has_strings = y.dtype.kind in "UST" or (
        y.dtype.kind == "O" and any(isinstance(value, str) for value in y.flat)
    )
    if has_strings or is_categorical:
        first = (
            next((value for value in y.flat if isinstance(value, str)), "a categorical")
            if y.size
            else "none"
        )
        raise TypeError(
            f"y must hold real numbers, the target of a regression, got {str(first)!r}. "
            f"{ARE_LABELS}"
        )
    if not several_outputs or y.ndim != 2:
        return real_rows("y", y, n_samples)
    y = as_real("y", y).astype(np.float64)
    if len(y) != n_samples or y.shape[1] == 0:
        raise ValueError(
            f"y must have shape ({n_samples},) or ({n_samples}, n_outputs), got {y.shape}"
        )
    check_finite("y", y)
    return np.ascontiguousarray(y.T)


def _flatten_column(y: np.ndarray) -> np.ndarray:
    """Return y; if it is a single column, as a vector, with a warning."""
    if y.ndim != 2 or y.shape[1] != 1:
        return y
    warn(
        f"y has shape {y.shape}, one column, and is taken as a vector: use y.ravel(), or of a "
        "frame y.squeeze()",
        UserWarning,
    )
    return y[:, 0]


def warn_of_labels(target: np.ndarray) -> None:
    """Warn if a real target looks like labels, as `are_like_labels` says."""
    for y in np.atleast_2d(target):
        if not (y == np.round(y)).all():
            continue
        values, counts = np.unique(y, return_counts=True)
        if are_like_labels(values, counts):
            first, last = ", ".join(f"{value:g}" for value in values[:-1]), f"{values[-1]:g}"
            warn(
                f"y is {first} or {last} alone, and loss='squared' takes these as numbers. "
                f"{ARE_LABELS}. For numbers: loss=sparserf.losses.Squared(), without this warning",
                UserWarning,
            )
            return


def are_like_labels(values: np.ndarray, counts: np.ndarray) -> bool:
    """Return whether whole numbers, which occur `counts` times, look like codes of classes.

    They do if they are two; up to 4 that follow one another from -1, 0 or 1; or up to 10 that
    follow one another from 0 or 1, of which the rarest is at least half as frequent as the most
    frequent. Of 5 or more values, counts, whose large values are rare, and ratings, whose extreme
    values are rare, do not.
    """
    k, low = len(values), values[0]
    if not 2 <= k <= 10 or counts.sum() <= 5 * k:  # fewer rows may have few values by chance
        return False
    if k == 2:
        return True
    if values[-1] - low != k - 1:
        return False
    return low in (-1, 0, 1) if k <= 4 else low in (0, 1) and counts.min() >= counts.max() / 2


def check_labels(y: ArrayLike, n_samples: int, there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (the classes, the index of each row's class) of the rows at the indices `there`.

    There must be at least two classes.
    """
    y = as_labels(y)
    if y.ndim > 1:
        raise ValueError(
            f"y must be one column of labels, shape ({n_samples},), got {y.shape}: fit a model to "
            "each column"
        )
    check_length("y", y, n_samples)
    y = y[there]
    classes, label = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "y must have at least two classes in rows of positive weight, got only "
            f"{classes[0].item()!r}"
        )
    is_whole = y.dtype.kind != "f" or bool(np.all(classes == np.round(classes)))
    if len(classes) > (100 if is_whole else 10) and len(classes) > len(there) / 2:
        raise ValueError(
            f"y has {len(classes)} classes in {len(there)} rows: is it a target for loss='squared'?"
        )
    return classes, label


def check_ordered_labels(
    y: ArrayLike, n_samples: int, there: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what `check_labels` does, with the classes in their order: numbers ascending,
    categories in the order of their levels."""
    classes, label = check_labels(y, n_samples, there)
    levels = levels_in_order(y)
    if levels is not None:
        order = np.argsort(places_of(levels, classes), kind="stable")
        return classes[order], np.argsort(order)[label]
    if classes.dtype.kind in "US" or _is_categorical(y):
        what = "categories" if _is_categorical(y) else f"strings, such as {classes[0].item()!r},"
        raise TypeError(
            f"y must have classes in an order for loss='ordinal', got {what} without one: give "
            "numbers, pandas.Categorical(y, levels, ordered=True) with the levels from the lowest "
            "to the highest, or a series of polars.Enum(levels)"
        )
    return classes, label


def levels_in_order(y: Any) -> np.ndarray | None:
    """Return the levels of an ordered categorical of pandas or of an Enum of polars, in their
    order; None for all else."""
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "ordered", False) or str(dtype).startswith("Enum"):
        return as_labels(dtype.categories.to_numpy(), "the levels of y")
    return None


def _is_categorical(y):
    """Return whether y is a categorical of pandas or polars."""
    return str(getattr(y, "dtype", "")).startswith(("category", "Categorical", "Enum"))


def places_of(classes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the place of each label among classes in any order, -1 where it is none of them."""
    order = np.argsort(classes, kind="stable")
    place = order[np.searchsorted(classes, labels, sorter=order).clip(max=len(classes) - 1)]
    return np.where(classes[place] == labels, place, -1)


def label_indices(classes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the index of each label among the classes of a model, which must know it."""
    index = {label: k for k, label in enumerate(classes.tolist())}
    different, place = np.unique(labels, return_inverse=True)
    found = np.array([index.get(label, -1) for label in different.tolist()], int)[place]
    if (found < 0).any():
        unknown = labels[found < 0][0].item()
        raise ValueError(f"y must hold labels that the model knows, got {unknown!r}")
    return found


def weighted_by_class(
    sample_weight: ArrayLike | None,
    class_weight: ClassWeight,
    y: ArrayLike,
    loss: Loss,
    n_rows: int,
) -> np.ndarray:
    """Return the sample weights, not yet scaled, times the weight of each row's class.

    Classes are those of rows of positive weight, as for scikit-learn's `compute_class_weight`.
    """
    if not isinstance(class_weight, (str, Mapping)):
        raise TypeError(
            "class_weight must be 'balanced', a mapping of labels to weights, or None, got "
            f"{class_weight!r}"
        )
    if isinstance(class_weight, str) and class_weight != "balanced":
        raise ValueError(
            "class_weight must be 'balanced', a mapping of labels to weights, or None, got "
            f"{class_weight!r}"
        )
    if not loss.is_classifier:
        raise ValueError(
            f"class_weight must be None for loss={loss.name!r}, which has no classes, got "
            f"{class_weight!r}"
        )
    there = np.flatnonzero(check_sample_weight(sample_weight, n_rows))
    weight = (
        np.ones(n_rows)
        if sample_weight is None
        else real_rows("sample_weight", sample_weight, n_rows)
    )
    weight = np.ldexp(weight, -np.frexp(weight.max())[1])  # exact, and no product overflows
    classes, label = check_labels(y, n_rows, there)
    if isinstance(class_weight, str):
        counts = np.bincount(label, weights=weight[there])
        of_class = counts.sum() / (len(classes) * counts)
    else:
        of_class = _weights_of_classes(class_weight, classes.tolist())
    weight[there] *= of_class[label]
    return weight


def _weights_of_classes(class_weight, classes):
    """Return the weight of each class in a mapping, 1 for one that it does not name.

    A label that is not among the classes is an error, unless the mapping names all of these: some
    rows may lack a class.
    """
    unknown = [label for label in class_weight if label not in classes]
    unnamed = [label for label in classes if label not in class_weight]
    if unknown and unnamed:
        raise ValueError(
            f"class_weight must name labels of y, got {unknown[0]!r}: y has "
            f"{', '.join(map(repr, classes))}"
        )
    weights = np.array(
        [check_real(f"class_weight[{c!r}]", class_weight.get(c, 1.0), 0) for c in classes]
    )
    if not weights.any():
        raise ValueError(f"class_weight must be positive for some class of y, got {class_weight!r}")
    return weights


def as_labels(y: ArrayLike, name: str = "y") -> np.ndarray:
    """Return y as an array of numbers, booleans or strings, none missing.

    Objects must all be strings or all be numbers.

    name : how errors name y
    """
    labels = as_array(name, y)
    if (
        isinstance(y, (list, tuple))
        and labels.dtype.kind == "f"
        and any(isinstance(label, Integral) and abs(label) > LARGEST_EXACT for label in y)
    ):
        labels = np.array(y, object)  # as floats, different ones may be equal
    labels = _flatten_column(labels)
    if labels.dtype.kind in "OT":
        if labels.ndim == 1:
            check_labels_there(name, labels)
        labels = _as_plain_labels(name, labels)
    if labels.dtype.kind not in "fiubUS":
        raise TypeError(
            f"{name} must hold labels: numbers, booleans or strings, got dtype {labels.dtype}"
        )
    if labels.dtype.kind == "f":
        check_finite(name, labels)
    return labels


def _as_plain_labels(name, objects):
    """Return an array of objects, which are labels, as an array of strings or numbers.

    Raise a TypeError for labels of other kinds, a ValueError where different labels become equal.
    """
    labels = list(objects.flat)
    if all(is_real_type(type(label)) for label in labels):
        plain = np.asarray(objects.tolist())
        if plain.dtype.kind in "iub":
            return plain
        _check_apart(name, labels)
        return as_real(name, objects)
    plain = as_strings(objects.astype(object))
    if plain.dtype.kind != "O":
        return plain
    first = next((kind for kind in (str, bytes) if isinstance(labels[0], kind)), None)
    of_first = is_real_type if first is None else lambda kind: issubclass(kind, first)
    others = [label for label in labels if not of_first(type(label))]
    if not others:
        cut = next(label for label in labels if label[-1:] in ("\0", b"\0"))
        raise ValueError(
            f"{name} must hold labels that end in no null character, which NumPy cuts off, got "
            f"{cut!r}"
        )
    raise TypeError(f"{name} must hold labels of one kind, numbers or strings, got {others[0]!r}")


def _check_apart(name, labels):
    """Check that different numbers are different as float64, too."""
    label_of = {}
    for label in dict.fromkeys(labels):
        try:
            other = label_of.setdefault(float(label), label)
        except OverflowError:  # infinite numbers are refused elsewhere
            continue
        if other != label:
            raise ValueError(
                f"{name} must hold labels that are different numbers of 64 bits, got {other!r} and "
                f"{label!r}: make strings of them"
            )
