"""Checks of arguments, which return them as the library computes with them, or raise an error.

Types of arrays and matrices are checked here and in `csr.py`, types of data frames in
`columns/frames.py`; `as_rows` (`rows/`) chooses by the type of X how its rows are stored.
"""

from __future__ import annotations

import dataclasses
import sys
from decimal import Decimal
from numbers import Complex, Integral, Number, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.checks import are_finite
from .arrays import is_foreign, to_host
from .csr import canonical_csr
from .warnings import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sized

    from .types import Array, DenseOrCSR

# The names of the types of missing cells, in any library; a missing number may be NaN instead.
MISSING = {"NoneType", "NAType", "NaTType"}
# Up to this size all integers are numbers of float64.
LARGEST_EXACT = 2**53


def is_sparse(X: object) -> bool:
    """Return whether X is a sparse matrix or array of SciPy.

    scipy.sparse is not imported for this: where X is such a matrix, the user has imported it.
    """
    # tested first: predicting a single row takes little longer than a few such tests
    if type(X) is np.ndarray:
        return False
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(X)


def check_X(
    X: Any, n_features: int | None = None, known_finite: bool = False, may_miss: bool = False
) -> DenseOrCSR:
    """Return X as a finite float32 or float64 ndarray of any strides, or as a canonical CSR matrix.

    n_features : the number of columns that X must have; None: any
    known_finite : whether X is known to be finite, and is not checked for it
    may_miss : whether a dense X may have NaN
    """
    if is_sparse(X):
        warn_of_lost_integers("X", getattr(X, "data", ()))
        X, may_miss = canonical_csr(X), False
    else:
        X = as_real("X", X)
        if X.ndim != 2:
            hint = (
                "; use X.reshape(-1, 1) for a single input, X.reshape(1, -1) for a single row"
                if X.ndim == 1
                else ""
            )
            raise ValueError(f"X must be two-dimensional, got shape {X.shape}{hint}")
    if not known_finite:
        check_finite("X", X, may_miss)
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(f"X must have {n_features} columns, got {X.shape[1]}")
    return X


def check_training_X(X: Any) -> DenseOrCSR:
    """Return X as `check_X` does, with at least one row and one column; whether its numbers are
    finite is not checked."""
    X = check_X(X, known_finite=True)
    if 0 in X.shape:
        raise ValueError(f"X must have at least one row and one column, got shape {X.shape}")
    return X


def check_device_X(X: Array, xp: Any, may_miss: bool = False) -> Array:
    """Check X as `check_X` does, for an array of the namespace xp, which stays on its device."""
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional, got shape {tuple(X.shape)}")
    if not xp.isdtype(X.dtype, ("bool", "integral", "real floating")):
        raise TypeError(f"X must hold real numbers, got dtype {X.dtype}")
    X = X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float64)
    if not bool(xp.all(xp.isfinite(X) | xp.isnan(X) if may_miss else xp.isfinite(X))):
        raise ValueError(f"X must be finite, got {'infinity' if may_miss else 'NaN or infinity'}")
    return X


def as_array(name: str, values: Any) -> np.ndarray:
    """Return values as an ndarray; raise ValueError if entries are masked or rows differ in length,
    TypeError if they are sparse.

    A list of strings and other things becomes an array of objects: NumPy would make strings of all,
    "nan" of NaN. So do strings that an array of strings would cut off.
    """
    if is_foreign(values):
        return to_host(values)
    check_unmasked(name, values)
    if is_sparse(values):
        ravel = ".ravel()" if 1 in values.shape else ""
        raise TypeError(
            f"{name} must be dense, got a sparse {type(values).__name__} of shape {values.shape}: "
            f"give {name}.toarray(){ravel}"
        )
    try:
        array = np.asarray(values)
        if isinstance(values, (list, tuple)) and array.dtype.kind in "US":
            return as_strings(np.array(values, object))
        return array
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array: {error}") from None


def as_strings(objects: np.ndarray) -> np.ndarray:
    """Return objects that are all strings, or all bytes, as an array of these, others as they are.

    They stay objects, too, where one ends in a null character, which NumPy would cut off.
    """
    for kind, end in ((str, "\0"), (bytes, b"\0")):
        if all(isinstance(value, kind) for value in objects.flat):
            # NumPy takes the length of a member of a (str, Enum) from its value, and the characters
            # from its name
            plain = [text_of(value) if kind is str else value for value in objects.flat]
            is_cut = any(value.endswith(end) for value in plain)
            return objects if is_cut else np.array(plain, kind).reshape(objects.shape)
    return objects


def check_unmasked(name: str, values: Any) -> None:
    """Check that no entry of a masked array is masked."""
    if np.ma.isMaskedArray(values) and np.ma.count_masked(values):
        raise ValueError(f"{name} must not have masked entries, got {np.ma.count_masked(values)}")


def text_of(value: str) -> str:
    """Return the characters of a string of any type, such as a member of a (str, Enum), whose own
    `str` may be another."""
    return str.__str__(value)


def is_real_type(kind: type) -> bool:
    """Return whether a type is one of real numbers: Real, numpy.bool, or Decimal, a Number that is
    neither Real nor Complex."""
    return kind is np.bool_ or (
        issubclass(kind, Number) and issubclass(kind, Real) == issubclass(kind, Complex)
    )


def is_missing(value: Any) -> bool:
    """Return whether a label is None, NaN of any type of numbers, pandas.NA or NaT."""
    return type(value).__name__ in MISSING or bool(value != value)


def check_labels_there(name: str, labels: np.ndarray) -> None:
    """Check that no label is missing."""
    if labels.dtype.kind in "OT":
        missing = [i for i, label in enumerate(labels.tolist()) if is_missing(label)]
    else:
        missing = np.flatnonzero(labels != labels).tolist()
    if missing:
        where = f"{labels[missing[0]]} at [{missing[0]}]{and_more(missing)}"
        raise ValueError(f"{name} must not have missing labels, got {where}: leave such rows out")


def _is_native(array):
    """Return whether compiled code can read the array: aligned native float32 or float64."""
    return array.dtype.char in "fd" and array.dtype.isnative and array.flags.aligned


def as_real(name: str, values: Any) -> np.ndarray:
    """Return values as a real ndarray: float32 as it is, others as float64.

    Booleans are numbers; raise a TypeError for anything else.
    """
    if type(values) is np.ndarray and _is_native(values):
        return values
    array = as_array(name, values)
    # objects of Python: real numbers become float64, others are refused
    if array.dtype.kind == "O":
        wrong = [value for value in array.flat if not is_real_type(type(value))]
        if wrong:
            from reprlib import repr as shortened

            raise TypeError(
                f"{name} must hold real numbers, got "
                f"{shortened(wrong[0])}{_hint_of_categories(name)}"
            )
        warn_of_lost_integers(name, array.ravel().tolist())
        try:
            array = array.astype(np.float64)
        except OverflowError as error:
            raise ValueError(f"{name} must hold finite numbers: {error}") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} must hold real numbers, got dtype {array.dtype}{_hint_of_categories(name)}"
        )
    if array.dtype.char in "fd" and array.dtype.isnative:
        return array if array.flags.aligned else array.copy()
    warn_of_lost_integers(name, array if array.dtype.kind in "iu" else ())
    # a long double may be too large: it becomes infinite, and is refused later
    with np.errstate(over="ignore"):
        return array.astype(np.float64)


def _is_lost(value):
    """Return whether an integer or decimal is a whole number that float64 does not hold."""
    is_nan = value != value  # a Decimal that is NaN has no order
    is_large = not is_nan and LARGEST_EXACT < abs(value) < 10**308  # about the largest number
    return is_large and value == int(value) != int(float(value))


def warn_of_lost_integers(name: str, values: Any) -> None:
    """Warn if integers, or whole decimals, are so large that different ones become one float64.

    values : an array, or a sequence of any numbers; only integers and decimals in it are checked
    """
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        may_be = values.dtype.kind in "iu" and values.dtype.itemsize == 8
        values = (
            values[(values > LARGEST_EXACT) | (values < -LARGEST_EXACT)].tolist() if may_be else []
        )
    for value in values:
        if isinstance(value, (Integral, Decimal)) and _is_lost(value):
            hint = (
                "leave them out, or make them a category"
                if name.startswith("X")
                else "number them anew"
            )
            warn(
                f"{name} holds integers beyond 2**53, such as {value}, which numbers of 64 bits do "
                f"not tell apart: are these identifiers? If so, {hint}",
                UserWarning,
            )
            return


def _hint_of_categories(name):
    """Return what an error about X adds for users whose X has columns of categories."""
    return "; for columns of categories: categorical=, or X as a data frame" if name == "X" else ""


def and_more(found: Sized) -> str:
    """Return how many more were found, as text for an error that names the first of them."""
    return f" and {len(found) - 1} more" if len(found) > 1 else ""


def check_finite(name: str, X: DenseOrCSR, may_miss: bool = False) -> bool:
    """Check that all numbers of an array or CSR matrix are finite, or NaN where may_miss.

    Return whether all are known to be finite.
    """
    numbers = X.data if is_sparse(X) else X
    if _is_native(numbers) and are_finite(numbers):
        return True
    if _is_native(numbers) and may_miss and are_finite(numbers, may_miss):
        return False
    bad = np.argwhere(np.isinf(numbers) if may_miss else ~np.isfinite(numbers))
    if len(bad):
        first = tuple(bad[0].tolist())
        place = list(first)
        if is_sparse(X):
            row = np.searchsorted(X.indptr, first[0], side="right") - 1
            place = [int(row), int(X.indices[first[0]])]
        hint = "; leave out rows whose target is missing" if name == "y" else ""
        raise ValueError(
            f"{name} must be finite, got {numbers[first]} at {place}{and_more(bad)}{hint}"
        )
    return False


def real_rows(name: str, values: Any, n_samples: int) -> np.ndarray:
    """Return values as a finite float64 array with an entry for each row."""
    array = as_real(name, values).astype(np.float64)
    check_length(name, array, n_samples)
    check_finite(name, array)
    return array


def check_sample_weight(sample_weight: Any, n_samples: int) -> np.ndarray:
    """Return float64 weights (n_samples,), scaled to a largest of 1; for None all ones."""
    if sample_weight is None:
        return np.ones(n_samples)
    weight = real_rows("sample_weight", sample_weight, n_samples)
    if weight.min() < 0:
        raise ValueError(f"sample_weight must not be negative, got {weight.min()}")
    if weight.max() == 0:
        raise ValueError("sample_weight must have a positive entry, got all zeros")
    return weight / weight.max()


def check_offset(offset: Any, n_samples: int, n_outputs: int) -> np.ndarray:
    """Return finite float64 offsets, (n_samples,) for one output or for all alike, else (n_outputs,
    n_samples)."""
    array = as_real("offset", offset).astype(np.float64)
    if array.shape != (n_samples,) and (n_outputs == 1 or array.shape != (n_samples, n_outputs)):
        shapes = (
            f"({n_samples},)" if n_outputs == 1 else f"({n_samples},) or ({n_samples}, {n_outputs})"
        )
        raise ValueError(
            f"offset must have shape {shapes}, one entry a row of X, got {array.shape}"
        )
    check_finite("offset", array)
    return np.ascontiguousarray(array.T)


def check_length(name: str, array: np.ndarray, n_samples: int) -> None:
    """Check that an array has one entry for each row."""
    if array.ndim != 1 or len(array) != n_samples:
        raise ValueError(
            f"{name} must have shape ({n_samples},), one entry a row of X, got {array.shape}"
        )


def check_rng(rng: Any) -> np.random.Generator:
    """Return the Generator for None, a seed or a Generator, which is returned itself."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"rng must be None, a seed or a numpy.random.Generator, got {rng!r}: {error}"
        ) from None


def check_scale(name: str, value: Any) -> float:
    """Return a positive float of at most 1e300, so that a few sums and products do not overflow."""
    value = check_real(name, value, 0, strict=True)
    if value > 1e300:
        raise ValueError(f"{name} must be at most 1e300, got {value}")
    return value


def check_real(name: str, value: Any, minimum: float, *, strict: bool = False) -> float:
    """Return a finite float >= minimum, or > minimum where strict."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    try:
        value = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be finite, got an integer too large for a float") from None
    if not np.isfinite(value) or value < minimum or (strict and value == minimum):
        least = "" if minimum == -np.inf else f" and {'>' if strict else '>='} {minimum}"
        raise ValueError(f"{name} must be finite{least}, got {value}")
    return value


def check_integer(name: str, value: Any, minimum: int) -> int:
    """Return an int >= minimum."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return int(value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> Any:
    """Return the value, which must be one of the strings in choices."""
    if not isinstance(value, str) or value not in choices:
        among = "one of " if len(choices) > 1 else ""
        raise ValueError(f"{name} must be {among}{', '.join(map(repr, choices))}, got {value!r}")
    return value


def check_alphas(alphas: Any) -> np.ndarray:
    """Return positive penalties in descending order."""
    values = as_real("alphas", alphas)
    if np.asarray(alphas).dtype.kind == "b":
        raise TypeError(f"alphas must be real numbers, got {alphas!r}")
    alphas = np.atleast_1d(values).astype(np.float64)
    if alphas.ndim != 1 or alphas.size == 0:
        raise ValueError(
            f"alphas must be a non-empty one-dimensional sequence, got shape {alphas.shape}"
        )
    return np.sort([check_real("alphas", alpha, 0, strict=True) for alpha in alphas.tolist()])[::-1]


def check_sizes(name: str, sizes: Any, largest: float) -> list[int]:
    """Return numbers of terms, each from 1 to largest, in ascending order without repeats."""
    if isinstance(sizes, (str, bytes)) or not hasattr(sizes, "__iter__"):
        raise TypeError(
            f"{name} must be a sequence of integers, such as [10, 30, 100], got {sizes!r}"
        )
    sizes = sorted({check_integer(name, size, 1) for size in sizes})
    if not sizes or sizes[-1] > largest:
        raise ValueError(
            f"{name} must be at least one and at most {largest}, the number of features, got "
            f"{sizes}"
        )
    return sizes


def check_indices(name: str, indices: Any, n: int) -> np.ndarray:
    """Return indices as a one-dimensional array of integers, which must lie in [0, n)."""
    indices = as_array(name, indices)
    if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be a one-dimensional sequence of integers, got {indices!r}")
    if indices.size and (indices.min() < 0 or indices.max() >= n):
        raise ValueError(f"{name} must lie in [0, {n}), got {indices.min()} to {indices.max()}")
    return indices.astype(np.intp)


def check_names(name: str, names: Any, n: int) -> list[str]:
    """Return names as n strings, one for each column of X."""
    if isinstance(names, (str, bytes)) or not hasattr(names, "__iter__"):
        raise TypeError(f"{name} must be a sequence of names, got {names!r}")
    names = [str(each) for each in names]
    if len(names) != n:
        raise ValueError(
            f"{name} must hold a name for each of the {n} columns of X, got {len(names)}"
        )
    return names


def check_vector(name: str, values: Any) -> np.ndarray:
    """Return values as a finite one-dimensional float64 array."""
    vector = as_real(name, values).astype(np.float64)
    if vector.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {vector.shape}")
    check_finite(name, vector)
    return vector


def check_callable(name: str, value: Any) -> Any:
    """Return the value, which must be callable or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable or None, got {value!r}")
    return value


def check_flag(name: str, value: Any) -> bool:
    """Return the value as a bool; it must be True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def checked(
    check: Callable[..., Any], *limits: Any, default: Any = dataclasses.MISSING, **how: Any
) -> Any:
    """Declare a field of a dataclass that `check_fields` checks.

    It is replaced by check(name, value, *limits, **how); None stays if it is the default.
    """
    return dataclasses.field(default=default, metadata={"check": (check, limits, how)})


def check_fields(arguments: Any) -> None:
    """Replace the `checked` fields of a dataclass, which may be frozen, by their checked values."""
    for each in dataclasses.fields(arguments):
        if "check" not in each.metadata:
            continue
        value = getattr(arguments, each.name)
        if value is not None or each.default is not None:
            check, limits, how = each.metadata["check"]
            object.__setattr__(arguments, each.name, check(each.name, value, *limits, **how))
