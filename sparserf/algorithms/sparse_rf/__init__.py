"""Sparse Random Features (Yen et al. 2014).

Where to find what:

- The public functions: `functions.py`. Their arguments, and which of them have no meaning with an
  alpha: `options.py`.
- Algorithm 1 of the paper, and the exact descent over all draws: `algorithm_1` and `exact_descent`,
  first in `descent.py`.
- The duality gap: computed in `L1Fit.look_at`, tested in `L1Fit.improve_over`, both in
  `descent.py`; of all classes together, in `multinomial.py`.
- The draws, which of them violate the optimality condition, and where they come from: `draws.py`.
- What happens where alpha is None: `algorithms/default/`, which Algorithm 1 does not need.
"""

from .functions import sparse_rf as sparse_rf
from .functions import sparse_rf_path as sparse_rf_path
