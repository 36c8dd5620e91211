"""The task of a fit, from what the user gives; its progress; and the one model that the fits of all targets become."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import mul
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from .._base import progress
from .._base.arrays import check_same_device
from .._base.checks import check_choice, check_sample_weight
from .._base.progress import goes_on, iteration_ended
from ..columns.encodings import stage_of, stage_of_counts
from ..columns.levels import with_means
from ..columns.stage import ColumnStage
from ..columns.table import Table, is_frame
from ..columns.targets import encoded
from ..features import FeatureSet
from ..features.feature_set import joined
from ..losses import SELECTING, Loss, loss_of
from ..losses.regression import median
from ..model import FitInfo, SparseModel
from ..rows import BlockError, as_rows, staged

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import ArrayLike

    from .._base.types import Callback, Categorical, ColumnSetting, Fit, LinearLossLike, MatrixLike, OfKind
    from ..rows.home import Rows

# The unit of a target from which no center is taken: the difference of two such numbers might be none.
LARGEST_CENTERED = 2.0**1020
AS_THEY_ARE: ColumnSetting = {"scale": None, "missing": "raise", "categorical": None}  # as the papers' functions see columns


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be fitted: the rows whose weight is not zero, their weights, of mean 1, and their targets, all checked.

    raw : Rows
        Those whose weight is not zero, as numbers.
    targets : list of ndarray
        The real target, (n_rows,) or (n_outputs, n_rows), or one an output; or -1/+1, one for two classes, else one a class.
    centers : list of float or ndarray
        What was taken from each target, a number an output, and which `model_of` adds to the intercept.
    classes : None, or ndarray of the labels of a classifier
    index : ndarray
        The places of these rows in X.
    table : None, or the `Table` that X is
    stage : None, or the `ColumnStage` that shows these rows
    curves : lists of views, each of all columns, as they are, clipped, or in ranks
    """

    raw: Rows
    loss: Loss
    weight: np.ndarray
    classes: np.ndarray | None
    targets: list[np.ndarray]
    centers: list[float | np.ndarray]
    index: np.ndarray
    table: Table | None = None
    stage: ColumnStage | None = None
    curves: tuple[np.ndarray, ...] = ()

    @classmethod
    def of(
        cls, X: MatrixLike, y: ArrayLike, loss: LinearLossLike, sample_weight: ArrayLike | None, workers: int, *,
        several_outputs: Literal["together", "apart"] | None = None, losses: Collection[str] = SELECTING,
        may_miss: bool = False, table: Table | None = None,
    ) -> Task:  # fmt: skip
        """several_outputs: as in `encoded`; where may_miss, dense X may have NaN."""
        for name, values in (("y", y), ("sample_weight", sample_weight)):
            check_same_device(name, values, X)
        rows = as_rows(X, workers, may_miss=may_miss)
        loss = loss_of(loss, losses)
        there, some, weight = weighted(rows, sample_weight)
        classes, targets = encoded(y, loss, there, rows.n_rows, several_outputs)
        if several_outputs == "apart" and classes is None and len(targets) > 1 and not loss.is_quadratic:
            raise ValueError(f"y must have one output for loss={loss.name!r}, got {len(targets)}: fit one at a time")
        loss, centers = loss.of_target(targets[0], weight), [np.zeros(y.shape[:-1]) for y in targets]
        return cls(some, loss, weight, classes, targets, centers, there, table)

    @classmethod
    def seen_by(
        cls, features: Any, X: MatrixLike, y: ArrayLike, loss: LinearLossLike, sample_weight: ArrayLike | None, workers: int,
        rng: np.random.Generator | None, columns: ColumnSetting, *, is_curved: bool = False, **how: Any,
    ) -> tuple[Task, Any]:  # fmt: skip
        """(the task of X as these features see it, the features of such views).

        columns : {"scale", "missing", "categorical"} as the user gave them. A FeatureSet has its own stage; scale "auto" asks
            for robust units where features are a name, or None. CSR rows are as they are
        is_curved : whether numbers are to be seen in more than one view
        how : as in `of`
        """
        scale, missing, categorical = (columns[name] for name in ("scale", "missing", "categorical"))
        may_miss = check_choice("missing", missing, ("learn", "raise")) == "learn"
        if scale is not None:
            check_choice("scale", scale, ("auto", "robust"))
        (X, table), of_task = read(X, features, categorical), partial(cls.of, y=y, loss=loss, sample_weight=sample_weight)
        of_task = partial(of_task, X, workers=workers, table=table, **how)
        if isinstance(features, FeatureSet):
            stage = features.stage
            task = of_task(may_miss=may_miss and stage is not None and stage.may_miss)
            return replace(task, stage=stage), features.staged(None)
        is_scaled = scale == "robust" or (scale == "auto" and (features is None or isinstance(features, str)))
        task = of_task(may_miss=may_miss)._staged(rng, is_scaled, is_curved, may_miss)
        if task.stage is None and not task.raw.in_memory:  # where they are not looked through, none may be missing
            task = of_task(may_miss=False)
        return task, features

    def centered(self, fit_intercept: bool) -> Self:
        """Take its center from each target, where the intercept can give it back.

        Numbers far from 0 would be rounded in every sum; and the duality gap is a bound where the dual point sums up to 0:
        rounding leaves a little of that sum, times which the mean of y would come into the gap.
        """
        if not (fit_intercept and self.loss.is_shift_invariant):
            return self
        centers = [np.array([self._center(row) for row in np.atleast_2d(y)]).reshape(y.shape[:-1]) for y in self.targets]
        return replace(self, targets=[y - c[..., None] for y, c in zip(self.targets, centers, strict=True)], centers=centers)

    def _center(self, y):
        """The mean of one target, which the squared loss is least at, else the median; of a constant that constant."""
        unit = power_of_two(y)
        if unit > LARGEST_CENTERED:
            return 0.0
        y = y / unit
        mean = float(np.clip(self.weight @ y / len(y), y.min(), y.max()))
        return unit * (mean if self.loss.is_quadratic else float(median(y, self.weight)))

    def _staged(self, rng, is_scaled, is_curved, may_miss):
        """This task with views of its columns, where they need any."""
        raw, table, means = self.raw, self.table, None
        if raw.is_sparse and is_scaled and is_curved:
            stage, curves = stage_of_counts(raw, self.weight, rng)
            return replace(self, stage=stage, curves=tuple(curves))
        if raw.is_sparse or not (is_scaled or table is not None or self._lacks_numbers):
            return self
        if table is not None and not table.is_plain:
            X, table = table.of_rows(raw.array())
            X, means = with_means(X, table, self.targets, self.weight, rng)
            raw = raw.beside(X)
        stage, curves = stage_of(raw, self.weight, rng, table=table, means=means, is_scaled=is_scaled, is_curved=is_curved)
        return replace(self, raw=raw, table=table, stage=replace(stage, may_miss=may_miss), curves=tuple(curves))

    @property
    def _lacks_numbers(self):
        return self.raw.in_memory and bool(np.isnan(self.raw.array()).any())

    @property
    def is_joint(self) -> bool:
        """Whether the targets are classes whose margins count together."""
        return self.loss.is_joint and len(self.targets) > 1

    @cached_property
    def rows(self) -> Rows:
        """The rows as the stage shows them."""
        return staged(self.raw, self.stage, is_asked_often=True)

    def curved(self, views: np.ndarray | None) -> Task:
        """This task of some of its views; None: of all."""
        return self if views is None else replace(self, stage=self.stage.take(views))

    def scale(self, y: np.ndarray) -> float:
        """The power of two by which a target is divided: exactly, and its squares then neither over- nor underflow."""
        return power_of_two(y) if self.loss.degree else 1.0

    def loss_of(self, y: np.ndarray) -> Loss:
        """The loss of a target in its scale."""
        return self.loss.scaled(self.scale(y))

    def slope_unit(self, y: np.ndarray) -> float:
        """By which a gradient of the mean loss is divided, where y is by its scale."""
        return self.scale(y) ** (self.loss.degree - 1)

    def problem(self, Kind: type[OfKind], y: np.ndarray, alpha: float, fit_intercept: bool) -> OfKind:
        """The problem of one target in units of its scale, a `Kind` of Problem. alpha: of a penalty on squares."""
        scale = self.scale(y)
        alpha = min(alpha * scale ** (2 - self.loss.degree), 1e300)
        return Kind.of(self.rows.vectors, self.loss_of(y), y / scale, self.weight, alpha, fit_intercept)

    def progress(self, callback: Callback, y: np.ndarray) -> Progress:
        """The `Progress` of the fit of one target."""
        return Progress(callback, self.scale(y), self.loss.degree)


def read(X: MatrixLike, features: Any, categorical: Categorical) -> tuple[MatrixLike, Table | None]:
    """(X as an array, if it is a table; None, or its `Table`), as these features see columns."""
    if isinstance(features, FeatureSet) and features.stage is not None:
        if categorical is not None:
            raise ValueError("categorical must be None where features is a FeatureSet, which knows its columns")
        return features.stage.read(X), features.stage.table
    return Table.of(X, categorical) if categorical is not None or is_frame(X) else (X, None)


def weighted(rows: Rows, sample_weight: ArrayLike | None) -> tuple[np.ndarray, Rows, np.ndarray]:
    """(the indices of the rows whose weight is not zero; these rows, copied if they are not all; their weights, of mean 1)."""
    weight = check_sample_weight(sample_weight, rows.n_rows)
    there = np.flatnonzero(weight)
    if len(there) < rows.n_rows:
        rows, weight = rows.take(there), weight[there]
    return there, rows, weight / weight.mean()


def power_of_two(y: np.ndarray) -> float:
    """The power of two by which a target is divided: exactly, and its squares then neither over- nor underflow."""
    largest = float(np.abs(y).max())
    return float(2.0 ** (np.frexp(largest)[1] - 1)) if largest > 0 else 1.0


class Progress:
    """The objectives of a fit so far, in units of y, and its callback.

    scale: of the fit's own units, a power of two; degree: of that in the loss.
    """

    callback: Callback
    scale: float
    objectives: list[float]
    ended_by_callback: bool

    def __init__(self, callback: Callback, scale: float, degree: int = 2):
        self.callback, self.scale, self._degree = callback, scale, degree
        self.restart()

    def restart(self) -> None:
        self.objectives, self.ended_by_callback, self._n_read = [], False, 0

    def note(self, objective: float, *left: float) -> None:
        """End an iteration. Rounding may raise the objective: what is noted never rises.

        left : the distance from the end of the fit, and that at which it ends, where these are known
        """
        iteration_ended(*left)
        self.objectives.append(min([self._in_units(objective), *self.objectives[-1:]]))

    def ask(self, info: Callable[[], FitInfo]) -> bool:
        """Tell the callback of info(); returns whether it has ended the fit, now or before."""
        goes_on()
        if self.callback is not None and not self.ended_by_callback:
            self.ended_by_callback = bool(self.callback(info()))
        self._n_read = 0
        return self.ended_by_callback

    def ask_after_reading(self, n_numbers: float, info: Callable[[], FitInfo]) -> bool:
        """As `ask`, once NUMBERS_BETWEEN_CALLS have been read since the last call; n_numbers were read just now."""
        self._n_read += n_numbers
        return self.ask(info) if self._n_read > progress.NUMBERS_BETWEEN_CALLS else self.ended_by_callback

    def info(self, objective: Callable[[], float], gap: float, **more: Any) -> FitInfo:
        """The `FitInfo` of a fit that stands at this objective() and gap."""
        return FitInfo(
            n_iter=len(self.objectives),
            objective=tuple(self.objectives) or (self._in_units(objective()),),
            dual_gap=self._in_units(max(0.0, gap)),
            **more,
        )

    def _in_units(self, objective):
        return in_units(objective, self.scale, self._degree)

    def in_units_of_y(self, *values: Any) -> list[Any]:
        """Coefficients of y / scale in units of y."""
        with np.errstate(over="ignore"):
            scaled = [self.scale * value for value in values]
        if not all(np.isfinite(value).all() for value in scaled):
            raise ValueError("y must be of moderate size, got values whose coefficients overflow: scale it")
        return scaled


def in_units(objective: float, scale: float, degree: int = 2) -> float:
    """An objective of y / scale in units of y to that degree, or the largest float where it is larger than that."""
    return min(reduce(mul, [scale] * degree, float(objective)), float(np.finfo(np.float64).max))


@contextmanager
def keeping(model_so_far: Callable[[], SparseModel]) -> Iterator[None]:
    """Where a block of rows cannot be read, the error takes along model_so_far(), what was fitted until then."""
    try:
        yield
    except BlockError as error:
        if error.model is None:
            with suppress(ValueError):  # coefficients that overflow
                error.model = model_so_far()
        raise


def keeping_fits(fits: Sequence[Fit], task: Task) -> AbstractContextManager[None]:
    """`keeping` the model of these fits as they are."""
    return keeping(lambda: model_of(fits, task, certified=False))


def model_of(fits: Sequence[Fit], task: Task, certified: bool = True) -> SparseModel:
    """One model of the fit of each target: their terms together, a coefficient for each.

    certified: with all that a pass over the rows would tell of it.
    """
    infos, about = [fit.info(certified) for fit in fits], (task.loss.parameters, task.loss.link)
    solutions = [fit.solution() for fit in fits]
    index, features, w, b = solutions[0] if len(solutions) == 1 else joined(solutions)
    info = infos[0] if len(infos) == 1 else _together(infos, len(index))
    b = b + np.reshape(np.stack(task.centers), np.shape(b))
    features, b = features.staged(task.stage), b if np.ndim(b) else float(b)
    return SparseModel(w, b, index, features, task.loss.name, task.classes, info, *about)


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
