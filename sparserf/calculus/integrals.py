"""The mean and the integral of a model over a box of its columns.

The mean of a sum is the sum of the means of its terms, over columns that are independent: numbers
uniform in their interval, categories with equal weights of their levels. Each column is cut where
one of its encodings has a knot or begins to curve. On a *piece* its encodings are affine in the
column, so that it is uniform on a line; where they are curved, the nodes of a Gauss-Legendre rule
stand for a piece. Each kind of features knows the mean of its terms over such pieces
(`Term.mean`). Terms of so many columns, or pieces, that there are too many corners or nodes are
averaged together over Sobol' points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..expansion.box import check_known, read_box
from ..expansion.outputs import of_output
from ..expansion.terms import encoder_of, terms_of
from ..features import Pieces, nodes
from ..rows import as_rows
from .encodings import encoding_derivatives, smooth_encodings

if TYPE_CHECKING:
    from ..expansion import Expansion
    from ..expansion.box import BoxLike

# The relative error of a rounded number.
ROUNDING = float(np.finfo(np.float64).eps)


def integral(
    model: Expansion, box: BoxLike | None, output: object
) -> tuple[float | np.ndarray, float | np.ndarray]:
    """Return the integral of f over a box, and how far it may be off: see
    `SparseModel.integral`."""
    whole = read_box(model, box)
    check_known(model, whole.unknown)
    width = whole.high - whole.low
    volume = float(np.prod(width[width > 0]))
    if not np.isfinite(volume):
        raise ValueError("box must have a volume that does not overflow, got one that does")
    value, error = mean(model, box, output)
    return volume * value, volume * error


def mean(
    model: Expansion, box: BoxLike | None, output: object
) -> tuple[float | np.ndarray, float | np.ndarray]:
    """Return the mean of f over a box, and how far it may be off: see `SparseModel.mean`."""
    model = model if output is None else of_output(model, output)
    box = read_box(model, box)
    coef, terms = np.atleast_2d(model.coef), list(terms_of(model.features))
    if model.has_limits:
        value, error = _by_sobol(model, box, None)
    else:
        fine, lost, left = _means(model, box, terms, 2)
        coarse, _, _ = _means(model, box, terms, 1)
        coarse[left] = 0.0  # as in fine: fewer points may have been few enough
        value = np.atleast_1d(model.intercept) + coef @ fine
        error = (
            np.abs(coef @ (fine - coarse))
            + np.abs(coef) @ lost
            + ROUNDING * np.abs(np.atleast_1d(model.intercept))
        )
        if len(left):
            more, missing = _by_sobol(model, box, left)
            value, error = value + more, error + missing
    return (float(value[0]), float(error[0])) if model.coef.ndim == 1 else (value, error)


def _means(model, box, terms, finer):
    """Return (the mean of each feature, what it may lose to rounding, the indices of the features
    that are left to Sobol' points).

    finer : the factor of the number of nodes of all Gauss-Legendre rules
    """
    means, lost, left = np.zeros(len(terms)), np.zeros(len(terms)), []
    columns = _columns(model, box, terms, finer)
    for term in terms:
        pieces = [columns[j] for j in term.columns.tolist()]
        answer = None if None in pieces else term.mean(pieces, finer)
        if answer is None:
            left.append(term.position)
        else:
            means[term.position], lost[term.position] = answer
    return means, lost, np.array(left, int)


def _columns(model, box, terms, finer):
    """Return {column: its `Pieces`} of all columns that terms see; None for a column of too
    many."""
    encoder = encoder_of(model.features)
    speed = np.zeros(len(encoder))  # the fastest that a term changes with an encoding
    for term in terms:
        speed[term.encodings] = np.maximum(speed[term.encodings], term.speeds)
    used = {v for term in terms for v in term.encodings.tolist()}
    by_column = {}
    for v in sorted(used):
        by_column.setdefault(int(encoder.column[v]), []).append(v)
    return {j: _pieces(encoder, j, np.array(v), box, speed[v], finer) for j, v in by_column.items()}


def _pieces(encoder, j, encodings, box, speed, finer):
    """Return the `Pieces` of one column; None where an angle turns too often."""
    own = encoder.take(encodings)

    def encode(cells):
        X = np.zeros((len(cells), encoder.n_columns))
        X[:, j] = cells
        return X, own.transform(X)

    if j in box.levels or not box.low[j] < box.high[j]:
        cells = box.levels.get(j, box.low[[j]])
        U = encode(cells)[1]
        return Pieces(encodings, np.full(len(cells), 1 / len(cells)), U, np.zeros_like(U))
    most_quarters = 2**14  # of a turn, over which an angle is integrated piece by piece
    if own.turn.max() * (box.high[j] - box.low[j]) > most_quarters * np.pi / 2:
        return None
    ends = _cuts(own, box.low[j], box.high[j])
    X, middle = encode((ends[:-1] + ends[1:]) / 2)
    half, smooth = np.zeros_like(middle), smooth_encodings(own)
    width = np.diff(ends)
    if len(smooth):
        half[:, smooth] = encoding_derivatives(own.take(smooth), X)[0] * width[:, None] / 2
    curved = _is_curved(own, middle).any(axis=1)
    weight = [width[~curved] / (ends[-1] - ends[0])]
    middles, halves = [middle[~curved]], [half[~curved]]
    for k in np.flatnonzero(curved).tolist():
        change = np.abs(np.diff(encode(_inside(ends[k], ends[k + 1]))[1], axis=0)[0]) @ speed
        x, w = nodes(ends[k], ends[k + 1], change, finer)
        U = encode(x)[1]
        weight.append(w * width[k] / (ends[-1] - ends[0]))
        middles.append(U)
        halves.append(np.zeros_like(U))
    return Pieces(encodings, *map(np.concatenate, (weight, middles, halves)))


def _cuts(encoder, low, high):
    """Return low, high, and where between them encodings of a column have knots, or begin to be
    curved, or curve otherwise."""
    inside = [encoder.encoding(v).cuts(low, high) for v in smooth_encodings(encoder).tolist()]
    cuts = np.unique(np.concatenate([np.array([low, high]), *inside]))
    return cuts[(cuts >= low) & (cuts <= high)]


def _is_curved(encoder, U):
    """Return which encodings U in the middle of pieces are curved there: beyond the reach, or of a
    kind that is."""
    is_smooth = np.isin(np.arange(len(encoder)), smooth_encodings(encoder))
    return is_smooth & (encoder.is_curved | (np.abs(U) > encoder.reach))


def _inside(low, high):
    """Return the ends of an interval, a little inside of it."""
    return np.array([low, high]) + np.array([1e-12, -1e-12]) * (high - low)


def _by_sobol(model, box, positions):
    """Return the mean of some terms, or of f where positions is None, over Sobol' points in a box,
    and a bound of its error."""
    from scipy.stats import qmc

    # Points are drawn in scrambles, each with as many; the error is so many standard errors of
    # their mean.
    n_scrambles, n_points, standard_errors = 8, 2**13, 3.0
    is_seen = model.features.columns_seen
    moving = np.flatnonzero(is_seen & (box.high > box.low))
    several = [j for j, levels in box.levels.items() if is_seen[j] and len(levels) > 1]
    means = []
    for seed in range(n_scrambles):
        X = np.tile(np.where(np.isnan(box.low), np.nan, box.low), (n_points, 1))
        for j, levels in box.levels.items():
            X[:, j] = levels[0]
        n_axes, rng = max(1, len(moving) + len(several)), np.random.default_rng(seed)
        U = qmc.Sobol(n_axes, bits=60, rng=rng).random(n_points)
        X[:, moving] = box.low[moving] + U[:, : len(moving)] * (box.high - box.low)[moving]
        for k, j in enumerate(several):
            X[:, j] = box.levels[j][(U[:, len(moving) + k] * len(box.levels[j])).astype(int)]
        means.append(_values(model, X, positions).mean(axis=1))
    means = np.array(means)
    return means.mean(axis=0), standard_errors * means.std(axis=0, ddof=1) / n_scrambles**0.5


def _values(model, X, positions):
    """Return the sum of some terms, or f, at rows of numbers: (n_outputs, n_rows)."""
    features, coef = model.features, np.atleast_2d(model.coef)
    if positions is not None:
        features, coef = features.take(positions), coef[:, positions]
    f = as_rows(X, may_miss=True).encoded(features.encoder).apply(features, coef)
    if positions is not None:
        return f
    f = f + np.atleast_1d(model.intercept)[:, None]
    return np.clip(f, *model.limits)
