"""The classes of a multinomial model, each fitted against the others as they are: block coordinate descent over the classes.

The loss is smooth and convex, and penalties are of one class each, so that sweeps over the classes come to the optimum of all
(P. Tseng, Convergence of a block coordinate descent method for nondifferentiable minimization, 2001). A function that is added
to the margins of all classes changes no probability. Towards its best, which the penalty decides alone, sweeps would creep:
what the classes have in common is taken out after each, and a few sweeps are extrapolated, or followed by a `joint_step`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Self

import numpy as np

from .._base.arrays import namespace, outputs_like
from ..losses.classification import Multinomial, OneClassMultinomial, log_sum_exp, softmax
from .problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .._base.types import RowVector, T
    from ..rows.vectors import RowVectors

AGAINST = OneClassMultinomial()
# Sweeps that are extrapolated together.
DEPTH = 5
# Newton steps for the intercepts at most; a step of less than SURE is followed by none, and one of less than NEAR is good.
MOST_STEPS, SURE, NEAR = 100, 1e-8, 1e-4


@dataclass(frozen=True, eq=False)
class Rivals(Problem):
    """The joint problem, but for its penalty: y is -1 or +1, (n_classes, n_rows), as margins are."""

    @classmethod
    def of_targets(cls, vectors: RowVectors, targets: Sequence[np.ndarray], weight: np.ndarray, fit_intercept: bool) -> Self:
        """targets: one a class, -1 or +1."""
        return cls.of(vectors, Multinomial(), np.stack(targets), weight, 0.0, fit_intercept)

    def together(self, zs: Sequence[RowVector]) -> RowVector:
        """(n_classes, n_rows) of the margins of each class."""
        return self.vectors.map(lambda *zs: namespace(zs[0]).stack([namespace(z).reshape(z, (-1,)) for z in zs]), *zs)

    def turns(self, z: RowVector) -> Turns:
        """The classes one after the other, from these margins of all."""
        return Turns(self, z)

    def all_against(self, z: RowVector, *shape: int) -> Iterator[RowVector]:
        """y of the loss `OneClassMultinomial` of each class, for the margins z of all; shape: as of `Turns.against`."""
        turns = self.turns(z)
        for k in count():
            yield turns.against(*shape)
            turns.end(self.vectors.output(z, k))

    def combined(self, shares: np.ndarray, fs: Sequence[RowVector]) -> RowVector:
        """The sum of row vectors, each times its share."""
        return self.vectors.map(lambda *fs: sum(float(share) * f for share, f in zip(shares, fs, strict=True)), *fs)

    def best_intercepts(self, f: RowVector, b: np.ndarray) -> np.ndarray:
        """argmin over all intercepts at fixed f, (n_classes, n_rows), from b: Newton's method. Their mean is 0.

        Where its step is no good, each class's share of the rows is brought to what it is in y, which lowers the loss from
        anywhere (J. N. Darroch, D. Ratcliff, Generalized iterative scaling for log-linear models, 1972).
        """
        if not self.fit_intercept:
            return np.zeros(len(b))
        b, (loss, slope, shares, curvature) = b - b.mean(), self._seen(f, b)
        for _ in range(MOST_STEPS):
            newton = -np.linalg.pinv(curvature, rcond=1e-13, hermitian=True) @ slope
            if np.abs(slope).max() <= SURE * shares.min() and np.abs(newton).max() <= SURE:
                return b + newton
            scaled = np.log(np.maximum(shares - slope, 1e-300)) - np.log(np.maximum(shares, 1e-300))
            for step in (newton, scaled - scaled.mean()):
                seen = self._seen(f, b + step)
                if seen[0] < loss:
                    break
            else:  # what is left may be rounding in the loss, but not in its slope
                return b + newton if np.abs(newton).max() <= NEAR else b
            b, (loss, slope, shares, curvature) = b + step, seen
        return b

    def settled(self, fs: Sequence[RowVector], b: np.ndarray) -> tuple[RowVector, np.ndarray, RowVector]:
        """(f, b, z) of all classes at the best intercepts, from b; fs: f of each."""
        f = self.together(fs)
        b = self.best_intercepts(f, b)
        return f, b, self.margins(f, b)

    def _seen(self, f, b):
        """(the mean loss, its slope in the intercepts, the mean share of each class, the curvature)."""
        loss, b = self.loss, np.asarray(b)

        def answer(f, y, s):
            z = f + outputs_like(b, f)
            xp, p = namespace(z), softmax(z)
            weighed = p * s
            curvature = -weighed @ p.T
            return xp.sum(s * loss.value(z, y)), xp.sum(s * loss.derivative(z, y), axis=-1), xp.sum(weighed, axis=-1), curvature

        total, slope, diagonal, curvature = self.vectors.sum(answer, f, self.y, self.weight)
        slope, shares = np.asarray(slope) / self.n_rows, np.asarray(diagonal) / self.n_rows
        return float(total / self.n_rows), slope, shares, np.asarray(curvature) / self.n_rows + np.diag(shares)


class Turns:
    """The classes in their order, each against the others as they are: a turn takes O(n), however many classes there are.

    after : log of the sum of e^z over the classes behind each, as they were at the start; before : over those whose turn is
    over, as they have moved; own : the margin of each row's own class. No class is taken out of a sum again, in which all
    others may have been lost to rounding.
    """

    def __init__(self, rivals: Rivals, z: RowVector):
        def behind(z):
            xp, after = namespace(z), [z[-1, ...]]
            for k in range(z.shape[0] - 2, 0, -1):
                after.append(log_sum_exp(xp.stack([z[k, ...], after[-1]])))
            return xp.stack(after[::-1])

        def own(z, y):
            xp = namespace(z)
            return xp.sum(xp.where(y > 0, z, xp.zeros_like(z)), axis=0)

        self._vectors, self._y, self._k = rivals.vectors, rivals.y, 0
        self._after, self._own = self._vectors.map(behind, z), self._vectors.map(own, z, rivals.y)
        self._before = None

    def against(self, *shape: int) -> RowVector:
        """y of the loss `OneClassMultinomial` of the class whose turn it is; shape: of what comes before the rows in its z."""
        k, has_before = self._k, self._before is not None

        def answer(y, own, after, before):
            xp, is_k = namespace(own), y[k, ...] > 0
            sums = [before] * has_before + ([after[k, ...]] if k < after.shape[0] else [])
            others = sums[0] if len(sums) == 1 else log_sum_exp(xp.stack(sums))
            beyond = xp.where(is_k, xp.zeros_like(own), others - own)
            return xp.reshape(xp.stack([y[k, ...], others, beyond]), (3, *shape, -1))

        return self._vectors.map(answer, self._y, self._own, self._after, self._own if self._before is None else self._before)

    def end(self, z: RowVector) -> None:
        """The turn of a class, with its margins as they are now."""
        k, is_first = self._k, self._before is None

        def moved(z, y, own, before):
            xp, z = namespace(own), namespace(own).reshape(z, (-1,))
            before = z if is_first else log_sum_exp(xp.stack([before, z]))
            return xp.stack([xp.where(y[k, ...] > 0, z, own), before])

        both = self._vectors.map(moved, z, self._y, self._own, self._own if is_first else self._before)
        self._own, self._before = self._vectors.output(both, 0), self._vectors.output(both, 1)
        self._k += 1


def shared(indices: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """(features that all classes have, the places of each in those of each class)."""
    every = indices[0]
    for index in indices[1:]:
        every = np.intersect1d(every, index)
    orders = [np.argsort(index) for index in indices]
    places = [order[np.searchsorted(index, every, sorter=order)] for index, order in zip(indices, orders, strict=True)]
    return every, places


def nearest_median(w: np.ndarray) -> np.ndarray:
    """Of each column of (n_classes, n_terms), what taken away leaves the least sum of sizes: of such the one nearest to 0."""
    w, n = np.sort(w, axis=0), len(w)
    return np.clip(0.0, w[(n - 1) // 2], w[n // 2])


class Extrapolation:
    """Where a few sweeps lead: the affine combination of the points after them whose last moves cancel best.

    Q. Bertrand, M. Massias, Anderson acceleration of coordinate descent, 2021.
    """

    def __init__(self):
        self._key, self._points = None, []

    def of(self, key: object, w: np.ndarray, f: T) -> tuple[np.ndarray, tuple[np.ndarray, ...], tuple[T, ...]] | None:
        """(shares, w, f): of which shares of the last points it is made, each DEPTH sweeps with the same key; or None.

        w: the coefficients after a sweep; f: what else belongs to them.
        """
        self._points = self._points if key == self._key else []
        self._key = key
        self._points.append((w, f))
        if len(self._points) <= DEPTH:
            return None
        ws, fs = zip(*self._points, strict=True)
        self._points = []
        moves = np.diff(np.stack(ws), axis=0)
        products = moves @ moves.T
        trace = np.trace(products)
        if not 0 < trace < np.inf:
            return None
        c = np.linalg.solve(products / trace + 1e-12 * np.eye(DEPTH), np.ones(DEPTH))
        return c / c.sum(), ws[1:], fs[1:]
