"""The progress of a fit in the unit in which it is fitted, and what is told of it in units of y."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.progress import FitCallback
from ..model import FitInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model import Callback


def power_of_two(y: np.ndarray) -> float:
    """Return the largest power of two that is at most max |y|, or 1 for zeros: a unit by which to
    divide y exactly.

    It is at least 2**-1022, the smallest normal number, so that 1 / unit does not overflow.
    """
    smallest_unit = float(np.finfo(np.float64).smallest_normal)

    largest = float(np.abs(y).max())
    return max(float(2.0 ** (np.frexp(largest)[1] - 1)), smallest_unit) if largest > 0 else 1.0


class Progress(FitCallback):
    """The objectives of a fit so far, in units of y, and the user's callback.

    unit : the unit in which the target is fitted, a power of two
    degree : the power of that unit which the loss is in, as in `Loss`
    objectives : the objective after each iteration, which never rises
    """

    unit: float
    objectives: list[float]

    def __init__(self, callback: Callback, unit: float, degree: int = 2):
        self.unit, self._degree = unit, degree
        super().__init__(callback)

    def restart(self) -> None:
        """Forget the objectives so far: a new fit of a path begins."""
        super().restart()
        self.objectives = []

    def note(self, objective: float, *left: float) -> None:
        """End an iteration, and record its objective, or the one before where rounding has raised
        it.

        left : how far the fit is from its end, and at which distance it ends, where these are known
        """
        self.end_iteration(*left)
        self.objectives.append(
            min([in_units(objective, self.unit, self._degree), *self.objectives[-1:]])
        )

    def correct(self, objective: float) -> None:
        """Take the last objective as it is: in a higher precision, or of a fit whose iterates may
        rise; those before are no less."""
        last = in_units(objective, self.unit, self._degree)
        if self.objectives:
            self.objectives = [max(each, last) for each in self.objectives[:-1]] + [last]

    def info(self, objective: Callable[[], float], gap: float, **more: Any) -> FitInfo:
        """Return the `FitInfo` of a fit with this duality gap, infinite where none is known;
        objective() is called where no iteration has been noted."""
        return FitInfo(
            n_iter=len(self.objectives),
            objective=tuple(self.objectives) or (in_units(objective(), self.unit, self._degree),),
            dual_gap=in_units(max(0.0, gap), self.unit, self._degree) if gap < np.inf else None,
            **more,
        )

    def in_units_of_y(self, w: Any, b: Any) -> tuple[Any, Any]:
        """Return coefficients w and intercept b of y / unit in units of y. Raise ValueError where
        they overflow."""
        w, b = self.unit * w, self.unit * b
        if not (np.isfinite(w).all() and np.isfinite(b).all()):
            raise ValueError(
                "y must be of moderate size, got values whose coefficients overflow: scale it"
            )
        return w, b


def in_units(objective: float, unit: float, degree: int = 2) -> float:
    """Return unit ** degree times the objective of y / unit, or the largest float where that
    overflows."""
    objective = float(objective)
    for _ in range(degree):
        objective *= unit
    return min(objective, float(np.finfo(np.float64).max))
