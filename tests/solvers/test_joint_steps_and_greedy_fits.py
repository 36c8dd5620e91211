"""Newton steps of all classes together, and the coefficients of greedy selection, against plain
NumPy."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from sparserf import Fourier, Linear
from sparserf.features import linear_functions
from sparserf.losses import LOSSES, Multinomial
from sparserf.rows import as_rows
from sparserf.solvers.budget import Budget
from sparserf.solvers.greedy import LOOKED_AHEAD, CoefficientsOnRows, CoefficientsOnTable
from sparserf.solvers.greedy_multinomial import MultinomialCoefficients
from sparserf.solvers.l1 import L1Problem, WorkingSet
from sparserf.solvers.multinomial import (
    CLASS_VERSUS_REST,
    MultinomialProblem,
    _joint_quadratic_model,
    joint_l1_step,
)
from sparserf.solvers.ridge import RidgeProblem

from ..conftest import phi_oracle

N, D, ALPHA = 150, 5, 0.02


def classes(rng):
    """Draw (X, the class of each row, weights of mean 1, a target of -1 and +1 for each class)."""
    X = rng.normal(size=(N, D))
    label = (X[:, :3] * 1.5 + rng.gumbel(size=(N, 3))).argmax(axis=1)
    s = rng.uniform(0.5, 1.5, N)
    return X, label, s / s.mean(), [np.where(label == k, 1.0, -1.0) for k in range(3)]


def loss(z, label, s):
    """Compute the weighted mean multinomial loss at margins z."""
    return -(s * log_softmax(z, axis=0)[label, np.arange(N)]).mean()


def at_coefficients(rng, w, b, fit_intercept=True):
    """Return (X, label, s, rows, problem, a working set for each class, margins) at coefficients w
    and intercepts b."""
    X, label, s, targets = classes(rng)
    rows, budget = as_rows(X), Budget(np.inf)
    rivals = MultinomialProblem.from_arrays(
        rows.vectors, Multinomial(), np.stack(targets), s, 0.0, fit_intercept
    )
    b = rivals.best_intercepts(w @ X.T, b)
    z = w @ X.T + b[:, None]
    v, sets = rivals.dual_point(z), []
    targets = []
    rivals.in_turn(z, range(3), lambda k, y_k: targets.append(y_k) or z[k])
    for k, y_k in enumerate(targets):
        used = np.flatnonzero(w[k]) if w[k].any() else np.arange(D)
        A = WorkingSet(
            rows,
            L1Problem.from_arrays(rows.vectors, CLASS_VERSUS_REST, y_k, s, ALPHA, fit_intercept),
            budget,
        )
        A.add(Linear().draw(None, D).take(used), used, X.T[used] @ v[k])
        A.w, A.b, A.f = w[k, used], b[k], X @ w[k]
        sets.append(A)
    return X, label, s, rows, rivals, sets, z


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scale", [0.0, 0.3, 6.0])
def test_joint_steps_come_to_the_minimum(scale, fit_intercept):
    """From zero, near and far away every step lowers the objective, and the last is at the minimum
    of L-BFGS-B."""
    rng = np.random.default_rng(4)
    w, b = scale * rng.normal(size=(3, D)), scale * rng.normal(size=3) * fit_intercept
    X, label, s, rows, rivals, sets, z = at_coefficients(rng, w, b, fit_intercept)
    b = np.array([A.b for A in sets])

    def objective(w, b):
        return loss(w @ X.T + b[:, None], label, s) + ALPHA * abs(w).sum()

    before = objective(w, b)
    for _ in range(25):
        if not joint_l1_step(rows, rivals, sets, z, ALPHA):
            break
        w, b = np.array([A.w for A in sets]), np.array([A.b for A in sets])
        for A in sets:
            np.testing.assert_allclose(A.f, X @ A.w, atol=1e-10)
        assert objective(w, b) <= before + 1e-15
        f = np.stack([A.f for A in sets])
        b = rivals.best_intercepts(f, b)
        z = f + b[:, None]
        before, v = objective(w, b), rivals.dual_point(z)
        for k, A in enumerate(sets):
            A.g, A.b = X.T @ v[k], b[k]

    def both(x):
        w, b = (x[: 3 * D] - x[3 * D : 6 * D]).reshape(3, D), x[6 * D :] * fit_intercept
        z = w @ X.T + b[:, None]
        off = s * (softmax(z, axis=0) - (np.arange(3)[:, None] == label)) / N
        g = (off @ X).ravel()
        value = loss(z, label, s) + ALPHA * x[: 6 * D].sum()
        return value, np.concatenate([g + ALPHA, -g + ALPHA, off.sum(axis=1) * fit_intercept])

    bounds, options = (
        [(0, None)] * (6 * D) + [(None, None)] * 3,
        {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
    )
    other = minimize(both, np.zeros(6 * D + 3), jac=True, bounds=bounds, options=options)
    assert before <= other.fun + 1e-9
    assert before == pytest.approx(other.fun, rel=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_hessian_of_all_classes(fit_intercept):
    """The Hessian is Phi' (diag(p) - p p') Phi with intercepts eliminated, and its cost is
    counted."""
    rng = np.random.default_rng(0)
    X, _, s, rows, rivals, sets, z = at_coefficients(
        rng, rng.normal(size=(3, D)), np.zeros(3), fit_intercept
    )
    H, slope = _joint_quadratic_model(rows, rivals, sets, z)
    p = softmax(z, axis=0)
    h = s / N * (p[:, None] * (np.eye(3)[:, :, None] - p))
    whole = np.einsum("ni,kln,nj->kilj", X, h, X).reshape(15, 15)
    M, T = np.einsum("ni,kln->kil", X, h).reshape(15, 3), h.sum(axis=2)
    expected = -np.linalg.pinv(T, rcond=1e-12) @ M.T * fit_intercept
    np.testing.assert_allclose(slope, expected, atol=1e-10)
    np.testing.assert_allclose(H, whole + M @ expected, atol=1e-10)
    assert sets[0].budget._spent == N * 15 * 15 / 2


def test_no_step_from_the_minimum():
    rng = np.random.default_rng(0)
    _, _, _, rows, rivals, sets, z = at_coefficients(rng, np.zeros((3, D)), np.zeros(3), False)
    assert not joint_l1_step(rows, rivals, sets, z, 10.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_greedy_coefficients_of_all_classes_are_optimal(fit_intercept):
    """On three features the coefficients are stationary, and sum to zero over the classes."""
    rng = np.random.default_rng(1)
    X, label, s, targets = classes(rng)
    X *= 3
    rows, alpha = as_rows(X), 1e-3
    problem = RidgeProblem.from_arrays(
        rows.vectors, Multinomial(), np.stack(targets), s, alpha, fit_intercept
    )
    fit = MultinomialCoefficients(rows, problem, linear_functions(np.eye(D)), 3)
    v = problem.dual_point(problem.margins(fit.iterate.f, fit.iterate.b))
    np.testing.assert_allclose(fit.gradients(), np.linalg.norm(v @ X, axis=0))
    fit.append(np.array([0, 1]))
    fit.refit()
    fit.append(np.array([2]))
    fit.refit()
    w, b, U = fit.iterate.w, fit.iterate.b, X[:, :3]
    assert fit.converged
    np.testing.assert_allclose(fit.iterate.f, w @ U.T, atol=1e-10)
    z = w @ U.T + b[:, None]
    off = s * (softmax(z, axis=0) - (np.arange(3)[:, None] == label)) / N
    np.testing.assert_allclose(off @ U + alpha * w, 0, atol=3e-5)
    assert abs(off.sum(axis=1)).max() <= 1e-6 or not fit_intercept
    np.testing.assert_allclose(w.sum(axis=0), 0, atol=1e-9)
    assert fit.iterate.objective == pytest.approx(loss(z, label, s) + alpha * (w**2).sum() / 2)
    for each, w_k in zip(fit.fits, w, strict=True):
        here = each.iterate
        np.testing.assert_allclose(
            here.f, U @ here.w if here.w.ndim == 1 else here.w @ U.T, atol=1e-9
        )
        np.testing.assert_allclose(np.ravel(here.w), w_k)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_the_gradients_of_turned_cosines_are_those_of_the_rows(n_outputs):
    """Each cosine enters at the phase of its largest gradient; its gradient is computed from those
    of all features."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(N, D))
    y = np.stack([np.sin(X[:, 0] + k) + X[:, 1] ** 2 for k in range(n_outputs)])
    rows, everything = as_rows(X), Fourier("gaussian", 0.3).draw(40, D, rng=0)
    problem = RidgeProblem.from_arrays(rows.vectors, LOSSES["squared"], y, np.ones(N), 1e-3, True)
    fit = CoefficientsOnRows(rows, problem, everything, n_outputs, best_phase=True)
    for _ in range(4):
        fit.append(np.array([fit.gradients().argmax()]))
        fit.refit()
        v = problem.dual_point(problem.margins(fit.iterate.f, fit.iterate.b))
        fit._newton_step()
        g, _ = fit._slopes
        np.testing.assert_allclose(g, v @ phi_oracle(fit.A.features, X), atol=1e-12)
        np.testing.assert_allclose(g + 1e-3 * fit.iterate.w, 0, atol=1e-8)
    assert len(fit._angles) == len(fit.A) == 4


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_lines_of_the_table_are_foreseen(monkeypatch, n_outputs, fit_intercept):
    """Among all features that there are, the rounds to come are known exactly: one pass gives the
    lines of them all."""
    rng = np.random.default_rng(3)
    X, asked = rng.normal(size=(N, D)), []
    y = np.stack([np.sin(X[:, 0] + k) + X[:, 1] ** 2 for k in range(n_outputs)])
    rows, everything, s = (
        as_rows(X),
        Fourier("gaussian", 0.3).draw(100, D, rng=0),
        rng.uniform(0.5, 1.5, N),
    )
    problem = RidgeProblem.from_arrays(
        rows.vectors, LOSSES["squared"], y, s / s.mean(), 1e-3, fit_intercept
    )
    r = rng.uniform(0.5, 1, 100)
    fit = CoefficientsOnTable(rows, problem, everything, n_outputs, most_terms=30, r=r)
    products = fit._products
    monkeypatch.setattr(
        fit, "_products", lambda features, J: asked.append(J) or products(features, J)
    )
    for k in range(2 * LOOKED_AHEAD - 2):
        order = np.argsort(-fit.gradients() / r, kind="stable")
        order = order[~np.isin(order, fit.A.index)]
        fit.append(order[:1], order[1:])
        fit.refit()
        assert len(asked) == 1 + (k >= LOOKED_AHEAD)
    foreseen = np.concatenate(asked)
    np.testing.assert_array_equal(fit.A.index, foreseen[: len(fit.A)])
