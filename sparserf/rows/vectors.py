"""Row vectors: arrays whose last axis is the rows, kept where the rows are. Algorithms pass them along; what is computed on
them is an answer given to the two verbs, as what is asked of the rows is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import namespace, outputs_like

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import RowVector


class RowVectors:
    """The row vectors of a home.

    A home answers the verbs, each of which calls answer(*parts) for the parts that lie together:

    map(answer, *vectors, axis) : a row vector, or, of axis 0, a matrix of the rows
    sum(answer, *vectors, add) : the answers, arrays or tuples of arrays, added up in the order of the parts, on the host

    And put(values), the row vector of an ndarray; fetch(vector), the ndarray of a row vector, or of a matrix of the rows.
    n_rows is their length.
    """

    n_rows: int

    map: Callable[..., RowVector]
    sum: Callable[..., Any]
    put: Callable[[np.ndarray], RowVector]
    fetch: Callable[[RowVector], np.ndarray]

    def zeros(self, *outputs: int) -> RowVector:
        return self.put(np.zeros((*outputs, self.n_rows)))

    def along(self, x: RowVector, t: float | np.ndarray, d: RowVector) -> RowVector:
        """x + t d, for a number t, or one for each output."""
        return self.map(lambda x, d: x + outputs_like(t, d) * d, x, d)

    def between(self, x: RowVector, t: float, end: RowVector) -> RowVector:
        """x + t (end - x)."""
        t = float(t)
        return self.map(lambda x, end: x + t * (end - x), x, end)

    def minus(self, x: RowVector, shift: float | np.ndarray) -> RowVector:
        """x - shift, for a number, or one for each output."""
        return self.map(lambda x: x - outputs_like(shift, x), x)

    def scaled(self, x: RowVector, t: float | np.ndarray) -> RowVector:
        """t x, for a number, or one for each output."""
        return self.map(lambda x: x * outputs_like(t, x), x)

    def times(self, h: RowVector, x: RowVector) -> RowVector:
        return self.map(lambda h, x: h * x, h, x)

    def larger(self, a: RowVector, b: RowVector) -> RowVector:
        return self.map(lambda a, b: namespace(a).maximum(a, b), a, b)

    def positive(self, x: RowVector) -> RowVector:
        """max(x, 0)."""
        return self.map(lambda x: namespace(x).clip(x, 0.0, None), x)

    def sampled(self, h: RowVector, n: float, uniform: RowVector) -> RowVector:
        """About n of the positive weights h, each taken with a probability p in proportion to it, and divided by p."""
        n, total = float(n), float(self.total(h))

        def taken(h, uniform):
            xp = namespace(h)
            p = xp.clip(n * (h / total), None, 1.0)
            return xp.where(uniform < p, h / xp.where(p > 0, p, xp.ones_like(p)), xp.zeros_like(h))

        return self.map(taken, h, uniform)

    def total(self, x: RowVector) -> np.ndarray:
        """Of each output, the sum over the rows."""
        return self.sum(lambda x: namespace(x).sum(x, axis=-1), x)

    def dots(self, a: RowVector, b: RowVector) -> np.ndarray:
        """Of each output, a'b."""
        return self.sum(lambda a, b: namespace(a).vecdot(a, b), a, b)

    def distance(self, a: RowVector, b: RowVector) -> float:
        """|a - b|_1."""
        return float(self.sum(lambda a, b: namespace(a).sum(namespace(a).abs(a - b)), a, b))

    def largest(self, *vectors: RowVector) -> tuple[float, ...]:
        """max |x| of each, in one answer."""
        return tuple(map(float, self.sum(_largest_sizes, *vectors, add=np.maximum)))

    def count(self, x: RowVector) -> int:
        """How many entries are not zero."""
        return int(self.sum(lambda x: namespace(x).count_nonzero(x), x))

    def output(self, x: RowVector, k: int) -> RowVector:
        """The row vector of output k."""
        return self.map(lambda x: x[..., k, :], x)

    def chosen(self, which: np.ndarray, a: RowVector, b: RowVector) -> RowVector:
        """The outputs of a that are chosen, and of b the others."""
        return self.map(lambda a, b: namespace(a).where(outputs_like(which, a), a, b), a, b)

    def root(self, x: RowVector) -> RowVector:
        return self.map(lambda x: namespace(x).sqrt(x), x)

    def totals(self, *vectors: RowVector) -> tuple[np.ndarray, ...]:
        """`total` of each, in one answer."""
        return self.sum(lambda *vectors: tuple(namespace(x).sum(x, axis=-1) for x in vectors), *vectors)


class HostVectors(RowVectors):
    """ndarrays in the memory of this process."""

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
    return tuple(namespace(x).max(namespace(x).abs(x)) for x in vectors)
