"""Rows as a column stage shows them: made block by block, where they become features."""

from functools import partial

import numpy as np

from .home import Rows
from .memory import Memory

# Numbers up to which rows in memory are shown once, not for each question.
SHOWN_ONCE = 2**23


def staged(rows, stage):
    """These rows as the stage shows them, block by block; as they are where it is None."""
    return rows if stage is None else StagedRows(rows, stage)


def shown_once(rows, stage):
    """`staged`, but few numbers in memory not for each question, of which there will be many."""
    few = isinstance(rows, Memory) and not rows.is_sparse and rows.n_rows * rows.n_features_in <= SHOWN_ONCE
    return rows.beside(stage.show(rows.array())) if stage is not None and few else staged(rows, stage)


class StagedRows(Rows):
    """Of any home, whose blocks answer through the stage."""

    def __init__(self, rows, stage):
        self._rows, self._stage = rows, stage
        self.n_rows, self.n_features_in, self.dtype = rows.n_rows, rows.n_features_in, rows.dtype
        self.in_memory, self.is_sparse, self.vectors = rows.in_memory, False, rows.vectors
        self.give, self.beside = rows.give, rows.beside

    @property
    def n_passes(self):
        return self._rows.n_passes

    def sum(self, answer, *vectors, add=np.add):
        return self._rows.sum(partial(_through, self._stage, answer), *vectors, add=add)

    def map(self, answer, *vectors, axis=-1):
        return self._rows.map(partial(_through, self._stage, answer), *vectors, axis=axis)

    def map_and_sum(self, answer, *vectors):
        return self._rows.map_and_sum(partial(_through, self._stage, answer), *vectors)

    def kernel(self, features, weights):
        return self.beside(self.array()).kernel(features, weights)

    def take(self, index):
        return shown_once(self._rows.take(index), self._stage)

    def array(self, index=None):
        return self._stage.show(self._rows.array(index))

    def __enter__(self):
        self._rows.__enter__()
        return self

    def __exit__(self, *error):
        self._rows.__exit__(*error)


def _through(stage, answer, block, *parts):
    return answer(block.staged(stage), *parts)
