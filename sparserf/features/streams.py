"""Random streams of one seed, each of which can be made again without the others."""

from __future__ import annotations

import numpy as np


def seed_of(rng: np.random.Generator) -> np.random.SeedSequence:
    """Draw a seed from a Generator."""
    return np.random.SeedSequence(rng.integers(0, 2**63, 2).tolist())


def stream(seed: np.random.SeedSequence, k: int) -> np.random.Generator:
    """Return the Generator of stream k of a seed."""
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, k)))
