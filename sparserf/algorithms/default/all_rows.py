"""The weights of a model that was found on a sample of the rows, fitted to all rows in few passes.

With p terms phi, weights w_k and an intercept b_k for each target, and (w0, b0) those of the
sample, the minimum over all rows is sought of

    (1/n) sum_i s_i L(b + w phi(x_i), y_i) + (lambda / 2) sum_kj H_kjj (w_kj - w0_kj)^2

with H_k = (1/n) Phi' diag(s L'') Phi at w0, and lambda the number of rows of the sample over that
of the others: with few others the weights stay, with ever more they become those of all rows. A
pass over the rows computes the loss, its gradient and H, from which a Newton step of all targets
follows: a square needs one pass. What the rows leave open stays as the sample has it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.arrays import namespace
from ..._base.progress import check_not_ended
from ...solvers.nonnegative import nonnegative_minimum
from .fold_path import LEAST_CURVATURE, eliminate_intercept

if TYPE_CHECKING:
    from ..._base.types import Array
    from ...features import FeatureSet
    from ...losses import Loss
    from ...model import SparseModel
    from ...rows import Block
    from ..task import Task

# The most passes where the loss is no square.
PASSES = 3
# A fall of the objective by less than this share of it ends them.
FALLS = 1e-4


def fitted_to_all_rows(
    model: SparseModel, n_sample: int, task: Task, fit_intercept: bool
) -> SparseModel:
    """Return the model of a sample of so many rows with weights for all rows of the task."""
    rows = task.raw.staged(model.features.stage)
    features = model.features.staged(None)
    units = np.array([task.unit(y) for y in task.targets])
    center = np.ravel(np.stack(task.centers))
    w = np.atleast_2d(model.coef) / units[:, None]
    b = (np.atleast_1d(model.intercept) - center) / units
    targets = np.stack([task.target_of(y) for y in task.targets])
    losses = task.losses
    ask = partial(moments, features, None if task.is_joint else losses)
    is_square = losses[0].is_quadratic and not task.is_joint

    strength = n_sample / (rows.n_rows - n_sample)
    start, best, least, diagonal = w, (w, b), np.inf, None
    for k in range(1 if is_square else PASSES):
        check_not_ended()
        own = rows.sum(partial(ask, w, b), targets, task.weight)
        value, *sums = (np.require(part, requirements="W") for part in own)
        for part in (value, *sums):
            part /= rows.n_rows  # in place: H is large
        diagonal = np.einsum("kjj->kj", sums[0]).copy() if diagonal is None else diagonal
        penalty = strength / 2 * float((diagonal * (w - start) ** 2).sum())
        value = float(value.sum()) + penalty
        if value < least:
            falls, least, best = least - value, value, (w, b)
            if (k == PASSES - 1 and not is_square) or falls < FALLS * value:
                break
            pull = strength * diagonal, w - start
            w, b = newton(w, b, pull, sums, features.nonnegative, fit_intercept)
        else:
            w, b = (best[0] + w) / 2, (best[1] + b) / 2
    w, b = (w, b) if is_square else best
    coef, intercept = np.reshape(units[:, None] * w, np.shape(model.coef)), center + units * b
    is_one = np.ndim(model.intercept) == 0
    return replace(model, coef=coef, intercept=float(intercept[0]) if is_one else intercept)


def newton(
    w: np.ndarray,
    b: np.ndarray,
    pull: tuple[np.ndarray, np.ndarray],
    sums: list[np.ndarray],
    nonnegative: np.ndarray,
    fit_intercept: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and intercepts after a Newton step of each target.

    pull : the curvatures of the penalty, and how far the weights have come from where they began
    sums : of `moments`, over all rows: H, which is lost, Phi'h, the sum of h, Phi'u, the sum of u
    """
    w, b = w.copy(), b.copy()
    for k, (H, m, total, g, slope) in enumerate(zip(*sums, strict=True)):
        own, moved = pull[0][k], pull[1][k]
        eliminate_intercept(H, m, total if fit_intercept else 0.0)
        g = g + own * moved
        if fit_intercept and total > 0:
            g = g - m * (slope / total)
        H[np.diag_indices_from(H)] += own + np.finfo(float).tiny
        new = nonnegative_minimum(H, H @ w[k] - g, nonnegative)
        if fit_intercept and total > 0:
            b[k] -= (slope + m @ (new - w[k])) / total
        w[k] = new
    return w, b


def moments(
    features: FeatureSet,
    losses: list[Loss] | None,
    w: np.ndarray,
    b: np.ndarray,
    block: Block,
    y: Array,
    s: Array,
) -> tuple[np.ndarray, ...]:
    """Return sums over the rows of a block, for each target: s L, Phi' diag(h) Phi, Phi'h, h,
    Phi'u, u, with h = s L'' and u = s L' at weights w and intercepts b.

    losses : the loss of each target; None: the multinomial loss of all
    """
    K, xp = len(w), namespace(s)
    z = block.apply(features, w)
    each = _of_classes(xp, z, b, y, s) if losses is None else _of_targets(xp, z, b, y, s, losses)
    found: list[list[Any]] = [[], [], [], [], [], []]
    for k, (value, u, h) in enumerate(each):
        of_square = losses is not None and losses[k].is_quadratic and k > 0
        H = found[1][0] if of_square else _gram(features, block, h)
        m = found[2][0] if of_square else block.correlate(features, h)
        sums = float(xp.sum(value)), H, m, float(xp.sum(h)), block.correlate(features, u)
        for part, own in zip(found, (*sums, float(xp.sum(u))), strict=True):
            part.append(own)
    return tuple(np.reshape(np.stack(part), (K, *np.shape(part[0]))) for part in found)


def _gram(features, block, h):
    """Return Phi' diag(h) Phi, of products in single precision: the penalty makes up for it."""
    largest = float(namespace(h).max(h)) or 1.0
    H = block.gram(features, features, h / largest, np.float32)
    H *= largest
    return H


def _of_targets(xp, z, b, y, s, losses):
    """Yield s L, s L' and s L'' of each target."""
    for k, loss in enumerate(losses):
        z_k, y_k = z[k, ...] + float(b[k]), y[k, ...]
        h = loss.curvature(z_k, y_k)
        least = LEAST_CURVATURE * loss.smoothness if np.isfinite(loss.smoothness) else 0.0
        yield (
            s * loss.value(z_k, y_k),
            s * loss.derivative(z_k, y_k),
            s * xp.where(h < least, least + 0 * h, h),
        )


def _of_classes(xp, z, b, y, s):
    """Yield the same of each class; the loss is that of the rows of the class."""
    z = xp.stack([z[k, ...] + float(each) for k, each in enumerate(b)])
    z = z - xp.max(z, axis=0)
    e = xp.exp(z)
    total = xp.sum(e, axis=0)
    for k in range(len(b)):
        p, own = e[k, ...] / total, xp.where(y[k, ...] > 0, s, 0 * s)
        h = p * (1 - p)
        h = xp.where(h < LEAST_CURVATURE / 4, LEAST_CURVATURE / 4 + 0 * h, h)
        yield own * (xp.log(total) - z[k, ...]), s * p - own, s * h
