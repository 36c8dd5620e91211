"""A step of Prox-Newton for the coefficients of all classes together: where they are coupled so much that turns creep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import namespace
from .._core.descent import largest_violation
from ..losses.classification import softmax
from .backtracking import backtrack
from .quadratic import minimize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import RowVector
    from ..rows import Rows
    from .columns import WorkingSet
    from .rivals import Rivals

# Coefficients of all classes up to which their Hessian is made; what damps it; to which share of the violation it is solved.
MOST, DAMPING, SHARE = 4000, 1e-12, 0.01


def joint_step(
    rows: Rows, rivals: Rivals, sets: Sequence[WorkingSet], z: RowVector, alpha: float
) -> list[tuple[np.ndarray, RowVector, float]] | None:
    """(w, f, b) of each class, a step on; None where no step lowers the objective.

    sets : the `WorkingSet` of each class, with the gradients at the margins z of all
    """
    w, g = (np.concatenate([getattr(A, name) for A in sets]) for name in ("w", "g"))
    starts = np.cumsum([len(A) for A in sets])[:-1]
    H, slope_b = _quadratic_model(rows, rivals, sets, z)
    accuracy = SHARE * largest_violation(w, g, alpha)
    d = minimize(H, g, w, alpha, accuracy, sets[0].effort) - w
    if not np.isfinite(d).all():
        return None
    return _line_search(rivals, sets, z, alpha, np.split(d, starts), slope_b @ d)


def _quadratic_model(rows, rivals, sets, z):
    """(H, slope): the Hessian in all w with the intercepts eliminated, and their step for one in w."""
    n, k = sum(map(len, sets)), len(sets)
    ends = np.cumsum([0, *map(len, sets)])
    places = [slice(*ends[i : i + 2]) for i in range(k)]
    H, M, T = np.zeros((n, n)), np.zeros((n, k)), np.zeros((k, k))
    for i, A in enumerate(sets):
        h = _row_weights(rivals, z, i)
        M[places[i]], T[i] = rows.correlate(A.features, h).T, rivals.vectors.total(h)
        for j in range(i, k):
            sign = 1.0 if i == j else -1.0
            cross = rows.gram(A.features, sets[j].features, rivals.vectors.scaled(rivals.vectors.output(h, j), sign))
            H[places[i], places[j]], H[places[j], places[i]] = sign * cross, sign * cross.T
    sets[0].effort.add(rows.n_rows * n * n / 2)
    slope_b = -np.linalg.pinv(T, rcond=1e-13, hermitian=True) @ M.T if rivals.fit_intercept else np.zeros((k, n))
    H += M @ slope_b
    H.flat[:: n + 1] += DAMPING * H.diagonal().max(initial=0.0)
    return H, slope_b


def _row_weights(rivals, z, i):
    """s / n times row i of the Hessian of the loss in the margins, diag(p) - p p'; a line for each class."""
    n = rivals.n_rows

    def answer(z, s):
        xp, p = namespace(z), softmax(z)
        own = xp.stack([p[i, ...] if j == i else xp.zeros_like(p[i, ...]) for j in range(p.shape[0])])
        return (own - p[i, ...] * p) * (s / n)

    return rivals.vectors.map(answer, z, rivals.weight)


def _line_search(rivals, sets, z, alpha, d, d_b):
    d_f = [A.apply(step) for A, step in zip(sets, d, strict=True)]
    d_z = rivals.margins(rivals.together(d_f), d_b)
    start = rivals.mean_loss(z) + alpha * sum(np.abs(A.w).sum() for A in sets)

    def objective_at(t):
        penalty = sum(np.abs(A.w + t * step).sum() for A, step in zip(sets, d, strict=True))
        return rivals.mean_loss(rivals.vectors.along(z, t, d_z)) + alpha * penalty

    t, objective = backtrack(objective_at, lambda objective, t: objective < start)
    if objective is None:
        return None
    along = rivals.vectors.along
    return [
        (A.w + t * step, along(A.f, t, change), float(A.b + t * e))
        for A, step, change, e in zip(sets, d, d_f, d_b, strict=True)
    ]
