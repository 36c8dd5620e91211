"""Row vectors: arrays whose last axis is the rows, such as targets, weights and predictions, kept
where the rows are.

Algorithms pass row vectors along and never look into them, since what one is depends on where the
rows live: an ndarray, an array on a device, or one part for each partition of a cluster. All
arithmetic on them goes through `RowVectors`, which is written once with the methods `map` and
`sum`, as `Rows` is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import namespace, outputs_like

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import RowVector


class RowVectors(ABC):
    """The arithmetic of row vectors of shape (n_rows,) or (n_outputs, n_rows). A subclass says
    where they live."""

    n_rows: int

    @abstractmethod
    def map(self, answer: Callable[..., Any], *vectors: RowVector, axis: int = -1) -> RowVector:
        """Return the results of answer(*parts) side by side: a row vector, or, for axis 0, a matrix
        with a line for each row.

        answer : a function answer(*parts) of parts of the vectors that belong to the same rows.
        """

    @abstractmethod
    def sum(
        self,
        answer: Callable[..., Any],
        *vectors: RowVector,
        add: Callable[[Any, Any], Any] = np.add,
    ) -> Any:
        """Return the results, arrays or tuples of arrays in the memory of this process, added up in
        the order of the parts."""

    @abstractmethod
    def put(self, values: np.ndarray) -> RowVector:
        """Return the row vector of an ndarray."""

    @abstractmethod
    def fetch(self, vector: RowVector) -> np.ndarray:
        """Return the ndarray of a row vector, or of a matrix with a line for each row."""

    def zeros(self, *outputs: int) -> RowVector:
        """Return zeros of shape (*outputs, n_rows)."""
        return self.put(np.zeros((*outputs, self.n_rows)))

    # ---------------------------------------------------------------- operations: row vectors

    def along(self, x: RowVector, t: float | np.ndarray, d: RowVector) -> RowVector:
        """Return x + t d, for a number t, or one for each output."""
        return self.map(lambda x, d: x + outputs_like(t, d) * d, x, d)

    def between(self, x: RowVector, t: float, end: RowVector) -> RowVector:
        """Return x + t (end - x)."""
        t = float(t)
        return self.map(lambda x, end: x + t * (end - x), x, end)

    def minus(self, x: RowVector, shift: float | np.ndarray) -> RowVector:
        """Return x - shift, for a number shift, or one for each output."""
        return self.map(lambda x: x - outputs_like(shift, x), x)

    def scaled(self, x: RowVector, t: float | np.ndarray) -> RowVector:
        """Return t x, for a number t, or one for each output."""
        return self.map(lambda x: x * outputs_like(t, x), x)

    def times(self, h: RowVector, x: RowVector) -> RowVector:
        """Return the entrywise product h x."""
        return self.map(lambda h, x: h * x, h, x)

    def larger(self, a: RowVector, b: RowVector) -> RowVector:
        """Return the entrywise maximum of a and b."""
        return self.map(lambda a, b: namespace(a).maximum(a, b), a, b)

    def root(self, x: RowVector) -> RowVector:
        """Return the square root of each entry."""
        return self.map(lambda x: namespace(x).sqrt(x), x)

    def output(self, x: RowVector, k: int) -> RowVector:
        """Return the row vector of output k."""
        return self.map(lambda x: x[..., k, :], x)

    def chosen(self, which: np.ndarray, a: RowVector, b: RowVector) -> RowVector:
        """Return the outputs of a where the mask `which` is true, and of b elsewhere."""
        return self.map(lambda a, b: namespace(a).where(outputs_like(which, a), a, b), a, b)

    def sampled(self, h: RowVector, n: float, uniform: RowVector) -> RowVector:
        """Return a random h with the same mean and about n nonzeros: h / p with probability p in
        proportion to h, else 0.

        uniform : random numbers in [0, 1), one for each entry.
        """
        n, total = float(n), float(self.total(h))

        def sample(h, uniform):
            xp = namespace(h)
            p = xp.clip(n * (h / total), None, 1.0)
            return xp.where(uniform < p, h / xp.where(p > 0, p, xp.ones_like(p)), xp.zeros_like(h))

        return self.map(sample, h, uniform)

    # ---------------------------------------------------------------- operations: numbers

    def total(self, x: RowVector) -> np.ndarray:
        """Return the sum over the rows, of each output."""
        return self.sum(lambda x: namespace(x).sum(x, axis=-1), x)

    def totals(self, *vectors: RowVector) -> tuple[np.ndarray, ...]:
        """Return the `total` of each vector, in one sum."""
        return self.sum(
            lambda *vectors: tuple(namespace(x).sum(x, axis=-1) for x in vectors), *vectors
        )

    def dots(self, a: RowVector, b: RowVector) -> np.ndarray:
        """Return the inner product a'b, of each output."""
        return self.sum(lambda a, b: namespace(a).vecdot(a, b), a, b)

    def distance(self, a: RowVector, b: RowVector) -> float:
        """Return the l1 distance of a and b."""
        return float(self.sum(lambda a, b: namespace(a).sum(namespace(a).abs(a - b)), a, b))

    def largest(self, *vectors: RowVector) -> tuple[float, ...]:
        """Return max |x| of each vector, in one sum."""
        return tuple(map(float, self.sum(_largest_sizes, *vectors, add=np.maximum)))

    def count(self, x: RowVector) -> int:
        """Return how many entries are not zero."""
        return int(self.sum(lambda x: namespace(x).count_nonzero(x), x))


class HostVectors(RowVectors):
    """Row vectors that are ndarrays in the memory of this process."""

    def __init__(self, n_rows: int):
        self.n_rows = n_rows

    def put(self, values: np.ndarray) -> np.ndarray:
        return values

    def fetch(self, vector: np.ndarray) -> np.ndarray:
        return vector

    def map(self, answer: Callable[..., Any], *vectors: np.ndarray, axis: int = -1) -> Any:
        return answer(*vectors)

    def sum(self, answer: Callable[..., Any], *vectors: np.ndarray, add: Any = None) -> Any:
        return answer(*vectors)

    def count(self, x: np.ndarray) -> int:
        return int(np.count_nonzero(x))


def _largest_sizes(*vectors):
    """Return max |x| of each array."""
    xp = namespace(vectors[0])
    return tuple(xp.max(xp.abs(x)) for x in vectors)
