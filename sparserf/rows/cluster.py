"""Rows in the partitions of a dask collection: each pass is a task a partition, and a tree of sums in a fixed order."""

from functools import cached_property, partial, reduce

import numpy as np

from .._checks import check_indices, check_X, is_sparse
from .._threads import Workers
from .block import Block
from .chunks import BlockError
from .home import TAKEN_NUMBERS, Rows, added, stacked
from .memory import Memory


def is_dask(X):
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def partitions_of(X):
    """The partitions of the rows of a dask array, or of a dataframe of numbers, as delayed objects."""
    X = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional, got {X.ndim} dimensions")
    return X.rechunk({1: -1}).to_delayed().ravel().tolist()


class PartitionError(Exception):
    """What is wrong with a partition; travels from a worker."""

    def __init__(self, k, what):
        super().__init__(k, what)
        self.k, self.what = k, what


class InDask(Rows):
    """Partitions of rows, on the scheduler that dask uses when a pass begins.

    All that a task needs is in its graph: a partition that is lost with its worker is made, and asked, again.
    """

    in_memory = False

    def __init__(self, partitions, workers):
        """partitions: delayed arrays. workers: those of what is asked of rows that have come to this process."""
        self._partitions, self._workers = partitions, workers
        kinds = self._compute([self._task(_kind, k) for k in range(len(partitions))])
        self._starts = np.cumsum([0, *(shape[0] for shape, *_ in kinds)]).tolist()
        for k, kind in enumerate(kinds):
            if isinstance(kind[-1], str):
                raise BlockError(*self._starts[k : k + 2], f"partition {k}: {kind[-1]}")
        self._there = [k for k, (shape, *_) in enumerate(kinds) if shape[0]] or [0]  # those that hold rows
        for k, (shape, *kind) in enumerate(kinds):
            if [shape[1], *kind] != [kinds[0][0][1], *kinds[0][1:]]:
                raise BlockError(*self._starts[k : k + 2], f"must be like the first partition, {kinds[0]}, got {kinds[k]}")
        (_, self.n_features_in), dtype, self.is_sparse = kinds[0]
        self.dtype, self.n_rows = np.dtype(dtype), self._starts[-1]

    def sum(self, answer, *vectors, add=np.add):
        from dask import delayed

        parts, join = self._answers(answer, vectors), delayed(added, pure=False)
        while len(parts) > 1:
            pairs = [join(add, *parts[k : k + 2]) for k in range(0, len(parts) - 1, 2)]
            parts = pairs + parts[2 * len(pairs) :]
        return self._compute(parts)[0]

    def map(self, answer, *vectors, axis=-1):
        return np.concatenate(self._compute(self._answers(answer, vectors)), axis=axis)

    def map_and_sum(self, answer, *vectors):
        parts, sums = zip(*self._compute(self._answers(answer, vectors)), strict=True)
        return np.concatenate(parts, axis=-1), reduce(partial(added, np.add), sums)

    def _answers(self, answer, vectors):
        """What each partition that holds rows will answer."""
        from dask import delayed

        self.n_passes += 1
        shared = delayed(answer, pure=False, traverse=False)  # sent to a worker once, not with each task
        slices = [slice(*self._starts[k : k + 2]) for k in self._there]
        parts = [[np.ascontiguousarray(v[..., some]) for v in vectors] for some in slices]
        return [self._task(_ask, k, shared, *those) for k, those in zip(self._there, parts, strict=True)]

    def _task(self, function, k, *arguments):
        from dask import delayed

        return delayed(function, pure=False, traverse=False)(k, self._partitions[k], *arguments)

    def _compute(self, tasks):
        import dask

        try:
            return list(dask.compute(*tasks))
        except PartitionError as error:
            raise BlockError(*self._starts[error.k : error.k + 2], f"partition {error.k}: {error.what}") from error
        except Exception as error:
            raise BlockError(None, None, f"a partition could not be made: {type(error).__name__}: {error}") from error

    @cached_property
    def _pool(self):
        return Workers(self._workers)

    def beside(self, X):
        """Rows of another matrix, which is in the memory of this process."""
        return Memory(Block(X, self._pool))

    def take(self, index):
        if len(index) * self.n_features_in <= TAKEN_NUMBERS:
            return self.beside(self.array(index))
        return InDask([self._task(_some_rows, k, some) for k, some in self._by_partition(index)], self._workers)

    def array(self, index=None):
        """The numbers of some rows, or of all, in the memory of this process."""
        index = np.arange(self.n_rows) if index is None else check_indices("index", index, self.n_rows)
        wanted, place = np.unique(index, return_inverse=True)
        asked = [(k, some) for k, some in self._by_partition(wanted) if len(some)]
        return stacked(self._compute([self._task(_some_rows, k, some) for k, some in asked]), place)

    def _by_partition(self, index):
        """(k, which of its rows) of each partition, of an ascending index."""
        edges = np.searchsorted(index, self._starts)
        return [(k, index[edges[k] : edges[k + 1]] - start) for k, start in enumerate(self._starts[:-1])]

    def give(self, answer):
        """A dask array, in the partitions of X."""
        from dask.array import from_array

        return from_array(answer, chunks=(tuple(np.diff(self._starts).tolist()), *answer.shape[1:]))

    def __enter__(self):
        self._pool.__enter__()
        return self

    def __exit__(self, *error):
        self._pool.__exit__(*error)


# What tasks do, of the partition numbered k.


def _kind(k, partition):
    """(shape, dtype, whether it is sparse), or (shape, what is wrong with it)."""
    try:
        X = check_X(partition)
    except (TypeError, ValueError) as error:
        return partition.shape, str(error)
    return X.shape, X.dtype.name, is_sparse(X)


def _ask(k, partition, answer, *parts):
    return answer(Block(_checked(k, partition), Workers(1)), *parts)


def _some_rows(k, partition, some):
    return _checked(k, partition)[some]


def _checked(k, partition):
    try:
        return check_X(partition)
    except (TypeError, ValueError) as error:
        raise PartitionError(k, str(error)) from None
