"""MFGA for any loss and number of features a round: the coefficients of what is in are fitted by asking the rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .columns import Columns
from .greedy import Cholesky
from .ridge import advance, best_constant, step

if TYPE_CHECKING:
    from ..features import FeatureSet
    from ..rows import Rows
    from .ridge import Point, RidgeProblem

# Newton steps in a round; they end where one promises less than a share of the objective, and the curvature is taken
# anew where a step shrinks that promise by less than a factor.
MAX_STEPS = 50
NEGLIGIBLE = 1e-9
SLOW = 0.05


class OnRows:
    """The point of a fit: coefficients w, intercepts b and f = Phi w of the features A, by Newton's method.

    Of several outputs, which share a support, w, b and f have an entry an output. A step takes one pass over the rows; the last
    of a round, which its promise tells, asks for the gradients of the whole dictionary in the same pass.
    """

    A: Columns
    point: Point
    converged: bool
    promise: float

    def __init__(self, rows: Rows, problem: RidgeProblem, everything: FeatureSet, n_outputs: int, best_phase: bool = False):
        self._rows, self._problem, self._everything = rows, problem, everything
        self.A, self.point = Columns(rows), best_constant(problem, n_outputs)
        self._phases = Phases(everything) if best_phase else None
        self._asked = self._phases.features if best_phase else everything
        self._angles = np.zeros(0)
        self._take_curvature()
        self._seen = self._slopes = None
        self._negligible = NEGLIGIBLE**2 * self.point.objective
        self.converged, self.promise = True, 0.0

    def gradients(self) -> np.ndarray:
        norm, _ = self._directions()
        return norm

    def _directions(self):
        """(norm over the outputs, angle that is added to the phase) of each gradient; no angles but for the best phase."""
        g = self._all_slopes()
        return self._phases.best(g) if self._phases else (np.hypot.reduce(np.abs(g), axis=0), None)

    def _all_slopes(self):
        """Of the mean loss, in the coefficients of all that is asked about; known after the last step of a round."""
        if self._seen is None:
            self._seen = self._rows.correlate(self._asked, self._dual_point())
        return self._seen

    def _dual_point(self):
        return self._problem.dual_point(self._problem.margins(self.point.f, self.point.b))

    def append(self, J: np.ndarray, all_of_them: bool = False) -> bool:
        features, k = self._everything.take(J), len(self.A)
        if self._phases:
            angles = self._directions()[1][J]
            features, self._angles = features.turned(angles), np.concatenate([self._angles, angles])
        self.A.append(features, J)
        H = self._hessian()
        kept = np.concatenate([np.arange(k), k + np.flatnonzero(self._factor.append(H[:k, k:], H[k:, k:], all_of_them))])
        self.A.keep(kept)
        self._angles = self._angles[kept] if self._phases else self._angles
        w = np.hstack([self.point.w, np.zeros((len(self.point.w), len(self.A) - k))])
        self.point, self._slopes = replace(self.point, w=w), None
        return True

    def _hessian(self):
        """Of the objective in w, with the intercept at its best.

        The curvature of a feature around its mean is a difference: no less than the rounding of what it is the difference of.
        """
        H, m = self.A.curvature(self._h)
        least = np.finfo(np.float64).eps * H.diagonal()
        H = H + np.outer(m, self._problem.followed(self._total, m))
        H.flat[:: len(H) + 1] = np.maximum(H.diagonal(), least) + self._problem.alpha
        return H

    def _take_curvature(self):
        self._h = self._problem.row_curvature(self.point.f, self.point.b)
        self._total, self._factor = float(self._problem.vectors.total(self._h)), Cholesky()
        if len(self.A):
            H = self._hessian()
            self._factor.append(H[:0], H, all_of_them=True)

    def refit(self) -> None:
        """All coefficients at their best: Newton's method, whose matrix stays the same for as long as that serves."""
        before, is_fresh = np.inf, False
        for _ in range(MAX_STEPS):
            d, e, promise = self._newton_step()
            enough = max(NEGLIGIBLE * self.point.objective, self._negligible)
            is_last = self._problem.loss.is_quadratic or not promise > enough
            is_slow = promise > SLOW * before
            falls = self._advance(d, e, is_last, is_slow)
            if is_last or (is_fresh and not falls):
                return
            is_fresh = is_slow or not falls
            if is_fresh:
                self._take_curvature()
            before = promise
        self.converged, self.promise = False, promise

    def _newton_step(self):
        """(d, e, what the quadratic model promises): the steps of w and b."""
        g, g_b = self._slopes_of_terms()
        g, m = g + self._problem.alpha * self.point.w, self.A.curvature(self._h)[1]
        return step(self._problem, self._factor.solve, g, g_b, m, self._total)

    def _slopes_of_terms(self):
        """Of the mean loss, in w and b."""
        if self._slopes is None:
            v = self._dual_point()
            known = self._seen is not None
            g = self._of_terms(self._seen) if known else self.A.correlate(v)
            self._slopes = g, self._problem.vectors.total(v)
        return self._slopes

    def _of_terms(self, g):
        index = self.A.index
        return self._phases.turned(g, index, self._angles) if self._phases else g[:, index]

    def _advance(self, d, e, is_last, is_slow):
        """Go the step, or what of it lowers the objective; returns whether anything does."""
        problem = self._problem
        if is_last:
            view_at = partial(self.A.view, problem, everything=self._asked)
        else:
            view_at = partial(self.A.view, problem, curved=is_slow)
        end, view = advance(problem, problem.alpha, self.point, d, e, view_at, is_last)
        if end is None:
            return False
        self.point, self._seen, self._slopes = end, None, None
        if view is not None and is_last:
            self._seen = view.g
        elif view is not None:
            self._slopes = view.g, view.g_b
        return True

    def settle(self, certified: bool) -> None:
        """Every round ends with all that there is to do."""


class Phases:
    """Of features of which each cosine cos(t) may be any cos(t + d): the gradient of that is g cos d - q sin d, for the
    gradients g of cos t and q of sin t, both of which are asked about."""

    def __init__(self, everything: FeatureSet):
        self._n, self._turns = len(everything), everything.is_periodic
        self.features: FeatureSet = everything.concat(everything.turned(np.full(self._n, -np.pi / 2)))

    def _both(self, slopes):
        return slopes[:, : self._n], np.where(self._turns, slopes[:, self._n :], 0.0)

    def best(self, slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(the largest norm over the outputs, the angle d that has it) of each."""
        g, q = self._both(slopes)
        difference, product = ((g - q) * (g + q)).sum(axis=0), -2 * (g * q).sum(axis=0)
        norm = np.sqrt(((g * g + q * q).sum(axis=0) + np.hypot(difference, product)) / 2)
        return norm, np.arctan2(product, difference) / 2

    def turned(self, slopes: np.ndarray, index: np.ndarray, angles: np.ndarray) -> np.ndarray:
        """The gradients of some, turned by these angles."""
        g, q = self._both(slopes)
        return g[:, index] * np.cos(angles) - q[:, index] * np.sin(angles)
