"""Checks of the target y, numbers of one or several outputs or labels; labels as -1 and 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from .._base.checks import (
    as_array,
    as_real,
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
# The hint in errors and warnings where y looks like labels.
ARE_LABELS = "For labels: loss='logistic', or a classifier of sparserf.sklearn"


def encode_target(
    y: ArrayLike,
    loss: Loss,
    there: np.ndarray,
    n_rows: int,
    several_outputs: Literal["together", "apart"] | None = None,
) -> tuple[np.ndarray | None, list[np.ndarray]]:
    """Check y and encode it for a loss: return (classes, targets).

    For a regression classes is None. For labels each class has a target, +1 in rows of the class
    and -1 in others; two classes have one target, +1 in rows of the second.

    there : the indices of the rows of y among all n_rows rows
    several_outputs : None where y must have one output; "together" where a real target may have
        several, (n_outputs, n_rows); "apart" where each of several outputs becomes a target of its
        own
    """
    if not loss.is_classifier:
        target = np.ascontiguousarray(
            check_target(y, n_rows, several_outputs is not None)[..., there]
        )
        if loss.is_quadratic:
            warn_of_labels(target)
        return None, [*target] if several_outputs == "apart" and target.ndim == 2 else [target]
    classes, label = check_labels(y, n_rows, there)
    if len(classes) == 2:
        return classes, [np.where(label == 1, 1.0, -1.0)]
    return classes, [np.where(label == k, 1.0, -1.0) for k in range(len(classes))]


def check_target(y: ArrayLike, n_samples: int, several_outputs: bool = False) -> np.ndarray:
    """Return y as finite float64, (n_samples,), or (n_outputs, n_samples) of several outputs."""
    if isinstance(y, str):
        raise TypeError(
            f"y must be an array, the target of each row, got {y!r}: of a frame, X.pop({y!r})"
        )
    # whatever its categories
    is_categorical = str(getattr(y, "dtype", "")).startswith(("category", "Categorical", "Enum"))
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
    """Warn if a real target has just two values, both whole numbers, as labels have."""
    for y in np.atleast_2d(target):
        low, high = y.min(), y.max()
        if (
            len(y) > 10  # fewer rows may have two values by chance
            and low < high
            and low == round(low)
            and high == round(high)
            and np.all((y == low) | (y == high))
        ):
            warn(
                f"y is {low:g} or {high:g} alone, and loss='squared' takes these as numbers. "
                f"{ARE_LABELS}",
                UserWarning,
            )
            return


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


def check_classes_count(y: ArrayLike, weight: np.ndarray) -> None:
    """Raise a ValueError where a label has rows of weight zero alone: a model without that class
    would say so nowhere.

    weight : the sample weight of each row
    """
    y = as_labels(y)
    if y.ndim > 1 or len(y) != len(weight):  # an error of its own
        return
    lost = np.setdiff1d(y[weight == 0], y[weight > 0])
    if len(lost):
        raise ValueError(
            "y must have rows of positive weight of each of its labels, got none of "
            f"{lost[0].item()!r}: leave its rows out"
        )


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
    y = _flatten_column(as_array(name, y))
    if y.dtype.kind in "OT":
        if y.ndim == 1:
            check_labels_there(name, y)
        if all(isinstance(value, str) for value in y.flat):
            y = np.asarray(y.tolist())
        elif all(is_real_type(type(value)) for value in y.flat):
            plain = np.asarray(y.tolist())
            y = as_real(name, y) if plain.dtype.kind == "O" else plain  # as of Decimals
        else:
            raise TypeError(f"{name} must hold labels of one kind, numbers or strings")
    if y.dtype.kind not in "fiubUS":
        raise TypeError(
            f"{name} must hold labels: numbers, booleans or strings, got dtype {y.dtype}"
        )
    if y.dtype.kind == "f":
        check_finite(name, y)
    return y
