"""Linear systems that are positive semidefinite up to rounding."""

import numpy as np


def solve_positive(H, g):
    """H^-1 g for a positive semidefinite H, with the least ridge that makes it definite; None if none does."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    for ridge in (1e-14, 1e-11, 1e-8):
        damped = H.copy()
        damped.flat[:: len(H) + 1] += ridge * H.diagonal().max(initial=0.0)
        try:
            d = cho_solve(cho_factor(damped, overwrite_a=True, check_finite=False), g, check_finite=False)
        except (LinAlgError, ValueError):
            continue
        if np.isfinite(d).all():
            return d
    return None
