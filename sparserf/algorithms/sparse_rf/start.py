"""A fit that starts from a model: its terms and coefficients are the first iterate of the fit of
each target.

Terms that the dictionary holds keep their indices. The draws of a dictionary that learns are
numbered above all terms of the model; terms that another dictionary does not hold are numbered
above its features.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...features import FIRST_DRAW
from ...features.feature_set import keys_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...features.dictionary import Dictionary
    from ...model import SparseModel
    from ..task import Task
    from .descent import BaseL1Fit, State


def check_start_of_task(start: SparseModel, task: Task, max_order: int | None) -> None:
    """Check that a model is one of the columns, loss, and classes or outputs of a task, and of
    terms of `max_order` inputs."""
    if (start.loss, start.link) != (task.loss.name, task.loss.link):
        raise ValueError(
            f"start must be a model of loss={task.loss.name!r}, got one of {start.loss!r}"
        )
    if start.features.n_features_in != task.raw.n_features_in:
        own, given = start.features.n_features_in, task.raw.n_features_in
        raise ValueError(f"start must be a model of the {given} columns of X, got one of {own}")
    if task.classes is not None and not np.array_equal(start.classes, task.classes):
        own, given = start.classes.tolist(), task.classes.tolist()
        raise ValueError(f"start must be a model of the classes of y, {given}, got one of {own}")
    n_outputs = len(np.atleast_2d(start.coef))
    if n_outputs != len(task.targets):
        raise ValueError(
            f"start must have the {len(task.targets)} outputs of y, got a model of {n_outputs}"
        )
    if max_order is not None and (most := _most_columns(start.features)) > max_order:
        raise ValueError(
            f"start must have terms of at most max_order={max_order} inputs, got one of {most}"
        )


def _most_columns(features):
    """Return the most columns of X that a feature depends on; a linear function is a sum of
    functions of one."""
    most = 0
    for block in features.blocks:
        for k in range(0 if block.is_matrix else len(block)):
            seen = block.inputs_seen(k, features.n_inputs)
            most = max(
                most,
                len(seen if features.encoder is None else np.unique(features.encoder.column[seen])),
            )
    return most


def first_target(start: SparseModel | None, task: Task) -> int:
    """Return the number of the first target of a fit, from which on the draws of a dictionary that
    learns have indices above those of the model's terms."""
    if start is None:
        return 0
    n = len(task.targets)
    return n * -(-(int(start.support.max(initial=0)) // FIRST_DRAW) // n)


def with_indices_of(start: SparseModel, model: SparseModel) -> SparseModel:
    """Return a model with some of the terms of `start` under their indices there, unless linear
    functions were added up."""
    index_of = dict(zip(keys_of(start.features), start.support.tolist(), strict=True))
    index = [index_of.get(key) for key in keys_of(model.features)]
    return model if None in index else replace(model, support=np.array(index, model.support.dtype))


def begin_at(
    start: SparseModel, fits: Sequence[BaseL1Fit], task: Task, dictionary: Dictionary
) -> None:
    """Move the fits of a task to the terms and coefficients of a model."""
    states = _states(start, task, dictionary)
    if task.is_joint:
        fits[0].adopt(states)
        return
    for fit, state in zip(fits, states, strict=True):
        fit.adopt(state)


def _states(start, task, dictionary):
    """Return for each target the terms (features, index, w, b) that `L1Fit.adopt` takes, in units
    of y around its centre."""
    features, index, states = start.features.encoded(None), _places(start, dictionary), []
    for w, b, center in zip(
        np.atleast_2d(start.coef), np.atleast_1d(start.intercept), task.centers, strict=True
    ):
        used = np.flatnonzero(w)
        state: State = features.take(used), index[used], w[used], float(b - center)
        states.append(state)
    return states


def _places(start, dictionary):
    """Return the index of each term of the model in the dictionary, or one that no feature of the
    dictionary has."""
    if dictionary.follows:
        return start.support
    keys, starts = keys_of(start.features), dictionary.starts
    wanted, found = set(keys), {}
    for k in range(dictionary.n_batches):
        for j, key in enumerate(keys_of(dictionary.batch(k))):
            if key in wanted:
                found.setdefault(key, starts[k] + j)
    index = np.array([found.pop(key, -1) for key in keys], np.int64)
    strangers = np.flatnonzero(index < 0)
    index[strangers] = starts[-1] + np.arange(len(strangers))
    return index
