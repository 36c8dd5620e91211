"""Importances of inputs, against a function whose shares of variance are known."""

import numpy as np
import pytest

import sparserf as srf
from sparserf.explain import importances

from ..fitted_models import X


def test_importances_of_a_known_function():
    """y = 2 a - b + c d, all uniform, has the variance 1/3 (4 + 1) + 1/9; the Shapley values of c and d are half of c d
    each."""
    Z = np.random.default_rng(0).uniform(-1, 1, (2000, 5))
    y, features = 2 * Z[:, 0] - Z[:, 1] + Z[:, 2] * Z[:, 3], srf.Taylor(2, 1e-3)
    model = srf.mfga(Z, y, features=features, n_nonzero_coefs=8, alpha=1e-12, rng=0)
    whole = 5 / 3 + 1 / 9
    known = {
        "shapley": ([1, 1 / 2, 1 / 8, 1 / 8, 0], 7 / 4, 0.03),
        "variance": ([4 / 3, 1 / 3, 1 / 18, 1 / 18, 0], whole, 0.05),
        "main": ([4 / 3, 1 / 3, 0, 0, 0], whole, 0.03),
        "total": ([4 / 3, 1 / 3, 1 / 9, 1 / 9, 0], whole, 0.03),
    }
    for measure, (value, of, error) in known.items():
        worth = model.importances(Z, Z, measure=measure)
        np.testing.assert_allclose(worth.share, np.divide(value, of), atol=error, err_msg=measure)
        np.testing.assert_allclose(worth.value, worth.share * of, rtol=0.1, atol=1e-3, err_msg=measure)
        assert worth.order[:2].tolist() == [0, 1] and str(worth).splitlines()[1].split()[0] == "x0"
        if measure in ("shapley", "variance"):
            assert abs(worth.share.sum() - 1) < 1e-12


@pytest.mark.parametrize("name", ["gaussian", "products", "bumps"])
def test_main_effects_of_products_are_exact(models, name):
    """Over a grid, whose inputs are independent, the mean of f for a value of an input is the mean over the rows that have
    it."""
    grid = np.stack(np.meshgrid(*[[-1.0, 0.2, 0.5]] * 4), axis=-1).reshape(-1, 4)
    f = models[name].decision_function(grid)
    main = [np.var([f[grid[:, j] == x].mean() for x in (-1.0, 0.2, 0.5)]) for j in range(4)]
    np.testing.assert_allclose(models[name].importances(X, grid, measure="main").value, main, rtol=1e-9)


def test_importances_of_all_kinds(models, of_frame):
    for name, model in models.items():
        for measure in importances.MEASURES:
            worth = model.importances(X, measure=measure, n_rows=100)
            assert np.isfinite([worth.share, worth.value]).all(), (name, measure)
            assert (worth.share >= 0).all() or measure == "variance"
            if measure in ("shapley", "variance"):
                assert abs(worth.share.sum() - (name != "no term")) < 1e-9, (name, measure)
    worth = of_frame[0].importances(of_frame[1])
    assert worth.names[3] == "c o" and worth.share[3] > 0.05


def test_importances_are_the_mean_sizes_of_shapley_values(models):
    """For several outputs they are the sum over the outputs, each in its own units."""
    for name in ("auto", "three classes"):
        worth = models[name].importances(X, X[:50])
        values = np.atleast_3d(models[name].shapley(X, X[:50]))
        np.testing.assert_allclose(worth.value, np.abs(values).mean(axis=0).sum(axis=1), rtol=1e-9)


def test_a_share_of_nothing_has_no_sign():
    one = importances.Importances("variance", ("a", "b"), *[np.array([-1e-9, 1.0])] * 2)
    assert "-0.0 %" not in str(one) and "0.0 %" in str(one)
