"""Importances of inputs, against a function whose shares are known."""

import numpy as np
import pytest

import sparserf as srf
from sparserf.explain import evaluate

from ..fitted_models import X


def test_importances_of_a_known_function():
    """The values of 2 a and of b, all uniform, are the mean sizes of these; those of c and d are
    half of c d each."""
    Z = np.random.default_rng(0).uniform(-1, 1, (2000, 5))
    y, features = 2 * Z[:, 0] - Z[:, 1] + Z[:, 2] * Z[:, 3], srf.Taylor(2, 1e-3)
    model = srf.mfga(Z, y, features=features, n_nonzero_coefs=8, alpha=1e-12, rng=0)
    worth = model.importances(Z, n_rows=2000)
    np.testing.assert_allclose(
        worth.share, np.divide([1, 1 / 2, 1 / 8, 1 / 8, 0], 7 / 4), atol=0.03
    )
    np.testing.assert_allclose(worth.value, worth.share * 7 / 4, rtol=0.1, atol=1e-3)
    assert worth.order[:2].tolist() == [0, 1] and str(worth).splitlines()[1].split()[0] == "x0"
    assert abs(worth.share.sum() - 1) < 1e-12


@pytest.mark.slow
def test_importances_of_all_kinds(models, of_frame):
    for name, model in models.items():
        worth = model.importances(X, n_rows=100)
        assert np.isfinite([worth.share, worth.value]).all() and (worth.share >= 0).all(), name
        assert abs(worth.share.sum() - (name != "no term")) < 1e-9, name
    worth = of_frame[0].importances(of_frame[1])
    assert worth.names[3] == "c o" and worth.share[3] > 0.05


@pytest.mark.slow
def test_importances_are_the_mean_sizes_of_shapley_values(models):
    """For several outputs they are the sum over the outputs, each in its own units."""
    for name in ("auto", "three classes"):
        worth = models[name].importances(X, X[:50], n_rows=400)
        values = np.atleast_3d(models[name].shapley(X, X[:50]))
        np.testing.assert_allclose(worth.value, np.abs(values).mean(axis=0).sum(axis=1), rtol=1e-9)


def test_errors_of_shares_are_the_spread_over_draws(models):
    """A share varies between draws of rows by as much as its standard error says."""
    background = X[:50]
    draws = [
        models["auto of an alpha"].importances(X, background, n_rows=60, rng=k) for k in range(20)
    ]
    shares = np.stack([worth.share for worth in draws])
    told = np.sqrt(np.mean([worth.share_error**2 for worth in draws]))
    spread = np.sqrt((shares.std(axis=0, ddof=1) ** 2).mean())
    assert 0.6 < told / spread < 1.6 and draws[0].n_rows == 60
    assert str(draws[0]).endswith("means over 60 rows, against 50 background rows")


def test_few_rows_of_a_long_frame_are_read(of_frame, monkeypatch):
    """Explanations of any number of rows read those that are drawn, and no others."""
    model, data = of_frame
    long, read, lengths = data.sample(30_000, replace=True, random_state=0), evaluate.read_rows, []

    def counted(X, *about, **more):
        lengths.append(len(X))
        return read(X, *about, **more)

    monkeypatch.setattr(evaluate, "read_rows", counted)
    worth = model.importances(long)
    assert lengths == [worth.n_rows] == [300] and worth.n_background == 100
    model.shapley(long[:1], long)
    assert lengths[1:] == [1, 100]
    assert np.array_equal(model.summary(long).importances.share, worth.share)
    assert max(lengths) <= 10_000
