"""Linear functions of all columns: weights of directions that hardly vary."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import sparserf as srf
from sparserf.algorithms.default.ridge_path import LEAST_VARIANCE, RidgePath, missing_variance

from .tasks import task_of

OPTIONS = SimpleNamespace(fit_intercept=True, callback=None)


def weights(X, y, loss="squared"):
    """Return the weights in units of the deviations of the columns, with hardly a penalty."""
    path = RidgePath(task_of(X, y, loss), OPTIONS)
    path.fit_at(1e-12)
    return path.state()[2][0] * X.std(axis=0)


@pytest.mark.parametrize("loss", ["squared", "huber", "poisson", "logistic"])
def test_directions_that_hardly_vary_have_small_weights(loss, rng):
    """Of two columns that differ by a thousandth, the difference moves the target; the other column
    keeps its weight."""
    x, other, difference = rng.standard_normal((3, 2000))
    f = other + 0.5 * difference
    y = {
        "poisson": lambda: rng.poisson(np.exp(f)).astype(float),
        "logistic": lambda: f + rng.logistic(size=2000) > 0,
    }.get(loss, lambda: f)()
    a, b, c = weights(np.c_[x, x + 1e-3 * difference, other], y, loss)
    assert np.hypot(a, b) < 0.5  # of 350
    assert c == pytest.approx(1.0, abs=0.2)


def test_directions_that_vary_have_the_weights_of_least_squares(rng):
    X = rng.standard_normal((300, 4)) + rng.standard_normal((300, 1))
    assert np.linalg.eigvalsh(np.corrcoef(X.T))[0] > LEAST_VARIANCE
    w = rng.standard_normal(4)
    assert weights(X, X @ w) == pytest.approx(w * X.std(axis=0), rel=1e-4)


def test_eigenvalues_below_the_least_variance_are_lifted_to_it(rng):
    V, _ = np.linalg.qr(rng.standard_normal((5, 5)))
    C = V @ np.diag([0.0, 1e-5, 5e-4, 0.1, 3.0]) @ V.T
    lifted = np.linalg.eigvalsh(C + missing_variance(C))
    assert lifted == pytest.approx([LEAST_VARIANCE] * 3 + [0.1, 3.0], rel=1e-9)


@pytest.mark.slow
def test_nearly_collinear_columns_do_not_explode_later():
    """Month, day and day of the year, with an effect of each month, and rows of later months, in
    which two of the three are held at their ends."""
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        day = np.floor(
            np.sort(np.concatenate([rng.uniform(0, 273, 800), rng.uniform(273, 365, 400)]))
        )
        date = pd.to_datetime("2013-01-01") + pd.to_timedelta(day, "D")
        delay, effect = rng.gamma(0.6, 25, 1200), np.cumsum(6 * rng.standard_normal(12))
        y = delay + (effect - effect.mean())[date.month - 1] + 9 * rng.standard_normal(1200)
        X = np.c_[date.month, date.day, day + 1, delay].astype(float)
        model = srf.sparse_rf(X[:800], y[:800], rng=seed, verbose=False)
        errors.append(np.mean((model.predict(X[800:]) - y[800:]) ** 2) / y[:800].var())
    assert np.mean(errors) < 0.8
