"""w* = argmin (1/n) sum_i s_i L(x_i'w + b, y_i) + (alpha/2) |w|^2: where a fit stands, how near that is, Newton's way there."""

from dataclasses import dataclass, replace

import numpy as np

from .._checks import check_flag
from ..losses import LOSSES
from ..solvers.krylov import dots, norms
from ..solvers.ridge import RidgeProblem
from ..task import Progress, Task
from . import _rounding
from ._inputs import Inputs

# A Newton step's system is solved to this share at first; and to SAFETY times what the tolerance asks for at last.
FIRST, SAFETY = 0.3, 0.5
# Steps in a row that neither halve the bound nor lower the objective, by more than NEGLIGIBLE of it, before rounding is
# taken to be in the way.
PATIENCE, NEGLIGIBLE = 4, 1e-10
# The first penalty is SHARE of the trace of the Hessian, and each next one FALL times less, met to the bound ROUGH.
SHARE, FALL, ROUGH = 0.01, 10.0, 0.3
# Most penalties on the way, since a smaller share of the trace is rounding; and steps at each.
MOST_FALLS, ON_THE_WAY = 14, 20
# Inputs up to which their second moments are made for a nearer bound.
FEW = 256
# Numbers read between two questions to the callback, some tenths of a second, and as how many more a pass counts.
OFTEN, A_CALL = 2**27, 2**14
# Curvature of a row, beside the largest, that counts as none.
FLAT = 1e-10
# What is left of a bound is hardly more than rounding.
HARDLY = 1e-5


@dataclass
class Point:
    """w and f = Z w, b, and u with w = Z'u, NaN where it is not known; a row an output. way: the steps to w added up."""

    w: np.ndarray
    f: np.ndarray
    b: np.ndarray
    u: np.ndarray
    way: np.ndarray

    @classmethod
    def at_zero(cls, k, n, d):
        return cls(np.zeros((k, d)), np.zeros((k, n)), np.zeros(k), np.zeros((k, n)), np.zeros((k, d)))

    @classmethod
    def at_w(cls, w, f, b, u):
        return cls(w, f, b, u, np.abs(w))

    def along(self, t, step):
        t = t[:, None]
        w, way = self.w + t * step.w, self.way + np.abs(t) * step.way
        return Point(w, self.f + t * step.f, self.b + t[:, 0] * step.b, self.u + t * step.u, way + np.abs(w))


def read_linear(X, y, loss, fit_intercept, sample_weight, workers, alphas):
    """(the task, all inputs, the problem over all outputs in units of scale, scale), all checked."""
    task = Task.of(X, y, loss, sample_weight, workers, several_outputs=True, losses=LOSSES)
    targets, fit_intercept = np.vstack(task.targets), check_flag("fit_intercept", fit_intercept)
    problem = task.problem(RidgeProblem, targets, 1.0, fit_intercept)
    return task, Inputs.of(task.rows, task.weight, fit_intercept, alphas), problem, task.scale(targets)


class Recovery:
    """The problem over all outputs, a point, and its certificate. z = Z w + b + offset, the last a number a row."""

    def __init__(self, inputs, problem, scale=1.0, offset=0.0, callback=None):
        self.inputs, self.problem, self._offset = inputs, problem, offset
        self.progress = Progress(callback, scale)
        self.has_diverged = self.is_on_the_way = self.converged = False
        self.gap, self.bound = np.inf, np.array([np.inf])
        self.n_projections = self.n_conjugate = self._unasked = 0
        self.move_to(Point.at_zero(*problem.y.shape, inputs.n_features))

    def begin(self, alpha, tol):
        """From where it stands, the problem of another penalty."""
        self.alpha, self.tol, self.progress.objectives = alpha, tol, []
        self.problem = replace(self.problem, alpha=alpha / self.inputs.unit**2)
        self.look()

    def move_to(self, point):
        point.b = self.problem.best_intercepts(point.f + self._offset, point.b)
        self.at = point
        self.z = self.margins(point)

    def margins(self, point):
        return point.f + point.b[:, None] + self._offset

    def look(self):
        """Gradient, and the certificate: |w - w*| is at most distance + rounding, a number an output. One pass."""
        at, problem, inputs = self.at, self.problem, self.inputs
        self.v, self.h = problem.dual_point(self.z), problem.curvature(self.z)
        in_z = _rounding.of_margins(inputs, problem, at, self._offset, self.v, self.h)
        in_v = _rounding.of_dual_point(problem, self.v, in_z)
        knows_u = bool(np.isfinite(at.u).all() and at.u.any())
        a = self._from_u() if knows_u else self.v
        in_rows, self.means, z_a = self._correlations(a, knows_u)
        self.g = problem.alpha * at.w + in_rows
        in_g = _rounding.of_gradient(inputs, problem, at.w, self.v, in_v)
        # |w - w*| <= |w - w~| = sqrt(2 gap / alpha) for w~ = -Z'v / alpha, v the dual point.
        self.distance, self.rounding = norms(self.g) / problem.alpha, norms(in_g) / problem.alpha
        self._judge()
        if not self.converged and knows_u:
            self._take_if_nearer(*self._distance_from(a, z_a, in_z))
        with np.errstate(over="ignore"):
            self.gap = 0.5 * float(((np.sqrt(problem.alpha) * (self.distance + self.rounding)) ** 2).sum())
        if not self.converged and inputs.n_features <= FEW and (self.distance <= self.rounding).all():
            found = [
                _rounding.nearby(inputs, replace(problem, y=y), z, g, e)
                for y, z, g, e in zip(problem.y, self.z, self.g, in_g, strict=True)
            ]
            self._take_if_nearer(*np.transpose(found))

    def _correlations(self, a, knows_u):
        """Z'v; Z'h, which the next step needs where there is an intercept; and Z'a: all in one pass."""
        asks_means = self.problem.fit_intercept and not self.inputs.are_around(self.h)
        asked = [self.v, *[self.h] * asks_means, *[a] * knows_u]
        answers = np.split(self.inputs.correlate(np.vstack(asked)), len(asked))
        return answers[0], answers[1] if asks_means else np.zeros_like(answers[0]), answers[-1]

    def _is_curved(self):
        return self.h > FLAT * self.h.max(axis=1, keepdims=True)

    def _from_u(self):
        """The dual point a = -alpha u, or v in rows that are flat."""
        curved = self._is_curved()
        a = np.where(curved, -self.problem.alpha * self.at.u, self.v)
        if not self.problem.fit_intercept:
            return a
        h = np.where(curved, self.h, 0.0)  # asks for sum a = 0
        return a - h * np.divide(a.sum(axis=1), h.sum(axis=1), out=np.zeros(len(h)), where=curved.any(axis=1))[:, None]

    def _distance_from(self, a, z_a, in_z):
        """(distance, rounding) by a dual point a and Z'a: of an ill-conditioned X, `_from_u` is the nearer one.

        gap = n/2 sum (a - v)^2 / h + alpha/2 |w + Z'a / alpha|^2 where the losses are quadratic, and at most twice the first of
        the logistic. An error e in z adds sqrt(smoothness) |e| to the root of twice the first.
        """
        alpha, loss, inputs, curved = self.problem.alpha, self.problem.loss, self.inputs, self._is_curved()
        root = np.sqrt(np.where(curved, self.h, 1.0))
        twice = 2.0 if loss.name == "logistic" else 1.0
        first = np.sqrt(twice) * norms(np.where(curved, (a - self.v) / root, 0.0))
        in_first = loss.smoothness**0.5 * in_z + 4 * _rounding.UNIT * norms(
            np.where(curved, (np.abs(self.v) + np.abs(a)) / root, 0.0)
        )
        rest = norms(alpha * self.at.w + z_a)
        in_rest = norms(_rounding.of_correlation(inputs, self.problem, a)) + 2 * _rounding.UNIT * alpha * norms(self.at.w)
        return np.where(
            _rounding.in_domain(self.problem, a), first / np.sqrt(alpha) + rest / alpha, np.inf
        ), in_first / np.sqrt(alpha) + in_rest / alpha

    def _take_if_nearer(self, distance, rounding):
        nearer = distance + rounding < self.distance + self.rounding
        self.distance, self.rounding = np.where(nearer, (distance, rounding), (self.distance, self.rounding))
        self._judge()

    def _judge(self):
        total = self.distance + self.rounding
        room = norms(self.at.w) - total  # |w*| is at least this
        unknown = np.where(total > 0, np.inf, 0.0)
        self.bound = np.divide(total, room, out=unknown, where=room > 0)
        self.converged = bool(self.bound.max() <= self.tol)

    @property
    def is_rounding(self):
        """Of each output, whether what is left is hardly more than rounding."""
        return self.distance <= HARDLY * self.rounding

    def total_curvature(self):
        """Trace of the Hessian of the losses where they are most curved, or more."""
        return self.problem.loss.smoothness * float(self.inputs.sizes @ self.inputs.sizes)

    def values(self, point):
        """The objective of each output."""
        return self.problem.mean_losses(self.margins(point)) + 0.5 * norms(np.sqrt(self.problem.alpha) * point.w) ** 2

    def record(self):
        """End an iteration: note the objective, tell the callback; returns whether to stop."""
        self.progress.note(self.values(self.at).sum())
        if not self.is_on_the_way:
            self._ask()
        return self.converged or self.ended_by_callback

    def _ask(self):
        self._unasked = 0
        self.progress.ask(self.info)

    @property
    def ended_by_callback(self):
        return self.progress.ended_by_callback

    def is_told_to_stop(self):
        """After a pass over the rows within an iteration: the callback is asked each OFTEN numbers that are read."""
        self._unasked += A_CALL + self.inputs.rows.row_size * self.problem.y.size
        if self._unasked > OFTEN:
            self._ask()
        return self.ended_by_callback

    def has_fallen(self):
        """Whether the last iteration lowered the objective."""
        last = self.progress.objectives[-2:]
        return len(last) < 2 or last[1] < last[0] - NEGLIGIBLE * abs(last[0])

    def info(self, certified=True):
        return self.progress.info(
            lambda: self.values(self.at).sum(),
            self.gap,
            converged=self.converged,
            n_drawn=self.inputs.n_features,
            n_nonzero=int(np.count_nonzero(self.at.w.any(axis=0))),
            alpha=self.alpha,
            n_projections=self.n_projections,
            n_conjugate=self.n_conjugate,
            error_bound=float(min(self.bound.max(), np.finfo(np.float64).max)),
        )

    def solution(self):
        # Both are powers of two, whose ratio may overflow.
        exponent = np.frexp(self.progress.scale)[1] - np.frexp(self.inputs.unit)[1]
        most = np.finfo(np.float64).max
        with np.errstate(over="ignore", under="ignore"):
            w = np.clip(np.ldexp(self.at.w, exponent), -most, most)
            b = np.clip(self.progress.scale * self.at.b - w @ self.inputs.centre, -most, most)
        return np.arange(w.shape[1]), self.inputs.features, *((w[0], b[0]) if len(b) == 1 else (w, b))


def descend(fit, steps, max_iter):
    """`newton` at ever smaller penalties, down to the fit's own, from one that the losses' curvature does not exceed much.

    Far from w* a small penalty makes systems that are hard to solve, for steps that lead nowhere.
    """
    alpha, tol = fit.alpha, fit.tol
    fit.n_projections = fit.n_conjugate = n_falls = 0
    if fit.problem.loss.name != "squared" and not fit.at.w.any():
        n_falls = max(0, int(np.log(max(fit.total_curvature() * SHARE / fit.problem.alpha, 1.0)) / np.log(FALL)))
    for k in range(n_falls, max(0, n_falls - MOST_FALLS), -1):
        if not fit.ended_by_callback:
            fit.is_on_the_way = True
            fit.begin(alpha * FALL**k, ROUGH)
            newton(fit, steps, min(max_iter, ON_THE_WAY))
    fit.is_on_the_way = False
    if n_falls:
        fit.begin(alpha, tol)
    newton(fit, steps, max_iter)


def newton(fit, steps, max_iter):
    """Newton's method until the fit's bound is below its tolerance, or rounding allows no more."""
    least, waited, before = np.inf, 0, None
    for _ in range(max_iter):
        if fit.converged or fit.is_rounding.all() or fit.ended_by_callback:
            return
        step, n_conjugate = steps(fit, _shares(fit, before))
        fit.n_conjugate += n_conjugate
        if not all(np.isfinite(part).all() for part in (step.w, step.f)):  # a penalty that rounding does not know from 0
            return
        before = fit.distance
        fit.move_to(fit.at.along(_line_search(fit, step), step))
        fit.look()
        if fit.record():
            return
        worst = float(fit.bound.max())
        waited = 0 if worst < 0.5 * least or fit.has_fallen() else waited + 1  # < : infinite bounds do not halve
        least = min(worst, least)
        if waited == PATIENCE:
            return


def _shares(fit, before):
    """To which share the residual of each output has to fall; above 1: it need not. Eisenstat & Walker (1996), choice 2."""
    aim = np.maximum(fit.tol * norms(fit.at.w) - fit.rounding, HARDLY * fit.rounding)
    needed = SAFETY * np.maximum(aim / np.maximum(np.maximum(fit.distance, aim), 1e-300), fit.tol)
    if fit.problem.loss.name == "squared":
        share = needed
    else:
        forcing = (
            FIRST if before is None else np.minimum(FIRST, np.minimum(fit.distance / np.maximum(before, 1e-300), 1.0) ** 2)
        )
        share = np.maximum(forcing, needed)
    return np.where((fit.bound <= fit.tol) | fit.is_rounding, 2.0, share)


def _line_search(fit, step):
    """t of each output: 1, or where that goes too far a t that about halves the slope, which never falls along the step."""
    t, start = np.ones(len(step.b)), _slopes(fit, fit.at, step)
    before, low, high = fit.values(fit.at), 0.0 * t, t
    if fit.problem.loss.name == "squared" and (fit.values(fit.at.along(t, step)) <= before * (1 + NEGLIGIBLE)).all():
        return t
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
