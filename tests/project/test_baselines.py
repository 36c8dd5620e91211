"""The methods that the experiments compare with (`tools/baselines`), against scikit-learn or their
definitions written plainly."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gamma as gamma_function
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, Ridge

import sparserf as srf
from sparserf.features import make_projection

from ..conftest import ignore_convergence, phi_oracle
from ..features.sets import resolved

TOOLS = Path(__file__).parents[2] / "tools"
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (120, 4))
Y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.05 * RNG.standard_normal(120)
LABELS = np.where(Y > 0, "up", "down")
SIGNS = np.where(Y > 0, 1.0, -1.0)
WAVES = srf.Fourier(gamma=0.5)
pytestmark = ignore_convergence


@pytest.fixture(scope="module")
def baselines():
    """The package of tools/, removed from sys.modules after the tests."""
    sys.path.insert(0, str(TOOLS))
    yield importlib.import_module("baselines")
    sys.path.remove(str(TOOLS))
    for name in [name for name in sys.modules if name.partition(".")[0] == "baselines"]:
        del sys.modules[name]


# Random features


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("D", [40, 300], ids=["primal", "dual"])
def test_rks_is_the_ridge_of_scikit_learn(baselines, D, intercept):
    how = {"alpha": 0.01, "fit_intercept": intercept, "rng": 0}
    model = baselines.rks(X, Y, features=WAVES, n_components=D, **how)
    Z = phi_oracle(model.features, X) / np.sqrt(D)
    ridge = Ridge(alpha=0.01 * len(X), fit_intercept=intercept).fit(Z, Y)
    np.testing.assert_allclose(model.predict(X), ridge.predict(Z), atol=1e-9)
    np.testing.assert_allclose(model.coef, ridge.coef_ / np.sqrt(D), atol=1e-9)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_rks_classifies_as_a_general_solver_does(baselines, loss):
    how = {"features": WAVES, "n_components": 15, "alpha": 0.02, "rng": 0}
    model = baselines.rks(X, LABELS, loss=loss, **how)
    Z = phi_oracle(model.features, X) / np.sqrt(15)

    def objective(p):
        z = SIGNS * (Z @ p[1:] + p[0])
        losses = np.logaddexp(0, -z) if loss == "logistic" else np.maximum(0, 1 - z) ** 2
        return losses.mean() + 0.01 * p[1:] @ p[1:]

    found = minimize(objective, np.zeros(16), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(model.decision_function(X), Z @ found.x[1:] + found.x[0], atol=1e-3)
    assert set(model.predict(X)) == {"up", "down"}


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_eerf_and_lkrf_take_the_features_that_correlate(baselines, loss):
    how = {"features": WAVES, "n_components": 300, "alpha": 0.01, "loss": loss}
    y, target = (Y, Y - Y.mean()) if loss == "squared" else (LABELS, SIGNS)
    drawn = WAVES.draw(300, 4, rng=0)
    score = np.abs(phi_oracle(drawn, X).T @ target)
    model = baselines.eerf(X, y, n_nonzero_coefs=25, rng=0, **how)
    best = drawn.take(np.sort(np.argsort(-score)[:25]))
    np.testing.assert_array_equal(phi_oracle(model.features, X), phi_oracle(best, X))

    few = baselines.lkrf(X, y, n_nonzero_coefs=25, rho=1e6, rng=0, **how)
    assert len(few.features) == 1  # all of q is on the best feature
    some = baselines.lkrf(X, y, n_nonzero_coefs=25, rho=3.0, rng=0, **how)
    chosen = [np.flatnonzero((drawn.transform(X[:1]) == v).all(axis=0))[0] for v in values(some)]
    assert len(chosen) == 25 and np.median(score[chosen]) > 2 * np.median(score)


def values(model):
    """Return the values of each term in the first row."""
    return model.features.transform(X[:1])[0]


@pytest.mark.parametrize("rho", [0.005, 0.3, 2.0, 100.0])
@pytest.mark.parametrize(
    "v", [[0.1, 1.0, 0.9, 0.2, 0.0], [1.0, 1.0, 0.3], [0.0, 0.0, 0.0, 0.0], [1.0, 1e-9]]
)
def test_the_weights_of_lkrf_solve_their_problem(baselines, v, rho):
    v = np.array(v)
    q, N = baselines.random_features.aligned(v, rho), len(v)
    assert q.min() >= 0 and q.sum() == pytest.approx(1)
    assert np.sum((q - 1 / N) ** 2) <= rho / N * (1 + 1e-9) + 1e-15
    ball = {
        "type": "ineq",
        "fun": lambda q: rho / N - np.sum((q - 1 / N) ** 2),
        "jac": lambda q: -2 * (q - 1 / N),
    }
    simplex = {"type": "eq", "fun": lambda q: q.sum() - 1, "jac": np.ones_like}
    start = 0.999 / N + 0.001 * np.eye(N)[np.argmax(v)]  # SLSQP needs a gradient of the ball
    found = minimize(
        lambda q: -q @ v,
        start,
        jac=lambda q: -v,
        bounds=[(0, 1)] * N,
        constraints=[ball, simplex],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert q @ v >= -found.fun - 1e-6 and q @ v <= v.max() + 1e-12
    if found.success:
        assert q @ v == pytest.approx(-found.fun, abs=1e-5)


# Kernel machines


def kernel_oracle(name, rows):
    """Return the kernel between these rows and those of X, of width 0.7 or the default radius."""
    gap = rows[:, None, :] - X[None]
    r = np.sqrt((gap**2).sum(axis=2))
    if name == "perceptron":
        radius = resolved(srf.Perceptron(), X).radius
        return 1 - gamma_function(2.0) / (np.sqrt(np.pi) * gamma_function(2.5)) * r / radius
    if name == "laplacian":
        return np.exp(-0.7 * np.abs(gap).sum(axis=2))
    K = np.exp(-0.7 * r**2)
    return (K + rows @ X.T) / 2 if name == "gaussian+linear" else K


KERNELS = ("gaussian", "laplacian", "perceptron", "gaussian+linear")


def machine(baselines, name, y, **how):
    """Fit a kernel machine of width 0.7."""
    how |= {} if name == "perceptron" else {"gamma": 0.7}
    return baselines.kernel_machine(X, y, kernel=name, alpha=0.01, **how)


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_ridge_is_that_of_scikit_learn(baselines, name):
    new = RNG.uniform(-1, 1, (50, 4))
    K = kernel_oracle(name, X)
    model = machine(baselines, name, Y, fit_intercept=False)
    theirs = KernelRidge(alpha=0.01 * 120, kernel="precomputed").fit(K, Y)
    np.testing.assert_allclose(model.coef, theirs.dual_coef_, atol=1e-9)
    expected = kernel_oracle(name, new) @ model.coef
    np.testing.assert_allclose(model.predict(new), expected, atol=1e-9)
    with_intercept = machine(baselines, name, Y + 100)
    system = np.block([[K + 1.2 * np.eye(120), np.ones((120, 1))], [np.ones(120), 0]])
    a = np.linalg.solve(system, np.append(Y + 100, 0))
    found = np.append(with_intercept.coef, with_intercept.intercept)
    np.testing.assert_allclose(found, a, atol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", KERNELS)
def test_the_support_vector_machine_is_stationary(baselines, name, intercept):
    """alpha a = -L'(f) / n, so that a = 0 beyond the margin, and the slopes sum to 0 with an
    intercept: the optimum."""
    model = machine(baselines, name, LABELS, loss="squared_hinge", fit_intercept=intercept)
    f, a = model.decision_function(X), np.zeros(120)
    a[model.support] = model.coef
    slope = -2 * SIGNS * np.maximum(0, 1 - SIGNS * f) / 120
    np.testing.assert_allclose(0.01 * a, -slope, atol=1e-9)
    assert abs(slope.sum()) < 1e-9 or not intercept
    assert (SIGNS * f > 1).any() and np.mean(model.predict(X) == LABELS) > 0.95


# Of the other papers


@pytest.mark.parametrize("eta", [0.5, 0.1, 0.02])
def test_srfe_is_the_lasso_of_that_residual(baselines, eta):
    neurons = srf.RandomNeurons("sin", order=2).draw(300, 4, rng=0)
    model = baselines.srfe(X, Y, eta=eta, features=neurons)
    assert 0.98 * eta <= np.std(model.predict(X) - Y) / np.std(Y) <= eta * (1 + 1e-9)
    if eta >= 0.1:  # below, scikit-learn does not converge
        lasso = Lasso(alpha=model.info.alpha, tol=1e-10, max_iter=100_000)
        norm = np.abs(lasso.fit(phi_oracle(neurons, X), Y).coef_).sum()
        assert np.abs(model.coef).sum() == pytest.approx(norm, rel=1e-3)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_random_projection_is_the_fit_to_projected_rows(baselines, loss):
    """w = R z / sqrt(m), and z is stationary in the problem of the projected rows."""
    y, alpha = (Y, LABELS)[loss == "logistic"], 0.01
    model = baselines.random_projection(X, y, alpha=alpha, n_projections=3, loss=loss, rng=5)
    R = make_projection("gaussian", 4, 3, np.random.default_rng(5)).project(np.eye(4))
    z = np.linalg.lstsq(R, model.coef, rcond=None)[0]
    np.testing.assert_allclose(R @ z, model.coef, atol=1e-9)
    f = model.decision_function(X)
    slope = f - Y if loss == "squared" else -SIGNS / (1 + np.exp(SIGNS * f))
    np.testing.assert_allclose((X @ R).T @ slope / 120 + alpha * z, 0, atol=1e-7)
    assert abs(slope.mean()) < 1e-7
