"""The task of a fit, from what the user gives; its progress; and the one model that the fits of all targets become."""

from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import numpy as np

from ._arrays import check_same_device
from ._checks import check_choice, check_labels, check_sample_weight, check_target
from .features import FeatureSet, linear_functions
from .losses import LOSSES
from .model import FitInfo, SparseModel
from .rows import BlockError, as_rows, staged
from .stage import ColumnStage

# The losses of the methods that select features: coordinates need a curvature.
SELECTING = ("squared", "squared_hinge", "logistic")


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be fitted: the rows whose weight is not zero, their weights, of mean 1, and their targets, all checked.

    targets : list of ndarray
        The real target, (n_rows,) or (n_outputs, n_rows); or -1/+1, one for two classes and one a class for more.
    classes : None, or ndarray of the labels of a classifier
    index : ndarray
        The places of these rows in X.
    stage : None, or the `ColumnStage` that shows these rows
    """

    rows: object
    loss: object
    weight: np.ndarray
    classes: np.ndarray | None
    targets: list
    index: np.ndarray
    stage: ColumnStage | None = None

    @classmethod
    def of(cls, X, y, loss, sample_weight, workers, *, several_outputs=False, losses=SELECTING):
        """Where several_outputs, a real target may have several."""
        for name, values in (("y", y), ("sample_weight", sample_weight)):
            check_same_device(name, values, X)
        rows = as_rows(X, workers)
        loss = LOSSES[check_choice("loss", loss, tuple(losses))]
        there, some, weight = weighted(rows, sample_weight)
        return cls(some, loss, weight, *_encode(y, loss, there, rows.n_rows, several_outputs), there)

    def seen_by(self, features, scale, rng):
        """(this task with its columns in the units that these features ask for, the features of such columns).

        A FeatureSet has its own; "auto" asks for robust ones where features are a name, or None. CSR rows are as they are.
        """
        if scale is not None:
            check_choice("scale", scale, ("auto", "robust"))
        is_named, stage = features is None or isinstance(features, str), None
        if isinstance(features, FeatureSet):
            stage, features = features.stage, features.staged(None)
        elif (scale == "robust" or (scale == "auto" and is_named)) and not self.rows.is_sparse:
            stage = ColumnStage.of(self.rows, self.weight, rng)
        return replace(self, rows=staged(self.rows, stage, is_asked_often=True), stage=stage), features

    def scale(self, y):
        """The power of two by which a target is divided: exactly, and its squares then neither over- nor underflow."""
        return 1.0 if self.loss.is_classifier else power_of_two(y)

    def problem(self, Kind, y, alpha, fit_intercept):
        """The problem of one target in units of its scale, a `Kind` of Problem."""
        return Kind.of(self.rows.vectors, self.loss, y / self.scale(y), self.weight, alpha, fit_intercept)


def weighted(rows, sample_weight):
    """(the indices of the rows whose weight is not zero; these rows, copied if they are not all; their weights, of mean 1)."""
    weight = check_sample_weight(sample_weight, rows.n_rows)
    there = np.flatnonzero(weight)
    if len(there) < rows.n_rows:
        rows, weight = rows.take(there), weight[there]
    return there, rows, weight / weight.mean()


def _encode(y, loss, there, n_rows, several_outputs):
    """(classes, targets) of some rows: the real target; or -1/+1, one target for two classes and one a class for more."""
    if not loss.is_classifier:
        return None, [np.ascontiguousarray(check_target(y, n_rows, several_outputs)[..., there])]
    classes, label = check_labels(y, n_rows, there)
    if len(classes) == 2:
        return classes, [np.where(label == 1, 1.0, -1.0)]
    return classes, [np.where(label == k, 1.0, -1.0) for k in range(len(classes))]


def power_of_two(y):
    """The power of two by which a target is divided: exactly, and its squares then neither over- nor underflow."""
    largest = float(np.abs(y).max())
    return float(2.0 ** (np.frexp(largest)[1] - 1)) if largest > 0 else 1.0


class Progress:
    """The objectives of a fit so far, in units of y, and its callback. scale: of the fit's own units, a power of two."""

    def __init__(self, callback, scale):
        self.callback, self.scale = callback, scale
        self.restart()

    def restart(self):
        self.objectives, self.ended_by_callback = [], False

    def note(self, objective):
        """End an iteration. Rounding may raise the objective: what is noted never rises."""
        self.objectives.append(min([in_units(objective, self.scale), *self.objectives[-1:]]))

    def ask(self, info):
        """Tell the callback of info(); returns whether it has ended the fit, now or before."""
        if self.callback is not None and not self.ended_by_callback:
            self.ended_by_callback = bool(self.callback(info()))
        return self.ended_by_callback

    def info(self, objective, gap, **more):
        """The `FitInfo` of a fit that stands at this objective() and gap."""
        return FitInfo(
            n_iter=len(self.objectives),
            objective=tuple(self.objectives) or (in_units(objective(), self.scale),),
            dual_gap=in_units(max(0.0, gap), self.scale),
            **more,
        )

    def in_units_of_y(self, *values):
        """Coefficients of y / scale in units of y."""
        with np.errstate(over="ignore"):
            scaled = [self.scale * value for value in values]
        if not all(np.isfinite(value).all() for value in scaled):
            raise ValueError("y must be of moderate size, got values whose coefficients overflow: scale it")
        return scaled


def in_units(objective, scale):
    """An objective of y / scale in units of y squared, or the largest float where it is larger than that."""
    return min(float(objective) * scale * scale, float(np.finfo(np.float64).max))


@contextmanager
def keeping(model_so_far):
    """Where a block of rows cannot be read, the error takes along model_so_far(), what was fitted until then."""
    try:
        yield
    except BlockError as error:
        if error.model is None:
            with suppress(ValueError):  # coefficients that overflow
                error.model = model_so_far()
        raise


def keeping_fits(fits, task):
    """`keeping` the model of these fits as they are."""
    return keeping(lambda: model_of(fits, task, certified=False))


def model_of(fits, task, certified=True):
    """One model of the fit of each target: their terms together, a coefficient for each.

    certified: with all that a pass over the rows would tell of it.
    """
    infos = [fit.info(certified) for fit in fits]
    solutions = [fit.solution() for fit in fits]
    if len(solutions) == 1:
        index, features, w, b = solutions[0]
        features = features.staged(task.stage)
        return SparseModel(w, b if np.ndim(b) else float(b), index, features, task.loss.name, task.classes, infos[0])
    every = np.concatenate([index for index, *_ in solutions])
    support, first = np.unique(every, return_index=True)
    features = solutions[0][1]
    for _, more, *_ in solutions[1:]:
        features = features.concat(more)
    coef = np.zeros((len(solutions), len(support)))
    for row, (index, _, w, _) in zip(coef, solutions, strict=True):
        row[np.searchsorted(support, index)] = w
    b, features = np.array([b for *_, b in solutions]), features.take(first).staged(task.stage)
    return SparseModel(coef, b, support, features, task.loss.name, task.classes, _together(infos, len(support)))


def _together(infos, n_terms):
    """Sums of the objectives and gaps, a fit that ended, or has not begun, counting with its last; the rest at its worst."""
    n_iter = max(info.n_iter for info in infos)
    longest = max(len(info.objective) for info in infos)
    padded = [info.objective + info.objective[-1:] * (longest - len(info.objective)) for info in infos]
    return FitInfo(
        n_iter=n_iter,
        converged=all(info.converged for info in infos),
        objective=tuple(map(sum, zip(*padded, strict=True))),
        dual_gap=sum(info.dual_gap for info in infos),
        n_drawn=max(info.n_drawn for info in infos),
        n_nonzero=n_terms,
        alpha=infos[0].alpha,
    )


def one_function(model):
    """The model with its linear functions of all inputs added up, one for each output."""
    if [block.is_matrix for block in model.features.blocks] != [True]:
        return model
    (block,) = model.features.blocks
    coef = np.atleast_2d(model.features.to_blocks(model.coef)) * block.scale
    unit = power_of_two(coef)
    weights = coef / unit @ block.weights
    features = linear_functions(weights).staged(model.features.stage)
    return replace(
        model, coef=unit * np.eye(len(coef)).reshape(*model.coef.shape[:-1], -1), features=features,
        support=np.arange(len(coef)) + model.n_features_in, info=replace(model.info, n_nonzero=len(coef)),
    )  # fmt: skip


def mean_of(models):
    """The model whose prediction is the mean of theirs."""
    if len(models) == 1:
        return models[0]
    every = np.concatenate([model.support for model in models])
    support, first, place = np.unique(every, return_index=True, return_inverse=True)
    coef = np.zeros((*models[0].coef.shape[:-1], len(support)))
    features, start = models[0].features, 0
    for k, model in enumerate(models):
        coef[..., place[start : start + len(model.support)]] += model.coef / len(models)
        features, start = model.features if k == 0 else features.concat(model.features), start + len(model.support)
    b = sum(model.intercept / len(models) for model in models)
    info = _mean_info([model.info for model in models], len(support))
    return SparseModel(coef, b, support, features.take(first), models[0].loss, models[0].classes, info)


def _mean_info(infos, n_terms):
    """Means of what the searches ended with; the rest at its worst."""
    return replace(
        infos[0],
        n_iter=max(info.n_iter for info in infos),
        converged=all(info.converged for info in infos),
        objective=(mean_value([info.objective[-1] for info in infos]),),
        dual_gap=mean_value([info.dual_gap for info in infos]),
        n_nonzero=n_terms,
        alpha=float(np.exp(mean_value([np.log(info.alpha) for info in infos]))),
    )


def mean_value(values):
    """The mean of numbers whose sum may overflow."""
    return float(sum(value / len(values) for value in values))
