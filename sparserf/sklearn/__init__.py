"""scikit-learn estimators of the functions of sparserf, for pipelines, parameter searches and
cross-validation."""

from ..export.estimators import Classifier, FittedClassifier, FittedRegressor, Regressor
from ..export.estimators import to_estimator as to_estimator
from ._fit import FitMixin

__all__ = [
    "DRPClassifier",
    "DRPRegressor",
    "FittedClassifier",
    "FittedRegressor",
    "HARFEClassifier",
    "HARFERegressor",
    "MFGAClassifier",
    "MFGARegressor",
    "SparseRFClassifier",
    "SparseRFRegressor",
]


class SparseRFRegressor(FitMixin, Regressor, algorithm="sparse_rf"):
    """Regression in few terms by sparse random features, as `sparserf.sparse_rf`; by default all is
    chosen from the data.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from sparserf.sklearn import SparseRFRegressor
    >>> X = np.random.default_rng(0).uniform(-2, 2, (400, 2))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1]
    >>> model = SparseRFRegressor(
    ...     features="gaussian", gamma=1.0, alpha=1e-3, n_components=1000, random_state=0
    ... )
    >>> bool((cross_val_score(model, X, y) > 0.98).all())  # R^2
    True
    """


class SparseRFClassifier(FitMixin, Classifier, algorithm="sparse_rf"):
    """Classification in few terms by sparse random features, as `sparserf.sparse_rf`; by default
    all is chosen from the data.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import SparseRFClassifier
    >>> X = np.random.default_rng(0).uniform(-2, 2, (400, 2))
    >>> labels = np.where(X[:, 0] * X[:, 1] > 0, "same", "opposite")
    >>> model = SparseRFClassifier(
    ...     features="gaussian", gamma=1.0, alpha=1e-3, n_components=1000, random_state=0
    ... )
    >>> model.fit(X[:300], labels[:300]).score(X[300:], labels[300:]) > 0.95
    True
    """


class HARFERegressor(FitMixin, Regressor, algorithm="harfe"):
    """Regression on the best s of many random features, as `sparserf.harfe` (hard-ridge random
    feature expansion).

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import HARFERegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 6))
    >>> y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    >>> model = HARFERegressor(n_components=2000, n_nonzero_coefs=60, order=2, random_state=0).fit(
    ...     X, y
    ... )
    >>> len(model.model_.features), model.score(X, y) > 0.99
    (60, True)
    """


class HARFEClassifier(FitMixin, Classifier, algorithm="harfe"):
    """Classification on the best s of many random features, as `sparserf.harfe` (hard-ridge random
    feature expansion).

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import HARFEClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 6))
    >>> model = HARFEClassifier(n_components=2000, n_nonzero_coefs=30, order=2, random_state=0).fit(
    ...     X, X[:, 1] > X[:, 2] ** 2
    ... )
    >>> model.classes_, model.predict_proba(X).shape, model.score(X, X[:, 1] > X[:, 2] ** 2) > 0.95
    (array([False,  True]), (500, 2), True)
    """


class MFGARegressor(FitMixin, Regressor, algorithm="mfga"):
    """Regression on a few features, chosen one after the other, as `sparserf.mfga` (multi feature
    greedy approximation).

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import MFGARegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 10))
    >>> y = X[:, 0] * X[:, 1] + X[:, 2]
    >>> MFGARegressor(n_nonzero_coefs=20, random_state=0).fit(X, y).score(X, y) > 0.8
    True
    """


class MFGAClassifier(FitMixin, Classifier, algorithm="mfga"):
    """Classification on a few features, chosen one after the other, as `sparserf.mfga` (multi
    feature greedy approximation).

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import MFGAClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 10))
    >>> labels = X[:, 0] + X[:, 1] > 0
    >>> MFGAClassifier(n_nonzero_coefs=10, random_state=0).fit(X, labels).score(X, labels) > 0.95
    True
    """


class DRPRegressor(FitMixin, Regressor, algorithm="drp"):
    """Ridge regression on many inputs, with a certified error bound, as `sparserf.drp` (dual random
    projection).

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import DRPRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 500))
    >>> model = DRPRegressor(alpha=0.1, random_state=0).fit(X, X[:, 0])
    >>> model.model_.coef.shape, model.model_.info.error_bound < 1e-6
    ((500,), True)
    """


class DRPClassifier(FitMixin, Classifier, algorithm="drp"):
    """Logistic regression, or a linear SVM, with a certified error bound, as `sparserf.drp` (dual
    random projection).

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.sklearn import DRPClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 20))
    >>> DRPClassifier(alpha=0.01, random_state=0).fit(X, X[:, 0] > 0).predict_proba(X).shape
    (300, 2)
    """
