"""Features: the maps that users draw from, the `FeatureSet` of what was drawn, and the dictionaries that algorithms search."""

from .bandwidth import inverse_deviations
from .blocks import BLOCK_ARRAYS, FeatureBlock, LinearBlock, MonomialBlock, NeuronBlock, block_from_arrays
from .dictionary import (
    NAMES,
    Dictionary,
    FixedDictionary,
    RandomDictionary,
    default_batch_size,
    draw_all,
    make_dictionary,
)
from .feature_set import FeatureSet, are_same, merge_solutions
from .fourier import Fourier
from .learning import BaseDistribution, LearningDictionary, RandomCosines, RandomSteps, make_learning_dictionary
from .linear import Linear, LinearFunctions, inputs_times, linear_functions
from .neurons import RandomNeurons
from .perceptron import Perceptron
from .projections import PROJECTIONS, Projection, folded, make_projection
from .taylor import Taylor

__all__ = [
    "BLOCK_ARRAYS",
    "NAMES",
    "PROJECTIONS",
    "BaseDistribution",
    "Dictionary",
    "FeatureBlock",
    "FeatureSet",
    "FixedDictionary",
    "Fourier",
    "LearningDictionary",
    "Linear",
    "LinearBlock",
    "LinearFunctions",
    "MonomialBlock",
    "NeuronBlock",
    "Perceptron",
    "Projection",
    "RandomCosines",
    "RandomDictionary",
    "RandomNeurons",
    "RandomSteps",
    "Taylor",
    "are_same",
    "block_from_arrays",
    "default_batch_size",
    "draw_all",
    "folded",
    "inputs_times",
    "inverse_deviations",
    "linear_functions",
    "make_dictionary",
    "make_learning_dictionary",
    "make_projection",
    "merge_solutions",
]
