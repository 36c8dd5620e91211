"""Hard thresholding: the s largest entries of a vector. See threshold.pyx."""

import numpy as np

def hard_threshold(x: np.ndarray, out: np.ndarray) -> int: ...
