"""The methods that the papers of sparserf's algorithms compare with, on the same parts."""

from .boosting import boosting
from .kernel_machines import KernelModel, kernel_ridge, kernel_svm
from .random_features import eerf, lkrf, rks
from .random_projection import random_projection
from .srfe import srfe

__all__ = [
    "KernelModel",
    "boosting",
    "eerf",
    "kernel_ridge",
    "kernel_svm",
    "lkrf",
    "random_projection",
    "rks",
    "srfe",
]
