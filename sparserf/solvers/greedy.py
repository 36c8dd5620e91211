"""The coefficients of greedy selection: all are fitted again whenever more features are selected.

The objective is the one of the ridge problem with one penalty for all terms, and there may be
several outputs, which share a support. `CoefficientsOnRows` computes on the rows, for any loss and
any number of features a round: one Cholesky factor grows by the columns of the new features, and
Newton's method goes on with it for as long as that serves. `CoefficientsOnTable` is for the squared
loss and rounds of one feature: batch orthogonal matching pursuit (R. Rubinstein, M. Zibulevsky, M.
Elad, Efficient implementation of the K-SVD algorithm using batch orthogonal matching pursuit,
2008), on a table of inner products with the whole dictionary.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import check_no_overflow, namespace, outputs_like
from .active import ActiveFeatures
from .cholesky import GrowingCholesky, solve_positive
from .ridge import best_constant, move_along_step, solve_with_intercept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..features import FeatureSet
    from ..rows import Rows
    from .problem import Iterate
    from .ridge import RidgeProblem

# The most Newton steps in a round.
MAX_STEPS = 50
# A step whose predicted decrease is below this share of the objective is the last of a round.
LAST_DECREASE = 1e-9
# If the predicted decrease of a step is above this share of the one before, the Hessian is computed
# anew.
SLOW_NEWTON = 0.05
# The most entries of a table of inner products: half a gigabyte, with as many lines that were
# computed ahead.
LARGEST_TABLE = 2**25
# One pass computes at most this many lines of the table: those of the features that the next rounds
# would select among AMONG features, of the largest gradients. A further line takes a fortieth of
# the time of the first one, which makes the tile; with moments of the inputs nothing is saved, and
# one line is computed.
LOOKED_AHEAD = 16
AMONG = 192


class CoefficientsOnRows:
    """The coefficients of the selected features, by Newton's method on the rows.

    A step takes one pass over the rows. The last step of a round, recognised by its small predicted
    decrease, computes the gradients in the coefficients of the whole dictionary in the same pass.

    A : ActiveFeatures
        The selected features.
    iterate : Iterate
        Their coefficients (n_outputs, len(A)), the intercepts, f = Phi w, the objective.
    converged : bool
        Whether all rounds ended at their minimum; if not, predicted_decrease is the one of the last
        step of the round.
    """

    A: ActiveFeatures
    iterate: Iterate
    converged: bool
    predicted_decrease: float

    def __init__(
        self,
        rows: Rows,
        problem: RidgeProblem,
        everything: FeatureSet,
        n_outputs: int,
        best_phase: bool = False,
    ):
        """best_phase: whether each cosine that is selected gets the phase of the largest
        gradient."""
        self._rows, self._problem, self._everything = rows, problem, everything
        self.A, self.iterate = ActiveFeatures(rows), best_constant(problem, n_outputs)
        self._phases = BestPhases(everything) if best_phase else None
        self._asked = self._phases.features if best_phase else everything
        self._angles = np.zeros(0)
        self._compute_hessian()
        self._dictionary_slopes = self._slopes = None  # at the iterate, where they are known
        self._negligible = LAST_DECREASE**2 * self.iterate.objective
        self.converged, self.predicted_decrease = True, 0.0

    def gradients(self) -> np.ndarray:
        """Return, for each feature of the dictionary, the norm of the gradient of the mean loss
        over the outputs."""
        return self._norms_and_angles()[0]

    def _norms_and_angles(self):
        """Return, of each feature, the norm of its gradient over the outputs, and the angle by
        which to turn its phase.

        The angles are None where phases stay. After the last step of a round this takes no pass
        over the rows.
        """
        if self._dictionary_slopes is None:
            self._dictionary_slopes = self._rows.correlate(self._asked, self._dual_point())
        g = self._dictionary_slopes
        return self._phases.best(g) if self._phases else (np.hypot.reduce(np.abs(g), axis=0), None)

    def _dual_point(self):
        """Return the dual point at the iterate."""
        return self._problem.dual_point(self._problem.margins(self.iterate.f, self.iterate.b))

    def append(self, J: np.ndarray, likely: Sequence[int] = (), all_of_them: bool = False) -> bool:
        """Select the features J of the dictionary, except any that depends on other selected
        features; return True.

        likely: ignored; `CoefficientsOnTable` uses it
        all_of_them: whether to select dependent features, too
        """
        features, k = self._everything.take(J), len(self.A)
        if self._phases:
            angles = self._norms_and_angles()[1][J]
            features, self._angles = features.turned(angles), np.concatenate([self._angles, angles])
        self.A.append(features, J)
        # before the rows are asked, where the time may be over
        w = np.hstack([self.iterate.w, np.zeros((len(self.iterate.w), len(self.A) - k))])
        self.iterate, self._slopes = replace(self.iterate, w=w), None
        H = self._hessian()
        kept = np.concatenate(
            [
                np.arange(k),
                k + np.flatnonzero(self._factor.append(H[:k, k:], H[k:, k:], all_of_them)),
            ]
        )
        self.A.keep(kept)
        self._angles = self._angles[kept] if self._phases else self._angles
        self.iterate = replace(self.iterate, w=w.take(kept, axis=1))
        return True

    def _hessian(self):
        """Return the Hessian of the objective in w, with the intercept eliminated.

        Its diagonal entries are differences, and at least the rounding of the entries from which
        the part of the intercept is subtracted.
        """
        H, m = self.A.weighted_gram(self._h)
        least = np.finfo(np.float64).eps * H.diagonal()
        H = H + np.outer(m, self._problem.intercept_response(self._total, m))
        H.flat[:: len(H) + 1] = np.maximum(H.diagonal(), least) + self._problem.alpha
        return H

    def _compute_hessian(self):
        """Compute the row weights h at the iterate, and factor the Hessian that they make."""
        self._h = self._problem.row_curvature(self.iterate.f, self.iterate.b)
        self._total, self._factor = float(self._problem.vectors.total(self._h)), GrowingCholesky()
        if len(self.A):
            H = self._hessian()
            self._factor.append(H[:0], H, all_of_them=True)

    def refit(self, most_steps: int | None = None, share: float = 0.0) -> None:
        """Go to the best coefficients, by Newton's method; the Hessian is kept while the predicted
        decrease shrinks fast.

        most_steps : the most steps; None: MAX_STEPS
        share : if it is not 0, end earlier: before a step whose predicted decrease is below this
            share of that of the first
        """
        before, first, is_fresh = np.inf, None, False
        for _ in range(most_steps or MAX_STEPS):
            d, e, predicted_decrease = self._newton_step()
            first = predicted_decrease if first is None else first
            enough = max(LAST_DECREASE * self.iterate.objective, self._negligible, share * first)
            is_last = self._problem.loss.is_quadratic or not predicted_decrease > enough
            if is_last and share:
                return
            is_slow = predicted_decrease > SLOW_NEWTON * before
            falls = self._advance(d, e, is_last, is_slow)
            if is_last or (is_fresh and not falls):
                return
            is_fresh = is_slow or not falls
            if is_fresh:
                self._compute_hessian()
            before = predicted_decrease
        self.converged, self.predicted_decrease = False, predicted_decrease

    def refitted(self, alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the best coefficients and intercepts with another penalty, starting from the
        iterate; this object does not change."""
        kept = dict(vars(self))
        self._problem = replace(self._problem, alpha=alpha)
        try:
            if self._problem.loss.is_quadratic:
                d, e, _ = self._newton_step(partial(solve_lines, self._hessian()))
                return self.iterate.w + d, self.iterate.b + e
            problem, at = self._problem, self.iterate
            objective = problem.objective(problem.margins(at.f, at.b), at.w, alpha)
            self.iterate = replace(at, objective=objective)
            self._compute_hessian()
            self.refit()
            return self.iterate.w, self.iterate.b
        finally:
            vars(self).update(kept)

    def _newton_step(self, solve=None):
        """Return (d, e, predicted_decrease): the steps of w and b, and the decrease of the
        objective by the quadratic model.

        solve : a function that solves systems with the Hessian; None: by its growing factor
        """
        # the slopes of the mean loss in the coefficients of the terms, and in the intercepts
        if self._slopes is None:
            v, of_dictionary = self._dual_point(), self._dictionary_slopes
            if of_dictionary is None:
                g = self.A.correlate(v)
            elif self._phases:
                g = self._phases.turned(of_dictionary, self.A.index, self._angles)
            else:
                g = of_dictionary[:, self.A.index]
            self._slopes = g, self._problem.vectors.total(v)
        g, g_b = self._slopes
        g, m = g + self._problem.alpha * self.iterate.w, self.A.weighted_gram(self._h)[1]
        solve = solve or self._factor.solve
        return solve_with_intercept(self._problem, solve, g, g_b, m, self._total)

    def _advance(self, d, e, is_last, is_slow):
        """Take the step, or a part of it that lowers the objective; return whether any does."""
        problem = self._problem
        if is_last:
            model_at = partial(self.A.local_model, problem, everything=self._asked)
        else:
            model_at = partial(self.A.local_model, problem, curved=is_slow)
        end, model = move_along_step(problem, problem.alpha, self.iterate, d, e, model_at, is_last)
        if end is None:
            return False
        self.iterate, self._dictionary_slopes, self._slopes = end, None, None
        if model is not None and is_last:
            self._dictionary_slopes = model.g
        elif model is not None:
            self._slopes = model.g, model.g_b
        return True

    def complete_refit(self, certified: bool) -> None:
        """Do nothing: every round ends with the best coefficients."""


class BestPhases:
    """The phases of cosine features at which the gradient is largest.

    The gradient in the coefficient of cos(t + d) is g cos d - q sin d, for the gradients g of cos t
    and q of sin t, both of which are computed.

    features : FeatureSet
        All features, followed by all of them turned by a quarter of a circle.
    """

    def __init__(self, everything: FeatureSet):
        self._n, self._turns = len(everything), everything.is_periodic
        self.features: FeatureSet = everything.concat(
            everything.turned(np.full(self._n, -np.pi / 2))
        )

    def _both(self, slopes):
        """Return (g, q) of slopes in `features`; q is 0 for features that have no phase."""
        return slopes[:, : self._n], np.where(self._turns, slopes[:, self._n :], 0.0)

    def best(self, slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (the largest norm over the outputs, the angle d that has it) of each feature."""
        g, q = self._both(slopes)
        difference, product = ((g - q) * (g + q)).sum(axis=0), -2 * (g * q).sum(axis=0)
        norm = np.sqrt(((g * g + q * q).sum(axis=0) + np.hypot(difference, product)) / 2)
        return norm, np.arctan2(product, difference) / 2

    def turned(self, slopes: np.ndarray, index: np.ndarray, angles: np.ndarray) -> np.ndarray:
        """Return the gradients of the features of these indices, turned by these angles."""
        g, q = self._both(slopes)
        return g[:, index] * np.cos(angles) - q[:, index] * np.sin(angles)


class CoefficientsOnTable:
    """The coefficients of the selected features, by batch orthogonal matching pursuit; with the
    squared loss.

    Rounds need no pass over the rows: the gradients in all features are w C - q, with

        C = Phi_S' diag(h) Phi, which grows by a line a round, and q = Phi' (h y),

    where Phi_S and y are centred if there is an intercept. A pass over the rows gives the lines of
    several features that are likely to be selected. The last coefficients are refined on the rows;
    where inner products are too coarse, those of every round are.

    A, iterate
        As in `CoefficientsOnRows`; f stays as the last refinement computed it.
    """

    A: ActiveFeatures
    iterate: Iterate
    converged: bool = True
    predicted_decrease: float = 0.0

    def __init__(
        self,
        rows: Rows,
        problem: RidgeProblem,
        everything: FeatureSet,
        n_outputs: int,
        most_terms: int,
        r: np.ndarray,
    ):
        """r : the divisors of the gradients of features before they are compared."""
        self._rows, self._problem, self._everything, self._r = rows, problem, everything, r
        self.A, self._factor = ActiveFeatures(rows), GrowingCholesky()
        self.iterate = self._constant = constant = best_constant(problem, n_outputs)
        self._h = problem.row_curvature(constant.f, constant.b)
        self._total = float(problem.vectors.total(self._h))
        self._q, self._means = self._first_products(
            problem.dual_point(problem.margins(constant.f, constant.b))
        )
        self._C, self._m = np.empty((most_terms, len(everything))), np.zeros(0)
        n_in_tiles = sum(len(block) for block in everything.blocks if not block.moment_degree)
        # lines by index
        self._lines, self._n_ahead = {}, LOOKED_AHEAD if 2 * n_in_tiles >= len(everything) else 1
        self._g, self._is_refined, self._on_rows = None, True, False

    def _first_products(self, v):
        """Return (q, the means of all features; 0 without an intercept) for v = -h y, without
        rounding in the mean of y."""
        everything = self._everything
        if not self._problem.fit_intercept:
            return -self._rows.correlate(everything, v), np.zeros(len(everything))

        def answer(block, v, h):
            return block.correlate(everything, namespace(h).concat([v, h[None, ...]]))

        products = check_no_overflow(self._rows.sum(answer, v, self._h))
        means = products[-1] / self._total
        return np.outer(self._problem.vectors.total(v), means) - products[:-1], means

    def gradients(self) -> np.ndarray:
        """Return, for each feature of the dictionary, the norm of the gradient of the mean loss
        over the outputs."""
        if self._g is None:
            self._g = self.iterate.w @ self._C[: len(self.A)] - self._q
        return np.hypot.reduce(np.abs(self._g), axis=0)

    def append(self, J: np.ndarray, likely: Sequence[int] = ()) -> bool:
        """Select the feature J of the dictionary, unless it depends on selected ones; return
        whether it is not constant.

        likely: features that may be selected next, the most likely first
        """
        # A feature whose standard deviation is at most this share of its mean is constant up to
        # rounding.
        constant = 4 * np.finfo(np.float64).eps

        k, (j,) = len(self.A), J  # a round is of one feature
        if j not in self._lines:
            self._look_ahead([int(j), *map(int, likely)])
        line, m, spread = self._lines.pop(j)
        if not spread > constant * abs(self._means[j]):
            return False
        column = line[np.concatenate([self.A.index, J])]
        column[k] += self._problem.alpha
        if self._factor.append(column[:k, None], column[None, k:])[0]:
            self._C[k], self._m = line, np.append(self._m, m)
            self.A.append(self._everything.take(J), J)
        return True

    def _look_ahead(self, likely):
        """Compute the lines of the first feature, and of those that later rounds would select if
        they had only these."""
        n_ahead = min(self._n_ahead, len(self._C) - len(self.A))
        foreseen = self._foreseen(np.array(likely), n_ahead) if n_ahead > 1 else likely[:1]
        new = np.array([j for j in foreseen if j not in self._lines])
        if len(self._lines) + len(new) > len(self._C):
            self._lines = {}
        self._lines |= dict(
            zip(
                new.tolist(),
                zip(*self._products(self._everything.take(new), new), strict=True),
                strict=True,
            )
        )

    def _foreseen(self, J, n):
        """Return the features that the next n rounds would select among J."""
        features, k, alpha = self._everything.take(J), len(self.A), self._problem.alpha
        gram, m = self._rows.moments(features, features, self._h)
        self.gradients()
        # the Hessian and the gradient in the coefficients of J, with the selected ones eliminated
        G = gram + np.outer(m, self._problem.intercept_response(self._total, m))
        g = self._g[:, J]
        C = self._C[:k, J]
        if k:
            G -= C.T @ self._factor.solve(C.T).T
        selected = []
        # where features depend on each other, the forecast is a guess
        for _ in range(min(n, len(J))):
            score = np.nan_to_num(np.hypot.reduce(np.abs(g), axis=0) / self._r[J])
            score[selected] = -1.0
            j = int(score.argmax())
            selected.append(j)
            column = G[:, j] / max(G[j, j] + alpha, 1e-300)
            g, G = g - np.outer(g[:, j], column), G - np.outer(column, G[j])
        return J[selected].tolist()

    def _products(self, features, J):
        """Return (Phi_J' diag(h) Phi with Phi_J around its mean, Phi_J' h, the root mean square of
        Phi_J), in one pass.

        Products of large means would cancel, so the mean is subtracted from each row. As the mean
        is rounded, its remaining part is subtracted from the products.
        """
        mean, one, everything = self._means[J], np.eye(len(J)), self._everything

        def answer(block, h):
            phi = check_no_overflow(block.apply(features, one))
            xp, varying = namespace(phi), phi - outputs_like(mean, phi)
            v = h * varying
            sums = xp.sum(v, axis=-1), xp.vecdot(v, varying)
            return block.correlate(everything, v), *sums

        columns, off, squares = self._rows.sum(answer, self._h)
        columns = check_no_overflow(columns - np.outer(off, self._means))
        left = off / self._total if self._problem.fit_intercept else 0.0
        spread = np.sqrt(np.maximum(squares - left * off, 0.0) / self._total)
        return columns, self._total * mean + off, spread

    def refit(self) -> None:
        """Go to the best coefficients w = (C_S + alpha I)^-1 q, at which the objective has fallen
        by half of w'q."""
        # Inner products are too coarse where the objective is below this share of the one without
        # terms, or a pivot below this share of its diagonal entry.
        fine = 1e-6

        q = self._q[:, self.A.index]
        w, start = self._factor.solve(q), self._constant.objective
        b = self._constant.b + w @ self._problem.intercept_response(self._total, self._m)
        objective = start - 0.5 * float((q * w).sum())
        self.iterate, self._g, self._is_refined = replace(self.iterate, w=w, b=b), None, False
        self._on_rows = self._on_rows or not (
            objective > fine * start and self._factor.weakest > fine
        )
        if self._on_rows:
            objective = self._refined_on_rows()
        self.iterate = replace(self.iterate, objective=min(self.iterate.objective, objective))

    def complete_refit(self, certified: bool) -> None:
        """Refine the coefficients before they leave the solver; not if they will not be
        certified."""
        self._is_refined |= not certified
        if not self._is_refined:
            self.gradients()  # the next round starts from those before the refinement
            self._refine()

    def _refined_on_rows(self):
        """Refine the coefficients, and return the objective there; the gradients come in the same
        pass."""
        d = self._refine()
        here = self.iterate
        model = self.A.local_model(self._problem, d, here.f, here.b, everything=self._everything)
        self.iterate, self._g = replace(here, f=model.f), model.g
        return self._problem.penalised(model.loss, here.w, self._problem.alpha)

    def _refine(self):
        """Take a Newton step d computed from the residuals, and return it; f stays that of the
        coefficients before, since d is rounding."""
        problem, here = self._problem, self.iterate
        model = self.A.local_model(problem, here.w, self._constant.f, here.b)
        g = model.g + problem.alpha * here.w
        d, e, _ = solve_with_intercept(
            problem, self._factor.solve, g, model.g_b, self._m, self._total
        )
        self.iterate = replace(here, w=here.w + d, b=here.b + e, f=model.f)
        self._is_refined = True
        return d


def solve_lines(H: np.ndarray, g: np.ndarray) -> np.ndarray | None:
    """Return H^-1 g for each line of g; None where H has no finite inverse."""
    d = solve_positive(H, g.T)
    return None if d is None else d.T
