"""The paths of folds, against formulas in NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sparserf as srf
from sparserf._core.descent import descend
from sparserf.algorithms.arguments import RowSetting
from sparserf.algorithms.default.fold_path import eliminate_intercept, gram_with_new
from sparserf.algorithms.default.l1_path import L1Path
from sparserf.algorithms.default.ridge_path import RidgePath, WideRidgePath
from sparserf.algorithms.default.softmax_by_class import SoftmaxByClass
from sparserf.algorithms.default.term_values import Curvature, Numbers
from sparserf.algorithms.sparse_rf.options import SparseRFOptions
from sparserf.algorithms.task import Task
from sparserf.losses import LOSSES
from sparserf.losses.classification import Multinomial
from sparserf.solvers.multinomial import CLASS_VERSUS_REST


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_descend_takes_matrices_of_both_precisions(rng, dtype):
    B = rng.normal(size=(30, 8))
    H, g, alpha = (B.T @ B / 30).astype(dtype), rng.normal(size=8), 0.3
    w, v = np.zeros(8), g.copy()
    left = descend(H, w, v, alpha, 500, 1e-9)
    slope = g + H.astype(np.float64) @ w
    assert left <= 1e-9
    assert_allclose(v, slope, atol=1e-12)
    assert np.all(np.abs(slope) <= alpha + 1e-8)
    assert_allclose(slope[w != 0], -alpha * np.sign(w[w != 0]), atol=1e-8)


@pytest.mark.parametrize("old", [0, 1, 600, 1_100])
def test_gram_matrices_grow(rng, old):
    values = Numbers(rng.normal(size=(1_100, 30)), 20)
    phi, curvature = values._fitted, Curvature(rng.random(20))
    G = (phi * curvature.h) @ phi.T
    assert_allclose(gram_with_new(G[:old, :old], values, curvature), G, atol=1e-12)


def test_the_intercept_is_eliminated(rng):
    phi, h = rng.normal(size=(200, 40)) + 3, rng.random(40)
    H, m = (phi * h) @ phi.T, phi @ h
    away = phi - (m / h.sum())[:, None]
    eliminate_intercept(H, m, h.sum())
    assert_allclose(H, (away * h) @ away.T, rtol=1e-4, atol=1e-8)


def test_turns_are_the_multinomial_loss(rng):
    label, s = rng.integers(0, 4, 50), rng.random(50)
    targets = [np.where(label == k, 1.0, -1.0) for k in range(4)]
    turns, z, loss = SoftmaxByClass(targets, s), rng.normal(size=(4, 50)) * 5, Multinomial()
    y = np.stack(targets)
    assert_allclose(turns.loss(z), (s * loss.value(z, y)).sum())
    assert_allclose(turns.slopes(z), s * loss.derivative(z, y))
    turns.begin_sweep(z)
    for k in range(4):
        own = turns.target(k)
        assert_allclose(CLASS_VERSUS_REST.value(z[k], own), loss.value(z, y).sum(axis=0))
        assert_allclose(CLASS_VERSUS_REST.derivative(z[k], own), loss.derivative(z, y)[k])
        assert_allclose(turns.probability(z, k), loss.derivative(z, y)[k] + (label == k))
        z[k] += rng.normal(size=50)
        turns.end_turn(k, z[k])


def paths_task(X, y, **how):
    """Return a task with the options of its fits."""
    options = SparseRFOptions(features="auto", tol=1e-2, rng=0, **how)
    return Task.from_options(X, y, options, losses=tuple(LOSSES), several_outputs="apart").centered(
        True
    ), options


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson", "multinomial"])
def test_an_l1_path_keeps_what_it_says(rng, loss):
    X = rng.normal(size=(90, 3))
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    y = {"squared": f, "poisson": np.round(np.exp(f / 2))}.get(loss, np.digitize(f, [0.0]))
    y = np.digitize(f, [-0.5, 0.5]) if loss == "multinomial" else y
    task, options = paths_task(X, y, rows=RowSetting(loss=loss))
    fitted = rng.random(90) < 0.7
    path = L1Path(task, options.dictionary(task, 60), options, 0, fitted)
    alpha = 0.5 * path.largest_alpha()
    for _ in range(4):
        path.fit_at(alpha)
        alpha *= 0.6
    assert path.n_terms > 2
    assert len(path.w) == len(task.targets)
    Phi = path.features.transform(task.rows.array())
    assert_allclose(path.margins(), path.w @ Phi.T + path.b[:, None], atol=1e-4)
    again = L1Path(task, options.dictionary(task, 60), options)
    again.fit_again(path.state(), alpha, 1e-3, 50)
    assert_allclose(again.slopes().sum(axis=1), 0.0, atol=1e-5)
    g = again.values.correlate(again.slopes())
    alphas = np.broadcast_to(alpha / again._slope_units[:, None], g.shape)
    assert np.all(np.abs(g) <= 1.05 * alphas)
    there = again.w != 0
    assert_allclose(g[there], -(alphas * np.sign(again.w))[there], rtol=0.05)


def test_a_ridge_path_is_ridge_regression(rng):
    X = rng.normal(size=(60, 4)) * [1, 10, 0.1, 0] + 5
    y = X @ [1.0, -0.2, 3.0, 0.0] + rng.normal(size=60)
    task, options = paths_task(X, y)
    fitted = np.arange(60) < 45
    path = RidgePath(task, options, fitted)
    path.fit_at(0.3)
    _, _, w, b = path.state()
    Z, t = X[:45, :3], y[:45]
    scale = Z.std(axis=0)
    Z = (Z - Z.mean(axis=0)) / scale
    best = np.linalg.solve(Z.T @ Z / 45 + 0.3 * np.eye(3), Z.T @ (t - t.mean()) / 45) / scale
    assert_allclose(w[0], [*best, 0.0], rtol=1e-4)
    margins = path.margins()[0] * task.unit(task.targets[0])
    assert_allclose(margins, X @ w[0] + b[0], rtol=1e-6)
    assert_allclose(margins[:45].mean(), task.targets[0][:45].mean())


@pytest.mark.slow
def test_folds_on_threads_have_the_same_bits(rng):
    X = rng.normal(size=(150, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    one, two = (srf.sparse_rf(X, y, effort=0.2, rng=0, workers=n, verbose=False) for n in (1, 2))
    assert np.array_equal(one.predict(X), two.predict(X))


def test_a_ridge_path_of_more_inputs_than_rows(rng):
    X = rng.normal(size=(30, 60))
    y = X[:, 0] + rng.normal(size=30)
    task, options = paths_task(X, y)
    path = WideRidgePath(task, options, np.arange(30) < 25)
    path.fit_at(0.3)
    _, _, w, b = path.state()
    Z, t, scale = X[:25], y[:25], X[:25].std(axis=0)
    Z = (Z - Z.mean(axis=0)) / scale
    best = np.linalg.solve(Z.T @ Z / 25 + 0.3 * np.eye(60), Z.T @ (t - t.mean()) / 25) / scale
    assert_allclose(w[0], best, atol=0.02 * np.abs(best).max())
    margins = path.margins()[0] * task.unit(task.targets[0])
    assert_allclose(margins, X @ w[0] + b[0], rtol=1e-6)
