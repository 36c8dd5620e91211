"""Bumps as a map: the Laplacian kernel at centers, which are rows of X."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import as_real, check_finite, check_integer, is_sparse
from .._base.random import sample_rows
from .bandwidth import check_gamma, resolve_gamma
from .blocks import BumpBlock
from .feature_set import FeatureSet

if TYPE_CHECKING:
    from .._base.types import Seed
    from ..rows import Rows
    from .bandwidth import Gamma


@dataclass(frozen=True, eq=False)
class Bumps:
    r"""Bumps, ``phi_j(x) = exp(-gamma \|x - c_j\|_1)``: the Laplacian kernel of a row and of
    centers c_j, which are rows of X.

    A model of bumps is a sparse kernel expansion, such as a support vector machine is, with few of
    its centers. It follows what neighbours say where no smooth function of few inputs does; a model
    of `Fourier("laplacian")` has features that reach over all rows, and the same kernel on average.

    Parameters
    ----------
    centers : int, or array of shape (n_centers, n_features), default 1000
        The centers; an integer: the number of centers, which are drawn from the training rows by
        their weights, or all rows where there are fewer.
    gamma : float, None or "knn", default None
        Inverse width of the kernel, > 0. None: 1 / the median l1 distance of two training rows.
        "knn": 1 / the mean l1 distance to the 50th nearest row.

    Both are in the units of the columns as a fit sees them: robust, unless scale=None.

    Raises
    ------
    ValueError, TypeError
        centers is below 1, or no matrix of finite numbers with a row; gamma is not positive and
        finite.

    Notes
    -----
    Values are in (0, 1], 1 at the center. Memory O(n_centers n_features), also for CSR X; time
    O(n_features) for each value.

    References
    ----------
    A. J. Smola, B. Schölkopf, Sparse Greedy Matrix Approximation for Machine Learning, ICML 2000.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> srf.Bumps([[0.0, 0.0], [1.0, 2.0]], gamma=0.5).draw(None, 2).transform([[0.0, 0.0]]).round(
    ...     3
    ... )
    array([[1.   , 0.223]])
    >>> X = np.random.default_rng(0).uniform(-2, 2, (300, 2))
    >>> model = srf.sparse_rf(X, np.abs(X).max(axis=1), features=srf.Bumps(200), alpha=1e-3, rng=0)
    >>> bool(len(model.features) < 100)
    True
    """

    centers: int | np.ndarray = 1000
    gamma: Gamma = None

    is_finite = True

    def __post_init__(self) -> None:
        centers = self.centers
        if np.ndim(centers) == 0:
            centers = check_integer("centers", centers, 1)
        else:
            centers = np.array(as_real("centers", centers), np.float64)
            if centers.ndim != 2 or centers.size == 0:
                raise ValueError(
                    f"centers must be of shape (n_centers, n_features), got {centers.shape}"
                )
            check_finite("centers", centers)
        object.__setattr__(self, "centers", centers)
        object.__setattr__(self, "gamma", check_gamma(self.gamma))

    def resolve(
        self, rows: Rows, rng: np.random.Generator, weight: np.ndarray | None = None
    ) -> Bumps:
        """Return this map with gamma, where it is no number, and centers, where it is one, from
        `rows` weighted by `weight`."""
        gamma, centers = self.gamma, self.centers
        if isinstance(gamma, float) and not isinstance(centers, int):
            return self
        if not isinstance(gamma, float):
            gamma = resolve_gamma(rows, gamma, "cityblock", rng, weight)
        if isinstance(centers, int):
            weight = np.ones(rows.n_rows) if weight is None else weight
            centers = rows.array(sample_rows(weight, centers, rng)[0])
            centers = centers.toarray() if is_sparse(centers) else centers
        return replace(self, centers=centers, gamma=gamma)

    def draw(self, n_components: int | None, n_features: int, rng: Seed = None) -> FeatureSet:
        """List all features of n_features inputs; n_components and rng are ignored, as the centers
        are given.

        Raises
        ------
        ValueError, TypeError
            centers is a number, or gamma is None or "knn", for which rows are needed; centers has
            another number of columns than n_features.
        """
        if isinstance(self.centers, int):
            raise ValueError(f"centers must be an array to draw without data, got {self.centers}")
        if not isinstance(self.gamma, float):
            raise ValueError(f"gamma must be a number to draw without data, got {self.gamma!r}")
        n_features = check_integer("n_features", n_features, 1)
        if self.centers.shape[1] != n_features:
            raise ValueError(f"centers must have {n_features} columns, got {self.centers.shape[1]}")
        return FeatureSet(
            [BumpBlock(1.0, np.full(self.centers.shape, self.gamma), self.centers)], n_features
        )
