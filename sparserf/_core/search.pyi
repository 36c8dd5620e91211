"""The k largest scores. See search.pyx."""

import numpy as np

def top_k(score: np.ndarray, threshold: float, out: np.ndarray) -> int: ...
