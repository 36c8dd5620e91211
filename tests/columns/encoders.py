"""Encodings of columns, read off rows without a fit."""

import numpy as np

from sparserf.columns.encodings import fit_encoder, fit_rank_encoder
from sparserf.rows import as_rows


def encoder_of(X, weight=None, seed=0, **how):
    """Return the column encoder that a fit to the rows of X would have."""
    weight = np.ones(len(X)) if weight is None else weight
    rows = as_rows(X, may_miss=True)
    return fit_encoder(rows, weight / weight.mean(), np.random.default_rng(seed), **how)


def ranks_of(X):
    """Return the encoder of the ranks of the columns of X, and the places of the numbers."""
    own = as_rows(X, may_miss=True), np.ones(len(X)), np.random.default_rng(0)
    return fit_rank_encoder(*own, encoder_of(X))
