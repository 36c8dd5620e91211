"""The inputs themselves as features, one by one, and all linear functions of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .._base.checks import check_integer
from .feature_set import FeatureSet
from .linear_block import LinearBlock

if TYPE_CHECKING:
    from .._base.types import Seed
    from ..rows.home import Rows


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

    def resolve(self, rows: Rows, rng: np.random.Generator | None, weight: np.ndarray | None = None) -> Linear:
        """This map: nothing in it depends on the data."""
        return self

    def draw(self, n_components: int | None, n_features: int, rng: Seed = None) -> FeatureSet:
        """A FeatureSet of all n_features inputs; n_components and rng do not matter."""
        n_features = check_integer("n_features", n_features, 1)
        return inputs_times(np.ones(n_features))


def inputs_times(weights: np.ndarray) -> FeatureSet:
    """A FeatureSet: each input times its weight."""
    d = len(weights)
    inputs = np.arange(d, dtype=np.int32)[:, None]
    return FeatureSet([LinearBlock(1.0, weights[:, None], inputs)], d)


def linear_functions(weights: np.ndarray) -> FeatureSet:
    """A FeatureSet: w'x for each row w of the weights."""
    return FeatureSet([LinearBlock(1.0, weights)], weights.shape[1])


@dataclass(frozen=True, eq=False)
class LinearFunctions:
    """Every u'(x units) with |u| = 1: a dictionary without end, whose best feature is the gradient.

    The l1 penalty over all of them is the length of w = sum_k c_k u_k, since that is the least that sum_k |c_k| can be.
    """

    units: np.ndarray = field(repr=False)

    n_batches = 5  # of one function, for each penalty
    starts: ClassVar[np.ndarray] = np.arange(n_batches + 1)

    @property
    def n_features_in(self) -> int:
        return len(self.units)

    def steepest(self, slope: np.ndarray) -> tuple[FeatureSet, float]:
        """(the function that correlates most, as a FeatureSet; its correlation), of the correlation of each input."""
        slope = slope * self.units
        size = np.abs(slope).max() or 1.0  # no square over- or underflows
        u = slope / size
        length = np.sqrt(u @ u)
        return linear_functions((u / (length or 1.0) * self.units)[None]), size * length
