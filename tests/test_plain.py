"""The algorithms as printed, `sparserf.plain`: the library gives the same numbers in the setting of
the papers, and scikit-learn where the optimum is unique."""

import ast
import inspect
from dataclasses import replace

import numpy as np
import pytest
from numpy.linalg import norm
from sklearn.linear_model import Lasso, LogisticRegression, OrthogonalMatchingPursuit, Ridge
from sklearn.svm import LinearSVC

import sparserf as srf
from sparserf import plain
from sparserf.algorithms.sparse_rf import descent
from sparserf.features import make_projection

from .conftest import (
    LARGE,
    LOSSES,
    PLAIN,
    each_intercept,
    each_loss,
    ignore_convergence,
    phi_oracle,
    with_intercept,
)

RNG = np.random.default_rng(0)
N = 90
X = RNG.uniform(-1, 1, (N, 5))
Y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.05 * RNG.standard_normal(N)
SIGNS = np.where(Y > 0.1, 1.0, -1.0)
WEIGHT = RNG.integers(1, 4, N)
COSINES = srf.Fourier(gamma=0.5).draw(40, 5, rng=0)
NEURONS = srf.RandomNeurons("sin", order=2).draw(400, 5, rng=0)
MONOMIALS = srf.Taylor(2, gamma=0.1).draw(None, 5).concat(srf.Linear().draw(None, 5))
# w'x of rank 12 in 80 columns
LOW = RNG.standard_normal((N, 12)) @ RNG.standard_normal((12, 80)) / 5


def target(loss):
    """Return the target Y, or signs for a classifier."""
    return Y if loss == "squared" else SIGNS


def coef_of(model, size):
    """Return the coefficients over a whole dictionary of `size` features."""
    w = np.zeros(size)
    w[model.support] = model.coef
    return w


def last(iterates):
    """Return the last iterate."""
    *_, w = iterates
    return w


def penalised(loss, alpha, penalty):
    """Return scikit-learn's estimator of the same problem without an intercept."""
    if loss == "squared":
        how = {"fit_intercept": False, "tol": 1e-14}
        l1 = Lasso(alpha, max_iter=10**6, **how)
        return l1 if penalty == "l1" else Ridge(N * alpha, solver="cholesky", **how)
    how = {"C": 1 / (N * alpha), "fit_intercept": False, "max_iter": 10**6, "tol": 1e-10}
    if loss == "squared_hinge":
        return LinearSVC(penalty=penalty, loss=loss, dual=False, random_state=0, **how)
    if penalty == "l1":
        return LogisticRegression(l1_ratio=1, solver="liblinear", random_state=0, **how)
    return LogisticRegression(solver="newton-cholesky", **how)


# The problems within the algorithms


@each_loss
def test_lasso_is_that_of_scikit_learn(loss):
    phi, y, alpha = phi_oracle(COSINES, X)[:, :30], target(loss), 0.02
    w = plain.lasso(phi, y, alpha, np.zeros(30), PLAIN[loss])
    theirs = np.ravel(penalised(loss, alpha, "l1").fit(phi, y).coef_)
    np.testing.assert_allclose(w, theirs, atol=1e-8 if loss == "squared" else 2e-3)
    slope = phi.T @ PLAIN[loss].derivative(phi @ w, y) / N
    assert abs(slope).max() <= alpha * (1 + 1e-8) and 3 < np.count_nonzero(w) < 30
    np.testing.assert_allclose(slope[w != 0], -alpha * np.sign(w[w != 0]), rtol=1e-8)


@each_loss
def test_ridge_is_that_of_scikit_learn(loss):
    phi, y = phi_oracle(COSINES, X), target(loss)
    w = plain.ridge(phi, y, 0.01, PLAIN[loss])
    theirs = np.ravel(penalised(loss, 0.01, "l2").fit(phi, y).coef_)
    np.testing.assert_allclose(w, theirs, atol=1e-5 if loss == "squared_hinge" else 1e-8)
    c, f = RNG.standard_normal(40), RNG.standard_normal(N)
    w = plain.ridge(phi, y, 0.01, PLAIN[loss], f, c)
    gradient = phi.T @ PLAIN[loss].derivative(f + phi @ w, y) / N + 0.01 * (w + c)
    assert abs(gradient).max() < 1e-10


# Sparse-RF


@each_loss
def test_sparse_rf_of_one_batch_is_the_optimum(loss):
    phi, y = phi_oracle(COSINES, X), target(loss)
    w = last(plain.sparse_rf(phi, y, 0.03, 40, PLAIN[loss]))
    how = {"loss": loss, "scale": None, "fit_intercept": False, "tol": 1e-10}
    for exact, R in ((False, 40), (True, 40), (True, 13)):
        model = srf.sparse_rf(X, y, alpha=0.03, features=COSINES, batch_size=R, exact=exact, **how)
        np.testing.assert_allclose(coef_of(model, 40), w, atol=1e-4)
        np.testing.assert_allclose(model.decision_function(X), phi @ w, atol=1e-4)


@pytest.mark.parametrize("R", [10, 20])
def test_sparse_rf_after_each_batch(R, monkeypatch):
    """With each batch solved to the tolerance, most batches end where they do as printed. After the
    others F is up to 3 % higher: the library drops a feature of an earlier batch as soon as its
    coefficient is zero, before the end of the batch."""
    monkeypatch.setattr(descent, "TO_TOLERANCE", replace(descent.TO_TOLERANCE, early_tol=0.0))
    how = {"alpha": 0.03, "exact": False, "scale": None, "fit_intercept": False, "tol": 1e-9}
    as_printed = []
    for seed in range(5):
        draws = srf.Fourier(gamma=0.5).draw(40, 5, rng=seed)
        phi, before, same = phi_oracle(draws, X), np.zeros(40), []
        for t in range(0, 40, R):
            A = np.append(np.flatnonzero(before), np.arange(t, t + R))
            w = np.zeros(40)
            w[A] = plain.lasso(phi[:, A], Y, 0.03, before[A], plain.squared)
            least = np.mean((phi @ w - Y) ** 2) / 2 + 0.03 * abs(w).sum()
            model = srf.sparse_rf(X, Y, features=draws.take(range(t + R)), batch_size=R, **how)
            assert least * (1 - 1e-8) <= model.info.objective[-1] <= 1.03 * least
            before = coef_of(model, 40)
            same.append(np.allclose(before, w, atol=1e-4))
        as_printed += same
        if all(same):
            np.testing.assert_allclose(before, last(plain.sparse_rf(phi, Y, 0.03, R)), atol=1e-4)
    assert np.mean(as_printed) > 0.8


# HARFE


@pytest.mark.parametrize("mu", [0.05, 0.5])
@pytest.mark.parametrize("s", [15, 60])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("m_lambda", [1e-3, 1.0])
@ignore_convergence
def test_harfe_is_the_best_iterate(mu, s, normalize, m_lambda):
    """The library returns the best of the iterates: for the features (lambda = alpha), or for unit
    columns (m lambda = alpha)."""
    A = phi_oracle(NEURONS, X)
    unit = norm(A, axis=0) if normalize else np.ones(len(NEURONS))
    iterates = list(plain.harfe(A / unit, Y, s, m_lambda / N, mu, 8))
    worth = [((Y - A / unit @ c) ** 2).sum() + m_lambda * c @ c for c in iterates]
    model = srf.harfe(
        X,
        Y,
        features=NEURONS,
        n_nonzero_coefs=s,
        alpha=m_lambda if normalize else m_lambda / N,
        normalize=normalize,
        step_size=mu if normalize else mu * N,
        max_iter=8,
        backtracking=False,
        start="zero",
        scale=None,
        fit_intercept=False,
        tol=0,
    )
    expected = iterates[int(np.argmin(worth))] / unit
    np.testing.assert_allclose(
        coef_of(model, 400), expected, rtol=1e-5, atol=1e-7 * abs(expected).max()
    )
    assert model.info.objective[-1] == pytest.approx(min(worth) / (2 * N), rel=1e-9)


@pytest.mark.parametrize("s", [10, 30, 120])
@pytest.mark.parametrize("m_lambda", [1e-3, 0.1])
@ignore_convergence
def test_harfe_of_positive_selection(s, m_lambda):
    """After each iteration, the library returns the best iterate, among those without negative
    coefficients, of the authors' code."""
    A = phi_oracle(NEURONS, X)
    unit = norm(A, axis=0)
    iterates = list(plain.harfe(A / unit, Y, s, m_lambda / N, 0.1, 200, positive=True))
    worth = [
        ((Y - A / unit @ c) ** 2).sum() + m_lambda * c @ c if (c >= 0).all() else np.inf
        for c in iterates
    ]
    first = int(np.flatnonzero(np.isfinite(worth))[0])
    assert any(np.count_nonzero(c) < s for c in iterates)
    for k in (*range(first + 1, first + 8), 200):
        model = srf.harfe(
            X,
            Y,
            features=NEURONS,
            n_nonzero_coefs=s,
            alpha=m_lambda,
            normalize=True,
            step_size=0.1,
            max_iter=k,
            selection="positive",
            backtracking=False,
            start="zero",
            scale=None,
            fit_intercept=False,
            tol=0,
        )
        expected = iterates[int(np.argmin(worth[:k]))] / unit
        np.testing.assert_array_equal(model.support, np.flatnonzero(expected))
        np.testing.assert_allclose(
            coef_of(model, 400), expected, rtol=1e-5, atol=1e-7 * abs(expected).max()
        )


def test_harfe_ends_where_the_residual_is_small():
    A = phi_oracle(NEURONS, X)
    unit = norm(A, axis=0)
    how = {"s": 15, "alpha": 1e-3 / N, "mu": 1.0, "tot_iter": 10}
    residual = [norm(A / unit @ c - Y) / norm(Y) for c in plain.harfe(A / unit, Y, **how)]
    eps = (residual[1] + residual[2]) / 2
    assert residual[0] > residual[1] > eps > residual[2]
    iterates = list(plain.harfe(A / unit, Y, eps=eps, **how))
    model = srf.harfe(
        X,
        Y,
        features=NEURONS,
        n_nonzero_coefs=15,
        alpha=1e-3,
        normalize=True,
        step_size=1.0,
        max_iter=10,
        tol=eps,
        backtracking=False,
        start="zero",
        scale=None,
        fit_intercept=False,
    )
    assert model.info.converged and model.info.n_iter == len(iterates) == 3
    np.testing.assert_allclose(coef_of(model, 400), iterates[-1] / unit, rtol=1e-6, atol=1e-8)


# MFGA


@each_loss
@each_intercept
@pytest.mark.parametrize("weighted", [False, True])
def test_mfga_after_each_round(loss, fit_intercept, weighted):
    """A weight is as many copies of a row."""
    weight = WEIGHT if weighted else np.ones(N, int)
    phi = phi_oracle(MONOMIALS, X)
    phi = with_intercept(phi) if fit_intercept else phi
    iterates = plain.mfga(
        np.repeat(phi, weight, axis=0),
        np.repeat(target(loss), weight),
        8 + fit_intercept,
        1e-3,
        PLAIN[loss],
    )
    models = srf.mfga_path(
        X,
        target(loss),
        features=MONOMIALS,
        n_nonzero_coefs=8,
        alpha=1e-3,
        n_select=1,
        normalize=False,
        loss=loss,
        fit_intercept=fit_intercept,
        sample_weight=weight if weighted else None,
        scale=None,
    )
    if fit_intercept:  # it enters first
        assert np.flatnonzero(next(iterates)).tolist() == [len(MONOMIALS)]
    for model, theta in zip(models, iterates, strict=True):
        np.testing.assert_array_equal(model.support, np.flatnonzero(theta[: len(MONOMIALS)]))
        np.testing.assert_allclose(
            coef_of(model, len(MONOMIALS)), theta[: len(MONOMIALS)], rtol=1e-4, atol=1e-5
        )
        assert model.intercept == pytest.approx(
            LARGE * theta[len(MONOMIALS) :].sum(), rel=1e-4, abs=1e-5
        )


def test_mfga_of_unit_columns_is_orthogonal_matching_pursuit():
    phi = phi_oracle(MONOMIALS, X)
    phi = phi / norm(phi, axis=0)
    for M, theta in enumerate(plain.mfga(phi, Y, 10, 1e-13), 1):
        theirs = OrthogonalMatchingPursuit(n_nonzero_coefs=M, fit_intercept=False).fit(phi, Y)
        np.testing.assert_allclose(theta, theirs.coef_, rtol=1e-6, atol=1e-8)


# DRP


@pytest.mark.parametrize("loss", [*LOSSES, "smoothed_hinge"])
@pytest.mark.parametrize("m", [40, 150])
@ignore_convergence
def test_drp_after_each_iteration(loss, m):
    """With the R that the library draws; m is below and above the number of rows."""
    R = make_projection("gaussian", 80, m, np.random.default_rng(3)).project(np.eye(80))
    of = {"smoothed_hinge": srf.losses.SmoothedHinge()}.get(loss)
    of = plain.Loss(of.derivative, of.smoothness) if of else PLAIN[loss]
    iterates = plain.drp(LOW, target(loss), 0.5, np.sqrt(m) * R, 4, of)
    for T, w in enumerate(iterates, 1):
        model = srf.drp(
            LOW,
            target(loss),
            alpha=0.5,
            n_projections=m,
            n_iter=T,
            accelerate=False,
            projection="gaussian",
            loss=loss,
            scale=None,
            fit_intercept=False,
            tol=1e-13,
            rng=np.random.default_rng(3),
        )
        assert model.info.n_iter == T
        assert norm(model.coef - w) <= 1e-7 * norm(w)


@each_loss
def test_drp_comes_to_the_optimum(loss):
    R = np.random.default_rng(0).standard_normal((80, 400))
    w = last(plain.drp(LOW, target(loss), 0.5, R, 20, PLAIN[loss]))
    theirs = np.ravel(penalised(loss, 0.5, "l2").fit(LOW, target(loss)).coef_)
    assert norm(w - theirs) <= (1e-5 if loss == "squared_hinge" else 1e-7) * norm(theirs)


# The file


def test_it_imports_numpy_only():
    tree = ast.parse(inspect.getsource(plain))
    named = {
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    named |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert named == {"numpy", "typing", "collections.abc", "__future__"}
