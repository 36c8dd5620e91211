"""What phi is: maps that can be drawn from, and the FeatureSet that was drawn."""

from .dictionary import make_dictionary
from .feature_set import FeatureBlock, FeatureSet
from .fourier import Fourier
from .linear import Linear
from .neurons import RandomNeurons
from .perceptron import Perceptron

__all__ = ["FeatureBlock", "FeatureSet", "Fourier", "Linear", "Perceptron", "RandomNeurons", "make_dictionary"]
