"""The kernels themselves, in blocks of rows: what the random features approximate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np

from .._base.checks import check_choice, is_sparse
from .._base.threads import Workers
from ..features import Fourier, Perceptron
from ..features.bandwidth import distances

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .._base.types import DenseOrCSR
    from ..features.bandwidth import Gamma
    from ..rows.home import Rows

KERNELS = ("gaussian", "laplacian", "perceptron", "gaussian+linear")
MachineKernel: TypeAlias = Literal["gaussian", "laplacian", "perceptron", "gaussian+linear"]
# Entries of the kernel matrix in a block: 8 MB, and a few such arrays a worker while it is made.
BLOCK_ENTRIES = 2**20


@dataclass(frozen=True)
class Kernel:
    """A kernel by name, with its gamma, or the radius of the perceptron kernel."""

    name: str
    gamma: float | None = None
    radius: float | None = None

    @classmethod
    def resolve(cls, name: Any, gamma: Gamma, rows: Rows, weight: np.ndarray) -> Self:
        """With the width that the random features of the same name would read off X."""
        check_choice("kernel", name, KERNELS)
        if name == "perceptron":
            if gamma is not None:
                raise ValueError(f"gamma must be None where kernel is 'perceptron', got {gamma!r}")
            return cls(name, radius=Perceptron().resolve(rows, None, weight).radius)
        fourier = Fourier(name.removesuffix("+linear"), gamma)
        return cls(name, gamma=fourier.resolve(rows, np.random.default_rng(0), weight).gamma)

    def blocks(
        self, A: DenseOrCSR, B: DenseOrCSR, workers: int, use: Callable[[np.ndarray], Any] = lambda K: K
    ) -> Iterator[tuple[slice, Any]]:
        """Yield (rows of A, use(K of these rows and B)) in order; blocks depend on the shapes alone."""
        A, B = _alike(A, B)
        size = max(1, BLOCK_ENTRIES // max(1, B.shape[0]))
        slices = [slice(i, min(i + size, A.shape[0])) for i in range(0, A.shape[0], size)]
        yield from zip(slices, Workers(workers).map(lambda rows: use(self._of(A[rows], B)), slices), strict=True)

    def matrix(self, X: DenseOrCSR, workers: int) -> np.ndarray:
        """K of the rows of X, float64."""
        K = np.empty((X.shape[0], X.shape[0]))
        for rows, block in self.blocks(X, X, workers):
            K[rows] = block
        return K

    @np.errstate(over="ignore", invalid="ignore")
    def _of(self, A, B):
        A = A.astype(np.float64, copy=False)
        if self.name == "perceptron":
            d = A.shape[1]
            c_d = math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
            K = 1 - c_d / self.radius * distances(A, B, "euclidean")
        elif self.name == "laplacian":
            K = np.exp(-self.gamma * distances(A, B, "cityblock"))
        else:
            K = np.exp(-self.gamma * distances(A, B, "euclidean") ** 2)
            if self.name == "gaussian+linear":
                product = A @ B.T
                K = (K + (product.toarray() if is_sparse(product) else product)) / 2
        if not np.isfinite(K).all():
            raise ValueError("X must be of moderate size, got values whose kernel overflows: scale its columns")
        return K


def _alike(A, B):
    """Both dense, or both CSR; B in float64, which it would else become once a block."""
    from scipy.sparse import csr_array

    if is_sparse(A) != is_sparse(B):
        A, B = csr_array(A), csr_array(B)
    return A, B.astype(np.float64, copy=False)
