"""Classes that are fitted together on given terms, by Newton's method on all of their weights.

With p_ik the probability of class k in row i, the Hessian of the mean loss in the weights of
classes k and l is

    H_kl = (1/n) Phi' diag(s p_k (1{k = l} - p_l)) Phi.

Steps of each class by its own block of the Hessian, all at once, have not come to rest after 100
passes over the rows (three and five classes, 20 to 166 terms); those by the whole take 5 to 12.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import namespace
from .default.fit_of_terms import FitOfTerms, margins_of, minimum_of_signs, softmax_parts
from .default.fold_path import LEAST_CURVATURE

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .._base.types import Array
    from ..features import FeatureSet
    from ..rows import Block

# A share of the diagonal that is added: the loss does not change where all intercepts rise.
DAMPING = 1e-9


class FitOfClasses(FitOfTerms):
    """The fit of the weights of given terms for classes that are fitted together.

    Of `sums_at`, H, Phi'h and h are those of pairs of classes: (K, p, K, p), (K, p, K) and (K, K).
    """

    def _sums_of_block(self, w, b):
        return partial(moments_of_classes, self.features, self.dtype, w, b)

    def diagonal(self, sums: list[np.ndarray]) -> np.ndarray:
        return np.einsum("kjkj->kj", sums[0]).copy()

    def newton(
        self,
        w: np.ndarray,
        b: np.ndarray,
        own: np.ndarray,
        sums: list[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        (H, m, total, g, slope), (K, p) = sums, w.shape
        A = np.empty((K, p + 1, K, p + 1))
        A[:, :p, :, :p], A[:, :p, :, p] = H, m
        A[:, p, :, :p], A[:, p, :, p] = m.transpose(2, 0, 1), total
        A = A.reshape(K * (p + 1), -1)

        def both(of_weights, of_intercepts):
            return np.column_stack([of_weights, of_intercepts]).ravel()

        own = both(own, np.zeros(K))
        A.flat[:: len(A) + 1] += own + DAMPING * A.diagonal() + np.finfo(float).tiny
        sign = both(np.broadcast_to(self.sign, w.shape), np.zeros(K))
        new = minimum_of_signs(A, A @ both(w, b) - both(g, slope), sign)
        if new is None:
            return w, b
        new = new.reshape(K, p + 1)
        return new[:, :p], new[:, p]


def moments_of_classes(
    features: FeatureSet,
    dtype: DTypeLike,
    w: np.ndarray,
    b: np.ndarray,
    block: Block,
    y: Array,
    s: Array,
    *fixed: Array,
) -> tuple[np.ndarray, ...]:
    """Return the sums of `FitOfClasses` over the rows of a block, behind the losses of the rows of
    each class."""
    K, p, xp = len(w), len(features), namespace(s)
    z, e, all_together = softmax_parts(xp, margins_of(features, w, block, fixed), b)
    P = e / all_together
    H, m, total = np.empty((K, p, K, p)), np.empty((K, p, K)), np.empty((K, K))
    value, g, slope = np.empty(K), np.empty((K, p)), np.empty(K)
    for k in range(K):
        own = xp.where(y[k, ...] > 0, s, 0 * s)
        u = s * P[k, ...] - own
        value[k] = float(xp.sum(own * (xp.log(all_together) - z[k, ...])))
        g[k], slope[k] = block.correlate(features, u), float(xp.sum(u))
        for j in range(k + 1):
            h = s * P[k, ...] * (P[j, ...] if j < k else 1 - P[k, ...] + LEAST_CURVATURE)
            way = -1.0 if j < k else 1.0
            H[k, :, j] = way * block.gram(features, features, h, dtype)
            m[k, :, j] = way * block.correlate(features, h)
            total[k, j] = way * float(xp.sum(h))
            H[j, :, k], m[j, :, k], total[j, k] = H[k, :, j].T, m[k, :, j], total[k, j]
    return value, H, m, total, g, slope
