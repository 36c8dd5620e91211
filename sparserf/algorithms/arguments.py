"""The arguments of a call, each read once: those of the columns of X, those of its rows, and those
of a fit to both.

A public function hands over its `locals()`, out of which each class here takes its own arguments by
name, and checks them: `HarfeOptions.of_call(locals())`. What comes after gets these objects, and
passes them on as they are. That no class takes an argument would lose it in silence:
tests/algorithms/test_arguments_are_read.py gives each argument of each function a value that must
be refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

from .._base.checks import (
    check_callable,
    check_choice,
    check_fields,
    check_flag,
    check_real,
    check_rng,
    checked,
)
from .._base.deadline import deadline_of_call
from ..losses import JOINTLY, check_loss
from ..losses.links import LINKS
from ..solvers.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from ..columns.constraints import Interactions, Signs
    from ..columns.encoder import Extrapolate, Missing, Units
    from ..columns.table import Categorical
    from ..columns.targets import ClassWeight
    from ..losses import LinearLossLike, LossLike
    from ..model import Callback


@dataclass(frozen=True, eq=False)
class Arguments:
    """Arguments of a public function, which the fields of a subclass name and check."""

    @classmethod
    def of_call(cls, call: Mapping[str, Any]) -> Self:
        """Take the arguments out of all those of a call; an argument that the function lacks keeps
        its default."""
        return cls(**{each.name: call[each.name] for each in fields(cls) if each.name in call})

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, eq=False)
class ColumnSetting(Arguments):
    """How a fit encodes the columns of X, and the constraints of the model in them.

    scale : "robust" for columns in robust units, None for columns as they are
    missing : "learn" where dense X may have NaN, or "raise"
    extrapolate : whether a model is "constant" in a column beyond the range of its rows, or
        "linear"
    categorical : which columns are categories, as the user says; None where a data frame has them
        marked, or none are
    monotone, convex, interactions : the constraints, which `read_constraints` checks once the
        columns are known
    """

    scale: Units = checked(check_choice, ("robust",), default=None)
    missing: Missing = checked(check_choice, ("learn", "raise"), default="raise")
    extrapolate: Extrapolate = checked(check_choice, ("constant", "linear"), default="linear")
    categorical: Categorical = None
    monotone: Signs = None
    convex: Signs = None
    interactions: Interactions = None


@dataclass(frozen=True, eq=False)
class RowSetting(Arguments):
    """The loss of the rows, their weights, and which belong together; `Task.from_arrays` checks
    them against X and y.

    loss : the name of a loss, or a `Loss`
    sample_weight, class_weight : the weights of the rows, and of the classes; None: all are the
        same
    offset : a number that is added to f in the loss, for each row, or each row and output; None: 0
    groups : the group of each row; None: each is its own
    workers : the number of threads that go over the rows
    """

    loss: LossLike | LinearLossLike = "squared"
    sample_weight: ArrayLike | None = None
    class_weight: ClassWeight = None
    offset: ArrayLike | None = None
    groups: ArrayLike | None = None
    workers: int = 1


# The settings of a call without arguments: columns as they are, and rows that all count the same.
RAW_COLUMNS = ColumnSetting()
PLAIN_ROWS = RowSetting()


@dataclass(frozen=True, kw_only=True, eq=False)
class FitOptions(Arguments):
    """The arguments that all fits share; a subclass adds those of its algorithm.

    features : the dictionary of terms
    columns, rows : how columns are encoded, and how much rows count
    limits : the limits (lower, upper) of f that the model is to have
    fit_intercept : whether there is an intercept, without a penalty
    rng : the Generator of all random draws
    callback : called with the `FitInfo` so far; returning True ends the fit
    budget : the time of the call, and what ended early for want of it
    """

    features: Any = None
    columns: ColumnSetting = RAW_COLUMNS
    rows: RowSetting = PLAIN_ROWS
    limits: tuple[float | None, float | None] = (None, None)
    fit_intercept: bool = checked(check_flag, default=True)
    rng: Any = None
    callback: Callback = checked(check_callable, default=None)
    budget: Budget = field(default_factory=Budget)

    @classmethod
    def of_call(cls, call: Mapping[str, Any]) -> Self:
        """Take the arguments out of all those of a call."""
        parts = {
            "columns": ColumnSetting.of_call(call),
            "rows": RowSetting.of_call(call),
            "limits": check_limits(call.get("lower"), call.get("upper"), call["loss"]),
            "budget": Budget(deadline=deadline_of_call()),
        }
        return super().of_call({**call, **parts})

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rng", check_rng(self.rng))

    @property
    def is_auto(self) -> bool:
        """Whether the fit finds its features: by a dictionary that learns; for `harfe` and `mfga`
        by `sparse_rf` first."""
        return isinstance(self.features, str) and self.features == "auto"


def check_limits(
    lower: float | None, upper: float | None, loss: LossLike
) -> tuple[float | None, float | None]:
    """Return the limits of f for the limits of predictions that the user gave; None: no limit.

    The fit does not know of limits: its model clips decision values to them, wherever it predicts.
    """
    if lower is None and upper is None:
        return None, None
    loss = check_loss(loss, JOINTLY)
    for name, value in (("lower", lower), ("upper", upper)):
        if value is not None and loss.is_classifier:
            raise ValueError(
                f"{name} must be None for loss={loss.name!r}, which predicts classes, got {value!r}"
            )
    lower, upper = (
        None if value is None else check_real(name, value, -math.inf)
        for name, value in (("lower", lower), ("upper", upper))
    )
    given, link = (lower, upper), LINKS[loss.link]
    lower, upper = link.limit("lower", lower, 1.0), link.limit("upper", upper, -1.0)
    if lower is not None and upper is not None and lower >= upper:
        raise ValueError(f"lower must be below upper, got lower={given[0]} and upper={given[1]}")
    return lower, upper
