"""A Cholesky factor that grows by blocks, as greedy methods need it."""

import numpy as np

# A pivot below this share of its diagonal is rounding: the column depends on those before it.
DEPENDENT = 1e-12


class Cholesky:
    """L L' = H for a matrix H to which columns are added; O(k^2 p + k p^2) for p columns beside k."""

    def __init__(self):
        self._L = np.zeros((0, 0))
        self.weakest: float = 1.0  # the smallest pivot, as a share of its diagonal

    def __len__(self) -> int:
        return len(self._L)

    def append(self, cross: np.ndarray, corner: np.ndarray, all_of_them: bool = False) -> np.ndarray:
        """Add columns of H, `cross` their part beside what is there (k, p), `corner` among themselves (p, p).

        Those that depend on what is there, or on a new one before them, are left out; or, where `all_of_them`, get
        their diagonal for a pivot. Returns a mask of those that were added.
        """
        from scipy.linalg import solve_triangular

        Y = solve_triangular(self._L, cross, lower=True, check_finite=False) if len(self) else cross
        C, added = _factor(corner - Y.T @ Y, corner.diagonal(), all_of_them)
        diagonal = np.maximum(corner.diagonal()[added], 1e-300)
        self.weakest = min(self.weakest, (C.diagonal() ** 2 / diagonal).min(initial=1.0))
        zeros = np.zeros((len(self), len(C)))
        self._L = np.block([[self._L, zeros], [Y.T[added], C]])
        return added

    def solve(self, b: np.ndarray) -> np.ndarray:
        """H^-1 b for b of shape (k,), or for each line of (n, k)."""
        from scipy.linalg import cho_solve

        return cho_solve((self._L, True), b.T, check_finite=False).T


def _factor(S, diagonal, all_of_them):
    """(C, added): C C' = S[added, added], lower triangular."""
    p = len(S)
    C, added = np.zeros((p, p)), np.zeros(p, bool)
    for j in range(p):
        column = S[:, j] - C @ C[j]
        pivot = column[j]
        if not pivot > DEPENDENT * diagonal[j]:
            if not all_of_them:
                continue
            pivot, column = max(diagonal[j], 1e-300), np.zeros(p)
            column[j] = pivot
        C[:, j], added[j] = column / np.sqrt(pivot), True
    return C[np.ix_(added, added)], added
