"""Estimators of scikit-learn: the functions of sparserf for pipelines, searches and cross-validation."""

try:
    import sklearn  # noqa: F401
except ImportError:
    raise ImportError("sparserf.sklearn needs scikit-learn: pip install sparserf[sklearn]") from None

from ..algorithms import REGISTRY
from ._base import Classifier, Fitting, Regressor
from ._fitted import FittedClassifier, FittedRegressor
from ._fitted import to_estimator as to_estimator

__all__ = [
    "DRPClassifier", "DRPRegressor", "FittedClassifier", "FittedRegressor", "HARFEClassifier", "HARFERegressor",
    "MFGAClassifier", "MFGARegressor", "SparseRFClassifier", "SparseRFRegressor",
]  # fmt: skip


class SparseRFRegressor(Fitting, Regressor, function=REGISTRY["sparse_rf"].fit):
    """Regression by Sparse Random Features, `sparserf.sparse_rf`: a kernel model in few terms, by default with all chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from sparserf.sklearn import SparseRFRegressor
    >>> X = np.random.default_rng(0).uniform(-2, 2, (400, 2))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1]
    >>> model = SparseRFRegressor(features="gaussian", gamma=1.0, alpha=1e-3, n_components=1000, random_state=0)
    >>> bool((cross_val_score(model, X, y) > 0.98).all())  # R^2
    True
    """


class SparseRFClassifier(Fitting, Classifier, function=REGISTRY["sparse_rf"].fit):
    """Classification by Sparse Random Features, `sparserf.sparse_rf`: a kernel model in few terms, by default with all chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import SparseRFClassifier
    >>> X = np.random.default_rng(0).uniform(-2, 2, (400, 2))
    >>> labels = np.where(X[:, 0] * X[:, 1] > 0, "same", "opposite")
    >>> model = SparseRFClassifier(features="gaussian", gamma=1.0, alpha=1e-3, n_components=1000, random_state=0)
    >>> model.fit(X[:300], labels[:300]).score(X[300:], labels[300:]) > 0.95
    True
    """


class HARFERegressor(Fitting, Regressor, function=REGISTRY["harfe"].fit):
    """Regression by Hard-Ridge Random Feature Expansion, `sparserf.harfe`: the best s of many random features.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import HARFERegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 6))
    >>> y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    >>> model = HARFERegressor(n_components=2000, n_nonzero_coefs=60, order=2, random_state=0).fit(X, y)
    >>> len(model.model_.features), model.score(X, y) > 0.99
    (60, True)
    """


class HARFEClassifier(Fitting, Classifier, function=REGISTRY["harfe"].fit):
    """Classification by Hard-Ridge Random Feature Expansion, `sparserf.harfe`: the best s of many random features.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import HARFEClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 6))
    >>> model = HARFEClassifier(n_components=2000, n_nonzero_coefs=30, order=2, random_state=0).fit(X, X[:, 1] > X[:, 2] ** 2)
    >>> model.classes_, model.predict_proba(X).shape, model.score(X, X[:, 1] > X[:, 2] ** 2) > 0.95
    (array([False,  True]), (500, 2), True)
    """


class MFGARegressor(Fitting, Regressor, function=REGISTRY["mfga"].fit):
    """Regression by Multi Feature Greedy Approximation, `sparserf.mfga`: the best few features, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import MFGARegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 10))
    >>> y = X[:, 0] * X[:, 1] + X[:, 2]
    >>> MFGARegressor(n_nonzero_coefs=20, random_state=0).fit(X, y).score(X, y) > 0.8
    True
    """


class MFGAClassifier(Fitting, Classifier, function=REGISTRY["mfga"].fit):
    """Classification by Multi Feature Greedy Approximation, `sparserf.mfga`: the best few features, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import MFGAClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 10))
    >>> labels = X[:, 0] + X[:, 1] > 0
    >>> MFGAClassifier(n_nonzero_coefs=10, random_state=0).fit(X, labels).score(X, labels) > 0.95
    True
    """


class DRPRegressor(Fitting, Regressor, function=REGISTRY["drp"].fit, alpha=1e-3):
    """Ridge regression of many inputs by Dual Random Projection, `sparserf.drp`, to a certified error.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import DRPRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 500))
    >>> model = DRPRegressor(alpha=0.1, random_state=0).fit(X, X[:, 0])
    >>> model.model_.coef.shape, model.model_.info.error_bound < 1e-6
    ((500,), True)
    """


class DRPClassifier(Fitting, Classifier, function=REGISTRY["drp"].fit, alpha=1e-3):
    """Logistic regression, or a linear support vector machine, by Dual Random Projection, `sparserf.drp`, to a certified error.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import DRPClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 20))
    >>> DRPClassifier(alpha=0.01, random_state=0).fit(X, X[:, 0] > 0).predict_proba(X).shape
    (300, 2)
    """
