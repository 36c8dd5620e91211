"""What the papers compare with, against scikit-learn or its definition."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

import sparserf as srf
from sparserf.baselines import srfe

from .conftest import phi_oracle

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (120, 4))
Y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.05 * RNG.standard_normal(120)
NEURONS = srf.RandomNeurons("sin", order=2).draw(300, 4, rng=0)


@pytest.mark.parametrize("eta", [0.5, 0.1, 0.02])
def test_srfe_is_the_lasso_of_that_residual(eta):
    model = srfe(X, Y, eta=eta, features=NEURONS)
    residual = np.std(model.predict(X) - Y) / np.std(Y)
    assert 0.98 * eta <= residual <= eta * (1 + 1e-9)
    if eta < 0.1:
        return  # scikit-learn does not converge
    lasso = Lasso(alpha=model.info.alpha, tol=1e-10, max_iter=100_000).fit(phi_oracle(NEURONS, X), Y)
    assert np.abs(model.coef).sum() == pytest.approx(np.abs(lasso.coef_).sum(), rel=1e-3)


def test_srfe_keeps_the_units_of_y():
    one, other = (srfe(X, scale * Y + shift, eta=0.1, features=NEURONS) for scale, shift in ((1, 0), (1e6, 5e6)))
    np.testing.assert_allclose(other.predict(X), 1e6 * one.predict(X) + 5e6, rtol=1e-6, atol=1e3)


def test_srfe_beyond_reach_warns():
    with pytest.warns(srf.ConvergenceWarning, match="eta"):
        srfe(X, RNG.standard_normal(120), eta=0.01, features=NEURONS.take(np.arange(5)), max_iter=5)
    with pytest.raises(ValueError, match="eta"):
        srfe(X, Y, eta=0)
