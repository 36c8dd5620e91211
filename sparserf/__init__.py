"""Sparse models on random features: nonlinear regression and classification in tens to thousands of
terms."""

from typing import TYPE_CHECKING

try:
    from ._version import __version__ as __version__  # made when the package is built
except (
    ModuleNotFoundError
):  # the sources of a clone, which are not compiled: the end of this file takes what is installed
    __version__ = ""
else:
    from ._core import rows as _rows  # noqa: F401  kernels that cannot run on this processor fail here, not at the first fit

# for type checkers and readers; at run time each name is imported when it is first asked for
if TYPE_CHECKING:
    from . import losses, plot
    from . import sklearn as sklearn
    from ._base.calls import IndexWarning
    from ._base.versions import show_versions
    from ._base.warnings import CopiedRowsWarning, GroupedRowsWarning, TimeLimitWarning
    from .algorithms.distill import distill
    from .algorithms.drp import drp, drp_path
    from .algorithms.harfe import harfe, harfe_path
    from .algorithms.mfga import mfga, mfga_path
    from .algorithms.points import Points, points
    from .algorithms.prune import prune
    from .algorithms.refit import refit
    from .algorithms.sparse_rf import sparse_rf, sparse_rf_path
    from .features import (
        Bumps,
        FeatureSet,
        Fourier,
        Linear,
        Perceptron,
        RandomNeurons,
        Rules,
        Taylor,
    )
    from .model import ConvergenceWarning, FitInfo, SparseModel, load
    from .rows import BlockError, Chunks
    from .sums.sums import Sums
    from .validation.calibration import calibrated
    from .validation.conformal import Intervals, intervals
    from .validation.cross_validation import CrossValidation, cross_validate
    from .validation.survival import concordance, integrated_brier_score

# Where public names are imported from, {module: names}; and the modules that are public names
# themselves.
_NAMES = {
    "_base.calls": ("IndexWarning",),
    "_base.versions": ("show_versions",),
    "_base.warnings": ("CopiedRowsWarning", "GroupedRowsWarning", "TimeLimitWarning"),
    "algorithms.distill": ("distill",),
    "algorithms.drp": ("drp", "drp_path"),
    "algorithms.harfe": ("harfe", "harfe_path"),
    "algorithms.mfga": ("mfga", "mfga_path"),
    "algorithms.points": ("Points", "points"),
    "algorithms.prune": ("prune",),
    "algorithms.refit": ("refit",),
    "algorithms.sparse_rf": ("sparse_rf", "sparse_rf_path"),
    "features": (
        "Bumps",
        "FeatureSet",
        "Fourier",
        "Linear",
        "Perceptron",
        "RandomNeurons",
        "Rules",
        "Taylor",
    ),
    "model": ("ConvergenceWarning", "FitInfo", "SparseModel", "load"),
    "rows": ("BlockError", "Chunks"),
    "sums.sums": ("Sums",),
    "validation.calibration": ("calibrated",),
    "validation.conformal": ("Intervals", "intervals"),
    "validation.cross_validation": ("CrossValidation", "cross_validate"),
    "validation.survival": ("concordance", "integrated_brier_score"),
}
_MODULES = "losses", "plot", "sklearn"

__all__ = [
    "BlockError",
    "Bumps",
    "Chunks",
    "ConvergenceWarning",
    "CopiedRowsWarning",
    "CrossValidation",
    "FeatureSet",
    "FitInfo",
    "Fourier",
    "GroupedRowsWarning",
    "IndexWarning",
    "Intervals",
    "Linear",
    "Perceptron",
    "Points",
    "RandomNeurons",
    "Rules",
    "SparseModel",
    "Sums",
    "Taylor",
    "TimeLimitWarning",
    "calibrated",
    "concordance",
    "cross_validate",
    "distill",
    "drp",
    "drp_path",
    "harfe",
    "harfe_path",
    "integrated_brier_score",
    "intervals",
    "load",
    "losses",
    "mfga",
    "mfga_path",
    "plot",
    "points",
    "prune",
    "refit",
    "show_versions",
    "sparse_rf",
    "sparse_rf_path",
]


if not TYPE_CHECKING:

    def __getattr__(name):
        """Import a public name when it is first asked for, so that `import sparserf` costs
        little."""
        from importlib import import_module

        home = (
            name
            if name in _MODULES
            else next((home for home, names in _NAMES.items() if name in names), None)
        )
        if home is None:
            raise AttributeError(f"module 'sparserf' has no attribute {name!r}")
        module = import_module(f".{home}", __name__)
        thing = module if name in _MODULES else getattr(module, name)
        globals()[name] = thing  # next time it is found without this function
        return thing


def __dir__() -> list[str]:
    """Return the names that users need, without modules that only the package imports, or whose
    library is not installed."""
    from importlib.util import find_spec

    return ["__version__", *__all__, *(["sklearn"] if find_spec("sklearn") else [])]


# Python was started in the root of a clone: this module becomes the installed package, which comes
# later
if not __version__:
    import sys
    from importlib.machinery import PathFinder
    from pathlib import Path

    _spec = PathFinder.find_spec(
        __name__, [entry for entry in sys.path if Path(entry, __name__, "_version.py").exists()]
    )
    if _spec is None or _spec.loader is None:
        raise ImportError(
            f"the sources of sparserf in {__path__[0]} are not compiled, and no sparserf is "
            "installed: "
            "`python -m pip install .` in the root of the clone does both"
        )
    __file__, __path__, __loader__ = _spec.origin, _spec.submodule_search_locations, _spec.loader
    _spec.loader.exec_module(sys.modules[__name__])
    __spec__ = _spec  # the last step: until then other threads wait for the import
