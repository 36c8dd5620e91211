"""The certificate of an iterate: a bound on its distance to the optimum, with all that rounding may
add to it.

The objective P is alpha-strongly convex in w, so that for any dual point a, with dual objective
D(a), |w - w*|^2 is at most 2 (P - D(a)) / alpha. Two dual points are tried: v = s L'(z) / n, for
which the bound is |alpha w + Z'v| / alpha; and -alpha u where w = Z'u is known, which is nearer
where X is ill-conditioned. Where the inputs are few and rounding is all that is left, the Hessian
around the iterate gives a third bound.

Rounding: a sum of k products, |a|'|b| in all, is computed to within PROBABLE sqrt(k) u |a|'|b|, u =
2^-53: each of its k additions adds an error of at most u times the sum so far, and as many
independent errors of mean zero add up to more than twice the root of the sum of their squares in
one case of thousands (N. J. Higham, T. Mary, A new approach to probabilistic rounding error
analysis, 2019). The numbers of float32 rows are exact in float64, in which all sums are made.

Lengths over the rows: the norm of dual points is |e| = sqrt(n sum e_i^2 / s_i), the norm of margins
sqrt(sum s_i e_i^2 / n).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import namespace, outputs_like
from ..solvers.krylov import norms

if TYPE_CHECKING:
    from .._base.types import RowVector
    from .inputs import Inputs
    from .problem import LinearIterate, LinearProblem

# Unit roundoff of float64, and the factor of the root of k in the error of a sum of k numbers.
UNIT_ROUNDOFF, PROBABLE = 2.0**-53, 2.0
# A distance below this share of the rounding that it may have is taken for rounding.
ROUNDING_RATIO = 1e-5


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The dual point of an iterate and its sums over the rows, from one pass over them, whatever
    the penalty.

    v, h : row vectors
        The dual point, and the curvature of each row.
    slope, total : ndarrays of shape (n_outputs,)
        The sums of v and of h.
    size_z, size_v : ndarrays of shape (n_outputs,)
        The sizes of margins and of the dual point, in which their rounding is counted.
    z_v, means : ndarrays of shape (n_outputs, n_features)
        Z'v, and Z'h, by which the intercept takes part in a Newton step.
    """

    v: RowVector
    h: RowVector
    slope: np.ndarray
    total: np.ndarray
    size_z: np.ndarray
    size_v: np.ndarray
    z_v: np.ndarray
    means: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate:
    """A bound on the distance of an iterate to the optimum, |w - w*| is at most distance +
    rounding, with the gradient and row vectors that it was computed from.

    evaluation : Evaluation
        The dual point of the iterate and its sums over the rows.
    g : ndarray of shape (n_outputs, n_features)
        The gradient alpha w + Z'v.
    distance, rounding : ndarrays of shape (n_outputs,)
        The bound as computed, and the most that rounding may add to it.
    bound : ndarray of shape (n_outputs,)
        On |w - w*| / |w*|.
    gap : float
        A bound on the objective's distance to its minimum.
    converged : bool
        Whether all bounds are within the tolerance.
    """

    evaluation: Evaluation
    g: np.ndarray
    distance: np.ndarray
    rounding: np.ndarray
    bound: np.ndarray
    gap: float
    converged: bool

    @property
    def is_rounding(self) -> np.ndarray:
        """Whether the distance is hardly more than rounding, for each output."""
        return self.distance <= ROUNDING_RATIO * self.rounding


def certify(
    inputs: Inputs,
    problem: LinearProblem,
    iterate: LinearIterate,
    tol: float,
    evaluation: Evaluation | None = None,
) -> Certificate:
    """Return the certificate of an iterate at its best intercepts; tol is of the relative bound.

    evaluation: the evaluation of the iterate, where it was made for another penalty; no pass
    over the rows is needed then.
    """
    # Up to this number of inputs, the Hessian is computed for a tighter bound where nothing but
    # rounding prevents descent.
    few_inputs = 256

    from_u = None
    if evaluation is None:
        evaluation, from_u = _evaluate(inputs, problem, iterate)
    alpha, g, size = problem.alpha, problem.alpha * iterate.w + evaluation.z_v, norms(iterate.w)

    # What rounding may have done to the margins z, to the dual point v, and to each entry of the
    # gradient.
    in_z = _error_of_margins(inputs, problem, iterate, evaluation)
    in_v = problem.smoothness_at(evaluation.h) * in_z + 4 * UNIT_ROUNDOFF * evaluation.size_v
    in_sums = np.outer(in_v, inputs.sizes) + _error_of_correlation(inputs, evaluation.size_v)
    in_g = in_sums + 2 * UNIT_ROUNDOFF * alpha * np.abs(iterate.w)

    # |w - w*| <= |w - w~| = sqrt(2 gap / alpha) for w~ = -Z'v / alpha, v the dual point.
    distance, rounding = norms(g) / alpha, norms(in_g) / alpha
    # where no slope at 0 is more than rounding, the optimum is 0
    is_optimum = (size == 0) & (np.abs(g) <= in_g).all(axis=1)
    distance, rounding = np.where(is_optimum, 0.0, distance), np.where(is_optimum, 0.0, rounding)
    bound = relative_bound(size, distance + rounding)
    if not bound.max() <= tol and from_u is not None:
        distance, rounding = _nearer(
            distance,
            rounding,
            *_distance_from_u(inputs, problem, iterate, evaluation, *from_u, in_z),
        )
        bound = relative_bound(size, distance + rounding)

    with np.errstate(over="ignore"):
        gap = 0.5 * float(((np.sqrt(alpha) * (distance + rounding)) ** 2).sum())
    if not bound.max() <= tol and inputs.n_features <= few_inputs and (distance <= rounding).all():
        distance, rounding = _nearer(
            distance, rounding, *_distance_by_hessian(inputs, problem, iterate, g, in_g)
        )
        bound = relative_bound(size, distance + rounding)

    return Certificate(
        evaluation=evaluation,
        g=g,
        distance=distance,
        rounding=rounding,
        bound=bound,
        gap=gap,
        converged=bool(bound.max() <= tol),
    )


def _evaluate(inputs, problem, iterate):
    """Return the evaluation of an iterate, and (a, Z'a, h) of the dual point a = -alpha u where it
    is known, else None."""
    z = problem.margins(iterate.f, iterate.b)
    v, h = problem.dual_point(z), problem.curvature(z)
    slope, total = problem.vectors.totals(v, h)
    b, n, loss = np.abs(iterate.b), problem.n_rows, problem.loss

    def lengths(f, v, y, s):
        xp = namespace(f)
        return norms(xp.sqrt(s / n) * (xp.abs(f) + outputs_like(b, f) + loss.shift_size(y))), norms(
            v / xp.sqrt(s)
        )

    size_z, size_v = problem.vectors.sum(
        lengths, iterate.f, v, problem.y, problem.weight, add=np.hypot
    )
    a = None
    if iterate.u is not None and iterate.w.any() and np.isfinite(problem.loss.dual_growth):
        curved = problem.zero_in_flat_rows(h)
        a = _dual_point_from_u(problem, iterate.u, v, curved)
    # Z'h is 0 where h is the sample weights and Z is around the means that these weight.
    asks_means = problem.fit_intercept and not (
        problem.loss.is_quadratic and inputs.is_around_means
    )
    asked = [v, *[h] * asks_means, *([] if a is None else [a])]
    answers = inputs.correlate_each(*asked)
    means = answers[1] if asks_means else np.zeros_like(answers[0])
    evaluation = Evaluation(v, h, slope, total, size_z, np.sqrt(n) * size_v, answers[0], means)
    return evaluation, None if a is None else (a, answers[-1], curved)


def _dual_point_from_u(problem, u, v, h):
    """Return the dual point -alpha u, with v in place of it where h is 0, or None where u is not
    finite.

    Where there is an intercept a multiple of h is added, so that the dual point sums to 0, as it
    must.
    """
    alpha = problem.alpha

    def parts(u, v, h):
        return namespace(u).where(h > 0, -alpha * u, v)

    def sums(u, v, h):
        xp = namespace(u)
        return xp.sum(parts(u, v, h), axis=-1), xp.sum(h, axis=-1)

    slope, total = problem.vectors.sum(sums, u, v, h)
    if not np.isfinite(slope).all():
        return None
    shift = problem.intercept_step(total, slope)
    return problem.vectors.map(lambda u, v, h: parts(u, v, h) + h * outputs_like(shift, h), u, v, h)


def relative_bound(size: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return the bounds on |w - w*| / |w*| where |w| is `size` and |w - w*| at most `total`;
    infinite where w* may be 0."""
    least = size - total  # |w*| is at least this
    return np.divide(total, least, out=np.where(total > 0, np.inf, 0.0), where=least > 0)


def _nearer(distance, rounding, other_distance, other_rounding):
    """Return the lesser of two bounds, output by output."""
    is_nearer = other_distance + other_rounding < distance + rounding
    return np.where(is_nearer, (other_distance, other_rounding), (distance, rounding))


def _distance_from_u(inputs, problem, iterate, evaluation, a, z_a, curved, in_z):
    """Return (distance, rounding) by the dual point a = -alpha u.

    gap = n/2 sum (a - v)^2 / h + alpha/2 |w + Z'a / alpha|^2 where the losses are quadratic;
    elsewhere at most `dual_growth` times the first term. An error e in z adds sqrt(smoothness) |e|
    to the root of twice the first.
    """
    alpha, loss, n = problem.alpha, problem.loss, problem.n_rows
    low, high = loss.slopes

    def lengths(a, v, h, y, s):
        """Return, where h is not 0, the lengths of (a - v) / sqrt(h) and (|v| + |a|) / sqrt(h);
        that of a / sqrt(s); and 0 if the conjugate of s L is finite at all a.
        """
        xp, is_curved = namespace(a), h > 0
        root = xp.sqrt(xp.where(is_curved, h, xp.ones_like(h)))
        slope, zero = loss.bounded_slope(a * n, y), xp.zeros_like(a)
        is_outside = ~((slope >= outputs_like(low, s) * s) & (slope <= outputs_like(high, s) * s))
        between = xp.where(is_curved, (a - v) / root, zero)
        sizes = xp.where(is_curved, (xp.abs(v) + xp.abs(a)) / root, zero)
        return (
            norms(between),
            norms(sizes),
            norms(a / xp.sqrt(s)),
            norms(xp.astype(is_outside, a.dtype)),
        )

    vectors = problem.vectors
    between, sizes, size_a, outside = vectors.sum(
        lengths, a, evaluation.v, curved, problem.y, problem.weight, add=np.hypot
    )
    size_a, is_in_domain = np.sqrt(n) * size_a, outside == 0
    first = np.sqrt(loss.dual_growth) * between
    in_first = loss.smoothness**0.5 * in_z + 4 * UNIT_ROUNDOFF * sizes
    rest = norms(alpha * iterate.w + z_a)
    in_rest = norms(_error_of_correlation(inputs, size_a)) + 2 * UNIT_ROUNDOFF * alpha * norms(
        iterate.w
    )
    distance = np.where(is_in_domain, first / np.sqrt(alpha) + rest / alpha, np.inf)
    return distance, in_first / np.sqrt(alpha) + in_rest / alpha


def _distance_by_hessian(inputs, problem, iterate, g, in_g):
    """Return (distance, rounding) by the least curvature around the iterate; infinite where it
    gives no bound.

    g, in_g: the gradient, and the sizes of its errors.
    """
    # Margins that move by no more than a radius keep the least curvature within it; the radii are
    # tried in this order.
    tube_radii = (1e-3, 1e-5, 1e-7)

    found = np.full((2, len(g)), np.inf)
    has_bound = problem.loss.is_unimodal or problem.loss.is_self_concordant
    for tube in tube_radii if has_bound else ():
        h = _least_curvature(problem, iterate, tube)
        for k in np.flatnonzero(np.isinf(found[0])):
            found[:, k] = _distance_within(
                tube, inputs, problem, problem.vectors.output(h, k), g[k], in_g[k]
            )
        if np.isfinite(found).all():
            break
    return found


def _least_curvature(problem, iterate, tube):
    """Return the least h of each row within a tube around the margins z of the iterate, or a bound
    of it from below.

    A curvature that rises, then falls is least at an end, or at z where these round; any other one
    of a self-concordant loss falls at most by the factor e^-tube.
    """
    loss, n, b = problem.loss, problem.n_rows, iterate.b

    def answer(f, y, s):
        xp, z = namespace(f), f + outputs_like(b, f)
        if not loss.is_unimodal:
            return s * loss.curvature(z, y) / n * float(np.exp(-tube))
        low, middle, high = (s * loss.curvature(z + shift, y) / n for shift in (-tube, 0.0, tube))
        return xp.minimum(xp.minimum(low, middle), high)

    return problem.vectors.map(answer, iterate.f, problem.y, problem.weight)


@np.errstate(over="ignore")
def _distance_within(tube, inputs, problem, h, g, in_g):
    """Return (distance, rounding) of one output with the least curvature h in a tube around its
    margins.

    Inside, the Hessian is at least H = alpha I + Z' Pi diag(h) Pi Z, and that at least theta D, D
    the diagonal of H. So theta |D^1/2 dw|^2 <= -g'dw for dw on the way to w*, and |D^1/2 dw| <=
    |D^-1/2 g| / theta. If that moves no margin out of the tube, w* is inside; else the answer is
    infinite.
    """
    unknown = np.inf, np.inf
    H, before = inputs.weighted_gram(h, problem.fit_intercept)
    H.flat[:: len(H) + 1] += problem.alpha
    D = H.diagonal()
    if not (D > 0).all():
        return unknown
    theta = (
        np.linalg.eigvalsh(H / np.sqrt(D) / np.sqrt(D)[:, None])[0]
        - _error_of_sum(inputs.n_rows) * (1 + before / D).sum()
    )
    if theta <= 0:
        return unknown
    lengths = norms(np.vstack([g, in_g]) / np.sqrt(D))
    if not problem.loss.is_quadratic:
        length = lengths.sum()
        least_weight = float(
            problem.vectors.sum(lambda s: namespace(s).min(s), problem.weight, add=np.minimum)
        )
        moved = (
            2 * length / theta * np.sqrt(inputs.n_rows / least_weight * (inputs.sizes**2 / D).sum())
        )
        if problem.fit_intercept:
            moved = moved + length / np.sqrt(max(theta * float(problem.vectors.total(h)), 1e-300))
        if not moved < tube:
            return unknown
    return tuple(lengths / (theta * np.sqrt(D.min())))


def _error_of_sum(k):
    """Return the error of a sum of k products, relative to the sum of their sizes."""
    return PROBABLE * k**0.5 * UNIT_ROUNDOFF


def _error_of_margins(inputs, problem, iterate, evaluation):
    """Return the error of the margins z = f + b of each output, in the norm of margins.

    f is a sum of Z w of steps whose |w| add up to iterate.way, and |x_i'w - (x_i'w)^| is at most
    the error of a sum of d products times sum_j |x_ij| |w_j|, whose length over the rows is at most
    sum_j |x_j| |w_j|. b is as far from its best as Newton's step from it is long.
    """
    astray = np.abs(problem.intercept_step(evaluation.total, evaluation.slope))
    in_f = _error_of_sum(inputs.rows.longest_row + 2) * (iterate.way @ inputs.sizes_in_sums)
    return in_f + 2 * UNIT_ROUNDOFF * evaluation.size_z + astray


def _error_of_correlation(inputs, size):
    """Return the errors of the sums Z'v over the rows, for v of that size in the norm of dual
    points."""
    return _error_of_sum(inputs.n_rows) * np.outer(size, inputs.sizes_in_sums)
