"""Prune a model to fewer terms, or to terms of fewer inputs, that come nearest to its own
predictions.

Orthogonal least squares takes the terms one after another. With f the predictions of the model, Phi
its features and h the weights of the rows, of sum 1, all around their means, the next term is the
one that lowers

    tr (f - Phi w')' diag(h) (f - Phi w')

most, with all terms taken before at their best coefficients: by |c_j|^2 / d_j, where c_j is the
inner product of f with the part of feature j that is orthogonal to the terms before, and d_j is the
square of that part. Both follow from G = Phi' diag(h) Phi and Phi' diag(h) f, by the steps of a
Cholesky factorisation whose pivots are the terms taken.

Where coefficients must be at least 0 (`FeatureSet.nonnegative`), terms that would enter with
another sign are taken last, and the coefficients of all terms taken are those of least squares
under this constraint (`best_terms`).

Where there is a number of terms to come down to, the weights within cosines are moved as well
(`polish.py`), and cosines are preferred to terms that stay as they are.

A model of rules may come down to a few that are easily read and are no draws (`boxes_on_grid.py`).

Terms of fewer inputs are parts of the model's terms. The mean of cos(u + v) over a v that is
independent of u, and symmetric around its mean m, is a smaller cosine of u: E cos(u + v) = E cos(v
- m) cos(u + m). So the part of a cosine that depends on a few inputs is a cosine of these, in which
the other weights are zero and their inputs' means are in the phase. For other neurons and dependent
inputs that is nearly true, and the coefficients are fitted again.

S. Chen, S. A. Billings, W. Luo, Orthogonal least squares methods and their application to
non-linear system identification, International Journal of Control 50, 1989.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from .._base.calls import checks_call
from .._base.checks import check_flag, check_integer, check_real
from .._base.progress import check_not_ended
from .._base.random import evenly
from .._base.threads import single_threaded_blas
from ..features import BoxBlock, FeatureSet, Linear, between_rows
from ..losses import PROBABILISTIC
from ..losses.classification import softmax
from ..losses.links import LINKS
from ..model import SparseModel, check_model
from ..solvers.nonnegative import nonnegative_minimum
from .boxes_on_grid import MOST_BOXES, nearest_boxes
from .fit_progress import power_of_two
from .polish import movable, polished, rows_to_polish_on, steps_for
from .task import rows_of_positive_weight

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..rows import Rows

# The most terms that are candidates to stay: of a larger model those that vary most.
MOST_LOOKED_AT = 3_000
# Evenly spaced rows are looked at: ROWS_A_TERM for each candidate, and at least FEWEST_ROWS.
ROWS_A_TERM, FEWEST_ROWS = 8, 10_000
# Where cosines are moved, the gain of terms that stay as they are is multiplied by this when terms
# are chosen, but for linear functions: a cosine gains more once it is moved.
STILL = 0.5
# The coefficients of bumps are held near those of the model, by a ridge penalty on the differences
# of this share of the variance of each bump: many narrow bumps around rows fit any values there,
# whatever they are elsewhere.
RIDGE = 0.003
# A feature of whose square less than this share is orthogonal to the terms before depends on them.
DEPENDENT = 1e-9
# Terms that leave less than this share of the variance are as good as all terms together.
NEGLIGIBLE = 1e-14
# A feature whose variance is less than this share of its mean square is a constant.
CONSTANT = 1e-13
# The lines of G - Q'Q of at least AHEAD features, those of the largest gains, which most likely are
# the next terms, are made at once: Q is then read from memory once for all of them, CACHED lines at
# a time. Of k terms taken they are k / PART, if that is more.
AHEAD, CACHED, PART = 8, 32, 8
# Beyond ONE_BY_ONE terms the next is the best of these, while its gain is at least NEAR times the
# largest.
ONE_BY_ONE, NEAR = 300, 0.5
# A change below this number of units in the last place may be rounding alone; coefficients fitted
# to it could be of any size.
ROUNDING_UNITS = 100
# The share of the variance of the predictions that zero weights may cost by default.
READABLE = 0.01
# The shares of the variance of each w'x that may be made zero: the largest is taken that does not
# cost more.
SHARES = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
# The most candidates, about, where terms of many inputs are replaced: their Gram matrix is most of
# the work.
MOST_CANDIDATES = 2_000
# Subsets of max_order inputs of a term are taken from the max_order + MORE_INPUTS inputs that move
# the term most.
MORE_INPUTS = 2
# The most steps to the intercepts at which classes keep their mean probabilities.
MOST_SHIFTS = 100


@checks_call
def prune(
    model: SparseModel,
    X: MatrixLike,
    *,
    max_terms: int | None = None,
    max_order: int | None = None,
    readable: bool = False,
    tol: float | None = None,
    polish: bool = True,
    sample_weight: ArrayLike | None = None,
    workers: int = 1,
) -> SparseModel:
    r"""Return the model with fewer of its terms, those that change its predictions least.

    Orthogonal least squares takes terms of the model one after another: the one that, with all
    taken before at their best coefficients, comes nearest to the model's own predictions f,

    .. math:: \sum_i s_i (\hat f(x_i) - f(x_i))^2 / \sum_i s_i

    until that is at most tol times their variance, or there are max_terms. Then the weights within
    cosines are moved to where that is least (`polish`). The target is not needed.

    Parameters
    ----------
    model : SparseModel
        The model, which is not changed.
    X : array or CSR matrix of shape (n_samples, n_features_in)
        Rows on which predictions are to stay near. At most 3,000 terms are looked at, on eight rows
        for each, and at least 10,000.
    max_terms : int, optional
        The most terms to keep.
    max_order : int, optional
        The most columns of X that a term may see: terms of more are replaced by parts of them.
        Linear functions stay whole.
    readable : bool, default False
        Whether to set weights within terms to zero, too: as many as cost another tol (None: 0.01).
        With max_terms, at most 20, a model of rules comes down to others: the nearest of at most
        two conditions at quantiles of the columns. More than half come back with another seed.
    tol : float, optional
        The largest change, >= 0: its mean square over the variance of the predictions. None: 0
        where max_terms is given, else 0.01.
    polish : bool, default True
        Whether to move the weights within cosines, where there are max_terms, without max_order and
        readable. Zero weights stay zero. False: terms stay as they are.
    sample_weight : array of shape (n_samples,), optional
        Nonnegative weights of the rows.
    workers : int, default 1
        Threads; -1 for all cores. The result has the same bits for any number.

    Returns
    -------
    SparseModel
        A part of the terms of `model`, as they were or moved, with their `support`; with max_order
        or readable, parts of these terms, or other rules, and `support` counts the candidates.
        `info` is that of `model`, without validation_loss and fidelity where terms were dropped.

    Raises
    ------
    ValueError, TypeError
        An argument is out of its range or of another type.

    See Also
    --------
    sparse_rf : With alpha=None it ends by pruning its model.

    Notes
    -----
    Time: O(n a^2 + a k^2) for n rows that are looked at, a terms that may stay and k that do;
    `readable` takes up to eight times that of the terms that stay. Memory: O(a^2), and a copy of
    these rows where they are not all. Coefficients that must be at least 0 stay so, and of a model
    with a log link or probabilities the intercept keeps the mean prediction.

    Cosines are moved on at most 3,000 rows, or rows made of near ones, by up to 25 steps, fewer
    of many terms or inputs: some tenths of a second. None are moved with CSR rows, of sparse
    weights, beside bumps, and in models with coefficients that must be at least 0.

    References
    ----------
    S. Chen, S. A. Billings, W. Luo, Orthogonal least squares methods and their application to
    non-linear system identification, Int. J. Control 50, 1989.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (1000, 2))
    >>> y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(1000)
    >>> model = srf.sparse_rf(
    ...     X, y, features="gaussian", alpha=0.001, gamma=1.0, n_components=2000, rng=0
    ... )
    >>> small = srf.prune(model, X)
    >>> len(model.features) > 35, len(small.features) < 10
    (True, True)
    >>> bool(np.var(small.predict(X) - model.predict(X)) <= 0.01 * np.var(model.predict(X)))
    True
    """
    check_model(model)
    rows = model.features.rows_of(X, workers)
    if rows.n_rows == 0:
        raise ValueError(f"X must have at least one row, got shape (0, {rows.n_features_in})")
    _, rows, weight = rows_of_positive_weight(rows, sample_weight)
    spare = READABLE if tol is None else check_real("tol", tol, 0)
    most = len(model.support) if max_terms is None else check_integer("max_terms", max_terms, 1)
    tol = (0.01 if max_terms is None else 0.0) if tol is None else check_real("tol", tol, 0)
    max_order = None if max_order is None else check_integer("max_order", max_order, 1)
    readable, polish = check_flag("readable", readable), check_flag("polish", polish)
    with single_threaded_blas(), rows:
        if max_order is None and not readable:
            pruning = Pruning(most, tol)
            small = in_few_terms(rows, model, weight, pruning) if polish else None
            small = pruned(rows, model, weight, pruning) if small is None else small
        else:
            small = made_readable(
                rows, model, weight, most, tol, max_order, spare if readable else None
            )
        return small if small is model else _with_mean_of(model, small, rows, weight)


@dataclass(frozen=True)
class Pruning:
    """How many terms may stay, and what dropping the others may change.

    most : the most terms
    tol, change : the mean square of the change may be tol times the variance of the predictions,
        plus change^2
    looked_at : the most terms that may stay, the ones that vary most; None: MOST_LOOKED_AT
    fit_intercept : whether the intercept may change
    ridge : the penalty on the square of what coefficients differ from those of the model, as a
        share of the variance of their terms
    """

    most: int
    tol: float = 0.0
    change: float = 0.0
    looked_at: int | None = None
    fit_intercept: bool = True
    ridge: float = 0.0


def in_few_terms(
    rows: Rows, model: SparseModel, weight: np.ndarray, pruning: Pruning
) -> SparseModel | None:
    """Return the model in the most terms that may stay, with its cosines moved to where it is
    nearest; None where fewer terms do, or none can be moved."""
    most, can_move = pruning.most, movable(model, rows)
    is_few = most < len(can_move) and steps_for(most, model.features.n_inputs)
    if not (is_few and can_move.any()):
        return None
    rows, h = rows_to_polish_on(rows, weight, model.features.encoder)
    preference = np.where(can_move | model.features.is_linear, 1.0, STILL)
    small = pruned(rows, model, h, pruning, preference)
    if len(small.support) < most:
        return None
    return polished(small, model, rows, h, pruning.fit_intercept)


def pruned(
    rows: Rows,
    model: SparseModel,
    weight: np.ndarray,
    pruning: Pruning,
    preference: np.ndarray | float = 1.0,
) -> SparseModel:
    """Return the model in at most `most` of its terms, in fewer where these change its predictions
    little.

    preference : the factor of the gain of each term when terms are chosen
    """
    most, tol, change = pruning.most, pruning.tol, pruning.change
    looked_at = MOST_LOOKED_AT if pruning.looked_at is None else pruning.looked_at
    if len(model.support) <= most and tol == change == 0:
        return model

    # Features over r, coefficients over unit and size, so that no square overflows: f = unit size
    # (Phi / r) w'.
    coef, unit = _divide_by_unit(np.atleast_2d(model.coef))
    rows, h = _rows_looked_at(rows, weight, ROWS_A_TERM * min(len(model.support), looked_at))
    is_large = _is_among_largest(rows, model.features, coef, h, looked_at)
    # in the order of the blocks, in which their Gram matrix is made
    large = model.features.to_blocks(np.arange(len(is_large)))
    large = large[is_large[large]]
    features = model.features.take(large)
    m, G, r = _moments(rows, features, h)
    if not pruning.fit_intercept:  # moments around 0
        G, m = G + np.outer(m, m), np.zeros(len(m))
    G[np.diag_indices_from(G)] *= 1 + np.where(features.is_local, RIDGE, pruning.ridge)
    w, size = _divide_by_unit(coef[:, large] * r)
    c, f_mean = w @ G, w @ m
    variance = float((c * w).sum())
    if not is_large.all():  # add the contribution to f of the terms that are not looked at
        others = model.features.take(np.flatnonzero(~is_large))
        f = rows.apply(others, coef[:, ~is_large] / size)
        f, mean = _around_mean(rows, f, h * pruning.fit_intercept)  # 0: around 0
        weighted_f = rows.vectors.times(h, f)
        more = rows.correlate(features, weighted_f) / r
        f_mean, c = f_mean + mean, c + more
        variance += float((2 * more * w).sum() + rows.vectors.dots(weighted_f, f).sum())

    rounding = ROUNDING_UNITS * float(np.finfo(rows.dtype).eps)
    change = float(change) / unit / size
    # ** would raise where the square is infinite
    largest = max(tol * variance + change * change, rounding * variance)
    preference = np.broadcast_to(preference, is_large.shape)[large]
    problem = LeastSquares(
        G, c, variance, _least_pivots(G, m, rounding), features.nonnegative, preference
    )
    S, w = best_terms(problem, most, largest)
    if len(S) == len(coef[0]):
        return model
    order = np.argsort(large[S])
    S, w = S[order], w[:, order]
    b = unit * (size * (f_mean - w @ m[S]))
    w, S = unit * (size / r[S] * w), large[S]
    return _in_terms_of(model, model.features.take(S), model.support[S], w, b)


def _in_terms_of(model, features, support, w, b):
    """Return the model with these features and coefficients; b: what is added to the intercept of
    each output."""
    b = model.intercept + b.reshape(np.shape(model.intercept))
    if not (np.isfinite(w).all() and np.isfinite(b).all()):
        raise ValueError(
            "X must be of moderate size, got values for which the model overflows: scale its "
            "columns"
        )
    return replace(
        model,
        coef=w.reshape(*model.coef.shape[:-1], len(support)),
        intercept=b if np.ndim(b) else float(b),
        support=support,
        features=features,
        info=replace(model.info, n_nonzero=len(support), validation_loss=None, fidelity=None),
        ranges=model.ranges.seen_by(features.columns_seen),
    )


def made_readable(
    rows: Rows,
    model: SparseModel,
    weight: np.ndarray,
    most: int,
    tol: float,
    max_order: int | None,
    spare: float | None,
) -> SparseModel:
    """Return a model whose terms are parts of the terms of the model that see few columns, or have
    few weights; or, of a model of boxes, the few that are nearest to it (`nearest_boxes`).

    The parts are chosen by orthogonal least squares, at most `most` of them, until the change is at
    most tol.

    max_order : the most columns that a term may see; None: any number
    spare : the share of the variance of the predictions that zero weights may cost; None: no
        weights are made zero
    """
    features, every_row = model.features, rows
    rows, h = _rows_looked_at(rows, weight, ROWS_A_TERM * min(len(features), MOST_LOOKED_AT))
    coef, unit = _divide_by_unit(np.atleast_2d(model.coef))
    f, f_mean = _around_mean(rows, rows.apply(features, coef), h)
    weighted_f = rows.vectors.times(h, f)
    variance = float(rows.vectors.dots(weighted_f, f).sum())

    def best_of(candidates, most, tol):
        """Return the places of the best candidates, ascending, their coefficients w, the mean of
        w'phi, and the change left."""
        m, G, r = _moments(rows, candidates, h)
        c = rows.correlate(candidates, weighted_f) / r
        rounding = ROUNDING_UNITS * float(np.finfo(rows.dtype).eps)
        problem = LeastSquares(
            G, np.atleast_2d(c), variance, _least_pivots(G, m, rounding), candidates.nonnegative
        )
        largest = max(tol, rounding) * variance
        S, w = best_terms(problem, most, largest)
        left = problem.residual_variance(S, w)
        # all candidates together leave more: tol then counts beyond that
        if tol and left > largest:
            S, w = best_terms(problem, most, left + largest)
            left = problem.residual_variance(S, w)
        S, w = np.sort(S), w[:, np.argsort(S)]
        return S, w / r[S], w @ m[S], left

    candidates = features
    if spare is not None and most < len(features) and _may_be_boxes_on_grid(features, most):
        spare, f = None, rows.vectors.fetch(f)
        candidates = nearest_boxes(rows, features, f, h, most, tol, max_order)
        candidates = between_rows(candidates.encoded(None), every_row).encoded(features.encoder)
    elif max_order is not None:
        candidates = of_few_inputs(rows, features, h, max_order)
        if len(candidates) == 0:
            raise ValueError(
                f"max_order must leave some part of a term, got {max_order}: all see more columns "
                "at once"
            )
    S, w, w_mean, change = best_of(candidates, most, tol)
    candidates = candidates.take(S)
    if spare is not None:
        largest = change + spare * variance
        for share in SHARES:
            fewer = with_fewer_weights(rows, candidates, h, share)
            T, w_of_fewer, mean_of_fewer, change = best_of(fewer, len(S), 0.0)
            if change <= largest:
                S, w, w_mean, candidates = S[T], w_of_fewer, mean_of_fewer, fewer.take(T)
                break
    return _in_terms_of(model, candidates, S, unit * w, unit * (f_mean - w_mean))


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Least squares for f by features Phi, all around their means: the problem from which terms are
    taken.

    G, c, variance : Phi' diag(h) Phi, f' diag(h) Phi and tr f' diag(h) f
    least : for each feature the least d at which it may be taken
    nonnegative : a mask of the features whose coefficients must be at least 0
    preference : the factor of the gain of each feature when the next is taken
    """

    G: np.ndarray
    c: np.ndarray
    variance: float
    least: np.ndarray
    nonnegative: np.ndarray
    preference: np.ndarray | float = 1.0

    def residual_variance(self, S: np.ndarray, w: np.ndarray) -> float:
        """Return the mean square of f - Phi w', for the best coefficients w of terms S, (n_outputs,
        len(S))."""
        return self.variance - float((w * self.c[:, S]).sum())


def best_terms(problem: LeastSquares, most: int, largest: float) -> tuple[np.ndarray, np.ndarray]:
    """Return terms S and their coefficients w, (n_outputs, len(S)), of the signs that the problem
    asks for.

    The terms are those of `orthogonal_least_squares`. Where coefficients at least 0 leave more than
    `largest`, it takes more terms, until they do not, or there are no more; terms whose coefficient
    is then 0 are left out.
    """
    goal, G = largest, problem.G
    while True:
        S, w = orthogonal_least_squares(problem, most, goal)
        nonnegative = problem.nonnegative[S]
        if not nonnegative.any():
            return S, w
        has_ended = len(S) == most or goal < NEGLIGIBLE * problem.variance
        has_ended = has_ended or problem.residual_variance(S, w) > goal
        G_S = G[np.ix_(S, S)]
        w = np.stack([nonnegative_minimum(G_S, c_k[S], nonnegative) for c_k in problem.c])
        if has_ended or problem.residual_variance(S, w) <= largest:
            used = w.any(axis=0)
            return S[used], w[:, used]
        goal /= 2


def orthogonal_least_squares(
    problem: LeastSquares, most: int, largest: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the terms S in the order in which they were taken, and their coefficients w,
    (n_outputs, len(S)).

    Terms are taken until the mean square of f - Phi w' is at most `largest`, or there are `most`.
    Of the features whose coefficients must be at least 0, one that would enter with negative ones
    alone is taken only after all others.

    Q' has the columns of the Cholesky factor of G for the terms S so far, d = diag(G - Q'Q), and c
    is that of the part of f which these terms do not explain.
    """
    from scipy.linalg import solve_triangular

    G, c, left = problem.G, problem.c, problem.variance
    d = G.diagonal().copy()
    S, e, Q = [], [], np.zeros((min(most, len(d)), len(d)))
    n_ahead, ahead = 0, {}  # lines of G - Q'Q, for the first n_ahead lines of Q
    while len(S) < len(Q) and left > largest:
        check_not_ended()
        gain = np.where(d > problem.least, (c * c).sum(axis=0) / np.maximum(d, 1e-300), 0.0)
        of_right_sign = np.where(problem.nonnegative & (c <= 0).all(axis=0), 0.0, gain)
        worth = problem.preference * (of_right_sign if of_right_sign.any() else gain)
        j = int(worth.argmax())
        if not gain[j] > 0:
            break
        near = [i for i in ahead if d[i] > 0 and worth[i] >= NEAR * worth[j]]
        if j not in ahead and len(S) >= ONE_BY_ONE and near:
            j = max(near, key=worth.__getitem__)
        if j not in ahead:
            worth[j] = np.inf  # one of the first, where many are equal
            n = min(max(AHEAD, len(S) // PART), len(worth))
            some = np.argpartition(-worth, n - 1)[:n]
            lines = _lines(G, Q[: len(S)], some)
            n_ahead, ahead = len(S), dict(zip(some.tolist(), lines, strict=True))
        since = Q[n_ahead : len(S)]
        q = (ahead[j] - since[:, j] @ since) / np.sqrt(d[j])
        e.append(c[:, j] / q[j])
        c, d, left = c - np.outer(e[-1], q), d - q * q, left - gain[j]
        Q[len(S)], d[j] = q, 0.0
        S.append(j)
    S = np.array(S, np.intp)
    R, e = Q[: len(S), S], np.array(e).reshape(len(S), len(c))
    return S, solve_triangular(R, e, check_finite=False).T if len(S) else e.T


def _lines(G, Q, some):
    """Return the lines of G - Q'Q of some features."""
    lines = G[some]
    for start in range(0, len(Q), CACHED):
        part = Q[start : start + CACHED]
        lines -= part[:, some].T @ part
    return lines


def _around_mean(rows, f, h):
    """Return f around its mean, and the mean, of each output."""
    mean = rows.vectors.dots(f, h)
    return rows.vectors.minus(f, mean), mean


def _divide_by_unit(coef):
    """Return coef / unit and unit, a power of two such that no square overflows or underflows where
    it matters."""
    unit = power_of_two(coef) if coef.size else 1.0
    return coef / unit, unit


def _moments(rows, features, h):
    """Return means and covariance of features / r, and r, a power of two near the root mean square
    of each feature."""
    # rounding to float32 would grow from step to step
    G = np.require(rows.gram(features, features, h, np.float64), requirements="W")
    r = 2.0 ** (np.frexp(G.diagonal())[1] // 2)
    m = rows.correlate(features, h) / r
    for line, m_k, r_k in zip(G, m, r, strict=True):  # in place: G may be large
        line /= r
        line /= r_k
        line -= m_k * m
    return m, G, r


def _least_pivots(G, m, rounding):
    """Return the least d at which each feature may be taken: below, it is a constant or depends on
    the features before."""
    return np.maximum(
        max(DEPENDENT, rounding) * G.diagonal(), max(CONSTANT, rounding) * (G.diagonal() + m * m)
    )


def _rows_looked_at(rows, weight, n):
    """Return at least n evenly spaced rows, or all of them, and their weights, of sum 1."""
    index = evenly(rows.n_rows, max(n, FEWEST_ROWS))
    h = weight[index]
    return rows.take(index) if len(index) < rows.n_rows else rows, h / h.sum()


def _is_among_largest(rows, features, coef, h, n):
    """Return a mask of the n features whose terms vary most, or of all where there are no more."""
    if len(features) <= n:
        return np.ones(len(features), bool)
    varies = rows.correlate_squares(features, h) - rows.correlate(features, h) ** 2
    order = np.argsort(-(coef**2).sum(axis=0) * varies, kind="stable")
    return np.isin(np.arange(len(features)), order[:n])


def _with_mean_of(model, small, rows, weight):
    """Return the small model with the intercept at which its mean prediction on the rows equals the
    model's.

    Least squares keeps the mean of f. Where the model predicts a function of f, or probabilities,
    their means are other functions of f.
    """
    link = LINKS[model.link] if model.classes is None else None
    if model.loss not in PROBABILISTIC or model.thresholds if link is None else link.is_identity:
        return small
    f, g = (np.atleast_2d(_margins(each, rows)) for each in (model, small))
    if link is not None:
        shift = np.array([link.shift(*pair, weight) for pair in zip(f, g, strict=True)])
    elif len(f) > 1 and model.link == "softmax":
        shift = _shift_of_shares(f, g, weight)
    else:  # one-vs-rest: each margin beside one of 0
        pairs = zip(*(np.stack([np.zeros_like(z), z], axis=1) for z in (f, g)), strict=True)
        shift = np.array([np.diff(_shift_of_shares(*pair, weight))[0] for pair in pairs])
    b = small.intercept + shift.reshape(np.shape(small.intercept))
    return replace(small, intercept=b if np.ndim(b) else float(b))


def _margins(model, rows):
    """Return f of the rows, an ndarray."""
    f = rows.vectors.fetch(rows.apply(model.features.encoded(None), model.coef))
    return f + np.expand_dims(model.intercept, -1)


def _shift_of_shares(f, g, weight):
    """Return the shifts of the margins g of all classes at which each class has the mean
    probability that it has at margins f.

    By Newton's method; where its step does not bring them nearer, by a step of iterative scaling
    (Darroch and Ratcliff, 1972), which does.
    """
    s = weight / weight.sum()
    mean = softmax(f) @ s
    shift, p = np.zeros(len(f)), softmax(g)
    for _ in range(MOST_SHIFTS):
        missing = mean - p @ s
        if np.abs(missing).max() <= 1e-12:
            break
        newton = (
            np.linalg.pinv(np.diag(p @ s) - (p * s) @ p.T, rcond=1e-13, hermitian=True) @ missing
        )
        scaled = np.log(np.maximum(mean, 1e-300)) - np.log(np.maximum(p @ s, 1e-300))
        for step in (newton, scaled):
            q = softmax(g + (shift + step)[:, None])
            if np.abs(mean - q @ s).max() < np.abs(missing).max():
                break
        shift, p = shift + step, q
    return shift


def of_few_inputs(rows: Rows, features: FeatureSet, h: np.ndarray, max_order: int) -> FeatureSet:
    """Return candidates that see at most max_order columns of X: parts of the features.

    Linear functions, which are sums of functions of one column, stay as they are, and so do
    monomials of as few factors. For each other feature, subsets of the columns that move it most
    are tried.

    h : weights of the rows, of sum 1
    """
    mean, deviation = _moments_of_inputs(rows, features, h)
    n_subsets = max(1, MOST_CANDIDATES // max(len(features), 1))
    blocks = []
    for block in features.blocks:
        if block.is_linear or not block.has_parts:
            if block.is_linear or block.order <= max_order:
                blocks.append(block)
            continue
        column, effect = _columns_seen(features, block), block.effects(deviation)
        subsets = [_subsets(column[k], effect[k], max_order, n_subsets) for k in range(len(block))]
        term = np.repeat(np.arange(len(block)), list(map(len, subsets)))
        stays = [np.isin(column[k], subset) for k, each in enumerate(subsets) for subset in each]
        blocks.append(block.take(term).with_inputs(np.array(stays), mean))
    return FeatureSet(blocks, features.n_inputs, encoder=features.encoder)


def with_fewer_weights(rows: Rows, features: FeatureSet, h: np.ndarray, share: float) -> FeatureSet:
    """Return the features with their smallest weights zero: as many as make up this share of the
    variance of w'x.

    The variance of each feature's w'x is that for uncorrelated inputs.

    h : weights of the rows, of sum 1
    """
    mean, deviation = _moments_of_inputs(rows, features, h)
    blocks = []
    for block in features.blocks:
        if not block.has_parts:
            blocks.append(block)
            continue
        effect = block.effects(deviation)
        ascending = np.argsort(effect, axis=1, kind="stable")
        below = np.cumsum(np.take_along_axis(effect, ascending, axis=1), axis=1)
        stays = np.empty(effect.shape, bool)
        np.put_along_axis(stays, ascending, below > share * below[:, -1:], axis=1)
        blocks.append(block.with_inputs(stays, mean))
    return FeatureSet(blocks, features.n_inputs, features.order, features.encoder)


def _may_be_boxes_on_grid(features, most):
    """Return whether few terms are asked for of boxes, whose coefficients may have any sign."""
    is_box = features.mask(lambda block: isinstance(block, BoxBlock))
    return most <= MOST_BOXES and is_box.all() and not features.nonnegative.any()


def _moments_of_inputs(rows, features, h):
    """Return the mean of each input and its standard deviation."""
    inputs = Linear().draw(None, features.n_inputs)
    mean = rows.correlate(inputs, h)
    return mean, np.sqrt(np.maximum(rows.correlate_squares(inputs, h) - mean**2, 0.0))


def _columns_seen(features, block):
    """Return the column of X of each input of each feature, -1 where the feature does not depend on
    it."""
    inputs = block.own_inputs
    column = inputs if features.encoder is None else features.encoder.column[inputs]
    return np.where(block.is_used, column, -1)


def _subsets(columns, effect, max_order, most):
    """Return sets of at most max_order columns, from the columns that move a term most; first the
    sets that move it most."""
    seen, place = np.unique(columns[columns >= 0], return_inverse=True)
    if len(seen) <= max_order:
        return [seen]
    total = np.bincount(place, effect[columns >= 0])
    largest = np.argsort(-total, kind="stable")[: max_order + MORE_INPUTS]
    return [seen[list(places)] for places in combinations(largest, max_order)][:most]
