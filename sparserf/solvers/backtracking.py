"""The line search of every step that has one direction for all of its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def backtrack(
    point_at: Callable[[float], Any], is_lower: Callable[[Any, float], bool], t: float = 1.0, shortest: float = 2.0**-33
) -> tuple[float, Any]:
    """(t, point_at(t)) of the first of t, t/2, t/4, ... whose point is lower, or (0, None).

    What counts as lower, `is_lower(point, t)`, is the step's own: by a share of what it promises, or by more than rounding.
    """
    while t >= shortest:
        point = point_at(t)
        if is_lower(point, t):
            return t, point
        t /= 2
    return 0.0, None
