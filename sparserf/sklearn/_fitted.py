"""A SparseModel as an estimator that has been fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from ._base import Classifier, Regressor, knows_categories

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..model import SparseModel


class Fitted:
    """What `model` says; fitting changes nothing."""

    def __init__(self, model: SparseModel, *, n_jobs: int | None = None):
        self.model, self.n_jobs = model, n_jobs

    def fit(self, X: MatrixLike | None = None, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Nothing is fitted: the model stays as it is, also where a search or a calibration fits its clones."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    model_ = property(lambda self: self.model)
    n_features_in_ = property(lambda self: self.model.n_features_in)
    _loss = property(lambda self: self.model.loss)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Of the columns of the data frame that it was fitted to."""
        if self.model.feature_names_in_ is None:
            raise AttributeError("this model was fitted to an array, whose columns have no names")
        return np.array(self.model.feature_names_in_, object)

    @property
    def _may_miss(self):
        stage = self.model.features.stage
        return stage is not None and stage.may_miss

    _has_categories = property(lambda self: knows_categories(self.model))


class FittedRegressor(Fitted, Regressor):
    """A SparseModel of real targets as an estimator that has been fitted; `SparseModel.to_estimator` makes it.

    Parameters
    ----------
    model : SparseModel
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
    """A SparseModel of labels as an estimator that has been fitted; `SparseModel.to_estimator` makes it.

    Parameters
    ----------
    model : SparseModel
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
    """The estimator of a model."""
    return (FittedRegressor if model.classes is None else FittedClassifier)(model)
