"""The units in which features see columns: robust, whatever the features are, unless scale=None;
CSR rows, and features that are already drawn, are as they are."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf import sklearn as estimators

N, D = 100, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) * [1, 3, 0.2] + [0, 5, 0]
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=N)
FEW = {"n_components": 60, "rng": 0}
FIT = {
    "sparse_rf": partial(srf.sparse_rf, alpha=0.02, **FEW),
    "sparse_rf, chosen": partial(srf.sparse_rf, effort=0.02, **FEW),
    "sparse_rf_path": partial(srf.sparse_rf_path, n_alphas=2, **FEW),
    "harfe": partial(srf.harfe, n_nonzero_coefs=3, alpha=1e-3, **FEW),
    "harfe, chosen": partial(srf.harfe, **FEW),
    "harfe_path": partial(srf.harfe_path, n_nonzero_coefs=[2, 3], **FEW),
    "mfga": partial(srf.mfga, n_nonzero_coefs=3, alpha=1e-3, **FEW),
    "mfga, chosen": partial(srf.mfga, **FEW),
    "mfga_path": partial(srf.mfga_path, n_nonzero_coefs=3, **FEW),
}
FEATURES = {
    "default": {},
    "name": {"features": "gaussian"},
    "name and gamma": {"features": "laplacian", "gamma": 0.3},
    "fourier": {"features": srf.Fourier(gamma=0.3)},
    "neurons": {"features": srf.RandomNeurons("tanh", order=2)},
    "perceptron": {"features": srf.Perceptron()},
    "taylor": {"features": srf.Taylor(2, gamma=0.1)},
    "bumps": {"features": srf.Bumps(20)},
    "linear": {"features": srf.Linear()},
    "maps": {"features": [srf.Linear(), srf.Fourier(gamma=0.3), srf.RandomNeurons("sin", order=1)]},
}
WIDE = X * [2.0**20, 1, 1]
each_fit = pytest.mark.parametrize("name", FIT)
each_features = pytest.mark.parametrize("kind", FEATURES)
pytestmark = pytest.mark.filterwarnings(
    "ignore::sparserf.ConvergenceWarning", "ignore::sparserf.TimeLimitWarning"
)


def fit(name, X=X, y=Y, **options):
    """Return the model of a function, or the last model of its path."""
    models = FIT[name](X, y, **options)
    return models[-1] if isinstance(models, list) else models


def bits(model, X):
    """Return the bits of the coefficients and of the predictions of a model."""
    return model.support.tobytes(), model.coef.tobytes(), model.predict(X).tobytes()


def is_raw(model):
    """Return whether the features of a model see the columns as they are."""
    encoder = model.features.encoder
    return encoder is None or encoder.is_raw


def told_of_units(name, X, y=Y, **options):
    """Return the messages of a fit about units."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(name, X, y, **options)
    return [str(each.message) for each in caught if "very different spread" in str(each.message)]


@each_fit
@each_features
def test_the_unit_of_a_column_changes_no_bit(name, kind):
    """In robust units, where the unit is a power of two; with scale=None it changes the model."""
    options = FEATURES[kind]
    model = fit(name, **options)
    assert len(model.support) > 0
    assert bits(fit(name, WIDE, **options), WIDE) == bits(model, X)
    raw = fit(name, scale=None, **options)
    assert bits(raw, X) != bits(model, X)


@pytest.mark.parametrize("scale", ["robust", None])
@each_fit
def test_a_name_with_gamma_is_its_map(name, scale):
    """Widths are in the units of the columns as seen, by either way of saying them."""
    by_name = fit(name, features="gaussian", gamma=0.3, scale=scale)
    by_map = fit(name, features=srf.Fourier(gamma=0.3), scale=scale)
    assert len(by_name.support) > 0 and bits(by_name, X) == bits(by_map, X)


@each_fit
def test_robust_units_are_the_default(name):
    options = {"features": srf.Fourier(gamma=0.3)}
    model = fit(name, **options)
    assert bits(model, X) == bits(fit(name, scale="robust", **options), X)
    assert not is_raw(model) and is_raw(fit(name, scale=None, **options))


@each_fit
def test_widths_are_those_of_columns_scaled_by_hand(name):
    """A map sees (x - center) / unit: columns that are so scaled by hand give the same model."""
    options = {"features": srf.Fourier(gamma=0.3)}
    encoder = fit(name, **options).features.encoder
    by_hand = (X - encoder.center) / encoder.unit
    model = fit(name, by_hand, scale=None, **options)
    np.testing.assert_allclose(model.predict(by_hand), fit(name, **options).predict(X), atol=1e-3)


@pytest.mark.parametrize("kind", ["name and gamma", "fourier", "linear", "taylor"])
@each_fit
def test_csr_is_as_it_is(name, kind):
    rows = sp.csr_array(np.where(np.abs(X) > 0.4, X, 0.0))
    model = fit(name, rows, **FEATURES[kind])
    assert bits(model, rows) == bits(fit(name, rows, scale=None, **FEATURES[kind]), rows)
    assert is_raw(model)


@each_fit
def test_features_that_are_drawn_are_as_they_are(name):
    drawn = srf.Fourier(gamma=0.3).draw(60, D, rng=0).concat(srf.Linear().draw(None, D))
    model = fit(name, features=drawn)
    assert bits(model, X) == bits(fit(name, features=drawn, scale=None), X)
    assert is_raw(model)


@pytest.mark.parametrize("kind", ["default", "name", "fourier", "maps"])
@each_fit
def test_columns_of_very_different_spread_are_told_of_once(name, kind):
    """Where features see them as they are, with their numbers or names."""
    wide = X * [1, 1e6, 1]
    (message,) = told_of_units(name, wide, scale=None, **FEATURES[kind])
    assert "column 1" in message and "column 2" in message
    frame = pd.DataFrame(wide, columns=["a", "much", "little"])
    (message,) = told_of_units(name, frame, scale=None, **FEATURES[kind])
    assert "column 'much'" in message and "column 'little'" in message


@each_fit
def test_nothing_is_told_where_units_do_not_matter(name):
    wide, drawn = X * [1, 1e4, 1], srf.Fourier(gamma=0.3).draw(60, D, rng=0)
    fourier = {"features": srf.Fourier(gamma=0.3)}
    assert told_of_units(name, wide, **fourier) == []
    assert told_of_units(name, sp.csr_array(wide), scale=None, **fourier) == []
    assert told_of_units(name, wide, scale=None, features=drawn) == []
    assert told_of_units(name, wide, scale=None, features=srf.Linear()) == []
    assert told_of_units(name, X * [1, 20, 1], scale=None, **fourier) == []  # 300 times
    constant = np.column_stack([X[:, :2], np.full(N, 1e9)])
    assert told_of_units(name, constant, scale=None, **fourier) == []


def test_rules_and_categories_have_no_units():
    frame = pd.DataFrame(X * [1, 1e4, 1], columns=list("abc"))
    for features in (srf.Rules(), [srf.Linear()]):
        assert told_of_units("sparse_rf", frame, scale=None, features=features) == []
    codes = np.column_stack([X[:, :2], RNG.integers(0, 3, N) * 1e6])
    fourier = {"features": srf.Fourier(gamma=0.3), "scale": None}
    assert told_of_units("sparse_rf", codes, categorical=[2], **fourier) == []
    assert len(told_of_units("sparse_rf", codes, **fourier)) == 1


@each_fit
def test_scale_is_robust_or_none(name):
    for wrong in ("auto", "standard", "", True, 1.0):
        with pytest.raises(ValueError, match=r"^scale must be 'robust'.*, got "):
            fit(name, scale=wrong)


@pytest.mark.parametrize(
    "make", [estimators.SparseRFRegressor, estimators.HARFERegressor, estimators.MFGARegressor]
)
def test_estimators_follow(make):
    few = {"features": srf.Fourier(gamma=0.3), "n_components": 60, "random_state": 0}
    model, wide = make(**few).fit(X, Y), make(**few).fit(WIDE, Y)
    assert model.predict(X).tobytes() == wide.predict(WIDE).tobytes()
    with pytest.raises(ValueError, match="scale must be 'robust'"):
        make(scale="auto", **few).fit(X, Y)
