"""Conjugate gradients for several systems at once, and the preconditioner that a sketch makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import namespace

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Array

# Projections for each effective dimension: at a level nu that affords them, B B' + nu I is within small factors of what it
# stands for. Below that level a sketch is noise, and worse than none.
PER_DIMENSION = 2
# Least nu beside the largest eigenvalue: what rounding leaves of G below it is noise.
LEAST = 1e-14


def dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Inner products of the rows of a and b."""
    return np.vecdot(a, b)


def norms(a: Array) -> Array:
    """Lengths of the rows of a, an array of any namespace; no square over- or underflows."""
    xp = namespace(a)
    largest = xp.max(xp.abs(a), axis=1, keepdims=True)
    unit = a / xp.where(largest > 0, largest, xp.ones_like(largest))
    return largest[:, 0] * xp.sqrt(xp.vecdot(unit, unit))


class Lines:
    """The vectors of several systems as the rows of an ndarray; `RowVectors` are another such space."""

    dots: Callable[[np.ndarray, np.ndarray], np.ndarray] = staticmethod(dots)

    @staticmethod
    def along(x: np.ndarray, t: np.ndarray, d: np.ndarray) -> np.ndarray:
        """x + t d, for a number t of each system."""
        return x + t[:, None] * d


def conjugate_gradients(
    A: Callable[[Any], Any], precondition: Callable[[Any], Any], b: Any, zero: Any, enough: Callable[..., np.ndarray],
    max_iter: int, space: Any,
) -> tuple[Any, int]:  # fmt: skip
    """x with A x = b for each of several systems, from zero until enough(x, r, <r, P r>) says so of each; and the steps.

    A and the preconditioner are symmetric in the inner product of the space, which answers dots(a, b) and along(x, t, d).
    """
    x, r = zero, b
    p = z = precondition(r)
    rho = space.dots(r, z)
    for n_iter in range(max_iter):
        going = ~enough(x, r, rho) & (rho > 0)
        if not going.any():
            return x, n_iter
        Ap = A(p)
        energy = space.dots(p, Ap)
        going &= energy > 0
        step = np.divide(rho, energy, out=np.zeros_like(rho), where=going)
        x, r = space.along(x, step, p), space.along(r, -step, Ap)
        z = precondition(r)
        new = space.dots(r, z)
        p = space.along(z, np.divide(new, rho, out=np.zeros_like(rho), where=going), p)
        rho = np.where(going, new, 0.0)
    return x, max_iter


class Shrunk:
    """(G + nu I)^-1 for G = B'B of a sketch, nu the least level from alpha upward that its columns are enough for.

    (B B' + nu I)^-1 = (I - B (G + nu I)^-1 B') / nu, Woodbury's identity.
    """

    def __init__(self, G: np.ndarray, alpha: float, is_exact: bool = False):
        self.nu: float = max(alpha, LEAST * np.trace(G))
        while True:
            self.inverse: np.ndarray | None = inverse(G, self.nu)
            if self.inverse is not None and (is_exact or self.effective_dimension() * PER_DIMENSION <= len(G)):
                break
            self.nu *= 2

    def effective_dimension(self) -> float:
        """tr G (G + nu I)^-1."""
        return len(self.inverse) - self.nu * float(np.trace(self.inverse))


def inverse(G: np.ndarray, nu: float) -> np.ndarray | None:
    """(G + nu I)^-1; None where rounding has left G too indefinite for it."""
    from scipy.linalg import lapack

    damped = G.copy()
    damped.flat[:: len(G) + 1] += nu
    factor, failed = lapack.dpotrf(damped, lower=True, overwrite_a=True)
    if failed:
        return None
    lower, _ = lapack.dpotri(factor, lower=True, overwrite_c=True)
    lower = np.tril(lower)
    return lower + np.tril(lower, -1).T


def root(K: np.ndarray, eps: float) -> np.ndarray:
    """B of as many columns as K has rank beside eps, with B B' = K: a Cholesky factor with pivots."""
    from scipy.linalg import lapack

    factor, pivots, rank, _ = lapack.dpstrf(K, tol=len(K) * eps * K.diagonal().max(), lower=True)
    B = np.zeros((len(K), max(1, rank)))
    B[pivots - 1, :rank] = np.tril(factor)[:, :rank]
    return B
