"""Links: how a regression makes predictions of its decision values f.

A new link is a class here, with its place in `LINKS`. Losses have links by their names; models,
exports and explanations ask these objects. Only what reads y knows one by its name: with the hazard
link y holds times.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import numpy as np

from .._base.arrays import namespace
from .._base.checks import check_real
from .._base.expressions import at_most, exp

if TYPE_CHECKING:
    from .._base.expressions import Expression
    from .._base.types import Array

# The names of the links of regressions; and of those of classes, "softmax", and "cumulative" for
# classes in order.
LinkName: TypeAlias = Literal["identity", "ascending", "log", "log_hazard", "softmax", "cumulative"]
# The links that a user's own loss may have.
OF_OWN = "identity", "log"


class Link(ABC):
    """A link: predictions are a function of f that rises with it.

    name : as losses, models and files have it
    is_identity : whether predictions are f itself, perhaps sorted
    is_ascending : whether the predictions of a row are sorted
    largest : {dtype: the largest f whose prediction is finite}, to which larger f are clipped; None
        where predictions of all f are finite
    largest_offset : the largest size of an offset
    formula, unit, effect, task : words for the prediction as a function of f, for the unit of f,
        for an effect on f of an output, and for what a model does
    """

    name: ClassVar[str]
    is_identity: ClassVar[bool] = False
    is_ascending: ClassVar[bool] = False
    largest: ClassVar[dict[str, float] | None] = None
    largest_offset: ClassVar[float] = 1e30
    formula: ClassVar[str]
    task: ClassVar[str] = "regression"
    unit: ClassVar[str]
    effect: ClassVar[str]

    def predict(self, f: Array) -> Array:
        """Return the predictions of f, (n_rows,) or (n_rows, n_outputs), which are finite, in its
        namespace."""
        xp = namespace(f)
        if self.largest is not None:
            most = self.largest["float32" if f.dtype == xp.float32 else "float64"]
            f = xp.clip(f, None, most)
        return self.inverse(f)

    @abstractmethod
    def inverse(self, f: Array) -> Array:
        """Return the predictions of f, which may overflow, in its namespace."""

    def prediction(self, f: Expression, dtype: str = "float64") -> Expression:
        """Return the prediction of one output, before any sorting, as an expression."""
        return self.expression(f if self.largest is None else at_most(f, self.largest[dtype]))

    @abstractmethod
    def expression(self, f: Expression) -> Expression:
        """Return what `inverse` returns as an expression."""

    @abstractmethod
    def margin(self, prediction: float) -> float:
        """Return the f of which a prediction is made."""

    @abstractmethod
    def limit(self, argument: str, value: float | None, inwards: float) -> float | None:
        """Return the limit of f for a limit of predictions; None: there is none.

        argument : the name of the limit, for errors
        inwards : 1 for a lower limit, -1 for an upper one: the side to which f may be rounded
        """

    @abstractmethod
    def shift(self, f: np.ndarray, g: np.ndarray, weight: np.ndarray) -> float:
        """Return the shift of decision values g that gives them the mean prediction of f."""


class IdentityLink(Link):
    """Predictions are f itself."""

    name = "identity"
    is_identity = True
    formula = "f"
    unit = "units of y"
    effect = "effect on {}"

    def inverse(self, f: Array) -> Array:
        return f

    def expression(self, f: Expression) -> Expression:
        return f

    def margin(self, prediction: float) -> float:
        return prediction

    def limit(self, argument: str, value: float | None, inwards: float) -> float | None:
        return value

    def shift(self, f: np.ndarray, g: np.ndarray, weight: np.ndarray) -> float:
        return float(weight @ (f - g)) / len(f)


class AscendingLink(IdentityLink):
    """Predictions are the f of a row in ascending order.

    For outputs whose levels rise, sorting lowers the pinball loss of every row, or leaves it as it
    is: where the f of a < b are in the wrong order, at a distance d, it falls by (b - a) d.
    """

    name = "ascending"
    is_ascending = True
    formula = "f in ascending order"

    def predict(self, f: Array) -> Array:
        return f if f.ndim == 1 else namespace(f).sort(f, axis=-1)


class HazardLink(IdentityLink):
    """Predictions are f itself, the log of a hazard ratio."""

    name = "log_hazard"
    largest_offset = 69.0  # as of `LogLink`
    formula = "f, the log of the hazard ratio"
    task = "regression of hazards"
    unit = "the logarithm of the hazard"
    effect = "effect on the log of the hazard"


class LogLink(Link):
    """Predictions are e^f."""

    name = "log"
    largest: ClassVar[dict[str, float]] = {"float32": 88.72, "float64": 709.78}
    # e^o, the exposure, is between 1e-30 and 1e30, as y is at most 1e30.
    largest_offset = 69.0
    formula = "exp(f)"
    unit = "the logarithm of what is predicted"
    effect = "effect on the log of {}"

    def inverse(self, f: Array) -> Array:
        return namespace(f).exp(f)

    def expression(self, f: Expression) -> Expression:
        return exp(f)

    def margin(self, prediction: float) -> float:
        return math.log(prediction)

    def limit(self, argument: str, value: float | None, inwards: float) -> float | None:
        """Return the log of a limit, moved inwards, as libraries round e^f; None for 0."""
        if value is not None:
            value = check_real(argument, value, 0, strict=argument == "upper")
        if not value:
            return None
        # The logarithms and exponentials of all libraries are right up to this share, or number.
        rounding, log = 2.0**-50, math.log(value)
        return log + inwards * rounding * max(1.0, abs(log))

    def shift(self, f: np.ndarray, g: np.ndarray, weight: np.ndarray) -> float:
        return _log_mean(f, weight) - _log_mean(g, weight)


def _log_mean(z, weight):
    """Return log of the mean of e^z."""
    return z.max() + np.log(weight @ np.exp(z - z.max()) / len(z))


# All links by their names.
LINKS: dict[str, Link] = {
    link.name: link for link in (IdentityLink(), AscendingLink(), LogLink(), HazardLink())
}
