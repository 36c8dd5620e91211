"""Weight, mean and covariance of columns over rows: of a block, of more rows or fewer, and a few rows that have the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from .._base.arrays import check_same_device, to_host
from .._base.checks import check_indices, check_sample_weight, check_vector
from .._base.threads import single_threaded_blas
from ..columns.targets import check_target
from ..rows import read_rows, staged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from .._base.types import Array, MatrixLike
    from ..features import FeatureSet
    from ..rows import Block

# Rounding: of a variance, as a share of the variances that it was added up from; and of a mean.
OF_VARIANCE, OF_MEAN = 1e-13, 1e-14
# Times rounding, what is none. And of a weight, what is.
FAR, NOTHING = 1e7, 1e-12


@dataclass(frozen=True, eq=False)
class Moments:
    """Of columns over weighted rows. noise: of each, the variance up to which it is rounding."""

    weight: float
    mean: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray

    def times(self, unit: float) -> Moments:
        """Of weights in that unit."""
        with np.errstate(over="ignore"):
            return replace(self, weight=float(np.float64(unit) * self.weight))

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite is refused in the end
    def merged(self, other: Moments) -> Moments:
        """Of the rows of both: the update of Chan, Golub & LeVeque (1979)."""
        weight = self.weight + other.weight
        share, step = other.weight / weight, other.mean - self.mean
        covariance = (1 - share) * self.covariance + share * other.covariance
        covariance += share * (1 - share) * np.outer(step, step)
        noise = abs(1 - share) * self.noise + abs(share) * other.noise
        return Moments.of(weight, self.mean + share * step, covariance, noise)

    def without(self, other: Moments) -> Moments:
        """Of the rows that are not in other: its weight is taken away."""
        if not other.weight < (1 - NOTHING) * self.weight:
            raise ValueError(f"other must weigh less than the whole, {self.weight:g}, got {other.weight:g}: no row is left")
        left = self.merged(replace(other, weight=-other.weight))
        if (left.covariance.diagonal() < -FAR * left.noise).any():
            raise ValueError("other must be of some of the same rows, got others: without them a variance is negative")
        return left

    @classmethod
    def of(cls, weight: float, mean: np.ndarray, covariance: np.ndarray, noise: np.ndarray | float = 0.0) -> Self:
        least = OF_VARIANCE * np.abs(covariance.diagonal()) + (OF_MEAN * mean) ** 2
        return cls(weight, mean, covariance, np.maximum(noise, least))

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean, and rows around it of equal weight that have this covariance: at most one more than columns.

        With R'R the covariance and H the reflection of the first unit vector to 1 / sqrt(m), the rows of
        sqrt(m) H [mean; R] have its moments, since H'H = 1, and the mean in all of them, since H takes it there.
        """
        variance = self.covariance.diagonal()
        varies = variance > self.noise
        deviation = np.where(varies, np.sqrt(np.where(varies, variance, 1.0)), 0.0)
        R = deviation * _root(self.covariance / np.outer(*[np.where(varies, deviation, np.inf)] * 2))
        root = np.sqrt(len(R) + 1)
        total = R.sum(axis=0)
        around = np.vstack([total, root * R - total / (root - 1 or 1)])
        return np.where(~varies & (self.mean**2 <= self.noise), 0.0, self.mean), around


def read(
    X: MatrixLike, y: ArrayLike, features: FeatureSet, folds: ArrayLike | None, sample_weight: ArrayLike | None, workers: int
) -> tuple[list[Moments], bool]:
    """(`Moments` of features and then y over the rows of each fold, whether y is one target), in one pass; all checked."""
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        check_same_device(name, values, X)
    rows = read_rows(X, features.stage, workers)
    if features.n_features_in != rows.n_features_in:
        raise ValueError(f"features must have the {rows.n_features_in} inputs of X, got {features.n_features_in}")
    if len(features) == 0:
        raise ValueError("features must hold at least one feature, got an empty FeatureSet")
    rows = staged(rows, features.stage)
    target, fold = check_target(y, rows.n_rows, several_outputs=True), _check_folds(folds, rows.n_rows)
    weight = check_sample_weight(sample_weight, rows.n_rows)
    unit = 1.0 if sample_weight is None else float(check_vector("sample_weight", sample_weight).max())
    there, one_output, n_folds = np.flatnonzero(weight), target.ndim == 1, int(fold.max()) + 1
    if len(there) < rows.n_rows:
        rows, weight, target, fold = rows.take(there), weight[there], target[..., there], fold[there]
    with single_threaded_blas(), rows:
        answer = partial(moments_of, features=features, n_folds=n_folds)
        parts = rows.sum(answer, weight, np.atleast_2d(target), fold, add=each_merged)
    if None in parts:
        raise ValueError(f"folds must each have a row of positive weight, got none in fold {parts.index(None)}")
    return [part.times(unit) for part in parts], one_output


def _check_folds(folds, n_rows):
    """The fold of each row."""
    if folds is None:
        return np.zeros(n_rows, np.intp)
    folds = check_indices("folds", folds, n_rows)
    if len(folds) != n_rows:
        raise ValueError(f"folds must have shape ({n_rows},), one entry a row of X, got {folds.shape}")
    return folds


def moments_of(
    block: Block, weight: Array, y: Array, fold: Array, features: FeatureSet, n_folds: int
) -> list[Moments | None]:
    """Of features and then y, in a block: `Moments` of each fold; None of one that has no row there."""
    weight, y, fold = map(to_host, (weight, y, fold))
    share = np.where(fold == np.arange(n_folds)[:, None], weight, 0.0)
    total = share.sum(axis=1)
    return [_of(block, share[k], y, features) if total[k] > 0 else None for k in range(n_folds)]


@np.errstate(over="ignore", invalid="ignore")
def _of(block, share, y, features):
    """Around the means before they are multiplied, since products of large means would cancel."""
    weight = share.sum()
    share = share / weight
    y_mean = y @ share
    y = y - y_mean[:, None]
    sums = block.correlate(features, np.vstack([share, share * y]))
    mean, cross = sums[0], sums[1:]
    cross = cross - np.outer(y @ share, mean)  # the rounding of the mean of y
    gram = block.gram(features, features, share, np.float64, mean)
    covariance = np.block([[gram, cross.T], [cross, (share * y) @ y.T]])
    return Moments.of(weight, np.concatenate([mean, y_mean]), covariance)


def each_merged(parts: Sequence[Moments | None], more: Sequence[Moments | None]) -> list[Moments | None]:
    """Of each fold, in either or both."""
    pairs = zip(parts, more, strict=True)
    return [one if other is None else other if one is None else one.merged(other) for one, other in pairs]


def _root(correlation):
    """R of full row rank with R'R a positive semidefinite matrix of ones and zeros on the diagonal, up to rounding."""
    from scipy.linalg.lapack import dpstrf

    with single_threaded_blas():
        factor, pivots, rank, _ = dpstrf(correlation)
    R = np.empty((rank, len(correlation)))
    R[:, pivots - 1] = np.triu(factor)[:rank]
    return R
