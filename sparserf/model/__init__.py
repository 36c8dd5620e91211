"""The model that every algorithm returns, and its file."""

from .sparse_model import Callback as Callback
from .sparse_model import ConvergenceWarning as ConvergenceWarning
from .sparse_model import FitInfo as FitInfo
from .sparse_model import SparseModel as SparseModel
from .sparse_model import warn_unconverged as warn_unconverged
