"""Some features of the dictionary, and the three questions asked of them."""

import numpy as np

from ..features import FeatureSet


class Columns:
    """Features with their index in the dictionary; their Gram matrix is kept for as long as its weights are the same."""

    def __init__(self, rows):
        self._rows = rows
        self._gram, self._sums, self._h = np.zeros((0, 0)), np.zeros(0), None
        self.features = FeatureSet((), rows.n_features_in)
        self.index = np.zeros(0, np.int64)

    def __len__(self):
        return len(self.index)

    def correlate(self, v):
        return self._rows.correlate(self.features, v)

    def apply(self, c):
        """Phi c for coefficients (len(self),) or (n_outputs, len(self))."""
        used = np.flatnonzero(np.atleast_2d(c).any(axis=0))
        return self._rows.apply(self.features.take(used), c[..., used])

    def curvature(self, h):
        """(Phi' diag(h) Phi, Phi' h) for row weights h: of the same weights as before, only what is new is made."""
        if self._h is None or not np.array_equal(h, self._h):
            self._h, self._gram, self._sums = h, np.zeros((0, 0)), np.zeros(0)
        k, p = len(self._sums), len(self)
        if k == 0:
            self._gram, self._sums = self._rows.gram(self.features, self.features, h), self.correlate(h)
        elif k < p:
            new = self.features.take(np.arange(k, p))
            columns = self._rows.gram(self.features, new, h)
            self._gram = np.block([[self._gram, columns[:k]], [columns[:k].T, columns[k:]]])
            self._sums = np.concatenate([self._sums, self._rows.correlate(new, h)])
        return self._gram, self._sums

    def append(self, features, index):
        self.features = self.features.concat(features)
        self.index = np.concatenate([self.index, index])

    def keep(self, kept):
        """Only the features at these positions, ascending."""
        if len(kept) == len(self):
            return
        known = kept[kept < len(self._sums)]
        self._gram, self._sums = self._gram[np.ix_(known, known)], self._sums[known]
        self.features, self.index = self.features.take(kept), self.index[kept]
