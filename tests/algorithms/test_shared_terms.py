"""Several classes on shared terms: after a search, every class takes a coefficient of every term
that any class has found."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import sparserf as srf
from sparserf.algorithms.sparse_rf import search, shared

from ..conftest import bits

EACH_LOSS = pytest.mark.parametrize("loss", ["logistic", "multinomial"])
HOW = {"n_models": 1, "features": "gaussian", "n_components": 300, "rng": 0}


def digits(n):
    """Return (X, y) of n of scikit-learn's digits, in random order, and of all the others."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / 16, y[order]
    return (X[:n], y[:n]), (X[n:], y[n:])


def errors(model, X, y):
    """Return (the mean of -log of the probability of the label, the share of wrong labels)."""
    p = model.predict_proba(X)
    return -np.log(p[np.arange(len(y)), y]).mean(), np.mean(model.predict(X) != y)


@EACH_LOSS
def test_classes_that_share_their_terms_are_predicted_better(monkeypatch, loss):
    """All classes have a coefficient of every term; without sharing, each has few."""
    (X, y), test = digits(400)
    model = srf.sparse_rf(X, y, loss=loss, **HOW)
    assert np.all(model.coef != 0)
    assert model.info.converged
    monkeypatch.setattr(search, "with_shared_terms", lambda best, *_: (best, False))
    # whose coefficients are of all classes, too
    monkeypatch.setattr(search, "drop_terms", lambda model, *_: model)
    apart = srf.sparse_rf(X, y, loss=loss, **HOW)
    assert np.mean(apart.coef != 0) < 0.3
    (of_shared, wrong), (of_apart, wrong_apart) = (errors(each, *test) for each in (model, apart))
    # .61 to .76 of the loss, and .70 to .77 of the errors
    assert of_shared < 0.8 * of_apart and wrong < wrong_apart
    assert model.info.validation_loss < apart.info.validation_loss


@EACH_LOSS
def test_terms_are_shared_only_where_that_is_worth_it(monkeypatch, loss):
    ((X, y), _), taken = digits(200), []
    real = shared.with_shared_terms

    def watched(best, *args):
        taken.append(real(best, *args)[0] is not best)
        return real(best, *args)

    monkeypatch.setattr(search, "with_shared_terms", watched)
    monkeypatch.setattr(shared, "WORTH_SHARING", 1.0)
    srf.sparse_rf(X, y, loss=loss, **HOW)
    assert taken == [False]
    srf.sparse_rf(X, y == 0, loss=loss, **HOW)
    assert taken == [False]  # there is nobody to share with


@EACH_LOSS
def test_the_bits_are_those_of_any_number_of_workers(loss):
    (X, y), _ = digits(400)
    one, two = (srf.sparse_rf(X, y, loss=loss, workers=workers, **HOW) for workers in (1, 2))
    assert bits(one) == bits(two) and np.all(one.coef != 0)


@EACH_LOSS
def test_rows_on_disk_have_the_same_model(loss):
    (X, y), _ = digits(400)
    one, two = (
        srf.sparse_rf(rows, y, loss=loss, **HOW) for rows in (X, srf.Chunks(X, block_rows=150))
    )
    assert np.all(one.coef != 0)
    np.testing.assert_allclose(
        one.decision_function(X), two.decision_function(X), rtol=1e-6, atol=1e-6
    )


@EACH_LOSS
def test_a_row_of_weight_zero_is_left_out(loss):
    (X, y), _ = digits(400)
    twice = np.concatenate([X, X + 1]), np.concatenate([y, y])
    one = srf.sparse_rf(X, y, loss=loss, **HOW)
    two = srf.sparse_rf(*twice, sample_weight=np.repeat([1.0, 0.0], 400), loss=loss, **HOW)
    np.testing.assert_allclose(
        one.decision_function(X), two.decision_function(X), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("how", [{"time_limit": 0.05}, {"effort": 1e-3}], ids=str)
@pytest.mark.filterwarnings("ignore")  # that not all was done
def test_effort_and_time_bound_it(how):
    (X, y), _ = digits(200)
    model = srf.sparse_rf(X, y, loss="multinomial", rng=0, **how)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)


@EACH_LOSS
def test_a_callback_may_end_it_at_any_time(monkeypatch, loss):
    """While classes share their terms, too: there the callback is called, and what it has ended
    gives a model."""
    (X, y), _ = digits(200)
    where, real = [], shared.SharedFit.minimise

    def minimise(fit, *args):
        where.append("shared")
        real(fit, *args)
        where.append("after")

    def callback(info):
        where.append("called")
        return where[-2:] == ["shared", "called"]

    monkeypatch.setattr(shared.SharedFit, "minimise", minimise)
    monkeypatch.setattr("sparserf._base.progress.SECONDS_BETWEEN_CALLS", 0.0)
    model = srf.sparse_rf(X, y, loss=loss, callback=callback, **HOW)
    # one penalty and, where that is the best, the fit to all rows
    assert where.count("shared") in (1, 2)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
