"""The inputs themselves as features, one by one, and linear functions of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import check_integer
from .blocks import LinearBlock
from .feature_set import FeatureSet

if TYPE_CHECKING:
    from .._base.types import Seed
    from ..rows import Rows


@dataclass(frozen=True)
class Linear:
    """The inputs themselves as features, ``phi_j(x) = x_j``. Nothing is random.

    In a sequence of maps it adds a linear part to the model.

    Examples
    --------
    >>> import sparserf as srf
    >>> srf.Linear().draw(None, 3).transform([[1.0, 2.0, 3.0]])
    array([[1., 2., 3.]])
    """

    is_finite = True

    def resolve(
        self, rows: Rows, rng: np.random.Generator | None, weight: np.ndarray | None = None
    ) -> Linear:
        """Return this map: nothing in it depends on the data."""
        return self

    def draw(self, n_components: int | None, n_features: int, rng: Seed = None) -> FeatureSet:
        """List all features of n_features inputs; n_components and rng are ignored, as nothing is
        random."""
        n_features = check_integer("n_features", n_features, 1)
        return inputs_times(np.ones(n_features))


def inputs_times(weights: np.ndarray) -> FeatureSet:
    """Return a FeatureSet whose feature j is input j times its weight."""
    d = len(weights)
    inputs = np.arange(d, dtype=np.int32)[:, None]
    return FeatureSet([LinearBlock(1.0, weights[:, None], inputs)], d)


def linear_functions(weights: np.ndarray) -> FeatureSet:
    """Return a FeatureSet of w'x for each row w of the weights."""
    return FeatureSet([LinearBlock(1.0, weights)], weights.shape[1])
