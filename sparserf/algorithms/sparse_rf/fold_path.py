"""The paths of falling penalty on one fold: of terms that an l1 penalty chooses, and of linear
functions.

All targets (outputs, or classes) share terms phi_1, ..., phi_p and have weights of their own:

    z_k = b_k + sum_j w_kj phi_j,   F = (1/n) sum_i s_i L(z_1i, z_2i, ..., y_i) + penalty(w).

`L1Path` is Algorithm 1 of Yen et al. (2014), with a batch of draws for each penalty alpha:

    v_k = s L'(z_k) / n                           the gradient in the margins, of rows fitted
    draw features that follow the terms; g_k = phi' v_k
    the largest |g_k| above alpha become terms    (violators)
    for each k:  H = Phi diag(h) Phi', h = s L''(z_k) / n, on terms with w_k != 0 or |g_k| > alpha
                 minimise g'd + d'H d / 2 + alpha |w_k + d|_1, the intercept eliminated
                 (w_k, b_k, z_k) += t (d, ...), t = 1, 1/2, ... until F falls
    drop the terms without a weight

that is one Newton step a target and penalty: the next draws move the solution anyway. In
`RidgePath` the terms are the columns, and the penalty is on the squares of their weights. Rows are
in memory, those fitted first; Phi is kept, in float32 where features are bounded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.checks import is_sparse
from ..._base.progress import check_not_ended
from ..._base.threads import Workers
from ..._core.descent import descend, largest_violation
from ..._core.search import top_k
from ...features import FeatureSet, inputs_times
from ...rows.core_block import CoreBlock
from ...rows.memory import MemoryRows
from ...solvers.l1 import L1Problem
from ...solvers.l1_quadratic import newton_step
from ...solvers.multinomial import CLASS_VERSUS_REST
from ...solvers.problem import usable
from .folds import rows_within

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from ..._base.types import DenseOrCSR
    from ...features import FixedDictionary, LearningDictionary, RandomDictionary, RuleDictionary
    from ...features.dictionary import Dictionary
    from ...losses import Loss
    from ...model import FitInfo
    from ...rows import Rows
    from ..task import Progress, Task
    from .options import SparseRFOptions

    # The terms, their numbers, and the weights and intercepts of all targets, in units of y.
    State: TypeAlias = tuple[FeatureSet, np.ndarray, np.ndarray, np.ndarray]

# The most violators that enter at a penalty: so many, or this share of the terms.
ENTER, ENTER_PER_TERM = 100, 0.5
# An l1 problem is solved until this share of the violation is left, by at most so many rounds of
# epochs of coordinate descent, with a Newton step on the support between two.
LEAVES, ROUNDS, EPOCHS = 0.1, 10, 50
# The share where terms are fitted to all rows.
LEAVES_AT_LAST = 0.02
# A share of the diagonal of H that is added to it there.
DAMPING = 1e-6
# So many targets have rules grown at a penalty, in turn.
TARGETS_AT_ONCE = 2
# Curvatures are at least this share of the largest, so that the model of the loss has a minimum.
LEAST_CURVATURE = 1e-4
# On an l1 path the Hessian of a loss that is no square is of so many rows for each term, and of at
# least so many.
CURVED_A_TERM, FEWEST_CURVED = 8, 2_000
# The shortest step, as a share of Newton's.
SHORTEST = 1e-6
# Newton steps for each penalty on squares, where the loss is no square; a fall of the objective by
# less than this share of it ends them.
RIDGE_STEPS, RIDGE_FALL = 4, 1e-3
# Such a step by conjugate gradients ends where the residual is this share of the gradient, or after
# so many products with the Hessian.
CG_TOL, CG_STEPS = 0.03, 50
# A gradient below this share of the sum of |v| is rounding.
ROUNDING = 1e-12


class FoldPath(ABC):
    """Newton steps on terms that are kept, for rows in memory.

    features, index : the terms, and their numbers as draws
    phi : their values (p, n_rows), the n rows fitted first
    w, b, z : the weights (n_targets, p), the intercepts, and the margins (n_targets, n_rows), in
        the units of the targets
    rows, weight, s : the rows in that order, the weights of the n rows fitted, of mean 1, and these
        over n
    alpha : the penalty
    gram : the Gram matrix of the terms, of a square; None where it is not known
    """

    features: FeatureSet
    index: np.ndarray
    phi: np.ndarray
    n: int
    rows: Rows
    weight: np.ndarray
    s: np.ndarray
    alpha: float
    progress: Progress
    is_quadratic: bool
    w: np.ndarray
    b: np.ndarray
    z: np.ndarray
    gram: Square | None
    # The rows that the Hessian has for each term, where it is not the same everywhere.
    curved_a_term: float = np.inf
    # Whether terms are fitted to all rows.
    is_last: bool = False
    # The number of features that were drawn.
    n_drawn: int = 0

    def __init__(self, task: Task, options: SparseRFOptions, fitted: np.ndarray | None = None):
        """Begin at weights of 0.

        fitted : a mask of the rows that are fitted; the others are held out
        """
        n_rows, K = len(task.weight), len(task.targets)
        fitted = np.ones(n_rows, bool) if fitted is None else fitted & (task.weight > 0)
        self._order = np.argsort(~fitted, kind="stable")
        self.n = n = int(np.count_nonzero(fitted))
        some, X = self._order[:n], rows_within(task, fitted)
        self.rows = rows_on_one_thread(X if n == n_rows else X[self._order])
        self.weight = task.weight[some] / task.weight[some].mean()
        self.s, self._has_intercept = self.weight / n, options.fit_intercept
        self._targets = [task.target_of(y)[..., some] for y in task.targets]
        self._losses = [task.loss_of(y) for y in task.targets]
        self._units = np.array([task.unit(y) for y in task.targets])
        self.alpha, self._slope_units = np.inf, np.array([task.slope_unit(y) for y in task.targets])
        self.progress = task.progress(options.callback, task.targets[0])
        self._turns = Turns(self._targets, self.s) if task.is_joint else None
        self.is_quadratic = self._turns is None and self._losses[0].is_quadratic
        self.b = self._first_intercepts()
        self.z = np.repeat(self.b[:, None], n_rows, axis=1)
        self.w, self.gram = np.zeros((K, 0)), None

    @cached_property
    def fitted_rows(self) -> Rows:
        """The rows fitted."""
        if self.n == self.rows.n_rows:
            return self.rows
        return rows_on_one_thread(self.rows.array()[: self.n])

    def _first_intercepts(self):
        """Return the best intercepts without a term."""
        if self._turns is not None:
            return self._turns.first_intercepts() * self._has_intercept
        nothing, vectors = np.zeros(self.n), self.fitted_rows.vectors
        return np.array(
            [
                L1Problem(vectors, loss, y, self.weight, 0.0, self._has_intercept).best_intercept(
                    nothing, 0.0
                )
                for loss, y in zip(self._losses, self._targets, strict=True)
            ]
        )

    # The loss

    def slopes(self) -> np.ndarray:
        """Return s L'(z_k) / n of the rows fitted, (n_targets, n)."""
        z = self.z[:, : self.n]
        if self._turns is not None:
            return self._turns.slopes(z)
        pairs = zip(self._losses, z, self._targets, strict=True)
        return np.stack([self.s * loss.derivative(z, y) for loss, z, y in pairs])

    def loss(self) -> float:
        """Return the mean loss, added up over targets."""
        z = self.z[:, : self.n]
        if self._turns is not None:
            return self._turns.loss(z)
        pairs = zip(self._losses, z, self._targets, strict=True)
        return float(sum(self.s @ loss.value(z, y) for loss, z, y in pairs))

    def curvature(self, loss: Loss, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return s L''(z) / n, a little more where that is near 0."""
        if loss.is_quadratic:
            return self.s
        h = loss.curvature(z, y)
        most = h.max() or (loss.smoothness if np.isfinite(loss.smoothness) else 1.0)
        return self.s * np.maximum(h, LEAST_CURVATURE * most)

    def curvature_of(self, k: int) -> np.ndarray:
        """Return s L''(z_k) / n of target k."""
        z = self.z[k, : self.n]
        if self._turns is None:
            return self.curvature(self._losses[k], z, self._targets[k])
        p = self._turns.probability(self.z[:, : self.n], k)
        return self.s * np.maximum(p * (1 - p), LEAST_CURVATURE / 4)

    # Steps

    @abstractmethod
    def largest_alpha(self) -> float:
        """Return the least penalty at which all coefficients are zero, or nearly so."""

    @abstractmethod
    def turn_to(self, alpha: float, times: float = 1.0) -> None:
        """Fit with this penalty, from where the fit stands, with so many times the draws."""

    def sweep(self) -> float:
        """Make a Newton step of each target against the others; return the largest violation before
        them, as a share of the penalty."""
        worst = 0.0
        if self._turns is not None:
            self._turns.begin(self.z[:, : self.n])
        for k, alpha in enumerate(self.alpha / self._slope_units):
            check_not_ended()
            if self._turns is None:
                loss, y = self._losses[k], self._targets[k]
            else:
                loss, y = CLASS_VERSUS_REST, self._turns.target(k)
            worst = max(worst, self._step(k, alpha, loss, y) / alpha)
            if self._turns is not None:
                self._turns.end(k, self.z[k, : self.n])
        return worst

    def _step(self, k, alpha, loss, y):
        """Make the step of target k; return the largest violation before it."""
        n, z, w, phi = self.n, self.z[k], self.w[k], self.phi
        u, h = self.s * loss.derivative(z[:n], y), self.curvature(loss, z[:n], y)
        g = (phi[:, :n] @ u.astype(phi.dtype)).astype(np.float64)
        A = self._active(g, w, alpha)
        if len(A) < len(phi):
            phi, g = phi[A], g[A]
        if not loss.is_quadratic:  # the curvature of a part of the rows may do
            nth = max(1, int(n / max(FEWEST_CURVED, self.curved_a_term * max(len(A), 1))))
            some, h = phi[:, :n:nth], h[::nth] * nth
        else:
            some = phi[:, :n]
        self._total, H = h.sum(), self._hessian(A, some, h, loss.is_quadratic)
        m, total = (some @ h.astype(phi.dtype)).astype(np.float64), 0.0
        if self._has_intercept:
            total = h.sum()
            g -= m * (u.sum() / total)
        new, worst = self._minimise(H, m, total, g, w[A], alpha, A)
        d = new - w[A]
        db = -(u.sum() + m @ d) / total if self._has_intercept else 0.0
        self._move(k, alpha, loss, y, A, new, db, d.astype(phi.dtype) @ phi + db)
        return worst

    def _move(self, k, alpha, loss, y, A, new, db, change):
        """Go towards the weights `new` of the terms A as far as the objective falls.

        db, change : how the intercept and the margins change on the whole way
        """
        n, z, w = self.n, self.z[k], self.w[k, A]
        t, d = 1.0, new - w
        before = None if loss.is_quadratic else self.s @ loss.value(z[:n], y)
        while before is not None:
            value = self.s @ loss.value(z[:n] + t * change[:n], y)
            if value - before < self._penalty(w, alpha) - self._penalty(w + t * d, alpha):
                break
            t /= 2
            if t < SHORTEST:
                return
        self.w[k, A] = new if t == 1 else w + t * d
        self.b[k] += t * db
        self.z[k] += t * change

    def _hessian(self, A, phi, h, is_quadratic):
        """Return Phi diag(h) Phi' of the terms A; kept where h is always the same."""
        if not is_quadratic:
            rooted = phi * np.sqrt(h).astype(phi.dtype)
            return rooted @ rooted.T
        if self.gram is None:
            self.gram = Square(phi.dtype)
        done = self.gram.size
        if done < len(self.phi):
            every = self.phi[:, : self.n]
            self.gram.append((every[done:] * h.astype(phi.dtype)) @ every.T)
        H = self.gram.values
        return H if len(A) == len(H) else H[np.ix_(A, A)]

    @abstractmethod
    def _active(self, g, w, alpha):
        """Return the terms whose weights a step may change."""

    @abstractmethod
    def _minimise(self, H, m, total, g, w, alpha, A):
        """Return the minimiser of the quadratic model with the penalty, and the largest violation
        before."""

    @abstractmethod
    def _penalty(self, w, alpha):
        """Return the penalty of weights."""

    # What came of it

    def objective(self) -> float:
        """Return F, in the unit of the first target."""
        alphas = self.alpha / self._slope_units
        penalties = [
            self._penalty(w, alpha) for w, alpha in zip(self.w, alphas, strict=True) if w.any()
        ]
        return self.loss() + float(sum(penalties))

    def margins(self) -> np.ndarray:
        """Return the margins of each target at each row, (n_targets, n_rows), in the unit of the
        first target."""
        z = np.empty_like(self.z)
        z[:, self._order] = self.z * (self._units / self._units[0])[:, None]
        return z

    def state(self) -> State:
        """Return (terms, their numbers, weights, intercepts) in units of y."""
        return self.features, self.index, self.w * self._units[:, None], self.b * self._units

    @property
    def n_terms(self) -> int:
        """The number of terms."""
        return len(self.index)

    @property
    def ended(self) -> bool:
        """Whether a callback has ended the fit."""
        return self.progress.ended_by_callback

    def tell(self) -> None:
        """Call the user's callback."""
        self.progress.note(self.objective())
        self.progress.ask(self.info)

    def info(self, certified: bool = False) -> FitInfo:
        """Return the `FitInfo` of the present weights."""
        return self.progress.info(
            self.objective,
            np.inf,
            converged=True,
            n_drawn=self.n_drawn,
            n_nonzero=self.n_terms,
            alpha=self.alpha,
        )

    def solution(self) -> tuple[np.ndarray, FeatureSet, np.ndarray, np.ndarray | float]:
        """Return (index, features, w, b) of the terms, by ascending index, in units of y."""
        features, index, w, b = self.state()
        order = np.argsort(index)
        w, b = (w[0], float(b[0])) if len(w) == 1 else (w, b)
        return index[order], features.take(order), w[..., order], b


def rows_on_one_thread(X: DenseOrCSR) -> Rows:
    """Return the rows of a matrix in memory, on the thread that asks."""
    return MemoryRows(CoreBlock(X, Workers(1)))


class Turns:
    """The multinomial loss as a loss of one class after the other, in time O(n) each.

    Kept are, for each row, the sums of e^z over the classes behind each class, as they were at the
    start of a sweep; the same over the classes whose turn is over; and the margin of the row's own
    class.
    """

    def __init__(self, targets: list[np.ndarray], s: np.ndarray):
        self._targets, self._s = targets, s
        self._is_own = np.stack(targets) > 0
        self._label = self._is_own.argmax(axis=0)

    def first_intercepts(self) -> np.ndarray:
        """Return the logs of the shares of the classes, less their mean."""
        b = np.log(np.maximum(self._is_own @ self._s, 1e-9))
        return b - b.mean()

    def slopes(self, z: np.ndarray) -> np.ndarray:
        """Return s times the derivatives of the loss in all margins."""
        e = np.exp(z - z.max(axis=0))
        return self._s * (e / e.sum(axis=0) - self._is_own)

    def probability(self, z: np.ndarray, k: int) -> np.ndarray:
        """Return the probability of class k."""
        e = np.exp(z - z.max(axis=0))
        return e[k] / e.sum(axis=0)

    def loss(self, z: np.ndarray) -> float:
        """Return the sum of s times the loss."""
        top = z.max(axis=0)
        own = z[self._label, np.arange(len(top))]
        return float(self._s @ (np.log(np.exp(z - top).sum(axis=0)) + top - own))

    def begin(self, z: np.ndarray) -> None:
        """Begin a sweep at margins z."""
        self._top = z.max(axis=0)
        e = np.exp(z - self._top)
        self._behind = np.concatenate([e[::-1].cumsum(axis=0)[::-1][1:], np.zeros((1, len(e[0])))])
        self._before = np.zeros(len(self._top))
        self._own = z[self._label, np.arange(len(self._top))]

    def target(self, k: int) -> np.ndarray:
        """Return the target of the loss `CLASS_VERSUS_REST` of class k."""
        y, others = self._targets[k], np.maximum(self._before + self._behind[k], 1e-300)
        c = np.log(others) + self._top
        return np.stack([y, c, np.where(y > 0, 0.0, c - self._own)])

    def end(self, k: int, z: np.ndarray) -> None:
        """End the turn of class k, which has moved to margins z."""
        self._before += np.exp(np.minimum(z - self._top, 600.0))
        self._own = np.where(self._targets[k] > 0, z, self._own)


class Square:
    """A symmetric matrix that grows by doubling its place."""

    size: int

    def __init__(self, dtype: np.dtype):
        self._all, self.size = np.empty((64, 64), dtype), 0

    @property
    def values(self) -> np.ndarray:
        """The matrix."""
        return self._all[: self.size, : self.size]

    def append(self, new: np.ndarray) -> None:
        """Append rows, of the size that the matrix has with them."""
        old, p = self.size, new.shape[1]
        if p > len(self._all):
            more = np.empty((max(p, 2 * len(self._all)),) * 2, self._all.dtype)
            more[:old, :old] = self.values
            self._all = more
        self._all[old:p, :p], self._all[:old, old:p] = new, new[:, :old].T
        self.size = p

    def keep(self, kept: np.ndarray) -> None:
        """Keep these rows and columns."""
        kept_values = self.values[np.ix_(kept, kept)]
        self.size = len(kept)
        self.values[:] = kept_values


def centred(H: np.ndarray, m: np.ndarray, total: float) -> np.ndarray:
    """Return the Hessian with the intercept eliminated, a little more on its diagonal: terms that
    are the same keep their weights."""
    own = H.diagonal() * (1 + DAMPING)
    if total > 0:
        root = (m / np.sqrt(total)).astype(H.dtype)
        H = H - np.outer(root, root)
        own = np.maximum(own - root**2, DAMPING * own)
    else:
        H = H.copy()
    H[np.diag_indices_from(H)] = own
    return H


# Terms that an l1 penalty chooses


class L1Path(FoldPath):
    """A path of terms that an l1 penalty chooses among draws."""

    features: FeatureSet
    index: np.ndarray
    curved_a_term: float = CURVED_A_TERM

    def __init__(
        self,
        task: Task,
        dictionary: Dictionary,
        options: SparseRFOptions,
        k: int = 0,
        fitted: np.ndarray | None = None,
    ):
        """Begin without a term; k : the number of the fold."""
        super().__init__(task, options, fitted)
        self._draws: Draws = DRAWS_OF[dictionary.kind](self, dictionary, k)
        self.features = FeatureSet((), task.rows.n_features_in)
        self.index, self._nonnegative = np.zeros(0, np.intp), np.zeros(0, bool)
        self._values = np.empty((64, len(task.weight)), np.float32)

    @property
    def phi(self) -> np.ndarray:
        return self._values[: len(self.index)]

    def largest_alpha(self) -> float:
        _, features, g = self._draws.draw()
        g = np.abs(usable(g, features.nonnegative)).max(axis=1, initial=0.0)
        g[g <= ROUNDING * np.abs(self.slopes()).sum(axis=1)] = 0.0
        return float((self._slope_units * g).max())

    def turn_to(self, alpha: float, times: float = 1.0) -> None:
        """Draw, let violators in, and make a step of each target."""
        check_not_ended()
        self.alpha = alpha
        index, features, g = self._draws.draw(times)
        self.n_drawn += len(index)
        excess = np.abs(usable(g, features.nonnegative)) * (self._slope_units / alpha)[:, None]
        chosen = np.empty(self.most_to_enter, np.intp)
        chosen = np.sort(chosen[: top_k(excess.max(axis=0), 1.0, chosen)])
        self.enter(features.take(chosen), index[chosen])
        self.sweep()
        self._drop()

    @property
    def most_to_enter(self) -> int:
        """The most violators that enter at a penalty."""
        return max(ENTER, int(ENTER_PER_TERM * self.n_terms))

    def enter(self, features: FeatureSet, index: np.ndarray) -> None:
        """Add terms of weight 0."""
        p, end = self.n_terms, self.n_terms + len(index)
        if end == p:
            return
        if not all(block.is_bounded for block in features.blocks):
            self._values = self._values.astype(np.float64, copy=False)
            self.gram = None
        if end > len(self._values):
            more = np.empty((max(end, 2 * p), self._values.shape[1]), self._values.dtype)
            more[:p] = self.phi
            self._values = more
        self._values[p:end] = self.rows.transform(features).T
        self.features = self.features.concat(features)
        self.index = np.concatenate([self.index, index])
        self._nonnegative = self.features.nonnegative
        self.w = np.concatenate([self.w, np.zeros((len(self.w), len(index)))], axis=1)

    def _drop(self):
        """Drop the terms without a weight."""
        kept = np.flatnonzero(self.w.any(axis=0))
        if len(kept) == self.n_terms:
            return
        first = int(np.argmax(kept != np.arange(len(kept)))) if len(kept) else 0
        first = len(kept) if (kept == np.arange(len(kept))).all() else first
        self._values[first : len(kept)] = self._values[kept[first:]]
        if self.gram is not None:
            self.gram.keep(kept)
        self.features, self.index = self.features.take(kept), self.index[kept]
        self.w, self._nonnegative = self.w[:, kept], self._nonnegative[kept]

    def _active(self, g, w, alpha):
        return np.flatnonzero((w != 0) | (np.abs(usable(g, self._nonnegative)) > alpha))

    def _minimise(self, H, m, total, g, w, alpha, A):
        mask = self._nonnegative[A]
        mask, new, v, whole = mask if mask.any() else None, w.copy(), g.copy(), None
        H, first = centred(H, m, total), largest_violation(w, g, alpha, mask)
        enough = (LEAVES_AT_LAST if self.is_last else LEAVES) * first
        for k in range(ROUNDS):
            left = descend(H, new, v, alpha, EPOCHS, enough, mask)
            if left <= enough or k == ROUNDS - 1:
                break
            whole = H.astype(np.float64) if whole is None else whole
            newton_step(whole, new, v, alpha, mask)
            v = g + whole @ (new - w)
        return new, first

    def _penalty(self, w, alpha):
        return alpha * np.abs(w).sum()

    def fit_again(self, state: State, alpha: float, tol: float, most: int) -> None:
        """Fit the terms of another path, from its weights, until violations are at most this share
        of the penalty, or for so many steps."""
        features, index, w, b = state
        self.enter(features, index)
        self.w, self.b = w / self._units[:, None], b / self._units
        self.z = self.w.astype(self.phi.dtype) @ self.phi + self.b[:, None]
        self.alpha, self.is_last = alpha, True
        for _ in range(most):
            if self.sweep() <= tol:
                break
        self._drop()


class Draws(ABC):
    """Features that are drawn for a path."""

    @abstractmethod
    def __init__(self, path: L1Path, dictionary: Any, k: int):
        """Take the path, its dictionary, and the number of the fold."""

    @abstractmethod
    def draw(self, times: float = 1.0) -> tuple[np.ndarray, FeatureSet, np.ndarray]:
        """Return the numbers of the draws, the features, and their gradients (n_targets, n)."""


class CosineDraws(Draws):
    """Cosines that follow the terms, each turned to the phase at which the gradient of some target
    is largest: with C and S the correlations of v with the cosine and the sine, atan2(-S, C)."""

    def __init__(self, path: L1Path, dictionary: LearningDictionary, k: int):
        self._path, self._n = path, dictionary.n_components
        self._proposer = dictionary.proposer(k)

    def draw(self, times: float = 1.0) -> tuple[np.ndarray, FeatureSet, np.ndarray]:
        path = self._path
        strength = np.abs(path.w).sum(axis=0)
        start, features = self._proposer.batch(
            round(times * self._n), path.features, strength, path.index
        )
        C, S = path.fitted_rows.correlate_pair(features, path.slopes())
        best, place = np.hypot(C, S).argmax(axis=0), np.arange(len(features))
        turn = np.where(features.is_periodic, np.arctan2(-S[best, place], C[best, place]), 0.0)
        return start + place, features.turned(turn), C * np.cos(turn) - S * np.sin(turn)


class RuleDraws(Draws):
    """Rules that are grown along the gradient of a few targets in turn."""

    def __init__(self, path: L1Path, dictionary: RuleDictionary, k: int):
        K, few = len(path.w), min(len(path.w), TARGETS_AT_ONCE)
        trees = replace(dictionary.trees, n_trees=-(-dictionary.trees.n_trees // few))
        own = replace(dictionary, weight=path.weight, trees=trees)
        self._path, self._n, self._few = path, -(-dictionary.batch_size // few), few
        self._growers = [own.grower(k * K + j) for j in range(K)]
        self._next = 0

    def draw(self, times: float = 1.0) -> tuple[np.ndarray, FeatureSet, np.ndarray]:
        path, found = self._path, []
        V, K = path.slopes(), len(self._growers)
        turn, self._next = (self._next + np.arange(self._few)) % K, self._next + self._few
        for k in turn.tolist():
            own = self._n, path.fitted_rows, V[k], path.curvature_of(k)
            start, features, g = self._growers[k].batch(*own)
            found.append((start + np.arange(len(features)), features, g[None]))
        if len(found) == 1:
            return found[0]
        index, each, _ = zip(*found, strict=True)
        features = reduce(FeatureSet.concat, each)
        return np.concatenate(index), features, path.fitted_rows.correlate(features, V)


class GivenDraws(Draws):
    """The features of a fixed distribution, or those that the user gives: of each batch the ones
    with the largest gradients that are no terms yet."""

    def __init__(self, path: L1Path, dictionary: RandomDictionary | FixedDictionary, k: int):
        self._path, self._dictionary = path, dictionary

    def draw(self, times: float = 1.0) -> tuple[np.ndarray, FeatureSet, np.ndarray]:
        path, V, found = self._path, self._path.slopes(), []
        for k, start in enumerate(self._dictionary.starts[:-1].tolist()):
            check_not_ended()
            features = self._dictionary.batch(k)
            index = start + np.arange(len(features))
            g = path.fitted_rows.correlate(features, V)
            size = np.abs(usable(g, features.nonnegative)).max(axis=0)
            size[np.isin(index, path.index)] = -1.0
            largest = np.sort(np.argsort(-size, kind="stable")[: path.most_to_enter])
            largest = largest[size[largest] >= 0]
            found.append((index[largest], features.take(largest), g[:, largest]))
        index, each, gradients = zip(*found, strict=True)
        return np.concatenate(index), reduce(FeatureSet.concat, each), np.hstack(gradients)


# The draws of each kind of dictionary.
DRAWS_OF: dict[str, type[Draws]] = {
    "learned": CosineDraws,
    "grown": RuleDraws,
    "random": GivenDraws,
}


# Linear functions


class RidgePath(FoldPath):
    """Linear functions of all inputs, with a penalty alpha |w|^2 / 2 on their weights in units of
    the deviations of the inputs, and of the mean curvature."""

    features: FeatureSet
    index: np.ndarray

    def __init__(self, task: Task, options: SparseRFOptions, fitted: np.ndarray | None = None):
        super().__init__(task, options, fitted)
        X = self.rows.array()
        X, n = (X.toarray() if is_sparse(X) else X).astype(np.float64), self.n
        share = self.s / self.s.sum()
        self._mean = (share @ X[:n]) * self._has_intercept
        X -= self._mean
        deviation = np.sqrt(share @ X[:n] ** 2)
        is_constant = deviation <= 1e-7 * np.maximum(np.abs(self._mean), 1e-30)
        self._scale = np.where(is_constant, 0.0, 1 / np.where(is_constant, 1.0, deviation))
        X *= self._scale
        self._held = np.ascontiguousarray(X.T)
        self.features, self.index = inputs_times(np.ones(X.shape[1])), np.arange(X.shape[1])
        self.w = np.zeros((len(self.w), len(self._held)))

    @property
    def phi(self) -> np.ndarray:
        return self._held

    def largest_alpha(self) -> float:
        return max(1.0, len(self._scale) / self.n)

    def turn_to(self, alpha: float, times: float = 1.0) -> None:
        self.alpha, before = alpha, np.inf
        is_exact = self.is_quadratic and type(self) is RidgePath
        for _ in range(1 if is_exact else RIDGE_STEPS):
            self.sweep()
            now = self.objective()
            if now > (1 - RIDGE_FALL) * before:
                break
            before = now

    def _active(self, g, w, alpha):
        return np.arange(len(self._held))

    def _minimise(self, H, m, total, g, w, alpha, A):
        unit = alpha * self._slope_units[0]
        H = centred(H, m, total)
        self._unit = unit * max(self._total, 1e-300)
        H[np.diag_indices_from(H)] += self._unit
        return w - np.linalg.solve(H, g + self._unit * w), 0.0

    def _penalty(self, w, alpha):
        return 0.5 * self._unit * (w @ w)

    def state(self) -> State:
        w = self.w * self._scale
        b = self.b - w @ self._mean
        return self.features, self.index, w * self._units[:, None], b * self._units

    @property
    def n_terms(self) -> int:
        return len(self.w)


class WideRidgePath(RidgePath):
    """The same for many inputs, whose Gram matrix is never made: each Newton step by conjugate
    gradients, a product with the rows and one with their transpose each."""

    def __init__(self, task: Task, options: SparseRFOptions, fitted: np.ndarray | None = None):
        FoldPath.__init__(self, task, options, fitted)
        self._X, share = self.rows.array(), self.s / self.s.sum()
        X = self._X[: self.n]
        mean, squares = X.T @ share, (X.multiply(X) if is_sparse(X) else X * X).T @ share
        deviation = np.sqrt(np.maximum(squares - mean**2, 0.0))
        is_constant = deviation <= 1e-7 * np.maximum(np.abs(mean), 1e-30)
        if is_sparse(X):  # a rare entry says little, and keeps its unit
            deviation = np.full(len(deviation), np.sqrt(np.mean(deviation**2)) or 1.0)
        self._scale = np.where(is_constant, 0.0, 1 / np.where(is_constant, 1.0, deviation))
        self._mean, d = np.zeros(len(mean)), len(mean)
        self.features, self.index = inputs_times(np.ones(d)), np.arange(d)
        self.w = np.zeros((len(self.w), d))

    def _step(self, k, alpha, loss, y):
        n, z, w, X, scale = self.n, self.z[k], self.w[k], self._X, self._scale
        fitted = X[:n]
        u, h = self.s * loss.derivative(z[:n], y), self.curvature(loss, z[:n], y)
        total = h.sum()
        self._unit = alpha * self._slope_units[0] * max(total, 1e-300)
        m = scale * (fitted.T @ h) if self._has_intercept else np.zeros(len(w))

        def hessian(d):
            return (
                scale * (fitted.T @ (h * (fitted @ (scale * d))))
                - m * ((m @ d) / total)
                + self._unit * d
            )

        slope = u.sum() if self._has_intercept else 0.0
        g = scale * (fitted.T @ u) - m * (slope / total) + self._unit * w
        d = conjugate_gradients(hessian, -g, CG_TOL, CG_STEPS)
        db = -(slope + m @ d) / total
        self._move(k, alpha, loss, y, slice(None), w + d, db, X @ (scale * d) + db)
        return 0.0


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray], b: np.ndarray, tol: float, most: int
) -> np.ndarray:
    """Return x with product(x) near b, to this share of the length of b, after at most so many
    products."""
    x, r = np.zeros(len(b)), b.copy()
    p, length = r.copy(), r @ r
    enough = tol**2 * length
    for _ in range(most):
        if length <= enough:
            break
        check_not_ended()
        q = product(p)
        t = length / (p @ q)
        x, r = x + t * p, r - t * q
        p, length = r + (r @ r / length) * p, r @ r
    return x
