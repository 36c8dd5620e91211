"""How near a point is to the optimum: gradient and bound, from one pass over the rows."""

import numpy as np

from ..solvers.krylov import norms
from . import rounding

# Inputs up to which their second moments are made for a nearer bound.
FEW = 256
# What is left of a bound is hardly more than rounding.
HARDLY = 1e-5


class Certificate:
    """What the rows tell of a point: |w - w*| is at most distance + rounding, a number for each output.

    v, h : row vectors
        The dual point, and the curvature of each row.
    total, means : ndarrays
        The sum of h, and Z'h, of each output: what the intercept takes part with in a Newton step.
    g : ndarray of shape (n_outputs, n_features)
        The gradient alpha w + Z'v.
    """

    def __init__(self, inputs, problem, at, tol):
        self._inputs, self._problem, self._at, self._tol = inputs, problem, at, tol
        self.v, self.h = problem.look_at(at.f, at.b)
        slope, self.total = problem.vectors.totals(self.v, self.h)
        size_z, size_v = problem.sizes_at(at, self.v)
        in_z = rounding.of_margins(inputs, at.way, size_z, np.abs(problem.follow(self.total, slope)))
        in_v = rounding.of_dual_point(problem.loss, in_z, size_v)
        curved = problem.curved(self.h) if at.knows_u else None
        a = problem.dual_of(at.u, self.v, curved) if at.knows_u else None
        in_rows, self.means, z_a = self._correlations(a)
        self.g = problem.alpha * at.w + in_rows
        in_g = rounding.of_gradient(inputs, problem.alpha, at.w, in_v, size_v)
        # |w - w*| <= |w - w~| = sqrt(2 gap / alpha) for w~ = -Z'v / alpha, v the dual point.
        self.distance, self.rounding = norms(self.g) / problem.alpha, norms(in_g) / problem.alpha
        self._judge()
        if not self.converged and a is not None:
            self._take_if_nearer(*self._distance_from(a, z_a, curved, in_z))
        with np.errstate(over="ignore"):
            self.gap = 0.5 * float(((np.sqrt(problem.alpha) * (self.distance + self.rounding)) ** 2).sum())
        if not self.converged and inputs.n_features <= FEW and (self.distance <= self.rounding).all():
            self._take_if_nearer(*rounding.nearby(inputs, problem, at, self.g, in_g))

    def _correlations(self, a):
        """(Z'v; Z'h, which the next step needs where there is an intercept; Z'a, or None), all in one pass."""
        quadratic, is_around_means = self._problem.loss.is_quadratic, self._inputs.is_around_means
        asks_means = self._problem.fit_intercept and not (quadratic and is_around_means)  # else they are 0
        asked = [self.v, *[self.h] * asks_means, *([] if a is None else [a])]
        answers = self._inputs.correlate_each(*asked)
        means = answers[1] if asks_means else np.zeros_like(answers[0])
        return answers[0], means, None if a is None else answers[-1]

    def _distance_from(self, a, z_a, curved, in_z):
        """(distance, rounding) by a dual point a that comes of u, and Z'a: of an ill-conditioned X it is nearer than v.

        gap = n/2 sum (a - v)^2 / h + alpha/2 |w + Z'a / alpha|^2 where the losses are quadratic, and at most twice the first of
        the logistic. An error e in z adds sqrt(smoothness) |e| to the root of twice the first.
        """
        problem, w = self._problem, self._at.w
        alpha, loss = problem.alpha, problem.loss
        between, beside, size_a, is_in_domain = problem.distances_to(a, self.v, curved)
        first = np.sqrt(2.0 if loss.name == "logistic" else 1.0) * between
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
        """bound: on |w - w*| / |w*|, of each output."""
        total = self.distance + self.rounding
        room = norms(self._at.w) - total  # |w*| is at least this
        self.bound = np.divide(total, room, out=np.where(total > 0, np.inf, 0.0), where=room > 0)
        self.converged = bool(self.bound.max() <= self._tol)

    @property
    def is_rounding(self):
        """Of each output, whether what is left is hardly more than rounding."""
        return self.distance <= HARDLY * self.rounding
