"""Linear systems that are positive semidefinite up to rounding."""

import numpy as np

# Shares of each diagonal entry that are tried as its ridge, one after another, where rounding has left no definite matrix.
RIDGES = (1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-8)


def factor_positive(H: np.ndarray) -> tuple[np.ndarray, bool] | None:
    """Cholesky's factor of a positive semidefinite H with the least ridge that makes it definite; None if none does."""
    from scipy.linalg import LinAlgError, cho_factor

    diagonal = np.where(H.diagonal() > 0, H.diagonal(), H.diagonal().max(initial=0.0))
    for ridge in RIDGES:
        damped = H.copy()
        damped.flat[:: len(H) + 1] += ridge * diagonal
        try:
            return cho_factor(damped.T, lower=True, overwrite_a=True, check_finite=False)  # as LAPACK has it: no copy
        except (LinAlgError, ValueError):
            continue
    return None


def solve_positive(H: np.ndarray, g: np.ndarray) -> np.ndarray | None:
    """H^-1 g with that ridge; None where no number solves it."""
    from scipy.linalg import cho_solve

    factor = factor_positive(H)
    d = None if factor is None else cho_solve(factor, g, check_finite=False)
    return d if d is not None and np.isfinite(d).all() else None
