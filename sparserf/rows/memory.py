"""Rows in memory: one block."""

from .._checks import is_sparse
from .._threads import Workers
from .block import Block
from .home import Rows
from .tiles import some_rows


class Memory(Rows):
    """An ndarray of any strides, or a CSR matrix. Threads, and what the block keeps, stay for as long as it is entered."""

    in_memory = True

    def __init__(self, X, workers=1):
        """workers: a number of threads, or the block that this one is beside."""
        self._block = workers.beside(X) if isinstance(workers, Block) else Block(X, Workers(workers))
        (self.n_rows, self.n_features_in), self.dtype, self.is_sparse = X.shape, X.dtype, is_sparse(X)

    def sum(self, answer, *vectors, add=None):
        self.n_passes += 1
        return answer(self._block, *vectors)

    def map(self, answer, *vectors, axis=-1):
        self.n_passes += 1
        return answer(self._block, *vectors)

    map_and_sum = map

    def kernel(self, features, weights):
        """Phi diag(weights) Phi', float64 of shape (n_rows, n_rows), for few rows and weights >= 0."""
        self.n_passes += 1
        return self._block.kernel(features, weights)

    def beside(self, X):
        """Rows of another matrix, on the same threads, for as long as this is entered or not."""
        return Memory(X, self._block)

    def take(self, index):
        return self.beside(self.array(index))

    def array(self, index=None):
        return self._block.X if index is None else some_rows(self._block.X, index)

    def __enter__(self):
        self._block.__enter__()
        return self

    def __exit__(self, *error):
        self._block.__exit__(*error)
