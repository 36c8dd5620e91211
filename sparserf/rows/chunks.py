"""Rows that do not fit in memory: they are read in blocks, the next one while the last is worked
on."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import cached_property, partial, reduce
from itertools import islice, pairwise
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any, Self
from zlib import crc32

import numpy as np

from .._base.checks import check_integer, check_X, is_sparse
from ..columns.frames import label
from ..columns.learner import TableLearner
from ..columns.table import UNKNOWN
from .block import wider_extremes
from .core_block import CoreBlock, Scratch
from .few_values import FewValues
from .remote import RemoteRows
from .rows import add_answers, stack_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import DenseOrCSR, RowVector
    from ..columns.table import Categorical, Table

# The most numbers in a block by default.
BLOCK_NUMBERS = 2**24
# {a property of all rows that a fit needs at its end: the function that joins those of two blocks}
JOINED = {"extremes": wider_extremes, "few_values": FewValues.join}
# The error of a block that changes between two passes.
OTHER_ROWS = "must be the same rows each time that they are read, got others than the first time"


class BlockError(ValueError):
    """A block of rows of `Chunks`, or a partition of dask, could not be read, or is not what it
    should be.

    Attributes
    ----------
    start, stop : int or None
        The rows of the block; None where a partition of dask could not be made.
    model : SparseModel or None
        The model fitted before the error; None where there is none.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.ones((300, 2))
    >>> X[150] = np.nan
    >>> try:
    ...     srf.drp(srf.Chunks(X, block_rows=100), np.ones(300), alpha=1.0, missing="raise")
    ... except srf.BlockError as error:
    ...     print(error.start, error.stop)
    100 200
    """

    start: int | None
    stop: int | None
    what: str
    model: Any

    def __init__(self, start: int | None, stop: int | None, what: str):
        super().__init__(f"X: {what}" if start is None else f"X[{start}:{stop}]: {what}")
        self.start, self.stop, self.what, self.model = start, stop, what, None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.start, self.stop, self.what), {"model": self.model}


class Chunks:
    """Rows that do not fit in memory, read a block at a time from disk or elsewhere; any function
    takes them in place of X.

    Every pass over the rows reads all blocks in turn, the next one while the last is worked on. In
    memory are a few blocks, and vectors with a number for each row: y, weights and what a fit
    keeps, 8 bytes each.

    Parameters
    ----------
    source : array, or callable
        An object with a shape for which source[start:stop] returns rows: np.memmap, arrays of zarr
        and h5py. Or a function read(start, stop) that returns rows start to stop: an ndarray, a
        sparse matrix, or a data frame. It is called from several threads, but one call at a time,
        and must return the same rows each time. `Chunks.of_batches` takes batches that come one
        after the other.
    shape : (n_samples, n_features) or None
        Shape of all rows. None: source.shape.
    block_rows : int, sequence of int or None, default None
        Number of rows of all blocks, or of each block, such as the row groups of a file. None:
        blocks of 2**24 numbers, which are whole chunks of the source where it has `chunks`.
    levels : dict {column: sequence of levels} or None, default None
        All levels of categories, by the name or index of their column. Of other categories each fit
        learns the levels in a first pass over all rows; where all are given it makes none, and
        another level in a block is a BlockError.

    Raises
    ------
    ValueError, TypeError
        shape is missing or is no shape; block_rows does not add up to the rows; levels is no dict
        of sequences.
    BlockError
        Raised by the functions that read the rows, when a block cannot be read, has another shape,
        kind or dtype than the first, holds infinity, or other rows than when the call first read
        it: a ValueError that names its rows. Its `model` is what was fitted until then. NaN is a
        missing cell, as in arrays, and a BlockError with missing="raise" and where columns are as
        they are (`drp`, maps of your own). Each block is checked each time that it is read.

    Notes
    -----
    float32 stays float32; all else becomes float64. Pages of an np.memmap are released after each
    block.
    A seed gives the same bits for the same block_rows and any number of workers; other blocks are
    added up in another order. Columns of a frame, or of an array with `categorical`, are read as
    those of one frame of all rows would be, and are found by the names that the first block has. A
    level in the order that all blocks give it has that order; else they are sorted. Categories are
    8 bytes a row in memory while a fit begins, and those of many levels until it ends.
    `plot` needs all rows at once and reads them into memory.

    Examples
    --------
    >>> import numpy as np, sparserf as srf, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "X.npy"
    >>> np.save(path, np.random.default_rng(0).uniform(-3, 3, (10_000, 4)).astype(np.float32))
    >>> X = np.load(path, mmap_mode="r")
    >>> y = np.sin(X[:, 0]) * X[:, 1]
    >>> chunks = srf.Chunks(X, block_rows=1000)
    >>> model = srf.sparse_rf(
    ...     chunks, y, features="gaussian", gamma=0.1, alpha=0.01, n_components=500, rng=0
    ... )
    >>> model.predict(chunks).shape
    (10000,)
    """

    def __init__(
        self,
        source: Any,
        shape: Sequence[int] | None = None,
        *,
        block_rows: int | Iterable[int] | None = None,
        levels: Mapping[Any, Sequence[Any]] | None = None,
    ):
        if shape is None and not hasattr(source, "shape"):
            raise ValueError("shape must be given where source is a function, got None")
        shape = tuple(source.shape if shape is None else shape)
        if len(shape) != 2:
            raise ValueError(f"shape must be (n_samples, n_features), got {shape}")
        self.shape: tuple[int, ...] = tuple(check_integer("shape", size, 1) for size in shape)
        if not (callable(source) or hasattr(source, "__getitem__")):
            raise TypeError(f"source must be an array or a function, got {type(source).__name__}")
        self._source = source
        self.edges: list[int] = self._edges(
            self._default_rows() if block_rows is None else block_rows
        )
        if levels is not None and not (
            isinstance(levels, Mapping) and all(map(_is_listing, levels.values()))
        ):
            raise TypeError(
                f"levels must be a dict from columns to sequences of levels, got {levels!r}"
            )
        self._levels = levels
        # The table by which blocks of frames become numbers, their dtype, and whether a level that
        # the table does not know is an error.
        self._table: Table | None = None
        self._table_dtype: type = np.float64
        self._is_strict = False

    @classmethod
    def of_batches(
        cls,
        batches: Sequence[Any] | Callable[[], Iterable[Any]],
        *,
        block_rows: Sequence[int] | None = None,
        levels: Mapping[Any, Sequence[Any]] | None = None,
    ) -> Self:
        """Make chunks of batches that come one after the other, such as those of a Parquet file;
        each is a block.

        Parameters
        ----------
        batches : sequence, or function without arguments
            The batches, data frames or arrays; or a function that is called at the beginning of
            each pass and returns an iterator of them, such as ``lambda:
            pyarrow.parquet.ParquetFile(path).iter_batches()``.
        block_rows : sequence of int or None, default None
            The number of rows of each batch. None: all batches are read once to count them.
        levels : dict or None, default None
            As of `Chunks`.

        Returns
        -------
        Chunks

        Raises
        ------
        TypeError, ValueError
            batches is an iterator, which can be read once only, or there are none.

        Examples
        --------
        >>> import pandas as pd, sparserf as srf
        >>> frames = [
        ...     pd.DataFrame({"a": [1.0, 2.0], "k": ["u", "v"]}),
        ...     pd.DataFrame({"k": ["u"], "a": [0.5]}),
        ... ]
        >>> srf.Chunks.of_batches(lambda: iter(frames))
        Chunks(3 × 2, in 2 blocks)
        """
        if not callable(batches) and (
            not isinstance(batches, Iterable) or isinstance(batches, (str, Iterator))
        ):
            what = "a sequence, or a function that returns a new iterator for each pass"
            raise TypeError(f"batches must be {what}, got {shortened(batches)}")
        source = _Batches(batches if callable(batches) else lambda: batches)
        first = next(source.all(), None)
        if len(getattr(first, "shape", ())) != 2:
            raise ValueError(
                "batches must hold data frames or arrays of two dimensions, got "
                f"{shortened(first)} as the first"
            )
        sizes = (
            [batch.shape[0] for batch in source.all()] if block_rows is None else list(block_rows)
        )
        chunks = cls(source, (sum(sizes), first.shape[1]), block_rows=sizes, levels=levels)
        source.n_rows = chunks.shape[0]
        return chunks

    @cached_property
    def first(self) -> Any:
        """The first rows, as the source gives them: they say whether blocks are data frames."""
        return self._given(0)[:1]

    def learn(self, categorical: Categorical) -> tuple[Chunks, Table]:
        """Return these chunks as numbers, and the table by which they are read, learnt in a pass
        over all blocks."""
        learner = TableLearner(categorical, self._levels)
        for k in range(len(self.edges) - 1):
            with self._naming_rows(k):
                learner.add(self._given(k))
            if learner.needs_no_more and self._levels:
                break
        table, is_single = learner.table()
        chunks = self.read_by(table)
        chunks._table_dtype, chunks._is_strict = np.float32 if is_single else np.float64, True
        return chunks, table

    def read_by(self, table: Table) -> Chunks:
        """Return these chunks, whose blocks become numbers by a table."""
        chunks = copy(self)
        chunks._table, chunks.shape = table, (self.shape[0], len(table.levels))
        return chunks

    def __repr__(self) -> str:
        return f"Chunks({self.shape[0]} × {self.shape[1]}, in {len(self.edges) - 1} blocks)"

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, k: int, may_miss: bool = False) -> DenseOrCSR:
        """Read and check block k: return a dense array, with NaN only if may_miss, or a CSR matrix,
        of float32 or float64."""
        given, n_rows = self._given(k), self.edges[k + 1] - self.edges[k]
        with self._naming_rows(k):
            if self._table is not None:
                return check_X(self._in_shape(self._coded(given), n_rows), may_miss=may_miss)
            X = check_X(_in_memory(given), may_miss=may_miss)
            # a function may use the memory of its result again for the next block
            if callable(self._source):
                X = _unshared(X, given)
            return self._in_shape(X, n_rows)

    def _given(self, k):
        """Return block k as the source gives it; a batch of Arrow as a table of Arrow."""
        start, stop = self.edges[k : k + 2]
        try:
            given = (
                self._source(start, stop) if callable(self._source) else self._source[start:stop]
            )
        except Exception as error:
            raise BlockError(
                start, stop, f"could not be read: {type(error).__name__}: {error}"
            ) from error
        return _as_table(given)

    @contextmanager
    def _naming_rows(self, k):
        """Raise a `BlockError` of block k for what is wrong with it."""
        try:
            yield
        except (TypeError, ValueError) as error:
            raise BlockError(*self.edges[k : k + 2], str(error)) from error

    def _in_shape(self, X, n_rows):
        """Return a block, which must have the shape of its rows."""
        if X.shape != (n_rows, self.shape[1]):
            raise ValueError(f"must have shape {(n_rows, self.shape[1])}, got {X.shape}")
        return X

    def _coded(self, given):
        """Return a block as numbers by the table."""
        X = self._table.read(given).astype(self._table_dtype, copy=False)
        for j, levels in enumerate(self._table.levels):
            if self._is_strict and levels is not None and (X[:, j] == UNKNOWN).any():
                row = int((X[:, j] == UNKNOWN).argmax())
                where = f"{label(self._table.names, j)} has a level in row {row} of the block"
                raise ValueError(
                    f"{where} that levels does not list, or that no block had in the first pass"
                )
        return X

    def _edges(self, block_rows):
        """Return the first row of each block, and the number of rows."""
        n = self.shape[0]
        if not hasattr(block_rows, "__iter__"):
            return [*range(0, n, check_integer("block_rows", block_rows, 1)), n]
        sizes = [check_integer("block_rows", size, 0) for size in block_rows]
        if sum(sizes) != n:
            raise ValueError(f"block_rows must add up to the {n} rows of X, got {sum(sizes)}")
        return np.cumsum([0, *(size for size in sizes if size)]).tolist()

    def _default_rows(self):
        """Return how many rows a block has by default: whole chunks of the source, where it has
        chunks."""
        rows = max(1, BLOCK_NUMBERS // self.shape[1])
        chunks = getattr(self._source, "chunks", None)
        whole = (
            chunks[0] if isinstance(chunks, tuple) and chunks and isinstance(chunks[0], int) else 1
        )
        return max(1, rows // whole) * whole


class _Batches:
    """A source whose batches come one after the other: to read an earlier batch it begins anew.

    make : a function that returns an iterable of all batches
    n_rows : the number of all rows
    """

    n_rows: int

    def __init__(self, make: Callable[[], Iterable[Any]]):
        self._make, self._batches, self._row = make, None, 0

    def all(self) -> Iterator[Any]:
        """Return an iterator of all batches."""
        batches = self._make()
        if not isinstance(batches, Iterable):
            raise TypeError(f"batches must return an iterator of batches, got {shortened(batches)}")
        return map(_as_table, batches)

    def __call__(self, start: int, stop: int) -> Any:
        """Return the batch of these rows."""
        if self._batches is None or start < self._row:
            self._batches, self._row = self.all(), 0
        for batch in self._batches:
            first, self._row = self._row, self._row + batch.shape[0]
            if (first, self._row) == (start, stop):
                if stop == self.n_rows and any(more.shape[0] for more in islice(self._batches, 1)):
                    raise ValueError(
                        "batches must be of the same rows in each pass, and do not end at row "
                        f"{stop}"
                    )
                return batch
            if self._row > start:
                raise ValueError(
                    f"batches must be of the same rows in each pass, got one of rows {first} to "
                    f"{self._row}"
                )
        end, self._batches = self._row, None
        raise ValueError(f"batches must be of the same rows in each pass, and end at row {end}")


def _is_listing(levels):
    """Return whether the levels of a column are an iterable, and not a string."""
    return isinstance(levels, Iterable) and not isinstance(levels, (str, bytes))


def _as_table(given):
    """Return a batch of Arrow as a table of Arrow; all else as it is."""
    if type(given).__name__ != "RecordBatch":
        return given
    import pyarrow

    return pyarrow.Table.from_batches([given])


def _in_memory(X):
    """Return X; copy a memory map and release its pages, which would count as the memory of this
    process."""
    if not isinstance(X, np.memmap) or X._mmap is None:
        return X
    copied = np.array(X)
    # pages of mode "c" may hold changes that are not in the file
    if X.mode in ("r", "r+") and hasattr(mmap, "MADV_DONTNEED"):
        X._mmap.madvise(mmap.MADV_DONTNEED)
    return copied


def _unshared(X, given):
    """Return X, copied where it shares memory with `given`, the array from which it was made."""
    if is_sparse(X):
        return X.copy()
    return X.copy() if isinstance(given, np.ndarray) and np.may_share_memory(X, given) else X


def fingerprint(X: DenseOrCSR) -> int:
    """Return a checksum of the numbers of X, by which other rows are told apart: some gigabytes a
    second."""
    parts = (X.data, X.indices, X.indptr) if is_sparse(X) else (X,)
    return reduce(lambda value, part: crc32(np.ascontiguousarray(part), value), parts, 0)


class ChunkedRows(RemoteRows):
    """The rows of `Chunks`, or some of them. Each pass reads all blocks in turn.

    While entered, the first pass also computes the properties JOINED, which a fit needs at its end.
    """

    n_rows: int
    n_passes: int
    n_features_in: int
    dtype: np.dtype
    is_sparse: bool

    @staticmethod
    def is_home_of(X: Any) -> bool:
        return isinstance(X, Chunks)

    @classmethod
    def from_X(cls, X: Chunks, workers: int, may_miss: bool) -> Self:
        return cls(X, workers, may_miss=may_miss)

    def __init__(
        self,
        source: Chunks,
        workers: int,
        index: np.ndarray | None = None,
        may_miss: bool = False,
        known: dict[int, int] | None = None,
        replaced: tuple[np.ndarray, np.ndarray] | None = None,
    ):
        """Read the first block, which determines the kind and dtype of the rows.

        index : ascending indices of some rows of the source; None: all rows.
        may_miss : whether the rows may hold NaN.
        known : {block: its fingerprint} of the blocks that were read before, to which these rows
            add theirs; None: none were.
        replaced : (indices of columns, the values (n_rows, n_columns) that take their place), or
            None.
        """
        super().__init__(workers)
        self._source, self._index, self._may_miss = source, index, may_miss
        self._scratch, self.n_features_in = Scratch(), source.shape[1]
        self.n_rows = source.shape[0] if index is None else len(index)
        self._known, self._replaced = {} if known is None else known, replaced
        first = source.read(0, may_miss)
        self._dtype, self.is_sparse, self._is_entered = first.dtype, is_sparse(first), False
        self.dtype = first.dtype if replaced is None else replaced[1].dtype
        self._check(0, first)

    def __enter__(self) -> Self:
        self._is_entered = True
        return super().__enter__()

    def sum(
        self,
        answer: Callable[..., Any],
        *vectors: RowVector,
        add: Callable[[Any, Any], Any] = np.add,
    ) -> Any:
        parts = (part for _, part in self._answers(answer, vectors))
        return reduce(partial(add_answers, add), parts)

    def map(self, answer: Callable[..., Any], *vectors: RowVector, axis: int = -1) -> RowVector:
        out = None
        for rows, part in self._answers(answer, vectors):
            out = self._write(out, rows, part, axis)
        return out

    def map_and_sum(self, answer: Callable[..., Any], *vectors: RowVector) -> tuple[RowVector, Any]:
        out = total = None
        for rows, (part, more) in self._answers(answer, vectors):
            out = self._write(out, rows, part, -1)
            total = more if total is None else add_answers(np.add, total, more)
        return out, total

    def _write(self, out, rows, part, axis):
        """Write the result for a block to its slice of out, which is allocated if it is None;
        return out."""
        if out is None:
            shape = list(part.shape)
            shape[axis] = self.n_rows
            out = np.empty(shape, part.dtype)
        out[rows if axis == 0 else (..., rows)] = part
        return out

    def _answers(self, answer, vectors):
        """Yield (slice of the rows, answer(block)) for each block in turn."""
        self.n_passes += 1
        found, wanted = {}, [name for name in JOINED if self._is_entered and name not in vars(self)]
        for rows, X in self._blocks():
            block = CoreBlock(X, self.workers, self._scratch)
            for name in wanted:
                part = getattr(block, name)()
                found[name] = JOINED[name](found[name], part) if name in found else part
            yield rows, answer(block, *(v[..., rows] for v in vectors))
        vars(self).update(found)  # the values of cached properties

    def _blocks(self):
        """Yield (slice of the rows, these rows of X) for each block in turn, while the next block
        is read."""
        from concurrent.futures import ThreadPoolExecutor  # slow to import

        asked = [(k, rows) for k, rows in enumerate(self._slices()) if rows.stop > rows.start]
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self._read, *asked[0])
            for i, (_, rows) in enumerate(asked):
                X = ahead.result()
                if i + 1 < len(asked):
                    ahead = reader.submit(self._read, *asked[i + 1])
                yield rows, X

    def _slices(self):
        """Return the slice of these rows that is in each block of the source."""
        edges = self._source.edges
        edges = edges if self._index is None else np.searchsorted(self._index, edges).tolist()
        return [slice(*pair) for pair in pairwise(edges)]

    def _read(self, k, rows):
        """Read the rows at a slice of these rows, all of which are in block k of the source."""
        X = self._source.read(k, self._may_miss)
        self._check(k, X)
        X = X if self._index is None else X[self._index[rows] - self._source.edges[k]]
        if self._replaced is not None:
            which, values = self._replaced
            X = X.astype(values.dtype)
            X[:, which] = values[rows]
        return X

    def _check(self, k, X):
        """Check that block k is of the kind of the first block, and holds what it held when it was
        first read."""
        if X.dtype != self._dtype or is_sparse(X) != self.is_sparse:
            kinds = [
                f"{'CSR' if sparse else 'dense'} {dtype}"
                for sparse, dtype in ((self.is_sparse, self._dtype), (is_sparse(X), X.dtype))
            ]
            raise BlockError(
                *self._source.edges[k : k + 2],
                f"must be {kinds[0]} like the first block, got {kinds[1]}",
            )
        here = fingerprint(X)
        if self._known.setdefault(k, here) != here:
            raise BlockError(*self._source.edges[k : k + 2], OTHER_ROWS)

    def without_missing(self) -> ChunkedRows:
        return ChunkedRows(
            self._source, self._n_workers, self._index, False, self._known, self._replaced
        )

    def with_columns(self, which: np.ndarray, values: np.ndarray) -> ChunkedRows:
        return ChunkedRows(
            self._source, self._n_workers, self._index, self._may_miss, self._known, (which, values)
        )

    def select(self, index: np.ndarray) -> ChunkedRows:
        own = index if self._index is None else self._index[index]
        replaced = None if self._replaced is None else (self._replaced[0], self._replaced[1][index])
        return ChunkedRows(
            self._source, self._n_workers, own, self._may_miss, self._known, replaced
        )

    def array(self, index: np.ndarray | None = None) -> DenseOrCSR:
        wanted, place = self.distinct(index)
        return stack_blocks([X for _, X in self.select(wanted)._blocks()], place)
