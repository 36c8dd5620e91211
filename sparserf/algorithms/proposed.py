"""features="auto" in `harfe` and `mfga`: they choose among the terms that `sparse_rf` finds."""

from .sparse_rf import sparse_rf


def proposed(features, X, y, columns, **how):
    """(features, columns, whether the features are found): "auto" becomes a FeatureSet, which knows its columns.

    how : loss, fit_intercept, sample_weight, rng and workers, as the user gave them
    """
    if not (isinstance(features, str) and features == "auto"):
        return features, columns, False
    model = sparse_rf(X, y, **columns, **how)
    if len(model.features) == 0:
        raise ValueError("features='auto' has found no term that predicts y better than a constant: give other features")
    return model.features, columns | {"categorical": None}, True
