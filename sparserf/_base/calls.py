"""Checks of calls: of public functions by users, and of users' own functions by the library.

Of a public function: the names of its keywords, and whether the rows of its arguments pair up
(`check_call`). Of a function or object that the user gives, such as a callback, a splitter, a
measure or a teacher: what it returns (`is_true`, `numbers_from`, `pairs_from`, `model_from`), a
TypeError or ValueError that names the argument. What it raises is the user's, and passes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator
from functools import wraps
from inspect import signature
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any

import numpy as np

from .checks import and_more, as_real
from .floats import as_ieee
from .warnings import warn

if TYPE_CHECKING:
    from collections.abc import Callable

    from .types import P, T

# {a keyword of another library, or of the functions or the estimators of this one: the keyword that
# may be meant}.
OTHER_WORDS = {
    "random_state": "rng",
    "seed": "rng",
    "rng": "random_state",
    "n_jobs": "workers",
    "n_threads": "workers",
    "workers": "n_jobs",
    "lambda_": "alpha",
    "reg_lambda": "alpha",
    "max_iter": "n_iter",
    "n_iter": "max_iter",
    "sample_weights": "sample_weight",
    "weights": "sample_weight",
    "n_folds": "cv",
    "group": "groups",
    "base_margin": "offset",
    "init_score": "offset",
}
# The arguments with an entry for each row.
ROW_ARGUMENTS = "X", "y", "sample_weight", "offset", "groups", "folds", "validation"


class IndexWarning(UserWarning):
    """Rows of X and y of pandas, or of weights, have indexes with different labels: rows are paired
    by position.

    Equal indexes, and the default index, 0 to n - 1, beside any other, cause no warning; the same
    labels in another order cause a ValueError. Indexes are used for nothing else.

    Examples
    --------
    >>> import warnings, pandas as pd, sparserf as srf
    >>> X, y = (
    ...     pd.DataFrame({"a": [1.0, 2.0, 4.0]}, index=[7, 8, 9]),
    ...     pd.Series([1.0, 2.0, 3.0], index=["u", "v", "w"]),
    ... )
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", srf.IndexWarning)
    ...     model = srf.mfga(X, y, n_nonzero_coefs=1, rng=0)
    """


def checks_call(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a public function to check its calls by `check_call`, and compute `as_ieee`."""
    parameters = tuple(signature(function).parameters)

    @wraps(function)
    def checked(*args: P.args, **keywords: P.kwargs) -> T:
        check_call(function, parameters, args, keywords)
        return function(*args, **keywords)

    return as_ieee(checked)


def check_call(
    function: Callable[..., Any],
    parameters: tuple[str, ...],
    args: tuple[Any, ...],
    keywords: dict[str, Any],
) -> None:
    """Check a call of a public function for unknown keywords and for pandas rows out of order.

    Arguments with an entry for each row must have their rows in one order, by the indexes of
    pandas: a ValueError where two indexes hold the same labels in another order, an `IndexWarning`
    where the labels differ. Time O(n_rows).
    """
    for name in keywords:
        if name not in parameters:
            raise unknown_keyword(f"{function.__qualname__}()", name, parameters)
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return
    given = dict(zip(parameters, args, strict=False)) | keywords
    values = [(name, given[name]) for name in ROW_ARGUMENTS if name in given]
    indexes = [
        (name, value.index)
        for name, value in values
        if isinstance(value, (pandas.DataFrame, pandas.Series))
    ]
    for name, index in indexes[1:]:
        _check_same_index(*indexes[0], name, index)


def unknown_keyword(what: str, name: str, parameters: Iterable[str]) -> TypeError:
    """Return the TypeError for an unknown keyword, which suggests the one that may be meant."""
    meant = OTHER_WORDS.get(name)
    if name == "C" and "alpha" in parameters:
        return TypeError(
            f"{what} got an unexpected keyword argument 'C'; here it is alpha=1 / (n_samples * C)"
        )
    if meant in parameters:
        return TypeError(
            f"{what} got an unexpected keyword argument {name!r}; here it is {meant!r}"
        )
    from difflib import get_close_matches  # slow to import

    near = get_close_matches(name, list(parameters), 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return TypeError(f"{what} got an unexpected keyword argument {name!r}{hint}")


def _check_same_index(first, first_index, name, index):
    """Check that the pandas indexes of two arguments pair up, as `check_call` says."""
    if len(first_index) != len(index) or first_index.equals(index):
        return
    # Labels are compared as text, since pandas.NA != pandas.NA is not a bool.
    pairs = enumerate(zip(map(repr, first_index), map(repr, index), strict=True))
    row, (one, other) = next(
        (pair for pair in pairs if pair[1][0] != pair[1][1]),
        (0, (repr(first_index[0]), repr(index[0]))),
    )
    difference = f"row {row} is {one} in {first} and {other} in {name}"
    if Counter(first_index) == Counter(index):
        ways = (
            f"{name}.loc[{first}.index] puts it in that of {first}, {name}.to_numpy() takes it "
            "as it is"
        )
        raise ValueError(
            f"{name} must have its rows in the order of {first}: their indexes hold the same "
            f"labels in another order ({difference}); {ways}"
        )
    if not (_is_default_index(first_index) or _is_default_index(index)):
        message = (
            f"{first} and {name} have different indexes ({difference}), and their rows are "
            "paired by their places"
        )
        warn(f"{message}: {name}.to_numpy() says that this is meant", IndexWarning)


def _is_default_index(index):
    """Return whether the labels are 0, 1, 2, ..., the default index of pandas."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


# ---------------------------------------------------------------- results of users' functions


def is_true(name: str, answer: object) -> bool:
    """Return whether the answer of a user's function is true, as in an `if`.

    Raise a TypeError for one that says neither yes nor no: an array, a missing value, a function
    that was not called, a generator.
    """
    is_never_false = (
        callable(answer)
        or isinstance(answer, (Iterator, Awaitable))
        or getattr(answer, "shape", ()) != ()
    )
    try:
        # NaN is not equal to itself
        if not is_never_false and (answer is None or bool(answer == answer)):
            return bool(answer)
    except (TypeError, ValueError):  # such as pandas.NA, whose truth is not known
        pass
    if isinstance(answer, Awaitable) and hasattr(answer, "close"):
        answer.close()  # Python would warn that it was never awaited
    raise TypeError(f"{name} must return True, False or None, got {shortened(answer)}")


def numbers_from(name: str, answer: Any, n_rows: int, ndims: tuple[int, ...] = (1,)) -> np.ndarray:
    """Return the answer of a user's function for rows as a new float64 array.

    It has a number, or a line of numbers, for each row.

    ndims : the numbers of dimensions that it may have. The numbers may be NaN or infinite.
    """
    try:
        values = as_real("it", answer)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} must return an array with a number for each row: {error}"
        ) from None
    if values.ndim not in ndims or len(values) != n_rows or 0 in values.shape[1:]:
        lines = ", or a line" if 2 in ndims else ""
        raise ValueError(
            f"{name} must return a value for each row{lines}, got shape {values.shape} for {n_rows}"
        )
    return np.array(values, np.float64)  # a function may use the memory of its result again


def losses_from(name: str, answer: Any, n_rows: int) -> np.ndarray:
    """Return the loss of each row, (n_rows,), as a user's function gave it; it must be finite."""
    losses = numbers_from(name, answer, n_rows)
    wrong = np.flatnonzero(~np.isfinite(losses))
    if len(wrong):
        first = f"{losses[wrong[0]]} for row {wrong[0]}"
        raise ValueError(f"{name} must return finite numbers, got {first}{and_more(wrong)}")
    return losses


def pairs_from(name: str, given: Any, n_rows: int) -> Iterator[Any]:
    """Yield the pairs of a user's iterable, or of the `split` of a splitter.

    Raise a ValueError if they do not end: after 10,000, and one for each row besides.
    """
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(
            f"{name} must give pairs (rows to fit, rows to hold out), got {shortened(given)}"
        )
    for k, pair in enumerate(given):
        if k == 10_000 + n_rows:
            raise ValueError(
                f"{name} must end: it gave more than {k} pairs of rows to fit and rows to hold out"
            )
        yield pair


def model_from(name: str, model: Any, Kind: type[T]) -> T:
    """Return the model of a user's function that fits, which must be of this kind."""
    if not isinstance(model, Kind):
        raise TypeError(f"{name} must return a {Kind.__name__}, got {shortened(model)}")
    return model
