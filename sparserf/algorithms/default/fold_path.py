"""A path of falling penalty on one fold: Newton steps on terms whose values are kept.

All targets (outputs, or classes) share terms phi_1, ..., phi_p and have weights of their own:

    z_k = b_k + sum_j w_kj phi_j,   F = (1/n) sum_i s_i L(z_1i, z_2i, ..., y_i) + penalty(w).

Which terms there are, and the penalty, say `L1Path` (l1_path.py) and `RidgePath` (ridge_path.py).
Rows are in memory, those fitted first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.progress import check_not_ended
from ...features import FeatureSet
from ...rows.vectors import HostVectors
from ...solvers.l1 import L1Problem
from ...solvers.multinomial import CLASS_VERSUS_REST
from ...solvers.problem import backtrack
from .softmax_by_class import SoftmaxByClass

if TYPE_CHECKING:
    from typing import TypeAlias

    from ...losses import Loss
    from ...model import FitInfo
    from ..fit_progress import Progress
    from ..sparse_rf.options import SparseRFOptions
    from ..task import Task
    from .term_values import Curvature, TermValues

    # The terms, their numbers, and the weights and intercepts of all targets, in units of y.
    State: TypeAlias = tuple[FeatureSet, np.ndarray, np.ndarray, np.ndarray]

# Curvatures are at least this share of the largest, so that the model of the loss has a minimum.
LEAST_CURVATURE = 1e-4
# A share of the diagonal of the Hessian that is added to it.
DAMPING = 1e-6
# The shortest step, as a share of Newton's.
SHORTEST = 1e-6
# Rows of a Gram matrix that are made at a time.
PART = 512


class FoldPath(ABC):
    """Newton steps on terms that are kept, for rows in memory.

    features, index : the terms, and their numbers as draws
    values : their values at the rows, the n rows fitted first
    fitted_rows : the rows fitted, or their bins, along which a path draws
    w, b, z : the weights (n_targets, p), the intercepts, and the margins (n_targets, n_rows), in
        the units of the targets
    share : the share of the weight of all rows that those fitted have
    weight, s : the weights of the n rows fitted, of mean 1, and these over n
    alpha : the penalty
    gram : the Gram matrix of the terms, of a square; None where it is not known
    """

    features: FeatureSet
    index: np.ndarray
    values: TermValues
    fitted_rows: Any
    n: int
    share: float
    weight: np.ndarray
    s: np.ndarray
    alpha: float
    progress: Progress
    is_quadratic: bool
    w: np.ndarray
    b: np.ndarray
    z: np.ndarray
    gram: np.ndarray | None
    # Whether terms are fitted to all rows.
    is_last: bool = False
    # The number of features that were drawn for this fold, and of those that all folds share.
    n_drawn: int = 0
    n_shared: int = 0

    def __init__(
        self,
        task: Task,
        options: SparseRFOptions,
        fitted: np.ndarray | None = None,
        told: tuple[np.ndarray, float] | None = None,
    ):
        """Begin at weights of 0.

        fitted : a mask of the rows that are fitted; the others are held out
        told : the places of the rows whose margins are asked for, and the unit of these; None: all,
            in the unit of the first target
        """
        n_rows, K = len(task.weight), len(task.targets)
        fitted = np.ones(n_rows, bool) if fitted is None else fitted & (task.weight > 0)
        self._order = np.argsort(~fitted, kind="stable")
        self.n = n = int(np.count_nonzero(fitted))
        some = self._order[:n]
        self.share = float(task.weight[some].sum() / task.weight.sum())
        self.weight = task.weight[some] / task.weight[some].mean()
        self.s, self._has_intercept = self.weight / n, options.fit_intercept
        self._targets = [task.target_of(y)[..., some] for y in task.targets]
        self._losses = task.losses
        self._units = np.array([task.unit(y) for y in task.targets])
        self.alpha, self._slope_units = np.inf, np.array([task.slope_unit(y) for y in task.targets])
        self.progress = task.progress(options.callback, task.targets[0])
        self._turns = SoftmaxByClass(self._targets, self.s) if task.is_joint else None
        self.is_quadratic = self._turns is None and self._losses[0].is_quadratic
        self.b = self._first_intercepts()
        self.z = np.repeat(self.b[:, None], n_rows, axis=1)
        self.w, self.gram = np.zeros((K, 0)), None
        self._told = told or (np.arange(n_rows), self._units[0])

    def _first_intercepts(self):
        """Return the best intercepts without a term."""
        if self._turns is not None:
            return self._turns.first_intercepts() * self._has_intercept
        nothing, vectors = np.zeros(self.n), HostVectors(self.n)
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

    @property
    def _alphas(self):
        """The penalty of each target, in its own units."""
        return self.alpha / self._slope_units

    @abstractmethod
    def largest_alpha(self) -> float:
        """Return the least penalty at which all coefficients are zero, or nearly so."""

    @abstractmethod
    def fit_at(self, alpha: float, times: float = 1.0) -> None:
        """Fit with this penalty, from where the fit stands, with so many times the draws."""

    def sweep(self) -> float:
        """Make a Newton step of each target against the others; return the largest violation before
        them, as a share of the penalty."""
        worst = 0.0
        if self._turns is not None:
            self._turns.begin_sweep(self.z[:, : self.n])
        for k, alpha in enumerate(self._alphas):
            check_not_ended()
            if self._turns is None:
                loss, y = self._losses[k], self._targets[k]
            else:
                loss, y = CLASS_VERSUS_REST, self._turns.target(k)
            worst = max(worst, self._step(k, alpha, loss, y) / alpha)
            if self._turns is not None:
                self._turns.end_turn(k, self.z[k, : self.n])
        return worst

    def _step(self, k, alpha, loss, y):
        """Make the step of target k; return the largest violation before it."""
        n, z, w, values = self.n, self.z[k], self.w[k], self.values
        u, h = self.s * loss.derivative(z[:n], y), self.curvature(loss, z[:n], y)
        g = values.correlate(u)
        A = self._active(g, w, alpha)
        curvature = values.of_model(h, loss.is_quadratic)
        self._total, H = curvature.h.sum(), self._hessian(A, curvature, loss.is_quadratic)
        m, g, total = values.correlate(curvature.h)[A], g[A], 0.0
        if self._has_intercept:
            total = self._total
            g -= m * (u.sum() / total)
        new, worst = self._minimise(k, H, m, total, g, w[A], alpha, A)
        # A model has no minimum where its Hessian is rounding: where one row has nearly all of the
        # curvature, which the intercept takes, or curvatures overflow single precision. Which such
        # models the damping is too little for is rounding, too: the descent alone tells.
        if not np.isfinite(new).all():
            return worst
        d = np.zeros(len(w))
        d[A] = new - w[A]
        db = -(u.sum() + m @ d[A]) / total if self._has_intercept else 0.0
        self._move(k, alpha, loss, y, A, new, db, values.apply(d) + db)
        return worst

    def _move(self, k, alpha, loss, y, A, new, db, change):
        """Go towards the weights `new` of the terms A as far as the objective falls.

        db, change : how the intercept and the margins change on the whole way
        """
        n, z, w, t = self.n, self.z[k], self.w[k, A], 1.0
        d = new - w
        if not loss.is_quadratic:
            before = self.s @ loss.value(z[:n], y)
            t, _ = backtrack(
                lambda t: self.s @ loss.value(z[:n] + t * change[:n], y) - before,
                lambda rise, t: rise < self._penalty(w, alpha) - self._penalty(w + t * d, alpha),
                shortest=SHORTEST,
            )
        if t == 0:
            return
        self.w[k, A] = new if t == 1 else w + t * d
        self.b[k] += t * db
        self.z[k] += t * change

    def _hessian(self, A, curvature, is_quadratic):
        """Return Phi diag(h) Phi' of the terms A, to be changed; where h is always the same, that
        of all terms is kept."""
        if not is_quadratic:
            return self.values.gram(curvature, A)
        if self.gram is None:
            self.gram = np.empty((0, 0), self.values.dtype)
        if len(self.gram) < len(self.values):
            self.gram = gram_with_new(self.gram, self.values, curvature)
        return self.gram[np.ix_(A, A)] if len(A) < len(self.gram) else self.gram.copy()

    @abstractmethod
    def _active(self, g, w, alpha):
        """Return the terms whose weights a step may change."""

    @abstractmethod
    def _minimise(self, k, H, m, total, g, w, alpha, A):
        """Return the minimiser of the quadratic model of target k with the penalty, and the largest
        violation before."""

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
        """Return the margins of each target at each row that was asked for, (n_targets, n_told)."""
        place, unit = self._told
        at = np.empty(len(self._order), np.intp)
        at[self._order] = np.arange(len(at))
        return self.z[:, at[place]] * (self._units / unit)[:, None]

    def state(self) -> State:
        """Return (terms, their numbers, weights, intercepts) in units of y."""
        return self.features, self.index, self.w * self._units[:, None], self.b * self._units

    @property
    def n_terms(self) -> int:
        """The number of terms."""
        return len(self.index)

    def report(self) -> bool:
        """Call the user's callback; return whether it has ended the fit."""
        self.progress.note(self.objective())
        return self.progress.ask(self.info)

    def info(self, certified: bool = False) -> FitInfo:
        """Return the `FitInfo` of the present weights."""
        return self.progress.info(
            self.objective,
            np.inf,
            converged=True,
            n_drawn=self.n_shared + self.n_drawn,
            n_nonzero=self.n_terms,
            alpha=self.alpha,
        )

    def solution(self) -> tuple[np.ndarray, FeatureSet, np.ndarray, np.ndarray | float]:
        """Return (index, features, w, b) of the terms, by ascending index, in units of y."""
        features, index, w, b = self.state()
        order = np.argsort(index)
        w, b = (w[0], float(b[0])) if len(w) == 1 else (w, b)
        return index[order], features.take(order), w[..., order], b


def gram_with_new(G: np.ndarray, values: TermValues, curvature: Curvature) -> np.ndarray:
    """Return the Gram matrix of all terms, of which G is that of the first."""
    old, p = len(G), len(values)
    out = np.empty((p, p), G.dtype)
    out[:old, :old] = G
    for start in range(old, p, PART):
        end = min(start + PART, p)
        out[start:end, :end] = values.gram_rows(curvature, start, end)
        out[:start, start:end] = out[start:end, :start].T
    return out


def eliminate_intercept(H: np.ndarray, m: np.ndarray, total: float) -> None:
    """Turn a Hessian into that of the best intercept, in place, with a little more on its diagonal:
    terms that are the same keep their weights."""
    own = H.diagonal() * (1 + DAMPING)
    if total > 0:
        root = (m / np.sqrt(total)).astype(H.dtype)
        for start in range(0, len(H), PART):
            H[start : start + PART] -= np.multiply.outer(root[start : start + PART], root)
        own = np.maximum(own - root**2, DAMPING * own)
    H.flat[:: len(H) + 1] = own
