"""The model that every algorithm returns, its terms and its outputs, and the file that it is written to."""

from .base import BaseModel as BaseModel
from .base import identity as identity
from .file import load as load
from .sparse_model import Callback as Callback
from .sparse_model import ConvergenceWarning as ConvergenceWarning
from .sparse_model import FitInfo as FitInfo
from .sparse_model import SparseModel as SparseModel
from .sparse_model import warn_unconverged as warn_unconverged
