"""The loss of times until an event, of which some are censored: Cox's proportional hazards.

The hazard of a row is lambda0(t) e^z: a baseline that all rows of a stratum share, times a factor
of its own. With the cumulative baseline Lambda0 fixed, the likelihood of a row is that of a Poisson
count of its events, 0 or 1, of the mean Lambda0(t) e^z. The best Lambda0 for some z is Breslow's
estimator, with which the Poisson likelihood is the partial likelihood and a constant: fitting f and
Lambda0 in turn, which is convex in f and the logs of the steps of Lambda0 together, goes to the
optimum of the partial likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from .._base.arrays import as_like, namespace
from .._base.checks import check_real
from .base import Loss
from .links import LINKS
from .regression import FARTHEST, Poisson

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import Array

POISSON = Poisson()


@dataclass(frozen=True, repr=False)
class Cox(Loss):
    r"""Cox's proportional hazards, for times until an event, some of them censored: `predict` is
    the log of the hazard ratio, and `survival` the probability of no event until a time.

    With the cumulative baseline hazard H at its time a row has the loss of a Poisson count of its
    events, d = 0 or 1, at the mean m = H e^z:

    ==========  =======================================================
    loss        m - d (1 + log m), the log of H included
    derivative  m - d
    curvature   m
    conjugate   a log(a / d) - (a - d) - u log H, for a = u + d >= 0
    ==========  =======================================================

    H is fitted together with f, in rounds, and is in the end Breslow's estimator for the model's
    own f. So f minimises, with the penalty, the negative log partial likelihood over n, with
    Breslow's treatment of ties.

    y is a structured array with a field of booleans (whether the event was seen) and one of numbers
    (the time of the event, or of censoring), as scikit-survival has it; or a data frame of two such
    columns, or of columns "time" and "event"; or an array (n_samples, 2) of times and events, 0 or
    1. A field or column "stratum", or a third column of an array, has the stratum of each row: each
    has a baseline of its own, and f is common to all. Times are at least 0; at the same time events
    come before censoring. Rows are at risk from 0 on: late entry (left truncation) is not known.

    Where the model has an intercept, f has the mean 0 over the training rows, weights counted: e^f
    is the hazard in proportion to that of a row of f = 0, whose cumulative hazard is `hazards`.

    Parameters
    ----------
    times, hazards : tuple of float, or None, default None
        The times of events, ascending in each stratum, and the cumulative baseline hazard at each.
        None: found by the fit.
    strata : tuple of float or of str, or None, default None
        The stratum of each of these times, ascending; None: there is one.

    References
    ----------
    D. R. Cox, Regression Models and Life-Tables, J. R. Statist. Soc. B 34, 1972, and the discussion
    by N. E. Breslow. J. Whitehead, Fitting Cox's Regression Model to Survival Data using GLIM,
    Appl. Statist. 29, 1980, for the Poisson loss.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (1000, 2))
    >>> time, censored = rng.exponential(np.exp(-np.sin(2 * X[:, 0]))), rng.exponential(2, 1000)
    >>> y = np.rec.fromarrays(
    ...     [time <= censored, np.minimum(time, censored)], names=["event", "time"]
    ... )
    >>> how = {"features": "gaussian", "gamma": 1.0, "alpha": 0.02, "n_components": 500, "rng": 0}
    >>> model = srf.sparse_rf(X, y, loss="cox", **how)
    >>> bool(np.corrcoef(model.predict(X), np.sin(2 * X[:, 0]))[0, 1] > 0.9)
    True
    >>> model.survival(X[:3], [0.5, 1.0]).shape
    (3, 2)
    """

    times: tuple[float, ...] | None = None
    hazards: tuple[float, ...] | None = None
    strata: tuple[float, ...] | tuple[str, ...] | None = None

    name: ClassVar[str] = "cox"
    link: ClassVar[Literal["log_hazard"]] = "log_hazard"
    has_times: ClassVar[bool] = True
    is_unimodal: ClassVar[bool] = True
    is_self_concordant: ClassVar[bool] = True
    least_step: ClassVar[float] = 4e-15

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            values = getattr(self, name)
            if values is None:
                continue
            if self.times is None:
                raise ValueError(f"{name} must be None without times, got {values!r}")
            if len(values) != len(self.times):
                raise ValueError(
                    f"{name} must have {len(self.times)} entries, as times, got {len(values)}"
                )
            object.__setattr__(self, name, check(name, values))
        if self.times is not None and not (np.diff(self._keys) > 0).all():
            raise ValueError("strata must ascend, and times in each of them")

    def __repr__(self) -> str:
        about = "" if self.times is None else f"{len(self.times)} times of events"
        return f"{type(self).__name__}({about})"

    # -- the times of events, and y as numbers

    @cached_property
    def _labels(self) -> np.ndarray | None:
        """The strata that have events, ascending; None: there is one."""
        return None if self.strata is None else np.unique(np.array(self.strata))

    @cached_property
    def _stratum(self) -> np.ndarray:
        """The number of the stratum of each time of an event."""
        if self._labels is None:
            return np.zeros(len(self.times), np.int64)
        return np.searchsorted(self._labels, np.array(self.strata))

    @cached_property
    def _keys(self) -> np.ndarray:
        """A number for each time of an event, which ascends by stratum and then by time."""
        return self._keys_of(np.array(self.times), self._stratum)

    def _keys_of(self, time, number):
        """Return the keys of any times in the strata of these numbers."""
        known = np.unique(self.times)
        return number * (len(known) + 1) + np.searchsorted(known, time, side="right")

    def of_times(self, time: np.ndarray, event: np.ndarray, stratum: np.ndarray | None) -> Cox:
        """Return the loss with the times of events of these rows, (n_rows,) each, where it has
        none.

        Raises ValueError if no f changes the likelihood of y.
        """
        if self.times is not None:
            return self
        if not event.any():
            raise ValueError(f"y must have an event, got {len(event)} censored times")
        labels, number = (
            (None, np.zeros(len(time), np.int64))
            if stratum is None
            else np.unique(stratum, return_inverse=True)
        )
        events = np.unique(np.column_stack([number, time])[event], axis=0)
        strata = None if labels is None else tuple(labels[events[:, 0].astype(int)].tolist())
        loss = replace(self, times=tuple(events[:, 1].tolist()), strata=strata)
        if loss._rows_at_risk(loss.codes(time, event, stratum)).max() < 2:
            raise ValueError(
                "y must have an event at whose time other rows are at risk, got none: all others "
                "of its stratum are censored before"
            )
        return loss

    def _rows_at_risk(self, codes):
        """Return the number of rows at risk at each time of an event."""
        counts = np.bincount(np.abs(codes).astype(np.int64), minlength=len(self.times) + 1)[1:]
        return self._within_strata(lambda of_one: np.cumsum(of_one[::-1])[::-1], counts)

    def _within_strata(self, function: Callable[[np.ndarray], np.ndarray], values: np.ndarray):
        """Return, side by side, a function of the values of each stratum, which has one value for
        each of its times."""
        ends = np.flatnonzero(np.diff(self._stratum)) + 1
        return np.concatenate([function(each) for each in np.split(values, ends)])

    def codes(self, time: np.ndarray, event: np.ndarray, stratum: np.ndarray | None) -> np.ndarray:
        """Return one number for each row: j for an event, -j for a censored row, where j is the
        place, from 1, of the last time of an event in its stratum up to its own time.

        A row that is censored before all events is 0; an event before all counts as one at the
        first of these times.
        """
        number = self._number_of(stratum, len(time))
        place = np.searchsorted(self._keys, self._keys_of(time, number), side="right")
        of_place = np.concatenate([[-1], self._stratum])
        is_before = of_place[place] != number
        is_first = is_before & event & np.isin(number, self._stratum)
        place = np.where(is_before & ~is_first, 0, place + is_first)
        return np.where(event, place, -place).astype(np.float64)

    def _number_of(self, stratum, n_rows):
        """Return the number of each row's stratum, -1 for one without events."""
        if (stratum is None) is not (self._labels is None):
            has = "no strata" if self._labels is None else "strata"
            raise ValueError(f"y must have {has}, as the rows had to which the model was fitted")
        if self._labels is None:
            return np.zeros(n_rows, np.int64)
        if (stratum.dtype.kind == "f") is not (self._labels.dtype.kind == "f"):
            raise ValueError(
                f"stratum must be of the kind of {self._labels[0]!r}, got {stratum[0]!r}"
            )
        number = np.searchsorted(self._labels, stratum).clip(max=len(self._labels) - 1)
        return np.where(self._labels[number] == stratum, number, -1)

    def hazard_until(self, times: np.ndarray, stratum: object = None) -> np.ndarray:
        """Return the cumulative baseline hazard at some times: constant from one event to the next,
        and after the last."""
        labels = None
        if self._labels is None and stratum is not None:
            raise ValueError(f"stratum must be None, as the model has no strata, got {stratum!r}")
        if isinstance(stratum, str):
            labels = np.full(len(times), stratum)
        elif stratum is not None:
            labels = np.full(len(times), check_real("stratum", stratum, -np.inf))
        is_known = labels is None or len(times) == 0 or self._number_of(labels, len(times))[0] >= 0
        if self._labels is not None and (labels is None or not is_known):
            some = ", ".join(map(repr, self._labels[:10].tolist()))
            raise ValueError(
                f"stratum must be one that had events, such as {some}, got {stratum!r}"
            )
        place = -self.codes(times, np.zeros(len(times), bool), labels)
        return np.concatenate([[0.0], self.hazards])[place.astype(np.int64)]

    def survival(
        self, f: np.ndarray, times: np.ndarray, stratum: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the probabilities of no event until some times, (n_rows, n_times), for the f and
        the stratum of each row."""
        if stratum is None:
            return survival_of(self.hazard_until(times), f)
        survival = np.empty((len(f), len(times)))
        for label in np.unique(stratum).tolist():
            of_one = stratum == label
            survival[of_one] = survival_of(self.hazard_until(times, label), f[of_one])
        return survival

    # -- hazards

    @property
    def has_free_parameters(self) -> bool:
        return self.hazards is None

    def of_target(self, y: np.ndarray, weight: np.ndarray) -> Cox:
        """Return the loss with Nelson and Aalen's estimator of the hazards, where it has none."""
        return self if self.hazards is not None else self.fitted_to(np.zeros_like(y), y, weight)

    def fitted_to(self, z: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Cox:
        """Return the loss with Breslow's estimator of the hazards for decision values z.

        The step at a time is the weight of its events, over the sum of s e^z of the rows at risk.
        Logarithms are added up, so that nothing overflows.
        """
        place = np.abs(y).astype(np.int64)
        order = np.argsort(place, kind="stable")
        first = np.searchsorted(place[order], np.arange(1, len(self.times) + 1))
        sizes = np.append(first[1:], len(y)) - first
        sums = np.full(len(self.times), -np.inf)
        some = sizes > 0
        logs = (z + np.log(weight))[order]
        sums[some] = np.logaddexp.reduceat(logs, first[some])
        at_risk = self._within_strata(lambda a: np.logaddexp.accumulate(a[::-1])[::-1], sums)
        events = np.bincount(place, weight * (y > 0), len(self.times) + 1)[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(events > 0, np.log(events) - at_risk, -np.inf)
        logs = self._within_strata(np.logaddexp.accumulate, steps)
        hazards = np.exp(np.clip(logs, -FARTHEST, FARTHEST))
        return replace(self, hazards=tuple(hazards.tolist()))

    def mean_of_parameters(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the mean of d log(H / h), where h is the step of H at the time of the row: the
        hazard of an event in the likelihood is h e^z, and in the Poisson loss H e^z."""
        steps = self._within_strata(lambda hazards: np.diff(hazards, prepend=0.0), self.hazards)
        steps = np.maximum(steps, np.finfo(np.float64).tiny)
        logs = np.log(np.array(self.hazards) / steps)
        return float(weight[y > 0] @ logs[y[y > 0].astype(np.int64) - 1]) / len(y)

    @property
    def has_events(self) -> bool:
        return True

    def events_and_hazards(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of events of each row, 0 or 1, and its cumulative baseline hazard."""
        hazards = np.concatenate([[0.0], self.hazards])
        return (y > 0).astype(np.float64), hazards[np.abs(y).astype(np.int64)]

    # -- the loss

    def size(self, mean: float) -> float:
        return 1.0

    def penalty_unit(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the share of events: the mean curvature at the best constant."""
        return min(((np.atleast_2d(y) > 0) @ weight / weight.sum()).tolist())

    def intercept_step(self, slope: float, curvature: float) -> float:
        """Return the exact step, as of `Poisson`."""
        return POISSON.intercept_step(slope, curvature)

    @cached_property
    def _log_hazards(self) -> np.ndarray:
        """The log of the hazard at each place, 0 at place 0."""
        return np.concatenate([[0.0], np.log(self.hazards)])

    def _log_hazard(self, y: Array) -> Array:
        """Return the log of the hazard of each row, 0 where the hazard is 0."""
        xp = namespace(y)
        place = xp.astype(xp.reshape(xp.abs(y), (-1,)), xp.int64)
        found = xp.take(as_like(self._log_hazards, y), place)
        return xp.reshape(xp.astype(found, y.dtype, copy=False), y.shape)

    def _of_rows(self, method: Callable[[Array, Array], Array], z: Array, y: Array) -> Array:
        """Return the Poisson loss's method at z + log H for counts of events, 0 where H is 0."""
        xp = namespace(z)
        events = xp.astype(y > 0, z.dtype)
        return xp.where(y == 0, xp.zeros_like(z), method(z + self._log_hazard(y), events))

    def value(self, z: Array, y: Array) -> Array:
        return self._of_rows(POISSON.value, z, y)

    def derivative(self, z: Array, y: Array) -> Array:
        return self._of_rows(POISSON.derivative, z, y)

    def curvature(self, z: Array, y: Array) -> Array:
        return self._of_rows(POISSON.curvature, z, y)

    def conjugate(self, u: Array, y: Array) -> Array:
        xp = namespace(u)
        events = xp.astype(y > 0, u.dtype)
        conjugate = POISSON.conjugate(u, events) - u * self._log_hazard(y)
        return xp.where(y == 0, xp.zeros_like(u), conjugate)


def survival_of(hazard: np.ndarray, f: Array) -> Array:
    """Return exp(-hazard e^f), (n_rows, n_times), for cumulative hazards at some times."""
    xp, ratio = namespace(f), LINKS["log"].predict(f)
    return xp.exp(-ratio[:, None] * xp.astype(as_like(hazard, f), f.dtype, copy=False))


def _numbers(name, values, strict=False):
    """Return finite numbers of at least 0, or above 0, as a tuple of floats."""
    array = np.asarray(values)
    is_plain = array.ndim == 1 and array.dtype.kind in "fiu" and bool(np.isfinite(array).all())
    if is_plain and not (array <= 0 if strict else array < 0).any():  # fast, for many numbers
        return tuple(array.astype(np.float64).tolist())
    return tuple(check_real(name, value, 0, strict=strict) for value in values)


def _labels(name, values):
    """Return labels of strata, all strings or all numbers, as a tuple."""
    if all(isinstance(value, str) for value in values):
        return tuple(values)
    return tuple(check_real(name, value, -np.inf) for value in values)


# How each parameter is checked.
CHECKS: dict[str, Callable[[str, Sequence[Any]], tuple[Any, ...]]] = {
    "times": _numbers,
    "hazards": partial(_numbers, strict=True),
    "strata": _labels,
}
