"""A model in fewer of its terms: those that give its own predictions best."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import check_flag, check_integer, check_real
from .._base.door import door
from .._base.threads import single_threaded_blas
from ..losses import PROBABILISTIC
from ..losses.classification import softmax
from ..model import SparseModel
from .readable import of_few_inputs, with_fewer_weights
from .task import power_of_two, rows_of_positive_weight

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..rows.home import Rows

# Terms that may stay, of more the largest. Rows that are looked at, in evenly spaced places: for each of these, and at least.
MOST_LOOKED_AT, ROWS_A_TERM, FEWEST_ROWS = 3_000, 8, 10_000
# A term of which less than this share is new depends on those before it, and is constant if its variance is less than
# this share of its mean square.
DEPENDENT, CONSTANT = 1e-9, 1e-13
# The share of the variance that zero weights may cost by default; and of the variance of each w'x, the largest of these shares
# is made zero with which they do not cost more.
READABLE, SHARES = 0.01, (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
# Steps towards the intercepts at which classes keep their mean probability, at most.
MOST_SHIFTS = 100
# The share, in units of the last place, that may be rounding alone: fitted to it, coefficients would be of any size.
ROUNDING = 100


@door
def prune(
    model: SparseModel, X: MatrixLike, *, max_terms: int | None = None, max_order: int | None = None, readable: bool = False,
    tol: float | None = None, sample_weight: ArrayLike | None = None, workers: int = 1,
) -> SparseModel:  # fmt: skip
    r"""A model in fewer of its terms, which predicts nearly the same.

    By orthogonal least squares: one after another, the term is taken that, with all taken before at their best
    coefficients, comes nearest to the model's own predictions f,

    .. math:: \sum_i s_i (\hat f(x_i) - f(x_i))^2 / \sum_i s_i

    until that is at most tol of their variance, or there are max_terms. The target is not needed: what is fitted has no
    noise, so that few terms suffice, without a penalty. Where e^f or probabilities are predicted, their mean is kept by the
    intercept.

    Parameters
    ----------
    model : SparseModel
    X : array or CSR matrix of shape (n_samples, n_features_in)
        Rows on which the predictions shall be near, those of the fit or others. Eight for each term, but of up to 3,000, are
        looked at, and at least 10,000.
    max_terms : int or None, default None
        Most terms, at least 1.
    max_order : int or None, default None
        Most columns of X that a term sees, at least 1; linear functions of all columns, which are sums of functions of one, may
        stay. The terms are then parts of those of the model: each with the weights of all but a few of its columns zero, and
        these at their means. With 1 or 2 `plot.effects` shows the model whole.
    readable : bool, default False
        Whether weights within terms shall be zero, too: as many as change the predictions by at most tol, None: 0.01, of
        their variance more than fewer terms do.
    tol : float or None, default None
        Largest change, >= 0: mean square over the variance of the predictions, both summed over the outputs. 0: as many
        terms as there may be and rounding leaves something to explain, 2e-14 of the variance, or 1e-5 of float32 X.
        None: 0 where there is a max_terms, else 0.01. With max_order, beyond the change that all candidates leave, where
        that is larger.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative.
    workers : int, default 1
        Threads; -1 for all cores. The result is the same, bit for bit, for any number.

    Returns
    -------
    SparseModel
        `support` and the terms are some of those of `model`; of `info` n_nonzero is new, and validation_loss, which was that
        of `model`, is None where terms were dropped. With max_order or readable, terms are parts of those of `model`, and
        `support` counts the candidates that they were chosen from.

    Raises
    ------
    ValueError, TypeError
        An argument out of its range or of another kind.

    See Also
    --------
    sparse_rf : With alpha=None it ends so.

    Notes
    -----
    Of more than 3,000 terms only those that vary most may stay, even if the change is then above tol. Time O(n a^2 + a k^2)
    for the n rows that are looked at, a terms that may stay and k that do; memory O(a^2), and a copy of those rows where
    they are not all.

    A term that sees more than max_order columns is replaced by parts that see so many of those that move it most; where columns
    are independent, the mean of a cosine over all others is such a part. Up to about 2,000 are looked at. Time and memory are
    then those of pruning so many terms; readable, of up to eight times that for the terms that stay.

    References
    ----------
    S. Chen, S. A. Billings, W. Luo, Orthogonal least squares methods and their application to non-linear system
    identification, Int. J. Control 50, 1989.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (1000, 2))
    >>> y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(1000)
    >>> model = srf.sparse_rf(X, y, features="gaussian", alpha=0.001, gamma=1.0, n_components=2000, rng=0)
    >>> small = srf.prune(model, X)
    >>> len(model.features) > 35, len(small.features) < 10
    (True, True)
    >>> bool(np.var(small.predict(X) - model.predict(X)) <= 0.01 * np.var(model.predict(X)))
    True
    >>> len(srf.prune(model, X, max_terms=30).features)
    30
    >>> small = srf.prune(model, X, max_terms=30, max_order=1)  # y is no sum of functions of one column
    >>> max(len(name.split(",")) for name in small.features.names()), bool(np.var(small.predict(X)) < 0.1 * y.var())
    (1, True)
    """
    if not isinstance(model, SparseModel):
        raise TypeError(f"model must be a SparseModel, got {type(model).__name__}")
    rows = model.features.rows_of(X, workers)
    if rows.n_rows == 0:
        raise ValueError(f"X must have at least one row, got shape (0, {rows.n_features_in})")
    _, rows, weight = rows_of_positive_weight(rows, sample_weight)
    spare = READABLE if tol is None else check_real("tol", tol, 0)
    most = len(model.support) if max_terms is None else check_integer("max_terms", max_terms, 1)
    tol = (0.01 if max_terms is None else 0.0) if tol is None else check_real("tol", tol, 0)
    max_order = None if max_order is None else check_integer("max_order", max_order, 1)
    readable = check_flag("readable", readable)
    with single_threaded_blas(), rows:
        if max_order is None and not readable:
            small = pruned(rows, model, weight, most, tol=tol)
        else:
            small = made_readable(rows, model, weight, most, tol, max_order, spare if readable else None)
        return small if small is model else _with_mean_of(model, small, rows, weight)


def _with_mean_of(model, small, rows, weight):
    """Return the small model with the intercept at which its mean prediction on the rows is that of the model.

    f is kept in the mean already. Where e^f or probabilities are predicted, these would not be.
    """
    if model.link != "log" and model.loss not in PROBABILISTIC:
        return small
    f, g = (np.atleast_2d(_margins(each, rows)) for each in (model, small))
    if model.link == "log":
        shift = np.array([_log_mean(f_k, weight) - _log_mean(g_k, weight) for f_k, g_k in zip(f, g, strict=True)])
    elif len(f) > 1 and model.link == "softmax":
        shift = _shift_of_shares(f, g, weight)
    else:  # of each output, beside one of 0
        pairs = zip(*([np.stack([np.zeros_like(z_k), z_k]) for z_k in z] for z in (f, g)), strict=True)
        shift = np.array([np.diff(_shift_of_shares(*pair, weight))[0] for pair in pairs])
    b = small.intercept + shift.reshape(np.shape(small.intercept))
    return replace(small, intercept=b if np.ndim(b) else float(b))


def _margins(model, rows):
    f = rows.vectors.fetch(rows.apply(model.features.staged(None), model.coef))
    return f + np.expand_dims(model.intercept, -1)


def _log_mean(z, weight):
    """Return log of the mean of e^z."""
    return z.max() + np.log(weight @ np.exp(z - z.max()) / len(z))


def _shift_of_shares(f, g, weight):
    """Return the shifts of the margins g of all classes at which each has the mean probability that it has at margins f.

    Newton's method; where its step does not bring them nearer, iterative scaling (Darroch and Ratcliff, 1972), which does.
    """
    s = weight / weight.sum()
    mean = softmax(f) @ s
    shift, p = np.zeros(len(f)), softmax(g)
    for _ in range(MOST_SHIFTS):
        missing = mean - p @ s
        if np.abs(missing).max() <= 1e-12:
            break
        newton = np.linalg.pinv(np.diag(p @ s) - (p * s) @ p.T, rcond=1e-13, hermitian=True) @ missing
        scaled = np.log(np.maximum(mean, 1e-300)) - np.log(np.maximum(p @ s, 1e-300))
        for step in (newton, scaled):
            q = softmax(g + (shift + step)[:, None])
            if np.abs(mean - q @ s).max() < np.abs(missing).max():
                break
        shift, p = shift + step, q
    return shift


def pruned(
    rows: Rows, model: SparseModel, weight: np.ndarray, most: int, *, tol: float = 0.0, change: float = 0.0,
    looked_at: int | None = None,
) -> SparseModel:  # fmt: skip
    """`prune` where the largest change, in mean square, is tol times the variance of the predictions, or change^2.

    looked_at : of more terms the largest; None: MOST_LOOKED_AT
    """
    looked_at = MOST_LOOKED_AT if looked_at is None else looked_at
    if len(model.support) <= most and tol == change == 0:
        return model
    coef, unit = _in_units(np.atleast_2d(model.coef))
    rows, h = _look(rows, weight, ROWS_A_TERM * min(len(model.support), looked_at))
    is_large = _largest(rows, model.features, coef, h, looked_at)
    features = model.features.take(np.flatnonzero(is_large))
    m, G, r = _moments(rows, features, h)
    large, size = _in_units(coef[:, is_large] * r)
    c, variance, f_mean = large @ G, float((large @ G * large).sum()), large @ m
    if not is_large.all():
        f, mean = _around_mean(rows, rows.apply(model.features.take(np.flatnonzero(~is_large)), coef[:, ~is_large] / size), h)
        weighted_f = rows.vectors.times(h, f)
        more = rows.correlate(features, weighted_f) / r
        f_mean, c = f_mean + mean, c + more
        variance += float((2 * more * large).sum() + rows.vectors.dots(weighted_f, f).sum())
    rounding = ROUNDING * float(np.finfo(rows.dtype).eps)
    change = float(change) / unit / size
    largest = max(tol * variance + change * change, rounding * variance)  # ** would raise where the square is infinite
    least = np.maximum(max(DEPENDENT, rounding) * G.diagonal(), max(CONSTANT, rounding) * (G.diagonal() + m * m))
    S, w = orthogonal_least_squares(G, c, variance, most, largest, least)
    if len(S) == len(coef[0]):
        return model
    S, w = np.sort(S), w[:, np.argsort(S)]
    with np.errstate(over="ignore", invalid="ignore"):
        b = unit * (size * (f_mean - w @ m[S]))
        w = unit * (size / r[S] * w)
    return _in_terms_of(model, features.take(S), model.support[is_large][S], w, b)


def _in_terms_of(model, features, support, w, b):
    """Return the model with these features and coefficients; b: what comes to the intercept of each output."""
    with np.errstate(over="ignore", invalid="ignore"):
        b = model.intercept + b.reshape(np.shape(model.intercept))
    if not (np.isfinite(w).all() and np.isfinite(b).all()):
        raise ValueError("X must be of moderate size, got values for which the model overflows: scale its columns")
    return replace(
        model, coef=w.reshape(*model.coef.shape[:-1], len(support)), intercept=b if np.ndim(b) else float(b), support=support,
        features=features, info=replace(model.info, n_nonzero=len(support), validation_loss=None),
    )  # fmt: skip


def made_readable(
    rows: Rows, model: SparseModel, weight: np.ndarray, most: int, tol: float, max_order: int | None, spare: float | None
) -> SparseModel:
    """Return a model in terms of few columns, and of few weights: the best parts of the model's terms.

    spare : the share of the variance of the predictions that zero weights may cost; None: none are made zero
    """
    features = model.features
    rows, h = _look(rows, weight, ROWS_A_TERM * min(len(features), MOST_LOOKED_AT))
    coef, unit = _in_units(np.atleast_2d(model.coef))
    f, f_mean = _around_mean(rows, rows.apply(features, coef), h)
    weighted_f = rows.vectors.times(h, f)
    variance = float(rows.vectors.dots(weighted_f, f).sum())

    def best_of(candidates, most, tol):
        """Return (the places of the best candidates, ascending, coefficients, their means, the change left)."""
        m, G, r = _moments(rows, candidates, h)
        c = rows.correlate(candidates, weighted_f) / r
        rounding = ROUNDING * float(np.finfo(rows.dtype).eps)
        least = np.maximum(max(DEPENDENT, rounding) * G.diagonal(), max(CONSTANT, rounding) * (G.diagonal() + m * m))
        c, largest = np.atleast_2d(c), max(tol, rounding) * variance
        S, w = orthogonal_least_squares(G, c, variance, most, largest, least)
        left = variance - float((w * c[:, S]).sum())
        if tol and left > largest:  # what all candidates leave may be more: then as much beyond that
            S, w = orthogonal_least_squares(G, c, variance, most, left + largest, least)
            left = variance - float((w * c[:, S]).sum())
        S, w = np.sort(S), w[:, np.argsort(S)]
        return S, w / r[S], w @ m[S], left

    candidates = features
    if max_order is not None:
        candidates = of_few_inputs(rows, features, h, max_order)
        if len(candidates) == 0:
            raise ValueError(f"max_order must leave some part of a term, got {max_order}: all see more columns at once")
    S, w, w_mean, change = best_of(candidates, most, tol)
    candidates = candidates.take(S)
    if spare is not None:
        largest = change + spare * variance
        for share in SHARES:
            fewer = with_fewer_weights(rows, candidates, h, share)
            some = best_of(fewer, len(S), 0.0)
            if some[-1] <= largest:
                (T, w, w_mean, _), candidates = some, fewer.take(some[0])
                S = S[T]
                break
    return _in_terms_of(model, candidates, S, unit * w, unit * (f_mean - w_mean))


def _around_mean(rows, f, h):
    """(f around its mean, the mean) of each output."""
    mean = rows.vectors.dots(f, h)
    return rows.vectors.minus(f, mean), mean


def _in_units(coef):
    """(coef / unit, unit), a power of two such that no square over- or underflows where it matters."""
    unit = power_of_two(coef) if coef.size else 1.0
    return coef / unit, unit


def _moments(rows, features, h):
    """(means, covariance, r) of the features, each divided by r, a power of two near its root mean square."""
    G = rows.gram(features, features, h, np.float64)  # float32's rounding would grow from step to step
    r = 2.0 ** (np.frexp(G.diagonal())[1] // 2)
    m = rows.correlate(features, h) / r
    return m, G / r / r[:, None] - np.outer(m, m), r


def _look(rows, weight, n):
    """(some rows that have a weight, their weights, of sum 1)."""
    n = min(max(n, FEWEST_ROWS), rows.n_rows)
    some = np.arange(n) * rows.n_rows // n
    h = weight[some]
    return rows.take(some) if n < rows.n_rows else rows, h / h.sum()


def _largest(rows, features, coef, h, n):
    """Which n features have the terms that vary most; all, where there are no more."""
    if len(features) <= n:
        return np.ones(len(features), bool)
    varies = rows.correlate_squares(features, h) - rows.correlate(features, h) ** 2
    order = np.argsort(-(coef**2).sum(axis=0) * varies, kind="stable")
    return np.isin(np.arange(len(features)), order[:n])


def orthogonal_least_squares(
    G: np.ndarray, c: np.ndarray, variance: float, most: int, largest: float, least: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(S, w): terms S in the order taken, and w (n_outputs, len(S)), so that the mean square of f - Phi w' <= largest.

    Terms whose d, below, is at most `least` are not taken.

    G = Phi' diag(h) Phi, c = f' diag(h) Phi, variance = tr f' diag(h) f. With Q the part of Cholesky's factor of G that has
    been made, columns of S first, d = diag(G - Q Q') and c less what the terms taken explain: the next term is the one of
    largest |c_j|^2 / d_j.
    """
    d, left = G.diagonal().copy(), variance
    S, e, Q = [], [], np.zeros((min(most, len(d)), len(d)))
    while len(S) < len(Q) and left > largest:
        gain = np.where(d > least, (c * c).sum(axis=0) / np.maximum(d, 1e-300), 0.0)
        j = int(gain.argmax())
        if not gain[j] > 0:
            break
        q = (G[j] - Q[: len(S), j] @ Q[: len(S)]) / np.sqrt(d[j])
        e.append(c[:, j] / q[j])
        c, d, left = c - np.outer(e[-1], q), d - q * q, left - gain[j]
        Q[len(S)], d[j] = q, 0.0
        S.append(j)
    S = np.array(S, np.intp)
    return S, _back_substituted(Q[: len(S), S], np.array(e).reshape(len(S), len(c)))


def _back_substituted(R, e):
    """(R^-1 e)' for an upper triangle R."""
    from scipy.linalg import solve_triangular

    return solve_triangular(R, e, check_finite=False).T if len(R) else e.T
