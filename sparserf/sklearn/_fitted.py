"""Estimators of a SparseModel that is fitted already; `SparseModel.to_estimator` makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from ._base import Classifier, Regressor, has_category_columns

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..model import SparseModel


class Fitted:
    """An estimator whose predictions are those of `model`. `fit` does nothing."""

    def __init__(self, model: SparseModel, *, n_jobs: int | None = None):
        self.model, self.n_jobs = model, n_jobs

    def fit(
        self, X: MatrixLike | None = None, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None, groups: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Return the estimator as it is: the model does not change, also where a search or a calibration fits its clones."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    model_ = property(lambda self: self.model)
    n_features_in_ = property(lambda self: self.model.n_features_in)
    _loss = property(lambda self: self.model.loss)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns of the data frame that the model was fitted to."""
        if self.model.feature_names_in_ is None:
            raise AttributeError("this model was fitted to an array, whose columns have no names")
        return np.array(self.model.feature_names_in_, object)

    @property
    def _may_miss(self):
        stage = self.model.features.stage
        return stage is not None and stage.may_miss

    _has_categories = property(lambda self: has_category_columns(self.model))


class FittedRegressor(Fitted, Regressor):
    """A fitted regressor of a SparseModel; `SparseModel.to_estimator` makes it.

    Parameters
    ----------
    model : SparseModel
        The model that predicts.
    n_jobs : int or None, default None
        Threads; -1 for all cores.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> estimator = srf.mfga(X, X[:, 0] - X[:, 1], n_nonzero_coefs=2, rng=0).to_estimator()
    >>> round(estimator.score(X, X[:, 0] - X[:, 1]), 3)  # R^2
    1.0
    """


class FittedClassifier(Fitted, Classifier):
    """A fitted classifier of a SparseModel; `SparseModel.to_estimator` makes it.

    Parameters
    ----------
    model : SparseModel
        The model that predicts.
    n_jobs : int or None, default None
        Threads; -1 for all cores.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> labels = np.where(X[:, 0] > 0, "yes", "no")
    >>> estimator = srf.mfga(X, labels, loss="logistic", n_nonzero_coefs=2, rng=0).to_estimator()
    >>> estimator.classes_.tolist(), estimator.predict_proba(X).shape, estimator.score(X, labels) > 0.95
    (['no', 'yes'], (200, 2), True)
    """

    classes_ = property(lambda self: self.model.classes)


def to_estimator(model: SparseModel) -> FittedRegressor | FittedClassifier:
    """Return a fitted estimator whose predictions are those of the model."""
    return (FittedRegressor if model.classes is None else FittedClassifier)(model)
