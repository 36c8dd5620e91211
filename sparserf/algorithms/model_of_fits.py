"""The one model that the fits of all targets become, in the units of y, with the ranges of its
columns; and what is left of it where a fit ends by an error, or for want of time."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..columns.encoder import ColumnEncoder
from ..columns.kinds import NUMBER, Encoding
from ..expansion.ranges import Ranges
from ..model import FitInfo, SparseModel
from ..rows import BlockError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from ..features.feature_set import Solution
    from ..solvers.budget import Budget
    from .task import Task


class Fit(Protocol):
    """A fit of one target, or of several targets together, as `model_of` needs it."""

    def info(self, certified: bool = True) -> FitInfo:
        """Return the `FitInfo` of the fit.

        certified : whether to compute a duality gap that takes another pass over the rows
        """
        ...

    def solution(self) -> Solution:
        """Return (index, features, w, b) of the terms by ascending index, in the units of y."""
        ...


def model_of(fits: Sequence[Fit], task: Task, certified: bool = True) -> SparseModel:
    """Return one model of the fits of all targets: the terms of any of them, with a coefficient for
    each target.

    certified : whether to compute a duality gap that takes another pass over the rows
    """
    infos = [fit.info(certified) for fit in fits]
    solutions = [fit.solution() for fit in fits]
    index, features, w, b = solutions[0] if len(fits) == 1 else merge_solutions(solutions)
    info = infos[0] if len(fits) == 1 else _combined(infos, len(index))
    b = b + np.reshape(np.stack(task.centers), np.shape(b))
    b = b if np.ndim(b) else float(b)
    loss, features = task.loss, features.encoded(task.encoder)
    model = SparseModel(
        w,
        b,
        index,
        features,
        loss.name,
        task.classes,
        info,
        loss.parameters,
        loss.link,
        *task.limits,
    )
    return with_ties(model)


def with_ties(model: SparseModel) -> SparseModel:
    """Return the model; of a constant for classes the decision values that differ by rounding are
    made equal, so that ties go to the first class: in the model, and in all that is written of
    it."""
    # Values of the same frequencies differ by less than this number, or share.
    rounding = 1e-12

    if model.classes is None or len(model.features):
        return model
    if not np.ndim(model.intercept):
        return model if abs(model.intercept) > rounding else replace(model, intercept=0.0)
    tied = np.array(model.intercept, dtype=float)
    top = tied.max()
    for k in np.argsort(-tied, kind="stable").tolist():
        top = top if top - tied[k] <= rounding * max(1.0, abs(top)) else tied[k]
        tied[k] = top
    return replace(model, intercept=tied)


def model_in_time(fits: Sequence[Fit], task: Task, budget: Budget) -> SparseModel:
    """Return the model of these fits, with its ranges.

    `info` says what was cut; a fit that was has not converged.
    """
    model = with_ranges(model_of(fits, task, certified=not budget.is_late), task)
    cut, info = dict(budget.cuts), model.info
    converged = info.converged and not {"fits", "rounds"} & set(cut)
    return replace(model, info=replace(info, cut=cut, converged=converged))


def with_ranges(model: SparseModel, task: Task) -> SparseModel:
    """Return the model with what the columns of numbers hold in the rows of the task: their ranges,
    and the values of those that take few. Where the task says so, the model is constant beyond the
    ranges.

    Two passes, none where `ChunkedRows` looked for both before.
    """
    low, high = task.raw.extremes
    there = low <= high  # not of a column of NaN alone
    table = None if task.encoder is None else task.encoder.table
    if table is not None:
        there &= [levels is None for levels in table.levels]
    is_few = there.copy()
    is_few[[] if table is None else list(table.clocks)] = False
    taken = task.raw.few_values.by_column(is_few, max(2, task.raw.n_rows // 2))
    ranges = Ranges(np.flatnonzero(there), np.column_stack([low, high])[there], taken)
    ranges = ranges.seen_by(model.features.columns_seen)
    return replace(model, ranges=ranges, features=_held(model.features, ranges.of_seen, task))


def _held(features, ranges, task):
    """Return the features, constant beyond the ranges where the task says so.

    Columns in which the model is convex stay lines. Intervals are constant there as they are. The
    zeros of CSR rows stay zeros.
    """
    if not task.is_held:
        return features
    encoder = features.encoder
    if encoder is None:
        numbers = [Encoding(j, NUMBER) for j in range(features.n_inputs)]
        encoder = ColumnEncoder.from_encodings(numbers, len(numbers), may_miss=False)
    ends = np.tile([-np.inf, np.inf], (features.n_features_in, 1))
    ends[ranges.column] = ranges.ends
    if task.raw.is_sparse:
        ends = np.stack([np.minimum(ends[:, 0], 0.0), np.maximum(ends[:, 1], 0.0)], axis=1)
    ends[~task.columns_held] = [-np.inf, np.inf]
    ends = ends[encoder.column]
    ends[~features.inputs_that_matter_beyond] = [-np.inf, np.inf]
    held = encoder.held(ends)
    return features if held is encoder else features.encoded(held)


def merge_solutions(solutions: Sequence[Solution]) -> Solution:
    """Merge the solutions of several targets: (index, features, w, b), by ascending index, with a
    row of w for each target."""
    support, first = np.unique(
        np.concatenate([index for index, *_ in solutions]), return_index=True
    )
    features = solutions[0][1]
    for _, more, *_ in solutions[1:]:
        features = features.concat(more)
    coef = np.zeros((len(solutions), len(support)))
    for row, (index, _, w, _) in zip(coef, solutions, strict=True):
        row[np.searchsorted(support, index)] = w
    return support, features.take(first), coef, np.array([b for *_, b in solutions])


def objectives_added_up(infos: Sequence[FitInfo]) -> tuple[float, ...]:
    """Return the sums of the objectives of several fits; one of fewer iterations than others counts
    with its last objective from there on."""
    longest = max(len(info.objective) for info in infos)
    padded = [
        info.objective + info.objective[-1:] * (longest - len(info.objective)) for info in infos
    ]
    return tuple(map(sum, zip(*padded, strict=True)))


def _combined(infos, n_terms):
    """Return one `FitInfo` of the fits of several targets: objectives and gaps added up, the other
    fields from the worst fit."""
    gaps = [info.dual_gap for info in infos]
    return FitInfo(
        n_iter=max(info.n_iter for info in infos),
        converged=all(info.converged for info in infos),
        objective=objectives_added_up(infos),
        dual_gap=None if None in gaps else min(sum(gaps), float(np.finfo(np.float64).max)),
        n_drawn=max(info.n_drawn for info in infos),
        n_nonzero=n_terms,
        alpha=infos[0].alpha,
    )


@contextmanager
def partial_model_on_error(model_so_far: Callable[[], SparseModel]) -> Iterator[None]:
    """Attach model_so_far() to the `BlockError` that is raised where a block of rows cannot be
    read."""
    try:
        yield
    except BlockError as error:
        if error.model is None:
            with suppress(ValueError):  # coefficients that overflow
                error.model = model_so_far()
        raise


def partial_fits_on_error(fits: Sequence[Fit], task: Task) -> AbstractContextManager[None]:
    """Attach the model of the present coefficients of these fits to a `BlockError`."""
    return partial_model_on_error(lambda: model_of(fits, task, certified=False))
