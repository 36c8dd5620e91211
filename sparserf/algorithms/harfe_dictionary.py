"""The dictionary of HARFE, and how many of its features its models have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.checks import check_sizes
from ..features import RandomNeurons, draw_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .._base.types import Seed
    from ..features.feature_set import FeatureSet
    from ..features.neurons import Activation
    from ..rows.home import Rows


def draw(
    features: Any, rows: Rows, weight: np.ndarray, n_components: int, activation: Activation, order: int | None, rng: Seed
) -> FeatureSet:
    """The whole dictionary."""
    if features is None:
        features = RandomNeurons(activation, order=order)
    elif order is not None or activation != "sin":
        raise ValueError(f"order and activation must not be given beside features, got {order!r} and {activation!r}")
    return draw_all(features, rows, n_components=n_components, rng=rng, weight=weight)


def sizes_of(n_nonzero_coefs: Iterable[int] | None, n_models: int, n_rows: int, n_features: int, is_found: bool) -> list[int]:
    """s of each model; is_found: the dictionary is what a search has found, as many as there are."""
    if n_nonzero_coefs is None:
        largest = max(1, min(int(0.15 * n_rows), n_features // 10))
        return np.unique(np.geomspace(largest, max(1, largest // 20), n_models).astype(int)).tolist()
    sizes = check_sizes("n_nonzero_coefs", n_nonzero_coefs, np.inf if is_found else n_features)
    return sorted({min(size, n_features) for size in sizes})
