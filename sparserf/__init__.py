"""Sparse models on random features: kernel quality in tens or hundreds of terms."""

from typing import TYPE_CHECKING

try:
    from ._version import __version__ as __version__  # made when the package is built
except ModuleNotFoundError:  # the sources of a clone, which are not compiled: the end of this file takes what is installed
    __version__ = ""
else:
    from . import losses
    from .algorithms.drp import drp, drp_path
    from .algorithms.harfe import harfe, harfe_path
    from .algorithms.mfga import mfga, mfga_path
    from .algorithms.prune import prune
    from .algorithms.sparse_rf import sparse_rf, sparse_rf_path
    from .columns.cells import IndexWarning
    from .features import FeatureSet, Fourier, Linear, Perceptron, RandomNeurons, Taylor
    from .model import ConvergenceWarning, FitInfo, SparseModel, load
    from .rows import BlockError, Chunks
    from .sums.sums import Sums
    from .validation.calibration import calibrated
    from .validation.conformal import Intervals, intervals
    from .validation.cross_validation import CrossValidation, cross_validate

__all__ = [
    "BlockError",
    "Chunks",
    "ConvergenceWarning",
    "CrossValidation",
    "FeatureSet",
    "FitInfo",
    "Fourier",
    "IndexWarning",
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


if not __version__:  # Python was started in the root of a clone: this module becomes the installed package, which comes later
    import sys
    from importlib.machinery import PathFinder
    from pathlib import Path

    _spec = PathFinder.find_spec(__name__, [entry for entry in sys.path if Path(entry, __name__, "_version.py").exists()])
    if _spec is None or _spec.loader is None:
        raise ImportError(
            f"the sources of sparserf in {__path__[0]} are not compiled, and no sparserf is installed: "
            "`python -m pip install .` in the root of the clone does both"
        )
    __file__, __path__, __loader__ = _spec.origin, _spec.submodule_search_locations, _spec.loader
    _spec.loader.exec_module(sys.modules[__name__])
    __spec__ = _spec  # at last: until then other threads wait for the import
