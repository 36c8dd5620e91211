"""Random perceptrons (Lin & Li 2008)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import check_integer, check_rng, check_scale, check_vector
from .blocks import NeuronBlock
from .feature_set import FeatureSet

if TYPE_CHECKING:
    from .._base.types import Seed
    from ..rows import Rows


@dataclass(frozen=True, eq=False)
class Perceptron:
    r"""Random perceptrons, ``phi(x) = sign(t'(x - center) - a)``, t uniform on the sphere, a on
    [-radius, radius].

    Within the ball of that radius around the center, the mean of phi(x) phi(z) over the draws is
    the perceptron kernel, 1 - c_d \|x - z\| / radius with c_d = Gamma(d/2) / (sqrt(pi)
    Gamma((d+1)/2)). sign(0) = +1.

    Parameters
    ----------
    radius : float or None, default None
        Radius of the ball, > 0. None: the largest distance of a training row to the center.
    center : array of shape (n_features,) or None, default None
        Center of the ball. None: the weighted mean of the training rows where radius is None too,
        and the origin otherwise.

    Both are in the units of the columns as a fit sees them: robust, unless scale=None.

    Raises
    ------
    ValueError, TypeError
        radius is not positive and finite.

    References
    ----------
    H.-T. Lin, L. Li, Support Vector Machinery for Infinite Ensemble Learning, JMLR 9, 2008.

    Examples
    --------
    >>> import sparserf as srf
    >>> features = srf.Perceptron(radius=2.0).draw(50, 3, rng=0)
    >>> sorted(set(features.transform([[0.1, 0.2, 0.3]]).ravel()))
    [np.float64(-1.0), np.float64(1.0)]
    """

    radius: float | None = None
    center: np.ndarray | None = None

    is_finite = False

    def __post_init__(self) -> None:
        if self.radius is not None:
            object.__setattr__(self, "radius", check_scale("radius", self.radius))
        if self.center is not None:
            object.__setattr__(self, "center", check_vector("center", self.center))

    def resolve(
        self, rows: Rows, rng: np.random.Generator | None, weight: np.ndarray | None = None
    ) -> Perceptron:
        """Return this map with radius and center computed from `rows`, weighted by `weight`, where
        they are None."""
        if self.radius is not None:
            return self
        if self.center is None:
            share = (
                np.full(rows.n_rows, 1 / rows.n_rows) if weight is None else weight / weight.sum()
            )
            center = np.nan_to_num(rows.mean(share))
        else:
            center = self.center
        _check_length(center, rows.n_features_in)
        radius = float(np.sqrt(rows.largest_square_distance(center)))
        return replace(self, radius=min(radius, 1e150) if radius > 0 else 1.0, center=center)

    def draw(self, n_components: int, n_features: int, rng: Seed = None) -> FeatureSet:
        """Draw n_components features of n_features inputs; a seed gives the same features each
        time.

        Raises
        ------
        ValueError, TypeError
            radius is None, which must be computed from rows first; center has another length than
            n_features.
        """
        if self.radius is None:
            raise ValueError("radius must be a number to draw without data, got None")
        n_components = check_integer("n_components", n_components, 0)
        n_features = check_integer("n_features", n_features, 1)
        center = np.zeros(n_features) if self.center is None else self.center
        _check_length(center, n_features)
        rng = check_rng(rng)
        t = rng.standard_normal((n_components, n_features))
        t /= np.linalg.norm(t, axis=1, keepdims=True)
        a = rng.uniform(-self.radius, self.radius, n_components)
        with np.errstate(over="ignore", invalid="ignore"):
            offset = np.nan_to_num(-(t @ center) - a)
        return FeatureSet([NeuronBlock("sign", 1.0, t, offset)], n_features)


def _check_length(center, n_features):
    """Check that a center has an entry for each input."""
    if len(center) != n_features:
        raise ValueError(f"center must have shape ({n_features},), got ({len(center)},)")
