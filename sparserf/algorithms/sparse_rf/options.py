"""The arguments of `sparse_rf` and `sparse_rf_path`: those of every fit, and those that only the
choice of a penalty has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..._base.checks import check_choice, check_flag, check_integer, check_real, checked
from ..._base.warnings import warn
from ...features import (
    NAMES,
    FeatureSet,
    RandomCosines,
    RuleInputs,
    Rules,
    make_dictionary,
    make_learning_dictionary,
    make_rule_dictionary,
    rules_at_a_penalty,
)
from ...model import SparseModel
from ..arguments import FitOptions
from ..chosen_on_folds import FoldOptions

if TYPE_CHECKING:
    from ...features.dictionary import Dictionary
    from ..task import Task


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseRFOptions(FitOptions):
    """The arguments of a fit, checked; those of its dictionary are checked by `dictionary`.

    tol : the duality gap of a solution at most, relative to its objective
    max_iter : the most rounds of a fit; None bounds its work instead (`Budget`)
    exact : whether the fit goes over all draws again until the gap over all of them is within `tol`
    gamma, n_components, batch_size, max_order : arguments of the dictionary that is searched; None
        stands for its defaults
    start : the model from which the fit begins, or None

    An `L1Fit` over a given dictionary needs `fit_intercept`, `tol`, `max_iter` and `callback`
    alone.
    """

    tol: float = checked(check_real, 0, strict=True)
    max_iter: int | None = checked(check_integer, 1, default=None)
    exact: bool = checked(check_flag, default=False)
    gamma: Any = None
    n_components: int | None = None
    batch_size: int | None = None
    max_order: int | None = checked(check_integer, 1, default=None)
    start: SparseModel | None = None

    @classmethod
    def of_call(cls, call: Mapping[str, Any]) -> Self:
        """Take the arguments out of all those of a call; without a penalty the features are those
        of the `start`."""
        call = dict(call)
        if call.get("extrapolate") is None:
            is_chosen = "alpha" in call and call["alpha"] is None
            call["extrapolate"] = "constant" if is_chosen else "linear"
        if call.get("start") is not None:
            start = check_start(call["start"], call["features"], call["alpha"])
            encoder = start.features.encoder
            if encoder is not None and not isinstance(call["features"], FeatureSet):
                # held at the ends of its own rows: these rows may go beyond
                start = replace(start, features=start.features.encoded(encoder.released))
                call["start"] = start
            call["features"] = start.features if call["alpha"] is None else call["features"]
        return super().of_call(call)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.features, str):
            check_choice("features", self.features, ("auto", *NAMES))
        if self.max_order is not None and not self.follows:
            raise ValueError(
                f"max_order needs features='auto' or Rules, got {self.max_order!r} with others"
            )

    @property
    def follows(self) -> bool:
        """Whether draws follow the fit, from a dictionary that has bandwidths of its own."""
        return self.is_auto or isinstance(self.features, Rules)

    def dictionary(
        self,
        task: Task,
        default: int,
        *,
        is_one_of_many: bool = True,
    ) -> Dictionary:
        """Return the dictionary that is searched, for the rows of `task`.

        Where `n_components` is None it has `default` draws; rules have as many as suit them
        (`rules_at_a_penalty`).

        is_one_of_many : whether it is searched again at each of many penalties
        """
        rows, constraints = task.rows, task.input_constraints
        are_rules = isinstance(self.features, Rules)
        if are_rules:
            default = rules_at_a_penalty(is_one_of_many)
        own = "Rules" if are_rules else "'auto'"
        if self.exact and self.follows:
            raise ValueError(
                f"exact must be False where features is {own}, whose draws cannot be made again; "
                "got True"
            )
        if self.gamma is not None and self.follows:
            raise ValueError(
                f"gamma must be None where features is {own}, which has none or tries many, got "
                f"{self.gamma!r}"
            )
        n_components = default if self.n_components is None else self.n_components
        sizes = {"n_components": n_components, "batch_size": self.batch_size, "rng": self.rng}
        if not self.follows:
            weights = {"weight": task.weight, "constraints": constraints}
            return make_dictionary(task.features, rows, gamma=self.gamma, **sizes, **weights)
        known = rows, task.weight, self.rng, task.encoder, self.max_order, constraints
        if are_rules:
            seen = RuleInputs.from_rows(task.features.n_bins, *known)
            sizes["has_intercept"] = self.fit_intercept
            return make_rule_dictionary(task.features, seen, task.weight, **sizes)
        start = RandomCosines.from_rows(*known)
        return make_learning_dictionary(start, rows.n_features_in, **sizes)


@dataclass(frozen=True, kw_only=True, eq=False)
class ChoiceOptions(FoldOptions):
    """The arguments by which a penalty is chosen. Beside a given penalty they have no meaning but
    their defaults.

    max_terms, effort : as in `sparse_rf`
    """

    max_terms: int | None = checked(check_integer, 1, default=None)
    effort: float = checked(check_real, 0, strict=True, default=1.0)

    @classmethod
    def of_call(cls, call: Mapping[str, Any]) -> Self:
        """Take the arguments out of all those of a call. Raise ValueError where one is given
        together with a penalty."""
        own = super().of_call(call)
        if call["alpha"] is not None:
            for field in fields(cls):
                value = getattr(own, field.name)
                if not (value is None or isinstance(value, Real)) or value != field.default:
                    raise ValueError(
                        f"{field.name} needs alpha=None, got {value!r} with alpha={call['alpha']!r}"
                    )
        return own


def check_start(start: Any, features: Any, alpha: float | None) -> SparseModel:
    """Return `start`, after the checks that need neither X nor y."""
    if not isinstance(start, SparseModel):
        raise TypeError(f"start must be a SparseModel or None, got {type(start).__name__}")
    negative = np.atleast_2d(start.coef)[:, start.features.nonnegative] < 0
    if negative.any():
        raise ValueError(
            "start must have coefficients of at least 0 where features ask for it, got "
            f"{negative.sum()} below"
        )
    if alpha is None:
        if not (isinstance(features, str) and features == "auto"):
            raise ValueError(
                "features must be left out where start is given and alpha is None: the terms are "
                "those of start"
            )
        if not len(start.features):
            raise ValueError(
                "start must have a term where alpha is None, got a model without terms"
            )
    elif isinstance(features, FeatureSet):
        encoder, own = features.encoder, start.features.encoder
        if encoder is not own and not (encoder and encoder.is_same(own)):
            raise ValueError(
                "start must see the columns of X in the units of features, got a model of other "
                "units"
            )
    elif start.features.encoder is not None and not start.features.encoder.is_whole:
        lacks = (
            "start comes from a file or pickle, which knows how to encode those columns alone "
            "that its terms use"
        )
        warn(
            f"{lacks}: new terms see no others; fit without start to search all columns",
            UserWarning,
        )
    return start
