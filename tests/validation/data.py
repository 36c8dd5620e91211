"""Data of the tests of intervals and probabilities: a target whose noise depends on an input,
labels, and a fit."""

from functools import partial

import numpy as np

import sparserf as srf

N = 900
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 3))
NOISE = 0.1 + 0.4 * (X[:, 0] > 0)
Y = np.sin(2 * X[:, 0]) * X[:, 1] + NOISE * RNG.standard_normal(N)
HOLES = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
LABELS = RNG.random(N) < 1 / (1 + np.exp(-3 * X[:, 0] * X[:, 1]))
KINDS = np.digitize(X[:, 0] * X[:, 1] + 0.5 * RNG.standard_normal(N), [-0.7, 0.7])
FIT = partial(srf.sparse_rf, features="gaussian", n_components=150, alpha=0.01)
FEW, REST = slice(0, 500), slice(500, N)
