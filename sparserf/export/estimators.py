"""scikit-learn estimators of a model: what all of them share, and those of a model that is fitted
already.

`sparserf.sklearn` adds the estimators that fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

try:
    import sklearn  # noqa: F401
except ImportError:
    raise ImportError(
        "sparserf.sklearn needs scikit-learn: pip install sparserf[sklearn]"
    ) from None

from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._base.arrays import is_foreign
from .._base.checks import check_sample_weight, is_sparse
from ..columns.frames import is_frame, is_table, names_of_frame
from ..columns.targets import as_labels
from ..columns.times import read_times
from ..expansion.terms import table_of
from ..losses import PROBABILISTIC
from ..losses.links import LINKS, HazardLink
from ..losses.measures import pairs_of_rows
from ..rows import is_elsewhere

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn 1.5

    def validate_data(
        estimator, X, y="no_validation", *, reset=True, skip_check_array=False, **how
    ):
        """Return X and y, or X, checked as scikit-learn 1.6 does; with skip_check_array only names
        and number of columns."""
        if skip_check_array:
            estimator._check_feature_names(X, reset=reset)
            estimator._check_n_features(X, reset=reset)
            return X if isinstance(y, str) else (X, y)
        how["force_all_finite"] = how.pop("ensure_all_finite")
        return estimator._validate_data(X, y, reset=reset, **how)


if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..expansion import Expansion


class ModelEstimator(BaseEstimator):
    """An estimator whose predictions are those of `model_`, a SparseModel.

    Subclasses define `n_jobs`, and whether y is numeric (`_y_is_numeric`), X may have NaN
    (`_may_miss`) and X has columns of categories (`_has_categories`); classifiers also the name of
    their loss (`_loss`).
    """

    def _check_X(self, X, y="no_validation", reset=False):
        """Return X, or X and y, checked.

        The columns are noted if reset, else compared with those of the fit. The functions
        themselves check data frames, columns of categories or times and rows that are not in
        memory.
        """
        has_categories = self._has_categories or (not reset and has_category_columns(self.model_))
        is_read_later = is_table(X) or is_foreign(X) or is_elsewhere(X)
        if is_read_later or (isinstance(X, np.ndarray) and has_categories):
            if is_frame(X):
                names_of_frame(X)  # raises the same error for repeated names as the functions
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X if isinstance(y, str) else (X, y)
        how = {"reset": reset, "accept_sparse": "csr", "dtype": [np.float64, np.float32]}
        how["ensure_all_finite"] = "allow-nan" if self._may_miss and not is_sparse(X) else True
        if not isinstance(y, str):
            how |= {"multi_output": True, "y_numeric": self._y_is_numeric, "ensure_min_samples": 2}
        return validate_data(self, X, y, **how)

    def _call_model(self, method, X, offset):
        """Return what a method of the model says of the rows of X."""
        check_is_fitted(self)
        return getattr(self.model_, method)(
            self._check_X(X), workers=effective_n_jobs(self.n_jobs), offset=offset
        )

    def predict(self, X: MatrixLike, offset: ArrayLike | None = None) -> np.ndarray:
        """Return the predicted targets, of shape (n_samples,) or (n_samples, n_outputs); or labels,
        of shape (n_samples,).

        offset : what is added to the decision values, such as the log of the exposures,
            (n_samples,); None: 0 in all rows
        """
        return self._call_model("predict", X, offset)

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        title: str | None = None,
        time_limit: float | None = 2.0,
    ) -> str:
        """Write the model as one page for a browser: see `SparseModel.to_html`."""
        check_is_fitted(self)
        return self.model_.to_html(path, X, y, title=title, time_limit=time_limit)

    @property
    def n_iter_(self) -> int:
        """Number of iterations of the fit, `model_.info.n_iter`, at least 1."""
        check_is_fitted(self)
        return max(1, self.model_.info.n_iter)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self._may_miss
        tags.target_tags.multi_output = self._y_is_numeric
        return tags

    def _more_tags(self):
        """Return the same tags in the form of scikit-learn 1.5."""
        tags = {"X_types": ["2darray", "sparse", "categorical"], "allow_nan": self._may_miss}
        return tags | {"multioutput": self._y_is_numeric}


class Regressor(RegressorMixin, ModelEstimator):
    """An estimator of one or several real targets."""

    _y_is_numeric = True

    def score(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return R^2 of the predictions, with loss="cox" the concordance; offset : as in `predict`.
        Several quantiles have none."""
        check_is_fitted(self)
        if self.model_.link == HazardLink.name:
            times, f = read_times(y), np.asarray(self.predict(X, offset), np.float64)
            weight = check_sample_weight(sample_weight, len(f))
            later, smaller = pairs_of_rows(times.time, times.event, f, weight)
            return float(weight @ smaller / (weight @ later))
        if LINKS[self.model_.link].is_ascending:
            raise ValueError(
                "score needs one prediction of y, got a model of several quantiles: score a level, "
                "such as by sklearn.metrics.mean_pinball_loss"
            )
        return r2_score(y, self.predict(X, offset), sample_weight=sample_weight)


class Classifier(ClassifierMixin, ModelEstimator):
    """An estimator of labels."""

    _y_is_numeric = False

    def score(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Return the share of right labels; offset : as in `predict`."""
        return accuracy_score(as_labels(y), self.predict(X, offset), sample_weight=sample_weight)

    def decision_function(self, X: MatrixLike, offset: ArrayLike | None = None) -> np.ndarray:
        """Return the decision values.

        For two classes they have shape (n_samples,) and are positive where the second is predicted;
        for more classes they have shape (n_samples, n_classes), in order (n_samples,). offset : as
        in `predict`.
        """
        return self._call_model("decision_function", X, offset)

    @available_if(lambda self: self._loss in PROBABILISTIC)
    def predict_proba(self, X: MatrixLike, offset: ArrayLike | None = None) -> np.ndarray:
        """Return the probability of each of `classes_`, (n_samples, n_classes). Needs
        loss="logistic", "multinomial" or "ordinal".

        offset : as in `predict`
        """
        return self._call_model("predict_proba", X, offset)

    @available_if(lambda self: self._loss in PROBABILISTIC)
    def predict_log_proba(self, X: MatrixLike, offset: ArrayLike | None = None) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, offset))


def has_category_columns(model: Expansion) -> bool:
    """Return whether a model was fitted to columns of categories."""
    table = table_of(model.features)
    return table is not None and not table.is_numeric


class Fitted:
    """An estimator whose predictions are those of `model`. `fit` does nothing."""

    def __init__(self, model: Expansion, *, n_jobs: int | None = None):
        self.model, self.n_jobs = model, n_jobs

    def fit(
        self,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Return the estimator as it is: the model does not change, also where a search or a
        calibration fits its clones."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    model_ = property(lambda self: self.model)
    n_features_in_ = property(lambda self: self.model.n_features_in)
    _loss = property(lambda self: self.model.loss)

    @property
    def feature_names_in_(self) -> np.ndarray | None:
        """Names of the columns of the data frame that the model was fitted to.

        They may be set, as those of other estimators may: to None, so that nothing warns of arrays,
        which the model takes as they are.
        """
        if "_names" in vars(self):
            return self._names
        if self.model.feature_names_in_ is None:
            raise AttributeError("this model was fitted to an array, whose columns have no names")
        return np.array(self.model.feature_names_in_, object)

    @feature_names_in_.setter
    def feature_names_in_(self, names: np.ndarray | None) -> None:
        self._names = names

    @property
    def _may_miss(self):
        encoder = self.model.features.encoder
        return encoder is not None and encoder.may_miss

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
    >>> model = srf.mfga(X, X[:, 0] - X[:, 1], features=srf.Linear(), rng=0)
    >>> estimator = model.to_estimator()
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
    >>> (
    ...     estimator.classes_.tolist(),
    ...     estimator.predict_proba(X).shape,
    ...     estimator.score(X, labels) > 0.95,
    ... )
    (['no', 'yes'], (200, 2), True)
    """

    classes_ = property(lambda self: self.model.classes)


def to_estimator(model: Expansion) -> FittedRegressor | FittedClassifier:
    """Return a fitted estimator whose predictions are those of the model."""
    return (FittedRegressor if model.classes is None else FittedClassifier)(model)
