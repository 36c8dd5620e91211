"""Rows in the partitions of a dask collection: a pass is one task for each partition, and sums are
a tree in a fixed order.

A task has all that it needs in its graph: where a worker is lost, its partitions and their part of
the pass are computed again.
"""

from __future__ import annotations

from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._base.checks import check_X, is_sparse
from .._base.floats import as_ieee
from .._base.threads import Workers
from .chunks import OTHER_ROWS, BlockError, Chunks, fingerprint
from .core_block import CoreBlock
from .remote import RemoteRows
from .rows import add_answers, stack_blocks
from .vectors import RowVectors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import Array, DenseOrCSR, RowVector


def is_dask(X: object) -> bool:
    """Return whether X is a dask array or dataframe."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def partitions_of(X: Any) -> list[Any]:
    """Return the partitions of the rows of a dask array, or of a dataframe of numbers, as delayed
    arrays."""
    X = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional, got {X.ndim} dimensions")
    return X.rechunk({1: -1}).to_delayed().ravel().tolist()


def is_dask_frame(X: object) -> bool:
    """Return whether X is a dask dataframe."""
    return is_dask(X) and hasattr(X, "partitions") and hasattr(X, "columns")


def holds_numbers(X: Any) -> bool:
    """Return whether all columns of a dask dataframe are numbers by their dtypes."""
    return all(getattr(dtype, "kind", "O") in "fiub" for dtype in X.dtypes)


def chunks_of_frames(X: Any) -> Chunks:
    """Return the partitions of a dask dataframe as `Chunks` of data frames, which this process
    reads one after the other. It takes a pass to count their rows."""
    import dask

    sizes = dask.compute(*(task(len, part) for part in X.to_delayed()))
    edges = np.cumsum([0, *sizes]).tolist()
    # of empty partitions there is no block
    part_of = {edges[k]: part for k, part in enumerate(X.to_delayed()) if sizes[k]}

    def read(start: int, stop: int) -> Any:
        return part_of[start].compute()

    return Chunks(read, (edges[-1], len(X.columns)), block_rows=sizes)


class PartitionError(Exception):
    """Raised on a worker if partition k is not as it should be; the caller gets a `BlockError`."""

    k: int
    what: str

    def __init__(self, k: int, what: str):
        super().__init__(k, what)
        self.k, self.what = k, what


@dataclass(frozen=True, eq=False)
class Partitioned:
    """A row vector, or for axis 0 a matrix with a line for each row, in parts that dask keeps where
    they were made.

    parts : delayed arrays, one for each partition that holds rows
    """

    parts: Sequence[Any]
    axis: int


class PartitionedVectors(RowVectors):
    """Row vectors in parts, one for each partition that holds rows. A part that is lost with its
    worker is made again."""

    n_rows: int

    def __init__(self, starts: list[int]):
        """Take the first row of each partition, and the number of rows."""
        self._starts, self.n_rows = starts, starts[-1]
        # The partitions that hold rows; the first, if none does.
        self.nonempty: list[int] = [
            k for k, (start, stop) in enumerate(pairwise(starts)) if stop > start
        ] or [0]

    def parts(self, values: np.ndarray | Partitioned) -> Sequence[Any]:
        """Return the parts of a row vector, or of an ndarray, one for each task."""
        if isinstance(values, Partitioned):
            return values.parts
        return [
            np.ascontiguousarray(values[..., slice(*self._starts[k : k + 2])])
            for k in self.nonempty
        ]

    def put(self, values: np.ndarray | Partitioned) -> Partitioned:
        import dask

        # The values are in the graph, so that what is lost with a worker can be made again: dask
        # need not warn of a large graph.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}):
            return self.persist([task(_identity, part) for part in self.parts(values)])

    def zeros(self, *outputs: int) -> Partitioned:
        sizes = [self._starts[k + 1] - self._starts[k] for k in self.nonempty]
        return self.persist([task(np.zeros, (*outputs, size)) for size in sizes])

    def fetch(self, vector: Partitioned) -> np.ndarray:
        return np.concatenate(self.compute(vector.parts), axis=vector.axis)

    def map(self, answer: Callable[..., Array], *vectors: RowVector, axis: int = -1) -> Partitioned:
        return self.persist(self._answers(answer, vectors), axis)

    def sum(
        self,
        answer: Callable[..., Any],
        *vectors: RowVector,
        add: Callable[[Any, Any], Any] = np.add,
    ) -> Any:
        return self.compute([tree_sum(self._answers(answer, vectors), add)])[0]

    def _answers(self, answer, vectors):
        """Return a task for each partition that holds rows, which computes answer(*parts)."""
        shared = sent_once(answer)
        return [
            task(_answer, shared, *parts) for parts in zip(*map(self.parts, vectors), strict=True)
        ]

    def persist(self, tasks: Sequence[Any], axis: int = -1) -> Partitioned:
        """Run the tasks and return their results as a row vector, each part of which stays where it
        is made."""
        import dask

        with self._named_errors():
            return Partitioned(dask.persist(*tasks), axis)

    def compute(self, tasks: Sequence[Any]) -> list[Any]:
        """Run the tasks and return their results, in the memory of this process."""
        import dask

        with self._named_errors():
            return list(dask.compute(*tasks))

    @contextmanager
    def _named_errors(self):
        """Raise a `BlockError` that names the rows for whatever goes wrong in a task."""
        try:
            yield
        except PartitionError as error:
            raise BlockError(
                *self._starts[error.k : error.k + 2], f"partition {error.k}: {error.what}"
            ) from error
        except Exception as error:
            raise BlockError(
                None, None, f"a partition could not be made: {type(error).__name__}: {error}"
            ) from error


class DaskRows(RemoteRows):
    """The rows of a dask collection, on the scheduler that dask uses when a pass begins."""

    vectors: PartitionedVectors
    n_rows: int
    n_passes: int
    n_features_in: int
    dtype: np.dtype
    is_sparse: bool

    @staticmethod
    def is_home_of(X: Any) -> bool:
        return is_dask(X)

    @classmethod
    def from_X(cls, X: Any, workers: int, may_miss: bool) -> Self:
        return cls(partitions_of(X), workers, may_miss)

    def __init__(self, partitions: Sequence[Any], workers: int, may_miss: bool = False):
        """Look at all partitions once, and check that they are alike.

        partitions : delayed arrays, which may hold NaN where may_miss is true.
        workers : the number of threads for rows that are fetched to this process.
        """
        super().__init__(workers)
        self._partitions, self._may_miss = partitions, may_miss
        of_all = [
            task(_kind, (k, may_miss, None), partition) for k, partition in enumerate(partitions)
        ]
        found = PartitionedVectors([0] * 2).compute(of_all)
        kinds, self._found = [kind for kind, _ in found], found
        self._starts = np.cumsum([0, *(shape[0] for shape, *_ in kinds)]).tolist()
        for k, kind in enumerate(kinds):
            if isinstance(kind[-1], str):
                raise BlockError(*self._starts[k : k + 2], f"partition {k}: {kind[-1]}")
            if [kind[0][1], *kind[1:]] != [kinds[0][0][1], *kinds[0][1:]]:
                raise BlockError(
                    *self._starts[k : k + 2],
                    f"must be like the first partition, {kinds[0]}, got {kind}",
                )
        (_, self.n_features_in), dtype, self.is_sparse = kinds[0]
        self.dtype, self.n_rows = np.dtype(dtype), self._starts[-1]
        self.vectors = PartitionedVectors(self._starts)

    def sum(
        self,
        answer: Callable[..., Any],
        *vectors: RowVector,
        add: Callable[[Any, Any], Any] = np.add,
    ) -> Any:
        return self.vectors.compute([tree_sum(self._answers(answer, vectors), add)])[0]

    def map(self, answer: Callable[..., Any], *vectors: RowVector, axis: int = -1) -> Partitioned:
        return self.vectors.persist(self._answers(answer, vectors), axis)

    def map_and_sum(
        self, answer: Callable[..., Any], *vectors: RowVector
    ) -> tuple[Partitioned, Any]:
        # The row vector and the sum come from one task for each partition: no partition is read
        # twice.
        answers = self._answers(answer, vectors)
        parts, sums = ([task(itemgetter(k), each) for each in answers] for k in (0, 1))
        stored = self.vectors.persist([*parts, tree_sum(sums, np.add)]).parts
        return Partitioned(stored[:-1], -1), self.vectors.compute(stored[-1:])[0]

    def _answers(self, answer, vectors):
        """Return a task for each partition that holds rows, which computes answer(block,
        *parts)."""
        self.n_passes += 1
        shared, nonempty = sent_once(answer), self.vectors.nonempty
        parts = (
            zip(*map(self.vectors.parts, vectors), strict=True) if vectors else [()] * len(nonempty)
        )
        return [
            self._task(_ask, k, shared, *those) for k, those in zip(nonempty, parts, strict=True)
        ]

    def _task(self, function, k, *arguments):
        """Return a task that calls a function of (what is known of partition k, the partition,
        ...)."""
        return task(function, (k, self._may_miss, self._found[k]), self._partitions[k], *arguments)

    def without_missing(self) -> DaskRows:
        rows = copy(self)
        rows._may_miss = False
        return rows

    def select(self, index: np.ndarray) -> DaskRows:
        return DaskRows(
            [self._task(_rows_at, k, own) for k, own in self._by_partition(index)],
            self._n_workers,
            self._may_miss,
        )

    def array(self, index: np.ndarray | None = None) -> DenseOrCSR:
        wanted, place = self.distinct(index)
        asked = [(k, own) for k, own in self._by_partition(wanted) if len(own)]
        return stack_blocks(
            self.vectors.compute([self._task(_rows_at, k, own) for k, own in asked]), place
        )

    def _by_partition(self, index):
        """Return (k, the indices within partition k) for each partition, of an ascending index."""
        edges = np.searchsorted(index, self._starts)
        return [
            (k, index[edges[k] : edges[k + 1]] - start) for k, start in enumerate(self._starts[:-1])
        ]

    def to_namespace_of_X(self, answer: Partitioned) -> Any:
        """Return a dask array in the partitions of X."""
        from dask.array import concatenate, from_delayed

        first = self.vectors.compute([task(_meta, answer.parts[0])])[0]
        sizes = [self._starts[k + 1] - self._starts[k] for k in self.vectors.nonempty]
        parts = [
            from_delayed(part, (n, *first.shape[1:]), meta=first)
            for n, part in zip(sizes, answer.parts, strict=True)
        ]
        return concatenate(parts)


def task(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a task that calls the function, once."""
    return sent_once(function)(*arguments)


def sent_once(answer: Callable[..., Any]) -> Any:
    """Return a delayed function that is sent to each worker once, not with each task."""
    from dask import delayed

    return delayed(answer, pure=False, traverse=False)


def tree_sum(parts: list[Any], add: Callable[[Any, Any], Any]) -> Any:
    """Return a task that adds the parts up in pairs, then the sums in pairs, and so on; each task
    adds up eight parts."""
    while len(parts) > 1:
        parts = [task(_in_pairs, add, *parts[k : k + 8]) for k in range(0, len(parts), 8)]
    return parts[0]


# ---------------------------------------------------------------- what tasks do


def _kind(which, partition):
    """Return ((shape, dtype, whether it is sparse), fingerprint) of a partition, or ((shape, what
    is wrong with it), None).

    which : (the number of the partition, whether it may hold NaN, what this function returned for
        it before, or None), here and below
    """
    try:
        return _describe(check_X(partition, may_miss=which[1]))
    except (TypeError, ValueError) as error:
        return (partition.shape, str(error)), None


def _describe(X):
    """Return ((shape, dtype, whether it is sparse), fingerprint) of a partition."""
    return (X.shape, X.dtype.name, is_sparse(X)), fingerprint(X)


def _identity(part):
    """Return the part."""
    return part


@as_ieee
def _answer(answer, *parts):
    """Compute answer(*parts) of parts of row vectors."""
    return answer(*parts)


def _meta(part):
    """Return an empty array of the kind of a part."""
    return part[:0]


@as_ieee
def _ask(which, partition, answer, *parts):
    """Compute answer(block, *parts) on the rows of a partition."""
    return answer(CoreBlock(_checked(which, partition), Workers(1)), *parts)


@as_ieee
def _in_pairs(add, *parts):
    """Add parts up in pairs, and the sums in pairs."""
    while len(parts) > 1:
        pairs = tuple(add_answers(add, *parts[k : k + 2]) for k in range(0, len(parts) - 1, 2))
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def _rows_at(which, partition, index):
    """Return the rows of a partition at some indices."""
    return _checked(which, partition)[index]


def _checked(which, partition):
    """Check a partition and return it."""
    k, may_miss, known = which
    try:
        X = check_X(partition, may_miss=may_miss)
    except (TypeError, ValueError) as error:
        raise PartitionError(k, str(error)) from None
    if _describe(X) != known:
        raise PartitionError(k, OTHER_ROWS)
    return X
