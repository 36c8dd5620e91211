"""Missing cells, in the training rows and in new ones, wherever the rows are and whatever the
features are."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest

import sparserf as srf
from sparserf.rows import as_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
HOLED = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
Y = 1.0 * (X[:, 0] > 0.3) + np.where(np.isnan(HOLED[:, 1]), 2.0, 0.0) + 0.1 * RNG.normal(size=400)
HOMES = {
    "array": np.asarray,
    "chunks": lambda Z: srf.Chunks(Z, block_rows=90),
    "frames": lambda Z: srf.Chunks(
        lambda start, stop: pd.DataFrame(Z[start:stop], columns=list("abc")), Z.shape, block_rows=90
    ),
    "dask": lambda Z: da.from_array(Z, chunks=(130, 3)),
}
FITS = {
    "rules": {"features": srf.Rules(), "alpha": 0.01},
    "rules, chosen": {"features": srf.Rules(), "effort": 0.1, "verbose": False},
    "gaussian": {"features": "gaussian", "alpha": 0.01, "n_components": 100},
    "default": {"effort": 0.1, "verbose": False},
}


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("home", HOMES)
def test_training_rows_may_miss_cells_in_every_home(home, fit):
    there = HOMES[home](HOLED)
    model = srf.sparse_rf(there, Y, rng=0, **FITS[fit])
    f = np.asarray(model.predict(there))
    assert np.mean((f - Y) ** 2) < 0.5 * Y.var()
    if fit == "rules":
        assert "is missing" in model.formula()
        np.testing.assert_allclose(
            f, srf.sparse_rf(HOLED, Y, rng=0, **FITS[fit]).predict(HOLED), atol=1e-6
        )


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("home", HOMES)
def test_new_rows_may_miss_cells_where_training_rows_do_not(home, fit, tmp_path):
    model = srf.sparse_rf(HOMES[home](X), Y, rng=0, **FITS[fit])
    f = np.asarray(model.predict(HOMES[home](HOLED)))
    whole = ~np.isnan(HOLED).any(axis=1)
    np.testing.assert_allclose(f[whole], model.predict(X[whole]), atol=1e-9)
    assert np.isfinite(f).all()
    assert f.min() > Y.min() - 1 and f.max() < Y.max() + 1
    model.save(tmp_path / "m.npz")
    np.testing.assert_array_equal(srf.load(tmp_path / "m.npz").predict(HOLED), model.predict(HOLED))


@pytest.mark.parametrize("home", ["array", "chunks", "dask"])
def test_rules_that_may_not_miss_cells_refuse_them(home):
    options = {"rng": 0, "missing": "raise", **FITS["rules"]}
    with pytest.raises(ValueError, match="finite"):
        srf.sparse_rf(HOMES[home](HOLED), Y, **options)
    model = srf.sparse_rf(HOMES[home](X), Y, **options)
    with pytest.raises(ValueError, match="finite"):
        np.asarray(model.predict(HOMES[home](HOLED)))


def test_training_rows_without_missing_cells_are_not_encoded_for_rules():
    """Encoding them would copy all rows at each pass."""
    encoder = srf.sparse_rf(X, Y, rng=0, **FITS["rules"]).features.encoder
    assert np.shares_memory(as_rows(X, may_miss=True).encoded(encoder).array(), X)
    assert not np.isnan(as_rows(HOLED, may_miss=True).encoded(encoder).array()).any()
