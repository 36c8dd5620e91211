"""One model of several: the weighted sum of what they predict, encodings side by side, linear
functions added up, and the intercept that is best for all rows."""

from dataclasses import replace

import numpy as np
import pytest

import sparserf as srf
from sparserf.algorithms.default.mean import (
    merge_linear_functions,
    weighted_sum,
    widen_encodings,
    with_best_intercept,
)
from sparserf.features import FIRST_DRAW, linear_functions

from ..columns.encoders import encoder_of
from .tasks import task_of

N = 60


def model_of(features, support, coef, intercept=None, loss="squared", classes=None):
    shape = np.shape(coef)[:-1]
    intercept = (np.zeros(shape) if shape else 0.0) if intercept is None else intercept
    info = srf.FitInfo(4, True, (5.0,), 0.1, 100, len(support), 0.5)
    support = np.asarray(support, np.int64)
    return srf.SparseModel(coef, intercept, support, features, loss, classes, info)


# The sum


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_sum_predicts_the_weighted_sum(rng, n_outputs):
    """Each term is there once, in the order of the dictionary, in whatever blocks it was."""
    X = rng.standard_normal((N, 3))
    task = task_of(X, 1e3 + rng.standard_normal((N, n_outputs) if n_outputs > 1 else N))
    pool = srf.Fourier(gamma=0.5).draw(30, 3, rng=0).concat(srf.Linear().draw(None, 3))
    pool, shape = pool.take(rng.permutation(33)), (n_outputs,) if n_outputs > 1 else ()
    centers = np.reshape(np.concatenate([np.ravel(c) for c in task.centers]), shape)
    models = []
    for support in ([1, 5, 9, 30], [5, 30, 31], [], [0, 1, 5, 32]):
        coef = rng.standard_normal((*shape, len(support)))
        b = centers + rng.standard_normal(shape)
        b = b if shape else float(b)
        models.append(model_of(pool.take(np.array(support, int)), support, coef, b))
    u = [0.5, 0.25, 2.0, 1.5]
    b = rng.standard_normal(n_outputs)
    whole = weighted_sum(models, u, b, task)
    assert whole.support.tolist() == [0, 1, 5, 9, 30, 31, 32]
    assert whole.coef.shape == (*shape, 7) and whole.info.n_nonzero == len(whole.features) == 7
    around = centers + task.unit(task.targets[0]) * np.reshape(b, shape)
    away = [k * (m.predict(X) - around) for k, m in zip(u, models, strict=True)]
    expected = around + np.sum(away, axis=0)
    np.testing.assert_allclose(whole.predict(X), expected, rtol=1e-10)
    np.testing.assert_array_equal(
        whole.features.transform(X), pool.take(whole.support).transform(X)
    )
    assert type(whole.intercept) is (np.ndarray if shape else float)


def test_inputs_of_two_encodings_stay_different_terms(rng):
    """Of models of numbers in two units, each input counts as it was encoded."""
    X = np.exp(2 * rng.standard_normal((300, 6)))
    both = encoder_of(X).take(np.tile(np.arange(6), 2))
    encoder = replace(both, unit=both.unit * np.repeat([1.0, 3.0], 6))
    models, encodings = [], np.arange(12)
    for of_model in (encodings[:6], encodings[6:]):
        d = len(of_model)
        functions = linear_functions(rng.standard_normal((1, d)))
        cosine = srf.Fourier(gamma=0.5).draw(1, d, rng=0)
        features = srf.Linear().draw(None, d).take([0, 2]).concat(functions).concat(cosine)
        features = features.encoded(encoder.take(of_model))
        model = model_of(features, [0, 2, d, FIRST_DRAW], rng.standard_normal(4))
        models.append((model, widen_encodings(model, of_model, encodings, encoder)))
    for model, wide in models:
        np.testing.assert_allclose(wide.predict(X), model.predict(X))
        assert (np.diff(wide.support) > 0).all()
    assert models[0][1].support.tolist() == [0, 2, 12, FIRST_DRAW]
    assert models[1][1].support.tolist() == [6, 8, 12, FIRST_DRAW]


# Linear functions


@pytest.mark.parametrize("n_outputs", [1, 2, 3])
def test_linear_functions_become_one_for_each_output(rng, n_outputs):
    """Beside inputs and cosines, which stay as they are."""
    X, d = rng.standard_normal((50, 4)), 4
    inputs = srf.Linear().draw(None, d).take([1, 3])
    functions = linear_functions(rng.standard_normal((3, d)))
    features = inputs.concat(functions).concat(srf.Fourier(gamma=0.5).draw(2, d, rng=0))
    support = [1, 3, d, d + 1, d + 2, FIRST_DRAW, FIRST_DRAW + 7]
    shape = () if n_outputs == 1 else (n_outputs,)
    model = model_of(features, support, rng.standard_normal((*shape, 7)))
    merged = merge_linear_functions(model)
    assert merged.support.tolist() == [1, 3, *range(d, d + n_outputs), FIRST_DRAW, FIRST_DRAW + 7]
    assert merged.info.n_nonzero == len(merged.features) == 4 + n_outputs
    np.testing.assert_allclose(merged.predict(X), model.predict(X), atol=1e-12)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_linear_functions_of_any_size_add_up(rng, size):
    X, functions = rng.standard_normal((30, 5)), linear_functions(rng.standard_normal((7, 5)))
    model = model_of(functions, np.arange(5, 12), size * rng.standard_normal(7))
    one = merge_linear_functions(model)
    assert one.support.tolist() == [5]
    np.testing.assert_allclose(one.predict(X), model.predict(X), rtol=1e-9)


def test_a_model_without_linear_functions_is_left_as_it_is(rng):
    features = srf.Linear().draw(None, 4).concat(srf.Fourier(gamma=0.5).draw(2, 4, rng=0))
    model = model_of(features, [0, 1, 2, 3, FIRST_DRAW, FIRST_DRAW + 1], rng.standard_normal(6))
    assert merge_linear_functions(model) is model


# The intercept


@pytest.mark.parametrize("loss", ["poisson", "gamma", "logistic", "multinomial", "huber"])
def test_no_other_intercept_has_less_loss(rng, loss):
    X = rng.standard_normal((200, 3))
    f = X[:, 0] + 0.5 * rng.standard_normal(200)
    y = {"poisson": rng.poisson(np.exp(f)), "huber": f, "logistic": f > 0}.get(loss, np.exp(f))
    y, K = (np.digitize(f, [-1, 1]), 3) if loss == "multinomial" else (y, 1)
    task = task_of(X, y, loss)
    features = srf.Fourier(gamma=0.5).draw(5, 3, rng=0)
    shape = (K,) if K > 1 else ()
    intercept = np.zeros(K) if K > 1 else 0.0
    coef = 0.3 * rng.standard_normal((*shape, 5))
    model = model_of(features, np.arange(5), coef, intercept, loss, task.classes)
    best = with_best_intercept(model, task)
    of_task = task.loss_of(task.targets[0])
    targets = np.stack([task.target_of(y) for y in task.targets])
    unit = task.unit(task.targets[0])

    def loss_at(b):
        f = np.atleast_2d(replace(model, intercept=b).decision_function(X).T)
        z = (f - np.concatenate([np.ravel(c) for c in task.centers])[:, None]) / unit
        return np.atleast_2d(of_task.value(z, targets)).sum(axis=0).mean()

    least = loss_at(best.intercept)
    for step in (-0.01, 0.01):
        for k in range(K):
            other = best.intercept + (step * (np.arange(K) == k) if K > 1 else step)
            assert loss_at(other) > least - 1e-7
    assert np.array_equal(best.coef, model.coef)


def test_the_squared_loss_keeps_its_intercept(rng):
    X = rng.standard_normal((N, 3))
    model = model_of(srf.Linear().draw(None, 3), [0, 1, 2], rng.standard_normal(3))
    assert with_best_intercept(model, task_of(X, X[:, 0])) is model
