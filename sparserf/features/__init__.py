"""Features: the maps that users draw from, the `FeatureSet` of what was drawn, and the dictionaries
that algorithms search.

A new feature map is a frozen dataclass in a file of its own, such as `perceptron.py`, with the
members of `DrawableMap`; it is named in `dictionary.FeatureMap` and among the public names
(`sparserf/__init__.py`). Nothing else changes where its `draw` returns blocks of an existing kind;
the head of `blocks.py` lists what a new kind needs.
"""

from .activations import Activation
from .bandwidth import Gamma, distances, inverse_deviations
from .blocks import (
    BLOCK_ARRAYS,
    DENSE_BELOW,
    BumpBlock,
    FeatureBlock,
    LinearBlock,
    MonomialBlock,
    NeuronBlock,
    block_from_arrays,
)
from .dictionary import (
    NAMES,
    Dictionary,
    FeatureMap,
    Features,
    FixedDictionary,
    RandomDictionary,
    default_batch_size,
    draw_all,
    make_dictionary,
)
from .feature_set import DefaultNames, FeatureSet, Solution, are_same, check_any_sign
from .fourier import Fourier, Kernel
from .laplacian import Bumps
from .learning import (
    BaseDistribution,
    LearningDictionary,
    RandomCosines,
    RandomSteps,
    make_learning_dictionary,
)
from .linear import Linear, LinearFunctions, inputs_times, linear_functions
from .neurons import RandomNeurons
from .perceptron import Perceptron
from .projections import PROJECTIONS, Projection, ProjectionName, folded, make_projection
from .shapes import check_shapes, inputs_that_keep, keeps
from .taylor import Taylor

__all__ = [
    "BLOCK_ARRAYS",
    "DENSE_BELOW",
    "NAMES",
    "PROJECTIONS",
    "Activation",
    "BaseDistribution",
    "BumpBlock",
    "Bumps",
    "DefaultNames",
    "Dictionary",
    "FeatureBlock",
    "FeatureMap",
    "FeatureSet",
    "Features",
    "FixedDictionary",
    "Fourier",
    "Gamma",
    "Kernel",
    "LearningDictionary",
    "Linear",
    "LinearBlock",
    "LinearFunctions",
    "MonomialBlock",
    "NeuronBlock",
    "Perceptron",
    "Projection",
    "ProjectionName",
    "RandomCosines",
    "RandomDictionary",
    "RandomNeurons",
    "RandomSteps",
    "Solution",
    "Taylor",
    "are_same",
    "block_from_arrays",
    "check_any_sign",
    "check_shapes",
    "default_batch_size",
    "distances",
    "draw_all",
    "folded",
    "inputs_that_keep",
    "inputs_times",
    "inverse_deviations",
    "keeps",
    "linear_functions",
    "make_dictionary",
    "make_learning_dictionary",
    "make_projection",
]
