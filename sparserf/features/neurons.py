"""Random neurons: one hidden layer that is drawn, not trained, with dense or q-sparse weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from .._base.checks import check_choice, check_integer, check_rng, check_scale
from .feature_set import FeatureSet
from .neuron_block import NeuronBlock

if TYPE_CHECKING:
    from .._base.types import Seed
    from ..rows.home import Rows

ACTIVATIONS = ("sin", "cos", "tanh", "relu", "sign")
Activation: TypeAlias = Literal["sin", "cos", "tanh", "relu", "sign"]
WEIGHTS = ("normal", "uniform", "cauchy")


@dataclass(frozen=True)
class RandomNeurons:
    """Random neurons, ``phi(x) = activation(w'x + b)``.

    Parameters
    ----------
    activation : {"sin", "cos", "tanh", "relu", "sign"}, default "sin"
        sign(0) = +1.
    order : int or None, default None
        Inputs that each neuron sees: a subset of that size, uniform without replacement (q in the HARFE paper). None:
        all of them.
    weights : {"normal", "uniform", "cauchy"}, default "normal"
        Law of the entries of w: N(0, scale^2), U[-scale, scale], or Cauchy of that scale.
    scale : float, default 1.0
        > 0.

    Raises
    ------
    ValueError, TypeError
        Another name; order below 1, or above the number of inputs when drawn; scale not positive and finite.

    Notes
    -----
    b is uniform on [0, 2 pi] for sin and cos with normal or Cauchy weights, and has the law of the weights otherwise.
    With relu, normal weights and scale 1, E[phi(x) phi(z)] is half the arc-cosine kernel of order 1 of (x, 1) and
    (z, 1): ``|x||z| (sin t + (pi - t) cos t) / (2 pi)``, t the angle between them.

    References
    ----------
    E. Saha, H. Schaeffer, G. Tran, HARFE: Hard-Ridge Random Feature Expansion, 2022.

    Examples
    --------
    >>> import sparserf as srf
    >>> features = srf.RandomNeurons("tanh", order=2).draw(100, 20, rng=0)
    >>> features.blocks[0].weights.shape
    (100, 2)
    """

    activation: Activation = "sin"
    order: int | None = None
    weights: Literal["normal", "uniform", "cauchy"] = "normal"
    scale: float = 1.0

    is_finite = False

    def __post_init__(self) -> None:
        check_choice("activation", self.activation, ACTIVATIONS)
        check_choice("weights", self.weights, WEIGHTS)
        check_scale("scale", self.scale)
        if self.order is not None:
            check_integer("order", self.order, 1)

    def resolve(self, rows: Rows, rng: np.random.Generator | None, weight: np.ndarray | None = None) -> RandomNeurons:
        """This map: nothing in it depends on the data."""
        return self

    def draw(self, n_components: int, n_features: int, rng: Seed = None) -> FeatureSet:
        """A FeatureSet of n_components features of n_features inputs; `rng` is a seed or a Generator."""
        n_components = check_integer("n_components", n_components, 0)
        n_features = check_integer("n_features", n_features, 1)
        if self.order is not None and self.order > n_features:
            raise ValueError(f"order must be at most the number of inputs, {n_features}, got {self.order}")
        rng = check_rng(rng)
        w = self._law(rng, (n_components, self.order or n_features))
        inputs = None if self.order is None else _subsets(rng, n_components, self.order, n_features)
        if self.activation in ("sin", "cos") and self.weights != "uniform":
            offset = rng.uniform(0.0, 2 * np.pi, n_components)
        else:
            offset = self._law(rng, n_components)
        return FeatureSet([NeuronBlock(self.activation, 1.0, w, offset, inputs)], n_features)

    def _law(self, rng, shape):
        if self.weights == "uniform":
            return rng.uniform(-self.scale, self.scale, shape)
        return self.scale * (rng.standard_normal(shape) if self.weights == "normal" else rng.standard_cauchy(shape))


def _subsets(rng, n, order, d):
    """n sorted subsets of `order` of d inputs, each uniform, without an n x d array: draw again what repeats (Floyd)."""
    subsets = np.empty((n, order), np.int32)
    for k, top in enumerate(range(d - order, d)):  # Floyd: the k-th of {0..top}, or top itself if already there
        pick = rng.integers(0, top + 1, n)
        taken = (subsets[:, :k] == pick[:, None]).any(axis=1)
        subsets[:, k] = np.where(taken, top, pick)
    return np.sort(subsets, axis=1)
