"""Taylor features of the Gaussian kernel (Cotter, Keshet & Srebro 2011)."""

from dataclasses import dataclass, replace
from math import comb

import numpy as np

from .._checks import check_flag, check_integer
from .bandwidth import check_gamma, resolve_gamma
from .block import FeatureBlock
from .feature_set import FeatureSet

# Most features that are listed.
MOST = 2**24


@dataclass(frozen=True)
class Taylor:
    r"""Taylor features of the Gaussian kernel: all monomials of the inputs up to a degree, under a Gaussian envelope.

    .. math:: \phi_v(x) = e^{-\gamma \|x\|^2} \prod_i \frac{(\sqrt{2\gamma}\, x_i)^{v_i}}{\sqrt{v_i!}},
        \quad \sum_i v_i \le degree

    Their inner product is the kernel exp(-gamma \|x - z\|^2), the exponential of 2 gamma x'z cut off after `degree`:
    it errs by at most (2 gamma \|x\| \|z\|)^(degree+1) / (degree+1)!.

    Parameters
    ----------
    degree : int, default 2
        Highest degree, >= 1. There are C(n_features + degree, degree) features.
    gamma : float, None or "knn", default None
        Inverse width, > 0, of the kernel; None and "knn" as in `Fourier`.
    include_squares : bool, default True
        False: only monomials in which every input occurs at most once.

    Raises
    ------
    ValueError, TypeError
        degree below 1; gamma not positive and finite; when drawn, more than 2**24 features.

    Notes
    -----
    Nothing is random: `draw` lists all features, by ascending degree, (1, x_0, x_1, ..., x_0^2, x_0 x_1, ...) times the
    envelope. Every value is in [-1, 1]; none overflows, and only what is itself too small for a float is 0.
    Of degree 2, the inner products of all features with a vector are one weighted product X'diag(.)X: no feature is made.

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
    gamma: float | str | None = None
    include_squares: bool = True

    is_finite = True

    def __post_init__(self):
        check_integer("degree", self.degree, 1)
        object.__setattr__(self, "gamma", check_gamma(self.gamma))
        check_flag("include_squares", self.include_squares)

    def resolve(self, X, rng):
        """This map with gamma read off X where it is a rule."""
        if isinstance(self.gamma, float):
            return self
        return replace(self, gamma=resolve_gamma(X, self.gamma, "euclidean", rng))

    def draw(self, n_components, n_features, rng=None):
        """A FeatureSet of all features of n_features inputs; n_components and rng do not matter."""
        if not isinstance(self.gamma, float):
            raise ValueError(f"gamma must be a number to draw without data, got {self.gamma!r}")
        n_features = check_integer("n_features", n_features, 1)
        size = self.count(n_features)
        if size > MOST:
            raise ValueError(f"degree={self.degree} of {n_features} inputs makes {size} features, more than {MOST}")
        inputs = _multisets(n_features + 1, self.degree, self.include_squares)
        weights = _coefficients(inputs)
        return FeatureSet([FeatureBlock("product", 1.0, weights, np.zeros(size), inputs, self.gamma)], n_features)

    def count(self, n_features):
        """Number of features of so many inputs."""
        if self.include_squares:
            return comb(n_features + self.degree, self.degree)
        return sum(comb(n_features, k) for k in range(min(self.degree, n_features) + 1))


def _multisets(n, size, repeats):
    """All ascending tuples over 0..n-1, in lexicographic order; of all but 0 none twice unless `repeats`."""
    tuples = np.arange(n, dtype=np.int32)[:, None]
    for _ in range(size - 1):
        last = tuples[:, -1]
        first = last if repeats else last + (last > 0)  # the next entry begins there
        counts = n - first
        starts = np.cumsum(counts) - counts
        following = np.arange(counts.sum()) - np.repeat(starts - first, counts)
        tuples = np.column_stack([np.repeat(tuples, counts, axis=0), following.astype(np.int32)])
    return np.ascontiguousarray(tuples)


def _coefficients(inputs):
    """1 / sqrt(prod_i v_i!) of each tuple, v_i the number of times that i > 0 occurs in it; shape (n, 1)."""
    factorial, run = np.ones(len(inputs)), np.ones(len(inputs))
    for previous, entry in zip(inputs.T[:-1], inputs.T[1:], strict=True):
        run = np.where((entry == previous) & (entry > 0), run + 1, 1.0)
        factorial *= run
    return 1 / np.sqrt(factorial)[:, None]
