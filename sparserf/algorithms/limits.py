"""The arguments `lower` and `upper`, the limits of a model's predictions: checked, and turned into
limits of f.

A fit does not know of them. Its model clips decision values to them, wherever it predicts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .._base.checks import check_real
from ..losses import JOINTLY, check_loss
from ..losses.links import LINKS

if TYPE_CHECKING:
    from ..losses import LossLike


def check_limits(
    lower: float | None, upper: float | None, loss: LossLike
) -> tuple[float | None, float | None]:
    """Return the limits of f for limits of predictions; None: no limit."""
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
