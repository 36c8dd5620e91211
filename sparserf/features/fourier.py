"""Random Fourier features of shift-invariant kernels (Rahimi & Recht 2007)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from .._base.checks import check_choice, check_integer, check_rng
from .bandwidth import check_gamma, resolve_gamma
from .blocks import NeuronBlock
from .feature_set import FeatureSet

if TYPE_CHECKING:
    from .._base.types import Seed
    from ..rows import Rows
    from .bandwidth import Gamma

Kernel: TypeAlias = Literal["gaussian", "laplacian", "cauchy", "matern12", "matern32", "matern52"]
# The smoothness nu of each Matern kernel.
MATERN = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
KERNELS = get_args(Kernel)


@dataclass(frozen=True)
class Fourier:
    r"""Random Fourier features of a kernel, ``phi(x) = sqrt(2) cos(w'x + b)`` with b uniform on [0,
    2 pi].

    The mean of phi(x) phi(z) over the draws of w and b is the kernel k(x, z). With D = x - z:

    =========  ===========================================  =====================================
    kernel     k(x, z)                                      w
    =========  ===========================================  =====================================
    gaussian   exp(-gamma \|D\|_2^2)                        normal, variance 2 gamma
    laplacian  exp(-gamma \|D\|_1)                          Cauchy, scale gamma
    cauchy     prod_j 1 / (1 + gamma D_j^2)                 Laplace, scale sqrt(gamma)
    matern12   exp(-r), r = sqrt(2 gamma) \|D\|_2           normal, over the root of a chi-square
    matern32   (1 + sqrt(3) r) exp(-sqrt(3) r)              the same, 3 degrees of freedom
    matern52   (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)  the same, 5 degrees of freedom
    =========  ===========================================  =====================================

    Parameters
    ----------
    kernel : str, default "gaussian"
        A name of the table.
    gamma : float, None or "knn", default None
        Inverse width of the kernel, > 0. None: 1/(2 s^2) with s the median distance between at most
        2,000 of the training rows (laplacian: 1/s, with s the median L1 distance). "knn": the same
        with s the mean distance to the 50th nearest neighbour, the rule of Shahrampour & Tarokh
        (2018). It is in the units of the columns as a fit sees them: robust, unless scale=None.

    Raises
    ------
    ValueError, TypeError
        The kernel is not in the table; gamma is not positive and finite.

    Notes
    -----
    Every phi lies in [-sqrt(2), sqrt(2)]. Where the phase w'x + b overflows, phi is 0, which is its
    mean.

    References
    ----------
    A. Rahimi, B. Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> x, z = np.zeros((1, 2)), np.ones((1, 2))
    >>> features = srf.Fourier("gaussian", gamma=0.25).draw(100_000, 2, rng=0)
    >>> k = (features.transform(x) * features.transform(z)).mean()
    >>> bool(abs(k - np.exp(-0.25 * 2)) < 0.01)
    True
    """

    kernel: Kernel = "gaussian"
    gamma: Gamma = None

    is_finite = False

    def __post_init__(self) -> None:
        check_choice("kernel", self.kernel, KERNELS)
        object.__setattr__(self, "gamma", check_gamma(self.gamma))

    def resolve(
        self, rows: Rows, rng: np.random.Generator, weight: np.ndarray | None = None
    ) -> Fourier:
        """Return this map with gamma computed from `rows`, weighted by `weight`, where gamma is
        None or "knn"."""
        if isinstance(self.gamma, float):
            return self
        metric = "cityblock" if self.kernel == "laplacian" else "euclidean"
        return replace(self, gamma=resolve_gamma(rows, self.gamma, metric, rng, weight))

    def draw(self, n_components: int, n_features: int, rng: Seed = None) -> FeatureSet:
        """Draw n_components features of n_features inputs; a seed gives the same features each
        time.

        Raises
        ------
        ValueError, TypeError
            gamma is None or "knn", which must be computed from rows first; a number of another kind
            or size.
        """
        if not isinstance(self.gamma, float):
            raise ValueError(f"gamma must be a number to draw without data, got {self.gamma!r}")
        n_components = check_integer("n_components", n_components, 0)
        shape = n_components, check_integer("n_features", n_features, 1)
        rng = check_rng(rng)
        w = self._frequencies(rng, shape)
        offset = rng.uniform(0.0, 2 * np.pi, n_components)
        return FeatureSet([NeuronBlock("cos", float(np.sqrt(2)), w, offset)], n_features)

    def _frequencies(self, rng, shape):
        """Draw w from the spectral density of the kernel."""
        if self.kernel == "laplacian":
            return rng.standard_cauchy(shape) * self.gamma
        if self.kernel == "cauchy":
            return rng.laplace(0.0, np.sqrt(self.gamma), shape)
        w = rng.normal(0.0, np.sqrt(2 * self.gamma), shape)
        # a multivariate Student t is a normal over the root of a chi-square
        if self.kernel in MATERN:
            freedom = 2 * MATERN[self.kernel]
            w *= np.sqrt(freedom / rng.chisquare(freedom, (shape[0], 1)))
        return w
