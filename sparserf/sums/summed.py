"""What a function is given beside rows that stand for sums."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from ..algorithms import REGISTRY
from ..features import Linear, default_batch_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..features import FeatureSet

# The functions that fit, and the algorithm of each.
ALGORITHMS = {function: algorithm for algorithm in REGISTRY.values() for function in algorithm.functions}
# Their arguments that are about the rows, which are summed up, or about drawing or turning features, which are given.
OF_ROWS = "X", "y", "sample_weight"
OF_FEATURES = "features", "gamma", "n_components", "nu", "activation", "order", "best_phase", "rng"


def arguments(method: Callable[..., Any], options: dict[str, Any], features: FeatureSet) -> dict[str, Any]:
    """What the function is given beside the rows, checked."""
    if method not in tuple(ALGORITHMS):  # a method may have no hash
        raise ValueError(f"method must be one of {', '.join(each.__name__ for each in ALGORITHMS)}, got {method!r}")
    known, name = signature(method).parameters, method.__name__
    refused = [*OF_ROWS, *(OF_FEATURES if "features" in known else ())]
    for given in options:
        if given in refused:
            raise ValueError(f"{given} must not be given: {name} is about the rows and features that were summed up")
    if options.get("loss", "squared") != "squared":
        raise ValueError(f"loss must be 'squared', which alone has sums, got {options['loss']!r}")
    for needed in ALGORITHMS[method].needs_rows:
        if needed in known and options.get(needed) is None:
            raise ValueError(f"{needed} must be given to {name}: by default it looks at the rows, which are summed up")
    default = {}
    if "features" in known:
        default["features"] = Linear().draw(None, len(features))
    if "batch_size" in known and options.get("batch_size") is None:
        default["batch_size"] = default_batch_size(features.n_features_in)
    return options | default


def depends_on_means(method: Callable[..., Any], options: dict[str, Any]) -> bool:
    """Whether more than the intercept does. Where not, rows around the means are known in more digits."""
    by_size = method in REGISTRY["harfe"].functions and options.get("normalize", True)
    return by_size or not options.get("fit_intercept", True)
