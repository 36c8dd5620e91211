"""A model as a function: an expansion in terms, what it predicts, its terms one by one, its
outputs, and boxes of its rows.

What explains, proves, derives and exports a model is written for an `Expansion`, and gives its
methods to `SparseModel` (`model/`), which users see.
"""

from .expansion import Expansion as Expansion
from .fit_info import FitInfo as FitInfo
