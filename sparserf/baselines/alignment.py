"""The weights of random features that align their kernel best with a target (Sinha & Duchi 2016)."""

import numpy as np


def aligned(v: np.ndarray, rho: float) -> np.ndarray:
    """argmax of q'v over the simplex and ||q - 1/N||^2 <= rho / N, for v in [0, 1].

    For a multiplier l of the ball it is the projection of 1/N + v/l onto the simplex; its distance falls with l.
    """
    uniform, squared_radius = 1 / len(v), rho / len(v)
    inside = lambda l: np.sum((simplex(uniform + v / l) - uniform) ** 2) <= squared_radius  # noqa: E731, E741
    high = max(np.sqrt(np.sum((v - v.mean()) ** 2) / squared_radius), 1e-12)  # inside: projections bring points together
    low = high
    while low > 1e-12 and inside(low):  # below that, q is on the largest v alone, as near as floats tell
        high, low = low, low / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if inside(middle) else (middle, high)
    return simplex(uniform + v / high)


def simplex(x: np.ndarray) -> np.ndarray:
    """The nearest point with entries >= 0 that sum to 1: max(0, x - shift)."""
    x = x - x.max()  # the same projection, exact where it matters
    down = np.sort(x)[::-1]
    shift = (np.cumsum(down) - 1) / np.arange(1, len(x) + 1)
    return np.maximum(x - shift[np.flatnonzero(down > shift)[-1]], 0.0)
