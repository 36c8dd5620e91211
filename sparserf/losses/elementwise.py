"""Functions of arrays of any namespace, an entry at a time."""

from .._arrays import namespace


def positive(a):
    """max(a, 0)."""
    return namespace(a).clip(a, 0.0, None)


def share(a):
    """a, in [0, 1]; what a conjugate is asked for is in its domain but for rounding."""
    return namespace(a).clip(a, 0.0, 1.0)


def where(condition, value, like):
    """The value where the condition holds, 0 elsewhere."""
    return namespace(like).astype(condition, like.dtype) * value


def xlogx(a):
    xp = namespace(a)
    return a * xp.log(xp.where(a > 0, a, xp.ones_like(a)))
