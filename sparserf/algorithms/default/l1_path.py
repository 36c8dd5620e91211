"""Terms that an l1 penalty chooses among draws, on one fold.

Algorithm 1 of Yen et al. (2014), with a batch of draws for each penalty alpha:

    v_k = s L'(z_k) / n                           the gradient in the margins, of rows fitted
    draw features that follow the terms; g_k = phi' v_k
    the largest |g_k| above alpha become terms    (violators)
    for each k:  H = Phi diag(h) Phi', h = s L''(z_k) / n, on terms with w_k != 0 or |g_k| > alpha
                 minimise g'd + d'H d / 2 + alpha |w_k + d|_1, the intercept eliminated
                 (w_k, b_k, z_k) += t (d, ...), t = 1, 1/2, ... until F falls
    drop the terms without a weight

that is one Newton step a target and penalty: the next draws move the solution anyway. Phi is kept
(`term_values.py`): of rules in bits, else in float32 where features are bounded.

The fit of Algorithm 1 (`sparse_rf/descent.py`) has the same rule of entering, the same phases of
cosines, and the same descent on a quadratic model, but no common working set. That fit ends at a
certified duality gap and makes its features again in each pass; a path makes one step at each
penalty and predicts the rows held out there. On the working set of that fit the default took 1.29
times the CPU time with values kept in double precision, and 1.13 times in tiles, with .999 and
1.010 of the error, and .94 and .97 of the terms (means over seven tables, 600 rows, two seeds).
With `l1_quadratic.minimize` alone in place of `alternate` it took 1.04 times the time with 600 rows
and 1.03 with 1,000, with .995 and 1.012 of the error (eight tables, two seeds).
Bits have no place there: 7,071 rules at 100,000 rows are 88 MB, and 2.8 GB in float32. All targets
of a path share terms and their values; there each class has a working set of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._base.progress import check_not_ended
from ..._core.descent import largest_violation
from ...features import FeatureSet
from ...features.rules import BinnedRows
from ...solvers.l1_quadratic import L1Quadratic, alternate
from ...solvers.problem import SLOPE_ROUNDING, feasible_slope
from ..sparse_rf.draws import largest_above
from .fold_path import FoldPath, eliminate_intercept
from .path_draws import DRAWS_OF, most_to_enter
from .path_rows import rows_in_order, rows_on_one_thread
from .term_values import Bits, Numbers

if TYPE_CHECKING:
    from ...features.dictionary import Dictionary
    from ..sparse_rf.options import SparseRFOptions
    from ..task import Task
    from .fold_path import State
    from .path_draws import PathDraws
    from .term_values import TermValues

# An l1 problem is solved until this share of the violation is left, by at most so many rounds of
# epochs of coordinate descent, with a Newton step on the support between two.
LEAVES, ROUNDS, EPOCHS = 0.1, 10, 50
# The share where terms are fitted to all rows.
LEAVES_AT_LAST = 0.02


class L1Path(FoldPath):
    """A path of terms that an l1 penalty chooses among draws."""

    features: FeatureSet
    index: np.ndarray
    values: TermValues

    def __init__(
        self,
        task: Task,
        dictionary: Dictionary,
        options: SparseRFOptions,
        k: int = 0,
        fitted: np.ndarray | None = None,
        told: tuple[np.ndarray, float] | None = None,
    ):
        """Begin without a term; k : the number of the fold."""
        super().__init__(task, options, fitted, told)
        self.features = FeatureSet((), task.rows.n_features_in)
        self.index = np.zeros(0, np.intp)
        if dictionary.kind == "grown":
            bins = task.rows.vectors.fetch(dictionary.binned(task.rows))
            bins = bins.take(self._order, axis=1)
            self.fitted_rows = BinnedRows(bins[:, : self.n])
            self.values = Bits(dictionary, bins, self.n)
        else:
            X = rows_in_order(task, self._order, self.n)
            self.fitted_rows = rows_on_one_thread(X[: self.n])
            nothing = np.empty((0, X.shape[0]), np.float32)
            self.values = Numbers(nothing, self.n, rows_on_one_thread(X))
        self._draws: PathDraws = DRAWS_OF[dictionary.kind](self, dictionary, k)
        self.n_shared = self._draws.n_shared

    def largest_alpha(self) -> float:
        _, features, g = self._draws.draw(self)
        g = np.abs(feasible_slope(g, features.nonnegative)).max(axis=1, initial=0.0)
        g[g <= SLOPE_ROUNDING * np.abs(self.slopes()).sum(axis=1)] = 0.0
        return float((self._slope_units * g).max())

    def fit_at(self, alpha: float, times: float = 1.0) -> None:
        """Draw, let violators in, and make a step of each target."""
        check_not_ended()
        self.alpha = alpha
        index, features, g = self._draws.draw(self, times)
        self.n_drawn += 0 if self.n_shared else len(index)
        excess = np.abs(feasible_slope(g, features.nonnegative)) / self._alphas[:, None]
        chosen = largest_above(excess.max(axis=0), 1.0, most_to_enter(self))
        self.enter(features.take(chosen), index[chosen])
        self.sweep()
        self._drop()

    def enter(self, features: FeatureSet, index: np.ndarray) -> None:
        """Add terms of weight 0."""
        if not len(index):
            return
        self.values.enter(features)
        if self.gram is not None and self.gram.dtype != self.values.dtype:
            self.gram = None
        self.features = self.features.concat(features)
        self.index = np.concatenate([self.index, index])
        self.w = np.concatenate([self.w, np.zeros((len(self.w), len(index)))], axis=1)

    def _drop(self):
        """Drop the terms without a weight."""
        has_weight = self.w.any(axis=0)
        if has_weight.all():
            return
        # The last terms take the places of those that go: coordinate descent that meets new terms
        # among old ones ends at other, better terms than one that meets them last.
        n = int(np.count_nonzero(has_weight))
        kept, free = np.arange(n), np.flatnonzero(~has_weight[:n])
        kept[free] = n + np.flatnonzero(has_weight[n:])
        self.values.keep(kept)
        if self.gram is not None:
            self.gram = self.gram[np.ix_(kept, kept)]
        self.features, self.index = self.features.take(kept), self.index[kept]
        self.w = self.w[:, kept]

    @property
    def _alphas(self):
        """The penalty of each target, not less than what rounding makes of a gradient: a fold that
        lacks a row of nearly all the weight has penalties of nearly nothing."""
        rounding = np.finfo(self.values.dtype).eps * np.abs(self.slopes()).sum(axis=1)
        return np.maximum(super()._alphas, rounding)

    def _active(self, g, w, alpha):
        g = feasible_slope(g, self.features.nonnegative)
        return np.flatnonzero((w != 0) | (np.abs(g) > alpha))

    def _minimise(self, k, H, m, total, g, w, alpha, A):
        eliminate_intercept(H, m, total)
        model = L1Quadratic(H, g, w, alpha, self.features.nonnegative[A])
        first = largest_violation(w, g, alpha, model.nonnegative)
        enough = (LEAVES_AT_LAST if self.is_last else LEAVES) * first
        return alternate(model, w, enough, ROUNDS, EPOCHS, enough)[0], first

    def _penalty(self, w, alpha):
        return alpha * np.abs(w).sum()

    def fit_again(self, state: State, alpha: float, tol: float, most: int) -> None:
        """Fit the terms of another path, from its weights, until violations are at most this share
        of the penalty, or for so many steps."""
        features, index, w, b = state
        self.enter(features, index)
        self.w, self.b = w / self._units[:, None], b / self._units
        self.z = self.values.apply(self.w) + self.b[:, None]
        self.alpha, self.is_last = alpha, True
        for _ in range(most):
            if self.sweep() <= tol:
                break
        self._drop()
