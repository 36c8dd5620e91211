"""Conjugate gradients for several positive definite systems at once, and a preconditioner made of a
sketch of the matrix.

M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems, 1952. The
preconditioner is the damped inverse of a sketch B B' of the matrix, by Woodbury's identity

    (B B' + nu I)^-1 = (I - B (B'B + nu I)^-1 B') / nu

at a level nu for which B has enough columns: a level needs about as many as its effective
dimension, tr G (G + nu I)^-1 with G = B'B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._base.arrays import namespace
from .cholesky import inverse_positive

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import Array

# The least nu, as a share of the trace of G: below it the entries of G are rounding errors.
LEAST = 1e-14


def norms(a: Array) -> Array:
    """Return the length of each row of a, an array of any namespace; no square over- or
    underflows."""
    xp = namespace(a)
    largest = xp.max(xp.abs(a), axis=1, keepdims=True)
    unit = a / xp.where(largest > 0, largest, xp.ones_like(largest))
    return largest[:, 0] * xp.sqrt(xp.vecdot(unit, unit))


class VectorSpace(Protocol):
    """The operations of `conjugate_gradients` on the vectors of several systems, one vector for
    each, of any type."""

    def dots(self, a: Any, b: Any) -> np.ndarray:
        """Return the inner product of a and b for each system."""
        ...

    def along(self, x: Any, t: np.ndarray, d: Any) -> Any:
        """Return x + t d for a number t of each system."""
        ...


class ArrayVectors:
    """The space of vectors that are rows of an ndarray, one for each system."""

    @staticmethod
    def dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the inner product of each row of a with that of b."""
        return np.vecdot(a, b)

    @staticmethod
    def along(x: np.ndarray, t: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Return x + t d for a number t of each system."""
        return x + t[:, None] * d


def conjugate_gradients(
    A: Callable[[Any], Any],
    precondition: Callable[[Any], Any],
    b: Any,
    zero: Any,
    enough: Callable[..., np.ndarray],
    max_iter: int,
    space: VectorSpace,
) -> tuple[Any, int]:
    """Solve A x = b for each of several systems, from x = 0, and return (x, the number of steps).

    A and the preconditioner P are symmetric in the inner product of the space.

    A, precondition : functions of a vector of each system
    b, zero : the right-hand sides, and where to begin
    enough : a function of (x, r, <r, P r>), with r = b - A x, that says of each system whether it
        is solved
    space : `ArrayVectors`, `RowVectors` or another
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


class DampedInverse:
    """(G + nu I)^-1 for G = B'B of a sketch B, with nu the least of alpha, 2 alpha, 4 alpha, ...
    for which B has enough columns.

    nu : float
    inverse : ndarray
    """

    def __init__(self, G: np.ndarray, alpha: float, is_exact: bool = False):
        """is_exact: whether G is no sketch but the matrix itself, for which any nu is good that
        makes it definite."""
        # A sketch must have this many columns for each effective dimension: then B B' + nu I is
        # within small factors of the matrix that it approximates. At smaller nu a sketch is noise,
        # and worse than none.
        per_dimension = 2

        self.nu: float = max(alpha, LEAST * np.trace(G))
        while True:
            self.inverse: np.ndarray | None = inverse_positive(G, self.nu)
            if self.inverse is not None and (
                is_exact or self.effective_dimension() * per_dimension <= len(G)
            ):
                break
            self.nu *= 2

    def effective_dimension(self) -> float:
        """Return tr G (G + nu I)^-1."""
        return len(self.inverse) - self.nu * float(np.trace(self.inverse))
