"""Sparse models on random features: kernel quality in tens or hundreds of terms."""

from typing import TYPE_CHECKING

try:
    from ._version import __version__ as __version__  # made when the package is built
except ModuleNotFoundError as error:
    there = "Python found the sources of sparserf, which are not compiled, before the installed package"
    raise ImportError(f"{there}: start it in another folder than the one of {__path__[0]}") from error

from . import losses
from .algorithms.drp import drp, drp_path
from .algorithms.harfe import harfe, harfe_path
from .algorithms.mfga import mfga, mfga_path
from .algorithms.prune import prune
from .algorithms.sparse_rf import sparse_rf, sparse_rf_path
from .calibration import calibrated
from .conformal import Intervals, intervals
from .features import FeatureSet, Fourier, Linear, Perceptron, RandomNeurons, Taylor
from .model import ConvergenceWarning, FitInfo, SparseModel
from .model_file import load
from .rows import BlockError, Chunks
from .sums import Sums
from .validation import CrossValidation, cross_validate

__all__ = [
    "BlockError",
    "Chunks",
    "ConvergenceWarning",
    "CrossValidation",
    "FeatureSet",
    "FitInfo",
    "Fourier",
    "Intervals",
    "Linear",
    "Perceptron",
    "RandomNeurons",
    "SparseModel",
    "Sums",
    "Taylor",
    "baselines",
    "calibrated",
    "cross_validate",
    "drp",
    "drp_path",
    "harfe",
    "harfe_path",
    "intervals",
    "load",
    "losses",
    "mfga",
    "mfga_path",
    "plot",
    "prune",
    "sparse_rf",
    "sparse_rf_path",
]


if TYPE_CHECKING:
    from . import baselines, plot
    from . import sklearn as sklearn
else:

    def __getattr__(name):
        """The modules that few programs use, imported when first asked for."""
        if name not in ("baselines", "plot", "sklearn"):
            raise AttributeError(f"module 'sparserf' has no attribute {name!r}")
        from importlib import import_module

        return import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    """What there is for users: not the modules that were imported on the way, nor one that lacks its library."""
    from importlib.util import find_spec

    return ["__version__", *__all__, *(["sklearn"] if find_spec("sklearn") else [])]
