"""The options that `harfe` and `mfga` share, and the `Task` that these make, with features="auto".

Both functions select among the features of a dictionary that is drawn whole. With features="auto" the dictionary is the terms
that `sparse_rf` finds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from .._base.checks import check_callable, check_flag, check_rng
from ..losses import JOINTLY
from .sparse_rf import sparse_rf
from .task import ColumnSetting, Task

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..columns.constraints import Interactions, Signs
    from ..columns.stage import Missing, Units
    from ..columns.table import Categorical
    from ..columns.targets import ClassWeight
    from ..losses import LossLike
    from ..model import Callback


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedOptions:
    """The arguments that `harfe` and `mfga` share, checked, with rng as a Generator."""

    features: Any = None
    n_components: int = 10_000
    scale: Units = "auto"
    missing: Missing = "learn"
    categorical: Categorical = None
    monotone: Signs = None
    convex: Signs = None
    interactions: Interactions = None
    loss: LossLike = "squared"
    fit_intercept: bool = True
    sample_weight: ArrayLike | None = None
    class_weight: ClassWeight = None
    offset: ArrayLike | None = None
    groups: ArrayLike | None = None
    rng: Any = None
    workers: int = 1
    callback: Callback = None

    def __post_init__(self) -> None:
        self._set_checked(
            rng=check_rng(self.rng),
            fit_intercept=check_flag("fit_intercept", self.fit_intercept),
            callback=check_callable("callback", self.callback),
        )

    def _set_checked(self, **checked):
        """Replace the fields that the user gave by their checked values."""
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def is_auto(self) -> bool:
        """Whether the features are the terms that `sparse_rf` finds, which may be fewer than the user wants."""
        return isinstance(self.features, str) and self.features == "auto"


def read_task(X: MatrixLike, y: ArrayLike, options: SharedOptions, several_outputs: Literal["together", "apart"]) -> Task:
    """Return the `Task` of `harfe` or `mfga`, with centered targets; for features="auto" find them first.

    several_outputs : whether real targets of several outputs are one target or one each
    """
    columns = ColumnSetting(
        options.scale, options.missing, options.categorical, options.monotone, options.convex, options.interactions
    )
    features = options.features
    about = {
        "loss": options.loss, "sample_weight": options.sample_weight, "class_weight": options.class_weight,
        "offset": options.offset, "groups": options.groups, "rng": options.rng, "workers": options.workers,
    }  # fmt: skip
    if options.is_auto:
        found = sparse_rf(
            X, y, scale=options.scale, missing=options.missing, categorical=options.categorical, monotone=options.monotone,
            convex=options.convex, interactions=options.interactions, fit_intercept=options.fit_intercept, **about,
        )  # fmt: skip
        features, columns = found.features, replace(columns, categorical=None)  # a FeatureSet knows its columns
        if len(features) == 0:
            raise ValueError("features='auto' has found no term that predicts y better than a constant: give other features")
    task = Task.from_arguments(
        X, y, features=features, columns=columns, losses=JOINTLY, several_outputs=several_outputs, **about
    )
    return task.centered(options.fit_intercept)
