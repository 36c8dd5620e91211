"""The ridge problem on a support:

    minimise over w, b   (1/n) sum_i s_i L(phi_i'w + b, y_i) + 1/2 sum_j p_j w_j^2,   p > 0.

Newton's method. Each step solves, for the slopes g and g_b of the objective in w and b,

    [Phi' diag(h) Phi + P, m; m', sum h] [d; e] = -[g; g_b],   m = Phi' h,   P = diag(p),

in the primal (terms x terms) or, where there are fewer rows than terms, in the dual (rows x rows).
With the squared loss one step is the solution. The quadratic model predicts by how much a step
lowers the objective; where the whole step does not lower it at all, it is halved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._base.arrays import check_no_overflow, namespace, outputs_like
from .cholesky import solve_positive
from .problem import Iterate, Problem, backtrack

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import RowVector
    from ..features import FeatureSet
    from ..rows import Rows

# The most Newton steps.
MAX_STEPS = 50
# A step whose predicted decrease is below this share of the objective is not taken.
LEAST_DECREASE = 1e-12


@dataclass(frozen=True, eq=False)
class LocalModel:
    """The mean loss at a point with its slopes there, and perhaps its Hessian, from one pass over
    the rows.

    f : row vector
        Phi w at the point.
    loss : float
        The mean loss.
    g : ndarray
        The slopes Phi' v of the mean loss in the coefficients of the features that were asked
        about, v the dual point.
    g_b : float, or ndarray of shape (n_outputs,)
        Its slope sum v in the intercept.
    hessian : None, or (Phi' diag(h) Phi, Phi' h, sum h) with the curvature h at the point
    """

    f: RowVector
    loss: float
    g: np.ndarray
    g_b: float | np.ndarray
    hessian: tuple[Any, ...] | None = None


class SupportFeatures(Protocol):
    """The features of a support as `solve` needs them; `kernel` is called only where there are
    fewer rows than terms."""

    def local_model(
        self,
        problem: RidgeProblem,
        change: np.ndarray | None,
        f: RowVector,
        b: float | np.ndarray,
        curved: bool = False,
    ) -> LocalModel:
        """Return the `LocalModel` at f + Phi change and intercept b; curved: with the Hessian."""
        ...

    def correlate(self, v: RowVector) -> np.ndarray:
        """Return Phi' v."""
        ...

    def apply(self, c: np.ndarray) -> RowVector:
        """Return Phi c."""
        ...

    def kernel(self) -> np.ndarray:
        """Return Phi diag(alpha / p) Phi', of shape (n_rows, n_rows)."""
        ...


class RidgeProblem(Problem):
    """A problem with the penalty 1/2 sum_j p_j w_j^2, where p_j = alpha r_j^2 for the norm r_j of a
    feature."""

    def objective(self, z: RowVector, w: np.ndarray, p: float | np.ndarray) -> float:
        """Return the objective at margins z and coefficients w; infinity where it overflows."""
        return self.penalised(self.mean_loss(z), w, p)

    def penalised(self, loss: float, w: np.ndarray, p: float | np.ndarray) -> float:
        """Return the objective of coefficients w where the mean loss is `loss`."""
        return loss + 0.5 * float(np.sum((np.sqrt(p) * w) ** 2))

    def row_curvature(self, f: RowVector, b: float | np.ndarray) -> RowVector:
        """Return `curvature` at f + b as row weights of shape (n_rows,); for several outputs, of
        the first."""

        def first(h):
            return namespace(h).reshape(h, (-1, h.shape[-1]))[0, ...]

        return self.vectors.map(first, self.curvature(self.margins(f, b)))

    def local_model(
        self,
        rows: Rows,
        features: FeatureSet,
        change: np.ndarray | None,
        f: RowVector,
        b: float | np.ndarray,
        asked: FeatureSet,
        curved: bool = False,
    ) -> LocalModel:
        """Return the `LocalModel` at f + Phi change and intercept b, in one pass over the rows;
        change None: at f.

        asked: the features in whose coefficients to compute slopes
        curved: whether to compute the Hessian of the features, which then are those asked
        """
        loss, n = self.loss, self.n_rows  # these, and not the problem itself, travel to the rows

        def answer(block, f, y, s):
            xp = namespace(f)
            f = f if change is None else f + check_no_overflow(block.apply(features, change))
            z = f + outputs_like(b, f)
            losses = xp.sum(s * loss.value(z, y), axis=-1)
            v = s * loss.derivative(z, y) / n  # the dual point
            slopes = losses, xp.sum(v, axis=-1)
            if not curved:
                return f, (*slopes, block.correlate(asked, v))
            h = xp.reshape(s * loss.curvature(z, y) / n, (1, -1))
            both = block.correlate(asked, xp.concat([xp.reshape(v, (-1, h.shape[-1])), h]))
            return f, (*slopes, both, block.gram(features, features, h[0, ...]), xp.sum(h))

        f, (losses, g_b, g, *hessian) = rows.map_and_sum(answer, f, self.y, self.weight)
        if curved:
            g, m = check_no_overflow(g)[:-1].reshape(*np.shape(g_b), -1), g[-1]
            hessian = check_no_overflow(hessian[0]), m, float(hessian[1])
        return LocalModel(
            f, float(np.sum(losses / n)), check_no_overflow(g), g_b, hessian if curved else None
        )

    def dual_value(self, u: RowVector, largest_squares: float, c: float = 1.0) -> float:
        """Return the dual objective, at most the primal one, at c times the dual point of
        derivatives u = L'(z).

        largest_squares: sum of g_j^2 / r_j^2 over the features that a w may use, at most
        """
        # float: infinity without a warning
        most = min(float(largest_squares) / (2 * max(self.alpha, 1e-300)), 1e300)
        return -self.mean_conjugate(u, c) - c * c * most

    def lower_bound(self, z: RowVector, squares: np.ndarray, s: int) -> float:
        """Return a lower bound on the objective of every model of at most s features.

        Of any s features, the sum of g_j^2 / r_j^2 is at most that of the s largest, which
        `dual_value` takes. It is concave in the multiple c of the dual point: golden-section search
        over c in [0, 1].

        squares: g_j^2 / r_j^2 of all features, for the slopes g at margins z
        """
        # The number of steps of the search, each of which shrinks the bracket to 0.618 of its
        # length.
        search_steps = 20

        largest, u = np.sort(squares)[max(0, len(squares) - s) :].sum(), self.derivative(z)
        golden = (5**0.5 - 1) / 2
        low, high, a, b = 0.0, 1.0, 1 - golden, golden
        at_a, at_b = self.dual_value(u, largest, a), self.dual_value(u, largest, b)
        best = self.dual_value(u, largest, 0.0)
        for _ in range(search_steps):
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


def best_constant(problem: RidgeProblem, n_outputs: int) -> Iterate:
    """Return the best model without terms."""
    w, f = np.zeros((n_outputs, 0)), problem.vectors.zeros(n_outputs)
    b = problem.best_intercepts(f, np.zeros(n_outputs))
    return Iterate(w, b, f, problem.objective(problem.margins(f, b), w, problem.alpha))


def solve(
    problem: RidgeProblem,
    phi: SupportFeatures,
    p: float | np.ndarray,
    w: np.ndarray,
    b: float,
    f: RowVector,
    change: np.ndarray | None = None,
) -> Iterate:
    """Return the iterate of least objective, starting from (w, b), where Phi w is f, or f + Phi
    change."""
    if len(w) <= problem.n_rows:
        return _solve_primal(problem, phi, p, w, b, f, change)
    return _solve_dual(problem, phi, p, w, b, f, change)


def _solve_primal(problem, phi, p, w, b, f, change):
    """Return the solution by Newton's method with the Gram matrix; each step takes one pass over
    the rows.

    Predicted decreases fall quadratically in the end, as q, c q^2, c (c q^2)^2: where the next one
    will be negligible, this step is the last, and no Hessian is computed at its end.
    """
    model = phi.local_model(problem, change, f, b, curved=True)
    here, before = Iterate(w, b, model.f, problem.penalised(model.loss, w, p)), 0.0
    for _ in range(MAX_STEPS):
        if model is None:
            model = phi.local_model(problem, None, here.f, here.b, curved=True)
        d, e, predicted_decrease = newton_step(problem, p, here.w, model)
        enough = LEAST_DECREASE * abs(here.objective)
        if not predicted_decrease > enough:
            break
        is_last = predicted_decrease**3 <= enough * before**2
        end, model = move_along_step(
            problem, p, here, d, e, partial(phi.local_model, problem, curved=not is_last), is_last
        )
        if end is None:
            break
        here, before = end, predicted_decrease
        if is_last and model is not None:
            break
    return here


def newton_step(
    problem: RidgeProblem, p: float | np.ndarray, w: np.ndarray, model: LocalModel
) -> tuple[np.ndarray, float | np.ndarray, float]:
    """Return (d, e, predicted_decrease): the Newton step from w of a local model with its Hessian,
    as `solve_with_intercept`."""
    H, m, total = model.hessian
    H = H + np.outer(m, problem.intercept_response(total, m)) if problem.fit_intercept else H.copy()
    H.flat[:: len(m) + 1] += p
    return solve_with_intercept(
        problem, partial(solve_positive, H), model.g + p * w, model.g_b, m, total
    )


def solve_with_intercept(
    problem: RidgeProblem,
    solve_terms: Callable[[np.ndarray], np.ndarray | None],
    g: np.ndarray,
    g_b: float | np.ndarray,
    m: np.ndarray,
    total: float,
) -> tuple[np.ndarray, float | np.ndarray, float]:
    """Return (d, e, predicted_decrease): the Newton steps in w and b, and the decrease of the
    objective by the quadratic model.

    [H + P, m; m', sum h] [d; e] = -[g; g_b], with e eliminated. All are 0 where the system has no
    finite solution.

    solve_terms : a function of a right-hand side, the solution of the system of d alone; None where
        it has none
    g, g_b : slopes of the objective in w and b
    m, total : Phi' h and sum h
    """
    slope, shift = problem.intercept_response(total, m), problem.intercept_response(total, g_b)
    d = solve_terms(-(g + np.multiply.outer(shift, m)))
    if d is None:
        return np.zeros_like(g), np.zeros_like(shift), 0.0
    e = shift + d @ slope
    return d, e, -0.5 * float(np.sum(g * d) + np.sum(g_b * e))


def move_along_step(
    problem: RidgeProblem,
    p: float | np.ndarray,
    start: Iterate,
    d: np.ndarray,
    e: float | np.ndarray,
    model_at: Callable[..., LocalModel],
    is_last: bool,
) -> tuple[Iterate | None, LocalModel | None]:
    """Return (the iterate after the step (d, e), the local model there).

    Where the whole step does not lower the objective, return (a lower iterate on the way, None), or
    (None, None) if none is.

    model_at : a function of (d, f, b), the `LocalModel` at f + Phi d and intercept b
    """
    model = model_at(d, start.f, start.b + e)
    end = Iterate(start.w + d, start.b + e, model.f, problem.penalised(model.loss, start.w + d, p))
    found = lower(problem, p, start, end, is_last)
    return found, model if found is end else None


def lower(
    problem: RidgeProblem,
    p: float | np.ndarray,
    start: Iterate,
    end: Iterate,
    is_last: bool = False,
) -> Iterate | None:
    """Return the end if it is lower than the start, else the first lower one of 1/2, 1/4, ... of
    the way; None if none is.

    With the squared loss nothing between is lower than the end. is_last: whether an end that is the
    same but for rounding counts as lower.
    """
    rounding = LEAST_DECREASE * abs(start.objective)
    enough = start.objective - rounding
    if end.objective < enough or (is_last and end.objective <= start.objective + rounding):
        return end
    if problem.loss.is_quadratic:
        return None

    def iterate_at(t):
        w = start.w + t * (end.w - start.w)
        b = start.b + t * (end.b - start.b)
        f = problem.vectors.between(start.f, t, end.f)
        return Iterate(w, b, f, problem.objective(problem.margins(f, b), w, p))

    return backtrack(iterate_at, lambda there, t: there.objective < enough, t=0.5)[1]


def _solve_dual(problem, phi, p, w, b, f, change):
    """Return the solution by Newton's method with the kernel matrix, for fewer rows than terms; row
    vectors are fetched."""
    vectors = problem.vectors
    f = f if change is None else vectors.along(f, 1, phi.apply(change))
    here = Iterate(w, b, f, problem.objective(problem.margins(f, b), w, p))
    for _ in range(MAX_STEPS):
        K, z = phi.kernel(), problem.margins(here.f, here.b)
        solved = solve_dual(
            problem, K, *map(vectors.fetch, (problem.dual_point(z), problem.curvature(z), here.f))
        )
        if solved is None:
            break
        u, e = solved
        w, f = phi.correlate(vectors.put(u)) / (p / problem.alpha), vectors.put(K @ u)
        end = Iterate(w, here.b + e, f, problem.objective(problem.margins(f, here.b + e), w, p))
        if problem.loss.is_quadratic:
            return end
        end = lower(problem, p, here, end)
        if end is None:
            break
        here = end
    return here


def solve_dual(
    problem: RidgeProblem, K: np.ndarray, v: np.ndarray, h: np.ndarray, f: np.ndarray
) -> tuple[np.ndarray, float] | None:
    """Return (u, e) of a Newton step in the dual: w = R^-2 Phi' u, so that Phi w = K u, and the
    step e of the intercept.

    With R^2 = P / alpha, K = Phi R^-2 Phi', root = sqrt(h) and u = root q, it solves

        (alpha I + root K root) q = root (f - e) - v / root,   sum u = 0.

    None where the system has no finite solution.

    v, h : the dual point and the curvature at f
    """
    h = np.maximum(h, 1e-9 * np.abs(v))  # where the logistic loss is nearly linear, h may be 0
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
