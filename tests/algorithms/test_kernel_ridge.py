"""Kernel ridge, the candidate of the default for what only neighbours tell: its solutions, and when
the search takes it."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge

import sparserf as srf
from sparserf.algorithms.arguments import RowSetting
from sparserf.algorithms.sparse_rf import kernel_ridge as _kernel_ridge
from sparserf.algorithms.sparse_rf import search as _search
from sparserf.algorithms.sparse_rf.kernel_ridge import (
    Factor,
    KernelChoice,
    KernelFit,
    KernelRidge,
    Solved,
    bumps_at,
)
from sparserf.algorithms.task import Task
from sparserf.features import BumpBlock
from sparserf.losses import Logistic, Squared
from sparserf.solvers.effort import Effort

from ..conftest import bits

WEIGHTS = np.array([1.0, 0.5, 2.0])


def kernel(X, Z=None, weights=WEIGHTS):
    """Return the Laplacian kernel with these weights of the inputs, by its formula."""
    Z = X if Z is None else Z
    return np.exp(-np.abs(weights * (X[:, None] - Z[None])).sum(axis=2))


def is_bump(model):
    """Return a mask of the terms of a model that are bumps."""
    return np.array([name.startswith("bump") for name in model.features.names()], bool)


@pytest.fixture
def problem(rng):
    """(X, y, s, K): 60 rows, two targets, weights of mean 1 and the kernel matrix."""
    X, y = rng.standard_normal((60, 3)), rng.standard_normal((2, 60))
    s = rng.uniform(0.5, 2, 60)
    return X, y, s / s.mean(), kernel(X)


def test_bumps_at_rows_are_the_kernel(problem):
    X, _, _, K = problem
    choice = KernelChoice(np.arange(3), WEIGHTS)
    np.testing.assert_allclose(bumps_at(X, choice).transform(X), K, rtol=1e-12)
    some = bumps_at(X, KernelChoice(np.array([0, 2]), WEIGHTS[[0, 2]]))  # others do not matter
    np.testing.assert_allclose(
        some.transform(X), kernel(X, weights=WEIGHTS * [1, 0, 1]), rtol=1e-12
    )


def test_without_an_intercept_it_is_the_kernel_ridge_of_scikit_learn(problem):
    _, y, s, K = problem
    c, b = Factor(K, s, 0.3).fit(y, 0 * y, Squared(), False)
    other = SklearnKernelRidge(alpha=0.3, kernel="precomputed").fit(K, y.T, sample_weight=s)
    np.testing.assert_allclose(c, other.dual_coef_.T, rtol=1e-8)
    np.testing.assert_array_equal(b, 0)


@pytest.mark.parametrize("loss", [Squared(), Logistic()])
def test_rows_of_next_to_no_weight_hardly_count(problem, loss):
    _, y, s, K = problem
    y, s, others = np.sign(y), s.copy(), np.arange(10, 60)
    s[:10] = 1e-310
    c, b = Factor(K.astype(np.float32), s, 0.3).fit(y, 0 * y, loss, True)
    of_others, b_of_others = Factor(K[np.ix_(others, others)], s[others], 0.3).fit(
        y[:, others], 0 * y[:, others], loss, True
    )
    np.testing.assert_allclose(c[:, :10], 0, atol=1e-20)
    np.testing.assert_allclose(c[:, others], of_others, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(b, b_of_others, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("loss", "kappa"), [(Squared(), 1.0), (Logistic(), 0.25)])
def test_the_solution_is_optimal(problem, rng, loss, kappa):
    _, y, s, K = problem
    if loss.is_classifier:
        y = np.sign(y)
    a, ridge = 0.3 * rng.standard_normal(y.shape), 0.2
    c, b = Factor(K, s, ridge).fit(y, a, loss, True)
    slope = s * loss.derivative(a + c @ K + b[:, None], y)
    # K (slope + kappa ridge c) = 0, and the slopes of the intercepts are 0, up to the end of the
    # repetitions
    assert np.abs(slope + kappa * ridge * c).max() < (1e-10 if loss.is_quadratic else 0.03)
    assert np.abs(slope.sum(axis=1)).max() < (1e-9 if loss.is_quadratic else 0.3)


def test_a_row_of_weight_two_is_two_rows(problem):
    X, y, _, K = problem
    s = np.where(np.arange(60) < 20, 2.0, 1.0)
    twice = np.concatenate([np.arange(60), np.arange(20)])
    one, b = Factor(K, s, 0.3).fit(y, 0 * y, Squared(), True)
    two, b_two = Factor(K[np.ix_(twice, twice)], np.ones(80), 0.3).fit(
        y[:, twice], 0 * y[:, twice], Squared(), True
    )
    np.testing.assert_allclose(b, b_two, atol=1e-9)
    np.testing.assert_allclose(one @ K, two @ kernel(X[twice], X), atol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_gap_bounds_the_distance_to_the_optimum(problem, rng, monkeypatch, loss, fit_intercept):
    X, y, s, K = problem
    y = np.sign(y[0]) if loss == "logistic" else 3 * y[0]
    task = Task.from_arrays(X, y, RowSetting(loss, s))
    a, ridge, n = 0.3 * rng.standard_normal((1, 60)), 0.05, 60
    loss, unit = task.loss_of(task.targets[0]), task.unit(task.targets[0])
    target = task.targets[0] / unit

    def fitted(repetitions):
        c, b = Factor(K, s, ridge).fit(target[None], a, loss, fit_intercept, repetitions)
        solved = Solved(KernelChoice(np.arange(3), WEIGHTS, ridge), 0, c, b, np.nan)
        fit = KernelFit.from_solution(task, X, np.arange(n), solved, 0)
        return c[0], b[0], fit.certified(task, K, a, solved, fit_intercept)

    c, b, fit = fitted(5)
    monkeypatch.setattr(_kernel_ridge, "ENOUGH", 1e-15)
    *_, best = fitted(5000)
    alpha = loss.smoothness * ridge / n
    objective = s @ loss.value(a[0] + K @ c + b, target) / n + alpha / 2 * c @ K @ c
    assert fit.info().alpha == pytest.approx(alpha)
    assert fit.objective == pytest.approx(unit**task.loss.degree * objective)
    assert fit.objective - fit.dual_gap <= best.objective * (1 + 1e-12)
    assert best.dual_gap <= 1e-9 * best.objective and best.info().converged
    assert not loss.is_classifier or fit.dual_gap > 1e-6 * fit.objective  # it stopped before


def test_a_fit_of_the_search_has_no_gap(problem):
    X, y, s, K = problem
    task = Task.from_arrays(X, y[0], RowSetting("squared", s))
    c, b = Factor(K, s, 0.3).fit(y[:1], 0 * y[:1], Squared(), True)
    solved = Solved(KernelChoice(np.arange(3), WEIGHTS, 0.3), 0, c, b, 0.7)
    info = KernelFit.from_solution(task, X, np.arange(60), solved, 0).info()
    assert info.dual_gap == np.inf and not info.converged


def neighbours(rng, n):
    """Return rows of two inputs and a rough target: a sum of many narrow bumps, with noise."""
    fixed = np.random.default_rng(5)
    places, heights = fixed.uniform(-1, 1, (600, 2)), fixed.standard_normal(600)
    X = rng.uniform(-1, 1, (n, 2))
    return X, kernel(X, places, 6.0) @ heights + 0.02 * rng.standard_normal(n)


def test_the_default_takes_bumps_where_neighbours_tell_most(rng, monkeypatch):
    X, y = neighbours(rng, 500)
    X_test, y_test = neighbours(rng, 600)
    model = srf.sparse_rf(X, y, rng=0)
    assert is_bump(model).any()
    monkeypatch.setattr(_search, "may_have_bumps", lambda *about: False)
    without = srf.sparse_rf(X, y, rng=0)
    assert not is_bump(without).any()
    error, error_without = (
        np.mean((each.predict(X_test) - y_test) ** 2) for each in (model, without)
    )
    assert error < 0.85 * error_without


def test_a_line_gets_no_bumps(rng):
    X = rng.standard_normal((300, 4))
    assert not is_bump(
        srf.sparse_rf(X, X @ [1.0, -2, 0, 1] + 0.3 * rng.standard_normal(300), rng=0)
    ).any()


@pytest.mark.parametrize(
    "how", [{"max_terms": 500}, {"max_order": 1}, {"loss": "quantile"}, {"effort": 0.3}]
)
def test_where_bumps_are_not_tried(rng, how):
    X, y = neighbours(rng, 600)
    assert not is_bump(srf.sparse_rf(X, y, rng=0, **how)).any()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_bumps_have_the_same_bits_with_any_workers(rng, loss):
    X, y = neighbours(rng, 500)
    y = y if loss == "squared" else np.sign(y)
    one, two = (srf.sparse_rf(X, y, loss=loss, rng=0, workers=workers) for workers in (1, 2))
    assert is_bump(one).any() or loss == "logistic"  # of labels alone, other candidates do as well
    assert bits(one) == bits(two)


@pytest.mark.slow
def test_without_time_at_the_end_bumps_are_those_of_the_search(rng, monkeypatch):
    X, y = neighbours(rng, 500)
    whole = srf.sparse_rf(X, y, rng=0)
    late, models = Effort(np.inf, deadline=0.0), KernelRidge.models
    monkeypatch.setattr(KernelRidge, "models", lambda self, *about: models(self, *about[:-1], late))
    with pytest.warns(srf.ConvergenceWarning, match="gap of inf"):  # nobody has computed it
        model = srf.sparse_rf(X, y, rng=0)
    assert is_bump(model).any() and late.cuts_in_time == {"fits to all rows": 1}
    change = np.mean((model.predict(X) - whole.predict(X)) ** 2)
    assert 0 < change < 0.1 * np.var(y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparserf.GroupedRowsWarning")  # each row is there twice
def test_rows_that_are_the_same_have_one_bump(rng):
    X, y = neighbours(rng, 300)
    model = srf.sparse_rf(np.vstack([X, X]), np.concatenate([y, y + 0.01]), rng=0)
    assert np.count_nonzero(is_bump(model)) <= 300


@pytest.mark.slow
def test_a_model_with_bumps_is_saved_and_written(rng, tmp_path):
    X, y = neighbours(rng, 400)
    model = srf.sparse_rf(X, y, rng=0)
    assert any(isinstance(block, BumpBlock) for block in model.features.blocks)
    model.save(tmp_path / "model.npz")
    assert bits(srf.load(tmp_path / "model.npz")) == bits(model)


def test_bumps_go_on_alone_where_there_was_no_time_for_others():
    constant, bumps = SimpleNamespace(is_large=False), SimpleNamespace(is_large=True, base=None)
    assert _search._beside_bumps({3: ((3, 0),)}, [{(0, 0): constant, (3, 0): bumps}]) == set()
