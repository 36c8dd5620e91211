"""The door of public functions: keywords that they do not know, and rows of pandas whose indexes say that they are no pairs."""

from __future__ import annotations

from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING

from ..columns.cells import check_paired

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .types import P, T

# Words of scikit-learn, and of others, and what they are called here: in functions, or in estimators.
OTHER_WORDS = {
    "random_state": "rng", "seed": "rng", "rng": "random_state", "n_jobs": "workers", "n_threads": "workers",
    "workers": "n_jobs", "lambda_": "alpha", "reg_lambda": "alpha", "max_iter": "n_iter", "n_iter": "max_iter",
    "sample_weights": "sample_weight", "weights": "sample_weight", "n_folds": "cv",
}  # fmt: skip
OF_EACH_ROW = "X", "y", "sample_weight", "groups", "folds"


def door(function: Callable[P, T]) -> Callable[P, T]:
    """The function, with errors that say what a keyword that it does not have is called here, and where rows are no pairs."""
    parameters = tuple(signature(function).parameters)

    @wraps(function)
    def called(*args: P.args, **how: P.kwargs) -> T:
        for name in how:
            if name not in parameters:
                raise unexpected(f"{function.__qualname__}()", name, parameters)
        given = dict(zip(parameters, args, strict=False)) | how
        check_paired({name: given[name] for name in OF_EACH_ROW if name in given})
        return function(*args, **how)

    return called


def unexpected(what: str, name: str, parameters: Iterable[str]) -> TypeError:
    """The error of a keyword that a function or class does not have, with the one that was meant."""
    meant = OTHER_WORDS.get(name)
    if name == "C" and "alpha" in parameters:
        return TypeError(f"{what} got an unexpected keyword argument 'C'; here it is alpha=1 / (n_samples * C)")
    if meant in parameters:
        return TypeError(f"{what} got an unexpected keyword argument {name!r}; here it is {meant!r}")
    return TypeError(f"{what} got an unexpected keyword argument {name!r}{_nearest(name, parameters)}")


def _nearest(name, parameters):
    from difflib import get_close_matches  # rarely

    near = get_close_matches(name, list(parameters), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
