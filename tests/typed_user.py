"""Code as users write it, as type checkers see it: tests/project/test_types.py runs mypy --strict
over it.

A line that ignores an error must have one: otherwise mypy complains.
"""

from functools import partial
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import sparserf as srf
from sparserf.sklearn import MFGAClassifier, SparseRFRegressor

X = np.zeros((100, 3))
y = np.zeros(100)

model = srf.sparse_rf(
    X, y, features="gaussian", alpha=0.1, sample_weight=np.ones(100), rng=np.random.default_rng(0)
)
assert_type(model, srf.SparseModel)
assert_type(model.coef, NDArray[np.float64])
assert_type(model.intercept, float | NDArray[np.float64])
assert_type(model.support, NDArray[np.int64])
assert_type(model.info.objective, tuple[float, ...])
assert_type(model.info.validation_loss, float | None)
assert_type(model.features, srf.FeatureSet)
assert_type(model.link == "log", bool)
assert_type(model.predict(X).shape, tuple[Any, ...])
assert_type(model.predict([[1.0, 2.0, 3.0]]).ndim, int)
assert_type(model.to_json(), str)
assert_type(srf.load("model"), srf.SparseModel)

assert_type(
    srf.sparse_rf(X, y, validation=[(np.arange(50), np.arange(50, 100))], groups=["a", "b"] * 50),
    srf.SparseModel,
)
assert_type(srf.sparse_rf(X, y, validation=np.arange(100) > 80), srf.SparseModel)
assert_type(srf.sparse_rf(X, y, alpha=0.1, extrapolate="constant"), srf.SparseModel)
assert_type(srf.sparse_rf_path(X, y, alphas=[0.1, 0.01]), list[srf.SparseModel])
assert_type(srf.harfe(X, y, order=2, selection="positive", start="zero"), srf.SparseModel)
assert_type(srf.harfe_path(X, y, n_nonzero_coefs=np.arange(1, 3)), list[srf.SparseModel])
assert_type(srf.mfga(X, y, features=[srf.Taylor(2), srf.Linear()], gamma="knn"), srf.SparseModel)
assert_type(srf.mfga_path(X, y), list[srf.SparseModel])
assert_type(srf.drp(X, y, alpha=1.0, projection="srht", loss="smoothed_hinge"), srf.SparseModel)
assert_type(srf.drp_path(X, y, alphas=[1.0]), list[srf.SparseModel])
assert_type(srf.prune(model, X, max_terms=3), srf.SparseModel)
assert_type(srf.refit(model, X, y, drop=["a", 3], flatten={0: (None, 1.0)}), srf.SparseModel)
assert_type(srf.refit(model, X, y, freeze="a", sign={1: -1}), srf.SparseModel)
assert_type(model.info.edits, tuple[str, ...])
assert_type(srf.points(model, X, max_points=3), srf.Points)
assert_type(srf.distill(lambda rows: rows.sum(axis=1), X, max_terms=3), srf.SparseModel)
assert_type(srf.calibrated(partial(srf.sparse_rf, loss="squared_hinge"), X, y), srf.SparseModel)
lower, upper = srf.intervals(srf.sparse_rf, X, y, method="cv+").predict(X)
assert_type(bool((lower < upper).all()), bool)
sets = srf.intervals(partial(srf.sparse_rf, loss="logistic"), X, y > 0, within=0)
assert_type(bool(sets.predict_set(X).any()), bool)
assert_type(sets.guarantees, dict[Any, float])
assert_type(
    srf.cross_validate(srf.harfe, X, y, {"order": [1, 2]}, rule="1se").model, srf.SparseModel
)
assert_type(
    srf.cross_validate(srf.sparse_rf, X, y, {"alpha": np.logspace(-3, 0, 5)}).table,
    dict[str, list[Any]],
)

sums = srf.Sums.of(X, y, srf.Fourier(kernel="matern32").draw(10, 3))
assert_type(sums + sums, srf.Sums)
assert_type(sums.fit(srf.mfga, n_nonzero_coefs=3, alpha=1e-3), srf.SparseModel)
assert_type(sums.fit(srf.mfga_path), list[srf.SparseModel])
assert_type(srf.Chunks(X, block_rows=10).shape, tuple[int, ...])
srf.sparse_rf(srf.Chunks(X), y)


class LogCosh(srf.losses.Loss):
    smoothness = 1.0

    def value(self, z: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.logaddexp(z - y, y - z)

    def derivative(self, z: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.tanh(z - y)

    def curvature(self, z: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        return 1 - np.tanh(z - y) ** 2


def stop(info: srf.FitInfo) -> bool:
    return info.dual_gap is not None and info.dual_gap < 1e-3


srf.sparse_rf(X, y, loss=LogCosh(), callback=stop)
srf.sparse_rf(X, y, loss=srf.losses.Quantile(level=0.9), verbose=True)
assert_type(srf.harfe(X, y, loss="multinomial"), srf.SparseModel)
times = np.column_stack([y, y > 0])
hazards = srf.sparse_rf(X, times, loss=srf.losses.Cox())
assert_type(hazards.survival(X, [1.0, 2.0], stratum="a"), np.ndarray)
assert_type(srf.concordance(times, hazards.predict(X)), float)
assert_type(srf.integrated_brier_score(times, X, [1.0], y_train=times), float)
assert_type(srf.drp(X, y, alpha=1.0, loss=srf.losses.Multinomial()), srf.SparseModel)
assert_type(srf.mfga(X, y, loss=srf.losses.Ordinal([-1.0, 1.0])), srf.SparseModel)

estimator = SparseRFRegressor(alpha=0.1, features="gaussian", random_state=0, n_jobs=-1)
assert_type(estimator.fit(X, y).model_, srf.SparseModel)
assert_type(estimator.score(X, y), float)
assert_type(estimator.feature_importances_, np.ndarray)
assert_type(MFGAClassifier(loss="squared_hinge").fit(X, y).classes_.shape, tuple[Any, ...])
assert_type(model.to_estimator().n_iter_, int)

srf.sparse_rf(X, y, loss="sqared")  # type: ignore[arg-type]
srf.sparse_rf(X, y, features="gausian")  # type: ignore[arg-type]
srf.sparse_rf(X, y, alhpa=0.1)  # type: ignore[call-arg]
srf.harfe(X, y, activation="sine")  # type: ignore[arg-type]
srf.drp(X, y, alpha=0.1, projection="hadamard")  # type: ignore[arg-type]
srf.Fourier(kernel="perceptron")  # type: ignore[arg-type]
srf.sparse_rff(X, y)  # type: ignore[attr-defined]
SparseRFRegressor(loss="sqared")  # type: ignore[arg-type]
model.coef = y  # type: ignore[misc]
