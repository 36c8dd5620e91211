"""What one pass over the rows tells of a point, and how near it is to the optimum by that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..solvers.krylov import norms
from . import rounding

if TYPE_CHECKING:
    from .._base.types import RowVector
    from .inputs import Inputs
    from .point import Point
    from .problem import LinearProblem

# Inputs up to which their second moments are made for a nearer bound.
FEW = 256
# What is left of a bound is hardly more than rounding.
HARDLY = 1e-5


class Look:
    """What the rows tell of a point, whatever the penalty.

    v, h : row vectors
        The dual point, and the curvature of each row.
    slope, total, size_z, size_v : ndarrays of shape (n_outputs,)
        The sums of v and of h, and the sizes of margins and dual point in which rounding is counted.
    z_v, means : ndarrays of shape (n_outputs, n_features)
        Z'v, and Z'h: by how much the intercept takes part in a Newton step.
    """

    v: RowVector
    h: RowVector
    slope: np.ndarray
    total: np.ndarray
    size_z: np.ndarray
    size_v: np.ndarray
    z_v: np.ndarray
    means: np.ndarray

    def __init__(self, inputs: Inputs, problem: LinearProblem, at: Point):
        self._inputs, self._problem = inputs, problem
        self.v, self.h = problem.look_at(at.f, at.b)
        self.slope, self.total = problem.vectors.totals(self.v, self.h)
        self.size_z, self.size_v = problem.sizes_at(at, self.v)

    def correlate(self, a: RowVector) -> np.ndarray | None:
        """Make z_v and means; returns Z'a of another dual point a, None for None. All in one pass."""
        quadratic, is_around_means = self._problem.loss.is_quadratic, self._inputs.is_around_means
        asks_means = self._problem.fit_intercept and not (quadratic and is_around_means)  # else they are 0
        asked = [self.v, *[self.h] * asks_means, *([] if a is None else [a])]
        answers = self._inputs.correlate_each(*asked)
        self.z_v, self.means = answers[0], answers[1] if asks_means else np.zeros_like(answers[0])
        return None if a is None else answers[-1]


class Certificate:
    """How near a point is to the optimum: |w - w*| is at most distance + rounding, a number for each output.

    g : ndarray of shape (n_outputs, n_features)
        The gradient alpha w + Z'v.
    gap : float
        A bound on the objective's distance.
    bound : ndarray of shape (n_outputs,)
        On |w - w*| / |w*|.
    """

    look: Look
    distance: np.ndarray
    rounding: np.ndarray
    bound: np.ndarray
    converged: bool

    def __init__(self, inputs: Inputs, problem: LinearProblem, at: Point, tol: float, look: Look | None = None):
        """look: what is known of the point already, where it was looked at for another penalty; no pass is needed then."""
        self._inputs, self._problem, self._at, self._tol = inputs, problem, at, tol
        self.look, a = look or Look(inputs, problem, at), None
        if look is None:
            tells = at.knows_u and np.isfinite(problem.loss.dual_growth)
            curved = problem.curved(self.look.h) if tells else None
            a = problem.dual_of(at.u, self.look.v, curved) if tells else None
            z_a = self.look.correlate(a)
        self.g: np.ndarray = problem.alpha * at.w + self.look.z_v
        in_z, in_g = self._errors()
        # |w - w*| <= |w - w~| = sqrt(2 gap / alpha) for w~ = -Z'v / alpha, v the dual point.
        self.distance, self.rounding = norms(self.g) / problem.alpha, norms(in_g) / problem.alpha
        self._judge()
        if not self.converged and a is not None:
            self._take_if_nearer(*self._distance_from(a, z_a, curved, in_z))
        with np.errstate(over="ignore"):
            self.gap: float = 0.5 * float(((np.sqrt(problem.alpha) * (self.distance + self.rounding)) ** 2).sum())
        if not self.converged and inputs.n_features <= FEW and (self.distance <= self.rounding).all():
            self._take_if_nearer(*rounding.nearby(inputs, problem, at, self.g, in_g))

    def _errors(self):
        """(|z - z^|, |g_j - g_j^|), what rounding may have done to margins and gradient."""
        inputs, problem, look, at = self._inputs, self._problem, self.look, self._at
        astray = np.abs(problem.follow(look.total, look.slope))
        in_z = rounding.of_margins(inputs, at.way, look.size_z, astray)
        in_v = rounding.of_dual_point(problem.smoothness_at(look.h), in_z, look.size_v)
        return in_z, rounding.of_gradient(inputs, problem.alpha, at.w, in_v, look.size_v)

    def _distance_from(self, a, z_a, curved, in_z):
        """(distance, rounding) by a dual point a that comes of u, and Z'a: of an ill-conditioned X it is nearer than v.

        gap = n/2 sum (a - v)^2 / h + alpha/2 |w + Z'a / alpha|^2 where the losses are quadratic, and at most `dual_growth`
        times the first. An error e in z adds sqrt(smoothness) |e| to the root of twice the first.
        """
        problem, w = self._problem, self._at.w
        alpha, loss = problem.alpha, problem.loss
        between, beside, size_a, is_in_domain = problem.distances_to(a, self.look.v, curved)
        first = np.sqrt(loss.dual_growth) * between
        in_first = loss.smoothness**0.5 * in_z + 4 * rounding.UNIT * beside
        rest = norms(alpha * w + z_a)
        in_rest = norms(rounding.of_correlation(self._inputs, size_a)) + 2 * rounding.UNIT * alpha * norms(w)
        distance = np.where(is_in_domain, first / np.sqrt(alpha) + rest / alpha, np.inf)
        return distance, in_first / np.sqrt(alpha) + in_rest / alpha

    def _take_if_nearer(self, distance, in_distance):
        nearer = distance + in_distance < self.distance + self.rounding
        self.distance, self.rounding = np.where(nearer, (distance, in_distance), (self.distance, self.rounding))
        self._judge()

    def _judge(self):
        total = self.distance + self.rounding
        room = norms(self._at.w) - total  # |w*| is at least this
        self.bound = np.divide(total, room, out=np.where(total > 0, np.inf, 0.0), where=room > 0)
        self.converged = bool(self.bound.max() <= self._tol)

    @property
    def is_rounding(self) -> np.ndarray:
        """Whether what is left is hardly more than rounding, for each output."""
        return self.distance <= HARDLY * self.rounding
