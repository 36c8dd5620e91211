"""Cholesky factors of matrices that are positive semidefinite up to rounding.

A Gram matrix Phi' diag(h) Phi of nearly collinear features has eigenvalues that rounding may make
negative, and then the plain factorisation fails. What is done then depends on the use:

- `factor_positive`, `solve_positive`: tiny ridges, each a share of its diagonal entry, tried from
  the least on;
- `inverse_positive`: none, the caller raises its own ridge;
- `GrowingCholesky`: a column whose pivot is rounding is left out, or gets its diagonal for a pivot;
- `semidefinite_root`: pivoting, which ends at the numerical rank.
"""

from __future__ import annotations

import numpy as np

# Ridges that `factor_positive` tries one after another, as shares of each diagonal entry.
RIDGES = (1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-8)


def _cholesky(A):
    """Return SciPy's (factor, is_lower) of A, which is overwritten; None where A is not positive
    definite."""
    from scipy.linalg import LinAlgError, cho_factor

    try:
        return cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    except (LinAlgError, ValueError):
        return None


def factor_positive(H: np.ndarray) -> tuple[np.ndarray, bool] | None:
    """Return the Cholesky factor, as of `scipy.linalg.cho_factor`, of H with the least of RIDGES
    that makes it definite.

    H is positive semidefinite up to rounding. None where no ridge makes it definite.
    """
    diagonal = np.where(H.diagonal() > 0, H.diagonal(), H.diagonal().max(initial=0.0))
    for ridge in RIDGES:
        damped = H.copy()
        damped.flat[:: len(H) + 1] += ridge * diagonal
        factor = _cholesky(damped.T)  # the transpose lies as LAPACK has it: no copy
        if factor is not None:
            return factor
    return None


def solve_positive(H: np.ndarray, g: np.ndarray) -> np.ndarray | None:
    """Return H^-1 g, with H damped as in `factor_positive`; None where no ridge helps, or the
    solution is not finite."""
    from scipy.linalg import cho_solve

    factor = factor_positive(H)
    d = None if factor is None else cho_solve(factor, g, check_finite=False)
    return d if d is not None and np.isfinite(d).all() else None


def inverse_positive(G: np.ndarray, nu: float) -> np.ndarray | None:
    """Return (G + nu I)^-1; None where rounding has left G too indefinite for that ridge."""
    from scipy.linalg import lapack

    damped = G.copy()
    damped.flat[:: len(G) + 1] += nu
    factor = _cholesky(damped)
    if factor is None:
        return None
    lower, _ = lapack.dpotri(factor[0], lower=True, overwrite_c=True)
    lower = np.tril(lower)
    return lower + np.tril(lower, -1).T


def semidefinite_root(K: np.ndarray, eps: float) -> np.ndarray:
    """Return B with B B' = K, of as many columns as K has numerical rank at precision eps, at least
    one.

    The Cholesky factor with pivots.
    """
    from scipy.linalg import lapack

    factor, pivots, rank, _ = lapack.dpstrf(K, tol=len(K) * eps * K.diagonal().max(), lower=True)
    B = np.zeros((len(K), max(1, rank)))
    B[pivots - 1, :rank] = np.tril(factor)[:, :rank]
    return B


class GrowingCholesky:
    """L with L L' = H for a matrix H to which rows and columns are added; O(k^2 p + k p^2) for p
    columns beside k.

    weakest : float
        The smallest pivot so far, as a share of its diagonal entry.
    """

    def __init__(self):
        self._L = np.zeros((0, 0))
        self.weakest: float = 1.0

    def __len__(self) -> int:
        return len(self._L)

    def append(
        self, cross: np.ndarray, corner: np.ndarray, all_of_them: bool = False
    ) -> np.ndarray:
        """Add p columns to H, and return a mask of the columns that were added.

        A column that depends on columns of H, or on a new one before it, is left out.

        cross : ndarray of shape (k, p)
            The new columns at the rows that H has.
        corner : ndarray of shape (p, p)
            The new columns at the new rows.
        all_of_them : bool
            Whether dependent columns are added, too, with their diagonal entry for a pivot.
        """
        from scipy.linalg import solve_triangular

        Y = solve_triangular(self._L, cross, lower=True, check_finite=False) if len(self) else cross
        C, added = _factor_independent(corner - Y.T @ Y, corner.diagonal(), all_of_them)
        diagonal = np.maximum(corner.diagonal()[added], 1e-300)
        self.weakest = min(self.weakest, (C.diagonal() ** 2 / diagonal).min(initial=1.0))
        zeros = np.zeros((len(self), len(C)))
        self._L = np.block([[self._L, zeros], [Y.T[added], C]])
        return added

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return H^-1 b for b of shape (k,), or for each row of b of shape (n, k)."""
        from scipy.linalg import cho_solve

        return cho_solve((self._L, True), b.T, check_finite=False).T


def _factor_independent(S, diagonal, all_of_them):
    """Return (C, added): C lower triangular with C C' = S[added, added], and the mask of the
    columns that are independent.

    diagonal : the entries beside which a pivot is rounding
    """
    # A pivot below this share of its diagonal entry is rounding: the column depends on earlier
    # ones.
    dependent = 1e-12

    p = len(S)
    C, added = np.zeros((p, p)), np.zeros(p, bool)
    for j in range(p):
        column = S[:, j] - C @ C[j]
        pivot = column[j]
        if not pivot > dependent * diagonal[j]:
            if not all_of_them:
                continue
            pivot, column = max(diagonal[j], 1e-300), np.zeros(p)
            column[j] = pivot
        C[:, j], added[j] = column / np.sqrt(pivot), True
    return C[np.ix_(added, added)], added
