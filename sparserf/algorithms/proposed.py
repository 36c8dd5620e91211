"""features="auto" in `harfe` and `mfga`: they choose among the terms that `sparse_rf` finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .sparse_rf import sparse_rf

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..columns.stage import ColumnSetting


def proposed(features: Any, X: MatrixLike, y: ArrayLike, columns: ColumnSetting, **how: Any) -> tuple[Any, ColumnSetting, bool]:
    """(features, columns, whether the features are found): "auto" becomes a FeatureSet, which knows its columns.

    how : loss, fit_intercept, sample_weight, rng and workers, as the user gave them
    """
    if not (isinstance(features, str) and features == "auto"):
        return features, columns, False
    model = sparse_rf(X, y, **columns, **how)
    if len(model.features) == 0:
        raise ValueError("features='auto' has found no term that predicts y better than a constant: give other features")
    return model.features, columns | {"categorical": None}, True
