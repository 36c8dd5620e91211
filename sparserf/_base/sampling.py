"""Samples of rows: drawn at random, by weight, or spread evenly."""

from __future__ import annotations

import numpy as np


def draw_rows(n_rows: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return the places of n rows of n_rows, drawn without replacement, in ascending order."""
    return np.sort(rng.choice(n_rows, n, replace=False))


def sample_rows(weight: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return (the places of at most n rows, in ascending order; how much each of them counts).

    These are all rows where there are no more than n; n rows with their weights where all weights are equal; otherwise the
    distinct ones of n draws, with replacement and with probabilities in proportion to the weights, and how often each was
    drawn.
    """
    n = min(n, len(weight))
    if n == len(weight) or is_uniform(weight):
        sample = draw_rows(len(weight), n, rng)
        return sample, weight[sample]
    return np.unique(rng.choice(len(weight), n, p=weight / weight.sum()), return_counts=True)


def spread_evenly(n_items: int, n: int) -> np.ndarray:
    """Return the places of n items, spread evenly over n_items."""
    return np.arange(n) * n_items // n


def is_uniform(weight: np.ndarray) -> bool:
    """Whether all weights are equal."""
    return weight.min() == weight.max()
