"""Weighted means and covariances of columns, and a few rows that have the same.

`read_moments` computes them in one pass over the rows; they can be merged and subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from .._base.arrays import check_same_device, to_host
from .._base.checks import check_indices, check_sample_weight, check_vector
from .._base.threads import single_threaded_blas
from ..columns.targets import check_target
from ..rows import read_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from .._base.types import Array, MatrixLike
    from ..features import FeatureSet
    from ..rows import Block


# If at most this share of the weight is left after a subtraction, no row is left.
NO_WEIGHT = 1e-12


@dataclass(frozen=True, eq=False)
class Moments:
    """The weight of rows, and the weighted mean and covariance of columns over them.

    noise : for each column, the variance up to which it may be rounding alone
    """

    weight: float
    mean: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray

    @classmethod
    def with_noise(
        cls,
        weight: float,
        mean: np.ndarray,
        covariance: np.ndarray,
        noise: np.ndarray | float = 0.0,
    ) -> Self:
        """Make moments whose noise is at least the rounding error of these numbers."""
        # The first term is the rounding of the variances that were added up, the second that of the
        # mean.
        least = 1e-13 * np.abs(covariance.diagonal()) + (1e-14 * mean) ** 2
        return cls(weight, mean, covariance, np.maximum(noise, least))

    def in_weight_unit(self, unit: float) -> Moments:
        """Return the moments for weights that are multiplied by a unit."""
        return replace(self, weight=float(np.float64(unit) * self.weight))

    def merge(self, other: Moments) -> Moments:
        """Return the moments over the rows of both, by the update of Chan, Golub & LeVeque (1979).

        They may overflow: `Sums` refuses what is not finite.
        """
        weight = self.weight + other.weight
        share, step = other.weight / weight, other.mean - self.mean
        covariance = (1 - share) * self.covariance + share * other.covariance
        covariance += share * (1 - share) * np.outer(step, step)
        noise = abs(1 - share) * self.noise + abs(share) * other.noise
        return Moments.with_noise(weight, self.mean + share * step, covariance, noise)

    def subtract(self, other: Moments) -> Moments:
        """Return the moments over the rows that are not in other."""
        if not other.weight < (1 - NO_WEIGHT) * self.weight:
            raise ValueError(
                f"other must weigh less than the whole, {self.weight:g}, got {other.weight:g}: no "
                "row is left"
            )
        left = self.merge(replace(other, weight=-other.weight))
        # A variance is negative by more than rounding: the user subtracts rows that were not summed
        # up.
        if (left.covariance.diagonal() < -1e7 * left.noise).any():
            raise ValueError(
                "other must be of some of the same rows, got others: without them a variance is "
                "negative"
            )
        return left

    def equivalent_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean, and rows of equal weight around it that have this covariance.

        Let R'R be the covariance, with R of m - 1 rows, and H the reflection that maps the first
        unit vector to (1, ..., 1) / sqrt(m). The rows of sqrt(m) H [mean; R] have these moments:
        the covariance and the mean together, since H'H = 1, and the mean in each row, since H takes
        it there.
        """
        variance = self.covariance.diagonal()
        varies = variance > self.noise
        deviation = np.where(varies, np.sqrt(np.where(varies, variance, 1.0)), 0.0)
        R = deviation * _correlation_root(
            self.covariance / np.outer(*[np.where(varies, deviation, np.inf)] * 2)
        )
        root = np.sqrt(len(R) + 1)
        total = R.sum(axis=0)
        around = np.vstack([total, root * R - total / (root - 1 or 1)])
        return np.where(~varies & (self.mean**2 <= self.noise), 0.0, self.mean), around


def _correlation_root(correlation):
    """Return R of full row rank with R'R = correlation, by a pivoted Cholesky factorisation.

    The matrix is positive semidefinite up to rounding, with ones on its diagonal, or zeros for
    columns that do not vary.
    """
    from scipy.linalg.lapack import dpstrf

    with single_threaded_blas():
        factor, pivots, rank, _ = dpstrf(correlation)
    R = np.empty((rank, len(correlation)))
    R[:, pivots - 1] = np.triu(factor)[:rank]
    return R


def read_moments(
    X: MatrixLike,
    y: ArrayLike,
    features: FeatureSet,
    folds: ArrayLike | None,
    sample_weight: ArrayLike | None,
    workers: int,
) -> tuple[list[Moments], bool]:
    """Read the rows in one pass, after checking the arguments.

    Return the moments of the features and then of y over the rows of each fold, and whether y is a
    single target.
    """
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        check_same_device(name, values, X)
    rows = read_rows(X, features.encoder, workers)
    if features.n_features_in != rows.n_features_in:
        raise ValueError(
            f"features must have the {rows.n_features_in} inputs of X, got {features.n_features_in}"
        )
    if len(features) == 0:
        raise ValueError("features must hold at least one feature, got an empty FeatureSet")
    rows = rows.encoded(features.encoder)
    target = check_target(y, rows.n_rows, several_outputs=True)
    if folds is None:
        fold = np.zeros(rows.n_rows, np.intp)
    else:
        fold = check_indices("folds", folds, rows.n_rows)
        if len(fold) != rows.n_rows:
            raise ValueError(
                f"folds must have shape ({rows.n_rows},), one entry a row of X, got {fold.shape}"
            )
    weight = check_sample_weight(sample_weight, rows.n_rows)
    unit = (
        1.0 if sample_weight is None else float(check_vector("sample_weight", sample_weight).max())
    )
    used, one_output, n_folds = np.flatnonzero(weight), target.ndim == 1, int(fold.max()) + 1
    if len(used) < rows.n_rows:
        rows, weight, target, fold = rows.take(used), weight[used], target[..., used], fold[used]
    with single_threaded_blas(), rows:
        answer = partial(_moments_of_block, features=features, n_folds=n_folds)
        of_folds = rows.sum(answer, weight, np.atleast_2d(target), fold, add=_merge_folds)
    if None in of_folds:
        raise ValueError(
            "folds must each have a row of positive weight, got none in fold "
            f"{of_folds.index(None)}"
        )
    return [moments.in_weight_unit(unit) for moments in of_folds], one_output


def _moments_of_block(
    block: Block, weight: Array, y: Array, fold: Array, features: FeatureSet, n_folds: int
) -> list[Moments | None]:
    """Return the moments over the rows of a block in each fold, None for a fold without rows."""
    weight, y, fold = map(to_host, (weight, y, fold))
    weights = np.where(fold == np.arange(n_folds)[:, None], weight, 0.0)
    total = weights.sum(axis=1)
    return [
        _weighted_moments(block, weights[k], y, features) if total[k] > 0 else None
        for k in range(n_folds)
    ]


def _weighted_moments(block, weight, y, features):
    """Return the moments of features and y with these weights.

    Means are subtracted before anything is multiplied, since products of large means would cancel.
    """
    total = weight.sum()
    share = weight / total
    y_mean = y @ share
    y = y - y_mean[:, None]
    sums = block.correlate(features, np.vstack([share, share * y]))
    mean, cross = sums[0], sums[1:]
    cross = cross - np.outer(y @ share, mean)  # y @ share is the rounding error of the mean of y
    gram = block.gram(features, features, share, np.float64, mean)
    covariance = np.block([[gram, cross.T], [cross, (share * y) @ y.T]])
    return Moments.with_noise(total, np.concatenate([mean, y_mean]), covariance)


def _merge_folds(
    one: Sequence[Moments | None], other: Sequence[Moments | None]
) -> list[Moments | None]:
    """Merge the moments of each fold, where either may have no row."""
    pairs = zip(one, other, strict=True)
    return [
        left if right is None else right if left is None else left.merge(right)
        for left, right in pairs
    ]
