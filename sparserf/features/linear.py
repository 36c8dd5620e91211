"""The inputs themselves as features."""

from dataclasses import dataclass

import numpy as np

from .._checks import check_integer
from .block import FeatureBlock
from .feature_set import FeatureSet


@dataclass(frozen=True)
class Linear:
    """The inputs themselves, ``phi_j(x) = x_j``: as many features as inputs, nothing random.

    Beside another map in a sequence it makes a linear part of the model.

    Examples
    --------
    >>> import sparserf as srf
    >>> srf.Linear().draw(None, 3).transform([[1.0, 2.0, 3.0]])
    array([[1., 2., 3.]])
    """

    is_finite = True

    def resolve(self, X, rng):
        """This map: nothing in it depends on the data."""
        return self

    def draw(self, n_components, n_features, rng=None):
        """A FeatureSet of all n_features inputs; n_components and rng do not matter."""
        n_features = check_integer("n_features", n_features, 1)
        inputs = np.arange(n_features, dtype=np.int32)[:, None]
        block = FeatureBlock("identity", 1.0, np.ones((n_features, 1)), np.zeros(n_features), inputs)
        return FeatureSet([block], n_features)
