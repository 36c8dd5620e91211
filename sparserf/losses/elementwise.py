"""Functions of arrays of any namespace, an entry at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.arrays import namespace

if TYPE_CHECKING:
    from .._base.types import Array


def positive(a: Array) -> Array:
    """max(a, 0)."""
    return namespace(a).clip(a, 0.0, None)


def share(a: Array) -> Array:
    """a, in [0, 1]; what a conjugate is asked for is in its domain but for rounding."""
    return namespace(a).clip(a, 0.0, 1.0)


def where(condition: Array, value: float, like: Array) -> Array:
    """The value where the condition holds, 0 elsewhere."""
    return namespace(like).astype(condition, like.dtype) * value


def xlogx(a: Array) -> Array:
    xp = namespace(a)
    return a * xp.log(xp.where(a > 0, a, xp.ones_like(a)))
