"""The derivatives of encodings by their columns.

Where an encoding has a kink, at a knot, its derivatives are those on the right. They are 0 where
the cell is missing, and for encodings that are steps: levels of categories, means of levels,
whether a cell is missing or is not 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import as_like, namespace
from .._base.checks import is_sparse

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Array
    from ..columns.encoder import ColumnEncoder


def smooth_encodings(encoder: ColumnEncoder) -> np.ndarray:
    """Return the indices of the encodings that are no steps: those of numbers and times whose unit
    is not 0."""
    levels = None if encoder.table is None else encoder.table.levels
    of_number = np.array(
        [levels is None or levels[j] is None for j in encoder.column.tolist()], bool
    )
    return np.flatnonzero(encoder.is_continuous & (encoder.unit > 0) & of_number)


def putter(X: Array) -> Callable[[Array], Array]:
    """Return a function that brings an ndarray to the namespace and device of X, and leaves other
    arrays as they are."""
    if isinstance(X, np.ndarray) or is_sparse(X):
        return lambda a: a
    return lambda a: as_like(a, X) if isinstance(a, np.ndarray) else a


def encoding_derivatives(encoder: ColumnEncoder, X: Array) -> tuple[Array, Array]:
    """Return the first and second derivatives of encodings by their columns, at rows of X.

    encoder : the encoder of encodings that are no steps

    Returns two float64 arrays (n_rows, n_encodings), or (1, n_encodings) where all rows have the
    same derivatives.
    """
    is_curved = len(encoder.knots) or np.isfinite(encoder.reach).any()
    if not (encoder.kind.any() or is_curved or encoder.may_miss):
        return (1 / encoder.unit)[None], np.zeros((1, len(encoder)))
    X = X.toarray() if is_sparse(X) else X
    xp, put = namespace(X), putter(X)
    power, center, factor, reach = map(put, encoder.arithmetic)
    x = xp.astype(xp.take(X, put(encoder.column.astype(np.int64)), axis=1), power.dtype)
    is_missing, one = xp.isnan(x), xp.ones_like(x)
    x = xp.where(is_missing, xp.zeros_like(x), x)
    first = xp.where(is_missing, xp.zeros_like(x), one * (power * factor)[None, :])
    r = x
    if len(encoder.knots):
        r, slope = _between_knots(encoder, x, xp, put)
        first = first * slope
    level, scale, bent = put(encoder.level)[None, :], (power * factor)[None, :], xp.zeros_like(x)
    kinds = [(kind, put(is_it)[None, :]) for kind, is_it in encoder.kinds]
    for kind, is_it in kinds:
        if not kind.is_number:
            there, (rise, bend) = is_it & ~is_missing, kind.derivatives(x, level, xp)
            r = xp.where(there, kind.raw(x, level, xp), r)
            first, bent = xp.where(there, rise * scale, first), xp.where(there, bend * scale, bent)
    t = (r * power[None, :] - center[None, :]) * factor[None, :]
    # Beyond the reach u = sign(t) reach (2 - reach / |t|), whose slope is (reach / t)^2.
    far = (t >= reach[None, :]) | (t < -reach[None, :])
    limit = xp.where(far, reach[None, :] * one, one)
    size = xp.where(far, xp.abs(t), one)
    ratio, sign = limit / size, xp.where(t < 0, -one, one)
    slope = xp.where(far, ratio * ratio, one)
    curve = xp.where(far, -2 * sign * ratio * ratio / size, xp.zeros_like(one))
    return first * slope, curve * first * first + slope * bent


def _between_knots(encoder, x, xp, put):
    """Return the raw values of encodings that are linear between knots, and their slopes on the
    right, by x."""
    raw = [x[:, v] for v in range(len(encoder))]
    slope = [xp.ones_like(each) for each in raw]
    for v in np.flatnonzero(np.diff(encoder.first_knot)).tolist():
        own = slice(encoder.first_knot[v], encoder.first_knot[v + 1])
        knots, scores = encoder.knots[own], encoder.scores[own]
        rise = np.concatenate([[0.0], np.diff(scores) / np.diff(knots), [0.0]])
        start, value = np.concatenate([knots[:1], knots]), np.concatenate([scores[:1], scores])
        place = xp.searchsorted(put(knots.copy()), x[:, v], side="right")
        slope[v] = xp.take(put(rise), place)
        raw[v] = xp.take(put(value), place) + slope[v] * (x[:, v] - xp.take(put(start), place))
    return xp.stack(raw, axis=1), xp.stack(slope, axis=1)
