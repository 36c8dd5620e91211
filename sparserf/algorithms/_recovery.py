"""w* = argmin (1/n) sum_i s_i L(x_i'w + b, y_i) + (alpha/2) |w|^2: where a fit stands, how near that is, Newton's way there."""

from dataclasses import dataclass, replace

import numpy as np

from .._checks import check_flag
from ..features import Linear
from ..losses import LOSSES
from ..model import FitInfo
from ..solvers.krylov import dots
from ..solvers.ridge import RidgeProblem
from ._targets import in_units, power_of_two, read

# A Newton step's system is solved to this share at first; and to SAFETY times what the tolerance asks for at last.
FIRST, SAFETY = 0.3, 0.5
# Steps in a row that neither halve the bound nor lower the objective, by more than NEGLIGIBLE of it, before rounding is
# taken to be in the way.
PATIENCE, NEGLIGIBLE = 4, 1e-10
# The first penalty is SHARE of the trace of the Hessian, and each next one FALL times less, met to the bound ROUGH.
SHARE, FALL, ROUGH = 0.01, 10.0, 0.3
# Rows from which the trace is estimated, at most twice as many.
SAMPLE = 250


@dataclass
class Point:
    """w and f = X w, b, and u with w = X'u, NaN where it is not known; a row an output."""

    w: np.ndarray
    f: np.ndarray
    b: np.ndarray
    u: np.ndarray

    def along(self, t, step):
        t = t[:, None]
        return Point(self.w + t * step.w, self.f + t * step.f, self.b + t[:, 0] * step.b, self.u + t * step.u)


def read_linear(X, y, loss, fit_intercept, sample_weight, workers):
    """(rows, all inputs as features, the problem over all outputs in units of scale, scale, classes), all checked."""
    rows, loss, weight, classes, targets = read(X, y, loss, sample_weight, workers, several_outputs=True, losses=LOSSES)
    targets = np.vstack(targets)
    scale = power_of_two(targets) if loss.name == "squared" else 1.0
    problem = RidgeProblem(loss, targets / scale, weight, 1.0, check_flag("fit_intercept", fit_intercept))
    return rows, Linear().draw(None, rows.n_features_in), problem, scale, classes


class Recovery:
    """The problem over all outputs, a point, and its certificate. z = X w + b + offset, the last a number a row."""

    def __init__(self, rows, inputs, problem, scale=1.0, offset=0.0, callback=None):
        self.rows, self.inputs, self.problem, self._offset = rows, inputs, problem, offset
        self._scale, self._callback, self.ended_by_callback = scale, callback, False
        self.has_diverged = self.is_on_the_way = False
        k, n = problem.y.shape
        self.n_projections = self.n_conjugate = 0
        self.move_to(Point(np.zeros((k, rows.n_features_in)), np.zeros((k, n)), np.zeros(k), np.zeros((k, n))))

    def begin(self, alpha, tol):
        """From where it stands, the problem of another penalty."""
        self.problem, self.tol, self._objectives = replace(self.problem, alpha=alpha), tol, []
        self.look()

    def move_to(self, point):
        point.b = self.problem.best_intercepts(point.f + self._offset, point.b)
        self.at = point
        self.z = self.margins(point)

    def margins(self, point):
        return point.f + point.b[:, None] + self._offset

    def look(self):
        """Gradient, and the certificate: |w - w*| <= |w - w~| = sqrt(2 gap / alpha) for w~ = -X'v / alpha, v the dual point."""
        w, alpha = self.at.w, self.problem.alpha
        self.v = self.problem.dual_point(self.z)
        self.g = alpha * w + self.rows.correlate(self.inputs, self.v)
        self.distance = np.fmin(np.sqrt(dots(self.g, self.g)) / alpha, self._distance_at_u())
        room = np.sqrt(dots(w, w)) - self.distance  # |w*| is at least this
        unknown = np.where(self.distance > 0, np.inf, 0.0)
        self.bound = np.divide(self.distance, room, out=unknown, where=room > 0)
        self.converged = bool(self.bound.max() <= self.tol)

    def _distance_at_u(self):
        """The same for the dual point -alpha u, of which w is the primal one: gap = n/2 sum (v + alpha u)^2 / s, squared loss.

        Of an ill-conditioned X it is the nearer bound. NaN where u is not known.
        """
        s = self.problem.weight
        if self.problem.loss.name != "squared":
            return np.nan
        r = np.divide(self.v + self.problem.alpha * self.at.u, np.sqrt(s), out=np.zeros_like(self.v), where=s > 0)
        return np.sqrt(self.rows.n_rows / self.problem.alpha * dots(r, r))

    def total_curvature(self):
        """Trace of the Hessian of the losses, where they are most curved, from a sample of the rows."""
        h = self.problem.loss.smoothness * self.problem.weight / self.rows.n_rows
        every = max(1, self.rows.n_rows // SAMPLE)
        return float(self.rows.squared_norms(slice(None, None, every)) @ h[::every]) * every

    def values(self, point):
        """The objective of each output."""
        loss = np.mean(self.problem.weight * self.problem.loss.value(self.margins(point), self.problem.y), axis=1)
        return loss + 0.5 * self.problem.alpha * dots(point.w, point.w)

    def record(self):
        """End an iteration: note the objective, tell the callback; returns whether to stop."""
        objective = in_units(self.values(self.at).sum(), self._scale)
        self._objectives.append(min([objective, *self._objectives[-1:]]))  # rounding may raise it
        ask = self._callback is not None and not self.is_on_the_way
        self.ended_by_callback = ask and bool(self._callback(self.info()))
        return self.converged or self.ended_by_callback

    def has_fallen(self):
        """Whether the last iteration lowered the objective."""
        last = self._objectives[-2:]
        return len(last) < 2 or last[1] < last[0] - NEGLIGIBLE * abs(last[0])

    def info(self):
        gap = 0.5 * self.problem.alpha * float((self.distance**2).sum())
        return FitInfo(
            n_iter=len(self._objectives),
            converged=self.converged,
            objective=tuple(self._objectives) or (in_units(self.values(self.at).sum(), self._scale),),
            dual_gap=in_units(gap, self._scale),
            n_drawn=self.rows.n_features_in,
            n_nonzero=int(np.count_nonzero(self.at.w.any(axis=0))),
            alpha=self.problem.alpha,
            n_projections=self.n_projections,
            n_conjugate=self.n_conjugate,
            error_bound=float(min(self.bound.max(), np.finfo(np.float64).max)),
        )

    def solution(self):
        w, b = self._scale * self.at.w, self._scale * self.at.b
        return np.arange(w.shape[1]), self.inputs, *((w[0], b[0]) if len(b) == 1 else (w, b))


def descend(fit, steps, max_iter):
    """`newton` at ever smaller penalties, down to the fit's own, from one that the losses' curvature does not exceed much.

    Far from w* a small penalty makes systems that are hard to solve, for steps that lead nowhere.
    """
    alpha, tol = fit.problem.alpha, fit.tol
    fit.n_projections = fit.n_conjugate = n_falls = 0
    if fit.problem.loss.name != "squared" and not fit.at.w.any():
        n_falls = max(0, int(np.log(max(fit.total_curvature() * SHARE / alpha, 1.0)) / np.log(FALL)))
    for k in range(n_falls, -1, -1):
        fit.is_on_the_way = k > 0
        if n_falls:
            fit.begin(alpha * FALL**k, ROUGH if k else tol)
        newton(fit, steps, max_iter)


def newton(fit, steps, max_iter):
    """Newton's method until the fit's bound is below its tolerance, or rounding allows no more."""
    least, waited, before = np.inf, 0, None
    for _ in range(max_iter):
        if fit.converged:
            return
        step, n_conjugate = steps(fit, _shares(fit, before))
        fit.n_conjugate += n_conjugate
        before = fit.distance
        fit.move_to(fit.at.along(_line_search(fit, step), step))
        fit.look()
        if fit.record():
            return
        worst = float(fit.bound.max())
        waited = 0 if worst <= 0.5 * least or fit.has_fallen() else waited + 1
        least = min(worst, least)
        if waited == PATIENCE:
            return


def _shares(fit, before):
    """To which share the residual of each output has to fall; above 1: it need not. Eisenstat & Walker (1996), choice 2."""
    needed = np.minimum(SAFETY * fit.tol / np.clip(fit.bound, 1e-300, 1.0), 1.0)
    if fit.problem.loss.name == "squared":
        share = needed
    else:
        forcing = (
            FIRST if before is None else np.minimum(FIRST, np.minimum(fit.distance / np.maximum(before, 1e-300), 1.0) ** 2)
        )
        share = np.maximum(forcing, needed)
    return np.where(fit.bound <= fit.tol, 2.0, share)


def _line_search(fit, step):
    """t of each output: 1, or where that goes too far a t that about halves the slope, which never falls along the step."""
    t, start = np.ones(len(step.b)), _slopes(fit, fit.at, step)
    if fit.problem.loss.name == "squared":
        return t
    before, low, high = fit.values(fit.at), 0.0 * t, t
    slope_low, slope_high = start, -start
    for _ in range(40):
        there = fit.at.along(t, step)
        slopes = _slopes(fit, there, step)
        far = (slopes > 0) & ((slopes > -0.5 * start) | (fit.values(there) > before * (1 + 1e-14)))
        short = (slopes < 0.5 * start) & (t < 1)
        if not (far | short).any():
            break
        low, slope_low = np.where(short, t, low), np.where(short, slopes, slope_low)
        high, slope_high = np.where(far, t, high), np.where(far, slopes, slope_high)
        secant = slope_low / np.minimum(slope_low - slope_high, -1e-300)
        t = np.where(far | short, low + (high - low) * np.clip(secant, 0.1, 0.9), t)
    return np.where(start < 0, t, 0.0)


def _slopes(fit, point, step):
    v = fit.problem.dual_point(fit.margins(point))
    return dots(v, step.f + step.b[:, None]) + fit.problem.alpha * dots(point.w, step.w)
