"""The ridge problem on a support:  minimise over w, b   (1/n) sum_i s_i L(phi_i'w + b, y_i) + 1/2 sum_j p_j w_j^2.

Newton's method, each step in the primal (Gram matrix, terms x terms) or in the dual (kernel matrix, rows x rows),
whichever is smaller. With the squared loss one step is the solution. p > 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import check_no_overflow, namespace, outputs_like
from .backtracking import backtrack
from .definite import solve_positive
from .problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import RowVector
    from ..features.feature_set import FeatureSet
    from ..rows.home import Rows

MAX_STEPS = 50
# A step that promises to lower the objective by less than this share of it is not worth taking.
NEGLIGIBLE = 1e-12


@dataclass(frozen=True, eq=False)
class Point:
    """Coefficients, intercept, f = Phi w, a row vector, and the objective there. Of several outputs w is (n_outputs, .)."""

    w: np.ndarray
    b: float | np.ndarray
    f: RowVector
    objective: float


@dataclass(frozen=True, eq=False)
class View:
    """What one pass over the rows tells of a point: f, the mean loss and, for its dual point v, the slopes of that.

    g : Phi' v of the features that were asked about; g_b : sum v
    hessian : None, or for the curvature h there (Phi' diag(h) Phi, Phi' h, sum h)
    """

    f: RowVector
    loss: float
    g: np.ndarray
    g_b: float | np.ndarray
    hessian: tuple[Any, ...] | None = None


class RidgeProblem(Problem):
    """The penalty is 1/2 sum_j p_j w_j^2, p = alpha r^2 for the scales r of the features."""

    def objective(self, z: RowVector, w: np.ndarray, p: float | np.ndarray) -> float:
        with np.errstate(over="ignore"):  # infinitely bad
            return self.penalised(self.mean_loss(z), w, p)

    def penalised(self, loss: float, w: np.ndarray, p: float | np.ndarray) -> float:
        """The objective of coefficients w with that mean loss."""
        with np.errstate(over="ignore"):
            return loss + 0.5 * float(np.sum((np.sqrt(p) * w) ** 2))

    def row_curvature(self, f: RowVector, b: float | np.ndarray) -> RowVector:
        """`curvature` as a row weight, (n_rows,): outputs that share a support share it."""

        def first(h):
            return namespace(h).reshape(h, (-1, h.shape[-1]))[0, ...]

        return self.vectors.map(first, self.curvature(self.margins(f, b)))

    def view(
        self, rows: Rows, features: FeatureSet, change: np.ndarray | None, f: RowVector, b: float | np.ndarray,
        asked: FeatureSet, curved: bool = False,
    ) -> View:  # fmt: skip
        """The `View` of f + Phi change and intercept b, with the slopes of the features `asked`; change None: of f.

        curved: with the Hessian of the features, which are those asked.
        """

        loss, dual, curvature = self.loss, self.dual_at(), self.curvature_at()

        def answer(block, f, y, s):
            xp, f = namespace(f), f if change is None else f + check_no_overflow(block.apply(features, change))
            with np.errstate(over="ignore"):  # infinitely bad
                z = f + outputs_like(b, f)
                losses = xp.sum(s * loss.value(z, y), axis=-1)
            v = dual(z, y, s)
            slopes = losses, xp.sum(v, axis=-1)
            if not curved:
                return f, (*slopes, block.correlate(asked, v))
            h = xp.reshape(curvature(z, y, s), (1, -1))
            both = block.correlate(asked, xp.concat([xp.reshape(v, (-1, h.shape[-1])), h]))
            return f, (*slopes, both, block.gram(features, features, h[0, ...]), xp.sum(h))

        f, (losses, g_b, g, *hessian) = rows.map_and_sum(answer, f, self.y, self.weight)
        if curved:
            g, m = check_no_overflow(g)[:-1].reshape(*np.shape(g_b), -1), g[-1]
            hessian = check_no_overflow(hessian[0]), m, float(hessian[1])
        return View(f, float(np.sum(losses / self.n_rows)), check_no_overflow(g), g_b, hessian if curved else None)

    def dual_value(self, u: RowVector, largest_squares: float, c: float = 1.0) -> float:
        """D <= P at c times the dual point, u = L'(z), where a w can use at most `largest_squares` = sum of g_j^2 / r_j^2."""
        most = min(float(largest_squares) / (2 * max(self.alpha, 1e-300)), 1e300)  # float: infinity without a warning
        return -self.mean_conjugate(u, c) - c * c * most

    def lower_bound(self, z: RowVector, squares: np.ndarray, s: int) -> float:
        """On the objective of any s features: sum of the s largest g_j^2 is all that a dual point can lose to w.

        Along c times the dual point the dual is concave in c; golden-section search.
        """
        largest, u = np.sort(squares)[max(0, len(squares) - s) :].sum(), self.derivative(z)
        golden = (5**0.5 - 1) / 2
        low, high, a, b = 0.0, 1.0, 1 - golden, golden
        at_a, at_b, best = (self.dual_value(u, largest, c) for c in (a, b, 0.0))
        for _ in range(20):
            best = max(best, at_a, at_b)
            if at_a < at_b:
                low, a, at_a = a, b, at_b
                b = low + golden * (high - low)
                at_b = self.dual_value(u, largest, b)
            else:
                high, b, at_b = b, a, at_a
                a = high - golden * (high - low)
                at_a = self.dual_value(u, largest, a)
        return max(best, at_a, at_b)


def best_constant(problem: RidgeProblem, n_outputs: int) -> Point:
    """The `Point` of no terms."""
    w, f = np.zeros((n_outputs, 0)), problem.vectors.zeros(n_outputs)
    b = problem.best_intercepts(f, np.zeros(n_outputs))
    return Point(w, b, f, problem.objective(problem.margins(f, b), w, problem.alpha))


def solve(
    problem: RidgeProblem, phi: Any, p: float | np.ndarray, w: np.ndarray, b: float, f: RowVector,
    change: np.ndarray | None = None,
) -> Point | None:  # fmt: skip
    """The `Point` of least objective, from (w, b), where Phi w is f, or f + Phi change.

    phi answers view(problem, change, f, b, curved), a `View`; and, where there are fewer rows than terms, correlate(v),
    apply(c) and kernel() = Phi diag(alpha / p) Phi'.
    """
    by = _by_gram if len(w) <= problem.n_rows else _by_kernel
    return by(problem, phi, p, w, b, f, change)


def _by_gram(problem, phi, p, w, b, f, change):
    """One pass over the rows a step.

    Promises fall quadratically in the end, as q, c q^2, c (c q^2)^2: where the next will be negligible, none is asked for.
    """
    view = phi.view(problem, change, f, b, curved=True)
    point, before = Point(w, b, view.f, problem.penalised(view.loss, w, p)), 0.0
    for _ in range(MAX_STEPS):
        if view is None:
            view = phi.view(problem, None, point.f, point.b, curved=True)
        d, e, promise = newton_step(problem, p, point.w, view)
        enough = NEGLIGIBLE * abs(point.objective)
        if not promise > enough:
            break
        is_last = promise**3 <= enough * before**2
        end, view = advance(problem, p, point, d, e, partial(phi.view, problem, curved=not is_last), is_last)
        if end is None:
            break
        point, before = end, promise
        if is_last and view is not None:
            break
    return point


def newton_step(
    problem: RidgeProblem, p: float | np.ndarray, w: np.ndarray, view: View
) -> tuple[np.ndarray, float | np.ndarray, float]:
    """`step` where the view holds the Hessian."""
    H, m, total = view.hessian
    H = H + np.outer(m, problem.followed(total, m))
    H.flat[:: len(m) + 1] += p
    return step(problem, partial(solve_positive, H), view.g + p * w, view.g_b, m, total)


def step(
    problem: RidgeProblem, solve: Callable[[np.ndarray], np.ndarray | None], g: np.ndarray, g_b: float | np.ndarray,
    m: np.ndarray, total: float,
) -> tuple[np.ndarray, float | np.ndarray, float]:  # fmt: skip
    """(d, e, what the quadratic model promises) of Newton's method, for the slopes g of the objective in w and g_b in b:

    [H + P, m; m', sum h] [d; e] = -[g; g_b], with e eliminated by `solve`. A promise of 0 where no number solves it.
    """
    slope, shift = problem.followed(total, m), problem.followed(total, g_b)
    d = solve(-(g + np.multiply.outer(shift, m)))
    if d is None:
        return np.zeros_like(g), np.zeros_like(shift), 0.0
    e = shift + d @ slope
    return d, e, -0.5 * float(np.sum(g * d) + np.sum(g_b * e))


def advance(
    problem: RidgeProblem, p: float | np.ndarray, start: Point, d: np.ndarray, e: float | np.ndarray,
    view_at: Callable[..., View], is_last: bool,
) -> tuple[Point | None, View | None]:  # fmt: skip
    """(the point a step on, what `view` has seen there); where that is no lower, (one between, None), or (None, None)."""
    view = view_at(d, start.f, start.b + e)
    end = Point(start.w + d, start.b + e, view.f, problem.penalised(view.loss, start.w + d, p))
    point = lower(problem, p, start, end, is_last)
    return point, view if point is end else None


def lower(problem: RidgeProblem, p: float | np.ndarray, start: Point, end: Point, is_last: bool = False) -> Point | None:
    """The end where it is lower than the start; or the first lower of 1/2, 1/4, ... of the way; None where none counts.

    is_last: the end, too, where it is the same but for rounding. Of the squared loss it is the lowest on the way.
    """
    rounding = NEGLIGIBLE * abs(start.objective)
    enough = start.objective - rounding
    if end.objective < enough or (is_last and end.objective <= start.objective + rounding):
        return end
    if problem.loss.is_quadratic:
        return None

    def point_at(t):
        w, b, f = start.w + t * (end.w - start.w), start.b + t * (end.b - start.b), problem.vectors.between(start.f, t, end.f)
        return Point(w, b, f, problem.objective(problem.margins(f, b), w, p))

    return backtrack(point_at, lambda point, t: point.objective < enough, t=0.5)[1]


def _by_kernel(problem, phi, p, w, b, f, change):
    """Of fewer rows than terms, whose vectors come here."""
    f = f if change is None else problem.vectors.along(f, 1, phi.apply(change))
    point = Point(w, b, f, problem.objective(problem.margins(f, b), w, p))
    for _ in range(MAX_STEPS):
        end = _dual_step(problem, phi, p, point)
        if end is None or problem.loss.is_quadratic:
            return end or point
        end = lower(problem, p, point, end)
        if end is None:
            break
        point = end
    return point


def _dual_step(problem, phi, p, point):
    K, vectors, z = phi.kernel(), problem.vectors, problem.margins(point.f, point.b)
    solved = solve_dual(problem, K, *map(vectors.fetch, (problem.dual_point(z), problem.curvature(z), point.f)))
    if solved is None:
        return None
    u, e = solved
    w, f = phi.correlate(vectors.put(u)) / (p / problem.alpha), vectors.put(K @ u)
    return Point(w, point.b + e, f, problem.objective(problem.margins(f, point.b + e), w, p))


def solve_dual(
    problem: RidgeProblem, K: np.ndarray, v: np.ndarray, h: np.ndarray, f: np.ndarray
) -> tuple[np.ndarray, float] | None:
    """w = R^-2 Phi' u with u = root q, root = sqrt(h):  (alpha I + root K root) q = root (f - e) - v / root,  sum u = 0.

    R^2 = P / alpha and K = Phi R^-2 Phi', so that Phi w = K u. Returns u and the step e of the intercept; None where no
    number solves it.
    """
    h = np.maximum(h, 1e-9 * np.abs(v))  # where the logistic loss is straight
    root = np.sqrt(h)
    M = root[:, None] * K
    M *= root
    M.flat[:: len(M) + 1] += problem.alpha
    rhs = root * f - np.divide(v, root, out=np.zeros_like(v), where=root > 0)
    solved = solve_positive(M, np.column_stack([rhs, root]))
    if solved is None:
        return None
    q, q_1 = solved.T
    e = (root @ q) / (root @ q_1) if problem.fit_intercept and root @ q_1 > 0 else 0.0
    return root * (q - e * q_1), e
