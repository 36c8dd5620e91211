"""The working set of the l1 problem: the features that are in play, their coefficients and gradients."""

import numpy as np

from ..solvers.lasso import ModelWeights
from ._columns import Columns


class WorkingSet(Columns):
    """Features A with coefficients w and gradients g, intercept b and f = Phi_A w, one entry a row."""

    def __init__(self, rows, problem, effort):
        super().__init__(rows, effort)
        self.weights = ModelWeights(problem)
        self.w, self.g, self.b, self.f = np.zeros(0), np.zeros(0), 0.0, np.zeros(rows.n_rows)

    @property
    def largest_gradient(self):
        return np.abs(self.g).max(initial=0.0)

    def add(self, features, index, g):
        """Put features with coefficient zero and gradient g at the end."""
        self.append(features, index)
        self.w, self.g = np.concatenate([self.w, np.zeros(len(index))]), np.concatenate([self.g, g])

    def prune(self, but=False):
        """Drop the features whose coefficient is exactly zero, but those where `but` holds."""
        kept = np.flatnonzero((self.w != 0) | but)
        self.keep(kept)
        self.w, self.g = self.w[kept], self.g[kept]
