"""Where Newton's model knows of few corners, the l1 solver leans on a model that lies above the
loss: quantiles converge, whatever the features and however small the penalty."""

import numpy as np
import pytest

import sparserf as srf
from sparserf.losses import Huber, Logistic, Quantile, SquaredHinge
from sparserf.rows import as_rows
from sparserf.solvers.problem import Problem

from ..losses.own_losses import OwnQuantile

N = 200
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * RNG.normal(size=N)
FEATURES = {"rules": srf.Rules(), "auto": "auto", "gaussian": "gaussian", "linear": srf.Linear()}
LOSSES = {
    "median": Quantile(0.5, 0.1),
    "quantile": Quantile(0.9, 0.02),
    "huber": Huber(0.3),
    "logistic": Logistic(),
    "squared_hinge": SquaredHinge(),
    "your own": OwnQuantile(1.0),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_majorant_lies_above_the_loss_and_touches_it(name):
    loss = LOSSES[name]
    y = np.where(Y > 0, 1.0, -1.0) if loss.is_classifier else Y
    z, far = 3 * RNG.normal(size=(2, N))
    weight = RNG.uniform(0.5, 2, N)
    problem = Problem(as_rows(X, 1).vectors, loss, y, weight, 0.0, True)
    h = problem.majorant(z) * N / weight
    assert (h >= loss.curvature(z, y) * (1 - 1e-9)).all() and (
        h <= loss.smoothness * (1 + 1e-9)
    ).all()
    for t in (0.01, 0.1, 1.0, 10.0):
        d = t * (far - z)
        model = loss.value(z, y) + loss.derivative(z, y) * d + 0.5 * h * d**2
        assert (loss.value(z + d, y) <= model + 1e-9 * (1 + np.abs(model))).all()


@pytest.mark.parametrize("alpha", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantiles_converge_with_no_more_terms_than_rows(level, features, alpha):
    """Without the majorant 8 fits of 8 by rules and "auto", of levels .5 and .9 at the two smaller
    penalties, ended at gaps of .77 to 1.1 of the objective, with 240 to 2,500 terms. A convergence
    warning is an error."""
    how = {"features": FEATURES[features], "alpha": alpha, "rng": 0}
    model = srf.sparse_rf(X, Y, loss=Quantile(level), **how)
    assert model.info.converged and 0 < len(model.features) <= 1.1 * N
    assert model.info.dual_gap <= 1e-3 * model.info.objective[-1]


@pytest.mark.parametrize("alpha", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("features", ["gaussian", "linear"])
def test_a_change_by_rounding_is_a_change_by_rounding(features, alpha):
    how = {"features": FEATURES[features], "alpha": alpha, "rng": 0, "loss": "quantile"}
    one, other = (srf.sparse_rf(X, y, **how).predict(X) for y in (Y, Y * (1 + 3e-16)))
    np.testing.assert_allclose(other, one, rtol=0, atol=1e-9)


@pytest.mark.parametrize("unit", [2.0**10, 2.0**-20])
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("loss", ["quantile", "huber", "squared"])
def test_units_that_are_powers_of_two_change_no_bit(loss, features, unit):
    how = {"features": FEATURES[features], "rng": 0, "loss": loss}
    power = 0 if loss == "quantile" else 1
    one, other = (srf.sparse_rf(X, u * Y, alpha=0.01 * u**power, **how) for u in (1.0, unit))
    np.testing.assert_array_equal(other.coef, unit * one.coef)
    np.testing.assert_array_equal(other.predict(X), unit * one.predict(X))


@pytest.mark.parametrize("loss", ["quantile", "huber", "squared"])
def test_the_default_is_the_same_to_the_bit_in_units_that_are_powers_of_two(loss):
    one, other = (srf.sparse_rf(X, u * Y, loss=loss, effort=0.1, rng=0) for u in (1.0, 2.0**10))
    np.testing.assert_array_equal(other.coef, 2.0**10 * one.coef)
