"""Limits of predictions, and the ranges of training columns that a model keeps."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf

from ..rows.homes import HOMES, OtherDevice, in_partitions
from .models import through_file

N, D = 300, 3
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, D))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * RNG.standard_normal(N)
FEW = {"n_components": 100, "rng": 0}
FITS = {
    "sparse_rf": lambda **how: srf.sparse_rf(X, Y, alpha=0.003, **FEW, **how),
    "sparse_rf of y alone": lambda **how: srf.sparse_rf(
        X[:120], Y[:120], effort=0.05, **FEW, **how
    ),
    "sparse_rf_path": lambda **how: srf.sparse_rf_path(
        X, Y, alphas=[0.1, 0.003], features="gaussian", **FEW, **how
    )[-1],
    "harfe": lambda **how: srf.harfe(
        X, Y, activation="sin", n_nonzero_coefs=20, alpha=1e-4, **FEW, **how
    ),
    "harfe_path": lambda **how: srf.harfe_path(X, Y, n_nonzero_coefs=[5, 20], **FEW, **how)[-1],
    "outputs": lambda **how: srf.sparse_rf(
        X, np.stack([Y, 2 - Y], axis=1), alpha=0.003, **FEW, **how
    ),
    "outputs of y alone": lambda **how: srf.sparse_rf(
        X[:120], np.stack([Y, 9 * Y], axis=1)[:120], effort=0.02, **FEW, **how
    ),
}
LOG_FITS = {
    loss: partial(
        srf.harfe, X, np.exp(Y), loss=loss, activation="sin", n_nonzero_coefs=20, alpha=1e-4, **FEW
    )
    for loss in ("poisson", "gamma", "tweedie")
}
pytestmark = pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")


def bits(model):
    return (
        model.coef.tobytes(),
        np.asarray(model.intercept).tobytes(),
        model.support.tobytes(),
        model.info.objective,
    )


@pytest.mark.parametrize("name", FITS)
def test_only_the_output_is_limited(name, tmp_path):
    free, model = FITS[name](), FITS[name](lower=-0.3, upper=0.4)
    assert bits(free) == bits(model) and (free.lower, free.upper) == (None, None)
    for rows in (X, 40 * X, X[:1]):
        expected = np.clip(free.predict(rows), -0.3, 0.4)
        for same in (
            model,
            through_file(model, tmp_path / "m"),
            srf.SparseModel.from_json(model.to_json()),
            pickle.loads(pickle.dumps(model)),
            model.to_estimator(),
        ):
            assert np.array_equal(same.predict(rows), expected)
        assert np.array_equal(model.decision_function(rows), expected)
    small = srf.prune(model, X, max_terms=3)
    assert (
        len(small.features) == 3
        and small.predict(X).min() >= -0.3
        and small.predict(X).max() <= 0.4
    )


@pytest.mark.filterwarnings("ignore:upper=0.1 excludes all values of y")
@pytest.mark.parametrize("name", LOG_FITS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_limits_of_a_log_link_are_in_units_of_predictions(name, dtype):
    for lower, upper in (
        (0.3, 1.7),
        (None, 0.1),
        (1e-3, 1e3),
        (0.0, 2.0),
        (1.1, 1.2),
        (1e-200, None),
    ):
        model = LOG_FITS[name](lower=lower, upper=upper)
        offset = RNG.normal(0, 20, N)
        for prediction in (
            model.predict(X.astype(dtype), offset=offset),
            model.predict(X.astype(dtype)),
        ):
            assert lower is None or prediction.astype(np.float64).min() >= lower
            assert upper is None or prediction.astype(np.float64).max() <= upper
    wide = model.predict(X, offset=offset)  # of the last, without upper
    assert wide.min() == pytest.approx(1e-200, rel=1e-12) or wide.min() > 1e-200


@pytest.mark.parametrize(
    "limits",
    [(-0.1, 0.1), (0.1, None), (None, 1 / 3), (1 / 3, 0.4), (-1e-40, 1e-40), (0.5, 0.5)],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_row_and_no_offset_is_beyond_them(limits, dtype, rng):
    lower, upper = limits
    model = replace(FITS["harfe"](), lower=lower, upper=upper)
    for scale in (1e-3, 1.0, 1e4):
        rows, offset = (
            (scale * rng.standard_normal((50, D))).astype(dtype),
            scale * rng.standard_normal(50),
        )
        for answer in (
            model.predict(rows, offset=offset),
            model.predict(rows),
            model.decision_function(rows, offset=offset),
        ):
            assert answer.dtype == dtype
            answer = answer.astype(np.float64)
            assert (lower is None or answer.min() >= lower) and (
                upper is None or answer.max() <= upper
            )


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("link", ["identity", "log"])
def test_the_limits_hold_in_every_home(home, link, monkeypatch):
    OtherDevice.patch(monkeypatch)
    model = (FITS["harfe"] if link == "identity" else LOG_FITS["poisson"])(lower=0.1, upper=0.7)
    rows = HOMES[home](X) if home != "dask" else in_partitions(np.tile(X, (4, 1)))
    answer = model.predict(rows)
    answer = np.asarray(answer.compute() if hasattr(answer, "compute") else np.from_dlpack(answer))
    np.testing.assert_allclose(answer[:N], model.predict(X), rtol=1e-12)
    assert (
        answer.min() >= 0.1
        and answer.max() <= 0.7
        and (answer == 0.7).any() == (link == "identity")
    )


@pytest.mark.slow
def test_estimators_and_what_is_made_of_models():
    from sklearn.base import clone

    from sparserf import sklearn as estimators

    how = {"alpha": 0.003, "n_components": 100, "random_state": 0}
    estimator = clone(estimators.SparseRFRegressor(lower=-0.2, upper=0.2, **how)).fit(X, Y)
    assert np.abs(estimator.predict(3 * X)).max() == 0.2
    assert not {"lower", "upper"} & set(estimators.SparseRFClassifier().get_params())
    fit = partial(
        srf.harfe, n_nonzero_coefs=10, alpha=1e-4, n_components=100, lower=-0.2, upper=0.2
    )
    inside = srf.intervals(fit, X, Y, rng=0)
    assert all(np.abs(expert.model.predict(X)).max() <= 0.2 for expert in inside.experts)
    low, high = inside.predict(X)
    assert (low <= high).all()
    again = srf.sparse_rf(X, Y, alpha=0.003, start=estimator.model_, rng=0, n_components=50)
    assert again.lower is None  # a start gives its terms alone


def test_explanations_are_of_f_before_its_limits():
    free, model = FITS["harfe"](), FITS["harfe"](lower=-0.2, upper=0.2)
    assert np.array_equal(free.shapley(X[:5], X), model.shapley(X[:5], X))
    assert np.array_equal(free.importances(X).share, model.importances(X).share)


def test_they_are_told():
    model = FITS["harfe"](lower=-0.2)
    assert " ".join(repr(model).split()).endswith("'squared', predictions of at least -0.2)")
    assert "\npredictions of at least -0.2\n" in str(model.summary())
    assert "predictions of at most 3" in str(FITS["harfe"](upper=3).summary())
    counts = LOG_FITS["poisson"](lower=1, upper=20)
    assert (
        repr(counts).endswith("predictions from 1 to 20)")
        and "predictions from 1 to 20" in counts.summary()._repr_html_()
    )
    assert "predictions" not in repr(FITS["harfe"]()) + str(FITS["harfe"]().summary())


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lower": 1, "upper": 0}, "lower must be below upper, got lower=1.0 and upper=0.0"),
        ({"lower": 1, "upper": 1}, "lower must be below upper"),
        ({"lower": np.nan}, "lower must be finite, got nan"),
        ({"lower": -1.0, "upper": np.inf}, "upper must be finite"),
        ({"lower": "a"}, "lower must be a real number"),
        ({"upper": True}, "upper must be a real number"),
        ({"lower": -1, "loss": "poisson"}, "lower must be finite and >= 0"),
        ({"upper": 0, "loss": "gamma"}, "upper must be finite and > 0"),
        ({"lower": 1, "upper": 1 + 2e-16, "loss": "gamma"}, "lower must be below upper"),
        ({"lower": 0, "loss": "logistic"}, "lower must be None for loss='logistic'"),
        ({"upper": 1.0, "loss": srf.losses.Logistic()}, "upper must be None"),
    ],
)
def test_bad_limits_are_named_before_any_work(wrong, message):
    for fit in (srf.sparse_rf, srf.sparse_rf_path, srf.harfe, srf.harfe_path):
        with pytest.raises((ValueError, TypeError), match=message):
            fit(None, None, **wrong)


# Ranges

ZEROS = np.where(RNG.random((N, D)) < 0.5, 0.0, np.abs(X) + 1)
ZEROS[:, 2] = 1 + np.abs(X[:, 2])  # no entry is absent
HOLES = np.where(RNG.random((N, D)) < 0.3, np.nan, X)


@pytest.mark.parametrize(
    ("y", "loss", "limits", "message"),
    [
        (
            np.arange(20.0),
            "squared",
            {"lower": 20},
            "lower=20 excludes all values of y, .* 0 to 19",
        ),
        (np.arange(20.0), "squared", {"upper": -0.5}, "upper=-0.5 excludes all values of y"),
        (np.arange(20.0), "squared", {"lower": -9, "upper": -1}, "upper=-1 excludes all"),
        (np.arange(20.0), "squared", {"lower": 19.5, "upper": 30}, "lower=19.5 excludes all"),
        (np.arange(20.0), "poisson", {"lower": 50}, "lower=50 excludes all values of y"),
        (np.c_[np.arange(20.0), np.arange(20.0) - 90], "squared", {"lower": 0}, "-90 to -71"),
        (np.arange(20.0), "squared", {"lower": 19, "upper": 30}, None),
        (np.arange(20.0), "squared", {"lower": -5, "upper": 0}, None),
        (np.arange(20.0), "poisson", {"lower": 1, "upper": 5}, None),
    ],
)
def test_limits_that_exclude_all_targets_cause_a_warning(y, loss, limits, message):
    def fit():
        X = np.arange(20.0)[:, None]
        return srf.sparse_rf(X, y, loss=loss, alpha=1.0, n_components=20, rng=0, **limits)

    if message is None:
        fit()
    else:
        with pytest.warns(UserWarning, match=message):
            fit()


def extremes(rows):
    return {j: (np.nanmin(rows[:, j]), np.nanmax(rows[:, j])) for j in range(rows.shape[1])}


ALL = {
    "sparse_rf": lambda X, y, **how: srf.sparse_rf(
        X, y, alpha=0.001, features="gaussian", **FEW, **how
    ),
    "sparse_rf of y alone": lambda X, y, **how: srf.sparse_rf(X, y, effort=0.1, **FEW, **how),
    "sparse_rf_path": lambda X, y, **how: srf.sparse_rf_path(
        X, y, alphas=[0.001], features="gaussian", **FEW, **how
    )[0],
    "harfe": lambda X, y, **how: srf.harfe(X, y, n_nonzero_coefs=20, alpha=1e-4, **FEW, **how),
    "mfga": lambda X, y, **how: srf.mfga(
        X, y, n_nonzero_coefs=9, alpha=1e-3, features="gaussian", **FEW, **how
    ),
    "drp": lambda X, y, **how: srf.drp(X, y, alpha=1e-3, rng=0, **how),
}


@pytest.mark.parametrize("name", ALL)
def test_ranges_of_training_rows(name):
    fit, weight = ALL[name], np.ones(N)
    # of the rows that hold the extremes
    weight[np.unique([X.argmin(axis=0), X.argmax(axis=0)])] = 0
    for rows, given, counted in (
        (X, X, X),
        (X, X, X[weight > 0]),
        (ZEROS, sp.csr_array(ZEROS), ZEROS),
        (X, X.astype(np.float32), X.astype(np.float32)),
        (HOLES, HOLES, HOLES),
    ):
        model = fit(
            given,
            rows[:, 0] if rows is not HOLES else X[:, 0],
            sample_weight=weight if len(counted) < N else None,
        )
        expected = extremes(counted.astype(np.float64))
        assert 0 in model.ranges and set(model.ranges) == set(
            np.flatnonzero(model.features.columns_seen).tolist()
        )
        assert model.ranges == {j: expected[j] for j in model.ranges}


@pytest.mark.parametrize("home", HOMES)
def test_ranges_are_the_same_in_every_home(home, monkeypatch):
    OtherDevice.patch(monkeypatch)
    rows = np.tile(X, (4, 1))
    rows[7] = 9.0
    there, y = HOMES[home](rows), np.tile(Y, 4)
    y = there[:, 0] if home in ("device", "array API") else y
    weight = np.ones(len(rows))
    weight[7] = 0.0
    for counted, given in ((extremes(rows), None), (extremes(np.delete(rows, 7, axis=0)), weight)):
        if given is not None and home in ("device", "array API"):
            given = HOMES[home](given)
        assert ALL["harfe"](there, y, sample_weight=given).ranges == counted
    if home in ("chunks", "dask"):
        sparse = sp.csr_array(
            np.where(np.tile(RNG.random((N, D)), (4, 1)) < 0.4, 0.0, np.abs(rows))
        )
        assert ALL["harfe"](HOMES[home](sparse), y).ranges == extremes(sparse.toarray())


def test_ranges_of_a_frame_are_those_of_its_numbers(tmp_path):
    frame = pd.DataFrame(
        {"a": X[:, 0], "city": np.where(X[:, 1] > 0, "Rom", "Oslo"), "b": HOLES[:, 1]}
    )
    model = srf.sparse_rf(frame, X[:, 0] + (X[:, 1] > 0) + X[:, 1], alpha=0.001, **FEW)
    assert model.ranges == {0: extremes(X)[0], 2: extremes(HOLES)[1]}
    assert through_file(model, tmp_path / "m").ranges == model.ranges


def test_ranges_of_columns_that_are_no_longer_seen_go():
    model = srf.drp(X, X[:, 0] + 1e-3 * X[:, 1], alpha=1e-6, rng=0)
    assert set(model.ranges) == {0, 1, 2}
    assert srf.prune(model, X, max_terms=1).ranges == {0: extremes(X)[0]}


def test_models_that_have_seen_no_rows_have_no_ranges():
    sums = srf.Sums.of(X, Y, srf.Fourier(gamma=0.3).draw(50, D, rng=0))
    model = sums.fit(srf.harfe, n_nonzero_coefs=9, alpha=1e-4, lower=-0.1, upper=0.1)
    assert model.ranges == {} and np.abs(model.predict(X)).max() == 0.1


@pytest.mark.slow
def test_distill_has_the_ranges_of_the_rows_it_fits():
    model = srf.distill(lambda rows: rows[:, 0], X, n_made=100, max_terms=10, effort=0.1, rng=0)
    low, high = model.ranges[0]
    assert {low, high} <= set(X[:, 0])


def test_ranges_are_a_mapping():
    wide = np.zeros((9, 6))
    wide[0, [1, 4]], wide[1, 4] = [1.0, 3.0], -2.0
    how = {"n_nonzero_coefs": 2, "features": srf.Linear()}
    ranges = srf.mfga(wide, wide[:, 1] + wide[:, 4], **how).ranges
    assert (
        ranges[4] == (-2.0, 3.0)
        and ranges == {1: (0.0, 1.0), 4: (-2.0, 3.0)}
        and repr(ranges) == repr(dict(ranges))
    )
    assert 2 not in ranges and 9 not in ranges and pickle.loads(pickle.dumps(ranges)) == ranges
