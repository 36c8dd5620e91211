"""Random streams that can be made again, each without the others."""

import numpy as np


def seed_of(rng):
    """A seed, drawn from a Generator."""
    return np.random.SeedSequence(rng.integers(0, 2**63, 2).tolist())


def stream(seed, k):
    """The Generator of stream k of a seed."""
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, k)))
