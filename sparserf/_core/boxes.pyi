"""Boxes, sums over the rows in them, and the histograms of trees. See boxes.pyx."""

import numpy as np

MISSING: int
HIGHEST: int

class BinBoxes:
    def __init__(self, boxes: np.ndarray, n_columns: int) -> None: ...
    def n_boxes(self) -> int: ...
    def evaluate(self, bins: np.ndarray, bits: np.ndarray, level: int = -1) -> None: ...

class NumberBoxes:
    def __init__(
        self, columns: np.ndarray, low: np.ndarray, high: np.ndarray, missing: np.ndarray
    ) -> None: ...
    def n_boxes(self) -> int: ...
    def evaluate(self, X: np.ndarray, bits: np.ndarray, level: int = -1) -> None: ...

def bin_columns(
    X: np.ndarray, edges: np.ndarray, first: np.ndarray, out: np.ndarray, level: int = -1
) -> None: ...
def common(
    left: np.ndarray, right: np.ndarray, out: np.ndarray, symmetric: bool = False, level: int = -1
) -> None: ...
def correlate(bits: np.ndarray, v: np.ndarray, out: np.ndarray, level: int = -1) -> None: ...
def apply(bits: np.ndarray, coef: np.ndarray, out: np.ndarray, level: int = -1) -> None: ...
def spread(
    bits: np.ndarray, out: np.ndarray, v: np.ndarray | None = None, level: int = -1
) -> None: ...
def draw_rows(
    seed: int, share: float, first_row: int, n_rows: int, words: np.ndarray, level: int = -1
) -> None: ...
def histograms(
    boxes: BinBoxes,
    bins: np.ndarray,
    steps: np.ndarray,
    tree: np.ndarray,
    seeds: np.ndarray,
    share: float,
    first_row: int,
    columns: np.ndarray,
    first: np.ndarray,
    at: np.ndarray,
    sums: np.ndarray,
    counts: np.ndarray,
    start: int,
    stop: int,
    level: int = -1,
) -> None: ...
