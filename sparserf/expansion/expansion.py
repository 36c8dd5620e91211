"""An expansion f(x) = intercept + sum_j coef_j phi_j(x) in features phi_j: its fields, and what it
predicts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._base.arrays import check_no_overflow, namespace, outputs_like
from .._base.checks import as_real, check_finite
from .._base.floats import methods_as_ieee
from ..losses import PROBABILISTIC, loss_from_parameters
from ..losses.links import LINKS
from ..losses.survival import survival_of
from .base import BaseModel, identity, predictions_within, probabilities, within
from .ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from .._base.types import Array, MatrixLike
    from ..features import FeatureSet
    from ..losses.base import Parameter
    from ..losses.links import LinkName
    from ..rows import Block
    from .fit_info import FitInfo


@methods_as_ieee
@dataclass(frozen=True, eq=False, repr=False)
class Expansion(BaseModel):
    """The fields of a `SparseModel`, which are explained there, and its predictions."""

    coef: NDArray[np.float64]
    intercept: float | NDArray[np.float64]
    support: NDArray[np.int64]
    features: FeatureSet
    loss: str
    classes: np.ndarray | None
    info: FitInfo
    loss_parameters: dict[str, Parameter] = field(default_factory=dict)
    link: LinkName = "identity"
    lower: float | None = None
    upper: float | None = None
    ranges: Ranges = field(default_factory=Ranges.of_nothing)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.ranges, Ranges):
            object.__setattr__(self, "ranges", Ranges.from_mapping(self.ranges))

    @property
    def stripped(self) -> Self:
        """The model without the encodings and ranges of columns that no term uses: of these it has
        names and kinds alone.

        Files, pickles and exports are made of it, so that they tell nothing of such columns. The
        model itself keeps all encodings: a fit may start from it.
        """
        features = self.features.seeing_only_what_they_use()
        ranges = self.ranges.seen_by(self.features.columns_seen).of_seen
        is_same = features is self.features and len(ranges.column) == len(self.ranges.column)
        return self if is_same else replace(self, features=features, ranges=ranges)

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.stripped.__dict__)

    @property
    def n_features_in(self) -> int:
        return self.features.n_features_in

    @property
    def feature_names_in_(self) -> tuple[str, ...] | None:
        """The names of the columns of the data frame that the model was fitted to; None for an
        array."""
        return self.features.feature_names_in_

    @property
    def thresholds(self) -> tuple[float, ...]:
        return self.loss_parameters["thresholds"] if self.link == "cumulative" else ()

    @property
    def size(self) -> int:
        """How many numbers predictions are computed from."""
        n = int(np.count_nonzero(self.coef)) + np.size(self.intercept) + self.features.n_numbers
        return n + len(self.thresholds) + (self.lower is not None) + (self.upper is not None)

    @property
    def limits(self) -> tuple[float, float]:
        """The limits of f, (lower, upper); infinite where there is none."""
        lower = -np.inf if self.lower is None else self.lower
        return lower, np.inf if self.upper is None else self.upper

    @property
    def limits_of_predictions(self) -> tuple[float, float]:
        """The limits of what a regression predicts, (lower, upper); of a classifier, those of f."""
        if self.classes is not None:
            return self.limits
        with np.errstate(over="ignore"):
            lower, upper = LINKS[self.link].inverse(np.array(self.limits))
        return float(lower), float(upper)

    @property
    def has_limits(self) -> bool:
        """Whether f has a limit."""
        return self.lower is not None or self.upper is not None

    @property
    def _inverse_link(self) -> Callable[[Array], Array]:
        is_regression = self.classes is None
        if is_regression and self.has_limits and not LINKS[self.link].is_identity:
            return partial(predictions_within, self.link, *self.limits_of_predictions)
        return super()._inverse_link

    def decision_function(
        self, X: MatrixLike, workers: int = 1, *, offset: ArrayLike | None = None
    ) -> np.ndarray:
        """Compute the decision values f(x), from which `predict` makes labels or regression values.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.
        offset : array of shape (n_samples,) or (n_samples, n_outputs), or None, default None
            The number that is added to f, as in `predict`.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_outputs) for several outputs or more than
        two classes without an order
            Within `lower` and `upper`, offset included. float32 for float32 X, float64 for all
            else.
        """
        return self._map_decisions(X, workers, identity, offset)

    def predict_proba(
        self, X: MatrixLike, workers: int = 1, *, offset: ArrayLike | None = None
    ) -> np.ndarray:
        """Compute the probability of each class, with the logistic, multinomial or ordinal loss
        only.

        For more than two classes it is the softmax of the decision values with loss="multinomial";
        with loss="logistic" the one-vs-rest probabilities are scaled to sum to 1; with
        loss="ordinal" they are those between the thresholds.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.
        offset : array of shape (n_samples,) or None, default None
            What is added to f, the log odds of the second of two classes, as in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes`.

        Raises
        ------
        ValueError, TypeError
            The model has another loss: see `calibrated`. X does not fit the model, or offset not
            the rows.
        """
        if self.loss not in PROBABILISTIC:
            names = " or ".join(f"loss={name!r}" for name in PROBABILISTIC)
            raise ValueError(
                f"predict_proba needs a model fitted with {names}, this one has loss={self.loss!r}"
            )
        finish = partial(probabilities, self.link, self.thresholds)
        return self._map_decisions(X, workers, finish, offset)

    def survival(
        self,
        X: MatrixLike,
        times: ArrayLike,
        workers: int = 1,
        *,
        stratum: float | str | None = None,
        offset: ArrayLike | None = None,
    ) -> np.ndarray:
        """Compute the probability of no event until each of some times, with loss="cox" only.

        It is exp(-H(t) e^f), where H is the cumulative baseline hazard that was fitted, a step
        function: survival is 1 before the first event of the training rows, and after the last it
        stays what it is there.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        times : array of shape (n_times,)
            Times, in the units of those of y; any order.
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.
        stratum : number, string or None, default None
            The stratum whose baseline is taken, for a model that was fitted to strata.
        offset : array of shape (n_samples,) or None, default None
            What is added to f, as in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_times)
            In [0, 1], and no greater at later times.

        Raises
        ------
        ValueError, TypeError
            The model has another loss; the stratum is none that had events, or is missing; X does
            not fit the model, or times are no numbers.
        """
        if self.loss != "cox":
            raise ValueError(
                f"survival needs a model fitted with loss='cox', this one has loss={self.loss!r}"
            )
        times = as_real("times", times).astype(np.float64)
        if times.ndim != 1:
            raise ValueError(f"times must be one-dimensional, got shape {times.shape}")
        check_finite("times", times)
        hazard = loss_from_parameters(self.loss, self.loss_parameters).hazard_until(times, stratum)
        return self._map_decisions(X, workers, partial(survival_of, hazard), offset)

    def _map_decisions(self, X, workers, finish, offset):
        rows = self.features.rows_of(X, workers)
        limits = self.limits if self.has_limits else None
        about = self.features, self.coef, self.intercept, limits, rows.dtype, finish
        offsets = self._read_offset(offset, X, rows.n_rows)
        return rows.to_namespace_of_X(rows.map(partial(_decide, *about), *offsets, axis=0))

    def input_usage(self) -> np.ndarray:
        """Return the share of the selected features that use each input, shape (n_features_in,)."""
        return self.features.input_usage()


@np.errstate(over="ignore")  # values too large for the dtype of X become infinite
def _decide(
    features: FeatureSet,
    coef: np.ndarray,
    intercept: float | np.ndarray,
    limits: tuple[float, float] | None,
    dtype: np.dtype,
    finish: Callable[[Array], Array],
    block: Block,
    *offset: Array,
) -> Array:
    """Return finish(f) for a block of rows, where f = Phi coef + intercept has the dtype of X and a
    line for each row.

    offset : nothing, or the one offset that is added to f
    limits : the limits of f, offset included; None: none
    """
    f = check_no_overflow(block.apply(features, coef))
    f = f + outputs_like(intercept, f)
    for each in offset:
        f = f + each
    if isinstance(f, np.ndarray):
        f = f.T.astype(dtype, copy=False)
    else:
        xp = namespace(f)
        f = xp.astype(f if f.ndim == 1 else f.T, getattr(xp, dtype.name), copy=False)
    return finish(f if limits is None else within(*limits, f))
