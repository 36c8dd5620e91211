"""Random perceptrons (Lin & Li 2008)."""

from dataclasses import dataclass, replace

import numpy as np

from .._checks import check_integer, check_rng, check_scale, check_vector, is_sparse
from .._threads import single_threaded_blas
from .block import FeatureBlock
from .feature_set import FeatureSet


@dataclass(frozen=True, eq=False)
class Perceptron:
    r"""Random perceptrons, ``phi(x) = sign(t'(x - center) - a)``, t uniform on the sphere, a on [-radius, radius].

    Within the ball of that radius, E[phi(x) phi(z)] = 1 - c_d \|x - z\| / radius with
    c_d = Gamma(d/2) / (sqrt(pi) Gamma((d+1)/2)): the perceptron kernel. sign(0) = +1.

    Parameters
    ----------
    radius : float or None, default None
        > 0. None: the largest distance of a training row to the mean of them all.
    center : array of shape (n_features,) or None, default None
        None: the mean of the training rows, by their weights, where radius is None too, else the origin.

    Raises
    ------
    ValueError, TypeError
        radius not positive and finite.

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

    def __post_init__(self):
        if self.radius is not None:
            object.__setattr__(self, "radius", check_scale("radius", self.radius))
        if self.center is not None:
            object.__setattr__(self, "center", check_vector("center", self.center))

    def resolve(self, X, rng, weight=None):
        """This map with radius and center read off X, of rows of these weights, where they are None."""
        if self.radius is not None:
            return self
        parts = [slice(i, i + 4096) for i in range(0, X.shape[0], 4096)]
        if self.center is None:
            share = np.full(X.shape[0], 1 / X.shape[0]) if weight is None else weight / weight.sum()
            with np.errstate(over="ignore", invalid="ignore"), single_threaded_blas():
                center = np.nan_to_num(sum(share[rows] @ X[rows].astype(np.float64) for rows in parts))
        else:
            center = self.center
        _check_length(center, X.shape[1])
        square = np.zeros(X.shape[0])
        for rows in parts:
            square[rows] = _square_distances(X[rows], center)
        radius = float(np.sqrt(square.max()))
        return replace(self, radius=min(radius, 1e150) if radius > 0 else 1.0, center=center)

    def draw(self, n_components, n_features, rng=None):
        """A FeatureSet of n_components features of n_features inputs; `rng` is a seed or a Generator."""
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
        return FeatureSet([FeatureBlock("sign", 1.0, t, offset)], n_features)


def _check_length(center, n_features):
    if len(center) != n_features:
        raise ValueError(f"center must have shape ({n_features},), got ({len(center)},)")


def _square_distances(rows, center):
    with np.errstate(over="ignore", invalid="ignore"):
        rows = rows.astype(np.float64)
        if not is_sparse(rows):
            return ((rows - center) ** 2).sum(axis=1)
        norms = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        return np.maximum(norms - 2 * (rows @ center) + center @ center, 0.0)
