"""Type aliases of arrays, matrices and seeds, which signatures in all packages share."""

from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

T = TypeVar("T")
P = ParamSpec("P")


class HasShape(Protocol):
    """A matrix that is no NumPy array: a data frame, a sparse matrix, a dask collection, `Chunks`,
    a tensor."""

    @property
    def shape(self) -> Any:
        """(n_rows, n_columns)."""
        ...


# The arguments X and rng of public functions.
MatrixLike: TypeAlias = ArrayLike | HasShape
Seed: TypeAlias = "int | np.integer | np.random.Generator | None"  # numpy.random is slow to import

# An array of any namespace, on any device.
Array: TypeAlias = Any
# A vector with a number for each row, stored where the rows are; arithmetic on it goes through
# `RowVectors`.
RowVector: TypeAlias = Any
# A dense matrix, or a canonical CSR one, in the memory of this process.
DenseOrCSR: TypeAlias = Any
