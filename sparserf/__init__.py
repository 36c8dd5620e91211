"""Sparse models on random features: kernel quality in tens or hundreds of terms."""

from . import baselines, plot
from .algorithms.drp import drp, drp_path
from .algorithms.harfe import harfe, harfe_path
from .algorithms.mfga import mfga, mfga_path
from .algorithms.prune import prune
from .algorithms.sparse_rf import sparse_rf, sparse_rf_path
from .features import FeatureSet, Fourier, Linear, Perceptron, RandomNeurons, Taylor
from .model import ConvergenceWarning, FitInfo, SparseModel, load

__version__ = "0.1.0"

__all__ = [
    "ConvergenceWarning",
    "FeatureSet",
    "FitInfo",
    "Fourier",
    "Linear",
    "Perceptron",
    "RandomNeurons",
    "SparseModel",
    "Taylor",
    "baselines",
    "drp",
    "drp_path",
    "harfe",
    "harfe_path",
    "load",
    "mfga",
    "mfga_path",
    "plot",
    "prune",
    "sparse_rf",
    "sparse_rf_path",
]
