"""Features: the maps that users draw from, the `FeatureSet` of what was drawn, and the dictionaries
that algorithms search.

A new feature map is a frozen dataclass in a file of its own, such as `perceptron.py`, with the
members of `FeatureMap`, and its name among the public ones (`sparserf/__init__.py`). Where its
`draw` returns blocks of a new kind, `blocks/` says what that needs.
"""

from .activations import Activation
from .blocks import (
    BoxBlock,
    BumpBlock,
    FeatureBlock,
    Group,
    LinearBlock,
    MonomialBlock,
    NeuronBlock,
    Pieces,
    Relaxation,
    Term,
    block_from_arrays,
    nodes,
)
from .dictionary import (
    NAMES,
    FixedDictionary,
    RandomDictionary,
    default_batch_size,
    draw_all,
    make_dictionary,
)
from .feature_set import DefaultNames, FeatureSet, are_same, check_any_sign
from .following import FIRST_DRAW
from .fourier import Fourier
from .growth import Bins
from .laplacian import Bumps
from .learning import LearningDictionary, RandomCosines, make_learning_dictionary
from .linear import Linear, inputs_times, linear_functions
from .neurons import RandomNeurons, sines_of_few
from .perceptron import Perceptron
from .projections import PROJECTIONS, Projection, make_projection, reduced_projection
from .rules import (
    RuleDictionary,
    RuleInputs,
    Rules,
    make_rule_dictionary,
    rules_at_a_penalty,
    same_angles,
)
from .shapes import check_shapes, inputs_that_keep, keeps
from .taylor import Taylor
from .thresholds import between_rows, is_for_single

__all__ = [
    "FIRST_DRAW",
    "NAMES",
    "PROJECTIONS",
    "Activation",
    "Bins",
    "BoxBlock",
    "BumpBlock",
    "Bumps",
    "DefaultNames",
    "FeatureBlock",
    "FeatureSet",
    "FixedDictionary",
    "Fourier",
    "Group",
    "LearningDictionary",
    "Linear",
    "LinearBlock",
    "MonomialBlock",
    "NeuronBlock",
    "Perceptron",
    "Pieces",
    "Projection",
    "RandomCosines",
    "RandomDictionary",
    "RandomNeurons",
    "Relaxation",
    "RuleDictionary",
    "RuleInputs",
    "Rules",
    "Taylor",
    "Term",
    "are_same",
    "between_rows",
    "block_from_arrays",
    "check_any_sign",
    "check_shapes",
    "default_batch_size",
    "draw_all",
    "inputs_that_keep",
    "inputs_times",
    "is_for_single",
    "keeps",
    "linear_functions",
    "make_dictionary",
    "make_learning_dictionary",
    "make_projection",
    "make_rule_dictionary",
    "nodes",
    "reduced_projection",
    "rules_at_a_penalty",
    "same_angles",
    "sines_of_few",
]
