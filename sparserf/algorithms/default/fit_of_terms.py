"""The weights of given terms, fitted to rows wherever they are, by Newton steps of all targets.

With p terms phi, weights w_k and an intercept b_k for each target, the minimum is sought of

    (1/n) sum_i s_i L(b + w phi(x_i), y_i) + (lambda / 2) sum_kj H_kjj (w_kj - w0_kj)^2

where w0 are the weights at the beginning, and H_k = (1/n) Phi' diag(s L'') Phi there. A pass over
the rows computes the loss, its gradient and H, from which a step follows. What the rows leave open
stays as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.arrays import namespace
from ..._base.progress import check_not_ended
from ...solvers.nonnegative import nonnegative_minimum
from ..fit_progress import in_units
from .fold_path import LEAST_CURVATURE, eliminate_intercept

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ..._base.types import Array, RowVector
    from ...features import FeatureSet
    from ...losses import Loss
    from ...model import SparseModel
    from ...rows import Block, Rows
    from ..task import Task

# A rise of the objective by this share of it is rounding; an objective that is smaller than the
# second is 0 but for rounding, in units of the target.
ROUNDING, LEAST_OBJECTIVE = 1e-12, 1e-10
# Where a step was too long, least curvatures rise by this factor, to this share of the largest.
# Quantiles of rules, where few rows are curved, else make steps that are halved without end: 123
# terms take 35 to 55 passes, with the least curvature as it is more than 100.
RAISED, MOST_RAISED = 5.0, 0.05


@dataclass(frozen=True, eq=False)
class FitOfTerms:
    """The fit of the weights of given terms to the rows of a task.

    rows : the rows, encoded as the terms see them
    features : the terms
    sign : 1 for terms whose weights must be at least 0, -1 at most 0, 0 of any sign
    dtype : that of the products in H; None: that of X. Single precision is enough where a penalty
        makes up for it.
    fixed : nothing, or the one row vector (n_targets, n_rows) that is added to the margins
    tilt : a linear function of weights and intercepts, as their factors, that is taken off the mean
        loss
    output : the target that is fitted; None: all
    least_curvature : the least curvature of a row, as a share of the largest that it may have
    """

    rows: Rows
    features: FeatureSet
    task: Task
    sign: np.ndarray | int = 0
    fit_intercept: bool = True
    dtype: DTypeLike = np.float32
    fixed: tuple[RowVector, ...] = ()
    tilt: tuple[np.ndarray | float, np.ndarray | float] = (0.0, 0.0)
    output: int | None = None
    least_curvature: float = LEAST_CURVATURE

    @property
    def _own(self):
        """The places of the targets that are fitted."""
        return slice(None) if self.output is None else slice(self.output, self.output + 1)

    @cached_property
    def units(self) -> np.ndarray:
        """The unit of each target."""
        return np.array([self.task.unit(y) for y in self.task.targets[self._own]])

    @cached_property
    def _targets(self):
        """The targets in their units, side by side."""
        return np.stack([self.task.target_of(y) for y in self.task.targets[self._own]])

    @property
    def _centers(self):
        """What is taken off each target."""
        return np.ravel(np.stack(self.task.centers[self._own]))

    @property
    def is_square(self) -> bool:
        """Whether one Newton step is the solution."""
        return self.task.losses[0].is_quadratic and not self.task.is_joint

    def in_units(self, model: SparseModel) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights and intercepts of a model in the units of the targets."""
        w = np.atleast_2d(model.coef)[self._own] / self.units[:, None]
        return w, (np.atleast_1d(model.intercept)[self._own] - self._centers) / self.units

    def in_units_of_y(self, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and intercepts in the units of y."""
        return self.units[:, None] * w, self._centers + self.units * b

    def total(self, losses: np.ndarray) -> float:
        """Return the sum over the outputs of mean losses, in the units of y."""
        degree = self.task.loss.degree
        pairs = zip(losses.tolist(), self.units.tolist(), strict=True)
        return sum(in_units(loss, unit, degree) for loss, unit in pairs)

    def slopes_at(self, f: RowVector, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the mean loss of each target at margins f + b, and its slopes there in the weights
        and in the intercepts."""
        ask = partial(slopes, self.features, self._losses, b)
        own = self.rows.sum(ask, self._targets, self.task.weight, f)
        value, g, g_b = (part / self.rows.n_rows for part in own)
        return value, g, g_b

    @property
    def _losses(self):
        """The loss of each target; None: the multinomial loss of all."""
        return None if self.task.is_joint else self.task.losses[self._own]

    def sums_at(self, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the mean loss of each target, and means over the rows: H, Phi'h, h, Phi'u, u of
        `moments`, the last two less the tilt."""
        own = self.rows.sum(self._sums_of_block(w, b), self._targets, self.task.weight, *self.fixed)
        value, *sums = (np.require(part, requirements="W") for part in own)
        for part in (value, *sums):
            part /= self.rows.n_rows  # in place: H is large
        for part, tilt in zip(sums[-2:], self.tilt, strict=True):
            part -= tilt
        return value, sums

    def _sums_of_block(self, w, b):
        """Return the function of a block that `sums_at` sums."""
        return partial(
            moments, self.features, self._losses, self.dtype, self.least_curvature, (w, b)
        )

    def diagonal(self, sums: list[np.ndarray]) -> np.ndarray:
        """Return the diagonal of H of each target, (n_targets, n_terms)."""
        return np.einsum("kjj->kj", sums[0]).copy()

    def newton(
        self,
        w: np.ndarray,
        b: np.ndarray,
        own: np.ndarray,
        sums: list[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and intercepts after a Newton step of each target.

        own : the curvatures of the penalty
        sums : of `sums_at`, Phi'u with the slopes of the penalty; H is lost
        """
        w, b = w.copy(), b.copy()
        for k, (H, m, total, g, slope) in enumerate(zip(*sums, strict=True)):
            eliminate_intercept(H, m, total if self.fit_intercept else 0.0)
            if self.fit_intercept and total > 0:
                g = g - m * (slope / total)
            H[np.diag_indices_from(H)] += own[k] + np.finfo(float).tiny
            new = minimum_of_signs(H, H @ w[k] - g, self.sign)
            if new is None:  # no ridge makes H definite
                continue
            if self.fit_intercept and total > 0:
                b[k] -= (slope + m @ (new - w[k])) / total
            w[k] = new
        return w, b


@dataclass(frozen=True, eq=False)
class Descent:
    """What `minimised` has found: the weights and intercepts, the mean loss of each target there,
    and whether the objective had come to rest."""

    solution: tuple[np.ndarray, np.ndarray]
    losses: np.ndarray
    has_converged: bool


def minimised(
    fit: FitOfTerms, w: np.ndarray, b: np.ndarray, strength: float, passes: int, falls: float
) -> Descent:
    """Return the minimum of the objective with lambda = strength, by Newton steps from w and b; a
    step that does not lower it is halved, and those after it are shorter.

    passes : the most passes over the rows
    falls : a fall of the objective by less than this share of it ends them
    """
    start, least, diagonal, has_converged = w, np.inf, None, False
    best, losses = (w, b), np.zeros(len(w))
    for k in range(passes):
        check_not_ended()
        value, sums = fit.sums_at(w, b)
        diagonal = fit.diagonal(sums) if diagonal is None else diagonal
        penalty = strength / 2 * float((diagonal * (w - start) ** 2).sum())
        size = float(value.sum()) + penalty
        objective = size - float(np.sum(fit.tilt[0] * w) + np.sum(fit.tilt[1] * b))
        if objective < least:
            fall, least, best, losses = least - objective, objective, (w, b), value
            has_converged = fall < falls * (size + LEAST_OBJECTIVE)
            if k == passes - 1 or has_converged:
                break
            sums[-2] += strength * diagonal * (w - start)
            w, b = fit.newton(w, b, strength * diagonal, sums)
        elif objective - least <= ROUNDING * (size + LEAST_OBJECTIVE):
            has_converged = True
            break
        else:
            w, b = (best[0] + w) / 2, (best[1] + b) / 2
            fit = replace(fit, least_curvature=min(RAISED * fit.least_curvature, MOST_RAISED))
    return Descent(best, losses, has_converged)


def minimum_of_signs(H: np.ndarray, c: np.ndarray, sign: np.ndarray | int) -> np.ndarray | None:
    """Return the w of least (1/2) w'H w - c'w whose entries have the signs that are asked for; None
    where no small ridge makes H definite."""
    sign = np.broadcast_to(sign, c.shape)
    if not len(c):
        return c
    if not (sign < 0).any():
        return nonnegative_minimum(H, c, sign > 0)
    turn = np.where(sign < 0, -1.0, 1.0)
    return turn * nonnegative_minimum(turn[:, None] * H * turn, turn * c, sign != 0)


def moments(
    features: FeatureSet,
    losses: list[Loss] | None,
    dtype: DTypeLike,
    least_curvature: float,
    at: tuple[np.ndarray, np.ndarray],
    block: Block,
    y: Array,
    s: Array,
    *fixed: Array,
) -> tuple[np.ndarray, ...]:
    """Return sums over the rows of a block, for each target: s L, Phi' diag(h) Phi, Phi'h, h,
    Phi'u, u, with h = s L'' and u = s L'.

    at : the weights w and intercepts b
    losses : the loss of each target; None: the multinomial loss of all
    dtype, least_curvature, fixed : as in `FitOfTerms`
    """
    (w, b), xp = at, namespace(s)
    K, z = len(w), margins_of(features, w, block, fixed)
    found: list[list[Any]] = [[], [], [], [], [], []]
    for k, (value, u, h) in enumerate(_of_each(losses, z, b, y, s, least_curvature)):
        of_square = losses is not None and losses[k].is_quadratic and k > 0
        H = found[1][0] if of_square else _gram(features, block, h, dtype)
        m = found[2][0] if of_square else block.correlate(features, h)
        sums = float(xp.sum(value)), H, m, float(xp.sum(h)), block.correlate(features, u)
        for part, own in zip(found, (*sums, float(xp.sum(u))), strict=True):
            part.append(own)
    return tuple(np.reshape(np.stack(part), (K, *np.shape(part[0]))) for part in found)


def slopes(
    features: FeatureSet,
    losses: list[Loss] | None,
    b: np.ndarray,
    block: Block,
    y: Array,
    s: Array,
    f: Array,
) -> tuple[np.ndarray, ...]:
    """Return sums over the rows of a block, for each target: s L, Phi'u, u at margins f + b, as
    `moments` has them."""
    xp, found = namespace(s), []
    for value, u, _ in _of_each(losses, f, b, y, s):
        found.append((float(xp.sum(value)), block.correlate(features, u), float(xp.sum(u))))
    return tuple(np.stack(part) for part in zip(*found, strict=True))


def margins_of(
    features: FeatureSet, w: np.ndarray, block: Block, fixed: tuple[Array, ...]
) -> Array:
    """Return Phi w of the rows of a block, with what is added to it."""
    z = block.apply(features, w)
    return z + fixed[0] if fixed else z


def _of_each(losses, z, b, y, s, least_curvature=0.0):
    """Yield s L, s L' and s L'' of each target at margins z + b."""
    xp = namespace(s)
    if losses is None:
        return _of_classes(xp, z, b, y, s)
    return _of_targets(xp, z, b, y, s, losses, least_curvature)


def _gram(features, block, h, dtype):
    """Return Phi' diag(h) Phi."""
    largest = float(namespace(h).max(h)) or 1.0
    H = block.gram(features, features, h / largest, dtype)
    H *= largest
    return H


def _of_targets(xp, z, b, y, s, losses, least_curvature):
    """Yield s L, s L' and s L'' of each target."""
    for k, loss in enumerate(losses):
        z_k, y_k = z[k, ...] + float(b[k]), y[k, ...]
        h = loss.curvature(z_k, y_k)
        least = least_curvature * loss.smoothness if np.isfinite(loss.smoothness) else 0.0
        yield (
            s * loss.value(z_k, y_k),
            s * loss.derivative(z_k, y_k),
            s * xp.where(h < least, least + 0 * h, h),
        )


def _of_classes(xp, z, b, y, s):
    """Yield the same of each class; the loss is that of the rows of the class."""
    z, e, total = softmax_parts(xp, z, b)
    for k in range(len(b)):
        p, own = e[k, ...] / total, xp.where(y[k, ...] > 0, s, 0 * s)
        h = p * (1 - p)
        h = xp.where(h < LEAST_CURVATURE / 4, LEAST_CURVATURE / 4 + 0 * h, h)
        yield own * (xp.log(total) - z[k, ...]), s * p - own, s * h


def softmax_parts(xp: Any, z: Array, b: np.ndarray) -> tuple[Array, Array, Array]:
    """Return margins z + b, less the largest of each row, their exponentials, and the sum of
    these."""
    z = xp.stack([z[k, ...] + float(each) for k, each in enumerate(b)])
    z = z - xp.max(z, axis=0)
    e = xp.exp(z)
    return z, e, xp.sum(e, axis=0)
