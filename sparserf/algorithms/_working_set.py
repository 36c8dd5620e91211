"""The working set: the features that are in play, their coefficients, and the three questions asked of them."""

import numpy as np

from ..features import FeatureSet


class WorkingSet:
    """Features A with coefficients w and gradients g, intercept b and f = Phi_A w, one entry a row.

    Where the curvature of the loss is constant, the Gram matrix is kept and only grows; otherwise it is made anew at
    every question, since its weights are new.
    """

    def __init__(self, rows, *, constant_curvature):
        self._rows = rows
        self._constant_curvature = constant_curvature
        self._gram, self._sums = np.zeros((0, 0)), np.zeros(0)
        self.features = FeatureSet((), rows.n_features_in)
        self.index = np.zeros(0, np.int64)  # of each feature in the dictionary
        self.w, self.g, self.b, self.f = np.zeros(0), np.zeros(0), 0.0, np.zeros(rows.n_rows)

    def __len__(self):
        return len(self.index)

    @property
    def largest_gradient(self):
        return np.abs(self.g).max(initial=0.0)

    def correlate(self, v):
        return self._rows.correlate(self.features, v)

    def apply(self, c):
        used = np.flatnonzero(c)
        return self._rows.apply(self.features.take(used), c[used])

    def curvature(self, h):
        """(Phi' diag(h) Phi, Phi' h) for row weights h."""
        if not self._constant_curvature:
            return self._rows.gram(self.features, self.features, h), self._rows.correlate(self.features, h)
        k, p = len(self._sums), len(self)
        if k < p:
            new = self.features.take(np.arange(k, p))
            columns = self._rows.gram(self.features, new, h)
            self._gram = np.block([[self._gram, columns[:k]], [columns[:k].T, columns[k:]]])
            self._sums = np.concatenate([self._sums, self._rows.correlate(new, h)])
        return self._gram, self._sums

    def add(self, features, index, g):
        """Put features with coefficient zero and gradient g at the end."""
        self.features = self.features.concat(features)
        self.index = np.concatenate([self.index, index])
        self.w = np.concatenate([self.w, np.zeros(len(index))])
        self.g = np.concatenate([self.g, g])

    def prune(self, but=False):
        """Drop the features whose coefficient is exactly zero, but those where `but` holds."""
        kept = np.flatnonzero((self.w != 0) | but)
        if len(kept) == len(self):
            return
        known = kept[kept < len(self._sums)]
        self._gram, self._sums = self._gram[np.ix_(known, known)], self._sums[known]
        self.features, self.index = self.features.take(kept), self.index[kept]
        self.w, self.g = self.w[kept], self.g[kept]
