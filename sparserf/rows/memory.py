"""Rows in the memory of this process: one block."""

from .._checks import is_sparse
from .._threads import Workers
from .block import Block
from .home import Rows


class Memory(Rows):
    """One block. Its threads, and what it keeps, stay for as long as it is entered."""

    def __init__(self, block):
        self._block = block
        self.n_rows, self.n_features_in, self.dtype = block.n_rows, block.n_features_in, block.dtype

    @classmethod
    def of(cls, X, workers):
        """An ndarray of any strides, or a CSR matrix, on so many threads."""
        return cls(Block(X, Workers(workers)))

    in_memory = True

    @property
    def is_sparse(self):
        return is_sparse(self._block.X)

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
        """Rows of another matrix, in the memory of this process, on the same threads for as long as this is entered or not."""
        return Memory(self._block.beside(X))

    def take(self, index):
        return self.beside(self.array(index))

    def array(self, index=None):
        return self._block.array(index)

    def __enter__(self):
        self._block.__enter__()
        return self

    def __exit__(self, *error):
        self._block.__exit__(*error)
