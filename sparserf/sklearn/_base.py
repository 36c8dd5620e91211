"""What the estimators share: a constructor with the parameters of a function, fit, which calls it, and predictions."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import is_dataclass, replace
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._base.arrays import is_foreign
from .._base.checks import is_sparse
from .._base.door import unexpected
from ..columns.cells import names_of_frame
from ..columns.table import is_frame
from ..explain.importances import ImportanceSample
from ..losses import LOSSES, PROBABILISTIC, Loss
from ..rows import Chunks
from ..rows.cluster import is_dask
from ._compat import validate_data
from ._docs import documented

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..model import SparseModel

# Arguments of the functions that scikit-learn has other names and defaults for, or that are given to fit.
RENAMED = {"rng": "random_state", "workers": "n_jobs"}
OF_FIT = "X", "y", "sample_weight"


class Predicting(BaseEstimator):
    """Predictions of `model_`, a SparseModel, as scikit-learn's users expect them."""

    def _seen(self, X, y="no_validation", reset=False):
        """X, or X and y, whose columns are noted, or compared with those of the fit; what is no plain array is checked by the
        functions alone, which know its categories."""
        has_categories = isinstance(X, np.ndarray) and (self._has_categories or (not reset and knows_categories(self.model_)))
        if is_frame(X) or isinstance(X, Chunks) or is_dask(X) or is_foreign(X) or has_categories:
            if is_frame(X):
                names_of_frame(X)  # scikit-learn's error of names that repeat is another library's
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X if isinstance(y, str) else (X, y)
        how = {} if isinstance(y, str) else {"multi_output": True, "y_numeric": self._y_is_numeric, "ensure_min_samples": 2}
        finite = "allow-nan" if self._may_miss and not is_sparse(X) else True
        return validate_data(
            self, X, y, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=finite, **how
        )

    def _asked(self, what, X):
        check_is_fitted(self)
        return getattr(self.model_, what)(self._seen(X), workers=effective_n_jobs(self.n_jobs))

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Values of the target, (n_samples,) or (n_samples, n_outputs); or labels, (n_samples,)."""
        return self._asked("predict", X)

    @property
    def n_iter_(self) -> int:
        """Iterations of the fit, `model_.info.n_iter`, at least 1."""
        check_is_fitted(self)
        return max(1, self.model_.info.n_iter)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self._may_miss
        tags.target_tags.multi_output = self._y_is_numeric
        return tags

    def _more_tags(self):  # of scikit-learn 1.5
        tags = {"X_types": ["2darray", "sparse", "categorical"], "allow_nan": self._may_miss}
        return tags | {"multioutput": self._y_is_numeric}


class Regressor(RegressorMixin, Predicting):
    """Of real targets, one or several."""

    _y_is_numeric = True


class Classifier(ClassifierMixin, Predicting):
    """Of labels, with the losses of classifiers."""

    _y_is_numeric = False

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """f(x): (n_samples,) of two classes, positive where the second is predicted; (n_samples, n_classes) of more."""
        return self._asked("decision_function", X)

    @available_if(lambda self: self._loss in PROBABILISTIC)
    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Probability of each of `classes_`, (n_samples, n_classes); with loss="logistic" or "multinomial" alone."""
        return self._asked("predict_proba", X)

    @available_if(lambda self: self._loss in PROBABILISTIC)
    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class Fitting:
    """fit calls the function that a class is made with, `class Name(Fitting, ..., function=sparse_rf)`, with the parameters of
    the constructor, which are those of that function; defaults: of parameters for which it has another, or none."""

    def __init_subclass__(cls, function: Callable[..., SparseModel] | None = None, **defaults: Any) -> None:
        super().__init_subclass__()
        if function is not None:
            cls._function = staticmethod(function)
            cls.__init__ = constructor(function, cls, defaults)
            cls.__doc__ = documented(cls, function, RENAMED)

    _has_categories = property(lambda self: self.categorical is not None)
    _may_miss = property(lambda self: self.missing == "learn")
    _loss = property(lambda self: getattr(self.loss, "name", self.loss))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the constructor by name; deep: those of a loss that is an object too, such as `loss__level`."""
        loss = self.loss if deep and isinstance(self.loss, Loss) and is_dataclass(self.loss) else None
        return super().get_params(deep) | {f"loss__{name}": value for name, value in getattr(loss, "parameters", {}).items()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of a loss by a new one: losses do not change."""
        of_loss = {name: value for name, value in params.items() if name.startswith("loss__")}
        super().set_params(**{name: value for name, value in params.items() if name not in of_loss})
        unknown = of_loss.keys() - self.get_params()
        if unknown:
            raise ValueError(f"loss must have the parameter {min(unknown)!r}, got {self.loss!r}")
        if of_loss:
            self.loss = replace(self.loss, **{name.removeprefix("loss__"): value for name, value in of_loss.items()})
        return self

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and their targets.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,), or of a regressor (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,) or None, default None

        Returns
        -------
        self
        """
        check_loss(self)
        X, y = self._seen(X, as_target(y, self._y_is_numeric), reset=True)
        given = {RENAMED.get(name, name): name for name in signature(self._function).parameters}
        arguments = {given[name]: value for name, value in self.get_params(deep=False).items()}
        arguments |= {"rng": generator(self.random_state), "workers": effective_n_jobs(self.n_jobs)}
        self.model_ = self._function(X, y, sample_weight=sample_weight, **arguments)
        self._sample, self._importances = deepcopy(ImportanceSample.from_rows(self.model_, X)), None  # whoever changes X later
        if not self._y_is_numeric:
            self.classes_ = self.model_.classes
        return self

    @property
    def feature_importances_(self) -> np.ndarray:
        """The share of each input of the mean size of all Shapley values, (n_features_in_,), as `model_.summary` has them of
        the rows of the fit: none is negative, and they add up to 1, but of a model without terms.

        Computed when first asked for, in the time of `SparseModel.importances`. The up to 1,000 rows that it takes are kept,
        in pickles of the estimator too, until then; `model_` knows no rows.
        """
        check_is_fitted(self)
        if self._importances is None:
            self._importances = deepcopy(self._sample).importances(self.model_).share  # interrupted, the same again
            self._sample = None
        return self._importances.copy()


def constructor(function: Callable[..., SparseModel], cls: type, defaults: dict[str, Any]) -> Callable[..., None]:
    """An __init__ with the arguments of the function, by keyword alone."""
    defaults = {"n_jobs": None, **defaults} if cls._y_is_numeric else {"n_jobs": None, "loss": "logistic", **defaults}
    parameters = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    for name, parameter in signature(function).parameters.items():
        if name not in OF_FIT:
            name = RENAMED.get(name, name)
            parameters.append(parameter.replace(name=name, default=defaults.get(name, parameter.default)))
    own = signature(lambda: None).replace(parameters=parameters)

    def __init__(self, **given):
        for name in given:
            if name not in own.parameters:
                raise unexpected(type(self).__name__, name, own.parameters)
        given = own.bind(self, **given)
        given.apply_defaults()
        for name, value in given.arguments.items():
            if name != "self":
                setattr(self, name, value)

    __init__.__signature__, __init__.__qualname__ = own, f"{cls.__qualname__}.__init__"
    return __init__


def check_loss(estimator: Any) -> None:
    """Whether the loss is for what the estimator predicts."""
    loss = estimator.loss if isinstance(estimator.loss, Loss) else LOSSES.get(str(estimator.loss))
    if loss is not None and loss.is_classifier is estimator._y_is_numeric:
        name, wanted = type(estimator).__name__, "real targets" if estimator._y_is_numeric else "labels"
        other = {"Regressor": "Classifier", "Classifier": "Regressor"}
        hint = "".join(f": see {name.replace(one, kind)}" for one, kind in other.items() if name.endswith(one))
        raise ValueError(f"loss must be one for {wanted} in {name}, got {estimator.loss!r}{hint}")


def knows_categories(model: SparseModel) -> bool:
    """Whether it was fitted to columns of categories."""
    stage = model.features.stage
    return stage is not None and stage.table is not None and not stage.table.is_plain


def as_target(y: Any, is_numeric: bool) -> Any:
    """y, a column of it as a vector, with scikit-learn's warning; labels, checked to be some."""
    if y is None:
        raise ValueError("y must be given: this estimator requires y to be passed, but the target y is None")
    y = y if hasattr(y, "shape") else np.asarray(y)
    if len(y.shape) == 2 and y.shape[1] == 1:
        column = column_or_1d(y, warn=True)
        y = y.iloc[:, 0] if hasattr(y, "iloc") else column  # with its index
    if not is_numeric:
        check_classification_targets(y)
    return y


def generator(random_state: Any) -> Any:
    """What the functions take as rng: of a RandomState, a seed that it draws."""
    return int(random_state.randint(2**31)) if isinstance(random_state, np.random.RandomState) else random_state
