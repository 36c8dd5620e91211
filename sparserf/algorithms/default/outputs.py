"""Several real targets: each in units of its standard deviation, with a model of its own, and the
one model of all."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...features import FIRST_DRAW
from ..fit_progress import in_units, power_of_two
from ..model_of_fits import merge_solutions, objectives_added_up
from .mean import widen_encodings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...columns.encoder import ColumnEncoder
    from ...losses import Loss
    from ...model import FitInfo, SparseModel
    from ..task import Task

# So many outputs are spoken of, each by itself.
OUTPUTS_IN_WORDS = 3
# Below this share of its root mean square the standard deviation of a target is rounding.
CONSTANT = 1e-13


def with_equal_outputs(task: Task) -> tuple[Task, np.ndarray | None]:
    """Return the task with real targets in units of their standard deviations, and these units.

    So several count alike in the held-out loss, whatever they were measured in, and one has the
    same model in all units, but for rounding. Targets whose loss is in no power of their unit, or
    that have offsets beside them, and classes, are returned as they are, with None.
    """
    if task.loss.is_classifier or not task.loss.degree or task.offset is not None:
        return task, None
    units = [deviation(y, task.weight) for y in task.targets]
    targets = [y / unit for y, unit in zip(task.targets, units, strict=True)]
    centers = [center / unit for center, unit in zip(task.centers, units, strict=True)]
    loss = task.loss.scaled(units[0]) if len(units) == task.loss.n_outputs else task.loss
    return replace(task, targets=targets, centers=centers, loss=loss), np.array(units)


class TargetModel(NamedTuple):
    """The model of one target, the places of its encodings in the encoder of the task (None: it
    sees all), and the rows of its search."""

    model: SparseModel
    encodings: np.ndarray | None
    sample: Task


def join_targets(
    chosen: Sequence[TargetModel], encoder: ColumnEncoder | None, is_auto: bool
) -> SparseModel:
    """Return one model of the models of all targets.

    Features of the same number are the same where they come from a dictionary that all share; each
    target has its own linear function, where `is_auto`, and its own draws.
    """
    models = [each.model for each in chosen]
    if chosen[0].encodings is not None:
        every = np.unique(np.concatenate([each.encodings for each in chosen]))
        models = [widen_encodings(each.model, each.encodings, every, encoder) for each in chosen]
    last = max(int(model.support.max(initial=0)) for model in models)
    stride = (last // FIRST_DRAW + 1) * FIRST_DRAW
    solutions = []
    for k, model in enumerate(models):
        support, n_inputs = model.support, model.features.n_inputs
        is_function = is_auto & (support >= n_inputs) & (support < FIRST_DRAW)
        support = support + k * is_function + k * stride * (support >= FIRST_DRAW)
        solutions.append((support, model.features, model.coef, model.intercept))
    support, features, coef, intercept = merge_solutions(solutions)
    return replace(
        models[0],
        coef=coef,
        intercept=intercept,
        support=support,
        features=features,
        info=_joined_info([model.info for model in models], len(support)),
    )


def _joined_info(infos: Sequence[FitInfo], n_terms: int) -> FitInfo:
    """Return what a model says of the searches of all its targets: their losses added up."""
    cut = {
        name: sum(info.cut.get(name, 0) for info in infos) for info in infos for name in info.cut
    }
    # an output each, of the first few
    words = [f"output {k}: {info.chosen}" for k, info in enumerate(infos[:OUTPUTS_IN_WORDS])]
    return replace(
        infos[0],
        alpha=None,
        chosen="; ".join([*words, "..."] if len(infos) > len(words) else words),
        n_iter=sum(info.n_iter for info in infos),
        objective=objectives_added_up(infos),
        n_drawn=sum(info.n_drawn for info in infos),
        n_nonzero=n_terms,
        validation_loss=sum(info.validation_loss for info in infos),
        cut=cut,
        converged=not cut,
    )


def in_their_units(model: SparseModel, units: np.ndarray | None, loss: Loss) -> SparseModel:
    """Return the model of the targets themselves, for one of `with_equal_outputs`.

    loss : that of the targets, whose parameters the model has; of one y `info` is in its unit, of
        several in those of `with_equal_outputs`
    """
    if units is None:
        return model
    info, is_of_one_y = model.info, len(units) == loss.n_outputs
    coef = model.coef * (units[0] if is_of_one_y else units[:, None])
    intercept = model.intercept * (float(units[0]) if is_of_one_y else units)
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError(
            "y must be of moderate size, got values whose coefficients overflow: scale it"
        )
    if is_of_one_y:
        as_given = partial(in_units, unit=float(units[0]), degree=loss.degree)
        info = replace(
            info,
            objective=tuple(map(as_given, info.objective)),
            validation_loss=as_given(info.validation_loss),
        )
        if info.alpha is not None:
            alpha = in_units(info.alpha, float(units[0]), loss.degree - 1)
            words = info.chosen.replace(f"alpha={info.alpha:.4g}", f"alpha={alpha:.4g}")
            info = replace(info, alpha=alpha, chosen=words)
    return replace(
        model, coef=coef, intercept=intercept, info=info, loss_parameters=loss.parameters
    )


def deviation(y: np.ndarray, weight: np.ndarray) -> float:
    """Return the standard deviation of a target; for a constant, its absolute value, or 1 where
    that is 0."""
    size = power_of_two(y)
    u = y / size
    square = float(weight @ (u * u)) / len(u)
    variance = float(weight @ (u - weight @ u / len(u)) ** 2) / len(u)
    return size * float(np.sqrt(variance if variance > (CONSTANT**2) * square else square or 1.0))
