"""The methods that the papers of sparserf's algorithms compare with, for the experiments: short, on
the library's public functions, without its checks of arguments.

X is a matrix, y a real target, or labels of two classes.
"""

from .kernel_machine import kernel_machine
from .random_features import eerf, lkrf, rks
from .random_projection import random_projection
from .srfe import srfe

__all__ = ["eerf", "kernel_machine", "lkrf", "random_projection", "rks", "srfe"]
