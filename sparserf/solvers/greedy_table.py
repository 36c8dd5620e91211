"""MFGA with the squared loss and rounds of one feature: a table of inner products in place of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import check_no_overflow, namespace, outputs_like
from .columns import Columns
from .greedy import Cholesky
from .ridge import best_constant, step

if TYPE_CHECKING:
    from ..features.feature_set import FeatureSet
    from ..rows.home import Rows
    from .ridge import Point, RidgeProblem

# Largest table: half a gigabyte.
MOST = 2**26
# Where the objective is below this share of its start, or a pivot of its diagonal, inner products are too coarse.
FINE = 1e-6
# A feature whose values spread around their mean by this share of it is constant, but for rounding.
CONSTANT = 4 * np.finfo(np.float64).eps


class OnTable:
    """The point of a fit, by batch orthogonal matching pursuit (Rubinstein, Zibulevsky & Elad 2008).

    Rounds do not go through the columns that are in: the gradients are w C - q over all features, with

    C = Phi_S' diag(h) Phi, a line and a pass over the rows a round, and q = Phi' (h y), where Phi_S and y are taken around
    their means if there is an intercept. What it ends with is refined on the rows; where inner products are too coarse, so is
    every round.
    """

    A: Columns
    point: Point
    converged: bool = True
    promise: float = 0.0

    def __init__(self, rows: Rows, problem: RidgeProblem, everything: FeatureSet, n_outputs: int, most_terms: int):
        self._rows, self._problem, self._everything = rows, problem, everything
        self.A, self._factor = Columns(rows), Cholesky()
        self.point = self._constant = constant = best_constant(problem, n_outputs)
        self._h = problem.row_curvature(constant.f, constant.b)
        self._total = float(problem.vectors.total(self._h))
        self._q, self._means = self._first_products(problem.dual_point(problem.margins(constant.f, constant.b)))
        self._C, self._m = np.empty((most_terms, len(everything))), np.zeros(0)
        self._g, self._is_refined, self._on_rows = None, True, False

    def _first_products(self, v):
        """(q, the means of all features; 0 without an intercept), for v = -h y. Rounding of the mean of y is taken off."""
        everything = self._everything
        if not self._problem.fit_intercept:
            return -self._rows.correlate(everything, v), np.zeros(len(everything))

        def answer(block, v, h):
            return block.correlate(everything, namespace(h).concat([v, h[None, ...]]))

        products = check_no_overflow(self._rows.sum(answer, v, self._h))
        means = products[-1] / self._total
        return np.outer(self._problem.vectors.total(v), means) - products[:-1], means

    def gradients(self) -> np.ndarray:
        if self._g is None:
            self._g = self.point.w @ self._C[: len(self.A)] - self._q
        return np.hypot.reduce(np.abs(self._g), axis=0)

    def append(self, J: np.ndarray) -> bool:
        k, features = len(self.A), self._everything.take(J)
        columns, m, spread = self._products(features, J)
        if not spread > CONSTANT * np.abs(self._means[J]):  # a round is of one feature
            return False
        H = columns[:, np.concatenate([self.A.index, J])]
        H[np.arange(len(J)), k + np.arange(len(J))] += self._problem.alpha
        added = self._factor.append(H[:, :k].T, H[:, k:])
        self._C[k : k + added.sum()], self._m = columns[added], np.concatenate([self._m, m[added]])
        self.A.append(features.take(np.flatnonzero(added)), J[added])
        return True

    def _products(self, features, J):
        """(Phi_J' diag(h) Phi of Phi_J around its mean, Phi_J' h, its root mean square), in one pass.

        The mean is known but for rounding; what that adds to the products is taken off. As they are, products of large
        means would cancel.
        """
        mean, one, everything = self._means[J], np.eye(len(J)), self._everything

        def answer(block, h):
            phi = check_no_overflow(block.apply(features, one))
            xp, varying = namespace(phi), phi - outputs_like(mean, phi)
            v = h * varying
            with np.errstate(over="ignore"):
                sums = xp.sum(v, axis=-1), xp.vecdot(v, varying)
            return block.correlate(everything, v), *sums

        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            columns, off, squares = self._rows.sum(answer, self._h)
            columns = check_no_overflow(columns - np.outer(off, self._means))
            left = off / self._total if self._problem.fit_intercept else 0.0
            spread = np.sqrt(np.maximum(squares - left * off, 0.0) / self._total)
        return columns, self._total * mean + off, spread

    def refit(self) -> None:
        """w = (C_S + alpha I)^-1 q; the objective falls by half of w'q."""
        q = self._q[:, self.A.index]
        w, start = self._factor.solve(q), self._constant.objective
        b = self._constant.b + w @ self._problem.followed(self._total, self._m)
        objective = start - 0.5 * float((q * w).sum())
        self.point, self._g, self._is_refined = replace(self.point, w=w, b=b), None, False
        self._on_rows = self._on_rows or not (objective > FINE * start and self._factor.weakest > FINE)
        if self._on_rows:
            objective = self._refined_on_rows()
        self.point = replace(self.point, objective=min(self.point.objective, objective))

    def settle(self, certified: bool) -> None:
        self._is_refined |= not certified
        if not self._is_refined:
            self.gradients()  # the next round goes on from these, whether or not anyone asked
            self._refine()

    def _refined_on_rows(self):
        """The objective of the refined point; its gradients come in the same pass."""
        d = self._refine()
        point = self.point
        view = self.A.view(self._problem, d, point.f, point.b, everything=self._everything)
        self.point, self._g = replace(point, f=view.f), view.g
        return self._problem.penalised(view.loss, point.w, self._problem.alpha)

    def _refine(self):
        """A step d of Newton's method from the residual itself. f stays where that was: d is rounding."""
        problem, point = self._problem, self.point
        view = self.A.view(problem, point.w, self._constant.f, point.b)
        g = view.g + problem.alpha * point.w
        d, e, _ = step(problem, self._factor.solve, g, view.g_b, self._m, self._total)
        self.point = replace(point, w=point.w + d, b=point.b + e, f=view.f)
        self._is_refined = True
        return d
