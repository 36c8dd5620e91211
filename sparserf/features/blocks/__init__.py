"""The kinds of features: a file for each, and the list of all, `KINDS`.

A new kind is a file here with a subclass of `FeatureBlock`, which says all that is asked of it
(`base.py`), and its place in `KINDS`; and the kernel that computes it, in `_core/`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.npz import require
from .base import FeatureBlock
from .bounds import Group, Relaxation
from .boxes import BoxBlock
from .bumps import BumpBlock
from .constrained import without_forbidden
from .linear import LinearBlock
from .monomials import MonomialBlock, runs
from .neurons import NeuronBlock, Shape, shaped_neurons
from .pieces import Pieces, nodes
from .stored import StoredBlock
from .terms import Term

__all__ = [
    "KINDS",
    "BoxBlock",
    "BumpBlock",
    "FeatureBlock",
    "Group",
    "LinearBlock",
    "MonomialBlock",
    "NeuronBlock",
    "Pieces",
    "Relaxation",
    "Shape",
    "Term",
    "block_from_arrays",
    "nodes",
    "runs",
    "shaped_neurons",
    "without_forbidden",
]

# All kinds of features. Where two have the same name in files, the last one reads them.
KINDS: tuple[type[FeatureBlock], ...] = (
    NeuronBlock,
    LinearBlock,
    MonomialBlock,
    BumpBlock,
    BoxBlock,
)
OF_NAME = {name: kind for kind in KINDS for name in kind.names}


def block_from_arrays(
    meta: dict[str, Any], arrays: dict[str, np.ndarray], i: int, n_inputs: int
) -> FeatureBlock:
    """Make block i from the contents of a file, which are not trusted.

    Raises ValueError, or KeyError where an array is missing, if no block was so written.
    """
    require(type(meta) is dict, "blocks")
    name, scale = meta["activation"], meta["scale"]
    require(type(name) is str and name in OF_NAME, "activation")
    require(type(scale) is float and np.isfinite(scale), "scale")
    block = OF_NAME[name].from_stored(StoredBlock(meta, arrays, i, n_inputs))
    require(meta == block.meta, "blocks")
    return block
