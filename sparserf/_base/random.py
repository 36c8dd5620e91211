"""Streams of random numbers, each of which can be made again, and samples of rows."""

from __future__ import annotations

import numpy as np


def draw_seed(rng: np.random.Generator) -> np.random.SeedSequence:
    """Draw a seed from a Generator."""
    return np.random.SeedSequence(rng.integers(0, 2**63, 2).tolist())


def stream(seed: np.random.SeedSequence, k: int) -> np.random.Generator:
    """Return the Generator of stream k of a seed: the same numbers at each call."""
    return np.random.default_rng(
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, k))
    )


def evenly(n: int, most: int) -> np.ndarray:
    """Return at most so many of n indices, evenly spaced."""
    return np.arange(n) if n <= most else np.arange(most) * n // most


def draw_rows(n_rows: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw n of n_rows rows without replacement, and return their indices in ascending order."""
    return np.sort(rng.choice(n_rows, n, replace=False))


def sample_rows(
    weight: np.ndarray, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw a sample of at most n rows by their weights.

    Return (their indices in ascending order, their weights in it).

    Where all weights are equal, or there are at most n rows, rows are drawn without replacement and
    keep their weights. Otherwise n draws with replacement, with probabilities in proportion to the
    weights, are made: the sample has each row that was drawn once, and its weight in the sample is
    the number of times that it was drawn.
    """
    n = min(n, len(weight))
    if n == len(weight) or is_uniform(weight):
        sample = draw_rows(len(weight), n, rng)
        return sample, weight[sample]
    return np.unique(rng.choice(len(weight), n, p=weight / weight.sum()), return_counts=True)


def is_uniform(weight: np.ndarray) -> bool:
    """Return whether all weights are equal."""
    return weight.min() == weight.max()
