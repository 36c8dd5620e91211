"""Whole points for rules: they change the model little, within the bound, and add up to what it
says."""

import csv
import io
from itertools import product

import numpy as np
import pandas as pd
import pytest

import sparserf as srf
from sparserf.algorithms.points import RuleSets, best_score, rounded
from sparserf.losses.classification import sigmoid

N_ROWS = 600


def table(seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(N_ROWS, 3)).astype(dtype)
    f = 3.0 * (X[:, 0] > 0.4) - 2.0 * (X[:, 1] <= 0.7) + 1.0 * (X[:, 2] > 0.5)
    return X, rng.random(N_ROWS) < sigmoid(f)


@pytest.fixture(scope="module")
def model():
    X, y = table()
    rules = {"features": srf.Rules(), "loss": "logistic", "max_terms": 6}
    return srf.sparse_rf(X, y, **rules, rng=0)


def sets_of(rng, k, n_sets=40):
    """Random sets of rules, and coefficients."""
    holds = np.hstack([rng.integers(0, 2, (n_sets, k)), np.ones((n_sets, 1))]).astype(float)
    w, s = 2 * rng.normal(size=k + 1), rng.random(n_sets)
    return RuleSets(holds, s / s.sum(), sigmoid(holds @ w)), w


@pytest.mark.parametrize("seed", range(20))
def test_rounding_costs_no_more_than_its_bound(seed):
    """This is Theorem 3.1: for each multiplier the loss rises by no more."""
    rng = np.random.default_rng(seed)
    sets, w = sets_of(rng, 1 + seed % 8)
    least = sets.loss(sets.holds @ w)
    for m in (0.3, 1.0, 2.7, 30.0):
        p, bound = rounded(sets, m * w, m)
        assert (np.abs(p - m * w) < 1).all() and (p == np.rint(p)).all()
        assert 0 <= sets.loss(sets.holds @ p / m) - least + 1e-15 <= bound + 2e-15
    p, bound = rounded(sets, np.rint(5 * w), 5.0)
    assert bound == 0 and (p == np.rint(5 * w)).all()


@pytest.mark.parametrize("seed", range(4))
def test_few_points_are_the_best_of_all(seed):
    """Two rules of at most two points: all of them are tried, with many multipliers."""
    sets, w = sets_of(np.random.default_rng(100 + seed), 2)
    score = best_score(sets, w, 2, np.zeros(2))
    every = np.array(list(product(range(-2, 3), range(-2, 3), range(-9, 10))), float)
    scales = np.geomspace(0.02, 20, 400)
    losses = [sets.loss(np.multiply.outer(sets.holds @ p, scales)).min() for p in every]
    assert score.divergence <= min(losses) - sets.loss(sets.holds @ w) + 1e-4
    assert (np.abs(score.points[:2]) <= 2).all()


@pytest.mark.slow
def test_points_add_up_to_what_the_model_predicts(model):
    X, _ = table(1)
    score = srf.points(model, X, max_points=5)
    assert 0 < max(map(abs, score.points)) <= 5 and 0 not in score.points
    holds = score.model.features.transform(X) != 0
    order = [score.rules.index(rule) for rule in srf.points(score.model, X, max_points=5).rules]
    assert sorted(order) == list(range(len(score.rules)))
    p = np.rint(score.model.coef * score.model.features.transform(X).max(axis=0) * score.multiplier)
    total = (holds @ p).astype(int)
    told = dict(score.sums)
    told = np.array([told[t] for t in total.tolist()])
    np.testing.assert_allclose(score.model.predict_proba(X)[:, 1], told, rtol=1e-9)
    q, g = model.predict_proba(X)[:, 1], told
    divergence = np.mean(q * np.log(q / g) + (1 - q) * np.log((1 - q) / (1 - g)))
    np.testing.assert_allclose(score.divergence, divergence, rtol=1e-6)
    assert score.divergence <= score.bound


def test_more_points_change_the_model_less(model):
    X, _ = table()
    divergences = [srf.points(model, X, max_points=m).divergence for m in (1, 3, 10, 100, 1_000)]
    assert divergences[-1] < 1e-6 and divergences[0] > 10 * divergences[2]


def test_a_row_of_weight_three_is_three_rows(model):
    X, _ = table()
    weight = np.random.default_rng(0).integers(0, 4, N_ROWS)
    one = srf.points(model, X, sample_weight=weight)
    other = srf.points(model, np.repeat(X, weight, axis=0))
    assert (one.points, one.offset, one.rules) == (other.points, other.offset, other.rules)
    np.testing.assert_allclose(one.divergence, other.divergence, rtol=1e-6)


@pytest.mark.parametrize("kind", ["float32", "chunks"])
def test_points_are_the_same_in_any_rows(model, kind):
    X, _ = table()
    same = X.astype(np.float32) if kind == "float32" else srf.Chunks(X, block_rows=200)
    one, other = srf.points(model, X), srf.points(model, same)
    assert (one.points, one.offset) == (other.points, other.offset)


def test_rules_that_must_rise_get_no_negative_points():
    X, y = table()
    rules = {"features": srf.Rules(), "loss": "logistic", "max_terms": 8, "effort": 0.2}
    model = srf.sparse_rf(X, y, **rules, monotone={0: 1, 1: 1, 2: 1}, rng=0)
    score = srf.points(model, X, max_points=3)
    assert model.features.nonnegative.all() and score.points
    low, high = X[:-1], np.maximum(X[:-1], X[1:])  # not below in any column
    assert (score.model.decision_function(high) >= score.model.decision_function(low)).all()


@pytest.mark.slow
def test_a_table_prints_and_is_read_back():
    """Names and levels that are hostile stay in their cells."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {'size, "m"': rng.normal(size=400), "town": rng.choice(['a"b', "c,d\ne", "f"], 400)}
    )
    X.iloc[::7, 0] = np.nan
    f = 2.0 * (X.iloc[:, 0] > 0) - 3.0 * (X.town == "f")
    y = np.where(rng.random(400) < sigmoid(f.to_numpy()), "yes", "no")
    rules = {"features": srf.Rules(), "loss": "logistic", "max_terms": 5}
    score = srf.points(srf.sparse_rf(X, y, **rules, rng=0), X)
    lines = str(score).splitlines()
    assert lines[0] == "points for yes where a rule holds" and max(map(len, lines)) <= 100
    read = list(csv.reader(io.StringIO(score.to_csv())))
    assert [int(row[0]) for row in read[1 : 1 + len(score.points)]] == list(score.points)
    assert all(len(row) == 2 for row in read if row) and read[len(score.points) + 1] == []
    assert len(read[len(score.points) + 3 :]) == len(score.sums)


def test_a_model_that_says_nothing_has_no_points(model):
    from dataclasses import replace

    X, _ = table()
    nothing = replace(model, coef=0.0 * model.coef)
    score = srf.points(nothing, X)
    assert score.points == () and len(score.model.features) == 0
    np.testing.assert_allclose(
        score.model.predict_proba(X)[:, 1], sigmoid(np.array(model.intercept)), atol=0.05
    )


@pytest.mark.slow
def test_what_cannot_have_points_is_said(model):
    X, y = table()
    with pytest.raises(TypeError, match="model must be a SparseModel, got dict"):
        srf.points({}, X)
    real = srf.sparse_rf(X, X[:, 0] + y, features=srf.Rules(), max_terms=3, effort=0.1, rng=0)
    with pytest.raises(ValueError, match="must be a classifier of two classes"):
        srf.points(real, X)
    waves = srf.sparse_rf(X, y, features="gaussian", alpha=0.02, loss="logistic", rng=0)
    with pytest.raises(ValueError, match="must have no terms but rules, got cos"):
        srf.points(waves, X)
    many = srf.sparse_rf(X, y, features=srf.Rules(), alpha=1e-3, loss="logistic", rng=0)
    with pytest.raises(ValueError, match="must have 1 to 20 rules, got"):
        srf.points(many, X)
    with pytest.raises(ValueError, match="max_points must be at least 1, got 0"):
        srf.points(model, X, max_points=0)
    with pytest.raises(ValueError, match="at least one row"):
        srf.points(model, X[:0])
