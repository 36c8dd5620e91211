"""The outputs of a model by the names of their classes, and what each of them measures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import check_integer
from ..losses import PROBABILISTIC
from .pieces import sizes

if TYPE_CHECKING:
    from ..model import SparseModel

# Terms of one output alone so small beside its largest are there for the others.
SMALLEST = 1e-12
# Characters of the labels of classes that are listed.
LONGEST = 80


def labels_of(model: SparseModel) -> list[str]:
    """Of several outputs their classes, or numbers where they are targets; of one nothing."""
    if model.coef.ndim == 1:
        return []
    return [str(label) for label in (range(len(model.coef)) if model.classes is None else model.classes.tolist())]


def function_names(model: SparseModel) -> list[str]:
    """f, or f[class], or f_0, f_1 of targets."""
    form = "f_{}" if model.classes is None else "f[{}]"
    return [form.format(label) for label in labels_of(model)] or ["f"]


def sides(model: SparseModel) -> tuple[object, object]:
    """Of a model of one output the classes that f <= 0 and f > 0 stand for; where there is one class, that twice."""
    labels = model.classes.tolist()
    return labels[0], labels[-1]


def kind_of(model: SparseModel) -> str:
    """Regression, or of which classes."""
    if model.classes is None:
        return "regression" if model.coef.ndim == 1 else f"regression, {len(model.coef)} outputs"
    labels = [str(label) for label in model.classes.tolist()]
    said = ", ".join(labels)
    if len(said) > LONGEST:  # the first of them, and one at least
        said = labels[0] + said[len(labels[0]) : LONGEST].rpartition(",")[0] + ", ..."
    side = f"; f > 0 means {labels[1]}" if model.coef.ndim == 1 and len(labels) == 2 else ""
    return f"{len(labels)} classes ({said}{side})"


def unit_of(model: SparseModel) -> str:
    """What f is measured in."""
    if model.classes is None:
        return "the logarithm of what is predicted" if model.link == "log" else "units of y"
    return "log odds" if model.loss in PROBABILISTIC and model.link != "softmax" else "units of f"


def effect_on(model: SparseModel, output: object) -> str:
    """What the f of `of_output` tells, as the label of an axis."""
    if model.classes is None:
        name = "the prediction" if model.coef.ndim == 1 else f"target {output}"
        return f"effect on the log of {name}" if model.link == "log" else f"effect on {name}"
    label = sides(model)[1] if output is None else output
    if model.loss not in PROBABILISTIC or model.link == "softmax":
        return f"effect on f of {label}"
    return f"effect on the log odds of {label}"


def of_output(model: SparseModel, output: object) -> SparseModel:
    """The model of one output alone: of a class by its label, or of a target by its number; without the terms that are
    there for other outputs. Of two classes f tells the second, and -f the first."""
    classes = [] if model.classes is None else model.classes.tolist()
    if model.coef.ndim == 1 and output is None:
        return model
    if output is None:
        raise ValueError(f"output must be given where a model has several: {_which(model)}")
    if model.coef.ndim == 1:
        sign = 1.0 if _place(model, classes, output) else -1.0
        return replace(model, coef=sign * model.coef, intercept=sign * model.intercept)
    k = _place(model, classes, output)
    kept = ~negligible(sizes(model), SMALLEST)[k]
    return replace(model, coef=model.coef[k, kept], intercept=float(np.asarray(model.intercept)[k]),
                   support=model.support[kept], features=model.features.take(np.flatnonzero(kept)))  # fmt: skip


def negligible(size: np.ndarray, least: float) -> np.ndarray:
    """Which terms, of sizes (n_outputs, n_terms), are nothing beside the largest of their output."""
    largest = size.max(axis=1, keepdims=True, initial=0.0)
    return (size <= least * largest) & (size < largest)


def _which(model):
    n_outputs = len(np.atleast_2d(model.coef))
    return f"{n_outputs} targets, 0 to {n_outputs - 1}" if model.classes is None else repr(model.classes.tolist())


def _place(model, classes, output):
    """The number of an output, which must be a label; or of a target."""
    output = output.item() if isinstance(output, np.generic) else output
    if model.classes is None and model.coef.ndim > 1:
        k = check_integer("output", output, 0)
        if k < len(model.coef):
            return k
    elif any(type(label) is type(output) and label == output for label in classes):
        return classes.index(output)
    elif not classes:
        raise ValueError(f"output must be None where a model has one, got {output!r}")
    elif type(output) is int and not any(isinstance(label, (int, float)) for label in classes) and 0 <= output < len(classes):
        return output
    raise ValueError(f"output must be one of {_which(model)}, got {output!r}")
