"""Written by tests/write_stubs.py."""

from os import PathLike
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from .._base.splits import (
    Splits,
)
from .._base.types import (
    MatrixLike,
)
from ..columns.constraints import (
    Interactions,
    Signs,
)
from ..columns.encoder import (
    Extrapolate,
    Missing,
    Units,
)
from ..columns.table import (
    Categorical,
)
from ..columns.targets import (
    ClassWeight,
)
from ..expansion.fit_info import (
    Callback,
)
from ..features.activations import (
    Activation,
)
from ..features.bandwidth import (
    Gamma,
)
from ..features.dictionary import (
    Features,
)
from ..features.projections import (
    ProjectionName,
)
from ..losses import (
    LinearLossLike,
    LossLike,
)
from ..model import SparseModel

class _Estimator(BaseEstimator):
    model_: SparseModel
    n_features_in_: int
    feature_names_in_: np.ndarray
    @property
    def n_iter_(self) -> int: ...
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self: ...
    def predict(self, X: MatrixLike, offset: ArrayLike | None = None) -> np.ndarray: ...
    def score(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float: ...
    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        title: str | None = None,
        time_limit: float | None = 2.0,
    ) -> str: ...

class _Regressor(RegressorMixin, _Estimator): ...

class _Classifier(ClassifierMixin, _Estimator):
    classes_: np.ndarray
    def decision_function(self, X: MatrixLike, offset: ArrayLike | None = None) -> np.ndarray: ...
    def predict_proba(self, X: MatrixLike, offset: ArrayLike | None = None) -> np.ndarray: ...
    def predict_log_proba(self, X: MatrixLike, offset: ArrayLike | None = None) -> np.ndarray: ...

class _FitMixin:
    @property
    def feature_importances_(self) -> np.ndarray: ...

class FittedRegressor(_Regressor):
    model: SparseModel
    n_jobs: int | None
    def __init__(self, model: SparseModel, *, n_jobs: int | None = None) -> None: ...

class FittedClassifier(_Classifier):
    model: SparseModel
    n_jobs: int | None
    def __init__(self, model: SparseModel, *, n_jobs: int | None = None) -> None: ...

def to_estimator(model: SparseModel) -> FittedRegressor | FittedClassifier: ...

class DRPClassifier(_FitMixin, _Classifier):
    alpha: float | None
    n_projections: int | None
    n_iter: int | None
    accelerate: bool
    projection: Literal["auto"] | ProjectionName
    scale: Units
    missing: Missing
    categorical: Categorical
    loss: LinearLossLike
    fit_intercept: bool
    class_weight: ClassWeight
    validation: float | Splits | None
    tol: float
    random_state: int | np.random.RandomState | np.random.Generator | None
    n_jobs: int | None
    callback: Callback
    verbose: bool | None
    def __init__(
        self,
        *,
        alpha: float | None = None,
        n_projections: int | None = None,
        n_iter: int | None = None,
        accelerate: bool = True,
        projection: Literal["auto"] | ProjectionName = "auto",
        scale: Units = "robust",
        missing: Missing = "learn",
        categorical: Categorical = None,
        loss: LinearLossLike = "logistic",
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        validation: float | Splits | None = None,
        tol: float = 0.0001,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        callback: Callback = None,
        verbose: bool | None = None,
    ) -> None: ...

class DRPRegressor(_FitMixin, _Regressor):
    alpha: float | None
    n_projections: int | None
    n_iter: int | None
    accelerate: bool
    projection: Literal["auto"] | ProjectionName
    scale: Units
    missing: Missing
    categorical: Categorical
    loss: LinearLossLike
    fit_intercept: bool
    validation: float | Splits | None
    tol: float
    random_state: int | np.random.RandomState | np.random.Generator | None
    n_jobs: int | None
    callback: Callback
    verbose: bool | None
    def __init__(
        self,
        *,
        alpha: float | None = None,
        n_projections: int | None = None,
        n_iter: int | None = None,
        accelerate: bool = True,
        projection: Literal["auto"] | ProjectionName = "auto",
        scale: Units = "robust",
        missing: Missing = "learn",
        categorical: Categorical = None,
        loss: LinearLossLike = "squared",
        fit_intercept: bool = True,
        validation: float | Splits | None = None,
        tol: float = 0.0001,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        callback: Callback = None,
        verbose: bool | None = None,
    ) -> None: ...

class HARFEClassifier(_FitMixin, _Classifier):
    n_components: int | None
    n_nonzero_coefs: int | None
    order: int | None
    alpha: float | None
    activation: Activation | None
    features: Features | None
    gamma: Gamma
    scale: Units
    missing: Missing
    categorical: Categorical
    monotone: Signs
    convex: Signs
    interactions: Interactions
    loss: LossLike
    selection: Literal["magnitude", "positive"]
    normalize: bool
    step_size: float
    backtracking: bool
    start: Literal["greedy", "zero"]
    max_iter: int
    tol: float
    time_limit: float | None
    fit_intercept: bool
    class_weight: ClassWeight
    validation: float | Splits | None
    random_state: int | np.random.RandomState | np.random.Generator | None
    n_jobs: int | None
    callback: Callback
    verbose: bool | None
    def __init__(
        self,
        *,
        n_components: int | None = None,
        n_nonzero_coefs: int | None = None,
        order: int | None = None,
        alpha: float | None = None,
        activation: Activation | None = None,
        features: Features | None = None,
        gamma: Gamma = None,
        scale: Units = "robust",
        missing: Missing = "learn",
        categorical: Categorical = None,
        monotone: Signs = None,
        convex: Signs = None,
        interactions: Interactions = None,
        loss: LossLike = "logistic",
        selection: Literal["magnitude", "positive"] = "magnitude",
        normalize: bool = True,
        step_size: float = 0.1,
        backtracking: bool = True,
        start: Literal["greedy", "zero"] = "greedy",
        max_iter: int = 50,
        tol: float = 0.005,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        validation: float | Splits | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        callback: Callback = None,
        verbose: bool | None = None,
    ) -> None: ...

class HARFERegressor(_FitMixin, _Regressor):
    n_components: int | None
    n_nonzero_coefs: int | None
    order: int | None
    alpha: float | None
    activation: Activation | None
    features: Features | None
    gamma: Gamma
    scale: Units
    missing: Missing
    categorical: Categorical
    monotone: Signs
    convex: Signs
    interactions: Interactions
    loss: LossLike
    selection: Literal["magnitude", "positive"]
    normalize: bool
    step_size: float
    backtracking: bool
    start: Literal["greedy", "zero"]
    max_iter: int
    tol: float
    time_limit: float | None
    fit_intercept: bool
    validation: float | Splits | None
    lower: float | None
    upper: float | None
    random_state: int | np.random.RandomState | np.random.Generator | None
    n_jobs: int | None
    callback: Callback
    verbose: bool | None
    def __init__(
        self,
        *,
        n_components: int | None = None,
        n_nonzero_coefs: int | None = None,
        order: int | None = None,
        alpha: float | None = None,
        activation: Activation | None = None,
        features: Features | None = None,
        gamma: Gamma = None,
        scale: Units = "robust",
        missing: Missing = "learn",
        categorical: Categorical = None,
        monotone: Signs = None,
        convex: Signs = None,
        interactions: Interactions = None,
        loss: LossLike = "squared",
        selection: Literal["magnitude", "positive"] = "magnitude",
        normalize: bool = True,
        step_size: float = 0.1,
        backtracking: bool = True,
        start: Literal["greedy", "zero"] = "greedy",
        max_iter: int = 50,
        tol: float = 0.005,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        validation: float | Splits | None = None,
        lower: float | None = None,
        upper: float | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        callback: Callback = None,
        verbose: bool | None = None,
    ) -> None: ...

class MFGAClassifier(_FitMixin, _Classifier):
    n_nonzero_coefs: int | None
    features: Features | None
    nu: ArrayLike | None
    gamma: Gamma
    scale: Units
    missing: Missing
    categorical: Categorical
    n_components: int | None
    loss: LossLike
    alpha: float | None
    n_select: int
    normalize: bool
    best_phase: bool
    fit_intercept: bool
    class_weight: ClassWeight
    validation: float | Splits | None
    tol: float | None
    time_limit: float | None
    random_state: int | np.random.RandomState | np.random.Generator | None
    n_jobs: int | None
    callback: Callback
    verbose: bool | None
    def __init__(
        self,
        *,
        n_nonzero_coefs: int | None = None,
        features: Features | None = None,
        nu: ArrayLike | None = None,
        gamma: Gamma = None,
        scale: Units = "robust",
        missing: Missing = "learn",
        categorical: Categorical = None,
        n_components: int | None = None,
        loss: LossLike = "logistic",
        alpha: float | None = None,
        n_select: int = 1,
        normalize: bool = False,
        best_phase: bool = False,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        validation: float | Splits | None = None,
        tol: float | None = None,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        callback: Callback = None,
        verbose: bool | None = None,
    ) -> None: ...

class MFGARegressor(_FitMixin, _Regressor):
    n_nonzero_coefs: int | None
    features: Features | None
    nu: ArrayLike | None
    gamma: Gamma
    scale: Units
    missing: Missing
    categorical: Categorical
    n_components: int | None
    loss: LossLike
    alpha: float | None
    n_select: int
    normalize: bool
    best_phase: bool
    fit_intercept: bool
    validation: float | Splits | None
    tol: float | None
    time_limit: float | None
    random_state: int | np.random.RandomState | np.random.Generator | None
    n_jobs: int | None
    callback: Callback
    verbose: bool | None
    def __init__(
        self,
        *,
        n_nonzero_coefs: int | None = None,
        features: Features | None = None,
        nu: ArrayLike | None = None,
        gamma: Gamma = None,
        scale: Units = "robust",
        missing: Missing = "learn",
        categorical: Categorical = None,
        n_components: int | None = None,
        loss: LossLike = "squared",
        alpha: float | None = None,
        n_select: int = 1,
        normalize: bool = False,
        best_phase: bool = False,
        fit_intercept: bool = True,
        validation: float | Splits | None = None,
        tol: float | None = None,
        time_limit: float | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        callback: Callback = None,
        verbose: bool | None = None,
    ) -> None: ...

class SparseRFClassifier(_FitMixin, _Classifier):
    alpha: float | None
    features: Features
    gamma: Gamma
    scale: Units
    missing: Missing
    extrapolate: Extrapolate | None
    categorical: Categorical
    monotone: Signs
    convex: Signs
    interactions: Interactions
    loss: LossLike
    n_components: int | None
    batch_size: int | None
    max_order: int | None
    exact: bool
    validation: float | Splits | None
    max_terms: int | None
    effort: float
    time_limit: float | None
    fit_intercept: bool
    class_weight: ClassWeight
    tol: float
    max_iter: int | None
    start: SparseModel | None
    random_state: int | np.random.RandomState | np.random.Generator | None
    n_jobs: int | None
    callback: Callback
    verbose: bool | None
    def __init__(
        self,
        *,
        alpha: float | None = None,
        features: Features = "auto",
        gamma: Gamma = None,
        scale: Units = "robust",
        missing: Missing = "learn",
        extrapolate: Extrapolate | None = None,
        categorical: Categorical = None,
        monotone: Signs = None,
        convex: Signs = None,
        interactions: Interactions = None,
        loss: LossLike = "logistic",
        n_components: int | None = None,
        batch_size: int | None = None,
        max_order: int | None = None,
        exact: bool = False,
        validation: float | Splits | None = None,
        max_terms: int | None = None,
        effort: float = 1.0,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 0.0001,
        max_iter: int | None = None,
        start: SparseModel | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        callback: Callback = None,
        verbose: bool | None = None,
    ) -> None: ...

class SparseRFRegressor(_FitMixin, _Regressor):
    alpha: float | None
    features: Features
    gamma: Gamma
    scale: Units
    missing: Missing
    extrapolate: Extrapolate | None
    categorical: Categorical
    monotone: Signs
    convex: Signs
    interactions: Interactions
    loss: LossLike
    n_components: int | None
    batch_size: int | None
    max_order: int | None
    exact: bool
    validation: float | Splits | None
    max_terms: int | None
    effort: float
    time_limit: float | None
    fit_intercept: bool
    lower: float | None
    upper: float | None
    tol: float
    max_iter: int | None
    start: SparseModel | None
    random_state: int | np.random.RandomState | np.random.Generator | None
    n_jobs: int | None
    callback: Callback
    verbose: bool | None
    def __init__(
        self,
        *,
        alpha: float | None = None,
        features: Features = "auto",
        gamma: Gamma = None,
        scale: Units = "robust",
        missing: Missing = "learn",
        extrapolate: Extrapolate | None = None,
        categorical: Categorical = None,
        monotone: Signs = None,
        convex: Signs = None,
        interactions: Interactions = None,
        loss: LossLike = "squared",
        n_components: int | None = None,
        batch_size: int | None = None,
        max_order: int | None = None,
        exact: bool = False,
        validation: float | Splits | None = None,
        max_terms: int | None = None,
        effort: float = 1.0,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        lower: float | None = None,
        upper: float | None = None,
        tol: float = 0.0001,
        max_iter: int | None = None,
        start: SparseModel | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
        callback: Callback = None,
        verbose: bool | None = None,
    ) -> None: ...
