"""max_order of `sparse_rf`: terms of at most so many inputs."""

import numpy as np
import pytest

import sparserf as srf

from ..fitted_models import FEW, X, Y


def orders(model):
    """Return how many columns each term sees, but for linear functions."""
    one = [model.features.take([k]) for k in np.flatnonzero(~model.features.is_linear)]
    return [np.count_nonzero(each.columns_seen) for each in one]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("alpha", [None, 0.03])
def test_terms_of_few_inputs(order, alpha):
    """No term has more inputs than max_order, also after moves that join features; linear
    functions, sums over inputs, are exempt."""
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    model = srf.sparse_rf(X[5:], y[5:], alpha=alpha, max_order=order, n_components=1000, rng=0)
    assert max(orders(model)) == order
    told = 1 - np.var(model.predict(X[5:]) - y[5:]) / y[5:].var()
    assert (told > 0.8) == (order == 2)


def test_bad_orders_are_named():
    for order, how in ((0, {}), (1.5, {}), (2, {"features": "gaussian"})):
        with pytest.raises((ValueError, TypeError), match="max_order"):
            srf.sparse_rf(X, Y, max_order=order, alpha=0.1, **how)


def test_max_order_of_a_path():
    one, other = (
        srf.sparse_rf(X, Y, alpha=0.05, max_order=1, **FEW),
        srf.sparse_rf_path(X, Y, alphas=[0.05], max_order=1, **FEW)[0],
    )
    assert one.coef.tobytes() == other.coef.tobytes()
    assert max(orders(other)) == 1


def test_no_limit_of_the_order_is_the_same_as_one_of_all():
    one, other = (srf.sparse_rf(X, Y, alpha=0.05, max_order=order, **FEW) for order in (None, 4))
    assert one.coef.tobytes() == other.coef.tobytes()
