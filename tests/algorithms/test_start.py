"""Fits that start from a model: they reach the optimum of a fit from nothing in less work, whatever
the model was fitted to."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf.features import linear_functions

from ..conftest import bits, ignore_convergence, r2

N = 400
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 3))
F = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
TARGETS = {
    "squared": F + 0.1 * RNG.standard_normal(N) + 7.0,
    "huber": F + 0.1 * RNG.standard_t(2, N),
    "poisson": RNG.poisson(3 * np.exp(F)).astype(float),
    "logistic": np.where(F > 0, "yes", "no"),
    "multinomial": np.digitize(F, [-0.7, 0.7]),
    "one against the rest": np.digitize(F, [-0.7, 0.7]),
    "outputs": np.column_stack([F + 5, -(F**2), F + 0.3 * RNG.standard_normal(N)]),
}
LOSSES = {"one against the rest": "logistic", "outputs": "squared"}
FIXED = srf.Fourier(gamma=0.3).draw(300, 3, rng=1)
ALPHA = {"poisson": 0.05}
FIRST, HALF = slice(0, N // 2), slice(N // 2, N)
AUTO = {"alpha": 0.01, "n_components": 1000, "rng": 0}


def fit(name, rows=slice(None), features=FIXED, **how):
    """Fit a target by its loss to some rows."""
    how = {"alpha": ALPHA.get(name, 0.01), "exact": True, "tol": 1e-7, **how}
    return srf.sparse_rf(
        X[rows], TARGETS[name][rows], loss=LOSSES.get(name, name), features=features, **how
    )


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "Algorithm 1"])
@pytest.mark.parametrize("name", TARGETS)
def test_the_optimum_is_that_of_a_fit_from_nothing(name, exact):
    """For other rows, a larger and a smaller penalty, over one dictionary in one batch: certified,
    and at the same indices."""
    start = fit(name, FIRST)
    for factor, rows in ((1.0, slice(None)), (0.3, FIRST), (3.0, HALF)):
        how = {"alpha": factor * ALPHA.get(name, 0.01), "exact": exact}
        one, other = fit(name, rows, start=start, **how), fit(name, rows, **how)
        assert one.info.converged and other.info.converged
        gap = max(one.info.dual_gap, other.info.dual_gap) + 1e-12
        assert abs(one.info.objective[-1] - other.info.objective[-1]) <= gap
        assert np.allclose(one.decision_function(X), other.decision_function(X), atol=2e-2)
        np.testing.assert_array_equal(
            one.features.transform(X[:5]), FIXED.take(one.support).transform(X[:5])
        )


@pytest.mark.parametrize("name", TARGETS)
def test_it_takes_fewer_passes_than_a_fit_from_nothing(name):
    start = fit(name)

    def passes(**how):
        """Return how often the rows are read."""
        starts = []
        chunks = srf.Chunks(
            lambda start, stop: starts.append(start) or X[start:stop], X.shape, block_rows=100
        )
        how = {"alpha": start.info.alpha, "exact": True, "tol": 1e-4, **how}
        loss = LOSSES.get(name, name)
        srf.sparse_rf(chunks, TARGETS[name], loss=loss, features=FIXED, **how)
        return min(map(starts.count, starts))

    assert passes(start=start) < 0.5 * passes()  # the same penalty: nothing is left to do
    assert passes(start=start, alpha=0.8 * start.info.alpha) < passes(alpha=0.8 * start.info.alpha)


@ignore_convergence
@pytest.mark.parametrize("name", TARGETS)
def test_a_dictionary_that_learns_goes_on(name):
    """New draws follow the terms of the start and lower the objective; no index occurs twice,
    however often a fit goes on."""
    how = {"features": "auto", "exact": False, "tol": 1e-3, "n_components": 500, "rng": 0}
    model = fit(name, FIRST, **how)
    assert bits(fit(name, start=model, **how)) == bits(fit(name, start=model, workers=2, **how))
    models = [model]
    for _ in range(3):
        models.append(fit(name, start=models[-1], **how))
    for one, more in pairwise(models[1:]):
        assert more.info.objective[-1] < one.info.objective[-1] + one.info.dual_gap
    for one, more in pairwise(models):
        shared = np.intersect1d(one.support, more.support)
        assert len(np.unique(more.support)) == len(more.support) and 0 < len(shared) < len(
            more.support
        )
        of_both = (
            model.features.take(np.searchsorted(model.support, shared)).transform(X[:5])
            for model in (one, more)
        )
        np.testing.assert_array_equal(*of_both)
        assert more.support[~np.isin(more.support, shared)].min() > one.support.max()


def test_by_default_fewer_features_are_drawn():
    model = srf.sparse_rf(X, F, alpha=0.01, rng=0)
    more = srf.sparse_rf(X, F, alpha=0.005, rng=0, start=model)
    assert (model.info.n_drawn, more.info.n_drawn) == (10_000, 1_000)
    assert (
        more.info.objective[-1]
        < 0.005 * np.abs(model.coef).sum() + np.mean((model.predict(X) - F) ** 2) / 2
    )


STARTS = {
    "steps, linear functions and cosines": lambda: srf.sparse_rf(X, F, rng=0, n_components=300),
    "harfe": lambda: srf.harfe(
        X, F, n_components=300, n_nonzero_coefs=10, alpha=1e-4, order=2, rng=0
    ),
    "mfga": lambda: srf.mfga(X, F, n_nonzero_coefs=10, alpha=1e-3, rng=0),
    "drp": lambda: srf.drp(X, F, alpha=0.01),
    "perceptron": lambda: srf.sparse_rf(
        X, F, features="perceptron", scale=None, n_components=200, alpha=0.03, rng=0
    ),
    "no term": lambda: srf.sparse_rf(
        X, F, features="gaussian", n_components=200, alpha=100.0, rng=0
    ),
    "pruned": lambda: srf.prune(srf.sparse_rf(X, F, rng=0, n_components=300), X, max_terms=5),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "features",
    ["auto", "gaussian", srf.RandomNeurons("relu", order=2)],
    ids=["auto", "gaussian", "relu"],
)
@pytest.mark.parametrize("make", STARTS.values(), ids=STARTS)
def test_a_start_may_be_any_model_of_the_loss(make, features):
    start = make()
    model = srf.sparse_rf(
        X, F, alpha=1e-3, features=features, n_components=500, start=start, rng=0, tol=1e-3
    )
    assert model.info.converged and len(np.unique(model.support)) == len(model.support) > 0
    before = np.mean((start.predict(X) - F) ** 2) / 2 + 1e-3 * np.abs(start.coef).sum()
    assert model.info.objective[-1] <= before * (1 + 1e-9)
    assert r2(model, X, F) > 0.9


def test_terms_of_a_random_dictionary_are_found_in_it():
    """The same draws, made again, are no further features."""
    how = {
        "features": "gaussian",
        "gamma": 0.3,
        "n_components": 300,
        "batch_size": 100,
        "rng": 0,
        "tol": 1e-6,
        "exact": True,
    }
    start = srf.sparse_rf(X, F, alpha=0.03, **how)
    one, other = (
        srf.sparse_rf(X, F, alpha=0.01, start=start, **how),
        srf.sparse_rf(X, F, alpha=0.01, **how),
    )
    assert abs(one.info.objective[-1] - other.info.objective[-1]) <= max(
        one.info.dual_gap, other.info.dual_gap
    )
    assert one.support.max() < 300 and len(np.unique(one.support)) == len(one.support)
    elsewhere = srf.sparse_rf(X, F, alpha=0.01, start=start, **{**how, "rng": 1})
    assert (elsewhere.support >= 300).any() and len(np.unique(elsewhere.support)) == len(
        elsewhere.support
    )
    again = srf.sparse_rf(X, F, alpha=0.01, start=elsewhere, **{**how, "rng": 2})
    assert len(np.unique(again.support)) == len(again.support)


def table(n, seed):
    """Return a table of numbers with gaps and a category, and a target."""
    rng = np.random.default_rng(seed)
    age, city = (
        40 + 10 * rng.standard_normal(n),
        np.array(["Oslo", "Rom", "Lima"])[rng.integers(0, 3, n)],
    )
    y = np.sin(age / 10) + (city == "Rom") + 0.1 * rng.standard_normal(n)
    return pd.DataFrame({"city": city, "age": np.where(rng.random(n) < 0.1, np.nan, age)}), y


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparserf.CopiedRowsWarning")
@pytest.mark.parametrize("alpha", [0.01, None], ids=["alpha", "chosen"])
def test_tables_keep_their_encodings(alpha):
    (old, y), (new, y_new) = table(400, 0), table(300, 1)
    start = srf.sparse_rf(old, y, rng=0, n_components=300)
    model = srf.sparse_rf(new[["age", "city"]], y_new, start=start, alpha=alpha, rng=0)
    for name in ("column", "kind", "level", "center", "unit"):
        places = np.isin(start.features.encoder.column, model.features.encoder.column)
        np.testing.assert_array_equal(
            getattr(model.features.encoder, name), getattr(start.features.encoder, name)[places]
        )
    assert r2(model, new, y_new) > 0.8
    strange = new.assign(city="Bonn")
    assert np.isfinite(
        srf.sparse_rf(strange, y_new, start=start, alpha=0.01, rng=0).predict(new)
    ).all()
    with pytest.raises(
        ValueError, match=r"categorical must be None where .*, which knows its columns"
    ):
        srf.sparse_rf(new, y_new, start=start, alpha=alpha, categorical=["city"])


def test_a_frame_of_numbers_after_an_array():
    start = srf.sparse_rf(X, F, **AUTO)
    one = srf.sparse_rf(X, F, start=start, **AUTO)
    other = srf.sparse_rf(pd.DataFrame(X, columns=list("abc")), F, start=start, **AUTO)
    assert bits(one) == bits(other)


@pytest.mark.parametrize(
    "home",
    [
        sp.csr_array,
        lambda X: X.astype(np.float32),
        lambda X: srf.Chunks(lambda start, stop: X[start:stop], X.shape, block_rows=100),
    ],
    ids=["CSR", "float32", "chunks"],
)
def test_rows_of_other_kinds(home):
    start = srf.sparse_rf(home(X), F, **AUTO)
    model = srf.sparse_rf(home(X), F, start=start, **{**AUTO, "alpha": 0.003})
    assert model.info.converged and r2(model, X, F) > r2(start, X, F)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_without_a_penalty_the_terms_are_those_of_the_start(name):
    """But for the ends of the columns, which are those of the new rows."""
    how = {"exact": False, "rng": 0, "tol": 1e-3, "extrapolate": "linear"}
    start = fit(name, FIRST, features="auto", n_components=500, **how)
    model = fit(name, HALF, features="auto", start=start, alpha=None, **how)
    assert np.isin(model.support, start.support).all() and model.info.validation_loss is not None
    places = np.searchsorted(start.support, model.support)
    np.testing.assert_array_equal(
        model.features.transform(X[:5]), start.features.take(places).transform(X[:5])
    )
    again = fit(name, HALF, features=start.features, alpha=None, **how)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.slow
def test_without_a_penalty_a_linear_model_stays_one():
    y = X @ [1.0, 2.0, 3.0] + 0.1 * RNG.standard_normal(N)
    start = srf.sparse_rf(X[FIRST], y[FIRST], effort=0.3, rng=0)
    model = srf.sparse_rf(X[HALF], y[HALF] + 1, start=start, effort=0.3, rng=0)
    assert r2(model, X, y + 1) > 0.98 and len(model.support) <= len(start.support)


def test_an_estimator_takes_a_start():
    estimator = pytest.importorskip("sparserf.sklearn").SparseRFRegressor
    start = srf.sparse_rf(X, F, **AUTO)
    model = estimator(start=start, alpha=0.005, n_components=500, random_state=0).fit(X, F).model_
    assert bits(model) == bits(
        srf.sparse_rf(X, F, start=start, alpha=0.005, n_components=500, rng=0)
    )


WIDE = np.hstack([X, X[:, :1]])
SMALL = {"features": FIXED, "alpha": 0.1}
MODEL = srf.sparse_rf(X, F, **SMALL)
OF_LABELS = srf.sparse_rf(X, TARGETS["multinomial"], loss="logistic", **SMALL)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (
            TypeError,
            "start must be a SparseModel or None, got str",
            lambda: srf.sparse_rf(X, F, start="warm", alpha=0.1),
        ),
        (TypeError, "got FeatureSet", lambda: srf.sparse_rf(X, F, start=FIXED, alpha=0.1)),
        (
            ValueError,
            "start must be a model of loss='huber', got one of 'squared'",
            lambda: srf.sparse_rf(X, F, loss="huber", start=MODEL, alpha=0.1),
        ),
        (
            ValueError,
            "start must be a model of the 4 columns of X, got one of 3",
            lambda: srf.sparse_rf(WIDE, F, start=MODEL, alpha=0.1),
        ),
        (
            ValueError,
            "start must be a model of the 4 columns of X, got one of 3",
            lambda: srf.sparse_rf(WIDE, F, start=MODEL),
        ),
        (
            ValueError,
            "start must have the 2 outputs of y, got a model of 1",
            lambda: srf.sparse_rf(X, X[:, :2], start=MODEL, alpha=0.1),
        ),
        (
            ValueError,
            r"start must be a model of the classes of y, \[0, 1\], got one of \[0, 1, 2\]",
            lambda: srf.sparse_rf(X, (F > 0) * 1, loss="logistic", start=OF_LABELS, alpha=0.1),
        ),
        (
            ValueError,
            "start must see the columns of X in the units of features",
            lambda: srf.sparse_rf(X, F, start=srf.sparse_rf(X, F, **AUTO), **SMALL),
        ),
        (
            ValueError,
            "features must be left out where start is given and alpha is None",
            lambda: srf.sparse_rf(X, F, start=MODEL, features="gaussian"),
        ),
        (
            ValueError,
            "start must have a term where alpha is None",
            lambda: srf.sparse_rf(X, F, start=srf.sparse_rf(X, F, features=FIXED, alpha=1e9)),
        ),
        (
            ValueError,
            "start must have terms of at most max_order=1 inputs, got one of 3",
            lambda: srf.sparse_rf(X, F, start=MODEL, alpha=0.1, max_order=1),
        ),
    ],
)
def test_what_is_wrong_is_said(error, message, call):
    with pytest.raises(error, match=message):
        call()


def test_linear_functions_of_the_users_features_keep_their_indices(tmp_path):
    """They are not added up, as those of members are, under an index that another term may have."""
    draws = srf.Fourier(gamma=0.3).draw(8, 3, rng=1)
    features = draws.concat(linear_functions(np.array([[1.0, -2.0, 0.5]])))
    y = features.transform(X) @ np.ones(9)
    model = srf.sparse_rf(X, y, features=features, scale=None, rng=0)
    assert 3 in model.support and model.support[-1] == 8
    assert (np.diff(model.support) > 0).all()
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(srf.load(tmp_path / "model.npz").predict(X), model.predict(X))
