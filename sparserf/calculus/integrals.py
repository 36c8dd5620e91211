"""The mean and the integral of a model over a box of its columns.

The mean of a sum is the sum of the means of its terms, over columns that are independent: numbers
uniform in their interval, categories with equal weights of their levels. Each column is cut where
one of its encodings has a knot or begins to curve. On a *piece* its encodings are affine in the
column, so that it is uniform on a line; where they are curved, the nodes of a Gauss- Legendre rule
stand for a piece. So

- a cosine, a bump or a monomial is a product with one factor for each column, and its mean the
  product of their means: exact for cosines and bumps on lines, sums over Gauss-Legendre nodes for
  monomials;
- other activations of w'u have antiderivatives in closed form, tanh of one fold, relu and sign of
  any number of folds: the mean over a line of each column is a sum of antiderivatives at the
  corners. Where that is not to be had, or loses digits to cancellation, Gauss-Legendre nodes take
  the place of the line;
- terms of so many columns, or pieces, that there are too many corners or nodes are averaged
  together over Sobol' points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ..expansion.box import read_box
from ..expansion.outputs import of_output
from ..expansion.terms import stage_of, terms_of
from ..features import BumpBlock, FeatureBlock, MonomialBlock, NeuronBlock
from ..rows import as_rows
from .encodings import slopes, smooth_encodings

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..expansion import Expansion
    from ..expansion.box import BoxLike
    from ..expansion.terms import Term

# Nodes of a Gauss-Legendre rule, and the largest change of a phase, or of another argument, over an
# interval with one rule.
NODES, MOST_CHANGE = 16, 4.0
# Most corners and nodes at which a term is evaluated; terms with more are averaged over Sobol'
# points.
MOST_POINTS = 2**21
# The share of a term's size that corners may lose to rounding; if they lose more, nodes take their
# place.
MOST_LOST = 1e-11
# Most quarters of a turn over which an angle is integrated piece by piece; terms that see one with
# more go to Sobol' points.
MOST_QUARTERS = 2**14
# Lines that are shorter than this share of the longest line in a term count as points.
SHORTEST = 1e-9
# Sobol' points are drawn in scrambles, each with as many points; the error is this many standard
# errors of their mean.
SCRAMBLES, SOBOL_POINTS, STANDARD_ERRORS = 8, 2**13, 3.0
ROUNDING = float(np.finfo(np.float64).eps)


def integral(
    model: Expansion, box: BoxLike | None, output: object
) -> tuple[float | np.ndarray, float | np.ndarray]:
    """Return the integral of f over a box, and how far it may be off: see
    `SparseModel.integral`."""
    whole = read_box(model, box)
    width = whole.high - whole.low
    volume = float(np.prod(width[width > 0]))
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
    """Return (the mean of each feature, what it may lose to rounding, the indices of features that
    Sobol' points are left to).

    finer : the factor of the number of nodes of all Gauss-Legendre rules
    """
    means, lost, left = np.zeros(len(terms)), np.zeros(len(terms)), []
    columns = _columns(model, box, terms, finer)
    for term in terms:
        answer = None
        if not any(columns[j] is None for j in term.columns.tolist()):
            parts = [columns[j].part(term) for j in term.columns.tolist()]
            answer = (
                _mean_of_product(term, parts, finer)
                if term.is_product
                else _mean_of_sum(term, parts, finer)
            )
        if answer is None:
            left.append(term.position)
        else:
            means[term.position], lost[term.position] = answer
    return means, lost, np.array(left, int)


# ---------------------------------------------------------------- columns


@dataclass(frozen=True, eq=False)
class Pieces:
    """The encodings of one column over its part of a box: a mixture of lines, on each of which they
    are uniform, and of points.

    encodings : ndarray of shape (n_encodings,), ascending
    weight : ndarray of shape (n_pieces,)
        The share of each piece; they add up to 1.
    middle, half : ndarray of shape (n_pieces, n_encodings)
        A line goes from middle - half to middle + half; for a point half is 0.
    """

    encodings: np.ndarray
    weight: np.ndarray
    middle: np.ndarray
    half: np.ndarray

    def part(self, term: Term) -> tuple[Pieces, np.ndarray, np.ndarray | None]:
        """Return (the pieces with the encodings alone that a term sees, their weights in the term,
        their centers or None)."""
        some = np.isin(term.encodings, self.encodings)
        seen = np.searchsorted(self.encodings, term.encodings[some])
        pieces = Pieces(term.encodings[some], self.weight, self.middle[:, seen], self.half[:, seen])
        return pieces, term.weights[some], None if term.centers is None else term.centers[some]


def _columns(model, box, terms, finer):
    """Return {column: its `Pieces`} of all columns that terms see; None for a column of too
    many."""
    stage = stage_of(model.features)
    speed = np.zeros(len(stage))  # the fastest that a term changes with an encoding
    for term in terms:
        fastest = (
            np.full(len(term.encodings), term.gamma**0.5)
            if term.gamma is not None
            else np.abs(term.weights)
        )
        speed[term.encodings] = np.maximum(speed[term.encodings], fastest)
    used = {v for term in terms for v in term.encodings.tolist()}
    by_column = {}
    for v in sorted(used):
        by_column.setdefault(int(stage.column[v]), []).append(v)
    return {j: _pieces(stage, j, np.array(v), box, speed[v], finer) for j, v in by_column.items()}


def _pieces(stage, j, encodings, box, speed, finer):
    """Return the `Pieces` of one column; None where an angle turns too often."""
    own = stage.take(encodings)

    def encode(cells):
        X = np.zeros((len(cells), stage.n_columns))
        X[:, j] = cells
        return X, own.transform(X)

    if j in box.levels or not box.low[j] < box.high[j]:
        cells = box.levels.get(j, box.low[[j]])
        U = encode(cells)[1]
        return Pieces(encodings, np.full(len(cells), 1 / len(cells)), U, np.zeros_like(U))
    if own.turn.max() * (box.high[j] - box.low[j]) > MOST_QUARTERS * np.pi / 2:
        return None
    ends = _cuts(own, box.low[j], box.high[j])
    X, middle = encode((ends[:-1] + ends[1:]) / 2)
    half, smooth = np.zeros_like(middle), smooth_encodings(own)
    width = np.diff(ends)
    if len(smooth):
        half[:, smooth] = slopes(own.take(smooth), X)[0] * width[:, None] / 2
    curved = _is_curved(own, middle).any(axis=1)
    weight = [width[~curved] / (ends[-1] - ends[0])]
    middles, halves = [middle[~curved]], [half[~curved]]
    for k in np.flatnonzero(curved).tolist():
        change = np.abs(np.diff(encode(_inside(ends[k], ends[k + 1]))[1], axis=0)[0]) @ speed
        x, w = _nodes(ends[k], ends[k + 1], change, finer)
        U = encode(x)[1]
        weight.append(w * width[k] / (ends[-1] - ends[0]))
        middles.append(U)
        halves.append(np.zeros_like(U))
    return Pieces(
        encodings, np.concatenate(weight), np.concatenate(middles), np.concatenate(halves)
    )


def _cuts(stage, low, high):
    """Return low, high, and where between them encodings of a column have knots, or begin to be
    curved, or curve otherwise."""
    inside = [stage.encoding(v).cuts(low, high) for v in smooth_encodings(stage).tolist()]
    cuts = np.unique(np.concatenate([np.array([low, high]), *inside]))
    return cuts[(cuts >= low) & (cuts <= high)]


def _is_curved(stage, U):
    """Return which encodings U in the middle of pieces are curved there: beyond the reach, or of a
    kind that is."""
    is_smooth = np.isin(np.arange(len(stage)), smooth_encodings(stage))
    return is_smooth & (stage.is_curved | (np.abs(U) > stage.reach))


# ---------------------------------------------------------------- the mean of a term


def _mean_of_product(term, parts, finer):
    """Return (the mean of a term that is a product over columns, what it may lose to rounding)."""
    mean, phase = complex(term.constant), 1.0
    for pieces, weights, centers in parts:
        factor, of_factor = MEANS[term.kind](term, pieces, weights, centers, finer)
        mean *= factor
        phase += of_factor
    return mean.real, ROUNDING * abs(term.gain) * (phase + abs(term.offset) + 4 * len(parts))


def _mean_of_wave(term, pieces, weights, centers, finer):
    """Return (the mean of exp(i w'u) over pieces, the size of the phases)."""
    middle, half = pieces.middle @ weights, pieces.half @ weights
    mean = pieces.weight @ (np.exp(1j * middle) * np.sinc(half / np.pi))
    return mean, np.abs(middle).max() + np.abs(half).max()


def _mean_of_bump(term, pieces, weights, centers, finer):
    """Return (the mean of exp(-sum_v w_v |u_v - c_v|) over pieces, 0): on a line the exponent is
    linear between the centers."""
    moves = pieces.half != 0
    with np.errstate(divide="ignore", invalid="ignore"):
        place = np.where(moves, np.clip((centers - pieces.middle) / pieces.half, -1, 1), 1.0)
    place = np.sort(
        np.concatenate([-np.ones((len(place), 1)), place, np.ones((len(place), 1))], axis=1), axis=1
    )
    away = np.abs(pieces.middle[:, None, :] + place[:, :, None] * pieces.half[:, None, :] - centers)
    exponent = -away @ weights
    low, high = np.sort(np.stack([exponent[:, :-1], exponent[:, 1:]]), axis=0)
    gap = high - low
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.exp(high) * np.where(gap > 0, -np.expm1(-gap) / gap, 1.0)
    return pieces.weight @ (np.diff(place, axis=1) / 2 * mean).sum(axis=1), 0.0


def _mean_of_monomial(term, pieces, powers, centers, finer):
    """Return (the mean of exp(-gamma sum_v u_v^2) prod_v u_v^p_v over pieces, by nodes on each
    line, 0)."""
    total, gamma = 0.0, term.gamma
    for weight, middle, half in zip(pieces.weight, pieces.middle, pieces.half, strict=True):
        place, share = (
            _nodes(-1.0, 1.0, 2 * np.abs(half).sum() * gamma**0.5, finer)
            if half.any()
            else (np.zeros(1), np.ones(1))
        )
        u = middle + place[:, None] * half
        total += weight * (
            share @ (np.exp(-gamma * (u * u).sum(axis=1)) * np.prod(u**powers, axis=1))
        )
    return total, 0.0


# {kind of features that are products: function of the factor of one column, which also returns a
# size that rounding goes with}.
MEANS: dict[type[FeatureBlock], Callable[..., tuple[complex, float]]] = {
    NeuronBlock: _mean_of_wave,
    BumpBlock: _mean_of_bump,
    MonomialBlock: _mean_of_monomial,
}


def _mean_of_sum(term, parts, finer):
    """Return (the mean of an activation of w'u, what it may lose to rounding), or None if it takes
    too many points."""
    lines = [
        (pieces.weight, pieces.middle @ weights, np.abs(pieces.half @ weights))
        for pieces, weights, _ in parts
    ]
    if term.sigma.is_linear:
        middle = [float(weight @ middle) for weight, middle, _ in lines]
        size = abs(term.offset) + sum(float(weight @ np.abs(middle)) for weight, middle, _ in lines)
        return term.gain * (term.offset + sum(middle)), ROUNDING * abs(term.gain) * 4 * size
    most_closed = int(min(term.sigma.folds, max(1, len(lines))))
    fewest_closed = min(1, most_closed)
    halves = [half.max(initial=0.0) for _, _, half in lines]
    widest = np.argsort(halves, kind="stable")[::-1]
    least = SHORTEST * max(halves, default=0.0)
    # First the closed form in as many columns as it is to be had, then in fewer: nodes lose less to
    # rounding.
    for n_closed in range(most_closed, fewest_closed - 1, -1):
        closed = widest[:n_closed]
        atoms = [
            _corners(*line, least) if j in closed else _points(*line, finer)
            for j, line in enumerate(lines)
        ]
        if np.prod([sum(len(z) for z, _ in groups) for groups in atoms], dtype=float) > MOST_POINTS:
            continue
        value, lost = _sum_of_atoms(term.sigma, term.offset, atoms)
        if lost <= MOST_LOST * max(1.0, abs(value)) or n_closed == fewest_closed:
            return term.gain * value, abs(term.gain) * lost
    return None


def _corners(weight, middle, half, least):
    """Return the atoms (arguments, factors) of a column: its points, and the ends of its lines, for
    the antiderivative.

    least : half the length of lines that count as points
    """
    wide = half > least
    points = middle[~wide], weight[~wide]
    middle, half, factor = middle[wide], half[wide], weight[wide] / (2 * half[wide])
    return points, (
        np.concatenate([middle + half, middle - half]),
        np.concatenate([factor, -factor]),
    )


def _points(weight, middle, half, finer):
    """Return the atoms (arguments, factors) of a column: its points, and nodes on its lines; no
    antiderivative is asked for."""
    z, factor = [np.zeros(0)], [np.zeros(0)]
    for w, m, h in zip(weight, middle, half, strict=True):
        place, share = _nodes(m - h, m + h, 2 * h, finer) if h > 0 else (np.array([m]), np.ones(1))
        z.append(place)
        factor.append(w * share)
    return (np.concatenate(z), np.concatenate(factor)), (np.zeros(0), np.zeros(0))


def _sum_of_atoms(sigma, offset, atoms):
    """Return the sum, over an atom of each column, of the product of factors times an
    antiderivative at the sum of arguments.

    The antiderivative has as many folds as atoms are ends of lines. Also return what rounding may
    change.
    """
    total = lost = 0.0
    for choice in product((0, 1), repeat=len(atoms)):
        z, factor = np.array([offset]), np.ones(1)
        for k, groups in zip(choice, atoms, strict=True):
            arguments, factors = groups[k]
            z = np.add.outer(z, arguments).ravel()
            factor = np.multiply.outer(factor, factors).ravel()
        if len(z):
            values = factor * sigma.antiderivative(z, sum(choice))
            total += float(values.sum())
            lost += 8 * ROUNDING * float(np.abs(values).sum())
    return total, lost


# ---------------------------------------------------------------- rules


@cache
def _rule(n):
    """Return the nodes and weights of the Gauss-Legendre rule of n nodes on [-1, 1]; the weights
    add up to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return nodes, weights / 2


def _nodes(low, high, change, finer):
    """Return nodes and weights, which add up to 1, of rules on equal parts of an interval; change :
    how far a phase changes."""
    n_parts = max(1, int(np.ceil(change / MOST_CHANGE)))
    nodes, weights = _rule(NODES * finer)
    ends = np.linspace(low, high, n_parts + 1)
    middle, half = (ends[1:] + ends[:-1]) / 2, (high - low) / (2 * n_parts)
    return (middle[:, None] + half * nodes).ravel(), np.tile(weights / n_parts, n_parts)


def _inside(low, high):
    """Return the ends of an interval, a little inside of it."""
    return np.array([low, high]) + np.array([1e-12, -1e-12]) * (high - low)


def _by_sobol(model, box, positions):
    """Return the mean of some terms, or of f where positions is None, over Sobol' points in a box,
    and a bound of its error."""
    from scipy.stats import qmc

    moving = np.flatnonzero(box.high > box.low)
    several = [j for j, levels in box.levels.items() if len(levels) > 1]
    means = []
    for seed in range(SCRAMBLES):
        X = np.tile(np.where(np.isnan(box.low), np.nan, box.low), (SOBOL_POINTS, 1))
        for j, levels in box.levels.items():
            X[:, j] = levels[0]
        U = qmc.Sobol(
            max(1, len(moving) + len(several)), bits=60, rng=np.random.default_rng(seed)
        ).random(SOBOL_POINTS)
        X[:, moving] = box.low[moving] + U[:, : len(moving)] * (box.high - box.low)[moving]
        for k, j in enumerate(several):
            X[:, j] = box.levels[j][(U[:, len(moving) + k] * len(box.levels[j])).astype(int)]
        means.append(_values(model, X, positions).mean(axis=1))
    means = np.array(means)
    return means.mean(axis=0), STANDARD_ERRORS * means.std(axis=0, ddof=1) / SCRAMBLES**0.5


def _values(model, X, positions):
    """Return the sum of some terms, or f, at rows of numbers: (n_outputs, n_rows)."""
    features, coef = model.features, np.atleast_2d(model.coef)
    if positions is not None:
        features, coef = features.take(positions), coef[:, positions]
    f = as_rows(X, may_miss=True).staged(features.stage).apply(features, coef)
    if positions is not None:
        return f
    f = f + np.atleast_1d(model.intercept)[:, None]
    return np.clip(f, *model.limits)
