"""A quadratic in coordinates of which some must be at least 0:

    minimise over w   (1/2) w'G w - c'w,   w_j >= 0 for some j.

Block principal pivoting: guess which coordinates are not zero, minimise over these, and exchange
all that are wrong: the negative ones, and zeros with a negative slope. If their number does not
decrease a few times in a row, exchange one at a time, which is sure to end (L. F. Portugal, J. J.
Judice, L. N. Vicente, A comparison of block pivoting and interior-point algorithms for linear least
squares problems with nonnegative variables, Mathematics of Computation 63, 1994).
"""

from __future__ import annotations

import itertools

import numpy as np

from .cholesky import solve_positive


def nonnegative_minimum(G: np.ndarray, c: np.ndarray, nonnegative: np.ndarray) -> np.ndarray:
    """Return the w of least (1/2) w'G w - c'w, with w_j >= 0 where the mask `nonnegative` holds; G
    is positive definite."""
    if not nonnegative.any():
        return solve_positive(G, c)
    # This many exchanges in a row may leave the number of wrong coordinates as it is.
    patience = 3
    # A slope below this share of the sum of its terms is rounding.
    slope_rounding = 1e-13
    # After this many exchanges for each coordinate no further one leaves zero: rounding might keep
    # exchanging them for ever.
    most_exchanges = 3

    used, fewest, waited = np.ones(len(c), bool), np.inf, 0
    for k in itertools.count():
        A, w = np.flatnonzero(used), np.zeros(len(c))
        w[A] = solve_positive(G[np.ix_(A, A)], c[A])
        rounding = slope_rounding * (np.abs(G) @ np.abs(w) + np.abs(c))
        wrong = nonnegative & np.where(used, w < 0, G @ w - c < -rounding)
        if k > most_exchanges * len(c):
            wrong &= used
        n_wrong = np.count_nonzero(wrong)
        if n_wrong == 0:
            return w
        waited = 0 if n_wrong < fewest else waited + 1
        fewest = min(fewest, n_wrong)
        if waited > patience:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        used ^= wrong
