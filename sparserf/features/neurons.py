"""Random neurons: one hidden layer that is drawn, not trained, with dense or q-sparse weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from .._base.checks import check_choice, check_integer, check_rng, check_scale
from .activations import ACTIVATIONS, Activation
from .blocks import NeuronBlock
from .feature_set import FeatureSet

if TYPE_CHECKING:
    from .._base.types import Seed
    from ..rows import Rows

WEIGHTS = ("normal", "uniform", "cauchy")


@dataclass(frozen=True)
class RandomNeurons:
    """Random neurons, ``phi(x) = activation(w'x + b)``: a hidden layer that is drawn, not trained.

    Parameters
    ----------
    activation : {"sin", "cos", "tanh", "relu", "sign"}, default "sin"
        The activation; sign(0) = +1.
    order : int or None, default None
        Number of inputs of each neuron, which are drawn uniformly without replacement (q in the
        HARFE paper). None: all.
    weights : {"normal", "uniform", "cauchy"}, default "normal"
        Distribution of the entries of w: N(0, scale^2), U[-scale, scale], or Cauchy of that scale.
    scale : float, default 1.0
        Scale of the weights, > 0, for columns in the units in which a fit sees them: robust, unless
        scale=None there.

    Raises
    ------
    ValueError, TypeError
        activation or weights has another name; order is below 1; scale is not positive and finite.

    Notes
    -----
    b is uniform on [0, 2 pi] for sin and cos with normal or Cauchy weights, and is distributed as
    the weights otherwise. With relu, normal weights and scale 1, E[phi(x) phi(z)] is half the
    arc-cosine kernel of degree 1 of (x, 1) and (z, 1): ``|x||z| (sin t + (pi - t) cos t) / (2
    pi)``, t the angle between them.

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
        check_choice("activation", self.activation, get_args(Activation))
        check_choice("weights", self.weights, WEIGHTS)
        check_scale("scale", self.scale)
        if self.order is not None:
            check_integer("order", self.order, 1)

    def resolve(
        self, rows: Rows, rng: np.random.Generator | None, weight: np.ndarray | None = None
    ) -> RandomNeurons:
        """Return this map: nothing in it depends on the data."""
        return self

    def draw(self, n_components: int, n_features: int, rng: Seed = None) -> FeatureSet:
        """Draw n_components features of n_features inputs; a seed gives the same features each
        time.

        Raises
        ------
        ValueError, TypeError
            order is above n_features; a number of another kind or size.
        """
        n_components = check_integer("n_components", n_components, 0)
        n_features = check_integer("n_features", n_features, 1)
        if self.order is not None and self.order > n_features:
            raise ValueError(
                f"order must be at most the number of inputs, {n_features}, got {self.order}"
            )
        rng = check_rng(rng)
        w = self._draw_weights(rng, (n_components, self.order or n_features))
        inputs = None if self.order is None else _subsets(rng, n_components, self.order, n_features)
        if ACTIVATIONS[self.activation].is_periodic and self.weights != "uniform":
            offset = rng.uniform(0.0, 2 * np.pi, n_components)
        else:
            offset = self._draw_weights(rng, n_components)
        return FeatureSet([NeuronBlock(self.activation, 1.0, w, offset, inputs)], n_features)

    def _draw_weights(self, rng, shape):
        """Draw numbers from the distribution of the weights."""
        if self.weights == "uniform":
            return rng.uniform(-self.scale, self.scale, shape)
        return self.scale * (
            rng.standard_normal(shape) if self.weights == "normal" else rng.standard_cauchy(shape)
        )


def _subsets(rng, n, order, d):
    """Draw n sorted subsets, each of `order` out of d inputs, uniformly and without an n x d array
    (Floyd's algorithm)."""
    subsets = np.empty((n, order), np.int32)
    # the k-th of {0..top}, or top itself where the draw repeats
    for k, top in enumerate(range(d - order, d)):
        pick = rng.integers(0, top + 1, n)
        taken = (subsets[:, :k] == pick[:, None]).any(axis=1)
        subsets[:, k] = np.where(taken, top, pick)
    return np.sort(subsets, axis=1)


# The standard deviations of w'x of `sines_of_few`, for inputs of deviation 1. They were compared on
# 15 tables by the error of `harfe` with these sines and the inputs, relative to that of
# `sparse_rf`: with (0.25, 0.5, 1) its geometric mean was 1.13 times, and its median .96 times, that
# of these widths; with (0.5, 1.5) 1.13 and 1.04 times.
WIDTHS = (0.4, 1.0)


def sines_of_few(n_features: int) -> tuple[RandomNeurons, ...]:
    """Return maps of sines of one and of two inputs, at two widths each, for n_features inputs in
    units of their deviations."""
    orders = [q for q in (1, 2) if q <= n_features]
    return tuple(RandomNeurons("sin", order=q, scale=c / q**0.5) for q in orders for c in WIDTHS)
