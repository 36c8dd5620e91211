"""The arguments `lower` and `upper`, the limits of a model's predictions: checked, and turned into
limits of f.

A fit does not know of them. Its model clips decision values to them, wherever it predicts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .._base.checks import check_real
from ..losses import JOINTLY, check_loss

if TYPE_CHECKING:
    from ..losses import LossLike

# The logarithm of a limit is moved inwards by this share of itself, and at least by this number. No
# library's logarithm and exponential err by as much, so that e^f is within the limit that the user
# gave.
LOG_ROUNDING = 2.0**-50


def check_limits(
    lower: float | None, upper: float | None, loss: LossLike
) -> tuple[float | None, float | None]:
    """Return the limits of f for limits of predictions, which a loss with the log link has as e^f;
    None: no limit."""
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
    if loss.link == "log":
        lower = None if lower is None else check_real("lower", lower, 0)
        upper = None if upper is None else check_real("upper", upper, 0, strict=True)
    given = lower, upper
    if loss.link == "log":
        lower, upper = _log(lower, 1.0), _log(upper, -1.0)
    if lower is not None and upper is not None and lower >= upper:
        raise ValueError(f"lower must be below upper, got lower={given[0]} and upper={given[1]}")
    return lower, upper


def _log(limit, inwards):
    """Return the logarithm of a limit, moved inwards, up for 1 and down for -1, by its rounding;
    None for 0 or None."""
    if not limit:
        return None
    log = math.log(limit)
    return log + inwards * LOG_ROUNDING * max(1.0, abs(log))
