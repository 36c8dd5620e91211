"""Linear functions of the columns that they need: which are dropped, by what that costs on rows
held out, and what is left of the others."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import sparserf as srf
from sparserf.algorithms.default.all_rows import fitted_to_all_rows
from sparserf.algorithms.default.members import as_functions
from sparserf.algorithms.default.paths import MemberPath
from sparserf.algorithms.default.ridge_path import RidgePath, WideRidgePath
from sparserf.algorithms.default.stack import Stack
from sparserf.algorithms.model_of_fits import model_of
from sparserf.features.blocks import LinearBlock

from .tasks import task_of
from .test_stack import held_out_loss, path_of

OPTIONS = SimpleNamespace(fit_intercept=True, callback=None)
LOSSES = ["squared", "logistic", "poisson", "multinomial"]
# The columns that say something.
USED = [3, 17, 30]


def rows_and_target(rng, loss="squared", n=300, d=40):
    X = rng.standard_normal((n, d)) * rng.choice([0.1, 1.0, 10.0], d)
    f = (X / X.std(axis=0))[:, USED] @ [1.0, -0.7, 0.5]
    y = {
        "logistic": lambda: f + 0.5 * rng.logistic(size=n) > 0,
        "poisson": lambda: rng.poisson(np.exp(f)).astype(float),
        "multinomial": lambda: np.digitize(f + 0.3 * rng.standard_normal(n), [-0.7, 0.7]),
    }.get(loss, lambda: f + 0.5 * rng.standard_normal(n))()
    return X, y


def path_at(kind, X, y, loss="squared", alpha=0.1, fitted=None):
    """Return a path of linear functions at this penalty."""
    path = kind(task_of(X, y, loss), OPTIONS, fitted)
    path.fit_at(alpha)
    return path


def drop_down_to(path, n):
    while len(path.index) > n:
        path.drop_columns()


def weights(model):
    """Return the weights of the linear functions of a model, (n_functions, n_inputs)."""
    own = [b.matrix for b in model.features.blocks if isinstance(b, LinearBlock) and b.is_matrix]
    return np.concatenate(own) if own else np.zeros((0, model.features.n_inputs))


# On a fold


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", [RidgePath, WideRidgePath])
def test_columns_that_say_nothing_are_dropped_first(kind, loss, rng):
    X, y = rows_and_target(rng, loss)
    path = path_at(kind, X, y, loss)
    drop_down_to(path, 4)
    assert len(path.index) == 4 and set(USED) < set(path.index.tolist())
    features, index, w, _ = path.state()
    assert len(features) == len(index) == w.shape[1] == 4


def test_words_are_dropped_by_what_they_add_and_rows_stay_sparse(rng):
    """A rare word with a large weight says less than a frequent one."""
    X = np.c_[rng.random(400) < 0.5, rng.random(400) < 0.01, rng.random((400, 30)) < 0.2] * 1.0
    y = X[:, 0] + X[:, 1] + 0.01 * rng.standard_normal(400)
    path = path_at(WideRidgePath, sp.csr_matrix(X), y, alpha=1e-3)
    assert path.w[0, 1] == pytest.approx(path.w[0, 0], rel=0.2)
    drop_down_to(path, 1)
    assert path.index.tolist() == [0] and sp.issparse(path._X)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", [RidgePath, WideRidgePath])
def test_margins_are_those_of_the_columns_left(kind, loss, rng):
    """Of rows fitted, and of those held out."""
    X, y = rows_and_target(rng, loss)
    path = path_at(kind, X, y, loss, fitted=np.arange(300) < 200)
    task = task_of(X, y, loss)
    unit = task.unit(task.targets[0])
    for n in (40, 19, 4):
        drop_down_to(path, n)
        _, index, w, b = path.state()
        assert_allclose(path.margins() * unit, (X[:, index] @ w.T + b).T, atol=1e-8 * unit)


def test_weights_are_those_of_ridge_regression_on_the_columns_left(rng):
    X, y = rows_and_target(rng)
    path = path_at(RidgePath, X, y)
    drop_down_to(path, 9)
    alone = path_at(RidgePath, X[:, path.index], y)
    assert_allclose(path.state()[2], alone.state()[2], rtol=1e-4)
    near = path_at(WideRidgePath, X, y)
    drop_down_to(near, 9)
    assert np.array_equal(near.index, path.index)
    assert_allclose(near.w, path.w, atol=0.03 * np.abs(path.w).max())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", [RidgePath, WideRidgePath])
def test_a_path_returns_to_what_was_found(kind, loss, rng):
    X, y = rows_and_target(rng, loss)
    path = path_at(kind, X, y, loss)
    state, margins, alpha = path.state(), path.margins(), path.alpha
    path.fit_at(1e-3)
    assert not np.allclose(path.margins(), margins)
    path.return_to(alpha, state)
    assert path.alpha == alpha
    assert_allclose(path.margins(), margins, atol=1e-9)


def test_the_penalty_stays_where_classes_can_be_told_apart(rng):
    """As a share of the curvature it would fall at each step, and margins would grow."""
    X = np.c_[np.sign(rng.standard_normal(200)), 0.01 * rng.standard_normal((200, 30))]
    path = path_at(RidgePath, X, X[:, 0] > 0, "logistic", alpha=0.3)
    before = np.abs(path.margins()).mean()
    drop_down_to(path, 2)
    assert np.abs(path.margins()).mean() == pytest.approx(before, rel=0.2)


def test_functions_have_no_weight_for_columns_that_were_dropped(rng):
    X, y = rows_and_target(rng, "multinomial")
    task = task_of(X, y, "multinomial")
    path = RidgePath(task, OPTIONS)
    path.fit_at(0.1)
    drop_down_to(path, 6)
    model = as_functions(model_of([path], task, certified=False))
    assert np.array_equal(np.flatnonzero(weights(model).any(axis=0)), path.index)
    _, index, w, b = path.state()
    centers = np.concatenate([np.ravel(c) for c in task.centers])
    assert_allclose(model.decision_function(X), X[:, index] @ w.T + b + centers, atol=1e-9)


# In the stack


def columns_of_stack(sizes_of_noise, share):
    """Return the place of the path taken, of paths whose predictions have more and more noise."""
    loss = held_out_loss()
    noise = np.random.default_rng(1).standard_normal(loss.targets.shape) * loss.targets.std()
    first, *others = (path_of(0.9 * loss.targets + size * noise) for size in sizes_of_noise)
    first = replace(first, sparser=others)
    stack = Stack.of(loss, [first], True).with_fewest_columns(share)
    places = {id(path): k for k, path in enumerate([first, *others])}
    (path,) = stack.paths
    assert stack.loss_of_stack == pytest.approx(
        Stack.of(loss, [path], True).loss_of_stack, rel=1e-4
    )
    return places[id(path)]


@pytest.mark.parametrize(
    ("sizes", "share", "expected"),
    [
        ([0.3, 0.3001, 0.4], 0.01, 1),
        ([0.3, 0.29, 0.28, 0.5], 0.01, 2),
        ([0.3, 0.4, 0.29], 0.01, 2),  # none is told by the one before
        ([0.3, 0.31, 0.4], 0.001, 0),
        ([0.3, 0.31, 0.6], 0.05, 1),
        ([0.3], 0.01, 0),
    ],
)
def test_the_fewest_columns_are_taken_that_cost_no_more_than_a_share(sizes, share, expected):
    assert columns_of_stack(sizes, share) == expected


def test_a_member_that_does_not_count_keeps_its_path():
    loss = held_out_loss()
    good, bad = path_of(loss.targets), path_of(-loss.targets)
    bad = replace(bad, sparser=[path_of(0 * loss.targets)])
    stack = Stack.of(loss, [good, bad], True)
    assert stack.with_fewest_columns(0.1).paths[1] is bad
    assert isinstance(bad, MemberPath)


# The model


def columns_of_noise(seed, n=500, d=120):
    """Return 0 or 1 columns, of which six say something, and 3,000 more rows."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n + 3000, d)) < 0.3).astype(float)
    y = X[:, :6] @ [2.0, -2.0, 1.5, 1.5, -1.0, 1.0] + 0.7 * rng.standard_normal(n + 3000)
    return X, y, n


@pytest.mark.nightly
def test_noise_has_few_weights_and_the_error_is_less_than_with_all(monkeypatch):
    few, errors = [], []
    for seed in range(5):
        X, y, n = columns_of_noise(seed)
        model = srf.sparse_rf(X[:n], y[:n], rng=seed, verbose=False)
        with monkeypatch.context() as patch:
            patch.setattr(Stack, "with_fewest_columns", lambda stack, share: stack)
            whole = srf.sparse_rf(X[:n], y[:n], rng=seed, verbose=False)
        assert np.count_nonzero(weights(whole)) == X.shape[1]
        few.append(np.count_nonzero(weights(model)))
        error, all_columns = (np.mean((m.predict(X[n:]) - y[n:]) ** 2) for m in (model, whole))
        errors.append(error / all_columns)
    assert np.mean(few) < 30 and max(few) < 60
    assert np.mean(errors) + 2 * np.std(errors) / 5**0.5 < 1.002


def linear_table(rng, n=250):
    """Return a frame of which two numbers and some levels say something, and its target."""
    shop = rng.integers(0, 9, n)
    X = pd.DataFrame(rng.standard_normal((n, 12)), columns=[f"number_{k}" for k in range(12)])
    X["shop"] = [f"shop_{k}" for k in shop]
    return X, 3 * X["number_0"] - 2 * X["number_5"] + 2.0 * (shop == 3) + 0.5 * rng.standard_normal(
        n
    )


@pytest.mark.slow
def test_what_has_no_weight_is_not_written(rng):
    """In no language: neither columns nor levels."""
    X, y = linear_table(rng)
    model = srf.sparse_rf(X, y, effort=0.2, rng=0, verbose=False)
    encoder, inputs = model.features.encoder, model.features.inputs_seen
    seen = np.isin(np.arange(X.shape[1]), encoder.column[inputs])
    assert 2 <= seen.sum() < X.shape[1]
    for language in ("text", "sql", "python", "javascript"):
        text = model.formula(language, n_terms=None)
        written = [bool(re.search(rf"{name}\b", text)) for name in X.columns]
        assert written == seen.tolist()


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
def test_functions_are_written_and_counted_without_the_columns_dropped(loss, rng):
    X, y = rows_and_target(rng, loss)
    path = path_at(RidgePath, X, y, loss)
    drop_down_to(path, 6)
    model = as_functions(model_of([path], task_of(X, y, loss), certified=False))
    assert set(map(int, re.findall(r'"x(\d+)"', model.formula("sql")))) == set(path.index.tolist())
    K = len(np.atleast_2d(model.coef))
    assert model.size <= K + K + 2 * 6 * K


@pytest.mark.slow
def test_several_workers_have_the_same_bits(rng):
    X, y = rows_and_target(rng, n=120)
    models = [srf.sparse_rf(X, y, effort=0.3, rng=0, workers=n, verbose=False) for n in (1, 2)]
    one, two = map(weights, models)
    assert 0 < np.count_nonzero(one) < 40 and np.array_equal(one, two)


@pytest.mark.slow
def test_a_monotone_column_stays_so(rng):
    X, y = rows_and_target(rng, n=150, d=40)
    model = srf.sparse_rf(X, y, monotone={3: 1}, effort=0.3, rng=0, verbose=False)
    A = np.repeat(X[:1], 50, axis=0)
    A[:, 3] = np.linspace(X[:, 3].min(), X[:, 3].max(), 50)
    assert (np.diff(model.predict(A)) >= 0).all()


def test_weights_for_all_rows_stay_zero(rng):
    """The weights that are fitted to all rows at the end are those of whole functions."""
    X, y = rows_and_target(rng)
    task = task_of(X, y)
    path = RidgePath(task, OPTIONS)
    path.fit_at(0.1)
    drop_down_to(path, 6)
    model = as_functions(model_of([path], task, certified=False))
    again = fitted_to_all_rows(model, 100, task, True)
    assert np.array_equal(weights(again) != 0, weights(model) != 0)
    assert np.count_nonzero(weights(again)) == 6
