"""Sums of features over rows, and rows of features, made tile by tile. See features.pyx."""

import numpy as np

from .rows import RowSlice

ACTIVATIONS: tuple[str, ...]
PANEL: int

class Panels:
    def __init__(
        self,
        activation: str,
        scale: float,
        weights: np.ndarray,
        offset: np.ndarray,
        inputs: np.ndarray | None = None,
        centers: np.ndarray | None = None,
    ) -> None: ...
    def correlate(
        self,
        X: RowSlice,
        v: np.ndarray,
        out: np.ndarray,
        squared: bool = False,
        sine: np.ndarray | None = None,
    ) -> None: ...
    def apply(self, X: RowSlice, coef: np.ndarray, out: np.ndarray) -> None: ...
    def transform(self, X: RowSlice, out: np.ndarray) -> None: ...
