"""A block of features as the file of a model, which is not trusted, holds it: what its features share, and arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.npz import floats, require
from .._core.features import ACTIVATIONS
from .linear_block import LinearBlock
from .monomial_block import MonomialBlock
from .neuron_block import NeuronBlock

if TYPE_CHECKING:
    from .block import FeatureBlock

META, ARRAYS = ("activation", "scale", "gamma"), ("weights", "offset", "inputs")


def written(block: FeatureBlock, i: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(meta, arrays) of block i."""
    arrays = {f"{name}_{i}": getattr(block, name) for name in ARRAYS}
    return {name: getattr(block, name) for name in META}, {name: a for name, a in arrays.items() if a is not None}


def read(meta: dict[str, Any], arrays: dict[str, np.ndarray], i: int, n_features_in: int) -> FeatureBlock:
    """Block i; ValueError, or KeyError where an array is missing, for what `written` would not give."""
    weights, offset, inputs = floats(arrays, f"weights_{i}"), floats(arrays, f"offset_{i}"), arrays.get(f"inputs_{i}")
    require(type(meta) is dict and set(meta) == set(META), "blocks")
    require(type(meta["activation"]) is str and meta["activation"] in ACTIVATIONS, "activation")
    require(type(meta["scale"]) is float and np.isfinite(meta["scale"]), "scale")
    require(offset.ndim == 1 and len(offset) > 0, "offset")
    if meta["activation"] == MonomialBlock.activation:
        return _monomials(meta, weights, offset, inputs, n_features_in)
    require(meta["gamma"] is None, "gamma")
    if inputs is None:
        require(weights.shape == (len(offset), n_features_in), "weights")
    else:
        _require_inputs(inputs, len(offset), n_features_in)
        require(weights.shape == inputs.shape, "weights")
    if meta["activation"] == LinearBlock.activation and not offset.any():
        return LinearBlock(meta["scale"], weights, inputs)
    return NeuronBlock(meta["activation"], meta["scale"], weights, offset, inputs)


def _monomials(meta, weights, offset, inputs, n_features_in):
    require(not offset.any(), "offset")
    require(type(meta["gamma"]) is float and 0 < meta["gamma"] <= 1e300 and inputs is not None, "gamma")
    _require_inputs(inputs, len(offset), n_features_in + 1)  # 0 stands for 1
    require(weights.shape == (len(offset), 1), "weights")
    return MonomialBlock(meta["scale"], weights, inputs, meta["gamma"])


def _require_inputs(inputs, n_features, n_inputs):
    require(inputs.dtype == np.int32 and inputs.ndim == 2 and len(inputs) == n_features, "inputs")
    require(inputs.size > 0 and inputs.min() >= 0 and inputs.max() < n_inputs, "inputs")
