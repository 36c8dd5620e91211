"""The model that every algorithm returns, and the file that it is written to."""

from ..expansion.fit_info import Callback as Callback
from ..expansion.fit_info import ConvergenceWarning as ConvergenceWarning
from ..expansion.fit_info import FitInfo as FitInfo
from ..expansion.fit_info import gap_in_words as gap_in_words
from ..expansion.fit_info import warn_unconverged as warn_unconverged
from .sparse_model import SparseModel as SparseModel
from .sparse_model import check_model as check_model
from .sparse_model import load as load
