"""The path of an l1 member on one fold: Algorithm 1 of Yen et al. (2014), a batch a penalty.

All targets (outputs, or classes) share terms phi_1, ..., phi_p and have weights of their own:

    z_k = b_k + sum_j w_kj phi_j,   F = (1/n) sum_i s_i L(z_1i, z_2i, ..., y_i) + alpha sum |w_kj|.

For each penalty alpha, which falls from one to the next,

    v_k = s L'(z_k) / n                           the gradient in the margins, of rows fitted
    draw features that follow the terms; g_k = phi' v_k
    the largest |g_k| above alpha become terms    (violators)
    for each k:  H = Phi diag(s L''(z_k) / n) Phi' on the terms with w_k != 0 or |g_k| > alpha
                 minimise g'd + d'H d / 2 + alpha |w_k + d|_1, the intercept eliminated
                 (w_k, b_k, z_k) += t (d, ...), t = 1, 1/2, ... until F falls
    drop the terms without a weight

that is one Newton step a target and penalty: the next draws move the solution anyway. Rows are in
memory, of which those fitted come first; Phi is kept, in float32 where features are bounded.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from ..._base.progress import check_not_ended
from ..._core.descent import largest_violation
from ..._core.search import top_k
from ...features import FeatureSet, LearningDictionary
from ...solvers.l1 import L1Problem
from ...solvers.l1_quadratic import minimize
from ...solvers.multinomial import CLASS_VERSUS_REST
from ...solvers.problem import usable

if TYPE_CHECKING:
    from typing import TypeAlias

    from ...features import RuleDictionary
    from ...model import FitInfo
    from ...rows import Rows
    from ..task import Task
    from .options import SparseRFOptions

    # The terms, their numbers, and the weights and intercepts of all targets, in units of y.
    State: TypeAlias = tuple[FeatureSet, np.ndarray, np.ndarray, np.ndarray]

# The most violators that enter at a penalty: so many, or this share of the terms.
ENTER, ENTER_PER_TERM = 100, 0.5
# The l1 problem is solved until this share of the violation is left, or for so many epochs.
LEAVES, EPOCHS = 0.1, 100
# Curvatures are at least this share of the largest, so that the model of the loss has a minimum.
LEAST_CURVATURE = 1e-4
# The most numbers of Phi that are kept.
MOST_PHI = 2**28


class Draws:
    """Features that are drawn for a path, and their gradients."""

    def __init__(self, rows: Rows, weight: np.ndarray):
        """Take the rows that are fitted, and their weights."""
        self.rows, self.weight = rows, weight

    def draw(self, path: FoldPath) -> tuple[np.ndarray, FeatureSet, np.ndarray]:
        """Return the numbers of the draws, the features, and their gradients (n_targets, n)."""
        raise NotImplementedError


class CosineDraws(Draws):
    """Cosines that follow the terms, each turned to the phase at which some target's gradient is
    largest."""

    def __init__(self, rows: Rows, weight: np.ndarray, dictionary: LearningDictionary, k: int):
        super().__init__(rows, weight)
        self._n, self._proposer = dictionary.batch_size, dictionary.proposer(k)

    def draw(self, path: FoldPath) -> tuple[np.ndarray, FeatureSet, np.ndarray]:
        strength = np.abs(path.w).sum(axis=0)
        start, features = self._proposer.batch(self._n, path.features, strength, path.index)
        C, S = self.rows.correlate_pair(features, path.slopes())
        has_phase, place = features.is_periodic, np.arange(len(features))
        largest = np.hypot(C, S).argmax(axis=0)
        turn = np.where(has_phase, np.arctan2(-S[largest, place], C[largest, place]), 0.0)
        index = start + np.arange(len(features))
        return index, features.turned(turn), C * np.cos(turn) - S * np.sin(turn)


class RuleDraws(Draws):
    """Rules that are grown along the gradient of each target."""

    def __init__(self, rows: Rows, weight: np.ndarray, dictionary: RuleDictionary, k: int, n: int):
        super().__init__(rows, weight)
        trees = replace(dictionary.trees, n_trees=-(-dictionary.trees.n_trees // n))
        own = replace(dictionary, weight=weight, trees=trees)
        self._n = -(-dictionary.batch_size // n)
        self._growers = [own.grower(rows, k * n + each) for each in range(n)]

    def draw(self, path: FoldPath) -> tuple[np.ndarray, FeatureSet, np.ndarray]:
        V, found = path.slopes(), []
        for k, (grower, v) in enumerate(zip(self._growers, V, strict=True)):
            h = path.curvature(k)
            start, features, g = grower.batch(self._n, self.rows, v, h)
            found.append((start + np.arange(len(features)), features, g[None]))
        if len(found) == 1:
            return found[0]
        index, each, _ = zip(*found, strict=True)
        features = reduce(FeatureSet.concat, each)
        return np.concatenate(index), features, self.rows.correlate(features, V)


def draws_of(dictionary, rows, weight, k, n_targets):
    """Return the draws of fold k from a dictionary."""
    if isinstance(dictionary, LearningDictionary):
        return CosineDraws(rows, weight, dictionary, k)
    return RuleDraws(rows, weight, dictionary, k, n_targets)


class FoldPath:
    """The fits of falling penalty to one fold.

    features, index : the terms, and their numbers as draws
    w, b, z : the weights (n_targets, p), the intercepts, and the margins (n_targets, n_rows) of all
        rows, in the units of the targets
    """

    def __init__(
        self,
        task: Task,
        dictionary: LearningDictionary | RuleDictionary,
        options: SparseRFOptions,
        k: int = 0,
        fitted: np.ndarray | None = None,
    ):
        """Begin without a term.

        k : the number of the fold
        fitted : a mask of the rows that are fitted; the others are held out
        """
        n_rows = len(task.weight)
        fitted = np.ones(n_rows, bool) if fitted is None else fitted & (task.weight > 0)
        self._order = np.concatenate([np.flatnonzero(fitted), np.flatnonzero(~fitted)])
        self._n = n = int(fitted.sum())
        X, some = task.rows.array(), self._order[:n]
        X = X if (self._order == np.arange(n_rows)).all() else X[self._order]
        self._rows = task.rows.on_same_threads(X)
        rows = self._rows if n == n_rows else task.rows.on_same_threads(X[:n])
        weight = task.weight[some] / task.weight[some].mean()
        self._s, self._has_intercept = weight / n, options.fit_intercept
        self._losses = [task.loss_of(y) for y in task.targets]
        self._targets = [task.target_of(y)[..., some] for y in task.targets]
        self._units = np.array([task.unit(y) for y in task.targets])
        self._slope_units = np.array([task.slope_unit(y) for y in task.targets])
        self._is_joint, K = task.is_joint, len(task.targets)
        self._draws = draws_of(dictionary, rows, weight, k, K)
        self.progress = task.progress(options.callback, task.targets[0])
        self._n_features = task.rows.n_features_in
        self.features = FeatureSet((), self._n_features)
        self.index, self._n_drawn = np.zeros(0, np.intp), 0
        self._phi = np.zeros((0, n_rows), np.float32)
        self._gram = np.zeros((0, 0))
        self.w, self.b, self.alpha = np.zeros((K, 0)), np.zeros(K), np.inf
        vectors = rows.vectors
        if self._is_joint:
            share = np.array([self._s @ (y > 0) for y in self._targets])
            if self._has_intercept:
                self.b = np.log(np.maximum(share, 1e-9))
                self.b -= self.b.mean()
        else:
            for j, (loss, y) in enumerate(zip(self._losses, self._targets, strict=True)):
                problem = L1Problem(vectors, loss, y, weight, 0.0, self._has_intercept)
                self.b[j] = problem.best_intercept(np.zeros(n), 0.0)
        self.z = np.repeat(self.b[:, None], n_rows, axis=1)
        self._exp = None

    # The loss of one target

    def _own(self, k):
        """Return the loss of target k as a function of its own margins, and its target."""
        if not self._is_joint:
            return self._losses[k], self._targets[k]
        z = self.z[:, : self._n]
        if self._exp is None:
            self._top = z.max(axis=0)
            self._exp = np.exp(z - self._top)
            is_own = np.stack(self._targets) > 0
            self._own_class = is_own
        others = np.log(np.maximum(self._exp[:k].sum(axis=0) + self._exp[k + 1 :].sum(axis=0),
                                   1e-300)) + self._top
        t = np.where(self._own_class, z, 0.0).sum(axis=0)
        y = self._targets[k]
        return CLASS_VERSUS_REST, np.stack([y, others, np.where(y > 0, 0.0, others - t)])

    def slopes(self) -> np.ndarray:
        """Return s L'(z_k) / n of the rows fitted, (n_targets, n)."""
        if self._is_joint:
            z = self.z[:, : self._n]
            e = np.exp(z - z.max(axis=0))
            return self._s * (e / e.sum(axis=0) - (np.stack(self._targets) > 0))
        pairs = zip(self._losses, self.z[:, : self._n], self._targets, strict=True)
        return np.stack([self._s * loss.derivative(z, y) for loss, z, y in pairs])

    def curvature(self, k: int) -> np.ndarray:
        """Return s L''(z_k) / n of the rows fitted, a little more where that is near 0."""
        loss, y = self._own(k)
        return self._curvature(loss, y, self.z[k, : self._n])

    def _curvature(self, loss, y, z):
        if loss.is_quadratic:
            return self._s
        h = loss.curvature(z, y)
        most = h.max()
        if most <= 0:
            most = loss.smoothness if np.isfinite(loss.smoothness) else 1.0
        return self._s * np.maximum(h, LEAST_CURVATURE * most)

    # The path

    def largest_alpha(self) -> float:
        """Return the largest gradient of first draws: about the penalty of the first term."""
        _, features, g = self._draws.draw(self)
        g = np.abs(usable(g, features.nonnegative)).max(axis=1, initial=0.0)
        return float((self._slope_units * g).max())

    def turn_to(self, alpha: float) -> None:
        """Go to the next penalty: draw, let violators in, and make a step of each target."""
        check_not_ended()
        self.alpha = alpha
        index, features, g = self._draws.draw(self)
        alphas = alpha / self._slope_units
        excess = (np.abs(usable(g, features.nonnegative)) / alphas[:, None]).max(axis=0)
        most = max(ENTER, int(ENTER_PER_TERM * len(self.index)))
        chosen = np.empty(most, np.intp)
        chosen = np.sort(chosen[: top_k(excess, 1.0, chosen)])
        self._n_drawn += len(features)
        self.enter(features.take(chosen), index[chosen])
        for k, own in enumerate(alphas):
            check_not_ended()
            self.step(k, own)
        self._drop()
        self.progress.note(self.objective())
        self.progress.ask(self.info)

    def enter(self, features: FeatureSet, index: np.ndarray) -> None:
        """Add terms of weight 0."""
        if not len(index):
            return
        is_bounded = all(block.is_bounded for block in features.blocks)
        phi = self._rows.transform(features).T
        phi = np.ascontiguousarray(phi, np.float32 if is_bounded else np.float64)
        self.features = self.features.concat(features)
        self._phi = np.concatenate([self._phi, phi])
        self.index = np.concatenate([self.index, index])
        self.w = np.concatenate([self.w, np.zeros((len(self.w), len(index)))], axis=1)
        if self._losses[0].is_quadratic and not self._is_joint:
            n, p = self._n, len(self._gram)
            new = (phi[:, :n] * self._s.astype(phi.dtype)) @ self._phi[:, :n].T
            gram = np.empty((len(self._phi), len(self._phi)))
            gram[:p, :p], gram[p:], gram[:p, p:] = self._gram, new, new[:, :p].T
            self._gram = gram

    def _drop(self):
        """Drop the terms without a weight."""
        kept = np.flatnonzero(self.w.any(axis=0))
        if len(kept) == len(self.index):
            return
        self.features, self.index = self.features.take(kept), self.index[kept]
        self._phi, self.w = self._phi[kept], self.w[:, kept]
        if len(self._gram):
            self._gram = self._gram[np.ix_(kept, kept)]

    def step(self, k: int, alpha: float, leaves: float = LEAVES) -> float:
        """Make a Newton step of target k; return the largest violation before it."""
        n, (loss, y) = self._n, self._own(k)
        z, w = self.z[k, :n], self.w[k]
        u, h = self._s * loss.derivative(z, y), self._curvature(loss, y, z)
        nonnegative = self.features.nonnegative
        g = self._phi[:, :n] @ u.astype(self._phi.dtype)
        is_active = (w != 0) | (np.abs(usable(g, nonnegative)) > alpha)
        A = np.flatnonzero(is_active)
        phi, g, nonnegative = self._phi[A], g[A].astype(np.float64), nonnegative[A]
        if loss.is_quadratic:
            H = self._gram[np.ix_(A, A)]
        else:
            rooted = phi[:, :n] * np.sqrt(h).astype(phi.dtype)
            H = (rooted @ rooted.T).astype(np.float64)
        total, m = h.sum(), (phi[:, :n] @ h.astype(phi.dtype)).astype(np.float64)
        slope = u.sum()
        if self._has_intercept:
            H -= np.outer(m, m / total)
            g -= m * (slope / total)
        H[np.diag_indices_from(H)] *= 1 + 1e-6
        worst = largest_violation(w[A], g, alpha, nonnegative)
        new = minimize(H, g, w[A], alpha, leaves * worst, nonnegative=nonnegative)
        d = new - w[A]
        change = d.astype(phi.dtype) @ phi
        db = -(slope + m @ d) / total if self._has_intercept else 0.0
        change = change + db
        t = 1.0
        if not loss.is_quadratic:
            before = self._s @ loss.value(z, y) + alpha * np.abs(w[A]).sum()
            while t > 1e-6:
                after = self._s @ loss.value(z + t * change[:n], y)
                if after + alpha * np.abs(w[A] + t * d).sum() < before:
                    break
                t /= 2
            else:
                return worst
        self.w[k, A] = new if t == 1 else w[A] + t * d
        self.b[k] += t * db
        self.z[k] += t * change
        if self._is_joint:
            self._exp[k] = np.exp(np.minimum(self.z[k, :n] - self._top, 600))
            if k == len(self.w) - 1:
                self._exp = None
        return worst

    # All rows, at the end

    def adopt(self, state: State) -> None:
        """Start from the `state` of a fit to other rows."""
        features, index, w, b = state
        w, b = w / self._units[:, None], b / self._units
        self.enter(features, index)
        self.w, self.b, self._exp = w.copy(), b.copy(), None
        self.z = w.astype(self._phi.dtype) @ self._phi + b[:, None]

    def polish(self, alpha: float, tol: float, most: int) -> None:
        """Minimise over the terms alone, until violations are below this share of the penalty."""
        self.alpha = alpha
        for _ in range(most):
            alphas = alpha / self._slope_units
            check_not_ended()
            worst = [self.step(k, own, 0.05) / own for k, own in enumerate(alphas)]
            if max(worst) <= tol:
                break
        self._drop()

    # What came of it

    def objective(self) -> float:
        """Return F, in units of the first target."""
        n, total = self._n, 0.0
        if self._is_joint:
            z = self.z[:, :n]
            top = z.max(axis=0)
            own = np.where(np.stack(self._targets) > 0, z, 0.0).sum(axis=0)
            total = float(self._s @ (top + np.log(np.exp(z - top).sum(axis=0)) - own))
        else:
            pairs = zip(self._losses, self.z[:, :n], self._targets, strict=True)
            total = float(sum(self._s @ loss.value(z, y) for loss, z, y in pairs))
        if not np.isfinite(self.alpha):
            return total
        return total + float(self.alpha / self._slope_units @ np.abs(self.w).sum(axis=1))

    def margins(self) -> np.ndarray:
        """Return the margins of all rows, (n_targets, n_rows), in the units of the targets."""
        z = np.empty_like(self.z)
        z[:, self._order] = self.z
        return z

    def state(self) -> State:
        """Return (terms, their numbers, weights, intercepts) in units of y, which `adopt` takes."""
        return self.features, self.index, self.w * self._units[:, None], self.b * self._units

    @property
    def n_terms(self) -> int:
        """The number of terms."""
        return len(self.index)

    @property
    def ended(self) -> bool:
        """Whether a callback has ended the fit."""
        return self.progress.ended_by_callback

    def info(self, certified: bool = False) -> FitInfo:
        """Return the `FitInfo` of the present weights."""
        return self.progress.info(
            self.objective, np.inf, converged=True, n_drawn=self._n_drawn, n_nonzero=self.n_terms,
            alpha=self.alpha,
        )

    def solution(self):
        """Return (index, features, w, b) of the terms, by ascending index, in units of y."""
        order = np.argsort(self.index)
        features, index, w, b = self.state()
        w, b = w[:, order], b
        if len(w) == 1:
            w, b = w[0], float(b[0])
        return index[order], features.take(order), w, b
