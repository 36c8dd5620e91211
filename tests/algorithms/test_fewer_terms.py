"""Dropping the terms of a model that it does not need: what this may cost, and how many may
stay."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import sparserf as srf
from sparserf.algorithms.default.fewer_terms import (
    FEW_ROWS,
    drop_terms,
    drop_terms_at_once,
    loss_curvature,
)

from ..conftest import friedman
from .tasks import task_of

FITS = {"features": "gaussian", "n_components": 300, "alpha": 1e-3, "rng": 0}
CASES = ("squared", "huber", "poisson", "logistic", "squared_hinge", "multinomial", "two outputs")


def problem(case, rng, n=300):
    """Return the rows, the targets, and the name of the loss."""
    X, f = friedman(rng, n, 6)
    f = (f - f.mean()) / f.std()
    targets = {
        "poisson": lambda: rng.poisson(np.exp(f)).astype(float),
        "logistic": lambda: f > 0,
        "squared_hinge": lambda: f > 0,
        "multinomial": lambda: np.digitize(f, [-0.5, 0.5]),
        "two outputs": lambda: np.c_[f, 5 * X[:, 0]],
    }
    return X, targets.get(case, lambda: f)(), {"two outputs": "squared"}.get(case, case)


def fitted(case, rng, n=300):
    """Return a model, its rows X, and its task."""
    X, y, loss = problem(case, rng, n)
    model = srf.sparse_rf(X, y, loss=loss, scale=None, **FITS)
    return model, X, task_of(X, y, loss)


def mean_loss(model, X, task):
    """Return the mean loss of all targets, in the unit of the first."""
    unit, loss = task.unit(task.targets[0]), task.loss_of(task.targets[0])
    f = np.atleast_2d(model.decision_function(X).T)
    z = (f - np.concatenate([np.ravel(c) for c in task.centers])[:, None]) / unit
    y = np.stack([task.target_of(y) * (task.unit(y) / unit) for y in task.targets])
    return float(task.weight @ np.atleast_2d(loss.value(z, y)).sum(axis=0)) / len(task.weight)


@pytest.mark.parametrize("case", CASES)
def test_the_change_is_within_what_it_may_cost(case, rng):
    """Half the curvature times the mean square of the change, over the rows and as many made rows;
    so the loss of the rows rises by at most what the curvature allows."""
    model, X, task = fitted(case, rng)
    unit, before = task.unit(task.targets[0]), mean_loss(model, X, task)
    weight, c = loss_curvature(task, model.features.rows_of(X), model, unit)
    fewer = []
    for share in (0.01, 0.1):
        worth = share * before
        small = drop_terms(model, task, worth, 2_000, 800)
        fewer.append(len(small.support))
        e = (small.decision_function(X) - model.decision_function(X)) / unit
        squares = np.square(e).reshape(len(X), -1).sum(axis=1)
        cost = c * float(weight @ squares) / len(X) / 2
        assert 0 < cost <= 2 * worth * (1 + 1e-9)
        if case != "poisson":  # L'^2 <= 2 c L where L >= 0 and L'' <= c
            assert mean_loss(small, X, task) <= (np.sqrt(before) + np.sqrt(cost)) ** 2
        assert set(small.support) <= set(model.support) and small.info.n_nonzero == fewer[-1]
    assert 0 < fewer[1] < fewer[0] < len(model.support)


@pytest.mark.slow
def test_on_many_rows_the_loss_rises_by_what_was_asked_for(rng):
    """Without made rows the mean square of the change, times half the curvature, is what it may
    cost."""
    model, X, task = fitted("squared", rng, FEW_ROWS + 1)
    unit = task.unit(task.targets[0])
    for worth in (1e-4, 1e-3):
        small = drop_terms(model, task, worth, 2_000, 800)
        change = np.mean((model.predict(X) - small.predict(X)) ** 2) / unit**2
        assert 0 < change / 2 <= worth * (1 + 1e-9)


@pytest.mark.parametrize("case", ["squared", "multinomial", "two outputs"])
@pytest.mark.parametrize("max_terms", [1, 7, 20])
def test_at_most_so_many_terms(case, max_terms, rng):
    model, _, task = fitted(case, rng)
    one = drop_terms(model, task, 0.0, max_terms, 800)
    other = drop_terms_at_once(model, task, max_terms)
    for small in (one, other):
        assert len(small.support) == small.coef.shape[-1] == len(small.features) == max_terms
        assert small.info.n_nonzero == max_terms and set(small.support) <= set(model.support)
    assert drop_terms_at_once(model, task, len(model.support)) is model


def test_a_model_without_terms_stays_as_it_is(rng):
    X, y, _ = problem("squared", rng)
    model = srf.sparse_rf(X, y, **FITS | {"alpha": 1e3})
    assert drop_terms(model, task_of(X, y), 0.1, 10, 800) is model


def test_of_many_terms_those_that_vary_most_may_stay(rng):
    model, X, task = fitted("squared", rng)
    few = drop_terms(model, task, 1e-12, 2_000, 15)
    assert len(few.support) <= 15 < len(model.support)
    varies = np.std(model.coef * model.features.transform(X), axis=0)
    assert set(few.support) <= set(model.support[np.argsort(-varies)[:15]])


@pytest.mark.slow
@pytest.mark.parametrize("case", ["squared", "poisson"])
def test_made_rows_keep_the_model_between_the_rows(case, monkeypatch):
    """With them the pruned model is nearer to what it was on new rows: with a loss whose curvature
    has no bound, too. The mean log ratio of five seeds is -.4 and -2.6, its spread .1 and .3."""
    ratios = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y, loss = problem(case, rng, 100)
        model = srf.sparse_rf(X, y, loss=loss, scale=None, **{**FITS, "rng": seed})
        task, (X_new, _) = task_of(X, y, loss), friedman(rng, 1_000, 6)
        changes = []
        for few in (FEW_ROWS, 0):
            monkeypatch.setattr("sparserf.algorithms.default.fewer_terms.FEW_ROWS", few)
            small = drop_terms(model, task, 1e-3, 2_000, 800)
            f, g = (each.decision_function(X_new) for each in (model, small))
            changes.append(np.mean((f - g) ** 2))
        ratios.append(np.log(changes[0] / changes[1]))
    assert np.mean(ratios) < 0


def test_csr_rows_are_pruned_as_they_are(rng):
    X, y, _ = problem("squared", rng)
    X[X < 0.3] = 0.0
    how = FITS | {"scale": None}
    model, task = srf.sparse_rf(csr_array(X), y, **how), task_of(csr_array(X), y)
    small = drop_terms(model, task, 1e-3, 2_000, 800)
    assert 0 < len(small.support) < len(model.support)
    change = model.predict(csr_array(X)) - small.predict(csr_array(X))
    assert np.mean(change**2) / 2 <= 1e-3 * task.unit(task.targets[0]) ** 2 * (1 + 1e-9)


@pytest.mark.parametrize("case", ["squared", "logistic", "multinomial", "poisson"])
def test_the_curvature_bounds_the_loss_of_a_change(case, rng):
    """To second order: L(z + e) is at most L(z) + L'(z) e + c e^2 / 2 in the mean, also where the
    curvature has no bound and is that at the model."""
    model, X, task = fitted(case, rng)
    unit, loss = task.unit(task.targets[0]), task.loss_of(task.targets[0])
    weight, c = loss_curvature(task, model.features.rows_of(X), model, unit)
    f = np.atleast_2d(model.decision_function(X).T)
    z = (f - np.concatenate([np.ravel(v) for v in task.centers])[:, None]) / unit
    y = np.stack([task.target_of(y) for y in task.targets])
    e = 1e-2 * rng.standard_normal(z.shape)
    value = lambda z: float(task.weight @ np.atleast_2d(loss.value(z, y)).sum(axis=0))  # noqa: E731
    slope = float((task.weight * loss.derivative(z, y) * e).sum())
    bound = c * float(weight @ (e**2).sum(axis=0)) / 2
    assert value(z + e) <= value(z) + slope + 1.01 * bound


def test_collinear_terms_are_dropped_without_huge_coefficients(monkeypatch):
    """Of smooth cosines, thousands are nearly collinear: coefficients that cancel at the rows alone
    would be far from the model elsewhere."""
    monkeypatch.setattr("sparserf.algorithms.default.fewer_terms.FEW_ROWS", 0)
    monkeypatch.setattr("sparserf.algorithms.polish.WORK", 0)  # none are moved
    largest = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, features = rng.standard_normal((300, 8)), srf.Fourier(gamma=0.003).draw(600, 8, rng=seed)
        coef, info = (
            0.05 * rng.standard_normal(600),
            srf.FitInfo(1, True, (1.0,), 0.0, 600, 600, 0.1),
        )
        model = srf.SparseModel(coef, 0.0, np.arange(600), features, "squared", None, info)
        task = task_of(X, model.predict(X), "squared")
        small = drop_terms(model, task, 1e-12, 280, 600)
        largest.append(abs(small.coef).max())
    assert np.mean(largest) < 0.8  # .27; 1.7 where nothing holds them
