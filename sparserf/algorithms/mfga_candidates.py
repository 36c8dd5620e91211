"""The candidates of MFGA: by default all monomials of degree 2 and the inputs; how many enter, and their norms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.checks import check_vector
from ..features import FeatureSet, Linear, Taylor, draw_all

if TYPE_CHECKING:

    from numpy.typing import ArrayLike

    from ..features.bandwidth import Gamma
    from ..rows.home import Rows

# Inputs up to which all products of two of them are candidates by default.
MOST_INPUTS = 2000
# Terms where their number is not given.
N_TERMS = 30
# A feature whose variance is below this share of its mean square is a constant.
CONSTANT = 1e-13


def n_terms(n_nonzero_coefs: int | None, n_features: int, is_found: bool) -> int:
    """M, where the user may not have given it; is_found: the candidates are what a search has found, as many as there are."""
    if n_nonzero_coefs is None or is_found:
        return min(n_nonzero_coefs or N_TERMS, n_features)
    if n_nonzero_coefs > n_features:
        most = f"{n_features}, the number of features"
        raise ValueError(f"n_nonzero_coefs must be at most {most}, got {n_nonzero_coefs}; lower it, or give other features")
    return int(n_nonzero_coefs)


def candidates(
    features: Any, rows: Rows, weight: np.ndarray, nu: ArrayLike | None, gamma: Gamma, n_components: int,
    rng: np.random.Generator,
) -> FeatureSet:  # fmt: skip
    """The whole dictionary, each map times the root of its weight."""
    if features is None:
        degree = 2 if rows.n_features_in <= MOST_INPUTS else 1
        features, gamma = (Taylor(degree, "knn" if gamma is None else gamma), Linear()), None
    if isinstance(features, FeatureSet) and nu is not None:
        raise ValueError("nu must be None where features is a FeatureSet")
    return draw_all(
        features, rows, n_components=n_components, gamma=gamma, rng=rng, scales=lambda n: _scales(nu, n), weight=weight
    )


def _scales(nu, n_maps):
    nu = np.ones(n_maps) if nu is None else check_vector("nu", nu)
    if len(nu) != n_maps or nu.min() <= 0:
        raise ValueError(f"nu must hold a positive number for each of the {n_maps} maps, got {nu.tolist()}")
    return tuple(np.sqrt(nu / nu.max() / (nu / nu.max()).sum()).tolist())


def norms(rows: Rows, everything: FeatureSet, weight: np.ndarray, fit_intercept: bool) -> np.ndarray:
    """Root mean square of each feature, around its mean where there is an intercept; infinite for a constant."""
    square = rows.correlate_squares(everything, weight / rows.n_rows)
    mean = rows.correlate(everything, weight / rows.n_rows) if fit_intercept else 0.0
    variance = square - mean * mean
    return np.sqrt(np.where(variance > CONSTANT * square, variance, np.inf))
