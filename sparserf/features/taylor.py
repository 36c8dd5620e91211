"""Taylor features of the Gaussian kernel (Cotter, Keshet & Srebro 2011)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import check_flag, check_integer
from .bandwidth import check_gamma, resolve_gamma
from .blocks import MonomialBlock, runs
from .feature_set import FeatureSet

if TYPE_CHECKING:
    from .._base.types import Seed
    from ..rows import Rows
    from .bandwidth import Gamma

# The most features of a map, and the most factors in all of them.
MOST_FEATURES, MOST_FACTORS = 2**24, 2**27
# Where the number of inputs and the degree are both above this, there are more than MOST_FEATURES
# features, and their number is not computed.
BITS = 24
# The golden ratio less 1: its multiples modulo 1 are spread evenly.
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Taylor:
    r"""Taylor features of the Gaussian kernel: all monomials of the inputs up to a degree, under a
    Gaussian envelope.

    .. math:: \phi_v(x) = e^{-\gamma \|x\|^2}
        \prod_i \frac{(\sqrt{2\gamma}\, x_i)^{v_i}}{\sqrt{v_i!}},
        \quad \sum_i v_i \le degree

    The inner product of the features of x and z is the Gaussian kernel exp(-gamma \|x - z\|^2), in
    which the series of exp(2 gamma x'z) is cut off after `degree`: it errs by at most (2 gamma
    \|x\| \|z\|)^(degree+1) / (degree+1)!.

    Parameters
    ----------
    degree : int, default 2
        Highest degree, >= 1. There are C(n_features + degree, degree) features.
    gamma : float, None or "knn", default None
        Inverse width of the kernel, > 0; None and "knn" as in `Fourier`. It is in the units of the
        columns as a fit sees them: robust, unless scale=None.
    include_squares : bool, default True
        False: only monomials in which every input occurs at most once. They are fewer, and do not
        add up to the kernel.

    Raises
    ------
    ValueError, TypeError
        degree is below 1; gamma is not positive and finite.

    Notes
    -----
    Nothing is random: `draw` lists all features, by ascending degree, (1, x_0, x_1, ..., x_0^2, x_0
    x_1, ...) times the envelope. Every value is in [-1, 1]; no intermediate product overflows, or
    underflows to 0 unless the value does. For degree 2, the inner products of all features with a
    vector are computed by one weighted product X'diag(.)X, without the features.

    References
    ----------
    A. Cotter, J. Keshet, N. Srebro, Explicit Approximations of the Gaussian Kernel, 2011.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> features = srf.Taylor(degree=6, gamma=0.1).draw(None, 3)
    >>> phi = features.transform(X)
    >>> square_distances = ((X[:, None] - X) ** 2).sum(axis=2)
    >>> bool(np.abs(phi @ phi.T - np.exp(-0.1 * square_distances)).max() < 1e-3)
    True
    """

    degree: int = 2
    gamma: Gamma = None
    include_squares: bool = True

    is_finite = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", check_integer("degree", self.degree, 1))
        object.__setattr__(self, "gamma", check_gamma(self.gamma))
        check_flag("include_squares", self.include_squares)

    def resolve(
        self, rows: Rows, rng: np.random.Generator, weight: np.ndarray | None = None
    ) -> Taylor:
        """Return this map with gamma computed from `rows`, weighted by `weight`, where gamma is
        None or "knn"."""
        if isinstance(self.gamma, float):
            return self
        return replace(self, gamma=resolve_gamma(rows, self.gamma, "euclidean", rng, weight))

    def draw(self, n_components: int | None, n_features: int, rng: Seed = None) -> FeatureSet:
        """List all features of n_features inputs; n_components and rng are ignored, as nothing is
        random.

        Raises
        ------
        ValueError, TypeError
            gamma is None or "knn", which must be computed from rows first; there are more than
            2**24 features or 2**27 factors.
        """
        if not isinstance(self.gamma, float):
            raise ValueError(f"gamma must be a number to draw without data, got {self.gamma!r}")
        n_features = check_integer("n_features", n_features, 1)
        degree = self.degree if self.include_squares else min(self.degree, n_features)
        size = self.count(n_features) if min(n_features, degree) <= BITS else np.inf
        if size > MOST_FEATURES or size * degree > MOST_FACTORS:
            raise ValueError(
                f"degree={self.degree} of {n_features} inputs makes more than {MOST_FEATURES} "
                f"features, or {MOST_FACTORS} factors"
            )
        inputs = _multisets(n_features + 1, degree, self.include_squares)
        weights = _coefficients(inputs)
        # The factors of the different inputs are multiplied in turn, so that the product of the
        # first ones is about a power of the final value: it overflows or underflows no more than
        # the final value does.
        inputs = np.ascontiguousarray(inputs[:, np.argsort(np.arange(degree) * GOLDEN % 1)])
        return FeatureSet([MonomialBlock(1.0, weights, inputs, self.gamma)], n_features)

    def count(self, n_features: int) -> int:
        """Return the number of features of n_features inputs, C(n_features + degree, degree) with
        squares."""
        if self.include_squares:
            return comb(n_features + self.degree, self.degree)
        return sum(comb(n_features, k) for k in range(min(self.degree, n_features) + 1))


def _multisets(n, size, repeats):
    """List all ascending tuples over 0..n-1, in lexicographic order; only 0 occurs more than once
    unless `repeats`."""
    # entries of the tuples, and where the shorter ones are continued
    last, shorter = np.arange(n, dtype=np.int32), []
    for _ in range(size - 1):
        first = last if repeats else last + (last > 0)  # the next entry begins there
        counts = n - first
        starts = np.cumsum(counts) - counts
        shorter.append((last, np.repeat(np.arange(len(last), dtype=np.int32), counts)))
        last = (np.arange(counts.sum()) - np.repeat(starts - first, counts)).astype(np.int32)
    tuples, place = np.empty((len(last), size), np.int32), np.arange(len(last))
    tuples[:, -1] = last
    for k in range(size - 2, -1, -1):
        entry, parent = shorter[k]
        place = parent[place]
        tuples[:, k] = entry[place]
    return tuples


def _coefficients(inputs):
    """Return the weight of each factor, prod_i v_i!^(-1 / (2 degree)), v_i the number of times that
    i > 0 occurs: (n, 1)."""
    logarithm = sum(np.log(run) for run in runs(inputs))
    return np.exp(logarithm / (-2 * inputs.shape[1]))[:, None]
