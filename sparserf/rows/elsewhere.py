"""What homes have in common whose rows are not in the memory of this process."""

from .._threads import Workers
from .block import Block
from .home import TAKEN_NUMBERS, Rows
from .memory import Memory


class Elsewhere(Rows):
    """A home answers the verbs, `array(index)`, and some(index), these rows where they are. Its threads, for what has come to
    this process, stay for as long as it is entered."""

    in_memory = False

    def __init__(self, workers):
        self._n_workers, self._workers = workers, Workers(workers)

    def beside(self, X):
        """Rows of a matrix in the memory of this process."""
        return Memory(Block(X, self._workers))

    def kernel(self, features, weights):
        return self.beside(self.array()).kernel(features, weights)

    def take(self, index):
        if len(index) * self.n_features_in <= TAKEN_NUMBERS:
            return self.beside(self.array(index))
        return self.some(index)

    def __enter__(self):
        self._workers.__enter__()
        return self

    def __exit__(self, *error):
        self._workers.__exit__(*error)
