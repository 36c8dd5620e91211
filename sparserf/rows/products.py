"""Matrices of products: of features with features over the rows, and of rows with rows over the features."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np

from .._base.threads import single_threaded_blas

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ..features.feature_set import FeatureSet
    from .block import Block

# Columns that are correlated with the others one by one, where more would be multiplied as a matrix.
FEW = 4
# Of more features than PANEL a Gram matrix is made panel by panel, of so many rows at a time; features are made of some.
PANEL, PANEL_ROWS, PART_ROWS = 1024, 2048, 128
# Rows of a block of the kernel matrix.
KERNEL_ROWS = 256


def gram(
    rows: Block, left: FeatureSet, right: FeatureSet | np.ndarray, weights: np.ndarray, dtype: DTypeLike | None = None,
    center: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Phi_left' diag(weights) Phi_right; rows of weight zero cost nothing.

    right: features, or the places of some in left, which are not made again. Products are in dtype, float64 for features
    without a bound. center: where right is left, what is taken from each feature before it is multiplied.

    Memory: a block of at most max(2**19, 4 * PANEL**2) elements a worker, or PANEL_ROWS rows of all features.
    """
    shared = None
    if isinstance(right, np.ndarray):
        shared, right = right, left.take(right)
    if 0 < len(right) <= FEW < len(left):
        return rows.correlate(left, weights * rows.transform(right).T).T
    total = np.zeros((len(left), len(right)))
    if not total.size:
        return total
    rows.prepare(left), rows.prepare(right)
    # Features without a bound may have means far above their spread, which a product in float32 would lose.
    bounded = all(block.is_bounded for block in (*left.blocks, *right.blocks))
    dtype = np.dtype(dtype or rows.dtype) if bounded else np.dtype(np.float64)
    center = None if center is None else left.to_blocks(center)
    with single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        if right is left and len(left) > PANEL:
            _by_panels(rows, left, weights, dtype, center, total)
        else:
            _by_slices(rows, left, right, shared, weights, dtype, center, total)
    return right.from_blocks(left.from_blocks(total.T).T)


def _by_slices(rows, left, right, shared, weights, dtype, center, total):
    """A product for each slice of the rows."""
    if shared is not None:
        shared = right.to_blocks(left.places[shared])

    @np.errstate(over="ignore", invalid="ignore")
    def product(part):
        kept = part.start + np.flatnonzero(weights[part])
        h = weights[kept, None]
        if len(kept) == part.stop - part.start:
            kept = part
        phi = rows.phi(left, kept, "left").astype(dtype, copy=False)
        if center is not None:
            phi = np.subtract(phi, center, out=rows.scratch(phi.shape, phi.dtype))
        if right is left and len(h) and (h == h[0]).all() and rows.are_inputs(left):  # nothing to write
            return h[0] * (phi.T @ phi)
        if right is left:
            phi = np.multiply(phi, np.sqrt(h).astype(dtype), out=rows.scratch(phi.shape, phi.dtype))
            return phi.T @ phi
        psi = phi[:, shared] if shared is not None else rows.phi(right, kept, "right").astype(dtype, copy=False)
        return phi.T @ np.multiply(psi, h.astype(dtype), out=rows.scratch(psi.shape, psi.dtype, "right"))

    for more in rows.each_slice(product, len(left) + len(right), 4 * min(len(right), PANEL)):
        total += more


def _by_panels(rows, features, weights, dtype, center, total):
    """A product for each pair of panels of the features, which no slice is worth: total is larger than what is multiplied."""
    panels, there = slices(len(features), PANEL), np.flatnonzero(weights)
    pairs = [(one, other) for i, one in enumerate(panels) for other in panels[: i + 1]]
    phi = np.empty((min(PANEL_ROWS, len(there)), len(features)), dtype)

    @np.errstate(over="ignore", invalid="ignore")
    def fill(part):
        h = weights[kept[part], None]
        values = rows.phi(features, kept[part], "left")
        if center is not None:
            values = np.subtract(values, center, out=phi[part])
        np.multiply(values, np.sqrt(h).astype(dtype), out=phi[part])

    @np.errstate(over="ignore", invalid="ignore")
    def add(pair):
        one, other = pair
        total[one, other] += phi[: len(kept), one].T @ phi[: len(kept), other]

    with nullcontext() if rows.is_entered else rows:
        for some in slices(len(there), PANEL_ROWS):
            kept = there[some]
            for task, parts in ((fill, slices(len(kept), PART_ROWS)), (add, pairs)):
                for _ in rows.workers.map(task, parts):
                    pass
    for panel in panels:
        total[: panel.start, panel] = total[panel, : panel.start].T


def kernel(rows: Block, features: FeatureSet, weights: np.ndarray) -> np.ndarray:
    """Phi diag(weights) Phi' of few rows. Memory: n_rows * 1,024 elements beside it."""
    total = np.zeros((rows.n_rows, rows.n_rows))
    parts = slices(rows.n_rows, KERNEL_ROWS)
    for some in slices(len(features), PANEL):
        some = np.arange(some.start, some.stop)
        phi = rows.transform(features.take(some)) * np.sqrt(weights[some]).astype(rows.dtype)

        def add(part, phi=phi):
            total[part, : part.stop] += phi[part] @ phi[: part.stop].T

        with single_threaded_blas():
            for _ in rows.workers.map(add, parts):
                pass
    for part in parts:
        total[: part.start, part] = total[part, : part.start].T
    return total


def slices(n: int, size: int) -> list[slice]:
    """Of n things, so many at a time."""
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]
