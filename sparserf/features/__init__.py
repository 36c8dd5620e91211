"""What phi is: maps that can be drawn from, and the FeatureSet that was drawn."""

from .dictionary import NAMES, default_batch_size, draw_all, make_dictionary
from .feature_set import FeatureSet, are_same
from .fourier import Fourier
from .linear import Linear, LinearFunctions, inputs_times, linear_functions
from .linear_block import LinearBlock
from .mixture import Mixture
from .monomial_block import MonomialBlock
from .neuron_block import NeuronBlock
from .neurons import RandomNeurons
from .perceptron import Perceptron
from .projections import PROJECTIONS, make_projection
from .proposals import LearningDictionary, make_learning_dictionary
from .steps import Steps
from .taylor import Taylor
from .units import inverse_deviations

__all__ = [
    "NAMES",
    "PROJECTIONS",
    "FeatureSet",
    "Fourier",
    "LearningDictionary",
    "Linear",
    "LinearBlock",
    "LinearFunctions",
    "Mixture",
    "MonomialBlock",
    "NeuronBlock",
    "Perceptron",
    "RandomNeurons",
    "Steps",
    "Taylor",
    "are_same",
    "default_batch_size",
    "draw_all",
    "inputs_times",
    "inverse_deviations",
    "linear_functions",
    "make_dictionary",
    "make_learning_dictionary",
    "make_projection",
]
