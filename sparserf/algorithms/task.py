"""The task of a fit, read from the user's arguments.

A fit minimises (1/n) sum_i s_i L(f(x_i) + o_i, y_i) + penalty, where the offsets o_i are 0 unless
the user gives some. `Task.from_options` turns X, y, sample_weight, class_weight and offset into the
rows, the targets y_i, the weights s_i and the offsets of that sum, in this order: a table becomes
numbers; sample weights are multiplied by those of classes; rows of weight zero are left out;
weights are scaled to mean 1; y becomes one target for each output or class; offsets are subtracted
from the targets, or kept; and, where the features need it, columns are encoded by a
`ColumnEncoder`.

Offsets. A loss of the residual has L(z + o, y) = L(z, y - o): its targets become y - o, and nothing
else knows of offsets. For other losses the task keeps them beside its loss and its targets, in
which events, classes and means are counted. Solvers get both in one, as an `OffsetLoss` with its
targets, from `Task.problem`, `Task.loss_of` and `Task.target_of`.

What happens to a NaN in dense X. With missing="raise" it is a ValueError, in the fit and in
`predict`. With missing="learn", the default, `fit_encoder` (columns/encodings.py) gives a column
that has NaN in training rows one more encoding, which is 1 where the cell is missing: features may
see it, so that the model learns what a missing cell means. The encodings of the cell as a number
take a fixed value there, `ColumnEncoder.fill`. `ColumnEncoder.transform` does both wherever rows
become features, in the fit and in `predict` alike. In a column without NaN in training rows, a NaN
in `predict` is encoded as `fill` alone: a number at the centre, a category as a level that no
training row has. Rows to predict may have NaN where the model has such an encoder: where columns
are in robust units, X was a table, or training rows had NaN. Otherwise a NaN in `predict` is a
ValueError.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import numpy as np

from .._base.arrays import check_same_device, is_foreign
from .._base.checks import check_offset, check_sample_weight
from .._base.copies import copies_of
from .._base.deadline import time_left
from .._base.splits import check_groups
from .._base.warnings import warn
from ..columns.constraints import read_constraints
from ..columns.encoder import ColumnEncoder
from ..columns.encodings import (
    fit_encoder,
    fit_interval_encoder,
    fit_rank_encoder,
    target_encode,
)
from ..columns.frames import is_frame, is_table, names_of_frame
from ..columns.table import Table
from ..columns.targets import encode_target, warn_of_labels, weighted_by_class
from ..columns.times import read_times
from ..features import FeatureSet, Linear, Rules, check_shapes
from ..losses import JOINTLY, LOSSES, Loss, check, check_loss
from ..losses.base import weighted_median
from ..losses.links import LINKS
from ..losses.offset import LARGEST_OFFSET, OffsetLoss
from ..rows import as_readable, as_rows, first_rows, learn_table, read_table
from .arguments import PLAIN_ROWS, FitOptions, RowSetting
from .fit_progress import Progress, power_of_two

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..columns.constraints import Constraints, InputConstraints
    from ..columns.table import Categorical
    from ..model import Callback
    from ..rows import Rows
    from ..solvers.problem import Problem

OfKind = TypeVar("OfKind", bound="Problem")


@dataclass(frozen=True, eq=False)
class Task:
    """The rows to fit, their weights and their targets, all checked.

    Attributes
    ----------
    raw : Rows
        The rows whose weight is not zero, as numbers, before their columns are encoded.
    loss : Loss
        The loss, its parameters chosen where the user left them to the data.
    weight : ndarray of shape (n_rows,)
        Sample weights, of mean 1.
    classes : ndarray of labels, or None for real targets
    targets : list of ndarray
        For real targets one array, (n_rows,) or (n_outputs, n_rows), or one for each output; for
        classes -1/+1, one array for two classes, else one for each class.
    centers : list of float or ndarray
        The numbers that were subtracted from each target, one for each output. `model_of` adds them
        to the intercept.
    index : ndarray
        The places of the rows in X.
    offset : ndarray of shape (n_rows,) or (n_outputs, n_rows), or None
        The offset of f in the loss of each row, unless it is in the target already; then there is
        one target.
    groups : ndarray of shape (n_rows,) or None
        The number of the group of each row. Rows of a group are held out together.
    encoder : ColumnEncoder or None
        The encodings of the columns; None for columns as they are.
    encoding_sets : tuple of ndarray
        For each way to see the columns (as they are, in ranks) the places of its encodings in the
        encoder. Empty where rows are CSR or columns need no encoder.
    intervals : ndarray or None
        The places of the encodings in which rules look for intervals, where there are others, too.
    features : any
        The `features` argument; a FeatureSet without its encoder, which the task has.
    is_single : bool
        Whether encoded rows are in single precision, where they lose little by it
        (`Rows.in_single`).
    constraints : Constraints or None
        The columns in which the model must be monotone or convex, and those that may meet; None: no
        constraints.
    limits : tuple of float or None
        The limits (lower, upper) of f that the model is to have. Fits do not look at them.
    is_held : bool
        Whether the model is to be constant beyond the ranges of numbers, as `with_ranges` makes it.
    """

    raw: Rows
    loss: Loss
    weight: np.ndarray
    classes: np.ndarray | None
    targets: list[np.ndarray]
    centers: list[float | np.ndarray]
    index: np.ndarray
    offset: np.ndarray | None = None
    groups: np.ndarray | None = None
    encoder: ColumnEncoder | None = None
    encoding_sets: tuple[np.ndarray, ...] = ()
    intervals: np.ndarray | None = None
    features: Any = None
    is_single: bool = False
    constraints: Constraints | None = None
    limits: tuple[float | None, float | None] = (None, None)
    is_held: bool = False

    @classmethod
    def from_options(
        cls,
        X: MatrixLike,
        y: ArrayLike,
        options: FitOptions,
        *,
        losses: Collection[str] = JOINTLY,
        several_outputs: Literal["together", "apart"] = "apart",
        has_ranks: bool = False,
        has_intervals: bool = False,
        start: FeatureSet | None = None,
    ) -> Task:
        """Check X and y with the options of a fit, and encode the columns of X as its features need
        them.

        A FeatureSet brings the encoding that it was drawn for, as do the features of a model from
        which the fit starts. Else columns are encoded where they are to be in robust units, where X
        is a table, and where numbers are missing.

        losses, several_outputs : as in `from_arrays`
        has_ranks : whether numbers in robust units are encoded by their ranks, too
        has_intervals : whether there are encodings for rules, too, beside those of `encoding_sets`
        start : the features of the model from which the fit starts, where `options.features` is no
            FeatureSet
        """
        features, columns = options.features, options.columns
        X = as_readable(X, columns.categorical is not None)
        given = first_rows(X)
        is_drawn, may_miss = isinstance(features, FeatureSet), columns.missing == "learn"
        drawn = features if is_drawn else start
        encoder = None if drawn is None else drawn.encoder
        if drawn is not None:
            may_miss = may_miss and encoder is not None and encoder.may_miss

        X, table = read_columns(X, given, columns.categorical, encoder, is_drawn)
        task = cls.from_arrays(
            X, y, options.rows, losses=losses, several_outputs=several_outputs, may_miss=may_miss
        )
        task = replace(
            task,
            features=features.encoded(None) if is_drawn else features,
            limits=options.limits,
            is_held=columns.extrapolate == "constant",
        )
        if options.rows.offset is None:
            task._warn_of_limits()
        task = task._constrained(columns, given, table)
        if drawn is not None:
            task = replace(task, encoder=encoder)
            name, checked = ("features", features) if start is None else ("start", start)
            if task.constraints is not None:
                check_shapes(name, checked, task.input_constraints)
            return task

        is_scaled = columns.scale is not None
        task = task._encoded(table, options.rng, is_scaled, has_ranks, has_intervals, may_miss)
        if not is_scaled and mixes_columns(features):
            task._warn_of_units(given, table)
        if task.encoder is None and not task.raw.in_memory:
            # nothing has looked for a NaN in rows outside memory
            task = replace(task, raw=task.raw.without_missing())
        return task

    @classmethod
    def from_arrays(
        cls,
        X: MatrixLike,
        y: ArrayLike,
        given: RowSetting = PLAIN_ROWS,
        *,
        losses: Collection[str] = JOINTLY,
        several_outputs: Literal["together", "apart"] = "apart",
        may_miss: bool = False,
    ) -> Task:
        """Check X, y and the setting of their rows, with the columns of X as they are.

        losses : the names of the losses that may be given
        several_outputs : whether several outputs of a real y are one target or one each: see
            `columns.targets.encode_target`
        may_miss : whether dense X may have NaN
        """
        for name, values in (
            ("y", y),
            ("sample_weight", given.sample_weight),
            ("offset", given.offset),
        ):
            check_same_device(name, values, X)

        rows = as_rows(X, given.workers, may_miss=may_miss)
        loss = check_loss(given.loss, losses)
        weight = given.sample_weight

        if given.class_weight is not None:
            weight = weighted_by_class(weight, given.class_weight, y, loss, rows.n_rows)
        index, weighted, weight = rows_of_positive_weight(rows, weight)
        groups = None if given.groups is None else check_groups(given.groups, rows.n_rows)[index]

        if loss.has_times:
            times = read_times(y, rows.n_rows)
            loss = loss.of_times(*(None if each is None else each[index] for each in times))
            y = loss.codes(*times)
        classes, targets = encode_target(y, loss, index, rows.n_rows, several_outputs)
        if loss.is_quadratic and isinstance(given.loss, str):
            for target in targets:
                warn_of_labels(target)
        if (
            several_outputs == "apart"
            and classes is None
            and len(targets) > loss.n_outputs
            and not loss.is_quadratic
        ):
            raise ValueError(
                f"y must have one output for loss={loss.name!r}, got {len(targets)}: fit one at a "
                "time"
            )

        # of the user's own; elsewhere it may know no NumPy
        if loss.name not in LOSSES and not is_foreign(X):
            check(loss, targets[0])
        targets, offset = read_offset(given.offset, loss, targets, index, rows.n_rows)
        if not loss.is_classifier:
            targets = [without_rounding(y, given.offset) for y in targets]

        loss = loss.of_target(targets[0], weight)
        centers = [np.zeros(y.shape[:-1]) for y in targets]
        return cls(weighted, loss, weight, classes, targets, centers, index, offset, groups)

    def _warn_of_limits(self):
        """Warn if the limits exclude all values of an output, whose predictions they then are."""
        if self.limits == (None, None) or self.loss.has_times:
            return
        link = LINKS[self.loss.link]
        lower, upper = (
            None if limit is None else float(link.inverse(np.array(limit))) for limit in self.limits
        )
        for y in (y for target in self.targets for y in np.atleast_2d(target)):
            if lower is not None and y.max() < lower:
                limit = f"lower={lower:g}"
            elif upper is not None and y.min() > upper:
                limit = f"upper={upper:g}"
            else:
                continue
            warn(
                f"{limit} excludes all values of y, which are from {y.min():g} to {y.max():g}: no "
                "prediction can be near them",
                UserWarning,
            )
            return

    def _warn_of_units(self, X, table):
        """Warn if features that mix columns see some of very different spread, whose sums are
        those of the widest column; X, table : as in `_constrained`."""
        # The spread of a column over that of another from which on it is told.
        very_different = 1e3

        if self.raw.is_sparse or not self.raw.in_memory:
            return
        low, high = self.raw.extremes  # which ranges of the model ask for, too
        spread = high - low
        if table is not None:  # levels have no units
            spread[[levels is not None for levels in table.levels]] = 0.0
        varies = np.flatnonzero((spread > 0) & (spread < np.inf))
        if not len(varies):
            return
        narrow, wide = varies[spread[varies].argmin()], varies[spread[varies].argmax()]
        if spread[wide] > very_different * spread[narrow]:
            names = None if table is None else table.names
            names = names_of_frame(X) if names is None and is_frame(X) else names
            of = [f"column {k if names is None else repr(names[k])}" for k in (wide, narrow)]
            warn(
                "features see X as it is, and mix columns of very different spread, "
                f"{spread[wide]:.3g} of {of[0]} and {spread[narrow]:.3g} of {of[1]}: scale X, or "
                "leave out scale=None",
                UserWarning,
            )

    def _constrained(self, columns, X, table):
        """Return the task with the constraints of a `ColumnSetting`.

        X : the argument of the user; table : its reader, or None
        """
        names, levels = (None, ()) if table is None else (table.names, table.levels)
        names = names_of_frame(X) if names is None and is_frame(X) else names
        given = columns.monotone, columns.convex, columns.interactions
        constraints = read_constraints(*given, X, names, levels, self.raw.n_features_in)
        if (
            constraints is not None
            and constraints.binds
            and self.loss.is_classifier
            and len(self.targets) > 1
        ):
            argument = "monotone" if constraints.sign.any() else "convex"
            raise ValueError(
                f"{argument} must be None for more than two classes, got "
                f"{getattr(columns, argument)!r} for {len(self.targets)}"
            )
        if constraints is not None and constraints.curvature.any() and self.loss.n_outputs > 1:
            raise ValueError(
                f"convex must be None for {self.loss!r}, whose sorted predictions need not be "
                f"convex, got {columns.convex!r}"
            )
        return replace(self, constraints=constraints)

    @property
    def input_constraints(self) -> InputConstraints | None:
        """The constraints of the encodings of the columns; None where there are no constraints."""
        return (
            None
            if self.constraints is None
            else self.constraints.of_inputs(self.encoder, self.raw.n_features_in)
        )

    def _encoded(self, table, rng, is_scaled, has_ranks, has_intervals, may_miss):
        """Return the task with a `ColumnEncoder`, or as it is where its columns need none.

        table : the reader of X, or None
        """
        raw, means = self.raw, None
        if raw.is_sparse:
            return self
        asks_intervals = isinstance(self.features, Rules)
        if not (is_scaled or asks_intervals) and table is None:
            # In rows outside memory it would take a pass to know.
            has_missing = raw.in_memory and not raw.is_finite and bool(np.isnan(raw.array()).any())
            if not has_missing:
                return self
        if table is not None and any(levels is not None for levels in table.levels):
            has_means = not (asks_intervals or has_intervals)
            raw, table, means = self._coded(table, rng, has_means=has_means)
        if asks_intervals:
            encoder = fit_interval_encoder(
                raw, self.weight, rng, table=table, constraints=self.constraints
            )
            return replace(self, raw=raw, encoder=replace(encoder, may_miss=may_miss))
        encoder = fit_encoder(
            raw,
            self.weight,
            rng,
            table=table,
            means=means,
            is_scaled=is_scaled,
            constraints=self.constraints,
        )
        own = raw, self.weight, rng
        ways, intervals = (np.arange(len(encoder)),), None
        # what is looked for beside has no time where it is over
        if has_ranks and is_scaled and time_left() > 0:
            ranks, numbers = fit_rank_encoder(*own, encoder, self.constraints)
            if len(numbers):
                in_ranks = ways[0].copy()
                in_ranks[numbers] = len(encoder) + np.arange(len(numbers))
                ways, encoder = (*ways, in_ranks), encoder.joined(ranks)
        if has_intervals and time_left() > 0:
            more = fit_interval_encoder(*own, table=table, constraints=self.constraints)
            intervals = len(encoder) + np.arange(len(more))
            encoder = encoder.joined(more)
        return replace(
            self,
            raw=raw,
            encoder=replace(encoder, may_miss=may_miss),
            encoding_sets=() if intervals is None else ways,
            intervals=intervals,
        )

    def _coded(self, table, rng, has_means):
        """Return the rows with the codes of categories as training rows have them, their table, and
        the means of categories.

        Levels that do not occur have no code; categories of many levels are encoded by the mean of
        the target where `has_means`.
        """
        which = np.array([j for j, levels in enumerate(table.levels) if levels is not None])
        orders = () if self.constraints is None else self.constraints.orders
        ordered = [place for place, j in enumerate(which.tolist()) if j in orders]
        codes = self.raw.columns(which)
        new, categories = Table(None, tuple(table.levels[j] for j in which)).for_rows(codes)
        means = {}
        if has_means:
            together = self.copies_of(table) if self.groups is None else self.groups
            new, means = target_encode(new, categories, *self.rates(), rng, together, ordered)
        levels = dict(zip(which.tolist(), categories.levels, strict=True))
        table = replace(table, levels=tuple(levels.get(j) for j in range(len(table.levels))))
        raw = self.raw if new is codes else self.raw.with_columns(which, new)
        return raw, table, {int(which[j]): mean for j, mean in means.items()}

    def centered(self, fit_intercept: bool) -> Self:
        """Return the task with targets around their centres, where an intercept can give these
        back. The new `centers` are of the targets of this task, whatever its own are.

        The centre is the mean for the squared loss, else the median; of a constant target it is
        that constant exactly. Numbers far from 0 would be rounded in every sum. And the duality gap
        is a bound where the dual point sums to 0: by rounding the sum is not quite 0, and its
        product with the mean of y would enter the gap.
        """
        # A target whose unit is above this has no centre taken from it: the difference of two such
        # numbers may overflow.
        largest_centered = 2.0**1020

        if not (fit_intercept and self.loss.is_shift_invariant):
            return self
        targets, centers = [], []
        for target in self.targets:
            outputs = np.atleast_2d(target)
            center = np.zeros(len(outputs))
            for k, y in enumerate(outputs):
                unit = power_of_two(y)
                if unit > largest_centered:
                    continue
                y = y / unit
                if self.loss.is_quadratic:
                    center[k] = unit * float(np.clip(self.weight @ y / len(y), y.min(), y.max()))
                else:
                    center[k] = unit * float(weighted_median(y, self.weight))
            centers.append(center.reshape(target.shape[:-1]))
            targets.append(target - centers[-1][..., None])
        return replace(self, targets=targets, centers=centers)

    def of_rows(self, index: np.ndarray) -> Task:
        """Return the task of some of its rows, at these ascending indices."""
        if len(index) == self.raw.n_rows:
            return self
        offset = None if self.offset is None else self.offset[..., index]
        groups = None if self.groups is None else self.groups[index]
        return replace(
            self,
            raw=self.raw.take(index),
            targets=[y[..., index] for y in self.targets],
            weight=self.weight[index],
            index=self.index[index],
            offset=offset,
            groups=groups,
        )

    def of_each_output(self) -> list[Task]:
        """Return a task for each real target; of one, for classes or outputs of one y the task
        itself."""
        if len(self.targets) == 1 or self.loss.is_classifier or self.loss.n_outputs > 1:
            return [self]
        pairs = zip(self.targets, self.centers, strict=True)
        return [replace(self, targets=[y], centers=[center]) for y, center in pairs]

    def with_encodings(self, encodings: np.ndarray | None) -> Task:
        """Return the task with some of the encodings of its encoder alone, given by their places;
        None: with all of them."""
        return self if encodings is None else replace(self, encoder=self.encoder.take(encodings))

    @cached_property
    def rows(self) -> Rows:
        """The rows with their columns encoded."""
        rows = self.raw.encoded(self.encoder, is_asked_often=True)
        return (rows.in_single() if self.is_single else None) or rows

    @property
    def copies(self) -> np.ndarray | None:
        """The number of each row and its copies (`copies_of`), of rows in memory; None where there
        are none."""
        return self.copies_of(None if self.encoder is None else self.encoder.table)

    def copies_of(self, table: Table | None) -> np.ndarray | None:
        """Return the same for rows of a table."""
        if not self.raw.in_memory:
            return None
        X, is_category = self.raw.array(), None
        if table is not None:
            is_category = np.array([levels is not None for levels in table.levels])
            if is_category.any():
                X = np.where(is_category, np.floor(X), X)  # as `target_encode` has them
        return copies_of(X, np.vstack(self.targets).T, is_category)

    @property
    def columns_held(self) -> np.ndarray:
        """A mask of the columns in which the model is to be constant beyond the training rows: not
        where it must be convex or concave."""
        if self.constraints is None:
            return np.full(self.raw.n_features_in, self.is_held)
        return (self.constraints.curvature == 0) & self.is_held

    @property
    def inputs_held(self) -> np.ndarray:
        """The same of the encodings."""
        columns, encoder = self.columns_held, self.encoder
        return columns if encoder is None else columns[encoder.column] & encoder.rises

    @property
    def is_joint(self) -> bool:
        """Whether the targets are classes that are fitted together, by the multinomial loss."""
        return self.loss.is_joint and len(self.targets) > 1

    def unit(self, y: np.ndarray) -> float:
        """Return the unit in which a target is fitted: a power of two, so that squares neither
        overflow nor underflow."""
        return power_of_two(y) if self.loss.degree else 1.0

    def loss_of(self, y: np.ndarray, output: int | None = None) -> Loss:
        """Return the loss for a target in its unit, a function of z and of `target_of` this
        target.

        output : the number of the target; None: the loss of all targets side by side
        """
        loss = self.loss if output is None else self.loss.of_output(output)
        loss = loss.scaled(self.unit(y))
        return loss if self.offset is None else OffsetLoss(loss)

    @property
    def losses(self) -> list[Loss]:
        """The loss of each target, as `loss_of` returns it."""
        return [self.loss_of(y, k) for k, y in enumerate(self.targets)]

    def target_of(self, y: np.ndarray) -> np.ndarray:
        """Return a target in its unit, together with the offsets where there are some."""
        unit = self.unit(y)
        return y / unit if self.offset is None else OffsetLoss.targets(y / unit, self.offset / unit)

    def rates(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the targets and weights (of mean 1) from which means are taken, of all rows or of
        those of a category.

        With a log link and offsets these are y / e^o and s e^o: counts over exposures, weighted by
        exposures (by s alone where each output has offsets of its own). Events have their baseline
        hazard as exposure. Outputs of one y share a target.
        """
        has_offset = self.offset is not None and self.loss.has_events
        if not (has_offset or self.loss.has_times):
            return self.targets[:: self.loss.n_outputs], self.weight
        targets = self.targets
        exposure = np.exp(self.offset) if has_offset else np.ones(len(self.weight))
        if self.loss.has_times:
            events, hazard = self.loss.events_and_hazards(targets[0])
            targets, exposure = [events], exposure * hazard
        weight = self.weight * exposure if exposure.ndim == 1 else self.weight
        some = np.where(exposure > 0, exposure, 1.0)
        return [y / some for y in targets], weight / weight.mean()

    def losses_of_unknown_row(self, z: np.ndarray, mean: float) -> np.ndarray:
        """Return, for margins z of each row, the loss of a row like it whose target is unknown;
        mean : that of `rates`."""
        loss, z, mean = self._of_unknown_row(z, mean)
        return loss.of_unknown_row(z, mean)

    def slopes_of_unknown_row(self, z: np.ndarray, mean: float) -> np.ndarray:
        """Return the derivatives of these losses in z."""
        loss, z, mean = self._of_unknown_row(z, mean)
        return loss.slope_of_unknown_row(z, mean)

    def _of_unknown_row(self, z, mean):
        """Return the loss without offsets, and the margins and the mean with them."""
        unit = self.unit(self.targets[0])
        loss = self.loss.scaled(unit)
        if self.offset is None:
            return loss, z, mean
        return (
            loss,
            z + self.offset / unit,
            mean * np.exp(self.offset) if loss.has_events else mean,
        )

    def slope_unit(self, y: np.ndarray) -> float:
        """Return the factor by which a gradient of the mean loss shrinks where y is divided by its
        unit."""
        return self.unit(y) ** (self.loss.degree - 1)

    def penalty_unit(self, y: np.ndarray) -> float:
        """Return the factor of a penalty on squares for a target in its unit; gradient steps are
        divided by it."""
        return self.loss.penalty_unit(y / self.unit(y), self.weight)

    def problem(
        self,
        Kind: type[OfKind],
        y: np.ndarray,
        alpha: float,
        fit_intercept: bool,
        output: int | None = None,
    ) -> OfKind:
        """Return the problem of fitting y in its unit: a `Kind`, a class of `Problem`.

        alpha : the factor of a penalty on squares, in the unit of `Loss.penalty_unit`
        output : as in `loss_of`
        """
        alpha = min(alpha * self.penalty_unit(y), 1e300)
        loss, y = self.loss_of(y, output), self.target_of(y)
        return Kind.from_arrays(self.rows.vectors, loss, y, self.weight, alpha, fit_intercept)

    def progress(self, callback: Callback, y: np.ndarray) -> Progress:
        """Return the `Progress` for the fit of a target."""
        return Progress(callback, self.unit(y), self.loss.degree)


def mixes_columns(features: Any) -> bool:
    """Return whether a `features` argument has features whose values depend on the units of one
    column beside another: not the columns themselves, and not rules."""
    maps = features if isinstance(features, (list, tuple)) else (features,)
    return any(not isinstance(each, (Linear, Rules)) for each in maps)


def read_columns(
    X: MatrixLike,
    first: MatrixLike,
    categorical: Categorical,
    encoder: ColumnEncoder | None,
    is_drawn: bool,
) -> tuple[MatrixLike, Table | None]:
    """Return X, as numbers where it is a table, and the table that reads it, or None.

    first : X, or its first rows where it comes in chunks
    encoder : the encoder of the features, if they are given and have one
    is_drawn : whether the features are a FeatureSet
    """
    if encoder is not None:
        if categorical is not None:
            what = "features is a FeatureSet" if is_drawn else "start is a model"
            raise ValueError(f"categorical must be None where {what}, which knows its columns")
        return read_table(X, encoder, None), encoder.table
    if categorical is None and not is_table(first):
        return X, None
    X, table = learn_table(X, categorical)
    if is_drawn and not table.is_numeric:
        raise TypeError(
            "X must hold numbers alone where features is a FeatureSet that sees columns as they "
            "are, got categories or times: give a feature map, or None"
        )
    return X, table


def rows_of_positive_weight(
    rows: Rows, sample_weight: ArrayLike | None
) -> tuple[np.ndarray, Rows, np.ndarray]:
    """Return the indices of the rows whose weight is not zero, these rows, and their weights scaled
    to mean 1.

    The rows are a copy where some are left out.
    """
    weight = check_sample_weight(sample_weight, rows.n_rows)
    index = np.flatnonzero(weight)
    if len(index) < rows.n_rows:
        rows, weight = rows.take(index), weight[index]
    return index, rows, weight / weight.mean()


def read_offset(
    offset: ArrayLike | None, loss: Loss, targets: list[np.ndarray], index: np.ndarray, n_rows: int
) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Check the offsets; return (targets less offsets, None) for a loss of the residual, else
    (targets, offsets).

    index : the places of the rows of the targets among all n_rows rows
    """
    if offset is None:
        return targets, None
    if loss.is_classifier and len(targets) > 1:
        raise ValueError(
            f"offset must be None for more than two classes, got one for {len(targets)}"
        )
    outputs = np.vstack(targets)
    offset = check_offset(offset, n_rows, len(outputs) // loss.n_outputs)[..., index]
    if not loss.is_shift_invariant:
        if np.abs(offset).max() > LARGEST_OFFSET[loss.link]:
            largest = LARGEST_OFFSET[loss.link]
            raise ValueError(
                f"offset must be between -{largest:g} and {largest:g} for loss={loss.name!r}, "
                f"got {offset.flat[np.abs(offset).argmax()]}"
            )
        return targets, offset
    less = outputs - offset
    if not np.isfinite(less).all():
        raise ValueError(
            f"offset must be of moderate size, got {np.abs(offset).max()}, with which y - offset "
            "overflows"
        )
    return [
        part.reshape(y.shape) for part, y in zip(np.split(less, len(targets)), targets, strict=True)
    ], None


def without_rounding(y: np.ndarray, offset: ArrayLike | None = None) -> np.ndarray:
    """Return a target, or several, with those that are constant to rounding as the constant.

    offset : what may have been taken off them: their rounding is in proportion to it, too
    """
    # Numbers that are the same but for rounding differ by at most so many units in the last place.
    units = 64

    low, high = y.min(axis=-1, keepdims=True), y.max(axis=-1, keepdims=True)
    size = np.maximum(np.abs(low), np.abs(high))
    if offset is not None:
        size = np.maximum(size, np.abs(np.asarray(offset, np.float64)).max())
    spread = high - low
    is_constant = spread <= units * float(np.finfo(np.float64).eps) * size
    return np.where(is_constant, low + spread / 2, y) if is_constant.any() else y
