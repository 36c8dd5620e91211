"""Sparse Random Features (Yen et al. 2014).

Where to find what:

- The public functions: `functions.py`. Their arguments, and which of them have no meaning with an
  alpha: `options.py`.
- Algorithm 1 of the paper, and the exact descent over all draws: `algorithm_1` and `exact_descent`,
  first in `descent.py`.
- The duality gap: computed in `L1Fit.look_at`, tested in `L1Fit.improve_over`, both in
  `descent.py`; of all classes together, in `multinomial.py`. Which of the two fits a task has:
  `fits.py`.
- The draws, which of them violate the optimality condition, and where they come from: `draws.py`.
- How alpha, the kind of model and its terms are chosen where alpha is None:
  `choose_by_held_out_rows` in `search.py`.
- Which rows are held out by default: `hold_out` in `held_out.py`. Which rows a search looks at:
  `Sample.draw`, there, too. How rows to hold out, and groups, are read from what users give:
  `_base/splits.py`.
- What a call may cost: `budget.py`.
"""

from .functions import sparse_rf as sparse_rf
from .functions import sparse_rf_path as sparse_rf_path
