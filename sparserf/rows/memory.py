"""Rows in memory, dense or CSR, in slices on threads, through _core and products of matrices."""

from contextlib import nullcontext

import numpy as np

from .._threads import Workers, single_threaded_blas
from . import block as _block

# Elements of the feature matrix in a block: half a millisecond of work, against some 20 microseconds to hand it
# out. Fewer than two blocks' worth stay on the calling thread; the number of blocks divides evenly among few workers.
BLOCK_ELEMENTS = 2**19
BLOCKS_MULTIPLE = 4
# Columns that are correlated with the others one by one, where more would be multiplied as a matrix.
FEW = 4
# Rows of a block of the kernel matrix.
KERNEL_ROWS = 256


class Memory:
    """The three questions over an ndarray (any strides, never copied whole) or a CSR matrix.

    As a context manager it keeps its threads for as long as it is entered, else for one question.

    Blocks depend on the shapes only, and their sums are added in block order: the same bits for any `workers`.
    """

    def __init__(self, X, workers):
        self.X, self._workers = X, Workers(workers)
        self.dtype = X.dtype
        self.n_rows, self.n_features_in = X.shape

    def correlate(self, features, v):
        """Phi' v: float64 of shape (len(features),) for v of shape (n_rows,), or (n_outputs, .) for (n_outputs, n_rows)."""
        return self._correlate(features, v, squared=False)

    def correlate_squares(self, features, v):
        """(Phi * Phi)' v, the diagonal of `gram` for v = weights; shapes as in `correlate`."""
        return self._correlate(features, v, squared=True)

    def _correlate(self, features, v, squared):
        outputs = np.ascontiguousarray(np.atleast_2d(np.asarray(v, np.float64)))

        def part(rows):
            X = self._slice(rows)
            return np.hstack([_block.correlate(block, X, outputs[:, rows], squared) for block in features.blocks])

        total = np.zeros((len(outputs), len(features)))
        if len(features):
            work = sum(_block.work(block, self.X) for block in features.blocks)
            at_least = max(_block.fewest_rows(block, self.X) for block in features.blocks)
            with self._blas(features):
                for sums in self._each_block(part, work, at_least):
                    with np.errstate(over="ignore", invalid="ignore"):
                        total += sums
        _check_no_overflow(total)
        return features.from_blocks(total).reshape(*np.shape(v)[:-1], len(features))

    def apply(self, features, coef):
        """Phi c: float64 of shape (n_rows,) for coef of shape (len(features),), or (n_outputs, .) for (n_outputs, .)."""
        outputs = features.to_blocks(np.atleast_2d(np.asarray(coef, np.float64)))
        ends = np.cumsum([len(block) for block in features.blocks])
        parts = np.split(outputs, ends[:-1], axis=1) if len(ends) else []
        f = np.zeros((len(outputs), self.n_rows))

        def part(rows):
            X = self._slice(rows)
            for block, c in zip(features.blocks, parts, strict=True):
                _block.apply(block, X, c, f[:, rows])

        with self._blas(features):
            for _ in self._each_block(part, len(features)):
                pass
        _check_no_overflow(f)
        return f.reshape(*np.shape(coef)[:-1], self.n_rows)

    def gram(self, left, right, weights):
        """Phi_left' diag(weights) Phi_right, float64 of shape (len(left), len(right)); weights >= 0.

        Rows of weight zero cost nothing. Memory: a block of at most max(2**19, 4 * len(right)**2) elements a worker.
        """
        if 0 < len(right) <= FEW < len(left):
            return self.correlate(left, weights * self.transform(right).T).T
        total = np.zeros((len(left), len(right)))

        @np.errstate(over="ignore", invalid="ignore")
        def part(rows):
            kept = rows.start + np.flatnonzero(weights[rows])
            block = Memory(self.X[rows] if len(kept) == rows.stop - rows.start else self.X[kept], 1)
            h = weights[kept, None]
            phi = block.transform(left)
            if right is left:
                phi *= np.sqrt(h).astype(self.dtype)
                return phi.T @ phi
            psi = block.transform(right)
            psi *= h.astype(self.dtype)
            return phi.T @ psi

        if total.size:
            with single_threaded_blas():
                for product in self._each_block(part, len(left) + len(right), 4 * len(right)):
                    with np.errstate(over="ignore", invalid="ignore"):
                        total += product
        _check_no_overflow(total)
        return total

    def kernel(self, features, weights):
        """Phi diag(weights) Phi', float64 of shape (n_rows, n_rows), for few rows and weights >= 0.

        Memory: n_rows * 1,024 elements beside it.
        """
        total = np.zeros((self.n_rows, self.n_rows))
        slices = [slice(i, i + KERNEL_ROWS) for i in range(0, self.n_rows, KERNEL_ROWS)]
        for start in range(0, len(features), 1024):
            some = np.arange(start, min(start + 1024, len(features)))
            phi = self.transform(features.take(some)) * np.sqrt(weights[some]).astype(self.dtype)

            def add(part, phi=phi):
                total[part] += phi[part] @ phi.T

            with single_threaded_blas():
                for _ in self._workers.map(add, slices):
                    pass
        return total

    def transform(self, features):
        """Phi itself, in the dtype of X."""
        phi = np.empty((self.n_rows, len(features)), self.dtype)

        def part(rows):
            X, start = self._slice(rows), 0
            out = phi[rows] if features.order is None else np.empty((X.shape[0], len(features)), self.dtype)
            for block in features.blocks:
                _block.transform(block, X, out[:, start : start + len(block)])
                start += len(block)
            if features.order is not None:
                phi[rows] = features.from_blocks(out)

        for _ in self._each_block(part, len(features)):
            pass
        return phi

    def __enter__(self):
        self._workers.__enter__()
        return self

    def __exit__(self, *error):
        self._workers.__exit__(*error)

    def _each_block(self, function, n_features, at_least=0):
        """Yield function(rows) for slices of rows, in order."""
        blocks = self.n_rows * n_features / BLOCK_ELEMENTS
        blocks = 1 if blocks < 2 else -(-blocks // BLOCKS_MULTIPLE) * BLOCKS_MULTIPLE
        size = max(64, at_least, int(-(-self.n_rows // blocks) // -64 * -64))
        slices = [slice(i, min(i + size, self.n_rows)) for i in range(0, self.n_rows, size)]
        return self._workers.map(function, slices)

    def _blas(self, features):
        """What keeps BLAS to one thread, where it is used."""
        used = any(_block.by_moments(block, self.X) for block in features.blocks)
        return single_threaded_blas() if used else nullcontext()

    def _slice(self, rows):
        return self.X[rows] if rows.stop - rows.start < self.n_rows else self.X


def _check_no_overflow(sums):
    if not np.isfinite(sums).all():
        raise ValueError("X must be of moderate size, got values whose features overflow: scale its columns")
