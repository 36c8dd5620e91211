"""Ridge regression of several outputs on the same features, against L-BFGS-B on plain NumPy."""

import numpy as np
import pytest
from scipy.optimize import minimize

from sparserf import Linear
from sparserf.losses import LOSSES, Multinomial
from sparserf.rows import as_rows
from sparserf.solvers.effort import Effort
from sparserf.solvers.ridge import RidgeProblem
from sparserf.solvers.ridge_outputs import RidgeOfOutputs

N, D, K = 200, 6, 4
EACH_LOSS = pytest.mark.parametrize(
    "loss", [Multinomial(), LOSSES["logistic"], LOSSES["squared_hinge"]], ids=lambda it: it.name
)


def made(loss, fit_intercept, dtype=np.float64):
    """Return (X, weights, targets, the problem at coefficients and intercepts of zero); the inputs
    are far from zero."""
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(N, D)) * 1.2 ** np.arange(D) + 5).astype(dtype)
    label = (X[:, :K] - 5 + rng.gumbel(size=(N, K))).argmax(axis=1)
    s, Y = rng.uniform(0.5, 1.5, N), np.where(label == np.arange(K)[:, None], 1.0, -1.0)
    s, rows = s / s.mean(), as_rows(X)
    problem = RidgeProblem.from_arrays(rows.vectors, loss, Y, s, 0.0, fit_intercept)
    return (
        X,
        s,
        Y,
        RidgeOfOutputs(rows, Linear().draw(None, D), problem, np.zeros((K, D)), np.zeros(K)),
    )


def objective(x, X, s, Y, loss, alpha):
    """Compute the objective at coefficients and intercepts in one vector."""
    w, b = np.split(x, [K * D])
    w = w.reshape(K, D)
    losses = s * loss.value(w @ X.T + b[:, None], Y)
    return losses.sum() / N + alpha / 2 * (w**2).sum()


@EACH_LOSS
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_minimum_is_found_and_the_gap_is_a_bound(loss, fit_intercept):
    """From one penalty to the next, as on a path; features far from zero take no more steps."""
    X, s, Y, fit = made(loss, fit_intercept)
    for alpha in (1.0, 0.1):
        assert fit.minimise(alpha, 1e-12) <= 60
        box = [(None, None)] * (K * D) + [(None, None) if fit_intercept else (0, 0)] * K
        best = minimize(
            objective,
            np.zeros(K * D + K),
            (X, s, Y, loss, alpha),
            "L-BFGS-B",
            bounds=box,
            options={"maxfun": 10**6, "maxiter": 10**4, "ftol": 1e-13},
        )
        here = objective(np.append(fit.w, fit.b), X, s, Y, loss, alpha)
        assert fit.objective() == pytest.approx(here, rel=1e-12)
        assert here <= best.fun * (1 + 1e-6) and here - best.fun <= fit.gap() + 1e-7 * here
        np.testing.assert_allclose(
            fit.margins(), fit.w @ X.T + fit.b[:, None], rtol=1e-9, atol=1e-9
        )
    assert np.any(fit.b) == fit_intercept


def test_a_fit_ends_near_the_minimum_and_where_its_work_is_spent():
    _, _, _, fit = made(Multinomial(), True, np.float32)
    effort = Effort(1.0)
    assert fit.minimise(0.1, 0.0, effort) == 1 and effort.is_spent
    rough = fit.minimise(0.1, 1e-2)
    at = fit.objective()
    assert rough < fit.minimise(0.1, 1e-6) and 0.9 * at < fit.objective() < at
    # at the minimum there is nothing to do, in single precision, too
    assert fit.minimise(0.1, 1e-6) <= 2
