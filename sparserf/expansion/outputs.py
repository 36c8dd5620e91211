"""The outputs of a model: their names and units, and the model of one output alone."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from .._base.checks import check_integer
from ..losses import PROBABILISTIC
from ..losses.links import LINKS
from .terms import term_sizes

if TYPE_CHECKING:
    from .expansion import Expansion

AnyModel = TypeVar("AnyModel", bound="Expansion")

# The model of one output drops a term whose size there is at most this share of the largest: it was
# selected for another one.
SMALLEST = 1e-12
# The most characters of a list of labels of classes.
LONGEST = 50


def function_names(model: Expansion) -> list[str]:
    """Return the names of the outputs: f, or f[class], or f_0, f_1, ... of several targets."""
    if model.coef.ndim == 1:
        return ["f"]
    if model.classes is None:
        return [f"f_{k}" for k in range(len(model.coef))]
    return [f"f[{label}]" for label in model.classes.tolist()]


def quantile_levels(model: Expansion) -> tuple[float, ...]:
    """Return the levels of a model of several quantiles, one for each output; of others none."""
    is_of_levels = model.classes is None and LINKS[model.link].is_ascending
    return model.loss_parameters["level"] if is_of_levels else ()


def two_classes(model: Expansion) -> tuple[object, object]:
    """Return the classes of rows with f <= 0 and with f > 0; if there is only one class, return it
    twice."""
    labels = model.classes.tolist()
    return labels[0], labels[-1]


def describe_task(model: Expansion) -> str:
    """Return "regression", or the number of classes and their labels."""
    if levels := quantile_levels(model):
        return f"regression, quantiles {', '.join(f'{level:g}' for level in levels)}"
    if model.classes is None:
        task = LINKS[model.link].task
        return task if model.coef.ndim == 1 else f"{task}, {len(model.coef)} outputs"
    labels = [str(label) for label in model.classes.tolist()]
    listed = ", ".join(labels)
    if len(listed) > LONGEST:  # cut between labels; the first is whole
        listed = labels[0] + listed[len(labels[0]) : LONGEST].rpartition(",")[0] + ", ..."
    if model.thresholds:
        return f"{len(labels)} classes in order ({listed})"
    side = f"; f > 0 means {labels[1]}" if model.coef.ndim == 1 and len(labels) == 2 else ""
    return f"{len(labels)} classes ({listed}{side})"


def unit_of(model: Expansion) -> str:
    """Return the unit in which f is measured, in words."""
    if model.classes is None:
        return LINKS[model.link].unit
    if model.thresholds:
        return "log odds of higher classes"
    return "log odds" if model.loss in PROBABILISTIC and model.link != "softmax" else "units of f"


def describe_limits(model: Expansion) -> str:
    """Return in words within which limits a model predicts; "" where it has none."""
    if not model.has_limits:
        return ""
    lower, upper = model.limits_of_predictions
    if model.upper is None:
        return f"predictions of at least {lower:.4g}"
    if model.lower is None:
        return f"predictions of at most {upper:.4g}"
    return f"predictions from {lower:.4g} to {upper:.4g}"


def held_out_error(model: Expansion) -> tuple[str, float] | None:
    """Return what the fit tells of held-out rows, in words and as a number: of one output and the
    squared loss the root mean squared error, in units of y; None where it tells nothing."""
    loss = model.info.validation_loss
    if loss is None or not isfinite(loss):
        return None
    if model.loss == "squared" and model.coef.ndim == 1:  # the loss is half the square
        return "root mean squared error", (2 * loss) ** 0.5
    return "mean loss", loss


def effect_on(model: Expansion, output: object) -> str:
    """Return the label of an axis for effects on f of one output, as `of_output` takes it."""
    if model.classes is None:
        name = "the prediction" if model.coef.ndim == 1 else f"target {output}"
        if levels := quantile_levels(model):
            name = f"quantile {levels[output]:g}"
        return LINKS[model.link].effect.format(name)
    if model.thresholds:
        return "effect on the log odds of higher classes"
    label = two_classes(model)[1] if output is None else output
    if model.loss not in PROBABILISTIC or model.link == "softmax":
        return f"effect on f of {label}"
    return f"effect on the log odds of {label}"


def of_output(model: AnyModel, output: object, *, every_term: bool = False) -> AnyModel:
    """Return the model of one output, without the terms of other outputs.

    output : the label of a class, or the index of a class whose labels are text, or the index of a
        target; None where the model has one f
    every_term : whether terms that are negligible in this output are kept

    A model of two classes has one f, which is that of the second class; f of the first class is -f.
    The one f of classes in order is that of none.
    """
    classes = [] if model.classes is None or model.thresholds else model.classes.tolist()
    if model.coef.ndim == 1 and output is None:
        return model
    if output is None:
        raise ValueError(f"output must be given where a model has several: {_list_outputs(model)}")
    k = _index_of(model, classes, output)
    if model.coef.ndim == 1:
        sign = 1.0 if k else -1.0
        lower, upper = model.lower, model.upper
        if not k:
            lower, upper = (None if end is None else -end for end in (upper, lower))
        about = {"coef": sign * model.coef, "intercept": sign * model.intercept}
        return replace(model, **about, lower=lower, upper=upper)
    stays = every_term | ~are_negligible(term_sizes(model.features, model.coef), SMALLEST)[k]
    return replace(
        model,
        coef=model.coef[k, stays],
        intercept=float(np.asarray(model.intercept)[k]),
        support=model.support[stays],
        features=model.features.take(np.flatnonzero(stays)),
    )


def are_negligible(size: np.ndarray, share: float) -> np.ndarray:
    """Return which terms are at most this share of the largest term in each output; size : of shape
    (n_outputs, n_terms)."""
    largest = size.max(axis=1, keepdims=True, initial=0.0)
    return (size <= share * largest) & (size < largest)


def _index_of(model, classes, output):
    """Return the index of an output from the label of a class, the index of a class if labels are
    text, or that of a target."""
    output = output.item() if isinstance(output, np.generic) else output
    if model.classes is None and model.coef.ndim > 1:
        k = check_integer("output", output, 0)
        if k < len(model.coef):
            return k
    elif any(type(label) is type(output) and label == output for label in classes):
        return classes.index(output)
    elif not classes:
        raise ValueError(f"output must be None where a model has one, got {output!r}")
    elif type(output) is int and 0 <= output < len(classes):
        if not any(isinstance(label, (int, float)) for label in classes):
            return output
    raise ValueError(f"output must be one of {_list_outputs(model)}, got {output!r}")


def _list_outputs(model):
    """Return the outputs that may be chosen, as text for errors."""
    if model.classes is not None:
        return repr(model.classes.tolist())
    n_outputs = len(np.atleast_2d(model.coef))
    return f"{n_outputs} targets, 0 to {n_outputs - 1}"
